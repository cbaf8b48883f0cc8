//! One arm of one row: a closure that times itself enters, something for criterion and for the table leaves.
//!
//! The closure gets a number of iterations and tells what they took, as criterion's `iter_custom` wants it, so that what
//! must not count (waiting for answers after sends, giving memory back) is left out in both.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::arm::{Arm, Fallible, Runner};

/// What so many iterations take.
pub type Run = Box<dyn FnMut(u64) -> Fallible<Duration>>;

/// One library's way of doing a row's work.
pub struct Case {
    /// The library.
    pub library: &'static str,
    /// How it is used; empty for the plain way.
    pub variant: String,
    /// Does it and tells the time.
    pub run: Run,
}

impl Case {
    /// A case.
    pub fn new(library: &'static str, variant: &str, run: impl FnMut(u64) -> Fallible<Duration> + 'static) -> Case {
        Case { library, variant: variant.to_owned(), run: Box::new(run) }
    }

    /// A case all of whose time counts; `once` is one iteration.
    pub fn whole(library: &'static str, variant: &str, mut once: impl FnMut() -> Fallible<()> + 'static) -> Case {
        Case::new(library, variant, move |iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                once()?;
            }
            Ok(start.elapsed())
        })
    }

    /// As an arm of the table, whose samples are also kept one by one. Every iteration checks its own answers: the result of
    /// one that ran is [`RIGHT`].
    pub fn into_arm(self) -> (Arm<'static>, Samples) {
        let samples = Samples::default();
        let runner = Box::new(SelfTimed { run: self.run, samples: samples.clone() });
        (Arm { library: self.library, variant: self.variant, runner }, samples)
    }
}

/// The result of a case that ran.
pub const RIGHT: f32 = 1.0;

/// Nanoseconds an iteration, sample by sample; the first ones are of the calibration.
pub type Samples = Rc<RefCell<Vec<f64>>>;

struct SelfTimed {
    run: Run,
    samples: Samples,
}

impl Runner for SelfTimed {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        let start = Instant::now();
        loop {
            (self.run)(1)?;
            if start.elapsed() >= warm_up {
                break;
            }
        }
        let ns = (self.run)(u64::from(calls))?.as_nanos() as f64 / f64::from(calls);
        self.samples.borrow_mut().push(ns);
        Ok(ns)
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        (self.run)(1)?;
        Ok(vec![RIGHT])
    }
}

/// What `iterations` take, of which at most `most` are done: what is left out of the time (a worker copies 1 MB for a send
/// of 50 ns) would make millions of iterations last for minutes.
pub fn scaled(iterations: u64, most: u64, run: impl FnOnce(u64) -> Fallible<Duration>) -> Fallible<Duration> {
    let done = iterations.min(most);
    if done == 0 {
        return Ok(Duration::ZERO);
    }
    Ok(run(done)?.mul_f64(iterations as f64 / done as f64))
}

/// From the first start to the last end of threads that begin together: starting them does not count.
pub fn together(threads: usize, work: impl Fn(usize) -> Fallible<()> + Sync) -> Fallible<Duration> {
    let barrier = Barrier::new(threads);
    let one = |thread: usize| {
        barrier.wait();
        let start = Instant::now();
        // Errors go to another thread as text.
        work(thread).map_err(|error| error.to_string())?;
        Ok::<_, String>((start, Instant::now()))
    };
    let spans: Result<Vec<(Instant, Instant)>, String> = std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    });
    let spans = spans?;
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    Ok(start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_beyond_the_most_are_scaled() {
        let each = |done: u64| Ok(Duration::from_nanos(10 * done));
        assert_eq!(scaled(5, 100, each).unwrap(), Duration::from_nanos(50));
        assert_eq!(scaled(1000, 100, each).unwrap(), Duration::from_nanos(10_000));
    }

    #[test]
    fn an_error_of_one_thread_is_the_error_of_all() {
        let failing = |thread: usize| if thread == 1 { Err("no".into()) } else { Ok(()) };
        assert_eq!(together(2, failing).unwrap_err().to_string(), "no");
    }
}
