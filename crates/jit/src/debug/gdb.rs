//! Loaded code for debuggers with gdb's interface for just-in-time compilers (gdb, lldb).
//!
//! ```text
//!   __jit_debug_descriptor   action, entry ──► Entry ⇄ Entry ⇄ Entry      one list in the process
//!                                                │
//!                                                └─► a file of symbols (`elf.rs`): the functions of one batch
//!   __jit_debug_register_code()                  called after each change; the debugger has a breakpoint in it
//! ```
//!
//! The debugger reads the list when it attaches, so it also sees code that was loaded before.
//!
//! Linux does not let a debugger write to code that has two mappings, so a breakpoint there has to be a hardware one
//! (`hbreak`). With [`Mapping::Private`](crate::Mapping) any kind works.
//!
//! **Batches.** In old debuggers the time for each entry grows with the number of entries, so functions are collected until there
//! are enough for one ([`GdbInterface::new`]), or until [`GdbInterface::flush`]. When a unit is freed, its batch is registered again
//! without it.
//!
//! **Global state.** The interface is the two symbols above in the process: the only state of Brolga that does
//! not belong to an engine. All changes are under one lock, which the debugger does not take; it stops all threads while it reads.
//! A program with another compiler that defines the symbols turns the feature `gdb` off.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::debug::code_map::{CodeListener, CodeUnit};
use crate::debug::elf::symbol_file;

/// Registers loaded code with debuggers.
pub struct GdbInterface {
    /// Functions that make a batch.
    batch: usize,
    /// The name of the file that line numbers refer to.
    source: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Arc<CodeUnit>>,
    batches: Vec<Batch>,
}

struct Batch {
    units: Vec<Arc<CodeUnit>>,
    registered: process::Registered,
}

impl GdbInterface {
    /// An interface that registers code as soon as there are `batch` functions. `source` is the name of the file that line
    /// numbers refer to.
    pub fn new(batch: usize, source: &str) -> GdbInterface {
        GdbInterface { batch, source: source.into(), state: Mutex::default() }
    }

    /// Registers the waiting functions.
    pub fn flush(&self) {
        let mut state = self.lock();
        let units = std::mem::take(&mut state.waiting);
        state.batches.extend(self.register(units));
    }

    fn register(&self, units: Vec<Arc<CodeUnit>>) -> Option<Batch> {
        if units.is_empty() {
            return None;
        }
        let registered = process::Registered::new(symbol_file(&units, &self.source));
        Some(Batch { units, registered })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CodeListener for GdbInterface {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        let waiting = {
            let mut state = self.lock();
            state.waiting.push(unit.clone());
            state.waiting.iter().map(|unit| unit.functions().len()).sum::<usize>()
        };
        if waiting >= self.batch {
            self.flush();
        }
    }

    fn freed(&self, unit: &Arc<CodeUnit>) {
        let is_other = |known: &Arc<CodeUnit>| known.id() != unit.id();
        let mut state = self.lock();
        state.waiting.retain(is_other);
        let Some(at) = state.batches.iter().position(|batch| !batch.units.iter().all(is_other)) else {
            return;
        };
        let Batch { mut units, registered } = state.batches.swap_remove(at);
        drop(registered);
        units.retain(is_other);
        state.batches.extend(self.register(units));
    }
}

/// The list that debuggers read.
mod process {
    use std::ptr::null_mut;
    use std::sync::{Mutex, PoisonError};

    const NOTHING: u32 = 0;
    const REGISTER: u32 = 1;
    const UNREGISTER: u32 = 2;

    #[repr(C)]
    struct Entry {
        next: *mut Entry,
        previous: *mut Entry,
        file: *const u8,
        bytes: u64,
    }

    #[repr(C)]
    struct Descriptor {
        version: u32,
        action: u32,
        relevant: *mut Entry,
        first: *mut Entry,
    }

    // SAFETY: no other symbol of the process has the name, or linking fails.
    #[unsafe(no_mangle)]
    static mut __jit_debug_descriptor: Descriptor =
        Descriptor { version: 1, action: NOTHING, relevant: null_mut(), first: null_mut() };

    /// Does nothing: debuggers stop here.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn __jit_debug_register_code() {
        // Without an effect the call would be left out.
        // SAFETY: an empty sequence of instructions.
        unsafe { std::arch::asm!("", options(nostack, preserves_flags)) }
    }

    /// Held while the descriptor or the list is read or changed.
    static LIST: Mutex<()> = Mutex::new(());

    /// An entry of the list, until it is dropped.
    pub(super) struct Registered {
        entry: *mut Entry,
        /// The file that the entry points to.
        file: Vec<u8>,
    }

    // SAFETY: the entry is only touched under the lock.
    unsafe impl Send for Registered {}

    impl Registered {
        pub(super) fn new(file: Vec<u8>) -> Registered {
            let entry = Entry {
                next: null_mut(),
                previous: null_mut(),
                file: file.as_ptr(),
                bytes: file.len() as u64,
            };
            let registered = Registered { entry: Box::into_raw(Box::new(entry)), file };
            let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the lock is held; the list's entries live until they are removed, which is under the lock as well; the
            // file's bytes do not move with the vector.
            unsafe {
                let first = __jit_debug_descriptor.first;
                (*registered.entry).next = first;
                if !first.is_null() {
                    (*first).previous = registered.entry;
                }
                __jit_debug_descriptor.first = registered.entry;
                announce(REGISTER, registered.entry);
            }
            registered
        }
    }

    impl Drop for Registered {
        fn drop(&mut self) {
            let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the lock is held; the entry is in the list since `new`, and was made by a box.
            unsafe {
                let Entry { next, previous, .. } = *self.entry;
                match previous.is_null() {
                    true => __jit_debug_descriptor.first = next,
                    false => (*previous).next = next,
                }
                if !next.is_null() {
                    (*next).previous = previous;
                }
                announce(UNREGISTER, self.entry);
                drop(Box::from_raw(self.entry));
            }
            self.file.clear();
        }
    }

    /// # Safety
    ///
    /// The lock is held, and the entry is not freed yet.
    unsafe fn announce(action: u32, entry: *mut Entry) {
        // SAFETY: by the contract.
        unsafe {
            __jit_debug_descriptor.action = action;
            __jit_debug_descriptor.relevant = entry;
        }
        __jit_debug_register_code();
        // SAFETY: by the contract.
        unsafe {
            __jit_debug_descriptor.action = NOTHING;
            __jit_debug_descriptor.relevant = null_mut();
        }
    }
}
