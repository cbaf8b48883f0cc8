//! A plan on a simulated device: inputs enter, the CPU's results leave when the device would have them.

use super::cost::Work;
use super::device::Simulated;
use super::load::Load;
use super::memory::SimResident;
use breakeven_cpu::Block;
use breakeven_ir::backend::{Made, Prepared, RunError, Source, Stop, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;

/// A plan made ready.
pub(super) struct SimPlan {
    pub(super) device: Arc<Simulated>,
    pub(super) works: Vec<Work>,
    pub(super) inner: Arc<dyn Prepared>,
}

impl SimPlan {
    /// So many tasks, from host to host.
    fn load(&self, tasks: usize) -> Load<'_> {
        let mut load = Load::new(&self.device);
        load.add_tasks(self.plan(), &self.works, tasks);
        load
    }

    /// What an input holds that lies here already.
    fn contents(&self, source: &Source<'_>) -> Result<Option<Buffer>, RunError> {
        let Source::Shared(buffer) = source else { return Ok(None) };
        let resident = buffer.resident().and_then(|value| SimResident::of(&self.device, value));
        resident.map(SimResident::contents).transpose()
    }

    fn run_one(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], stop: Option<&Stop>) -> Result<Timings, RunError> {
        let batch = self.load(1).begin()?;
        let done = self.compute(inputs, outputs, stop);
        // The time passes either way: a device tells of a wrong index when it is done.
        let timings = batch.end(stop)?;
        done.map(|()| timings)
    }

    fn compute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], stop: Option<&Stop>) -> Result<(), RunError> {
        let done = match stop {
            Some(stop) => self.inner.run_until(inputs, outputs, false, stop),
            None => self.inner.run(inputs, outputs, false),
        };
        done.map(|_| ())
    }

    fn run_sources(
        &self,
        inputs: &[Source<'_>],
        stay: bool,
        stop: Option<&Stop>,
    ) -> Result<(Vec<Made>, Timings), RunError> {
        let mut load = Load::new(&self.device);
        let lying: Vec<Option<Buffer>> =
            inputs.iter().map(|source| self.contents(source)).collect::<Result<_, RunError>>()?;
        let mut bytes: Vec<&[u8]> = Vec::with_capacity(inputs.len());
        for (source, lying) in inputs.iter().zip(&lying) {
            bytes.push(match lying {
                Some(buffer) => buffer.as_bytes(),
                None => source.try_bytes().inspect(|bytes| load.upload_bytes += bytes.len() as u64)?,
            });
        }
        let sizes = self.plan().output_buffers().map(BufferInfo::bytes);
        let blocks = self.device.cpu.blocks();
        let mut made: Vec<Block> = sizes.map(|bytes| blocks.take(bytes)).collect::<Result<_, RunError>>()?;
        let mut slices: Vec<&mut [u8]> = made.iter_mut().map(Block::as_mut_bytes).collect();
        if !stay {
            load.readback_bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        }
        load.add_kernels(&self.works, 1);
        let batch = load.begin()?;
        let generation = batch.generation();
        let done = self.compute(&bytes, &mut slices, stop);
        let timings = batch.end(stop)?;
        done?;
        let made = made.into_iter().map(|block| match stay {
            true => Made::Resident(Arc::new(SimResident::value(&self.device, generation, block))),
            false => Made::Host(Buffer::new(Arc::new(block) as Arc<dyn HostBytes>)),
        });
        Ok((made.collect(), timings))
    }
}

impl Prepared for SimPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], _threads: bool) -> Result<Timings, RunError> {
        self.run_one(inputs, outputs, None)
    }

    fn run_until(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        _threads: bool,
        stop: &Stop,
    ) -> Result<Timings, RunError> {
        stop.check()?;
        self.run_one(inputs, outputs, Some(stop))
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        let mut wrong = Vec::new();
        let ended = self.load(tasks).begin().and_then(|batch| {
            self.inner.run_tasks(tasks, inputs, results, stride, &mut |task, error| wrong.push((task, error)));
            batch.end(None)
        });
        match ended {
            Ok(_) => wrong.into_iter().for_each(|(task, error)| failed(task, error)),
            Err(error) => (0..tasks).for_each(|task| failed(task, error.clone())),
        }
    }

    /// Exactly what a run takes now if all inputs come from the host and no other batch is there.
    fn estimate_ns(&self) -> u64 {
        self.load(1).timings().total_ns
    }

    fn kernel_ns(&self) -> Vec<u64> {
        let (costs, slowdown) = (self.device.profile.costs(), self.device.slowdown());
        self.works.iter().map(|work| costs.kernel_ns(work, 1, slowdown)).collect()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        self.run_sources(inputs, stay, None)
    }

    fn run_batch_until(
        &self,
        inputs: &[Source<'_>],
        stay: bool,
        stop: &Stop,
    ) -> Result<(Vec<Made>, Timings), RunError> {
        stop.check()?;
        self.run_sources(inputs, stay, Some(stop))
    }
}
