//! `ndarray` arrays in and out (feature `ndarray`).

use crate::array::{Array, View};
use crate::error::{Error, Result};
use breakeven_ir::{Element, Readable, Tensor};
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn};

/// A tensor from an `ndarray` array: an owned one in standard layout is taken over without a copy.
///
/// ```
/// use breakeven::{Engine, FromNdarray, Tensor};
/// let x = Tensor::from_ndarray(ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]))?;
/// let y = &Engine::new()?.run(&[&x.transpose()?])?[0];
/// assert_eq!(y.to_ndarray::<f32>()?, ndarray::arr2(&[[1.0f32, 3.0], [2.0, 4.0]]).into_dyn());
/// # Ok::<(), breakeven::Error>(())
/// ```
pub trait FromNdarray: Sized {
    /// Takes the array over.
    fn from_ndarray<T: Element, D: Dimension>(array: ndarray::Array<T, D>) -> Result<Self>;
    /// Copies an array of any layout.
    fn from_ndarray_view<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Self>;
}

impl FromNdarray for Tensor {
    fn from_ndarray<T: Element, D: Dimension>(array: ndarray::Array<T, D>) -> Result<Tensor> {
        let shape = array.shape().to_vec();
        if !array.is_standard_layout() {
            return Tensor::from_ndarray_view(&array);
        }
        let (data, offset) = array.into_raw_vec_and_offset();
        let elems: usize = shape.iter().product();
        let data = match offset {
            None | Some(0) if data.len() == elems => data,
            offset => data.into_iter().skip(offset.unwrap_or(0)).take(elems).collect(),
        };
        Ok(Tensor::from_vec(data, shape.as_slice())?)
    }

    fn from_ndarray_view<T: Element, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Tensor> {
        Ok(Tensor::from_vec(array.iter().copied().collect(), array.shape())?)
    }
}

impl Array {
    /// A view as an `ndarray` array, without a copy; bools are read as `u8`.
    pub fn to_ndarray_view<T: Readable>(&self) -> Result<ArrayViewD<'_, T>> {
        let unaligned = |_| Error::Unaligned { dtype: self.dtype() };
        ArrayViewD::from_shape(IxDyn(self.shape().dims()), self.as_slice::<T>()?).map_err(unaligned)
    }

    /// A copy as an `ndarray` array.
    pub fn to_ndarray<T: Readable>(&self) -> Result<ArrayD<T>> {
        Ok(self.to_ndarray_view::<T>()?.to_owned())
    }
}

impl<'a, D: Dimension> TryFrom<&'a ndarray::Array<f32, D>> for View<'a> {
    type Error = Error;
    /// Borrows an array in standard layout.
    fn try_from(array: &'a ndarray::Array<f32, D>) -> Result<View<'a>> {
        let slice = array.as_slice().ok_or(Error::Unaligned { dtype: breakeven_ir::DType::F32 })?;
        View::from(slice).shaped(array.shape())
    }
}
