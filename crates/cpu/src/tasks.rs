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
            TaskPlace::Input { number, offset } => inputs[number].as_ptr().cast_mut().wrapping_add(offset),
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
}

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
        if !single || program.stream {
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
        Some(Straight { calls: calls?, lanes: program.lane_count })
    }

    /// Runs one task.
    ///
    /// # Safety
    /// `program` is the one that this was made from; inputs and results have the sizes of the plan's buffers.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, program: &TileProgram, inputs: &[&[u8]], results: *mut u8) {
        let address = |operand: Operand| match operand {
            Operand::Memory(place) => place.address(inputs, results).cast::<u32>().cast_const(),
            Operand::Const(at) => &raw const program.consts[at as usize],
        };
        for Call { f, dst, args: [a, b, c] } in &self.calls {
            let dst = dst.address(inputs, results).cast();
            // SAFETY: the plan's accesses stay inside their buffers, and constants are one lane each.
            unsafe { f(dst, address(*a), address(*b), address(*c), self.lanes) };
        }
    }
}
