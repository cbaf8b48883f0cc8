use super::*;
use crate::job::{Core, Many};
use crate::layout::Layout;
use crate::lower::lower;
use crate::stage::{Limits, Variants};
use breakeven_ir::plan::Plan;
use breakeven_ir::{DType, Tensor};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A batch of one plan over so many elements, lowered for software with two cores.
fn group(elems: usize) -> Group {
    let x = Tensor::input("x", DType::F32, [elems]).expect("shape");
    let y = Tensor::input("y", DType::F32, [elems]).expect("shape");
    let plan = Arc::new(Plan::new(&[&(&x * &y).expect("times").exp().expect("exp")]).expect("plan"));
    let limits = Limits { int64: true, groups: Some(16), ..Limits::default() };
    let variants = Variants::starting(crate::adapters::Kind::Software, true);
    let lowered = lower(&plan, &limits, &variants).expect("lowers");
    let layout = Layout::new(&plan, &lowered, false);
    let core = Arc::new(Core::new(1, &plan, lowered, layout, 0));
    Group { layout: core.layout.clone(), core, residents: Vec::new(), many: None }
}

fn parts(groups: &[Group], cores: u64) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    first_parts(groups, cores, |part| parts.push(part));
    parts
}

/// The elements of an input that the first half of all workgroups reads, by the loop of the kernel.
fn read_first(group: &Group) -> BTreeSet<u64> {
    let stage = &group.core.lowered.stages[0];
    let (width, workgroup) = (u64::from(stage.run.expect("a run")), u64::from(stage.turns.units));
    let groups = stage.units.div_ceil(u64::from(stage.group_units));
    let units = (0..groups / 2).flat_map(|number| {
        let turns = (number * workgroup..stage.units).step_by((groups * workgroup) as usize);
        turns.flat_map(|first| first..(first + workgroup).min(stage.units))
    });
    units.flat_map(|unit| unit * width..(unit + 1) * width).collect()
}

#[test]
fn what_the_first_of_two_threads_reads_is_told() {
    for elems in [16_384, 65_536, 98_304, 131_072] {
        let group = group(elems);
        let expected = read_first(&group);
        let told = parts(std::slice::from_ref(&group), 2);
        for input in group.layout.inputs.iter().flatten() {
            let inside = told.iter().filter(|part| (input.offset..input.offset + input.bytes).contains(&part.start));
            let found: BTreeSet<u64> =
                inside.flat_map(|part| (part.start - input.offset) / 4..(part.end - input.offset) / 4).collect();
            assert_eq!(found, expected, "{elems} elements");
        }
        assert_eq!(told.iter().map(|part| part.end - part.start).sum::<u64>(), elems as u64 * 4);
    }
}

#[test]
fn one_core_reads_all_and_no_more_than_caches_hold() {
    let of = |elems| parts(&[group(elems)], 1).iter().map(|part| part.end - part.start).sum::<u64>();
    assert_eq!(of(1000), 8000);
    assert_eq!(of(65_536), 8 * 65_536);
    assert_eq!(of(1 << 20), MOST);
}

#[test]
fn what_lies_on_the_device_or_in_tasks_of_their_own_is_left() {
    let mut own = group(4096);
    own.many = Some(Many { tasks: 3, inputs: vec![0, 0], ..Many::default() });
    assert_eq!(parts(&[own], 1), []);

    // One run of several tasks lies where the batch says.
    let mut joined = group(4096);
    let stage = &joined.core.lowered.stages[0];
    let (units, group_units) = (vec![stage.units / 2], vec![stage.group_units]);
    joined.many = Some(Many { tasks: 1, units, group_units, inputs: vec![512, 20_000], ..Many::default() });
    let told = parts(&[joined], 1);
    assert!(told.iter().all(|part| (512..512 + 8192).contains(&part.start) || part.start >= 20_000), "{told:?}");
    assert_eq!(told.iter().map(|part| part.end - part.start).sum::<u64>(), 2 * 8192);
}
