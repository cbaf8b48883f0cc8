//! What is remembered about a device from one process to the next: its quirks and what was tuned. What the self-test and
//! the tuner found enters, a JSON file in the cache directory leaves.
//!
//! A file is written whole or not at all (a temporary one, then a rename). It names who wrote it (our version, the text
//! of our kernels) and what for (adapter, backend, driver), and carries a checksum. A file that is damaged, or that is
//! another's, is not believed in any part; the next write replaces it.

use crate::adapters::AdapterInfo;
use crate::choice::Tuned;
use crate::health::{Quirks, lock};
use breakeven_ir::plan::Class;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the file.
const FORMAT: u32 = 2;

/// More than this was not written here.
const MOST_BYTES: u64 = 1 << 20;

/// Who wrote a file, and what for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    version: String,
    /// The fingerprint of the self-test's kernels: what was found about others says nothing.
    kernels: String,
    adapter: String,
    backend: String,
    driver: String,
}

/// What is remembered.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Memory {
    pub(crate) quirks: Option<Found>,
    pub(crate) tuned: Vec<Tuned>,
}

/// What the self-test found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    loop_cap: Option<u32>,
    in_flight: u32,
    slow_mapped_reads: bool,
    flushes_denormals: bool,
    broken: Vec<String>,
    /// How long the self-test took.
    took_ns: u64,
}

const CLASSES: [Class; 4] = [Class::Map, Class::Reduce, Class::Scan, Class::Contract];

impl Found {
    pub(crate) fn new(quirks: &Quirks, took_ns: u64) -> Found {
        Found {
            loop_cap: quirks.loop_cap,
            in_flight: quirks.in_flight,
            slow_mapped_reads: quirks.slow_mapped_reads,
            flushes_denormals: quirks.flushes_denormals,
            broken: quirks.broken.iter().map(Class::to_string).collect(),
            took_ns,
        }
    }

    /// `None` if it is nothing that a self-test finds.
    pub(crate) fn quirks(&self) -> Option<Quirks> {
        let class = |name: &String| CLASSES.into_iter().find(|class| class.to_string() == *name);
        let broken: Option<Vec<Class>> = self.broken.iter().map(class).collect();
        let plausible = self.loop_cap != Some(0) && (1..=2).contains(&self.in_flight);
        broken.filter(|broken| plausible && broken.len() < CLASSES.len()).map(|broken| Quirks {
            loop_cap: self.loop_cap,
            in_flight: self.in_flight,
            slow_mapped_reads: self.slow_mapped_reads,
            flushes_denormals: self.flushes_denormals,
            broken,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    header: Header,
    /// Of the memory as compact JSON.
    checksum: String,
    memory: Memory,
}

/// The file of one device.
pub(crate) struct Store {
    /// `None` remembers nothing.
    path: Option<PathBuf>,
    header: Header,
    /// Writers of this process take turns.
    turn: Mutex<()>,
}

impl Store {
    pub(crate) fn new(dir: Option<&Path>, info: &AdapterInfo, kernels: String) -> Store {
        let header = Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            kernels,
            adapter: info.name.clone(),
            backend: info.backend.clone(),
            driver: info.driver.clone(),
        };
        let path = dir.map(|dir| dir.join(format!("device-{}.json", file_name(info))));
        Store { path, header, turn: Mutex::new(()) }
    }

    /// What was remembered; nothing if there is no file that can be believed.
    pub(crate) fn read(&self) -> Memory {
        self.path.as_deref().and_then(|path| self.believed(path)).unwrap_or_default()
    }

    fn believed(&self, path: &Path) -> Option<Memory> {
        if std::fs::metadata(path).ok()?.len() > MOST_BYTES {
            return None;
        }
        let file: File = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        let sound = file.header == self.header && checksum(&file.memory)? == file.checksum;
        let quirks_are = file.memory.quirks.as_ref().is_none_or(|found| found.quirks().is_some());
        (sound && quirks_are && file.memory.tuned.iter().all(Tuned::is_sound)).then_some(file.memory)
    }

    /// Changes what is remembered. The file is read again first, since other processes write to it too; of two that
    /// write in the same moment one is forgotten, and found again later.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Memory)) {
        let Some(path) = &self.path else { return };
        let _turn = lock(&self.turn);
        let mut memory = self.believed(path).unwrap_or_default();
        change(&mut memory);
        let Some(checksum) = checksum(&memory) else { return };
        let Ok(text) = serde_json::to_string_pretty(&File { header: self.header.clone(), checksum, memory }) else {
            return;
        };
        // What can't be remembered is no failure: the next process finds it again.
        let _ = replace(path, text.as_bytes());
    }
}

/// Writes a file whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    // Several devices of one process may write at a time, too.
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let thread = std::thread::current().id();
    let unique: String = format!("{}-{thread:?}-{moment:x}", std::process::id());
    let unique: String = unique.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let temporary = path.with_extension(format!("{unique}.tmp"));
    let written = std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// What files about a device are called.
pub(crate) fn file_name(info: &AdapterInfo) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    format!("{} {} {}", info.backend, info.name, info.driver).chars().map(plain).collect()
}

fn checksum(memory: &Memory) -> Option<String> {
    let text = serde_json::to_string(memory).ok()?;
    Some(fingerprint([text.as_str()].into_iter()))
}

/// A hash that is the same on every machine (FNV-1a): against damage, not against forgery.
pub(crate) fn fingerprint<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let bytes = texts.flat_map(|text| text.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(crate) mod tests;
