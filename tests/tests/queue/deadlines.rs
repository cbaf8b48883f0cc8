//! Deadlines: answered when they are due and not before, whatever the workers do; what is late is really stopped, and its
//! neighbours are not disturbed.

use crate::{alone, answered, at_least, doubling, engine, numbers, only};
use breakeven::{DType, Device, Engine, Error, Job, QueueConfig, Tensor};
use breakeven_tests::hooked::{Hooked, simulated};
use breakeven_tests::mix::Random;
use breakeven_tests::watch::Finish;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was asked for: of a thousand deadlines, 990 are answered within this.
const ACCURACY: Duration = Duration::from_millis(5);

/// The 99th of a hundred.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100 - 1]
}

/// By how much this machine wakes a thread too late that does nothing but sleep: where others have all of its cores, that
/// is more than the queue is asked for, and no thread could do better.
fn lateness(deadlines: &[Duration]) -> Duration {
    let (begun, mut sorted) = (Instant::now(), deadlines.to_vec());
    sorted.sort_unstable();
    let wake = |deadline: Duration| {
        let due = begun + deadline;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due.elapsed()
    };
    p99(sorted.into_iter().map(wake).collect())
}

#[test]
fn a_thousand_deadlines_while_every_worker_is_stuck() {
    const STUCK: Duration = Duration::from_secs(2);
    let _alone = alone();
    let devices = [Device::Gpu(Some(0)), Device::Gpu(Some(1))];
    at_least("5 ms / P99 of deadlines", 1.0, || {
        let stuck = |id: Device| Arc::new(Hooked::sleeping(simulated(&id.to_string(), 1.0), STUCK)) as _;
        let engine = only(&devices, devices.map(stuck).to_vec());
        let program = doubling(&engine, 4);
        let begun = Instant::now();
        let blockers = devices.map(|id| engine.submit(Job::program(&program, [numbers(1, 4)]).device(id)).unwrap());
        while engine.queue_stats().queued > 0 {
            assert!(begun.elapsed() < STUCK / 2, "nobody takes the jobs");
            std::thread::yield_now();
        }
        let (finish, mut random) = (Finish::default(), Random::new(3));
        let deadlines: Vec<Duration> =
            (0..1000).map(|_| Duration::from_micros(1_000 + random.below(499_000))).collect();
        let machine = std::thread::spawn({
            let deadlines = deadlines.clone();
            move || lateness(&deadlines)
        });
        let late: Vec<_> = deadlines
            .into_iter()
            .enumerate()
            .map(|(i, deadline)| {
                let before = Instant::now();
                let ticket = engine.submit(Job::program(&program, [numbers(i, 4)]).deadline(deadline)).unwrap();
                (before, Instant::now(), deadline, finish.watch(ticket))
            })
            .collect();
        let errors: Vec<Duration> = late
            .into_iter()
            .map(|(before, after, deadline, watched)| {
                let (_, at, answer) = watched.wait();
                assert_eq!(answer.unwrap_err(), Error::DeadlineExceeded { deadline });
                assert!(at >= before + deadline, "answered before its time");
                at.saturating_duration_since(after + deadline)
            })
            .collect();
        assert!(begun.elapsed() < STUCK, "the workers are not stuck any more");
        for blocker in blockers {
            assert_eq!(answered(blocker).unwrap(), [2.0; 4]);
        }
        engine.close();
        assert_eq!((engine.queue_stats().late, engine.queue_stats().completed), (1000, 2));
        let (error, machine) = (p99(errors), machine.join().unwrap());
        let error = if error < ACCURACY { error } else { error.saturating_sub(machine) };
        ACCURACY.as_secs_f64() / error.max(Duration::from_micros(1)).as_secs_f64()
    });
}

/// Something that takes a while on the CPU.
fn long(engine: &Engine) -> Job {
    let n = 1 << 22;
    let x = Tensor::input("x", DType::F32, [n]).unwrap();
    let mut y = x.clone();
    for _ in 0..80 {
        y = y.sin().unwrap().exp().unwrap();
    }
    let program = engine.compile(&[&x], &[&y]).unwrap();
    Job::program(&program, [numbers(1, n)])
}

#[test]
fn a_long_job_that_is_late_frees_its_worker() {
    let _alone = alone();
    let engine = only(&[Device::Cpu], Vec::new());
    let (job, small) = (long(&engine), doubling(&engine, 4));
    at_least("a long job, whole / cut short", 3.0, || {
        let begun = Instant::now();
        engine.submit(job.clone()).unwrap().wait().unwrap();
        let whole = begun.elapsed();
        let (begun, deadline) = (Instant::now(), whole / 10);
        let late = engine.submit(job.clone().deadline(deadline)).unwrap();
        let next = engine.submit(Job::program(&small, [numbers(3, 4)])).unwrap();
        assert_eq!(answered(next).unwrap(), [6.0; 4]);
        let free = begun.elapsed();
        assert_eq!(late.wait().unwrap_err(), Error::DeadlineExceeded { deadline });
        whole.as_secs_f64() / free.as_secs_f64()
    });
}

#[test]
fn neighbours_of_a_late_job_are_not_disturbed() {
    let _alone = alone();
    let time = Duration::from_millis(150);
    for devices in [[Device::Gpu(Some(0))], [Device::Cpu]] {
        let slow = Hooked::sleeping(simulated("gpu:0", 1.0), time);
        let queue = QueueConfig { devices: devices.to_vec(), ..QueueConfig::default() };
        let engine = engine(queue, vec![Arc::new(slow)]);
        let program = doubling(&engine, 4);
        let blocker = match devices[0] {
            Device::Cpu => engine.submit(long(&engine)).unwrap(),
            _ => engine.submit(Job::program(&program, [numbers(0, 4)]).alone()).unwrap(),
        };
        while engine.queue_stats().queued > 0 {
            std::thread::yield_now();
        }
        // On the device the blocker takes 150 ms and the batch after it as long again: these are late in the middle of it.
        let deadline = if devices[0] == Device::Cpu { Duration::from_micros(50) } else { time * 3 / 2 };
        let tickets: Vec<_> = (0..64)
            .map(|i| {
                let job = Job::program(&program, [numbers(i, 4)]);
                engine.submit(if i % 8 == 3 { job.deadline(deadline) } else { job }).unwrap()
            })
            .collect();
        if devices[0] == Device::Cpu {
            // Until all of them are late: a CPU that is free again would have the last of them done in time.
            std::thread::sleep(100 * deadline);
        }
        blocker.cancel();
        for (i, ticket) in tickets.into_iter().enumerate() {
            match answered(ticket) {
                Err(error) => assert_eq!((error, i % 8), (Error::DeadlineExceeded { deadline }, 3)),
                Ok(values) => assert!(values == [2.0 * i as f32; 4] && i % 8 != 3, "{i}: {values:?}"),
            }
        }
        engine.close();
        let stats = engine.queue_stats();
        assert_eq!((stats.completed, stats.late, stats.cancelled), (56, 8, 1), "{stats:?}");
        assert!(stats.gathered_batches >= 1, "{stats:?}");
    }
}
