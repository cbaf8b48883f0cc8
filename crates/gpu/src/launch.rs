//! A kernel of the caller's own, over memory that it manages: WGSL, memory and parameters enter, and are changed when
//! this returns.
//!
//! The text is not trusted. Other than plans' modules it is compiled with wgpu's checks, so that an index that is out of
//! bounds stays inside of its memory, and whatever wgpu refuses comes back in its words. A kernel that does not end is
//! not noticed beforehand: its caller waits in vain, as for any other work.

use crate::adapters::AdapterInfo;
use crate::buffers::{Kept, Role};
use crate::driver::Driver;
use crate::encode::{Dispatch, Recording};
use crate::job::{Command, assumed_ns};
use crate::lookout::LINGER;
use crate::memory;
use crate::nesting;
use crate::owner::Owner;
use crate::session::Session;
use breakeven_ir::backend::{Launch, RunError, Timings};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Kernels that stay compiled. A software driver's pipeline takes about 100 KiB; who has more than this many kernels in
/// turn pays for the compiler.
const MOST: usize = 64;

/// What the driver's compiler may take beyond the usual timeout, in nanoseconds: it works inside of the first launch, for
/// seconds if the kernel has many barriers.
const COMPILING: u64 = 5_000_000_000;

/// What a pipeline is made from. Bindings follow from the numbers, whatever the text does with them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    source: Arc<str>,
    entry: Arc<str>,
    buffers: usize,
    has_params: bool,
}

/// A launch as the owner gets it: nothing is borrowed.
struct Work {
    key: Key,
    /// Memory, and how much of its block is bound.
    buffers: Vec<(Arc<Kept>, u64)>,
    params: Vec<u8>,
    grid: [u32; 3],
}

/// Runs a kernel, and waits until it is done.
pub(crate) fn run(session: &Arc<Session>, launch: &Launch<'_>) -> Result<Timings, RunError> {
    let begun = Instant::now();
    let handle = session.handle()?;
    let unsupported = |why| RunError::Unsupported { device: session.info.id.clone(), why };
    refuse(&session.info, launch).map_or(Ok(()), |why| Err(unsupported(why)))?;
    let mut buffers = Vec::with_capacity(launch.buffers.len());
    for (number, value) in launch.buffers.iter().enumerate() {
        let value = memory::own(session, &handle, value)?;
        let (most, bytes) = (session.info.limits.binding_bytes, memory::whole(value.bytes).unwrap_or(u64::MAX));
        if bytes > most {
            return Err(unsupported(format!("buffer {number} has {bytes} bytes, a kernel sees at most {most} of one")));
        }
        buffers.push((value.kept.clone(), bytes));
    }
    let key = Key {
        source: launch.source.into(),
        entry: launch.entry.into(),
        buffers: buffers.len(),
        has_params: !launch.params.is_empty(),
    };
    let work = Work { key, buffers, params: launch.params.to_vec(), grid: launch.workgroups };
    let permit = session.enter(&handle, assumed_ns(0), begun, None)?;
    let command = Command::work(move |owner| {
        let done = owner.launch(&work);
        drop(permit);
        done
    });
    let timings = session.ask(&handle, || COMPILING, None, command)?;
    Ok(Timings { total_ns: begun.elapsed().as_nanos() as u64, ..timings })
}

/// Why a launch can't be right on this device, whatever its text says.
fn refuse(info: &AdapterInfo, launch: &Launch<'_>) -> Option<String> {
    let most = info.limits.groups;
    if let Some(count) = launch.workgroups.into_iter().find(|count| !(1..=most).contains(count)) {
        return Some(format!("{count} workgroups in one dimension, 1 to {most} are possible"));
    }
    let params = launch.params.len();
    if !params.is_multiple_of(4) {
        return Some(format!("parameters have {params} bytes, which is no multiple of 4"));
    }
    if params as u64 > info.limits.binding_bytes {
        return Some(format!("parameters have {params} bytes, at most {} are possible", info.limits.binding_bytes));
    }
    let bindings = launch.buffers.len() + usize::from(params > 0);
    (bindings > info.limits.bindings as usize)
        .then(|| format!("{bindings} buffers with the parameters, a kernel has at most {}", info.limits.bindings))
        .or_else(|| nesting::refuse(launch.source))
}

/// A compiled kernel.
#[derive(Clone)]
struct Kernel {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// The compiled kernels of callers, with the last use of each.
#[derive(Default)]
pub(crate) struct Kernels {
    compiled: HashMap<Key, (Kernel, u64)>,
    clock: u64,
}

impl Kernels {
    fn find(&mut self, driver: &mut Driver, key: &Key) -> Result<Kernel, RunError> {
        self.clock += 1;
        if let Some((kernel, used)) = self.compiled.get_mut(key) {
            *used = self.clock;
            return Ok(kernel.clone());
        }
        // A compiler that panics over somebody's text has harmed nothing but that text.
        let compiled = catch_unwind(AssertUnwindSafe(|| compile(driver, key)));
        let kernel = compiled.unwrap_or_else(|_| {
            // What was reported before it must not be taken for the next caller's.
            let _ = driver.check(0);
            let message = "the shader compiler panicked over this kernel".into();
            Err(RunError::Device { device: driver.info.id.clone(), message })
        })?;
        if self.compiled.len() >= MOST {
            let oldest = self.compiled.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.compiled.remove(&key));
        }
        self.compiled.insert(key.clone(), (kernel.clone(), self.clock));
        Ok(kernel)
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.compiled.len()
    }
}

fn compile(driver: &mut Driver, key: &Key) -> Result<Kernel, RunError> {
    let device = &driver.device;
    let source = wgpu::ShaderSource::Wgsl((&*key.source).into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    driver.check(0)?;
    let entries: Vec<wgpu::BindGroupLayoutEntry> = std::iter::repeat_n(false, key.buffers)
        .chain(key.has_params.then_some(true))
        .zip(0..)
        .map(|(read_only, binding)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                // Compared with what the text declares when it is known what is bound.
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some(&key.entry),
        compilation_options: Default::default(),
        cache: None,
    });
    driver.check(0)?;
    driver.created += 1;
    driver.tally.created_pipelines.fetch_add(1, Relaxed);
    Ok(Kernel { pipeline, layout })
}

impl Owner {
    fn launch(&mut self, work: &Work) -> Result<Timings, RunError> {
        self.driver.created = 0;
        let compiled = self.kernels.find(&mut self.driver, &work.key);
        let kernel = compiled.map_err(|error| self.lost_or(error)).map_err(readable)?;
        let params = self.params(&work.params)?;
        let group = self.bind(&kernel, work, params.as_ref()).map_err(readable)?;
        let dispatches = vec![Dispatch { pipeline: kernel.pipeline, group, grid: work.grid }];
        let submitted = Instant::now();
        let index = self.submit(&Recording { dispatches, ..Recording::default() }).map_err(readable)?;
        let submit_ns = submitted.elapsed().as_nanos() as u64;
        self.wait(&index)?;
        self.life.progress(submitted.elapsed().as_nanos() as u64);
        self.linger_until = Instant::now() + LINGER;
        let uploads = u32::from(params.is_some());
        self.driver.tally.uploads.fetch_add(u64::from(uploads), Relaxed);
        Ok(Timings {
            kernels: 1,
            dispatches: 1,
            passes: 1,
            submits: 1,
            uploads,
            upload_bytes: work.params.len() as u64,
            submit_ns,
            created: self.driver.created,
            ..Timings::default()
        })
    }

    /// Parameters in a block of their own, if there are any.
    fn params(&mut self, bytes: &[u8]) -> Result<Option<Kept>, RunError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let block = self.driver.block(Role::Device, bytes.len() as u64)?;
        self.driver.queue.write_buffer(&block.buffer, 0, bytes);
        Ok(Some(Kept::new(block, &self.driver.pool)))
    }

    fn bind(&mut self, kernel: &Kernel, work: &Work, params: Option<&Kept>) -> Result<wgpu::BindGroup, RunError> {
        let buffers = work.buffers.iter().map(|(kept, bytes)| (&**kept, *bytes));
        let all = buffers.chain(params.map(|kept| (kept, work.params.len() as u64)));
        let mut entries = Vec::with_capacity(work.buffers.len() + 1);
        for ((kept, bytes), binding) in all.zip(0..) {
            let block = kept.block().ok_or(RunError::OutOfMemory { bytes: bytes as usize })?;
            let part = wgpu::BufferBinding { buffer: &block.buffer, offset: 0, size: wgpu::BufferSize::new(bytes) };
            entries.push(wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(part) });
        }
        let layout = &kernel.layout;
        let group =
            self.driver.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        self.driver.check(0).map_err(|error| self.lost_or(error))?;
        self.driver.created += 1;
        self.driver.tally.created_bind_groups.fetch_add(1, Relaxed);
        Ok(group)
    }
}

/// The longest message: one that shows a text without line breaks is as long as the text.
const MESSAGE: usize = 4000;

/// wgpu's message without what is around it. What it says of a text is several lines, whose columns belong together.
fn readable(error: RunError) -> RunError {
    let RunError::Device { device, message } = error else { return error };
    let said = message.strip_prefix("Validation Error\n\nCaused by:\n").unwrap_or(&message);
    let is_indented = said.lines().all(|line| line.is_empty() || line.starts_with("  "));
    let said = if is_indented { said.replace("\n  ", "\n") } else { said.replacen("Shader '' ", "", 1) };
    let lines: Vec<&str> = said.trim().lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let whole = lines.join("\n");
    let mut message: String = whole.chars().take(MESSAGE).collect();
    if message.len() < whole.len() {
        message.push_str(" ..");
    }
    RunError::Device { device, message }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
