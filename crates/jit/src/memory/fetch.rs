//! Makes machine code that was written as data visible to instruction fetch.
//!
//! ```text
//!   written ──► its lines leave the data cache ──► the instruction cache drops them ──► this processor ──► all other threads
//!               dc cvau …, dsb ish                 ic ivau …, dsb ish                   isb                membarrier
//! ```
//!
//! *x86-64* does all of that by itself. *aarch64*: instructions are fetched from the level where the two caches meet, and neither snoops the
//! other. Written bytes may be in the data cache alone, and older bytes of the address may be in the instruction cache; so the first
//! has to write its lines back before the second drops its own. Both operations are by address, line by line. Data caches are tagged by
//! physical address, so the mapping through which the code was written does not matter; the addresses here are those that are executed.
//! A register of the processor has the lengths of its lines, and which of the two steps it does by itself:
//!
//! ```text
//!   CTR_EL0   29   28   …  19–16           …  3–0
//!             DIC  IDC     log2 of words      log2 of words in a line of the instruction cache
//!                          in a line of data
//! ```
//!
//! Where processors of one machine differ, the system emulates the register with values that are right for all of them.
//!
//! Cost on aarch64: one instruction for each line of each cache, and one system call.

use std::io;
use std::ptr::NonNull;

/// Makes written code visible to execution at these addresses, by this thread at once and by every other one from its next
/// barrier on.
///
/// # Safety
///
/// The bytes are mapped, readable, and no code unmaps them meanwhile.
pub(crate) unsafe fn publish(code: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: by the contract.
    unsafe { clear(code.addr().get(), bytes) };
    // A barrier in all threads, which discards prefetched instructions.
    wasmtime_jit_icache_coherence::pipeline_flush_mt()
}

#[cfg(not(target_arch = "aarch64"))]
unsafe fn clear(_: usize, _: usize) {}

/// # Safety
///
/// As for [`publish`].
#[cfg(target_arch = "aarch64")]
unsafe fn clear(start: usize, bytes: usize) {
    use std::arch::asm;

    let ctr: u64;
    // SAFETY: reads a register that programs may read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) };
    let caches = Caches::from_ctr(ctr);
    for line in lines(start, bytes, caches.data_line).filter(|_| caches.must_write_back) {
        // SAFETY: the line holds bytes that the caller may read; writing it back changes none.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in lines(start, bytes, caches.instruction_line).filter(|_| caches.must_drop) {
        // SAFETY: as above; instructions that are dropped are fetched again.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Cache properties of a processor.
#[cfg(any(test, target_arch = "aarch64"))]
#[derive(PartialEq, Eq, Debug)]
struct Caches {
    /// Bytes of the shortest line.
    data_line: usize,
    instruction_line: usize,
    /// Whether fetching finds what the data cache has only when that has written it back.
    must_write_back: bool,
    /// Whether the instruction cache keeps what has been overwritten.
    must_drop: bool,
}

#[cfg(any(test, target_arch = "aarch64"))]
impl Caches {
    fn from_ctr(ctr: u64) -> Caches {
        Caches {
            data_line: 4 << (ctr >> 16 & 0xf),
            instruction_line: 4 << (ctr & 0xf),
            must_write_back: ctr >> 28 & 1 == 0,
            must_drop: ctr >> 29 & 1 == 0,
        }
    }
}

/// The lines that contain these bytes.
#[cfg(any(test, target_arch = "aarch64"))]
fn lines(start: usize, bytes: usize, line: usize) -> impl Iterator<Item = usize> {
    // There is no code at the end of the address space.
    let end = start.saturating_add(bytes);
    let first = if bytes == 0 { end } else { start & !(line - 1) };
    (first..end).step_by(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_of_the_lines_and_every_line_has_one() {
        let all = |start, bytes, line| lines(start, bytes, line).collect::<Vec<_>>();
        assert_eq!(all(0x1000, 0x80, 64), [0x1000, 0x1040]);
        assert_eq!(all(0x103c, 8, 64), [0x1000, 0x1040]);
        assert_eq!(all(0x1001, 0x7f, 32), [0x1000, 0x1020, 0x1040, 0x1060]);
        assert_eq!(all(0x1004, 4, 2048), [0x1000]);
        assert_eq!(all(0x1004, 0, 64), []);
    }

    #[test]
    fn the_register_is_read_as_processors_write_it() {
        let caches = |data_line, instruction_line, must_write_back, must_drop| Caches {
            data_line,
            instruction_line,
            must_write_back,
            must_drop,
        };
        // Cortex-A72, Neoverse N1, one that does all by itself, and one with lines of two lengths.
        assert_eq!(Caches::from_ctr(0x8444_c004), caches(64, 64, true, true));
        assert_eq!(Caches::from_ctr(0x9444_c004), caches(64, 64, false, true));
        assert_eq!(Caches::from_ctr(0xb444_c004), caches(64, 64, false, false));
        assert_eq!(Caches::from_ctr(0x8444_c003), caches(64, 32, true, true));
    }

    #[test]
    fn code_is_published_wherever_it_is_mapped() {
        let mut bytes = [0u8; 300];
        let start = NonNull::from(&mut bytes).cast::<u8>();
        for (at, length) in [(0, 300), (1, 1), (299, 1), (63, 130), (300, 0)] {
            // SAFETY: the range is inside the array.
            unsafe { publish(start.add(at), length) }.unwrap();
        }
    }
}
