//! The text of programs: `rot90 | recolour 3->5 | until_stable { spread 4 }`. Text enters, steps leave, or what is wrong with it
//! and where.

use super::{InPlace, Program, Regions, Step, Turn, Until};
use crate::grid::{COLOURS, MAX_SIDE, Size};
use std::str::FromStr;

/// What is wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// No such step.
    #[error("there is no step `{found}`; steps are {STEPS}")]
    Unknown {
        /// What was read.
        found: String,
    },
    /// A step with other arguments.
    #[error("`{step}`: expected {expected}")]
    Arguments {
        /// What was read.
        step: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Something that a loop can't repeat.
    #[error(
        "`{step}` can't stand in a loop; loops repeat recolour, mask, spread and fall, which leave cells in their place"
    )]
    InLoop {
        /// The step.
        step: String,
    },
    /// Braces that do not match.
    #[error("`{text}`: braces do not match; a loop is `repeat 3 {{ .. }}` or `until_stable {{ .. }}`")]
    Braces {
        /// The program.
        text: String,
    },
    /// A program of a list.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        why: Box<ParseError>,
    },
    /// A list without programs.
    #[error("the list has no program; write one in each line, comments begin with #")]
    Nothing,
    /// More than is kept ready for each bucket of sizes.
    #[error("the program has {found} steps; {MAX_STEPS} are the most")]
    TooLong {
        /// Steps of it.
        found: usize,
    },
}

/// Every step's name.
const STEPS: &str = "id, rot90, rot180, rot270, flip_h, flip_v, transpose, anti_transpose, recolour, mask, spread, fall, crop, \
                     crop_bbox, pad, tile, count, count_colours, compare, largest_region, regions_by_size, count_regions, repeat \
                     and until_stable";
/// Longer programs would take seconds to make ready.
const MAX_STEPS: usize = 64;
/// More turns than this are a mistake.
const MAX_TURNS: u32 = 1_000_000;

/// Programs, one in each line; empty lines and what follows a `#` are skipped.
pub fn parse_list(text: &str) -> Result<Vec<Program>, ParseError> {
    let mut programs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let wrong = |why| ParseError::Line { line: number + 1, why: Box::new(why) };
            programs.push(line.parse().map_err(wrong)?);
        }
    }
    if programs.is_empty() { Err(ParseError::Nothing) } else { Ok(programs) }
}

impl FromStr for Program {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Program, ParseError> {
        let mut steps = Vec::new();
        for part in split(text)? {
            steps.extend(step(part)?);
        }
        if steps.len() > MAX_STEPS {
            return Err(ParseError::TooLong { found: steps.len() });
        }
        Ok(Program { steps })
    }
}

/// The parts between bars that stand in no loop.
fn split(text: &str) -> Result<Vec<&str>, ParseError> {
    let unmatched = || ParseError::Braces { text: text.trim().to_owned() };
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0u32);
    for (at, sign) in text.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1).ok_or_else(unmatched)?,
            '|' if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(unmatched());
    }
    parts.push(text[begin..].trim());
    Ok(parts)
}

/// One step; `id` is none.
fn step(text: &str) -> Result<Option<Step>, ParseError> {
    if let Some((head, rest)) = text.split_once('{') {
        let body = rest.strip_suffix('}').ok_or_else(|| ParseError::Braces { text: text.to_owned() })?;
        return endless_or_counted(head.trim(), body).map(Some);
    }
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or("");
    let rest: Vec<&str> = words.collect();
    let wrong = |expected| ParseError::Arguments { step: text.to_owned(), expected };
    let colour = |word: &str| word.parse().ok().filter(|colour| (0..COLOURS as i32).contains(colour));
    let one_colour = |expected| match rest[..] {
        [word] => colour(word).ok_or_else(|| wrong(expected)),
        _ => Err(wrong(expected)),
    };
    let number = |word: &str, least: usize| word.parse().ok().filter(|n| (least..=MAX_SIDE).contains(n));
    let plain = |step: Step| if rest.is_empty() { Ok(Some(step)) } else { Err(wrong("no argument")) };
    if let Some((_, turn)) = Turn::ALL.iter().find(|(other, _)| *other == name) {
        return plain(Step::Turn(*turn));
    }
    match name {
        "id" if rest.is_empty() => Ok(None),
        "id" => Err(wrong("no argument")),
        "recolour" => {
            const EXPECTED: &str = "pairs of colours such as `3->5 4->0`, each colour to the left once";
            let pair = |word: &&str| word.split_once("->").and_then(|(from, to)| Some((colour(from)?, colour(to)?)));
            let pairs: Option<Vec<(i32, i32)>> = rest.iter().map(pair).collect();
            let once = |pairs: &[(i32, i32)]| (1..pairs.len()).all(|at| pairs[..at].iter().all(|p| p.0 != pairs[at].0));
            let pairs = pairs.filter(|pairs| !pairs.is_empty() && once(pairs)).ok_or_else(|| wrong(EXPECTED))?;
            Ok(Some(Step::InPlace(InPlace::Recolour(pairs))))
        }
        "mask" => Ok(Some(Step::InPlace(InPlace::Mask(one_colour("the colour to keep, 0 to 9")?)))),
        "spread" => match one_colour("the colour that spreads, 1 to 9")? {
            0 => Err(wrong("the colour that spreads, 1 to 9")),
            colour => Ok(Some(Step::InPlace(InPlace::Spread(colour)))),
        },
        "fall" => plain(Step::InPlace(InPlace::Fall)),
        "crop" => {
            let numbers: Option<Vec<usize>> =
                rest.iter().enumerate().map(|(at, word)| number(word, usize::from(at >= 2))).collect();
            match numbers.as_deref() {
                Some(&[top, left, height, width]) => Ok(Some(Step::Crop { top, left, size: Size { height, width } })),
                _ => Err(wrong("top, left, height and width, such as `crop 0 0 3 3`")),
            }
        }
        "crop_bbox" => plain(Step::CropBbox),
        "pad" => match rest[..] {
            [by, ink] => match (number(by, 1), colour(ink)) {
                (Some(by), Some(colour)) => Ok(Some(Step::Pad { by, colour })),
                _ => Err(wrong("the width of the frame and its colour, such as `pad 1 0`")),
            },
            _ => Err(wrong("the width of the frame and its colour, such as `pad 1 0`")),
        },
        "tile" => match rest[..] {
            [down, right] => match (number(down, 1), number(right, 1)) {
                (Some(down), Some(right)) => Ok(Some(Step::Tile { down, right })),
                _ => Err(wrong("how often downwards and to the right, such as `tile 2 2`")),
            },
            _ => Err(wrong("how often downwards and to the right, such as `tile 2 2`")),
        },
        "count" => Ok(Some(Step::Count(one_colour("the colour to count, 0 to 9")?))),
        "count_colours" => plain(Step::CountColours),
        "compare" => Ok(Some(Step::Compare(one_colour("the colour of what differs, 0 to 9")?))),
        "largest_region" => plain(Step::Regions(Regions::Largest)),
        "regions_by_size" => plain(Step::Regions(Regions::BySize)),
        "count_regions" => plain(Step::Regions(Regions::Count)),
        _ => Err(ParseError::Unknown { found: text.to_owned() }),
    }
}

/// A loop, from what stands before its brace and in its braces.
fn endless_or_counted(head: &str, body: &str) -> Result<Step, ParseError> {
    let until = match head.split_whitespace().collect::<Vec<_>>()[..] {
        ["until_stable"] => Until::Stable,
        ["repeat", times] => {
            let times = times.parse().ok().filter(|times| (1..=MAX_TURNS).contains(times));
            let expected = "how often, 1 to 1000000, such as `repeat 3 { fall }`";
            Until::Times(times.ok_or(ParseError::Arguments { step: head.to_owned(), expected })?)
        }
        _ => return Err(ParseError::Unknown { found: head.to_owned() }),
    };
    let mut steps = Vec::new();
    for part in split(body)? {
        match step(part)? {
            Some(Step::InPlace(step)) => steps.push(step),
            Some(_) => return Err(ParseError::InLoop { step: part.to_owned() }),
            None => {}
        }
    }
    if steps.is_empty() {
        return Err(ParseError::Arguments { step: head.to_owned(), expected: "steps to repeat in its braces" });
    }
    if steps.len() > MAX_STEPS {
        return Err(ParseError::TooLong { found: steps.len() });
    }
    Ok(Step::Loop { body: steps, until })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
