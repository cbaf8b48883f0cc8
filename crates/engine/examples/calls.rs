//! What a call costs, measured on this machine: `cargo run --release -p breakeven --example calls`.
//!
//! Each line compares two arms that take turns, so that whatever else the machine does hits both. Medians of 201 rounds.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use breakeven::{DType, Engine, Result, Tensor, View};
use std::hint::black_box;
use std::time::Instant;

/// Rounds in which both arms take a turn.
const ROUNDS: usize = 201;
/// A turn repeats its call until it takes about this long, so that reading the clock does not count.
const TURN_NS: u128 = 50_000;

fn chain(x: &Tensor) -> Result<Tensor> {
    let t = ((x * 1.5)? + 0.5)?;
    let t = ((t * x.sigmoid())? - 0.25)?.abs()?.sqrt()?;
    Ok((t + x)?.gelu()?)
}

/// Nanoseconds of one call of each arm: medians over interleaved rounds.
fn compare(mut a: impl FnMut(), mut b: impl FnMut()) -> (f64, f64) {
    fn repeats(call: &mut impl FnMut()) -> u32 {
        (0..50).for_each(|_| call());
        let start = Instant::now();
        call();
        (TURN_NS / start.elapsed().as_nanos().max(20)).clamp(1, 10_000) as u32
    }
    fn turn(call: &mut impl FnMut(), times: u32) -> f64 {
        // One untimed call brings the arm's data and threads back.
        call();
        let start = Instant::now();
        (0..times).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(times)
    }
    let (times_a, times_b) = (repeats(&mut a), repeats(&mut b));
    let mut samples: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (turn(&mut a, times_a), turn(&mut b, times_b))).collect();
    let mut median = |by: fn(&(f64, f64)) -> f64| {
        samples.sort_by(|x, y| by(x).total_cmp(&by(y)));
        by(&samples[ROUNDS / 2])
    };
    (median(|s| s.0), median(|s| s.1))
}

fn main() -> Result<()> {
    let engine = Engine::new()?;
    println!("{}", engine.device_name("cpu"));

    let (xs, ys) = (vec![1.5f32; 256], vec![2.5f32; 256]);
    let (x, y) = (Tensor::input("x", DType::F32, [256])?, Tensor::input("y", DType::F32, [256])?);
    let add = engine.compile(&[&x, &y], &[&(&x + &y)?])?;
    let (mut out, mut plain) = (vec![0f32; 256], vec![0f32; 256]);
    let (ours, looped) = compare(
        || add.run_into(&[(&xs).into(), (&ys).into()], &mut [out.as_mut_slice().into()]).expect("the sizes fit"),
        || {
            let (xs, ys) = (black_box(xs.as_slice()), black_box(ys.as_slice()));
            plain.iter_mut().zip(xs.iter().zip(ys)).for_each(|(o, (x, y))| *o = x + y);
            black_box(&mut plain);
        },
    );
    println!("compiled add of 256, run_into: {ours:.0} ns, plain loop {looped:.0} ns (bar: at most 200 ns more)");

    let data = Tensor::from_slice(&xs, [256])?;
    let (recorded, compiled) = {
        let program = engine.compile(&[&x], &[&chain(&x)?])?;
        compare(
            || drop(black_box(engine.run(&[&chain(&data).expect("it records")]).expect("it runs"))),
            || drop(black_box(program.run(&[(&xs).into()]).expect("it runs"))),
        )
    };
    println!("ten-op chain of 256, recorded and run: {recorded:.0} ns (bar: 5,000), compiled {compiled:.0} ns");

    let large: Vec<f32> = (0..256_000).map(|i| (i % 1000) as f32 / 100.0 - 5.0).collect();
    let big = Tensor::input("x", DType::F32, [256_000])?;
    let tasks: Vec<[View<'_>; 1]> = large.chunks(256).map(|c| [c.into()]).collect();
    for (name, small, one) in [("relu", x.relu()?, big.relu()?), ("chain", chain(&x)?, chain(&big)?)] {
        let (many, one) = (engine.compile(&[&x], &[&small])?, engine.compile(&[&big], &[&one])?);
        let (many_ns, one_ns) = compare(
            || drop(black_box(many.run_many(&tasks).expect("it runs"))),
            || drop(black_box(one.run(&[(&large).into()]).expect("it runs"))),
        );
        let (many_us, one_us) = (many_ns / 1000.0, one_ns / 1000.0);
        println!(
            "{name}: 1,000 tasks of 256 {many_us:.1} us, one of 256,000 {one_us:.1} us, ratio {:.2} (bar: 2)",
            many_us / one_us
        );
    }
    Ok(())
}
