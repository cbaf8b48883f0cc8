//! How much memory a batch may take: a plan enters, a refusal leaves if the machine could not hold it.
//!
//! Systems hand out more memory than they have and kill whoever uses it. A batch that cannot fit is refused before it
//! starts, with its size, rather than ended in the middle without a word.

use breakeven::Plan;
use breakeven::plan::Place;

use crate::failure::Failure;

/// The share of the memory that results and temporaries may take. The rest is for the inputs and everyone else.
const SHARE: (u64, u64) = (3, 4);

/// Refuses a plan that takes more than its share of this machine's memory. Where that is unknown nothing is refused.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    match total_bytes() {
        Some(total) => check_against(plan, total),
        None => Ok(()),
    }
}

/// Do so many bytes fit into their share of this machine's memory?
pub fn fits(bytes: u64) -> bool {
    total_bytes().is_none_or(|total| bytes <= share_of(total))
}

fn share_of(total_bytes: u64) -> u64 {
    total_bytes / SHARE.1 * SHARE.0
}

fn check_against(plan: &Plan, total_bytes: u64) -> Result<(), Failure> {
    let is_output = |place| matches!(place, Place::Output(_));
    let outputs = plan.buffers.iter().filter(|buffer| is_output(buffer.place)).map(|buffer| buffer.bytes() as u64);
    let output_bytes = outputs.fold(0, u64::saturating_add);
    let needed_bytes = output_bytes.saturating_add(plan.scratch_bytes as u64);
    if needed_bytes <= share_of(total_bytes) {
        return Ok(());
    }
    Err(Failure::failed(format_args!(
        "this takes {} of memory ({} for results, {} for temporaries), more than 3/4 of the {} that this machine has; \
         compute a part of it at a time",
        size(needed_bytes),
        size(output_bytes),
        size(plan.scratch_bytes as u64),
        size(total_bytes),
    )))
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10).min(UNITS.len() as u32) as usize;
    format!("{:.1} {}", bytes as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit - 1])
}

/// The memory that this process can have: the machine's, or what its container is limited to.
fn total_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = meminfo_total(&meminfo)?;
    let limit = |path| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let container = limit("/sys/fs/cgroup/memory.max").or_else(|| limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    Some(container.map_or(machine, |limit| limit.min(machine)))
}

fn meminfo_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven::{DType, Tensor};

    #[test]
    fn a_plan_must_fit_into_its_share() {
        let y = Tensor::input("x", DType::F32, [1024, 1024]).unwrap().exp().unwrap();
        let plan = Plan::new(&[&y]).unwrap();
        assert!(check_against(&plan, 6 << 20).is_ok());
        let Err(Failure::Failed(text)) = check_against(&plan, 5 << 20) else { panic!("expected a failure") };
        assert!(text.contains("4.0 MiB for results") && text.contains("the 5.0 MiB"), "{text}");
    }

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(meminfo_total("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16384));
        assert_eq!(meminfo_total("nothing"), None);
        assert_eq!([size(0), size(1023), size(1536), size(u64::MAX)], ["0 B", "1023 B", "1.5 KiB", "16.0 EiB"]);
    }
}
