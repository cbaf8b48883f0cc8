//! Movement: every view, join and creation on its own and one upon another, in every dtype, against plain index loops.

use breakeven::{DType, Slice, s};
use breakeven_tests::compare::Zeros;
use breakeven_tests::data::Rng;
use breakeven_tests::device::engine;
use breakeven_tests::pair::Pair;
use breakeven_tests::reference::RefArray;
use breakeven_tests::run::check;
use breakeven_tests::views::{SHAPES, edgy, smooth};

/// One movement of a kind, with arguments drawn for the shape of `x`; `None` where the shape allows none.
fn moved(x: &Pair, kind: usize, rng: &mut Rng) -> Option<Pair> {
    let rank = x.expected.rank();
    let shape = x.expected.shape.clone();
    let axis = rng.below(rank) as isize;
    let one = |rng: &mut Rng, n: usize| -> Slice {
        let mut bound = || (rng.below(3) > 0).then(|| rng.below(2 * n + 3) as isize - n as isize - 1);
        let (start, stop) = (bound(), bound());
        Slice { start, stop, step: [1, 1, 2, 3, -1, -2, 7, -5][rng.below(8)] }
    };
    match kind {
        0 => x.reshape(&[-1]),
        1 => x.reshape(&shape.iter().rev().map(|&d| d as isize).collect::<Vec<_>>()),
        2 => x.transpose(),
        3 => {
            let mut order: Vec<isize> = (0..rank as isize).collect();
            (0..rank).for_each(|i| order.swap(i, rng.below(rank)));
            x.permute(&order)
        }
        4 => x.flip(&[axis]),
        5 => x.flip(&[]),
        6 => {
            let slices: Vec<Slice> = shape.iter().map(|&n| one(rng, n)).collect();
            x.slice(&slices[..rng.below(rank + 1)])
        }
        7 => x.expand_dims(&[rng.below(rank + 1) as isize]),
        8 => x.squeeze(&[]),
        9 => {
            let wider: Vec<usize> = shape.iter().map(|&n| if n == 1 { 3 } else { n }).collect();
            x.broadcast_to(&[vec![2], wider].concat())
        }
        10 => x.pad(&shape.iter().map(|_| (rng.below(3), rng.below(3))).collect::<Vec<_>>(), 2.5),
        11 => {
            let n = *shape.get(axis as usize)?;
            x.windows(&[axis], &[1 + rng.below(n.max(1))], &[1 + rng.below(3)])
        }
        12 if rank >= 2 => {
            x.windows(&[1, 0], &[1 + rng.below(shape[1].max(1)), 1 + rng.below(shape[0].max(1))], &[2, 1])
        }
        13 => x.rot90(rng.below(9) as i32 - 4),
        14 => x.tile(&(0..1 + rng.below(rank + 2)).map(|_| rng.below(3)).collect::<Vec<_>>()),
        15 => x.select(axis, -1),
        16 => Pair::concat(&[x, &x.flip(&[]).unwrap_or_else(|| x.clone()), x], axis),
        17 => Pair::stack(&[x, x], -1 - rng.below(rank + 1) as isize),
        18 => {
            let n = *shape.get(axis as usize)?;
            let indices = (0..6).map(|_| rng.below(2 * n) as f64 - n as f64).collect();
            let dtype = DType::I32;
            if n == 0 { None } else { x.take(&Pair::leaf(RefArray::exact(dtype, &[2, 3], indices)), axis) }
        }
        19 => {
            let n = *shape.get(axis as usize)?;
            let indices = (0..4).map(|_| rng.below(n) as f64).collect();
            if n == 0 { None } else { x.take(&Pair::leaf(RefArray::exact(DType::U32, &[4], indices)), axis) }
        }
        20 => x.swap_axes(axis, -1),
        _ => None,
    }
}
const KINDS: usize = 21;

#[test]
fn every_movement_of_every_shape() {
    let engine = engine();
    let mut rng = Rng::new(5);
    let mut met = [0; KINDS];
    for (seed, shape) in SHAPES.iter().enumerate() {
        for dtype in DType::ALL {
            let x = edgy(dtype, shape, seed as u64);
            for (kind, met) in met.iter_mut().enumerate() {
                let Some(y) = moved(&x, kind, &mut rng) else { continue };
                *met += 1;
                check(&engine, &format!("movement {kind} of {dtype}{shape:?}"), &[&y], Zeros::Signed);
            }
        }
    }
    assert!(met.iter().all(|&n| n > 4), "a kind of movement was hardly met: {met:?}");
}

/// Movements upon movements, with arithmetic between them that keeps the planner from collapsing them.
#[test]
fn movements_upon_movements() {
    let engine = engine();
    let mut rng = Rng::new(6);
    for round in 0..600 {
        let shape = SHAPES[rng.below(SHAPES.len())];
        let dtype = DType::ALL[rng.below(4)];
        let mut x = smooth(dtype, shape, round);
        let mut steps = Vec::new();
        for _ in 0..2 + rng.below(4) {
            let kind = rng.below(KINDS);
            match moved(&x, kind, &mut rng) {
                Some(y) if y.expected.rank() <= 6 && y.expected.elems() <= 20_000 => {
                    steps.push(kind);
                    x = y;
                }
                _ => {}
            }
            if rng.below(3) == 0 {
                x = Pair::apply(breakeven::Op::Abs, &[&x]).unwrap();
            }
        }
        check(&engine, &format!("movements {steps:?} of {dtype}{shape:?}"), &[&x], Zeros::Same);
    }
}

/// Arrays read across their rows, long enough for whole cache lines of them and with ends that are not: alone, beside what lies
/// along the rows, backwards, and at an offset.
#[test]
fn rows_that_lie_across() {
    let engine = engine();
    for shape in [
        &[16usize, 32][..],
        &[33, 17],
        &[40, 100],
        &[131, 150],
        &[5, 700],
        &[33, 100],
        &[127, 40],
        &[3, 21, 70],
        &[20, 33, 40],
        &[2, 17, 3, 40],
        &[3, 4, 600],
    ] {
        for dtype in DType::ALL {
            let x = edgy(dtype, shape, 3);
            let rank = shape.len();
            let mut moved = vec![x.transpose().unwrap()];
            for from in 0..rank as isize {
                moved.push(x.swap_axes(from, -1).unwrap());
                moved.push(x.flip(&[from]).unwrap().transpose().unwrap());
            }
            let inner: Vec<Slice> = shape.iter().map(|&n| s(1..n as isize)).collect();
            moved.push(x.slice(&inner).unwrap().transpose().unwrap());
            for y in moved {
                let what = format!("{:?} of {dtype}{shape:?}", y.tensor);
                let along = smooth(dtype, &y.expected.shape, 4);
                let both = Pair::apply(breakeven::Op::Maximum, &[&y, &along]).unwrap();
                check(&engine, &what, &[&y], Zeros::Signed);
                check(
                    &engine,
                    &what,
                    &[&both, &Pair::apply(breakeven::Op::Maximum, &[&both, &y]).unwrap()],
                    Zeros::Same,
                );
            }
        }
    }
}

/// Joins and padding of long rows: alone, joined again, with a value that is not zero, and computed with.
#[test]
fn long_joins_and_padding() {
    let engine = engine();
    for dtype in DType::ALL {
        let (x, y) = (edgy(dtype, &[20, 300], 1), smooth(dtype, &[20, 300], 2));
        for axis in 0..2 {
            let joined = Pair::concat(&[&x, &y, &x], axis).unwrap();
            let stacked = Pair::stack(&[&joined, &joined], axis).unwrap();
            let padded = joined.pad(&[(1, 2), (3, 0)], 1.0).unwrap();
            let zeros = joined.pad(&[(0, 2), (3, 1)], 0.0).unwrap();
            let of_padded =
                Pair::concat(&[&padded, &zeros.slice(&[s(0..padded.expected.shape[0] as isize)]).unwrap()], 1);
            let what = format!("joins of {dtype} along axis {axis}");
            for all in [Some(joined), Some(stacked), Some(padded), Some(zeros), of_padded].into_iter().flatten() {
                check(&engine, &what, &[&all], Zeros::Signed);
                let used = Pair::apply(breakeven::Op::Maximum, &[&all, &all.flip(&[0]).unwrap()]).unwrap();
                check(&engine, &what, &[&used, &all], Zeros::Same);
            }
        }
        let pairs = [Pair::stack(&[&x, &y], -1), Pair::stack(&[&x, &y, &x], -1)];
        for (at, pair) in pairs.into_iter().enumerate() {
            check(&engine, &format!("{} {dtype} along a new last axis", at + 2), &[&pair.unwrap()], Zeros::Signed);
        }
    }
}

/// Every slice of a short axis, as Python has it.
#[test]
fn every_slice_of_a_short_axis() {
    let engine = engine();
    let bounds: Vec<Option<isize>> = std::iter::once(None).chain((-5..=5).map(Some)).collect();
    for n in [0usize, 1, 3] {
        let x = smooth(DType::I32, &[n], 1);
        let mut all = Vec::new();
        for &start in &bounds {
            for &stop in &bounds {
                all.extend(
                    [1, 2, -1, -3, isize::MAX, isize::MIN].map(|step| x.slice(&[Slice { start, stop, step }]).unwrap()),
                );
            }
        }
        for some in all.chunks(64) {
            check(&engine, &format!("slices of {n}"), &some.iter().collect::<Vec<_>>(), Zeros::Same);
        }
    }
}

#[test]
fn creation() {
    let engine = engine();
    let floats =
        [(0.0, 10.0, 1.0), (0.0, 1.0, 0.1), (5.0, -5.0, -0.75), (1.0, 1.0, 1.0), (0.0, -1.0, 1.0), (-1e6, 1e6, 997.0)];
    let ints = [(0, 10, 3), (10, 0, -3), (-5, 5, 1), (0, 0, 1), (i32::MIN, i32::MAX, 1 << 28), (0, 2000, 1)];
    let mut made: Vec<Option<Pair>> = floats.iter().map(|&(a, b, c)| Pair::arange_f32(a, b, c)).collect();
    made.extend(ints.iter().map(|&(a, b, c)| Pair::arange_i32(a, b, c)));
    made.extend([&[][..], &[0], &[3], &[2, 0, 3], &[1, 2, 3, 4, 5]].map(|shape| Pair::full_f32(shape, -1.5)));
    let made: Vec<Pair> = made.into_iter().flatten().collect();
    assert_eq!(made.len(), 17);
    for pair in &made {
        check(&engine, &format!("{:?}", pair.tensor), &[pair], Zeros::Same);
        let moved = pair.flip(&[]).unwrap().pad(&vec![(1, 2); pair.expected.rank()], 7.0).unwrap();
        check(&engine, &format!("{:?}, moved", pair.tensor), &[&moved, pair], Zeros::Same);
    }
}

#[test]
fn an_index_outside_is_an_error_when_it_runs() {
    let engine = engine();
    let x = smooth(DType::F32, &[3, 4], 1).tensor;
    for index in [4.0, -5.0, f64::from(i32::MAX), f64::from(i32::MIN)] {
        let indices = Pair::leaf(RefArray::exact(DType::I32, &[3], vec![0.0, index, 1.0])).tensor;
        let error = engine.run(&[&x.take(&indices, 1).unwrap()]).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("{index}")) && error.contains('4'), "{error}");
    }
    // A large u32 is no negative index.
    let indices = Pair::leaf(RefArray::exact(DType::U32, &[1], vec![f64::from(u32::MAX)])).tensor;
    assert!(engine.run(&[&x.take(&indices, 1).unwrap()]).is_err(), "index u32::MAX was taken for -1");
    // And the engine still works.
    let ok = x.slice(&[s(1..)]).unwrap();
    assert_eq!(engine.run(&[&ok]).unwrap()[0].shape().dims(), [2, 4]);
}
