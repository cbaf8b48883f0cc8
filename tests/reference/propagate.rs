//! How errors travel through a real function: arguments with their bounds enter, the result with its bound leaves.
//!
//! Most functions here are monotone in each argument, so that the corners of the box in which the arguments lie bound
//! the result. The others say what they need instead.

use super::scalar::Real;
use super::{Bounded, bounded, rounded, ulp};

/// What a function does to the error of its arguments.
#[derive(Clone, Copy)]
pub enum Sense {
    /// Monotone in each argument: the corners bound it.
    Monotone,
    /// Constant between jumps: the corners must agree.
    Step,
    /// Jumps where the arguments are equal.
    Equal,
    /// Monotone on either side of a pole where this argument is 0.
    Pole(usize),
    /// As `Pole`, and constant between jumps.
    PoleStep(usize),
    /// Never steeper than this.
    Slope(f64),
    /// `a - b * floor(a / b)`.
    Rem,
    /// The tangent: `1 + t^2` steep.
    Tan,
    /// Powers.
    Pow,
}

/// The sense of an op.
pub fn sense(name: &str) -> Sense {
    match name {
        "floor" | "ceil" | "round" | "trunc" | "sign" | "lt" | "le" | "gt" | "ge" => Sense::Step,
        "eq" | "ne" => Sense::Equal,
        "div" => Sense::Pole(1),
        "reciprocal" | "rsqrt" => Sense::Pole(0),
        "floor_div" => Sense::PoleStep(1),
        "sin" | "cos" => Sense::Slope(1.0),
        // Their steepest point has slope 1.0998 (silu) and 1.129 (gelu).
        "silu" | "gelu" | "gelu_erf" => Sense::Slope(1.13),
        "rem" => Sense::Rem,
        "tan" => Sense::Tan,
        "pow" => Sense::Pow,
        _ => Sense::Monotone,
    }
}

/// The class of a number: functions that jump between classes within the bound are not comparable.
fn class(x: f64) -> u8 {
    if x.is_nan() {
        0
    } else if x == f64::INFINITY {
        1
    } else if x == f64::NEG_INFINITY {
        2
    } else {
        3
    }
}

/// How far `f` moves over the corners of the box, infinite where it changes its class.
fn corners(f: Real, args: &[Bounded], centre: f64) -> f64 {
    let mut point = [0.0; 3];
    let mut worst = 0.0f64;
    for corner in 0..1usize << args.len() {
        for (i, &(x, e)) in args.iter().enumerate() {
            point[i] = if corner >> i & 1 == 1 { x + e } else { x - e };
        }
        let value = f(&point[..args.len()]);
        if class(value) != class(centre) {
            return f64::INFINITY;
        }
        if centre.is_finite() {
            worst = worst.max((value - centre).abs());
        }
    }
    worst
}

/// Does the bound of this argument reach 0?
fn reaches_zero((x, e): Bounded) -> bool {
    e > 0.0 && x.abs() <= e
}

/// `f` of `args`, computed to within `ulps`.
pub fn propagate(f: Real, sense: Sense, ulps: f64, args: &[Bounded]) -> Bounded {
    let mut point = [0.0; 3];
    args.iter().zip(&mut point).for_each(|(a, p)| *p = a.0);
    let centre = f(&point[..args.len()]);
    if args.iter().all(|a| a.1 == 0.0) {
        // numpy's quotient is rounded twice before it is made whole: from 2^22 on it may land on the next integer,
        // and from 2^24 on the integer itself is no f32 any more.
        return match sense {
            Sense::PoleStep(_) if centre.abs() < 4_194_304.0 => (centre, 0.0),
            Sense::PoleStep(_) => bounded(centre, (1.5 * ulp(centre)).max(1.0)),
            // At zeros and infinities functions are exact, signs of zeros included.
            _ if args.iter().all(|a| a.0 == 0.0 || !a.0.is_finite()) && f64::from(centre as f32) == centre => {
                (centre, 0.0)
            }
            _ => rounded(centre, ulps, 0.0),
        };
    }
    if args.iter().any(|a| a.1 == f64::INFINITY) {
        return (centre, f64::INFINITY);
    }
    let all_or_nothing = |moved: f64| if moved == 0.0 { 0.0 } else { f64::INFINITY };
    let moved = match sense {
        Sense::Monotone => corners(f, args, centre),
        Sense::Step => all_or_nothing(corners(f, args, centre)),
        Sense::Equal => {
            let near = (args[0].0 - args[1].0).abs() <= args[0].1 + args[1].1;
            if near { f64::INFINITY } else { 0.0 }
        }
        Sense::Pole(i) | Sense::PoleStep(i) if reaches_zero(args[i]) => f64::INFINITY,
        Sense::Pole(_) => corners(f, args, centre),
        Sense::PoleStep(_) => all_or_nothing(corners(f, args, centre)),
        Sense::Slope(slope) => slope * args[0].1,
        Sense::Rem => {
            let whole: Real = |a| (a[0] / a[1]).floor();
            let quotient = (args[0].0 / args[1].0).floor();
            match corners(whole, args, quotient) {
                0.0 if !reaches_zero(args[1]) => args[0].1 + quotient.abs() * args[1].1,
                _ => f64::INFINITY,
            }
        }
        Sense::Tan => {
            let moved = 2.0 * args[0].1 * (1.0 + centre * centre);
            // Where the tangent may move by more than its own slope allows for, a pole may be near.
            if moved < 0.1 * (1.0 + centre.abs()) { moved } else { f64::INFINITY }
        }
        Sense::Pow => {
            let [(x, ex), (y, ey)] = [args[0], args[1]];
            let certain_base = x - ex > 0.0;
            let certain_exponent = ey == 0.0 && y >= 0.0 && y.fract() == 0.0;
            if certain_base || certain_exponent { corners(f, args, centre) } else { f64::INFINITY }
        }
    };
    match sense {
        Sense::Step | Sense::Equal | Sense::PoleStep(_) if moved == 0.0 => bounded(centre, 0.0),
        _ => rounded(centre, ulps, moved),
    }
}
