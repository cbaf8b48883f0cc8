//! Closing, aborting and dropping with work, faults and losses in flight: everything is answered, and no thread is left.

use crate::{alone, doubling, numbers, only};
use breakeven::{Device, Engine, Error, Job, Ticket};
use breakeven_tests::hooked::{Hooked, simulated};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

/// The library's threads in this process; none where the system does not tell.
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.flatten().map(name).filter(|name| name.starts_with("breakeven")).count()
}

/// Those of tests before this one may be on their way out.
#[track_caller]
fn back_to(before: usize) {
    let begun = Instant::now();
    while threads() > before {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} threads, before {before}", threads());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn in_flight(round: u64) -> (Engine, Vec<Ticket>) {
    let devices = [Device::Cpu, Device::Gpu(Some(0)), Device::Gpu(Some(1)), Device::Gpu(Some(2))];
    let lossy = simulated("gpu:0", 50.0).paced(1.0).unwrap();
    let failing = Hooked::failing(simulated("gpu:1", 50.0).paced(1.0).unwrap(), 3);
    let slow = Hooked::sleeping(simulated("gpu:2", 5.0), Duration::from_millis(2));
    let engine = only(&devices, vec![Arc::new(lossy.clone()), Arc::new(failing), Arc::new(slow)]);
    let program = doubling(&engine, 4);
    let submit = |i: usize| {
        let job = Job::program(&program, [numbers(i, 4)]).device(devices[i % 4]);
        engine.submit(if i.is_multiple_of(5) { job.deadline(Duration::from_secs(5)) } else { job }).unwrap()
    };
    let tickets = (0..300)
        .map(|i| {
            if i == 100 && round.is_multiple_of(2) {
                lossy.lose("in the middle");
            }
            submit(i)
        })
        .collect();
    (engine, tickets)
}

#[test]
fn everything_is_answered_and_no_thread_is_left() {
    let _alone = alone();
    let before = threads();
    for round in 0..12 {
        let (engine, tickets) = in_flight(round);
        assert!(before == 0 && threads() == 0 || threads() > before);
        match round % 3 {
            0 => engine.close(),
            1 => engine.abort(),
            _ => {}
        }
        let stats = engine.queue_stats();
        drop(engine);
        for (i, ticket) in tickets.into_iter().enumerate() {
            assert!(ticket.is_done(), "{ticket:?} was left without an answer");
            match ticket.arrays() {
                Ok(arrays) => assert_eq!(arrays[0].as_slice::<f32>().unwrap(), [2.0 * i as f32; 4]),
                Err(Error::Aborted) => assert!(round % 3 != 0, "closing answers all"),
                Err(error) => panic!("{error}"),
            }
        }
        if round % 3 != 2 {
            let answered = stats.completed + stats.failed + stats.cancelled + stats.late + stats.aborted;
            assert_eq!((stats.submitted, answered, stats.queued, stats.failed), (300, 300, 0, 0), "{stats:?}");
        }
        back_to(before);
    }
}

/// Whoever is woken may drop the engine, on the very thread that answers.
#[test]
fn the_last_handle_may_go_on_a_thread_of_the_queue() {
    struct Last {
        engine: Mutex<Option<Engine>>,
        woken: AtomicBool,
    }
    impl Wake for Last {
        fn wake(self: Arc<Last>) {
            drop(self.engine.lock().unwrap().take());
            self.woken.store(true, SeqCst);
        }
    }
    let _alone = alone();
    let before = threads();
    for is_late in [false, true] {
        let slow = Hooked::sleeping(simulated("gpu:0", 1.0), Duration::from_millis(30));
        let engine = only(&[Device::Gpu(Some(0))], vec![Arc::new(slow)]);
        let program = doubling(&engine, 4);
        let job = |i| Job::program(&program, [numbers(i, 4)]).alone();
        let mut first =
            engine.submit(if is_late { job(1).deadline(Duration::from_millis(5)) } else { job(1) }).unwrap();
        let others: Vec<_> = (0..5).map(|i| engine.submit(job(i)).unwrap()).collect();
        let last = Arc::new(Last { engine: Mutex::new(Some(engine)), woken: AtomicBool::new(false) });
        let waker = Waker::from(last.clone());
        assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        for ticket in others {
            let answer = ticket.wait_timeout(Duration::from_secs(20));
            assert!(matches!(answer, Some(Err(Error::Aborted))), "{answer:?}");
        }
        let begun = Instant::now();
        while !last.woken.load(SeqCst) {
            assert!(begun.elapsed() < Duration::from_secs(20), "whoever answers does not come back");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop((first, program));
        back_to(before);
    }
}
