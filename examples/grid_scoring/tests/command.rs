//! The binary, run for real: text, JSON, exit codes.

use assert_cmd::Command;
use grid_scoring::generate;

fn command() -> Command {
    let mut command = Command::cargo_bin("grid_scoring").unwrap();
    command.env("BREAKEVEN_CACHE_DIR", "").env_remove("BREAKEVEN_DEVICE");
    command
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = command().args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_report_adds_up() {
    let report = json(&["--generate", "10", "--seed", "7", "--deadline", "20s"]);
    assert_eq!(report["scorings"], 10 * 3 * 50);
    let outcomes = &report["outcomes"];
    let sum: u64 = ["scored", "failed", "late", "skipped"].iter().map(|kind| outcomes[kind].as_u64().unwrap()).sum();
    assert_eq!(sum, 1500);
    let stages = report["stages"].as_array().unwrap();
    assert_eq!(stages.iter().map(|stage| stage["thousandths"].as_u64().unwrap()).sum::<u64>(), 1000);
    let has = |name: &str| stages.iter().any(|stage| stage["stage"] == name);
    assert!(["load", "compile", "canvases", "steps", "rounds", "score"].into_iter().all(has), "{stages:?}");
    let headline = report["advice"][0]["text"].as_str().unwrap();
    assert!(headline.contains("an infinitely fast GPU would make it"), "{headline}");
    assert!(report["baseline"]["speedup"].as_f64().unwrap() > 0.0);
    assert_eq!((&report["baseline"]["left_out"], &report["baseline"]["remembered"]), (&0.into(), &0.into()));
    let rate = |of: &str| report[of].as_f64().unwrap();
    assert!((rate("scorings_per_second") / rate("tasks_per_second") / 150.0 - 1.0).abs() < 1e-6);
    assert!(report["profile_fault"].is_null());
    assert!(report["solved"].as_u64().unwrap() > 0);
    assert_eq!(report["best"].as_array().unwrap().len(), 10);
}

#[test]
fn loopers_are_reported_late_and_nothing_else_is() {
    let report = json(&["--generate", "4", "--loopers", "1%", "--deadline", "3s", "--samples", "2"]);
    assert_eq!(report["programs"], 51);
    assert_eq!(report["outcomes"]["late"], 8);
    assert_eq!(report["late_programs"].as_array().unwrap().len(), 1);
    assert_eq!(report["baseline"]["left_out"], 1, "the plain loop has no time for what has no end");
}

#[test]
fn a_run_whose_time_is_over_measures_no_plain_loop() {
    let report = json(&["--generate", "20", "--run-deadline", "1ms"]);
    assert!(report["outcomes"]["late"].as_u64().unwrap() > 0);
    assert!(report["baseline"].is_null(), "{}", report["baseline"]);
}

#[test]
fn a_profile_that_can_not_be_written_costs_no_report() {
    let output = command().args(["--generate", "1", "--profile", "/nonexistent/p.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("150 scorings (1 task, 50 programs)") && text.contains("1 task solved"), "{text}");
    assert!(text.contains("scorings and ") && text.contains(" tasks a second"), "{text}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: /nonexistent/p.json: ") && error.contains("give a file"), "{error}");
}

#[test]
fn a_memory_needs_a_folder_and_what_it_had_is_said() {
    let output = command().args(["--generate", "1", "--cache"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("BREAKEVEN_CACHE_DIR") && error.contains("--cache FOLDER"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    for known in [0, 300] {
        let arguments = ["--generate", "2", "--deadline", "20s", "--cache", folder.path().to_str().unwrap()];
        assert_eq!(json(&arguments)["baseline"]["remembered"], known);
        let text = String::from_utf8(command().args(arguments).output().unwrap().stdout).unwrap();
        assert!(text.contains("this run had 300 scorings from its memory"), "{text}");
    }
}

#[test]
fn folders_programs_and_bad_files() {
    let folder = tempfile::tempdir().unwrap();
    for task in generate(3, 1) {
        std::fs::write(folder.path().join(format!("{}.json", task.name)), task.to_json()).unwrap();
    }
    std::fs::write(folder.path().join("bad.json"), "{\"train\": 1}").unwrap();
    let list = folder.path().join("list.txt");
    std::fs::write(&list, "rot90\nflip_h | crop_bbox # mirrored\n").unwrap();
    let tasks = folder.path().to_str().unwrap();
    let report = json(&["--tasks", tasks, "--programs", list.to_str().unwrap(), "--device", "auto"]);
    assert_eq!((&report["tasks"], &report["programs"]), (&3.into(), &2.into()));
    assert!(report["refused"][0].as_str().unwrap().starts_with("bad: "));

    std::fs::write(&list, "rot90\nrotate\n").unwrap();
    let output = command().args(["--tasks", tasks, "--programs", list.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2: there is no step `rotate`"));
}

#[test]
fn mistakes_end_with_2() {
    for arguments in [
        &["--tasks", "/nonexistent"][..],
        &["--generate", "1", "--device", "tpu"],
        &["--generate", "1", "--deadline", "soon"],
        &["--generate", "1", "--loopers", "many"],
        &["--generate", "1", "--programs", "/nonexistent"],
        &[],
    ] {
        assert_eq!(command().args(arguments).output().unwrap().status.code(), Some(2), "{arguments:?}");
    }
}
