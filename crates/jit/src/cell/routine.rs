//! The routine of stubs: `brolga_materialize` compiles, or finds, the version of the function that the thread's world sees.

use std::panic::resume_unwind;
use std::sync::Arc;

use brolga_codegen::lazy::MATERIALIZE;
use brolga_runtime::objects::error_in_words;
use brolga_runtime::{Thread, fenced};

use super::place::{record_of_counter, record_of_data};
use super::record::{Found, Record};
use super::{CellError, IndirectCell};

/// A source works on a thread with less stack than this only if it cannot have another.
const STACK_TO_COMPILE: usize = 1 << 20;
/// The stack of a thread that compiles for another.
const HELPER_STACK: usize = 8 << 20;

/// The cell that a counter belongs to.
///
/// # Safety
///
/// The address is a counter's, as linked into code, and its cell is kept.
pub(crate) unsafe fn cell_of_counter(counter: usize) -> IndirectCell {
    // SAFETY: by the contract.
    IndirectCell { record: unsafe { record_at(record_of_counter(counter)) } }
}

/// The cell that the data of a stub belongs to.
///
/// # Safety
///
/// The address is a stub's data, as stubs leave it in the thread, and the cell is kept.
pub(crate) unsafe fn cell_of_data(data: usize) -> IndirectCell {
    // SAFETY: by the contract.
    IndirectCell { record: unsafe { record_at(record_of_data(data)) } }
}

/// The record at an address.
///
/// # Safety
///
/// The address is in the data of a stub, and the cell is kept.
unsafe fn record_at(address: usize) -> Arc<Record> {
    let record = std::ptr::with_exposed_provenance::<Record>(address);
    // SAFETY: the address points to the contents of an `Arc`, which is held elsewhere.
    unsafe {
        Arc::increment_strong_count(record);
        Arc::from_raw(record)
    }
}

/// The routines that this crate adds to the run time's.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == MATERIALIZE).then_some(brolga_materialize as *const () as usize)
}

/// The message of a thrown error.
fn in_words(error: &CellError) -> String {
    match error {
        CellError::Failed { name, cause } => format!("cannot compile `{name}`: {}", error_in_words(&**cause)),
        error => error.to_string(),
    }
}

/// The routine of lazy trampolines: the address of the code that the stub represents, or 0 when an exception is pending.
extern "C" fn brolga_materialize(thread: &Thread) -> usize {
    // SAFETY: the trampoline is only reached through a stub, which has left the address of its cell. The code that called the
    // stub keeps the cell, and with it place and record.
    let record = unsafe { record_at(record_of_data(thread.lazy())) };
    let (stack, world) = (thread.stack_left(), thread.world());
    let make =
        || if stack >= STACK_TO_COMPILE { record.materialize(world) } else { on_new_thread(&record, world) };
    // Its exception is formatted by the source's own code as well. The word is read after that.
    let made = thread.blocking(|| fenced(|| make().map_err(|error| in_words(&error))));
    let refused = match made {
        // Destructors of the source have run meanwhile, which may have replaced and freed what was made. So the word is read last:
        // its code stays until this thread's next safepoint, or blocking call.
        Ok(Ok(Ok(_))) => return record.place.get(),
        Ok(Ok(Err(text)) | Err(text)) => text,
        Err(error) => error.to_string(),
    };
    thread.throw_refusal(&refused);
    0
}

/// Compiles on a thread with enough stack. If the system provides none, on this one.
fn on_new_thread(record: &Record, world: u64) -> Result<usize, CellError> {
    let Found::Source(source, _) = record.find(world) else { return record.materialize(world) };
    let around = source.elsewhere();
    drop(source);
    std::thread::scope(|scope| {
        let work = || {
            let mut made = None;
            around(&mut || made = Some(record.materialize(world)));
            made.unwrap_or_else(|| record.materialize(world))
        };
        match std::thread::Builder::new().stack_size(HELPER_STACK).spawn_scoped(scope, || fenced(work)) {
            Ok(thread) => match thread.join() {
                Ok(Ok(made)) => made,
                Ok(Err(message)) => {
                    Err(CellError::Panicked { name: record.name.clone(), message: message.into() })
                }
                Err(payload) => resume_unwind(payload),
            },
            Err(_) => record.materialize(world),
        }
    })
}
