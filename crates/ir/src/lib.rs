//! WHAT to compute. Pure: no unsafe code, no threads, no device.
#![forbid(unsafe_code)]

pub mod lane;
