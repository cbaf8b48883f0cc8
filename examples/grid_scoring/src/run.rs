//! A whole run: programs and samples enter, an outcome for each of their combinations leaves.
//!
//! What is remembered is looked up first, and only what is missing is prepared and run. Programs that begin with the same stage
//! are a unit of work, with the samples of one bucket: workers take one unit after the other.

use crate::canvas::Bucket;
use crate::memory::{Digest, Memory, program_digest, tray_digests};
use crate::prepare::prepare;
use crate::program::Program;
use crate::runner::{Course, Runner, Unit, WaitingList};
use crate::score::Outcome;
use crate::stage::Stage;
use crate::task::Pair;
use crate::workers::Workers;
use breakeven::profile::Handle;
use breakeven::{Engine, span};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What one sample's loops may take: the time of the rounds that it is part of. Everything else is bounded by the size of
    /// a canvas.
    pub sample: Duration,
    /// What everything may take.
    pub run: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sample: Duration::from_millis(50), run: Duration::from_secs(60) }
    }
}

/// What a run leaves.
pub struct Run {
    /// Of each program with each sample, programs outermost.
    pub outcomes: Vec<Outcome>,
    /// When the last scoring that is not late was done.
    pub rest: Duration,
    /// Programs that were compiled.
    pub compiled: usize,
    /// Batches that were run.
    pub batches: usize,
    /// Scorings whose outcome was remembered.
    pub remembered: usize,
}

/// Whoever watches a run.
pub trait Watch: Sync {
    /// So many scorings are done.
    fn done(&self, _scorings: usize) {}
    /// Is it to end with what is done?
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Nobody.
impl Watch for () {}

/// How a run is done.
pub struct Scoring<'a> {
    /// What computes.
    pub engine: &'a Engine,
    /// Threads that run batches beside each other: an engine with one thread each does more than one with all of them, because
    /// none waits for the other.
    pub workers: usize,
    /// Limits of time.
    pub limits: Limits,
    /// Where outcomes are remembered, if they are.
    pub memory: Option<&'a Memory>,
    /// The profile that workers are seen in.
    pub profile: Option<Handle>,
}

/// Scores every program with every sample.
///
/// ```
/// use grid_scoring::{Grid, Limits, Outcome, Pair, Program, score_all};
/// let engine = breakeven::Engine::new()?;
/// let grid = |rows: &[Vec<i64>]| Grid::from_rows(rows).unwrap();
/// let pair = Pair { input: grid(&[vec![1, 2]]), output: grid(&[vec![2, 1]]) };
/// let programs: Vec<Program> = vec!["flip_h".parse().unwrap(), "crop 0 0 3 3".parse().unwrap()];
/// let run = score_all(&engine, &programs, &[&pair], Limits::default(), &())?;
/// assert!(matches!(run.outcomes[0], Outcome::Scored(score) if score.exact));
/// assert!(matches!(run.outcomes[1], Outcome::Failed(_)));
/// # Ok::<(), breakeven::Error>(())
/// ```
pub fn score_all(
    engine: &Engine,
    programs: &[Program],
    samples: &[&Pair],
    limits: Limits,
    watch: &dyn Watch,
) -> breakeven::Result<Run> {
    Scoring { engine, workers: engine.threads(), limits, memory: None, profile: None }.run(programs, samples, watch)
}

impl Scoring<'_> {
    /// Scores every program with every sample.
    pub fn run(&self, programs: &[Program], samples: &[&Pair], watch: &dyn Watch) -> breakeven::Result<Run> {
        let begun = Instant::now();
        let workers = Workers::start(self.workers, self.profile.clone())?;
        let stages: Vec<Vec<Stage>> = programs.iter().map(Stage::cut).collect();
        let buckets = {
            let _stage = span!("canvases");
            Bucket::sort(samples)
        };
        let mut outcomes = vec![Outcome::Skipped; programs.len() * samples.len()];
        let known = Known::look_up(self.memory, programs, &buckets, samples.len(), &mut outcomes);
        let (library, shelves) =
            prepare(self.engine, &workers, &buckets, &stages, |bucket, program| !known.is_all(bucket, program))?;

        let units = units(&stages, buckets.len(), |bucket, program| known.is_all(bucket, program));
        let course = Course {
            library: &library,
            shelves: &shelves,
            stages: &stages,
            known: &known,
            limits: self.limits,
            begun,
            watch,
            done: AtomicUsize::new(known.scorings),
        };
        let next = AtomicUsize::new(0);
        let (waiting, ended) = (WaitingList::default(), Mutex::new(Vec::new()));
        workers.all("scoring", |_| {
            let mut runner = Runner::new(&course, &waiting);
            let result = runner.run(|| units.get(next.fetch_add(1, Ordering::Relaxed)));
            ended.lock().unwrap_or_else(PoisonError::into_inner).push(result.map(|()| runner.end()));
        });
        let compiled = library.count();
        let parts = Mutex::new(library.into_parts(workers.count()));
        workers.all("ending", |_| {
            let part = parts.lock().unwrap_or_else(PoisonError::into_inner).pop();
            drop(part);
        });
        let mut run =
            Run { outcomes: Vec::new(), rest: Duration::ZERO, compiled, batches: 0, remembered: known.scorings };
        let _stage = span!("outcomes");
        for part in ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let part = part?;
            for scored in &part.scored {
                let numbers = &buckets[scored.bucket].numbers;
                for (number, outcome) in numbers.iter().zip(&scored.outcomes) {
                    if let Some(outcome) = outcome {
                        outcomes[scored.program * samples.len() + number] = *outcome;
                    }
                }
            }
            run.rest = run.rest.max(part.rest);
            run.batches += part.batches;
        }
        run.outcomes = outcomes;
        Ok(run)
    }
}

/// What is remembered, and where the rest is to be kept.
pub(crate) struct Known<'m> {
    pub(crate) memory: Option<&'m Memory>,
    pub(crate) programs: Vec<Digest>,
    /// Of each tray of each bucket.
    pub(crate) trays: Vec<Vec<Digest>>,
    /// By bucket and program: which trays are remembered.
    is_known: Vec<Vec<Vec<bool>>>,
    /// Scorings.
    scorings: usize,
}

impl<'m> Known<'m> {
    fn look_up(
        memory: Option<&'m Memory>,
        programs: &[Program],
        buckets: &[Bucket<'_>],
        samples: usize,
        outcomes: &mut [Outcome],
    ) -> Known<'m> {
        let _stage = span!("memory");
        let mut known = Known { memory, programs: Vec::new(), trays: Vec::new(), is_known: Vec::new(), scorings: 0 };
        if memory.is_some() {
            known.programs = programs.iter().map(program_digest).collect();
            known.trays = buckets.iter().map(tray_digests).collect();
        }
        for (number, bucket) in buckets.iter().enumerate() {
            let of_program = |program: usize| {
                let of_tray = |(tray, numbers): (usize, &[usize])| {
                    let found = memory.and_then(|memory| {
                        let (program, tray) = (known.programs[program], known.trays[number][tray]);
                        memory.get(program, tray, numbers.len(), bucket.lanes)
                    });
                    let Some(found) = found else { return false };
                    for (sample, outcome) in numbers.iter().zip(&found) {
                        outcomes[program * samples + sample] = *outcome;
                    }
                    known.scorings += numbers.len();
                    true
                };
                bucket.numbers.chunks(bucket.lanes).enumerate().map(of_tray).collect::<Vec<bool>>()
            };
            let list = (0..programs.len()).map(of_program).collect();
            known.is_known.push(list);
        }
        known
    }

    /// Which trays of a bucket are remembered for a program?
    pub(crate) fn trays(&self, bucket: usize, program: usize) -> &[bool] {
        &self.is_known[bucket][program]
    }

    fn is_all(&self, bucket: usize, program: usize) -> bool {
        self.trays(bucket, program).iter().all(|known| *known)
    }
}

/// Programs that begin with the same stage, with each bucket: what takes longest first (labels of regions, other loops, the largest
/// canvases), so that no worker is left with a long unit at the end. Labels of two buckets are not made at the same time: they
/// need more memory than all the rest, and fresh memory is dear.
fn units(stages: &[Vec<Stage>], buckets: usize, is_known: impl Fn(usize, usize) -> bool) -> Vec<Unit> {
    let mut order: Vec<usize> = (0..stages.len()).collect();
    order.sort_by_cached_key(|number| format!("{:?}", stages[*number]));
    let has = |unit: &Unit, is: fn(&Stage) -> bool| unit.programs.iter().flat_map(|program| &stages[*program]).any(is);
    let turn = |unit: &Unit| {
        let of_bucket = buckets - unit.bucket;
        if has(unit, |stage| *stage == Stage::Label) {
            (of_bucket, 0)
        } else if has(unit, |stage| matches!(stage, Stage::Loop { .. })) {
            (1, 1)
        } else {
            (of_bucket, 2)
        }
    };
    let mut units = Vec::new();
    for bucket in (0..buckets).rev() {
        let wanted: Vec<usize> = order.iter().copied().filter(|program| !is_known(bucket, *program)).collect();
        let same = |a: &usize, b: &usize| !stages[*a].is_empty() && stages[*a].first() == stages[*b].first();
        units.extend(wanted.chunk_by(same).map(|programs| Unit { bucket, programs: programs.to_vec() }));
    }
    units.sort_by_key(turn);
    units
}
