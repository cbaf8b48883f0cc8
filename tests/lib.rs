//! Whole-system tests: what the library computes against a plain reference written apart from it.
//!
//! Here live the parts that the tests under `tests/` share, in flow order: `device` is what is tested, `faulty` a device
//! that fails, `hooked` one that waits or refuses, `watch` tells when a job was answered, `mix` submits jobs of all kinds
//! and checks every answer, `soak` does that for as long as one likes, `data` makes inputs, `reference` computes what must
//! come out and how far off it may be, `pair` records an operation on both sides at once, `program` and `recipe` make
//! random graphs of them, `compare` holds one against the other. `remembered` is what processes keep on disk. `browser`
//! opens the pages that reports are.
#![forbid(unsafe_code)]

pub mod browser;
pub mod compare;
pub mod data;
pub mod device;
pub mod faulty;
pub mod hooked;
pub mod mix;
pub mod pair;
pub mod program;
pub mod recipe;
pub mod reference;
pub mod remembered;
pub mod run;
pub mod soak;
pub mod views;
pub mod watch;
