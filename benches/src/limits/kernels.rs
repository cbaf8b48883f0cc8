//! The loops behind the machine's limits: slices enter, flops, sums and written slices leave.
//!
//! The widest vectors that the CPU has, chosen at run time. Intrinsics, because a limit must not depend on whether
//! the compiler happened to vectorise a loop; elsewhere than on x86-64 plain loops over lane arrays.

/// Multiply-adds of one call of [`fma_flops`], long enough that the call does not count.
const FMA_STEPS: usize = 20_000;
/// Independent accumulators: at least latency x throughput of the FMA units (4 x 2, with some to spare).
const CHAINS: usize = 12;

/// Memory that starts at a cache line, which non-temporal stores need.
pub struct Lines {
    data: Vec<f32>,
    start: usize,
    len: usize,
}

impl Lines {
    /// `len` zeros.
    pub fn new(len: usize) -> Lines {
        let data = vec![0.0; len + 16];
        let start = (64 - data.as_ptr() as usize % 64) % 64 / 4;
        Lines { data, start, len }
    }

    /// The elements.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.data[self.start..][..self.len]
    }
}

/// The instruction set that the loops use.
pub fn lanes() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return "AVX-512";
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return "AVX2+FMA";
    }
    "portable"
}

/// Does nothing but multiply-adds in registers; how many flops that were.
pub fn fma_flops() -> f64 {
    let seed = std::hint::black_box(0.5f32);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has AVX-512F.
            std::hint::black_box(unsafe { x86::fma_512(seed) });
            return (FMA_STEPS * CHAINS * 16 * 2) as f64;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has AVX2 and FMA.
            std::hint::black_box(unsafe { x86::fma_256(seed) });
            return (FMA_STEPS * CHAINS * 8 * 2) as f64;
        }
    }
    let mut chains = [[seed; 4]; CHAINS];
    for _ in 0..FMA_STEPS {
        for lane in chains.iter_mut().flatten() {
            *lane = *lane * seed + seed;
        }
    }
    std::hint::black_box(chains);
    (FMA_STEPS * CHAINS * 4 * 2) as f64
}

/// Sums a slice at the speed of reading it.
pub fn read_sum(values: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { x86::read_sum(values) };
    }
    sum_lanes(values)
}

/// `out = a + 3 b`, by stores that go around the caches where asked and possible.
pub fn triad(out: &mut [f32], a: &[f32], b: &[f32], non_temporal: bool) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let aligned = (out.as_ptr() as usize).is_multiple_of(64) && out.len().is_multiple_of(16);
        if non_temporal && aligned && out.len() == a.len() && out.len() == b.len() {
            // SAFETY: the CPU has AVX2 and FMA; lengths are equal, `out` is aligned and a multiple of 16 long.
            unsafe { x86::triad_stream(out, a, b) };
        } else {
            // SAFETY: the CPU has AVX2 and FMA.
            unsafe { x86::triad(out, a, b) };
        }
        return;
    }
    triad_lanes(out, a, b);
}

#[inline(always)]
fn sum_lanes(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 64];
    for chunk in values.chunks_exact(64) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().sum()
}

#[inline(always)]
fn triad_lanes(out: &mut [f32], a: &[f32], b: &[f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a + 3.0 * b;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm_sfence, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm256_stream_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };

    use super::{CHAINS, FMA_STEPS};

    #[target_feature(enable = "avx512f")]
    pub fn fma_512(seed: f32) -> [__m512; CHAINS] {
        let factor = _mm512_set1_ps(seed);
        let mut chains = [factor; CHAINS];
        for _ in 0..FMA_STEPS {
            for chain in &mut chains {
                *chain = _mm512_fmadd_ps(*chain, factor, factor);
            }
        }
        chains
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn fma_256(seed: f32) -> [__m256; CHAINS] {
        let factor = _mm256_set1_ps(seed);
        let mut chains = [factor; CHAINS];
        for _ in 0..FMA_STEPS {
            for chain in &mut chains {
                *chain = _mm256_fmadd_ps(*chain, factor, factor);
            }
        }
        chains
    }

    #[target_feature(enable = "avx2")]
    pub fn read_sum(values: &[f32]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 8];
        for chunk in values.chunks_exact(64) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a chunk has 64 elements, and `i` is below 8.
                *sum = _mm256_add_ps(*sum, unsafe { _mm256_loadu_ps(chunk.as_ptr().add(8 * i)) });
            }
        }
        let mut total = sums[0];
        for &sum in &sums[1..] {
            total = _mm256_add_ps(total, sum);
        }
        let mut lanes = [0.0f32; 8];
        // SAFETY: eight lanes of room.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), total) };
        lanes.iter().sum()
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn triad(out: &mut [f32], a: &[f32], b: &[f32]) {
        super::triad_lanes(out, a, b);
    }

    /// # Safety
    /// Slices are equally long, a multiple of 16; `out` starts at a cache line.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn triad_stream(out: &mut [f32], a: &[f32], b: &[f32]) {
        let scale = _mm256_set1_ps(3.0);
        for i in (0..out.len()).step_by(8) {
            // SAFETY: `i + 8` is within all three slices, and `out + i` is a multiple of 32 bytes.
            unsafe {
                let sum =
                    _mm256_fmadd_ps(_mm256_loadu_ps(b.as_ptr().add(i)), scale, _mm256_loadu_ps(a.as_ptr().add(i)));
                _mm256_stream_ps(out.as_mut_ptr().add(i), sum);
            }
        }
        _mm_sfence();
    }
}
