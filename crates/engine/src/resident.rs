//! Values that lie on a device: data that was pinned there, and results that stay. Host bytes or a recipe enter, memory
//! that also lies on a device leaves.
//!
//! What they were made from is kept, so that they survive the device: pinned data has its host bytes, a result that
//! stays has its recipe, from which the CPU computes it again.

use crate::config::Device;
use crate::devices::Slot;
use crate::engine::{Engine, Shared};
use crate::error::{self, Error};
use breakeven_ir::backend::{Resident, RunError};
use breakeven_ir::{Buffer, HostBytes, Tensor};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Data with a copy on a device.
struct Pinned {
    host: Buffer,
    resident: Arc<dyn Resident>,
}

/// The bytes of a tensor with a copy on the engine's device, or on the one where batches with it pay; `None` if they
/// stay on the host alone.
pub(crate) fn pin(engine: &Shared, host: &Buffer, tensor: &Tensor) -> error::Result<Option<Buffer>> {
    let wish = engine.config.device;
    // A device that nobody named is missed by nobody.
    let strict = engine.config.strict && !matches!(wish, Device::Auto | Device::All);
    let mut fault = None;
    for slot in homes(engine, wish, strict, tensor)? {
        match slot.backend.upload(host.try_bytes()?) {
            Ok(resident) => {
                let pinned = Pinned { host: host.clone(), resident };
                return Ok(Some(Buffer::with_len(Arc::new(pinned) as Arc<dyn HostBytes>, host.len_bytes())));
            }
            Err(error) => fault = Some(error),
        }
    }
    match fault {
        Some(error) if strict => Err(Error::Strict { wish: wish.to_string(), why: Box::new(error.into()) }),
        _ => Ok(None),
    }
}

/// The devices to try, in order.
fn homes(engine: &Shared, wish: Device, strict: bool, tensor: &Tensor) -> error::Result<Vec<Arc<Slot>>> {
    if matches!(wish, Device::Auto | Device::All) {
        let homes = engine.router.homes(tensor.dtype(), tensor.shape()).into_iter();
        let open = homes.filter_map(|device| engine.devices.opened(device - 1));
        return Ok(open.filter(|slot| slot.is_usable()).cloned().collect());
    }
    match engine.devices.candidates(wish) {
        Err(error) if strict => Err(error),
        candidates => Ok(candidates.unwrap_or_default().into_iter().map(|(_, slot)| slot).collect()),
    }
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
        let recipe = Mutex::new(Some((engine.without_queue(), recipe.clone())));
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
