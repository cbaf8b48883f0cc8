//! What remembering results costs and saves, measured on this machine:
//! `cargo run --release -p breakeven --example cached`.
//!
//! Arms take turns, so that whatever else the machine does hits all of them. Medians of 31 rounds; opening of 11.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use breakeven::{CacheOptions, Config, DType, Device, Engine, Many, Result, Tensor, View};
use std::path::PathBuf;
use std::time::Instant;

/// Rounds in which all arms take a turn.
const ROUNDS: usize = 31;
/// Tasks of a batch.
const TASKS: usize = 1000;

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn time_ns(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Ten operations.
fn chain(x: &Tensor) -> Result<Tensor> {
    let t = ((x * 1.5)? + 0.5)?;
    let t = ((t * x.sigmoid())? - 0.25)?.abs()?.sqrt()?;
    Ok((t + x)?.gelu()?)
}

fn main() -> Result<()> {
    let folder = Folder(std::env::temp_dir().join(format!("breakeven-cached-{}", std::process::id())));
    let engine = Engine::with_config(Config { device: Device::Cpu, ..Config::default() })?;
    println!("{}", engine.device_name("cpu"));

    println!("\n{TASKS} tasks a batch, ns a task     uncached    all hits  all misses   hit/uncached  miss/uncached");
    for elems in [9, 256, 900] {
        // Each round's misses are values that no round had before.
        let fresh = |round: usize| -> Vec<Vec<f32>> {
            let value = |task: usize, i: usize| (round * TASKS + task) as f32 + i as f32 / 1000.0;
            (0..TASKS).map(|task| (0..elems).map(|i| value(task, i)).collect()).collect()
        };
        let x = Tensor::input("x", DType::F32, [elems])?;
        for (name, output) in [("chain", chain(&x)?), ("sum of the chain", chain(&x)?.sum(&[], false)?)] {
            let plain = engine.compile(&[&x], &[&output])?;
            let own = folder.0.join(format!("{name}-{elems}"));
            let cached = engine.cached(CacheOptions { folder: Some(own), ..CacheOptions::default() })?;
            let program = cached.program(&plain)?;
            let known = fresh(ROUNDS);
            let hits: Vec<[View<'_>; 1]> = known.iter().map(|values| [values.into()]).collect();
            program.run_many(&hits)?;
            let (mut results, mut samples) = (Many::default(), [(); 3].map(|()| Vec::new()));
            for round in 0..ROUNDS {
                let values = fresh(round);
                let misses: Vec<[View<'_>; 1]> = values.iter().map(|values| [values.into()]).collect();
                // One untimed call brings the threads and the tasks back.
                plain.run_many_into(&misses, &mut results)?;
                samples[0].push(time_ns(|| plain.run_many_into(&misses, &mut results).expect("it runs")));
                samples[1].push(time_ns(|| program.run_many_into(&hits, &mut results).expect("it runs")));
                samples[2].push(time_ns(|| program.run_many_into(&misses, &mut results).expect("it runs")));
            }
            let [uncached, hit, miss] = samples.map(|samples| median(samples) / TASKS as f64);
            println!(
                "{name:>20} of {elems:4}  {uncached:12.0}{hit:12.0}{miss:12.0}{:15.2}{:15.2}",
                hit / uncached,
                miss / uncached
            );
            let stats = cached.stats();
            assert_eq!(stats.figures.hits, (ROUNDS * TASKS) as u64, "every hit was one");
        }
    }

    let own = folder.0.join("opening");
    let options = || CacheOptions { folder: Some(own.clone()), ..CacheOptions::default() };
    let x = Tensor::input("x", DType::F32, [16])?;
    let plain = engine.compile(&[&x], &[&x.exp()?])?;
    let values: Vec<[f32; 16]> = (0..60_000).map(|task| [task as f32 / 1000.0; 16]).collect();
    let tasks: Vec<[View<'_>; 1]> = values.iter().map(|values| [values.as_slice().into()]).collect();
    engine.cached(options())?.program(&plain)?.run_many(&tasks)?;
    let mut samples = [(); 2].map(|()| Vec::new());
    for _ in 0..11 {
        let mut cached = None;
        samples[0].push(time_ns(|| cached = engine.cached(options()).ok()));
        let program = cached.expect("it opens").program(&plain)?;
        samples[1].push(time_ns(|| drop(program.run_many(&tasks).expect("it runs"))));
    }
    let [open, all] = samples.map(median);
    println!("\n60,000 results of 16 elements: opened in {:.1} ms, all found in {:.1} ms", open / 1e6, all / 1e6);

    let x = Tensor::from_slice(&[1.0f32; 256], [256])?;
    let cached = engine.cached(options())?;
    cached.run(&[&chain(&x)?])?;
    let mut samples = [(); 2].map(|()| Vec::new());
    for _ in 0..ROUNDS * 10 {
        samples[0].push(time_ns(|| drop(engine.run(&[&chain(&x).expect("it records")]).expect("it runs"))));
        samples[1].push(time_ns(|| drop(cached.run(&[&chain(&x).expect("it records")]).expect("it runs"))));
    }
    let [plain, hit] = samples.map(median);
    println!("one recorded chain of 256: {plain:.0} ns, remembered {hit:.0} ns");
    Ok(())
}
