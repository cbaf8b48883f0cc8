//! Tasks of one batch on several devices at once: who has which share enters, results leave. A device that fails costs none
//! of them: the CPU does its tasks, too.

use crate::array::View;
use crate::calibrate::slow_down;
use crate::devices::Slot;
use crate::many::Layout;
use crate::tasks::Tasks;
use breakeven_ir::backend::{RunError, Timings};
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Instant;

/// Somebody's part of a batch that several devices work on at once.
#[derive(Clone, Copy)]
pub(crate) struct Part<'s> {
    /// `None` is the CPU, which comes last.
    pub(crate) slot: Option<&'s Slot>,
    /// Of its tasks or rows.
    pub(crate) share: f64,
}

/// A device's work on a thread of its own.
pub(crate) struct Working<'scope, 's, T, E> {
    slot: &'s Slot,
    thread: io::Result<ScopedJoinHandle<'scope, Result<T, E>>>,
}

impl<'scope, 's, T: Send + 'scope, E: Display + Send + 'scope> Working<'scope, 's, T, E> {
    /// Begins it.
    pub(crate) fn begin<'env>(
        scope: &'scope Scope<'scope, 'env>,
        slot: &'s Slot,
        work: impl FnOnce() -> Result<T, E> + Send + 'scope,
    ) -> Working<'scope, 's, T, E> {
        let thread = Builder::new().name("breakeven part".into()).spawn_scoped(scope, work);
        Working { slot, thread }
    }

    /// Waits for it: what it made, or why there is nothing.
    pub(crate) fn end(self) -> Result<T, String> {
        let id = self.slot.backend.id();
        match self.thread.map(ScopedJoinHandle::join) {
            Ok(Ok(outcome)) => outcome.map_err(|error| error.to_string()),
            // The driver's, and nothing of ours is lost.
            Ok(Err(_)) => Err(format!("{id}: its driver has panicked")),
            Err(error) => Err(format!("{id}: there is no thread to wait for it: {error}")),
        }
    }
}

/// How a batch went on several devices at once.
#[derive(Default)]
pub(crate) struct Divided {
    /// The tasks that failed, in order.
    pub(crate) failed: Vec<(usize, RunError)>,
    pub(crate) timings: Timings,
    /// Why some device's tasks are the CPU's work after all.
    pub(crate) fault: Option<String>,
}

/// One part's tasks, and where their results go.
struct Side<'t, 'a, T> {
    slot: Option<&'t Slot>,
    first: usize,
    tasks: Tasks<'t, 'a, T>,
    results: &'t mut [u8],
}

impl<'a, T: AsRef<[View<'a>]> + Sync> Tasks<'_, 'a, T> {
    /// Each has its part of the tasks, all at once.
    pub(crate) fn fill_on_all(&self, parts: &[Part<'_>], results: &mut [u8]) -> Divided {
        let ranges = self.ranges(parts);
        let layouts: Vec<Layout> = ranges.iter().map(|range| self.layout.part(range.clone())).collect();
        let mut rest = results;
        let mut sides: Vec<Side<'_, 'a, T>> = Vec::with_capacity(parts.len());
        for ((part, range), layout) in parts.iter().zip(ranges).zip(&layouts) {
            let (results, others) = std::mem::take(&mut rest).split_at_mut(layout.bytes());
            rest = others;
            let tasks = &self.tasks[range.clone()];
            let tasks =
                Tasks { program: self.program, tasks, layout, inputs: &[], memory: None, fault: None, stops: &[] };
            sides.push(Side { slot: part.slot, first: range.start, tasks, results });
        }
        run_sides(sides, self.program.engine.config.slow_cpu)
    }

    /// Which tasks each part has.
    fn ranges(&self, parts: &[Part<'_>]) -> Vec<Range<usize>> {
        let count = self.tasks.len();
        let (mut share, mut first) = (0.0, 0);
        let range = |(number, part): (usize, &Part<'_>)| {
            share += part.share;
            let is_last = number + 1 == parts.len();
            let end = if is_last { count } else { ((count as f64 * share).round() as usize).clamp(first, count) };
            std::mem::replace(&mut first, end)..end
        };
        parts.iter().enumerate().map(range).collect()
    }
}

fn run_sides<'a, T: AsRef<[View<'a>]> + Sync>(mut sides: Vec<Side<'_, 'a, T>>, slow_cpu: u32) -> Divided {
    let begun = Instant::now();
    let ns = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut divided = Divided::default();
    let there: Vec<_> = std::thread::scope(|scope| {
        let (mut working, mut here) = (Vec::new(), None);
        for Side { slot, first, tasks, results } in &mut sides {
            match slot {
                Some(slot) => working.push(Working::begin(scope, slot, || tasks.fill_on(slot, results, false))),
                None => here = Some((first, tasks, results)),
            }
        }
        if let Some((first, tasks, results)) = here {
            divided.failed = numbered(*first, tasks.fill_on_cpu(results));
            slow_down(&tasks.program.engine.cpu, begun, slow_cpu);
            divided.timings.total_ns = ns();
        }
        working.into_iter().map(Working::end).collect()
    });
    let (all_ns, mut done_ns, mut faults) = (ns(), divided.timings.total_ns, Vec::new());
    let devices = sides.iter_mut().filter_map(|side| side.slot.map(|slot| (slot, side)));
    for ((slot, side), outcome) in devices.zip(there) {
        let failed = match outcome {
            Ok((failed, _, took)) => {
                divided.timings.add(&took);
                // A simulated device tells when it is done; the batch is when all are.
                done_ns = done_ns.max(if slot.backend.is_simulated() { took.total_ns } else { all_ns });
                failed
            }
            Err(fault) => {
                faults.push(fault);
                // Nothing is lost.
                side.tasks.fill_on_cpu(side.results)
            }
        };
        divided.failed.extend(numbered(side.first, failed));
    }
    divided.failed.sort_by_key(|(task, _)| *task);
    divided.timings.total_ns = if faults.is_empty() { done_ns } else { ns() };
    divided.fault = (!faults.is_empty()).then(|| faults.join("; "));
    divided
}

/// Tasks by their numbers in the whole batch.
fn numbered(first: usize, failed: Vec<(usize, RunError)>) -> Vec<(usize, RunError)> {
    failed.into_iter().map(|(task, error)| (task + first, error)).collect()
}
