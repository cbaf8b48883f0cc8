//! Where an access points, in the numbering of the lowered loops: affine wherever possible.

use breakeven_ir::expr::Condition;
use breakeven_ir::index::{Atom, Index};

/// An index over the lowered variables.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) offset: i64,
    /// The coefficient of each variable; all 0 if `general` is set.
    pub(crate) coefficients: Vec<i64>,
    /// An index with divisions, evaluated element by element.
    pub(crate) general: Option<Index>,
}

/// `0 <= place < below`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) place: Place,
    pub(crate) below: i64,
}

impl Place {
    /// `index` with variable `v` renamed to `names[v]`; merged variables have one name, and the coefficient of the
    /// last of them.
    pub(crate) fn new(index: &Index, names: &[usize], count: usize) -> Place {
        match index.affine(names.len()) {
            Some(old) => {
                let mut coefficients = vec![0; count];
                // Of variables merged into one, the innermost comes last and has the smallest stride.
                for (var, &coefficient) in old.iter().enumerate() {
                    coefficients[names[var]] = coefficient;
                }
                Place { offset: index.offset, coefficients, general: None }
            }
            None => Place { offset: 0, coefficients: vec![0; count], general: Some(renamed(index, names)) },
        }
    }

    /// The element at this point.
    pub(crate) fn at(&self, point: &[usize]) -> i64 {
        match &self.general {
            None => self.coefficients.iter().zip(point).fold(self.offset, |sum, (c, &v)| sum + c * v as i64),
            Some(index) => index.eval(point),
        }
    }
}

impl Bound {
    pub(crate) fn new(condition: &Condition, names: &[usize], count: usize) -> Bound {
        Bound { place: Place::new(&condition.index, names, count), below: condition.below }
    }
}

fn renamed(index: &Index, names: &[usize]) -> Index {
    let terms = index.terms.iter().map(|(atom, coefficient)| {
        let atom = match atom {
            Atom::Var(var) => Atom::Var(names[usize::from(*var)] as u8),
            Atom::Wrapped { index, divisor, modulus } => {
                Atom::Wrapped { index: Box::new(renamed(index, names)), divisor: *divisor, modulus: *modulus }
            }
        };
        (atom, *coefficient)
    });
    Index { offset: index.offset, terms: terms.collect() }
}
