//! A progress line on stderr: how many of the runs are done. It appears after a second, only on a terminal, and leaves
//! no trace.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Work shorter than this needs no progress.
const SILENT: Duration = Duration::from_secs(1);
/// Faster than people read is only work for the terminal.
const REFRESH: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// The line.
pub struct Progress {
    total: usize,
    started: Instant,
    drawn: Option<Instant>,
    enabled: bool,
}

impl Progress {
    /// Of `total` runs.
    pub fn new(total: usize) -> Progress {
        Progress { total, started: Instant::now(), drawn: None, enabled: io::stderr().is_terminal() }
    }

    /// `done` runs have ended.
    pub fn show(&mut self, done: usize) {
        let now = Instant::now();
        let early = now - self.started < SILENT || self.drawn.is_some_and(|drawn| now - drawn < REFRESH);
        if !self.enabled || early {
            return;
        }
        self.drawn = Some(now);
        let text = line(done, self.total, now - self.started);
        // A terminal that has gone does not stop the work.
        let _ = write!(io::stderr(), "\r{text}\x1b[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(done: usize, total: usize, elapsed: Duration) -> String {
    let full = (WIDTH * done).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    let left = elapsed.as_secs_f64() / done.max(1) as f64 * total.saturating_sub(done) as f64;
    format!("[{}{}] {done}/{total} runs, {left:.0} s left", "#".repeat(full), "-".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let text = line(1, 3, Duration::from_secs(2));
        assert_eq!(text, "[##########--------------------] 1/3 runs, 4 s left");
        assert!(line(0, 0, Duration::ZERO).contains("0/0"));
    }
}
