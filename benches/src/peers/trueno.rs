//! trueno's arms: its vectors by instruction set (`auto`, `avx512`, `avx2`, `scalar`), its matrices, and the functions
//! of its `blis` module that write into an existing output (`blis-out`).
//!
//! trueno has no scalar addition (a constant vector stands in, made once) and no column sums.

use trueno::blis::{self, elementwise, norms};
use trueno::{Backend, Matrix, Vector};

use crate::arm::Arm;
use crate::workload::{
    Array, CHAIN, Kind, LAYER_NORM_EPSILON, MLP_WIDTHS, ROW_COLS, ROWS, SMALL_LEN, SMALL_SIDE, Workload,
};

const LIB: &str = "trueno";
const FITS: &str = "the workload's shapes fit";

/// The arms for one workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    let mut backends = vec![("auto", Backend::Auto), ("scalar", Backend::Scalar)];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") {
            backends.push(("avx2", Backend::AVX2));
        }
        if is_x86_feature_detected!("avx512f") && !crashes_with_avx512(workload) {
            backends.push(("avx512", Backend::AVX512));
        }
    }
    let mut arms: Vec<Arm<'_>> =
        backends.into_iter().filter_map(|(variant, backend)| vector_arm(workload, variant, backend)).collect();
    arms.extend(matrix_arms(workload));
    arms.extend(into_existing(workload));
    arms
}

/// trueno 0.19.1's AVX-512 add, mul, sub and relu store past the caches from 8,192 elements on without looking at the
/// output's alignment: a segmentation fault for nearly every `Vec`. Its own choice (`auto`) is AVX2, which looks.
#[cfg(target_arch = "x86_64")]
fn crashes_with_avx512(workload: &Workload) -> bool {
    matches!(workload.kind, Kind::Add | Kind::Relu | Kind::Relu256Batched | Kind::Chain)
        && workload.inputs[0].data.len() >= 8192
}

fn vector_arm<'w>(workload: &'w Workload, variant: &str, backend: Backend) -> Option<Arm<'w>> {
    let vector = |i: usize| Vector::from_slice_with_backend(&workload.inputs[i].data, backend);
    let rows = |len: usize| -> Vec<Vector<f32>> {
        let row = |row: &[f32]| Vector::from_slice_with_backend(row, backend);
        workload.inputs[0].data.chunks_exact(len).map(row).collect()
    };
    let x = || vector(0);
    Some(match workload.kind {
        Kind::Add => {
            let (x, y) = (x(), vector(1));
            plain(variant, move || x.add(&y).expect(FITS))
        }
        Kind::Dot => {
            let (x, y) = (x(), vector(1));
            Arm::returning(LIB, variant, move || x.dot(&y).expect(FITS), |dot| vec![dot])
        }
        Kind::Gelu => unary(variant, x(), |x| x.gelu().expect(FITS)),
        Kind::Relu | Kind::Relu256Batched => unary(variant, x(), |x| x.relu().expect(FITS)),
        Kind::Sigmoid => unary(variant, x(), |x| x.sigmoid().expect(FITS)),
        Kind::Softmax => unary(variant, x(), |x| x.softmax().expect(FITS)),
        Kind::Sum => {
            let x = x();
            Arm::returning(LIB, variant, move || x.sum().expect(FITS), |sum| vec![sum])
        }
        Kind::Chain => {
            let constant = |value: f32| Vector::from_slice_with_backend(&vec![value; workload.n], backend);
            let (x, b, c) = (x(), constant(CHAIN.1), constant(CHAIN.2));
            plain(variant, move || chain(&x, &b, &c).expect(FITS))
        }
        Kind::RowSoftmax => looped(variant, rows(ROW_COLS), |row| row.softmax().expect(FITS)),
        Kind::LayerNorm => {
            let (gain, offset) = (vector(1), vector(2));
            looped(variant, rows(ROW_COLS), move |row| row.layer_norm(&gain, &offset, LAYER_NORM_EPSILON).expect(FITS))
        }
        Kind::SumAxis1 => {
            let rows = rows(ROWS);
            let run = move || rows.iter().map(|row| row.sum().expect(FITS)).collect();
            Arm::returning(LIB, variant, run, |sums: Vec<f32>| sums)
        }
        Kind::Relu256Loop => looped(variant, rows(SMALL_LEN), |row| row.relu().expect(FITS)),
        Kind::SumAxis0 | Kind::Matmul | Kind::Mm32Batched | Kind::Mm32Loop | Kind::Mlp => return None,
    })
}

fn chain(x: &Vector<f32>, b: &Vector<f32>, c: &Vector<f32>) -> trueno::Result<Vector<f32>> {
    x.scale(CHAIN.0)?.add(b)?.mul(&x.sigmoid()?)?.sub(c)?.abs()?.sqrt()?.add(x)?.gelu()
}

fn matrix_arms(workload: &Workload) -> Vec<Arm<'_>> {
    let data = |i: usize| workload.inputs[i].data.as_slice();
    match workload.kind {
        Kind::Matmul => {
            let side = workload.n;
            let [a, b] = [0, 1].map(|i| Matrix::from_slice(side, side, data(i)).expect(FITS));
            let read = |out: Matrix<f32>| out.as_slice().to_vec();
            vec![Arm::returning(LIB, "auto", move || a.matmul(&b).expect(FITS), read)]
        }
        Kind::Mm32Batched => {
            let (a, b, batch) = (data(0), data(1), workload.n);
            let run = move || Matrix::batched_matmul(a, b, batch, SMALL_SIDE, SMALL_SIDE, SMALL_SIDE).expect(FITS);
            vec![Arm::returning(LIB, "auto", run, |out| out)]
        }
        Kind::Mm32Loop => {
            let [a, b] = [0, 1].map(|i| small_matrices(&workload.inputs[i]));
            let run = move || a.iter().zip(&b).map(|(a, b)| a.matmul(b).expect(FITS)).collect::<Vec<_>>();
            let read = |outs: Vec<Matrix<f32>>| outs.iter().flat_map(|out| out.as_slice().to_vec()).collect();
            vec![Arm::returning(LIB, "auto", run, read)]
        }
        _ => Vec::new(),
    }
}

fn into_existing(workload: &Workload) -> Vec<Arm<'_>> {
    let data = |i: usize| workload.inputs[i].data.as_slice();
    let x = data(0);
    let zeros = || vec![0.0f32; x.len()];
    let arm = match workload.kind {
        Kind::Add => {
            let y = data(1);
            writing(zeros(), move |out| elementwise::add(x, y, out).expect(FITS))
        }
        Kind::Relu | Kind::Relu256Batched => writing(zeros(), move |out| elementwise::relu(x, out).expect(FITS)),
        Kind::Relu256Loop => writing(zeros(), move |out| {
            for (task, out) in x.chunks_exact(SMALL_LEN).zip(out.chunks_exact_mut(SMALL_LEN)) {
                elementwise::relu(task, out).expect(FITS);
            }
        }),
        Kind::LayerNorm => {
            let (gain, offset) = (data(1), data(2));
            writing(zeros(), move |out| {
                for (row, out) in x.chunks_exact(ROW_COLS).zip(out.chunks_exact_mut(ROW_COLS)) {
                    norms::layer_norm(row, gain, offset, LAYER_NORM_EPSILON, out).expect(FITS);
                }
            })
        }
        Kind::Matmul => {
            let (y, n) = (data(1), workload.n);
            writing(zeros(), move |out| {
                // trueno's product adds to what is there.
                out.fill(0.0);
                blis::gemm(n, n, n, x, y, out).expect(FITS);
            })
        }
        Kind::Mlp => mlp(workload),
        _ => return Vec::new(),
    };
    vec![arm]
}

fn mlp(workload: &Workload) -> Arm<'_> {
    let data = |i: usize| workload.inputs[i].data.as_slice();
    let [x, w1, b1, w2, b2, w3, b3] = [0, 1, 2, 3, 4, 5, 6].map(data);
    let batch = workload.n;
    let [wide_in, wide, _, classes] = MLP_WIDTHS;
    let buffers = [wide, wide, classes].map(|width| vec![0.0f32; batch * width]);
    let run = move |buffers: &mut [Vec<f32>; 3]| {
        let [h1, h2, out] = buffers;
        h1.fill(0.0);
        blis::gemm_bias_relu(batch, wide, wide_in, x, w1, b1, h1).expect(FITS);
        h2.fill(0.0);
        blis::gemm_bias_relu(batch, wide, wide, h1, w2, b2, h2).expect(FITS);
        // The product adds to what is there: the bias goes in first.
        out.chunks_exact_mut(classes).for_each(|row| row.copy_from_slice(b3));
        blis::gemm(batch, classes, wide, h2, w3, out).expect(FITS);
        for row in out.chunks_exact_mut(classes) {
            row.copy_from_slice(Vector::from_slice(row).softmax().expect(FITS).as_slice());
        }
    };
    Arm::writing(LIB, "blis-out", buffers, run, |buffers| buffers[2].clone())
}

fn small_matrices(array: &Array) -> Vec<Matrix<f32>> {
    let chunks = array.data.chunks_exact(SMALL_SIDE * SMALL_SIDE);
    chunks.map(|data| Matrix::from_slice(SMALL_SIDE, SMALL_SIDE, data).expect(FITS)).collect()
}

fn plain<'w>(variant: &str, run: impl FnMut() -> Vector<f32> + 'w) -> Arm<'w> {
    Arm::returning(LIB, variant, run, |out| out.as_slice().to_vec())
}

fn unary<'w>(variant: &str, x: Vector<f32>, f: impl Fn(&Vector<f32>) -> Vector<f32> + 'w) -> Arm<'w> {
    plain(variant, move || f(&x))
}

fn looped<'w>(variant: &str, tasks: Vec<Vector<f32>>, f: impl Fn(&Vector<f32>) -> Vector<f32> + 'w) -> Arm<'w> {
    let read = |outs: Vec<Vector<f32>>| outs.iter().flat_map(|out| out.as_slice().to_vec()).collect();
    Arm::returning(LIB, variant, move || tasks.iter().map(&f).collect::<Vec<_>>(), read)
}

fn writing<'w>(out: Vec<f32>, run: impl FnMut(&mut Vec<f32>) + 'w) -> Arm<'w> {
    Arm::writing(LIB, "blis-out", out, run, Vec::clone)
}
