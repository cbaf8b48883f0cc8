//! Reads a recipe: text enters, the graph's leaves and outputs leave, or the line that is wrong.
//!
//! Whatever the text says, nothing is allocated but nodes, one a line: shapes are numbers, and data is not there.

use super::{HEAD, Recipe, leaves};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{Op, ReduceOp, ScanOp};
use crate::shape::{AxisSet, MAX_RANK, Shape};
use crate::tensor::{Kind, Movement, Slice, Tensor, elementwise};
use std::collections::HashSet;
use std::str::FromStr;

/// What is wrong with a line.
type Wrong<T> = Result<T, String>;

/// The graph of a text that [`recipe`](super::recipe) wrote. Its plan key is that of the graph that was written.
///
/// ```
/// let error = breakeven_ir::parse_recipe("recipe 1\nf32[2] input x\nf32[3] exp 0\noutputs 1\n").unwrap_err();
/// assert!(error.to_string().starts_with("line 3 of the recipe: "));
/// ```
pub fn parse_recipe(text: &str) -> Result<Recipe> {
    let mut nodes: Vec<Tensor> = Vec::new();
    let taken = input_names(text);
    let mut data: HashSet<usize> = HashSet::new();
    let mut lines = text.split('\n').enumerate().map(|(at, line)| (at + 1, line));
    let refuse = |line: usize, why: String| Error::Recipe { line, why };
    match lines.next() {
        Some((_, HEAD)) => {}
        other => return Err(refuse(1, format!("expected `{HEAD}`, found `{}`", shortened(other.map_or("", |l| l.1))))),
    }
    let mut last = 1;
    while let Some((number, line)) = lines.next() {
        last = number;
        if let Some(numbers) = line.strip_prefix("outputs") {
            let words = numbers.split(' ').filter(|word| !word.is_empty());
            let outputs: Wrong<Vec<Tensor>> = words.map(|word| argument(&nodes, word)).collect();
            let outputs = outputs.map_err(|why| refuse(number, why))?;
            if outputs.is_empty() {
                return Err(refuse(number, "it has no outputs".to_owned()));
            }
            return match lines.find(|(_, rest)| !rest.is_empty()) {
                Some((number, _)) => Err(refuse(number, "nothing may come after the outputs".to_owned())),
                None => {
                    let leaves = leaves(&outputs, |leaf| data.contains(&(leaf.address() as usize)));
                    Ok(Recipe { leaves, outputs })
                }
            };
        }
        let (node, is_data) = node(line, &nodes, &taken).map_err(|why| refuse(number, why))?;
        if is_data {
            data.insert(node.address() as usize);
        }
        nodes.push(node);
    }
    Err(refuse(last, "the text ends without outputs".to_owned()))
}

/// Enough of a line to know it by.
fn shortened(line: &str) -> String {
    line.chars().take(40).collect()
}

/// The names of all inputs: data is given none of them.
fn input_names(text: &str) -> HashSet<String> {
    let name = |line: &str| unescaped(line.split_once(' ')?.1.strip_prefix("input ")?).ok();
    text.split('\n').filter_map(name).collect()
}

/// A name for the data of this line that no input has.
fn data_name(number: usize, taken: &HashSet<String>) -> String {
    let mut name = format!("data {number}");
    while taken.contains(&name) {
        name.push('\'');
    }
    name
}

/// One line as a node, and whether it is data.
fn node(line: &str, nodes: &[Tensor], taken: &HashSet<String>) -> Wrong<(Tensor, bool)> {
    let (kind, rest) = line.split_once(' ').ok_or_else(|| format!("`{}` is no node", shortened(line)))?;
    let (dtype, shape) = type_of(kind)?;
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_data = name == "data";
    let made = match name {
        "input" => Tensor::input(&unescaped(rest)?, dtype, shape).map_err(|error| error.to_string())?,
        "data" => {
            end(rest)?;
            Tensor::input(&data_name(nodes.len(), taken), dtype, shape).map_err(|error| error.to_string())?
        }
        _ => Line { words: rest.split(' ').filter(|word| !word.is_empty()).collect(), nodes, dtype, shape }
            .operation(name)?,
    };
    if (made.dtype(), made.shape()) != (dtype, shape) {
        return Err(format!("`{name}` gives {}{} here, not {kind}", made.dtype(), made.shape()));
    }
    Ok((made, is_data))
}

fn end(rest: &str) -> Wrong<()> {
    if rest.is_empty() { Ok(()) } else { Err(format!("`{}` is too much", shortened(rest))) }
}

/// `f32[2,3]`.
fn type_of(text: &str) -> Wrong<(DType, Shape)> {
    let (dtype, dims) = match text.split_once('[') {
        None => (text, Vec::new()),
        Some((dtype, dims)) => {
            let dims = dims.strip_suffix(']').ok_or_else(|| format!("`{}` is no type", shortened(text)))?;
            (dtype, numbers(dims)?)
        }
    };
    let found = DType::ALL.into_iter().find(|d| d.name() == dtype);
    let dtype = found.ok_or_else(|| format!("`{}` is no dtype", shortened(dtype)))?;
    Ok((dtype, Shape::new(&dims).map_err(|error| error.to_string())?))
}

/// Numbers separated by commas. A movement has no use for more of them than there can be axes.
fn numbers<T: FromStr>(text: &str) -> Wrong<Vec<T>> {
    each(text, number)
}

fn each<T>(text: &str, read: impl Fn(&str) -> Wrong<T>) -> Wrong<Vec<T>> {
    if text.split(',').count() > MAX_RANK {
        return Err(format!("`{}` has more than {MAX_RANK} entries", shortened(text)));
    }
    text.split(',').map(read).collect()
}

fn number<T: FromStr>(text: &str) -> Wrong<T> {
    text.parse().map_err(|_| format!("`{}` is no number that fits here", shortened(text)))
}

/// Numbers separated by colons.
fn group<const N: usize>(text: &str) -> Wrong<[&str; N]> {
    let parts: Vec<&str> = text.splitn(N + 1, ':').collect();
    parts.try_into().map_err(|_| format!("`{}` should be {N} numbers", shortened(text)))
}

fn argument(nodes: &[Tensor], word: &str) -> Wrong<Tensor> {
    let number: usize = number(word)?;
    nodes.get(number).cloned().ok_or_else(|| format!("there is no node {number} before it"))
}

fn unescaped(text: &str) -> Wrong<String> {
    let mut name = String::with_capacity(text.len());
    let mut parts = text.split('%');
    name.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| format!("`{}`: after % there must be two digits", shortened(text)))?;
        name.push(char::from(code));
        name.push_str(&part[2..]);
    }
    Ok(name)
}

/// A line whose words are taken from the front.
struct Line<'a> {
    words: std::collections::VecDeque<&'a str>,
    nodes: &'a [Tensor],
    dtype: DType,
    shape: Shape,
}

impl Line<'_> {
    /// The operation of this name. It must be recorded as one node, as it was when it was written: nothing is cast.
    fn operation(mut self, name: &str) -> Wrong<Tensor> {
        let made = match name {
            "const" => Ok(Tensor::scalar(self.scalar(self.dtype)?)),
            "arange" => self.arange(),
            "count" => {
                let arg = self.arg()?;
                let axes = self.axes(arg.shape())?;
                Ok(Tensor::node(Kind::Count { arg, axes }, Shape::SCALAR, DType::F32))
            }
            "matmul" => {
                let (left, right) = (self.arg()?, self.arg()?);
                let plain = |t: &Tensor| t.dtype() == DType::F32 && t.shape().rank() >= 2;
                if !plain(&left) || !plain(&right) {
                    return Err("a matmul is of two f32 matrices".to_owned());
                }
                left.matmul(&right).map_err(|error| error.to_string())
            }
            "concat" => self.concat(),
            "take" => {
                let (arg, indices) = (self.arg()?, self.arg()?);
                if indices.dtype() != DType::I32 {
                    return Err("indices are i32 here".to_owned());
                }
                let axis = self.axis(arg.shape())?;
                arg.take(&indices, axis).map_err(|error| error.to_string())
            }
            _ => self.of_a_table(name),
        }?;
        match self.words.front() {
            None => Ok(made),
            Some(word) => Err(format!("`{}` is too much", shortened(word))),
        }
    }

    /// An elementwise op, a reduction, a scan or a movement.
    fn of_a_table(&mut self, name: &str) -> Wrong<Tensor> {
        if let Some(op) = Op::named(name) {
            let args: Wrong<Vec<Tensor>> = (0..op.row().arity).map(|_| self.arg()).collect();
            let args = args?;
            let dtypes: Vec<DType> = args.iter().map(Tensor::dtype).collect();
            if op.signature(&dtypes).is_none() {
                return Err(format!("`{name}` is not defined for these dtypes"));
            }
            return elementwise::map(op, &args.iter().collect::<Vec<_>>()).map_err(|error| error.to_string());
        }
        if let Some(op) = ReduceOp::ALL.into_iter().find(|op| op.name() == name) {
            let arg = self.arg()?;
            if op.arg_dtype(arg.dtype()) != arg.dtype() {
                return Err(format!("`{name}` is not defined for {}", arg.dtype()));
            }
            let axes = self.axes(arg.shape())?;
            let blank = self.words.front() == Some(&"blank");
            if blank {
                self.words.pop_front();
            }
            return arg.reduce_kept(op, axes, blank).map_err(|error| error.to_string());
        }
        if let Some(op) = ScanOp::ALL.into_iter().find(|op| op.name() == name) {
            let arg = self.arg()?;
            if op.arg_dtype(arg.dtype()) != arg.dtype() {
                return Err(format!("`{name}` is not defined for {}", arg.dtype()));
            }
            let axis = self.axis(arg.shape())?;
            return arg.scan(op, axis).map_err(|error| error.to_string());
        }
        let arg = self.arg()?;
        let by = self.movement(name, &arg)?;
        let moved = arg.moved(by).map_err(|error| error.to_string())?;
        // What moves nothing is never recorded.
        if moved.address() == arg.address() {
            return Err(format!("`{name}` changes nothing here"));
        }
        Ok(moved)
    }

    fn arange(&mut self) -> Wrong<Tensor> {
        if self.dtype == DType::Bool || self.shape.rank() != 1 {
            return Err("a range has one axis, and its numbers are i32, u32 or f32".to_owned());
        }
        let (start, step) = (self.scalar(self.dtype)?, self.scalar(self.dtype)?);
        Ok(Tensor::node(Kind::Arange { start, step }, self.shape, self.dtype))
    }

    fn concat(&mut self) -> Wrong<Tensor> {
        let mut args = Vec::new();
        while self.words.front().is_some_and(|word| *word != "axis") {
            args.push(self.arg()?);
        }
        let [first, _, ..] = &args[..] else { return Err("a concat is of two nodes or more".to_owned()) };
        if args.iter().any(|arg| arg.dtype() != first.dtype()) {
            return Err("all nodes of a concat are of one dtype".to_owned());
        }
        let axis = self.axis(first.shape())?;
        Tensor::concat(&args.iter().collect::<Vec<_>>(), axis).map_err(|error| error.to_string())
    }

    fn movement(&mut self, name: &str, arg: &Tensor) -> Wrong<Movement> {
        self.expect("by")?;
        // Lists may be empty: `squeeze` of all axes, the reshape of one element to none.
        let list = self.words.pop_front();
        fn of<T>(list: Option<&str>, read: impl Fn(&str) -> Wrong<T>) -> Wrong<Vec<T>> {
            list.map_or(Ok(Vec::new()), |list| each(list, read))
        }
        let bound = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
        match name {
            "reshape" => Ok(Movement::Reshape(of(list, number)?)),
            "squeeze" => Ok(Movement::Squeeze(of(list, number)?)),
            "expand_dims" => Ok(Movement::ExpandDims(of(list, number)?)),
            "flip" => Ok(Movement::Flip(of(list, number)?)),
            "permute" => Ok(Movement::Permute(of(list, number)?)),
            "broadcast_to" => {
                Ok(Movement::BroadcastTo(Shape::new(&of(list, number)?).map_err(|error| error.to_string())?))
            }
            "slice" => {
                let slice = |word: &str| {
                    let [start, stop, step] = group(word)?;
                    Ok(Slice { start: bound(start)?, stop: bound(stop)?, step: number(step)? })
                };
                Ok(Movement::Slice(of(list, slice)?))
            }
            "pad" => {
                let width = |word: &str| {
                    let [low, high] = group(word)?;
                    Ok((number(low)?, number(high)?))
                };
                // Without axes there are no widths, and the first word is the value's.
                let widths = if list == Some("value") { Vec::new() } else { of(list, width)? };
                if list != Some("value") {
                    self.expect("value")?;
                }
                Ok(Movement::Pad(widths, self.scalar(arg.dtype())?))
            }
            "windows" => {
                let window = |word: &str| {
                    let [axis, size, stride] = group(word)?;
                    Ok((number::<u8>(axis)?, number(size)?, number(stride)?))
                };
                let windows = of(list, window)?;
                let axes: Vec<isize> = windows.iter().map(|(axis, ..)| *axis as isize).collect();
                if axes.is_empty() {
                    return Err("windows need at least one axis".to_owned());
                }
                arg.shape().axes(&axes).map_err(|error| error.to_string())?;
                Ok(Movement::Windows {
                    axes: windows.iter().map(|(axis, ..)| *axis).collect(),
                    sizes: windows.iter().map(|(_, size, _)| *size).collect(),
                    strides: windows.iter().map(|(.., stride)| *stride).collect(),
                })
            }
            _ => Err(format!("there is no operation `{}`", shortened(name))),
        }
    }

    fn word(&mut self) -> Wrong<&str> {
        self.words.pop_front().ok_or_else(|| "the line is too short".to_owned())
    }

    fn expect(&mut self, word: &str) -> Wrong<()> {
        match self.words.pop_front() {
            Some(found) if found == word => Ok(()),
            other => Err(format!("expected `{word}`, found `{}`", shortened(other.unwrap_or("")))),
        }
    }

    fn arg(&mut self) -> Wrong<Tensor> {
        let nodes = self.nodes;
        argument(nodes, self.word()?)
    }

    /// The bits of a lane; those of a bool are 0 or 1.
    fn scalar(&mut self, dtype: DType) -> Wrong<Scalar> {
        let word = self.word()?;
        let bits = u32::from_str_radix(word, 16).ok().filter(|bits| dtype != DType::Bool || *bits < 2);
        let bits = bits.ok_or_else(|| format!("`{}` is no {dtype} in hexadecimal", shortened(word)))?;
        Ok(Scalar::from_bits(dtype, bits))
    }

    fn axis(&mut self, shape: Shape) -> Wrong<isize> {
        self.expect("axis")?;
        let axis: u8 = number(self.word()?)?;
        shape.axis(isize::from(axis)).map_err(|error| error.to_string()).map(|axis| axis as isize)
    }

    /// A set of axes; unlike in calls, no axes are none.
    fn axes(&mut self, shape: Shape) -> Wrong<AxisSet> {
        self.expect("axes")?;
        let mut set = AxisSet::default();
        let Some(list) = self.words.front().copied().filter(|word| *word != "blank") else { return Ok(set) };
        self.words.pop_front();
        for axis in numbers::<u8>(list)? {
            let axis = shape.axis(isize::from(axis)).map_err(|error| error.to_string())?;
            if !set.insert(axis) {
                return Err(format!("axis {axis} is there twice"));
            }
        }
        Ok(set)
    }
}
