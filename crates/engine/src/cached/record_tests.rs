use super::*;
use proptest::prelude::*;
use std::io::Cursor;

fn file(values: &[(Key, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (key, value) in values {
        let head = Head { key: *key, len: value.len() as u32, check: checksum(*key, value) };
        bytes.extend(head.to_bytes());
        bytes.extend(value);
    }
    bytes
}

/// The values that are found and believed, and where that ends.
fn believed(bytes: &[u8]) -> (Vec<(Key, Vec<u8>)>, Scanned) {
    let mut found = Vec::new();
    let scanned = scan(&mut Cursor::new(bytes), bytes.len() as u64, |head, at| {
        let value = &bytes[at as usize..at as usize + head.len as usize];
        if head.is_of(value) {
            found.push((head.key, value.to_vec()));
        }
    });
    (found, scanned.unwrap())
}

fn three() -> Vec<(Key, Vec<u8>)> {
    vec![(1, b"one".to_vec()), (u128::MAX, vec![]), (3 << 70, vec![7; 40])]
}

#[test]
fn what_was_written_is_read() {
    let bytes = file(&three());
    assert_eq!(believed(&bytes), (three(), Scanned { end: bytes.len() as u64, torn: false }));
    assert_eq!(believed(b""), (vec![], Scanned { end: 0, torn: false }));
    assert_eq!(believed(b"another file").1, Scanned { end: 0, torn: true });
}

#[test]
fn a_file_that_is_cut_anywhere_has_all_that_was_whole() {
    let bytes = file(&three());
    for len in 0..bytes.len() {
        let (found, scanned) = believed(&bytes[..len]);
        assert_eq!(found, three()[..found.len()], "{len}");
        let end = file(&three()[..found.len()]).len();
        assert!(len < MAGIC.len() || scanned.end == end as u64, "{len}");
        assert_eq!(scanned.torn, scanned.end < len as u64, "{len}");
        let zeros = [&bytes[..len], &[0; 100]].concat();
        assert_eq!(believed(&zeros).0, three()[..believed(&zeros).0.len()], "{len}: a power cut leaves zeros");
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    let bytes = file(&three());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let (found, _) = believed(&damaged);
        assert!(found.len() < 3, "bit {bit}");
        assert!(found.iter().all(|value| three().contains(value)), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn nothing_is_made_up_from_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), head in any::<bool>()) {
        let bytes = if head { [&MAGIC[..], &bytes].concat() } else { bytes };
        prop_assert_eq!(believed(&bytes).0, vec![]);
    }

    #[test]
    fn overwritten_bytes_are_noticed(at in 0usize..100, with in prop::collection::vec(any::<u8>(), 1..80)) {
        let mut bytes = file(&three());
        let at = at.min(bytes.len() - 1);
        let end = (at + with.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&with[..end - at]);
        prop_assert!(believed(&bytes).0.iter().all(|value| three().contains(value)));
    }
}
