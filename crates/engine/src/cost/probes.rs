//! Small programs whose times tell what a device costs: a size enters, a recorded expression over made-up data leaves.

use breakeven_ir::{Error, Op, Shape, Tensor, property, s};

type Result<T> = std::result::Result<T, Error>;

/// Numbers between 0.1 and 1, where every op is defined and none takes a slow path; always the same ones.
pub(crate) fn data(dims: &[usize]) -> Result<Tensor> {
    let shape = Shape::new(dims)?;
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        0.1 + 0.9 * (state >> 8) as f32 / (1 << 24) as f32
    };
    Tensor::from_vec((0..shape.elems()).map(|_| next()).collect(), shape)
}

/// As little as a batch can do.
pub(crate) fn nothing() -> Result<Tensor> {
    &data(&[1])? + 1.0
}

/// `n` elements go up, one is looked at.
pub(crate) fn upload(n: usize) -> Result<Tensor> {
    &data(&[n])?.slice(&[s(0..1)])? + 1.0
}

/// `n` elements come back that nothing was read for.
pub(crate) fn readback(n: usize) -> Result<Tensor> {
    (&data(&[1])? + 1.0)?.broadcast_to([n])? * 1.5
}

/// One operation: `n` elements are read and written.
pub(crate) fn memory(n: usize) -> Result<Tensor> {
    &data(&[n])? + 1.0
}

/// As [`memory`], read across its rows.
pub(crate) fn strided(n: usize) -> Result<Tensor> {
    let side = (n as f64).sqrt() as usize;
    &data(&[side, side])?.transpose()? + 1.0
}

/// Operations of [`compute`] for each element.
pub(crate) const COMPUTE_OPS: usize = 64;

/// `n` elements with [`COMPUTE_OPS`] additions and products each.
pub(crate) fn compute(n: usize) -> Result<Tensor> {
    chain(n, COMPUTE_OPS)
}

/// `n` elements with `ops` additions and products each, of which none can be left out.
pub(crate) fn chain(n: usize, ops: usize) -> Result<Tensor> {
    chained(&data(&[n])?, ops)
}

fn chained(x: &Tensor, ops: usize) -> Result<Tensor> {
    let mut y = x.clone();
    for step in 0..ops / 2 {
        y = (y * (0.5 + step as f32 / 256.0))?;
        y = (y + x)?;
    }
    Ok(y)
}

/// How often [`op`] computes its op for each element, and how many additions and products are around it.
pub(crate) const OP_TIMES: usize = 4;
pub(crate) const OP_AROUND: usize = 8;

/// `n` elements with one op four times; `None` if it has no f32 form that says something.
pub(crate) fn op(op: Op, n: usize) -> Result<Option<Tensor>> {
    after_one_another(op, &data(&[n])?)
}

/// One op four times, each from the one before: processors compute what does not wait for each other in less time than
/// what does, as the ops of most expressions do.
fn after_one_another(op: Op, x: &Tensor) -> Result<Option<Tensor>> {
    let row = op.row();
    let floats = row.signatures[0].args.iter().all(|dtype| *dtype == breakeven_ir::DType::F32);
    if !floats || row.properties & (property::CASTS | property::COMPARES) != 0 || row.arity > 2 {
        return Ok(None);
    }
    let mut y = x.clone();
    for _ in 0..OP_TIMES {
        let next = if row.arity == 1 { Tensor::apply(op, &[&y])? } else { Tensor::apply(op, &[&y, x])? };
        y = little_beside(next, x)?;
    }
    Ok(Some(y))
}

/// A little beside the data, which keeps it where every op is defined.
fn little_beside(y: Tensor, x: &Tensor) -> Result<Tensor> {
    (y * (1.0 / 64.0))? + x
}

/// `n` elements summed by rows of `row`.
pub(crate) fn reduce(n: usize, row: usize) -> Result<Tensor> {
    data(&[n.div_ceil(row), row])?.sum(&[1], false)
}

/// `n` elements summed by columns.
pub(crate) fn columns(n: usize) -> Result<Tensor> {
    let side = (n as f64).sqrt() as usize;
    data(&[side, side])?.sum(&[0], false)
}

/// Dear ops of [`heavy`], and how many operations it has for each element.
pub(crate) const HEAVY: [Op; 5] = [Op::Exp, Op::Tanh, Op::Gelu, Op::Log, Op::Sin];
pub(crate) const HEAVY_OPS: usize = 3 * HEAVY.len();

/// `n` elements with several dear ops each.
pub(crate) fn heavy(n: usize) -> Result<Tensor> {
    several(&data(&[n])?)
}

/// As [`heavy`], summed by rows of `row`.
pub(crate) fn row_heavy(n: usize, row: usize) -> Result<Tensor> {
    several(&data(&[n.div_ceil(row), row])?)?.sum(&[1], false)
}

fn several(x: &Tensor) -> Result<Tensor> {
    HEAVY.into_iter().try_fold(x.clone(), |y, op| little_beside(Tensor::apply(op, &[&y])?, x))
}

/// `n` elements summed by rows of `row`, after `ops` additions and products each.
pub(crate) fn row_chain(n: usize, row: usize, ops: usize) -> Result<Tensor> {
    chained(&data(&[n.div_ceil(row), row])?, ops)?.sum(&[1], false)
}

/// As [`op`], summed by rows of `row`.
pub(crate) fn row_op(op: Op, n: usize, row: usize) -> Result<Option<Tensor>> {
    let y = after_one_another(op, &data(&[n.div_ceil(row), row])?)?;
    y.map(|y| y.sum(&[1], false)).transpose()
}

/// `n` elements reduced twice by rows of `row` and written, as softmax and layer_norm do it, after so many operations on each
/// element.
pub(crate) fn passes(n: usize, row: usize, ops: usize) -> Result<Tensor> {
    let y = chained(&data(&[n.div_ceil(row), row])?, ops)?;
    let total = y.sum(&[1], true)?;
    let rest = (&y - &total)?.max(&[1], true)?;
    (&y * &rest)? + total
}

/// `n` elements scanned by rows of `row`.
pub(crate) fn scan(n: usize, row: usize) -> Result<Tensor> {
    data(&[n.div_ceil(row), row])?.cumsum(1)
}

/// A product of this shape: batches, rows, columns, summed extent.
pub(crate) fn product([batch, m, n, k]: [usize; 4]) -> Result<Tensor> {
    data(&[batch, m, k])?.matmul(&data(&[batch, k, n])?)
}

/// Two kernels where [`memory`] has one.
pub(crate) fn two_kernels(n: usize) -> Result<Tensor> {
    let side = (n as f64).sqrt() as usize;
    let x = data(&[side, side])?;
    // Rows, then columns: nothing that fuses.
    x.sum(&[1], true)?.sum(&[0], true)? + 1.0
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
