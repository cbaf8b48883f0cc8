//! Many large tasks on the real drivers of this machine.

use crate::{Adapters, Api, GpuConfig};
use breakeven_ir::backend::{Backend, Task};
use breakeven_ir::plan::Plan;
use breakeven_ir::{DType, Tensor};
use std::sync::Arc;

/// Small tasks before a large one: enough bytes for two threads, and the first task's turns are not the last one's.
#[test]
fn large_tasks_of_different_sizes_in_one_submission() -> Result<(), Box<dyn std::error::Error>> {
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
            assert_eq!((timings.submits, timings.passes, timings.uploads, timings.readbacks), (1, 1, 1, 1));
            assert!(timings.dispatches < sizes.len() as u32, "{} dispatches", timings.dispatches);
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
