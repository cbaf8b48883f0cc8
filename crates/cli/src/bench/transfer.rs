//! Transfers: adapters and sizes enter, what it took to move bytes there, back, and there and back leaves, with what
//! copying as many in the host's memory took in turns with it.
//!
//! The way is the one that batches use on the device: through memory that both sides see where there is such, staged
//! elsewhere. There and back is one after the other.

use std::hint::black_box;
use std::time::{Duration, Instant};

use breakeven::{Device, Direction, Transfer, Way};
use breakeven_report::Stats;
use breakeven_report::bench::Row;
use breakeven_report::words;

use super::groups::Case;
use super::job::Fault;
use super::measure::{Arm, Work};
use crate::memory;

/// Copies of the bytes that there are at once.
const COPIES: u64 = 8;
/// Transfers of so many bytes and less are taken several at a time, of which the mean counts.
const SMALL_BYTES: u64 = 1 << 20;
const SEVERAL: usize = 8;
/// A copy is repeated until it lasts this long.
const COPY_NS: u64 = 1_000_000;
/// Samples that are taken even if the time is up: fewer have no spread.
const LEAST: usize = 3;

/// What was measured of one adapter.
#[derive(Default)]
struct Side {
    up: Vec<u64>,
    down: Vec<u64>,
    both: Vec<u64>,
    fault: Option<Fault>,
}

/// Measures the cases of this group that are wanted.
pub fn measure(work: &mut Work<'_>, wanted: &[&'static Case]) {
    let Some(sizes) = wanted.first().map(|case| case.sizes(work.job.quick)) else { return };
    for (done, &bytes) in sizes.iter().enumerate() {
        if (work.stop)() {
            return;
        }
        if !memory::fits(bytes.saturating_mul(COPIES)) {
            let why = || "the memory of this machine is too small".to_owned();
            wanted.iter().for_each(|case| work.leave_out(case, bytes, None, why()));
            continue;
        }
        work.doing(&format!("transfers of {}", words::bytes(bytes)), done, sizes.len());
        let now = Instant::now();
        let left = work.until.saturating_duration_since(now);
        let arms: Vec<Arm> = work.arms.iter().filter(|arm| !arm.lost && arm.device != Device::Cpu).cloned().collect();
        let (copies, sides) = rounds(work, &arms, bytes, now + left / (sizes.len() - done) as u32);
        rows(work, wanted, bytes, &arms, copies, sides);
    }
}

/// Copies and transfers in turn.
fn rounds(work: &Work<'_>, arms: &[Arm], bytes: u64, until: Instant) -> (Vec<u64>, Vec<Side>) {
    let mut memory = Memory::new(bytes);
    let mut sides: Vec<Side> = arms.iter().map(|_| Side::default()).collect();
    let mut copies = Vec::new();
    for round in 0..work.job.samples {
        if (work.stop)() || (round >= LEAST && Instant::now() > until) {
            break;
        }
        copies.push(memory.copy());
        for (arm, side) in arms.iter().zip(&mut sides).filter(|(_, side)| side.fault.is_none()) {
            let several = if bytes <= SMALL_BYTES { SEVERAL } else { 1 };
            match work.engine.transfers(&arm.id, bytes as usize, several) {
                Ok(timed) => side.take(&timed),
                Err(error) => side.fault = Some(error.into()),
            }
        }
    }
    (copies, sides)
}

impl Side {
    fn take(&mut self, timed: &[Transfer]) {
        let mean = |direction: Direction| {
            let of = |way: Way| timed.iter().find(|t| t.direction == direction && t.way == way);
            let samples = &of(Way::Mapped).or_else(|| of(Way::Staged))?.samples_ns;
            Some((samples.iter().sum::<u64>() / samples.len().max(1) as u64).max(1))
        };
        if let (Some(up), Some(down)) = (mean(Direction::Upload), mean(Direction::Readback)) {
            self.up.push(up);
            self.down.push(down);
            self.both.push(up + down);
        }
    }
}

/// Host memory that is copied.
struct Memory {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Memory {
    fn new(bytes: u64) -> Memory {
        Memory { from: vec![7; bytes as usize], to: vec![1; bytes as usize] }
    }

    /// What one copy takes. One before it brings the bytes into the caches that hold them: transfers have that, too.
    fn copy(&mut self) -> u64 {
        self.to.copy_from_slice(&self.from);
        let (begun, least) = (Instant::now(), Duration::from_nanos(COPY_NS));
        let mut copies = 0;
        while copies == 0 || begun.elapsed() < least {
            black_box(&mut self.to[..]).copy_from_slice(black_box(&self.from[..]));
            copies += 1;
        }
        (begun.elapsed().as_nanos() as u64 / copies).max(1)
    }
}

/// Makes rows of what was measured.
fn rows(work: &mut Work<'_>, wanted: &[&'static Case], bytes: u64, arms: &[Arm], copies: Vec<u64>, sides: Vec<Side>) {
    let memcpy_ns = Stats::of(&copies).map(|stats| stats.median_ns);
    let case = |name: &str| wanted.iter().find(|case| case.name == name).copied();
    let row = |case: &Case, device: &str, samples: Vec<u64>, times: u64| Row {
        case: case.name.to_owned(),
        size: bytes,
        unit: case.unit.to_owned(),
        device: device.to_owned(),
        passes: vec![samples],
        bytes: Some(bytes * times),
        memcpy_ns: memcpy_ns.map(|ns| ns * times),
        ..Row::default()
    };
    if let Some(case) = case("memcpy").filter(|_| work.arms.iter().any(|arm| arm.device == Device::Cpu))
        && copies.len() >= LEAST
    {
        work.told_row(Row { memcpy_ns: None, ..row(case, "cpu", copies, 1) });
    }
    for (arm, side) in arms.iter().zip(sides) {
        for (name, samples, times) in [("up", side.up, 1), ("down", side.down, 1), ("both", side.both, 2)] {
            if let Some(case) = case(name).filter(|_| samples.len() >= LEAST) {
                work.told_row(row(case, &arm.id, samples, times));
            }
        }
        if let (Some(fault), Some(first)) = (side.fault, wanted.first()) {
            work.case_trouble(Some(&arm.id), first, bytes, fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_both_in_the_way_of_batches() {
        let timed = |direction, way, ns: u64| Transfer { direction, way, bytes: 4, samples_ns: vec![ns, ns + 2] };
        let mut side = Side::default();
        side.take(&[
            timed(Direction::Upload, Way::Pageable, 1),
            timed(Direction::Upload, Way::Staged, 100),
            timed(Direction::Readback, Way::Staged, 200),
        ]);
        side.take(&[
            timed(Direction::Upload, Way::Staged, 100),
            timed(Direction::Upload, Way::Mapped, 10),
            timed(Direction::Readback, Way::Mapped, 20),
        ]);
        assert_eq!((side.up, side.down, side.both), (vec![101, 11], vec![201, 21], vec![302, 32]));
    }

    #[test]
    fn a_copy_takes_time_and_arrives() {
        let mut memory = Memory::new(1 << 16);
        assert!(memory.copy() > 0);
        assert_eq!(memory.from, memory.to);
    }
}
