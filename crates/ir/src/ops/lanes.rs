//! What a lane of the op table is: the table's name of a dtype enters; its Rust type, its [`DType`](crate::DType) and
//! its 32 bits leave.

/// The Rust type of a lane and the [`DType`] it holds, by the table's name for it.
#[macro_export]
#[doc(hidden)]
macro_rules! lane_type {
    (f32) => {
        f32
    };
    (i32) => {
        i32
    };
    (u32) => {
        u32
    };
    (bool) => {
        u32
    };
    (dtype f32) => {
        $crate::DType::F32
    };
    (dtype i32) => {
        $crate::DType::I32
    };
    (dtype u32) => {
        $crate::DType::U32
    };
    (dtype bool) => {
        $crate::DType::Bool
    };
}

/// Bits of a lane and back: what lets one slot hold any dtype.
///
/// ```
/// use breakeven_ir::LaneBits;
/// assert_eq!((-1i32).lane_bits(), u32::MAX);
/// assert_eq!(f32::from_lane_bits(1.5f32.lane_bits()), 1.5);
/// ```
pub trait LaneBits: Copy {
    /// A lane from its bits.
    fn from_lane_bits(bits: u32) -> Self;
    /// A lane's bits.
    fn lane_bits(self) -> u32;
}
impl LaneBits for f32 {
    fn from_lane_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
    fn lane_bits(self) -> u32 {
        self.to_bits()
    }
}
impl LaneBits for i32 {
    fn from_lane_bits(bits: u32) -> i32 {
        bits as i32
    }
    fn lane_bits(self) -> u32 {
        self as u32
    }
}
impl LaneBits for u32 {
    fn from_lane_bits(bits: u32) -> u32 {
        bits
    }
    fn lane_bits(self) -> u32 {
        self
    }
}
