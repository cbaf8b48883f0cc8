//! Threads that share the work of a run: each takes part in the profile, and ends with the work.

use breakeven::profile::Handle;
use breakeven::span;

/// How many, and the profile that they are seen in.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Threads, the calling one among them.
    pub count: usize,
    /// The profile, if there is one.
    pub profile: Option<Handle>,
}

impl Workers {
    /// Does `work` on every thread, the calling one included, and waits for all. Each is told its number.
    pub fn all(&self, what: &str, work: impl Fn(usize) + Sync) {
        let work = &work;
        std::thread::scope(|scope| {
            let start = |number: usize| {
                let profile = self.profile.clone();
                scope.spawn(move || {
                    let _joined = profile.map(|profile| profile.join(format!("{what} {number}")));
                    work(number);
                })
            };
            let others: Vec<_> = (1..self.count).map(start).collect();
            work(0);
            let _stage = span!(wait "the other workers");
            for other in others {
                if let Err(panic) = other.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }
}
