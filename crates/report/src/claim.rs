//! What somebody says about a crossover, to be tested against measurements: `add@gpu:0=100k` enters, a [`Claim`] leaves.

use crate::words::{parse_size, rounded, sized};
use serde::{Deserialize, Serialize};

/// What a claim looks like.
const EXPECTED: &str =
    "expected OP[@DEVICE]=SIZE, such as `add=100k`, `add@gpu:0=never`, `matmul=512 n x n` or `*=100k`";

/// A text that is no claim.
///
/// ```
/// let error = breakeven_report::Claim::parse("add", "--claim").unwrap_err();
/// assert!(error.to_string().contains("`add=100k`"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no claim: {}", EXPECTED)]
pub struct ClaimError {
    /// What was given.
    pub text: String,
}

/// A crossover that somebody claims: from a size on, a device is faster than the CPU.
///
/// ```
/// use breakeven_report::Claim;
/// let claim = Claim::parse("add@gpu:0=100k", "--claim")?;
/// assert_eq!((claim.op.as_str(), claim.device.as_str(), claim.at), ("add", "gpu:0", Some(100_000)));
/// assert_eq!(Claim::parse("*=never", "--claim")?.words("elements"), "never pays");
/// # Ok::<(), breakeven_report::ClaimError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Claim {
    /// What is computed; `*` is everything.
    pub op: String,
    /// The device's id; `*` is every device but the CPU.
    pub device: String,
    /// From which size on the device is said to be faster; `None` is never.
    pub at: Option<u64>,
    /// What `at` counts; nothing if it counts what the op's rows count.
    #[serde(default)]
    pub unit: String,
    /// Who says so.
    pub source: String,
}

impl Claim {
    /// Reads `OP[@DEVICE]=SIZE [UNIT]`. A claim about everything counts elements unless it says what it counts.
    pub fn parse(text: &str, source: &str) -> Result<Claim, ClaimError> {
        let error = || ClaimError { text: text.to_owned() };
        let (of, at) = text.split_once('=').ok_or_else(error)?;
        let (op, device) = of.split_once('@').unwrap_or((of, "*"));
        let (op, device) = (op.trim(), device.trim());
        let (size, unit) = at.trim().split_once(char::is_whitespace).unwrap_or((at.trim(), ""));
        if op.is_empty() || device.is_empty() {
            return Err(error());
        }
        let at = size_or_never(size).ok_or_else(error)?;
        let unit = match (op, unit.trim()) {
            ("*", "") => "elements",
            (_, unit) => unit,
        };
        let [op, device, unit, source] = [op, device, unit, source].map(str::to_owned);
        Ok(Claim { op, device, at, unit, source })
    }

    /// Is it about this op on this device?
    pub(crate) fn is_about(&self, op: &str, device: &str) -> bool {
        let same_device = ["*", "gpu", ""].contains(&self.device.as_str()) || self.device == device;
        (self.op == "*" || self.op == op) && same_device
    }

    /// Is a size at or beyond the claimed one? `None` if the two count things that can't be compared.
    pub(crate) fn is_reached(&self, size: u64, unit: &str) -> Option<bool> {
        let Some(at) = self.at else { return Some(false) };
        if self.unit.is_empty() || self.unit == unit {
            return Some(size >= at);
        }
        Some(elements(size, unit)? >= elements(at, &self.unit)?)
    }

    /// What it says, in words; sizes of its own unit, or of the rows' if it has none.
    pub fn words(&self, unit: &str) -> String {
        let unit = if self.unit.is_empty() { unit } else { &self.unit };
        self.at.map_or_else(|| "never pays".to_owned(), |at| format!("pays from {} on", sized(rounded(at), unit)))
    }
}

/// A size, or `never`.
pub(crate) fn size_or_never(text: &str) -> Option<Option<u64>> {
    if text.eq_ignore_ascii_case("never") {
        return Some(None);
    }
    parse_size(text).map(Some)
}

/// How many elements a size stands for, where its unit says so.
fn elements(size: u64, unit: &str) -> Option<u128> {
    let size = u128::from(size);
    match unit {
        "elements" => Some(size),
        "n x n" => Some(size * size),
        _ => {
            let each: u64 = unit.strip_prefix("tasks of ")?.parse().ok()?;
            Some(size * u128::from(each))
        }
    }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
