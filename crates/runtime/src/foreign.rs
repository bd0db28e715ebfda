//! C symbols: what a `foreigncall` names.
//!
//! A name is looked up in this order: the table that the embedder filled; the library that the call names; functions of mathematics whose
//! last bits depend on the library (`c_functions.rs`); the process with everything it has loaded; the C mathematics library, which a Rust program need not have loaded; the functions of Julia's
//! run time that are here (`c_functions.rs`). Libraries
//! that were opened stay open as long as the runtime, because compiled code holds addresses in them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

/// Why a C symbol has no address. The program that names it is at fault, or the machine lacks the library.
#[derive(thiserror::Error, Debug)]
pub enum ForeignError {
    /// Neither the embedder's table nor the process has it.
    #[error("there is no C symbol `{name}`")]
    NoSymbol {
        /// The symbol.
        name: String,
    },
    /// The library does not have it.
    #[error("there is no C symbol `{name}` in `{library}`")]
    NotInLibrary {
        /// The symbol.
        name: String,
        /// The library.
        library: String,
    },
    /// The library cannot be opened.
    #[error("cannot open the library `{library}`: {reason}")]
    NoLibrary {
        /// The library.
        library: String,
        /// The system's words.
        reason: String,
    },
}

#[cfg(target_os = "linux")]
const MATHEMATICS: Option<&str> = Some("libm.so.6");
#[cfg(not(target_os = "linux"))]
const MATHEMATICS: Option<&str> = None;

/// The C symbols that compiled code of one runtime may call.
#[derive(Default)]
pub struct Foreign {
    defined: Mutex<BTreeMap<String, usize>>,
    libraries: Mutex<BTreeMap<String, Library>>,
}

impl Foreign {
    /// Gives a name an address, in front of every library.
    ///
    /// # Safety
    ///
    /// Compiled code that names the symbol calls the address with the C signature that it states itself. The function must
    /// stay where it is while the runtime lives, and it must not unwind.
    pub unsafe fn define(&self, name: impl Into<String>, address: *const ()) {
        let mut defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        defined.insert(name.into(), address.expose_provenance());
    }

    /// The address of a C symbol.
    pub fn resolve(&self, name: &str, library: Option<&str>) -> Result<usize, ForeignError> {
        let defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&address) = defined.get(name) {
            return Ok(address);
        }
        drop(defined);
        if let Some(library) = library {
            return self
                .in_library(library, name)?
                .ok_or_else(|| ForeignError::NotInLibrary { name: name.into(), library: library.into() });
        }
        if let Some(own) = crate::c_functions::mathematics(name) {
            return Ok(own.expose_provenance());
        }
        if let Some(address) = in_process(name) {
            return Ok(address);
        }
        let mathematics = MATHEMATICS.and_then(|library| self.in_library(library, name).ok().flatten());
        let own = || crate::c_functions::find(name).map(<*const ()>::expose_provenance);
        mathematics.or_else(own).ok_or_else(|| ForeignError::NoSymbol { name: name.into() })
    }

    /// Opens a library, which stays open as long as the runtime.
    pub fn open(&self, library: &str) -> Result<(), ForeignError> {
        self.with_library(library, |_| ())
    }

    fn in_library(&self, library: &str, name: &str) -> Result<Option<usize>, ForeignError> {
        self.with_library(library, |library| address_in(library, name))
    }

    fn with_library<R>(&self, library: &str, look: impl FnOnce(&Library) -> R) -> Result<R, ForeignError> {
        let mut libraries = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match libraries.entry(library.to_owned()) {
            Entry::Occupied(opened) => opened.into_mut(),
            // SAFETY: opening a library runs its initialisers. That is what a program that names one asks for; this is one of
            // the named doors out of checked code.
            Entry::Vacant(free) => match unsafe { Library::new(library) } {
                Ok(opened) => free.insert(opened),
                Err(error) => {
                    let reason = error.to_string();
                    return Err(ForeignError::NoLibrary { library: library.into(), reason });
                }
            },
        };
        Ok(look(opened))
    }
}

#[cfg(unix)]
fn in_process(name: &str) -> Option<usize> {
    address_in(&libloading::os::unix::Library::this().into(), name)
}

#[cfg(windows)]
fn in_process(name: &str) -> Option<usize> {
    let this = libloading::os::windows::Library::this().ok()?;
    address_in(&this.into(), name)
}

fn address_in(library: &Library, name: &str) -> Option<usize> {
    // SAFETY: the symbol is read as an address and not used as anything else here.
    let symbol = unsafe { library.get::<*const ()>(name) }.ok()?;
    let address = (*symbol).expose_provenance();
    (address != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_and_mathematics_are_found_and_nonsense_is_an_error() {
        let foreign = Foreign::default();
        for name in ["memmove", "toupper", "strlen", "lgamma", "cbrt", "memhash_seed", "utf8proc_category"] {
            assert!(foreign.resolve(name, None).is_ok(), "{name}");
        }
        for name in ["brolga_no_such_symbol", "", "mem\0move"] {
            assert!(matches!(foreign.resolve(name, None), Err(ForeignError::NoSymbol { .. })), "{name:?}");
        }
    }

    #[test]
    fn the_embedders_table_comes_first() {
        extern "C" fn zero() -> i32 {
            0
        }
        let foreign = Foreign::default();
        let real = foreign.resolve("getpid", None).unwrap();
        // SAFETY: nothing calls it.
        unsafe { foreign.define("getpid", zero as *const ()) };
        assert_ne!(foreign.resolve("getpid", None).unwrap(), real);
        assert_eq!(
            foreign.resolve("getpid", Some("no_such_library.so")).unwrap(),
            zero as *const () as usize
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn libraries_are_opened_by_name() {
        let foreign = Foreign::default();
        assert!(foreign.resolve("cos", Some("libm.so.6")).is_ok());
        let missing = foreign.resolve("no_such_function", Some("libm.so.6"));
        assert!(matches!(missing, Err(ForeignError::NotInLibrary { .. })));
        let library = foreign.resolve("cos", Some("no_such_library.so"));
        assert!(matches!(library, Err(ForeignError::NoLibrary { .. })));
    }
}
