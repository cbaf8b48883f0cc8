//! Our own arms: a request enters the engine's queue, its answer leaves.
//!
//! Requests are the queue's own commands on the CPU: a synchronize, a write, a read. Without the feature `ours` there
//! are no arms, and the peers are measured among themselves.

#[cfg(not(feature = "ours"))]
use crate::{arm::Fallible, case::Case};

#[cfg(not(feature = "ours"))]
/// No arms.
pub fn kernel_cases() -> Fallible<Vec<Case>> {
    Ok(Vec::new())
}

#[cfg(not(feature = "ours"))]
/// No arms.
pub fn device_cases() -> Fallible<Vec<Case>> {
    Ok(Vec::new())
}

#[cfg(not(feature = "ours"))]
/// No arms.
pub fn metrics_cases() -> Fallible<Vec<Case>> {
    Ok(Vec::new())
}

#[cfg(feature = "ours")]
pub use library::{Ours, OursPool, device_cases, kernel_cases, metrics_cases};

#[cfg(feature = "ours")]
mod library {
    use std::hint::black_box;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use breakeven::{Command, Config, Device, Engine, Job, Memory, SimBackend, SimProfile, Tensor, Ticket};
    use bytes::Bytes;

    use crate::OURS;
    use crate::arm::Fallible;
    use crate::case::Case;
    use crate::groups::{EACH, ELEMENTS, ON, program};
    use crate::pipe::{CAPACITY, Pipe};
    use crate::pool::Pool;
    use crate::request::{Answer, MEMORY_BYTES, Outcome, Refused, Request};

    /// An engine on the CPU whose queue holds so many jobs.
    fn engine(capacity: usize, metrics: bool) -> Fallible<Engine> {
        let config =
            Config { device: Device::Cpu, threads: Some(1), queue_capacity: capacity, metrics, ..Config::default() };
        Ok(Engine::with_config(config)?)
    }

    fn refused(error: breakeven::Error) -> Refused {
        Refused(error.to_string())
    }

    /// The engine's queue, with memory as large as the largest payload.
    pub struct Ours {
        engine: Engine,
        memory: Memory,
        /// A write that takes as long as [`Request::Busy`] asks for: no command waits, so that copying has to do.
        slow: Bytes,
    }

    impl Pipe for Ours {
        const NAME: &'static str = OURS;
        type Reply = Result<Ticket, Refused>;

        fn open(capacity: usize) -> Fallible<Ours> {
            let engine = engine(capacity, false)?;
            let memory = allocate(&engine, MEMORY_BYTES)?;
            let slow = Bytes::from(vec![7; bytes_copied_in(Duration::from_micros(10))]);
            Ok(Ours { engine, memory, slow })
        }

        fn submit(&self, request: Request) -> Result<Ticket, Refused> {
            let memory = self.memory.clone();
            let command = match request {
                Request::Synchronize => Command::Synchronize { device: Device::Cpu },
                Request::Write(data) => Command::Write { memory, offset: 0, data },
                Request::Read(bytes) => Command::Read { memory, offset: 0, bytes },
                Request::Busy(_) => Command::Write { memory, offset: 0, data: self.slow.clone() },
                Request::Fail => Command::Read { memory, offset: 0, bytes: MEMORY_BYTES + 1 },
                Request::Launch(_) => return Err(Refused("a program is a job of its own".to_owned())),
            };
            self.engine.submit(Job::command(command)).map_err(refused)
        }

        fn wait(ticket: Result<Ticket, Refused>) -> Outcome {
            match ticket?.wait().map_err(refused)? {
                breakeven::Answer::Bytes(data) => Ok(Answer::Data(data)),
                _ => Ok(Answer::Done),
            }
        }
    }

    /// How much one thread copies in this time here.
    fn bytes_copied_in(time: Duration) -> usize {
        let (from, mut to) = (vec![7u8; MEMORY_BYTES], vec![1u8; MEMORY_BYTES]);
        let mut best = Duration::MAX;
        for _ in 0..9 {
            let start = Instant::now();
            black_box(&mut to).copy_from_slice(black_box(&from));
            best = best.min(start.elapsed());
        }
        let share = time.as_secs_f64() / best.as_secs_f64().max(1e-9);
        ((MEMORY_BYTES as f64 * share) as usize).clamp(1, MEMORY_BYTES)
    }

    fn allocate(engine: &Engine, bytes: usize) -> Result<Memory, Refused> {
        let job = Job::command(Command::Allocate { device: Device::Cpu, bytes });
        match engine.submit(job).map_err(refused)?.wait().map_err(refused)? {
            breakeven::Answer::Memory(memory) => Ok(memory),
            _ => Err(Refused("an allocation was answered without memory".to_owned())),
        }
    }

    /// The engine's memory on the CPU, through the queue's commands.
    pub struct OursPool {
        engine: Engine,
    }

    impl OursPool {
        fn call(&self, command: Command) -> Result<breakeven::Answer, Refused> {
            self.engine.submit(Job::command(command)).map_err(refused)?.wait().map_err(refused)
        }
    }

    impl Pool for OursPool {
        const NAME: &'static str = OURS;
        type Memory = Memory;

        fn open(limit_bytes: usize) -> Fallible<OursPool> {
            let config = Config {
                device: Device::Cpu,
                threads: Some(1),
                memory_limit_bytes: Some(limit_bytes),
                ..Config::default()
            };
            Ok(OursPool { engine: Engine::with_config(config)? })
        }

        fn allocate(&self, bytes: usize) -> Result<Memory, Refused> {
            allocate(&self.engine, bytes)
        }

        fn free(&self, memory: Memory) -> Result<(), Refused> {
            self.call(Command::Free { memory }).map(drop)
        }

        fn write(&self, memory: &mut Memory, data: &Bytes) -> Result<(), Refused> {
            self.call(Command::Write { memory: memory.clone(), offset: 0, data: data.clone() }).map(drop)
        }

        fn read(&self, memory: &Memory, bytes: usize) -> Result<Bytes, Refused> {
            match self.call(Command::Read { memory: memory.clone(), offset: 0, bytes })? {
                breakeven::Answer::Bytes(data) => Ok(data),
                _ => Err(Refused("a read was answered without bytes".to_owned())),
            }
        }
    }

    /// A program through the queue.
    pub fn kernel_cases() -> Fallible<Vec<Case>> {
        let (engine, program) = program()?;
        let values = Tensor::from_vec(vec![1.0f32; ELEMENTS], [ELEMENTS])?;
        Ok(vec![Case::whole(OURS, "", move || {
            let ticket = engine.submit(Job::program(&program, [values.clone(), values.clone()]))?;
            drop(black_box(ticket.wait()?));
            Ok(())
        })])
    }

    /// One engine, two simulated devices.
    pub fn device_cases() -> Fallible<Vec<Case>> {
        let profile = || SimProfile::by_name("modern-discrete");
        let devices: Vec<Arc<dyn breakeven::backend::Backend>> =
            vec![Arc::new(SimBackend::new("gpu:0", profile()?)?), Arc::new(SimBackend::new("gpu:1", profile()?)?)];
        let engine = Engine::with_backends(Config { queue_capacity: CAPACITY, ..Config::default() }, devices)?;
        let mut tickets = Vec::with_capacity(2 * EACH);
        Ok(vec![Case::whole(OURS, "", move || {
            for _ in 0..EACH {
                for number in 0..2 {
                    let command = Command::Synchronize { device: Device::Gpu(Some(number)) };
                    tickets.push(engine.submit(Job::command(command))?);
                }
            }
            for ticket in tickets.drain(..) {
                ticket.wait()?;
            }
            Ok(())
        })])
    }

    /// Round trips without the engine's metrics, and with them.
    pub fn metrics_cases() -> Fallible<Vec<Case>> {
        let case = |variant: &str, metrics: bool| {
            let engine = engine(CAPACITY, metrics)?;
            Ok::<_, Box<dyn std::error::Error>>(Case::whole(OURS, variant, move || {
                let ticket = engine.submit(Job::command(Command::Synchronize { device: Device::Cpu }))?;
                drop(ticket.wait()?);
                Ok(())
            }))
        };
        Ok(vec![case("", false)?, case(ON, true)?])
    }
}
