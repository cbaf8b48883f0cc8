//! Walks a recorded graph: every node once, arguments first, without recursion; and the key of its structure.

use super::{Kind, Movement, Node, Tensor};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Addresses and the small numbers of nodes and indices: multiplying by an odd constant and folding the high bits down is
/// hash enough, and a third of the time of the default hasher for graphs of a dozen nodes.
#[derive(Default, Clone, Copy)]
pub(crate) struct AddressHasher(u64);
impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        rest.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
}
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

/// The nodes of a graph in an order in which arguments come first.
pub(crate) struct Walk<'a> {
    order: Vec<&'a Tensor>,
    index: FastMap<usize, u32>,
}

impl<'a> Walk<'a> {
    /// Everything that `outputs` need.
    pub(crate) fn new(outputs: &[&'a Tensor]) -> Walk<'a> {
        let mut walk = Walk { order: Vec::with_capacity(32), index: FastMap::default() };
        walk.index.reserve(32);
        let mut stack: Vec<(&'a Tensor, bool)> = Vec::with_capacity(32);
        stack.extend(outputs.iter().rev().map(|t| (*t, false)));
        while let Some((tensor, ready)) = stack.pop() {
            let address = tensor.address() as usize;
            if walk.index.contains_key(&address) {
                continue;
            }
            if ready {
                walk.index.insert(address, walk.order.len() as u32);
                walk.order.push(tensor);
                continue;
            }
            stack.push((tensor, true));
            let first = stack.len();
            tensor.0.kind.for_each_arg(|arg| stack.push((arg, false)));
            stack[first..].reverse();
        }
        walk
    }

    pub(crate) fn order(&self) -> &[&'a Tensor] {
        &self.order
    }

    /// The place of `tensor` in the order.
    pub(crate) fn index(&self, tensor: &Tensor) -> u32 {
        self.index[&(tensor.address() as usize)]
    }
}

/// The structure of a graph: equal for graphs that differ only in the data of their leaves. What plans are cached by.
///
/// ```
/// use breakeven_ir::{Tensor, plan_key};
/// let f = |v: f32| { let x = Tensor::from_vec(vec![v], [1]).unwrap(); (&x + 1.0).unwrap() };
/// assert_eq!(plan_key(&[&f(1.0)]).0, plan_key(&[&f(2.0)]).0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanKey(Vec<u64>);

impl PlanKey {
    /// The structure as words: kinds, dtypes, shapes, parameters, and arguments by their place. There are no addresses in
    /// them, so that they are the same in every process that has the same op table.
    ///
    /// ```
    /// use breakeven_ir::{Tensor, plan_key};
    /// let x = Tensor::from_vec(vec![1.0f32], [1]).unwrap();
    /// assert_ne!(plan_key(&[&x.exp().unwrap()]).0.words(), plan_key(&[&x.log().unwrap()]).0.words());
    /// ```
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

impl Hash for PlanKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut hasher = AddressHasher::default();
        self.0.iter().for_each(|&word| hasher.write_u64(word));
        state.write_u64(hasher.finish());
    }
}

/// The key of a graph's structure and its leaves (data and inputs) in the order in which a plan expects them.
pub fn plan_key<'a>(outputs: &[&'a Tensor]) -> (PlanKey, Vec<&'a Tensor>) {
    let walk = Walk::new(outputs);
    let mut key = Vec::with_capacity(walk.order.len() * 4 + outputs.len() + 1);
    let mut leaves = Vec::new();
    for tensor in walk.order() {
        let Node { kind, shape, dtype } = &*tensor.0;
        // Tag and dtype; then whatever parameters the kind has; then arguments by their place.
        let mut tag = |tag: u64, extra: u64| key.push(tag | (*dtype as u64) << 8 | extra << 16);
        match kind {
            Kind::Input(_) | Kind::Data(_) => {
                leaves.push(*tensor);
                tag(1, shape.rank() as u64);
                key.extend(shape.iter().map(|&d| d as u64));
            }
            Kind::Const(value) => tag(2, u64::from(value.bits())),
            Kind::Arange { start, step } => {
                tag(3, u64::from(start.bits()));
                key.extend([u64::from(step.bits()), shape[0] as u64]);
            }
            Kind::Count { axes, .. } => tag(4, u64::from(axes.bits())),
            Kind::Map { op, signature, .. } => tag(5, *op as u64 | u64::from(*signature) << 8),
            Kind::Reduce { op, axes, .. } => tag(6, *op as u64 | u64::from(axes.bits()) << 8),
            Kind::Scan { op, axis, .. } => tag(7, *op as u64 | u64::from(*axis) << 8),
            Kind::Matmul { .. } => tag(8, 0),
            Kind::Concat { args, axis } => tag(9, args.len() as u64 | u64::from(*axis) << 32),
            Kind::Take { axis, .. } => tag(10, u64::from(*axis)),
            Kind::Move { by, .. } => {
                tag(11, shape.rank() as u64);
                key.extend(shape.iter().map(|&d| d as u64));
                movement_words(by, &mut key);
            }
        }
        kind.for_each_arg(|arg| key.push(u64::from(walk.index(arg))));
    }
    key.push(u64::MAX);
    key.extend(outputs.iter().map(|t| u64::from(walk.index(t))));
    (PlanKey(key), leaves)
}

/// A movement as words; lengths come first, so that no two movements read the same.
fn movement_words(by: &Movement, key: &mut Vec<u64>) {
    let ints = |tag: u64, values: &[isize], key: &mut Vec<u64>| {
        key.push(tag | (values.len() as u64) << 8);
        key.extend(values.iter().map(|&v| v as u64));
    };
    match by {
        // Their shapes are in the key already, and they read elements in row-major order.
        Movement::Reshape(_) | Movement::Squeeze(_) | Movement::ExpandDims(_) => key.push(1),
        Movement::BroadcastTo(_) => key.push(2),
        Movement::Permute(axes) => ints(3, &axes.iter().map(|&a| isize::from(a)).collect::<Vec<_>>(), key),
        Movement::Flip(axes) => ints(4, axes, key),
        Movement::Slice(slices) => {
            key.push(5 | (slices.len() as u64) << 8);
            for slice in slices {
                let word = |bound: Option<isize>| bound.map_or(i64::MIN as u64, |b| b as u64);
                key.extend([word(slice.start), word(slice.stop), slice.step as u64]);
            }
        }
        Movement::Pad(widths, value) => {
            key.push(6 | (widths.len() as u64) << 8 | u64::from(value.bits()) << 32);
            key.extend(widths.iter().flat_map(|&(a, b)| [a as u64, b as u64]));
        }
        Movement::Windows { axes, sizes, strides } => {
            key.push(7 | (axes.len() as u64) << 8);
            key.extend(axes.iter().map(|&a| u64::from(a)));
            key.extend(sizes.iter().chain(strides).map(|&n| n as u64));
        }
    }
}
