//! Recipes that come back, and texts that are none. Random graphs of every operation are in `tests/tests/recipes.rs`.

use crate::{DType, Op, ReduceOp, Result, ScanOp, Slice, Tensor, parse_recipe, plan_key, recipe, s};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn input(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::input(name, dtype, dims).unwrap()
}

/// A graph with every kind of node in it.
fn everything() -> Vec<Tensor> {
    let all = || -> Result<Vec<Tensor>> {
        let x = input("x", DType::F32, &[4, 6]);
        let w = Tensor::from_slice(&[0.5f32; 12], [6, 2])?;
        let n = input("a name with % and \n in it ", DType::I32, &[3]);
        let u = input("", DType::U32, &[2]);
        let y = x.matmul(&w)?.gelu()?;
        let moved = x.transpose()?.flip(&[0])?.pad(&[(1, 0), (0, 2)], f32::NAN)?;
        let moved = moved.slice(&[s(1..).step(2), Slice { start: None, stop: Some(-1), step: -1 }])?;
        let windows = x.windows(&[0, 1], &[2, 3], &[1, 2])?.reshape(&[-1])?.squeeze(&[])?;
        let taken = x.take(&n, 1)?.take(&u, 0)?.tile(&[2])?;
        let ranges = (Tensor::arange(-0.0f32, 4.0, 1.0)?.expand_dims(&[1])? * &y)?;
        let scans = x.cumsum(1)?.gt(&x.cummax(0)?)?.all(&[0], true)?;
        let joined = Tensor::stack(&[&y, &y], 0)?.broadcast_to([3, 2, 4, 2])?;
        let softmax = x.softmax(1)?.var(&[0], 1, false)?;
        Ok(vec![moved, windows, taken, ranges, scans, joined, softmax, y.clone(), y])
    };
    all().unwrap()
}

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

#[test]
fn what_comes_back_is_the_same_graph() {
    let graph = everything();
    let text = recipe(&refs(&graph));
    let again = parse_recipe(&text).unwrap();
    assert_eq!(plan_key(&refs(&again.outputs)).0, plan_key(&refs(&graph)).0);
    let names: Vec<&str> = again.leaves.iter().filter_map(|l| l.tensor.as_input()).map(|i| i.name()).collect();
    assert!(names.contains(&"a name with % and \n in it ") && names.contains(&""), "{names:?}");
    // Written again it is the same but for data, which has become inputs.
    let leaf = |l: &str| l.contains(" input") || l.ends_with(" data");
    let without_leaves = |text: &str| text.lines().filter(|line| !leaf(line)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(without_leaves(&recipe(&refs(&again.outputs))), without_leaves(&text));
}

#[test]
fn constants_are_exact_to_the_bit() {
    let x = input("x", DType::F32, &[2]);
    for bits in [0u32, 0x8000_0000, 1, 0x7fc0_0001, 0xff80_0000, 0x3f80_0001, u32::MAX] {
        let y = (&x + f32::from_bits(bits)).unwrap();
        let again = parse_recipe(&recipe(&[&y])).unwrap();
        assert_eq!(plan_key(&[&again.outputs[0]]).0, plan_key(&[&y]).0, "{bits:x}");
    }
}

#[test]
fn every_name_stands_for_one_operation() {
    let mut names: Vec<&str> = Op::ALL.iter().map(|op| op.row().name).collect();
    names.extend(ReduceOp::ALL.map(ReduceOp::name));
    names.extend(ScanOp::ALL.map(ScanOp::name));
    names.extend(["input", "data", "const", "arange", "count", "matmul", "concat", "take", "outputs"]);
    names.extend(["reshape", "permute", "squeeze", "expand_dims", "broadcast_to", "slice", "flip", "pad", "windows"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn values_are_put_into_leaves() {
    let x = input("x", DType::F32, &[2]);
    let w = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let again = parse_recipe(&recipe(&[&(&x * &w).unwrap()])).unwrap();
    assert_eq!(again.leaves.iter().map(|leaf| leaf.is_data).collect::<Vec<_>>(), [false, true]);
    let only_data = |with: &Tensor| again.bound(|leaf| Ok(leaf.is_data.then(|| with.clone())));
    let outputs = only_data(&w).unwrap();
    let (_, leaves) = plan_key(&[&outputs[0]]);
    assert!(leaves[0].as_input().is_some() && leaves[1].as_data().is_some());
    let error = only_data(&Tensor::from_slice(&[1i32, 2], [2]).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "leaf `data 1` of the recipe is f32[2], but i32[2] was given");
}

#[test]
fn data_has_a_name_that_no_input_has() {
    let x = input("data 1", DType::F32, &[2]);
    let w = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let again = parse_recipe(&recipe(&[&(&x * &w).unwrap()])).unwrap();
    assert_eq!(again.leaves[1].tensor.as_input().unwrap().name(), "data 1'");
}

#[test]
fn indices_stay_in_range() {
    let bound = |indices: &dyn Fn(&Tensor) -> Tensor, dtype: DType| {
        let (table, leaf) = (input("table", DType::F32, &[7, 9]), input("at", dtype, &[5]));
        let y = table.take(&indices(&leaf), 0).unwrap().take(&indices(&leaf), 1).unwrap();
        let again = parse_recipe(&recipe(&[&y])).unwrap();
        let of =
            |name: &str| again.leaves.iter().find(|l| l.tensor.as_input().unwrap().name() == name).unwrap().index_below;
        assert_eq!(of("table"), None);
        of("at")
    };
    assert_eq!(bound(&Tensor::clone, DType::I32), Some(7), "the smaller of the two axes");
    assert_eq!(bound(&|t| t.flip(&[0]).unwrap(), DType::U32), Some(7));
    assert_eq!(bound(&|t| (t + 1).unwrap(), DType::I32), Some(1), "after arithmetic only 0 is safe");
    assert_eq!(bound(&|t| t.floor().unwrap().cast(DType::I32).unwrap(), DType::F32), Some(1));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let mistakes = [
        ("", "line 1 of the recipe: expected `recipe 1`, found ``"),
        ("recipe 2\noutputs 0\n", "line 1 of the recipe: expected `recipe 1`, found `recipe 2`"),
        ("recipe 1\n", "line 2 of the recipe: `` is no node"),
        ("recipe 1\nf32 input x", "line 2 of the recipe: the text ends without outputs"),
        ("recipe 1\noutputs\n", "it has no outputs"),
        ("recipe 1\noutputs 0\n", "there is no node 0 before it"),
        ("recipe 1\nf32 input x\noutputs 0\nf32 input y\n", "line 4 of the recipe: nothing may come after"),
        ("recipe 1\nf64 input x\noutputs 0\n", "`f64` is no dtype"),
        ("recipe 1\nf32[1,2 input x\noutputs 0\n", "`f32[1,2` is no type"),
        ("recipe 1\nf32[9999999999,9999999999] input x\noutputs 0\n", "more elements than memory can address"),
        ("recipe 1\nf32[1,1,1,1,1,1,1,1,1] input x\noutputs 0\n", "more than 8 entries"),
        ("recipe 1\nf32[2] input x\nf32[2] add 0\noutputs 1\n", "the line is too short"),
        ("recipe 1\nf32[2] input x\nf32[2] exp 0 0\noutputs 1\n", "`0` is too much"),
        ("recipe 1\nf32[2] input x\nf32[2] exp 1\noutputs 1\n", "there is no node 1 before it"),
        ("recipe 1\ni32[2] input x\nf32[2] exp 0\noutputs 1\n", "`exp` is not defined for these dtypes"),
        ("recipe 1\nf32[2] input x\nf32[2] expp 0 by\noutputs 1\n", "there is no operation `expp`"),
        ("recipe 1\nbool const 2\noutputs 0\n", "`2` is no bool in hexadecimal"),
        ("recipe 1\nf32[2] input x\nf32[1] sum 0 axes 3\noutputs 1\n", "axis 3 is out of range"),
        ("recipe 1\nf32[2] input x\nf32[1] sum 0 axes 0,0\noutputs 1\n", "axis 0 is there twice"),
        ("recipe 1\nf32[2] input x\nf32[2] reshape 0 by 2\noutputs 1\n", "`reshape` changes nothing here"),
        ("recipe 1\nf32[2] input x\nf32[2] windows 0 by 200:1:1\noutputs 1\n", "axis 200 is out of range"),
        ("recipe 1\nf32 input %zz\noutputs 0\n", "after % there must be two digits"),
    ];
    for (text, message) in mistakes {
        let error = parse_recipe(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse_recipe(&text);
        let _ = parse_recipe(&format!("recipe 1\n{text}"));
    }

    /// Lines, words and bytes of a good recipe, exchanged, dropped and doubled.
    #[test]
    fn a_damaged_recipe_is_read_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..6, any::<prop::sample::Index>()), 1..6),
    ) {
        let mut text = recipe(&refs(&everything()));
        for (at, how, other) in edits {
            let words: Vec<String> = text.split_inclusive([' ', '\n', ',', ':']).map(str::to_owned).collect();
            // What was cut down to nothing has no word left to damage.
            if words.is_empty() {
                break;
            }
            let (at, other) = (at.index(words.len()), other.index(words.len()));
            let mut words = words;
            match how {
                0 => words.swap(at, other),
                1 => drop(words.remove(at)),
                2 => words.insert(at, words[other].clone()),
                3 => words[at].insert(0, '9'),
                4 => words[at].insert(0, '-'),
                _ => words.truncate(at + 1),
            }
            text = words.concat();
        }
        if let Ok(read) = parse_recipe(&text) {
            // What was read can be written and read again.
            let again = parse_recipe(&recipe(&refs(&read.outputs))).unwrap();
            prop_assert_eq!(plan_key(&refs(&again.outputs)).0, plan_key(&refs(&read.outputs)).0);
        }
    }
}
