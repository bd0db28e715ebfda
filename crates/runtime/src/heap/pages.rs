//! Address space for the heap: aligned mappings of zeroed pages.
//!
//! On Unix a mapping costs only address space until a page is written; elsewhere it comes from the allocator.
//! Nothing beyond the request is reserved, so a limit on the process's address space has no effect until it
//! is reached.

use std::ptr::NonNull;

/// A mapping, returned to the system when it is dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    align: usize,
}

// SAFETY: the mapping belongs only to its `Pages`, and neither using nor returning it depends on the thread.
unsafe impl Send for Pages {}

impl Pages {
    /// Zeroed pages at an address that is a multiple of `align`, a power of two and at least a page; `None`
    /// if the system has none.
    pub(crate) fn map(bytes: usize, align: usize) -> Option<Pages> {
        let base = system::map(bytes, align)?;
        // Compiled code and `Object::place` reach it by address.
        let _ = base.as_ptr().expose_provenance();
        Some(Pages { base, bytes, align })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        system::unmap(self.base, self.bytes, self.align);
    }
}

#[cfg(all(unix, not(miri)))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
        // A mapping of `bytes + align` contains an aligned one; the ends are unmapped.
        let total = bytes.checked_add(align)?;
        // SAFETY: a new anonymous mapping at an address chosen by the system does not affect existing ones.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast::<u8>())?;
        let front = start.addr().get().next_multiple_of(align) - start.addr().get();
        // SAFETY: `front` is at most `align`, so both cuts are in the new mapping, and nothing uses it yet.
        unsafe {
            let base = start.add(front);
            cut(start, front);
            cut(base.add(bytes), align - front);
            Some(base)
        }
    }

    /// # Safety
    ///
    /// The range is part of a mapping that is no longer used.
    unsafe fn cut(start: NonNull<u8>, bytes: usize) {
        if bytes > 0 {
            // SAFETY: by the contract of this function. Failure leaves the range mapped, which costs only
            // address space.
            unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
        }
    }

    pub(super) fn unmap(base: NonNull<u8>, bytes: usize, _align: usize) {
        // SAFETY: called once, when the owner of the mapping is dropped.
        unsafe { cut(base, bytes) }
    }
}

#[cfg(any(not(unix), miri))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, align).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    pub(super) fn unmap(base: NonNull<u8>, bytes: usize, align: usize) {
        if let Ok(layout) = Layout::from_size_align(bytes, align) {
            // SAFETY: `map` allocated the block with the same layout; called once, when its owner is dropped.
            unsafe { dealloc(base.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_and_zero() {
        let pages = Pages::map(1 << 20, 1 << 20).unwrap();
        assert_eq!(pages.base().addr().get() % (1 << 20), 0);
        // SAFETY: the mapping has a mebibyte.
        let ends = unsafe { [pages.base().read(), pages.base().add(pages.bytes() - 1).read()] };
        assert_eq!(ends, [0, 0]);
        assert!(Pages::map(usize::MAX / 2, 1 << 20).is_none());
    }
}
