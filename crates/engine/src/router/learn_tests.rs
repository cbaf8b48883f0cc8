//! What is learned from what batches took: waits, transfers, noise, spikes, and how far off the model is.

use super::*;

#[test]
fn what_batches_took_replaces_what_was_predicted() {
    let router = router(0.0, &[4 * MS, MS]);
    let mut run = Run::new(&router);
    for (number, took) in [700 * US, 900 * US, 800 * US].into_iter().enumerate() {
        let choice = run.batch(&[4 * MS, took]);
        assert_eq!((choice.device, choice.measured), (1, 0), "batch {number}");
        assert!(choice.expected_ns[1] >= MS);
    }
    let choice = run.batch(&[4 * MS, 800 * US]);
    assert_eq!((choice.measured, choice.expected_ns[1]), (0b10, 800 * US));
    assert!(choice.expected_ns[0] >= 4 * MS, "the CPU is still predicted");
    assert!(choice.predicted[1].total_ns() >= MS, "and what was predicted is told");
}

#[test]
fn a_first_batch_says_nothing() {
    let router = router(0.0, &[4 * MS, MS]);
    let routed = router.routed(&plan(), 1);
    for _ in 0..10 {
        let choice = choose(&router, &routed);
        assert_eq!((choice.device, choice.measured), (1, 0), "compiling is not what it takes");
        router.learn(&routed, &choice, 1, 500 * MS, true);
    }
}

#[test]
fn waiting_counts() {
    let router = router(0.0, &[3 * MS, MS]);
    let routed = router.routed(&plan(), 1);
    let busy = |ns: u64| router.choose(&routed, ALL, Objective::Latency, |_| 0, move |device| ns * device as u64);
    assert_eq!((busy(MS).device, busy(5 * MS).device), (1, 0));
    assert_eq!(busy(MS).predicted[1].wait_ns, MS as f64);
}

/// What a batch took includes its wait; the next one has a wait of its own.
#[test]
fn a_wait_counts_once() {
    let router = router(0.0, &[5 * MS, MS]);
    let routed = router.routed(&plan(), 1);
    for _ in 0..20 {
        let choice = router.choose(&routed, ALL, Objective::Latency, |_| 0, |device| device as u64 * MS);
        assert_eq!(choice.device, 1);
        router.learn(&routed, &choice, 1, 2 * MS, false);
    }
    let busy = router.choose(&routed, ALL, Objective::Latency, |_| 0, |device| device as u64 * MS);
    assert!(busy.expected_ns[1].abs_diff(2 * MS) < 10 * US, "{}", busy.expected_ns[1]);
    assert!(choose(&router, &routed).expected_ns[1].abs_diff(MS) < 10 * US);
}

/// A device behind a bus that takes 4 ms for the input of a plan, and 1 ms beside.
fn behind_a_bus(explore: f64) -> (Router, Arc<Routed>, u64) {
    let x = Tensor::input("x", DType::F32, [1_000_000]).unwrap();
    let plan = Arc::new(Plan::new(&[&x.sum(&[], false).unwrap()]).unwrap());
    let router = Router::new(100, explore);
    let quick = crate::cost::Curve::new(vec![(1.0, 1e-6)]);
    let cpu = Costs { fixed_ns: 3e6, memory: quick.clone(), total: quick.clone(), ..Costs::default() };
    let upload = crate::cost::Curve::new(vec![(1.0, 1.0)]);
    let gpu = Costs { fixed_ns: 1e6, upload, memory: quick.clone(), total: quick, ..Costs::default() };
    router.set_costs(0, cpu);
    router.set_costs(1, gpu);
    let routed = router.routed(&plan, 1);
    let bytes = routed.work.upload_bytes;
    (router, routed, bytes)
}

#[test]
fn what_lies_on_a_device_draws_the_batch_there() {
    let (router, routed, bytes) = behind_a_bus(0.0);
    let with = |resident: u64| router.choose(&routed, ALL, Objective::Latency, |d| resident * d as u64, |_| 0);
    assert_eq!((with(0).device, with(bytes).device), (0, 1));
    assert_eq!(with(bytes).predicted[1].upload_ns, 0.0);
    assert!((with(bytes / 4).predicted[1].upload_ns - 3e6).abs() < 1.0);
    // More than the plan reads: another part of the same value.
    assert_eq!(with(9 * bytes).predicted[1].upload_ns, 0.0);
}

/// Batches of one plan, whose input lies on the device now and then.
#[test]
fn what_was_sent_and_what_was_not_are_told_apart() {
    let (router, routed, bytes) = behind_a_bus(0.0);
    let with = |resident: u64| router.choose(&routed, ALL, Objective::Latency, |d| resident * d as u64, |_| 0);
    for _ in 0..20 {
        let choice = with(bytes);
        assert_eq!(choice.device, 1);
        router.learn(&routed, &choice, 1, MS, false);
    }
    let (there, here) = (with(bytes), with(0));
    assert_eq!(there.measured >> 1 & 1, 1);
    assert!(there.expected_ns[1].abs_diff(MS) < 10 * US, "{there:?}");
    assert!(here.expected_ns[1].abs_diff(5 * MS) < 100 * US, "{here:?}");
    assert_eq!(here.device, 0, "sending it would take longer than the CPU");

    // And the other way round.
    let (router, routed, bytes) = behind_a_bus(0.0);
    let with = |resident: u64| router.choose(&routed, ALL, Objective::Latency, |d| resident * d as u64, |_| 0);
    for _ in 0..20 {
        router.learn(&routed, &with(0), 1, 5 * MS, false);
    }
    assert_eq!((with(0).device, with(bytes).device), (0, 1), "{:?}", with(bytes));
}

/// Transfers of one batch overlap the kernels of another: also after it was measured what one takes alone.
#[test]
fn throughput_looks_at_what_a_device_is_kept_busy_for() {
    let x = Tensor::input("x", DType::F32, [1_000_000]).unwrap();
    let plan = Arc::new(Plan::new(&[&x.sum(&[], false).unwrap()]).unwrap());
    let each = |ns: f64| crate::cost::Curve::new(vec![(1.0, ns)]);
    let router = Router::new(100, 0.0);
    router.set_costs(0, Costs { total: each(5.0), memory: each(1e-6), ..Costs::default() });
    router.set_costs(1, Costs { upload: each(1.0), total: each(4.0), memory: each(1e-6), ..Costs::default() });
    let routed = router.routed(&plan, 1);
    let with = |objective| router.choose(&routed, ALL, objective, |_| 0, |_| 0);
    assert_eq!((with(Objective::Latency).device, with(Objective::Throughput).device), (0, 1));
    for _ in 0..20 {
        let choice = with(Objective::Throughput);
        router.learn(&routed, &choice, choice.device, [5 * MS, 8 * MS][choice.device], false);
    }
    let choice = with(Objective::Throughput);
    assert_eq!(choice.device, 1, "{choice:?}");
    assert!(choice.expected_ns[1].abs_diff(4 * MS) < 100 * US, "{choice:?}");
}

#[test]
fn equals_do_not_flap() {
    for seed in 1..6 {
        for faster in [0, 1] {
            let router = router(0.01, &[MS, MS]);
            let mut run = Run::new(&router);
            let mut noise = Noise(seed);
            let mean = if faster == 0 { [MS, 1050 * US] } else { [1050 * US, MS] };
            for _ in 0..1000 {
                let took = mean.map(|ns| noise.around(ns, 0.08));
                run.batch(&took);
            }
            assert!(run.moves <= 2, "{} moves with seed {seed}", run.moves);
            // Being on the wrong one of two equals costs no more than they differ.
            assert!(run.total_ns < 1000 * 1060 * US, "{}", run.total_ns);
        }
    }
}

#[test]
fn a_clear_difference_moves_even_if_noisy() {
    let router = router(0.01, &[MS, 2 * MS]);
    let mut run = Run::new(&router);
    let mut noise = Noise(3);
    // The prediction was wrong: the device takes half of what the CPU does.
    let moved = (1..=1000).find(|_| {
        let took = [MS, MS / 2].map(|ns| noise.around(ns, 0.2));
        run.batch(&took);
        run.current == Some(1)
    });
    assert!(moved.is_some_and(|batches| batches <= 200), "{moved:?}");
    assert_eq!(run.moves, 1);
}

#[test]
fn a_single_spike_changes_nothing() {
    for at in [0, 1, 2, 3, 5, 50, 100] {
        let router = router(0.01, &[4 * MS, MS]);
        let mut run = Run::new(&router);
        for number in 0..200 {
            let spike = if number == at { 100 * MS } else { 0 };
            run.batch(&[4 * MS, MS + spike]);
        }
        assert_eq!((run.moves, run.current), (0, Some(1)), "a spike in batch {at}");
    }
}

#[test]
fn spikes_of_many_new_plans_do_not_make_a_device_bad() {
    let router = router(0.0, &[4 * MS, MS]);
    for number in 0..200 {
        let routed = router.routed(&plan(), 1);
        let choice = choose(&router, &routed);
        assert_eq!(choice.device, 1, "plan {number}");
        for _ in 0..TELLING {
            router.learn(&routed, &choice, 1, if number % 3 == 2 { 100 * MS } else { MS }, false);
        }
    }
}

#[test]
fn a_model_that_is_off_is_corrected_for_plans_not_seen() {
    // Everything takes three times what was predicted there.
    let router = router(0.0, &[2 * MS, MS]);
    let devices: Vec<usize> = (0..20)
        .map(|_| {
            let routed = router.routed(&plan(), 1);
            let choice = choose(&router, &routed);
            for _ in 0..TELLING {
                router.learn(&routed, &choice, choice.device, [2 * MS, 3 * MS][choice.device], false);
            }
            choice.device
        })
        .collect();
    assert_eq!((devices[0], devices[19]), (1, 0), "{devices:?}");
    assert!(devices.iter().filter(|device| **device == 1).count() <= bias::Bias::ENOUGH, "{devices:?}");
    // New figures start anew.
    router.set_costs(1, costs(MS));
    assert_eq!(choose(&router, &router.routed(&plan(), 1)).device, 1);
}

/// Cold caches, fresh memory: the first batch of a plan takes longer than the model, which is of those after it.
#[test]
fn the_first_batch_of_a_plan_is_not_held_against_the_model() {
    let router = router(0.0, &[2 * MS, 3 * MS]);
    for number in 0..50 {
        let routed = router.routed(&plan(), 1);
        for took in [20 * MS, 2 * MS] {
            let choice = choose(&router, &routed);
            assert_eq!(choice.device, 0, "plan {number}: {choice:?}");
            router.learn(&routed, &choice, 0, took, false);
        }
    }
}
