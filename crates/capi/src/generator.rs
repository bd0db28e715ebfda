//! Generators: C functions that define symbols missing in a look-up.
//!
//! ```text
//!   look-up ── `stock` is missing ──► generator ── BrolgaMissing: `stock` ──► C ── define, done ──► the look-up continues
//!                                                                              └── keeps it, and completes it later, on any thread
//! ```
//!
//! Only look-ups that need the names are suspended until the request completes. Other look-ups of the same names wait for the same completion.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use brolga::session::linking::{Generator, Request, SymbolFlags, SymbolRef, absolute};
use brolga::session::{Native, WeakDylib};

use crate::callback::{BrolgaFreeFn, Data};
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced, for_c};
use crate::out::given;
use crate::runtime::BrolgaRuntime;
use crate::text::name;

/// Names that a look-up misses, and that a generator may define. It is answered by `brolga_missing_done` or `brolga_missing_fail`, which free it.
pub struct BrolgaMissing {
    request: Request<Native>,
    names: Vec<CString>,
}

/// Defines what a look-up misses: `missing` belongs to the function, which answers it now, or keeps it and answers it later, on any thread. `dylib` is the one to which the generator was added, and
/// lent for the call: object files or functions that are defined in it are found, as are the symbols that `brolga_missing_define` defines. Several threads may call it at the same time.
pub type BrolgaGenerateFn =
    Option<unsafe extern "C" fn(data: *mut c_void, dylib: *const BrolgaDylib, missing: *mut BrolgaMissing)>;

/// A C function as a generator.
struct Called {
    generate: unsafe extern "C" fn(*mut c_void, *const BrolgaDylib, *mut BrolgaMissing),
    data: Data,
    dylib: WeakDylib,
    runtime: BrolgaRuntime,
}

impl Generator<Native> for Called {
    fn generate(&self, request: Request<Native>) {
        let dylib = match self.dylib.upgrade() {
            Ok(dylib) => BrolgaDylib { dylib, runtime: self.runtime.clone() },
            Err(error) => return request.fail(error),
        };
        let all = request.session().names();
        let names = request.symbols().iter().map(|symbol| for_c(&all.text(*symbol))).collect();
        let missing = Box::into_raw(Box::new(BrolgaMissing { request, names }));
        // SAFETY: by the contract of `brolga_dylib_add_generator`: from here on the function owns the request.
        unsafe { (self.generate)(self.data.pointer(), &raw const dylib, missing) };
    }
}

/// Has `generate` asked for names that look-ups and code do not find in the dylib, before the search continues in the next one of the link order. `data` is handed to `generate`, and to `free`, if that
/// is not null, when it is not called any more, also when this fails. The generator goes with the tracker of the handle, if that has one.
///
/// # Safety
///
/// `generate` and `free` are what `BrolgaGenerateFn` and `BrolgaFreeFn` say, may be called on any thread, and return: no exception of C++ and no `longjmp` leaves them.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_generator(
    dylib: Option<&BrolgaDylib>,
    generate: BrolgaGenerateFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let (dylib, generate) = (given(dylib, "dylib")?, given(generate, "generate")?);
        // The session owns the generator, which must not keep the session alive.
        let (weak, runtime) = (dylib.dylib.downgrade(), dylib.runtime.clone());
        Ok(dylib.dylib.add_generator(Arc::new(Called { generate, data, dylib: weak, runtime }))?)
    })
}

/// The number of names that are missing; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_missing_count(missing: Option<&BrolgaMissing>) -> usize {
    missing.map_or(0, |missing| missing.names.len())
}

/// A name that is missing, by its number from 0: a C symbol, or the symbol of a function with its types. It is valid until the answer; null if there are not as many.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_missing_name(missing: Option<&BrolgaMissing>, index: usize) -> *const c_char {
    missing.and_then(|missing| missing.names.get(index)).map_or(ptr::null(), |name| name.as_ptr())
}

/// Defines a C symbol in the dylib that was searched, with an address. It may be one that is not missing, too: what is needed together can be defined together.
///
/// # Safety
///
/// As `brolga_dylib_define_c_symbol`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_missing_define(
    missing: Option<&BrolgaMissing>,
    name: *const c_char,
    address: *const c_void,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let request = &given(missing, "missing")?.request;
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        given((!address.is_null()).then_some(()), "address")?;
        let held: SymbolRef = request.session().symbol(name);
        let unit = absolute([(held.symbol(), SymbolFlags::EXPORTED, address.expose_provenance())]);
        Ok(request.define(vec![unit]).map_err(brolga::SessionError::from)?)
    })
}

/// Answers: the look-ups continue with what was defined, and search the next dylibs for the rest. Frees `missing`. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_missing_done(missing: Option<Box<BrolgaMissing>>) {
    if let Some(missing) = missing {
        missing.request.done();
    }
}

/// Answers: the look-ups fail with this error, which belongs to the library afterwards; null is an error without a message. Frees `missing`. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_missing_fail(missing: Option<Box<BrolgaMissing>>, error: Option<Box<BrolgaError>>) {
    if let Some(missing) = missing {
        let unsaid = || Box::new(BrolgaError::new(BrolgaCode::Lookup, "a generator has failed"));
        missing.request.fail(error.unwrap_or_else(unsaid).text());
    }
}
