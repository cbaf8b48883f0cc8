//! Who records what: one profile an engine, several engines on one thread, threads that come, stay and go.

use crate::profile::{FrameKind, Profile};
use crate::{DType, Engine, Error, Job, Tensor, View, span};
use std::sync::mpsc;

fn sums_fit(profile: &Profile) {
    for thread in &profile.threads {
        let sum: u64 = thread.frames.iter().map(|frame| frame.self_ns).sum();
        assert_eq!(sum, thread.end_ns - thread.begin_ns, "{}", thread.name);
    }
    for batch in &profile.batches {
        let thread = &profile.threads[batch.thread as usize];
        let frame = &thread.frames[batch.frame as usize];
        assert_eq!((frame.kind, &frame.name), (FrameKind::Batch, &profile.plans[batch.plan as usize].title));
    }
    for thread in &profile.threads {
        for span in &thread.spans {
            let Some(batch) = span.batch else { continue };
            let batch = &profile.batches[batch as usize];
            assert_eq!((batch.frame, batch.begin_ns, batch.end_ns), (span.frame, span.begin_ns, span.end_ns));
        }
    }
}

fn twice(engine: &Engine, value: f32) {
    let x = Tensor::from_slice(&[value], [1]).unwrap();
    assert_eq!(engine.run(&[&(&x * 2.0).unwrap()]).unwrap()[0].as_slice::<f32>().unwrap(), [2.0 * value]);
}

#[test]
fn an_engine_has_one_profile_at_a_time() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    assert_eq!(engine.clone().profile().err(), Some(Error::Profiled));
    drop(recorder);
    engine.profile().unwrap().finish();
    assert_eq!(engine.profile().unwrap().finish().threads.len(), 1);
}

#[test]
fn batches_belong_to_their_engine_and_spans_to_all() {
    let (one, other) = (Engine::new().unwrap(), Engine::new().unwrap());
    let (first, second) = (one.profile().unwrap(), other.profile().unwrap());
    {
        let _stage = span!("stage");
        twice(&one, 1.0);
        twice(&one, 2.0);
        twice(&other, 3.0);
    }
    let (first, second) = (first.finish(), second.finish());
    assert_eq!((first.batches.len(), second.batches.len()), (2, 1));
    for profile in [first, second] {
        sums_fit(&profile);
        assert_eq!(profile.threads[0].frames[1].name, "stage");
        assert_eq!(profile.threads[0].frames[2].parent, Some(1), "the batch lies below the stage");
    }
}

#[test]
fn threads_join_leave_and_are_there_at_the_end() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    let handle = recorder.handle();
    let (say, hear) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let leaver = handle.clone();
        scope.spawn(move || {
            let joined = leaver.join("leaver");
            let again = leaver.join("ignored");
            drop(again);
            drop(span!("inside"));
            drop(joined);
            drop(span!("outside"));
        });
        let stayer = handle.clone();
        scope.spawn(move || {
            let _joined = stayer.join("stayer");
            let _stage = span!("staying");
            say.send(()).unwrap();
            wait.recv().unwrap();
            drop(span!("after the end"));
        });
        hear.recv().unwrap();
        // The other one may still be on its way.
        while format!("{recorder:?}") != "Recorder(3 threads)" {
            std::thread::yield_now();
        }
        let profile = recorder.finish();
        go.send(()).unwrap();
        sums_fit(&profile);
        let mut names: Vec<_> = profile.threads.iter().skip(1).map(|t| (t.name.as_str(), t.frames.len())).collect();
        names.sort_unstable();
        assert!(names[0].0 == "leaver" && names[0].1 <= 2, "{names:?}");
        assert_eq!(names[1], ("stayer", 2));
        let stayer = profile.threads.iter().find(|thread| thread.name == "stayer").unwrap();
        assert_eq!(stayer.end_ns, profile.wall_ns, "what is open ends with the profile");
    });
    // Nobody comes after the end.
    let _late = handle.join("late");
    drop(span!("late"));
    twice(&engine, 1.0);
}

#[test]
fn every_way_to_run_is_a_batch() {
    let engine = Engine::new().unwrap();
    let x = Tensor::input("x", DType::F32, [3]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let values = [1.0f32, 2.0, 3.0];
    let view = || View::from(values.as_slice());
    let recorder = engine.profile().unwrap();
    let y = Tensor::from_slice(&values, [3]).unwrap().sqrt().unwrap();
    engine.run(&[&y]).unwrap();
    engine.run_with(&[&y], &Default::default()).unwrap();
    engine.run_resident(&[&y]).unwrap();
    engine.run_unfused(&[&y]).unwrap();
    program.run(&[view()]).unwrap();
    program.run_with(&[view()], &Default::default()).unwrap();
    let mut out = [0.0f32; 3];
    program.run_into(&[view()], &mut [out.as_mut_slice().into()]).unwrap();
    let mut many = program.run_many(&[[view()], [view()]]).unwrap();
    program.run_many_into(&[[view()], [view()], [view()]], &mut many).unwrap();
    program.run_many_with(&[[view()]], &mut many, &Default::default()).unwrap();
    // What is refused is no batch.
    program.run(&[]).unwrap_err();
    let profile = recorder.finish();
    sums_fit(&profile);
    let tasks: Vec<u64> = profile.batches.iter().map(|batch| batch.tasks).collect();
    assert_eq!(tasks, [1, 1, 1, 1, 1, 1, 1, 2, 3, 1]);
    for batch in &profile.batches {
        assert_eq!(batch.decision.device, "cpu");
        assert!(!batch.decision.reason.is_empty() && batch.decision.actual_ns > 0);
        assert!(batch.phases.contains_key(&super::super::Phase::Kernels), "{batch:?}");
        let parts: u64 = batch.phases.values().sum();
        assert!(parts <= batch.end_ns - batch.begin_ns, "{batch:?}");
    }
    let titles: Vec<&str> = profile.plans.iter().map(|plan| plan.title.as_str()).collect();
    assert_eq!(titles, ["sqrt f32[3]", "sqrt f32[3] #2", "exp f32[3]"]);
    assert!(profile.plans.iter().all(|plan| plan.gpu_eligible == cfg!(feature = "gpu") && plan.kernels == 1));
}

#[test]
fn jobs_are_batches_of_their_workers() {
    let engine = Engine::new().unwrap();
    let x = Tensor::input("x", DType::F32, [3]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let job = || Job::program(&program, [Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap()]);
    engine.submit(job()).unwrap().wait().unwrap();
    let recorder = engine.profile().unwrap();
    // Workers that sleep are woken for it, and join when they are.
    while format!("{recorder:?}") == "Recorder(1 threads)" {
        std::thread::yield_now();
    }
    let tickets: Vec<_> = (0..50).map(|_| engine.submit(job()).unwrap()).collect();
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    engine.close();
    let profile = recorder.finish();
    sums_fit(&profile);
    assert_eq!(profile.batches.iter().map(|batch| batch.tasks).sum::<u64>(), 50);
    let worker = profile.threads.iter().position(|thread| thread.name == "breakeven queue cpu").unwrap();
    for batch in &profile.batches {
        assert_eq!(batch.thread as usize, worker);
        assert!(batch.phases.contains_key(&super::super::Phase::Queue), "{batch:?}");
        assert_eq!(batch.decision.reason, "cpu took it from the queue: nobody is expected to have it sooner");
    }
    let idle = |thread: &crate::profile::ThreadRecord| thread.frames.iter().any(|f| f.kind == FrameKind::Idle);
    assert!(idle(&profile.threads[worker]), "a worker without jobs waits");
}

#[test]
fn a_profile_outlives_its_engine_and_may_end_elsewhere() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    twice(&engine, 1.0);
    drop(engine);
    let profile = std::thread::spawn(move || recorder.finish()).join().unwrap();
    assert_eq!(profile.batches.len(), 1);
    sums_fit(&profile);
    drop(span!("late"));
}
