//! Elements in any layout that a file may have enter; C order, native byte order and one of four dtypes leave.

use bytes::Bytes;
use half::f16;

use super::header::{Header, Stored};
use super::{ArrayError, HostArray, Kind};

/// The elements of a file as it stores them. `data` has exactly the bytes that `header` says.
pub(super) fn to_host(header: Header, data: Bytes) -> Result<HostArray, ArrayError> {
    let elements = Elements { header: &header, data: &data };
    // Whether the stored bytes are the wanted bytes, bools apart. One dimension has the same order both ways.
    let is_native = !elements.is_transposed()
        && (header.stored.size_bytes() == 1 || header.big_endian == cfg!(target_endian = "big"));

    let mut lost = 0;
    let (dtype, data) = match header.stored {
        Stored::Bool if is_native && data.iter().all(|&b| b <= 1) => (Kind::Bool, data),
        Stored::F32 if is_native && is_aligned(&data) => (Kind::F32, data),
        Stored::I32 if is_native && is_aligned(&data) => (Kind::I32, data),
        Stored::U32 if is_native && is_aligned(&data) => (Kind::U32, data),

        // numpy takes every byte but 0 for True, and other programs write such bytes.
        Stored::Bool => (Kind::Bool, elements.map(|[b]: [u8; 1]| u8::from(b != 0))),
        Stored::F32 => (Kind::F32, elements.map(f32::from_le_bytes)),
        Stored::I32 => (Kind::I32, elements.map(i32::from_le_bytes)),
        Stored::U32 => (Kind::U32, elements.map(u32::from_le_bytes)),

        Stored::F16 => (Kind::F32, elements.map(|b| f16::from_le_bytes(b).to_f32())),
        Stored::I8 => (Kind::I32, elements.map(|b| i32::from(i8::from_le_bytes(b)))),
        Stored::I16 => (Kind::I32, elements.map(|b| i32::from(i16::from_le_bytes(b)))),
        Stored::U8 => (Kind::U32, elements.map(|b| u32::from(u8::from_le_bytes(b)))),
        Stored::U16 => (Kind::U32, elements.map(|b| u32::from(u16::from_le_bytes(b)))),

        Stored::F64 => {
            let (data, overflows) = elements.map_counting(|b| {
                let wide = f64::from_le_bytes(b);
                let narrow = wide as f32;
                (narrow, narrow.is_infinite() && wide.is_finite())
            });
            lost = overflows;
            (Kind::F32, data)
        }
        Stored::I64 => {
            let value = i64::from_le_bytes;
            let fits = |b| i32::try_from(value(b)).is_ok();
            let (data, misfits) = elements.map_counting(|b| (value(b) as i32, !fits(b)));
            elements.refuse(misfits, fits, |b| value(b).into(), "i32")?;
            (Kind::I32, data)
        }
        Stored::U64 => {
            let value = u64::from_le_bytes;
            let fits = |b| u32::try_from(value(b)).is_ok();
            let (data, misfits) = elements.map_counting(|b| (value(b) as u32, !fits(b)));
            elements.refuse(misfits, fits, |b| value(b).into(), "u32")?;
            (Kind::U32, data)
        }
    };
    let notice = notice(header.stored, dtype, lost);
    Ok(HostArray { dtype, shape: header.shape, data, notice })
}

fn notice(stored: Stored, dtype: Kind, lost: usize) -> Option<String> {
    let from = match stored {
        Stored::Bool | Stored::F32 | Stored::I32 | Stored::U32 => return None,
        Stored::F16 => "f16",
        Stored::F64 => "f64",
        Stored::I8 => "i8",
        Stored::I16 => "i16",
        Stored::I64 => "i64",
        Stored::U8 => "u8",
        Stored::U16 => "u16",
        Stored::U64 => "u64",
    };
    let mut notice = format!("converted from {from} to {}", dtype.name());
    if lost > 0 {
        notice += &format!("; {lost} finite values are beyond its range and became infinite");
    }
    Some(notice)
}

fn is_aligned(data: &[u8]) -> bool {
    data.as_ptr().align_offset(align_of::<u32>()) == 0
}

/// A typed vector as the owner of [`Bytes`]: unlike a vector of bytes it is sure to be aligned.
struct Owner<T>(Vec<T>);

impl<T: bytemuck::NoUninit> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

struct Elements<'a> {
    header: &'a Header,
    data: &'a [u8],
}

impl Elements<'_> {
    fn is_transposed(&self) -> bool {
        self.header.fortran_order && self.header.count > 1 && self.header.shape.iter().filter(|&&n| n != 1).count() > 1
    }

    /// `convert` gets an element's bytes in little-endian order, whichever the file has.
    fn map<const N: usize, T>(&self, convert: impl Fn([u8; N]) -> T) -> Bytes
    where
        T: bytemuck::Pod + Send,
    {
        self.map_counting(|bytes| (convert(bytes), false)).0
    }

    /// Also counts the elements that `convert` marks. Counting instead of stopping keeps the loop without a branch.
    fn map_counting<const N: usize, T>(&self, convert: impl Fn([u8; N]) -> (T, bool)) -> (Bytes, usize)
    where
        T: bytemuck::Pod + Send,
    {
        let (stored, _) = self.data.as_chunks::<N>();
        let mut marked = 0;
        let mut convert = |mut bytes: [u8; N]| {
            if self.header.big_endian {
                bytes.reverse();
            }
            let (value, mark) = convert(bytes);
            marked += usize::from(mark);
            value
        };
        let values: Vec<T> = if self.is_transposed() {
            let mut values = vec![T::zeroed(); stored.len()];
            transpose(&self.header.shape, |to, from| values[to] = convert(stored[from]));
            values
        } else {
            stored.iter().map(|&bytes| convert(bytes)).collect()
        };
        (Bytes::from_owner(Owner(values)), marked)
    }

    /// An error that names the first element, in C order, that does not fit; if any was counted.
    fn refuse<const N: usize>(
        &self,
        misfits: usize,
        fits: impl Fn([u8; N]) -> bool,
        value: impl Fn([u8; N]) -> i128,
        to: &'static str,
    ) -> Result<(), ArrayError> {
        if misfits == 0 {
            return Ok(());
        }
        let (stored, _) = self.data.as_chunks::<N>();
        let in_order = |mut bytes: [u8; N]| {
            if self.header.big_endian {
                bytes.reverse();
            }
            bytes
        };
        let shape = &self.header.shape;
        let mut bad = stored.iter().enumerate().filter(|(_, bytes)| !fits(in_order(**bytes)));
        let first = if self.is_transposed() {
            bad.map(|(from, bytes)| (reordered(from, shape.iter()), bytes)).min_by_key(|(position, _)| *position)
        } else {
            bad.next()
        };
        match first {
            Some((position, bytes)) => {
                Err(ArrayError::OutOfRange { index: unravel(position, shape), value: value(in_order(*bytes)), to })
            }
            None => Ok(()),
        }
    }
}

/// Calls `visit(to, from)` once for each element: its position in C order and that in Fortran order.
///
/// What is adjacent in one order is far apart in the other, so the first and the last axis, which are adjacent in one
/// each, are walked in square blocks that stay in L1.
fn transpose(shape: &[usize], mut visit: impl FnMut(usize, usize)) {
    const BLOCK: usize = 32;
    let [rows, middle @ .., columns] = shape else { return };
    let (rows, columns) = (*rows, *columns);
    let between: usize = middle.iter().product();
    for inner in 0..between {
        let to_start = inner * columns;
        let from_start = reordered(inner, middle.iter().rev()) * rows;
        for row_block in (0..rows).step_by(BLOCK) {
            for column_block in (0..columns).step_by(BLOCK) {
                for row in row_block..rows.min(row_block + BLOCK) {
                    for column in column_block..columns.min(column_block + BLOCK) {
                        visit(row * between * columns + to_start + column, column * between * rows + from_start + row);
                    }
                }
            }
        }
    }
}

/// The index of the element at a position in C order.
fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, &extent) in index.iter_mut().zip(shape).rev() {
        *i = position % extent;
        position /= extent;
    }
    index
}

/// The position in the other order, given the extents from the one that varies fastest in this order: the shape to go
/// from Fortran order to C order, the shape in reverse to go back.
fn reordered<'a>(position: usize, fastest_first: impl Iterator<Item = &'a usize>) -> usize {
    let step = |(rest, other): (usize, usize), &extent: &usize| (rest / extent, other * extent + rest % extent);
    fastest_first.fold((position, 0), step).1
}
