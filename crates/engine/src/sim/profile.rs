//! The profile of a simulated device: a small TOML text enters, the costs of its batches leave, or the line that is wrong.
//!
//! A profile says what calls took, as people publish it: a call's fixed part, the bandwidths, and total times of whole
//! calls. What is left of those without the fixed part and the transfers is the kernel's, so that a published call takes
//! the published time.

use super::cost::{Costs, Curve};
use breakeven_ir::Op;
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

/// Every profile that comes with this library: its name and its text.
const SHIPPED: [(&str, &str); 3] = [
    ("rtx4090", include_str!("../../profiles/rtx4090.toml")),
    ("dx12-laptop", include_str!("../../profiles/dx12-laptop.toml")),
    ("modern-discrete", include_str!("../../profiles/modern-discrete.toml")),
];

/// f32.
const ELEM_BYTES: f64 = 4.0;

/// Why a profile can't be used.
///
/// ```
/// use breakeven::{ProfileError, SimProfile};
/// let error = SimProfile::by_name("rtx9090").unwrap_err();
/// assert!(matches!(&error, ProfileError::Unknown { known, .. } if known.contains("rtx4090")));
/// let error = SimProfile::parse("name = 'mine'\nspeed = 9").unwrap_err();
/// assert!(error.to_string().starts_with("line 2: unknown field `speed`, expected one of"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Nothing of that name is there.
    #[error("no simulated device is called `{name}`: expected {known}, or the path of a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that are there.
        known: String,
    },
    /// The file can't be read.
    #[error("{path}: {why}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
    /// It is not TOML, or not a profile's keys and types.
    #[error("line {line}: {message}")]
    Form {
        /// Where.
        line: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// A value that no device has.
    #[error("line {line}: {key} = {found}: expected {expected}")]
    Value {
        /// Where.
        line: usize,
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
}

/// What a simulated device is called, where its figures come from, and what its batches cost.
///
/// ```
/// let profile = breakeven::SimProfile::by_name("rtx4090")?;
/// assert_eq!(profile.name(), "RTX 4090, set up for each call");
/// assert!(profile.source().starts_with("published figures"));
/// # Ok::<(), breakeven::ProfileError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct SimProfile {
    name: String,
    source: String,
    costs: Costs,
}

impl SimProfile {
    /// The profiles that come with this library: name and text of each.
    pub fn shipped() -> &'static [(&'static str, &'static str)] {
        &SHIPPED
    }

    /// A profile that comes with this library.
    pub fn by_name(name: &str) -> Result<SimProfile, ProfileError> {
        match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, text)) => SimProfile::parse(text),
            None => Err(ProfileError::Unknown { name: name.into(), known: SHIPPED.map(|(name, _)| name).join(", ") }),
        }
    }

    /// A profile by its name, or from a `.toml` file.
    pub fn load(name_or_path: &str) -> Result<SimProfile, ProfileError> {
        if Path::new(name_or_path).extension().is_none_or(|extension| extension != "toml") {
            return SimProfile::by_name(name_or_path);
        }
        let unread = |error: std::io::Error| ProfileError::Read { path: name_or_path.into(), why: error.to_string() };
        SimProfile::parse(&std::fs::read_to_string(name_or_path).map_err(unread)?)
    }

    /// A profile from its text.
    pub fn parse(text: &str) -> Result<SimProfile, ProfileError> {
        let lines = Lines(text);
        let form = |error: toml::de::Error| ProfileError::Form {
            line: lines.of(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        };
        let told: Told = toml::from_str(text).map_err(form)?;
        for (key, value) in [("name", &told.name), ("source", &told.source)] {
            if value.get_ref().trim().is_empty() {
                return Err(lines.refuse(key, value, "some words"));
            }
        }
        let costs = told.costs(&lines)?;
        Ok(SimProfile { name: told.name.into_inner(), source: told.source.into_inner(), costs })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its figures come from, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// A profile as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    name: Spanned<String>,
    source: Spanned<String>,
    fixed: Fixed,
    transfer: Transfer,
    #[serde(default)]
    kernel: Least,
    map: Spanned<Map>,
    #[serde(default)]
    reduce: Element,
    #[serde(default)]
    scan: Element,
    contract: Spanned<Contract>,
}

/// A number and where it is.
type Number = Spanned<f64>;
/// A size and a number, and where they are.
type Point = Spanned<(u64, f64)>;

/// What a call pays once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    buffer_creation_us: Number,
    upload_us: Number,
    dispatch_us: Number,
    readback_us: Number,
}

/// What bytes pay beyond that.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transfer {
    upload_gb_s: Number,
    readback_gb_s: Number,
}

/// What a kernel takes however little it does.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Least {
    least_us: Option<Number>,
}

/// Elementwise kernels: either whole adds of two inputs or the memory's bandwidth, and what heavier operations take.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    /// (elements, us of the whole call).
    add: Option<Spanned<Vec<Point>>>,
    /// Bytes that a kernel reads and writes.
    gb_s: Option<Number>,
    /// (elements, us of the whole call), which tells what a weighed operation takes.
    sigmoid: Option<Point>,
    /// What a weighed operation takes; nothing beyond the first where neither is told.
    op_ns: Option<Number>,
}

/// Reductions and scans; as elementwise kernels where nothing is told.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Element {
    element_ns: Option<Number>,
}

/// Matrix products: either whole calls or speeds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contract {
    /// (n, us of the whole call) for n x n times n x n.
    matmul: Option<Spanned<Vec<Point>>>,
    /// (n, speed of the kernel alone) for n x n times n x n.
    gflop_s: Option<Spanned<Vec<Point>>>,
}

/// The text, for finding lines in it.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of(&self, at: usize) -> usize {
        1 + self.0.bytes().take(at).filter(|&byte| byte == b'\n').count()
    }

    /// The error for a value, which is quoted as it is written.
    fn refuse<T>(&self, key: &'static str, value: &Spanned<T>, expected: &'static str) -> ProfileError {
        let found = self.0.get(value.span()).unwrap_or_default().to_owned();
        ProfileError::Value { line: self.of(value.span().start), key, found, expected }
    }

    fn not_negative(&self, key: &'static str, value: &Number) -> Result<f64, ProfileError> {
        let number = *value.get_ref();
        let fits = number.is_finite() && number >= 0.0;
        fits.then_some(number).ok_or_else(|| self.refuse(key, value, "a number from 0 on"))
    }

    fn positive(&self, key: &'static str, value: &Number) -> Result<f64, ProfileError> {
        let number = *value.get_ref();
        // Numbers whose reciprocal is infinite are 0 for all that they are used for.
        let fits = number.is_finite() && number > 0.0 && number.recip().is_finite();
        fits.then_some(number).ok_or_else(|| self.refuse(key, value, "a number above 0"))
    }

    /// A curve through points whose work and nanoseconds `point` finds.
    fn curve(
        &self,
        key: &'static str,
        points: &Spanned<Vec<Point>>,
        least_ns: f64,
        point: impl Fn(f64, f64) -> (f64, f64),
    ) -> Result<Curve, ProfileError> {
        let mut curve: Vec<(f64, f64)> = Vec::new();
        for at in points.get_ref() {
            let (size, number) = *at.get_ref();
            if size == 0 || !number.is_finite() || number <= 0.0 {
                return Err(self.refuse(key, at, "a size and a number, both above 0"));
            }
            let (work, ns) = point(size as f64, number);
            if !ns.is_finite() || ns <= 0.0 || ns < least_ns {
                return Err(self.refuse(key, at, "more than its fixed part, its transfers and the least of a kernel"));
            }
            if curve.last().is_some_and(|last| work <= last.0) {
                return Err(self.refuse(key, at, "sizes in ascending order"));
            }
            if curve.last().is_some_and(|last| ns < last.1) {
                return Err(self.refuse(key, at, "a kernel that takes no less than that of the size before"));
            }
            curve.push((work, ns));
        }
        if curve.is_empty() {
            return Err(self.refuse(key, points, "at least one point"));
        }
        Ok(Curve::new(curve))
    }

    /// The error for a table that tells one thing in two ways, or in none.
    fn either<T>(&self, table: &Spanned<T>, expected: &str) -> ProfileError {
        ProfileError::Form { line: self.of(table.span().start), message: format!("expected either {expected}") }
    }
}

impl Told {
    fn costs(&self, lines: &Lines<'_>) -> Result<Costs, ProfileError> {
        let ns = |key, value: &Number| Ok(1e3 * lines.not_negative(key, value)?);
        let fixed = &self.fixed;
        let create_ns = ns("buffer_creation_us", &fixed.buffer_creation_us)?;
        let call_ns = create_ns + ns("dispatch_us", &fixed.dispatch_us)?;
        let upload_ns = ns("upload_us", &fixed.upload_us)?;
        let readback_ns = ns("readback_us", &fixed.readback_us)?;
        let upload_gb_s = lines.positive("upload_gb_s", &self.transfer.upload_gb_s)?;
        let readback_gb_s = lines.positive("readback_gb_s", &self.transfer.readback_gb_s)?;
        let least_ns = self.kernel.least_us.as_ref().map_or(Ok(0.0), |value| ns("least_us", value))?;
        // What is left for the kernel of a call over f32.
        let left = |total_us: f64, sent: f64, read: f64| {
            let transfers = ELEM_BYTES * (sent / upload_gb_s + read / readback_gb_s);
            1e3 * total_us - (call_ns + upload_ns + readback_ns) - transfers
        };

        let told = self.map.get_ref();
        let map = match (&told.add, &told.gb_s) {
            (Some(points), None) => lines.curve("add", points, least_ns, |n, us| (n, left(us, 2.0 * n, n)))?,
            // Two elements are read and one is written.
            (None, Some(value)) => Curve::new(vec![(1.0, 3.0 * ELEM_BYTES / lines.positive("gb_s", value)?)]),
            _ => return Err(lines.either(&self.map, "`add` or `gb_s` in [map]")),
        };
        let op_ns = match (&told.sigmoid, &told.op_ns) {
            (None, None) => 0.0,
            (None, Some(value)) => lines.not_negative("op_ns", value)?,
            (Some(point), None) => {
                let (n, us) = *point.get_ref();
                let n = n as f64;
                let more_ops = n * (f64::from(Op::Sigmoid.row().cost) - 1.0);
                let op_ns = (left(us, n, n) - map.ns(n)) / more_ops;
                if !op_ns.is_finite() || op_ns < 0.0 {
                    return Err(lines.refuse("sigmoid", point, "no less than an add that sends one input"));
                }
                op_ns
            }
            (Some(_), Some(_)) => return Err(lines.either(&self.map, "`sigmoid` or `op_ns` in [map]")),
        };
        let per_element = |element: &Element| match &element.element_ns {
            Some(value) => Ok(Curve::new(vec![(1.0, lines.positive("element_ns", value)?)])),
            None => Ok(map.clone()),
        };
        let (reduce, scan) = (per_element(&self.reduce)?, per_element(&self.scan)?);

        let told = self.contract.get_ref();
        let flops = |n: f64| 2.0 * n * n * n;
        let contract = match (&told.matmul, &told.gflop_s) {
            (Some(points), None) => {
                lines.curve("matmul", points, least_ns, |n, us| (flops(n), left(us, 2.0 * n * n, n * n)))?
            }
            // GFLOP/s are operations a nanosecond. What is faster than the least of a kernel takes the least.
            (None, Some(points)) => lines.curve("gflop_s", points, 0.0, |n, speed| (flops(n), flops(n) / speed))?,
            _ => return Err(lines.either(&self.contract, "`matmul` or `gflop_s` in [contract]")),
        };
        Ok(Costs {
            call_ns,
            create_ns,
            upload_ns,
            readback_ns,
            upload_gb_s,
            readback_gb_s,
            least_kernel_ns: least_ns,
            op_ns,
            map,
            reduce,
            scan,
            contract,
        })
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
