//! Results that are remembered on disk by what was computed: the same program over the same inputs is not computed again, in
//! this process or the next. Opt-in: [`Engine::cached`].
//!
//! | file | enters | leaves |
//! |---|---|---|
//! | `key` | versions, a program's structure and constants, input bytes | 128 bits |
//! | `program` | a program and tasks | results: those that are there, and the rest computed as one batch |
//! | `store`, `index` | keys and values | values, as they were put in; the oldest go when there is no more room |
//! | `segment`, `record` | records | files that grow, in which damage is noticed |
//! | `figures` | hits, misses, evictions, faults | a file of figures |

pub(crate) mod key;

mod figures;
mod index;
mod program;
mod record;
mod segment;
mod store;
mod summary;

pub use figures::{CacheFigures, CacheStats};
pub use program::CachedProgram;
pub use summary::CacheSummary;

use crate::array::Array;
use crate::config::Device;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::program::Program;
use breakeven_ir::backend::RunError;
use breakeven_ir::{Buffer, DType, HostBytes, Shape, Tensor, plan_key};
use figures::Ledger;
use index::Limits;
use key::{Context, Key, Leaf};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::Store;

/// Fewer bytes than this are no cache.
const LEAST_BYTES: u64 = 1 << 12;
/// A process that is killed has told its figures up to this time before.
const FIGURES_EVERY: Duration = Duration::from_secs(1);

/// How results are remembered.
///
/// ```
/// let options = breakeven::CacheOptions { max_bytes: 16 << 20, ..Default::default() };
/// assert_eq!(options.folder, None);   // the engine's
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheOptions {
    /// Where they lie: by default the engine's [`Config::cache_dir`](crate::Config::cache_dir), where `breakeven cache` sees
    /// them. Several processes may use one folder at a time.
    pub folder: Option<PathBuf>,
    /// Bytes on the disk, at most. The results that were written least recently go first, about a sixteenth of all at a
    /// time. A single result of more than a quarter of this is not kept.
    pub max_bytes: u64,
    /// Results, at most: the index takes about 50 bytes of memory for each.
    pub max_entries: usize,
    /// Bytes of results that are kept in memory, too, about: the newest. Others are read from their files.
    pub memory_bytes: u64,
    /// Results of one namespace are not seen in another: for whatever else they depend on. A GPU is known by the name that it was
    /// asked for by, since it need not be opened for what is remembered: where cards or drivers take turns as `gpu:0`, and
    /// the last bits matter, that is theirs to tell.
    pub namespace: String,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            folder: None,
            max_bytes: 256 << 20,
            max_entries: 1 << 20,
            memory_bytes: 64 << 20,
            namespace: String::new(),
        }
    }
}

/// An engine that remembers results on disk. Cheap to clone; safe to share between threads, and with other processes.
///
/// A result is known by the program's structure, its constants, the inputs' bytes, the device that was asked for, and the
/// version of all that computes. It comes back bit by bit as it was stored, or is computed. A result that was torn by a
/// crash or damaged on the disk is not believed, and computed again. A disk that is full or can't be written to costs no
/// result: [`Cached::stats`] tells.
///
/// ```
/// use breakeven::{CacheOptions, DType, Engine, Tensor, View};
/// # let folder = std::env::temp_dir().join(format!("breakeven-doc-cached-{}", std::process::id()));
/// let engine = Engine::new()?;
/// let cached = engine.cached(CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() })?;
///
/// let x = Tensor::input("x", DType::F32, [2])?;
/// let program = cached.program(&engine.compile(&[&x], &[&x.exp()?])?)?;   // called like a `Program`
/// let tasks = [[View::from([0.0f32, 1.0].as_slice())], [View::from([2.0f32, 3.0].as_slice())]];
/// let computed = program.run_many(&tasks)?;
/// let remembered = program.run_many(&tasks)?;
/// assert_eq!(computed.slice::<f32>(1, 0)?, remembered.slice::<f32>(1, 0)?);
/// assert_eq!(cached.stats().hit_rate(), Some(0.5));
/// # drop((cached, program));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone)]
pub struct Cached {
    engine: Engine,
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    ledger: Ledger,
    namespace: String,
    /// With the device of the engine's settings.
    context: Context,
    /// When the figures were last written.
    told: Mutex<Instant>,
}

impl Engine {
    /// This engine with results that are remembered on disk. Fails only if the options make no sense: what is wrong with the
    /// folder or the disk is told by [`Cached::stats`].
    pub fn cached(&self, options: CacheOptions) -> Result<Cached> {
        let config = self.config();
        let CacheOptions { folder, max_bytes, max_entries, memory_bytes, namespace } = options;
        let refuse = |name, value: String, expected| Err(Error::Setting { name, value, expected });
        let Some(folder) = folder.or_else(|| config.cache_dir.clone()) else {
            return refuse("folder", "none".into(), "one here, or one of the engine's own in `Config::cache_dir`");
        };
        if max_bytes < LEAST_BYTES {
            return refuse("max_bytes", max_bytes.to_string(), "at least 4096");
        }
        if max_entries == 0 {
            return refuse("max_entries", "0".into(), "at least 1");
        }
        let context = Context::new(config, None, &namespace);
        let ledger = Ledger::new(&folder);
        let store = Store::open(folder, Limits { max_bytes, max_entries, memory_bytes });
        let told = Mutex::new(Instant::now());
        Ok(Cached { engine: self.clone(), inner: Arc::new(Inner { store, ledger, namespace, context, told }) })
    }
}

impl Cached {
    /// A program of this engine, called as before, whose results are remembered.
    pub fn program(&self, program: &Program) -> Result<CachedProgram> {
        if !self.engine.is_of(program) {
            return Err(Error::OtherEngine);
        }
        Ok(CachedProgram::new(self.clone(), program.clone()))
    }

    /// As [`Engine::run`], unless the same was computed before. Nothing is planned for what is remembered.
    ///
    /// ```
    /// use breakeven::{CacheOptions, Engine, Tensor};
    /// # let folder = std::env::temp_dir().join(format!("breakeven-doc-run-{}", std::process::id()));
    /// let cached = Engine::new()?.cached(CacheOptions { folder: Some(folder.clone()), ..CacheOptions::default() })?;
    /// let total = |values: &[f32]| Tensor::from_slice(values, [values.len()])?.sum(&[], false);
    /// for _ in 0..3 {
    ///     assert_eq!(cached.run(&[&total(&[1.0, 2.0])?])?[0].as_slice::<f32>()?, [3.0]);
    /// }
    /// assert_eq!(cached.stats().figures.hits, 2);
    /// # drop(cached);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run(&self, outputs: &[&Tensor]) -> Result<Vec<Array>> {
        let (structure, leaves) = plan_key(outputs);
        let fingerprint = key::fingerprint(structure.words(), leaves.iter().map(|_| Leaf::Input));
        let mut task = self.inner.context.shared(&fingerprint).task();
        for leaf in &leaves {
            // An input without a value: the engine tells its name.
            let Some(data) = leaf.as_data() else { return self.engine.run(outputs) };
            task.append(data.try_bytes()?);
        }
        let key = task.finish();
        let kinds: Vec<(DType, Shape)> = outputs.iter().map(|output| (output.dtype(), output.shape())).collect();
        if let Some(arrays) = self.find(key, &kinds)? {
            return Ok(arrays);
        }
        let arrays = self.engine.run(outputs)?;
        self.keep(key, arrays.iter().map(Array::as_bytes));
        Ok(arrays)
    }

    /// How the cache has been used since it was opened, and what is in it.
    pub fn stats(&self) -> CacheStats {
        let store = &self.inner.store;
        let (entries, bytes) = store.size();
        CacheStats { entries, bytes, figures: store.counts.figures(), fault: store.counts.last_fault() }
    }

    /// Hands all results to the system, which keeps them even if this process is killed. This happens by itself after every
    /// `run_many`, for every 64 KiB of results, and when the last clone is dropped. No waiting for the disk: a power cut may
    /// take the newest results away, and never makes a wrong one. Figures are written once a second at most, and when the
    /// last clone is dropped.
    pub fn flush(&self) {
        self.inner.store.write().flush();
        self.tell_figures();
    }

    /// Where the results lie.
    pub fn folder(&self) -> &std::path::Path {
        self.inner.store.folder()
    }

    /// The results of a key, counted as hit or miss.
    fn find(&self, key: Key, kinds: &[(DType, Shape)]) -> Result<Option<Vec<Array>>> {
        let bytes = |(dtype, shape): &(DType, Shape)| shape.elems() * dtype.size_bytes();
        let blocks = self.engine.blocks();
        let (mut arrays, mut full) = (Vec::with_capacity(kinds.len()), None);
        let take = |mut value: &[u8]| {
            for kind in kinds {
                let mut block = match blocks.take(bytes(kind)) {
                    Ok(block) => block,
                    Err(error) => return full = Some(error),
                };
                let (own, rest) = value.split_at(bytes(kind));
                block.as_mut_bytes().copy_from_slice(own);
                value = rest;
                arrays.push(Array::new(Buffer::new(Arc::new(block) as Arc<dyn HostBytes>), kind.0, kind.1));
            }
        };
        let store = &self.inner.store;
        let hit = store.read().get(key, kinds.iter().map(bytes).sum(), &mut Vec::new(), take);
        let count = if hit { &store.counts.hits } else { &store.counts.misses };
        count.fetch_add(1, Relaxed);
        full.map_or_else(|| Ok(hit.then_some(arrays)), |error: RunError| Err(error.into()))
    }

    /// Puts results in.
    fn keep<'a>(&self, key: Key, outputs: impl Iterator<Item = &'a [u8]> + Clone) {
        self.inner.store.write().put(key, outputs);
    }

    /// What results depend on beside program and inputs, where this device was asked for.
    fn context(&self, device: Option<Device>) -> Context {
        match device {
            None => self.inner.context.clone(),
            device => Context::new(self.engine.config(), device, &self.inner.namespace),
        }
    }

    /// Writes the figures, but not for every batch: a file that is replaced costs more than many results.
    fn tell_figures(&self) {
        // Somebody else who is at it is enough.
        let Ok(mut told) = self.inner.told.try_lock() else { return };
        if told.elapsed() >= FIGURES_EVERY {
            *told = Instant::now();
            drop(told);
            self.inner.write_figures();
        }
    }
}

impl std::fmt::Debug for Cached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cached({:?}, {})", self.engine, self.folder().display())
    }
}

impl Inner {
    fn write_figures(&self) {
        let counts = &self.store.counts;
        if let Err(error) = self.ledger.write(|| counts.figures()) {
            counts.fault("write figures to", self.store.folder(), &error);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.store.write().flush();
        self.write_figures();
    }
}

#[cfg(test)]
#[path = "cached/cached_tests.rs"]
mod tests;
