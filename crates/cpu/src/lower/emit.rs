//! Emits the steps of single values: an instruction of the body enters, the step that computes it and the place of its
//! result leave.
//!
//! What is contiguous in memory is used where it lies; everything else gets a slot of the tile, or a cell if it is the
//! same in all lanes.

use super::{Loc, Lowering};
use crate::ahead::LONG_BYTES;
use crate::kernels::across::across_at;
use crate::kernels::bytes::{logic_fn, narrow_at, widen_at};
use crate::kernels::compare::compare_fn;
use crate::kernels::map::{exp_sub_fns, map_fns, mul_add_fns, splat_at, sub_mul_fns};
use crate::kernels::scan::ScanFns;
use crate::peephole::Pair;
use crate::place::{Bound, Place};
use crate::program::{Access, Follow, Ptr, Step, Target};
use crate::shape::Form;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::Store;
use breakeven_ir::{Op, property};

/// Pointers, steps and stores.
impl Lowering<'_> {
    pub(super) fn ptr(&mut self, target: Target) -> Ptr {
        self.out.targets.push(target);
        self.out.targets.len() as Ptr - 1
    }

    /// Writes out the values of `phase` that were not written in place, along what is reduced or beside it.
    pub(super) fn store_values(&mut self, phase: usize, inner: bool, steps: &mut Vec<Step>) {
        for (number, store) in self.kernel.stores.iter().enumerate() {
            let v = store.value as usize;
            if self.store_is_inner(store) == inner
                && self.phase_of[v] == phase
                && self.in_place[v] != Some(number as u32)
            {
                let Loc { ptr, scalar } = self.loc(store.value);
                let access = &self.out.stores[number];
                if access.width == 1 && !scalar && self.out.contiguous(&access.place) {
                    let dst = self.follow(access.clone(), inner);
                    let copy = self.all_bytes.then(|| logic_fn(Op::ToBool, self.level)).flatten();
                    steps.push(Step::map_of_one(copy.unwrap_or_else(|| narrow_at(self.level)), dst, ptr));
                } else {
                    steps.push(Step::Store { store: number as u32, src: ptr, scalar });
                }
            }
        }
    }

    pub(super) fn loc(&self, v: Value) -> Loc {
        self.locs[v as usize].expect("arguments are emitted before their users")
    }

    /// The value as lanes: scalars are repeated into a slot.
    pub(super) fn vector(&mut self, v: Value, steps: &mut Vec<Step>) -> Ptr {
        let loc = self.loc(v);
        if !loc.scalar {
            return loc.ptr;
        }
        let dst = self.ptr(Target::Slot);
        steps.push(Step::map_of_one(splat_at(self.level), dst, loc.ptr));
        dst
    }

    /// Are these rows of memory, of arrays so long that they are asked for ahead?
    pub(super) fn is_long(&self, rows: &[Ptr]) -> bool {
        let bytes = self.out.points() * rows.len() as u64 * size_of::<u32>() as u64;
        let is_memory = |row: &Ptr| self.out.targets[*row as usize] == Target::Memory;
        self.out.shape.form == Form::Rows && bytes >= LONG_BYTES && rows.iter().all(is_memory)
    }

    /// A pointer that follows an access through memory.
    pub(super) fn follow(&mut self, access: Access, inner: bool) -> Ptr {
        let ptr = self.ptr(Target::Memory);
        let follow = Follow { ptr, buffer: access.buffer, width: access.width, place: access.place };
        if inner {
            self.out.inner.push(follow)
        } else {
            self.out.outer.push(follow)
        }
        ptr
    }

    /// Where the result of `v` goes: straight to memory if it is stored contiguously, else a slot or cell.
    fn destination(&mut self, v: usize, scalar: bool) -> Ptr {
        if scalar {
            return self.ptr(Target::Cell);
        }
        if self.out.stream.is_none() {
            let fits = |s: &Store| s.value as usize == v && self.store_is_inner(s) == self.is_inner(v);
            let place = self.kernel.stores.iter().position(fits);
            if let Some(number) = place {
                let store = self.out.stores[number].clone();
                if (store.width == 4 || self.all_bytes) && self.out.contiguous(&store.place) {
                    self.in_place[v] = Some(number as u32);
                    return self.follow(store, self.is_inner(v));
                }
            }
        }
        self.ptr(Target::Slot)
    }

    /// Lets a comparison that nothing but a contiguous store of bytes needs write those, if it is one.
    fn compared(&mut self, v: usize, op: Op, steps: &mut Vec<Step>) -> bool {
        let mut stores = self.kernel.stores.iter().enumerate().filter(|(_, store)| store.value as usize == v);
        let (Some((number, store)), None) = (stores.next(), stores.next()) else { return false };
        let is_needed = self.kernel.body.insts.iter().flat_map(Inst::args).any(|arg| arg as usize == v);
        let lies_in_bytes = self.out.contiguous(&self.out.stores[number].place);
        if is_needed || !lies_in_bytes || self.store_is_inner(store) != self.is_inner(v) {
            return false;
        }
        let ([a, b, _], _) = self.args(v);
        let (dtype, [x, y]) = (self.kernel.body.dtypes[a as usize], [a, b].map(|arg| self.loc(arg)));
        let Some(f) = compare_fn(op, dtype, [x.scalar, y.scalar], self.level) else { return false };
        let dst = self.follow(self.out.stores[number].clone(), self.is_inner(v));
        steps.push(Step::Map { f, dst, args: [x.ptr, y.ptr, x.ptr], arity: 2, one: false });
        self.in_place[v] = Some(number as u32);
        self.locs[v] = Some(Loc { ptr: dst, scalar: false });
        true
    }

    /// Do all lanes read the same element?
    fn uniform(&self, access: &Access) -> bool {
        let first = self.out.shape.first_lane();
        let fixed = |place: &Place| place.general.is_none() && place.coefficients[first..].iter().all(|&c| c == 0);
        fixed(&access.place) && access.bounds.iter().all(|b| fixed(&b.place))
    }

    /// Brings what the overlay `v` has at its bottom to `dst`, and lays one load after the other over it.
    fn lay(&mut self, v: usize, dst: Ptr, steps: &mut Vec<Step>) {
        let mut bottom = v;
        let mut loads = Vec::new();
        while let Some(overlay) = self.overlays[bottom] {
            loads.push(overlay.access);
            bottom = overlay.rest as usize;
        }
        // Where a load does not reach, it leaves zeros: so those need not be there before.
        let mut over = true;
        match self.kernel.body.insts[bottom] {
            Inst::Load { access } => {
                loads.push(access);
                over = self.covers_all(&loads);
            }
            Inst::Const(value) if value.bits() == 0 => over = false,
            _ => {
                let value = self.loc(bottom as Value).ptr;
                steps.push(Step::map_of_one(splat_at(self.level), dst, value));
            }
        }
        for load in loads.into_iter().rev() {
            steps.push(Step::Fill { load, dst, one: false, over });
            over = true;
        }
    }

    /// Is one of the loads there at every point? So it is with arrays that are joined along an axis: each has an interval.
    fn covers_all(&self, loads: &[u32]) -> bool {
        let mut intervals = Vec::with_capacity(loads.len());
        let mut along: Option<&[i64]> = None;
        for &load in loads {
            let [Bound { place, below }] = &self.out.loads[load as usize].bounds[..] else { return false };
            if place.general.is_some() || *along.get_or_insert(&place.coefficients) != place.coefficients {
                return false;
            }
            intervals.push((-place.offset, below - place.offset));
        }
        let shape = &self.out.shape;
        let extents = shape.loops.iter().chain(&shape.steps).chain(&shape.lanes);
        let last = along.unwrap_or(&[]).iter().zip(extents).try_fold(0, |last, (&coefficient, &extent)| {
            (coefficient >= 0).then_some(last + coefficient * (extent as i64 - 1))
        });
        intervals.sort_unstable();
        let covered = intervals.into_iter().fold(0, |to, (from, end)| if from <= to { end.max(to) } else { to });
        last.is_some_and(|last| covered > last)
    }

    pub(super) fn emit(&mut self, v: usize, steps: &mut Vec<Step>) {
        let inner = self.is_inner(v);
        let dtype = self.kernel.body.dtypes[v];
        let loc = match self.kernel.body.insts[v].clone() {
            Inst::Const(value) => {
                self.out.consts.push(value.bits());
                let ptr = self.ptr(Target::Const(self.out.consts.len() as u32 - 1));
                Loc { ptr, scalar: true }
            }
            Inst::Load { access } => {
                let load = self.out.loads[access as usize].clone();
                let scalar = self.is_scalar(v) || self.uniform(&load);
                if self.all_bytes {
                    Loc { ptr: self.follow(load, inner), scalar: false }
                } else if load.width == 4
                    && load.bounds.is_empty()
                    && load.place.general.is_none()
                    && (scalar || self.out.contiguous(&load.place))
                {
                    Loc { ptr: self.follow(load, inner), scalar }
                } else if self.out.across && !scalar && self.lies_across(&load) {
                    let dst = self.destination(v, false);
                    let strip = self.out.strips as u32;
                    self.out.strips += 1;
                    steps.push(Step::Across { f: across_at(self.level), load: access, strip, dst });
                    Loc { ptr: dst, scalar }
                } else if !scalar && self.is_block(&load) {
                    let dst = self.destination(v, false);
                    steps.push(Step::Block { f: across_at(self.level), load: access, dst });
                    Loc { ptr: dst, scalar }
                } else if load.width == 1 && load.bounds.is_empty() && !scalar && self.out.contiguous(&load.place) {
                    let (src, dst) = (self.follow(load, inner), self.ptr(Target::Slot));
                    steps.push(Step::map_of_one(widen_at(self.level), dst, src));
                    Loc { ptr: dst, scalar }
                } else {
                    let dst = if scalar { self.ptr(Target::Cell) } else { self.destination(v, false) };
                    steps.push(Step::Fill { load: access, dst, one: scalar, over: false });
                    Loc { ptr: dst, scalar }
                }
            }
            Inst::Arange { index, start, step } => {
                let scalar = self.is_scalar(v);
                let dst = self.destination(v, scalar);
                let place = Box::new(Place::new(&index, &self.out.shape.names, self.out.shape.count()));
                steps.push(Step::Arange { place, start, step, dst, one: scalar });
                Loc { ptr: dst, scalar }
            }
            Inst::Inside { conditions } => {
                let scalar = self.is_scalar(v);
                let dst = self.ptr(if scalar { Target::Cell } else { Target::Slot });
                let (names, count) = (&self.out.shape.names, self.out.shape.count());
                let bounds = conditions.iter().map(|c| Bound::new(c, names, count)).collect();
                steps.push(Step::Inside { bounds, dst, one: scalar });
                Loc { ptr: dst, scalar }
            }
            Inst::Gather { access, position, stride, extent } => {
                let load = self.out.loads[access as usize].clone();
                let at = self.loc(position);
                let scalar = at.scalar && (self.is_scalar(v) || self.uniform(&load));
                let dst = self.destination(v, scalar);
                steps.push(Step::Gather {
                    load: access,
                    position: at.ptr,
                    scalar: at.scalar,
                    stride,
                    extent,
                    dst,
                    one: scalar,
                });
                Loc { ptr: dst, scalar }
            }
            Inst::Map { .. } if self.overlays[v].is_some() => {
                let dst = self.destination(v, false);
                self.lay(v, dst, steps);
                Loc { ptr: dst, scalar: false }
            }
            Inst::Map { op, .. } if self.all_bytes => {
                let (args, arity) = self.args(v);
                let ptrs = std::array::from_fn(|at| self.loc(args[if at < arity { at } else { 0 }]).ptr);
                let dst = self.destination(v, false);
                let f = logic_fn(op, self.level).expect("this was asked for every op of the kernel");
                steps.push(Step::Map { f, dst, args: ptrs, arity: arity as u8, one: false });
                Loc { ptr: dst, scalar: false }
            }
            Inst::Map { op, signature, .. } => {
                if op.has(property::COMPARES) && self.compared(v, op, steps) {
                    return;
                }
                let (args, arity) = self.args(v);
                let mut locs = [Loc { ptr: 0, scalar: false }; 3];
                for at in 0..arity {
                    locs[at] = self.loc(args[at]);
                }
                // One lane if all arguments are: but what differs from step to step is computed where it is used.
                let one = locs[..arity].iter().all(|l| l.scalar);
                let dst = self.destination(v, one);
                let memory = |ptr: Ptr| self.out.targets[ptr as usize] == Target::Memory;
                let moves =
                    op.row().cost == 1 && memory(dst) && locs[..arity].iter().all(|l| l.scalar || memory(l.ptr));
                let level = if moves { self.moving } else { self.level };
                let fns = match self.merged[v].map(|merged| merged.pair) {
                    Some(Pair::ExpSub) => exp_sub_fns(level),
                    Some(Pair::MulAdd) => mul_add_fns(level),
                    Some(Pair::SubMul) => sub_mul_fns(level),
                    None => map_fns(op, signature, level),
                };
                let mut scalars = [false; 3];
                (0..arity).for_each(|at| scalars[at] = locs[at].scalar && !one);
                let f = match fns.version(scalars) {
                    Some(f) => f,
                    None => {
                        locs[0] = Loc { ptr: self.vector(args[0], steps), scalar: false };
                        scalars[0] = false;
                        fns.version(scalars).expect("a kernel exists for a first argument in lanes")
                    }
                };
                steps.push(Step::Map { f, dst, args: locs.map(|l| l.ptr), arity: arity as u8, one });
                Loc { ptr: dst, scalar: one }
            }
            Inst::Scan { op, arg } => {
                let src = self.vector(arg, steps);
                let dst = self.destination(v, false);
                let scan = self.out.scans.len() as u32;
                self.out.scans.push(ScanFns::new(op, dtype, self.level));
                steps.push(Step::Scan { scan, src, dst });
                Loc { ptr: dst, scalar: false }
            }
            Inst::Reduce { .. } => unreachable!("reductions are placed by their phase"),
        };
        self.locs[v] = Some(loc);
    }
}
