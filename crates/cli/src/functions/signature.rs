//! What a row of the function table is made of: class, dtypes, and parameters with their defaults.

use breakeven::Tensor;

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
    pub(super) const fn required(name: &'static str) -> Param {
        Param { name, default: None, rest: false, alias: "" }
    }

    pub(super) const fn or(self, default: &'static str) -> Param {
        Param { default: Some(default), ..self }
    }

    pub(super) const fn rest(self) -> Param {
        Param { rest: true, ..self }
    }

    pub(super) const fn alias(self, alias: &'static str) -> Param {
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
