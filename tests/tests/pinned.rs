//! Data that is pinned without a device being named: it goes where large batches on it pay, and stays on the host if
//! that is nowhere.

use breakeven::backend::{Backend, Prepared, Resident};
use breakeven::cost::{Costs, Curve, Effort};
use breakeven::{Config, DType, Device, Engine, Plan, RunError, RunOptions, SimBackend, SimProfile, Tensor};
use std::ops::ControlFlow;
use std::sync::Arc;

fn sim(id: &str) -> SimBackend {
    SimBackend::new(id, SimProfile::by_name("modern-discrete").unwrap()).unwrap()
}

fn engine(device: Device, strict: bool, backends: Vec<Arc<dyn Backend>>) -> Engine {
    Engine::with_backends(Config { device, strict, explore: 0.0, ..Config::default() }, backends).unwrap()
}

/// What takes so many nanoseconds for each byte and operation.
fn costs(ns: f64) -> Costs {
    let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
    let products = vec![];
    Costs { fixed_ns: 1e4, memory: curve(ns), compute: curve(ns), upload: curve(0.1), products, ..Costs::default() }
}

fn weights() -> Tensor {
    Tensor::from_vec((0..200 * 300).map(|i| (i % 89) as f32 / 89.0).collect(), [200, 300]).unwrap()
}

/// Where a tensor's data lies beside the host.
fn home(tensor: &Tensor) -> Option<String> {
    tensor.as_data().unwrap().resident().map(|resident| resident.device().to_owned())
}

#[test]
fn it_goes_to_the_device_where_large_batches_pay() {
    for wish in [Device::Auto, Device::All] {
        let (first, second) = (sim("gpu:0"), sim("gpu:1"));
        let engine = engine(wish, false, vec![Arc::new(first.clone()), Arc::new(second.clone())]);
        engine.set_costs("cpu", costs(1.0)).unwrap();
        engine.set_costs("gpu:0", costs(0.5)).unwrap();
        engine.set_costs("gpu:1", costs(0.01)).unwrap();
        let pinned = engine.pin(&weights()).unwrap();
        assert_eq!(home(&pinned).as_deref(), Some("gpu:1"));
        assert_eq!((first.virtual_ns(), second.virtual_ns() > 0), (0, true), "it was sent once, and there");
        // A batch on it finds it there, and the host has it as well.
        let ran = engine.run_with(&[&(&pinned * 2.0).unwrap()], &RunOptions::default()).unwrap();
        assert_eq!((&*ran.decision.device, ran.decision.timings.upload_bytes), ("gpu:1", 0), "{}", ran.decision.reason);
        let expected: Vec<f32> = (0..200 * 300).map(|i| (i % 89) as f32 / 89.0 * 2.0).collect();
        assert_eq!(ran.outputs[0].to_vec::<f32>().unwrap(), expected);
        assert_eq!(pinned.as_data().unwrap().as_bytes(), weights().as_data().unwrap().as_bytes());
        // What is computed is computed first.
        assert_eq!(home(&engine.pin(&(&weights() + 1.0).unwrap()).unwrap()).as_deref(), Some("gpu:1"));
    }
}

#[test]
fn a_measured_card_is_a_home() {
    let card = sim("gpu:0");
    let engine = engine(Device::Auto, false, vec![Arc::new(card.clone())]);
    // Before anything is known there is none.
    assert_eq!((home(&engine.pin(&weights()).unwrap()), card.virtual_ns()), (None, 0));
    for device in ["cpu", "gpu:0"] {
        engine.measure(device, Effort::Probe, &mut |_| ControlFlow::Continue(())).unwrap();
    }
    assert_eq!(home(&engine.pin(&weights()).unwrap()).as_deref(), Some("gpu:0"));
}

#[test]
fn without_a_device_that_pays_it_stays_on_the_host() {
    let card = sim("gpu:0");
    let slow = engine(Device::Auto, true, vec![Arc::new(card.clone())]);
    slow.set_costs("cpu", costs(0.01)).unwrap();
    slow.set_costs("gpu:0", costs(1.0)).unwrap();
    let none = engine(Device::Auto, true, Vec::new());
    let cpu = engine(Device::Cpu, true, vec![Arc::new(card.clone())]);
    for engine in [&slow, &none, &cpu] {
        let pinned = engine.pin(&weights()).unwrap();
        assert_eq!((home(&pinned), card.virtual_ns()), (None, 0));
        let ran = engine.run_with(&[&(&pinned + 1.0).unwrap()], &RunOptions::default()).unwrap();
        assert_eq!((&*ran.decision.device, ran.outputs[0].as_slice::<f32>().unwrap()[0]), ("cpu", 1.0));
    }
    let empty = engine(Device::Auto, true, vec![Arc::new(card.clone())]);
    empty.set_costs("gpu:0", costs(1e-3)).unwrap();
    assert_eq!(home(&empty.pin(&Tensor::zeros([0, 3], DType::F32).unwrap()).unwrap()), None);
    // A name is a name, whatever would pay.
    let named = engine(Device::Gpu(Some(0)), true, vec![Arc::new(card)]);
    assert_eq!(home(&named.pin(&weights()).unwrap()).as_deref(), Some("gpu:0"));
}

/// A device that is gone, or has no memory left.
struct Full {
    sim: SimBackend,
    is_lost: bool,
}

impl Backend for Full {
    fn id(&self) -> &str {
        self.sim.id()
    }

    fn name(&self) -> &str {
        "a device without memory"
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        self.sim.prepare(plan)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        assert!(!self.is_lost, "nothing is sent to a device that is gone");
        Err(RunError::OutOfMemory { bytes: bytes.len() })
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }
}

#[test]
fn a_device_that_fails_is_no_error() {
    for is_lost in [false, true] {
        let full = |id: &str| Arc::new(Full { sim: sim(id), is_lost });
        let alone = engine(Device::Auto, true, vec![full("gpu:0")]);
        let beside = engine(Device::Auto, true, vec![full("gpu:0"), Arc::new(sim("gpu:1"))]);
        for (engine, expected) in [(&alone, None), (&beside, Some("gpu:1"))] {
            engine.set_costs("cpu", costs(1.0)).unwrap();
            engine.set_costs("gpu:0", costs(0.01)).unwrap();
            if expected.is_some() {
                engine.set_costs("gpu:1", costs(0.5)).unwrap();
            }
            let pinned = engine.pin(&weights()).unwrap();
            assert_eq!(home(&pinned).as_deref(), expected);
            assert_eq!(engine.run(&[&(&pinned + 1.0).unwrap()]).unwrap()[0].as_slice::<f32>().unwrap()[0], 1.0);
        }
    }
}
