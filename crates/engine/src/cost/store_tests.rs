//! Costs on disk: whole or not at all, and nothing is believed that this machine did not write.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const MACHINE: (&str, usize) = ("Some Processor 9000 @ 3.1 GHz", 4);

/// A folder of its own, gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("breakeven-store-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        Folder(std::env::temp_dir().join(name))
    }

    fn file(&self) -> PathBuf {
        CostsFile::path(&self.0, MACHINE.0, MACHINE.1)
    }

    fn read(&self) -> (CostsFile, Option<String>) {
        CostsFile::read(&self.0, MACHINE.0, MACHINE.1)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key(name: &str) -> DeviceKey {
    DeviceKey { name: name.into(), backend: "vulkan".into(), driver: "1.2.3".into() }
}

fn costs(fixed_ns: f64) -> Costs {
    let mut costs = Costs { fixed_ns, memory: super::super::Curve::new(vec![(1e3, 50.0)]), ..Costs::default() };
    costs.weights.insert("exp".into(), 8.0);
    costs.reduce.curve(64).put(1e4, 1e3);
    costs
}

fn written(folder: &Folder) -> String {
    let mut file = CostsFile::empty(MACHINE.0, MACHINE.1);
    file.put(&key("card"), costs(100.5));
    file.write(&folder.0).unwrap();
    std::fs::read_to_string(folder.file()).unwrap()
}

/// What is refused says which file it is, what is wrong with it and what to do; nothing of it is used.
#[track_caller]
fn assert_refused(folder: &Folder, why: &str) {
    let (file, refusal) = folder.read();
    assert_eq!(file, CostsFile::empty(MACHINE.0, MACHINE.1));
    let refusal = refusal.expect("it is refused");
    assert!(refusal.starts_with(&folder.file().display().to_string()), "{refusal}");
    assert!(refusal.contains(why), "`{refusal}` does not say `{why}`");
    assert!(refusal.contains("`breakeven scan`"), "{refusal}");
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    assert_eq!(folder.read(), (CostsFile::empty(MACHINE.0, MACHINE.1), None));
    written(&folder);
    let (mut file, refusal) = folder.read();
    assert_eq!((file.get(&key("card")), refusal), (Some(&costs(100.5)), None));
    assert_eq!(file.get(&key("another")), None);
    let newer = DeviceKey { driver: "1.2.4".into(), ..key("card") };
    assert_eq!(file.get(&newer), None, "another driver is another device");
    assert!(file.has_devices());
    file.put(&key("card"), costs(7.0));
    file.put(&newer, costs(8.0));
    file.write(&folder.0).unwrap();
    let (file, _) = folder.read();
    assert_eq!((file.get(&key("card")), file.get(&newer)), (Some(&costs(7.0)), Some(&costs(8.0))));
    assert_eq!(file.keys().count(), 2);
}

#[test]
fn the_processor_alone_is_no_device() {
    let mut file = CostsFile::empty("p", 1);
    file.put(&DeviceKey { backend: CPU.into(), ..key("p") }, costs(1.0));
    assert!(!file.has_devices());
}

#[test]
fn machines_have_files_of_their_own() {
    let dir = Path::new("cache");
    let one = CostsFile::path(dir, "A (R) CPU/2 @ 3.0", 2);
    assert_eq!(one, Path::new("cache/costs-a--r--cpu-2---3-0-2.json"));
    assert_ne!(one, CostsFile::path(dir, "A (R) CPU/2 @ 3.0", 4));
    assert_eq!(CostsFile::path(dir, "../../etc/passwd", 1).parent(), Some(dir));
}

#[test]
fn a_torn_file_is_refused_wherever_it_ends() {
    let folder = Folder::new();
    let text = written(&folder);
    for len in [0, 1, text.len() / 3, text.len() / 2, text.len() - 1] {
        std::fs::write(folder.file(), &text[..len]).unwrap();
        assert_refused(&folder, "line");
    }
    std::fs::write(folder.file(), text + "}").unwrap();
    assert_refused(&folder, "trailing");
    std::fs::write(folder.file(), [0xff, 0xfe, 0x00]).unwrap();
    assert_refused(&folder, "UTF-8");
}

#[test]
fn what_another_program_or_machine_wrote_is_refused() {
    let folder = Folder::new();
    let text = written(&folder);
    let replaced = |old: &str, new: &str| {
        assert!(text.contains(old), "`{old}` is not in it");
        std::fs::write(folder.file(), text.replacen(old, new, 1)).unwrap();
    };
    replaced(&format!("\"version\": {VERSION}"), "\"version\": 999");
    assert_refused(&folder, "version 999");
    replaced(MACHINE.0, "Another Processor");
    assert_refused(&folder, "Another Processor with 4 threads");
    replaced("\"threads\": 4", "\"threads\": 64");
    assert_refused(&folder, "64 threads");
    replaced("\"version\"", "\"colour\": 5, \"version\"");
    assert_refused(&folder, "colour");
    replaced("\"kernel_ns\"", "\"colour\": 5, \"kernel_ns\"");
    assert_refused(&folder, "colour");
    replaced("\"driver\"", "\"colour\": 5, \"driver\"");
    assert_refused(&folder, "colour");
    replaced("\"overlap\": 2.0,", "");
    assert_refused(&folder, "overlap");
}

/// A later version may have other fields: what it says is its version, not what we don't know about it.
#[test]
fn a_file_of_another_version_and_form_is_called_so() {
    let folder = Folder::new();
    written(&folder);
    std::fs::write(folder.file(), r#"{"version": 7, "machines": []}"#).unwrap();
    assert_refused(&folder, "version 7");
}

#[test]
fn numbers_that_nobody_measures_are_refused() {
    let folder = Folder::new();
    let text = written(&folder);
    for (old, new) in [("100.5", "-100.5"), ("50.0", "-50.0"), ("8.0", "-8.0"), ("1000.0", "-1000.0")] {
        std::fs::write(folder.file(), text.replacen(old, new, 1)).unwrap();
        assert_refused(&folder, "its numbers make no sense");
    }
    for (new, why) in [("1e999", "number out of range"), ("null", "null"), ("\"fast\"", "string")] {
        std::fs::write(folder.file(), text.replacen("100.5", new, 1)).unwrap();
        assert_refused(&folder, why);
    }
}

#[test]
fn a_folder_in_its_place_is_refused() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.file()).unwrap();
    let (file, refusal) = folder.read();
    assert_eq!(file, CostsFile::empty(MACHINE.0, MACHINE.1));
    assert!(refusal.unwrap().starts_with(&folder.file().display().to_string()));
    assert!(file.write(&folder.0).is_err());
    // What was to be renamed is not left behind.
    assert_eq!(folder.names().len(), 1, "{:?}", folder.names());
}

#[test]
fn a_refused_file_is_replaced_by_the_next_measurement() {
    let folder = Folder::new();
    written(&folder);
    std::fs::write(folder.file(), "{").unwrap();
    let (mut file, _) = folder.read();
    file.put(&key("card"), costs(3.0));
    file.write(&folder.0).unwrap();
    assert_eq!(folder.read(), (file, None));
}

#[test]
fn who_reads_before_writing_keeps_what_others_wrote() {
    let folder = Folder::new();
    for name in ["one", "two"] {
        let (mut file, _) = folder.read();
        file.put(&key(name), costs(1.0));
        file.write(&folder.0).unwrap();
    }
    let (file, _) = folder.read();
    assert_eq!((file.get(&key("one")), file.get(&key("two"))), (Some(&costs(1.0)), Some(&costs(1.0))));
}

/// Two engines of one process, measuring at once: every reader finds a whole file, whoever wrote it.
#[test]
fn writers_at_once_leave_a_whole_file() {
    let folder = Folder::new();
    written(&folder);
    let over = AtomicBool::new(false);
    let file = |devices: usize| {
        let mut file = CostsFile::empty(MACHINE.0, MACHINE.1);
        (0..devices).for_each(|number| file.put(&key(&number.to_string()), costs(1.0)));
        file
    };
    std::thread::scope(|scope| {
        let (folder, over) = (&folder, &over);
        let until_over = |mut work: Box<dyn FnMut() + Send>| {
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    work();
                }
            })
        };
        let small = file(1);
        let others = [
            until_over(Box::new(move || small.write(&folder.0).unwrap())),
            until_over(Box::new(|| assert_eq!(folder.read().1, None))),
        ];
        let large = file(300);
        let written = (0..40).try_for_each(|_| large.write(&folder.0));
        over.store(true, Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        written.unwrap();
    });
    assert_eq!(folder.names().len(), 1, "{:?}", folder.names());
}

#[test]
fn devices_are_told_apart_in_words() {
    assert_eq!(key("card").to_string(), "card (vulkan, 1.2.3)");
    assert_eq!(DeviceKey { driver: String::new(), ..key("card") }.to_string(), "card (vulkan)");
}
