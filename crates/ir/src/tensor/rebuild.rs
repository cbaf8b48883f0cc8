//! Records a recipe again for inputs of other shapes: how one program takes tasks of different sizes.

use super::{Args, Kind, Tensor, Walk, elementwise};
use crate::error::Result;
use crate::shape::Shape;
use std::collections::HashMap;

impl Tensor {
    /// `outputs` recorded again with each of `inputs` having the shape beside it. Shapes that an operation fixes (a
    /// reshape to given extents) must fit, else this is the error that recording it by hand would give.
    pub fn with_input_shapes(
        outputs: &[&Tensor],
        inputs: &[&Tensor],
        shapes: &[Shape],
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let mut done: HashMap<*const super::Node, Tensor> = HashMap::new();
        let mut fresh = Vec::with_capacity(inputs.len());
        for (input, &shape) in inputs.iter().zip(shapes) {
            let again = Tensor::node(input.0.kind.clone(), shape, input.dtype());
            done.insert(input.address(), again.clone());
            fresh.push(again);
        }
        Ok((fresh, again(outputs, done)?))
    }
}

/// `outputs` recorded again, where `done` says what stands for some of their nodes.
pub(super) fn again(outputs: &[&Tensor], mut done: HashMap<*const super::Node, Tensor>) -> Result<Vec<Tensor>> {
    for tensor in Walk::new(outputs).order() {
        if done.contains_key(&tensor.address()) {
            continue;
        }
        let again = rebuilt(tensor, |arg| done[&arg.address()].clone())?;
        done.insert(tensor.address(), again);
    }
    Ok(outputs.iter().map(|t| done[&t.address()].clone()).collect())
}

/// One node recorded again with arguments from `get`.
fn rebuilt(tensor: &Tensor, get: impl Fn(&Tensor) -> Tensor) -> Result<Tensor> {
    match &tensor.0.kind {
        Kind::Input(_) | Kind::Data(_) | Kind::Const(_) | Kind::Arange { .. } => Ok(tensor.clone()),
        Kind::Count { arg, axes } => {
            Ok(Tensor::node(Kind::Count { arg: get(arg), axes: *axes }, Shape::SCALAR, tensor.dtype()))
        }
        Kind::Map { op, args: Args::One(a), .. } => elementwise::map(*op, &[&get(a)]),
        Kind::Map { op, args: Args::Two(a, b), .. } => elementwise::map(*op, &[&get(a), &get(b)]),
        Kind::Map { op, args: Args::Three(a, b, c), .. } => elementwise::map(*op, &[&get(a), &get(b), &get(c)]),
        Kind::Reduce { op, arg, axes, blank } => get(arg).reduce_kept(*op, *axes, *blank),
        Kind::Scan { op, arg, axis } => get(arg).scan(*op, isize::from(*axis as i8)),
        Kind::Matmul { left, right } => get(left).matmul(&get(right)),
        Kind::Move { arg, by } => get(arg).moved((**by).clone()),
        Kind::Concat { args, axis } => {
            let args: Vec<Tensor> = args.iter().map(get).collect();
            Tensor::concat(&args.iter().collect::<Vec<_>>(), isize::from(*axis as i8))
        }
        Kind::Take { arg, indices, axis } => get(arg).take(&get(indices), isize::from(*axis as i8)),
    }
}
