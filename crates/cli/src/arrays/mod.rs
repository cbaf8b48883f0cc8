//! Array files: `.npy` and `.npz` enter in every layout that numpy writes, [`HostArray`]s leave; and back.
//!
//! A [`HostArray`] is plain: one of four dtypes, C order, this machine's byte order. Whatever differs from that is
//! converted here, and a conversion of values is said in [`HostArray::notice`]. What already has that form is not
//! copied: the bytes are the mapped file's.
//!
//! Files are not trusted. Nothing is allocated because a header claims it: claims are compared with the bytes there
//! are. The largest allocation is four times the file (8-bit integers become 32-bit ones); compressed members are
//! bounded by [`MAX_INFLATED_BYTES`].

use std::path::Path;

use bytes::Bytes;

mod convert;
mod error;
mod header;
mod npy;
mod npz;
mod open;
mod save;

#[cfg(test)]
mod arrays_tests;
#[cfg(test)]
mod fuzz_tests;

pub use error::ArrayError;
pub use npy::{decode_npy, write_npy};
pub use npz::{MAX_INFLATED_BYTES, decode_npz, npz_names, read_npz, read_npz_member, read_npz_names, write_npz};
pub(crate) use save::{can_save, save as save_file};

/// The dtypes that the library computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 32-bit floats.
    F32,
    /// 32-bit signed integers.
    I32,
    /// 32-bit unsigned integers.
    U32,
    /// One byte an element, 0 or 1.
    Bool,
}

impl Kind {
    /// Bytes an element takes.
    pub fn size_bytes(self) -> usize {
        match self {
            Kind::F32 | Kind::I32 | Kind::U32 => 4,
            Kind::Bool => 1,
        }
    }

    /// The name that users write: `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::F32 => "f32",
            Kind::I32 => "i32",
            Kind::U32 => "u32",
            Kind::Bool => "bool",
        }
    }
}

/// An array in this machine's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    /// What its elements are.
    pub dtype: Kind,
    /// Its extents, outermost first; none for a single value.
    pub shape: Vec<usize>,
    /// The elements in C order and native byte order. What a reader returns is aligned for its dtype, and its bools
    /// are 0 or 1.
    pub data: Bytes,
    /// What was converted to get here, for the user to know.
    pub notice: Option<String>,
}

/// Reads an array: a `.npy`, or a member of an `.npz`.
///
/// The file's first bytes say which it is, not its name. `member` may be left out if the archive has only one.
pub fn load(path: &Path, member: Option<&str>) -> Result<HostArray, ArrayError> {
    let bytes = open::open(path)?;
    let array = if npz::is_npz(&bytes) {
        npz::decode_member(&bytes, member)
    } else if let Some(member) = member {
        Err(ArrayError::NotAnArchive { member: member.to_owned() })
    } else {
        decode_npy(bytes)
    };
    array.map_err(|error| error.at(path.display()))
}

/// Splits `archive.npz:name` into the file and the member.
///
/// Only `.npz:` separates, so that `C:\x.npy` and `a:b.npy` stay whole.
///
/// ```
/// use breakeven_cli::arrays::split_member;
///
/// assert_eq!(split_member("w.npz:layer1"), ("w.npz", Some("layer1")));
/// assert_eq!(split_member("C:\\w.npy"), ("C:\\w.npy", None));
/// ```
pub fn split_member(place: &str) -> (&str, Option<&str>) {
    const SEPARATOR: &str = ".npz:";
    let found = place.as_bytes().windows(SEPARATOR.len()).position(|w| w.eq_ignore_ascii_case(SEPARATOR.as_bytes()));
    match found.map(|start| place.split_at(start + SEPARATOR.len() - 1)) {
        Some((path, member)) => (path, member.strip_prefix(':')),
        None => (place, None),
    }
}
