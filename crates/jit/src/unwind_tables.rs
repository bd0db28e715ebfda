//! Loaded code for the system's unwinder: backtraces of the process go through compiled code.
//!
//! ```text
//!   table of a unit   CIE  the frame pointer leads: CFA = fp + 16, fp at CFA − 16, return address at CFA − 8
//!                     FDE  first address, bytes
//!                     0
//! ```
//!
//! One rule holds for all code, because every function has a frame pointer, and wherever an activation stands while another
//! one runs it is past its prologue. So a unit has one entry, however many functions it has. The rule does not say where
//! callee-saved registers are: it serves those who look at the stack, not those who want to go on further up. Nobody may: a
//! panic or foreign exception ends at the `extern "C"` functions by which compiled code is entered and left.
//!
//! Cost: a table of some hundred bytes for each unit, and what the unwinder takes to enter it (about 1 µs).
//!
//! Not done: systems whose unwinder is not that of GCC, where nothing is registered; macOS and musl among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::code_map::{CodeListener, CodeUnit, UnitId};

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
        if addresses.is_empty() || !system::IS_SUPPORTED {
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
    // The id of a CIE, version 1, no augmentation, units of code 1, of data -8.
    cie.extend(0u32.to_ne_bytes());
    cie.extend([1, 0, 1, 0x78, RETURN_ADDRESS]);
    cie.extend([DEF_CFA, FRAME_POINTER, 16, OFFSET | FRAME_POINTER, 2, OFFSET | RETURN_ADDRESS, 1]);
    let mut section = Vec::new();
    entry(&mut section, cie);
    let mut fde = Vec::new();
    // How far it is from here back to the CIE.
    fde.extend((section.len() as u32 + 4).to_ne_bytes());
    fde.extend(start.to_ne_bytes());
    fde.extend(bytes.to_ne_bytes());
    entry(&mut section, fde);
    section.extend(0u32.to_ne_bytes());
    section
}

/// Adds an entry, with its length in front and filled up with `DW_CFA_nop`.
fn entry(section: &mut Vec<u8>, mut body: Vec<u8>) {
    body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
    section.extend((body.len() as u32).to_ne_bytes());
    section.extend(body);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    pub(super) const IS_SUPPORTED: bool = true;

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

    pub(super) unsafe fn register(_: *const u8) {}

    pub(super) unsafe fn deregister(_: *const u8) {}
}
