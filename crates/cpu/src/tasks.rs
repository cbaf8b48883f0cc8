//! Many tasks of one plan: what they have in common, worked out when the plan is made ready.
//!
//! A task is often no more than a few instructions, and a batch of twenty has 200 ns for everything besides them.

use crate::kernels::map::MapFn;
use crate::program::{Ptr, Step, Target, TileProgram};
use breakeven_ir::backend::RESULT_ALIGN;
use breakeven_ir::expr::Inst;
use breakeven_ir::plan::{BufferInfo, Kernel, Place, Plan};

/// What every task of a plan has in common.
pub(crate) struct TaskLayout {
    /// Bytes of each input.
    pub(crate) input_bytes: Box<[usize]>,
    /// Bytes of all outputs, padded.
    pub(crate) result_bytes: usize,
    /// Where each buffer lies; scratch has no place among a task's inputs and results.
    pub(crate) places: Box<[TaskPlace]>,
    /// May a task fail?
    pub(crate) gathers: bool,
}

/// Where a task's memory lies: bytes of an input, or of its results.
#[derive(Clone, Copy)]
pub(crate) enum TaskPlace {
    Input { number: usize, offset: usize },
    Result { offset: usize },
}

impl TaskPlace {
    fn plus(self, more: usize) -> TaskPlace {
        match self {
            TaskPlace::Input { number, offset } => TaskPlace::Input { number, offset: offset + more },
            TaskPlace::Result { offset } => TaskPlace::Result { offset: offset + more },
        }
    }

    /// Its address. Within the memory of the task if its offset is.
    #[inline(always)]
    pub(crate) fn address(self, inputs: &[&[u8]], results: *mut u8) -> *mut u8 {
        match self {
            TaskPlace::Input { number, offset } => {
                std::ptr::with_exposed_provenance_mut(inputs[number].as_ptr().expose_provenance() + offset)
            }
            TaskPlace::Result { offset } => results.wrapping_add(offset),
        }
    }
}

impl TaskLayout {
    pub(crate) fn new(plan: &Plan) -> TaskLayout {
        let mut result_bytes = 0;
        let place = |info: &BufferInfo| match info.place {
            Place::Input(number) => TaskPlace::Input { number, offset: 0 },
            Place::Scratch(_) => TaskPlace::Result { offset: 0 },
            Place::Output(_) => {
                let offset = result_bytes;
                result_bytes += info.bytes().next_multiple_of(RESULT_ALIGN);
                TaskPlace::Result { offset }
            }
        };
        let places = plan.buffers.iter().map(place).collect();
        let input_bytes = plan.input_infos().iter().map(BufferInfo::bytes).collect();
        let gathers = plan.kernels.iter().any(has_gather);
        TaskLayout { input_bytes, result_bytes, places, gathers }
    }
}

fn has_gather(kernel: &Kernel) -> bool {
    kernel.bodies().iter().any(|body| body.insts.iter().any(|inst| matches!(inst, Inst::Gather { .. })))
}

/// A map of one tile that goes from memory to memory: calls of kernels with addresses, and nothing around them. Without
/// frame, pointer table and scratch a batch of 20 tasks of 256 elements also leaves their 40 KiB in L1: 0.60 us instead
/// of 0.77.
pub(crate) struct Straight {
    calls: Box<[Call]>,
    lanes: usize,
    /// Does every call go over whole buffers, so that tasks that lie side by side in memory are one longer task?
    joins: bool,
}

/// Lanes of tasks that several calls run over as one: what one call writes for the next one stays in L1.
const JOINED_LANES: usize = 2048;

struct Call {
    f: MapFn,
    dst: TaskPlace,
    args: [Operand; 3],
}

#[derive(Clone, Copy)]
enum Operand {
    Memory(TaskPlace),
    Const(u32),
}

impl Straight {
    /// `program` as calls, if it is no more than that; it is the only kernel of a plan without scratch.
    pub(crate) fn new(program: &TileProgram, layout: &TaskLayout) -> Option<Straight> {
        let single = program.loop_count == 1 && program.tiles_per_row == 1 && program.phases.is_empty();
        if !single || program.stream.is_some() {
            return None;
        }
        let origin = vec![0; program.shape.count()];
        let memory = |ptr: Ptr| {
            let follow = program.outer.iter().find(|follow| follow.ptr == ptr)?;
            Some(layout.places[follow.buffer].plus(follow.place.at(&origin) as usize * follow.width))
        };
        let operand = |ptr: Ptr| match program.targets[ptr as usize] {
            Target::Memory => memory(ptr).map(Operand::Memory),
            Target::Const(at) => Some(Operand::Const(at)),
            Target::Slot | Target::Cell => None,
        };
        let call = |step: &Step| {
            let Step::Map { f, dst, args, arity, one: false } = step else { return None };
            let mut operands = [operand(args[0])?; 3];
            for (operand_at, arg) in operands.iter_mut().zip(&args[..usize::from(*arity)]) {
                *operand_at = operand(*arg)?;
            }
            Some(Call { f: *f, dst: memory(*dst)?, args: operands })
        };
        let calls: Option<Box<[Call]>> = program.head.iter().map(call).collect();
        let (calls, lanes) = (calls?, program.lane_count);
        let bytes = lanes * size_of::<u32>();
        let whole = |place: TaskPlace| match place {
            TaskPlace::Input { number, offset } => offset == 0 && layout.input_bytes[number] == bytes,
            TaskPlace::Result { offset } => offset == 0 && layout.result_bytes == bytes,
        };
        let over_all = |operand: &Operand| match operand {
            Operand::Memory(place) => whole(*place),
            Operand::Const(_) => true,
        };
        // One lane of memory may as well be a scalar that every lane reads.
        let joins = lanes > 1 && calls.iter().all(|call| whole(call.dst) && call.args.iter().all(over_all));
        Some(Straight { calls, lanes, joins })
    }

    /// How many tasks, from this one on, lie side by side in memory and may run as one: their inputs have the plan's sizes, if
    /// those of the first one do. `inputs` are those of all tasks from this one on, results are `stride` bytes apart.
    #[inline(always)]
    pub(crate) fn joined(&self, layout: &TaskLayout, inputs: &[&[u8]], stride: usize) -> usize {
        if !self.joins || stride != layout.result_bytes {
            return 1;
        }
        let most = if self.calls.len() == 1 { usize::MAX } else { (JOINED_LANES / self.lanes).max(1) };
        // One address range from here on, whoever borrowed which part of it: hence exposed, not compared alone.
        let adjacent = |before: &[u8], after: &[u8], bytes: usize| {
            after.len() == bytes && before.as_ptr().expose_provenance() + bytes == after.as_ptr().expose_provenance()
        };
        if let [bytes] = *layout.input_bytes {
            let follows = |pair: &&[&[u8]]| adjacent(pair[0], pair[1], bytes);
            return 1 + inputs.windows(2).take(most - 1).take_while(follows).count();
        }
        let each = layout.input_bytes.len().max(1);
        let follows = |(before, after): &(&[&[u8]], &[&[u8]])| {
            let mut inputs = before.iter().zip(*after).zip(&layout.input_bytes);
            inputs.all(|((before, after), bytes)| adjacent(before, after, *bytes))
        };
        let pairs = inputs.chunks_exact(each).zip(inputs.chunks_exact(each).skip(1));
        1 + pairs.take(most - 1).take_while(follows).count()
    }

    /// Runs one task, or so many that are joined.
    ///
    /// # Safety
    /// `program` is the one that this was made from; inputs and results have the sizes of the plan's buffers, for each of
    /// `count` tasks that lie side by side.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, program: &TileProgram, count: usize, inputs: &[&[u8]], results: *mut u8) {
        let address = |operand: Operand| match operand {
            Operand::Memory(place) => place.address(inputs, results).cast::<u32>().cast_const(),
            Operand::Const(at) => &raw const program.consts[at as usize],
        };
        for Call { f, dst, args: [a, b, c] } in &self.calls {
            let dst = dst.address(inputs, results).cast();
            // SAFETY: the plan's accesses stay inside their buffers, and constants are one lane each.
            unsafe { f(dst, address(*a), address(*b), address(*c), self.lanes * count) };
        }
    }
}
