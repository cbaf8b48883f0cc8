//! Our own arms: requests enter the engine's queue, their answers leave; memory is had directly or by commands.
//!
//! In flow order: the queue as a [`pipe`]; the engine's memory as a [`pool`]; [`cases`] that are none of both. Without the
//! feature `ours` there are no arms, and the peers are measured among themselves.

#[cfg(feature = "ours")]
pub mod cases;
#[cfg(feature = "ours")]
pub mod pipe;
#[cfg(feature = "ours")]
pub mod pool;

#[cfg(not(feature = "ours"))]
pub mod cases {
    //! No arms: nothing enters, nothing leaves.

    use crate::arm::Fallible;
    use crate::case::Case;
    use crate::groups::ToDevice;

    /// None.
    pub fn kernel() -> Fallible<Vec<Case>> {
        Ok(Vec::new())
    }

    /// None.
    pub fn devices(_: ToDevice) -> Fallible<Vec<Case>> {
        Ok(Vec::new())
    }

    /// None.
    pub fn metrics() -> Fallible<Vec<Case>> {
        Ok(Vec::new())
    }

    /// None.
    pub fn subscribers() -> Fallible<Vec<Case>> {
        Ok(Vec::new())
    }
}
