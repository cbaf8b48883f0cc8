//! Large copies: pieces of memory enter in pairs, one of each pair copied to the other leaves, by two threads where that
//! is worth starting one.
//!
//! The device waits for its inputs and the caller for the results, and one core moves little more than half of what
//! memory could deliver.

use std::thread;

/// Fewer bytes than this are copied before another thread is under way: 2 MB take 200 us, a thread 50.
const WORTH_A_THREAD: usize = 2 << 20;

/// Bytes of the parts that large pieces are cut into, so that two threads have about as much to do.
pub(crate) const PART: usize = 256 << 10;

/// Who copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hands {
    /// The caller alone, because the device has something to do, and if that is software, no core is idle: eight tasks of 3 MB,
    /// each copied while the one before was computed, were 1.15 to 1.22 times as fast as apart, and 1.04 to 1.09 times with the
    /// help of a thread.
    Own,
    /// Another thread as well, if there is much to copy.
    Helped,
}

/// Runs copies, which are listed with their bytes; about half of them elsewhere if they are large.
pub(crate) fn run<T: Send>(hands: Hands, copies: &mut [(usize, Option<T>)], copy: impl Fn(T) + Sync) {
    let work = |copies: &mut [(usize, Option<T>)]| copies.iter_mut().filter_map(|(_, one)| one.take()).for_each(&copy);
    let all: usize = copies.iter().map(|(bytes, _)| bytes).sum();
    if hands == Hands::Own || all < WORTH_A_THREAD {
        return work(copies);
    }
    let mut before = 0;
    let first = copies.iter().take_while(|(bytes, _)| {
        before += bytes;
        before <= all / 2 + bytes / 2
    });
    let (ours, theirs) = copies.split_at_mut(first.count());
    thread::scope(|scope| {
        // Without a thread to be had, what it would have copied is still there afterwards.
        let _ = thread::Builder::new().spawn_scoped(scope, || work(&mut *theirs));
        work(ours);
    });
    work(copies);
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
