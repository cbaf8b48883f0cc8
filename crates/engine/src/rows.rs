//! A batch of many rows on several devices at once: its inputs, who has which share and memory for the results enter; each
//! side writes its rows.
//!
//! Rows of an input are a part of its bytes, so that nothing is copied to divide it. A device that fails costs no
//! result: the CPU computes its rows, too.

use crate::array::{Array, View};
use crate::batch::Batch;
use crate::calibrate::slow_down;
use crate::devices::Slot;
use crate::divided::{Part, Working};
use crate::error::Result;
use crate::execute;
use crate::router::ByRows;
use crate::verify;
use breakeven_cpu::Block;
use breakeven_ir::backend::{Prepared, RunError, Source, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;
use std::time::Instant;

/// How a batch went on all sides.
pub(crate) struct Shared {
    pub(crate) timings: Timings,
    /// Why some device's rows are the CPU's work after all.
    pub(crate) fault: Option<String>,
}

/// One device's rows: what computes them, from what, and where to.
struct Side<'b> {
    /// `None` is the CPU.
    slot: Option<&'b Slot>,
    plan: Arc<Plan>,
    prepared: Arc<dyn Prepared>,
    sources: Vec<Source<'b>>,
    outputs: Vec<&'b mut [u8]>,
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

    /// Each has its rows, and puts results into fresh memory. `None` if that can't be, or not yet.
    pub(crate) fn run_rows(&self, parts: &[Part<'_>]) -> Option<Result<(Vec<Array>, Shared)>> {
        let plan = self.prepared.plan();
        let run = || {
            let blocks = self.engine.cpu.blocks();
            let taken: Result<Vec<Block>, RunError> =
                plan.output_buffers().map(|info| blocks.take(info.bytes())).collect();
            let mut taken = taken?;
            let mut slices: Vec<&mut [u8]> = taken.iter_mut().map(Block::as_mut_bytes).collect();
            let Some(shared) = self.run_rows_into(parts, &mut slices) else { return Ok(None) };
            let shared = shared?;
            let buffer = |block: Block| Buffer::new(Arc::new(block) as Arc<dyn HostBytes>);
            let made: Vec<Buffer> = taken.into_iter().map(buffer).collect();
            Ok(Some((execute::arrays(plan, &made), shared)))
        };
        run().transpose()
    }

    /// As [`Batch::run_rows`], into memory for each of the plan's output buffers.
    pub(crate) fn run_rows_into(&self, parts: &[Part<'_>], outputs: &mut [&mut [u8]]) -> Option<Result<Shared>> {
        let routed = self.engine.router.routed(self.prepared.plan(), 1);
        let by_rows = routed.by_rows()?;
        let mut run = || {
            self.views.iter().try_for_each(View::fetch)?;
            let Some(sides) = self.sides(by_rows, parts, outputs)? else { return Ok(None) };
            self.on_all_sides(sides).map(Some)
        };
        run().transpose()
    }

    /// Each one's plan, made ready, and its rows of the inputs and outputs. `None` if some plan can't be had, or not yet.
    fn sides<'b>(
        &'b self,
        by_rows: &ByRows,
        parts: &[Part<'b>],
        outputs: &'b mut [&mut [u8]],
    ) -> Result<Option<Vec<Side<'b>>>> {
        let whole = self.prepared.plan();
        let mut outputs: Vec<&'b mut [u8]> = outputs.iter_mut().map(|output| &mut **output).collect();
        let (mut sides, mut first) = (Vec::with_capacity(parts.len()), 0);
        for (part, count) in parts.iter().zip(by_rows.counts(parts.iter().map(|part| part.share))) {
            let Some(plan) = by_rows.plan(whole, count) else { return Ok(None) };
            // Made ready first, and kept: that is no part of what a batch takes.
            let prepared = match part.slot {
                Some(slot) => slot.ready(&plan)?,
                None => self.engine.plans.half(&plan, &*self.engine.cpu)?,
            };
            if !prepared.is_ready() {
                return Ok(None);
            }
            let bytes = |info: &BufferInfo, rows: usize| info.bytes() / by_rows.rows.count * rows;
            let mut sources = Vec::with_capacity(self.views.len());
            for ((view, info), cut) in self.views.iter().zip(whole.input_infos()).zip(&by_rows.rows.cut_inputs) {
                // What is needed whole may lie there.
                sources.push(match (cut, view.host().get(bytes(info, first)..bytes(info, first + count))) {
                    (false, _) => view.source(),
                    (true, Some(rows)) => Source::Bytes(rows),
                    (true, None) => return Err(RunError::Stale { device: "cpu".into() }.into()),
                });
            }
            let cut = |(output, info): (&mut &'b mut [u8], &BufferInfo)| {
                let (own, others) = std::mem::take(output).split_at_mut(bytes(info, count));
                *output = others;
                own
            };
            let outputs = outputs.iter_mut().zip(whole.output_buffers()).map(cut).collect();
            sides.push(Side { slot: part.slot, plan, prepared, sources, outputs });
            first += count;
        }
        Ok(Some(sides))
    }

    fn on_all_sides(&self, mut sides: Vec<Side<'_>>) -> Result<Shared> {
        let begun = Instant::now();
        let (there, done, cpu_ns) = std::thread::scope(|scope| {
            let (mut working, mut here) = (Vec::new(), None);
            for side in &mut sides {
                let Some(slot) = side.slot else {
                    here = Some(side);
                    continue;
                };
                working.push(Working::begin(scope, slot, || side.run_there()));
            }
            let done: Result<(), RunError> = here.map_or(Ok(()), |side| {
                side.run_here(&*side.prepared.clone())?;
                slow_down(&self.engine.cpu, begun, self.engine.config.slow_cpu);
                Ok(())
            });
            let cpu_ns = ns(begun);
            let there: Vec<_> = working.into_iter().map(Working::end).collect();
            (there, done, cpu_ns)
        });
        done?;
        // Checks come after that, and are no part of what sharing takes.
        let all_ns = ns(begun);
        let (mut timings, mut told_ns, mut faults) = (Timings::default(), cpu_ns, Vec::new());
        for (side, outcome) in sides.iter_mut().filter(|side| side.slot.is_some()).zip(there) {
            let Some(slot) = side.slot else { continue };
            let checked = outcome.and_then(|(made, timings)| {
                let checked = self.check(slot, &side.plan, &side.sources, &made);
                checked.map(|()| timings).map_err(|error| error.to_string())
            });
            match checked {
                Ok(took) => {
                    timings.add(&took);
                    // A simulated device tells when it is done; the batch is when all are.
                    told_ns = told_ns.max(if slot.backend.is_simulated() { took.total_ns } else { all_ns });
                }
                Err(fault) => {
                    let again = Instant::now();
                    side.run_here(&*self.engine.plans.half(&side.plan, &*self.engine.cpu)?)?;
                    slow_down(&self.engine.cpu, again, self.engine.config.slow_cpu);
                    faults.push(fault);
                }
            }
        }
        timings.total_ns = told_ns;
        if faults.is_empty() {
            return Ok(Shared { timings, fault: None });
        }
        let timings = Timings { total_ns: ns(begun), ..Timings::default() };
        Ok(Shared { timings, fault: Some(faults.join("; ")) })
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

impl Side<'_> {
    /// On its device, with a copy of the results where they belong.
    fn run_there(&mut self) -> Result<(Vec<Buffer>, Timings), RunError> {
        let (made, timings) = self.prepared.run_batch(&self.sources, false)?;
        let made = execute::on_host(&made)?;
        for (output, buffer) in self.outputs.iter_mut().zip(&made) {
            output.copy_from_slice(buffer.try_bytes()?);
        }
        Ok((made, timings))
    }

    /// On the CPU, for which the plan was made ready.
    fn run_here(&mut self, prepared: &dyn Prepared) -> Result<(), RunError> {
        let bytes: Result<Vec<&[u8]>, RunError> = self.sources.iter().map(Source::try_bytes).collect();
        prepared.run(&bytes?, &mut self.outputs, true)?;
        Ok(())
    }
}

fn ns(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
