//! Loaded code for the system's unwinder: backtraces of the process go through compiled code.
//!
//! ```text
//!   table of a unit   CIE  the frame pointer leads: CFA = fp + 16, fp at CFA − 16, return address at CFA − 8; personality
//!                     FDE  first address, bytes
//!                     0
//! ```
//!
//! One rule holds for all code, because every function has a frame pointer, and an activation is past its prologue whenever
//! another one runs. So a unit has one entry, however many functions it has. The rule does not say where callee-saved
//! registers are: it serves backtraces, not unwinding through the frames, which is forbidden: a panic or foreign exception
//! ends at the `extern "C"` functions by which compiled code is entered and left. A forced unwind, by which `pthread_exit`
//! ends a thread, ends here: the personality reports the end of the stack to its stop function, as it would be
//! without tables, and the thread continues after its start routine. Destructors of outer Rust frames would run with wrong
//! registers.
//!
//! Code of object files has tables of its own (`link/object/start.rs`).
//!
//! Cost: a table of some hundred bytes for each unit, and the unwinder's time to enter it (about 1 µs).
//!
//! Not done: systems whose unwinder is not GCC's, where nothing is registered; macOS and musl among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::debug::code_map::{CodeListener, CodeUnit, UnitId};

/// Registers loaded code with the system's unwinder.
#[derive(Default)]
pub struct UnwindTables {
    /// The registered tables, whose bytes do not move.
    tables: Mutex<BTreeMap<UnitId, Box<[u8]>>>,
}

impl UnwindTables {
    /// Nothing is registered yet.
    pub fn new() -> UnwindTables {
        UnwindTables::default()
    }

    /// How many units are registered.
    pub fn len(&self) -> usize {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether no unit is registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl CodeListener for UnwindTables {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        let addresses = unit.addresses();
        if addresses.is_empty() || unit.is_object() || !system::IS_SUPPORTED {
            return;
        }
        let table = table(addresses.start as u64, addresses.len() as u64).into_boxed_slice();
        // SAFETY: the table is well-formed, and stays where it is until it is taken back.
        unsafe { system::register(table.as_ptr()) };
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).insert(unit.id(), table);
    }

    fn freed(&self, unit: &Arc<CodeUnit>) {
        let table = self.tables.lock().unwrap_or_else(PoisonError::into_inner).remove(&unit.id());
        if let Some(table) = table {
            // SAFETY: it was registered, once.
            unsafe { system::deregister(table.as_ptr()) };
        }
    }
}

impl Drop for UnwindTables {
    fn drop(&mut self) {
        let tables = self.tables.get_mut().unwrap_or_else(PoisonError::into_inner);
        for table in tables.values() {
            // SAFETY: it was registered, once.
            unsafe { system::deregister(table.as_ptr()) };
        }
    }
}

/// DWARF's numbers of the frame pointer and of the return address.
const FRAME_POINTER: u8 = if cfg!(target_arch = "x86_64") { 6 } else { 29 };
const RETURN_ADDRESS: u8 = if cfg!(target_arch = "x86_64") { 16 } else { 30 };

/// An `.eh_frame` section for one range of code.
fn table(start: u64, bytes: u64) -> Vec<u8> {
    /// `DW_CFA_def_cfa`, register, offset.
    const DEF_CFA: u8 = 0x0c;
    /// `DW_CFA_offset` with the register in the low bits; then the offset in units of -8.
    const OFFSET: u8 = 0x80;
    let mut cie = Vec::new();
    // The id of a CIE, version 1, sized augmentation with a personality, units of code 1, of data -8.
    cie.extend(0u32.to_ne_bytes());
    cie.extend(*b"\x01zP\0");
    cie.extend([1, 0x78, RETURN_ADDRESS]);
    // The augmentation: nine bytes, the first of which means that an absolute address follows.
    cie.extend([9, 0]);
    cie.extend((system::personality as *const () as u64).to_ne_bytes());
    cie.extend([DEF_CFA, FRAME_POINTER, 16, OFFSET | FRAME_POINTER, 2, OFFSET | RETURN_ADDRESS, 1]);
    let mut section = Vec::new();
    entry(&mut section, cie);
    let mut fde = Vec::new();
    // The distance from here back to the CIE.
    fde.extend((section.len() as u32 + 4).to_ne_bytes());
    fde.extend(start.to_ne_bytes());
    fde.extend(bytes.to_ne_bytes());
    // No augmentation of its own.
    fde.push(0);
    entry(&mut section, fde);
    section.extend(0u32.to_ne_bytes());
    section
}

/// Adds an entry, with its length first, padded with `DW_CFA_nop`.
fn entry(section: &mut Vec<u8>, mut body: Vec<u8>) {
    body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
    section.extend((body.len() as u32).to_ne_bytes());
    section.extend(body);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::c_void;

    pub(super) const IS_SUPPORTED: bool = true;

    /// The unwind is forced.
    const FORCED: i32 = 8;
    /// There is no frame further up.
    const END_OF_STACK: i32 = 16;
    /// `_URC_END_OF_STACK`.
    const ENDED: i32 = 5;
    /// `_URC_CONTINUE_UNWIND`.
    const CONTINUE: i32 = 8;

    /// `_Unwind_Stop_Fn`.
    type Stop = unsafe extern "C-unwind" fn(i32, i32, u64, *mut Exception, *mut c_void, *mut c_void) -> i32;

    /// `_Unwind_Exception`.
    #[repr(C)]
    pub(super) struct Exception {
        class: u64,
        cleanup: *mut c_void,
        /// The stop function of a forced unwind.
        stop: Option<Stop>,
        argument: *mut c_void,
    }

    /// The personality routine that the unwinder calls for a frame of compiled code.
    ///
    /// # Safety
    ///
    /// The caller is the unwinder.
    pub(super) unsafe extern "C-unwind" fn personality(
        version: i32,
        actions: i32,
        class: u64,
        exception: *mut Exception,
        context: *mut c_void,
    ) -> i32 {
        if actions & FORCED == 0 {
            return CONTINUE;
        }
        // SAFETY: the exception of a forced unwind has a stop function and its argument in its private words, and the unwinder calls it
        // with these arguments. A return would continue further up, which must not happen.
        unsafe {
            if let Some(stop) = (*exception).stop {
                stop(version, actions | END_OF_STACK, class, exception, context, (*exception).argument);
            }
        }
        ENDED
    }

    unsafe extern "C" {
        fn __register_frame(table: *const u8);
        fn __deregister_frame(table: *const u8);
    }

    /// # Safety
    ///
    /// The table is a whole section, and stays until it is deregistered.
    pub(super) unsafe fn register(table: *const u8) {
        // SAFETY: by the contract.
        unsafe { __register_frame(table) }
    }

    /// # Safety
    ///
    /// The table is registered.
    pub(super) unsafe fn deregister(table: *const u8) {
        // SAFETY: by the contract.
        unsafe { __deregister_frame(table) }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) const IS_SUPPORTED: bool = false;

    pub(super) fn personality() {}

    pub(super) unsafe fn register(_: *const u8) {}

    pub(super) unsafe fn deregister(_: *const u8) {}
}
