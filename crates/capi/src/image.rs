//! Images: opened by an engine, by their own entries, or as a whole program.
//!
//! ```text
//!   brolga_engine_open(path) ────────────────────────────► unit, like a compiled one
//!   C ── fib(30) ── entry in the image ── exports_call ──► opened once, by the file of the library ──► called in registers
//!   executable ── main ── image_main(arguments, bytes) ──► opened in place, called, status
//! ```
//!
//! **Entries.** `crates/aot/src/image/exports.rs` has the exports of an image in memory: a word that is 0 until the image is open, and the distance
//! from the header. The system's loader has mapped them. The image itself is read from the file that the loader names, which must have the same
//! header as the one in memory: a file that has been replaced since is refused. An opened image stays until the process ends, as the library does.
//!
//! **Errors of entries.** An entry has the result type of its function, so an error is kept for the thread, like `errno`, and the result
//! is 0. The first error stays until it is taken: later ones are mostly its consequences. An image that cannot be opened is not read again by its
//! entries, only by an explicit `LIBRARY_open`, which may have other options. Nothing unwinds into C: exceptions are caught by the call
//! through `RawEntry`, and panics in `fenced`.
//!
//! **Orderings.**
//!
//! | row | operation                   | order   | pairs with | without it                                            |
//! |-----|-----------------------------|---------|------------|-------------------------------------------------------|
//! | E1  | entry: load the opened word | Acquire | E2         | a thread would see the address but not its contents   |
//! | E2  | opening: store the word     | Release | E1         | as E1                                                 |

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use brolga::host::RawEntry;
use brolga::image;
use brolga::image::Image;
use brolga::{Doors, Engine, Options};

use crate::engine::{BrolgaEngine, BrolgaUnit};
use crate::error::{BrolgaCode, BrolgaError, fenced, keep_first, take_kept};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::text::{array, c_text};

/// The exports of an image in memory.
#[repr(C)]
struct Exports {
    /// The opened image, or why it cannot be opened; null until one is known.
    opened: AtomicPtr<Result<Opened, BrolgaError>>,
    /// The distance from the header to this struct.
    behind: usize,
    count: usize,
}

/// An image whose entries are in use.
struct Opened {
    functions: Vec<Exported>,
    /// Keeps the code of the functions.
    _kept: (Engine, Image),
}

struct Exported {
    entry: RawEntry,
    /// How many words of arguments it takes.
    words: usize,
}

/// One image is opened at a time.
static OPENING: Mutex<()> = Mutex::new(());

/// Opens an image that `brolga image build` has written, from a file. It is machine code that runs with all rights of the process.
///
/// # Safety
///
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_engine_open(
    engine: Option<&BrolgaEngine>,
    path: *const c_char,
    unit: Option<&mut MaybeUninit<*mut BrolgaUnit>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (engine, place) = (given(engine, "engine")?, place(unit, "unit")?);
        // SAFETY: by the contract.
        let path = unsafe { c_text(path, "path") }?;
        give(place, engine.opened(&engine.engine().open(path)?));
        Ok(())
    })
}

/// Opens the image whose exports these are; `LIBRARY_open` of its header calls this. `options` may be null for the defaults. An image that is open
/// is unchanged; one that could not be opened is tried again.
///
/// # Safety
///
/// `exports` is null, or the exports of an image that the system's loader has put into memory.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_exports_open(
    exports: *const c_void,
    options: Option<&BrolgaOptions>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        // SAFETY: by the contract.
        unsafe { opened(exports, Some(options)) }.map(|_| ())
    })
}

/// Calls the exported function of this number; the entries of an image call this. The first error is kept for `brolga_exports_take_error`, and the
/// result is 0.
///
/// # Safety
///
/// As `brolga_exports_open`. There are as many words at `args` as the function has arguments, and there is room for one at `result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brolga_exports_call(
    exports: *const c_void,
    index: usize,
    args: *const u64,
    result: *mut u64,
) {
    let error = fenced(|| {
        // SAFETY: by the contract.
        let opened = unsafe { opened(exports, None) }?;
        let wrong =
            || BrolgaError::new(BrolgaCode::Internal, "an entry has a number that its image does not");
        let Exported { entry, words } = opened.functions.get(index).ok_or_else(wrong)?;
        // SAFETY: by the contract.
        let args = unsafe { array(args, *words, "args") }?;
        let mut word = 0;
        // SAFETY: an exported function takes and returns numbers and addresses, each in a word, as the entry passes them.
        unsafe { entry.call_alone(args.as_ptr(), &raw mut word) }?;
        if !result.is_null() {
            // SAFETY: there is room by the contract.
            unsafe { result.write(word) };
        }
        Ok(())
    });
    if let Some(error) = error {
        keep_first(error);
    }
}

/// Returns the first error that entries of images had on the calling thread since the last call; null if there was none. The caller frees it.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_exports_take_error() -> Option<Box<BrolgaError>> {
    take_kept()
}

/// The program of an executable.
#[repr(C)]
pub struct BrolgaExecutable {
    /// The image.
    image: *const u8,
    /// Its length in bytes.
    length: usize,
    /// The call, whose value is printed; null for `main`.
    call: *const c_char,
}

/// Runs a program with the arguments of `main`, and returns the status of the process; the executables that `brolga image build --executable` makes
/// call this. Without a call it runs `main()`, or `main(Vector{String})` with the arguments after the first, which names the program.
///
/// # Safety
///
/// `executable` is null, which is an error, or all that it refers to stays as it is until the process ends; its call is null or ends in a zero byte.
/// There are `argc` texts at `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brolga_image_main(
    argc: c_int,
    argv: *const *const c_char,
    executable: Option<&BrolgaExecutable>,
) -> c_int {
    let error = fenced(|| {
        let BrolgaExecutable { image, length, call } = *given(executable, "executable")?;
        // SAFETY: by the contract.
        let image = unsafe { array(image, length, "image") }?;
        if !call.is_null() {
            // SAFETY: by the contract.
            return run(image, Some(unsafe { c_text(call, "call") }?), &[]);
        }
        // SAFETY: by the contract.
        let args = unsafe { array(argv, usize::try_from(argc).unwrap_or(0), "argv") }?;
        let bytes = |&arg: &*const c_char| match arg.is_null() {
            true => Err(BrolgaError::null("argv")),
            // SAFETY: by the contract.
            false => Ok(unsafe { CStr::from_ptr(arg) }.to_bytes().to_vec()),
        };
        run(image, None, &args.iter().skip(1).map(bytes).collect::<Result<Vec<_>, _>>()?)
    });
    let Some(error) = error else { return 0 };
    // A failure to write to the error stream is ignored.
    let _ = writeln!(std::io::stderr(), "error: {}", error.text());
    match error.code() {
        BrolgaCode::Machine => 4,
        BrolgaCode::Internal => 101,
        _ => 1,
    }
}

/// Makes a call and prints its value, or runs `main` with these arguments.
fn run(bytes: &'static [u8], call: Option<&str>, args: &[Vec<u8>]) -> Result<(), BrolgaError> {
    let engine = Engine::new(vouched(None))?;
    let image = engine.open_bytes(bytes)?;
    let main = match call {
        Some(call) => call.to_owned(),
        None => {
            let main = image.main_call(args);
            let main = main.map_err(|error| BrolgaError::new(BrolgaCode::Argument, error.to_string()))?;
            main.ok_or_else(|| BrolgaError::new(BrolgaCode::Lookup, "the program has no function `main()`"))?
        }
    };
    let run = image.run(&engine, &main)?;
    let mut evaluator = run.evaluator();
    let value = evaluator.call(run.call());
    let unwritten = evaluator.take_output_error();
    let value = value.map_err(|failure| match failure {
        brolga::Failure::NotCompiled(error) => BrolgaError::from(error),
        failure => BrolgaError::new(BrolgaCode::Exception, failure.report()),
    })?;
    if let Some(error) = unwritten {
        return Err(BrolgaError::new(BrolgaCode::Machine, format!("cannot write the output: {error}")));
    }
    if call.is_some() {
        let told = |error| BrolgaError::new(BrolgaCode::Machine, format!("cannot write the output: {error}"));
        writeln!(std::io::stdout(), "{value}").map_err(told)?;
    }
    Ok(())
}

/// The options for an image that is a part of the process.
fn vouched(options: Option<&BrolgaOptions>) -> Options {
    // SAFETY: the image is linked into the executable, or is a library that the system has loaded: its code is the process's own, vouched for by its linking.
    BrolgaOptions::made(options).doors(unsafe { Doors::open() })
}

/// The image of the exports, opened with these options; without options, by an entry.
///
/// # Safety
///
/// As [`brolga_exports_open`].
unsafe fn opened(
    exports: *const c_void,
    options: Option<Option<&BrolgaOptions>>,
) -> Result<&'static Opened, BrolgaError> {
    // SAFETY: null, or as required by `Exports` (`crates/aot/src/image/exports.rs`), and never unloaded.
    let Some(exports) = (unsafe { exports.cast::<Exports>().as_ref::<'static>() }) else {
        return Err(BrolgaError::null("exports"));
    };
    let known = || {
        // SAFETY: null, or a leaked box.
        let known = unsafe { exports.opened.load(Ordering::Acquire).as_ref::<'static>() }?; // E1
        match known {
            Err(_) if options.is_some() => None,
            known => Some(known.as_ref().map_err(Clone::clone)),
        }
    };
    if let Some(known) = known() {
        return known;
    }
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known() {
        return known;
    }
    // SAFETY: by the contract.
    let made = unsafe { open(exports, options.flatten()) };
    // Stays until the process ends, as the library does. A refusal is followed by at most one more for each explicit attempt.
    let made: &'static Result<Opened, BrolgaError> = Box::leak(Box::new(made));
    exports.opened.store(std::ptr::from_ref(made).cast_mut(), Ordering::Release); // E2
    made.as_ref().map_err(Clone::clone)
}

/// Opens the image of the exports from its file.
///
/// # Safety
///
/// As [`brolga_exports_open`].
unsafe fn open(exports: &Exports, options: Option<&BrolgaOptions>) -> Result<Opened, BrolgaError> {
    // SAFETY: by the contract.
    let path = unsafe { file_of(exports) }?;
    let file = image::ImageFile::open(&path).map_err(brolga::Error::from)?;
    // SAFETY: by the contract the header is at this distance before the exports, in memory that is not written.
    let header = unsafe {
        let header = std::ptr::from_ref(exports).cast::<u8>().wrapping_sub(exports.behind);
        &*header.cast::<[u8; image::HEADER_BYTES]>()
    };
    if !file.has_header(header).map_err(brolga::Error::from)? {
        let text = format!("`{}` was replaced since it was loaded: start the program again", path.display());
        return Err(BrolgaError::new(BrolgaCode::Machine, text));
    }
    let engine = Engine::new(vouched(options))?;
    let image = engine.open_file(&file)?;
    let function = |export: &image::Export| {
        let func = image.unit().untyped(&export.function)?;
        Ok(Exported { words: func.signature().params.len(), entry: func.raw() })
    };
    let functions = image.exports().iter().map(function).collect::<Result<Vec<_>, BrolgaError>>()?;
    if functions.len() != exports.count {
        return Err(BrolgaError::new(BrolgaCode::Machine, "the image has other exports than were loaded"));
    }
    Ok(Opened { functions, _kept: (engine, image) })
}

/// The file from which the system's loader has mapped these exports.
///
/// # Safety
///
/// As [`brolga_exports_open`].
unsafe fn file_of(exports: &Exports) -> Result<PathBuf, BrolgaError> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is only compared, and there is room for the result.
    let found = unsafe { libc::dladdr(std::ptr::from_ref(exports).cast(), info.as_mut_ptr()) };
    // SAFETY: zeros are a valid value.
    let name = unsafe { info.assume_init() }.dli_fname;
    if found == 0 || name.is_null() {
        let text = "the system cannot tell the file of the image";
        return Err(BrolgaError::new(BrolgaCode::Machine, text));
    }
    // SAFETY: the loader's name of a library that is never unloaded.
    let name = unsafe { CStr::from_ptr(name) };
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
