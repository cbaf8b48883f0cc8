//! The way in: a job enters, a ticket leaves, or why it is not taken.

use super::job::What;
use super::pool::TaskRef;
use super::ring::{Number, Refused};
use super::sync::lock;
use super::{Admit, Core, Job, Ticket, sampled, seat};
use crate::config::Device;
use crate::error::{Error, Result};
use crate::profile::{self, FrameKind, Phase};
use crate::router::DEVICES;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a submission may wait for room.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// As long as it takes.
    Endless,
    /// Not at all.
    None,
    /// So long.
    For(Duration),
}

/// How often whoever submits to a full queue looks before it sleeps: for about 50 us.
const ROOM_LOOKS: u32 = 192;

impl Core {
    /// Submits a job.
    pub(crate) fn submit(self: &Arc<Core>, job: Job, patience: Patience) -> Result<Ticket> {
        self.intake.coming();
        // The job stays where it is until it has its place: moving what was just written took an eighth of this function.
        let terms = &job.terms;
        let devices = self.check(&job.what, terms.device)?;
        if let (Some(deadline), Admit::Strict) = (terms.deadline, terms.admit) {
            self.admit(&job.what, devices, deadline)?;
        }
        if terms.deadline.is_some() {
            self.start_timer()?;
        }
        let number = match self.number() {
            Ok(number) => number,
            Err(refused) => self.reserve_later(refused, patience)?,
        };
        let id = number.id;
        let producer = terms.producer.unwrap_or_else(this_thread);
        let is_watched = self.events.any() || self.engine.profiling.is_on();
        let timed = self.config.metrics && sampled(id).is_some() || is_watched;
        let task = TaskRef::new(id, producer, job.what, terms, devices, timed);
        if let Some(deadline) = task.deadline() {
            self.timer.at(deadline, &task);
        }
        let (task, queued) = task.twice();
        let ticket = Ticket { task };
        if let Some(task) = self.intake.put(number, queued, devices) {
            // The place was free, so that this does not happen; if it did, nothing would be lost.
            let task = TaskRef::from(task);
            lock(&self.state).lanes.push(task.priority() as usize, task.producer, task.id, task);
        }
        if number.at_most * 4 >= self.config.capacity as u64 * 3 {
            self.feel_pressure(id);
        }
        Ok(ticket)
    }

    /// Room for one job: its number.
    #[inline]
    fn number(&self) -> Result<Number, Refused> {
        self.intake.number(|| self.taken.load(Ordering::Acquire))
    }

    /// The same as soon as there is room, unless there will be none.
    #[cold]
    fn reserve_later(&self, refused: Refused, patience: Patience) -> Result<Number> {
        if refused == Refused::Closed {
            return Err(Error::QueueClosed);
        }
        let reserve = || match self.number() {
            Ok(number) => Some(Ok(number)),
            Err(Refused::Closed) => Some(Err(Error::QueueClosed)),
            Err(Refused::Full) => None,
        };
        let until = match patience {
            Patience::Endless => None,
            Patience::None => return Err(self.full()),
            // A time that can't be told is never.
            Patience::For(time) => Instant::now().checked_add(time),
        };
        let _wait = profile::enter(FrameKind::DeviceWait, || Phase::Queue.name().into());
        // Quick jobs make room sooner than a thread that sleeps would wake.
        for look in 0..ROOM_LOOKS {
            if let Some(reserved) = reserve() {
                return reserved;
            }
            seat::linger(look);
        }
        self.room.wait(until, reserve).unwrap_or_else(|| Err(self.full()))
    }

    fn full(&self) -> Error {
        let retry_after = Duration::from_nanos(self.counters.service_ns().max(1_000));
        Error::QueueFull { capacity: self.config.capacity, retry_after }
    }

    /// Refuses what can't be done whoever does it, and tells where the others may run.
    fn check(self: &Arc<Core>, what: &What, device: Option<Device>) -> Result<u32> {
        let wish = |device: Option<Device>| match device {
            None => Ok(self.devices.load(Ordering::Relaxed)),
            Some(device) => self.bits(device).and_then(|bits| self.seat(bits).map(|()| bits)),
        };
        match what {
            What::Program { program, inputs } => {
                if !Arc::ptr_eq(&program.inner.engine, &self.engine) {
                    return Err(Error::OtherEngine);
                }
                program.inner.check_kinds(inputs)?;
                wish(device)
            }
            What::Batch(outputs) => {
                let is_input = |leaf: &&breakeven_ir::Tensor| leaf.as_input().is_some();
                let outputs: Vec<&breakeven_ir::Tensor> = outputs.iter().collect();
                let (_, leaves) = breakeven_ir::plan_key(&outputs);
                if let Some(name) = leaves.iter().find(|leaf| is_input(leaf)).and_then(|leaf| leaf.as_input()) {
                    return Err(breakeven_ir::Error::UnboundInput { name: name.name().into() }.into());
                }
                wish(device)
            }
            What::Command(order) => {
                let device = order.device()?;
                if device < DEVICES && self.seated.load(Ordering::Relaxed) >> device & 1 == 1 {
                    return Ok(1 << device);
                }
                let bits = self.bit(device)?;
                self.seat(bits)?;
                Ok(bits)
            }
        }
    }

    /// Refuses a job that would be late, by prediction.
    fn admit(&self, what: &What, devices: u32, deadline: Duration) -> Result<()> {
        let own = self.expected_of(what);
        let allowed = (0..DEVICES).filter(|device| devices >> device & 1 == 1).map(|device| own[device]);
        let own = allowed.filter(|ns| *ns > 0).min().unwrap_or(0);
        let ahead = self.counters.service_ns().saturating_mul(self.queued() as u64);
        let predicted = Duration::from_nanos(ahead.saturating_add(own));
        if predicted > deadline { Err(Error::CantFinish { predicted, deadline }) } else { Ok(()) }
    }

    /// The first job with a deadline starts the thread that keeps them.
    fn start_timer(self: &Arc<Core>) -> Result<()> {
        if self.timer_started.get().is_some() {
            return Ok(());
        }
        let mut threads = lock(&self.threads);
        if self.timer_started.get().is_none() {
            let core = self.clone();
            let builder = std::thread::Builder::new().name("breakeven timer".into());
            let thread = builder.spawn(move || core.timer.run(&core));
            threads.push(thread.map_err(|error| Error::Threads { why: error.to_string() })?);
            let _ = self.timer_started.set(());
        }
        Ok(())
    }
}

thread_local! {
    /// Nothing but its address counts, which is another one for each thread.
    static HERE: u8 = const { 0 };
}

/// Who submits, if nobody says: any number that stays the same for a thread.
fn this_thread() -> u64 {
    // What producers say themselves are small numbers, most often.
    HERE.with(|here| std::ptr::from_ref(here) as u64)
}
