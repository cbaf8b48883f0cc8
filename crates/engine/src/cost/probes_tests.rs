//! Probes do what their constants say, and nothing that a planner could leave out.

use super::super::work::{KernelWork, Work};
use super::*;
use breakeven_ir::Plan;

fn work(output: Result<Tensor>) -> Work {
    Work::of(&Plan::new(&[&output.unwrap()]).unwrap())
}

fn only(output: Result<Tensor>) -> KernelWork {
    let work = work(output);
    assert_eq!(work.kernels.len(), 1);
    work.kernels.into_iter().next().unwrap()
}

/// Operations for each point: of this op, and others.
fn ops(kernel: &KernelWork, op: Op) -> (f64, f64) {
    let of = |same: bool| kernel.ops.iter().filter(|(other, _)| (*other == op) == same).map(|(_, n)| n).sum::<f64>();
    (of(true) / kernel.points, of(false) / kernel.points)
}

#[test]
fn an_op_is_computed_as_often_as_it_is_weighed() {
    let mut weighed = 0;
    for &op in Op::ALL {
        let Some(output) = super::op(op, 1000).unwrap() else { continue };
        let kernel = only(Ok(output));
        let (times, around) = ops(&kernel, op);
        // What is around are additions and products, and may be the op itself.
        assert_eq!(times + around, (OP_TIMES + OP_AROUND) as f64, "{op:?}: {:?}", kernel.ops);
        assert!(times >= OP_TIMES as f64, "{op:?}: {:?}", kernel.ops);
        assert_eq!((kernel.bytes, kernel.strided_bytes), (8000.0, 0.0), "{op:?}");
        weighed += 1;
    }
    assert!(weighed > 20, "{weighed} ops");
}

#[test]
fn chains_have_as_many_operations_as_they_say() {
    for count in [2, 8, COMPUTE_OPS] {
        let kernel = only(chain(1000, count));
        assert_eq!(ops(&kernel, Op::Exp), (0.0, count as f64));
        assert_eq!(kernel.bytes, 8000.0);
    }
    assert_eq!(ops(&only(memory(1000)), Op::Add), (1.0, 0.0));
    for kernel in [only(heavy(4096)), only(row_heavy(4096, 64))] {
        assert_eq!(kernel.ops.iter().map(|(_, n)| n).sum::<f64>(), (HEAVY_OPS * 4096) as f64);
        HEAVY.into_iter().for_each(|op| assert_eq!(ops(&kernel, op).0, 1.0, "{op:?}"));
    }
}

#[test]
fn reductions_have_as_many_passes_as_they_say() {
    for (count, around) in [(0, 3.0), (32, 35.0)] {
        let kernel = only(passes(4096, 64, count));
        assert_eq!((kernel.steps, kernel.row, ops(&kernel, Op::Exp)), (2.0 * 4096.0, 64.0, (0.0, around)));
        assert_eq!(kernel.bytes, 2.0 * 4.0 * 4096.0);
    }
    let kernel = only(reduce(4096, 64));
    assert_eq!((kernel.steps, kernel.row, kernel.along, kernel.ops.len()), (4096.0, 64.0, true, 0));
    let kernel = only(row_chain(4096, 64, 32));
    assert_eq!((kernel.steps, kernel.row, ops(&kernel, Op::Exp)), (4096.0, 64.0, (0.0, 32.0)));
    let kernel = only(Ok(row_op(Op::Exp, 4096, 64).unwrap().unwrap()));
    let each = (OP_TIMES as f64, OP_AROUND as f64);
    assert_eq!((kernel.steps, kernel.row, ops(&kernel, Op::Exp)), (4096.0, 64.0, each));
    let kernel = only(columns(4096));
    assert_eq!((kernel.steps, kernel.along, kernel.ops.len()), (4096.0, false, 0));
    let kernel = only(scan(4096, 64));
    assert_eq!((kernel.steps, kernel.row, kernel.ops.len()), (4096.0, 64.0, 0));
}

#[test]
fn transfers_move_what_they_say() {
    let up = work(upload(1000));
    assert_eq!((up.upload_bytes, up.readback_bytes), (4000, 4));
    let down = work(readback(1000));
    assert_eq!((down.upload_bytes, down.readback_bytes), (4, 4000));
    let fixed = work(nothing());
    assert_eq!((fixed.upload_bytes, fixed.readback_bytes, fixed.kernels.len()), (4, 4, 1));
    let across = only(strided(10_000));
    assert_eq!((across.bytes, across.strided_bytes), (40_000.0, 40_000.0));
    assert_eq!(work(two_kernels(4096)).kernels.len(), 2);
    assert_eq!(only(product([3, 10, 20, 30])).product, Some([3.0, 10.0, 20.0, 30.0]));
}

#[test]
fn data_is_where_every_op_is_defined() {
    let x = data(&[1000]).unwrap();
    let numbers: Vec<f32> =
        x.as_data().unwrap().as_bytes().chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect();
    assert!(numbers.iter().all(|x| (0.1..=1.0).contains(x)));
    assert!(numbers.iter().any(|x| *x < 0.2) && numbers.iter().any(|x| *x > 0.9));
}
