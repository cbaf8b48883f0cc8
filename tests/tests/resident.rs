//! Data that stays on a device: it is not sent twice, feeds the next batch where it lies, and outlives the device.

use breakeven::{Api, Config, Decision, Device, Engine, Error, RunOptions, Status, Tensor};
use breakeven_gpu::{Gpu, GpuConfig};
use breakeven_tests::faulty::{Fault, Faulty, Kind, Script, gpu};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ELEMS: usize = 5_000;
const BYTES: u64 = 4 * ELEMS as u64;

/// Every device here, with an engine that may use nothing else.
fn each(test: impl Fn(&Gpu, &Engine)) {
    for api in [Api::Vulkan, Api::Gl] {
        let gpu = gpu(api, &GpuConfig::default());
        let engine = engine_on(&gpu, true);
        test(&gpu, &engine);
    }
}

fn engine_on(gpu: &Gpu, strict: bool) -> Engine {
    let config = Config { device: Device::Gpu(Some(0)), strict, ..Config::default() };
    Engine::with_backends(config, vec![Arc::new(gpu.clone())]).unwrap()
}

fn numbers() -> Tensor {
    Tensor::from_vec((0..ELEMS).map(|i| i as f32).collect(), [ELEMS]).unwrap()
}

/// Runs `tensor`, whose element `i` must be `i * scale + shift`.
#[track_caller]
fn check(engine: &Engine, tensor: &Tensor, scale: f32, shift: f32) -> Decision {
    let ran = engine.run_with(&[tensor], &RunOptions::default()).unwrap();
    let found = ran.outputs[0].as_slice::<f32>().unwrap();
    assert_eq!(found.len(), ELEMS);
    let wrong = (0..ELEMS).find(|&i| found[i] != i as f32 * scale + shift);
    assert_eq!(wrong.map(|i| (i, found[i])), None, "{:?}", ran.decision);
    ran.decision
}

/// Destroys the device and waits until it is there again.
fn lose(gpu: &Gpu) {
    let generation = gpu.generation();
    gpu.destroy_for_test();
    wait("it is rebuilt", || {
        use breakeven::backend::Backend;
        gpu.generation() > generation && gpu.health().status != Status::Lost
    });
}

#[track_caller]
fn wait(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn pinned_data_is_not_uploaded_again() {
    each(|gpu, engine| {
        let x = numbers();
        let sent = check(engine, &(&x * 2.0).unwrap(), 2.0, 0.0).timings;
        assert_eq!((sent.uploads, sent.upload_bytes), (1, BYTES));
        let before = gpu.counters().uploads;
        let pinned = engine.pin(&x).unwrap();
        assert_eq!(gpu.counters().uploads, before + 1);
        for _ in 0..3 {
            let lies = check(engine, &(&pinned * 2.0).unwrap(), 2.0, 0.0).timings;
            assert_eq!((lies.uploads, lies.upload_bytes, lies.submits), (0, 0, 1));
        }
        // Beside data that does not lie there, only that goes up.
        let mixed = check(engine, &(&pinned + &(&x * 3.0).unwrap()).unwrap(), 4.0, 0.0).timings;
        assert_eq!((mixed.uploads, mixed.upload_bytes), (1, BYTES));
        // What is pinned can be computed, and be read on the host.
        let computed = engine.pin(&(&x + 1.0).unwrap()).unwrap();
        assert_eq!(check(engine, &(&computed - 1.0).unwrap(), 1.0, 0.0).timings.upload_bytes, 0);
        assert_eq!(computed.as_data().unwrap().as_bytes()[4..8], 2.0f32.to_ne_bytes());
        let on_cpu = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
        let ran = engine.run_with(&[&(&computed * 2.0).unwrap()], &on_cpu).unwrap();
        assert_eq!((&*ran.decision.device, ran.outputs[0].as_slice::<f32>().unwrap()[9]), ("cpu", 20.0));
    });
}

#[test]
fn results_that_stay_feed_the_next_batch() {
    each(|gpu, engine| {
        let y = engine.run_resident(&[&(&numbers() * 2.0).unwrap()]).unwrap().remove(0);
        let before = gpu.counters();
        let z = engine.run_resident(&[&(&y + 1.0).unwrap()]).unwrap().remove(0);
        let after = gpu.counters();
        assert_eq!((after.uploads, after.readbacks), (before.uploads, before.readbacks), "nothing went to or fro");
        let last = check(engine, &(&z * 2.0).unwrap(), 4.0, 2.0).timings;
        assert_eq!((last.uploads, last.upload_bytes, last.readbacks), (0, 0, 1));
        // The host reads it when it asks, and not again after that.
        let read = |tensor: &Tensor| tensor.as_data().unwrap().as_bytes()[8..12].to_vec();
        assert_eq!(read(&z), 5.0f32.to_ne_bytes());
        let fetched = gpu.counters().readbacks;
        assert_eq!((read(&z), gpu.counters().readbacks), (5.0f32.to_ne_bytes().to_vec(), fetched));
        // Another engine has another device: it gets the bytes.
        let elsewhere = Engine::with_config(Config::default()).unwrap();
        assert_eq!(check(&elsewhere, &(&y + 3.0).unwrap(), 2.0, 3.0).device, "cpu");
    });
}

#[test]
fn what_lies_there_outlives_the_device() {
    each(|gpu, engine| {
        let pinned = engine.pin(&numbers()).unwrap();
        // From its recipe, of which a part was on the device too; and with a copy on the host.
        let stays = engine.run_resident(&[&(&pinned * 2.0).unwrap()]).unwrap().remove(0);
        let further = engine.run_resident(&[&(&stays + 1.0).unwrap()]).unwrap().remove(0);
        let read = engine.run_resident(&[&(&pinned * 3.0).unwrap()]).unwrap().remove(0);
        assert_eq!(read.as_data().unwrap().as_bytes()[4..8], 3.0f32.to_ne_bytes());
        lose(gpu);
        for (tensor, scale, shift) in [(&pinned, 1.0, 5.0), (&further, 2.0, 6.0), (&stays, 2.0, 5.0), (&read, 3.0, 5.0)]
        {
            let decision = check(engine, &(tensor + 5.0).unwrap(), scale, shift);
            // On the rebuilt device, from the host's bytes.
            assert_eq!((&*decision.device, decision.timings.upload_bytes), ("gpu:0", BYTES), "{decision:?}");
        }
        // And once more on the new device.
        let again = engine.pin(&pinned).unwrap();
        assert_eq!(check(engine, &(&again * 2.0).unwrap(), 2.0, 0.0).timings.upload_bytes, 0);
    });
}

#[test]
fn a_lost_device_leaves_the_cpu_what_it_needs() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let engine = engine_on(&gpu, false);
    let on_gpu =
        || engine.run_with(&[&(&numbers() * 2.0).unwrap()], &RunOptions::default()).unwrap().decision.device != "cpu";
    wait("its pipeline is there", on_gpu);
    let stays = engine.run_resident(&[&(&numbers() * 2.0).unwrap()]).unwrap().remove(0);
    assert!(stays.as_data().unwrap().resident().is_some(), "it lies on the device");
    gpu.destroy_for_test();
    // Whoever answers, and in whatever state the device is just now.
    for _ in 0..20 {
        check(&engine, &(&stays + 1.0).unwrap(), 2.0, 1.0);
    }
}

#[test]
fn a_chain_of_a_hundred_stays_bounded() {
    each(|gpu, engine| {
        let mut tensor = engine.pin(&numbers()).unwrap();
        let size = gpu.pool_stats().in_use_bytes;
        let mut most = 0;
        for _ in 0..100 {
            tensor = engine.run_resident(&[&(&tensor + 1.0).unwrap()]).unwrap().remove(0);
            most = most.max(gpu.pool_stats().in_use_bytes);
        }
        // Each step keeps what it was made from, up to sixteen of them; then the host has a copy.
        assert!(most <= size + 24 * (BYTES + BYTES / 4) + (1 << 16), "{most} of {size}");
        check(engine, &tensor, 1.0, 100.0);
        lose(gpu);
        check(engine, &tensor, 1.0, 100.0);
        drop(tensor);
    });
}

#[test]
fn a_fault_while_pinning_is_told_or_stood_in_for() {
    let gpu = gpu(Api::Vulkan, &GpuConfig::default());
    let script = Script::new(1, vec![Fault::Early(Kind::Lost)]);
    let with = |strict| {
        let config = Config { device: Device::Gpu(Some(0)), strict, ..Config::default() };
        Engine::with_backends(config, vec![Arc::new(Faulty::new(&gpu, &script).without_memory())]).unwrap()
    };
    let error = with(true).pin(&numbers()).unwrap_err();
    assert!(matches!(&error, Error::Strict { wish, .. } if wish == "gpu:0"), "{error:?}");
    let pinned = with(false).pin(&numbers()).unwrap();
    assert_eq!(check(&with(false), &(&pinned + 1.0).unwrap(), 1.0, 1.0).fallbacks, 1);
}
