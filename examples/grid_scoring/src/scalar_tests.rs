use super::*;

fn grid(rows: &[&[i64]]) -> Grid {
    Grid::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).unwrap()
}

fn check(program: &str, input: &[&[i64]], expected: &[&[i64]]) {
    let made = result(&program.parse().unwrap(), &grid(input)).unwrap();
    assert_eq!(made, Ok(grid(expected)), "{program}");
}

fn fails(program: &str, input: &[&[i64]]) -> Failure {
    result(&program.parse().unwrap(), &grid(input)).unwrap().unwrap_err()
}

#[test]
fn turns() {
    let input: &[&[i64]] = &[&[1, 2, 3], &[4, 5, 6]];
    check("id", input, input);
    check("rot90", input, &[&[4, 1], &[5, 2], &[6, 3]]);
    check("rot180", input, &[&[6, 5, 4], &[3, 2, 1]]);
    check("rot270", input, &[&[3, 6], &[2, 5], &[1, 4]]);
    check("flip_h", input, &[&[3, 2, 1], &[6, 5, 4]]);
    check("flip_v", input, &[&[4, 5, 6], &[1, 2, 3]]);
    check("transpose", input, &[&[1, 4], &[2, 5], &[3, 6]]);
    check("anti_transpose", input, &[&[6, 3], &[5, 2], &[4, 1]]);
}

#[test]
fn colours_sizes_and_counts() {
    check("recolour 1->2 2->1", &[&[1, 2, 3]], &[&[2, 1, 3]]);
    check("mask 2", &[&[1, 2, 0]], &[&[0, 2, 0]]);
    check("crop 0 1 1 2", &[&[1, 2, 3], &[4, 5, 6]], &[&[2, 3]]);
    check("crop_bbox", &[&[0, 0, 0], &[0, 7, 0], &[0, 0, 8]], &[&[7, 0], &[0, 8]]);
    check("pad 1 4", &[&[5]], &[&[4, 4, 4], &[4, 5, 4], &[4, 4, 4]]);
    check("tile 2 3", &[&[1, 2]], &[&[1, 2, 1, 2, 1, 2], &[1, 2, 1, 2, 1, 2]]);
    check("count 1", &[&[1, 1, 2]], &[&[2]]);
    check("count_colours", &[&[1, 1, 9]], &[&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1]]);
    check("flip_h | compare 5", &[&[1, 2, 1], &[1, 2, 3]], &[&[1, 2, 1], &[5, 2, 5]]);
}

#[test]
fn loops() {
    check("spread 3", &[&[0, 3, 0, 1], &[0, 0, 0, 0]], &[&[3, 3, 3, 1], &[0, 3, 0, 0]]);
    check("repeat 2 { spread 3 }", &[&[3, 0, 0, 0]], &[&[3, 3, 3, 0]]);
    check("until_stable { spread 3 }", &[&[3, 0, 1, 0], &[0, 0, 1, 0]], &[&[3, 3, 1, 0], &[3, 3, 1, 0]]);
    check("fall", &[&[1], &[0], &[0]], &[&[0], &[1], &[0]]);
    check("until_stable { fall }", &[&[1], &[2], &[0], &[3], &[0]], &[&[0], &[0], &[1], &[2], &[3]]);
}

#[test]
fn regions_of_one_colour() {
    let input: &[&[i64]] = &[&[1, 1, 0, 2], &[0, 1, 2, 2], &[3, 0, 0, 1]];
    check("count_regions", input, &[&[4]]);
    check("regions_by_size", input, &[&[3, 3, 0, 3], &[0, 3, 3, 3], &[1, 0, 0, 1]]);
    // Of two that are as large the first one stays.
    check("largest_region", input, &[&[1, 1, 0, 0], &[0, 1, 0, 0], &[0, 0, 0, 0]]);
    check("largest_region", &[&[0, 0]], &[&[0, 0]]);
}

#[test]
fn what_has_no_result_fails() {
    assert_eq!(fails("crop 0 0 2 2", &[&[1, 1]]), Failure::CropRange);
    assert_eq!(fails("crop_bbox", &[&[0, 0]]), Failure::NothingToCrop);
    assert_eq!(fails("tile 31 1 | rot90".replace("31", "30").as_str(), &[&[1], &[1]]), Failure::TooLarge);
    assert_eq!(fails("pad 15 0", &[&[1]]), Failure::TooLarge);
    assert_eq!(fails("rot90 | compare 1", &[&[1, 2]]), Failure::OtherSize);
}

#[test]
fn a_loop_without_end_is_late() {
    let pair = Pair { input: grid(&[&[1]]), output: grid(&[&[1]]) };
    let looper = crate::program::LOOPER.parse().unwrap();
    assert_eq!(score(&looper, &pair, Instant::now()), Outcome::Late);
}
