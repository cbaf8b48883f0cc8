//! An open file enters, its contents as a slice of memory leave: large inputs are paged in where they are used, and
//! never copied. It lives here because mapping is unsafe, and only this crate and `gpu` may be.

use std::{fs::File, io};

/// Maps a whole file for reading.
///
/// The contents belong to the file system: if another process truncates the file while it is mapped, touching the lost
/// part ends this process (SIGBUS), and if another process writes into it, the values change. Replacing the file by
/// renaming another over it, as our own writers do, is harmless: the map keeps the old contents.
pub fn map_file(file: &File) -> io::Result<impl AsRef<[u8]> + Send + Sync + 'static> {
    // SAFETY: the map is read-only and is given out as bytes, for which every bit pattern is valid. That nobody changes
    // the file meanwhile cannot be proven here; it is the documented condition, as for every mapped reader.
    unsafe { memmap2::Mmap::map(file) }
}
