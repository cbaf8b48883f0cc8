//! Streams: parts of batches overlap, order and memory are kept, and what fails fails alone.

use crate::{alone, answered, at_least, doubling, engine, numbers, only};
use breakeven::{Api, Device, Engine, Error, Job, Program, QueueConfig, SimBackend, SimProfile, Tensor};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::gpu;
use breakeven_tests::hooked::simulated;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCHES: usize = 200;
const ON_GPU: [Device; 1] = [Device::Gpu(Some(0))];

/// One at a time / streamed, through the same queue, over so many batches.
fn ratio(engine: &Engine, program: &Program, elems: usize, batches: usize) -> f64 {
    let begun = Instant::now();
    for i in 0..batches {
        let job = Job::program(program, [numbers(i, elems)]).alone();
        assert_eq!(answered(engine.submit(job).unwrap()).unwrap()[0], 2.0 * i as f32);
    }
    let one_by_one = begun.elapsed();
    let begun = Instant::now();
    let mut count = 0;
    for (i, outputs) in program.stream((0..batches).map(|i| [numbers(i, elems)])).enumerate() {
        assert_eq!(outputs.unwrap()[0].as_slice::<f32>().unwrap()[0], 2.0 * i as f32);
        count += 1;
    }
    assert_eq!(count, batches);
    one_by_one.as_secs_f64() / begun.elapsed().as_secs_f64()
}

#[test]
fn a_stream_overlaps_the_parts_of_batches() {
    let _alone = alone();
    for name in ["rtx4090", "dx12-laptop"] {
        let sim = SimBackend::new("gpu:0", SimProfile::by_name(name).unwrap()).unwrap().paced(1.0).unwrap();
        let engine = only(&ON_GPU, vec![Arc::new(sim)]);
        let program = doubling(&engine, 1000);
        at_least(&format!("{name}: one at a time / streamed"), 1.2, || ratio(&engine, &program, 1000, BATCHES));
    }
}

#[test]
fn a_stream_over_lavapipe_is_not_slower() {
    let _alone = alone();
    let engine = only(&ON_GPU, vec![Arc::new(gpu(Api::Vulkan, &GpuConfig::default()))]);
    let program = doubling(&engine, 100_000);
    ratio(&engine, &program, 100_000, 10);
    // In turns: whether the driver's threads have a core each or share one changes what either way takes by a factor of two, and
    // stays so for a while.
    at_least("lavapipe: one at a time / streamed", 0.9, || {
        let mut turns: Vec<f64> = (0..9).map(|_| ratio(&engine, &program, 100_000, BATCHES / 8)).collect();
        turns.sort_by(f64::total_cmp);
        turns[4]
    });
}

#[test]
fn memory_is_bounded_whatever_the_length() {
    let _alone = alone();
    let sims = [simulated("gpu:0", 20.0).paced(1.0).unwrap(), simulated("gpu:1", 20.0)];
    // Three seats, one, and the CPU's; and one batch more.
    let devices = [Device::Cpu, Device::Gpu(Some(0)), Device::Gpu(Some(1))];
    let engine = only(&devices, sims.map(|sim| Arc::new(sim) as _).to_vec());
    let program = doubling(&engine, 16);
    let (taken, mut given, mut most) = (Cell::new(0usize), 0usize, 0);
    let inputs = (0..5_000).map(|i| {
        taken.set(taken.get() + 1);
        [numbers(i, 16)]
    });
    let mut stream = program.stream(inputs);
    assert_eq!(taken.get(), 0, "nothing is taken before somebody asks");
    for outputs in stream.by_ref() {
        assert_eq!(outputs.unwrap()[0].as_slice::<f32>().unwrap(), [2.0 * given as f32; 16]);
        given += 1;
        most = most.max(taken.get() - given);
    }
    assert_eq!((given, taken.get()), (5_000, 5_000));
    assert!((1..=5).contains(&most), "{most} inputs were taken ahead");
    assert!(stream.next().is_none() && engine.queue_stats().completed == 5_000);
}

#[test]
fn an_input_that_fails_gives_its_error_and_the_stream_goes_on() {
    let _alone = alone();
    let device = simulated("gpu:0", 5.0).paced(1.0).unwrap();
    let engine =
        engine(QueueConfig { devices: ON_GPU.to_vec(), ..QueueConfig::default() }, vec![Arc::new(device.clone())]);
    let x = Tensor::input("x", breakeven::DType::F32, [4]).unwrap();
    let at = Tensor::input("at", breakeven::DType::I32, [1]).unwrap();
    let program = engine.compile(&[&x, &at], &[&x.take(&at, 0).unwrap()]).unwrap();
    let inputs = (0..300).map(|i| {
        let index = Tensor::from_vec(vec![if i % 10 == 7 { 99 } else { i % 4 }], [1]).unwrap();
        match i % 10 {
            // Refused at the door.
            3 => vec![numbers(i as usize, 4)],
            _ => vec![numbers(i as usize, 4), index],
        }
    });
    for (i, outputs) in program.stream(inputs).enumerate() {
        if i == 100 {
            device.lose("in the middle");
        }
        if i == 200 {
            device.recover();
        }
        match (i % 10, outputs) {
            (3, Err(Error::Count { .. })) | (7, Err(Error::Failed { .. })) => {}
            (3 | 7, other) => panic!("{i}: {other:?}"),
            (_, outputs) => assert_eq!(outputs.unwrap()[0].as_slice::<f32>().unwrap(), [i as f32]),
        }
    }
    let stats = engine.queue_stats();
    assert_eq!((stats.submitted, stats.completed, stats.failed), (270, 240, 30), "{stats:?}");
}

/// A stream goes on without its engine, and whoever leaves it in the middle leaves nothing behind.
#[test]
fn a_stream_that_is_left_in_the_middle() {
    let _alone = alone();
    let engine = only(&ON_GPU, vec![Arc::new(simulated("gpu:0", 500.0).paced(1.0).unwrap())]);
    let program = doubling(&engine, 4);
    let mut stream = program.stream((0..1_000_000).map(|i| [numbers(i, 4)]));
    assert_eq!(stream.next().unwrap().unwrap()[0].as_slice::<f32>().unwrap(), [0.0; 4]);
    drop(engine);
    assert_eq!(stream.next().unwrap().unwrap()[0].as_slice::<f32>().unwrap(), [2.0; 4]);
    let begun = Instant::now();
    drop(stream);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(matches!(program.stream([[numbers(1, 4)]]).next(), Some(Err(Error::QueueClosed))));
}
