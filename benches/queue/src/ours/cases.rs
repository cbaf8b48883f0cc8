//! What only the engine has: nothing enters, cases leave for programs, devices, metrics and events.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use breakeven::{
    Answer, Command, Config, Device, Engine, Job, Memory, QueueConfig, SimBackend, SimProfile, Tensor, backend::Backend,
};
use bytes::Bytes;

use super::pipe::engine;
use crate::OURS;
use crate::arm::Fallible;
use crate::case::Case;
use crate::groups::{EACH, ELEMENTS, ToDevice, program};
use crate::pipe::CAPACITY;
use crate::report::ON;

/// Nothing here takes a thousandth of this.
const FOREVER: Duration = Duration::from_secs(2);

/// A program through the queue.
pub fn kernel() -> Fallible<Vec<Case>> {
    let (engine, program) = program()?;
    let values = Tensor::from_vec(vec![1.0f32; ELEMENTS], [ELEMENTS])?;
    Ok(vec![Case::whole(OURS, "", move || {
        let ticket = engine.submit(Job::program(&program, [values.clone(), values.clone()]))?;
        match ticket.wait()? {
            Answer::Arrays { outputs, .. } => drop(black_box(outputs)),
            _ => return Err("a program was answered without arrays".into()),
        }
        Ok(())
    })])
}

/// One engine, two simulated devices, which take no time of their own.
pub fn devices(to_device: ToDevice) -> Fallible<Vec<Case>> {
    let profile = || SimProfile::by_name("modern-discrete");
    let sims: Vec<Arc<dyn Backend>> =
        vec![Arc::new(SimBackend::new("gpu:0", profile()?)?), Arc::new(SimBackend::new("gpu:1", profile()?)?)];
    let devices = [Device::Gpu(Some(0)), Device::Gpu(Some(1))];
    let queue = QueueConfig { capacity: CAPACITY, devices: devices.to_vec(), ..QueueConfig::default() };
    let engine = Engine::with_backends(Config { threads: Some(1), queue, ..Config::default() }, sims)?;
    let memories: Vec<(Device, Memory)> =
        devices.into_iter().map(|device| Ok((device, engine.allocate(device, 4)?))).collect::<Fallible<_>>()?;
    let command = move |device: Device, memory: &Memory| match to_device {
        ToDevice::Synchronize => Command::Synchronize { device },
        ToDevice::Write => Command::Write { memory: memory.clone(), offset: 0, data: Bytes::from_static(&[7; 4]) },
    };
    let mut tickets = Vec::with_capacity(2 * EACH);
    Ok(vec![Case::whole(OURS, "", move || {
        for _ in 0..EACH {
            for (device, memory) in &memories {
                tickets.push(engine.submit(Job::command(command(*device, memory)))?);
            }
        }
        for ticket in tickets.drain(..) {
            // A job that is never answered is a line of the table, not the end of the run.
            ticket.wait_timeout(FOREVER).ok_or("a command to one of two devices was never answered")??;
        }
        Ok(())
    })])
}

/// Round trips without the engine's metrics, and with them: the one or the other first, as told.
pub fn metrics(with_first: bool) -> Fallible<Vec<Case>> {
    let case = |variant: &str, metrics: bool| {
        let engine = engine(QueueConfig { capacity: CAPACITY, metrics, ..QueueConfig::default() })?;
        Fallible::Ok(Case::whole(OURS, variant, move || round_trip(&engine)))
    };
    if with_first { Ok(vec![case(ON, true)?, case("", false)?]) } else { Ok(vec![case("", false)?, case(ON, true)?]) }
}

/// Round trips that nobody hears of, that somebody reads of on a thread of its own, and that somebody has subscribed to
/// without ever reading.
pub fn subscribers() -> Fallible<Vec<Case>> {
    let open = || engine(QueueConfig { capacity: CAPACITY, ..QueueConfig::default() });
    let (alone, read, unread) = (open()?, open()?, open()?);
    let events = read.events();
    // It ends with the engine's queue.
    crate::pipe::start("subscriber", move || events.for_each(|event| drop(black_box(event))))?;
    let silent = unread.events();
    Ok(vec![
        Case::whole(OURS, "", move || round_trip(&alone)),
        Case::whole(OURS, "one reads", move || round_trip(&read)),
        Case::whole(OURS, "one does not", move || {
            black_box(&silent);
            round_trip(&unread)
        }),
    ])
}

fn round_trip(engine: &Engine) -> Fallible<()> {
    let ticket = engine.submit(Job::command(Command::Synchronize { device: Device::Cpu }))?;
    drop(ticket.wait()?);
    Ok(())
}
