//! A plan made ready for the CPU: every kernel lowered, its threads and stores chosen by measurement.

use crate::blocks::Blocks;
use crate::either::Either;
use crate::lower::Manner;
use crate::moving::Levels;
use crate::product::Product;
use crate::program::TileProgram;
use crate::schedule::{Buffers, Run};
use crate::scratch::Scratches;
use crate::shape::Form;
use crate::tasks::{Straight, TaskLayout};
use crate::team::{Sleep, Team, Work};
use crate::threads::Pool;
use breakeven_ir::backend::{Made, Prepared, RESULT_ALIGN, RunError, Source, Stop, Timings, on_host};
use breakeven_ir::plan::{Kernel, Place, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// What prepared plans keep alive.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) sleep: Sleep,
    pub(crate) levels: Levels,
    pub(crate) scratches: Scratches,
    pub(crate) blocks: Arc<Blocks>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.blocks.close();
    }
}

/// Outputs from this size on may be written past the caches: below, everything fits some cache.
const STREAM_BYTES: usize = 8 << 20;

/// A kernel made ready.
struct Ready {
    form: ReadyForm,
    work: Work,
}

enum ReadyForm {
    Tiles(Box<TileProgram>),
    /// Large outputs: with ordinary and with non-temporal stores, whichever measures faster.
    Either {
        variants: Box<[TileProgram; 2]>,
        faster: Either,
    },
    Product(Box<Product>),
}

impl Ready {
    fn new(plan: &Plan, kernel: &Kernel, levels: Levels) -> Ready {
        match kernel {
            Kernel::Contract(contract) => {
                let product = Product::new(plan, contract, levels.computing);
                Ready { work: Work::estimated(product.estimate_ns()), form: ReadyForm::Product(Box::new(product)) }
            }
            Kernel::Loops(loops) => {
                let program = TileProgram::new(plan, loops, levels, Manner::Whole);
                let work = Work::estimated(program.points() * program.estimate_ps / 1000);
                let bytes: usize = loops.stores.iter().map(|s| plan.buffer(s.buffer).bytes()).sum();
                let slots_last = program.shape.form != Form::Columns && !program.whole_rows();
                let form = if bytes >= STREAM_BYTES && slots_last && cfg!(target_arch = "x86_64") {
                    let streamed = TileProgram::new(plan, loops, levels, Manner::Streamed);
                    ReadyForm::Either { variants: Box::new([program, streamed]), faster: Either::new() }
                } else {
                    ReadyForm::Tiles(Box::new(program))
                };
                Ready { form, work }
            }
        }
    }

    /// Runs the kernel; true if helpers took part.
    ///
    /// # Safety
    /// As for [`TileProgram::run`].
    unsafe fn run(
        &self,
        shared: &Shared,
        buffers: Buffers,
        wrong: &AtomicI64,
        threads: bool,
        stop: Option<&Stop>,
    ) -> bool {
        let ((), parallel) = self.work.run(&shared.pool, &shared.sleep, threads, stop, |team| {
            let run = Run { buffers, scratches: &shared.scratches, team, wrong };
            // SAFETY: passed on.
            unsafe {
                match &self.form {
                    ReadyForm::Tiles(program) => program.run(&run),
                    ReadyForm::Product(product) => product.run(&run),
                    ReadyForm::Either { variants, faster } => {
                        let way = faster.next();
                        let start = Instant::now();
                        variants[way].run(&run);
                        if !team.is_told() {
                            faster.took(way, start.elapsed().as_nanos() as u64);
                        }
                    }
                }
            }
        });
        parallel
    }
}

/// A plan made ready for the CPU.
pub(crate) struct PreparedPlan {
    plan: Arc<Plan>,
    kernels: Vec<Ready>,
    shared: Arc<Shared>,
    tasks: TaskLayout,
    /// The plan as plain calls, if it is no more: what its tasks run.
    straight: Option<Straight>,
}

/// Base addresses that are kept on the stack; larger plans borrow scratch for them.
const BASES: usize = 32;

impl PreparedPlan {
    pub(crate) fn new(plan: &Arc<Plan>, shared: &Arc<Shared>) -> PreparedPlan {
        let kernels = plan.kernels.iter().map(|kernel| Ready::new(plan, kernel, shared.levels)).collect();
        let tasks = TaskLayout::new(plan);
        let mut made = PreparedPlan { plan: plan.clone(), kernels, shared: shared.clone(), tasks, straight: None };
        made.straight = made.single_map().and_then(|program| Straight::new(program, &made.tasks));
        made
    }

    /// The program of a plan that is a single map without scratch: its tasks need no more than new addresses.
    fn single_map(&self) -> Option<&TileProgram> {
        match &self.kernels[..] {
            [Ready { form: ReadyForm::Tiles(program), .. }]
                if program.shape.form == Form::Map
                    && self.plan.scratch_bytes == 0
                    && self.plan.buffers.len() <= BASES =>
            {
                Some(program)
            }
            _ => None,
        }
    }

    /// Runs a single map over tasks.
    fn run_map_tasks(
        &self,
        program: &TileProgram,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        let per_task = self.plan.inputs;
        let base = results.as_mut_ptr();
        let inputs_of = |task: usize| {
            let inputs = &inputs[task * per_task..(task + 1) * per_task];
            let fits = inputs.iter().zip(&self.tasks.input_bytes).all(|(input, bytes)| input.len() == *bytes);
            assert!(fits, "an input's size was not checked");
            inputs
        };
        if let Some(straight) = &self.straight {
            let mut task = 0;
            while task < tasks {
                let first = inputs_of(task);
                let count = straight.joined(&self.tasks, &inputs[task * per_task..], stride);
                // SAFETY: inputs are checked here and by `joined`, results by the caller; it was made from this program, and
                // the memory of tasks that are joined follows one another.
                unsafe { straight.run(program, count, first, base.wrapping_add(task * stride)) };
                task += count;
            }
            return;
        }
        let mut bases = [std::ptr::null_mut(); BASES];
        let cell = bases.as_mut_ptr();
        let wrong = AtomicI64::new(i64::MAX);
        let team = Team { pool: &self.shared.pool, parallel: false, ns: 0, stop: None };
        let buffers = Buffers::new(&bases[..self.plan.buffers.len()]);
        let run = Run { buffers, scratches: &self.shared.scratches, team, wrong: &wrong };
        let mut previous = None;
        let mut report = |task: Option<usize>| {
            let packed = wrong.swap(i64::MAX, Ordering::Relaxed);
            if let (Some(task), true) = (task, packed != i64::MAX) {
                failed(task, take_error(packed));
            }
        };
        let TaskLayout { places, gathers, .. } = &self.tasks;
        // SAFETY: inputs and results of every task have the sizes of the plan's buffers, checked when their addresses
        // are taken and by the caller; the addresses are written through the pointer that the buffers were made from.
        unsafe {
            program.run_tasks(&run, tasks, |task| {
                if *gathers {
                    report(previous);
                    previous = Some(task);
                }
                let (inputs, results) = (inputs_of(task), base.add(task * stride));
                for (at, place) in places.iter().enumerate() {
                    cell.add(at).write(place.address(inputs, results));
                }
            });
        }
        report(previous);
    }

    fn run_with(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        bases: &mut [*mut u8],
        threads: bool,
        stop: Option<&Stop>,
    ) -> Result<Timings, RunError> {
        let mut block = match self.plan.scratch_bytes {
            0 => None,
            bytes => Some(self.shared.blocks.take(bytes)?),
        };
        let scratch = block.as_mut().map_or(std::ptr::null_mut(), |b| b.as_mut_bytes().as_mut_ptr());
        let mut next_output = outputs.iter_mut();
        for (base, info) in bases.iter_mut().zip(&self.plan.buffers) {
            *base = match info.place {
                Place::Input(at) => inputs[at].as_ptr().cast_mut(),
                Place::Output(_) => next_output.next().map_or(std::ptr::null_mut(), |o| o.as_mut_ptr()),
                Place::Scratch(at) => scratch.wrapping_add(at),
            };
        }
        let wrong = AtomicI64::new(i64::MAX);
        let mut threads_used = 1;
        for kernel in &self.kernels {
            // SAFETY: the caller of `run` gives slices of the plan's sizes (checked there), scratch is as large as the
            // plan says, and outputs are borrowed mutably. Inputs are only read: no store goes to an input.
            let parallel = unsafe { kernel.run(&self.shared, Buffers::new(bases), &wrong, threads, stop) };
            // After each kernel: one that was stopped has left anything behind, and no other may read it.
            stop.map_or(Ok(()), Stop::check)?;
            if parallel {
                threads_used = self.shared.pool.threads() as u32;
            }
        }
        match wrong.load(Ordering::Relaxed) {
            i64::MAX => Ok(Timings {
                total_ns: 0,
                kernels: self.kernels.len() as u32,
                threads: threads_used,
                ..Timings::default()
            }),
            packed => Err(take_error(packed)),
        }
    }
}

/// The error behind a packed position (see [`Run::wrong`]).
fn take_error(packed: i64) -> RunError {
    RunError::TakeIndex { index: packed as u32 as i32, extent: (packed >> 32) as usize }
}

impl PreparedPlan {
    /// Checks the sizes and runs.
    fn run_checked(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: bool,
        stop: Option<&Stop>,
    ) -> Result<Timings, RunError> {
        for (input, info) in inputs.iter().zip(self.plan.input_infos()) {
            assert_eq!(input.len(), info.bytes(), "an input's size was not checked");
        }
        assert_eq!(inputs.len(), self.plan.inputs, "the number of inputs was not checked");
        let infos = self.plan.buffers.iter().filter(|b| matches!(b.place, Place::Output(_)));
        for (output, info) in outputs.iter().zip(infos.clone()) {
            assert_eq!(output.len(), info.bytes(), "an output's size was not checked");
        }
        assert_eq!(outputs.len(), infos.count(), "the number of outputs was not checked");
        let count = self.plan.buffers.len();
        if count <= BASES {
            let mut bases = [std::ptr::null_mut(); BASES];
            self.run_with(inputs, outputs, &mut bases[..count], threads, stop)
        } else {
            let mut bases = vec![std::ptr::null_mut(); count];
            self.run_with(inputs, outputs, &mut bases, threads, stop)
        }
    }
}

impl Prepared for PreparedPlan {
    fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        self.run_checked(inputs, outputs, threads, None)
    }

    fn run_until(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: bool,
        stop: &Stop,
    ) -> Result<Timings, RunError> {
        stop.check()?;
        self.run_checked(inputs, outputs, threads, Some(stop))
    }

    fn run_batch_until(
        &self,
        inputs: &[Source<'_>],
        _stay: bool,
        stop: &Stop,
    ) -> Result<(Vec<Made>, Timings), RunError> {
        stop.check()?;
        on_host(&self.plan, inputs, |inputs, outputs| self.run_until(inputs, outputs, true, stop))
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        let per_task = self.plan.inputs;
        assert_eq!(inputs.len(), tasks * per_task, "the number of inputs was not checked");
        assert!(results.len() >= tasks * stride && stride >= self.tasks.result_bytes, "results need their place");
        if let Some(program) = self.single_map() {
            return self.run_map_tasks(program, tasks, inputs, results, stride, failed);
        }
        for task in 0..tasks {
            let mut rest = &mut results[task * stride..(task + 1) * stride];
            let mut outputs: Vec<&mut [u8]> = Vec::new();
            for info in self.plan.buffers.iter().filter(|b| matches!(b.place, Place::Output(_))) {
                let (output, tail) = rest.split_at_mut(info.bytes().next_multiple_of(RESULT_ALIGN));
                outputs.push(&mut output[..info.bytes()]);
                rest = tail;
            }
            if let Err(error) = self.run(&inputs[task * per_task..(task + 1) * per_task], &mut outputs, false) {
                failed(task, error);
            }
        }
    }

    fn estimate_ns(&self) -> u64 {
        self.kernels.iter().map(|k| k.work.ns()).sum()
    }

    fn kernel_ns(&self) -> Vec<u64> {
        self.kernels.iter().map(|k| k.work.ns()).collect()
    }
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
