//! The one adapter that every arm runs on: the system's drivers enter, lavapipe's handle and description leave.
//!
//! The arms choose their adapters in their own ways (burn by kind, trueno by number), so a run on different ones would
//! go unnoticed. It is refused unless there is exactly one Vulkan adapter and that one is lavapipe.

use crate::arm::Fallible;

/// The shared adapter.
pub struct Adapter {
    /// wgpu's handle.
    pub handle: wgpu::Adapter,
    /// Its name, driver and kind, for people.
    pub description: String,
}

const HOW: &str = "lavapipe is in Debian's mesa-vulkan-drivers; where several Vulkan drivers are installed, name its \
                   file alone: VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

/// Finds lavapipe.
pub fn find() -> Fallible<Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    let infos: Vec<wgpu::AdapterInfo> = adapters.iter().map(wgpu::Adapter::get_info).collect();
    let [info] = &infos[..] else {
        let names: Vec<&str> = infos.iter().map(|info| info.name.as_str()).collect();
        return Err(
            format!("one Vulkan adapter is needed, there are {} ({}); {HOW}", infos.len(), names.join(", ")).into()
        );
    };
    if info.device_type != wgpu::DeviceType::Cpu || !info.name.contains("llvmpipe") {
        return Err(format!("{} ({}) is not lavapipe; {HOW}", info.name, info.driver).into());
    }
    let description = format!(
        "software adapter (no GPU): {}, {} {}, Vulkan. Every arm runs on it, from host memory to host memory.",
        info.name, info.driver, info.driver_info
    );
    Ok(Adapter { handle: adapters.remove(0), description })
}
