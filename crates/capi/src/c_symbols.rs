//! C symbols: addresses of the host, object files, archives, libraries, the process; and looking up their addresses from C.
//!
//! All of this requires open doors (`brolga_options_allow_doors`), except the symbols of the process. A program calls a C symbol by its name; the dylib resolves it in its link order.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use brolga::session::CSymbol;

use crate::callback::{BrolgaFreeFn, Data};
use crate::definitions::told;
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaError, fenced, for_c};
use crate::out::{give, given, place};
use crate::text::{array, c_text, give_text, name};

/// A C symbol in memory. What it is in stays in memory as long as the handle.
pub struct BrolgaCSymbol {
    symbol: CSymbol,
}

/// An object file of a C or C++ compiler.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BrolgaObjectFile {
    /// How messages and debuggers call it, ending in a zero byte.
    pub name: *const c_char,
    /// Its bytes, which are copied.
    pub bytes: *const c_void,
    /// The number of its bytes.
    pub length: usize,
}

/// Says whether a name is one of those that a dylib sees. Several threads may call it at the same time.
pub type BrolgaAcceptFn = Option<unsafe extern "C" fn(data: *mut c_void, name: *const c_char) -> bool>;

/// Sets the address of a C symbol: of a function, or of data. An address from `brolga_function_c_address` makes the symbol depend on the function.
///
/// # Safety
///
/// `name` is null or ends in a zero byte. The address is valid for what programs do with the symbol, as long as it is defined and code uses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_define_c_symbol(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    address: *const c_void,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        given((!address.is_null()).then_some(()), "address")?;
        Ok(dylib.define_c_symbol(name, address.cast())?)
    })
}

/// As `brolga_dylib_define_c_symbol`, and replaces the address that the symbol has: calls that begin later reach the new one. `notes` is as for `brolga_dylib_redefine`.
///
/// # Safety
///
/// As `brolga_dylib_define_c_symbol`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_redefine_c_symbol(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    address: *const c_void,
    notes: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        given((!address.is_null()).then_some(()), "address")?;
        let redefined = dylib.redefine_c_symbol(name, address.cast())?;
        if let Some(notes) = notes {
            give_text(notes, &told(&redefined));
        }
        Ok(())
    })
}

/// Returns a C symbol that the dylib sees, function or data: what defines it is linked if it is not yet. The caller frees it with `brolga_c_symbol_free`.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_c_symbol(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    symbol: Option<&mut MaybeUninit<*mut BrolgaCSymbol>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(symbol, "symbol")?);
        // SAFETY: by the contract.
        let symbol = dylib.dylib.c_symbol(unsafe { self::name(name) }?)?;
        give(place, BrolgaCSymbol { symbol });
        Ok(())
    })
}

/// The address of a C symbol; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_c_symbol_address(symbol: Option<&BrolgaCSymbol>) -> *mut c_void {
    symbol.map_or(std::ptr::null_mut(), |symbol| symbol.symbol.address().cast::<c_void>().cast_mut())
}

/// Frees a C symbol. Its address is not to be used any more if it was in an object file that was removed. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_c_symbol_free(symbol: Option<Box<BrolgaCSymbol>>) {
    drop(symbol);
}

/// Defines the symbols of an object file of a C or C++ compiler, of `length` bytes. It is linked when something first needs one of its symbols; what it needs itself is looked up
/// in the dylib's link order, functions of programs among it. `name` is how messages and debuggers call it.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `length` bytes at `bytes`, or it is null. The code does what programs that call it expect.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_object(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    bytes: *const c_void,
    length: usize,
) -> Option<Box<BrolgaError>> {
    let file = BrolgaObjectFile { name, bytes, length };
    // SAFETY: by the contract.
    unsafe { brolga_dylib_add_objects(dylib, &raw const file, 1) }
}

/// As `brolga_dylib_add_object`, for files that are linked and removed together: they may need each other.
///
/// # Safety
///
/// There are `count` files at `files`, or it is null; each is as for `brolga_dylib_add_object`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_objects(
    dylib: Option<&BrolgaDylib>,
    files: *const BrolgaObjectFile,
    count: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let files = unsafe { array(files, count, "files") }?;
        let read = |file: &BrolgaObjectFile| {
            // SAFETY: by the contract.
            let (name, bytes) =
                unsafe { (self::name(file.name)?, array(file.bytes.cast::<u8>(), file.length, "bytes")?) };
            Ok((name, bytes))
        };
        let files = files.iter().map(read).collect::<Result<Vec<(&str, &[u8])>, BrolgaError>>()?;
        Ok(dylib.add_objects(files)?)
    })
}

/// Finds C symbols in members of a static archive, of `length` bytes; a member is linked when code needs it.
///
/// # Safety
///
/// As `brolga_dylib_add_object`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_archive(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    bytes: *const c_void,
    length: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        let (name, bytes) = unsafe { (self::name(name)?, array(bytes.cast::<u8>(), length, "bytes")?) };
        Ok(dylib.add_archive(name, bytes)?)
    })
}

/// Finds C symbols of a shared library, by its path or name. It is opened at once, and stays open as long as the process.
///
/// # Safety
///
/// `path` is null or ends in a zero byte. The library's initialisers may be run, and its code does what programs that call it expect.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_library(
    dylib: Option<&BrolgaDylib>,
    path: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let dylib = &given(dylib, "dylib")?.dylib;
        // SAFETY: by the contract.
        Ok(dylib.add_library(unsafe { c_text(path, "path") }?)?)
    })
}

/// Finds C symbols of the process, those that `accept` takes; all if it is null. `data` is handed to `accept`, and to `free`, if that is not null, when it is not called any more, also
/// when this fails.
///
/// # Safety
///
/// `accept` and `free` are what `BrolgaAcceptFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_add_process_symbols(
    dylib: Option<&BrolgaDylib>,
    accept: BrolgaAcceptFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let dylib = &given(dylib, "dylib")?.dylib;
        let filter = move |name: &str| match accept {
            None => true,
            // SAFETY: by the contract. The name ends in a zero byte.
            Some(accept) => unsafe { accept(data.pointer(), for_c(name).as_ptr()) },
        };
        Ok(dylib.add_process_symbols(filter)?)
    })
}
