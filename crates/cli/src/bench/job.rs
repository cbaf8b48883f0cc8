//! What a suite and the process of a group say to each other: a [`Job`] goes in as one line of JSON, [`Said`] come out,
//! one a line, as things happen, so that whatever ends the process leaves what was measured before.

use breakeven_report::bench::{LeftOut, Missing, NullCase, Row, Trouble, TroubleKind};
use breakeven_report::{Device, Machine};
use serde::{Deserialize, Serialize};

use super::inject::Injected;

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What.
    pub ask: Ask,
    /// On these devices, by their ids.
    pub devices: Vec<String>,
    /// Only cases whose names begin with one of these; all of them if there are none.
    pub cases: Vec<String>,
    /// Fewer sizes.
    pub quick: bool,
    /// Samples of each, at most.
    pub samples: usize,
    /// What it may take, devices that are opened apart.
    pub budget_ms: u64,
    /// Which pass it belongs to.
    pub pass: u32,
    /// What is to go wrong.
    pub inject: Vec<Injected>,
    /// Threads of the CPU; as the environment says without a number.
    pub threads: Option<usize>,
}

impl Job {
    /// This, and nothing in particular beside it.
    pub fn asking(ask: Ask, devices: &[breakeven::Device]) -> Job {
        let devices = devices.iter().map(ToString::to_string).collect();
        let (cases, inject) = (Vec::new(), Vec::new());
        Job { ask, devices, cases, quick: false, samples: 0, budget_ms: 0, pass: 0, inject, threads: None }
    }
}

/// What can be asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Which devices there are; with `devices` empty every driver is asked.
    Devices,
    /// The group of this name.
    Group(String),
    /// The same code twice.
    Null,
    /// One small result, as soon as it can be had from a process that has just begun.
    First {
        /// May it use what was remembered?
        remembered: bool,
    },
}

/// What comes of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The machine.
    Machine(Machine),
    /// A device.
    Device(Device),
    /// One that can't be used.
    Missing(Missing),
    /// It works on this, and so much of it is done.
    Doing {
        /// The case.
        what: String,
        /// From 0 to 1.
        share: f64,
    },
    /// A case on a device, with the samples of this pass.
    Row(Row),
    /// Something against itself, with the samples of this pass.
    Null(NullCase),
    /// What [`Ask::First`] computed.
    First(Vec<f32>),
    /// Something went wrong.
    Trouble(Trouble),
    /// Something was not measured, on purpose.
    LeftOut(LeftOut),
    /// That is all.
    Done,
}

/// Why a case has no time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What kind of trouble it is.
    pub kind: TroubleKind,
    /// In words.
    pub why: String,
}

impl Fault {
    /// A case that failed.
    pub fn failed(why: impl std::fmt::Display) -> Fault {
        Fault { kind: TroubleKind::Failed, why: why.to_string() }
    }
}

/// What lies behind it tells the kind, and is all that is to be said: what was asked for is known.
impl From<breakeven::Error> for Fault {
    fn from(error: breakeven::Error) -> Fault {
        use breakeven::{Error, RunError};
        match error {
            Error::Strict { why, .. } | Error::Failed { why } => Fault::from(*why),
            Error::Run(RunError::Lost { .. } | RunError::Stale { .. }) => {
                Fault { kind: TroubleKind::DeviceLost, why: error.to_string() }
            }
            error => Fault::failed(error),
        }
    }
}

impl From<breakeven::RecordError> for Fault {
    fn from(error: breakeven::RecordError) -> Fault {
        Fault::failed(error)
    }
}
