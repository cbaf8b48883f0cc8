//! Where values come from: data, constants, counted ranges, and the named inputs of a program.

use super::{Kind, Tensor};
use crate::buffer::Buffer;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::shape::{IntoShape, Shape};
use std::sync::Arc;

/// A named value that a program is given each time it runs.
///
/// ```
/// use breakeven_ir::{DType, Tensor};
/// let x = Tensor::input("x", DType::F32, [3])?;
/// assert_eq!(x.as_input().unwrap().name(), "x");
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct Input {
    name: String,
}

impl Input {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Tensor {
    /// A named input of a program that is still to be compiled.
    pub fn input(name: &str, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        Ok(Tensor::node(Kind::Input(Arc::new(Input { name: name.into() })), shape.into_shape()?, dtype))
    }

    /// A copy of `data` in row-major order.
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<Tensor> {
        Tensor::from_vec(data.to_vec(), shape)
    }

    /// Takes `data` over, in row-major order, without a copy.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl IntoShape) -> Result<Tensor> {
        Tensor::from_buffer(Buffer::from_vec(data), T::DTYPE, shape)
    }

    /// Shared bytes in native byte order and row-major order, without a copy. A bool is one byte, 0 or 1.
    ///
    /// ```
    /// use breakeven_ir::{DType, Tensor};
    /// let bytes = bytes::Bytes::from_owner([1.0f32, 2.0].map(f32::to_ne_bytes).concat());
    /// let x = Tensor::from_bytes(bytes, DType::F32, [2])?;
    /// # Ok::<(), breakeven_ir::Error>(())
    /// ```
    pub fn from_bytes(data: bytes::Bytes, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        let buffer = Buffer::new(Arc::new(data));
        let wrong = buffer.as_bytes().iter().find(|&&byte| dtype == DType::Bool && byte > 1);
        if let Some(&byte) = wrong {
            let (what, expected) = ("a bool", "a byte of 0 or 1");
            return Err(Error::Parameter { op: "from_bytes", what, value: f64::from(byte), expected });
        }
        Tensor::from_buffer(buffer, dtype, shape)
    }

    /// A buffer's data in native byte order and row-major order, without a copy.
    pub fn from_buffer(data: Buffer, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape()?;
        // Only their number is asked for: the bytes may lie on a device, and stay there.
        if data.len_bytes() != shape.elems() * dtype.size_bytes() {
            return Err(Error::DataLength { found: data.len_bytes() / dtype.size_bytes(), shape });
        }
        Ok(Tensor::node(Kind::Data(data), shape, dtype))
    }

    /// A 0-d constant.
    pub fn scalar(value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        Tensor::node(Kind::Const(value), Shape::SCALAR, value.dtype())
    }

    /// `value` everywhere.
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>) -> Result<Tensor> {
        Tensor::scalar(value).broadcast_to(shape)
    }

    /// Zeros of `dtype`.
    pub fn zeros(shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        Tensor::full(shape, Scalar::zero(dtype))
    }

    /// Ones of `dtype`.
    pub fn ones(shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        Tensor::full(shape, Scalar::from(1i32).cast(dtype))
    }

    /// `start, start + step, ..` up to but not including `stop`, as numpy's `arange`: the dtype is that of the three
    /// numbers.
    ///
    /// ```
    /// use breakeven_ir::Tensor;
    /// assert_eq!(Tensor::arange(0i32, 10, 3)?.shape().dims(), [4]);
    /// # Ok::<(), breakeven_ir::Error>(())
    /// ```
    pub fn arange<T: Element>(start: T, stop: T, step: T) -> Result<Tensor> {
        let (start, stop, step) = (start.scalar(), stop.scalar(), step.scalar());
        if T::DTYPE == DType::Bool {
            return Err(Error::DType { op: "arange", dtypes: vec![T::DTYPE], help: "count in i32, u32 or f32" });
        }
        let width = (stop.to_f64() - start.to_f64()) / step.to_f64();
        if step.to_f64() == 0.0 || !width.is_finite() || width > 1e15 {
            let value = step.to_f64();
            let expected = "a step other than 0 that reaches the end of a finite range";
            return Err(Error::Parameter { op: "arange", what: "the step", value, expected });
        }
        let shape = Shape::new(&[width.ceil().max(0.0) as usize])?;
        Ok(Tensor::node(Kind::Arange { start, step }, shape, T::DTYPE))
    }
}
