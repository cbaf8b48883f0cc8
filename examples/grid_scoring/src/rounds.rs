//! Loops: a step program enters, is run over all trays that are not stable yet, and again, until nothing changes, the turns
//! are done, or time is up. What is stable drops out, and the samples that are left at last move together.

use crate::layer::Cells;
use crate::library::Library;
use crate::record::Key;
use breakeven::{Many, Program, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds that a loop gets at once. Whoever needs more waits, so that a loop without end has cost little when all others
/// are done.
pub const SLICE: u32 = 8;

/// So many samples move together: one in ten needs more than twice the rounds of the others. A round of labels takes 100 us with 64 of
/// them and with 32, where a whole tray takes 230, and with 64 of them a tray is left one or two rounds sooner.
pub const NARROW: usize = 64;

/// The programs of a turn.
#[derive(Clone, Copy)]
pub struct Turns<'p> {
    /// Where they are.
    pub library: &'p Library<'p>,
    /// For whole trays.
    pub wide: &'p Key,
    /// For [`NARROW`] samples, where a loop may be long.
    pub narrow: Option<&'p Key>,
}

/// A loop that is under way.
pub struct Rounds<'a> {
    lanes: usize,
    /// The state of each tray: what its last round that changed anything has made.
    state: Vec<Cells<'a>>,
    /// What labels are spread along: the other outputs of the batch that they begin with.
    beside: Option<Arc<Many>>,
    /// The trays that are not stable yet.
    active: Vec<usize>,
    /// The samples that take part.
    wanted: Vec<bool>,
    /// Has the sample changed in its last round?
    changing: Vec<bool>,
    moved: Option<Moved>,
    turns: u32,
    /// The time that rounds have taken.
    pub spent: Duration,
}

/// Samples that have moved together.
pub struct Moved {
    /// Which sample is in each lane.
    pub samples: Vec<usize>,
    /// Their state, and what lies beside it.
    pub words: Vec<Vec<u32>>,
}

impl<'a> Rounds<'a> {
    /// Not begun yet; samples that are not `wanted` are left as they are. Labels have `beside` what they are spread along.
    pub fn new(lanes: usize, state: Vec<Cells<'a>>, beside: Option<Arc<Many>>, wanted: Vec<bool>) -> Rounds<'a> {
        let is_wanted = |tray: &usize| wanted.chunks(lanes).nth(*tray).is_some_and(|tray| tray.contains(&true));
        let active = (0..state.len()).filter(is_wanted).collect();
        let (changing, spent) = (wanted.clone(), Duration::ZERO);
        Rounds { lanes, state, beside, active, wanted, changing, moved: None, turns: 0, spent }
    }

    /// Is there nothing left to do?
    pub fn is_done(&self) -> bool {
        self.active.is_empty()
    }

    /// Goes on for `slice` rounds, `most` in all, unless `may_go_on` ends it earlier. `run` is how batches are run.
    pub fn advance(
        &mut self,
        programs: Turns<'_>,
        slice: u32,
        most: u32,
        mut run: impl FnMut(&Program, &[Vec<View<'_>>]) -> breakeven::Result<Many>,
        mut may_go_on: impl FnMut(Duration) -> bool,
    ) -> breakeven::Result<()> {
        for _ in 0..slice {
            if self.is_done() || !may_go_on(self.spent) {
                return Ok(());
            }
            let begun = Instant::now();
            let last = self.turns + 1 >= most;
            match (&mut self.moved, programs.narrow) {
                (Some(moved), Some(narrow)) => {
                    let task = moved.words.iter().map(|words| words.as_slice().into()).collect();
                    let made = run(programs.library.get(narrow)?, &[task])?;
                    self.settle_moved(&made, last)?;
                }
                _ => {
                    let task = |tray: &usize| Ok(self.words(*tray)?.into_iter().map(View::from).collect());
                    let tasks: breakeven::Result<Vec<Vec<View<'_>>>> = self.active.iter().map(task).collect();
                    let made = run(programs.library.get(programs.wide)?, &tasks?)?;
                    self.settle(&Arc::new(made), last)?;
                    if programs.narrow.is_some() {
                        self.move_together()?;
                    }
                }
            }
            self.turns += 1;
            self.spent += begun.elapsed();
        }
        Ok(())
    }

    /// The state of a tray, and what lies beside it.
    fn words(&self, tray: usize) -> breakeven::Result<Vec<&[u32]>> {
        let mut words = vec![self.state[tray].words()?];
        if let Some(beside) = &self.beside {
            words.extend([beside.slice(tray, 1)?, beside.slice(tray, 2)?]);
        }
        Ok(words)
    }

    /// Takes over what a round has made; trays without a change are done.
    fn settle(&mut self, made: &Arc<Many>, last: bool) -> breakeven::Result<()> {
        let mut stay = Vec::with_capacity(self.active.len());
        for (task, &tray) in self.active.iter().enumerate() {
            let samples = tray * self.lanes..self.changing.len().min((tray + 1) * self.lanes);
            let mut any = false;
            for (sample, changed) in samples.zip(made.slice::<u32>(task, 1)?) {
                let changed = *changed != 0 && self.wanted[sample];
                any |= changed;
                self.changing[sample] = changed && !last;
            }
            if any {
                self.state[tray] = Cells::Made(made.clone(), task);
                stay.extend((!last).then_some(tray));
            }
        }
        self.active = stay;
        Ok(())
    }

    fn settle_moved(&mut self, made: &Many, last: bool) -> breakeven::Result<()> {
        let Some(moved) = &mut self.moved else { return Ok(()) };
        let mut any = false;
        for (sample, changed) in moved.samples.iter().zip(made.slice::<u32>(0, 1)?) {
            any |= *changed != 0;
            self.changing[*sample] = *changed != 0 && !last;
        }
        moved.words[0] = made.slice(0, 0)?.to_vec();
        if !any || last {
            self.active.clear();
        }
        Ok(())
    }

    /// The samples that still change move together, once they are few.
    fn move_together(&mut self) -> breakeven::Result<()> {
        let samples: Vec<usize> = (0..self.changing.len()).filter(|sample| self.changing[*sample]).collect();
        if samples.is_empty() || samples.len() > NARROW || self.lanes * self.active.len() < 2 * NARROW {
            return Ok(());
        }
        let mut moved = Vec::new();
        for (lane, sample) in samples.iter().enumerate() {
            let from = self.words(sample / self.lanes)?;
            moved.resize_with(from.len(), Vec::new);
            for (to, from) in moved.iter_mut().zip(from) {
                to.resize(from.len() / self.lanes * NARROW, 0);
                copy_lane(from, self.lanes, sample % self.lanes, to, NARROW, lane);
            }
        }
        self.moved = Some(Moved { samples, words: moved });
        Ok(())
    }

    /// Its results, which samples have none because they were still changing, and those that have moved together: what trays have
    /// of them is not their result.
    pub fn end(self) -> (Vec<Cells<'a>>, Vec<bool>, Option<Moved>) {
        (self.state, self.changing, self.moved)
    }
}

impl Moved {
    /// Puts the samples back into their trays.
    pub fn go_back(&self, state: &mut [Cells<'_>], lanes: usize) -> breakeven::Result<()> {
        let mut places = self.samples.iter().enumerate().peekable();
        for (tray, state) in state.iter_mut().enumerate() {
            let is_here = |sample: usize| sample / lanes == tray;
            if !places.peek().is_some_and(|(_, sample)| is_here(**sample)) {
                continue;
            }
            let mut words = state.words()?.to_vec();
            while let Some((lane, sample)) = places.next_if(|(_, sample)| is_here(**sample)) {
                copy_lane(&self.words[0], NARROW, lane, &mut words, lanes, sample % lanes);
            }
            *state = Cells::Copied(Arc::new(words));
        }
        Ok(())
    }
}

/// One sample's words from a tray to another.
pub fn copy_lane(from: &[u32], lanes: usize, lane: usize, to: &mut [u32], to_lanes: usize, to_lane: usize) {
    let from = from.iter().skip(lane).step_by(lanes);
    to.iter_mut().skip(to_lane).step_by(to_lanes).zip(from).for_each(|(to, from)| *to = *from);
}
