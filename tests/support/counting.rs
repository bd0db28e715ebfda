//! The system's allocator with a count of bytes, for tests that measure the growth of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as isize - layout.size() as isize, Ordering::Relaxed);
        ALLOCATED.fetch_add(size, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that are allocated.
pub(crate) fn live() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// All bytes that were ever allocated, and moved by growing.
#[allow(dead_code, reason = "not all tests that count ask for it")]
pub(crate) fn all_bytes() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Bytes that the system's allocator holds in all its arenas.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "not all tests that count ask for it")]
pub(crate) struct Arenas {
    /// In blocks that are in use.
    pub(crate) used: usize,
    /// In free blocks, which it keeps.
    pub(crate) free: usize,
}

/// The state of the arenas, where the allocator says it: glibc's does.
#[allow(dead_code, reason = "not all tests that count ask for it")]
pub(crate) fn arenas() -> Option<Arenas> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// `struct mallinfo2` of `malloc.h`.
        #[repr(C)]
        struct Info {
            arena: usize,
            ordblks: usize,
            smblks: usize,
            hblks: usize,
            hblkhd: usize,
            usmblks: usize,
            fsmblks: usize,
            uordblks: usize,
            fordblks: usize,
            keepcost: usize,
        }
        unsafe extern "C" {
            safe fn mallinfo2() -> Info;
        }
        let info = mallinfo2();
        // Blocks with a mapping of their own belong to no arena.
        return Some(Arenas { used: info.uordblks + info.hblkhd, free: info.fordblks });
    }
    #[allow(unreachable_code, reason = "of other systems")]
    None
}
