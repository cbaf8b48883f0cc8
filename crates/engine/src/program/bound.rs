//! A program at fixed shapes: recorded inputs and outputs enter, a plan that knows where each of its inputs comes from leaves.

use crate::array::View;
use crate::cached::key::{self, Digest, Leaf};
use crate::engine::Shared;
use crate::error::Result;
use crate::execute::{self, Views};
use crate::profile::Outputs;
use breakeven_ir::backend::{Prepared, RunError, Source};
use breakeven_ir::{Buffer, PlanKey, Tensor, plan_key};
use std::sync::{Arc, OnceLock};

/// A program at fixed shapes.
pub(crate) struct Bound {
    pub(crate) prepared: Arc<dyn Prepared>,
    /// Where each of the plan's inputs comes from.
    sources: Vec<Origin>,
    /// Are the plan's inputs exactly the program's, in order?
    pub(crate) plain: bool,
    /// Bytes of one task's results among many: see [`Plan::result_stride`].
    pub(crate) stride: usize,
    /// What it computes.
    outputs: Vec<Tensor>,
    /// Does that hold hardly any data?
    light: bool,
    structure: PlanKey,
    /// See [`Bound::fingerprint`].
    fingerprint: OnceLock<Digest>,
}

enum Origin {
    /// The program's input of this number.
    Input(usize),
    /// Data that the program was recorded with.
    Data(Tensor),
}

/// Data up to this size may be kept by whoever describes the program later.
const LIGHT_BYTES: usize = 4096;

/// Is the data that a program was recorded with small, and on the host?
fn is_light(sources: &[Origin]) -> bool {
    let bytes = |source: &Origin| match source {
        Origin::Input(_) => Some(0),
        Origin::Data(tensor) => tensor.as_data().filter(|data| data.resident().is_none()).map(Buffer::len_bytes),
    };
    sources.iter().map(bytes).sum::<Option<usize>>().is_some_and(|bytes| bytes <= LIGHT_BYTES)
}

impl Bound {
    pub(super) fn new(engine: &Shared, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Bound> {
        let (key, leaves) = plan_key(outputs);
        let prepared = engine.plans.get(key.clone(), outputs, &*engine.cpu)?;
        let sources: Result<Vec<Origin>> = leaves
            .iter()
            .map(|leaf| match leaf.as_input() {
                None => Ok(Origin::Data((*leaf).clone())),
                Some(input) => inputs
                    .iter()
                    .position(|i| i.as_input().is_some_and(|i| std::ptr::eq(i, input)))
                    .map(Origin::Input)
                    .ok_or_else(|| breakeven_ir::Error::UnboundInput { name: input.name().into() }.into()),
            })
            .collect();
        let sources = sources?;
        let in_order = |(at, source): (usize, &Origin)| matches!(source, Origin::Input(i) if *i == at);
        let plain = sources.len() == inputs.len() && sources.iter().enumerate().all(in_order);
        let plan = prepared.plan();
        let stride = plan.result_stride();
        let light = is_light(&sources);
        let outputs = outputs.iter().map(|tensor| (*tensor).clone()).collect();
        Ok(Bound { prepared, sources, plain, stride, outputs, light, structure: key, fingerprint: OnceLock::new() })
    }

    /// What it computes, for whoever has to describe it.
    pub(crate) fn outputs(&self) -> Outputs<'_> {
        if self.light { Outputs::Light(&self.outputs) } else { Outputs::Owned(&self.outputs) }
    }

    /// What is computed, but for the values that tasks bring: the structure and the data that it was recorded with.
    /// Hashed when it is first asked for: data may be large, and most programs are never asked.
    pub(crate) fn fingerprint(&self) -> Result<&Digest> {
        if let Some(fingerprint) = self.fingerprint.get() {
            return Ok(fingerprint);
        }
        let leaf = |source| match source {
            &Origin::Input(_) => Ok(Leaf::Input),
            Origin::Data(tensor) => Ok(Leaf::Data(tensor.as_data().map_or(Ok(&[][..]), Buffer::try_bytes)?)),
        };
        let leaves: Result<Vec<Leaf<'_>>, RunError> = self.sources.iter().map(leaf).collect();
        let fingerprint = key::fingerprint(self.structure.words(), leaves?.into_iter());
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Gives the bytes that a task brings to `take`, in the plan's order.
    pub(crate) fn for_each_value<'a>(&self, values: &[View<'a>], mut take: impl FnMut(&'a [u8])) {
        for source in &self.sources {
            if let Origin::Input(at) = source {
                take(values[*at].host());
            }
        }
    }

    /// Gives the plan's inputs to `take`, in order.
    #[inline]
    pub(crate) fn for_each_input<'a>(&'a self, values: &[View<'a>], mut take: impl FnMut(&'a [u8])) {
        if self.plain {
            values.iter().for_each(|view| take(view.host()));
            return;
        }
        for source in &self.sources {
            match source {
                Origin::Input(at) => take(values[*at].host()),
                Origin::Data(tensor) => View::of(tensor).into_iter().for_each(|view| take(view.host())),
            }
        }
    }

    /// Calls `work` with the plan's inputs.
    pub(crate) fn with_inputs<R>(&self, values: &[View<'_>], work: impl FnOnce(&[&[u8]]) -> R) -> R {
        if self.plain {
            return execute::with_bytes(values, work);
        }
        execute::with_bytes(&self.views(values), work)
    }

    /// Calls `work` with the plan's inputs, from the bytes of the program's.
    pub(crate) fn with_plan_inputs<R>(&self, values: &[&[u8]], work: impl FnOnce(&[&[u8]]) -> R) -> R {
        let mut inputs: Vec<&[u8]> = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            inputs.push(match source {
                Origin::Input(at) => values[*at],
                Origin::Data(tensor) => tensor.as_data().map_or(&[][..], |data| data.as_bytes()),
            });
        }
        work(&inputs)
    }

    /// The plan's inputs, from memory of the program's.
    pub(crate) fn plan_sources<'a>(&'a self, values: &'a [Buffer]) -> Vec<Source<'a>> {
        let source = |source: &'a Origin| match source {
            Origin::Input(at) => Source::Shared(&values[*at]),
            Origin::Data(tensor) => tensor.as_data().map_or(Source::Bytes(&[]), Source::Shared),
        };
        self.sources.iter().map(source).collect()
    }

    /// The plan's inputs.
    pub(crate) fn views<'a>(&'a self, values: &[View<'a>]) -> Views<'a> {
        let mut views = Views::with_capacity(self.sources.len());
        for source in &self.sources {
            match source {
                Origin::Input(at) => views.push(values[*at]),
                Origin::Data(tensor) => views.extend(View::of(tensor)),
            }
        }
        views
    }
}
