//! Fifty programs to score tasks with where no file is given.

use super::{Program, parse_list};

/// A program that never ends, for `--loopers`.
pub const LOOPER: &str = "until_stable { recolour 0->1 1->2 2->3 3->4 4->5 5->6 6->7 7->8 8->9 9->0 }";

/// The programs, one in each line.
const LIST: &str = "\
id
rot90
rot180
rot270
flip_h
flip_v
transpose
anti_transpose
tile 2 2
tile 3 3
tile 1 2
tile 2 1
pad 1 0
pad 1 3
pad 2 0
crop 0 0 3 3
crop 0 0 2 2
crop 1 1 3 3
crop_bbox
crop_bbox | flip_h
crop_bbox | rot90
crop_bbox | tile 1 2
recolour 1->2
recolour 0->5
recolour 3->4 4->3
recolour 6->2
recolour 7->5
recolour 5->0
recolour 8->0
mask 2
mask 1 | crop_bbox
mask 8
mask 5 | recolour 5->1
rot90 | recolour 3->5 | crop_bbox
flip_h | compare 0
flip_v | compare 2
transpose | compare 0
rot180 | compare 3
count_colours
count 1
count 2 | recolour 2->8
repeat 2 { spread 3 }
repeat 3 { spread 1 } | recolour 1->4
repeat 2 { fall }
until_stable { fall }
until_stable { spread 4 }
largest_region
largest_region | crop_bbox
regions_by_size
count_regions
";

/// The built-in programs.
pub fn builtin() -> Vec<Program> {
    // The list is read by a test; what would be wrong with it is never met here.
    parse_list(LIST).unwrap_or_default()
}
