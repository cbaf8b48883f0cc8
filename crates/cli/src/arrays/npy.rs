//! One `.npy`: bytes enter, a [`HostArray`] leaves; and back.

use std::{
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;

use super::{ArrayError, HostArray, convert, header, save};

/// Decodes a `.npy` that is already in memory. Data in native form are shared with `file`, not copied.
///
/// Bytes after the data are ignored, as numpy does.
pub fn decode_npy(file: Bytes) -> Result<HostArray, ArrayError> {
    let header = header::parse(&file)?;
    let found_bytes = file.len() - header.data_start;
    if header.data_bytes > found_bytes {
        return Err(ArrayError::CutOff { shape: header.shape, needed_bytes: header.data_bytes, found_bytes });
    }
    let data = file.slice(header.data_start..header.data_start + header.data_bytes);
    convert::to_host(header, data)
}

/// Writes a `.npy` as `np.save` would. The file appears complete or not at all.
pub fn write_npy(path: &Path, array: &HostArray) -> Result<(), ArrayError> {
    check(array)?;
    save::save(path, |output| encode(array, output))
}

/// Refuses an array whose shape does not fit its data: it would become a file that nobody can read.
pub(super) fn check(array: &HostArray) -> Result<(), ArrayError> {
    let size = array.dtype.size_bytes();
    let needed = header::element_count(&array.shape).and_then(|count| count.checked_mul(size));
    match needed {
        Some(needed_bytes) if needed_bytes == array.data.len() => Ok(()),
        Some(needed_bytes) => Err(ArrayError::Inconsistent {
            shape: array.shape.clone(),
            dtype: array.dtype.name(),
            needed_bytes,
            found_bytes: array.data.len(),
        }),
        None => Err(ArrayError::TooLarge { shape: array.shape.clone() }),
    }
}

pub(super) fn encode(array: &HostArray, output: &mut impl Write) -> io::Result<()> {
    output.write_all(&header::format(array.dtype, &array.shape))?;
    output.write_all(&array.data)
}
