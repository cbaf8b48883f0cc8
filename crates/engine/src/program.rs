//! A compiled program: planned once, run again and again with new values, alone or as many tasks at once. `bound` is it at fixed
//! shapes, `check` looks at values.

mod bound;
mod check;

pub(crate) use bound::Bound;

use crate::array::{Array, View, ViewMut};
use crate::batch::{Batch, Into};
use crate::decision::Decision;
use crate::engine::Ran;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::execute;
use crate::many::Many;
use crate::profile::Watch;
use crate::queue::Queue;
use crate::route::{self, Attempt, Outcome, RunOptions};
use breakeven_ir::backend::Stop;
use breakeven_ir::{DType, Plan, Shape, Tensor};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

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
        let mut watch = Watch::begin(&inner.engine);
        inner.check(values)?;
        let bound = &*inner.bound;
        if inner.engine.is_routed(&*bound.prepared, 1) || values.iter().any(|view| view.is_elsewhere()) {
            return Ok(self.run_routed(watch, &RunOptions::default(), &mut self.batch(values))?.0);
        }
        watch.planned();
        let blocks = inner.engine.cpu.blocks();
        let done = bound.with_inputs(values, |inputs| execute::run(&*bound.prepared, blocks, inputs, None))?;
        watch.done_on_cpu(&inner.engine, bound.prepared.plan(), 1, bound.outputs());
        Ok(done)
    }

    /// Runs a batch of the program's own sizes where it pays, or where it is told to.
    fn run_routed<A: Attempt>(
        &self,
        mut watch: Watch,
        options: &RunOptions,
        batch: &mut A,
    ) -> Result<(A::Output, Outcome)> {
        let (engine, bound) = (&self.inner.engine, &self.inner.bound);
        watch.open(bound.prepared.plan(), bound.outputs());
        let done = route::run(engine, options, batch);
        watch.routed(engine, bound.prepared.plan(), 1, &done);
        done
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
        let watch = Watch::begin(&self.inner.engine);
        self.inner.check(values)?;
        let mut batch = self.batch(values);
        let (outputs, outcome) = self.run_routed(watch, options, &mut batch)?;
        Ok(Ran { outputs, decision: outcome.decision(&self.inner.engine, &batch) })
    }

    /// As [`Program::run_with`], unless it is told to stop.
    pub(crate) fn run_until(&self, values: &[View<'_>], options: &RunOptions, stop: &Stop) -> Result<Ran> {
        let watch = Watch::begin(&self.inner.engine);
        let mut batch = Batch { stop: Some(stop), ..self.batch(values) };
        let (outputs, outcome) = self.run_routed(watch, options, &mut batch)?;
        Ok(Ran { outputs, decision: outcome.decision(&self.inner.engine, &batch) })
    }

    /// Values that fit, on the CPU, unless it is told to stop.
    pub(crate) fn run_here(&self, values: &[View<'_>], stop: &Stop) -> Result<Vec<Array>> {
        let mut watch = Watch::begin(&self.inner.engine);
        let bound = &self.inner.bound;
        values.iter().try_for_each(View::fetch)?;
        watch.planned();
        let blocks = self.inner.engine.cpu.blocks();
        let done = bound.with_inputs(values, |inputs| execute::run(&*bound.prepared, blocks, inputs, Some(stop)))?;
        watch.done_on_cpu(&self.inner.engine, bound.prepared.plan(), 1, bound.outputs());
        Ok(done)
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

    /// Computes the outputs into memory that exists. Allocates nothing, but for what matrix products are packed into where the `gemm`
    /// crate computes them: those of more than 4 million multiply-adds on Intel's AVX-512, and of more than 64 x 64 x 64 where there is
    /// no AVX2.
    pub fn run_into(&self, values: &[View<'_>], outputs: &mut [ViewMut<'_>]) -> Result<()> {
        let inner = &*self.inner;
        let mut watch = Watch::begin(&inner.engine);
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
            self.run_routed(watch, &RunOptions::default(), &mut Into { batch, outputs })?;
            return Ok(());
        }
        watch.planned();
        let (bound, blocks) = (&*inner.bound, inner.engine.cpu.blocks());
        bound.with_inputs(values, |inputs| execute::run_into(&*bound.prepared, blocks, inputs, outputs, None))?;
        watch.done_on_cpu(&inner.engine, plan, 1, bound.outputs());
        Ok(())
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
