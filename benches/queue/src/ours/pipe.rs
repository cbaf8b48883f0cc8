//! The queue as a pipe: a request enters as a command on the CPU, its answer leaves through the ticket.

use breakeven::{Answer as Answered, Command, Config, Device, Engine, Job, Memory, QueueConfig, Ticket};

use crate::OURS;
use crate::arm::Fallible;
use crate::pipe::Pipe;
use crate::request::{Answer, MEMORY_BYTES, Outcome, Refused, Request};

/// An engine on one thread of the CPU: beside its worker, helpers would only be in the way.
pub fn engine(queue: QueueConfig) -> Fallible<Engine> {
    Ok(Engine::with_config(Config { device: Device::Cpu, threads: Some(1), queue, ..Config::default() })?)
}

/// The engine's queue, with memory as large as the largest payload.
pub struct Ours {
    engine: Engine,
    memory: Memory,
}

impl Pipe for Ours {
    const NAME: &'static str = OURS;
    /// A job that was refused is told where it is waited for.
    type Reply = Result<Ticket, Refused>;

    fn open(capacity: usize) -> Fallible<Ours> {
        let engine = engine(QueueConfig { capacity, ..QueueConfig::default() })?;
        let memory = engine.allocate(Device::Cpu, MEMORY_BYTES)?;
        // Touched, as the peers' is, so that no first write pays for pages.
        memory.write(0, &vec![1; MEMORY_BYTES])?;
        // The queue starts with its first job.
        let ours = Ours { engine, memory };
        ours.call(Request::Synchronize)?;
        Ok(ours)
    }

    fn submit(&self, request: Request) -> Result<Ticket, Refused> {
        let memory = || self.memory.clone();
        let command = match request {
            Request::Synchronize => Command::Synchronize { device: Device::Cpu },
            Request::Write(data) => Command::Write { memory: memory(), offset: 0, data },
            Request::Read(bytes) => Command::Read { memory: memory(), offset: 0, bytes },
            Request::Fail => Command::Read { memory: memory(), offset: 0, bytes: MEMORY_BYTES + 1 },
            Request::Launch(_) => return Err(Refused::Unexpected("a program is a job of its own")),
        };
        Ok(self.engine.submit(Job::command(command))?)
    }

    fn wait(ticket: Result<Ticket, Refused>) -> Outcome {
        match ticket?.wait()? {
            Answered::Bytes(data) => Ok(Answer::Data(data)),
            Answered::Done => Ok(Answer::Done),
            _ => Err(Refused::Unexpected("a command was answered with something else")),
        }
    }
}
