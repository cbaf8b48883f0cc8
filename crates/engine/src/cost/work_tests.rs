//! What plans ask for, counted by hand.

use super::*;
use breakeven_ir::{DType, Tensor};

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::input(name, DType::F32, dims).unwrap()
}

fn work(output: &Tensor) -> Work {
    Work::of(&Plan::new(&[output]).unwrap())
}

#[track_caller]
fn only(work: &Work) -> &KernelWork {
    let [kernel] = &work.kernels[..] else { panic!("{} kernels", work.kernels.len()) };
    kernel
}

fn count(kernel: &KernelWork, op: Op) -> f64 {
    kernel.ops.iter().find(|(other, _)| *other == op).map_or(0.0, |(_, count)| *count)
}

#[test]
fn a_map_moves_its_inputs_and_outputs() {
    let (x, y) = (input("x", &[30, 40]), input("y", &[30, 40]));
    let work = work(&((&x + &y).unwrap().exp().unwrap() * &x).unwrap());
    assert_eq!((work.upload_bytes, work.readback_bytes), (9600, 4800));
    let kernel = only(&work);
    assert_eq!((kernel.class, kernel.points, kernel.row, kernel.steps), (Class::Map, 1200.0, 1.0, 0.0));
    assert_eq!((kernel.bytes, kernel.strided_bytes, kernel.along), (14400.0, 0.0, true));
    assert_eq!([Op::Add, Op::Exp, Op::Mul].map(|op| count(kernel, op)), [1200.0; 3]);
    assert_eq!((kernel.ops.len(), kernel.product), (3, None));
}

#[test]
fn several_outputs_are_written() {
    let x = input("x", &[100]);
    let work = Work::of(&Plan::new(&[&x.exp().unwrap(), &x.gt(0.5).unwrap()]).unwrap());
    assert_eq!((work.upload_bytes, work.readback_bytes), (400, 500));
}

#[test]
fn an_input_that_is_repeated_counts_its_own_bytes() {
    let x = input("x", &[100, 50]);
    for (dims, bytes) in [(vec![50], 200.0), (vec![100, 1], 400.0), (vec![1, 1], 4.0)] {
        let work = work(&(&x + &input("b", &dims)).unwrap());
        assert_eq!((only(&work).bytes, only(&work).strided_bytes), (40_000.0 + bytes, 0.0), "{dims:?}");
    }
}

#[test]
fn of_a_large_input_only_what_is_looked_at_counts() {
    let work = work(&(&input("x", &[1000]).slice(&[breakeven_ir::s(10..20)]).unwrap() + 1.0).unwrap());
    assert_eq!((only(&work).bytes, only(&work).points), (80.0, 10.0));
    assert_eq!(work.upload_bytes, 4000);
}

#[test]
fn what_is_the_same_along_a_row_is_computed_once() {
    let x = input("x", &[20, 50]);
    let total = x.sum(&[1], true).unwrap().exp().unwrap();
    let work = work(&(&x * &total).unwrap().sin().unwrap().sum(&[1], false).unwrap());
    let kernel = only(&work);
    assert_eq!((kernel.class, kernel.points, kernel.row), (Class::Reduce, 1000.0, 50.0));
    assert_eq!((count(kernel, Op::Exp), count(kernel, Op::Mul), count(kernel, Op::Sin)), (20.0, 1000.0, 1000.0));
    assert_eq!(kernel.steps, 2000.0);
    assert_eq!(kernel.bytes, 4.0 * (1000.0 + 20.0));
}

#[test]
fn a_transposed_input_is_strided() {
    let x = input("x", &[30, 40]);
    let across = work(&(&x.transpose().unwrap() + 1.0).unwrap());
    assert_eq!((only(&across).bytes, only(&across).strided_bytes, only(&across).along), (4800.0, 4800.0, false));
    // Backwards is one after the other, too.
    let back = work(&(&x.flip(&[1]).unwrap() + 1.0).unwrap());
    assert_eq!((only(&back).bytes, only(&back).strided_bytes), (9600.0, 0.0));
    // So is the transpose of a single row.
    let row = work(&(&input("x", &[1, 40]).transpose().unwrap() + 1.0).unwrap());
    assert_eq!((only(&row).bytes, only(&row).strided_bytes), (320.0, 0.0));
}

#[test]
fn reductions_run_along_memory_or_across_it() {
    let x = input("x", &[30, 40]);
    let along = work(&x.sum(&[1], false).unwrap());
    assert_eq!((only(&along).along, only(&along).row, only(&along).bytes), (true, 40.0, 4.0 * 1230.0));
    let across = work(&x.sum(&[0], false).unwrap());
    assert_eq!((only(&across).along, only(&across).row, only(&across).points), (false, 30.0, 1200.0));
    let total = work(&x.sum(&[], false).unwrap());
    assert_eq!((only(&total).along, only(&total).row, only(&total).points), (true, 1200.0, 1200.0));
    let scan = work(&x.cumsum(1).unwrap());
    let scan = only(&scan);
    assert_eq!((scan.class, scan.row, scan.steps, scan.bytes), (Class::Scan, 40.0, 1200.0, 9600.0));
}

#[test]
fn a_product_is_its_shape() {
    let (x, y) = (input("x", &[5, 30, 40]), input("y", &[5, 40, 20]));
    let pure = work(&x.matmul(&y).unwrap());
    let kernel = only(&pure);
    assert_eq!((kernel.class, kernel.product), (Class::Contract, Some([5.0, 30.0, 20.0, 40.0])));
    // What it reads is part of it; what is written is counted.
    assert_eq!((kernel.ops.len(), kernel.bytes, kernel.strided_bytes), (0, 4.0 * 3000.0, 0.0));
    assert_eq!((pure.upload_bytes, pure.readback_bytes), (4 * 10_000, 4 * 3000));
    // A transpose is in the strides of its operand.
    let turned = work(&input("x", &[30, 40]).matmul(&input("y", &[20, 40]).transpose().unwrap()).unwrap());
    assert_eq!(only(&turned).product, Some([1.0, 30.0, 20.0, 40.0]));
    assert_eq!((only(&turned).ops.len(), only(&turned).strided_bytes), (0, 0.0));
}

#[test]
fn around_a_product_its_ends_count() {
    let (x, y, b) = (input("x", &[30, 40]), input("y", &[40, 20]), input("b", &[20]));
    let end = work(&(x.matmul(&y).unwrap() + &b).unwrap().exp().unwrap());
    let kernel = only(&end);
    assert_eq!((count(kernel, Op::Add), count(kernel, Op::Exp), kernel.points), (600.0, 600.0, 600.0));
    assert_eq!(kernel.bytes, 4.0 * (600.0 + 20.0));

    let front = work(&x.exp().unwrap().matmul(&y).unwrap());
    let kernel = front.kernels.iter().find(|kernel| kernel.product.is_some()).expect("a product");
    let exps: f64 = front.kernels.iter().map(|kernel| count(kernel, Op::Exp)).sum();
    assert_eq!((exps, kernel.product), (1200.0, Some([1.0, 30.0, 20.0, 40.0])));
}

#[test]
fn a_gather_reads_what_it_takes_from_anywhere() {
    let (table, positions) = (input("x", &[5000]), Tensor::input("p", DType::I32, [300]).unwrap());
    let work = work(&table.take(&positions, 0).unwrap());
    let kernel = only(&work);
    assert_eq!((kernel.points, kernel.strided_bytes), (300.0, 1200.0));
    // The positions and the results; nothing of the table is read in order.
    assert_eq!(kernel.bytes, 2400.0);
    assert_eq!(work.upload_bytes, 4 * 5300);
}

#[test]
fn so_many_times_the_work_is_so_many_times_everything_but_the_rows() {
    let x = input("x", &[20, 50]);
    let one = work(&x.exp().unwrap().softmax(1).unwrap());
    let many = one.times(7.0);
    assert_eq!((many.upload_bytes, many.readback_bytes), (28_000, 28_000));
    let (one, many) = (only(&one), only(&many));
    assert_eq!((many.points, many.steps, many.bytes), (7.0 * one.points, 7.0 * one.steps, 7.0 * one.bytes));
    assert_eq!((many.row, many.class, many.along), (one.row, one.class, one.along));
    assert!(one.ops.iter().zip(&many.ops).all(|(a, b)| a.0 == b.0 && 7.0 * a.1 == b.1));
    let product = work(&x.matmul(&x.transpose().unwrap()).unwrap()).times(3.0);
    assert_eq!(only(&product).product, Some([3.0, 20.0, 20.0, 50.0]));
}

#[test]
fn nothing_to_do_is_nothing_to_pay() {
    let empty = work(&(&input("x", &[0, 5]) + 1.0).unwrap());
    assert_eq!((empty.upload_bytes, empty.readback_bytes), (0, 0));
    assert!(empty.kernels.iter().all(|kernel| kernel.points == 0.0 && kernel.row.is_finite()));
}
