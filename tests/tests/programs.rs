//! Programs: compiled once, run again, into memory that exists, by name, and as many tasks of different sizes; and
//! the same bits from any number of threads.

use breakeven::{Config, DType, Engine, Error, Program, ReduceOp, Tensor, View, ViewMut, s};
use breakeven_tests::compare::identical;
use breakeven_tests::data::random;
use breakeven_tests::device::engine;
use breakeven_tests::pair::Pair;
use breakeven_tests::views::smooth;

type Recorded = Result<Vec<Tensor>, breakeven::RecordError>;

type Record = fn(&Tensor, &Tensor) -> Recorded;

/// Programs of a matrix `x` and a vector `v` as long as its rows, none of which fixes a size.
const PROGRAMS: &[(&str, Record)] = &[
    ("elementwise", |x, v| Ok(vec![((x * v)? + 1.0)?.tanh()?, x.gt(0.5)?])),
    ("sums", |x, v| Ok(vec![x.sum(&[], false)?, x.sum(&[0], false)?, (x + v)?.max(&[-1], true)?])),
    ("statistics", |x, _| Ok(vec![x.mean(&[1], false)?, x.var(&[0], 1, true)?, x.norm(&[], false)?])),
    ("rows", |x, v| Ok(vec![(x.softmax(-1)? * v)?, x.layer_norm(1, 1e-5)?, x.log_softmax(0)?])),
    ("index", |x, v| Ok(vec![x.argmax(Some(0), false)?, v.argmin(None, false)?, x.argmax(None, true)?])),
    ("scans", |x, v| Ok(vec![x.cumsum(0)?, v.cumprod(0)?, x.flip(&[])?.cumsum(-1)?])),
    ("product", |x, v| Ok(vec![x.matmul(v)?, x.matmul(&x.transpose()?)?.relu()?, v.dot(v)?])),
    ("movement", |x, v| {
        let halves = x.slice(&[s(..).step(2), s(1..)])?;
        Ok(vec![
            halves,
            x.transpose()?.reshape(&[-1])?,
            Tensor::concat(&[x, &v.expand_dims(&[0])?], 0)?,
            v.pad(&[(1, 2)], 9.0)?,
        ])
    }),
    ("given back", |x, v| Ok(vec![x.clone(), v.clone(), x.clone(), (x * 1.0)?])),
    ("bools", |x, v| Ok(vec![x.gt(v)?.any(&[1], false)?, x.cast(DType::I32)?.reduce(ReduceOp::Sum, &[0], false)?])),
    ("a number", |x, v| Ok(vec![(v.sum(&[], false)? + x.min(&[], false)?)?, Tensor::full([2], 3.0f32)?])),
];

const SIZES: &[[usize; 2]] = &[[3, 4], [1, 1], [5, 9], [3, 4], [17, 3], [2, 130], [40, 33], [1, 8], [3, 4], [64, 1]];

fn data(size: [usize; 2], seed: u64) -> (Tensor, Tensor) {
    let leaf = |shape: &[usize], seed| Pair::leaf(random(DType::F32, shape, seed)).tensor;
    (leaf(&size, seed), leaf(&size[1..], seed + 1))
}

fn view(tensor: &Tensor) -> View<'_> {
    View::of(tensor).unwrap()
}

#[test]
fn a_program_computes_what_a_batch_does() {
    let engine = engine();
    for (name, record) in PROGRAMS {
        let (x, v) = (Tensor::input("x", DType::F32, [5, 9]).unwrap(), Tensor::input("v", DType::F32, [9]).unwrap());
        let outputs = record(&x, &v).unwrap();
        let program = engine.compile(&[&x, &v], &outputs.iter().collect::<Vec<_>>()).unwrap();
        for seed in 0..3 {
            let (a, b) = data([5, 9], seed);
            let recorded = record(&a, &b).unwrap();
            let expected = engine.run(&recorded.iter().collect::<Vec<_>>()).unwrap();
            let ran = program.run(&[view(&a), view(&b)]).unwrap();
            let named = program.run_named(&[("v", view(&b)), ("x", view(&a))]).unwrap();
            for ((ran, named), expected) in ran.iter().zip(&named).zip(&expected) {
                assert_eq!((ran.shape(), ran.dtype()), (expected.shape(), expected.dtype()), "{name}");
                identical(&ran.to_f64(), &expected.to_f64()).unwrap_or_else(|why| panic!("{name}: {why}"));
                identical(&named.to_f64(), &expected.to_f64()).unwrap_or_else(|why| panic!("{name}, named: {why}"));
            }
        }
    }
}

#[test]
fn results_go_into_memory_that_exists() {
    let engine = engine();
    for (name, record) in PROGRAMS {
        let (x, v) = (Tensor::input("x", DType::F32, [5, 9]).unwrap(), Tensor::input("v", DType::F32, [9]).unwrap());
        let outputs = record(&x, &v).unwrap();
        let program = engine.compile(&[&x, &v], &outputs.iter().collect::<Vec<_>>()).unwrap();
        let (a, b) = data([5, 9], 8);
        let expected = program.run(&[view(&a), view(&b)]).unwrap();
        // Places that hold something else already, one element for each of the output's.
        let mut floats: Vec<Vec<f32>> = outputs.iter().map(|o| vec![f32::NAN; o.shape().elems()]).collect();
        let mut ints: Vec<Vec<i32>> = outputs.iter().map(|o| vec![-7; o.shape().elems()]).collect();
        let mut bools: Vec<Vec<u8>> = outputs.iter().map(|o| vec![7; o.shape().elems()]).collect();
        let places = floats.iter_mut().zip(&mut ints).zip(&mut bools).zip(&outputs);
        let mut views: Vec<ViewMut<'_>> = places
            .map(|(((f, i), b), o)| match o.dtype() {
                DType::F32 => f.as_mut_slice().into(),
                DType::I32 => i.as_mut_slice().into(),
                _ => b.as_mut_slice().into(),
            })
            .collect();
        program.run_into(&[view(&a), view(&b)], &mut views).unwrap_or_else(|why| panic!("{name}: {why}"));
        drop(views);
        for (at, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
            let got: Vec<f64> = match output.dtype() {
                DType::F32 => floats[at].iter().map(|&v| v.into()).collect(),
                DType::I32 => ints[at].iter().map(|&v| v.into()).collect(),
                _ => bools[at].iter().map(|&v| v.into()).collect(),
            };
            identical(&got, &expected.to_f64()).unwrap_or_else(|why| panic!("{name}, output {at}: {why}"));
        }
    }
}

#[test]
fn many_tasks_of_different_sizes_equal_single_runs() {
    let engine = engine();
    for (name, record) in PROGRAMS {
        let (x, v) = (Tensor::input("x", DType::F32, [3, 4]).unwrap(), Tensor::input("v", DType::F32, [4]).unwrap());
        let outputs = record(&x, &v).unwrap();
        let program = engine.compile(&[&x, &v], &outputs.iter().collect::<Vec<_>>()).unwrap();
        for rounds in [0, 1, 2, 20] {
            let sizes: Vec<[usize; 2]> = SIZES.iter().copied().cycle().take(rounds * 5).collect();
            let values: Vec<(Tensor, Tensor)> =
                sizes.iter().enumerate().map(|(i, &size)| data(size, i as u64)).collect();
            let tasks: Vec<[View<'_>; 2]> = values.iter().map(|(a, b)| [view(a), view(b)]).collect();
            let many = program.run_many(&tasks).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(many.len(), tasks.len());
            for (task, (a, b)) in values.iter().enumerate() {
                let recorded = record(a, b).unwrap();
                let single = engine.run(&recorded.iter().collect::<Vec<_>>()).unwrap();
                for (output, expected) in single.iter().enumerate() {
                    let got = many.array(task, output).unwrap();
                    let what = format!("{name}, task {task} of {:?}, output {output}", sizes[task]);
                    assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()), "{what}");
                    identical(&got.to_f64(), &expected.to_f64()).unwrap_or_else(|why| panic!("{what}: {why}"));
                }
            }
        }
    }
}

/// Tasks that lie side by side in memory may run as one: with some that do, some that do not, and one that is read twice.
#[test]
fn tasks_side_by_side_in_memory_are_tasks_of_their_own() {
    type Binary = fn(&Tensor, &Tensor) -> Result<Tensor, breakeven::RecordError>;
    let records: &[Binary] =
        &[|x, y| x + y, |x, _| x.relu(), |x, y| ((x * 0.5)? + y)? * x, |x, y| Tensor::where_(&x.gt(0.0)?, x, y)];
    let engine = engine();
    for lanes in [1usize, 2, 15, 16, 256, 257] {
        let values = |seed: u32| (0..12 * lanes as u32).map(|i| ((i * 37 + seed) % 101) as f32 / 50.0 - 1.0).collect();
        let (a, b): (Vec<f32>, Vec<f32>) = (values(3), values(40));
        // Both side by side; the second backwards; the first again and again; a gap.
        let orders: [fn(usize) -> (usize, usize); 4] = [|t| (t, t), |t| (t, 11 - t), |_| (5, 5), |t| (t + t / 6, t)];
        for (number, record) in records.iter().enumerate() {
            let x = Tensor::input("x", DType::F32, [lanes]).unwrap();
            let y = Tensor::input("y", DType::F32, [lanes]).unwrap();
            let program = engine.compile(&[&x, &y], &[&record(&x, &y).unwrap()]).unwrap();
            for order in orders {
                let tasks: Vec<[View<'_>; 2]> = (0..11)
                    .map(order)
                    .map(|(i, j)| [&a[i * lanes..][..lanes], &b[j * lanes..][..lanes]].map(View::from))
                    .collect();
                let many = program.run_many(&tasks).unwrap();
                for (at, task) in tasks.iter().enumerate() {
                    let alone = &program.run(task).unwrap()[0];
                    let (found, expected) = (many.slice::<f32>(at, 0).unwrap(), alone.as_slice::<f32>().unwrap());
                    assert_eq!(found, expected, "record {number}, {lanes} lanes, task {at}");
                }
            }
        }
    }
}

#[test]
fn results_of_many_tasks_take_the_place_of_earlier_ones() {
    let program = compiled(&engine(), &[2], |x| x + 1.0);
    let task = |values: &'static [f32]| [View::from(values)];
    let mut results = program.run_many(&[task(&[1.0, 2.0]), task(&[3.0, 4.0])]).unwrap();
    // A refused task leaves what is there.
    assert!(program.run_many_into(&[[View::from(&[1i32, 2][..])]], &mut results).is_err());
    let kept = results.array(1, 0).unwrap();
    assert_eq!(kept.as_slice::<f32>().unwrap(), [4.0, 5.0]);
    // Of another size and number, while the old ones are read.
    program.run_many_into(&[task(&[5.0]), task(&[6.0, 7.0, 8.0]), task(&[9.0])], &mut results).unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(results.slice::<f32>(1, 0).unwrap(), [7.0, 8.0, 9.0]);
    assert_eq!(kept.as_slice::<f32>().unwrap(), [4.0, 5.0]);
    let place = results.slice::<f32>(0, 0).unwrap().as_ptr();
    program.run_many_into(&[task(&[-1.0]), task(&[-2.0, -3.0, -4.0]), task(&[-5.0])], &mut results).unwrap();
    assert_eq!(results.slice::<f32>(2, 0).unwrap(), [-4.0]);
    assert_eq!(results.slice::<f32>(0, 0).unwrap().as_ptr(), place, "the memory is used again");
    program.run_many_into::<[View<'_>; 1]>(&[], &mut results).unwrap();
    assert!(results.is_empty());
}

/// One input of f32, one output.
fn compiled(engine: &Engine, dims: &[usize], record: fn(&Tensor) -> Result<Tensor, breakeven::RecordError>) -> Program {
    let x = Tensor::input("x", DType::F32, dims).unwrap();
    engine.compile(&[&x], &[&record(&x).unwrap()]).unwrap()
}

const HOT: [f32; 2] = [1000.0, 1000.0];
const NONE: [f32; 0] = [];

/// Softmax has nothing to shift by in an empty row; that must not stick to a program that was recorded for one.
#[test]
fn a_program_recorded_for_no_elements_takes_some() {
    let softmax = compiled(&engine(), &[0], |x| x.softmax(0));
    let many = softmax.run_many(&[[View::from(&HOT[..])], [View::from(&NONE[..])]]).unwrap();
    assert_eq!(many.slice::<f32>(0, 0).unwrap(), [0.5, 0.5]);
    assert_eq!(many.slice::<f32>(1, 0).unwrap(), NONE);
}

#[test]
fn a_program_recorded_for_some_elements_takes_none() {
    let engine = engine();
    for record in
        [(|x| x.softmax(0)) as fn(&Tensor) -> _, |x| x.log_softmax(0), |x| x.layer_norm(0, 0.1), |x| x.cumsum(0)]
    {
        let many = compiled(&engine, &[3], record).run_many(&[[View::from(&NONE[..])]]).unwrap();
        assert_eq!(many.slice::<f32>(0, 0).unwrap(), NONE);
    }
}

#[test]
fn a_program_of_a_number_stays_one() {
    let engine = engine();
    let number = || View::from(&HOT[..1]).shaped([]).unwrap();
    for record in [(|x| x.argmax(None, false)) as fn(&Tensor) -> _, |x| x.argmin(None, true)] {
        let program = compiled(&engine, &[], record);
        assert_eq!(program.run(&[number()]).unwrap()[0].as_slice::<i32>().unwrap(), [0]);
        assert_eq!(program.run_many(&[[number()]]).unwrap().slice::<i32>(0, 0).unwrap(), [0]);
    }
}

#[test]
fn wrong_values_are_typed_errors() {
    let engine = engine();
    let (x, v) = (Tensor::input("x", DType::F32, [2, 3]).unwrap(), Tensor::input("v", DType::F32, [3]).unwrap());
    let sum = (&x + &v).unwrap();
    let program = engine.compile(&[&x, &v], &[&sum]).unwrap();
    let (six, three, ints) = ([0.0f32; 6], [0.0f32; 3], [0i32; 6]);
    let (six, three, ints) = (View::from(&six[..]), View::from(&three[..]), View::from(&ints[..]));
    let mut small = [0.0f32; 5];
    let mut wrong = [0i32; 6];
    let again = Tensor::input("x", DType::F32, [3]).unwrap();
    let stranger = Tensor::input("other", DType::F32, [3]).unwrap();
    let taken = smooth(DType::F32, &[2], 1).tensor;
    type Case = (&'static str, Result<(), Error>, fn(&Error) -> bool, &'static [&'static str]);
    let cases: Vec<Case> = vec![
        ("too few values", program.run(&[six]).map(|_| ()), |e| matches!(e, Error::Count { .. }), &["1", "2"]),
        (
            "dtype",
            program.run(&[ints, three]).map(|_| ()),
            |e| matches!(e, Error::InputDType { .. }),
            &["`x`", "f32", "i32"],
        ),
        (
            "shape",
            program.run(&[three, three]).map(|_| ()),
            |e| matches!(e, Error::InputShape { .. }),
            &["`x`", "[2, 3]", "3"],
        ),
        (
            "place",
            program.run_into(&[six, three], &mut [small.as_mut_slice().into()]),
            |e| matches!(e, Error::OutputSize { .. }),
            &["[2, 3]", "5"],
        ),
        (
            "place's dtype",
            program.run_into(&[six, three], &mut [wrong.as_mut_slice().into()]),
            |e| matches!(e, Error::OutputDType { .. }),
            &["f32", "i32"],
        ),
        (
            "name",
            program.run_named(&[("x", six), ("w", three)]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::UnboundInput { .. })),
            &["`v`"],
        ),
        (
            "unbound",
            engine.run(&[&sum]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::UnboundInput { .. })),
            &["`x`"],
        ),
        (
            "not given",
            engine.compile(&[&x], &[&sum]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::UnboundInput { .. })),
            &["`v`"],
        ),
        (
            "stranger",
            engine.compile(&[&x, &v], &[&(&sum + &stranger).unwrap()]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::UnboundInput { .. })),
            &["`other`"],
        ),
        (
            "same name",
            engine.compile(&[&x, &again], &[&x]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::RepeatedInput { .. })),
            &["`x`"],
        ),
        (
            "no input",
            engine.compile(&[&sum], &[&sum]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::NotAnInput { .. })),
            &["0"],
        ),
        (
            "task that does not broadcast",
            program.run_many(&[[six, View::from(&[0.0f32; 2][..])]]).map(|_| ()),
            |e| matches!(e, Error::Record(breakeven::RecordError::Broadcast { .. })),
            &["[2, 3]", "[2]"],
        ),
        (
            "read as another dtype",
            engine.run(&[&taken]).and_then(|a| a[0].as_slice::<i32>().map(|_| ())),
            |e| matches!(e, Error::Record(breakeven::RecordError::WrongDType { .. })),
            &["i32", "f32"],
        ),
        (
            "no threads",
            Engine::with_config(Config { threads: Some(0), ..Config::default() }).map(|_| ()),
            |e| matches!(e, Error::Setting { .. }),
            &["threads", "0"],
        ),
    ];
    for (what, result, check, mentions) in cases {
        let error = result.expect_err(what);
        assert!(check(&error), "{what}: {error:?}");
        let message = error.to_string();
        mentions.iter().for_each(|part| assert!(message.contains(part), "{what}: `{message}` does not mention {part}"));
    }
}

/// Inputs that nothing uses, that are empty, or that every use was folded away from, are still inputs.
#[test]
fn unused_inputs_are_inputs() {
    let engine = engine();
    let input = |name: &str, dims: &[usize]| Tensor::input(name, DType::F32, dims).unwrap();
    let (x, v, unused) = (input("x", &[2, 3]), input("v", &[0]), input("unused", &[7]));
    let (six, none, seven) = ([1.0f32; 6], [0.0f32; 0], [0.0f32; 7]);
    let values = [View::from(&six[..]), View::from(&none[..]), View::from(&seven[..])];
    let outputs = [v.sum(&[], false).unwrap(), (&x + 1.0).unwrap(), v.exp().unwrap(), x.slice(&[s(..0)]).unwrap()];
    for (at, output) in outputs.iter().enumerate() {
        let program = engine.compile(&[&x, &v, &unused], &[output]).unwrap();
        let ran = program.run(&values).unwrap_or_else(|why| panic!("output {at}: {why}"));
        assert_eq!(ran[0].shape(), output.shape());
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let engines = [1, 2, 3, 8].map(|n| Engine::with_config(Config { threads: Some(n), ..Config::default() }).unwrap());
    let wide = smooth(DType::F32, &[(1 << 20) + 1], 1).tensor;
    let (tall, rows) = (smooth(DType::F32, &[300_001, 3], 2).tensor, smooth(DType::F32, &[300, 1025], 3).tensor);
    let batch = || -> Recorded {
        let weights = rows.transpose()?;
        Ok(vec![
            ((wide.sigmoid()? * &wide)? + 1.0)?,
            wide.sum(&[], false)?,
            wide.exp()?.mean(&[], false)?,
            wide.argmax(None, false)?,
            wide.cumsum(0)?,
            wide.var(&[], 1, false)?,
            tall.sum(&[0], false)?,
            tall.sum(&[1], false)?,
            tall.max(&[], false)?,
            tall.cumsum(0)?,
            rows.softmax(0)?,
            rows.softmax(1)?,
            rows.layer_norm(-1, 1e-5)?,
            rows.prod(&[0], false)?,
            rows.sum(&[0], false)?,
            rows.matmul(&weights)?,
            rows.matmul(&weights)?.relu()?.sum(&[], false)?,
            rows.norm(&[], false)?,
        ])
    };
    let outputs = batch().unwrap();
    for (at, output) in outputs.iter().enumerate() {
        // Twice: the second run may choose threads by what the first one measured.
        let runs: Vec<_> =
            engines.iter().flat_map(|e| [e.run(&[output]).unwrap(), e.run(&[output]).unwrap()]).collect();
        for (number, run) in runs.iter().enumerate().skip(1) {
            assert!(run[0].as_bytes() == runs[0][0].as_bytes(), "output {at} ({output:?}) differs in run {number}");
        }
    }
    let all: Vec<&Tensor> = outputs.iter().collect();
    let runs = engines.map(|e| e.run(&all).unwrap());
    for run in &runs[1..] {
        for (at, (a, b)) in runs[0].iter().zip(run).enumerate() {
            assert!(a.as_bytes() == b.as_bytes(), "output {at} ({:?}) differs in one batch", outputs[at]);
        }
    }
}
