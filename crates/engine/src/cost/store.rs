//! The costs of this machine's devices on disk: written as they are measured, read when an engine starts.
//!
//! A file belongs to one processor with so many threads and to one version of the kernels; the devices in it are known by
//! adapter and driver. A file that is torn, foreign or nonsense is refused with a message and never trusted.

use super::costs::Costs;
use crate::whole_file::write_whole;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of this file and of the kernels that the costs were measured with: a change of either changes it. It is not
/// [`KERNEL_VERSION`](breakeven_ir::backend::KERNEL_VERSION): kernels become faster without a change of their results.
const VERSION: u32 = 2;

/// What costs belong to.
///
/// ```
/// let key = breakeven::cost::DeviceKey { name: "llvmpipe".into(), backend: "vulkan".into(), driver: "Mesa".into() };
/// assert_eq!(key.to_string(), "llvmpipe (vulkan, Mesa)");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceKey {
    /// What it is called.
    pub name: String,
    /// The interface through which it is reached; `cpu` for the processor.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
}

impl DeviceKey {
    pub(crate) fn is_processor(&self) -> bool {
        self.backend == CPU
    }
}

impl std::fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.driver.is_empty() {
            true => write!(f, "{} ({})", self.name, self.backend),
            false => write!(f, "{} ({}, {})", self.name, self.backend, self.driver),
        }
    }
}

/// The costs of a machine's devices, as they lie in a file.
///
/// ```
/// use breakeven::cost::{Costs, CostsFile, DeviceKey};
/// let dir = std::env::temp_dir().join(format!("breakeven-doc-{}", std::process::id()));
/// let mut file = CostsFile::empty("a processor", 2);
/// let key = DeviceKey { name: "card".into(), backend: "vulkan".into(), driver: "1.0".into() };
/// file.put(&key, Costs::default());
/// file.write(&dir)?;
/// let (read, refusal) = CostsFile::read(&dir, "a processor", 2);
/// assert_eq!((read.get(&key), refusal), (Some(&Costs::default()), None));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostsFile {
    version: u32,
    cpu: String,
    threads: usize,
    devices: Vec<Entry>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: DeviceKey,
    costs: Costs,
}

/// All that is read of a file of another version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl CostsFile {
    /// Nothing measured yet.
    pub fn empty(cpu: &str, threads: usize) -> CostsFile {
        CostsFile { version: VERSION, cpu: cpu.into(), threads, devices: Vec::new() }
    }

    /// The costs of a device, if they were measured.
    pub fn get(&self, key: &DeviceKey) -> Option<&Costs> {
        self.devices.iter().find(|entry| entry.key == *key).map(|entry| &entry.costs)
    }

    /// Was anything but the processor measured?
    pub fn has_devices(&self) -> bool {
        self.devices.iter().any(|entry| !entry.key.is_processor())
    }

    /// The devices in it.
    ///
    /// ```
    /// let file = breakeven::cost::CostsFile::empty("a processor", 2);
    /// assert_eq!((file.processor(), file.keys().count()), (("a processor", 2), 0));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &DeviceKey> {
        self.devices.iter().map(|entry| &entry.key)
    }

    /// The processor that it belongs to, and with how many threads.
    pub fn processor(&self) -> (&str, usize) {
        (&self.cpu, self.threads)
    }

    /// Puts a device's costs in.
    pub fn put(&mut self, key: &DeviceKey, costs: Costs) {
        match self.devices.iter_mut().find(|entry| entry.key == *key) {
            Some(entry) => entry.costs = costs,
            None => self.devices.push(Entry { key: key.clone(), costs }),
        }
    }

    /// Where the costs of this machine lie.
    pub fn path(dir: &Path, cpu: &str, threads: usize) -> PathBuf {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        dir.join(format!("costs-{}-{threads}.json", cpu.chars().map(word).collect::<String>()))
    }

    /// The costs of this machine: nothing, if there are none, and why, if there are some that can't be trusted.
    pub fn read(dir: &Path, cpu: &str, threads: usize) -> (CostsFile, Option<String>) {
        let (path, empty) = (CostsFile::path(dir, cpu, threads), CostsFile::empty(cpu, threads));
        let refuse = |why: String| {
            let advice = "measure again with `breakeven scan`";
            Some(format!("{} is not used: {why}; {advice}", path.display()))
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (empty, None),
            Err(error) => return (empty, refuse(error.to_string())),
        };
        // Before all else: another version may have another form.
        if let Ok(Version { version }) = serde_json::from_str(&text)
            && version != VERSION
        {
            return (empty, refuse(format!("it is of version {version}, this is {VERSION}")));
        }
        match serde_json::from_str::<CostsFile>(&text) {
            Err(error) => (empty, refuse(error.to_string())),
            Ok(file) if file.cpu != cpu || file.threads != threads => {
                (empty, refuse(format!("it belongs to {} with {} threads", file.cpu, file.threads)))
            }
            Ok(file) if !file.devices.iter().all(|entry| entry.costs.is_sound()) => {
                (empty, refuse("its numbers make no sense".into()))
            }
            Ok(file) => (file, None),
        }
    }

    /// Writes it whole or not at all: a reader finds the old file or the new one.
    pub fn write(&self, dir: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        write_whole(&CostsFile::path(dir, &self.cpu, self.threads), text.as_bytes())
    }
}

/// The processor's interface.
pub(crate) const CPU: &str = "cpu";

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
