//! What the machine is doing otherwise: the system's own figures enter, [`Surroundings`] leave. Before each group calm is
//! waited for, up to a limit; what is measured without it is marked.

use std::time::{Duration, Instant};

use breakeven_report::bench::Surroundings;

/// The part of all cores' time that others may take: a core of ten.
const BUSY: f64 = 0.10;
/// Memory that must be available: the largest case with all its copies.
const FREE_BYTES: u64 = 512 << 20;
/// Degrees Celsius from which processors slow down.
const HOT: f64 = 90.0;
/// How long one look takes. The system counts in hundredths of a second, so that shorter ones say nothing.
const LOOK: Duration = Duration::from_millis(150);

/// Waits for calm, for so long at most; what was seen last leaves.
pub fn wait(most: Duration, stop: &dyn Fn() -> bool) -> Surroundings {
    let begun = Instant::now();
    loop {
        let mut seen = look();
        let calm = is_calm(&seen);
        seen.loaded = !calm;
        if calm || begun.elapsed() >= most || stop() {
            // The first look is no wait: it is taken in any case.
            seen.waited_seconds = begun.elapsed().saturating_sub(LOOK).as_secs_f64();
            return seen;
        }
    }
}

/// Where nothing is known nothing is wrong.
fn is_calm(seen: &Surroundings) -> bool {
    seen.busy.is_none_or(|busy| busy <= BUSY)
        && seen.free_bytes.is_none_or(|bytes| bytes >= FREE_BYTES)
        && seen.celsius.is_none_or(|celsius| celsius < HOT)
}

fn look() -> Surroundings {
    let stat = || std::fs::read_to_string("/proc/stat").ok().and_then(|text| times(&text));
    let before = stat();
    let mut seen = Surroundings {
        free_bytes: std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_bytes(&text)),
        celsius: hottest(),
        ..Surroundings::default()
    };
    if let Some(before) = before {
        // Nothing of ours runs meanwhile, so that whatever does is another's.
        std::thread::sleep(LOOK);
        if let Some((busy, stolen)) = stat().and_then(|after| shares(&before, &after)) {
            (seen.busy, seen.stolen) = (Some(busy), Some(stolen));
        }
    }
    seen
}

/// Ticks of all cores since the machine was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Times {
    busy: u64,
    idle: u64,
    stolen: u64,
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, ..; guests' time is in user's.
fn times(stat: &str) -> Option<Times> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, stolen, ..] = ticks[..] else { return None };
    Some(Times { busy: user + nice + system + irq + softirq, idle: idle + iowait, stolen })
}

/// The parts of the time in between that were busy and stolen.
fn shares(before: &Times, after: &Times) -> Option<(f64, f64)> {
    let since = |of: fn(&Times) -> u64| of(after).saturating_sub(of(before)) as f64;
    let (busy, idle, stolen) = (since(|t| t.busy), since(|t| t.idle), since(|t| t.stolen));
    let all = busy + idle + stolen;
    (all > 0.0).then(|| (busy / all, stolen / all))
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Degrees of the hottest sensor that the system shows.
fn hottest() -> Option<f64> {
    let files = |folder: &str, is_sensor: fn(&str) -> bool, file: fn(&str) -> bool| {
        let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = folders.filter(move |entry| entry.file_name().to_str().is_some_and(is_sensor));
        let inside = folders.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten().flatten());
        inside.filter(move |entry| entry.file_name().to_str().is_some_and(file)).map(|entry| entry.path())
    };
    let zones = files("/sys/class/thermal", |name| name.starts_with("thermal_zone"), |name| name == "temp");
    let sensors = files("/sys/class/hwmon", |_| true, |name| name.starts_with("temp") && name.ends_with("_input"));
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).ok().and_then(|text| celsius(&text));
    zones.chain(sensors).filter_map(read).max_by(f64::total_cmp)
}

/// A sensor tells thousandths of a degree. Some that measure nothing tell nonsense.
fn celsius(text: &str) -> Option<f64> {
    let degrees = text.trim().parse::<f64>().ok()? / 1000.0;
    (1.0..150.0).contains(&degrees).then_some(degrees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_time_in_between() {
        let before = times("cpu  100 0 50 800 10 0 5 20 0 0\ncpu0 ..\n").unwrap();
        assert_eq!(before, Times { busy: 155, idle: 810, stolen: 20 });
        let after = times("cpu  120 0 50 850 10 0 5 30 0 0\n").unwrap();
        let (busy, stolen) = shares(&before, &after).unwrap();
        assert_eq!((busy, stolen), (0.25, 0.125));
        assert_eq!(shares(&after, &after), None, "no time went by");
        for bad in ["", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3", "intr 7"] {
            assert_eq!(times(bad), None, "{bad}");
        }
    }

    #[test]
    fn memory_and_degrees_are_read_with_their_units() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   2 kB\n"), Some(2048));
        assert_eq!(available_bytes("MemFree: 3 kB\n"), None);
        assert_eq!(
            (celsius("45500\n"), celsius("-273200"), celsius("x"), celsius("0")),
            (Some(45.5), None, None, None)
        );
    }

    #[test]
    fn calm_is_what_is_known_to_be() {
        let calm = Surroundings { busy: Some(0.05), free_bytes: Some(1 << 30), ..Surroundings::default() };
        assert!(is_calm(&calm) && is_calm(&Surroundings::default()));
        assert!(!is_calm(&Surroundings { busy: Some(0.5), ..calm.clone() }));
        assert!(!is_calm(&Surroundings { free_bytes: Some(1 << 20), ..calm.clone() }));
        assert!(!is_calm(&Surroundings { celsius: Some(95.0), ..calm.clone() }));
        assert!(is_calm(&Surroundings { stolen: Some(0.9), ..calm }), "whoever is stolen from can't wait for it");
    }

    #[test]
    fn nobody_waits_longer_than_asked() {
        let begun = Instant::now();
        let seen = wait(Duration::ZERO, &|| false);
        assert_eq!(seen.loaded, !is_calm(&seen));
        assert!(seen.waited_seconds <= begun.elapsed().as_secs_f64());
    }
}
