//! C functions of Julia's run time and of `utf8proc`, for programs that call them where no library has them.
//!
//! `brolga_ir::hashing` and `brolga_ir::unicode` define the semantics; this file adds the C calling
//! convention. It also flushes C's own output.

use std::io;

use brolga_ir::{hashing, unicode};

/// Bytes at an address passed by the program.
///
/// # Safety
///
/// There are `length` readable bytes, which no code writes meanwhile.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if length == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { std::slice::from_raw_parts(start, length) }
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// C's stream for the standard output.
    static stdout: *mut libc::FILE;
}

/// Flushes the text that C functions have printed to standard output and that C still buffers. Only that
/// stream: flushing all of them could wait for a thread that reads from one. On other systems C does this
/// when the process ends.
pub(crate) fn flush_output() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: the C library opens the stream before any Rust code runs. Closing it is undefined in C for
    // everything that runs at exit.
    if unsafe { libc::fflush(stdout) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

unsafe extern "C" fn memhash(start: *const u8, length: usize) -> u64 {
    // SAFETY: the program vouches for what it passes to C.
    hashing::memhash(unsafe { bytes(start, length) })
}

unsafe extern "C" fn memhash_seed(start: *const u8, length: usize, seed: u32) -> u64 {
    // SAFETY: the program vouches for what it passes to C.
    hashing::memhash_seed(unsafe { bytes(start, length) }, seed)
}

unsafe extern "C" fn memhash32_seed(start: *const u8, length: usize, seed: u32) -> u32 {
    // SAFETY: the program vouches for what it passes to C.
    hashing::memhash32_seed(unsafe { bytes(start, length) }, seed)
}

unsafe extern "C" fn crc32c(crc: u32, start: *const u8, length: usize) -> u32 {
    // SAFETY: the program vouches for what it passes to C.
    hashing::crc32c(crc, unsafe { bytes(start, length) })
}

extern "C" fn category(character: u32) -> i32 {
    unicode::category(character)
}

extern "C" fn char_width(character: u32) -> i32 {
    unicode::char_width(character)
}

extern "C" fn to_upper(character: u32) -> u32 {
    unicode::to_upper(character)
}

extern "C" fn to_lower(character: u32) -> u32 {
    unicode::to_lower(character)
}

extern "C" fn to_title(character: u32) -> u32 {
    unicode::to_title(character)
}

extern "C" fn is_upper(character: u32) -> i32 {
    unicode::is_upper(character).into()
}

extern "C" fn is_lower(character: u32) -> i32 {
    unicode::is_lower(character).into()
}

extern "C" fn is_valid(character: u32) -> bool {
    unicode::is_valid(character)
}

extern "C" fn cbrt(x: f64) -> f64 {
    x.cbrt()
}

extern "C" fn cbrtf(x: f32) -> f32 {
    x.cbrt()
}

extern "C" fn asinh(x: f64) -> f64 {
    x.asinh()
}

extern "C" fn acosh(x: f64) -> f64 {
    x.acosh()
}

extern "C" fn atanh(x: f64) -> f64 {
    x.atanh()
}

/// A function of the C mathematics library that Rust provides or that is computed differently here: the last
/// bits differ between C libraries, and all engines must agree with the interpreter.
pub(crate) fn mathematics(name: &str) -> Option<*const ()> {
    Some(match name {
        "cbrt" => cbrt as *const (),
        "cbrtf" => cbrtf as *const (),
        "asinh" => asinh as *const (),
        "acosh" => acosh as *const (),
        "atanh" => atanh as *const (),
        _ => return None,
    })
}

/// The function with this name here.
pub(crate) fn find(name: &str) -> Option<*const ()> {
    Some(match name {
        "memhash" => memhash as *const (),
        "memhash_seed" => memhash_seed as *const (),
        "memhash32_seed" => memhash32_seed as *const (),
        "jl_crc32c" => crc32c as *const (),
        "utf8proc_isupper" => is_upper as *const (),
        "utf8proc_islower" => is_lower as *const (),
        "utf8proc_codepoint_valid" => is_valid as *const (),
        "utf8proc_category" => category as *const (),
        "utf8proc_charwidth" => char_width as *const (),
        "utf8proc_toupper" => to_upper as *const (),
        "utf8proc_tolower" => to_lower as *const (),
        "utf8proc_totitle" => to_title as *const (),
        _ => return None,
    })
}
