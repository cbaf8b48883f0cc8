//! Random words through the whole of `eval`: results or errors, no panic, no hang, no memory that was not asked for.

use breakeven::{Config, DType, Engine, RunError, Tensor};
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

/// Everything that `eval` does, but for batches too large for a test: those end where their plan is made.
fn evaluate(engine: &Engine, source: &str) {
    let Ok(ast) = expr::parse(source) else { return };
    let Ok(recorded) = record(&ast, &inputs()) else { return };
    let Ok(tensor) = recorded.last.tensor() else { return };
    let program = engine.compile(&[], &[&tensor]).unwrap();
    let plan = program.plan();
    let stats = plan.stats();
    let points: u128 = plan.kernels.iter().map(|kernel| kernel.end().points() as u128).sum();
    if points < 10_000 && stats.flops < 1_000_000 && stats.bytes_written < 1_000_000 {
        // An index of `take` may be out of range, which is found here; nothing else may go wrong.
        if let Err(error) = program.run(&[]) {
            assert!(matches!(error, breakeven::Error::Run(RunError::TakeIndex { .. })), "{source}: {error}");
        }
    }
}

fn engine() -> Engine {
    Engine::with_config(Config { threads: Some(1), ..Config::default() }).unwrap()
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn word_soup_is_recorded_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        evaluate(&engine(), &words.join(" "));
    }

    #[test]
    fn shaped_soup_is_recorded_or_refused(statements in prop::collection::vec(operand(), 1..4)) {
        let engine = engine();
        evaluate(&engine, &statements.join("; a = "));
        statements.iter().for_each(|statement| evaluate(&engine, statement));
    }
}

#[test]
fn long_sources_are_recorded_in_linear_time() {
    let long = |source: &str| {
        let ast = expr::parse(source).unwrap();
        let _ = record(&ast, &inputs());
    };
    let started = std::time::Instant::now();
    long(&vec!["x"; 60_000].join("+"));
    long(&(0..20_000).map(|k| format!("v{k}=x")).collect::<Vec<_>>().join(";"));
    long(&format!("a=x;{}", "a=(a,);".repeat(20_000)));
    long(&format!("[{}]", "1,".repeat(100_000)));
    long(&format!("concat(({}))", "x,".repeat(50_000)));
    // Unoptimised it takes less than a second; a quadratic step would take minutes.
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
