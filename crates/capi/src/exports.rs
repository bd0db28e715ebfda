//! Names that refer to definitions elsewhere: re-exports and aliases.
//!
//! A re-export is the same function, variable, type or C symbol under the same name, and follows its original. An alias is another name for the code of a function, or for the address of
//! a C symbol.

use std::ffi::c_char;

use brolga::session::Exports;

use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::given;
use crate::text::{c_text, names};

/// Which names are re-exported.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaExports {
    /// All names; the list is empty.
    All = 0,
    /// The listed names.
    Only = 1,
    /// All names but the listed ones.
    Except = 2,
}

/// Exports names of another dylib of the session as if they were this one's: programs of dylibs that are linked to this one see them, and its own do. `exports` is a `BrolgaExports`; `names`
/// are of functions without types (`area`), of variables, types and C symbols.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `names`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_reexport(
    dylib: Option<&BrolgaDylib>,
    other: Option<&BrolgaDylib>,
    exports: u32,
    names: *const *const c_char,
    count: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, other) = (given(dylib, "dylib")?, given(other, "other")?);
        // SAFETY: by the contract.
        let names = unsafe { self::names(names, count, "names") }?;
        let exports = match exports {
            n if n == BrolgaExports::All as u32 && names.is_empty() => Exports::All,
            n if n == BrolgaExports::All as u32 => {
                let text =
                    "`names` are present, and all names are re-exported: pass none, or say which are meant";
                return Err(BrolgaError::new(BrolgaCode::Argument, text));
            }
            n if n == BrolgaExports::Only as u32 => Exports::only(names),
            n if n == BrolgaExports::Except as u32 => Exports::except(names),
            n => {
                return Err(BrolgaError::new(
                    BrolgaCode::Argument,
                    format!("there is no choice {n} of names"),
                ));
            }
        };
        Ok(dylib.dylib.reexport(&other.dylib, exports)?)
    })
}

/// Ends all re-exports of another dylib. Programs that were defined before keep what they use.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_end_reexport(
    dylib: Option<&BrolgaDylib>,
    other: Option<&BrolgaDylib>,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.end_reexport(&given(other, "other")?.dylib)?))
}

/// Defines `name` to be the function `original` that another dylib of the session, or this one, sees: its methods have the code of the original's, also after redefinitions, and
/// the same addresses for C. The name of a C symbol gets the address of another one.
///
/// # Safety
///
/// `name` and `original` are null or end in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_alias(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    other: Option<&BrolgaDylib>,
    original: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, other) = (given(dylib, "dylib")?, given(other, "other")?);
        // SAFETY: by the contract.
        let (name, original) = unsafe { (c_text(name, "name")?, c_text(original, "original")?) };
        Ok(dylib.dylib.alias(name, &other.dylib, original)?)
    })
}
