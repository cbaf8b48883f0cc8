//! What expressions mean: values against what numpy gives, and every mistake at its place.

use breakeven::{DType, Engine, Tensor};

use super::*;
use crate::expr;

fn inputs() -> Inputs {
    let tensor = |tensor: breakeven::Result<Tensor, breakeven::RecordError>| Value::Tensor(tensor.unwrap());
    let values = [
        ("x", tensor(Tensor::from_slice(&[1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0], [2, 3]))),
        ("i", tensor(Tensor::from_slice(&[1i32, -2, 3], [3]))),
        ("u", tensor(Tensor::from_slice(&[1u32, 2, 3], [3]))),
        ("m", tensor(Tensor::from_slice(&[true, false, true], [3]))),
        ("z", tensor(Tensor::zeros([0, 3], DType::F32))),
        ("n", Value::Number(Number::Int(4))),
    ];
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Inputs { values, unread: vec!["other".to_owned()] }
}

fn recorded(source: &str) -> Result<Recorded, Mistake> {
    record(&expr::parse(source).map_err(Mistake::from)?, &inputs())
}

#[track_caller]
fn check(source: &str, dtype: DType, shape: &[usize], expected: &[f64]) {
    let tensor = recorded(source).unwrap_or_else(|error| panic!("{source}: {error}")).last.tensor().unwrap();
    let arrays = Engine::new().unwrap().run(&[&tensor]).unwrap();
    assert_eq!((arrays[0].dtype(), arrays[0].shape().dims()), (dtype, shape), "{source}");
    assert_eq!(arrays[0].to_f64(), expected, "{source}");
}

#[track_caller]
fn refuse(source: &str, message: &str, place: &str) {
    let error = recorded(source).expect_err(source);
    assert!(error.message.contains(message), "{source}: {}", error.message);
    assert_eq!(&source[error.span.range()], place, "{source}: {}", error.message);
}

#[test]
fn numbers_are_weak_beside_arrays() {
    check("i + 1", DType::I32, &[3], &[2.0, -1.0, 4.0]);
    check("i + 1.5", DType::F32, &[3], &[2.5, -0.5, 4.5]);
    check("1 - u", DType::U32, &[3], &[0.0, 4294967295.0, 4294967294.0]);
    check("m + 1", DType::I32, &[3], &[2.0, 1.0, 2.0]);
    check("i / 2", DType::F32, &[3], &[0.5, -1.0, 1.5]);
    check("i // 2", DType::I32, &[3], &[0.0, -1.0, 1.0]);
    check("m ** 2", DType::I32, &[3], &[1.0, 0.0, 1.0]);
    check("i ** 2", DType::I32, &[3], &[1.0, 4.0, 9.0]);
    check("x[0] * n", DType::F32, &[3], &[4.0, -8.0, 12.0]);
    check("where(m, 1, 0)", DType::I32, &[3], &[1.0, 0.0, 1.0]);
    check("where(m, 1, 0.5)", DType::F32, &[3], &[1.0, 0.5, 1.0]);
    check("where(m, u, 0)", DType::U32, &[3], &[1.0, 0.0, 3.0]);
    check("clip(i, -1, 2)", DType::I32, &[3], &[1.0, -1.0, 2.0]);
    check("clip(i, min=0)", DType::I32, &[3], &[1.0, 0.0, 3.0]);
    check("maximum(1, 2.5)", DType::F32, &[], &[2.5]);
}

#[test]
fn constants_are_folded_before_they_meet_an_array() {
    check("2 ** 10", DType::I32, &[], &[1024.0]);
    check("zeros(2 ** 2 - 1)", DType::F32, &[3], &[0.0; 3]);
    check("sum(x, axis=-2 + 1)", DType::F32, &[2], &[2.0, -5.0]);
    check("k = n // 2; reshape(arange(n), (k, -1))", DType::I32, &[2, 2], &[0.0, 1.0, 2.0, 3.0]);
    check("inf", DType::F32, &[], &[f64::INFINITY]);
    check("e = 1; e", DType::I32, &[], &[1.0]);
    check("[1, 2] + 0.5", DType::F32, &[2], &[1.5, 2.5]);
    check("[[True], [False]]", DType::Bool, &[2, 1], &[1.0, 0.0]);
    check("[]", DType::F32, &[0], &[]);
}

#[test]
fn indices_are_numpys() {
    check("x[1]", DType::F32, &[3], &[-4.0, 5.0, -6.0]);
    check("x[-1, -1]", DType::F32, &[], &[-6.0]);
    check("x[:, ::-2]", DType::F32, &[2, 2], &[3.0, 1.0, -6.0, -4.0]);
    check("x[..., 0]", DType::F32, &[2], &[1.0, -4.0]);
    check("x[None, 1, None, 2:]", DType::F32, &[1, 1, 1], &[-6.0]);
    check("x[1, ..., None]", DType::F32, &[3, 1], &[-4.0, 5.0, -6.0]);
    check("x[5:]", DType::F32, &[0, 3], &[]);
    check("x[-99:99, 1:2]", DType::F32, &[2, 1], &[-2.0, 5.0]);
    check("x[n - 3, None:None]", DType::F32, &[3], &[-4.0, 5.0, -6.0]);
    refuse("x[2]", "index 2 is out of range for axis 0 of extent 2", "2");
    refuse("x[0, -4]", "index -4 is out of range for axis 1 of extent 3", "-4");
    refuse("x[0, 0, 0]", "3 indices for an array of shape [2, 3]", "x[0, 0, 0]");
    refuse("x[..., ...]", "a second `...`", "...");
    refuse("x[m]", "found an array bool[3]", "m");
    refuse("x[[0, 1]]", "expected an integer or a slice", "[0, 1]");
    refuse("x[1.5]", "found 1.5", "1.5");
    refuse("x[0.5:]", "expected integers or nothing around `:`", "0.5:");
    refuse("x[::0]", "the step of axis 0 is 0", "x[::0]");
    refuse("z[0]", "out of range", "0");
    assert!(recorded("x[m]").unwrap_err().help.unwrap().contains("take("));
}

#[test]
fn methods_attributes_and_statements() {
    check("x.T", DType::F32, &[3, 2], &[1.0, -4.0, -2.0, 5.0, 3.0, -6.0]);
    check("x.sum(axis=1).max()", DType::F32, &[], &[2.0]);
    check("x.reshape(3, 2)[0]", DType::F32, &[2], &[1.0, -2.0]);
    check("h = x @ x.T; h[0, 0]", DType::F32, &[], &[14.0]);
    check("i.astype(f32)", DType::F32, &[3], &[1.0, -2.0, 3.0]);
    let both = recorded("a = x; b = (1, 2); a = 3").unwrap();
    assert_eq!(both.named.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(both.last_name.as_deref(), Some("a"));
}

#[test]
fn arrays_without_elements_are_fine() {
    check("z + 1", DType::F32, &[0, 3], &[]);
    check("sum(z)", DType::F32, &[], &[0.0]);
    check("sum(z, axis=0)", DType::F32, &[3], &[0.0; 3]);
    check("z @ x.T", DType::F32, &[0, 2], &[]);
    check("cumsum(z)", DType::F32, &[0], &[]);
    check("x[2:].T @ x[2:]", DType::F32, &[3, 3], &[0.0; 9]);
    refuse("max(z)", "max over zero elements of shape [0, 3]", "max(z)");
}

#[test]
fn names_that_stand_for_nothing() {
    refuse("y + 1", "`y` is not defined; known are i, m, n, u, x, z, other", "y");
    refuse("np.sum(x)", "functions have no prefix", "np");
    refuse("sum + 1", "`sum` is a function", "sum");
    refuse("x(1)", "`x` is a value, not a function", "x");
    refuse("x.shape", "no attribute `shape`", "shape");
    refuse("sofmax(x)", "there is no function `sofmax`", "sofmax");
    assert!(recorded("sofmax(x)").unwrap_err().help.unwrap().contains("did you mean `softmax`?"));
    assert!(recorded("ohter + 1").unwrap_err().help.unwrap().contains("did you mean `other`?"));
    assert!(recorded("isnan(x)").unwrap_err().help.unwrap().contains("x != x"));
}

#[test]
fn the_librarys_mistakes_point_at_their_place() {
    refuse("1 + (x @ x)", "matmul of [2, 3] and [2, 3]", "@");
    refuse("x + ones(2)", "shapes [2, 3] and [2] do not broadcast", "+");
    refuse("sum(x, axis=2)", "axis 2 is out of range for shape [2, 3]", "sum(x, axis=2)");
    refuse("reshape(x, (4, -1))", "can't be reshaped", "reshape(x, (4, -1))");
    refuse("~x", "not is not defined for f32", "~x");
    refuse("i + u", "no common type", "+");
    refuse("u - 2**40", "does not fit in u32", "-");
    refuse("i ** -1", "has no integer result", "**");
    refuse("1 / 0 + x", "division by zero", "/");
    refuse("1 @ 2", "use `*`", "@");
    refuse("None + x", "found None", "+");
    refuse("x * f32", "found the dtype f32", "*");
    refuse("[[1], [1, 2]]  + x", "rows of the list differ", "+");
    refuse("[x, x] + 1", "stack or concat", "+");
}

#[test]
fn absurd_sizes_are_refused_when_recorded() {
    refuse("ones((2**30, 2**30))", "more elements than the 2^40", "ones((2**30, 2**30))");
    refuse("zeros((2**62, 2**62))", "shape must not be negative or above 2^40", "(2**62, 2**62)");
    refuse("zeros((2**40, 2**40))", "more elements", "zeros((2**40, 2**40))");
    refuse("tile(zeros((2**40, 0)), 2**40)", "more than 2^40 elements", "2**40");
    refuse("a = [1, 1]; b = [a, a]; c=[b,b]; d=[c,c]; e=[d,d]; f=[e,e]; g=[f,f]; h=[g,g]; [h]", "nest 9 deep", "[h]");
    refuse("arange(2**40)", "at most 2^31 - 1", "arange(2**40)");
    refuse("arange(2**31 - 2, 2**31 + 5)", "does not fit in i32", "2**31 - 2");
    // Lazy values are free, however large, while what is asked for is small.
    check("ones((2**20, 2**20))[0, :2]", DType::F32, &[2], &[1.0, 1.0]);
}
