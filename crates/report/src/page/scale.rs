//! A logarithmic axis: values enter, places on the page and round values to write beside them leave.

use crate::curves::ln;

/// An axis from one value to another, laid over a stretch of the page.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// Logarithms of the values at the ends.
    from: f64,
    to: f64,
    /// Where the ends lie on the page.
    start: f64,
    end: f64,
}

impl Scale {
    /// An axis over these values with a little air around them; they may be all the same.
    pub fn over(values: impl Iterator<Item = u64>, air: f64) -> Scale {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.map(ln) {
            (from, to) = (from.min(value), to.max(value));
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        // One value alone gets a decade of its own.
        let air = if to - from < 0.1 { 1.15 } else { (to - from) * air };
        Scale { from: from - air, to: to + air, start: 0.0, end: 1.0 }
    }

    /// The same axis at this stretch of the page.
    pub fn placed(self, start: f64, end: f64) -> Scale {
        Scale { start, end, ..self }
    }

    /// Where a value lies.
    pub fn px(&self, value: u64) -> f64 {
        self.ln_px(ln(value))
    }

    /// Where a value lies, given its logarithm.
    pub fn ln_px(&self, ln_value: f64) -> f64 {
        self.start + (self.end - self.start) * (ln_value - self.from) / (self.to - self.from)
    }

    /// Round values on the axis, at most `most` of them: powers of ten, and where those are few 2 and 5 of each too.
    pub fn ticks(&self, most: usize) -> Vec<u64> {
        let decades: Vec<u64> = (0..20).map(|e| 10u64.pow(e)).collect();
        let inside = |&v: &u64| (self.from - 1e-9..=self.to + 1e-9).contains(&ln(v));
        let fine: Vec<u64> = decades.iter().flat_map(|&d| [d, d.saturating_mul(2), d.saturating_mul(5)]).collect();
        let fine: Vec<u64> = fine.into_iter().filter(inside).collect();
        if fine.len() <= most {
            return fine;
        }
        let mut ticks: Vec<u64> = decades.into_iter().filter(inside).collect();
        while ticks.len() > most.max(2) {
            // Every second one, counted so that powers of 1000, where units change, stay if they can.
            let odd = ticks.iter().position(|t| t.ilog10() % 3 == 0).unwrap_or(0) % 2;
            ticks = ticks.into_iter().skip(odd).step_by(2).collect();
        }
        ticks
    }
}

#[cfg(test)]
#[path = "scale_tests.rs"]
mod tests;
