//! Functions, and calling them.
//!
//! A function that takes and returns only numbers is called in registers. A function that takes or returns objects is called dynamically: arguments
//! become objects, and the run time finds the method among the methods that the function's program sees.
//!
//! Types are compared at each call, by kind: an `Int32` is not an `Int64`. The run time checks objects, and throws `MethodError`.

use std::any::Any;
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use brolga::UntypedFunc;
use brolga::build::Context;
use brolga::host::{PlainEntry, RawEntry};

use crate::error::for_c;
use crate::error::{BrolgaCode, BrolgaError, fenced, in_full};
use crate::object::enter;
use crate::out::{given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::array;
use crate::value::{BrolgaKind, BrolgaValue, Given, boxed, unboxed};

/// Up to this many arguments are passed on without allocation.
const FEW: usize = 16;

/// A compiled function, or one that its first call compiles. It keeps its code.
pub struct BrolgaFunction {
    func: UntypedFunc,
    /// How it is called in registers, if it takes and returns only numbers.
    plain: Option<RawEntry>,
    /// As [`Types`], by kind.
    params: Vec<BrolgaKind>,
    result: BrolgaKind,
    symbol: String,
    types: Types,
    /// The context of its program, and its name there.
    context: Arc<Context>,
    name: String,
    runtime: BrolgaRuntime,
    /// Handles that the code needs.
    kept: Box<dyn Any + Send + Sync>,
    /// Its plain entries, once there are any: as a value, as a code.
    pub(crate) entries: [OnceLock<PlainEntry>; 2],
}

/// The names of the types of a function.
pub(crate) struct Types {
    pub(crate) params: Vec<String>,
    pub(crate) result: String,
}

impl Types {
    /// The types in a symbol (`f(Int64, Vector{Float64})`), with the type of the result.
    pub(crate) fn of_symbol(symbol: &str, result: &str) -> Types {
        let list = symbol.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or("");
        let (mut params, mut depth, mut start) = (Vec::new(), 0u32, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    params.push(list[start..at].trim().to_owned());
                    start = at + 1;
                }
                _ => {}
            }
        }
        if !list.is_empty() {
            params.push(list[start..].trim().to_owned());
        }
        Types { params, result: result.to_owned() }
    }
}

impl BrolgaFunction {
    pub(crate) fn new(
        func: UntypedFunc,
        symbol: &str,
        types: Types,
        context: &Arc<Context>,
        runtime: &BrolgaRuntime,
        kept: impl Any + Send + Sync,
    ) -> BrolgaFunction {
        let kinds = types.params.iter().map(|name| BrolgaKind::of_name(name));
        let params: Vec<BrolgaKind> = kinds.collect();
        let result = BrolgaKind::of_name(&types.result);
        let low = |kinds: &[BrolgaKind]| kinds.iter().filter(|kind| **kind != BrolgaKind::Nothing).count();
        let signature = func.signature();
        let is_numbers = !params.contains(&BrolgaKind::Object)
            && result != BrolgaKind::Object
            && signature.params.len() == low(&params)
            && signature.results.len() == low(&[result]);
        let plain = is_numbers.then(|| func.raw());
        let name = symbol.split_once('(').map_or(symbol, |(name, _)| name).to_owned();
        let (runtime, symbol, context) = (runtime.clone(), symbol.to_owned(), context.clone());
        BrolgaFunction {
            func,
            plain,
            params,
            result,
            symbol,
            types,
            context,
            name,
            runtime,
            kept: Box::new(kept),
            entries: Default::default(),
        }
    }

    /// Calls the function with the values of C.
    ///
    /// # Safety
    ///
    /// As for [`brolga_function_call`].
    pub(crate) unsafe fn call_values(
        &self,
        args: *const BrolgaValue,
        count: usize,
    ) -> Result<BrolgaValue, BrolgaError> {
        // SAFETY: by the contract.
        let args = unsafe { array(args, count, "args") }?;
        if args.len() != self.params.len() {
            return Err(self.wrong_count(args.len()));
        }
        match &self.plain {
            // SAFETY: by the contract.
            Some(entry) => unsafe { self.call_plain(entry, args) },
            None => {
                // SAFETY: by the contract.
                let given = args.iter().map(|arg| unsafe { arg.read() });
                self.call_boxed(&given.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }

    /// Calls a function that takes and returns only numbers.
    ///
    /// # Safety
    ///
    /// As for [`brolga_function_call`]; the entry is the function's, and there are as many arguments as it takes.
    unsafe fn call_plain(&self, entry: &RawEntry, args: &[BrolgaValue]) -> Result<BrolgaValue, BrolgaError> {
        let (mut few, mut many) = ([0; FEW], Vec::new());
        let words = match self.params.len() {
            ..=FEW => &mut few[..],
            length => {
                many.resize(length, 0);
                &mut many[..]
            }
        };
        let mut next = 0;
        for (index, (arg, &kind)) in args.iter().zip(&self.params).enumerate() {
            if arg.kind != kind as u32 {
                // SAFETY: by the contract.
                return Err(self.wrong(index, &unsafe { arg.read() }?));
            }
            // SAFETY: by the contract.
            words[next] = unsafe { arg.word(kind) }?;
            next += usize::from(kind != BrolgaKind::Nothing);
        }
        let mut result = 0;
        // SAFETY: there is a word for each parameter, of its kind, and one for the result: `new` has compared the numbers with the signature.
        unsafe { entry.call_alone(words.as_ptr(), &raw mut result) }?;
        BrolgaValue::from_bits(self.result, result)
    }

    /// The run time of the function.
    pub(crate) fn runtime(&self) -> &BrolgaRuntime {
        &self.runtime
    }

    pub(crate) fn func(&self) -> &UntypedFunc {
        &self.func
    }

    pub(crate) fn symbol(&self) -> &str {
        &self.symbol
    }

    /// The entry of a function that takes and returns only numbers.
    pub(crate) fn plain(&self) -> Option<&RawEntry> {
        self.plain.as_ref()
    }

    /// The kinds of its parameters and result.
    pub(crate) fn kinds(&self) -> (&[BrolgaKind], BrolgaKind) {
        (&self.params, self.result)
    }

    #[cold]
    pub(crate) fn wrong_count(&self, given: usize) -> BrolgaError {
        let plural = if self.params.len() == 1 { "" } else { "s" };
        let text = format!("`{}` takes {} argument{plural}, not {given}", self.symbol, self.params.len());
        BrolgaError::new(BrolgaCode::Argument, text)
    }

    #[cold]
    fn wrong(&self, index: usize, given: &Given<'_>) -> BrolgaError {
        let given = match given {
            Given::Plain(kind, _) => format!("a value of kind {kind:?}"),
            Given::Object(_) => "an object".to_owned(),
        };
        let (symbol, expected) = (&self.symbol, &self.types.params[index]);
        let text = format!("argument {} of `{symbol}` is a `{expected}`, and {given} was given", index + 1);
        BrolgaError::new(BrolgaCode::Argument, text)
    }

    /// Calls a function with objects among its values. What it takes as an object, the run time compares.
    fn call_boxed(&self, args: &[Given<'_>]) -> Result<BrolgaValue, BrolgaError> {
        for (index, (arg, &kind)) in args.iter().zip(&self.params).enumerate() {
            let fits = kind == BrolgaKind::Object || matches!(arg, Given::Plain(given, _) if *given == kind);
            if !fits {
                return Err(self.wrong(index, arg));
            }
        }
        let ty = self.runtime.type_object(&self.context, self.context.types.function_of(&self.name))?;
        enter(&self.runtime, |scope| {
            let no_object =
                || BrolgaError::new(BrolgaCode::Lookup, format!("`{}` is not a function object", self.name));
            let callee = scope.instance(&ty).ok_or_else(no_object)?;
            let args =
                args.iter().map(|&arg| boxed(scope, &self.runtime, arg)).collect::<Result<Vec<_>, _>>()?;
            match self.runtime.runtime.call_in(self.func.methods(), scope, callee, &args) {
                Ok(result) => unboxed(scope, &self.runtime, result.get(scope)),
                Err(brolga::heap::ObjectCallError::Exception(thrown)) => Err(BrolgaError::from(&thrown)),
                Err(error) => Err(BrolgaError::new(BrolgaCode::Machine, in_full(&error))),
            }
        })
    }
}

/// Writes the result, unless the caller passes a null pointer.
pub(crate) fn give_value(value: BrolgaValue, result: Option<&mut MaybeUninit<BrolgaValue>>) {
    match result {
        Some(result) => {
            result.write(value);
        }
        None => value.forget(),
    }
}

/// Calls a function, on the calling thread. `result` may be null if the result does not matter.
///
/// # Safety
///
/// There are `count` values at `args`, each with the member set that its kind says; objects among them are live handles.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_function_call(
    function: Option<&BrolgaFunction>,
    args: *const BrolgaValue,
    count: usize,
    result: Option<&mut MaybeUninit<BrolgaValue>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let function = given(function, "function")?;
        // SAFETY: by the contract.
        give_value(unsafe { function.call_values(args, count) }?, result);
        Ok(())
    })
}

/// Returns the symbol of a function with the type of its result, such as `fib(Int64)::Int64`. The caller frees the text with `brolga_text_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_function_signature(
    function: Option<&BrolgaFunction>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (function, text) = (given(function, "function")?, place(text, "text")?);
        text.write(for_c(&format!("{}::{}", function.symbol, function.types.result)).into_raw());
        Ok(())
    })
}

/// Returns the address by which C calls a function of a session, with the C types of its arguments and result; it is the same for all handles and `cfunction`s of programs. It is valid as long as the session
/// defines the function or this handle is there. A thread that C has made is attached to the session by its first call.
///
/// An exception of the program passes to the compiled code that has called C, and ends the process if there is none: a function that may throw is called by `brolga_function_call`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_function_c_address(
    function: Option<&BrolgaFunction>,
    address: Option<&mut MaybeUninit<*mut c_void>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (function, address) = (given(function, "function")?, place(address, "address")?);
        let not_of_session = || {
            let text =
                format!("`{}` is of a unit: functions of sessions have addresses for C", function.symbol);
            BrolgaError::new(BrolgaCode::Lookup, text)
        };
        let found = function.kept.downcast_ref::<brolga::session::Function>().ok_or_else(not_of_session)?;
        address.write(found.c_address()?.cast_mut().cast());
        Ok(())
    })
}

/// Frees a handle of a function. Its code goes when nothing else keeps it. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_function_free(function: Option<Box<BrolgaFunction>>) {
    drop(function);
}

#[cfg(test)]
mod tests {
    use super::Types;

    #[test]
    fn types_are_read_off_symbols() {
        let of = |symbol| Types::of_symbol(symbol, "Int64").params;
        assert!(of("f()").is_empty());
        assert_eq!(of("f(Int64)"), ["Int64"]);
        assert_eq!(of("A.g(Tuple{Int64, Bool}, Vector{Float64})"), ["Tuple{Int64, Bool}", "Vector{Float64}"]);
    }
}
