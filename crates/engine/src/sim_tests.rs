//! The simulated device: its results are the CPU's, its times the profile's, and it is a device like any other.

use super::*;
use crate::{Config, Decision, Device, Engine, RunOptions, Tensor, View};
use breakeven_ir::DType;

fn sim(profile: &str) -> SimBackend {
    SimBackend::new("gpu:0", SimProfile::by_name(profile).unwrap()).unwrap()
}

/// An engine that may use nothing but this device.
fn engine_on(sim: &SimBackend) -> Engine {
    let config = Config { threads: Some(1), device: Device::Gpu(Some(0)), strict: true, ..Config::default() };
    Engine::with_backends(config, vec![Arc::new(sim.clone())]).unwrap()
}

fn numbers(shape: &[usize]) -> Tensor {
    let elems: usize = shape.iter().product();
    Tensor::from_vec((0..elems).map(|i| (i % 1000) as f32 / 300.0 - 1.0).collect::<Vec<f32>>(), shape).unwrap()
}

#[track_caller]
fn run(engine: &Engine, tensor: &Tensor) -> Decision {
    engine.run_with(&[tensor], &RunOptions::default()).unwrap().decision
}

/// Runs a published operation, which must take the published time.
#[track_caller]
fn check_published(profile: &str, tensor: &Tensor, published_us: f64) {
    let sim = sim(profile);
    let timings = run(&engine_on(&sim), tensor).timings;
    let off = timings.total_ns as f64 / (1e3 * published_us) - 1.0;
    assert!(off.abs() < 1e-5, "{profile}: {published_us} us published, {} ns here", timings.total_ns);
    assert_eq!(sim.virtual_ns(), timings.total_ns);
    assert_eq!((timings.submits, timings.passes, timings.dispatches, timings.kernels), (1, 1, 1, 1));
}

/// Two inputs of the same data would be one.
fn two(shape: &[usize]) -> (Tensor, Tensor) {
    (numbers(shape), Tensor::from_vec(vec![0.5f32; shape.iter().product()], shape).unwrap())
}

#[test]
fn published_adds_take_the_published_time() {
    let laptop = [(20_000, 1043.0), (100_000, 1222.0), (1_000_000, 3742.0), (2_000_000, 6498.0)];
    for (elems, us) in laptop {
        let (x, y) = two(&[elems]);
        check_published("dx12-laptop", &(&x + &y).unwrap(), us);
    }
    let (x, y) = two(&[1_000_000]);
    check_published("rtx4090", &(&x + &y).unwrap(), 5980.0);
}

#[test]
fn a_published_sigmoid_takes_the_published_time() {
    check_published("rtx4090", &numbers(&[1_000_000]).sigmoid().unwrap(), 5810.0);
}

#[test]
fn published_products_take_the_published_time() {
    for (n, us) in [(500, 4590.0), (1000, 7840.0)] {
        let (x, y) = two(&[n, n]);
        check_published("rtx4090", &x.matmul(&y).unwrap(), us);
    }
}

#[test]
fn the_modern_card_is_what_it_says() {
    let costs = sim("modern-discrete").device.profile.costs().clone();
    let product = |n: usize| {
        let x = Tensor::input("x", DType::F32, [n, n]).unwrap();
        let plan = Plan::new(&[&x.matmul(&x).unwrap()]).unwrap();
        2.0 * (n as f64).powi(3) / costs.kernel_ns(&Work::of(&plan.kernels[0]), 1, 1.0) as f64
    };
    let speeds: Vec<f64> = [16, 64, 200, 512, 1000, 3000, 4096].into_iter().map(product).collect();
    assert!(speeds.is_sorted(), "GFLOP/s: {speeds:?}");
    assert!((product(8192) / 20_000.0 - 1.0).abs() < 0.01);
    let map = |n: usize| {
        let x = Tensor::input("x", DType::F32, [n]).unwrap();
        costs.kernel_ns(&Work::of(&Plan::new(&[&(&x + 1.0).unwrap()]).unwrap().kernels[0]), 1, 1.0)
    };
    assert_eq!((map(1), map(700_000_000)), (3_000, 12_000_000));
    assert_eq!((costs.upload_ns(25_000_000, 1.0), costs.call_ns(1.0)), (1_010_000, 30_000));
}

#[test]
fn results_have_the_bits_of_the_cpu() {
    let sim = sim("modern-discrete");
    let on_sim = engine_on(&sim);
    let on_cpu = Engine::with_config(Config { threads: Some(2), ..Config::default() }).unwrap();
    let x = numbers(&[37, 53]);
    let programs = [
        x.sigmoid().unwrap(),
        x.softmax(-1).unwrap(),
        x.matmul(&x.transpose().unwrap()).unwrap().relu().unwrap(),
        x.sum(&[0], false).unwrap(),
        x.cumsum(1).unwrap(),
        x.gt(0.0).unwrap(),
    ];
    for tensor in &programs {
        let ran = on_sim.run_with(&[tensor], &RunOptions::default()).unwrap();
        assert_eq!(ran.decision.device, "gpu:0");
        assert_eq!(ran.outputs[0].as_bytes(), on_cpu.run(&[tensor]).unwrap()[0].as_bytes());
    }
}

#[test]
fn a_plan_knows_exactly_what_it_will_take() {
    for (name, _) in SimProfile::shipped() {
        let sim = sim(name);
        let engine = engine_on(&sim);
        for slowdown in [1.0, 3.7] {
            sim.set_slowdown(slowdown).unwrap();
            let x = numbers(&[60, 70]);
            let tensor = x.matmul(&x.transpose().unwrap()).unwrap().softmax(-1).unwrap().cumsum(0).unwrap();
            let plan = Arc::new(Plan::new(&[&tensor]).unwrap());
            let prepared = sim.prepare(&plan).unwrap();
            let decision = run(&engine, &tensor);
            assert_eq!(decision.timings.total_ns, prepared.estimate_ns());
            assert_eq!(decision.timings.total_ns, sim.batch_ns(&plan, 1));
            assert_eq!(decision.kernel_ns, prepared.kernel_ns());
            assert_eq!(decision.kernel_ns.len(), plan.kernels.len());
            assert!(decision.kernel_ns.iter().all(|&ns| ns > 0));
            assert_eq!(decision.timings.device_ns, decision.kernel_ns.iter().sum::<u64>());
            let bytes = |infos: usize| infos as u64 * 4;
            assert_eq!((decision.timings.upload_bytes, decision.timings.readback_bytes), (bytes(4200), bytes(3600)));
        }
    }
}

#[test]
fn many_tasks_pay_the_fixed_part_once() {
    let sim = sim("rtx4090");
    let engine = engine_on(&sim);
    let x = Tensor::input("x", DType::F32, [100]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let data = vec![0.5f32; 100];
    let tasks: Vec<[View<'_>; 1]> = vec![[data.as_slice().into()]; 1000];
    let many = program.run_many(&tasks).unwrap();
    assert_eq!(many.slice::<f32>(999, 0).unwrap()[99], 0.5f32.exp());
    let took = sim.virtual_ns();
    assert_eq!(took, sim.batch_ns(program.plan(), 1000));
    assert!((3_500_000..4_000_000).contains(&took), "{took}");

    // Tasks of other sizes are part of the same batch.
    let short = vec![0.5f32; 7];
    let mixed: Vec<[View<'_>; 1]> =
        (0..1000).map(|at| [if at % 2 == 0 { data.as_slice().into() } else { short.as_slice().into() }]).collect();
    let many = program.run_many(&mixed).unwrap();
    assert_eq!(many.slice::<f32>(999, 0).unwrap(), [0.5f32.exp(); 7]);
    assert!((3_500_000..took).contains(&(sim.virtual_ns() - took)), "{}", sim.virtual_ns() - took);
}

#[test]
fn one_call_for_many_tasks_is_one_batch() {
    let sim = sim("rtx4090");
    let plan = Arc::new(Plan::new(&[&Tensor::input("x", DType::F32, [16]).unwrap().exp().unwrap()]).unwrap());
    let (input, mut results) = (vec![0u8; 64], vec![0u8; 128]);
    let mut failures = 0;
    let prepared = sim.prepare(&plan).unwrap();
    prepared.run_tasks(2, &[&input, &input], &mut results, 64, &mut |_, _| failures += 1);
    assert_eq!(failures, 0);
    assert_eq!(results[124..], 1.0f32.to_ne_bytes());
    assert_eq!(sim.virtual_ns(), sim.batch_ns(&plan, 2));
    let timings = prepared.run(&[&input], &mut [&mut results[..64]], true).unwrap();
    assert_eq!(timings.total_ns, prepared.estimate_ns());

    // No tasks are no batch.
    let before = sim.virtual_ns();
    prepared.run_tasks(0, &[], &mut [], 64, &mut |_, _| failures += 1);
    assert_eq!(sim.run_mixed(&[], &mut [], &mut |_, _| failures += 1), Ok(Timings::default()));
    assert_eq!((sim.virtual_ns(), sim.batch_ns(&plan, 0), failures), (before, 0, 0));
}

#[test]
fn what_lies_on_the_device_is_not_sent_again() {
    let sim = sim("rtx4090");
    let engine = engine_on(&sim);
    let (x, y) = two(&[250_000]);
    let both = run(&engine, &(&x + &y).unwrap()).timings;
    assert_eq!((both.uploads, both.upload_bytes), (1, 2_000_000));

    let before = sim.virtual_ns();
    let (x, y) = (engine.pin(&x).unwrap(), engine.pin(&y).unwrap());
    let each = (1_500_000.0f64 + 1e6 / 23.4).round() as u64;
    assert_eq!(sim.virtual_ns() - before, 2 * each);

    let none = run(&engine, &(&x + &y).unwrap()).timings;
    assert_eq!((none.uploads, none.upload_bytes, none.readback_bytes), (0, 0, 1_000_000));
    assert_eq!(both.total_ns - none.total_ns, (1_500_000.0f64 + 2e6 / 23.4).round() as u64);

    // Nor is what was made there.
    let before = sim.virtual_ns();
    let made = engine.run_resident(&[&(&x + &y).unwrap()]).unwrap();
    assert_eq!(sim.virtual_ns() - before, 800_000 + none.device_ns);
    let next = run(&engine, &(&made[0] * 2.0).unwrap()).timings;
    assert_eq!((next.upload_bytes, next.readback_bytes), (0, 1_000_000));
    // It costs when the host asks for it.
    let before = sim.virtual_ns();
    assert_eq!(made[0].as_data().unwrap().as_bytes()[..4], (-0.5f32).to_ne_bytes());
    assert_eq!(sim.virtual_ns() - before, (1_200_000.0f64 + 1e6 / 1.9).round() as u64);
}

#[test]
fn values_of_another_device_are_sent() {
    let (one, other) = (sim("rtx4090"), sim("rtx4090"));
    let x = engine_on(&one).pin(&numbers(&[1000])).unwrap();
    assert_eq!(run(&engine_on(&other), &x.exp().unwrap()).timings.upload_bytes, 4000);
}

#[test]
fn a_slow_while_passes_and_a_spike_is_one_batch() {
    let sim = sim("modern-discrete").with_slowdown(2.0).unwrap();
    let engine = engine_on(&sim);
    let x = numbers(&[100_000]).exp().unwrap();
    let slow = run(&engine, &x).timings.total_ns;
    sim.set_slowdown(1.0).unwrap();
    let normal = run(&engine, &x).timings.total_ns;
    assert!(slow.abs_diff(2 * normal) <= 4, "{slow}, {normal}");
    sim.add_spike_ns(123_456_789);
    assert_eq!(run(&engine, &x).timings.total_ns, normal + 123_456_789);
    assert_eq!(run(&engine, &x).timings.total_ns, normal);
    assert_eq!(sim.virtual_ns(), slow + 3 * normal + 123_456_789);
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(sim.set_slowdown(factor), Err(Error::Setting { name: "slowdown", .. })), "{factor}");
    }
    assert_eq!(run(&engine, &x).timings.total_ns, normal);
}

#[test]
fn a_wrong_index_is_the_datas_fault_here_too() {
    let sim = sim("dx12-laptop");
    let positions = Tensor::from_slice(&[0i32, 7], [2]).unwrap();
    let taken = numbers(&[5]).take(&positions, 0).unwrap();
    let error = engine_on(&sim).run(&[&taken]).unwrap_err();
    assert_eq!(error, Error::Run(RunError::TakeIndex { index: 7, extent: 5 }));
    assert!(sim.virtual_ns() > 0);
}

#[test]
fn it_is_listed_as_what_it_is() {
    let sim = sim("rtx4090");
    assert!(sim.is_simulated());
    let devices = engine_on(&sim).devices();
    assert_eq!(
        (devices[1].id.as_str(), devices[1].name.as_str()),
        ("gpu:0", "RTX 4090, set up for each call (simulated)")
    );
    assert!(devices[1].quirks[0].contains("published figures"));
    assert!(!Cpu::new(1).unwrap().is_simulated());
}
