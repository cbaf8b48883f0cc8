//! Values for a program: those of callers enter, and are what the program was recorded with, or an error says what is not; other
//! shapes make another [`Bound`] of the same program.

use super::Inner;
use super::bound::Bound;
use crate::array::View;
use crate::error::{Error, Result};
use crate::execute::check_inputs;
use breakeven_ir::{DType, Plan, Shape, Tensor};
use std::sync::{Arc, PoisonError};

impl Inner {
    pub(crate) fn name(&self, at: usize) -> String {
        self.inputs[at].as_input().map_or(String::new(), |i| i.name().into())
    }

    pub(crate) fn input_shape(&self, at: usize) -> Shape {
        self.inputs[at].shape()
    }

    pub(crate) fn input_dtype(&self, at: usize) -> DType {
        self.inputs[at].dtype()
    }

    /// Are these values plain slices of the program's own sizes? They are the common case.
    pub(crate) fn are_plain(&self, values: &[View<'_>]) -> bool {
        let plain = |(view, (dtype, bytes)): (&View<'_>, &(DType, usize))| {
            view.shape.is_none() && view.dtype == *dtype && view.len_bytes() == *bytes
        };
        values.len() == self.sizes.len() && values.iter().zip(&self.sizes).all(plain)
    }

    /// Are these values of the program's own dtypes and shapes?
    pub(crate) fn check(&self, values: &[View<'_>]) -> Result<()> {
        if self.are_plain(values) {
            return Ok(());
        }
        self.check_count(values)?;
        if self.bound.plain {
            return check_inputs(self.bound.prepared.plan(), values, |at| self.name(at));
        }
        for (at, (view, input)) in values.iter().zip(&self.inputs).enumerate() {
            let info = breakeven_ir::plan::BufferInfo {
                dtype: input.dtype(),
                shape: input.shape(),
                place: breakeven_ir::plan::Place::Input(at),
            };
            let one = Plan { buffers: vec![info], kernels: vec![], inputs: 1, outputs: vec![], scratch_bytes: 0 };
            check_inputs(&one, &[*view], |_| self.name(at))?;
        }
        Ok(())
    }

    pub(crate) fn check_count(&self, values: &[View<'_>]) -> Result<()> {
        self.check_number(values.len())
    }

    fn check_number(&self, found: usize) -> Result<()> {
        if found != self.inputs.len() {
            return Err(Error::Count { what: "values", found, expected: self.inputs.len() });
        }
        Ok(())
    }

    /// Are these values data, as many as there are inputs, and of their dtypes? They may be of other shapes.
    pub(crate) fn check_kinds(&self, values: &[Tensor]) -> Result<()> {
        self.check_number(values.len())?;
        for (at, (value, (dtype, _))) in values.iter().zip(&self.sizes).enumerate() {
            if value.as_data().is_none() {
                return Err(Error::NoData { name: self.name(at) });
            }
            if value.dtype() != *dtype {
                return Err(Error::InputDType { name: self.name(at), expected: *dtype, found: value.dtype() });
            }
        }
        Ok(())
    }

    /// Are these values of the program's own shapes?
    pub(crate) fn fits(&self, values: &[View<'_>]) -> bool {
        let fits = |(view, input): (&View<'_>, &Tensor)| view.shape.is_none_or(|shape| shape == input.shape());
        values.iter().zip(&self.inputs).all(fits)
    }

    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    pub(crate) fn input_bytes(&self, at: usize) -> usize {
        self.sizes[at].1
    }

    /// The program at these input shapes.
    pub(crate) fn at_shapes(&self, shapes: &[Shape]) -> Result<Arc<Bound>> {
        if self.inputs.iter().zip(shapes).all(|(input, shape)| input.shape() == *shape) {
            return Ok(self.bound.clone());
        }
        let lock = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = lock().get(shapes) {
            return Ok(bound.clone());
        }
        fn refs(list: &[Tensor]) -> Vec<&Tensor> {
            list.iter().collect()
        }
        let (inputs, outputs) = Tensor::with_input_shapes(&refs(&self.outputs), &refs(&self.inputs), shapes)?;
        let bound = Arc::new(Bound::new(&self.engine, &refs(&inputs), &refs(&outputs))?);
        let mut others = lock();
        // Tasks come in few sizes or in endless ones: in that case remembering them all would only fill memory.
        if others.len() >= MAX_SHAPES {
            others.clear();
        }
        others.insert(shapes.to_vec(), bound.clone());
        Ok(bound)
    }
}

/// Shapes that one program remembers.
const MAX_SHAPES: usize = 4096;
