//! What the sides differ in: scans enter, sentences leave. Machines come first, then backends and devices, then versions
//! and how it was measured; what a file does not tell is said to be unknown, never taken for the same.

use super::Side;
use serde::Serialize;

/// Something that sides can differ in.
///
/// ```
/// use breakeven_report::compare::Aspect;
/// assert!(Aspect::Machine < Aspect::Version);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The processor, its threads or its vector instructions.
    Machine,
    /// The operating system.
    System,
    /// Through which interface devices are reached.
    Backend,
    /// Which devices there are besides the CPU.
    Device,
    /// The version of Breakeven.
    Version,
    /// How it was measured.
    Method,
}

impl Aspect {
    /// In words, as a plural.
    pub fn words(self) -> &'static str {
        match self {
            Aspect::Machine => "machines",
            Aspect::System => "systems",
            Aspect::Backend => "backends",
            Aspect::Device => "devices",
            Aspect::Version => "versions of Breakeven",
            Aspect::Method => "ways of measuring",
        }
    }
}

/// One thing that sides differ in.
///
/// ```
/// use breakeven_report::compare::{Aspect, Difference};
/// let difference = Difference { aspect: Aspect::Version, certain: true, words: "0.1.0 (a); 0.2.0 (b)".into() };
/// assert_eq!(difference.aspect.words(), "versions of Breakeven");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What.
    pub aspect: Aspect,
    /// Two sides tell something else; otherwise some side does not tell.
    pub certain: bool,
    /// Who has what.
    pub words: String,
}

impl Difference {
    /// As a sentence.
    pub fn sentence(&self) -> String {
        let verb = if self.certain { "differ" } else { "are not told by all" };
        format!("{} {verb}: {}", self.aspect.words(), self.words)
    }
}

/// What is not known.
const UNKNOWN: &str = "unknown";

/// Everything that the sides differ in.
pub(super) fn find(sides: &[Side]) -> Vec<Difference> {
    let aspects = [Aspect::Machine, Aspect::System, Aspect::Backend, Aspect::Device, Aspect::Version, Aspect::Method];
    let differs = |&aspect: &Aspect| {
        let mut values: Vec<(String, Vec<&str>)> = Vec::new();
        for side in sides {
            let value = value(side, aspect);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, labels)) => labels.push(&side.label),
                None => values.push((value, vec![&side.label])),
            }
        }
        if values.len() == 1 {
            return None;
        }
        let certain = values.iter().filter(|(value, _)| value != UNKNOWN).count() > 1;
        let told: Vec<String> =
            values.iter().map(|(value, labels)| format!("{value} ({})", labels.join(", "))).collect();
        Some(Difference { aspect, certain, words: told.join("; ") })
    };
    aspects.iter().filter_map(differs).collect()
}

/// What is compared, in one line.
pub(super) fn about(sides: &[Side]) -> String {
    let found = find(sides);
    let has = |aspect: Aspect| found.iter().any(|difference| difference.aspect == aspect && difference.certain);
    let labels = sides.iter().map(|side| side.label.as_str()).collect::<Vec<_>>().join(", ");
    let machines: Vec<String> = sides.iter().map(|side| value(side, Aspect::Machine)).collect();
    let known = machines.iter().find(|machine| *machine != UNKNOWN);
    let main: Vec<&str> = found
        .iter()
        .filter(|difference| difference.certain)
        .map(|difference| difference.aspect)
        // How it was measured is worth a line of its own, but is not what anybody compares for. A machine with another
        // system is another machine: that says it all.
        .filter(|&aspect| aspect != Aspect::Method && !(has(Aspect::Machine) && aspect == Aspect::System))
        .map(Aspect::words)
        .collect();
    let other = if main.is_empty() {
        "runs that differ in nothing that is known".to_owned()
    } else {
        format!("other {}", joined(&main))
    };
    let wherever = match known {
        _ if has(Aspect::Machine) => return format!("Other {}: {labels}", joined(&main)),
        None => "Machines that nobody tells".to_owned(),
        Some(machine) if machines.iter().any(|machine| machine == UNKNOWN) => {
            format!("One machine ({machine}) as far as is told")
        }
        Some(machine) => format!("One machine ({machine})"),
    };
    format!("{wherever}, {other}: {labels}")
}

/// Words with commas and an `and`.
fn joined(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// What a side has of an aspect.
fn value(side: &Side, aspect: Aspect) -> String {
    let machine = &side.scan.machine;
    let of_gpus = |word: fn(&crate::Device) -> &str| {
        let words: Vec<&str> = side.gpus().map(word).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] if side.gpu_missing => "no GPU".to_owned(),
            [] => UNKNOWN.to_owned(),
            words => words.join(", "),
        }
    };
    let found = match aspect {
        Aspect::Machine => {
            let machine = crate::Machine { os: String::new(), ..machine.clone() };
            machine.summary()
        }
        Aspect::System => machine.os.clone(),
        Aspect::Backend => of_gpus(|device| &device.backend),
        Aspect::Device => of_gpus(|device| &device.name),
        Aspect::Version => machine.breakeven.clone(),
        Aspect::Method => method(side),
    };
    if found.is_empty() { UNKNOWN.to_owned() } else { found }
}

/// How a side was measured, as far as it can differ.
fn method(side: &Side) -> String {
    let how = &side.scan.how;
    if how.samples == 0 {
        return String::new();
    }
    let extent = if how.quick { "quick" } else { "full" };
    let interrupted = if how.interrupted { ", interrupted" } else { "" };
    format!("{extent}, {} samples each{interrupted}", how.samples)
}
