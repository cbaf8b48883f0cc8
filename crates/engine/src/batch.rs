//! A batch that runs on whichever device is chosen for it: its plan and inputs enter, arrays or values that stay on
//! the device leave.

use crate::array::{Array, View, ViewMut};
use crate::calibrate::slow_down;
use crate::devices::Slot;
use crate::divided::Part;
use crate::engine::{Engine, Shared};
use crate::error::Result;
use crate::execute::{self, Views};
use crate::resident::Kept;
use crate::route::Attempt;
use crate::router::{CUT, SEVERAL};
use crate::rows;
use crate::verify;
use breakeven_ir::backend::{Made, Prepared, RunError, Source, Stop, Timings};
use breakeven_ir::plan::{Cut, From, MadeBy};
use breakeven_ir::{Buffer, HostBytes, Plan, Tensor};
use std::sync::Arc;
use std::time::Instant;

/// A batch with its inputs.
pub(crate) struct Batch<'a> {
    pub(crate) engine: &'a Shared,
    /// The plan, made ready for the CPU.
    pub(crate) prepared: &'a Arc<dyn Prepared>,
    pub(crate) views: Views<'a>,
    /// A fault that was stood in for on the way.
    pub(crate) fault: Option<String>,
    /// Told when nobody wants the results any more.
    pub(crate) stop: Option<&'a Stop>,
}

impl<'a> Batch<'a> {
    /// A batch, not run yet.
    pub(crate) fn new(engine: &'a Shared, prepared: &'a Arc<dyn Prepared>, views: Views<'a>) -> Batch<'a> {
        Batch { engine, prepared, views, fault: None, stop: None }
    }

    /// Keeps a fault in mind, and how long it took.
    fn noted(&mut self, shared: rows::Shared) -> Timings {
        self.fault = shared.fault;
        shared.timings
    }

    fn sources(&self) -> Vec<Source<'_>> {
        self.views.iter().map(View::source).collect()
    }

    /// On the CPU, into memory of the pool.
    fn run_on_cpu(&self) -> Result<Vec<Array>> {
        let begun = Instant::now();
        self.views.iter().try_for_each(View::fetch)?;
        let blocks = self.engine.cpu.blocks();
        let arrays =
            execute::with_bytes(&self.views, |inputs| execute::run(&**self.prepared, blocks, inputs, self.stop));
        slow_down(&self.engine.cpu, begun, self.engine.config.slow_cpu);
        arrays
    }

    /// Bytes of the inputs that lie on a device.
    fn resident_bytes(&self, device: &str) -> u64 {
        let there = |source: Source<'_>| match source {
            Source::Shared(buffer) => buffer.resident().filter(|r| r.device() == device).map_or(0, |r| r.len_bytes()),
            Source::Bytes(_) => 0,
        };
        self.views.iter().map(|view| there(view.source()) as u64).sum()
    }

    /// On a device, checked against the CPU if this batch is one of the samples.
    fn run_on(&self, slot: &Slot) -> Result<(Vec<Array>, Timings)> {
        let (made, timings) = run_until(&*slot.ready(self.prepared.plan())?, &self.sources(), false, self.stop)?;
        let arrays = self.on_host(&made)?;
        if slot.is_sampled(self.engine.config.verify) {
            verify::check(slot, &arrays, &self.run_on_cpu()?)?;
        }
        Ok((arrays, timings))
    }

    fn on_host(&self, made: &[Made]) -> Result<Vec<Array>> {
        Ok(execute::arrays(self.prepared.plan(), &execute::on_host(made)?))
    }

    /// The front on one device, the back on another; what crosses lies on the host in between.
    fn run_halves(&self, cut: &Cut, front: Option<&Slot>, back: Option<&Slot>) -> Result<(Vec<Array>, Timings)> {
        let begun = Instant::now();
        let sources = self.sources();
        let inputs: Vec<Source<'_>> = cut.front_inputs.iter().map(|input| sources[*input]).collect();
        let (made, first) = self.run_part(&cut.front, front, &inputs)?;
        let inputs: Vec<Source<'_>> = cut
            .back_sources
            .iter()
            .map(|source| match source {
                From::Input(input) => sources[*input],
                From::Front(output) => Source::Shared(&made[*output]),
            })
            .collect();
        let (last, second) = self.run_part(&cut.back, back, &inputs)?;
        let buffers: Vec<Buffer> = cut
            .outputs
            .iter()
            .map(|made_by| match made_by {
                MadeBy::Front(output) => made[*output].clone(),
                MadeBy::Back(output) => last[*output].clone(),
            })
            .collect();
        let mut timings = first;
        timings.add(&second);
        // A simulated half tells its time, the other one takes its own.
        let told = [(front, &first), (back, &second)].map(|(slot, timings)| match slot {
            Some(slot) if slot.backend.is_simulated() => timings.total_ns,
            _ => 0,
        });
        let told: u64 = told.iter().sum();
        let wall = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let real = [(front, &first), (back, &second)].map(|(slot, timings)| match slot {
            Some(slot) if slot.backend.is_simulated() => 0,
            _ => timings.total_ns,
        });
        timings.total_ns = if told > 0 { told + real.iter().sum::<u64>() } else { wall };
        Ok((execute::arrays(self.prepared.plan(), &buffers), timings))
    }

    /// One half.
    fn run_part(&self, plan: &Arc<Plan>, slot: Option<&Slot>, inputs: &[Source<'_>]) -> Result<(Vec<Buffer>, Timings)> {
        let begun = Instant::now();
        let Some(slot) = slot else {
            let prepared = self.engine.plans.half(plan, &*self.engine.cpu)?;
            let bytes: Result<Vec<&[u8]>, RunError> = inputs.iter().map(Source::try_bytes).collect();
            let made = execute::buffers(&*prepared, self.engine.cpu.blocks(), &bytes?, self.stop)?;
            slow_down(&self.engine.cpu, begun, self.engine.config.slow_cpu);
            let total_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            return Ok((made, Timings { total_ns, ..Timings::default() }));
        };
        let (made, timings) = run_until(&*slot.ready(plan)?, inputs, false, self.stop)?;
        Ok((execute::on_host(&made)?, timings))
    }

    fn is_ready_on(&self, slot: &Slot) -> Result<bool> {
        Ok(slot.ready(self.prepared.plan())?.is_ready())
    }
}

/// A run that may be told to stop.
fn run_until(
    prepared: &dyn Prepared,
    inputs: &[Source<'_>],
    stay: bool,
    stop: Option<&Stop>,
) -> Result<(Vec<Made>, Timings), RunError> {
    match stop {
        None => prepared.run_batch(inputs, stay),
        Some(stop) => prepared.run_batch_until(inputs, stay, stop),
    }
}

impl Attempt for Batch<'_> {
    type Output = Vec<Array>;

    fn on(&mut self, slot: &Slot) -> Result<(Vec<Array>, Timings)> {
        self.run_on(slot)
    }

    fn on_cpu(&mut self) -> Result<(Vec<Array>, Timings)> {
        Ok((self.run_on_cpu()?, Timings::default()))
    }

    fn is_ready(&mut self, slot: &Slot) -> Result<bool> {
        self.is_ready_on(slot)
    }

    fn prepared(&self, slot: Option<&Slot>) -> Result<Arc<dyn Prepared>> {
        match slot {
            Some(slot) => Ok(slot.ready(self.prepared.plan())?),
            None => Ok(self.prepared.clone()),
        }
    }

    fn plan(&self) -> &Arc<Plan> {
        self.prepared.plan()
    }

    fn divides(&self, at_once: bool) -> u32 {
        1 << CUT | u32::from(at_once && self.rows_are_here()) << SEVERAL
    }

    fn on_several(&mut self, parts: &[Part<'_>]) -> Option<Result<(Vec<Array>, Timings)>> {
        let done = self.run_rows(parts)?;
        Some(done.map(|(arrays, shared)| (arrays, self.noted(shared))))
    }

    fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    fn on_halves(
        &mut self,
        cut: &Cut,
        front: Option<&Slot>,
        back: Option<&Slot>,
    ) -> Option<Result<(Vec<Array>, Timings)>> {
        Some(self.run_halves(cut, front, back))
    }

    fn resident_bytes(&self, device: &str) -> u64 {
        Batch::resident_bytes(self, device)
    }
}

/// A batch whose results go to memory that exists.
pub(crate) struct Into<'a, 'b, 'c> {
    pub(crate) batch: Batch<'a>,
    pub(crate) outputs: &'b mut [ViewMut<'c>],
}

impl Attempt for Into<'_, '_, '_> {
    type Output = ();

    fn on(&mut self, slot: &Slot) -> Result<((), Timings)> {
        let (arrays, timings) = self.batch.run_on(slot)?;
        execute::copy(&arrays, self.outputs);
        Ok(((), timings))
    }

    fn on_cpu(&mut self) -> Result<((), Timings)> {
        let begun = Instant::now();
        let Batch { engine, prepared, views, stop, .. } = &self.batch;
        views.iter().try_for_each(View::fetch)?;
        let outputs = &mut *self.outputs;
        let blocks = engine.cpu.blocks();
        execute::with_bytes(views, |inputs| execute::run_into(&***prepared, blocks, inputs, outputs, *stop))?;
        slow_down(&engine.cpu, begun, engine.config.slow_cpu);
        Ok(((), Timings::default()))
    }

    fn is_ready(&mut self, slot: &Slot) -> Result<bool> {
        self.batch.is_ready_on(slot)
    }

    fn divides(&self, at_once: bool) -> u32 {
        self.batch.divides(at_once)
    }

    fn on_several(&mut self, parts: &[Part<'_>]) -> Option<Result<((), Timings)>> {
        let plan = self.batch.prepared.plan();
        if plan.output_buffers().count() != self.outputs.len() {
            // One buffer serves several outputs: computed once, copied.
            let done = self.batch.run_rows(parts)?;
            return Some(done.map(|(arrays, shared)| (execute::copy(&arrays, self.outputs), self.batch.noted(shared))));
        }
        let mut slices: Vec<&mut [u8]> = self.outputs.iter_mut().map(|output| &mut *output.bytes).collect();
        let done = self.batch.run_rows_into(parts, &mut slices)?;
        Some(done.map(|shared| ((), self.batch.noted(shared))))
    }

    fn take_fault(&mut self) -> Option<String> {
        self.batch.take_fault()
    }

    fn on_halves(&mut self, cut: &Cut, front: Option<&Slot>, back: Option<&Slot>) -> Option<Result<((), Timings)>> {
        let done = self.batch.run_halves(cut, front, back);
        Some(done.map(|(arrays, timings)| (execute::copy(&arrays, self.outputs), timings)))
    }

    fn prepared(&self, slot: Option<&Slot>) -> Result<Arc<dyn Prepared>> {
        self.batch.prepared(slot)
    }

    fn plan(&self) -> &Arc<Plan> {
        self.batch.plan()
    }

    fn resident_bytes(&self, device: &str) -> u64 {
        self.batch.resident_bytes(device)
    }
}

/// A batch whose results stay where they are made.
pub(crate) struct Stay<'a> {
    pub(crate) batch: Batch<'a>,
    pub(crate) engine: &'a Engine,
    pub(crate) recipes: &'a [&'a Tensor],
}

impl Attempt for Stay<'_> {
    type Output = Vec<Tensor>;

    fn on(&mut self, slot: &Slot) -> Result<(Vec<Tensor>, Timings)> {
        let plan = self.batch.prepared.plan();
        let (made, timings) = slot.ready(plan)?.run_batch(&self.batch.sources(), true)?;
        if slot.is_sampled(self.batch.engine.config.verify) {
            verify::check(slot, &self.batch.on_host(&made)?, &self.batch.run_on_cpu()?)?;
        }
        let tensor = |(recipe, id): (&&Tensor, &breakeven_ir::plan::BufferId)| {
            let buffer = match &made[execute::output_number(plan, *id)] {
                Made::Host(buffer) => buffer.clone(),
                Made::Resident(resident) => {
                    let kept = Kept::new(self.engine, recipe, resident.clone())?;
                    Buffer::with_len(Arc::new(kept) as Arc<dyn HostBytes>, resident.len_bytes())
                }
            };
            Ok(Tensor::from_buffer(buffer, recipe.dtype(), recipe.shape())?)
        };
        let tensors: Result<Vec<Tensor>> = self.recipes.iter().zip(&plan.outputs).map(tensor).collect();
        Ok((tensors?, timings))
    }

    fn on_cpu(&mut self) -> Result<(Vec<Tensor>, Timings)> {
        let arrays = self.batch.run_on_cpu()?;
        Ok((arrays.iter().map(Array::to_tensor).collect(), Timings::default()))
    }

    fn is_ready(&mut self, slot: &Slot) -> Result<bool> {
        self.batch.is_ready_on(slot)
    }

    fn prepared(&self, slot: Option<&Slot>) -> Result<Arc<dyn Prepared>> {
        self.batch.prepared(slot)
    }

    fn plan(&self) -> &Arc<Plan> {
        self.batch.plan()
    }

    fn resident_bytes(&self, device: &str) -> u64 {
        self.batch.resident_bytes(device)
    }
}
