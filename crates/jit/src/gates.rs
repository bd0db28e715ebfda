//! Gates: how code reaches a function of another unit that may be removed under it.
//!
//! ```text
//!                          open                                       closed
//!   caller ── load word ─────────► code of the function       ─────────────────► stub ──► trampoline: throws CompileError
//!                     word = code                        word = stub
//! ```
//!
//! A gate is a place of `cell/place.rs` that leads to one function from the beginning, and once in its life elsewhere: to its own stub. Callers
//! name its word as they name that of a slot, so their code never changes, whatever maps its pages and whatever linked it. The trampoline is
//! one for all signatures, since it never returns; what the stub leaves in the thread says whose function is gone.
//!
//! **Who keeps what alive.** A unit keeps the gates that its code names. An open gate keeps the code that it leads to, so a function that is linked
//! through a gate stays as it does when it is linked by its address. A closed one keeps nothing: the code is retired (`retired.rs` of the
//! run time), and goes when the threads have left that were in compiled code then. Calls that have begun go on in it. With the last unit that
//! names it an open gate goes without a grace period: who runs code behind it holds whatever holds that unit.
//!
//! **Locks**: a gate's code. It is taken under the list of what is retired, when that asks where frames lie; nothing is taken under it.
//!
//! Cost: 48 bytes of code memory and a small record for each function that is called so, however many units call it; a call costs what one
//! through a slot does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_codegen::lazy::REMOVED;
use brolga_codegen::sig::FunctionType;
use brolga_instances::Moving;
use brolga_runtime::{ExceptionKind, RetiredCode, Thread};

use crate::cell::{CellError, NoCell, Place, Target, record_of_data};
use crate::engine::{Code, Jit};

/// A function that units call through a word, until it is closed. See the file's header.
pub struct Gate {
    ty: Arc<FunctionType>,
    /// Whether the function's code handles objects.
    needs_heap: bool,
    /// The code that it leads to; none if it is closed.
    code: Mutex<Option<Arc<Code>>>,
    place: Place,
    jit: Jit,
}

impl Target {
    /// A gate that leads here.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn gate(&self) -> Result<Arc<Gate>, NoCell> {
        let (unit, jit) = (self.unit(), self.unit().jit());
        let trampoline = jit.removed_entry()?.address;
        let place = jit.take_place()?;
        place.set(self.address());
        let (ty, needs_heap, code) =
            (self.ty().clone(), unit.needs_heap(), Mutex::new(Some(unit.code().clone())));
        let mut gate = Arc::new(Gate { ty, needs_heap, code, place, jit: jit.clone() });
        let record = Arc::as_ptr(&gate).expose_provenance();
        if let Some(gate) = Arc::get_mut(&mut gate) {
            gate.place.set_data(record, trampoline);
        }
        Ok(gate)
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Code>>> {
        // Nothing panics between the steps of a change.
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function's type.
    pub fn ty(&self) -> &FunctionType {
        &self.ty
    }

    /// Whether calls reach the function.
    pub fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// From now on every call throws `CompileError`, which names the function. Calls that have begun go on.
    pub fn close(&self) {
        let moving = self.jit.moving();
        let mut inside = self.lock();
        let Some(code) = inside.take() else { return };
        self.place.set(self.place.stub());
        drop(inside);
        let cut = Cut { code, moving, jit: self.jit.clone() };
        self.jit.runtime().retire([Box::new(cut) as Box<dyn RetiredCode>]);
    }

    pub(crate) fn jit(&self) -> &Jit {
        &self.jit
    }

    pub(crate) fn needs_heap(&self) -> bool {
        self.needs_heap
    }

    /// The address of the word.
    pub(crate) fn word(&self) -> usize {
        self.place.word()
    }

    /// The code that it leads to.
    pub(crate) fn code(&self) -> Option<Arc<Code>> {
        self.lock().clone()
    }

    /// What it kept, when nobody has it any more.
    pub(crate) fn into_code(self) -> Option<Arc<Code>> {
        self.code.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gate").field(&self.ty.symbol).finish()
    }
}

/// Code behind a gate that was closed. It holds its runtime, which therefore lives until a thread that leaves has freed the code.
struct Cut {
    code: Arc<Code>,
    #[expect(
        dead_code,
        reason = "held so that whoever is short of room waits for the code, which is freed in front of this"
    )]
    moving: Moving,
    #[expect(dead_code, reason = "held so that the runtime is there when the code goes")]
    jit: Jit,
}

impl RetiredCode for Cut {
    fn contains_any(&self, addresses: &[usize]) -> bool {
        Code::contains_any(&self.code, addresses)
    }
}

/// The routines that this file adds to those of the run time.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == REMOVED).then_some(brolga_removed as *const () as usize)
}

/// What the trampoline of closed gates calls.
extern "C" fn brolga_removed(thread: &Thread) {
    // SAFETY: the trampoline is only reached through the stub of a gate, which has left the address of its cell. The code that called the
    // stub keeps the gate, and with it the place, and is below this frame.
    let gate = unsafe { &*std::ptr::with_exposed_provenance::<Gate>(record_of_data(thread.lazy())) };
    let removed = CellError::Removed { name: gate.ty.symbol.as_str().into() };
    thread.throw_constant(ExceptionKind::CompileError, &removed.to_string());
}
