//! Scores candidate programs of grid operations against many tiny tasks, as batches of `run_many`.
//!
//! In flow order: tasks are read (`task`) or made up (`generate`), programs are parsed (`program`) and cut into stages
//! (`stage`), stages are recorded (`record`) and compiled (`library`), grids are laid out on canvases (`canvas`, both in `prepare`),
//! workers run batches (`run`, `runner`, `batches`, loops in `rounds`), outcomes (`score`) are remembered (`memory`) and reported
//! (`report`). `scalar` is the plain way to do the same.
#![forbid(unsafe_code)]

mod args;
mod batches;
mod canvas;
pub mod command;
mod generate;
mod grid;
mod labels;
mod layer;
mod library;
mod memory;
pub mod numpy;
mod places;
mod prepare;
mod program;
mod progress;
mod record;
mod regions;
mod report;
mod rounds;
mod run;
mod runner;
pub mod scalar;
mod score;
mod shelf;
mod stage;
mod task;
mod workers;

pub use args::Args;
pub use generate::generate;
pub use grid::{COLOURS, Grid, GridError, MAX_SIDE, Size};
pub use memory::Memory;
pub use program::{Failure, InPlace, LOOPER, ParseError, Program, Regions, Step, Turn, Until, builtin, parse_list};
pub use progress::{INTERRUPTED, Progress};
pub use report::{Baseline, Best, CacheUse, Compared, Counts, Report, Said, StageShare};
pub use run::{Limits, Run, Scoring, Watch, score_all};
pub use score::{Outcome, Score};
pub use task::{Folder, Pair, Task, TaskError, read_folder};
