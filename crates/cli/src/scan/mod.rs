//! Measuring a machine: ops, sizes and devices enter, the rows of a scan leave.
//!
//! In flow order: [`sizes`] reads how large things are, [`ops`] makes them, [`cell`] times one op at one size on all
//! devices in turn, [`sweep`] goes through ops and sizes within its time, [`transfers`] moves bytes to adapters and back, [`facts`]
//! has what else a report says.

pub mod cell;
pub mod facts;
pub mod ops;
pub mod sizes;
pub mod sweep;
pub mod transfers;
