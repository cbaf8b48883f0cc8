//! Made-up tasks: a seed enters, tasks of the same form as real ones leave, the same for the same seed.

use crate::grid::{Grid, MAX_SIDE};
use crate::program::builtin;
use crate::scalar;
use crate::task::{Pair, Task};
use fastrand::Rng;

/// How often an output is looked for that a program really makes before any will do.
const TRIES: usize = 8;

/// `count` tasks. The outputs of most are what one of the built-in programs makes of the inputs, so that there is something
/// to find; those of the others are noise.
///
/// ```
/// let tasks = grid_scoring::generate(3, 7);
/// assert_eq!(tasks, grid_scoring::generate(3, 7));
/// assert_ne!(tasks, grid_scoring::generate(3, 8));
/// ```
pub fn generate(count: usize, seed: u64) -> Vec<Task> {
    let programs = builtin();
    let task = |number: usize| {
        // A generator for each task: the first ones do not depend on how many follow.
        let mut rng = Rng::with_seed(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let program = &programs[rng.usize(..programs.len())];
        let side = most_side(&mut rng);
        let mut pair = || {
            for _ in 0..TRIES {
                let input = grid(&mut rng, side);
                if let Some(Ok(output)) = scalar::result(program, &input) {
                    return Pair { input, output };
                }
            }
            Pair { input: grid(&mut rng, side), output: grid(&mut rng, side) }
        };
        let train = (0..3).map(|_| pair()).collect();
        Task { name: format!("made-{seed}-{number:05}"), train, test: vec![pair()] }
    };
    (0..count).map(task).collect()
}

/// Sizes are spread as in real tasks: most are around 10, few are as large as can be.
fn most_side(rng: &mut Rng) -> usize {
    match rng.u32(..10) {
        0..3 => rng.usize(2..=5),
        3..7 => rng.usize(6..=12),
        7..9 => rng.usize(12..=20),
        _ => rng.usize(20..=MAX_SIDE),
    }
}

/// A background with some rectangles and dots of few colours.
fn grid(rng: &mut Rng, side: usize) -> Grid {
    let mut around = |most: usize| rng.usize(most.saturating_sub(2).max(1)..=most);
    let (height, width) = (around(side), around(side));
    let mut cells = vec![vec![0i32; width]; height];
    for _ in 0..rng.usize(2..=5) {
        let colour = rng.i32(1..10);
        let (top, left) = (rng.usize(..height), rng.usize(..width));
        let (tall, wide) = (rng.usize(1..=height.div_ceil(3)), rng.usize(1..=width.div_ceil(3)));
        for row in cells.iter_mut().skip(top).take(tall) {
            row.iter_mut().skip(left).take(wide).for_each(|cell| *cell = colour);
        }
    }
    for _ in 0..height * width / 12 {
        cells[rng.usize(..height)][rng.usize(..width)] = rng.i32(0..10);
    }
    Grid::build(height, width, |row, column| cells[row][column])
}
