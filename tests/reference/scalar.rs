//! One element at a time: an op's name enters, a plain function leaves that computes it in f64 or i64.
//!
//! Only std and libm are asked, never the library. The rows of the op table are looked up by name, so a row that is
//! missing here is found by the test that walks the table.

use breakeven::DType;

/// A function of up to three real numbers.
pub type Real = fn(&[f64]) -> f64;
/// A function of up to three integers, exact modulo 2^32.
pub type Int = fn(&[i64]) -> i64;

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// numpy's `floor_divide` of floats.
fn floor_div(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let m = a % b;
    let mut quotient = (a - m) / b;
    if m != 0.0 && (b < 0.0) != (m < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 { 0f64.copysign(a / b) } else { quotient.round() }
}

/// numpy's `remainder` of floats: the sign is the divisor's.
fn rem(a: f64, b: f64) -> f64 {
    let m = a % b;
    if m == 0.0 {
        0f64.copysign(b)
    } else if (b < 0.0) != (m < 0.0) && !m.is_nan() {
        m + b
    } else {
        m
    }
}

fn sign(x: f64) -> f64 {
    match x {
        x if x > 0.0 => 1.0,
        x if x < 0.0 => -1.0,
        x if x.is_nan() => x,
        _ => 0.0,
    }
}

/// The gate `x / (1 + e^-v)` with its limit, where the formula would say inf / inf.
fn gate(x: f64, v: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-v).exp()) }
}

/// The real function of an op, if it has one.
pub fn real(name: &str) -> Option<Real> {
    Some(match name {
        "add" => |a| a[0] + a[1],
        "sub" => |a| a[0] - a[1],
        "mul" => |a| a[0] * a[1],
        "div" => |a| a[0] / a[1],
        "floor_div" => |a| floor_div(a[0], a[1]),
        "rem" => |a| rem(a[0], a[1]),
        "pow" => |a| a[0].powf(a[1]),
        "maximum" => |a| if a[0].is_nan() || a[1].is_nan() { f64::NAN } else { a[0].max(a[1]) },
        "minimum" => |a| if a[0].is_nan() || a[1].is_nan() { f64::NAN } else { a[0].min(a[1]) },
        "neg" => |a| -a[0],
        "abs" => |a| a[0].abs(),
        "sign" => |a| sign(a[0]),
        "square" => |a| a[0] * a[0],
        "sqrt" => |a| a[0].sqrt(),
        "rsqrt" => |a| 1.0 / a[0].sqrt(),
        "reciprocal" => |a| 1.0 / a[0],
        "exp" => |a| a[0].exp(),
        "expm1" => |a| a[0].exp_m1(),
        "log" => |a| a[0].ln(),
        "log2" => |a| a[0].log2(),
        "log1p" => |a| a[0].ln_1p(),
        "sin" => |a| a[0].sin(),
        "cos" => |a| a[0].cos(),
        "tan" => |a| a[0].tan(),
        "tanh" => |a| a[0].tanh(),
        "erf" => |a| libm::erf(a[0]),
        "floor" => |a| a[0].floor(),
        "ceil" => |a| a[0].ceil(),
        "round" => |a| a[0].round_ties_even(),
        "trunc" => |a| a[0].trunc(),
        "sigmoid" => |a| 1.0 / (1.0 + (-a[0]).exp()),
        "silu" => |a| gate(a[0], a[0]),
        "gelu" => |a| gate(a[0], 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (a[0] + 0.044715 * a[0].powi(3))),
        "gelu_erf" => |a| match a[0] {
            f64::NEG_INFINITY => -0.0,
            x => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        },
        "softplus" => |a| if a[0].is_nan() { a[0] } else { a[0].max(0.0) + (-a[0].abs()).exp().ln_1p() },
        "eq" => |a| truth(a[0] == a[1]),
        "ne" => |a| truth(a[0] != a[1]),
        "lt" => |a| truth(a[0] < a[1]),
        "le" => |a| truth(a[0] <= a[1]),
        "gt" => |a| truth(a[0] > a[1]),
        "ge" => |a| truth(a[0] >= a[1]),
        _ => return None,
    })
}

/// `base^exponent` modulo 2^32; a negative exponent gives the true power rounded towards zero.
fn pow(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, e) => {
            if e % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, e) if e < 0 => 0,
        (b, e) => {
            let (mut result, mut square, mut left) = (1u32, b as u32, e);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            i64::from(result)
        }
    }
}

/// The integer function of an op on lanes of `dtype`, if it has one.
pub fn int(name: &str, dtype: DType) -> Option<Int> {
    let not: Int = if dtype == DType::Bool { |a| 1 - a[0] } else { |a| !a[0] };
    let or: Int = |a| a[0] | a[1];
    Some(match name {
        "add" if dtype == DType::Bool => or,
        "add" => |a| a[0] + a[1],
        "sub" => |a| a[0] - a[1],
        "mul" => |a| a[0].wrapping_mul(a[1]),
        "floor_div" => {
            |a| if a[1] == 0 { 0 } else { a[0].div_euclid(a[1]) - i64::from(a[1] < 0 && a[0].rem_euclid(a[1]) != 0) }
        }
        "rem" => |a| match (a[0], a[1]) {
            (_, 0) => 0,
            (x, y) => {
                let r = x % y;
                if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
            }
        },
        "pow" => |a| pow(a[0], a[1]),
        "maximum" => |a| a[0].max(a[1]),
        "minimum" => |a| a[0].min(a[1]),
        "neg" => |a| -a[0],
        "abs" => |a| a[0].abs(),
        "sign" => |a| a[0].signum(),
        "square" => |a| a[0].wrapping_mul(a[0]),
        "floor" | "ceil" | "round" | "trunc" => |a| a[0],
        "eq" => |a| i64::from(a[0] == a[1]),
        "ne" => |a| i64::from(a[0] != a[1]),
        "lt" => |a| i64::from(a[0] < a[1]),
        "le" => |a| i64::from(a[0] <= a[1]),
        "gt" => |a| i64::from(a[0] > a[1]),
        "ge" => |a| i64::from(a[0] >= a[1]),
        "and" => |a| a[0] & a[1],
        "or" => or,
        "xor" => |a| a[0] ^ a[1],
        "not" => not,
        // numpy's: a count that is negative or beyond 31 leaves nothing but the sign.
        "shl" => |a| if (0..32).contains(&a[1]) { a[0] << a[1] } else { 0 },
        "shr" => |a| if (0..32).contains(&a[1]) { a[0] >> a[1] } else { a[0].signum().min(0) },
        "count_ones" => |a| i64::from(a[0].unsigned_abs().count_ones()),
        "reverse_bits" => |a| (0..32).filter(|bit| a[0] >> bit & 1 == 1).map(|bit| 1 << (31 - bit)).sum(),
        _ => return None,
    })
}

/// What 32 bits of `dtype` keep of an integer.
pub fn wrap(value: i64, dtype: DType) -> f64 {
    match dtype {
        DType::Bool => truth(value != 0),
        DType::I32 => f64::from(value as i32),
        DType::U32 => f64::from(value as u32),
        DType::F32 => f64::from(value as f32),
    }
}

/// One value cast from `from` to `to`: floats truncate and saturate, NaN is 0, integers wrap.
pub fn cast(value: f64, from: DType, to: DType) -> f64 {
    match (from, to) {
        (DType::F32, DType::F32) => value,
        (_, DType::Bool) => truth(value != 0.0),
        (DType::F32, DType::I32) => f64::from(value as i32),
        (DType::F32, DType::U32) => f64::from(value as u32),
        _ => wrap(value as i64, to),
    }
}
