//! Plans divided by rows: the first rows and the others, run one after the other on the CPU, against the whole plan, bit
//! for bit.
//!
//! `BREAKEVEN_GRAPHS` and `BREAKEVEN_SEED` are those of `recipe`.

use breakeven::backend::Backend;
use breakeven::plan::{BufferInfo, Class, Plan, Rows};
use breakeven::{DType, HostBytes, Tensor};
use breakeven_cpu::{Block, Cpu};
use breakeven_ir::plan_key;
use breakeven_tests::data::random;
use breakeven_tests::pair::Pair;
use breakeven_tests::recipe::{Recipe, graphs, recipes, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of a part from which on nothing is summed in another order because there are few: the engine shares no fewer.
const ENOUGH: usize = 64;

fn cpu() -> Cpu {
    Cpu::new(2).expect("threads")
}

/// One run into memory full of rubbish, so that what is not written shows.
fn run(cpu: &Cpu, plan: &Plan, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), String> {
    outputs.iter_mut().for_each(|output| output.fill(0xa5));
    let prepared = cpu.prepare(&Arc::new(plan.clone())).map_err(|why| format!("{why}\n{plan}"))?;
    prepared.run(inputs, outputs, true).map(drop).map_err(|why| format!("{why}\n{plan}"))
}

fn blocks(cpu: &Cpu, plan: &Plan) -> Vec<Block> {
    plan.output_buffers().map(|info| cpu.blocks().take(info.bytes()).expect("memory")).collect()
}

/// Runs the first `count` rows and the others, each into its part of the results.
fn run_divided(cpu: &Cpu, plan: &Plan, rows: &Rows, inputs: &[&[u8]], count: usize) -> Result<Vec<Block>, String> {
    let mut made = blocks(cpu, plan);
    let at = |info: &BufferInfo| info.bytes() / rows.count * count;
    let halves = made.iter_mut().zip(plan.output_buffers()).map(|(b, info)| b.as_mut_bytes().split_at_mut(at(info)));
    let (mut first, mut second): (Vec<&mut [u8]>, Vec<&mut [u8]>) = halves.unzip();
    let given = |second: bool| -> Vec<&[u8]> {
        let part = |(number, bytes): (usize, &&'_ [u8])| match (rows.cut_inputs[number], second) {
            (false, _) => 0..bytes.len(),
            (true, false) => 0..at(&plan.input_infos()[number]),
            (true, true) => at(&plan.input_infos()[number])..bytes.len(),
        };
        inputs.iter().enumerate().map(|each| &each.1[part(each)]).collect()
    };
    let part = |count: usize| plan.of_rows(rows, count).ok_or_else(|| format!("no part of {count} rows of {plan}"));
    run(cpu, &part(count)?, &given(false), &mut first)?;
    run(cpu, &part(rows.count - count)?, &given(true), &mut second)?;
    Ok(made)
}

/// Divides a plan in several ways; 0 if it can't be, else how often.
fn try_plan(cpu: &Cpu, plan: &Plan, inputs: &[&[u8]]) -> Result<usize, String> {
    let Some(rows) = plan.rows() else { return Ok(0) };
    let mut whole = blocks(cpu, plan);
    run(cpu, plan, inputs, &mut whole.iter_mut().map(Block::as_mut_bytes).collect::<Vec<_>>())?;
    // Few rows may be summed in another order, if anything is.
    let sums = plan.kernels.iter().any(|kernel| kernel.class() != Class::Map);
    let least = if sums { ENOUGH } else { 2 };
    let counts = [least, rows.count / 2, rows.count / 3, rows.count.saturating_sub(least)];
    let counts = counts.into_iter().filter(|&count| count >= least && count + least <= rows.count);
    let mut done = 0;
    for count in counts {
        let made = run_divided(cpu, plan, &rows, inputs, count)?;
        if let Some(number) = (0..made.len()).find(|&o| made[o].as_bytes() != whole[o].as_bytes()) {
            return Err(format!("output buffer {number} differs, {count} of {} rows first: {plan}", rows.count));
        }
        done += 1;
    }
    Ok(done)
}

fn try_tensors(cpu: &Cpu, tensors: &[&Tensor]) -> Result<usize, String> {
    let (_, leaves) = plan_key(tensors);
    let inputs: Vec<&[u8]> = leaves.iter().map(|leaf| leaf.as_data().expect("data").as_bytes()).collect();
    let mut done = 0;
    for plan in [Plan::new(tensors), Plan::unfused(tensors)] {
        done += try_plan(cpu, &plan.map_err(|why| why.to_string())?, &inputs)?;
    }
    Ok(done)
}

/// Tries `graphs` random graphs, of which at least one in `one_in` can be divided.
fn try_graphs(graphs: u64, one_in: u64, recipes: impl Strategy<Value = Recipe>, limit_elems: usize) {
    let (cpu, divided) = (cpu(), AtomicUsize::new(0));
    let one = |recipe: Recipe| {
        let program = recipe.program(limit_elems);
        let tensors: Vec<&Tensor> = recipe.outputs(&program).into_iter().map(|v| &v.pair.tensor).collect();
        // One output of many is divided far more often than all of them.
        for tensor in tensors.iter().map(std::slice::from_ref).chain([&tensors[..]]) {
            let done = try_tensors(&cpu, tensor).map_err(TestCaseError::fail)?;
            divided.fetch_add(usize::from(done > 0), Ordering::Relaxed);
        }
        Ok(())
    };
    if let Err(why) = runner(graphs).run(&recipes, one) {
        panic!("{why}");
    }
    let divided = divided.into_inner();
    assert!(divided as u64 >= graphs / one_in, "only {divided} of {graphs} graphs were divided");
}

#[test]
fn small_graphs() {
    try_graphs(graphs() / 10, 4, recipes([2usize..9, 1usize..9, 1usize..5], 1..12), 200);
}

#[test]
fn graphs_of_many_rows() {
    try_graphs(graphs() / 20, 4, recipes([128usize..300, 1usize..40, 1usize..5], 1..8), 60_000);
}

fn leaf(shape: &[usize], seed: u64) -> Tensor {
    Pair::leaf(random(DType::F32, shape, seed)).tensor
}

#[track_caller]
fn check(outputs: &[&Tensor]) {
    match try_tensors(&cpu(), outputs) {
        Ok(done) => assert!(done >= 2, "divided {done} times"),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn maps_and_row_reductions() {
    let (x, bias, each) = (leaf(&[700, 33], 1), leaf(&[33], 2), leaf(&[700, 1], 3));
    check(&[&((&x * &each).unwrap() + &bias).unwrap().tanh().unwrap()]);
    check(&[&x.softmax(-1).unwrap(), &x.sum(&[1], false).unwrap()]);
    check(&[&(x.layer_norm(1, 1e-5).unwrap() * &bias).unwrap(), &x.cumsum(1).unwrap()]);
    check(&[&leaf(&[200, 3000], 4).softmax(-1).unwrap()]);
    check(&[&leaf(&[150, 40_000], 5).mean(&[1], false).unwrap()]);
    check(&[&x.pad(&[(0, 0), (1, 2)], 0.5f32).unwrap().exp().unwrap()]);
    check(&[&x.softmax(-1).unwrap().lt(&each).unwrap()]);
}

#[test]
fn products() {
    let (x, w, v) = (leaf(&[400, 70], 1), leaf(&[70, 90], 2), leaf(&[90, 20], 3));
    let hidden = (x.matmul(&w).unwrap() + &leaf(&[90], 4)).unwrap().relu().unwrap();
    check(&[&hidden]);
    check(&[&hidden.matmul(&v).unwrap().softmax(-1).unwrap(), &hidden]);
    check(&[&x.exp().unwrap().matmul(&w.tanh().unwrap()).unwrap()]);
    check(&[&leaf(&[300, 20, 30], 5).matmul(&leaf(&[30, 10], 6)).unwrap()]);
    check(&[&leaf(&[300, 5, 30], 5).matmul(&leaf(&[300, 30, 7], 6)).unwrap()]);
    // One large enough for the packed kernel as a whole, and small enough for the other in parts.
    check(&[&leaf(&[140, 50], 7).matmul(&leaf(&[50, 60], 8)).unwrap()]);
    check(&[&leaf(&[1000, 468], 9).matmul(&leaf(&[468, 13], 10)).unwrap()]);
    check(&[&leaf(&[150, 2000], 9).matmul(&leaf(&[2000, 40], 10)).unwrap()]);
}

#[test]
fn images() {
    let (images, filters) = (leaf(&[140, 3, 8, 9], 1), leaf(&[4, 3, 3, 3], 2));
    check(&[&images.conv2d(&filters, [1, 1], [1, 1]).unwrap().relu().unwrap()]);
    check(&[&images.conv2d(&filters, [2, 1], [0, 2]).unwrap()]);
}
