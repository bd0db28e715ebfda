//! Making a runtime, and calling into it from Rust.

use std::sync::Arc;

use crate::exception::Exception;
use crate::heap::{Heap, Root, Scope};
#[cfg(feature = "heap-mmtk")]
use crate::heap::{MmtkError, MmtkOptions};
use crate::instance::{Host, Runtime, RuntimeOptions};
use crate::objects::{InWorld, MethodTable, Ops};
use crate::routines;
use crate::thread::{AttachError, EnterError, Thread, forget_gone, with_attached, with_heap_scope};

/// Why a call of an object returned no object.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectCallError {
    /// The callee threw.
    #[error(transparent)]
    Exception(#[from] Exception),
    /// The thread cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The scope or the table of methods belongs to another runtime.
    #[error("the scope or the table of methods belongs to another runtime")]
    OtherRuntime,
}

/// The routines and threads of this process.
fn host() -> Host {
    Host { routines: routines::sorted_table(), forget_threads: forget_gone }
}

impl Runtime {
    /// A new runtime, with its own heap and types.
    pub fn new(options: RuntimeOptions) -> Arc<Runtime> {
        let heap = Heap::new(options.heap.clone());
        Runtime::with(options, heap, host())
    }

    /// A new runtime whose memory `mmtk` manages. There can only ever be one in a process. Of `options.heap`
    /// only the stress setting applies.
    #[cfg(feature = "heap-mmtk")]
    pub fn with_mmtk(options: RuntimeOptions, mmtk: &MmtkOptions) -> Result<Arc<Runtime>, MmtkError> {
        let heap = Heap::with_mmtk(options.heap.clone(), mmtk)?;
        Ok(Runtime::with(options, heap, host()))
    }

    /// Calls an object with others: a function, a closure, a type. Builtins and operators can be called like
    /// methods. Inside compiled code the call sees the methods of that code's program, in its world;
    /// elsewhere it sees no program's methods.
    pub fn call<'f, 'h>(
        self: &Arc<Self>,
        scope: &mut Scope<'f, 'h>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, ObjectCallError> {
        self.call_where(scope, |thread| thread.stay_or_enter_world(self.methods()), callee, args)
    }

    /// Like [`Runtime::call`], with the methods of a program.
    pub fn call_in<'f, 'h>(
        self: &Arc<Self>,
        table: &MethodTable,
        scope: &mut Scope<'f, 'h>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, ObjectCallError> {
        if !self.owns(table) {
            return Err(ObjectCallError::OtherRuntime);
        }
        self.call_where(scope, |thread| Some(thread.enter_world(table)), callee, args)
    }

    fn call_where<'f, 'h>(
        self: &Arc<Self>,
        scope: &mut Scope<'f, 'h>,
        enter_world: impl for<'t> FnOnce(&'t Thread) -> Option<InWorld<'t>>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, ObjectCallError> {
        if !std::ptr::eq(scope.heap(), self.heap()) {
            return Err(ObjectCallError::OtherRuntime);
        }
        with_attached(self, |thread| {
            let entered = thread.enter();
            if let Some(ended) = entered.refused() {
                return Err(ObjectCallError::Exception(ended));
            }
            let _world = enter_world(thread);
            match (Ops { scope, thread, runtime: self }.apply(callee, args)) {
                Ok(result) if !entered.carries() => Ok(result),
                _ => Err(ObjectCallError::Exception(entered.take_exception())),
            }
        })?
    }

    /// Calls `body` with the right to make and use objects, on the current thread, which is attached if
    /// necessary.
    pub fn enter<R>(
        self: &Arc<Self>,
        body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> R,
    ) -> Result<R, EnterError> {
        with_heap_scope(self, body)
    }
}
