use super::*;
use crate::stage::Turns;
use breakeven_ir::plan::Class;

const TURNS: Turns = Turns { units: 64, most: 16, groups: 64 };

fn stage(units: u64, turns: Turns) -> Stage {
    let group_units = turns.group_units(units);
    let (bindings, params) = (vec![], vec![]);
    Stage {
        kernel: 0,
        class: Class::Map,
        source: "".into(),
        bindings,
        params,
        units,
        group_units,
        turns,
        work: units,
        run: None,
    }
}

/// Splits tasks of so many units, one stage each, and checks what holds for all groups.
fn split_sizes(sizes: &[u64], turns: Turns) -> Vec<Vec<u64>> {
    let stages: Vec<[Stage; 1]> = sizes.iter().map(|units| [stage(*units, turns)]).collect();
    let groups = split((0..sizes.len()).collect(), |task| &stages[task]);
    let mut tasks = groups.concat();
    tasks.sort_unstable();
    assert_eq!(tasks, (0..sizes.len()).collect::<Vec<_>>(), "every task once");
    let groups: Vec<Vec<u64>> = groups.iter().map(|group| group.iter().map(|task| sizes[*task]).collect()).collect();
    for group in &groups {
        let step = u64::from(turns.group_units(group.iter().sum()));
        let needed: u64 = group.iter().map(|units| units.div_ceil(step)).sum();
        let most = group.iter().max().map_or(0, |units| units.div_ceil(step));
        let (launched, tasks) = (most * group.len() as u64, group.len() as u64);
        assert!(launched as f64 <= 1.3 * needed as f64 + (tasks + IDLE) as f64, "{launched} for {needed}: {group:?}");
    }
    for size in sizes {
        assert_eq!(groups.iter().filter(|group| group.contains(size)).count(), 1, "{size} is in several groups");
    }
    groups
}

#[test]
fn tasks_of_one_size_stay_together() {
    for turns in [TURNS, Turns::once(64), Turns::once(1)] {
        for (units, count) in [(64, 20), (64, 1000), (65, 1000), (65_536, 8), (0, 3)] {
            assert_eq!(split_sizes(&vec![units; count], turns).len(), 1, "{count} of {units}");
        }
    }
}

#[test]
fn small_tasks_share_a_dispatch_whatever_their_sizes() {
    assert_eq!(split_sizes(&[256, 300, 7, 1, 1000, 256], Turns::once(64)).len(), 1);
    assert_eq!(split_sizes(&[8192, 16_384, 8192, 16_384], TURNS).len(), 1);
    assert_eq!(split_sizes(&(1..=64).collect::<Vec<_>>(), TURNS).len(), 1);
}

#[test]
fn large_tasks_leave_small_ones_to_themselves() {
    assert_eq!(split_sizes(&[4096, 65_536, 12_288, 32_768], TURNS).last(), Some(&vec![65_536]));
    let mut sizes = vec![64; 500];
    sizes.push(1 << 20);
    assert_eq!(split_sizes(&sizes, TURNS), [vec![64; 500], vec![1 << 20]]);
}

#[test]
fn no_dispatch_is_mostly_idle() {
    let mut state = 3u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..300 {
        let count = 2 + random(200);
        let sizes: Vec<u64> = (0..count)
            .map(|_| {
                let bits = 1 + random(21);
                random(1 << bits)
            })
            .collect();
        split_sizes(&sizes, if round % 2 == 0 { TURNS } else { Turns::once(1 << random(9)) });
    }
}

/// What one stage could share another may not: all of a group count.
#[test]
fn every_stage_counts() {
    let task = |wide| [stage(64, TURNS), stage(wide, TURNS)];
    let stages = [task(64), task(1 << 20), task(64)];
    assert_eq!(split(vec![0, 1, 2], |task| &stages[task]), [vec![0, 2], vec![1]]);
}
