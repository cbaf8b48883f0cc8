//! Labels of regions: a layer enters, the same layer with the regions of each tray leaves.
//!
//! Labels are a number for each cell, far more memory than canvases, and fresh memory is dear: trays with many samples are labelled
//! part by part, each in the memory of the one before.

use crate::batches::Batches;
use crate::canvas::{PLANES, VECTOR};
use crate::layer::{Cells, Layer, State, Stopped};
use crate::library::missing;
use crate::record::Key;
use crate::regions::RegionWords;
use crate::rounds::{Moved, NARROW, Rounds, Turns};
use crate::stage::Form;
use breakeven::{Program, View, span};
use std::sync::Arc;
use std::time::Duration;

/// Samples that are labelled at once, at least: with fewer the calls for each cell of a row take longer than its memory.
const AT_ONCE: usize = 240;

/// The form of what is labelled at once.
pub fn part_form(form: Form) -> Form {
    let parts = (form.lanes / AT_ONCE).max(1);
    Form { lanes: form.lanes.div_ceil(parts).next_multiple_of(VECTOR), ..form }
}

impl Batches<'_> {
    /// Labels every tray, with the programs for first labels, for a round, and for a round of few samples.
    pub fn labels<'s>(
        &mut self,
        keys: &[Key],
        before: &Layer<'s>,
        may_go_on: impl Fn(Duration) -> bool,
    ) -> breakeven::Result<Layer<'s>> {
        let form = before.form;
        let mut states = before.states.to_vec();
        let mut regions = Vec::with_capacity(before.cells.len());
        for (cells, states) in before.cells.iter().zip(states.chunks_mut(form.lanes)) {
            let part = part_form(form);
            let mut tray = RegionWords::none(form.canvas, form.lanes);
            for (number, states) in states.chunks_mut(part.lanes).enumerate() {
                if states.iter().any(Result::is_ok) {
                    let words = part_of(cells.words()?, form, number * part.lanes, part.lanes);
                    let made = self.part(keys, part, &words, states, &may_go_on)?;
                    tray.put_part(form.lanes, number * part.lanes, &made, part.lanes);
                }
            }
            regions.push(tray);
        }
        Ok(Layer { regions: Some(regions.into()), states: states.into(), ..before.clone() })
    }

    /// The regions of some samples; those that came to no end in time are late.
    fn part(
        &mut self,
        keys: &[Key],
        form: Form,
        words: &[u32],
        states: &mut [State],
        may_go_on: impl Fn(Duration) -> bool,
    ) -> breakeven::Result<RegionWords> {
        let [first, wide, narrow] = keys else { return Err(missing()) };
        let mut rounds = {
            let _stage = span!("first round");
            let made = Arc::new(self.batch(first, &[vec![View::from(words)]])?);
            let wanted = states.iter().map(Result::is_ok).collect();
            Rounds::new(form.lanes, vec![Cells::Made(made.clone(), 0)], Some(made), wanted)
        };
        {
            let _stage = span!("rounds");
            let turns = Turns { library: self.library, wide, narrow: Some(narrow) };
            let run = |program: &Program, tasks: &[Vec<View<'_>>]| self.run(program, tasks);
            // Labels come to an end with every grid, and other programs may want them, too.
            rounds.advance(turns, u32::MAX, u32::MAX, run, may_go_on)?;
        }
        let _stage = span!("region sizes");
        let (labels, changing, moved) = rounds.end();
        for (state, _) in states.iter_mut().zip(changing).filter(|(state, changing)| state.is_ok() && *changing) {
            *state = Err(Stopped::Late);
        }
        let mut regions = RegionWords::of(labels[0].words()?, form.canvas, form.lanes);
        if let Some(Moved { samples, words }) = moved {
            let apart = RegionWords::of(&words[0], form.canvas, NARROW);
            for (lane, sample) in samples.into_iter().enumerate() {
                regions.put(form.lanes, sample, &apart, NARROW, lane);
            }
        }
        Ok(regions)
    }
}

/// Some samples of a tray's canvases.
fn part_of(words: &[u32], form: Form, first: usize, lanes: usize) -> Vec<u32> {
    let mut part = vec![0; PLANES * form.canvas.height * lanes];
    for (to, from) in part.chunks_mut(lanes).zip(words.chunks(form.lanes)) {
        let from = &from[first..form.lanes.min(first + lanes)];
        to[..from.len()].copy_from_slice(from);
    }
    part
}
