//! Faults on demand: everything that runs answers with them, values go stale, and a device that comes back is as new.

use crate::{Config, Device, Engine, Plan, RunOptions, SimBackend, SimProfile, Tensor};
use breakeven_ir::DType;
use breakeven_ir::backend::{Backend, Made, Prepared, RunError, Source, Status, Task};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn sim() -> SimBackend {
    SimBackend::new("gpu:0", SimProfile::by_name("rtx4090").unwrap()).unwrap()
}

fn prepare(sim: &SimBackend) -> Arc<dyn Prepared> {
    let x = Tensor::input("x", DType::F32, [16]).unwrap();
    sim.prepare(&Arc::new(Plan::new(&[&x.exp().unwrap()]).unwrap())).unwrap()
}

/// The answers of every way to run something.
fn answers(sim: &SimBackend, prepared: &dyn Prepared) -> Vec<Result<(), RunError>> {
    let (input, mut output) = ([0u8; 64], [0u8; 64]);
    let plan = prepared.plan();
    let mut answers = vec![
        prepared.run(&[&input], &mut [&mut output], true).map(drop),
        prepared.run_batch(&[Source::Bytes(&input)], false).map(drop),
        sim.run_mixed(&[Task { plan, inputs: &[&input], offset: 0 }], &mut output, &mut |_, _| panic!()).map(drop),
    ];
    let mut failed = Vec::new();
    prepared.run_tasks(1, &[&input], &mut output, 64, &mut |task, error| failed.push((task, error)));
    assert!(failed.iter().all(|(task, _)| *task == 0) && failed.len() < 2);
    answers.push(failed.pop().map_or(Ok(()), |(_, error)| Err(error)));
    answers
}

fn lost(why: &str) -> RunError {
    RunError::Lost { device: "gpu:0".into(), why: why.into() }
}

#[test]
fn a_lost_device_says_so_everywhere_and_comes_back() {
    for sim in [sim(), sim().paced(100.0).unwrap()] {
        let prepared = prepare(&sim);
        let (kept, _) = prepared.run_batch(&[Source::Bytes(&[0; 64])], true).unwrap();
        let [Made::Resident(kept)] = &kept[..] else { panic!("it does not stay") };
        let values = [kept.clone(), sim.upload(&[1; 64]).unwrap(), sim.allocate(64).unwrap()];
        assert!(values.iter().all(|value| value.is_current()));
        assert_eq!((sim.is_lost(), sim.generation(), sim.health().status), (false, 0, Status::Healthy));

        sim.lose("a test");
        sim.lose("another");
        let before = sim.virtual_ns();
        assert_eq!((sim.is_lost(), sim.generation(), sim.pending_ns()), (true, 1, 0));
        assert_eq!((sim.health().status, sim.health().reason.as_str()), (Status::Lost, "a test"));
        assert_eq!(answers(&sim, &*prepared), vec![Err(lost("a test")); 4]);
        assert_eq!(sim.upload(&[1]).map(drop), Err(lost("a test")));
        assert_eq!(sim.allocate(1).map(drop), Err(lost("a test")));
        assert_eq!(sim.virtual_ns(), before);

        for _ in 0..2 {
            assert!(values.iter().all(|value| !value.is_current()));
            let stale = RunError::Stale { device: "gpu:0".into() };
            assert!(values.iter().all(|value| value.fetch().map(drop) == Err(stale.clone())));
            assert_eq!(sim.write(&values[2], 0, &[1]), Err(stale.clone()));
            assert_eq!(sim.read(&values[2], 0, &mut [1]), Err(stale));
            sim.recover();
        }
        assert_eq!((sim.is_lost(), sim.generation(), sim.health().status), (false, 1, Status::Healthy));
        assert_eq!(answers(&sim, &*prepared), vec![Ok(()); 4]);
        assert!(sim.upload(&[1]).unwrap().is_current());
    }
}

#[test]
fn running_batches_are_lost_at_once() {
    let sim = sim().paced(1.0).unwrap();
    let prepared = prepare(&sim);
    const SPIKE_NS: u64 = 30_000_000_000;
    sim.add_spike_ns(SPIKE_NS);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let running =
            [0, 1, 2].map(|_| scope.spawn(|| prepared.run_batch(&[Source::Bytes(&[0; 64])], false).map(drop)));
        while sim.virtual_ns() < SPIKE_NS + 3 * prepared.estimate_ns() {
            std::thread::yield_now();
        }
        // Time for all of them to fall asleep.
        std::thread::sleep(Duration::from_millis(20));
        sim.lose("pulled");
        // Whoever was there before does not get the work of the one that comes back.
        sim.recover();
        for batch in running {
            assert_eq!(batch.join().unwrap(), Err(lost("pulled")));
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(sim.pending_ns(), 0);
    assert_eq!(answers(&sim, &*prepared), vec![Ok(()); 4]);
}

#[test]
fn so_many_batches_fail_and_no_more() {
    for sim in [sim(), sim().paced(100.0).unwrap()] {
        let prepared = prepare(&sim);
        let refused = RunError::Device { device: "gpu:0".into(), message: "it was told to fail".into() };
        sim.fail_next(3);
        assert!(sim.upload(&[1]).is_ok() && sim.run_mixed(&[], &mut [], &mut |_, _| panic!()).is_ok());
        let expected = vec![Err(refused.clone()), Err(refused.clone()), Err(refused.clone()), Ok(())];
        assert_eq!(answers(&sim, &*prepared), expected);
        sim.fail_next(4);
        assert_eq!(answers(&sim, &*prepared), vec![Err(refused); 4]);
        sim.fail_next(9);
        sim.fail_next(0);
        assert_eq!(answers(&sim, &*prepared), vec![Ok(()); 4]);
    }
}

#[test]
fn an_engine_has_the_results_all_the_same() {
    let sim = sim();
    let config = Config { threads: Some(1), device: Device::Gpu(Some(0)), ..Config::default() };
    let engine = Engine::with_backends(config, vec![Arc::new(sim.clone())]).unwrap();
    let x = engine.pin(&Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap()).unwrap();
    let kept = engine.run_resident(&[&(&x + 1.0).unwrap()]).unwrap();
    let ran = |tensor: &Tensor| {
        let ran = engine.run_with(&[tensor], &RunOptions::default()).unwrap();
        (ran.decision.device, ran.decision.fallbacks, ran.outputs[0].as_slice::<f32>().unwrap().to_vec())
    };
    let tripled = (&kept[0] * 3.0).unwrap();
    sim.fail_next(1);
    assert_eq!(ran(&tripled), ("cpu".into(), 1, vec![6.0, 9.0]));
    sim.lose("a test");
    assert_eq!(ran(&(&x * 2.0).unwrap()), ("cpu".into(), 1, vec![2.0, 4.0]));
    sim.recover();
    assert_eq!(ran(&tripled), ("gpu:0".into(), 0, vec![6.0, 9.0]));
    assert_eq!(ran(&(&x * 2.0).unwrap()), ("gpu:0".into(), 0, vec![2.0, 4.0]));
}
