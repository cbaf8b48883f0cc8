//! What this machine is called.

use std::sync::OnceLock;

/// The processor's name, as the system tells it; its architecture where the system tells nothing.
///
/// ```
/// assert!(!breakeven::cpu_name().is_empty());
/// ```
pub fn cpu_name() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| named_by_system().unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))).clone()
}

fn named_by_system() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
