//! Promises of functions: their types now, their program when one of them is first needed.
//!
//! ```text
//!   brolga_dylib_promise("f(x::Int64)::Int64", make) ── f is called, or code that calls it is compiled ──► make ── brolga_promised_keep(text)
//! ```

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use brolga::SessionError;
use brolga::session::{Definitions, Dylib};

use crate::callback::{BrolgaFreeFn, Data};
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::host::signature;
use crate::out::given;
use crate::runtime::BrolgaRuntime;
use crate::text::{array, name, names};

/// Functions that were promised and are needed now. Lent for a call of a `BrolgaMakeFn`.
pub struct BrolgaPromised {
    dylib: BrolgaDylib,
    kept: Mutex<Option<Definitions>>,
}

/// Keeps a promise: passes the program to `brolga_promised_keep` and returns null, or returns an error, which belongs to the library afterwards. It is called at most once, on any thread.
pub type BrolgaMakeFn =
    Option<unsafe extern "C" fn(data: *mut c_void, promised: *const BrolgaPromised) -> *mut BrolgaError>;

type MakeFn = unsafe extern "C" fn(*mut c_void, *const BrolgaPromised) -> *mut BrolgaError;

fn failed(text: String) -> SessionError {
    SessionError::Promise(Box::<dyn std::error::Error + Send + Sync>::from(text).into())
}

/// The program that C makes.
fn made(
    make: MakeFn,
    data: &Data,
    dylib: &Dylib,
    runtime: &BrolgaRuntime,
) -> Result<Definitions, SessionError> {
    let dylib = BrolgaDylib { dylib: dylib.clone(), runtime: runtime.clone() };
    let promised = BrolgaPromised { dylib, kept: Mutex::new(None) };
    // SAFETY: by the contract of `brolga_dylib_promise`.
    let error = unsafe { make(data.pointer(), &raw const promised) };
    if !error.is_null() {
        // SAFETY: an error was created by this library, and the function passes its ownership.
        return Err(failed(unsafe { Box::from_raw(error) }.text()));
    }
    let kept = promised.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    kept.ok_or_else(|| failed("a promise of functions was not kept: no program was given".to_owned()))
}

/// Promises functions, all or none: `make` makes their program when one of them is first needed. They are lazy. `headers` are as for `brolga_dylib_define_host`. `data` is handed to `make`, and to `free`,
/// if that is not null, when it is not called any more, also when this fails.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `headers`, or it is null. `make` and `free` are what `BrolgaMakeFn` and `BrolgaFreeFn` say, may be called on any thread, and
/// return: no exception of C++ and no `longjmp` leaves them.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_promise(
    dylib: Option<&BrolgaDylib>,
    headers: *const *const c_char,
    count: usize,
    make: BrolgaMakeFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let (dylib, make) = (given(dylib, "dylib")?, given(make, "make")?);
        // SAFETY: by the contract.
        let headers = unsafe { names(headers, count, "headers") }?;
        if headers.is_empty() {
            return Err(BrolgaError::new(BrolgaCode::Argument, "a promise is of one function at least"));
        }
        let signatures =
            headers.iter().map(|header| signature(dylib, header)).collect::<Result<Vec<_>, _>>()?;
        let runtime = dylib.runtime.clone();
        Ok(dylib.dylib.promise_program(&signatures, move |dylib| made(make, &data, dylib, &runtime))?)
    })
}

/// Supplies the program of promised functions, in the text form, of `length` bytes. It has them with their types, and may have more. The last program counts.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_promised_keep(
    promised: Option<&BrolgaPromised>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let promised = given(promised, "promised")?;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        let read = promised.dylib.dylib.read(name, text)?;
        let former = promised.kept.lock().unwrap_or_else(PoisonError::into_inner).replace(read);
        drop(former);
        Ok(())
    })
}

/// The dylib in which the functions were promised, lent as long as `promised`; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_promised_dylib(promised: Option<&BrolgaPromised>) -> *const BrolgaDylib {
    promised.map_or(ptr::null(), |promised| &raw const promised.dylib)
}
