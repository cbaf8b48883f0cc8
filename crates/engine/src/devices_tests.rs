//! When a device is asked how it fares.

use super::*;
use breakeven_ir::backend::Resident;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A device that counts who asks for its health.
#[derive(Default)]
struct Patient {
    asked: AtomicU32,
    is_lost: AtomicBool,
}

impl Backend for Patient {
    fn id(&self) -> &str {
        "gpu:0"
    }

    fn name(&self) -> &str {
        "a patient"
    }

    fn prepare(&self, _: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Err(RunError::OutOfMemory { bytes: 0 })
    }

    fn upload(&self, _: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        Err(RunError::OutOfMemory { bytes: 0 })
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Relaxed)
    }

    fn health(&self) -> Health {
        self.asked.fetch_add(1, Relaxed);
        let status = if self.is_lost() { Status::Lost } else { Status::Healthy };
        Health { status, reason: "as it says itself".into() }
    }
}

#[test]
fn a_device_is_only_asked_how_it_fares_if_something_is_wrong() {
    let patient = Arc::new(Patient::default());
    let slot = Slot::new(patient.clone(), 1);
    assert!((0..3).all(|_| slot.refusal().is_none()));
    assert_eq!(patient.asked.load(Relaxed), 0, "that takes longer than all else about a small batch");

    patient.is_lost.store(true, Relaxed);
    let refusal = slot.refusal();
    assert!(matches!(&refusal, Some(RunError::Lost { why, .. }) if why == "as it says itself"), "{refusal:?}");
    patient.is_lost.store(false, Relaxed);
    assert!(slot.refusal().is_none(), "it is back");

    slot.quarantine("2 of 3 were wrong".into());
    let refusal = slot.refusal().map(|error| error.to_string());
    assert!(refusal.as_ref().is_some_and(|why| why.contains("2 of 3 were wrong")), "{refusal:?}");
}
