//! Brings elements into lanes that can't be read in place: strided, guarded, gathered, or one byte wide.
//!
//! A tile's lanes are a row-major range over the lane variables. It is walked in runs along the last of them, in which
//! an affine index is a line and a condition holds on one interval: so the common cases are copies. Where the last one is
//! short, runs go along the one before it, and their lanes lie apart.

mod lines;

use crate::place::{Bound, Place};
use crate::program::Access;
use breakeven_ir::{DType, Scalar};
use lines::{Line, Run, general_bounds_hold, inside};
use std::ops::Range;

pub(crate) use lines::Lanes;

/// One element as lane bits.
///
/// # Safety
/// `base` points to a buffer of elements of `width` bytes that has element `index`.
unsafe fn element(base: *const u8, width: usize, index: i64) -> u32 {
    // SAFETY: the caller vouches for the element.
    unsafe {
        match width {
            1 => u32::from(base.add(index as usize).read()),
            _ => base.cast::<u32>().add(index as usize).read_unaligned(),
        }
    }
}

/// Loads `lanes` of `access` into `dst`; lanes whose conditions fail are 0, or stay as they are if it is laid `over` them.
///
/// # Safety
/// `base` points to the access' buffer, which has every element that the access names where its conditions hold (the
/// plan guarantees that, and `ir/check` checks it); `dst` holds as many lanes.
pub(crate) unsafe fn load(lanes: &mut Lanes<'_>, access: &Access, base: *const u8, dst: *mut u32, over: bool) {
    let width = access.width;
    let guarded = access.bounds.iter().any(|b| b.place.general.is_some());
    lanes.lines(|point, run| {
        let valid = inside(&access.bounds, point, &run);
        if valid.is_empty() && over {
            return;
        }
        match access.place.line(point, run.var) {
            Line::Affine { start, stride } if !guarded && run.step == 1 => {
                // SAFETY: the run's lanes are inside the tile, and elements exist where their conditions hold.
                unsafe { load_run(base, width, (start, stride), valid, dst.add(run.at), run.len, over) };
            }
            Line::Affine { start, stride } if !guarded => {
                if !over && valid.len() < run.len {
                    // SAFETY: `dst` holds the tile.
                    unsafe { run.set(dst, 0..run.len, |_| 0) };
                }
                // SAFETY: elements exist where their conditions hold.
                let value = |k: usize| unsafe { element(base, width, start + stride * k as i64) };
                // SAFETY: `dst` holds the tile.
                unsafe { run.set(dst, valid, value) };
            }
            _ => {
                let mut point = point.to_vec();
                let along = point.get(run.var).copied().unwrap_or(0);
                for k in 0..run.len {
                    if let Some(at) = point.get_mut(run.var) {
                        *at = along + k;
                    }
                    let holds = valid.contains(&k) && general_bounds_hold(&access.bounds, &point);
                    // SAFETY: this element exists if its conditions hold, and `dst` holds the tile.
                    unsafe {
                        if holds {
                            run.set(dst, k..k + 1, |_| element(base, width, access.place.at(&point)));
                        } else if !over {
                            run.set(dst, k..k + 1, |_| 0);
                        }
                    }
                }
            }
        }
    });
}

/// [`load`] where all lanes are one run along the last variable of `point` and nothing has to be divided: what rows that are moved
/// ask for again and again (joining two matrices of 1000 rows each takes 205 us without it).
///
/// # Safety
/// As for [`load`]; `dst` holds `n` lanes.
pub(crate) unsafe fn load_row(point: &[usize], n: usize, access: &Access, base: *const u8, dst: *mut u32, over: bool) {
    let var = point.len() - 1;
    let valid = inside(&access.bounds, point, &Run { at: 0, len: n, step: 1, var });
    if valid.is_empty() && over {
        return;
    }
    let line = (access.place.at(point), access.place.coefficients[var]);
    // SAFETY: passed on.
    unsafe { load_run(base, access.width, line, valid, dst, n, over) };
}

/// Loads the `valid` ones of `n` lanes from a line of elements, given by its start and stride.
///
/// # Safety
/// `base` points to a buffer that has the elements of the valid lanes, `dst` holds `n` lanes.
unsafe fn load_run(
    base: *const u8,
    width: usize,
    (start, stride): (i64, i64),
    valid: Range<usize>,
    dst: *mut u32,
    n: usize,
    over: bool,
) {
    // SAFETY: passed on.
    let out = unsafe { std::slice::from_raw_parts_mut(dst, n) };
    if !over {
        out[..valid.start].fill(0);
        out[valid.end..].fill(0);
    }
    let first = start + stride * valid.start as i64;
    // SAFETY: passed on.
    unsafe { load_line(base, width, first, stride, &mut out[valid]) };
}

/// # Safety
/// `base` points to a buffer that has the elements `first + stride * k` for every lane of `out`.
unsafe fn load_line(base: *const u8, width: usize, first: i64, stride: i64, out: &mut [u32]) {
    if out.is_empty() {
        return;
    }
    // SAFETY: the caller vouches for the elements.
    unsafe {
        match (width, stride) {
            (4, 1) => {
                let from = base.add(first as usize * 4);
                std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().cast::<u8>(), out.len() * 4);
            }
            (_, 0) => out.fill(element(base, width, first)),
            (4, -1) => {
                let last = base.add((first as usize + 1 - out.len()) * 4);
                let from = std::slice::from_raw_parts(last.cast::<[u8; 4]>(), out.len());
                out.iter_mut().zip(from.iter().rev()).for_each(|(lane, bytes)| *lane = u32::from_ne_bytes(*bytes));
            }
            (4, 2) => load_every::<2>(base.add(first as usize * 4), out),
            (4, 3) => load_every::<3>(base.add(first as usize * 4), out),
            (4, 4) => load_every::<4>(base.add(first as usize * 4), out),
            (4, _) => {
                let mut from = base.cast::<u32>().offset(first as isize);
                for lane in out {
                    *lane = from.read_unaligned();
                    from = from.wrapping_offset(stride as isize);
                }
            }
            (_, 1) => {
                let from = std::slice::from_raw_parts(base.add(first as usize), out.len());
                for (lane, &byte) in out.iter_mut().zip(from) {
                    *lane = u32::from(byte);
                }
            }
            _ => {
                for (k, lane) in out.iter_mut().enumerate() {
                    *lane = element(base, width, first + stride * k as i64);
                }
            }
        }
    }
}

/// The first of every `STRIDE` elements: in vectors, because the compiler knows how far apart they are.
///
/// # Safety
/// `from` points to `STRIDE` elements for every lane of `out` but the last, and to one for that.
unsafe fn load_every<const STRIDE: usize>(from: *const u8, out: &mut [u32]) {
    let Some((last, lanes)) = out.split_last_mut() else { return };
    // SAFETY: the caller vouches for the elements.
    unsafe {
        let groups = std::slice::from_raw_parts(from.cast::<[[u8; 4]; STRIDE]>(), lanes.len());
        lanes.iter_mut().zip(groups).for_each(|(lane, group)| *lane = u32::from_ne_bytes(group[0]));
        *last = from.cast::<u32>().add(lanes.len() * STRIDE).read_unaligned();
    }
}

/// 1 in the lanes where all bounds hold, else 0.
///
/// # Safety
/// `dst` holds as many lanes as `lanes` has.
pub(crate) unsafe fn bounds_hold(lanes: &mut Lanes<'_>, bounds: &[Bound], dst: *mut u32) {
    let guarded = bounds.iter().any(|b| b.place.general.is_some());
    lanes.lines(|point, run| {
        let valid = inside(bounds, point, &run);
        let (Some(&along), true) = (point.get(run.var), guarded) else {
            // SAFETY: `dst` holds the tile.
            unsafe {
                if run.step == 1 {
                    let out = std::slice::from_raw_parts_mut(dst.add(run.at), run.len);
                    out[..valid.start].fill(0);
                    out[valid.end..].fill(0);
                    out[valid].fill(1);
                } else {
                    run.set(dst, 0..run.len, |k| u32::from(valid.contains(&k)));
                }
            }
            return;
        };
        let mut point = point.to_vec();
        let value = |k: usize| {
            point[run.var] = along + k;
            u32::from(valid.contains(&k) && general_bounds_hold(bounds, &point))
        };
        // SAFETY: `dst` holds the tile.
        unsafe { run.set(dst, 0..run.len, value) };
    });
}

/// `start + step * place` in every lane.
///
/// # Safety
/// `dst` holds as many lanes as `lanes` has.
pub(crate) unsafe fn arange(lanes: &mut Lanes<'_>, place: &Place, start: Scalar, step: Scalar, dst: *mut u32) {
    let value = |index: i64| match start.dtype() {
        DType::F32 => (f32::from_bits(start.bits()) + f32::from_bits(step.bits()) * index as f32).to_bits(),
        _ => start.bits().wrapping_add(step.bits().wrapping_mul(index as u32)),
    };
    lanes.lines(|point, run| {
        match place.line(point, run.var) {
            // SAFETY: `dst` holds the tile.
            Line::Affine { start, stride } => unsafe { run.set(dst, 0..run.len, |k| value(start + stride * k as i64)) },
            Line::General(place) => {
                let mut point = point.to_vec();
                let along = point.get(run.var).copied().unwrap_or(0);
                let there = |k: usize| {
                    if let Some(at) = point.get_mut(run.var) {
                        *at = along + k;
                    }
                    value(place.at(&point))
                };
                // SAFETY: `dst` holds the tile.
                unsafe { run.set(dst, 0..run.len, there) };
            }
        }
    });
}

/// Where gathered elements lie along their axis.
pub(crate) struct Positions {
    /// An i32 for each lane, or one for all.
    pub(crate) at: *const u32,
    pub(crate) scalar: bool,
    pub(crate) stride: i64,
    pub(crate) extent: usize,
}

/// Gathers `lanes`: the element of `access` at each position. Returns the first position outside, if there is one;
/// lanes with such a position are 0.
///
/// # Safety
/// As for [`load`], for the access at every position from 0 to the extent; `positions.at` holds a lane for each.
pub(crate) unsafe fn gather(
    lanes: &mut Lanes<'_>,
    access: &Access,
    base: *const u8,
    positions: &Positions,
    dst: *mut u32,
) -> Option<i32> {
    let extent = positions.extent as i64;
    let mut wrong = None;
    let is_plain = !positions.scalar && access.bounds.is_empty() && access.width == 4;
    let mut resolve = |position: i32| {
        let from_start = if position < 0 { i64::from(position) + extent } else { i64::from(position) };
        if (0..extent).contains(&from_start) {
            Some(from_start * positions.stride)
        } else {
            wrong.get_or_insert(position);
            None
        }
    };
    lanes.runs(|point, run| {
        // SAFETY: the run's lanes are inside the tile.
        let out = unsafe { std::slice::from_raw_parts_mut(dst.add(run.at), run.len) };
        if let (true, Line::Affine { start, stride }) = (is_plain, access.place.line(point, run.var)) {
            let mut from = start;
            // SAFETY: there is a position for each lane of the tile.
            let at = unsafe { std::slice::from_raw_parts(positions.at.add(run.at).cast::<[u8; 4]>(), run.len) };
            let at = at.iter().map(|bytes| i32::from_ne_bytes(*bytes));
            // Looked at first, all are in vectors; one by one, they take longer than the elements.
            let most = u32::try_from(extent).unwrap_or(u32::MAX).min(1 << 31);
            if at.clone().fold(true, |inside, position| inside & ((position as u32) < most)) {
                // SAFETY: the elements at these positions exist.
                unsafe {
                    let line = base.cast::<[u8; 4]>().offset(start as isize);
                    let value = |at: i64| u32::from_ne_bytes(*line.offset(at as isize));
                    match (stride, positions.stride) {
                        (0, 1) => out.iter_mut().zip(at).for_each(|(lane, at)| *lane = value(i64::from(at))),
                        _ => out.iter_mut().zip(at).zip(0..).for_each(|((lane, at), k)| {
                            *lane = value(i64::from(at) * positions.stride + k * stride);
                        }),
                    }
                }
                return;
            }
            for (lane, position) in out.iter_mut().zip(at) {
                *lane = match resolve(position) {
                    // SAFETY: the element at this position exists.
                    Some(shift) => unsafe { element(base, 4, from + shift) },
                    None => 0,
                };
                from += stride;
            }
            return;
        }
        // SAFETY: there is a position for each lane of the tile, or one for all.
        let position = |k: usize| unsafe {
            positions.at.add(if positions.scalar { 0 } else { run.at + k }).read_unaligned() as i32
        };
        // A position for all lanes moves a whole line at once.
        if positions.scalar
            && access.bounds.is_empty()
            && let (Some(shift), Line::Affine { start, stride }) =
                (resolve(position(0)), access.place.line(point, run.var))
        {
            // SAFETY: the elements at this position exist.
            unsafe { load_line(base, access.width, start + shift, stride, out) };
            return;
        }
        let valid = inside(&access.bounds, point, &run);
        let mut point_at = point.to_vec();
        for (k, lane) in out.iter_mut().enumerate() {
            if let Some(last) = point_at.last_mut() {
                *last = point[point.len() - 1] + k;
            }
            if !valid.contains(&k) || !general_bounds_hold(&access.bounds, &point_at) {
                *lane = 0;
                continue;
            }
            *lane = match resolve(position(k)) {
                // SAFETY: the element at this position exists.
                Some(shift) => unsafe { element(base, access.width, access.place.at(&point_at) + shift) },
                None => 0,
            };
        }
    });
    wrong
}

/// Writes `lanes` from `src` to where `access` points.
///
/// # Safety
/// As for [`load`]; no other thread writes these elements.
pub(crate) unsafe fn store(lanes: &mut Lanes<'_>, access: &Access, base: *mut u8, src: *const u32, scalar: bool) {
    lanes.lines(|point, run| {
        // Stores are row-major over the loops, so they are affine.
        let stride = access.place.coefficients.get(run.var).copied().unwrap_or(0) as isize;
        let start = access.place.at(point) as usize;
        // SAFETY: the plan's stores stay inside their buffers, and the source holds a lane for each, or one.
        unsafe {
            let from = |k: usize| src.add(if scalar { 0 } else { run.at + k * run.step }).read_unaligned();
            match (access.width, stride) {
                (1, 1) if !scalar && run.step == 1 => {
                    let to = std::slice::from_raw_parts_mut(base.add(start), run.len);
                    let from = std::slice::from_raw_parts(src.add(run.at).cast::<[u8; 4]>(), run.len);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = u32::from_ne_bytes(*from) as u8);
                }
                (1, 1) if scalar => std::slice::from_raw_parts_mut(base.add(start), run.len).fill(from(0) as u8),
                (1, _) => {
                    let mut to = base.add(start);
                    for k in 0..run.len {
                        to.write(from(k) as u8);
                        to = to.wrapping_offset(stride);
                    }
                }
                (_, 1) if !scalar && run.step == 1 => {
                    let to = base.cast::<u32>().add(start);
                    // A product that is stored as it is lies there already.
                    std::ptr::copy(src.add(run.at).cast::<u8>(), to.cast::<u8>(), run.len * 4);
                }
                (_, 1) if scalar => {
                    let to = std::slice::from_raw_parts_mut(base.cast::<[u8; 4]>().add(start), run.len);
                    to.fill(from(0).to_ne_bytes());
                }
                _ => {
                    let mut to = base.cast::<u32>().add(start);
                    for k in 0..run.len {
                        to.write_unaligned(from(k));
                        to = to.wrapping_offset(stride);
                    }
                }
            }
        }
    });
}
