//! What lies between two stages: canvases of all trays of a bucket, and how it stands with each sample.

use crate::grid::Size;
use crate::program::Failure;
use crate::regions::RegionWords;
use crate::stage::Form;
use breakeven::Many;
use std::sync::Arc;

/// Why a sample goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// It has no result.
    Failed(Failure),
    /// It has none in time.
    Late,
    /// Its outcome was remembered.
    Known,
}

/// How it stands with a sample: the size of its grid, or why it has none.
pub type State = Result<Size, Stopped>;

/// Canvases of a tray, wherever they lie.
#[derive(Clone)]
pub enum Cells<'a> {
    /// As they were laid out.
    Laid(&'a [u32]),
    /// The first output of a task of a batch.
    Made(Arc<Many>, usize),
    /// Put together on the host.
    Copied(Arc<Vec<u32>>),
    /// No sample of it goes on.
    Nowhere,
}

impl Cells<'_> {
    /// Their words.
    pub fn words(&self) -> breakeven::Result<&[u32]> {
        match self {
            Cells::Laid(cells) => Ok(cells),
            Cells::Made(many, task) => many.slice(*task, 0),
            Cells::Copied(cells) => Ok(cells),
            Cells::Nowhere => Ok(&[]),
        }
    }
}

/// The result of a stage.
#[derive(Clone)]
pub struct Layer<'a> {
    /// Where grids lie.
    pub form: Form,
    /// The grids of each tray.
    pub cells: Arc<[Cells<'a>]>,
    /// Regions of each tray, after labels were spread.
    pub regions: Option<Arc<[RegionWords]>>,
    /// Of each sample.
    pub states: Arc<[State]>,
}

impl Layer<'_> {
    /// Does any sample go on?
    pub fn is_alive(&self) -> bool {
        self.states.iter().any(Result::is_ok)
    }
}

/// The trays with a sample that goes on.
pub fn alive(states: &[State], lanes: usize) -> Vec<usize> {
    states.chunks(lanes).enumerate().filter(|(_, tray)| tray.iter().any(Result::is_ok)).map(|(tray, _)| tray).collect()
}
