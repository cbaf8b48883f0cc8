//! Plans that the owner thread runs for itself: those of the self-test and of the tuner. They take the way of every
//! batch, but have no caller, no place among the pending ones, and say nothing about the device's progress.

use crate::job::{Core, Done, Group, Job};
use crate::layout::Layout;
use crate::owner::Owner;
use crate::stage::Lowered;
use breakeven_ir::backend::RunError;
use breakeven_ir::plan::Plan;
use crossbeam_channel::{Receiver, bounded};
use std::sync::Arc;
use std::time::Instant;

/// A trial's results.
pub(crate) struct Tried {
    core: Arc<Core>,
    done: Done,
}

impl Tried {
    /// From the first call into the driver to the results in the host's sight.
    pub(crate) fn ns(&self) -> u64 {
        self.done.timings.total_ns
    }

    /// The output block as it is mapped.
    pub(crate) fn mapped(&self) -> &[u8] {
        self.done.read.as_ref().map_or(&[], |read| read.bytes())
    }

    /// All outputs, one after the other.
    pub(crate) fn words(&self) -> Vec<u32> {
        let part = |region: &crate::layout::Region| {
            let from = region.offset as usize;
            bytemuck::pod_collect_to_vec(self.mapped().get(from..from + region.bytes as usize).unwrap_or(&[]))
        };
        self.core.layout.outputs.iter().flat_map(part).collect()
    }
}

impl Owner {
    /// A plan of the owner's own. Callers' plans are numbered from the other end.
    pub(crate) fn trial_core(&mut self, plan: &Arc<Plan>, lowered: Lowered) -> Arc<Core> {
        let layout = Layout::new(plan, &lowered, false);
        self.trials += 1;
        Arc::new(Core::new(u64::MAX - self.trials, plan, lowered, layout, usize::MAX))
    }

    /// Sends a trial to the device, and does not wait for it.
    pub(crate) fn start_trial(
        &mut self,
        core: &Arc<Core>,
        inputs: &[Vec<u32>],
    ) -> Result<Receiver<Result<Done, RunError>>, RunError> {
        self.driver.reclaim();
        let layout = core.layout.clone();
        let mut upload = match self.driver.pool.take_upload(layout.upload_bytes) {
            Some(upload) => upload,
            None => self.driver.upload(layout.upload_bytes)?,
        };
        for (region, input) in layout.inputs.iter().zip(inputs) {
            if let Some(region) = region {
                upload.write(region.offset as usize, bytemuck::cast_slice(input));
            }
        }
        let (upload_bytes, block_bytes) = (layout.upload_bytes, layout.block_bytes);
        let (reply, answer) = bounded(1);
        let groups = vec![Group { core: core.clone(), layout, residents: Vec::new(), many: None }];
        let (upload, sent) = (Some(upload), Instant::now());
        self.start(Job { groups, upload, upload_bytes, block_bytes, reply, permit: None, stop: None, sent });
        Ok(answer)
    }

    /// Runs a trial, when nothing is in flight.
    pub(crate) fn trial(&mut self, core: &Arc<Core>, inputs: &[Vec<u32>]) -> Result<Tried, RunError> {
        let answer = self.start_trial(core, inputs)?;
        self.drain();
        let done = answer.try_recv().unwrap_or_else(|_| Err(self.lost_error()))?;
        Ok(Tried { core: core.clone(), done })
    }

    /// Waits for everything that is in flight.
    pub(crate) fn drain(&mut self) {
        while !self.in_flight.is_empty() && !self.life.is_lost() {
            self.finish_oldest();
        }
    }

    /// Lets go of what was kept for a trial.
    pub(crate) fn forget_trial(&mut self, core: &Core) {
        if let Some(state) = self.plans.remove(&core.id) {
            self.driver.pool.give(state.params, None);
        }
    }
}
