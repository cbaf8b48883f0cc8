//! Who is served when: producers take turns, urgent jobs go first, and nobody waits for ever.

use crate::{alone, doubling, engine, numbers};
use breakeven::{Device, Engine, Job, Priority, Program, QueueConfig};
use breakeven_tests::hooked::{Gate, Hooked, simulated};
use breakeven_tests::watch::Finish;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An engine whose only worker is stuck at a gate, so that all jobs are there before the first of them is chosen.
fn stuck(queue: QueueConfig) -> (Engine, Program, Gate) {
    let gate = Gate::default();
    let device = Hooked::gated(simulated("gpu:0", 1.0), &gate);
    let engine = engine(QueueConfig { devices: vec![Device::Gpu(Some(0))], ..queue }, vec![Arc::new(device)]);
    let program = doubling(&engine, 4);
    // Nobody waits for this one.
    drop(engine.submit(Job::program(&program, [numbers(0, 4)]).alone()).unwrap());
    while engine.queue_stats().queued > 0 {
        std::thread::yield_now();
    }
    (engine, program, gate)
}

fn job(program: &Program, i: usize) -> Job {
    Job::program(program, [numbers(i, 4)])
}

#[test]
fn a_flood_does_not_keep_another_producer_waiting() {
    let _alone = alone();
    for gather in [1, 256] {
        let (engine, program, gate) = stuck(QueueConfig { capacity: 1 << 14, gather, ..QueueConfig::default() });
        let finish = Finish::default();
        let flood: Vec<_> =
            (0..10_000).map(|i| finish.watch(engine.submit(job(&program, i).producer(1)).unwrap())).collect();
        let few: Vec<_> =
            (0..100).map(|i| finish.watch(engine.submit(job(&program, i).producer(2)).unwrap())).collect();
        gate.open();
        let last = few.into_iter().map(|watched| watched.wait().0).max().unwrap();
        assert!(last <= 3 * 100, "the last of 100 jobs was answered as number {last}");
        flood.into_iter().for_each(|watched| drop(watched.wait().2.unwrap()));
    }
}

#[test]
fn urgent_jobs_overtake() {
    let _alone = alone();
    // More than there are: nothing is too old to be overtaken.
    let queue = QueueConfig { ageing: 10_000, gather: 1, ..QueueConfig::default() };
    let (engine, program, gate) = stuck(queue);
    let finish = Finish::default();
    let submit = |priority, i| finish.watch(engine.submit(job(&program, i).priority(priority)).unwrap());
    let bulk: Vec<_> = (0..300).map(|i| submit(Priority::Bulk, i)).collect();
    let normal: Vec<_> = (0..100).map(|i| submit(Priority::Normal, i)).collect();
    let urgent: Vec<_> = (0..100).map(|i| submit(Priority::Interactive, i)).collect();
    gate.open();
    let last = |jobs: Vec<breakeven_tests::watch::Watched>| jobs.into_iter().map(|job| job.wait().0).max().unwrap();
    let (urgent, normal, bulk) = (last(urgent), last(normal), last(bulk));
    assert_eq!((urgent, normal, bulk), (99, 199, 499));
}

#[test]
fn bulk_does_not_starve() {
    let _alone = alone();
    let (engine, program, gate) = stuck(QueueConfig { capacity: 256, gather: 1, ..QueueConfig::default() });
    let (finish, running) = (Finish::default(), AtomicBool::new(true));
    std::thread::scope(|scope| {
        for producer in 0..2 {
            let (engine, program, finish, running) = (&engine, &program, &finish, &running);
            scope.spawn(move || {
                let mut i = 0;
                while running.load(Relaxed) {
                    // The queue is full of them all the time; whoever submits waits for room.
                    let urgent = job(program, i).priority(Priority::Interactive).producer(producer);
                    drop(finish.watch(engine.submit(urgent).unwrap()));
                    i += 1;
                }
            });
        }
        gate.open();
        let bulk: Vec<_> = (0..50)
            .map(|i| {
                let before = finish.answered();
                let job = job(&program, i).priority(Priority::Bulk).producer(9);
                (before, finish.watch(engine.submit(job).unwrap()))
            })
            .collect();
        let waits: Vec<u64> = bulk.into_iter().map(|(before, watched)| watched.wait().0 - before).collect();
        running.store(false, Relaxed);
        // Those in the queue, those that may overtake it (64 for each of two urgencies), and the bulk before it.
        let most = waits.iter().max().unwrap();
        assert!(*most <= 2 * (256 + 128 + 50), "a bulk job was overtaken by {most}: {waits:?}");
    });
}
