//! C symbols, which `foreigncall`s name.
//!
//! A name is looked up in this order: the embedder's table; the library that the call names; mathematical functions whose last bits depend on the
//! library (`c_functions.rs`); the process with everything it has loaded; the C mathematics library, which a Rust program need not have loaded; the
//! functions of Julia's run time that are here (`c_functions.rs`). Opened libraries stay open as long as the runtime, because compiled code holds
//! addresses in them.
//!
//! **Allow-list.** By default a program may name any symbol of the process and any library. From the first [`Foreign::allow`] on, only names
//! that a filter accepts are looked up in the process and in the mathematics library, and a program may name only libraries that the
//! host has opened. The rule holds here, so it holds for linked code, for symbols that are looked up by the first call, for
//! members of archives and for images alike.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError, RwLock};

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
    /// The process may have it, and the host does not allow it.
    #[error("the host does not allow the C symbol `{name}` (`Foreign::allow`, `Dylib::add_process_symbols`)")]
    NotAllowed {
        /// The symbol.
        name: String,
    },
    /// The program names a library that the host has not opened, and libraries are restricted.
    #[error("the host does not allow the library `{library}` (`Foreign::open`, `Dylib::add_library`)")]
    LibraryNotAllowed {
        /// The library.
        library: String,
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

/// Accepts the names that programs may use.
type Filter = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The C symbols that compiled code of one runtime may call.
#[derive(Default)]
pub struct Foreign {
    /// The filters of the allow-list; all names are allowed while there is none.
    allowed: RwLock<Vec<Filter>>,
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

    /// Restricts programs: from now on they may name symbols of the process only if this filter, or one of an earlier call, accepts the
    /// name, and libraries only if [`Foreign::open`] has opened them. Symbols that linked code refers to already stay.
    pub fn allow(&self, filter: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.allowed.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(filter));
    }

    /// Whether programs may name a symbol of the process.
    fn allows(&self, name: &str) -> bool {
        let filters = self.allowed.read().unwrap_or_else(PoisonError::into_inner);
        filters.is_empty() || filters.iter().any(|filter| filter(name))
    }

    fn is_restricted(&self) -> bool {
        !self.allowed.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn is_open(&self, library: &str) -> bool {
        self.libraries.lock().unwrap_or_else(PoisonError::into_inner).contains_key(library)
    }

    /// The address of a C symbol.
    ///
    /// # Errors
    /// There is no such symbol or library, or the host does not allow it.
    pub fn resolve(&self, name: &str, library: Option<&str>) -> Result<usize, ForeignError> {
        let defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&address) = defined.get(name) {
            return Ok(address);
        }
        drop(defined);
        if let Some(library) = library {
            if self.is_restricted() && !self.is_open(library) {
                return Err(ForeignError::LibraryNotAllowed { library: library.into() });
            }
            return self
                .in_library(library, name)?
                .ok_or_else(|| ForeignError::NotInLibrary { name: name.into(), library: library.into() });
        }
        if let Some(own) = crate::c_functions::mathematics(name) {
            return Ok(own.expose_provenance());
        }
        let own = || crate::c_functions::find(name).map(<*const ()>::expose_provenance);
        if !self.allows(name) {
            return own().ok_or_else(|| ForeignError::NotAllowed { name: name.into() });
        }
        let mathematics = || MATHEMATICS.and_then(|library| self.in_library(library, name).ok().flatten());
        let found = in_process(name).or_else(mathematics).or_else(own);
        found.ok_or_else(|| ForeignError::NoSymbol { name: name.into() })
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
    fn the_allow_list_is_one() {
        let foreign = Foreign::default();
        foreign.allow(|name| name == "labs");
        assert!(foreign.resolve("labs", None).is_ok());
        for name in ["llabs", "system", "lgamma"] {
            assert!(matches!(foreign.resolve(name, None), Err(ForeignError::NotAllowed { .. })), "{name}");
        }
        // Functions of the run time itself are no symbols of the process.
        assert!(foreign.resolve("utf8proc_category", None).is_ok());
        let refused = foreign.resolve("cos", Some("libm.so.6"));
        assert!(matches!(refused, Err(ForeignError::LibraryNotAllowed { .. })));
        foreign.open("libm.so.6").unwrap();
        assert!(foreign.resolve("cos", Some("libm.so.6")).is_ok());
        foreign.allow(|name| name == "llabs");
        assert!(foreign.resolve("labs", None).is_ok() && foreign.resolve("llabs", None).is_ok());
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
