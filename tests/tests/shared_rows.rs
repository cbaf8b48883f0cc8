//! Batches of many rows on the CPU and another device at once: with a simulated device, whose times are told, and with
//! real ones, whole and failing.

use breakeven::backend::{Backend, Made, Prepared, Source};
use breakeven::cost::{Costs, Curve, Effort};
use breakeven::{
    Answer, Api, Array, Config, DType, Decision, Device, Engine, Job, Plan, RunError, RunOptions, SimBackend,
    SimProfile, Tensor, Timings, View,
};
use breakeven_gpu::GpuConfig;
use breakeven_tests::data::random;
use breakeven_tests::faulty::{Fault, Faulty, Script, every_noticed_fault, gpu};
use breakeven_tests::pair::Pair;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn leaf(shape: &[usize], seed: u64) -> Tensor {
    Pair::leaf(random(DType::F32, shape, seed)).tensor
}

/// What the CPU alone makes of it.
fn on_cpu(outputs: &[&Tensor]) -> Vec<Array> {
    let config = Config { device: Device::Cpu, threads: Some(1), ..Config::default() };
    Engine::with_config(config).unwrap().run(outputs).unwrap()
}

/// An engine that is told that a device takes as long as the CPU, so that half of the rows is the best share.
fn even(backend: Arc<dyn Backend>, verify: f64) -> Engine {
    let config = Config { device: Device::All, explore: 0.0, verify, ..Config::default() };
    let engine = Engine::with_backends(config, vec![backend]).unwrap();
    let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
    // So much that nothing else matters.
    let costs = Costs { memory: curve(1000.0), compute: curve(1.0), upload: curve(1e-3), ..Costs::default() };
    engine.set_costs("cpu", costs.clone()).unwrap();
    engine.set_costs("gpu:0", Costs { readback: curve(1e-3), ..costs }).unwrap();
    engine
}

fn sim() -> SimBackend {
    SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete").unwrap()).unwrap()
}

fn run(engine: &Engine, outputs: &[&Tensor]) -> (Vec<Array>, Decision) {
    let ran = engine.run_with(outputs, &RunOptions::default()).unwrap();
    (ran.outputs, ran.decision)
}

#[track_caller]
fn assert_same(found: &[Array], expected: &[Array]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()));
        assert!(found.as_bytes() == expected.as_bytes(), "other bits");
    }
}

/// Batches of rows of every kind.
fn batches() -> Vec<Vec<Tensor>> {
    let (x, bias, each) = (leaf(&[600, 40], 1), leaf(&[40], 2), leaf(&[600, 1], 3));
    let (w, v) = (leaf(&[40, 30], 4), leaf(&[30, 7], 5));
    let layer = (x.matmul(&w).unwrap() + &leaf(&[30], 6)).unwrap().relu().unwrap();
    vec![
        vec![((&x * &each).unwrap() + &bias).unwrap().tanh().unwrap()],
        vec![x.softmax(-1).unwrap(), x.sum(&[1], false).unwrap(), x.gt(&each).unwrap()],
        vec![x.layer_norm(1, 1e-5).unwrap()],
        vec![layer.matmul(&v).unwrap().softmax(-1).unwrap(), layer.clone(), layer],
    ]
}

#[test]
fn rows_are_shared_so_that_both_are_done_at_once() {
    let card = sim();
    let config = Config { device: Device::All, ..Config::default() };
    let engine = Engine::with_backends(config, vec![Arc::new(card.clone())]).unwrap();
    let x = leaf(&[2000, 1000], 1);
    // Of operations that a first look at a device has measured.
    let output = (0..8).fold(x.clone(), |y, _| ((y * 0.9).unwrap() + &x).unwrap());
    let cpu = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
    let times = [0; 5].map(|_| engine.run_with(&[&output], &cpu).unwrap().decision.actual_ns);
    let fastest = times.into_iter().min().unwrap();
    // Of a card that takes as long as the CPU half of the rows is the best share.
    card.set_slowdown(fastest as f64 / card.batch_ns(&Plan::new(&[&output]).unwrap(), 1) as f64).unwrap();
    for device in ["cpu", "gpu:0"] {
        engine.measure(device, Effort::Probe, &mut |_| ControlFlow::Continue(())).unwrap();
    }
    let before = card.virtual_ns();
    let (found, decision) = run(&engine, &[&output]);
    assert_eq!(decision.device, "cpu+gpu:0", "{} {:?}", decision.reason, decision.predicted);
    let alone = card.batch_ns(&Plan::new(&[&output]).unwrap(), 1);
    let there = card.virtual_ns() - before;
    assert!(there > alone / 8 && there < alone * 7 / 8, "{there} of {alone}");
    assert!(decision.actual_ns >= there, "it is done when both are");
    assert_same(&found, &on_cpu(&[&output]));
    // Where it was not asked for, it is not done.
    let auto = RunOptions { device: Some(Device::Auto), ..RunOptions::default() };
    for _ in 0..5 {
        assert_ne!(engine.run_with(&[&output], &auto).unwrap().decision.device, "cpu+gpu:0");
    }
}

#[test]
fn every_kind_of_rows_is_shared_and_the_same() {
    for outputs in batches() {
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let engine = even(Arc::new(sim()), 0.0);
        let (found, decision) = run(&engine, &outputs);
        assert_eq!((&*decision.device, decision.fallbacks), ("cpu+gpu:0", 0), "{}", decision.reason);
        assert!(decision.timings.upload_bytes > 0);
        assert_same(&found, &on_cpu(&outputs));
    }
}

#[test]
fn rows_go_into_memory_that_exists() {
    let x = Tensor::input("x", DType::F32, [500, 20]).unwrap();
    let (y, sums) = (x.softmax(-1).unwrap(), x.sum(&[1], false).unwrap());
    let data: Vec<f32> = (0..500 * 20).map(|i| (i % 101) as f32 / 50.0 - 1.0).collect();
    let tensor = Tensor::from_vec(data.clone(), [500, 20]).unwrap();
    let expected = on_cpu(&[&tensor.softmax(-1).unwrap(), &tensor.sum(&[1], false).unwrap()]);
    let [soft, total] = [0, 1].map(|at| expected[at].to_vec::<f32>().unwrap());
    let card = sim();
    let engine = even(Arc::new(card.clone()), 0.0);
    let (mut a, mut b, mut c) = (vec![0f32; 500 * 20], vec![0f32; 500], vec![0f32; 500]);
    let inputs = [View::from(&data)];
    let program = engine.compile(&[&x], &[&y, &sums]).unwrap();
    program.run_into(&inputs, &mut [a.as_mut_slice().into(), b.as_mut_slice().into()]).unwrap();
    assert!(card.virtual_ns() > 0, "the card had a part");
    assert_eq!((&a, &b), (&soft, &total));
    // One buffer for two outputs.
    let before = card.virtual_ns();
    let twice = engine.compile(&[&x], &[&sums, &y, &sums]).unwrap();
    let outputs = &mut [b.as_mut_slice().into(), a.as_mut_slice().into(), c.as_mut_slice().into()];
    twice.run_into(&inputs, outputs).unwrap();
    assert!(card.virtual_ns() > before);
    assert_eq!((&a, &b, &c), (&soft, &total, &total));
}

#[test]
fn what_lies_there_is_used_where_all_of_it_is_needed() {
    let (x, w) = (leaf(&[600, 40], 1), leaf(&[40, 30], 2));
    let card: Arc<dyn Backend> = Arc::new(sim());
    let pinning = Config { device: Device::Gpu(Some(0)), ..Config::default() };
    let pinning = Engine::with_backends(pinning, vec![card.clone()]).unwrap();
    let expected = on_cpu(&[&x.matmul(&w).unwrap()]);
    // The weights are not sent again.
    let there = pinning.pin(&w).unwrap();
    let (found, decision) = run(&even(card.clone(), 0.0), &[&x.matmul(&there).unwrap()]);
    assert_eq!(decision.device, "cpu+gpu:0", "{}", decision.reason);
    assert!(decision.timings.upload_bytes < 600 * 40 * 4, "{:?}", decision.timings);
    assert_same(&found, &expected);
    // Rows of what lies there are not taken apart.
    let there = pinning.pin(&x).unwrap();
    let (found, decision) = run(&even(card, 0.0), &[&there.matmul(&w).unwrap()]);
    assert_ne!(decision.device, "cpu+gpu:0", "{}", decision.reason);
    assert_same(&found, &expected);
}

#[test]
fn batches_without_rows_are_not_shared() {
    let x = leaf(&[600, 40], 1);
    for output in [x.sum(&[0], false).unwrap(), x.softmax(0).unwrap(), x.flip(&[0]).unwrap().exp().unwrap()] {
        let (found, decision) = run(&even(Arc::new(sim()), 0.0), &[&output]);
        assert_ne!(decision.device, "cpu+gpu:0", "{}", decision.reason);
        assert_same(&found, &on_cpu(&[&output]));
    }
}

/// A simulated device that does its part, or panics as a driver may, or says that it is gone.
struct Breaks {
    sim: SimBackend,
    how: Arc<AtomicU64>,
}

struct BreaksPlan {
    inner: Arc<dyn Prepared>,
    how: Arc<AtomicU64>,
}

impl Backend for Breaks {
    fn id(&self) -> &str {
        "gpu:0"
    }

    fn name(&self) -> &str {
        "a device that breaks"
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(BreaksPlan { inner: self.sim.prepare(plan)?, how: self.how.clone() }))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Prepared for BreaksPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        self.inner.run(inputs, outputs, threads)
    }

    fn run_tasks(&self, _: usize, _: &[&[u8]], _: &mut [u8], _: usize, _: &mut dyn FnMut(usize, RunError)) {}

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        match self.how.load(Relaxed) {
            0 => self.inner.run_batch(inputs, stay),
            1 => Err(RunError::Lost { device: "gpu:0".into(), why: "someone pulled it out".into() }),
            _ => panic!("as a driver may"),
        }
    }
}

#[test]
fn a_device_that_breaks_costs_no_result() {
    for outputs in batches() {
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let expected = on_cpu(&outputs);
        for (way, words) in [(1, "someone pulled it out"), (2, "its driver has panicked")] {
            let how = Arc::new(AtomicU64::new(way));
            let engine = even(Arc::new(Breaks { sim: sim(), how: how.clone() }), 0.0);
            let (found, decision) = run(&engine, &outputs);
            assert_same(&found, &expected);
            assert_eq!((&*decision.device, decision.fallbacks), ("cpu", 1));
            assert!(decision.faults[0].contains(words) && decision.reason.contains(words), "{decision:?}");
            // Left alone for a while, and used again once it works.
            how.store(0, Relaxed);
            let devices: Vec<String> = (0..3)
                .map(|_| {
                    let (found, decision) = run(&engine, &outputs);
                    assert_same(&found, &expected);
                    decision.device
                })
                .collect();
            assert!(devices[0] != "cpu+gpu:0" && devices.contains(&"cpu+gpu:0".to_owned()), "{devices:?}");
        }
    }
}

/// The device's rows, which are the first half, to a tolerance, the CPU's bit for bit.
#[track_caller]
fn assert_close(found: &[Array], expected: &[Array]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()));
        let (a, b) = (found.to_f64(), expected.to_f64());
        let scale = b.iter().fold(0.0f64, |most, v| most.max(v.abs())).max(1.0);
        let far = (0..b.len()).find(|&at| (a[at] - b[at]).abs() > 1e-5 * scale && expected.dtype() != DType::Bool);
        assert_eq!(far.map(|at| (at, a[at], b[at])), None);
        let half = found.as_bytes().len() / 2;
        assert!(found.as_bytes()[half..] == expected.as_bytes()[half..], "the CPU's rows have other bits");
    }
}

#[test]
fn real_devices_share() {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        for outputs in batches() {
            let outputs: Vec<&Tensor> = outputs.iter().collect();
            // Which waits for its compiler.
            let device = Arc::new(Faulty::new(&gpu, &Script::new(1, Vec::new())));
            let before = gpu.counters().readbacks;
            let (found, decision) = run(&even(device, 1.0), &outputs);
            assert_eq!((&*decision.device, decision.fallbacks), ("cpu+gpu:0", 0), "{}", decision.reason);
            assert!(gpu.counters().readbacks > before);
            assert_close(&found, &on_cpu(&outputs));
        }
    }
}

#[test]
fn a_real_device_that_fails_costs_no_result() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let all = batches();
    // So few elements that one which is wrong is too many.
    let few = vec![leaf(&[200, 40], 1).sum(&[1], false).unwrap()];
    for (number, fault) in every_noticed_fault().into_iter().chain([Fault::Wrong]).enumerate() {
        let outputs = if fault == Fault::Wrong { &few } else { &all[number % all.len()] };
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let script = Script::new(1, vec![fault]);
        let (found, decision) = run(&even(Arc::new(Faulty::new(&gpu, &script)), 1.0), &outputs);
        assert_eq!((script.injected(), &*decision.device, decision.fallbacks), (1, "cpu", 1), "{fault:?} {decision:?}");
        assert_same(&found, &on_cpu(&outputs));
    }
}

#[test]
fn threads_share_at_once() {
    let engine = even(Arc::new(sim()), 0.0);
    let all = batches();
    std::thread::scope(|scope| {
        for outputs in &all {
            let engine = &engine;
            scope.spawn(move || {
                let outputs: Vec<&Tensor> = outputs.iter().collect();
                let expected = on_cpu(&outputs);
                (0..10).for_each(|_| assert_same(&run(engine, &outputs).0, &expected));
            });
        }
    });
}

#[test]
fn a_large_job_of_the_queue_is_divided_if_nothing_else_waits() {
    let engine = even(Arc::new(sim()), 0.0);
    for outputs in batches() {
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let answer = engine.submit(Job::batch(&outputs).explained()).unwrap().wait().unwrap();
        let Answer::Arrays { outputs: found, device, decision } = answer else { panic!("no arrays") };
        assert_eq!((&*device, &*decision.unwrap().device), ("cpu+gpu:0", "cpu+gpu:0"));
        assert_same(&found, &on_cpu(&outputs));
    }
    // One device was asked for.
    let x = leaf(&[600, 40], 1);
    let answer = engine.submit(Job::batch(&[&x.softmax(-1).unwrap()]).device(Device::Cpu)).unwrap().wait().unwrap();
    assert!(matches!(answer, Answer::Arrays { device, .. } if &*device == "cpu"));
}
