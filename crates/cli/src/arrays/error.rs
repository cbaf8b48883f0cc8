//! What can be wrong with an array file.

use std::{fmt::Display, io, path::PathBuf};

/// A mistake in an array file, or a failure to read or write one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The operating system refused.
    #[error("cannot {verb} {path}: {error}", path = .path.display())]
    Io {
        /// What was tried: `read` or `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// Another error, and the file or member it is in.
    #[error("{place}: {error}")]
    At {
        /// The file or member.
        place: String,
        /// What is wrong there.
        error: Box<ArrayError>,
    },
    /// The first bytes are neither a `.npy`'s nor an `.npz`'s.
    #[error("not a numpy file: it starts with neither a .npy's nor an .npz's first bytes; write it with np.save")]
    NotNumpy,
    /// The file ends within its header.
    #[error("the header is cut off: it needs {needed_bytes} bytes and the file has {found_bytes}")]
    HeaderCutOff {
        /// How long the header says it is, the fixed part included.
        needed_bytes: usize,
        /// How much there is.
        found_bytes: usize,
    },
    /// A format version that numpy has not defined yet.
    #[error("the .npy format version is {major}.{minor}; versions 1.0, 2.0 and 3.0 can be read")]
    Version {
        /// The major version.
        major: u8,
        /// The minor version.
        minor: u8,
    },
    /// The header is not the dict that it should be.
    #[error("the .npy header is malformed at byte {at_byte}: expected {expected}")]
    Header {
        /// Where in the file.
        at_byte: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// The header is larger than one for a plain array can be.
    #[error(
        "the .npy header has {header_bytes} bytes, of which a plain array needs less than 65536; \
             save each field of a structured array as an array of its own"
    )]
    HeaderTooLong {
        /// How long the header says it is.
        header_bytes: usize,
    },
    /// A dtype that is not computed with.
    #[error("the dtype is {found}, which is not supported; {advice}")]
    Dtype {
        /// What the header says, in words.
        found: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// More dimensions than numpy has.
    #[error("the array has more than 64 dimensions, which is numpy's limit")]
    TooManyDimensions,
    /// The shape's product does not fit in memory.
    #[error("the shape {shape:?} has more elements than memory has addresses")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// The data end before the shape is filled.
    #[error("the file is cut off: shape {shape:?} needs {needed_bytes} bytes of data, and there are {found_bytes}")]
    CutOff {
        /// The shape.
        shape: Vec<usize>,
        /// The bytes that the shape needs.
        needed_bytes: usize,
        /// The bytes that there are.
        found_bytes: usize,
    },
    /// An integer that 32 bits cannot hold.
    #[error(
        "element {index:?} is {value}, which does not fit in {to}; \
             scale it down or save the array as floats, with x.astype(np.float32)"
    )]
    OutOfRange {
        /// Where in the array, the first of all such.
        index: Vec<usize>,
        /// The value.
        value: i128,
        /// The dtype it should become.
        to: &'static str,
    },
    /// The archive is malformed.
    #[error("the archive is damaged: {reason}")]
    Archive {
        /// In what way.
        reason: String,
    },
    /// Two arrays of an archive have the same name.
    #[error("two arrays of the archive have this name; rename one of them")]
    SameName,
    /// The archive lacks the member.
    #[error("the archive has no array `{name}`; it has {}", listed(.names))]
    NoMember {
        /// What was asked for.
        name: String,
        /// What there is.
        names: Vec<String>,
    },
    /// The archive has several arrays and none was named.
    #[error("the archive has {} arrays; name one, as in `x=archive.npz:name`: {}", .names.len(), listed(.names))]
    WhichMember {
        /// What there is.
        names: Vec<String>,
    },
    /// A member of a file that is no archive.
    #[error("`:{member}` names a member of an .npz archive, and this is a single array; leave it out")]
    NotAnArchive {
        /// What was asked for.
        member: String,
    },
    /// A member of a form that is not read.
    #[error("this member of the archive is {what}; save it with np.savez or np.savez_compressed")]
    MemberForm {
        /// The form.
        what: String,
    },
    /// A compressed member is larger than the limit.
    #[error(
        "uncompressed this would take {needed_bytes} bytes, and at most {limit_bytes} are unpacked; \
             save it with np.savez, which does not compress and has no limit"
    )]
    InflatesTooFar {
        /// What it would take.
        needed_bytes: u64,
        /// What is allowed.
        limit_bytes: u64,
    },
    /// An array to write whose parts contradict each other.
    #[error("shape {shape:?} of {dtype} needs {needed_bytes} bytes, and the array has {found_bytes}")]
    Inconsistent {
        /// The shape.
        shape: Vec<usize>,
        /// The dtype.
        dtype: &'static str,
        /// What the two need.
        needed_bytes: usize,
        /// What there is.
        found_bytes: usize,
    },
}

impl ArrayError {
    pub(super) fn at(self, place: impl Display) -> ArrayError {
        ArrayError::At { place: printable(&place.to_string()), error: Box::new(self) }
    }

    pub(super) fn archive(reason: impl Display) -> ArrayError {
        ArrayError::Archive { reason: printable(&reason.to_string()) }
    }
}

/// Names come from files: control characters in them would reach the terminal as commands.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The first few names: an archive may have a hundred thousand.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(|name| printable(name)).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        n if n > SHOWN => {
            text += &format!(" and {} more", n - SHOWN);
            text
        }
        _ => text,
    }
}
