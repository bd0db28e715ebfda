//! Objects of more than a megabyte: each has its own chunk, and chunks of dead ones are reused.
//!
//! ```text
//!   take ──► live ──(sweep: not marked)──► spare ──► take       the memory is cleared, no page is faulted in
//!                                            └──(drop_spare)──► the system
//! ```
//!
//! Otherwise a program that makes a large table in each of many calls would fault in all of its pages each
//! time, which costs several times as much as clearing. A spare chunk is used for an object if at most a
//! quarter of it stays unused.
//!
//! Not done: splitting spare chunks, merging them into slabs.

use std::collections::BTreeMap;

use super::chunk::{Chunk, MarkBit, RESERVED_UNITS, Side, UNIT};
use super::object::Object;

/// The chunk of one object.
#[derive(Debug)]
struct Huge {
    chunk: Chunk,
    /// The number of bytes that it counts as.
    bytes: usize,
}

fn object_of(chunk: &Chunk) -> Object {
    // SAFETY: the object begins after the mark bits of a mapped chunk.
    unsafe { Object::from_pointer(chunk.unit(RESERVED_UNITS).object()) }
}

fn room(chunk: &Chunk) -> usize {
    chunk.bytes() - RESERVED_UNITS * UNIT
}

/// All chunks made for one object, by address, and the chunks of dead objects.
#[derive(Default, Debug)]
pub(super) struct HugeObjects {
    live: BTreeMap<usize, Huge>,
    spare: Vec<Chunk>,
    mapped: usize,
}

/// The huge objects that survived a sweep, and the number of bytes freed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Swept {
    pub(super) live_objects: usize,
    pub(super) live_bytes: usize,
    pub(super) freed_bytes: usize,
}

impl HugeObjects {
    /// Bytes of all chunks.
    pub(super) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Bytes of the spare chunks.
    pub(super) fn spare_bytes(&self) -> usize {
        self.spare.iter().map(Chunk::bytes).sum()
    }

    /// Whether the chunk at this address belongs to an object of the heap.
    pub(super) fn has(&self, chunk: usize) -> bool {
        self.live.contains_key(&chunk)
    }

    /// Memory for an object that counts as `bytes` bytes, zeroed if it has to be; `None` if the system has none.
    pub(super) fn take(&mut self, bytes: usize, is_clear: bool) -> Option<Object> {
        let fits = |chunk: &Chunk| (bytes..=bytes.saturating_add(bytes / 4)).contains(&room(chunk));
        let best = self.spare.iter().enumerate().filter(|(_, chunk)| fits(chunk));
        let chunk = match best.min_by_key(|(_, chunk)| chunk.bytes()).map(|(at, _)| at) {
            Some(at) => {
                let chunk = self.spare.swap_remove(at);
                if is_clear {
                    // SAFETY: the chunk has room for that many bytes, and its object is dead.
                    unsafe { chunk.unit(RESERVED_UNITS).fill(bytes, 0) };
                }
                chunk
            }
            None => self.map(bytes)?,
        };
        let object = object_of(&chunk);
        self.live.insert(chunk.address(), Huge { chunk, bytes });
        Some(object)
    }

    fn map(&mut self, bytes: usize) -> Option<Chunk> {
        let chunk = Chunk::map(bytes).or_else(|| {
            drop(self.drop_spare(0));
            Chunk::map(bytes)
        })?;
        self.mapped += chunk.bytes();
        Some(chunk)
    }

    /// Clears all marks.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(super) unsafe fn clear_marks(&mut self, side: Side) {
        for huge in self.live.values() {
            // SAFETY: by the contract; the chunk is mapped.
            unsafe { MarkBit::of(side, object_of(&huge.chunk)).clear() };
        }
    }

    /// Makes the chunks of unmarked objects spare; with `poison` their memory is overwritten by this byte.
    ///
    /// # Safety
    ///
    /// The caller is the collector, the world is stopped, and everything reachable is marked.
    pub(super) unsafe fn sweep(&mut self, side: Side, poison: Option<u8>) -> Swept {
        let mut swept = Swept::default();
        // SAFETY: by the contract; the chunk is mapped.
        let is_dead = |huge: &Huge| unsafe { !MarkBit::of(side, object_of(&huge.chunk)).get() };
        let dead = self.live.extract_if(.., |_, huge| is_dead(huge));
        for (_, huge) in dead {
            if let Some(byte) = poison {
                // SAFETY: by the contract, the object is unreachable, and its memory is mapped.
                unsafe { huge.chunk.unit(RESERVED_UNITS).fill(huge.bytes, byte) };
            }
            // SAFETY: by the contract; the other side may have a mark of it.
            unsafe { MarkBit::of(side.other(), object_of(&huge.chunk)).clear() };
            swept.freed_bytes += huge.bytes;
            self.spare.push(huge.chunk);
        }
        swept.live_objects = self.live.len();
        swept.live_bytes = self.live.values().map(|huge| huge.bytes).sum();
        swept
    }

    /// Takes spare chunks out, largest first, until at most `keep` bytes are left. Dropping them returns them to the system.
    pub(super) fn drop_spare(&mut self, keep: usize) -> Vec<Chunk> {
        let mut left = self.spare_bytes();
        let mut dropped = Vec::new();
        if left > keep {
            self.spare.sort_unstable_by_key(Chunk::bytes);
        }
        while left > keep
            && let Some(chunk) = self.spare.pop()
        {
            left -= chunk.bytes();
            self.mapped -= chunk.bytes();
            dropped.push(chunk);
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::CHUNK;
    use super::*;

    #[test]
    fn the_chunk_of_a_dead_object_serves_the_next_and_is_clear() {
        let mut huge = HugeObjects::default();
        let first = huge.take(CHUNK, true).unwrap();
        // SAFETY: no other code can reach the objects; each has the requested size.
        unsafe {
            let side = Side::default();
            MarkBit::of(side, first).set();
            assert_eq!(huge.sweep(side, None).live_bytes, CHUNK);
            huge.clear_marks(side);
            assert_eq!(huge.sweep(side, Some(0xdd)).freed_bytes, CHUNK);
            assert!(!huge.has(first.address() & !(CHUNK - 1)));
            let mapped = huge.mapped();
            assert_ne!(huge.take(CHUNK / 2, true), Some(first), "more than a quarter would be left over");
            let again = huge.take(CHUNK - CHUNK / 8, true).unwrap();
            assert_eq!((again, huge.spare_bytes()), (first, 0));
            assert!(huge.mapped() > mapped);
            assert!(again.bytes(0, CHUNK - CHUNK / 8 - 64).iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn the_largest_chunks_go_back_first() {
        let mut huge = HugeObjects::default();
        for chunks in [3, 1, 2] {
            huge.take(chunks * CHUNK, true).unwrap();
        }
        // SAFETY: no other code can reach the objects.
        unsafe { huge.sweep(Side::default(), None) };
        drop(huge.drop_spare(4 * CHUNK));
        assert!((3 * CHUNK..4 * CHUNK).contains(&huge.spare_bytes()));
        assert_eq!(huge.mapped(), huge.spare_bytes());
        drop(huge.drop_spare(0));
        assert_eq!((huge.spare_bytes(), huge.mapped()), (0, 0));
    }
}
