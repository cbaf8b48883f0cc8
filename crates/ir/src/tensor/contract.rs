//! Contractions: matmul with numpy's batch rules, dot, and conv2d as a window view plus a contraction.

use super::{Kind, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{MAX_RANK, Shape};

impl Tensor {
    /// The matrix product with numpy's rules: a 1-d operand gets an axis that the result loses again, axes before
    /// the last two broadcast. Integers are multiplied as f32.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let (left, right) = (self.shape(), other.shape());
        let refuse = |why| Error::Matmul { left, right, why };
        if left.rank() == 0 || right.rank() == 0 {
            return Err(refuse("a 0-d tensor can't be multiplied as a matrix; use `*`"));
        }
        let a = if left.rank() == 1 { self.expand_dims(&[0])? } else { self.clone() }.cast(DType::F32)?;
        let b = if right.rank() == 1 { other.expand_dims(&[1])? } else { other.clone() }.cast(DType::F32)?;
        let (sa, sb) = (a.shape(), b.shape());
        let (ra, rb) = (sa.rank(), sb.rank());
        if sa[ra - 1] != sb[rb - 2] {
            return Err(refuse("the last axis of the left must equal the second last (or only) axis of the right"));
        }
        let batch = Shape::new(&sa[..ra - 2])?
            .broadcast(&Shape::new(&sb[..rb - 2])?)
            .map_err(|_| refuse("the axes before the last two do not broadcast"))?;
        if batch.rank() + 2 > MAX_RANK {
            return Err(Error::TooManyAxes { rank: batch.rank() + 2 });
        }
        let shape = Shape::new(&[batch.dims(), &[sa[ra - 2], sb[rb - 1]]].concat())?;
        let product = Tensor::node(Kind::Matmul { left: a, right: b }, shape, DType::F32);
        match (left.rank(), right.rank()) {
            (1, 1) => product.squeeze(&[-2, -1]),
            (1, _) => product.squeeze(&[-2]),
            (_, 1) => product.squeeze(&[-1]),
            _ => Ok(product),
        }
    }

    /// numpy's `dot` for vectors and matrices: the sum of products of two vectors, else [`Tensor::matmul`].
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        match (self.shape().rank(), other.shape().rank()) {
            (0, _) | (_, 0) => self.mul(other),
            (1, 1) => {
                if self.shape() != other.shape() {
                    let (left, right) = (self.shape(), other.shape());
                    return Err(Error::Matmul { left, right, why: "two vectors must be of one length" });
                }
                self.cast(DType::F32)?.mul(other.cast(DType::F32)?)?.sum(&[], false)
            }
            (_, 1 | 2) => self.matmul(other),
            _ => Err(Error::Matmul {
                left: self.shape(),
                right: other.shape(),
                why: "dot takes a vector or a matrix on the right; use matmul for batches",
            }),
        }
    }

    /// A 2-d convolution (cross-correlation, as in every neural network library): input `[n, c, h, w]`, weight
    /// `[o, c, kh, kw]`, result `[n, o, (h + 2 pad - kh) / stride + 1, ..]`.
    ///
    /// ```
    /// use breakeven_ir::{DType, Tensor};
    /// let x = Tensor::input("x", DType::F32, [1, 3, 8, 8])?;
    /// let w = Tensor::input("w", DType::F32, [4, 3, 3, 3])?;
    /// assert_eq!(x.conv2d(&w, [1, 1], [1, 1])?.shape().dims(), [1, 4, 8, 8]);
    /// # Ok::<(), breakeven_ir::Error>(())
    /// ```
    pub fn conv2d(&self, weight: &Tensor, stride: [usize; 2], padding: [usize; 2]) -> Result<Tensor> {
        let (input, w) = (self.shape(), weight.shape());
        let refuse = |why| Error::Conv2d { input, weight: w, why };
        if input.rank() != 4 || w.rank() != 4 {
            return Err(refuse("both need four axes: [n, c, h, w] and [o, c, kh, kw]"));
        }
        if input[1] != w[1] {
            return Err(refuse("the number of channels (axis 1) differs"));
        }
        if stride.contains(&0) {
            return Err(refuse("the stride must be at least 1"));
        }
        if (0..2).any(|i| input[2 + i].saturating_add(padding[i].saturating_mul(2)) < w[2 + i] || w[2 + i] == 0) {
            return Err(refuse("the kernel must have elements and fit the padded input"));
        }
        let x = self.cast(DType::F32)?;
        let pad = [(0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1])];
        let x = if padding == [0, 0] { x } else { x.pad(&pad, 0.0)? };
        // [n, c, oh, ow, kh, kw] -> [n, c, kh, kw, oh, ow] -> [n, c kh kw, oh ow]
        let windows = x.windows(&[2, 3], &[w[2], w[3]], &stride)?;
        let (n, oh, ow) = (input[0], windows.shape()[2], windows.shape()[3]);
        let depth = w[1] * w[2] * w[3];
        let columns = windows.permute(&[0, 1, 4, 5, 2, 3])?.reshape_to(&[n, depth, oh * ow])?;
        let filters = weight.cast(DType::F32)?.reshape_to(&[w[0], depth])?;
        filters.matmul(&columns)?.reshape_to(&[n, w[0], oh, ow])
    }
}
