//! Runs pairs: recorded tensors enter, the library computes them, and each must hold what its reference expects.

use crate::compare::{Zeros, values};
use crate::device::takes_part;
use crate::pair::Pair;
use breakeven::{Array, Engine, Tensor};

/// Runs all of `pairs` as one batch and compares each; how many elements were compared.
#[track_caller]
pub fn check(engine: &Engine, what: &str, pairs: &[&Pair], zeros: Zeros) -> usize {
    if !takes_part(what) {
        return 0;
    }
    let tensors: Vec<&Tensor> = pairs.iter().map(|p| &p.tensor).collect();
    let outputs = engine.run(&tensors).unwrap_or_else(|why| panic!("{what}: {why}"));
    assert_eq!(outputs.len(), pairs.len(), "{what}: number of outputs");
    match compare(pairs, &outputs, zeros) {
        Ok(compared) => compared,
        Err(why) => panic!("{what}: {why}"),
    }
}

/// Compares the outputs of a batch, in order; how many elements were compared, or the first that differs.
pub fn compare(pairs: &[&Pair], outputs: &[Array], zeros: Zeros) -> Result<usize, String> {
    let mut compared = 0;
    for (i, (pair, output)) in pairs.iter().zip(outputs).enumerate() {
        compared += values(output.dtype(), &output.shape(), &output.to_f64(), &pair.expected, zeros)
            .map_err(|why| format!("output {i}, {why}"))?;
    }
    Ok(compared)
}
