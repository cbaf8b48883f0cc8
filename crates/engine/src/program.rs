//! A compiled program: planned once, run again and again with new values, alone or as many tasks at once.

use crate::array::{Array, View, ViewMut};
use crate::batch::{Batch, Into};
use crate::decision::Decision;
use crate::engine::Ran;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::execute::{self, Views, check_inputs};
use crate::many::Many;
use crate::queue::Queue;
use crate::route::{self, RunOptions};
use breakeven_ir::backend::{Prepared, Source, Stop};
use breakeven_ir::{Buffer, DType, Plan, Shape, Tensor, plan_key};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A program with named inputs. Cheap to clone, safe to share between threads.
///
/// ```
/// use breakeven::{DType, Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [3])?;
/// let y = Tensor::input("y", DType::F32, [3])?;
/// let program = engine.compile(&[&x, &y], &[&(&x * &y)?])?;
///
/// let outputs = program.run(&[[1.0f32, 2.0, 3.0].as_slice().into(), [4.0f32, 5.0, 6.0].as_slice().into()])?;
/// assert_eq!(outputs[0].as_slice::<f32>()?, [4.0, 10.0, 18.0]);
///
/// let mut out = [0.0f32; 3];
/// program.run_into(&[[1.0f32; 3].as_slice().into(), [2.0f32; 3].as_slice().into()], &mut [out.as_mut_slice().into()])?;
/// assert_eq!(out, [2.0; 3]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone)]
pub struct Program {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Arc<Shared>,
    /// The queue of the engine that compiled it, for as long as that is there.
    pub(crate) queue: Weak<Queue>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    pub(crate) bound: Arc<Bound>,
    /// The dtype and bytes of each input: what plain slices are checked against.
    sizes: Box<[(DType, usize)]>,
    /// The same program for inputs of other shapes.
    others: Mutex<HashMap<Vec<Shape>, Arc<Bound>>>,
}

/// A program at fixed shapes.
pub(crate) struct Bound {
    pub(crate) prepared: Arc<dyn Prepared>,
    /// Where each of the plan's inputs comes from.
    sources: Vec<Origin>,
    /// Are the plan's inputs exactly the program's, in order?
    pub(crate) plain: bool,
    /// Bytes of one task's results among many: see [`Plan::result_stride`].
    pub(crate) stride: usize,
}

enum Origin {
    /// The program's input of this number.
    Input(usize),
    /// Data that the program was recorded with.
    Data(Tensor),
}

impl Bound {
    fn new(engine: &Shared, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Bound> {
        let (key, leaves) = plan_key(outputs);
        let prepared = engine.plans.get(key, outputs, &*engine.cpu)?;
        let sources: Result<Vec<Origin>> = leaves
            .iter()
            .map(|leaf| match leaf.as_input() {
                None => Ok(Origin::Data((*leaf).clone())),
                Some(input) => inputs
                    .iter()
                    .position(|i| i.as_input().is_some_and(|i| std::ptr::eq(i, input)))
                    .map(Origin::Input)
                    .ok_or_else(|| breakeven_ir::Error::UnboundInput { name: input.name().into() }.into()),
            })
            .collect();
        let sources = sources?;
        let in_order = |(at, source): (usize, &Origin)| matches!(source, Origin::Input(i) if *i == at);
        let plain = sources.len() == inputs.len() && sources.iter().enumerate().all(in_order);
        let plan = prepared.plan();
        let stride = plan.result_stride();
        Ok(Bound { prepared, sources, plain, stride })
    }

    /// Gives the plan's inputs to `take`, in order.
    #[inline]
    pub(crate) fn for_each_input<'a>(&'a self, values: &[View<'a>], mut take: impl FnMut(&'a [u8])) {
        if self.plain {
            values.iter().for_each(|view| take(view.host()));
            return;
        }
        for source in &self.sources {
            match source {
                Origin::Input(at) => take(values[*at].host()),
                Origin::Data(tensor) => View::of(tensor).into_iter().for_each(|view| take(view.host())),
            }
        }
    }

    /// Calls `work` with the plan's inputs.
    pub(crate) fn with_inputs<R>(&self, values: &[View<'_>], work: impl FnOnce(&[&[u8]]) -> R) -> R {
        if self.plain {
            return execute::with_bytes(values, work);
        }
        execute::with_bytes(&self.views(values), work)
    }

    /// Calls `work` with the plan's inputs, from the bytes of the program's.
    pub(crate) fn with_plan_inputs<R>(&self, values: &[&[u8]], work: impl FnOnce(&[&[u8]]) -> R) -> R {
        let mut inputs: Vec<&[u8]> = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            inputs.push(match source {
                Origin::Input(at) => values[*at],
                Origin::Data(tensor) => tensor.as_data().map_or(&[][..], |data| data.as_bytes()),
            });
        }
        work(&inputs)
    }

    /// The plan's inputs, from memory of the program's.
    pub(crate) fn plan_sources<'a>(&'a self, values: &'a [Buffer]) -> Vec<Source<'a>> {
        let source = |source: &'a Origin| match source {
            Origin::Input(at) => Source::Shared(&values[*at]),
            Origin::Data(tensor) => tensor.as_data().map_or(Source::Bytes(&[]), Source::Shared),
        };
        self.sources.iter().map(source).collect()
    }

    /// The plan's inputs.
    pub(crate) fn views<'a>(&'a self, values: &[View<'a>]) -> Views<'a> {
        let mut views = Views::with_capacity(self.sources.len());
        for source in &self.sources {
            match source {
                Origin::Input(at) => views.push(values[*at]),
                Origin::Data(tensor) => views.extend(View::of(tensor)),
            }
        }
        views
    }
}

impl Program {
    pub(crate) fn new(
        engine: Arc<Shared>,
        queue: &Arc<Queue>,
        inputs: &[&Tensor],
        outputs: &[&Tensor],
    ) -> Result<Program> {
        for (position, input) in inputs.iter().enumerate() {
            let name = input.as_input().ok_or(breakeven_ir::Error::NotAnInput { position })?.name();
            if inputs[..position].iter().any(|other| other.as_input().is_some_and(|o| o.name() == name)) {
                return Err(breakeven_ir::Error::RepeatedInput { name: name.into() }.into());
            }
        }
        let bound = Arc::new(Bound::new(&engine, inputs, outputs)?);
        let own = |tensors: &[&Tensor]| tensors.iter().map(|t| (*t).clone()).collect();
        let sizes = inputs.iter().map(|t| (t.dtype(), t.shape().elems() * t.dtype().size_bytes())).collect();
        let (inputs, outputs) = (own(inputs), own(outputs));
        let (queue, others) = (Arc::downgrade(queue), Mutex::default());
        Ok(Program { inner: Arc::new(Inner { engine, queue, inputs, outputs, bound, sizes, others }) })
    }

    /// The inputs, in the order in which values are given.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.inner.inputs.iter()
    }

    /// The plan, which can be printed.
    pub fn plan(&self) -> &Plan {
        self.inner.bound.prepared.plan()
    }

    /// What a run takes on one thread: estimated at first, measured once it has run.
    pub fn estimate_ns(&self) -> u64 {
        self.inner.bound.prepared.estimate_ns()
    }

    /// Computes the outputs for these values. Allocates nothing but the outputs, which come from the engine's pool.
    pub fn run(&self, values: &[View<'_>]) -> Result<Vec<Array>> {
        let inner = &*self.inner;
        inner.check(values)?;
        if inner.engine.is_routed(&*inner.bound.prepared, 1) || values.iter().any(|view| view.is_elsewhere()) {
            let mut batch = self.batch(values);
            return Ok(route::run(&inner.engine, &RunOptions::default(), &mut batch)?.0);
        }
        let blocks = inner.engine.cpu.blocks();
        inner.bound.with_inputs(values, |inputs| execute::run(&*inner.bound.prepared, blocks, inputs, None))
    }

    /// Computes the outputs where `options` say, and tells where that was and why.
    ///
    /// ```
    /// use breakeven::{DType, Device, Engine, RunOptions, Tensor};
    /// let engine = Engine::new()?;
    /// let x = Tensor::input("x", DType::F32, [2])?;
    /// let program = engine.compile(&[&x], &[&x.sqrt()?])?;
    /// // Falls back to the CPU where there is no GPU.
    /// let options = RunOptions { device: Some(Device::Gpu(None)), strict: Some(false), ..RunOptions::default() };
    /// let ran = program.run_with(&[[4.0f32, 9.0].as_slice().into()], &options)?;
    /// assert_eq!(ran.outputs[0].as_slice::<f32>()?, [2.0, 3.0]);
    /// println!("ran on {}: {}", ran.decision.device, ran.decision.reason);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run_with(&self, values: &[View<'_>], options: &RunOptions) -> Result<Ran> {
        self.inner.check(values)?;
        let mut batch = self.batch(values);
        let (outputs, outcome) = route::run(&self.inner.engine, options, &mut batch)?;
        Ok(Ran { outputs, decision: outcome.decision(&self.inner.engine, &batch) })
    }

    /// As [`Program::run_with`], unless it is told to stop.
    pub(crate) fn run_until(&self, values: &[View<'_>], options: &RunOptions, stop: &Stop) -> Result<Ran> {
        let mut batch = Batch { stop: Some(stop), ..self.batch(values) };
        let (outputs, outcome) = route::run(&self.inner.engine, options, &mut batch)?;
        Ok(Ran { outputs, decision: outcome.decision(&self.inner.engine, &batch) })
    }

    /// Values that fit, on the CPU, unless it is told to stop.
    pub(crate) fn run_here(&self, values: &[View<'_>], stop: &Stop) -> Result<Vec<Array>> {
        let bound = &self.inner.bound;
        values.iter().try_for_each(View::fetch)?;
        let blocks = self.inner.engine.cpu.blocks();
        bound.with_inputs(values, |inputs| execute::run(&*bound.prepared, blocks, inputs, Some(stop)))
    }

    fn batch<'a>(&'a self, values: &[View<'a>]) -> Batch<'a> {
        let bound = &self.inner.bound;
        Batch::new(&self.inner.engine, &bound.prepared, bound.views(values))
    }

    /// Computes the outputs for values that are named rather than in order.
    pub fn run_named(&self, values: &[(&str, View<'_>)]) -> Result<Vec<Array>> {
        let found: Result<Vec<View<'_>>> = (0..self.inner.inputs.len())
            .map(|at| {
                let name = self.inner.name(at);
                let value = values.iter().find(|(n, _)| *n == name);
                value.map(|(_, view)| *view).ok_or(breakeven_ir::Error::UnboundInput { name }.into())
            })
            .collect();
        if values.len() != self.inner.inputs.len() {
            let expected = self.inner.inputs.len();
            return Err(Error::Count { what: "named values", found: values.len(), expected });
        }
        self.run(&found?)
    }

    /// Computes the outputs into memory that exists. Allocates nothing.
    pub fn run_into(&self, values: &[View<'_>], outputs: &mut [ViewMut<'_>]) -> Result<()> {
        let inner = &*self.inner;
        inner.check(values)?;
        let plan = inner.bound.prepared.plan();
        if outputs.len() != plan.outputs.len() {
            return Err(Error::Count { what: "outputs", found: outputs.len(), expected: plan.outputs.len() });
        }
        for (number, (output, id)) in outputs.iter().zip(&plan.outputs).enumerate() {
            let info = plan.buffer(*id);
            if output.dtype != info.dtype {
                return Err(Error::OutputDType { number, expected: info.dtype, found: output.dtype });
            }
            if output.bytes.len() != info.bytes() {
                let found = output.bytes.len() / info.dtype.size_bytes();
                return Err(Error::OutputSize { number, expected: info.shape, found });
            }
        }
        if inner.engine.is_routed(&*inner.bound.prepared, 1) || values.iter().any(|view| view.is_elsewhere()) {
            let batch = self.batch(values);
            route::run(&inner.engine, &RunOptions::default(), &mut Into { batch, outputs })?;
            return Ok(());
        }
        let blocks = inner.engine.cpu.blocks();
        inner
            .bound
            .with_inputs(values, |inputs| execute::run_into(&*inner.bound.prepared, blocks, inputs, outputs, None))
    }

    /// Computes any number of tasks, of different sizes, as one batch. Each task is a list of values in the order of
    /// the inputs; a plain slice has the shape that the input was declared with, unless it says another with
    /// [`View::shaped`] (a slice of another length for an input of one axis has that length).
    ///
    /// ```
    /// use breakeven::{DType, Engine, Tensor, View};
    /// let engine = Engine::new()?;
    /// let x = Tensor::input("x", DType::F32, [4])?;
    /// let program = engine.compile(&[&x], &[&x.sum(&[], false)?])?;
    /// let (a, b) = ([1.0f32, 2.0, 3.0], [10.0f32; 5]);
    /// let results = program.run_many(&[[View::from(a.as_slice())], [View::from(b.as_slice())]])?;
    /// assert_eq!(results.slice::<f32>(0, 0)?, [6.0]);
    /// assert_eq!(results.slice::<f32>(1, 0)?, [50.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run_many<'a, T: AsRef<[View<'a>]> + Sync>(&self, tasks: &[T]) -> Result<Many> {
        let mut results = Many::empty();
        results.fill(&self.inner, tasks)?;
        Ok(results)
    }

    /// As [`Program::run_many`], with results in the place of an earlier batch's. A batch like the last one takes no
    /// new memory for them, unless an [`Array`] still reads the old results: that one keeps them. Tasks that are refused leave the
    /// old results as they were; where a device fails and nothing may stand in for it, none are left.
    ///
    /// ```
    /// use breakeven::{DType, Engine, Tensor, View};
    /// let engine = Engine::new()?;
    /// let x = Tensor::input("x", DType::F32, [2])?;
    /// let program = engine.compile(&[&x], &[&x.relu()?])?;
    /// let mut results = program.run_many(&[[View::from([1.0f32, -2.0].as_slice())]])?;
    /// program.run_many_into(&[[View::from([-3.0f32, 4.0].as_slice())]], &mut results)?;
    /// assert_eq!(results.slice::<f32>(0, 0)?, [0.0, 4.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run_many_into<'a, T: AsRef<[View<'a>]> + Sync>(&self, tasks: &[T], results: &mut Many) -> Result<()> {
        results.fill(&self.inner, tasks)
    }

    /// As [`Program::run_many_into`], where `options` say, and tells where that was and why.
    ///
    /// ```
    /// use breakeven::{DType, Device, Engine, Many, RunOptions, Tensor, View};
    /// let engine = Engine::new()?;
    /// let x = Tensor::input("x", DType::F32, [2])?;
    /// let program = engine.compile(&[&x], &[&x.relu()?])?;
    /// let options = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
    /// let mut results = Many::default();
    /// let decision = program.run_many_with(&[[View::from([1.0f32, -2.0].as_slice())]], &mut results, &options)?;
    /// assert_eq!((&*decision.device, results.slice::<f32>(0, 0)?), ("cpu", [1.0, 0.0].as_slice()));
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run_many_with<'a, T: AsRef<[View<'a>]> + Sync>(
        &self,
        tasks: &[T],
        results: &mut Many,
        options: &RunOptions,
    ) -> Result<Decision> {
        results.fill_with(&self.inner, tasks, options)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = (0..self.inner.inputs.len()).map(|at| self.inner.name(at)).collect();
        write!(f, "Program({} -> {} outputs)", names.join(", "), self.inner.outputs.len())
    }
}

impl Inner {
    pub(crate) fn name(&self, at: usize) -> String {
        self.inputs[at].as_input().map_or(String::new(), |i| i.name().into())
    }

    pub(crate) fn input_shape(&self, at: usize) -> Shape {
        self.inputs[at].shape()
    }

    pub(crate) fn input_dtype(&self, at: usize) -> DType {
        self.inputs[at].dtype()
    }

    /// Are these values plain slices of the program's own sizes? They are the common case.
    pub(crate) fn are_plain(&self, values: &[View<'_>]) -> bool {
        let plain = |(view, (dtype, bytes)): (&View<'_>, &(DType, usize))| {
            view.shape.is_none() && view.dtype == *dtype && view.len_bytes() == *bytes
        };
        values.len() == self.sizes.len() && values.iter().zip(&self.sizes).all(plain)
    }

    /// Are these values of the program's own dtypes and shapes?
    fn check(&self, values: &[View<'_>]) -> Result<()> {
        if self.are_plain(values) {
            return Ok(());
        }
        self.check_count(values)?;
        if self.bound.plain {
            return check_inputs(self.bound.prepared.plan(), values, |at| self.name(at));
        }
        for (at, (view, input)) in values.iter().zip(&self.inputs).enumerate() {
            let info = breakeven_ir::plan::BufferInfo {
                dtype: input.dtype(),
                shape: input.shape(),
                place: breakeven_ir::plan::Place::Input(at),
            };
            let one = Plan { buffers: vec![info], kernels: vec![], inputs: 1, outputs: vec![], scratch_bytes: 0 };
            check_inputs(&one, &[*view], |_| self.name(at))?;
        }
        Ok(())
    }

    pub(crate) fn check_count(&self, values: &[View<'_>]) -> Result<()> {
        self.check_number(values.len())
    }

    fn check_number(&self, found: usize) -> Result<()> {
        if found != self.inputs.len() {
            return Err(Error::Count { what: "values", found, expected: self.inputs.len() });
        }
        Ok(())
    }

    /// Are these values data, as many as there are inputs, and of their dtypes? They may be of other shapes.
    pub(crate) fn check_kinds(&self, values: &[Tensor]) -> Result<()> {
        self.check_number(values.len())?;
        for (at, (value, (dtype, _))) in values.iter().zip(&self.sizes).enumerate() {
            if value.as_data().is_none() {
                return Err(Error::NoData { name: self.name(at) });
            }
            if value.dtype() != *dtype {
                return Err(Error::InputDType { name: self.name(at), expected: *dtype, found: value.dtype() });
            }
        }
        Ok(())
    }

    /// Are these values of the program's own shapes?
    pub(crate) fn fits(&self, values: &[View<'_>]) -> bool {
        let fits = |(view, input): (&View<'_>, &Tensor)| view.shape.is_none_or(|shape| shape == input.shape());
        values.iter().zip(&self.inputs).all(fits)
    }

    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    pub(crate) fn input_bytes(&self, at: usize) -> usize {
        self.sizes[at].1
    }

    /// The program at these input shapes.
    pub(crate) fn at_shapes(&self, shapes: &[Shape]) -> Result<Arc<Bound>> {
        if self.inputs.iter().zip(shapes).all(|(input, shape)| input.shape() == *shape) {
            return Ok(self.bound.clone());
        }
        let lock = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = lock().get(shapes) {
            return Ok(bound.clone());
        }
        fn refs(list: &[Tensor]) -> Vec<&Tensor> {
            list.iter().collect()
        }
        let (inputs, outputs) = Tensor::with_input_shapes(&refs(&self.outputs), &refs(&self.inputs), shapes)?;
        let bound = Arc::new(Bound::new(&self.engine, &refs(&inputs), &refs(&outputs))?);
        let mut others = lock();
        // Tasks come in few sizes or in endless ones: in that case remembering them all would only fill memory.
        if others.len() >= MAX_SHAPES {
            others.clear();
        }
        others.insert(shapes.to_vec(), bound.clone());
        Ok(bound)
    }
}

/// Shapes that one program remembers.
const MAX_SHAPES: usize = 4096;
