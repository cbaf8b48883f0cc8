//! Writes a file whole or not at all: a reader, and whoever comes after a crash, finds the old one or the new one.

use std::io;
use std::path::Path;

/// Replaces the file at `path`, whose folder is made if it is not there.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Of this thread alone: two engines of one process may write at once.
    let thread = format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
    let beside = path.with_extension(format!("{}-{thread}.tmp", std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    // A disk that is full keeps half a file.
    written.inspect_err(|_| drop(std::fs::remove_file(&beside)))
}
