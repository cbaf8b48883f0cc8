//! A layer for `tracing`: spans of applications that use it enter, and go to the same tree as [`span!`](crate::span) and
//! batches.

use super::model::FrameKind;
use super::names::Text;
use super::recording::{Handle, this_thread};
use super::thread;
use tracing_core::{Subscriber, span::Id};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer of `tracing-subscriber` that records spans while a profile is recorded: see
/// [`Recorder::layer`](super::Recorder::layer). Feature `tracing`.
///
/// A thread that enters a span joins the profile by itself, under its own name, and leaves it when the thread ends or the
/// profile does: applications that use `tracing` have threads that nobody names one by one. Threads that have joined before
/// keep their names. Each time that a span is entered counts; spans that are exited in another order than that of entering
/// are cut where they are. After the profile the layer does nothing.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
/// let recorder = breakeven::Engine::new()?.profile()?;
/// let subscriber = tracing_subscriber::registry().with(recorder.layer());
/// tracing::subscriber::with_default(subscriber, || {
///     let _span = tracing::info_span!("parsing").entered();
/// });
/// assert_eq!(recorder.finish().threads[0].frames[1].name, "parsing");
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Layer {
    handle: Handle,
}

/// Numbers of tracing's spans have this bit; those of guards never reach it.
const TRACING: u64 = 1 << 63;

impl Layer {
    pub(crate) fn new(handle: Handle) -> Layer {
        Layer { handle }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if self.handle.recording.is_ended() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        thread::join(&self.handle.recording, this_thread);
        thread::open(TRACING | id.into_u64(), FrameKind::Stage, Text::Fixed(span.metadata().name()));
    }

    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        if thread::is_joined() {
            thread::close_alone(TRACING | id.into_u64());
        }
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
