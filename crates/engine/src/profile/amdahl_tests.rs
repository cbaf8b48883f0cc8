//! The bound is exact where it is known by hand, and never too small.

use super::super::fixture_tests::{batch, profile, thread};
use super::FrameKind::{Batch, DeviceWait, Idle, Phase, Stage, Thread, Wait};
use super::*;

fn bound(profile: &Profile) -> Amdahl {
    assert_eq!(profile.check(), Ok(()));
    amdahl(profile).0
}

#[test]
fn of_one_thread_it_is_amdahls() {
    // Shares that give round bounds, the 2 % and 9 % of one's own code among them.
    for (eligible, expected) in [(20, 1000.0 / 980.0), (90, 1000.0 / 910.0), (500, 2.0), (750, 4.0), (999, 1000.0)] {
        let rows = [("main", Thread, None, 1000 - eligible), ("batch", Batch, Some(0), eligible)];
        let mut profile = profile(vec![thread("main", 0, &rows)]);
        profile.batches = vec![batch(0, 0, 1, 0, eligible)];
        let found = bound(&profile);
        assert_eq!((found.eligible_ns, found.run_ns, found.remaining_ns), (eligible, 1000, 1000 - eligible));
        assert_eq!(found.bound, Some(expected));
    }
}

#[test]
fn nothing_eligible_gains_nothing_and_nothing_else_gains_all() {
    let of = |plan: u32, own: u64| {
        let rows = [("main", Thread, None, own), ("batch", Batch, Some(0), 100)];
        let mut profile = profile(vec![thread("main", 0, &rows)]);
        profile.batches = vec![batch(plan, 0, 1, own, own + 100)];
        bound(&profile).bound
    };
    assert_eq!([of(0, 0), of(0, 100), of(1, 100), of(1, 0)], [None, Some(2.0), Some(1.0), Some(1.0)]);
    assert_eq!(bound(&profile(vec![])).bound, Some(1.0));
}

#[test]
fn whole_batches_count_with_everything_below_them() {
    let rows = [
        ("main", Thread, None, 100),
        ("stage", Stage, Some(0), 100),
        ("batch", Batch, Some(1), 10),
        ("kernels", Phase, Some(2), 50),
        ("device", DeviceWait, Some(2), 140),
    ];
    let mut profile = profile(vec![thread("main", 0, &rows)]);
    profile.batches = vec![batch(0, 0, 2, 0, 200)];
    let (found, frames) = amdahl(&profile);
    assert_eq!((found.eligible_ns, found.bound), (200, Some(2.0)));
    assert_eq!(frames, [[0, 0, 200, 0, 0]]);
}

#[test]
fn of_several_threads_the_busiest_remains() {
    // main waits for the worker's 600 of batches; it has 300 of its own work, the worker 200.
    let main = [("main", Thread, None, 300), ("ticket", Idle, Some(0), 700)];
    let worker = [("worker", Thread, None, 200), ("idle", Idle, Some(0), 200), ("batch", Batch, Some(0), 600)];
    let mut profile = profile(vec![thread("main", 0, &main), thread("worker", 0, &worker)]);
    profile.batches = vec![batch(0, 1, 2, 400, 1000)];
    let found = bound(&profile);
    assert_eq!((found.run_ns, found.eligible_ns, found.remaining_ns), (300 + 800, 600, 300));
    assert_eq!(found.bound, Some(1000.0 / 300.0));
    // However it waits, and whatever for.
    for kind in [DeviceWait, Wait] {
        profile.threads[0].frames[1].kind = kind;
        assert_eq!(bound(&profile), found);
    }
}

#[test]
fn a_thread_that_waits_for_eligible_batches_of_another_bounds_nothing() {
    // Nine tenths of the run are batches of the worker, and main joins it.
    let main = [("main", Thread, None, 0), ("joins", Wait, Some(0), 1000)];
    let worker = [("worker", Thread, None, 100), ("batch", Batch, Some(0), 900)];
    let mut profile = profile(vec![thread("main", 0, &main), thread("worker", 0, &worker)]);
    profile.batches = vec![batch(0, 1, 1, 0, 900)];
    let found = bound(&profile);
    assert_eq!((found.run_ns, found.remaining_ns, found.bound), (1000, 100, Some(10.0)));
    // Blocking that is in no span looks like work, and counts as such.
    profile.threads[0].frames[1].kind = Stage;
    assert_eq!(bound(&profile).bound, Some(1.0));
}

#[test]
fn waiting_within_eligible_batches_goes_with_them_and_only_once() {
    let rows = |eligible_wait: u64| {
        let batch = [("batch", Batch, Some(0), 10), ("device", DeviceWait, Some(1), eligible_wait)];
        [[("main", Thread, None, 500)].as_slice(), &batch].concat()
    };
    let mut profile = profile(vec![thread("main", 0, &rows(490)), thread("other", 0, &rows(90))]);
    profile.batches = vec![batch(0, 0, 1, 0, 500), batch(1, 1, 1, 0, 100)];
    let found = bound(&profile);
    // The other thread's batch is not eligible: its waiting goes, its work stays.
    assert_eq!((found.eligible_ns, found.run_ns, found.remaining_ns), (500, 1000 + 510, 510));
    // Of a frame with both kinds of batches no more goes than is left of it.
    profile.threads[1].frames[1].count = 2;
    profile.batches[1].end_ns = 20;
    profile.batches.push(batch(0, 1, 1, 20, 100));
    assert_eq!(bound(&profile).remaining_ns, 500);
}

#[test]
fn batches_of_both_kinds_in_one_frame_are_told_apart() {
    let rows = [("main", Thread, None, 100), ("batch", Batch, Some(0), 300)];
    let mut profile = profile(vec![thread("main", 0, &rows)]);
    profile.threads[0].frames[1].count = 2;
    profile.batches = vec![batch(0, 0, 1, 0, 100), batch(1, 0, 1, 100, 300)];
    let found = bound(&profile);
    assert_eq!((found.eligible_ns, found.assumed_ns, found.remaining_ns), (100, 0, 300));
    // Records that were not kept count as eligible, and it is said how much that is.
    profile.batches.remove(0);
    let found = bound(&profile);
    assert_eq!((found.eligible_ns, found.assumed_ns), (100, 100));
    profile.batches.clear();
    let found = bound(&profile);
    assert_eq!((found.eligible_ns, found.assumed_ns, found.bound), (300, 300, Some(4.0)));
}

#[test]
fn an_eligible_batch_in_one_that_is_not_is_its_own() {
    let rows = [("main", Thread, None, 100), ("outer", Batch, Some(0), 200), ("inner", Batch, Some(1), 100)];
    let mut profile = profile(vec![thread("main", 0, &rows)]);
    profile.batches = vec![batch(1, 0, 1, 0, 300), batch(0, 0, 2, 50, 150)];
    assert_eq!(bound(&profile).eligible_ns, 100);
    profile.batches[0].plan = 0;
    assert_eq!(bound(&profile).eligible_ns, 300, "counted once");
}
