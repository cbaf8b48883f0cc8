//! The table of functions that are not elementwise: name, class, dtypes, parameters with their defaults, how to record
//! it, and what it computes. The signatures are numpy's where numpy has the function.

use breakeven::Tensor;

use super::record as r;
use super::signature::Class::{Activation, Contract, Create, Movement, Reduce, Row, Scan};
use super::{Args, Class, Function, Param, Types};
use crate::record::Mistake;

const fn row(
    name: &'static str,
    class: Class,
    types: Types,
    params: &'static [Param],
    record: fn(&Args) -> Result<Tensor, Mistake>,
    doc: &'static str,
) -> Function {
    Function { name, class, types, params, doc, record }
}

const X: Param = Param::required("x");
const Y: Param = Param::required("y");
const AXIS: Param = Param::required("axis");
const ALL_AXES: Param = AXIS.or("None");
const LAST_AXIS: Param = AXIS.or("-1");
const FIRST_AXIS: Param = AXIS.or("0");
const KEEPDIMS: Param = Param::required("keepdims").or("False");
const DDOF: Param = Param::required("ddof").or("0");
const ARRAYS: Param = Param::required("arrays");
const SHAPE: Param = Param::required("shape");
const DTYPE: Param = Param::required("dtype");

pub(super) const UNARY: [Param; 1] = [X];
pub(super) const BINARY: [Param; 2] = [X, Y];
pub(super) const TERNARY: [Param; 3] = [Param::required("condition"), X, Y];
const REDUCE: &[Param] = &[X, ALL_AXES, KEEPDIMS];
const SPREAD: &[Param] = &[X, ALL_AXES, DDOF, KEEPDIMS];
const SCAN: &[Param] = &[X, ALL_AXES];

static TABLE: &[Function] = &[
    row("relu", Activation, Types::Same, &[X], r::relu, "max(x, 0)"),
    row(
        "leaky_relu",
        Activation,
        Types::Float,
        &[X, Param::required("slope").or("0.01")],
        r::leaky_relu,
        "x where it is positive, else slope * x",
    ),
    row(
        "elu",
        Activation,
        Types::Float,
        &[X, Param::required("alpha").or("1.0")],
        r::elu,
        "x where it is positive, else alpha * (exp(x) - 1)",
    ),
    row(
        "clip",
        Activation,
        Types::Same,
        &[X, Param::required("min").or("None").alias("a_min"), Param::required("max").or("None").alias("a_max")],
        r::clip,
        "x limited to min..max; NaN stays NaN",
    ),
    row("cast", Activation, Types::Made, &[X, DTYPE], r::cast, "x in another dtype: f32, i32, u32 or bool"),
    row("sum", Reduce, Types::Counts, REDUCE, r::sum, "the sum; of bools, how many are true"),
    row("prod", Reduce, Types::Counts, REDUCE, r::prod, "the product"),
    row("max", Reduce, Types::Same, REDUCE, r::max, "the largest element; NaN if there is one"),
    row("min", Reduce, Types::Same, REDUCE, r::min, "the smallest element; NaN if there is one"),
    row("mean", Reduce, Types::Float, REDUCE, r::mean, "the arithmetic mean"),
    row("var", Reduce, Types::Float, SPREAD, r::var, "the variance, divided by the count less ddof"),
    row("std", Reduce, Types::Float, SPREAD, r::std, "the standard deviation: sqrt(var)"),
    row("norm", Reduce, Types::Float, REDUCE, r::norm, "the Euclidean norm: sqrt of the sum of squares"),
    row(
        "argmax",
        Reduce,
        Types::ToI32,
        REDUCE,
        r::argmax,
        "the index of the first largest element, of one axis or of the flattened array",
    ),
    row(
        "argmin",
        Reduce,
        Types::ToI32,
        REDUCE,
        r::argmin,
        "the index of the first smallest element, of one axis or of the flattened array",
    ),
    row("any", Reduce, Types::ToBool, REDUCE, r::any, "is any element other than 0?"),
    row("all", Reduce, Types::ToBool, REDUCE, r::all, "are all elements other than 0?"),
    row("cumsum", Scan, Types::Counts, SCAN, r::cumsum, "the running sum along axis, or over the flattened array"),
    row(
        "cumprod",
        Scan,
        Types::Counts,
        SCAN,
        r::cumprod,
        "the running product along axis, or over the flattened array",
    ),
    row("cummax", Scan, Types::Same, SCAN, r::cummax, "the running maximum along axis, or over the flattened array"),
    row("softmax", Row, Types::Float, &[X, LAST_AXIS], r::softmax, "exp(x) / sum(exp(x)) along axis, without overflow"),
    row(
        "log_softmax",
        Row,
        Types::Float,
        &[X, LAST_AXIS],
        r::log_softmax,
        "log(softmax(x)) along axis, without overflow",
    ),
    row(
        "layer_norm",
        Row,
        Types::Float,
        &[X, LAST_AXIS, Param::required("eps").or("1e-5")],
        r::layer_norm,
        "(x - mean) / sqrt(var + eps) along axis",
    ),
    row("matmul", Contract, Types::Float, &[X, Y], r::matmul, "x @ y with numpy's batch rules"),
    row("dot", Contract, Types::Float, &[X, Y], r::dot, "the sum of products of two vectors, else x @ y"),
    row(
        "conv2d",
        Contract,
        Types::Float,
        &[X, Param::required("weight"), Param::required("stride").or("1"), Param::required("padding").or("0")],
        r::conv2d,
        "x [n, c, h, w] with weight [o, c, kh, kw]; stride and padding are one integer or a pair",
    ),
    row(
        "reshape",
        Movement,
        Types::Same,
        &[X, SHAPE.rest()],
        r::reshape,
        "the same elements under another shape; one extent may be -1",
    ),
    row(
        "permute",
        Movement,
        Types::Same,
        &[X, Param::required("order").rest().alias("axes")],
        r::permute,
        "axis i of the result is axis order[i] of x",
    ),
    row(
        "transpose",
        Movement,
        Types::Same,
        &[X, Param::required("axes").or("None").rest()],
        r::transpose,
        "all axes reversed, or in the given order",
    ),
    row(
        "swapaxes",
        Movement,
        Types::Same,
        &[X, Param::required("axis1"), Param::required("axis2")],
        r::swapaxes,
        "two axes exchanged",
    ),
    row(
        "expand_dims",
        Movement,
        Types::Same,
        &[X, AXIS],
        r::expand_dims,
        "new axes of extent 1 at these places of the result",
    ),
    row(
        "squeeze",
        Movement,
        Types::Same,
        &[X, ALL_AXES],
        r::squeeze,
        "without these axes of extent 1, or without all of them",
    ),
    row(
        "broadcast_to",
        Movement,
        Types::Same,
        &[X, SHAPE],
        r::broadcast_to,
        "repeated to a larger shape by the broadcasting rule",
    ),
    row("flip", Movement, Types::Same, &[X, ALL_AXES], r::flip, "reversed along these axes, or along all"),
    row(
        "rot90",
        Movement,
        Types::Same,
        &[X, Param::required("k").or("1")],
        r::rot90,
        "turned by k quarter turns from the first axis towards the second",
    ),
    row(
        "pad",
        Movement,
        Types::Same,
        &[X, Param::required("pad_width"), Param::required("constant_values").or("0").alias("value")],
        r::pad,
        "a constant added around: n, (before, after), or a pair for each axis",
    ),
    row("concat", Movement, Types::Same, &[ARRAYS, FIRST_AXIS], r::concat, "joined along an axis that they have"),
    row("stack", Movement, Types::Same, &[ARRAYS, FIRST_AXIS], r::stack, "joined along a new axis"),
    row("tile", Movement, Types::Same, &[X, Param::required("reps")], r::tile, "repeated reps[i] times along axis i"),
    row(
        "windows",
        Movement,
        Types::Same,
        &[X, Param::required("size").alias("window_shape"), ALL_AXES, Param::required("stride").or("1")],
        r::windows,
        "sliding windows: the elements of each are the last axes",
    ),
    row(
        "take",
        Movement,
        Types::Same,
        &[X, Param::required("indices"), ALL_AXES],
        r::take,
        "the elements at indices along axis, or of the flattened array",
    ),
    row("zeros", Create, Types::Made, &[SHAPE, DTYPE.or("f32")], r::zeros, "zeros of a shape"),
    row("ones", Create, Types::Made, &[SHAPE, DTYPE.or("f32")], r::ones, "ones of a shape"),
    row(
        "full",
        Create,
        Types::Made,
        &[SHAPE, Param::required("fill_value"), DTYPE.or("None")],
        r::full,
        "one value everywhere",
    ),
    row(
        "arange",
        Create,
        Types::Made,
        &[
            Param::required("start"),
            Param::required("stop").or("None"),
            Param::required("step").or("1"),
            DTYPE.or("None"),
        ],
        r::arange,
        "start, start + step, .. before stop; arange(n) counts from 0",
    ),
];

/// Every function that is not elementwise.
pub fn table() -> &'static [Function] {
    TABLE
}
