//! What a result is known by: the versions, the program's structure and constants, and the bytes of the inputs enter, 128
//! bits leave.
//!
//! The hash is HighwayHash with 128 bits: of a thousand million results two share a key with a chance of 10^-21. The hash
//! is most of what a hit costs: for 1 KiB it takes a tenth of blake3's time (0.12 us, 1.2 us) and twice that of xxh3, which
//! takes no key. Its key of 256 bits is what all tasks of a program have in common: versions, structure and constants are
//! hashed once, into that key, and each task's inputs under it. Nobody is known to make two inputs meet even under a key
//! that is not secret, but that is not promised: whoever lets strangers choose inputs gives each of them a
//! [`namespace`](super::CacheOptions::namespace) that is not guessed.

use crate::config::{Config, Device};
use breakeven_cpu::Level;
use breakeven_ir::backend::KERNEL_VERSION;
use breakeven_ir::{DType, Op, ReduceOp, ScanOp};
use highway::{HighwayHash, HighwayHasher};

/// What a result is known by.
pub(crate) type Key = u128;

/// 256 bits that stand for something.
pub(crate) type Digest = [u64; 4];

/// Raised when a key is made of other parts, or results lie in another order.
const FORMAT: u32 = 1;

/// Any key that is not zero: what it is has no meaning, that it stays the same does.
const SEED: Digest = [0x6272_6561_6b65_7665, 0x6e20_7265_7375_6c74, 0x7320_6f6e_2064_6973, 0x6b00_0000_0000_0001];

fn hasher(key: &Digest) -> HighwayHasher {
    HighwayHasher::new(highway::Key(*key))
}

/// 64 bits of `bytes` that belong to `key`: what damage on the disk is told by.
pub(crate) fn checksum(key: Key, bytes: &[u8]) -> u64 {
    let [low, high] = [key as u64, (key >> 64) as u64];
    hasher(&[SEED[0] ^ low, SEED[1] ^ high, SEED[2], SEED[3]]).hash64(bytes)
}

/// A leaf of a program.
pub(crate) enum Leaf<'a> {
    /// A task brings it.
    Input,
    /// The program was recorded with it.
    Data(&'a [u8]),
}

/// A program at fixed shapes. The words hold the dtype and shape of every leaf, so that bytes need no lengths.
pub(crate) fn fingerprint<'a>(words: &[u64], leaves: impl Iterator<Item = Leaf<'a>>) -> Digest {
    let mut hasher = hasher(&SEED);
    hasher.append(&(words.len() as u64).to_le_bytes());
    words.iter().for_each(|word| hasher.append(&word.to_le_bytes()));
    for leaf in leaves {
        match leaf {
            Leaf::Input => hasher.append(&[0]),
            Leaf::Data(bytes) => {
                hasher.append(&[1]);
                hasher.append(bytes);
            }
        }
    }
    hasher.finalize256()
}

/// Everything beside program and inputs that results depend on.
#[derive(Clone)]
pub(crate) struct Context(Digest);

impl Context {
    /// Results of a CPU and of a GPU may differ in their last bits, and those of one SIMD level from another's. Whoever
    /// names a device gets what was made under that name; `auto` and `all` leave the choice open, and are one.
    pub(crate) fn new(config: &Config, device: Option<Device>, namespace: &str) -> Context {
        let device = match device.unwrap_or(config.device) {
            Device::Auto | Device::All => "any".to_owned(),
            Device::Cpu => "cpu".to_owned(),
            gpu @ Device::Gpu(_) => format!("{gpu} {:?}", config.apis),
        };
        Context::of(KERNEL_VERSION, &device, namespace)
    }

    pub(crate) fn of(kernels: u32, device: &str, namespace: &str) -> Context {
        let mut hasher = hasher(&SEED);
        hasher.append(&FORMAT.to_le_bytes());
        hasher.append(&kernels.to_le_bytes());
        let mut text = |text: &str| {
            hasher.append(&(text.len() as u64).to_le_bytes());
            hasher.append(text.as_bytes());
        };
        text(env!("CARGO_PKG_VERSION"));
        text(Level::detect().name());
        text(std::env::consts::ARCH);
        text(if cfg!(target_endian = "big") { "big" } else { "little" });
        text(device);
        text(namespace);
        // A plan's words have the numbers of ops and dtypes: these are their names, in the order of their numbers.
        Op::ALL.iter().for_each(|op| text(op.row().name));
        ReduceOp::ALL.iter().for_each(|op| text(&format!("{op:?}")));
        ScanOp::ALL.iter().for_each(|op| text(&format!("{op:?}")));
        DType::ALL.iter().for_each(|dtype| text(dtype.name()));
        Context(hasher.finalize256())
    }

    /// What all tasks of a program have in common.
    pub(crate) fn shared(&self, fingerprint: &Digest) -> Shared {
        let mut hasher = hasher(&self.0);
        fingerprint.iter().for_each(|word| hasher.append(&word.to_le_bytes()));
        Shared(hasher.finalize256())
    }
}

/// What all tasks of a program have in common.
pub(crate) struct Shared(Digest);

impl Shared {
    /// The key of one task: give it the bytes of the leaves that tasks bring, in the plan's order.
    pub(crate) fn task(&self) -> TaskKey {
        TaskKey(hasher(&self.0))
    }
}

/// The key of a task on its way.
pub(crate) struct TaskKey(HighwayHasher);

impl TaskKey {
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.0.append(bytes);
    }

    pub(crate) fn finish(self) -> Key {
        let [low, high] = self.0.finalize128();
        u128::from(high) << 64 | u128::from(low)
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
