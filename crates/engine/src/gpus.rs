//! The GPUs of this machine: what the GPU backend finds enters, devices of the engine leave.

use crate::config::Config;
use crate::devices::Found;

/// Every adapter, through every interface that the settings allow.
#[cfg(feature = "gpu")]
pub(crate) fn find(config: &Config) -> Vec<Found> {
    use crate::devices::DeviceInfo;
    use breakeven_gpu::{Adapters, GpuConfig};
    use breakeven_ir::backend::Backend;
    use std::sync::Arc;

    let adapters = Arc::new(Adapters::find(&config.apis));
    let settings = GpuConfig {
        sync_timeout: config.sync_timeout,
        cache_dir: config.cache_dir.clone(),
        tune: config.tune,
        ..GpuConfig::default()
    };
    let found = |(number, info): (usize, breakeven_gpu::AdapterInfo)| {
        let limits = &info.limits;
        let known = DeviceInfo {
            kind: info.kind.name(),
            backend: info.backend.clone(),
            driver: info.driver.clone(),
            memory_bytes: info.memory_bytes,
            limits: vec![
                ("binding_bytes", limits.binding_bytes),
                ("buffer_bytes", limits.buffer_bytes),
                ("storage_buffers", u64::from(limits.bindings)),
                ("workgroup_invocations", u64::from(limits.workgroup)),
                ("workgroup_bytes", u64::from(limits.workgroup_bytes)),
                ("workgroups", u64::from(limits.groups)),
            ],
            features: info.features.clone(),
            ..DeviceInfo::named(&info.id, &info.name)
        };
        let (adapters, settings) = (adapters.clone(), settings.clone());
        let open = move || match adapters.open(number, &settings) {
            Ok(gpu) => Ok(Arc::new(gpu) as Arc<dyn Backend>),
            Err(error) => Err(error.to_string()),
        };
        Found { info: known, open: Box::new(open) }
    };
    adapters.infos().into_iter().enumerate().map(found).collect()
}

#[cfg(not(feature = "gpu"))]
pub(crate) fn find(_config: &Config) -> Vec<Found> {
    Vec::new()
}

/// Could a GPU run this plan, by what every GPU can? Without GPU support none could.
pub(crate) fn accept(plan: &breakeven_ir::Plan) -> bool {
    #[cfg(feature = "gpu")]
    return breakeven_gpu::accepts(plan);
    #[cfg(not(feature = "gpu"))]
    {
        let _ = plan;
        false
    }
}

/// How to get a GPU, or a driver for one.
pub fn hint() -> &'static str {
    #[cfg(feature = "gpu")]
    return breakeven_gpu::driver_hint();
    #[cfg(not(feature = "gpu"))]
    return "this build has no GPU support: enable the feature `gpu`";
}
