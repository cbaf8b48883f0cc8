//! Tasks on their way to a device: many small batches as one, on the CPU's threads or in one submission.

use crate::array::{Array, View};
use crate::calibrate::slow_down;
use crate::devices::Slot;
use crate::divided::{Divided, Part};
use crate::error::Result;
use crate::many::Layout;
use crate::program::{Bound, Inner};
use crate::route::Attempt;
use crate::router::SEVERAL;
use crate::scout::Parts;
use crate::verify;
use breakeven_cpu::Block;
use breakeven_ir::backend::{Prepared, RESULT_ALIGN, RunError, Stop, Task, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Results and the tasks that failed, in order, come back.
pub(crate) struct Tasks<'t, 'a, T> {
    pub(crate) program: &'t Inner,
    pub(crate) tasks: &'t [T],
    pub(crate) layout: &'t Layout,
    /// The inputs of all tasks one after the other, or nothing if they were not listed on the way.
    pub(crate) inputs: &'t [&'a [u8]],
    /// Memory of an earlier batch that nobody reads any more.
    pub(crate) memory: Option<Arc<Block>>,
    /// A fault that was stood in for on the way.
    pub(crate) fault: Option<String>,
    /// Told when nobody wants a task's results any more: one for each task, or none at all.
    pub(crate) stops: &'t [&'t Stop],
}

/// Inputs of tasks; those of small batches lie on the stack, because they would feel the allocation.
pub(crate) type Inputs<'a> = SmallVec<[&'a [u8]; 32]>;

/// The results of tasks.
pub(crate) struct Results {
    /// The memory of all of them.
    pub(crate) data: Arc<Block>,
    /// The tasks that failed, in order.
    pub(crate) failed: Vec<(usize, RunError)>,
    /// The tasks whose outputs lie elsewhere, in order: where each of their output buffers is.
    pub(crate) apart: Vec<(usize, Vec<Buffer>)>,
}

impl Results {
    fn new(data: Arc<Block>, failed: Vec<(usize, RunError)>) -> Results {
        Results { data, failed, apart: Vec::new() }
    }
}

/// What a device has made of tasks: those that failed and those whose results lie elsewhere, in order, and how it went.
pub(crate) type Filled = (Vec<(usize, RunError)>, Vec<(usize, Vec<Buffer>)>, Timings);

impl<'a, T: AsRef<[View<'a>]> + Sync> Tasks<'_, 'a, T> {
    /// Memory for all results, which nobody else reads: that of an earlier batch if it will do.
    #[inline]
    fn take_memory(&mut self) -> Result<Arc<Block>> {
        memory_for(self.layout.bytes(), self.memory.take(), &self.program.engine)
    }

    /// Gives memory for all results to `work`.
    fn with_memory<R>(&mut self, work: impl FnOnce(&Self, &mut [u8]) -> Result<R>) -> Result<(Arc<Block>, R)> {
        let mut data = self.take_memory()?;
        let made = work(self, bytes_of(&mut data))?;
        Ok((data, made))
    }

    #[inline]
    pub(crate) fn run_on_cpu(&mut self) -> Result<Results> {
        let slow_cpu = self.program.engine.config.slow_cpu;
        // Reading the clock is a tenth of what may be spent beside twenty small tasks.
        let begun = (slow_cpu > 1).then(Instant::now);
        let mut data = self.take_memory()?;
        let failed = self.fill_on_cpu(bytes_of(&mut data));
        begun.into_iter().for_each(|begun| slow_down(&self.program.engine.cpu, begun, slow_cpu));
        Ok(Results::new(data, failed))
    }

    pub(crate) fn fill_on_cpu(&self, results: &mut [u8]) -> Vec<(usize, RunError)> {
        let (program, tasks, layout) = (self.program, self.tasks, self.layout);
        let cpu = &program.engine.cpu;
        let failed = Failures::default();
        // Half of a small task's time is the call, which tasks of one batch share.
        let batch_ns = || layout.work_ns() / 2;
        match layout {
            // Few tasks that are each worth several threads run one after the other, and so do those of which some thread would
            // have more than its share; else each runs on one thread.
            _ if tasks.len() < 2 * program.engine.threads || layout.is_lopsided(program.engine.threads) => {
                one_by_one(layout, tasks, self.stops, results, &failed);
            }
            Layout::Uniform { count, bound } => {
                let each = bound.prepared.plan().inputs;
                let listed = self.inputs.len() == count * each;
                cpu.for_each_stride(results, *count, bound.stride, batch_ns(), |range, results| {
                    if !self.stops.is_empty() {
                        let stops = &self.stops[range.clone()];
                        run_wanted(bound, &tasks[range.clone()], stops, range.start, results, &failed);
                    } else if listed {
                        let inputs = &self.inputs[range.start * each..range.end * each];
                        run_listed(bound, range.len(), inputs, range.start, results, &failed);
                    } else {
                        run_same(bound, &tasks[range.clone()], range.start, results, &failed);
                    }
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
                        if self.stops.is_empty() {
                            run_same(bound, &tasks[at..at + run], at, results, &failed);
                        } else {
                            let stops = &self.stops[at..at + run];
                            run_wanted(bound, &tasks[at..at + run], stops, at, results, &failed);
                        }
                        at += run;
                    }
                });
            }
        }
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_by_key(|(task, _)| *task);
        failed
    }

    /// On a device, into memory that exists, or left where the device has put it.
    pub(crate) fn fill_on(&self, slot: &Slot, results: &mut [u8], may_be_apart: bool) -> Result<Filled> {
        // Made ready first, and kept: the device knows a task by its plan.
        for bound in self.bounds() {
            slot.ready(bound.prepared.plan())?;
        }
        let placed = || {
            let place = |(number, task)| self.layout.get(number).map(|(offset, bound)| (number, task, offset, bound));
            self.tasks.iter().enumerate().filter_map(place)
        };
        let mut all: Vec<&[u8]> = Vec::with_capacity(self.tasks.len());
        placed().for_each(|(_, task, _, bound)| bound.for_each_input(task.as_ref(), |bytes| all.push(bytes)));
        let mut rest = &all[..];
        let (mut tasks, mut numbers) = (Vec::with_capacity(self.tasks.len()), Vec::with_capacity(self.tasks.len()));
        for (number, _, offset, bound) in placed() {
            let plan = bound.prepared.plan();
            let (inputs, after) = rest.split_at(plan.inputs);
            rest = after;
            tasks.push(Task { plan, inputs, offset });
            numbers.push(number);
        }
        let (mut failed, mut apart) = (Vec::new(), Vec::new());
        let mut timings = Timings::default();
        if !tasks.is_empty() {
            let failed = &mut |task: usize, error| failed.push((numbers[task], error));
            let left = &mut |task: usize, buffers| apart.push((numbers[task], buffers));
            timings = if may_be_apart {
                slot.backend.run_mixed_in_place(&tasks, results, failed, left)?
            } else {
                slot.backend.run_mixed(&tasks, results, failed)?
            };
        }
        // The tasks are not to blame: another device has their results.
        if let Some((_, fault)) = failed.iter().find(|(_, error)| error.is_device_fault()) {
            return Err(fault.clone().into());
        }
        failed.sort_by_key(|(task, _)| *task);
        apart.sort_by_key(|(task, _)| *task);
        Ok((failed, apart, timings))
    }

    /// The results of all tasks but those that failed.
    fn arrays(&self, results: &Results, failed: &[(usize, RunError)]) -> Vec<Array> {
        let data = buffer(&results.data);
        let mut arrays = Vec::new();
        for task in (0..self.tasks.len()).filter(|task| failed.iter().all(|(other, _)| other != task)) {
            let Some((mut at, bound)) = self.layout.get(task) else { continue };
            let elsewhere = results.apart.binary_search_by_key(&task, |(task, _)| *task).map(|at| &results.apart[at].1);
            for (number, info) in bound.prepared.plan().output_buffers().enumerate() {
                if let Ok(buffers) = elsewhere {
                    arrays.push(Array::new(buffers[number].clone(), info.dtype, info.shape));
                    continue;
                }
                arrays.extend(data.slice(at..at + info.bytes()).map(|data| Array::new(data, info.dtype, info.shape)));
                at += info.bytes().next_multiple_of(RESULT_ALIGN);
            }
        }
        arrays
    }

    fn bounds(&self) -> &[Arc<Bound>] {
        self.layout.bounds()
    }
}

impl<'a, T: AsRef<[View<'a>]> + Sync> Attempt for Tasks<'_, 'a, T> {
    type Output = Results;

    fn on(&mut self, slot: &Slot) -> Result<(Results, Timings)> {
        let (data, (failed, apart, timings)) = self.with_memory(|tasks, results| tasks.fill_on(slot, results, true))?;
        let results = Results { data, failed, apart };
        if slot.is_sampled(self.program.engine.config.verify) {
            let right = self.run_on_cpu()?;
            let failed = &results.failed;
            verify::check(slot, &self.arrays(&results, failed), &self.arrays(&right, failed))?;
        }
        Ok((results, timings))
    }

    fn divides(&self, at_once: bool) -> u32 {
        u32::from(at_once) << SEVERAL
    }

    fn on_several(&mut self, parts: &[Part<'_>]) -> Option<Result<(Results, Timings)>> {
        let done = self.with_memory(|tasks, results| Ok(tasks.fill_on_all(parts, results)));
        Some(done.map(|(data, Divided { failed, timings, fault })| {
            self.fault = fault;
            (Results::new(data, failed), timings)
        }))
    }

    fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    fn on_cpu(&mut self) -> Result<(Results, Timings)> {
        Ok((self.run_on_cpu()?, Timings::default()))
    }

    fn is_ready(&mut self, slot: &Slot) -> Result<bool> {
        let ready: Result<Vec<bool>, RunError> =
            self.bounds().iter().map(|bound| Ok(slot.ready(bound.prepared.plan())?.is_ready())).collect();
        Ok(ready?.into_iter().all(|ready| ready))
    }

    fn plan(&self) -> &Arc<Plan> {
        self.bounds().first().unwrap_or(&self.program.bound).prepared.plan()
    }

    fn tasks(&self) -> usize {
        self.tasks.len()
    }

    fn prepared(&self, slot: Option<&Slot>) -> Result<Arc<dyn Prepared>> {
        let prepared = &self.bounds().first().unwrap_or(&self.program.bound).prepared;
        match slot {
            Some(slot) => Ok(slot.ready(prepared.plan())?),
            None => Ok(prepared.clone()),
        }
    }
}

/// Memory that nobody else reads: that of an earlier batch if it will do.
#[inline]
pub(crate) fn memory_for(bytes: usize, earlier: Option<Arc<Block>>, engine: &Parts) -> Result<Arc<Block>> {
    if let Some(mut data) = earlier
        && Arc::get_mut(&mut data).is_some_and(|block| block.resize(bytes))
    {
        return Ok(data);
    }
    Ok(Arc::new(engine.cpu.blocks().take(bytes)?))
}

/// The bytes of memory that nobody else reads.
pub(crate) fn bytes_of(data: &mut Arc<Block>) -> &mut [u8] {
    Arc::get_mut(data).map_or(&mut [], Block::as_mut_bytes)
}

/// The memory of results as arrays share it.
pub(crate) fn buffer(block: &Arc<Block>) -> Buffer {
    Buffer::new(block.clone() as Arc<dyn HostBytes>)
}

/// Failures of tasks that may run side by side.
type Failures = Mutex<Vec<(usize, RunError)>>;

fn note(failed: &Failures, task: usize, error: RunError) {
    failed.lock().unwrap_or_else(PoisonError::into_inner).push((task, error));
}

/// Tasks one after the other, each on as many threads as it pays for.
fn one_by_one<'a, T: AsRef<[View<'a>]>>(
    layout: &Layout,
    tasks: &[T],
    stops: &[&Stop],
    results: &mut [u8],
    failed: &Failures,
) {
    for (number, task) in tasks.iter().enumerate() {
        let Some((at, bound)) = layout.get(number) else { return };
        let outcome = with_outputs(bound.prepared.plan(), &mut results[at..at + bound.stride], |outputs| {
            bound.with_inputs(task.as_ref(), |inputs| match stops.get(number) {
                None => bound.prepared.run(inputs, outputs, true),
                Some(stop) => bound.prepared.run_until(inputs, outputs, true, stop),
            })
        });
        if let Err(error) = outcome {
            note(failed, number, error);
        }
    }
}

/// Tasks of one size, the first of which has number `first`, on this thread.
fn run_same<'a, T: AsRef<[View<'a>]>>(bound: &Bound, tasks: &[T], first: usize, results: &mut [u8], failed: &Failures) {
    let mut inputs = Inputs::with_capacity(tasks.len() * bound.prepared.plan().inputs);
    tasks.iter().for_each(|task| bound.for_each_input(task.as_ref(), |bytes| inputs.push(bytes)));
    run_listed(bound, tasks.len(), &inputs, first, results, failed);
}

/// As [`run_same`], but a task that is told to stop is not begun.
fn run_wanted<'a, T: AsRef<[View<'a>]>>(
    bound: &Bound,
    tasks: &[T],
    stops: &[&Stop],
    first: usize,
    results: &mut [u8],
    failed: &Failures,
) {
    for (number, (task, stop)) in tasks.iter().zip(stops).enumerate() {
        let place = &mut results[number * bound.stride..(number + 1) * bound.stride];
        match stop.check() {
            Ok(()) => run_same(bound, std::slice::from_ref(task), first + number, place, failed),
            Err(stopped) => note(failed, first + number, stopped),
        }
    }
}

/// As [`run_same`], for `count` tasks whose inputs are listed.
fn run_listed(bound: &Bound, count: usize, inputs: &[&[u8]], first: usize, results: &mut [u8], failed: &Failures) {
    let failed = &mut |task, error| note(failed, first + task, error);
    bound.prepared.run_tasks(count, inputs, results, bound.stride, failed);
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
