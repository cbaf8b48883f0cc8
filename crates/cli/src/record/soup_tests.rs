//! Random words through the whole of recording: no panic, no hang, and no memory but the syntax tree's.

use breakeven::{DType, Tensor};
use proptest::prelude::*;

use super::*;
use crate::expr;
use crate::functions::Callable;

fn inputs() -> Inputs {
    let tensor = |tensor: breakeven::Result<Tensor, breakeven::RecordError>| Value::Tensor(tensor.unwrap());
    let values = [
        ("x", tensor(Tensor::from_slice(&[1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0], [2, 3]))),
        ("i", tensor(Tensor::from_slice(&[1i32, -2, 3], [3]))),
        ("u", tensor(Tensor::from_slice(&[1u32, 2, 3], [3]))),
        ("m", tensor(Tensor::from_slice(&[true, false], [2, 1]))),
        ("z", tensor(Tensor::zeros([0, 3], DType::F32))),
        ("t", tensor(Tensor::zeros([1, 2, 3, 3], DType::F32))),
        ("n", Value::Number(Number::Int(2))),
    ];
    Inputs { values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), unread: Vec::new() }
}

/// Everything that `eval` does before it computes.
fn evaluate(source: &str) {
    let Ok(ast) = expr::parse(source) else { return };
    let Ok(recorded) = record(&ast, &inputs()) else { return };
    let Ok(tensor) = recorded.last.tensor() else { return };
    let _ = format!("{tensor:?}");
    if std::env::var_os("TMP_PLAN").is_some() {
        let p = breakeven::Plan::new(&[&tensor]).unwrap();
        let _ = p.stats();
        let points: u128 = p.kernels.iter().map(|k| k.end().points() as u128).sum();
        if points < 100000 && p.scratch_bytes < 1000000 {
            let _ = breakeven::Engine::with_config(breakeven::Config { threads: Some(1), ..Default::default() })
                .unwrap()
                .run(&[&tensor]);
        }
    }
}

const WORDS: &[&str] = &[
    "x",
    "i",
    "u",
    "m",
    "z",
    "t",
    "n",
    "a",
    "pi",
    "nan",
    "inf",
    "None",
    "True",
    "f32",
    "i32",
    "bool",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "2.5",
    "1e30",
    "9223372036854775807",
    "4294967296",
    "2**40",
    "2**62",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "~",
    "<",
    "==",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "...",
    ".T",
    "=",
    ";",
    "axis=",
    "keepdims=True",
    "stride=",
    "dtype=",
    "[0]",
    "[::-1]",
    "[None, ..., 0]",
    "[1:]",
    "(0, 1)",
    "(2, -1)",
    "((1, 2), (0, 3))",
    "(x, x)",
];

/// Words that fit together more often than not: calls with arguments, operators between them.
fn operand() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS).prop_map(str::to_owned);
    word.prop_recursive(4, 24, 4, |inner| {
        let names: Vec<&'static str> = Callable::all().map(Callable::name).collect();
        prop_oneof![
            3 => (prop::sample::select(names), prop::collection::vec(inner.clone(), 0..4))
                .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
            2 => (inner.clone(), prop::sample::select(&WORDS[26..40]), inner.clone())
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            1 => (inner.clone(), prop::sample::select(&WORDS[55..60])).prop_map(|(x, index)| format!("{x}{index}")),
            1 => prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn word_soup_is_recorded_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        evaluate(&words.join(" "));
    }

    #[test]
    fn shaped_soup_is_recorded_or_refused(statements in prop::collection::vec(operand(), 1..4)) {
        evaluate(&statements.join("; a = "));
        statements.iter().for_each(|statement| evaluate(statement));
    }
}

#[test]
fn long_sources_take_linear_time() {
    let started = std::time::Instant::now();
    evaluate(&vec!["x"; 60_000].join("+"));
    evaluate(&(0..20_000).map(|k| format!("v{k}=x")).collect::<Vec<_>>().join(";"));
    evaluate(&format!("a=x;{}", "a=(a,);".repeat(20_000)));
    evaluate(&format!("[{}]", "1,".repeat(100_000)));
    evaluate(&format!("concat(({}))", "x,".repeat(50_000)));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
