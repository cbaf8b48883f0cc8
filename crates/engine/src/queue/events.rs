//! What happens in the queue, for whoever wants to know: events enter, each subscriber reads them at its own pace.
//!
//! A subscriber that is too slow loses events, which are counted; it never slows the work.

use super::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Something that happened.
///
/// ```
/// use breakeven::{Engine, Event, Job, Tensor};
/// let engine = Engine::new()?;
/// let events = engine.events();
/// let ticket = engine.submit(Job::batch(&[&Tensor::from_slice(&[1.0f32], [1])?.exp()?]))?;
/// let id = ticket.id();
/// ticket.wait()?;
/// assert!(matches!(events.next_timeout(std::time::Duration::from_secs(10)), Some(Event::Completed { job, .. }) if job == id));
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A job is done.
    Completed {
        /// Its number.
        job: u64,
        /// Where it ran.
        device: Arc<str>,
        /// From its submission to its answer; zero if nobody had subscribed when it was submitted.
        took: Duration,
    },
    /// A job was answered with an error: it failed, was cancelled, or its deadline has passed.
    Failed {
        /// Its number.
        job: u64,
        /// Why.
        why: String,
    },
    /// A device failed, and another one does the job.
    FellBack {
        /// The job's number.
        job: u64,
        /// The device that failed.
        device: Arc<str>,
        /// What went wrong there.
        why: String,
    },
    /// A device is gone.
    DeviceLost {
        /// The device.
        device: Arc<str>,
        /// What was seen.
        why: String,
    },
    /// A device that was gone is back.
    DeviceBack {
        /// The device.
        device: Arc<str>,
    },
    /// The queue fills up: told when it is three quarters full, and again only after it was half empty.
    Pressure {
        /// Jobs in the queue.
        queued: usize,
        /// How many it holds.
        capacity: usize,
    },
}

/// A subscription to [`Event`]s, from when it was made. Iterating waits for the next one until the queue has ended.
///
/// ```
/// let engine = breakeven::Engine::new()?;
/// let events = engine.events();
/// assert_eq!(events.try_next(), None);   // nothing has happened yet
/// assert_eq!(events.lost(), 0);
/// # Ok::<(), breakeven::Error>(())
/// ```
pub struct Events {
    events: Receiver<Event>,
    lost: Arc<AtomicU64>,
}

/// Events that wait for one subscriber.
const WAITING: usize = 4096;

impl Events {
    /// There is nothing to hear.
    pub(crate) fn none() -> Events {
        Events { events: crossbeam_channel::never(), lost: Arc::default() }
    }

    /// The next event, if there is one.
    pub fn try_next(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// The next event, if there is one within this time.
    pub fn next_timeout(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }

    /// How many events this subscriber was too slow for.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.events.recv().ok()
    }
}

/// Those who want to know.
#[derive(Default)]
pub(crate) struct Subscribers {
    any: AtomicBool,
    list: Mutex<Vec<(Sender<Event>, Arc<AtomicU64>)>>,
}

impl Subscribers {
    pub(crate) fn subscribe(&self) -> Events {
        let (sender, events) = bounded(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        lock(&self.list).push((sender, lost.clone()));
        self.any.store(true, Relaxed);
        Events { events, lost }
    }

    /// Does anybody want to know?
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Tells all, if there are any: the event is made only for them.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.any.load(Relaxed) {
            self.send(event());
        }
    }

    #[cold]
    fn send(&self, event: Event) {
        let mut list = lock(&self.list);
        list.retain(|(sender, lost)| match sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                lost.fetch_add(1, Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        });
        self.any.store(!list.is_empty(), Relaxed);
    }

    /// Nothing will happen any more: whoever waits stops waiting.
    pub(crate) fn end(&self) {
        lock(&self.list).clear();
        self.any.store(false, Relaxed);
    }
}
