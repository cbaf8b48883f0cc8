//! Which tasks are one submission: many tasks enter, parts of them leave.
//!
//! One submission is cheaper than two, as far as it fits into the device's bindings, into the time that drivers bear, and, where
//! software computes, into the caches.

use crate::adapters::Kind;
use crate::buffers::ALIGN;
use crate::job::Core;
use crate::mixed::{Entry, TASK_ALIGN};
use crate::session::Session;
use std::sync::Arc;

/// Work of one submission of many tasks, which can't be cut further: 250 ms on the slowest device that was seen.
const MOST_WORK: u64 = 10_000_000;

/// Bytes that one submission of many tasks reads and writes on a software adapter, more or less: what lies in the caches when it
/// is read. Beside eight runs one after the other, eight tasks of 3 MB took 1.03 to 2.4 times as long in one submission, and
/// 0.8 to 0.97 times as long in eight. Between 1.6 and 3.1 MB shapes of 1.5 to 27 MB fared about alike, measured while the cores
/// passed lines on quickly; with slow ones 256k elements in one submission took 1.27 times as long on GL.
const NEAR: u64 = 5 << 19;

/// What a task takes of a submission.
#[derive(Clone, Copy)]
struct Needs {
    /// The most that it adds to any binding, with room for padding.
    bytes: u64,
    work: u64,
    /// Bytes that it reads and writes.
    moved: u64,
    /// Can it not share a submission and its bindings?
    alone: bool,
}

impl Needs {
    fn new(session: &Session, core: &Core) -> Needs {
        let (stages, layout) = (&core.lowered.stages, &core.layout);
        let work: u64 = stages.iter().map(|stage| stage.work).sum();
        let words: usize = stages.iter().map(|stage| 4 * stage.stride()).sum();
        let privates: u64 = layout.privates.iter().map(|bytes| bytes + TASK_ALIGN).sum();
        let bytes = (layout.upload_bytes + words as u64).max(layout.block_bytes).max(privates) + ALIGN;
        let windowed = stages.iter().any(|stage| stage.bindings.iter().any(|b| b.window.start > 0));
        let alone = windowed || bytes > most_bytes(session) / 2 || work > MOST_WORK;
        Needs { bytes, work, moved: layout.upload_bytes + layout.block_bytes, alone }
    }

    /// Of each task; those of one plan in a row are weighed once.
    fn of_all(session: &Session, tasks: &[Entry<'_>]) -> Vec<Needs> {
        let mut all: Vec<Needs> = Vec::with_capacity(tasks.len());
        for (number, task) in tasks.iter().enumerate() {
            let before = number.checked_sub(1).map(|before| &tasks[before].plan.core);
            all.push(match before {
                Some(core) if Arc::ptr_eq(core, &task.plan.core) => all[number - 1],
                _ => Needs::new(session, &task.plan.core),
            });
        }
        all
    }
}

/// Is it a task that can't share a submission and its bindings?
pub(crate) fn is_alone(session: &Session, task: &Entry<'_>) -> bool {
    Needs::new(session, &task.plan.core).alone
}

fn most_bytes(session: &Session) -> u64 {
    session.info.limits.binding_bytes.min(session.info.limits.buffer_bytes)
}

/// Cuts the tasks into parts that fit into one submission and its bindings, and into the caches where those count. A task
/// that can't share is alone, and first.
pub(crate) fn cut(session: &Session, tasks: &[Entry<'_>]) -> Vec<Vec<usize>> {
    let needs = Needs::of_all(session, tasks);
    let near = match session.info.kind {
        // As many parts as needed, of about the same size.
        Kind::Software => {
            let all: u64 = needs.iter().map(|needs| needs.moved).sum();
            all.div_ceil(all.div_ceil(NEAR).max(1))
        }
        _ => u64::MAX,
    };
    let most_bytes = most_bytes(session);
    let mut parts: Vec<Vec<usize>> = vec![Vec::with_capacity(tasks.len())];
    let (mut bytes, mut work, mut before) = (0, 0, 0);
    for (number, needs) in needs.into_iter().enumerate() {
        if needs.alone {
            parts.insert(0, vec![number]);
            continue;
        }
        // A task goes where the greater part of it belongs.
        let is_full = before > 0 && before + needs.moved / 2 > near;
        if bytes + needs.bytes > most_bytes - (1 << 16) || work + needs.work > MOST_WORK || is_full {
            parts.push(Vec::new());
            (bytes, work, before) = (0, 0, 0);
        }
        bytes += needs.bytes;
        work += needs.work;
        before += needs.moved;
        parts.last_mut().into_iter().for_each(|part| part.push(number));
    }
    parts
}
