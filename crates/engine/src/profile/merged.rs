//! The call trees of all threads as one: frames enter, nodes leave, merged by their path, each with its self time, its total
//! and what of that was waiting.
//!
//! Nothing here recurses: a file may hold a tree of any depth.

use super::shares::thousandths;
use super::{FrameKind, Profile, ThreadRecord};
use serde::Serialize;
use std::collections::HashMap;

/// What stands between the names of a path.
pub(super) const BELOW: &str = " > ";

/// A place in the merged call tree.
///
/// ```
/// use breakeven::profile::Profile;
/// let analysis = Profile::example().analysis()?;
/// let root = &analysis.tree[0];
/// assert_eq!((root.depth, root.total_ns), (0, analysis.thread_ns));
/// let sum: u64 = analysis.tree.iter().map(|node| node.self_ns).sum();
/// assert_eq!(sum, analysis.thread_ns);
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Node {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: FrameKind,
    /// How far from the root.
    pub depth: usize,
    /// Its caller's place in the list; none for the root. Callers come before what they call.
    pub parent: Option<usize>,
    /// How many spans.
    pub count: u64,
    /// Their time, with that of nodes below.
    pub total_ns: u64,
    /// Their time without that of nodes below.
    pub self_ns: u64,
    /// What of the total was waiting, which is no work.
    pub waiting_ns: u64,
    /// The part of all threads' time that is its self time, in thousandths, which add up to 1000 over the tree.
    pub self_thousandths: u64,
}

impl FrameKind {
    /// Is its self time waiting? Waiting is never counted as work.
    ///
    /// ```
    /// use breakeven::profile::FrameKind;
    /// assert!(FrameKind::DeviceWait.is_waiting() && !FrameKind::Batch.is_waiting());
    /// ```
    pub const fn is_waiting(self) -> bool {
        matches!(self, FrameKind::DeviceWait | FrameKind::Idle | FrameKind::Wait)
    }

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            FrameKind::Thread => "thread",
            FrameKind::Stage => "stage",
            FrameKind::Batch => "batch",
            FrameKind::Phase => "phase",
            FrameKind::DeviceWait => "device_wait",
            FrameKind::Idle => "idle",
            FrameKind::Wait => "wait",
        }
    }
}

/// The merged tree, and where each frame of each thread is in it.
pub(super) struct Merged {
    pub(super) nodes: Vec<Node>,
    pub(super) places: Vec<Vec<usize>>,
}

/// Merges threads for which `wanted` holds; the others have no places.
pub(super) fn merged(profile: &Profile, wanted: impl Fn(&ThreadRecord) -> bool) -> Merged {
    let root = |thread: &ThreadRecord| Node {
        name: thread.name.clone(),
        kind: FrameKind::Thread,
        depth: 0,
        parent: None,
        count: 0,
        total_ns: 0,
        self_ns: 0,
        waiting_ns: 0,
        self_thousandths: 0,
    };
    let chosen: Vec<bool> = profile.threads.iter().map(wanted).collect();
    let mut nodes: Vec<Node> = Vec::new();
    let mut known: HashMap<(usize, &str, &'static str), usize> = HashMap::new();
    let mut places: Vec<Vec<usize>> = Vec::with_capacity(profile.threads.len());
    for (thread, _) in profile.threads.iter().zip(&chosen).map(|(t, c)| (t, *c)) {
        places.push(Vec::new());
        let at = places.len() - 1;
        if !chosen[at] {
            continue;
        }
        for frame in &thread.frames {
            let place = match frame.parent {
                None => {
                    if nodes.is_empty() {
                        nodes.push(root(thread));
                    } else if nodes[0].name != thread.name {
                        nodes[0].name = "all threads".to_owned();
                    }
                    0
                }
                Some(parent) => {
                    let parent = places[at][parent as usize];
                    *known.entry((parent, &frame.name, frame.kind.name())).or_insert_with(|| {
                        let depth = nodes[parent].depth + 1;
                        let (name, kind) = (frame.name.clone(), frame.kind);
                        nodes.push(Node { name, kind, depth, parent: Some(parent), ..root(thread) });
                        nodes.len() - 1
                    })
                }
            };
            let node = &mut nodes[place];
            node.count = node.count.saturating_add(frame.count);
            node.total_ns += frame.total_ns;
            node.self_ns += frame.self_ns;
            places[at].push(place);
        }
    }
    for at in (0..nodes.len()).rev() {
        if nodes[at].kind.is_waiting() {
            nodes[at].waiting_ns += nodes[at].self_ns;
        }
        if let Some(parent) = nodes[at].parent {
            nodes[parent].waiting_ns += nodes[at].waiting_ns;
        }
    }
    sorted(nodes, places)
}

/// Callers first, of one caller's nodes the largest first.
fn sorted(nodes: Vec<Node>, mut places: Vec<Vec<usize>>) -> Merged {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            below[parent].push(at);
        }
    }
    // The last one is taken from the stack first.
    let key = |at: &usize| (nodes[*at].total_ns, std::cmp::Reverse((&nodes[*at].name, nodes[*at].kind.name())));
    below.iter_mut().for_each(|list| list.sort_by(|a, b| key(a).cmp(&key(b))));
    let mut order = Vec::with_capacity(nodes.len());
    let mut stack: Vec<usize> = if nodes.is_empty() { Vec::new() } else { vec![0] };
    while let Some(at) = stack.pop() {
        order.push(at);
        stack.append(&mut below[at]);
    }
    let mut now = vec![0; nodes.len()];
    order.iter().enumerate().for_each(|(new, old)| now[*old] = new);
    let mut nodes: Vec<Node> = order
        .iter()
        .map(|old| Node { parent: nodes[*old].parent.map(|parent| now[parent]), ..nodes[*old].clone() })
        .collect();
    let shares = thousandths(&nodes.iter().map(|node| node.self_ns).collect::<Vec<_>>());
    nodes.iter_mut().zip(shares).for_each(|(node, share)| node.self_thousandths = share);
    places.iter_mut().flatten().for_each(|place| *place = now[*place]);
    Merged { nodes, places }
}

/// The names from the root's first node down to this one.
pub(super) fn path(nodes: &[Node], at: usize) -> String {
    let mut names = Vec::new();
    let mut here = Some(at);
    while let Some(node) = here.map(|at| &nodes[at]).filter(|node| node.parent.is_some()) {
        names.push(node.name.as_str());
        here = node.parent;
    }
    names.reverse();
    if names.is_empty() { nodes[at].name.clone() } else { names.join(BELOW) }
}
