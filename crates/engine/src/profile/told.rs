//! Batches as they are kept while a profile is recorded: few words each, which are turned into text when it is finished.

use super::model::{BatchRecord, DecisionRecord, Phase};
use crate::engine::Shared;
use crate::route::{self, OnCpu, Outcome};
use breakeven_ir::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is kept of a batch.
pub(crate) struct BatchEntry {
    pub(crate) plan: u32,
    pub(crate) tasks: u64,
    /// Its frame, known once it has ended.
    pub(crate) frame: u32,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) phases: Phases,
    pub(crate) told: Told,
    /// Do its parts lie one after the other, with nothing else in between? Its spans are made of them later.
    pub(crate) is_plain: bool,
}

/// What the parts of a batch took.
#[derive(Clone, Copy, Default)]
pub(crate) struct Phases {
    ns: [u64; Phase::ALL.len()],
    /// Those that it had, as bits.
    had: u8,
}

impl Phases {
    /// `None` if it did not have this part.
    pub(crate) fn get(&self, phase: Phase) -> Option<u64> {
        (self.had >> phase as u8 & 1 == 1).then_some(self.ns[phase as usize])
    }

    pub(crate) fn set(&mut self, phase: Phase, ns: u64) {
        self.had |= 1 << phase as u8;
        self.ns[phase as usize] = ns;
    }

    /// Parts are never more than the batch: the last ones lose what is too much. Waiting in the queue comes before it.
    pub(crate) fn cap(&mut self, whole_ns: u64) {
        let mut left_ns = whole_ns;
        for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::Queue) {
            let ns = &mut self.ns[phase as usize];
            *ns = (*ns).min(left_ns);
            left_ns -= *ns;
        }
    }

    pub(crate) fn add(&mut self, phase: Phase, ns: u64) {
        self.set(phase, self.get(phase).unwrap_or(0).saturating_add(ns));
    }
}

/// What is known about where a batch ran, and why.
pub(crate) enum Told {
    /// On the CPU, without a choice to be made; what it took, if that is not the batch from its beginning to its end.
    Cpu(OnCpu, Option<u64>),
    /// Where it was routed to. Did a worker of the queue take it on its own accord?
    Routed { outcome: Box<Outcome>, is_queued: bool },
    /// Nowhere.
    Failed(String),
}

impl BatchEntry {
    /// The record of it.
    pub(crate) fn record(self, engine: &Shared, thread: u32, plan: Option<&Arc<Plan>>) -> BatchRecord {
        let BatchEntry { tasks, frame, begin_ns, end_ns, phases, told, .. } = self;
        let actual_ns = end_ns - begin_ns;
        let decision = match told {
            Told::Cpu(why, own_ns) => DecisionRecord {
                device: "cpu".into(),
                reason: route::cpu_reason(why).into(),
                actual_ns: own_ns.unwrap_or(actual_ns),
                ..DecisionRecord::default()
            },
            Told::Failed(why) => {
                DecisionRecord { reason: format!("there is no result: {why}"), actual_ns, ..DecisionRecord::default() }
            }
            Told::Routed { outcome, is_queued } => outcome.record(engine, plan, tasks as usize, is_queued),
        };
        let had = Phase::ALL.into_iter().filter_map(|phase| Some((phase, phases.get(phase)?)));
        let phases = had.collect::<BTreeMap<Phase, u64>>();
        BatchRecord { plan: self.plan, tasks, thread, frame, begin_ns, end_ns, phases, decision }
    }
}
