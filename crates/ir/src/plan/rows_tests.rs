//! Which plans can be divided by rows, what of their inputs is cut, and that the parts are plans like any other. That
//! they compute the same is tested with a device, in the workspace's `tests/`.

use crate::plan::{Kernel, Place, Rows};
use crate::{DType, Plan, Tensor, s};

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::input(name, DType::F32, dims).unwrap()
}

/// A plan that is divided, with what holds for all parts checked; which inputs are cut, in their order.
#[track_caller]
fn divided(outputs: &[&Tensor], count: usize) -> Vec<bool> {
    let plan = Plan::new(outputs).unwrap();
    let rows = plan.rows().unwrap_or_else(|| panic!("not divided: {plan}"));
    assert_eq!(rows.count, count, "{plan}");
    for part in [2, count / 2, count - 1, count] {
        check_part(&plan, &rows, part);
    }
    assert!([0, 1, count + 1, usize::MAX].iter().all(|&part| plan.of_rows(&rows, part).is_none()));
    rows.cut_inputs
}

fn check_part(plan: &Plan, rows: &Rows, count: usize) {
    let part = plan.of_rows(rows, count).expect("so many rows are there");
    crate::check::plan(&part);
    crate::check::memory(&part);
    assert_eq!((part.inputs, &part.outputs), (plan.inputs, &plan.outputs));
    for (whole, own) in plan.output_buffers().zip(part.output_buffers()) {
        assert_eq!(own.bytes() * rows.count, whole.bytes() * count);
        assert_eq!(own.shape.rank(), whole.shape.rank());
    }
    for ((whole, own), cut) in plan.input_infos().iter().zip(part.input_infos()).zip(&rows.cut_inputs) {
        let expected = if *cut { whole.bytes() / rows.count * count } else { whole.bytes() };
        assert_eq!(own.bytes(), expected, "{part}");
    }
    if count == rows.count {
        assert_eq!(part.to_string(), plan.to_string(), "all rows are the whole plan");
    }
}

#[track_caller]
fn refused(outputs: &[&Tensor]) {
    let plan = Plan::new(outputs).unwrap();
    assert!(plan.rows().is_none(), "{plan}");
}

#[test]
fn maps_are_divided() {
    let (x, y) = (input("x", &[50, 6]), input("y", &[50, 6]));
    assert_eq!(divided(&[&(x.exp().unwrap() * &y).unwrap()], 50), [true, true]);
    // A bias for every row is whole, one for each row is cut.
    let (bias, each) = (input("b", &[6]), input("e", &[50, 1]));
    assert_eq!(divided(&[&((&x + &bias).unwrap() * &each).unwrap()], 50), [true, false, true]);
    // Vectors have rows of one element.
    assert_eq!(divided(&[&input("v", &[1000]).tanh().unwrap()], 1000), [true]);
    // A leading axis of one is none.
    assert_eq!(divided(&[&input("v", &[1, 1, 40, 3]).tanh().unwrap()], 40), [true]);
    // What lies otherwise has the same rows.
    assert_eq!(divided(&[&input("f", &[300]).reshape(&[50, 6]).unwrap().exp().unwrap()], 50), [true]);
}

#[test]
fn maps_around_row_reductions_are_divided() {
    let x = input("x", &[40, 17]);
    for y in [x.softmax(-1), x.log_softmax(-1), x.sum(&[1], false), x.mean(&[-1], true), x.cumsum(1)] {
        assert_eq!(divided(&[&y.unwrap()], 40), [true]);
    }
    let (gain, shift) = (input("g", &[17]), input("s", &[17]));
    let y = ((x.layer_norm(1, 1e-5).unwrap() * &gain).unwrap() + &shift).unwrap();
    assert_eq!(divided(&[&y], 40), [true, false, false]);
    // Several outputs, of which one has a single element a row.
    assert_eq!(divided(&[&x.softmax(-1).unwrap(), &x.max(&[1], false).unwrap()], 40), [true]);
    // Three axes: those after the first belong to the row.
    let z = input("z", &[12, 5, 7]);
    assert_eq!(divided(&[&z.softmax(1).unwrap(), &z.flip(&[1, 2]).unwrap()], 12), [true]);
    assert_eq!(divided(&[&z.permute(&[0, 2, 1]).unwrap().exp().unwrap()], 12), [true]);
    // A slice and a window within the row, and padding, which is guarded.
    assert_eq!(divided(&[&x.slice(&[s(..), s(3..9)]).unwrap().exp().unwrap()], 40), [true]);
    assert_eq!(divided(&[&x.pad(&[(0, 0), (2, 1)], 0.0f32).unwrap().exp().unwrap()], 40), [true]);
}

#[test]
fn products_are_divided() {
    let (x, w, v) = (input("x", &[64, 9]), input("w", &[9, 11]), input("v", &[11, 5]));
    let first = (x.matmul(&w).unwrap() + &input("b", &[11])).unwrap().relu().unwrap();
    assert_eq!(divided(&[&first], 64), [true, false, false]);
    // Several layers, with memory between them.
    let last = first.matmul(&v).unwrap().softmax(-1).unwrap();
    assert_eq!(divided(&[&last], 64), [true, false, false, false]);
    // Computed sides.
    assert_eq!(divided(&[&x.exp().unwrap().matmul(&w.tanh().unwrap()).unwrap()], 64), [true, false]);
    // Batches of products: both sides of each belong to the row, or the right one to all.
    let (p, q) = (input("p", &[20, 4, 6]), input("q", &[20, 6, 3]));
    assert_eq!(divided(&[&p.matmul(&q).unwrap()], 20), [true, true]);
    assert_eq!(divided(&[&p.matmul(&input("r", &[6, 3])).unwrap()], 20), [true, false]);
    assert_eq!(divided(&[&input("l", &[2, 4]).matmul(&p).unwrap()], 20), [false, true]);
    // Images: the padding is within each.
    let (images, filters) = (input("i", &[10, 3, 8, 8]), input("f", &[4, 3, 3, 3]));
    let conv = images.conv2d(&filters, [1, 1], [1, 1]).unwrap().relu().unwrap();
    let cut = divided(&[&conv], 10);
    assert_eq!(cut.iter().filter(|cut| **cut).count(), 1, "the images: {cut:?}");
}

#[test]
fn what_is_small_and_for_all_rows_is_computed_on_both_sides() {
    let (x, w) = (input("x", &[500, 16]), input("w", &[16, 16]));
    let scale = w.sum(&[], false).unwrap();
    assert_eq!(divided(&[&x.matmul(&(w / scale).unwrap()).unwrap()], 500), [true, false]);
    // What is most of the work is not done twice.
    let (x, w) = (input("x", &[20, 16]), input("w", &[16, 16]));
    refused(&[&x.matmul(&w.matmul(&w).unwrap().matmul(&w).unwrap()).unwrap()]);
}

#[test]
fn rows_that_need_others_are_refused() {
    let x = input("x", &[40, 6]);
    refused(&[&x.sum(&[0], false).unwrap()]);
    refused(&[&x.sum(&[], false).unwrap()]);
    refused(&[&x.softmax(0).unwrap()]);
    refused(&[&x.cumsum(0).unwrap()]);
    refused(&[&x.flip(&[0]).unwrap().exp().unwrap()]);
    refused(&[&x.slice(&[s(1..)]).unwrap().exp().unwrap()]);
    refused(&[&x.slice(&[s(..).step(3)]).unwrap().exp().unwrap()]);
    refused(&[&x.transpose().unwrap().exp().unwrap()]);
    refused(&[&x.reshape(&[60, 4]).unwrap().exp().unwrap()]);
    refused(&[&x.pad(&[(1, 1), (0, 0)], 0.0f32).unwrap()]);
    refused(&[&Tensor::concat(&[&x, &x], 0).unwrap()]);
    // The row before, which the first does not have.
    refused(&[&x.pad(&[(1, 0), (0, 0)], 0.0f32).unwrap().slice(&[s(..40)]).unwrap().exp().unwrap()]);
    // Two rows apart, which are as far from each other in every row.
    let (first, second) = (x.slice(&[s(..20)]).unwrap(), x.slice(&[s(20..)]).unwrap());
    refused(&[&(first + second).unwrap()]);
    // The row at hand, and the sum of all.
    refused(&[&(&x - &x.sum(&[0], true).unwrap()).unwrap()]);
    // The same input once as rows and once as a whole.
    refused(&[&x.matmul(&x.transpose().unwrap()).unwrap()]);
    // The rows of a square's product are those of its left side, not of its right.
    let square = input("q", &[40, 40]);
    assert_eq!(divided(&[&input("x", &[40, 40]).matmul(&square).unwrap()], 40), [true, false]);
    refused(&[&square.matmul(&square).unwrap()]);
}

#[test]
fn a_row_may_be_several_of_an_input() {
    let x = input("x", &[40, 6]);
    assert_eq!(divided(&[&x.slice(&[s(..).step(2)]).unwrap().exp().unwrap()], 20), [true]);
    assert_eq!(divided(&[&x.reshape(&[20, 12]).unwrap().softmax(1).unwrap()], 20), [true]);
    assert_eq!(divided(&[&x.reshape(&[20, 2, 6]).unwrap().sum(&[1], false).unwrap()], 20), [true]);
}

#[test]
fn what_depends_on_the_number_of_its_row_is_refused() {
    let x = input("x", &[40, 6]);
    let numbers = Tensor::arange(0.0f32, 40.0, 1.0).unwrap().reshape(&[40, 1]).unwrap();
    refused(&[&(&x + &numbers).unwrap()]);
    // Numbers within the row are the same for all.
    assert_eq!(divided(&[&(&x + &Tensor::arange(0.0f32, 6.0, 1.0).unwrap()).unwrap()], 40), [true]);
    let places = Tensor::input("i", DType::I32, [40]).unwrap();
    refused(&[&input("table", &[9, 6]).take(&places, 0).unwrap()]);
}

#[test]
fn what_has_no_rows_is_refused() {
    refused(&[&input("x", &[1, 1]).exp().unwrap()]);
    refused(&[&input("x", &[]).exp().unwrap()]);
    refused(&[&input("x", &[0, 4]).exp().unwrap()]);
    refused(&[&input("x", &[40, 6]).exp().unwrap(), &input("y", &[3, 6]).exp().unwrap()]);
    refused(&[&input("x", &[40, 6]).exp().unwrap(), &input("y", &[30, 6]).exp().unwrap()]);
    // How a long sum across memory is split may depend on how many columns there are.
    refused(&[&input("x", &[40, 3000, 6]).sum(&[1], false).unwrap()]);
}

#[test]
fn plans_without_fusion_are_divided_alike() {
    let (x, w) = (input("x", &[64, 9]), input("w", &[9, 11]));
    let y = x.matmul(&w).unwrap().layer_norm(1, 1e-5).unwrap().tanh().unwrap();
    let plan = Plan::unfused(&[&y]).unwrap();
    let rows = plan.rows().expect("each operation goes row by row");
    assert_eq!(rows.cut_inputs, [true, false]);
    let part = plan.of_rows(&rows, 16).unwrap();
    assert!(part.scratch_bytes < plan.scratch_bytes, "temporaries have fewer rows, too");
    let has_whole = |info: &crate::plan::BufferInfo| matches!(info.place, Place::Scratch(_)) && info.shape[0] == 64;
    assert!(!part.buffers.iter().any(has_whole), "{part}");
    let products = part.kernels.iter().filter_map(|kernel| match kernel {
        Kernel::Contract(c) => Some((c.m, c.left.axes[0].clone(), c.right.axes[0].clone())),
        Kernel::Loops(_) => None,
    });
    assert_eq!(products.collect::<Vec<_>>(), [(16, vec![16], vec![9])]);
}
