//! Everything that a run needs before its first batch: stages of all programs and buckets enter, compiled programs and canvases
//! leave, made on all workers.

use crate::canvas::{Anchor, Bucket};
use crate::library::Library;
use crate::record::Key;
use crate::shelf::{Shelf, form, keys};
use crate::stage::{Form, Stage};
use crate::workers::Workers;
use breakeven::{Engine, span};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is to be made.
enum Job {
    Compile(Key),
    Lay(usize, What),
}

/// What is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Inputs(Anchor),
    Expected(Form),
    Counts,
}

/// What was made.
#[derive(Default)]
struct Made {
    laid: Vec<(usize, What, Vec<u32>)>,
    failed: Option<breakeven::Error>,
}

/// Makes everything that the programs which `wanted` names for each bucket need, each once.
pub fn prepare<'a, 'e>(
    engine: &'e Engine,
    workers: &Workers,
    buckets: &'a [Bucket<'a>],
    stages: &[Vec<Stage>],
    wanted: impl Fn(usize, usize) -> bool,
) -> breakeven::Result<(Library<'e>, Vec<Shelf<'a>>)> {
    let (keys, jobs) = jobs(buckets, stages, wanted);
    let library = Library::new(engine, keys);
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Made::default());
    let made_of = || made.lock().unwrap_or_else(PoisonError::into_inner);
    workers.all("preparing", |_| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match job {
                Job::Compile(key) => {
                    if let Err(why) = library.get(key) {
                        made_of().failed = Some(why);
                    }
                }
                Job::Lay(number, what) => {
                    let _stage = span!("canvases");
                    let cells = match what {
                        What::Inputs(anchor) => buckets[*number].inputs(*anchor),
                        What::Expected(form) => buckets[*number].outputs(form.canvas, form.anchor),
                        What::Counts => buckets[*number].colour_counts(),
                    };
                    made_of().laid.push((*number, *what, cells));
                }
            }
        }
    });
    let Made { laid, failed } = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = failed {
        return Err(why);
    }
    let mut shelves: Vec<Shelf<'a>> = buckets.iter().map(Shelf::new).collect();
    for (number, what, cells) in laid {
        match what {
            What::Inputs(anchor) => drop(shelves[number].inputs.insert(anchor, cells)),
            What::Expected(form) => drop(shelves[number].expected.insert(form, cells)),
            What::Counts => shelves[number].counts = cells,
        }
    }
    Ok((library, shelves))
}

/// All programs that may be needed, and what is made at once.
fn jobs(
    buckets: &[Bucket<'_>],
    stages: &[Vec<Stage>],
    wanted: impl Fn(usize, usize) -> bool,
) -> (HashSet<Key>, Vec<Job>) {
    let (mut jobs, mut known) = (Vec::new(), HashSet::new());
    for (number, bucket) in buckets.iter().enumerate() {
        let mut laid = HashSet::new();
        for program in stages.iter().enumerate().filter(|(program, _)| wanted(number, *program)).map(|(_, list)| list) {
            laid.extend([What::Inputs(Anchor::default()), What::Counts]);
            let mut add = |key: Key| {
                // Whether few samples will be left at last is not known: a loop without end never comes to that.
                if known.insert(key.clone()) && !key.is_narrow() {
                    jobs.push(Job::Compile(key));
                }
            };
            let mut form = form(bucket);
            for stage in program {
                keys(stage, form, bucket.side).into_iter().for_each(&mut add);
                if let Stage::Fused(_, Some(anchor)) = stage {
                    laid.insert(What::Inputs(*anchor));
                }
                form = stage.form(form);
            }
            add(Key::Score(form.canvas.height, form.lanes));
            laid.insert(What::Expected(form.expected()));
        }
        jobs.extend(laid.into_iter().map(|what| Job::Lay(number, what)));
    }
    // Large canvases take longest: they do not come last.
    jobs.reverse();
    (known, jobs)
}
