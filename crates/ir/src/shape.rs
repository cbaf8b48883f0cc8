//! Shapes: how many elements along each axis, held inline so that recording an operation allocates only its node.
//!
//! Row-major order throughout: the last axis is the one that is contiguous in memory.

use crate::error::{Error, Result};
use std::fmt;
use std::ops::Deref;

/// The most axes a tensor may have. Eight is what a windowed, batched convolution needs (7) and one to spare; a shape
/// stays a plain copyable value of 72 bytes.
pub const MAX_RANK: usize = 8;

/// The extent of each axis. Dereferences to a slice.
///
/// ```
/// use breakeven_ir::Shape;
/// let shape = Shape::new(&[2, 3])?;
/// assert_eq!((shape.rank(), shape.elems(), shape[1]), (2, 6, 3));
/// assert_eq!(shape.broadcast(&Shape::new(&[3])?)?, shape);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    dims: [usize; MAX_RANK],
}

impl Shape {
    /// The shape of a 0-d tensor: no axes, one element.
    pub const SCALAR: Shape = Shape { rank: 0, dims: [0; MAX_RANK] };

    /// A shape from its extents. Refused: more than [`MAX_RANK`] axes, or more elements than memory can address.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(Error::TooManyAxes { rank: dims.len() });
        }
        // The product over non-zero extents, so that [0, huge, huge] has sane strides too.
        let mut elems: usize = 1;
        for &dim in dims {
            elems = elems
                .checked_mul(dim.max(1))
                .filter(|&n| n <= isize::MAX as usize / 4)
                .ok_or_else(|| Error::TooLarge { dims: dims.to_vec() })?;
        }
        let mut shape = Shape { rank: dims.len() as u8, dims: [0; MAX_RANK] };
        shape.dims[..dims.len()].copy_from_slice(dims);
        Ok(shape)
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// How many elements.
    pub fn elems(&self) -> usize {
        self.iter().product()
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank()]
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> [i64; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut step = 1i64;
        for axis in (0..self.rank()).rev() {
            strides[axis] = step;
            step *= self.dims[axis].max(1) as i64;
        }
        strides
    }

    /// The shape that both broadcast to by numpy's rule: aligned at the last axis, extents equal or 1.
    pub fn broadcast(&self, other: &Shape) -> Result<Shape> {
        let rank = self.rank().max(other.rank());
        let mut out = Shape { rank: rank as u8, dims: [0; MAX_RANK] };
        for back in 1..=rank {
            let a = if back <= self.rank() { self[self.rank() - back] } else { 1 };
            let b = if back <= other.rank() { other[other.rank() - back] } else { 1 };
            out.dims[rank - back] = match (a, b) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return Err(Error::Broadcast { left: *self, right: *other }),
            };
        }
        // Two shapes that are each addressable may broadcast to one that is not.
        Shape::new(out.dims())
    }

    /// Axis `axis` as an index, counting from the end when it is negative.
    pub fn axis(&self, axis: isize) -> Result<usize> {
        let rank = self.rank() as isize;
        if axis >= -rank && axis < rank {
            Ok((if axis < 0 { axis + rank } else { axis }) as usize)
        } else {
            Err(Error::Axis { axis, shape: *self })
        }
    }

    /// A set of axes as a bit mask. Each may be named once; an empty list means every axis.
    pub fn axes(&self, axes: &[isize]) -> Result<AxisSet> {
        if axes.is_empty() {
            return Ok(AxisSet::all(self.rank()));
        }
        let mut set = AxisSet::default();
        for &axis in axes {
            if !set.insert(self.axis(axis)?) {
                return Err(Error::RepeatedAxis { axis, shape: *self });
            }
        }
        Ok(set)
    }

    /// This shape with the axes of `set` reduced: to extent 1 if `keepdims`, else gone.
    pub fn reduced(&self, set: AxisSet, keepdims: bool) -> Shape {
        let mut out = Shape::SCALAR;
        for (axis, &dim) in self.iter().enumerate() {
            match set.contains(axis) {
                false => out.push(dim),
                true if keepdims => out.push(1),
                true => {}
            }
        }
        out
    }

    /// Adds an axis at the end. The caller keeps the rank within [`MAX_RANK`].
    pub(crate) fn push(&mut self, dim: usize) {
        self.dims[self.rank()] = dim;
        self.rank += 1;
    }

    /// This shape with `axis` set to `dim`.
    pub(crate) fn with(mut self, axis: usize, dim: usize) -> Shape {
        self.dims[axis] = dim;
        self
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        self.dims()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for (axis, dim) in self.iter().enumerate() {
            write!(f, "{}{dim}", if axis == 0 { "" } else { ", " })?;
        }
        write!(f, "]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What may be given where a shape is asked for: a slice, an array, a `Vec` or a [`Shape`].
///
/// ```
/// use breakeven_ir::IntoShape;
/// assert_eq!([2, 3].into_shape()?, vec![2, 3].as_slice().into_shape()?);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub trait IntoShape {
    /// The shape, checked.
    fn into_shape(self) -> Result<Shape>;
}
impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}
impl IntoShape for &[usize] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl IntoShape for &Vec<usize> {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}
impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

/// A set of axes.
///
/// ```
/// use breakeven_ir::Shape;
/// let set = Shape::new(&[2, 3, 4])?.axes(&[0, -1])?;
/// assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct AxisSet(u8);

impl AxisSet {
    /// Axes 0 to `rank - 1`.
    pub fn all(rank: usize) -> AxisSet {
        AxisSet(((1u16 << rank) - 1) as u8)
    }
    /// Adds an axis; false if it was there already.
    pub fn insert(&mut self, axis: usize) -> bool {
        let new = !self.contains(axis);
        self.0 |= 1 << axis;
        new
    }
    /// Is `axis` in the set?
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }
    /// The axes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_RANK).filter(move |&axis| self.contains(axis))
    }
    /// The set as a bit mask, axis 0 lowest.
    pub fn bits(self) -> u8 {
        self.0
    }
}
