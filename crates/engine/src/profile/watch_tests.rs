//! Whatever is told of a batch that was routed, its parts lie within it.

use super::*;
use crate::{Config, DType, Device, Engine, Tensor};
use std::time::Duration;

#[test]
fn an_attempt_that_is_told_outside_of_its_batch_is_cut_to_it() {
    let config = Config { threads: Some(1), device: Device::Cpu, ..Config::default() };
    let engine = Engine::with_config(config).unwrap();
    let x = Tensor::input("x", DType::F32, [8]).unwrap();
    let program = engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap();
    let plan = program.inner.bound.prepared.plan();
    let recorder = engine.profile().unwrap();
    let before = Moment::now();
    std::thread::sleep(Duration::from_millis(1));
    let after = Moment::Time(Instant::now() + Duration::from_secs(60));
    for attempt in [(before, after), (after, before), (before, before), (after, after)] {
        let mut watch = Watch::begin(&program.inner.engine);
        watch.open(plan, program.inner.bound.outputs());
        let mut outcome = Outcome::new(Device::Cpu);
        outcome.attempt = (Some(attempt.0), Some(attempt.1));
        watch.routed(&program.inner.engine, plan, 1, &Ok(((), outcome)));
    }
    let profile = recorder.finish();
    assert_eq!(profile.check(), Ok(()));
    assert_eq!(profile.batches.len(), 4);
    for batch in &profile.batches {
        assert_eq!(batch.phases.values().sum::<u64>(), batch.end_ns - batch.begin_ns, "{batch:?}");
        assert_eq!(batch.decision.reason, "cpu was asked for");
    }
}
