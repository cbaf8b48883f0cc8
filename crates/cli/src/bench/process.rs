//! A job in a process of its own: it enters, what it says goes to a listener as it comes, how it ended leaves. Whatever
//! the process does (crash, hang, print nonsense), this returns in time.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::job::{Job, Said};

/// The hidden subcommand that does a job.
pub const SUBCOMMAND: &str = "bench-job";
/// How often it is looked whether time is up.
const LOOK: Duration = Duration::from_millis(20);
/// What a process may take to end once it is done, or told to stop: more than it gives itself.
const GRACE: Duration = Duration::from_secs(4);
/// Bytes and lines of what it says on stderr that are kept to be told.
const STDERR_BYTES: usize = 1 << 16;
const STDERR_LINES: usize = 3;

/// What a listener wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// More.
    GoOn,
    /// The end of the process, at once.
    Kill,
}

/// How a process ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It said all.
    Done,
    /// It was told to stop.
    Stopped,
    /// It took too long and was killed.
    Hung(String),
    /// It ended otherwise.
    Crashed(String),
}

impl Ended {
    /// In words.
    pub fn why(&self) -> String {
        match self {
            Ended::Done => "it ended without a word".to_owned(),
            Ended::Stopped => "it was stopped".to_owned(),
            Ended::Hung(why) | Ended::Crashed(why) => why.clone(),
        }
    }
}

/// Runs a job in a new process of this program.
pub fn run(job: &Job, limit: Duration, stop: &dyn Fn() -> bool, listen: &mut dyn FnMut(Said) -> Then) -> Ended {
    match start(job) {
        Ok(running) => running.watch(limit, stop, listen),
        Err(error) => Ended::Crashed(format!("its process could not be started: {error}")),
    }
}

struct Running {
    child: Child,
    /// As long as this is open the process goes on.
    stdin: Option<ChildStdin>,
    said: mpsc::Receiver<Said>,
    stderr: JoinHandle<String>,
}

fn start(job: &Job) -> std::io::Result<Running> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(std::io::Error::other("it has no pipes"));
    };
    // A process that has ended by now is told of below.
    let _ = writeln!(stdin, "{}", serde_json::to_string(job)?);
    let (sender, said) = mpsc::channel();
    std::thread::spawn(move || {
        // What is no JSON comes from a driver, which prints where it likes.
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        for said in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
            if sender.send(said).is_err() {
                return;
            }
        }
    });
    let stderr = std::thread::spawn(move || tail(stderr));
    Ok(Running { child, stdin: Some(stdin), said, stderr })
}

impl Running {
    fn watch(mut self, limit: Duration, stop: &dyn Fn() -> bool, listen: &mut dyn FnMut(Said) -> Then) -> Ended {
        let begun = Instant::now();
        let (mut done, mut stopped, mut hung, mut doing) = (None, None, false, String::new());
        loop {
            match self.said.recv_timeout(LOOK) {
                Ok(Said::Done) => {
                    done = Some(Instant::now());
                    self.stdin = None;
                }
                Ok(said) => {
                    if let Said::Doing { what, .. } = &said {
                        doing.clone_from(what);
                    }
                    if listen(said) == Then::Kill {
                        let _ = self.child.kill();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stop() && stopped.is_none() {
                stopped = Some(Instant::now());
                self.stdin = None;
            }
            let is_over = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() > GRACE);
            if is_over(done) || is_over(stopped) || (done.is_none() && begun.elapsed() > limit) {
                hung = true;
                let _ = self.child.kill();
            }
        }
        let status = self.child.wait();
        if stopped.is_some() || stop() {
            return Ended::Stopped;
        }
        if hung {
            let seconds = begun.elapsed().as_secs_f64();
            return Ended::Hung(match done {
                Some(_) => {
                    format!("its process did not end within {} s of its last word, and was killed", GRACE.as_secs())
                }
                None if doing.is_empty() => format!("its process said nothing for {seconds:.0} s, and was killed"),
                None => format!("its process was still at `{doing}` after {seconds:.0} s, and was killed"),
            });
        }
        match status {
            Ok(status) if status.success() && done.is_some() => Ended::Done,
            Ok(status) => Ended::Crashed(self.epitaph(status, done.is_some(), &doing)),
            Err(error) => Ended::Crashed(format!("its process can't be asked how it ended: {error}")),
        }
    }

    fn epitaph(self, status: ExitStatus, done: bool, doing: &str) -> String {
        let when = match doing {
            _ if done => " after its last word".to_owned(),
            "" => String::new(),
            doing => format!(" at `{doing}`"),
        };
        let said = self.stderr.join().unwrap_or_default();
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        format!("its process was {}{when}{said}", words(status))
    }
}

/// How a process ended, in words.
fn words(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended without an exit code".to_owned(),
    }
}

/// The last lines of a stream that is read to its end, without what libraries say to everybody.
fn tail(mut stream: impl Read) -> String {
    let mut last = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part) {
        last.extend_from_slice(&part[..count]);
        if last.len() > 2 * STDERR_BYTES {
            last.drain(..last.len() - STDERR_BYTES);
        }
    }
    let text = String::from_utf8_lossy(&last);
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("XDG_RUNTIME_DIR")).collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept() {
        assert_eq!(tail(&b"a\nb\n\nerror: XDG_RUNTIME_DIR is invalid\nc\nd\n"[..]), "b | c | d");
        let long = "x".repeat(10).as_bytes().repeat(100_000);
        assert!(tail(&long[..]).len() <= 2 * STDERR_BYTES);
    }
}
