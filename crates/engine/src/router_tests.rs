//! The router with made-up costs and times: no clock is read, every batch takes what the test says.

use super::*;
use breakeven_ir::{DType, Tensor};
use std::time::Instant;

#[path = "router/explore_tests.rs"]
mod explore;
#[path = "router/learn_tests.rs"]
mod learning;

const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// A plan that asks for next to nothing: what a device takes is its fixed cost.
fn plan() -> Arc<Plan> {
    let x = Tensor::input("x", DType::F32, [4]).unwrap();
    Arc::new(Plan::new(&[&x.exp().unwrap()]).unwrap())
}

fn costs(ns: u64) -> Costs {
    Costs { fixed_ns: ns as f64, ..Costs::default() }
}

/// A router of which each device is thought to take so long; the CPU is the first.
fn router(explore: f64, expected: &[u64]) -> Router {
    let router = Router::new(100, explore);
    expected.iter().enumerate().for_each(|(device, ns)| router.set_costs(device, costs(*ns)));
    router
}

/// All devices, and no way to use two at once.
const ALL: u32 = (1 << DEVICES) - 1;

fn choose(router: &Router, routed: &Routed) -> Choice {
    router.choose(routed, ALL, Objective::Latency, |_| 0, |_| 0)
}

/// Batches of one plan, one after the other.
struct Run<'a> {
    router: &'a Router,
    routed: Arc<Routed>,
    total_ns: u64,
    /// What explorations took beyond the device in use.
    explored_ns: u64,
    explorations: u32,
    /// Changes of the device in use; explorations are none.
    moves: u32,
    current: Option<usize>,
}

impl<'a> Run<'a> {
    fn new(router: &'a Router) -> Run<'a> {
        let routed = router.routed(&plan(), 1);
        Run { router, routed, total_ns: 0, explored_ns: 0, explorations: 0, moves: 0, current: None }
    }

    /// One batch, with what each device would take.
    fn batch(&mut self, took: &[u64]) -> Choice {
        let choice = choose(self.router, &self.routed);
        let ns = took[choice.device];
        self.router.learn(&self.routed, &choice, choice.device, ns, false);
        self.total_ns += ns;
        if choice.why == Why::Explores {
            self.explorations += 1;
            self.explored_ns += ns.saturating_sub(self.current.map_or(0, |current| took[current]));
        } else {
            self.moves += u32::from(self.current.is_some_and(|current| current != choice.device));
            self.current = Some(choice.device);
        }
        choice
    }

    fn batches(&mut self, count: usize, took: &[u64]) {
        for _ in 0..count {
            self.batch(took);
        }
    }

    /// Batches until this device is in use, at most so many.
    fn until(&mut self, device: usize, most: usize, took: &[u64]) -> usize {
        for count in 1..=most {
            let choice = self.batch(took);
            if choice.device == device && choice.why != Why::Explores {
                return count;
            }
        }
        usize::MAX
    }
}

/// Numbers from -1 to 1 that are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 30) as f64 - 1.0
    }

    fn around(&mut self, ns: u64, share: f64) -> u64 {
        (ns as f64 * (1.0 + share * self.next())) as u64
    }
}

#[test]
fn the_cheapest_is_chosen() {
    for (expected, best) in [([5, 9, 7], 0), ([9, 5, 7], 1), ([9, 7, 5], 2)] {
        let router = router(0.01, &expected.map(|ns| ns * MS));
        let choice = choose(&router, &router.routed(&plan(), 1));
        assert_eq!((choice.device, choice.why), (best, Why::Cheapest), "{expected:?}");
        for (device, ns) in expected.into_iter().enumerate() {
            assert_eq!(choice.predicted[device].fixed_ns, (ns * MS) as f64);
            // The few bytes of the plan count, too.
            assert_eq!(choice.expected_ns[device], choice.predicted[device].total_ns());
            assert!((ns * MS..ns * MS + US).contains(&choice.expected_ns[device]));
        }
        assert_eq!((choice.measured, &choice.expected_ns[3..]), (0, &[0; MOST - 3][..]));
    }
}

#[test]
fn without_another_device_the_cpu_serves() {
    let alone = router(0.01, &[MS]);
    assert!(!alone.is_open());
    let choice = choose(&alone, &alone.routed(&plan(), 1));
    assert_eq!((choice.device, choice.why), (0, Why::OnlyCpu));
    let both = router(0.01, &[MS, US]);
    assert!(both.is_open());
    let choice = both.choose(&both.routed(&plan(), 1), 0, Objective::Latency, |_| 0, |_| 0);
    assert_eq!((choice.device, choice.why, choice.expected_ns[1]), (0, Why::OnlyCpu, 0));
}

/// What is about as good elsewhere is as likely worse.
#[test]
fn a_plan_begins_on_the_cpu_unless_another_device_is_better_by_enough() {
    for (device_ns, expected) in [(950 * US, (0, Why::Stays)), (850 * US, (1, Why::Cheapest))] {
        let router = router(0.0, &[MS, device_ns]);
        let choice = choose(&router, &router.routed(&plan(), 1));
        assert_eq!((choice.device, choice.why), expected);
    }
}

/// Only a GPU was measured, or only its figures were in the file: that it is faster than the CPU is not known.
#[test]
fn a_cpu_that_was_not_measured_is_thought_about() {
    let router = Router::new(100, 0.01);
    router.set_costs(1, costs(10 * MS));
    let choice = choose(&router, &router.routed(&plan(), 1));
    assert_eq!((choice.device, choice.why), (0, Why::Cheapest), "four elements are no matter for 10 ms");
    // What is large enough by any measure goes to the device, and comes back if the CPU turns out to be faster.
    let x = Tensor::input("x", DType::F32, [30_000_000]).unwrap();
    let large = router.routed(&Arc::new(Plan::new(&[&x.exp().unwrap()]).unwrap()), 1);
    let fast = || crate::cost::Curve::new(vec![(1.0, 1e-5)]);
    router.set_costs(1, Costs { memory: fast(), compute: fast(), ..costs(MS) });
    assert_eq!(choose(&router, &large).device, 1);
}

#[test]
fn a_device_that_is_not_usable_is_never_chosen() {
    // As the cheapest, as the one in use, as one to explore, and as one to confirm.
    let router = router(1.0, &[4 * MS, MS, 2 * MS]);
    let mut run = Run::new(&router);
    run.batches(50, &[4 * MS, MS, MS / 10]);
    for _ in 0..500 {
        let choice = router.choose(&run.routed, 0b100, Objective::Latency, |_| 0, |_| 0);
        assert_ne!(choice.device, 1);
        assert_eq!((choice.expected_ns[1], choice.measured >> 1 & 1), (0, 0));
        router.learn(&run.routed, &choice, choice.device, [4 * MS, MS, MS / 10][choice.device], false);
    }
    for _ in 0..500 {
        let choice = router.choose(&run.routed, 0, Objective::Latency, |_| 0, |_| 0);
        assert_eq!((choice.device, choice.why), (0, Why::OnlyCpu));
        router.learn(&run.routed, &choice, 0, 4 * MS, false);
    }
}

#[test]
fn a_tiny_plan_is_settled_and_nothing_else_is() {
    let router = router(0.01, &[US, 100 * US]);
    let (tiny, plan_of_another) = (plan(), plan());
    let routed = router.routed(&tiny, 1);
    let mut batches = 0;
    while !router.is_settled(&tiny, 1) {
        let choice = choose(&router, &routed);
        assert_eq!(choice.device, 0);
        router.learn(&routed, &choice, 0, US, false);
        batches += 1;
        assert!(batches < 10);
    }
    assert!(batches >= 3, "settled before it was measured");
    assert!(!router.is_settled(&plan_of_another, 1));
    assert!(!router.is_settled(&tiny, 1000), "many of them are another matter");
    // Whatever is found out about devices, it is looked at again.
    router.set_costs(1, costs(US / 2));
    assert!(!router.is_settled(&tiny, 1));

    // A fixed cost below twice what the CPU takes leaves room for doubt.
    let close = self::router(0.0, &[80 * US, 100 * US]);
    let mut run = Run::new(&close);
    run.batches(50, &[80 * US, 100 * US]);
    assert_eq!(run.current, Some(0));
    assert!(!close.is_settled(&run.routed.plan, 1));
}

#[test]
fn plans_beyond_the_capacity_are_routed_too() {
    let router = Router::new(3, 0.01);
    router.set_costs(0, costs(4 * MS));
    router.set_costs(1, costs(MS));
    let plans: Vec<Arc<Plan>> = (0..10).map(|_| plan()).collect();
    for _ in 0..3 {
        for plan in &plans {
            let routed = router.routed(plan, 1);
            let choice = choose(&router, &routed);
            assert_eq!(choice.device, 1);
            router.learn(&routed, &choice, 1, MS, false);
        }
    }
    assert!(lock(&router.plans).len() <= 3);
    assert!(Arc::ptr_eq(&router.routed(&plans[9], 1), &router.routed(&plans[9], 1)));
    assert!(!Arc::ptr_eq(&router.routed(&plans[9], 1), &router.routed(&plans[9], 64)));
}

#[test]
fn devices_beyond_the_last_are_not_routed_to() {
    let router = router(0.01, &[MS]);
    router.set_costs(DEVICES, costs(1));
    router.set_costs(usize::MAX, costs(1));
    assert!(!router.is_open());
    assert_eq!(choose(&router, &router.routed(&plan(), 1)).device, 0);
}

#[test]
fn threads_route_at_once() {
    let router = router(0.01, &[4 * MS, MS]);
    let plan = plan();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..500 {
                    let routed = router.routed(&plan, 1);
                    let choice = choose(&router, &routed);
                    router.learn(&routed, &choice, choice.device, [4 * MS, MS][choice.device], false);
                    if number % 100 == 0 {
                        router.set_costs(1, costs(MS));
                    }
                }
            });
        }
    });
    let choice = choose(&router, &router.routed(&plan, 1));
    assert!(choice.expected_ns[1] == MS && choice.measured >> 1 & 1 == 1, "{choice:?}");
}

/// What was asked for is a microsecond for a plan that was seen before. The best of many rounds: a busy machine makes
/// some of them slow, not all. Without optimisation it is only held to be no search.
#[test]
fn a_choice_is_made_within_a_microsecond() {
    const ROUND: u32 = 1000;
    let router = router(0.01, &[4 * MS, MS, 2 * MS, 3 * MS]);
    let mut run = Run::new(&router);
    run.batches(100, &[4 * MS, MS, 2 * MS, 3 * MS]);
    let plan = &run.routed.plan;
    let round = || {
        let begun = Instant::now();
        for _ in 0..ROUND {
            std::hint::black_box(choose(&router, &router.routed(plan, 1)));
        }
        begun.elapsed() / ROUND
    };
    let best = (0..50).map(|_| round()).min().unwrap();
    let most_us = if cfg!(debug_assertions) { 50 } else { 1 };
    assert!(best.as_micros() < most_us, "{best:?}");
}
