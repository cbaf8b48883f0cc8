//! Measurements: not of right or wrong, so they run only when asked for.

use crate::backend::tests::{doubling, gpus, numbers, run};
use crate::{Adapters, Api, GpuConfig};
use breakeven_ir::backend::{Backend, Prepared, Task};
use std::time::{Duration, Instant};

/// Not a test of right or wrong: `cargo test --release -- --ignored --nocapture latency` compares with the least that a
/// wgpu program does with persistent buffers.
#[test]
#[ignore = "measures"]
fn latency() {
    use std::io::Write;
    let adapters = Adapters::find(Api::ALL);
    for (index, info) in adapters.infos().iter().enumerate() {
        let gpu = adapters.open(index, &GpuConfig { tune: false, ..GpuConfig::default() }).expect("opens");
        for elems in [256usize, 5_120, 100_000, 1_000_000] {
            let (plan, lowered) = doubling(elems);
            let source = lowered.stages[0].source.clone();
            let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
            let minimal = minimal::Program::new(&info.backend, &source, elems);
            let x = numbers(elems);
            let mut y = vec![0.0f32; elems];
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for round in 0..if elems > 500_000 { 30 } else { 300 } {
                let begun = Instant::now();
                prepared
                    .run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)], false)
                    .expect("runs");
                let middle = Instant::now();
                assert_eq!(y[elems - 1], 2.0 * x[elems - 1]);
                y.fill(0.0);
                let again = Instant::now();
                minimal.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
                assert_eq!(y[elems - 1], 2.0 * x[elems - 1]);
                if round >= 10 {
                    ours.push(middle - begun);
                    theirs.push(again.elapsed());
                }
            }
            ours.sort();
            theirs.sort();
            let (a, b) = (ours[ours.len() / 2], theirs[theirs.len() / 2]);
            let ratio = a.as_nanos() as f64 / b.as_nanos() as f64;
            let line = format!(
                "{} {elems}: ours {a:?} (min {:?}), minimal {b:?} (min {:?}), ratio {ratio:.2}\n",
                info.backend, ours[0], theirs[0]
            );
            std::io::stderr().write_all(line.as_bytes()).expect("writes");
        }
    }
}

/// Not a test either: 20 tasks of 256 elements beside one of 5,120, and 1,000 tasks.
#[test]
#[ignore = "measures"]
fn latency_of_tasks() {
    use std::io::Write;
    for gpu in gpus(&GpuConfig::default()) {
        let prepare = |elems| {
            let (plan, lowered) = doubling(elems);
            (gpu.plan_lowered(&plan, lowered).expect("prepares"), plan)
        };
        let ((small, small_plan), (large, _)) = (prepare(256), prepare(5_120));
        let x = numbers(5_120);
        let inputs: [&[u8]; 1] = [bytemuck::cast_slice(&x[..256])];
        let median = |work: &mut dyn FnMut()| {
            let mut times: Vec<Duration> = (0..200)
                .map(|_| {
                    let begun = Instant::now();
                    work();
                    begun.elapsed()
                })
                .collect();
            times.sort();
            times[100]
        };
        let many = |count: usize| {
            let task = |number: usize| Task { plan: &small_plan, inputs: &inputs, offset: number * 1024 };
            let tasks: Vec<Task<'_>> = (0..count).map(task).collect();
            let mut results = vec![0u8; count * 1024];
            median(&mut || drop(gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))))
        };
        let (twenty, thousand) = (many(20), many(1000));
        let one = median(&mut || drop(run(&*large, &x)));
        let alone = median(&mut || drop(run(&*small, &x[..256])));
        let line = format!(
            "{}: 20 x 256 {twenty:?}, 1 x 5120 {one:?}, ratio {:.2}; 1000 x 256 {thousand:?}, 1 x 256 {alone:?}\n",
            gpu.info().backend,
            twenty.as_secs_f64() / one.as_secs_f64()
        );
        std::io::stderr().write_all(line.as_bytes()).expect("writes");
    }
}

/// The least that a wgpu program does: persistent buffers, `write_buffer`, one dispatch, one copy, one map.
mod minimal {
    pub struct Program {
        device: wgpu::Device,
        queue: wgpu::Queue,
        pipeline: wgpu::ComputePipeline,
        group: wgpu::BindGroup,
        buffers: [wgpu::Buffer; 3],
        groups: u32,
    }

    impl Program {
        pub fn new(backend: &str, source: &str, elems: usize) -> Program {
            let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
            descriptor.backends = if backend == "gl" { wgpu::Backends::GL } else { wgpu::Backends::VULKAN };
            descriptor.flags = wgpu::InstanceFlags::empty();
            let all = wgpu::Backends::all();
            let adapter = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(all)).remove(0);
            let request = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
            let (device, queue) = pollster::block_on(adapter.request_device(&request)).expect("opens");
            let descriptor =
                wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(source.into()) };
            let module = device.create_shader_module(descriptor);
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                cache: None,
            });
            use wgpu::BufferUsages as U;
            let usages = [
                U::STORAGE | U::COPY_DST,
                U::STORAGE | U::COPY_SRC,
                U::MAP_READ | U::COPY_DST,
                U::STORAGE | U::COPY_DST,
            ];
            let size = 4 * elems as u64;
            let buffers = usages.map(|usage| {
                device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
            });
            queue.write_buffer(&buffers[3], 0, bytemuck::cast_slice(&[1, 0, 0, 0, elems as i32]));
            let entry = |binding, buffer: &wgpu::Buffer| (binding, buffer.clone());
            let entries = [entry(0, &buffers[0]), entry(1, &buffers[1]), entry(2, &buffers[3])];
            let entries: Vec<_> = entries
                .iter()
                .map(|(binding, buffer)| wgpu::BindGroupEntry {
                    binding: *binding,
                    resource: buffer.as_entire_binding(),
                })
                .collect();
            let layout = pipeline.get_bind_group_layout(0);
            let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &entries,
            });
            let [x, y, staging, _params] = buffers;
            Program { device, queue, pipeline, group, buffers: [x, y, staging], groups: elems.div_ceil(64) as u32 }
        }

        pub fn run(&self, x: &[u8], y: &mut [u8]) {
            let [input, output, staging] = &self.buffers;
            self.queue.write_buffer(input, 0, x);
            let mut encoder = self.device.create_command_encoder(&Default::default());
            {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                pass.set_pipeline(&self.pipeline);
                pass.set_bind_group(0, &self.group, &[]);
                pass.dispatch_workgroups(self.groups, 1, 1);
            }
            encoder.copy_buffer_to_buffer(output, 0, staging, 0, Some(y.len() as u64));
            let index = self.queue.submit([encoder.finish()]);
            staging.map_async(wgpu::MapMode::Read, .., |_| {});
            let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
            self.device.poll(wait).expect("polls");
            y.copy_from_slice(&staging.get_mapped_range(..).expect("mapped"));
            staging.unmap();
        }
    }
}
