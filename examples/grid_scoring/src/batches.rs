//! The batches of stages: a layer enters, the next one leaves. THE call of `run_many` is here.

use crate::grid::{COLOURS, Size};
use crate::layer::{Cells, Layer, State, Stopped, alive};
use crate::library::{Library, missing};
use crate::places::places;
use crate::program::{Regions, Step, Until};
use crate::record::{Key, bits};
use crate::regions::RegionWords;
use crate::rounds::{Rounds, SLICE, Turns};
use crate::shelf::{Shelf, keys};
use crate::stage::{Form, Stage};
use breakeven::{Many, Program, View, span};
use std::sync::Arc;
use std::time::Duration;

/// How a stage ended.
pub enum Ended<'s> {
    /// With its result.
    Done(Layer<'s>),
    /// It needs more rounds.
    Unfinished(Box<Rounds<'s>>),
}

/// Runs batches, and knows what that took.
pub struct Batches<'r> {
    /// Compiled programs.
    pub library: &'r Library<'r>,
    /// How many there were.
    pub count: usize,
}

impl Batches<'_> {
    /// Runs a stage.
    pub fn stage<'s>(
        &mut self,
        shelf: &Shelf<'s>,
        stage: &Stage,
        before: &Layer<'s>,
        boxes: Option<&(Many, Vec<usize>)>,
    ) -> breakeven::Result<Layer<'s>> {
        let form = stage.form(before.form);
        let count = shelf.bucket.trays();
        let edges = edges(boxes, form, count)?;
        let found = |sample: usize| edges.get(sample).copied().unwrap_or_default();
        let states = {
            let _stage = span!("sizes");
            states(shelf, stage, before, found)
        };
        let trays = alive(&states, form.lanes);
        let next = |cells: Vec<Cells<'s>>| Layer { form, cells: cells.into(), regions: None, states: states.clone() };
        if trays.is_empty() {
            return Ok(next(vec![Cells::Nowhere; count]));
        }
        let list = keys(stage, before.form, shelf.bucket.side);
        let mut tasks: Vec<Vec<View<'_>>> = Vec::with_capacity(trays.len());
        let made = if let Stage::Fused(..) | Stage::OfRegions(_) = stage {
            let _stage = span!("steps");
            let origin = match stage {
                Stage::Fused(_, Some(anchor)) => shelf.inputs.get(anchor),
                _ => None,
            };
            for tray in &trays {
                let mut task = vec![View::from(before.cells[*tray].words()?)];
                task.extend(origin.map(|all| View::from(part(all, *tray, count))));
                if let (Stage::OfRegions(what), Some(regions)) = (stage, &before.regions) {
                    let RegionWords { largest, sizes, count } = &regions[*tray];
                    task.push(match what {
                        Regions::Largest => largest.as_slice().into(),
                        Regions::BySize => sizes.as_slice().into(),
                        Regions::Count => count.as_slice().into(),
                    });
                }
                tasks.push(task);
            }
            self.batch(&list[0], &tasks)?
        } else {
            let laid = {
                let _stage = span!("places");
                places(stage, before.form, &states, &before.states, found, count)
            };
            let colour = match stage {
                Stage::Pad { colour, .. } => bits(*colour),
                _ => bits(0),
            };
            for tray in &trays {
                let mut task = vec![
                    before.cells[*tray].words()?.into(),
                    part(&laid.rows, *tray, count).into(),
                    part(&laid.left, *tray, count).into(),
                    part(&laid.stays, *tray, count).into(),
                ];
                match stage {
                    Stage::Tile { .. } => task.push(part(&laid.width, *tray, count).into()),
                    Stage::Pad { .. } => {
                        task.extend([part(&laid.frame, *tray, count).into(), View::from(colour.as_slice())]);
                    }
                    _ => {}
                }
                tasks.push(task);
            }
            let _stage = span!("moves");
            self.batch(&list[list.len() - 1], &tasks)?
        };
        let (made, mut cells) = (Arc::new(made), vec![Cells::Nowhere; count]);
        trays.iter().enumerate().for_each(|(task, tray)| cells[*tray] = Cells::Made(made.clone(), task));
        Ok(next(cells))
    }

    /// The boxes around everything but background, and where in them each tray is.
    pub fn boxes(&mut self, shelf: &Shelf<'_>, before: &Layer<'_>) -> breakeven::Result<(Many, Vec<usize>)> {
        let _stage = span!("boxes");
        let trays = alive(&before.states, before.form.lanes);
        let tasks = trays.iter().map(|tray| Ok(vec![View::from(before.cells[*tray].words()?)]));
        let tasks: breakeven::Result<Vec<Vec<View<'_>>>> = tasks.collect();
        let key = &keys(&Stage::CropBbox, before.form, shelf.bucket.side)[0];
        Ok((self.batch(key, &tasks?)?, trays))
    }

    /// Begins a loop, or goes on with it for some rounds.
    pub fn rounds<'s>(
        &mut self,
        shelf: &Shelf<'s>,
        stage: &Stage,
        before: &Layer<'s>,
        rounds: Option<Box<Rounds<'s>>>,
        may_go_on: impl Fn(Duration) -> bool,
    ) -> breakeven::Result<Ended<'s>> {
        let list = keys(stage, before.form, shelf.bucket.side);
        if *stage == Stage::Label {
            return self.labels(&list, before, may_go_on).map(Ended::Done);
        }
        let mut rounds = rounds.unwrap_or_else(|| {
            let wanted = before.states.iter().map(Result::is_ok).collect();
            Box::new(Rounds::new(before.form.lanes, before.cells.to_vec(), None, wanted))
        });
        let [wide, narrow @ ..] = &list[..] else { return Err(missing()) };
        let programs = Turns { library: self.library, wide, narrow: narrow.first() };
        let most = match stage {
            Stage::Loop { until: Until::Times(times), .. } => *times,
            _ => u32::MAX,
        };
        {
            let _stage = span!("rounds");
            let run = |program: &Program, tasks: &[Vec<View<'_>>]| self.run(program, tasks);
            rounds.advance(programs, SLICE, most, run, &may_go_on)?;
        }
        if !rounds.is_done() && may_go_on(rounds.spent) {
            return Ok(Ended::Unfinished(rounds));
        }
        let (mut made, changing, moved) = rounds.end();
        let late = |(state, changing): (&State, bool)| if changing { state.and(Err(Stopped::Late)) } else { *state };
        let states: Arc<[State]> = before.states.iter().zip(changing).map(late).collect();
        moved.map_or(Ok(()), |moved| moved.go_back(&mut made, before.form.lanes))?;
        Ok(Ended::Done(Layer { form: before.form, cells: made.into(), regions: None, states }))
    }

    /// Scores of the trays that have any: equal cells and equal colours of each lane.
    pub fn scores(&mut self, shelf: &Shelf<'_>, layer: &Layer<'_>) -> breakeven::Result<(Many, Vec<usize>)> {
        let form = layer.form;
        let trays = alive(&layer.states, form.lanes);
        let expected = shelf.expected.get(&form.expected()).ok_or_else(missing)?;
        let mut tasks: Vec<Vec<View<'_>>> = Vec::with_capacity(trays.len());
        for tray in &trays {
            tasks.push(vec![
                layer.cells[*tray].words()?.into(),
                part(expected, *tray, shelf.bucket.trays()).into(),
                shelf.counts[tray * COLOURS * form.lanes..(tray + 1) * COLOURS * form.lanes].into(),
            ]);
        }
        Ok((self.batch(&Key::Score(form.canvas.height, form.lanes), &tasks)?, trays))
    }

    pub(crate) fn batch(&mut self, key: &Key, tasks: &[Vec<View<'_>>]) -> breakeven::Result<Many> {
        let library = self.library;
        self.run(library.get(key)?, tasks)
    }

    /// THE call that everything is computed by.
    pub(crate) fn run(&mut self, program: &Program, tasks: &[Vec<View<'_>>]) -> breakeven::Result<Many> {
        self.count += 1;
        program.run_many(tasks)
    }
}

/// A tray's part of what all have.
fn part<T>(all: &[T], tray: usize, trays: usize) -> &[T] {
    let each = all.len() / trays;
    &all[tray * each..(tray + 1) * each]
}

/// The boxes that were found: first row and column and the ends of both, of each sample; nothing where nothing was looked for.
fn edges(boxes: Option<&(Many, Vec<usize>)>, form: Form, trays: usize) -> breakeven::Result<Vec<[u32; 4]>> {
    let Some((boxes, looked)) = boxes else { return Ok(Vec::new()) };
    let mut found = vec![[0; 4]; trays * form.lanes];
    for (at, tray) in looked.iter().enumerate() {
        let part = |number: usize| boxes.slice::<u32>(at, number);
        let words = part(0)?.iter().zip(part(1)?).zip(part(2)?);
        for (found, ((rows, below), last)) in found[tray * form.lanes..].iter_mut().zip(words) {
            if *rows != 0 {
                let end = |word: u32| u32::BITS - word.leading_zeros();
                *found = [rows.trailing_zeros(), below.count_ones(), end(*rows), end(*last)];
            }
        }
    }
    Ok(found)
}

/// How it stands with each sample after a stage.
fn states(shelf: &Shelf<'_>, stage: &Stage, before: &Layer<'_>, edges: impl Fn(usize) -> [u32; 4]) -> Arc<[State]> {
    let steps: &[Step] = match stage {
        Stage::Fused(steps, _) => steps,
        Stage::Pick(step) => std::slice::from_ref(step),
        Stage::Tile { down, right } => &[Step::Tile { down: *down, right: *right }],
        Stage::Pad { by, colour } => &[Step::Pad { by: *by, colour: *colour }],
        Stage::OfRegions(what) => &[Step::Regions(*what)],
        Stage::CropBbox => &[Step::CropBbox],
        Stage::Label | Stage::Loop { .. } => &[],
    };
    if steps.iter().all(Step::keeps_size) {
        return before.states.clone();
    }
    let after = |(sample, state): (usize, &State)| {
        let found = || {
            let [top, left, bottom, right] = edges(sample);
            (bottom > top).then(|| Size { height: (bottom - top) as usize, width: (right - left) as usize })
        };
        let input = shelf.bucket.samples[sample].input.size();
        let next = |size: Size| steps.iter().try_fold(size, |size, step| step.size(size, input, found));
        state.and_then(|size| next(size).map_err(Stopped::Failed))
    };
    before.states.iter().enumerate().map(after).collect()
}
