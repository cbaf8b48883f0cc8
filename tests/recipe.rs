//! Recipes of random graphs: a strategy of proptest enters; programs and which of their values are outputs leave.
//!
//! The seed is fixed, so that a red run is a bug and not bad luck; `BREAKEVEN_GRAPHS` and `BREAKEVEN_SEED` set how
//! many graphs are tried and which.

use crate::program::{Instruction, KINDS, Program, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// How many graphs the tests of random graphs try; each takes its share of this.
pub fn graphs() -> u64 {
    number("BREAKEVEN_GRAPHS", 4_000)
}

/// What a graph is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    extents: [usize; 3],
    seed: u64,
    edges: bool,
    instructions: Vec<Instruction>,
    outputs: Vec<u8>,
}

/// Recipes of so many steps over leaves of these extents.
pub fn recipes(
    extents: impl Strategy<Value = [usize; 3]>,
    steps: std::ops::Range<usize>,
) -> impl Strategy<Value = Recipe> {
    let operand = || prop_oneof![3 => 0u8..3, 2 => 0u8..12, 1 => any::<u8>()];
    let instruction = (0..KINDS, [operand(), operand(), operand()], any::<u32>())
        .prop_map(|(kind, operands, detail)| Instruction { kind, operands, detail });
    let instructions = proptest::collection::vec(instruction, steps);
    let outputs = proptest::collection::vec(0u8..8, 1..5);
    (extents, any::<u64>(), proptest::bool::weighted(0.2), instructions, outputs).prop_map(
        |(extents, seed, edges, instructions, outputs)| Recipe { extents, seed, edges, instructions, outputs },
    )
}

impl Recipe {
    /// The program, with no value of more elements than this.
    pub fn program(&self, limit_elems: usize) -> Program {
        let mut program = Program::new(self.extents, self.seed, self.edges, limit_elems);
        self.instructions.iter().for_each(|instruction| program.step(instruction));
        program
    }

    /// Which values are outputs. They count back from the newest: some are needed by others, some repeat.
    pub fn outputs<'a>(&self, program: &'a Program) -> Vec<&'a Value> {
        let made = program.made();
        self.outputs.iter().map(|&o| &made[made.len() - 1 - usize::from(o) % made.len()]).collect()
    }
}

/// Tries that many cases with the fixed seed.
pub fn runner(cases: u64) -> TestRunner {
    let config =
        Config { cases: cases as u32, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number("BREAKEVEN_SEED", 1).to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}
