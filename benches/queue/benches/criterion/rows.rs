//! Rows as criterion benches: the names of groups enter, one criterion group a row leaves, with one bench an arm.

use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use queue_benches::case::Case;
use queue_benches::groups::rows;

/// Runs the rows of these groups. An arm that fails is said on stderr and left out.
pub fn bench(criterion: &mut Criterion, groups: &[&str]) {
    for row in rows().into_iter().filter(|row| groups.contains(&row.group)) {
        let cases = match row.cases() {
            Ok(cases) => cases,
            Err(error) => {
                say(&format!("{}: {error}", row.name()));
                continue;
            }
        };
        let mut group = criterion.benchmark_group(row.name());
        // Some four hundred arms: less than a second of each keeps the whole suite within six minutes.
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
        if row.commands > 1 {
            group.throughput(Throughput::Elements(row.commands));
        }
        cases.into_iter().for_each(|case| arm(&mut group, case));
        group.finish();
    }
}

fn arm(group: &mut BenchmarkGroup<'_, WallTime>, mut case: Case) {
    let name =
        if case.variant.is_empty() { case.library.to_owned() } else { format!("{}-{}", case.library, case.variant) };
    // Criterion has no errors: what fails is found out before.
    if let Err(error) = (case.run)(1) {
        say(&format!("{name}: {error}"));
        return;
    }
    group.bench_function(name.clone(), |bencher| {
        bencher.iter_custom(|iterations| {
            (case.run)(iterations).unwrap_or_else(|error| {
                say(&format!("{name}: right at first, then: {error}"));
                Duration::from_secs(1)
            })
        });
    });
}

#[expect(clippy::print_stderr, reason = "beside criterion's own output")]
fn say(line: &str) {
    eprintln!("{line}");
}
