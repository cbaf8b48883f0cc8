//! The plain numpy loop, in a process of its own: programs and samples enter, its outcomes and its time leave.

use crate::program::Program;
use crate::score::{Outcome, Score};
use crate::task::Pair;
use serde::Deserialize;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The environment variable that names the Python interpreter; `python3` otherwise.
pub const PYTHON_VAR: &str = "BREAKEVEN_PYTHON";
const SCRIPT: &str = include_str!("../numpy_baseline.py");

/// What numpy has made of it.
pub struct NumpyRun {
    /// The version of numpy.
    pub version: String,
    /// The time of its loop alone: neither starting Python nor reading grids.
    pub took: Duration,
    /// Of each program with each sample, programs outermost. Why something failed is not told.
    pub outcomes: Vec<NumpyOutcome>,
}

/// An outcome as numpy tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumpyOutcome {
    /// With these scores.
    Scored(Score),
    /// Without a result.
    Failed,
    /// Without one in time.
    Late,
}

impl NumpyOutcome {
    /// Is it the same as ours?
    pub fn agrees(self, ours: Outcome) -> bool {
        match (self, ours) {
            (NumpyOutcome::Scored(a), Outcome::Scored(b)) => a == b,
            (NumpyOutcome::Failed, Outcome::Failed(_)) | (NumpyOutcome::Late, Outcome::Late) => true,
            _ => false,
        }
    }
}

/// Why there is no comparison with numpy.
#[derive(Debug, thiserror::Error)]
pub enum NumpyError {
    /// No interpreter.
    #[error("`{interpreter}` can't be run: {why}; set {PYTHON_VAR} to a Python that has numpy")]
    Start {
        /// What was tried.
        interpreter: String,
        /// What the system says.
        why: std::io::Error,
    },
    /// It ended with an error.
    #[error("`{interpreter}` failed: {why}; set {PYTHON_VAR} to a Python that has numpy")]
    Failed {
        /// What was run.
        interpreter: String,
        /// The last line that it wrote.
        why: String,
    },
    /// It answered something else.
    #[error("the numpy loop answered what can't be read: {0}")]
    Answer(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Answer {
    seconds: f64,
    numpy: String,
    outcomes: Vec<(u8, i32, i32)>,
}

/// Runs it.
pub fn run(programs: &[Program], samples: &[&Pair], deadline: Duration) -> Result<NumpyRun, NumpyError> {
    let interpreter = std::env::var(PYTHON_VAR).unwrap_or_else(|_| "python3".to_owned());
    let start = |why| NumpyError::Start { interpreter: interpreter.clone(), why };
    let job = serde_json::json!({
        "programs": programs.iter().map(Program::to_string).collect::<Vec<_>>(),
        "samples": samples
            .iter()
            .map(|sample| serde_json::json!({ "input": sample.input.rows(), "output": sample.output.rows() }))
            .collect::<Vec<_>>(),
        "deadline": deadline.as_secs_f64(),
    });
    let mut child = Command::new(&interpreter)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that has died says why on stderr, which is read below.
        let _ = stdin.write_all(job.to_string().as_bytes());
    }
    let output = child.wait_with_output().map_err(start)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let why = text.lines().last().unwrap_or("without a word").to_owned();
        return Err(NumpyError::Failed { interpreter, why });
    }
    let answer: Answer = serde_json::from_slice(&output.stdout)?;
    let cells = |number: usize| samples[number % samples.len()].output.cells().len();
    let outcome = |(number, (kind, equal_cells, equal_colours)): (usize, (u8, i32, i32))| match kind {
        0 => {
            let exact = equal_cells as usize == cells(number);
            NumpyOutcome::Scored(Score { exact, equal_cells, equal_colours })
        }
        1 => NumpyOutcome::Failed,
        _ => NumpyOutcome::Late,
    };
    Ok(NumpyRun {
        version: answer.numpy,
        took: Duration::from_secs_f64(answer.seconds),
        outcomes: answer.outcomes.into_iter().enumerate().map(outcome).collect(),
    })
}
