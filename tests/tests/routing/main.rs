//! Routing through the public interface, with simulated devices, whose times are known exactly: what is chosen, against
//! what would have been best (`regret`); where the break-even lies, against what published figures and this CPU imply
//! (`break_even`); what devices cost that become slow, hold data or look worth a try (`changes`), and those that fail or
//! are distrusted (`trouble`). Here is what they share; `clock` is a device that only tells times.

mod break_even;
mod changes;
mod clock;
mod regret;
mod trouble;

use breakeven::cost::{CostsFile, Effort};
use breakeven::{Config, DType, Decision, Device, Engine, Plan, RunOptions, SimBackend, SimProfile, Tensor};
use clock::Clock;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Times of the CPU are measured here: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("routing-{name}-{}", std::process::id()))
}

/// One thread: what else this machine does disturbs it less.
fn config(cache_dir: Option<PathBuf>) -> Config {
    Config { threads: Some(1), device: Device::Auto, cache_dir, ..Config::default() }
}

fn measure(engine: &Engine, device: &str, effort: Effort) {
    let measured = engine.measure(device, effort, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(measured.complete);
}

/// A folder with the costs of this CPU, measured when it is first asked for.
fn measured() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = folder("costs");
        let engine = Engine::with_backends(config(Some(dir.clone())), Vec::new()).unwrap();
        measure(&engine, "cpu", Effort::Quick);
        dir
    })
}

/// An engine that chooses between this CPU and the clock of a simulated device, both measured.
fn engine(profile: &str) -> (Engine, SimBackend) {
    let sim = SimBackend::new("gpu:0", SimProfile::by_name(profile).unwrap()).unwrap();
    let engine = Engine::with_backends(config(Some(measured().into())), vec![Arc::new(Clock(sim.clone()))]).unwrap();
    assert_eq!(engine.load_costs(), None);
    if engine.costs("gpu:0").is_none() {
        measure(&engine, "gpu:0", Effort::Quick);
    }
    assert!(engine.costs("cpu").is_some() && engine.costs("gpu:0").is_some());
    (engine, sim)
}

/// An engine that chooses between this CPU and a simulated device that takes so many times as long as told.
fn engine_on(sim: &SimBackend, times: f64) -> Engine {
    // A copy: the others are to find the device as it is.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let dir = folder(&format!("copy-{}", NUMBER.fetch_add(1, Relaxed)));
    let path = |dir: &Path| CostsFile::path(dir, &breakeven::cpu_name(), 1);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(path(measured()), path(&dir)).unwrap();
    let engine = Engine::with_backends(config(Some(dir)), vec![Arc::new(sim.clone())]).unwrap();
    assert_eq!(engine.load_costs(), None);
    sim.set_slowdown(times).unwrap();
    measure(&engine, "gpu:0", Effort::Probe);
    engine
}

fn modern() -> SimBackend {
    SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete").unwrap()).unwrap()
}

fn on(device: Device) -> RunOptions {
    RunOptions { device: Some(device), ..RunOptions::default() }
}

fn run(engine: &Engine, output: &Tensor) -> Decision {
    engine.run_with(&[output], &RunOptions::default()).unwrap().decision
}

/// What the CPU takes: the median of several runs.
fn cpu_ns(engine: &Engine, output: &Tensor) -> f64 {
    let once = || engine.run_with(&[output], &on(Device::Cpu)).unwrap().decision.actual_ns;
    let first = once().max(1);
    // The first fills caches. Short ones more often: an interruption is a larger part of them.
    let mut times: Vec<u64> = (0..(5_000_000 / first).clamp(5, 25)).map(|_| once()).collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::input(name, DType::F32, dims).unwrap()
}

fn numbers(dims: &[usize]) -> Tensor {
    let elems: usize = dims.iter().product();
    Tensor::from_vec((0..elems).map(|i| (i % 97) as f32 / 97.0 + 0.1).collect(), dims).unwrap()
}

/// As [`numbers`], with other values: two inputs of the same data would be one.
fn others(dims: &[usize]) -> Tensor {
    Tensor::from_vec(vec![0.5f32; dims.iter().product()], dims).unwrap()
}

fn plan(output: &Tensor) -> Plan {
    Plan::new(&[output]).unwrap()
}

/// Predicted by the engine: the CPU, the device.
fn predicted(engine: &Engine, output: &Tensor) -> [f64; 2] {
    let all = engine.predict(&[output]).unwrap();
    let of = |id: &str| all.iter().find(|(device, _)| device == id).expect("it is known").1.total_ns() as f64;
    [of("cpu"), of("gpu:0")]
}

/// Ten operations on each element.
fn chain(x: &Tensor) -> Tensor {
    (0..5).fold(x.clone(), |y, _| ((y.tanh().unwrap() * 0.9).unwrap() + x).unwrap().sigmoid().unwrap())
}
