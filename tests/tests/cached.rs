//! Results that are remembered on disk, by processes that are killed, that share a folder, whose disk is full, and on GPUs.

use breakeven::{Api, CacheOptions, CacheSummary, Config, DType, Device, Engine, Many, RunOptions, Tensor, View};
use breakeven_tests::data::Rng;
use breakeven_tests::remembered::{BATCHES, Expected, PROGRAMS, TASKS, cached, check, engine, expected};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ALL: usize = PROGRAMS * BATCHES * TASKS;

fn remember(folder: &Path, room: &str, rounds: usize, seed: usize) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_remember"));
    command.arg(folder).args([room, &rounds.to_string(), &seed.to_string()]).stdout(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Waits until it has begun.
fn begun(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it writes");
    assert_eq!(line, "begun\n");
}

fn found(engine: &Engine, folder: &Path, roomy: bool, expected: &[Vec<Vec<Expected>>]) -> usize {
    let cached = cached(engine, folder, roomy).expect("it opens");
    let hits = check(engine, &cached, expected).expect("it reads");
    let stats = cached.stats();
    assert_eq!((stats.figures.faults, stats.figures.damaged), (0, 0), "{stats:?}");
    hits
}

/// Fifty times: what a killed process leaves is right, and the next one goes on with it.
fn killed_at_random(room: &str, seed: u64) -> Vec<usize> {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine().unwrap();
    let expected = expected(&engine).unwrap();
    let mut rng = Rng::new(seed);
    let mut hits = Vec::new();
    for round in 0..50 {
        let mut child = remember(folder.path(), room, 100_000, round);
        begun(&mut child);
        // From the opening to the middle of batches, writes and removals.
        std::thread::sleep(Duration::from_micros(rng.below(25_000) as u64));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it was killed");
        hits.push(found(&engine, folder.path(), room == "roomy", &expected));
        // With less luck it is the file that is torn, not the process that is slow.
        if round % 5 == 4 {
            tear(folder.path(), &mut rng);
            hits.push(found(&engine, folder.path(), room == "roomy", &expected));
        }
    }
    hits
}

/// Cuts the newest file somewhere in its last kilobyte, as a power cut may.
fn tear(folder: &Path, rng: &mut Rng) {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let newest = files.filter(|file| file.extension().is_some_and(|extension| extension == "log")).max();
    let Some(newest) = newest else { return };
    let file = std::fs::File::options().write(true).open(newest).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - rng.below(len.min(1024) as usize + 1) as u64).unwrap();
}

#[test]
fn a_process_that_is_killed_leaves_nothing_wrong() {
    let hits = killed_at_random("roomy", 1);
    assert!(hits.iter().any(|hits| *hits > 0), "some were there: {hits:?}");
    assert!(hits[hits.len() - 1] > hits[0] / 2, "and later processes added to them: {hits:?}");
}

#[test]
fn nor_does_one_that_is_killed_while_it_drives_results_out() {
    let hits = killed_at_random("tight", 2);
    assert!(hits.iter().any(|hits| *hits > 0) && hits.iter().all(|hits| *hits < ALL / 2), "{hits:?}");
}

#[test]
fn two_processes_share_a_folder() {
    let engine = engine().unwrap();
    let expected = expected(&engine).unwrap();
    for (room, most) in [("roomy", 16 << 20), ("tight", 200 << 10)] {
        let folder = tempfile::tempdir().unwrap();
        let mut children = [3, 30].map(|seed| remember(folder.path(), room, PROGRAMS * BATCHES, seed));
        // A third one looks at what they write while they write it.
        while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
            found(&engine, folder.path(), room == "roomy", &expected);
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let hits = found(&engine, folder.path(), room == "roomy", &expected);
        let summary = CacheSummary::read(folder.path()).unwrap();
        // Each of three may write to one file that the others have not counted.
        assert!(summary.bytes <= most + 3 * most / 16, "{summary:?}");
        assert_eq!(summary.torn_bytes, 0);
        match room {
            "roomy" => assert_eq!(hits, ALL, "all is there, whoever wrote it"),
            _ => assert!(hits > 100 && summary.in_all.evictions > 0, "{hits}, {summary:?}"),
        }
    }
}

/// A limit to the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_costs_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
    let done = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_remember")])
        .arg(folder.path())
        .args(["roomy", "12", "5"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success(), "results came all the same");
    let summary = CacheSummary::read(folder.path()).unwrap();
    assert!(summary.in_all.faults > 0 && summary.in_all.lost > 0, "and the faults were told: {summary:?}");
    assert_eq!(summary.in_all.hits + summary.in_all.misses, 12 * TASKS as u64);
    let engine = engine().unwrap();
    found(&engine, folder.path(), true, &expected(&engine).unwrap());
}

/// What a GPU has computed comes back bit by bit, and is not taken for what another device would compute.
#[test]
fn results_of_gpus_are_remembered_and_kept_apart() {
    let x = Tensor::input("x", DType::F32, [256]).unwrap();
    let output = x.gelu().unwrap().softmax(-1).unwrap();
    let values: Vec<Vec<f32>> = (0..20).map(|task| (0..256).map(|i| ((i + task) as f32).sin()).collect()).collect();
    let tasks: Vec<[View<'_>; 1]> = values.iter().map(|values| [View::from(values)]).collect();
    for api in [Api::Vulkan, Api::Gl] {
        let folder = tempfile::tempdir().unwrap();
        let on = |device: Device| {
            let sync_timeout = Duration::from_secs(120);
            let config = Config { device, strict: true, apis: vec![api], sync_timeout, ..Config::default() };
            let engine = Engine::with_config(config).unwrap();
            let options = CacheOptions { folder: Some(folder.path().to_owned()), ..CacheOptions::default() };
            let cached = engine.cached(options).unwrap();
            let program = cached.program(&engine.compile(&[&x], &[&output]).unwrap()).unwrap();
            let mut made = Many::default();
            let decision = program.run_many_with(&tasks, &mut made, &RunOptions::default()).unwrap();
            let bits: Vec<Vec<u32>> = (0..tasks.len())
                .map(|task| made.slice::<f32>(task, 0).unwrap().iter().map(|value| value.to_bits()).collect())
                .collect();
            (decision.map(|decision| decision.device), bits, cached.stats().figures.hits)
        };
        let gpu = Device::Gpu(Some(0));
        let (device, computed, hits) = on(gpu);
        assert_eq!((device.as_deref(), hits), (Some("gpu:0"), 0), "{api:?}");
        assert_eq!(on(gpu), (None, computed, 20), "{api:?}");
        assert_eq!(on(Device::Cpu).0.as_deref(), Some("cpu"), "{api:?}");
    }
}
