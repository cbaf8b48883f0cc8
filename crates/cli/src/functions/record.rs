//! How the rows of the table are recorded: bound arguments enter, a tensor leaves. One short function for each row.

use breakeven::{AxisSet, DType, RecordError, ReduceOp, Scalar, ScanOp, Tensor};

use super::Args;
use crate::record::{MAX_ELEMS, Mistake, Number, Value, operands, said};

type Recorded = Result<Tensor, Mistake>;

/// Rows whose arguments are an array, axes and keepdims.
macro_rules! reductions {
    ($($name:ident)*) => {$(
        pub(super) fn $name(args: &Args) -> Recorded {
            args.tensor(0)?.$name(&args.axes(1)?, args.flag(2)?).map_err(args.said())
        }
    )*};
}
reductions! { sum prod max min mean norm any all }

pub(super) fn var(args: &Args) -> Recorded {
    args.tensor(0)?.var(&args.axes(1)?, ddof(args)?, args.flag(3)?).map_err(args.said())
}

pub(super) fn std(args: &Args) -> Recorded {
    args.tensor(0)?.std(&args.axes(1)?, ddof(args)?, args.flag(3)?).map_err(args.said())
}

fn ddof(args: &Args) -> Result<u32, Mistake> {
    let ddof = args.int(2)?;
    u32::try_from(ddof).map_err(|_| args.mistake(2, format!("ddof must be 0 or a positive integer, found {ddof}")))
}

pub(super) fn argmax(args: &Args) -> Recorded {
    arg_reduce(ReduceOp::ArgMax, args)
}

pub(super) fn argmin(args: &Args) -> Recorded {
    arg_reduce(ReduceOp::ArgMin, args)
}

fn arg_reduce(op: ReduceOp, args: &Args) -> Recorded {
    let axes: Vec<isize> = args.optional_int(1)?.into_iter().collect();
    let x = args.tensor(0)?;
    let reduced: AxisSet = x.shape().axes(&axes).map_err(args.said())?;
    // Indices are i32: what they cannot count must not wrap silently.
    let along = reduced.iter().try_fold(1usize, |elems, axis| elems.checked_mul(x.shape()[axis]));
    if along.is_none_or(|along| i32::try_from(along).is_err()) {
        let message = format!("{} over more than 2^31 - 1 elements of shape {}", op.name(), x.shape());
        return Err(args.mistake(0, message).help("indices are i32: go along one axis, or a part of it"));
    }
    let index = x.reduce(op, &axes, args.flag(2)?).map_err(args.said())?;
    // Of one element the index is known, and nothing need be read.
    if along == Some(1) { Tensor::zeros(index.shape(), index.dtype()).map_err(args.said()) } else { Ok(index) }
}

pub(super) fn cumsum(args: &Args) -> Recorded {
    scan(ScanOp::Sum, args)
}

pub(super) fn cumprod(args: &Args) -> Recorded {
    scan(ScanOp::Prod, args)
}

pub(super) fn cummax(args: &Args) -> Recorded {
    scan(ScanOp::Max, args)
}

fn scan(op: ScanOp, args: &Args) -> Recorded {
    let (x, axis) = flattened(args, 0, 1)?;
    x.scan(op, axis).map_err(args.said())
}

/// The array and the axis, or without an axis the flattened array.
fn flattened(args: &Args, x: usize, axis: usize) -> Result<(Tensor, isize), Mistake> {
    let x = args.tensor(x)?;
    match args.optional_int(axis)? {
        Some(axis) => Ok((x, axis)),
        None => Ok((flat(&x).map_err(args.said())?, 0)),
    }
}

/// All elements along one axis. The extent is written out, as -1 says nothing about an array without elements.
fn flat(x: &Tensor) -> Result<Tensor, RecordError> {
    x.reshape(&[x.shape().elems() as isize])
}

pub(super) fn softmax(args: &Args) -> Recorded {
    args.tensor(0)?.softmax(args.int(1)?).map_err(args.said())
}

pub(super) fn log_softmax(args: &Args) -> Recorded {
    args.tensor(0)?.log_softmax(args.int(1)?).map_err(args.said())
}

pub(super) fn layer_norm(args: &Args) -> Recorded {
    args.tensor(0)?.layer_norm(args.int(1)?, args.number(2)?.to_f64() as f32).map_err(args.said())
}

pub(super) fn relu(args: &Args) -> Recorded {
    args.tensor(0)?.relu().map_err(args.said())
}

pub(super) fn leaky_relu(args: &Args) -> Recorded {
    args.tensor(0)?.leaky_relu(args.number(1)?.to_f64() as f32).map_err(args.said())
}

pub(super) fn elu(args: &Args) -> Recorded {
    args.tensor(0)?.elu(args.number(1)?.to_f64() as f32).map_err(args.said())
}

pub(super) fn clip(args: &Args) -> Recorded {
    use breakeven::Op;
    let mut x = args.tensor(0)?;
    for (at, op) in [(1, Op::Maximum), (2, Op::Minimum)] {
        if matches!(args.value(at), Value::None) {
            continue;
        }
        let pair = [Value::Tensor(x), args.value(at).clone()];
        let pair = operands(op, &pair).map_err(|error| args.mistake(at, error))?;
        x = Tensor::apply(op, &pair.iter().collect::<Vec<_>>()).map_err(args.said())?;
    }
    Ok(x)
}

pub(super) fn cast(args: &Args) -> Recorded {
    let x = args.tensor(0)?;
    match args.dtype(1)? {
        Some(dtype) => x.cast(dtype).map_err(args.said()),
        None => Ok(x),
    }
}

pub(super) fn matmul(args: &Args) -> Recorded {
    args.tensor(0)?.matmul(&args.tensor(1)?).map_err(args.said())
}

pub(super) fn dot(args: &Args) -> Recorded {
    args.tensor(0)?.dot(&args.tensor(1)?).map_err(args.said())
}

pub(super) fn conv2d(args: &Args) -> Recorded {
    let (x, weight) = (args.tensor(0)?, args.tensor(1)?);
    let result = x.conv2d(&weight, args.pair(2)?, args.pair(3)?).map_err(args.said())?;
    // The windows that it reads are larger than both its arguments and its result.
    let depth = weight.shape()[1..].iter().product::<usize>();
    match result.shape().elems().checked_mul(depth.max(1)) {
        Some(points) if points <= MAX_ELEMS << 10 => Ok(result),
        _ => Err(args.mistake(0, format!("conv2d over shape {} takes too many products", x.shape()))),
    }
}

pub(super) fn reshape(args: &Args) -> Recorded {
    args.tensor(0)?.reshape(&args.ints(1)?).map_err(args.said())
}

pub(super) fn permute(args: &Args) -> Recorded {
    let (x, order) = (args.tensor(0)?, args.ints(1)?);
    ordered(args, &x, &order)
}

pub(super) fn transpose(args: &Args) -> Recorded {
    let x = args.tensor(0)?;
    match args.value(1) {
        Value::None => x.transpose().map_err(args.said()),
        _ => ordered(args, &x, &args.ints(1)?),
    }
}

fn ordered(args: &Args, x: &Tensor, order: &[isize]) -> Recorded {
    if order.len() != x.shape().rank() {
        let (found, rank) = (order.len(), x.shape().rank());
        return Err(args.mistake(1, format!("the order names {found} axes, and shape {} has {rank}", x.shape())));
    }
    x.permute(order).map_err(args.said())
}

pub(super) fn swapaxes(args: &Args) -> Recorded {
    args.tensor(0)?.swap_axes(args.int(1)?, args.int(2)?).map_err(args.said())
}

pub(super) fn expand_dims(args: &Args) -> Recorded {
    args.tensor(0)?.expand_dims(&args.ints(1)?).map_err(args.said())
}

pub(super) fn squeeze(args: &Args) -> Recorded {
    args.tensor(0)?.squeeze(&args.axes(1)?).map_err(args.said())
}

pub(super) fn broadcast_to(args: &Args) -> Recorded {
    args.tensor(0)?.broadcast_to(&args.counts(1)?).map_err(args.said())
}

pub(super) fn flip(args: &Args) -> Recorded {
    args.tensor(0)?.flip(&args.axes(1)?).map_err(args.said())
}

pub(super) fn rot90(args: &Args) -> Recorded {
    // Four quarter turns are none.
    args.tensor(0)?.rot90(args.int(1)?.rem_euclid(4) as i32).map_err(args.said())
}

pub(super) fn pad(args: &Args) -> Recorded {
    let x = args.tensor(0)?;
    let value = number_as(args, 2, x.dtype())?;
    let rank = x.shape().rank();
    let expected = || args.mistake(1, "pad_width must be n, (before, after), or such a pair for each axis");
    let widths = match args.value(1) {
        Value::Sequence(pairs) if pairs.items().iter().any(|item| matches!(item, Value::Sequence(_))) => {
            let pair = |item: &Value| match item {
                Value::Sequence(pair) => match pair.items() {
                    [before, after] => Some((count(before)?, count(after)?)),
                    _ => None,
                },
                _ => None,
            };
            let pairs: Vec<(usize, usize)> =
                pairs.items().iter().map(pair).collect::<Option<_>>().ok_or_else(expected)?;
            // One pair in a tuple is for every axis.
            if pairs.len() == 1 { vec![pairs[0]; rank] } else { pairs }
        }
        _ => match args.counts(1)?[..] {
            [both] => vec![(both, both); rank],
            [before, after] => vec![(before, after); rank],
            _ => return Err(expected()),
        },
    };
    x.pad(&widths, value).map_err(args.said())
}

fn count(value: &Value) -> Option<usize> {
    match value {
        Value::Number(Number::Int(count)) => usize::try_from(*count).ok().filter(|count| *count <= MAX_ELEMS),
        _ => None,
    }
}

/// A number as a scalar of `dtype`.
fn number_as(args: &Args, at: usize, dtype: DType) -> Result<Scalar, Mistake> {
    Ok(match args.number(at)? {
        Number::Bool(value) => Scalar::from(value),
        Number::Float(value) => Scalar::from(value as f32),
        Number::Int(value) if dtype == DType::F32 => Scalar::from(value as f32),
        Number::Int(value) => match (i32::try_from(value), u32::try_from(value)) {
            (_, Ok(value)) if dtype == DType::U32 => Scalar::from(value),
            (Ok(value), _) if dtype != DType::U32 => Scalar::from(value),
            _ => return Err(args.mistake(at, format!("the number {value} does not fit in {dtype}"))),
        },
    }
    .cast(dtype))
}

pub(super) fn concat(args: &Args) -> Recorded {
    let mut tensors = args.tensors(0)?;
    let axis = match args.optional_int(1)? {
        Some(axis) => axis,
        None => {
            tensors = tensors.iter().map(flat).collect::<Result<_, _>>().map_err(args.said())?;
            0
        }
    };
    Tensor::concat(&tensors.iter().collect::<Vec<_>>(), axis).map_err(args.said())
}

pub(super) fn stack(args: &Args) -> Recorded {
    let tensors = args.tensors(0)?;
    Tensor::stack(&tensors.iter().collect::<Vec<_>>(), args.int(1)?).map_err(args.said())
}

pub(super) fn tile(args: &Args) -> Recorded {
    let (x, reps) = (args.tensor(0)?, args.counts(1)?);
    // Extents of 0 hide a product that does not fit from the check of the result's size.
    let factors = x.shape().to_vec().into_iter().chain(reps.iter().copied());
    let elems = factors.map(|factor| factor.max(1)).try_fold(1usize, usize::checked_mul);
    if elems.is_none_or(|elems| elems > MAX_ELEMS) {
        return Err(args.mistake(1, format!("tile of shape {} {reps:?} times has more than 2^40 elements", x.shape())));
    }
    x.tile(&reps).map_err(args.said())
}

pub(super) fn windows(args: &Args) -> Recorded {
    let (x, sizes) = (args.tensor(0)?, args.counts(1)?);
    let axes: Vec<isize> = match args.axes(2)? {
        none if none.is_empty() => (0..x.shape().rank() as isize).collect(),
        axes => axes,
    };
    let strides = match &args.counts(3)?[..] {
        [one] => vec![*one; axes.len()],
        strides => strides.to_vec(),
    };
    x.windows(&axes, &sizes, &strides).map_err(args.said())
}

pub(super) fn take(args: &Args) -> Recorded {
    let (x, axis) = flattened(args, 0, 2)?;
    x.take(&args.tensor(1)?, axis).map_err(args.said())
}

pub(super) fn zeros(args: &Args) -> Recorded {
    Tensor::zeros(&args.counts(0)?, dtype_or_default(args, 1)?).map_err(args.said())
}

pub(super) fn ones(args: &Args) -> Recorded {
    Tensor::ones(&args.counts(0)?, dtype_or_default(args, 1)?).map_err(args.said())
}

fn dtype_or_default(args: &Args, at: usize) -> Result<DType, Mistake> {
    Ok(args.dtype(at)?.unwrap_or(DType::F32))
}

pub(super) fn full(args: &Args) -> Recorded {
    let value = match (args.value(1), args.dtype(2)?) {
        (Value::Number(_), Some(dtype)) => Tensor::scalar(number_as(args, 1, dtype)?),
        (_, Some(dtype)) => args.tensor(1)?.cast(dtype).map_err(args.said())?,
        (_, None) => args.tensor(1)?,
    };
    value.broadcast_to(&args.counts(0)?).map_err(args.said())
}

pub(super) fn arange(args: &Args) -> Recorded {
    let (start, stop) = match args.value(1) {
        Value::None => (Number::Int(0), args.number(0)?),
        _ => (args.number(0)?, args.number(1)?),
    };
    let step = args.number(2)?;
    let numbers = [start, stop, step];
    let found = if numbers.iter().any(|number| number.to_int().is_none()) { DType::F32 } else { DType::I32 };
    let dtype = args.dtype(3)?.unwrap_or(found);
    // The count is numpy's, in f64: in f32 the range from 0 to 0.3 in steps of 0.1 would have four elements.
    let count = ((stop.to_f64() - start.to_f64()) / step.to_f64()).ceil().max(0.0);
    if step.to_f64() == 0.0 || !count.is_finite() {
        let error = args.mistake(2, format!("arange from {start} to {stop} in steps of {step} has no end"));
        return Err(error.help("use a step other than 0"));
    }
    let count = match i32::try_from(count as i64) {
        Ok(count) => count,
        Err(_) => return Err(args.mistake(1, format!("arange of {count} elements; at most 2^31 - 1 can be counted"))),
    };
    let record = || -> Result<Tensor, String> {
        let counter = Tensor::arange(0i32, count, 1).map_err(said)?;
        let counter = counter.cast(if found == DType::I32 { DType::I32 } else { DType::F32 }).map_err(said)?;
        let scaled = match step {
            Number::Int(1) => counter,
            _ => counter.mul(step.tensor(found)?).map_err(said)?,
        };
        let moved = match start {
            Number::Int(0) => scaled,
            _ => scaled.add(start.tensor(found)?).map_err(said)?,
        };
        moved.cast(dtype).map_err(said)
    };
    // The last element must fit as well, or the counting would wrap.
    let last = start.to_f64() + step.to_f64() * f64::from((count - 1).max(0));
    if found == DType::I32 && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&last) {
        let error = args.mistake(0, format!("arange up to {last} does not fit in i32"));
        return Err(error.help("count in floats, such as `arange(0.0, n)`"));
    }
    record().map_err(|error| args.mistake(0, error))
}
