//! Typed host functions: Rust closures whose arguments stay in registers.
//!
//! ```text
//!   program ── invoke price(7) ──► wrapper, IR of the engine ── C call ──► `enter` ──► closure
//!                                     ▲                                       │
//!                                     ├── key 0: the value, in registers ◄────┤
//!                                     └── key k: the method `price#host`(k) makes the object, or throws (`later.rs`)
//! ```
//!
//! | Rust, as an argument | as a result | Julia |
//! |---|---|---|
//! | `i8`…`i64`, `u8`…`u64`, `f32`, `f64`, `bool`, `char` | the same | the type of the same name |
//! | | `()` | `Nothing` |
//! | `&str` | `String` | `String` |
//! | `&[T]`, `&mut [T]` of integers and floats | `Vec<T>` | `Vector{T}` |
//! | [`Persistent`](crate::heap::Persistent) | the same | `Any` |
//! | a [`Struct`] | the same | the struct of its name |
//!
//! A result may be in a `Result` whose error can be displayed: it is thrown as an `ErrorException`. A panic
//! is thrown likewise.
//!
//! **Views.** Text and slices are views of the program's object, which is not copied. While one is in use,
//! the thread counts as inside a scope: no compiled code runs on it and no collection happens, so nothing
//! frees, moves or resizes the object. Two overlapping slices in one call, one of them mutable, are refused.
//! Other threads are not excluded, as for all objects shared between threads (see [`brolga_ir::doors`]).
//!
//! **Callbacks.** A closure without views may call compiled code like any Rust code.
//!
//! Cost: 2 to 3 ns for numbers; a thread look-up for views and handles; a locked table, a dispatch and the
//! object for results that are objects.
//!
//! Not done: integers of 128 bits, tuples; more than eight arguments; results that borrow.

mod enter;
mod later;
mod structs;
mod value;

use std::any::Any;
use std::sync::Arc;

use brolga_ir::types::TypeError;
use brolga_ir::{Context, Type};

use crate::instance::Runtime;
use crate::objects::MethodEntry;

pub use enter::TypedHost;
pub use structs::{HostField, HostFields, Struct};
pub use value::{HostArg, HostOutcome, HostResult};

use enter::State;
use later::Later;

/// A closure in the form that compiled code calls.
pub struct HostFunction {
    /// The types of its arguments.
    pub params: Vec<Type>,
    /// The type of its result.
    pub result: Type,
    /// Whether the call returns the result itself, in addition to a key: a pair in C, or only a key for
    /// `Nothing`. Otherwise it returns only a key.
    pub is_direct: bool,
    /// The address for C calls, with the address of the state before the arguments.
    pub address: usize,
    /// The address of the state.
    pub state: usize,
    /// The method that makes an object from a key, its only argument, or throws.
    pub method: MethodEntry,
    /// Keeps the closure alive.
    pub owner: Arc<dyn Any + Send + Sync>,
}

impl HostFunction {
    /// A closure for programs of a runtime.
    ///
    /// # Errors
    /// The context has no such type.
    pub fn new<M, F: TypedHost<M>>(
        runtime: &Arc<Runtime>,
        cx: &Arc<Context>,
        body: F,
    ) -> Result<HostFunction, TypeError> {
        let (params, result) = F::signature(cx)?;
        let later = Arc::new(Later::default());
        let state = Arc::new(State::new(body, runtime, later.clone()));
        let of = cx.clone();
        Ok(HostFunction {
            params,
            result,
            is_direct: F::IS_DIRECT,
            address: F::address(),
            state: Arc::as_ptr(&state).expose_provenance(),
            method: MethodEntry::host(move |scope, args| later.settle(scope, &of, result, args)),
            owner: state,
        })
    }
}

impl std::fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostFunction")
            .field("params", &self.params)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}
