//! The plans of a profile: plans that batches ran enter, each once; what they compute in words, and whether a GPU could run
//! them, leaves.

use super::budget;
use super::model::PlanRecord;
use crate::devices::Devices;
use breakeven_ir::expr::Inst;
use breakeven_ir::plan::{Class, Kernel};
use breakeven_ir::{Plan, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// Different plans, in the order in which they came.
#[derive(Default)]
pub(crate) struct Plans {
    entries: Vec<Entry>,
    numbers: HashMap<usize, u32>,
    /// The number that all plans have for which there was no room.
    others: Option<u32>,
}

struct Entry {
    /// `None` for all those without room.
    plan: Option<Arc<Plan>>,
    recipe: Recipe,
}

/// The graph of a plan as text.
enum Recipe {
    None,
    Text(String),
    /// Of these, when it is asked for: writing it takes as long as a small batch.
    Of(Vec<Tensor>),
}

/// The tensors that a plan computes.
#[derive(Clone, Copy)]
pub(crate) enum Outputs<'a> {
    Lent(&'a [&'a Tensor]),
    Owned(&'a [Tensor]),
    /// The same, with so little data that they may be kept.
    Light(&'a [Tensor]),
    /// The plan came before.
    Known,
}

impl Plans {
    /// The number of a plan. Is it known by its address from now on?
    pub(crate) fn number(&mut self, plan: &Arc<Plan>, outputs: Outputs<'_>) -> (u32, bool) {
        let address = Arc::as_ptr(plan) as usize;
        if let Some(number) = self.numbers.get(&address) {
            return (*number, true);
        }
        let next = self.entries.len() as u32;
        if self.numbers.len() >= budget::PLANS {
            let entries = &mut self.entries;
            let make = || {
                entries.push(Entry { plan: None, recipe: Recipe::None });
                next
            };
            return (*self.others.get_or_insert_with(make), false);
        }
        self.entries.push(Entry { plan: Some(plan.clone()), recipe: recipe(outputs) });
        self.numbers.insert(address, next);
        (next, true)
    }

    /// A plan by its number.
    pub(crate) fn plan(&self, number: u32) -> Option<&Arc<Plan>> {
        self.entries.get(number as usize)?.plan.as_ref()
    }

    /// All of them, each with a title of its own.
    pub(crate) fn records(&self, devices: &Devices) -> Vec<PlanRecord> {
        let mut seen: HashMap<String, u32> = HashMap::new();
        let record = |entry: &Entry| {
            let Some(plan) = &entry.plan else {
                return PlanRecord { title: "other plans".into(), kernels: 0, gpu_eligible: false, recipe: None };
            };
            let mut title = title(plan);
            let count = seen.entry(title.clone()).or_insert(0);
            *count += 1;
            if *count > 1 {
                title = format!("{title} #{count}");
            }
            let gpu_eligible = is_eligible(plan, devices);
            PlanRecord { title, kernels: plan.kernels.len(), gpu_eligible, recipe: entry.recipe.text() }
        };
        self.entries.iter().map(record).collect()
    }
}

/// The recipe of a plan, at its first batch: as text, so that the data of its leaves is not kept, unless there is hardly any.
fn recipe(outputs: Outputs<'_>) -> Recipe {
    match outputs {
        Outputs::Lent(outputs) => Recipe::Text(breakeven_ir::recipe(outputs)),
        Outputs::Owned(outputs) => Recipe::Text(written(outputs)),
        Outputs::Light(outputs) => Recipe::Of(outputs.to_vec()),
        Outputs::Known => Recipe::None,
    }
}

impl Recipe {
    fn text(&self) -> Option<String> {
        match self {
            Recipe::None => None,
            Recipe::Text(text) => Some(text.clone()),
            Recipe::Of(outputs) => Some(written(outputs)),
        }
    }
}

fn written(outputs: &[Tensor]) -> String {
    breakeven_ir::recipe(&outputs.iter().collect::<Vec<_>>())
}

/// Could a GPU run it? Those that are open are asked; where none is, what every GPU can decides.
fn is_eligible(plan: &Arc<Plan>, devices: &Devices) -> bool {
    if plan.kernels.is_empty() {
        return false;
    }
    let mut open = devices.all_opened().peekable();
    if open.peek().is_some() {
        return open.any(|slot| slot.backend.accepts(plan).is_ok());
    }
    crate::gpus::accept(plan)
}

/// Names of a title: more would not be read.
const NAMES: usize = 4;

/// What a plan computes, in a few words: its ops in their order, and the size of its largest output.
fn title(plan: &Plan) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut more = 0;
    let mut add = |name: &'static str| {
        if names.contains(&name) {
            return;
        }
        if names.len() < NAMES { names.push(name) } else { more += 1 }
    };
    for kernel in &plan.kernels {
        if let Kernel::Contract(_) = kernel {
            add("matmul");
        }
        for inst in kernel.bodies().into_iter().flat_map(|body| &body.insts) {
            inst_name(inst).into_iter().for_each(&mut add);
        }
    }
    let words = match (names.is_empty(), plan.kernels.first().map(Kernel::class)) {
        (false, _) => names.join(" "),
        (true, Some(Class::Map)) => "copy".to_owned(),
        (true, Some(class)) => class.to_string(),
        (true, None) => "nothing to compute".to_owned(),
    };
    let dots = if more > 0 { " .." } else { "" };
    let largest = plan.output_buffers().max_by_key(|info| info.bytes());
    largest.map_or(words.clone(), |info| format!("{words}{dots} {}{}", info.dtype, info.shape))
}

fn inst_name(inst: &Inst) -> Option<&'static str> {
    match inst {
        Inst::Map { op, .. } => Some(op.row().name),
        Inst::Reduce { op, .. } => Some(op.name()),
        Inst::Scan { op, .. } => Some(op.name()),
        Inst::Gather { .. } => Some("take"),
        Inst::Load { .. } | Inst::Const(_) | Inst::Arange { .. } | Inst::Inside { .. } => None,
    }
}
