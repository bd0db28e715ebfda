//! The run time of engines and sessions: objects, the program's output, interrupts.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga::Runtime;
use brolga::build::{Context, Type};
use brolga::heap::TypeRef;
use brolga::limits::Interrupt;

use crate::error::for_c;
use crate::error::{BrolgaCode, BrolgaError, fenced, in_full};
use crate::out::{give, given, place};

/// The run time of an engine or a session: the heap with its objects, and the output. Each handle keeps it.
#[derive(Clone)]
pub struct BrolgaRuntime {
    pub(crate) runtime: Arc<Runtime>,
    /// Names and types of objects that C creates.
    pub(crate) context: Arc<Context>,
}

impl BrolgaRuntime {
    pub(crate) fn new(runtime: &Arc<Runtime>) -> BrolgaRuntime {
        BrolgaRuntime { runtime: runtime.clone(), context: Context::new() }
    }

    /// The heap's object for a type.
    pub(crate) fn type_object(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, BrolgaError> {
        let told = |error: brolga::build::LayoutError| {
            BrolgaError::new(BrolgaCode::Argument, error.display(&cx.types).to_string())
        };
        self.runtime.heap().type_object(cx, ty).map_err(told)
    }
}

/// Stops a thread that runs compiled code: see `brolga_interrupt_new`.
pub struct BrolgaInterrupt {
    interrupt: Interrupt,
}

/// Frees a handle of a run time. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_runtime_free(runtime: Option<Box<BrolgaRuntime>>) {
    drop(runtime);
}

/// Returns the output that programs have written since the last time, if the options say that it is kept. The caller frees the text with `brolga_text_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_runtime_take_output(
    runtime: Option<&BrolgaRuntime>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (runtime, text) = (given(runtime, "runtime")?, place(text, "text")?);
        let written = runtime.runtime.sink().take_captured();
        text.write(for_c(&String::from_utf8_lossy(&written)).into_raw());
        Ok(())
    })
}

/// Runs a full collection.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_runtime_collect(runtime: Option<&BrolgaRuntime>) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let runtime = given(runtime, "runtime")?;
        let done = runtime.runtime.enter(|scope| scope.collect());
        done.map_err(|error| BrolgaError::new(BrolgaCode::Machine, in_full(&error)))
    })
}

/// Makes an interrupt of the calling thread, which any thread may raise.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_interrupt_new(
    runtime: Option<&BrolgaRuntime>,
    interrupt: Option<&mut MaybeUninit<*mut BrolgaInterrupt>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (runtime, place) = (given(runtime, "runtime")?, place(interrupt, "interrupt")?);
        let made = Interrupt::for_current(&runtime.runtime);
        let interrupt = made.map_err(|error| BrolgaError::new(BrolgaCode::Machine, in_full(&error)))?;
        give(place, BrolgaInterrupt { interrupt });
        Ok(())
    })
}

/// Asks the thread to stop: compiled code on it throws `InterruptException` at its next loop or call. A request that arrives while the thread runs
/// no compiled code is void. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_interrupt_raise(interrupt: Option<&BrolgaInterrupt>) {
    if let Some(interrupt) = interrupt {
        interrupt.interrupt.raise();
    }
}

/// Frees an interrupt. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_interrupt_free(interrupt: Option<Box<BrolgaInterrupt>>) {
    drop(interrupt);
}
