//! The sampled cross-check: a device's results and the CPU's enter, a device whose results are wrong leaves service.

use crate::array::Array;
use crate::devices::Slot;
use crate::error::Result;
use breakeven_ir::DType;
use breakeven_ir::backend::RunError;

/// Results may differ by this share of the largest value of their array: GPUs add in another order and round otherwise.
/// A wrong result (a loop cut short, memory not written) is off by far more.
const TOLERANCE: f64 = 1e-3;

/// Where values are compared or rounded to whole numbers, the last bit may tip one over. More than this share of the
/// elements is not that.
const TIPPED: f64 = 1e-3;

/// Takes the device out of use if its results are wrong, and fails, so that the CPU's are taken.
pub(crate) fn check(slot: &Slot, device: &[Array], cpu: &[Array]) -> Result<()> {
    for (number, (device, cpu)) in device.iter().zip(cpu).enumerate() {
        let wrong = mismatches(device, cpu);
        let tipped = cpu.shape().elems() as f64 * TIPPED;
        // Few floats must all be right; of few whole numbers one may have tipped over.
        let allowed = if cpu.dtype() == DType::F32 { tipped.floor() } else { tipped.max(1.0) };
        if wrong as f64 > allowed {
            let elems = cpu.shape().elems();
            let why = format!("{wrong} of {elems} elements of output {number} differed from the CPU's");
            slot.quarantine(why.clone());
            return Err(RunError::Device { device: slot.backend.id().into(), message: why }.into());
        }
    }
    Ok(())
}

fn mismatches(device: &Array, cpu: &Array) -> usize {
    let (a, b) = (device.to_f64(), cpu.to_f64());
    let scale = b.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(v.abs()));
    let differs = |(x, y): (&f64, &f64)| !(x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= TOLERANCE * scale);
    a.iter().zip(&b).filter(|&pair| differs(pair)).count() + a.len().abs_diff(b.len())
}
