//! Is a profile sane? One that is read from a file enters; what is wrong with it leaves, if anything.
//!
//! Shares that add up to more than the whole are the worst that a profile can show, since everything that is concluded from
//! them is wrong. So nothing is analysed or exported before self times add up to the time of their thread, and the parts of
//! a batch to no more than the batch.

use super::{BatchRecord, FrameKind, Phase, Profile, Span, ThreadRecord};

/// What reading two clocks one after the other may differ by.
const CLOCKS_NS: u128 = 10_000;

/// What is wrong with a profile.
///
/// ```
/// use breakeven::profile::{Fault, Profile};
/// let mut profile = Profile::example();
/// profile.threads[0].frames[1].self_ns += 1;
/// assert!(matches!(profile.check(), Err(Fault::SelfTimes { .. })));
/// ```
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A thread's times are not within the profile's.
    #[error(
        "thread `{thread}` lasts from {begin_ns} to {end_ns} ns, which is not within the {wall_ns} ns of the profile"
    )]
    ThreadTimes {
        /// The thread.
        thread: String,
        /// When it joined.
        begin_ns: u64,
        /// When it left.
        end_ns: u64,
        /// The profile's end.
        wall_ns: u64,
    },
    /// Threads that take longer together than can be counted.
    #[error("the threads take more than {} ns together, which no run does", u64::MAX)]
    TooLong,
    /// A call tree that is none.
    #[error("frame {frame} of thread `{thread}`: {why}")]
    Frame {
        /// The thread.
        thread: String,
        /// The frame's number.
        frame: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Self times that do not add up.
    #[error(
        "the self times of thread `{thread}` add up to {found_ns} ns, which is {:.1} % of its {expected_ns} ns; they must \
         add up to exactly 100 %",
        100.0 * *found_ns as f64 / (*expected_ns).max(1) as f64
    )]
    SelfTimes {
        /// The thread.
        thread: String,
        /// What they add up to.
        found_ns: u128,
        /// What the thread took.
        expected_ns: u64,
    },
    /// A total that is not the self time and what lies below.
    #[error(
        "frame {frame} (`{name}`) of thread `{thread}` has a total of {total_ns} ns, but its self time and the frames \
         below it take {parts_ns} ns"
    )]
    Total {
        /// The thread.
        thread: String,
        /// The frame's number.
        frame: usize,
        /// The frame's name.
        name: String,
        /// Its total.
        total_ns: u64,
        /// Its parts.
        parts_ns: u128,
    },
    /// A span that can't be.
    #[error("span {span} of thread `{thread}`: {why}")]
    Span {
        /// The thread.
        thread: String,
        /// The span's number.
        span: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A batch that can't be.
    #[error("batch {batch}: {why}")]
    Batch {
        /// The batch's number.
        batch: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A rerun of a plan that is not there.
    #[error("rerun {rerun} is of plan {plan}, but there are only {plans} plans")]
    Rerun {
        /// The rerun's number.
        rerun: usize,
        /// The plan's number.
        plan: u32,
        /// How many there are.
        plans: usize,
    },
}

impl Profile {
    /// Does everything add up? What is analysed or exported has been checked.
    pub fn check(&self) -> Result<(), Fault> {
        let mut sum = Some(0u64);
        for thread in &self.threads {
            sum = sum.and_then(|sum| sum.checked_add(thread.end_ns.saturating_sub(thread.begin_ns)));
            let (begin_ns, end_ns, wall_ns) = (thread.begin_ns, thread.end_ns, self.wall_ns);
            if begin_ns > end_ns || end_ns > wall_ns {
                return Err(Fault::ThreadTimes { thread: thread.name.clone(), begin_ns, end_ns, wall_ns });
            }
            check_frames(thread)?;
            check_spans(thread, self.batches.len())?;
        }
        sum.ok_or(Fault::TooLong)?;
        for (at, batch) in self.batches.iter().enumerate() {
            self.check_batch(batch).map_err(|why| Fault::Batch { batch: at, why })?;
        }
        let plans = self.plans.len();
        let stray = self.reruns.iter().enumerate().find(|(_, rerun)| rerun.plan as usize >= plans);
        stray.map_or(Ok(()), |(at, rerun)| Err(Fault::Rerun { rerun: at, plan: rerun.plan, plans }))
    }

    fn check_batch(&self, batch: &BatchRecord) -> Result<(), &'static str> {
        if batch.plan as usize >= self.plans.len() {
            return Err("its plan is not among the plans");
        }
        let thread = self.threads.get(batch.thread as usize).ok_or("its thread is not among the threads")?;
        let frame = thread.frames.get(batch.frame as usize).ok_or("its frame is not among those of its thread")?;
        if frame.kind != FrameKind::Batch {
            return Err("its frame is not a batch's");
        }
        if batch.begin_ns > batch.end_ns || batch.begin_ns < thread.begin_ns || batch.end_ns > thread.end_ns {
            return Err("it does not lie within its thread");
        }
        // A job may have waited in the queue before the thread that ran it took it.
        let inside = batch.phases.iter().filter(|(phase, _)| **phase != Phase::Queue);
        let sum: u128 = inside.map(|(_, ns)| u128::from(*ns)).sum();
        if sum > u128::from(batch.end_ns - batch.begin_ns) {
            return Err("its parts add up to more than 100 % of it");
        }
        // Batches and decisions are timed by two clocks, of which one may be a little faster.
        let most_ns = u128::from(batch.end_ns - batch.begin_ns) * 101 / 100 + CLOCKS_NS;
        if !batch.decision.simulated && u128::from(batch.decision.actual_ns) > most_ns {
            return Err("its decision says that it took longer than it lasted");
        }
        Ok(())
    }
}

fn check_frames(thread: &ThreadRecord) -> Result<(), Fault> {
    let wrong = |frame: usize, why| Err(Fault::Frame { thread: thread.name.clone(), frame, why });
    let Some(first) = thread.frames.first() else { return wrong(0, "the frame of the thread itself is missing") };
    if first.parent.is_some() || first.kind != FrameKind::Thread {
        return wrong(0, "the first frame must be the thread itself");
    }
    let mut parts: Vec<u128> = thread.frames.iter().map(|frame| frame.self_ns.into()).collect();
    for (at, frame) in thread.frames.iter().enumerate().skip(1) {
        match frame.parent {
            Some(parent) if (parent as usize) < at => parts[parent as usize] += u128::from(frame.total_ns),
            Some(_) => return wrong(at, "its caller must come before it"),
            None => return wrong(at, "only the first frame has no caller"),
        }
        if frame.kind == FrameKind::Thread {
            return wrong(at, "only the first frame is a thread");
        }
    }
    let (found_ns, expected_ns) =
        (thread.frames.iter().map(|frame| u128::from(frame.self_ns)).sum(), thread.end_ns - thread.begin_ns);
    if found_ns != u128::from(expected_ns) {
        return Err(Fault::SelfTimes { thread: thread.name.clone(), found_ns, expected_ns });
    }
    for (at, (frame, parts_ns)) in thread.frames.iter().zip(parts).enumerate() {
        if u128::from(frame.total_ns) != parts_ns {
            return Err(Fault::Total {
                thread: thread.name.clone(),
                frame: at,
                name: frame.name.clone(),
                total_ns: frame.total_ns,
                parts_ns,
            });
        }
    }
    Ok(())
}

fn check_spans(thread: &ThreadRecord, batches: usize) -> Result<(), Fault> {
    let wrong = |span: usize, why| Err(Fault::Span { thread: thread.name.clone(), span, why });
    let mut of_frames = vec![0u128; thread.frames.len()];
    for (at, span) in thread.spans.iter().enumerate() {
        if span.frame as usize >= thread.frames.len() {
            return wrong(at, "its frame is not among those of its thread");
        }
        if span.begin_ns > span.end_ns || span.begin_ns < thread.begin_ns || span.end_ns > thread.end_ns {
            return wrong(at, "it does not lie within its thread");
        }
        if span.batch.is_some_and(|batch| batch as usize >= batches) {
            return wrong(at, "its batch is not among the batches");
        }
        let sum = &mut of_frames[span.frame as usize];
        *sum += u128::from(span.end_ns - span.begin_ns);
        if *sum > u128::from(thread.frames[span.frame as usize].total_ns) {
            return wrong(at, "the spans of its frame take more than the frame's total");
        }
    }
    let mut open: Vec<u64> = Vec::new();
    for at in nested(&thread.spans) {
        let span = &thread.spans[at];
        while open.last().is_some_and(|end| *end <= span.begin_ns) {
            open.pop();
        }
        if open.last().is_some_and(|end| *end < span.end_ns) {
            return wrong(at, "it ends after the span in which it began");
        }
        open.push(span.end_ns);
    }
    Ok(())
}

/// The numbers of spans in the order in which they began, callers before what they call.
pub(super) fn nested(spans: &[Span]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    // Of spans with the same times the one that ended last, so that it comes later in the list, is the caller.
    order.sort_by_key(|at| (spans[*at].begin_ns, std::cmp::Reverse((spans[*at].end_ns, *at))));
    order
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
