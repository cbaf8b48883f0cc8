//! Which tasks are one submission: many tasks enter, parts of them leave.
//!
//! One submission is cheaper than two, as far as it fits into the device's bindings, into the time that drivers bear, and, where
//! software computes, into the caches.

use crate::adapters::Kind;
use crate::buffers::ALIGN;
use crate::mixed::{Entry, TASK_ALIGN};
use crate::session::Session;

/// Work of one submission of many tasks, which can't be cut further: 250 ms on the slowest device that was seen.
const MOST_WORK: u64 = 10_000_000;

/// Bytes that one submission of many tasks reads and writes on a software adapter, more or less: what lies in the caches when it
/// is read. Beside eight runs one after the other, eight tasks of 3 MB took 1.03 to 2.4 times as long in one submission, and
/// 0.8 to 0.97 times as long in eight. Between 1.6 and 3.1 MB shapes of 1.5 to 27 MB fared about alike, measured while the cores
/// passed lines on quickly; with slow ones 256k elements in one submission took 1.27 times as long on GL.
const NEAR: u64 = 5 << 19;

/// Is it a task that can't share a submission and its bindings?
pub(crate) fn is_alone(session: &Session, task: &Entry<'_>) -> bool {
    let core = &task.plan.core;
    let windowed = core.lowered.stages.iter().any(|stage| stage.bindings.iter().any(|b| b.window.start > 0));
    windowed || task_bytes(task) > most_bytes(session) / 2 || task_work(task) > MOST_WORK
}

fn most_bytes(session: &Session) -> u64 {
    session.info.limits.binding_bytes.min(session.info.limits.buffer_bytes)
}

fn task_work(task: &Entry<'_>) -> u64 {
    task.plan.core.lowered.stages.iter().map(|stage| stage.work).sum()
}

/// Everything that a task adds to any binding, with room for padding.
fn task_bytes(task: &Entry<'_>) -> u64 {
    let core = &task.plan.core;
    let words: usize = core.lowered.stages.iter().map(|stage| 4 * stage.stride()).sum();
    let layout = &core.layout;
    let privates: u64 = layout.privates.iter().map(|bytes| bytes + TASK_ALIGN).sum();
    (layout.upload_bytes + words as u64).max(layout.block_bytes).max(privates) + ALIGN
}

/// Cuts the tasks into parts that fit into one submission and its bindings, and into the caches where those count. A task
/// that can't share is alone, and first.
pub(crate) fn cut(session: &Session, tasks: &[Entry<'_>]) -> Vec<Vec<usize>> {
    let moved = |task: &Entry<'_>| task.plan.core.layout.upload_bytes + task.plan.core.layout.block_bytes;
    let near = match session.info.kind {
        // As many parts as needed, of about the same size.
        Kind::Software => {
            let all: u64 = tasks.iter().map(moved).sum();
            all.div_ceil(all.div_ceil(NEAR).max(1))
        }
        _ => u64::MAX,
    };
    let most_bytes = most_bytes(session);
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    let (mut bytes, mut work, mut before) = (0, 0, 0);
    for (number, task) in tasks.iter().enumerate() {
        if is_alone(session, task) {
            parts.insert(0, vec![number]);
            continue;
        }
        let (task_bytes, task_work) = (task_bytes(task), task_work(task));
        // A task goes where the greater part of it belongs.
        let is_full = before > 0 && before + moved(task) / 2 > near;
        if bytes + task_bytes > most_bytes - (1 << 16) || work + task_work > MOST_WORK || is_full {
            parts.push(Vec::new());
            (bytes, work, before) = (0, 0, 0);
        }
        bytes += task_bytes;
        work += task_work;
        before += moved(task);
        parts.last_mut().into_iter().for_each(|part| part.push(number));
    }
    parts
}
