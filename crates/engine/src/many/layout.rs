//! Where the results of many tasks lie: tasks of any sizes enter, the bound program of each and the places of its results leave.

use crate::array::View;
use crate::error::{Error, Result};
use crate::program::{Bound, Inner};
use crate::tasks::Inputs;
use breakeven_ir::Shape;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Where the results of each task lie, and which bound program made them.
pub(crate) enum Layout {
    /// Every task of one size, results `stride` bytes apart: nothing to remember for each, which of twenty tasks of
    /// 256 elements is an eighth of the time (1.07 us, 0.94 without).
    Uniform { count: usize, bound: Arc<Bound> },
    /// The number of each task's bound program, and where its results begin.
    Mixed { tasks: Vec<u32>, offsets: Vec<usize>, bounds: Vec<Arc<Bound>> },
}

impl Layout {
    pub(super) fn len(&self) -> usize {
        match self {
            Layout::Uniform { count, .. } => *count,
            Layout::Mixed { tasks, .. } => tasks.len(),
        }
    }

    /// The bound program of the first task.
    pub(super) fn first(&self) -> Option<&Arc<Bound>> {
        match self {
            Layout::Uniform { bound, .. } => Some(bound),
            Layout::Mixed { bounds, .. } => bounds.first(),
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

    /// What the tasks ran, each once.
    pub(crate) fn bounds(&self) -> &[Arc<Bound>] {
        match self {
            Layout::Uniform { bound, .. } => std::slice::from_ref(bound),
            Layout::Mixed { bounds, .. } => bounds,
        }
    }

    /// Which of [`Layout::bounds`] a task ran.
    pub(crate) fn bound_number(&self, task: usize) -> usize {
        match self {
            Layout::Uniform { .. } => 0,
            Layout::Mixed { tasks, .. } => tasks[task] as usize,
        }
    }

    /// Some of the tasks, whose results begin at 0.
    pub(crate) fn part(&self, range: Range<usize>) -> Layout {
        match self {
            Layout::Uniform { bound, .. } => Layout::Uniform { count: range.len(), bound: bound.clone() },
            Layout::Mixed { tasks, offsets, bounds } => {
                let first = offsets.get(range.start).copied().unwrap_or(0);
                let offsets = offsets[range.clone()].iter().map(|offset| offset - first).collect();
                Layout::Mixed { tasks: tasks[range].to_vec(), offsets, bounds: bounds.clone() }
            }
        }
    }

    /// Would side by side some thread have so much more than its share of the tasks that it pays to share each of them?
    pub(crate) fn is_lopsided(&self, threads: usize) -> bool {
        let ns = |bound: &Bound| bound.prepared.estimate_ns();
        match self {
            Layout::Uniform { count, bound } => {
                let ns = ns(bound);
                // As many for each, or too short to be shared: the usual case is told at once.
                ns > SHARED_NS && count % threads != 0 && ends_later(std::iter::repeat_n(ns, *count), threads)
            }
            Layout::Mixed { tasks, bounds, .. } => {
                let each: SmallVec<[u64; 16]> = bounds.iter().map(|bound| ns(bound)).collect();
                each.iter().any(|ns| *ns > SHARED_NS)
                    && ends_later(tasks.iter().map(|bound| each[*bound as usize]), threads)
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

/// Calling a task costs at least this much.
const TASK_NS: u64 = 40;

/// Work that threads share takes this much more than its share of the time, because they have to meet before and after it:
/// four adds of 32k to 64k elements take 14.7 us side by side although one thread has two thirds of them, and 17.6 shared.
const SHARED_NS: u64 = 2_500;

/// Do tasks of these times, each on one thread that takes the next one when it is free, end later than one after the other, each
/// shared by all threads?
fn ends_later(each_ns: impl Iterator<Item = u64> + Clone, threads: usize) -> bool {
    let mut ends: SmallVec<[u64; 16]> = smallvec![0; threads.max(1)];
    for ns in each_ns.clone() {
        if let Some(first) = ends.iter_mut().min() {
            *first += ns;
        }
    }
    let shared_ns: u64 = each_ns.map(|ns| ns.min(ns / ends.len() as u64 + SHARED_NS)).sum();
    ends.into_iter().max().is_some_and(|side_by_side_ns| shared_ns < side_by_side_ns)
}

/// The bound program of each task. Where all are of one size and there is nothing but their values to read, `inputs`
/// takes them on the way: a small batch would feel a second walk over the tasks.
pub(crate) fn layout<'a, T: AsRef<[View<'a>]>>(
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
pub(crate) fn bound_of(program: &Arc<Inner>, values: &[View<'_>]) -> Result<Arc<Bound>> {
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

#[cfg(test)]
mod tests {
    use super::{SHARED_NS, ends_later};

    fn lopsided(times: &[u64]) -> bool {
        ends_later(times.iter().map(|us| us * 1000), 2)
    }

    #[test]
    fn tasks_that_leave_a_thread_idle_are_shared() {
        // In the order in which threads take them: 16 and 128 against 48 and 256.
        assert!(lopsided(&[16, 48, 128, 256]));
        // 256, 256 and 512 against 512, 256 and 512.
        assert!(lopsided(&[256, 512, 256, 512, 256, 512]));
        assert!(lopsided(&[100; 5]));
    }

    #[test]
    fn tasks_that_come_out_even_are_not() {
        assert!(!lopsided(&[100; 4]));
        assert!(!lopsided(&[32, 64, 64, 32]));
        assert!(!ends_later([SHARED_NS; 5].into_iter(), 2), "too short to be shared");
        assert!(!lopsided(&[]));
    }
}
