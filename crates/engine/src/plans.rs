//! Plans that were made before, by the structure of their graph: running the same expression again plans nothing.

use crate::error::Result;
use breakeven_ir::backend::{Backend, Prepared};
use breakeven_ir::{Plan, PlanKey, Tensor};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A bounded map from structure to prepared plan.
pub(crate) struct Plans {
    entries: Mutex<Entries>,
    capacity: usize,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<PlanKey, (Arc<dyn Prepared>, u64)>,
    /// Halves of plans, each kept by what is prepared from it.
    halves: HashMap<usize, Arc<dyn Prepared>>,
    clock: u64,
    hits: u64,
    misses: u64,
}

/// How the plan cache has been used.
///
/// ```
/// use breakeven::{Engine, Tensor};
/// let engine = Engine::new()?;
/// let f = |v: f32| (&Tensor::from_vec(vec![v], [1])? + 1.0);
/// engine.run(&[&f(1.0)?])?;
/// engine.run(&[&f(2.0)?])?;
/// assert_eq!((engine.plan_stats().hits, engine.plan_stats().misses), (1, 1));
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlanStats {
    /// Plans that are remembered.
    pub entries: usize,
    /// Batches whose plan was there.
    pub hits: u64,
    /// Batches that had to be planned.
    pub misses: u64,
}

impl Plans {
    pub(crate) fn new(capacity: usize) -> Plans {
        Plans { entries: Mutex::default(), capacity: capacity.max(1) }
    }

    /// The prepared plan for `key`, made by planning `outputs` if it is not there.
    pub(crate) fn get(&self, key: PlanKey, outputs: &[&Tensor], backend: &dyn Backend) -> Result<Arc<dyn Prepared>> {
        {
            let mut guard = self.lock();
            let entries = &mut *guard;
            entries.clock += 1;
            if let Some((prepared, used)) = entries.by_key.get_mut(&key) {
                *used = entries.clock;
                entries.hits += 1;
                return Ok(prepared.clone());
            }
            entries.misses += 1;
        }
        // Planned without the lock: others go on meanwhile, and if two plan the same, either plan is as good.
        let plan = Arc::new(Plan::new(outputs)?);
        let prepared = backend.prepare(&plan)?;
        let mut entries = self.lock();
        if entries.by_key.len() >= self.capacity {
            let oldest = entries.by_key.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.map(|key| entries.by_key.remove(&key));
        }
        let clock = entries.clock;
        entries.by_key.insert(key, (prepared.clone(), clock));
        Ok(prepared)
    }

    /// Half of a plan, made ready; it is known by its address for as long as it is here.
    pub(crate) fn half(&self, plan: &Arc<Plan>, backend: &dyn Backend) -> Result<Arc<dyn Prepared>> {
        let address = Arc::as_ptr(plan) as usize;
        if let Some(prepared) = self.lock().halves.get(&address) {
            return Ok(prepared.clone());
        }
        let prepared = backend.prepare(plan)?;
        let mut entries = self.lock();
        if entries.halves.len() >= self.capacity {
            entries.halves.clear();
        }
        entries.halves.insert(address, prepared.clone());
        Ok(prepared)
    }

    pub(crate) fn stats(&self) -> PlanStats {
        let entries = self.lock();
        PlanStats { entries: entries.by_key.len(), hits: entries.hits, misses: entries.misses }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        // A panic elsewhere leaves the map whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
