//! The command: arguments enter, a report leaves. Every part of it is one function: load, run, baseline, compare.

use crate::args::Args;
use crate::generate::generate;
use crate::memory::Memory;
use crate::numpy;
use crate::program::{LOOPER, ParseError, Program, builtin, parse_list};
use crate::progress::Progress;
use crate::report::{Baseline, Compared, Report};
use crate::run::{Limits, Run, Scoring, Watch};
use crate::scalar;
use crate::score::Outcome;
use crate::task::{Folder, Pair, Task, TaskError, read_folder};
use breakeven::{Api, Config, Device, Engine, span};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What goes wrong.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Tasks that can't be read.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    /// A file of programs that can't be read.
    #[error("{}: {why}; give a file with a program in each line", path.display())]
    Programs {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// A program that is none.
    #[error("{}: {why}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: ParseError,
    },
    /// A profile that can't be written.
    #[error("{}: {why}; give a file that can be written", path.display())]
    Profile {
        /// Where.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// Outcomes are to be remembered, and nobody says where.
    #[error("--cache has no folder: BREAKEVEN_CACHE_DIR is empty or there is no home; give one with --cache FOLDER")]
    Nowhere,
    /// The engine.
    #[error(transparent)]
    Engine(#[from] breakeven::Error),
}

impl CommandError {
    /// Is it the user's mistake?
    pub fn is_mistake(&self) -> bool {
        !matches!(self, CommandError::Engine(_))
    }
}

/// The plain loop is measured with at most this many scorings, evenly chosen, unless everything is compared.
const BASELINE_SCORINGS: usize = 6_000;
/// It is a yardstick, not a second run: it takes no more than this.
const BASELINE_TIME: Duration = Duration::from_secs(1);
/// It goes through them in so many passes, so that those it comes to in its time are evenly chosen, too.
const BASELINE_PASSES: usize = 16;

/// Runs the command.
pub fn run(args: &Args, progress: &mut Progress) -> Result<Report, CommandError> {
    let (engine, workers) = engine(args.device, None)?;
    let recorder = engine.profile()?.title("grid_scoring");
    let (Folder { tasks, refused }, programs) = {
        let _stage = span!("load");
        (load(args)?, programs(args)?)
    };
    let most = args.samples as usize;
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(most)).collect();
    let per_task: Vec<usize> = tasks.iter().map(|task| task.samples(most).count()).collect();
    let limits = Limits { sample: args.deadline, run: args.run_deadline };
    let memory = args.cache.clone().map(|folder| memory(&engine, folder)).transpose()?;
    let profile = Some(recorder.handle());
    let scoring = Scoring { engine: &engine, workers, limits, memory: memory.as_ref(), profile };
    let (run, took) = timed_run(&scoring, &programs, &samples, progress)?;
    let profile = recorder.finish();

    let mut report = Report::new(&run, &tasks, &per_task, &programs, took);
    (report.device, report.workers) = (args.device.to_string(), workers);
    report.refused = refused.iter().map(TaskError::to_string).collect();
    report.add_profile(&profile);
    if let Some(path) = &args.profile {
        // What was scored is not lost with it.
        let failed = |why| CommandError::Profile { path: path.clone(), why }.to_string();
        report.not_written = std::fs::write(path, profile.to_json()).map_err(failed).err();
    }
    if let Some(memory) = &memory {
        report.add_cache(run.remembered, &memory.stats());
    }
    if !progress.is_interrupted() {
        let left = Limits { run: limits.run.saturating_sub(took).min(BASELINE_TIME), ..limits };
        report.baseline = baseline(&run, &programs, &samples, left, report.scorings_per_second, progress);
    }
    if args.compare && !progress.is_interrupted() {
        report.compared = compare(args, &run, took, &programs, &samples, limits, progress)?;
    }
    report.interrupted |= progress.is_interrupted();
    Ok(report)
}

/// Where outcomes are remembered: in this folder, or where the engine remembers.
fn memory(engine: &Engine, folder: Option<PathBuf>) -> Result<Memory, CommandError> {
    if folder.is_none() && Config::from_env()?.cache_dir.is_none() {
        return Err(CommandError::Nowhere);
    }
    Ok(Memory::open(engine, folder)?)
}

/// Reads or makes up tasks.
fn load(args: &Args) -> Result<Folder, CommandError> {
    match (&args.tasks, args.generate) {
        (Some(folder), _) => Ok(read_folder(folder)?),
        (None, count) => Ok(Folder { tasks: generate_tasks(count.unwrap_or(1), args.seed), refused: Vec::new() }),
    }
}

fn generate_tasks(count: u32, seed: u64) -> Vec<Task> {
    generate(count as usize, seed)
}

/// The programs that were asked for, and those that never end, spread among them.
fn programs(args: &Args) -> Result<Vec<Program>, CommandError> {
    let mut programs = match &args.programs {
        None => builtin(),
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|why| CommandError::Programs { path: path.clone(), why })?;
            parse_list(&text).map_err(|why| CommandError::Program { path: path.clone(), why })?
        }
    };
    if let Some(share) = args.loopers {
        let count = (programs.len() as f64 * share).ceil() as usize;
        let looper: Program =
            LOOPER.parse().map_err(|why| CommandError::Program { path: PathBuf::from("built in"), why })?;
        for number in 0..count {
            programs.insert(number * programs.len() / count, looper.clone());
        }
    }
    Ok(programs)
}

/// An engine on a device, behind one interface if that is said, and how many workers it has. A GPU that was asked for must do
/// it. The engine has one thread, and each worker calls it: batches of few tasks are too small to be shared.
fn engine(device: Device, api: Option<Api>) -> Result<(Engine, usize), CommandError> {
    let mut config = Config { device, ..Config::from_env()? };
    config.strict = matches!(device, Device::Gpu(_));
    if let Some(api) = api {
        config.apis = vec![api];
    }
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = config.threads.unwrap_or_else(all);
    config.threads = Some(1);
    Ok((Engine::with_config(config)?, workers))
}

fn timed_run(
    scoring: &Scoring<'_>,
    programs: &[Program],
    samples: &[&Pair],
    progress: &mut Progress,
) -> Result<(Run, Duration), CommandError> {
    progress.begin(programs.len() * samples.len());
    let begun = Instant::now();
    let run = scoring.run(programs, samples, progress)?;
    Ok((run, begun.elapsed()))
}

/// Has a program no result with some sample because of the time that it takes?
fn is_late(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Late | Outcome::Skipped)
}

/// The plain loop over some of the scorings, evenly chosen. Programs that were late with any sample are left to the batches:
/// how long they take says how long they may.
fn baseline(
    run: &Run,
    programs: &[Program],
    samples: &[&Pair],
    limits: Limits,
    per_second: f64,
    watch: &dyn Watch,
) -> Option<Baseline> {
    let outcomes = run.outcomes.chunks(samples.len().max(1));
    let in_time = programs.iter().zip(outcomes).filter(|(_, outcomes)| !outcomes.iter().any(is_late));
    let in_time: Vec<&Program> = in_time.map(|(program, _)| program).collect();
    let all = in_time.len() * samples.len();
    let chosen: Vec<usize> = (0..all).step_by(all.div_ceil(BASELINE_SCORINGS).max(1)).collect();
    let begun = Instant::now();
    let (mut scorings, mut took) = (0, Duration::ZERO);
    for at in (0..BASELINE_PASSES).flat_map(|pass| chosen.iter().skip(pass).step_by(BASELINE_PASSES)) {
        if watch.is_interrupted() {
            return None;
        }
        let (program, sample) = (in_time[at / samples.len()], samples[at % samples.len()]);
        let deadline = (begun + took + limits.sample).min(begun + limits.run);
        std::hint::black_box(scalar::score(program, sample, deadline));
        let now = begun.elapsed();
        if now >= limits.run {
            // This one was perhaps cut short.
            break;
        }
        (scorings, took) = (scorings + 1, now);
    }
    let rate = scorings as f64 / took.as_secs_f64().max(1e-9);
    (scorings > 0).then(|| Baseline {
        scorings,
        scorings_per_second: rate,
        speedup: per_second / rate,
        left_out: programs.len() - in_time.len(),
        remembered: run.remembered,
    })
}

/// Every other way to do the same, each compared with `run`.
fn compare(
    args: &Args,
    run: &Run,
    took: Duration,
    programs: &[Program],
    samples: &[&Pair],
    limits: Limits,
    progress: &mut Progress,
) -> Result<Vec<Compared>, CommandError> {
    let ratio = |other: Duration| other.as_secs_f64() / took.as_secs_f64().max(1e-9);
    let of_run = |name: &str, outcomes: &[Outcome], other: Duration, note: String| {
        let (mut different, mut late_in_one) = (0, 0);
        for (ours, theirs) in run.outcomes.iter().zip(outcomes) {
            late_in_one += usize::from(is_late(ours) != is_late(theirs));
            different += usize::from(!is_late(ours) && !is_late(theirs) && ours != theirs);
        }
        let seconds = Some(other.as_secs_f64());
        Compared { name: name.to_owned(), seconds, ratio: Some(ratio(other)), different, late_in_one, note }
    };
    let not_run = |name: &str, note: String| Compared {
        name: name.to_owned(),
        seconds: None,
        ratio: None,
        different: 0,
        late_in_one: 0,
        note,
    };
    let mut list = Vec::new();
    let begun = Instant::now();
    let mut outcomes = Vec::with_capacity(run.outcomes.len());
    for program in programs {
        for sample in samples {
            if progress.is_interrupted() {
                return Ok(list);
            }
            outcomes.push(scalar::score(program, sample, Instant::now() + limits.sample));
        }
    }
    list.push(of_run("plain Rust", &outcomes, begun.elapsed(), String::new()));
    match numpy::run(programs, samples, limits.sample) {
        Ok(numpy) => {
            let pairs = || numpy.outcomes.iter().zip(&run.outcomes);
            let late_in_one = pairs().filter(|(a, b)| (**a == numpy::NumpyOutcome::Late) != is_late(b)).count();
            let different = pairs().filter(|(a, b)| !a.agrees(**b)).count().saturating_sub(late_in_one);
            list.push(Compared {
                name: "numpy".to_owned(),
                seconds: Some(numpy.took.as_secs_f64()),
                ratio: Some(ratio(numpy.took)),
                different,
                late_in_one,
                note: format!("({})", numpy.version),
            });
        }
        Err(why) => list.push(not_run("numpy", why.to_string())),
    }
    // A software GPU takes far longer for a round than a sample may on the CPU: what is compared are results.
    let patient =
        Limits { sample: limits.sample.max(Duration::from_secs(600)), run: limits.run.max(Duration::from_secs(600)) };
    // Unless there were programs without end, for which nobody has that patience.
    let limits = if run.outcomes.iter().any(is_late) { limits } else { patient };
    let mut arms = vec![("cpu".to_owned(), Device::Cpu, None)];
    for api in Config::from_env()?.apis {
        arms.push((api.name().to_owned(), Device::Gpu(Some(0)), Some(api)));
    }
    for (name, device, api) in arms {
        if api.is_none() && device == args.device || progress.is_interrupted() {
            continue;
        }
        let timed = engine(device, api).and_then(|(engine, workers)| {
            let scoring = Scoring { engine: &engine, workers, limits, memory: None, profile: None };
            timed_run(&scoring, programs, samples, progress)
        });
        match timed {
            Ok((other, took)) => list.push(of_run(&name, &other.outcomes, took, String::new())),
            Err(why) => list.push(not_run(&name, why.to_string())),
        }
    }
    Ok(list)
}
