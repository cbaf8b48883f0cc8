//! Profiles of whole programs: stages whose times are known, threads, queues, devices that are real, simulated and failing.

use breakeven::profile::{BatchRecord, FrameKind, Phase, Profile, ThreadRecord};
use breakeven::{
    Api, Config, DType, Decision, Device, Engine, Job, QueueConfig, RunOptions, SimBackend, SimProfile, Tensor, View,
    driver_hint, span,
};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::{Faulty, Script, every_noticed_fault, gpu};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Self times of every thread add up to its time, totals are self times with those below, batches and spans fit together.
#[track_caller]
fn assert_adds_up(profile: &Profile) {
    assert_eq!(profile.check(), Ok(()));
    for thread in &profile.threads {
        let sum: u64 = thread.frames.iter().map(|frame| frame.self_ns).sum();
        assert_eq!(sum, thread.end_ns - thread.begin_ns, "{}", thread.name);
        assert!(thread.end_ns <= profile.wall_ns);
        for (at, frame) in thread.frames.iter().enumerate() {
            let below: u64 = thread.frames.iter().filter(|f| f.parent == Some(at as u32)).map(|f| f.total_ns).sum();
            assert_eq!(frame.total_ns, frame.self_ns + below, "{}", frame.name);
        }
    }
    for batch in &profile.batches {
        let frame = &profile.threads[batch.thread as usize].frames[batch.frame as usize];
        assert_eq!((frame.kind, &frame.name), (FrameKind::Batch, &profile.plans[batch.plan as usize].title));
        assert!(!batch.decision.reason.is_empty());
    }
}

fn self_ns(thread: &ThreadRecord, name: &str) -> u64 {
    thread.frames.iter().filter(|frame| frame.name == name).map(|frame| frame.self_ns).sum()
}

/// What differs, if two times do by more than 2 %.
fn differs(what: &str, found_ns: u64, own_ns: u64) -> Result<(), String> {
    match found_ns as f64 / own_ns as f64 {
        0.98..=1.02 => Ok(()),
        _ => Err(format!("{what}: the profile has {found_ns} ns, the program measured {own_ns} ns")),
    }
}

/// What depends on who gets to run when: a busy machine gets more chances, not more room.
#[track_caller]
fn assert_once(mut run: impl FnMut() -> Result<(), String>) {
    let tries: Result<Vec<String>, ()> = (0..6).map(|_| run().err().ok_or(())).collect();
    assert!(tries.is_err(), "{tries:?}");
}

fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A stage that measures itself, too.
fn timed(total_ns: &mut u64, stage: impl FnOnce()) {
    let begun = Instant::now();
    stage();
    *total_ns += begun.elapsed().as_nanos() as u64;
}

#[derive(Default)]
struct Own {
    parse_ns: u64,
    inline_ns: u64,
    fold_ns: u64,
    disk_ns: u64,
}

/// Stages in fixed proportions: fold lies inside of inline.
fn made_up_program(own: &mut Own) {
    for _ in 0..4 {
        timed(&mut own.parse_ns, || {
            let _stage = span!("parse");
            spin(Duration::from_millis(5));
        });
        let fold_ns = &mut own.fold_ns;
        timed(&mut own.inline_ns, || {
            let _stage = span!("inline");
            spin(Duration::from_millis(10));
            timed(fold_ns, || {
                let _stage = span!("fold");
                spin(Duration::from_millis(20));
            });
        });
        timed(&mut own.disk_ns, || {
            let _stage = span!(wait "disk");
            std::thread::sleep(Duration::from_millis(10));
        });
    }
}

fn known(thread: &ThreadRecord, own: &Own) -> Result<(), String> {
    let disk = thread.frames.iter().find(|frame| frame.name == "disk").unwrap();
    assert_eq!((disk.kind, disk.count), (FrameKind::Wait, 4));
    differs("parse", self_ns(thread, "parse"), own.parse_ns)?;
    differs("inline", self_ns(thread, "inline"), own.inline_ns - own.fold_ns)?;
    differs("fold", self_ns(thread, "fold"), own.fold_ns)?;
    differs("disk", self_ns(thread, "disk"), own.disk_ns)
}

#[test]
fn a_made_up_program_has_the_times_that_it_measured_itself() {
    assert_once(|| {
        let engine = Engine::new().unwrap();
        let recorder = engine.profile().unwrap().title("made up");
        let handle = recorder.handle();
        let mut own = Own::default();
        let other = std::thread::spawn(move || {
            let _joined = handle.join("other");
            let mut own = Own::default();
            made_up_program(&mut own);
            own
        });
        made_up_program(&mut own);
        let mut waited_ns = 0;
        let mut there = None;
        timed(&mut waited_ns, || {
            let _wait = span!(wait "the other thread");
            there = Some(other.join().unwrap());
        });
        let profile = recorder.finish();
        assert_adds_up(&profile);
        assert_eq!((profile.title.as_str(), profile.threads[1].name.as_str()), ("made up", "other"));
        known(&profile.threads[0], &own)?;
        known(&profile.threads[1], &there.unwrap())?;
        // A hundred per cent: what no stage has is the thread's own.
        let thread = &profile.threads[0];
        let staged = own.parse_ns + own.inline_ns + own.disk_ns + waited_ns;
        let own_ns = thread.end_ns - thread.begin_ns - staged.min(thread.end_ns - thread.begin_ns);
        let is_close = thread.frames[0].self_ns.abs_diff(own_ns) < profile.wall_ns / 50;
        if is_close { Ok(()) } else { Err(format!("{:?}, not {own_ns} ns", thread.frames[0])) }
    });
}

#[test]
fn a_batch_takes_what_its_caller_waited_for() {
    let engine = Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap();
    let x = Tensor::from_vec(vec![0.5f32; 4 << 20], [4 << 20]).unwrap();
    let y = x.tanh().unwrap().exp().unwrap();
    engine.run(&[&y]).unwrap();
    let recorder = engine.profile().unwrap();
    let mut own_ns = 0;
    for _ in 0..5 {
        timed(&mut own_ns, || drop(engine.run(&[&y]).unwrap()));
    }
    let profile = recorder.finish();
    assert_adds_up(&profile);
    let (mut batches_ns, mut phases_ns) = (0, 0);
    for batch in &profile.batches {
        batches_ns += batch.end_ns - batch.begin_ns;
        phases_ns += batch.phases.values().sum::<u64>();
        assert_eq!(batch.phases.keys().copied().collect::<Vec<_>>(), [Phase::Record, Phase::Plan, Phase::Kernels]);
        assert_eq!(batch.decision.reason, "cpu was asked for");
    }
    assert_eq!(profile.batches.len(), 5);
    assert_eq!(phases_ns, batches_ns, "nothing of a batch is without a phase");
    // Giving 16 MB back to the pool is not the batch's.
    assert!(batches_ns <= own_ns && batches_ns > own_ns / 2, "{batches_ns} {own_ns}");
}

#[test]
fn gathered_jobs_are_one_batch_and_whoever_waits_is_idle() {
    assert_once(gathered_jobs);
}

fn gathered_jobs() -> Result<(), String> {
    let queue = QueueConfig { gather: 16, ..QueueConfig::default() };
    let engine = Engine::with_config(Config { device: Device::Cpu, queue, ..Config::default() }).unwrap();
    let x = Tensor::input("x", DType::F32, [64]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let slow = Tensor::from_vec(vec![0.5f32; 8 << 20], [8 << 20]).unwrap().tanh().unwrap().exp().unwrap();
    engine.submit(Job::batch(&[&slow])).unwrap().wait().unwrap();
    let recorder = engine.profile().unwrap();
    while !format!("{recorder:?}").contains('2') {
        std::thread::yield_now();
    }
    // While the worker has a long one, others come together.
    let first = engine.submit(Job::batch(&[&slow])).unwrap();
    let data = Tensor::from_slice(&[1.0f32; 64], [64]).unwrap();
    let tickets: Vec<_> = (0..40).map(|_| engine.submit(Job::program(&program, [data.clone()])).unwrap()).collect();
    first.wait().unwrap();
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    // A stream's batches are jobs, too.
    assert_eq!(program.stream((0..3).map(|_| [data.clone()])).map(|outputs| outputs.unwrap().len()).sum::<usize>(), 3);
    engine.close();
    let profile = recorder.finish();
    assert_adds_up(&profile);
    let small: Vec<&BatchRecord> =
        profile.batches.iter().filter(|b| profile.plans[b.plan as usize].title == "exp f32[64]").collect();
    assert_eq!(small.iter().map(|batch| batch.tasks).sum::<u64>(), 43);
    let waited = |batch: &BatchRecord| batch.phases.get(&Phase::Queue).copied();
    assert!(profile.batches.iter().all(|batch| waited(batch).is_some()));
    let long =
        profile.batches.iter().find(|batch| batch.tasks == 1 && !small.iter().any(|b| b.plan == batch.plan)).unwrap();
    let idle = profile.threads[0].frames.iter().find(|frame| frame.name == "waiting for a ticket").unwrap();
    assert_eq!(idle.kind, FrameKind::Idle);
    // Jobs come together while the worker has the long one, if whoever submits them gets to run then.
    let longest = small.iter().filter_map(|batch| waited(batch)).max().unwrap();
    let half_ns = (long.end_ns - long.begin_ns) / 2;
    match small.iter().any(|batch| batch.tasks > 1) && longest > half_ns && idle.self_ns > half_ns {
        true => Ok(()),
        false => {
            Err(format!("waited {longest} ns, idle for {} ns, of two times {half_ns} ns: {small:?}", idle.self_ns))
        }
    }
}

#[track_caller]
fn assert_same(batch: &BatchRecord, decision: &Decision) {
    let found = &batch.decision;
    assert_eq!((&found.device, &found.reason), (&decision.device, &decision.reason));
    assert_eq!(
        (found.actual_ns, found.fallbacks, &found.faults),
        (decision.actual_ns, decision.fallbacks, &decision.faults)
    );
    assert_eq!((found.submits, found.upload_bytes), (decision.timings.submits, decision.timings.upload_bytes));
    assert_eq!((found.predicted.len(), found.regret_ns), (decision.predicted.len(), decision.regret_ns));
}

fn on_gpu(api: Api) {
    let sync_timeout = Duration::from_secs(120);
    let config =
        Config { device: Device::Gpu(Some(0)), strict: true, apis: vec![api], sync_timeout, ..Config::default() };
    let engine = Engine::with_config(config).unwrap();
    assert!(engine.devices().len() > 1, "no {} device: {}", api.name(), driver_hint());
    let x = Tensor::input("x", DType::F32, [1 << 20]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let values = vec![0.5f32; 1 << 20];
    let run = || program.run_with(&[(&values).into()], &RunOptions::default()).unwrap().decision;
    run();
    let recorder = engine.profile().unwrap();
    let decisions: Vec<Decision> = (0..5)
        .map(|_| {
            let _stage = span!("on the device");
            run()
        })
        .collect();
    let small: Vec<[View<'_>; 1]> = values.chunks(1000).take(50).map(|values| [View::from(values)]).collect();
    program.run_many(&small).unwrap();
    let profile = recorder.finish();
    assert_adds_up(&profile);
    assert_eq!(profile.machine.devices.keys().collect::<Vec<_>>(), ["gpu:0"]);
    assert!(profile.plans.iter().all(|plan| plan.gpu_eligible));
    assert_eq!((profile.batches.len(), profile.batches[5].tasks), (6, 50));
    for (batch, decision) in profile.batches.iter().zip(&decisions) {
        assert_same(batch, decision);
        let timings = &decision.timings;
        assert!(timings.upload_ns > 0 && timings.readback_ns > 0);
        assert!(timings.upload_ns + timings.queue_ns + timings.readback_ns <= timings.total_ns, "{timings:?}");
    }
    for batch in &profile.batches {
        assert_eq!(batch.decision.device, "gpu:0");
        for phase in [Phase::Record, Phase::Plan, Phase::Upload, Phase::Kernels, Phase::Readback] {
            assert!(batch.phases.contains_key(&phase), "{phase:?}: {batch:?}");
        }
        assert!(batch.phases.values().sum::<u64>() <= batch.end_ns - batch.begin_ns, "{batch:?}");
        let frames = &profile.threads[0].frames;
        let kind = |name: &str| {
            let own = frames.iter().filter(|frame| frame.parent == Some(batch.frame));
            own.filter(|frame| frame.name == name).map(|frame| frame.kind).next()
        };
        assert_eq!((kind("upload"), kind("kernels")), (Some(FrameKind::Phase), Some(FrameKind::DeviceWait)));
    }
}

#[test]
fn batches_on_vulkan() {
    on_gpu(Api::Vulkan);
}

#[test]
fn batches_on_gl() {
    on_gpu(Api::Gl);
}

#[test]
fn devices_that_fail_are_told_of() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let script = Script::new(3, every_noticed_fault());
    let config = |strict| Config { device: Device::Gpu(Some(0)), strict, ..Config::default() };
    let engine = Engine::with_backends(config(false), vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap();
    let x = Tensor::input("x", DType::F32, [64]).unwrap();
    let program = engine.compile(&[&x], &[&(&x * 2.0).unwrap()]).unwrap();
    let run = || program.run_with(&[[1.0f32; 64].as_slice().into()], &RunOptions::default()).unwrap().decision;
    let recorder = engine.profile().unwrap();
    let mut decisions = vec![run()];
    // The CPU serves while its kernels are compiled.
    while decisions.iter().filter(|decision| decision.fallbacks > 0).count() < 5 {
        decisions.push(run());
    }
    let profile = recorder.finish();
    assert_adds_up(&profile);
    assert_eq!(profile.batches.len(), decisions.len());
    profile.batches.iter().zip(&decisions).for_each(|(batch, decision)| assert_same(batch, decision));

    let script = Script::new(1, every_noticed_fault());
    let strict = Engine::with_backends(config(true), vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap();
    let program = strict.compile(&[&x], &[&(&x * 2.0).unwrap()]).unwrap();
    let recorder = strict.profile().unwrap();
    let error = program.run(&[[1.0f32; 64].as_slice().into()]).unwrap_err();
    let profile = recorder.finish();
    assert_adds_up(&profile);
    let decision = &profile.batches[0].decision;
    assert_eq!((decision.device.as_str(), decision.reason.clone()), ("", format!("there is no result: {error}")));
}

#[test]
fn a_simulated_device_tells_its_own_times() {
    let sim = SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete").unwrap()).unwrap();
    let config = Config { device: Device::Gpu(Some(0)), strict: true, ..Config::default() };
    let engine = Engine::with_backends(config, vec![Arc::new(sim)]).unwrap();
    let x = Tensor::from_vec(vec![1.0f32; 1 << 16], [1 << 16]).unwrap();
    let recorder = engine.profile().unwrap();
    let told = engine.run_with(&[&x.exp().unwrap()], &RunOptions::default()).unwrap().decision;
    let profile = recorder.finish();
    assert_adds_up(&profile);
    let batch = &profile.batches[0];
    assert_same(batch, &told);
    assert!(batch.decision.simulated);
    // What passed is divided as the device tells.
    let timings = &told.timings;
    let kernels_ns = timings.total_ns - timings.upload_ns - timings.queue_ns - timings.readback_ns;
    let parts = [Phase::Upload, Phase::Kernels, Phase::Readback].map(|phase| batch.phases[&phase]);
    let passed: u64 = parts.iter().sum();
    assert!(passed <= batch.end_ns - batch.begin_ns);
    for (part, ns) in parts.into_iter().zip([timings.upload_ns, kernels_ns, timings.readback_ns]) {
        let (found, expected) = (part as f64 / passed as f64, ns as f64 / timings.total_ns as f64);
        assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    }
}

/// Small batches one after the other, so that whatever clocks differ by is as large as their parts.
fn many_small_batches(engine: &Engine) -> Profile {
    let x = Tensor::arange(0.0f32, 1000.0, 1.0).unwrap().exp().unwrap().sum(&[0], false).unwrap();
    let recorder = engine.profile().unwrap();
    for _ in 0..5_000 {
        engine.run_with(&[&x], &RunOptions::default()).unwrap();
    }
    recorder.finish()
}

#[test]
fn small_batches_that_are_routed_add_up_one_by_one() {
    let profile = many_small_batches(&Engine::new().unwrap());
    assert_eq!(profile.batches.len(), 5_000);
    assert_adds_up(&profile);
}

#[test]
fn small_batches_on_a_simulated_device_add_up_one_by_one() {
    // It tells tens of microseconds for what takes a few here.
    let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090").unwrap()).unwrap();
    let config = Config { device: Device::Gpu(Some(0)), strict: true, ..Config::default() };
    let profile = many_small_batches(&Engine::with_backends(config, vec![Arc::new(sim)]).unwrap());
    assert_eq!(profile.batches.len(), 5_000);
    assert_adds_up(&profile);
}

#[test]
fn a_profile_is_the_same_after_json() {
    let engine = Engine::new().unwrap();
    let recorder = engine.profile().unwrap();
    {
        let _stage = span!("stage");
        engine.run(&[&Tensor::from_slice(&[1.0f32], [1]).unwrap().exp().unwrap()]).unwrap();
    }
    let profile = recorder.finish();
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
}
