//! What a run says at its end: outcomes and times enter, a document leaves that prints as text and as JSON.

use crate::program::Program;
use crate::run::Run;
use crate::score::Outcome;
use crate::task::Task;
use breakeven::CacheStats;
use breakeven::profile::{Analysis, Profile};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where batches ran.
    pub device: String,
    /// Tasks that were scored.
    pub tasks: usize,
    /// Files that were no tasks, with the reason.
    pub refused: Vec<String>,
    /// Programs.
    pub programs: usize,
    /// Combinations of a program and a sample.
    pub scorings: usize,
    /// How they ended.
    pub outcomes: Counts,
    /// From the first stage after loading to the last result.
    pub seconds: f64,
    /// When the last program that is not late was done.
    pub rest_seconds: f64,
    /// Scorings in a second.
    pub scorings_per_second: f64,
    /// Tasks in a second, each with all programs.
    pub tasks_per_second: f64,
    /// Programs that were compiled, and batches that they ran.
    pub compiled: usize,
    /// Batches.
    pub batches: usize,
    /// Threads that ran batches beside each other.
    pub workers: usize,
    /// Where the time of all threads went, largest first.
    pub stages: Vec<StageShare>,
    /// What the profile says.
    pub advice: Vec<Said>,
    /// Why there are no stages and no advice, if so: what is wrong with the profile.
    pub profile_fault: Option<String>,
    /// Why the profile is not where it was to be written, if so.
    pub not_written: Option<String>,
    /// How outcomes were remembered, where they are.
    pub cache: Option<CacheUse>,
    /// The plain loop on the CPU, measured in this run.
    pub baseline: Option<Baseline>,
    /// The tasks that some program solves: all of its samples are exact.
    pub solved: usize,
    /// The best program of each task.
    pub best: Vec<Best>,
    /// Programs that were late with some sample.
    pub late_programs: Vec<String>,
    /// Side by side with others, where that was asked for.
    pub compared: Vec<Compared>,
    /// Was it ended before its time?
    pub interrupted: bool,
}

/// How scorings ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// With a score.
    pub scored: usize,
    /// Of these, without a difference.
    pub exact: usize,
    /// Without a result.
    pub failed: usize,
    /// Without one in time.
    pub late: usize,
    /// Not begun.
    pub skipped: usize,
}

/// A stage of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StageShare {
    /// The stages that it lies in, and its own name.
    pub stage: String,
    /// Its own time, on all threads.
    pub seconds: f64,
    /// Its share of all, in thousandths, which add up to 1000.
    pub thousandths: u64,
    /// Was it waiting?
    pub is_waiting: bool,
}

/// A conclusion of the profile's.
#[derive(Clone, Debug, Serialize)]
pub struct Said {
    /// Where its figures come from.
    pub basis: &'static str,
    /// The sentence.
    pub text: String,
}

/// How outcomes were remembered.
#[derive(Clone, Debug, Serialize)]
pub struct CacheUse {
    /// Scorings that were not computed.
    pub remembered: usize,
    /// Trays that were looked for and found, and those that were not.
    pub hits: u64,
    /// Not found.
    pub misses: u64,
    /// What is in the cache now.
    pub entries: usize,
    /// Bytes on the disk.
    pub bytes: u64,
    /// What went wrong last, if anything did.
    pub fault: Option<String>,
}

/// The plain loop.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// How many scorings were measured.
    pub scorings: usize,
    /// Of these in a second.
    pub scorings_per_second: f64,
    /// How many times as fast this run was.
    pub speedup: f64,
    /// Programs that were late with some sample: the loop did not run them, this run did.
    pub left_out: usize,
    /// Scorings that this run did not compute, either, because they were remembered.
    pub remembered: usize,
}

/// The best program of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Best {
    /// The task's name.
    pub task: String,
    /// The program.
    pub program: String,
    /// Samples without a difference, of all samples of the task.
    pub exact: usize,
    /// Samples.
    pub samples: usize,
    /// The share of equal cells.
    pub equal_cells: f64,
}

/// Another way to do the same.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Which.
    pub name: String,
    /// Its time, or nothing where it could not be run.
    pub seconds: Option<f64>,
    /// How many times as long it took as this run.
    pub ratio: Option<f64>,
    /// Outcomes that differ from this run's.
    pub different: usize,
    /// Outcomes that are late in one of both and not in the other: they say something about time, not about results.
    pub late_in_one: usize,
    /// Why it could not be run, or its version.
    pub note: String,
}

impl Report {
    /// Of a run. `per_task` says how many samples each task has.
    pub(crate) fn new(run: &Run, tasks: &[Task], per_task: &[usize], programs: &[Program], took: Duration) -> Report {
        let samples: usize = per_task.iter().sum();
        let best = best(run, tasks, per_task, programs);
        let late = |number: &usize| run.outcomes[number * samples..(number + 1) * samples].contains(&Outcome::Late);
        Report {
            device: String::new(),
            tasks: tasks.len(),
            refused: Vec::new(),
            programs: programs.len(),
            scorings: run.outcomes.len(),
            outcomes: Counts::of(&run.outcomes),
            seconds: took.as_secs_f64(),
            rest_seconds: run.rest.as_secs_f64(),
            scorings_per_second: run.outcomes.len() as f64 / took.as_secs_f64().max(1e-9),
            tasks_per_second: tasks.len() as f64 / took.as_secs_f64().max(1e-9),
            compiled: run.compiled,
            batches: run.batches,
            workers: 1,
            stages: Vec::new(),
            advice: Vec::new(),
            profile_fault: None,
            not_written: None,
            cache: None,
            baseline: None,
            solved: best.iter().filter(|best| best.exact == best.samples).count(),
            best,
            late_programs: (0..programs.len()).filter(late).map(|number| programs[number].to_string()).collect(),
            compared: Vec::new(),
            interrupted: run.outcomes.contains(&Outcome::Skipped),
        }
    }
}

impl Report {
    /// Where the time went, and what follows from it.
    pub(crate) fn add_profile(&mut self, profile: &Profile) {
        let Analysis { stages, advice, headline, .. } = match profile.analysis() {
            Ok(analysis) => analysis,
            // Nothing can be concluded from one that does not add up, and that is said.
            Err(fault) => return self.profile_fault = Some(fault.to_string()),
        };
        let share = |row: &breakeven::profile::StageRow| StageShare {
            stage: if row.is_stage { row.path.clone() } else { "between".to_owned() },
            seconds: row.own_ns as f64 / 1e9,
            thousandths: row.thousandths,
            is_waiting: row.is_stage && row.other_wait_ns == row.own_ns && row.own_ns > 0,
        };
        self.stages = stages.iter().map(share).collect();
        self.advice = vec![Said { basis: "calculated", text: headline }];
        self.advice.extend(advice.into_iter().map(|said| Said { basis: said.basis.name(), text: said.text }));
    }

    /// How the cache was used.
    pub(crate) fn add_cache(&mut self, remembered: usize, stats: &CacheStats) {
        self.cache = Some(CacheUse {
            remembered,
            hits: stats.figures.hits,
            misses: stats.figures.misses,
            entries: stats.entries,
            bytes: stats.bytes,
            fault: stats.fault.clone(),
        });
    }
}

impl Counts {
    fn of(outcomes: &[Outcome]) -> Counts {
        let mut counts = Counts::default();
        for outcome in outcomes {
            match outcome {
                Outcome::Scored(score) => {
                    counts.scored += 1;
                    counts.exact += usize::from(score.exact);
                }
                Outcome::Failed(_) => counts.failed += 1,
                Outcome::Late => counts.late += 1,
                Outcome::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

/// Most samples without a difference count first, then equal cells, then equal colours, then the order of programs.
fn best(run: &Run, tasks: &[Task], per_task: &[usize], programs: &[Program]) -> Vec<Best> {
    let samples: usize = per_task.iter().sum();
    let mut first = 0;
    let mut list = Vec::with_capacity(tasks.len());
    for (task, &count) in tasks.iter().zip(per_task) {
        let cells: usize = task.samples(count).map(|pair| pair.output.cells().len()).sum();
        let rank = |program: usize| {
            let (mut exact, mut equal, mut colours) = (0, 0, 0);
            for outcome in &run.outcomes[program * samples + first..program * samples + first + count] {
                if let Outcome::Scored(score) = outcome {
                    exact += usize::from(score.exact);
                    equal += score.equal_cells;
                    colours += score.equal_colours;
                }
            }
            (exact, equal, colours)
        };
        let winner = (0..programs.len()).map(|program| (rank(program), std::cmp::Reverse(program))).max();
        if let Some(((exact, equal, _), std::cmp::Reverse(program))) = winner {
            let equal_cells = f64::from(equal) / cells.max(1) as f64;
            let program = programs[program].to_string();
            list.push(Best { task: task.name.clone(), program, exact, samples: count, equal_cells });
        }
        first += count;
    }
    list
}

/// Solved tasks that are listed in words; JSON has all.
const LISTED: usize = 12;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { scored, exact, failed, late, skipped } = self.outcomes;
        writeln!(
            f,
            "{} ({}, {}) on {} in {:.1} ms: {:.0} scorings and {:.1} tasks a second",
            counted(self.scorings, "scoring"),
            counted(self.tasks, "task"),
            counted(self.programs, "program"),
            self.device,
            self.seconds * 1e3,
            self.scorings_per_second,
            self.tasks_per_second
        )?;
        writeln!(f, "{scored} scored ({exact} exact), {failed} failed, {late} late, {skipped} not begun")?;
        if self.interrupted {
            writeln!(f, "ended before its time: what was done is counted")?;
        }
        if late > 0 {
            writeln!(f, "all that was not late was done after {:.1} ms; late:", self.rest_seconds * 1e3)?;
            self.late_programs.iter().take(LISTED).try_for_each(|program| writeln!(f, "  {program}"))?;
        }
        if let Some(cache) = &self.cache {
            let CacheUse { remembered, hits, misses, entries, bytes, fault } = cache;
            let rate = 100.0 * *hits as f64 / (hits + misses).max(1) as f64;
            writeln!(
                f,
                "{remembered} scorings were remembered ({hits} of {} trays, {rate:.1} %); {entries} results in the cache, {bytes} bytes",
                hits + misses
            )?;
            fault.iter().try_for_each(|fault| writeln!(f, "the cache: {fault}"))?;
        }
        let (compiled, batches, workers) = (self.compiled, self.batches, self.workers);
        let [compiled, batches, workers] =
            [(compiled, "program"), (batches, "batch"), (workers, "thread")].map(|(count, what)| counted(count, what));
        match &self.profile_fault {
            None => writeln!(f, "{compiled} compiled, {batches} on {workers}; where their time went:")?,
            Some(fault) => writeln!(
                f,
                "{compiled} compiled, {batches} on {workers}; where their time went is not known, because the profile does not \
                 add up: {fault}"
            )?,
        }
        for StageShare { stage, seconds, thousandths, is_waiting } in self.stages.iter().take(LISTED) {
            let waiting = if *is_waiting { " (waiting)" } else { "" };
            writeln!(f, "  {stage:24} {:9.2} ms {:5.1} %{waiting}", seconds * 1e3, *thousandths as f64 / 10.0)?;
        }
        self.advice.iter().try_for_each(|Said { basis, text }| writeln!(f, "- {text} ({basis})"))?;
        self.baseline.iter().try_for_each(|baseline| writeln!(f, "{baseline}"))?;
        for Compared { name, seconds, ratio, different, late_in_one, note } in &self.compared {
            match (seconds, ratio) {
                (Some(seconds), Some(ratio)) => writeln!(
                    f,
                    "  {name:12} {:10.1} ms, {ratio:7.2}x the time; {different} results differ, {late_in_one} late in one alone {note}",
                    seconds * 1e3
                )?,
                _ => writeln!(f, "  {name:12} not run: {note}")?,
            }
        }
        writeln!(f, "{} of {} solved by some program", self.solved, counted(self.tasks, "task"))?;
        for best in self.best.iter().filter(|best| best.exact == best.samples).take(LISTED) {
            writeln!(f, "  {}: {}", best.task, best.program)?;
        }
        for refused in &self.refused {
            writeln!(f, "left out: {refused}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Baseline { scorings, scorings_per_second, speedup, left_out, remembered } = self;
        let measured = counted(*scorings, "scoring");
        write!(f, "plain loop on one CPU thread, measured with {measured}: {scorings_per_second:.0} a second; ")?;
        match remembered {
            0 => write!(f, "this run was {speedup:.2}x as fast")?,
            // What was not computed can't be compared with what was.
            _ => {
                let known = counted(*remembered, "scoring");
                write!(
                    f,
                    "this run had {known} from its memory and computed the others: {speedup:.2}x as many a second"
                )?
            }
        }
        match left_out {
            0 => Ok(()),
            _ => write!(f, " (the loop is without {}, this run is not)", counted(*left_out, "late program")),
        }
    }
}

/// So many of something.
fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix("ch")) {
        (1, _) => format!("1 {what}"),
        (_, Some(_)) => format!("{count} {what}es"),
        (_, None) => format!("{count} {what}s"),
    }
}
