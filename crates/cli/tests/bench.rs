//! `breakeven bench` as a user runs it: restricted to what takes a few seconds, and with everything that can go wrong.

use std::process::Command as Process;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use breakeven_report::bench::{Bench, Group, TroubleKind};
use tempfile::TempDir;

/// Hides every driver: the loaders find no file that names one.
const NO_DRIVERS: &[(&str, &str)] = &[
    ("VK_DRIVER_FILES", "/nonexistent"),
    ("VK_ICD_FILENAMES", "/nonexistent"), // its name before Vulkan 1.3.207
    ("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent"),
];

/// Two small groups, once each, without waiting for anything.
const LITTLE: [&str; 9] =
    ["unary/relu", "reduce/max", "--quick", "--passes=1", "--samples=3", "--calm=0", "--devices", "cpu", "--json"];

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    #[track_caller]
    fn bench(&self) -> Bench {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr))
    }
}

fn command(folder: &TempDir) -> Process {
    let mut command = Process::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    for name in ["BREAKEVEN_DEVICE", "BREAKEVEN_BACKENDS", "BREAKEVEN_THREADS", "BREAKEVEN_SYNC_TIMEOUT"] {
        command.env_remove(name);
    }
    command.current_dir(folder.path()).env("BREAKEVEN_CACHE_DIR", folder.path().join("cache")).arg("bench");
    command
}

fn run(folder: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command = command(folder);
    command.args(args).envs(env.iter().copied());
    let output = Command::from_std(command).timeout(Duration::from_secs(300)).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the little groups with a fault in the first of them. The second one has all its rows in any case.
#[track_caller]
fn injected(args: &[&str], fault: &str) -> (Run, Group) {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &[&LITTLE[..6], &["--json", "--order=given", "--inject", fault], args].concat(), &[]);
    assert_eq!(run.code, 1, "{} {}", run.stdout, run.stderr);
    assert!(run.stderr.contains("the group unary failed"), "{}", run.stderr);
    let bench = run.bench();
    let [unary, reduce] = <[Group; 2]>::try_from(bench.groups).unwrap();
    assert!(reduce.is_sound(), "{:?}", reduce.troubles);
    assert_eq!(reduce.rows.len(), 2 * bench.devices.len());
    assert!(!unary.is_sound());
    assert!(run.stderr.contains(unary.troubles[0].kind.word()), "the table says it, too: {}", run.stderr);
    (run, unary)
}

fn kinds(group: &Group) -> Vec<TroubleKind> {
    group.troubles.iter().map(|trouble| trouble.kind).collect()
}

#[test]
fn a_bench_prints_a_table_and_writes_json() {
    let folder = TempDir::new().unwrap();
    let args = ["--quick", "--calm=0", "--samples=3", "--devices", "cpu", "--seed=7", "-o", "bench.json"];
    let run = run(&folder, &[&["unary/relu", "batch", "fused/three", "queue"], &args[..]].concat(), &[]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
    assert_eq!(run.stderr.trim(), "seed 7");
    let text = std::fs::read_to_string(folder.path().join("bench.json")).unwrap();
    let bench: Bench = serde_json::from_str(&text).unwrap();
    assert_eq!((bench.devices.len(), bench.how.passes, bench.how.seed), (1, 2, 7));
    assert_eq!(bench.how.order.len(), 2 * 4);
    for group in &bench.groups {
        // On a machine that is busy with something else there may be no time for all of it, which is told.
        let late = group.troubles.iter().any(|trouble| trouble.kind == TroubleKind::OutOfTime);
        let other = group.troubles.iter().find(|trouble| trouble.kind != TroubleKind::OutOfTime);
        assert!(other.is_none(), "{other:?}");
        assert_eq!(group.surroundings.len(), 2);
        assert!(group.seconds > 0.0 && !group.rows.is_empty() && run.stdout.contains(&group.name));
        for row in &group.rows {
            assert!(row.passes.len() == 2 || late, "{}", row.name());
            assert!(row.passes.iter().all(|pass| pass.len() >= 3) && row.stats.median_ns > 0, "{}", row.name());
            assert!(run.stdout.contains(&row.name()), "{}: {}", row.name(), run.stdout);
        }
    }
    let rows = |group: usize| bench.groups[group].rows.iter().map(|row| row.name()).collect::<Vec<_>>();
    assert_eq!(rows(0), ["relu, 66 k elements", "relu, 1.0 M elements"]);
    assert_eq!(rows(1)[0], "one by one, 20 tasks of 256");
    assert_eq!(bench.groups[1].rows[0].beside.as_deref(), Some("one call"));
    let null = bench.null.unwrap();
    assert_eq!((null.cases.len(), null.cases[0].first.len()), (1, 2), "one device, two passes");
}

#[test]
fn every_adapter_is_measured_and_moves_bytes() {
    let folder = TempDir::new().unwrap();
    let groups = ["unary/relu", "transfer", "cold/new engine"];
    let args = ["--quick", "--passes=1", "--samples=3", "--calm=0", "--json"];
    let run = run(&folder, &[&groups[..], &args].concat(), &[("BREAKEVEN_BACKENDS", "vulkan")]);
    let bench = run.bench();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(bench.devices.len() > 1, "no driver: apt-get install mesa-vulkan-drivers");
    let gpus = bench.devices.len() - 1;
    assert_eq!(bench.groups[0].rows.len(), 2 * (1 + gpus));
    let transfers = &bench.groups[1].rows;
    assert_eq!(transfers.len(), 3 * (1 + 3 * gpus), "sizes, memcpy, and three ways for each GPU");
    for row in transfers {
        let times = if row.case == "both" { 2 } else { 1 };
        assert_eq!(row.bytes, Some(times * row.size), "{}", row.name());
        assert_eq!(row.memcpy_ns.is_none(), row.case == "memcpy", "{}", row.name());
    }
    assert_eq!(bench.groups[2].rows.len(), 1 + gpus);
    assert_eq!(bench.null.unwrap().cases.len(), 1 + gpus);
}

#[test]
fn without_any_driver_the_cpu_is_measured_alone_and_that_is_said() {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &[&LITTLE[..6], &["--json"]].concat(), NO_DRIVERS);
    let bench = run.bench();
    assert_eq!((run.code, bench.devices.len(), bench.missing.len()), (0, 1, 1), "{}", run.stderr);
    assert!(bench.missing[0].why.contains("install "), "{:?}", bench.missing);
}

#[test]
fn everything_runs_in_one_process_if_asked_to() {
    let folder = TempDir::new().unwrap();
    let bench = run(&folder, &[&LITTLE[..], &["--in-process"]].concat(), &[]).bench();
    assert!(bench.how.in_process);
    assert_eq!(bench.groups.iter().map(|group| group.rows.len()).collect::<Vec<_>>(), [2, 2]);
}

#[cfg(unix)]
#[test]
fn a_group_that_is_killed_keeps_its_rows_and_is_told() {
    let (_, group) = injected(&["--devices", "cpu"], "unary=kill");
    assert_eq!((kinds(&group), group.rows.len()), (vec![TroubleKind::Crashed], 1));
    assert!(group.troubles[0].why.contains("killed by signal 9"), "{:?}", group.troubles);
}

#[test]
fn a_group_whose_device_hangs_is_ended() {
    // Within the limit devices are opened and tested, too, which takes adapters seconds on their first day.
    for (devices, timeout) in [("cpu", "--timeout=10"), ("cpu,gpu:0", "--timeout=40")] {
        let (_, group) = injected(&["--devices", devices, timeout], "unary=hang");
        assert_eq!((kinds(&group), group.rows.len()), (vec![TroubleKind::Hung], 1), "{:?}", group.troubles);
        assert!(group.troubles[0].why.contains("still at `relu, 66 k elements`"), "{:?}", group.troubles);
    }
}

#[test]
fn a_group_that_loses_its_device_goes_on_with_the_others() {
    let (_, group) = injected(&["--devices", "cpu,gpu:0"], "unary=lose");
    let lost = group.troubles.iter().find(|trouble| trouble.kind == TroubleKind::DeviceLost).unwrap();
    assert_eq!(lost.device.as_deref(), Some("gpu:0"), "{lost:?}");
    assert!(lost.why.contains("did not answer three times in a row"), "{lost:?}");
    let cpu = group.rows.iter().filter(|row| row.device == "cpu").count();
    assert_eq!(cpu, 2, "the CPU has all its rows: {:?}", group.troubles);
}

#[test]
fn what_a_group_leaves_behind_is_its_own_failure() {
    for (devices, device) in [("cpu", "cpu"), ("cpu,gpu:0", "gpu:0")] {
        let (_, group) = injected(&["--devices", devices], "unary=leak");
        assert_eq!(kinds(&group), [TroubleKind::Leftover], "{:?}", group.troubles);
        assert_eq!(group.troubles[0].device.as_deref(), Some(device));
        assert!(group.troubles[0].why.contains("1 MiB"), "{:?}", group.troubles);
        assert_eq!(group.rows.len(), 2 * devices.split(',').count(), "its rows are there");
    }
}

/// How long the first group takes to be done is the machine's affair: whoever comes too early for that comes again, later.
#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_was_measured_and_ends_the_processes() {
    let mut after = Duration::from_secs(2);
    while interrupted(after).groups.first().is_none_or(|group| group.rows.is_empty()) {
        after = after * 3 / 2;
        assert!(after < Duration::from_secs(60), "the first group is never done");
    }
}

/// What a run of many groups leaves that is interrupted after a while.
#[cfg(unix)]
fn interrupted(after: Duration) -> Bench {
    let folder = TempDir::new().unwrap();
    let mut command = command(&folder);
    command.args(["unary/relu", "matmul", "binary", "reduce", "rows", "fused", "--order=given", "--passes=1"]);
    command.args(["--devices", "cpu", "--calm=0", "--samples=1000", "-o", "bench.json", "--save-baseline=none"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(after);
    let running = Process::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap();
    assert!(child.try_wait().unwrap().is_none(), "it was to take longer than {after:?}");
    assert!(Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let said = "interrupted: what was measured until then is kept; the baseline none was not saved\n";
    assert!(stderr.ends_with(said), "{stderr}");
    assert!(!folder.path().join("breakeven-baselines/none.json").exists());
    for process in String::from_utf8(running.stdout).unwrap().split_whitespace() {
        let alive = Process::new("kill").args(["-0", process]).stderr(std::process::Stdio::null()).status().unwrap();
        assert!(!alive.success(), "{process} goes on without anybody who waits for it");
    }
    let text = std::fs::read_to_string(folder.path().join("bench.json")).unwrap();
    let bench = serde_json::from_str::<Bench>(&text).unwrap();
    assert!(bench.how.interrupted);
    bench
}

#[test]
fn a_case_that_is_slowed_is_slower() {
    let folder = TempDir::new().unwrap();
    let args = ["unary/relu", "unary/exp", "--quick", "--passes=1", "--calm=0", "--devices", "cpu", "--json"];
    let fastest = |bench: &Bench, case: &str| {
        let row = bench.groups[0].rows.iter().find(|row| row.case == case && row.size > 1_000_000).unwrap();
        row.stats.min_ns as f64
    };
    let plain = run(&folder, &args, &[]).bench();
    let slowed = run(&folder, &[&args[..], &["--inject", "unary=slow:relu=300%"]].concat(), &[]).bench();
    assert!(fastest(&slowed, "relu") > 2.0 * fastest(&plain, "relu"), "four times as long");
}

/// The heaviest group before the lightest changes nothing for the lightest: each has its own process. Runs with and without
/// it take turns, so that what the machine does meanwhile meets both. Pairs are added until the interval of their median
/// ratio, 19 times of 20, lies within 10 %, which an effect of more rarely reaches, though it is asked after each pair. An interval that lies
/// outside of 10 % fails at once. A machine too busy to tell in the time that there is has shown no effect: then the interval must
/// hold 1, which no effect that is clear of the noise leaves in it.
#[test]
fn the_lightest_group_takes_as_long_after_the_heaviest_as_alone() {
    const LEAST_PAIRS: usize = 6;
    const MOST: Duration = Duration::from_secs(120);
    let folder = TempDir::new().unwrap();
    let args = ["--quick", "--passes=1", "--samples=15", "--calm=2", "--devices", "cpu", "--order=given", "--json"];
    let light = |groups: &[&str]| {
        let bench = run(&folder, &[groups, &args].concat(), &[]).bench();
        let group = bench.groups.iter().find(|group| group.name == "unary").unwrap();
        group.rows.iter().find(|row| row.size < 1_000_000).unwrap().stats.median_ns as f64
    };
    let begun = Instant::now();
    let mut ratios: Vec<f64> = Vec::new();
    loop {
        // Whoever is first meets a machine that was idle before: they take turns at that, too.
        let (alone, after) = if ratios.len().is_multiple_of(2) {
            (light(&["unary/relu"]), light(&["matmul", "unary/relu"]))
        } else {
            let after = light(&["matmul", "unary/relu"]);
            (light(&["unary/relu"]), after)
        };
        ratios.push(after / alone);
        ratios.sort_unstable_by(f64::total_cmp);
        let Some((low, high)) = of_median(&ratios).filter(|_| ratios.len() >= LEAST_PAIRS) else { continue };
        assert!(low < 1.1 && high > 1.0 / 1.1, "the lightest group is off after the heaviest: {ratios:?}");
        if low > 1.0 / 1.1 && high < 1.1 {
            return;
        }
        if begun.elapsed() > MOST {
            assert!(low <= 1.0 && high >= 1.0, "the lightest group is off after the heaviest: {ratios:?}");
            return;
        }
    }
}

/// Where the median of sorted values lies, 19 times of 20: between two of them, by how often a coin shows so many heads.
/// `None` as long as they are too few for that.
fn of_median(sorted: &[f64]) -> Option<(f64, f64)> {
    let count = sorted.len();
    let (mut outside, mut chance, mut next) = (0, 0.0, 0.5f64.powi(i32::try_from(count).ok()?));
    while chance + next <= 0.025 {
        chance += next;
        outside += 1;
        next *= (count + 1 - outside) as f64 / outside as f64;
    }
    (outside > 0).then(|| (sorted[outside - 1], sorted[count - outside]))
}

#[test]
fn intervals_of_medians_are_those_of_the_tables() {
    let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
    assert_eq!(of_median(&values(5)), None, "1 of 16 times all five lie on one side");
    for (count, low) in [(6, 1.0), (9, 2.0), (12, 3.0), (20, 6.0), (30, 10.0)] {
        assert_eq!(of_median(&values(count)), Some((low, f64::from(count) + 1.0 - low)), "{count}");
    }
}

#[test]
fn mistakes_are_said_with_exit_code_2() {
    let folder = TempDir::new().unwrap();
    for (args, message) in [
        (&["trinary"][..], "there is no group `trinary`; there are matmul"),
        (&["unary/nothing"], "unary has no case `nothing`"),
        (&["--samples", "2"], "3..=10000"),
        (&["--order", "best"], "shuffled"),
        (&["--devices", "all"], "expected some of cpu, gpu:0"),
        (&["--devices", "cpu,gpu:7"], "there is no gpu:7 here, only cpu"),
        (&["--max-regression", "much"], "expected a percentage such as 10%"),
        (&["unary", "--inject", "rows=kill"], "nothing can go wrong in rows, which is not run"),
    ] {
        let run = run(&folder, args, NO_DRIVERS);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn settings_that_make_no_sense_are_mistakes_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    for (name, value) in [("BREAKEVEN_THREADS", "x"), ("BREAKEVEN_BACKENDS", "foo")] {
        let run = run(&folder, &LITTLE, &[(name, value)]);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{name}: {}", run.stderr);
        assert!(run.stderr.contains(name) && !run.stderr.contains("seed"), "{}", run.stderr);
    }
}

#[test]
fn the_list_names_every_group() {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &["--list"], &[]);
    let groups = ["matmul", "binary", "unary", "reduce", "transfer", "batch", "fused", "rows", "queue", "cold"];
    assert!(run.code == 0 && groups.iter().all(|group| run.stdout.contains(group)), "{}", run.stdout);
}
