//! What a cut hands over, and that both of its sides are plans like any other. That they compute the same is tested
//! with a device, in the workspace's `tests/`.

use super::{Cut, From, MadeBy};
use crate::plan::{Kernel, Place};
use crate::{DType, Plan, Tensor, s};

fn input(name: &str, dims: &[usize]) -> Tensor {
    Tensor::input(name, DType::F32, dims).unwrap()
}

/// Every cut, each checked for what holds for all.
fn cuts(plan: &Plan) -> Vec<Cut> {
    let cuts: Vec<Cut> = (1..plan.kernels.len()).map(|at| plan.cut(at).expect("inside the plan")).collect();
    for (cut, at) in cuts.iter().zip(1..) {
        assert_eq!((cut.front.kernels.len(), cut.back.kernels.len()), (at, plan.kernels.len() - at));
        for side in [&cut.front, &cut.back] {
            crate::check::plan(side);
            crate::check::memory(side);
            let places: Vec<Place> = side.buffers.iter().map(|b| b.place).collect();
            let named = side.inputs + side.outputs.len();
            for (number, place) in places[..named].iter().enumerate() {
                let is_input = number < side.inputs;
                let expected = if is_input { Place::Input(number) } else { Place::Output(number - side.inputs) };
                assert_eq!(*place, expected, "{side}");
            }
            assert!(places[named..].iter().all(|place| matches!(place, Place::Scratch(_))), "{side}");
            assert!(side.outputs.iter().zip(side.inputs..).all(|(id, at)| id.0 as usize == at), "{side}");
        }
        assert_eq!((cut.front_inputs.len(), cut.back_sources.len()), (cut.front.inputs, cut.back.inputs));
        assert_eq!(cut.outputs.len(), plan.output_buffers().count());
        let crossing = cut.back_sources.iter().zip(cut.back.input_infos());
        let bytes = crossing.filter(|(from, _)| matches!(from, From::Front(_))).map(|(_, info)| info.bytes() as u64);
        assert_eq!(bytes.sum::<u64>(), plan.crossing_bytes(at), "cut before {at} of {plan}");
    }
    cuts
}

#[test]
fn a_cut_needs_kernels_on_both_sides() {
    let x = input("x", &[4, 4]);
    let plan = Plan::new(&[&x.matmul(&x).unwrap().softmax(-1).unwrap()]).unwrap();
    assert_eq!([0, 1, 2, 3, usize::MAX].map(|at| plan.cut(at).is_some()), [false, true, false, false, false]);
    assert_eq!([0, 1, 2, 3, usize::MAX].map(|at| plan.crossing_bytes(at)), [0, 64, 0, 0, 0]);
    assert!(Plan::new(&[&x.exp().unwrap()]).unwrap().cut(1).is_none());
}

#[test]
fn a_product_keeps_its_place() {
    // The product is read by its own kernel's end: that is no reading of another kernel's buffer.
    let (x, w) = (input("x", &[4, 8]), input("w", &[8, 6]));
    let first = x.matmul(&w).unwrap().relu().unwrap();
    let second = first.softmax(-1).unwrap().matmul(&input("v", &[6, 5])).unwrap().tanh().unwrap();
    let plan = Plan::new(&[&second]).unwrap();
    assert_eq!(plan.kernels.len(), 3, "{plan}");
    for cut in cuts(&plan) {
        for kernel in cut.front.kernels.iter().chain(&cut.back.kernels) {
            let Kernel::Contract(c) = kernel else { continue };
            assert_eq!(c.end.body.accesses[c.product as usize].buffer, c.end.stores[0].buffer);
        }
    }
    let last = plan.cut(2).unwrap();
    assert_eq!((last.front_inputs, last.back_sources), (vec![0, 1], vec![From::Input(2), From::Front(0)]));
    assert_eq!(plan.crossing_bytes(2), 4 * 6 * 4);
}

#[test]
fn inputs_go_where_they_are_read() {
    let (a, b, c) = (input("a", &[4, 4]), input("b", &[4, 4]), input("c", &[4, 4]));
    // `b` is read by both sides, `c` by the back alone.
    let y = ((a.matmul(&b).unwrap().softmax(-1).unwrap() * &b).unwrap() + &c).unwrap();
    let cut = cuts(&Plan::new(&[&y]).unwrap()).remove(0);
    assert_eq!(cut.front_inputs, [0, 1]);
    assert_eq!(cut.back_sources, [From::Input(1), From::Input(2), From::Front(0)]);
}

#[test]
fn an_output_of_the_front_is_handed_over_once() {
    let (x, w) = (input("x", &[4, 8]), input("w", &[8, 8]));
    let y = x.matmul(&w).unwrap();
    let z = y.softmax(-1).unwrap();
    // The product is an output twice, and the back reads it too.
    let plan = Plan::new(&[&y, &z, &y]).unwrap();
    let cut = cuts(&plan).remove(0);
    assert_eq!(plan.outputs.len(), 3);
    assert_eq!(cut.outputs, [MadeBy::Front(0), MadeBy::Back(0)]);
    assert_eq!((cut.front.outputs.len(), cut.back.outputs.len()), (1, 1));
    assert_eq!(cut.back_sources, [From::Front(0)]);
    // A gap in the numbers of the whole plan's outputs is none in the parts'.
    let repeated = Plan::new(&[&y, &y, &z]).unwrap();
    assert_eq!(repeated.buffer(repeated.outputs[2]).place, Place::Output(2));
    assert_eq!(cuts(&repeated)[0].outputs, [MadeBy::Front(0), MadeBy::Back(0)]);
}

#[test]
fn an_output_that_nothing_reads_does_not_cross() {
    let (x, w) = (input("x", &[4, 8]), input("w", &[8, 8]));
    let first = x.matmul(&w).unwrap();
    let second = w.matmul(&w).unwrap();
    let plan = Plan::new(&[&first, &second]).unwrap();
    let cut = cuts(&plan).remove(0);
    assert_eq!(plan.crossing_bytes(1), 0);
    assert!(cut.back_sources.iter().all(|from| matches!(from, From::Input(_))));
    assert_eq!((cut.front.outputs.len(), cut.back.outputs.len()), (1, 1));
}

#[test]
fn an_output_that_is_an_input_is_a_copy_that_someone_makes() {
    let x = input("x", &[3, 3]);
    let plan = Plan::new(&[&x, &x.matmul(&x).unwrap().softmax(-1).unwrap()]).unwrap();
    assert!(plan.outputs.iter().all(|id| id.0 as usize >= plan.inputs), "{plan}");
    for cut in cuts(&plan) {
        assert_eq!(cut.outputs.len(), 2);
    }
}

#[test]
fn what_is_empty_or_unread_belongs_to_no_kernel() {
    let (x, empty) = (input("x", &[3, 3]), input("empty", &[0, 3]));
    let y = x.matmul(&x).unwrap();
    let plan = Plan::new(&[&empty.exp().unwrap(), &y, &y.softmax(-1).unwrap()]).unwrap();
    assert_eq!(plan.inputs, 2);
    let cut = cuts(&plan).remove(0);
    assert_eq!((cut.front.inputs, cut.back.inputs), (1, 1));
    assert_eq!(cut.outputs, [MadeBy::Back(0), MadeBy::Front(0), MadeBy::Back(1)]);
    assert_eq!(cut.back.output_buffers().next().map(|info| info.bytes()), Some(0));
}

#[test]
fn each_side_lays_its_own_scratch_out() {
    let mut x = input("x", &[16, 16]);
    for _ in 0..6 {
        x = x.matmul(&x).unwrap().softmax(-1).unwrap().slice(&[s(..).step(-1)]).unwrap();
    }
    for plan in [Plan::new(&[&x]).unwrap(), Plan::unfused(&[&x]).unwrap()] {
        for cut in cuts(&plan) {
            assert!(cut.front.scratch_bytes <= plan.scratch_bytes && cut.back.scratch_bytes <= plan.scratch_bytes);
        }
        let shortest = plan.cut(1).unwrap();
        assert_eq!((shortest.front.scratch_bytes, shortest.front.buffers.len()), (0, 2), "{}", shortest.front);
    }
}

#[test]
fn a_buffer_that_both_sides_write_is_not_cut() {
    let x = input("x", &[4, 4]);
    let mut plan = Plan::new(&[&x.matmul(&x).unwrap().softmax(-1).unwrap()]).unwrap();
    let first = plan.kernels[0].end().stores[0].buffer;
    let Kernel::Loops(last) = &mut plan.kernels[1] else { unreachable!("a softmax") };
    last.stores[0].buffer = first;
    assert!(plan.cut(1).is_none());
}
