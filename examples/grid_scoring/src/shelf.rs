//! The canvases of a bucket, and which compiled programs a stage needs.

use crate::canvas::{Anchor, Bucket};
use crate::labels::part_form;
use crate::program::Until;
use crate::record::Key;
use crate::rounds::NARROW;
use crate::stage::{Form, Stage};
use std::collections::HashMap;

/// The canvases of a bucket.
pub struct Shelf<'a> {
    /// Its samples.
    pub bucket: &'a Bucket<'a>,
    /// Inputs in each corner that some program needs.
    pub inputs: HashMap<Anchor, Vec<u32>>,
    /// Expected grids, by [`Form::expected`].
    pub expected: HashMap<Form, Vec<u32>>,
    /// Their colour counts.
    pub counts: Vec<u32>,
}

impl<'a> Shelf<'a> {
    /// Nothing is laid out yet.
    pub fn new(bucket: &'a Bucket<'a>) -> Shelf<'a> {
        Shelf { bucket, inputs: HashMap::new(), expected: HashMap::new(), counts: Vec::new() }
    }

    /// Inputs as they are.
    pub fn form(&self) -> Form {
        form(self.bucket)
    }
}

/// Inputs of a bucket as they are.
pub fn form(bucket: &Bucket<'_>) -> Form {
    Form::of_inputs(bucket.side, bucket.lanes)
}

/// What a stage runs, in the order in which it does.
pub fn keys(stage: &Stage, form: Form, side: usize) -> Vec<Key> {
    let to = stage.form(form).canvas;
    // In which corner grids lie is told with their positions, or does not matter.
    let anywhere = Form { anchor: Anchor::default(), ..form };
    let narrow = Form { lanes: NARROW, ..anywhere };
    let own = |stage: Stage, form: Form| Key::Stage(stage, form, side);
    match stage {
        Stage::Pick(_) => vec![Key::Pick(anywhere, to)],
        Stage::Tile { right, .. } => vec![Key::Tile(anywhere, to, *right)],
        // Colours of frames are given: one program for all of them.
        Stage::Pad { by, .. } => vec![Key::Pad(anywhere, to, *by)],
        Stage::CropBbox => vec![own(Stage::CropBbox, anywhere), Key::Pick(anywhere, to)],
        Stage::Label => {
            let part = part_form(anywhere);
            vec![Key::FirstLabels(part), own(Stage::Label, part), own(Stage::Label, narrow)]
        }
        Stage::Loop { body, until } => {
            let turn = Stage::Loop { body: body.clone(), until: Until::Stable };
            match until {
                Until::Stable => vec![own(turn.clone(), anywhere), own(turn, narrow)],
                Until::Times(_) => vec![own(turn, anywhere)],
            }
        }
        Stage::OfRegions(_) | Stage::Fused(_, None) => vec![own(stage.clone(), anywhere)],
        // What is compared with inputs is laid out as they are.
        Stage::Fused(_, Some(_)) => vec![own(stage.clone(), form)],
    }
}
