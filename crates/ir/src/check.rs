//! Invariants, checked after each pass in debug builds: a pass that breaks one is caught where it does.

use crate::expr::{Body, Inst};
use crate::graph::Graph;
use crate::memory::lifetimes;
use crate::plan::{Kernel, Loops, Place, Plan};

/// Every argument comes before its user, and nothing is dead.
pub(crate) fn graph(graph: &Graph) {
    if !cfg!(debug_assertions) {
        return;
    }
    let mut used = vec![false; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        for &arg in &node.args {
            assert!(arg < id, "node {id} uses node {arg}, which comes later");
            used[arg] = true;
        }
    }
    graph.outputs.iter().for_each(|&id| used[id] = true);
    assert!(used.iter().all(|&u| u), "a dead node is left");
}

/// Every body is in order and typed, every access stays inside its buffer, every buffer is written before it is read, and no
/// scratch is written that nobody reads.
pub(crate) fn plan(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    let mut written: Vec<bool> = plan.buffers.iter().map(|b| matches!(b.place, Place::Input(_))).collect();
    for kernel in &plan.kernels {
        let extents = |loops: &Loops| loops.vars.iter().map(|v| v.extent).collect::<Vec<_>>();
        let end = extents(kernel.end());
        if let Kernel::Contract(c) = kernel {
            for side in [&c.left, &c.right] {
                body(plan, &side.body, &side.extents());
                side.body
                    .accesses
                    .iter()
                    .for_each(|a| assert!(written[a.buffer.0 as usize], "{} is read unwritten", a.buffer));
            }
            let product = &c.end.body.accesses[c.product as usize];
            assert_eq!(product.buffer, c.end.stores[0].buffer, "the product is not where the result goes");
            written[product.buffer.0 as usize] = true;
        }
        body(plan, &kernel.end().body, &end);
        for access in &kernel.end().body.accesses {
            assert!(written[access.buffer.0 as usize], "{} is read before it is written", access.buffer);
        }
        assert!(!kernel.end().stores.is_empty(), "a kernel stores nothing");
        for store in &kernel.end().stores {
            let (low, high) = store.index.bounds(&end);
            let elems = plan.buffer(store.buffer).shape.elems() as i64;
            assert!(
                low >= 0 && high < elems,
                "a store to {} of {elems} elements leaves it: {low}..={high}",
                store.buffer
            );
            assert_eq!(kernel.end().body.dtypes[store.value as usize], plan.buffer(store.buffer).dtype);
            written[store.buffer.0 as usize] = true;
        }
    }
    let bodies = plan.kernels.iter().flat_map(|kernel| match kernel {
        Kernel::Loops(loops) => vec![&loops.body],
        Kernel::Contract(c) => vec![&c.left.body, &c.right.body, &c.end.body],
    });
    let mut read = vec![false; plan.buffers.len()];
    bodies.flat_map(|body| &body.accesses).for_each(|access| read[access.buffer.0 as usize] = true);
    for (id, info) in plan.buffers.iter().enumerate() {
        assert!(!matches!(info.place, Place::Scratch(_)) || !written[id] || read[id], "nobody reads b{id}");
    }
    for &output in &plan.outputs {
        let empty = plan.buffer(output).shape.elems() == 0;
        assert!(empty || written[output.0 as usize], "output {output} is never written");
    }
}

fn body(plan: &Plan, body: &Body, extents: &[usize]) {
    assert_eq!(body.insts.len(), body.dtypes.len());
    for (at, inst) in body.insts.iter().enumerate() {
        assert!(inst.args().all(|arg| (arg as usize) < at), "%{at} uses a later value");
        if let Inst::Map { op, signature, .. } = inst {
            let args: Vec<_> = inst.args().map(|arg| body.dtypes[arg as usize]).collect();
            let expected = &op.row().signatures[usize::from(*signature)];
            assert_eq!(args, expected.args, "%{at} = {op:?} has arguments of the wrong dtype");
            assert_eq!(body.dtypes[at], expected.result);
        }
    }
    for (number, access) in body.accesses.iter().enumerate() {
        // Guarded accesses leave the buffer where their conditions fail, by design.
        if access.conditions.is_empty() {
            let (low, high) = access.index.bounds(extents);
            let gathered =
                body.insts.iter().any(|i| matches!(i, Inst::Gather { access, .. } if *access as usize == number));
            let elems = plan.buffer(access.buffer).shape.elems() as i64;
            assert!(
                low >= 0 && (gathered || high < elems),
                "{}[{}] leaves its {elems} elements",
                access.buffer,
                access.index
            );
        }
    }
}

/// No two temporaries that live at once share a byte.
pub(crate) fn memory(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    let lives = lifetimes(plan);
    let place = |id: usize| match plan.buffers[id].place {
        Place::Scratch(at) if plan.buffers[id].bytes() > 0 => Some(at..at + plan.buffers[id].bytes()),
        _ => None,
    };
    for a in 0..plan.buffers.len() {
        for b in 0..a {
            if let (Some(x), Some(y)) = (place(a), place(b)) {
                let together = lives[a].0 <= lives[b].1 && lives[b].0 <= lives[a].1;
                assert!(!together || x.end <= y.start || y.end <= x.start, "b{a} and b{b} overlap in scratch");
            }
        }
    }
}
