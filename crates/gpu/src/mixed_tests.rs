//! Many large tasks on the real drivers of this machine.

use crate::adapters::Kind;
use crate::{Adapters, Api, GpuConfig};
use breakeven_ir::backend::{Backend, Task};
use breakeven_ir::plan::Plan;
use breakeven_ir::{DType, Tensor};
use std::sync::Arc;

/// Small tasks before a large one: enough bytes for two threads, and the first task's turns are not the last one's. Software reads
/// them from its caches: there they are in four submissions, the third and the fourth one together.
#[test]
fn large_tasks_of_different_sizes_in_few_submissions() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = [16_384usize, 262_144, 49_153, 131_072, 262_144];
    let mut plans = Vec::new();
    for elems in sizes {
        let (x, y) = (Tensor::input("x", DType::I32, [elems])?, Tensor::input("y", DType::I32, [elems])?);
        plans.push(Arc::new(Plan::new(&[&(&x - &y)?, &(&x * 3)?])?));
    }
    let numbers = |elems: usize, from: i32| (from..from + elems as i32).collect::<Vec<i32>>();
    let inputs: Vec<[Vec<i32>; 2]> = sizes.iter().zip(1..).map(|(n, t)| [numbers(*n, 7 * t), numbers(*n, t)]).collect();
    let slices: Vec<[&[u8]; 2]> =
        inputs.iter().map(|[x, y]| [bytemuck::cast_slice(x), bytemuck::cast_slice(y)]).collect();
    let (mut offset, mut tasks) = (0, Vec::new());
    for (plan, inputs) in plans.iter().zip(&slices) {
        tasks.push(Task { plan, inputs, offset });
        offset += plan.result_stride();
    }
    let adapters = Adapters::find(Api::ALL);
    assert!(!adapters.infos().is_empty(), "no adapter: {}", crate::driver_hint());
    for index in 0..adapters.infos().len() {
        let gpu = adapters.open(index, &GpuConfig { tune: false, ..GpuConfig::default() })?;
        for round in 0..2 {
            let mut results = vec![0u8; offset];
            let timings = gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))?;
            let submits = if adapters.infos()[index].kind == Kind::Software { 4 } else { 1 };
            assert_eq!((timings.submits, timings.passes), (submits, submits));
            assert_eq!((timings.uploads, timings.readbacks), (submits, submits));
            assert_eq!(timings.dispatches, 2 * submits, "tasks share the dispatches of both kernels");
            assert!(round == 0 || timings.created == 0, "{} created", timings.created);
            for (task, [x, y]) in tasks.iter().zip(&inputs) {
                let at = |from: usize| bytemuck::pod_collect_to_vec::<u8, i32>(&results[from..from + 4 * x.len()]);
                assert!(at(task.offset).iter().zip(x.iter().zip(y)).all(|(found, (x, y))| *found == x - y));
                let second = task.offset + (4 * x.len()).next_multiple_of(64);
                assert!(at(second).iter().zip(x).all(|(found, x)| *found == 3 * x));
            }
        }
    }
    Ok(())
}

/// Tasks whose elements are each computed from those at their own place are one task over all of their memory, whatever their
/// sizes; others, and those with other constants, are not.
#[test]
fn elementwise_tasks_of_any_size_are_one_run() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = [256usize, 2, 0, 7, 1000, 33, 5000, 256];
    let over = |make: &dyn Fn(&Tensor, usize) -> breakeven_ir::Result<Tensor>| {
        sizes
            .iter()
            .enumerate()
            .map(|(number, elems)| {
                let x = Tensor::input("x", DType::I32, [*elems])?;
                Ok(Arc::new(Plan::new(&[&make(&x, number)?, &x.gt(500)?])?))
            })
            .collect::<breakeven_ir::Result<Vec<Arc<Plan>>>>()
    };
    // Plans, what they compute of an element, its place and the task's number, and whether that is one run. Of those that
    // count their own elements some may share a dispatch as tasks of a grid: their results would be wrong as one run.
    type Case = (Vec<Arc<Plan>>, fn(i32, usize, usize) -> i32, Option<bool>);
    let cases: [Case; 3] = [
        (over(&|x, _| x * 3)?, |x, _, _| x * 3, Some(true)),
        (over(&|x, number| x + (number % 2) as i32)?, |x, _, number| x + (number % 2) as i32, Some(false)),
        (over(&|x, _| x + Tensor::arange(0, x.shape().elems() as i32, 1)?)?, |x, at, _| x + at as i32, None),
    ];
    let inputs: Vec<Vec<i32>> = sizes.iter().zip(1..).map(|(n, from)| (from..from + *n as i32).collect()).collect();
    let slices: Vec<[&[u8]; 1]> = inputs.iter().map(|x| [bytemuck::cast_slice(x)]).collect();
    let adapters = Adapters::find(Api::ALL);
    assert!(!adapters.infos().is_empty(), "no adapter: {}", crate::driver_hint());
    for index in 0..adapters.infos().len() {
        let gpu = adapters.open(index, &GpuConfig { tune: false, ..GpuConfig::default() })?;
        for (plans, expected, is_one) in &cases {
            let (mut offset, mut tasks) = (0, Vec::new());
            for (plan, inputs) in plans.iter().zip(&slices) {
                tasks.push(Task { plan, inputs, offset });
                offset += plan.result_stride();
            }
            let mut results = vec![0u8; offset];
            let timings = gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))?;
            let kernels = plans[0].kernels.len() as u32;
            let found = timings.dispatches == kernels;
            assert!(is_one.is_none_or(|is_one| is_one == found), "{} dispatches", timings.dispatches);
            for (number, (task, x)) in tasks.iter().zip(&inputs).enumerate() {
                let end = task.offset + 4 * x.len();
                let found: Vec<i32> = bytemuck::pod_collect_to_vec(&results[task.offset..end]);
                let wanted: Vec<i32> = x.iter().enumerate().map(|(at, x)| expected(*x, at, number)).collect();
                assert_eq!(found, wanted, "task {number}");
                let bools = &results[end.next_multiple_of(64)..][..x.len()];
                assert!(bools.iter().zip(x).all(|(found, x)| *found == u8::from(*x > 500)), "bools of task {number}");
            }
        }
    }
    Ok(())
}

/// Large results stay where the device has put them for as long as somebody reads them, small ones are copied.
#[test]
fn large_results_are_left_in_place() -> Result<(), Box<dyn std::error::Error>> {
    let adapters = Adapters::find(Api::ALL);
    assert!(!adapters.infos().is_empty(), "no adapter: {}", crate::driver_hint());
    for index in 0..adapters.infos().len() {
        let gpu = adapters.open(index, &GpuConfig { tune: false, ..GpuConfig::default() })?;
        for (sizes, is_large) in [([16_384usize, 65_537, 40_000], true), ([10, 0, 16], false)] {
            let (mut plans, mut inputs) = (Vec::new(), Vec::new());
            for elems in sizes {
                let x = Tensor::input("x", DType::I32, [elems])?;
                plans.push(Arc::new(Plan::new(&[&(&x * 3)?, &(&x + 7)?])?));
                inputs.push((0..elems as i32).collect::<Vec<i32>>());
            }
            let slices: Vec<[&[u8]; 1]> = inputs.iter().map(|x| [bytemuck::cast_slice(x)]).collect();
            let (mut offset, mut tasks) = (0, Vec::new());
            for (plan, inputs) in plans.iter().zip(&slices) {
                tasks.push(Task { plan, inputs, offset });
                offset += plan.result_stride();
            }
            let (mut results, mut left) = (vec![0u8; offset], Vec::new());
            // What the plans themselves keep is there after a first run.
            gpu.run_mixed(&tasks, &mut results, &mut |_, error| panic!("{error}"))?;
            let before = gpu.pool_stats().in_use_bytes;
            gpu.run_mixed_in_place(&tasks, &mut results, &mut |_, error| panic!("{error}"), &mut |task, buffers| {
                left.push((task, buffers));
            })?;
            left.sort_by_key(|(task, _)| *task);
            let numbers: Vec<usize> = left.iter().map(|(task, _)| *task).collect();
            assert_eq!(numbers, if is_large { vec![0, 1, 2] } else { Vec::new() });
            for (number, (task, x)) in tasks.iter().zip(&inputs).enumerate() {
                let mut at = task.offset;
                for (output, expected) in [|x: i32| 3 * x, |x: i32| x + 7].into_iter().enumerate() {
                    let bytes = 4 * x.len();
                    let found = match left.get(number) {
                        Some((_, buffers)) => buffers[output].try_bytes()?,
                        None => &results[at..at + bytes],
                    };
                    let found: Vec<i32> = bytemuck::pod_collect_to_vec(found);
                    assert!(found.len() == x.len() && found.iter().zip(x).all(|(found, x)| *found == expected(*x)));
                    at += bytes.next_multiple_of(64);
                }
            }
            // What a device keeps for itself is far less.
            let in_use = || gpu.pool_stats().in_use_bytes >= before + (256 << 10);
            assert_eq!(in_use(), is_large, "somebody reads them");
            drop(left);
            assert!(!in_use(), "nobody does");
        }
    }
    Ok(())
}
