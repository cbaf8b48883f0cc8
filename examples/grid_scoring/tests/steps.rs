//! Every step against the plain reference, with random grids, on the device under test (`BREAKEVEN_TEST_DEVICE`).

use breakeven_tests::device;
use grid_scoring::{Grid, Limits, Outcome, Pair, Program, builtin, generate, scalar, score_all};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Slow devices are not late here.
const PATIENT: Limits = Limits { sample: Duration::from_secs(600), run: Duration::from_secs(3600) };

fn agree(programs: &[Program], samples: &[&Pair]) {
    let run = score_all(&device::engine(), programs, samples, PATIENT, &()).unwrap();
    for (number, outcome) in run.outcomes.iter().enumerate() {
        let (program, sample) = (&programs[number / samples.len()], samples[number % samples.len()]);
        let expected = scalar::score(program, sample, Instant::now() + Duration::from_secs(60));
        assert_eq!(*outcome, expected, "{program}\n{:?}", sample.input.rows());
    }
}

/// Steps of every kind, alone and after others that move grids to other corners and canvases.
const PROGRAMS: &str = "\
rot90\nrot180\nrot270\nflip_h\nflip_v\ntranspose\nanti_transpose\nrecolour 1->2 2->1 0->9\nmask 0\nmask 7\nspread 5\nfall
crop 0 0 1 1\ncrop 1 2 3 2\ncrop 0 0 12 5\ncrop_bbox\npad 1 0\npad 3 6\ntile 1 1\ntile 2 1\ntile 1 3\ntile 6 5
count 0\ncount 9\ncount_colours\ncompare 4\nlargest_region\nregions_by_size\ncount_regions
repeat 3 { spread 2 }\nuntil_stable { fall }\nuntil_stable { spread 1 | spread 2 }\nrepeat 5 { recolour 1->2 2->3 3->1 }
flip_h | crop 0 0 2 2\nrot90 | crop 1 0 2 3 | rot270\nflip_v | tile 2 2\nrot180 | pad 2 3\ntranspose | crop_bbox | flip_h
rot90 | compare 3\nflip_h | compare 3 | flip_h | compare 5\nflip_v | fall\nrot180 | spread 3 | rot90
crop 0 0 2 3 | rot90 | tile 3 2\ncrop 0 0 3 3 | largest_region\ncrop 0 0 3 3 | until_stable { spread 1 }\npad 1 1 | count_regions
crop_bbox | tile 2 2 | crop_bbox\ncrop_bbox | compare 1\nrot90 | largest_region | crop_bbox | flip_v\ntile 2 2 | regions_by_size
pad 2 0 | rot90 | repeat 2 { fall } | crop_bbox\ncount_colours | flip_h\ncount 3 | pad 1 3 | count_regions\ntile 3 3 | crop 4 4 5 5";

fn programs() -> Vec<Program> {
    let mut list = grid_scoring::parse_list(PROGRAMS).unwrap();
    list.extend(builtin());
    list
}

fn any_grid() -> impl Strategy<Value = Grid> {
    let side = prop_oneof![4 => 1..=6usize, 3 => 7..=12usize, 2 => 13..=19usize, 1 => 20..=30usize];
    // Few colours, so that there are regions and symmetry.
    let colours = prop_oneof![Just(vec![0, 1]), Just(vec![0, 0, 1, 2, 3]), Just((0..10).collect::<Vec<i64>>())];
    (side.clone(), side, colours).prop_flat_map(|(height, width, colours)| {
        let row = prop::collection::vec(prop::sample::select(colours), width);
        prop::collection::vec(row, height).prop_map(|rows| Grid::from_rows(&rows).unwrap())
    })
}

proptest! {
    // Each case is a few thousand scorings.
    #![proptest_config(ProptestConfig { cases: if device::api().is_some() { 1 } else { 6 }, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_step_is_as_the_reference_has_it(grids in prop::collection::vec((any_grid(), any_grid(), any::<bool>()), 1..60)) {
        let programs = programs();
        let pairs: Vec<Pair> = grids.into_iter().enumerate().map(|(number, (input, other, solved))| {
            let made = scalar::result(&programs[number % programs.len()], &input);
            let output = match made {
                Some(Ok(output)) if solved => output,
                _ => other,
            };
            Pair { input, output }
        }).collect();
        agree(&programs, &pairs.iter().collect::<Vec<_>>());
    }
}

#[test]
fn thousands_of_scorings_are_as_the_reference_has_them() {
    let tasks = generate(if device::api().is_some() { 40 } else { 150 }, 11);
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    agree(&builtin(), &samples);
}

#[test]
fn grids_of_the_largest_and_the_smallest_size() {
    let of = |side: usize, colour: i64| Grid::from_rows(&vec![vec![colour; side]; side]).unwrap();
    // A spiral: labels and colours go the longest way.
    let spiral = |side: usize| {
        let wall = |row: usize, column: usize| row % 2 == 1 && column != if row % 4 == 1 { side - 1 } else { 0 };
        let row = |row: usize| (0..side).map(|column| i64::from(!wall(row, column))).collect();
        Grid::from_rows(&(0..side).map(row).collect::<Vec<Vec<i64>>>()).unwrap()
    };
    let grids =
        [of(1, 0), of(1, 9), of(30, 0), of(30, 9), of(10, 1), of(11, 1), of(16, 1), of(17, 1), spiral(30), spiral(9)];
    let pairs: Vec<Pair> = grids.iter().map(|grid| Pair { input: grid.clone(), output: grid.clone() }).collect();
    agree(&programs(), &pairs.iter().collect::<Vec<_>>());
}

#[test]
fn what_fails_does_not_disturb_its_neighbours() {
    let grid = |rows: &[Vec<i64>]| Grid::from_rows(rows).unwrap();
    let pair = |input: Grid| Pair { output: input.clone(), input };
    let pairs =
        [pair(grid(&[vec![1, 2], vec![3, 4]])), pair(grid(&[vec![0, 0], vec![0, 0]])), pair(grid(&[vec![5, 5]]))];
    let samples: Vec<&Pair> = pairs.iter().collect();
    let programs: Vec<Program> = ["crop 0 0 2 2", "crop_bbox", "tile 15 15"].map(|text| text.parse().unwrap()).into();
    let run = score_all(&device::engine(), &programs, &samples, PATIENT, &()).unwrap();
    let failed: Vec<bool> = run.outcomes.iter().map(|outcome| matches!(outcome, Outcome::Failed(_))).collect();
    assert_eq!(failed, [false, false, true, false, true, false, false, false, false]);
    assert!(matches!(run.outcomes[0], Outcome::Scored(score) if score.exact));
    assert!(matches!(run.outcomes[5], Outcome::Scored(score) if score.exact));
}
