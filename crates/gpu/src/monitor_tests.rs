use super::*;

#[test]
fn facts_become_words() {
    let thresholds = Thresholds::default();
    let judged = |facts: Facts| {
        let health = judge(&facts, &thresholds);
        (health.status, health.reason)
    };
    assert_eq!(judged(Facts::default()), (Status::Healthy, "answers in time, busy 0 %".into()));
    let memory = |used| Facts { memory: Some((used, 1 << 30)), ..Facts::default() };
    assert_eq!(judged(memory(700 << 20)).0, Status::Healthy);
    assert_eq!(judged(memory(850 << 20)), (Status::Warning, "83 % of 1024 MiB of memory are in use".into()));
    assert_eq!(judged(memory(1000 << 20)).0, Status::Critical);
    let pending = |pending_ms| Facts { pending: 3, pending_ms, ..Facts::default() };
    assert_eq!(judged(pending(1200)), (Status::Warning, "3 batches of about 1200 ms are pending".into()));
    assert_eq!(judged(pending(5000)).0, Status::Critical);
    // The worst one is told.
    let both = Facts { strikes: 1, ..memory(1000 << 20) };
    assert!(judged(both).1.contains("memory"));
    let hot = Facts { temperature: Some(95.0), ..Facts::default() };
    assert_eq!(judged(hot), (Status::Warning, "it is 95 degrees Celsius hot".into()));
    let rebuilt = Facts { probation: 16, ..Facts::default() };
    assert_eq!(judged(rebuilt).0, Status::Warning);
}

#[test]
fn growth_counts_only_if_every_sample_grows() {
    let monitor = Monitor::default();
    let sample = |memory: u64| {
        // As if time had passed.
        lock(&monitor.samples).iter_mut().for_each(|sample| sample.at -= APART);
        monitor.observe(memory << 20, 0, 4).0 >> 20
    };
    assert_eq!([10, 20, 30].map(sample), [0, 0, 0]);
    assert_eq!(sample(100), 90);
    assert_eq!(sample(100), 0);
    assert_eq!([110, 120, 130].map(sample)[2], 30);
}

#[test]
fn memory_is_read_as_the_kernel_writes_it() {
    let text = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   12000000 kB\n";
    let memory = SystemMemory { total_bytes: 24_000_000 * 1024, available_bytes: 12_000_000 * 1024 };
    assert_eq!(parse_meminfo(text), Some(memory));
    assert_eq!(parse_meminfo("nothing"), None);
    assert_eq!(temperature(""), None);
}
