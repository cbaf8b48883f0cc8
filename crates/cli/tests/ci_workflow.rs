//! The workflow of docs/ci.md: what it consists of, and what its steps do when they run one after the other, as they
//! would on GitHub, with the real `breakeven`. `yaml` reads the page, `runner` stands in for GitHub.

#[path = "ci_workflow/runner.rs"]
mod runner;
#[path = "ci_workflow/yaml.rs"]
mod yaml;

use breakeven_report::bench::Bench;
use runner::{Outcome, Runner, Step};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use yaml::workflow;

const SHOW: &str = "Show the comparison";
const COMPARE: &str = "Compare with main";

/// A run on main, and where what it kept lies.
fn main_run() -> (TempDir, Vec<Step>) {
    let kept = TempDir::new().unwrap();
    let runner = Runner::new("push", kept.path());
    let steps = runner.run(&workflow());
    (kept, steps)
}

#[track_caller]
fn outcome(steps: &[Step], name: &str) -> Outcome {
    steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step {name}: {steps:#?}")).outcome
}

#[track_caller]
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The baseline that a run on main has kept.
#[track_caller]
fn baseline(kept: &Path) -> std::path::PathBuf {
    let caches: Vec<_> = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(caches.len(), 1, "{caches:?}");
    caches[0].join("breakeven-baselines/main.json")
}

/// A baseline with other times: whoever is compared with it has become as much faster or slower.
fn with_times(mut bench: Bench, time: impl Fn(u64) -> u64) -> String {
    for row in bench.groups.iter_mut().flat_map(|group| &mut group.rows) {
        row.passes.iter_mut().flatten().for_each(|ns| *ns = time(*ns));
        row.settle();
    }
    bench.to_json()
}

#[test]
fn the_workflow_is_one_that_github_takes() {
    let workflow = workflow();
    assert_eq!(workflow["on"]["push"]["branches"], json!(["main"]));
    assert!(workflow["on"].as_object().unwrap().contains_key("pull_request"));
    assert_eq!(workflow["permissions"], json!({ "contents": "read" }), "no more than it needs");
    assert_eq!(workflow["env"]["BREAKEVEN_VERSION"], env!("CARGO_PKG_VERSION"), "text, so that 0.10 stays 0.10");
    let jobs: Vec<&Value> = workflow["jobs"].as_object().unwrap().values().collect();
    assert_eq!(jobs.len(), 1);
    assert!(jobs[0]["runs-on"].is_string() && jobs[0]["timeout-minutes"].is_u64());
    let steps = jobs[0]["steps"].as_array().unwrap();
    for step in steps {
        assert!(step["run"].is_string() != step["uses"].is_string(), "a step runs or uses: {step}");
        let known = ["name", "if", "run", "uses", "with"];
        assert!(step.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{step}");
        if let Some(action) = step["uses"].as_str() {
            assert!(action.split_once('@').is_some_and(|(_, version)| version.starts_with('v')), "{action}");
        }
        // Text of a pull request would become commands.
        assert!(!step["run"].as_str().unwrap_or_default().contains("${{"), "{step}");
    }
    let script = |name: &str| steps.iter().find(|step| step["name"] == name).unwrap()["run"].as_str().unwrap();
    assert_eq!(script("Measure main"), "breakeven bench unary rows batch --quick --devices cpu --save-baseline main");
    assert_eq!(
        script(COMPARE),
        "breakeven bench unary rows batch --quick --devices cpu --baseline main --max-regression 10% \
         --markdown bench.md --html bench.html"
    );
    assert!(script("Install Breakeven").starts_with("command -v breakeven || cargo install breakeven-cli "));
}

#[test]
fn main_keeps_a_baseline_that_pull_requests_are_compared_with() {
    let (kept, steps) = main_run();
    let failed = steps.iter().find(|step| step.outcome == Outcome::Failed);
    assert!(failed.is_none(), "{failed:?}");
    for name in ["Fetch the baseline", COMPARE, SHOW, "Upload the comparison"] {
        assert_eq!(outcome(&steps, name), Outcome::Skipped, "{name}");
    }
    let file = baseline(kept.path());
    let measured = Bench::from_json(&text(&file)).unwrap();
    assert!(measured.groups.len() == 3 && measured.groups.iter().all(|group| !group.rows.is_empty()));

    // Whether the same program is slower than itself by 10 % here is the machine's business: against a baseline that took
    // three times as long it is not.
    fs::write(&file, with_times(measured.clone(), |ns| 3 * ns)).unwrap();
    let runner = Runner::new("pull_request", kept.path());
    let steps = runner.run(&workflow());
    for step in &steps {
        let of_main = ["Measure main", "Keep the baseline"].contains(&step.name.as_str());
        let wanted = if of_main { Outcome::Skipped } else { Outcome::Done };
        assert_eq!(step.outcome, wanted, "{}: {}", step.name, step.said);
    }
    check_shown(&runner);

    // The same against a baseline that nothing can be as fast as.
    fs::write(&file, with_times(measured, |ns| ns.div_ceil(100))).unwrap();
    let runner = Runner::new("pull_request", kept.path());
    let steps = runner.run(&workflow());
    assert_eq!(outcome(&steps, COMPARE), Outcome::Failed, "a hundred times as slow passes the gate");
    assert_eq!(outcome(&steps, SHOW), Outcome::Done);
    assert_eq!(outcome(&steps, "Upload the comparison"), Outcome::Done);
    check_shown(&runner);
}

/// The summary is the comparison, which was uploaded with its page.
#[track_caller]
fn check_shown(runner: &Runner) {
    let markdown = text(&runner.artifact("bench", "bench.md"));
    assert!(markdown.len() > 100, "{markdown}");
    assert_eq!(text(&runner.summary()), markdown);
    assert!(text(&runner.artifact("bench", "bench.html")).starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_pull_request_without_a_baseline_fails() {
    let nothing = TempDir::new().unwrap();
    let runner = Runner::new("pull_request", nothing.path());
    let steps = runner.run(&workflow());
    assert_eq!(outcome(&steps, "Install Breakeven"), Outcome::Done);
    assert_eq!(outcome(&steps, "Fetch the baseline"), Outcome::Failed);
    for name in [COMPARE, SHOW, "Upload the comparison"] {
        assert_eq!(outcome(&steps, name), Outcome::Skipped, "{name}");
    }
}
