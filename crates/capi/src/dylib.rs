//! Dylibs: link orders, opening and closing, removal.
//!
//! ```text
//!   main ── link ──► facade ── link ──► shapes        a look-up in main searches main, then the dylibs of its link order, first to last
//! ```
//!
//! A handle may have a tracker (`tracker.rs`): what is defined through the handle is removed with the tracker. Otherwise it is the same dylib.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use brolga::session::Dylib;

use crate::dependants::dependants;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{array, give_text, name, names, room};

/// A namespace of a session.
#[derive(Clone)]
pub struct BrolgaDylib {
    pub(crate) dylib: Dylib,
    pub(crate) runtime: BrolgaRuntime,
}

impl BrolgaDylib {
    /// A handle to another dylib of the same session, or to this one with another tracker.
    pub(crate) fn beside(&self, dylib: Dylib) -> BrolgaDylib {
        BrolgaDylib { dylib, runtime: self.runtime.clone() }
    }
}

/// The dylibs of an array.
///
/// # Safety
///
/// `first` is null, or refers to `count` pointers, each null or a live handle.
pub(crate) unsafe fn dylibs<'a>(
    first: *const Option<&'a BrolgaDylib>,
    count: usize,
    name: &str,
) -> Result<Vec<&'a Dylib>, BrolgaError> {
    // SAFETY: by the contract.
    let handles = unsafe { array(first, count, name) }?;
    let read = |(index, handle): (usize, &Option<&'a BrolgaDylib>)| {
        let handle = handle.ok_or_else(|| BrolgaError::null(&format!("{name}[{index}]")))?;
        Ok(&handle.dylib)
    };
    handles.iter().enumerate().map(read).collect()
}

/// Converts exceptions of finalisers, if any, to an error.
pub(crate) fn none_thrown(thrown: &[brolga::SessionError]) -> Result<(), BrolgaError> {
    if thrown.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = thrown.iter().map(ToString::to_string).collect();
    Err(BrolgaError::new(BrolgaCode::Lookup, texts.join("; ")))
}

/// Frees a handle of a dylib, which stays open. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_dylib_free(dylib: Option<Box<BrolgaDylib>>) {
    drop(dylib);
}

/// Returns the name of a dylib. The caller frees the text with `brolga_text_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_name(
    dylib: Option<&BrolgaDylib>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, text) = (given(dylib, "dylib")?, place(text, "text")?);
        give_text(text, dylib.dylib.name());
        Ok(())
    })
}

/// Lets a dylib see the functions of another one of its session, after what it sees already.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_link(
    dylib: Option<&BrolgaDylib>,
    other: Option<&BrolgaDylib>,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.link_against(&given(other, "other")?.dylib)?))
}

/// Takes another dylib out of the link order. Code that was linked before keeps what it calls.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_unlink(
    dylib: Option<&BrolgaDylib>,
    other: Option<&BrolgaDylib>,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.unlink(&given(other, "other")?.dylib)?))
}

/// Sets the link order of a dylib: the first dylib in it that has a name is the one that the name means. The dylib itself may be anywhere in the order, or not in it; of itself it sees
/// everything, of the others what they export.
///
/// # Safety
///
/// There are `count` pointers at `order`, or it is null; each is null or a handle.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_set_links(
    dylib: Option<&BrolgaDylib>,
    order: *const Option<&BrolgaDylib>,
    count: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        Ok(dylib.set_links(&unsafe { dylibs(order, count, "order") }?)?)
    })
}

/// Returns handles to the dylibs of the link order, the first one first, as far as there is room for them, and the number of all. The caller frees the
/// handles that were written. `order` may be null if `capacity` is 0.
///
/// # Safety
///
/// There is room for `capacity` pointers at `order`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_links(
    dylib: Option<&BrolgaDylib>,
    order: *mut *mut BrolgaDylib,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, count) = (given(dylib, "dylib")?, place(count, "count")?);
        // SAFETY: by the contract.
        let room = unsafe { room(order, capacity, "order") }?;
        let links = dylib.dylib.links()?;
        count.write(links.len());
        links.into_iter().zip(room).for_each(|(link, place)| give(place, dylib.beside(link)));
        Ok(())
    })
}

/// Opens a dylib, as `dlopen` does: initialisers (`brolga_definitions_add_initializer`) of the dylibs that it sees and its own run, dependences first, each once. If one throws, the
/// dylib is not open.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_open(dylib: Option<&BrolgaDylib>) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.open()?))
}

/// Runs initialisers that have come since the dylib was opened.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_update(dylib: Option<&BrolgaDylib>) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.update()?))
}

/// Takes one opening back, as `dlclose` does: finalisers of dylibs that nothing open sees any more run. The error says that it is not open, or what
/// finalisers threw; it is closed then.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_close(dylib: Option<&BrolgaDylib>) -> Option<Box<BrolgaError>> {
    fenced(|| none_thrown(&given(dylib, "dylib")?.dylib.close()?))
}

/// Removes what has one of the names, all or none: functions by their names, if only one method has them, or by their symbols; C symbols, aliases, global variables and types.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `names`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_remove_all(
    dylib: Option<&BrolgaDylib>,
    names: *const *const c_char,
    count: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        Ok(dylib.remove(&unsafe { self::names(names, count, "names") }?)?)
    })
}

/// Removes a function by its name, if only one method has it, or by its symbol; or what else has the name, as `brolga_dylib_remove_all`.
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

/// Removes everything from a dylib, which stays open. `dependants` is a `BrolgaDependants`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_clear(
    dylib: Option<&BrolgaDylib>,
    dependants: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(dylib, "dylib")?.dylib.clear(self::dependants(dependants)?)?))
}
