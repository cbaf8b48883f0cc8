//! Outcomes that are remembered on disk: a program and a tray of samples enter, their outcomes leave if they were computed before,
//! in this process or another.
//!
//! The engine's cache knows results by a program and its inputs. An outcome is made by many compiled programs, so that it is
//! kept under one that stands for them all, whose inputs are digests of everything that the outcome depends on.

use crate::canvas::Bucket;
use crate::program::Program;
use crate::score::{Outcome, Score};
use crate::task::Pair;
use breakeven::{CacheOptions, CacheStats, Cached, CachedProgram, DType, Engine, Tensor, View};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// One more whenever the same program and the same samples have other outcomes.
const VERSION: &str = "grid_scoring 1";
/// Numbers of an outcome: how it ended, equal cells, equal colours.
const NUMBERS: usize = 3;
/// Words of a digest.
const WORDS: usize = 4;

/// A digest of everything that outcomes depend on.
pub type Digest = [u32; WORDS];

/// The cache.
pub struct Memory {
    engine: Engine,
    cached: Cached,
    /// What stands for all programs, by the number of lanes.
    stands: Mutex<HashMap<usize, CachedProgram>>,
}

impl Memory {
    /// In this folder, or in the engine's own.
    pub fn open(engine: &Engine, folder: Option<PathBuf>) -> breakeven::Result<Memory> {
        let options = CacheOptions { folder, namespace: VERSION.to_owned(), ..CacheOptions::default() };
        Ok(Memory { engine: engine.clone(), cached: engine.cached(options)?, stands: Mutex::default() })
    }

    /// How it was used.
    pub fn stats(&self) -> CacheStats {
        self.cached.stats()
    }

    /// The outcomes of a program with a tray of samples, if they are remembered.
    pub fn get(&self, program: Digest, tray: Digest, samples: usize, lanes: usize) -> Option<Vec<Outcome>> {
        let stand = self.stand(lanes).ok()?;
        // What can't be read is computed: the figures tell.
        let kept = stand.get(&[program.as_slice().into(), tray.as_slice().into()]).ok()??;
        let numbers = kept.first()?.as_slice::<i32>().ok()?;
        (0..samples).map(|lane| outcome(std::array::from_fn(|at| numbers[at * lanes + lane]))).collect()
    }

    /// Remembers them; what was late may be in time another day, and is not.
    pub fn put(&self, program: Digest, tray: Digest, outcomes: &[Outcome], lanes: usize) -> breakeven::Result<()> {
        let mut numbers = vec![0i32; NUMBERS * lanes];
        for (lane, outcome) in outcomes.iter().enumerate() {
            let Some(of) = numbers_of(*outcome) else { return Ok(()) };
            of.into_iter().enumerate().for_each(|(at, number)| numbers[at * lanes + lane] = number);
        }
        let values: [View<'_>; 2] = [program.as_slice().into(), tray.as_slice().into()];
        self.stand(lanes)?.put_views(&values, &[View::from(&numbers)])
    }

    /// Hands what was put to the system, which keeps it even if this process is killed.
    pub fn flush(&self) {
        self.cached.flush();
    }

    fn stand(&self, lanes: usize) -> breakeven::Result<CachedProgram> {
        let mut stands = self.stands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stand) = stands.get(&lanes) {
            return Ok(stand.clone());
        }
        let digest = |name: &str| Tensor::input(name, DType::U32, [WORDS]);
        let (program, tray) = (digest("program")?, digest("tray")?);
        let both = program.add(&tray)?.cast(DType::I32)?.sum(&[], false)?;
        let outcomes = both.add(Tensor::zeros([NUMBERS, lanes], DType::I32)?)?;
        let stand = self.cached.program(&self.engine.compile(&[&program, &tray], &[&outcomes])?)?;
        stands.insert(lanes, stand.clone());
        Ok(stand)
    }
}

/// Everything of a program that outcomes depend on.
pub fn program_digest(program: &Program) -> Digest {
    digest(|hasher| program.to_string().hash(hasher))
}

/// Everything of each tray that outcomes depend on.
pub fn tray_digests(bucket: &Bucket<'_>) -> Vec<Digest> {
    bucket.samples.chunks(bucket.lanes).map(tray_digest).collect()
}

fn tray_digest(samples: &[&Pair]) -> Digest {
    let mut bytes: Vec<u8> = Vec::new();
    for grid in samples.iter().flat_map(|sample| [&sample.input, &sample.output]) {
        // Sides are at most 30 and colours at most 9.
        bytes.extend([grid.height() as u8, grid.width() as u8]);
        bytes.extend(grid.cells().iter().map(|cell| *cell as u8));
    }
    digest(|hasher| bytes.hash(hasher))
}

/// 128 bits: two hashes with different beginnings.
fn digest(feed: impl Fn(&mut DefaultHasher)) -> Digest {
    let half = |number: u8| {
        let mut hasher = DefaultHasher::new();
        number.hash(&mut hasher);
        feed(&mut hasher);
        hasher.finish()
    };
    let [low, high] = [half(1), half(2)];
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

fn numbers_of(outcome: Outcome) -> Option<[i32; NUMBERS]> {
    match outcome {
        Outcome::Scored(Score { exact, equal_cells, equal_colours }) => {
            Some([i32::from(exact), equal_cells, equal_colours])
        }
        Outcome::Failed(failure) => Some([2 + failure as i32, 0, 0]),
        Outcome::Late | Outcome::Skipped => None,
    }
}

fn outcome([kind, equal_cells, equal_colours]: [i32; NUMBERS]) -> Option<Outcome> {
    match kind {
        0 | 1 => Some(Outcome::Scored(Score { exact: kind == 1, equal_cells, equal_colours })),
        _ => {
            let failure = crate::program::Failure::ALL.into_iter().find(|failure| 2 + *failure as i32 == kind)?;
            Some(Outcome::Failed(failure))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Failure;

    #[test]
    fn outcomes_come_back_as_they_were() {
        let score = |exact| Outcome::Scored(Score { exact, equal_cells: 12, equal_colours: 9 });
        let failed = Failure::ALL.map(Outcome::Failed);
        for known in failed.into_iter().chain([score(true), score(false)]) {
            assert_eq!(numbers_of(known).and_then(outcome), Some(known));
        }
        assert_eq!((numbers_of(Outcome::Late), numbers_of(Outcome::Skipped)), (None, None));
        assert_eq!(outcome([99, 0, 0]), None);
    }

    #[test]
    fn putting_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let config = breakeven::Config { threads: Some(1), ..breakeven::Config::default() };
        let engine = Engine::with_config(config).unwrap();
        let memory = Memory::open(&engine, Some(folder.path().to_owned())).unwrap();
        let outcomes = [Outcome::Failed(Failure::ALL[0]), Outcome::Failed(Failure::ALL[1])];
        let recorder = engine.profile().unwrap();
        memory.put([1; 4], [2; 4], &outcomes, 8).unwrap();
        assert_eq!(memory.get([1; 4], [2; 4], 2, 8).unwrap(), outcomes);
        assert_eq!(recorder.finish().batches.len(), 0);
    }

    #[test]
    fn digests_differ_where_anything_does() {
        let tasks = crate::generate(2, 1);
        let (a, b) = (&tasks[0].train[0], &tasks[1].train[0]);
        let swapped = Pair { input: a.output.clone(), output: a.input.clone() };
        let digests = [tray_digest(&[a]), tray_digest(&[b]), tray_digest(&[a, b]), tray_digest(&[&swapped])];
        for (at, digest) in digests.iter().enumerate() {
            assert!(!digests[at + 1..].contains(digest), "{at}");
        }
        assert_eq!(tray_digest(&[a]), digests[0]);
    }
}
