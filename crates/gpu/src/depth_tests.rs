//! Several callers at one device: what they get is right, they copy while it works, and nothing is left behind.

use super::*;
use crate::backend::tests::{doubling, gpus, numbers, run};
use crate::{Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Made, Prepared, Source};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn it_is_one_more_than_the_driver_bears_if_that_fits() {
    let some = || Needs { in_flight: 1, batch_bytes: 1 << 20, memory_bytes: 1 << 30, max_pending: 16 };
    assert_eq!(depth(&some()), 2);
    assert_eq!(depth(&Needs { in_flight: 0, ..some() }), 2);
    assert_eq!(depth(&Needs { in_flight: 2, ..some() }), 3);
    assert_eq!(depth(&Needs { in_flight: 9, batch_bytes: 0, ..some() }), 4);
    assert_eq!(depth(&Needs { in_flight: 2, batch_bytes: 500 << 20, ..some() }), 2);
    assert_eq!(depth(&Needs { batch_bytes: 600 << 20, ..some() }), 1);
    assert_eq!(depth(&Needs { batch_bytes: 2 << 30, ..some() }), 1);
    assert_eq!([1, 0].map(|max_pending| depth(&Needs { max_pending, ..some() })), [1, 1]);
}

#[test]
fn large_batches_count_until_they_are_long_ago() {
    let config = GpuConfig { pool_bytes: 1 << 20, ..GpuConfig::default() };
    for gpu in gpus(&config) {
        assert_eq!(gpu.depth(), 2, "{:?}", gpu.quirks());
        for (elems, expected) in [(100, 2), (200_000, 1)] {
            let (plan, lowered) = doubling(elems);
            let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
            run(&*prepared, &numbers(elems)).expect("runs");
            assert_eq!(gpu.depth(), expected, "{elems}");
        }
        let (plan, lowered) = doubling(100);
        let small = gpu.plan_lowered(&plan, lowered).expect("prepares");
        (0..40).for_each(|_| drop(run(&*small, &numbers(100)).expect("runs")));
        assert_eq!(gpu.depth(), 2);
    }
}

/// Bytes that say that they are asked for, and come when they may.
struct Held {
    data: Vec<f32>,
    asked: crossbeam_channel::Sender<()>,
    go_on: crossbeam_channel::Receiver<()>,
}

impl HostBytes for Held {
    fn as_bytes(&self) -> &[u8] {
        let _ = self.asked.send(());
        // If the device waited for this caller, nobody would ever say so: the test fails instead of hanging.
        let _ = self.go_on.recv_timeout(Duration::from_secs(30));
        bytemuck::cast_slice(&self.data)
    }
}

fn doubled(made: &[Made]) -> Vec<f32> {
    let [Made::Host(buffer)] = made else { panic!("asked for on the host") };
    bytemuck::pod_collect_to_vec(buffer.as_bytes())
}

#[test]
fn the_owner_works_while_a_caller_copies() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(1000);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        run(&*prepared, &numbers(1000)).expect("runs");
        let ((asked, is_asked), (say, go_on)) = (crossbeam_channel::bounded(8), crossbeam_channel::bounded(8));
        let held = Buffer::with_len(Arc::new(Held { data: numbers(1000), asked, go_on }), 4000);
        std::thread::scope(|scope| {
            let copying = scope.spawn(|| prepared.run_batch(&[Source::Shared(&held)], false).expect("runs"));
            is_asked.recv_timeout(Duration::from_secs(30)).expect("copies");
            assert_eq!(gpu.counters().pending, 1);
            // It is in the middle of its copy, and stays there until these are done.
            let others: Vec<Vec<f32>> = (0..3).map(|_| run(&*prepared, &numbers(1000)).expect("runs").0).collect();
            assert!(!copying.is_finished(), "{}", gpu.info().name);
            say.send(()).expect("listens");
            let (made, _) = copying.join().expect("joins");
            assert!(others.iter().all(|other| *other == doubled(&made) && other[9] == 4.0));
        });
    }
}

/// Batches from as many threads, each with inputs of its own.
fn rounds(gpu: &Gpu, prepared: &dyn Prepared, threads: usize, rounds: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for round in 0..rounds {
                    let x: Vec<f32> = (0..3000).map(|i| (i * (round + 1) + thread) as f32).collect();
                    let expected: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
                    let (made, timings) = match round % 2 {
                        0 => prepared.run_batch(&[Source::Bytes(bytemuck::cast_slice(&x))], false).expect("runs"),
                        _ => prepared.run_batch(&[Source::Shared(&Buffer::from_vec(x))], false).expect("runs"),
                    };
                    assert_eq!(doubled(&made), expected, "{}", gpu.info().name);
                    assert_eq!((timings.submits, timings.uploads, timings.readbacks), (1, 1, 1));
                }
            });
        }
    });
}

#[test]
fn callers_at_once_get_what_is_theirs_and_leave_the_pool_as_it_was() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(3000);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        run(&*prepared, &numbers(3000)).expect("runs");
        let before = gpu.pool_stats();
        for threads in [gpu.depth(), 3] {
            rounds(&gpu, &*prepared, threads, 30);
            // What readers let go is taken back by the next command.
            run(&*prepared, &numbers(3000)).expect("runs");
            let after = gpu.pool_stats();
            assert_eq!((after.in_use_bytes, after.padding_bytes), (before.in_use_bytes, before.padding_bytes));
            // Each caller has at most four blocks at once, and one of each kind may be on its way back.
            assert!(after.buffers <= before.buffers + 4 * threads as u64, "{after:?} {before:?}");
            assert_eq!((gpu.counters().pending, gpu.generation()), (0, 0));
        }
    }
}
