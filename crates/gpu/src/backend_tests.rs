//! Hand-made stages on the real drivers of this machine.

use crate::stage::{Binding, Lowered, Slot, Stage, Turns};
use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Made, Prepared, RunError, Source, Status, Task};
use breakeven_ir::plan::{BufferId, Class, Plan};
use breakeven_ir::{Buffer, DType, Tensor};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Every device here. Without any the tests would prove nothing: they fail.
pub(crate) fn gpus(config: &GpuConfig) -> Vec<Gpu> {
    let adapters = Adapters::find(Api::ALL);
    let count = adapters.infos().len();
    assert!(count > 0, "no adapter: {}", crate::driver_hint());
    // Objects are counted here: nothing may be created in the background.
    let config = GpuConfig { tune: false, ..config.clone() };
    (0..count).map(|index| adapters.open(index, &config).expect("opens")).collect()
}

/// `y[i] = body(x[i])`, written by hand.
fn module(body: &str) -> Arc<str> {
    format!(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @group(0) @binding(2) var<storage, read> params: array<i32>;
         @compute @workgroup_size(64)
         fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_id) local: vec3<u32>) {{
             let task = i32(group.y + group.z * 65535u);
             if (task >= params[0]) {{ return; }}
             let at = 1 + task * 4;
             let end = params[at + 3];
             for (var i = params[at + 2] + i32(group.x * 64u + local.x); i < end; i += i32(groups.x * 64u)) {{
                 let v = x[params[at] + i];
                 y[params[at + 1] + i] = {body};
             }}
         }}"
    )
    .into()
}

fn stage(source: &Arc<str>, from: Slot, to: Slot, elems: usize) -> Stage {
    let binding = |slot, writes| Binding { slot, writes, element_bytes: 4, window: 0..elems };
    Stage {
        kernel: 0,
        class: Class::Map,
        source: source.clone(),
        bindings: vec![binding(from, false), binding(to, true)],
        params: vec![],
        units: elems as u64,
        group_units: 64,
        turns: Turns::once(64),
        work: elems as u64,
        run: None,
    }
}

fn buffer(id: u32) -> Slot {
    Slot::Buffer(BufferId(id))
}

/// A plan of one input and one output, and its stage.
pub(crate) fn doubling(elems: usize) -> (Arc<Plan>, Lowered) {
    let x = Tensor::input("x", DType::F32, [elems]).expect("shape");
    let plan = Arc::new(Plan::new(&[&(&x * 2.0).expect("times")]).expect("plan"));
    let stages = vec![stage(&module("v * 2.0"), buffer(0), buffer(1), elems)];
    (plan, Lowered { stages, ..Lowered::default() })
}

pub(crate) fn numbers(elems: usize) -> Vec<f32> {
    (0..elems).map(|i| i as f32 - 7.0).collect()
}

pub(crate) fn run(prepared: &dyn Prepared, x: &[f32]) -> Result<(Vec<f32>, breakeven_ir::backend::Timings), RunError> {
    let mut y = vec![0.0f32; x.len()];
    let timings = prepared.run(&[bytemuck::cast_slice(x)], &mut [bytemuck::cast_slice_mut(&mut y)], false)?;
    Ok((y, timings))
}

#[test]
fn a_stage_runs_and_the_second_run_creates_nothing() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(1000);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let x = numbers(1000);
        let doubled: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
        let (y, _) = run(&*prepared, &x).expect("runs");
        assert_eq!(y, doubled, "{}", gpu.info().name);
        assert!(gpu.wait_ready(&*prepared, Duration::from_secs(5)));
        for _ in 0..40 {
            let before = gpu.counters();
            let (y, timings) = run(&*prepared, &x).expect("runs");
            let after = gpu.counters();
            assert_eq!(y, doubled);
            assert_eq!(timings.created, 0, "{}", gpu.info().backend);
            let counts = (timings.submits, timings.passes, timings.dispatches, timings.uploads, timings.readbacks);
            assert_eq!(counts, (1, 1, 1, 1, 1));
            assert_eq!(after.created_buffers, before.created_buffers);
            assert_eq!(after.created_pipelines, before.created_pipelines);
            assert_eq!(after.created_bind_groups, before.created_bind_groups);
            assert_eq!(after.submits, before.submits + 1);
        }
        assert_eq!(gpu.health().status, Status::Healthy, "{}", gpu.health().reason);
    }
}

#[test]
fn tasks_of_different_sizes_share_a_dispatch() {
    for gpu in gpus(&GpuConfig::default()) {
        let sizes = [256usize, 300, 7, 1, 1000, 256];
        let plans: Vec<_> = sizes
            .iter()
            .map(|size| {
                let (plan, lowered) = doubling(*size);
                (gpu.plan_lowered(&plan, lowered).expect("prepares"), plan)
            })
            .collect();
        let inputs: Vec<Vec<f32>> = sizes.iter().map(|size| numbers(*size)).collect();
        let slices: Vec<[&[u8]; 1]> = inputs.iter().map(|x| [bytemuck::cast_slice(x)]).collect();
        let mut offset = 0;
        let tasks: Vec<Task<'_>> = plans
            .iter()
            .zip(&slices)
            .map(|((_, plan), inputs)| {
                let task = Task { plan, inputs, offset };
                offset += plan.result_stride();
                task
            })
            .collect();
        for round in 0..3 {
            let mut results = vec![0u8; offset];
            let timings = gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}")).expect("runs");
            assert_eq!((timings.submits, timings.dispatches, timings.uploads, timings.readbacks), (1, 1, 1, 1));
            assert!(round == 0 || timings.created == 0, "{} created", timings.created);
            for (task, x) in tasks.iter().zip(&inputs) {
                let y: Vec<f32> = bytemuck::pod_collect_to_vec(&results[task.offset..task.offset + 4 * x.len()]);
                assert_eq!(y, x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
            }
        }
    }
}

/// A chain of two kernels whose first result is an output that the second reads.
#[test]
fn what_is_released_is_not_in_use_any_more() {
    for gpu in gpus(&GpuConfig::default()) {
        let before = gpu.usage();
        let plan: Arc<Plan> =
            Plan::new(&[&Tensor::input("x", DType::F32, [1000]).unwrap().exp().unwrap()]).unwrap().into();
        let prepared = gpu.prepare(&plan).unwrap();
        run(&*prepared, &numbers(1000)).unwrap();
        let value = gpu.upload(&[7; 4096]).unwrap();
        gpu.release().unwrap();
        let kept = gpu.usage();
        assert!(kept.in_use_bytes >= before.in_use_bytes + 4096 && kept.is_idle(), "{kept:?} {before:?}");
        drop((value, prepared));
        gpu.release().unwrap();
        let after = gpu.usage();
        assert_eq!((after.in_use_bytes, after.reserved_bytes), (before.in_use_bytes, before.in_use_bytes), "{after:?}");
    }
}

#[test]
fn an_output_that_is_read_again_reaches_the_host_too() {
    for gpu in gpus(&GpuConfig::default()) {
        let x = Tensor::input("x", DType::F32, [100]).expect("shape");
        let y = (&x * 2.0).expect("times");
        let plan = Arc::new(Plan::unfused(&[&y, &(&y * 3.0).expect("times")]).expect("plan"));
        assert_eq!(plan.buffers.len(), 3, "{plan}");
        let stages = vec![
            stage(&module("v * 2.0"), buffer(0), buffer(1), 100),
            stage(&module("v * 3.0"), buffer(1), buffer(2), 100),
        ];
        let prepared = gpu.plan_lowered(&plan, Lowered { stages, ..Lowered::default() }).expect("prepares");
        let x = numbers(100);
        let input = Buffer::from_vec(x.clone());
        let (made, timings) = prepared.run_batch(&[Source::Shared(&input)], false).expect("runs");
        assert_eq!((timings.submits, timings.passes, timings.dispatches, timings.readbacks), (1, 1, 2, 1));
        for (made, factor) in made.iter().zip([2.0, 6.0]) {
            let Made::Host(buffer) = made else { panic!("asked for on the host") };
            let expected: Vec<f32> = x.iter().map(|v| v * factor).collect();
            assert_eq!(buffer.as_bytes(), bytemuck::cast_slice::<_, u8>(&expected));
        }
    }
}

#[test]
fn results_can_stay_and_feed_the_next_batch() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(500);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let x = numbers(500);
        let before = gpu.pool_stats();
        {
            let resident = gpu.upload(bytemuck::cast_slice(&x)).expect("uploads");
            struct OnDevice(Arc<dyn breakeven_ir::backend::Resident>);
            impl breakeven_ir::HostBytes for OnDevice {
                fn as_bytes(&self) -> &[u8] {
                    panic!("it must not be fetched")
                }
                fn resident(&self) -> Option<&Arc<dyn breakeven_ir::backend::Resident>> {
                    Some(&self.0)
                }
            }
            let mut input = Buffer::with_len(Arc::new(OnDevice(resident)), 2000);
            for _ in 0..3 {
                let (made, timings) = prepared.run_batch(&[Source::Shared(&input)], true).expect("runs");
                assert_eq!((timings.uploads, timings.readbacks, timings.upload_bytes), (0, 0, 0));
                let [Made::Resident(value)] = &made[..] else { panic!("asked to stay") };
                input = Buffer::with_len(Arc::new(OnDevice(value.clone())), 2000);
            }
            let fetched = input.resident().expect("there").fetch().expect("fetched");
            let expected: Vec<f32> = x.iter().map(|v| v * 8.0).collect();
            assert_eq!(fetched.as_bytes(), bytemuck::cast_slice::<_, u8>(&expected));
        }
        gpu.compact().expect("compacts");
        assert!(gpu.pool_stats().in_use_bytes <= before.in_use_bytes + 256, "{:?} {before:?}", gpu.pool_stats());
    }
}

/// Takes about as long as asked for: 60,000 turns of a loop an element stay below Mesa's cap.
pub(crate) fn slow(elems: usize) -> (Arc<Plan>, Lowered) {
    let (plan, mut lowered) = doubling(elems);
    let source = module("spin(v)").replace(
        "@compute",
        "fn spin(v: f32) -> f32 {
             var s = v;
             for (var k = 0; k < 60000; k++) { s = s * 0.999 + sin(s); }
             return s;
         }
         @compute",
    );
    lowered.stages[0].source = source.into();
    (plan, lowered)
}

#[test]
fn a_timeout_is_bounded_and_progress_forgives_it() {
    let config = GpuConfig { sync_timeout: Duration::from_millis(200), ..GpuConfig::default() };
    for gpu in gpus(&config) {
        let (plan, lowered) = doubling(64);
        let fast = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let (plan, lowered) = slow(8192);
        let slow = gpu.plan_lowered(&plan, lowered).expect("prepares");
        // GL compiles for longer than this test's timeout.
        assert!(gpu.wait_ready(&*fast, Duration::from_secs(30)) && gpu.wait_ready(&*slow, Duration::from_secs(30)));
        let begun = Instant::now();
        let error = run(&*slow, &numbers(8192)).map(|_| ()).expect_err("takes seconds");
        let waited = begun.elapsed();
        assert!(matches!(error, RunError::Timeout { .. }), "{error}");
        assert!(waited < Duration::from_millis(1500), "{waited:?}");
        assert_eq!((gpu.counters().timeouts, gpu.counters().pending), (1, 1));
        while gpu.counters().pending > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never ends");
            std::thread::sleep(Duration::from_millis(5));
        }
        // On a busy machine even this one may outlast 200 ms, which is no third strike yet.
        let done = (0..2).find_map(|_| run(&*fast, &numbers(64)).ok()).expect("runs");
        assert_eq!(done.0[63], 112.0);
        assert_eq!((gpu.generation(), gpu.session.current().life.strikes()), (0, 0));
    }
}

#[test]
fn a_destroyed_device_is_lost_rebuilt_and_right_again() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = slow(2048);
        let slow = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let (plan, lowered) = doubling(100);
        let fast = gpu.plan_lowered(&plan, lowered).expect("prepares");
        assert!(gpu.wait_ready(&*slow, Duration::from_secs(30)));
        let value = gpu.upload(&[1, 2, 3, 4]).expect("uploads");
        let destroyer = gpu.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            destroyer.destroy_for_test();
        });
        let outcome = run(&*slow, &numbers(2048)).map(|_| ());
        thread.join().expect("joins");
        let begun = Instant::now();
        // GL runs a dispatch inside of submit, so that its result may be there before the destruction is noticed.
        if gpu.info().backend == "vulkan" {
            assert!(matches!(outcome, Err(RunError::Lost { .. })), "{outcome:?}");
        }
        let mut right = false;
        while !right {
            assert!(begun.elapsed() < Duration::from_secs(10), "not rebuilt: {}", gpu.health().reason);
            right = match run(&*fast, &numbers(100)) {
                Ok((y, _)) => y[99] == 184.0 && gpu.generation() == 1,
                Err(RunError::Lost { .. }) => false,
                Err(error) => panic!("{error}"),
            };
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((gpu.generation(), gpu.counters().losses), (1, 1));
        assert!(!value.is_current());
        assert!(matches!(value.fetch(), Err(RunError::Stale { .. })));
        assert_eq!(gpu.health().status, Status::Warning, "{}", gpu.health().reason);
    }
}

#[test]
fn three_strikes_mean_lost_and_a_new_device_serves() {
    let config = GpuConfig { sync_timeout: Duration::from_millis(60), ..GpuConfig::default() };
    for gpu in gpus(&config) {
        let (plan, lowered) = doubling(64);
        let fast = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let (plan, lowered) = slow(8192);
        let slow = gpu.plan_lowered(&plan, lowered).expect("prepares");
        assert!(gpu.wait_ready(&*fast, Duration::from_secs(30)) && gpu.wait_ready(&*slow, Duration::from_secs(30)));
        for _ in 0..3 {
            assert_eq!(gpu.generation(), 0);
            let begun = Instant::now();
            let error = run(&*slow, &numbers(8192)).map(|_| ()).expect_err("takes seconds");
            assert!(matches!(error, RunError::Timeout { .. }), "{error}");
            assert!(begun.elapsed() < Duration::from_millis(600), "{:?}", begun.elapsed());
        }
        assert_eq!((gpu.generation(), gpu.counters().losses, gpu.counters().timeouts), (1, 1, 3));
        let begun = Instant::now();
        while run(&*fast, &numbers(64)).map_or(0.0, |(y, _)| y[63]) != 112.0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "{}", gpu.health().reason);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn what_can_not_be_had_is_a_typed_error() {
    for gpu in gpus(&GpuConfig::default()) {
        let x = Tensor::input("x", DType::F32, [250_000, 1_000_000]).expect("shape");
        let plan = Arc::new(Plan::new(&[&(&x * 2.0).expect("times")]).expect("plan"));
        let stages = vec![stage(&module("v * 2.0"), buffer(0), buffer(1), 250_000_000_000)];
        let huge = gpu.plan_lowered(&plan, Lowered { stages, ..Lowered::default() }).map(|_| ());
        assert!(matches!(huge, Err(RunError::OutOfMemory { bytes: 1_000_000_000_000 })), "{huge:?}");

        let (plan, mut lowered) = doubling(100);
        lowered.stages[0].source = module("v * nonsense(v)");
        let broken = gpu.plan_lowered(&plan, lowered).expect("prepares");
        for _ in 0..2 {
            let error = run(&*broken, &numbers(100)).map(|_| ()).expect_err("does not compile");
            assert!(matches!(&error, RunError::Device { message, .. } if message.contains("nonsense")), "{error}");
        }
        assert!(broken.is_ready(), "it answers at once");
        let (plan, lowered) = doubling(100);
        let good = gpu.plan_lowered(&plan, lowered).expect("prepares");
        assert_eq!(run(&*good, &numbers(100)).expect("runs").0[0], -14.0);
        assert_eq!(gpu.generation(), 0);
    }
}

#[test]
fn the_pool_returns_to_where_it_was() {
    for gpu in gpus(&GpuConfig::default()) {
        let (plan, lowered) = doubling(3000);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        run(&*prepared, &numbers(3000)).expect("runs");
        run(&*prepared, &numbers(3000)).expect("runs");
        let before = gpu.pool_stats();
        let input = Buffer::from_vec(numbers(3000));
        let held: Vec<_> =
            (0..5).map(|_| prepared.run_batch(&[Source::Shared(&input)], false).expect("runs")).collect();
        assert!(gpu.pool_stats().in_use_bytes > before.in_use_bytes);
        drop(held);
        run(&*prepared, &numbers(3000)).expect("runs");
        let after = gpu.pool_stats();
        assert_eq!((after.in_use_bytes, after.padding_bytes), (before.in_use_bytes, before.padding_bytes));
        gpu.compact().expect("compacts");
        let compacted = gpu.pool_stats();
        assert!(compacted.reserved_bytes < before.reserved_bytes, "{compacted:?} {before:?}");
        assert_eq!(run(&*prepared, &numbers(3000)).expect("runs").0[3], -8.0);
    }
}

#[test]
fn two_devices_on_one_adapter_from_eight_threads() {
    let adapters = Adapters::find(Api::ALL);
    for index in 0..adapters.infos().len() {
        let gpus = [0, 1].map(|_| adapters.open(index, &GpuConfig::default()).expect("opens"));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let gpu = &gpus[thread % 2];
                scope.spawn(move || {
                    let elems = 100 + 37 * thread;
                    let (plan, lowered) = doubling(elems);
                    let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
                    for round in 0..25 {
                        let x: Vec<f32> = (0..elems).map(|i| (i * round + thread) as f32).collect();
                        let (y, _) = run(&*prepared, &x).expect("runs");
                        assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
                    }
                });
            }
        });
        for gpu in &gpus {
            assert_eq!((gpu.counters().pending, gpu.generation()), (0, 0));
        }
    }
}

#[test]
fn long_work_is_cut_and_right() {
    let config = GpuConfig { dispatch_limit: Duration::from_millis(20), ..GpuConfig::default() };
    for gpu in gpus(&config) {
        let elems = 3_000_000;
        let (plan, lowered) = doubling(elems);
        let prepared = gpu.plan_lowered(&plan, lowered).expect("prepares");
        let x = numbers(elems);
        let (y, timings) = run(&*prepared, &x).expect("runs");
        assert!(timings.submits > 1, "{timings:?}");
        assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
    }
}
