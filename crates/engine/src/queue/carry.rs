//! Carries commands out: a command enters, what it gives or a typed error leaves.

use super::command::{Held, Kernel, Memory, Order, one_device};
use super::sync::{MutexGuard, lock};
use super::ticket::Answer;
use crate::array::ViewMut;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::execute;
use crate::program::Program;
use breakeven_ir::backend::{Launch, Made, Resident, RunError, Source, Stop};
use breakeven_ir::{Buffer, HostBytes};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// Carries out a command. [`Order::Synchronize`] is its worker's affair: whatever came before it is done.
pub(crate) fn carry_out(engine: &Shared, order: &Order, stop: &Stop) -> Result<Answer> {
    match order {
        Order::Allocate { device, bytes } => {
            allocate(engine, one_device(*device, "allocate")?, *bytes).map(Answer::Memory)
        }
        Order::Free(memory) => {
            if memory.free() {
                Ok(Answer::Done)
            } else {
                Err(Error::Freed)
            }
        }
        Order::Write { memory, offset, data } => memory.write(*offset, data).map(|()| Answer::Done),
        Order::Read { memory, offset, bytes } => {
            // A size that is out of range must not cost memory before it is refused.
            if *bytes > memory.len_bytes() {
                let (offset, bytes, size) = (*offset, *bytes, memory.len_bytes());
                return Err(RunError::OutOfRange { offset, bytes, size }.into());
            }
            let mut data = vec![0; *bytes];
            memory.read(*offset, &mut data)?;
            Ok(Answer::Bytes(Bytes::from(data)))
        }
        Order::Launch(launching) => {
            let (inputs, outputs) = (&launching.inputs[..], &launching.outputs[..]);
            match &launching.kernel {
                Kernel::Program(program) => launch_program(engine, program, inputs, outputs, stop)?,
                Kernel::Wgsl { source, entry, params, workgroups } => {
                    launch_wgsl(source, entry, params, *workgroups, inputs, outputs)?;
                }
            }
            Ok(Answer::Done)
        }
        Order::Synchronize { .. } => Ok(Answer::Done),
    }
}

/// Memory on a device: 0 is the CPU.
pub(crate) fn allocate(engine: &Shared, device: usize, bytes: usize) -> Result<Memory> {
    match device.checked_sub(1) {
        None => Memory::on_host(engine.cpu.blocks(), bytes),
        Some(number) => Memory::on_device(engine.devices.slot(number)?, device, bytes),
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Command { what: "launch", why: why.into() })
}

/// Locks each memory once, in an order that is the same for everyone.
fn held<'a>(memories: &[&'a Memory]) -> Result<Vec<MutexGuard<'a, Option<Held>>>> {
    let mut order: Vec<usize> = (0..memories.len()).collect();
    order.sort_by_key(|at| Arc::as_ptr(&memories[*at].inner));
    if order.windows(2).any(|pair| Arc::ptr_eq(&memories[pair[0]].inner, &memories[pair[1]].inner)) {
        return wrong("memory is named twice: what a kernel writes must be apart from what else it names");
    }
    let mut guards: Vec<Option<MutexGuard<'a, Option<Held>>>> = memories.iter().map(|_| None).collect();
    for at in order {
        guards[at] = Some(lock(&memories[at].inner.used.held));
    }
    let guards: Vec<_> = guards.into_iter().flatten().collect();
    if guards.iter().any(|guard| guard.is_none()) { Err(Error::Freed) } else { Ok(guards) }
}

fn launch_program(
    engine: &Shared,
    program: &Program,
    inputs: &[Memory],
    outputs: &[Memory],
    stop: &Stop,
) -> Result<()> {
    let bound = &program.inner.bound;
    let plan = bound.prepared.plan();
    let count = |what, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Error::Count { what, found, expected }) }
    };
    count("inputs", inputs.len(), program.inner.input_count())?;
    count("outputs", outputs.len(), plan.outputs.len())?;
    if plan.output_buffers().count() != outputs.len() {
        return wrong("two outputs of the program are one value: launch a program that gives it once");
    }
    for (at, input) in inputs.iter().enumerate() {
        let (expected, found) = (program.inner.input_bytes(at), input.len_bytes());
        if found != expected {
            return wrong(format!("input {at} has {expected} bytes, its memory {found}"));
        }
    }
    for (at, (output, id)) in outputs.iter().zip(&plan.outputs).enumerate() {
        let (expected, found) = (plan.buffer(*id).bytes(), output.len_bytes());
        if found != expected {
            return wrong(format!("output {at} has {expected} bytes, its memory {found}"));
        }
    }
    let named: Vec<&Memory> = inputs.iter().chain(outputs).collect();
    let mut guards = held(&named)?;
    let (read, written) = guards.split_at_mut(inputs.len());
    if let Some(Held::Host(_)) = written.first().and_then(|guard| guard.as_ref()) {
        let mut values: Vec<&[u8]> = Vec::with_capacity(read.len());
        for guard in read.iter_mut() {
            if let Some(Held::Host(host)) = guard.as_mut() {
                values.push(host.all());
            }
        }
        let mut places = Vec::with_capacity(written.len());
        for (guard, id) in written.iter_mut().zip(&plan.outputs) {
            if let Some(Held::Host(host)) = guard.as_mut() {
                places.push(ViewMut { bytes: host.all(), dtype: plan.buffer(*id).dtype });
            }
        }
        return bound.with_plan_inputs(&values, |inputs| {
            execute::run_into(&*bound.prepared, engine.cpu.blocks(), inputs, &mut places, Some(stop))
        });
    }
    let values: Vec<Buffer> = read.iter().filter_map(|guard| guard.as_ref().and_then(lent)).collect();
    let sources: Vec<Source<'_>> = bound.plan_sources(&values);
    let Some(Some(Held::Device { slot, .. })) = written.first().map(|guard| &**guard) else {
        return wrong("it writes no memory");
    };
    let slot = slot.clone();
    let (made, _) = slot.ready(plan)?.run_batch_until(&sources, true, stop)?;
    for (guard, id) in written.iter_mut().zip(&plan.outputs) {
        match (&made[execute::output_number(plan, *id)], guard.as_mut()) {
            // What was there is given back to the pool: nothing is copied.
            (Made::Resident(made), Some(Held::Device { resident, .. })) => *resident = made.clone(),
            (Made::Host(made), Some(Held::Device { resident, .. })) => {
                slot.backend.write(resident, 0, made.try_bytes()?)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn launch_wgsl(
    source: &str,
    entry: &str,
    params: &[u8],
    workgroups: [u32; 3],
    inputs: &[Memory],
    outputs: &[Memory],
) -> Result<()> {
    let named: Vec<&Memory> = inputs.iter().chain(outputs).collect();
    let guards = held(&named)?;
    let mut buffers: Vec<Arc<dyn Resident>> = Vec::with_capacity(guards.len());
    let mut device = None;
    for guard in &guards {
        match guard.as_ref() {
            Some(Held::Device { slot, resident }) => {
                device.get_or_insert_with(|| slot.clone());
                buffers.push(resident.clone());
            }
            _ => return wrong("the CPU takes no kernels in WGSL: allocate on a GPU, or launch a program"),
        }
    }
    let Some(slot) = device else { return wrong("it reads and writes no memory") };
    slot.backend.launch(&Launch { source, entry, buffers: &buffers, params, workgroups })?;
    Ok(())
}

/// Memory of a device as an input of a batch there.
fn lent(held: &Held) -> Option<Buffer> {
    let Held::Device { resident, .. } = held else { return None };
    let bytes = resident.len_bytes();
    let lent = Lent { resident: resident.clone(), host: OnceLock::new() };
    Some(Buffer::with_len(Arc::new(lent) as Arc<dyn HostBytes>, bytes))
}

/// Bytes that lie on a device, fetched if the host needs them after all.
struct Lent {
    resident: Arc<dyn Resident>,
    host: OnceLock<Result<Buffer, RunError>>,
}

impl HostBytes for Lent {
    fn as_bytes(&self) -> &[u8] {
        // Whoever can be told of a failure asks with `try_bytes`.
        self.try_bytes().unwrap_or(&[])
    }

    fn try_bytes(&self) -> Result<&[u8], RunError> {
        match self.host.get_or_init(|| self.resident.fetch()) {
            Ok(buffer) => buffer.try_bytes(),
            Err(error) => Err(error.clone()),
        }
    }

    fn resident(&self) -> Option<&Arc<dyn Resident>> {
        Some(&self.resident)
    }
}
