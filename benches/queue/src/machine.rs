//! Where a run took place: nothing enters, the CPU's name leaves, and a warning where others were busy on it.

use std::sync::LazyLock;

/// Runnable processes over the last minute, before this run adds its own.
static LOAD: LazyLock<Option<f64>> =
    LazyLock::new(|| std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok());

/// The CPU and its threads.
pub fn description() -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {threads} threads", breakeven::cpu_name())
}

/// Looks at the load: to be called before anything is measured.
pub fn note_load() {
    LazyLock::force(&LOAD);
}

/// What the reader must know about the load.
pub fn load_warning() -> Option<String> {
    let load = LOAD.filter(|&load| load > 0.5)?;
    Some(format!("the machine was busy when this run began (load {load:.1}): times are not to be quoted"))
}
