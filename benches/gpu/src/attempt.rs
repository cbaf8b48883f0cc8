//! Arms whose calls can fail: fallible closures enter, an [`Arm`] leaves.
//!
//! A driver or a peer that fails, even by a panic, becomes a line of the report instead of the end of the run. What
//! that check costs is nothing beside a dispatch.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::arm::{Arm, Fallible, Runner};
use crate::reference::Expected;

/// An arm whose every call gives an output, which is dropped inside the measured time.
pub fn returning<'w, R: 'w>(
    library: &'static str,
    variant: &str,
    run: impl FnMut() -> Fallible<R> + 'w,
    read: impl FnMut(R) -> Fallible<Vec<f32>> + 'w,
) -> Arm<'w> {
    Arm { library, variant: variant.to_owned(), runner: Box::new(Returning { run, read }) }
}

/// An arm that writes into memory which outlives its calls.
pub fn writing<'w>(
    library: &'static str,
    variant: &str,
    out: Vec<f32>,
    run: impl FnMut(&mut [f32]) -> Fallible<()> + 'w,
) -> Arm<'w> {
    Arm { library, variant: variant.to_owned(), runner: Box::new(Writing { out, run }) }
}

/// The same arm, judged again after each sample: a library that tunes itself may come to prefer a kernel that is fast
/// because the driver cuts it short.
pub fn checked<'w>(arm: Arm<'w>, expected: &'w Expected) -> Arm<'w> {
    Arm { runner: Box::new(Checked { runner: arm.runner, expected }), ..arm }
}

struct Checked<'w> {
    runner: Box<dyn Runner + 'w>,
    expected: &'w Expected,
}

impl Runner for Checked<'_> {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        let ns = self.runner.sample(warm_up, calls)?;
        let result = self.runner.result()?;
        self.expected.judge(&result).map_err(|why| format!("right at first, then wrong: {why}"))?;
        Ok(ns)
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        self.runner.result()
    }
}

struct Returning<F, G> {
    run: F,
    read: G,
}

impl<R, F: FnMut() -> Fallible<R>, G: FnMut(R) -> Fallible<Vec<f32>>> Runner for Returning<F, G> {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        caught(|| time_calls(warm_up, calls, || (self.run)().map(|result| drop(black_box(result)))))
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        caught(|| (self.read)((self.run)()?))
    }
}

struct Writing<F> {
    out: Vec<f32>,
    run: F,
}

impl<F: FnMut(&mut [f32]) -> Fallible<()>> Runner for Writing<F> {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        caught(|| time_calls(warm_up, calls, || (self.run)(black_box(&mut self.out))))
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        // What a call leaves out must be seen.
        self.out.fill(f32::NAN);
        caught(|| (self.run)(&mut self.out))?;
        Ok(self.out.clone())
    }
}

fn time_calls(warm_up: Duration, calls: u32, mut call: impl FnMut() -> Fallible<()>) -> Fallible<f64> {
    let start = Instant::now();
    loop {
        call()?;
        if start.elapsed() >= warm_up {
            break;
        }
    }
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(calls))
}

/// A panic as an error.
pub fn caught<T>(call: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(format!("it panicked: {}", text.lines().next().unwrap_or_default()).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_panics_are_errors() {
        let mut fails = returning("x", "", || Err::<(), _>("no device".into()), |()| Ok(Vec::new()));
        assert_eq!(fails.runner.result().unwrap_err().to_string(), "no device");
        let mut panics = writing("x", "", vec![0.0], |_| panic!("lost"));
        assert_eq!(panics.runner.sample(Duration::ZERO, 1).unwrap_err().to_string(), "it panicked: lost");
    }
}
