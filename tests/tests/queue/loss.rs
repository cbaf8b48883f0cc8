//! Nothing is lost: whatever is cancelled, late, failed or lost, every job is answered once, with the right answer, and the
//! counters say the same.

use crate::{alone, answered, doubling, numbers, only};
use breakeven::backend::{Backend, Prepared};
use breakeven::{Config, Device, Engine, Error, Job, Plan, QueueConfig, RunError, SimBackend};
use breakeven_tests::hooked::simulated;
use breakeven_tests::mix::{Mix, Tally};
use breakeven_tests::soak::{agree, soak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// For each of four producers.
const JOBS: u64 = if cfg!(debug_assertions) { 5_000 } else { 250_000 };
const PRODUCERS: u64 = 4;

#[test]
fn four_producers_with_faults_losses_cancellations_and_deadlines() {
    let _alone = alone();
    let mix = Mix::new().unwrap();
    let round = |jobs: u64| {
        let running = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| mix.disturb(&running));
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|producer| {
                    let (mix, mut left) = (&mix, jobs);
                    scope.spawn(move || {
                        mix.produce(producer, || {
                            left = left.saturating_sub(1);
                            left > 0
                        })
                    })
                })
                .collect();
            let tallies: Vec<_> = producers.into_iter().map(|producer| producer.join()).collect();
            // Before anything panics: the one that disturbs must end.
            running.store(false, Relaxed);
            let mut tally = Tally::default();
            tallies.into_iter().for_each(|part| tally.add(part.unwrap().unwrap_or_else(|why| panic!("{why}"))));
            tally
        })
    };
    let mut tally = round(JOBS / 5);
    let warm = mix.engine.memory_stats();
    tally.add(round(JOBS));
    mix.engine.close();
    let stats = mix.engine.queue_stats();
    agree(&stats, &tally).unwrap();
    assert!(tally.right > JOBS && tally.cancelled > 0 && tally.late > 0 && stats.fallbacks > 0, "{stats:?}");
    // Whatever was lent is back, and so many jobs more need no more memory than the first ones.
    let memory = mix.engine.memory_stats();
    assert!(memory.free_bytes >= warm.free_bytes, "{memory:?} {warm:?}");
    assert!(memory.free_bytes <= warm.free_bytes + (4 << 20), "{memory:?} {warm:?}");
}

#[test]
fn a_soak_of_two_seconds() {
    let _alone = alone();
    let mut lines = 0;
    let tally = soak(Duration::from_secs(2), Duration::from_millis(500), |_| lines += 1).unwrap();
    assert!(tally.right > 100 && lines > 0, "{tally:?}");
}

/// A worker that sleeps hears of a job that only its device may do, although another worker has found it first.
#[test]
fn a_job_for_a_device_that_sleeps_is_done() {
    let _alone = alone();
    let devices = [Device::Cpu, Device::Gpu(Some(0)), Device::Gpu(Some(1))];
    let engine = only(&devices, vec![Arc::new(simulated("gpu:0", 0.5)), Arc::new(simulated("gpu:1", 0.5))]);
    let program = doubling(&engine, 4);
    for round in 0..600 {
        let device = devices[round % 3];
        let ticket = engine.submit(Job::program(&program, [numbers(round, 4)]).device(device)).unwrap();
        assert_eq!(answered(ticket).unwrap(), [2.0 * round as f32; 4]);
        // Now and then long enough for all of them to sleep.
        if round % 3 == 0 {
            std::thread::sleep(Duration::from_micros(400));
        }
    }
}

/// Where all devices that may do a job are gone, or none of them can do it at all, the CPU does it.
#[test]
fn jobs_that_no_device_can_do() {
    struct Unable(SimBackend);
    impl Backend for Unable {
        fn id(&self) -> &str {
            self.0.id()
        }
        fn name(&self) -> &str {
            "a device that can't"
        }
        fn prepare(&self, _plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
            Err(RunError::Unsupported { device: self.id().into(), why: "it can't".into() })
        }
    }
    let _alone = alone();
    let devices = [Device::Gpu(Some(0)), Device::Gpu(Some(1))];
    let check = |engine: &Engine| {
        let program = doubling(engine, 4);
        for round in 0..20 {
            let ticket = engine.submit(Job::program(&program, [numbers(round, 4)])).unwrap();
            assert_eq!(answered(ticket).unwrap(), [2.0 * round as f32; 4]);
        }
        assert_eq!(engine.queue_stats().completed, 20);
    };
    check(&only(&devices, devices.iter().map(|id| Arc::new(Unable(simulated(&id.to_string(), 1.0))) as _).collect()));
    let sims = devices.map(|id| simulated(&id.to_string(), 1.0));
    let engine = only(&devices, sims.iter().map(|sim| Arc::new(sim.clone()) as _).collect());
    sims.iter().for_each(|sim| sim.lose("gone for good"));
    check(&engine);
}

/// Counted once, whoever else would have liked to end it.
#[test]
fn what_was_late_is_not_counted_again_by_a_cancellation() {
    let _alone = alone();
    let stuck = breakeven_tests::hooked::Hooked::sleeping(simulated("gpu:0", 1.0), Duration::from_millis(100));
    let engine = only(&[Device::Gpu(Some(0))], vec![Arc::new(stuck)]);
    let program = doubling(&engine, 4);
    let job = |i: usize| Job::program(&program, [numbers(i, 4)]).alone();
    let blocker = engine.submit(job(0)).unwrap();
    let late: Vec<_> = (0..10).map(|i| engine.submit(job(i).deadline(Duration::from_millis(5))).unwrap()).collect();
    let cancelled: Vec<_> = (0..10).map(|i| engine.submit(job(i)).unwrap()).collect();
    for ticket in &late {
        assert!(matches!(ticket.wait_timeout(Duration::from_secs(60)), Some(Err(Error::DeadlineExceeded { .. }))));
        assert!(!ticket.cancel());
    }
    for (number, ticket) in cancelled.into_iter().enumerate() {
        assert!(ticket.cancel() && !ticket.cancel());
        // Some take the answer with them before the queue has seen that it is there.
        if number % 2 == 0 {
            assert_eq!(answered(ticket), Err(Error::Cancelled));
        }
    }
    assert_eq!(answered(blocker).unwrap(), [0.0; 4]);
    engine.close();
    let stats = engine.queue_stats();
    assert_eq!((stats.submitted, stats.completed, stats.late, stats.cancelled), (21, 1, 10, 10), "{stats:?}");
}

/// A submission and the end of the queue at the same moment: it is refused, or it is answered.
#[test]
fn whoever_submits_while_the_queue_ends_is_answered() {
    let _alone = alone();
    let rounds = if cfg!(debug_assertions) { 200 } else { 1000 };
    for round in 0..rounds {
        let queue = QueueConfig { devices: vec![Device::Cpu], ..QueueConfig::default() };
        let config = Config { device: Device::Cpu, threads: Some(1), queue, ..Config::default() };
        let engine = Engine::with_backends(config, Vec::new()).unwrap();
        let program = doubling(&engine, 4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // As fast as they can, so that some are in the middle of it when the queue ends.
                scope.spawn(|| {
                    let mut tickets = Vec::new();
                    for i in 0.. {
                        match engine.submit(Job::program(&program, [numbers(i, 4)])) {
                            Ok(ticket) => tickets.push(ticket),
                            Err(Error::QueueClosed) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    for ticket in tickets {
                        match ticket.wait_timeout(Duration::from_secs(20)) {
                            Some(Ok(_) | Err(Error::Aborted)) => {}
                            other => panic!("{ticket:?}: {other:?}"),
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_micros(round % 7 * 30));
            if round % 2 == 0 { engine.close() } else { engine.abort() }
        });
    }
}
