//! An `.npz`, which is a zip of `.npy` files: bytes enter, named [`HostArray`]s leave; and back.
//!
//! Stored members (np.savez) are decoded where they lie in the mapped archive. Compressed ones (np.savez_compressed)
//! are inflated only as far as their own header says that the array goes.

use std::{
    collections::HashSet,
    io::{self, Read, Write},
    path::Path,
};

use bytes::Bytes;
use rawzip::{
    CompressionMethod, Header, ZipArchive, ZipArchiveEntryWayfinder, ZipArchiveWriter, ZipSliceArchive,
    ZipVerification, extra_fields::ExtraFieldId, path::EntryPath,
};

use super::npy::{self, decode_npy};
use super::{ArrayError, HostArray, header, open, save};

/// The most that the compressed members read by one call may take once inflated. Deflate packs a thousand bytes into
/// one, and arrays of zeros are honest input that does so, hence a bound on the whole instead of one on the ratio.
pub const MAX_INFLATED_BYTES: u64 = 4 << 30;

/// The names of an archive's arrays in the order they are stored.
pub fn read_npz_names(path: &Path) -> Result<Vec<String>, ArrayError> {
    npz_names(&open::open(path)?).map_err(|error| error.at(path.display()))
}

/// One array of an archive; the only one if `name` is left out.
pub fn read_npz_member(path: &Path, name: Option<&str>) -> Result<HostArray, ArrayError> {
    decode_member(&open::open(path)?, name).map_err(|error| error.at(path.display()))
}

/// All arrays of an archive with their names, in the order they are stored.
pub fn read_npz(path: &Path) -> Result<Vec<(String, HostArray)>, ArrayError> {
    decode_npz(&open::open(path)?).map_err(|error| error.at(path.display()))
}

/// As [`read_npz_names`], of an archive in memory.
pub fn npz_names(file: &Bytes) -> Result<Vec<String>, ArrayError> {
    Ok(members(&locate(file)?)?.into_iter().map(|member| member.name).collect())
}

/// As [`read_npz`], of an archive in memory.
pub fn decode_npz(file: &Bytes) -> Result<Vec<(String, HostArray)>, ArrayError> {
    let archive = locate(file)?;
    let mut budget_bytes = MAX_INFLATED_BYTES;
    let decode = |member: Member| {
        let array = decode(&archive, &member, &mut budget_bytes).map_err(|error| error.at(&member.name))?;
        Ok((member.name, array))
    };
    members(&archive)?.into_iter().map(decode).collect()
}

pub(super) fn decode_member(file: &Bytes, name: Option<&str>) -> Result<HostArray, ArrayError> {
    let archive = locate(file)?;
    let mut members = members(&archive)?;
    let found = match name {
        // numpy takes both.
        Some(name) => {
            let bare = name.strip_suffix(".npy");
            members.iter().position(|member| member.name == name || bare == Some(&member.name))
        }
        None if members.len() == 1 => Some(0),
        None => None,
    };
    let Some(found) = found else {
        let names = members.into_iter().map(|member| member.name).collect();
        return Err(match name {
            Some(name) => ArrayError::NoMember { name: name.to_owned(), names },
            None => ArrayError::WhichMember { names },
        });
    };
    let member = members.swap_remove(found);
    let mut budget_bytes = MAX_INFLATED_BYTES;
    decode(&archive, &member, &mut budget_bytes).map_err(|error| error.at(&member.name))
}

/// Whether the first bytes are a zip's, an empty one's included.
pub(super) fn is_npz(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

type Archive = ZipSliceArchive<Bytes>;

struct Member {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
}

fn locate(file: &Bytes) -> Result<Archive, ArrayError> {
    if !is_npz(file) {
        return Err(ArrayError::NotNumpy);
    }
    ZipArchive::from_slice(file.clone()).map_err(ArrayError::archive)
}

/// The members that are arrays. Other files in the archive are none of ours.
fn members(archive: &Archive) -> Result<Vec<Member>, ArrayError> {
    let mut members = Vec::new();
    let mut names = HashSet::new();
    let mut packed_bytes = 0u64;
    for entry in archive.entries() {
        let entry = entry.map_err(ArrayError::archive)?;
        let path = entry.file_path();
        let Some(name) = path.as_bytes().strip_suffix(b".npy") else { continue };
        let name = String::from_utf8_lossy(name).into_owned();
        if !names.insert(name.clone()) {
            return Err(ArrayError::SameName.at(name));
        }
        packed_bytes = packed_bytes.saturating_add(entry.compressed_size_hint());
        members.push(Member {
            name,
            place: entry.wayfinder(),
            method: entry.compression_method(),
            is_encrypted: entry.flags().is_encrypted(),
        });
    }
    // Members that share their bytes would let a small archive ask for any amount of work.
    if packed_bytes > archive.get_ref().len() as u64 {
        return Err(ArrayError::archive("its members overlap"));
    }
    Ok(members)
}

fn decode(archive: &Archive, member: &Member, budget_bytes: &mut u64) -> Result<HostArray, ArrayError> {
    if member.is_encrypted {
        return Err(ArrayError::MemberForm { what: "encrypted".to_owned() });
    }
    let entry = archive.get_entry(member.place).map_err(ArrayError::archive)?;
    match member.method {
        CompressionMethod::STORE => {
            // Over the bytes where they lie: a verifying reader took 173 ms for 64 MB where this takes 78.
            let mut crc = flate2::Crc::new();
            crc.update(entry.data());
            let found = ZipVerification { crc: crc.sum(), uncompressed_size: entry.data().len() as u64 };
            entry.claim_verifier().valid(found).map_err(ArrayError::archive)?;
            decode_npy(archive.get_ref().slice_ref(entry.data()))
        }
        CompressionMethod::DEFLATE => {
            let inflated = entry.verifying_reader(flate2::bufread::DeflateDecoder::new(entry.data()));
            decode_npy(inflate(inflated, member.place.uncompressed_size_hint(), budget_bytes)?)
        }
        method => Err(ArrayError::MemberForm { what: format!("compressed with {method}") }),
    }
}

/// Inflates an array, having read its header first: what the array needs is known before its memory is asked for, and
/// memory is asked for as the data really come.
pub(super) fn inflate(mut reader: impl Read, claimed_bytes: u64, budget_bytes: &mut u64) -> Result<Bytes, ArrayError> {
    let mut file = Vec::new();
    let head_bytes = header::MAX_HEADER_BYTES as u64;
    reader.by_ref().take(head_bytes).read_to_end(&mut file).map_err(ArrayError::archive)?;
    let header = header::parse(&file)?;
    let needed_bytes = header.data_start as u64 + header.data_bytes as u64;
    if needed_bytes != claimed_bytes {
        let reason = format_args!("the archive says that it has {claimed_bytes} bytes, its own header {needed_bytes}");
        return Err(ArrayError::archive(reason));
    }
    let Some(left) = budget_bytes.checked_sub(needed_bytes) else {
        return Err(ArrayError::InflatesTooFar { needed_bytes, limit_bytes: *budget_bytes });
    };
    *budget_bytes = left;
    // One byte more than there should be, so that the reader meets the end and compares the checksum.
    let rest_bytes = (needed_bytes + 1).saturating_sub(file.len() as u64);
    reader.take(rest_bytes).read_to_end(&mut file).map_err(ArrayError::archive)?;
    if file.len() as u64 != needed_bytes {
        return Err(ArrayError::archive(format_args!(
            "a member goes on after the {needed_bytes} bytes it should have"
        )));
    }
    Ok(file.into())
}

/// Writes named arrays as `np.savez` would, each stored as it is. The file appears complete or not at all.
pub fn write_npz(path: &Path, arrays: &[(&str, &HostArray)]) -> Result<(), ArrayError> {
    let mut names = HashSet::new();
    for (name, array) in arrays {
        npy::check(array).map_err(|error| error.at(name))?;
        if !names.insert(name) {
            return Err(ArrayError::SameName.at(name).at(path.display()));
        }
    }
    save::save(path, |output| encode(arrays, output))
}

fn encode(arrays: &[(&str, &HostArray)], output: &mut impl Write) -> io::Result<()> {
    let mut archive = ZipArchiveWriter::new(output);
    for (name, array) in arrays {
        let name = format!("{name}.npy");
        let padding = padding(archive.stream_offset(), &name);
        let (mut entry, config) = archive
            .new_file(EntryPath::conformant(name))
            .compression_method(CompressionMethod::STORE)
            .extra_field(PADDING, &padding, Header::LOCAL)
            .and_then(|file| file.start())
            .map_err(io::Error::other)?;
        let mut writer = config.wrap(&mut entry);
        npy::encode(array, &mut writer)?;
        let (_, descriptor) = writer.finish().map_err(io::Error::other)?;
        entry.finish(descriptor).map_err(io::Error::other)?;
    }
    archive.finish().map_err(io::Error::other)?;
    Ok(())
}

/// The extra field that Android's zipalign pads with; readers skip what they do not know.
const PADDING: ExtraFieldId = ExtraFieldId::new(0xd935);

/// Moves the member's `.npy` to a multiple of 64 bytes, so that its data can be used where they are mapped.
fn padding(header_offset: u64, name: &str) -> Vec<u8> {
    const LOCAL_HEADER_BYTES: u64 = 30;
    const EXTRA_FIELD_BYTES: u64 = 4;
    let unpadded = header_offset + LOCAL_HEADER_BYTES + name.len() as u64 + EXTRA_FIELD_BYTES;
    vec![0; (unpadded.next_multiple_of(64) - unpadded) as usize]
}
