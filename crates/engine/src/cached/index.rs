//! Which results are where: keys enter, places in files leave. And how many there may be.

use super::key::Key;
use super::record::Head;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// So many files hold what is kept: with the oldest goes about this share of all results.
const SEGMENTS: u64 = 16;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// On the disk.
    pub(crate) max_bytes: u64,
    /// Each takes about 50 bytes of memory.
    pub(crate) max_entries: usize,
    /// In memory: the newest files.
    pub(crate) memory_bytes: u64,
}

impl Limits {
    /// Of one file.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.max_bytes / SEGMENTS
    }

    /// Of one file.
    pub(crate) fn segment_entries(&self) -> usize {
        self.max_entries.div_ceil(SEGMENTS as usize)
    }
}

/// Keys are spread already.
#[derive(Default, Clone, Copy)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// Something for each key.
pub(crate) type ByKey<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Where a value lies.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) at: u64,
    pub(crate) len: u32,
    pub(crate) check: u64,
}

impl Place {
    pub(crate) fn new(segment: u64, head: Head, at: u64) -> Place {
        Place { segment, at, len: head.len, check: head.check }
    }
}
