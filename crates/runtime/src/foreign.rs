//! C symbols, as named by `foreigncall`s.
//!
//! A name is looked up in this order: the embedder's table; the library that the call names; mathematical
//! functions whose last bits depend on the library (`c_functions.rs`); the process with everything it has
//! loaded; the C mathematics library, which a Rust program need not have loaded; the functions of Julia's run
//! time that exist here (`c_functions.rs`). Opened libraries stay open for the lifetime of the runtime,
//! because compiled code holds addresses in them.
//!
//! **Access.** Programs of an engine, and images, may name any symbol of the process and any library.
//! Programs of a session see the definitions of their dylibs; without a definition there they may only name
//! symbols of the embedder's table and of the run time, and C functions that only compute
//! ([`Foreign::given`]). The rule is implemented here, so it applies to linked code, to symbols looked up on
//! the first call, and to members of archives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

/// Why a C symbol has no address. Either the program that names it is at fault, or the machine lacks the
/// library.
#[derive(thiserror::Error, Debug)]
pub enum ForeignError {
    /// Neither the embedder's table nor the process has it.
    #[error("there is no C symbol `{name}`")]
    NoSymbol {
        /// The symbol.
        name: String,
    },
    /// No dylib of a session that the program sees has it, whether or not the process has it.
    #[error("the program sees no C symbol `{name}` (`Dylib::add_process_symbols`, `Dylib::define_c_symbol`)")]
    NotGiven {
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
        /// The system's error message.
        reason: String,
    },
}

/// C functions that access only the memory of their arguments, among those that Julia's library calls.
const MEMORY: [&str; 7] = ["memchr", "memcmp", "memcpy", "memmove", "memrchr", "memset", "strlen"];

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
    /// Defines the address of a name, taking precedence over every library.
    ///
    /// # Safety
    ///
    /// Compiled code that names the symbol calls the address with the C signature that the code declares. The
    /// function must stay at its address for the lifetime of the runtime, and must not unwind.
    pub unsafe fn define(&self, name: impl Into<String>, address: *const ()) {
        let mut defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        defined.insert(name.into(), address.expose_provenance());
    }

    /// The address of a C symbol, for a program that may name any symbol of the process.
    ///
    /// # Errors
    /// There is no such symbol or library.
    pub fn resolve(&self, name: &str, library: Option<&str>) -> Result<usize, ForeignError> {
        if let Some(defined) = self.defined(name) {
            return Ok(defined);
        }
        if let Some(library) = library {
            return self.of_library(library, name);
        }
        if let Some(own) = crate::c_functions::mathematics(name) {
            return Ok(own.expose_provenance());
        }
        let mathematics = || MATHEMATICS.and_then(|library| self.in_library(library, name).ok().flatten());
        let own = || crate::c_functions::find(name).map(<*const ()>::expose_provenance);
        let found = in_process(name).or_else(mathematics).or_else(own);
        found.ok_or_else(|| ForeignError::NoSymbol { name: name.into() })
    }

    /// The address of a C symbol that any program may name: one of the embedder's table or of the run time
    /// itself, a function of C's mathematics library, or one of the C functions on memory that Julia's
    /// library calls.
    ///
    /// # Errors
    /// It is none of these.
    pub fn given(&self, name: &str) -> Result<usize, ForeignError> {
        let own = || crate::c_functions::mathematics(name).or_else(|| crate::c_functions::find(name));
        let on_memory = || MEMORY.contains(&name).then(|| in_process(name))?;
        let mathematics = || self.in_mathematics(name);
        let found = self.defined(name).or_else(|| own().map(<*const ()>::expose_provenance));
        let found = found.or_else(on_memory).or_else(mathematics);
        found.ok_or_else(|| ForeignError::NotGiven { name: name.into() })
    }

    fn defined(&self, name: &str) -> Option<usize> {
        self.defined.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// The address of a function of C's mathematics library. The system also searches the libraries that this
    /// one depends on, so the function's file is compared with the file of `cos`.
    #[cfg(target_os = "linux")]
    fn in_mathematics(&self, name: &str) -> Option<usize> {
        let library = MATHEMATICS?;
        let find = |name| self.in_library(library, name).ok().flatten();
        let (found, cosine) = (find(name)?, find("cos")?);
        (base_of(found)? == base_of(cosine)?).then_some(found)
    }

    #[cfg(not(target_os = "linux"))]
    fn in_mathematics(&self, _name: &str) -> Option<usize> {
        None
    }

    fn of_library(&self, library: &str, name: &str) -> Result<usize, ForeignError> {
        let not_there = || ForeignError::NotInLibrary { name: name.into(), library: library.into() };
        self.in_library(library, name)?.ok_or_else(not_there)
    }

    /// Opens a library, which stays open for the lifetime of the runtime.
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
            // SAFETY: opening a library runs its initialisers. A program that names one requests that; this
            // is one of the named doors out of checked code.
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

/// The base address of the file that contains an address.
#[cfg(target_os = "linux")]
fn base_of(address: usize) -> Option<usize> {
    // SAFETY: all zeros are a value of this struct of pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the system only compares the address with its files' addresses, and writes to the struct.
    let is_found = unsafe { libc::dladdr(std::ptr::without_provenance(address), &mut found) } != 0;
    is_found.then(|| found.dli_fbase.addr())
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
    fn what_is_not_given_is_not_found() {
        let foreign = Foreign::default();
        for name in ["labs", "system", "malloc"] {
            assert!(matches!(foreign.given(name), Err(ForeignError::NotGiven { .. })), "{name}");
        }
        // Functions of the run time itself are not symbols of the process.
        for name in ["utf8proc_category", "cos", "frexp", "asinh", "memmove"] {
            assert!(foreign.given(name).is_ok(), "{name}");
        }
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
