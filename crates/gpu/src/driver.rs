//! The open device as the owner thread holds it: wgpu's objects, what they reported, and how blocks are made.
//!
//! wgpu reports errors to a handler on the thread that made the call. Since all calls come from one thread, whoever
//! made a call finds its error here right after it, and no scope has to be pushed for each.

use crate::adapters::{AdapterInfo, Kind};
use crate::buffers::{Block, Pool, Role, Upload, class};
use crate::follower::Followers;
use crate::groups::Groups;
use crate::health::lock;
use crate::monitor;
use crate::tally::Tally;
use breakeven_ir::backend::RunError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What wgpu reported since it was last asked.
#[derive(Default)]
pub(crate) struct Reports {
    any: AtomicBool,
    error: Mutex<Option<wgpu::Error>>,
    lost: Mutex<Option<String>>,
}

impl Reports {
    fn take(&self) -> Option<wgpu::Error> {
        if !self.any.swap(false, Relaxed) {
            return None;
        }
        lock(&self.error).take()
    }
}

/// The open device.
pub(crate) struct Driver {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: AdapterInfo,
    pub(crate) pool: Arc<Pool>,
    pub(crate) tally: Arc<Tally>,
    /// Do shaders read and write what the host maps?
    pub(crate) unified: bool,
    /// What was created for the current batch.
    pub(crate) created: u32,
    pub(crate) groups: Groups,
    /// The threads of a software driver.
    pub(crate) followers: Followers,
    reports: Arc<Reports>,
}

impl Driver {
    pub(crate) fn open(
        adapter: &wgpu::Adapter,
        info: &AdapterInfo,
        pool: &Arc<Pool>,
        tally: &Arc<Tally>,
    ) -> Result<Driver, String> {
        use wgpu::Features as F;
        let mappable = if info.kind.is_unified() { F::MAPPABLE_PRIMARY_BUFFERS } else { F::empty() };
        let wanted = F::TIMESTAMP_QUERY | F::TIMESTAMP_QUERY_INSIDE_PASSES | F::PIPELINE_CACHE | F::SHADER_INT64;
        let features = adapter.features() & (mappable | wanted);
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: features,
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let open = || pollster::block_on(adapter.request_device(&descriptor));
        let (opened, followers) = match (info.kind, &*info.backend) {
            (Kind::Software, "vulkan") => Followers::of(open),
            (Kind::Software, "gl") => (open(), Followers::of_gl()),
            // Whoever has a GPU has hardly any threads.
            _ => (open(), Followers::default()),
        };
        let (device, queue) = opened.map_err(|error| error.to_string())?;
        let reports = Arc::new(Reports::default());
        let handler = reports.clone();
        device.on_uncaptured_error(Arc::new(move |error| {
            // The first one is the cause, those that follow from it say less.
            lock(&handler.error).get_or_insert(error);
            handler.any.store(true, Relaxed);
        }));
        let watcher = reports.clone();
        device.set_device_lost_callback(move |reason, message| {
            *lock(&watcher.lost) = Some(format!("{reason:?}: {message}").trim_end_matches([':', ' ']).to_lowercase());
        });
        let unified = features.contains(F::MAPPABLE_PRIMARY_BUFFERS);
        let (info, pool, tally) = (info.clone(), pool.clone(), tally.clone());
        let (created, groups) = (0, Groups::default());
        Ok(Driver { device, queue, info, pool, tally, unified, created, groups, followers, reports })
    }

    /// What the lost callback was told, if it was called.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.reports.lost).clone()
    }

    /// The error of the calls since the last check.
    pub(crate) fn check(&self, bytes: u64) -> Result<(), RunError> {
        let Some(error) = self.reports.take() else { return Ok(()) };
        Err(match error {
            wgpu::Error::OutOfMemory { .. } => RunError::OutOfMemory { bytes: bytes as usize },
            error => RunError::Device { device: self.info.id.clone(), message: error.to_string() },
        })
    }

    /// A block of at least `bytes`: an idle one, else a new one, for which idle ones are freed if memory is short.
    pub(crate) fn block(&mut self, role: Role, bytes: u64) -> Result<Block, RunError> {
        match self.pool.take_block(role, bytes) {
            Some(block) => Ok(block),
            None => Ok(self.create(role, bytes)?.0),
        }
    }

    /// New mapped memory for a caller, whose own look into the pool found none.
    pub(crate) fn upload(&mut self, bytes: u64) -> Result<Upload, RunError> {
        let (block, view) = self.create(Role::Upload, bytes)?;
        let view = view.ok_or(RunError::OutOfMemory { bytes: bytes as usize })?;
        Ok(Upload::new(block, view, &self.pool))
    }

    fn create(&mut self, role: Role, bytes: u64) -> Result<(Block, Option<wgpu::BufferViewMut>), RunError> {
        self.reclaim();
        match self.try_create(role, bytes) {
            Err(RunError::OutOfMemory { .. }) => {
                self.trim(true);
                // Freed memory is only free once the device has noticed.
                let _ = self.device.poll(wgpu::PollType::Poll);
                self.try_create(role, bytes)
            }
            other => other,
        }
    }

    fn try_create(&mut self, role: Role, bytes: u64) -> Result<(Block, Option<wgpu::BufferViewMut>), RunError> {
        let short = RunError::OutOfMemory { bytes: bytes as usize };
        let limit = self.info.limits.buffer_bytes;
        if bytes > limit {
            return Err(short);
        }
        // Software devices over-commit, and GL says nothing when it fails: better to ask the system beforehand.
        const WORTH_ASKING: u64 = 16 << 20;
        if bytes > WORTH_ASKING
            && self.info.kind.is_unified()
            && monitor::system_memory().is_some_and(|memory| bytes > memory.available_bytes)
        {
            return Err(short);
        }
        let size = class(bytes).min(limit / 4 * 4).max(bytes.next_multiple_of(4));
        let mapped = role == Role::Upload;
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: role.usages(self.unified),
            mapped_at_creation: mapped,
        });
        self.check(bytes)?;
        let view = if mapped { Some(buffer.get_mapped_range_mut(..).map_err(|_| short)?) } else { None };
        self.created += 1;
        self.tally.created_buffers.fetch_add(1, Relaxed);
        Ok((self.pool.admit(buffer, role, bytes), view))
    }

    /// Frees idle blocks beyond the pool's cap, or all of them.
    pub(crate) fn trim(&mut self, everything: bool) {
        let gone = self.pool.evict(everything);
        self.groups.forget(&gone);
    }

    /// Takes back what readers let go.
    pub(crate) fn reclaim(&self) {
        for block in self.pool.returned() {
            block.buffer.unmap();
            self.pool.give_returned(block);
        }
    }
}
