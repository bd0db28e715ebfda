//! Calling compiled functions many times within one entry, and raw entries for chains of code blocks.
//!
//! ```text
//!   activate ── find the thread, enter the heap, pin it, enter the newest world          paid once
//!      │
//!      ├─ func.call_within(&activation, args)                                            the trampoline of the signature
//!      └─ raw.call(&activation, args, results)                                           the same, without types
//!              └─ raw.word() ──► code         code of the embedder's own:  call [word]
//! ```
//!
//! [`TypedFunc::call`] enters and leaves each time. An interpreter or an emulator that runs short blocks enters once, by [`activate`], and calls within
//! that *activation*. All calls within one are made in the world in which it began, as calls within one compiled function
//! are; a redefinition takes effect in the next activation.
//!
//! **During an activation**, collections wait for the thread unless it runs compiled code, which polls; and retired code waits for it. So
//! it should neither block nor continue for long without a call. Blocking work belongs in [`Thread::blocking`](brolga_runtime::Thread::blocking).
//!
//! Cost of a call within an activation: the trampoline, which loads arguments from memory and keeps the registers of Rust, and three loads.

use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga_codegen::entry::RETURNED;
use brolga_runtime::objects::InWorld;
use brolga_runtime::{Entered, Exception, HeapEntry, Runtime, Thread, with_attached};

use super::func::{CallError, Callable, EntryFn, UntypedFunc};
use super::typed::TypedFunc;
use super::value::{Params, Value};

/// An entry of a thread into the code of a runtime that lasts over several calls: see the file's header.
pub struct Activation<'t> {
    // In the order in which they are left.
    #[expect(dead_code, reason = "the thread is in the world until this is dropped")]
    world: InWorld<'t>,
    entered: Entered<'t>,
    #[expect(dead_code, reason = "the thread is in the heap until this is dropped")]
    heap: HeapEntry<'t>,
    thread: &'t Thread,
    runtime: &'t Arc<Runtime>,
}

impl std::fmt::Debug for Activation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Activation in world {}", self.thread.world())
    }
}

/// Enters the code of a runtime on the running thread, for all calls within `body`.
///
/// # Errors
/// The thread cannot be attached, or a scope of the runtime is in use on it.
pub fn activate<R>(
    runtime: &Arc<Runtime>,
    body: impl for<'t> FnOnce(&Activation<'t>) -> R,
) -> Result<R, CallError> {
    with_attached(runtime, |thread| {
        if thread.in_scope() {
            return Err(CallError::InScope);
        }
        let heap = thread.enter_heap(runtime)?;
        let entered = thread.enter();
        let world = thread.enter_world(runtime.methods());
        Ok(body(&Activation { world, entered, heap, thread, runtime }))
    })?
}

impl Activation<'_> {
    /// The world in which calls within it are made.
    #[must_use]
    pub fn world(&self) -> u64 {
        self.thread.world()
    }

    /// Makes the calls within `body` in the newest world, as `invokelatest` does: they see what was defined since the activation began.
    pub fn latest<R>(&self, body: impl FnOnce(&Self) -> R) -> R {
        let _world = self.thread.enter_latest_world();
        body(self)
    }

    /// Makes the calls within `body` in an earlier world, as `invoke_in_world` does; in the newest one if the number is
    /// higher ([`Runtime::world`](brolga_runtime::Runtime::world) counts them). A version of a function stays while a thread
    /// is in one of its worlds: in a world that no thread has been in for a while, calls may reach the oldest version that
    /// still exists, and dynamic calls may find no method.
    pub fn in_world<R>(&self, world: u64, body: impl FnOnce(&Self) -> R) -> R {
        let _world = self.thread.enter_world_of(world);
        body(self)
    }

    /// The thread that trampolines are called with.
    #[must_use]
    pub fn thread(&self) -> *const Thread {
        self.thread
    }

    /// Whether calls of the function may be made within: it belongs to the runtime, its dynamic calls search the
    /// activation's table, and no scope is in use, whose objects no root would keep.
    fn reaches(&self, callable: &Callable) -> bool {
        Arc::ptr_eq(self.runtime, callable.runtime())
            && callable.methods().is_none_or(|methods| methods.id() == self.runtime.methods().id())
            && !self.thread.in_scope()
    }
}

/// The entry of a function without its types: for embedders that chain blocks of code.
///
/// **Words.** Arguments and results are arrays of 64-bit words: one for each entry of the [signature](UntypedFunc::signature), two for one of
/// 128 bits; a narrow value is in the low bytes of its word, and the bits above a narrow result are left as they were.
#[derive(Clone, Debug)]
pub struct RawEntry {
    callable: Callable,
}

impl RawEntry {
    /// The address of the word that leads to the function's code, for code that calls through it: `call [word]`. `None` for
    /// a function of an engine's unit, whose [code](RawEntry::code) does not move.
    ///
    /// Reading it is safe as long as this entry, or another handle of the function, is held. To jump to its content, all of
    /// this must be true:
    ///
    /// - The word was read by an acquire load since the thread's last safepoint. Compiled code that is called is a safepoint, and so are defining,
    ///   removing and evicting on the same thread: what the word held before may be freed then.
    /// - The thread is in an [`Activation`] of the function's runtime, which began before the word was read: it pins the
    ///   code and determines the world.
    /// - The caller follows the calling convention of compiled code (`tail` of Cranelift; the thread is in the pinned register). Code that does not
    ///   calls the [trampoline](RawEntry::trampoline).
    #[must_use]
    pub fn word(&self) -> Option<*const usize> {
        self.callable.word().map(std::ptr::with_exposed_provenance)
    }

    /// The current address of the code, by an acquire load of the word. The caller has the same obligations as for
    /// [`RawEntry::word`].
    #[must_use]
    #[inline]
    pub fn code(&self) -> usize {
        self.callable.code()
    }

    /// The trampoline of the signature: called with the [thread](Activation::thread), the code, the words of the arguments
    /// and memory for the results' words, by the C convention. It returns 0 when the function has returned; otherwise an
    /// exception is pending, which [`RawEntry::call`] would have taken. It is valid as long as this entry is held.
    #[must_use]
    pub fn trampoline(&self) -> unsafe extern "C" fn(*const Thread, usize, *const u64, *mut u64) -> i32 {
        self.callable.trampoline()
    }

    /// Calls the function.
    ///
    /// # Errors
    /// The exception that the function threw.
    ///
    /// # Safety
    ///
    /// The activation is one of the function's runtime, and no scope of it is in use on the thread. `args` has as many readable words as the
    /// parameters take, which hold values of the parameters' types (an object is the address of a live one), and `results` as many writable
    /// words as the results take. A function of an engine's unit that calls dynamically finds the methods that all programs
    /// see, not its own program's.
    #[inline]
    pub unsafe fn call(
        &self,
        activation: &Activation<'_>,
        args: *const u64,
        results: *mut u64,
    ) -> Result<(), Exception> {
        let trampoline: EntryFn = self.callable.trampoline();
        // SAFETY: the trampoline and the code belong to one function, which `self` holds; the thread is the running one, and
        // is entered, by the activation; the words satisfy the contract. The trampoline returns on both exits.
        let status = unsafe { trampoline(activation.thread, self.callable.code(), args, results) };
        if status != RETURNED || activation.entered.carries() {
            return Err(activation.entered.take_exception());
        }
        Ok(())
    }
}

impl RawEntry {
    /// Calls the function outside of an activation: it enters and leaves, as [`TypedFunc::call`] does.
    ///
    /// # Errors
    /// As for [`TypedFunc::call`].
    ///
    /// # Safety
    ///
    /// As for [`RawEntry::call`], but for the activation, of which there is none; no value is an object.
    #[inline]
    pub unsafe fn call_alone(&self, args: *const u64, results: *mut u64) -> Result<(), CallError> {
        // SAFETY: F1 of `func.rs`, by the contract.
        unsafe { self.callable.call(args, results) }.map_err(|error| *error)
    }
}

impl UntypedFunc {
    /// The function's entry without its types.
    #[must_use]
    pub fn raw(&self) -> RawEntry {
        RawEntry { callable: self.callable.clone() }
    }
}

impl<A, R> TypedFunc<A, R> {
    /// The function's entry without its types.
    #[must_use]
    pub fn raw(&self) -> RawEntry {
        RawEntry { callable: self.callable.clone() }
    }
}

impl<A: Params, R: Value> TypedFunc<A, R> {
    /// Calls the function within an activation. If the activation is not of the function's runtime, or does not reach its
    /// methods, as [`TypedFunc::call`].
    ///
    /// # Errors
    /// As [`TypedFunc::call`].
    pub fn call_within(&self, activation: &Activation<'_>, args: A) -> Result<R, CallError> {
        let callable = &self.callable;
        if self.by_memory.is_some() || !activation.reaches(callable) {
            return self.call(args);
        }
        let args = args.into_words();
        // Compiled code leaves the bytes above a narrow leaf alone, so they have to be initialised.
        let mut results = MaybeUninit::<R::Words>::zeroed();
        // SAFETY: as F1 of `func.rs`: lookup compared the sizes of both word types with the signature of the trampoline. The thread is the
        // activation's, which is the running one; it cannot be sent to another.
        let status = unsafe {
            callable.trampoline()(
                activation.thread,
                callable.code(),
                (&raw const args).cast(),
                results.as_mut_ptr().cast(),
            )
        };
        if status != RETURNED || activation.entered.carries() {
            return Err(activation.entered.take_exception().into());
        }
        // SAFETY: words are `u64`s, all of whose bytes were zeroed above.
        Ok(R::from_words(unsafe { results.assume_init() })?)
    }
}
