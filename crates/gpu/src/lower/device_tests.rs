//! A device for the tests of templates: stages enter, bytes leave. The runtime proper is not needed, nor trusted.

use super::{Lowered, Plan};
use crate::stage::{Limits, Slot, Stage};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use wgpu::*;

/// An opened adapter.
pub(crate) struct Device {
    pub(crate) name: String,
    device: wgpu::Device,
    queue: Queue,
    pub(crate) limits: Limits,
    pipelines: Mutex<HashMap<Arc<str>, ComputePipeline>>,
}

/// Every adapter of this machine. Tests take turns.
pub(crate) static DEVICES: LazyLock<Mutex<Vec<Device>>> = LazyLock::new(|| {
    let mut descriptor = InstanceDescriptor::new_without_display_handle();
    descriptor.backends = Backends::VULKAN | Backends::GL;
    let instance = Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(Backends::all()));
    // Without a device every test would pass.
    assert!(!adapters.is_empty(), "no adapter: install mesa-vulkan-drivers (lavapipe)");
    Mutex::new(adapters.iter().map(open).collect())
});

fn open(adapter: &Adapter) -> Device {
    let required_features = adapter.features() & Features::SHADER_INT64;
    let (device, queue) = pollster::block_on(adapter.request_device(&DeviceDescriptor {
        required_features,
        required_limits: adapter.limits(),
        ..DeviceDescriptor::default()
    }))
    .unwrap();
    let has = adapter.limits();
    let limits = Limits {
        binding_bytes: has.max_storage_buffer_binding_size,
        bindings: has.max_storage_buffers_per_shader_stage,
        workgroup: has.max_compute_invocations_per_workgroup.min(has.max_compute_workgroup_size_x),
        workgroup_bytes: has.max_compute_workgroup_storage_size,
        loop_cap: Some(65535),
        int64: required_features.contains(Features::SHADER_INT64),
        ..Limits::default()
    };
    let info = adapter.get_info();
    Device { name: format!("{:?} {}", info.backend, info.name), device, queue, limits, pipelines: Mutex::default() }
}

impl Device {
    /// Runs a plan; the bytes of its outputs.
    pub(crate) fn run(&self, plan: &Plan, lowered: &Lowered, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        let make = |bytes: usize, usage| {
            let size = (bytes.next_multiple_of(256).max(256)) as u64;
            self.device.create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let buffers: Vec<Buffer> = plan.buffers.iter().map(|b| make(b.bytes(), storage)).collect();
        let partials: Vec<Buffer> = lowered.partials.iter().map(|&bytes| make(bytes, storage)).collect();
        let status = make(16, storage);
        for (buffer, bytes) in buffers.iter().zip(inputs) {
            let mut padded = bytes.clone();
            padded.resize(bytes.len().next_multiple_of(4), 0);
            self.queue.write_buffer(buffer, 0, &padded);
        }
        let mut encoder = self.device.create_command_encoder(&CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        for stage in lowered.stages.iter().filter(|s| s.units > 0) {
            let pipeline = self.pipeline(stage);
            let mut words = vec![1u32];
            words.extend(stage.bindings.iter().map(|b| (-(b.window.start as i32)) as u32));
            words.extend([0, stage.units as u32]);
            words.extend(&stage.params);
            let params = make(words.len() * 4, storage);
            self.queue.write_buffer(&params, 0, bytemuck::cast_slice(&words));
            let mut entries: Vec<BindGroupEntry<'_>> = vec![];
            for (number, binding) in stage.bindings.iter().enumerate() {
                let buffer = match binding.slot {
                    Slot::Buffer(id) => &buffers[id.0 as usize],
                    Slot::Partials(id) => &partials[id],
                    Slot::Status => &status,
                };
                assert!(binding.window.end * binding.element_bytes <= buffer.size() as usize, "{:?}", binding);
                entries.push(BindGroupEntry { binding: number as u32, resource: buffer.as_entire_binding() });
            }
            entries.push(BindGroupEntry { binding: entries.len() as u32, resource: params.as_entire_binding() });
            let layout = pipeline.get_bind_group_layout(0);
            let group =
                self.device.create_bind_group(&BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(stage.units.div_ceil(u64::from(stage.group_units)).min(65535) as u32, 1, 1);
        }
        drop(pass);
        let read: Vec<(Buffer, usize)> = plan
            .outputs
            .iter()
            .map(|&id| {
                let bytes = plan.buffer(id).bytes();
                let staging = make(bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
                encoder.copy_buffer_to_buffer(&buffers[id.0 as usize], 0, &staging, 0, staging.size());
                (staging, bytes)
            })
            .collect();
        let index = self.queue.submit([encoder.finish()]);
        read.iter().for_each(|(b, _)| b.map_async(MapMode::Read, .., |r| r.unwrap()));
        self.device.poll(PollType::Wait { submission_index: Some(index), timeout: None }).unwrap();
        read.iter().map(|(b, bytes)| b.get_mapped_range(..).unwrap()[..*bytes].to_vec()).collect()
    }

    fn pipeline(&self, stage: &Stage) -> ComputePipeline {
        let mut pipelines = self.pipelines.lock().unwrap();
        if let Some(pipeline) = pipelines.get(&stage.source) {
            return pipeline.clone();
        }
        let source = ShaderSource::Wgsl((&*stage.source).into());
        let module = self.device.create_shader_module(ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        pipelines.insert(stage.source.clone(), pipeline.clone());
        pipeline
    }
}

/// Deterministic numbers between -1 and 1.
pub(crate) fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}
