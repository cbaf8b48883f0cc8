use super::super::figures::CacheFigures;
use super::super::segment::tests::Folder;
use super::*;
use proptest::prelude::*;

fn limits(max_bytes: u64) -> Limits {
    Limits { max_bytes, max_entries: 1000, memory_bytes: max_bytes / 4 }
}

/// The value of a key: its length and bytes follow from it.
fn value(key: Key) -> Vec<u8> {
    let len = (key % 97) as usize;
    (0..len).map(|i| (key as usize * 31 + i) as u8).collect()
}

fn put(store: &Store, key: Key) {
    store
        .write()
        .put(spread(key), [&value(key)[..1.min(value(key).len())], &value(key)[1.min(value(key).len())..]].into_iter());
}

/// Keys that are spread, as hashes are.
fn spread(key: Key) -> Key {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

/// Is it there? A wrong value is none of both.
#[track_caller]
fn has(store: &Store, key: Key) -> bool {
    let mut found = None;
    let hit = store.read().get(spread(key), value(key).len(), &mut Vec::new(), |bytes| found = Some(bytes.to_vec()));
    assert_eq!(found, hit.then(|| value(key)), "of key {key}");
    hit
}

fn figures(store: &Store) -> CacheFigures {
    store.counts.figures()
}

fn on_disk(folder: &Folder) -> u64 {
    folder.files().iter().map(|file| std::fs::metadata(file).unwrap().len()).sum()
}

#[test]
fn results_are_there_until_the_store_is_full_and_the_oldest_go() {
    let folder = Folder::new("store-full");
    let store = Store::open(folder.0.clone(), limits(1 << 14));
    for key in 0..1000 {
        put(&store, key);
        assert!(has(&store, key), "{key}");
        store.write().flush();
        assert!(on_disk(&folder) <= 1 << 14 && store.size().1 <= 1 << 14, "{key}");
    }
    let left: Vec<Key> = (0..1000).filter(|key| has(&store, *key)).collect();
    assert_eq!(left.last(), Some(&999));
    assert!(left.windows(2).all(|pair| pair[0] + 1 == pair[1]), "the newest are left: {left:?}");
    assert!(left.len() > 100, "{}", left.len());
    assert_eq!(figures(&store).evictions, 1000 - left.len() as u64);
    assert_eq!((store.size().0, figures(&store).faults), (left.len(), 0));
    drop(store);
    let store = Store::open(folder.0.clone(), limits(1 << 14));
    assert_eq!((0..1000).filter(|key| has(&store, *key)).collect::<Vec<_>>(), left);
    // With less room from now on.
    let store = {
        drop(store);
        Store::open(folder.0.clone(), limits(1 << 13))
    };
    put(&store, 2000);
    store.write().flush();
    assert!(on_disk(&folder) <= 1 << 13);
}

#[test]
fn entries_are_bounded_too() {
    let folder = Folder::new("store-entries");
    let store = Store::open(folder.0.clone(), Limits { max_entries: 64, ..limits(1 << 20) });
    for key in 0..500 {
        put(&store, key * 97);
        assert!(store.size().0 <= 64 && has(&store, key * 97));
    }
    assert!(store.size().0 > 50);
}

#[test]
fn what_is_too_large_is_refused() {
    let folder = Folder::new("store-large");
    let store = Store::open(folder.0.clone(), limits(1 << 12));
    let large = vec![1; 1 << 10];
    store.write().put(1, [&large[..]].into_iter());
    assert_eq!((figures(&store).refused, figures(&store).inserts, store.size()), (1, 0, (0, 0)));
    put(&store, 96);
    assert!(has(&store, 96));
}

#[test]
fn a_value_is_put_in_once_and_a_damaged_one_again() {
    let folder = Folder::new("store-again");
    let limits = Limits { memory_bytes: 0, ..limits(1 << 16) };
    let store = Store::open(folder.0.clone(), limits);
    put(&store, 90);
    put(&store, 90);
    assert_eq!(figures(&store).inserts, 1);
    store.write().flush();
    drop(store);
    let file = folder.files().remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let store = Store::open(folder.0.clone(), limits);
    assert!(!has(&store, 90));
    assert_eq!(figures(&store).damaged, 1);
    put(&store, 90);
    assert!(has(&store, 90));
    store.write().flush();
    drop(store);
    assert!(has(&Store::open(folder.0.clone(), limits), 90), "the newer one counts");
}

#[test]
fn two_share_a_folder() {
    let folder = Folder::new("store-two");
    let limits = limits(1 << 14);
    let stores = [Store::open(folder.0.clone(), limits), Store::open(folder.0.clone(), limits)];
    for key in 0..600 {
        let store = &stores[(key % 2) as usize];
        put(store, key);
        assert!(has(store, key));
        store.write().flush();
        assert!(on_disk(&folder) <= (1 << 14) + 2 * (1 << 10), "each may have one file that the other did not count");
    }
    let third = Store::open(folder.0.clone(), limits);
    let found = (0..600).filter(|key| has(&third, *key)).count();
    assert!(found > 100, "both are seen: {found}");
    assert!((0..600).filter(|key| key % 2 == 0).any(|key| has(&third, key)));
    assert!((0..600).filter(|key| key % 2 == 1).any(|key| has(&third, key)));
    put(&third, 700);
    stores.iter().for_each(|store| assert_eq!(figures(store).faults, 0, "{:?}", store.counts.last_fault()));
    // Removed by somebody else: what is known is still there, and what comes is kept in memory at least.
    folder.files().iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert!(has(&third, 700));
    put(&third, 701);
    third.write().flush();
    assert!(has(&third, 701));
}

#[test]
fn a_disk_that_takes_nothing_costs_no_result() {
    let folder = Folder::new("store-no-disk");
    let no_folder = folder.0.join("file");
    std::fs::write(&no_folder, "in the way").unwrap();
    let store = Store::open(no_folder.join("results"), limits(1 << 14));
    for key in 1..10 {
        put(&store, key);
        assert!(!has(&store, key));
    }
    assert_eq!((figures(&store).inserts, store.size()), (0, (0, 0)));
    assert!(figures(&store).faults > 0 && store.counts.last_fault().unwrap().contains("cannot"));

    let store = Store::open(folder.0.join("full"), limits(1 << 14));
    put(&store, 1);
    store.write().flush();
    for strike in 1..=u64::from(STRIKES) {
        put(&store, 10 + Key::from(strike));
        {
            let mut writer = store.write();
            let active = writer.state.active.unwrap();
            writer.state.segments.get_mut(&active).unwrap().fail_writes();
            writer.flush();
        }
        assert!(!has(&store, 10 + Key::from(strike)) && has(&store, 1));
        assert_eq!((figures(&store).lost, u64::from(store.read().state.strikes)), (strike, strike));
    }
    put(&store, 50);
    assert_eq!(figures(&store).inserts, 1 + u64::from(STRIKES), "no more is tried");
    assert!(has(&store, 1));
    drop(store);
    assert_eq!(Store::open(folder.0.join("full"), limits(1 << 14)).size().0, 1);
}

#[derive(Clone, Debug)]
enum Step {
    Put(Key),
    Get(Key),
    Flush,
    Reopen,
    /// Nothing is written on the way out.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u128..300).prop_map(Step::Put),
        20 => (0u128..300).prop_map(Step::Get),
        2 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a plain map of all that was ever put in: what is found is right, nothing is found that was not put in,
    /// nothing is missing before anything had to go.
    #[test]
    fn as_a_map_that_forgets(steps in prop::collection::vec(step(), 1..400), room in 12u32..18, memory in 0u64..(1 << 17)) {
        let folder = Folder::new("store-model");
        let limits = Limits { memory_bytes: memory, ..limits(1 << room) };
        let (mut known, mut sure) = (ByKey::<()>::default(), ByKey::<()>::default());
        let mut store = Store::open(folder.0.clone(), limits);
        let mut evicted = 0;
        for step in steps {
            match step {
                Step::Put(key) => {
                    put(&store, key);
                    prop_assert!(has(&store, key));
                    known.insert(key, ());
                    sure.insert(key, ());
                }
                Step::Get(key) => {
                    let found = has(&store, key);
                    prop_assert!(!found || known.contains_key(&key));
                    prop_assert!(found || evicted + figures(&store).evictions > 0 || !sure.contains_key(&key));
                }
                Step::Flush => store.write().flush(),
                Step::Reopen | Step::Kill => {
                    if matches!(step, Step::Reopen) {
                        store.write().flush();
                    } else {
                        let state = store.read();
                        let active = state.state.active;
                        let end = state.state.active().map_or(0, |segment| segment.end() - segment.unwritten());
                        let unwritten = |key: &Key| {
                            state.state.index.get(&spread(*key)).is_some_and(|place| {
                                Some(place.segment) == active && place.at >= end
                            })
                        };
                        sure.retain(|key, ()| !unwritten(key));
                    }
                    evicted += figures(&store).evictions;
                    drop(store);
                    store = Store::open(folder.0.clone(), limits);
                }
            }
            prop_assert_eq!((figures(&store).faults, figures(&store).damaged), (0, 0));
            prop_assert!(store.size().1 <= limits.max_bytes && on_disk(&folder) <= limits.max_bytes);
        }
    }

    /// Bytes anywhere in the files are overwritten, cut off or added: values are right or missing, and the store goes on.
    #[test]
    fn damage_is_a_miss(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..12),
        memory in prop_oneof![Just(0u64), Just(1 << 20)],
    ) {
        let folder = Folder::new("store-damage");
        // Room for all of them twice: nothing has to go.
        let limits = Limits { memory_bytes: memory, ..limits(1 << 17) };
        let store = Store::open(folder.0.clone(), limits);
        (0..300).for_each(|key| put(&store, key));
        store.write().flush();
        drop(store);
        let files = folder.files();
        for (file, at, byte, kind) in damage {
            let path = file.get(&files);
            let mut bytes = std::fs::read(path).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.truncate(at),
                _ => bytes.extend(std::iter::repeat_n(byte, at % 100)),
            }
            std::fs::write(path, bytes).unwrap();
        }
        let store = Store::open(folder.0.clone(), limits);
        // Each is right or missing.
        let found = (0..300).filter(|key| has(&store, *key)).count();
        prop_assert_eq!(store.size().0 - figures(&store).damaged as usize, found);
        (0..300).for_each(|key| put(&store, key));
        (0..300).for_each(|key| assert!(has(&store, key)));
        store.write().flush();
        drop(store);
        let store = Store::open(folder.0.clone(), limits);
        prop_assert!((0..300).all(|key| has(&store, key)), "what was put in since is there");
    }
}

#[test]
fn files_that_are_damaged_while_they_are_open_are_misses() {
    let folder = Folder::new("store-under-us");
    let limits = Limits { memory_bytes: 0, ..limits(1 << 17) };
    let store = Store::open(folder.0.clone(), limits);
    (0..300).for_each(|key| put(&store, key));
    for path in folder.files() {
        std::fs::File::options().write(true).open(path).unwrap().set_len(20).unwrap();
    }
    let found = (0..300).filter(|key| has(&store, *key)).count();
    assert!(found < 300 && figures(&store).damaged > 0);
    // What was still in memory is missed when it is looked for on the disk.
    for _ in 0..3 {
        (0..300).for_each(|key| put(&store, key));
        assert!((0..300).filter(|key| has(&store, *key)).count() > found);
    }
    assert!((0..300).all(|key| has(&store, key)));
    assert!(store.counts.last_fault().unwrap().contains("somebody else has changed the file"));
}
