//! Tasks on their way to a device: many small batches as one, on the CPU's threads or in one submission.

use crate::array::{Array, View};
use crate::devices::Slot;
use crate::error::Result;
use crate::many::Layout;
use crate::program::{Bound, Inner};
use crate::route::Attempt;
use crate::verify;
use breakeven_cpu::Block;
use breakeven_ir::backend::{RESULT_ALIGN, RunError, Task, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::{Arc, Mutex, PoisonError};

/// Results and the tasks that failed, in order, come back.
pub(crate) struct Tasks<'t, T> {
    pub(crate) program: &'t Inner,
    pub(crate) tasks: &'t [T],
    pub(crate) layout: &'t Layout,
}

/// The memory of all results, and the tasks that failed.
type Results = (Buffer, Vec<(usize, RunError)>);

impl<'a, T: AsRef<[View<'a>]> + Sync> Tasks<'_, T> {
    pub(crate) fn run_on_cpu(&self) -> Result<Results> {
        let (program, tasks, layout) = (self.program, self.tasks, self.layout);
        let cpu = &program.engine.cpu;
        let mut block = cpu.blocks().take(layout.bytes())?;
        let results = block.as_mut_bytes();
        let failed = Failures::default();
        // Half of a small task's time is the call, which tasks of one batch share.
        let batch_ns = || layout.work_ns() / 2;
        match layout {
            // Few tasks that are each worth several threads run one after the other; else each runs on one thread.
            _ if tasks.len() < 2 * program.engine.threads => one_by_one(layout, tasks, results, &failed),
            Layout::Uniform { count, bound } => {
                cpu.for_each_stride(results, *count, bound.stride, batch_ns(), |range, results| {
                    run_same(bound, &tasks[range.clone()], range.start, results, &failed);
                });
            }
            Layout::Mixed { tasks: list, offsets, bounds } => {
                cpu.for_each_range(results, offsets, batch_ns(), |range, mut rest| {
                    let mut at = range.start;
                    while at < range.end {
                        let run = list[at..range.end].iter().take_while(|&&other| other == list[at]).count();
                        let bound = &bounds[list[at] as usize];
                        let (results, tail) = std::mem::take(&mut rest).split_at_mut(run * bound.stride);
                        rest = tail;
                        run_same(bound, &tasks[at..at + run], at, results, &failed);
                        at += run;
                    }
                });
            }
        }
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_by_key(|(task, _)| *task);
        Ok((buffer(block), failed))
    }

    /// The results of all tasks but those that failed.
    fn arrays(&self, data: &Buffer, failed: &[(usize, RunError)]) -> Vec<Array> {
        let mut arrays = Vec::new();
        for task in (0..self.tasks.len()).filter(|task| failed.iter().all(|(other, _)| other != task)) {
            let Some((mut at, bound)) = self.layout.get(task) else { continue };
            for info in bound.prepared.plan().output_buffers() {
                arrays.extend(data.slice(at..at + info.bytes()).map(|data| Array::new(data, info.dtype, info.shape)));
                at += info.bytes().next_multiple_of(RESULT_ALIGN);
            }
        }
        arrays
    }

    /// What the tasks ran, each once.
    fn bounds(&self) -> &[Arc<Bound>] {
        match self.layout {
            Layout::Uniform { bound, .. } => std::slice::from_ref(bound),
            Layout::Mixed { bounds, .. } => bounds,
        }
    }
}

impl<'a, T: AsRef<[View<'a>]> + Sync> Attempt for Tasks<'_, T> {
    type Output = Results;

    fn on(&mut self, slot: &Slot) -> Result<(Results, Timings)> {
        // Made ready first, and kept: the device knows a task by its plan.
        for bound in self.bounds() {
            slot.ready(bound.prepared.plan())?;
        }
        let placed: Vec<(usize, &Bound)> = (0..self.tasks.len()).filter_map(|task| self.layout.get(task)).collect();
        let mut inputs: Vec<&[u8]> = Vec::new();
        let mut ends: Vec<usize> = Vec::with_capacity(placed.len());
        for (task, (_, bound)) in self.tasks.iter().zip(&placed) {
            bound.for_each_input(task.as_ref(), |bytes| inputs.push(bytes));
            ends.push(inputs.len());
        }
        let start = |task: usize| if task == 0 { 0 } else { ends[task - 1] };
        let task = |(task, (offset, bound)): (usize, &(usize, &'_ Bound))| {
            (bound.prepared.plan().clone(), start(task)..ends[task], *offset)
        };
        let list: Vec<_> = placed.iter().enumerate().map(task).collect();
        let tasks: Vec<Task<'_>> = list
            .iter()
            .map(|(plan, range, offset)| Task { plan, inputs: &inputs[range.clone()], offset: *offset })
            .collect();
        let mut block = self.program.engine.cpu.blocks().take(self.layout.bytes())?;
        let mut failed = Vec::new();
        let timings =
            slot.backend.run_mixed(&tasks, block.as_mut_bytes(), &mut |task, error| failed.push((task, error)))?;
        // The tasks are not to blame: another device has their results.
        if let Some((_, fault)) = failed.iter().find(|(_, error)| error.is_device_fault()) {
            return Err(fault.clone().into());
        }
        failed.sort_by_key(|(task, _)| *task);
        let data = buffer(block);
        if slot.is_sampled(self.program.engine.config.verify) {
            let (right, _) = self.run_on_cpu()?;
            verify::check(slot, &self.arrays(&data, &failed), &self.arrays(&right, &failed))?;
        }
        Ok(((data, failed), timings))
    }

    fn on_cpu(&mut self) -> Result<(Results, Timings)> {
        Ok((self.run_on_cpu()?, Timings::default()))
    }

    fn is_ready(&mut self, slot: &Slot) -> Result<bool> {
        let ready: Result<Vec<bool>, RunError> =
            self.bounds().iter().map(|bound| Ok(slot.ready(bound.prepared.plan())?.is_ready())).collect();
        Ok(ready?.into_iter().all(|ready| ready))
    }

    fn kernels(&self) -> usize {
        self.program.bound.prepared.plan().kernels.len()
    }
}

fn buffer(block: Block) -> Buffer {
    Buffer::new(Arc::new(block) as Arc<dyn HostBytes>)
}

/// Failures of tasks that may run side by side.
type Failures = Mutex<Vec<(usize, RunError)>>;

fn note(failed: &Failures, task: usize, error: RunError) {
    failed.lock().unwrap_or_else(PoisonError::into_inner).push((task, error));
}

/// Tasks one after the other, each on as many threads as it pays for.
fn one_by_one<'a, T: AsRef<[View<'a>]>>(layout: &Layout, tasks: &[T], results: &mut [u8], failed: &Failures) {
    for (number, task) in tasks.iter().enumerate() {
        let Some((at, bound)) = layout.get(number) else { return };
        let outcome = with_outputs(bound.prepared.plan(), &mut results[at..at + bound.stride], |outputs| {
            bound.with_inputs(task.as_ref(), |inputs| bound.prepared.run(inputs, outputs, true))
        });
        if let Err(error) = outcome {
            note(failed, number, error);
        }
    }
}

/// Inputs of tasks that are listed on the stack: small batches would feel the allocation.
const LISTED: usize = 32;

/// Tasks of one size, the first of which has number `first`, on this thread.
fn run_same<'a, T: AsRef<[View<'a>]>>(bound: &Bound, tasks: &[T], first: usize, results: &mut [u8], failed: &Failures) {
    let run = |inputs: &[&[u8]], results: &mut [u8]| {
        let failed = &mut |task, error| note(failed, first + task, error);
        bound.prepared.run_tasks(tasks.len(), inputs, results, bound.stride, failed);
    };
    let count = tasks.len() * bound.prepared.plan().inputs;
    if count <= LISTED {
        let mut inputs: [&[u8]; LISTED] = [&[]; LISTED];
        let mut slots = inputs.iter_mut();
        let mut put = |bytes| slots.next().map_or((), |slot| *slot = bytes);
        tasks.iter().for_each(|task| bound.for_each_input(task.as_ref(), &mut put));
        run(&inputs[..count], results);
    } else {
        let mut inputs: Vec<&[u8]> = Vec::with_capacity(count);
        tasks.iter().for_each(|task| bound.for_each_input(task.as_ref(), |bytes| inputs.push(bytes)));
        run(&inputs, results);
    }
}

/// Cuts a task's memory into its outputs.
fn with_outputs<R>(plan: &Plan, results: &mut [u8], work: impl FnOnce(&mut [&mut [u8]]) -> R) -> R {
    const INLINE: usize = 4;
    let mut rest = results;
    let mut next = |info: &BufferInfo| {
        let (padded, tail) = std::mem::take(&mut rest).split_at_mut(info.bytes().next_multiple_of(RESULT_ALIGN));
        rest = tail;
        &mut padded[..info.bytes()]
    };
    let count = plan.output_buffers().count();
    if count <= INLINE {
        let mut slices: [&mut [u8]; INLINE] = Default::default();
        for (slot, info) in slices.iter_mut().zip(plan.output_buffers()) {
            *slot = next(info);
        }
        work(&mut slices[..count])
    } else {
        let mut slices: Vec<&mut [u8]> = plan.output_buffers().map(next).collect();
        work(&mut slices)
    }
}
