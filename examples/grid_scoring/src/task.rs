//! Task files: a folder of JSON in the public ARC format enters, tasks leave, and for each file that is none the reason.
//!
//! A file that can't be used does not stop the others: it is listed in the report by name. Only a folder without any task
//! ends the run.

use crate::grid::{Grid, GridError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// An input and the output that is expected for it.
///
/// ```
/// use grid_scoring::{Grid, Pair};
/// let grid = Grid::from_rows(&[vec![7]])?;
/// let pair = Pair { input: grid.clone(), output: grid };
/// assert_eq!(pair.input, pair.output);
/// # Ok::<(), grid_scoring::GridError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// What a program is given.
    pub input: Grid,
    /// What it should make of it.
    pub output: Grid,
}

/// A task: demonstrations and what they are tested with.
///
/// ```
/// let json = r#"{"train":[{"input":[[1]],"output":[[2]]}],"test":[{"input":[[3]],"output":[[4]]}]}"#;
/// let task = grid_scoring::Task::from_json("example", json).unwrap();
/// assert_eq!((task.train.len(), task.test.len()), (1, 1));
/// assert_eq!(task.samples(3).count(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The name of its file, without the ending.
    pub name: String,
    /// Demonstrations.
    pub train: Vec<Pair>,
    /// What a program is tested with.
    pub test: Vec<Pair>,
}

/// Why a file is no task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The folder or a file can't be read.
    #[error("{}: {why}; give a folder of task files that may be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// No JSON, or JSON of another form.
    #[error(
        "{file}: {why}; expected {{\"train\": [{{\"input\": [[0, ..], ..], \"output\": ..}}, ..], \"test\": [..]}}"
    )]
    Form {
        /// Its name.
        file: String,
        /// What the parser says, with line and column.
        why: serde_json::Error,
    },
    /// A list without pairs.
    #[error("{file}: the list `{list}` is empty; a task has at least one pair in each")]
    NoPairs {
        /// Its name.
        file: String,
        /// `train` or `test`.
        list: &'static str,
    },
    /// A grid that is none.
    #[error("{file}: {list}[{number}].{side}: {why}")]
    Grid {
        /// Its name.
        file: String,
        /// `train` or `test`.
        list: &'static str,
        /// Which pair of the list.
        number: usize,
        /// `input` or `output`.
        side: &'static str,
        /// What is wrong with it.
        why: GridError,
    },
    /// Nothing to score.
    #[error("{}: no task in {files} files; a task is a file that ends in .json, in the ARC format", path.display())]
    NoTasks {
        /// The folder.
        path: PathBuf,
        /// Files that end in .json.
        files: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct PairForm {
    input: Vec<Vec<i64>>,
    output: Vec<Vec<i64>>,
}

#[derive(Serialize, Deserialize)]
struct TaskForm {
    train: Vec<PairForm>,
    test: Vec<PairForm>,
}

impl Task {
    /// The text of a file.
    pub fn from_json(name: &str, text: &str) -> Result<Task, TaskError> {
        let form: TaskForm =
            serde_json::from_str(text).map_err(|why| TaskError::Form { file: name.to_owned(), why })?;
        Ok(Task {
            name: name.to_owned(),
            train: pairs(name, "train", &form.train)?,
            test: pairs(name, "test", &form.test)?,
        })
    }

    /// The text of a file, as [`Task::from_json`] reads it.
    pub fn to_json(&self) -> String {
        let rows =
            |grid: &Grid| grid.rows().iter().map(|row| row.iter().map(|cell| i64::from(*cell)).collect()).collect();
        let forms = |list: &[Pair]| {
            list.iter().map(|pair| PairForm { input: rows(&pair.input), output: rows(&pair.output) }).collect()
        };
        // Lists of numbers have no form that could be refused.
        serde_json::to_string(&TaskForm { train: forms(&self.train), test: forms(&self.test) }).unwrap_or_default()
    }

    /// The pairs that programs are scored with: at most `most`, one of which is the first test pair; the others are
    /// demonstrations, in order.
    pub fn samples(&self, most: usize) -> impl Iterator<Item = &Pair> {
        self.train.iter().take(most.saturating_sub(1)).chain(self.test.first()).take(most)
    }
}

fn pairs(file: &str, list: &'static str, forms: &[PairForm]) -> Result<Vec<Pair>, TaskError> {
    if forms.is_empty() {
        return Err(TaskError::NoPairs { file: file.to_owned(), list });
    }
    let grid = |number: usize, side: &'static str, rows: &[Vec<i64>]| {
        Grid::from_rows(rows).map_err(|why| TaskError::Grid { file: file.to_owned(), list, number, side, why })
    };
    let pair = |(number, form): (usize, &PairForm)| {
        Ok(Pair { input: grid(number, "input", &form.input)?, output: grid(number, "output", &form.output)? })
    };
    forms.iter().enumerate().map(pair).collect()
}

/// The tasks of a folder in the order of their names, and the files that are none.
///
/// ```
/// let folder = std::env::temp_dir().join("grid-scoring-doc-example");
/// std::fs::create_dir_all(&folder).unwrap();
/// std::fs::write(folder.join("bad.json"), "[]").unwrap();
/// std::fs::write(
///     folder.join("good.json"),
///     r#"{"train":[{"input":[[1]],"output":[[2]]}],"test":[{"input":[[3]],"output":[[4]]}]}"#,
/// )
/// .unwrap();
/// let found = grid_scoring::read_folder(&folder).unwrap();
/// assert_eq!((found.tasks.len(), found.refused.len()), (1, 1));
/// ```
pub struct Folder {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Why other files are none.
    pub refused: Vec<TaskError>,
}

/// Reads every file of a folder that ends in `.json`.
pub fn read_folder(path: &Path) -> Result<Folder, TaskError> {
    let failed = |why| TaskError::Read { path: path.to_owned(), why };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            files.push(file);
        }
    }
    files.sort();
    let mut folder = Folder { tasks: Vec::with_capacity(files.len()), refused: Vec::new() };
    for file in &files {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(file).map_err(|why| TaskError::Read { path: file.clone(), why });
        match text.and_then(|text| Task::from_json(&name, &text)) {
            Ok(task) => folder.tasks.push(task),
            Err(why) => folder.refused.push(why),
        }
    }
    match folder.tasks.is_empty() {
        true => Err(TaskError::NoTasks { path: path.to_owned(), files: files.len() }),
        false => Ok(folder),
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
