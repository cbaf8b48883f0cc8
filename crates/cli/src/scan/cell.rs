//! One op at one size: something that runs it on a device enters, what the runs say of each device leaves.
//!
//! Devices take turns, run by run, so that a slow moment of the machine hits all of them. What is warming up is dropped.

use std::time::{Duration, Instant};

use breakeven_report::Stats;

/// Runs that warm up, at most.
const WARM_UP: usize = 5;
/// Warm is whoever takes as long as the run before, give or take this.
const AGREE: f64 = 0.3;
/// Runs of a sample, at most: shorter ones than this makes up for are mostly the clock's.
const MOST_CALLS: u64 = 4096;
/// Whoever is done sooner has runs before each sample that are dropped: its caches and threads have just been another
/// device's.
const SHORT_NS: u64 = 1_000_000;
/// Samples that are taken even if the time is up: fewer have no spread.
const LEAST: usize = 3;

/// How a cell is measured.
pub struct Rules<'a> {
    /// Samples of each device.
    pub samples: usize,
    /// When to be content with fewer.
    pub until: Instant,
    /// Whether to stop at once.
    pub stop: &'a dyn Fn() -> bool,
    /// How carefully.
    pub care: Care,
}

/// How carefully a cell is measured, for its time.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// A sample lasts at least this long, so that the clock does not count: several runs, of which the mean is taken.
    pub sample_ns: u64,
    /// Warming up takes at least this long.
    pub warm_up: Duration,
    /// Before each sample of several devices, until the threads of the one before have stopped waiting for more.
    pub pause: Duration,
    /// Runs of whoever is done soon that are dropped before each sample, for so long and one at least.
    pub settle: Duration,
    /// What spreads widely is measured again, and what is steadier kept.
    pub again: bool,
}

impl Care {
    /// For a glance at many sizes.
    pub const SCAN: Care =
        Care { sample_ns: 10_000, warm_up: Duration::ZERO, pause: Duration::ZERO, settle: Duration::ZERO, again: true };
    /// For figures that are compared with those of other days. All samples count: whatever chooses among them makes the
    /// machine look steadier than it is.
    pub const BENCH: Care = Care {
        sample_ns: 300_000,
        warm_up: Duration::from_millis(20),
        // Owner threads of devices wait awake for 100 us.
        pause: Duration::from_micros(300),
        // The CPU's threads are woken once calls keep coming, and are there after up to 200 us.
        settle: Duration::from_micros(500),
        again: false,
    };
}

/// What came of it on one device.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Side {
    /// What the samples say; `None` if there are too few.
    pub stats: Option<Stats>,
    /// What a run takes by the wall clock, which is not what a simulated device tells.
    pub wall: Duration,
    /// What went wrong.
    pub fault: Option<String>,
    /// Runs of a sample; 0 for a device whose times come from a model.
    calls: u64,
    last_ns: u64,
    /// By the wall clock, samples and what was dropped for them.
    spent: Duration,
    /// In nanoseconds, in their order.
    pub samples: Vec<u64>,
}

/// Times something on several devices. `told` has one entry for each: whether its times come from a model, which says
/// the same each time. `run` runs it there once.
pub fn measure(told: &[bool], rules: &Rules<'_>, run: &mut dyn FnMut(usize) -> Result<u64, String>) -> Vec<Side> {
    let mut sides = vec![Side::default(); told.len()];
    for (device, side) in sides.iter_mut().enumerate() {
        let mut run = || run(device);
        let warm = if told[device] { side.once(&mut run) } else { side.warm_up(rules, &mut run) };
        if let (Some(ns), true) = (warm, told[device]) {
            side.samples = vec![ns];
        }
    }
    let live: Vec<usize> = (0..told.len()).filter(|device| !told[*device]).collect();
    rounds(&mut sides, &live, rules, run);
    for side in &mut sides {
        side.settle();
    }
    let is_wide = |side: &Side| side.stats.is_some_and(|stats| stats.wide);
    let wide: Vec<usize> = live.into_iter().filter(|device| is_wide(&sides[*device])).collect();
    if rules.care.again && !wide.is_empty() && Instant::now() < rules.until {
        wide.iter().for_each(|device| sides[*device].samples.clear());
        rounds(&mut sides, &wide, rules, run);
        wide.iter().for_each(|device| sides[*device].settle());
    }
    sides
}

/// Samples of these devices in turn. Who has spent its part of the time leaves the rest to the others.
fn rounds(sides: &mut [Side], devices: &[usize], rules: &Rules<'_>, run: &mut dyn FnMut(usize) -> Result<u64, String>) {
    let part = rules.until.saturating_duration_since(Instant::now()) / devices.len().max(1) as u32;
    sides.iter_mut().for_each(|side| side.spent = Duration::ZERO);
    for round in 0..rules.samples {
        for &device in devices {
            if (rules.stop)() {
                return;
            }
            if round >= LEAST && sides[device].spent > part {
                continue;
            }
            if devices.len() > 1 && !rules.care.pause.is_zero() {
                std::thread::sleep(rules.care.pause);
            }
            let begun = Instant::now();
            sides[device].sample(rules.care.settle, &mut || run(device));
            sides[device].spent += begun.elapsed();
        }
        if round + 1 >= LEAST && Instant::now() > rules.until {
            return;
        }
    }
}

impl Side {
    /// One run; nothing once something went wrong.
    fn once(&mut self, run: &mut dyn FnMut() -> Result<u64, String>) -> Option<u64> {
        if self.fault.is_some() {
            return None;
        }
        let begun = Instant::now();
        match run() {
            Ok(ns) => {
                self.wall = begun.elapsed();
                // Nothing takes no time; a clock that says so is too coarse.
                self.last_ns = ns.max(1);
                Some(self.last_ns)
            }
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        }
    }

    fn warm_up(&mut self, rules: &Rules<'_>, run: &mut dyn FnMut() -> Result<u64, String>) -> Option<u64> {
        let begun = Instant::now();
        let mut before = self.once(run)?;
        for runs in 2.. {
            // Of what takes long a few samples are worth more than a warm-up that is as long.
            if (rules.stop)() || begun + self.wall * LEAST as u32 > rules.until {
                break;
            }
            let now = self.once(run)?;
            let is_warm = runs >= WARM_UP || now.abs_diff(before) as f64 <= AGREE * before as f64;
            if is_warm && begun.elapsed() >= rules.care.warm_up {
                break;
            }
            before = now;
        }
        self.calls = (rules.care.sample_ns / self.last_ns).clamp(1, MOST_CALLS);
        Some(self.last_ns)
    }

    fn sample(&mut self, settle: Duration, run: &mut dyn FnMut() -> Result<u64, String>) {
        // A device that never got warm has nothing to say.
        if self.fault.is_some() || self.calls == 0 {
            return;
        }
        let begun = Instant::now();
        while self.last_ns < SHORT_NS && self.once(run).is_some() && begun.elapsed() < settle {}
        let total: Option<u64> = (0..self.calls).map(|_| self.once(run)).sum();
        self.samples.extend(total.map(|total| (total / self.calls).max(1)));
    }

    /// Makes something of the samples, unless what there is already is steadier.
    fn settle(&mut self) {
        let enough = self.samples.len() >= LEAST || self.calls == 0;
        let Some(new) = Stats::of(&self.samples).filter(|_| enough) else { return };
        let spread = |stats: &Stats| stats.mad_ns as f64 / stats.median_ns.max(1) as f64;
        if self.stats.is_none_or(|old| spread(&new) < spread(&old)) {
            self.stats = Some(new);
        }
    }
}

#[cfg(test)]
#[path = "cell_tests.rs"]
mod tests;
