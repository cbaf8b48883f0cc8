//! Random programs: a list of random instructions enters; a small graph of pairs leaves, every operation kind in it.
//!
//! An instruction is a handful of random numbers, read against the values that exist when its turn comes: which
//! operation, on which of them, along which axes. What the operation refuses is skipped (both sides must refuse it),
//! so every list is a program, and a shorter list is a simpler one: that is what makes failures shrink.

use crate::data::{Rng, random, rough};
use crate::pair::Pair;
use crate::reference::RefArray;
use breakeven::{DType, Op, ReduceOp, ScanOp, Slice};

/// One step of a program.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Which kind of operation; see [`Program::step`].
    pub kind: u8,
    /// Which operands, counted back from the newest value.
    pub operands: [u8; 3],
    /// Everything else.
    pub detail: u32,
}

/// Kinds of operation: an instruction's kind is taken modulo this.
pub const KINDS: u8 = 32;

/// A value of a program.
#[derive(Clone, Debug)]
pub struct Value {
    /// The pair.
    pub pair: Pair,
    /// What it was made from, for whoever reads a failure; operations use the first operands that they need.
    pub text: String,
    /// Did no f32 reduction, scan or product go into it? Then every order of evaluation gives the same bits. (Even a
    /// maximum of 0.0 and -0.0 depends on the order.)
    pub order_free: bool,
}

/// The values so far.
pub struct Program {
    /// Newest last.
    pub values: Vec<Value>,
    leaves: usize,
    limit_elems: usize,
}

/// The most axes a value may have before it is left alone: movements add axes, and eight are the most there can be.
const RANK_LIMIT: usize = 5;

impl Program {
    /// Leaves whose shapes fit each other in many ways: `extents` are two matrices' three.
    pub fn new(extents: [usize; 3], seed: u64, edges: bool, limit_elems: usize) -> Program {
        let [m, k, n] = extents;
        let shapes: [(&[usize], DType); 9] = [
            (&[m, k], DType::F32),
            (&[k, n], DType::F32),
            (&[k], DType::F32),
            (&[m, 1], DType::F32),
            (&[], DType::F32),
            (&[m, k], DType::I32),
            (&[k], DType::U32),
            (&[m, k], DType::Bool),
            (&[2, m, k], DType::F32),
        ];
        let make = |(i, &(shape, dtype)): (usize, &(&[usize], DType))| {
            let seed = seed.wrapping_mul(31).wrapping_add(i as u64);
            let array = if edges && i % 2 == 0 { rough(dtype, shape, seed) } else { random(dtype, shape, seed) };
            let text = format!("v{i} = {dtype}{shape:?}");
            Value { pair: Pair::leaf(array), text, order_free: true }
        };
        let values: Vec<Value> = shapes.iter().enumerate().map(make).collect();
        Program { leaves: values.len(), values, limit_elems }
    }

    /// What has been made of the leaves; the last leaf while that is nothing.
    pub fn made(&self) -> &[Value] {
        &self.values[self.leaves.min(self.values.len() - 1)..]
    }

    /// Runs an instruction, if what it asks for exists and is not too large.
    pub fn step(&mut self, instruction: &Instruction) {
        let value = |i: usize| {
            let back = usize::from(instruction.operands[i]) % self.values.len();
            &self.values[self.values.len() - 1 - back]
        };
        let [a, b, c] = [value(0), value(1), value(2)];
        let number = |i: usize| self.values.len() - 1 - usize::from(instruction.operands[i]) % self.values.len();
        let mut rng = Rng::new(u64::from(instruction.detail) + 1);
        if [a, b, c].iter().any(|v| v.pair.expected.elems() > self.limit_elems) {
            return;
        }
        let Some((pair, order_free)) = operate(instruction.kind % KINDS, &mut rng, a, b, c) else { return };
        if pair.expected.elems() <= self.limit_elems && pair.expected.rank() <= RANK_LIMIT {
            let (at, [a, b, c]) = (self.values.len(), [number(0), number(1), number(2)]);
            let text = format!("v{at} = {:?} from v{a}, v{b}, v{c}", pair.tensor);
            self.values.push(Value { pair, text, order_free });
        }
    }
}

/// One operation and whether its result does not depend on any order.
fn operate(kind: u8, rng: &mut Rng, a: &Value, b: &Value, c: &Value) -> Option<(Pair, bool)> {
    let (x, y, z) = (&a.pair, &b.pair, &c.pair);
    let pick = |rng: &mut Rng, ops: &[Op]| ops[rng.below(ops.len())];
    let both = a.order_free && b.order_free;
    let all = both && c.order_free;
    Some(match kind {
        0..=4 => {
            let op = pick(rng, Op::ALL);
            let args = [x, y, z];
            (Pair::apply(op, &args[..op.row().arity])?, [a.order_free, both, all][op.row().arity - 1])
        }
        5..=8 => {
            (Pair::apply(pick(rng, &[Op::Add, Op::Sub, Op::Mul, Op::Maximum, Op::Div, Op::Minimum]), &[x, y])?, both)
        }
        9 | 10 => {
            let ops = [Op::Tanh, Op::Sigmoid, Op::Abs, Op::Neg, Op::Square, Op::Erf, Op::Sin, Op::Gelu, Op::Floor];
            (Pair::apply(pick(rng, &ops), &[x])?, a.order_free)
        }
        11 => (Pair::apply(Op::Where, &[&Pair::apply(pick(rng, &[Op::Lt, Op::Ge, Op::Ne]), &[x, y])?, z, x])?, all),
        12 => (
            match rng.below(4) {
                0 => x.relu()?,
                1 => x.leaky_relu(0.25)?,
                2 => x.elu(1.0)?,
                _ => x.clip(y, z)?,
            },
            all,
        ),
        13 => (Pair::apply(Op::cast_to(DType::ALL[rng.below(4)]), &[x])?, a.order_free),
        14..=17 => reduction(rng, a)?,
        18 => {
            let op = ScanOp::ALL[rng.below(3)];
            let free = a.order_free && x.expected.dtype != DType::F32;
            (x.scan(op, axis(rng, x)?)?, free)
        }
        19 => (
            match rng.below(3) {
                0 => x.softmax(axis(rng, x)?)?,
                1 => x.log_softmax(axis(rng, x)?)?,
                _ => x.layer_norm(axis(rng, x)?, 1e-3)?,
            },
            false,
        ),
        20 | 21 => (x.matmul(y).or_else(|| x.matmul(&y.transpose()?)).or_else(|| x.transpose()?.matmul(y))?, false),
        22 => (Pair::concat(&[x, y, x], axis(rng, x)?)?, both),
        23 => (Pair::stack(&[x, x], rng.below(x.expected.rank() + 1) as isize)?, a.order_free),
        _ => (movement(kind, rng, x)?, a.order_free),
    })
}

fn axis(rng: &mut Rng, x: &Pair) -> Option<isize> {
    let rank = x.expected.rank();
    (rank > 0).then(|| rng.below(2 * rank) as isize - rank as isize)
}

fn reduction(rng: &mut Rng, a: &Value) -> Option<(Pair, bool)> {
    let x = &a.pair;
    let axes: Vec<isize> = (0..x.expected.rank() as isize).filter(|_| rng.below(2) == 0).collect();
    let keepdims = rng.below(3) > 0;
    let exact = a.order_free && x.expected.dtype != DType::F32;
    Some(match rng.below(12) {
        0 => (x.mean(&axes, keepdims)?, false),
        1 => (x.var(&axes, rng.below(2) as u32, keepdims)?, false),
        2 => (x.std(&axes, 0, keepdims)?, false),
        3 => (x.norm(&axes, keepdims)?, false),
        n => {
            let op = ReduceOp::ALL[n - 4];
            let counts = matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin | ReduceOp::Any | ReduceOp::All);
            (x.reduce(op, &axes, keepdims)?, exact || (a.order_free && counts))
        }
    })
}

fn movement(kind: u8, rng: &mut Rng, x: &Pair) -> Option<Pair> {
    let (rank, shape) = (x.expected.rank(), &x.expected.shape);
    match kind {
        24 => x.transpose(),
        25 => x.flip(&[axis(rng, x)?]),
        26 => {
            let slices: Vec<Slice> = shape
                .iter()
                .map(|&n| Slice {
                    start: (rng.below(2) == 0).then(|| rng.below(n + 1) as isize - 1),
                    stop: (rng.below(2) == 0).then(|| rng.below(n + 2) as isize),
                    step: [1, 1, 2, -1, -2][rng.below(5)],
                })
                .collect();
            x.slice(&slices)
        }
        27 => match rng.below(4) {
            0 => x.reshape(&[-1]),
            1 => x.reshape(&shape.iter().rev().map(|&d| d as isize).collect::<Vec<_>>()),
            2 => x.expand_dims(&[rng.below(rank + 1) as isize]),
            _ => x.squeeze(&[]),
        },
        28 => x.pad(&shape.iter().map(|_| (rng.below(3), rng.below(2))).collect::<Vec<_>>(), rng.below(3) as f32 - 0.5),
        29 => {
            let along = axis(rng, x)?;
            let n = shape[x.expected.axis(along).ok()?];
            let indices = (0..1 + rng.below(5)).map(|_| rng.below(2 * n) as f64 - n as f64).collect::<Vec<_>>();
            let indices = RefArray::exact(DType::I32, &[indices.len()], indices);
            if n == 0 { None } else { x.take(&Pair::leaf(indices), along) }
        }
        30 => match rng.below(3) {
            0 => x.tile(&[1 + rng.below(2), 1 + rng.below(2)]),
            1 => x.rot90(rng.below(4) as i32),
            _ => x.broadcast_to(&[vec![2], shape.iter().map(|&n| if n == 1 { 3 } else { n }).collect()].concat()),
        },
        _ => {
            let along = axis(rng, x)?;
            let n = shape[x.expected.axis(along).ok()?];
            x.windows(&[along], &[1 + rng.below(n.clamp(1, 4))], &[1 + rng.below(2)])
        }
    }
}
