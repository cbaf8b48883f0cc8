//! A progress line on stderr: how far the work is and how long it still takes. It appears after a second, only on a
//! terminal, and leaves no trace.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Work shorter than this needs no progress.
const SILENT: Duration = Duration::from_secs(1);
/// Faster than people read is only work for the terminal.
const REFRESH: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;
/// A longer line would wrap on a terminal of the usual width, and could not be drawn over any more.
const LINE: usize = 79;

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
        let total = self.total;
        self.draw(|elapsed| line(done, total, elapsed));
    }

    /// This share of all work is done, `what` comes next, and in `most` it ends in any case.
    pub fn show_share(&mut self, share: f64, most: Duration, what: &str) {
        self.draw(|elapsed| share_line(share, elapsed, most, what));
    }

    fn draw(&mut self, line: impl FnOnce(Duration) -> String) {
        let now = Instant::now();
        let early = now - self.started < SILENT || self.drawn.is_some_and(|drawn| now - drawn < REFRESH);
        if !self.enabled || early {
            return;
        }
        self.drawn = Some(now);
        let text: String = line(now - self.started).chars().take(LINE).collect();
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
    format!("{} {done}/{total} runs, {left:.0} s left", bar(full))
}

fn share_line(share: f64, elapsed: Duration, most: Duration, what: &str) -> String {
    let share = share.clamp(0.0, 1.0);
    let full = (WIDTH as f64 * share) as usize;
    let left = (elapsed.as_secs_f64() / share.max(1e-3) * (1.0 - share)).min(most.as_secs_f64());
    format!("{} {:.0} %, {left:.0} s left: {what}", bar(full), 100.0 * share)
}

fn bar(full: usize) -> String {
    format!("[{}{}]", "#".repeat(full), "-".repeat(WIDTH - full))
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

    #[test]
    fn no_more_time_is_left_than_there_can_be() {
        let line = |share, most| share_line(share, Duration::from_secs(10), Duration::from_secs(most), "gpu:0");
        assert_eq!(line(0.5, 60), "[###############---------------] 50 %, 10 s left: gpu:0");
        assert!(line(0.0, 60).ends_with(" 0 %, 60 s left: gpu:0"));
        assert!(line(7.0, 60).ends_with(" 100 %, 0 s left: gpu:0"));
    }
}
