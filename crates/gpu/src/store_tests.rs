use super::*;
use crate::adapters::{AdapterLimits, Kind};

/// A directory of a test's own, gone at its end.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("breakeven-gpu-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Dir(dir)
    }

    /// The files in which devices are remembered.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).expect("reads");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn info(driver: &str) -> AdapterInfo {
    AdapterInfo {
        id: "gpu:0".into(),
        name: "An Adapter (of 2)".into(),
        backend: "vulkan".into(),
        driver: driver.into(),
        kind: Kind::Discrete,
        memory_bytes: None,
        limits: AdapterLimits {
            binding_bytes: 1 << 27,
            buffer_bytes: 1 << 28,
            bindings: 8,
            workgroup: 256,
            workgroup_bytes: 1 << 14,
            groups: 65_535,
            offset_alignment: 256,
            subgroup: (0, 0),
            int64: false,
        },
        features: vec![],
    }
}

fn found() -> Found {
    let quirks = Quirks { loop_cap: Some(65_535), broken: vec![Class::Scan], ..Quirks::assumed(Kind::Software) };
    Found::new(&quirks, 12_345)
}

#[test]
fn what_is_written_is_read() {
    let dir = Dir::new("written");
    let store = Store::new(Some(&dir.0), &info("1.0"), "abc".into());
    assert_eq!(store.read(), Memory::default());
    store.update(|memory| memory.quirks = Some(found()));
    assert_eq!(Store::new(Some(&dir.0), &info("1.0"), "abc".into()).read().quirks, Some(found()));
    let quirks = store.read().quirks.and_then(|found| found.quirks()).expect("plausible");
    assert_eq!((quirks.loop_cap, quirks.broken), (Some(65_535), vec![Class::Scan]));
    assert_eq!(std::fs::read_dir(&dir.0).expect("reads").count(), 1, "nothing temporary stays");
    // Without a directory nothing is remembered, and nothing fails.
    let none = Store::new(None, &info("1.0"), "abc".into());
    none.update(|memory| memory.quirks = Some(found()));
    assert_eq!(none.read(), Memory::default());
}

#[test]
fn what_is_damaged_or_foreign_is_refused_and_replaced() {
    let dir = Dir::new("damaged");
    let store = Store::new(Some(&dir.0), &info("1.0"), "abc".into());
    store.update(|memory| memory.quirks = Some(found()));
    let path = dir.files().remove(0);
    let good = std::fs::read_to_string(&path).expect("reads");
    let half = good[..good.len() / 2].to_string();
    let digit = good.replace("65535", "65536");
    let other_driver = good.replace("\"1.0\"", "\"1.1\"");
    let other_version = good.replace(env!("CARGO_PKG_VERSION"), "999.0.0");
    let long = format!("{good}{}", " ".repeat(2 << 20));
    for (what, text) in [
        ("half", half),
        ("a digit", digit),
        ("driver", other_driver),
        ("version", other_version),
        ("kernels", good.replace("\"abc\"", "\"abd\"")),
        ("field", good.replacen('{', "{ \"more\": 1,", 1)),
        ("list", "[]".into()),
        ("nothing", String::new()),
        ("long", long),
    ] {
        assert_ne!(text, good, "{what}");
        std::fs::write(&path, text).expect("writes");
        assert_eq!(store.read(), Memory::default(), "{what}");
        store.update(|memory| memory.quirks = Some(found()));
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), good, "{what}");
    }
    std::fs::write(&path, [0xff, 0xfe, 0]).expect("writes");
    assert_eq!(store.read(), Memory::default());
    // A directory in its place can't be replaced: nothing is remembered, nothing fails.
    std::fs::remove_file(&path).expect("removes");
    std::fs::create_dir(&path).expect("creates");
    store.update(|memory| memory.quirks = Some(found()));
    assert_eq!(store.read(), Memory::default());
}

#[test]
fn quirks_that_no_test_finds_are_refused() {
    for broken in [vec!["map", "reduce", "scan", "contract"], vec!["magic"]] {
        let broken = broken.into_iter().map(String::from).collect();
        assert_eq!(Found { broken, ..found() }.quirks(), None);
    }
    assert_eq!(Found { in_flight: 0, ..found() }.quirks(), None);
    assert_eq!(Found { loop_cap: Some(0), ..found() }.quirks(), None);
}

#[test]
fn writers_do_not_harm_each_other() {
    let dir = Dir::new("writers");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let store = Store::new(Some(&dir.0), &info("1.0"), "abc".into());
                for _ in 0..20 {
                    store.update(|memory| memory.quirks = Some(found()));
                    assert_eq!(store.read().quirks, Some(found()));
                }
            });
        }
    });
}
