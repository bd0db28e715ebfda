//! Frames: which parts of a thread's stack belong to compiled code, and where its roots are.
//!
//! ```text
//!   stack, downwards                 what links it
//!   ─────────────────                ─────────────────────────────────────────────
//!   Rust
//!   entry trampoline   ◄──────────┐  its record: the previous exit words
//!   compiled code                 │  saved frame pointer = the trampoline's: the segment ends
//!   compiled code                 │  saved frame pointer, return address
//!   routine, C, Rust   ◄─ exit words at that time
//!   entry trampoline   ◄─ entry word of the thread
//!   compiled code
//!   routine            ◄─ exit words of the thread
//! ```
//!
//! **The walk** uses three words of the thread ([`Crossings`]), which compiled code and routines maintain
//! (`codegen/src/thread.rs`): the frame pointer and return address of the last exit from compiled code, and
//! the innermost entry record. Frames of compiled code chain their frame pointers; the walk never reads
//! frames of Rust and C, which need no frame pointers. A throw abandons frames but changes none of the words:
//! they are set again before anything outside compiled code runs. When an exception leaves an entry, its
//! trampoline removes the entry record. Stubs that jump make no frame; trampolines that compile on the first
//! call make an ordinary one.
//!
//! **Maps.** [`FrameMaps`] record, by return address, which words of the frame hold roots during each call of
//! some code. Units add their maps when they are loaded and remove them when they are unloaded. A call
//! without a map holds no roots, or has linked them (`heap/mutator.rs`): both kinds of code can be mixed on
//! one stack.
//!
//! **Lookup** is a search for the unit and one within its addresses. Deep stacks come from recursion, so a
//! walk caches the maps of recent addresses: a cached frame costs 2 to 3 ns, plus the cache misses of its
//! words.
//!
//! **Invariants.** F1: while a thread is outside compiled code, or stopped inside the heap, its crossings
//! describe its stack as above. A thread that is not inside the heap may run compiled code at any time, so no
//! other thread reads its stack, unless the thread has declared that its existing frames stay, and waits for
//! the reader before it continues ([`Parked`]). F2: while a call is under way, the words on its map hold
//! objects of the heap or null. F3: maps exist while the code that they describe may run.
//!
//! Not done: walking threads while they run compiled code. Frames of code in images are found, but not their
//! maps.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock};

use crate::heap::Object;

/// A handler, where an exception continues. It is in a frame of compiled code.
#[repr(C)]
#[derive(Debug)]
pub struct HandlerRecord {
    /// The record that was innermost before.
    pub previous: *mut HandlerRecord,
    /// The landing pad.
    pub pc: usize,
    /// The stack pointer there.
    pub sp: usize,
    /// The frame pointer there.
    pub fp: usize,
}

/// The record in the frame of an entry trampoline.
#[repr(C)]
#[derive(Debug)]
pub struct EntryRecord {
    /// The handler of the trampoline's callee; its frame pointer is the trampoline's.
    pub handler: HandlerRecord,
    /// The exit words when the trampoline was called.
    pub exit_fp: usize,
    /// See above.
    pub exit_pc: usize,
    /// The record that was innermost before.
    pub previous: *const EntryRecord,
}

/// The words of a thread that locate the compiled code on its stack.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Crossings {
    exit_fp: Cell<usize>,
    exit_pc: Cell<usize>,
    entry: Cell<*const EntryRecord>,
}

impl Default for Crossings {
    fn default() -> Crossings {
        Crossings { exit_fp: Cell::new(0), exit_pc: Cell::new(0), entry: Cell::new(std::ptr::null()) }
    }
}

impl Crossings {
    /// The frame pointer of the compiled code that was left last.
    pub(crate) const EXIT_FP: usize = offset_of!(Crossings, exit_fp);
    /// The address at which it continues.
    pub(crate) const EXIT_PC: usize = offset_of!(Crossings, exit_pc);
    /// The innermost entry record.
    pub(crate) const ENTRY: usize = offset_of!(Crossings, entry);

    /// Whether a handler belongs to the innermost entry, so that what it catches leaves compiled code.
    pub(crate) fn is_entry(&self, handler: *const HandlerRecord) -> bool {
        // The entry record begins with its handler record.
        std::ptr::eq(self.entry.get().cast(), handler)
    }

    /// Called when all frames are gone.
    pub(crate) fn forget(&self) {
        self.exit_fp.set(0);
        self.exit_pc.set(0);
        self.entry.set(std::ptr::null());
    }

    /// The words by which other threads find the current frames. Called on the thread itself, outside
    /// compiled code.
    pub(crate) fn park(&self) -> Parked {
        Parked {
            exit: Frame { return_address: self.exit_pc.get(), pointer: self.exit_fp.get() },
            entry: self.entry.get(),
        }
    }

    /// The frames of compiled code, innermost first.
    ///
    /// # Safety
    ///
    /// F1 holds, and the thread does not return from any of the frames until the walk has ended.
    pub(crate) unsafe fn frames(&self) -> Frames<'_> {
        Frames {
            next: Frame { return_address: self.exit_pc.get(), pointer: self.exit_fp.get() },
            entry: self.entry.get(),
            thread: PhantomData,
        }
    }
}

/// Locates the compiled code on the stack of a thread whose existing frames stay, for other threads.
#[derive(Debug)]
pub(crate) struct Parked {
    exit: Frame,
    entry: *const EntryRecord,
}

// SAFETY: it consists of addresses; only `returns` reads the memory there, and its contract orders that with
// the thread's actions.
unsafe impl Send for Parked {}

impl Parked {
    /// The return addresses of the frames; see [`Frames::returns`].
    ///
    /// # Safety
    ///
    /// Everything the thread did before it made this happens before the call. Until the call has ended, the
    /// thread does not return from any of the frames that existed then.
    pub(crate) unsafe fn returns(&self) -> Vec<usize> {
        Frames { next: self.exit, entry: self.entry, thread: PhantomData }.returns()
    }
}

/// A frame of compiled code with a call under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The return address of the call; 0 for a call of a C function by code loaded from an image.
    pub return_address: usize,
    /// The frame pointer.
    pointer: usize,
}

/// The frames of compiled code on the stack of a thread, innermost first.
#[derive(Debug)]
pub struct Frames<'t> {
    next: Frame,
    entry: *const EntryRecord,
    thread: PhantomData<&'t ()>,
}

impl Frames<'_> {
    /// The return addresses of the frames, ascending, without duplicates.
    pub(crate) fn returns(self) -> Vec<usize> {
        let mut returns: Vec<usize> = self.map(|frame| frame.return_address).collect();
        // Deep stacks come from recursion.
        returns.sort_unstable();
        returns.dedup();
        returns
    }
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    #[inline]
    fn next(&mut self) -> Option<Frame> {
        let frame = self.next;
        if frame.pointer == 0 || self.entry.is_null() {
            return None;
        }
        let saved = std::ptr::with_exposed_provenance::<usize>(frame.pointer);
        // SAFETY: F1: the frame pointer of a frame of compiled code points at the saved one, which is
        // followed by the return address; the entry record belongs to the trampoline through which this
        // segment was entered.
        unsafe {
            let (pointer, entry) = (saved.read(), &*self.entry);
            if pointer == entry.handler.fp {
                self.next = Frame { return_address: entry.exit_pc, pointer: entry.exit_fp };
                self.entry = entry.previous;
            } else {
                self.next = Frame { return_address: saved.add(1).read(), pointer };
            }
        }
        Some(frame)
    }
}

/// The locations of the roots of calls, for code at consecutive addresses.
#[derive(Debug, Default)]
pub struct FrameMaps {
    /// Return addresses, from the start of the code, ascending.
    returns: Vec<u32>,
    /// The index of each call's first word; one more at the end.
    starts: Vec<u32>,
    /// Offsets from frame pointers.
    words: Vec<i32>,
}

impl FrameMaps {
    /// Maps by return address, from the start of the code, with the offsets of words from the frame pointer.
    pub fn new<'m>(maps: impl IntoIterator<Item = (u32, &'m [i32])>) -> FrameMaps {
        let mut sorted: Vec<(u32, &[i32])> = maps.into_iter().collect();
        sorted.sort_by_key(|map| map.0);
        let mut made = FrameMaps { starts: vec![0], ..FrameMaps::default() };
        for (offset, words) in sorted {
            made.returns.push(offset);
            made.words.extend_from_slice(words);
            made.starts.push(made.words.len() as u32);
        }
        made
    }

    /// Maps in stored form: return addresses, from the start of the code; the index of each call's first
    /// word, followed by the total number; and the words. `None` if the first two are not ascending or the
    /// parts do not match.
    pub fn of_rows(returns: Vec<u32>, starts: Vec<u32>, words: Vec<i32>) -> Option<FrameMaps> {
        let fit = starts.len() == returns.len() + 1
            && starts.first() == Some(&0)
            && starts.last().is_some_and(|&last| last as usize == words.len());
        let ascend = returns.is_sorted_by(|a, b| a < b) && starts.is_sorted();
        (fit && ascend).then_some(FrameMaps { returns, starts, words })
    }

    /// Whether no call has roots.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn words(&self, offset: u32) -> &[i32] {
        match self.returns.binary_search(&offset) {
            Ok(at) => &self.words[self.starts[at] as usize..self.starts[at + 1] as usize],
            Err(_) => &[],
        }
    }
}

/// The maps of all loaded code, by address.
#[derive(Default, Debug)]
pub(crate) struct FrameIndex {
    /// By the start of the code: its end, and its maps.
    units: RwLock<BTreeMap<usize, (usize, FrameMaps)>>,
}

/// Maps in force, until this is dropped.
#[derive(Debug)]
pub struct FrameMapsInForce {
    index: Arc<FrameIndex>,
    start: usize,
}

impl Drop for FrameMapsInForce {
    fn drop(&mut self) {
        self.index.units.write().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
    }
}

/// The number of maps that a walk caches; a power of two.
const REMEMBERED: usize = 64;

impl FrameIndex {
    /// Adds the maps for the code at these addresses.
    ///
    /// # Safety
    ///
    /// F2 and F3.
    pub(crate) unsafe fn add(self: &Arc<Self>, code: Range<usize>, maps: FrameMaps) -> FrameMapsInForce {
        self.units.write().unwrap_or_else(PoisonError::into_inner).insert(code.start, (code.end, maps));
        FrameMapsInForce { index: self.clone(), start: code.start }
    }

    /// Passes every root named by the frames' maps to `visit`, and stores the result in the frame. Counts the
    /// frames, if there are any maps.
    ///
    /// # Safety
    ///
    /// As for [`Crossings::frames`]; the caller is the collector.
    pub(crate) unsafe fn each_root(
        &self,
        frames: Frames<'_>,
        visit: &mut dyn FnMut(Object) -> Object,
    ) -> usize {
        let units = self.units.read().unwrap_or_else(PoisonError::into_inner);
        if units.is_empty() {
            return 0;
        }
        let mut count = 0;
        let find = |address: usize| -> &[i32] {
            // A return address may be the first one after its unit, where the next unit begins: the call
            // precedes it.
            match units.range(..address).next_back() {
                Some((&start, (end, maps))) if address <= *end => maps.words((address - start) as u32),
                _ => &[],
            }
        };
        let mut remembered: [(usize, &[i32]); REMEMBERED] = [(0, &[]); REMEMBERED];
        for frame in frames {
            count += 1;
            let address = frame.return_address;
            let place = &mut remembered[(address ^ address >> 6) % REMEMBERED];
            if place.0 != address {
                *place = (address, find(address));
            }
            for &word in place.1 {
                let word = std::ptr::with_exposed_provenance_mut::<*mut u8>(
                    frame.pointer.wrapping_add_signed(word as isize),
                );
                // SAFETY: F2.
                unsafe {
                    if let Some(root) = NonNull::new(word.read()).map(|root| Object::from_pointer(root)) {
                        let now = visit(root);
                        if now != root {
                            word.write(now.pointer().as_ptr());
                        }
                    }
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::heap::HeapOptions;

    /// A stack that grows downwards in a vector: frames are pushed from the outermost in.
    struct Stack {
        words: Vec<usize>,
        top: usize,
    }

    impl Stack {
        fn new() -> Stack {
            Stack { words: vec![0; 256], top: 256 }
        }

        fn address(&self, index: usize) -> usize {
            self.words.as_ptr().wrapping_add(index).expose_provenance()
        }

        /// A frame with local words; returns its frame pointer.
        fn push(&mut self, saved: usize, back_to: usize, locals: &[usize]) -> usize {
            self.top -= 2;
            let pointer = self.top;
            (self.words[pointer], self.words[pointer + 1]) = (saved, back_to);
            for &local in locals {
                self.top -= 1;
                self.words[self.top] = local;
            }
            self.address(pointer)
        }
    }

    fn record(fp: usize, exit: (usize, usize), previous: *const EntryRecord) -> EntryRecord {
        let handler = HandlerRecord { previous: std::ptr::null_mut(), pc: 0, sp: 0, fp };
        EntryRecord { handler, exit_fp: exit.0, exit_pc: exit.1, previous }
    }

    fn crossings(exit: (usize, usize), entry: *const EntryRecord) -> Crossings {
        Crossings { exit_fp: Cell::new(exit.0), exit_pc: Cell::new(exit.1), entry: Cell::new(entry) }
    }

    #[test]
    fn a_thread_without_compiled_code_has_no_frames() {
        let (fresh, entered) = (Crossings::default(), record(1, (0, 0), std::ptr::null()));
        // SAFETY: there are none.
        assert_eq!(unsafe { fresh.frames() }.count(), 0);
        let entered = crossings((0, 0), &raw const entered);
        // SAFETY: the trampoline was called and nothing has left compiled code since.
        assert_eq!(unsafe { entered.frames() }.count(), 0);
    }

    #[test]
    fn stretches_are_joined_and_what_lies_between_is_not_looked_at() {
        let mut stack = Stack::new();
        let outer_entry = stack.push(7, 7, &[]);
        let a = stack.push(outer_entry, 0x10, &[]);
        let b = stack.push(a, 0x1a, &[]);
        let outer = record(outer_entry, (0, 0), std::ptr::null());
        // A host function without a frame pointer.
        stack.push(0xdead, 0xdead, &[0xdead; 5]);
        let inner_entry = stack.push(0xbeef, 0xdead, &[]);
        let c = stack.push(inner_entry, 0x10, &[]);
        let inner = record(inner_entry, (b, 0x1b), &raw const outer);
        let thread = crossings((c, 0x1c), &raw const inner);
        // SAFETY: the stack was built by the rules, and stays.
        let found: Vec<_> =
            unsafe { thread.frames() }.map(|frame| (frame.return_address, frame.pointer)).collect();
        assert_eq!(found, [(0x1c, c), (0x1b, b), (0x1a, a)]);
        let parked = thread.park();
        // Later frames do not affect an observer of the frames above.
        let below = record(0xdead, (c, 0x1c), &raw const inner);
        thread.entry.set(&raw const below);
        thread.exit_fp.set(0xdead);
        // SAFETY: as above.
        let returns = std::thread::scope(|scope| scope.spawn(move || unsafe { parked.returns() }).join());
        assert_eq!(returns.unwrap(), [0x1a, 0x1b, 0x1c]);
    }

    #[test]
    fn maps_name_the_words_of_their_own_calls_only() {
        let heap = Heap::new(HeapOptions::default());
        let object = |text: &str| heap.strings().string(text.as_bytes()).address();
        let (x, y, z) = (object("x"), object("y"), object("z"));
        let mut stack = Stack::new();
        let entry = stack.push(7, 7, &[]);
        let a = stack.push(entry, 0x10, &[x, 0xbad, y]);
        let b = stack.push(a, 0x1008, &[0, z]);
        let c = stack.push(b, 0x1004, &[0xbad]);
        let outer = record(entry, (0, 0), std::ptr::null());
        let thread = crossings((c, 0x5000), &raw const outer);
        let index = Arc::new(FrameIndex::default());
        let roots = || {
            let mut found = Vec::new();
            // SAFETY: the stack was built by the rules, and stays.
            unsafe {
                index.each_root(thread.frames(), &mut |object| {
                    found.push(object.address());
                    object
                });
            }
            found
        };
        assert!(roots().is_empty());
        let maps = FrameMaps::new([(8, &[-8, -24][..]), (4, &[-8, -16][..]), (6, &[][..])]);
        assert!(!maps.is_empty());
        // SAFETY: the words hold permanent objects or null.
        let in_force = unsafe { index.add(0x1000..0x1008, maps) };
        assert_eq!(roots(), [z, x, y]);
        // A unit directly after one whose last instruction is a call is not confused with that call's return
        // address.
        // SAFETY: as above.
        let _behind = unsafe { index.add(0x1008..0x1010, FrameMaps::new([(0, &[-8][..])])) };
        assert_eq!(roots(), [z, x, y]);
        drop(in_force);
        assert!(roots().is_empty());
    }
}
