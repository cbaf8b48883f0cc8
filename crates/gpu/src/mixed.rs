//! Many tasks as one batch: tasks that run the same kernels share a dispatch, whatever their sizes.
//!
//! All inputs and parameters lie in one upload, which every binding of an input shows as a whole; a task's words say
//! where its part begins. Each output of all tasks of a group lies in one part of the output block, one task after the
//! other, so that a private output of all of them takes one copy.

use crate::buffers::{ALIGN, Readback, Upload};
use crate::copies::{self, Hands};
use crate::health::lock;
use crate::job::{Command, Core, Done, Group, Job, Many};
use crate::joined::{self, Constants};
use crate::layout::{Layout, Packer, Region, STATUS_BYTES, Spot};
use crate::owner::Handle;
use crate::params;
use crate::parts;
use crate::prepared::{GpuPlan, between_ns, host, zeros};
use crate::session::{Asked, Session};
use crate::share;
use breakeven_ir::Buffer;
use breakeven_ir::backend::{Prepared, RESULT_ALIGN, RunError, Timings};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A task: its plan, its inputs, and the byte of the results at which its own begin.
pub(crate) struct Entry<'a> {
    pub(crate) plan: &'a GpuPlan,
    pub(crate) inputs: &'a [&'a [u8]],
    pub(crate) offset: usize,
}

/// Where what comes of tasks goes.
pub(crate) struct Ends<'a> {
    pub(crate) results: &'a mut [u8],
    /// Told which tasks failed.
    pub(crate) failed: &'a mut dyn FnMut(usize, RunError),
    /// Told where the outputs of a task are, if they may be left where the device has put them.
    pub(crate) left: Option<&'a mut dyn FnMut(usize, Vec<Buffer>)>,
}

/// Results of one submission with fewer bytes a task are copied out: handing each of them over costs as much. A relu of 5,120
/// elements took 17 us longer where its result was copied than where it was read in place: another core has just written it.
const LEFT_BYTES: u64 = 512;

/// Tasks begin at multiples of this inside of a binding: whole vectors, whole cache lines.
pub(crate) const TASK_ALIGN: u64 = RESULT_ALIGN as u64;

/// Runs tasks, as few submissions as they fit into. While the device has one of them, the next one is made ready.
pub(crate) fn run(session: &Arc<Session>, tasks: &[Entry<'_>], ends: &mut Ends<'_>) -> Result<Timings, RunError> {
    let begun = Instant::now();
    let mut total = Timings::default();
    let mut before: Option<Running> = None;
    let mut free = begun;
    for part in parts::cut(session, tasks) {
        let started = match &part[..] {
            [] => continue,
            [task] if parts::is_alone(session, &tasks[*task]) || tasks.len() == 1 => {
                total.add(&run_alone(&tasks[*task], *task, ends)?);
                continue;
            }
            _ => start(session, tasks, part, if before.is_some() { Hands::Own } else { Hands::Helped })?,
        };
        if let Some(before) = before.replace(started) {
            total.add(&finish(session, tasks, before, Hands::Own, &mut free, ends)?);
        }
    }
    if let Some(last) = before {
        total.add(&finish(session, tasks, last, Hands::Helped, &mut free, ends)?);
    }
    // Parts overlap.
    total.total_ns = between_ns(begun, Instant::now());
    Ok(total)
}

fn run_alone(task: &Entry<'_>, number: usize, ends: &mut Ends<'_>) -> Result<Timings, RunError> {
    let mut rest = &mut ends.results[task.offset..];
    let mut outputs: Vec<&mut [u8]> = Vec::new();
    for info in task.plan.core.plan.output_buffers() {
        let (place, after) = rest.split_at_mut(info.bytes().next_multiple_of(RESULT_ALIGN));
        outputs.push(&mut place[..info.bytes()]);
        rest = after;
    }
    match task.plan.run(task.inputs, &mut outputs, false) {
        Err(error @ RunError::TakeIndex { .. }) => {
            (ends.failed)(number, error);
            Ok(Timings::default())
        }
        other => other,
    }
}

/// A group of tasks and where everything of theirs lies.
pub(crate) struct Laid {
    pub(crate) members: Vec<usize>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) places: Places,
    pub(crate) many: Many,
}

/// Where each task of a group begins, inside of what its bindings show.
pub(crate) struct Places {
    /// Task after task.
    pub(crate) inputs: Vec<u64>,
    /// Output after output.
    pub(crate) outputs: Vec<u64>,
    /// Private block after private block.
    pub(crate) privates: Vec<u64>,
}

/// A part that the device has.
struct Running {
    part: Vec<usize>,
    laid: Vec<Laid>,
    handle: Arc<Handle>,
    asked: Asked<Done>,
    work: u64,
    predicted_ns: u64,
    block_bytes: u64,
    /// Timings of what came before it was sent.
    timings: Timings,
    sent: Instant,
}

/// Packs a part and sends it.
fn start(session: &Arc<Session>, tasks: &[Entry<'_>], part: Vec<usize>, hands: Hands) -> Result<Running, RunError> {
    let begun = Instant::now();
    let handle = session.handle()?;
    let (mut upload, mut block) = (Packer::default(), Packer::default());
    let groups = group(tasks, &part).into_iter();
    let mut laid: Vec<Laid> = groups.map(|members| lay_out(tasks, members, &mut upload, &mut block)).collect();
    let upload_bytes = upload.end;
    let work: u64 = laid.iter().flat_map(|laid| &laid.many.work).sum();
    let predicted_ns = tasks[part[0]].plan.core.tasks_ns(work);
    let laid_out = Instant::now();
    let permit = session.enter(&handle, predicted_ns, begun, None)?;
    let entered = Instant::now();
    let (mut memory, created) = session.upload(&handle, upload_bytes, None)?;
    for laid in &mut laid {
        fill(tasks, laid, hands, &mut memory);
        // Every binding of an input shows all of the upload.
        let whole = Region { offset: 0, bytes: upload_bytes };
        let layout = Arc::make_mut(&mut laid.layout);
        layout.inputs.iter_mut().for_each(|input| *input = input.map(|_| whole));
    }
    let groups = laid.iter_mut().map(|laid| {
        let core = tasks[laid.members[0]].plan.core.clone();
        let many = std::mem::take(&mut laid.many);
        Group { core, layout: laid.layout.clone(), residents: Vec::new(), many: Some(many) }
    });
    let groups = groups.collect();
    let (upload, block_bytes, permit) = (Some(memory), block.end, Some(permit));
    let sent = Instant::now();
    let job = |reply| Job { groups, upload, upload_bytes, block_bytes, reply, permit, stop: None, sent };
    let asked = session.send(&handle, || predicted_ns, None, |reply| Command::Run(Box::new(job(reply))))?;
    // Laying the tasks out is what it takes to pack them.
    let upload_ns = between_ns(begun, laid_out) + between_ns(entered, sent);
    let queue_ns = between_ns(laid_out, entered);
    let timings = Timings { upload_ns, queue_ns, created: u32::from(created), ..Timings::default() };
    Ok(Running { part, laid, handle, asked, work, predicted_ns, block_bytes, timings, sent })
}

/// Waits for a part and hands its results over. The device was done with what it had before at `free`.
fn finish(
    session: &Arc<Session>,
    tasks: &[Entry<'_>],
    running: Running,
    hands: Hands,
    free: &mut Instant,
    ends: &mut Ends<'_>,
) -> Result<Timings, RunError> {
    let Running { part, laid, handle, asked, work, predicted_ns, block_bytes, timings, sent } = running;
    let done = session.answer(&handle, &asked, || predicted_ns, None)?;
    let finished = done.finished;
    tasks[part[0]].plan.core.learn_tasks(work, between_ns(sent.max(*free), finished));
    *free = finished;
    let bytes = done.read.as_ref().map_or(&[][..], |read| read.bytes());
    let mut found = Vec::with_capacity(part.len());
    laid.iter().for_each(|laid| find_results(tasks, laid, bytes, &mut found, ends.failed));
    let is_slow = || lock(&session.quirks).slow_mapped_reads;
    match (&mut ends.left, done.read) {
        (Some(left), Some(read)) if block_bytes >= LEFT_BYTES * part.len() as u64 && !is_slow() => {
            leave(&found, read, left)
        }
        (_, read) => hand_out(tasks, &found, read.as_ref().map_or(&[], |read| read.bytes()), hands, ends.results),
    }
    let kernels = part.iter().map(|task| tasks[*task].plan.core.plan.kernels.len() as u32).sum();
    let created = done.timings.created + timings.created;
    let end = Instant::now();
    let (upload_ns, queue_ns) = (timings.upload_ns, done.timings.queue_ns + timings.queue_ns);
    let (readback_ns, total_ns) = (between_ns(finished, end), between_ns(sent, end));
    Ok(Timings { kernels, created, total_ns, upload_ns, queue_ns, readback_ns, ..done.timings })
}

/// Tasks that share dispatches: the same kernels, and sizes that leave little of the grid without work, or one run.
fn group(tasks: &[Entry<'_>], part: &[usize]) -> Vec<Vec<usize>> {
    let core = |task: usize| &*tasks[task].plan.core;
    let mut by_signature: HashMap<(usize, Option<Constants<'_>>), usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut last: Option<(*const Core, usize)> = None;
    for &task in part {
        let number = match last {
            Some((before, number)) if std::ptr::eq(before, core(task)) => number,
            _ => *by_signature.entry((core(task).signature, joined::constants(core(task)))).or_insert_with(|| {
                groups.push(Vec::with_capacity(part.len()));
                groups.len() - 1
            }),
        };
        last = Some((core(task), number));
        groups[number].push(task);
    }
    let split = |members: Vec<usize>| match joined::constants(core(members[0])) {
        Some(_) => vec![members],
        None => share::split(members, |task| &core(task).lowered.stages),
    };
    groups.into_iter().flat_map(split).collect()
}

fn lay_out(tasks: &[Entry<'_>], members: Vec<usize>, upload: &mut Packer, block: &mut Packer) -> Laid {
    let leader = &tasks[members[0]].plan.core;
    if joined::constants(leader).is_some() {
        return joined::lay_out(tasks, members, upload, block);
    }
    let stages = &leader.lowered.stages;
    let cores = || members.iter().map(|member| &tasks[*member].plan.core);
    let mut layout = (*leader.layout).clone();
    let mut places = Places { inputs: Vec::new(), outputs: Vec::new(), privates: Vec::new() };
    for core in cores() {
        let starts =
            core.layout.inputs.iter().map(|region| region.map_or(0, |r| upload.add(r.bytes, TASK_ALIGN).offset));
        places.inputs.extend(starts);
    }
    // One task after the other; `all` becomes what the binding shows.
    let row = |packer: &mut Packer, all: &mut Region, bytes: &dyn Fn(usize) -> u64| -> Vec<u64> {
        let begin = packer.end.next_multiple_of(ALIGN);
        packer.end = begin;
        let starts = (0..members.len()).map(|task| packer.add(bytes(task), TASK_ALIGN).offset - begin).collect();
        *all = Region { offset: begin, bytes: packer.end - begin };
        starts
    };
    let core = |task: usize| &tasks[members[task]].plan.core;
    if leader.lowered.status {
        let bytes = STATUS_BYTES * members.len() as u64;
        layout.status = block.add(bytes, ALIGN);
    }
    for output in 0..layout.outputs.len() {
        let starts = row(block, &mut layout.outputs[output], &|task| core(task).layout.outputs[output].bytes);
        places.outputs.extend(starts);
    }
    for private in 0..layout.privates.len() {
        let mut all = Region::default();
        // A private output is copied as a whole, so it is laid out like its part of the output block.
        let output = layout.private_outputs.iter().find(|(_, number)| *number == private).map(|(output, _)| *output);
        let bytes = |task: usize| match output {
            Some(output) => core(task).layout.outputs[output].bytes,
            None => core(task).layout.privates[private],
        };
        places.privates.extend(row(&mut Packer::default(), &mut all, &bytes));
        layout.privates[private] = all.bytes;
    }
    let params = stages.iter().map(|s| upload.add(4 * (1 + members.len() * s.stride()) as u64, ALIGN)).collect();
    let of_stage = |stage: usize| cores().map(move |core| &core.lowered.stages[stage]);
    let units = (0..stages.len()).map(|s| of_stage(s).map(|stage| stage.units).max().unwrap_or(0)).collect();
    let all = |s: usize| of_stage(s).map(|stage| stage.units).sum();
    let group_units = (0..stages.len()).map(|s| stages[s].turns.group_units(all(s))).collect();
    let work = (0..stages.len()).map(|s| of_stage(s).map(|stage| stage.work).sum()).collect();
    let inputs = places.inputs[..layout.inputs.len()].to_vec();
    let many = Many { tasks: members.len() as u32, params, units, group_units, work, inputs };
    Laid { members, layout: Arc::new(layout), places, many }
}

/// Writes inputs and parameters of a group.
fn fill(tasks: &[Entry<'_>], laid: &Laid, hands: Hands, memory: &mut Upload) {
    let inputs = laid.members.iter().flat_map(|member| tasks[*member].inputs.iter().zip(&laid.layout.inputs));
    let used = inputs.zip(&laid.places.inputs).filter(|((_, region), _)| region.is_some());
    let mut pieces: Vec<(usize, &[u8])> = used.map(|((bytes, _), start)| (*start as usize, *bytes)).collect();
    // Those of one run lie input by input. Nothing takes no room: it begins where what follows does.
    pieces.sort_by_key(|(start, bytes)| (*start, bytes.len()));
    memory.write_all(hands, pieces.into_iter());
    let mut words = Vec::new();
    for (stage, region) in laid.many.params.iter().enumerate() {
        write_params(&mut words, tasks, laid, stage);
        memory.write(region.offset as usize, bytemuck::cast_slice(&words));
    }
}

/// The words of one stage for all tasks.
fn write_params(words: &mut Vec<u32>, tasks: &[Entry<'_>], laid: &Laid, number: usize) {
    let Laid { members, layout, places, many } = laid;
    words.clear();
    words.push(many.tasks);
    let each = layout.inputs.len();
    // Those of one run are one task, which begins with the first of them.
    for (task, member) in members.iter().enumerate().take(many.tasks as usize) {
        let stage = &tasks[*member].plan.core.lowered.stages[number];
        let base = |(binding, spot): (&crate::stage::Binding, &Spot)| {
            let bytes = match *spot {
                Spot::Input(input) => places.inputs[task * each + input],
                Spot::Output(output) => places.outputs[output * members.len() + task],
                Spot::Private(private) => places.privates[private * members.len() + task],
                Spot::Status => STATUS_BYTES * task as u64,
            };
            (bytes / binding.element_bytes as u64) as i64
        };
        let units = if many.tasks == 1 { many.units[number] } else { stage.units };
        params::push_task(words, stage, stage.bindings.iter().zip(&layout.spots[number]).map(base), 0..units);
    }
}

/// An output of a task: the task's number, and where the output lies in what was read back. Outputs of a task come in a row.
type Found = (usize, Range<usize>);

/// Finds a group's results, and tells which tasks failed.
fn find_results(
    tasks: &[Entry<'_>],
    laid: &Laid,
    read: &[u8],
    found: &mut Vec<Found>,
    failed: &mut dyn FnMut(usize, RunError),
) {
    let Laid { members, places, layout, .. } = laid;
    let has_status = tasks[members[0]].plan.core.lowered.status;
    for (task, member) in members.iter().enumerate() {
        if has_status
            && let Err(error) = check_status(read, (layout.status.offset + STATUS_BYTES * task as u64) as usize)
        {
            failed(*member, error);
            continue;
        }
        let outputs = tasks[*member].plan.core.layout.outputs.iter().enumerate();
        found.extend(outputs.map(|(output, region)| {
            let from = (layout.outputs[output].offset + places.outputs[output * members.len() + task]) as usize;
            (*member, from..from + region.bytes as usize)
        }));
    }
}

/// Hands results over where they are.
fn leave(found: &[Found], read: Readback, left: &mut dyn FnMut(usize, Vec<Buffer>)) {
    let whole = host(read, false);
    for outputs in found.chunk_by(|a, b| a.0 == b.0) {
        let part = |(_, range): &Found| whole.slice(range.clone()).unwrap_or_else(|| zeros(0));
        left(outputs[0].0, outputs.iter().map(part).collect());
    }
}

/// Copies results to where they belong.
fn hand_out(tasks: &[Entry<'_>], found: &[Found], read: &[u8], hands: Hands, mut results: &mut [u8]) {
    let mut order: Vec<&[Found]> = found.chunk_by(|a, b| a.0 == b.0).collect();
    order.sort_unstable_by_key(|outputs| tasks[outputs[0].0].offset);
    let mut at = 0;
    let mut copies = Vec::with_capacity(found.len());
    for outputs in order {
        let mut to = tasks[outputs[0].0].offset;
        for (_, range) in outputs {
            let bytes = range.len();
            // Nothing has no place of its own: what follows begins at the same byte.
            if let Some(from) = read.get(range.clone()).filter(|result| !result.is_empty()) {
                let place = to.checked_sub(at).and_then(|gap| {
                    results.split_off_mut(..gap)?;
                    results.split_off_mut(..bytes)
                });
                debug_assert!(place.is_some(), "results overlap or lie outside of their memory");
                copies.extend(place.map(|place| (bytes, Some((place, from)))));
                at = to + bytes;
            }
            to += bytes.next_multiple_of(RESULT_ALIGN);
        }
    }
    copies::run(hands, &mut copies, |(place, from)| place.copy_from_slice(from));
}

/// Did a gather leave its axis?
pub(crate) fn check_status(read: &[u8], offset: usize) -> Result<(), RunError> {
    let word = |number: usize| {
        let from = offset + 4 * number;
        read.get(from..from + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    if word(0) == 0 { Ok(()) } else { Err(RunError::TakeIndex { index: word(1) as i32, extent: word(2) as usize }) }
}

#[cfg(test)]
#[path = "mixed_tests.rs"]
mod tests;
