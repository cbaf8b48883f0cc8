//! A tensor and what it must hold: each operation is recorded on the library and computed by the reference at once.
//!
//! Both must agree on whether the operation is defined, and on the shape and dtype of its result, when it is
//! recorded; `compare` looks at the values once the library has run.

use crate::reference::{self, RefArray};
use breakeven::{DType, Element, Op, ReduceOp, ScanOp, Slice, Tensor};

/// A recorded tensor beside its reference.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What the library records.
    pub tensor: Tensor,
    /// What must come out.
    pub expected: RefArray,
}

/// The data of an array of f64 as elements of a dtype.
fn elements<T: Element>(array: &RefArray, one: fn(f64) -> T) -> Tensor {
    let data = array.data.iter().map(|&v| one(v)).collect();
    Tensor::from_vec(data, &array.shape).unwrap_or_else(|e| panic!("{e}"))
}

impl Pair {
    /// A leaf of data.
    pub fn leaf(array: RefArray) -> Pair {
        assert!(array.err.iter().all(|&e| e == 0.0), "a leaf is exact");
        let tensor = match array.dtype {
            DType::F32 => elements(&array, |v| v as f32),
            DType::I32 => elements(&array, |v| v as i32),
            DType::U32 => elements(&array, |v| v as u32),
            DType::Bool => elements(&array, |v| v != 0.0),
        };
        Pair { tensor, expected: array }
    }

    /// Both results, if both are; `None` if both refuse. One that refuses alone is a bug.
    #[track_caller]
    fn both(
        what: &str,
        tensor: Result<Tensor, breakeven::RecordError>,
        expected: reference::Result<RefArray>,
    ) -> Option<Pair> {
        match (tensor, expected) {
            (Ok(tensor), Ok(expected)) => {
                assert_eq!(tensor.shape().dims(), expected.shape, "{what}: shape");
                assert_eq!(tensor.dtype(), expected.dtype, "{what}: dtype");
                Some(Pair { tensor, expected })
            }
            (Err(_), Err(_)) => None,
            (Ok(tensor), Err(why)) => panic!("{what}: the library gives {tensor:?}, the reference refuses: {why}"),
            (Err(why), Ok(_)) => panic!("{what}: the library refuses: {why}"),
        }
    }

    /// An op of the table.
    pub fn apply(op: Op, args: &[&Pair]) -> Option<Pair> {
        let tensors: Vec<&Tensor> = args.iter().map(|a| &a.tensor).collect();
        let arrays: Vec<&RefArray> = args.iter().map(|a| &a.expected).collect();
        Pair::both(op.row().name, Tensor::apply(op, &tensors), reference::apply(op, &arrays))
    }

    /// Joined along an axis that they have.
    pub fn concat(args: &[&Pair], axis: isize) -> Option<Pair> {
        let tensors: Vec<&Tensor> = args.iter().map(|a| &a.tensor).collect();
        let arrays: Vec<&RefArray> = args.iter().map(|a| &a.expected).collect();
        Pair::both("concat", Tensor::concat(&tensors, axis), reference::concat(&arrays, axis))
    }

    /// Joined along a new axis.
    pub fn stack(args: &[&Pair], axis: isize) -> Option<Pair> {
        let tensors: Vec<&Tensor> = args.iter().map(|a| &a.tensor).collect();
        let arrays: Vec<&RefArray> = args.iter().map(|a| &a.expected).collect();
        Pair::both("stack", Tensor::stack(&tensors, axis), reference::stack(&arrays, axis))
    }

    /// numpy's `arange` in f32.
    pub fn arange_f32(start: f32, stop: f32, step: f32) -> Option<Pair> {
        let expected = RefArray::arange(DType::F32, start.into(), stop.into(), step.into());
        Pair::both("arange", Tensor::arange(start, stop, step), Ok(expected))
    }

    /// numpy's `arange` in i32.
    pub fn arange_i32(start: i32, stop: i32, step: i32) -> Option<Pair> {
        let expected = RefArray::arange(DType::I32, start.into(), stop.into(), step.into());
        Pair::both("arange", Tensor::arange(start, stop, step), Ok(expected))
    }

    /// `value` everywhere.
    pub fn full_f32(shape: &[usize], value: f32) -> Option<Pair> {
        Pair::both("full", Tensor::full(shape, value), Ok(RefArray::full(DType::F32, shape, value.into())))
    }

    /// Limited to a range that takes this tensor's dtype.
    pub fn clip(&self, low: &Pair, high: &Pair) -> Option<Pair> {
        let expected = self.expected.clip(&low.expected, &high.expected);
        Pair::both("clip", self.tensor.clip(&low.tensor, &high.tensor), expected)
    }
}

/// Methods that both sides have under the same name with the same arguments.
macro_rules! mirrored {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl Pair {$(
            #[doc = concat!("`", stringify!($name), "` on both sides.")]
            pub fn $name(&self, $($arg: $ty),*) -> Option<Pair> {
                let what = format!("{} of {}{}", stringify!($name), self.tensor.dtype(), self.tensor.shape());
                Pair::both(&what, self.tensor.$name($($arg),*), self.expected.$name($($arg.into()),*))
            }
        )*}
    };
}
mirrored! {
    reduce(op: ReduceOp, axes: &[isize], keepdims: bool);
    scan(op: ScanOp, axis: isize);
    mean(axes: &[isize], keepdims: bool);
    var(axes: &[isize], ddof: u32, keepdims: bool);
    std(axes: &[isize], ddof: u32, keepdims: bool);
    norm(axes: &[isize], keepdims: bool);
    softmax(axis: isize);
    log_softmax(axis: isize);
    layer_norm(axis: isize, eps: f32);
    relu();
    leaky_relu(slope: f32);
    elu(alpha: f32);
    reshape(to: &[isize]);
    permute(order: &[isize]);
    transpose();
    expand_dims(axes: &[isize]);
    squeeze(axes: &[isize]);
    broadcast_to(shape: &[usize]);
    slice(slices: &[Slice]);
    select(axis: isize, index: isize);
    flip(axes: &[isize]);
    rot90(times: i32);
    windows(axes: &[isize], sizes: &[usize], strides: &[usize]);
    tile(times: &[usize]);
    pad(widths: &[(usize, usize)], value: f32);
}

impl Pair {
    /// The matrix product.
    pub fn matmul(&self, other: &Pair) -> Option<Pair> {
        Pair::both("matmul", self.tensor.matmul(&other.tensor), reference::matmul(&self.expected, &other.expected))
    }

    /// numpy's `dot`.
    pub fn dot(&self, other: &Pair) -> Option<Pair> {
        Pair::both("dot", self.tensor.dot(&other.tensor), reference::dot(&self.expected, &other.expected))
    }

    /// The 2-d convolution.
    pub fn conv2d(&self, weight: &Pair, stride: [usize; 2], padding: [usize; 2]) -> Option<Pair> {
        let expected = reference::conv2d(&self.expected, &weight.expected, stride, padding);
        Pair::both("conv2d", self.tensor.conv2d(&weight.tensor, stride, padding), expected)
    }

    /// Elements at indices that lie within the axis.
    pub fn take(&self, indices: &Pair, axis: isize) -> Option<Pair> {
        Pair::both("take", self.tensor.take(&indices.tensor, axis), self.expected.take(&indices.expected, axis))
    }

    /// Two axes exchanged.
    pub fn swap_axes(&self, a: isize, b: isize) -> Option<Pair> {
        let expected = self.expected.axis(a).and_then(|a| {
            let mut order: Vec<isize> = (0..self.expected.rank() as isize).collect();
            order.swap(a, self.expected.axis(b)?);
            self.expected.permute(&order)
        });
        Pair::both("swap_axes", self.tensor.swap_axes(a, b), expected)
    }
}
