//! Sessions and dylibs: functions compiled when they are needed, replaced and removed, by many threads.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use brolga::session::Dylib;
use brolga::{Session, Workers};

use crate::error::for_c;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::function::{BrolgaFunction, Types};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{array, name};

/// Programs that call each other's functions.
pub struct BrolgaSession {
    session: Session,
    runtime: BrolgaRuntime,
}

/// A namespace of a session.
pub struct BrolgaDylib {
    pub(crate) dylib: Dylib,
    pub(crate) runtime: BrolgaRuntime,
}

/// When the functions of a program are compiled.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaMode {
    /// Before a look-up is answered.
    Eager = 0,
    /// When they are called first.
    Lazy = 1,
    /// As lazy ones, fast at first, and well when they have been called a thousand times or iterate for long.
    Tiered = 2,
    /// As lazy ones; a redefinition also reaches callers that run.
    Replaceable = 3,
}

/// Calls after which a function of `BROLGA_MODE_TIERED` is compiled well.
const HOT: u32 = 1000;

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

/// Gives a handle of the session's run time.
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
    fenced(|| {
        let thrown = given(session, "session")?.session.end();
        if thrown.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = thrown.iter().map(ToString::to_string).collect();
        Err(BrolgaError::new(BrolgaCode::Lookup, texts.join("; ")))
    })
}

/// Frees a session, as if it had been ended, but for finalisers. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_session_free(session: Option<Box<BrolgaSession>>) {
    drop(session);
}

/// Makes a dylib.
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
        give(place, BrolgaDylib { dylib, runtime: session.runtime.clone() });
        Ok(())
    })
}

/// Frees a handle of a dylib, which stays open. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_dylib_free(dylib: Option<Box<BrolgaDylib>>) {
    drop(dylib);
}

/// Lets a dylib see the functions of another one of its session.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_link(
    dylib: Option<&BrolgaDylib>,
    other: Option<&BrolgaDylib>,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.link_against(&given(other, "other")?.dylib)?))
}

/// Defines the functions of a program in the text form, of `length` bytes, all or none. `mode` is a `BrolgaMode`.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_define(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
    mode: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        let read = dylib.read(name, text)?;
        let definitions = match mode {
            mode if mode == BrolgaMode::Eager as u32 => read,
            mode if mode == BrolgaMode::Lazy as u32 => read.lazy(),
            mode if mode == BrolgaMode::Tiered as u32 => read.tiered(HOT),
            mode if mode == BrolgaMode::Replaceable as u32 => read.replaceable(),
            _ => return Err(BrolgaError::new(BrolgaCode::Argument, format!("there is no mode {mode}"))),
        };
        Ok(dylib.define(definitions)?)
    })
}

/// Defines functions, and replaces those that are there: calls from C that begin later reach the new ones. `notes` may be null; otherwise it
/// gets a text about callers that keep the old definition, empty if there are none, which the caller frees with `brolga_text_free`.
///
/// # Safety
///
/// As `brolga_dylib_define`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_redefine(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
    notes: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        let redefined = dylib.redefine(dylib.read(name, text)?)?;
        if let Some(notes) = notes {
            let retyped = redefined.retyped.iter().map(ToString::to_string);
            let kept = redefined.kept.iter().map(|name| format!("{name} keeps what it has inlined"));
            notes.write(for_c(&retyped.chain(kept).collect::<Vec<_>>().join("; ")).into_raw());
        }
        Ok(())
    })
}

/// Removes a function by its name, if only one method has it, or by its symbol.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_remove(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        Ok(dylib.remove(&[unsafe { self::name(name) }?])?)
    })
}

/// Gives a function that the dylib sees, by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`). Waits until it can be called, and
/// compiles meanwhile.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_function(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    function: Option<&mut MaybeUninit<*mut BrolgaFunction>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (of, place) = (given(dylib, "dylib")?, place(function, "function")?);
        // SAFETY: by the contract.
        let found = of.dylib.function(unsafe { self::name(name) }?)?;
        let methods = of.dylib.methods()?;
        let method = methods.iter().find(|method| method.symbol == found.symbol());
        let result = method.and_then(|method| method.result.as_deref()).unwrap_or("");
        let types = Types::of_symbol(found.symbol(), result);
        let symbol = found.symbol().to_owned();
        let context = of.dylib.session().context();
        give(place, BrolgaFunction::new(found.untyped()?, &symbol, types, context, &of.runtime, found));
        Ok(())
    })
}
