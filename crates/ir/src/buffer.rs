//! Host memory that a tensor's data lives in: shared, immutable, with whoever owns it kept alive.
//!
//! A [`Buffer`] is a range of some owner's bytes. Owners are a `Vec` that was given away, `bytes::Bytes`, a mapped
//! file, or a block of the engine's memory pool that goes back to it when the last tensor lets go.

use crate::backend::{Resident, RunError};
use crate::dtype::Element;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Something that owns bytes. They must not change while it is shared.
///
/// ```
/// use breakeven_ir::HostBytes;
/// assert_eq!(bytes::Bytes::from_static(b"abc").as_bytes(), b"abc");
/// ```
pub trait HostBytes: Send + Sync + 'static {
    /// All of its bytes, at the same address every time.
    fn as_bytes(&self) -> &[u8];

    /// All of its bytes, or why they can't be had: those that lie on a device have to be fetched or computed again.
    fn try_bytes(&self) -> std::result::Result<&[u8], RunError> {
        Ok(self.as_bytes())
    }

    /// How many values that lie only on a device were made one from the other to make this one.
    fn depth(&self) -> u32 {
        0
    }

    /// Where all of its bytes lie on a device, if they do.
    fn resident(&self) -> Option<&Arc<dyn Resident>> {
        None
    }
}

impl HostBytes for bytes::Bytes {
    fn as_bytes(&self) -> &[u8] {
        self
    }
}

/// A `Vec` of elements, kept as it was allocated.
struct Owned<T: Element>(Vec<T>);
impl<T: Element> HostBytes for Owned<T> {
    fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A shared range of bytes.
///
/// ```
/// use breakeven_ir::Buffer;
/// let buffer = Buffer::from_vec(vec![1.0f32, 2.0]);
/// assert_eq!(buffer.as_bytes().len(), 8);
/// ```
#[derive(Clone)]
pub struct Buffer {
    owner: Arc<dyn HostBytes>,
    range: Range<usize>,
}

impl Buffer {
    /// All bytes of `owner`.
    pub fn new(owner: Arc<dyn HostBytes>) -> Buffer {
        let range = 0..owner.as_bytes().len();
        Buffer { owner, range }
    }

    /// All bytes of `owner`, of which it is known that there are `len`: they need not be on the host yet.
    pub fn with_len(owner: Arc<dyn HostBytes>, len: usize) -> Buffer {
        Buffer { owner, range: 0..len }
    }

    /// The bytes, or why they can't be had.
    pub fn try_bytes(&self) -> std::result::Result<&[u8], RunError> {
        Ok(self.owner.try_bytes()?.get(self.range.clone()).unwrap_or(&[]))
    }

    /// How many bytes there are, without asking for them.
    pub fn len_bytes(&self) -> usize {
        self.range.len()
    }

    /// See [`HostBytes::depth`].
    pub fn depth(&self) -> u32 {
        self.owner.depth()
    }

    /// Where the bytes lie on a device, if they do and this is all of them.
    pub fn resident(&self) -> Option<&Arc<dyn Resident>> {
        self.owner.resident().filter(|resident| self.range == (0..resident.len_bytes()))
    }

    /// Takes a `Vec` over without copying it.
    pub fn from_vec<T: Element>(data: Vec<T>) -> Buffer {
        Buffer::new(Arc::new(Owned(data)))
    }

    /// A part of this buffer; `None` if the range leaves it.
    pub fn slice(&self, range: Range<usize>) -> Option<Buffer> {
        if range.start > range.end || range.end > self.range.len() {
            return None;
        }
        let range = self.range.start + range.start..self.range.start + range.end;
        Some(Buffer { owner: self.owner.clone(), range })
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.owner.as_bytes().get(self.range.clone()).unwrap_or(&[])
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.range.len())
    }
}

/// The element types that may be read straight out of memory. A bool may not be made from arbitrary bytes, so bools
/// are read as `u8`.
///
/// ```
/// use breakeven_ir::{DType, Readable};
/// assert_eq!(<u8 as Readable>::READS, DType::Bool);
/// ```
pub trait Readable: bytemuck::AnyBitPattern + Send + Sync {
    /// The dtype whose memory this reads.
    const READS: crate::DType;
}
impl Readable for f32 {
    const READS: crate::DType = crate::DType::F32;
}
impl Readable for i32 {
    const READS: crate::DType = crate::DType::I32;
}
impl Readable for u32 {
    const READS: crate::DType = crate::DType::U32;
}
impl Readable for u8 {
    const READS: crate::DType = crate::DType::Bool;
}

/// `bytes` as elements, or an error that says which dtype they hold. Bytes that are not aligned to four can't be
/// borrowed as f32: such foreign memory is `None`.
pub fn read_as<T: Readable>(bytes: &[u8], dtype: crate::DType) -> Result<Option<&[T]>> {
    if T::READS != dtype {
        return Err(Error::WrongDType { expected: T::READS, found: dtype });
    }
    Ok(bytemuck::try_cast_slice(bytes).ok())
}
