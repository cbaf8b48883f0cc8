//! What can be wrong with a recorded expression, said where it was written.

use crate::dtype::DType;
use crate::shape::{MAX_RANK, Shape};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A mistake in an expression. Every variant says what was wrong, what was expected and what to do.
///
/// ```
/// use breakeven_ir::{Error, Tensor};
/// let (a, b) = (Tensor::from_slice(&[1.0f32, 2.0], [2])?, Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?);
/// let error = (&a + &b).unwrap_err();
/// assert!(matches!(error, Error::Broadcast { .. }));
/// assert!(error.to_string().contains("[2] and [3]"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes do not broadcast.
    #[error(
        "shapes {left} and {right} do not broadcast: aligned at the last axis, extents must be equal or 1; reshape or expand one of them"
    )]
    Broadcast {
        /// The left operand's shape.
        left: Shape,
        /// The right operand's shape.
        right: Shape,
    },
    /// A shape does not broadcast to the one asked for.
    #[error(
        "shape {from} can't be broadcast to {to}: aligned at the last axis, each extent must equal the new one or be 1"
    )]
    BroadcastTo {
        /// The tensor's shape.
        from: Shape,
        /// The shape asked for.
        to: Shape,
    },
    /// Matmul operands do not fit.
    #[error("matmul of {left} and {right}: {why}")]
    Matmul {
        /// The left operand's shape.
        left: Shape,
        /// The right operand's shape.
        right: Shape,
        /// What does not fit.
        why: &'static str,
    },
    /// A convolution's operands do not fit.
    #[error("conv2d of input {input} with weight {weight}: {why}")]
    Conv2d {
        /// The input's shape.
        input: Shape,
        /// The weight's shape.
        weight: Shape,
        /// What does not fit.
        why: &'static str,
    },
    /// An op is not defined for these dtypes.
    #[error("{op} is not defined for {}: {help}", list(dtypes))]
    DType {
        /// The op's name.
        op: &'static str,
        /// The operands' dtypes.
        dtypes: Vec<DType>,
        /// What to do instead.
        help: &'static str,
    },
    /// A value of one dtype was asked for as another.
    #[error("expected dtype {expected}, found {found}: cast it with `.cast(DType::..)` first")]
    WrongDType {
        /// What was asked for.
        expected: DType,
        /// What it is.
        found: DType,
    },
    /// A plain number does not fit the tensor's dtype.
    #[error("the number {value} does not fit dtype {dtype}: cast the tensor to f32, or use a number in range")]
    ScalarRange {
        /// The number.
        value: f64,
        /// The tensor's dtype.
        dtype: DType,
    },
    /// An axis outside the shape.
    #[error("axis {axis} is out of range for shape {shape}: it has {} axes, so {}", shape.rank(), axis_range(shape))]
    Axis {
        /// The axis asked for.
        axis: isize,
        /// The tensor's shape.
        shape: Shape,
    },
    /// An axis named twice.
    #[error("axis {axis} is named twice for shape {shape}: name each axis once")]
    RepeatedAxis {
        /// The axis.
        axis: isize,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A reshape that changes the number of elements.
    #[error("shape {from} with {} elements can't be reshaped to {to:?}: the number of elements must stay the same (one extent may be -1)", from.elems())]
    Reshape {
        /// The tensor's shape.
        from: Shape,
        /// The shape asked for.
        to: Vec<isize>,
    },
    /// A movement's arguments do not fit the shape.
    #[error("{op} on shape {shape}: {why}")]
    Movement {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
        /// What does not fit.
        why: String,
    },
    /// Shapes that must be equal but for one axis are not.
    #[error("{op} of shapes {left} and {right}: they must be equal{}", if *.op == "concat" { " but for the joined axis" } else { "" })]
    Join {
        /// The operation.
        op: &'static str,
        /// The first tensor's shape.
        left: Shape,
        /// The one that differs.
        right: Shape,
    },
    /// Nothing was given where at least one tensor is needed.
    #[error("{op} needs at least one tensor")]
    Nothing {
        /// The operation.
        op: &'static str,
    },
    /// A reduction without identity over no elements.
    #[error(
        "{op} over zero elements of shape {shape} has no value: only sum, prod, any and all have one; check for emptiness first"
    )]
    EmptyReduction {
        /// The reduction.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A parameter outside its range.
    #[error("{op}: {what} is {value}, expected {expected}")]
    Parameter {
        /// The operation.
        op: &'static str,
        /// The parameter.
        what: &'static str,
        /// What it was.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// Too many axes.
    #[error("a shape of {rank} axes is more than the {MAX_RANK} that are supported: merge axes with reshape")]
    TooManyAxes {
        /// The number of axes.
        rank: usize,
    },
    /// More elements than can be addressed.
    #[error("shape {dims:?} has more elements than memory can address")]
    TooLarge {
        /// The extents.
        dims: Vec<usize>,
    },
    /// Data and shape disagree.
    #[error("{found} elements were given for shape {shape}, which has {}", shape.elems())]
    DataLength {
        /// How many elements there are.
        found: usize,
        /// The shape they were to fill.
        shape: Shape,
    },
    /// An input of a program that has no value.
    #[error(
        "input `{name}` has no value here: compile the expression with `engine.compile` and give its inputs to the program"
    )]
    UnboundInput {
        /// The input's name.
        name: String,
    },
    /// Two inputs of one program with one name.
    #[error("two different inputs are named `{name}`: give each its own name")]
    RepeatedInput {
        /// The name.
        name: String,
    },
    /// A tensor given as a program's input that is not one.
    #[error(
        "input number {position} of the program was not made by `Tensor::input`: make it with a name, a dtype and a shape"
    )]
    NotAnInput {
        /// Its place in the list.
        position: usize,
    },
    /// A text that is no recipe.
    #[error("line {line} of the recipe: {why}; it was damaged, or written by another version")]
    Recipe {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A value that does not fit a leaf of a recipe.
    #[error("leaf `{name}` of the recipe is {expected}, but {found} was given")]
    WrongLeaf {
        /// The leaf's name.
        name: String,
        /// What it is.
        expected: String,
        /// What was given.
        found: String,
    },
}

fn list(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(" and ")
}

fn axis_range(shape: &Shape) -> String {
    match shape.rank() {
        0 => "no axis can be named".into(),
        rank => format!("axes -{rank} to {} exist", rank - 1),
    }
}
