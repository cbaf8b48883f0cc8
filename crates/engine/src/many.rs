//! Many tasks as one batch: one program over inputs of different sizes, results packed side by side.

mod layout;

use crate::array::{Array, View};
use crate::config::Device;
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::execute::output_number;
use crate::profile::Watch;
use crate::program::Inner;
use crate::route::{self, RunOptions};
use crate::tasks::{self, Inputs, Results, Tasks};
use breakeven_cpu::Block;
use breakeven_ir::backend::{RESULT_ALIGN, RunError, Stop};
use breakeven_ir::plan::{BufferId, BufferInfo};
use breakeven_ir::{Buffer, DType, HostBytes, Plan, Readable, Shape, read_as};
use std::ops::Range;
use std::sync::Arc;

pub(crate) use layout::{Layout, bound_of, layout};

/// The results of [`crate::Program::run_many`]: every output of every task, in one block of memory.
///
/// ```
/// use breakeven::{DType, Engine, Tensor, View};
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [2])?;
/// let program = engine.compile(&[&x], &[&x.square()?])?;
/// let many = program.run_many(&[[View::from([1.0f32, 2.0].as_slice())], [View::from([3.0f32, 4.0].as_slice())]])?;
/// assert_eq!(many.len(), 2);
/// assert_eq!(many.array(1, 0)?.as_slice::<f32>()?, [9.0, 16.0]);
/// # Ok::<(), breakeven::Error>(())
/// ```
pub struct Many {
    /// None where nothing was computed.
    data: Option<Arc<Block>>,
    layout: Layout,
    /// The tasks that failed, in order.
    failed: Vec<(usize, RunError)>,
    /// The tasks whose output buffers lie elsewhere, in order.
    apart: Vec<(usize, Vec<Buffer>)>,
    outputs: usize,
}

impl Many {
    pub(crate) fn empty() -> Many {
        let layout = Layout::Mixed { tasks: Vec::new(), offsets: Vec::new(), bounds: Vec::new() };
        Many { data: None, layout, failed: Vec::new(), apart: Vec::new(), outputs: 0 }
    }

    /// Runs the tasks; their results replace those that are here, whose memory is used again unless somebody reads it.
    pub(crate) fn fill<'a, T: AsRef<[View<'a>]> + Sync>(&mut self, program: &Arc<Inner>, tasks: &[T]) -> Result<()> {
        let mut watch = Watch::begin(&program.engine);
        let mut inputs = Inputs::new();
        let routed = program.engine.is_routed(&*program.bound.prepared, tasks.len());
        let layout = layout(program, tasks, &mut inputs, routed)?;
        let mut batch = Tasks {
            program,
            tasks,
            layout: &layout,
            inputs: &inputs,
            memory: self.data.take(),
            fault: None,
            stops: &[],
        };
        let first = layout.first().unwrap_or(&program.bound);
        let done = if routed {
            watch.open(first.prepared.plan(), first.outputs());
            let done = route::run(&program.engine, &RunOptions::default(), &mut batch);
            watch.routed(&program.engine, first.prepared.plan(), tasks.len(), &done);
            done.map(|(results, _)| results)
        } else {
            watch.planned();
            let done = batch.run_on_cpu();
            if done.is_ok() {
                watch.done_on_cpu(&program.engine, first.prepared.plan(), tasks.len(), first.outputs());
            }
            done
        };
        match done {
            Ok(results) => self.put(program, layout, results),
            Err(error) => return self.fail(error),
        }
        Ok(())
    }

    /// As [`Many::fill`], on this device alone (0 is the CPU). A task that is told to stop before it begins fails as
    /// stopped, and disturbs no other.
    pub(crate) fn fill_on<'a, T: AsRef<[View<'a>]> + Sync>(
        &mut self,
        program: &Arc<Inner>,
        tasks: &[T],
        device: usize,
        stops: &[&Stop],
    ) -> Result<()> {
        let mut watch = Watch::begin(&program.engine);
        for view in tasks.iter().flat_map(|task| task.as_ref()) {
            view.fetch()?;
        }
        let layout = layout(program, tasks, &mut Inputs::new(), true)?;
        let memory = self.data.take();
        let mut batch = Tasks { program, tasks, layout: &layout, inputs: &[], memory, fault: None, stops };
        let first = layout.first().unwrap_or(&program.bound);
        let results = match device.checked_sub(1) {
            None => {
                watch.planned();
                let results = batch.run_on_cpu()?;
                watch.done_on_cpu(&program.engine, first.prepared.plan(), tasks.len(), first.outputs());
                results
            }
            Some(number) => {
                let device = Some(Device::Gpu(Some(number)));
                let options = RunOptions { device, strict: Some(true), ..RunOptions::default() };
                watch.open(first.prepared.plan(), first.outputs());
                let done = route::run(&program.engine, &options, &mut batch);
                watch.routed(&program.engine, first.prepared.plan(), tasks.len(), &done);
                done?.0
            }
        };
        self.put(program, layout, results);
        Ok(())
    }

    /// How many outputs each task has.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// As [`Many::fill`], where `options` say; the record of it comes back.
    pub(crate) fn fill_with<'a, T: AsRef<[View<'a>]> + Sync>(
        &mut self,
        program: &Arc<Inner>,
        tasks: &[T],
        options: &RunOptions,
    ) -> Result<Decision> {
        let mut watch = Watch::begin(&program.engine);
        let layout = layout(program, tasks, &mut Inputs::new(), true)?;
        let mut batch =
            Tasks { program, tasks, layout: &layout, inputs: &[], memory: self.data.take(), fault: None, stops: &[] };
        let first = layout.first().unwrap_or(&program.bound);
        watch.open(first.prepared.plan(), first.outputs());
        let done = route::run(&program.engine, options, &mut batch);
        watch.routed(&program.engine, first.prepared.plan(), tasks.len(), &done);
        match done {
            Ok((results, outcome)) => {
                let decision = outcome.decision(&program.engine, &batch);
                self.put(program, layout, results);
                Ok(decision)
            }
            Err(error) => self.fail(error),
        }
    }

    /// Results in the place of those that were here.
    #[inline]
    pub(crate) fn put(&mut self, program: &Inner, layout: Layout, Results { data, failed, apart }: Results) {
        self.data = Some(data);
        self.apart = apart;
        self.layout = layout;
        self.failed = failed;
        self.outputs = program.bound.prepared.plan().outputs.len();
    }

    /// Their memory is gone: no results are left.
    #[cold]
    fn fail<R>(&mut self, error: Error) -> Result<R> {
        *self = Many::empty();
        Err(error)
    }

    /// No results yet, and memory for them.
    pub(crate) fn of_memory(data: Arc<Block>) -> Many {
        Many { data: Some(data), ..Many::empty() }
    }

    /// The memory of results that nobody else reads, for other ones; they are gone from here.
    pub(crate) fn take_memory(&mut self) -> Option<Arc<Block>> {
        std::mem::take(self).data
    }

    /// How many tasks there were.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Were there no tasks?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tasks that failed, with what went wrong. The others are not disturbed.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &RunError)> {
        self.failed.iter().map(|(task, error)| (*task, error))
    }

    /// Why a task failed, if it did.
    pub(crate) fn failure(&self, task: usize) -> Option<&RunError> {
        self.failed.binary_search_by_key(&task, |(task, _)| *task).ok().map(|at| &self.failed[at].1)
    }

    /// The elements of output `output` of task `task`; bools are read as `u8`. A task that failed gives its error.
    pub fn slice<T: Readable>(&self, task: usize, output: usize) -> Result<&[T]> {
        let (bytes, dtype) = self.bytes(task, output)?;
        read_as(bytes, dtype)?.ok_or(Error::Unaligned { dtype })
    }

    /// The bytes of an output.
    pub(crate) fn bytes(&self, task: usize, output: usize) -> Result<(&[u8], DType)> {
        let (range, dtype, _) = self.place(task, output)?;
        if let Some(buffer) = self.elsewhere(task, output) {
            return Ok((buffer.try_bytes()?, dtype));
        }
        Ok((self.data.as_ref().and_then(|data| data.as_bytes().get(range)).unwrap_or(&[]), dtype))
    }

    /// Output `output` of task `task`; it shares the memory of all results.
    pub fn array(&self, task: usize, output: usize) -> Result<Array> {
        let (range, dtype, shape) = self.place(task, output)?;
        if let Some(buffer) = self.elsewhere(task, output) {
            return Ok(Array::new(buffer.clone(), dtype, shape));
        }
        let data =
            self.data.as_ref().and_then(|data| tasks::buffer(data).slice(range)).ok_or(Error::Unaligned { dtype })?;
        Ok(Array::new(data, dtype, shape))
    }

    /// The memory of an output that lies elsewhere.
    fn elsewhere(&self, task: usize, output: usize) -> Option<&Buffer> {
        let at = self.apart.binary_search_by_key(&task, |(task, _)| *task).ok()?;
        let (_, bound) = self.layout.get(task)?;
        let plan = bound.prepared.plan();
        self.apart[at].1.get(output_number(plan, *plan.outputs.get(output)?))
    }

    fn place(&self, task: usize, output: usize) -> Result<(Range<usize>, DType, Shape)> {
        if let Some(error) = self.failure(task) {
            return Err(error.clone().into());
        }
        let count = |what, found, expected| Error::Count { what, found, expected };
        let (mut at, bound) = self.layout.get(task).ok_or(count("tasks", task + 1, self.len()))?;
        let plan = bound.prepared.plan();
        let missing = count("outputs", output + 1, self.outputs);
        let (range, info) = plan.outputs.get(output).and_then(|id| output_place(plan, *id)).ok_or(missing)?;
        at += range.start;
        Ok((at..at + range.len(), info.dtype, info.shape))
    }
}

/// Where an output lies among a task's results.
pub(crate) fn output_place(plan: &Plan, id: BufferId) -> Option<(Range<usize>, &BufferInfo)> {
    let mut at = 0;
    for info in plan.output_buffers() {
        if info.place == plan.buffer(id).place {
            return Some((at..at + info.bytes(), info));
        }
        at += info.bytes().next_multiple_of(RESULT_ALIGN);
    }
    None
}

/// No tasks.
impl Default for Many {
    fn default() -> Many {
        Many::empty()
    }
}

impl std::fmt::Debug for Many {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Many({} tasks, {} outputs each)", self.len(), self.outputs)
    }
}
