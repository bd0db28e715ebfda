//! The heap's state of each thread.
//!
//! A [`Mutator`] is part of its `Thread`. Its first words are for compiled code:
//!
//! ```text
//!   +0              gc_stack    innermost GC frame; null when there is none
//!   +8              exit_fp     last exit from compiled code: its frame pointer,
//!   +16             exit_pc       and the address at which it continues
//!   +24             entry       innermost record of an entry into compiled code (`frames.rs`)
//!   +32             depth       number of exceptions being handled or thrown; their stack follows
//!   +72 + 16·class  cursor      where the next cell of a size class begins
//!   +80 + 16·class  limit       where the free cells end
//!
//!   GC frame        +0   number of root slots, times 4
//!                   +8   the previously innermost frame
//!                   +16  the root slots: addresses of objects, or null
//! ```
//!
//! **Allocating.**
//! `c = cursor; n = c + cell; if n > limit (unsigned): slow; cursor = n; [c] = tag; object = c + 8`. Between
//! two safepoints no other word changes. The memory contains dead objects: before the next safepoint the tag
//! has to be written, and every word of the object has to be its value or zero. Clearing cells in advance, a
//! run at a time, would write each of them twice, and bring the memory into the cache before it is used.
//!
//! **M1.** A mutator on the world's list is alive: its thread removes it from the list before it is dropped.
//! **M2.** Everything here except the handshake and the participant's wait flag is accessed by the owning
//! thread while it runs, and by the collector while that thread is stopped. The handshake orders the two.

use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use brolga_instances::{Fences, Participant, Stay};

use super::chunk::{BlockPtr, Side};
use super::class::{CLASSES, SizeClass};
use super::handshake::Handshake;
use super::layout::{BLOCK, TAG_BYTES};
use super::object::Object;
use super::thread_cells::ThreadTable;
use crate::frames::HandlerRecord;
use crate::frames::{Crossings, FrameIndex, Frames};
use crate::pending::Exceptions;
use crate::retired::{Retired, may_hold};
use crate::span::Span;

/// A run of free cells.
#[derive(Debug)]
#[repr(C)]
struct Run {
    cursor: Cell<*mut u8>,
    limit: Cell<*mut u8>,
}

/// The start of a GC frame; the root slots follow.
#[derive(Debug)]
#[repr(C)]
pub struct GcFrame {
    /// The number of root slots, times 4.
    pub count: usize,
    /// The previously innermost frame.
    pub previous: *mut GcFrame,
}

/// A block whose free cells a mutator allocates.
#[derive(Clone, Copy, Debug)]
struct Current {
    block: BlockPtr,
    /// Whose marks say which cells are free.
    side: Side,
    /// The first cell not yet examined.
    next: usize,
}

/// How often a paused mutator had entered the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    pub(super) depth: u32,
}

/// The heap's part of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Mutator {
    gc_stack: Cell<*mut GcFrame>,
    crossings: Crossings,
    pub(crate) exceptions: Exceptions,
    runs: [Run; CLASSES],
    current: [Cell<Option<Current>>; CLASSES],
    pub(crate) handshake: Handshake,
    /// The state of a backend other than the default.
    #[cfg(feature = "heap-mmtk")]
    pub(super) plan: Cell<Option<NonNull<()>>>,
    /// The number of nested entries.
    pub(crate) depth: Cell<u32>,
    /// Regions that compiled code has left by `brolga_gc_leave` but not entered again.
    pub(crate) left: RefCell<Vec<Paused>>,
    /// Whether a scope is in use: a second one would see objects that the first does not keep alive.
    pub(crate) in_scope: Cell<bool>,
    /// Whether the thread is between entering and leaving the heap, running or not. Only then does it have
    /// roots, and only then is its stack unchanged while it does not run; the collector examines no other
    /// threads.
    pub(crate) inside: Cell<bool>,
    pub(crate) finalizing: Cell<bool>,
    pub(crate) registered: Cell<bool>,
    /// Slow allocations until the next collection under stress.
    pub(crate) until_stress: Cell<u32>,
    /// Roots of Rust code.
    pub(crate) locals: RefCell<Vec<Option<Object>>>,
    /// Old objects that were stored into.
    pub(crate) remembered: RefCell<Vec<Object>>,
    /// References in old, large `Memory`s that were stored: the `Memory`, and the offset in it (`slots.rs`).
    pub(crate) slots: RefCell<Vec<(Object, usize)>>,
    /// The thread's part in the reclamation of code.
    pub(crate) participant: Participant<Retired>,
    /// The worlds of the entries on the stack.
    span: Arc<Span>,
    /// The tag of strings, once one was allocated; 0 before.
    pub(crate) string: Cell<u64>,
    /// The thread's cells of thread-local variables.
    pub(crate) cells: ThreadTable,
}

/// Offsets in [`Mutator`] that machine code contains.
pub struct MutatorLayout;

impl MutatorLayout {
    /// The innermost GC frame.
    pub const GC_STACK: usize = offset_of!(Mutator, gc_stack);
    /// The frame pointer of the compiled code left last.
    pub const EXIT_FP: usize = offset_of!(Mutator, crossings) + Crossings::EXIT_FP;
    /// The address at which it continues.
    pub const EXIT_PC: usize = offset_of!(Mutator, crossings) + Crossings::EXIT_PC;
    /// The innermost entry record.
    pub const ENTRY: usize = offset_of!(Mutator, crossings) + Crossings::ENTRY;
    /// The number of exceptions being handled or thrown.
    pub const EXCEPTIONS: usize = offset_of!(Mutator, exceptions) + Exceptions::DEPTH;
    /// The cursor of size class 0; the limit is in the next word. The other classes follow.
    pub const RUNS: usize = offset_of!(Mutator, runs);
    /// The distance from one class to the next.
    pub const RUN_BYTES: usize = size_of::<Run>();
    /// The cursor of a class.
    pub const fn cursor(class: usize) -> usize {
        Self::RUNS + class * Self::RUN_BYTES
    }
}

impl Mutator {
    pub(crate) fn new(participant: Participant<Retired>, span: Arc<Span>, fences: Fences) -> Mutator {
        let empty =
            || Run { cursor: Cell::new(std::ptr::null_mut()), limit: Cell::new(std::ptr::null_mut()) };
        Mutator {
            gc_stack: Cell::new(std::ptr::null_mut()),
            crossings: Crossings::default(),
            span,
            string: Cell::new(0),
            cells: ThreadTable::default(),
            exceptions: Exceptions::default(),
            runs: std::array::from_fn(|_| empty()),
            current: std::array::from_fn(|_| Cell::new(None)),
            handshake: Handshake::new(fences),
            #[cfg(feature = "heap-mmtk")]
            plan: Cell::new(None),
            depth: Cell::new(0),
            left: RefCell::new(Vec::new()),
            in_scope: Cell::new(false),
            inside: Cell::new(false),
            finalizing: Cell::new(false),
            registered: Cell::new(false),
            until_stress: Cell::new(0),
            locals: RefCell::new(Vec::new()),
            remembered: RefCell::new(Vec::new()),
            slots: RefCell::new(Vec::new()),
            participant,
        }
    }

    /// Until the result is dropped, the thread enters no code except by entries of its own: retired code does
    /// not wait for it, unless the code has a frame on its stack, which the retiring thread checks.
    pub(crate) fn stay(&self) -> Option<Stay<'_, Retired>> {
        // Outside, nothing waits for it.
        self.participant.is_inside().then(|| {
            let (parked, returns) = (self.crossings.park(), OnceLock::new());
            let worlds = self.span.worlds();
            self.participant.stay(move |code| {
                // SAFETY: the reclaimer calls this under its lock while the stay is in force. The thread starts, suspends and ends
                // the stay under the same lock, so its earlier actions happen before, and it is still in what it called when it
                // made the stay: it has not returned to any of the frames above, whose links were written when they were made.
                may_hold(code, returns.get_or_init(|| unsafe { parked.returns() }), worlds)
            })
        })
    }

    /// A zeroed object in the next cell of the current run, with its tag.
    #[inline]
    pub(crate) fn bump(&self, class: SizeClass, tag: u64) -> Option<Object> {
        let run = &self.runs[class.index()];
        let cell = run.cursor.get();
        let end = cell.wrapping_add(class.cell_bytes());
        if end > run.limit.get() {
            return None;
        }
        run.cursor.set(end);
        // SAFETY: cells between cursor and limit are in a block that this mutator owns, and no other code can
        // reach them.
        let object = unsafe {
            let start = cell.add(TAG_BYTES);
            start.write_bytes(0, class.cell_bytes() - TAG_BYTES);
            Object::from_pointer(NonNull::new_unchecked(start))
        };
        object.set_tag(tag);
        Some(object)
    }

    /// Finds the next free cells of the current block, at most `max_cells` if given; returns whether there
    /// are any.
    pub(crate) fn next_run(&self, class: SizeClass, max_cells: Option<usize>) -> bool {
        let Some(Current { block, side, next }) = self.current[class.index()].get() else { return false };
        let max_bytes = max_cells.map_or(BLOCK, |cells| cells * class.cell_bytes());
        // SAFETY: this mutator owns the block, which stays mapped while it does.
        let Some((start, end)) = (unsafe { block.next_run(side, class, next, max_bytes) }) else {
            self.current[class.index()].set(None);
            return false;
        };
        let (from, to) = (block.cell(class, start), block.cell(class, end));
        self.current[class.index()].set(Some(Current { block, side, next: end }));
        self.runs[class.index()].cursor.set(from.as_ptr());
        self.runs[class.index()].limit.set(to.as_ptr());
        true
    }

    /// Makes a block the current one of its class.
    pub(crate) fn take(&self, class: SizeClass, (block, side): (BlockPtr, Side)) {
        self.current[class.index()].set(Some(Current { block, side, next: 0 }));
    }

    /// Releases all blocks; the next allocation of every class takes the slow path.
    pub(crate) fn retire(&self) {
        for (run, current) in self.runs.iter().zip(&self.current) {
            run.cursor.set(std::ptr::null_mut());
            run.limit.set(std::ptr::null_mut());
            current.set(None);
        }
    }

    /// The bump range of compiled code with one run for all classes.
    #[cfg(feature = "heap-mmtk")]
    pub(super) fn shared_run(&self) -> (*mut u8, *mut u8) {
        (self.runs[0].cursor.get(), self.runs[0].limit.get())
    }

    /// Sets the bump range of compiled code with one run for all classes.
    #[cfg(feature = "heap-mmtk")]
    pub(super) fn set_shared_run(&self, cursor: *mut u8, limit: *mut u8) {
        self.runs[0].cursor.set(cursor);
        self.runs[0].limit.set(limit);
    }

    /// The innermost GC frame.
    pub fn gc_stack(&self) -> *mut GcFrame {
        self.gc_stack.get()
    }

    /// Restores a previously innermost frame that is still on the stack.
    pub(crate) fn restore_gc_stack(&self, frame: *mut GcFrame) {
        self.gc_stack.set(frame);
    }

    /// Makes a frame the innermost one.
    ///
    /// # Safety
    ///
    /// The frame and those it links are in activations that are still on this thread's stack, and their slots
    /// hold addresses of live objects of this heap, or null.
    pub unsafe fn set_gc_stack(&self, frame: *mut GcFrame) {
        self.gc_stack.set(frame);
    }

    /// Called when the thread's frames are gone, and with them the guards that would have undone their
    /// effects here.
    pub(crate) fn forget_frames(&self) {
        self.gc_stack.set(std::ptr::null_mut());
        self.crossings.forget();
        self.left.borrow_mut().clear();
        self.locals.borrow_mut().clear();
        self.in_scope.set(false);
        self.inside.set(false);
        self.finalizing.set(false);
    }

    /// Whether a handler belongs to the innermost entry into compiled code.
    pub(crate) fn is_entry(&self, handler: *const HandlerRecord) -> bool {
        self.crossings.is_entry(handler)
    }

    /// The frames of compiled code on the thread's stack, innermost first.
    ///
    /// # Safety
    ///
    /// The caller is the thread itself, or the collector while the thread is stopped (M2). The thread does
    /// not return from any of the frames until the walk has ended.
    pub(crate) unsafe fn frames(&self) -> Frames<'_> {
        // SAFETY: compiled code and routines maintain the words, and the thread is in neither of them now.
        unsafe { self.crossings.frames() }
    }

    /// Calls `body` with objects in the words of a new frame: they stay alive during collections, and the
    /// words track their addresses.
    pub(crate) fn with_words<R>(
        &self,
        objects: &[Object],
        body: impl FnOnce(*const Object, usize) -> R,
    ) -> R {
        struct Unlink<'a>(&'a Mutator, *mut GcFrame);
        impl Drop for Unlink<'_> {
            fn drop(&mut self) {
                self.0.restore_gc_stack(self.1);
            }
        }
        let previous = self.gc_stack.get();
        let mut words: Vec<*mut u8> = Vec::with_capacity(objects.len() + 2);
        words.push(std::ptr::without_provenance_mut(objects.len() << 2));
        words.push(previous.cast());
        words.extend(objects.iter().map(|object| object.pointer().as_ptr()));
        let _unlink = Unlink(self, previous);
        self.gc_stack.set(words.as_mut_ptr().cast());
        body(words.as_ptr().wrapping_add(2).cast(), objects.len())
    }

    /// Passes every root of this thread to `visit`, and replaces it by the result: the same object at its
    /// current address. Counts the frames.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the thread is stopped (M2).
    pub(crate) unsafe fn each_root(
        &self,
        maps: &FrameIndex,
        visit: &mut dyn FnMut(Object) -> Object,
    ) -> usize {
        if !self.inside.get() {
            return 0;
        }
        // SAFETY: the thread is stopped inside the heap.
        let mut count = unsafe { maps.each_root(self.frames(), visit) };
        let mut frame = self.gc_stack.get();
        while !frame.is_null() {
            // SAFETY: linked frames are on the stack of the stopped thread, and have as many slots as their
            // count states (contract of `set_gc_stack`, which compiled code also upholds).
            unsafe {
                let slots = frame.add(1).cast::<Option<Object>>();
                for index in 0..(*frame).count >> 2 {
                    (*slots.add(index)).iter_mut().for_each(|root| update(root, visit));
                }
                frame = (*frame).previous;
            }
            count += 1;
        }
        self.locals.borrow_mut().iter_mut().flatten().for_each(|root| update(root, visit));
        self.exceptions.each_object(|root| update(root, visit));
        count
    }
}

fn update(root: &mut Object, visit: &mut dyn FnMut(Object) -> Object) {
    let now = visit(*root);
    if now != *root {
        *root = now;
    }
}

/// A mutator on the world's list (M1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    mutator: NonNull<Mutator>,
    poll: NonNull<AtomicU32>,
}

// SAFETY: through a member other threads access the handshake and the poll word, which are atomic, and, while
// its thread is stopped, the rest (M2).
unsafe impl Send for Member {}

impl Member {
    /// # Safety
    ///
    /// Both live, at their addresses, until the member is taken off the world's list (M1).
    pub(crate) unsafe fn new(mutator: &Mutator, poll: &AtomicU32) -> Member {
        Member { mutator: mutator.into(), poll: poll.into() }
    }

    pub(crate) fn is(&self, mutator: &Mutator) -> bool {
        std::ptr::eq(self.mutator.as_ptr(), mutator)
    }

    pub(crate) fn handshake(&self) -> &Handshake {
        // SAFETY: the mutator is alive (M1), and its handshake consists of atomics.
        unsafe { &(*self.mutator.as_ptr()).handshake }
    }

    pub(crate) fn poll(&self) -> &AtomicU32 {
        // SAFETY: the word is alive (M1).
        unsafe { self.poll.as_ref() }
    }

    /// # Safety
    ///
    /// The caller is the collector, and the thread is stopped (M2).
    pub(crate) unsafe fn mutator(&self) -> &Mutator {
        // SAFETY: by the contract and M1.
        unsafe { self.mutator.as_ref() }
    }
}
