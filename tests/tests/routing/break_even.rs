//! Where the break-even lies, against what published figures and this CPU imply.

use crate::{alone, chain, cpu_ns, engine, input, numbers, others, plan, predicted};
use breakeven::Tensor;

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
    // As far as two slow cores and two fast ones break even.
    for (profile, most) in [("rtx4090", 3000.0), ("dx12-laptop", 2400.0), ("modern-discrete", 1500.0)] {
        let (engine, sim) = engine(profile);
        let router = crossover(&sizes(40.0, 2.0 * most, 1.05), |n| predicted(&engine, &matmul(n)));
        let apart = crossover(&sizes(most / 60.0, most, 1.2), |n| {
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
