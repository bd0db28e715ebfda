//! Calls of functions with types of Rust.
//!
//! The types are compared with the program's when the function is looked up; a call passes words and checks nothing.
//!
//! Cost: as `func.rs`; with values in memory as `by_memory.rs`.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;
use brolga_runtime::Limits;

use super::by_memory::{ByMemory, check_types};
use super::func::{CallError, Callable, LookupError, UntypedFunc};
use super::value::{Params, Value};
use crate::cell::IndirectCell;
use crate::unit::Unit;

/// A compiled function with a Rust signature that fits it.
pub struct TypedFunc<A, R> {
    pub(crate) callable: Callable,
    /// How it is called if some of its values are passed in memory.
    pub(crate) by_memory: Option<Arc<ByMemory>>,
    signature: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for TypedFunc<A, R> {
    fn clone(&self) -> Self {
        TypedFunc {
            callable: self.callable.clone(),
            by_memory: self.by_memory.clone(),
            signature: PhantomData,
        }
    }
}

impl<A, R> std::fmt::Debug for TypedFunc<A, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedFunc").field(&self.callable).finish()
    }
}

impl<A, R> TypedFunc<A, R> {
    /// The same function; it and its clones also hold a value as long as the code.
    #[must_use]
    pub fn keeping(mut self, kept: Arc<dyn Any + Send + Sync>) -> TypedFunc<A, R> {
        self.callable.keep(kept);
        self
    }
}

impl<A: Params, R: Value> TypedFunc<A, R> {
    /// Calls the function.
    #[inline]
    pub fn call(&self, args: A) -> Result<R, CallError> {
        if let Some(by_memory) = &self.by_memory {
            return by_memory.call(args);
        }
        let args = args.into_words();
        // Compiled code leaves the bytes above a narrow leaf alone, so they have to be initialised.
        let mut results = MaybeUninit::<R::Words>::zeroed();
        // SAFETY: F1: lookup compared the sizes of both word types with the signature of the trampoline, and the words are
        // `u64`s in C layout.
        unsafe { self.callable.call((&raw const args).cast(), results.as_mut_ptr().cast()) }
            .map_err(|error| *error)?;
        // SAFETY: words are `u64`s, all of whose bytes were zeroed above.
        Ok(R::from_words(unsafe { results.assume_init() })?)
    }

    /// As [`TypedFunc::call`], under limits: an end that the program cannot catch. Calls of another kind are made within [`Runtime::limited`](brolga_runtime::Runtime::limited).
    ///
    /// # Errors
    /// Also [`CallError::Ended`]: a limit was reached before the function returned, or before it was called.
    pub fn call_limited(&self, limits: &Limits, args: A) -> Result<R, CallError> {
        self.callable.runtime().limited(limits, || self.call(args))?
    }
}

impl Unit {
    /// The function of that name, to be called with Rust values of the given types.
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, LookupError> {
        let (callable, ty) = Callable::new(self, name)?;
        typed(callable, &ty, || self.untyped(name))
    }
}

impl IndirectCell {
    /// The function, to be called with Rust values of the given types.
    pub fn func<A: Params, R: Value>(&self) -> Result<TypedFunc<A, R>, LookupError> {
        typed(Callable::of_cell(self)?, self.ty(), || self.untyped())
    }
}

/// The function as one of Rust types, if they stand for its own.
fn typed<A: Params, R: Value>(
    callable: Callable,
    ty: &FunctionType,
    untyped: impl FnOnce() -> Result<UntypedFunc, LookupError>,
) -> Result<TypedFunc<A, R>, LookupError> {
    let name = ty.name.as_str();
    let result = (std::any::type_name::<R>(), R::stands_for(&ty.result));
    check_types(name, ty, A::COUNT, &A::stands_for, result)?;
    if ty.params.iter().chain([&ty.result]).any(|value| value.memory.is_some()) {
        let by_memory = Some(Arc::new(ByMemory::new(untyped()?, ty)));
        return Ok(TypedFunc { callable, by_memory, signature: PhantomData });
    }
    let sizes = (8 * ty.signature.param_words(), 8 * ty.signature.result_words());
    if sizes != (size_of::<A::Words>(), size_of::<R::Words>()) {
        return Err(LookupError::InMemory { name: name.into() });
    }
    Ok(TypedFunc { callable, by_memory: None, signature: PhantomData })
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<TypedFunc<(i64, *mut u8), *const u8>>();
};
