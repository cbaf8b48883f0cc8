//! The queue as a whole, over the CPU, simulated and real devices: nothing is lost (`loss`), deadlines are kept
//! (`deadlines`), nobody starves (`fairness`), small jobs go together (`gather`), several devices share the work
//! (`devices`), streams overlap (`stream`), and everything ends (`ends`). Here is what they share.

#[path = "queue/deadlines.rs"]
mod deadlines;
#[path = "queue/devices.rs"]
mod devices;
#[path = "queue/ends.rs"]
mod ends;
#[path = "queue/fairness.rs"]
mod fairness;
#[path = "queue/gather.rs"]
mod gather;
#[path = "queue/loss.rs"]
mod loss;
#[path = "queue/stream.rs"]
mod stream;

use breakeven::backend::Backend;
use breakeven::{Answer, Config, DType, Device, Engine, Program, QueueConfig, Tensor, Ticket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Times are measured and threads counted: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// An engine whose queue is set up like this, with these devices beside the CPU.
fn engine(queue: QueueConfig, backends: Vec<Arc<dyn Backend>>) -> Engine {
    Engine::with_backends(Config { device: Device::Cpu, queue, ..Config::default() }, backends).unwrap()
}

/// An engine whose queue has these devices and no others.
fn only(devices: &[Device], backends: Vec<Arc<dyn Backend>>) -> Engine {
    engine(QueueConfig { devices: devices.to_vec(), ..QueueConfig::default() }, backends)
}

fn numbers(value: usize, elems: usize) -> Tensor {
    Tensor::from_vec(vec![value as f32; elems], [elems]).unwrap()
}

/// A program that doubles so many numbers.
fn doubling(engine: &Engine, elems: usize) -> Program {
    let x = Tensor::input("x", DType::F32, [elems]).unwrap();
    engine.compile(&[&x], &[&(&x * 2.0).unwrap()]).unwrap()
}

/// The first output; nobody waits for longer than a minute.
#[track_caller]
fn answered(ticket: Ticket) -> breakeven::Result<Vec<f32>> {
    assert!(ticket.wait_timeout(Duration::from_secs(60)).is_some(), "{ticket:?} is not answered");
    match ticket.wait()? {
        Answer::Arrays { outputs, .. } => Ok(outputs[0].as_slice::<f32>()?.to_vec()),
        other => panic!("{other:?} are no arrays"),
    }
}

/// Times are ratios, and the machine is not ours alone: of up to three measurements one must be good enough.
#[track_caller]
fn at_least(what: &str, ratio: f64, mut measure: impl FnMut() -> f64) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(measure());
        if seen.last().is_some_and(|found| *found >= ratio) {
            break;
        }
    }
    // Shown by `--nocapture`, for those who want to know by how much.
    #[expect(clippy::print_stderr, reason = "the figures behind a test that passed")]
    {
        eprintln!("{what}: {seen:.2?}, expected {ratio}");
    }
    assert!(seen.iter().any(|found| *found >= ratio), "{what}: {seen:.2?}, expected {ratio}");
}
