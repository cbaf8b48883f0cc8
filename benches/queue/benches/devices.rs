//! Kernels and several devices: the rows of these groups enter criterion, its times leave.

#[path = "criterion/rows.rs"]
mod rows;

use criterion::{Criterion, criterion_group, criterion_main};

fn groups(criterion: &mut Criterion) {
    rows::bench(criterion, &["kernel", "two devices"]);
}

criterion_group!(benches, groups);
criterion_main!(benches);
