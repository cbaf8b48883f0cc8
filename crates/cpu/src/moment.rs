//! A clock that is read in a few nanoseconds: nothing enters, a [`Moment`] leaves, and a [`Timeline`] knows how many
//! nanoseconds after its beginning that was.
//!
//! It is the processor's own counter where that runs at one speed on all cores, and the system's clock elsewhere, which
//! takes two to three times as long to read. How fast the counter runs is measured against the system's clock.

use std::time::{Duration, Instant};

/// The speed of the counter is measured over at least this long: both clocks are read within 0.1 us, so that it is off by
/// less than one part in ten thousand, and by less the longer it was.
const MEASURED: Duration = Duration::from_millis(2);

/// A point in time.
///
/// ```
/// use breakeven_cpu::{Clocks, Moment, Timeline};
/// let clocks = Clocks::now();
/// let timeline = Timeline::begin(&clocks);
/// let (first, second) = (Moment::now(), Moment::now());
/// assert!(timeline.ns(first) <= timeline.ns(second));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// By the processor's counter.
    Ticks(u64),
    /// By the system's clock.
    Time(Instant),
}

impl Moment {
    /// Now.
    #[inline]
    pub fn now() -> Moment {
        match ticks() {
            Some(ticks) => Moment::Ticks(ticks),
            None => Moment::Time(Instant::now()),
        }
    }
}

/// One point in time by both clocks, from which the counter's speed is measured later.
///
/// ```
/// println!("{:?}", breakeven_cpu::Clocks::now());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    ticks: Option<u64>,
    time: Instant,
}

impl Clocks {
    /// Now.
    pub fn now() -> Clocks {
        Clocks { ticks: ticks(), time: Instant::now() }
    }
}

/// A beginning, and how far from it moments are.
///
/// ```
/// use breakeven_cpu::{Clocks, Moment, Timeline};
/// let timeline = Timeline::begin(&Clocks::now());
/// std::thread::sleep(std::time::Duration::from_millis(1));
/// assert!(timeline.ns(Moment::now()) >= 1_000_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    begun: Clocks,
    /// Nanoseconds of 2^32 ticks.
    scale: u64,
}

impl Timeline {
    /// Begins now. `earlier` is any point before; where it is less than two milliseconds ago, this waits until it is not.
    pub fn begin(earlier: &Clocks) -> Timeline {
        if earlier.ticks.is_some() {
            std::thread::sleep(MEASURED.saturating_sub(earlier.time.elapsed()));
        }
        let begun = Clocks::now();
        let scale = match (earlier.ticks, begun.ticks) {
            (Some(from), Some(to)) if to > from => {
                let ns = begun.time.duration_since(earlier.time).as_nanos() << 32;
                u64::try_from(ns / u128::from(to - from)).unwrap_or(u64::MAX)
            }
            _ => 1 << 32,
        };
        Timeline { begun, scale }
    }

    /// Nanoseconds from the beginning to a moment; 0 for those before it.
    #[inline]
    pub fn ns(&self, at: Moment) -> u64 {
        match at {
            Moment::Ticks(ticks) => {
                let passed = ticks.saturating_sub(self.begun.ticks.unwrap_or(ticks));
                ((u128::from(passed) * u128::from(self.scale)) >> 32) as u64
            }
            Moment::Time(time) => {
                u64::try_from(time.saturating_duration_since(self.begun.time).as_nanos()).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The processor's counter, where it can be relied on.
#[inline]
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::sync::OnceLock;
        /// A fact about the machine, asked for once: the question takes microseconds on virtual ones.
        static IS_STEADY: OnceLock<bool> = OnceLock::new();
        if *IS_STEADY.get_or_init(is_steady) {
            // SAFETY: every x86-64 processor has the instruction, and a system that forbids it has no steady counter.
            return Some(unsafe { std::arch::x86_64::_rdtsc() });
        }
    }
    None
}

/// Does the counter run at one speed, whatever the cores do, and does the system rely on it itself?
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const LEAVES: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let is_invariant = __cpuid(LEAVES).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0;
    is_invariant && is_trusted()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn is_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|name| matches!(name.trim(), "tsc" | "kvm-clock"))
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn is_trusted() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_tell_the_same_time() {
        let timeline = Timeline::begin(&Clocks::now());
        std::thread::sleep(Duration::from_millis(30));
        // The two are read one after the other: of some tries one is not interrupted.
        let difference = (0..20).map(|_| {
            let (moment, time) = (Moment::now(), Moment::Time(Instant::now()));
            timeline.ns(moment).abs_diff(timeline.ns(time))
        });
        let least = difference.min().unwrap();
        assert!(least < 30_000_000 / 1_000, "{least} ns");
    }

    #[test]
    fn moments_before_the_beginning_are_its_own() {
        let before = [Moment::now(), Moment::Time(Instant::now())];
        let timeline = Timeline::begin(&Clocks::now());
        assert_eq!(before.map(|moment| timeline.ns(moment)), [0, 0]);
    }

    #[test]
    fn a_speed_is_not_exact_but_does_not_overflow() {
        let time = Instant::now();
        let timeline = Timeline { begun: Clocks { ticks: Some(5), time }, scale: 1 << 31 };
        assert_eq!(timeline.ns(Moment::Ticks(25)), 10);
        assert_eq!(timeline.ns(Moment::Ticks(4)), 0);
        // Two ticks a nanosecond, for 290 years.
        assert_eq!(timeline.ns(Moment::Ticks(u64::MAX)), (u64::MAX - 5) / 2);
    }
}
