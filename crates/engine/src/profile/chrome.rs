//! A profile as a timeline: spans enter, the JSON of the trace event format leaves, which Perfetto and `chrome://tracing` open.
//!
//! Times are microseconds with three decimals, so that no nanosecond is lost. Spans are complete events (`X`), in the order
//! in which they began, callers before what they call; batches have their decision as arguments. Time in the queue is on
//! another track (`b` and `e`, async), because the thread that ran the batch did something else meanwhile.

use super::check::nested;
use super::{BatchRecord, Fault, Phase, Profile};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A profile is of one process.
const PID: u32 = 1;

#[derive(Serialize)]
struct Trace<'a> {
    #[serde(rename = "displayTimeUnit")]
    display_time_unit: &'static str,
    #[serde(rename = "otherData")]
    other_data: Map<String, Value>,
    #[serde(rename = "traceEvents")]
    trace_events: Vec<Event<'a>>,
}

/// An event; what a kind of event does not have is left out.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: u32,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

impl Profile {
    /// The profile as a trace for Perfetto or `chrome://tracing`; an error if it does not add up.
    ///
    /// ```
    /// use breakeven::profile::Profile;
    /// let trace = Profile::example().chrome()?;
    /// assert!(trace.contains(r#""name":"inline_variables","ph":"X","pid":1,"tid":1,"cat":"stage","ts":10500.0"#));
    /// # Ok::<(), breakeven::profile::Fault>(())
    /// ```
    pub fn chrome(&self) -> Result<String, Fault> {
        self.check()?;
        let mut events = vec![metadata("process_name", 0, json!({ "name": format!("breakeven: {}", self.title) }))];
        for (at, thread) in self.threads.iter().enumerate() {
            events.push(metadata("thread_name", at + 1, json!({ "name": thread.name })));
            events.push(metadata("thread_sort_index", at + 1, json!({ "sort_index": at })));
        }
        for (at, thread) in self.threads.iter().enumerate() {
            for span in nested(&thread.spans).into_iter().map(|span| &thread.spans[span]) {
                let frame = &thread.frames[span.frame as usize];
                let batch = span.batch.map(|batch| self.arguments(&self.batches[batch as usize]));
                events.push(Event {
                    name: &frame.name,
                    ph: "X",
                    pid: PID,
                    tid: at + 1,
                    cat: Some(frame.kind.name()),
                    ts: Some(micros(span.begin_ns)),
                    dur: Some(micros(span.end_ns - span.begin_ns)),
                    id: None,
                    args: batch,
                });
            }
        }
        for (at, batch) in self.batches.iter().enumerate() {
            let Some((begin_ns, end_ns)) = queued(batch) else { continue };
            for (ph, ns) in [("b", begin_ns), ("e", end_ns)] {
                events.push(Event {
                    name: Phase::Queue.name(),
                    ph,
                    pid: PID,
                    tid: batch.thread as usize + 1,
                    cat: Some("queue"),
                    ts: Some(micros(ns)),
                    dur: None,
                    id: Some(at.to_string()),
                    args: None,
                });
            }
        }
        let mut other_data = Map::new();
        other_data.insert("cpu".into(), self.machine.cpu.clone().into());
        other_data.insert("spans_not_kept".into(), self.spans_not_kept.into());
        other_data.insert("title".into(), self.title.clone().into());
        let trace = Trace { display_time_unit: "ns", other_data, trace_events: events };
        // Numbers, strings and maps whose keys are names: nothing that JSON could not say.
        Ok(serde_json::to_string(&trace).map_or(String::new(), |text| text + "\n"))
    }

    /// What is to be seen of a batch when it is clicked on.
    fn arguments(&self, batch: &BatchRecord) -> Value {
        let (plan, decision) = (&self.plans[batch.plan as usize], &batch.decision);
        let phases: Map<String, Value> =
            batch.phases.iter().map(|(phase, ns)| (phase.name().into(), micros(*ns).into())).collect();
        let predicted: Map<String, Value> = decision
            .predicted
            .iter()
            .map(|expected| (expected.device.clone(), micros(expected.expected_ns).into()))
            .collect();
        json!({
            "plan": plan.title,
            "kernels": plan.kernels,
            "gpu_eligible": plan.gpu_eligible,
            "tasks": batch.tasks,
            "device": decision.device,
            "reason": decision.reason,
            "predicted_us": predicted,
            "actual_us": micros(decision.actual_ns),
            "regret_us": decision.regret_ns.map(micros),
            "submits": decision.submits,
            "upload_bytes": decision.upload_bytes,
            "readback_bytes": decision.readback_bytes,
            "fallbacks": decision.fallbacks,
            "faults": decision.faults,
            "phases_us": phases,
        })
    }
}

fn metadata(name: &'static str, tid: usize, args: Value) -> Event<'static> {
    Event { name, ph: "M", pid: PID, tid, cat: None, ts: None, dur: None, id: None, args: Some(args) }
}

/// When a batch was in the queue. A thread that waited for its own job has that time within the batch; otherwise it ended
/// when a worker took the batch.
fn queued(batch: &BatchRecord) -> Option<(u64, u64)> {
    let queue_ns = *batch.phases.get(&Phase::Queue)?;
    let all: u128 = batch.phases.values().map(|ns| u128::from(*ns)).sum();
    if all <= u128::from(batch.end_ns - batch.begin_ns) {
        Some((batch.begin_ns, batch.begin_ns + queue_ns))
    } else {
        Some((batch.begin_ns.saturating_sub(queue_ns), batch.begin_ns))
    }
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
#[path = "chrome_tests.rs"]
mod tests;
