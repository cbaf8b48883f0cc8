//! Several devices share the work: as many times as fast as there are of them, whoever is lost, slow or of another kind.

use crate::{alone, answered, at_least, doubling, engine, numbers, only};
use breakeven::backend::Backend;
use breakeven::{Answer, Api, Config, Device, Engine, Event, Events, Job, Program, QueueConfig, SimBackend};
use breakeven_gpu::GpuConfig;
use breakeven_tests::faulty::gpu;
use breakeven_tests::hooked::simulated;
use breakeven_tests::mix::Random;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a batch takes on a paced device: long beside what this machine needs to compute its results, and to wake a thread.
const BATCH_US: f64 = 4_000.0;

/// Devices that really take their time; each so many times as fast as [`BATCH_US`] says.
fn paced(speeds: &[f64]) -> Vec<SimBackend> {
    let device = |(number, speed): (usize, &f64)| simulated(&format!("gpu:{number}"), BATCH_US).paced(*speed).unwrap();
    speeds.iter().enumerate().map(device).collect()
}

/// An engine whose queue has these devices, without the CPU.
fn sharing(sims: &[SimBackend]) -> (Engine, Program) {
    let devices: Vec<Device> = (0..sims.len()).map(|number| Device::Gpu(Some(number))).collect();
    let engine = only(&devices, sims.iter().map(|sim| Arc::new(sim.clone()) as Arc<dyn Backend>).collect());
    let program = doubling(&engine, 4);
    (engine, program)
}

/// How long so many jobs take that are all there at once, each a batch of its own; and where they ran.
fn run(engine: &Engine, program: &Program, jobs: usize) -> (f64, HashMap<Arc<str>, usize>) {
    let begun = Instant::now();
    let submit = |i| engine.submit(Job::program(program, [numbers(i, 4)]).alone()).unwrap();
    let tickets: Vec<_> = (0..jobs).map(submit).collect();
    let mut ran = HashMap::new();
    for (i, ticket) in tickets.into_iter().enumerate() {
        assert!(ticket.wait_timeout(Duration::from_secs(60)).is_some());
        let Answer::Arrays { outputs, device, .. } = ticket.wait().unwrap() else { panic!("no arrays") };
        assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [2.0 * i as f32; 4]);
        *ran.entry(device).or_insert(0) += 1;
    }
    (begun.elapsed().as_secs_f64(), ran)
}

fn time(speeds: &[f64], jobs: usize) -> f64 {
    let (engine, program) = sharing(&paced(speeds));
    // The first ones find the threads asleep and the plans not ready.
    run(&engine, &program, 2 * speeds.len());
    run(&engine, &program, jobs).0
}

#[test]
fn two_are_twice_as_fast_and_four_four_times() {
    let _alone = alone();
    at_least("two devices / one", 1.9, || time(&[1.0], 100) / time(&[1.0; 2], 100));
    at_least("four devices / one", 3.5, || time(&[1.0], 160) / time(&[1.0; 4], 160));
}

#[test]
fn a_slower_one_helps_a_faster_one() {
    let _alone = alone();
    at_least("a pair of 3:1 / the faster one", 1.25, || time(&[1.0], 120) / time(&[1.0, 1.0 / 3.0], 120));
}

/// Waits for an event; all others are passed over.
#[track_caller]
fn hear(events: &Events, what: &str, is_it: impl Fn(&Event) -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if events.next_timeout(Duration::from_millis(20)).is_some_and(|event| is_it(&event)) {
            return;
        }
    }
    panic!("nobody has told that {what}");
}

#[test]
fn one_of_three_is_killed_in_the_middle_and_comes_back() {
    let _alone = alone();
    let sims = paced(&[1.0; 3]);
    let (engine, program) = sharing(&sims);
    run(&engine, &program, 6);
    let (events, others) = (engine.events(), ["gpu:0", "gpu:2"]);
    let ran = std::thread::scope(|scope| {
        let work = scope.spawn(|| run(&engine, &program, 200).1);
        std::thread::sleep(Duration::from_micros(30 * BATCH_US as u64));
        sims[1].lose("somebody tripped over it");
        hear(
            &events,
            "it is lost",
            |event| matches!(event, Event::DeviceLost { device, why } if &**device == "gpu:1" && why.contains("tripped")),
        );
        work.join().unwrap()
    });
    assert_eq!(ran.values().sum::<usize>(), 200);
    // Others did what it could not do any more: it was there for half of the time at most.
    assert!(others.iter().all(|device| ran[*device] > 50) && ran.get("gpu:1").is_none_or(|jobs| *jobs < 80), "{ran:?}");
    assert!(ran.keys().all(|device| &**device != "cpu"), "{ran:?}");
    let stats = engine.queue_stats();
    assert_eq!((stats.failed, stats.queued), (0, 0), "{stats:?}");
    let lost = run(&engine, &program, 30).1;
    assert!(!lost.contains_key("gpu:1"), "{lost:?}");
    sims[1].recover();
    hear(&events, "it is back", |event| matches!(event, Event::DeviceBack { device } if &**device == "gpu:1"));
    // It was left alone for a while after its last failure.
    let begun = Instant::now();
    while !run(&engine, &program, 30).1.contains_key("gpu:1") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it takes no jobs any more");
    }
}

#[test]
fn one_that_becomes_slow_hands_its_work_to_the_others() {
    let _alone = alone();
    // Alone the sound one takes twice as long as both; the slow one is to be worth not much less than nothing.
    at_least("one device alone / with one that becomes 10x slower", 0.9, || {
        let alone = time(&[1.0], 100);
        let sims = paced(&[1.0; 2]);
        let (engine, program) = sharing(&sims);
        run(&engine, &program, 4);
        let slowed = std::thread::scope(|scope| {
            let work = scope.spawn(|| run(&engine, &program, 100).0);
            std::thread::sleep(Duration::from_micros(10 * BATCH_US as u64));
            sims[1].set_slowdown(10.0).unwrap();
            work.join().unwrap()
        });
        alone / slowed
    });
}

#[test]
fn real_and_simulated_devices_and_the_cpu_at_once() {
    let _alone = alone();
    const JOBS: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
    let config = GpuConfig { sync_timeout: Duration::from_secs(60), ..GpuConfig::default() };
    let backends: Vec<Arc<dyn Backend>> = vec![
        Arc::new(gpu(Api::Vulkan, &config)),
        Arc::new(gpu(Api::Gl, &config)),
        Arc::new(simulated("gpu:2", 100.0).paced(1.0).unwrap()),
    ];
    let engine = engine(QueueConfig { devices: vec![Device::All], ..QueueConfig::default() }, backends);
    let program = doubling(&engine, 64);
    let wishes = [Device::Cpu, Device::Gpu(Some(0)), Device::Gpu(Some(1)), Device::Gpu(Some(2)), Device::Gpu(None)];
    let mut random = Random::new(5);
    let tickets: Vec<_> = (0..JOBS)
        .map(|i| {
            // Software adapters are slower at everything: nobody would choose them.
            let job = Job::program(&program, [numbers(i, 1 + i % 64)]);
            let wish = wishes.get(random.below(8) as usize);
            let job = if let Some(device) = wish { job.device(*device) } else { job };
            engine.submit(job).unwrap()
        })
        .collect();
    let mut ran: HashMap<Arc<str>, usize> = HashMap::new();
    for (i, ticket) in tickets.into_iter().enumerate() {
        assert!(ticket.wait_timeout(Duration::from_secs(60)).is_some(), "{ticket:?} of {i}");
        let Answer::Arrays { outputs, device, .. } = ticket.wait().unwrap() else { panic!("no arrays") };
        assert_eq!(outputs[0].as_slice::<f32>().unwrap(), vec![2.0 * i as f32; 1 + i % 64], "{device}");
        *ran.entry(device).or_insert(0) += 1;
    }
    assert_eq!(ran.len(), 4, "{ran:?}");
    assert!(ran.values().all(|jobs| *jobs > JOBS / 20), "{ran:?}");
}

/// Where all that may do a job are software, which is left alone as long as the CPU may do it, one of them does it.
#[test]
fn software_adapters_do_what_only_they_may_do() {
    let _alone = alone();
    let config = Config { apis: vec![Api::Vulkan, Api::Gl], ..Config::default() };
    let engine = Engine::with_config(config).unwrap();
    assert!(engine.devices().len() > 2, "{}", breakeven::driver_hint());
    let program = doubling(&engine, 4);
    for i in 0..20 {
        let ticket = engine.submit(Job::program(&program, [numbers(i, 4)]).device(Device::Gpu(None))).unwrap();
        assert_eq!(answered(ticket).unwrap(), [2.0 * i as f32; 4]);
    }
}
