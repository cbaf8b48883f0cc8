//! What becomes one kernel, and how plans read.

use crate::plan::Place;
use crate::{DType, Plan, Tensor, s};

fn input(dims: &[usize]) -> Tensor {
    Tensor::input("x", DType::F32, dims).unwrap()
}

fn kernels(outputs: &[&Tensor]) -> usize {
    Plan::new(outputs).unwrap().stats().kernels
}

/// The ten-op chain of the benchmarks.
fn chain(x: &Tensor) -> Tensor {
    let t = ((x * 1.5).unwrap() + 0.5).unwrap();
    let t = ((t * x.sigmoid()).unwrap() - 0.25).unwrap().abs().unwrap().sqrt().unwrap();
    (t + x).unwrap().gelu().unwrap()
}

#[test]
fn an_elementwise_chain_of_any_length_is_one_kernel() {
    let x = input(&[1000]);
    assert_eq!(kernels(&[&chain(&x)]), 1);
    let mut long = x.clone();
    for _ in 0..20_000 {
        long = (long * 1.0001).unwrap().sin().unwrap();
    }
    assert_eq!(kernels(&[&long]), 1);
}

#[test]
fn row_ops_and_chains_around_reductions_are_one_kernel() {
    let x = input(&[64, 100]);
    let scale = Tensor::input("scale", DType::F32, [100]).unwrap();
    let one: Vec<(&str, Tensor)> = vec![
        ("softmax", x.softmax(-1).unwrap()),
        ("softmax of the first axis", x.softmax(0).unwrap()),
        ("log_softmax", x.log_softmax(-1).unwrap()),
        ("layer_norm", x.layer_norm(-1, 1e-5).unwrap()),
        ("scaled layer_norm", (x.layer_norm(-1, 1e-5).unwrap() * &scale).unwrap()),
        ("var", x.var(&[0], 1, false).unwrap()),
        ("var of all", x.var(&[], 0, false).unwrap()),
        ("std", x.std(&[1], 0, true).unwrap()),
        ("norm", x.norm(&[], false).unwrap()),
        ("before and after a sum", (chain(&x).sum(&[1], false).unwrap() * 2.0).unwrap().sqrt().unwrap()),
        ("softmax of a chain", chain(&x).softmax(-1).unwrap()),
        ("cumsum between maps", x.exp().unwrap().cumsum(1).unwrap().log().unwrap()),
        ("argmax of a softmax", x.softmax(-1).unwrap().argmax(Some(1), false).unwrap()),
        ("dot", x.select(0, 0).unwrap().dot(&x.select(0, 1).unwrap()).unwrap()),
    ];
    for (name, tensor) in &one {
        assert_eq!(kernels(&[tensor]), 1, "{name}\n{}", Plan::new(&[tensor]).unwrap());
    }
}

#[test]
fn matmul_takes_bias_and_activation_along() {
    let x = input(&[32, 64]);
    let w = Tensor::input("w", DType::F32, [64, 16]).unwrap();
    let b = Tensor::input("b", DType::F32, [16]).unwrap();
    let h = (x.matmul(&w).unwrap() + &b).unwrap().relu().unwrap();
    assert_eq!(kernels(&[&h]), 1);
    assert_eq!(kernels(&[&h.softmax(-1).unwrap()]), 2);
    // Operands are computed while they are packed, transposed and sliced in place.
    let product = x.relu().unwrap().slice(&[s(..).step(2)]).unwrap().matmul(&w).unwrap();
    assert_eq!(kernels(&[&product]), 1);
    let image = input(&[2, 3, 8, 8]);
    let filters = Tensor::input("f", DType::F32, [4, 3, 3, 3]).unwrap();
    assert_eq!(kernels(&[&image.conv2d(&filters, [1, 1], [1, 1]).unwrap().relu().unwrap()]), 1);
}

#[test]
fn movement_costs_no_kernel() {
    let x = input(&[4, 6, 8]);
    let moved = x
        .permute(&[2, 0, 1])
        .and_then(|t| t.flip(&[0]))
        .and_then(|t| t.reshape(&[8, -1]))
        .and_then(|t| t.slice(&[s(1..), s(..).step(-3)]))
        .and_then(|t| t.pad(&[(1, 1), (0, 2)], 7.0))
        .and_then(|t| t.tile(&[2, 1]))
        .and_then(|t| t.exp())
        .unwrap();
    assert_eq!(kernels(&[&moved]), 1);
    let joined = Tensor::concat(&[&x, &(&x + 1.0).unwrap()], 1).unwrap().relu().unwrap();
    assert_eq!(kernels(&[&joined]), 1);
    assert_eq!(kernels(&[&x.windows(&[1, 2], &[2, 2], &[1, 2]).unwrap().max(&[-1, -2], false).unwrap()]), 1);
    let indices = Tensor::from_slice(&[3i32, 0, -1], [3]).unwrap();
    assert_eq!(kernels(&[&x.take(&indices, 1).unwrap().sqrt().unwrap()]), 1);
}

#[test]
fn a_division_in_the_index_splits_the_loop_instead() {
    let x = input(&[6, 35]);
    let plan = Plan::new(&[&x.transpose().unwrap().reshape(&[-1]).unwrap().sqrt().unwrap()]).unwrap();
    assert_eq!(plan.kernels[0].end().vars.len(), 2, "{plan}");
    assert!(!plan.to_string().contains('/'), "{plan}");
}

#[test]
fn common_subexpressions_constants_and_dead_nodes_are_gone() {
    let x = input(&[10]);
    let twice = (x.exp().unwrap() + x.exp()).unwrap();
    let folded = (&twice * (Tensor::scalar(2.0f32) + 3.0).unwrap().sqrt()).unwrap();
    let _dead = x.sin().unwrap();
    let plan = Plan::new(&[&folded]).unwrap();
    let text = plan.to_string();
    assert_eq!(text.matches("exp(").count(), 1, "{text}");
    assert_eq!(text.matches("sqrt").count() + text.matches("sin").count(), 0, "{text}");
}

#[test]
fn several_outputs_share_a_kernel() {
    let x = input(&[8, 128]);
    let y = x.exp().unwrap();
    let z = y.sum(&[1], false).unwrap();
    assert_eq!(kernels(&[&y, &z]), 1);
    let (a, b) = (x.relu().unwrap(), chain(&x.relu().unwrap()));
    assert_eq!(kernels(&[&a, &b]), 1);
}

#[test]
fn a_chain_needs_no_scratch() {
    let x = input(&[1 << 20]);
    let stats = Plan::new(&[&chain(&x)]).unwrap().stats();
    assert_eq!((stats.peak_scratch_bytes, stats.bytes_read, stats.bytes_written), (0, 4 << 20, 4 << 20));
}

/// A node that was given memory for one kernel and is computed along in another is not written for nobody.
#[test]
fn what_nobody_reads_is_not_stored() {
    let (x, lift) = (input(&[30, 30, 64]), input(&[30, 30, 64]));
    let there = x.add(&lift).unwrap().cummax(0).unwrap().sub(&lift).unwrap();
    let back = x.sub(&lift).unwrap().flip(&[0]).unwrap().cummax(0).unwrap().flip(&[0]).unwrap().add(&lift).unwrap();
    let made = there.maximum(&back).unwrap();
    let changed = made.ne(&x).unwrap().any(&[0, 1], false).unwrap();
    let plan = Plan::new(&[&made, &changed]).unwrap();
    let reads = |id: usize| plan.to_string().matches(&format!("= b{id}[")).count();
    let scratch = (0..plan.buffers.len()).filter(|id| matches!(plan.buffers[*id].place, Place::Scratch(_)));
    for id in scratch {
        assert!(reads(id) > 0, "nobody reads b{id}: {plan}");
    }
}

#[test]
fn plans_read_well() {
    let x = input(&[64, 100]);
    let w = Tensor::input("w", DType::F32, [100, 10]).unwrap();
    let b = Tensor::input("b", DType::F32, [10]).unwrap();
    insta::assert_snapshot!("chain", Plan::new(&[&chain(&x)]).unwrap());
    insta::assert_snapshot!("softmax", Plan::new(&[&x.softmax(-1).unwrap()]).unwrap());
    let layer = (x.matmul(&w).unwrap() + &b).unwrap().relu().unwrap();
    insta::assert_snapshot!("layer", Plan::new(&[&layer.softmax(-1).unwrap()]).unwrap());
    let padded = x.pad(&[(1, 1), (0, 0)], 0.0).unwrap().transpose().unwrap();
    insta::assert_snapshot!("pad", Plan::new(&[&padded]).unwrap());
}

/// Along an axis of one element there is but one coordinate: dividing by what lies beside it would take a hundred times as long.
#[test]
fn joins_along_a_new_axis_divide_nothing() {
    let (x, y) = (input(&[30, 40]), input(&[30, 40]));
    for axis in 0..3 {
        let plan = Plan::new(&[&Tensor::stack(&[&x, &y], axis).unwrap()]).unwrap().to_string();
        assert!(!plan.contains(")%") && !plan.contains(")/"), "{plan}");
    }
}
