//! Files that numpy wrote (tests/data), and files that we write.

use std::path::{Path, PathBuf};

use super::*;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> HostArray {
    load(&data(name), None).unwrap_or_else(|error| panic!("{error}"))
}

fn message(name: &str) -> String {
    load(&data(name), None).expect_err(name).to_string()
}

fn f32s(array: &HostArray) -> Vec<f32> {
    assert_eq!(array.dtype, Kind::F32);
    bytemuck::cast_slice(&array.data).to_vec()
}

fn i32s(array: &HostArray) -> Vec<i32> {
    assert_eq!(array.dtype, Kind::I32);
    bytemuck::cast_slice(&array.data).to_vec()
}

fn u32s(array: &HostArray) -> Vec<u32> {
    assert_eq!(array.dtype, Kind::U32);
    bytemuck::cast_slice(&array.data).to_vec()
}

/// A fresh folder, removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("breakeven-arrays-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn array(dtype: Kind, shape: &[usize], data: impl Into<Bytes>) -> HostArray {
    HostArray { dtype, shape: shape.to_vec(), data: data.into(), notice: None }
}

#[test]
fn every_order_of_the_same_values_reads_alike() {
    let count: Vec<f32> = (0u8..24).map(f32::from).collect();
    for name in ["f32_c.npy", "f32_fortran_3d.npy", "f32_big.npy", "f64_big_fortran.npy"] {
        let array = read(name);
        assert_eq!(array.shape, [2, 3, 4], "{name}");
        assert_eq!(f32s(&array), count, "{name}");
    }
    for name in ["version2.npy", "version3.npy"] {
        let array = read(name);
        assert_eq!((array.shape.as_slice(), f32s(&array)), (&[3, 4][..], count[..12].to_vec()), "{name}");
    }
}

#[test]
fn every_dtype_is_converted_with_a_notice() {
    let notice = |name: &str| read(name).notice.unwrap_or_default();
    assert_eq!(i32s(&read("i64_default.npy")), [i32::MIN, -1, 0, i32::MAX]);
    assert_eq!(notice("i64_default.npy"), "converted from i64 to i32");
    assert_eq!(i32s(&read("i8.npy")), [-128, 0, 127]);
    assert_eq!(i32s(&read("i16_big.npy")), (-12..12).collect::<Vec<_>>());
    assert_eq!(u32s(&read("u8.npy")), [0, 1, 255]);
    assert_eq!(u32s(&read("u16.npy")), [0, 65535]);
    assert_eq!(u32s(&read("u64_big_fortran.npy")), (0..12).collect::<Vec<_>>());
    assert_eq!(u32s(&read("u32.npy")), [0, u32::MAX]);
    assert_eq!(read("u32.npy").notice, None);

    let halves = f32s(&read("f16.npy"));
    assert_eq!(halves[..7], [0.0, -0.0, 1.5, 5.9604645e-8, 65504.0, f32::INFINITY, f32::NEG_INFINITY]);
    assert!(halves[1].is_sign_negative() && halves[7].is_nan());
    assert_eq!(notice("f16.npy"), "converted from f16 to f32");

    assert_eq!(f32s(&read("f64_overflow.npy")), [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY, 0.0, 1.0]);
    let expected = "converted from f64 to f32; 2 finite values are beyond its range and became infinite";
    assert_eq!(notice("f64_overflow.npy"), expected);

    let bools = read("bool_fortran.npy");
    assert_eq!((bools.dtype, &bools.data[..]), (Kind::Bool, &[1, 0, 1, 0, 0, 1][..]));
}

#[test]
fn scalars_and_empty_arrays_have_their_shapes() {
    assert_eq!((read("zero_d.npy").shape, f32s(&read("zero_d.npy"))), (vec![], vec![2.5]));
    assert_eq!((read("zero_d_f64.npy").shape, f32s(&read("zero_d_f64.npy"))), (vec![], vec![2.5]));
    for name in ["empty.npy", "empty_fortran.npy"] {
        assert_eq!((read(name).shape, f32s(&read(name))), (vec![3, 0, 2], vec![]), "{name}");
    }
}

#[test]
fn integers_out_of_range_are_named() {
    let expected = "element [1, 1] is -2147483649, which does not fit in i32";
    assert!(message("i64_too_large_fortran.npy").contains(expected));
    assert!(message("u64_too_large.npy").contains("element [1] is 18446744073709551615, which does not fit in u32"));
}

#[test]
fn other_dtypes_are_refused_with_advice() {
    for (name, expected) in [
        ("complex.npy", "the dtype is complex (`<c16`), which is not supported; save x.real"),
        ("string.npy", "strings (`<U2`)"),
        ("bytes.npy", "strings (`|S2`)"),
        ("object.npy", "Python objects (`|O`)"),
        ("structured.npy", "the dtype is structured, which is not supported; save each field"),
        ("datetime.npy", "dates or times (`<M8[D]`)"),
        ("longdouble.npy", "a long double (`<f16`)"),
    ] {
        assert!(message(name).contains(expected), "{name}: {}", message(name));
        assert!(message(name).contains(name), "the file is named");
    }
}

#[test]
fn archives_of_numpy_are_read() {
    for name in ["stored.npz", "compressed.npz"] {
        let array = read_npz_member(&data(name), Some("w1")).unwrap();
        assert_eq!((array.shape.as_slice(), f32s(&array).len()), (&[2, 3, 4][..], 24), "{name}");
    }
    assert_eq!(read_npz_names(&data("stored.npz")).unwrap(), ["w1", "w2", "mask"]);
    let all = read_npz(&data("stored.npz")).unwrap();
    assert_eq!(all[1].1.notice.as_deref(), Some("converted from f64 to f32"));
    assert_eq!(f32s(&all[1].1), (0u8..12).map(f32::from).collect::<Vec<_>>());
    assert_eq!(all[2].1.dtype, Kind::Bool);
    assert_eq!(f32s(&load(&data("compressed.npz"), Some("zeros.npy")).unwrap()), vec![0.0; 10_000]);
    assert_eq!(i32s(&read("single.npz")), [0, 1, 2]);
    assert_eq!(read_npz(&data("empty.npz")).unwrap(), []);

    assert!(message("stored.npz").contains("has 3 arrays; name one, as in `x=archive.npz:name`: w1, w2, mask"));
    let missing = load(&data("stored.npz"), Some("w9")).unwrap_err().to_string();
    assert!(missing.contains("has no array `w9`; it has w1, w2, mask"), "{missing}");
    assert!(message("empty.npz").contains("has 0 arrays"));
    let not_archive = load(&data("f32_c.npy"), Some("w")).unwrap_err().to_string();
    assert!(not_archive.contains("this is a single array"), "{not_archive}");
}

#[test]
fn a_damaged_archive_is_noticed() {
    for name in ["stored.npz", "compressed.npz"] {
        let mut bytes = std::fs::read(data(name)).unwrap();
        let middle = bytes.len() / 2 - 200;
        bytes[middle] ^= 0x10;
        assert!(decode_npz(&bytes.into()).is_err(), "{name}");
    }
}

#[test]
fn what_is_written_is_read_back_without_a_copy() {
    let folder = Folder::new("round-trip");
    let values: Vec<u8> = (0..400_000u32).flat_map(u32::to_ne_bytes).collect();
    let large = array(Kind::U32, &[4, 100_000], values);
    let small = array(Kind::Bool, &[3], vec![1, 0, 1]);
    let scalar = array(Kind::F32, &[], 1.5f32.to_ne_bytes().to_vec());
    let none = array(Kind::I32, &[0, 5], vec![]);
    for original in [&large, &small, &scalar, &none] {
        write_npy(&folder.file("a.npy"), original).unwrap();
        assert_eq!(load(&folder.file("a.npy"), None).unwrap(), *original);
    }
    let archive = folder.file("a.npz");
    write_npz(&archive, &[("large", &large), ("odd n\u{e4}me", &small), ("s", &scalar), ("again", &large)]).unwrap();
    let all = read_npz(&archive).unwrap();
    assert_eq!(all.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["large", "odd n\u{e4}me", "s", "again"]);
    assert_eq!((&all[0].1, &all[1].1, &all[2].1, &all[3].1), (&large, &small, &scalar, &large));

    // Both large members lie in one map, at their places in the file.
    let file = open::open(&archive).unwrap();
    for (_, array) in decode_npz(&file).unwrap().iter().filter(|(_, array)| array.dtype == Kind::U32) {
        assert!(file.as_ptr_range().contains(&array.data.as_ptr()), "copied");
        assert_eq!((array.data.as_ptr() as usize - file.as_ptr() as usize) % 64, 0);
    }
    let leftovers = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(leftovers, 2, "a.npy and a.npz, and nothing temporary");
}

#[test]
fn an_output_may_replace_the_file_its_input_is_mapped_from() {
    let folder = Folder::new("replace");
    let path = folder.file("x.npy");
    write_npy(&path, &array(Kind::Bool, &[1_000_000], vec![1; 1_000_000])).unwrap();
    let input = load(&path, None).unwrap();
    write_npy(&path, &array(Kind::Bool, &[1], vec![0])).unwrap();
    assert!(input.data.iter().all(|&b| b == 1));
    assert_eq!(load(&path, None).unwrap().shape, [1]);
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let folder = Folder::new("refuse");
    let wrong = array(Kind::F32, &[3], vec![0; 8]);
    let error = write_npy(&folder.file("x.npy"), &wrong).unwrap_err().to_string();
    assert_eq!(error, "shape [3] of f32 needs 12 bytes, and the array has 8");
    assert!(write_npz(&folder.file("x.npz"), &[("a", &wrong)]).is_err());
    let good = array(Kind::Bool, &[1], vec![0]);
    assert!(write_npz(&folder.file("x.npz"), &[("a", &good), ("a", &good)]).is_err());
    assert!(write_npy(&folder.file("no/such/folder.npy"), &good).is_err());
    assert!(write_npy(&folder.0, &good).is_err(), "a folder is not replaced");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    let missing = load(&folder.file("x.npy"), None).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("x.npy: "), "{missing}");
}

#[test]
fn members_are_split_off_at_npz_only() {
    for (place, expected) in [
        ("x.npy", ("x.npy", None)),
        ("x.npz", ("x.npz", None)),
        ("x.npz:a", ("x.npz", Some("a"))),
        ("X.NPZ:a:b", ("X.NPZ", Some("a:b"))),
        ("x.npz:", ("x.npz", Some(""))),
        ("d\u{e9}.npz:\u{e9}", ("d\u{e9}.npz", Some("\u{e9}"))),
        ("C:\\a.npz:b", ("C:\\a.npz", Some("b"))),
        ("", ("", None)),
    ] {
        assert_eq!(split_member(place), expected);
    }
}
