//! The element types, and single values of them.
//!
//! A [`Scalar`] enters the graph as a constant; [`Element`] ties a Rust type to its [`DType`], so that slices go in
//! and come out typed. Lanes are always 32 bits wide while they are being computed (a bool is 0 or 1); in memory a
//! bool is one byte, as in numpy.

use std::fmt;

/// The type of a tensor's elements.
///
/// ```
/// use breakeven_ir::DType;
/// assert_eq!(DType::Bool.size_bytes(), 1);
/// assert_eq!(DType::F32.to_string(), "f32");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// 32-bit two's complement; arithmetic wraps.
    I32,
    /// 32-bit unsigned; arithmetic wraps.
    U32,
    /// IEEE 754 binary32.
    F32,
}

impl DType {
    /// Every dtype, in promotion order.
    pub const ALL: [DType; 4] = [DType::Bool, DType::I32, DType::U32, DType::F32];

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::Bool => 1,
            _ => 4,
        }
    }

    /// The name that the command line and the error messages use.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::F32 => "f32",
        }
    }

    /// The dtype that both sides of a binary operation are cast to: bool gives way to every number, integers give
    /// way to f32. i32 and u32 have no common type here (numpy's would be i64), so they give `None`.
    pub fn promote(self, other: DType) -> Option<DType> {
        use DType::*;
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Bool, b) => Some(b),
            (a, Bool) => Some(a),
            (F32, _) | (_, F32) => Some(F32),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust type that can be a tensor's element.
///
/// ```
/// use breakeven_ir::{DType, Element};
/// assert_eq!((<f32 as Element>::DTYPE, true.scalar().to_f64()), (DType::F32, 1.0));
/// ```
pub trait Element: Copy + Send + Sync + bytemuck::NoUninit + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// The value as lane bits.
    fn scalar(self) -> Scalar;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident, $bits:expr;)*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            fn scalar(self) -> Scalar {
                let bits: fn($rust) -> u32 = $bits;
                Scalar { dtype: DType::$dtype, bits: bits(self) }
            }
        }
        impl From<$rust> for Scalar {
            fn from(value: $rust) -> Scalar {
                value.scalar()
            }
        }
    )*};
}
element! {
    f32 => F32, f32::to_bits;
    i32 => I32, |v| v as u32;
    u32 => U32, |v| v;
    bool => Bool, u32::from;
}

/// One value of some dtype, held as the 32 bits of its lane. Equality is by bits, so NaN equals itself and 0 differs
/// from -0: what constant folding and plan keys need.
///
/// ```
/// use breakeven_ir::{DType, Scalar};
/// let two = Scalar::from(2.0f32);
/// assert_eq!((two.dtype(), two.to_f64()), (DType::F32, 2.0));
/// assert_eq!(two.cast(DType::I32), Scalar::from(2i32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    dtype: DType,
    bits: u32,
}

impl Scalar {
    /// A scalar of `dtype` from its lane bits (a bool's are 0 or 1).
    pub const fn from_bits(dtype: DType, bits: u32) -> Scalar {
        Scalar { dtype, bits }
    }

    /// Zero (false) of `dtype`.
    pub const fn zero(dtype: DType) -> Scalar {
        Scalar { dtype, bits: 0 }
    }

    /// Its dtype.
    pub const fn dtype(self) -> DType {
        self.dtype
    }

    /// Its lane bits.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Its value; every scalar fits an f64 exactly.
    pub fn to_f64(self) -> f64 {
        match self.dtype {
            DType::Bool | DType::U32 => f64::from(self.bits),
            DType::I32 => f64::from(self.bits as i32),
            DType::F32 => f64::from(f32::from_bits(self.bits)),
        }
    }

    /// The value in another dtype: floats truncate and saturate into integers, NaN becomes 0, integers wrap among
    /// each other, and anything but zero is `true`.
    pub fn cast(self, to: DType) -> Scalar {
        let bits = match (self.dtype, to) {
            (a, b) if a == b => self.bits,
            (DType::F32, DType::Bool) => u32::from(f32::from_bits(self.bits) != 0.0),
            (_, DType::Bool) => u32::from(self.bits != 0),
            (DType::F32, DType::I32) => f32::from_bits(self.bits) as i32 as u32,
            (DType::F32, DType::U32) => f32::from_bits(self.bits) as u32,
            (DType::I32, DType::F32) => (self.bits as i32 as f32).to_bits(),
            (_, DType::F32) => (self.bits as f32).to_bits(),
            _ => self.bits,
        };
        Scalar { dtype: to, bits }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            DType::Bool => write!(f, "{}", self.bits != 0),
            DType::I32 => write!(f, "{}", self.bits as i32),
            DType::U32 => write!(f, "{}u", self.bits),
            DType::F32 => write!(f, "{:?}", f32::from_bits(self.bits)),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
