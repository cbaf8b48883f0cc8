//! The prelude is valid, complete, and handed out function by function.

use super::*;
use breakeven_ir::{DType, Op, Signature};

#[path = "prelude_accuracy_tests.rs"]
mod accuracy;

/// The WGSL type of a lane.
fn lane(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::I32 => "i32",
        DType::U32 | DType::Bool => "u32",
    }
}

/// A module that applies `signature` to rows of `source` and writes words to `sink`.
fn module(signature: &Signature) -> String {
    let arity = signature.args.len();
    let mut value = signature.wgsl.to_string();
    let mut arguments = String::new();
    for (i, &arg) in signature.args.iter().enumerate() {
        arguments += &format!("    let a{i} = bitcast<{}>(source[at * {arity}u + {i}u]);\n", lane(arg));
        value = value.replace(&format!("{{{i}}}"), &format!("a{i}"));
    }
    let body = format!(
        "@group(0) @binding(0) var<storage, read> source: array<u32>;\n\
         @group(0) @binding(1) var<storage, read_write> sink: array<u32>;\n\
         @compute @workgroup_size(64)\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    let at = id.x;\n    \
         if (at >= arrayLength(&sink)) {{\n        return;\n    }}\n{arguments}    \
         let result: {} = {value};\n    sink[at] = bitcast<u32>(result);\n}}\n",
        lane(signature.result)
    );
    functions_for(&body) + &body
}

#[track_caller]
fn validate(source: &str) {
    let parsed = match naga::front::wgsl::parse_str(source) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{}\n{source}", error.emit_to_string(source)),
    };
    let mut validator =
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
    if let Err(error) = validator.validate(&parsed) {
        panic!("{}\n{source}", error.emit_to_string(source));
    }
}

#[test]
fn the_whole_prelude_is_valid() {
    validate(TEXT);
}

#[test]
fn every_function_is_found_and_valid_alone() {
    let declared = TEXT.lines().filter(|line| line.starts_with("fn ")).count();
    assert_eq!(names().count(), declared + FOUR.len());
    for name in names() {
        let text = functions_for(&format!("{name}(x)"));
        assert!(text.contains(&format!("fn {name}(")), "{name}");
        validate(&text);
    }
}

#[test]
fn every_signature_of_every_op_is_valid() {
    for op in Op::ALL {
        for signature in op.row().signatures {
            validate(&module(signature));
        }
    }
}

#[test]
fn no_function_is_left_unused() {
    // What reductions, index arithmetic and constant bounds call rather than the op table.
    let others = "inf() is_nan() div_floor() mod_floor() max_to() min_to() exp_4() tanh_4() sigmoid4()";
    let code: String = Op::ALL.iter().flat_map(|op| op.row().signatures).map(|s| s.wgsl).collect();
    let text = functions_for(&(code + others));
    for name in names() {
        assert!(text.contains(&format!("fn {name}(")), "{name} is called by nothing");
    }
}

#[test]
fn functions_for_four_lanes_are_those_for_one_with_other_types() {
    let text = functions_for("keep_nan4(x, y)");
    assert_eq!(items_of(&text), ["magnitude4", "is_nan4", "keep_nan4"]);
    assert!(
        text.contains("fn is_nan4(x: vec4<f32>) -> vec4<bool> {\n    return magnitude4(x) > vec4<u32>(0x7f800000u);")
    );
    assert_eq!((four("tanh_").as_deref(), four("erf")), (Some("tanh_4"), None));
}

#[test]
fn functions_come_transitively_in_order_and_alone() {
    let text = functions_for("let y = max_ (x, 1.0); let is_nano = exp_x(min_);");
    let found: Vec<&str> = items_of(&text);
    assert_eq!(found, ["bits", "nan", "magnitude", "any_nan", "max_"]);
    assert_eq!(functions_for("let y = max(x, 1.0);"), "");
    assert_eq!(functions_for(""), "");
}

/// The names declared in `text`.
fn items_of(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("fn ")?.split('(').next()).collect()
}

#[test]
fn nothing_but_functions_and_comments_is_at_module_level() {
    let mut inside = false;
    for line in TEXT.lines() {
        let starts = line.starts_with("fn ");
        assert!(inside || starts || line.is_empty() || line.starts_with("//"), "{line}");
        inside = (inside || starts) && line != "}";
    }
}
