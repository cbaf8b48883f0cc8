//! A path and what to write enter, a complete file leaves, or none: readers never see half of one.
//!
//! The new file is written beside the old one and renamed over it. That also keeps an input valid that is mapped from
//! the very file that the output replaces.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::ArrayError;

/// What the closures write to: large writes pass through, small ones are gathered.
pub(crate) type Output = BufWriter<File>;

/// Writes a file whole or not at all.
pub(crate) fn save(path: &Path, write: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<(), ArrayError> {
    replace(path, write).map_err(|error| ArrayError::Io { verb: "write", path: path.to_owned(), error })
}

/// Could a file be written there? For those who work long before they write.
pub(crate) fn can_save(path: &Path) -> Result<(), ArrayError> {
    let tried = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        // Pipes can't be tried without being written to.
        Ok(metadata) if !metadata.is_file() => Ok(()),
        _ => {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            create_beside(&path).and_then(|(temporary, _)| fs::remove_file(temporary))
        }
    };
    tried.map_err(|error| ArrayError::Io { verb: "write", path: path.to_owned(), error })
}

fn replace(path: &Path, write: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    // A link stays a link: what it points to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if special {
        // /dev/stdout and pipes take bytes as they come; there is nothing to replace.
        let mut output = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut output)?;
        return output.flush();
    }
    let (temporary, file) = create_beside(path)?;
    let mut output = BufWriter::new(file);
    let written = write(&mut output).and_then(|()| output.flush()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report; that a leftover could not be removed adds nothing.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file in the same folder, since a rename across file systems would be a copy.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file"));
    };
    let mut attempt = 0u32;
    loop {
        let mut temporary_name = OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary_name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Another thread of this process, or what a killed process with the same id left behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}
