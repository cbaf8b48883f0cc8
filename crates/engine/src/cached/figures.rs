//! How the cache is used: counted while it is, added to a small file that `breakeven cache show` reads.

use crate::whole_file::write_whole;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The file of the figures.
pub(crate) const FILE: &str = "results-figures.json";

/// What is counted.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) inserts: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) lost: AtomicU64,
    faults: AtomicU64,
    last_fault: Mutex<Option<String>>,
}

impl Counts {
    /// Something could not be read or written.
    #[cold]
    pub(crate) fn fault(&self, verb: &str, path: &Path, error: &io::Error) {
        self.faults.fetch_add(1, Relaxed);
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(format!("cannot {verb} {}: {error}", path.display()));
    }

    pub(crate) fn figures(&self) -> CacheFigures {
        let get = |count: &AtomicU64| count.load(Relaxed);
        CacheFigures {
            hits: get(&self.hits),
            misses: get(&self.misses),
            inserts: get(&self.inserts),
            evictions: get(&self.evictions),
            refused: get(&self.refused),
            damaged: get(&self.damaged),
            lost: get(&self.lost),
            faults: get(&self.faults),
        }
    }

    pub(crate) fn last_fault(&self) -> Option<String> {
        self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How a cache of results was used.
///
/// ```
/// let figures = breakeven::CacheFigures { hits: 3, misses: 1, ..Default::default() };
/// assert_eq!(figures.hit_rate(), Some(0.75));
/// assert_eq!(breakeven::CacheFigures::default().hit_rate(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheFigures {
    /// Results that were there, or that another task of the same batch had made.
    pub hits: u64,
    /// Results that had to be computed.
    pub misses: u64,
    /// Results that were put in.
    pub inserts: u64,
    /// Results that had to go to make room.
    pub evictions: u64,
    /// Results that were too large to be kept, or for which other processes left no room.
    pub refused: u64,
    /// Results that were there and could not be read as they were written: they count as misses, too.
    pub damaged: u64,
    /// Results that were put in and could not be written.
    pub lost: u64,
    /// Failures of the file system.
    pub faults: u64,
}

impl CacheFigures {
    /// The share of hits, once there was anything to look up.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }

    /// Each figure of both.
    fn with(self, other: CacheFigures, join: fn(u64, u64) -> u64) -> CacheFigures {
        CacheFigures {
            hits: join(self.hits, other.hits),
            misses: join(self.misses, other.misses),
            inserts: join(self.inserts, other.inserts),
            evictions: join(self.evictions, other.evictions),
            refused: join(self.refused, other.refused),
            damaged: join(self.damaged, other.damaged),
            lost: join(self.lost, other.lost),
            faults: join(self.faults, other.faults),
        }
    }
}

/// A cache of results as it is now.
///
/// ```
/// use breakeven::{CacheOptions, Engine, Tensor};
/// # let folder = std::env::temp_dir().join(format!("breakeven-doc-stats-{}", std::process::id()));
/// let cached = Engine::new()?.cached(CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() })?;
/// cached.run(&[&Tensor::from_slice(&[1.0f32], [1])?.exp()?])?;
/// let stats = cached.stats();
/// assert_eq!((stats.entries, stats.figures.misses, stats.fault), (1, 1, None));
/// # drop(cached);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct CacheStats {
    /// Results that are kept.
    pub entries: usize,
    /// Bytes of all files of results, and of what is on the way there.
    pub bytes: u64,
    /// How it was used since it was opened.
    pub figures: CacheFigures,
    /// The last failure of the file system.
    pub fault: Option<String>,
}

impl CacheStats {
    /// The share of hits, once there was anything to look up.
    pub fn hit_rate(&self) -> Option<f64> {
        self.figures.hit_rate()
    }
}

/// The file of the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    pub(crate) last_run: CacheFigures,
    pub(crate) in_all: CacheFigures,
}

impl Kept {
    /// What was counted before; nothing if there is no file that can be read.
    pub(crate) fn read(folder: &Path) -> Kept {
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// Adds what is counted to the file.
pub(crate) struct Ledger {
    path: PathBuf,
    /// What is in the file already.
    told: Mutex<CacheFigures>,
}

impl Ledger {
    pub(crate) fn new(folder: &Path) -> Ledger {
        Ledger { path: folder.join(FILE), told: Mutex::default() }
    }

    /// Adds what was counted since the last time. The file is read again first, since other processes add to it too; of
    /// two that write in the same moment one is forgotten. Figures are taken when nobody else of this process writes: older
    /// ones after newer ones would be counted twice.
    pub(crate) fn write(&self, figures: impl FnOnce() -> CacheFigures) -> io::Result<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = figures();
        if now == *told {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let in_all = Kept::read(folder).in_all.with(now.with(*told, u64::saturating_sub), u64::saturating_add);
        let text = serde_json::to_string_pretty(&Kept { last_run: now, in_all }).map_err(io::Error::other)?;
        write_whole(&self.path, text.as_bytes())?;
        *told = now;
        Ok(())
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
