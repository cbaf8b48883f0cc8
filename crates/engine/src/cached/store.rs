//! Results on disk: keys and values enter and leave; what does not fit any more goes, the least recently written first.
//!
//! The store is a log of our own: files that only grow ([`super::segment`]), records with checksums ([`super::record`]), an
//! index in memory. An embedded database was tried in its place (redb 4: pure Rust, transactions) and not taken:
//!
//! - One bit flipped in its file gave wrong values back: its checksums are there to find the last whole transaction. Every
//!   value would have needed our checksum all the same.
//! - Putting in a value of 100 bytes took it 3 us, a look-up 1 us, and a commit that survives a kill 2.7 ms, because it waits
//!   for the disk. Here, on the same busy machine, a small result takes 0.6 us to put in, and 0.25 us to find with the hash of
//!   its inputs and the copy. A cache need not wait for the disk: results that a power cut takes away are computed again, and
//!   those it mangles fail their checksums.
//! - Its file does not shrink, and one process at a time has it. Here a file of old results is removed whole, and processes
//!   share a folder: each grows a file of its own, which it has locked, and reads those of the others.
//!
//! Nothing here fails a computation. What can't be read is a miss; what can't be written is not kept; both are counted, and
//! the last fault is told in words. After [`STRIKES`] failures to write in a row no more is written.

use super::figures::Counts;
use super::index::{ByKey, Limits, Place};
use super::key::Key;
use super::record::{HEAD_BYTES, Head, MAGIC};
use super::segment::{self, Segment};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Each is kept open. Processes that end early leave small ones.
const MAX_SEGMENTS: usize = 64;
/// A result of more than this share of all bytes would drive out too many others.
const LARGEST_SHARE: u64 = 4;
/// What is not on the disk yet is written when it is this much: beside the copying of 64 KiB a system call is nothing.
const WRITE_BYTES: u64 = 1 << 16;
/// Failures to write in a row after which no more is written.
pub(crate) const STRIKES: u32 = 3;

/// The results of a folder.
pub(crate) struct Store {
    folder: PathBuf,
    limits: Limits,
    state: RwLock<State>,
    /// Keys whose values turned out to be damaged, to be forgotten by the next who writes.
    damaged: Mutex<ByKey<()>>,
    pub(crate) counts: Counts,
}

#[derive(Default)]
struct State {
    index: ByKey<Place>,
    /// By number: oldest first.
    segments: BTreeMap<u64, Segment>,
    /// The one that is grown.
    active: Option<u64>,
    /// Results in it.
    active_entries: usize,
    /// Bytes of files of other processes, when they were last looked at.
    foreign: BTreeMap<u64, u64>,
    /// Bytes of all files but the one that is grown.
    other_bytes: u64,
    strikes: u32,
}

impl Store {
    /// Reads what there is.
    pub(crate) fn open(folder: PathBuf, limits: Limits) -> Store {
        let store =
            Store { folder, limits, state: RwLock::default(), damaged: Mutex::default(), counts: Counts::default() };
        let mut state = State::default();
        match segment::list(&store.folder) {
            Ok(list) => store.load(&mut state, &list),
            Err(error) => store.counts.fault("read", &store.folder, &error),
        }
        *store.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        store
    }

    /// Newest first, so that memory is for those; what is known by then is newer than what is found.
    fn load(&self, state: &mut State, list: &[(u64, u64)]) {
        // Room for all of them at once: growing on the way would take as long as the rest.
        let bytes: u64 = list.iter().map(|(_, bytes)| bytes).sum();
        state.index.reserve((bytes / (HEAD_BYTES + 64)).min(self.limits.max_entries as u64) as usize);
        let mut in_memory = 0;
        for &(number, bytes) in list.iter().rev() {
            let path = self.folder.join(segment::name(number));
            if state.segments.len() >= MAX_SEGMENTS {
                state.foreign.insert(number, bytes);
                continue;
            }
            let mut entries = 0;
            let mut found = |index: &mut ByKey<Place>, head: Head, at| {
                entries += 1;
                let place = index.entry(head.key).or_insert(Place::new(number, head, at));
                // In one file the later record is the newer one: it was written because the other was damaged.
                if place.segment == number {
                    *place = Place::new(number, head, at);
                }
            };
            let index = &mut state.index;
            let mut opened = Ok(None);
            if state.active.is_none() && bytes < self.limits.segment_bytes() {
                opened = Segment::open_to_grow(path.clone(), |head, at| found(index, head, at));
            }
            let grows = matches!(opened, Ok(Some(_)));
            let keep = in_memory + bytes <= self.limits.memory_bytes;
            // One that is another's to grow, or that may not be written, can be read.
            let opened = match opened {
                Ok(Some(segment)) => Ok(segment),
                _ => Segment::open(path.clone(), keep, |head, at| found(index, head, at)),
            };
            match opened {
                Ok(segment) => {
                    in_memory += segment.resident_bytes();
                    state.segments.insert(number, segment);
                    if grows {
                        (state.active, state.active_entries) = (Some(number), entries);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.counts.fault("read", &path, &error);
                    state.foreign.insert(number, bytes);
                    let index = &mut state.index;
                    index.retain(|_, place| place.segment != number);
                }
            }
        }
        state.count_bytes();
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// To look results up: one lock for any number of them.
    pub(crate) fn read(&self) -> Reader<'_> {
        Reader { store: self, state: self.state.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// To put results in.
    pub(crate) fn write(&self) -> Writer<'_> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for (key, ()) in self.damaged().drain() {
            state.index.remove(&key);
        }
        Writer { store: self, state }
    }

    fn damaged(&self) -> MutexGuard<'_, ByKey<()>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Results that are kept, and the bytes of all files.
    pub(crate) fn size(&self) -> (usize, u64) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        (state.index.len(), state.bytes())
    }
}

impl State {
    fn active(&self) -> Option<&Segment> {
        self.segments.get(&self.active?)
    }

    fn bytes(&self) -> u64 {
        self.other_bytes + self.active().map_or(0, Segment::bytes)
    }

    /// After files came or went, or another is grown.
    fn count_bytes(&mut self) {
        let all = self.segments.values().map(Segment::bytes).sum::<u64>() + self.foreign.values().sum::<u64>();
        self.other_bytes = all - self.active().map_or(0, Segment::bytes);
    }
}

/// Looks results up.
pub(crate) struct Reader<'s> {
    store: &'s Store,
    state: RwLockReadGuard<'s, State>,
}

impl Reader<'_> {
    /// Calls `take` with the value of a key, if it is there, whole, and `len` bytes long. `spare` is memory to read it into.
    pub(crate) fn get(&self, key: Key, len: usize, spare: &mut Vec<u8>, take: impl FnOnce(&[u8])) -> bool {
        let Some(place) = self.state.index.get(&key) else { return false };
        let head = Head { key, len: place.len, check: place.check };
        let segment = self.state.segments.get(&place.segment).filter(|_| place.len as usize == len);
        let sound = |value: &[u8]| {
            let sound = head.is_of(value);
            if sound {
                take(value);
            }
            sound
        };
        let taken = segment.map(|segment| segment.value(place.at, place.len, spare, sound));
        if let Some(Ok(true)) = taken {
            return true;
        }
        self.store.counts.damaged.fetch_add(1, Relaxed);
        if let (Some(Err(error)), Some(segment)) = (&taken, segment) {
            self.store.counts.fault("read", segment.path(), error);
        }
        self.store.damaged().insert(key, ());
        false
    }
}

/// Puts results in.
pub(crate) struct Writer<'s> {
    store: &'s Store,
    state: RwLockWriteGuard<'s, State>,
}

impl Writer<'_> {
    /// Puts a value in, unless there is one. It is on the disk after [`Writer::flush`] at the latest.
    pub(crate) fn put<'a>(&mut self, key: Key, value: impl Iterator<Item = &'a [u8]> + Clone) {
        if self.state.strikes >= STRIKES || self.state.index.contains_key(&key) {
            return;
        }
        let (counts, limits) = (&self.store.counts, self.store.limits);
        let len: u64 = value.clone().map(|part| part.len() as u64).sum();
        let bytes = HEAD_BYTES + len;
        let fits = bytes + MAGIC.len() as u64 <= limits.max_bytes / LARGEST_SHARE && u32::try_from(len).is_ok();
        if !fits || !self.make_room(bytes) {
            counts.refused.fetch_add(1, Relaxed);
            return;
        }
        let state = &mut *self.state;
        let Some((number, segment)) = state.active.and_then(|number| Some((number, state.segments.get_mut(&number)?)))
        else {
            return;
        };
        let (head, at) = segment.push(key, value);
        state.index.insert(key, Place::new(number, head, at));
        state.active_entries += 1;
        counts.inserts.fetch_add(1, Relaxed);
        if segment.unwritten() >= WRITE_BYTES {
            self.flush();
        }
    }

    /// A file that can be grown by so many bytes, and room for them on the disk.
    fn make_room(&mut self, bytes: u64) -> bool {
        let limits = self.store.limits;
        if self.state.active().is_some_and(|segment| {
            let used = segment.end();
            used > MAGIC.len() as u64
                && (used + bytes > limits.segment_bytes() || self.state.active_entries >= limits.segment_entries())
        }) {
            self.flush();
            self.leave_active();
        }
        let begins = self.state.active.is_none();
        if begins {
            self.look_around();
        }
        let needed = bytes + if begins { MAGIC.len() as u64 } else { 0 };
        let fits = |state: &State| state.bytes() + needed <= limits.max_bytes;
        loop {
            let state = &*self.state;
            let few = !begins || state.segments.len() + state.foreign.len() < MAX_SEGMENTS;
            if few && fits(state) && state.index.len() < limits.max_entries {
                break;
            }
            if !self.drop_oldest() {
                // What others are at work on can't be removed: too many files are no harm, too many bytes are.
                if !fits(&self.state) {
                    return false;
                }
                break;
            }
        }
        !begins || self.begin_segment()
    }

    /// What other processes have put into the folder counts, too.
    fn look_around(&mut self) {
        match segment::list(&self.store.folder) {
            Ok(list) => {
                let state = &mut *self.state;
                state.foreign = list.into_iter().filter(|(number, _)| !state.segments.contains_key(number)).collect();
                state.count_bytes();
            }
            Err(error) => self.store.counts.fault("read", &self.store.folder, &error),
        }
    }

    /// Removes the file that was begun first, and all that is in it. `false` if none can be removed.
    fn drop_oldest(&mut self) -> bool {
        let state = &mut *self.state;
        let mut numbers: Vec<u64> = state.segments.keys().chain(state.foreign.keys()).copied().collect();
        numbers.sort_unstable();
        for number in numbers.into_iter().filter(|number| Some(*number) != state.active) {
            let path = self.store.folder.join(segment::name(number));
            let removed = match state.segments.get(&number) {
                Some(segment) => segment.remove(),
                None => segment::remove(&path),
            };
            match removed {
                Ok(true) => {
                    state.foreign.remove(&number);
                    if state.segments.remove(&number).is_some() {
                        let before = state.index.len();
                        state.index.retain(|_, place| place.segment != number);
                        self.store.counts.evictions.fetch_add((before - state.index.len()) as u64, Relaxed);
                    }
                    state.count_bytes();
                    return true;
                }
                // Another process grows it.
                Ok(false) => {}
                Err(error) => self.store.counts.fault("remove", &path, &error),
            }
        }
        false
    }

    fn begin_segment(&mut self) -> bool {
        let folder = &self.store.folder;
        let state = &mut *self.state;
        let known = state.segments.keys().chain(state.foreign.keys()).max().copied().unwrap_or(0);
        // Another process may take a number in the same moment.
        let created = std::fs::create_dir_all(folder).and_then(|()| {
            for number in (1..=MAX_SEGMENTS as u64).filter_map(|more| known.checked_add(more)) {
                if let Some(segment) = Segment::create(folder, number)? {
                    return Ok((number, segment));
                }
            }
            Err(io::Error::other("every number for a new file is taken"))
        });
        match created {
            Ok((number, segment)) => {
                state.segments.insert(number, segment);
                (state.active, state.active_entries) = (Some(number), 0);
                state.count_bytes();
                self.keep_newest_in_memory();
                true
            }
            Err(error) => {
                state.strikes += 1;
                self.store.counts.fault("write to", folder, &error);
                false
            }
        }
    }

    fn keep_newest_in_memory(&mut self) {
        let (active, mut in_memory) = (self.state.active, 0);
        for (number, segment) in self.state.segments.iter_mut().rev() {
            in_memory += segment.resident_bytes();
            if in_memory > self.store.limits.memory_bytes && Some(*number) != active {
                in_memory -= segment.resident_bytes();
                segment.release();
            }
        }
    }

    fn leave_active(&mut self) {
        let number = self.state.active.take();
        self.state.count_bytes();
        if let Some(segment) = number.and_then(|number| self.state.segments.get(&number))
            && let Err(error) = segment.leave()
            && error.kind() != io::ErrorKind::Unsupported
        {
            self.store.counts.fault("unlock", segment.path(), &error);
        }
    }

    /// Nothing was ever written to this file.
    fn forget_empty(&mut self, number: u64) {
        if let Some(segment) = self.state.segments.remove(&number)
            && let Err(error) = segment.remove()
        {
            self.store.counts.fault("remove", segment.path(), &error);
        }
    }

    /// Hands what is not on the disk yet to the system: from there on it survives the process.
    pub(crate) fn flush(&mut self) {
        let state = &mut *self.state;
        let Some(number) = state.active else { return };
        let Some(segment) = state.segments.get_mut(&number) else { return };
        match segment.write() {
            Ok(()) => state.strikes = 0,
            Err(error) => {
                state.strikes += 1;
                self.store.counts.fault("write to", segment.path(), &error);
                let end = segment.end();
                let before = state.index.len();
                state.index.retain(|_, place| place.segment != number || place.at < end);
                self.store.counts.lost.fetch_add((before - state.index.len()) as u64, Relaxed);
                // What comes next goes into a new file.
                self.leave_active();
                if end == 0 {
                    self.forget_empty(number);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
