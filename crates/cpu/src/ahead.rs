//! Cache lines ahead of their use: an address enters, and its line is on its way here, for writing, while something else is
//! done.
//!
//! A line that another core has written takes 200 ns to come over where that was measured. Several that are asked for one after the
//! other take as long as one.

/// Bytes of a cache line.
pub const LINE: usize = 64;

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
