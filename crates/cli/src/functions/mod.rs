//! The functions of the expression language: a name and its arguments enter, the recorded operation leaves.
//!
//! There are two tables and no other list. The rows of the library's op table are functions by themselves; everything
//! that is not elementwise is a row of [`table`]. The argument parser, the error messages and `breakeven ops` read
//! these two, so that a new row appears everywhere at once.

use breakeven::{DType, Op};

mod aliases;
mod arguments;
mod record;
mod signature;
mod table;

#[cfg(test)]
mod functions_tests;

pub use aliases::{canonical, of as aliases_of};
pub use arguments::{Args, Given};
pub use signature::{Class, Function, Param, Types};
pub use table::table;

use crate::expr::{Ident, Span};
use crate::record::{self as recording, Mistake, Value};

/// Something that can be called.
#[derive(Clone, Copy, Debug)]
pub enum Callable {
    /// A row of the library's op table.
    Op(Op),
    /// A row of [`table`].
    Function(&'static Function),
}

impl Callable {
    /// Everything that can be called: elementwise ops in table order, then the other functions.
    pub fn all() -> impl Iterator<Item = Callable> {
        Op::ALL.iter().copied().map(Callable::Op).chain(table().iter().map(Callable::Function))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Callable::Op(op) => op.row().name,
            Callable::Function(function) => function.name,
        }
    }

    /// What kind of operation it is.
    pub fn class(self) -> Class {
        match self {
            Callable::Op(_) => Class::Elementwise,
            Callable::Function(function) => function.class,
        }
    }

    /// Its parameters in order.
    pub fn params(self) -> &'static [Param] {
        match self {
            Callable::Op(op) => match op.row().arity {
                1 => &table::UNARY,
                2 => &table::BINARY,
                _ => &table::TERNARY,
            },
            Callable::Function(function) => function.params,
        }
    }

    /// How it is called, defaults included: `sum(x, axis=None, keepdims=False)`.
    pub fn signature(self) -> String {
        let param = |param: &Param| match param.default {
            Some(default) => format!("{}={default}", param.name),
            None => param.name.to_owned(),
        };
        format!("{}({})", self.name(), self.params().iter().map(param).collect::<Vec<_>>().join(", "))
    }

    /// What it computes.
    pub fn doc(self) -> &'static str {
        match self {
            Callable::Op(op) => op.row().doc,
            Callable::Function(function) => function.doc,
        }
    }
}

/// The function of that name or alias.
pub fn find(name: &str) -> Option<Callable> {
    let name = canonical(name);
    Callable::all().find(|callable| callable.name() == name)
}

/// The dtype of that name.
pub fn dtype_named(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == aliases::dtype(name))
}

/// Calls `function`. `span` is the whole call, `is_variable` whether the name is also that of a value.
pub fn call(function: Ident<'_>, args: &[Given<'_>], span: Span, is_variable: bool) -> Result<Value, Mistake> {
    let Some(callable) = find(function.text) else { return Err(unknown(function, is_variable)) };
    let args = Args::bind(callable, args, span)?;
    match callable {
        Callable::Op(op) => recording::apply(op, &args.values()).map_err(|error| Mistake::new(span, error)),
        Callable::Function(row) => (row.record)(&args).map(Value::Tensor),
    }
}

fn unknown(function: Ident<'_>, is_variable: bool) -> Mistake {
    let name = function.text;
    if is_variable {
        let error = Mistake::new(function.span, format!("`{name}` is a value, not a function"));
        return error.help("a product is written with `*`");
    }
    let error = Mistake::new(function.span, format!("there is no function `{name}`"));
    if let Some(hint) = aliases::hint(name) {
        return error.help(hint);
    }
    match nearest(name, Callable::all().map(Callable::name).chain(aliases::all())) {
        Some(near) => error.help(format!("did you mean `{near}`? `breakeven ops` lists all functions")),
        None => error.help("`breakeven ops` lists all functions"),
    }
}

/// The candidate that `name` was probably meant to be: a typing mistake or two away, by its length.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Names are as long as the user makes them, and the distance takes time by their product.
    if name.len() > 40 {
        return None;
    }
    let lower = name.to_lowercase();
    let far = 1 + name.len() / 4;
    candidates
        .map(|candidate| (strsim::osa_distance(&lower, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= far && distance < candidate.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
