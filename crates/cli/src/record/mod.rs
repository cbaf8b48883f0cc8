//! Records an expression: a syntax tree and the inputs' values enter, tensors leave, with nothing computed yet.
//!
//! The tree's nodes come children first, so recording is one loop. Every mistake is found here, with the place it was
//! made at: names, arguments, shapes and dtypes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use breakeven::Tensor;

mod index;
mod number;
mod operators;
mod value;

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod soup_tests;

pub use number::Number;
pub use operators::{apply, operands, said, symbol};
pub use value::{Mistake, Sequence, Value};

use crate::expr::{Ast, Expr, Node, NodeId, Span};
use crate::functions;

/// The most elements that any value of an expression may have, computed or not: a thousand times what memory holds, and
/// small enough that no count of bytes or operations over it overflows.
pub const MAX_ELEMS: usize = 1 << 40;

/// What the names of an expression stand for.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The inputs' values by name.
    pub values: BTreeMap<String, Value>,
    /// The names of inputs that were given and not read, since the expression does not use them. Messages list them.
    pub unread: Vec<String>,
}

/// An expression with nothing left to ask: its values, by name.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What each name was assigned last, in the order of their first assignments.
    pub named: Vec<(String, Value)>,
    /// The last statement's value.
    pub last: Value,
    /// Where the last statement's value stands.
    pub last_span: Span,
    /// The name that the last statement assigns, if it does.
    pub last_name: Option<String>,
}

/// Records all statements of `ast`, whose free names are `inputs`.
///
/// ```
/// use breakeven_cli::{expr, record};
///
/// let ast = expr::parse("shape = (2, 2**10); ones(shape) * 2").unwrap();
/// let recorded = record::record(&ast, &Default::default()).unwrap();
/// assert_eq!(recorded.last.tensor().unwrap().shape().dims(), [2, 1024]);
/// ```
pub fn record(ast: &Ast<'_>, inputs: &Inputs) -> Result<Recorded, Mistake> {
    let mut recorder = Recorder {
        ast,
        inputs,
        values: Vec::with_capacity(ast.nodes().len()),
        named: Vec::new(),
        places: HashMap::new(),
    };
    let mut last = (Value::None, Span { start: 0, end: 0 }, None);
    for statement in ast.statements() {
        for node in &ast.nodes()[statement.nodes.clone()] {
            let value = recorder.node(node)?;
            recorder.values.push(sized(value, node.span)?);
        }
        let value = recorder.value(statement.value).clone();
        let name = statement.target.map(|target| target.text);
        if let Some(name) = name {
            match recorder.places.get(name) {
                Some(&place) => recorder.named[place].1 = value.clone(),
                None => {
                    recorder.places.insert(name, recorder.named.len());
                    recorder.named.push((name.to_owned(), value.clone()));
                }
            }
        }
        last = (value, ast.node(statement.value).span, name.map(str::to_owned));
    }
    let (last, last_span, last_name) = last;
    Ok(Recorded { named: recorder.named, last, last_span, last_name })
}

struct Recorder<'a, 's> {
    ast: &'a Ast<'s>,
    inputs: &'a Inputs,
    /// The value of each node so far, in the order of the nodes.
    values: Vec<Value>,
    named: Vec<(String, Value)>,
    /// Where each name is in `named`: a source may assign tens of thousands.
    places: HashMap<&'s str, usize>,
}

impl Recorder<'_, '_> {
    fn value(&self, id: NodeId) -> &Value {
        &self.values[id.index()]
    }

    fn node(&self, node: &Node<'_>) -> Result<Value, Mistake> {
        let mistake = |message: String| Mistake::new(node.span, message);
        match &node.expr {
            Expr::Int(value) => Ok(Value::Number(Number::Int(i128::from(*value)))),
            Expr::Float(value) => Ok(Value::Number(Number::Float(*value))),
            Expr::Bool(value) => Ok(Value::Number(Number::Bool(*value))),
            Expr::None => Ok(Value::None),
            Expr::Name(name) => self.name(name, node.span),
            Expr::Unary { op, operand } => operators::unary(*op, self.value(*operand)).map_err(mistake),
            // The operator is where the two operands meet.
            Expr::Binary { op, at, left, right } => {
                operators::binary(*op, self.value(*left), self.value(*right)).map_err(|error| Mistake::new(*at, error))
            }
            Expr::Call { function, args } => {
                let args: Vec<functions::Given<'_>> = args
                    .iter()
                    .map(|arg| functions::Given {
                        keyword: arg.keyword,
                        value: self.value(arg.value).clone(),
                        span: self.ast.node(arg.value).span,
                    })
                    .collect();
                let is_variable = self.lookup(function.text).is_some();
                functions::call(*function, &args, node.span, is_variable)
            }
            Expr::Attribute { value, name } => match (name.text, self.value(*value)) {
                ("T", value) => {
                    let x = value.tensor().map_err(mistake)?;
                    x.transpose().map(Value::Tensor).map_err(|error| mistake(error.to_string()))
                }
                (other, _) => {
                    let error = Mistake::new(name.span, format!("no attribute `{other}`; the only one is `T`"));
                    Err(match functions::find(other) {
                        Some(_) => error.help(format!("to call the function write `{other}(...)`")),
                        None => error.help("write extents as numbers, and -1 for the one that follows in reshape"),
                    })
                }
            },
            Expr::Index { value, subscripts } => {
                let x = self.value(*value).tensor().map_err(mistake)?;
                index::index(&x, subscripts, |id| self.value(id), node.span).map(Value::Tensor)
            }
            Expr::Tuple(items) | Expr::List(items) => {
                let items = items.iter().map(|id| self.value(*id).clone()).collect();
                Sequence::new(items).map(Value::Sequence).map_err(mistake)
            }
        }
    }

    /// An assigned name, an input, a constant or a dtype, in this order: what the user named wins.
    fn lookup(&self, name: &str) -> Option<Value> {
        let named = self.places.get(name).map(|&place| &self.named[place].1);
        if let Some(value) = named.or_else(|| self.inputs.values.get(name)) {
            return Some(value.clone());
        }
        let float = |value| Some(Value::Number(Number::Float(value)));
        match name {
            "pi" => float(std::f64::consts::PI),
            "e" => float(std::f64::consts::E),
            "inf" => float(f64::INFINITY),
            "nan" => float(f64::NAN),
            _ => functions::dtype_named(name).map(Value::DType),
        }
    }

    fn name(&self, name: &str, span: Span) -> Result<Value, Mistake> {
        if let Some(value) = self.lookup(name) {
            return Ok(value);
        }
        if matches!(name, "np" | "numpy" | "jnp" | "torch") {
            let error = Mistake::new(span, format!("`{name}` is not defined: functions have no prefix here"));
            return Err(error.help(format!("drop `{name}.`, as in `sum(x)`")));
        }
        if functions::find(name).is_some() {
            let error = Mistake::new(span, format!("`{name}` is a function; expected a value"));
            return Err(error.help(format!("call it, as in `{name}(x)`")));
        }
        let given = self.inputs.values.keys().chain(&self.inputs.unread);
        let known: Vec<&str> = given.chain(self.named.iter().map(|(name, _)| name)).map(|name| &**name).collect();
        let given = match known.len() {
            0 => "no inputs were given".to_owned(),
            1..=12 => format!("known are {}", known.join(", ")),
            n => format!("known are {} and {} more", known[..12].join(", "), n - 12),
        };
        let error = Mistake::new(span, format!("`{name}` is not defined; {given}"));
        Err(match functions::nearest(name, known.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`? an input is passed as `{name}={name}.npy`")),
            None => error.help(format!(
                "pass it as an input after the expression: `{name}={name}.npy`, or a number: `{name}=0.5`"
            )),
        })
    }
}

/// The names that an expression reads: those of them that are files are worth opening.
pub fn names<'s>(ast: &Ast<'s>) -> BTreeSet<&'s str> {
    ast.nodes().iter().filter_map(|node| if let Expr::Name(name) = node.expr { Some(name) } else { None }).collect()
}

/// The value, if it is not too large. An array without elements becomes a constant: it has no data to read, and where
/// it came from need not be planned.
fn sized(value: Value, span: Span) -> Result<Value, Mistake> {
    let Value::Tensor(tensor) = &value else { return Ok(value) };
    let shape = tensor.shape();
    // Extents of 0 count as 1: what broadcasts against them must stay in bounds as well.
    let elems = shape.iter().try_fold(1usize, |elems, &extent| elems.checked_mul(extent.max(1)));
    if elems.is_none_or(|elems| elems > MAX_ELEMS) {
        let message = format!("an array of shape {shape} has more elements than the 2^40 that are computed with");
        return Err(Mistake::new(span, message).help("compute a part of it at a time"));
    }
    if shape.elems() > 0 {
        return Ok(value);
    }
    let empty = Tensor::zeros(shape, tensor.dtype()).map_err(|error| Mistake::new(span, error.to_string()))?;
    Ok(Value::Tensor(empty))
}
