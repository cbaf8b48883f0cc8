//! What is chosen at first, against what would have been best.

use crate::clock::Clock;
use crate::{alone, config, cpu_ns, engine, plan, run};
use breakeven::cost::expression;
use breakeven::{Config, Engine};
use std::sync::Arc;

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
