//! Arguments: what a call was given enters, each parameter's value leaves, or a mistake that points at the argument.
//!
//! Parameters come from the tables. What a parameter must be is said by the accessor that a row reads it with.

use breakeven::{DType, RecordError, Tensor};

use super::{Callable, Param};
use crate::expr::{Ident, Span};
use crate::record::{MAX_ELEMS, Mistake, Number, Sequence, Value};

/// An argument as it was written.
#[derive(Clone, Debug)]
pub struct Given<'s> {
    /// The name before `=`.
    pub keyword: Option<Ident<'s>>,
    /// Its value.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// The arguments of one call, by parameter.
#[derive(Clone, Debug)]
pub struct Args {
    callable: Callable,
    values: Vec<(Value, Span)>,
    span: Span,
}

impl Args {
    /// Gives each parameter its argument or its default. `span` is the whole call.
    pub fn bind(callable: Callable, given: &[Given<'_>], span: Span) -> Result<Args, Mistake> {
        let name = callable.name();
        let params = callable.params();
        let usage = || format!("it is called as {}", callable.signature());
        let mut slots: Vec<Option<(Value, Span)>> = vec![None; params.len()];
        let positional = given.iter().take_while(|arg| arg.keyword.is_none()).count();
        let rest = params.iter().position(|param| param.rest);
        for (at, arg) in given.iter().enumerate() {
            let slot = match arg.keyword {
                None => match rest {
                    // `reshape(x, 2, 3)` is `reshape(x, (2, 3))`.
                    Some(rest) if at == rest && positional > rest + 1 => {
                        let items = given[rest..positional].iter().map(|arg| arg.value.clone()).collect();
                        let span = arg.span.to(given[positional - 1].span);
                        let items = Sequence::new(items).map_err(|error| Mistake::new(span, error))?;
                        slots[rest] = Some((Value::Sequence(items), span));
                        continue;
                    }
                    Some(rest) if at > rest => continue,
                    _ if at >= params.len() => {
                        let most = params.len();
                        let message = format!("`{name}` takes at most {most} arguments, found {}", given.len());
                        return Err(Mistake::new(arg.span, message).help(usage()));
                    }
                    _ => at,
                },
                Some(keyword) => match params.iter().position(|param| param.is_named(keyword.text)) {
                    Some(slot) if slots[slot].is_some() => {
                        let message = format!("`{}` is given twice", params[slot].name);
                        return Err(Mistake::new(keyword.span, message).help(usage()));
                    }
                    Some(slot) => slot,
                    None => {
                        let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                        let message =
                            format!("`{name}` has no argument `{}`; it takes {}", keyword.text, names.join(", "));
                        return Err(Mistake::new(keyword.span, message).help(usage()));
                    }
                },
            };
            slots[slot] = Some((arg.value.clone(), arg.span));
        }
        let fill = |(slot, param): (Option<(Value, Span)>, &Param)| {
            slot.or_else(|| param.default_value().map(|value| (value, span)))
                .ok_or_else(|| Mistake::new(span, format!("`{name}` needs `{}`", param.name)).help(usage()))
        };
        let values = slots.into_iter().zip(params).map(fill).collect::<Result<_, _>>()?;
        Ok(Args { callable, values, span })
    }

    /// All values in the order of the parameters.
    pub fn values(&self) -> Vec<Value> {
        self.values.iter().map(|(value, _)| value.clone()).collect()
    }

    /// One value as it is.
    pub fn value(&self, at: usize) -> &Value {
        &self.values[at].0
    }

    /// A mistake of one argument.
    pub fn mistake(&self, at: usize, message: impl Into<String>) -> Mistake {
        Mistake::new(self.values[at].1, message)
    }

    /// A mistake of the call as a whole: what the library says about shapes and dtypes.
    pub fn said(&self) -> impl Fn(RecordError) -> Mistake {
        let span = self.span;
        move |error| Mistake::new(span, error.to_string())
    }

    fn expected(&self, at: usize, what: &str) -> Mistake {
        let message =
            format!("{} must be {what}, found {}", self.callable.params()[at].name, self.value(at).describe());
        let error = self.mistake(at, message);
        // In Python these two compare numbers, here they reduce.
        match (self.callable.name(), at) {
            (name @ ("max" | "min"), 1) => error.help(format!("for the {name} of two arrays use {name}imum(x, y)")),
            _ => error,
        }
    }

    /// An array, or a number as one.
    pub fn tensor(&self, at: usize) -> Result<Tensor, Mistake> {
        self.value(at).tensor().map_err(|error| self.mistake(at, error))
    }

    /// Several arrays in a tuple or a list.
    pub fn tensors(&self, at: usize) -> Result<Vec<Tensor>, Mistake> {
        match self.value(at) {
            Value::Sequence(sequence) => {
                let tensor = |item: &Value| item.tensor().map_err(|error| self.mistake(at, error));
                sequence.items().iter().map(tensor).collect()
            }
            _ => Err(self.expected(at, "a tuple of arrays, such as (x, y)")),
        }
    }

    /// One integer.
    pub fn int(&self, at: usize) -> Result<isize, Mistake> {
        self.to_int(self.value(at)).ok_or_else(|| self.expected(at, "an integer"))
    }

    /// One integer, or `None`.
    pub fn optional_int(&self, at: usize) -> Result<Option<isize>, Mistake> {
        match self.value(at) {
            Value::None => Ok(None),
            value => self.to_int(value).map(Some).ok_or_else(|| self.expected(at, "an integer or None")),
        }
    }

    /// Axes: an integer, a tuple of integers, or `None` for all of them, which the library writes as no axes.
    pub fn axes(&self, at: usize) -> Result<Vec<isize>, Mistake> {
        match self.value(at) {
            Value::None => Ok(Vec::new()),
            Value::Sequence(sequence) if sequence.items().is_empty() => {
                let error = self.mistake(at, format!("{} names no axes", self.callable.params()[at].name));
                Err(error.help("leave it out for all axes"))
            }
            _ => self.ints(at),
        }
    }

    /// An integer or a tuple of integers.
    pub fn ints(&self, at: usize) -> Result<Vec<isize>, Mistake> {
        let expected = || self.expected(at, "an integer or a tuple of integers");
        match self.value(at) {
            Value::Sequence(sequence) => {
                sequence.items().iter().map(|item| self.to_int(item)).collect::<Option<_>>().ok_or_else(expected)
            }
            value => self.to_int(value).map(|value| vec![value]).ok_or_else(expected),
        }
    }

    /// Counts: an integer or a tuple of integers that are not negative.
    pub fn counts(&self, at: usize) -> Result<Vec<usize>, Mistake> {
        let ints = self.ints(at)?;
        let count = |value: isize| usize::try_from(value).ok().filter(|count| *count <= MAX_ELEMS);
        ints.into_iter().map(count).collect::<Option<_>>().ok_or_else(|| {
            let name = self.callable.params()[at].name;
            self.mistake(at, format!("{name} must not be negative or above 2^40, found {}", self.value(at).describe()))
        })
    }

    /// Two counts; one stands for both.
    pub fn pair(&self, at: usize) -> Result<[usize; 2], Mistake> {
        match self.counts(at)?[..] {
            [both] => Ok([both; 2]),
            [first, second] => Ok([first, second]),
            _ => Err(self.expected(at, "an integer or a pair of integers")),
        }
    }

    /// A number.
    pub fn number(&self, at: usize) -> Result<Number, Mistake> {
        match self.value(at) {
            Value::Number(number) => Ok(*number),
            _ => Err(self.expected(at, "a number")),
        }
    }

    /// `True` or `False`.
    pub fn flag(&self, at: usize) -> Result<bool, Mistake> {
        match self.value(at) {
            Value::Number(Number::Bool(flag)) => Ok(*flag),
            _ => Err(self.expected(at, "True or False")),
        }
    }

    /// A dtype, or `None`.
    pub fn dtype(&self, at: usize) -> Result<Option<DType>, Mistake> {
        match self.value(at) {
            Value::DType(dtype) => Ok(Some(*dtype)),
            Value::None if self.callable.params()[at].default.is_some() => Ok(None),
            _ => Err(self.expected(at, "f32, i32, u32 or bool")),
        }
    }

    /// An integer that an axis or an extent can be; a bool is none, though Python would let it pass.
    fn to_int(&self, value: &Value) -> Option<isize> {
        match value {
            Value::Number(Number::Int(int)) => isize::try_from(*int).ok(),
            _ => None,
        }
    }
}
