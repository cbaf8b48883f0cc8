//! The queue, for the engine's users: jobs enter, tickets leave; and memory that they manage themselves.

use super::Engine;
use crate::config::Device;
use crate::error::Result;
use crate::queue::{self, Events, Job, Memory, Patience, QueueStats, Ticket};
use std::time::Duration;

impl Engine {
    /// Hands a job to the queue, whose workers run it on the devices that share it (see
    /// [`QueueConfig`](crate::QueueConfig)). Waits while the queue is full.
    ///
    /// ```
    /// use breakeven::{Engine, Job, Tensor};
    /// let engine = Engine::new()?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
    /// let ticket = engine.submit(Job::batch(&[&(&x * 2.0)?]))?;
    /// assert_eq!(ticket.arrays()?[0].as_slice::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn submit(&self, job: Job) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::Endless)
    }

    /// As [`Engine::submit`], but a full queue refuses at once: [`QueueFull`](crate::Error::QueueFull) says when there should be room.
    pub fn try_submit(&self, job: Job) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::None)
    }

    /// As [`Engine::submit`], but a queue that stays full for this long refuses.
    pub fn submit_timeout(&self, job: Job, timeout: Duration) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::For(timeout))
    }

    /// What happens in the queue, from now on. Any number of subscribers; one that is too slow loses events, which are
    /// counted, and never slows the work. If the queue can't be started there is nothing to hear, and submitting tells why.
    pub fn events(&self) -> Events {
        self.queue.of(&self.shared).map_or_else(|_| Events::none(), |core| core.events())
    }

    /// How the queue fares.
    pub fn queue_stats(&self) -> QueueStats {
        self.queue.started().map_or_else(QueueStats::default, |core| core.stats())
    }

    /// Takes no more jobs, waits until all that were submitted are answered, and ends the queue's threads.
    pub fn close(&self) {
        if let Ok(core) = self.queue.of(&self.shared) {
            core.close();
        }
    }

    /// Takes no more jobs, answers all that are left [`Aborted`](crate::Error::Aborted), stops those that run, and ends the queue's
    /// threads. Dropping the last clone of an engine does this, too.
    pub fn abort(&self) {
        if let Ok(core) = self.queue.of(&self.shared) {
            core.abort();
        }
    }

    /// Memory on a device for a caller that manages it: see [`Command`](crate::Command).
    pub fn allocate(&self, device: Device, bytes: usize) -> Result<Memory> {
        let wanted = queue::one_device(device, "allocate")?;
        queue::allocate(&self.shared, wanted, bytes)
    }
}
