//! Programs and tasks whose results are remembered on disk, the same in every process: what a process that is killed has
//! left is compared with what must be there.

use breakeven::{CacheOptions, Cached, CachedProgram, Config, DType, Device, Engine, Program, Result, Tensor, View};
use std::path::Path;

/// Programs.
pub const PROGRAMS: usize = 4;
/// Batches of each.
pub const BATCHES: usize = 12;
/// Tasks of each batch, in which four sizes take turns.
pub const TASKS: usize = 40;

/// An engine whose costs and devices play no part.
pub fn engine() -> Result<Engine> {
    Engine::with_config(Config { device: Device::Cpu, threads: Some(2), ..Config::default() })
}

/// Its cache, in a folder with room for about a third of all results, or for all of them.
pub fn cached(engine: &Engine, folder: &Path, roomy: bool) -> Result<Cached> {
    let max_bytes = if roomy { 16 << 20 } else { 200 << 10 };
    engine.cached(CacheOptions { folder: Some(folder.into()), max_bytes, memory_bytes: 64 << 10, ..Default::default() })
}

/// Program `number`: a vector and a scalar.
pub fn program(engine: &Engine, number: usize) -> Result<Program> {
    let x = Tensor::input("x", DType::F32, [30])?;
    let y = ((&x * (number as f32 + 0.5))?.sin()? + number as f32)?;
    engine.compile(&[&x], &[&y.cumsum(0)?, &y.sum(&[], false)?])
}

/// The values of the tasks of a batch.
pub fn values(batch: usize) -> Vec<Vec<f32>> {
    let value = |task: usize, i: usize| (batch * 1000 + task) as f32 + i as f32 / 64.0;
    (0..TASKS).map(|task| (0..30 + 10 * (task % 4)).map(|i| value(task, i)).collect()).collect()
}

/// Values as tasks.
pub fn tasks(values: &[Vec<f32>]) -> Vec<[View<'_>; 1]> {
    values.iter().map(|values| [values.into()]).collect()
}

/// The bytes of a task's results.
pub type Expected = Vec<Vec<u8>>;

/// What must come out of every task of every batch of every program, computed without a cache.
pub fn expected(engine: &Engine) -> Result<Vec<Vec<Vec<Expected>>>> {
    let batch = |program: &Program, batch: usize| -> Result<Vec<Expected>> {
        let values = values(batch);
        let many = program.run_many(&tasks(&values))?;
        let bytes = |task, output| Ok(many.array(task, output)?.as_bytes().to_vec());
        (0..TASKS).map(|task| (0..2).map(|output| bytes(task, output)).collect()).collect()
    };
    (0..PROGRAMS)
        .map(|number| {
            let program = program(engine, number)?;
            (0..BATCHES).map(|number| batch(&program, number)).collect()
        })
        .collect()
}

/// Looks every task up, and compares what is there with what must be: how many are there comes back.
///
/// # Panics
/// If anything else is there.
pub fn check(engine: &Engine, cached: &Cached, expected: &[Vec<Vec<Expected>>]) -> Result<usize> {
    let mut hits = 0;
    for (number, batches) in expected.iter().enumerate() {
        let program: CachedProgram = cached.program(&program(engine, number)?)?;
        for (batch, expected) in batches.iter().enumerate() {
            for (task, (values, expected)) in values(batch).iter().zip(expected).enumerate() {
                let Some(found) = program.get(&[values.into()])? else { continue };
                let found: Expected = found.iter().map(|array| array.as_bytes().to_vec()).collect();
                assert_eq!(found, *expected, "program {number}, batch {batch}, task {task}");
                hits += 1;
            }
        }
    }
    Ok(hits)
}

/// Runs `rounds` batches, which depend on the seed, and opens the cache anew after every eighth.
pub fn fill(folder: &Path, roomy: bool, rounds: usize, seed: usize) -> Result<()> {
    let engine = engine()?;
    let mut open = None;
    for round in 0..rounds {
        let at = (seed.wrapping_mul(7919) + round * 31) % (PROGRAMS * BATCHES);
        if round % 8 == 0 {
            open = None;
        }
        let cached: &Cached = match &mut open {
            Some(cached) => cached,
            none => none.insert(cached(&engine, folder, roomy)?),
        };
        let program = cached.program(&program(&engine, at % PROGRAMS)?)?;
        program.run_many(&tasks(&values(at / PROGRAMS)))?;
    }
    Ok(())
}
