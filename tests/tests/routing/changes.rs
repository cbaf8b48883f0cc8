//! Devices that become slow and recover, that hold a batch's data, and that may be worth a look.

use crate::{alone, chain, config, cpu_ns, engine, engine_on, measure, modern, numbers, plan, run};
use breakeven::cost::Effort;
use breakeven::{Config, Decision, Device, Engine, SimBackend, SimProfile, Tensor};
use std::sync::Arc;

/// Batches until one runs on this device, not merely to have a look; at most so many.
fn until(engine: &Engine, output: &Tensor, device: &str, most: usize) -> usize {
    let there = |decision: Decision| decision.device == device && !decision.reason.starts_with("to see");
    (1..=most).find(|_| there(run(engine, output))).unwrap_or(usize::MAX)
}

#[test]
fn a_device_that_becomes_slow_is_left_and_returned_to() {
    let _alone = alone();
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 5_000 } else { 100_000 }]));
    let (plain, _) = engine("modern-discrete");
    let sim = modern();
    // A fifth of what the CPU takes.
    let usual = cpu_ns(&plain, &output) / 5.0 / sim.batch_ns(&plan(&output), 1) as f64;
    let engine = engine_on(&sim, usual);
    assert!(until(&engine, &output, "gpu:0", 20) <= 20);
    (0..100).for_each(|_| drop(run(&engine, &output)));
    // One spike changes nothing.
    sim.add_spike_ns(100_000_000);
    let spike = run(&engine, &output);
    assert_eq!((&*spike.device, spike.actual_ns > 100_000_000), ("gpu:0", true));
    let after: Vec<Decision> = (0..20).map(|_| run(&engine, &output)).collect();
    assert!(after.iter().all(|d| d.device == "gpu:0" || d.reason.starts_with("to see")), "{:?}", after[0]);

    sim.set_slowdown(10.0 * usual).unwrap();
    let left = until(&engine, &output, "cpu", 100);
    (0..100).for_each(|_| drop(run(&engine, &output)));
    sim.set_slowdown(usual).unwrap();
    let returned = until(&engine, &output, "gpu:0", 1000);
    assert!(left <= 20 && returned <= 200, "left after {left} batches, returned to after {returned}");
}

#[test]
fn data_that_lies_on_a_device_draws_the_work_there() {
    let _alone = alone();
    let (plain, _) = engine("modern-discrete");
    let sim = modern();
    // The same device, for an engine that may use nothing else: what it pins lies there.
    let there =
        Engine::with_backends(Config { device: Device::Gpu(Some(0)), ..config(None) }, vec![Arc::new(sim.clone())])
            .unwrap();
    // A sum: nearly all of its time there is the way.
    let data = numbers(&[4_000_000]);
    let sum = |x: &Tensor| x.sum(&[], false).unwrap();
    // As slow as it takes for the CPU to be three times as fast if the data has to be sent, and half as fast if not.
    let times = 3.0 * cpu_ns(&plain, &sum(&data)) / sim.batch_ns(&plan(&sum(&data)), 1) as f64;
    let engine = engine_on(&sim, times);
    let pinned = there.pin(&data).unwrap();
    let sent = run(&engine, &sum(&data));
    assert_eq!(sent.device, "cpu", "{}", sent.reason);
    let lies = run(&engine, &sum(&pinned));
    assert_eq!((&*lies.device, lies.timings.upload_bytes), ("gpu:0", 0), "{}", lies.reason);
    let upload = |decision: &Decision| decision.predicted[1].parts.upload_ns;
    assert!(upload(&sent) > 0.0 && upload(&lies) == 0.0);

    // Both again and again, in turns: what one took says nothing wrong about the other.
    let devices: Vec<String> =
        (0..20).flat_map(|_| [&data, &pinned].map(|x| run(&engine, &sum(x)).device)).skip(20).collect();
    let right = devices.chunks(2).filter(|pair| pair[0] == "cpu" && pair[1] == "gpu:0").count();
    assert!(right >= 8, "{devices:?}");
}

#[test]
fn nothing_is_explored_without_a_budget() {
    let _alone = alone();
    // Enough that a few looks of 3.5 ms fit into 200 batches.
    let output = chain(&numbers(&[if cfg!(debug_assertions) { 200 } else { 200_000 }]));
    let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090").unwrap()).unwrap();
    let looks = |explore: f64| {
        let config = Config { explore, ..config(None) };
        let engine = Engine::with_backends(config, vec![Arc::new(sim.clone())]).unwrap();
        measure(&engine, "cpu", Effort::Probe);
        measure(&engine, "gpu:0", Effort::Probe);
        (0..200).filter(|_| run(&engine, &output).device != "cpu").count()
    };
    // A budget as large as all its time has room for some of the 3.5 ms that a look takes.
    assert_eq!(looks(0.0), 0);
    assert!(looks(1.0) > 0);
}
