//! Code that debuggers see (gdb, lldb), by name and line.

use std::ffi::c_char;

use crate::error::{BrolgaError, fenced};
use crate::out::given;
use crate::session::BrolgaSession;
use crate::text::c_text;

/// Shows debuggers all code that a session has from now on, functions of programs and object files, until it is freed. `source` is the name of the file in which lines are counted. A library that was
/// built without the feature `gdb` returns an error.
///
/// # Safety
///
/// `source` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_show_debuggers(
    session: Option<&BrolgaSession>,
    source: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let session = given(session, "session")?;
        // SAFETY: by the contract.
        show(session, unsafe { c_text(source, "source") }?)
    })
}

#[cfg(feature = "gdb")]
fn show(session: &BrolgaSession, source: &str) -> Result<(), BrolgaError> {
    // One entry for each unit, so a debugger sees the unit at once, even if it stops in it.
    session.session.listen(std::sync::Arc::new(brolga::observe::GdbInterface::new(1, source)));
    Ok(())
}

#[cfg(not(feature = "gdb"))]
fn show(_: &BrolgaSession, _: &str) -> Result<(), BrolgaError> {
    let text = "this library was built without the feature `gdb`";
    Err(BrolgaError::new(crate::error::BrolgaCode::Machine, text))
}
