//! The order of jobs against what is promised of it.

use super::{LANES, Lanes, Verdict};
use proptest::prelude::*;

/// Takes them one by one.
fn order(lanes: &mut Lanes<u64>) -> Vec<u64> {
    let mut order = Vec::new();
    loop {
        let before = order.len();
        lanes.take(1, |_| Verdict::Take, |job| order.push(job));
        if order.len() == before {
            return order;
        }
    }
}

#[test]
fn producers_take_turns() {
    let mut lanes = Lanes::new(100);
    for number in 0..6 {
        lanes.push(1, 7, number, number);
    }
    lanes.push(1, 8, 6, 6);
    lanes.push(1, 8, 7, 7);
    lanes.push(1, 9, 8, 8);
    assert_eq!(order(&mut lanes), [0, 6, 8, 1, 7, 2, 3, 4, 5]);
}

#[test]
fn the_more_urgent_go_first_and_the_overtaken_grow_older() {
    let mut lanes = Lanes::new(4);
    lanes.push(2, 1, 0, 0);
    for number in 1..20 {
        lanes.push(0, 1, number, number);
    }
    let order = order(&mut lanes);
    // Two urgencies below: overtaken by eight.
    assert_eq!(order.iter().position(|job| *job == 0), Some(8));
}

#[test]
fn what_is_passed_over_stays_in_its_place() {
    let mut lanes = Lanes::new(100);
    (0..10).for_each(|number| lanes.push(1, number % 2, number, number));
    let mut taken = Vec::new();
    lanes.take(64, |job| if job % 3 == 0 { Verdict::Take } else { Verdict::Pass }, |job| taken.push(job));
    assert_eq!(taken, [0, 3, 6, 9]);
    let mut rest = order(&mut lanes);
    rest.sort_unstable();
    assert_eq!(rest, [1, 2, 4, 5, 7, 8]);
}

#[test]
fn a_job_that_comes_back_is_first_in_its_row() {
    let mut lanes = Lanes::new(100);
    (1..4).for_each(|number| lanes.push(1, 5, number, number));
    lanes.push_front(1, 5, 0, 0);
    assert_eq!(order(&mut lanes), [0, 1, 2, 3]);
}

proptest! {
    /// Whatever is pushed leaves once; a producer's jobs of one urgency leave in their order; nothing is overtaken by more
    /// newer jobs than ageing allows (each of the producers of a lane has its turn meanwhile).
    #[test]
    fn nothing_is_lost_and_nothing_starves(jobs in prop::collection::vec((0..LANES, 0u64..4), 1..200), ageing in 0u64..20) {
        let mut lanes = Lanes::new(ageing);
        for (number, (lane, producer)) in jobs.iter().enumerate() {
            lanes.push(*lane, *producer, number as u64, number as u64);
        }
        let order = order(&mut lanes);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..jobs.len() as u64).collect::<Vec<_>>());
        for lane in 0..LANES {
            for producer in 0..4 {
                let own: Vec<u64> = order.iter().copied().filter(|job| jobs[*job as usize] == (lane, producer)).collect();
                prop_assert!(own.is_sorted(), "{:?}", own);
            }
        }
        // With one producer the bound is exact: a job is overtaken by newer ones of greater urgency only, and by at most
        // `ageing` numbers for each step between them.
        if jobs.iter().all(|(_, producer)| *producer == 0) {
            for (place, job) in order.iter().enumerate() {
                let lane = jobs[*job as usize].0;
                for newer in order[..place].iter().filter(|other| *other > job) {
                    let steps = lane - jobs[*newer as usize].0;
                    prop_assert!(newer - job <= ageing * steps as u64, "{job} was overtaken by {newer}");
                }
            }
        }
    }
}
