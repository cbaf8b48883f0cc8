//! What kernels compute, bit by bit, against what it was when `KERNEL_VERSION` was last raised: results that were remembered
//! on disk are believed under the same version, so that a change of any bit must change it.
//!
//! The portable level is looked at, which is the same on every x86-64 machine; products are left out, because large ones come
//! from a library that chooses its own instructions.
#![cfg(target_arch = "x86_64")]

use breakeven::backend::{Backend, KERNEL_VERSION};
use breakeven::{Op, Plan, ReduceOp, Result, ScanOp, Tensor};
use breakeven_cpu::{Cpu, Level};
use breakeven_ir::plan_key;
use breakeven_tests::views::edgy;
use std::sync::Arc;

/// The version, and the bits of all results under it.
const KNOWN: (u32, u64) = (6, 0x6938_a97b_6413_0000);

fn bits(cpu: &Cpu, output: &Tensor, hash: u64) -> u64 {
    let plan = Arc::new(Plan::new(&[output]).expect("it plans"));
    let prepared = cpu.prepare(&plan).expect("it is made ready");
    let (_, leaves) = plan_key(&[output]);
    let inputs: Vec<&[u8]> = leaves.iter().map(|leaf| leaf.as_data().expect("data").as_bytes()).collect();
    let mut results: Vec<Vec<u8>> = plan.output_buffers().map(|info| vec![0; info.bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    prepared.run(&inputs, &mut slices, false).expect("it runs");
    // FNV-1a: against accidents, not against forgery. All NaNs are one: which of two comes out of a sum is the compiler's choice.
    let f32s = output.dtype() == breakeven::DType::F32;
    results.concat().chunks(4).fold(hash, |hash, bytes| {
        let nan = f32s && <[u8; 4]>::try_from(bytes).is_ok_and(|bytes| f32::from_le_bytes(bytes).is_nan());
        let bytes = if nan { &[0xff; 4] } else { bytes };
        bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    })
}

fn outputs() -> Result<Vec<Tensor>> {
    let mut outputs = Vec::new();
    for &op in Op::ALL {
        for signature in op.row().signatures {
            let arg = |(i, dtype)| edgy(dtype, &[1025], i as u64).tensor;
            let args: Vec<Tensor> = signature.args.iter().copied().enumerate().map(arg).collect();
            outputs.push(Tensor::apply(op, &args.iter().collect::<Vec<_>>())?);
        }
    }
    let x = Tensor::from_vec((0..7 * 1025).map(|i| (i % 1013) as f32 / 64.0 - 7.5).collect(), [7, 1025])?;
    for op in ReduceOp::ALL {
        // Those that a dtype does not have are refused where they are recorded.
        outputs.extend(x.reduce(op, &[-1], false));
        outputs.extend(x.reduce(op, &[0], false));
    }
    for op in ScanOp::ALL {
        outputs.extend(x.scan(op, 1));
    }
    outputs.extend([
        x.softmax(-1)?,
        x.log_softmax(-1)?,
        x.layer_norm(-1, 1e-5)?,
        x.std(&[1], 0, false)?,
        x.norm(&[0], false)?,
    ]);
    Ok(outputs)
}

#[test]
fn results_change_with_the_version_only() {
    let cpu = Cpu::with_level(1, Level::Portable).expect("one thread");
    let found =
        outputs().expect("they record").iter().fold(0xcbf2_9ce4_8422_2325, |hash, output| bits(&cpu, output, hash));
    assert_eq!(
        (KERNEL_VERSION, found),
        KNOWN,
        "results have changed: raise `KERNEL_VERSION` (crates/ir/src/backend.rs), and put {found:#x} here"
    );
}
