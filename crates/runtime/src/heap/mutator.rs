//! The heap's state of each thread.
//!
//! A [`Mutator`] is part of its `Thread`. Its first words are for compiled code:
//!
//! ```text
//!   +0              gc_stack    innermost GC frame; null when there is none
//!   +8              exit_fp     where compiled code was left last: its frame pointer,
//!   +16             exit_pc       and the address that it continues at
//!   +24             entry       innermost record of an entry into compiled code (`frames.rs`)
//!   +32             depth       how many exceptions are being handled or thrown; their stack is behind it
//!   +72 + 16·class  cursor      where the next cell of a size class begins
//!   +80 + 16·class  limit       where the free cells end
//!
//!   GC frame        +0   number of root slots, times 4
//!                   +8   the frame that was innermost before
//!                   +16  the root slots: addresses of objects, or null
//! ```
//!
//! **Allocating.** `c = cursor; n = c + cell; if n > limit (unsigned): slow; cursor = n; [c] = tag; object = c + 8`. Between two
//! safepoints no other word changes. The memory has the contents of dead objects: before the next safepoint the tag has to be
//! there, and in every word of the object its value or zero. Clearing cells in advance, a run at a time, would write each of them
//! twice, and fetch the memory into the cache earlier than its use.
//!
//! **M1.** A mutator on the world's list is alive: its thread takes it off the list before it goes.
//! **M2.** Everything here except the handshake, and whether something waits for the participant, is accessed by the owning thread while it runs, and by the
//! collector while that thread is stopped. The handshake orders the two.

use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use brolga_instances::{Fences, Participant, Stay};

use super::chunk::BlockPtr;
use super::class::{CLASSES, SizeClass};
use super::handshake::Handshake;
use super::layout::{BLOCK, TAG_BYTES};
use super::object::Object;
use crate::frames::HandlerRecord;
use crate::frames::{Crossings, FrameIndex, Frames};
use crate::pending::Exceptions;
use crate::retired::{Retired, may_hold};
use crate::span::Span;

/// Free cells in a row.
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
    /// The frame that was innermost before.
    pub previous: *mut GcFrame,
}

/// A block whose free cells a mutator hands out.
#[derive(Clone, Copy, Debug)]
struct Current {
    block: BlockPtr,
    /// The first cell that was not looked at.
    next: usize,
}

/// How often a mutator that is outside for a while had entered the heap.
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
    /// The state of another backend than the default.
    #[cfg(feature = "heap-mmtk")]
    pub(super) plan: Cell<Option<NonNull<()>>>,
    /// How many entries are nested.
    pub(crate) depth: Cell<u32>,
    /// Regions that compiled code has left by `brolga_gc_leave` and not entered again.
    pub(crate) left: RefCell<Vec<Paused>>,
    /// Whether a scope is in use, so that another one would see objects that this one does not keep.
    pub(crate) in_scope: Cell<bool>,
    /// Whether the thread is between entering and leaving the heap, running or not. Only then it has roots, and only then its stack does
    /// not change while the thread does not run: the collector looks at no other thread's.
    pub(crate) inside: Cell<bool>,
    pub(crate) finalizing: Cell<bool>,
    pub(crate) registered: Cell<bool>,
    /// Slow allocations until the next collection under stress.
    pub(crate) until_stress: Cell<u32>,
    /// Roots of Rust code.
    pub(crate) locals: RefCell<Vec<Option<Object>>>,
    /// Old objects that were stored into.
    pub(crate) remembered: RefCell<Vec<Object>>,
    /// The thread's part in the reclamation of code.
    pub(crate) participant: Participant<Retired>,
    /// The worlds that entries on the stack are in.
    span: Arc<Span>,
    /// The tag of strings, once one was allocated; 0 before.
    pub(crate) string: Cell<u64>,
}

/// Offsets in [`Mutator`] that machine code contains.
pub struct MutatorLayout;

impl MutatorLayout {
    /// The innermost GC frame.
    pub const GC_STACK: usize = offset_of!(Mutator, gc_stack);
    /// The frame pointer of the compiled code that was left last.
    pub const EXIT_FP: usize = offset_of!(Mutator, crossings) + Crossings::EXIT_FP;
    /// The address that it continues at.
    pub const EXIT_PC: usize = offset_of!(Mutator, crossings) + Crossings::EXIT_PC;
    /// The innermost entry record.
    pub const ENTRY: usize = offset_of!(Mutator, crossings) + Crossings::ENTRY;
    /// How many exceptions are being handled or thrown.
    pub const EXCEPTIONS: usize = offset_of!(Mutator, exceptions) + Exceptions::DEPTH;
    /// The cursor of size class 0; the limit is in the next word. The other classes follow.
    pub const RUNS: usize = offset_of!(Mutator, runs);
    /// From one class to the next.
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
            participant,
        }
    }

    /// Until the result is dropped, the thread finds no code but behind entries of its own: code that is retired meanwhile does not wait for
    /// it, unless a frame lies there: the retiring thread looks at them.
    pub(crate) fn stay(&self) -> Option<Stay<'_, Retired>> {
        // Outside, nothing waits for it.
        self.participant.is_inside().then(|| {
            let (parked, returns) = (self.crossings.park(), OnceLock::new());
            let worlds = self.span.worlds();
            self.participant.stay(move |code| {
                // SAFETY: the reclaimer asks under its lock while the stay stands. The thread took the lock to let it stand, so what it did before
                // has happened. It ends the stay, or suspends it for what it enters, under the lock as well, and the stay stands again when
                // all of that has been left; so the thread is in what it called when it made the stay, which has returned to none of
                // the frames above. The words that lead from frame to frame were written when these were made.
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
        // SAFETY: cells between cursor and limit lie in a block that this mutator owns, and no other code knows them.
        let object = unsafe {
            let start = cell.add(TAG_BYTES);
            start.write_bytes(0, class.cell_bytes() - TAG_BYTES);
            Object::from_pointer(NonNull::new_unchecked(start))
        };
        object.set_tag(tag);
        Some(object)
    }

    /// Finds the next free cells of the current block, at most `max_cells` if that is given; whether there are any.
    pub(crate) fn next_run(&self, class: SizeClass, max_cells: Option<usize>) -> bool {
        let Some(Current { block, next }) = self.current[class.index()].get() else { return false };
        let max_bytes = max_cells.map_or(BLOCK, |cells| cells * class.cell_bytes());
        // SAFETY: this mutator owns the block, which stays mapped while it does.
        let Some((start, end)) = (unsafe { block.next_run(class, next, max_bytes) }) else {
            self.current[class.index()].set(None);
            return false;
        };
        let (from, to) = (block.cell(class, start), block.cell(class, end));
        self.current[class.index()].set(Some(Current { block, next: end }));
        self.runs[class.index()].cursor.set(from.as_ptr());
        self.runs[class.index()].limit.set(to.as_ptr());
        true
    }

    /// Makes a block the current one of its class.
    pub(crate) fn take(&self, class: SizeClass, block: BlockPtr) {
        self.current[class.index()].set(Some(Current { block, next: 0 }));
    }

    /// Gives up all blocks; the next allocation of every class takes the slow path.
    pub(crate) fn retire(&self) {
        for (run, current) in self.runs.iter().zip(&self.current) {
            run.cursor.set(std::ptr::null_mut());
            run.limit.set(std::ptr::null_mut());
            current.set(None);
        }
    }

    /// Where compiled code that has one run for all classes allocates.
    #[cfg(feature = "heap-mmtk")]
    pub(super) fn shared_run(&self) -> (*mut u8, *mut u8) {
        (self.runs[0].cursor.get(), self.runs[0].limit.get())
    }

    /// Lets compiled code that has one run for all classes allocate from here to there.
    #[cfg(feature = "heap-mmtk")]
    pub(super) fn set_shared_run(&self, cursor: *mut u8, limit: *mut u8) {
        self.runs[0].cursor.set(cursor);
        self.runs[0].limit.set(limit);
    }

    /// The innermost GC frame.
    pub fn gc_stack(&self) -> *mut GcFrame {
        self.gc_stack.get()
    }

    /// Goes back to a frame that was innermost before, and still is on the stack.
    pub(crate) fn restore_gc_stack(&self, frame: *mut GcFrame) {
        self.gc_stack.set(frame);
    }

    /// Makes a frame the innermost one.
    ///
    /// # Safety
    ///
    /// The frame and those behind it lie in activations that are still on this thread's stack, and their slots hold
    /// addresses of live objects of this heap, or null.
    pub unsafe fn set_gc_stack(&self, frame: *mut GcFrame) {
        self.gc_stack.set(frame);
    }

    /// The frames of the thread are gone, and with them the guards that would undo what they did here.
    pub(crate) fn forget_frames(&self) {
        self.gc_stack.set(std::ptr::null_mut());
        self.crossings.forget();
        self.left.borrow_mut().clear();
        self.locals.borrow_mut().clear();
        self.in_scope.set(false);
        self.inside.set(false);
        self.finalizing.set(false);
    }

    /// Whether a handler is that of the innermost entry into compiled code.
    pub(crate) fn is_entry(&self, handler: *const HandlerRecord) -> bool {
        self.crossings.is_entry(handler)
    }

    /// The frames of compiled code on the thread's stack, innermost first.
    ///
    /// # Safety
    ///
    /// The caller is the thread itself, or the collector while the thread is stopped (M2). The thread returns from none of the
    /// frames until the walk has ended.
    pub(crate) unsafe fn frames(&self) -> Frames<'_> {
        // SAFETY: compiled code and routines keep the words, and the thread is in neither of them now.
        unsafe { self.crossings.frames() }
    }

    /// Calls `body` with objects in the words of a frame of their own: whatever is collected meanwhile, they are alive, and the
    /// words say where they are.
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

    /// Gives every root of this thread to `visit`, and lets it hold from now on what that gives back: the same object, where it
    /// is now. Counts the frames.
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
            // SAFETY: linked frames lie on the stack of the stopped thread, and have as many slots as their count says
            // (contract of `set_gc_stack`, which compiled code keeps too).
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

// SAFETY: through a member other threads touch the handshake and the poll word, which are atomic, and, while its thread is
// stopped, the rest (M2).
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
        // SAFETY: the mutator is alive (M1), and its handshake is made of atomics.
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
