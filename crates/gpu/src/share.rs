//! Which tasks share dispatches: tasks that run the same kernels enter, groups of them leave.
//!
//! A dispatch has as many workgroups for each of its tasks as the largest of them needs. Those of smaller tasks find
//! nothing to do, which is not free where software starts them; another dispatch is not free anywhere.

use crate::stage::Stage;

/// Workgroups without work that cost about what another dispatch does: 20 us on software Vulkan.
const IDLE: u64 = 64;

/// Splits tasks so that no dispatch has more than about a quarter of its workgroups idle. Tasks of one size stay together.
pub(crate) fn split<'a>(mut tasks: Vec<usize>, stages: impl Fn(usize) -> &'a [Stage]) -> Vec<Vec<usize>> {
    let sizes = |task: usize| stages(task).iter().map(|stage| stage.units);
    let same = |a: &usize, b: &usize| sizes(*a).eq(sizes(*b));
    if tasks.windows(2).all(|pair| same(&pair[0], &pair[1])) {
        return vec![tasks];
    }
    tasks.sort_by(|a, b| sizes(*a).cmp(sizes(*b)));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut grids: Vec<Grid> = Vec::new();
    for run in tasks.chunk_by(same) {
        let with = |before: &Grid, stage: &Stage| before.with(stage, run.len() as u64);
        let joined: Vec<Grid> = grids.iter().zip(stages(run[0])).map(|(grid, stage)| with(grid, stage)).collect();
        match groups.last_mut() {
            Some(group) if fit(&joined, stages(run[0])) => {
                group.extend_from_slice(run);
                grids = joined;
            }
            _ => {
                groups.push(run.to_vec());
                grids = stages(run[0]).iter().map(|stage| with(&Grid::default(), stage)).collect();
            }
        }
    }
    groups
}

/// The units of a dispatch.
#[derive(Clone, Copy, Default)]
struct Grid {
    tasks: u64,
    /// Units of the largest task.
    most: u64,
    /// Units of all tasks.
    all: u64,
}

impl Grid {
    fn with(&self, stage: &Stage, tasks: u64) -> Grid {
        Grid { tasks: self.tasks + tasks, most: self.most.max(stage.units), all: self.all + tasks * stage.units }
    }
}

fn fit(grids: &[Grid], stages: &[Stage]) -> bool {
    let (mut launched, mut needed) = (0, 0);
    for (grid, stage) in grids.iter().zip(stages) {
        let step = u64::from(stage.turns.group_units(grid.all).max(1));
        launched += grid.tasks * grid.most.div_ceil(step);
        // Each task may have a last workgroup that is not full.
        needed += grid.all.div_ceil(step) * 5 / 4 + grid.tasks + IDLE;
    }
    launched <= needed
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
