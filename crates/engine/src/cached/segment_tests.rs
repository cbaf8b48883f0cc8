use super::*;

impl Segment {
    /// From now on nothing can be written, as on a full disk.
    pub(crate) fn fail_writes(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }
}

/// A folder that is gone afterwards.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("breakeven-results-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn push(segment: &mut Segment, key: Key, value: &[u8]) -> (Head, u64) {
    segment.push(key, [value].into_iter())
}

#[test]
fn names_are_read_as_they_are_made() {
    for number in [1, 99_999_999, 100_000_000, u64::MAX] {
        assert_eq!(super::number(&name(number)), Some(number));
    }
    for other in
        ["results-1.log", "results-.log", "results-00000001.json", "results-0000000x.log", "x", "results-+0000001.log"]
    {
        assert_eq!(number(other), None, "{other}");
    }
}

#[test]
fn one_grows_a_file_and_others_read_it() {
    let folder = Folder::new("segment-grows");
    let mut segment = Segment::create(&folder.0, 1).unwrap().unwrap();
    assert!(Segment::create(&folder.0, 1).unwrap().is_none(), "a number is taken once");
    let (head, at) = push(&mut segment, 5, b"value");
    let path = folder.0.join(name(1));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "in memory first");
    assert_eq!(segment.value(at, head.len, &mut Vec::new(), <[u8]>::to_vec).unwrap(), b"value");
    segment.write().unwrap();
    assert!(Segment::open_to_grow(path.clone(), |_, _| {}).unwrap().is_none(), "it is locked");
    assert!(!segment.remove().unwrap() && path.exists(), "nor is it removed");
    for keep in [false, true] {
        let mut found = Vec::new();
        let other = Segment::open(path.clone(), keep, |head, at| found.push((head, at))).unwrap();
        assert_eq!(found, [(head, at)]);
        assert_eq!(other.value(at, 5, &mut Vec::new(), <[u8]>::to_vec).unwrap(), b"value");
        assert!(other.value(at, 6, &mut Vec::new(), <[u8]>::to_vec).is_err(), "it is not longer");
        assert!(other.value(u64::MAX, 6, &mut Vec::new(), <[u8]>::to_vec).is_err());
    }
    segment.leave().unwrap();
    let mut next = Segment::open_to_grow(path.clone(), |_, _| {}).unwrap().unwrap();
    push(&mut next, 6, b"more");
    next.write().unwrap();
    drop(next);
    let mut keys = Vec::new();
    Segment::open(path.clone(), false, |head, _| keys.push(head.key)).unwrap();
    assert_eq!(keys, [5, 6]);
    assert!(segment.remove().unwrap() && !path.exists());
    assert!(segment.remove().unwrap(), "gone is gone");
}

#[test]
fn a_torn_end_is_cut_before_it_is_grown() {
    let folder = Folder::new("segment-torn");
    let mut segment = Segment::create(&folder.0, 1).unwrap().unwrap();
    push(&mut segment, 1, b"whole");
    segment.write().unwrap();
    let whole = segment.end();
    push(&mut segment, 2, b"torn");
    segment.write().unwrap();
    drop(segment);
    let path = folder.0.join(name(1));
    let bytes = std::fs::read(&path).unwrap();
    for len in whole as usize..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let mut segment = Segment::open_to_grow(path.clone(), |_, _| {}).unwrap().unwrap();
        assert_eq!((segment.end(), segment.bytes()), (whole, whole));
        push(&mut segment, 3, b"next");
        segment.write().unwrap();
        drop(segment);
        let mut keys = Vec::new();
        Segment::open(path.clone(), true, |head, _| keys.push(head.key)).unwrap();
        assert_eq!(keys, [1, 3], "{len}");
    }
    std::fs::write(&path, b"").unwrap();
    assert!(Segment::open_to_grow(path.clone(), |_, _| {}).unwrap().is_some(), "an empty one is begun");
    std::fs::write(&path, b"BRKRSLT9 of another version").unwrap();
    assert!(Segment::open_to_grow(path.clone(), |_, _| {}).unwrap().is_none());
    assert_eq!(std::fs::read(&path).unwrap(), b"BRKRSLT9 of another version", "it is left as it is");
}

#[test]
fn what_can_not_be_written_is_forgotten() {
    let folder = Folder::new("segment-full");
    let mut segment = Segment::create(&folder.0, 1).unwrap().unwrap();
    push(&mut segment, 1, b"kept");
    segment.write().unwrap();
    let end = segment.end();
    segment.fail_writes();
    let (_, at) = push(&mut segment, 2, b"lost");
    assert!(segment.write().is_err());
    assert_eq!((segment.end(), segment.unwritten()), (end, 0));
    assert!(segment.value(at, 4, &mut Vec::new(), |_| ()).is_err());
}
