//! Compiled programs: what is recorded enters, a program that was compiled once for each form of canvas leaves.

use crate::record::Key;
use breakeven::{Engine, Program};
use std::collections::HashMap;

/// Makes a program.
pub fn compile(key: &Key, engine: &Engine) -> breakeven::Result<Program> {
    let recorded = key.record().map_err(breakeven::Error::from)?;
    let inputs: Vec<_> = recorded.inputs.iter().collect();
    engine.compile(&inputs, &recorded.outputs.iter().collect::<Vec<_>>())
}

/// Compiled programs by what they do.
#[derive(Default)]
pub struct Library {
    programs: HashMap<Key, Program>,
}

impl Library {
    /// One more.
    pub fn put(&mut self, key: Key, program: Program) {
        self.programs.insert(key, program);
    }

    /// A program; `None` for what was not listed.
    pub fn get(&self, key: &Key) -> Option<&Program> {
        self.programs.get(key)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.programs.len()
    }
}
