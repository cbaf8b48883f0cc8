//! Recipes: a recorded graph enters, a compact text leaves from which the same graph can be recorded again, on other data of
//! the same shapes. It is what a profile keeps of a plan, so that the plan can be run again elsewhere.
//!
//! One line a node, arguments by the number of their line, counted from 0:
//!
//! ```text
//! recipe 1
//! f32[64,100] input x
//! f32 const 3f800000
//! f32[64,100] add 0 1
//! f32[64,1] sum 2 axes 1
//! f32[64] squeeze 3 by 1
//! outputs 4
//! ```
//!
//! Each line begins with what the node must come out as, so that a text which was tampered with is refused where it is wrong.
//! Constants are the bits of their lane in hexadecimal, because decimals would not be exact. Data is kept as its shape and
//! dtype only.

mod parse;

pub use parse::parse_recipe;

use super::{Kind, Movement, Slice, Tensor, Walk, rebuild};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::shape::AxisSet;
use std::collections::HashMap;
use std::fmt::Write;

/// The first line of every recipe; another number means another form.
const HEAD: &str = "recipe 1";

/// A graph without its data, as it was read from text.
///
/// ```
/// use breakeven_ir::{Tensor, parse_recipe, plan_key, recipe};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let y = x.softmax(0)?;
/// let again = parse_recipe(&recipe(&[&y]))?;
/// assert_eq!(plan_key(&[&again.outputs[0]]).0, plan_key(&[&y]).0);
/// assert_eq!(again.leaves[0].tensor.shape(), x.shape());
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What values are needed for, in the order of the plan's inputs.
    pub leaves: Vec<Leaf>,
    /// What is computed from them.
    pub outputs: Vec<Tensor>,
}

/// A value that a recipe needs.
///
/// ```
/// use breakeven_ir::{Tensor, parse_recipe, recipe};
/// let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let indices = Tensor::from_slice(&[2i32, 0], [2])?;
/// let again = parse_recipe(&recipe(&[&table.take(&indices, 0)?]))?;
/// assert!(again.leaves.iter().all(|leaf| leaf.is_data));
/// assert_eq!(again.leaves[1].index_below, Some(3));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Leaf {
    /// An input of that dtype and shape; unnamed data gets a name that no other input has.
    pub tensor: Tensor,
    /// It was data of the graph, not an input of a program.
    pub is_data: bool,
    /// Values must lie below this, because places are looked up with them; 1 where they go through arithmetic before, so
    /// that only 0 is known to have been meant.
    pub index_below: Option<usize>,
}

impl Recipe {
    /// The outputs, with these values for leaves instead of inputs; leaves for which `value` has nothing stay inputs.
    pub fn bound(&self, mut value: impl FnMut(&Leaf) -> Result<Option<Tensor>>) -> Result<Vec<Tensor>> {
        let mut done = HashMap::new();
        for leaf in &self.leaves {
            let Some(found) = value(leaf)? else { continue };
            if (found.dtype(), found.shape()) != (leaf.tensor.dtype(), leaf.tensor.shape()) {
                return Err(Error::WrongLeaf {
                    expected: type_of(&leaf.tensor),
                    found: type_of(&found),
                    name: leaf.tensor.as_input().map_or(String::new(), |input| input.name().to_owned()),
                });
            }
            done.insert(leaf.tensor.address(), found);
        }
        rebuild::again(&self.outputs.iter().collect::<Vec<_>>(), done)
    }
}

/// The recipe of a graph: everything that [`parse_recipe`] needs to record it again.
///
/// ```
/// use breakeven_ir::{Tensor, recipe};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(recipe(&[&x.exp()?]), "recipe 1\nf32[2] data\nf32[2] exp 0\noutputs 1\n");
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub fn recipe(outputs: &[&Tensor]) -> String {
    let walk = Walk::new(outputs);
    let mut text = format!("{HEAD}\n");
    for tensor in walk.order() {
        text += &type_of(tensor);
        text.push(' ');
        let kind = &tensor.0.kind;
        text += name(kind);
        let mut args = String::new();
        kind.for_each_arg(|arg| push(&mut args, format_args!(" {}", walk.index(arg))));
        text += &args;
        parameters(kind, &mut text);
        text.push('\n');
    }
    text += "outputs";
    for output in outputs {
        push(&mut text, format_args!(" {}", walk.index(output)));
    }
    text.push('\n');
    text
}

/// Writing to a string can't fail.
fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

/// `f32[2,3]`; `f32` without axes.
fn type_of(tensor: &Tensor) -> String {
    let mut text = tensor.dtype().name().to_owned();
    if tensor.shape().rank() > 0 {
        text += &list('[', &tensor.shape());
        text.push(']');
    }
    text
}

/// What a node is called.
fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Input(_) => "input",
        Kind::Data(_) => "data",
        Kind::Const(_) => "const",
        Kind::Arange { .. } => "arange",
        Kind::Count { .. } => "count",
        Kind::Map { op, .. } => op.row().name,
        Kind::Reduce { op, .. } => op.name(),
        Kind::Scan { op, .. } => op.name(),
        Kind::Matmul { .. } => "matmul",
        Kind::Move { by, .. } => by.name(),
        Kind::Concat { .. } => "concat",
        Kind::Take { .. } => "take",
    }
}

/// What a node has beside its arguments.
fn parameters(kind: &Kind, text: &mut String) {
    match kind {
        Kind::Data(_) | Kind::Map { .. } | Kind::Matmul { .. } => {}
        Kind::Input(input) => {
            if !input.name().is_empty() {
                text.push(' ');
                escape(input.name(), text);
            }
        }
        Kind::Const(value) => push(text, format_args!(" {:x}", value.bits())),
        Kind::Arange { start, step } => push(text, format_args!(" {:x} {:x}", start.bits(), step.bits())),
        Kind::Count { axes, .. } => text.push_str(&axes_words(*axes)),
        Kind::Reduce { axes, blank, .. } => {
            text.push_str(&axes_words(*axes));
            if *blank {
                text.push_str(" blank");
            }
        }
        Kind::Scan { axis, .. } | Kind::Concat { axis, .. } | Kind::Take { axis, .. } => {
            push(text, format_args!(" axis {axis}"));
        }
        Kind::Move { by, .. } => movement(by, text),
    }
}

/// ` axes 0,2`; only ` axes` where there is none.
fn axes_words(axes: AxisSet) -> String {
    " axes".to_owned() + &list(' ', &axes.iter().collect::<Vec<_>>())
}

fn movement(by: &Movement, text: &mut String) {
    text.push_str(" by");
    match by {
        Movement::Reshape(values)
        | Movement::Squeeze(values)
        | Movement::ExpandDims(values)
        | Movement::Flip(values) => {
            text.push_str(&list(' ', values));
        }
        Movement::Permute(axes) => text.push_str(&list(' ', axes)),
        Movement::BroadcastTo(shape) => text.push_str(&list(' ', shape)),
        Movement::Slice(slices) => {
            let bound = |bound: Option<isize>| bound.map_or(String::new(), |bound| bound.to_string());
            let word = |slice: &Slice| format!("{}:{}:{}", bound(slice.start), bound(slice.stop), slice.step);
            text.push_str(&list(' ', &slices.iter().map(word).collect::<Vec<_>>()));
        }
        Movement::Pad(widths, value) => {
            let widths: Vec<String> = widths.iter().map(|(low, high)| format!("{low}:{high}")).collect();
            text.push_str(&list(' ', &widths));
            push(text, format_args!(" value {:x}", value.bits()));
        }
        Movement::Windows { axes, sizes, strides } => {
            let each = axes.iter().zip(sizes).zip(strides);
            let windows: Vec<String> = each.map(|((axis, size), stride)| format!("{axis}:{size}:{stride}")).collect();
            text.push_str(&list(' ', &windows));
        }
    }
}

/// Values separated by commas after `open`; nothing of nothing.
fn list<T: ToString>(open: char, values: &[T]) -> String {
    let words: Vec<String> = values.iter().map(T::to_string).collect();
    if words.is_empty() { String::new() } else { format!("{open}{}", words.join(",")) }
}

/// A name on one line: control characters and `%` as `%` and two digits, blanks at its ends too.
fn escape(name: &str, text: &mut String) {
    let last = name.chars().count().saturating_sub(1);
    for (at, c) in name.chars().enumerate() {
        // All control characters are below U+00A0.
        if c.is_control() || c == '%' || (c == ' ' && (at == 0 || at == last)) {
            push(text, format_args!("%{:02x}", c as u32));
        } else {
            text.push(c);
        }
    }
}

/// For each leaf, below what its values must lie.
fn index_bounds(order: &[&Tensor], walk: &Walk<'_>) -> Vec<Option<usize>> {
    let mut bounds: Vec<Option<usize>> = vec![None; order.len()];
    let lower = |at: u32, to: usize, bounds: &mut Vec<Option<usize>>| {
        let bound = &mut bounds[at as usize];
        *bound = Some(bound.map_or(to, |before| before.min(to)));
    };
    // From the outputs backwards: a node comes after its arguments.
    for (at, tensor) in order.iter().enumerate().rev() {
        let kind = &tensor.0.kind;
        if let Some(bound) = bounds[at] {
            // Movement, casts between integers and the guard that `take` puts before u32 leave an index what it is.
            let is_guard = matches!(kind, Kind::Map { op: Op::Minimum, .. }) && tensor.dtype() == DType::U32;
            let is_cast = matches!(kind, Kind::Map { op: Op::ToI32 | Op::ToU32, .. });
            let keeps = matches!(kind, Kind::Move { .. } | Kind::Concat { .. }) || is_guard || is_cast;
            kind.for_each_arg(|arg| lower(walk.index(arg), if keeps { bound } else { 1 }, &mut bounds));
        }
        if let Kind::Take { arg, indices, axis } = kind {
            lower(walk.index(indices), arg.shape()[usize::from(*axis)].max(1), &mut bounds);
        }
    }
    bounds
}

/// The leaves of a graph that was read, and what may be put into them.
fn leaves(outputs: &[Tensor], is_data: impl Fn(&Tensor) -> bool) -> Vec<Leaf> {
    let refs: Vec<&Tensor> = outputs.iter().collect();
    let walk = Walk::new(&refs);
    let bounds = index_bounds(walk.order(), &walk);
    let all = walk.order().iter().zip(bounds);
    all.filter(|(tensor, _)| tensor.as_input().is_some())
        .map(|(tensor, index_below)| Leaf { tensor: (*tensor).clone(), is_data: is_data(tensor), index_below })
        .collect()
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
