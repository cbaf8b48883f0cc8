//! The call tree of one thread: beginnings and ends of spans enter, in the order of their times; self and total times of
//! frames leave.
//!
//! Sums are made as time passes. Whatever lies between two events belongs to the frame that was on top, and to no other: so
//! self times add up to the thread's time, whatever is opened and closed in whatever order.

use super::budget::{self, Budget};
use super::model::{Frame, FrameKind, Phase, Span, ThreadRecord};
use super::names::{Name, Names, Text};
use super::node::{Mark, NOBODY, Near, Node};
use super::told::BatchEntry;
use batches::Pending;
use std::borrow::Cow;
use std::collections::HashMap;

mod batches;

/// The call tree of one thread.
pub(crate) struct Tree {
    names: Names,
    nodes: Vec<Node>,
    /// By caller, name and kind.
    by_key: HashMap<(u32, Name, u8), u32>,
    stack: Vec<Open>,
    begin_ns: u64,
    /// The last event.
    last_ns: u64,
    spans: Vec<Span>,
    spans_left: u64,
    pub(crate) batches: Vec<BatchEntry>,
    batches_left: u64,
    pub(crate) spans_not_kept: u64,
    pub(crate) batches_not_kept: u64,
    /// Numbers of plans, by their addresses, which are theirs for as long as the recording has them.
    plans: HashMap<usize, u32>,
    /// The last of them.
    last_plan: (usize, u32),
    /// A batch that has begun and is not in the tree yet: it is put there at once when it is done, or before anything else.
    pending: Option<Pending>,
    is_ended: bool,
}

/// Children beyond this number are looked up by their names: up to here looking at each of them is quicker.
const NEAR: usize = 16;

struct Open {
    node: u32,
    serial: u64,
    begin_ns: u64,
    /// Was it begun before, and counted?
    is_resumed: bool,
    batch: Option<u32>,
}

/// A part of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) phase: Phase,
    pub(crate) kind: FrameKind,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl Tree {
    /// A thread that joins.
    pub(crate) fn new(name: Cow<'static, str>, now_ns: u64) -> Tree {
        let mut names = Names::default();
        // Phases first: their numbers are known.
        for phase in Phase::ALL {
            names.number(phase.name().into());
        }
        let root = Node::new(names.number(name), FrameKind::Thread, NOBODY);
        let open = Open { node: 0, serial: 0, begin_ns: now_ns, is_resumed: false, batch: None };
        Tree {
            names,
            nodes: vec![root],
            by_key: HashMap::new(),
            stack: vec![open],
            begin_ns: now_ns,
            last_ns: now_ns,
            spans: Vec::new(),
            spans_left: 0,
            batches: Vec::new(),
            batches_left: 0,
            spans_not_kept: 0,
            batches_not_kept: 0,
            plans: HashMap::new(),
            last_plan: (0, 0),
            pending: None,
            is_ended: false,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// A span begins. It ends when its serial number is closed.
    pub(crate) fn open(&mut self, serial: u64, kind: FrameKind, name: Text<'_>, now_ns: u64, budget: &Budget) {
        self.settle(budget);
        match name {
            Text::Fixed(text) => {
                let mark = Mark { at: text.as_ptr() as usize, len: text.len(), kind };
                let node = self.near(mark).or_else(|| {
                    let node = self.named(kind, name)?;
                    self.remember(mark, node);
                    Some(node)
                });
                self.push(node, serial, now_ns, false);
            }
            Text::Made(_) => {
                let node = self.named(kind, name);
                self.push(node, serial, now_ns, false);
            }
        }
    }

    /// The number of a plan, by its address: as it was known before, or as `ask` says, and whether it stays so.
    pub(crate) fn plan_number(&mut self, address: usize, ask: impl FnOnce() -> (u32, bool)) -> u32 {
        if self.last_plan.0 != address {
            let number = match self.plans.get(&address) {
                Some(number) => *number,
                None => {
                    let (number, stays) = ask();
                    if !stays {
                        return number;
                    }
                    self.plans.insert(address, number);
                    number
                }
            };
            self.last_plan = (address, number);
        }
        self.last_plan.1
    }

    /// The span of this number ends, and with it all that were begun inside of it: their guards were leaked, or are dropped
    /// too late. One that has ended already is no matter.
    pub(crate) fn close(&mut self, serial: u64, now_ns: u64, budget: &Budget) {
        self.settle(budget);
        let Some(at) = self.place(serial) else { return };
        while self.stack.len() > at {
            self.pop(now_ns, budget);
        }
    }

    /// The span of this number ends, and those that were begun inside of it go on below its caller.
    #[cfg(any(feature = "tracing", test))]
    pub(crate) fn close_alone(&mut self, serial: u64, now_ns: u64, budget: &Budget) {
        self.settle(budget);
        let Some(at) = self.place(serial) else { return };
        let above: Vec<(u64, u32, Option<u32>)> =
            self.stack[at + 1..].iter().map(|open| (open.serial, open.node, open.batch)).collect();
        while self.stack.len() > at {
            self.pop(now_ns, budget);
        }
        for (serial, node, batch) in above {
            let Node { name, kind, .. } = self.nodes[node as usize];
            let node = self.top().and_then(|top| self.child(top, name, kind));
            self.push(node, serial, now_ns, true);
            if let (Some(_), Some(open)) = (node, self.stack.last_mut()) {
                open.batch = batch;
            }
        }
    }

    fn place(&self, serial: u64) -> Option<usize> {
        // The thread itself, at the bottom, ends with the profile alone.
        self.stack.iter().rposition(|open| open.serial == serial).filter(|at| *at > 0)
    }

    /// Everything that is open ends, and nothing is recorded any more.
    pub(crate) fn end(&mut self, now_ns: u64, budget: &Budget) {
        if self.is_ended {
            return;
        }
        self.settle(budget);
        while !self.stack.is_empty() {
            self.pop(now_ns, budget);
        }
        self.is_ended = true;
    }

    /// Time passes for whoever is on top.
    fn charge(&mut self, now_ns: u64) {
        // A time before the last event, told by somebody else's clock, is that of the event.
        let now_ns = now_ns.max(self.last_ns);
        if let Some(open) = self.stack.last() {
            self.nodes[open.node as usize].self_ns += now_ns - self.last_ns;
        }
        self.last_ns = now_ns;
    }

    fn push(&mut self, node: Option<u32>, serial: u64, now_ns: u64, is_resumed: bool) {
        self.charge(now_ns);
        let Some(node) = node else {
            // It has no frame: its time stays with its caller.
            self.spans_not_kept += 1;
            return;
        };
        self.stack.push(Open { node, serial, begin_ns: self.last_ns, is_resumed, batch: None });
    }

    fn pop(&mut self, now_ns: u64, budget: &Budget) {
        self.charge(now_ns);
        let Some(Open { node: frame, begin_ns, is_resumed, batch, .. }) = self.stack.pop() else { return };
        let node = &mut self.nodes[frame as usize];
        // Its own time was added as it passed.
        node.count += u64::from(!is_resumed);
        node.total_ns += self.last_ns - begin_ns;
        if self.stack.is_empty() {
            return;
        }
        if self.spans_left == 0 {
            self.spans_left = budget.take_spans();
        }
        if self.spans_left == 0 {
            self.spans_not_kept += 1;
            return;
        }
        self.spans_left -= 1;
        self.spans.push(Span { frame, begin_ns, end_ns: self.last_ns, batch });
    }

    /// The frame of a text below the one on top.
    fn named(&mut self, kind: FrameKind, name: Text<'_>) -> Option<u32> {
        let name = match self.names.get(name.as_str()) {
            Some(name) => name,
            None if self.nodes.len() >= budget::FRAMES => return None,
            None => self.names.number(name.to_owned()),
        };
        self.child(self.top()?, name, kind)
    }

    fn top(&self) -> Option<u32> {
        self.stack.last().map(|open| open.node)
    }

    fn near(&self, mark: Mark) -> Option<u32> {
        self.nodes[self.top()? as usize].near.iter().find(|near| near.mark == mark).map(|near| near.node)
    }

    fn remember(&mut self, mark: Mark, node: u32) {
        let Some(top) = self.top() else { return };
        let near = &mut self.nodes[top as usize].near;
        if near.len() < NEAR {
            near.push(Near { mark, node });
        }
    }

    /// The frame below another, made if it is not there; `None` if there are too many.
    fn child(&mut self, parent: u32, name: Name, kind: FrameKind) -> Option<u32> {
        let key = (parent, name, kind as u8);
        if let Some(node) = self.by_key.get(&key) {
            return Some(*node);
        }
        if self.nodes.len() >= budget::FRAMES {
            return None;
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node::new(name, kind, parent));
        self.by_key.insert(key, node);
        Some(node)
    }

    /// What the thread did; it has ended.
    pub(crate) fn take_record(&mut self, plans: &[String]) -> ThreadRecord {
        let frame = |node: &Node| Frame {
            name: self.names.text(node.name, plans),
            kind: node.kind,
            parent: (node.parent != NOBODY).then_some(node.parent),
            count: node.count,
            total_ns: node.total_ns,
            self_ns: node.self_ns,
        };
        let frames: Vec<Frame> = self.nodes.iter().map(frame).collect();
        let name = frames.first().map_or(String::new(), |frame| frame.name.clone());
        let mut spans = std::mem::take(&mut self.spans);
        for (number, batch) in self.batches.iter().enumerate().filter(|(_, batch)| batch.is_plain) {
            self.add_spans(batch, number as u32, &mut spans);
        }
        spans.sort_by_key(|span| span.end_ns);
        ThreadRecord { name, begin_ns: self.begin_ns, end_ns: self.last_ns, frames, spans }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
