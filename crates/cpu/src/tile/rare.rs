//! The steps that are not inner loops: one of them and the frame of a tile enter; elements move between memory and the
//! tile's slots (fill, gather, store), or are made from their place (ranges, bounds) or from what came before (scans).

use super::Frame;
use crate::fill::{self, Lanes, Positions};
use crate::kernels::map::MapFn;
use crate::program::{Access, Ptr, Step};
use crate::shape::Form;
use crate::stream::{PIECE, Piece};
use std::sync::atomic::Ordering;

/// As for the other methods: the frame's pointers are valid, and the buffers are the plan's.
impl Frame<'_> {
    pub(super) unsafe fn rare_step(&mut self, step: &Step) {
        let program = self.program;
        // SAFETY: see the impl.
        unsafe {
            match step {
                Step::Map { .. } | Step::Reduce { .. } | Step::Dot { .. } => unreachable!("handled by the caller"),
                Step::Fill { load, dst, one, over } => {
                    let access = &program.loads[*load as usize];
                    let (base, dst) = (self.run.buffers.base(access.buffer), self.ptr(*dst));
                    if !one && program.shape.lanes.len() == 1 && access.is_affine() {
                        fill::load_row(&self.point[..program.shape.count()], self.n, access, base, dst, *over);
                    } else {
                        self.with_lanes(*one, |lanes| fill::load(lanes, access, base, dst, *over));
                    }
                }
                Step::Across { f, load, strip, dst } => self.across(*f, &program.loads[*load as usize], *strip, *dst),
                Step::Block { f, load, dst } => self.block(*f, &program.loads[*load as usize], *dst),
                Step::Arange { place, start, step, dst, one } => {
                    let dst = self.ptr(*dst);
                    self.with_lanes(*one, |lanes| fill::arange(lanes, place, *start, *step, dst));
                }
                Step::Inside { bounds, dst, one } => {
                    let dst = self.ptr(*dst);
                    self.with_lanes(*one, |lanes| fill::bounds_hold(lanes, bounds, dst));
                }
                Step::Gather { load, position, scalar, stride, extent, dst, one } => {
                    let access = &program.loads[*load as usize];
                    let (base, dst) = (self.run.buffers.base(access.buffer), self.ptr(*dst));
                    let at = self.ptr(*position);
                    let positions = Positions { at, scalar: *scalar, stride: *stride, extent: *extent };
                    let wrong = self.with_lanes(*one, |lanes| fill::gather(lanes, access, base, &positions, dst));
                    if let Some(index) = wrong {
                        let packed = (*extent as i64) << 32 | i64::from(index as u32);
                        let _ = self.run.wrong.compare_exchange(i64::MAX, packed, Ordering::Relaxed, Ordering::Relaxed);
                    }
                }
                Step::Scan { scan, src, dst } => {
                    let fns = &program.scans[*scan as usize];
                    let (src, dst) = (self.ptr(*src), self.ptr(*dst));
                    if program.shape.form == Form::Columns {
                        fns.col(src, dst, self.n, self.carries.add(*scan as usize * program.tile));
                    } else {
                        fns.row(src, dst, self.n, &mut *self.carries.add(*scan as usize));
                    }
                }
                Step::Past { f, args, along, store, .. } => self.past(*f, *args, *along, *store),
                Step::Store { store, src, scalar } => {
                    let access = &program.stores[*store as usize];
                    let (base, src) = (self.run.buffers.base(access.buffer), self.ptr(*src));
                    let lies_in_lanes = !scalar && access.width == 4 && program.contiguous(&access.place);
                    if lies_in_lanes {
                        let at = access.place.at(&self.point[..program.shape.count()]) as usize;
                        let to = base.cast::<u32>().add(at);
                        match program.stream {
                            Some(copy) => copy(to, src, self.n),
                            // A product that is stored as it is lies there already.
                            None => std::ptr::copy(src.cast::<u8>(), to.cast::<u8>(), self.n * 4),
                        }
                    } else if *scalar && access.width == 4 && self.stores_one(access) {
                        let at = access.place.at(&self.point[..program.shape.count()]) as usize;
                        base.cast::<u32>().add(at).write_unaligned(src.read_unaligned());
                    } else {
                        let one = self.stores_one(access);
                        self.with_lanes(one, |lanes| fill::store(lanes, access, base, src, *scalar));
                    }
                }
            }
        }
    }

    /// Runs a kernel piece by piece, each of which goes to whole cache lines past the caches.
    unsafe fn past(&mut self, f: MapFn, args: [Ptr; 3], along: [bool; 3], store: u32) {
        let program = self.program;
        let (Some(copy), access) = (program.stream, &program.stores[store as usize]) else { return };
        let at = access.place.at(&self.point[..program.shape.count()]) as usize;
        // SAFETY: see the impl; pieces are within the tile's lanes.
        unsafe {
            let to = self.run.buffers.base(access.buffer).cast::<u32>().add(at);
            let args = args.map(|arg| self.ptr(arg).cast_const());
            let mut piece = Piece([0; PIECE]);
            let mut next = 0;
            while next < self.n {
                // After the first piece they begin with a line.
                let past_line = to.add(next) as usize % 64 / 4;
                let count = (PIECE - past_line).min(self.n - next);
                let [a, b, c] = [0, 1, 2].map(|k| args[k].wrapping_add(if along[k] { next } else { 0 }));
                f(piece.0.as_mut_ptr(), a, b, c, count);
                copy(to.add(next), piece.0.as_ptr(), count);
                next += count;
            }
        }
    }

    /// In rows, what does not depend on the lanes is stored once.
    fn stores_one(&self, access: &Access) -> bool {
        let first = self.program.shape.first_lane();
        self.program.shape.form == Form::Rows && access.place.coefficients[first..].iter().all(|&c| c == 0)
    }

    fn with_lanes<R>(&mut self, one: bool, work: impl FnOnce(&mut Lanes<'_>) -> R) -> R {
        let (count, shape) = (self.program.shape.count(), &self.program.shape);
        let saved = self.point;
        let (first, n) = if one { (self.first, 1) } else { (self.first, self.n) };
        let mut lanes = Lanes { point: &mut self.point[..count], extents: &shape.lanes, first, n };
        let result = work(&mut lanes);
        self.point = saved;
        result
    }
}
