//! Other names for the same thing: what numpy users write enters, the name of a table row leaves, or advice.

/// numpy's name, and the name here. Only pairs that mean the same for every argument.
const ALIASES: &[(&str, &str)] = &[
    ("subtract", "sub"),
    ("multiply", "mul"),
    ("divide", "div"),
    ("true_divide", "div"),
    ("floor_divide", "floor_div"),
    ("remainder", "rem"),
    ("mod", "rem"),
    ("power", "pow"),
    ("negative", "neg"),
    ("absolute", "abs"),
    ("rint", "round"),
    ("fix", "trunc"),
    ("equal", "eq"),
    ("not_equal", "ne"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("bitwise_and", "and"),
    ("bitwise_or", "or"),
    ("bitwise_xor", "xor"),
    ("bitwise_not", "not"),
    ("invert", "not"),
    ("left_shift", "shl"),
    ("right_shift", "shr"),
    ("bitwise_count", "count_ones"),
    ("swish", "silu"),
    ("amax", "max"),
    ("amin", "min"),
    ("concatenate", "concat"),
    ("astype", "cast"),
    ("sliding_window_view", "windows"),
    ("permute_dims", "permute"),
];

/// numpy's dtype names that mean the same; the 64-bit ones do not.
const DTYPES: &[(&str, &str)] = &[("float32", "f32"), ("int32", "i32"), ("uint32", "u32"), ("bool_", "bool")];

/// Functions that people look for, and how to write them.
const HINTS: &[(&str, &str)] = &[
    ("logical_and", "use `&` on bools: `(x > 0) & (y > 0)`"),
    ("logical_or", "use `|` on bools: `(x > 0) | (y > 0)`"),
    ("logical_not", "use `~` on bools: `~(x > 0)`"),
    ("logical_xor", "use `^` on bools: `(x > 0) ^ (y > 0)`"),
    ("linspace", "write `start + arange(n) * ((stop - start) / (n - 1))`"),
    ("zeros_like", "write `x * 0`, or `zeros((2, 3))` with the shape"),
    ("ones_like", "write `x * 0 + 1`, or `ones((2, 3))` with the shape"),
    ("ravel", "write `reshape(x, -1)`"),
    ("flatten", "write `reshape(x, -1)`"),
    ("array", "write the list itself, `[1, 2, 3]`, or pass an array as an input"),
    ("einsum", "write it with `@`, `*`, sum and permute"),
    ("tensordot", "write it with `@` and reshape"),
    ("inner", "use dot for vectors, or `x @ y.T`"),
    ("outer", "write `x[:, None] * y[None, :]`"),
    ("moveaxis", "use permute(x, order) with the order of the axes"),
    ("median", "order statistics are not computed here"),
    ("sort", "order statistics are not computed here"),
    ("log10", "write `log(x) / log(10)`"),
    ("cbrt", "write `sign(x) * abs(x) ** (1 / 3)`"),
    ("isnan", "write `x != x`"),
    ("float64", "arrays are of f32, i32, u32 or bool: use cast(x, f32)"),
    ("int64", "arrays are of f32, i32, u32 or bool: use cast(x, i32)"),
];

/// The name of the table row that `name` means; `name` itself if it is no alias.
pub fn canonical(name: &str) -> &str {
    translate(ALIASES, dtype(name))
}

/// The dtype's name that `name` means.
pub(super) fn dtype(name: &str) -> &str {
    translate(DTYPES, name)
}

/// The other names of a row.
pub fn of(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    ALIASES.iter().chain(DTYPES).filter(move |(_, row)| *row == name).map(|(alias, _)| *alias)
}

pub(super) fn all() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(alias, _)| *alias)
}

pub(super) fn hint(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(known, _)| *known == name).map(|(_, hint)| *hint)
}

fn translate<'a>(pairs: &[(&str, &'static str)], name: &'a str) -> &'a str {
    pairs.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{Callable, find};

    #[test]
    fn every_alias_leads_to_a_row_and_hides_none() {
        for (alias, row) in ALIASES.iter().chain(DTYPES) {
            assert_eq!(find(alias).map(Callable::name), Some(*row), "{alias}");
            assert!(Callable::all().all(|callable| callable.name() != *alias), "{alias} is a row of its own");
        }
        for (name, _) in HINTS {
            assert!(find(name).is_none(), "{name} exists: drop the hint");
        }
    }
}
