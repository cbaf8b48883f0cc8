//! One way of computing a workload: a library's calls enter as closures, something that can be timed leaves.
//!
//! An arm hands over its result once, before it is timed, so that only right answers are compared. The timed loop
//! is compiled together with the call, so that an arm of 60 ns is not measured through a function pointer.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What can go wrong in an arm, for people to read.
pub type Fallible<T> = Result<T, Box<dyn Error>>;

/// Something that can be run, timed and asked for its result.
pub trait Runner {
    /// Runs untimed for at least `warm_up` (one call at least), then `calls` timed calls; nanoseconds a call.
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64>;
    /// Runs once and gives the whole result, row-major.
    fn result(&mut self) -> Fallible<Vec<f32>>;
}

/// A library's variant on one workload.
pub struct Arm<'w> {
    /// The library, as the summary counts it.
    pub library: &'static str,
    /// How the library is used; empty for the plain way.
    pub variant: String,
    /// What is timed.
    pub runner: Box<dyn Runner + 'w>,
}

impl<'w> Arm<'w> {
    /// An arm whose every call gives a fresh output, which is dropped inside the measured time.
    pub fn returning<R: 'w>(
        library: &'static str,
        variant: &str,
        run: impl FnMut() -> R + 'w,
        read: impl FnMut(R) -> Vec<f32> + 'w,
    ) -> Arm<'w> {
        Arm { library, variant: variant.to_owned(), runner: Box::new(Returning { run, read }) }
    }

    /// An arm that writes into `state`, which outlives its calls.
    pub fn writing<S: 'w>(
        library: &'static str,
        variant: &str,
        state: S,
        run: impl FnMut(&mut S) + 'w,
        read: impl FnMut(&S) -> Vec<f32> + 'w,
    ) -> Arm<'w> {
        Arm { library, variant: variant.to_owned(), runner: Box::new(Writing { state, run, read }) }
    }

    /// The name in the report.
    pub fn name(&self) -> String {
        match self.variant.as_str() {
            "" => self.library.to_owned(),
            variant => format!("{}-{variant}", self.library),
        }
    }
}

struct Returning<F, G> {
    run: F,
    read: G,
}

impl<R, F: FnMut() -> R, G: FnMut(R) -> Vec<f32>> Runner for Returning<F, G> {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        Ok(time_calls(warm_up, calls, || drop(black_box((self.run)()))))
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        Ok((self.read)((self.run)()))
    }
}

struct Writing<S, F, G> {
    state: S,
    run: F,
    read: G,
}

impl<S, F: FnMut(&mut S), G: FnMut(&S) -> Vec<f32>> Runner for Writing<S, F, G> {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        Ok(time_calls(warm_up, calls, || (self.run)(black_box(&mut self.state))))
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        (self.run)(&mut self.state);
        Ok((self.read)(&self.state))
    }
}

fn time_calls(warm_up: Duration, calls: u32, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    loop {
        call();
        if start.elapsed() >= warm_up {
            break;
        }
    }
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}
