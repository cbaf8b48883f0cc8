//! A batch of many rows on the CPU and another device at once: its inputs, two plans and memory for the results enter;
//! each side writes its rows.
//!
//! Rows of an input are a part of its bytes, so that nothing is copied to divide it. A device that fails costs no
//! result: the CPU computes its rows, too.

use crate::array::{Array, View};
use crate::batch::Batch;
use crate::calibrate::slow_down;
use crate::devices::Slot;
use crate::error::Result;
use crate::execute;
use crate::router::{ByRows, RowParts};
use crate::verify;
use breakeven_cpu::Block;
use breakeven_ir::backend::{Prepared, RunError, Source, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;
use std::time::Instant;

/// How a batch went on both sides.
pub(crate) struct Shared {
    pub(crate) timings: Timings,
    /// Why the device's rows are the CPU's work after all.
    pub(crate) fault: Option<String>,
}

/// Both sides' plans, made ready.
struct Sides {
    there: Arc<dyn Prepared>,
    here: Arc<dyn Prepared>,
}

impl Batch<'_> {
    /// May rows be shared with inputs that lie where these do? A row of what lies on a device is not to be had alone.
    pub(crate) fn rows_are_here(&self) -> bool {
        let lies_there =
            |view: &View<'_>| matches!(view.source(), Source::Shared(buffer) if buffer.resident().is_some());
        if !self.views.iter().any(lies_there) {
            return true;
        }
        let routed = self.engine.router.routed(self.prepared.plan(), 1);
        let is_cut = |by_rows: &ByRows| {
            self.views.iter().zip(&by_rows.rows.cut_inputs).any(|(view, cut)| *cut && lies_there(view))
        };
        routed.by_rows().is_some_and(|by_rows| !is_cut(by_rows))
    }

    /// A device has this share of the rows, the CPU the others, each into fresh memory. `None` if that can't be, or not
    /// yet.
    pub(crate) fn run_rows(&self, slot: &Slot, share: f64) -> Option<Result<(Vec<Array>, Shared)>> {
        let plan = self.prepared.plan();
        let run = || {
            let blocks = self.engine.cpu.blocks();
            let taken: Result<Vec<Block>, RunError> =
                plan.output_buffers().map(|info| blocks.take(info.bytes())).collect();
            let mut taken = taken?;
            let mut slices: Vec<&mut [u8]> = taken.iter_mut().map(Block::as_mut_bytes).collect();
            let Some(shared) = self.run_rows_into(slot, share, &mut slices) else { return Ok(None) };
            let shared = shared?;
            let buffer = |block: Block| Buffer::new(Arc::new(block) as Arc<dyn HostBytes>);
            let made: Vec<Buffer> = taken.into_iter().map(buffer).collect();
            Ok(Some((execute::arrays(plan, &made), shared)))
        };
        run().transpose()
    }

    /// As [`Batch::run_rows`], into memory for each of the plan's output buffers.
    pub(crate) fn run_rows_into(&self, slot: &Slot, share: f64, outputs: &mut [&mut [u8]]) -> Option<Result<Shared>> {
        let plan = self.prepared.plan();
        let routed = self.engine.router.routed(plan, 1);
        let by_rows = routed.by_rows()?;
        let parts = by_rows.parts(plan, share)?;
        // Made ready first, and kept: that is no part of what a batch takes.
        let sides = match self.sides(slot, &parts) {
            Ok(sides) if !sides.there.is_ready() => return None,
            Ok(sides) => sides,
            Err(error) => return Some(Err(error)),
        };
        Some(self.on_both_sides(slot, by_rows, &parts, &sides, outputs))
    }

    fn sides(&self, slot: &Slot, parts: &RowParts) -> Result<Sides> {
        let here = self.engine.plans.half(&parts.here, &*self.engine.cpu)?;
        Ok(Sides { there: slot.ready(&parts.there)?, here })
    }

    fn on_both_sides(
        &self,
        slot: &Slot,
        by_rows: &ByRows,
        parts: &RowParts,
        sides: &Sides,
        outputs: &mut [&mut [u8]],
    ) -> Result<Shared> {
        self.views.iter().try_for_each(View::fetch)?;
        let plan = self.prepared.plan();
        let first = |info: &BufferInfo| info.bytes() / by_rows.rows.count * parts.count;
        let (mut sources, mut inputs) = (Vec::new(), Vec::new());
        for ((view, info), cut) in self.views.iter().zip(plan.input_infos()).zip(&by_rows.rows.cut_inputs) {
            let host = view.host();
            let halves = if *cut { host.split_at_checked(first(info)) } else { Some((host, host)) };
            let Some((theirs, ours)) = halves else {
                return Err(RunError::Stale { device: slot.backend.id().into() }.into());
            };
            // What is needed whole may lie there.
            sources.push(if *cut { Source::Bytes(theirs) } else { view.source() });
            inputs.push(ours);
        }
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for (output, info) in outputs.iter_mut().zip(plan.output_buffers()) {
            let (first, others) = output.split_at_mut(first(info));
            theirs.push(first);
            ours.push(others);
        }
        let begun = Instant::now();
        let (outcome, done, cpu_ns) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("breakeven rows".into());
            let device = thread.spawn_scoped(scope, || run_there(&*sides.there, &sources, &mut theirs));
            let done = sides.here.run(&inputs, &mut ours, true);
            slow_down(begun, self.engine.config.slow_cpu);
            let cpu_ns = ns(begun);
            let outcome = match device.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(outcome)) => outcome.map_err(|error| error.to_string()),
                // The driver's, and nothing of ours is lost.
                Ok(Err(_)) => Err(format!("{}: its driver has panicked", slot.backend.id())),
                Err(error) => Err(format!("{}: there is no thread to wait for it: {error}", slot.backend.id())),
            };
            (outcome, done, cpu_ns)
        });
        done?;
        // A check comes after that, and is no part of what sharing takes.
        let both_ns = ns(begun);
        let outcome = outcome.and_then(|(made, timings)| {
            let checked = self.check(slot, &parts.there, &sources, &made);
            checked.map(|()| timings).map_err(|error| error.to_string())
        });
        match outcome {
            Ok(mut timings) => {
                // A simulated device tells when it is done; the batch is when both are.
                let told = if slot.backend.is_simulated() { timings.total_ns } else { both_ns };
                timings.total_ns = told.max(cpu_ns);
                Ok(Shared { timings, fault: None })
            }
            Err(fault) => {
                let again = Instant::now();
                self.run_here(&parts.there, &sources, &mut theirs)?;
                slow_down(again, self.engine.config.slow_cpu);
                let timings = Timings { total_ns: ns(begun), ..Timings::default() };
                Ok(Shared { timings, fault: Some(fault) })
            }
        }
    }

    /// The device's part on the CPU.
    fn run_here(&self, plan: &Arc<Plan>, sources: &[Source<'_>], outputs: &mut [&mut [u8]]) -> Result<()> {
        let bytes: Result<Vec<&[u8]>, RunError> = sources.iter().map(Source::try_bytes).collect();
        self.engine.plans.half(plan, &*self.engine.cpu)?.run(&bytes?, outputs, true)?;
        Ok(())
    }

    /// Checks the device's rows against the CPU's, if this batch is one of the samples.
    fn check(&self, slot: &Slot, plan: &Arc<Plan>, sources: &[Source<'_>], made: &[Buffer]) -> Result<()> {
        if !slot.is_sampled(self.engine.config.verify) {
            return Ok(());
        }
        let bytes: Result<Vec<&[u8]>, RunError> = sources.iter().map(Source::try_bytes).collect();
        let prepared = self.engine.plans.half(plan, &*self.engine.cpu)?;
        let right = execute::run(&*prepared, self.engine.cpu.blocks(), &bytes?, None)?;
        verify::check(slot, &execute::arrays(plan, made), &right)
    }
}

/// The device's part, and a copy of its results where they belong.
fn run_there(
    prepared: &dyn Prepared,
    sources: &[Source<'_>],
    outputs: &mut [&mut [u8]],
) -> Result<(Vec<Buffer>, Timings), RunError> {
    let (made, timings) = prepared.run_batch(sources, false)?;
    let made = execute::on_host(&made)?;
    for (output, buffer) in outputs.iter_mut().zip(&made) {
        output.copy_from_slice(buffer.try_bytes()?);
    }
    Ok((made, timings))
}

fn ns(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
