//! Every template of a product is valid WGSL with every variant, and its text does not depend on sizes.

use crate::lower::lower;
use crate::lower::tests::{input, validate};
use crate::stage::{Limits, Lowered, Slot, TileVariant, Variants};
use breakeven_ir::DType::{self, F32};
use breakeven_ir::plan::Class;
use breakeven_ir::{Plan, Tensor};

fn product(left: &[usize], right: &[usize]) -> Tensor {
    input("a", F32, left).matmul(&input("b", F32, right)).unwrap()
}

/// Lowers with every tile, validates, and returns what each gives.
fn each(outputs: &[&Tensor]) -> Vec<Lowered> {
    let plan = Plan::new(outputs).unwrap();
    let limits = Limits { workgroup: 1024, workgroup_bytes: 32 << 10, bindings: 16, ..Limits::default() };
    let with = |tile: &TileVariant| {
        let lowered = lower(&plan, &limits, &Variants { tile: *tile, ..Variants::default() }).unwrap();
        lowered.stages.iter().for_each(validate);
        lowered
    };
    TileVariant::ALL.iter().map(with).collect()
}

/// Lowers with every tile and returns what the default one gives.
fn lowered(outputs: &[&Tensor]) -> Lowered {
    each(outputs).swap_remove(0)
}

fn sources(output: &Tensor) -> Vec<Vec<String>> {
    each(&[output]).iter().map(|l| l.stages.iter().map(|s| s.source.to_string()).collect()).collect()
}

fn work(lowered: &Lowered) -> Vec<(Class, u64)> {
    lowered.stages.iter().map(|s| (s.class, s.work)).collect()
}

#[test]
fn a_module_is_keyed_by_the_structure_and_not_by_sizes() {
    let same = |a: &Tensor, b: &Tensor| assert_eq!(sources(a), sources(b));
    same(&product(&[128, 64], &[64, 256]), &product(&[512, 1024], &[1024, 132]));
    same(&product(&[129, 63], &[63, 257]), &product(&[515, 1027], &[1027, 133]));
    same(&product(&[3, 2, 128, 64], &[3, 2, 64, 128]), &product(&[5, 7, 256, 32], &[5, 7, 32, 192]));
    same(&product(&[2000, 8, 8], &[2000, 8, 8]), &product(&[3000, 24, 16], &[3000, 16, 24]));
    same(&product(&[1, 5000], &[5000, 4000]), &product(&[1, 300], &[300, 12_000]));
    let dense = |m: usize, n: usize, k: usize| {
        (&product(&[m, k], &[k, n]) + &input("bias", F32, &[n])).unwrap().relu().unwrap()
    };
    same(&dense(128, 128, 128), &dense(256, 512, 64));
}

#[test]
fn shapes_of_every_kind_render() {
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (64, 64, 64), (65, 33, 127), (1, 100, 300), (100, 1, 300), (4, 4, 5000)] {
        let stages = lowered(&[&product(&[m, k], &[k, n])]);
        assert_eq!(work(&stages), [(Class::Contract, (m * n * k) as u64)], "{m} {n} {k}");
        lowered(&[&product(&[3, 1, m, k], &[1, 2, k, n])]);
        let transposed = |dims: &[usize]| input("x", F32, dims).transpose().unwrap();
        lowered(&[&transposed(&[k, m]).matmul(&transposed(&[n, k])).unwrap()]);
    }
}

#[test]
fn nothing_is_summed_or_nothing_is_made() {
    let zeros = lowered(&[&product(&[5, 0], &[0, 70])]);
    assert_eq!(zeros.stages.len(), 1);
    assert_eq!(zeros.stages[0].bindings.len(), 1, "empty operands are not bound");
    for (left, right) in [([0, 4], [4, 8]), ([8, 4], [4, 0])] {
        assert!(lowered(&[&product(&left, &right)]).stages.iter().all(|s| s.units == 0));
    }
}

#[test]
fn ends_render() {
    for (m, n, k) in [(64, 64, 64), (70, 66, 33), (1, 30, 300), (3, 3, 3)] {
        let (x, bias) = (product(&[m, k], &[k, n]), input("bias", F32, &[n]));
        lowered(&[&(&x + &bias).unwrap().gelu().unwrap()]);
        lowered(&[&x.add(input("c", F32, &[m, n])).unwrap()]);
        // A result of integers, one that is also compared, and one of another shape.
        lowered(&[&x.cast(DType::I32).unwrap()]);
        let shifted = (&x + &bias).unwrap();
        lowered(&[&shifted, &shifted.gt(0.0).unwrap()]);
        lowered(&[&x.reshape(&[-1]).unwrap().mul(2.0).unwrap()]);
    }
}

#[test]
fn a_dear_operand_is_stored_first_and_a_cheap_one_is_not() {
    let (x, w) = (input("x", F32, &[64, 64]), input("w", F32, &[64, 1024]));
    let dear = lowered(&[&x.exp().unwrap().matmul(&w).unwrap()]);
    assert_eq!(dear.stages.iter().map(|s| s.class).collect::<Vec<_>>(), [Class::Map, Class::Contract]);
    assert_eq!(dear.partials, [64 * 64 * 4]);
    assert!(dear.stages[0].bindings.iter().any(|b| b.slot == Slot::Partials(0) && b.writes));
    assert!(dear.stages[1].bindings.iter().any(|b| b.slot == Slot::Partials(0) && !b.writes));
    let once = lowered(&[&x.exp().unwrap().matmul(&input("w", F32, &[64, 64])).unwrap()]);
    assert_eq!(once.stages.len(), 1, "one tile computes it once");
    let scaled = lowered(&[&(&x * 0.5).unwrap().matmul(&w).unwrap()]);
    assert_eq!(scaled.stages.len(), 1);
    // Only the axes along which it differs are stored.
    let batched = lowered(&[&x.exp().unwrap().matmul(&input("w", F32, &[7, 64, 1024])).unwrap()]);
    assert_eq!(batched.partials, [64 * 64 * 4]);
}

#[test]
fn gathered_operands_render() {
    let (table, ids) = (input("table", F32, &[100, 64]), input("ids", DType::I32, &[70]));
    for n in [40, 1000] {
        let lowered = each(&[&table.take(&ids, 0).unwrap().matmul(&input("w", F32, &[64, n])).unwrap()]);
        assert!(lowered.iter().all(|l| l.status), "a wrong index is reported");
    }
}

#[test]
fn convolutions_render() {
    for (c, o, size, pad, stride) in [(3, 8, 9, 1, 1), (4, 64, 8, 0, 2), (16, 66, 13, 2, 1)] {
        let x = input("x", F32, &[2, c, size, size]);
        lowered(&[&x.conv2d(&input("w", F32, &[o, c, 3, 3]), [stride; 2], [pad; 2]).unwrap()]);
    }
}

#[test]
fn a_depth_beyond_the_driver_s_loops_is_cut() {
    let plan = Plan::new(&[&product(&[64, 300_000], &[300_000, 128]).relu().unwrap()]).unwrap();
    for tile in TileVariant::ALL {
        let variants = Variants { tile: *tile, ..Variants::default() };
        let limits = Limits { loop_cap: Some(65_535), binding_bytes: 1 << 30, ..Limits::default() };
        let lowered = lower(&plan, &limits, &variants).unwrap();
        lowered.stages.iter().for_each(validate);
        assert!(lowered.stages.len() > 1);
        assert_eq!(lowered.partials, [64 * 128 * 4]);
        assert_eq!(lowered.stages.iter().map(|s| s.work).sum::<u64>(), 64 * 300_000 * 128);
    }
}

#[test]
fn what_can_not_be_bound_is_refused() {
    let plan = Plan::new(&[&product(&[64, 64], &[64, 64])]).unwrap();
    let limits = Limits { binding_bytes: 4096, ..Limits::default() };
    let error = lower(&plan, &limits, &Variants::default()).unwrap_err();
    assert!(error.0.contains("16384 bytes"), "{}", error.0);
}
