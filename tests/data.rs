//! Inputs: seeded random arrays and the values at which arithmetic goes wrong.

use crate::reference::{RefArray, elems};
use breakeven::DType;
use std::f32::consts::{FRAC_PI_2, PI, TAU};

/// A small, fast generator: the same seed gives the same numbers everywhere.
pub struct Rng(u64);

impl Rng {
    /// A generator of its own for each seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 32 bits (xorshift64*).
    pub fn bits(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.bits() as usize % n.max(1)
    }

    /// Evenly spread over [0, 1).
    pub fn unit(&mut self) -> f64 {
        f64::from(self.bits()) / 4_294_967_296.0
    }
}

/// f32 values at the edges of every function's domain, range and special cases.
pub const F32_EDGES: &[f32] = &[
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    f32::from_bits(1),
    -f32::from_bits(1),
    1e-40,
    -1e-40,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.1,
    -0.1,
    1e-20,
    -1e-20,
    1e20,
    -1e20,
    16_777_217.0,
    8_388_609.0,
    -8_388_607.5,
    4_194_303.5,
    65_536.0,
    2_147_483_520.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    4_294_967_040.0,
    4_294_967_296.0,
    -7.0,
    7.0,
    88.0,
    88.7,
    89.0,
    -87.4,
    -103.9,
    -104.1,
    9.2,
    -9.2,
    3.9,
    17.0,
    FRAC_PI_2,
    PI,
    -TAU,
    10_000.0,
    1e10,
    0.999_999_94,
    1.000_000_1,
    -0.999_999_94,
    1e-7,
];
/// i32 values at the edges.
pub const I32_EDGES: &[i32] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    5,
    -7,
    31,
    32,
    33,
    -255,
    256,
    65_535,
    65_536,
    -65_537,
    46_341,
    16_777_217,
    i32::MAX,
    i32::MIN,
    i32::MAX - 1,
    i32::MIN + 1,
];
/// u32 values at the edges.
pub const U32_EDGES: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    255,
    256,
    65_535,
    65_536,
    16_777_217,
    0x7FFF_FFFF,
    0x8000_0000,
    0x8000_0001,
    u32::MAX - 1,
    u32::MAX,
];

/// The edges of a dtype.
pub fn edges(dtype: DType) -> Vec<f64> {
    match dtype {
        DType::F32 => F32_EDGES.iter().map(|&v| f64::from(v)).collect(),
        DType::I32 => I32_EDGES.iter().map(|&v| f64::from(v)).collect(),
        DType::U32 => U32_EDGES.iter().map(|&v| f64::from(v)).collect(),
        DType::Bool => vec![0.0, 1.0],
    }
}

/// One value of everyday size: halves, whole numbers, and numbers with all their digits.
pub fn everyday(rng: &mut Rng, dtype: DType) -> f64 {
    match (dtype, rng.below(4)) {
        (DType::Bool, n) => f64::from(u8::from(n >= 2)),
        (DType::I32, _) => rng.below(41) as f64 - 20.0,
        (DType::U32, _) => rng.below(40) as f64,
        (DType::F32, 0) => (rng.below(33) as f64 - 16.0) / 2.0,
        (DType::F32, _) => f64::from(((rng.unit() + rng.unit() + rng.unit() - 1.5) * 4.0) as f32),
    }
}

/// Everyday values in `shape`.
pub fn random(dtype: DType, shape: &[usize], seed: u64) -> RefArray {
    let mut rng = Rng::new(seed);
    RefArray::exact(dtype, shape, (0..elems(shape)).map(|_| everyday(&mut rng, dtype)).collect())
}

/// Everyday values with an edge, or any bit pattern at all, every few elements.
pub fn rough(dtype: DType, shape: &[usize], seed: u64) -> RefArray {
    let (mut rng, edges) = (Rng::new(seed), edges(dtype));
    let one = |_| match (rng.below(6), dtype) {
        (0, _) => edges[rng.below(edges.len())],
        (1, DType::F32) => f64::from(f32::from_bits(rng.bits())),
        (1, DType::I32) => f64::from(rng.bits() as i32),
        (1, DType::U32) => f64::from(rng.bits()),
        _ => everyday(&mut rng, dtype),
    };
    RefArray::exact(dtype, shape, (0..elems(shape)).map(one).collect())
}
