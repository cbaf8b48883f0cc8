use super::super::segment::tests::Folder;
use super::*;

#[test]
fn runs_add_up() {
    let folder = Folder::new("figures");
    let first = CacheFigures { hits: 1, misses: 3, inserts: 3, ..CacheFigures::default() };
    let ledger = Ledger::new(&folder.0);
    ledger.write(|| CacheFigures { misses: 3, ..CacheFigures::default() }).unwrap();
    ledger.write(|| first).unwrap();
    assert_eq!(Kept::read(&folder.0), Kept { last_run: first, in_all: first }, "each is counted once");
    let second = CacheFigures { hits: 4, evictions: 2, ..CacheFigures::default() };
    Ledger::new(&folder.0).write(|| second).unwrap();
    let kept = Kept::read(&folder.0);
    assert_eq!((kept.last_run, kept.in_all.hits, kept.in_all.misses, kept.in_all.evictions), (second, 5, 3, 2));
    assert_eq!(folder.files().len(), 1, "nothing unfinished is left");
}

#[test]
fn a_file_that_makes_no_sense_is_begun_anew() {
    let folder = Folder::new("figures-torn");
    for text in ["", "{\"in_all\": {\"hits\": -1}}", "{\"in_all\": ", "[]"] {
        std::fs::write(folder.0.join(FILE), text).unwrap();
        assert_eq!(Kept::read(&folder.0), Kept::default(), "{text}");
    }
    std::fs::write(folder.0.join(FILE), "{\"in_all\": {\"hits\": 18446744073709551615}}").unwrap();
    Ledger::new(&folder.0).write(|| CacheFigures { hits: 2, ..CacheFigures::default() }).unwrap();
    assert_eq!(Kept::read(&folder.0).in_all.hits, u64::MAX, "no overflow");
}

#[test]
fn nothing_new_writes_nothing() {
    let folder = Folder::new("figures-none");
    Ledger::new(&folder.0).write(CacheFigures::default).unwrap();
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}

#[test]
fn two_threads_that_write_count_nothing_twice() {
    let folder = Folder::new("figures-threads");
    let (ledger, counts) = (Ledger::new(&folder.0), Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..300 {
                    counts.inserts.fetch_add(1, Relaxed);
                    ledger.write(|| counts.figures()).unwrap();
                }
            });
        }
    });
    assert_eq!(Kept::read(&folder.0).in_all.inserts, 600);
}
