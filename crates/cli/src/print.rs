//! Arrays as numpy prints them: an array enters, text leaves. Large arrays are shown by their edges.

use breakeven::{Array, DType};

/// Above this many elements only the edges are shown, as in numpy.
const THRESHOLD: usize = 1000;
/// How many entries of each end an edge has.
const EDGE: usize = 3;
/// The width of a line.
const LINE: usize = 75;
/// The most digits after the point.
const DIGITS: usize = 8;

/// The array's elements; a single value is a plain number.
pub fn elements(array: &Array) -> String {
    let shape = array.shape();
    let edges = shape.elems() > THRESHOLD;
    if shape.elems() == 0 {
        return "[]".to_owned();
    }
    let mut shown = Vec::new();
    collect(array, &shape, 0, edges, &mut shown);
    let cells = format(array.dtype(), &shown);
    if let (0, Some(&value)) = (shape.rank(), shown.first()) {
        return if array.dtype() == DType::F32 { single(value as f32) } else { cells.concat() };
    }
    let mut out = String::new();
    write(&mut out, &shape, edges, &mut cells.iter(), 0);
    out
}

/// Which entries of an axis are shown, and whether some between them are not.
fn entries(extent: usize, edges: bool) -> (Vec<usize>, bool) {
    if edges && extent > 2 * EDGE {
        ((0..EDGE).chain(extent - EDGE..extent).collect(), true)
    } else {
        ((0..extent).collect(), false)
    }
}

/// The values that are shown, in order. Every one of them is exact in an f64.
fn collect(array: &Array, shape: &[usize], offset: usize, edges: bool, shown: &mut Vec<f64>) {
    let Some((&extent, inner)) = shape.split_first() else {
        let size = array.dtype().size_bytes();
        let bytes = array.as_bytes().get(offset * size..(offset + 1) * size).unwrap_or(&[0; 4]);
        let bits = bytes.try_into().map_or(u32::from(bytes[0]), u32::from_ne_bytes);
        shown.push(breakeven::Scalar::from_bits(array.dtype(), bits).to_f64());
        return;
    };
    let stride: usize = inner.iter().product();
    for entry in entries(extent, edges).0 {
        collect(array, inner, offset + entry * stride, edges, shown);
    }
}

/// Brackets, one row a line, blank lines between matrices.
fn write<'c>(
    out: &mut String,
    shape: &[usize],
    edges: bool,
    cells: &mut impl Iterator<Item = &'c String>,
    depth: usize,
) {
    let Some((&extent, inner)) = shape.split_first() else { return };
    let (entries, gap) = entries(extent, edges);
    out.push('[');
    if inner.is_empty() {
        let mut column = depth + 1;
        for at in 0..entries.len() {
            let mut parts = Vec::new();
            if gap && at == EDGE {
                parts.push("...");
            }
            parts.extend(cells.next().map(String::as_str));
            for part in parts {
                let first = out.ends_with('[');
                // Leave room for the closing brackets, as numpy does.
                if !first && column + 1 + part.len() > LINE - (depth + 1) {
                    out.truncate(out.trim_end_matches(' ').len());
                    out.push('\n');
                    out.push_str(&" ".repeat(depth + 1));
                    column = depth + 1;
                } else if !first {
                    out.push(' ');
                    column += 1;
                }
                out.push_str(part);
                column += part.len();
            }
        }
    } else {
        let between = "\n".repeat(inner.len()) + &" ".repeat(depth + 1);
        for at in 0..entries.len() {
            if at > 0 {
                out.push_str(&between);
            }
            if gap && at == EDGE {
                out.push_str("...");
                out.push_str(&between);
            }
            write(out, inner, edges, cells, depth + 1);
        }
    }
    out.push(']');
}

/// All cells in one width.
fn format(dtype: DType, values: &[f64]) -> Vec<String> {
    let cells: Vec<String> = match dtype {
        DType::Bool => values.iter().map(|&v| (if v != 0.0 { "True" } else { "False" }).to_owned()).collect(),
        DType::I32 | DType::U32 => values.iter().map(|v| format!("{v:.0}")).collect(),
        DType::F32 => floats(values),
    };
    let width = cells.iter().map(String::len).max().unwrap_or(0);
    cells.into_iter().map(|cell| format!("{cell:>width$}")).collect()
}

/// A float on its own: as Python writes it, which is a little different from an array's.
fn single(value: f32) -> String {
    let exponent = value != 0.0 && !(1e-4..1e16).contains(&value.abs());
    match shortest(value, exponent) {
        Some((mantissa, power)) if mantissa.contains('.') || exponent => mantissa + &power,
        Some((mantissa, _)) => mantissa + ".0",
        None => special(value).to_owned(),
    }
}

/// Shortest digits, points aligned; with exponents where the values are far apart.
fn floats(values: &[f64]) -> Vec<String> {
    let sizes = || values.iter().map(|v| v.abs()).filter(|v| v.is_finite() && *v > 0.0);
    let (largest, smallest) = (sizes().fold(0.0, f64::max), sizes().fold(f64::INFINITY, f64::min));
    let exponents = largest >= 1e8 || largest > 0.0 && (smallest < 1e-4 || largest / smallest > 1e3);
    let fraction = |value: &f64| {
        let (mantissa, _) = shortest(*value as f32, exponents)?;
        Some(mantissa.split_once('.')?.1.len().min(DIGITS))
    };
    let digits = values.iter().filter_map(fraction).max().unwrap_or(0);
    values.iter().map(|&value| aligned(value as f32, digits, exponents)).collect()
}

/// A float with `digits` places after its point, of which those that are not needed are blank.
fn aligned(value: f32, digits: usize, exponents: bool) -> String {
    if !value.is_finite() {
        return special(value).to_owned();
    }
    let point = if digits == 0 { "." } else { "" };
    if exponents {
        // Mantissas keep their digits full, as numpy has it.
        let text = format!("{value:.digits$e}");
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{mantissa}{point}{}", exponent(power));
    }
    let text = match shortest(value, false) {
        Some((text, _)) if text.split_once('.').is_none_or(|(_, fraction)| fraction.len() <= digits) => text,
        _ => format!("{value:.digits$}"),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}.{:<digits$}", fraction.trim_end_matches('0'))
}

/// The fewest digits that are read back as the same value, and the exponent; `None` for what has no digits.
fn shortest(value: f32, with_exponent: bool) -> Option<(String, String)> {
    if !value.is_finite() {
        return None;
    }
    if !with_exponent {
        return Some((format!("{value}"), String::new()));
    }
    let text = format!("{value:e}");
    let (mantissa, power) = text.split_once('e')?;
    Some((mantissa.to_owned(), exponent(power)))
}

/// At least two digits and always a sign, as C prints it.
fn exponent(power: &str) -> String {
    let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |digits| ('-', digits));
    format!("e{sign}{digits:0>2}")
}

fn special(value: f32) -> &'static str {
    match value {
        f32::INFINITY => "inf",
        f32::NEG_INFINITY => "-inf",
        _ => "nan",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven::{Engine, Tensor};

    #[track_caller]
    fn check(tensor: Tensor, expected: &str) {
        let arrays = Engine::new().unwrap().run(&[&tensor]).unwrap();
        assert_eq!(elements(&arrays[0]), expected);
    }

    fn floats(values: &[f32], shape: &[usize]) -> Tensor {
        Tensor::from_slice(values, shape).unwrap()
    }

    #[test]
    fn small_arrays_are_shown_whole() {
        check(floats(&[1.0, 2.5, -3.0, 0.125], &[2, 2]), "[[ 1.     2.5  ]\n [-3.     0.125]]");
        check(floats(&[1.0, f32::NAN, f32::NEG_INFINITY], &[3]), "[  1.  nan -inf]");
        check(floats(&[1e-6, 1.0], &[2]), "[1.e-06 1.e+00]");
        check(floats(&[1.5e10, -2.25e9], &[2]), "[ 1.50e+10 -2.25e+09]");
        check(floats(&[1.0 / 3.0], &[1, 1]), "[[0.33333334]]");
        check(floats(&[0.023_769_675, 0.5], &[2]), "[0.02376967 0.5       ]");
        check(floats(&[0.000123456, 100.0], &[2]), "[1.23456e-04 1.00000e+02]");
        check(floats(&[1.0, 2.0], &[2, 1, 1]), "[[[1.]]\n\n [[2.]]]");
        check(Tensor::from_slice(&[1i32, -20, 300], [3]).unwrap(), "[  1 -20 300]");
        check(Tensor::from_slice(&[true, false], [2]).unwrap(), "[ True False]");
    }

    #[test]
    fn a_single_value_is_a_number() {
        check(Tensor::scalar(2.5f32), "2.5");
        check(Tensor::scalar(2.0f32), "2.0");
        check(Tensor::scalar(1.5e-7f32), "1.5e-07");
        check(Tensor::scalar(f32::NAN), "nan");
        check(Tensor::scalar(-0.0f32), "-0.0");
        check(Tensor::scalar(0.028422242f32), "0.028422242");
        check(Tensor::scalar(-7i32), "-7");
        check(Tensor::scalar(u32::MAX), "4294967295");
        check(Tensor::scalar(true), "True");
    }

    #[test]
    fn large_arrays_are_shown_by_their_edges() {
        check(Tensor::arange(0i32, 2000, 1).unwrap(), "[   0    1    2 ... 1997 1998 1999]");
        let matrix = Tensor::arange(0i32, 10_000, 1).unwrap().reshape(&[5000, 2]).unwrap();
        let expected = "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [9994 9995]\n [9996 9997]\n [9998 9999]]";
        check(matrix, expected);
    }
}
