//! Which bytes of a stripe are free: an allocator of offsets, which touches no memory.
//!
//! ```text
//!   stripe   chunk ┌──────┬─────┬──────┬────────────┐   chunk ┌────────────────────────┐
//!                  │ used │ free│ used │ free       │         │ free                   │
//!                  └──────┴─────┴──────┴────────────┘         └────────────────────────┘
//!   pages             1      1      2   idle   none               none  none  none
//! ```
//!
//! A stripe is the chunks of one permission. A page is *used* while it holds a block, *idle* when it no longer does but
//! still has memory, *none* when it has no memory.
//!
//! Invariants: A1, blocks do not overlap, and each is in one chunk; A2, free ranges of a chunk are never adjacent; A3, a
//! page that the caller receives as surplus holds no block.
//!
//! Blocks go to the smallest free range that fits, the lowest of equals, so that a program that compiles and drops the
//! same code again and again gets the same bytes. A few idle pages are kept: returning and refaulting a page costs more than a
//! thousand allocations.
//!
//! Cost: allocating and freeing are a few steps in ordered trees of free ranges, and a counter for each page.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Blocks begin and end at multiples of this.
const GRAIN: usize = 16;

/// Idle pages that are kept.
const KEPT_PAGES: usize = 64;

/// Free ranges that are tried before one is taken that fits at any alignment.
const TRIES: usize = 8;

/// The smallest and the largest chunk that is added for small blocks, in bytes.
const CHUNK: Range<usize> = (64 << 10)..(1 << 20);

/// The bytes of one stripe.
pub(crate) struct Pool {
    page: usize,
    /// Chunks are not larger than this, if a block does not need it.
    largest_chunk: usize,
    chunks: BTreeMap<usize, Chunk>,
    /// Free ranges: start to size, and the same as (size, start).
    by_start: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    /// Pages that became idle, some of which may be used again.
    idle: Vec<usize>,
    idle_pages: usize,
    resident_pages: usize,
    /// Chunks without any block.
    empty_chunks: usize,
    mapped: usize,
}

struct Chunk {
    bytes: usize,
    used: usize,
    pages: Box<[Page]>,
}

#[derive(Clone, Copy, Default)]
struct Page {
    /// Bytes of it in blocks.
    used: u32,
    has_memory: bool,
}

impl Pool {
    /// A stripe without chunks, in a reservation of `reserved` bytes.
    pub(crate) fn new(page: usize, reserved: usize) -> Pool {
        Pool {
            page,
            // A small reservation is not used up by the first stripe.
            largest_chunk: (reserved / 16 / page * page).clamp(page, CHUNK.end),
            chunks: BTreeMap::new(),
            by_start: BTreeMap::new(),
            by_size: BTreeSet::new(),
            idle: Vec::new(),
            idle_pages: 0,
            resident_pages: 0,
            empty_chunks: 0,
            mapped: 0,
        }
    }

    /// Bytes of a block with room for `bytes`; `None` on overflow.
    pub(crate) fn block_bytes(bytes: usize) -> Option<usize> {
        bytes.checked_next_multiple_of(GRAIN)
    }

    /// A block of `bytes`, a multiple of the grain, at a multiple of `align`.
    pub(crate) fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let align = align.max(GRAIN);
        let surely = bytes.checked_add(align - GRAIN)?;
        let candidates = self.by_size.range((bytes, 0)..).take(TRIES);
        let mut candidates = candidates.chain(self.by_size.range((surely, 0)..).take(1));
        let (size, start, at) = candidates.find_map(|&(size, start)| {
            let at = start.next_multiple_of(align);
            (at + bytes <= start + size).then_some((size, start, at))
        })?;
        self.remove_free(start, size);
        self.insert_free(start, at - start);
        self.insert_free(at + bytes, start + size - (at + bytes));
        self.count(at, bytes, true);
        Some(at)
    }

    /// Frees a block. Returns an empty chunk that is removed from the stripe, if one is superfluous.
    pub(crate) fn give_back(&mut self, start: usize, bytes: usize) -> Option<Range<usize>> {
        self.count(start, bytes, false);
        self.tidy_idle();
        let (chunk, chunk_bytes) = self.chunk_at(start)?;
        let (mut from, mut to) = (start, start + bytes);
        if let Some((&before, &size)) = self.by_start.range(chunk..start).next_back()
            && before + size == start
        {
            self.remove_free(before, size);
            from = before;
        }
        if to < chunk + chunk_bytes
            && let Some(&size) = self.by_start.get(&to)
        {
            self.remove_free(to, size);
            to += size;
        }
        self.insert_free(from, to - from);
        (self.empty_chunks > 1 && to - from == chunk_bytes).then(|| self.drop_chunk(chunk)).flatten()
    }

    /// Sizes of the chunk to add for a block, the best first.
    pub(crate) fn chunk_sizes(&self, bytes: usize, align: usize) -> impl Iterator<Item = usize> + use<> {
        let page = self.page;
        let least =
            bytes.checked_add(align.saturating_sub(page)).and_then(|all| all.checked_next_multiple_of(page));
        let grown =
            (self.mapped / 4).next_power_of_two().clamp(CHUNK.start, CHUNK.end).min(self.largest_chunk);
        let sizes = least.map(|least| [grown.next_multiple_of(page).max(least), least]);
        sizes.into_iter().flatten()
    }

    /// Adds a chunk, whose pages have no memory yet.
    pub(crate) fn add_chunk(&mut self, start: usize, bytes: usize) {
        let pages = vec![Page::default(); bytes / self.page].into_boxed_slice();
        self.chunks.insert(start, Chunk { bytes, used: 0, pages });
        self.insert_free(start, bytes);
        self.empty_chunks += 1;
        self.mapped += bytes;
    }

    /// Removes any empty chunk from the stripe.
    pub(crate) fn take_empty_chunk(&mut self) -> Option<Range<usize>> {
        if self.empty_chunks == 0 {
            return None;
        }
        let start = self.chunks.iter().find(|(_, chunk)| chunk.used == 0).map(|(start, _)| *start)?;
        self.drop_chunk(start)
    }

    /// Runs of pages whose memory is to be returned, when there are too many. They count as returned from now on: a page
    /// whose return fails is found again when it was used again.
    pub(crate) fn surplus(&mut self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        if self.idle_pages <= KEPT_PAGES {
            return runs;
        }
        let mut idle = std::mem::take(&mut self.idle);
        idle.sort_unstable();
        for at in idle {
            let page_bytes = self.page;
            let Some(page) = self.page_mut(at) else { continue };
            if page.used > 0 || !page.has_memory {
                continue;
            }
            page.has_memory = false;
            self.idle_pages -= 1;
            self.resident_pages -= 1;
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += page_bytes,
                _ => runs.push(at..at + page_bytes),
            }
        }
        runs
    }

    /// Bytes of all chunks.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Bytes of pages that have memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident_pages * self.page
    }

    fn chunk_at(&self, at: usize) -> Option<(usize, usize)> {
        self.chunks.range(..=at).next_back().map(|(start, chunk)| (*start, chunk.bytes))
    }

    fn page_mut(&mut self, at: usize) -> Option<&mut Page> {
        let (start, chunk) = self.chunks.range_mut(..=at).next_back()?;
        chunk.pages.get_mut((at - start) / self.page)
    }

    /// Removes a chunk that has no block, with its free range.
    fn drop_chunk(&mut self, start: usize) -> Option<Range<usize>> {
        let chunk = self.chunks.remove(&start)?;
        self.remove_free(start, chunk.bytes);
        let resident = chunk.pages.iter().filter(|page| page.has_memory).count();
        self.idle_pages -= resident;
        self.resident_pages -= resident;
        self.empty_chunks -= 1;
        self.mapped -= chunk.bytes;
        Some(start..start + chunk.bytes)
    }

    /// Counts a block in or out of its chunk and pages.
    fn count(&mut self, start: usize, bytes: usize, taken: bool) {
        let Some((&base, chunk)) = self.chunks.range_mut(..=start).next_back() else { return };
        let was_empty = chunk.used == 0;
        if taken {
            chunk.used += bytes;
        } else {
            chunk.used -= bytes;
        }
        match (was_empty, chunk.used == 0) {
            (true, false) => self.empty_chunks -= 1,
            (false, true) => self.empty_chunks += 1,
            _ => {}
        }
        let end = start + bytes;
        let mut at = start;
        while at < end {
            let index = (at - base) / self.page;
            let page_start = base + index * self.page;
            let inside = (end.min(page_start + self.page) - at) as u32;
            let page = &mut chunk.pages[index];
            if taken {
                match (page.has_memory, page.used) {
                    (false, _) => self.resident_pages += 1,
                    (true, 0) => self.idle_pages -= 1,
                    _ => {}
                }
                *page = Page { used: page.used + inside, has_memory: true };
            } else {
                page.used -= inside;
                if page.used == 0 {
                    self.idle_pages += 1;
                    self.idle.push(page_start);
                }
            }
            at = page_start + self.page;
        }
    }

    /// Removes duplicates of pages that became idle repeatedly, and pages that are in use again.
    fn tidy_idle(&mut self) {
        if self.idle.len() > 4 * (KEPT_PAGES + self.idle_pages) {
            let mut idle = std::mem::take(&mut self.idle);
            idle.sort_unstable();
            idle.dedup();
            idle.retain(|&at| self.page_mut(at).is_some_and(|page| page.used == 0 && page.has_memory));
            self.idle = idle;
        }
    }

    fn insert_free(&mut self, start: usize, size: usize) {
        if size > 0 {
            self.by_start.insert(start, size);
            self.by_size.insert((size, start));
        }
    }

    fn remove_free(&mut self, start: usize, size: usize) {
        self.by_start.remove(&start);
        self.by_size.remove(&(size, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn pool(chunks: &[(usize, usize)]) -> Pool {
        let mut pool = Pool::new(PAGE, 1 << 30);
        for chunk in chunks {
            pool.add_chunk(chunk.0 * PAGE, chunk.1 * PAGE);
        }
        pool
    }

    /// Checks the invariants of the header against the blocks that a test holds.
    fn check(pool: &Pool, held: &[(usize, usize)]) {
        let mut sorted = held.to_vec();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "A1");
        let free: usize = pool.by_start.values().sum();
        let used: usize = held.iter().map(|block| block.1).sum();
        assert_eq!(free + used, pool.mapped());
        let size_order: BTreeSet<_> = pool.by_start.iter().map(|(start, size)| (*size, *start)).collect();
        assert_eq!(size_order, pool.by_size);
        for (start, size) in &pool.by_start {
            assert!(
                !pool.by_start.contains_key(&(start + size)) || pool.chunks.contains_key(&(start + size)),
                "A2"
            );
        }
        let (mut idle, mut resident) = (0, 0);
        for (&start, chunk) in &pool.chunks {
            for (index, page) in chunk.pages.iter().enumerate() {
                let (from, to) = (start + index * PAGE, start + (index + 1) * PAGE);
                let inside =
                    |&(at, bytes): &(usize, usize)| (at + bytes).min(to).saturating_sub(at.max(from));
                assert_eq!(page.used as usize, held.iter().map(inside).sum::<usize>());
                idle += usize::from(page.has_memory && page.used == 0);
                resident += usize::from(page.has_memory);
            }
        }
        assert_eq!((idle, resident), (pool.idle_pages, pool.resident_pages));
        assert_eq!(pool.empty_chunks, pool.chunks.values().filter(|chunk| chunk.used == 0).count());
    }

    #[test]
    fn random_blocks_keep_the_books_right() {
        let mut seed = 7u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        // The first two chunks touch; blocks must not cross from one into the other.
        let mut pool = pool(&[(0, 16), (16, 384), (1000, 10)]);
        let mut held: Vec<(usize, usize)> = Vec::new();
        for round in 0..4_000 {
            if held.is_empty() || random(5) < if round < 2_000 { 3 } else { 1 } {
                let most = if random(20) == 0 { 60_000 } else { 600 };
                let bytes = Pool::block_bytes(1 + random(most)).unwrap();
                let align = 1 << random(13);
                if let Some(at) = pool.take(bytes, align) {
                    assert_eq!(at % align, 0);
                    held.push((at, bytes));
                }
            } else {
                let (at, bytes) = held.swap_remove(random(held.len()));
                pool.give_back(at, bytes);
                for run in pool.surplus() {
                    assert!(held.iter().all(|(at, bytes)| at + bytes <= run.start || run.end <= *at), "A3");
                }
            }
            if round % 50 == 0 {
                check(&pool, &held);
            }
        }
        for (at, bytes) in held.drain(..) {
            pool.give_back(at, bytes);
        }
        check(&pool, &[]);
        assert_eq!(pool.empty_chunks, 1, "one empty chunk is kept");
        assert!(pool.resident() <= KEPT_PAGES * PAGE);
        while pool.take_empty_chunk().is_some() {}
        assert_eq!((pool.mapped(), pool.resident()), (0, 0));
    }

    #[test]
    fn the_same_block_again_gets_the_same_bytes() {
        let mut pool = pool(&[(0, 16)]);
        let kept = pool.take(48, 32).unwrap();
        let first = pool.take(80, 32).unwrap();
        for _ in 0..1_000 {
            pool.give_back(first, 80);
            assert_eq!(pool.take(80, 32), Some(first));
        }
        assert_ne!(kept, first);
        assert!(pool.idle.len() < 1_000);
        assert_eq!(pool.resident(), PAGE);
    }

    #[test]
    fn chunks_grow_with_the_stripe_and_absurd_sizes_have_none() {
        let mut pool = Pool::new(PAGE, 1 << 30);
        assert_eq!(pool.chunk_sizes(100, 16).collect::<Vec<_>>(), [64 << 10, PAGE]);
        assert_eq!(pool.chunk_sizes(100_000, 16).collect::<Vec<_>>(), [25 * PAGE, 25 * PAGE]);
        pool.add_chunk(0, 16 << 20);
        assert_eq!(pool.chunk_sizes(100, 16).next(), Some(1 << 20));
        assert_eq!(pool.chunk_sizes(usize::MAX - 5, 16).next(), None);
        assert_eq!(Pool::new(PAGE, 64 << 10).chunk_sizes(100, 16).next(), Some(PAGE));
    }
}
