//! Products on the drivers that are installed, against sums in f64: lowered stages enter a small executor of their own.

use super::super::lower;
use crate::stage::{Limits, Lowered, Slot, Stage, TileVariant, Variants};
use breakeven_ir::plan::Place;
use breakeven_ir::{DType, Plan, Tensor};
use wgpu::util::DeviceExt;

/// What is fused is the same in all staged and in all direct tiles: one of each.
const TWO: &[TileVariant] = &[TileVariant::ALL[0], TileVariant::ALL[1]];

/// An open device.
struct Device {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// Every adapter that this machine has.
fn devices() -> Vec<Device> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::GL;
    let instance = wgpu::Instance::new(descriptor);
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
        .into_iter()
        .map(|adapter| {
            let info = adapter.get_info();
            let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                label: None,
                required_features: wgpu::Features::empty(),
                required_limits: adapter.limits(),
                experimental_features: wgpu::ExperimentalFeatures::disabled(),
                memory_hints: wgpu::MemoryHints::Performance,
                trace: wgpu::Trace::Off,
            }))
            .unwrap();
            Device { name: format!("{:?} {}", info.backend, info.name), device, queue }
        })
        .collect()
}

/// What the drivers here allow, with their quirk.
fn limits() -> Limits {
    Limits { bindings: 16, workgroup: 1024, workgroup_bytes: 32 << 10, loop_cap: Some(65_535), ..Limits::default() }
}

/// A plan's stages with memory of their own.
struct Loaded {
    buffers: Vec<wgpu::Buffer>,
    steps: Vec<(wgpu::ComputePipeline, wgpu::BindGroup, u32)>,
}

impl Device {
    fn barriers_are_slow(&self) -> bool {
        self.name.starts_with("Gl")
    }

    fn load(&self, plan: &Plan, lowered: &Lowered, inputs: &[Vec<f32>]) -> Loaded {
        use wgpu::BufferUsages as Usage;
        let usage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
        let memory = |bytes: usize| {
            let size = (bytes as u64).next_multiple_of(16).max(16);
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let buffers: Vec<wgpu::Buffer> = plan.buffers.iter().map(|b| memory(b.bytes())).collect();
        for (info, buffer) in plan.buffers.iter().zip(&buffers) {
            if let Place::Input(number) = info.place {
                self.queue.write_buffer(buffer, 0, bytemuck::cast_slice(&inputs[number]));
            }
        }
        let partials: Vec<wgpu::Buffer> = lowered.partials.iter().map(|&bytes| memory(bytes)).collect();
        let status = memory(16);
        let step = |stage: &Stage| {
            let mut words = vec![1u32];
            words.extend(stage.bindings.iter().map(|_| 0));
            words.extend([0, stage.units as u32]);
            words.extend(&stage.params);
            let contents = bytemuck::cast_slice(&words);
            let params =
                self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage });
            let source = wgpu::ShaderSource::Wgsl(stage.source.as_ref().into());
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
            let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            let slots = stage.bindings.iter().map(|b| match b.slot {
                Slot::Buffer(id) => &buffers[id.0 as usize],
                Slot::Partials(number) => &partials[number],
                Slot::Status => &status,
            });
            let entries: Vec<wgpu::BindGroupEntry<'_>> = slots
                .chain([&params])
                .enumerate()
                .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
                .collect();
            let layout = &pipeline.get_bind_group_layout(0);
            let group =
                self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
            let groups = stage.units.div_ceil(u64::from(stage.group_units)).min(65_535) as u32;
            (pipeline, group, groups)
        };
        let steps = lowered.stages.iter().filter(|s| s.units > 0).map(step).collect();
        Loaded { buffers, steps }
    }

    fn run(&self, loaded: &Loaded) {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for (pipeline, group, groups) in &loaded.steps {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(*groups, 1, 1);
            }
        }
        let index = self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: None }).unwrap();
    }

    fn read(&self, buffer: &wgpu::Buffer) -> Vec<f32> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = buffer.size();
        let staging =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
        let index = self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |r| r.unwrap());
        self.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: None }).unwrap();
        let view = staging.get_mapped_range(..).unwrap();
        bytemuck::cast_slice(&view).to_vec()
    }
}

/// Numbers between -1 and 1 that repeat late.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// `left` (batch.., m, k) times `right` (batch.., k, n) in f64, one operand's batch axes of extent 1 broadcast.
fn product(left: (&[f64], &[usize]), right: (&[f64], &[usize])) -> Vec<f64> {
    let (rank, dims) = (left.1.len(), |d: &[usize]| (d[d.len() - 2], d[d.len() - 1]));
    let ((m, k), (_, n)) = (dims(left.1), dims(right.1));
    let batch: Vec<usize> = (0..rank - 2).map(|i| left.1[i].max(right.1[i])).collect();
    let base = |shape: &[usize], mut at: usize| {
        let (mut stride, mut base) = (shape[rank - 2] * shape[rank - 1], 0);
        for axis in (0..rank - 2).rev() {
            base += (at % batch[axis]).min(shape[axis] - 1) * stride;
            at /= batch[axis];
            stride *= shape[axis];
        }
        base
    };
    let mut out = Vec::new();
    for at in 0..batch.iter().product() {
        let (a, b) = (base(left.1, at), base(right.1, at));
        for row in 0..m {
            for column in 0..n {
                out.push((0..k).map(|i| left.0[a + row * k + i] * right.0[b + i * n + column]).sum());
            }
        }
    }
    out
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

/// Runs a plan with these tiles on every device and compares its output; `depth` scales the error that is let
/// through. GL compiles barriers for seconds: there only direct tiles run.
fn check(
    what: &str,
    devices: &[Device],
    tiles: &[TileVariant],
    output: &Tensor,
    inputs: &[Vec<f32>],
    expected: &[f64],
    depth: usize,
) {
    let plan = Plan::new(&[output]).unwrap();
    for tile in tiles {
        let variants = Variants { tile: *tile, ..Variants::default() };
        let lowered = lower(&plan, &limits(), &variants).unwrap();
        for device in devices {
            if device.barriers_are_slow() && tile.depth > 0 {
                continue;
            }
            let loaded = device.load(&plan, &lowered, inputs);
            device.run(&loaded);
            let found = device.read(&loaded.buffers[plan.outputs[0].0 as usize]);
            let what = format!("{what} on {} with {tile:?}", device.name);
            compare(&what, &found, expected, 4e-7 * (depth as f64 + 8.0));
        }
    }
}

fn compare(what: &str, found: &[f32], expected: &[f64], most: f64) {
    for (at, (&found, &want)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - want).abs() <= most, "{what}: element {at} is {found} and not {want}");
    }
}

fn dims(list: &[usize]) -> usize {
    list.iter().product()
}

/// A plain product of these shapes.
fn plain(devices: &[Device], left: &[usize], right: &[usize]) {
    let inputs = [numbers(dims(left), 1), numbers(dims(right), 2)];
    let a = Tensor::input("a", DType::F32, left).unwrap();
    let b = Tensor::input("b", DType::F32, right).unwrap();
    let expected = product((&wide(&inputs[0]), left), (&wide(&inputs[1]), right));
    let depth = left[left.len() - 1];
    check(
        &format!("{left:?} x {right:?}"),
        devices,
        TileVariant::ALL,
        &a.matmul(&b).unwrap(),
        &inputs,
        &expected,
        depth,
    );
}

#[test]
fn products_of_every_shape() {
    let devices = devices();
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (16, 16, 16), (64, 64, 64), (65, 33, 127), (1, 100, 300), (100, 1, 300)] {
        plain(&devices, &[m, k], &[k, n]);
    }
    plain(&devices, &[4, 5000], &[5000, 4]);
    plain(&devices, &[1, 512], &[512, 1]);
    plain(&devices, &[68, 100], &[100, 132]);
    plain(&devices, &[5, 0], &[0, 70]);
}

#[test]
fn batches() {
    let devices = devices();
    plain(&devices, &[3, 2, 20, 12], &[3, 2, 12, 24]);
    plain(&devices, &[3, 1, 65, 30], &[1, 2, 30, 66]);
    plain(&devices, &[1, 2, 5, 3], &[3, 1, 3, 7]);
    plain(&devices, &[40, 4, 4], &[40, 4, 4]);
}

#[test]
fn transposed_operands() {
    let devices = devices();
    for (m, n, k) in [(64, 64, 64), (65, 70, 33)] {
        let inputs = [numbers(m * k, 1), numbers(k * n, 2)];
        let (x, y) = (wide(&inputs[0]), wide(&inputs[1]));
        // The inputs lie as (k, m) and (n, k).
        let a: Vec<f64> = (0..m * k).map(|i| x[i % k * m + i / k]).collect();
        let b: Vec<f64> = (0..k * n).map(|i| y[i % n * k + i / n]).collect();
        let expected = product((&a, &[m, k]), (&b, &[k, n]));
        let a = Tensor::input("a", DType::F32, [k, m]).unwrap().transpose().unwrap();
        let b = Tensor::input("b", DType::F32, [n, k]).unwrap().transpose().unwrap();
        check("transposed", &devices, TWO, &a.matmul(&b).unwrap(), &inputs, &expected, k);
    }
}

#[test]
fn fused_ends_and_operands() {
    let devices = devices();
    for (m, n, k) in [(64, 64, 32), (35, 66, 29)] {
        let inputs = [numbers(m * k, 1), numbers(k * n, 2), numbers(n, 3)];
        let (x, w) = (wide(&inputs[0]), wide(&inputs[1]));
        let a = Tensor::input("a", DType::F32, [m, k]).unwrap();
        let b = Tensor::input("b", DType::F32, [k, n]).unwrap();
        let bias = Tensor::input("bias", DType::F32, [n]).unwrap();
        let sums = product((&x, &[m, k]), (&w, &[k, n]));
        let expected: Vec<f64> =
            sums.iter().enumerate().map(|(i, s)| (s + f64::from(inputs[2][i % n])).max(0.0)).collect();
        let y = (&a.matmul(&b).unwrap() + &bias).unwrap().relu().unwrap();
        check("bias and relu", &devices, TWO, &y, &inputs, &expected, k);
        let exp: Vec<f64> = x.iter().map(|x| x.exp()).collect();
        let expected = product((&exp, &[m, k]), (&w, &[k, n]));
        let y = a.exp().unwrap().matmul(&b).unwrap();
        check("exp", &devices, TWO, &y, &inputs[..2], &expected, 4 * k);
        let half: Vec<f64> = w.iter().map(|x| x * 0.5 + 1.0).collect();
        let expected = product((&x, &[m, k]), (&half, &[k, n]));
        let y = a.matmul(&(&(&b * 0.5).unwrap() + 1.0).unwrap()).unwrap();
        check("a scaled operand", &devices, TWO, &y, &inputs[..2], &expected, 4 * k);
    }
}

#[test]
fn convolutions() {
    let devices = devices();
    for (c, o, size, pad, stride) in [(3, 8, 9, 1, 1), (4, 5, 8, 0, 2), (2, 66, 13, 2, 1)] {
        let inputs = [numbers(2 * c * size * size, 1), numbers(o * c * 9, 2)];
        let x = Tensor::input("x", DType::F32, [2, c, size, size]).unwrap();
        let w = Tensor::input("w", DType::F32, [o, c, 3, 3]).unwrap();
        let y = x.conv2d(&w, [stride; 2], [pad; 2]).unwrap();
        let side = y.shape()[2];
        // Leaves are numbered in the order in which the graph meets them: the filters are the left operand.
        let plan = Plan::new(&[&y]).unwrap();
        let first_is_x = plan.buffers[0].shape.elems() == inputs[0].len();
        let mut expected = Vec::new();
        for at in 0..2 * o * side * side {
            let (image, filter, row, column) =
                (at / (o * side * side), at / (side * side) % o, at / side % side, at % side);
            let mut sum = 0.0;
            for i in 0..c * 9 {
                let (channel, dy, dx) = (i / 9, i / 3 % 3, i % 3);
                let (y, x) = ((row * stride + dy).wrapping_sub(pad), (column * stride + dx).wrapping_sub(pad));
                if y < size && x < size {
                    let pixel = inputs[0][((image * c + channel) * size + y) * size + x];
                    sum += f64::from(pixel) * f64::from(inputs[1][filter * c * 9 + i]);
                }
            }
            expected.push(sum);
        }
        let [pixels, filters] = inputs;
        let inputs = if first_is_x { [pixels, filters] } else { [filters, pixels] };
        check("conv2d", &devices, TWO, &y, &inputs, &expected, c * 9);
    }
}

#[test]
fn depths_beyond_the_driver_s_loops_are_summed_in_parts() {
    let devices = devices();
    let (m, n, k) = (5, 6, 70_000);
    let inputs = [numbers(m * k, 1), numbers(k * n, 2)];
    let a = Tensor::input("a", DType::F32, [m, k]).unwrap();
    let b = Tensor::input("b", DType::F32, [k, n]).unwrap();
    let expected = product((&wide(&inputs[0]), &[m, k]), (&wide(&inputs[1]), &[k, n]));
    let plan = Plan::new(&[&a.matmul(&b).unwrap()]).unwrap();
    // As if the driver gave up much earlier: several stages.
    let lowered = lower(&plan, &Limits { loop_cap: Some(300), ..limits() }, &Variants::default()).unwrap();
    assert!(lowered.stages.len() > 2, "{} stages", lowered.stages.len());
    for device in &devices {
        let loaded = device.load(&plan, &lowered, &inputs);
        device.run(&loaded);
        let found = device.read(&loaded.buffers[plan.outputs[0].0 as usize]);
        compare(&device.name, &found, &expected, 1e-2);
    }
}

#[test]
fn a_staged_tile_runs_where_barriers_are_slow() {
    let (m, n, k) = (65, 40, 50);
    let inputs = [numbers(m * k, 1), numbers(k * n, 2)];
    let a = Tensor::input("a", DType::F32, [m, k]).unwrap();
    let b = Tensor::input("b", DType::F32, [k, n]).unwrap();
    let expected = product((&wide(&inputs[0]), &[m, k]), (&wide(&inputs[1]), &[k, n]));
    let plan = Plan::new(&[&a.matmul(&b).unwrap()]).unwrap();
    let lowered = lower(&plan, &limits(), &Variants::default()).unwrap();
    for device in devices().iter().filter(|d| d.barriers_are_slow()) {
        let loaded = device.load(&plan, &lowered, &inputs);
        device.run(&loaded);
        compare(&device.name, &device.read(&loaded.buffers[plan.outputs[0].0 as usize]), &expected, 1e-4);
    }
}

#[test]
fn an_end_with_two_results() {
    let devices = devices();
    for (m, n, k) in [(64, 64, 32), (35, 66, 29)] {
        let inputs = [numbers(m * k, 1), numbers(k * n, 2)];
        let a = Tensor::input("a", DType::F32, [m, k]).unwrap();
        let b = Tensor::input("b", DType::F32, [k, n]).unwrap();
        let expected = product((&wide(&inputs[0]), &[m, k]), (&wide(&inputs[1]), &[k, n]));
        let y = (&a.matmul(&b).unwrap() + 0.25).unwrap();
        let plan = Plan::new(&[&y, &y.gt(0.0).unwrap()]).unwrap();
        for tile in TileVariant::ALL.iter().filter(|t| t.depth == 0) {
            let lowered = lower(&plan, &limits(), &Variants { tile: *tile, ..Variants::default() }).unwrap();
            for device in &devices {
                let loaded = device.load(&plan, &lowered, &inputs);
                device.run(&loaded);
                let values = device.read(&loaded.buffers[plan.outputs[0].0 as usize]);
                let bits = device.read(&loaded.buffers[plan.outputs[1].0 as usize]);
                let shifted: Vec<f64> = expected.iter().map(|x| x + 0.25).collect();
                compare(&device.name, &values, &shifted, 1e-4);
                let bits: &[u8] = bytemuck::cast_slice(&bits);
                assert!(values.iter().take(m * n).zip(bits).all(|(v, b)| (*v > 0.0) == (*b == 1)), "{}", device.name);
            }
        }
    }
}
