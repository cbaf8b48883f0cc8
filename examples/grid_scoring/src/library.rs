//! Compiled programs: what is recorded enters, a program that was compiled once for each form of canvas leaves.

use crate::record::Key;
use breakeven::{Engine, Program, span};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Compiled programs by what they do; each is compiled when it is first asked for.
pub struct Library<'e> {
    engine: &'e Engine,
    programs: HashMap<Key, OnceLock<Program>>,
}

impl<'e> Library<'e> {
    /// Of these programs, none of which is compiled yet.
    pub fn new(engine: &'e Engine, keys: impl IntoIterator<Item = Key>) -> Library<'e> {
        Library { engine, programs: keys.into_iter().map(|key| (key, OnceLock::new())).collect() }
    }

    /// A program.
    pub fn get(&self, key: &Key) -> breakeven::Result<&Program> {
        let place = self.programs.get(key).ok_or_else(missing)?;
        if let Some(program) = place.get() {
            return Ok(program);
        }
        // Two workers may both be first: the engine plans once, and the second one's program is dropped.
        let _stage = span!("compile");
        let recorded = key.record().map_err(breakeven::Error::from)?;
        let inputs: Vec<_> = recorded.inputs.iter().collect();
        let program = self.engine.compile(&inputs, &recorded.outputs.iter().collect::<Vec<_>>())?;
        Ok(place.get_or_init(|| program))
    }

    /// Its programs in parts, so that threads can take them down: each is a graph of many nodes.
    pub fn into_parts(self, count: usize) -> Vec<Vec<Program>> {
        let mut parts: Vec<Vec<Program>> = Vec::new();
        parts.resize_with(count.max(1), Vec::new);
        for (number, program) in self.programs.into_values().filter_map(OnceLock::into_inner).enumerate() {
            parts[number % count.max(1)].push(program);
        }
        parts
    }

    /// How many are compiled.
    pub fn count(&self) -> usize {
        self.programs.values().filter(|place| place.get().is_some()).count()
    }
}

/// Everything that is run was listed before; this is here so that a mistake in the list would be told.
pub fn missing() -> breakeven::Error {
    breakeven::Error::Count { what: "compiled stages", found: 0, expected: 1 }
}
