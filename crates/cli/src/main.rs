//! The binary `breakeven`.

#![forbid(unsafe_code)]

fn main() {}
