//! Bytes that no numpy wrote: each must end in an error or an array, soon, and without much memory.

use std::io::Read;

use proptest::prelude::*;

use super::*;

fn npy(header: &str, data: &[u8]) -> Bytes {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes.into()
}

fn shaped(shape: &str, descr: &str) -> Bytes {
    npy(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), &[0; 64])
}

#[track_caller]
fn refused(file: Bytes, expected: &str) {
    let message = decode_npy(file).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn claims_are_compared_with_the_bytes_there_are() {
    refused(shaped("(1000000000000000,)", "<f4"), "needs 4000000000000000 bytes of data, and there are 64");
    refused(shaped("(4294967296, 4294967296)", "<f4"), "more elements than memory has addresses");
    refused(shaped("(9223372036854775807,)", "<f8"), "more elements than memory has addresses");
    refused(shaped("(0, 9223372036854775807, 4)", "<f4"), "more elements than memory has addresses");
    refused(shaped("(99999999999999999999,)", "<f4"), "expected an integer");
    refused(shaped("(-1,)", "<f4"), "expected an integer");
    refused(shaped(&format!("({})", "1,".repeat(65)), "<f4"), "more than 64 dimensions");
    refused(shaped("17", "<f4"), "expected a tuple of integers");
    refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec().into(), "header has 4294967307 bytes");
    refused(b"\x93NUMPY\x01\x00\xff\xff{}".to_vec().into(), "the header is cut off: it needs 65545 bytes");
    refused(b"\x93NUMPY\x01".to_vec().into(), "the header is cut off");
    refused(b"\x93NUMPY\x04\x00\x00\x00\x00\x00".to_vec().into(), "version is 4.0");
    refused(b"hello".to_vec().into(), "not a numpy file");
    refused(Bytes::new(), "not a numpy file");
}

#[test]
fn headers_are_read_as_python_would() {
    let order = |text: &str| decode_npy(npy(text, &[7; 64])).map(|array| array.shape);
    assert_eq!(order("{\"shape\": (2L, 3L),'fortran_order':False,'descr':'u4'}").unwrap(), [2, 3]);
    assert_eq!(order("{'descr': '=u4', 'fortran_order': True, 'shape': ()}    \n").unwrap(), [0usize; 0]);
    for text in [
        "",
        "{",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '\u{e9}4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
    ] {
        assert!(order(text).is_err(), "{text}");
    }
    let nested = format!("{{'descr': {}", "[(".repeat(30_000));
    assert!(order(&nested).unwrap_err().to_string().contains("structured"));
}

#[test]
fn bools_become_0_or_1() {
    let file = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", &[0, 1, 2, 255]);
    assert_eq!(&decode_npy(file).unwrap().data[..], [0, 1, 1, 1]);
}

#[test]
fn misaligned_data_are_moved() {
    for shift in 0..8 {
        let mut bytes = vec![0; shift];
        bytes.extend(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", &[0, 0, 128, 63, 0, 0, 0, 64]));
        let array = decode_npy(Bytes::from(bytes).slice(shift..)).unwrap();
        assert_eq!(bytemuck::cast_slice::<u8, f32>(&array.data), [1.0, 2.0]);
    }
}

#[test]
fn large_transposed_arrays_keep_their_order() {
    // Larger than a block of the transposition in both directions, and no multiple of it.
    let (rows, middle, columns) = (70u16, 3, 45);
    let mut data = Vec::new();
    for column in 0..columns {
        for m in 0..middle {
            data.extend((0..rows).flat_map(|row| ((row * middle + m) * columns + column).to_be_bytes()));
        }
    }
    let header = format!("{{'descr': '>u2', 'fortran_order': True, 'shape': ({rows}, {middle}, {columns})}}");
    let array = decode_npy(npy(&header, &data)).unwrap();
    let expected: Vec<u32> = (0..u32::from(rows * middle * columns)).collect();
    assert_eq!(bytemuck::cast_slice::<u8, u32>(&array.data), expected);
}

/// A zip of one member, packed by flate2.
fn zipped(member: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    let builder = archive.new_file("x.npy").compression_method(rawzip::CompressionMethod::DEFLATE);
    let (mut entry, config) = builder.start().unwrap();
    let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::best());
    let mut writer = config.wrap(encoder);
    writer.write_all(member).unwrap();
    let (encoder, descriptor) = writer.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    archive.finish().unwrap()
}

#[test]
fn a_bomb_is_not_inflated() {
    // Ten million zeros behind a header that needs four bytes: ten kilobytes that must stay so.
    let mut member = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &[]).to_vec();
    member.resize(10_000_000, 0);
    let bomb = zipped(&member);
    assert!(bomb.len() < 20_000);
    let message = decode_npz(&bomb.into()).unwrap_err().to_string();
    assert!(message.contains("its own header 69"), "{message}");

    // One that ends where the directory says, only that the stream goes on.
    let mut budget_bytes = 1000;
    let message = npz::inflate(&member[..], 69, &mut budget_bytes).unwrap_err().to_string();
    assert!(message.contains("goes on after the 69 bytes"), "{message}");

    // A header and a directory that agree on more than is allowed, of which not a byte may be asked for.
    let header = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1000000000000,)}", &[]);
    let claimed_bytes = header.len() as u64 + 1_000_000_000_000;
    let mut budget_bytes = MAX_INFLATED_BYTES;
    let error = npz::inflate(header.as_ref().chain(std::io::repeat(1)), claimed_bytes, &mut budget_bytes).unwrap_err();
    assert!(matches!(error, ArrayError::InflatesTooFar { .. }), "{error}");

    // Two that are allowed one by one and not together.
    let mut budget_bytes = 100;
    assert!(npz::inflate(&member[..69], 69, &mut budget_bytes).is_ok());
    let error = npz::inflate(&member[..69], 69, &mut budget_bytes).unwrap_err();
    assert!(matches!(error, ArrayError::InflatesTooFar { limit_bytes: 31, .. }), "{error}");
}

#[test]
fn members_may_not_share_their_bytes() {
    let mut bytes = zipped(&npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2000,)}", &[1; 8000]));
    let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
    let (record, mut tail) = (bytes[directory..end].to_vec(), bytes[end..].to_vec());
    bytes.truncate(directory);
    // The same local file under many names, each of which claims 200 packed bytes.
    let copies = 64u8;
    for i in 0..copies {
        let mut copy = record.clone();
        copy[46] = b'0' + i;
        copy[20..24].copy_from_slice(&200u32.to_le_bytes());
        bytes.extend(copy);
    }
    tail[8..10].copy_from_slice(&u16::from(copies).to_le_bytes());
    tail[10..12].copy_from_slice(&u16::from(copies).to_le_bytes());
    tail[12..16].copy_from_slice(&(u32::from(copies) * record.len() as u32).to_le_bytes());
    bytes.extend(tail);
    let message = npz_names(&bytes.into()).unwrap_err().to_string();
    assert!(message.contains("overlap"), "{message}");
}

/// Decodes as everything: none may panic, and no array may be larger than four times its file.
fn survive(bytes: Vec<u8>) {
    let file = Bytes::from(bytes);
    if let Ok(array) = decode_npy(file.clone()) {
        assert!(array.data.len() <= 4 * file.len());
    }
    let _ = npz_names(&file);
    let _ = npz::decode_member(&file, Some("w1"));
    if let Ok(arrays) = decode_npz(&file) {
        // A deflated byte is at most 1032, and those become four each.
        assert!(arrays.iter().map(|(_, array)| array.data.len()).sum::<usize>() <= 4 * 1032 * file.len());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension != "py"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

const HEADER_PARTS: [&str; 24] = [
    "{",
    "}",
    "'descr'",
    "'fortran_order'",
    "'shape'",
    ":",
    ",",
    "(",
    ")",
    "[",
    "'<f4'",
    "'>i8'",
    "'|b1'",
    "'<u2'",
    "'O'",
    "True",
    "False",
    "0",
    "7",
    "4294967296",
    "18446744073709551615",
    "L",
    " ",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), prefix in 0..5usize) {
        let magic: [&[u8]; 5] = [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x40\x00{", b"PK\x03\x04", b"PK\x05\x06"];
        survive([magic[prefix], &bytes].concat());
    }

    #[test]
    fn header_soup_is_survived(parts in prop::collection::vec(prop::sample::select(&HEADER_PARTS[..]), 0..24)) {
        survive(npy(&parts.concat(), &[1; 64]).to_vec());
    }

    #[test]
    fn mutated_files_are_survived(
        file in prop::sample::select(seeds()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = file;
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.map_or(file.len(), |cut| cut.index(file.len() + 1)));
        survive(file);
    }

    #[test]
    fn any_array_survives_a_round_trip(
        dtype in prop::sample::select(vec![Kind::F32, Kind::I32, Kind::U32, Kind::Bool]),
        shape in prop::collection::vec(0..5usize, 0..5),
        seed in any::<u8>(),
    ) {
        let bytes = shape.iter().product::<usize>() * dtype.size_bytes();
        let limit = if dtype == Kind::Bool { 2 } else { 251 };
        let data: Vec<u8> = (0..bytes).map(|i| ((i * 7 + seed as usize) % limit) as u8).collect();
        let array = HostArray { dtype, shape, data: data.into(), notice: None };
        let mut file = Vec::new();
        npy::encode(&array, &mut file).unwrap();
        prop_assert_eq!((file.len() - bytes) % 64, 0);
        prop_assert_eq!(decode_npy(file.into()).unwrap(), array);
    }
}
