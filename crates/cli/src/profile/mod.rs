//! What `breakeven profile` shows and runs: [`text`] for people, [`rerun`] for plans that are measured again.

mod columns;
pub mod rerun;
pub mod text;
