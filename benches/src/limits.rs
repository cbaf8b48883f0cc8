//! What this machine can do at most, measured in the same run: nothing enters, peak flops and bandwidths leave.
//!
//! A ratio to the best peer says who is faster; the share of the limit says how much there is left to win. Loops that
//! do nothing but multiply-add, read, or read and write, on every core, for a few milliseconds each.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::workload::Cost;

mod kernels;

/// One measurement lasts this long; the best of [`TRIES`] counts, because a limit is what can be reached.
const WINDOW: Duration = Duration::from_millis(12);
const TRIES: usize = 5;
/// Working sets of the bandwidth curves: L1 to main memory.
const WORKING_SETS: [usize; 8] = [1 << 14, 1 << 17, 1 << 19, 1 << 21, 1 << 23, 1 << 25, 1 << 27, 1 << 28];

/// Bandwidth over a working set.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bandwidth {
    /// Bytes of all arrays together.
    pub working_set_bytes: usize,
    /// Gigabytes a second, reading only (a sum), the better of one thread and all.
    pub read_gbps: f64,
    /// Gigabytes a second, reading two arrays and writing one, the best of plain and non-temporal stores.
    pub triad_gbps: f64,
}

/// The machine's limits.
#[derive(Clone, Debug, Serialize)]
pub struct Limits {
    /// Threads that "all threads" means.
    pub threads: usize,
    /// Instruction set of the multiply-add loop.
    pub lanes: &'static str,
    /// Peak of one thread.
    pub fma_gflops_1_thread: f64,
    /// Peak of all threads.
    pub fma_gflops_all_threads: f64,
    /// Bandwidth from small to large working sets.
    pub bandwidth: Vec<Bandwidth>,
}

/// How near a time comes to the machine's limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    /// Least possible time over the time taken.
    pub of_limit: f64,
    /// What binds: `fma` or `memory`.
    pub bound: &'static str,
}

impl Limits {
    /// Measures; takes about three seconds.
    pub fn measure() -> Limits {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            threads,
            lanes: kernels::lanes(),
            fma_gflops_1_thread: fma_gflops(1),
            fma_gflops_all_threads: fma_gflops(threads),
            bandwidth: WORKING_SETS.iter().map(|&bytes| bandwidth(bytes, threads)).collect(),
        }
    }

    /// The higher of two measurements, point by point.
    pub fn better_of(&self, other: &Limits) -> Limits {
        let better = |(a, b): (&Bandwidth, &Bandwidth)| Bandwidth {
            working_set_bytes: a.working_set_bytes,
            read_gbps: a.read_gbps.max(b.read_gbps),
            triad_gbps: a.triad_gbps.max(b.triad_gbps),
        };
        Limits {
            threads: self.threads,
            lanes: self.lanes,
            fma_gflops_1_thread: self.fma_gflops_1_thread.max(other.fma_gflops_1_thread),
            fma_gflops_all_threads: self.fma_gflops_all_threads.max(other.fma_gflops_all_threads),
            bandwidth: self.bandwidth.iter().zip(&other.bandwidth).map(better).collect(),
        }
    }

    /// The share of the limit that work of this cost reaches in `ns`.
    pub fn share(&self, cost: Cost, ns: f64) -> Share {
        let flops_ns = cost.flops / self.fma_gflops_all_threads;
        let memory_ns = cost.bytes / self.gbps(cost.bytes, cost.read_only);
        if flops_ns > memory_ns {
            Share { of_limit: flops_ns / ns, bound: "fma" }
        } else {
            Share { of_limit: memory_ns / ns, bound: "memory" }
        }
    }

    /// Bandwidth at a working set, interpolated over the logarithm of its size.
    fn gbps(&self, bytes: f64, read_only: bool) -> f64 {
        let value = |point: &Bandwidth| if read_only { point.read_gbps } else { point.triad_gbps };
        let size = |point: &Bandwidth| (point.working_set_bytes as f64).ln();
        let above = self.bandwidth.partition_point(|point| (point.working_set_bytes as f64) < bytes);
        match above {
            0 => value(&self.bandwidth[0]),
            _ if above == self.bandwidth.len() => value(&self.bandwidth[above - 1]),
            _ => {
                let (low, high) = (&self.bandwidth[above - 1], &self.bandwidth[above]);
                let along = (bytes.ln() - size(low)) / (size(high) - size(low));
                value(low) + along * (value(high) - value(low))
            }
        }
    }
}

fn fma_gflops(threads: usize) -> f64 {
    best_rate(threads, || kernels::fma_flops)
}

fn bandwidth(working_set_bytes: usize, all_threads: usize) -> Bandwidth {
    let mut best = Bandwidth { working_set_bytes, read_gbps: 0.0, triad_gbps: 0.0 };
    for threads in [1, all_threads] {
        let elems = working_set_bytes / 4 / threads;
        let read = best_rate(threads, || {
            let array = vec![1.0f32; elems];
            let passes = passes(elems);
            move || {
                for _ in 0..passes {
                    std::hint::black_box(kernels::read_sum(&array));
                }
                (array.len() * passes) as f64 * 4.0
            }
        });
        best.read_gbps = best.read_gbps.max(read);
        for non_temporal in [false, true] {
            let triad = best_rate(threads, || {
                // Whole cache lines, which the non-temporal loop needs.
                let len = elems / 3 / 16 * 16;
                let (a, b) = (vec![1.0f32; len], vec![2.0f32; len]);
                let mut out = kernels::Lines::new(len);
                let passes = passes(elems);
                move || {
                    for _ in 0..passes {
                        kernels::triad(out.as_mut_slice(), &a, &b, non_temporal);
                        std::hint::black_box(out.as_mut_slice());
                    }
                    (len * passes) as f64 * 12.0
                }
            });
            best.triad_gbps = best.triad_gbps.max(triad);
        }
    }
    best
}

/// Passes between two looks at the clock, whose 25 ns would count beside one pass over L1.
fn passes(elems: usize) -> usize {
    (1 << 18) / elems.max(1) + 1
}

/// Units (flops, bytes) a nanosecond over all threads, each running its own `work` in a window of time.
fn best_rate<W: FnMut() -> f64>(threads: usize, make: impl Fn() -> W + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let run = || {
        let mut work = make();
        work();
        let mut rates = Vec::new();
        for _ in 0..TRIES {
            barrier.wait();
            let (start, mut units) = (Instant::now(), 0.0);
            while start.elapsed() < WINDOW {
                units += work();
            }
            rates.push(units / start.elapsed().as_nanos() as f64);
        }
        rates
    };
    let rates: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        handles.into_iter().map(|handle| handle.join().expect("a measuring thread does not panic")).collect()
    });
    (0..TRIES).map(|attempt| rates.iter().map(|thread| thread[attempt]).sum()).fold(0.0, f64::max)
}
