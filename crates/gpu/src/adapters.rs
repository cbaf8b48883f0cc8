//! Which adapters there are and what they can do. Nothing is opened before [`Adapters::open`].

use crate::backend::Gpu;
use crate::config::GpuConfig;
use crate::error::GpuError;
use crate::follower::Followers;
use crate::monitor;
use breakeven_ir::backend::Api;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The interface as wgpu names it.
fn flag(api: Api) -> wgpu::Backends {
    match api {
        Api::Vulkan => wgpu::Backends::VULKAN,
        Api::Gl => wgpu::Backends::GL,
        Api::Dx12 => wgpu::Backends::DX12,
        Api::Metal => wgpu::Backends::METAL,
    }
}

/// What an adapter is.
///
/// ```
/// assert_eq!(breakeven_gpu::Kind::Software.name(), "software");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Kind {
    /// A card with memory of its own.
    Discrete,
    /// A part of the processor that shares its memory.
    Integrated,
    /// A GPU seen through a virtual machine.
    Virtual,
    /// Something else.
    Other,
    /// The processor itself, pretending.
    Software,
}

impl Kind {
    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Discrete => "discrete",
            Kind::Integrated => "integrated",
            Kind::Virtual => "virtual",
            Kind::Other => "other",
            Kind::Software => "software",
        }
    }

    /// Does it share the system's memory?
    pub const fn is_unified(self) -> bool {
        matches!(self, Kind::Integrated | Kind::Software)
    }
}

/// What an adapter allows.
///
/// ```
/// for info in breakeven_gpu::Adapters::find(breakeven_gpu::Api::ALL).infos() {
///     assert!(info.limits.binding_bytes <= info.limits.buffer_bytes);
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdapterLimits {
    /// Bytes of one binding.
    pub binding_bytes: u64,
    /// Bytes of one buffer.
    pub buffer_bytes: u64,
    /// Storage buffers of a shader.
    pub bindings: u32,
    /// Invocations of a workgroup.
    pub workgroup: u32,
    /// Bytes that a workgroup shares.
    pub workgroup_bytes: u32,
    /// Workgroups of one dispatch in each dimension.
    pub groups: u32,
    /// What a binding's offset must be a multiple of.
    pub offset_alignment: u32,
    /// Invocations of a subgroup: least and most; 0 where there are none.
    pub subgroup: (u32, u32),
    /// Do shaders have 64-bit integers?
    pub int64: bool,
}

/// What an adapter is and can do.
///
/// ```
/// for info in breakeven_gpu::Adapters::find(breakeven_gpu::Api::ALL).infos() {
///     println!("{} {}: {} ({}, {})", info.id, info.name, info.kind.name(), info.backend, info.driver);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterInfo {
    /// `gpu:0`, `gpu:1`, ..
    pub id: String,
    /// What the driver calls it.
    pub name: String,
    /// `vulkan`, `gl`, `dx12` or `metal`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// What it is.
    pub kind: Kind,
    /// Its memory, where that is known; the system's memory if it is shared.
    pub memory_bytes: Option<u64>,
    /// What it allows.
    pub limits: AdapterLimits,
    /// What it has beyond the ordinary, in words.
    pub features: Vec<String>,
}

/// The adapters of this machine.
///
/// ```
/// use breakeven_gpu::{Adapters, Api};
/// let adapters = Adapters::find(Api::ALL);
/// if adapters.infos().is_empty() {
///     println!("{}", breakeven_gpu::driver_hint());
/// }
/// ```
pub struct Adapters {
    found: Vec<(wgpu::Adapter, AdapterInfo)>,
}

impl Adapters {
    /// Looks for adapters. Real GPUs come first and software last; the same device seen through several backends is
    /// listed for each. Without any driver there are none.
    pub fn find(backends: &[Api]) -> Adapters {
        let mut found: Vec<(wgpu::Adapter, AdapterInfo)> = enumerate(backends)
            .into_iter()
            .map(|adapter| {
                let info = describe(&adapter);
                (adapter, info)
            })
            .collect();
        // A stable sort keeps the drivers' own order among equals, so that ids stay the same from run to run.
        let rank = |info: &AdapterInfo| Api::ALL.iter().position(|kind| kind.name() == info.backend);
        found.sort_by_key(|(_, info)| (info.kind, rank(info)));
        for (number, (_, info)) in found.iter_mut().enumerate() {
            info.id = format!("gpu:{number}");
        }
        Adapters { found }
    }

    /// What was found, in order.
    pub fn infos(&self) -> Vec<AdapterInfo> {
        self.found.iter().map(|(_, info)| info.clone()).collect()
    }

    /// Opens an adapter by its place in [`Adapters::infos`].
    pub fn open(&self, index: usize, config: &GpuConfig) -> Result<Gpu, GpuError> {
        let missing = || GpuError::NoAdapter { index, found: self.found.len() };
        let (adapter, info) = self.found.get(index).ok_or_else(missing)?;
        Gpu::open(adapter.clone(), info.clone(), config)
    }
}

/// The same adapter through an instance of its own, which shares no lock with one that hangs.
pub(crate) fn find_again(adapter: &wgpu::Adapter) -> Option<wgpu::Adapter> {
    let key =
        |info: wgpu::AdapterInfo| (info.backend, info.name, info.driver, info.driver_info, info.device_pci_bus_id);
    let wanted = key(adapter.get_info());
    let kind = Api::ALL.iter().find(|&&kind| flag(kind) == wgpu::Backends::from(wanted.0))?;
    enumerate(&[*kind]).into_iter().find(|found| key(found.get_info()) == wanted)
}

fn enumerate(backends: &[Api]) -> Vec<wgpu::Adapter> {
    let all = backends.iter().fold(wgpu::Backends::empty(), |flags, &kind| flags | flag(kind));
    // On its own, so that threads that others start are not taken for its own.
    let gl = Followers::mark(|| ask(all & wgpu::Backends::GL));
    ask(all - wgpu::Backends::GL).into_iter().chain(gl).collect()
}

fn ask(flags: wgpu::Backends) -> Vec<wgpu::Adapter> {
    // A broken driver may panic inside wgpu when it is asked; it is then as good as none.
    let search = || {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = flags;
        // Validation layers and debug labels cost time in debug builds, where tests of latency run too.
        descriptor.flags = wgpu::InstanceFlags::empty();
        pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(flags))
    };
    if flags.is_empty() { Vec::new() } else { catch_unwind(AssertUnwindSafe(search)).unwrap_or_default() }
}

fn describe(adapter: &wgpu::Adapter) -> AdapterInfo {
    let (info, limits, has) = (adapter.get_info(), adapter.limits(), adapter.features());
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => Kind::Discrete,
        wgpu::DeviceType::IntegratedGpu => Kind::Integrated,
        wgpu::DeviceType::VirtualGpu => Kind::Virtual,
        wgpu::DeviceType::Cpu => Kind::Software,
        wgpu::DeviceType::Other => Kind::Other,
    };
    let backend = match info.backend {
        wgpu::Backend::Vulkan => "vulkan",
        wgpu::Backend::Gl => "gl",
        wgpu::Backend::Dx12 => "dx12",
        wgpu::Backend::Metal => "metal",
        _ => "other",
    };
    let features = [
        (wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, "mappable primary buffers"),
        (wgpu::Features::TIMESTAMP_QUERY, "timestamps"),
        (wgpu::Features::PIPELINE_CACHE, "pipeline cache"),
        (wgpu::Features::SUBGROUP, "subgroups"),
        (wgpu::Features::SHADER_F16, "f16"),
        (wgpu::Features::SHADER_F64, "f64"),
        (wgpu::Features::SHADER_INT64, "i64"),
    ];
    let subgroup =
        if has.contains(wgpu::Features::SUBGROUP) { (info.subgroup_min_size, info.subgroup_max_size) } else { (0, 0) };
    AdapterInfo {
        id: String::new(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().into(),
        backend: backend.into(),
        kind,
        memory_bytes: monitor::memory_bytes(kind, &info.device_pci_bus_id),
        limits: AdapterLimits {
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            bindings: limits.max_storage_buffers_per_shader_stage,
            workgroup: limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x),
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            groups: limits.max_compute_workgroups_per_dimension,
            offset_alignment: limits.min_storage_buffer_offset_alignment,
            subgroup,
            int64: has.contains(wgpu::Features::SHADER_INT64),
        },
        features: features.iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, name)| (*name).into()).collect(),
        name: info.name,
    }
}

/// How to get a driver on this system.
///
/// ```
/// assert!(!breakeven_gpu::driver_hint().is_empty());
/// ```
pub fn driver_hint() -> &'static str {
    if cfg!(target_os = "windows") {
        "install the GPU vendor's driver (it brings DirectX 12 and Vulkan)"
    } else if cfg!(target_vendor = "apple") {
        "macOS brings its Metal driver: update the system"
    } else if std::path::Path::new("/etc/debian_version").exists() {
        "install a Vulkan driver: apt-get install mesa-vulkan-drivers (AMD, Intel, software), or NVIDIA's own"
    } else if std::path::Path::new("/etc/fedora-release").exists() {
        "install a Vulkan driver: dnf install mesa-vulkan-drivers (AMD, Intel, software), or NVIDIA's own"
    } else if std::path::Path::new("/etc/arch-release").exists() {
        "install a Vulkan driver: pacman -S vulkan-radeon, vulkan-intel, nvidia-utils or vulkan-swrast (software)"
    } else {
        "install a Vulkan driver: Mesa's (AMD, Intel, software) or NVIDIA's own"
    }
}

#[cfg(test)]
#[path = "adapters_tests.rs"]
mod tests;
