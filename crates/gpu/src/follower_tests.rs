//! Threads that are started while something is opened, and when they follow.
#![cfg(target_os = "linux")]

use super::*;
use std::fs;
use std::sync::mpsc;
use std::thread;

/// A thread that tells its number and lives until it is let go, as a driver starts one.
struct Started {
    number: String,
    _let_go: mpsc::Sender<()>,
}

impl Started {
    fn new() -> Started {
        let (told, number) = mpsc::channel();
        let (_let_go, until) = mpsc::channel::<()>();
        thread::Builder::new()
            .spawn(move || {
                let own = fs::read_link("/proc/thread-self").unwrap();
                told.send(own.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
                let _ = until.recv();
            })
            .unwrap();
        Started { number: number.recv().unwrap(), _let_go }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/self/task/{}/{name}", self.number)).unwrap()
    }

    /// The cores that it may be on, in the system's words.
    fn cores(&self) -> String {
        let status = self.file("status");
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    }

    fn is_on_one_core(&self) -> bool {
        self.cores().parse::<usize>().is_ok()
    }
}

/// Runs as a thread of this name, which another test's threads do not have.
fn called(name: &str, test: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.into()).spawn(test).unwrap().join().unwrap();
}

#[test]
fn threads_that_are_started_meanwhile_follow_and_no_others_do() {
    called("an owner", || {
        let other = Started::new();
        let everywhere = other.cores();
        let (started, followers) = Followers::of(|| [Started::new(), Started::new()]);
        let own = fs::read_to_string("/proc/thread-self/comm").unwrap();
        assert_eq!(own.trim(), "an owner", "it has its own name back");

        followers.follow(true);
        assert!(started.iter().all(|thread| thread.cores() == started[0].cores()), "short work is on one core");
        assert!(started[0].is_on_one_core());
        assert_eq!(other.cores(), everywhere, "it was there before");
    });
}

#[test]
fn threads_that_compute_are_apart_unless_work_is_short() {
    called("apart", || {
        let (started, followers) = Followers::of(|| [Started::new(), Started::new(), Started::new()]);
        let everywhere = started[1].cores();
        let [first, computing @ ..] = &started;
        for _ in 0..2 {
            followers.follow(false);
            assert!(first.is_on_one_core(), "the one that takes submissions always follows");
            if thread::available_parallelism().unwrap().get() >= computing.len() {
                assert!(computing.iter().all(Started::is_on_one_core));
                assert_ne!(computing[0].cores(), computing[1].cores());
            } else {
                assert!(computing.iter().all(|thread| thread.cores() == everywhere));
            }
            followers.follow(true);
            assert!(started.iter().all(|thread| thread.cores() == first.cores()));
        }
    });
}

#[test]
fn threads_that_are_started_after_the_opening_follow_too() {
    called("late", || {
        let (go, going) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        // As a driver does it: the thread that takes submissions starts those that compute, when it gets to run.
        let driver = || {
            thread::Builder::new().spawn(move || {
                going.recv().unwrap();
                tell.send([Started::new(), Started::new()]).unwrap();
                let _ = going.recv();
            })
        };
        let (taker, followers) = Followers::of(driver);
        followers.follow(false);
        go.send(()).unwrap();
        let started = told.recv().unwrap();
        assert_eq!(started[0].cores(), started[1].cores(), "both where the one is that started them");
        followers.follow(false);
        let are_apart = started[0].cores() != started[1].cores();
        assert_eq!(are_apart, thread::available_parallelism().unwrap().get() > 1);
        drop(go);
        taker.unwrap().join().unwrap();
    });
}

#[test]
fn threads_of_gl_are_found_by_every_device() {
    called("asks", || {
        let before = Started::new();
        let everywhere = before.cores();
        let started = Followers::mark(Started::new);
        for _ in 0..2 {
            Followers::of_gl().follow(true);
            assert!(started.is_on_one_core());
        }
        assert_eq!(before.cores(), everywhere);
    });
}

#[test]
fn many_threads_never_stand_in_line_on_one_core() {
    called("many", || {
        let (started, followers) = Followers::of(|| [(); 6].map(|()| Started::new()));
        let everywhere = started[5].cores();
        followers.follow(true);
        assert!(started[0].is_on_one_core());
        assert!(started[1..].iter().all(|thread| thread.cores() == everywhere));
    });
}

#[test]
fn an_opening_that_starts_nothing_has_no_followers() {
    called("alone", || {
        let (opened, followers) = Followers::of(|| 7);
        let own = fs::read_to_string("/proc/thread-self/status").unwrap();
        followers.follow(true);
        let cores =
            |status: &str| status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).map(str::to_owned);
        assert!(opened == 7 && cores(&fs::read_to_string("/proc/thread-self/status").unwrap()) == cores(&own));
    });
}
