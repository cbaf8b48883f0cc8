//! A profile as folded stacks: call trees enter, one line a stack leaves, `thread;stage;batch;phase` and its self time in
//! microseconds, for flamegraph.pl, inferno and speedscope.

use super::shares::apportion;
use super::{Fault, Frame, FrameKind, Profile};
use std::collections::BTreeMap;

impl Profile {
    /// The profile as folded stacks, sorted; an error if it does not add up. Microseconds are rounded so that they add up to
    /// those of all threads; stacks of less than half a microsecond may be missing. What waited says so.
    ///
    /// ```
    /// use breakeven::profile::Profile;
    /// let stacks = Profile::example().folded()?;
    /// assert!(stacks.contains("main;inline_variables 69000\n"));
    /// assert!(stacks.contains("main;parse;read (waiting) 2000\n"));
    /// # Ok::<(), breakeven::profile::Fault>(())
    /// ```
    pub fn folded(&self) -> Result<String, Fault> {
        self.check()?;
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        for thread in &self.threads {
            for (at, frame) in thread.frames.iter().enumerate().filter(|(_, frame)| frame.self_ns > 0) {
                *stacks.entry(stack(&thread.frames, at)).or_default() += frame.self_ns;
            }
        }
        let (names, ns): (Vec<String>, Vec<u64>) = stacks.into_iter().unzip();
        let total: u128 = ns.iter().map(|ns| u128::from(*ns)).sum();
        let micros = apportion(&ns, ((total + 500) / 1000) as u64);
        let lines = names.iter().zip(micros).filter(|(_, micros)| *micros > 0);
        Ok(lines.map(|(name, micros)| format!("{name} {micros}\n")).collect())
    }
}

/// The names from the thread down to a frame.
fn stack(frames: &[Frame], at: usize) -> String {
    let mut names = Vec::new();
    let mut here = Some(at);
    while let Some(frame) = here.map(|at| &frames[at]) {
        names.push(name(frame));
        here = frame.parent.map(|parent| parent as usize);
    }
    names.reverse();
    names.join(";")
}

/// A name that the format can hold: `;` separates frames, and a line ends a stack.
fn name(frame: &Frame) -> String {
    let plain: String = frame.name.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect();
    let plain = if plain.trim().is_empty() { "_".to_owned() } else { plain };
    let waits = match frame.kind {
        FrameKind::DeviceWait => " (waiting for a device)",
        kind if kind.is_waiting() => " (waiting)",
        _ => "",
    };
    plain + waits
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
