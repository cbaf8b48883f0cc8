//! Small and large tasks as one batch on the real drivers of this machine: large ones may run alone, which nobody notices.

use breakeven::{Api, Config, DType, Device, Engine, Tensor, View};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::gpu;
use std::sync::Arc;

#[test]
fn small_and_large_tasks_are_one_batch() {
    // The second and the last one have more bytes than what software adapters put into one batch with others.
    let sizes = [10, 600_000, 300, 100_000, 700_000];
    for api in [Api::Vulkan, Api::Gl] {
        // Every batch is checked against the CPU as well.
        let config = Config { device: Device::Gpu(Some(0)), strict: true, verify: 1.0, ..Config::default() };
        let engine = Engine::with_backends(config, vec![Arc::new(gpu(api, &GpuConfig::default()))]).unwrap();
        let (x, y) = (Tensor::input("x", DType::F32, [4]).unwrap(), Tensor::input("y", DType::F32, [4]).unwrap());
        let (sum, product) = ((&x + &y).unwrap(), (&x * &y).unwrap());
        let program = engine.compile(&[&x, &y], &[&sum, &product, &sum]).unwrap();
        let values: Vec<(Vec<f32>, Vec<f32>)> =
            sizes.iter().map(|n| ((0..*n).map(|i| i as f32).collect(), vec![2.0; *n])).collect();
        let tasks: Vec<[View<'_>; 2]> = values.iter().map(|(x, y)| [x.into(), y.into()]).collect();
        let mut results = program.run_many(&tasks).unwrap();
        for _ in 0..2 {
            assert_eq!(results.failures().count(), 0);
            for (task, (x, _)) in values.iter().enumerate() {
                for (output, of) in [|x| x + 2.0, |x: f32| x * 2.0, |x| x + 2.0].into_iter().enumerate() {
                    let expected: Vec<f32> = x.iter().map(|x| of(*x)).collect();
                    assert_eq!(results.slice::<f32>(task, output).unwrap(), expected, "task {task}, output {output}");
                    assert_eq!(results.array(task, output).unwrap().to_vec::<f32>().unwrap(), expected);
                }
            }
            program.run_many_into(&tasks, &mut results).unwrap();
        }
    }
}
