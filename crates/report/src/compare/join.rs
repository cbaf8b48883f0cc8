//! The same op on several sides: curves of each side enter, one entry for each op with the curves of all sides leaves.

use super::Side;
use crate::curves::{Curves, Line, curves, rank};
use crate::import::IMPORTED;

/// An op with its curves on each side, `None` where it was not measured.
pub(super) struct Joined<'s> {
    pub op: &'s str,
    pub class: &'s str,
    pub unit: &'s str,
    pub sides: Vec<Option<Curves<'s>>>,
}

impl<'s> Joined<'s> {
    /// Is it the same work? Other tools do not tell a class.
    fn is(&self, curves: &Curves<'_>) -> bool {
        let same_class = self.class == curves.class || [self.class, curves.class].contains(&IMPORTED);
        self.op == curves.op && self.unit == curves.unit && same_class
    }

    /// Every line with the number of its side.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &Line<'s>)> {
        self.sides.iter().enumerate().flat_map(|(n, curves)| {
            curves.iter().flat_map(move |curves| curves.lines.iter().map(move |line| (n, line)))
        })
    }
}

/// Every op that any side has: by class, otherwise in the order of the sides.
pub(super) fn join(sides: &[Side]) -> Vec<Joined<'_>> {
    let mut all: Vec<Joined> = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        for curves in curves(&side.scan) {
            let known = all.iter_mut().find(|joined| joined.sides[number].is_none() && joined.is(&curves));
            match known {
                Some(joined) => {
                    if joined.class == IMPORTED {
                        joined.class = curves.class;
                    }
                    joined.sides[number] = Some(curves);
                }
                None => {
                    let (op, class, unit) = (curves.op, curves.class, curves.unit);
                    let mut of_sides: Vec<Option<Curves>> = sides.iter().map(|_| None).collect();
                    of_sides[number] = Some(curves);
                    all.push(Joined { op, class, unit, sides: of_sides });
                }
            }
        }
    }
    all.sort_by_key(|joined| rank(joined.class));
    all
}
