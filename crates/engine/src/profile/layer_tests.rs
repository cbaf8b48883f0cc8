//! Spans of `tracing`: in the tree with guards and batches, in any order, on threads that nobody named.

use crate::profile::Profile;
use crate::{Engine, Tensor, span};
use tracing_subscriber::layer::SubscriberExt;

fn paths(profile: &Profile, thread: usize) -> Vec<(String, u64)> {
    let frames = &profile.threads[thread].frames;
    let path = |mut at: usize| {
        let mut names = vec![frames[at].name.clone()];
        while let Some(parent) = frames[at].parent.filter(|parent| *parent > 0) {
            at = parent as usize;
            names.insert(0, frames[at].name.clone());
        }
        names.join("/")
    };
    (1..frames.len()).map(|at| (path(at), frames[at].count)).collect()
}

#[test]
fn spans_of_tracing_guards_and_batches_are_one_tree() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    let subscriber = tracing_subscriber::registry().with(recorder.layer());
    tracing::subscriber::with_default(subscriber, || {
        let _outer = tracing::info_span!("outer").entered();
        let _guard = span!("guard");
        let _inner = tracing::info_span!("inner").entered();
        engine.run(&[&Tensor::from_slice(&[1.0f32], [1]).unwrap().exp().unwrap()]).unwrap();
    });
    let profile = recorder.finish();
    let rows = paths(&profile, 0);
    let expected = ["outer", "outer/guard", "outer/guard/inner", "outer/guard/inner/exp f32[1]"];
    assert_eq!(rows[..4].iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), expected);
}

#[test]
fn spans_are_exited_in_any_order_and_entered_anywhere() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    let subscriber = tracing_subscriber::registry().with(recorder.layer());
    let dispatch = tracing::Dispatch::new(subscriber);
    tracing::dispatcher::with_default(&dispatch, || {
        let (a, b) = (tracing::info_span!("a"), tracing::info_span!("b"));
        let entered = a.enter();
        let inside = b.enter();
        drop(entered);
        drop(span!("in b"));
        drop(inside);
        // One span on two threads, of which one joins by itself.
        let (span, dispatch) = (a.clone(), dispatch.clone());
        let _here = a.enter();
        let other = std::thread::Builder::new().name("other".into());
        let run = move || tracing::dispatcher::with_default(&dispatch, || drop(span.enter()));
        other.spawn(run).unwrap().join().unwrap();
    });
    let profile = recorder.finish();
    let names = |thread| paths(&profile, thread).into_iter().collect::<Vec<_>>();
    let expected = [("a", 2), ("a/b", 1), ("b", 0), ("b/in b", 1)];
    assert_eq!(names(0), expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!((profile.threads[1].name.as_str(), names(1)), ("other", vec![("a".to_owned(), 1)]));
    for thread in &profile.threads {
        let sum: u64 = thread.frames.iter().map(|frame| frame.self_ns).sum();
        assert_eq!(sum, thread.end_ns - thread.begin_ns);
    }
    // After the end the layer is silent.
    tracing::dispatcher::with_default(&dispatch, || drop(tracing::info_span!("late").entered()));
}
