//! A way to a worker and back: a request enters, its answer leaves. One implementation a library.

use crate::arm::Fallible;
use crate::case::Case;
use crate::channel::{Crossbeam, Flume, Kanal, Through, Tokio};
use crate::mutex::MutexQueue;
use crate::reply::{Asleep, Awake, Oneshot, Own};
use crate::request::{Outcome, Request};

/// The variant whose worker and callers look for a moment before they sleep, as ours do.
pub const AWAKE: &str = "awake";

/// Commands a pipe holds at most, where a group says nothing else.
pub const CAPACITY: usize = 1024;

/// A bounded queue with a worker at its other end, and a way back for each answer.
pub trait Pipe: Sync + Sized + 'static {
    /// The library's name.
    const NAME: &'static str;
    /// How it is used; empty for the plain way.
    const VARIANT: &'static str = "";
    /// What an answer is waited for with. An answer that nobody waits for any more is dropped.
    type Reply: Send;

    /// Starts the worker. It ends when the pipe is dropped.
    fn open(capacity: usize) -> Fallible<Self>;

    /// Hands a request over; blocks while the queue is full.
    fn submit(&self, request: Request) -> Self::Reply;

    /// Blocks until the answer is there.
    fn wait(reply: Self::Reply) -> Outcome;

    /// Submits one request and waits for its answer.
    fn call(&self, request: Request) -> Outcome {
        Self::wait(self.submit(request))
    }
}

/// Something that is tried with every pipe.
pub trait Experiment {
    /// The case of one library.
    fn case<P: Pipe>(&self) -> Fallible<Case>;
}

/// The experiment with every pipe; a pipe that can't be opened is an error of the whole row.
pub fn with_every_pipe(experiment: &impl Experiment) -> Fallible<Vec<Case>> {
    let mut cases = Vec::new();
    #[cfg(feature = "ours")]
    cases.push(experiment.case::<crate::ours::pipe::Ours>()?);
    cases.extend(with_every_peer(experiment)?);
    Ok(cases)
}

/// The experiment with every pipe but ours, where ours has another way of doing the same.
pub fn with_every_peer(experiment: &impl Experiment) -> Fallible<Vec<Case>> {
    let mut cases = vec![
        experiment.case::<MutexQueue<Asleep, false>>()?,
        experiment.case::<Through<Crossbeam, Own<Crossbeam>, false>>()?,
        experiment.case::<Through<Flume, Own<Flume>, false>>()?,
        experiment.case::<Through<Kanal, Own<Kanal>, false>>()?,
        experiment.case::<Through<Tokio, Oneshot, false>>()?,
    ];
    cases.extend(with_every_peer_awake(experiment)?);
    Ok(cases)
}

/// The experiment with every peer at its best.
pub fn with_every_peer_awake(experiment: &impl Experiment) -> Fallible<Vec<Case>> {
    Ok(vec![
        experiment.case::<MutexQueue<Awake, true>>()?,
        experiment.case::<Through<Crossbeam, Awake, true>>()?,
        experiment.case::<Through<Flume, Awake, true>>()?,
        experiment.case::<Through<Kanal, Awake, true>>()?,
        experiment.case::<Through<Tokio, Awake, true>>()?,
    ])
}

/// Starts a worker's thread.
pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Fallible<()> {
    let thread = std::thread::Builder::new().name(format!("{name}-worker"));
    thread.spawn(run).map(drop).map_err(|error| format!("no thread for {name}'s worker: {error}").into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::request::Answer;

    struct Answers;

    impl Experiment for Answers {
        fn case<P: Pipe>(&self) -> Fallible<Case> {
            let pipe = P::open(4)?;
            // More than it holds: the sender waits, nothing is lost.
            let replies: Vec<P::Reply> = (0..64).map(|_| pipe.submit(Request::Synchronize)).collect();
            for reply in replies {
                assert_eq!(P::wait(reply), Ok(Answer::Done), "{}", P::NAME);
            }
            assert_eq!(pipe.call(Request::Write(Bytes::from_static(b"abcd"))), Ok(Answer::Done));
            assert_eq!(pipe.call(Request::Read(4)), Ok(Answer::Data(Bytes::from_static(b"abcd"))));
            pipe.call(Request::Fail).expect_err(P::NAME);
            // An answer that nobody waits for does not stop the worker.
            drop(pipe.submit(Request::Synchronize));
            Ok(Case::whole(P::NAME, P::VARIANT, move || Ok(pipe.call(Request::Synchronize).map(drop)?)))
        }
    }

    #[test]
    fn every_pipe_answers_everything_in_order() {
        for mut case in with_every_pipe(&Answers).unwrap() {
            (case.run)(1).unwrap();
        }
    }
}
