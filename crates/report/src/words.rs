//! Numbers for people: sizes, times and ratios enter, a few words leave. Everything that this crate prints comes from
//! here, so that a number looks the same in the terminal and on the page.

/// Sizes below this are written out: 1024 and 4096 say more than `1.0 k` and `4.1 k`.
const EXACT_BELOW: u64 = 10_000;

/// A size in words: `512`, `4096`, `66 k`, `1.2 M`.
///
/// ```
/// use breakeven_report::words::size;
/// assert_eq!([size(4096), size(65_536), size(1_200_000)], ["4096", "66 k", "1.2 M"]);
/// ```
pub fn size(size: u64) -> String {
    if size < EXACT_BELOW {
        return size.to_string();
    }
    scaled(size as f64 / 1e3, &[" k", " M", " G", " T", " P", " E"])
}

/// A size with what it counts: `1.2 M elements`, `1024 x 1024`, `64 tasks of 256`.
///
/// ```
/// use breakeven_report::words::sized;
/// assert_eq!(sized(1024, "n x n"), "1024 x 1024");
/// assert_eq!(sized(64, "tasks of 256"), "64 tasks of 256");
/// ```
pub fn sized(of: u64, unit: &str) -> String {
    let words: Vec<&str> = unit.split_whitespace().collect();
    if words.contains(&"n") {
        let filled: Vec<String> = words.iter().map(|&w| if w == "n" { size(of) } else { w.to_owned() }).collect();
        return filled.join(" ");
    }
    format!("{} {unit}", size(of)).trim_end().to_owned()
}

/// A size that was interpolated, rounded to the two digits that it is good for.
///
/// ```
/// use breakeven_report::words::rounded;
/// assert_eq!([rounded(1234), rounded(87), rounded(987_654)], [1200, 87, 990_000]);
/// ```
pub fn rounded(size: u64) -> u64 {
    let unit = 10u64.pow(size.checked_ilog10().unwrap_or(0).saturating_sub(1));
    (size / unit + u64::from(size % unit >= unit.div_ceil(2) && unit > 1)).saturating_mul(unit)
}

/// A time in words: `850 ns`, `85 us`, `3.4 ms`, `12 s`.
///
/// ```
/// use breakeven_report::words::time;
/// assert_eq!([time(850), time(85_000), time(3_400_000)], ["850 ns", "85 us", "3.4 ms"]);
/// ```
pub fn time(ns: u64) -> String {
    if ns < 1_000 { format!("{ns} ns") } else { scaled(ns as f64 / 1e3, &[" us", " ms", " s"]) }
}

/// A ratio in words: `1.0x`, `3.4x`, `120x`.
///
/// ```
/// use breakeven_report::words::ratio;
/// assert_eq!([ratio(1.04), ratio(3.42), ratio(118.0), ratio(0.049)], ["1.0x", "3.4x", "118x", "0.049x"]);
/// ```
pub fn ratio(ratio: f64) -> String {
    match ratio {
        r if r < 0.0995 => {
            let digits = (1.0 - r.max(1e-6).log10().floor()) as usize;
            format!("{r:.digits$}x")
        }
        r if r < 0.995 => format!("{r:.2}x"),
        r if r < 9.95 => format!("{r:.1}x"),
        r => format!("{r:.0}x"),
    }
}

/// A number of bytes in words: `512 B`, `4 KiB`, `1.5 MiB`.
///
/// ```
/// use breakeven_report::words::bytes;
/// assert_eq!([bytes(512), bytes(4096), bytes(3 << 19)], ["512 B", "4 KiB", "1.5 MiB"]);
/// ```
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    let number = format!("{:.1}", bytes as f64 / (1u64 << (10 * unit)) as f64);
    format!("{} {}", number.trim_end_matches(".0"), UNITS[unit])
}

/// So many bytes in so much time, in words: `0.046 GB/s`, `5.2 GB/s`, `120 GB/s`. A gigabyte is 10^9 bytes.
///
/// ```
/// use breakeven_report::words::rate;
/// assert_eq!([rate(4096, 90_000), rate(1 << 20, 200_000)], ["0.046 GB/s", "5.2 GB/s"]);
/// ```
pub fn rate(bytes: u64, ns: u64) -> String {
    format!("{} GB/s", ratio(bytes as f64 / ns.max(1) as f64).trim_end_matches('x'))
}

/// A size as people write it: `10`, `64k`, `1.5M`; `64Ki` is 65,536. `None` of anything else, and of 0.
///
/// ```
/// use breakeven_report::words::parse_size;
/// assert_eq!([parse_size("64k"), parse_size("64Ki"), parse_size("1.5")], [Some(64_000), Some(65_536), None]);
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    let (text, step) = text.strip_suffix('i').map_or((text, 1000u64), |text| (text, 1024));
    let powers = [('k', 1), ('K', 1), ('M', 2), ('G', 3)];
    let found = powers.iter().find_map(|(unit, power)| Some((text.strip_suffix(*unit)?, *power)));
    let (digits, power) = match found {
        Some(found) => found,
        None if step == 1000 => (text, 0),
        None => return None,
    };
    // Signs, exponents and `inf` are numbers, but no sizes.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number = digits.parse::<f64>().ok()? * step.pow(power) as f64;
    // Beyond 2^53 a number of elements could no longer be told from the next.
    (number.fract() == 0.0 && (1.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

/// Two digits and the first suffix that keeps the number below 1000.
fn scaled(mut value: f64, suffixes: &[&str]) -> String {
    let mut suffixes = suffixes.iter();
    let mut suffix = suffixes.next().copied().unwrap_or("");
    // 999.5 would be written as 1000.
    while value >= 999.5 {
        let Some(next) = suffixes.next() else { break };
        (value, suffix) = (value / 1e3, next);
    }
    if value < 9.95 { format!("{value:.1}{suffix}") } else { format!("{value:.0}{suffix}") }
}

/// Text from a scan on one line without control characters: a device's name must not move a terminal's cursor or end
/// a row of a table.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
