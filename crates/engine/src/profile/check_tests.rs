//! Every way in which a profile can fail to add up is refused.

use super::super::fixture_tests::{queued, rerun};
use super::*;

#[test]
fn profiles_that_add_up_pass() {
    for profile in [Profile::example(), queued(), rerun()] {
        assert_eq!(profile.check(), Ok(()));
    }
}

/// The message of a profile that was damaged.
fn refused(damage: impl Fn(&mut Profile)) -> String {
    let mut profile = Profile::example();
    damage(&mut profile);
    profile.check().unwrap_err().to_string()
}

#[test]
fn shares_over_100_percent_are_refused() {
    let error = refused(|profile| profile.threads[0].frames[3].self_ns += 20_000_000);
    assert_eq!(
        error,
        "the self times of thread `main` add up to 120000000 ns, which is 120.0 % of its 100000000 ns; they must add up to \
         exactly 100 %"
    );
    let error = refused(|profile| profile.threads[0].frames[3].self_ns -= 1);
    assert!(error.contains("99999999 ns"), "{error}");
    let error = refused(|profile| _ = profile.batches[0].phases.insert(Phase::Upload, 1_000_000));
    assert_eq!(error, "batch 0: its parts add up to more than 100 % of it");
    let error = refused(|profile| profile.threads[0].frames[3].self_ns = u64::MAX);
    assert!(error.contains("must add up"), "no overflow: {error}");
}

#[test]
fn totals_must_be_those_of_their_parts() {
    // The self times still add up: one frame has what another one lost.
    let error = refused(|profile| {
        profile.threads[0].frames[1].self_ns += 5;
        profile.threads[0].frames[3].self_ns -= 5;
    });
    let expected = "frame 1 (`parse`) of thread `main` has a total of 10000000 ns, but its self time and the frames below it \
                    take 10000005 ns";
    assert_eq!(error, expected);
}

#[test]
fn trees_spans_and_batches_must_be_whole() {
    type Damage = fn(&mut Profile);
    let damages: [(Damage, &str); 19] = [
        (|p| p.threads[0].frames.clear(), "the frame of the thread itself is missing"),
        (|p| p.threads[0].frames[0].kind = FrameKind::Stage, "the first frame must be the thread itself"),
        (|p| p.threads[0].frames[2].parent = Some(2), "its caller must come before it"),
        (|p| p.threads[0].frames[2].parent = None, "only the first frame has no caller"),
        (|p| p.threads[0].frames[2].kind = FrameKind::Thread, "only the first frame is a thread"),
        (|p| p.threads[0].end_ns += 1, "which is not within"),
        (|p| p.threads[0].begin_ns = u64::MAX, "which is not within"),
        (|p| p.threads[0].spans[0].frame = 99, "its frame is not among those of its thread"),
        (|p| p.threads[0].spans[0].end_ns = u64::MAX, "it does not lie within its thread"),
        (|p| p.threads[0].spans[0].batch = Some(9), "its batch is not among the batches"),
        (|p| p.threads[0].spans[0].begin_ns -= 1, "take more than the frame's total"),
        (
            |p| p.threads[0].spans[0] = Span { begin_ns: 400_000, end_ns: 2_000_000, ..p.threads[0].spans[0] },
            "it ends after",
        ),
        (|p| p.batches[0].plan = 9, "its plan is not among the plans"),
        (|p| p.batches[0].thread = 9, "its thread is not among the threads"),
        (|p| p.batches[0].frame = 99, "its frame is not among those of its thread"),
        (|p| p.batches[0].frame = 0, "its frame is not a batch's"),
        (|p| p.batches[0].end_ns = u64::MAX, "it does not lie within its thread"),
        (|p| p.batches[0].decision.actual_ns = 2_100_000, "longer than it lasted"),
        (|p| p.reruns = vec![super::super::Rerun { plan: 7, ..rerun().reruns[0].clone() }], "rerun 0 is of plan 7"),
    ];
    for (number, (damage, message)) in damages.into_iter().enumerate() {
        let error = refused(damage);
        assert!(error.contains(message), "{number}: {error}");
    }
}

#[test]
fn what_a_simulated_device_tells_is_no_time_that_passed() {
    let mut profile = Profile::example();
    profile.batches[2].decision.actual_ns *= 1000;
    assert!(profile.check().is_err());
    profile.batches[2].decision.simulated = true;
    assert_eq!(profile.check(), Ok(()));
}
