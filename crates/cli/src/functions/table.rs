//! The table of functions that are not elementwise: name, class, parameters with their defaults, what it computes, and
//! how to record it. The signatures are numpy's where numpy has the function.

use breakeven::Tensor;

use super::record as r;
use super::{Args, dtype_named};
use crate::record::{Mistake, Number, Value};

/// What kind of operation a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`title` says what each one is")]
pub enum Class {
    Elementwise,
    Activation,
    Reduce,
    Scan,
    Row,
    Contract,
    Movement,
    Create,
}

impl Class {
    /// Every class, in the order in which people look for them.
    pub const ALL: [Class; 8] = [
        Class::Elementwise,
        Class::Activation,
        Class::Reduce,
        Class::Scan,
        Class::Row,
        Class::Contract,
        Class::Movement,
        Class::Create,
    ];

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Class::Elementwise => "elementwise",
            Class::Activation => "activation",
            Class::Reduce => "reduce",
            Class::Scan => "scan",
            Class::Row => "row",
            Class::Contract => "contract",
            Class::Movement => "movement",
            Class::Create => "create",
        }
    }

    /// What its functions have in common, for people.
    pub fn title(self) -> &'static str {
        match self {
            Class::Elementwise => "elementwise: each element on its own; arguments broadcast",
            Class::Activation => "activation: elementwise with parameters",
            Class::Reduce => "reduce: along one axis, several, or all (axis=None)",
            Class::Scan => "scan: running values along an axis",
            Class::Row => "row: along an axis, whose extent stays",
            Class::Contract => "contract: products of matrices",
            Class::Movement => "movement: other shapes of the same elements; x[1:, ::-1, None, 0] too, and x.T",
            Class::Create => "create: arrays from nothing",
        }
    }
}

/// Which dtypes a function takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// Every dtype, and gives the same.
    Same,
    /// Every number, and gives the same; bools are counted as i32.
    Counts,
    /// Computes in f32, which other dtypes are cast to.
    Float,
    /// Every dtype, and gives i32.
    ToI32,
    /// Every dtype, and gives bool.
    ToBool,
    /// Makes the dtype that it is told to.
    Made,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name, numpy's where there is one.
    pub name: &'static str,
    /// What it is when it is left out, as the user would write it; `None` if it must be given.
    pub default: Option<&'static str>,
    /// Whether further positional arguments belong to it: `reshape(x, 2, 3)`.
    pub rest: bool,
    /// Another name that numpy users know it by.
    alias: &'static str,
}

impl Param {
    const fn required(name: &'static str) -> Param {
        Param { name, default: None, rest: false, alias: "" }
    }

    const fn or(self, default: &'static str) -> Param {
        Param { default: Some(default), ..self }
    }

    const fn rest(self) -> Param {
        Param { rest: true, ..self }
    }

    const fn alias(self, alias: &'static str) -> Param {
        Param { alias, ..self }
    }

    /// Whether a keyword means this parameter.
    pub fn is_named(&self, keyword: &str) -> bool {
        keyword == self.name || keyword == self.alias
    }

    /// The default as a value.
    pub fn default_value(&self) -> Option<Value> {
        Some(match self.default? {
            "None" => Value::None,
            "True" => Value::Number(Number::Bool(true)),
            "False" => Value::Number(Number::Bool(false)),
            text => match (text.parse(), text.parse(), dtype_named(text)) {
                (Ok(int), ..) => Value::Number(Number::Int(int)),
                (_, Ok(float), _) => Value::Number(Number::Float(float)),
                (.., Some(dtype)) => Value::DType(dtype),
                _ => return None,
            },
        })
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What kind of operation it is.
    pub class: Class,
    /// Which dtypes it takes.
    pub types: Types,
    /// Its parameters in order.
    pub params: &'static [Param],
    /// What it computes.
    pub doc: &'static str,
    /// Records it.
    pub record: fn(&Args) -> Result<Tensor, Mistake>,
}

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

use Class::{Activation, Contract, Create, Movement, Reduce, Row, Scan};

static TABLE: &[Function] = &[
    row("relu", Activation, Types::Same, &[X], r::relu, "max(x, 0)"),
    row("leaky_relu", Activation, Types::Float, &[X, Param::required("slope").or("0.01")], r::leaky_relu, "x where it is positive, else slope * x"),
    row("elu", Activation, Types::Float, &[X, Param::required("alpha").or("1.0")], r::elu, "x where it is positive, else alpha * (exp(x) - 1)"),
    row("clip", Activation, Types::Same, &[X, Param::required("min").or("None").alias("a_min"), Param::required("max").or("None").alias("a_max")], r::clip, "x limited to min..max; NaN stays NaN"),
    row("cast", Activation, Types::Made, &[X, DTYPE], r::cast, "x in another dtype: f32, i32, u32 or bool"),
    row("sum", Reduce, Types::Counts, REDUCE, r::sum, "the sum; of bools, how many are true"),
    row("prod", Reduce, Types::Counts, REDUCE, r::prod, "the product"),
    row("max", Reduce, Types::Same, REDUCE, r::max, "the largest element; NaN if there is one"),
    row("min", Reduce, Types::Same, REDUCE, r::min, "the smallest element; NaN if there is one"),
    row("mean", Reduce, Types::Float, REDUCE, r::mean, "the arithmetic mean"),
    row("var", Reduce, Types::Float, SPREAD, r::var, "the variance, divided by the count less ddof"),
    row("std", Reduce, Types::Float, SPREAD, r::std, "the standard deviation: sqrt(var)"),
    row("norm", Reduce, Types::Float, REDUCE, r::norm, "the Euclidean norm: sqrt of the sum of squares"),
    row("argmax", Reduce, Types::ToI32, REDUCE, r::argmax, "the index of the first largest element, of one axis or of the flattened array"),
    row("argmin", Reduce, Types::ToI32, REDUCE, r::argmin, "the index of the first smallest element, of one axis or of the flattened array"),
    row("any", Reduce, Types::ToBool, REDUCE, r::any, "is any element other than 0?"),
    row("all", Reduce, Types::ToBool, REDUCE, r::all, "are all elements other than 0?"),
    row("cumsum", Scan, Types::Counts, SCAN, r::cumsum, "the running sum along axis, or over the flattened array"),
    row("cumprod", Scan, Types::Counts, SCAN, r::cumprod, "the running product along axis, or over the flattened array"),
    row("cummax", Scan, Types::Same, SCAN, r::cummax, "the running maximum along axis, or over the flattened array"),
    row("softmax", Row, Types::Float, &[X, LAST_AXIS], r::softmax, "exp(x) / sum(exp(x)) along axis, without overflow"),
    row("log_softmax", Row, Types::Float, &[X, LAST_AXIS], r::log_softmax, "log(softmax(x)) along axis, without overflow"),
    row("layer_norm", Row, Types::Float, &[X, LAST_AXIS, Param::required("eps").or("1e-5")], r::layer_norm, "(x - mean) / sqrt(var + eps) along axis"),
    row("matmul", Contract, Types::Float, &[X, Y], r::matmul, "x @ y with numpy's batch rules"),
    row("dot", Contract, Types::Float, &[X, Y], r::dot, "the sum of products of two vectors, else x @ y"),
    row("conv2d", Contract, Types::Float, &[X, Param::required("weight"), Param::required("stride").or("1"), Param::required("padding").or("0")], r::conv2d, "x [n, c, h, w] with weight [o, c, kh, kw]; stride and padding are one integer or a pair"),
    row("reshape", Movement, Types::Same, &[X, SHAPE.rest()], r::reshape, "the same elements under another shape; one extent may be -1"),
    row("permute", Movement, Types::Same, &[X, Param::required("order").rest().alias("axes")], r::permute, "axis i of the result is axis order[i] of x"),
    row("transpose", Movement, Types::Same, &[X, Param::required("axes").or("None").rest()], r::transpose, "all axes reversed, or in the given order"),
    row("swapaxes", Movement, Types::Same, &[X, Param::required("axis1"), Param::required("axis2")], r::swapaxes, "two axes exchanged"),
    row("expand_dims", Movement, Types::Same, &[X, AXIS], r::expand_dims, "new axes of extent 1 at these places of the result"),
    row("squeeze", Movement, Types::Same, &[X, ALL_AXES], r::squeeze, "without these axes of extent 1, or without all of them"),
    row("broadcast_to", Movement, Types::Same, &[X, SHAPE], r::broadcast_to, "repeated to a larger shape by the broadcasting rule"),
    row("flip", Movement, Types::Same, &[X, ALL_AXES], r::flip, "reversed along these axes, or along all"),
    row("rot90", Movement, Types::Same, &[X, Param::required("k").or("1")], r::rot90, "turned by k quarter turns from the first axis towards the second"),
    row("pad", Movement, Types::Same, &[X, Param::required("pad_width"), Param::required("constant_values").or("0").alias("value")], r::pad, "a constant added around: n, (before, after), or a pair for each axis"),
    row("concat", Movement, Types::Same, &[ARRAYS, FIRST_AXIS], r::concat, "joined along an axis that they have"),
    row("stack", Movement, Types::Same, &[ARRAYS, FIRST_AXIS], r::stack, "joined along a new axis"),
    row("tile", Movement, Types::Same, &[X, Param::required("reps")], r::tile, "repeated reps[i] times along axis i"),
    row("windows", Movement, Types::Same, &[X, Param::required("size").alias("window_shape"), ALL_AXES, Param::required("stride").or("1")], r::windows, "sliding windows: the elements of each are the last axes"),
    row("take", Movement, Types::Same, &[X, Param::required("indices"), ALL_AXES], r::take, "the elements at indices along axis, or of the flattened array"),
    row("zeros", Create, Types::Made, &[SHAPE, DTYPE.or("f32")], r::zeros, "zeros of a shape"),
    row("ones", Create, Types::Made, &[SHAPE, DTYPE.or("f32")], r::ones, "ones of a shape"),
    row("full", Create, Types::Made, &[SHAPE, Param::required("fill_value"), DTYPE.or("None")], r::full, "one value everywhere"),
    row("arange", Create, Types::Made, &[Param::required("start"), Param::required("stop").or("None"), Param::required("step").or("1"), DTYPE.or("None")], r::arange, "start, start + step, .. before stop; arange(n) counts from 0"),
];

/// Every function that is not elementwise.
pub fn table() -> &'static [Function] {
    TABLE
}
