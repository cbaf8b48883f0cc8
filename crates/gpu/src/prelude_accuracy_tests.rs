//! Every op on every driver of this machine against f64: errors within `tolerance`, integers and specials exact.

use super::module;
use crate::tolerance;
use breakeven_ir::{DType, Op, Scalar, Signature};
use std::time::Duration;
use wgpu::util::{BufferInitDescriptor, DeviceExt};

/// Long enough for a slow driver to compile and run a few thousand lanes.
const PATIENCE: Duration = Duration::from_secs(120);

struct Driver {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// A device on every adapter.
fn drivers() -> Vec<Driver> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::GL | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let open = |adapter: wgpu::Adapter| {
        let info = adapter.get_info();
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: None,
            required_features: wgpu::Features::empty(),
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        });
        let (device, queue) = pollster::block_on(request).expect("an adapter that is listed opens");
        Driver { name: format!("{:?} {}", info.backend, info.name), device, queue }
    };
    adapters.into_iter().map(open).collect()
}

impl Driver {
    /// The words that `source` computes for rows of `words`.
    fn run(&self, source: &str, words: &[u32], rows: usize) -> Vec<u32> {
        let bytes = (rows * 4) as u64;
        let input = self.device.create_buffer_init(&BufferInitDescriptor {
            label: None,
            contents: bytemuck::cast_slice(words),
            usage: wgpu::BufferUsages::STORAGE,
        });
        let buffer = |usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        };
        let output = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let description = wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(source.into()) };
        let checks = wgpu::ShaderRuntimeChecks::unchecked();
        // SAFETY: the module has no loops and guards its only index by the length of the array it writes; the array
        // that it reads has `arity` words for each of those.
        let shader = unsafe { self.device.create_shader_module_trusted(description, checks) };
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &shader,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let bind = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
            ],
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &bind, &[]);
            pass.dispatch_workgroups(rows.div_ceil(64) as u32, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&output, 0, &staging, 0, bytes);
        let index = self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("the staging buffer maps"));
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(PATIENCE) };
        self.device.poll(wait).expect("the dispatch ends");
        let mapped = staging.get_mapped_range(..).expect("the staging buffer is mapped");
        bytemuck::pod_collect_to_vec(&mapped)
    }
}

/// A generator of words (splitmix).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (((z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)) >> 32) as u32
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        f64::from(self.word()) / 4_294_967_296.0
    }
}

/// The floats where something changes, positive.
fn corners() -> Vec<f32> {
    let mut corners = vec![0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, f32::EPSILON];
    corners.extend([
        1e-45,
        1e-40,
        1.1754942e-38,
        1e-30,
        1e-10,
        1e-3,
        0.1,
        0.25,
        0.5,
        0.75,
        0.9277,
        1.0,
        1.25,
        1.5,
        2.0,
    ]);
    corners
        .extend([2.5, 3.0, 3.5, 3.92, 4.5, 7.0, 9.2, 10.0, 11.5, 14.2, 17.0, 20.0, 87.3, 88.72284, 89.0, 103.9, 120.0]);
    corners.extend([1e4, 8388607.5, 8388608.0, 16777215.0, 16777216.0, 2147483648.0, 4294967296.0, 1e10, 1e30, 1e38]);
    corners
}

/// Arguments of one float.
fn floats(random: &mut Random) -> Vec<f32> {
    let mut floats = vec![];
    for corner in corners() {
        let bits = corner.to_bits();
        floats.extend((bits.saturating_sub(3)..=bits.saturating_add(3)).map(f32::from_bits));
    }
    // Halves; sweeps of both scales; every exponent; the neighbourhood of 0 and of 1.
    floats.extend((0..64).map(|i| i as f32 * 0.5));
    floats.extend((0..1500).map(|i| 10f64.powf(f64::from(i) * 7.0 / 1500.0 - 3.0) as f32));
    floats.extend((0..1500).map(|_| (random.unit() * 20.0) as f32));
    floats.extend((0..500).map(|_| (random.unit() * 110.0) as f32));
    floats.extend((0..500).map(|_| (0.7 + random.unit()) as f32));
    floats.extend((0..1500).map(|_| f32::from_bits(random.word())));
    // Multiples of pi / 2 with their neighbours, and the float that comes closest to one.
    for _ in 0..400 {
        let n = 2f64.powf(random.unit() * 26.0).floor();
        let bits = ((n * std::f64::consts::FRAC_PI_2) as f32).to_bits();
        floats.extend([bits - 1, bits, bits + 1].map(f32::from_bits));
    }
    floats.push((16_367_173.0 * 2f64.powi(72)) as f32);
    let negative: Vec<f32> = floats.iter().map(|x| -x).collect();
    floats.extend(negative);
    floats
}

/// Pairs of floats.
fn pairs(random: &mut Random) -> Vec<[f32; 2]> {
    let corners: Vec<f32> = corners().into_iter().flat_map(|c| [c, -c]).collect();
    let mut pairs: Vec<[f32; 2]> = corners.iter().flat_map(|&x| corners.iter().map(move |&y| [x, y])).collect();
    for i in 0..1500 {
        let any = f32::from_bits(random.word());
        pairs.push([any, f32::from_bits(random.word())]);
        pairs.push([(random.unit() * 40.0 - 20.0) as f32, (random.unit() * 20.0 - 10.0) as f32]);
        pairs.push([(random.unit() * 40.0 - 20.0) as f32, (i % 41 - 20) as f32]);
        // Remainders that are denormal, or barely not.
        pairs.push([f32::from_bits(random.word() & 0x82ff_ffff), f32::from_bits(random.word() & 0x81ff_ffff)]);
        // Powers that stay in range, of any base and of those around 1: where errors of the logarithm show.
        let target = (f64::from(i) / 1500.0 - 0.5) * 300.0;
        for base in [any.abs(), (0.5 + random.unit() * 1.5) as f32] {
            pairs.push([base, (target / f64::from(base).log2()) as f32]);
        }
    }
    pairs
}

/// Words of an integer or bool argument.
fn words(dtype: DType, random: &mut Random) -> Vec<u32> {
    if dtype == DType::Bool {
        return vec![0, 1];
    }
    let edges = [0, 1, 2, 3, 7, 31, 255, 65_535, 65_536, 16_777_217, i32::MAX as u32 - 1, i32::MAX as u32];
    let negative = edges.map(u32::wrapping_neg);
    let mut words = [edges, negative].concat();
    words.push(i32::MIN as u32);
    words.extend((0..12).map(|_| random.word()));
    words.extend((0..12).map(|_| random.word() >> 20));
    words
}

/// All argument rows of a signature.
fn rows(signature: &Signature) -> Vec<Vec<u32>> {
    let random = &mut Random(7);
    match signature.args {
        [DType::F32] => floats(random).iter().map(|x| vec![x.to_bits()]).collect(),
        [DType::F32, DType::F32] => pairs(random).iter().map(|p| p.map(f32::to_bits).to_vec()).collect(),
        args => {
            let mut rows = vec![vec![]];
            for &dtype in args {
                let choices = match dtype {
                    DType::F32 => corners().into_iter().flat_map(|x| [x.to_bits(), (-x).to_bits()]).collect(),
                    other => words(other, random),
                };
                rows = rows.iter().flat_map(|row| choices.iter().map(move |&c| [&row[..], &[c]].concat())).collect();
            }
            rows
        }
    }
}

/// The exact result where f64 has the function, else the CPU's.
fn truth(op: Op, args: &[Scalar]) -> f64 {
    let x = args[0].to_f64();
    let y = args.get(1).map_or(0.0, |y| y.to_f64());
    let gated = |gate: f64| if x == f64::NEG_INFINITY { -0.0 } else { x * gate };
    let exact = match op {
        _ if args[0].dtype() != DType::F32 => None,
        Op::Div => Some(x / y),
        Op::Sqrt => Some(x.sqrt()),
        Op::Rsqrt => Some(1.0 / x.sqrt()),
        Op::Reciprocal => Some(1.0 / x),
        Op::Pow => Some(x.powf(y)),
        Op::Exp => Some(x.exp()),
        Op::ExpM1 => Some(x.exp_m1()),
        Op::Log => Some(x.ln()),
        Op::Log2 => Some(x.log2()),
        Op::Log1p => Some(x.ln_1p()),
        Op::Sin => Some(x.sin()),
        Op::Cos => Some(x.cos()),
        Op::Tan => Some(x.tan()),
        Op::Tanh => Some(x.tanh()),
        Op::Erf => Some(libm::erf(x)),
        Op::Sigmoid => Some(1.0 / (1.0 + (-x).exp())),
        Op::Silu => Some(gated(1.0 / (1.0 + (-x).exp()))),
        Op::Gelu => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            Some(gated(1.0 / (1.0 + (-2.0 * u).exp())))
        }
        Op::GeluErf => Some(gated(0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2))),
        Op::Softplus if !x.is_nan() => Some(x.max(0.0) + (-x.abs()).exp().ln_1p()),
        _ => None,
    };
    exact.unwrap_or_else(|| op.fold(args).expect("the op has this signature").to_f64())
}

/// The distance of `got` from `truth` in ulps of the f32 nearest to `truth`; infinite where only one is NaN or the
/// infinities differ.
fn distance(got: f32, truth: f64) -> f64 {
    if truth.is_nan() || got.is_nan() {
        return if truth.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let nearest = truth as f32;
    if got == nearest && !got.is_finite() {
        return 0.0;
    }
    if !truth.is_finite() {
        return f64::INFINITY;
    }
    let wide = if got.is_infinite() { 2f64.powi(128).copysign(f64::from(got)) } else { f64::from(got) };
    let exponent = ((nearest.abs().to_bits() >> 23) as i32).clamp(1, 254);
    (wide - truth).abs() / 2f64.powi(exponent - 150)
}

/// The error of one result, less what a driver that flushes denormals may add to it.
fn error(op: Op, result: DType, args: &[Scalar], got: u32, flushes: bool) -> f64 {
    let exact = |args: &[Scalar]| {
        if result == DType::F32 {
            let (got, truth) = (f32::from_bits(got), truth(op, args));
            let near = (f64::from(got) - truth).abs() <= f64::from(tolerance::FLUSHED);
            return if flushes && near { 0.0 } else { distance(got, truth) };
        }
        let expected = op.fold(args).expect("the op has this signature").bits();
        if expected == got { 0.0 } else { f64::INFINITY }
    };
    let denormal = |a: &Scalar| a.dtype() == DType::F32 && f32::from_bits(a.bits()).is_subnormal();
    let flushed =
        |a: &Scalar| Scalar::from_bits(a.dtype(), if denormal(a) { a.bits() & 0x8000_0000 } else { a.bits() });
    let off = exact(args);
    if !(flushes && off > 0.0 && args.iter().any(denormal)) {
        return off;
    }
    // Any of the arguments may have been taken for 0.
    let choices = (1..1usize << args.len()).map(|chosen| {
        let choose = |(i, a): (usize, &Scalar)| if chosen >> i & 1 == 1 { flushed(a) } else { *a };
        exact(&args.iter().enumerate().map(choose).collect::<Vec<_>>())
    });
    choices.fold(off, f64::min)
}

/// The op's tolerance; integers and bools are exact.
fn allowed(op: Op, signature: &Signature) -> f64 {
    if signature.result == DType::F32 { f64::from(tolerance::ulp(op)) } else { 0.0 }
}

#[test]
fn every_op_holds_its_tolerance_on_every_driver() {
    let drivers = drivers();
    assert!(
        !drivers.is_empty(),
        "no adapter: install a driver (Debian: mesa-vulkan-drivers, libegl1, libgl1-mesa-dri)"
    );
    let mut failures = vec![];
    for driver in &drivers {
        let product = module(&Op::Mul.row().signatures[0]);
        let flushes = driver.run(&product, &[1e-40f32.to_bits(), 1f32.to_bits()], 1) == [0];
        eprintln!("{} {} denormals", driver.name, if flushes { "flushes" } else { "keeps" });
        for &op in Op::ALL {
            for signature in op.row().signatures {
                let rows = rows(signature);
                let got = driver.run(&module(signature), &rows.concat(), rows.len());
                let mut worst = (0.0, String::new());
                for (row, got) in rows.iter().zip(got) {
                    let args: Vec<Scalar> =
                        row.iter().zip(signature.args).map(|(&bits, &dtype)| Scalar::from_bits(dtype, bits)).collect();
                    let off = error(op, signature.result, &args, got, flushes);
                    if off > worst.0 {
                        let shown: Vec<String> = args.iter().map(Scalar::to_string).collect();
                        let result = Scalar::from_bits(signature.result, got);
                        let expected = truth(op, &args);
                        worst = (off, format!("({}) is {result}, not {expected:e}", shown.join(", ")));
                    }
                }
                let (off, place) = worst;
                let line = format!("{}: {} {:?} {off:.2} ulp {place}", driver.name, op.row().name, signature.args);
                if off > f64::from(op.row().ulp) {
                    eprintln!("{line}");
                }
                if off > allowed(op, signature) {
                    failures.push(line);
                }
            }
        }
    }
    assert!(failures.is_empty(), "beyond tolerance:\n{}", failures.join("\n"));
}

#[test]
fn index_arithmetic_rounds_down_on_every_driver() {
    const ARGS: &[DType] = &[DType::I32, DType::I32];
    let quotient = Signature { args: ARGS, result: DType::I32, wgsl: "div_floor({0}, {1})" };
    let remainder = Signature { args: ARGS, result: DType::I32, wgsl: "mod_floor({0}, {1})" };
    let divisors = [1, 2, 3, 7, 64, 65_535, 1 << 24, i32::MAX];
    let numbers = words(DType::I32, &mut Random(9));
    let rows: Vec<[i32; 2]> = numbers.iter().flat_map(|&a| divisors.map(|b| [a as i32, b])).collect();
    let words: Vec<u32> = rows.iter().flatten().map(|&v| v as u32).collect();
    for driver in drivers() {
        let quotients = driver.run(&module(&quotient), &words, rows.len());
        let remainders = driver.run(&module(&remainder), &words, rows.len());
        for ((&[a, b], q), r) in rows.iter().zip(quotients).zip(remainders) {
            let expected = (a.div_euclid(b), a.rem_euclid(b));
            assert_eq!((q as i32, r as i32), expected, "{a} by {b} on {}", driver.name);
        }
    }
}
