//! Functions that are interpreted until their code is ready, so no call waits for code that is called once.
//!
//! ```text
//!   call ──► stub ──► trampoline ──► brolga_interpret ── interprets ──► results
//!                         │                  └ often, or for long: queued with the hot functions, to be compiled
//!                         └ no result: interpreted often enough, took too long, failed ──► brolga_materialize
//! ```
//!
//! The interpreter is foreign code that implements [`Interpret`](super::interpreter::Interpret). It may stop at any time
//! without a result, because its effects cannot be observed: then the call continues as the call of a function that is not
//! compiled. So it is for pure functions of numbers alone. An exception is a reason to stop: code throws it.
//!
//! **When code is requested.** Calls and their statements are counted, including loop iterations and callees. When half of
//! the calls that may be interpreted are used up, or the statements reach a given limit, code is requested, once; calls are
//! interpreted until it is ready. So a function with few and short calls is never compiled.
//!
//! **When the interpreter is dropped.** It is dropped when the cell has code, unless the code may be evicted
//! (`cell/evict.rs`): then it serves the calls until the code is made again.
//!
//! The thread is in a safe region meanwhile, as when it compiles: collections continue.
//!
//! Cost: a call by the trampoline, and the interpreter.

use brolga_codegen::lazy::INTERPRET;
use brolga_runtime::{Thread, fenced};

use crate::cell::cell_of_data;
use crate::tiering::tiers::hand_over;
use crate::tiering::upgrade::Wanted;

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
    // SAFETY: the trampoline has made as many words on its frame, aligned for the widest of them, for this use only. It has
    // written the bytes that arguments have; whatever the others are, they are bits.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    let interpret = || fenced(|| source.interpret(words)).ok().flatten();
    // The interpreter may call other stubs; the trampoline continues with this one if it has no result.
    let Ok(Some(work)) = thread.keeping_lazy(|| thread.blocking(interpret)) else { return 0 };
    if cell.was_interpreted(world, work) {
        hand_over(&cell, Wanted::Compile);
    }
    1
}
