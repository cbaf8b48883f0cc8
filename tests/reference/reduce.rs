//! Reductions and scans: rows of elements along axes enter, one value each (or a running one) leaves.

use super::{Bounded, RefArray, Result, bounded, cast, elems, for_each_index, free_zero, ravel, rounded, scalar};
use crate::device;
use breakeven::{DType, ReduceOp, ScanOp};

/// The rounding of one f32 operation.
const UNIT: f64 = 1.0 / 16_777_216.0;

impl RefArray {
    /// Reduces along `axes`; none means all.
    pub fn reduce(&self, op: ReduceOp, axes: &[isize], keepdims: bool) -> Result<RefArray> {
        let axes = self.axes(axes)?;
        let array = match op {
            ReduceOp::Any | ReduceOp::All => cast(self, DType::Bool),
            ReduceOp::Sum | ReduceOp::Prod if self.dtype == DType::Bool => cast(self, DType::I32),
            _ => self.clone(),
        };
        let inner: Vec<usize> = axes.iter().map(|&a| self.shape[a]).collect();
        if elems(&inner) == 0 && matches!(op, ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin) {
            return Err(format!("{op:?} over no elements"));
        }
        let kept: Vec<usize> = (0..self.rank()).map(|a| if axes.contains(&a) { 1 } else { self.shape[a] }).collect();
        let mut out = Vec::with_capacity(elems(&kept));
        for_each_index(&kept, |outer| {
            let mut row = Vec::with_capacity(elems(&inner));
            let mut index = outer.to_vec();
            for_each_index(&inner, |at| {
                axes.iter().zip(at).for_each(|(&axis, &i)| index[axis] = i);
                row.push(array.at(ravel(&index, &array.shape)));
            });
            out.push(reduce_row(op, array.dtype, &row));
        });
        let dtype = match op {
            ReduceOp::ArgMax | ReduceOp::ArgMin => DType::I32,
            _ => array.dtype,
        };
        let result = RefArray::collect(dtype, &kept, out.into_iter());
        let shape = (0..self.rank()).filter(|a| keepdims || !axes.contains(a)).map(|a| kept[a]).collect();
        Ok(RefArray { shape, ..result })
    }

    /// A running reduction along `axis`.
    pub fn scan(&self, op: ScanOp, axis: isize) -> Result<RefArray> {
        let axis = self.axis(axis)?;
        let array = if self.dtype == DType::Bool && op != ScanOp::Max { cast(self, DType::I32) } else { self.clone() };
        let mut out = array.clone();
        let mut outer = array.shape.clone();
        outer[axis] = 1;
        for_each_index(&outer, |index| {
            let places: Vec<usize> = (0..array.shape[axis])
                .map(|i| {
                    let mut index = index.to_vec();
                    index[axis] = i;
                    ravel(&index, &array.shape)
                })
                .collect();
            let row: Vec<Bounded> = places.iter().map(|&p| array.at(p)).collect();
            for (p, value) in places.into_iter().zip(scan_row(op, array.dtype, &row)) {
                (out.data[p], out.err[p]) = value;
            }
        });
        Ok(out)
    }

    /// The arithmetic mean in f32.
    pub fn mean(&self, axes: &[isize], keepdims: bool) -> Result<RefArray> {
        let count: usize = self.axes(axes)?.iter().map(|&a| self.shape[a]).product();
        let sum = cast(self, DType::F32).reduce(ReduceOp::Sum, axes, keepdims)?;
        sum.over(count as f64)
    }

    /// The variance: the sum of squared distances from the mean, over the count less `ddof` (never below 0).
    pub fn var(&self, axes: &[isize], ddof: u32, keepdims: bool) -> Result<RefArray> {
        let count: usize = self.axes(axes)?.iter().map(|&a| self.shape[a]).product();
        let centred = cast(self, DType::F32).minus(&self.mean(axes, true)?)?;
        centred.times(&centred)?.reduce(ReduceOp::Sum, axes, keepdims)?.over((count as f64 - f64::from(ddof)).max(0.0))
    }
}

fn reduce_row(op: ReduceOp, dtype: DType, row: &[Bounded]) -> Bounded {
    match (op, dtype) {
        (ReduceOp::Sum, DType::F32) => sum(row),
        (ReduceOp::Prod, DType::F32) => product(row),
        (ReduceOp::Sum, _) => integers(dtype, row, 0, |a, b| a.wrapping_add(b)),
        (ReduceOp::Prod, _) => integers(dtype, row, 1, |a, b| a.wrapping_mul(b)),
        (ReduceOp::Max, _) => extremum(row, 1.0),
        (ReduceOp::Min, _) => extremum(row, -1.0),
        (ReduceOp::ArgMax, _) => arg_extremum(row, 1.0),
        (ReduceOp::ArgMin, _) => arg_extremum(row, -1.0),
        (ReduceOp::Any, _) => decided(row, 1.0),
        (ReduceOp::All, _) => decided(row, 0.0),
    }
}

fn integers(dtype: DType, row: &[Bounded], start: i64, f: fn(i64, i64) -> i64) -> Bounded {
    let value = row.iter().fold(start, |acc, v| f(acc, v.0 as i64));
    (scalar::wrap(value, dtype), row.iter().map(|v| v.1).fold(0.0, f64::max))
}

/// Is one of them `decisive`? One that certainly is settles it.
fn decided(row: &[Bounded], decisive: f64) -> Bounded {
    if row.iter().any(|v| v.0 == decisive && v.1 == 0.0) {
        return (decisive, 0.0);
    }
    let value = if row.iter().any(|v| v.0 == decisive) { decisive } else { 1.0 - decisive };
    (value, row.iter().map(|v| v.1).fold(0.0, f64::max))
}

fn sum(row: &[Bounded]) -> Bounded {
    let total = row.iter().fold(0.0, |total, v| total + v.0);
    let magnitude: f64 = row.iter().map(|v| v.0.abs()).sum();
    let err: f64 = row.iter().map(|v| v.1).sum();
    if overflows(row) {
        return (total, f64::INFINITY);
    }
    if !total.is_finite() {
        return bounded(total, if err == 0.0 { 0.0 } else { f64::INFINITY });
    }
    let whole = row.iter().all(|v| v.0.fract() == 0.0);
    if err == 0.0 && whole && magnitude <= 1.0 / UNIT {
        // A sum may start at 0.0 or at its first term: of terms that are all -0.0 either zero is right.
        return if magnitude == 0.0 { free_zero(row.iter().map(|v| v.0).chain([0.0])) } else { (total, 0.0) };
    }
    if magnitude + err > f64::from(f32::MAX) {
        return (total, f64::INFINITY);
    }
    let rounding = row.len().saturating_sub(1).min(device::sum_terms()) as f64 * UNIT * (magnitude + err);
    rounded(total, 0.5, (err + rounding * 1.001).max(f64::MIN_POSITIVE))
}

/// May a partial sum of finite terms leave f32's range, where partial sums are f32?
fn overflows(row: &[Bounded]) -> bool {
    let finite = row.iter().map(|v| v.0.abs()).filter(|x| x.is_finite());
    device::api().is_some() && finite.sum::<f64>() > f64::from(f32::MAX)
}

fn product(row: &[Bounded]) -> Bounded {
    let total: f64 = row.iter().map(|v| v.0).product();
    if row.iter().any(|v| v.0.is_nan() && v.1 == 0.0) {
        return (f64::NAN, 0.0);
    }
    if row.iter().any(|v| v.1 == f64::INFINITY) {
        return (total, f64::INFINITY);
    }
    // Any order is right, so every partial product must stay in f32's range for the result to be certain.
    let (mut up, mut down, mut relative) = (1.0f64, 1.0f64, 0.0);
    let mut fractional = false;
    for &(x, e) in row.iter().filter(|v| v.0.is_finite() && v.0 != 0.0) {
        up *= (x.abs() + e).max(1.0);
        down *= (x.abs() - e).clamp(0.0, 1.0);
        relative += e / x.abs();
        fractional |= x.fract() != 0.0;
    }
    let (infinite, zero) = (row.iter().any(|v| v.0.is_infinite()), row.iter().any(|v| v.0 == 0.0));
    let blurred_zero = row.iter().filter(|v| v.0 == 0.0 && v.1 > 0.0).map(|v| v.1).fold(0.0, f64::max);
    if up > f64::from(f32::MAX) || down < f64::from(f32::MIN_POSITIVE) || blurred_zero * up > 1e30 {
        return (total, f64::INFINITY);
    }
    if infinite || (zero && blurred_zero == 0.0) {
        return (total, 0.0);
    }
    if zero {
        // Each blurred zero is at most its bound, the others at most what they are.
        return (total, blurred_zero * up * 2.0);
    }
    if relative == 0.0 && !fractional && up <= 1.0 / UNIT {
        return (total, 0.0);
    }
    let relative = relative + row.len() as f64 * UNIT;
    if relative > 0.1 { (total, f64::INFINITY) } else { bounded(total, total.abs() * relative * 1.2) }
}

fn extremum(row: &[Bounded], sign: f64) -> Bounded {
    if row.iter().any(|v| v.0.is_nan() && v.1 == 0.0) {
        return (f64::NAN, 0.0);
    }
    if row.iter().any(|v| v.1 == f64::INFINITY || v.0.is_nan()) {
        return (row[0].0, f64::INFINITY);
    }
    let over = |f: fn(&Bounded, f64) -> f64| row.iter().map(|v| f(v, sign)).fold(f64::NEG_INFINITY, f64::max);
    let (low, middle, high) = (over(|v, s| s * v.0 - v.1), over(|v, s| s * v.0), over(|v, s| s * v.0 + v.1));
    match middle {
        m if m.is_infinite() => (sign * m, 0.0),
        0.0 if low == 0.0 && high == 0.0 => free_zero(row.iter().map(|v| v.0)),
        m => (sign * m, (m - low).max(high - m)),
    }
}

fn arg_extremum(row: &[Bounded], sign: f64) -> Bounded {
    if row.iter().any(|v| v.1 == f64::INFINITY) {
        return (0.0, f64::INFINITY);
    }
    if let Some(i) = row.iter().position(|v| v.0.is_nan()) {
        return (i as f64, 0.0);
    }
    let mut best = 0;
    for i in 1..row.len() {
        if sign * row[i].0 > sign * row[best].0 {
            best = i;
        }
    }
    let rivals = |(i, v): (usize, &Bounded)| {
        i != best && (v.1 > 0.0 || row[best].1 > 0.0) && sign * v.0 + v.1 >= sign * row[best].0 - row[best].1
    };
    (best as f64, if row.iter().enumerate().any(rivals) { f64::INFINITY } else { 0.0 })
}

/// A scan is carried in f64 on the CPU, where each value of it is rounded once; in f32 on a GPU.
fn scan_row(op: ScanOp, dtype: DType, row: &[Bounded]) -> Vec<Bounded> {
    match (op, dtype) {
        (ScanOp::Max, _) => (1..=row.len()).map(|n| extremum(&row[..n], 1.0)).collect(),
        (ScanOp::Sum, DType::F32) => {
            let (mut total, mut err, mut magnitude, mut whole) = (0.0, 0.0, 0.0, true);
            let (mut steps, rounding, unsure) = (0.0, device::scan_rounding(), overflows(row));
            row.iter()
                .map(|&(x, e)| {
                    (total, err, magnitude) = (total + x, err + e, magnitude + x.abs());
                    whole &= x.fract() == 0.0 || device::api().is_none();
                    steps += 1.0;
                    match total.is_finite() {
                        _ if unsure => (total, f64::INFINITY),
                        // Reached through an infinity or NaN, not through overflow: inputs are at most f32::MAX.
                        false => bounded(total, if err == 0.0 { 0.0 } else { f64::INFINITY }),
                        true if err == 0.0 && magnitude == 0.0 => free_zero([x, 0.0].into_iter()),
                        true if err == 0.0 && whole && magnitude < 1.0 / UNIT && f64::from(total as f32) == total => {
                            (total, 0.0)
                        }
                        true => rounded(total, 0.5, err + magnitude * steps * rounding + f64::MIN_POSITIVE),
                    }
                })
                .collect()
        }
        (ScanOp::Prod, DType::F32) => {
            // Where the carry is f32, runs of a row are multiplied on their own, and each must stay in its range.
            let finite = || row.iter().map(|v| v.0.abs()).filter(|x| x.is_finite() && *x != 0.0);
            let (up, down): (f64, f64) =
                (finite().map(|x| x.max(1.0)).product(), finite().map(|x| x.min(1.0)).product());
            let leaves = device::api().is_some() && (up > f64::from(f32::MAX) || down < f64::from(f32::MIN_POSITIVE));
            let (mut total, mut relative, mut lost) = (1.0f64, 0.0f64, leaves);
            row.iter()
                .map(|&(x, e)| {
                    total *= x;
                    lost |= e > 0.0 && (!x.is_finite() || x.abs() <= 2.0 * e);
                    relative += device::scan_rounding() + if e == 0.0 { 0.0 } else { 2.0 * e / x.abs() };
                    // Outside f32's range the carried f64 knows more than a carried f32 would: either is right.
                    let outside = total.is_finite() && total != 0.0 && !(1e-37..3e38).contains(&total.abs());
                    lost |= outside || relative > 0.1;
                    match (lost, total.is_finite() && total != 0.0) {
                        (true, _) => (total, f64::INFINITY),
                        (false, true) => rounded(total, 0.5, total.abs() * relative),
                        (false, false) => (total, 0.0),
                    }
                })
                .collect()
        }
        (ScanOp::Sum, _) => running(dtype, row, 0, |a, b| a.wrapping_add(b)),
        (ScanOp::Prod, _) => running(dtype, row, 1, |a, b| a.wrapping_mul(b)),
    }
}

fn running(dtype: DType, row: &[Bounded], start: i64, f: fn(i64, i64) -> i64) -> Vec<Bounded> {
    let (mut total, mut err) = (start, 0.0f64);
    row.iter()
        .map(|v| {
            (total, err) = (f(total, v.0 as i64), err.max(v.1));
            (scalar::wrap(total, dtype), err)
        })
        .collect()
}
