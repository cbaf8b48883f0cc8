//! Many tasks as one batch: one program over inputs of different sizes, results packed side by side.

use crate::array::{Array, View};
use crate::error::{Error, Result};
use crate::execute::output_buffers;
use crate::program::{Bound, Inner};
use breakeven_ir::backend::{RESULT_ALIGN, RunError};
use breakeven_ir::plan::Plan;
use breakeven_ir::{Buffer, DType, HostBytes, Readable, Shape, read_as};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    data: Buffer,
    /// Which bound program each task ran.
    tasks: Vec<u32>,
    /// Where the results of each task begin.
    offsets: Vec<usize>,
    bounds: Vec<Arc<Bound>>,
    failed: HashMap<usize, RunError>,
    outputs: usize,
}

impl Many {
    pub(crate) fn run<'a, T: AsRef<[View<'a>]> + Sync>(program: &Arc<Inner>, tasks: &[T]) -> Result<Many> {
        let mut sizes = Sizes::new(program);
        let mut list: Vec<u32> = Vec::with_capacity(tasks.len());
        let mut offsets: Vec<usize> = Vec::with_capacity(tasks.len());
        let (mut bytes, mut work_ns) = (0usize, 0u64);
        let mut last: Option<(&[View<'_>], u32)> = None;
        for task in tasks {
            let values = task.as_ref();
            // Tasks of one size come in a row more often than not.
            let bound = match last {
                Some((before, bound)) if same_size(before, values) => bound,
                _ => sizes.find(values)?,
            };
            last = Some((values, bound));
            list.push(bound);
            offsets.push(bytes);
            let size = &sizes.list[bound as usize];
            (bytes, work_ns) = (bytes + size.stride, work_ns + size.ns);
        }
        let mut block = program.engine.cpu.blocks().take(bytes)?;
        let failed = Mutex::new(HashMap::new());
        let (list_ref, sizes_ref) = (&list, &sizes.list);
        // Few tasks that are each worth several threads run one after the other; else each runs on one thread.
        if tasks.len() < 2 * program.engine.threads {
            let mut rest = block.as_mut_bytes();
            for (at, &bound) in list.iter().enumerate() {
                let size = &sizes_ref[bound as usize];
                let (results, tail) = std::mem::take(&mut rest).split_at_mut(size.stride);
                rest = tail;
                let outcome = with_outputs(size.bound.prepared.plan(), results, |outputs| {
                    size.bound.with_inputs(tasks[at].as_ref(), |inputs| size.bound.prepared.run(inputs, outputs, true))
                });
                if let Err(error) = outcome {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).insert(at, error);
                }
            }
        } else {
            // Half of a small task's time is the call, which tasks of one batch share.
            program.engine.cpu.for_each_range(block.as_mut_bytes(), &offsets, work_ns / 2, |range, results| {
                let mut at = range.start;
                let mut rest = results;
                let mut inputs: Vec<&[u8]> = Vec::new();
                while at < range.end {
                    let bound = list_ref[at];
                    let run = list_ref[at..range.end].iter().take_while(|&&b| b == bound).count();
                    let size = &sizes_ref[bound as usize];
                    let (results, tail) = std::mem::take(&mut rest).split_at_mut(run * size.stride);
                    rest = tail;
                    inputs.clear();
                    inputs.reserve(run * size.bound.prepared.plan().inputs);
                    tasks[at..at + run].iter().for_each(|task| size.bound.push_inputs(task.as_ref(), &mut inputs));
                    size.bound.prepared.run_tasks(run, &inputs, results, size.stride, &mut |task, error| {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).insert(at + task, error);
                    });
                    at += run;
                }
            });
        }
        let data = Buffer::new(Arc::new(block) as Arc<dyn HostBytes>);
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outputs = program.bound.prepared.plan().outputs.len();
        let bounds = sizes.list.into_iter().map(|size| size.bound).collect();
        Ok(Many { data, tasks: list, offsets, bounds, failed, outputs })
    }

    /// How many tasks there were.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Were there no tasks?
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks that failed, with what went wrong. The others are not disturbed.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &RunError)> {
        self.failed.iter().map(|(task, error)| (*task, error))
    }

    /// The elements of output `output` of task `task`; bools are read as `u8`. A task that failed gives its error.
    pub fn slice<T: Readable>(&self, task: usize, output: usize) -> Result<&[T]> {
        let (range, dtype, _) = self.place(task, output)?;
        let bytes = self.data.as_bytes().get(range).unwrap_or(&[]);
        read_as(bytes, dtype)?.ok_or(Error::Unaligned { dtype })
    }

    /// Output `output` of task `task`; it shares the memory of all results.
    pub fn array(&self, task: usize, output: usize) -> Result<Array> {
        let (range, dtype, shape) = self.place(task, output)?;
        let data = self.data.slice(range).ok_or(Error::Unaligned { dtype })?;
        Ok(Array::new(data, dtype, shape))
    }

    fn place(&self, task: usize, output: usize) -> Result<(std::ops::Range<usize>, DType, Shape)> {
        if let Some(error) = self.failed.get(&task) {
            return Err(error.clone().into());
        }
        let found =
            self.tasks.get(task).ok_or(Error::Count { what: "tasks", found: task + 1, expected: self.len() })?;
        let plan = self.bounds[*found as usize].prepared.plan();
        let id = *plan.outputs.get(output).ok_or(Error::Count {
            what: "outputs",
            found: output + 1,
            expected: self.outputs,
        })?;
        let mut at = self.offsets[task];
        for info in output_buffers(plan) {
            if info.place == plan.buffer(id).place {
                return Ok((at..at + info.bytes(), info.dtype, info.shape));
            }
            at += info.bytes().next_multiple_of(RESULT_ALIGN);
        }
        Err(Error::Count { what: "outputs", found: output + 1, expected: self.outputs })
    }
}

impl std::fmt::Debug for Many {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Many({} tasks, {} outputs each)", self.len(), self.outputs)
    }
}

/// The sizes in which tasks come, each with its plan.
struct Sizes<'a> {
    program: &'a Arc<Inner>,
    list: Vec<Size>,
    /// The shapes of size 0; those of the others are looked up.
    first: Vec<Shape>,
    by_shapes: HashMap<Vec<Shape>, u32>,
    shapes: Vec<Shape>,
}

struct Size {
    bound: Arc<Bound>,
    /// Bytes of one task's results.
    stride: usize,
    /// Time of one task.
    ns: u64,
}

/// Calling a task costs at least this much.
const TASK_NS: u64 = 40;

impl<'a> Sizes<'a> {
    fn new(program: &'a Arc<Inner>) -> Sizes<'a> {
        Sizes { program, list: vec![], first: vec![], by_shapes: HashMap::new(), shapes: vec![] }
    }

    /// The number of the size of these values.
    fn find(&mut self, values: &[View<'_>]) -> Result<u32> {
        self.program.check_count(values)?;
        self.shapes.clear();
        for (at, view) in values.iter().enumerate() {
            self.shapes.push(task_shape(self.program, at, view)?);
        }
        if self.shapes == self.first && !self.list.is_empty() {
            return Ok(0);
        }
        if let Some(&at) = self.by_shapes.get(&self.shapes) {
            return Ok(at);
        }
        let bound = self.program.at_shapes(&self.shapes)?;
        let (stride, ns) = (task_bytes(bound.prepared.plan()), bound.prepared.estimate_ns() + TASK_NS);
        self.list.push(Size { bound, stride, ns });
        let at = self.list.len() as u32 - 1;
        if self.first.is_empty() {
            self.first = std::mem::take(&mut self.shapes);
        } else {
            self.by_shapes.insert(self.shapes.clone(), at);
        }
        Ok(at)
    }
}

/// Surely of one size: as many values of the same dtypes, lengths and shapes. Plain slices are the common case.
#[inline(always)]
fn same_size(a: &[View<'_>], b: &[View<'_>]) -> bool {
    let same = |(x, y): (&View<'_>, &View<'_>)| {
        x.bytes.len() == y.bytes.len()
            && x.dtype == y.dtype
            && match (&x.shape, &y.shape) {
                (None, None) => true,
                (x, y) => x == y,
            }
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Bytes of a task's results.
fn task_bytes(plan: &Plan) -> usize {
    output_buffers(plan).map(|info| info.bytes().next_multiple_of(RESULT_ALIGN)).sum()
}

/// Cuts a task's memory into its outputs.
fn with_outputs<R>(plan: &Plan, results: &mut [u8], work: impl FnOnce(&mut [&mut [u8]]) -> R) -> R {
    const INLINE: usize = 4;
    let mut rest = results;
    let mut next = |info: &breakeven_ir::plan::BufferInfo| {
        let (padded, tail) = std::mem::take(&mut rest).split_at_mut(info.bytes().next_multiple_of(RESULT_ALIGN));
        rest = tail;
        &mut padded[..info.bytes()]
    };
    let count = output_buffers(plan).count();
    if count <= INLINE {
        let mut slices: [&mut [u8]; INLINE] = Default::default();
        for (slot, info) in slices.iter_mut().zip(output_buffers(plan)) {
            *slot = next(info);
        }
        work(&mut slices[..count])
    } else {
        let mut slices: Vec<&mut [u8]> = output_buffers(plan).map(next).collect();
        work(&mut slices)
    }
}

/// The shape of a task's value: its own, the input's if it has as many elements, or its length on an only axis.
fn task_shape(program: &Inner, at: usize, view: &View<'_>) -> Result<Shape> {
    let expected = program.input_shape(at);
    let dtype = program.input_dtype(at);
    if view.dtype != dtype {
        return Err(Error::InputDType { name: program.name(at), expected: dtype, found: view.dtype });
    }
    let elems = view.bytes.len() / dtype.size_bytes();
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
