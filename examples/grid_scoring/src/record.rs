//! Stages as tensors: a stage and the form of its canvas enter, inputs and outputs of a compiled program leave.
//!
//! Everything is done with the bits of words, so that every device gives the same. No position is taken outside of a canvas:
//! what a program can't do with some grid is known from sizes, on the host, and its lanes hold anything. Colours are data of a
//! program, not part of its structure: two programs that differ in nothing else are planned once.

use crate::canvas::{PLANES, code, columns};
use crate::grid::{COLOURS, Size};
use crate::program::{InPlace, Step};
use crate::regions::{beside, first_labels, of_regions, spread_labels};
use crate::rounds::NARROW;
use crate::stage::{Form, Stage, fused_form};
use breakeven::{DType, RecordError, Slice, Tensor, s};

pub(crate) type Result<T> = std::result::Result<T, RecordError>;

/// Inputs in the order in which values are given, and outputs.
pub struct Recorded {
    /// What it reads.
    pub inputs: Vec<Tensor>,
    /// What it makes.
    pub outputs: Vec<Tensor>,
}

/// What is recorded: each is one compiled program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// A stage on canvases of a form; inputs of tasks have canvases of this side.
    Stage(Stage, Form, usize),
    /// Moves parts of grids to canvases of a size.
    Pick(Form, Size),
    /// The same, so many times side by side.
    Tile(Form, Size, usize),
    /// The same, with a frame of so many cells.
    Pad(Form, Size, usize),
    /// What spreading of labels begins with.
    FirstLabels(Form),
    /// Scores of canvases of so many rows, so many of them in a tray.
    Score(usize, usize),
}

impl Key {
    /// Is it a turn for the samples that are left at last?
    pub fn is_narrow(&self) -> bool {
        matches!(self, Key::Stage(Stage::Label | Stage::Loop { .. }, form, _) if form.lanes == NARROW)
    }

    /// Its inputs and outputs.
    pub fn record(&self) -> Result<Recorded> {
        match self {
            Key::Stage(stage, form, side) => record(stage, *form, *side),
            Key::Pick(from, to) => moved(*from, *to, |part| Ok((part, vec![]))),
            Key::Tile(from, to, times) => moved(*from, *to, |part| tiled(part, *from, *times)),
            Key::Pad(from, to, by) => moved(*from, *to, |part| framed(part, *from, *to, *by)),
            Key::FirstLabels(form) => first_labels(&canvas("cells", *form)?, form.canvas),
            Key::Score(height, lanes) => score(*height, *lanes),
        }
    }
}

/// A stage on canvases of this form. Inputs: the canvas, then what it needs beside it (the task's input, what is known of regions).
/// Outputs: the canvas, or what the host goes on with (the edges of a box; a loop also gives which lanes changed).
fn record(stage: &Stage, form: Form, side: usize) -> Result<Recorded> {
    let cells = canvas("cells", form)?;
    let (beside, outputs) = match stage {
        Stage::Fused(steps, None) => (vec![], vec![fused(steps, &cells, form, None)?]),
        Stage::Fused(steps, Some(_)) => {
            let from = Form::of_inputs(side, form.lanes);
            let origin = canvas("origin", from)?;
            let made = fused(steps, &cells, form, Some((&origin, from.canvas)))?;
            (vec![origin], vec![made])
        }
        Stage::CropBbox => (vec![], edges(&cells, form.canvas)?),
        Stage::OfRegions(what) => {
            let known = beside(*what, form)?;
            let made = of_regions(*what, &cells, &known, stage.form(form).canvas)?;
            (vec![known], vec![made])
        }
        Stage::Label => return spread_labels(form),
        Stage::Loop { body, .. } => {
            let (made, changed) = turn(body, &cells)?;
            (vec![], vec![made, changed.max(&[0], false)?])
        }
        // These move cells to places that are known at run time only, and have keys of their own.
        Stage::Pad { .. } | Stage::Pick(_) | Stage::Tile { .. } => (vec![], vec![cells.clone()]),
    };
    Ok(Recorded { inputs: std::iter::once(cells).chain(beside).collect(), outputs })
}

/// Moves parts of grids to the first corner of other canvases: the canvas, the place in memory from which each row comes, how
/// far its columns move and which of them stay enter, for each sample; `then` says what becomes of the part, and what else enters.
fn moved(form: Form, to: Size, then: impl Fn(Tensor) -> Result<(Tensor, Vec<Tensor>)>) -> Result<Recorded> {
    // Rows and lanes are one axis here, because each lane takes rows of its own.
    let cells = Tensor::input("cells", DType::U32, [PLANES, form.canvas.height * form.lanes])?;
    let rows = Tensor::input("rows", DType::I32, [to.height, form.lanes])?;
    let left = Tensor::input("left", DType::U32, [form.lanes])?;
    let stays = Tensor::input("stays", DType::U32, [to.height, form.lanes])?;
    let taken = cells.take(&rows, 1)?;
    let (made, beside) = then(taken.shr(&left)?.and(&stays)?)?;
    Ok(Recorded { inputs: [cells, rows, left, stays].into_iter().chain(beside).collect(), outputs: vec![made] })
}

fn tiled(part: Tensor, form: Form, times: usize) -> Result<(Tensor, Vec<Tensor>)> {
    let width = Tensor::input("width", DType::U32, [form.lanes])?;
    let again = |made: Tensor, number: usize| made.or(part.shl(width.mul(number as u32)?)?);
    Ok(((1..times).try_fold(part.clone(), again)?, vec![width]))
}

fn framed(part: Tensor, form: Form, to: Size, by: usize) -> Result<(Tensor, Vec<Tensor>)> {
    let frame = Tensor::input("frame", DType::U32, [to.height, form.lanes])?;
    let colour = Tensor::input("colour", DType::U32, [PLANES, 1, 1])?;
    let by = Tensor::from_vec(vec![by as u32], [1])?;
    Ok((part.shl(by)?.or(frame.and(&colour)?)?, vec![frame, colour]))
}

/// Scores: a program's canvas, the expected one and its colour counts enter; equal cells and equal colours leave.
fn score(height: usize, lanes: usize) -> Result<Recorded> {
    let input = |name: &str| Tensor::input(name, DType::U32, [PLANES, height, lanes]);
    let (cells, expected) = (input("cells")?, input("expected")?);
    let counts = Tensor::input("counts", DType::U32, [COLOURS, lanes])?;
    let equal = any_plane(&cells)?.and(any_plane(&cells.xor(&expected)?)?.not()?)?;
    let mut colours = Tensor::zeros([lanes], DType::U32)?;
    for (colour, number) in colour_counts(&cells)?.iter().enumerate() {
        colours = colours.add(number.eq(counts.select(0, colour as isize)?)?.cast(DType::U32)?)?;
    }
    Ok(Recorded { inputs: vec![cells, expected, counts], outputs: vec![count(&equal)?, colours] })
}

fn canvas(name: &str, form: Form) -> Result<Tensor> {
    Tensor::input(name, DType::U32, [PLANES, form.canvas.height, form.lanes])
}

/// Numbers 0, 1, .. along the first of so many axes.
pub(crate) fn along(len: usize, axes: usize) -> Result<Tensor> {
    let mut shape = vec![1; axes];
    shape[0] = len as isize;
    Tensor::arange(0u32, len as u32, 1)?.reshape(&shape)
}

/// Each plane's bit of a colour, as words of ones or of none.
pub(crate) fn bits(colour: i32) -> [u32; PLANES] {
    std::array::from_fn(|plane| 0u32.wrapping_sub(code(colour) >> plane & 1))
}

fn as_planes(bits: [u32; PLANES]) -> Result<Tensor> {
    Tensor::from_vec(bits.to_vec(), [PLANES, 1, 1])
}

/// Words with the bits that all planes have.
fn all_planes(words: &Tensor) -> Result<Tensor> {
    let pair = |number| words.select(0, number)?.and(words.select(0, number + 1)?);
    pair(0)?.and(pair(2)?)
}

/// Words with the bits that any plane has: of a canvas, the cells that belong to grids.
pub(crate) fn any_plane(words: &Tensor) -> Result<Tensor> {
    let pair = |number| words.select(0, number)?.or(words.select(0, number + 1)?);
    pair(0)?.or(pair(2)?)
}

/// The cells of a colour, as words.
pub(crate) fn is(cells: &Tensor, colour: i32) -> Result<Tensor> {
    all_planes(&cells.xor(as_planes(bits(colour).map(|bits| !bits))?)?)
}

/// Cells of some places in another colour.
pub(crate) fn set(cells: &Tensor, places: &Tensor, colour: i32) -> Result<Tensor> {
    let bits = as_planes(bits(colour))?;
    cells.xor(&bits)?.and(places.not()?)?.xor(&bits)
}

/// How many cells there are in words, in each sample.
fn count(words: &Tensor) -> Result<Tensor> {
    words.count_ones()?.sum(&[0], false)
}

/// The cells of each of some colours, as words. Colours share what the pairs of their bits have in common.
fn of_colours(cells: &Tensor, colours: impl Iterator<Item = i32>) -> Result<Vec<Tensor>> {
    let planes = (0..PLANES as isize).map(|plane| cells.select(0, plane)).collect::<Result<Vec<_>>>()?;
    let not = planes.iter().map(Tensor::not).collect::<Result<Vec<_>>>()?;
    let pair = |code: u32, first: usize| {
        let bit = |plane: usize| if code >> plane & 1 == 1 { &planes[plane] } else { &not[plane] };
        bit(first).and(bit(first + 1))
    };
    colours.map(code).map(|code| pair(code, 0)?.and(pair(code, 2)?)).collect()
}

/// How many cells there are of each colour, in each sample.
fn colour_counts(cells: &Tensor) -> Result<Vec<Tensor>> {
    of_colours(cells, 0..COLOURS as i32)?.iter().map(count).collect()
}

/// Colours exchanged, all at once: cells of a colour change the bits in which the other one differs.
fn recoloured(cells: &Tensor, pairs: &[(i32, i32)]) -> Result<Tensor> {
    // Few colours are data, as elsewhere; many of them are worth a plan of their own that does less.
    let places = match pairs.len() {
        ..=2 => pairs.iter().map(|(from, _)| is(cells, *from)).collect::<Result<Vec<_>>>()?,
        _ => of_colours(cells, pairs.iter().map(|(from, _)| *from))?,
    };
    pairs.iter().zip(&places).try_fold(cells.clone(), |made, ((from, to), places)| {
        let (from, to) = (bits(*from), bits(*to));
        made.xor(places.and(as_planes(std::array::from_fn(|plane| from[plane] ^ to[plane]))?)?)
    })
}

/// Numbers of each sample, ten at most, as a grid of one row on a canvas: 9 at most each.
pub(crate) fn as_row(numbers: &[Tensor], canvas: Size) -> Result<Tensor> {
    const { assert!(PLANES == 4 && 3 * COLOURS < 32) };
    // Three planes lie in one word one after the other, so that counting is one kernel and spelling another.
    let (mut low, mut high) = (None, None);
    for (cell, number) in numbers.iter().enumerate() {
        let code = number.minimum(9)?.add(code(0))?;
        let apart = code.mul(1u32 | 1 << (COLOURS - 1) | 1 << (2 * COLOURS - 2))?;
        let three = apart.and(1u32 | 1 << COLOURS | 1 << (2 * COLOURS))?.shl(cell as u32)?;
        let last = code.shr(3)?.shl(cell as u32)?;
        low = Some(low.map_or(Ok(three.clone()), |low: Tensor| low.or(&three))?);
        high = Some(high.map_or(Ok(last.clone()), |high: Tensor| high.or(&last))?);
    }
    let nothing = Tensor::zeros([1], DType::U32)?;
    let (low, high) = (low.unwrap_or(nothing.clone()), high.unwrap_or(nothing));
    let of = |planes: [u32; PLANES]| {
        let words =
            planes.into_iter().flat_map(|word| (0..canvas.height).map(move |row| if row == 0 { word } else { 0 }));
        Tensor::from_vec(words.collect(), [PLANES, canvas.height, 1])
    };
    let cells = columns(COLOURS);
    let by = Tensor::from_vec((0..PLANES).map(|plane| (plane % 3 * COLOURS) as u32).collect(), [PLANES, 1, 1])?;
    low.shr(by)?.and(of([cells, cells, cells, 0])?)?.or(high.and(of([0, 0, 0, cells])?)?)
}

fn fused(steps: &[Step], cells: &Tensor, form: Form, origin: Option<(&Tensor, Size)>) -> Result<Tensor> {
    let (mut cells, mut form) = (cells.clone(), form);
    for step in steps {
        cells = match step {
            Step::Turn(turn) => {
                let (exchange, mirror_columns, mirror_rows) = turn.parts();
                let width = if exchange { form.canvas.height } else { form.canvas.width };
                let mut turned = if exchange { exchanged(&cells, form.canvas)? } else { cells };
                if mirror_columns {
                    turned = turned.reverse_bits()?.shr(u32::BITS - width as u32)?;
                }
                if mirror_rows { turned.flip(&[1])? } else { turned }
            }
            Step::InPlace(step) => in_place(step, &cells)?,
            // Where the canvas is too small every grid is, and fails: the lanes hold anything of the right shape.
            Step::Crop { top, left, size } => {
                let height = fused_form(step, form).canvas.height;
                let stays = (0..height).map(|row| if row < size.height { columns(size.width) } else { 0 }).collect();
                let (left, stays) = (Tensor::from_vec(vec![*left as u32], [1])?, Tensor::from_vec(stays, [height, 1])?);
                cut(&cells, *top, height)?.shr(left)?.and(stays)?
            }
            Step::Compare(colour) => {
                let origin = origin.map_or(Ok(cells.clone()), |(origin, from)| fit(origin, from, form))?;
                set(&cells, &any_plane(&cells.xor(&origin)?)?.and(any_plane(&cells)?)?, *colour)?
            }
            Step::Count(colour) => as_row(&[count(&is(&cells, *colour)?)?], fused_form(step, form).canvas)?,
            Step::CountColours => as_row(&colour_counts(&cells)?, fused_form(step, form).canvas)?,
            // The others are stages of their own.
            _ => cells,
        };
        form = fused_form(step, form);
    }
    Ok(cells)
}

/// Rows and columns exchanged: a row collects the bits of one column.
fn exchanged(cells: &Tensor, size: Size) -> Result<Tensor> {
    let of_column = cells.expand_dims(&[1])?.shr(along(size.width, 3)?)?.and(1)?;
    of_column.shl(along(size.height, 2)?)?.sum(&[2], false)
}

/// One turn of a loop, and words that are not 0 where anything has changed.
fn turn(body: &[InPlace], cells: &Tensor) -> Result<(Tensor, Tensor)> {
    match body {
        // Background that becomes background has not changed.
        [InPlace::Spread(colour)] if *colour != 0 => {
            let places = touched(cells, *colour)?;
            Ok((set(cells, &places, *colour)?, places))
        }
        // Whatever goes is taken by the cell below it.
        [InPlace::Fall] => fallen(cells),
        _ => {
            let made = body.iter().try_fold(cells.clone(), |made, step| in_place(step, &made))?;
            let changed = any_plane(&made.xor(cells)?)?;
            Ok((made, changed))
        }
    }
}

/// A step that leaves cells in their place.
fn in_place(step: &InPlace, cells: &Tensor) -> Result<Tensor> {
    match step {
        InPlace::Recolour(pairs) => recoloured(cells, pairs),
        InPlace::Mask(colour) => set(cells, &any_plane(cells)?.and(is(cells, *colour)?.not()?)?, 0),
        InPlace::Spread(colour) => set(cells, &touched(cells, *colour)?, *colour),
        InPlace::Fall => Ok(fallen(cells)?.0),
    }
}

/// Background beside a colour.
fn touched(cells: &Tensor, colour: i32) -> Result<Tensor> {
    let ink = is(cells, colour)?;
    let beside = below(&ink)?.or(above(&ink)?)?.or(ink.shl(1)?.or(ink.shr(1)?)?)?;
    is(cells, 0)?.and(beside)
}

/// Everything that has background below it, one row further down, and the cells that it has left.
fn fallen(cells: &Tensor) -> Result<(Tensor, Tensor)> {
    let background = is(cells, 0)?;
    let goes = any_plane(cells)?.and(background.not()?)?.and(above(&background)?)?;
    let taken = cells.xor(below(cells)?)?.and(below(&goes)?)?;
    let left = cells.xor(as_planes(bits(0))?)?.and(&goes)?;
    Ok((cells.xor(taken.or(left)?)?, goes))
}

/// Each row takes the place of the one below it.
fn below(words: &Tensor) -> Result<Tensor> {
    next_row(words, (1, 0), s(..-1))
}

/// Each row takes the place of the one above it.
fn above(words: &Tensor) -> Result<Tensor> {
    next_row(words, (0, 1), s(1..))
}

fn next_row(words: &Tensor, free: (usize, usize), rows: Slice) -> Result<Tensor> {
    let rank = words.shape().dims().len();
    let (mut widths, mut slices) = (vec![(0, 0); rank], vec![s(..); rank]);
    (widths[rank - 2], slices[rank - 2]) = (free, rows);
    words.pad(&widths, 0u32)?.slice(&slices)
}

/// `len` rows from `start` on; beyond the end there is nothing.
fn cut(cells: &Tensor, start: usize, len: usize) -> Result<Tensor> {
    let extent = cells.shape()[1];
    let (start, end) = (start.min(extent), (start + len).min(extent));
    let part = cells.slice(&[s(..), Slice::between(start as isize, end as isize), s(..)])?;
    part.pad(&[(0, 0), (0, len - (end - start)), (0, 0)], 0u32)
}

/// The same grids, in the same corner, on canvases of another form.
fn fit(cells: &Tensor, from: Size, form: Form) -> Result<Tensor> {
    let Form { canvas: to, anchor, .. } = form;
    let rows = match (anchor.bottom, to.height.checked_sub(from.height)) {
        _ if to.height == from.height => cells.clone(),
        (false, _) => cut(cells, 0, to.height)?,
        (true, None) => cut(cells, from.height - to.height, to.height)?,
        (true, Some(more)) => cells.pad(&[(0, 0), (more, 0), (0, 0)], 0u32)?,
    };
    match (anchor.right, to.width.checked_sub(from.width)) {
        _ if to.width == from.width => Ok(rows),
        (false, _) => rows.and(columns(to.width)),
        (true, None) => rows.shr((from.width - to.width) as u32),
        (true, Some(more)) => rows.shl(more as u32),
    }
}

/// The box around everything but background, for each sample: a bit for each row that has anything, ones below the first column, and
/// a word that ends with the last one.
fn edges(cells: &Tensor, size: Size) -> Result<Vec<Tensor>> {
    let ink = any_plane(cells)?.and(is(cells, 0)?.not()?)?;
    let rows = ink.minimum(1)?.shl(along(size.height, 2)?)?;
    // Ones below the lowest one of a word: all bits where there is none.
    let below = ink.not()?.and(ink.sub(1)?)?;
    Ok(vec![rows.sum(&[0], false)?, below.min(&[0], false)?, ink.max(&[0], false)?])
}
