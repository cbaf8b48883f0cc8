//! Late is not failed: loops without end, the deadline of a sample and that of the run.

use breakeven::{Config, Device, Engine};
use grid_scoring::{LOOPER, Limits, Outcome, Pair, Program, Watch, builtin, generate, score_all};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn engine() -> Engine {
    Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap()
}

fn program(text: &str) -> Program {
    text.parse().unwrap()
}

#[test]
fn a_loop_without_end_is_late_and_the_others_are_as_without_it() {
    // Small grids alone: they are one bucket, and only one loop has to be waited for.
    let tasks = generate(60, 2);
    let small = |pair: &&Pair| pair.input.size().side() <= 10;
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).filter(small).collect();
    // What ends at all ends in this time, on a busy machine, too.
    let limits = Limits { sample: Duration::from_secs(3), ..Limits::default() };
    let plain = score_all(&engine(), &builtin(), &samples, limits, &()).unwrap();
    let mut programs = builtin();
    programs.insert(20, program(&format!("{LOOPER} | crop_bbox")));
    let run = score_all(&engine(), &programs, &samples, limits, &()).unwrap();
    let count = samples.len();
    assert!(run.outcomes[20 * count..21 * count].iter().all(|outcome| *outcome == Outcome::Late));
    let others: Vec<Outcome> = [&run.outcomes[..20 * count], &run.outcomes[21 * count..]].concat();
    assert!(others == plain.outcomes && !others.contains(&Outcome::Late));
}

#[test]
fn samples_that_come_to_an_end_are_scored_beside_those_that_do_not() {
    // Without a 1 nothing ever changes; with one it is 2 in the next turn, and 1 again in the one after that.
    let swap = program("until_stable { recolour 1->2 2->1 }");
    let tasks = generate(20, 4);
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    let limits = Limits { sample: Duration::from_millis(20), ..Limits::default() };
    let run = score_all(&engine(), &[swap], &samples, limits, &()).unwrap();
    for (sample, outcome) in samples.iter().zip(&run.outcomes) {
        let endless = sample.input.cells().iter().any(|cell| [1, 2].contains(cell));
        assert_eq!(*outcome == Outcome::Late, endless, "{:?}", sample.input.rows());
    }
    assert!(run.outcomes.contains(&Outcome::Late) && run.outcomes.iter().any(|o| matches!(o, Outcome::Scored(_))));
}

#[test]
fn many_turns_that_do_end_are_not_late() {
    let pair = &generate(1, 1)[0].train[0];
    let programs =
        [program("repeat 1000 { recolour 0->1 1->2 2->0 }"), program("repeat 999 { recolour 0->1 1->2 2->0 }")];
    let limits = Limits { sample: Duration::from_secs(60), ..Limits::default() };
    let run = score_all(&engine(), &programs, &[pair], limits, &()).unwrap();
    for (program, outcome) in programs.iter().zip(&run.outcomes) {
        let expected = grid_scoring::scalar::score(program, pair, Instant::now() + Duration::from_secs(60));
        assert_eq!(*outcome, expected, "{program}");
    }
}

#[test]
fn the_deadline_of_the_run_makes_the_rest_late() {
    let tasks = generate(5, 2);
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    let limits = Limits { run: Duration::ZERO, ..Limits::default() };
    let run = score_all(&engine(), &builtin(), &samples, limits, &()).unwrap();
    assert!(run.outcomes.iter().all(|outcome| *outcome == Outcome::Late));

    // A loop that has all the time in the world is stopped by it, too.
    let limits = Limits { sample: Duration::from_secs(3600), run: Duration::from_millis(100) };
    let begun = Instant::now();
    let run = score_all(&engine(), &[program(LOOPER)], &samples, limits, &()).unwrap();
    assert!(run.outcomes.iter().all(|outcome| *outcome == Outcome::Late));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn an_interrupted_run_keeps_what_is_done() {
    /// Ends after some scorings.
    struct After(AtomicUsize);
    impl Watch for After {
        fn done(&self, scorings: usize) {
            self.0.store(scorings, Relaxed);
        }
        fn is_interrupted(&self) -> bool {
            self.0.load(Relaxed) > 0
        }
    }
    let tasks = generate(5, 2);
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    let limits = Limits { sample: Duration::from_secs(60), ..Limits::default() };
    let run = score_all(&engine(), &builtin(), &samples, limits, &After(AtomicUsize::new(0))).unwrap();
    let skipped = run.outcomes.iter().filter(|outcome| **outcome == Outcome::Skipped).count();
    assert!(skipped > 0 && skipped < run.outcomes.len());
    assert!(!run.outcomes.contains(&Outcome::Late));
}

/// One program of a hundred never ends. What the others take with it, of what they take without it: arms take turns, and the best
/// of each counts, because everything else on the machine only ever adds.
#[test]
fn loops_without_end_cost_the_others_little() {
    let tasks = generate(200, 3);
    let samples: Vec<&Pair> = tasks.iter().flat_map(|task| task.samples(3)).collect();
    // Another fifty, each of which does something else with its last grid.
    let turned = builtin().iter().map(|other| program(&format!("{other} | rot90"))).collect::<Vec<_>>();
    let without: Vec<Program> = builtin().into_iter().chain(turned).take(99).collect();
    let mut with = without.clone();
    with.insert(25, program(LOOPER));
    let limits = Limits { sample: Duration::from_millis(50), ..Limits::default() };
    let mut ratio = f64::INFINITY;
    // A busy machine gets more chances, not more time.
    for _ in 0..4 {
        let mut best = [Duration::MAX; 2];
        for _ in 0..5 {
            for (best, programs) in best.iter_mut().zip([&without, &with]) {
                let run = score_all(&engine(), programs, &samples, limits, &()).unwrap();
                *best = run.rest.min(*best);
            }
        }
        ratio = ratio.min(best[1].as_secs_f64() / best[0].as_secs_f64());
        if ratio <= 1.1 {
            return;
        }
    }
    panic!("with a loop without end the others take {ratio:.2} times as long");
}
