//! Times programs on one device of an engine: what `cost::measure` asks for enters, nanoseconds leave.

use crate::cost::{Bench, Effort};
use crate::devices::Slot;
use crate::error::Result;
use crate::execute;
use breakeven_cpu::Cpu;
use breakeven_ir::backend::{Backend, Prepared, Source, Task, Timings};
use breakeven_ir::{Buffer, Plan, Tensor, plan_key};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A device on the bench; the CPU if there is no slot.
pub(crate) struct DeviceBench<'a> {
    pub(crate) cpu: &'a Cpu,
    pub(crate) slot: Option<&'a Slot>,
    /// The CPU is made to take so many times as long.
    pub(crate) slow_cpu: u32,
}

/// A program with its inputs, ready to run.
struct Loaded {
    prepared: Arc<dyn Prepared>,
    inputs: Vec<Buffer>,
}

/// A sample lasts at least this long, so that the clock does not count.
const SAMPLE: Duration = Duration::from_micros(10);

impl DeviceBench<'_> {
    fn load(&self, output: &Tensor) -> Result<Loaded> {
        let (_, leaves) = plan_key(&[output]);
        let inputs = leaves.iter().filter_map(|leaf| leaf.as_data().cloned()).collect();
        let plan = Arc::new(Plan::new(&[output])?);
        let prepared = match self.slot {
            Some(slot) => slot.backend.prepare(&plan)?,
            None => self.cpu.prepare(&plan)?,
        };
        Ok(Loaded { prepared, inputs })
    }

    /// One batch: what it took, and how it went on the device.
    fn once(&self, loaded: &Loaded) -> Result<(u64, Timings)> {
        let begun = Instant::now();
        let Some(slot) = self.slot else {
            let bytes: Vec<&[u8]> = loaded.inputs.iter().map(Buffer::as_bytes).collect();
            execute::run(&*loaded.prepared, self.cpu.blocks(), &bytes, None)?;
            slow_down(self.cpu, begun, self.slow_cpu);
            return Ok((begun.elapsed().as_nanos() as u64, Timings::default()));
        };
        let sources: Vec<Source<'_>> = loaded.inputs.iter().map(Source::Shared).collect();
        let (_, timings) = loaded.prepared.run_batch(&sources, false)?;
        let wall = begun.elapsed().as_nanos() as u64;
        Ok((if slot.backend.is_simulated() { timings.total_ns } else { wall }, timings))
    }

    fn typical(&self, effort: Effort, mut once: impl FnMut() -> Result<u64>) -> Result<f64> {
        // The first compiles, faults in and fills caches.
        let first = once()?;
        let told = self.slot.is_some_and(|slot| slot.backend.is_simulated());
        if told {
            return Ok(once()? as f64);
        }
        let (least, most, budget) = match effort {
            Effort::Probe => (2, 4, Duration::from_micros(500)),
            Effort::Quick => (5, 25, Duration::from_millis(12)),
            Effort::Full => (5, 51, Duration::from_millis(15)),
        };
        let calls = (SAMPLE.as_nanos() as u64 / first.max(1)).clamp(1, 64);
        let (begun, mut samples) = (Instant::now(), Vec::new());
        while samples.len() < least || (samples.len() < most && begun.elapsed() < budget) {
            let total: Result<u64> = (0..calls).map(|_| once()).sum();
            samples.push(total? as f64 / calls as f64);
        }
        samples.sort_by(f64::total_cmp);
        // A first look is taken while the machine is busy, and takes few samples: the best of them.
        let at = if effort == Effort::Probe { 0 } else { samples.len() / 2 };
        Ok(samples[at])
    }
}

impl Bench for DeviceBench<'_> {
    fn is_device(&self) -> bool {
        self.slot.is_some()
    }

    fn time_ns(&mut self, output: &Tensor, effort: Effort) -> Result<f64> {
        let loaded = self.load(output)?;
        self.typical(effort, || Ok(self.once(&loaded)?.0))
    }

    fn device_ns(&mut self, output: &Tensor) -> Result<Option<f64>> {
        let loaded = self.load(output)?;
        // Devices with a clock look at it now and then.
        const TRIES: usize = 20;
        for _ in 0..TRIES {
            let (_, timings) = self.once(&loaded)?;
            if timings.device_ns > 0 {
                return Ok(Some(timings.device_ns as f64));
            }
        }
        Ok(None)
    }

    fn submit_ns(&mut self, output: &Tensor) -> Result<f64> {
        const TIMES: usize = 9;
        let loaded = self.load(output)?;
        let times: Result<Vec<u64>> = (0..TIMES).map(|_| Ok(self.once(&loaded)?.1.submit_ns)).collect();
        let mut times = times?;
        times.sort_unstable();
        Ok(times[TIMES / 2] as f64)
    }

    fn time_tasks_ns(&mut self, elements: usize, tasks: usize, effort: Effort) -> Result<f64> {
        let x = crate::cost::probes::data(&[elements])?;
        let loaded = self.load(&x.relu()?)?;
        let plan = loaded.prepared.plan().clone();
        let input = loaded.inputs[0].as_bytes();
        let stride = plan.result_stride();
        let mut results = vec![0u8; stride * tasks];
        let alone = [input];
        let list: Vec<Task<'_>> =
            (0..tasks).map(|task| Task { plan: &plan, inputs: &alone, offset: task * stride }).collect();
        let inputs = vec![input; tasks];
        self.typical(effort, || {
            let begun = Instant::now();
            let mut fault = None;
            let failed = &mut |_, error| fault = Some(error);
            let told = match self.slot {
                Some(slot) => {
                    let timings = slot.backend.run_mixed(&list, &mut results, failed)?;
                    slot.backend.is_simulated().then_some(timings.total_ns)
                }
                None => {
                    loaded.prepared.run_tasks(tasks, &inputs, &mut results, stride, failed);
                    slow_down(self.cpu, begun, self.slow_cpu);
                    None
                }
            };
            match fault {
                Some(error) => Err(error.into()),
                None => Ok(told.unwrap_or(begun.elapsed().as_nanos() as u64)),
            }
        })
    }
}

/// Waits until so many times what passed since `begun` has passed, with the threads of the CPU awake that were.
pub(crate) fn slow_down(cpu: &Cpu, begun: Instant, times: u32) {
    if times > 1 {
        cpu.wait_until(begun + begun.elapsed() * times);
    }
}
