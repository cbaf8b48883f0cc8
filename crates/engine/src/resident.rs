//! Values that lie on a device: data that was pinned there, and results that stay.
//!
//! What they were made from is kept, so that they survive the device: pinned data has its host bytes, a result that
//! stays has its recipe, from which the CPU computes it again.

use crate::engine::Engine;
use breakeven_ir::backend::{Resident, RunError};
use breakeven_ir::{Buffer, HostBytes, Tensor};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Data with a copy on a device.
pub(crate) struct Pinned {
    pub(crate) host: Buffer,
    pub(crate) resident: Arc<dyn Resident>,
}

impl HostBytes for Pinned {
    fn as_bytes(&self) -> &[u8] {
        self.host.as_bytes()
    }

    fn try_bytes(&self) -> Result<&[u8], RunError> {
        self.host.try_bytes()
    }

    fn depth(&self) -> u32 {
        self.host.depth()
    }

    fn resident(&self) -> Option<&Arc<dyn Resident>> {
        // One that an earlier life of the device held is as good as none: the host bytes go up again.
        Some(&self.resident).filter(|resident| resident.is_current())
    }
}

/// A result that lies on a device until the host asks for it.
pub(crate) struct Kept {
    resident: Arc<dyn Resident>,
    host: OnceLock<Buffer>,
    /// How it is computed again; gone once the host has it.
    recipe: Mutex<Option<(Engine, Tensor)>>,
    depth: u32,
}

/// Results made one from the other keep all that they were made from. After so many the host gets a copy, and the
/// history is dropped.
const MAX_DEPTH: u32 = 16;

impl Kept {
    /// A result that is computed by `recipe`.
    pub(crate) fn new(engine: &Engine, recipe: &Tensor, resident: Arc<dyn Resident>) -> Result<Kept, RunError> {
        let (_, leaves) = breakeven_ir::plan_key(&[recipe]);
        let depth = 1 + leaves.iter().filter_map(|leaf| leaf.as_data()).map(Buffer::depth).max().unwrap_or(0);
        let recipe = Mutex::new(Some((engine.clone(), recipe.clone())));
        let kept = Kept { resident, host: OnceLock::new(), recipe, depth };
        if depth >= MAX_DEPTH {
            kept.try_bytes()?;
        }
        Ok(kept)
    }

    fn fetch(&self) -> Result<Buffer, RunError> {
        let fault = match self.resident.fetch() {
            Ok(buffer) => return Ok(buffer),
            Err(fault) => fault,
        };
        let recipe = self.recipe.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((engine, tensor)) = recipe else { return Err(fault) };
        engine.compute_again(&tensor)
    }
}

impl HostBytes for Kept {
    fn as_bytes(&self) -> &[u8] {
        // Whoever can be told of a failure asks with `try_bytes` first, and every run does.
        self.try_bytes().unwrap_or(&[])
    }

    fn try_bytes(&self) -> Result<&[u8], RunError> {
        if let Some(host) = self.host.get() {
            return Ok(host.as_bytes());
        }
        let fetched = self.fetch()?;
        let host = self.host.get_or_init(|| fetched);
        *self.recipe.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(host.as_bytes())
    }

    fn depth(&self) -> u32 {
        if self.host.get().is_some() { 0 } else { self.depth }
    }

    fn resident(&self) -> Option<&Arc<dyn Resident>> {
        Some(&self.resident).filter(|resident| resident.is_current())
    }
}
