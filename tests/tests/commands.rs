//! Low-level commands on the real drivers of this machine: memory, programs and kernels of one's own, through the queue.

use breakeven::{Answer, Api, Command, Config, DType, Device, Engine, Error, Job, Kernel, Memory, RunError, Tensor};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::gpu;
use std::sync::Arc;

const GPU: Device = Device::Gpu(Some(0));

fn engine(api: Api) -> Engine {
    let config = Config { device: Device::Cpu, ..Config::default() };
    Engine::with_backends(config, vec![Arc::new(gpu(api, &GpuConfig::default()))]).unwrap()
}

fn run(engine: &Engine, command: Command) -> Result<Answer, Error> {
    match engine.submit(Job::command(command))?.wait() {
        Err(Error::Failed { why }) => Err(*why),
        answer => answer,
    }
}

fn allocate(engine: &Engine, device: Device, bytes: usize) -> Memory {
    match run(engine, Command::Allocate { device, bytes }) {
        Ok(Answer::Memory(memory)) => memory,
        other => panic!("{other:?}"),
    }
}

fn write(engine: &Engine, memory: &Memory, values: &[f32]) {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    run(engine, Command::Write { memory: memory.clone(), offset: 0, data: data.into() }).unwrap();
}

fn read(engine: &Engine, memory: &Memory) -> Vec<f32> {
    match run(engine, Command::Read { memory: memory.clone(), offset: 0, bytes: memory.len_bytes() }) {
        Ok(Answer::Bytes(bytes)) => {
            bytes.chunks_exact(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn programs_and_kernels_share_memory_on_a_device() {
    const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if (id.x < arrayLength(&x)) { x[id.x] = x[id.x] * 2.0; }
        }";
    for api in [Api::Vulkan, Api::Gl] {
        let engine = engine(api);
        let x = Tensor::input("x", DType::F32, [100]).unwrap();
        let weights = Tensor::from_vec(vec![3.0f32; 100], [100]).unwrap();
        let program = engine.compile(&[&x], &[&(&x * &weights).unwrap()]).unwrap();
        let (input, output) = (allocate(&engine, GPU, 400), allocate(&engine, GPU, 400));
        assert_eq!(read(&engine, &output), [0.0; 100]);
        let values: Vec<f32> = (0..100).map(|i| i as f32).collect();
        write(&engine, &input, &values);
        let launch = |kernel, inputs: &[&Memory], outputs: &[&Memory]| {
            let list = |memories: &[&Memory]| memories.iter().map(|memory| (*memory).clone()).collect();
            run(&engine, Command::Launch { kernel, inputs: list(inputs), outputs: list(outputs) })
        };
        launch(Kernel::Program(program.clone()), &[&input], &[&output]).unwrap();
        launch(Kernel::wgsl(DOUBLE, "main", [2, 1, 1]), &[], &[&output]).unwrap();
        run(&engine, Command::Synchronize { device: GPU }).unwrap();
        assert_eq!(read(&engine, &output), values.iter().map(|x| x * 6.0).collect::<Vec<_>>());
        // What the program made can be its input.
        launch(Kernel::Program(program.clone()), &[&output], &[&input]).unwrap();
        assert_eq!(read(&engine, &input), values.iter().map(|x| x * 18.0).collect::<Vec<_>>());

        let here = allocate(&engine, Device::Cpu, 400);
        let refused = engine.submit(Job::command(Command::Launch {
            kernel: Kernel::Program(program),
            inputs: vec![here],
            outputs: vec![output.clone()],
        }));
        assert!(matches!(refused, Err(Error::Command { .. })));
        let wrong = launch(Kernel::wgsl("fn main() {", "main", [1; 3]), &[], &[&output]);
        assert!(matches!(&wrong, Err(Error::Run(RunError::Device { .. }))), "{wrong:?}");
        assert_eq!(read(&engine, &output)[1], 6.0);
        run(&engine, Command::Free { memory: output.clone() }).unwrap();
        assert_eq!(run(&engine, Command::Free { memory: output }).unwrap_err(), Error::Freed);
    }
}

#[test]
fn commands_of_one_producer_stay_in_order() {
    for api in [Api::Vulkan, Api::Gl] {
        let engine = engine(api);
        let memory = allocate(&engine, GPU, 4);
        let tickets: Vec<_> = (0..200u32)
            .flat_map(|value| {
                let data = value.to_ne_bytes().to_vec().into();
                let write = Command::Write { memory: memory.clone(), offset: 0, data };
                let read = Command::Read { memory: memory.clone(), offset: 0, bytes: 4 };
                [engine.submit(Job::command(write)).unwrap(), engine.submit(Job::command(read)).unwrap()]
            })
            .collect();
        let mut expected = 0u32;
        for ticket in tickets {
            if let Answer::Bytes(bytes) = ticket.wait().unwrap() {
                assert_eq!(bytes[..], expected.to_ne_bytes());
                expected += 1;
            }
        }
        assert_eq!(expected, 200);
    }
}
