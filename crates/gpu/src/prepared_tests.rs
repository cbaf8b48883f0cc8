//! Plans from recording to results, on the real drivers of this machine.

use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::{Backend, Prepared, RunError, Task};
use breakeven_ir::plan::Plan;
use breakeven_ir::{DType, Tensor};
use std::sync::Arc;

fn gpus() -> Vec<Gpu> {
    let adapters = Adapters::find(Api::ALL);
    let count = adapters.infos().len();
    assert!(count > 0, "no adapter: {}", crate::driver_hint());
    let config = GpuConfig { tune: false, ..GpuConfig::default() };
    (0..count).map(|index| adapters.open(index, &config).expect("opens")).collect()
}

fn run(gpu: &Gpu, outputs: &[&Tensor], inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>, RunError> {
    let plan = Arc::new(Plan::new(outputs).expect("plan"));
    let prepared = gpu.prepare(&plan)?;
    let mut results: Vec<Vec<u8>> = plan.output_buffers().map(|info| vec![0; info.bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    let timings = prepared.run(inputs, &mut slices, false)?;
    assert_eq!((timings.submits, timings.passes, timings.readbacks), (1, 1, 1));
    Ok(results)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(bytes)
}

fn close(found: &[u8], expected: &[f32]) {
    let found = floats(found);
    assert_eq!(found.len(), expected.len());
    let near = |(f, e): (&f32, &f32)| (f - e).abs() <= 1e-4 * e.abs().max(1.0);
    assert!(found.iter().zip(expected).all(near), "{found:?} {expected:?}");
}

#[test]
fn kernels_of_every_class() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let x: Vec<f32> = (0..12 * 40).map(|i| (i % 23) as f32 * 0.3 - 2.0).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&x);
        let input = Tensor::input("x", DType::F32, [12, 40])?;
        let rows = || x.chunks(40);

        let y = run(&gpu, &[&(&(&input * 2.0)? + 1.0)?.relu()?], &[bytes])?;
        close(&y[0], &x.iter().map(|v| (v * 2.0 + 1.0).max(0.0)).collect::<Vec<_>>());

        let y = run(&gpu, &[&input.softmax(-1)?], &[bytes])?;
        let softmax = |row: &[f32]| {
            let sum: f32 = row.iter().map(|v| v.exp()).sum();
            row.iter().map(|v| v.exp() / sum).collect::<Vec<_>>()
        };
        close(&y[0], &rows().flat_map(softmax).collect::<Vec<_>>());

        let y = run(&gpu, &[&input.sum(&[1], false)?, &input.sum(&[0, 1], false)?], &[bytes])?;
        close(&y[0], &rows().map(|row| row.iter().sum()).collect::<Vec<_>>());
        close(&y[1], &[x.iter().sum()]);

        let y = run(&gpu, &[&input.matmul(&input.transpose()?)?], &[bytes])?;
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        close(&y[0], &rows().flat_map(|a| rows().map(move |b| dot(a, b))).collect::<Vec<_>>());

        let y = run(&gpu, &[&input.matmul(&input.transpose()?)?.softmax(-1)?], &[bytes])?;
        assert_eq!(floats(&y[0]).len(), 144);
        close(bytemuck::bytes_of(&floats(&y[0])[..12].iter().sum::<f32>()), &[1.0]);
    }
    Ok(())
}

#[test]
fn tasks_of_different_sizes_through_the_planner() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let plan = |elems: usize| -> Result<Arc<Plan>, breakeven_ir::Error> {
            Ok(Arc::new(Plan::new(&[&Tensor::input("x", DType::F32, [elems])?.relu()?.exp()?])?))
        };
        let sizes = [256usize, 1, 7, 300, 256, 999];
        let plans = sizes.iter().map(|size| plan(*size)).collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<Vec<f32>> =
            sizes.iter().map(|size| (0..*size).map(|i| (i % 9) as f32 - 4.0).collect()).collect();
        let slices: Vec<[&[u8]; 1]> = inputs.iter().map(|x| [bytemuck::cast_slice(x)]).collect();
        let mut offset = 0;
        let mut tasks = Vec::new();
        for (plan, inputs) in plans.iter().zip(&slices) {
            tasks.push(Task { plan, inputs, offset });
            offset += plan.result_stride();
        }
        for _ in 0..2 {
            let mut results = vec![0u8; offset];
            let timings = gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))?;
            assert_eq!(timings.submits, 1);
            for (task, x) in tasks.iter().zip(&inputs) {
                let expected: Vec<f32> = x.iter().map(|v| v.max(0.0).exp()).collect();
                close(&results[task.offset..task.offset + 4 * x.len()], &expected);
            }
        }
    }
    Ok(())
}

#[test]
fn a_gather_that_leaves_its_axis_is_told() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let (x, at) = (Tensor::input("x", DType::F32, [5])?, Tensor::input("at", DType::I32, [3])?);
        let plan = Arc::new(Plan::new(&[&x.take(&at, 0)?])?);
        let prepared = gpu.prepare(&plan)?;
        let data = [1.0f32, 2.0, 3.0, 4.0, 5.0];
        let take = |indices: [i32; 3]| {
            let mut y = [0.0f32; 3];
            let inputs: [&[u8]; 2] = [bytemuck::cast_slice(&data), bytemuck::cast_slice(&indices)];
            prepared.run(&inputs, &mut [bytemuck::cast_slice_mut(&mut y)], false).map(|_| y)
        };
        assert_eq!(take([4, 0, -1]), Ok([5.0, 1.0, 5.0]));
        assert_eq!(take([0, 7, 1]), Err(RunError::TakeIndex { index: 7, extent: 5 }));
        assert_eq!(take([2, 2, 2]), Ok([3.0, 3.0, 3.0]));
        // Among many, only the one that is wrong fails.
        let indices = [[0, 1, 2], [3, 9, 3], [4, 4, 4]];
        let inputs: Vec<[&[u8]; 2]> =
            indices.iter().map(|at| [bytemuck::cast_slice(&data[..]), bytemuck::cast_slice(&at[..])]).collect();
        let task = |number: usize| Task { plan: &plan, inputs: &inputs[number], offset: 64 * number };
        let (mut results, mut failures) = (vec![0u8; 192], Vec::new());
        gpu.run_mixed(&[task(0), task(1), task(2)], &mut results, &mut |t, error| failures.push((t, error)))?;
        assert_eq!(failures, [(1, RunError::TakeIndex { index: 9, extent: 5 })]);
        close(&results[..12], &[1.0, 2.0, 3.0]);
        close(&results[128..140], &[5.0, 5.0, 5.0]);
    }
    Ok(())
}

/// An output that a later kernel reads lies apart and is copied into the results: for all tasks at once.
#[test]
fn tasks_with_outputs_that_are_read_again() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let plan = |rows: usize| -> Result<Arc<Plan>, breakeven_ir::Error> {
            let y = Tensor::input("x", DType::F32, [rows, 8])?.exp()?;
            Ok(Arc::new(Plan::unfused(&[&y, &y.sum(&[1], false)?])?))
        };
        let sizes = [3usize, 40, 1];
        let plans = sizes.iter().map(|rows| plan(*rows)).collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<Vec<f32>> = sizes.iter().map(|rows| (0..8 * rows).map(|i| (i % 5) as f32).collect()).collect();
        let slices: Vec<[&[u8]; 1]> = inputs.iter().map(|x| [bytemuck::cast_slice(x)]).collect();
        let (mut offset, mut tasks) = (0, Vec::new());
        for (plan, inputs) in plans.iter().zip(&slices) {
            tasks.push(Task { plan, inputs, offset });
            offset += plan.result_stride();
        }
        let mut results = vec![0u8; offset];
        let timings = gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))?;
        assert_eq!((timings.submits, timings.passes, timings.readbacks), (1, 1, 1));
        for (task, x) in tasks.iter().zip(&inputs) {
            let y: Vec<f32> = x.iter().map(|v| v.exp()).collect();
            close(&results[task.offset..task.offset + 4 * y.len()], &y);
            let sums: Vec<f32> = y.chunks(8).map(|row| row.iter().sum()).collect();
            let at = task.offset + (4 * y.len()).next_multiple_of(64);
            close(&results[at..at + 4 * sums.len()], &sums);
        }
    }
    Ok(())
}

#[test]
fn what_is_too_large_is_refused() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let x = Tensor::input("x", DType::F32, [250_000, 1_000_000])?;
        let refused = gpu.prepare(&Arc::new(Plan::new(&[&(&x * 2.0)?])?)).map(|_| ()).expect_err("10^12 bytes");
        assert!(matches!(refused, RunError::OutOfMemory { .. } | RunError::Unsupported { .. }), "{refused}");
    }
    Ok(())
}

#[test]
fn nothing_is_a_result_too() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let x = Tensor::input("x", DType::F32, [0])?;
        let prepared = gpu.prepare(&Arc::new(Plan::new(&[&x.exp()?])?))?;
        prepared.run(&[&[]], &mut [&mut []], false)?;
        let sum = Arc::new(Plan::new(&[&x.sum(&[0], false)?])?);
        let mut y = [1.0f32];
        gpu.prepare(&sum)?.run(&[&[]], &mut [bytemuck::cast_slice_mut(&mut y)], false)?;
        assert_eq!(y, [0.0]);
        let (at, five) = (Tensor::input("x", DType::F32, [3])?, Tensor::input("y", DType::F32, [3])?);
        let yes =
            run(&gpu, &[&at.gt(&five)?], &[bytemuck::bytes_of(&[1.0f32, 5.0, 2.0]), bytemuck::bytes_of(&[3.0f32; 3])])?;
        assert_eq!(yes[0], [0, 1, 0]);
    }
    Ok(())
}

#[test]
fn buffers_larger_than_a_binding_are_seen_through_windows() -> Result<(), Box<dyn std::error::Error>> {
    let x: Vec<f32> = (0..64 * 100).map(|i| (i % 37) as f32 * 0.25 - 3.0).collect();
    let input = Tensor::input("x", DType::F32, [64, 100])?;
    let shifted = (&input.flip(&[1])? + &input)?;
    let plan = Arc::new(Plan::new(&[&shifted.tanh()?, &input.sum(&[1], false)?])?);
    for gpu in gpus() {
        // The device may bind the whole buffer of 25,600 bytes; here it must not.
        let small = crate::stage::Limits { binding_bytes: 8192, ..gpu.session.limits() };
        let variants = crate::stage::Variants::default();
        let lowered = crate::lower::lower(&plan, &small, &variants).map_err(|why| why.0)?;
        let windows = || lowered.stages.iter().flat_map(|stage| &stage.bindings);
        assert!(windows().all(|b| (b.window.len() * b.element_bytes) as u64 <= small.binding_bytes));
        assert!(windows().any(|b| b.window.start > 0), "nothing was cut");
        let prepared = gpu.plan_lowered(&plan, lowered)?;
        let (mut moved, mut sums) = (vec![0u8; 25_600], vec![0u8; 256]);
        prepared.run(&[bytemuck::cast_slice(&x)], &mut [&mut moved, &mut sums], false)?;
        let row = |i: usize| &x[i / 100 * 100..i / 100 * 100 + 100];
        let expected: Vec<f32> = (0..6400).map(|i| (x[i] + row(i)[99 - i % 100]).tanh()).collect();
        close(&moved, &expected);
        close(&sums, &x.chunks(100).map(|row| row.iter().sum()).collect::<Vec<f32>>());
    }
    Ok(())
}

#[test]
fn each_kernel_is_timed_by_the_device() -> Result<(), Box<dyn std::error::Error>> {
    for gpu in gpus() {
        let input = Tensor::input("x", DType::F32, [128, 128])?;
        // A product of 2 million multiply-adds, and a softmax of 16 thousand elements.
        let plan = Arc::new(Plan::new(&[&input.matmul(&input)?.softmax(-1)?])?);
        assert_eq!(plan.kernels.len(), 2);
        let prepared = gpu.prepare(&plan)?;
        assert_eq!(prepared.kernel_ns(), [0, 0], "nothing has run");
        let (x, mut y) = (vec![0.01f32; 128 * 128], vec![0f32; 128 * 128]);
        // Some runs are timed: one of sixteen, whatever ran before on this device.
        let mut device_ns = 0;
        for _ in 0..16 {
            let timings = prepared.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)], false)?;
            device_ns = device_ns.max(timings.device_ns);
        }
        let [product, softmax] = prepared.kernel_ns()[..] else { panic!("two kernels have two times") };
        assert!(product > 0 && softmax > 0 && product + softmax <= device_ns, "{product} + {softmax}: {device_ns}");
    }
    Ok(())
}

#[test]
fn turns_leave_workgroups_for_every_core() {
    let map = crate::stage::MapVariant { workgroup: 64, points: 4, turns: 16 };
    assert_eq!([1, 64 * 64, 64 * 128, 64 * 1024, 1 << 30].map(|units| map.turns(units, 64)), [1, 1, 2, 16, 16]);
}

#[test]
fn more_workgroups_than_a_dispatch_may_have() -> Result<(), Box<dyn std::error::Error>> {
    // One point an invocation, 64 invocations a workgroup: one element past 65,536 workgroups.
    let n = 65_536 * 64 + 1;
    let x: Vec<u32> = (0..n as u32).collect();
    let plan = Arc::new(Plan::new(&[&(&Tensor::input("x", DType::U32, [n])? + 7u32)?])?);
    let map = crate::stage::MapVariant { workgroup: 64, points: 1, turns: 1 };
    let variants = crate::stage::Variants { map, ..crate::stage::Variants::default() };
    for gpu in gpus() {
        let lowered = crate::lower::lower(&plan, &gpu.session.limits(), &variants).map_err(|why| why.0)?;
        assert!(lowered.stages[0].units.div_ceil(u64::from(lowered.stages[0].group_units)) > 65_535);
        let prepared = gpu.plan_lowered(&plan, lowered)?;
        let mut y = vec![0u32; n];
        prepared.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)], false)?;
        assert!(y.iter().zip(&x).all(|(y, x)| *y == x + 7));
    }
    Ok(())
}
