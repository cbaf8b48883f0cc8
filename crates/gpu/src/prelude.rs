//! The functions of `shaders/prelude.wgsl` and `shaders/transcendental.wgsl` that a module needs: the module's code
//! enters, their text leaves.
//!
//! Only those, because every driver compiles what it is given, and because the text is the pipeline's key.

use std::borrow::Cow;
use std::sync::LazyLock;

/// The whole prelude.
pub(crate) const TEXT: &str =
    concat!(include_str!("shaders/prelude.wgsl"), "\n", include_str!("shaders/transcendental.wgsl"));

/// The functions that there are for four lanes at a time as well, under their names with a 4. Drivers that keep the order of what
/// they are given find four instructions in a row that do not wait for each other.
const FOUR: &[&str] = &[
    "magnitude",
    "is_nan",
    "keep_nan",
    "copysign",
    "firm",
    "low_bits",
    "exp2_bits",
    "exp2_whole",
    "exp_whole",
    "exp_rest",
    "exp_m1_reduced",
    "exp_",
    "tanh_",
    "sigmoid",
];

/// The name of a function for four lanes, if there is one.
pub(crate) fn four(name: &str) -> Option<String> {
    FOUR.contains(&name).then(|| format!("{name}4"))
}

/// A function for four lanes from the one for a single lane: types become vectors, and it calls its like.
fn widened(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut wide, mut rest) = (String::with_capacity(2 * text.len()), text);
    while let Some(start) = rest.find(is_word) {
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        wide.push_str(&rest[..start]);
        match (word, four(word)) {
            ("f32" | "u32" | "bool", _) => wide += &format!("vec4<{word}>"),
            (_, Some(four)) if rest[end..].starts_with('(') => wide += &four,
            _ => wide += word,
        }
        rest = &rest[end..];
    }
    wide + rest
}

/// A function of the prelude.
struct Function {
    name: Cow<'static, str>,
    /// From `fn` to the closing brace.
    text: Cow<'static, str>,
    /// The functions of the prelude that it calls, by number.
    calls: Vec<usize>,
}

/// Every function, in order.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let single = items(TEXT).map(|(name, text)| (Cow::from(name), Cow::from(text)));
    let wide = items(TEXT).filter_map(|(name, text)| Some((four(name)?.into(), widened(text).into())));
    let mut functions: Vec<Function> =
        single.chain(wide).map(|(name, text)| Function { name, text, calls: vec![] }).collect();
    let calls: Vec<Vec<usize>> = functions.iter().map(|f| calls(&functions, &f.text["fn ".len()..])).collect();
    for (i, (function, calls)) in functions.iter_mut().zip(calls).enumerate() {
        // Its own name stands before its parameters.
        function.calls = calls.into_iter().filter(|&c| c != i).collect();
    }
    functions
});

/// Name and text of each function: `fn` in the first column begins one, `}` there ends it.
fn items(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.match_indices("\nfn ").filter_map(|(at, _)| {
        let item = &text[at + 1..];
        let item = &item[..item.find("\n}")? + 2];
        Some((item["fn ".len()..].split('(').next()?, item))
    })
}

/// The functions that `code` calls: an identifier, then a parenthesis.
fn calls(functions: &[Function], code: &str) -> Vec<usize> {
    let mut found = vec![];
    for (at, _) in code.match_indices('(') {
        let before = code[..at].trim_end();
        let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
        let called = functions.iter().position(|f| f.name == before[start..]);
        found.extend(called.filter(|c| !found.contains(c)));
    }
    found
}

/// The prelude functions that `code` calls and those that they call, in the prelude's order.
pub(crate) fn functions_for(code: &str) -> String {
    let mut needed = vec![false; FUNCTIONS.len()];
    let mut open = calls(&FUNCTIONS, code);
    while let Some(function) = open.pop() {
        if !std::mem::replace(&mut needed[function], true) {
            open.extend(&FUNCTIONS[function].calls);
        }
    }
    let mut text = String::new();
    for (function, _) in FUNCTIONS.iter().zip(needed).filter(|(_, needed)| *needed) {
        text.push_str(&function.text);
        text.push_str("\n\n");
    }
    text
}

/// The names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|f| &*f.name)
}

#[cfg(test)]
#[path = "prelude_tests.rs"]
mod tests;
