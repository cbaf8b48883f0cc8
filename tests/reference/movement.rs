//! Movement and joins: for each index of the result, the index of the argument it comes from.

use super::{RefArray, Result, axis_of, broadcast_shape, cast, elems, for_each_index, promote, ravel, scalar};
use breakeven::Slice;

impl RefArray {
    /// An array of `shape` whose element at each index is the one at `from(index)`, or `fill` where there is none.
    fn gather(&self, shape: &[usize], fill: f64, mut from: impl FnMut(&[usize]) -> Option<Vec<usize>>) -> RefArray {
        let mut out = Vec::with_capacity(elems(shape));
        for_each_index(shape, |index| {
            out.push(from(index).map_or((fill, 0.0), |at| self.at(ravel(&at, &self.shape))));
        });
        RefArray::collect(self.dtype, shape, out.into_iter())
    }

    /// The same elements under another shape, one extent of which may be -1.
    pub fn reshape(&self, to: &[isize]) -> Result<RefArray> {
        let refuse = || Err(format!("reshape of {:?} to {to:?}", self.shape));
        let known: isize = to.iter().filter(|&&d| d >= 0).product();
        let unknown = to.iter().filter(|&&d| d == -1).count();
        if unknown > 1 || to.iter().any(|&d| d < -1) || (unknown == 1 && known == 0) {
            return refuse();
        }
        let fill = if unknown == 1 { self.elems() / known as usize } else { 0 };
        let shape: Vec<usize> = to.iter().map(|&d| if d == -1 { fill } else { d as usize }).collect();
        if elems(&shape) == self.elems() { Ok(RefArray { shape, ..self.clone() }) } else { refuse() }
    }

    /// Axis `i` of the result is axis `order[i]`.
    pub fn permute(&self, order: &[isize]) -> Result<RefArray> {
        let order = order.iter().map(|&a| self.axis(a)).collect::<Result<Vec<_>>>()?;
        if (0..self.rank()).any(|a| order.iter().filter(|&&o| o == a).count() != 1) || order.len() != self.rank() {
            return Err(format!("{order:?} is no order"));
        }
        let shape: Vec<usize> = order.iter().map(|&a| self.shape[a]).collect();
        Ok(self.gather(&shape, 0.0, |index| {
            let mut at = vec![0; index.len()];
            order.iter().zip(index).for_each(|(&axis, &i)| at[axis] = i);
            Some(at)
        }))
    }

    /// All axes in reverse.
    pub fn transpose(&self) -> Result<RefArray> {
        self.permute(&(0..self.rank() as isize).rev().collect::<Vec<_>>())
    }

    /// New axes of extent 1 at these places of the result.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<RefArray> {
        let rank = self.rank() + axes.len();
        let places = RefArray::full(self.dtype, &vec![1; rank], 0.0);
        let places = if axes.is_empty() { Vec::new() } else { places.axes(axes)? };
        let mut rest = self.shape.iter();
        let shape = (0..rank).map(|a| if places.contains(&a) { 1 } else { *rest.next().unwrap_or(&1) }).collect();
        Ok(RefArray { shape, ..self.clone() })
    }

    /// Without these axes of extent 1; none named means all such axes.
    pub fn squeeze(&self, axes: &[isize]) -> Result<RefArray> {
        let gone =
            if axes.is_empty() { (0..self.rank()).filter(|&a| self.shape[a] == 1).collect() } else { self.axes(axes)? };
        if gone.iter().any(|&a| self.shape[a] != 1) {
            return Err(format!("squeeze of {:?}", self.shape));
        }
        let shape = (0..self.rank()).filter(|a| !gone.contains(a)).map(|a| self.shape[a]).collect();
        Ok(RefArray { shape, ..self.clone() })
    }

    /// Repeated by the broadcasting rule.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<RefArray> {
        if broadcast_shape(&[&self.shape, shape])? != shape {
            return Err(format!("{:?} to {shape:?}", self.shape));
        }
        let lead = shape.len() - self.rank();
        Ok(self.gather(shape, 0.0, |index| {
            Some(index[lead..].iter().zip(&self.shape).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect())
        }))
    }

    /// Python's slices, one for each of the first axes: the indices are listed by walking as Python documents it.
    pub fn slice(&self, slices: &[Slice]) -> Result<RefArray> {
        if slices.len() > self.rank() || slices.iter().any(|s| s.step == 0) {
            return Err("slice".into());
        }
        let mut lists: Vec<Vec<usize>> = self.shape.iter().map(|&n| (0..n).collect()).collect();
        for (list, s) in lists.iter_mut().zip(slices) {
            let n = list.len() as isize;
            let from_end = |i: isize| if i < 0 { i.saturating_add(n) } else { i };
            let (start, stop) = if s.step > 0 {
                (s.start.map_or(0, from_end).max(0), s.stop.map_or(n, from_end).min(n))
            } else {
                (s.start.map_or(n - 1, from_end).min(n - 1), s.stop.map_or(-1, from_end).max(-1))
            };
            let mut at = start;
            list.clear();
            while if s.step > 0 { at < stop } else { at > stop } {
                list.push(at as usize);
                at = at.saturating_add(s.step);
            }
        }
        let shape: Vec<usize> = lists.iter().map(Vec::len).collect();
        Ok(self.gather(&shape, 0.0, |index| Some(index.iter().zip(&lists).map(|(&i, list)| list[i]).collect())))
    }

    /// The sub-array at `index` of `axis`.
    pub fn select(&self, axis: isize, index: isize) -> Result<RefArray> {
        let axis = self.axis(axis)?;
        let place = axis_of(index, self.shape[axis])?;
        let mut shape = self.shape.clone();
        shape.remove(axis);
        Ok(self.gather(&shape, 0.0, |at| {
            let mut at = at.to_vec();
            at.insert(axis, place);
            Some(at)
        }))
    }

    /// Reversed along these axes; none named means all.
    pub fn flip(&self, axes: &[isize]) -> Result<RefArray> {
        let axes = self.axes(axes)?;
        Ok(self.gather(&self.shape, 0.0, |index| {
            Some(
                (0..index.len())
                    .map(|a| if axes.contains(&a) { self.shape[a] - 1 - index[a] } else { index[a] })
                    .collect(),
            )
        }))
    }

    /// Quarter turns in the plane of the first two axes: `out[i, j] = in[j, n - 1 - i]` each.
    pub fn rot90(&self, times: i32) -> Result<RefArray> {
        if self.rank() < 2 {
            return Err("rot90".into());
        }
        let mut turned = self.clone();
        for _ in 0..times.rem_euclid(4) {
            let mut shape = turned.shape.clone();
            shape.swap(0, 1);
            let last = turned.shape[1];
            turned = turned.gather(&shape, 0.0, |index| {
                let mut at = index.to_vec();
                (at[0], at[1]) = (index[1], last - 1 - index[0]);
                Some(at)
            });
        }
        Ok(turned)
    }

    /// `value`, cast to the dtype, around.
    pub fn pad(&self, widths: &[(usize, usize)], value: f64) -> Result<RefArray> {
        if widths.len() != self.rank() {
            return Err("pad".into());
        }
        let shape: Vec<usize> = self.shape.iter().zip(widths).map(|(n, w)| n + w.0 + w.1).collect();
        let fill = scalar::cast(value, breakeven::DType::F32, self.dtype);
        Ok(self.gather(&shape, fill, |index| {
            let inside = |a: usize| index[a].checked_sub(widths[a].0).filter(|&i| i < self.shape[a]);
            (0..index.len()).map(inside).collect()
        }))
    }

    /// Windows of `sizes` along `axes` in `strides`, as new axes at the end.
    pub fn windows(&self, axes: &[isize], sizes: &[usize], strides: &[usize]) -> Result<RefArray> {
        if axes.is_empty() || axes.len() != sizes.len() || axes.len() != strides.len() {
            return Err("windows".into());
        }
        self.axes(axes)?;
        let axes = axes.iter().map(|&a| self.axis(a)).collect::<Result<Vec<_>>>()?;
        let mut shape = self.shape.clone();
        for ((&axis, &size), &stride) in axes.iter().zip(sizes).zip(strides) {
            if size == 0 || stride == 0 || size > self.shape[axis] {
                return Err("windows".into());
            }
            shape[axis] = (self.shape[axis] - size) / stride + 1;
        }
        shape.extend(sizes);
        Ok(self.gather(&shape, 0.0, |index| {
            let mut at = index[..self.rank()].to_vec();
            for (i, &axis) in axes.iter().enumerate() {
                at[axis] = at[axis] * strides[i] + index[self.rank() + i];
            }
            Some(at)
        }))
    }

    /// Repeated `times[i]` times along axis `i`, aligned at the last axis.
    pub fn tile(&self, times: &[usize]) -> Result<RefArray> {
        let rank = self.rank().max(times.len());
        let widened = |list: &[usize]| [vec![1; rank - list.len()], list.to_vec()].concat();
        let (dims, times) = (widened(&self.shape), widened(times));
        let shape: Vec<usize> = dims.iter().zip(&times).map(|(d, t)| d * t).collect();
        let wide = RefArray { shape: dims.clone(), ..self.clone() };
        Ok(wide.gather(&shape, 0.0, |index| Some(index.iter().zip(&dims).map(|(i, d)| i % d).collect())))
    }

    /// The elements at `indices` along `axis`. An index outside is an error.
    pub fn take(&self, indices: &RefArray, axis: isize) -> Result<RefArray> {
        let axis = self.axis(axis)?;
        let n = self.shape[axis];
        let places = indices.data.iter().map(|&i| axis_of(i as isize, n)).collect::<Result<Vec<_>>>()?;
        let shape = [&self.shape[..axis], &indices.shape, &self.shape[axis + 1..]].concat();
        let end = axis + indices.rank();
        let mut taken = self.gather(&shape, 0.0, |index| {
            let place = places[ravel(&index[axis..end], &indices.shape)];
            Some([&index[..axis], &[place], &index[end..]].concat())
        });
        if indices.err.iter().any(|&e| e > 0.0) {
            taken.err.fill(f64::INFINITY);
        }
        Ok(taken)
    }
}

/// Joined along an axis that they have already.
pub fn concat(arrays: &[&RefArray], axis: isize) -> Result<RefArray> {
    let first = arrays.first().ok_or("nothing to join")?;
    let axis = first.axis(axis)?;
    let mut dtype = first.dtype;
    for other in &arrays[1..] {
        let alike = |a: usize| a == axis || first.shape[a] == other.shape[a];
        if other.rank() != first.rank() || !(0..first.rank()).all(alike) {
            return Err(format!("concat of {:?} and {:?}", first.shape, other.shape));
        }
        dtype = promote(&[dtype, other.dtype])?;
    }
    let arrays: Vec<RefArray> = arrays.iter().map(|a| cast(a, dtype)).collect();
    let mut shape = first.shape.clone();
    shape[axis] = arrays.iter().map(|a| a.shape[axis]).sum();
    let mut out = Vec::with_capacity(elems(&shape));
    for_each_index(&shape, |index| {
        let mut at = index.to_vec();
        for array in &arrays {
            if at[axis] < array.shape[axis] {
                out.push(array.at(ravel(&at, &array.shape)));
                return;
            }
            at[axis] -= array.shape[axis];
        }
    });
    Ok(RefArray::collect(dtype, &shape, out.into_iter()))
}

/// Joined along a new axis.
pub fn stack(arrays: &[&RefArray], axis: isize) -> Result<RefArray> {
    let first = arrays.first().ok_or("nothing to join")?;
    if arrays.iter().any(|a| a.shape != first.shape) {
        return Err("stack".into());
    }
    let wide = arrays.iter().map(|a| a.expand_dims(&[axis])).collect::<Result<Vec<_>>>()?;
    concat(&wide.iter().collect::<Vec<_>>(), axis)
}
