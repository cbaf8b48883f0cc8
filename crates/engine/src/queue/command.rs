//! Low-level commands, for those who drive a device themselves, and the memory that they are about.
//!
//! A command enters the queue like any other job and is answered with its result or a typed error. Commands of one
//! producer for one device are carried out in the order in which they were submitted.

use super::sync::{Mutex, lock};
use crate::config::Device;
use crate::devices::Slot;
use crate::error::{Error, Result};
use crate::program::Program;
use breakeven_cpu::{Block, Blocks};
use breakeven_ir::backend::{Resident, RunError};
use bytes::Bytes;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// Something to be done by one device.
///
/// ```
/// use breakeven::{Answer, Command, Device, Engine, Job};
/// let engine = Engine::new()?;
/// let run = |command| engine.submit(Job::command(command))?.wait();
/// let Answer::Memory(memory) = run(Command::Allocate { device: Device::Cpu, bytes: 4 })? else { unreachable!() };
/// run(Command::Write { memory: memory.clone(), offset: 1, data: vec![7u8, 8].into() })?;
/// let Answer::Bytes(bytes) = run(Command::Read { memory: memory.clone(), offset: 0, bytes: 4 })? else { unreachable!() };
/// assert_eq!(&bytes[..], [0, 7, 8, 0]);
/// run(Command::Free { memory })?;
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Command {
    /// Memory of this many bytes, all 0: [`Answer::Memory`](crate::Answer::Memory).
    Allocate {
        /// `cpu` or one GPU.
        device: Device,
        /// How many.
        bytes: usize,
    },
    /// Gives memory back. Other handles of it are of no use any more.
    Free {
        /// The memory.
        memory: Memory,
    },
    /// Writes bytes, which are not copied on their way.
    Write {
        /// Where.
        memory: Memory,
        /// From this byte on.
        offset: usize,
        /// What.
        data: Bytes,
    },
    /// Reads bytes: [`Answer::Bytes`](crate::Answer::Bytes).
    Read {
        /// Where.
        memory: Memory,
        /// From this byte on.
        offset: usize,
        /// How many.
        bytes: usize,
    },
    /// Runs a kernel over memory of one device.
    Launch {
        /// What runs.
        kernel: Kernel,
        /// What it reads: the inputs of a program, in order; for WGSL the first bindings.
        inputs: Vec<Memory>,
        /// What it writes: the outputs of a program, in order; for WGSL the bindings after the inputs.
        outputs: Vec<Memory>,
    },
    /// Is answered when everything that the device was doing, and this producer submitted before, is done.
    Synchronize {
        /// `cpu` or one GPU.
        device: Device,
    },
}

/// A command as it travels: all but launches are small, and allocate nothing on their way.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Allocate { device: Device, bytes: usize },
    Free(Memory),
    Write { memory: Memory, offset: usize, data: Bytes },
    Read { memory: Memory, offset: usize, bytes: usize },
    Launch(Box<Launching>),
    Synchronize { device: Device },
}

/// What is launched.
#[derive(Clone, Debug)]
pub(crate) struct Launching {
    pub(crate) kernel: Kernel,
    pub(crate) inputs: Vec<Memory>,
    pub(crate) outputs: Vec<Memory>,
}

impl From<Command> for Order {
    #[inline]
    fn from(command: Command) -> Order {
        match command {
            Command::Allocate { device, bytes } => Order::Allocate { device, bytes },
            Command::Free { memory } => Order::Free(memory),
            Command::Write { memory, offset, data } => Order::Write { memory, offset, data },
            Command::Read { memory, offset, bytes } => Order::Read { memory, offset, bytes },
            Command::Launch { kernel, inputs, outputs } => {
                Order::Launch(Box::new(Launching { kernel, inputs, outputs }))
            }
            Command::Synchronize { device } => Order::Synchronize { device },
        }
    }
}

impl Order {
    /// The device that carries it out: 0 is the CPU.
    #[inline]
    pub(crate) fn device(&self) -> Result<usize> {
        match self {
            Order::Allocate { device, .. } => one_device(*device, "allocate"),
            Order::Synchronize { device } => one_device(*device, "synchronize"),
            Order::Free(memory) | Order::Write { memory, .. } | Order::Read { memory, .. } => Ok(memory.inner.device),
            Order::Launch(launching) => {
                let wrong = |why: &str| Err(Error::Command { what: "launch", why: why.into() });
                let memories = launching.inputs.iter().chain(&launching.outputs);
                let mut devices = memories.map(|memory| memory.inner.device);
                let Some(first) = devices.next() else { return wrong("it reads and writes no memory") };
                if devices.any(|device| device != first) {
                    return wrong("its memory lies on several devices");
                }
                Ok(first)
            }
        }
    }
}

/// The device that a command names: 0 is the CPU.
#[inline]
pub(crate) fn one_device(device: Device, what: &'static str) -> Result<usize> {
    match device {
        Device::Cpu => Ok(0),
        Device::Gpu(Some(number)) => Ok(number + 1),
        Device::Auto | Device::Gpu(None) | Device::All => {
            Err(Error::Command { what, why: format!("`{device}` names no device; `cpu` and `gpu:0` do") })
        }
    }
}

/// What a [`Command::Launch`] runs.
///
/// ```
/// use breakeven::Kernel;
/// let double = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
///     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
///         if (id.x < arrayLength(&x)) { x[id.x] *= 2.0; }
///     }";
/// let kernel = Kernel::wgsl(double, "main", [4, 1, 1]);
/// assert!(matches!(kernel, Kernel::Wgsl { workgroups: [4, 1, 1], .. }));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kernel {
    /// A compiled program; its results replace the contents of the outputs.
    Program(Program),
    /// A kernel of one's own, for GPUs: see [`backend::Launch`](crate::backend::Launch) for how memory is bound.
    Wgsl {
        /// The module's text.
        source: Arc<str>,
        /// Its entry point.
        entry: Arc<str>,
        /// What it is told; may be empty.
        params: Bytes,
        /// How many workgroups in each dimension.
        workgroups: [u32; 3],
    },
}

impl Kernel {
    /// A kernel in WGSL without parameters.
    pub fn wgsl(source: impl Into<Arc<str>>, entry: impl Into<Arc<str>>, workgroups: [u32; 3]) -> Kernel {
        Kernel::Wgsl { source: source.into(), entry: entry.into(), params: Bytes::new(), workgroups }
    }
}

/// Memory on a device that was allocated by a command. Clones are the same memory, which is given back when it is freed or
/// the last of them is dropped.
///
/// It can be written and read directly, too, which takes no turn in the queue.
///
/// ```
/// use breakeven::{Device, Engine, Error};
/// let engine = Engine::new()?;
/// let memory = engine.allocate(Device::Cpu, 8)?;
/// memory.write(4, &7u32.to_ne_bytes())?;
/// let mut bytes = [1u8; 8];
/// memory.read(0, &mut bytes)?;
/// assert_eq!(bytes[4..], 7u32.to_ne_bytes());
/// memory.free();
/// assert_eq!(memory.read(0, &mut bytes), Err(Error::Freed));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// 0 is the CPU.
    pub(crate) device: usize,
    /// Whoever submits clones and drops handles while a worker writes and reads: each would wait for the other's cache line.
    pub(crate) used: CachePadded<Used>,
}

/// What workers look at.
pub(crate) struct Used {
    bytes: usize,
    /// `None` when it was freed.
    pub(crate) held: Mutex<Option<Held>>,
}

/// Where it is.
pub(crate) enum Held {
    Host(Host),
    Device { slot: Arc<Slot>, resident: Arc<dyn Resident> },
}

/// Memory of the CPU's pool.
pub(crate) struct Host {
    block: Block,
    /// Bytes up to this one hold something; the others count as 0 until somebody reads or passes them. Clearing a megabyte
    /// takes 30 times as long as getting it, and most memory is written as a whole.
    filled: usize,
}

impl Host {
    /// Everything, with zeros where nothing was written.
    pub(crate) fn all(&mut self) -> &mut [u8] {
        let bytes = self.block.as_mut_bytes();
        bytes[self.filled..].fill(0);
        self.filled = bytes.len();
        bytes
    }
}

impl Memory {
    pub(crate) fn on_host(blocks: &Arc<Blocks>, bytes: usize) -> Result<Memory> {
        let held = Held::Host(Host { block: blocks.take(bytes)?, filled: 0 });
        Ok(Memory::new(0, bytes, held))
    }

    pub(crate) fn on_device(slot: Arc<Slot>, device: usize, bytes: usize) -> Result<Memory> {
        let resident = slot.backend.allocate(bytes)?;
        Ok(Memory::new(device, bytes, Held::Device { slot, resident }))
    }

    fn new(device: usize, bytes: usize, held: Held) -> Memory {
        Memory {
            inner: Arc::new(Inner { device, used: CachePadded::new(Used { bytes, held: Mutex::new(Some(held)) }) }),
        }
    }

    /// How many bytes it has.
    pub fn len_bytes(&self) -> usize {
        self.inner.used.bytes
    }

    /// Writes bytes from byte `offset` on.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        match lock(&self.inner.used.held).as_mut() {
            None => return Err(Error::Freed),
            Some(Held::Host(host)) => {
                let end = offset + bytes.len();
                let memory = host.block.as_mut_bytes();
                if offset > host.filled {
                    memory[host.filled..offset].fill(0);
                }
                memory[offset..end].copy_from_slice(bytes);
                host.filled = host.filled.max(end);
            }
            Some(Held::Device { slot, resident }) => slot.backend.write(resident, offset, bytes)?,
        }
        Ok(())
    }

    /// Reads bytes from byte `offset` on.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        self.check(offset, into.len())?;
        match lock(&self.inner.used.held).as_mut() {
            None => return Err(Error::Freed),
            Some(Held::Host(host)) => {
                if offset + into.len() > host.filled {
                    host.all();
                }
                into.copy_from_slice(&host.block.as_mut_bytes()[offset..offset + into.len()]);
            }
            Some(Held::Device { slot, resident }) => slot.backend.read(resident, offset, into)?,
        }
        Ok(())
    }

    /// Gives it back. False if that was done before.
    pub fn free(&self) -> bool {
        let held = lock(&self.inner.used.held).take();
        held.is_some()
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<()> {
        let size = self.inner.used.bytes;
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= size);
        if fits { Ok(()) } else { Err(RunError::OutOfRange { offset, bytes, size }.into()) }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = crate::route::single(self.inner.device);
        write!(f, "Memory({} bytes on {device})", self.inner.used.bytes)
    }
}
