//! numpy, numexpr, JAX and torch, each in a Python process of its own that lives as long as the run: workloads go in
//! over a pipe and files, nanoseconds and results come back.
//!
//! A process is stopped while it is not its turn: OpenBLAS and OpenMP helpers spin for up to 100 ms after a call, and
//! would take a core from whoever is measured next.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::arm::{Arm, Fallible, Runner};
use crate::workload::Workload;

/// The libraries that are asked for, in the report's order.
const LIBRARIES: [&str; 4] = ["numpy", "numexpr", "jax", "torch"];
const SCRIPT: &str = include_str!("peers.py");

/// The Python peers that could be had.
pub struct Python {
    servers: Vec<Rc<RefCell<Server>>>,
    folder: PathBuf,
    /// What is there, with its version, and what is not, with the reason: for the report.
    pub notes: Vec<String>,
}

impl Python {
    /// Starts one process a library with the interpreter in `BREAKEVEN_PYTHON`, or `python3`.
    pub fn start() -> Fallible<Python> {
        let interpreter = std::env::var("BREAKEVEN_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let folder = std::env::temp_dir().join(format!("breakeven-peers-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut python = Python { servers: Vec::new(), folder, notes: Vec::new() };
        for library in LIBRARIES {
            match Server::start(&interpreter, library) {
                Ok((server, version)) => {
                    python.notes.push(format!("{library} {version}"));
                    python.servers.push(Rc::new(RefCell::new(server)));
                }
                Err(error) => python.notes.push(format!("{library} is left out: {error}")),
            }
        }
        Ok(python)
    }

    /// Hands the workload to every library; the arms that they offer.
    pub fn arms(&self, workload: &Workload) -> Fallible<Vec<Arm<'static>>> {
        if self.servers.is_empty() {
            return Ok(Vec::new());
        }
        let mut inputs = Vec::new();
        for (i, input) in workload.inputs.iter().enumerate() {
            let path = self.folder.join(format!("input{i}.f32"));
            write_floats(&path, &input.data)?;
            inputs.push(json!({ "path": path, "shape": input.shape }));
        }
        let request = json!({ "load": workload.kind.name(), "n": workload.n, "inputs": inputs });
        let mut arms = Vec::new();
        for server in &self.servers {
            let answer = server.borrow_mut().ask(&request)?;
            let variants = answer["variants"].as_array().ok_or("a Python peer answered without variants")?;
            for variant in variants.iter().filter_map(Value::as_str) {
                let runner = Remote {
                    server: Rc::clone(server),
                    variant: variant.to_owned(),
                    result_path: self.folder.join("result.f32"),
                };
                arms.push(Arm {
                    library: server.borrow().library,
                    variant: variant.to_owned(),
                    runner: Box::new(runner),
                });
            }
        }
        Ok(arms)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // Nothing depends on the folder being gone.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Remote {
    server: Rc<RefCell<Server>>,
    variant: String,
    result_path: PathBuf,
}

impl Runner for Remote {
    fn sample(&mut self, warm_up: Duration, calls: u32) -> Fallible<f64> {
        let warm_up_ns = warm_up.as_nanos() as u64;
        let request = json!({ "sample": self.variant, "warm_up_ns": warm_up_ns, "calls": calls });
        let answer = self.server.borrow_mut().ask(&request)?;
        answer["ns"].as_f64().ok_or_else(|| "a Python peer answered without a time".into())
    }

    fn result(&mut self) -> Fallible<Vec<f32>> {
        self.server.borrow_mut().ask(&json!({ "result": self.variant, "path": self.result_path }))?;
        let bytes = std::fs::read(&self.result_path)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}

struct Server {
    library: &'static str,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start(interpreter: &str, library: &'static str) -> Fallible<(Server, String)> {
        let mut child = Command::new(interpreter)
            .args(["-c", SCRIPT, library])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{interpreter} does not start: {error}"))?;
        let requests = child.stdin.take().ok_or("the child has no stdin")?;
        let answers = BufReader::new(child.stdout.take().ok_or("the child has no stdout")?);
        let mut server = Server { library, child, requests, answers };
        let hello = server.answer()?;
        server.signal(Signal::STOP)?;
        let version = hello["version"].as_str().ok_or("it did not say its version")?.to_owned();
        Ok((server, version))
    }

    /// Wakes the process, asks, waits for the answer, and stops the process again.
    fn ask(&mut self, request: &Value) -> Fallible<Value> {
        self.signal(Signal::CONT)?;
        writeln!(self.requests, "{request}")?;
        let answer = self.answer();
        self.signal(Signal::STOP)?;
        answer
    }

    fn answer(&mut self) -> Fallible<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the Python process ended".into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        for key in ["missing", "error"] {
            if let Some(reason) = answer[key].as_str() {
                return Err(reason.to_owned().into());
            }
        }
        Ok(answer)
    }

    fn signal(&self, signal: Signal) -> Fallible<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("the child has no process id")?;
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that has already ended is what is wanted here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_floats(path: &Path, values: &[f32]) -> Fallible<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Ok(std::fs::write(path, bytes)?)
}
