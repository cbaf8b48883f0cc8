//! The arms of the libraries that only multiply matrices: faer, gemm and matrixmultiply, all into existing outputs.
//!
//! They meet the products of `W3` and `W5`; faer and gemm on one thread (`1t`) and on all (`mt`). Batches of small
//! products are a loop, as none of them batches, on one thread or with rayon over the tasks (`rayon`).

use faer::{Accum, MatMut, MatRef, Par};
use gemm::Parallelism;
use rayon::prelude::*;

use crate::arm::Arm;
use crate::workload::{Kind, SMALL_SIDE, Workload};

/// `out = a b`, square, row-major.
type Product = fn(side: usize, a: &[f32], b: &[f32], out: &mut [f32]);

/// Library, variant, product.
const PRODUCTS: [(&str, &str, Product); 5] = [
    ("faer", "1t", |side, a, b, out| faer_product(side, a, b, out, Par::Seq)),
    ("faer", "mt", |side, a, b, out| faer_product(side, a, b, out, Par::rayon(0))),
    ("gemm", "1t", |side, a, b, out| gemm_product(side, a, b, out, Parallelism::None)),
    ("gemm", "mt", |side, a, b, out| gemm_product(side, a, b, out, Parallelism::Rayon(0))),
    ("matrixmultiply", "", matrixmultiply_product),
];

/// The arms for one workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    if !matches!(workload.kind, Kind::Matmul | Kind::Mm32Batched | Kind::Mm32Loop) {
        return Vec::new();
    }
    let (a, b) = (workload.inputs[0].data.as_slice(), workload.inputs[1].data.as_slice());
    let zeros = || vec![0.0f32; a.len()];
    let mut arms = Vec::new();
    for (library, variant, product) in PRODUCTS {
        if workload.kind == Kind::Matmul {
            let side = workload.n;
            arms.push(Arm::writing(library, variant, zeros(), move |out| product(side, a, b, out), Vec::clone));
        } else if variant != "mt" {
            // Threads inside a product of 32 x 32 never pay.
            let task = SMALL_SIDE * SMALL_SIDE;
            let looped = move |out: &mut Vec<f32>| {
                for ((a, b), out) in a.chunks_exact(task).zip(b.chunks_exact(task)).zip(out.chunks_exact_mut(task)) {
                    product(SMALL_SIDE, a, b, out);
                }
            };
            let parallel = move |out: &mut Vec<f32>| {
                let tasks = a.par_chunks_exact(task).zip(b.par_chunks_exact(task)).zip(out.par_chunks_exact_mut(task));
                tasks.for_each(|((a, b), out)| product(SMALL_SIDE, a, b, out));
            };
            arms.push(Arm::writing(library, variant, zeros(), looped, Vec::clone));
            arms.push(Arm::writing(library, "rayon", zeros(), parallel, Vec::clone));
        }
    }
    arms
}

fn faer_product(side: usize, a: &[f32], b: &[f32], out: &mut [f32], par: Par) {
    faer::linalg::matmul::matmul(
        MatMut::from_row_major_slice_mut(out, side, side),
        Accum::Replace,
        MatRef::from_row_major_slice(a, side, side),
        MatRef::from_row_major_slice(b, side, side),
        1.0,
        par,
    );
}

fn gemm_product(side: usize, a: &[f32], b: &[f32], out: &mut [f32], parallelism: Parallelism) {
    assert!(a.len() == side * side && b.len() == a.len() && out.len() == a.len(), "square operands of one side");
    let (row, column) = (side as isize, 1);
    // SAFETY: all three are dense row-major squares of `side`, and `out` overlaps neither operand.
    unsafe {
        gemm::gemm(
            side,
            side,
            side,
            out.as_mut_ptr(),
            column,
            row,
            false,
            a.as_ptr(),
            column,
            row,
            b.as_ptr(),
            column,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn matrixmultiply_product(side: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() == side * side && b.len() == a.len() && out.len() == a.len(), "square operands of one side");
    let (row, column) = (side as isize, 1);
    // SAFETY: all three are dense row-major squares of `side`, and `out` overlaps neither operand.
    unsafe {
        matrixmultiply::sgemm(
            side,
            side,
            side,
            1.0,
            a.as_ptr(),
            row,
            column,
            b.as_ptr(),
            row,
            column,
            0.0,
            out.as_mut_ptr(),
            row,
            column,
        );
    }
}
