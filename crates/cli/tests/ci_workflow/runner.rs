//! A stand-in for GitHub's runner: a workflow and an event enter, what became of each step leaves. Scripts run for real;
//! of actions only what moves files is done: caches and artifacts are folders.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, time::Duration};
use tempfile::TempDir;

/// A step of the suite may take minutes where the build is not optimised.
const LIMIT: Duration = Duration::from_secs(600);
const SHA: &str = "1111111111111111111111111111111111111111";
const BASE_SHA: &str = "0000000000000000000000000000000000000000";

/// What became of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed, and with it the job.
    Failed,
    /// Its condition did not hold.
    Skipped,
}

/// A step that had its turn.
#[derive(Debug)]
pub struct Step {
    /// What it is called; an action without a name is called after itself.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What its script printed, for whoever reads a failure.
    pub said: String,
}

/// One fresh machine, on which one job runs.
pub struct Runner {
    folder: TempDir,
    event: &'static str,
    /// What outlives the machine: a folder for each key.
    caches: PathBuf,
}

impl Runner {
    /// A machine for this event.
    pub fn new(event: &'static str, caches: &Path) -> Runner {
        let runner = Runner { folder: TempDir::new().unwrap(), event, caches: caches.to_path_buf() };
        for name in ["workspace", "artifacts", "temp", "bin"] {
            fs::create_dir(runner.folder.path().join(name)).unwrap();
        }
        // Whoever installs something here does not use the program that is tested.
        let cargo = runner.folder.path().join("bin/cargo");
        fs::write(&cargo, "#!/bin/sh\necho 'nothing is to be installed' >&2\nexit 1\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        }
        runner
    }

    /// Runs the steps of the only job.
    pub fn run(&self, workflow: &Value) -> Vec<Step> {
        let job = workflow["jobs"].as_object().unwrap().values().next().unwrap();
        let mut failed = false;
        let mut steps = Vec::new();
        for step in job["steps"].as_array().unwrap() {
            let name = step["name"].as_str().or(step["uses"].as_str()).unwrap().to_owned();
            let (outcome, said) = if !self.holds(step["if"].as_str().unwrap_or(""), failed) {
                (Outcome::Skipped, String::new())
            } else if let Some(script) = step["run"].as_str() {
                self.script(script, workflow)
            } else {
                (if self.act(step) { Outcome::Done } else { Outcome::Failed }, String::new())
            };
            failed |= outcome == Outcome::Failed;
            steps.push(Step { name, outcome, said });
        }
        steps
    }

    /// What the job's page on GitHub would show.
    pub fn summary(&self) -> PathBuf {
        self.folder.path().join("temp/summary.md")
    }

    /// A file that was uploaded.
    pub fn artifact(&self, name: &str, file: &str) -> PathBuf {
        self.folder.path().join("artifacts").join(name).join(file)
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A condition; one that says nothing about failures holds only as long as there was none.
    fn holds(&self, condition: &str, failed: bool) -> bool {
        let plain = condition.trim().trim_start_matches("${{").trim_end_matches("}}").trim();
        let mut holds = !failed || plain.contains("cancelled()");
        for term in plain.split("&&").map(str::trim).filter(|term| !term.is_empty()) {
            holds &= if let Some(event) = between(term, "github.event_name == '", "'") {
                event == self.event
            } else if let Some(file) = between(term, "hashFiles('", "') != ''") {
                self.workspace().join(file).is_file()
            } else {
                assert_eq!(term, "!cancelled()", "a condition that is not known here");
                true
            };
        }
        holds
    }

    /// A script, as GitHub starts it where no shell is named, with all that it sets.
    fn script(&self, script: &str, workflow: &Value) -> (Outcome, String) {
        let temp = self.folder.path().join("temp");
        let program = Path::new(assert_cmd::cargo::cargo_bin!("breakeven")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.path().join("bin"), program.to_path_buf()];
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).unwrap();
        let file = temp.join("script.sh");
        fs::write(&file, script).unwrap();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(&file);
        command.current_dir(self.workspace()).env("PATH", path).env("BREAKEVEN_CACHE_DIR", temp.join("cache"));
        for name in ["BREAKEVEN_DEVICE", "BREAKEVEN_BACKENDS", "BREAKEVEN_THREADS"] {
            command.env_remove(name);
        }
        for (name, value) in [("CI", "true"), ("GITHUB_ACTIONS", "true"), ("GITHUB_SHA", SHA)] {
            command.env(name, value);
        }
        command
            .env("GITHUB_EVENT_NAME", self.event)
            .env("GITHUB_WORKSPACE", self.workspace())
            .env("RUNNER_TEMP", &temp);
        command.env("GITHUB_STEP_SUMMARY", self.summary()).env("GITHUB_OUTPUT", temp.join("output"));
        for (name, value) in workflow["env"].as_object().unwrap() {
            command.env(name, value.as_str().unwrap());
        }
        let output = command.timeout(LIMIT).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (if output.status.success() { Outcome::Done } else { Outcome::Failed }, said)
    }

    /// An action, as far as it moves files.
    fn act(&self, step: &Value) -> bool {
        let setting = |name: &str| self.filled(step["with"][name].as_str().unwrap_or_default());
        let (action, _) = step["uses"].as_str().unwrap().split_once('@').unwrap();
        match action {
            "actions/checkout" => true,
            "actions/cache/save" => {
                let path = setting("path");
                copy(&self.workspace().join(&path), &self.caches.join(setting("key")).join(&path))
            }
            "actions/cache/restore" => {
                let path = setting("path");
                let exact = self.caches.join(setting("key"));
                let found = if exact.is_dir() { Some(exact) } else { self.newest(&setting("restore-keys")) };
                let strict = step["with"]["fail-on-cache-miss"] == true;
                found.map_or(!strict, |cache| copy(&cache.join(&path), &self.workspace().join(&path)))
            }
            "actions/upload-artifact" => setting("path")
                .lines()
                .map(str::trim)
                .filter(|file| !file.is_empty())
                .all(|file| copy(&self.workspace().join(file), &self.artifact(&setting("name"), file))),
            other => panic!("{other} is not known here"),
        }
    }

    /// The newest cache whose key begins like this.
    fn newest(&self, prefix: &str) -> Option<PathBuf> {
        let caches = fs::read_dir(&self.caches).unwrap().map(|entry| entry.unwrap());
        let fitting =
            caches.filter(|cache| !prefix.is_empty() && cache.file_name().to_string_lossy().starts_with(prefix));
        fitting.max_by_key(|cache| cache.metadata().unwrap().modified().unwrap()).map(|cache| cache.path())
    }

    /// A setting with its expressions filled in.
    fn filled(&self, setting: &str) -> String {
        let known = [("runner.os", "Linux"), ("github.sha", SHA), ("github.event.pull_request.base.sha", BASE_SHA)];
        let filled = known
            .iter()
            .fold(setting.to_owned(), |text, (name, value)| text.replace(&format!("${{{{ {name} }}}}"), value));
        assert!(!filled.contains("${{"), "an expression that is not known here: {setting}");
        filled
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// Copies a file, or a folder of files; false if it is not there.
fn copy(from: &Path, to: &Path) -> bool {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return true;
    }
    let Ok(entries) = fs::read_dir(from) else { return false };
    entries.map(|entry| entry.unwrap()).all(|entry| copy(&entry.path(), &to.join(entry.file_name())))
}
