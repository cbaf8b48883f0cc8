//! A program as stages: steps enter, runs of steps leave that are one compiled program each.
//!
//! What only moves and recolours cells is fused into one stage. Steps whose positions are known at run time only, and
//! those that go in rounds, are stages of their own, so that programs which begin alike share their results. So is the exchange
//! of rows and columns, which is dear and which most turns begin with.

use crate::canvas::{Anchor, BUCKETS};
use crate::grid::{COLOURS, MAX_SIDE, Size};
use crate::program::{InPlace, Program, Regions, Step, Turn, Until};

/// The sides of canvases, between which there are none: those of nearly one size share programs and expected grids. Fifty programs
/// need 11 programs that score without that, and 6 with it; each takes longer to plan than to run.
const SIDES: [usize; 5] = [3, 8, 16, 20, MAX_SIDE];

/// A canvas and where grids lie on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// Rows and columns of the canvas.
    pub canvas: Size,
    /// The corner of grids.
    pub anchor: Anchor,
    /// Samples of a tray.
    pub lanes: usize,
}

impl Form {
    /// Inputs of a bucket.
    pub fn of_inputs(side: usize, lanes: usize) -> Form {
        Form { canvas: Size { height: side, width: side }, anchor: Anchor::default(), lanes }
    }

    /// A canvas for grids of up to this size in the first corner.
    fn for_grids(self, height: usize, width: usize) -> Form {
        let side = |wanted: usize| SIDES.into_iter().find(|side| *side >= wanted).unwrap_or(MAX_SIDE);
        let canvas = Size { height: side(height), width: side(width) };
        Form { canvas, anchor: Anchor::default(), ..self }
    }

    /// The form in which expected grids are laid out beside grids of this one: in the first columns it does not matter how many
    /// columns there are.
    pub fn expected(self) -> Form {
        let width = if self.anchor.right { self.canvas.width } else { MAX_SIDE };
        Form { canvas: Size { width, ..self.canvas }, ..self }
    }
}

/// What one compiled program does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// Steps that are fused. At most one of them compares with the input, which lies in this corner then.
    Fused(Vec<Step>, Option<Anchor>),
    /// The box around everything but background.
    CropBbox,
    /// A part of grids that lie in another corner than the first.
    Pick(Step),
    /// Repeated.
    Tile {
        /// Times downwards.
        down: usize,
        /// Times to the right.
        right: usize,
    },
    /// A frame.
    Pad {
        /// Cells on each side.
        by: usize,
        /// Their colour.
        colour: i32,
    },
    /// Labels of regions, in rounds.
    Label,
    /// What becomes of them.
    OfRegions(Regions),
    /// A loop, in rounds.
    Loop {
        /// One turn.
        body: Vec<InPlace>,
        /// Until when.
        until: Until,
    },
}

impl Stage {
    /// The stages of a program.
    pub fn cut(program: &Program) -> Vec<Stage> {
        let mut stages: Vec<Stage> = Vec::new();
        // Where grids lie does not depend on their size, so that any bucket will do to follow them.
        let mut form = Form::of_inputs(BUCKETS[0].0, BUCKETS[0].1);
        for step in program.steps.iter().flat_map(exchanged_first) {
            let step = &step;
            let stage = match step {
                Step::CropBbox => Stage::CropBbox,
                Step::Tile { down, right } => Stage::Tile { down: *down, right: *right },
                Step::Pad { by, colour } => Stage::Pad { by: *by, colour: *colour },
                Step::Loop { body, until } => Stage::Loop { body: body.clone(), until: *until },
                Step::Regions(what) => {
                    stages.push(Stage::Label);
                    Stage::OfRegions(*what)
                }
                Step::Crop { .. } if form.anchor != Anchor::default() => Stage::Pick(step.clone()),
                Step::Compare(_) => Stage::Fused(vec![step.clone()], Some(form.anchor)),
                _ => Stage::Fused(vec![step.clone()], None),
            };
            form = stage.form(form);
            match (stages.last_mut(), stage) {
                (Some(Stage::Fused(steps, compared)), Stage::Fused(more, anchor))
                    if (compared.is_none() || anchor.is_none()) && !is_exchange(steps) =>
                {
                    steps.extend(more);
                    *compared = compared.or(anchor);
                }
                (_, stage) => stages.push(stage),
            }
        }
        stages
    }

    /// What it makes of a canvas.
    pub fn form(&self, form: Form) -> Form {
        let Size { height, width } = form.canvas;
        match self {
            Stage::Fused(steps, _) => steps.iter().fold(form, |form, step| fused_form(step, form)),
            Stage::Pick(step) => fused_form(step, form),
            Stage::CropBbox => Form { anchor: Anchor::default(), ..form },
            Stage::Tile { down, right } => form.for_grids(height * down, width * right),
            Stage::Pad { by, .. } => form.for_grids(height + 2 * by, width + 2 * by),
            Stage::OfRegions(Regions::Count) => form.for_grids(1, 1),
            Stage::Label | Stage::OfRegions(_) | Stage::Loop { .. } => form,
        }
    }
}

/// A turn as the exchange of rows and columns, if it has that, and what is left of it.
fn exchanged_first(step: &Step) -> impl Iterator<Item = Step> {
    let (first, rest) = match step {
        Step::Turn(Turn::Rot90) => (EXCHANGE, Some(Step::Turn(Turn::FlipH))),
        Step::Turn(Turn::Rot270) => (EXCHANGE, Some(Step::Turn(Turn::FlipV))),
        Step::Turn(Turn::AntiTranspose) => (EXCHANGE, Some(Step::Turn(Turn::Rot180))),
        step => (step.clone(), None),
    };
    std::iter::once(first).chain(rest)
}

/// Rows and columns exchanged: 300 us where a mirrored tray takes 6.
const EXCHANGE: Step = Step::Turn(Turn::Transpose);

/// Is it the exchange of rows and columns alone? Such a stage takes no more steps: many programs begin with it.
fn is_exchange(steps: &[Step]) -> bool {
    *steps == [EXCHANGE]
}

/// What a step of a fused stage makes of a canvas.
pub fn fused_form(step: &Step, form: Form) -> Form {
    match step {
        Step::Turn(turn) => {
            let (exchange, mirror_columns, mirror_rows) = turn.parts();
            let Form { canvas, mut anchor, lanes } = form;
            let canvas = if exchange { canvas.turned() } else { canvas };
            if exchange {
                anchor = Anchor { bottom: anchor.right, right: anchor.bottom };
            }
            let anchor = Anchor { bottom: anchor.bottom ^ mirror_rows, right: anchor.right ^ mirror_columns };
            Form { canvas, anchor, lanes }
        }
        Step::Crop { size, .. } => form.for_grids(size.height, size.width),
        Step::Count(_) => form.for_grids(1, 1),
        Step::CountColours => form.for_grids(1, COLOURS),
        _ => form,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<Stage> {
        Stage::cut(&text.parse().unwrap())
    }

    #[test]
    fn what_moves_cells_by_known_distances_is_one_stage() {
        assert_eq!(cut("flip_v | recolour 1->2 | crop_bbox | flip_h | mask 2").len(), 3);
        assert_eq!(cut("flip_h | compare 0").len(), 1);
        assert_eq!(cut("flip_h | compare 0 | flip_h | compare 1").len(), 2);
        assert_eq!(cut("largest_region")[..], [Stage::Label, Stage::OfRegions(Regions::Largest)]);
        assert!(cut("id").is_empty());
    }

    #[test]
    fn what_turns_begin_with_is_a_stage_that_programs_share() {
        let first = |text: &str| cut(text)[0].clone();
        for text in ["rot90", "rot270 | mask 2", "anti_transpose", "transpose | compare 0"] {
            assert_eq!(first(text), first("transpose"), "{text}");
        }
        assert_eq!(cut("rot90 | recolour 1->2 | crop_bbox | flip_h | mask 2").len(), 4);
        assert_eq!(cut("transpose").len(), 1);
    }

    #[test]
    fn the_corner_is_followed() {
        let form = |text: &str| cut(text).iter().fold(Form::of_inputs(11, 256), |form, stage| stage.form(form));
        let anchor = |bottom, right| Anchor { bottom, right };
        assert_eq!(form("rot90").anchor, anchor(false, true));
        assert_eq!(form("rot90 | rot90").anchor, form("rot180").anchor);
        assert_eq!(form("rot90 | rot270").anchor, anchor(false, false));
        assert_eq!(form("flip_v | transpose").anchor, anchor(false, true));
        assert!(matches!(cut("flip_h | crop 0 0 2 2")[1], Stage::Pick(_)));
        assert_eq!(form("flip_h | crop 0 0 2 7").canvas, Size { height: 3, width: 8 });
        assert_eq!(form("crop 0 0 2 7 | rot90").canvas, Size { height: 8, width: 3 });
        assert_eq!(form("tile 3 1").canvas, Size { height: 30, width: 16 });
        assert_eq!(form("tile 9 9").canvas, Size { height: 30, width: 30 });
        assert_eq!(form("crop 0 0 2 7 | tile 2 2").canvas, Size { height: 8, width: 16 });
    }

    #[test]
    fn canvases_of_nearly_one_size_are_the_same() {
        let form = |text: &str| cut(text).iter().fold(Form::of_inputs(16, 256), |form, stage| stage.form(form));
        assert_eq!(form("pad 1 0"), form("pad 2 0"));
        for text in ["crop 0 0 2 2", "count 1", "count_regions"] {
            assert_eq!(form(text), form("crop 0 0 3 3"), "{text}");
        }
        assert_eq!(form("id").expected(), form("tile 1 2").expected());
        assert_ne!(form("flip_h").expected(), form("tile 1 2 | flip_h").expected());
    }
}
