//! Cache lines ahead of their use: an address enters, and its line is on its way here while something else is done.
//!
//! A line that another core has written takes 200 ns to come over where that was measured. Several that are asked for one after the
//! other take as long as one.
//!
//! Long arrays are read 8 KiB ahead: what the CPU fetches by itself ends with the page. On a Zen 5 with two threads the sum of
//! 10^7 elements takes 307 us instead of 458, their dot product 726 instead of 893 (274 and 345, 671 and 771 on huge pages);
//! 4 KiB ahead 340 and 767, 32 KiB 298 and 724. Asking for a whole tile at once is no faster than not to ask, and arrays
//! in L3 lose by it (a dot product of 10^6: 32.1 us and 30.7), so that only what reads 16 MiB or more does.

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// How far ahead of its use memory is asked for.
const FAR_BYTES: usize = 8 << 10;
/// What a kernel reads at least to ask for it ahead.
pub(crate) const LONG_BYTES: u64 = 16 << 20;

/// Asks for the cache line that lies 8 KiB after an address, for reading. A hint, as below.
#[inline(always)]
pub(crate) fn fetch_far<T>(from: *const T) {
    let at = from.wrapping_byte_add(FAR_BYTES);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch neither reads nor writes memory as far as the program can tell, and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let _ = at;
}

/// Asks for the cache line at an address, for writing. It is a hint: nothing is read or written, and any address will do.
///
/// ```
/// let next = [0u8; 64];
/// breakeven_cpu::ahead::fetch_for_writing(&raw const next);
/// breakeven_cpu::ahead::fetch_for_writing(std::ptr::null::<u8>());
/// ```
#[inline(always)]
pub fn fetch_for_writing<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch neither reads nor writes memory as far as the program can tell, and faults at no address.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let _ = at;
}
