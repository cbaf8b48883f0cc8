//! What devices cost, for the engine's users: measured, predicted, loaded and set.

use super::Engine;
use crate::config::Device;
use crate::cost::{Costs, Effort, Measured, Prediction, Progress, Work};
use crate::error::{Error, Result};
use crate::router::DEVICES;
use breakeven_ir::backend::Transfer;
use breakeven_ir::{Plan, Tensor};
use std::ops::ControlFlow;

impl Engine {
    /// What this batch would take on each device whose costs are known, without running it.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor, cost::Effort};
    /// let engine = Engine::with_config(breakeven::Config::default())?;
    /// engine.measure("cpu", Effort::Probe, &mut |_| std::ops::ControlFlow::Continue(()))?;
    /// let x = Tensor::zeros([1000], breakeven::DType::F32)?;
    /// assert!(engine.predict(&[&x.exp()?])?[0].1.total_ns() > 0);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn predict(&self, outputs: &[&Tensor]) -> Result<Vec<(String, Prediction)>> {
        let work = Work::of(&Plan::new(outputs)?);
        let id = |device: usize| if device == 0 { "cpu".to_owned() } else { format!("gpu:{}", device - 1) };
        let known = (0..DEVICES).filter_map(|device| Some((id(device), self.shared.router.costs(device)?)));
        Ok(known.map(|(id, costs)| (id, costs.predict(&work, 0))).collect())
    }

    /// Measures what a device costs (`cpu`, `gpu:0`, ..), uses it from now on, and remembers it in the cache folder. The
    /// watcher is told before each measurement and may end it: what was measured until then counts.
    pub fn measure(
        &self,
        device: &str,
        effort: Effort,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Measured> {
        let number = device_number(device)?;
        let (costs, complete) = self.shared.measure(number, effort, watch)?;
        Ok(Measured { device: device.into(), costs, complete })
    }

    /// Times transfers of this many bytes (rounded up to a multiple of 4) to a device and back, `samples` of each way: see
    /// [`Way`](crate::Way). A way that the device does not have is not among them, and the CPU has none: its kernels
    /// read the host's memory.
    ///
    /// ```
    /// let engine = breakeven::Engine::new()?;
    /// for device in engine.devices() {
    ///     for transfer in engine.transfers(&device.id, 1 << 20, 3)? {
    ///         let (direction, way) = (transfer.direction.name(), transfer.way.name());
    ///         println!("{} {direction}, {way}: {:.1} GB/s", device.id, transfer.gb_per_s());
    ///     }
    /// }
    /// assert!(engine.transfers("cpu", 1 << 20, 3)?.is_empty());
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn transfers(&self, device: &str, bytes: usize, samples: usize) -> Result<Vec<Transfer>> {
        for (name, value) in [("bytes", bytes), ("samples", samples)] {
            if value == 0 {
                return Err(Error::Setting { name, value: "0".into(), expected: "at least 1" });
            }
        }
        let Some(number) = device_number(device)?.checked_sub(1) else { return Ok(Vec::new()) };
        let slot = self.shared.devices.slot(number)?;
        slot.refusal().map_or_else(|| Ok(slot.backend.transfers(bytes, samples)?), |why| Err(why.into()))
    }

    /// Uses what was measured on this machine before, without waiting for batches that would be worth it. Why a file is
    /// not used comes back.
    pub fn load_costs(&self) -> Option<String> {
        for number in 0..self.shared.devices.count() {
            // One that can't be opened is not routed to.
            let _ = self.shared.devices.slot(number);
        }
        self.shared.load();
        self.shared.file().1
    }

    /// Says what a device costs, from now on and for this engine only: for costs that were measured elsewhere.
    ///
    /// ```
    /// use breakeven::{Config, Engine, cost::Costs};
    /// let engine = Engine::with_config(Config::default())?;
    /// engine.set_costs("cpu", Costs { fixed_ns: 100.0, ..Costs::default() })?;
    /// assert_eq!(engine.costs("cpu").map(|costs| costs.fixed_ns), Some(100.0));
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn set_costs(&self, device: &str, costs: Costs) -> Result<()> {
        let number = device_number(device)?;
        if let Some(number) = number.checked_sub(1) {
            self.shared.devices.slot(number)?;
        }
        self.shared.router.set_costs(number, costs);
        Ok(())
    }

    /// What a device costs, if that is known.
    pub fn costs(&self, device: &str) -> Option<Costs> {
        self.shared.router.costs(device_number(device).ok()?).map(|costs| (*costs).clone())
    }
}

/// The number of a device: 0 is the CPU.
pub(super) fn device_number(device: &str) -> Result<usize> {
    match device.parse() {
        Ok(Device::Cpu) => Ok(0),
        Ok(Device::Gpu(Some(number))) => Ok(number + 1),
        _ => Err(Error::Setting { name: "device", value: device.into(), expected: "cpu or gpu:N" }),
    }
}
