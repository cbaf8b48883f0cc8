//! Every module that is rendered is valid WGSL, and its text does not depend on sizes.

use super::*;
use crate::stage::Stage;
use breakeven_ir::{DType, Op, Tensor};

/// Panics with the module's text if naga refuses it.
pub(crate) fn validate(stage: &Stage) {
    let module = naga::front::wgsl::parse_str(&stage.source)
        .unwrap_or_else(|e| panic!("{}\n{}", e.emit_to_string(&stage.source), stage.source));
    let flags = naga::valid::ValidationFlags::all();
    let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::SHADER_INT64);
    if let Err(error) = validator.validate(&module) {
        panic!("{}\n{}", error.emit_to_string(&stage.source), stage.source);
    }
}

/// Lowers one batch with every variant, validates all modules, and returns those of the default variants.
pub(crate) fn lowered(outputs: &[&Tensor]) -> Lowered {
    use crate::stage::{MapVariant, RowsVariant, TileVariant};
    let plan = Plan::new(outputs).unwrap();
    let limits = Limits { workgroup: 1024, workgroup_bytes: 32 << 10, bindings: 16, ..Limits::default() };
    let wide = Limits { int64: true, ..limits };
    // Each class has its own variants: one at a time differs from the defaults.
    let usual = Variants::default();
    let maps = MapVariant::ALL.iter().map(|&map| Variants { map, ..usual });
    let rows = RowsVariant::ALL.iter().skip(1).map(|&rows| Variants { rows, ..usual });
    let tiles = TileVariant::ALL.iter().skip(1).map(|&tile| Variants { tile, ..usual });
    for variants in maps.chain(rows).chain(tiles) {
        for limits in [&limits, &wide] {
            lower(&plan, limits, &variants).unwrap().stages.iter().for_each(validate);
        }
    }
    lower(&plan, &limits, &Variants::default()).unwrap()
}

pub(crate) fn input(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::input(name, dtype, dims).unwrap()
}

fn sources(outputs: &[&Tensor]) -> Vec<String> {
    lowered(outputs).stages.iter().map(|s| s.source.to_string()).collect()
}

#[test]
fn every_op_and_signature_renders() {
    for &op in Op::ALL {
        for signature in op.row().signatures {
            for dims in [&[8usize, 4][..], &[7], &[]] {
                let args: Vec<Tensor> =
                    signature.args.iter().enumerate().map(|(i, &d)| input(&format!("x{i}"), d, dims)).collect();
                let args: Vec<&Tensor> = args.iter().collect();
                let y = Tensor::apply(op, &args).unwrap();
                lowered(&[&y]);
            }
        }
    }
}

#[test]
fn a_module_is_keyed_by_its_kernel_and_not_by_its_size() {
    let chain = |dims: &[usize]| {
        let x = input("x", DType::F32, dims);
        sources(&[&(&(&x * 3.5).unwrap() + 0.25).unwrap().relu().unwrap()])
    };
    assert_eq!(chain(&[256]), chain(&[5120]));
    assert_eq!(chain(&[64, 8]), chain(&[4096]));
}
