//! A simulated device of which only the times are wanted: plans enter, what they would take leaves.

use breakeven::backend::{Backend, Prepared, Task};
use breakeven::{Plan, RunError, SimBackend, Timings};
use std::sync::Arc;

/// A simulated device without the results: only what it would take. What is tested is where batches go, and the CPU
/// would need most of a minute for the results of everything that a device is measured with.
pub(crate) struct Clock(pub(crate) SimBackend);

struct ClockPlan {
    sim: SimBackend,
    inner: Arc<dyn Prepared>,
}

impl Backend for Clock {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(ClockPlan { sim: self.0.clone(), inner: self.0.prepare(plan)? }))
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        _results: &mut [u8],
        _failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        let total_ns = self.0.batch_ns(tasks[0].plan, tasks.len());
        Ok(Timings { total_ns, ..Timings::default() })
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Prepared for ClockPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, _: &[&[u8]], _: &mut [&mut [u8]], _: bool) -> Result<Timings, RunError> {
        let total_ns = self.sim.batch_ns(self.plan(), 1);
        Ok(Timings { total_ns, device_ns: self.inner.kernel_ns().iter().sum(), ..Timings::default() })
    }

    fn run_tasks(&self, _: usize, _: &[&[u8]], _: &mut [u8], _: usize, _: &mut dyn FnMut(usize, RunError)) {}

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }
}
