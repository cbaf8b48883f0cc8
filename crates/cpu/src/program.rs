//! A lowered kernel: steps over tiles, with every operand a pointer and every function chosen beforehand.
//!
//! `lower` writes it, `schedule` and `tile` run it.

use crate::kernels::across::AcrossFn;
use crate::kernels::map::MapFn;
use crate::kernels::reduce::{DotFn, ReduceFns};
use crate::kernels::scan::ScanFns;
use crate::place::{Bound, Place};
use crate::shape::LoopShape;
use crate::stream::CopyFn;
use breakeven_ir::Scalar;

/// The number of an entry in a program's pointer table.
pub(crate) type Ptr = u32;

/// What a pointer points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Lanes in scratch; which bytes is decided by `slots`.
    Slot,
    /// One lane in scratch.
    Cell,
    /// A constant of the program.
    Const(u32),
    /// Memory, moved from tile to tile.
    Memory,
}

/// One step over a tile. `one` steps compute a single lane.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Map {
        f: MapFn,
        dst: Ptr,
        args: [Ptr; 3],
        arity: u8,
        one: bool,
    },
    /// Brings what is not contiguous or guarded into a slot. Where its conditions fail are zeros, or, `over` another value, what
    /// was there.
    Fill {
        load: u32,
        dst: Ptr,
        one: bool,
        over: bool,
    },
    /// Brings what lies across the rows into the tile, some rows ahead: a strip.
    Across {
        f: AcrossFn,
        load: u32,
        strip: u32,
        dst: Ptr,
    },
    /// Brings the rows of the tile, which lie across memory, into it.
    Block {
        f: AcrossFn,
        load: u32,
        dst: Ptr,
    },
    Arange {
        place: Box<Place>,
        start: Scalar,
        step: Scalar,
        dst: Ptr,
        one: bool,
    },
    Inside {
        bounds: Box<[Bound]>,
        dst: Ptr,
        one: bool,
    },
    Gather {
        load: u32,
        position: Ptr,
        scalar: bool,
        stride: i64,
        extent: usize,
        dst: Ptr,
        one: bool,
    },
    /// One kernel over memory, whose results go past the caches; `along` are the arguments in lanes.
    Past {
        f: MapFn,
        args: [Ptr; 3],
        arity: u8,
        along: [bool; 3],
        store: u32,
    },
    Reduce {
        reduce: u32,
        src: Ptr,
    },
    /// The sum of products of two vectors along a row.
    Dot {
        f: DotFn,
        reduce: u32,
        a: Ptr,
        b: Ptr,
    },
    Scan {
        scan: u32,
        src: Ptr,
        dst: Ptr,
    },
    /// Writes what the kernels can't write in place.
    Store {
        store: u32,
        src: Ptr,
        scalar: bool,
    },
}

/// Memory that a program touches.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) buffer: usize,
    /// Bytes of one element.
    pub(crate) width: usize,
    pub(crate) place: Place,
    pub(crate) bounds: Vec<Bound>,
}

impl Access {
    /// Is it found without a division, and so are its conditions?
    pub(crate) fn is_affine(&self) -> bool {
        self.place.general.is_none() && self.bounds.iter().all(|bound| bound.place.general.is_none())
    }
}

/// A pointer that follows an access.
#[derive(Clone, Debug)]
pub(crate) struct Follow {
    pub(crate) ptr: Ptr,
    pub(crate) buffer: usize,
    pub(crate) width: usize,
    pub(crate) place: Place,
}

/// One pass over what is reduced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// Run for every tile (rows) or step (columns).
    pub(crate) body: Vec<Step>,
    /// The reductions that end with this phase.
    pub(crate) reduces: Vec<u32>,
    /// May the rest of a row be left out once all of them are settled?
    pub(crate) settles: bool,
    /// Run once when it is done.
    pub(crate) after: Vec<Step>,
}

/// A reduction and where its result goes.
#[derive(Clone)]
pub(crate) struct Reduction {
    pub(crate) fns: ReduceFns,
    pub(crate) dst: Ptr,
}

/// A lowered kernel.
#[derive(Clone)]
pub(crate) struct TileProgram {
    pub(crate) shape: LoopShape,
    /// Lanes of a tile.
    pub(crate) tile: usize,
    /// Lanes of a row, steps around them, loops around those; tiles of a row.
    pub(crate) lane_count: usize,
    pub(crate) step_count: usize,
    pub(crate) loop_count: usize,
    pub(crate) tiles_per_row: usize,
    /// Where the parts of a frame begin, and its size (see `tile`).
    pub(crate) frame_offsets: [usize; 8],
    /// Everything of a map; of a row or column, what comes before the first phase.
    pub(crate) head: Vec<Step>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) targets: Vec<Target>,
    /// Byte offset of each slot pointer in the frame's slot memory.
    pub(crate) slot_offsets: Vec<u32>,
    pub(crate) slot_bytes: usize,
    pub(crate) consts: Vec<u32>,
    pub(crate) loads: Vec<Access>,
    pub(crate) stores: Vec<Access>,
    pub(crate) outer: Vec<Follow>,
    pub(crate) inner: Vec<Follow>,
    pub(crate) reductions: Vec<Reduction>,
    pub(crate) scans: Vec<ScanFns>,
    /// How results go past the caches, if they do.
    pub(crate) stream: Option<CopyFn>,
    /// Something is read across the lanes, and its cache lines serve many turns. (Of a map, rows are walked inside, tiles outside.)
    pub(crate) across: bool,
    /// Strips of what is read across rows (see `tile`).
    pub(crate) strips: usize,
    /// Estimated time of one element in picoseconds, until it is measured.
    pub(crate) estimate_ps: u64,
}

impl Step {
    /// A kernel with one argument over all lanes.
    pub(crate) fn map_of_one(f: MapFn, dst: Ptr, src: Ptr) -> Step {
        Step::Map { f, dst, args: [src; 3], arity: 1, one: false }
    }

    /// The pointers that the step reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Ptr> + '_ {
        let (args, count): ([Ptr; 3], usize) = match self {
            Step::Map { args, arity, .. } | Step::Past { args, arity, .. } => (*args, usize::from(*arity)),
            Step::Gather { position, .. } => ([*position; 3], 1),
            Step::Reduce { src, .. } | Step::Scan { src, .. } | Step::Store { src, .. } => ([*src; 3], 1),
            Step::Dot { a, b, .. } => ([*a, *b, 0], 2),
            Step::Fill { .. }
            | Step::Across { .. }
            | Step::Block { .. }
            | Step::Arange { .. }
            | Step::Inside { .. } => ([0; 3], 0),
        };
        args.into_iter().take(count)
    }

    /// The pointer that the step writes.
    pub(crate) fn writes(&self) -> Option<Ptr> {
        match self {
            Step::Map { dst, .. }
            | Step::Fill { dst, .. }
            | Step::Across { dst, .. }
            | Step::Block { dst, .. }
            | Step::Arange { dst, .. }
            | Step::Inside { dst, .. }
            | Step::Gather { dst, .. }
            | Step::Scan { dst, .. } => Some(*dst),
            Step::Reduce { .. } | Step::Dot { .. } | Step::Store { .. } | Step::Past { .. } => None,
        }
    }
}
