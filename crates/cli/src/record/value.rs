//! What a sub-expression can be while an expression is recorded, and the mistakes that are found doing so.

use std::rc::Rc;

use breakeven::{DType, MAX_RANK, Tensor};

use super::Number;
use crate::expr::{self, Span};

/// The value of a node. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Value {
    /// Something to compute.
    Tensor(Tensor),
    /// A plain number, which takes the dtype of the tensor it meets.
    Number(Number),
    /// `None`.
    None,
    /// A dtype's name.
    DType(DType),
    /// A tuple or a list: a shape, several axes, several arrays, or an array written out.
    Sequence(Sequence),
}

/// A tuple or a list. Its depth is bounded, since statements can nest it deeper than the source nests brackets.
#[derive(Clone, Debug)]
pub struct Sequence {
    items: Rc<[Value]>,
    depth: usize,
}

/// The most elements of an array that is written out. Names let a short source repeat a list any number of times.
const MAX_LITERAL_ELEMS: usize = 1 << 20;

impl Sequence {
    /// A sequence of `items`.
    pub fn new(items: Vec<Value>) -> Result<Sequence, String> {
        let depth_of = |item: &Value| if let Value::Sequence(inner) = item { inner.depth } else { 0 };
        let depth = 1 + items.iter().map(depth_of).max().unwrap_or(0);
        if depth > MAX_RANK {
            return Err(format!("brackets nest {depth} deep; arrays have at most {MAX_RANK} axes"));
        }
        Ok(Sequence { items: items.into(), depth })
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// The array that is written out: all numbers, in rows of equal length. Integers are i32, with a float among them
    /// all are f32.
    fn tensor(&self) -> Result<Tensor, String> {
        let mut shape = Vec::new();
        let mut row = self;
        loop {
            shape.push(row.items.len());
            match row.items.first() {
                Some(Value::Sequence(inner)) => row = inner,
                _ => break,
            }
        }
        let mut numbers = Vec::new();
        self.flatten(&shape, &mut numbers)?;
        let rank = |number: &Number| match number {
            Number::Bool(_) => 0,
            Number::Int(_) => 1,
            Number::Float(_) => 2,
        };
        let tensor = match numbers.iter().map(rank).max() {
            Some(0) => Tensor::from_vec(numbers.iter().map(|n| n.to_f64() != 0.0).collect::<Vec<bool>>(), &shape),
            Some(1) => {
                let fit = |n: &Number| {
                    let fits = n.to_int().and_then(|value| i32::try_from(value).ok());
                    fits.ok_or_else(|| format!("{n} does not fit in i32; write a float among the numbers"))
                };
                Tensor::from_vec(numbers.iter().map(fit).collect::<Result<Vec<i32>, _>>()?, &shape)
            }
            // numpy's empty array is of floats, too. It has no data that a plan would have to read.
            None => Tensor::zeros(&shape, DType::F32),
            Some(_) => Tensor::from_vec(numbers.iter().map(|n| n.to_f64() as f32).collect::<Vec<f32>>(), &shape),
        };
        tensor.map_err(|error| error.to_string())
    }

    fn flatten(&self, shape: &[usize], numbers: &mut Vec<Number>) -> Result<(), String> {
        let [len, rest @ ..] = shape else { return Err(UNEVEN.to_owned()) };
        if self.items.len() != *len {
            return Err(UNEVEN.to_owned());
        }
        for item in &*self.items {
            match item {
                Value::Sequence(inner) => inner.flatten(rest, numbers)?,
                Value::Number(number) if rest.is_empty() => numbers.push(*number),
                Value::Number(_) => return Err(UNEVEN.to_owned()),
                Value::Tensor(_) => {
                    return Err("expected an array, found a list of arrays; join them with stack or concat".to_owned());
                }
                Value::None | Value::DType(_) => {
                    return Err(format!("expected numbers in the list, found {}", item.describe()));
                }
            }
            if numbers.len() > MAX_LITERAL_ELEMS {
                return Err(format!("an array of more than {MAX_LITERAL_ELEMS} numbers; pass it as an input instead"));
            }
        }
        Ok(())
    }
}

const UNEVEN: &str = "the rows of the list differ in length or depth; every row needs as many numbers";

impl Value {
    /// The value as a tensor; a number among them is one of its own dtype.
    pub fn tensor(&self) -> Result<Tensor, String> {
        match self {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Number(number) => number.tensor(number.dtype()),
            Value::Sequence(sequence) => sequence.tensor(),
            Value::None | Value::DType(_) => Err(format!("expected an array or a number, found {}", self.describe())),
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(tensor) => format!("an array {}{}", tensor.dtype(), tensor.shape()),
            Value::Number(number) => number.to_string(),
            Value::None => "None".to_owned(),
            Value::DType(dtype) => format!("the dtype {dtype}"),
            Value::Sequence(sequence) => match sequence.items.len() {
                0 => "an empty tuple".to_owned(),
                n => format!("a tuple of {n}, of which the first is {}", first(sequence)),
            },
        }
    }
}

fn first(sequence: &Sequence) -> String {
    match sequence.items.first() {
        Some(Value::Sequence(_)) => "a tuple".to_owned(),
        Some(item) => item.describe(),
        None => String::new(),
    }
}

/// A mistake in an expression that parses: what and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// The sub-expression at fault.
    pub span: Span,
    /// What was wrong and what was expected.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Mistake {
    /// A mistake at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Mistake {
        Mistake { span, message: message.into(), help: None }
    }

    /// The same with advice.
    pub fn help(mut self, help: impl Into<String>) -> Mistake {
        self.help = Some(help.into());
        self
    }

    /// The mistake with the line it is in and carets under it. `source` is what was parsed.
    pub fn render(&self, source: &str, color: bool) -> String {
        expr::render(source, self.span, &self.message, self.help.as_deref(), color)
    }
}

impl From<expr::ParseError> for Mistake {
    fn from(error: expr::ParseError) -> Mistake {
        Mistake { span: error.span, message: error.message, help: error.help }
    }
}
