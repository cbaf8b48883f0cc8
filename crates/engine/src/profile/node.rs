//! A frame of a call tree as it grows.

use super::model::{FrameKind, Phase};
use super::names::Name;

/// No frame.
pub(super) const NOBODY: u32 = u32::MAX;

/// All spans of one name below the same caller.
pub(super) struct Node {
    pub(super) name: Name,
    pub(super) kind: FrameKind,
    pub(super) parent: u32,
    pub(super) count: u64,
    pub(super) total_ns: u64,
    pub(super) self_ns: u64,
    /// Its children by what is quickly compared; not all of them, and some more than once.
    pub(super) near: Vec<Near>,
    /// Those that are phases.
    pub(super) phases: [u32; Phase::ALL.len()],
}

/// What a name is known by without reading it: the address and length of a static text, or a plan's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) kind: FrameKind,
}

/// A child that is found quickly.
pub(super) struct Near {
    pub(super) mark: Mark,
    pub(super) node: u32,
}

impl Node {
    /// One more span.
    pub(super) fn add(&mut self, total_ns: u64, self_ns: u64) {
        self.count += 1;
        self.total_ns += total_ns;
        self.self_ns += self_ns;
    }

    pub(super) fn new(name: Name, kind: FrameKind, parent: u32) -> Node {
        let phases = [NOBODY; Phase::ALL.len()];
        Node { name, kind, parent, count: 0, total_ns: 0, self_ns: 0, near: Vec::new(), phases }
    }
}
