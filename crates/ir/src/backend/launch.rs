//! A kernel of the caller's own, as plain data.

use super::Resident;
use std::sync::Arc;

/// A kernel in WGSL over memory that its caller manages (see [`Backend::allocate`](super::Backend::allocate)).
///
/// Buffer `i` is `@group(0) @binding(i) var<storage, read_write>`. If there are parameters, they come after the buffers as
/// `var<storage, read>`: bytes, a multiple of four of them. Memory of any other size is seen as whole words, at least one.
///
/// ```
/// use breakeven_ir::backend::Launch;
/// let launch = Launch { source: "..", entry: "main", buffers: &[], params: &7u32.to_ne_bytes(), workgroups: [1, 1, 1] };
/// assert_eq!(launch.params.len(), 4);
/// ```
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The module's text.
    pub source: &'a str,
    /// Its entry point.
    pub entry: &'a str,
    /// What it reads and writes.
    pub buffers: &'a [Arc<dyn Resident>],
    /// What it is told; may be empty.
    pub params: &'a [u8],
    /// How many workgroups in each dimension.
    pub workgroups: [u32; 3],
}
