//! Errors as owned objects: a code, a message, and a position if there is one.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use brolga::heap::ObjectError;
use brolga::host::CEntryError;
use brolga::{CallError, Error, Exception, Fault, LookupError, SessionError};

use crate::names::in_c;

/// The kind of an error.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaCode {
    /// No error.
    Ok = 0,
    /// An argument is a null pointer, a text that is not UTF-8, or a value of the wrong kind.
    Argument = 1,
    /// The program is broken, too large, or asks for what is not there.
    Program = 2,
    /// There is no such function, it has another type, or the session refuses the request.
    Lookup = 3,
    /// The called function threw; `brolga_error_exception` names the exception.
    Exception = 4,
    /// There is no memory, no code generator for the machine, or the thread cannot run compiled code.
    Machine = 5,
    /// A defect of Brolga.
    Internal = 6,
    /// A limit was reached (`brolga_function_call_limited`).
    Ended = 7,
}

/// Why a function failed. The caller owns it and frees it with `brolga_error_free`.
#[derive(Clone, Debug)]
pub struct BrolgaError {
    code: BrolgaCode,
    message: CString,
    exception: Option<CString>,
    place: Option<Place>,
}

/// A place in a program. 0 is an unknown line or column.
#[derive(Clone, Debug)]
struct Place {
    file: CString,
    line: u32,
    column: u32,
}

impl BrolgaError {
    pub(crate) fn new(code: BrolgaCode, message: impl AsRef<str>) -> BrolgaError {
        BrolgaError { code, message: for_c(&in_c(message.as_ref())), exception: None, place: None }
    }

    /// The argument of this name is a null pointer.
    #[cold]
    pub(crate) fn null(name: &str) -> BrolgaError {
        BrolgaError::new(BrolgaCode::Argument, format!("`{name}` is null"))
    }

    pub(crate) fn code(&self) -> BrolgaCode {
        self.code
    }

    /// The message, for a program that catches the error.
    pub(crate) fn text(&self) -> String {
        self.message.to_string_lossy().into_owned()
    }
}

thread_local! {
    /// The error of a call that could not return one: of an entry of an image, of a plain call.
    static KEPT: RefCell<Option<Box<BrolgaError>>> = const { RefCell::new(None) };
}

/// Keeps an error for the thread, unless it has one: later errors are mostly consequences.
pub(crate) fn keep_first(error: Box<BrolgaError>) {
    // While the thread ends, no caller can request it.
    let _ = KEPT.try_with(|kept| kept.borrow_mut().get_or_insert(error).code);
}

/// Keeps an error for the thread, instead of one that it has.
pub(crate) fn keep_last(error: Box<BrolgaError>) {
    // As above. The earlier error is dropped outside of the borrow.
    let _ = KEPT.try_with(|kept| kept.replace(Some(error)));
}

/// The error that the thread has kept.
pub(crate) fn take_kept() -> Option<Box<BrolgaError>> {
    KEPT.try_with(RefCell::take).ok().flatten()
}

/// Returns the error that plain calls (`brolga_function_address`) and entries of images have kept for the calling thread since the last call of this function; null if there is none.
/// The first error stays, but a plain call that returns a code replaces it by its own. The caller frees it.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_take_error() -> Option<Box<BrolgaError>> {
    take_kept()
}

/// Runs the body of a function of the API. The message of a panic, which is a defect, becomes an error.
pub(crate) fn fenced(body: impl FnOnce() -> Result<(), BrolgaError>) -> Option<Box<BrolgaError>> {
    // State that a panic leaves inconsistent is under locks that tolerate this, or belongs only to the call.
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            BrolgaError::new(BrolgaCode::Internal, format!("a defect of Brolga: {text}"))
        }
    };
    Some(Box::new(error))
}

impl From<Error> for BrolgaError {
    fn from(error: Error) -> BrolgaError {
        BrolgaError::from(&error)
    }
}

impl From<&Error> for BrolgaError {
    fn from(error: &Error) -> BrolgaError {
        let code = match error.fault() {
            Fault::Program => BrolgaCode::Program,
            Fault::Caller => BrolgaCode::Lookup,
            Fault::World => BrolgaCode::Machine,
            Fault::Brolga => BrolgaCode::Internal,
        };
        let mut told = BrolgaError::new(code, in_full(error));
        if let Error::Broken(broken) = error
            && let Some(first) = broken.findings.iter().next()
        {
            let position = broken.source.position(first.at.start);
            let file = for_c(broken.source.name());
            told.place = Some(Place { file, line: position.line, column: position.column });
        }
        told
    }
}

impl From<SessionError> for BrolgaError {
    fn from(error: SessionError) -> BrolgaError {
        match &error {
            SessionError::Program(inner) => BrolgaError::from(&**inner),
            _ => BrolgaError::new(BrolgaCode::Lookup, in_full(&error)),
        }
    }
}

impl From<LookupError> for BrolgaError {
    fn from(error: LookupError) -> BrolgaError {
        BrolgaError::new(BrolgaCode::Lookup, in_full(&error))
    }
}

impl From<ObjectError> for BrolgaError {
    fn from(error: ObjectError) -> BrolgaError {
        let code = match error {
            ObjectError::OutOfMemory(_) => BrolgaCode::Machine,
            _ => BrolgaCode::Argument,
        };
        BrolgaError::new(code, in_full(&error))
    }
}

impl From<&Exception> for BrolgaError {
    fn from(thrown: &Exception) -> BrolgaError {
        let mut told = BrolgaError::new(BrolgaCode::Exception, thrown.to_string());
        let (cx, ty) = thrown.ty();
        told.exception = Some(for_c(&cx.types.display(ty).to_string()));
        told.place = thrown.trace().iter().find_map(|frame| {
            let file = for_c(frame.function.as_ref()?);
            Some(Place { file, line: frame.line.unwrap_or(0), column: frame.column.unwrap_or(0) })
        });
        told
    }
}

impl From<CallError> for BrolgaError {
    fn from(error: CallError) -> BrolgaError {
        match &error {
            CallError::Exception(thrown) => BrolgaError::from(&**thrown),
            CallError::Attach(_) | CallError::NoWatch | CallError::NoThread => {
                BrolgaError::new(BrolgaCode::Machine, in_full(&error))
            }
            CallError::Ended(_) => BrolgaError::new(BrolgaCode::Ended, in_full(&error)),
            CallError::Object(error) => BrolgaError::from((**error).clone()),
            _ => BrolgaError::new(BrolgaCode::Argument, in_full(&error)),
        }
    }
}

impl From<CEntryError> for BrolgaError {
    fn from(error: CEntryError) -> BrolgaError {
        let code = if error.is_shortage() { BrolgaCode::Machine } else { BrolgaCode::Lookup };
        BrolgaError::new(code, in_full(&error))
    }
}

/// A text for C. Zero bytes, which would end it early, are shown as `\0`.
pub(crate) fn for_c(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// An error with its causes.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// The code of an error; `BROLGA_CODE_OK` for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_code(error: Option<&BrolgaError>) -> BrolgaCode {
    error.map_or(BrolgaCode::Ok, |error| error.code)
}

/// The message of an error, valid as long as the error; an empty text for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_message(error: Option<&BrolgaError>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The type of the exception, such as `DivideError`, valid as long as the error; null for errors that are none.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_exception(error: Option<&BrolgaError>) -> *const c_char {
    error.and_then(|error| error.exception.as_ref()).map_or(std::ptr::null(), |text| text.as_ptr())
}

/// The name of the program that an error is about, or the function that threw, valid as long as the error; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_file(error: Option<&BrolgaError>) -> *const c_char {
    error.and_then(|error| error.place.as_ref()).map_or(std::ptr::null(), |place| place.file.as_ptr())
}

/// The line in the program, from 1; 0 if it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_line(error: Option<&BrolgaError>) -> u32 {
    error.and_then(|error| error.place.as_ref()).map_or(0, |place| place.line)
}

/// The column in the line, from 1; 0 if it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_column(error: Option<&BrolgaError>) -> u32 {
    error.and_then(|error| error.place.as_ref()).map_or(0, |place| place.column)
}

/// Frees an error. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_error_free(error: Option<Box<BrolgaError>>) {
    drop(error);
}
