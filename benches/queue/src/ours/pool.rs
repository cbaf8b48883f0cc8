//! The engine's memory on the CPU as a pool: sizes enter, memory leaves, by direct calls or by commands through the queue.

use breakeven::{Answer, Command, Device, Engine, Job, Memory, QueueConfig};
use bytes::Bytes;

use super::pipe::engine;
use crate::OURS;
use crate::arm::Fallible;
use crate::pool::{Account, Pool};
use crate::request::Refused;

/// Direct calls, which take no turn in the queue.
pub struct Direct {
    engine: Engine,
    account: Account,
}

impl Pool for Direct {
    const NAME: &'static str = OURS;
    type Memory = Memory;

    fn open(limit_bytes: usize) -> Fallible<Direct> {
        Ok(Direct { engine: engine(QueueConfig::default())?, account: Account::new(limit_bytes) })
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Refused> {
        self.account.take(bytes)?;
        Ok(self.engine.allocate(Device::Cpu, bytes)?)
    }

    fn free(&self, memory: Memory) -> Result<(), Refused> {
        self.account.give(memory.len_bytes());
        if memory.free() { Ok(()) } else { Err(breakeven::Error::Freed.into()) }
    }

    fn write(&self, memory: &mut Memory, data: &Bytes) -> Result<(), Refused> {
        Ok(memory.write(0, data)?)
    }

    fn read(&self, memory: &Memory, into: &mut [u8]) -> Result<(), Refused> {
        Ok(memory.read(0, into)?)
    }
}

/// As [`Direct`], and the pool's statistics are asked for before each allocation, as one does who watches a limit.
pub struct Told {
    direct: Direct,
}

impl Pool for Told {
    const NAME: &'static str = OURS;
    const VARIANT: &'static str = "stats";
    type Memory = Memory;

    fn open(limit_bytes: usize) -> Fallible<Told> {
        Ok(Told { direct: Direct::open(limit_bytes)? })
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Refused> {
        std::hint::black_box(self.direct.engine.memory_stats());
        self.direct.allocate(bytes)
    }

    fn free(&self, memory: Memory) -> Result<(), Refused> {
        self.direct.free(memory)
    }

    fn write(&self, memory: &mut Memory, data: &Bytes) -> Result<(), Refused> {
        self.direct.write(memory, data)
    }

    fn read(&self, memory: &Memory, into: &mut [u8]) -> Result<(), Refused> {
        self.direct.read(memory, into)
    }
}

/// Commands through the queue, each waited for.
pub struct Queued {
    engine: Engine,
    account: Account,
}

impl Queued {
    fn call(&self, command: Command) -> Result<Answer, Refused> {
        Ok(self.engine.submit(Job::command(command))?.wait()?)
    }
}

impl Pool for Queued {
    const NAME: &'static str = OURS;
    const VARIANT: &'static str = "commands";
    type Memory = Memory;

    fn open(limit_bytes: usize) -> Fallible<Queued> {
        Ok(Queued { engine: engine(QueueConfig::default())?, account: Account::new(limit_bytes) })
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Refused> {
        self.account.take(bytes)?;
        match self.call(Command::Allocate { device: Device::Cpu, bytes })? {
            Answer::Memory(memory) => Ok(memory),
            _ => Err(Refused::Unexpected("an allocation was answered without memory")),
        }
    }

    fn free(&self, memory: Memory) -> Result<(), Refused> {
        self.account.give(memory.len_bytes());
        self.call(Command::Free { memory }).map(drop)
    }

    fn write(&self, memory: &mut Memory, data: &Bytes) -> Result<(), Refused> {
        self.call(Command::Write { memory: memory.clone(), offset: 0, data: data.clone() }).map(drop)
    }

    fn read(&self, memory: &Memory, into: &mut [u8]) -> Result<(), Refused> {
        match self.call(Command::Read { memory: memory.clone(), offset: 0, bytes: into.len() })? {
            Answer::Bytes(data) => into.copy_from_slice(&data),
            _ => return Err(Refused::Unexpected("a read was answered without bytes")),
        }
        Ok(())
    }
}
