//! ndarray's arms: plain, into an existing output (`out`), and on rayon (`par`, `par-out`).
//!
//! ndarray has no activations: users write closures. Its matrix product is matrixmultiply with threads on.

use ndarray::linalg::general_mat_mul;
use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut1, Axis, Zip};
use rayon::prelude::ParallelSlice;

use super::scalar;
use crate::arm::Arm;
use crate::workload::{Array, CHAIN, Kind, LAYER_NORM_EPSILON, ROW_COLS, SMALL_LEN, SMALL_SIDE, Workload};

const LIB: &str = "ndarray";
/// Elements a parallel reduction gives to one task.
const CHUNK: usize = 64 * 1024;
/// Rows of a matrix that a parallel sum gives to one task.
const ROW_CHUNK: usize = 256;

/// The arms for one workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    let input = |i: usize| &workload.inputs[i];
    match workload.kind {
        Kind::Add => add(vector(input(0)), vector(input(1))),
        Kind::Dot => dot(vector(input(0)), vector(input(1))),
        Kind::Gelu => map(vector(input(0)), scalar::gelu),
        Kind::Relu => map(vector(input(0)), scalar::relu),
        Kind::Sigmoid => map(vector(input(0)), scalar::sigmoid),
        Kind::Softmax => softmax(vector(input(0))),
        Kind::Sum => sum(vector(input(0))),
        Kind::Chain => chain(vector(input(0))),
        Kind::Matmul => matmul(matrix(input(0)), matrix(input(1))),
        Kind::RowSoftmax => by_rows(matrix(input(0)), softmax_row),
        Kind::LayerNorm => {
            let (gain, offset) = (vector(input(1)), vector(input(2)));
            by_rows(matrix(input(0)), move |from, to| layer_norm_row(from, to, gain, offset))
        }
        Kind::SumAxis0 => sum_axis(matrix(input(0)), Axis(0)),
        Kind::SumAxis1 => sum_axis(matrix(input(0)), Axis(1)),
        Kind::Mm32Batched => products_batched(workload),
        Kind::Mm32Loop => products_looped(workload),
        Kind::Relu256Batched => map_matrix(matrix(input(0))),
        Kind::Relu256Loop => relus_looped(workload),
        Kind::Mlp => mlp(workload),
    }
}

fn vector(array: &Array) -> ArrayView1<'_, f32> {
    ArrayView1::from(&array.data)
}

fn matrix(array: &Array) -> ArrayView2<'_, f32> {
    let shape = (array.shape[0], array.shape[1]);
    ArrayView2::from_shape(shape, &array.data).expect("the workload's shape fits its data")
}

fn flat1(array: Array1<f32>) -> Vec<f32> {
    array.to_vec()
}

fn copied(array: &Array1<f32>) -> Vec<f32> {
    array.to_vec()
}

fn flat2(array: Array2<f32>) -> Vec<f32> {
    array.iter().copied().collect()
}

fn add<'w>(x: ArrayView1<'w, f32>, y: ArrayView1<'w, f32>) -> Vec<Arm<'w>> {
    let out = Array1::zeros(x.len());
    vec![
        Arm::returning(LIB, "", move || &x + &y, flat1),
        Arm::returning(LIB, "par", move || Zip::from(x).and(y).par_map_collect(|x, y| x + y), flat1),
        Arm::writing(
            LIB,
            "zip-out",
            out.clone(),
            move |out| Zip::from(out).and(x).and(y).for_each(|out, x, y| *out = x + y),
            copied,
        ),
        Arm::writing(
            LIB,
            "par-out",
            out,
            move |out| Zip::from(out).and(x).and(y).par_for_each(|out, x, y| *out = x + y),
            copied,
        ),
    ]
}

fn map<'w>(x: ArrayView1<'w, f32>, f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'w) -> Vec<Arm<'w>> {
    let out = Array1::zeros(x.len());
    vec![
        Arm::returning(LIB, "", move || x.mapv(f), flat1),
        Arm::returning(LIB, "par", move || Zip::from(x).par_map_collect(|&x| f(x)), flat1),
        Arm::writing(
            LIB,
            "zip-out",
            out.clone(),
            move |out| Zip::from(out).and(x).for_each(|out, &x| *out = f(x)),
            copied,
        ),
        Arm::writing(LIB, "par-out", out, move |out| Zip::from(out).and(x).par_for_each(|out, &x| *out = f(x)), copied),
    ]
}

fn map_matrix(x: ArrayView2<'_, f32>) -> Vec<Arm<'_>> {
    vec![
        Arm::returning(LIB, "", move || x.mapv(scalar::relu), flat2),
        Arm::writing(
            LIB,
            "zip-out",
            Array2::zeros(x.dim()),
            move |out| Zip::from(out).and(x).for_each(|out, &x| *out = scalar::relu(x)),
            |out| out.iter().copied().collect(),
        ),
        Arm::writing(
            LIB,
            "par-out",
            Array2::zeros(x.dim()),
            move |out| Zip::from(out).and(x).par_for_each(|out, &x| *out = scalar::relu(x)),
            |out| out.iter().copied().collect(),
        ),
    ]
}

fn dot<'w>(x: ArrayView1<'w, f32>, y: ArrayView1<'w, f32>) -> Vec<Arm<'w>> {
    let par = move || -> f32 {
        let (x, y) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
        let chunks = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK));
        chunks.map(|(x, y)| ArrayView1::from(x).dot(&ArrayView1::from(y))).sum()
    };
    vec![Arm::returning(LIB, "", move || x.dot(&y), |dot| vec![dot]), Arm::returning(LIB, "par", par, |dot| vec![dot])]
}

fn sum(x: ArrayView1<'_, f32>) -> Vec<Arm<'_>> {
    let par =
        move || -> f32 { x.as_slice().unwrap_or_default().par_chunks(CHUNK).map(|x| ArrayView1::from(x).sum()).sum() };
    vec![Arm::returning(LIB, "", move || x.sum(), |sum| vec![sum]), Arm::returning(LIB, "par", par, |sum| vec![sum])]
}

fn softmax(x: ArrayView1<'_, f32>) -> Vec<Arm<'_>> {
    let plain = move || {
        let mut out = Array1::zeros(x.len());
        softmax_row(x, out.view_mut());
        out
    };
    let par = move |out: &mut Array1<f32>| {
        let max = x
            .axis_chunks_iter(Axis(0), CHUNK)
            .into_par_iter()
            .map(|x| x.fold(f32::NEG_INFINITY, |max, &v| max.max(v)))
            .reduce(|| f32::NEG_INFINITY, f32::max);
        Zip::from(&mut *out).and(x).par_for_each(|out, &x| *out = (x - max).exp());
        let sum: f32 = out.axis_chunks_iter(Axis(0), CHUNK).into_par_iter().map(|out| out.sum()).sum();
        let scale = 1.0 / sum;
        out.par_mapv_inplace(|v| v * scale);
    };
    vec![
        Arm::returning(LIB, "", plain, flat1),
        Arm::writing(LIB, "out", Array1::zeros(x.len()), move |out| softmax_row(x, out.view_mut()), copied),
        Arm::writing(LIB, "par-out", Array1::zeros(x.len()), par, copied),
    ]
}

fn softmax_row(from: ArrayView1<'_, f32>, mut to: ArrayViewMut1<'_, f32>) {
    let max = from.fold(f32::NEG_INFINITY, |max, &v| max.max(v));
    Zip::from(&mut to).and(from).for_each(|to, &from| *to = (from - max).exp());
    let scale = 1.0 / to.sum();
    to *= scale;
}

fn layer_norm_row(
    from: ArrayView1<'_, f32>,
    to: ArrayViewMut1<'_, f32>,
    gain: ArrayView1<'_, f32>,
    offset: ArrayView1<'_, f32>,
) {
    let count = from.len() as f32;
    let mean = from.sum() / count;
    // Centred first, so that the squares are summed by ndarray's unrolled dot product.
    let mut to = to;
    Zip::from(&mut to).and(from).for_each(|to, &from| *to = from - mean);
    let variance = to.dot(&to) / count;
    let scale = 1.0 / (variance + LAYER_NORM_EPSILON).sqrt();
    Zip::from(to).and(gain).and(offset).for_each(|to, &gain, &offset| *to = *to * scale * gain + offset);
}

fn chain(x: ArrayView1<'_, f32>) -> Vec<Arm<'_>> {
    let steps = move || {
        let (a, b, c) = CHAIN;
        let mut y = (&x * a + b) * x.mapv(scalar::sigmoid) - c;
        y.mapv_inplace(f32::abs);
        y.mapv_inplace(f32::sqrt);
        y += &x;
        y.mapv_inplace(scalar::gelu);
        y
    };
    let fused = move |out: &mut Array1<f32>| Zip::from(out).and(x).par_for_each(|out, &x| *out = scalar::chain(x));
    vec![
        Arm::returning(LIB, "", steps, flat1),
        Arm::returning(LIB, "fused-by-hand", move || x.mapv(scalar::chain), flat1),
        Arm::writing(LIB, "fused-by-hand-par-out", Array1::zeros(x.len()), fused, copied),
    ]
}

fn matmul<'w>(a: ArrayView2<'w, f32>, b: ArrayView2<'w, f32>) -> Vec<Arm<'w>> {
    let out = Array2::zeros((a.nrows(), b.ncols()));
    vec![
        Arm::returning(LIB, "", move || a.dot(&b), flat2),
        Arm::writing(
            LIB,
            "out",
            out,
            move |out| general_mat_mul(1.0, &a, &b, 0.0, out),
            |out| out.iter().copied().collect(),
        ),
    ]
}

fn by_rows<'w>(
    x: ArrayView2<'w, f32>,
    row: impl Fn(ArrayView1<'_, f32>, ArrayViewMut1<'_, f32>) + Copy + Send + Sync + 'w,
) -> Vec<Arm<'w>> {
    let plain = move || {
        let mut out = Array2::zeros(x.dim());
        Zip::from(x.rows()).and(out.rows_mut()).for_each(row);
        out
    };
    let par = move |out: &mut Array2<f32>| Zip::from(x.rows()).and(out.rows_mut()).par_for_each(row);
    vec![
        Arm::returning(LIB, "", plain, flat2),
        Arm::writing(LIB, "par-out", Array2::zeros((x.nrows(), ROW_COLS)), par, |out| out.iter().copied().collect()),
    ]
}

fn sum_axis(x: ArrayView2<'_, f32>, axis: Axis) -> Vec<Arm<'_>> {
    let par = move || {
        let chunks = x.axis_chunks_iter(Axis(0), ROW_CHUNK).into_par_iter().map(|rows| rows.sum_axis(axis));
        if axis == Axis(0) {
            chunks.reduce(|| Array1::zeros(x.ncols()), |a, b| a + b)
        } else {
            let parts: Vec<Array1<f32>> = chunks.collect();
            ndarray::concatenate(Axis(0), &parts.iter().map(|part| part.view()).collect::<Vec<_>>())
                .expect("row sums have one axis each")
        }
    };
    vec![Arm::returning(LIB, "", move || x.sum_axis(axis), flat1), Arm::returning(LIB, "par", par, flat1)]
}

fn small_matrices(array: &Array) -> Vec<Array2<f32>> {
    let owned = |data: &[f32]| Array2::from_shape_vec((SMALL_SIDE, SMALL_SIDE), data.to_vec());
    let chunks = array.data.chunks_exact(SMALL_SIDE * SMALL_SIDE);
    chunks.map(|data| owned(data).expect("a chunk is one matrix")).collect()
}

fn products_batched(workload: &Workload) -> Vec<Arm<'_>> {
    let shape = (workload.n, SMALL_SIDE, SMALL_SIDE);
    let [a, b] = [0, 1].map(|i| {
        ndarray::ArrayView3::from_shape(shape, &workload.inputs[i].data).expect("the workload's shape fits its data")
    });
    let par = move |out: &mut Array3<f32>| {
        Zip::from(out.outer_iter_mut())
            .and(a.outer_iter())
            .and(b.outer_iter())
            .par_for_each(|mut out, a, b| general_mat_mul(1.0, &a, &b, 0.0, &mut out));
    };
    let serial = move |out: &mut Array3<f32>| {
        Zip::from(out.outer_iter_mut())
            .and(a.outer_iter())
            .and(b.outer_iter())
            .for_each(|mut out, a, b| general_mat_mul(1.0, &a, &b, 0.0, &mut out));
    };
    let read = |out: &Array3<f32>| out.iter().copied().collect();
    vec![
        Arm::writing(LIB, "zip-out", Array3::zeros(shape), serial, read),
        Arm::writing(LIB, "par-zip-out", Array3::zeros(shape), par, read),
    ]
}

fn products_looped(workload: &Workload) -> Vec<Arm<'_>> {
    let [a, b] = [0, 1].map(|i| small_matrices(&workload.inputs[i]));
    let (a2, b2) = (a.clone(), b.clone());
    let read = |outs: Vec<Array2<f32>>| outs.into_iter().flatten().collect();
    let plain = move || a.iter().zip(&b).map(|(a, b)| a.dot(b)).collect::<Vec<_>>();
    let par = move || a2.par_iter().zip(&b2).map(|(a, b)| a.dot(b)).collect::<Vec<_>>();
    vec![Arm::returning(LIB, "", plain, read), Arm::returning(LIB, "rayon", par, read)]
}

fn relus_looped(workload: &Workload) -> Vec<Arm<'_>> {
    let tasks: Vec<Array1<f32>> =
        workload.inputs[0].data.chunks_exact(SMALL_LEN).map(|task| Array1::from(task.to_vec())).collect();
    let (tasks2, tasks3, outs) = (tasks.clone(), tasks.clone(), tasks.clone());
    let into = move |outs: &mut Vec<Array1<f32>>| {
        for (out, task) in outs.iter_mut().zip(&tasks3) {
            Zip::from(out).and(task).for_each(|out, &v| *out = scalar::relu(v));
        }
    };
    let read = |outs: Vec<Array1<f32>>| outs.into_iter().flatten().collect();
    let plain = move || tasks.iter().map(|task| task.mapv(scalar::relu)).collect::<Vec<_>>();
    let par = move || tasks2.par_iter().map(|task| task.mapv(scalar::relu)).collect::<Vec<_>>();
    vec![
        Arm::returning(LIB, "", plain, read),
        Arm::returning(LIB, "rayon", par, read),
        Arm::writing(LIB, "zip-out", outs, into, |outs| outs.iter().flatten().copied().collect()),
    ]
}

fn mlp(workload: &Workload) -> Vec<Arm<'_>> {
    let input = |i: usize| &workload.inputs[i];
    let x = matrix(input(0));
    let layers = [1, 3, 5].map(|i| (matrix(input(i)), vector(input(i + 1))));
    let widths = layers.map(|(weights, _)| weights.ncols());
    let plain = move || {
        let [first, second, last] = layers;
        let mut hidden = x.dot(&first.0) + first.1;
        hidden.mapv_inplace(scalar::relu);
        let mut hidden = hidden.dot(&second.0) + second.1;
        hidden.mapv_inplace(scalar::relu);
        let logits = hidden.dot(&last.0) + last.1;
        let mut out = Array2::zeros(logits.dim());
        Zip::from(logits.rows()).and(out.rows_mut()).for_each(softmax_row);
        out
    };
    let into = move |buffers: &mut [Array2<f32>; 4]| {
        let [h1, h2, logits, out] = buffers;
        let layer = |from: ArrayView2<'_, f32>, which: usize, to: &mut Array2<f32>| {
            general_mat_mul(1.0, &from, &layers[which].0, 0.0, to);
            for mut row in to.rows_mut() {
                Zip::from(&mut row).and(layers[which].1).for_each(|v, &bias| {
                    *v = if which < 2 { scalar::relu(*v + bias) } else { *v + bias };
                });
            }
        };
        layer(x, 0, h1);
        layer(h1.view(), 1, h2);
        layer(h2.view(), 2, logits);
        Zip::from(logits.rows()).and(out.rows_mut()).for_each(softmax_row);
    };
    let buffers = [widths[0], widths[1], widths[2], widths[2]].map(|width| Array2::zeros((workload.n, width)));
    vec![
        Arm::returning(LIB, "", plain, flat2),
        Arm::writing(LIB, "out", buffers, into, |buffers| buffers[3].iter().copied().collect()),
    ]
}
