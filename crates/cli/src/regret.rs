//! How good the choice of a device is: random expressions that no curve was fitted on enter, a table of regret leaves.
//!
//! Every expression is run on every device, in turns; what the router chose at first sight is compared with the best
//! device known afterwards, beside two naive rules. To make both sides win often on a machine without a fast GPU, the
//! CPU is slowed by really waiting.

use breakeven::cost::{Costs, Effort, Expression, expression};
use breakeven::{Config, Device, Engine, RunOptions, Tensor};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Seeds from here on are never used for measuring costs.
const HELD_OUT: u64 = 1_000_000;
/// Elements of an expression at most.
const MOST_ELEMENTS: f64 = 1e6;
/// The naive rule that a library once shipped.
const NAIVE_ELEMENTS: usize = 100_000;
/// How many times slower the CPU is made.
const SLOWED: [u32; 4] = [1, 16, 64, 256];

/// Regret on one device beside a CPU that is so many times slower than this machine's.
#[derive(Clone, Debug, Serialize)]
pub struct Regret {
    /// The device beside the CPU.
    pub device: String,
    /// How many times slower the CPU was made.
    pub cpu_slowed: u32,
    /// Expressions.
    pub expressions: usize,
    /// How often the device was really better.
    pub device_better: usize,
    /// What was chosen at first sight.
    pub auto: Rule,
    /// The device above 100,000 elements.
    pub above_100k: Rule,
    /// Always the CPU.
    pub always_cpu: Rule,
    /// How far predictions were off, on the CPU and on the device: median and P90.
    pub error: [[f64; 2]; 2],
    /// How far times were off when some expressions were measured a second time, at the end: what no prediction can be
    /// better than. Median and P90 on the CPU and on the device.
    pub again: [[f64; 2]; 2],
    /// The worst choice, in words.
    pub worst: String,
    /// Each expression.
    pub rows: Vec<Row>,
}

/// Time of the chosen device over the best one's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rule {
    /// Median of all expressions.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// 95 of 100 are no worse.
    pub p95: f64,
    /// All expressions together, over the CPU alone.
    pub total_over_cpu: f64,
}

/// One expression's times, on the CPU and on the device.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The expression.
    pub text: String,
    /// Why it was placed where it was.
    pub reason: String,
    /// Elements of its inputs.
    pub elements: usize,
    /// What it took.
    pub ns: [f64; 2],
    /// What it took at the end, where that was measured.
    pub again_ns: Option<[f64; 2]>,
    /// What had been predicted.
    pub predicted_ns: [f64; 2],
    /// 0 for the CPU, 1 for the device.
    pub chosen: usize,
}

/// Measures the devices and then the regret; `told` hears of the progress and may end it.
pub fn run(
    config: &Config,
    wanted: &[Device],
    effort: Effort,
    expressions: usize,
    told: &mut dyn FnMut(f64, &str) -> ControlFlow<()>,
) -> Result<Vec<Regret>, Failure> {
    let base = Engine::with_config(Config { cache_dir: None, ..config.clone() })?;
    let is_wanted = |id: &String| wanted.is_empty() || wanted.iter().any(|device| device.to_string() == *id);
    let ids = base.devices().into_iter().map(|device| device.id);
    let devices: Vec<String> = ids.filter(|id| id != "cpu" && is_wanted(id)).collect();
    let parts = (devices.len() * (1 + SLOWED.len())).max(1) as f64;
    let mut costs: Vec<(String, Costs)> = Vec::new();
    for device in std::iter::once("cpu".to_owned()).chain(devices.iter().cloned()) {
        let mut watch = |progress: &breakeven::cost::Progress| {
            let share = costs.len().saturating_sub(1) as f64 + progress.done as f64 / progress.total.max(1) as f64;
            told(share / parts, &format!("{}, {}", progress.device, progress.what))
        };
        let measured = base.measure(&device, effort, &mut watch)?;
        if !measured.complete {
            return Ok(Vec::new());
        }
        costs.push((device, measured.costs));
    }
    let mut done = devices.len() as f64;
    let mut regrets = Vec::new();
    for (at, device) in devices.iter().enumerate() {
        let number = device.trim_start_matches("gpu:").parse().unwrap_or(at);
        for slowed in SLOWED {
            let settings = Config { cache_dir: None, device: Device::Auto, slow_cpu: slowed, ..config.clone() };
            let engine = Engine::with_config(settings)?;
            engine.set_costs("cpu", costs[0].1.clone().times(f64::from(slowed)))?;
            engine.set_costs(device, costs[at + 1].1.clone())?;
            let mut rows = Vec::new();
            for seed in 0..expressions as u64 {
                let share = (done + seed as f64 / expressions as f64) / parts;
                if told(share, &format!("{device} beside a CPU slowed {slowed} times")).is_break() {
                    break;
                }
                let expression = expression(HELD_OUT + seed, MOST_ELEMENTS, true).map_err(breakeven::Error::from)?;
                rows.push(row(&engine, number, slowed, &expression)?);
            }
            // Those of the start again: a machine that others share is another one a minute later.
            for (seed, row) in rows.iter_mut().enumerate().step_by(AGAIN) {
                if told((done + 1.0) / parts, "some of them again").is_break() {
                    break;
                }
                let again = expression(HELD_OUT + seed as u64, MOST_ELEMENTS, true).map_err(breakeven::Error::from)?;
                row.again_ns = Some(measure(&engine, number, slowed, &again)?);
            }
            done += 1.0;
            if !rows.is_empty() {
                regrets.push(regret(device, slowed, &rows));
            }
        }
    }
    Ok(regrets)
}

fn row(engine: &Engine, number: usize, slowed: u32, expression: &Expression) -> Result<Row, Failure> {
    let output = &expression.output;
    let wishes = wishes(number);
    // Its pipelines are made first: while they are not there, there is nothing to choose.
    engine.run_with(&[output], &on(wishes[1]))?;
    let decision = engine.run_with(&[output], &RunOptions::default())?.decision;
    let chosen = usize::from(decision.device != "cpu");
    let expected = |device: &str| {
        let found = decision.predicted.iter().find(|predicted| predicted.device == device);
        found.map_or(f64::NAN, |predicted| predicted.expected_ns as f64)
    };
    let predicted_ns = [expected("cpu"), expected(&wishes[1].to_string())];
    let ns = measure(engine, number, slowed, expression)?;
    let (text, reason) = (expression.text.clone(), decision.reason);
    Ok(Row { text, reason, elements: expression.elements, ns, again_ns: None, predicted_ns, chosen })
}

/// What an expression takes on the CPU and on the device, in turns.
fn measure(engine: &Engine, number: usize, slowed: u32, expression: &Expression) -> Result<[f64; 2], Failure> {
    let mut samples = [Vec::new(), Vec::new()];
    let warm_up = [WARM_UP.max(OWN_WARM_UP * slowed), WARM_UP];
    let begun = Instant::now();
    while samples[0].len() < LEAST || (begun.elapsed() < BUDGET && samples[0].len() < MOST) {
        for ((wish, samples), warm_up) in wishes(number).iter().zip(&mut samples).zip(warm_up) {
            samples.push(hot_ns(engine, &expression.output, &on(*wish), warm_up)?);
        }
    }
    let median = |samples: &mut Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    };
    Ok(samples.each_mut().map(median))
}

fn wishes(number: usize) -> [Device; 2] {
    [Device::Cpu, Device::Gpu(Some(number))]
}

fn on(device: Device) -> RunOptions {
    RunOptions { device: Some(device), strict: Some(true), ..RunOptions::default() }
}

/// Every so many expressions are measured again at the end.
const AGAIN: usize = 8;
/// Rounds of an expression: at least, at most, and how long.
const LEAST: usize = 3;
const MOST: usize = 15;
const BUDGET: Duration = Duration::from_millis(40);
/// A sample is a loop of calls, as a program would make them: the first calls after a pause find threads and caches asleep,
/// and do not count.
const WARM_UP: Duration = Duration::from_millis(1);
const SAMPLE: Duration = Duration::from_millis(2);
/// Calls of a sample: a slowed CPU is in no sample for long, and a single call says as much about the moment as about the CPU.
/// With one the CPU at 256 times was off by 49 % in one of ten when it was measured again.
const LEAST_CALLS: usize = 3;
/// A sample that has taken longer is enough with one.
const LONGEST: Duration = Duration::from_millis(500);
/// What warms a slowed CPU up is what it computes, not how long it waits: helpers are woken after some calls whose work they
/// would have shared, and memory has to come into their caches. With 1 ms of waiting the median error at 64 times was 17 % beside
/// Vulkan and 21 % beside GL, with this 14 and 15 %.
const OWN_WARM_UP: Duration = Duration::from_micros(400);

fn hot_ns(engine: &Engine, output: &Tensor, options: &RunOptions, warm_up: Duration) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut times = Vec::new();
    loop {
        let is_warm = begun.elapsed() >= warm_up;
        let ns = engine.run_with(&[output], options)?.decision.actual_ns as f64;
        // Of calls that take longer than all that, few do.
        if is_warm || begun.elapsed() >= warm_up + SAMPLE {
            times.push(ns);
        }
        let is_enough = begun.elapsed() >= warm_up + SAMPLE && times.len() >= LEAST_CALLS;
        if is_enough || (!times.is_empty() && begun.elapsed() >= LONGEST) {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn regret(device: &str, cpu_slowed: u32, rows: &[Row]) -> Regret {
    let rule = |choose: &dyn Fn(&Row) -> usize| {
        let mut ratios: Vec<f64> = rows.iter().map(|row| row.ns[choose(row)] / row.ns[0].min(row.ns[1])).collect();
        ratios.sort_by(f64::total_cmp);
        let total: f64 = rows.iter().map(|row| row.ns[choose(row)]).sum();
        Rule {
            median: ratios[ratios.len() / 2],
            mean: ratios.iter().sum::<f64>() / ratios.len() as f64,
            p95: ratios[(ratios.len() * 95 / 100).min(ratios.len() - 1)],
            total_over_cpu: total / rows.iter().map(|row| row.ns[0]).sum::<f64>(),
        }
    };
    let off_by = |other: &dyn Fn(&Row, usize) -> f64, side: usize| {
        let mut off: Vec<f64> = rows.iter().map(|row| (other(row, side) / row.ns[side] - 1.0).abs()).collect();
        off.retain(|off| off.is_finite());
        off.sort_by(f64::total_cmp);
        let at = |share: usize| off.get(off.len() * share / 100).copied().unwrap_or(f64::NAN);
        [at(50), at(90)]
    };
    Regret {
        device: device.to_owned(),
        cpu_slowed,
        expressions: rows.len(),
        device_better: rows.iter().filter(|row| row.ns[1] < row.ns[0]).count(),
        auto: rule(&|row| row.chosen),
        above_100k: rule(&|row| usize::from(row.elements > NAIVE_ELEMENTS)),
        always_cpu: rule(&|_| 0),
        error: [0, 1].map(|side| off_by(&|row, side| row.predicted_ns[side], side)),
        again: [0, 1].map(|side| off_by(&|row, side| row.again_ns.map_or(f64::NAN, |ns| ns[side]), side)),
        worst: worst(rows),
        rows: rows.to_vec(),
    }
}

/// What was chosen worst.
fn worst(rows: &[Row]) -> String {
    let ratio = |row: &Row| row.ns[row.chosen] / row.ns[0].min(row.ns[1]);
    let Some(row) = rows.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else { return String::new() };
    let us = |ns: f64| ns / 1e3;
    format!(
        "{:.2}x for {}: CPU {:.0} us, device {:.0} us; {}",
        ratio(row),
        row.text,
        us(row.ns[0]),
        us(row.ns[1]),
        row.reason
    )
}

/// The table for people.
pub fn table(regrets: &[Regret]) -> String {
    let mut text = String::from(
        "Time of the chosen device over the best one's (1.00 is perfect), over expressions that no curve was fitted on.\n\n\
         device  CPU slowed  expressions  better there   auto: median mean  p95  over CPU   above 100k: mean   \
         CPU: mean   error CPU p50 p90   error device p50 p90   measured again: CPU p50 p90   device p50 p90\n",
    );
    for r in regrets {
        text += &format!(
            "{:<7} {:>9}x {:>12} {:>13} {:>14.2} {:>4.2} {:>5.2} {:>8.2} {:>18.2} {:>11.2} {:>12.0} % {:>3.0} % {:>14.0} % {:>3.0} % {:>19.0} % {:>3.0} % {:>7.0} % {:>3.0} %\n",
            r.device,
            r.cpu_slowed,
            r.expressions,
            r.device_better,
            r.auto.median,
            r.auto.mean,
            r.auto.p95,
            r.auto.total_over_cpu,
            r.above_100k.mean,
            r.always_cpu.mean,
            100.0 * r.error[0][0],
            100.0 * r.error[0][1],
            100.0 * r.error[1][0],
            100.0 * r.error[1][1],
            100.0 * r.again[0][0],
            100.0 * r.again[0][1],
            100.0 * r.again[1][0],
            100.0 * r.again[1][1],
        );
    }
    text.push('\n');
    for r in regrets {
        text += &format!("worst of {} at {}x: {}\n", r.device, r.cpu_slowed, r.worst);
    }
    text
}
