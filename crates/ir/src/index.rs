//! Index arithmetic: where in memory a loop variable points, after every movement has been folded in.
//!
//! Loop variables enter with their extents, movements transform them, and an affine sum leaves wherever one exists.
//! Only a reshape that cuts across an axis needs division; the planner then splits the loop so that none is left.

use std::fmt;

/// What a term multiplies: a loop variable, or a divided index that could not be made affine.
///
/// ```
/// use breakeven_ir::index::{Atom, Index};
/// let wrapped = Atom::Wrapped { index: Box::new(Index::var(0)), divisor: 4, modulus: 0 };
/// let index = Index { offset: 0, terms: vec![(wrapped, 2)] };
/// assert_eq!((index.to_string().as_str(), index.eval(&[9])), ("(i0)/4*2", 4));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Atom {
    /// A loop variable by its number.
    Var(u8),
    /// `(index / divisor) % modulus`, rounded down; modulus 0 means none.
    Wrapped {
        /// What is divided.
        index: Box<Index>,
        /// By how much.
        divisor: i64,
        /// Wrapped to `0..modulus`.
        modulus: i64,
    },
}

/// `offset + sum of coefficient * atom`, terms sorted by atom.
///
/// ```
/// use breakeven_ir::index::Index;
/// let index = Index::var(0).times(3).plus(&Index::var(1), 1).shift(2);
/// assert_eq!(index.to_string(), "i0*3 + i1 + 2");
/// assert_eq!((index.eval(&[1, 2]), index.bounds(&[2, 3])), (7, (2, 7)));
/// assert_eq!(index.affine(2), Some(vec![3, 1]));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Index {
    /// The constant part.
    pub offset: i64,
    /// The terms, coefficients not 0.
    pub terms: Vec<(Atom, i64)>,
}

/// A wish to cut loop variable `var` so that its lower part runs over `low` values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Split {
    pub(crate) var: u8,
    pub(crate) low: usize,
}

impl Index {
    /// A constant.
    pub fn constant(offset: i64) -> Index {
        Index { offset, terms: Vec::new() }
    }

    /// A loop variable.
    pub fn var(var: u8) -> Index {
        Index { offset: 0, terms: vec![(Atom::Var(var), 1)] }
    }

    /// `self + factor * other`.
    #[must_use]
    pub fn plus(mut self, other: &Index, factor: i64) -> Index {
        self.offset += factor * other.offset;
        if factor == 0 {
            return self;
        }
        for (atom, coefficient) in &other.terms {
            match self.terms.binary_search_by(|(a, _)| a.cmp(atom)) {
                Ok(at) => {
                    self.terms[at].1 += factor * coefficient;
                    if self.terms[at].1 == 0 {
                        self.terms.remove(at);
                    }
                }
                Err(at) => self.terms.insert(at, (atom.clone(), factor * coefficient)),
            }
        }
        self
    }

    /// `self + constant`.
    #[must_use]
    pub fn shift(mut self, by: i64) -> Index {
        self.offset += by;
        self
    }

    /// `factor * self`.
    #[must_use]
    pub fn times(&self, factor: i64) -> Index {
        Index::default().plus(self, factor)
    }

    /// The smallest and largest value for variables of these extents.
    pub fn bounds(&self, extents: &[usize]) -> (i64, i64) {
        let (mut low, mut high) = (self.offset, self.offset);
        for (atom, coefficient) in &self.terms {
            let (min, max) = match atom {
                Atom::Var(var) => (0, extents[usize::from(*var)] as i64 - 1),
                Atom::Wrapped { modulus, .. } if *modulus > 0 => (0, modulus - 1),
                Atom::Wrapped { index, divisor, .. } => {
                    let (min, max) = index.bounds(extents);
                    (min.div_euclid(*divisor), max.div_euclid(*divisor))
                }
            };
            let (a, b) = (coefficient * min, coefficient * max);
            (low, high) = (low + a.min(b), high + a.max(b));
        }
        (low, high)
    }

    /// A bit mask of the variables used, also inside divisions.
    pub fn vars(&self) -> u64 {
        self.terms.iter().fold(0, |mask, (atom, _)| {
            mask | match atom {
                Atom::Var(var) => 1 << var,
                Atom::Wrapped { index, .. } => index.vars(),
            }
        })
    }

    /// The coefficient of each of `count` variables, if the index is affine.
    pub fn affine(&self, count: usize) -> Option<Vec<i64>> {
        let mut coefficients = vec![0; count];
        for (atom, coefficient) in &self.terms {
            match atom {
                Atom::Var(var) => coefficients[usize::from(*var)] = *coefficient,
                Atom::Wrapped { .. } => return None,
            }
        }
        Some(coefficients)
    }

    /// The value for these variables.
    pub fn eval(&self, vars: &[usize]) -> i64 {
        self.terms.iter().fold(self.offset, |sum, (atom, coefficient)| {
            sum + coefficient
                * match atom {
                    Atom::Var(var) => vars[usize::from(*var)] as i64,
                    Atom::Wrapped { index, divisor, modulus } => {
                        let quotient = index.eval(vars).div_euclid(*divisor);
                        if *modulus == 0 { quotient } else { quotient.rem_euclid(*modulus) }
                    }
                }
        })
    }

    /// Quotient and remainder by `divisor`, affine where the terms allow it; else as wrapped atoms, together with the
    /// split that would have made them affine.
    pub(crate) fn div_rem(&self, divisor: i64, extents: &[usize]) -> (Index, Index, Option<Split>) {
        if divisor == 1 {
            return (self.clone(), Index::default(), None);
        }
        let mut quotient = Index::constant(self.offset.div_euclid(divisor));
        let mut rest = Index::constant(self.offset.rem_euclid(divisor));
        for (atom, coefficient) in &self.terms {
            if coefficient % divisor == 0 {
                quotient.terms.push((atom.clone(), coefficient / divisor));
            } else {
                rest.terms.push((atom.clone(), *coefficient));
            }
        }
        let (low, high) = rest.bounds(extents);
        if low >= 0 && high < divisor {
            return (quotient, rest, None);
        }
        let wrapped = |divisor, modulus| {
            let atom = Atom::Wrapped { index: Box::new(rest.clone()), divisor, modulus };
            Index { offset: 0, terms: vec![(atom, 1)] }
        };
        let split = rest.terms.iter().find_map(|(atom, coefficient)| match atom {
            Atom::Var(var) if *coefficient > 0 && divisor % coefficient == 0 => {
                let (low, extent) = ((divisor / coefficient) as usize, extents[usize::from(*var)]);
                (low > 1 && low < extent && extent % low == 0).then_some(Split { var: *var, low })
            }
            _ => None,
        });
        (quotient.plus(&wrapped(divisor, 0), 1), wrapped(1, divisor), split)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut sign = |f: &mut fmt::Formatter<'_>, negative: bool| {
            let text = match (first, negative) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            first = false;
            f.write_str(text)
        };
        for (atom, coefficient) in &self.terms {
            sign(f, *coefficient < 0)?;
            match atom {
                Atom::Var(var) => write!(f, "i{var}")?,
                Atom::Wrapped { index, divisor, modulus } => {
                    write!(f, "({index})")?;
                    if *divisor != 1 {
                        write!(f, "/{divisor}")?;
                    }
                    if *modulus != 0 {
                        write!(f, "%{modulus}")?;
                    }
                }
            }
            if coefficient.abs() != 1 {
                write!(f, "*{}", coefficient.abs())?;
            }
        }
        if self.offset != 0 || self.terms.is_empty() {
            sign(f, self.offset < 0)?;
            write!(f, "{}", self.offset.abs())?;
        }
        Ok(())
    }
}
