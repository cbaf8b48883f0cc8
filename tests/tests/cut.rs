//! Plans cut in two: front and back, run one after the other on the CPU, against the whole plan, bit for bit.
//!
//! Every cut of every plan is tried, of fused ones and of those with a kernel for each operation, which have more
//! places to cut and more that crosses them. `BREAKEVEN_GRAPHS` and `BREAKEVEN_SEED` are those of `recipe`.

use breakeven::backend::Backend;
use breakeven::plan::{BufferInfo, Cut, From, MadeBy, Plan};
use breakeven::{DType, HostBytes, Shape, Tensor};
use breakeven_cpu::{Block, Cpu};
use breakeven_ir::plan_key;
use breakeven_tests::data::random;
use breakeven_tests::pair::Pair;
use breakeven_tests::recipe::{Recipe, graphs, recipes, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn cpu() -> Cpu {
    Cpu::new(2).expect("threads")
}

/// One run into memory full of `rubbish`, so that what is not written shows.
fn run(cpu: &Cpu, plan: &Plan, inputs: &[&[u8]], rubbish: u8) -> Result<Vec<Block>, String> {
    let take = |info: &BufferInfo| cpu.blocks().take(info.bytes()).expect("memory");
    let mut blocks: Vec<Block> = plan.output_buffers().map(take).collect();
    let mut outputs: Vec<&mut [u8]> = blocks.iter_mut().map(Block::as_mut_bytes).collect();
    outputs.iter_mut().for_each(|output| output.fill(rubbish));
    let prepared = cpu.prepare(&Arc::new(plan.clone())).map_err(|why| format!("{why}\n{plan}"))?;
    prepared.run(inputs, &mut outputs, true).map_err(|why| format!("{why}\n{plan}"))?;
    Ok(blocks)
}

/// What a value is, wherever it lies.
fn kind(info: &BufferInfo) -> (DType, Shape) {
    (info.dtype, info.shape)
}

/// Runs the two sides and compares what they give with `expected`, the whole plan's outputs.
fn try_cut(cpu: &Cpu, plan: &Plan, at: usize, inputs: &[&[u8]], expected: &[Block]) -> Result<(), String> {
    let Some(Cut { front, back, front_inputs, back_sources, outputs }) = plan.cut(at) else {
        return Err("it can't be cut".into());
    };
    let same = |what: &str, a: &[(DType, Shape)], b: &[(DType, Shape)]| {
        if a == b { Ok(()) } else { Err(format!("{what}: {a:?} and {b:?}")) }
    };
    let kinds = |plan: &Plan| plan.input_infos().iter().map(kind).collect::<Vec<_>>();
    let (all, front_kinds) = (kinds(plan), front.output_buffers().map(kind).collect::<Vec<_>>());
    let back_kinds = back.output_buffers().map(kind).collect::<Vec<_>>();
    same("the front's inputs", &kinds(&front), &front_inputs.iter().map(|&i| all[i]).collect::<Vec<_>>())?;
    let from = |source: &From| match *source {
        From::Input(i) => all[i],
        From::Front(j) => front_kinds[j],
    };
    same("the back's inputs", &kinds(&back), &back_sources.iter().map(from).collect::<Vec<_>>())?;
    let made = |by: &MadeBy| match *by {
        MadeBy::Front(j) => front_kinds[j],
        MadeBy::Back(j) => back_kinds[j],
    };
    let whole_kinds = plan.output_buffers().map(kind).collect::<Vec<_>>();
    same("the outputs", &whole_kinds, &outputs.iter().map(made).collect::<Vec<_>>())?;

    let crossing = back_sources.iter().zip(back.input_infos()).filter(|(from, _)| matches!(from, From::Front(_)));
    let bytes: u64 = crossing.map(|(_, info)| info.bytes() as u64).sum();
    if bytes != plan.crossing_bytes(at) {
        return Err(format!("{bytes} bytes cross, {} were announced", plan.crossing_bytes(at)));
    }

    let given: Vec<&[u8]> = front_inputs.iter().map(|&i| inputs[i]).collect();
    let of_front = run(cpu, &front, &given, 0xa5)?;
    let source = |source: &From| match *source {
        From::Input(i) => inputs[i],
        From::Front(j) => of_front[j].as_bytes(),
    };
    let of_back = run(cpu, &back, &back_sources.iter().map(source).collect::<Vec<_>>(), 0xa5)?;
    for (number, (by, expected)) in outputs.iter().zip(expected).enumerate() {
        let found = match *by {
            MadeBy::Front(j) => &of_front[j],
            MadeBy::Back(j) => &of_back[j],
        };
        if found.as_bytes() != expected.as_bytes() {
            return Err(format!("output buffer {number}, {by:?}, differs\nfront {front}back {back}"));
        }
    }
    Ok(())
}

/// Tries every cut; how many there were.
fn try_cuts(cpu: &Cpu, plan: &Plan, inputs: &[&[u8]]) -> Result<usize, String> {
    let expected = run(cpu, plan, inputs, 0x5a)?;
    for at in 1..plan.kernels.len() {
        try_cut(cpu, plan, at, inputs, &expected).map_err(|why| format!("cut before {at}: {why}\nwhole {plan}"))?;
    }
    Ok(plan.kernels.len().saturating_sub(1))
}

/// Fused and unfused, every cut; how many there were.
fn try_tensors(cpu: &Cpu, tensors: &[&Tensor]) -> Result<usize, String> {
    let (_, leaves) = plan_key(tensors);
    let inputs: Vec<&[u8]> = leaves.iter().map(|leaf| leaf.as_data().expect("data").as_bytes()).collect();
    let mut cuts = 0;
    for plan in [Plan::new(tensors), Plan::unfused(tensors)] {
        cuts += try_cuts(cpu, &plan.map_err(|why| why.to_string())?, &inputs)?;
    }
    Ok(cuts)
}

/// Tries the cuts of `graphs` random graphs.
fn try_graphs(graphs: u64, recipes: impl Strategy<Value = Recipe>, limit_elems: usize) {
    let (cpu, cuts) = (cpu(), AtomicUsize::new(0));
    let one = |recipe: Recipe| {
        let program = recipe.program(limit_elems);
        let tensors: Vec<&Tensor> = recipe.outputs(&program).into_iter().map(|v| &v.pair.tensor).collect();
        cuts.fetch_add(try_tensors(&cpu, &tensors).map_err(TestCaseError::fail)?, Ordering::Relaxed);
        Ok(())
    };
    if let Err(why) = runner(graphs).run(&recipes, one) {
        panic!("{why}");
    }
    let cuts = cuts.into_inner();
    assert!(cuts as u64 >= graphs * 2, "only {cuts} cuts in {graphs} graphs");
}

#[test]
fn small_graphs() {
    try_graphs(graphs() / 10, recipes([1usize..6, 1usize..9, 1usize..5], 4..24), 200);
}

#[test]
fn graphs_with_empty_axes() {
    try_graphs(graphs() / 20, recipes([0usize..3, 0usize..4, 0usize..3], 4..24), 200);
}

#[test]
fn large_graphs() {
    try_graphs(graphs() / 80, recipes([20usize..70, 30usize..70, 1usize..40], 4..16), 9_000);
}

#[test]
fn long_graphs() {
    try_graphs(graphs() / 200, recipes([1usize..5, 1usize..6, 1usize..4], 40..120), 120);
}

fn leaf(shape: &[usize], seed: u64) -> Tensor {
    Pair::leaf(random(DType::F32, shape, seed)).tensor
}

/// Every cut of a plan of at least so many kernels.
#[track_caller]
fn check(kernels: usize, tensors: &[&Tensor]) -> Plan {
    let plan = Plan::new(tensors).unwrap();
    assert!(plan.kernels.len() >= kernels, "there is too little to cut: {plan}");
    if let Err(why) = try_tensors(&cpu(), tensors) {
        panic!("{why}");
    }
    plan
}

#[test]
fn a_product_then_a_softmax() {
    let (x, w, b) = (leaf(&[33, 20], 1), leaf(&[20, 47], 2), leaf(&[47], 3));
    let layer = (x.matmul(&w).unwrap() + &b).unwrap().relu().unwrap();
    let plan = check(2, &[&layer.softmax(-1).unwrap()]);
    assert_eq!(plan.crossing_bytes(1), 33 * 47 * 4);
}

#[test]
fn a_softmax_then_products_of_several_outputs() {
    let (x, v, w) = (leaf(&[19, 30], 1), leaf(&[30, 11], 2), leaf(&[11, 30], 3));
    let weights = x.softmax(-1).unwrap();
    let mixed = weights.matmul(&v).unwrap();
    let back = mixed.tanh().unwrap().matmul(&w).unwrap();
    check(3, &[&back, &mixed, &back.sum(&[1], false).unwrap()]);
}

#[test]
fn an_output_of_the_front_alone() {
    let (x, w) = (leaf(&[12, 12], 1), leaf(&[12, 12], 2));
    let (first, second) = (x.matmul(&w).unwrap(), w.matmul(&x).unwrap());
    let plan = check(2, &[&first, &second]);
    assert_eq!(plan.crossing_bytes(1), 0);
    let cut = plan.cut(1).unwrap();
    assert!(cut.outputs.contains(&MadeBy::Front(0)) && cut.outputs.contains(&MadeBy::Back(0)), "{:?}", cut.outputs);
}

#[test]
fn an_output_that_both_sides_use() {
    let (x, w) = (leaf(&[12, 12], 1), leaf(&[12, 12], 2));
    let y = x.matmul(&w).unwrap();
    let (z, u) = (y.softmax(-1).unwrap(), y.matmul(&x).unwrap());
    let end = u.matmul(&y).unwrap().softmax(0).unwrap();
    // `y` is wanted twice, and read by kernels before and behind most cuts.
    check(4, &[&y, &z, &u, &end, &y]);
}

#[test]
fn outputs_that_are_inputs_or_empty_or_constant() {
    let (x, w) = (leaf(&[6, 6], 1), leaf(&[6, 6], 2));
    let y = x.matmul(&w).unwrap().softmax(-1).unwrap();
    let empty = y.slice(&[breakeven::s(0..0)]).unwrap();
    let constant = Tensor::full([5], 2.5f32).unwrap();
    check(3, &[&x, &y, &empty, &constant, &w]);
}

#[test]
fn values_that_skip_many_kernels() {
    let (x, w) = (leaf(&[16, 16], 1), leaf(&[16, 16], 2));
    let early = x.matmul(&w).unwrap();
    let mut t = early.clone();
    for _ in 0..6 {
        t = t.softmax(-1).unwrap().matmul(&w).unwrap();
    }
    check(8, &[&(t * &early).unwrap()]);
}
