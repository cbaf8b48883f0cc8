//! Elementwise: an op of the table and its arguments enter; they are promoted, broadcast and combined one by one.

use super::propagate::{propagate, sense};
use super::{Bounded, RefArray, Result, bounded, elems, for_each_index, free_zero, scalar};
use breakeven::{DType, Op};

/// The dtypes that an op is defined for, from numpy's point of view.
#[derive(Clone, Copy, PartialEq)]
enum Domain {
    /// f32 only; everything else is cast to it.
    Float,
    /// Everything.
    Any,
    /// Everything but bool.
    Number,
    /// Everything but f32.
    Bits,
    /// i32 and u32.
    Integer,
}

fn domain(name: &str) -> Option<Domain> {
    Some(match name {
        "div" | "sqrt" | "rsqrt" | "reciprocal" | "exp" | "expm1" | "log" | "log2" | "log1p" | "sin" | "cos"
        | "tan" | "tanh" | "erf" | "sigmoid" | "silu" | "gelu" | "gelu_erf" | "softplus" => Domain::Float,
        "add" | "mul" | "maximum" | "minimum" | "abs" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" => Domain::Any,
        "sub" | "floor_div" | "rem" | "pow" | "neg" | "sign" | "square" | "floor" | "ceil" | "round" | "trunc" => {
            Domain::Number
        }
        "and" | "or" | "xor" | "not" => Domain::Bits,
        "shl" | "shr" | "count_ones" | "reverse_bits" => Domain::Integer,
        _ => return None,
    })
}

/// The common dtype: bool gives way to numbers, integers to f32; i32 and u32 have none.
pub fn promote(dtypes: &[DType]) -> Result<DType> {
    let has = |dtype| dtypes.contains(&dtype);
    match (has(DType::F32), has(DType::I32), has(DType::U32)) {
        (_, true, true) if dtypes.len() == 2 => Err("i32 and u32".into()),
        (true, ..) => Ok(DType::F32),
        (_, true, _) => Ok(DType::I32),
        (_, _, true) => Ok(DType::U32),
        _ => Ok(DType::Bool),
    }
}

/// The shape that all broadcast to.
pub fn broadcast_shape(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    (0..rank)
        .map(|axis| {
            let mut extent = 1;
            for shape in shapes {
                let Some(at) = (axis + shape.len()).checked_sub(rank) else { continue };
                match shape[at] {
                    1 => {}
                    n if extent == 1 || extent == n => extent = n,
                    _ => return Err(format!("{shapes:?} do not broadcast")),
                }
            }
            Ok(extent)
        })
        .collect()
}

/// The values of `array` in another dtype.
pub fn cast(array: &RefArray, to: DType) -> RefArray {
    let from = array.dtype;
    if from == to {
        return array.clone();
    }
    let one = |i: usize| {
        let (x, e) = array.at(i);
        let value = scalar::cast(x, from, to);
        // A cast to integer or bool jumps; a cast to f32 rounds an integer that is exact or unknown.
        let same = e == 0.0
            || (from == DType::F32
                && e < f64::INFINITY
                && [x - e, x + e].iter().all(|&v| scalar::cast(v, from, to) == value));
        // Between a negative and a positive number lies 0, the one false value.
        let certain = same && !(to == DType::Bool && e > 0.0 && x.abs() <= e);
        (value, if certain { 0.0 } else { f64::INFINITY })
    };
    RefArray::collect(to, &array.shape, (0..array.elems()).map(one))
}

/// For each argument, where each element of the result finds its own.
fn sources(shape: &[usize], args: &[RefArray]) -> Vec<Option<Vec<usize>>> {
    let find = |arg: &RefArray| {
        if arg.shape == shape {
            return None;
        }
        let lead = shape.len() - arg.rank();
        let mut places = Vec::with_capacity(elems(shape));
        for_each_index(shape, |index| {
            let place = |(&i, &n): (&usize, &usize)| if n == 1 { 0 } else { i };
            places.push(index[lead..].iter().zip(&arg.shape).fold(0, |flat, (i, n)| flat * n + place((i, n))));
        });
        Some(places)
    };
    args.iter().map(find).collect()
}

/// `op` on `args`, or why it is not defined. A row of the table that is unknown here is an error that says so.
pub fn apply(op: Op, args: &[&RefArray]) -> Result<RefArray> {
    let name = op.row().name;
    let dtypes: Vec<DType> = args.iter().map(|a| a.dtype).collect();
    match name {
        "where" => return where_(args),
        "f32" => return Ok(cast(args[0], DType::F32)),
        "i32" => return Ok(cast(args[0], DType::I32)),
        "u32" => return Ok(cast(args[0], DType::U32)),
        "bool" => return Ok(cast(args[0], DType::Bool)),
        _ => {}
    }
    let domain = domain(name).ok_or_else(|| format!("the op `{name}` has no reference: write one"))?;
    let mut dtype = promote(&dtypes)?;
    if domain == Domain::Float {
        dtype = DType::F32;
    }
    let refused = match domain {
        Domain::Float | Domain::Any => false,
        Domain::Number => dtype == DType::Bool,
        Domain::Bits => dtype == DType::F32,
        Domain::Integer => matches!(dtype, DType::Bool | DType::F32),
    };
    if refused {
        return Err(format!("{name} of {dtypes:?}"));
    }
    let shape = broadcast_shape(&args.iter().map(|a| &a.shape[..]).collect::<Vec<_>>())?;
    let args: Vec<RefArray> = args.iter().map(|a| cast(a, dtype)).collect();
    let places = sources(&shape, &args);
    let at = |arg: usize, i: usize| args[arg].at(places[arg].as_ref().map_or(i, |p| p[i]));
    let compares = matches!(name, "eq" | "ne" | "lt" | "le" | "gt" | "ge");
    let result = if compares { DType::Bool } else { dtype };
    let missing = || format!("the op `{name}` has no reference for {dtype}: write one");
    let ulps = crate::device::ulp(op);
    let n = args.len();
    let mut out = Vec::with_capacity(elems(&shape));
    if dtype == DType::F32 {
        let (f, sense) = (scalar::real(name).ok_or_else(missing)?, sense(name));
        for i in 0..elems(&shape) {
            let values = [at(0, i), if n > 1 { at(1, i) } else { (0.0, 0.0) }];
            let free = matches!(name, "maximum" | "minimum") && values == [(0.0, 0.0); 2];
            let value = propagate(f, sense, ulps, &values[..n]);
            out.push(if free { free_zero(values.into_iter().map(|v| v.0)) } else { value });
        }
    } else {
        let f = scalar::int(name, dtype).ok_or_else(missing)?;
        for i in 0..elems(&shape) {
            let values = [at(0, i), if n > 1 { at(1, i) } else { (0.0, 0.0) }];
            let lanes = values.map(|v| v.0 as i64);
            let value = scalar::wrap(f(&lanes[..n]), result);
            out.push((value, uncertain_bits(name, dtype, &values[..n])));
        }
    }
    Ok(RefArray::collect(result, &shape, out.into_iter()))
}

/// The bound of an integer result: one certain operand of `and` and `or` on bools may decide alone.
fn uncertain_bits(name: &str, dtype: DType, args: &[Bounded]) -> f64 {
    let decides = match (name, dtype) {
        ("and" | "mul" | "minimum", DType::Bool) => Some(0.0),
        ("or" | "add" | "maximum", DType::Bool) => Some(1.0),
        _ => None,
    };
    if args.iter().any(|&(x, e)| e == 0.0 && Some(x) == decides) {
        return 0.0;
    }
    args.iter().map(|a| a.1).fold(0.0, f64::max)
}

/// `x` where the condition holds, else `y`. An unknown condition leaves the hull of both.
fn where_(args: &[&RefArray]) -> Result<RefArray> {
    let dtype = promote(&[args[1].dtype, args[2].dtype])?;
    let shape = broadcast_shape(&args.iter().map(|a| &a.shape[..]).collect::<Vec<_>>())?;
    let args = [cast(args[0], DType::Bool), cast(args[1], dtype), cast(args[2], dtype)];
    let places = sources(&shape, &args);
    let at = |arg: usize, i: usize| args[arg].at(places[arg].as_ref().map_or(i, |p| p[i]));
    let one = |i: usize| {
        let ((c, ec), x, y) = (at(0, i), at(1, i), at(2, i));
        let (chosen, other) = if c != 0.0 { (x, y) } else { (y, x) };
        if ec == 0.0 {
            return chosen;
        }
        match (chosen.0 - other.0).abs() {
            apart if apart == 0.0 && chosen.1.max(other.1) == 0.0 => chosen,
            apart if dtype == DType::F32 => {
                bounded(chosen.0, if apart.is_nan() { f64::INFINITY } else { apart + chosen.1.max(other.1) })
            }
            _ => (chosen.0, f64::INFINITY),
        }
    };
    Ok(RefArray::collect(dtype, &shape, (0..elems(&shape)).map(one)))
}
