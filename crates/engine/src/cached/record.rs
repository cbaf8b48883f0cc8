//! A result as it lies in a file: a head of 32 bytes and the value behind it. Values enter, bytes leave, and the other way
//! round; bytes that were not written here, or not to their end, are told from those that were.
//!
//! A file begins with [`MAGIC`]. The head's own checksum says that its length can be believed, so that the next record is
//! found without a look at the value; the value has a checksum of its own, which belongs to its key and is looked at whenever
//! the value is read.

use super::key::{Key, checksum};
use std::io::{self, Read, Seek};

/// How a file begins. The digit is the version of this form.
pub(crate) const MAGIC: [u8; 8] = *b"BRKRSLT1";
/// Bytes before a value.
pub(crate) const HEAD_BYTES: u64 = 32;

/// What lies before a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) key: Key,
    pub(crate) len: u32,
    /// Of the value.
    pub(crate) check: u64,
}

impl Head {
    /// As bytes: length, checksum of the rest, key, checksum of the value.
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.own_check().to_le_bytes());
        bytes[8..24].copy_from_slice(&self.key.to_le_bytes());
        bytes[24..].copy_from_slice(&self.check.to_le_bytes());
        bytes
    }

    /// `None` if it was not written here.
    pub(crate) fn from_bytes(bytes: &[u8; HEAD_BYTES as usize]) -> Option<Head> {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (own, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_first_chunk::<16>()?;
        let (check, _) = rest.split_first_chunk::<8>()?;
        let head =
            Head { key: Key::from_le_bytes(*key), len: u32::from_le_bytes(*len), check: u64::from_le_bytes(*check) };
        (u32::from_le_bytes(*own) == head.own_check()).then_some(head)
    }

    fn own_check(&self) -> u32 {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..].copy_from_slice(&self.check.to_le_bytes());
        checksum(self.key, &bytes) as u32
    }

    /// Is this the value that was written under this head?
    pub(crate) fn is_of(&self, value: &[u8]) -> bool {
        value.len() == self.len as usize && checksum(self.key, value) == self.check
    }
}

/// What a file has in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scanned {
    /// Where what can be believed ends: 0 if nothing of it was written here.
    pub(crate) end: u64,
    /// Was there something behind that?
    pub(crate) torn: bool,
}

/// Tells `found` of each record of a file of `bytes` and where its value begins, up to the first that is torn or damaged:
/// behind a length that can't be believed nothing is found.
pub(crate) fn scan<R: Read + Seek>(file: &mut R, bytes: u64, mut found: impl FnMut(Head, u64)) -> io::Result<Scanned> {
    let mut magic = MAGIC;
    let mut end = magic.len() as u64;
    if bytes < end {
        return Ok(Scanned { end: 0, torn: bytes > 0 });
    }
    file.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Ok(Scanned { end: 0, torn: true });
    }
    let mut head = [0; HEAD_BYTES as usize];
    while bytes - end >= HEAD_BYTES {
        file.read_exact(&mut head)?;
        let value = end + HEAD_BYTES;
        let Some(head) = Head::from_bytes(&head).filter(|head| bytes - value >= u64::from(head.len)) else { break };
        found(head, value);
        end = value + u64::from(head.len);
        file.seek_relative(i64::from(head.len))?;
    }
    Ok(Scanned { end, torn: end < bytes })
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
