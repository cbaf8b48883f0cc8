//! Batches that pay on two devices: a plan cut in two, and tasks shared between the CPU and another device.

use breakeven::cost::{Costs, Curve, Effort};
use breakeven::{Api, Config, DType, Device, Engine, Many, RunOptions, SimBackend, SimProfile, Tensor, View};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::{Faulty, Script, every_noticed_fault, gpu};
use std::ops::ControlFlow;
use std::sync::Arc;

/// An engine with a simulated card that is not here.
fn engine() -> (Engine, SimBackend) {
    let profile = SimProfile::by_name("modern-discrete").unwrap();
    let card = SimBackend::new("gpu:0", profile).unwrap();
    let config = Config { device: Device::All, ..Config::default() };
    (Engine::with_backends(config, vec![Arc::new(card.clone())]).unwrap(), card)
}

/// Measures both.
fn measure(engine: &Engine) {
    for device in ["cpu", "gpu:0"] {
        engine.measure(device, Effort::Probe, &mut |_| ControlFlow::Continue(())).unwrap();
    }
}

#[test]
fn a_plan_is_cut_where_little_crosses() {
    let (engine, _) = engine();
    measure(&engine);
    // The front reads a little of much memory, which would all have to go up; the back is a product, which pays there.
    let much = Tensor::from_vec((0..1024 * 8192).map(|i| (i % 97) as f32).collect(), [1024, 8192]).unwrap();
    let side = Tensor::from_vec((0..1024 * 1024).map(|i| (i % 13) as f32 / 13.0).collect(), [1024, 1024]).unwrap();
    let little = much.slice(&[breakeven::s(..), breakeven::s(0..4)]).unwrap().sum(&[1], true).unwrap();
    let output = (&side + &little).unwrap().matmul(&side).unwrap();
    let cpu = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
    let expected = engine.run_with(&[&output], &cpu).unwrap();
    let mut best_ns = u64::MAX;
    // The first one makes the halves ready.
    for _ in 0..4 {
        let ran = engine.run_with(&[&output], &RunOptions::default()).unwrap();
        assert_eq!(ran.decision.device, "cpu+gpu:0", "{} {:?}", ran.decision.reason, ran.decision.predicted);
        assert_eq!(ran.outputs[0].as_bytes(), expected.outputs[0].as_bytes());
        best_ns = best_ns.min(ran.decision.actual_ns);
    }
    let card = RunOptions { device: Some(Device::Gpu(Some(0))), ..RunOptions::default() };
    let alone = engine.run_with(&[&output], &card).unwrap();
    assert!(best_ns < alone.decision.actual_ns, "{best_ns} alone {}", alone.decision.actual_ns);
    assert!(best_ns < expected.decision.actual_ns);
    let mut into = vec![0f32; 1024 * 1024];
    let program = engine.compile(&[], &[&output]).unwrap();
    program.run_into(&[], &mut [into.as_mut_slice().into()]).unwrap();
    assert_eq!(into, expected.outputs[0].to_vec::<f32>().unwrap());
}

#[test]
fn tasks_are_shared_so_that_both_are_done_at_once() {
    let (engine, card) = engine();
    let x = Tensor::input("x", DType::F32, [1000]).unwrap();
    // Of operations that a first look at a device has measured.
    let output = (0..8).fold(x.clone(), |y, _| ((y * 0.9).unwrap() + &x).unwrap());
    let program = engine.compile(&[&x], &[&output]).unwrap();
    let data: Vec<f32> = (0..1000 * 2000).map(|i| (i % 101) as f32 / 50.0 - 1.0).collect();
    // Of two sizes, so that the cut falls between different ones.
    let tasks: Vec<[View<'_>; 1]> =
        data.chunks(1000).enumerate().map(|(number, task)| [View::from(&task[..1000 - number % 2])]).collect();
    // Of a card that takes as long as the CPU half of the tasks is the best share.
    let mut many = Many::default();
    let cpu = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
    let times = [0; 5].map(|_| program.run_many_with(&tasks, &mut many, &cpu).unwrap().actual_ns);
    let fastest = times.into_iter().min().unwrap();
    card.set_slowdown(fastest as f64 / card.batch_ns(program.plan(), tasks.len()) as f64).unwrap();
    measure(&engine);
    let decision = program.run_many_with(&tasks, &mut many, &RunOptions::default()).unwrap();
    assert_eq!(decision.device, "cpu+gpu:0", "{} {:?}", decision.reason, decision.predicted);
    let alone = Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap();
    let expected = alone.compile(&[&x], &[&output]).unwrap().run_many(&tasks).unwrap();
    assert_eq!(many.len(), tasks.len());
    for task in 0..tasks.len() {
        assert_eq!(many.slice::<f32>(task, 0).unwrap(), expected.slice::<f32>(task, 0).unwrap(), "task {task}");
    }
}

#[test]
fn a_device_that_fails_with_its_tasks_costs_no_result() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let x = Tensor::input("x", DType::F32, [100]).unwrap();
    let output = ((&x * 0.9).unwrap() + &x).unwrap();
    let data: Vec<f32> = (0..100 * 200).map(|i| (i % 101) as f32 / 50.0 - 1.0).collect();
    let tasks: Vec<[View<'_>; 1]> = data.chunks(100).map(|task| [View::from(task)]).collect();
    let alone = Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap();
    let expected = alone.compile(&[&x], &[&output]).unwrap().run_many(&tasks).unwrap();
    for fault in every_noticed_fault() {
        let script = Script::new(1, vec![fault]);
        let config = Config { device: Device::All, explore: 0.0, ..Config::default() };
        let engine = Engine::with_backends(config, vec![Arc::new(Faulty::new(&gpu, &script))]).unwrap();
        // As slow as the CPU, so that both are better than one.
        let slow = Costs { memory: Curve::new(vec![(1.0, 1000.0)]), ..Costs::default() };
        ["cpu", "gpu:0"].iter().for_each(|device| engine.set_costs(device, slow.clone()).unwrap());
        let program = engine.compile(&[&x], &[&output]).unwrap();
        let mut many = Many::default();
        let decision = program.run_many_with(&tasks, &mut many, &RunOptions::default()).unwrap();
        assert_eq!((script.injected(), &*decision.device, decision.fallbacks), (1, "cpu", 1), "{fault:?} {decision:?}");
        assert!(decision.reason.starts_with("two devices were chosen, but"), "{}", decision.reason);
        for task in 0..tasks.len() {
            assert_eq!(many.slice::<f32>(task, 0).unwrap(), expected.slice::<f32>(task, 0).unwrap(), "task {task}");
        }
    }
}
