//! The recordings that a thread has joined: spans of whoever runs on it enter, and go to the thread's tree in each of them.
//!
//! A thread-local list, and no other state: two engines share nothing. Where a thread has joined none, a span costs one look at
//! a thread-local number. A thread's trees are its own but for the end of a profile: nobody else takes their locks before.

use super::model::FrameKind;
use super::names::Text;
use super::recording::Recording;
use super::tree::Tree;
use breakeven_cpu::Moment;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A thread in a recording.
pub(crate) struct Track {
    pub(crate) recording: Arc<Recording>,
    tree: Mutex<Tree>,
    /// One more than when a batch began that is added to the tree when it is done; 0 if there is none.
    pub(crate) batch_since: AtomicU64,
}

impl Track {
    pub(crate) fn new(recording: &Arc<Recording>, name: Cow<'static, str>, now: Moment) -> Track {
        let tree = Mutex::new(Tree::new(name, recording.ns(now)));
        Track { recording: recording.clone(), tree, batch_since: AtomicU64::new(0) }
    }

    /// The tree, while it grows.
    pub(crate) fn live(&self) -> Option<MutexGuard<'_, Tree>> {
        Some(self.tree()).filter(|tree| !tree.is_ended())
    }

    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        // A panic elsewhere leaves the tree whole.
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that is open ends now.
    pub(crate) fn end(&self, now: Moment) {
        let (mut tree, budget) = (self.tree(), &self.recording.budget);
        if let (Some(since_ns), false) = (self.batch_since.load(Relaxed).checked_sub(1), tree.is_ended()) {
            tree.open(u64::MAX, FrameKind::Batch, Text::Fixed("a batch that was not done"), since_ns, budget);
        }
        tree.end(self.recording.ns(now), budget);
    }
}

/// The tracks of a thread, which end with it.
struct Tracks(Vec<Arc<Track>>);

impl Drop for Tracks {
    fn drop(&mut self) {
        let now = Moment::now();
        self.0.iter().for_each(|track| track.end(now));
    }
}

thread_local! {
    /// How many there are: without a destructor, so that looking costs next to nothing.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    static TRACKS: RefCell<Tracks> = const { RefCell::new(Tracks(Vec::new())) };
}

/// Has this thread joined a recording?
#[inline]
pub(crate) fn is_joined() -> bool {
    COUNT.get() > 0
}

/// Changes the list; nothing if the thread is about to end.
fn change<R>(work: impl FnOnce(&mut Vec<Arc<Track>>) -> R) -> Option<R> {
    TRACKS
        .try_with(|tracks| {
            let mut tracks = tracks.try_borrow_mut().ok()?;
            let done = work(&mut tracks.0);
            COUNT.set(tracks.0.len());
            Some(done)
        })
        .ok()
        .flatten()
}

/// Gives every tree that grows to `visit`; those that have ended are forgotten.
fn each(mut visit: impl FnMut(&Track, &mut Tree)) {
    change(|tracks| {
        tracks.retain(|track| {
            let Some(mut tree) = track.live() else { return false };
            visit(track, &mut tree);
            true
        });
    });
}

/// Recordings that have ended cost nothing any more.
pub(crate) fn forget_ended() {
    each(|_, _| ());
}

/// Gives this thread's track of a recording to `work`.
pub(crate) fn with_track<R>(engine: usize, work: impl FnOnce(&Arc<Track>) -> R) -> Option<R> {
    TRACKS
        .try_with(|tracks| {
            let tracks = tracks.try_borrow().ok()?;
            tracks.0.iter().find(|track| track.recording.engine == engine).map(work)
        })
        .ok()
        .flatten()
}

/// This thread joins a recording. Is it new there?
pub(crate) fn join(recording: &Arc<Recording>, name: impl FnOnce() -> Cow<'static, str>) -> bool {
    let joined = change(|tracks| {
        if tracks.iter().any(|track| Arc::ptr_eq(&track.recording, recording)) {
            return false;
        }
        let Some(track) = recording.enter(name()) else { return false };
        tracks.push(track);
        true
    });
    joined.unwrap_or(false)
}

/// This thread leaves a recording.
pub(crate) fn leave(recording: &Arc<Recording>) {
    let now = Moment::now();
    change(|tracks| {
        tracks.retain(|track| {
            let is_it = Arc::ptr_eq(&track.recording, recording);
            if is_it {
                track.end(now);
            }
            !is_it
        });
    });
}

/// A number for a span of this thread.
pub(crate) fn next_serial() -> u64 {
    let serial = SERIAL.get() + 1;
    SERIAL.set(serial);
    serial
}

/// A span begins on this thread.
pub(crate) fn open(serial: u64, kind: FrameKind, name: Text<'_>) {
    let now = Moment::now();
    each(|track, tree| tree.open(serial, kind, name, track.recording.ns(now), &track.recording.budget));
}

/// A span ends on this thread.
pub(crate) fn close(serial: u64) {
    let now = Moment::now();
    each(|track, tree| tree.close(serial, track.recording.ns(now), &track.recording.budget));
}

/// A span ends on this thread, and those inside of it go on.
#[cfg(feature = "tracing")]
pub(crate) fn close_alone(serial: u64) {
    let now = Moment::now();
    each(|track, tree| tree.close_alone(serial, track.recording.ns(now), &track.recording.budget));
}

/// A thread's part in a recording, which it leaves when this is dropped: see [`Handle::join`](super::Handle::join).
///
/// ```
/// let recorder = breakeven::Engine::new()?.profile()?;
/// let handle = recorder.handle();
/// std::thread::spawn(move || {
///     let _joined = handle.join("reader");
///     let _span = breakeven::span!("parsing");
/// })
/// .join()
/// .expect("it does not panic");
/// assert_eq!(recorder.finish().threads[1].name, "reader");
/// # Ok::<(), breakeven::Error>(())
/// ```
#[must_use = "the thread leaves the profile when this is dropped"]
pub struct Joined {
    /// `None` if the thread was there before.
    pub(crate) recording: Option<Arc<Recording>>,
    /// It belongs to its thread.
    pub(crate) on_thread: PhantomData<*const ()>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(recording) = &self.recording {
            leave(recording);
        }
    }
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.recording.is_some() { "Joined" } else { "Joined(it was there before)" })
    }
}
