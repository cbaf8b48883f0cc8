//! Batches in the call tree of a thread: what is known of them when they are done enters, their frames, spans and entries are
//! in the tree.
//!
//! A small batch would feel every word that is written for it. So one with nothing else inside goes in all at once, and its
//! spans are made of what is kept of it when the thread has ended.

use super::super::model::{FrameKind, Phase, Span};
use super::super::names::Name;
use super::super::node::{Mark, NOBODY};
use super::super::told::BatchEntry;
use super::{Budget, Part, Tree};

/// The number of what begins and ends under one lock: no guard has it.
const BATCH: u64 = u64::MAX;

/// A batch that has begun.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    serial: u64,
    plan: u32,
    record: Part,
}

impl Tree {
    /// A batch of this number has begun, and what was recorded of it is read. Other spans may begin inside of it.
    pub(crate) fn begin_batch(&mut self, serial: u64, plan: u32, record: Part, budget: &Budget) {
        self.settle(budget);
        self.pending = Some(Pending { serial, plan, record });
    }

    /// The batch that has begun is opened, because something else happens.
    #[inline]
    pub(super) fn settle(&mut self, budget: &Budget) {
        if let Some(pending) = self.pending.take() {
            self.open_pending(pending, budget);
        }
    }

    #[cold]
    fn open_pending(&mut self, Pending { serial, plan, record }: Pending, budget: &Budget) {
        let node = self.batch_node(plan);
        self.push(node, serial, record.begin_ns, false);
        if node.is_some() {
            self.add_part(&record, budget);
        }
    }

    /// The batch of this number is done, with these parts after its record, in the order of their times.
    pub(crate) fn end_batch(&mut self, serial: u64, parts: &[Part], mut entry: BatchEntry, budget: &Budget) {
        // Nothing has happened inside of it, and its thread has waited for nobody.
        let is_plain = parts.iter().all(|part| part.kind == FrameKind::Phase);
        if let Some(pending) = self.pending.take_if(|pending| pending.serial == serial && is_plain) {
            entry.is_plain = true;
            return self.add_parts(pending.plan, std::iter::once(&pending.record).chain(parts), entry, budget);
        }
        entry.is_plain = false;
        self.settle(budget);
        let Some(at) = self.place(serial) else {
            self.batches_not_kept += 1;
            return;
        };
        while self.stack.len() > at + 1 {
            self.pop(self.last_ns, budget);
        }
        parts.iter().for_each(|part| self.add_part(part, budget));
        self.charge(entry.end_ns);
        if self.may_keep_batch(budget) {
            let open = &mut self.stack[at];
            open.batch = Some(self.batches.len() as u32);
            let (node, begin_ns) = (open.node, open.begin_ns);
            self.batches.push(placed(entry, node, begin_ns, self.last_ns));
        }
        self.pop(self.last_ns, budget);
    }

    /// A batch without anything else inside, all at once.
    pub(crate) fn add_batch(&mut self, plan: u32, parts: &[Part], entry: BatchEntry, budget: &Budget) {
        self.settle(budget);
        self.add_parts(plan, parts.iter(), entry, budget);
    }

    fn add_parts<'p>(&mut self, plan: u32, parts: impl Iterator<Item = &'p Part>, entry: BatchEntry, budget: &Budget) {
        self.charge(entry.begin_ns);
        let Some(node) = self.batch_node(plan) else {
            self.spans_not_kept += 1;
            self.batches_not_kept += 1;
            return;
        };
        let begin_ns = self.last_ns;
        let (mut own_ns, mut count) = (0, 0);
        for part in parts {
            count += 1;
            let Some(phase) = self.phase_node(node, part.phase, part.kind) else { continue };
            let from_ns = part.begin_ns.max(self.last_ns);
            let to_ns = part.end_ns.max(from_ns);
            own_ns += from_ns - self.last_ns;
            self.nodes[phase as usize].add(to_ns - from_ns, to_ns - from_ns);
            self.last_ns = to_ns;
        }
        let end_ns = entry.end_ns.max(self.last_ns);
        own_ns += end_ns - self.last_ns;
        self.last_ns = end_ns;
        self.nodes[node as usize].add(end_ns - begin_ns, own_ns);
        if self.may_keep_batch(budget) {
            self.batches.push(placed(entry, node, begin_ns, end_ns));
        } else {
            self.spans_not_kept += 1 + count;
        }
    }

    /// Is there room for a batch? Those without are counted.
    fn may_keep_batch(&mut self, budget: &Budget) -> bool {
        if self.batches_left == 0 {
            self.batches_left = budget.take_batches();
        }
        let may = self.batches_left > 0;
        if may {
            self.batches_left -= 1
        } else {
            self.batches_not_kept += 1
        }
        may
    }

    /// A part of the batch on top, which lies between the last event and now.
    fn add_part(&mut self, part: &Part, budget: &Budget) {
        let Some(top) = self.top() else { return };
        let Some(node) = self.phase_node(top, part.phase, part.kind) else { return };
        self.push(Some(node), BATCH, part.begin_ns, false);
        self.pop(part.end_ns, budget);
    }

    fn batch_node(&mut self, plan: u32) -> Option<u32> {
        let mark = Mark { at: plan as usize, len: usize::MAX, kind: FrameKind::Batch };
        self.near(mark).or_else(|| {
            let node = self.child(self.top()?, Name::Plan(plan), FrameKind::Batch)?;
            self.remember(mark, node);
            Some(node)
        })
    }

    fn phase_node(&mut self, batch: u32, phase: Phase, kind: FrameKind) -> Option<u32> {
        let known = self.nodes[batch as usize].phases[phase as usize];
        if known != NOBODY && self.nodes[known as usize].kind == kind {
            return Some(known);
        }
        let node = self.child(batch, Name::Text(phase as u32), kind)?;
        self.nodes[batch as usize].phases[phase as usize] = node;
        Some(node)
    }

    /// The spans of a batch whose parts lie one after the other.
    pub(super) fn add_spans(&self, batch: &BatchEntry, number: u32, spans: &mut Vec<Span>) {
        let mut begin_ns = batch.begin_ns;
        for phase in [Phase::Record, Phase::Plan, Phase::Kernels, Phase::Convert] {
            let key = (batch.frame, Name::Text(phase as u32), FrameKind::Phase as u8);
            let (Some(ns), Some(frame)) = (batch.phases.get(phase), self.by_key.get(&key)) else { continue };
            let end_ns = (begin_ns + ns).min(batch.end_ns);
            spans.push(Span { frame: *frame, begin_ns, end_ns, batch: None });
            begin_ns = end_ns;
        }
        let BatchEntry { frame, begin_ns, end_ns, .. } = *batch;
        spans.push(Span { frame, begin_ns, end_ns, batch: Some(number) });
    }
}

/// An entry where the tree has its batch: an event that was told later than the batch began takes time from it, and parts
/// are never more than what is left.
fn placed(mut entry: BatchEntry, node: u32, begin_ns: u64, end_ns: u64) -> BatchEntry {
    if (begin_ns, end_ns) != (entry.begin_ns, entry.end_ns) {
        entry.phases.cap(end_ns - begin_ns);
    }
    (entry.frame, entry.begin_ns, entry.end_ns) = (node, begin_ns, end_ns);
    entry
}
