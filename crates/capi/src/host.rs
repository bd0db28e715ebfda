//! Host functions: C functions that programs call.
//!
//! ```text
//!   program ── invoke stock(7) ──► our closure ── numbers and handles ──► C function ── value or error ──► the program continues, or throws
//! ```
//!
//! C runs outside the heap scope, so it may call functions and create objects like any other code.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use brolga::build::Type;
use brolga::heap::{Root, Scope};
use brolga::session::{CFn, Raised, Signature};
use brolga::{Doors, Program};

use crate::callback::{BrolgaFreeFn, Data};
use crate::definitions::told;
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::object::BrolgaObject;
use crate::out::given;
use crate::plain::BrolgaPlainFn;
use crate::runtime::BrolgaRuntime;
use crate::text::{give_text, name};
use crate::value::{BrolgaKind, BrolgaValue, boxed, unboxed};

/// A C function that programs call. It gets what was given at its definition, and the arguments; objects among these are lent for the call. It sets `result`, which
/// is `nothing` before, and returns null; or it returns an error, which the program catches as an `ErrorException`. An object in `result`, and an
/// error, belong to the library afterwards (`brolga_object_clone` makes a handle to pass on). Several threads may call it at the same time.
pub type BrolgaHostFn = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        args: *const BrolgaValue,
        count: usize,
        result: *mut BrolgaValue,
    ) -> *mut BrolgaError,
>;

type HostFn =
    unsafe extern "C" fn(*mut c_void, *const BrolgaValue, usize, *mut BrolgaValue) -> *mut BrolgaError;

/// A C function with its data.
struct Host {
    call: HostFn,
    data: Data,
    runtime: BrolgaRuntime,
}

/// Up to this many arguments are passed on without allocation.
const FEW: usize = 8;

/// Values for C, and the handles among them.
struct Lent<'a>(&'a mut [BrolgaValue]);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(BrolgaValue::forget);
    }
}

/// A word and an error, as compiled code takes them; the error is null if there is a word.
#[repr(C)]
struct Outcome {
    word: u64,
    error: *mut BrolgaError,
}

/// Words by value, as a C struct.
#[repr(C)]
struct Words<const N: usize>([u64; N]);

/// A host function of numbers only: it is called without objects.
struct NumberHost {
    host: Host,
    params: Vec<BrolgaKind>,
    result: BrolgaKind,
}

impl NumberHost {
    /// Up to this many arguments.
    const MOST: usize = 8;

    /// The kinds of a signature, if all are numbers and the arguments few.
    fn kinds(signature: &Signature) -> Option<(Vec<BrolgaKind>, BrolgaKind)> {
        let number = |ty: &Type| {
            let kind = BrolgaKind::of(Some(*ty));
            (kind != BrolgaKind::Object && kind != BrolgaKind::Nothing).then_some(kind)
        };
        let params = signature.params.iter().map(number).collect::<Option<Vec<_>>>()?;
        let result = BrolgaKind::of(Some(signature.result));
        (params.len() <= Self::MOST && result != BrolgaKind::Object).then_some((params, result))
    }

    /// The function for programs.
    fn function(self) -> CFn {
        let enter = match self.params.len() {
            0 => enter_none as *const (),
            1 => enter::<1> as *const (),
            2 => enter::<2> as *const (),
            3 => enter::<3> as *const (),
            4 => enter::<4> as *const (),
            5 => enter::<5> as *const (),
            6 => enter::<6> as *const (),
            7 => enter::<7> as *const (),
            _ => enter::<8> as *const (),
        };
        let own = Box::new(self);
        let data = ptr::from_ref(&*own).cast_mut().cast();
        // SAFETY: `enter` passes the ownership of its error, which is taken once.
        let message = |error: *mut ()| unsafe { Box::<BrolgaError>::from_raw(error.cast()) }.text();
        CFn::new(enter, data, own).by_words(message)
    }

    /// Calls the function with the words of numbers.
    fn call(&self, words: &[u64]) -> Outcome {
        let mut word = 0;
        let failed = fenced(|| {
            word = self.called(words)?;
            Ok(())
        });
        Outcome { word, error: failed.map_or(ptr::null_mut(), Box::into_raw) }
    }

    fn called(&self, words: &[u64]) -> Result<u64, BrolgaError> {
        let mut few = [BrolgaValue::nothing(); Self::MOST];
        for ((place, &kind), &word) in few.iter_mut().zip(&self.params).zip(words) {
            *place = BrolgaValue::from_bits(kind, word)?;
        }
        let mut result = [BrolgaValue::nothing()];
        let result = Lent(&mut result);
        // SAFETY: by the contract of `brolga_dylib_define_host`. The number of arguments matches, and there is room for the result.
        let error = unsafe {
            (self.host.call)(self.host.data.pointer(), few.as_ptr(), words.len(), result.0.as_mut_ptr())
        };
        if !error.is_null() {
            // The result may be incomplete, so it is not returned.
            result.0[0] = BrolgaValue::nothing();
            // SAFETY: an error was created by this library, and the function passes its ownership.
            return Err(*unsafe { Box::from_raw(error) });
        }
        if result.0[0].kind == self.result as u32 {
            // SAFETY: by the contract the result has the member for its kind.
            return unsafe { result.0[0].word(self.result) };
        }
        let text = format!(
            "the function of the host has returned a value that is not of the kind {:?}",
            self.result
        );
        Err(BrolgaError::new(BrolgaCode::Argument, text))
    }
}

/// Called by compiled code for functions without arguments.
extern "C" fn enter_none(host: &NumberHost) -> Outcome {
    host.call(&[])
}

/// Called by compiled code with the words of arguments.
extern "C" fn enter<const N: usize>(host: &NumberHost, words: Words<N>) -> Outcome {
    host.call(&words.0)
}

impl Host {
    /// The function as a method of the run time. The first argument is the function object.
    fn method<'f, 'h>(
        &self,
        scope: &mut Scope<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, Raised> {
        let called = self.call(scope, args.get(1..).unwrap_or_default());
        called.map_err(|message| scope.throw_error(&message))
    }

    /// Calls the function. `Err` has the message of the exception to throw.
    fn call<'f, 'h>(&self, scope: &mut Scope<'f, 'h>, args: &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, String> {
        let (mut few, mut many) = ([BrolgaValue::nothing(); FEW], Vec::new());
        let given = match few.get_mut(..args.len()) {
            Some(few) => Lent(few),
            None => {
                many.resize(args.len(), BrolgaValue::nothing());
                Lent(&mut many)
            }
        };
        for (place, arg) in given.0.iter_mut().zip(args) {
            *place = unboxed(scope, &self.runtime, arg.get(scope)).map_err(|error| error.text())?;
        }
        let mut result = [BrolgaValue::nothing()];
        let result = Lent(&mut result);
        // SAFETY: by the contract of `brolga_dylib_define_host`. The number of arguments matches, and there is room for the result.
        let error = scope.call_out(|| unsafe {
            (self.call)(self.data.pointer(), given.0.as_ptr(), given.0.len(), result.0.as_mut_ptr())
        });
        if !error.is_null() {
            // The result may be incomplete, so it is not returned.
            result.0[0] = BrolgaValue::nothing();
            // SAFETY: an error was created by this library, and the function passes its ownership.
            return Err(unsafe { Box::from_raw(error) }.text());
        }
        // SAFETY: by the contract the result has the member for its kind; an object in it lives until `result` is dropped.
        let returned = unsafe { result.0[0].read() };
        returned.and_then(|given| boxed(scope, &self.runtime, given)).map_err(|error| error.text())
    }
}

/// Defines a function of the host in a dylib. `header` is a function's header in the text form, without the word `function`:
/// `stock(article::Int64, place::String)::Int64`. `data` is handed to `call`, and to `free`, if that is not null, when the function cannot be called any more, also
/// when the definition fails.
///
/// # Safety
///
/// `header` is null or ends in a zero byte. `call` and `free` are what `BrolgaHostFn` and `BrolgaFreeFn` say, may be called on any thread, and
/// return: no exception of C++ and no `longjmp` leaves them.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_define_host(
    dylib: Option<&BrolgaDylib>,
    header: *const c_char,
    call: BrolgaHostFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        // On any failure from here on, `free` is called.
        let data = Data::new(data, free);
        // SAFETY: by the contract.
        let (dylib, signature, host) = prepared(dylib, unsafe { name(header) }, call, data)?;
        if let Some((params, result)) = NumberHost::kinds(&signature) {
            let function = NumberHost { host, params, result }.function();
            // SAFETY: `enter` takes the words of the signature.
            return Ok(dylib.dylib.define_c_fn(unsafe { Doors::open() }, &signature, function)?);
        }
        dylib.dylib.define_host(&signature, move |scope, args| host.method(scope, args))?;
        Ok(())
    })
}

/// Defines a function of the host, and replaces the one of its name and types, which may be a function of a program. `notes` is as for `brolga_dylib_redefine`, all else as for
/// `brolga_dylib_define_host`.
///
/// # Safety
///
/// As `brolga_dylib_define_host`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_redefine_host(
    dylib: Option<&BrolgaDylib>,
    header: *const c_char,
    call: BrolgaHostFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
    notes: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        // SAFETY: by the contract.
        let (dylib, signature, host) = prepared(dylib, unsafe { name(header) }, call, data)?;
        let redefined = match NumberHost::kinds(&signature) {
            Some((params, result)) => {
                let function = NumberHost { host, params, result }.function();
                // SAFETY: `enter` takes the words of the signature.
                dylib.dylib.redefine_c_fn(unsafe { Doors::open() }, &signature, function)?
            }
            None => dylib.dylib.redefine_host(&signature, move |scope, args| host.method(scope, args))?,
        };
        if let Some(notes) = notes {
            give_text(notes, &told(&redefined));
        }
        Ok(())
    })
}

/// Defines a function of the host by its own C type, which programs call with arguments in registers: `stock(article::Int64, price::Float64)::Float64` is
/// `double stock(void *data, int64_t article, double price)`. Arguments and result are integers, floats, `Bool` (`bool`) and `Ptr` (a pointer); a result `Nothing` is `void`. All else is as for `brolga_dylib_define_host`.
///
/// With `fails` the function returns a struct of the result and an error, `struct { double value; BrolgaError *error; }`, or `BrolgaError *` for a result `Nothing`. The error is null, or
/// belongs to the library afterwards and is what the program catches as an `ErrorException`.
///
/// # Safety
///
/// `header` is null or ends in a zero byte. `function` has the type that the header says, keeps to it, may be called on any thread and by several at the same time, and
/// returns: no exception of C++ and no `longjmp` leaves it. `free` is what `BrolgaFreeFn` says.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_define_plain_host(
    dylib: Option<&BrolgaDylib>,
    header: *const c_char,
    function: BrolgaPlainFn,
    fails: bool,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        // SAFETY: by the contract.
        let (dylib, signature, function) = plain(dylib, unsafe { name(header) }, function, fails, data)?;
        // SAFETY: by the contract.
        let doors = unsafe { Doors::open() };
        Ok(dylib.dylib.define_c_fn(doors, &signature, function)?)
    })
}

/// As `brolga_dylib_define_plain_host`, and replaces the function of its name and types, as `brolga_dylib_redefine_host` does.
///
/// # Safety
///
/// As `brolga_dylib_define_plain_host`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_redefine_plain_host(
    dylib: Option<&BrolgaDylib>,
    header: *const c_char,
    function: BrolgaPlainFn,
    fails: bool,
    data: *mut c_void,
    free: BrolgaFreeFn,
    notes: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        // SAFETY: by the contract.
        let (dylib, signature, function) = plain(dylib, unsafe { name(header) }, function, fails, data)?;
        // SAFETY: by the contract.
        let doors = unsafe { Doors::open() };
        let redefined = dylib.dylib.redefine_c_fn(doors, &signature, function)?;
        if let Some(notes) = notes {
            give_text(notes, &told(&redefined));
        }
        Ok(())
    })
}

/// The parts of a plain host function's definition.
fn plain<'a>(
    dylib: Option<&'a BrolgaDylib>,
    header: Result<&str, BrolgaError>,
    function: BrolgaPlainFn,
    fails: bool,
    data: Data,
) -> Result<(&'a BrolgaDylib, Signature, CFn), BrolgaError> {
    let (dylib, function) = (given(dylib, "dylib")?, given(function, "function")?);
    let signature = signature(dylib, header?)?;
    let no_value = |ty: &Type| *ty == Type::CHAR;
    if signature.params.iter().chain([&signature.result]).any(no_value) {
        let text = "C has no type for `Char`: a host function gets one by `brolga_dylib_define_host`";
        return Err(BrolgaError::new(BrolgaCode::Argument, text));
    }
    let function = CFn::new(function as *const (), data.pointer().cast(), data);
    if !fails {
        return Ok((dylib, signature, function));
    }
    let function = function.failing(|error| {
        // SAFETY: by the contract of the definition it is an error of this library, whose ownership the function passes.
        unsafe { Box::<BrolgaError>::from_raw(error.cast()) }.text()
    });
    Ok((dylib, signature, function))
}

/// The parts of a host function's definition: the dylib, the signature and the function.
fn prepared<'a>(
    dylib: Option<&'a BrolgaDylib>,
    header: Result<&str, BrolgaError>,
    call: BrolgaHostFn,
    data: Data,
) -> Result<(&'a BrolgaDylib, Signature, Host), BrolgaError> {
    let (dylib, call) = (given(dylib, "dylib")?, given(call, "call")?);
    let signature = signature(dylib, header?)?;
    Ok((dylib, signature, Host { call, data, runtime: dylib.runtime.clone() }))
}

/// The name and types in a header, which is a function's first line.
pub(crate) fn signature(dylib: &BrolgaDylib, header: &str) -> Result<Signature, BrolgaError> {
    if header.contains(['\n', '\r', '#']) {
        return Err(BrolgaError::new(BrolgaCode::Argument, "the header of a host function is one line"));
    }
    let text = format!("function {header}\n1 ─      unreachable\nend\n");
    // Types have the meanings that they have in programs of the dylib.
    let cx = dylib.dylib.context();
    let program = Program::read_in(&cx, "host function", text.as_bytes())?;
    let (module, mut funcs) = (program.module(), program.module().funcs());
    let none = || BrolgaError::new(BrolgaCode::Argument, "the header is none of a function");
    let (_, func) = funcs.next().ok_or_else(none)?;
    let params: Vec<_> = func.sig.params.iter().skip(1).map(|param| param.ty).collect();
    let result = func.sig.results.first().copied().ok_or_else(none)?;
    Ok(Signature::new(&func.spelled_name(&module.cx), &params, result))
}

impl BrolgaValue {
    fn nothing() -> BrolgaValue {
        crate::value::brolga_nothing()
    }

    /// Frees an object that a value of ours owns.
    pub(crate) fn forget(&self) {
        if self.kind == BrolgaKind::Object as u32 {
            // SAFETY: by its kind the member is an object; it is null, or came from `Box::into_raw` for the owner of this value.
            unsafe {
                if !self.bits.object.is_null() {
                    drop(Box::<BrolgaObject>::from_raw(self.bits.object));
                }
            }
        }
    }
}
