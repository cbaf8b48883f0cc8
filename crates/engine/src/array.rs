//! Values on the host: results ([`Array`]), and borrowed memory that goes in ([`View`]) and comes out ([`ViewMut`]).

use crate::error::{Error, Result};
use breakeven_ir::backend::Source;
use breakeven_ir::{Buffer, DType, Readable, Scalar, Shape, Tensor, read_as};

/// A computed array. Its memory comes from the engine's pool and goes back there when the last clone, or tensor made
/// from it, is dropped.
///
/// ```
/// use breakeven::{Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let y = &engine.run(&[&(&x * 10.0)?])?[0];
/// assert_eq!(y.shape().dims(), [2, 2]);
/// assert_eq!(y.as_slice::<f32>()?, [10.0, 20.0, 30.0, 40.0]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Array {
    data: Buffer,
    dtype: DType,
    shape: Shape,
}

impl Array {
    pub(crate) fn new(data: Buffer, dtype: DType, shape: Shape) -> Array {
        Array { data, dtype, shape }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its memory, row-major; a bool is one byte.
    pub fn as_bytes(&self) -> &[u8] {
        self.data.as_bytes()
    }

    /// Its elements in row-major order; bools are read as `u8`.
    pub fn as_slice<T: Readable>(&self) -> Result<&[T]> {
        read_as(self.as_bytes(), self.dtype)?.ok_or(Error::Unaligned { dtype: self.dtype })
    }

    /// A copy of its elements.
    pub fn to_vec<T: Readable>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// Every element as f64, which holds them all exactly.
    pub fn to_f64(&self) -> Vec<f64> {
        let lane = |bytes: &[u8]| {
            let bits = bytes.try_into().map_or(u32::from(bytes[0]), u32::from_ne_bytes);
            Scalar::from_bits(self.dtype, bits).to_f64()
        };
        self.as_bytes().chunks_exact(self.dtype.size_bytes()).map(lane).collect()
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        self.data
    }

    /// The array as a tensor for the next batch, without a copy.
    pub fn to_tensor(&self) -> Tensor {
        // The buffer was made for this shape, so there is nothing that could be refused.
        Tensor::from_buffer(self.data.clone(), self.dtype, self.shape).unwrap_or_else(|_| Tensor::scalar(0.0))
    }
}

/// Borrowed memory that a program reads: a slice (matched by its number of elements), an [`Array`], or a data tensor.
///
/// ```
/// use breakeven::{DType, View};
/// let view = View::from([1.0f32, 2.0].as_slice());
/// assert_eq!(view.dtype(), DType::F32);
/// ```
// In this order: what is read of every task of many lies in the first 24 bytes, and hence in one cache line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Empty for what lies on a device and not on the host.
    bytes: &'a [u8],
    pub(crate) dtype: DType,
    /// Is it a plain slice: of no shape of its own, and nowhere but on the host?
    is_plain: bool,
    /// The shared memory behind a tensor's data.
    shared: Option<&'a Buffer>,
    /// `None` for a plain slice, which takes the shape that is expected.
    pub(crate) shape: Option<Shape>,
}

impl<'a> View<'a> {
    /// Elements in row-major order under a shape of their own: what tasks of different sizes need.
    pub fn shaped(self, shape: impl breakeven_ir::IntoShape) -> Result<View<'a>> {
        let shape = shape.into_shape()?;
        let found = self.len_bytes() / self.dtype.size_bytes();
        if shape.elems() != found {
            return Err(breakeven_ir::Error::DataLength { found, shape }.into());
        }
        Ok(View { shape: Some(shape), is_plain: false, ..self })
    }

    /// Its dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// A tensor's data. `None` if the tensor is computed and has no data yet.
    pub fn of(tensor: &'a Tensor) -> Option<View<'a>> {
        let shared = tensor.as_data()?;
        // What lies on a device is fetched when the CPU needs it, and not before.
        let bytes = if shared.resident().is_some() { &[] } else { shared.as_bytes() };
        let (dtype, shape) = (tensor.dtype(), Some(tensor.shape()));
        Some(View { bytes, dtype, is_plain: false, shared: Some(shared), shape })
    }

    /// The bytes of a plain slice.
    #[inline]
    pub(crate) fn plain(&self) -> Option<&'a [u8]> {
        self.is_plain.then_some(self.bytes)
    }

    /// How many bytes there are.
    #[inline]
    pub(crate) fn len_bytes(&self) -> usize {
        self.shared.map_or(self.bytes.len(), Buffer::len_bytes)
    }

    /// The bytes on the host.
    #[inline]
    pub(crate) fn host(&self) -> &'a [u8] {
        match self.shared {
            Some(shared) if self.is_elsewhere() => shared.as_bytes(),
            _ => self.bytes,
        }
    }

    /// Makes sure that the bytes are on the host, or tells why they can't be.
    pub(crate) fn fetch(&self) -> Result<()> {
        if let Some(shared) = self.shared.filter(|_| self.is_elsewhere()) {
            shared.try_bytes()?;
        }
        Ok(())
    }

    /// Does it lie on a device rather than on the host?
    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_some()
    }

    /// As a backend reads it.
    pub(crate) fn source(&self) -> Source<'a> {
        self.shared.map_or(Source::Bytes(self.bytes), Source::Shared)
    }
}

impl<'a> From<&'a Array> for View<'a> {
    fn from(array: &'a Array) -> View<'a> {
        let (dtype, shape) = (array.dtype, Some(array.shape));
        View { bytes: array.as_bytes(), dtype, is_plain: false, shared: None, shape }
    }
}

/// Borrowed memory that a program writes: a slice with as many elements as the output has.
///
/// ```
/// use breakeven::ViewMut;
/// let mut out = vec![0.0f32; 4];
/// let view = ViewMut::from(out.as_mut_slice());
/// ```
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
}

macro_rules! views {
    ($($t:ty => $dtype:ident;)*) => {$(
        impl<'a> From<&'a [$t]> for View<'a> {
            fn from(data: &'a [$t]) -> View<'a> {
                let bytes = bytemuck::cast_slice(data);
                View { bytes, dtype: DType::$dtype, is_plain: true, shared: None, shape: None }
            }
        }
        impl<'a> From<&'a Vec<$t>> for View<'a> {
            fn from(data: &'a Vec<$t>) -> View<'a> {
                data.as_slice().into()
            }
        }
    )*};
}
views! {
    f32 => F32;
    i32 => I32;
    u32 => U32;
    bool => Bool;
}

macro_rules! views_mut {
    ($($t:ty => $dtype:ident;)*) => {$(
        impl<'a> From<&'a mut [$t]> for ViewMut<'a> {
            fn from(data: &'a mut [$t]) -> ViewMut<'a> {
                ViewMut { bytes: bytemuck::cast_slice_mut(data), dtype: DType::$dtype }
            }
        }
        impl<'a> From<&'a mut Vec<$t>> for ViewMut<'a> {
            fn from(data: &'a mut Vec<$t>) -> ViewMut<'a> {
                data.as_mut_slice().into()
            }
        }
    )*};
}
// A bool output is written as bytes: 0 or 1.
views_mut! {
    f32 => F32;
    i32 => I32;
    u32 => U32;
    u8 => Bool;
}
