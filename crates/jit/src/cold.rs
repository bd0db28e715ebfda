//! Functions that are interpreted until their code is there, so that nobody waits for code that is called once.
//!
//! ```text
//!   call ──► stub ──► trampoline ──► brolga_interpret ── interprets ──► results
//!                         │                  └ the first time: compiling is put into the queue of hot functions
//!                         └ it did not: has been interpreted often enough, took too long, failed ──► brolga_materialize
//! ```
//!
//! What interprets is foreign code behind [`Interpret`]. It may give up at any time, because what it does cannot be seen: then the
//! call goes on as the call of a function that is not compiled. So it is for functions that compute and do nothing else, of
//! numbers alone. Exceptions are such a reason to give up: code throws them.
//!
//! The thread is in a safe region meanwhile, as when it compiles: collections go on.
//!
//! Cost: a call by the trampoline, and the interpreter.

use std::sync::Arc;

use brolga_codegen::lazy::INTERPRET;
use brolga_runtime::{Thread, fenced};

use crate::lazy::slot_of_cell;
use crate::tiers::Job;

/// Computes what a function gives, without its code.
pub trait Interpret: Send + Sync {
    /// Replaces the arguments in the words by the results, each in the lowest bits of a word, whose other bits mean nothing. `false` leaves the call to
    /// code. Nobody must be able to see that it ran.
    fn interpret(&self, words: &mut [u128]) -> bool;
}

/// How a function is called before it is compiled.
#[derive(Clone)]
pub struct Cold {
    /// What computes.
    pub source: Arc<dyn Interpret>,
    /// How many calls it serves at most; the next one compiles, if nobody has done that meanwhile.
    pub calls: u32,
}

impl std::fmt::Debug for Cold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cold").field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// The routine of this file.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == INTERPRET).then_some(brolga_interpret as *const () as usize)
}

/// What the trampoline of cold functions calls: 1 if the results are in the words.
extern "C" fn brolga_interpret(thread: &Thread, words: *mut u128) -> u32 {
    // SAFETY: the trampoline is only reached through a stub, which has left the address of its cell.
    let slot = unsafe { slot_of_cell(thread.lazy()) };
    let Some((source, is_first)) = slot.interprets() else { return 0 };
    if is_first {
        slot.jit().hot().push(slot.downgrade(), Job::Compile);
    }
    let signature = &slot.ty().signature;
    let count = signature.params.len().max(signature.results.len());
    // SAFETY: the trampoline has made as many words on its frame, aligned for the widest of them, for nobody else. It has written the
    // bytes that arguments have; whatever the others are, they are bits.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    let interpret = || fenced(|| source.interpret(words)).unwrap_or(false);
    // What interprets may call other stubs; the trampoline goes on with this one if it gives up.
    thread.keeping_lazy(|| thread.blocking(interpret)).unwrap_or(false).into()
}
