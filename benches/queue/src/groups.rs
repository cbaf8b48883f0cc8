//! What is measured: nothing enters, the rows of all groups leave, each with its arms and its bars.

mod answers;
mod clone;
mod devices;
mod kernel;
mod metrics;
mod pool;
mod push_pop;
mod send;

pub use self::devices::ToDevice;
#[cfg(feature = "ours")]
pub(crate) use self::{devices::EACH, kernel::ELEMENTS, kernel::program};
use crate::OURS;
use crate::arm::Fallible;
use crate::case::Case;
use crate::report::Bar;

/// One row: a group's work at one size, done by every arm.
pub struct Row {
    /// The group.
    pub group: &'static str,
    /// What of the group.
    pub case: String,
    /// Commands in an iteration; 1 where an iteration is one call.
    pub commands: u64,
    /// The name of the arm that the others are compared with.
    pub ours: &'static str,
    /// The promises.
    pub bars: Vec<Bar>,
    /// How often its arms are opened anew: where memory happens to lie makes a difference, too.
    pub openings: usize,
    /// What every arm does; empty where the row's name says it all.
    pub job: &'static str,
    build: Box<dyn Fn() -> Fallible<Vec<Case>>>,
}

impl Row {
    fn new(group: &'static str, case: impl Into<String>, build: impl Fn() -> Fallible<Vec<Case>> + 'static) -> Row {
        let (bars, build) = (Vec::new(), Box::new(build));
        Row { group, case: case.into(), commands: 1, ours: OURS, bars, openings: 1, job: "", build }
    }

    fn job(self, job: &'static str) -> Row {
        Row { job, ..self }
    }

    fn opened(self, openings: usize) -> Row {
        Row { openings, ..self }
    }

    fn commands(self, commands: usize) -> Row {
        Row { commands: commands as u64, ..self }
    }

    fn bar(mut self, bar: Bar) -> Row {
        self.bars.push(bar);
        self
    }

    /// Its name on the command line and in criterion.
    pub fn name(&self) -> String {
        format!("{}/{}", self.group, self.case)
    }

    /// Opens its arms. Their threads live for as long as the cases do.
    pub fn cases(&self) -> Fallible<Vec<Case>> {
        (self.build)()
    }
}

/// Every row, in the order of the table.
pub fn rows() -> Vec<Row> {
    let groups = [
        send::rows(),
        push_pop::rows(),
        answers::round_trip(),
        answers::throughput(),
        answers::backpressure(),
        clone::rows(),
        pool::rows(),
        answers::sequence(),
        answers::producers(),
        kernel::rows(),
        devices::rows(),
        pool::pressure(),
        answers::errors(),
        metrics::rows(),
    ];
    groups.into_iter().flatten().collect()
}

/// A number of bytes for people.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_every_row_runs_and_names_are_unique() {
        let mut names: Vec<String> = Vec::new();
        for row in rows() {
            for mut case in row.cases().unwrap() {
                (case.run)(2).unwrap_or_else(|error| panic!("{} {}: {error}", row.name(), case.library));
            }
            names.push(row.name());
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
