//! The tables: every row can be called, and says how.

use std::collections::BTreeSet;

use breakeven::{Engine, Tensor};

use super::*;
use crate::record::{Inputs, Mistake};
use crate::{expr, record};

fn call_source(source: &str) -> Result<Tensor, Mistake> {
    let x = Tensor::from_slice(&[0.5f32, 0.25, 0.125, 1.0], [2, 2]).unwrap();
    let image = x.reshape(&[1, 1, 2, 2]).unwrap();
    let values = [("x", x), ("image", image)].map(|(name, tensor)| (name.to_owned(), Value::Tensor(tensor)));
    let inputs = Inputs { values: values.into_iter().collect(), unread: Vec::new() };
    let ast = expr::parse(source).map_err(Mistake::from)?;
    let recorded = record::record(&ast, &inputs)?;
    recorded.last.tensor().map_err(|error| Mistake::new(Span { start: 0, end: 0 }, error))
}

/// An argument that each parameter of a row takes.
fn argument(function: &str, param: &Param) -> &'static str {
    match (function, param.name) {
        ("conv2d", "x" | "weight") => "image",
        // Bits of floats are no numbers.
        ("xor", _) => "x > 0",
        ("shl" | "shr" | "count_ones" | "reverse_bits", _) => "cast(x, i32)",
        ("pad", "pad_width") | ("tile", "reps") => "1",
        ("windows", "size") => "(1, 2)",
        ("take", "indices") => "[0, 1]",
        ("reshape", "shape") => "(4,)",
        ("permute" | "transpose", "order" | "axes") => "(1, 0)",
        (_, "condition") => "x > 0",
        (_, "arrays") => "(x, x)",
        (_, "shape") => "(2, 2)",
        (_, "dtype") => "f32",
        (_, "axis" | "axis1") => "0",
        (_, "axis2" | "k" | "fill_value") => "1",
        (_, "start") => "3",
        _ => "x",
    }
}

#[test]
fn every_row_can_be_called_by_position_by_name_and_run() {
    let engine = Engine::new().unwrap();
    for callable in Callable::all() {
        let name = callable.name();
        // The lexer keeps these for Python's own operators.
        if ["and", "or", "not"].contains(&name) {
            continue;
        }
        let required = || callable.params().iter().filter(|param| param.default.is_none());
        let args: Vec<&str> = required().map(|param| argument(name, param)).collect();
        let named: Vec<String> = required().zip(&args).map(|(param, arg)| format!("{}={arg}", param.name)).collect();
        for list in [args.join(", "), named.join(", ")] {
            let source = format!("{name}({list})");
            let tensor = call_source(&source).unwrap_or_else(|error| panic!("{source}: {error}"));
            engine.run(&[&tensor]).unwrap_or_else(|error| panic!("{source}: {error}"));
        }
    }
}

#[test]
fn every_default_is_a_value_and_names_are_unique() {
    let mut names = BTreeSet::new();
    for callable in Callable::all() {
        assert!(names.insert(callable.name()), "{} is there twice", callable.name());
        assert!(!callable.doc().is_empty());
        for param in callable.params() {
            assert_eq!(param.default.is_some(), param.default_value().is_some(), "{}: {}", callable.name(), param.name);
        }
        let optional = callable.params().iter().skip_while(|param| param.default.is_none());
        assert!(optional.into_iter().all(|param| param.default.is_some()), "{}: a gap", callable.name());
    }
    for op in Op::ALL {
        assert!(find(op.row().name).is_some());
    }
}

#[track_caller]
fn refuse(source: &str, message: &str, help: &str, place: &str) {
    let error = call_source(source).expect_err(source);
    assert!(error.message.contains(message), "{source}: {}", error.message);
    assert!(error.help.clone().unwrap_or_default().contains(help), "{source}: {:?}", error.help);
    assert_eq!(&source[error.span.range()], place, "{source}");
}

#[test]
fn arguments_that_do_not_fit() {
    let usage = "it is called as sum(x, axis=None, keepdims=False)";
    refuse("sum(x, axes=1)", "`sum` has no argument `axes`; it takes x, axis, keepdims", usage, "axes");
    refuse("sum(x, 0, False, 1)", "`sum` takes at most 3 arguments, found 4", usage, "1");
    refuse("sum(x, 0, axis=1)", "`axis` is given twice", usage, "axis");
    refuse("sum()", "`sum` needs `x`", usage, "sum()");
    refuse("exp()", "`exp` needs `x`", "exp(x)", "exp()");
    refuse("exp(x, x)", "`exp` takes at most 1 arguments", "", "x");
    refuse("sum(x, axis=1.5)", "axis must be an integer or a tuple of integers, found 1.5", "", "1.5");
    refuse("sum(x, axis=True)", "found True", "", "True");
    refuse("sum(x, axis=(0, x))", "found a tuple of 2", "", "(0, x)");
    refuse("sum(x, axis=())", "axis names no axes", "leave it out", "()");
    refuse("sum(x, keepdims=1)", "keepdims must be True or False, found 1", "", "1");
    refuse("max(x, x)", "axis must be", "use maximum(x, y)", "x");
    refuse("argmax(x, axis=(0, 1))", "axis must be an integer or None", "", "(0, 1)");
    refuse("cast(x, 3)", "dtype must be f32, i32, u32 or bool, found 3", "", "3");
    refuse("concat(x)", "arrays must be a tuple of arrays", "", "x");
    refuse("softmax(x, axis=None)", "axis must be an integer, found None", "", "None");
    refuse("layer_norm(x, eps=x)", "eps must be a number, found an array f32[2, 2]", "", "x");
    refuse("zeros((2, -1))", "shape must not be negative", "", "(2, -1)");
    refuse("pad(x, ((1, 2), (3,)))", "pad_width must be", "", "((1, 2), (3,))");
    refuse("pad(x, (1, 2, 3))", "pad_width must be", "", "(1, 2, 3)");
    refuse("conv2d(image, image, stride=(1, 2, 3))", "a pair of integers", "", "(1, 2, 3)");
    refuse("permute(x, 0, 0, 0, 0, 0, 0, 0, 0, 0)", "the order names 9 axes", "", "0, 0, 0, 0, 0, 0, 0, 0, 0");
    refuse("transpose(x, (0, 0))", "no order of its 2 axes", "", "transpose(x, (0, 0))");
    refuse("var(x, ddof=-1)", "ddof must be 0 or a positive integer", "", "-1");
    refuse("arange(0, 1, 0)", "has no end", "step other than 0", "0");
    refuse("full((2,), 2**40, dtype=i32)", "does not fit in i32", "", "2**40");
    refuse("sum(x, axis=10**30)", "axis must be an integer", "", "10**30");
}

#[test]
fn near_names_are_found() {
    let names = || Callable::all().map(Callable::name);
    assert_eq!(nearest("sofmax", names()), Some("softmax"));
    assert_eq!(nearest("ReLU", names()), Some("relu"));
    assert_eq!(nearest("quaternion", names()), None);
    assert_eq!(nearest(&"x".repeat(1000), names()), None);
}
