//! Compiled kernels. A pipeline's key is its module's text, so all sizes share it; what a backend can keep is kept on
//! disk for the next process.

use crate::driver::Driver;
use crate::groups::Bound;
use crate::layout::VECTOR;
use crate::stage::Stage;
use crate::store;
use breakeven_ir::backend::RunError;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A compiled kernel.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    /// What is known about its speed.
    pub(crate) speed: crate::timing::Speed,
    /// When it was last asked for.
    asked: u64,
}

/// Pipelines that no plan needs any more are dropped beyond this many: a software driver's take about 100 KiB each.
pub(crate) const MOST: usize = 512;

/// All compiled kernels of a device.
pub(crate) struct Pipelines {
    /// By number; numbers are never used again.
    compiled: HashMap<usize, Pipeline>,
    next: usize,
    clock: u64,
    by_source: HashMap<Arc<str>, Result<usize, RunError>>,
    /// Zeros for warm-up dispatches: what is read, and what could be written.
    idle: [wgpu::Buffer; 2],
    disk: Option<(wgpu::PipelineCache, PathBuf)>,
    /// Was something compiled since the last time that it was kept?
    pub(crate) unsaved: bool,
}

impl Pipelines {
    pub(crate) fn new(driver: &Driver, cache_dir: Option<&Path>) -> Pipelines {
        let zeros = || {
            driver.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 256,
                usage: wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        };
        let disk = cache_dir.and_then(|dir| open_cache(driver, dir));
        let idle = [zeros(), zeros()];
        let (compiled, by_source) = (HashMap::new(), HashMap::new());
        Pipelines { compiled, next: 0, clock: 0, by_source, idle, disk, unsaved: false }
    }

    /// A pipeline of a plan that is here: plans keep theirs.
    pub(crate) fn get(&self, number: usize) -> &Pipeline {
        &self.compiled[&number]
    }

    pub(crate) fn learn(&mut self, number: usize, work: u64, ns: f64) {
        if let Some(pipeline) = self.compiled.get_mut(&number) {
            pipeline.speed.learn(work, ns);
        }
    }

    /// Drops pipelines that no plan needs, the ones longest not asked for first, if there are more than `most`.
    pub(crate) fn trim(&mut self, most: usize, needed: impl Iterator<Item = usize>) {
        if self.compiled.len() <= most {
            return;
        }
        let needed: HashSet<usize> = needed.collect();
        let mut idle: Vec<(u64, usize)> =
            self.compiled.iter().filter(|(n, _)| !needed.contains(n)).map(|(n, p)| (p.asked, *n)).collect();
        idle.sort_unstable();
        for (_, number) in idle.into_iter().take(self.compiled.len() - most / 2) {
            self.compiled.remove(&number);
        }
        let compiled = &self.compiled;
        self.by_source.retain(|_, found| found.as_ref().is_ok_and(|number| compiled.contains_key(number)));
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.compiled.len()
    }

    /// The pipeline of a stage, compiled now if it is not there yet. What failed once is not tried again.
    pub(crate) fn find(&mut self, driver: &mut Driver, stage: &Stage) -> Result<usize, RunError> {
        self.clock += 1;
        if let Some(found) = self.by_source.get(&stage.source) {
            if let Some(pipeline) = found.as_ref().ok().and_then(|number| self.compiled.get_mut(number)) {
                pipeline.asked = self.clock;
            }
            return found.clone();
        }
        let made = self.compile(driver, stage);
        self.by_source.insert(stage.source.clone(), made.clone());
        made
    }

    fn compile(&mut self, driver: &mut Driver, stage: &Stage) -> Result<usize, RunError> {
        let device = &driver.device;
        let descriptor =
            wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl((&*stage.source).into()) };
        // SAFETY: modules come from `lower`, whose every index is inside of its buffer by the planner's bounds, and
        // whose every loop ends: both are counted by parameters that are written here. So do the self-test's probe's.
        let module = unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
        driver.check(0)?;
        let writes = stage.bindings.iter().map(|binding| binding.writes).chain([false]);
        let entries: Vec<wgpu::BindGroupLayoutEntry> = writes
            .zip(0..)
            .map(|(writes, binding)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: !writes },
                    has_dynamic_offset: false,
                    min_binding_size: wgpu::BufferSize::new(VECTOR),
                },
                count: None,
            })
            .collect();
        let layout =
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            // Kernels write workgroup memory before they read it.
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: self.disk.as_ref().map(|(cache, _)| cache),
        });
        driver.check(0)?;
        driver.created += 1;
        driver.tally.created_pipelines.fetch_add(1, Relaxed);
        self.warm_up(driver, stage, &layout, &pipeline)?;
        self.unsaved = true;
        let number = self.next;
        self.next += 1;
        self.compiled.insert(number, Pipeline { pipeline, layout, speed: Default::default(), asked: self.clock });
        Ok(number)
    }

    /// Drivers compile at the first dispatch: one without tasks makes them do it now.
    fn warm_up(
        &self,
        driver: &Driver,
        stage: &Stage,
        layout: &wgpu::BindGroupLayout,
        pipeline: &wgpu::ComputePipeline,
    ) -> Result<(), RunError> {
        let buffers = stage.bindings.iter().map(|b| &self.idle[usize::from(b.writes)]).chain([&self.idle[0]]);
        let entries: Vec<wgpu::BindGroupEntry<'_>> = buffers
            .zip(0..)
            .map(|(buffer, binding)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group =
            driver.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        let mut encoder = driver.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        driver.queue.submit([encoder.finish()]);
        driver.check(0)
    }

    /// The bind group of a pipeline with these parts, the parameters last.
    pub(crate) fn group(&self, driver: &mut Driver, number: usize, parts: &[Bound<'_>]) -> wgpu::BindGroup {
        let (group, is_new) = driver.groups.find(&driver.device, number, &self.compiled[&number].layout, parts);
        if is_new {
            driver.created += 1;
            driver.tally.created_bind_groups.fetch_add(1, Relaxed);
        }
        group
    }

    /// Writes what was compiled to disk, for the next process.
    pub(crate) fn save(&mut self) {
        self.unsaved = false;
        let Some((cache, path)) = &self.disk else { return };
        let Some(data) = cache.get_data() else { return };
        // A cache that can't be written is no failure: the next process compiles again.
        let _ = store::replace(path, &data);
    }
}

/// The pipeline cache of this adapter and driver, with what an earlier process left.
fn open_cache(driver: &Driver, dir: &Path) -> Option<(wgpu::PipelineCache, PathBuf)> {
    if !driver.device.features().contains(wgpu::Features::PIPELINE_CACHE) {
        return None;
    }
    let path = dir.join(format!("pipelines-{}.bin", store::file_name(&driver.info)));
    let data = std::fs::read(&path).ok();
    let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
    // SAFETY: the file was written by `save`, whole or not at all, for the same adapter and driver; wgpu compares its
    // header with the device's and begins an empty cache if they differ.
    let cache = unsafe { driver.device.create_pipeline_cache(&descriptor) };
    driver.check(0).ok()?;
    Some((cache, path))
}
