//! Outcomes that are remembered: nothing is computed twice, what changed is computed alone, and no kill leaves a wrong one.

use breakeven::{Config, Device, Engine};
use grid_scoring::{LOOPER, Limits, Memory, Outcome, Pair, Program, Run, Scoring, Task, builtin, generate, parse_list};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What ends at all ends in this time, on a busy machine, too.
const LIMITS: Limits = Limits { sample: Duration::from_secs(20), run: Duration::from_secs(600) };

fn score(folder: Option<&Path>, programs: &[Program], tasks: &[Task], limits: Limits) -> Run {
    let config = Config { device: Device::Cpu, threads: Some(1), ..Config::default() };
    let engine = Engine::with_config(config).unwrap();
    let memory = folder.map(|folder| Memory::open(&engine, Some(folder.to_owned())).unwrap());
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    let scoring = Scoring { engine: &engine, workers: 2, limits, memory: memory.as_ref(), profile: None };
    scoring.run(programs, &samples, &()).unwrap()
}

#[test]
fn a_second_run_computes_nothing_and_a_changed_program_alone_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let (tasks, mut programs) = (generate(60, 5), builtin());
    let plain = score(None, &programs, &tasks, LIMITS);
    let cold = score(Some(folder.path()), &programs, &tasks, LIMITS);
    let warm = score(Some(folder.path()), &programs, &tasks, LIMITS);
    assert!(plain.outcomes == cold.outcomes && plain.outcomes == warm.outcomes);
    assert_eq!((cold.remembered, warm.remembered), (0, warm.outcomes.len()));
    assert!(cold.batches > 100 && plain.compiled > 50);
    assert_eq!(cold.compiled, plain.compiled, "an empty cache spares nothing");
    assert_eq!((warm.batches, warm.compiled), (0, 0), "nothing is compiled or run for what is remembered");

    let changed = 20;
    programs[changed] = "crop_bbox | rot180".parse().unwrap();
    let again = score(Some(folder.path()), &programs, &tasks, LIMITS);
    let each = plain.outcomes.len() / programs.len();
    assert_eq!(again.remembered, plain.outcomes.len() - each);
    assert!(again.batches > 0 && again.batches <= 12, "{} batches", again.batches);
    let without = score(None, &programs, &tasks, LIMITS);
    assert!(again.outcomes == without.outcomes);
    assert!(
        again.outcomes[changed * each..(changed + 1) * each] != plain.outcomes[changed * each..(changed + 1) * each]
    );
}

#[test]
fn what_was_late_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let (tasks, programs) = (generate(3, 1), [LOOPER.parse().unwrap(), "rot90".parse().unwrap()]);
    let limits = Limits { sample: Duration::from_millis(20), ..LIMITS };
    for known in [0, 9] {
        let run = score(Some(folder.path()), &programs, &tasks, limits);
        assert_eq!((run.remembered, run.outcomes[0]), (known, Outcome::Late));
    }
}

#[test]
fn other_samples_have_other_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let programs = parse_list("rot90\ncrop_bbox\n").unwrap();
    let mut tasks = generate(2, 1);
    score(Some(folder.path()), &programs, &tasks, LIMITS);
    tasks[1].train[0].output = tasks[1].train[0].input.clone();
    let run = score(Some(folder.path()), &programs, &tasks, LIMITS);
    assert!(run.outcomes == score(None, &programs, &tasks, LIMITS).outcomes);
}

/// The run as a process of its own, killed fifty times: half of them as soon as it has put something in, half at points between
/// its beginning and its end. What it leaves is looked at in a copy, so that the next one goes on where this one was killed,
/// until all is remembered and the folder is emptied.
#[test]
fn fifty_kills_leave_no_wrong_outcome() {
    const KILLS: u32 = 50;
    const LIST: &str = "rot90\ncrop_bbox | tile 1 2\nmask 2\nrepeat 2 { fall }\nregions_by_size\ncount 1\npad 1 3\n";
    let home = tempfile::tempdir().unwrap();
    let (list, cache) = (home.path().join("list.txt"), home.path().join("cache"));
    std::fs::write(&list, LIST).unwrap();
    let (tasks, programs) = (generate(30, 9), parse_list(LIST).unwrap());
    let expected = score(None, &programs, &tasks, LIMITS).outcomes;
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grid_scoring"));
        command.args(["--generate", "30", "--seed", "9", "--deadline", "20s", "--programs"]).arg(&list);
        command.arg("--cache").arg(&cache).env("BREAKEVEN_CACHE_DIR", home.path()).env_remove("BREAKEVEN_DEVICE");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let begun = Instant::now();
    assert!(start().wait().unwrap().success());
    let mut whole = begun.elapsed();
    std::fs::remove_dir_all(&cache).unwrap();

    let (mut in_part, mut killed, mut runs) = (0, 0, 0);
    while killed < KILLS {
        runs += 1;
        assert!(runs < 10 * KILLS, "only {killed} of {runs} were still running");
        let (before, begun) = (bytes_of(&cache), Instant::now());
        let mut child = start();
        let is_due = || match killed % 2 {
            0 => bytes_of(&cache) > before,
            _ => begun.elapsed() >= whole * (killed * 7 % KILLS) / KILLS,
        };
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if is_due() {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        if ended.success() {
            // It was faster than the one before it: later ones are killed sooner.
            whole = begun.elapsed();
        } else {
            killed += 1;
        }
        let copy = home.path().join("copy");
        copy_folder(&cache, &copy);
        let run = score(Some(&copy), &programs, &tasks, LIMITS);
        assert!(run.outcomes == expected, "after kill {killed}, with {} remembered", run.remembered);
        in_part += u32::from(run.remembered > 0 && run.remembered < expected.len());
        std::fs::remove_dir_all(&copy).unwrap();
        if run.remembered == expected.len() {
            std::fs::remove_dir_all(&cache).unwrap();
        }
    }
    assert!(in_part > 0, "no kill came between two outcomes");
}

/// Bytes of all files in a folder; 0 if there is none.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // Files come and go while it is looked at.
    entries.filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum()
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}
