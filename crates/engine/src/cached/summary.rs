//! What a folder of results has in it, for people: a folder enters, numbers leave, nothing is changed.

use super::figures::{CacheFigures, Kept};
use super::index::KeyHasher;
use super::segment::{self, PREFIX, SUFFIX, Segment};
use serde::Serialize;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::io;
use std::path::Path;

/// What a folder of results has in it.
///
/// ```
/// use breakeven::{CacheOptions, CacheSummary, Engine, Tensor};
/// # let folder = std::env::temp_dir().join(format!("breakeven-doc-summary-{}", std::process::id()));
/// let cached = Engine::new()?.cached(CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() })?;
/// cached.run(&[&Tensor::from_slice(&[1.0f32], [1])?.exp()?])?;
/// drop(cached);
/// let summary = CacheSummary::read(&folder).unwrap();
/// assert_eq!((summary.entries, summary.last_run.misses), (1, 1));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CacheSummary {
    /// Results that can be found.
    pub entries: usize,
    /// Bytes of all files of results.
    pub bytes: u64,
    /// Bytes at the ends of files that are not believed: a process was killed while it wrote, or they are damaged.
    pub torn_bytes: u64,
    /// How the last process to end or write has used it.
    pub last_run: CacheFigures,
    /// How it was used in all.
    pub in_all: CacheFigures,
}

impl CacheSummary {
    /// How the names of its files begin and end, and what is in them: for programs that list a folder.
    pub const FILES: [(&'static str, &'static str, &'static str); 2] =
        [(PREFIX, SUFFIX, "remembered results"), (PREFIX, ".json", "how results were used")];

    /// Looks through a folder. One that is not there has nothing in it.
    pub fn read(folder: &Path) -> io::Result<CacheSummary> {
        let Kept { last_run, in_all } = Kept::read(folder);
        let mut summary = CacheSummary { last_run, in_all, ..CacheSummary::default() };
        let mut keys: HashSet<_, BuildHasherDefault<KeyHasher>> = HashSet::default();
        for (number, _) in segment::list(folder)? {
            let path = folder.join(segment::name(number));
            match Segment::open(path, false, |head, _| keys.extend([head.key])) {
                Ok(segment) => {
                    summary.bytes += segment.bytes();
                    summary.torn_bytes += segment.bytes() - segment.end();
                }
                // Another process was quicker.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        summary.entries = keys.len();
        Ok(summary)
    }

    /// Is there nothing, and was there never anything?
    pub fn is_empty(&self) -> bool {
        *self == CacheSummary::default()
    }
}
