//! Parts of a time for people: a part or a ratio enters, a few letters leave. Tables, Markdown and messages of the bench
//! take them from here.

/// A part as a percentage: 0.034 is `3.4 %`, 1.2 is `120 %`.
pub(crate) fn percent(part: f64) -> String {
    let of_hundred = part * 100.0;
    if of_hundred.abs() < 99.95 { format!("{of_hundred:.1} %") } else { format!("{of_hundred:.0} %") }
}

/// A ratio of times as a change: 1.123 is `+12.3 %`, 0.96 is `-4.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    let text = percent(ratio - 1.0);
    if text.starts_with('-') { text } else { format!("+{text}") }
}

/// How sure, rounded down: nothing that was left open once is shown as 100 %.
pub(crate) fn sure(part: f64) -> String {
    format!("{:.1} %", (part * 1000.0).floor() / 10.0)
}

/// `1 row`, `3 rows`.
pub(crate) fn count(of: usize, what: &str) -> String {
    format!("{of} {what}{}", if of == 1 { "" } else { "s" })
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
