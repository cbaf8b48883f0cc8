//! `breakeven bench`: groups of cases enter, what each took on every device leaves, with what went wrong.
//!
//! In flow order: [`groups`] is the table of what there is; [`suite`] goes through it in passes, each group in a fresh
//! process ([`process`], or this one: [`job`] is what the two say to each other) after a look at the machine ([`calm`]).
//! There [`child`] opens an engine, [`guard`] compares its devices before and after, [`measure`] times the cases: those of
//! [`calls`], [`batch`], [`queue`], [`cold`] and [`transfer`], and the same code twice ([`null`]). [`check`] compares
//! results before times. [`baselines`] keeps runs, [`judge`] compares with them, and [`trial`] tries that. [`inject`] has faults for
//! tests.

pub mod baselines;
pub mod batch;
pub mod calls;
pub mod calm;
pub mod check;
pub mod child;
pub mod cold;
pub mod groups;
pub mod guard;
pub mod inject;
pub mod job;
pub mod judge;
pub mod measure;
pub mod null;
pub mod process;
pub mod queue;
pub mod suite;
pub mod transfer;
pub mod trial;
