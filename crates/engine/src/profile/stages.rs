//! What each of the user's stages took: the merged tree enters, a row for each stage leaves, and one for what is in none.
//!
//! The time of a stage is its own, with the batches in it, but without stages within it: so the rows add up to all threads'
//! time, and none is counted twice.

use super::FrameKind;
use super::merged::{Merged, Node, path};
use super::shares::thousandths;
use serde::Serialize;

/// What one stage took.
///
/// ```
/// use breakeven::profile::Profile;
/// let analysis = Profile::example().analysis()?;
/// let stage = &analysis.stages[0];
/// assert_eq!((stage.name.as_str(), stage.own_ns), ("inline_variables", 69_000_000));
/// assert_eq!(analysis.stages.iter().map(|stage| stage.thousandths).sum::<u64>(), 1000);
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StageRow {
    /// Its name; that of the threads for what is in no stage.
    pub name: String,
    /// The stages in which it lies, and itself.
    pub path: String,
    /// Is it one of the user's stages?
    pub is_stage: bool,
    /// How often it was entered.
    pub count: u64,
    /// Its time with the stages within it.
    pub total_ns: u64,
    /// Its time without them, batches included.
    pub own_ns: u64,
    /// What of its own time was waiting for a device or the queue.
    pub device_wait_ns: u64,
    /// What of its own time was waiting for anything else.
    pub other_wait_ns: u64,
    /// The time of its own batches that a GPU could run.
    pub eligible_ns: u64,
    /// The part of all threads' time that is its own, in thousandths, which add up to 1000.
    pub thousandths: u64,
}

impl StageRow {
    /// Its own time in which it did something or a device did.
    pub fn busy_ns(&self) -> u64 {
        self.own_ns - self.other_wait_ns
    }
}

/// The rows, largest first, and the row of each node of the tree.
pub(super) fn stages(tree: &Merged, eligible: &[Vec<u64>]) -> (Vec<StageRow>, Vec<usize>) {
    let mut rows: Vec<StageRow> = Vec::new();
    let mut of: Vec<usize> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let is_stage = matches!(node.kind, FrameKind::Stage | FrameKind::Wait);
        let row = match node.parent {
            Some(parent) if !is_stage => of[parent],
            _ => {
                rows.push(row(&tree.nodes, at, is_stage));
                rows.len() - 1
            }
        };
        of.push(row);
        let row = &mut rows[row];
        row.own_ns += node.self_ns;
        match node.kind {
            FrameKind::DeviceWait => row.device_wait_ns += node.self_ns,
            kind if kind.is_waiting() => row.other_wait_ns += node.self_ns,
            _ => {}
        }
    }
    for (places, frames) in tree.places.iter().zip(eligible) {
        for (place, ns) in places.iter().zip(frames) {
            rows[of[*place]].eligible_ns += ns;
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| (rows[*b].own_ns, &rows[*a].path).cmp(&(rows[*a].own_ns, &rows[*b].path)));
    let mut now = vec![0; rows.len()];
    order.iter().enumerate().for_each(|(new, old)| now[*old] = new);
    let mut rows: Vec<StageRow> = order.into_iter().map(|old| rows[old].clone()).collect();
    let shares = thousandths(&rows.iter().map(|row| row.own_ns).collect::<Vec<_>>());
    rows.iter_mut().zip(shares).for_each(|(row, share)| row.thousandths = share);
    of.iter_mut().for_each(|row| *row = now[*row]);
    (rows, of)
}

fn row(nodes: &[Node], at: usize, is_stage: bool) -> StageRow {
    let node = &nodes[at];
    StageRow {
        name: node.name.clone(),
        path: path(nodes, at),
        is_stage,
        count: node.count,
        total_ns: node.total_ns,
        own_ns: 0,
        device_wait_ns: 0,
        other_wait_ns: 0,
        eligible_ns: 0,
        thousandths: 0,
    }
}
