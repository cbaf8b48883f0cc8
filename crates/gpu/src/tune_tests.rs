use super::*;
use crate::choice::ROUNDS;
use crate::stage::RowsVariant;
use crate::store::tests::Dir;
use crate::{Adapters, Api, Gpu, GpuConfig};
use breakeven_ir::backend::Backend;
use std::time::Instant;

/// Every device here, each opened with a memory of its own.
fn each(name: &str, tune: bool, test: impl Fn(&dyn Fn() -> Gpu)) {
    let adapters = Adapters::find(Api::ALL);
    let count = adapters.infos().len();
    assert!(count > 0, "no adapter: {}", crate::driver_hint());
    for index in 0..count {
        let dir = Dir::new(&format!("{name}-{index}"));
        let config = GpuConfig { cache_dir: Some(dir.0.clone()), tune, ..GpuConfig::default() };
        test(&|| adapters.open(index, &config).expect("opens"));
    }
}

fn measurements(report: &TuneReport) -> usize {
    report.classes.iter().flat_map(|class| &class.variants).map(|variant| variant.measurements).sum()
}

fn measured(choice: Choice, ns: &[u64]) -> Measured {
    Measured { choice, ns: ns.to_vec(), out: None }
}

#[test]
fn a_winner_has_to_be_clearly_quicker() {
    let [a, b, c, ..] = Choice::all(0)[..] else { panic!("there are more") };
    let decide = |list: Vec<Measured>| {
        let mut tuned = Tuned { measured: list, ..Tuned::new(0, &[]) };
        tuned.decide(a);
        tuned
    };
    let close = decide(vec![measured(a, &[100, 102, 500]), measured(b, &[98, 98, 98])]);
    assert_eq!(close.winner, Some(a), "{}", close.why);
    let clear = decide(vec![measured(a, &[100_000]), measured(b, &[94_000]), measured(c, &[93_000])]);
    assert_eq!(clear.winner, Some(c));
    assert_eq!(clear.why, format!("93 us, against 100 us of {}", a.name()));
    let broken = Measured { out: Some("wrong".into()), ..measured(a, &[1]) };
    assert_eq!(decide(vec![broken, measured(b, &[9])]).winner, Some(b));
    assert_eq!(decide(vec![]).winner, None);
}

#[test]
fn the_quickest_of_a_few_runs_counts_and_slow_ones_are_not_repeated() {
    let mut times = [500, 300, 310, 320, 330, 1].into_iter();
    assert_eq!(quickest(|| times.next().ok_or(())), Ok(300));
    assert_eq!(times.collect::<Vec<_>>(), [1]);

    let mut runs = 0;
    let slow = || {
        runs += 1;
        std::thread::sleep(MEASURING * 2);
        Ok::<u64, ()>(7)
    };
    assert_eq!((quickest(slow), runs), (Ok(7), 1));
    assert_eq!(quickest(|| Err::<u64, _>("lost")), Err("lost"));
}

#[test]
fn rounds_go_through_all_variants_in_turn() {
    let choices = Choice::all(1);
    let mut tuned = Tuned::new(1, &choices);
    for round in 0..ROUNDS {
        for choice in &choices {
            assert_eq!(tuned.next(|_| true), Some(*choice), "round {round}");
            let place = tuned.measured.iter_mut().find(|m| m.choice == *choice).expect("there");
            place.ns.push(1);
        }
    }
    assert!(tuned.is_done() && tuned.next(|_| true).is_none() && tuned.is_sound());
    assert!(!Tuned { class: "magic".into(), ..tuned.clone() }.is_sound());
    let foreign = Choice::Rows(RowsVariant { workgroup: 3, threads: 5 });
    assert!(!Tuned { winner: Some(foreign), ..tuned }.is_sound());
}

#[test]
fn what_was_measured_is_kept_when_it_stops_half_way() {
    each("half-way", false, |open| {
        let first = open().tune(Duration::from_millis(60));
        assert_eq!(first.stopped, None);
        let known = measurements(&first);
        assert!(known > 0 && !first.complete, "{first:?}");

        let gpu = open();
        assert_eq!(gpu.counters().self_tests, 0);
        assert_eq!(measurements(&gpu.tune(Duration::ZERO)), known, "{}", gpu.info().name);
        let begun = Instant::now();
        let all = gpu.tune(Duration::from_secs(100));
        assert!(all.complete && all.stopped.is_none(), "{:?} {all:?}", begun.elapsed());
        for class in &all.classes {
            assert!(class.variants.iter().all(|v| v.out.is_some() || v.measurements == ROUNDS), "{class:?}");
            assert!(class.variants.iter().all(|v| v.out.is_none()), "{class:?}");
            assert_eq!(class.winner.as_ref(), Some(&class.in_use));
            assert!(class.why.contains(" us"), "{class:?}");
        }
        let again = open();
        assert_eq!(again.tune(Duration::from_secs(5)), all);
        assert_eq!(again.session.tuner.variants(), gpu.session.tuner.variants());
        assert_eq!(again.counters().submits, 0, "nothing was measured again");
    });
}

#[test]
fn every_variant_is_right() {
    let input = |name, shape: &[usize]| Tensor::input(name, DType::F32, shape).expect("shape");
    let plan = |output: Tensor| Arc::new(Plan::new(&[&output]).expect("plan"));
    let numbers = |count: usize| (0..count).map(|i| ((i * 5) % 13) as f32 - 6.0).collect::<Vec<f32>>();
    let (a, b) = (numbers(40 * 70), numbers(70 * 50));
    each("variants", false, |open| {
        let gpu = open();
        for family in 0..FAMILIES.len() {
            let software_gl = gpu.info().backend == "gl" && gpu.info().kind == Kind::Software;
            for choice in candidates(family, Choice::of(&gpu.session.tuner.variants(), family), software_gl) {
                choice.apply(&mut lock(&gpu.session.tuner.state).variants);
                let (plan, inputs, expected): (_, Vec<&[f32]>, Vec<f32>) = match family {
                    0 => {
                        let sum = (&input("x", &[2800]) + &input("y", &[2800])).expect("adds");
                        (plan(sum), vec![&a, &a], a.iter().map(|v| v + v).collect())
                    }
                    1 => {
                        let sums = input("x", &[40, 70]).sum(&[1], false).expect("sums");
                        (plan(sums), vec![&a], a.chunks(70).map(|row| row.iter().sum()).collect())
                    }
                    _ => {
                        let product = input("x", &[40, 70]).matmul(&input("y", &[70, 50])).expect("multiplies");
                        let dot = |at: usize| (0..70).map(|k| a[at / 50 * 70 + k] * b[k * 50 + at % 50]).sum();
                        (plan(product), vec![&a, &b], (0..40 * 50).map(dot).collect())
                    }
                };
                let inputs: Vec<&[u8]> = inputs.into_iter().map(bytemuck::cast_slice).collect();
                let mut result = vec![0.0f32; expected.len()];
                let prepared = gpu.prepare(&plan).expect("prepares");
                assert!(gpu.wait_ready(&*prepared, Duration::from_secs(60)));
                prepared.run(&inputs, &mut [bytemuck::cast_slice_mut(&mut result)], false).expect("runs");
                assert_eq!(result, expected, "{} {}", gpu.info().name, choice.name());
            }
        }
    });
}

#[test]
fn an_idle_device_tunes_itself_and_answers_meanwhile() {
    each("idle", true, |open| {
        let gpu = open();
        let plan = Arc::new(
            Plan::new(&[&(&Tensor::input("x", DType::F32, [100]).expect("shape") * 3.0).expect("times")])
                .expect("plan"),
        );
        let prepared = gpu.prepare(&plan).expect("prepares");
        let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let begun = Instant::now();
        let is_done = || gpu.tune(Duration::ZERO).classes[0].winner.is_some();
        while !is_done() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", gpu.tune(Duration::ZERO));
            let mut y = vec![0.0f32; 100];
            prepared.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)], false).expect("runs");
            assert_eq!(y[99], 297.0);
            std::thread::sleep(QUIET * 3);
        }
        let report = gpu.tune(Duration::ZERO);
        assert!(report.classes[1..].iter().all(|class| class.winner.is_none()), "only maps were run: {report:?}");
    });
}
