//! Kernels of the caller's own, on the real drivers of this machine.

use super::*;
use crate::backend::tests::{doubling, gpus, numbers};
use crate::memory::tests::{assert_works, on_device, rebuilt};
use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Made, Prepared, Resident, Source, Status};
use crossbeam_channel::bounded;
use std::time::Duration;

const SAXPY: &str = "
    struct Params { count: u32, a: f32 }
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @group(0) @binding(2) var<storage, read> params: Params;
    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < params.count) { y[id.x] = params.a * x[id.x] + y[id.x]; }
    }";

/// Adds 1 to every word.
const COUNT: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < arrayLength(&x)) { x[id.x] = x[id.x] + 1u; }
    }";

fn launch(gpu: &Gpu, source: &str, entry: &str, buffers: &[Arc<dyn Resident>]) -> Result<Timings, RunError> {
    gpu.launch(&Launch { source, entry, buffers, params: &[], workgroups: [1, 1, 1] })
}

fn memory(gpu: &Gpu, words: &[u32]) -> Arc<dyn Resident> {
    let value = gpu.allocate(4 * words.len()).expect("allocates");
    gpu.write(&value, 0, bytemuck::cast_slice(words)).expect("writes");
    value
}

fn words<T: bytemuck::Pod>(gpu: &Gpu, value: &Arc<dyn Resident>) -> Vec<T> {
    let mut bytes = vec![0; value.len_bytes()];
    gpu.read(value, 0, &mut bytes).expect("reads");
    bytemuck::pod_collect_to_vec(&bytes)
}

fn params(count: u32, a: f32) -> Vec<u8> {
    [count.to_ne_bytes(), a.to_ne_bytes()].concat()
}

#[test]
fn a_kernel_with_parameters_is_right_and_its_second_launch_compiles_nothing() {
    for gpu in gpus(&GpuConfig::default()) {
        let before = gpu.pool_stats();
        let x: Vec<f32> = numbers(1000);
        let floats = |v: &[f32]| memory(&gpu, bytemuck::cast_slice(v));
        let buffers = [floats(&x), floats(&vec![1.0; 1000])];
        let mut expected = vec![1.0f32; 1000];
        for (round, a) in [2.0f32, 0.5, -3.0].into_iter().enumerate() {
            let told = params(999, a);
            let saxpy =
                Launch { source: SAXPY, entry: "saxpy", buffers: &buffers, params: &told, workgroups: [16, 1, 1] };
            let counted = gpu.counters();
            let timings = gpu.launch(&saxpy).expect("launches");
            expected.iter_mut().zip(&x).take(999).for_each(|(y, x)| *y += a * x);
            assert_eq!(words::<f32>(&gpu, &buffers[1]), expected, "{}", gpu.info().name);
            assert_eq!(words::<f32>(&gpu, &buffers[0]), x);
            let counts = (timings.kernels, timings.dispatches, timings.passes, timings.submits, timings.upload_bytes);
            assert_eq!(counts, (1, 1, 1, 1, 8));
            assert!(timings.total_ns >= timings.submit_ns && timings.total_ns > 0);
            if round > 0 {
                assert_eq!(timings.created, 1, "a bind group, on {}", gpu.info().backend);
                assert_eq!(gpu.counters().created_pipelines, counted.created_pipelines);
            }
        }
        drop(buffers);
        let after = gpu.pool_stats();
        assert_eq!((after.in_use_bytes, after.padding_bytes), (before.in_use_bytes, before.padding_bytes));
        assert_eq!((gpu.counters().pending, gpu.health().status), (0, Status::Healthy), "{}", gpu.health().reason);
    }
}

#[test]
fn kernels_and_batches_hand_values_to_each_other() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(100);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let input = gpu.upload(bytemuck::cast_slice(&numbers(100))).expect("uploads");
        let (made, _) = prepared.run_batch(&[Source::Shared(&on_device(&input))], true).expect("runs");
        let [Made::Resident(doubled)] = &made[..] else { panic!("asked to stay") };
        let buffers = [input, doubled.clone()];
        let told = params(100, 10.0);
        gpu.launch(&Launch { source: SAXPY, entry: "saxpy", buffers: &buffers, params: &told, workgroups: [2, 1, 1] })
            .expect("launches");
        let (made, _) = prepared.run_batch(&[Source::Shared(&on_device(doubled))], false).expect("runs");
        let [Made::Host(host)] = &made[..] else { panic!("asked for on the host") };
        let expected: Vec<f32> = numbers(100).iter().map(|v| 24.0 * v).collect();
        assert_eq!(host.as_bytes(), bytemuck::cast_slice::<_, u8>(&expected), "{}", gpu.info().name);
    }
}

#[test]
fn a_kernel_sees_exactly_its_memory_in_whole_words() {
    for gpu in gpus(&GpuConfig::default()) {
        for (bytes, seen) in [(0usize, 1u32), (1, 1), (4, 1), (5, 2), (256, 64), (257, 65), (1000, 250)] {
            let buffers = [gpu.allocate(bytes).expect("allocates"), gpu.allocate(4).expect("allocates")];
            let source = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                 @group(0) @binding(1) var<storage, read_write> length: array<u32>;
                 @compute @workgroup_size(1) fn main() { length[0] = arrayLength(&x); x[1000000] = 7u; }";
            launch(&gpu, source, "main", &buffers).expect("launches");
            assert_eq!(words::<u32>(&gpu, &buffers[1]), [seen], "{bytes} on {}", gpu.info().backend);
        }
        // Nothing at all to bind, and one buffer as two: drivers may refuse that, but not die of it.
        launch(&gpu, "@compute @workgroup_size(1) fn main() { }", "main", &[]).expect("launches");
        let one = memory(&gpu, &[1, 2, 3]);
        let twice = [one.clone(), one];
        let source = format!("@group(0) @binding(1) var<storage, read_write> same: array<u32>; {COUNT}")
            .replace("x[id.x] + 1u", "same[id.x] + 1u");
        match launch(&gpu, &source, "main", &twice) {
            Ok(_) => assert_eq!(words::<u32>(&gpu, &twice[0]), [2, 3, 4]),
            Err(error) => assert!(matches!(error, RunError::Device { .. }), "{error}"),
        }
        assert_works(&gpu);
    }
}

#[test]
fn what_is_wrong_with_a_kernel_is_said_and_harms_nothing() {
    for gpu in gpus(&GpuConfig::default()) {
        let one = [memory(&gpu, &[41])];
        let in_use = gpu.pool_stats().in_use_bytes;
        let deep = COUNT.replace("1u", &format!("{}1u", "-".repeat(30_000)));
        let reads_only = COUNT.replace("read_write", "read").replace("x[id.x] = x[id.x] + 1u", "let y = x[id.x]");
        let texts: [(String, &str, &str); 13] = [
            (COUNT.replace("1u", "nonsense(1u)"), "main", "identifier: `nonsense`"),
            (COUNT.replace("1u", "true"), "main", "Operation Add can't work"),
            (COUNT.replace("x[id.x] + 1u", "1.5"), "main", "`{AbstractFloat}`"),
            ("fn".into(), "main", "expected identifier"),
            (String::new(), "main", "entry point 'main'"),
            (COUNT.into(), "other", "entry point 'other'"),
            (COUNT.into(), "", "entry point ''"),
            (COUNT.replace("binding(0)", "binding(1)"), "main", "Binding is missing"),
            (COUNT.replace("group(0)", "group(1)"), "main", "Binding is missing"),
            (reads_only, "main", "doesn't match the shader"),
            (COUNT.replace("size(64)", "size(64, 64)"), "main", "Workgroup size"),
            (COUNT.replace("1u", &format!("{}1u{}", "(".repeat(300), ")".repeat(300))), "main", "recursion limit"),
            (format!("enable f16; {COUNT}"), "main", "f16"),
        ];
        for (source, entry, said) in &texts {
            for _ in 0..2 {
                let error = launch(&gpu, source, entry, &one).expect_err(source);
                assert!(matches!(&error, RunError::Device { message, .. } if message.contains(said)), "{error}");
                assert!(!error.to_string().contains("Caused by"), "{error}");
            }
            assert_works(&gpu);
        }
        let error = launch(&gpu, &texts[0].0, "main", &one).expect_err("nonsense").to_string();
        let line = error.lines().find(|line| line.contains("nonsense(1u)")).expect("the line is shown");
        let below = error.lines().find(|line| line.contains("^^^^^^^^")).expect("and where in it");
        let column = |text: &str, what: &str| text[..text.find(what).expect("there")].chars().count();
        assert_eq!(column(line, "nonsense"), column(below, "^^^^^^^^"), "{error}");

        let sized = COUNT.replace("array<u32>", "array<u32, 8>").replace("arrayLength(&x)", "8u");
        let error = launch(&gpu, &sized, "main", &one).expect_err("too small");
        assert!(matches!(&error, RunError::Device { message, .. } if message.contains("expects 32")), "{error}");

        let many = vec![one[0].clone(); gpu.info().limits.bindings as usize + 1];
        let most = gpu.info().limits.groups;
        let all = |buffers, params, workgroups| Launch { source: COUNT, entry: "main", buffers, params, workgroups };
        let refused = [
            (all(&one, &[], [most + 1, 1, 1]), "workgroups in one dimension"),
            (all(&one, &[], [1, u32::MAX, 1]), "4294967295 workgroups"),
            (all(&one, &[], [1, 1, 0]), "0 workgroups"),
            (all(&one, &[1, 2, 3], [1, 1, 1]), "3 bytes"),
            (all(&many, &[], [1, 1, 1]), "buffers"),
            (all(&many[1..], &[0; 4], [1, 1, 1]), "buffers"),
            (Launch { source: &deep, ..all(&one, &[], [1, 1, 1]) }, "nests"),
        ];
        for (launch, said) in &refused {
            let error = gpu.launch(launch).expect_err(said);
            assert!(matches!(&error, RunError::Unsupported { why, .. } if why.contains(said)), "{error}");
            assert_works(&gpu);
        }

        assert_eq!(words::<u32>(&gpu, &one[0]), [41], "no kernel has run");
        launch(&gpu, COUNT, "main", &one).expect("launches");
        assert_eq!(words::<u32>(&gpu, &one[0]), [42]);
        gpu.compact().expect("compacts");
        assert_eq!((gpu.generation(), gpu.counters().pending), (0, 0));
        assert_eq!(gpu.pool_stats().in_use_bytes, in_use);
    }
}

#[test]
fn a_binding_that_is_too_large_and_memory_of_another_device_are_refused() {
    let adapters = Adapters::find(Api::ALL);
    assert!(!adapters.infos().is_empty(), "no adapter: {}", crate::driver_hint());
    for index in 0..adapters.infos().len() {
        let [one, other] = [0, 1].map(|_| adapters.open(index, &GpuConfig::default()).expect("opens"));
        let foreign = other.allocate(8).expect("allocates");
        let error = launch(&one, COUNT, "main", &[foreign]).expect_err("it lies elsewhere");
        assert!(matches!(&error, RunError::Unsupported { why, .. } if why.contains("another device")), "{error}");
        let limits = one.info().limits;
        // Where a binding may be as large as a gigabyte, memory of that size is not to be had for a test.
        if limits.binding_bytes < limits.buffer_bytes && limits.binding_bytes < 1 << 28 {
            let large = one.allocate(limits.binding_bytes as usize + 1).expect("allocates");
            let error = launch(&one, COUNT, "main", &[large]).expect_err("too large");
            assert!(matches!(&error, RunError::Unsupported { why, .. } if why.contains("buffer 0")), "{error}");
        }
        assert_works(&one);
    }
}

/// As high as `nesting` lets them be: a stack overflow would end all tests.
#[test]
fn the_deepest_texts_that_are_let_through_are_compiled() {
    for gpu in gpus(&GpuConfig::default()) {
        let one = [memory(&gpu, &[1])];
        let of = |value: String| COUNT.replace("x[id.x] + 1u", &value);
        let sum = of(format!("x[0]{}", " + x[0]".repeat(497)));
        launch(&gpu, &sum, "main", &one).expect("launches");
        assert_eq!(words::<u32>(&gpu, &one[0]), [498], "{}", gpu.info().name);
        launch(&gpu, &of(format!("{}x[0]", "~".repeat(496))), "main", &one).expect("launches");
        assert_eq!(words::<u32>(&gpu, &one[0]), [498]);
        let chain = "else if (x[0] == 1u) { x[0] = 7u; } ".repeat(500);
        let source = COUNT.replace("if (id.x", &format!("if (x[0] == 0u) {{ }} {chain} if (id.x"));
        launch(&gpu, &source, "main", &one).expect("launches");
        assert_eq!(words::<u32>(&gpu, &one[0]), [499]);
        assert_eq!(gpu.generation(), 0);
    }
}

#[test]
fn only_so_many_kernels_stay_compiled_and_the_oldest_goes() {
    for gpu in gpus(&GpuConfig::default()) {
        let one = [memory(&gpu, &[0])];
        let add =
            |number: usize| launch(&gpu, &COUNT.replace("1u", &format!("{number}u")), "main", &one).expect("runs");
        for number in 0..MOST {
            assert_eq!(add(number).created, 2);
        }
        assert_eq!(add(0).created, 1, "it is still there, and now the newest");
        assert_eq!(add(MOST).created, 2);
        assert_eq!((add(0).created, add(2).created), (1, 1));
        assert_eq!(add(1).created, 2, "it was the oldest");
        let (reply, answer) = bounded(1);
        let count = Command::Do(Box::new(move |owner: &mut Owner| reply.send(owner.kernels.len()).expect("awaited")));
        gpu.session.current().commands.send(count).expect("the owner lives");
        assert_eq!(answer.recv_timeout(Duration::from_secs(10)), Ok(MOST));
        let sum = (0..=MOST).sum::<usize>() + 3;
        assert_eq!(words::<u32>(&gpu, &one[0]), [sum as u32]);
    }
}

#[test]
fn a_destroyed_device_is_lost_and_launches_again() {
    for gpu in gpus(&GpuConfig::default()) {
        let old = [memory(&gpu, &[1])];
        launch(&gpu, COUNT, "main", &old).expect("launches");
        gpu.session.current().life.destroy.store(true, Relaxed);
        let error = launch(&gpu, COUNT, "main", &old).expect_err("the device is gone");
        assert!(matches!(error, RunError::Lost { .. }), "{error}");
        rebuilt(&gpu, 1);
        assert_eq!(launch(&gpu, COUNT, "main", &old), Err(RunError::Stale { device: gpu.id().into() }));
        let new = [memory(&gpu, &[1, 5])];
        assert_eq!(launch(&gpu, COUNT, "main", &new).expect("launches").created, 2);
        assert_eq!(words::<u32>(&gpu, &new[0]), [2, 6]);
        assert_works(&gpu);
        assert_eq!((gpu.generation(), gpu.counters().pending), (1, 0));
    }
}

#[test]
fn who_launches_from_many_threads_gets_every_launch() {
    for gpu in gpus(&GpuConfig::default()) {
        let shared = [memory(&gpu, &[0; 100])];
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let (gpu, shared) = (&gpu, &shared);
                let two = Launch { source: COUNT, entry: "main", buffers: shared, params: &[], workgroups: [2, 1, 1] };
                scope.spawn(move || {
                    for _ in 0..10 {
                        gpu.launch(&two).expect("launches");
                    }
                });
            }
        });
        assert_eq!(words::<u32>(&gpu, &shared[0]), [60; 100], "{}", gpu.info().name);
    }
}
