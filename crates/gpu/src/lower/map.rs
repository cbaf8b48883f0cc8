//! The map template: every point on its own, four or eight neighbours at a time where memory allows.

use super::Target;
use super::emit::{Emitter, all_groups};
use super::module::Shape;
use super::vector::{self, LANES, PARTS, contiguous};
use crate::prelude;
use crate::stage::{Stage, Turns, WIDE};
use breakeven_ir::expr::{Body, Inst, Value};
use breakeven_ir::index::Index;
use breakeven_ir::merge::Group;
use breakeven_ir::plan::{Class, Loops};
use std::fmt::Write;

/// Steps of a body beyond which four points are enough: drivers' compilers take more than twice as long for twice the code, 20 s
/// for eight points of 72 transcendental functions.
const LONG: usize = 32;

/// A map as one stage.
pub(crate) fn lower(target: &Target<'_>, number: usize, loops: &Loops) -> Stage {
    let (groups, _) = all_groups(loops);
    let mut emitter = Emitter::new(target, &loops.body, &groups);
    let points = loops.points();
    let last = groups.len().checked_sub(1);
    let long = loops.body.insts.iter().filter(|inst| matches!(inst, Inst::Map { .. })).count() > LONG;
    let fits = |lanes: &usize| {
        *lanes <= target.variants.map.points as usize
            && !(long && *lanes == WIDE)
            && last.is_some_and(|last| vectorises(&emitter, loops, last, *lanes))
    };
    let lanes = [WIDE, LANES].into_iter().find(fits).unwrap_or(1);
    let vector = lanes > 1;
    let workgroup = target.variants.map.workgroup.min(target.limits.workgroup);

    let mut code = String::new();
    let masks = emitter.body.var_masks(0);
    let values: Vec<Value> = loops.stores.iter().map(|s| s.value).collect();
    let need = super::emit::needed(&emitter.body, &values, &|_| false);
    let steps: Vec<usize> = (0..need.len()).filter(|&at| need[at]).collect();
    // What is the same for all points is computed once, before the loop.
    let plain = |value: Value| format!("v{value}");
    for &at in steps.iter().filter(|&&at| masks[at] == 0) {
        emitter.step(&mut code, at, &format!("v{at}"), &[], &plain);
    }
    let _ = writeln!(
        code,
        "for (var u = first + i32(wid.x * {workgroup}u + lid); u < end; u += i32(groups.x * {workgroup}u)) {{"
    );
    let linear = if vector { format!("u * {lanes}") } else { "u".into() };
    let base = emitter.split(&mut code, &linear, 0..groups.len(), "x");
    let coords: Vec<Vec<String>> = (0..lanes)
        .map(|lane| {
            let mut coords = base.clone();
            if let (Some(last), true) = (last, lane > 0) {
                coords[last] = format!("({} + {lane})", base[last]);
            }
            coords
        })
        .collect();
    let varies = |at: usize| vector && last.is_some_and(|last| masks[at] >> last & 1 == 1);
    // Step by step for all lanes: compilers that keep the order find instructions that do not wait for each other.
    for &at in steps.iter().filter(|&&at| masks[at] != 0) {
        if !varies(at) {
            emitter.step(&mut code, at, &format!("v{at}"), &base, &plain);
            continue;
        }
        if let Some(last) = last
            && vector::load(&mut emitter, &mut code, 'v', at, last, &base, lanes)
        {
            continue;
        }
        if lanes == WIDE && by_four(&emitter, &mut code, at, &varies) {
            continue;
        }
        for (lane, coords) in coords.iter().enumerate() {
            let arg = |v: Value| if varies(v as usize) { format!("v{v}_{lane}") } else { plain(v) };
            emitter.step(&mut code, at, &format!("v{at}_{lane}"), coords, &arg);
        }
    }
    for store in &loops.stores {
        let value = store.value as usize;
        if !vector {
            emitter.store(&mut code, store, &groups, &format!("v{value}"), &base);
            continue;
        }
        let lane = |lane: usize| if varies(value) { format!("v{value}_{lane}") } else { format!("v{value}") };
        let values: Vec<String> = (0..lanes).map(lane).collect();
        vector::store(&mut emitter, &mut code, store.buffer, &store.index.over_groups(&groups), &base, &values);
    }
    code += "}\n";
    let units = points.div_ceil(lanes) as u64;
    let turns = Turns::new(workgroup, target.variants.map.turns, target.limits.groups);
    let shape = Shape { workgroup, units, turns, work: points as u64 };
    let in_place = is_in_place(&emitter.body, loops, &groups);
    let stage = emitter.module.stage(number, Class::Map, shape, &code);
    let is_run = in_place && stage.bindings.iter().all(|binding| binding.window == (0..points));
    Stage { run: is_run.then_some(lanes as u32), ..stage }
}

/// Writes a step that calls one function of the prelude, four lanes at a time, if there is such a function: software's compilers
/// keep the order that they are given, and find four instructions in a row that do not wait for each other.
fn by_four(emitter: &Emitter<'_>, code: &mut String, at: usize, varies: &dyn Fn(usize) -> bool) -> bool {
    let Inst::Map { op, signature, args } = &emitter.body.insts[at] else { return false };
    let name = op.row().signatures[usize::from(*signature)].wgsl.strip_suffix("({0})");
    let (Some(four), true) = (name.and_then(prelude::four), varies(args[0] as usize)) else { return false };
    for number in 0..WIDE / LANES {
        let lanes: Vec<usize> = (number * LANES..(number + 1) * LANES).collect();
        let list = lanes.iter().map(|lane| format!("v{}_{lane}", args[0])).collect::<Vec<_>>().join(", ");
        let _ = writeln!(code, "let v{at}q{number} = {four}(vec4<f32>({list}));");
        for (lane, part) in lanes.iter().zip(PARTS) {
            let _ = writeln!(code, "let v{at}_{lane} = v{at}q{number}.{part};");
        }
    }
    true
}

/// Is each point computed from the elements of its own number alone, and written there? `body` is over groups.
fn is_in_place(body: &Body, loops: &Loops, groups: &[Group]) -> bool {
    let in_place = |inst: &Inst| match inst {
        Inst::Load { access } => {
            let access = &body.accesses[*access as usize];
            access.conditions.is_empty() && access.index == Index::var(0)
        }
        Inst::Const(_) | Inst::Map { .. } => true,
        _ => false,
    };
    groups.len() == 1
        && body.insts.iter().all(in_place)
        && loops.stores.iter().all(|store| store.index.over_groups(groups) == Index::var(0))
}

/// May so many neighbours along the last group be computed together? Its extent must be a multiple of them, or the whole
/// kernel one run, whose end may then write and read into the padding of its buffers.
fn vectorises(emitter: &Emitter<'_>, loops: &Loops, last: usize, lanes: usize) -> bool {
    let extent = emitter.extents[last];
    let (groups, _) = all_groups(loops);
    if loops.stores.iter().any(|s| !contiguous(&s.index.over_groups(&groups), last, lanes)) {
        return false;
    }
    let harmless = |inst: &Inst| match inst {
        Inst::Load { access } => {
            let access = &emitter.body.accesses[*access as usize];
            access.conditions.is_empty() && (contiguous(&access.index, last, lanes) || access.index.vars() == 0)
        }
        Inst::Gather { .. } => false,
        _ => true,
    };
    extent.is_multiple_of(lanes) || (groups.len() == 1 && emitter.body.insts.iter().all(harmless))
}
