//! A file of results: opened and scanned, or new; read at any place, grown at its end.
//!
//! A file is grown by the one process that has its lock, and never changed otherwise but for the cut of a torn end. Any number
//! of processes read it: what they have seen of it stays where it is. A file that is removed can still be read by those who
//! have it open. (On Windows a locked file can't be read by others: to them it is not there.)

use super::key::{Key, checksum};
use super::record::{self, HEAD_BYTES, Head, MAGIC, Scanned};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};

/// How the names of all files begin.
pub(crate) const PREFIX: &str = "results-";
/// How the names of files of results end.
pub(crate) const SUFFIX: &str = ".log";

/// The name of the file of this number.
pub(crate) fn name(number: u64) -> String {
    format!("{PREFIX}{number:08}{SUFFIX}")
}

/// The number of a file of this name, if it is one of results.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let plain = digits.len() >= 8 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// The files of a folder by their numbers, oldest first, each with its bytes. A folder that is not there has none.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let found = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let mut list = Vec::new();
    for entry in found {
        let entry = entry?;
        // A file that is removed meanwhile is not there any more; a folder or a link is somebody else's.
        let (Some(number), Ok(metadata)) = (entry.file_name().to_str().and_then(number), entry.metadata()) else {
            continue;
        };
        if metadata.is_file() {
            list.push((number, metadata.len()));
        }
    }
    list.sort_unstable();
    Ok(list)
}

/// A file of results.
pub(crate) struct Segment {
    path: PathBuf,
    file: File,
    /// All that is known of it, if it is kept in memory; what it is grown by is always here first.
    resident: Option<Vec<u8>>,
    /// Where what can be believed ends, in memory or on the disk.
    end: u64,
    /// Where it ends on the disk.
    written: u64,
    /// Bytes of the file that are not believed.
    torn: u64,
}

impl Segment {
    /// Reads a file, and tells `found` what is in it. With `keep` its bytes stay in memory.
    pub(crate) fn open(path: PathBuf, keep: bool, found: impl FnMut(Head, u64)) -> io::Result<Segment> {
        Segment::read(path.clone(), OpenOptions::new().read(true).open(path)?, keep, found)
    }

    /// As [`Segment::open`], to grow it: `None` if another process does. A torn end is cut off.
    pub(crate) fn open_to_grow(path: PathBuf, found: impl FnMut(Head, u64)) -> io::Result<Option<Segment>> {
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        // Locked before it is read: what another process has written until then is seen.
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let mut segment = Segment::read(path, file, true, found)?;
        if segment.end == 0 {
            // Of another form: it is not ours to grow. One that is empty was left by a process that ended just then.
            if segment.torn > 0 {
                return Ok(None);
            }
            segment.begin();
        }
        if segment.torn > 0 {
            segment.file.set_len(segment.end)?;
            segment.torn = 0;
        }
        Ok(Some(segment))
    }

    fn read(path: PathBuf, file: File, keep: bool, found: impl FnMut(Head, u64)) -> io::Result<Segment> {
        let len = file.metadata()?.len();
        let mut resident = None;
        let (scanned, len) = if keep {
            let mut bytes = Vec::with_capacity(len as usize);
            (&file).take(len).read_to_end(&mut bytes)?;
            let len = bytes.len() as u64;
            let scanned = record::scan(&mut Cursor::new(&bytes), len, found)?;
            bytes.truncate(scanned.end as usize);
            resident = Some(bytes);
            (scanned, len)
        } else {
            (record::scan(&mut BufReader::with_capacity(1 << 16, &file), len, found)?, len)
        };
        let Scanned { end, .. } = scanned;
        Ok(Segment { path, file, resident, end, written: end, torn: len - end })
    }

    /// A new file that nobody else grows. `None` if there is one of this number.
    pub(crate) fn create(folder: &Path, number: u64) -> io::Result<Option<Segment>> {
        let path = folder.join(name(number));
        let file = match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            file => file?,
        };
        // Between its creation and this another process may have taken it up. Where nothing can be locked nobody takes up
        // the file of another.
        if let Err(std::fs::TryLockError::WouldBlock) = file.try_lock() {
            return Ok(None);
        }
        let mut segment = Segment { path, file, resident: None, end: 0, written: 0, torn: 0 };
        segment.begin();
        Ok(Some(segment))
    }

    fn begin(&mut self) {
        self.resident = Some(MAGIC.to_vec());
        self.end = MAGIC.len() as u64;
    }

    /// Is not grown any more; another process may.
    pub(crate) fn leave(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Bytes of it, on the disk and on the way there.
    pub(crate) fn bytes(&self) -> u64 {
        self.end + self.torn
    }

    /// Where the next record begins.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of it in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }

    /// Takes it out of memory, unless there is something that is not written yet.
    pub(crate) fn release(&mut self) {
        if self.written == self.end {
            self.resident = None;
        }
    }

    /// Calls `take` with a value; `spare` is memory to read it into.
    pub(crate) fn value<R>(
        &self,
        at: u64,
        len: u32,
        spare: &mut Vec<u8>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> io::Result<R> {
        if let Some(bytes) = &self.resident {
            let value = at.checked_add(u64::from(len)).and_then(|end| bytes.get(at as usize..end as usize));
            return value.map(take).ok_or(io::ErrorKind::UnexpectedEof.into());
        }
        spare.resize(len as usize, 0);
        read_exact_at(&self.file, spare, at)?;
        Ok(take(spare))
    }

    /// Puts a value at the end, in memory. Its head and its place come back.
    pub(crate) fn push<'a>(&mut self, key: Key, value: impl Iterator<Item = &'a [u8]>) -> (Head, u64) {
        let bytes = self.resident.get_or_insert_default();
        let head_at = bytes.len();
        let at = head_at + HEAD_BYTES as usize;
        bytes.extend_from_slice(&[0; HEAD_BYTES as usize]);
        value.for_each(|part| bytes.extend_from_slice(part));
        let head = Head { key, len: (bytes.len() - at) as u32, check: checksum(key, &bytes[at..]) };
        bytes[head_at..at].copy_from_slice(&head.to_bytes());
        self.end = bytes.len() as u64;
        (head, at as u64)
    }

    /// Bytes that are not on the disk yet.
    pub(crate) fn unwritten(&self) -> u64 {
        self.end - self.written
    }

    /// Writes what is not on the disk yet. After a failure that is forgotten, and [`Segment::end`] says from where on.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let Some(bytes) = &mut self.resident else { return Ok(()) };
        let rest = &bytes[self.written as usize..];
        if rest.is_empty() {
            return Ok(());
        }
        let on_disk = |file: &File| file.metadata().map_or(self.written, |metadata| metadata.len());
        // Behind a place where somebody cut it or wrote to it, nothing would be found again.
        let done = if on_disk(&self.file) == self.written {
            (&self.file).write_all(rest)
        } else {
            Err(io::Error::other("somebody else has changed the file"))
        };
        match &done {
            Ok(()) => self.written = self.end,
            Err(_) => {
                // What has reached the disk of it is a torn end: cut it, or leave it to who opens the file next.
                let torn = on_disk(&self.file).saturating_sub(self.written);
                let cut = torn > 0 && self.file.set_len(self.written).is_ok();
                self.torn = if cut { 0 } else { torn };
                bytes.truncate(self.written as usize);
                self.end = self.written;
            }
        }
        done
    }

    /// Removes the file, unless another process grows it.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        remove(&self.path)
    }
}

/// Removes a file of results, unless a process grows it. One that is gone already is removed.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(true) } else { Err(error) };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    if let Err(std::fs::TryLockError::WouldBlock) = file.try_lock() {
        return Ok(false);
    }
    std::fs::remove_file(path).map_or_else(gone, |()| Ok(true))
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, at) = (&mut bytes[read..], at + read as u64),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "segment_tests.rs"]
pub(crate) mod tests;
