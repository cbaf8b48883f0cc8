//! The queue on the CPU: every way to submit, wait and end.

use crate::{
    Answer, Command, Config, DType, Device, Engine, Error, Event, Job, Kernel, Memory, Priority, Program, QueueConfig,
    Tensor,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

fn engine(queue: QueueConfig) -> Engine {
    Engine::with_config(Config { device: Device::Cpu, queue, ..Config::default() }).unwrap()
}

fn squares(engine: &Engine, n: usize) -> Program {
    let x = Tensor::input("x", DType::F32, [n]).unwrap();
    engine.compile(&[&x], &[&x.square().unwrap()]).unwrap()
}

fn values(value: f32, n: usize) -> Tensor {
    Tensor::from_vec(vec![value; n], [n]).unwrap()
}

/// Something that takes tens of milliseconds at least, and can be stopped.
fn long(engine: &Engine) -> Job {
    let n = 1 << 24;
    let x = Tensor::input("x", DType::F32, [n]).unwrap();
    let mut y = x.clone();
    for _ in 0..40 {
        y = y.sin().unwrap().exp().unwrap();
    }
    let program = engine.compile(&[&x], &[&y]).unwrap();
    Job::program(&program, [values(0.5, n)])
}

#[test]
fn jobs_of_all_kinds_are_answered() {
    let engine = engine(QueueConfig::default());
    let program = squares(&engine, 4);
    let tickets: Vec<_> =
        (0..100).map(|i| engine.submit(Job::program(&program, [values(i as f32, 4)])).unwrap()).collect();
    for (i, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(ticket.arrays().unwrap()[0].as_slice::<f32>().unwrap(), [(i * i) as f32; 4]);
    }
    // Of another size than the program was recorded with.
    let other = engine.submit(Job::program(&program, [values(3.0, 7)])).unwrap();
    assert_eq!(other.arrays().unwrap()[0].as_slice::<f32>().unwrap(), [9.0; 7]);
    let batch = engine.submit(Job::batch(&[&(&values(1.0, 3) + 1.0).unwrap()]).explained()).unwrap();
    let Answer::Arrays { outputs, device, decision } = batch.wait().unwrap() else { panic!("no arrays") };
    assert_eq!((outputs[0].as_slice::<f32>().unwrap(), &*device), (&[2.0; 3][..], "cpu"));
    assert_eq!(decision.unwrap().device, "cpu");
    let stats = engine.queue_stats();
    assert_eq!((stats.submitted, stats.completed, stats.failed, stats.queued), (102, 102, 0, 0));
}

#[test]
fn what_is_wrong_is_told_at_the_door_or_as_a_failure() {
    let engine = engine(QueueConfig::default());
    let program = squares(&engine, 4);
    let refused = |job: Job| engine.submit(job).map(|_| ()).unwrap_err();
    assert!(matches!(refused(Job::program(&program, [])), Error::Count { .. }));
    let ints = Tensor::from_slice(&[1i32], [1]).unwrap();
    assert!(matches!(refused(Job::program(&program, [ints])), Error::InputDType { .. }));
    let expression = (&values(1.0, 4) + 1.0).unwrap();
    assert!(matches!(refused(Job::program(&program, [expression])), Error::NoData { .. }));
    let other = squares(&self::engine(QueueConfig::default()), 4);
    assert_eq!(refused(Job::program(&other, [values(1.0, 4)])), Error::OtherEngine);
    let unbound = Tensor::input("y", DType::F32, [2]).unwrap();
    assert!(matches!(refused(Job::batch(&[&unbound])), Error::Record(_)));
    assert!(matches!(refused(Job::batch(&[&values(1.0, 2)]).device(Device::Gpu(Some(77)))), Error::NoDevice { .. }));
    let allocate = Command::Allocate { device: Device::Auto, bytes: 1 };
    assert!(matches!(refused(Job::command(allocate)), Error::Command { .. }));
    // Found out while it runs.
    let wrong = engine.submit(Job::program(&program, [Tensor::from_vec(vec![1.0f32; 4], [2, 2]).unwrap()])).unwrap();
    assert_eq!(wrong.arrays().unwrap()[0].shape().dims(), [2, 2]);
    let (data, indices) = (values(1.0, 4), Tensor::from_slice(&[9i32], [1]).unwrap());
    let ticket = engine.submit(Job::batch(&[&data.take(&indices, 0).unwrap()])).unwrap();
    assert!(matches!(ticket.wait(), Err(Error::Failed { .. })));
}

#[test]
fn a_full_queue_refuses_waits_or_gives_up() {
    let engine = engine(QueueConfig { capacity: 2, gather: 1, ..QueueConfig::default() });
    let program = squares(&engine, 4);
    let small = || Job::program(&program, [values(2.0, 4)]);
    let blocker = engine.submit(long(&engine)).unwrap();
    while engine.queue_stats().queued > 0 {
        std::thread::yield_now();
    }
    let waiting = [engine.submit(small()).unwrap(), engine.submit(small()).unwrap()];
    assert!(matches!(engine.try_submit(small()), Err(Error::QueueFull { capacity: 2, .. })));
    let begun = Instant::now();
    let refused = engine.submit_timeout(small(), Duration::from_millis(5));
    assert!(matches!(refused, Err(Error::QueueFull { .. })) && begun.elapsed() >= Duration::from_millis(5));
    let third = std::thread::scope(|scope| {
        let third = scope.spawn(|| engine.submit(small()).unwrap().arrays());
        assert!(blocker.cancel());
        third.join().unwrap()
    });
    assert_eq!(third.unwrap()[0].as_slice::<f32>().unwrap(), [4.0; 4]);
    assert_eq!(blocker.wait().unwrap_err(), Error::Cancelled);
    for ticket in waiting {
        assert_eq!(ticket.arrays().unwrap()[0].as_slice::<f32>().unwrap(), [4.0; 4]);
    }
}

#[test]
fn a_ticket_can_be_waited_for_in_every_way() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let engine = engine(QueueConfig::default());
    let blocker = engine.submit(long(&engine)).unwrap();
    assert!(blocker.wait_timeout(Duration::from_millis(1)).is_none() && !blocker.is_done());
    let mut ticket = pin!(engine.submit(Job::program(&squares(&engine, 2), [values(3.0, 2)])).unwrap());
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(blocker.cancel() && !blocker.cancel());
    assert!(ticket.wait_timeout(Duration::from_secs(60)).is_some());
    let Poll::Ready(Ok(Answer::Arrays { outputs, .. })) = ticket.as_mut().poll(&mut Context::from_waker(&waker)) else {
        panic!("not ready")
    };
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [9.0; 2]);
    // Whoever answers wakes after the answer is there.
    let begun = Instant::now();
    while count.0.load(Ordering::SeqCst) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::yield_now();
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn deadlines_end_queueing_and_running() {
    let engine = engine(QueueConfig::default());
    let program = squares(&engine, 2);
    let blocker = engine.submit(long(&engine).deadline(Duration::from_millis(40))).unwrap();
    let late = engine.submit(Job::program(&program, [values(1.0, 2)]).deadline(Duration::from_millis(5))).unwrap();
    let in_time = engine.submit(Job::program(&program, [values(3.0, 2)]).deadline(Duration::from_secs(60))).unwrap();
    assert_eq!(late.wait().unwrap_err(), Error::DeadlineExceeded { deadline: Duration::from_millis(5) });
    assert_eq!(blocker.wait().unwrap_err(), Error::DeadlineExceeded { deadline: Duration::from_millis(40) });
    assert_eq!(in_time.arrays().unwrap()[0].as_slice::<f32>().unwrap(), [9.0; 2]);
    assert_eq!(engine.queue_stats().late, 2);
    // By prediction it can't be done in time, and this one does not want to be taken then.
    let strict = long(&engine).deadline(Duration::from_micros(1)).admit(crate::Admit::Strict);
    assert!(matches!(engine.submit(strict), Err(Error::CantFinish { .. })));
}

#[test]
fn closing_drains_and_aborting_answers() {
    let engine = engine(QueueConfig::default());
    let program = squares(&engine, 2);
    let tickets: Vec<_> = (0..50).map(|_| engine.submit(Job::program(&program, [values(2.0, 2)])).unwrap()).collect();
    engine.close();
    assert!(matches!(engine.submit(Job::program(&program, [values(2.0, 2)])), Err(Error::QueueClosed)));
    for ticket in tickets {
        assert!(ticket.is_done() && ticket.wait().is_ok());
    }

    let engine = self::engine(QueueConfig::default());
    let program = squares(&engine, 2);
    let running = engine.submit(long(&engine)).unwrap();
    let waiting = engine.submit(Job::program(&program, [values(2.0, 2)])).unwrap();
    engine.abort();
    assert_eq!(running.wait().unwrap_err(), Error::Aborted);
    assert_eq!(waiting.wait().unwrap_err(), Error::Aborted);

    // Dropping the engine is aborting; programs go on alone.
    let engine = self::engine(QueueConfig::default());
    let program = squares(&engine, 2);
    let running = engine.submit(long(&engine)).unwrap();
    drop(engine);
    assert_eq!(running.wait().unwrap_err(), Error::Aborted);
    assert_eq!(program.run(&[[2.0f32; 2].as_slice().into()]).unwrap()[0].as_slice::<f32>().unwrap(), [4.0; 2]);
    assert!(matches!(program.stream([[values(1.0, 2)]]).next(), Some(Err(Error::QueueClosed))));
}

#[test]
fn events_tell_what_happened_and_a_slow_subscriber_loses_some() {
    let engine = engine(QueueConfig { capacity: 8, gather: 1, ..QueueConfig::default() });
    let program = squares(&engine, 2);
    let (events, slow) = (engine.events(), engine.events());
    let ticket = engine.submit(Job::program(&program, [values(2.0, 2)])).unwrap();
    let id = ticket.id();
    ticket.wait().unwrap();
    let event = events.next_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(&event, Event::Completed { job, device, .. } if *job == id && &**device == "cpu"), "{event:?}");
    let blocker = engine.submit(long(&engine)).unwrap();
    let many: Vec<_> = (0..6).map(|_| engine.submit(Job::program(&program, [values(2.0, 2)])).unwrap()).collect();
    blocker.cancel();
    many.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    let seen: Vec<Event> = std::iter::from_fn(|| events.next_timeout(Duration::from_millis(200))).collect();
    assert!(seen.iter().any(|event| matches!(event, Event::Pressure { capacity: 8, .. })), "{seen:?}");
    assert!(
        seen.iter().any(|event| matches!(event, Event::Failed { why, .. } if why.contains("cancelled"))),
        "{seen:?}"
    );
    for _ in 0..5000 {
        engine.submit(Job::program(&program, [values(2.0, 2)])).unwrap().wait().unwrap();
    }
    assert!(slow.lost() > 0);
    engine.close();
    assert!(slow.count() >= 4096);
}

#[test]
fn bulk_is_overtaken_by_so_many_and_no_more() {
    let queue = QueueConfig { ageing: 8, gather: 1, ..QueueConfig::default() };
    let engine = engine(queue);
    let (program, events) = (squares(&engine, 2), engine.events());
    let blocker = engine.submit(long(&engine)).unwrap();
    let job = |priority| Job::program(&program, [values(2.0, 2)]).priority(priority).producer(1);
    let bulk = engine.submit(job(Priority::Bulk)).unwrap();
    let others: Vec<_> = (0..40).map(|_| engine.submit(job(Priority::Interactive)).unwrap()).collect();
    let id = bulk.id();
    blocker.cancel();
    for ticket in others.into_iter().chain([bulk]) {
        ticket.wait().unwrap();
    }
    let done: Vec<u64> = std::iter::from_fn(|| events.next_timeout(Duration::from_millis(200)))
        .filter_map(|event| if let Event::Completed { job, .. } = event { Some(job) } else { None })
        .collect();
    // Two urgencies below, eight for each.
    assert_eq!(done.iter().position(|job| *job == id), Some(16), "{done:?}");
}

fn command(engine: &Engine, command: Command) -> crate::Result<Answer> {
    engine.submit(Job::command(command))?.wait()
}

fn allocate(engine: &Engine, bytes: usize) -> Memory {
    match command(engine, Command::Allocate { device: Device::Cpu, bytes }) {
        Ok(Answer::Memory(memory)) => memory,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_drive_the_cpu() {
    let engine = engine(QueueConfig::default());
    let (input, output) = (allocate(&engine, 16), allocate(&engine, 16));
    let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    command(&engine, Command::Write { memory: input.clone(), offset: 0, data: data.into() }).unwrap();
    let kernel = Kernel::Program(squares(&engine, 4));
    let launch = Command::Launch { kernel, inputs: vec![input.clone()], outputs: vec![output.clone()] };
    command(&engine, launch.clone()).unwrap();
    command(&engine, Command::Synchronize { device: Device::Cpu }).unwrap();
    let Answer::Bytes(bytes) = command(&engine, Command::Read { memory: output.clone(), offset: 4, bytes: 8 }).unwrap()
    else {
        panic!("no bytes")
    };
    assert_eq!(&bytes[..], [4.0f32, 9.0].map(f32::to_ne_bytes).concat());
    let failure = |what: Command| match command(&engine, what).unwrap_err() {
        Error::Failed { why } => *why,
        other => panic!("{other}"),
    };
    let beyond = Command::Read { memory: output.clone(), offset: 1, bytes: 16 };
    assert!(matches!(failure(beyond), Error::Run(crate::RunError::OutOfRange { .. })));
    let huge = Command::Read { memory: output.clone(), offset: 0, bytes: usize::MAX };
    assert!(matches!(failure(huge), Error::Run(crate::RunError::OutOfRange { .. })));
    let twice = Command::Launch {
        kernel: Kernel::Program(squares(&engine, 4)),
        inputs: vec![input.clone()],
        outputs: vec![input.clone()],
    };
    assert!(matches!(failure(twice), Error::Command { .. }));
    let wgsl =
        Command::Launch { kernel: Kernel::wgsl("", "main", [1; 3]), inputs: vec![input.clone()], outputs: vec![] };
    assert!(matches!(failure(wgsl), Error::Command { .. }));
    command(&engine, Command::Free { memory: input.clone() }).unwrap();
    assert_eq!(failure(Command::Free { memory: input }), Error::Freed);
    assert_eq!(failure(launch), Error::Freed);
    let impossible = Command::Allocate { device: Device::Cpu, bytes: usize::MAX / 2 };
    assert!(matches!(failure(impossible), Error::Run(crate::RunError::OutOfMemory { .. })));
}

#[test]
fn a_stream_keeps_its_order() {
    let engine = engine(QueueConfig::default());
    let program = squares(&engine, 3);
    let inputs = (0..500).map(|i| [values(i as f32, if i % 7 == 0 { 5 } else { 3 })]);
    let results: Vec<f32> =
        program.stream(inputs).map(|outputs| outputs.unwrap()[0].as_slice::<f32>().unwrap()[0]).collect();
    assert_eq!(results, (0..500).map(|i| (i * i) as f32).collect::<Vec<_>>());
}
