//! Small jobs of one program go to a device together: few batches, every result its own, and nobody waits for longer than
//! he has agreed to.

use crate::{alone, answered, at_least, doubling, engine, numbers};
use breakeven::{DType, Device, Engine, Error, Job, Priority, QueueConfig, RunError, Tensor};
use breakeven_tests::hooked::{Gate, Hooked, simulated};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// An engine whose queue has one device, with a large fixed cost, that waits for its gate; and how many batches it had.
fn dear(queue: QueueConfig) -> (Engine, Gate, Arc<AtomicU64>) {
    let (gate, batches) = (Gate::default(), Arc::new(AtomicU64::new(0)));
    let count = batches.clone();
    let counting = Hooked::new(simulated("gpu:0", 1_000.0), move |_| {
        count.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    let device = Hooked::gated(counting, &gate);
    let queue = QueueConfig { devices: vec![Device::Gpu(Some(0))], ..queue };
    (engine(queue, vec![Arc::new(device)]), gate, batches)
}

#[test]
fn many_small_jobs_are_few_batches() {
    let _alone = alone();
    let (engine, gate, batches) = dear(QueueConfig::default());
    let program = doubling(&engine, 4);
    // Of several sizes, also of none that the program was recorded with.
    let size = |i: usize| [4, 4, 7, 1][i % 4];
    let tickets: Vec<_> =
        (0..2_000).map(|i| engine.submit(Job::program(&program, [numbers(i, size(i))])).unwrap()).collect();
    gate.open();
    for (i, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(answered(ticket).unwrap(), vec![2.0 * i as f32; size(i)]);
    }
    let (stats, batches) = (engine.queue_stats(), batches.load(Relaxed));
    // 2,000 by 256 are eight; before the gate one was taken with whatever had come by then.
    assert!(batches <= 10 && stats.gathered_batches <= batches, "{batches} {stats:?}");
    assert!(stats.gathered_jobs >= 1_700 && stats.completed == 2_000, "{stats:?}");
    // Those that want to be alone are.
    let alone: Vec<_> =
        (0..20).map(|i| engine.submit(Job::program(&program, [numbers(i, 4)]).alone()).unwrap()).collect();
    alone.into_iter().for_each(|ticket| drop(answered(ticket).unwrap()));
}

#[test]
fn jobs_that_go_together_are_done_sooner() {
    let _alone = alone();
    let time = |gather: usize| {
        let (engine, gate, _) = dear(QueueConfig { gather, ..QueueConfig::default() });
        let program = doubling(&engine, 4);
        let tickets: Vec<_> =
            (0..200).map(|i| engine.submit(Job::program(&program, [numbers(i, 4)])).unwrap()).collect();
        let begun = Instant::now();
        gate.open();
        tickets.into_iter().for_each(|ticket| drop(answered(ticket).unwrap()));
        begun.elapsed().as_secs_f64()
    };
    at_least("one by one / gathered", 10.0, || time(1) / time(256));
}

#[test]
fn one_that_is_wrong_fails_alone() {
    let _alone = alone();
    for device in [Device::Gpu(Some(0)), Device::Cpu] {
        let (engine, gate, _) = dear(QueueConfig::default());
        let (x, at) = (Tensor::input("x", DType::F32, [4]).unwrap(), Tensor::input("at", DType::I32, [2]).unwrap());
        let program = engine.compile(&[&x, &at], &[&x.take(&at, 0).unwrap()]).unwrap();
        let tickets: Vec<_> = (0..200i32)
            .map(|i| {
                let index = if i % 50 == 17 { 9 } else { i % 4 };
                let values = Tensor::from_vec((0..4).map(|k| (10 * i + k) as f32).collect(), [4]).unwrap();
                let inputs = [values, Tensor::from_vec(vec![index, 0], [2]).unwrap()];
                engine.submit(Job::program(&program, inputs).device(device)).unwrap()
            })
            .collect();
        gate.open();
        for (i, ticket) in tickets.into_iter().enumerate() {
            match answered(ticket) {
                Ok(values) => {
                    assert!(i % 50 != 17, "{i} takes what is not there");
                    assert_eq!(values, [(10 * i + i % 4) as f32, (10 * i) as f32]);
                }
                Err(Error::Failed { why }) => {
                    assert!(matches!(*why, Error::Run(RunError::TakeIndex { .. })) && i % 50 == 17, "{i}: {why}");
                }
                Err(error) => panic!("{i}: {error}"),
            }
        }
        let stats = engine.queue_stats();
        assert_eq!((stats.completed, stats.failed, stats.fallbacks), (196, 4, 0), "{device}: {stats:?}");
        assert!(stats.gathered_batches > 0, "{device}: {stats:?}");
    }
}

#[test]
fn nobody_waits_for_longer_than_he_agreed_to() {
    let _alone = alone();
    let window = Duration::from_millis(300);
    let queue = QueueConfig { window, bulk_window: 20 * window, ..QueueConfig::default() };
    let (engine, gate, _) = dear(queue);
    gate.open();
    let (program, other) = (doubling(&engine, 4), doubling(&engine, 5));
    let job = |priority| Job::program(&program, [numbers(3, 4)]).priority(priority);
    let time = |job: Job| {
        let begun = Instant::now();
        let values = answered(engine.submit(job).unwrap()).unwrap();
        assert_eq!(values, vec![6.0; values.len()]);
        begun.elapsed()
    };
    // The first one makes the plan ready.
    time(job(Priority::Interactive));
    let (urgent, normal) = (time(job(Priority::Interactive)), time(job(Priority::Normal)));
    assert!(urgent < window / 2, "{urgent:?}");
    assert!(normal >= window && normal < 2 * window, "{normal:?}");
    // One that is willing to wait keeps neither its own kind nor others waiting.
    for urgent in [job(Priority::Interactive), Job::program(&other, [numbers(3, 5)]).priority(Priority::Interactive)] {
        let patient = engine.submit(job(Priority::Bulk)).unwrap();
        while engine.queue_stats().queued > 0 {
            std::thread::yield_now();
        }
        let took = time(urgent);
        assert!(took < window, "{took:?}");
        assert_eq!(answered(patient).unwrap(), [6.0; 4]);
    }
    // Nor does one that comes late begin a new window: he waits for no more than his own.
    let patient = engine.submit(job(Priority::Bulk)).unwrap();
    let took = time(job(Priority::Normal));
    assert!(took < 2 * window, "{took:?}");
    assert_eq!(answered(patient).unwrap(), [6.0; 4]);
}
