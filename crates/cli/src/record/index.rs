//! Indexing by numpy's rules: a tensor and what stands between the brackets enter, a view of the tensor leaves.

use breakeven::{Slice, Tensor, s};

use super::{Mistake, Number, Value};
use crate::expr::{NodeId, Span, Subscript, SubscriptKind};

/// `x[subscripts]`. `value` gives the values of nodes, `span` is the whole expression.
pub fn index<'v>(
    x: &Tensor,
    subscripts: &[Subscript],
    value: impl Fn(NodeId) -> &'v Value,
    span: Span,
) -> Result<Tensor, Mistake> {
    let shape = x.shape();
    let takes_axis = |kind: &SubscriptKind| matches!(kind, SubscriptKind::At(_) | SubscriptKind::Slice { .. });
    let named = subscripts.iter().filter(|subscript| takes_axis(&subscript.kind)).count();
    if named > shape.rank() {
        let message = format!("{named} indices for an array of shape {shape}, which has {} axes", shape.rank());
        return Err(Mistake::new(span, message).help("leave indices out, or add axes with `None`"));
    }
    let mut slices: Vec<Slice> = Vec::new();
    let mut dropped = Vec::new();
    let mut added = Vec::new();
    let mut result_axis = 0;
    let mut ellipsis = false;
    for subscript in subscripts {
        match subscript.kind {
            SubscriptKind::Ellipsis if ellipsis => {
                let error = Mistake::new(subscript.span, "a second `...` in one index");
                return Err(error.help("one `...` stands for all axes that are not named"));
            }
            SubscriptKind::Ellipsis => {
                ellipsis = true;
                slices.extend(vec![s(..); shape.rank() - named]);
                result_axis += (shape.rank() - named) as isize;
            }
            SubscriptKind::NewAxis => {
                added.push(result_axis);
                result_axis += 1;
            }
            SubscriptKind::Slice { start, stop, step } => {
                let part = |id: Option<NodeId>| id.map_or(Ok(None), |id| slice_part(value(id), subscript.span));
                let step = part(step)?.unwrap_or(1);
                slices.push(Slice { start: part(start)?, stop: part(stop)?, step });
                result_axis += 1;
            }
            SubscriptKind::At(id) => {
                let axis = slices.len();
                slices.push(at(value(id), axis, shape[axis], subscript.span)?);
                dropped.push(axis as isize);
            }
        }
    }
    let view = || {
        let mut view = x.slice(&slices)?;
        if !dropped.is_empty() {
            view = view.squeeze(&dropped)?;
        }
        if added.is_empty() { Ok(view) } else { view.expand_dims(&added) }
    };
    view().map_err(|error: breakeven::RecordError| Mistake::new(span, error.to_string()))
}

/// The part of one element, whose axis goes.
fn at(value: &Value, axis: usize, extent: usize, span: Span) -> Result<Slice, Mistake> {
    let index = match value {
        Value::Number(Number::Int(index)) => *index,
        Value::Tensor(_) | Value::Sequence(_) => {
            let message = format!("expected an integer or a slice as index, found {}", value.describe());
            let help = "for the elements at an array of indices use take(x, indices, axis=0); \
                        to choose by a condition use where(condition, x, y)";
            return Err(Mistake::new(span, message).help(help));
        }
        _ => {
            let message = format!("expected an integer or a slice as index, found {}", value.describe());
            return Err(Mistake::new(span, message));
        }
    };
    let size = extent as i128;
    if index < -size || index >= size {
        let message = format!("index {index} is out of range for axis {axis} of extent {extent}");
        let range =
            if extent == 0 { "it has no elements".to_owned() } else { format!("-{size} to {} exist", size - 1) };
        return Err(Mistake::new(span, message).help(range));
    }
    let index = (if index < 0 { index + size } else { index }) as isize;
    Ok(Slice { start: Some(index), stop: Some(index + 1), step: 1 })
}

/// One number of `start:stop:step`. What is beyond every axis is cut to what a machine word holds.
fn slice_part(value: &Value, span: Span) -> Result<Option<isize>, Mistake> {
    match value {
        Value::None => Ok(None),
        Value::Number(Number::Int(part)) => Ok(Some((*part).clamp(isize::MIN as i128, isize::MAX as i128) as isize)),
        _ => {
            let message = format!("expected integers or nothing around `:`, found {}", value.describe());
            Err(Mistake::new(span, message))
        }
    }
}
