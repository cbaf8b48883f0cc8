//! Mistakes: wrong shapes, axes, dtypes and numbers enter; typed errors that name what was wrong leave, never a panic.

use breakeven::{DType, Op, Plan, RecordError as Error, ReduceOp, ScanOp, Slice, Tensor, s};
use proptest::prelude::*;

type Recorded = Result<Tensor, Error>;

fn f32s(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

fn of(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, dtype).unwrap()
}

/// What was written, what came of it, which variant it must be, and what its message must say.
type Case = (&'static str, Recorded, fn(&Error) -> bool, &'static [&'static str]);

/// `Error::Variant`, as a test.
macro_rules! is {
    ($variant:ident) => {
        |e| matches!(e, Error::$variant { .. })
    };
}

fn shape_mistakes() -> Vec<Case> {
    let (a, b) = (f32s(&[2, 3]), f32s(&[4, 3]));
    let (v, cube) = (f32s(&[5]), f32s(&[2, 3, 4]));
    let (image, filter) = (f32s(&[1, 3, 8, 8]), f32s(&[4, 3, 3, 3]));
    vec![
        ("add", &a + &b, is!(Broadcast), &["[2, 3]", "[4, 3]"]),
        ("operator with a result", &a + (&v * 2.0), is!(Broadcast), &["[2, 3]", "[5]"]),
        ("comparison", a.lt(&v), is!(Broadcast), &["[2, 3]", "[5]"]),
        ("where", Tensor::where_(&a, &v, 1.0), is!(Broadcast), &["[2, 3]", "[5]"]),
        ("where's values", Tensor::where_(&a.gt(0.0).unwrap(), &a, &b), is!(Broadcast), &["[2, 3]", "[4, 3]"]),
        ("clip", a.clip(&v, 1.0), is!(Broadcast), &["[2, 3]", "[5]"]),
        ("broadcast_to", a.broadcast_to([2, 4]), is!(BroadcastTo), &["[2, 3]", "[2, 4]"]),
        ("broadcast_to fewer axes", a.broadcast_to([3]), is!(BroadcastTo), &["[2, 3]", "[3]"]),
        ("broadcast_to 1", v.broadcast_to([1]), is!(BroadcastTo), &["[5]", "[1]"]),
        ("matmul", a.matmul(&b), is!(Matmul), &["[2, 3]", "[4, 3]"]),
        ("matmul by a vector", a.matmul(&v), is!(Matmul), &["[2, 3]", "[5]"]),
        ("matmul of a vector", v.matmul(&a), is!(Matmul), &["[5]", "[2, 3]"]),
        ("matmul of a number", Tensor::scalar(1.0).matmul(&a), is!(Matmul), &["[]", "[2, 3]"]),
        ("matmul of batches", f32s(&[2, 5, 3]).matmul(&f32s(&[3, 3, 4])), is!(Matmul), &["[2, 5, 3]", "[3, 3, 4]"]),
        ("dot of vectors", v.dot(&f32s(&[4])), is!(Matmul), &["[5]", "[4]"]),
        ("dot with a batch", v.dot(&cube), is!(Matmul), &["[5]", "[2, 3, 4]"]),
        ("conv2d of a matrix", a.conv2d(&filter, [1, 1], [0, 0]), is!(Conv2d), &["[2, 3]", "[4, 3, 3, 3]"]),
        (
            "conv2d channels",
            f32s(&[1, 2, 8, 8]).conv2d(&filter, [1, 1], [0, 0]),
            is!(Conv2d),
            &["[1, 2, 8, 8]", "[4, 3, 3, 3]"],
        ),
        ("conv2d stride", image.conv2d(&filter, [0, 1], [0, 0]), is!(Conv2d), &["[1, 3, 8, 8]", "stride"]),
        (
            "conv2d kernel",
            f32s(&[1, 3, 2, 8]).conv2d(&filter, [1, 1], [0, 0]),
            is!(Conv2d),
            &["[1, 3, 2, 8]", "[4, 3, 3, 3]"],
        ),
        ("reshape", a.reshape(&[4, 2]), is!(Reshape), &["[2, 3]", "6", "[4, 2]"]),
        ("reshape with two -1", a.reshape(&[-1, -1]), is!(Reshape), &["[2, 3]", "[-1, -1]"]),
        ("reshape below -1", a.reshape(&[-2, 3]), is!(Reshape), &["[2, 3]", "[-2, 3]"]),
        ("reshape -1 beside 0", f32s(&[0]).reshape(&[0, -1]), is!(Reshape), &["[0]", "[0, -1]"]),
        ("reshape -1 with a rest", a.reshape(&[4, -1]), is!(Reshape), &["[2, 3]", "[4, -1]"]),
        ("concat", Tensor::concat(&[&a, &v], 0), is!(Join), &["concat", "[2, 3]", "[5]"]),
        ("concat off the axis", Tensor::concat(&[&a, &b], 1), is!(Join), &["[2, 3]", "[4, 3]"]),
        ("stack", Tensor::stack(&[&a, &b], 0), is!(Join), &["stack", "[2, 3]", "[4, 3]"]),
        ("concat of nothing", Tensor::concat(&[], 0), is!(Nothing), &["concat"]),
        ("stack of nothing", Tensor::stack(&[], 0), is!(Nothing), &["stack"]),
        ("data", Tensor::from_slice(&[1.0f32, 2.0], [3]), is!(DataLength), &["2", "[3]", "3"]),
        ("nine axes", Tensor::zeros([1; 9], DType::F32), is!(TooManyAxes), &["9", "8"]),
        ("nine axes by expand_dims", f32s(&[1; 8]).expand_dims(&[0]), is!(TooManyAxes), &["9"]),
        ("nine axes by windows", f32s(&[2; 8]).windows(&[0], &[2], &[1]), is!(TooManyAxes), &["9"]),
        ("nine axes by take", f32s(&[2; 8]).take(&of(DType::I32, &[1, 1]), 0), is!(TooManyAxes), &["9"]),
        ("nine axes by stack", Tensor::stack(&[&f32s(&[1; 8])], 0), is!(TooManyAxes), &["9"]),
        ("nine axes by tile", a.tile(&[1; 9]), is!(TooManyAxes), &["9"]),
        ("too large", Tensor::zeros([1 << 40, 1 << 40], DType::F32), is!(TooLarge), &["1099511627776"]),
        ("too large by broadcast", f32s(&[1 << 40, 1]) + f32s(&[1 << 40]), is!(TooLarge), &["1099511627776"]),
        ("too large by pad", v.pad(&[(usize::MAX, 1)], 0.0), is!(TooLarge), &["5"]),
        ("too large by tile", v.tile(&[usize::MAX]), is!(TooLarge), &["5"]),
        ("too large by tile of nothing", f32s(&[16, 0]).tile(&[1 << 60, 1]), is!(TooLarge), &["16, 0"]),
    ]
}

fn argument_mistakes() -> Vec<Case> {
    let (a, v, empty) = (f32s(&[2, 3]), f32s(&[5]), f32s(&[0, 3]));
    let (ints, units, bools) = (of(DType::I32, &[3]), of(DType::U32, &[3]), of(DType::Bool, &[3]));
    vec![
        ("sum", a.sum(&[2], false), is!(Axis), &["2", "[2, 3]", "-2 to 1"]),
        ("negative axis", a.max(&[-3], false), is!(Axis), &["-3", "[2, 3]"]),
        ("axis of a number", Tensor::scalar(1.0).sum(&[0], false), is!(Axis), &["0", "[]"]),
        ("argmax", a.argmax(Some(5), false), is!(Axis), &["5", "[2, 3]"]),
        ("cumsum", a.cumsum(7), is!(Axis), &["7", "[2, 3]"]),
        ("softmax", a.softmax(2), is!(Axis), &["2", "[2, 3]"]),
        ("log_softmax", a.log_softmax(-3), is!(Axis), &["-3", "[2, 3]"]),
        ("layer_norm", a.layer_norm(2, 1e-5), is!(Axis), &["2", "[2, 3]"]),
        ("mean", a.mean(&[2], false), is!(Axis), &["2", "[2, 3]"]),
        ("var", a.var(&[2], 0, false), is!(Axis), &["2", "[2, 3]"]),
        ("permute", a.permute(&[0, 2]), is!(Axis), &["2", "[2, 3]"]),
        ("swap_axes", a.swap_axes(0, 2), is!(Axis), &["2", "[2, 3]"]),
        ("flip", a.flip(&[2]), is!(Axis), &["2", "[2, 3]"]),
        ("squeeze", a.squeeze(&[2]), is!(Axis), &["2", "[2, 3]"]),
        ("expand_dims", a.expand_dims(&[3]), is!(Axis), &["3"]),
        ("take's axis", a.take(&ints, 2), is!(Axis), &["2", "[2, 3]"]),
        ("concat's axis", Tensor::concat(&[&a, &a], 2), is!(Axis), &["2", "[2, 3]"]),
        ("windows' axis", a.windows(&[2], &[1], &[1]), is!(Axis), &["2", "[2, 3]"]),
        ("select's axis", a.select(2, 0), is!(Axis), &["2", "[2, 3]"]),
        ("sum twice", a.sum(&[0, 0], false), is!(RepeatedAxis), &["0", "[2, 3]"]),
        ("sum twice, once negative", a.sum(&[1, -1], false), is!(RepeatedAxis), &["-1", "[2, 3]"]),
        ("windows twice", a.windows(&[0, 0], &[1, 1], &[1, 1]), is!(RepeatedAxis), &["0", "[2, 3]"]),
        ("permute twice", a.permute(&[0, 0]), is!(Movement), &["permute", "[2, 3]"]),
        ("permute too few", a.permute(&[0]), is!(Movement), &["permute", "[2, 3]"]),
        ("permute too many", a.permute(&[0; 9]), is!(Movement), &["permute", "[2, 3]"]),
        ("squeeze 2", a.squeeze(&[0]), is!(Movement), &["squeeze", "[2, 3]", "2"]),
        ("three slices", a.slice(&[s(..), s(..), s(..)]), is!(Movement), &["slice", "[2, 3]", "3", "2"]),
        ("step 0", a.slice(&[s(..).step(0)]), is!(Movement), &["slice", "[2, 3]", "0"]),
        ("pad pairs", a.pad(&[(1, 1)], 0.0), is!(Movement), &["pad", "[2, 3]", "1", "2"]),
        ("windows too wide", a.windows(&[1], &[4], &[1]), is!(Movement), &["windows", "[2, 3]", "4"]),
        ("windows of 0", a.windows(&[1], &[0], &[1]), is!(Movement), &["windows", "[2, 3]"]),
        ("windows in strides of 0", a.windows(&[1], &[1], &[0]), is!(Movement), &["windows", "[2, 3]"]),
        ("windows without strides", a.windows(&[1], &[1], &[]), is!(Movement), &["windows", "[2, 3]"]),
        ("rot90 of a vector", v.rot90(1), is!(Movement), &["rot90", "[5]"]),
        ("select outside", a.select(0, 2), is!(Movement), &["select", "[2, 3]", "2"]),
        ("take from nothing", empty.take(&ints, 0), is!(Movement), &["take", "[0, 3]"]),
        ("max of nothing", empty.max(&[0], false), is!(EmptyReduction), &["max", "[0, 3]"]),
        ("min of nothing", empty.min(&[], false), is!(EmptyReduction), &["min", "[0, 3]"]),
        ("argmax of nothing", empty.argmax(None, false), is!(EmptyReduction), &["argmax", "[0, 3]"]),
        ("argmin of nothing", empty.argmin(Some(0), true), is!(EmptyReduction), &["argmin", "[0, 3]"]),
        ("i32 and u32", &ints + &units, is!(DType), &["add", "i32", "u32"]),
        ("concat of i32 and u32", Tensor::concat(&[&ints, &units], 0), is!(DType), &["concat", "i32", "u32"]),
        ("bool - bool", bools.sub(&bools), is!(DType), &["sub", "bool"]),
        ("-bool", -&bools, is!(DType), &["neg", "bool"]),
        ("f32 & f32", a.and(&a), is!(DType), &["and", "f32"]),
        ("!f32", !&a, is!(DType), &["not", "f32"]),
        ("take by f32", a.take(&v, 0), is!(DType), &["take", "f32"]),
        ("take by bool", a.take(&bools, 0), is!(DType), &["take", "bool"]),
        ("arange of bools", Tensor::arange(false, true, true), is!(DType), &["arange", "bool"]),
        ("u32 + -1", &units + -1, is!(ScalarRange), &["-1", "u32"]),
        ("i32 + 2^31", ints.add(1i64 << 31), is!(ScalarRange), &["2147483648", "i32"]),
        ("arange without a step", Tensor::arange(0, 3, 0), is!(Parameter), &["arange", "step", "0"]),
        ("arange to infinity", Tensor::arange(0.0, f32::INFINITY, 1.0), is!(Parameter), &["arange"]),
        ("arange to NaN", Tensor::arange(0.0, f32::NAN, 1.0), is!(Parameter), &["arange"]),
        ("apply without arguments", Tensor::apply(Op::Add, &[&a]), is!(Parameter), &["add", "1", "2"]),
    ]
}

#[test]
fn every_mistake_is_a_typed_error_that_names_what_was_wrong() {
    for (what, recorded, expected, mentions) in shape_mistakes().into_iter().chain(argument_mistakes()) {
        let error = match recorded {
            Ok(tensor) => panic!("{what}: recorded {tensor:?}, expected an error"),
            Err(error) => error,
        };
        assert!(expected(&error), "{what}: {error:?}");
        let message = error.to_string();
        for part in mentions {
            assert!(message.contains(part), "{what}: `{message}` does not mention {part}");
        }
    }
}

/// Arguments of every kind, sensible and not.
#[derive(Debug, Clone)]
struct Arguments {
    shapes: [Vec<usize>; 3],
    dtypes: [DType; 3],
    axes: Vec<isize>,
    sizes: Vec<usize>,
    extents: Vec<isize>,
    slices: Vec<Slice>,
    widths: Vec<(usize, usize)>,
    number: f32,
    keepdims: bool,
}

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![
        20 => 0usize..6,
        1 => Just(16),
        1 => prop_oneof![Just(1 << 20), Just(1 << 31), Just(1 << 40), Just(1 << 60), Just(usize::MAX)],
    ]
}

fn signed() -> impl Strategy<Value = isize> {
    prop_oneof![20 => -6isize..7, 1 => prop_oneof![Just(isize::MIN), Just(isize::MAX), Just(1 << 31), Just(-(1 << 40))]]
}

fn arguments() -> impl Strategy<Value = Arguments> {
    let shape = || proptest::collection::vec(extent(), 0..7);
    let dtype = || proptest::sample::select(DType::ALL.to_vec());
    let bound = || proptest::option::of(signed());
    let slice = (bound(), bound(), signed()).prop_map(|(start, stop, step)| Slice { start, stop, step });
    (
        ([shape(), shape(), shape()], [dtype(), dtype(), dtype()]),
        proptest::collection::vec(signed(), 0..10),
        proptest::collection::vec(extent(), 0..10),
        proptest::collection::vec(signed(), 0..10),
        proptest::collection::vec(slice, 0..7),
        proptest::collection::vec((extent(), extent()), 0..7),
        proptest::num::f32::ANY,
        any::<bool>(),
    )
        .prop_map(|((shapes, dtypes), axes, sizes, extents, slices, widths, number, keepdims)| Arguments {
            shapes,
            dtypes,
            axes,
            sizes,
            extents,
            slices,
            widths,
            number,
            keepdims,
        })
}

/// Every method that records something, on these arguments.
fn record(x: &Tensor, y: &Tensor, z: &Tensor, a: &Arguments) -> Vec<Recorded> {
    let axis = a.axes.first().copied().unwrap_or(0);
    let index = a.extents.first().copied().unwrap_or(0);
    let size = |i: usize| a.sizes.get(i).copied().unwrap_or(1);
    let axes = &a.axes[..];
    let mut all: Vec<Recorded> = Op::ALL.iter().map(|&op| Tensor::apply(op, &[x, y, z][..op.row().arity])).collect();
    all.extend(Op::ALL.iter().map(|&op| Tensor::apply(op, &[x, y])));
    all.extend(ReduceOp::ALL.iter().map(|&op| x.reduce(op, axes, a.keepdims)));
    all.extend(ScanOp::ALL.iter().map(|&op| x.scan(op, axis)));
    all.extend(DType::ALL.iter().map(|&dtype| x.cast(dtype)));
    all.extend([
        x.mean(axes, a.keepdims),
        x.var(axes, size(0) as u32, a.keepdims),
        x.std(axes, 1, a.keepdims),
        x.norm(axes, a.keepdims),
        x.argmax(Some(axis), a.keepdims),
        x.argmin(None, a.keepdims),
        x.softmax(axis),
        x.log_softmax(axis),
        x.layer_norm(axis, a.number),
        x.relu(),
        x.leaky_relu(a.number),
        x.elu(a.number),
        x.clip(a.number, y),
        x.clip(index as i32, index as u32),
        x.add(index as i64),
        Tensor::where_(x, y, a.number),
        x.matmul(y),
        x.dot(y),
        x.conv2d(y, [size(0), size(1)], [size(2), size(3)]),
        x.reshape(&a.extents),
        x.permute(axes),
        x.transpose(),
        x.swap_axes(axis, index),
        x.expand_dims(axes),
        x.squeeze(axes),
        x.broadcast_to(&a.sizes),
        x.slice(&a.slices),
        x.select(axis, index),
        x.flip(axes),
        x.rot90(index as i32),
        x.pad(&a.widths, a.number),
        x.windows(axes, &a.sizes, &a.sizes),
        x.windows(&axes[..axes.len().min(1)], &[size(0)], &[size(1)]),
        Tensor::concat(&[x, y, z], axis),
        Tensor::concat(&[x, x], axis),
        Tensor::stack(&[x, x, x], axis),
        Tensor::stack(&[x, y], axis),
        x.tile(&a.sizes),
        x.take(y, axis),
        x.take(&of(DType::I32, &[2]), axis),
        Tensor::full(&a.sizes, a.number),
        Tensor::arange(a.number, 10.0, 0.5),
        Tensor::arange(index as i32, 9, axis as i32),
        Tensor::arange(0u32, size(0) as u32, size(1) as u32),
        Tensor::from_slice(&[a.number], &a.sizes),
    ]);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Recording gives a tensor or an error, and what it gives can be planned, whatever is asked for.
    #[test]
    fn nothing_panics(a in arguments()) {
        let tensor = |i: usize| Tensor::input(["x", "y", "z"][i], a.dtypes[i], &a.shapes[i]);
        let (Ok(x), Ok(y), Ok(z)) = (tensor(0), tensor(1), tensor(2)) else { return Ok(()) };
        for recorded in record(&x, &y, &z, &a) {
            match recorded {
                Ok(tensor) => {
                    prop_assert!(tensor.shape().rank() <= breakeven::MAX_RANK);
                    prop_assert!(tensor.shape().elems() <= isize::MAX as usize / 4);
                    // What can be recorded can be planned.
                    if let Err(error) = Plan::new(&[&tensor]) {
                        prop_assert!(!error.to_string().is_empty());
                    }
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
