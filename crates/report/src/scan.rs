//! What `breakeven scan` measured, as plain values: the measuring fills them, everything else of this crate reads them.
//! As JSON they are `scan.json`. Fields that are not known are ignored, so that an older Breakeven reads what a newer
//! one of the same version wrote.

use crate::claim::Claim;
use crate::stats::Stats;
use crate::transfers::Transfer;
use serde::{Deserialize, Serialize};

/// The version of `scan.json` that this crate writes and reads. It goes up when a field changes its meaning.
pub const VERSION: u32 = 1;

/// Everything that a scan measured.
///
/// ```
/// use breakeven_report::{Device, Scan};
/// let scan = Scan { devices: vec![Device::cpu("Xeon")], ..Scan::default() };
/// assert!(scan.to_json().contains("\"name\": \"Xeon\""));
/// assert!(scan.crossovers().is_empty());
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scan {
    /// [`VERSION`].
    pub version: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// The CPU and every adapter that was measured.
    pub devices: Vec<Device>,
    /// The measurements, one for each op, size and device.
    pub rows: Vec<Row>,
    /// What a call costs on each device before it computes anything.
    #[serde(default)]
    pub overheads: Vec<Overhead>,
    /// How fast bytes go to each device and come back; the ways that it has, and no others.
    #[serde(default)]
    pub transfers: Vec<Transfer>,
    /// How far fusion moves the crossover.
    #[serde(default)]
    pub fused: Vec<Fused>,
    /// Crossovers that somebody claims, which `breakeven compare` tests against the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// How it was measured.
    pub how: How,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            version: VERSION,
            machine: Machine::default(),
            devices: Vec::new(),
            rows: Vec::new(),
            overheads: Vec::new(),
            transfers: Vec::new(),
            fused: Vec::new(),
            claims: Vec::new(),
            how: How::default(),
        }
    }
}

impl Scan {
    /// The device with this id.
    pub fn device(&self, id: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// A device's label; its id alone if the scan does not tell about it.
    pub fn label(&self, id: &str) -> String {
        self.device(id).map_or_else(|| id.to_owned(), Device::label)
    }

    /// Has any measurement a spread that stayed too wide?
    pub fn has_wide(&self) -> bool {
        self.rows.iter().map(|row| &row.stats).chain(self.transfers.iter().map(|t| &t.stats)).any(|stats| stats.wide)
    }
}

/// Where a scan was made.
///
/// ```
/// use breakeven_report::Machine;
/// let machine = Machine { cpu: "Xeon".into(), threads: 8, simd: "AVX-512".into(), ..Machine::default() };
/// assert_eq!(machine.summary(), "Xeon, 8 threads, AVX-512");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many threads the CPU's kernels use.
    pub threads: usize,
    /// The level of vector instructions that they use.
    pub simd: String,
    /// The operating system.
    pub os: String,
    /// The version of Breakeven.
    pub breakeven: String,
}

impl Machine {
    /// The processor in one line.
    pub fn summary(&self) -> String {
        // Other tools do not tell how many.
        let threads = match self.threads {
            0 => String::new(),
            1 => "1 thread".to_owned(),
            more => format!("{more} threads"),
        };
        let parts = [self.cpu.as_str(), &threads, &self.simd, &self.os];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// A device that was measured.
///
/// ```
/// use breakeven_report::Device;
/// let device = Device { id: "gpu:0".into(), name: "llvmpipe".into(), kind: "software".into(), ..Device::default() };
/// assert_eq!(device.label(), "gpu:0 software");
/// assert_eq!(device.title(), "gpu:0 llvmpipe (software)");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// `cpu`, `gpu:0`, ..
    pub id: String,
    /// Its name.
    pub name: String,
    /// `cpu`, `discrete`, `integrated`, `virtual`, `software`, `simulated` or `other`.
    pub kind: String,
    /// How it is reached: `vulkan`, ..
    pub backend: String,
    /// The driver's name and version.
    pub driver: String,
}

impl Device {
    /// The CPU, by its name.
    pub fn cpu(name: &str) -> Device {
        Device { id: "cpu".to_owned(), name: name.to_owned(), kind: "cpu".to_owned(), ..Device::default() }
    }

    /// Is this the CPU, which every other device is compared with?
    pub fn is_cpu(&self) -> bool {
        self.kind == "cpu"
    }

    /// Does this stand for hardware that is not there? Then every mention of it has to say so.
    pub fn is_stand_in(&self) -> bool {
        matches!(self.kind.as_str(), "software" | "simulated")
    }

    /// A few letters for the end of a line or a column: the id, and what it is if that must not be overlooked.
    pub fn label(&self) -> String {
        match self.kind.as_str() {
            "cpu" => "CPU".to_owned(),
            kind if self.is_stand_in() => format!("{} {kind}", self.id),
            _ => self.id.clone(),
        }
    }

    /// Its id, name, kind and backend.
    pub fn title(&self) -> String {
        if self.is_cpu() {
            return format!("CPU {}", self.name).trim_end().to_owned();
        }
        let what: Vec<&str> = [self.kind.as_str(), &self.backend].into_iter().filter(|w| !w.is_empty()).collect();
        let name = format!("{} {}", self.id, self.name);
        if what.is_empty() { name } else { format!("{} ({})", name.trim_end(), what.join(", ")) }
    }

    /// What a reader must know of a device that stands for hardware.
    pub fn caution(&self) -> Option<String> {
        let label = self.label();
        match self.kind.as_str() {
            "software" => {
                let reached = if self.backend.is_empty() { String::new() } else { format!(" ({})", self.backend) };
                let name = &self.name;
                Some(format!("{label} is {name}{reached}, run by the CPU itself: its times say nothing about a card."))
            }
            "simulated" => Some(format!("{label} is no real device: its times come from a model ({}).", self.name)),
            _ => None,
        }
    }
}

/// One measurement: an op at a size on a device.
///
/// ```
/// use breakeven_report::Row;
/// let json = r#"{"op": "exp", "class": "map", "size": 1024, "unit": "elements", "device": "cpu", "stats": {
///     "median_ns": 500, "p10_ns": 490, "p90_ns": 520, "min_ns": 480, "max_ns": 900, "mad_ns": 9,
///     "samples": 31, "wide": false}}"#;
/// let row: Row = serde_json::from_str(json)?;
/// assert_eq!(row.stats.median_ns, 500);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// What was computed.
    pub op: String,
    /// Its class: `map`, `reduce`, `rows`, `scan`, `contract` or `many`.
    pub class: String,
    /// Elements, a matrix's n, or tasks.
    pub size: u64,
    /// What `size` counts: `elements`, `n x n`, `tasks of 256`.
    pub unit: String,
    /// The device's id.
    pub device: String,
    /// What the runs took, from the call to its results on the host.
    pub stats: Stats,
}

/// What a call costs on a device before it computes anything.
///
/// ```
/// use breakeven_report::Overhead;
/// let overhead = Overhead { device: "gpu:0".into(), fixed_ns: 90_000, submit_ns: 60_000, ..Overhead::default() };
/// assert_eq!(overhead.wait_ns(), 30_000);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Overhead {
    /// The device's id.
    pub device: String,
    /// A whole call that moves and computes next to nothing.
    pub fixed_ns: u64,
    /// The part of `fixed_ns` that the submit takes.
    pub submit_ns: u64,
    /// Each further MiB that goes to the device.
    pub upload_ns_per_mib: u64,
    /// Each further MiB that comes back.
    pub readback_ns_per_mib: u64,
    /// What else is to be known.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Overhead {
    /// The part of the fixed cost that is not the submit: encoding, waiting, waking up.
    pub fn wait_ns(&self) -> u64 {
        self.fixed_ns.saturating_sub(self.submit_ns)
    }

    /// The parts of a call that moves 1 MiB there and 1 MiB back, with their names. They add up to that call.
    pub fn parts(&self) -> [(&'static str, u64); 4] {
        [
            ("submit", self.submit_ns.min(self.fixed_ns)),
            ("wait", self.wait_ns()),
            ("upload of 1 MiB", self.upload_ns_per_mib),
            ("readback of 1 MiB", self.readback_ns_per_mib),
        ]
    }
}

/// The same operations as calls of their own and as one batch.
///
/// ```
/// use breakeven_report::Fused;
/// let fused = Fused { separate_crossover: Some(4_000_000), fused_crossover: Some(500_000), ..Fused::default() };
/// assert_eq!(fused.words(), "pays 8.0x earlier");
/// assert_eq!(Fused { separate_crossover: None, ..fused }.words(), "pays only as one batch");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fused {
    /// Which operations.
    pub what: String,
    /// The device's id.
    pub device: String,
    /// From which size on the device pays if each operation is a call; `None` is never.
    pub separate_crossover: Option<u64>,
    /// From which size on it pays if all are one batch; `None` is never.
    pub fused_crossover: Option<u64>,
    /// What the sizes count.
    pub unit: String,
}

impl Fused {
    /// What fusing changes.
    pub fn words(&self) -> String {
        match (self.separate_crossover, self.fused_crossover) {
            (None, None) => "never pays".to_owned(),
            (None, Some(_)) => "pays only as one batch".to_owned(),
            (Some(_), None) => "pays only as separate calls: the CPU gains more".to_owned(),
            (Some(separate), Some(fused)) => {
                let earlier = separate.max(1) as f64 / fused.max(1) as f64;
                match earlier {
                    e if e >= 1.05 => format!("pays {} earlier", crate::words::ratio(e)),
                    e if e <= 1.0 / 1.05 => format!("pays {} later", crate::words::ratio(1.0 / e)),
                    _ => "no change".to_owned(),
                }
            }
        }
    }
}

/// How a scan was made.
///
/// ```
/// use breakeven_report::How;
/// let how = How { samples: 31, quick: true, seconds: 12.5, date: "2026-01-31".into(), ..How::default() };
/// assert_eq!(how.summary(), "2026-01-31, 31 samples each, quick, took 12 s");
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct How {
    /// How many runs of each were timed; 0 if some other tool timed them.
    pub samples: u32,
    /// Fewer sizes and samples than usual.
    pub quick: bool,
    /// How long the scan took.
    pub seconds: f64,
    /// It was stopped before everything was measured.
    pub interrupted: bool,
    /// When.
    pub date: String,
    /// What else is to be known.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl How {
    /// All of it in one line.
    pub fn summary(&self) -> String {
        let mut parts = vec![self.date.clone()];
        match self.samples {
            0 => parts.push("by some other tool".to_owned()),
            samples => parts.push(format!("{samples} sample{} each", if samples == 1 { "" } else { "s" })),
        }
        parts.extend(self.quick.then(|| "quick".to_owned()));
        if self.samples > 0 {
            // A cast saturates: a time that makes no sense is shown as one.
            parts.push(format!("took {}", crate::words::time((self.seconds * 1e9) as u64)));
        }
        parts.extend(self.interrupted.then(|| "interrupted".to_owned()));
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
