//! A progress line on stderr: appears after a second, only on a terminal, and leaves no trace.

use crate::run::Watch;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Work shorter than this needs no progress.
const SILENT: Duration = Duration::from_secs(1);
/// Faster than people read is only work for the terminal.
const REFRESH: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// The exit code of a run that Ctrl-C ended: 128 and the number of the signal, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// The line, and whether Ctrl-C was pressed.
pub struct Progress {
    total: usize,
    started: Instant,
    /// When it was drawn last: one worker draws at a time.
    drawn: Mutex<Option<Instant>>,
    enabled: bool,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// Catches Ctrl-C from now on, for the life of the process: once to end the run with what is done, twice to end at
    /// once.
    pub fn catching() -> Progress {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // Where it can't be caught it ends the process, as ever.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
        });
        let enabled = io::stderr().is_terminal();
        Progress { total: 0, started: Instant::now(), drawn: Mutex::default(), enabled, interrupted }
    }

    /// Another run, of so many scorings.
    pub fn begin(&mut self, total: usize) {
        self.clear();
        (self.total, self.started) = (total, Instant::now());
    }

    fn clear(&mut self) {
        if self.drawn.get_mut().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            // A terminal that has gone does not stop the work.
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Watch for Progress {
    fn done(&self, scorings: usize) {
        let now = Instant::now();
        if !self.enabled || now - self.started < SILENT {
            return;
        }
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_some_and(|drawn| now.saturating_duration_since(drawn) < REFRESH) {
            return;
        }
        *drawn = Some(now);
        let text = line(scorings, self.total, now - self.started);
        let _ = write!(io::stderr(), "\r{text}\x1b[K");
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(done: usize, total: usize, elapsed: Duration) -> String {
    let full = (WIDTH * done).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    let left = elapsed.as_secs_f64() / done.max(1) as f64 * total.saturating_sub(done) as f64;
    format!("[{}{}] {done}/{total} scorings, {left:.0} s left", "#".repeat(full), "-".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let text = line(1, 3, Duration::from_secs(2));
        assert_eq!(text, "[##########--------------------] 1/3 scorings, 4 s left");
    }
}
