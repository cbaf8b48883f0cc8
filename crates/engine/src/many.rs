//! Many tasks as one batch: one program over inputs of different sizes, results packed side by side.

use crate::array::{Array, View};
use crate::error::{Error, Result};
use crate::execute::output_buffers;
use crate::program::{Bound, Inner};
use breakeven_ir::backend::RunError;
use breakeven_ir::plan::Plan;
use breakeven_ir::{Buffer, DType, HostBytes, Readable, Shape, read_as};
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
    tasks: Vec<Task>,
    bounds: Vec<Arc<Bound>>,
    outputs: usize,
}

/// Which bound program a task runs, and where its results begin.
struct Task {
    bound: u32,
    offset: usize,
}

/// Results start at multiples of this, so that every slice is aligned and no two tasks write one cache line's half.
const ALIGN: usize = 64;

impl Many {
    pub(crate) fn run<'a, T: AsRef<[View<'a>]> + Sync>(program: &Arc<Inner>, tasks: &[T]) -> Result<Many> {
        let mut bounds: Vec<Arc<Bound>> = Vec::new();
        let mut shapes_seen: Vec<Vec<Shape>> = Vec::new();
        let mut list = Vec::with_capacity(tasks.len());
        let mut shapes: Vec<Shape> = Vec::with_capacity(program.input_count());
        let mut bytes = 0;
        let mut work_ns = 0u64;
        for task in tasks {
            let values = task.as_ref();
            program.check_count(values)?;
            shapes.clear();
            for (at, view) in values.iter().enumerate() {
                shapes.push(task_shape(program, at, view)?);
            }
            // Tasks of one size come in a row more often than not.
            let known = match shapes_seen.last() {
                Some(last) if *last == shapes => Some(shapes_seen.len() - 1),
                _ => shapes_seen.iter().position(|s| *s == shapes),
            };
            let at = match known {
                Some(at) => at,
                None => {
                    bounds.push(program.at_shapes(&shapes)?);
                    shapes_seen.push(shapes.clone());
                    bounds.len() - 1
                }
            };
            list.push(Task { bound: at as u32, offset: bytes });
            bytes += task_bytes(bounds[at].prepared.plan());
            work_ns += bounds[at].prepared.estimate_ns().max(50);
        }
        let mut block = program.engine.cpu.blocks().take(bytes)?;
        let failed: Mutex<Option<(usize, RunError)>> = Mutex::new(None);
        // Few tasks that are each worth several threads run one after the other; else each runs on one thread.
        let few = tasks.len() < 2 * program.engine.threads;
        let each = |at: usize, results: &mut [u8]| {
            let bound = &bounds[list[at].bound as usize];
            let outcome = with_outputs(bound.prepared.plan(), results, |outputs| {
                bound.with_inputs(tasks[at].as_ref(), |inputs| bound.prepared.run(inputs, outputs, few))
            });
            if let Err(error) = outcome {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(first, _)| at < *first) {
                    *failed = Some((at, error));
                }
            }
        };
        let offsets: Vec<usize> = list.iter().map(|task| task.offset).collect();
        let ns = if few { 0 } else { work_ns };
        program.engine.cpu.for_each_part(block.as_mut_bytes(), &offsets, ns, each);
        if let Some((_, error)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let data = Buffer::new(Arc::new(block) as Arc<dyn HostBytes>);
        let outputs = program.bound.prepared.plan().outputs.len();
        Ok(Many { data, tasks: list, bounds, outputs })
    }

    /// How many tasks there were.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Were there no tasks?
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The elements of output `output` of task `task`; bools are read as `u8`.
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
        let found = self.tasks.get(task).ok_or(Error::Count { what: "tasks", found: task + 1, expected: self.len() })?;
        let plan = self.bounds[found.bound as usize].prepared.plan();
        let id = *plan.outputs.get(output).ok_or(Error::Count {
            what: "outputs",
            found: output + 1,
            expected: self.outputs,
        })?;
        let mut at = found.offset;
        for info in output_buffers(plan) {
            if info.place == plan.buffer(id).place {
                return Ok((at..at + info.bytes(), info.dtype, info.shape));
            }
            at += info.bytes().next_multiple_of(ALIGN);
        }
        Err(Error::Count { what: "outputs", found: output + 1, expected: self.outputs })
    }
}

impl std::fmt::Debug for Many {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Many({} tasks, {} outputs each)", self.len(), self.outputs)
    }
}

/// Bytes of a task's results.
fn task_bytes(plan: &Plan) -> usize {
    output_buffers(plan).map(|info| info.bytes().next_multiple_of(ALIGN)).sum()
}

/// Cuts a task's memory into its outputs.
fn with_outputs<R>(plan: &Plan, results: &mut [u8], work: impl FnOnce(&mut [&mut [u8]]) -> R) -> R {
    const INLINE: usize = 4;
    let mut rest = results;
    let mut next = |info: &breakeven_ir::plan::BufferInfo| {
        let (padded, tail) = std::mem::take(&mut rest).split_at_mut(info.bytes().next_multiple_of(ALIGN));
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
