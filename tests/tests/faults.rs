//! Devices that fail, by script and for real: whatever they do, every result is right, and comes once.

use breakeven::{
    Api, Array, Config, DType, Device, Engine, Error, Program, RunError, RunOptions, Status, Tensor, View,
};
use breakeven_gpu::{Gpu, GpuConfig};
use breakeven_tests::faulty::{Fault, Faulty, Script, every_noticed_fault, gpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What was asked for, in the words of the issue: the CPU has the result of a batch whose device was lost within this.
const LOSS_TO_RESULT: Duration = Duration::from_secs(1);

fn config(strict: bool) -> Config {
    Config { device: Device::Gpu(Some(0)), strict, ..Config::default() }
}

fn engine_on(gpu: &Gpu, strict: bool) -> Engine {
    Engine::with_backends(config(strict), vec![Arc::new(gpu.clone())]).unwrap()
}

/// Small programs of every kernel class over f32[24], exact in f32 for the inputs of [`input`].
fn programs(engine: &Engine) -> Vec<Program> {
    let x = Tensor::input("x", DType::F32, [24]).unwrap();
    let square = x.reshape(&[4, 6]).unwrap();
    let outputs = [
        vec![((&x * 2.0).unwrap() + 1.0).unwrap()],
        vec![square.sum(&[1], false).unwrap(), x.max(&[], false).unwrap()],
        vec![square.matmul(&square.transpose().unwrap()).unwrap()],
        vec![x.cumsum(0).unwrap()],
    ];
    outputs.iter().map(|o| engine.compile(&[&x], &o.iter().collect::<Vec<_>>()).unwrap()).collect()
}

fn input(number: u64) -> Vec<f32> {
    (0..24).map(|i| ((number * 31 + i * 7) % 97) as f32 - 48.0).collect()
}

/// The batch of this number, from the CPU.
fn expected(programs: &[Program], number: u64) -> Vec<Array> {
    programs[number as usize % programs.len()].run(&[(&input(number)).into()]).unwrap()
}

#[track_caller]
fn assert_same(found: &[Array], expected: &[Array], number: u64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap(), "batch {number}");
    }
}

/// Waits until this holds.
#[track_caller]
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn ten_thousand_batches_with_a_fault_in_every_tenth() {
    const BATCHES: u64 = 10_000;
    const THREADS: u64 = 4;
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    // What is due counts from the first batch after the warm-up.
    let script = Script::new(10, every_noticed_fault());
    let engine = Engine::with_backends(config(false), vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap();
    let on_cpu = Engine::with_config(Config::default()).unwrap();
    let (programs, on_cpu) = (programs(&engine), programs(&on_cpu));
    let run = |number: u64| {
        let ran = programs[number as usize % programs.len()]
            .run_with(&[(&input(number)).into()], &RunOptions::default())
            .unwrap_or_else(|why| panic!("batch {number}: {why}"));
        assert_same(&ran.outputs, &expected(&on_cpu, number), number);
        ran.decision
    };
    (0..20).for_each(|number| drop(run(number)));
    let (pool, memory, warm) = (gpu.pool_stats(), engine.memory_stats(), (script.attempts(), script.injected()));

    let (results, fallbacks) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (run, results, fallbacks) = (&run, &results, &fallbacks);
            scope.spawn(move || {
                for number in (thread..BATCHES).step_by(THREADS as usize) {
                    let decision = run(number);
                    results.fetch_add(1, Relaxed);
                    fallbacks.fetch_add(u64::from(decision.fallbacks), Relaxed);
                    // A fault, the CPU and its reason go together.
                    let failed = u32::from(decision.device == "cpu");
                    assert_eq!((decision.fallbacks, decision.faults.len() as u32), (failed, failed), "{decision:?}");
                    assert!(failed == 1 || (decision.device == "gpu:0" && decision.timings.submits == 1));
                }
            });
        }
    });
    assert_eq!(results.into_inner(), BATCHES);
    // Each was tried once on the device: none was run twice there.
    assert_eq!(script.attempts() - warm.0, BATCHES);
    let injected = script.injected() - warm.1;
    assert_eq!((injected, fallbacks.into_inner()), (BATCHES / 10, BATCHES / 10));
    assert_eq!((gpu.generation(), gpu.counters().timeouts), (0, 0), "nothing failed for real");

    // Nothing leaked: what is in use is what was before, and idle memory is what so many callers at once need.
    assert_eq!(gpu.pool_stats().in_use_bytes, pool.in_use_bytes, "{:?} {pool:?}", gpu.pool_stats());
    gpu.compact().unwrap();
    assert!(gpu.pool_stats().reserved_bytes <= pool.reserved_bytes, "{:?} {pool:?}", gpu.pool_stats());
    assert!(
        engine.memory_stats().free_bytes <= memory.free_bytes + (64 << 10),
        "{:?} {memory:?}",
        engine.memory_stats()
    );
}

#[test]
fn faults_of_many_tasks_and_of_results_that_go_elsewhere() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    for mixes in [true, false] {
        let script = Script::new(3, every_noticed_fault());
        let faulty = Faulty::new(&gpu, &script);
        let faulty = if mixes { faulty } else { faulty.one_by_one() };
        let engine = Engine::with_backends(config(false), vec![Arc::new(faulty)]).unwrap();
        let x = Tensor::input("x", DType::F32, [4]).unwrap();
        let program = engine.compile(&[&x], &[&(&x * 3.0).unwrap()]).unwrap();
        let inputs: Vec<Vec<f32>> = (0..9).map(|task| (0..4 + task % 3).map(|i| (i * task) as f32).collect()).collect();
        let tasks: Vec<[View<'_>; 1]> = inputs.iter().map(|values| [View::from(values)]).collect();
        for _ in 0..30 {
            let many = program.run_many(&tasks).unwrap();
            assert_eq!(many.failures().count(), 0, "a device's fault is no task's failure");
            for (task, input) in inputs.iter().enumerate() {
                let tripled: Vec<f32> = input.iter().map(|v| v * 3.0).collect();
                assert_eq!(many.slice::<f32>(task, 0).unwrap(), tripled);
            }
            let mut place = vec![0.0f32; 4];
            program.run_into(&[[1.0f32, 2.0, 3.0, 4.0].as_slice().into()], &mut [(&mut place).into()]).unwrap();
            assert_eq!(place, [3.0, 6.0, 9.0, 12.0]);
            let stays =
                &engine.run_resident(&[&(&Tensor::from_slice(&[5.0f32], [1]).unwrap() + 1.0).unwrap()]).unwrap()[0];
            assert_eq!(engine.run(&[stays]).unwrap()[0].as_slice::<f32>().unwrap(), [6.0]);
        }
        assert!(script.injected() >= 30, "{}", script.injected());
        drop(engine);
    }
    wait("the pool returns to where it was", || gpu.pool_stats().in_use_bytes == 0);
}

#[test]
fn strict_fails_with_what_the_device_said() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    for fault in every_noticed_fault() {
        let script = Script::new(1, vec![fault]);
        let engine = Engine::with_backends(config(true), vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap();
        let error = engine.run(&[&x.exp().unwrap()]).unwrap_err();
        let Error::Strict { wish, why } = &error else { panic!("{fault:?}: {error:?}") };
        assert_eq!(wish, "gpu:0");
        assert!(matches!(&**why, Error::Run(why) if why.is_device_fault()), "{fault:?}: {why:?}");
        assert!(error.to_string().contains("gpu:0 was asked for"), "{error}");
        // One batch may differ from what the engine is set to.
        let relaxed = RunOptions { strict: Some(false), ..RunOptions::default() };
        let ran = engine.run_with(&[&(&x * 2.0).unwrap()], &relaxed).unwrap();
        assert_eq!((ran.outputs[0].as_slice::<f32>().unwrap(), ran.decision.fallbacks), ([2.0, 4.0].as_slice(), 1));
    }
    let nowhere = Engine::with_backends(config(true), vec![]).unwrap();
    for error in [nowhere.run(&[&x.exp().unwrap()]).unwrap_err(), nowhere.pin(&x).unwrap_err()] {
        assert!(matches!(&error, Error::NoDevice { wanted, found: 0, .. } if wanted == "gpu:0"), "{error:?}");
    }
    assert!(Engine::with_backends(config(false), vec![]).unwrap().run(&[&x.exp().unwrap()]).is_ok());
}

#[test]
fn a_device_with_wrong_results_is_quarantined() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let checked = |strict, faults| {
        let script = Script::new(3, faults);
        let config = Config { verify: 1.0, ..config(strict) };
        (Engine::with_backends(config, vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap(), script)
    };
    let (engine, script) = checked(false, vec![Fault::Wrong]);
    let (programs, on_cpu) = (programs(&engine), programs(&Engine::with_config(Config::default()).unwrap()));
    for number in 0..12 {
        let run = programs[number as usize % 4].run_with(&[(&input(number)).into()], &RunOptions::default()).unwrap();
        assert_same(&run.outputs, &expected(&on_cpu, number), number);
        let (device, fallbacks) = if number < 2 { ("gpu:0", 0) } else { ("cpu", 1) };
        assert_eq!((&*run.decision.device, run.decision.fallbacks), (device, fallbacks), "{:?}", run.decision);
    }
    assert_eq!(script.attempts(), 3, "it is not used any more");
    let health = &engine.devices()[1].health;
    assert_eq!(health.status, Status::Critical);
    assert!(health.reason.contains("differed from the CPU's"), "{}", health.reason);
    let strict = RunOptions { strict: Some(true), ..RunOptions::default() };
    let error = programs[0].run_with(&[(&input(0)).into()], &strict).unwrap_err();
    assert!(matches!(error, Error::Strict { .. }) && error.to_string().contains("differed"), "{error}");
    assert_eq!(script.attempts(), 3, "nor where nothing else is allowed");

    // Results that stay and results of many tasks are checked like the others.
    let (engine, script) = checked(false, vec![Fault::Wrong]);
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    for _ in 0..6 {
        let stays = &engine.run_resident(&[&(&x * 2.0).unwrap()]).unwrap()[0];
        assert_eq!(stays.as_data().unwrap().as_bytes(), [2.0f32, 4.0].map(f32::to_ne_bytes).concat());
    }
    assert_eq!((script.attempts(), engine.devices()[1].health.status), (3, Status::Critical));
    let (engine, script) = checked(false, vec![Fault::Wrong]);
    let x = Tensor::input("x", DType::F32, [2]).unwrap();
    let program = engine.compile(&[&x], &[&(&x * 2.0).unwrap()]).unwrap();
    for _ in 0..6 {
        let many =
            program.run_many(&[[View::from([1.0f32, 2.0].as_slice())], [View::from([3.0f32].as_slice())]]).unwrap();
        assert_eq!(
            (many.slice::<f32>(0, 0).unwrap(), many.slice::<f32>(1, 0).unwrap()),
            ([2.0, 4.0].as_slice(), [6.0].as_slice())
        );
    }
    assert_eq!((script.attempts(), engine.devices()[1].health.status), (3, Status::Critical));

    // One that is right stays.
    let (engine, script) = checked(true, vec![]);
    let programs = self::programs(&engine);
    for number in 0..40 {
        let found = programs[number as usize % 4].run(&[(&input(number)).into()]).unwrap();
        assert_same(&found, &expected(&on_cpu, number), number);
    }
    assert_eq!((script.attempts(), engine.devices()[1].health.status), (40, Status::Healthy));
}

struct OnDrop<F: Fn()>(F);
impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// A device that is destroyed again and again while four threads use it.
#[test]
fn destroyed_under_the_work_of_four_threads() {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        let engine = engine_on(&gpu, false);
        let (programs, on_cpu) = (programs(&engine), programs(&Engine::with_config(Config::default()).unwrap()));
        let run = |number: u64| {
            let values = input(number);
            let ran = programs[number as usize % 4].run_with(&[(&values).into()], &RunOptions::default()).unwrap();
            assert_same(&ran.outputs, &expected(&on_cpu, number), number);
            ran.decision
        };
        let (running, batches, on_gpu) = (AtomicBool::new(true), AtomicU64::new(0), AtomicU64::new(0));
        let mut losses = 0;
        std::thread::scope(|scope| {
            // Also if what follows panics.
            let _stop = OnDrop(|| running.store(false, Relaxed));
            for thread in 0..4 {
                let (run, running, batches, on_gpu) = (&run, &running, &batches, &on_gpu);
                scope.spawn(move || {
                    let mut number = thread;
                    while running.load(Relaxed) {
                        let begun = Instant::now();
                        let decision = run(number);
                        assert!(begun.elapsed() < 5 * LOSS_TO_RESULT, "{:?}: {decision:?}", begun.elapsed());
                        number += 4;
                        batches.fetch_add(1, Relaxed);
                        on_gpu.fetch_add(u64::from(decision.device != "cpu"), Relaxed);
                    }
                });
            }
            // It comes back after each loss, and serves until the next: nobody stays on the CPU for ever.
            for round in 1..=5 {
                let before = on_gpu.load(Relaxed);
                wait("the device serves", || on_gpu.load(Relaxed) >= before + 4);
                gpu.destroy_for_test();
                wait("the loss is noticed", || gpu.counters().losses >= round);
                losses = round;
            }
        });
        assert_eq!(gpu.counters().losses, losses, "{}", api.name());
        assert!(batches.into_inner() > 40);
        // Health tells of it, until enough batches have been right.
        wait("it is rebuilt", || gpu.generation() == losses && engine.devices()[1].health.status != Status::Lost);
        assert_eq!(engine.devices()[1].health.status, Status::Warning, "{:?}", engine.devices()[1].health);
        wait("it is used again", || run(1).device == "gpu:0");
        wait("it is trusted again", || {
            run(0);
            engine.devices()[1].health.status == Status::Healthy
        });
        drop((programs, engine));
        wait("nothing is kept", || gpu.pool_stats().in_use_bytes == 0);
    }
}

/// How long it takes from a loss to the first right result, which the CPU has.
#[test]
fn a_loss_costs_less_than_a_second() {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        let engine = engine_on(&gpu, false);
        // Long enough to be at work when the device goes.
        let x = Tensor::from_vec((0..1 << 18).map(|i| i as f32 / 1024.0).collect(), [1 << 18]).unwrap();
        let y = x.sin().unwrap().exp().unwrap().tanh().unwrap();
        let right = Engine::with_config(Config::default()).unwrap().run(&[&y]).unwrap()[0].to_f64();
        let check = |array: &Array| {
            let off = array.to_f64().iter().zip(&right).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-5, "{off}");
        };
        let mut worst = Duration::ZERO;
        for round in 1..=4 {
            wait("the device serves", || {
                engine.run_with(&[&y], &RunOptions::default()).unwrap().decision.device == "gpu:0"
            });
            let in_flight = std::thread::scope(|scope| {
                let runner = scope.spawn(|| engine.run_with(&[&y], &RunOptions::default()).unwrap());
                wait("work is in flight", || gpu.counters().pending > 0 || runner.is_finished());
                let begun = Instant::now();
                gpu.destroy_for_test();
                let first = engine.run_with(&[&y], &RunOptions::default()).unwrap();
                worst = worst.max(begun.elapsed());
                check(&first.outputs[0]);
                runner.join().unwrap()
            });
            check(&in_flight.outputs[0]);
            wait("the loss is noticed", || gpu.counters().losses == round);
        }
        assert!(worst < LOSS_TO_RESULT, "{}: {worst:?}", api.name());
    }
}

/// A kernel that costs hundreds of times what its number of elements makes one think.
fn slow_tensor(elems: usize) -> Tensor {
    let mut y = Tensor::from_vec((0..elems).map(|i| i as f32 / elems as f32).collect(), [elems]).unwrap();
    for _ in 0..24 {
        y = y.tanh().unwrap().exp().unwrap().sin().unwrap();
    }
    y
}

#[test]
fn a_batch_that_outlasts_the_timeout() {
    let impatient = GpuConfig { sync_timeout: Duration::from_millis(50), ..GpuConfig::default() };
    let device = gpu(Api::Vulkan, &impatient);
    // Half a second here, where 13 ms are predicted for a kernel that was never measured.
    let y = slow_tensor(1 << 19);
    let right = Engine::with_config(Config::default()).unwrap().run(&[&y]).unwrap()[0].to_f64();
    let engine = engine_on(&device, false);
    let mut ran = engine.run_with(&[&y], &RunOptions::default()).unwrap();
    wait("its pipeline is there", || {
        ran = engine.run_with(&[&y], &RunOptions::default()).unwrap();
        ran.decision.fallbacks > 0
    });
    assert_eq!((&*ran.decision.device, ran.decision.fallbacks), ("cpu", 1));
    assert!(ran.decision.faults[0].contains("gpu:0 did not answer within"), "{:?}", ran.decision.faults);
    assert_eq!(ran.outputs[0].to_f64(), right);
    // Slow is not hung: what was left behind comes to its end, and the device is as good as before.
    wait("the device is done", || device.counters().pending == 0);
    assert_eq!((device.counters().timeouts, device.counters().losses), (1, 0));

    // A device that has measured nothing yet.
    let device = gpu(Api::Vulkan, &impatient);
    let error = engine_on(&device, true).run(&[&y]).unwrap_err();
    let Error::Strict { why, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**why, Error::Run(RunError::Timeout { device, .. }) if device == "gpu:0"), "{error:?}");
    wait("the device is done", || device.counters().pending == 0);
}

#[test]
fn a_buffer_of_a_terabyte_is_an_error_and_no_crash() {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        let one = Tensor::from_slice(&[1.0f32], [1]).unwrap();
        let huge = (one.broadcast_to([250_000_000_000]).unwrap() + 1.0).unwrap();
        let error = engine_on(&gpu, true).run(&[&huge]).unwrap_err();
        let Error::Strict { why, .. } = &error else { panic!("{error:?}") };
        let typed =
            |why: &Error| matches!(why, Error::Run(RunError::OutOfMemory { .. } | RunError::Unsupported { .. }));
        assert!(typed(why), "{error:?}");
        let engine = engine_on(&gpu, false);
        let error = engine.run(&[&huge]).unwrap_err();
        assert!(
            matches!(&error, Error::Run(RunError::OutOfMemory { bytes }) if *bytes >= 1_000_000_000_000),
            "{error:?}"
        );
        assert_eq!(engine.run(&[&(&one + 1.0).unwrap()]).unwrap()[0].as_slice::<f32>().unwrap(), [2.0]);
        assert_eq!(gpu.counters().losses, 0);
    }
}

#[test]
fn two_engines_on_one_adapter_from_eight_threads() {
    for api in [Api::Vulkan, Api::Gl] {
        let engine = || {
            let engine = Engine::with_config(Config { apis: vec![api], ..config(true) }).unwrap();
            assert!(engine.devices().len() > 1, "no {} device: {}", api.name(), breakeven::driver_hint());
            engine
        };
        let engines = [engine(), engine()].map(|engine| programs(&engine));
        let on_cpu = programs(&Engine::with_config(Config::default()).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (programs, on_cpu) = (&engines[thread as usize % 2], &on_cpu);
                scope.spawn(move || {
                    for number in (thread..200).step_by(8) {
                        let found = programs[number as usize % 4].run(&[(&input(number)).into()]).unwrap();
                        assert_same(&found, &expected(on_cpu, number), number);
                    }
                });
            }
        });
    }
}
