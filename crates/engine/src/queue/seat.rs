//! The workers: each device has as many seats as batches are worth handing to it at once, and a thread on each.

use super::pool::TaskRef;
use super::stats::Tallies;
use super::sync::{Mutex, lock};
use super::{Core, Event};
use crate::config::Device;
use crate::devices::Slot;
use crate::error::{Error, Result};
use crate::profile::{self, Attendance, FrameKind};
use crate::route;
use crate::router::DEVICES;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a worker that has just worked looks out for more before it sleeps: a thread that sleeps takes 20 to 50 us to
/// wake, and whoever submits pays for waking it.
const AWAKE: Duration = Duration::from_micros(200);
/// How long, for each of the jobs that it found, a worker that has done all there was leaves the ring to its producer, who
/// would have to fetch places back from the worker for each job otherwise. After one job there is no such rest: its producer
/// may wait for the answer before it submits the next one, and a round trip took 440 ns with it and 235 without.
const SETTLE: Duration = Duration::from_nanos(250);
/// For so many jobs at most: more will be there at the next look. Where a store takes 200 ns to reach the other core, 1,000
/// commands at once took 113 us with 8, 125 with 4 and 170 with 1.
const SETTLE_MOST: u32 = 8;
/// How often a worker looks again at jobs that it left to another device, which may not be as quick as was expected.
const AGAIN: Duration = Duration::from_millis(1);
/// How often a worker looks whether its device is back.
const BACK: Duration = Duration::from_millis(20);
/// A device that failed again and again is tried after this time at the latest.
const LONGEST_AWAY: Duration = Duration::from_secs(1);

/// So many looks of somebody who waits awake follow one another closely.
const LOOKS: u32 = 64;

/// Between two looks of somebody who waits awake: at first only for a moment, and then others may have the core, because
/// it may be the one that is waited for who needs it.
pub(crate) fn linger(look: u32) {
    if look < LOOKS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// How long a worker leaves the ring alone that has done these jobs and has no others. Several producers take places from one
/// another anyhow, and one of them may need this core.
fn rest_after(jobs: &[TaskRef]) -> Duration {
    match jobs {
        [first, .., last] if first.producer == last.producer => SETTLE * (jobs.len() as u32).min(SETTLE_MOST),
        _ => Duration::ZERO,
    }
}

/// A worker's place at a device.
pub(crate) struct Seat {
    /// 0 is the CPU.
    pub(crate) device: usize,
    /// `None` is the CPU.
    pub(crate) slot: Option<Arc<Slot>>,
    /// `cpu`, `gpu:0`, ..
    pub(crate) name: Arc<str>,
    /// One seat of a device carries out its commands, so that they stay in order.
    pub(crate) is_first: bool,
    /// Does it take only what its device does best? A software adapter computes on the CPU's own cores.
    pub(crate) is_picky: bool,
    /// When it will be done with what it has, in nanoseconds since the queue began.
    pub(crate) free_at_ns: AtomicU64,
    /// What it works on.
    pub(crate) running: Mutex<Vec<TaskRef>>,
    /// Is that list filled in? A handful of quick jobs of the CPU is done before anybody could ask.
    pub(crate) is_listed: AtomicBool,
    /// Does its device have other workers?
    pub(crate) has_others: bool,
    /// What its worker counts; nobody else writes there.
    pub(crate) tallies: CachePadded<Tallies>,
    /// Failures of the device in a row.
    failures: AtomicU32,
    away_until_ns: AtomicU64,
    was_lost: AtomicBool,
}

impl Seat {
    /// May it take jobs that others could do as well?
    pub(crate) fn is_willing(&self, now_ns: u64) -> bool {
        self.away_until_ns.load(Ordering::Relaxed) <= now_ns && !self.was_lost.load(Ordering::Relaxed)
    }

    /// The device has done a batch.
    pub(crate) fn succeeded(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// The device has failed: it is left alone for a while, longer each time.
    pub(crate) fn failed(&self, now_ns: u64) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(10);
        let away = (Duration::from_millis(5) * (1 << failures)).min(LONGEST_AWAY);
        self.away_until_ns.store(now_ns + away.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Core {
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The devices that share the jobs, as bits.
    pub(super) fn wished(&self) -> Result<u32> {
        let config = &self.engine.config;
        let list = if self.config.devices.is_empty() { vec![config.device] } else { self.config.devices.clone() };
        let mut bits = 0;
        for device in list {
            match self.bits(device) {
                Ok(device) => bits |= device,
                Err(error) if config.strict => return Err(error),
                // The CPU stands in, as it does for a single batch.
                Err(_) => bits |= 1,
            }
        }
        Ok(bits)
    }

    /// The devices that a wish means, as bits.
    pub(super) fn bits(&self, device: Device) -> Result<u32> {
        match device {
            Device::Cpu => Ok(1),
            Device::Gpu(Some(number)) => self.bit(number + 1),
            Device::Gpu(None) => {
                let found = self.engine.devices.candidates(device)?;
                Ok(found.iter().filter(|(number, _)| number + 1 < DEVICES).fold(0, |bits, (n, _)| bits | 1 << (n + 1)))
            }
            Device::Auto => Ok(1 | self.known()),
            Device::All => {
                let count = self.engine.devices.count().min(DEVICES - 1);
                let opens = |number: &usize| self.engine.devices.slot(*number).is_ok();
                Ok((0..count).filter(opens).fold(1, |bits, number| bits | 1 << (number + 1)))
            }
        }
    }

    /// One device as a bit, if it is there.
    pub(super) fn bit(&self, device: usize) -> Result<u32> {
        if let Some(number) = device.checked_sub(1) {
            self.engine.devices.slot(number)?;
            if device >= DEVICES {
                let why = format!("the queue knows gpu:0 to gpu:{}", DEVICES - 2);
                return Err(Error::OpenDevice { device: route::single(device), why });
            }
        }
        Ok(1 << device)
    }

    /// The devices whose costs are known and that are open, as bits.
    fn known(&self) -> u32 {
        let engine = &self.engine;
        let known =
            |device: &usize| engine.router.costs(*device).is_some() && engine.devices.opened(device - 1).is_some();
        (1..DEVICES).filter(known).fold(0, |bits, device| bits | 1 << device)
    }

    /// Sees to it that these devices have workers.
    pub(super) fn seat(self: &Arc<Core>, devices: u32) -> Result<()> {
        let missing = devices & !self.seated.load(Ordering::Relaxed);
        if missing == 0 {
            return Ok(());
        }
        for device in (0..DEVICES).filter(|device| missing >> device & 1 == 1) {
            let slot = device.checked_sub(1).map(|number| self.engine.devices.slot(number)).transpose()?;
            let known = device.checked_sub(1).and_then(|number| self.engine.devices.known(number));
            let is_picky = known.is_some_and(|info| info.kind == "software") && self.is_auto();
            let seats = slot.as_ref().map_or(1, |slot| slot.backend.depth().max(1));
            for number in 0..seats {
                let seat = Arc::new(Seat {
                    device,
                    slot: slot.clone(),
                    name: route::single(device).into(),
                    is_first: number == 0,
                    is_picky,
                    free_at_ns: AtomicU64::new(0),
                    running: Mutex::new(Vec::new()),
                    is_listed: AtomicBool::new(false),
                    has_others: seats > 1,
                    tallies: CachePadded::default(),
                    failures: AtomicU32::new(0),
                    away_until_ns: AtomicU64::new(0),
                    was_lost: AtomicBool::new(false),
                });
                self.start_worker(seat, number)?;
            }
            self.seated.fetch_or(1 << device, Ordering::Relaxed);
        }
        Ok(())
    }

    fn start_worker(self: &Arc<Core>, seat: Arc<Seat>, number: usize) -> Result<()> {
        let mut threads = lock(&self.threads);
        let mut state = lock(&self.state);
        // Two who saw the same device missing: the second one finds it there.
        if state.seats.iter().filter(|other| other.device == seat.device).count() > number {
            return Ok(());
        }
        let (core, own) = (self.clone(), seat.clone());
        let builder = std::thread::Builder::new().name(format!("breakeven queue {}", seat.name));
        let thread = builder.spawn(move || core.live(&own)).map_err(|e| Error::Threads { why: e.to_string() })?;
        state.seats.push(seat);
        threads.push(thread);
        Ok(())
    }

    /// How many workers share the jobs that say nothing about devices.
    pub(crate) fn seats(&self) -> usize {
        let devices = self.devices.load(Ordering::Relaxed);
        lock(&self.state).seats.iter().filter(|seat| devices >> seat.device & 1 == 1).count()
    }

    fn is_auto(&self) -> bool {
        match self.config.devices[..] {
            [] => self.engine.config.device == Device::Auto,
            ref devices => devices.contains(&Device::Auto),
        }
    }

    /// A worker's life.
    fn live(self: &Arc<Core>, seat: &Arc<Seat>) {
        let mut last_work = Instant::now();
        let mut looks = 0;
        // Its memory is used again.
        let mut jobs = Vec::new();
        let mut attendance = Attendance::default();
        loop {
            attendance.follow(&self.engine.profiling);
            if seat.device == 0 && self.is_auto() && self.engine.router.is_open() {
                self.extend();
            }
            // Before looking: whatever comes after is a reason to look again.
            let seen = self.changes.load(Ordering::Acquire);
            let is_all = self.next(seat, &mut jobs);
            if !jobs.is_empty() {
                let settle = rest_after(&jobs);
                last_work = self.serve(seat, &mut jobs);
                jobs.clear();
                looks = 0;
                while is_all && !settle.is_zero() && last_work.elapsed() < settle {
                    std::hint::spin_loop();
                }
            } else if self.ended.load(Ordering::SeqCst) {
                return;
            } else if !self.watch_out(seen, last_work) {
                if self.intake.is_empty() {
                    self.rest(seat, seen);
                } else {
                    // One has its number and is on its way: whoever brings it may need this core.
                    linger(looks);
                    looks += 1;
                }
            }
        }
    }

    /// Devices that have become known share the jobs from now on.
    fn extend(self: &Arc<Core>) {
        if self.extended.load(Ordering::Relaxed) {
            return;
        }
        let known = self.known();
        if known != 0 && self.seat(known).is_ok() {
            self.devices.fetch_or(known, Ordering::Relaxed);
            self.extended.store(true, Ordering::Relaxed);
        }
    }

    /// There is a reason to look again.
    pub(crate) fn wake(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.intake.ring(u32::MAX);
    }

    /// Waits awake for something to do, for a moment. Is there something?
    fn watch_out(&self, seen: u64, last_work: Instant) -> bool {
        // One of them stays awake; the others would only take its core.
        if self.watch.swap(true, Ordering::Relaxed) {
            return false;
        }
        let _idle = profile::enter(FrameKind::Idle, || "waiting for jobs".into());
        // Whoever looks takes everything out of the ring: what is in it is new.
        let changed = || {
            self.intake.has_next() || self.changes.load(Ordering::Acquire) != seen || self.ended.load(Ordering::SeqCst)
        };
        let mut found = changed();
        for look in 0..LOOKS {
            if found {
                break;
            }
            linger(look);
            found = changed();
        }
        while !found && last_work.elapsed() < AWAKE {
            std::thread::yield_now();
            found = changed();
        }
        self.watch.store(false, Ordering::Relaxed);
        found
    }

    /// Sleeps until there is something to do.
    fn rest(&self, seat: &Seat, seen: u64) {
        let _idle = profile::enter(FrameKind::Idle, || "waiting for jobs".into());
        let changed = || {
            let is_new = !self.intake.is_empty() || self.changes.load(Ordering::Acquire) != seen;
            (is_new || self.ended.load(Ordering::SeqCst)).then_some(())
        };
        let until = if self.look_at_device(seat) {
            Some(BACK)
        } else if self.queued() > 0 {
            Some(AGAIN)
        } else {
            None
        };
        self.intake.sleep(seat.device, until.map(|time| Instant::now() + time), changed);
    }

    /// Tells when the device is gone or back. Is it gone?
    pub(super) fn look_at_device(&self, seat: &Seat) -> bool {
        let Some(slot) = &seat.slot else { return false };
        let is_lost = !slot.is_usable();
        if is_lost != seat.was_lost.swap(is_lost, Ordering::Relaxed) && seat.is_first {
            let device = seat.name.clone();
            self.events.tell(|| match is_lost {
                true => Event::DeviceLost { device, why: slot.health().reason },
                false => Event::DeviceBack { device },
            });
        }
        is_lost
    }
}
