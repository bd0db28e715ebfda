//! Plain calls: functions of programs as C functions with arguments in registers; and calls by words.
//!
//! ```text
//!   brolga_function_address        double (*price)(int64_t, double)                  an error is kept for the thread; the value is 0
//!   brolga_function_code_address   uint32_t (*price)(int64_t, double, double *)      the value is a code; an error is kept, too
//!   brolga_function_call_words     the words of arguments that are known at run time only
//! ```
//!
//! The kinds are compared once. A call does what `brolga_function_call` does, but does not look at kinds: it attaches the thread when it calls first, enters the run time and the
//! newest world, keeps to limits around it (`brolga_runtime_limited`), and leaves everything when it ends. So C holds nothing but the function, and may call from any
//! thread and within host functions.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use brolga::host::{PlainEntry, PlainForm};

use crate::error::{BrolgaCode, BrolgaError, fenced, keep_first, keep_last};
use crate::function::BrolgaFunction;
use crate::out::{given, place};
use crate::text::array;
use crate::value::BrolgaKind;

/// A function of C of any type: it is cast to its own type before it is called.
pub type BrolgaPlainFn = Option<unsafe extern "C" fn()>;

/// The address of a function for plain calls, if the kinds match its values.
fn address(
    function: &BrolgaFunction,
    params: &[u32],
    result: u32,
    form: PlainForm,
) -> Result<BrolgaPlainFn, BrolgaError> {
    let (own_params, own_result) = function.kinds();
    if params.len() != own_params.len() {
        return Err(function.wrong_count(params.len()));
    }
    let kinds = own_params.iter().chain([&own_result]).zip(params.iter().chain([&result]));
    for (at, (&own, &said)) in kinds.enumerate() {
        let what = if at < params.len() { format!("argument {}", at + 1) } else { "the result".to_owned() };
        let wrong = |text: String| {
            let text = format!("{what} of `{}` {text}", function.symbol());
            Err(BrolgaError::new(BrolgaCode::Argument, text))
        };
        let said = BrolgaKind::of_number(said)?;
        if said != own {
            return wrong(format!("is of the kind {own:?}, not {said:?}"));
        }
        if matches!(own, BrolgaKind::Char | BrolgaKind::Object) {
            return wrong(format!(
                "is of the kind {own:?}, which C has no type for: call `brolga_function_call`"
            ));
        }
    }
    let entry = entry(function, form)?.address();
    // SAFETY: it is the address of code. Functions of C of all types have the same form.
    Ok(unsafe { std::mem::transmute::<*const (), BrolgaPlainFn>(entry) })
}

/// As [`address`], from the arguments of C.
///
/// # Safety
///
/// There are that many numbers at `params`, or it is null.
unsafe fn give_address(
    function: Option<&BrolgaFunction>,
    (params, count): (*const u32, usize),
    result: u32,
    form: PlainForm,
    out: Option<&mut MaybeUninit<BrolgaPlainFn>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (function, out) = (given(function, "function")?, place(out, "address")?);
        // SAFETY: by the contract.
        let params = unsafe { array(params, count, "params") }?;
        out.write(address(function, params, result, form)?);
        Ok(())
    })
}

/// The plain entry of a function, made at the first request.
fn entry(function: &BrolgaFunction, form: PlainForm) -> Result<&PlainEntry, BrolgaError> {
    let known: &OnceLock<PlainEntry> = &function.entries[usize::from(form == PlainForm::Code)];
    if let Some(entry) = known.get() {
        return Ok(entry);
    }
    let made = function.func().plain_entry(form, move |failure| {
        let error = Box::new(BrolgaError::from(failure));
        let code = error.code() as u32;
        match form {
            PlainForm::Value => keep_first(error),
            PlainForm::Code => keep_last(error),
        }
        code
    })?;
    // Of two threads that do the same, the first one's is kept.
    Ok(known.get_or_init(|| made))
}

/// Returns the address of a function, to be called as an ordinary function of C: `int64_t (*fib)(int64_t) = (int64_t (*)(int64_t))address;`. `params` and `result` are `BrolgaKind`s, which have
/// to match the function, as written in the prototype: the types of the members of `BrolgaBits`, `void` for `BROLGA_KIND_NOTHING` as the result, and no
/// argument for `BROLGA_KIND_NOTHING`. A function with a `Char` or an object has no such address.
///
/// A call that throws returns 0, and keeps its error for the thread: look for it by `brolga_take_error` after the call, or after several. Nothing jumps over frames of C. The address may be called
/// by any thread, and within host functions; the caller holds nothing but the function, which must not be freed while it is called. Each call reaches the newest definition, and limits around it apply
/// (`brolga_runtime_limited`).
///
/// # Safety
///
/// There are `count` numbers at `params`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_function_address(
    function: Option<&BrolgaFunction>,
    params: *const u32,
    count: usize,
    result: u32,
    address: Option<&mut MaybeUninit<BrolgaPlainFn>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    unsafe { give_address(function, (params, count), result, PlainForm::Value, address) }
}

/// As `brolga_function_address`, of a function that returns a `BrolgaCode` as a `uint32_t`, and takes one argument more, a pointer to the result:
/// `uint32_t (*fib)(int64_t, int64_t *)`. The result is written if the code is `BROLGA_CODE_OK` and the pointer is not null; otherwise `brolga_take_error` returns the error. If
/// the result is `BROLGA_KIND_NOTHING`, pass null.
///
/// # Safety
///
/// There are `count` numbers at `params`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_function_code_address(
    function: Option<&BrolgaFunction>,
    params: *const u32,
    count: usize,
    result: u32,
    address: Option<&mut MaybeUninit<BrolgaPlainFn>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    unsafe { give_address(function, (params, count), result, PlainForm::Code, address) }
}

/// Calls a function of numbers with words, for callers that have its types at run time only. Each argument is in the low bytes of a word, at the address that the word has; the bytes above it do not matter,
/// and neither does a word for `BROLGA_KIND_NOTHING`: there is none. The result is in the low bytes of the word at `result`, which may be null, and the bytes above it are 0. A `Bool` is 0 or 1. A `Char` is
/// as the program has it: its UTF-8 bytes, from the highest byte of four on.
///
/// # Safety
///
/// There are as many words at `args` as the function has arguments, each with a value of its type.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_function_call_words(
    function: Option<&BrolgaFunction>,
    args: *const u64,
    result: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let function = given(function, "function")?;
        let entry = function.plain().ok_or_else(|| {
            let text =
                format!("`{}` takes or returns objects: call `brolga_function_call`", function.symbol());
            BrolgaError::new(BrolgaCode::Argument, text)
        })?;
        if args.is_null() && !function.kinds().0.is_empty() {
            return Err(BrolgaError::null("args"));
        }
        let mut word = 0;
        // SAFETY: by the contract; there is a word for the result.
        unsafe { entry.call_alone(args, &raw mut word) }?;
        if let Some(result) = result {
            result.write(word);
        }
        Ok(())
    })
}
