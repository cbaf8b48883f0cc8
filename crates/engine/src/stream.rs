//! A program over an endless supply of inputs: an iterator of inputs enters, results leave in the same order.
//!
//! As many are in flight as the devices that share the queue can work on, and one more: while one is computed, the next
//! one's inputs go up and the results of the one before come back. Nothing else is kept, so that memory is bounded
//! however long the stream is.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::program::Program;
use crate::queue::{Job, Patience, Priority, Queue, Ticket};
use breakeven_ir::Tensor;
use breakeven_ir::plan::BufferInfo;
use std::collections::VecDeque;
use std::sync::Arc;

/// Results of a program, in the order of its inputs: see [`Program::stream`].
///
/// ```
/// use breakeven::{DType, Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [2])?;
/// let program = engine.compile(&[&x], &[&x.square()?])?;
/// let inputs = (0..100).map(|i| [Tensor::from_slice(&[i as f32, 1.0], [2]).unwrap()]);
/// for (i, outputs) in program.stream(inputs).enumerate() {
///     assert_eq!(outputs?[0].as_slice::<f32>()?, [(i * i) as f32, 1.0]);
/// }
/// # Ok::<(), breakeven::Error>(())
/// ```
pub struct Stream<I> {
    program: Program,
    /// Kept while the stream is: dropping the engine meanwhile ends the queue when the stream has ended.
    queue: Option<Arc<Queue>>,
    inputs: Option<I>,
    in_flight: VecDeque<Result<Ticket>>,
    priority: Priority,
}

/// Bytes of inputs and outputs that may be in flight, unless one batch alone has more.
const IN_FLIGHT_BYTES: usize = 1 << 30;

impl Program {
    /// Runs it over these inputs, several at a time, and gives the results in their order. An input that fails gives its
    /// error, and the stream goes on. Inputs are taken from the iterator as results are taken from the stream.
    pub fn stream<I>(&self, inputs: I) -> Stream<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoIterator<Item = Tensor>,
    {
        Stream {
            program: self.clone(),
            queue: self.inner.queue.upgrade(),
            inputs: Some(inputs.into_iter()),
            in_flight: VecDeque::new(),
            priority: Priority::default(),
        }
    }
}

impl<I> Stream<I> {
    /// How urgent its batches are.
    pub fn priority(mut self, priority: Priority) -> Stream<I> {
        self.priority = priority;
        self
    }

    /// How many batches may be in flight.
    fn depth(&self, seats: usize) -> usize {
        let plan = self.program.plan();
        let bytes = |infos: &mut dyn Iterator<Item = &BufferInfo>| infos.map(BufferInfo::bytes).sum::<usize>();
        let each = bytes(&mut plan.input_infos().iter()) + bytes(&mut plan.output_buffers());
        (seats + 1).min(IN_FLIGHT_BYTES / each.max(1)).max(1)
    }
}

impl<I> Iterator for Stream<I>
where
    I: Iterator,
    I::Item: IntoIterator<Item = Tensor>,
{
    type Item = Result<Vec<Array>>;

    fn next(&mut self) -> Option<Result<Vec<Array>>> {
        let core = match &self.queue {
            Some(queue) => queue.of(&self.program.inner.engine).cloned(),
            None => Err(Error::QueueClosed),
        };
        let depth = self.depth(core.as_ref().map_or(0, |core| core.seats()));
        while self.in_flight.len() < depth {
            let Some(inputs) = self.inputs.as_mut().and_then(Iterator::next) else {
                self.inputs = None;
                break;
            };
            let submitted = core.clone().and_then(|core| {
                let job = Job::program(&self.program, inputs).priority(self.priority).alone();
                core.submit(job, Patience::Endless)
            });
            self.in_flight.push_back(submitted);
        }
        Some(self.in_flight.pop_front()?.and_then(Ticket::arrays))
    }
}

impl<I> std::fmt::Debug for Stream<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?}, {} in flight)", self.program, self.in_flight.len())
    }
}
