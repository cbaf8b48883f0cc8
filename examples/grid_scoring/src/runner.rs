//! A worker: units of work enter, outcomes leave. Within a unit programs go in the order of their stages: what two of them begin
//! with is computed once. Loops that need many rounds wait until everything else is done, for whichever worker is free then.

use crate::batches::{Batches, Ended};
use crate::canvas::Anchor;
use crate::layer::{Cells, Layer, State, Stopped};
use crate::library::Library;
use crate::rounds::Rounds;
use crate::run::{Known, Limits, Watch};
use crate::score::{Outcome, Score};
use crate::shelf::Shelf;
use crate::stage::Stage;
use breakeven::span;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Some programs with the samples of a bucket.
pub struct Unit {
    /// The bucket's number.
    pub bucket: usize,
    /// Their numbers, in the order of their stages.
    pub programs: Vec<usize>,
}

/// What all workers share.
pub struct Course<'r> {
    pub library: &'r Library<'r>,
    pub shelves: &'r [Shelf<'r>],
    pub stages: &'r [Vec<Stage>],
    pub known: &'r Known<'r>,
    pub limits: Limits,
    pub begun: Instant,
    pub watch: &'r dyn Watch,
    /// Scorings.
    pub done: AtomicUsize,
}

/// The outcomes of a program with a bucket; those that were remembered are left out.
pub struct Scored {
    /// The program's number.
    pub program: usize,
    /// The bucket's number.
    pub bucket: usize,
    /// Of each sample of the bucket.
    pub outcomes: Vec<Option<Outcome>>,
}

/// What a worker leaves.
pub struct Part {
    /// Outcomes.
    pub scored: Vec<Scored>,
    /// When the last scoring that is not late was done.
    pub rest: Duration,
    /// Batches that were run.
    pub batches: usize,
}

/// Programs whose loops need more rounds.
pub type WaitingList<'r> = Mutex<Vec<Waiting<'r>>>;

/// A worker.
pub struct Runner<'w, 'r> {
    course: &'r Course<'r>,
    batches: Batches<'r>,
    waiting: &'w WaitingList<'r>,
    scored: Vec<Scored>,
    rest: Duration,
}

/// A program whose loop needs more rounds.
pub struct Waiting<'r> {
    bucket: usize,
    program: usize,
    /// The stage that is the loop.
    stage: usize,
    before: Layer<'r>,
    rounds: Box<Rounds<'r>>,
}

impl<'w, 'r> Runner<'w, 'r> {
    /// With nothing done yet.
    pub fn new(course: &'r Course<'r>, waiting: &'w WaitingList<'r>) -> Runner<'w, 'r> {
        let batches = Batches { library: course.library, count: 0 };
        Runner { course, batches, waiting, scored: Vec::new(), rest: Duration::ZERO }
    }

    /// Does units until there are no more, and then what had to wait.
    pub fn run<'u>(&mut self, mut next: impl FnMut() -> Option<&'u Unit>) -> breakeven::Result<()> {
        while let Some(unit) = next() {
            self.unit(unit)?;
        }
        while let Some(waits) = self.next_waiting() {
            self.go_on(waits)?;
        }
        Ok(())
    }

    /// Of the loops that wait, the one that has had the least time: however many there are that never end, each has had no more
    /// than the longest of the others when all of these are done.
    fn next_waiting(&self) -> Option<Waiting<'r>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let least = waiting.iter().enumerate().min_by_key(|(_, waits)| waits.rounds.spent)?.0;
        Some(waiting.remove(least))
    }

    /// Lets a program wait for whoever is free.
    fn wait(&self, waits: Waiting<'r>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waits);
    }

    /// What it has done.
    pub fn end(self) -> Part {
        Part { scored: self.scored, rest: self.rest, batches: self.batches.count }
    }

    fn unit(&mut self, unit: &Unit) -> breakeven::Result<()> {
        let Course { shelves, stages, known, .. } = *self.course;
        let shelf = &shelves[unit.bucket];
        // What the last program made of each of its stages, and which trays it left out: the next one begins where they differ.
        let mut shared: Vec<(&Stage, Layer<'r>)> = Vec::new();
        let Some(mut left_out) = unit.programs.first().map(|program| known.trays(unit.bucket, *program)) else {
            return Ok(());
        };
        let mut first = self.first(shelf, left_out);
        for &program in &unit.programs {
            if self.is_over() {
                self.give_up(unit.bucket, program);
                continue;
            }
            let list = &stages[program];
            let trays = known.trays(unit.bucket, program);
            if trays != left_out {
                (first, left_out) = (self.first(shelf, trays), trays);
                shared.clear();
            }
            let common = shared.iter().zip(list).take_while(|((done, _), stage)| done == stage).count();
            shared.truncate(common);
            let mut unfinished = None;
            for (number, stage) in list.iter().enumerate().skip(common) {
                let before = shared.last().map_or(&first, |(_, layer)| layer);
                match self.stage(shelf, stage, before, None)? {
                    Ended::Done(layer) => shared.push((stage, layer)),
                    Ended::Unfinished(rounds) => {
                        unfinished = Some((number, rounds, before.clone()));
                        break;
                    }
                }
            }
            match unfinished {
                Some((stage, rounds, before)) => {
                    self.wait(Waiting { bucket: unit.bucket, program, stage, before, rounds });
                }
                None => {
                    let last = shared.last().map_or(&first, |(_, layer)| layer).clone();
                    self.score(unit.bucket, program, &last)?;
                }
            }
        }
        Ok(())
    }

    /// The inputs, without those trays that are known.
    fn first(&self, shelf: &'r Shelf<'r>, known: &[bool]) -> Layer<'r> {
        let lanes = shelf.bucket.lanes;
        let state = |(number, sample): (usize, &&crate::task::Pair)| match known.get(number / lanes) {
            Some(true) => Err(Stopped::Known),
            _ => Ok(sample.input.size()),
        };
        let states: Vec<State> = shelf.bucket.samples.iter().enumerate().map(state).collect();
        let laid = shelf.inputs.get(&Anchor::default()).map_or(&[][..], Vec::as_slice);
        let trays = shelf.bucket.trays();
        let cells = laid.chunks(laid.len().div_ceil(trays).max(1)).map(Cells::Laid).collect();
        Layer { form: shelf.form(), cells, regions: None, states: states.into() }
    }

    /// Goes on with a program that waits.
    fn go_on(&mut self, waits: Waiting<'r>) -> breakeven::Result<()> {
        let Waiting { bucket, program, stage: first, mut before, rounds } = waits;
        let mut rounds = Some(rounds);
        for (stage, step) in self.course.stages[program].iter().enumerate().skip(first) {
            match self.stage(&self.course.shelves[bucket], step, &before, rounds.take())? {
                Ended::Done(layer) => before = layer,
                Ended::Unfinished(rounds) => {
                    self.wait(Waiting { bucket, program, stage, before, rounds });
                    return Ok(());
                }
            }
        }
        self.score(bucket, program, &before)
    }

    /// Runs a stage, or goes on with its rounds.
    fn stage(
        &mut self,
        shelf: &Shelf<'r>,
        stage: &Stage,
        before: &Layer<'r>,
        rounds: Option<Box<Rounds<'r>>>,
    ) -> breakeven::Result<Ended<'r>> {
        match stage {
            _ if !before.is_alive() => Ok(Ended::Done(Layer { form: stage.form(before.form), ..before.clone() })),
            Stage::Label | Stage::Loop { .. } => {
                let Course { limits, begun, watch, .. } = *self.course;
                let may_go_on =
                    |spent: Duration| spent < limits.sample && begun.elapsed() < limits.run && !watch.is_interrupted();
                self.batches.rounds(shelf, stage, before, rounds, may_go_on)
            }
            Stage::CropBbox => {
                let boxes = self.batches.boxes(shelf, before)?;
                self.batches.stage(shelf, stage, before, Some(&boxes)).map(Ended::Done)
            }
            _ => self.batches.stage(shelf, stage, before, None).map(Ended::Done),
        }
    }

    /// Scores what a program has made of a bucket.
    fn score(&mut self, bucket: usize, program: usize, layer: &Layer<'_>) -> breakeven::Result<()> {
        let shelf = &self.course.shelves[bucket];
        let scores = if layer.is_alive() {
            let _stage = span!("score");
            Some(self.batches.scores(shelf, layer)?)
        } else {
            None
        };
        let _stage = span!("outcomes");
        // Loops that were ended by somebody who wanted no more of them are not late.
        let unfinished = if self.course.watch.is_interrupted() { Outcome::Skipped } else { Outcome::Late };
        let lanes = layer.form.lanes;
        let mut outcomes = Vec::with_capacity(shelf.bucket.samples.len());
        for (tray, samples) in shelf.bucket.samples.chunks(lanes).enumerate() {
            let (equal, colours) = match &scores {
                Some((made, trays)) => match trays.binary_search(&tray) {
                    Ok(at) => (made.slice::<u32>(at, 0)?, made.slice::<u32>(at, 1)?),
                    Err(_) => (&[][..], &[][..]),
                },
                None => (&[][..], &[][..]),
            };
            for (lane, sample) in samples.iter().enumerate() {
                outcomes.push(match layer.states[tray * lanes + lane] {
                    Err(Stopped::Known) => None,
                    Err(Stopped::Failed(failure)) => Some(Outcome::Failed(failure)),
                    Err(Stopped::Late) => Some(unfinished),
                    Ok(size) => {
                        let equal_cells = if size == sample.output.size() { equal[lane] as i32 } else { 0 };
                        let exact = equal_cells as usize == sample.output.cells().len();
                        Some(Outcome::Scored(Score { exact, equal_cells, equal_colours: colours[lane] as i32 }))
                    }
                });
            }
        }
        self.keep(bucket, program, &outcomes)?;
        let scored = outcomes.iter().flatten().count();
        self.course.watch.done(self.course.done.fetch_add(scored, Ordering::Relaxed) + scored);
        if !layer.states.contains(&Err(Stopped::Late)) {
            self.rest = self.course.begun.elapsed();
        }
        self.scored.push(Scored { program, bucket, outcomes });
        Ok(())
    }

    /// Remembers the outcomes of each tray.
    fn keep(&self, bucket: usize, program: usize, outcomes: &[Option<Outcome>]) -> breakeven::Result<()> {
        let Known { memory: Some(memory), programs, trays, .. } = self.course.known else { return Ok(()) };
        let _stage = span!("memory");
        let lanes = self.course.shelves[bucket].bucket.lanes;
        for (outcomes, tray) in outcomes.chunks(lanes).zip(&trays[bucket]) {
            // Of a tray that was known nothing is new.
            let Some(outcomes) = outcomes.iter().copied().collect::<Option<Vec<Outcome>>>() else { continue };
            memory.put(programs[program], *tray, &outcomes, lanes)?;
        }
        memory.flush();
        Ok(())
    }

    /// Has the run no more time, or was it interrupted?
    fn is_over(&self) -> bool {
        let Course { limits, begun, watch, .. } = self.course;
        begun.elapsed() >= limits.run || watch.is_interrupted()
    }

    /// A program that is not begun any more: late, unless somebody wanted no more of it.
    fn give_up(&mut self, bucket: usize, program: usize) {
        if !self.course.watch.is_interrupted() {
            let lanes = self.course.shelves[bucket].bucket.lanes;
            let known = self.course.known.trays(bucket, program);
            let samples = 0..self.course.shelves[bucket].bucket.samples.len();
            let outcomes = samples.map(|number| (!known[number / lanes]).then_some(Outcome::Late)).collect();
            self.scored.push(Scored { program, bucket, outcomes });
        }
    }
}
