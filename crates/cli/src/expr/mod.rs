//! The expression language: source text enters, an [`Ast`] or a [`ParseError`] that knows its column leaves.
//!
//! The language is Python's expression grammar as numpy users write it, minus what has no meaning for arrays:
//! operators with Python's precedence, calls with keyword arguments, methods and attributes, indexing with slices,
//! tuples, lists, numbers and names, in statements separated by `;` or a new line.
//!
//! ```
//! use breakeven_cli::expr;
//!
//! let ast = expr::parse("h = relu(x @ w1); h @ w2").unwrap();
//! assert_eq!(ast.statements().len(), 2);
//!
//! let source = "softmax(x, axis=1";
//! let error = expr::parse(source).unwrap_err();
//! assert!(error.render(source, false).contains("`(` is never closed"));
//! ```

mod ast;
mod error;
mod lex;
mod parse;
mod precedence;

#[cfg(test)]
mod error_tests;
#[cfg(test)]
mod parse_tests;

pub use ast::{Arg, Ast, BinaryOp, Expr, Ident, Node, NodeId, Span, Statement, Subscript, SubscriptKind, UnaryOp};
pub use error::{ParseError, render};
pub use parse::parse;

/// The longest source that [`parse`] takes. Linux hands a program at most 128 KiB in one argument, so this is twice
/// what a command line can say; it bounds the syntax tree (at most one node of 64 bytes a source byte) to 16 MiB.
pub const MAX_SOURCE_BYTES: usize = 256 * 1024;

/// How deep operands, brackets, prefix operators and `**` may nest. The parser recurses for these only; at this depth it
/// was measured to need less than 200 KiB of stack (600 KiB unoptimised), where Windows gives a main thread 1 MiB.
pub const MAX_DEPTH: usize = 200;
