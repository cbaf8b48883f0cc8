//! `Engine::transfers` on the real drivers of this machine, on devices that move nothing, and with arguments that make no
//! sense.

use breakeven::{Api, Config, Direction, Engine, Error, RunError, SimBackend, SimProfile, Way};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::gpu;
use std::sync::Arc;

#[test]
fn every_device_times_its_ways_over_sizes() {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        let engine = Engine::with_backends(Config::default(), vec![Arc::new(gpu)]).unwrap();
        for bytes in [4 << 10, 4 << 20] {
            let found = engine.transfers("gpu:0", bytes, 5).unwrap();
            let of = |direction, way| found.iter().filter(|t| (t.direction, t.way) == (direction, way)).count();
            assert_eq!((of(Direction::Upload, Way::Pageable), of(Direction::Upload, Way::Staged)), (1, 1));
            assert_eq!((of(Direction::Readback, Way::Pageable), of(Direction::Readback, Way::Staged)), (0, 1));
            // Memory that the host sees is seen both ways.
            assert_eq!(of(Direction::Upload, Way::Mapped), of(Direction::Readback, Way::Mapped));
            for transfer in &found {
                assert_eq!((transfer.bytes, transfer.samples_ns.len()), (bytes, 5), "{transfer:?}");
                assert!(transfer.min_ns() > 0 && transfer.min_ns() <= transfer.median_ns(), "{transfer:?}");
            }
        }
    }
}

#[test]
fn the_cpu_and_devices_that_are_not_there_have_none() {
    let profile = SimProfile::load("rtx4090").unwrap();
    let device = SimBackend::new("gpu:0", profile).unwrap();
    let engine = Engine::with_backends(Config::default(), vec![Arc::new(device)]).unwrap();
    assert_eq!(engine.transfers("cpu", 4096, 3), Ok(Vec::new()));
    assert_eq!(engine.transfers("gpu:0", 4096, 3), Ok(Vec::new()));
}

#[test]
fn arguments_that_make_no_sense_are_errors() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let engine = Engine::with_backends(Config::default(), vec![Arc::new(gpu)]).unwrap();
    for (device, bytes, samples, name) in
        [("gpu:0", 0, 3, "bytes"), ("cpu", 4096, 0, "samples"), ("tpu", 4096, 3, "device"), ("auto", 4096, 3, "device")]
    {
        let error = engine.transfers(device, bytes, samples).unwrap_err();
        assert!(matches!(&error, Error::Setting { name: found, .. } if *found == name), "{error}");
    }
    let error = engine.transfers("gpu:7", 4096, 3).unwrap_err();
    assert!(matches!(error, Error::NoDevice { found: 1, .. }), "{error}");
    let error = engine.transfers("gpu:0", usize::MAX, 3).unwrap_err();
    assert_eq!(error, Error::Run(RunError::OutOfMemory { bytes: usize::MAX }));
}
