//! What enters the command line, as plain values: expressions become an [`expr::Ast`], array files become an
//! [`arrays::HostArray`]. It is a library as well as a binary so that tests and fuzzers meet these two front doors
//! without starting a process.

#![forbid(unsafe_code)]

pub mod arrays;
pub mod expr;
