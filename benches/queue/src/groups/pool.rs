//! Device memory: allocating, freeing, writing and reading it, and a pool that is at its limit.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Row, size};
use crate::arm::Fallible;
use crate::case::{Case, scaled};
use crate::pool::{Pool, PoolExperiment, with_every_pool, with_statistics};
use crate::report::Bar;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
/// Far from what any row but the last holds at a time.
const ROOMY: usize = 1 << 30;
/// Pieces of 1 MB that a pool under pressure has room for.
const PIECES: usize = 64;

const JOB: &str = "memory whose owner may be several threads, all 0 at first; bars are about direct calls, commands take a \
                   turn in the queue and are waited for. The vec has one owner and no lock; the mutex's memory is not \
                   cleared";

pub(super) fn rows() -> Vec<Row> {
    let row = |case: String, step: Step| Row::new("pool", case, move || with_every_pool(&step)).job(JOB);
    let allocate = |bytes| {
        let row = row(format!("allocate {}", size(bytes)), Step::Allocate(bytes));
        row.bar(Bar::below("allocate < 1 us", 1e3))
    };
    let free = |bytes| row(format!("free {}", size(bytes)), Step::Free(bytes)).bar(Bar::below("free < 500 ns", 500.0));
    vec![
        allocate(KB),
        allocate(MB),
        free(KB),
        free(MB),
        row("read 1 KB".into(), Step::Read).bar(Bar::below("1 KB read < 100 ns", 100.0)),
        row("write 1 KB".into(), Step::Write).bar(Bar::below("1 KB write < 100 ns", 100.0)),
        row("allocate, write, read, free 1 KB".into(), Step::Cycle),
    ]
}

pub(super) fn pressure() -> Vec<Row> {
    let build = || {
        let mut cases = with_every_pool(&Pressure)?;
        cases.extend(with_statistics(&Pressure)?);
        Ok(cases)
    };
    let row = Row::new("pressure", "64 x 1 MB, refused, freed, again", build);
    vec![row.job(
        "twice 64 allocations, one refusal, 64 frees; the limit is an account of the caller's in all arms; nothing \
                  is written",
    )]
}

#[derive(Clone, Copy)]
enum Step {
    Allocate(usize),
    Free(usize),
    Read,
    Write,
    Cycle,
}

impl PoolExperiment for Step {
    fn case<P: Pool>(&self) -> Fallible<Case> {
        let pool = P::open(ROOMY)?;
        let data = Bytes::from(vec![7u8; KB]);
        Ok(match *self {
            Step::Allocate(bytes) => {
                Case::new(P::NAME, P::VARIANT, move |iterations| Ok(hold_and_release(&pool, bytes, iterations)?.0))
            }
            Step::Free(bytes) => {
                Case::new(P::NAME, P::VARIANT, move |iterations| Ok(hold_and_release(&pool, bytes, iterations)?.1))
            }
            Step::Write => {
                let mut memory = pool.allocate(KB)?;
                Case::whole(P::NAME, P::VARIANT, move || Ok(pool.write(&mut memory, &data)?))
            }
            Step::Read => {
                let mut memory = pool.allocate(KB)?;
                pool.write(&mut memory, &data)?;
                let mut into = vec![0; KB];
                pool.read(&memory, &mut into)?;
                if into != data {
                    return Err(format!("{} reads something else than was written", P::NAME).into());
                }
                Case::whole(P::NAME, P::VARIANT, move || Ok(pool.read(&memory, black_box(&mut into))?))
            }
            Step::Cycle => {
                let mut into = vec![0; KB];
                Case::whole(P::NAME, P::VARIANT, move || {
                    let mut memory = pool.allocate(KB)?;
                    pool.write(&mut memory, &data)?;
                    pool.read(&memory, black_box(&mut into))?;
                    Ok(pool.free(memory)?)
                })
            }
        })
    }
}

/// The times of allocating and of freeing, 16 pieces at a time.
fn hold_and_release<P: Pool>(pool: &P, bytes: usize, iterations: u64) -> Fallible<(Duration, Duration)> {
    let mut freeing = Duration::ZERO;
    let mut held = Vec::with_capacity(16);
    // What is not asked for takes as long as what is: no more than this many a sample.
    let most = 2048.min(iterations.max(1));
    let allocating = scaled(iterations, most, |iterations| {
        let mut allocating = Duration::ZERO;
        let mut left = iterations;
        while left > 0 {
            let count = left.min(16);
            left -= count;
            let start = Instant::now();
            for _ in 0..count {
                held.push(black_box(pool.allocate(bytes)?));
            }
            let between = Instant::now();
            for memory in held.drain(..) {
                pool.free(memory)?;
            }
            allocating += between - start;
            freeing += between.elapsed();
        }
        Ok(allocating)
    })?;
    Ok((allocating, freeing.mul_f64(iterations as f64 / most as f64)))
}

/// Allocates until the limit, is refused, frees, and allocates again.
struct Pressure;

impl PoolExperiment for Pressure {
    fn case<P: Pool>(&self) -> Fallible<Case> {
        let pool = P::open(PIECES * MB)?;
        let mut held = Vec::with_capacity(PIECES);
        Ok(Case::whole(P::NAME, P::VARIANT, move || {
            for _ in 0..2 {
                for _ in 0..PIECES {
                    held.push(pool.allocate(MB)?);
                }
                if pool.allocate(MB).is_ok() {
                    return Err("memory beyond the limit was handed out".into());
                }
                for memory in held.drain(..) {
                    pool.free(memory)?;
                }
            }
            Ok(())
        }))
    }
}
