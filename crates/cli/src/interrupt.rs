//! Ctrl-C: a signal enters, a flag leaves that work looks at between two runs, so that what was measured is kept. A
//! second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The exit code of a command that Ctrl-C ended: 128 and the number of the signal, as shells have it.
pub const CODE: u8 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches Ctrl-C from now on, for the life of the process.
    pub fn catch() -> Interrupt {
        let interrupt = Interrupt::default();
        let flag = interrupt.flag.clone();
        // Where it can't be caught it ends the process, as ever.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Relaxed) {
                std::process::exit(CODE.into());
            }
        });
        interrupt
    }

    /// One that was pressed, for tests.
    #[cfg(test)]
    pub fn pressed() -> Interrupt {
        Interrupt { flag: Arc::new(AtomicBool::new(true)) }
    }

    /// Was it pressed?
    pub fn is_set(&self) -> bool {
        self.flag.load(Relaxed)
    }
}
