//! A program whose results are remembered. Tasks enter; those that were computed before are copied from the store, the others
//! are computed as one batch and put in; results leave in the order of the tasks.

use super::Cached;
use super::index::ByKey;
use super::key::{Context, Key, Shared};
use crate::array::{Array, View};
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::many::{Layout, Many, bound_of, layout, output_place};
use crate::program::{Bound, Program};
use crate::route::RunOptions;
use crate::tasks::{Inputs, Results, bytes_of, memory_for};
use breakeven_ir::{DType, Plan, Shape};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// A [`Program`] whose results are remembered on disk: see [`Cached`]. Cheap to clone, safe to share between threads.
///
/// ```
/// use breakeven::{CacheOptions, DType, Engine, Tensor, View};
/// # let folder = std::env::temp_dir().join(format!("breakeven-doc-program-{}", std::process::id()));
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [3])?;
/// let options = CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() };
/// let program = engine.cached(options)?.program(&engine.compile(&[&x], &[&x.sum(&[], false)?])?)?;
///
/// let values = [View::from([1.0f32, 2.0, 3.0].as_slice())];
/// assert!(program.get(&values)?.is_none());
/// assert_eq!(program.run(&values)?[0].as_slice::<f32>()?, [6.0]);
/// assert_eq!(program.get(&values)?.unwrap()[0].as_slice::<f32>()?, [6.0]);
/// # drop(program);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone)]
pub struct CachedProgram {
    cached: Cached,
    program: Program,
}

/// What tasks of one size have in common.
struct Size {
    shared: Shared,
    /// Where each output lies among a task's results. In the store they lie one after the other, in the order in which the
    /// program has them, which no planner changes.
    places: SmallVec<[Range<usize>; 2]>,
    /// Bytes of all of them.
    bytes: usize,
}

impl Size {
    fn new(bound: &Bound, context: &Context) -> Result<Size> {
        let plan = bound.prepared.plan();
        let places: SmallVec<[Range<usize>; 2]> =
            plan.outputs.iter().filter_map(|id| output_place(plan, *id)).map(|(range, _)| range).collect();
        let bytes = places.iter().map(Range::len).sum();
        Ok(Size { shared: context.shared(bound.fingerprint()?), places, bytes })
    }

    fn key(&self, bound: &Bound, values: &[View<'_>]) -> Key {
        let mut key = self.shared.task();
        bound.for_each_value(values, |bytes| key.append(bytes));
        key.finish()
    }

    /// A value to where its outputs belong.
    fn spread(&self, mut value: &[u8], results: &mut [u8]) {
        for place in &self.places {
            let (own, rest) = value.split_at(place.len());
            results[place.clone()].copy_from_slice(own);
            value = rest;
        }
    }
}

/// What each output is.
type Kinds = SmallVec<[(DType, Shape); 2]>;

/// What a look-up is expected to take beside the bytes it goes through, and what it takes for 16 of those: only to decide
/// whether threads pay.
const LOOK_UP_NS: u64 = 150;

impl CachedProgram {
    pub(super) fn new(cached: Cached, program: Program) -> CachedProgram {
        CachedProgram { cached, program }
    }

    /// The program itself, which remembers nothing.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The cache.
    pub fn cached(&self) -> &Cached {
        &self.cached
    }

    /// As [`Program::run`], unless the same was computed before.
    pub fn run(&self, values: &[View<'_>]) -> Result<Vec<Array>> {
        self.program.inner.check(values)?;
        let (key, kinds) = self.key(values)?;
        if let Some(arrays) = self.cached.find(key, &kinds)? {
            return Ok(arrays);
        }
        let arrays = self.program.run(values)?;
        self.cached.keep(key, arrays.iter().map(Array::as_bytes));
        Ok(arrays)
    }

    /// The outputs for these values, if they were computed before. Values may be of other sizes, as in
    /// [`CachedProgram::run_many`]. With [`CachedProgram::put`] for those who compute elsewhere, such as in the queue.
    pub fn get(&self, values: &[View<'_>]) -> Result<Option<Vec<Array>>> {
        let (key, kinds) = self.key(values)?;
        self.cached.find(key, &kinds)
    }

    /// Remembers the outputs for these values, which this program has computed.
    pub fn put(&self, values: &[View<'_>], outputs: &[Array]) -> Result<()> {
        let outputs: SmallVec<[View<'_>; 2]> = outputs.iter().map(View::from).collect();
        self.put_views(values, &outputs)
    }

    /// As [`CachedProgram::put`], with outputs wherever they lie: a plain slice has the shape that the program's output has.
    ///
    /// ```
    /// use breakeven::{CacheOptions, DType, Engine, Tensor, View};
    /// # let folder = std::env::temp_dir().join(format!("breakeven-doc-put-views-{}", std::process::id()));
    /// let engine = Engine::new()?;
    /// let x = Tensor::input("x", DType::F32, [3])?;
    /// let options = CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() };
    /// let program = engine.cached(options)?.program(&engine.compile(&[&x], &[&x.sum(&[], false)?])?)?;
    ///
    /// let values = [View::from([1.0f32, 2.0, 3.0].as_slice())];
    /// program.put_views(&values, &[View::from([6.0f32].as_slice())])?;
    /// assert_eq!(program.get(&values)?.unwrap()[0].as_slice::<f32>()?, [6.0]);
    /// # drop(program);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn put_views(&self, values: &[View<'_>], outputs: &[View<'_>]) -> Result<()> {
        let (key, kinds) = self.key(values)?;
        if outputs.len() != kinds.len() {
            return Err(Error::Count { what: "outputs", found: outputs.len(), expected: kinds.len() });
        }
        outputs.iter().try_for_each(View::fetch)?;
        for (number, (output, (dtype, shape))) in outputs.iter().zip(kinds).enumerate() {
            if output.dtype() != dtype {
                return Err(Error::OutputDType { number, expected: dtype, found: output.dtype() });
            }
            let found = output.len_bytes() / dtype.size_bytes();
            if found != shape.elems() || output.shape.is_some_and(|own| own != shape) {
                return Err(Error::OutputSize { number, expected: shape, found });
            }
        }
        self.cached.keep(key, outputs.iter().map(View::host));
        Ok(())
    }

    /// As [`Program::run_many`]: tasks that were computed before, in this batch or an earlier one, are not computed again, and
    /// the others are one batch. Those that fail are not remembered.
    pub fn run_many<'a, T: AsRef<[View<'a>]> + Sync>(&self, tasks: &[T]) -> Result<Many> {
        let mut results = Many::default();
        self.fill(tasks, &mut results, None)?;
        Ok(results)
    }

    /// As [`CachedProgram::run_many`], with results in the place of an earlier batch's: see [`Program::run_many_into`].
    pub fn run_many_into<'a, T: AsRef<[View<'a>]> + Sync>(&self, tasks: &[T], results: &mut Many) -> Result<()> {
        self.fill(tasks, results, None).map(drop)
    }

    /// As [`CachedProgram::run_many_into`], where `options` say. `None` if all results were there: nothing was decided.
    pub fn run_many_with<'a, T: AsRef<[View<'a>]> + Sync>(
        &self,
        tasks: &[T],
        results: &mut Many,
        options: &RunOptions,
    ) -> Result<Option<Decision>> {
        self.fill(tasks, results, Some(options))
    }

    /// What one task's results are known by, and what they are.
    fn key(&self, values: &[View<'_>]) -> Result<(Key, Kinds)> {
        values.iter().try_for_each(View::fetch)?;
        let bound = bound_of(&self.program.inner, values)?;
        let shared = self.cached.inner.context.shared(bound.fingerprint()?);
        let mut key = shared.task();
        bound.for_each_value(values, |bytes| key.append(bytes));
        Ok((key.finish(), kinds(bound.prepared.plan())))
    }

    fn fill<'a, T: AsRef<[View<'a>]> + Sync>(
        &self,
        tasks: &[T],
        results: &mut Many,
        options: Option<&RunOptions>,
    ) -> Result<Option<Decision>> {
        let (program, store) = (&self.program.inner, &self.cached.inner.store);
        tasks.iter().flat_map(AsRef::as_ref).try_for_each(View::fetch)?;
        let layout = layout(program, tasks, &mut Inputs::new(), true)?;
        let context = self.cached.context(options.and_then(|options| options.device));
        let sizes: Result<SmallVec<[Size; 1]>> =
            layout.bounds().iter().map(|bound| Size::new(bound, &context)).collect();
        let sizes = sizes?;
        let mut data = memory_for(layout.bytes(), results.take_memory(), &program.engine)?;
        let missing = self.copy_hits(tasks, &layout, &sizes, bytes_of(&mut data));

        // Tasks of one batch that are the same are computed once.
        let mut wanted: Vec<(&T, Key)> = Vec::with_capacity(missing.len());
        let mut numbers: ByKey<usize> = ByKey::with_capacity_and_hasher(missing.len(), Default::default());
        for &(task, key) in &missing {
            numbers.entry(key).or_insert_with(|| {
                wanted.push((&tasks[task], key));
                wanted.len() - 1
            });
        }
        store.counts.hits.fetch_add((tasks.len() - wanted.len()) as u64, Relaxed);
        store.counts.misses.fetch_add(wanted.len() as u64, Relaxed);

        if wanted.len() == tasks.len() {
            // Nothing was there: results can stay where they are computed.
            *results = Many::of_memory(data);
            let decision = run(results, &self.program, tasks, options)?;
            self.put_all(results, &wanted);
            self.cached.tell_figures();
            return Ok(decision);
        }
        let (mut computed, mut decision) = (Many::default(), None);
        if !wanted.is_empty() {
            let list: Vec<&T> = wanted.iter().map(|(task, _)| *task).collect();
            decision = run(&mut computed, &self.program, &list, options)?;
            self.put_all(&computed, &wanted);
        }
        let bytes = bytes_of(&mut data);
        let mut failed = Vec::new();
        for (task, key) in missing {
            let (Some(&number), Some((at, _))) = (numbers.get(&key), layout.get(task)) else { continue };
            if let Some(error) = computed.failure(number) {
                failed.push((task, error.clone()));
                continue;
            }
            for (output, place) in sizes[layout.bound_number(task)].places.iter().enumerate() {
                bytes[at + place.start..at + place.end].copy_from_slice(computed.bytes(number, output)?.0);
            }
        }
        results.put(program, layout, Results { data, failed, apart: Vec::new() });
        self.cached.tell_figures();
        Ok(decision)
    }

    /// Copies what is there to its place, on as many threads as pay. The tasks that are not there come back, in order.
    fn copy_hits<'a, T: AsRef<[View<'a>]> + Sync>(
        &self,
        tasks: &[T],
        layout: &Layout,
        sizes: &[Size],
        results: &mut [u8],
    ) -> Vec<(usize, Key)> {
        let missing = Mutex::new(Vec::new());
        let reader = self.cached.inner.store.read();
        let look = |range: Range<usize>, results: &mut [u8]| {
            let (mut spare, mut missed) = (Vec::new(), Vec::new());
            let first = layout.get(range.start).map_or(0, |(at, _)| at);
            for task in range {
                let Some((at, bound)) = layout.get(task) else { return };
                let size = &sizes[layout.bound_number(task)];
                let key = size.key(bound, tasks[task].as_ref());
                let place = &mut results[at - first..at - first + bound.stride];
                if !reader.get(key, size.bytes, &mut spare, |value| size.spread(value, place)) {
                    missed.push((task, key));
                }
            }
            if !missed.is_empty() {
                missing.lock().unwrap_or_else(PoisonError::into_inner).append(&mut missed);
            }
        };
        let cpu = &self.program.inner.engine.cpu;
        let values: usize = tasks.first().map_or(0, |task| task.as_ref().iter().map(View::len_bytes).sum());
        let ns = tasks.len() as u64 * (LOOK_UP_NS + values as u64 / 16) + results.len() as u64 / 16;
        match layout {
            Layout::Uniform { count, bound } => cpu.for_each_stride(results, *count, bound.stride, ns, look),
            Layout::Mixed { offsets, .. } => cpu.for_each_range(results, offsets, ns, look),
        }
        let mut missing = missing.into_inner().unwrap_or_else(PoisonError::into_inner);
        missing.sort_unstable_by_key(|(task, _)| *task);
        missing
    }

    /// Remembers what was computed, but for what failed.
    fn put_all<T>(&self, computed: &Many, wanted: &[(&T, Key)]) {
        let mut writer = self.cached.inner.store.write();
        let mut failed = computed.failures().map(|(task, _)| task).peekable();
        for (number, (_, key)) in wanted.iter().enumerate() {
            if failed.next_if_eq(&number).is_some() {
                continue;
            }
            let outputs: Result<SmallVec<[&[u8]; 4]>> =
                (0..computed.outputs()).map(|output| Ok(computed.bytes(number, output)?.0)).collect();
            // What can't be read here can't be read by the caller, who is told.
            if let Ok(outputs) = outputs {
                writer.put(*key, outputs.iter().copied());
            }
        }
        writer.flush();
    }
}

fn run<'a, T: AsRef<[View<'a>]> + Sync>(
    results: &mut Many,
    program: &Program,
    tasks: &[T],
    options: Option<&RunOptions>,
) -> Result<Option<Decision>> {
    match options {
        None => results.fill(&program.inner, tasks).map(|()| None),
        Some(options) => results.fill_with(&program.inner, tasks, options).map(Some),
    }
}

/// The outputs of a plan.
fn kinds(plan: &Plan) -> Kinds {
    plan.outputs.iter().map(|id| (plan.buffer(*id).dtype, plan.buffer(*id).shape)).collect()
}

impl std::fmt::Debug for CachedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cached{:?}", self.program)
    }
}
