use super::*;
use crate::stage::{Binding, Stage, Turns};
use breakeven_ir::plan::Class;
use breakeven_ir::{DType, Tensor};

fn stage(bindings: &[(Slot, bool)]) -> Stage {
    let binding =
        |(slot, writes): &(Slot, bool)| Binding { slot: *slot, writes: *writes, element_bytes: 4, window: 0..100 };
    Stage {
        kernel: 0,
        class: Class::Map,
        source: "".into(),
        bindings: bindings.iter().map(binding).collect(),
        params: vec![],
        units: 100,
        group_units: 64,
        turns: Turns::once(64),
        work: 100,
        run: None,
    }
}

#[test]
fn what_is_written_and_read_lies_apart() {
    let x = Tensor::input("x", DType::F32, [100]).expect("shape");
    let unused = Tensor::input("unused", DType::F32, [7]).expect("shape");
    let y = (&x * 2.0).expect("times");
    let z = (&y * &x).expect("times");
    let plan = Plan::unfused(&[&y, &z, &unused.exp().expect("exp")]).expect("plan");
    let buffer = |id| Slot::Buffer(BufferId(id));
    let outputs: Vec<u32> =
        (0..).zip(&plan.buffers).filter(|(_, b)| b.place != Place::Input(0)).map(|(i, _)| i).collect();
    let (first, second) = (buffer(outputs[1]), buffer(outputs[2]));
    let stages = vec![
        stage(&[(buffer(0), false), (Slot::Partials(0), true)]),
        stage(&[(Slot::Partials(0), false), (first, true)]),
        stage(&[(first, false), (buffer(0), false), (Slot::Partials(1), true)]),
        stage(&[(Slot::Partials(1), false), (second, true), (Slot::Status, true)]),
    ];
    let lowered = Lowered { stages, partials: vec![1000, 2000], status: true };
    let layout = Layout::new(&plan, &lowered, false);
    // Only what is bound is uploaded.
    assert_eq!(layout.inputs, [Some(Region { offset: 0, bytes: 400 }), None]);
    assert_eq!(layout.status, Region { offset: 0, bytes: 16 });
    assert_eq!(layout.outputs.iter().map(|region| region.offset).collect::<Vec<_>>(), [256, 768, 1280]);
    // The output that is read again is private; the two partials, which never live together, share a block.
    assert_eq!(layout.private_outputs, [(0, 0)]);
    assert_eq!(layout.privates, [400, 2000]);
    assert_eq!(layout.spots[1], [Spot::Private(1), Spot::Private(0)]);
    assert_eq!(layout.spots[2], [Spot::Private(0), Spot::Input(0), Spot::Private(1)]);
    assert_eq!(layout.spots[3], [Spot::Private(1), Spot::Output(1), Spot::Status]);

    let stay = Layout::new(&plan, &lowered, true);
    assert_eq!(stay.private_outputs, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(stay.block_bytes, 32);
}
