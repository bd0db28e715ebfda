//! Programs and their definition: text, read by a dylib, with options, then defined in one step.
//!
//! ```text
//!   brolga_dylib_define(text, mode) ───────────────────────────────────────────────────────► defined
//!   brolga_dylib_read(text) ──► BrolgaDefinitions ── set_hidden, set_weak, … ── define ────► defined, once
//! ```

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brolga::session::linking::Priority;
use brolga::session::{Definitions, Redefined};

use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::{give, given, place};
use crate::text::{array, give_text, name};

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

/// How urgent work is.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaPriority {
    /// Somebody waits for it.
    Blocking = 0,
    /// Wanted soon.
    Normal = 1,
    /// Done when there is nothing else.
    Idle = 2,
}

/// Calls after which a function of `BROLGA_MODE_TIERED` is compiled well.
const HOT: u32 = 1000;

/// A program that a dylib has read, with how it is to be defined. It is defined once.
pub struct BrolgaDefinitions {
    dylib: BrolgaDylib,
    /// `None` after the definition.
    definitions: Mutex<Option<Definitions>>,
}

impl BrolgaDefinitions {
    fn lock(&self) -> MutexGuard<'_, Option<Definitions>> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Definitions, BrolgaError> {
        self.lock().take().ok_or_else(defined_before)
    }
}

#[cold]
fn defined_before() -> BrolgaError {
    let text = "the definitions were given to the dylib before: read the program again";
    BrolgaError::new(BrolgaCode::Argument, text)
}

/// Changes definitions.
fn change(
    definitions: Option<&BrolgaDefinitions>,
    body: impl FnOnce(Definitions) -> Definitions,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let mut held = given(definitions, "definitions")?.lock();
        *held = Some(body(held.take().ok_or_else(defined_before)?));
        Ok(())
    })
}

pub(crate) fn mode_of(number: u32) -> Result<BrolgaMode, BrolgaError> {
    let all = [BrolgaMode::Eager, BrolgaMode::Lazy, BrolgaMode::Tiered, BrolgaMode::Replaceable];
    let none = || BrolgaError::new(BrolgaCode::Argument, format!("there is no mode {number}"));
    all.into_iter().find(|mode| *mode as u32 == number).ok_or_else(none)
}

pub(crate) fn in_mode(definitions: Definitions, mode: BrolgaMode) -> Definitions {
    match mode {
        BrolgaMode::Eager => definitions,
        BrolgaMode::Lazy => definitions.lazy(),
        BrolgaMode::Tiered => definitions.tiered(HOT),
        BrolgaMode::Replaceable => definitions.replaceable(),
    }
}

/// The callers that a redefinition does not reach, as text.
pub(crate) fn told(redefined: &Redefined) -> String {
    let retyped = redefined.retyped.iter().map(ToString::to_string);
    let kept = redefined.kept.iter().map(|name| format!("{name} keeps what it has inlined"));
    retyped.chain(kept).collect::<Vec<_>>().join("; ")
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
        let mode = mode_of(mode)?;
        Ok(dylib.define(in_mode(dylib.read(name, text)?, mode))?)
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
            give_text(notes, &told(&redefined));
        }
        Ok(())
    })
}

/// Reads a program in the text form, of `length` bytes, for a dylib, in which `brolga_definitions_define` defines it. The caller frees the definitions with
/// `brolga_definitions_free`. With `late`, a function that is called and not defined is not an error: it is looked up when the call is reached.
///
/// # Safety
///
/// As `brolga_dylib_define`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_read(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
    late: bool,
    definitions: Option<&mut MaybeUninit<*mut BrolgaDefinitions>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(definitions, "definitions")?);
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        let read = if late { dylib.dylib.read_late(name, text)? } else { dylib.dylib.read(name, text)? };
        give(place, BrolgaDefinitions { dylib: dylib.clone(), definitions: Mutex::new(Some(read)) });
        Ok(())
    })
}

/// When the functions are compiled: `mode` is a `BrolgaMode`. They are eager if it is not said; an eager mode does not take another one back.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_mode(
    definitions: Option<&BrolgaDefinitions>,
    mode: u32,
) -> Option<Box<BrolgaError>> {
    match mode_of(mode) {
        Ok(mode) => change(definitions, |definitions| in_mode(definitions, mode)),
        Err(error) => Some(Box::new(error)),
    }
}

/// The functions are lazy and compiled twice: fast when they are called first, and well after `calls` calls.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_tiered(
    definitions: Option<&BrolgaDefinitions>,
    calls: u32,
) -> Option<Box<BrolgaError>> {
    change(definitions, |definitions| definitions.tiered(calls))
}

/// Up to `calls` calls of functions in two tiers are interpreted while they are not compiled.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_interpreted(
    definitions: Option<&BrolgaDefinitions>,
    calls: u32,
) -> Option<Box<BrolgaError>> {
    change(definitions, |definitions| definitions.interpreted(calls))
}

/// Other definitions of the names override these until their first look-up.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_weak(
    definitions: Option<&BrolgaDefinitions>,
) -> Option<Box<BrolgaError>> {
    change(definitions, Definitions::weak)
}

/// Other dylibs do not see the functions: not by calls of their programs, and not by look-ups.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_hidden(
    definitions: Option<&BrolgaDefinitions>,
) -> Option<Box<BrolgaError>> {
    change(definitions, Definitions::hidden)
}

/// Programs that are read later may inline the functions. Code that has done so is compiled again when they are redefined.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_inlinable(
    definitions: Option<&BrolgaDefinitions>,
) -> Option<Box<BrolgaError>> {
    change(definitions, Definitions::inlinable)
}

/// All functions are compiled, linked and freed together, and not each when it is needed.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_together(
    definitions: Option<&BrolgaDefinitions>,
) -> Option<Box<BrolgaError>> {
    change(definitions, Definitions::together)
}

/// Starts to compile the functions when they are defined, and not at the first look-up. `priority` is a `BrolgaPriority`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_set_start(
    definitions: Option<&BrolgaDefinitions>,
    priority: u32,
) -> Option<Box<BrolgaError>> {
    let known = match priority {
        n if n == BrolgaPriority::Blocking as u32 => Priority::Blocking,
        n if n == BrolgaPriority::Normal as u32 => Priority::Normal,
        n if n == BrolgaPriority::Idle as u32 => Priority::Idle,
        n => {
            let text = format!("there is no priority {n}");
            return Some(Box::new(BrolgaError::new(BrolgaCode::Argument, text)));
        }
    };
    change(definitions, |definitions| definitions.start(known))
}

/// A function without arguments that runs when the dylib is opened (`brolga_dylib_open`).
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_definitions_add_initializer(
    definitions: Option<&BrolgaDefinitions>,
    name: *const c_char,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    match unsafe { self::name(name) } {
        Ok(name) => change(definitions, |definitions| definitions.initializer(name)),
        Err(error) => Some(Box::new(error)),
    }
}

/// A function without arguments that runs when the dylib is closed, or the session ends.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_definitions_add_finalizer(
    definitions: Option<&BrolgaDefinitions>,
    name: *const c_char,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    match unsafe { self::name(name) } {
        Ok(name) => change(definitions, |definitions| definitions.finalizer(name)),
        Err(error) => Some(Box::new(error)),
    }
}

/// Defines the functions in the dylib that has read them, all or none; with its tracker, if the handle that read them has one. A second call is an error, also after a failure.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_define(
    definitions: Option<&BrolgaDefinitions>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let definitions = given(definitions, "definitions")?;
        Ok(definitions.dylib.dylib.define(definitions.take()?)?)
    })
}

/// As `brolga_definitions_define`, and replaces the functions that are there. `notes` is as for `brolga_dylib_redefine`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_definitions_redefine(
    definitions: Option<&BrolgaDefinitions>,
    notes: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let definitions = given(definitions, "definitions")?;
        let redefined = definitions.dylib.dylib.redefine(definitions.take()?)?;
        if let Some(notes) = notes {
            give_text(notes, &told(&redefined));
        }
        Ok(())
    })
}

/// Frees definitions, which need not have been defined. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_definitions_free(definitions: Option<Box<BrolgaDefinitions>>) {
    drop(definitions);
}
