//! Batches that are told to stop, on the real drivers of this machine: what waits is never sent, what runs is left to the
//! device, what is cut ends between two parts; and the device is as good as before.

use crate::backend::tests::{doubling, gpus, numbers, run, slow};
use crate::job::Command;
use crate::{Counters, Gpu, GpuConfig, PoolStats};
use breakeven_ir::Buffer;
use breakeven_ir::backend::{Made, Prepared, RunError, Source, Stop, Timings};
use crossbeam_channel::Sender;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn ready(gpu: &Gpu, (plan, lowered): (Arc<breakeven_ir::Plan>, crate::stage::Lowered)) -> Arc<dyn Prepared> {
    let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
    assert!(gpu.wait_ready(&*prepared, PATIENCE), "not compiled");
    prepared
}

fn run_until(prepared: &dyn Prepared, x: &[f32], stop: &Stop) -> Result<(Vec<f32>, Timings), RunError> {
    let mut y = vec![0.0f32; x.len()];
    let timings =
        prepared.run_until(&[bytemuck::cast_slice(x)], &mut [bytemuck::cast_slice_mut(&mut y)], false, stop)?;
    Ok((y, timings))
}

/// Waits until the device has nothing to do.
fn idle(gpu: &Gpu) -> (Counters, PoolStats) {
    let begun = Instant::now();
    while gpu.counters().pending > 0 {
        assert!(begun.elapsed() < PATIENCE, "it never ends");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Permits come back just before the answers do, and blocks that nobody waits for with the next command.
    let nothing = |reply: Sender<_>| Command::Do(Box::new(move |_| drop(reply.send(Ok(())))));
    gpu.session.ask(&gpu.session.current(), || 0, None, nothing).expect("answers");
    (gpu.counters(), gpu.pool_stats())
}

/// It computes what it should, and nobody holds anything against it.
fn is_well(gpu: &Gpu, fast: &dyn Prepared, before: &PoolStats) {
    let (counters, pool) = idle(gpu);
    assert_eq!((pool.in_use_bytes, pool.padding_bytes), (before.in_use_bytes, before.padding_bytes));
    assert_eq!((counters.timeouts, counters.losses, gpu.generation()), (0, 0, 0));
    assert_eq!(gpu.session.current().life.strikes(), 0);
    let (y, _) = run(fast, &numbers(64)).expect("runs");
    assert_eq!(y, numbers(64).iter().map(|v| v * 2.0).collect::<Vec<_>>());
}

#[test]
fn a_stop_that_nobody_tells_changes_nothing() {
    for gpu in gpus(&GpuConfig::default()) {
        let fast = ready(&gpu, doubling(64));
        let x = numbers(64);
        let (expected, _) = run(&*fast, &x).expect("runs");
        let (found, timings) = run_until(&*fast, &x, &Stop::new()).expect("runs");
        assert_eq!((found, timings.submits, timings.readbacks), (expected.clone(), 1, 1));
        let input = Buffer::from_vec(x);
        let (made, _) = fast.run_batch_until(&[Source::Shared(&input)], false, &Stop::new()).expect("runs");
        let Made::Host(buffer) = &made[0] else { panic!("asked for on the host") };
        assert_eq!(buffer.as_bytes(), bytemuck::cast_slice::<_, u8>(&expected));
    }
}

#[test]
fn what_was_told_before_does_not_reach_the_device() {
    for gpu in gpus(&GpuConfig::default()) {
        let fast = ready(&gpu, doubling(64));
        run(&*fast, &numbers(64)).expect("runs");
        let (before, pool) = idle(&gpu);
        let stop = Stop::new();
        stop.stop();
        let outcome = run_until(&*fast, &numbers(64), &stop).map(|_| ());
        assert_eq!(outcome, Err(RunError::Stopped));
        let (after, _) = idle(&gpu);
        assert_eq!((after.submits, after.uploads, after.pending), (before.submits, before.uploads, 0));
        is_well(&gpu, &*fast, &pool);
    }
}

#[test]
fn what_waits_behind_others_is_never_sent() {
    for gpu in gpus(&GpuConfig::default()) {
        let (fast, long) = (ready(&gpu, doubling(64)), ready(&gpu, slow(2048)));
        run(&*fast, &numbers(64)).expect("runs");
        let (before, pool) = idle(&gpu);
        let stop = Stop::new();
        let (sent, stopped) = std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let (_, timings) = run(&*long, &numbers(2048)).expect("runs");
                (timings.submits, Instant::now())
            });
            while gpu.counters().pending == 0 {
                std::thread::yield_now();
            }
            // The owner takes the first one, and waits for the device when the second one comes.
            std::thread::sleep(Duration::from_millis(20));
            let second = scope.spawn(|| (run_until(&*fast, &numbers(64), &stop).map(|_| ()), Instant::now()));
            while gpu.session.current().commands.is_empty() {
                assert!(!second.is_finished(), "there was nothing to wait for");
                std::thread::yield_now();
            }
            stop.stop();
            (first.join().expect("joins"), second.join().expect("joins"))
        });
        assert_eq!(stopped.0, Err(RunError::Stopped));
        assert!(stopped.1 < sent.1, "it waited for the others");
        let (after, _) = idle(&gpu);
        assert_eq!(after.submits - before.submits, u64::from(sent.0), "it was sent all the same");
        is_well(&gpu, &*fast, &pool);
    }
}

#[test]
fn what_runs_is_left_to_the_device() {
    for gpu in gpus(&GpuConfig::default()) {
        let (fast, long) = (ready(&gpu, doubling(64)), ready(&gpu, slow(2048)));
        run(&*fast, &numbers(64)).expect("runs");
        let (_, pool) = idle(&gpu);
        for stay in [false, true] {
            let (stop, input) = (Stop::new(), Buffer::from_vec(numbers(2048)));
            let stopped = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    stop.stop();
                });
                let outcome = long.run_batch_until(&[Source::Shared(&input)], stay, &stop);
                (outcome.map(|_| ()), gpu.counters().pending)
            });
            assert_eq!(stopped, (Err(RunError::Stopped), 1), "the device is still at it");
            is_well(&gpu, &*fast, &pool);
        }
    }
}

#[test]
fn work_that_is_cut_stops_between_its_parts() {
    let config = GpuConfig { dispatch_limit: Duration::from_millis(20), ..GpuConfig::default() };
    for gpu in gpus(&config) {
        // As much work as there are turns of its loop.
        let (plan, mut lowered) = slow(4096);
        lowered.stages[0].work *= 60_000;
        let (fast, long) = (ready(&gpu, doubling(64)), ready(&gpu, (plan, lowered)));
        run(&*fast, &numbers(64)).expect("runs");
        let x = numbers(4096);
        // The first run finds out how long it takes.
        let (expected, _) = run(&*long, &x).expect("runs");
        let begun = Instant::now();
        let (_, timings) = run(&*long, &x).expect("runs");
        let whole = begun.elapsed();
        assert!(timings.submits > 4, "{timings:?}");
        let (before, pool) = idle(&gpu);
        let stop = Stop::new();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(whole / 5);
                stop.stop();
            });
            run_until(&*long, &x, &stop).map(|_| ())
        });
        assert_eq!(outcome, Err(RunError::Stopped));
        let (after, pool_after) = idle(&gpu);
        assert!(after.submits - before.submits < u64::from(timings.submits), "{before:?} {after:?}");
        assert_eq!((pool_after.buffers, pool_after.reserved_bytes), (pool.buffers, pool.reserved_bytes));
        is_well(&gpu, &*fast, &pool);
        let (found, _) = run(&*long, &x).expect("runs");
        assert_eq!(found, expected);
    }
}
