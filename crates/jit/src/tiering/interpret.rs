//! Functions that are interpreted until their code is there, so no call waits for code that is called once.
//!
//! ```text
//!   call ──► stub ──► trampoline ──► brolga_interpret ── interprets ──► results
//!                         │                  └ often, or for long: compiling is put into the queue of hot functions
//!                         └ it did not: has been interpreted often enough, took too long, failed ──► brolga_materialize
//! ```
//!
//! The interpreter is foreign code behind [`Interpret`]. It may stop at any time without a result, because its effects cannot be seen: then the
//! call continues as the call of a function that is not compiled. So it is for functions that compute and do nothing else, of
//! numbers alone. Exceptions are such a reason: code throws them.
//!
//! **When code is requested.** Calls are counted, and what they take (statements: so rounds of loops count, and what is called does). When half of the
//! calls are used up that may be interpreted, or they have taken as much as is said, code is requested, once; calls continue being interpreted until it is
//! there. So what is called a few times, for little, never becomes code.
//!
//! **When what interprets goes.** It is dropped when code is behind the cell, unless that may be evicted (`cell/evict.rs`): then it serves the calls
//! before the code that is made again.
//!
//! The thread is in a safe region meanwhile, as when it compiles: collections continue.
//!
//! Cost: a call by the trampoline, and the interpreter.

use std::sync::Arc;

use brolga_codegen::lazy::INTERPRET;
use brolga_runtime::{Thread, fenced};

use crate::cell::cell_of_data;
use crate::tiering::tiers::{Job, hand_over};

/// Computes what a function gives, without its code.
pub trait Interpret: Send + Sync {
    /// Replaces the arguments in the words by the results, each in the lowest bits of a word, whose other bits mean nothing, and says how many
    /// statements that took. `None` leaves the call to code. Nobody must be able to see that it ran.
    fn interpret(&self, words: &mut [u128]) -> Option<u64>;
}

/// How a function is called before it is compiled.
#[derive(Clone)]
pub struct Interpreter {
    /// The interpreter's source.
    pub source: Arc<dyn Interpret>,
    /// How many calls it serves at most; the next one compiles, if nobody has done that meanwhile. Behind half of them code is requested,
    pub calls: u32,
    /// or behind so many statements of all calls together.
    pub work: u64,
}

/// A function that is interpreted, and how much it has been.
pub(crate) struct Interpreted {
    pub(crate) interpreter: Interpreter,
    /// How many calls may be.
    left: u32,
    /// How many statements have been.
    work: u64,
    /// Whether code was asked for.
    is_asked: bool,
}

impl Interpreted {
    pub(crate) fn new(interpreter: Interpreter) -> Interpreted {
        Interpreted { left: interpreter.calls, work: 0, is_asked: false, interpreter }
    }

    /// The interpreter of one more call.
    pub(crate) fn begin(&mut self) -> Option<Arc<dyn Interpret>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.interpreter.source.clone())
    }

    /// A call has been served, which took so many statements: whether code is to be asked for now.
    pub(crate) fn served(&mut self, work: u64) -> bool {
        self.work = self.work.saturating_add(work);
        let is_enough = self.left <= self.interpreter.calls / 2 || self.work >= self.interpreter.work;
        is_enough && !std::mem::replace(&mut self.is_asked, true)
    }
}

impl std::fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreter")
            .field("calls", &self.calls)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}

/// The routine of this file.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == INTERPRET).then_some(brolga_interpret as *const () as usize)
}

/// The routine of the trampoline of interpreted functions: 1 if the results are in the words.
extern "C" fn brolga_interpret(thread: &Thread, words: *mut u128) -> u32 {
    // SAFETY: the trampoline is only reached through a stub, which has left the address of its data.
    let (cell, world) = (unsafe { cell_of_data(thread.lazy()) }, thread.world());
    let Some(source) = cell.interprets(world) else { return 0 };
    let signature = &cell.ty().signature;
    let count = signature.params.len().max(signature.results.len());
    // SAFETY: the trampoline has made as many words on its frame, aligned for the widest of them, for nobody else. It has written the
    // bytes that arguments have; whatever the others are, they are bits.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    let interpret = || fenced(|| source.interpret(words)).ok().flatten();
    // The interpreter may call other stubs; the trampoline continues with this one if it has no result.
    let Ok(Some(work)) = thread.keeping_lazy(|| thread.blocking(interpret)) else { return 0 };
    if cell.was_interpreted(world, work) {
        hand_over(&cell, Job::Compile);
    }
    1
}
