//! Guards in every order, leaked, on threads that come and go, and futures.

use crate::Engine;
use crate::profile::{FrameKind, Profile, ThreadRecord, in_span};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn frames(thread: &ThreadRecord) -> Vec<(String, FrameKind, u64)> {
    thread.frames[1..].iter().map(|frame| (frame.name.clone(), frame.kind, frame.count)).collect()
}

fn assert_whole(profile: &Profile) {
    for thread in &profile.threads {
        let sum: u64 = thread.frames.iter().map(|frame| frame.self_ns).sum();
        assert_eq!(sum, thread.end_ns - thread.begin_ns, "{}", thread.name);
        assert!(thread.end_ns <= profile.wall_ns);
    }
}

#[test]
fn without_a_profile_nothing_happens_and_no_name_is_computed() {
    let _span = span!({
        panic!("nobody asked for it");
        #[allow(unreachable_code, reason = "the name of a span that is not recorded")]
        ""
    });
}

#[test]
fn guards_in_any_order_leaked_or_unwound() {
    let recorder = Engine::new().unwrap().profile().unwrap();
    let (first, second) = (span!("first"), span!("second"));
    drop(first);
    drop(second);
    std::mem::forget(span!("leaked"));
    let unwound = std::panic::catch_unwind(|| {
        let _span = span!(wait "unwound");
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(unwound.is_err());
    let open = span!(String::from("open"));
    let profile = recorder.finish();
    drop(open);
    assert_whole(&profile);
    let names: Vec<_> = frames(&profile.threads[0]).into_iter().map(|(name, kind, _)| (name, kind)).collect();
    let (stage, wait) = (FrameKind::Stage, FrameKind::Wait);
    let expected = [("first", stage), ("second", stage), ("leaked", stage), ("unwound", wait), ("open", stage)];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    // What comes later goes nowhere.
    let _late = span!("late");
}

#[test]
fn the_same_text_is_the_same_frame() {
    let recorder = Engine::new().unwrap().profile().unwrap();
    for number in 0..6 {
        match number % 3 {
            0 => drop(span!("same")),
            1 => drop(span!(String::from("same"))),
            _ => drop(span!(&*String::from("same").leak())),
        }
    }
    assert_eq!(frames(&recorder.finish().threads[0]), [("same".to_owned(), FrameKind::Stage, 6)]);
}

#[test]
fn a_task_is_a_span_while_it_is_polled() {
    let recorder = Engine::new().unwrap().profile().unwrap();
    let mut polls = 0;
    let task = std::future::poll_fn(|_| {
        polls += 1;
        let _inner = span!("inner");
        if polls < 3 { Poll::Pending } else { Poll::Ready(7) }
    });
    let mut task = pin!(in_span("task", task));
    let mut context = Context::from_waker(Waker::noop());
    while task.as_mut().poll(&mut context).is_pending() {
        drop(span!("between"));
    }
    let profile = recorder.finish();
    let expected = [("task", 3), ("inner", 3), ("between", 2)];
    let expected = expected.map(|(name, count)| (name.to_owned(), FrameKind::Stage, count));
    assert_eq!(frames(&profile.threads[0]), expected);
    assert_eq!(profile.threads[0].frames[2].parent, Some(1));
}
