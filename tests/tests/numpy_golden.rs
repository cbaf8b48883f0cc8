//! What numpy 2.4 printed, as literals: the semantics that people get wrong.

use breakeven::{DType, Engine, Slice, Tensor, s};

use DType::{Bool, F32, I32, U32};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

type Recorded = Result<Tensor, breakeven::RecordError>;
/// numpy's expression, the recorded one, and the shape, dtype and elements that numpy gives.
type Case = (&'static str, Recorded, &'static [usize], DType, Vec<f64>);

fn f(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.iter().map(|&v| v as f32).collect(), [values.len()]).unwrap()
}

fn i(values: &[i32]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

/// `np.arange(12).reshape(3, 4)`.
fn grid() -> Tensor {
    Tensor::arange(0.0f32, 12.0, 1.0).and_then(|a| a.reshape(&[3, 4])).unwrap()
}

/// Its first `rows` and `columns`.
fn corner(rows: isize, columns: isize) -> Tensor {
    grid().slice(&[s(..rows), s(..columns)]).unwrap()
}

/// `[[1, 5, 2], [nan, 0, 9]]`.
fn holed() -> Tensor {
    f(&[1.0, 5.0, 2.0, NAN, 0.0, 9.0]).reshape(&[2, 3]).unwrap()
}

fn slice(start: Option<isize>, stop: Option<isize>, step: isize) -> Slice {
    Slice { start, stop, step }
}

fn arithmetic() -> Vec<Case> {
    let (a, b) = (
        f(&[7.0, -7.0, 7.0, -7.0, 6.0, -6.0, 0.0, 1.0, -1.0, 5.5]),
        f(&[3.0, 3.0, -3.0, -3.0, 3.0, 3.0, 3.0, 0.1, 0.1, -2.0]),
    );
    let ia = i(&[7, -7, 7, -7, 6, 0, 5, i32::MIN, i32::MIN]);
    let ib = i(&[3, 3, -3, -3, -3, 5, 0, -1, 0]);
    let base = f(&[0.0, NAN, 1.0, -8.0, -2.0, -2.0, 0.0, -0.0, -1.0, 2.0, 0.5, INF, -INF, -INF]);
    let exponent = f(&[0.0, 0.0, NAN, 1.0 / 3.0, 3.0, -1.0, -1.0, -1.0, INF, INF, INF, -1.0, 3.0, 0.5]);
    let unsigned = Tensor::from_slice(&[1u32, 0], [2]).unwrap();
    vec![
        ("a // b", a.floor_div(&b), &[10], F32, vec![2.0, -3.0, -3.0, 2.0, 2.0, -2.0, 0.0, 9.0, -10.0, -3.0]),
        (
            "a % b",
            &a % &b,
            &[10],
            F32,
            vec![1.0, 2.0, -2.0, -1.0, 0.0, 0.0, 0.0, 0.09999998658895493, 1.4901161193847656e-8, -0.5],
        ),
        (
            "ia // ib",
            ia.floor_div(&ib),
            &[9],
            I32,
            vec![2.0, -3.0, -3.0, 2.0, -2.0, 0.0, 0.0, f64::from(i32::MIN), 0.0],
        ),
        ("ia % ib", &ia % &ib, &[9], I32, vec![1.0, 2.0, -2.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (
            "base ** exponent",
            base.pow(&exponent),
            &[14],
            F32,
            vec![1.0, 1.0, 1.0, NAN, -8.0, -0.5, INF, -INF, 1.0, INF, 0.0, 0.0, -INF, INF],
        ),
        (
            "integer **",
            i(&[2, 3, -2, 0, 7, 65536]).pow(i(&[10, 4, 3, 0, 20, 2])),
            &[6],
            I32,
            vec![1024.0, 81.0, -8.0, 1.0, -1199696159.0, 0.0],
        ),
        (
            "np.round",
            f(&[0.5, 1.5, 2.5, -0.5, -1.5, 2.4999998, 8388609.0]).round(),
            &[7],
            F32,
            vec![0.0, 2.0, 2.0, -0.0, -2.0, 2.0, 8388609.0],
        ),
        ("np.trunc", f(&[-1.7, 1.7]).trunc(), &[2], F32, vec![-1.0, 1.0]),
        ("np.sign", f(&[-0.0, NAN, -INF, 3.0]).sign(), &[4], F32, vec![0.0, NAN, -1.0, 1.0]),
        ("np.abs", i(&[i32::MIN, -5]).abs(), &[2], I32, vec![f64::from(i32::MIN), 5.0]),
        ("-u", -&unsigned, &[2], U32, vec![4294967295.0, 0.0]),
        ("~i", !&i(&[5, -1]), &[2], I32, vec![-6.0, 0.0]),
        ("i + 1 wraps", &i(&[i32::MAX]) + 1, &[1], I32, vec![f64::from(i32::MIN)]),
        ("i * i wraps", i(&[65536]).square(), &[1], I32, vec![0.0]),
        ("==", f(&[NAN, 1.0, INF]).eq(f(&[NAN, 1.0, INF])), &[3], Bool, vec![0.0, 1.0, 1.0]),
        ("!=", f(&[NAN, 1.0]).ne(f(&[NAN, 1.0])), &[2], Bool, vec![1.0, 0.0]),
        ("np.maximum", holed().maximum(4.0), &[2, 3], F32, vec![4.0, 5.0, 4.0, NAN, 4.0, 9.0]),
        ("np.clip", holed().clip(1.5, 4.0), &[2, 3], F32, vec![1.5, 4.0, 2.0, NAN, 1.5, 4.0]),
    ]
}

fn reductions() -> Vec<Case> {
    let x = f(&[1.0, NAN, 3.0, NAN]);
    let none = Tensor::zeros([0], F32).unwrap();
    vec![
        ("argmax with NaN", x.argmax(None, false), &[], I32, vec![1.0]),
        ("argmin with NaN", x.argmin(None, false), &[], I32, vec![1.0]),
        ("argmax of a tie", f(&[1.0, 3.0, 3.0]).argmax(None, false), &[], I32, vec![1.0]),
        ("argmax(1)", holed().argmax(Some(1), false), &[2], I32, vec![1.0, 0.0]),
        ("argmin(0)", holed().argmin(Some(0), false), &[3], I32, vec![1.0, 1.0, 0.0]),
        ("max with NaN", x.max(&[], false), &[], F32, vec![NAN]),
        ("max(1)", holed().max(&[1], false), &[2], F32, vec![5.0, NAN]),
        ("var(0)", grid().var(&[0], 0, false), &[4], F32, vec![10.666666984558105; 4]),
        ("var(1, ddof=1)", grid().var(&[1], 1, false), &[3], F32, vec![1.6666666269302368; 3]),
        ("std(ddof=1)", grid().std(&[], 1, false), &[], F32, vec![3.605551242828369]),
        ("var(0, ddof=3)", grid().var(&[0], 3, false), &[4], F32, vec![INF; 4]),
        ("var of ones, ddof=2", Tensor::ones([2, 2], F32).and_then(|o| o.var(&[0], 2, false)), &[2], F32, vec![NAN; 2]),
        ("sum of none", Tensor::zeros([0, 3], F32).and_then(|o| o.sum(&[0], false)), &[3], F32, vec![0.0; 3]),
        ("mean of none", none.mean(&[], false), &[], F32, vec![NAN]),
        ("prod of none", none.prod(&[], false), &[], F32, vec![1.0]),
        ("all of none", none.all(&[], false), &[], Bool, vec![1.0]),
        ("any with NaN", f(&[0.0, NAN]).any(&[], false), &[], Bool, vec![1.0]),
        (
            "sum of bools",
            Tensor::from_slice(&[true, true, false], [3]).and_then(|b| b.sum(&[], false)),
            &[],
            I32,
            vec![2.0],
        ),
        ("norm", f(&[3.0, 4.0]).norm(&[], false), &[], F32, vec![5.0]),
        ("maximum.accumulate", f(&[1.0, 3.0, 2.0, NAN, 5.0]).cummax(0), &[5], F32, vec![1.0, 3.0, 3.0, NAN, NAN]),
        (
            "cumsum(1)",
            i(&[1, 2, 3, 4]).reshape(&[2, 2]).and_then(|m| m.cumsum(1)),
            &[2, 2],
            I32,
            vec![1.0, 3.0, 3.0, 7.0],
        ),
    ]
}

fn movement() -> Vec<Case> {
    let indices = i(&[2, -1, 0, 1]).reshape(&[2, 2]).unwrap();
    let batch = Tensor::arange(0.0f32, 24.0, 1.0).and_then(|a| a.reshape(&[2, 4, 3])).unwrap();
    let pair = [f(&[1.0, 2.0]), f(&[3.0, 4.0])];
    vec![
        (
            "g[::-1, ::-2]",
            grid().slice(&[s(..).step(-1), s(..).step(-2)]),
            &[3, 2],
            F32,
            vec![11.0, 9.0, 7.0, 5.0, 3.0, 1.0],
        ),
        (
            "g[2:0:-1, 1:-1]",
            grid().slice(&[slice(Some(2), Some(0), -1), slice(Some(1), Some(-1), 1)]),
            &[2, 2],
            F32,
            vec![9.0, 10.0, 5.0, 6.0],
        ),
        (
            "g[-2:, :-5:-3]",
            grid().slice(&[s(-2..), slice(None, Some(-5), -3)]),
            &[2, 2],
            F32,
            vec![7.0, 4.0, 11.0, 8.0],
        ),
        ("rot90", corner(2, 3).rot90(1), &[3, 2], F32, vec![2.0, 6.0, 1.0, 5.0, 0.0, 4.0]),
        ("rot90, 2", corner(2, 3).rot90(2), &[2, 3], F32, vec![6.0, 5.0, 4.0, 2.0, 1.0, 0.0]),
        ("rot90, 3", corner(2, 3).rot90(3), &[3, 2], F32, vec![4.0, 0.0, 5.0, 1.0, 6.0, 2.0]),
        ("rot90, -1", corner(2, 3).rot90(-1), &[3, 2], F32, vec![4.0, 0.0, 5.0, 1.0, 6.0, 2.0]),
        ("tile (2, 2)", pair[0].tile(&[2, 2]), &[2, 4], F32, vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]),
        ("tile 2", corner(2, 2).tile(&[2]), &[2, 4], F32, vec![0.0, 1.0, 0.0, 1.0, 4.0, 5.0, 4.0, 5.0]),
        (
            "tile (2, 1, 2)",
            pair[0].reshape(&[2, 1]).and_then(|t| t.tile(&[2, 1, 2])),
            &[2, 2, 2],
            F32,
            vec![1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0],
        ),
        ("pad", corner(1, 2).pad(&[(1, 0), (0, 1)], 9.0), &[2, 3], F32, vec![9.0, 9.0, 9.0, 0.0, 1.0, 9.0]),
        ("take", grid().take(&indices, 1).and_then(|t| t.select(0, 0)), &[2, 2], F32, vec![2.0, 3.0, 0.0, 1.0]),
        (
            "sliding_window_view",
            f(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).windows(&[0], &[3], &[2]),
            &[2, 3],
            F32,
            vec![0.0, 1.0, 2.0, 2.0, 3.0, 4.0],
        ),
        (
            "vector @ batch",
            f(&[0.0, 1.0, 2.0, 3.0]).matmul(&batch),
            &[2, 3],
            F32,
            vec![42.0, 48.0, 54.0, 114.0, 120.0, 126.0],
        ),
        ("stack(-1)", Tensor::stack(&[&pair[0], &pair[1]], -1), &[2, 2], F32, vec![1.0, 3.0, 2.0, 4.0]),
        ("arange(5, -1, -2)", Tensor::arange(5, -1, -2), &[3], I32, vec![5.0, 3.0, 1.0]),
        ("arange(0, 1, .25)", Tensor::arange(0.0f32, 1.0, 0.25), &[4], F32, vec![0.0, 0.25, 0.5, 0.75]),
    ]
}

#[test]
fn as_numpy_has_it() {
    let engine = Engine::new().unwrap();
    for (what, recorded, shape, dtype, expected) in arithmetic().into_iter().chain(reductions()).chain(movement()) {
        let tensor = recorded.unwrap_or_else(|why| panic!("{what}: {why}"));
        for array in [&engine.run(&[&tensor]).unwrap()[0], &engine.run_unfused(&[&tensor]).unwrap()[0]] {
            assert_eq!((array.shape().dims(), array.dtype()), (shape, dtype), "{what}");
            let got = array.to_f64();
            let same = got
                .iter()
                .zip(&expected)
                .all(|(g, e)| g == e && g.is_sign_negative() == e.is_sign_negative() || g.is_nan() && e.is_nan());
            assert!(same && got.len() == expected.len(), "{what}: {got:?}, numpy gives {expected:?}");
        }
    }
}
