//! A plan cut in two, so that its front can run on one device and its back on another.
//!
//! A plan and a place between two of its kernels enter. Two plans leave, each whole in itself with scratch of its own,
//! and the lists by which a caller hands values from one to the other. Every buffer is written by one kernel, before
//! anyone reads it, so its life tells which side makes it and which sides read it: the first kernel that touches it is
//! its maker, and all later ones are readers. Nothing is moved that stays on one side.

use super::{BufferId, BufferInfo, Kernel, Place, Plan};
use crate::check;
use crate::expr::Body;
use crate::memory::{self, lifetimes};
use std::ops::Range;
use std::sync::Arc;

/// Where an input of a cut's back comes from.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::From};
/// let (x, w) = (Tensor::input("x", DType::F32, [4, 8])?, Tensor::input("w", DType::F32, [8, 8])?);
/// let plan = Plan::new(&[&(x.matmul(&w)?.softmax(-1)? + &x)?])?;
/// let cut = plan.cut(1).expect("a product, then a softmax");
/// assert_eq!(cut.back_sources, [From::Input(0), From::Front(0)]);   // x again, and the product
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum From {
    /// The whole plan's input of this number.
    Input(usize),
    /// This one of the front's output buffers.
    Front(usize),
}

/// Which side of a cut makes an output.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::MadeBy};
/// let (x, w) = (Tensor::input("x", DType::F32, [4, 8])?, Tensor::input("w", DType::F32, [8, 8])?);
/// let y = x.matmul(&w)?;
/// let cut = Plan::new(&[&y.softmax(-1)?, &y])?.cut(1).expect("a product, then a softmax");
/// assert_eq!(cut.outputs, [MadeBy::Back(0), MadeBy::Front(0)]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MadeBy {
    /// It is this one of the front's output buffers.
    Front(usize),
    /// It is this one of the back's output buffers.
    Back(usize),
}

/// A plan in two parts that compute together what it computes: see [`Plan::cut`].
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let (x, w) = (Tensor::input("x", DType::F32, [4, 8])?, Tensor::input("w", DType::F32, [8, 16])?);
/// let plan = Plan::new(&[&x.matmul(&w)?.softmax(-1)?])?;
/// let cut = plan.cut(1).expect("a product, then a softmax");
/// assert_eq!((cut.front.kernels.len(), cut.back.kernels.len()), (1, 1));
/// assert_eq!((cut.front_inputs.len(), cut.back.inputs), (2, 1));
/// assert_eq!(plan.crossing_bytes(1), 4 * 16 * 4);   // the product goes over
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cut {
    /// The kernels before the cut. Its outputs are what the back reads of it and what the whole plan gives of it, each
    /// buffer once.
    pub front: Arc<Plan>,
    /// The kernels from the cut on. Its outputs are those of the whole plan that the front does not make.
    pub back: Arc<Plan>,
    /// For each input of the front: which input of the whole plan it is.
    pub front_inputs: Vec<usize>,
    /// For each input of the back: where it comes from.
    pub back_sources: Vec<From>,
    /// For each of the whole plan's [output buffers](Plan::output_buffers): who makes it.
    pub outputs: Vec<MadeBy>,
}

impl Plan {
    /// Cuts the plan before kernel `at`. `None` if a side would be left without a kernel, or if a kernel behind the cut
    /// writes to a buffer from before it, which no plan of [`Plan::new`] does.
    ///
    /// An input of the plan that neither side reads goes to neither. An output that nobody writes, because it is empty,
    /// is the back's.
    pub fn cut(&self, at: usize) -> Option<Cut> {
        if at == 0 || at >= self.kernels.len() {
            return None;
        }
        let lives = lifetimes(self);
        // A buffer that no kernel touches is on neither side: its life begins at the end and ends at the beginning.
        let in_front = |&id: &usize| lives[id].0 < at;
        let in_back = |&id: &usize| lives[id].1 >= at;
        let is_output = |&id: &usize| matches!(self.buffers[id].place, Place::Output(_));
        let mut rewritten = self.kernels[at..].iter().flat_map(|kernel| &kernel.end().stores);
        if rewritten.any(|store| in_front(&(store.buffer.0 as usize))) {
            return None;
        }
        let made = self.inputs..self.buffers.len();
        let front_inputs: Vec<usize> = (0..self.inputs).filter(in_front).collect();
        let front_outputs: Vec<usize> =
            made.clone().filter(|id| in_front(id) && (in_back(id) || is_output(id))).collect();
        let back_outputs: Vec<usize> = made.clone().filter(|id| is_output(id) && !in_front(id)).collect();
        let (mut back_inputs, mut back_sources) = (Vec::new(), Vec::new());
        let own = (0..self.inputs).map(|id| (id, From::Input(id)));
        let crossing = front_outputs.iter().enumerate().map(|(number, &id)| (id, From::Front(number)));
        for (id, source) in own.chain(crossing).filter(|(id, _)| in_back(id)) {
            back_inputs.push(id);
            back_sources.push(source);
        }
        // Both lists ascend, as the buffers do.
        let maker = |id: usize| match front_outputs.binary_search(&id) {
            Ok(number) => MadeBy::Front(number),
            Err(_) => MadeBy::Back(back_outputs.partition_point(|&other| other < id)),
        };
        Some(Cut {
            front: Arc::new(self.part(&lives, 0..at, &front_inputs, &front_outputs)),
            back: Arc::new(self.part(&lives, at..self.kernels.len(), &back_inputs, &back_outputs)),
            outputs: made.filter(is_output).map(maker).collect(),
            front_inputs,
            back_sources,
        })
    }

    /// Bytes that go from the front to the back of a [cut](Plan::cut) before kernel `at`; 0 where there is none.
    pub fn crossing_bytes(&self, at: usize) -> u64 {
        let made = lifetimes(self).into_iter().zip(&self.buffers).skip(self.inputs);
        made.filter(|((first, last), _)| *first < at && *last >= at).map(|(_, buffer)| buffer.bytes() as u64).sum()
    }

    /// Some of the kernels as a plan with these buffers as its inputs and outputs. Whatever else has its life within
    /// them is a temporary.
    fn part(&self, lives: &[(usize, usize)], kernels: Range<usize>, inputs: &[usize], outputs: &[usize]) -> Plan {
        // Both lists ascend, as the buffers do.
        let is_named = |id: &usize| inputs.binary_search(id).is_ok() || outputs.binary_search(id).is_ok();
        let temporaries = (0..self.buffers.len()).filter(|id| kernels.contains(&lives[*id].0) && !is_named(id));
        let inputs_first = inputs.iter().enumerate().map(|(number, &id)| (id, Place::Input(number)));
        let placed = inputs_first
            .chain(outputs.iter().enumerate().map(|(number, &id)| (id, Place::Output(number))))
            .chain(temporaries.map(|id| (id, Place::Scratch(0))));
        let mut ids: Vec<Option<BufferId>> = vec![None; self.buffers.len()];
        let mut buffers = Vec::new();
        for (id, place) in placed {
            ids[id] = Some(BufferId(buffers.len() as u32));
            buffers.push(BufferInfo { place, ..self.buffers[id] });
        }
        let outputs = outputs.iter().filter_map(|&id| ids[id]).collect();
        let kernels = self.kernels[kernels.clone()].iter().map(|kernel| renumbered(kernel, &ids)).collect();
        let mut plan = Plan { buffers, kernels, inputs: inputs.len(), outputs, scratch_bytes: 0 };
        check::plan(&plan);
        memory::lay_out(&mut plan);
        check::memory(&plan);
        plan
    }
}

/// The kernel with its buffers' new numbers.
fn renumbered(kernel: &Kernel, ids: &[Option<BufferId>]) -> Kernel {
    let renumber = |id: &mut BufferId| {
        let new = ids[id.0 as usize];
        debug_assert!(new.is_some(), "{id} is touched and not of this part");
        *id = new.unwrap_or(*id);
    };
    let in_body = |body: &mut Body| body.accesses.iter_mut().for_each(|access| renumber(&mut access.buffer));
    let mut kernel = kernel.clone();
    let end = match &mut kernel {
        Kernel::Loops(loops) => loops,
        Kernel::Contract(contract) => {
            in_body(&mut contract.left.body);
            in_body(&mut contract.right.body);
            &mut contract.end
        }
    };
    // The place of a product is one of the end's accesses, and moves with its store.
    in_body(&mut end.body);
    end.stores.iter_mut().for_each(|store| renumber(&mut store.buffer));
    kernel
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
