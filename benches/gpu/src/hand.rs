//! A minimal wgpu program for elementwise workloads, as one writes it by hand: everything is created once, a call fills the
//! inputs, dispatches once and reads the result. The chain calls the driver's own exp and tanh, of whatever accuracy: nothing
//! on this driver is faster.
//!
//! In two ways: `staging` moves data as on any GPU (`write_buffer`, a copy into a mappable buffer), `mapped` lets the
//! shader work on the very memory that the host maps, which a device without memory of its own allows. The kernel is
//! what the library renders for a map (four elements at a time, a grid-stride loop, no checks), less its parameters.

use std::time::Duration;

use wgpu::BufferUsages as U;

use crate::arm::{Arm, Fallible};
use crate::attempt::writing;
use crate::workload::{Kind, Workload};

const LIB: &str = "hand";
const WORKGROUP: u32 = 64;
const LANES: u32 = 4;
/// Longer than any call takes even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open device.
pub struct Hand {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Hand {
    /// Opens the adapter.
    pub fn open(adapter: &wgpu::Adapter) -> Fallible<Hand> {
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: None,
            required_features: wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        });
        let (device, queue) = pollster::block_on(request)?;
        Ok(Hand { device, queue })
    }

    /// The arms for one workload.
    pub fn arms<'w>(&self, workload: &'w Workload) -> Vec<Arm<'w>> {
        let expression = match workload.kind {
            Kind::Add => "a[i] + b[i]",
            Kind::Relu => "max(a[i], vec4<f32>())",
            Kind::Chain => "chain(a[i])",
            _ => return Vec::new(),
        };
        let arm = |variant, in_place| {
            let program = Program::new(self, workload.inputs.len(), workload.n, expression, in_place);
            let inputs: Vec<&'w [f32]> = workload.inputs.iter().map(|input| input.data.as_slice()).collect();
            writing(LIB, variant, vec![0.0; workload.n], move |out| program.run(&inputs, out))
        };
        vec![arm("staging", false), arm("mapped", true)]
    }
}

struct Program {
    device: wgpu::Device,
    queue: wgpu::Queue,
    inputs: Vec<wgpu::Buffer>,
    output: wgpu::Buffer,
    /// Where the host reads, if it can't read `output` itself.
    staging: Option<wgpu::Buffer>,
    bind_group: wgpu::BindGroup,
    pipeline: wgpu::ComputePipeline,
    groups: u32,
}

impl Program {
    fn new(hand: &Hand, inputs: usize, elements: usize, expression: &str, in_place: bool) -> Program {
        let (device, queue) = (hand.device.clone(), hand.queue.clone());
        let bytes = 4 * elements as u64;
        let buffer = |usage, mapped_at_creation| {
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation })
        };
        let (usage_in, usage_out) = if in_place { (U::MAP_WRITE, U::MAP_READ) } else { (U::COPY_DST, U::COPY_SRC) };
        let inputs: Vec<wgpu::Buffer> = (0..inputs).map(|_| buffer(U::STORAGE | usage_in, in_place)).collect();
        let output = buffer(U::STORAGE | usage_out, false);
        let staging = (!in_place).then(|| buffer(U::COPY_DST | U::MAP_READ, false));

        let source = module(inputs.len(), expression);
        let source = wgpu::ShaderSource::Wgsl(source.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
        // SAFETY: the loop ends at `arrayLength` of the output, and all buffers are of one length.
        let module = unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let bound = inputs.iter().chain([&output]).enumerate();
        let entries: Vec<wgpu::BindGroupEntry<'_>> = bound
            .map(|(i, buffer)| wgpu::BindGroupEntry { binding: i as u32, resource: buffer.as_entire_binding() })
            .collect();
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let groups = (elements as u32).div_ceil(WORKGROUP * LANES);
        Program { device, queue, inputs, output, staging, bind_group, pipeline, groups }
    }

    fn run(&self, inputs: &[&[f32]], out: &mut [f32]) -> Fallible<()> {
        for (buffer, data) in self.inputs.iter().zip(inputs) {
            let bytes: &[u8] = bytemuck::cast_slice(data);
            if self.staging.is_some() {
                self.queue.write_buffer(buffer, 0, bytes);
            } else {
                // Mapped at creation, and again since the last call.
                buffer.get_mapped_range_mut(..)?.copy_from_slice(bytes);
                buffer.unmap();
            }
        }
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(self.groups, 1, 1);
        drop(pass);
        if let Some(staging) = &self.staging {
            encoder.copy_buffer_to_buffer(&self.output, 0, staging, 0, staging.size());
        }
        let index = self.queue.submit([encoder.finish()]);
        let read = self.staging.as_ref().unwrap_or(&self.output);
        read.map_async(wgpu::MapMode::Read, .., |_| {});
        if self.staging.is_none() {
            for buffer in &self.inputs {
                buffer.map_async(wgpu::MapMode::Write, .., |_| {});
            }
        }
        self.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(PATIENCE) })?;
        out.copy_from_slice(bytemuck::cast_slice(&read.get_mapped_range(..)?));
        read.unmap();
        Ok(())
    }
}

const CHAIN: &str = "
fn chain(x: vec4<f32>) -> vec4<f32> {
    let gate = 1.0 / (1.0 + exp(-(x * 1.5 + 0.5)));
    let root = sqrt(abs(gate * x - 0.25) + 0.1);
    let bent = (tanh(root + x) * 0.5 + 1.0) * x;
    let third = (exp(-max(bent, vec4<f32>())) * 2.0 - x) / 3.0;
    return third * third;
}
";

fn module(inputs: usize, expression: &str) -> String {
    let names = ["a", "b"];
    let mut text = String::new();
    for (i, name) in names[..inputs].iter().enumerate() {
        text += &format!("@group(0) @binding({i}) var<storage, read> {name}: array<vec4<f32>>;\n");
    }
    text += &format!("@group(0) @binding({inputs}) var<storage, read_write> out: array<vec4<f32>>;\n");
    text += CHAIN;
    text += &format!(
        "@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    for (var i = id.x; i < arrayLength(&out); i += groups.x * {WORKGROUP}u) {{
        out[i] = {expression};
    }}
}}
"
    );
    text
}
