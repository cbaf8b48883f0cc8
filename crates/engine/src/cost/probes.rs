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
    let x = data(&[n])?;
    let mut y = x.clone();
    for step in 0..ops / 2 {
        y = (y * (0.5 + step as f32 / 256.0))?;
        y = (y + &x)?;
    }
    Ok(y)
}

/// How often [`op`] computes its op for each element, and how many additions and products are around it.
pub(crate) const OP_TIMES: usize = 4;
pub(crate) const OP_AROUND: usize = 8;

/// `n` elements with one op four times; `None` if it has no f32 form that says something.
pub(crate) fn op(op: Op, n: usize) -> Result<Option<Tensor>> {
    let row = op.row();
    let floats = row.signatures[0].args.iter().all(|dtype| *dtype == breakeven_ir::DType::F32);
    if !floats || row.properties & (property::CASTS | property::COMPARES) != 0 || row.arity > 2 {
        return Ok(None);
    }
    let x = data(&[n])?;
    let mut sum: Option<Tensor> = None;
    for time in 0..OP_TIMES {
        // Never 1, which would be left out.
        let y = (&x * (1.0 - (time + 1) as f32 / 16.0))?;
        let y = if row.arity == 1 { Tensor::apply(op, &[&y])? } else { Tensor::apply(op, &[&y, &x])? };
        sum = Some(match sum {
            Some(sum) => (sum + y)?,
            None => (y + 0.5)?,
        });
    }
    Ok(sum)
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

/// `n` elements reduced three times, by rows of `row`, after so many operations on each element.
pub(crate) fn passes(n: usize, row: usize, ops: usize) -> Result<Tensor> {
    let x = data(&[n.div_ceil(row), row])?;
    let mut y = x.clone();
    for step in 0..ops / 2 {
        y = (y * (0.5 + step as f32 / 256.0))?;
        y = (y + &x)?;
    }
    let total = y.sum(&[1], true)?;
    let rest = (&y - &total)?.max(&[1], true)?;
    ((&y * &rest)? + total)?.sum(&[1], false)
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
