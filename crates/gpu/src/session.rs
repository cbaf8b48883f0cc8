//! An opened device through all its generations: who waits for it, who notices that it is lost, who rebuilds it.

use crate::adapters::{self, AdapterInfo, Kind};
use crate::buffers::Upload;
use crate::config::GpuConfig;
use crate::error::GpuError;
use crate::health::{Life, Quirks, lock};
use crate::job::Command;
use crate::lookout;
use crate::monitor::Monitor;
use crate::owner::{Handle, OnLoss, Owner, Setup};
use crate::selftest;
use crate::stage::{Limits, Variants};
use crate::store::{Found, Store};
use crate::tally::Tally;
use crate::tune::Tuner;
use breakeven_ir::backend::{RunError, Stop};
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, bounded, select};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A command that was sent and not answered yet.
pub(crate) struct Asked<T> {
    answer: Receiver<Result<T, RunError>>,
    begun: Instant,
    /// What was pending before it.
    pending_ns: u64,
}

impl<T> Asked<T> {
    /// Whoever waits gives up then.
    fn deadline(&self, timeout: Duration, predicted_ns: u64) -> Instant {
        self.begun + timeout + Duration::from_nanos(predicted_ns.max(self.pending_ns))
    }
}

/// Between attempts to rebuild a device there is at least this much, twice as much after each, up to a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the self-test may take, if batches may not take longer.
const COMPILING: Duration = Duration::from_secs(5);

/// How long the last user waits for the owner thread to end.
const FAREWELL: Duration = Duration::from_millis(500);

/// How often a caller that may be told to stop looks while it waits.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// Workgroups for each core of a processor that is the device: enough to even out a core that is busy elsewhere.
const GROUPS_A_CORE: u32 = 8;

/// An opened device.
pub(crate) struct Session {
    pub(crate) info: AdapterInfo,
    pub(crate) config: GpuConfig,
    pub(crate) tally: Arc<Tally>,
    pub(crate) quirks: Mutex<Quirks>,
    pub(crate) tuner: Arc<Tuner>,
    pub(crate) monitor: Arc<Monitor>,
    /// Where the system knows it.
    pub(crate) pci: String,
    adapter: wgpu::Adapter,
    current: Mutex<Arc<Handle>>,
    generation: AtomicU64,
    /// The pause before the next rebuilding: it doubles while the device is lost again before it is trusted.
    pause: Mutex<Duration>,
}

impl Session {
    pub(crate) fn open(
        adapter: wgpu::Adapter,
        info: AdapterInfo,
        config: &GpuConfig,
    ) -> Result<Arc<Session>, GpuError> {
        let home: Arc<OnceLock<Weak<Session>>> = Arc::default();
        let (tally, monitor) = (Arc::new(Tally::default()), Arc::new(Monitor::default()));
        let assumed = Quirks::assumed(info.kind);
        let kernels = selftest::kernels(&limits(&info, &assumed), &starting(&info));
        let store = Arc::new(Store::new(config.cache_dir.as_deref(), &info, kernels));
        let memory = store.read();
        let known = memory.quirks.as_ref().and_then(Found::quirks);
        let tuner = Arc::new(Tuner::new(&info, store.clone(), &memory, config.tune));
        let quirks = known.clone().unwrap_or(assumed);
        let setup = Setup {
            info: info.clone(),
            config: config.clone(),
            tally: tally.clone(),
            monitor: monitor.clone(),
            most_in_flight: quirks.in_flight,
            tuner: tuner.clone(),
            generation: 0,
        };
        let handle = Handle::open(adapter.clone(), setup, on_loss(home.clone())).map_err(|why| GpuError::Open {
            device: info.id.clone(),
            name: info.name.clone(),
            why,
        })?;
        let session = Arc::new(Session {
            info,
            config: config.clone(),
            tally,
            quirks: Mutex::new(quirks),
            tuner,
            monitor,
            pci: adapter.get_info().device_pci_bus_id,
            adapter,
            current: Mutex::new(Arc::new(handle)),
            generation: AtomicU64::new(0),
            pause: Mutex::new(Duration::ZERO),
        });
        let _ = home.set(Arc::downgrade(&session));
        if known.is_none() {
            session.self_test(&store).map_err(|error| GpuError::Open {
                device: session.info.id.clone(),
                name: session.info.name.clone(),
                why: format!("its self-test failed: {error}"),
            })?;
        }
        session.tuner.begin(session.limits());
        Ok(session)
    }

    /// Finds the driver's quirks and remembers them.
    fn self_test(self: &Arc<Session>, store: &Store) -> Result<(), RunError> {
        let begun = Instant::now();
        let handle = self.handle()?;
        let (limits, variants) = (self.limits(), starting(&self.info));
        let test = move |owner: &mut Owner| {
            let found = selftest::run(owner, &limits, &variants);
            if let Ok(quirks) = &found {
                owner.most_in_flight = quirks.in_flight as usize;
            }
            found
        };
        // On its first day with a driver it waits for the driver's compiler, whatever timeout is set for batches.
        let compiling = COMPILING.saturating_sub(self.config.sync_timeout).as_nanos() as u64;
        let work = |reply: Sender<_>| Command::Do(Box::new(move |owner| drop(reply.send(test(owner)))));
        let quirks = self.ask(&handle, || compiling, None, work)?;
        let ns = begun.elapsed().as_nanos() as u64;
        self.tally.tested(ns);
        store.update(|memory| memory.quirks = Some(Found::new(&quirks, ns)));
        *lock(&self.quirks) = quirks;
        Ok(())
    }

    /// The device object at the moment, which may be lost.
    pub(crate) fn current(&self) -> Arc<Handle> {
        lock(&self.current).clone()
    }

    /// The device object, if there is one.
    pub(crate) fn handle(&self) -> Result<Arc<Handle>, RunError> {
        let handle = self.current();
        if handle.life.is_lost() { Err(self.lost(&handle.life)) } else { Ok(handle) }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// What a plan may use here.
    pub(crate) fn limits(&self) -> Limits {
        limits(&self.info, &lock(&self.quirks))
    }

    pub(crate) fn lost(&self, life: &Life) -> RunError {
        RunError::Lost { device: self.info.id.clone(), why: life.why() }
    }

    /// Sends a command and waits for its answer: for the timeout and what the work is predicted to take, which may be
    /// learned meanwhile; or until it is told to stop. Then, too, the command is left behind, and no strike is counted:
    /// the device did nothing wrong.
    pub(crate) fn ask<T>(
        self: &Arc<Session>,
        handle: &Handle,
        predicted_ns: impl Fn() -> u64,
        stop: Option<&Stop>,
        command: impl FnOnce(Sender<Result<T, RunError>>) -> Command,
    ) -> Result<T, RunError> {
        let asked = self.send(handle, &predicted_ns, stop, command)?;
        self.answer(handle, &asked, predicted_ns, stop)
    }

    /// The first half of [`Session::ask`]: sends a command.
    pub(crate) fn send<T>(
        self: &Arc<Session>,
        handle: &Handle,
        predicted_ns: impl Fn() -> u64,
        stop: Option<&Stop>,
        command: impl FnOnce(Sender<Result<T, RunError>>) -> Command,
    ) -> Result<Asked<T>, RunError> {
        let begun = Instant::now();
        // What is pending comes first; slow is not hung.
        let (_, pending_ns) = handle.life.pending();
        let (reply, answer) = bounded(1);
        let asked = Asked { answer, begun, pending_ns };
        let deadline = || asked.deadline(self.config.sync_timeout, predicted_ns());
        let mut command = command(reply);
        loop {
            check(stop)?;
            let until = next_look(stop, deadline());
            match handle.commands.send_deadline(command, until) {
                Ok(()) => return Ok(asked),
                Err(SendTimeoutError::Timeout(back)) if until < deadline() => command = back,
                Err(_) => return Err(self.gave_up(handle, begun)),
            }
        }
    }

    /// The second half of [`Session::ask`]: waits for the answer.
    pub(crate) fn answer<T>(
        self: &Arc<Session>,
        handle: &Handle,
        asked: &Asked<T>,
        predicted_ns: impl Fn() -> u64,
        stop: Option<&Stop>,
    ) -> Result<T, RunError> {
        let Asked { answer, begun, .. } = asked;
        let deadline = || asked.deadline(self.config.sync_timeout, predicted_ns());
        if let Some(answer) = lookout::soon(answer, Instant::now(), predicted_ns()) {
            return answer;
        }
        loop {
            check(stop)?;
            let until = next_look(stop, deadline());
            select! {
                recv(answer) -> answer => return answer.unwrap_or_else(|_| Err(self.lost(&handle.life))),
                recv(handle.life.ended) -> _ => {
                    return answer.try_recv().unwrap_or_else(|_| Err(self.lost(&handle.life)));
                }
                default(until.saturating_duration_since(Instant::now())) => {
                    if deadline() <= until {
                        return Err(self.gave_up(handle, *begun));
                    }
                }
            }
        }
    }

    /// A caller waited in vain: a strike, and perhaps the last one.
    pub(crate) fn gave_up(self: &Arc<Session>, handle: &Handle, begun: Instant) -> RunError {
        if handle.life.is_lost() {
            return self.lost(&handle.life);
        }
        self.tally.timeouts.fetch_add(1, Relaxed);
        if handle.life.strike() {
            self.lose(&handle.life, "it did not answer three times in a row");
        }
        RunError::Timeout { device: self.info.id.clone(), waited_ms: begun.elapsed().as_millis() as u64 }
    }

    /// Mapped memory to fill; `true` if it had to be created.
    pub(crate) fn upload(
        self: &Arc<Session>,
        handle: &Handle,
        bytes: u64,
        stop: Option<&Stop>,
    ) -> Result<(Upload, bool), RunError> {
        match handle.pool.take_upload(bytes) {
            Some(upload) => Ok((upload, false)),
            None => Ok((self.ask(handle, || 0, stop, |reply| Command::Upload { bytes, reply })?, true)),
        }
    }

    /// Latches the loss of a device object and starts to rebuild it.
    pub(crate) fn lose(self: &Arc<Session>, life: &Arc<Life>, why: &str) {
        // The generation goes first: whoever learns of the loss finds old values stale.
        self.generation.fetch_max(life.generation + 1, Relaxed);
        if !life.lose(why) {
            return;
        }
        self.tally.losses.fetch_add(1, Relaxed);
        let trusted = life.completed.load(Relaxed) >= self.config.thresholds.trust_after;
        let pause = {
            let mut pause = lock(&self.pause);
            let now = if trusted { Duration::ZERO } else { *pause };
            *pause = (now * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            now
        };
        let (session, generation) = (Arc::downgrade(self), life.generation + 1);
        let rebuild = move || rebuild(&session, generation, pause);
        // Without a thread to be had the device stays lost, and others serve.
        let _ = std::thread::Builder::new().name("breakeven rebuild".into()).spawn(rebuild);
    }
}

/// Was it told to stop, if there is anyone to tell?
pub(crate) fn check(stop: Option<&Stop>) -> Result<(), RunError> {
    stop.map_or(Ok(()), Stop::check)
}

/// When someone who waits has to look up: at the deadline, or earlier if it may be told to stop.
pub(crate) fn next_look(stop: Option<&Stop>, deadline: Instant) -> Instant {
    if stop.is_some() { deadline.min(Instant::now() + LOOK) } else { deadline }
}

fn limits(info: &AdapterInfo, quirks: &Quirks) -> Limits {
    Limits {
        binding_bytes: info.limits.binding_bytes,
        bindings: info.limits.bindings,
        workgroup: info.limits.workgroup,
        workgroup_bytes: info.limits.workgroup_bytes,
        loop_cap: quirks.loop_cap,
        int64: info.limits.int64,
        groups: match info.kind {
            Kind::Software if info.limits.int64 => {
                Some(GROUPS_A_CORE * available_parallelism().map_or(1, NonZero::get) as u32)
            }
            _ => None,
        },
    }
}

/// What the device begins with.
fn starting(info: &AdapterInfo) -> Variants {
    Variants::starting(info.kind, info.limits.int64)
}

fn on_loss(home: Arc<OnceLock<Weak<Session>>>) -> OnLoss {
    Box::new(move |life, why| {
        if let Some(session) = home.get().and_then(Weak::upgrade) {
            session.lose(life, why);
        }
    })
}

fn rebuild(session: &Weak<Session>, generation: u64, mut pause: Duration) {
    loop {
        std::thread::sleep(pause);
        let Some(session) = session.upgrade() else { return };
        // A GL context has one lock for all its devices, and the lost one may hold it.
        let fresh = if session.info.backend == "gl" { adapters::find_again(&session.adapter) } else { None };
        let adapter = fresh.unwrap_or_else(|| session.adapter.clone());
        let home = Arc::new(OnceLock::from(Arc::downgrade(&session)));
        let setup = Setup {
            info: session.info.clone(),
            config: session.config.clone(),
            tally: session.tally.clone(),
            monitor: session.monitor.clone(),
            most_in_flight: lock(&session.quirks).in_flight,
            tuner: session.tuner.clone(),
            generation,
        };
        if let Ok(handle) = Handle::open(adapter, setup, on_loss(home)) {
            *lock(&session.current) = Arc::new(handle);
            return;
        }
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        lock(&self.current).stop(FAREWELL);
    }
}
