//! Routing through the public interface, with simulated devices, whose times are known exactly: what is chosen, against
//! what would have been best; where the break-even lies, against what published figures and this CPU imply; what slow,
//! failing and distrusted devices cost.

use breakeven::backend::{Backend, Made, Prepared, Source, Task};
use breakeven::cost::{CostsFile, Effort, expression};
use breakeven::{
    Config, DType, Decision, Device, Engine, Plan, RunError, RunOptions, SimBackend, SimProfile, Tensor, Timings,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
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

/// A simulated device without the results: only what it would take. What is tested is where batches go, and the CPU
/// would need most of a minute for the results of everything that a device is measured with.
struct Clock(SimBackend);

struct ClockPlan {
    sim: SimBackend,
    inner: Arc<dyn Prepared>,
}

impl Backend for Clock {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(ClockPlan { sim: self.0.clone(), inner: self.0.prepare(plan)? }))
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        _results: &mut [u8],
        _failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        let total_ns = self.0.batch_ns(tasks[0].plan, tasks.len());
        Ok(Timings { total_ns, ..Timings::default() })
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Prepared for ClockPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, _: &[&[u8]], _: &mut [&mut [u8]], _: bool) -> Result<Timings, RunError> {
        let total_ns = self.sim.batch_ns(self.plan(), 1);
        Ok(Timings { total_ns, device_ns: self.inner.kernel_ns().iter().sum(), ..Timings::default() })
    }

    fn run_tasks(&self, _: usize, _: &[&[u8]], _: &mut [u8], _: usize, _: &mut dyn FnMut(usize, RunError)) {}

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }
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

/// Expressions on which nothing was fitted: measuring uses seeds up to 160.
const SEEDS: std::ops::Range<u64> = 1000..1220;
/// Elements at most. Unoptimised, the CPU takes some hundred times as long for each: break-even is at smaller sizes.
const MOST: f64 = if cfg!(debug_assertions) { 1e5 } else { 1.5e6 };

/// `slowed`: optimised, this CPU wins nearly always against old cards; then it is slowed so many times, so that there is
/// something to choose.
fn check_regret(profile: &str, slowed: u32) {
    let slow_cpu = if cfg!(debug_assertions) { 1 } else { slowed };
    let _alone = alone();
    let (engine, sim) = engine(profile);
    let slow = Config { slow_cpu, ..config(None) };
    let slowed = Engine::with_backends(slow, vec![Arc::new(Clock(sim.clone()))]).unwrap();
    slowed.set_costs("cpu", engine.costs("cpu").unwrap().times(f64::from(slow_cpu))).unwrap();
    slowed.set_costs("gpu:0", engine.costs("gpu:0").unwrap()).unwrap();
    let engine = slowed;
    let (mut regrets, mut wins, mut gpu_only) = (Vec::new(), [0, 0], Vec::new());
    for seed in SEEDS {
        let output = expression(seed, MOST, true).unwrap().output;
        let first = run(&engine, &output);
        let device_ns = sim.batch_ns(&plan(&output), 1) as f64;
        let cpu_ns = cpu_ns(&engine, &output);
        let chosen_ns = match first.device.as_str() {
            "cpu" => cpu_ns,
            "gpu:0" => {
                assert_eq!(first.actual_ns, device_ns as u64, "it takes what it tells");
                device_ns
            }
            other => panic!("{other} was chosen: {}", first.reason),
        };
        let best_ns = cpu_ns.min(device_ns);
        regrets.push(chosen_ns / best_ns);
        gpu_only.push(device_ns / best_ns);
        wins[usize::from(device_ns < cpu_ns)] += 1;
    }
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let best = mean(&regrets);
    assert!(best <= 1.03, "{profile}: mean regret {best}");
    // The choice was not a matter of course.
    assert!(wins.iter().all(|count| *count >= 5), "{profile}: {wins:?}");
    assert!(mean(&gpu_only) > 1.2);
}

#[test]
fn the_first_choice_is_the_best_one_on_a_4090() {
    check_regret("rtx4090", 64);
}

#[test]
fn the_first_choice_is_the_best_one_on_a_laptop() {
    check_regret("dx12-laptop", 16);
}

#[test]
fn the_first_choice_is_the_best_one_on_a_modern_card() {
    check_regret("modern-discrete", 1);
}

/// The first of ascending sizes from which on the device is cheaper, of (size, CPU, device); `None` for never.
fn crossover(sizes: &[usize], times: impl Fn(usize) -> [f64; 2]) -> Option<f64> {
    let behind: Vec<f64> = sizes.iter().map(|&size| times(size)).map(|[cpu, device]| (cpu / device).ln()).collect();
    let last = behind.iter().rposition(|log| *log <= 0.0);
    let next = last.map_or(0, |last| last + 1);
    let above = behind.get(next)?;
    // On a straight line between the last at which it loses and the first at which it wins.
    let Some(last) = last else { return Some(sizes[0] as f64) };
    let share = -behind[last] / (above - behind[last]);
    Some(sizes[last] as f64 * (sizes[next] as f64 / sizes[last] as f64).powf(share))
}

/// Sizes from one to another, each a little larger than the one before.
fn sizes(from: f64, to: f64, factor: f64) -> Vec<usize> {
    let count = ((to / from).ln() / factor.ln()).ceil() as i32;
    (0..=count).map(|step| (from * factor.powi(step)).min(to).round() as usize).collect()
}

/// How far two break-even sizes may be apart. Unoptimised, the CPU is not what its costs are modelled on: products are as
/// fast as ever, what is around them takes a hundred times as long, and expressions with both teach something between.
const APART: f64 = if cfg!(debug_assertions) { 2.0 } else { 1.25 };

#[track_caller]
fn assert_agree(what: &str, router: Option<f64>, apart: Option<f64>) {
    match (router, apart) {
        (None, None) => {}
        (Some(router), Some(apart)) => {
            let off = (router / apart).max(apart / router);
            assert!(off <= APART, "{what}: {router:.0} instead of {apart:.0}");
        }
        _ => panic!("{what}: {router:?} instead of {apart:?}"),
    }
}

/// What was published of the 4090, put together here: 3.5 ms a call, 23.4 GB/s up, 1.9 GB/s back, products of 500 and
/// 1000 in 4.59 and 7.84 ms, between and beyond them on a line in log-log.
fn published_4090_matmul_ns(n: f64) -> f64 {
    let around = |n: f64| 3.5e6 + 2.0 * 4.0 * n * n / 23.4 + 4.0 * n * n / 1.9;
    let (low, high) = (4.59e6 - around(500.0), 7.84e6 - around(1000.0));
    let slope = (high / low).ln() / 8f64.ln();
    let kernel = low * (n / 500.0).powi(3).powf(if n > 1000.0 { 1.0 } else { slope });
    around(n) + kernel
}

fn matmul(n: usize) -> Tensor {
    input("x", &[n, n]).matmul(&input("y", &[n, n])).unwrap()
}

#[test]
fn products_break_even_where_published_figures_and_this_cpu_say() {
    let _alone = alone();
    for (profile, most) in [("rtx4090", 1000.0), ("dx12-laptop", 800.0), ("modern-discrete", 500.0)] {
        let (engine, sim) = engine(profile);
        let router = crossover(&sizes(40.0, 4.0 * most, 1.05), |n| predicted(&engine, &matmul(n)));
        let apart = crossover(&sizes(most / 20.0, most, 1.2), |n| {
            let (x, y) = (numbers(&[n, n]), others(&[n, n]));
            let device_ns = match profile {
                "rtx4090" => published_4090_matmul_ns(n as f64),
                _ => sim.batch_ns(&plan(&matmul(n)), 1) as f64,
            };
            [cpu_ns(&engine, &x.matmul(&y).unwrap()), device_ns]
        });
        assert_agree(&format!("matmul on {profile}"), router, apart);
    }
    for n in [500.0, 700.0, 1000.0] {
        let (_, sim) = engine("rtx4090");
        let simulated = sim.batch_ns(&plan(&matmul(n as usize)), 1) as f64;
        assert!((published_4090_matmul_ns(n) / simulated - 1.0).abs() < 0.01, "{n}");
    }
}

fn add(n: usize) -> Tensor {
    (input("x", &[n]) + input("y", &[n])).unwrap()
}

#[test]
fn additions_break_even_where_published_figures_and_this_cpu_say() {
    let _alone = alone();
    let published = [
        ("rtx4090", vec![(1_000_000, 5980e3)], 1e7),
        ("dx12-laptop", vec![(20_000, 1043e3), (100_000, 1222e3), (1_000_000, 3742e3), (2_000_000, 6498e3)], 2e6),
    ];
    for (profile, figures, most) in published {
        let (engine, sim) = engine(profile);
        // At no size, if the CPU is what it can be. Unoptimised, an addition computes where it should move memory, and
        // the curve of memory, which has one in it, counts it twice.
        if !cfg!(debug_assertions) {
            let router = crossover(&sizes(1e3, most, 1.3), |n| predicted(&engine, &add(n)));
            let apart = crossover(&sizes(2e4, 2e6, 2.5), |n| {
                [cpu_ns(&engine, &(numbers(&[n]) + others(&[n])).unwrap()), sim.batch_ns(&plan(&add(n)), 1) as f64]
            });
            assert_eq!((router, apart), (None, None), "{profile}");
        }
        // What the router thinks of the device is what was published.
        for (n, published_ns) in figures {
            let [_, device] = predicted(&engine, &add(n));
            assert!((device / published_ns - 1.0).abs() < 0.1, "{n}: {device} instead of {published_ns}");
        }
    }
}

/// Ten operations on each element.
fn chain(x: &Tensor) -> Tensor {
    (0..5).fold(x.clone(), |y, _| ((y.tanh().unwrap() * 0.9).unwrap() + x).unwrap().sigmoid().unwrap())
}

#[test]
fn fusing_moves_the_break_even() {
    let _alone = alone();
    // A profile that breaks even at sizes whose times are not mostly noise.
    let (engine, sim) = engine(if cfg!(debug_assertions) { "dx12-laptop" } else { "modern-discrete" });
    let links: [fn(&Tensor) -> Tensor; 4] = [
        |x| x.tanh().unwrap(),
        |x| (x * 0.9).unwrap(),
        |x| (x + &input("y", x.shape().dims())).unwrap(),
        |x| x.sigmoid().unwrap(),
    ];
    // Five times each, one batch after the other.
    let separate = |n: usize| {
        let each = links.iter().map(|link| predicted(&engine, &link(&input("x", &[n]))));
        each.fold([0.0; 2], |[cpu, device], [a, b]| [cpu + 5.0 * a, device + 5.0 * b])
    };
    let list = sizes(30.0, 4e6, 1.1);
    let fused = crossover(&list, |n| predicted(&engine, &chain(&input("x", &[n])))).expect("it pays somewhere");
    let separate = crossover(&list, separate);
    assert!(separate.is_none_or(|separate| separate > 2.0 * fused), "{separate:?} {fused}");
    let apart = crossover(&sizes(fused / 4.0, fused * 4.0, 1.5), |n| {
        let output = chain(&numbers(&[n]));
        [cpu_ns(&engine, &output), sim.batch_ns(&plan(&output), 1) as f64]
    });
    assert_agree("ten operations at once", Some(fused), apart);
}

/// Batches until one runs on this device, not merely to have a look; at most so many.
fn until(engine: &Engine, output: &Tensor, device: &str, most: usize) -> usize {
    let there = |decision: Decision| decision.device == device && !decision.reason.starts_with("to see");
    (1..=most).find(|_| there(run(engine, output))).unwrap_or(usize::MAX)
}

#[test]
fn a_device_that_becomes_slow_is_left_and_returned_to() {
    let _alone = alone();
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 5_000 } else { 100_000 }]));
    let (plain, _) = engine("modern-discrete");
    let sim = modern();
    // A fifth of what the CPU takes.
    let usual = cpu_ns(&plain, &output) / 5.0 / sim.batch_ns(&plan(&output), 1) as f64;
    let engine = engine_on(&sim, usual);
    assert!(until(&engine, &output, "gpu:0", 20) <= 20);
    (0..100).for_each(|_| drop(run(&engine, &output)));
    // One spike changes nothing.
    sim.add_spike_ns(100_000_000);
    let spike = run(&engine, &output);
    assert_eq!((&*spike.device, spike.actual_ns > 100_000_000), ("gpu:0", true));
    let after: Vec<Decision> = (0..20).map(|_| run(&engine, &output)).collect();
    assert!(after.iter().all(|d| d.device == "gpu:0" || d.reason.starts_with("to see")), "{:?}", after[0]);

    sim.set_slowdown(10.0 * usual).unwrap();
    let left = until(&engine, &output, "cpu", 100);
    (0..100).for_each(|_| drop(run(&engine, &output)));
    sim.set_slowdown(usual).unwrap();
    let returned = until(&engine, &output, "gpu:0", 1000);
    assert!(left <= 20 && returned <= 200, "left after {left} batches, returned to after {returned}");
}

#[test]
fn data_that_lies_on_a_device_draws_the_work_there() {
    let _alone = alone();
    let (plain, _) = engine("modern-discrete");
    let sim = modern();
    // The same device, for an engine that may use nothing else: what it pins lies there.
    let there =
        Engine::with_backends(Config { device: Device::Gpu(Some(0)), ..config(None) }, vec![Arc::new(sim.clone())])
            .unwrap();
    // A sum: nearly all of its time there is the way.
    let data = numbers(&[4_000_000]);
    let sum = |x: &Tensor| x.sum(&[], false).unwrap();
    // As slow as it takes for the CPU to be three times as fast if the data has to be sent, and half as fast if not.
    let times = 3.0 * cpu_ns(&plain, &sum(&data)) / sim.batch_ns(&plan(&sum(&data)), 1) as f64;
    let engine = engine_on(&sim, times);
    let pinned = there.pin(&data).unwrap();
    let sent = run(&engine, &sum(&data));
    assert_eq!(sent.device, "cpu", "{}", sent.reason);
    let lies = run(&engine, &sum(&pinned));
    assert_eq!((&*lies.device, lies.timings.upload_bytes), ("gpu:0", 0), "{}", lies.reason);
    let upload = |decision: &Decision| decision.predicted[1].parts.upload_ns;
    assert!(upload(&sent) > 0.0 && upload(&lies) == 0.0);

    // Both again and again, in turns: what one took says nothing wrong about the other.
    let devices: Vec<String> =
        (0..20).flat_map(|_| [&data, &pinned].map(|x| run(&engine, &sum(x)).device)).skip(20).collect();
    let right = devices.chunks(2).filter(|pair| pair[0] == "cpu" && pair[1] == "gpu:0").count();
    assert!(right >= 8, "{devices:?}");
}

#[test]
fn a_file_that_cant_be_trusted_costs_a_measurement_and_nothing_else() {
    let _alone = alone();
    let dir = folder("corrupt");
    std::fs::create_dir_all(&dir).unwrap();
    let path = CostsFile::path(&dir, &breakeven::cpu_name(), 1);
    std::fs::write(&path, "{\"version\": 1, \"cpu\": \"").unwrap();
    let sim = modern();
    let new = || Engine::with_backends(config(Some(dir.clone())), vec![Arc::new(sim.clone())]).unwrap();
    let engine = new();
    let x = numbers(&[1000]);
    let decision = run(&engine, &x.exp().unwrap());
    assert_eq!(decision.device, "cpu");
    assert!(decision.predicted.is_empty() && decision.reason.contains("measured"), "{}", decision.reason);
    let why = engine.load_costs().expect("it says why");
    assert!(why.contains(&*path.to_string_lossy()) && why.contains("`breakeven scan`"), "{why}");
    assert_eq!((engine.costs("cpu"), engine.costs("gpu:0")), (None, None));

    // What is measured now takes its place, and the next engine reads it.
    measure(&engine, "cpu", Effort::Probe);
    measure(&engine, "gpu:0", Effort::Probe);
    let next = new();
    assert_eq!(next.load_costs(), None);
    assert!(next.costs("cpu").is_some() && next.costs("gpu:0").is_some());
    assert_eq!(run(&next, &x.exp().unwrap()).predicted.len(), 2);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A simulated device that fails while it is told to.
struct Failing {
    sim: SimBackend,
    fails: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
}

struct FailingPlan {
    inner: Arc<dyn Prepared>,
    fails: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
}

impl Backend for Failing {
    fn id(&self) -> &str {
        self.sim.id()
    }

    fn name(&self) -> &str {
        "a simulated device that fails"
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        let (fails, attempts) = (self.fails.clone(), self.attempts.clone());
        Ok(Arc::new(FailingPlan { inner: self.sim.prepare(plan)?, fails, attempts }))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Prepared for FailingPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        self.inner.run(inputs, outputs, threads)
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        self.inner.run_tasks(tasks, inputs, results, stride, failed);
    }

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        self.attempts.fetch_add(1, Relaxed);
        if self.fails.load(Relaxed) {
            return Err(RunError::Device { device: "gpu:0".into(), message: "injected".into() });
        }
        self.inner.run_batch(inputs, stay)
    }
}

#[test]
fn a_device_that_fails_costs_time_and_no_result() {
    let _alone = alone();
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 10_000 } else { 100_000 }]));
    let sim = modern();
    let (fails, attempts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let failing = Failing { sim, fails: fails.clone(), attempts: attempts.clone() };
    let engine = Engine::with_backends(config(None), vec![Arc::new(failing)]).unwrap();
    let expected = engine.run_with(&[&output], &on(Device::Cpu)).unwrap().outputs;
    measure(&engine, "cpu", Effort::Probe);
    measure(&engine, "gpu:0", Effort::Probe);
    let run = || {
        let ran = engine.run_with(&[&output], &RunOptions::default()).unwrap();
        assert_eq!(ran.outputs[0].as_bytes(), expected[0].as_bytes());
        ran.decision
    };
    assert_eq!(run().device, "gpu:0");

    fails.store(true, Relaxed);
    let decision = run();
    assert_eq!((&*decision.device, decision.fallbacks, decision.faults.len()), ("cpu", 1, 1));
    assert!(
        decision.reason.contains("gpu:0 was chosen") && decision.reason.contains("injected"),
        "{}",
        decision.reason
    );
    // It is not asked in vain before every batch.
    let before = attempts.load(Relaxed);
    let failed = (0..200).filter(|_| run().fallbacks > 0).count() as u64;
    assert_eq!(attempts.load(Relaxed) - before, failed);
    assert!((1..=20).contains(&failed), "{failed}");

    fails.store(false, Relaxed);
    let until = (1..=300).find(|_| run().device == "gpu:0");
    assert!(until.is_some_and(|batches| batches <= 100), "{until:?}");
}

#[test]
fn nothing_is_explored_without_a_budget() {
    let _alone = alone();
    // Enough that a few looks of 3.5 ms fit into 200 batches.
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 200 } else { 200_000 }]));
    let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090").unwrap()).unwrap();
    let looks = |explore: f64| {
        let config = Config { explore, ..config(None) };
        let engine = Engine::with_backends(config, vec![Arc::new(sim.clone())]).unwrap();
        measure(&engine, "cpu", Effort::Probe);
        measure(&engine, "gpu:0", Effort::Probe);
        (0..200).filter(|_| run(&engine, &output).device != "cpu").count()
    };
    // A budget as large as all its time has room for some of the 3.5 ms that a look takes.
    assert_eq!(looks(0.0), 0);
    assert!(looks(1.0) > 0);
}
