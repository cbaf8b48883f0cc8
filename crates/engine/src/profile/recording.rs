//! A profile on its way: threads join and leave, and when it is finished what all of them did leaves as a [`Profile`].

use super::budget::Budget;
use super::model::{BatchRecord, MachineRecord, PROFILE_VERSION, PlanRecord, Profile, ThreadRecord};
use super::plans::Plans;
use super::thread::{self, Joined, Track};
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::machine::cpu_name;
use breakeven_cpu::{Clocks, Moment, Timeline};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What the threads of a profile share.
pub(crate) struct Recording {
    /// The address of the engine whose batches are recorded: it is no other's while `kept` is here.
    pub(crate) engine: usize,
    kept: Weak<Shared>,
    timeline: Timeline,
    pub(crate) budget: Budget,
    tracks: Mutex<Vec<Arc<Track>>>,
    pub(crate) plans: Mutex<Plans>,
    is_ended: AtomicBool,
}

impl Recording {
    /// Times in nanoseconds since the beginning.
    #[inline]
    pub(crate) fn ns(&self, at: Moment) -> u64 {
        self.timeline.ns(at)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Relaxed)
    }

    /// A thread that takes part from now on, unless the profile has ended.
    pub(crate) fn enter(self: &Arc<Recording>, name: Cow<'static, str>) -> Option<Arc<Track>> {
        let mut tracks = lock(&self.tracks);
        // Under the lock, which the end takes, too: nobody comes after it.
        if self.is_ended() {
            return None;
        }
        let track = Arc::new(Track::new(self, name, Moment::now()));
        tracks.push(track.clone());
        Some(track)
    }

    /// Nothing is recorded any more. The threads, unless somebody else has ended it.
    fn end(&self, now: Moment) -> Vec<Arc<Track>> {
        let mut tracks = lock(&self.tracks);
        self.is_ended.store(true, Relaxed);
        // They and this know each other.
        let tracks = std::mem::take(&mut *tracks);
        tracks.iter().for_each(|track| track.end(now));
        tracks
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves what is inside whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An engine's place for the profile that is recorded, of which there is at most one.
pub(crate) struct Place {
    /// When the engine was made: the speed of the processor's counter is measured from there.
    clocks: Clocks,
    /// One more whenever a profile begins or ends: what the engine's own threads look at.
    version: AtomicU64,
    current: Mutex<Weak<Recording>>,
    is_on: AtomicBool,
}

impl Default for Place {
    fn default() -> Place {
        Place {
            clocks: Clocks::now(),
            version: AtomicU64::default(),
            current: Mutex::default(),
            is_on: AtomicBool::default(),
        }
    }
}

impl Place {
    /// Is one recorded?
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    fn current(&self) -> Option<Arc<Recording>> {
        lock(&self.current).upgrade().filter(|recording| !recording.is_ended())
    }

    /// A profile of this engine begins, and the calling thread joins it.
    pub(crate) fn begin(engine: &Arc<Shared>) -> Result<Recorder> {
        let place = &engine.profiling;
        let mut current = lock(&place.current);
        if current.upgrade().is_some_and(|recording| !recording.is_ended()) {
            return Err(Error::Profiled);
        }
        let recording = Arc::new(Recording {
            engine: Arc::as_ptr(engine) as usize,
            kept: Arc::downgrade(engine),
            timeline: Timeline::begin(&place.clocks),
            budget: Budget::default(),
            tracks: Mutex::default(),
            plans: Mutex::default(),
            is_ended: AtomicBool::new(false),
        });
        *current = Arc::downgrade(&recording);
        drop(current);
        place.is_on.store(true, Relaxed);
        thread::join(&recording, this_thread);
        place.version.fetch_add(1, Relaxed);
        Ok(Recorder { recording, engine: engine.clone(), title: None })
    }
}

/// The name of the calling thread.
pub(crate) fn this_thread() -> Cow<'static, str> {
    let thread = std::thread::current();
    thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned).into()
}

/// One of the engine's own threads, which takes part in every profile.
#[derive(Default)]
pub(crate) struct Attendance {
    version: u64,
    joined: Option<Joined>,
}

impl Attendance {
    /// Joins a profile that has begun, leaves one that has ended.
    #[inline]
    pub(crate) fn follow(&mut self, place: &Place) {
        if place.version.load(Relaxed) != self.version {
            self.look(place);
        }
    }

    #[cold]
    fn look(&mut self, place: &Place) {
        self.version = place.version.load(Relaxed);
        self.joined = None;
        self.joined = place.current().map(|recording| Handle { recording }.join(this_thread()));
    }
}

/// Records a profile: see [`Engine::profile`](crate::Engine::profile). Dropping it ends the recording.
///
/// ```
/// use breakeven::{Engine, Tensor, span};
/// let engine = Engine::new()?;
/// let recorder = engine.profile()?.title("an example");
/// {
///     let _stage = span!("squares");
///     engine.run(&[&Tensor::from_slice(&[1.0f32, 2.0], [2])?.square()?])?;
/// }
/// let profile = recorder.finish();
/// assert_eq!((profile.title.as_str(), profile.batches.len()), ("an example", 1));
/// let thread = &profile.threads[0];
/// assert_eq!(thread.frames.iter().map(|frame| frame.self_ns).sum::<u64>(), thread.end_ns - thread.begin_ns);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[must_use = "the profile ends when its recorder is dropped: `finish` gives it"]
pub struct Recorder {
    recording: Arc<Recording>,
    engine: Arc<Shared>,
    title: Option<String>,
}

impl Recorder {
    /// Says what is profiled; by default that is the name of the program.
    pub fn title(mut self, title: impl Into<String>) -> Recorder {
        self.title = Some(title.into());
        self
    }

    /// The calling thread takes part until the guard is dropped: see [`Handle::join`].
    pub fn join(&self, name: impl Into<Cow<'static, str>>) -> Joined {
        self.handle().join(name)
    }

    /// What other threads join with.
    pub fn handle(&self) -> Handle {
        Handle { recording: self.recording.clone() }
    }

    /// A layer for `tracing`: see [`Layer`](super::Layer).
    #[cfg(feature = "tracing")]
    pub fn layer(&self) -> super::Layer {
        super::Layer::new(self.handle())
    }

    /// Ends the recording: what was recorded. Spans that are open, on whichever thread, end now.
    pub fn finish(mut self) -> Profile {
        let now = Moment::now();
        let tracks = self.end(now);
        let engine = &self.engine;
        let plans = std::mem::take(&mut *lock(&self.recording.plans));
        let plan_records: Vec<PlanRecord> = plans.records(&engine.devices);
        let titles: Vec<String> = plan_records.iter().map(|plan| plan.title.clone()).collect();
        let (mut spans_not_kept, mut batches_not_kept) = (0, 0);
        let mut threads: Vec<ThreadRecord> = Vec::with_capacity(tracks.len());
        // Each with its thread and its number there.
        let mut batches: Vec<(BatchRecord, usize)> = Vec::new();
        for (thread, track) in tracks.iter().enumerate() {
            let mut tree = track.tree();
            spans_not_kept += tree.spans_not_kept;
            batches_not_kept += tree.batches_not_kept;
            threads.push(tree.take_record(&titles));
            for (number, entry) in std::mem::take(&mut tree.batches).into_iter().enumerate() {
                let plan = plans.plan(entry.plan);
                batches.push((entry.record(engine, thread as u32, plan), number));
            }
        }
        batches.sort_by_key(|(batch, _)| batch.begin_ns);
        number_batches(&mut threads, &batches);
        Profile {
            version: PROFILE_VERSION,
            title: self.title.take().unwrap_or_else(program_name),
            machine: machine(engine),
            wall_ns: self.recording.ns(now),
            threads,
            plans: plan_records,
            batches: batches.into_iter().map(|(batch, _)| batch).collect(),
            spans_not_kept,
            batches_not_kept,
            reruns: Vec::new(),
        }
    }

    fn end(&self, now: Moment) -> Vec<Arc<Track>> {
        let place = &self.engine.profiling;
        place.is_on.store(false, Relaxed);
        let tracks = self.recording.end(now);
        thread::leave(&self.recording);
        place.version.fetch_add(1, Relaxed);
        tracks
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.recording.is_ended() {
            self.end(Moment::now());
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({} threads)", lock(&self.recording.tracks).len())
    }
}

/// Spans know the batches of their thread; from now on those of the whole profile.
fn number_batches(threads: &mut [ThreadRecord], batches: &[(BatchRecord, usize)]) {
    let mut numbers: Vec<Vec<u32>> = threads.iter().map(|_| Vec::new()).collect();
    for (number, (batch, own)) in batches.iter().enumerate() {
        let numbers = &mut numbers[batch.thread as usize];
        numbers.resize(numbers.len().max(own + 1), 0);
        numbers[*own] = number as u32;
    }
    for (thread, numbers) in threads.iter_mut().zip(&numbers) {
        for span in &mut thread.spans {
            span.batch = span.batch.and_then(|own| numbers.get(own as usize).copied());
        }
    }
}

fn machine(engine: &Shared) -> MachineRecord {
    let open = engine.devices.all_opened();
    let devices = open.map(|slot| (slot.backend.id().to_owned(), slot.backend.name().to_owned())).collect();
    MachineRecord { cpu: cpu_name(), threads: engine.threads, devices }
}

fn program_name() -> String {
    let path = std::env::current_exe().ok();
    path.and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).unwrap_or_default()
}

/// What threads join a profile with: cheap to clone, and may go to any thread.
///
/// ```
/// use breakeven::{Engine, span};
/// let recorder = Engine::new()?.profile()?;
/// let handle = recorder.handle();
/// std::thread::scope(|scope| {
///     for number in 0..2 {
///         let handle = handle.clone();
///         scope.spawn(move || {
///             let _joined = handle.join(format!("reader {number}"));
///             let _stage = span!("parsing");
///         });
///     }
/// });
/// assert_eq!(recorder.finish().threads.len(), 3);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) recording: Arc<Recording>,
}

impl Handle {
    /// The calling thread takes part until the guard is dropped. One that does already goes on as it was, and so does one that
    /// comes after the end.
    pub fn join(&self, name: impl Into<Cow<'static, str>>) -> Joined {
        let is_new = thread::join(&self.recording, || name.into());
        Joined { recording: is_new.then(|| self.recording.clone()), on_thread: PhantomData }
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.recording.is_ended() { "Handle(ended)" } else { "Handle" })
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording(of {})", if self.kept.strong_count() > 0 { "an engine" } else { "an engine that is gone" })
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
