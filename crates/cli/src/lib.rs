//! The command line as a library: what enters is plain text and files, what leaves are tensors, files and documents.
//!
//! In flow order: [`args`] says what was asked for; [`expr`] makes an [`expr::Ast`] of an expression, [`arrays`] reads
//! array files; [`record`] makes tensors of both with the [`functions`] there are; [`cmd`] runs a subcommand.
//! It is a library as well as a binary so that tests and fuzzers meet its front doors without starting a process.

#![forbid(unsafe_code)]

pub mod args;
pub mod arrays;
pub mod cmd;
pub mod expr;
pub mod failure;
pub mod functions;
pub mod record;

mod bench;
mod inputs;
mod interrupt;
mod memory;
mod outputs;
mod print;
mod profile;
mod progress;
mod regret;
mod scan;
mod simulate;
mod timing;
