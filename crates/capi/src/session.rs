//! Sessions: functions compiled on demand, replaced and removed, by many threads. A session has dylibs (`dylib.rs`).

use std::ffi::c_char;
use std::mem::MaybeUninit;

use brolga::session::Dylib;
use brolga::{Session, Workers};

use crate::dependants::dependants;
use crate::dylib::{BrolgaDylib, dylibs, none_thrown};
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::name;

/// Programs that call each other's functions.
pub struct BrolgaSession {
    pub(crate) session: Session,
    runtime: BrolgaRuntime,
}

impl BrolgaSession {
    fn handle(&self, dylib: Dylib) -> BrolgaDylib {
        BrolgaDylib { dylib, runtime: self.runtime.clone() }
    }
}

/// Makes a session with a run time of its own. `options` may be null for the defaults. With 0 threads of its own the calling ones compile.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_session_new(
    options: Option<&BrolgaOptions>,
    threads: usize,
    session: Option<&mut MaybeUninit<*mut BrolgaSession>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(session, "session")?;
        let workers = if threads == 0 { Workers::Caller } else { Workers::Pool(threads) };
        let session = Session::new(BrolgaOptions::made(options), workers)?;
        let runtime = BrolgaRuntime::new(session.runtime());
        give(place, BrolgaSession { session, runtime });
        Ok(())
    })
}

/// Returns a handle of the session's run time.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_session_runtime(
    session: Option<&BrolgaSession>,
    runtime: Option<&mut MaybeUninit<*mut BrolgaRuntime>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (session, place) = (given(session, "session")?, place(runtime, "runtime")?);
        give(place, session.runtime.clone());
        Ok(())
    })
}

/// Ends a session: finalisers run, and everything is removed. Functions that are not lazy can be called on. The error tells what finalisers threw.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_session_end(session: Option<&BrolgaSession>) -> Option<Box<BrolgaError>> {
    fenced(|| none_thrown(&given(session, "session")?.session.end()))
}

/// Frees a session, as if it had been ended, but for finalisers. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_session_free(session: Option<Box<BrolgaSession>>) {
    drop(session);
}

/// Makes a dylib whose programs see the C symbols of the process.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_dylib(
    session: Option<&BrolgaSession>,
    name: *const c_char,
    dylib: Option<&mut MaybeUninit<*mut BrolgaDylib>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (session, place) = (given(session, "session")?, place(dylib, "dylib")?);
        // SAFETY: by the contract.
        let dylib = session.session.create_dylib(unsafe { self::name(name) }?)?;
        dylib.add_process_symbols(|_| true)?;
        give(place, session.handle(dylib));
        Ok(())
    })
}

/// Makes a dylib that has nothing. Its programs see the C symbols of the process only where a dylib of the link order has them (`brolga_dylib_add_process_symbols`).
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_empty_dylib(
    session: Option<&BrolgaSession>,
    name: *const c_char,
    dylib: Option<&mut MaybeUninit<*mut BrolgaDylib>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (session, place) = (given(session, "session")?, place(dylib, "dylib")?);
        // SAFETY: by the contract.
        let dylib = session.session.create_dylib(unsafe { self::name(name) }?)?;
        give(place, session.handle(dylib));
        Ok(())
    })
}

/// Returns another handle of the open dylib of this name. It is an error if there is none.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_find_dylib(
    session: Option<&BrolgaSession>,
    name: *const c_char,
    dylib: Option<&mut MaybeUninit<*mut BrolgaDylib>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (session, place) = (given(session, "session")?, place(dylib, "dylib")?);
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        let none = || BrolgaError::new(BrolgaCode::Lookup, format!("there is no open dylib `{name}`"));
        give(place, session.handle(session.session.dylib(name).ok_or_else(none)?));
        Ok(())
    })
}

/// Removes everything from dylibs and closes them, all or none: no operation on them works afterwards, and other dylibs see them no more. Finalisers do not run
/// (`brolga_dylib_close`). `dependants` is a `BrolgaDependants`.
///
/// # Safety
///
/// There are `count` pointers at `dylibs`, or it is null; each is null or a handle.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_close_dylibs(
    session: Option<&BrolgaSession>,
    dylibs: *const Option<&BrolgaDylib>,
    count: usize,
    dependants: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let session = &given(session, "session")?.session;
        // SAFETY: by the contract.
        let dylibs = unsafe { self::dylibs(dylibs, count, "dylibs") }?;
        Ok(session.close_dylibs(&dylibs, self::dependants(dependants)?)?)
    })
}
