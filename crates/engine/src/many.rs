//! Many tasks as one batch: one program over inputs of different sizes, results packed side by side.

use crate::array::{Array, View};
use crate::config::Device;
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::execute::output_number;
use crate::program::{Bound, Inner};
use crate::route::{self, RunOptions};
use crate::tasks::{self, Inputs, Results, Tasks};
use breakeven_cpu::Block;
use breakeven_ir::backend::{RESULT_ALIGN, RunError, Stop};
use breakeven_ir::{Buffer, DType, HostBytes, Readable, Shape, read_as};
use std::collections::HashMap;
use std::sync::Arc;

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

/// Where the results of each task lie, and which bound program made them.
pub(crate) enum Layout {
    /// Every task of one size, results `stride` bytes apart: nothing to remember for each, which of twenty tasks of
    /// 256 elements is an eighth of the time (1.07 us, 0.94 without).
    Uniform { count: usize, bound: Arc<Bound> },
    /// The number of each task's bound program, and where its results begin.
    Mixed { tasks: Vec<u32>, offsets: Vec<usize>, bounds: Vec<Arc<Bound>> },
}

impl Layout {
    fn len(&self) -> usize {
        match self {
            Layout::Uniform { count, .. } => *count,
            Layout::Mixed { tasks, .. } => tasks.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Layout::Uniform { count, bound } => count * bound.stride,
            Layout::Mixed { tasks, offsets, bounds } => match (tasks.last(), offsets.last()) {
                (Some(bound), Some(offset)) => offset + bounds[*bound as usize].stride,
                _ => 0,
            },
        }
    }

    /// Where the results of a task begin, and what it ran.
    pub(crate) fn get(&self, task: usize) -> Option<(usize, &Bound)> {
        match self {
            Layout::Uniform { count, bound } => (task < *count).then(|| (task * bound.stride, &**bound)),
            Layout::Mixed { tasks, offsets, bounds } => {
                tasks.get(task).map(|bound| (offsets[task], &*bounds[*bound as usize]))
            }
        }
    }

    /// Some of the tasks, whose results begin at 0.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Layout {
        match self {
            Layout::Uniform { bound, .. } => Layout::Uniform { count: range.len(), bound: bound.clone() },
            Layout::Mixed { tasks, offsets, bounds } => {
                let first = offsets.get(range.start).copied().unwrap_or(0);
                let offsets = offsets[range.clone()].iter().map(|offset| offset - first).collect();
                Layout::Mixed { tasks: tasks[range].to_vec(), offsets, bounds: bounds.clone() }
            }
        }
    }

    /// Time of all tasks on one thread.
    pub(crate) fn work_ns(&self) -> u64 {
        let ns = |bound: &Bound| bound.prepared.estimate_ns() + TASK_NS;
        match self {
            Layout::Uniform { count, bound } => *count as u64 * ns(bound),
            Layout::Mixed { tasks, bounds, .. } => {
                let each: Vec<u64> = bounds.iter().map(|bound| ns(bound)).collect();
                tasks.iter().map(|bound| each[*bound as usize]).sum()
            }
        }
    }
}

impl Many {
    pub(crate) fn empty() -> Many {
        let layout = Layout::Mixed { tasks: Vec::new(), offsets: Vec::new(), bounds: Vec::new() };
        Many { data: None, layout, failed: Vec::new(), apart: Vec::new(), outputs: 0 }
    }

    /// Runs the tasks; their results replace those that are here, whose memory is used again unless somebody reads it.
    pub(crate) fn fill<'a, T: AsRef<[View<'a>]> + Sync>(&mut self, program: &Arc<Inner>, tasks: &[T]) -> Result<()> {
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
        let done = if routed {
            route::run(&program.engine, &RunOptions::default(), &mut batch).map(|(results, _)| results)
        } else {
            batch.run_on_cpu()
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
        for view in tasks.iter().flat_map(|task| task.as_ref()) {
            view.fetch()?;
        }
        let layout = layout(program, tasks, &mut Inputs::new(), true)?;
        let memory = self.data.take();
        let mut batch = Tasks { program, tasks, layout: &layout, inputs: &[], memory, fault: None, stops };
        let results = match device.checked_sub(1) {
            None => batch.run_on_cpu()?,
            Some(number) => {
                let device = Some(Device::Gpu(Some(number)));
                let options = RunOptions { device, strict: Some(true), ..RunOptions::default() };
                route::run(&program.engine, &options, &mut batch)?.0
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
        let layout = layout(program, tasks, &mut Inputs::new(), true)?;
        let mut batch =
            Tasks { program, tasks, layout: &layout, inputs: &[], memory: self.data.take(), fault: None, stops: &[] };
        match route::run(&program.engine, options, &mut batch) {
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
    fn put(&mut self, program: &Inner, layout: Layout, Results { data, failed, apart }: Results) {
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

    /// The elements of output `output` of task `task`; bools are read as `u8`. A task that failed gives its error.
    pub fn slice<T: Readable>(&self, task: usize, output: usize) -> Result<&[T]> {
        let (range, dtype, _) = self.place(task, output)?;
        if let Some(buffer) = self.elsewhere(task, output) {
            return read_as(buffer.try_bytes()?, dtype)?.ok_or(Error::Unaligned { dtype });
        }
        let bytes = self.data.as_ref().and_then(|data| data.as_bytes().get(range)).unwrap_or(&[]);
        read_as(bytes, dtype)?.ok_or(Error::Unaligned { dtype })
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

    fn place(&self, task: usize, output: usize) -> Result<(std::ops::Range<usize>, DType, Shape)> {
        if let Ok(at) = self.failed.binary_search_by_key(&task, |(task, _)| *task) {
            return Err(self.failed[at].1.clone().into());
        }
        let count = |what, found, expected| Error::Count { what, found, expected };
        let (mut at, bound) = self.layout.get(task).ok_or(count("tasks", task + 1, self.len()))?;
        let plan = bound.prepared.plan();
        let missing = count("outputs", output + 1, self.outputs);
        let Some(id) = plan.outputs.get(output) else { return Err(missing) };
        for info in plan.output_buffers() {
            if info.place == plan.buffer(*id).place {
                return Ok((at..at + info.bytes(), info.dtype, info.shape));
            }
            at += info.bytes().next_multiple_of(RESULT_ALIGN);
        }
        Err(missing)
    }
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

/// Calling a task costs at least this much.
const TASK_NS: u64 = 40;

/// The bound program of each task. Where all are of one size and there is nothing but their values to read, `inputs`
/// takes them on the way: a small batch would feel a second walk over the tasks.
fn layout<'a, T: AsRef<[View<'a>]>>(
    program: &Arc<Inner>,
    tasks: &[T],
    inputs: &mut Inputs<'a>,
    routed: bool,
) -> Result<Layout> {
    if let [first, ..] = tasks {
        let first = first.as_ref();
        let lists = program.bound.plain && !routed;
        if lists {
            inputs.reserve(tasks.len() * first.len());
        }
        let uniform = match first {
            // Most often: slices of one length.
            [one] if lists && one.plain().is_some() => {
                let len = one.len_bytes();
                tasks.iter().all(|task| match task.as_ref() {
                    [view] if view.dtype == one.dtype => match view.plain() {
                        Some(bytes) if bytes.len() == len => {
                            inputs.push(bytes);
                            true
                        }
                        _ => false,
                    },
                    _ => false,
                })
            }
            _ => tasks.iter().map(AsRef::as_ref).all(|values| {
                if lists {
                    values.iter().for_each(|view| inputs.push(view.host()));
                }
                same_size(first, values)
            }),
        };
        if uniform {
            return Ok(Layout::Uniform { count: tasks.len(), bound: bound_of(program, first)? });
        }
        inputs.clear();
    }
    let mut sizes: HashMap<Vec<Shape>, u32> = HashMap::new();
    let (mut list, mut offsets) = (Vec::with_capacity(tasks.len()), Vec::with_capacity(tasks.len()));
    let mut bounds: Vec<Arc<Bound>> = Vec::new();
    let mut shapes = Vec::new();
    let mut bytes = 0;
    let mut last: Option<(&[View<'_>], u32)> = None;
    for task in tasks {
        let values = task.as_ref();
        // Tasks of one size come in a row more often than not.
        let bound = match last {
            Some((before, bound)) if same_size(before, values) => bound,
            _ => {
                task_shapes(program, values, &mut shapes)?;
                match sizes.get(&shapes) {
                    Some(&bound) => bound,
                    None => {
                        bounds.push(program.at_shapes(&shapes)?);
                        let bound = bounds.len() as u32 - 1;
                        sizes.insert(shapes.clone(), bound);
                        bound
                    }
                }
            }
        };
        last = Some((values, bound));
        list.push(bound);
        offsets.push(bytes);
        bytes += bounds[bound as usize].stride;
    }
    Ok(Layout::Mixed { tasks: list, offsets, bounds })
}

/// The bound program of one task's values.
fn bound_of(program: &Arc<Inner>, values: &[View<'_>]) -> Result<Arc<Bound>> {
    if program.are_plain(values) {
        return Ok(program.bound.clone());
    }
    let mut shapes = Vec::new();
    task_shapes(program, values, &mut shapes)?;
    program.at_shapes(&shapes)
}

/// The shapes of a task's values.
fn task_shapes(program: &Inner, values: &[View<'_>], shapes: &mut Vec<Shape>) -> Result<()> {
    program.check_count(values)?;
    shapes.clear();
    for (at, view) in values.iter().enumerate() {
        shapes.push(task_shape(program, at, view)?);
    }
    Ok(())
}

/// Surely of one size: as many values of the same dtypes, lengths and shapes. Plain slices are the common case.
#[inline(always)]
fn same_size(a: &[View<'_>], b: &[View<'_>]) -> bool {
    let same = |(x, y): (&View<'_>, &View<'_>)| {
        x.len_bytes() == y.len_bytes()
            && x.dtype == y.dtype
            && match (&x.shape, &y.shape) {
                (None, None) => true,
                (x, y) => x == y,
            }
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The shape of a task's value: its own, the input's if it has as many elements, or its length on an only axis.
fn task_shape(program: &Inner, at: usize, view: &View<'_>) -> Result<Shape> {
    let expected = program.input_shape(at);
    let dtype = program.input_dtype(at);
    if view.dtype != dtype {
        return Err(Error::InputDType { name: program.name(at), expected: dtype, found: view.dtype });
    }
    let elems = view.len_bytes() / dtype.size_bytes();
    match view.shape {
        Some(shape) => Ok(shape),
        None if elems == expected.elems() => Ok(expected),
        None if expected.rank() == 1 => Ok(Shape::new(&[elems])?),
        None => Err(Error::InputShape {
            name: program.name(at),
            expected,
            found: format!("{elems} elements without a shape (see `View::shaped`)"),
        }),
    }
}
