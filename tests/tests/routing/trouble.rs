//! Figures that can't be trusted, and devices that fail: they cost time and no result.

use crate::{alone, chain, config, folder, measure, modern, numbers, on, run};
use breakeven::backend::{Backend, Made, Prepared, Source};
use breakeven::cost::{CostsFile, Effort};
use breakeven::{Device, Engine, Plan, RunError, RunOptions, SimBackend, Timings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[test]
fn a_file_that_cant_be_trusted_costs_a_measurement_and_nothing_else() {
    let _alone = alone();
    let dir = folder("corrupt");
    std::fs::create_dir_all(&dir).unwrap();
    let path = CostsFile::path(&dir, &breakeven::cpu_name(), 1);
    std::fs::write(&path, "{\"version\": 1, \"cpu\": \"").unwrap();
    let sim = modern();
    let new = || Engine::with_backends(config(Some(dir.clone())), vec![Arc::new(sim.clone())]).unwrap();
    let engine = new();
    let x = numbers(&[1000]);
    let decision = run(&engine, &x.exp().unwrap());
    assert_eq!(decision.device, "cpu");
    assert!(decision.predicted.is_empty() && decision.reason.contains("measured"), "{}", decision.reason);
    let why = engine.load_costs().expect("it says why");
    assert!(why.contains(&*path.to_string_lossy()) && why.contains("`breakeven scan`"), "{why}");
    assert_eq!((engine.costs("cpu"), engine.costs("gpu:0")), (None, None));

    // What is measured now takes its place, and the next engine reads it.
    measure(&engine, "cpu", Effort::Probe);
    measure(&engine, "gpu:0", Effort::Probe);
    let next = new();
    assert_eq!(next.load_costs(), None);
    assert!(next.costs("cpu").is_some() && next.costs("gpu:0").is_some());
    assert_eq!(run(&next, &x.exp().unwrap()).predicted.len(), 2);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A simulated device that fails while it is told to.
struct Failing {
    sim: SimBackend,
    fails: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
}

struct FailingPlan {
    inner: Arc<dyn Prepared>,
    fails: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
}

impl Backend for Failing {
    fn id(&self) -> &str {
        self.sim.id()
    }

    fn name(&self) -> &str {
        "a simulated device that fails"
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        let (fails, attempts) = (self.fails.clone(), self.attempts.clone());
        Ok(Arc::new(FailingPlan { inner: self.sim.prepare(plan)?, fails, attempts }))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Prepared for FailingPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        self.inner.run(inputs, outputs, threads)
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        self.inner.run_tasks(tasks, inputs, results, stride, failed);
    }

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        self.attempts.fetch_add(1, Relaxed);
        if self.fails.load(Relaxed) {
            return Err(RunError::Device { device: "gpu:0".into(), message: "injected".into() });
        }
        self.inner.run_batch(inputs, stay)
    }
}

#[test]
fn a_device_that_fails_costs_time_and_no_result() {
    let _alone = alone();
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 10_000 } else { 100_000 }]));
    let sim = modern();
    let (fails, attempts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let failing = Failing { sim, fails: fails.clone(), attempts: attempts.clone() };
    let engine = Engine::with_backends(config(None), vec![Arc::new(failing)]).unwrap();
    let expected = engine.run_with(&[&output], &on(Device::Cpu)).unwrap().outputs;
    measure(&engine, "cpu", Effort::Probe);
    measure(&engine, "gpu:0", Effort::Probe);
    let run = || {
        let ran = engine.run_with(&[&output], &RunOptions::default()).unwrap();
        assert_eq!(ran.outputs[0].as_bytes(), expected[0].as_bytes());
        ran.decision
    };
    assert_eq!(run().device, "gpu:0");

    fails.store(true, Relaxed);
    let decision = run();
    assert_eq!((&*decision.device, decision.fallbacks, decision.faults.len()), ("cpu", 1, 1));
    assert!(
        decision.reason.contains("gpu:0 was chosen") && decision.reason.contains("injected"),
        "{}",
        decision.reason
    );
    // It is not asked in vain before every batch.
    let before = attempts.load(Relaxed);
    let failed = (0..200).filter(|_| run().fallbacks > 0).count() as u64;
    assert_eq!(attempts.load(Relaxed) - before, failed);
    assert!((1..=20).contains(&failed), "{failed}");

    fails.store(false, Relaxed);
    let until = (1..=300).find(|_| run().device == "gpu:0");
    assert!(until.is_some_and(|batches| batches <= 100), "{until:?}");
}
