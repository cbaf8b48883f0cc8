//! One batch on three and four devices at once: its rows or its tasks are divided between simulated devices, whose times
//! are told, real ones and the CPU; one that fails costs no result.

use breakeven::backend::Backend;
use breakeven::cost::{Costs, Curve};
use breakeven::{
    Answer, Api, Array, Config, DType, Device, Engine, Job, Many, RunOptions, SimBackend, SimProfile, Tensor, View,
};
use breakeven_gpu::GpuConfig;
use breakeven_tests::data::random;
use breakeven_tests::faulty::{Fault, Faulty, Kind, Script, gpu};
use breakeven_tests::pair::Pair;
use std::sync::Arc;

fn leaf(shape: &[usize], seed: u64) -> Tensor {
    Pair::leaf(random(DType::F32, shape, seed)).tensor
}

fn sim(id: &str) -> SimBackend {
    SimBackend::new(id, SimProfile::by_name("modern-discrete").unwrap()).unwrap()
}

/// An engine that is told that each of these devices takes as long as the CPU.
fn even(backends: Vec<Arc<dyn Backend>>) -> Engine {
    let count = backends.len();
    let config = Config { device: Device::All, explore: 0.0, ..Config::default() };
    let engine = Engine::with_backends(config, backends).unwrap();
    let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
    // So much that nothing else matters.
    let costs = Costs {
        memory: curve(1000.0),
        compute: curve(1.0),
        upload: curve(1e-3),
        readback: curve(1e-3),
        ..Costs::default()
    };
    engine.set_costs("cpu", costs.clone()).unwrap();
    (0..count).for_each(|number| engine.set_costs(&format!("gpu:{number}"), costs.clone()).unwrap());
    engine
}

fn on_cpu(outputs: &[&Tensor]) -> Vec<Array> {
    let config = Config { device: Device::Cpu, threads: Some(1), ..Config::default() };
    Engine::with_config(config).unwrap().run(outputs).unwrap()
}

/// Outputs of rows of every kind.
fn outputs() -> Vec<Tensor> {
    let (x, bias, w) = (leaf(&[1600, 40], 1), leaf(&[40], 2), leaf(&[40, 30], 3));
    let layer = (x.matmul(&w).unwrap() + &leaf(&[30], 4)).unwrap().relu().unwrap();
    vec![(x + &bias).unwrap().softmax(-1).unwrap(), layer.sum(&[1], false).unwrap(), layer]
}

#[test]
fn rows_of_one_batch_go_to_three_devices() {
    let cards = [sim("gpu:0"), sim("gpu:1")];
    let engine = even(cards.iter().map(|card| Arc::new(card.clone()) as Arc<dyn Backend>).collect());
    let outputs = outputs();
    for output in &outputs {
        let before: Vec<u64> = cards.iter().map(SimBackend::virtual_ns).collect();
        let ran = engine.run_with(&[output], &RunOptions::default()).unwrap();
        assert_eq!((&*ran.decision.device, ran.decision.fallbacks), ("cpu+gpu:0+gpu:1", 0), "{}", ran.decision.reason);
        let took: Vec<u64> = cards.iter().zip(before).map(|(card, before)| card.virtual_ns() - before).collect();
        assert!(took.iter().all(|took| *took > 0 && *took <= ran.decision.actual_ns), "{took:?} {:?}", ran.decision);
        assert!(ran.outputs[0].as_bytes() == on_cpu(&[output])[0].as_bytes(), "other bits");
    }
}

#[test]
fn tasks_of_one_batch_go_to_three_devices() {
    let cards = [sim("gpu:0"), sim("gpu:1")];
    let engine = even(cards.iter().map(|card| Arc::new(card.clone()) as Arc<dyn Backend>).collect());
    let x = Tensor::input("x", DType::F32, [100]).unwrap();
    let output = ((&x * 0.9).unwrap() + &x).unwrap();
    let data: Vec<f32> = (0..100 * 300).map(|i| (i % 101) as f32 / 50.0 - 1.0).collect();
    // Of two sizes, so that the cuts fall between different ones.
    let tasks: Vec<[View<'_>; 1]> =
        data.chunks(100).enumerate().map(|(number, task)| [View::from(&task[..100 - number % 2])]).collect();
    let alone = Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap();
    let expected = alone.compile(&[&x], &[&output]).unwrap().run_many(&tasks).unwrap();
    let program = engine.compile(&[&x], &[&output]).unwrap();
    let mut many = Many::default();
    let decision = program.run_many_with(&tasks, &mut many, &RunOptions::default()).unwrap();
    assert_eq!((&*decision.device, decision.fallbacks), ("cpu+gpu:0+gpu:1", 0), "{}", decision.reason);
    assert!(cards.iter().all(|card| card.virtual_ns() > 0));
    for task in 0..tasks.len() {
        assert_eq!(many.slice::<f32>(task, 0).unwrap(), expected.slice::<f32>(task, 0).unwrap(), "task {task}");
    }
    // One that is gone costs no result: its part is the CPU's, the other one's is kept.
    cards[0].fail_next(1);
    let decision = program.run_many_with(&tasks, &mut many, &RunOptions::default()).unwrap();
    assert_eq!(decision.fallbacks, 1, "{decision:?}");
    for task in 0..tasks.len() {
        assert_eq!(many.slice::<f32>(task, 0).unwrap(), expected.slice::<f32>(task, 0).unwrap(), "task {task}");
    }
}

#[test]
fn a_job_of_the_queue_goes_to_real_and_simulated_devices_at_once() {
    let config = GpuConfig::default();
    // Which wait for their compilers.
    let real = |api: Api, faults: Vec<Fault>| Arc::new(Faulty::new(&gpu(api, &config), &Script::new(1, faults)));
    for faults in [Vec::new(), vec![Fault::Late(Kind::Lost)]] {
        let fails = u32::from(!faults.is_empty());
        let engine = even(vec![real(Api::Vulkan, Vec::new()), real(Api::Gl, faults), Arc::new(sim("gpu:2"))]);
        let output = &outputs()[0];
        let answer = engine.submit(Job::batch(&[output]).explained()).unwrap().wait().unwrap();
        let Answer::Arrays { outputs: found, decision, .. } = answer else { panic!("no arrays") };
        let decision = decision.unwrap();
        assert_eq!(decision.fallbacks, fails, "{decision:?}");
        if fails == 0 {
            assert_eq!(decision.device, "cpu+gpu:0+gpu:1+gpu:2", "{}", decision.reason);
        }
        let (found, expected) = (found[0].to_f64(), on_cpu(&[output])[0].to_f64());
        let far = (0..expected.len()).find(|&at| (found[at] - expected[at]).abs() > 1e-5);
        assert_eq!(far.map(|at| (at, found[at], expected[at])), None);
    }
}
