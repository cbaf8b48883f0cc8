//! The SIMD level: chosen once, when the backend is made, from what this CPU can do.

/// What the kernels are compiled for. The lanes' source is the same at every level.
///
/// ```
/// use breakeven_cpu::Level;
/// assert_eq!(Level::all().first(), Some(&Level::Portable));
/// println!("{}", Level::detect().name());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// What every CPU of the architecture has (SSE2 on x86-64, NEON on AArch64), without fused multiply-add.
    Portable,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// NEON, whose multiply-add is fused.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// The best level of this CPU.
    pub fn detect() -> Level {
        Level::all().last().copied().unwrap_or(Level::Portable)
    }

    /// Every level that this CPU can run, worst first: tests run them all.
    pub fn all() -> Vec<Level> {
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_mut))]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Level::Avx2);
                let features = [
                    is_x86_feature_detected!("avx512f"),
                    is_x86_feature_detected!("avx512bw"),
                    is_x86_feature_detected!("avx512dq"),
                    is_x86_feature_detected!("avx512vl"),
                ];
                if features == [true; 4] {
                    levels.push(Level::Avx512);
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        levels.push(Level::Neon);
        levels
    }

    /// The best level up to this one whose vectors are no longer than half a cache line.
    pub(crate) fn with_half_lines(self) -> Level {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Level::Avx2,
            level => level,
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
        }
    }
}

/// Picks the version of a generic kernel for a level. `$body` is an `#[inline(always)]` function whose first const
/// parameter says whether multiply-add is fused; each version compiles it again under its target features.
macro_rules! leveled {
    (
        $(#[$meta:meta])*
        fn $name:ident<$($generic:ident: $bound:path),* ; $(const $flag:ident: bool),*>($($arg:ident: $ty:ty),* $(,)?) => $body:ident
    ) => {
        $(#[$meta])*
        pub(crate) fn $name<$($generic: $bound,)* $(const $flag: bool),*>(level: Level) -> unsafe fn($($ty),*) {
            unsafe fn portable<$($generic: $bound,)* $(const $flag: bool),*>($($arg: $ty),*) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { $body::<false, $($generic,)* $($flag),*>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<$($generic: $bound,)* $(const $flag: bool),*>($($arg: $ty),*) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { $body::<true, $($generic,)* $($flag),*>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            unsafe fn avx512<$($generic: $bound,)* $(const $flag: bool),*>($($arg: $ty),*) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { $body::<true, $($generic,)* $($flag),*>($($arg),*) }
            }
            #[cfg(target_arch = "aarch64")]
            unsafe fn neon<$($generic: $bound,)* $(const $flag: bool),*>($($arg: $ty),*) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { $body::<true, $($generic,)* $($flag),*>($($arg),*) }
            }
            match level {
                Level::Portable => portable::<$($generic,)* $($flag),*>,
                // A level is only ever given out by `Level::all`, which has asked the CPU: so these may be called.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::<$($generic,)* $($flag),*>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => avx512::<$($generic,)* $($flag),*>,
                #[cfg(target_arch = "aarch64")]
                Level::Neon => neon::<$($generic,)* $($flag),*>,
            }
        }
    };
}
pub(crate) use leveled;
