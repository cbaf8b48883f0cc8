//! When a job was answered, and as which one: a ticket enters, and whoever answers it leaves its mark.
//!
//! The mark is made by the thread that answers, in the ticket's waker: nobody has to wait awake for thousands of tickets.

use breakeven::{Answer, Result, Ticket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Counts answers in the order in which they come.
#[derive(Clone, Default)]
pub struct Finish {
    count: Arc<AtomicU64>,
}

/// A ticket that is watched.
pub struct Watched {
    ticket: Ticket,
    mark: Arc<Mark>,
}

struct Mark {
    finish: Finish,
    wakes: AtomicU64,
    seen: OnceLock<(u64, Instant)>,
}

impl Mark {
    fn put(&self) {
        let now = Instant::now();
        self.seen.get_or_init(|| (self.finish.count.fetch_add(1, SeqCst), now));
    }
}

impl Wake for Mark {
    fn wake(self: Arc<Mark>) {
        self.wakes.fetch_add(1, SeqCst);
        self.put();
    }
}

impl Finish {
    /// Watches a ticket from now on.
    pub fn watch(&self, mut ticket: Ticket) -> Watched {
        let mark = Arc::new(Mark { finish: self.clone(), wakes: AtomicU64::new(0), seen: OnceLock::new() });
        let waker = Waker::from(mark.clone());
        if Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_ready() {
            mark.put();
        }
        Watched { ticket, mark }
    }

    /// How many of those that are watched were answered.
    pub fn answered(&self) -> u64 {
        self.count.load(SeqCst)
    }
}

impl Watched {
    /// The ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Waits for the answer: as which one it came, when, and what it is.
    ///
    /// # Panics
    /// If there is none within a minute, or whoever waits was woken twice.
    pub fn wait(mut self) -> (u64, Instant, Result<Answer>) {
        let answer = self.ticket.wait_timeout(Duration::from_secs(60));
        assert!(answer.is_some(), "{:?} was not answered within a minute", self.ticket);
        // The answer is there a moment before the waker is called.
        let begun = Instant::now();
        while self.mark.seen.get().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}: nobody was woken", self.ticket);
            std::thread::yield_now();
        }
        let Some((number, at)) = self.mark.seen.get().copied() else { unreachable!("it was just there") };
        assert!(self.mark.wakes.load(SeqCst) <= 1, "woken twice");
        let Poll::Ready(answer) = Pin::new(&mut self.ticket).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("an answer that is there does not go away")
        };
        (number, at, answer)
    }
}
