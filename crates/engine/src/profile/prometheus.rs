//! A profile as metrics: sums enter, Prometheus' text exposition format leaves, in seconds and bytes.

use super::{Fault, Profile};
use std::collections::BTreeMap;

/// A family of metrics on its way into the text.
struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    fn add(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        *self.text += &format!("{}{labels} {value}\n", self.name);
    }
}

impl Profile {
    /// The profile's sums in Prometheus' text format, for the textfile collector or a push gateway; an error if they do not
    /// add up.
    ///
    /// ```
    /// use breakeven::profile::Profile;
    /// let metrics = Profile::example().prometheus()?;
    /// assert!(metrics.contains("breakeven_profile_batches_total{device=\"gpu:0\"} 1\n"));
    /// # Ok::<(), breakeven::profile::Fault>(())
    /// ```
    pub fn prometheus(&self) -> Result<String, Fault> {
        let analysis = self.analysis()?;
        let mut text = String::new();
        let mut family = |name: &'static str, kind: &str, help: &str, fill: &dyn Fn(&mut Family<'_>)| {
            text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
            fill(&mut Family { text: &mut text, name });
        };
        family("breakeven_profile_wall_seconds", "gauge", "From the beginning to the end of the profile.", &|family| {
            family.add(&[], seconds(self.wall_ns));
        });
        family(
            "breakeven_profile_thread_seconds_total",
            "counter",
            "Time of threads, by what they did; all of it adds up to their life.",
            &|family| {
                // Two threads may have one name: their number tells them apart.
                for (number, thread) in analysis.threads.iter().enumerate() {
                    let parts = [
                        ("work", thread.work_ns),
                        ("device_wait", thread.device_wait_ns),
                        ("idle", thread.idle_ns),
                        ("wait", thread.wait_ns),
                    ];
                    for (state, ns) in parts {
                        let labels = [("thread", &*thread.name), ("number", &*number.to_string()), ("state", state)];
                        family.add(&labels, seconds(ns));
                    }
                }
            },
        );
        family(
            "breakeven_profile_stage_seconds_total",
            "counter",
            "Own time of stages with their batches, without stages within them; work and waiting add up to all threads' time.",
            &|family| {
                // Paths may be written alike, and a series must not be there twice.
                let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
                for stage in &analysis.stages {
                    let (work, waiting) = sums.entry(if stage.is_stage { &stage.path } else { "" }).or_default();
                    let waited = stage.device_wait_ns + stage.other_wait_ns;
                    *work += stage.own_ns - waited;
                    *waiting += waited;
                }
                for (path, (work, waiting)) in sums {
                    family.add(&[("stage", path), ("state", "work")], seconds(work));
                    family.add(&[("stage", path), ("state", "waiting")], seconds(waiting));
                }
            },
        );
        family("breakeven_profile_batches_total", "counter", "Batches, by the device that ran them.", &|family| {
            analysis.devices.iter().for_each(|row| family.add(&[("device", &row.device)], row.batches));
        });
        family("breakeven_profile_tasks_total", "counter", "Tasks of batches, by device.", &|family| {
            analysis.devices.iter().for_each(|row| family.add(&[("device", &row.device)], row.tasks));
        });
        family("breakeven_profile_batch_seconds_total", "counter", "Time of batches, by device.", &|family| {
            analysis.devices.iter().for_each(|row| family.add(&[("device", &row.device)], seconds(row.total_ns)));
        });
        family("breakeven_profile_phase_seconds_total", "counter", "Parts of batches, by device.", &|family| {
            for row in &analysis.devices {
                for (phase, ns) in &row.phases_ns {
                    family.add(&[("device", &row.device), ("phase", phase.name())], seconds(*ns));
                }
            }
        });
        family("breakeven_profile_transferred_bytes_total", "counter", "Bytes to devices and back.", &|family| {
            for row in &analysis.devices {
                family.add(&[("device", &row.device), ("direction", "upload")], row.upload_bytes);
                family.add(&[("device", &row.device), ("direction", "readback")], row.readback_bytes);
            }
        });
        family(
            "breakeven_profile_fallbacks_total",
            "counter",
            "Devices that were tried in vain, by the device that ran the batch in the end.",
            &|family| {
                analysis.devices.iter().for_each(|row| family.add(&[("device", &row.device)], row.fallbacks));
            },
        );
        family(
            "breakeven_profile_gpu_eligible_seconds_total",
            "counter",
            "Time of batches that a GPU could run.",
            &|family| {
                family.add(&[], seconds(analysis.amdahl.eligible_ns));
            },
        );
        family(
            "breakeven_profile_gpu_speedup_bound",
            "gauge",
            "How many times as fast an infinitely fast GPU would make the run, at most.",
            &|family| {
                family.add(&[], analysis.amdahl.bound.map_or("+Inf".to_owned(), |bound| bound.to_string()));
            },
        );
        family("breakeven_profile_not_kept_total", "counter", "What is in the sums alone.", &|family| {
            family.add(&[("what", "spans")], self.spans_not_kept);
            family.add(&[("what", "batches")], self.batches_not_kept);
        });
        Ok(text)
    }
}

/// Nanoseconds as seconds, exactly.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[path = "prometheus_tests.rs"]
mod tests;
