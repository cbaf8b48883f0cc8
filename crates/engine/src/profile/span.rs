//! Spans of the user's own stages: a name enters, a guard leaves, and time between the two belongs to the name.

use super::model::FrameKind;
use super::names::Text;
use super::thread;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A stage of the program, from here to the end of the block that holds the guard.
///
/// It goes to the profile that the thread has joined ([`Engine::profile`](crate::Engine::profile),
/// [`profile::Handle::join`](crate::profile::Handle::join)); where there is none it costs about a nanosecond, and the name is
/// not computed. `span!(wait "reading")` is a stage in which the thread waits for something else: a file, a socket, a lock.
///
/// ```
/// use breakeven::{Engine, span};
/// let recorder = Engine::new()?.profile()?;
/// for file in ["a", "b"] {
///     let _stage = span!(format!("reading {file}"));
///     let _disk = span!(wait "disk");
/// }
/// let profile = recorder.finish();
/// let names: Vec<&str> = profile.threads[0].frames.iter().map(|frame| frame.name.as_str()).collect();
/// assert_eq!(names[1..], ["reading a", "disk", "reading b", "disk"]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[macro_export]
macro_rules! span {
    (wait $name:expr) => {
        $crate::profile::enter($crate::profile::FrameKind::Wait, || ::std::convert::Into::into($name))
    };
    ($name:expr) => {
        $crate::profile::enter($crate::profile::FrameKind::Stage, || ::std::convert::Into::into($name))
    };
}

/// A span that has begun; it ends when this is dropped. Made by [`span!`](crate::span).
///
/// Spans of a thread lie inside of each other: one that ends takes those with it that began later.
///
/// ```
/// let stage: breakeven::profile::Entered = breakeven::span!("parsing");
/// drop(stage);
/// ```
#[must_use = "the span ends when this is dropped: `let _stage = span!(..)`"]
pub struct Entered {
    /// 0 if nobody records.
    serial: u64,
    /// It belongs to its thread.
    on_thread: PhantomData<*const ()>,
}

/// A span begins, if this thread has joined a profile. For [`span!`](crate::span), which is easier to write.
#[inline]
pub fn enter(kind: FrameKind, name: impl FnOnce() -> Cow<'static, str>) -> Entered {
    let serial = if thread::is_joined() { begin(kind, (&name()).into()) } else { 0 };
    Entered { serial, on_thread: PhantomData }
}

#[cold]
fn begin(kind: FrameKind, name: Text<'_>) -> u64 {
    let serial = thread::next_serial();
    thread::open(serial, kind, name);
    serial
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if self.serial != 0 {
            thread::close(self.serial);
        }
    }
}

impl std::fmt::Debug for Entered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.serial == 0 { "Entered(nobody records)" } else { "Entered" })
    }
}

/// A future that is a span whenever it is polled, on whichever thread that is: see [`in_span`].
///
/// ```
/// use breakeven::profile::{Traced, in_span};
/// let task: Traced<_> = in_span("answer", async { 42 });
/// # let _ = task;
/// ```
#[must_use = "futures do nothing unless they are polled"]
pub struct Traced<F> {
    name: Cow<'static, str>,
    // On the heap, because no unsafe code is allowed here; that is once for each task.
    future: Pin<Box<F>>,
}

/// A task as a stage of the program: each time that it is polled is a span on the thread that does so. A guard that is held
/// over an `.await` would count what other tasks do meanwhile.
///
/// ```
/// use breakeven::{Engine, profile::in_span};
/// use std::{future::Future, pin::pin, task::{Context, Waker}};
/// let recorder = Engine::new()?.profile()?;
/// let task = pin!(in_span("answer", async { 42 }));
/// assert!(task.poll(&mut Context::from_waker(Waker::noop())).is_ready());
/// assert_eq!(recorder.finish().threads[0].frames[1].name, "answer");
/// # Ok::<(), breakeven::Error>(())
/// ```
pub fn in_span<F: Future>(name: impl Into<Cow<'static, str>>, future: F) -> Traced<F> {
    Traced { name: name.into(), future: Box::pin(future) }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _span = enter(FrameKind::Stage, || self.name.clone());
        self.future.as_mut().poll(context)
    }
}

impl<F> std::fmt::Debug for Traced<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Traced({})", self.name)
    }
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
