//! Functions that are interpreted until their code is there, so no call waits for code that is called once.
//!
//! ```text
//!   call ──► stub ──► trampoline ──► brolga_interpret ── interprets ──► results
//!                         │                  └ often, or for long: compiling is put into the queue of hot functions
//!                         └ it did not: has been interpreted often enough, took too long, failed ──► brolga_materialize
//! ```
//!
//! The interpreter is foreign code behind [`Interpret`](super::interpreter::Interpret). It may stop at any time without a result, because its effects cannot be seen: then the
//! call continues as the call of a function that is not compiled. So it is for functions that compute and do nothing else, of
//! numbers alone. Exceptions are such a reason: code throws them.
//!
//! **When code is requested.** Calls are counted, and what they take (statements: so iterations of loops count, and what is called does). When half of the
//! calls are used up that may be interpreted, or they have taken as much as is said, code is requested, once; calls continue being interpreted until it is
//! there. So what is called a few times, for little, never becomes code.
//!
//! **When what interprets goes.** It is dropped when code is behind the cell, unless that may be evicted (`cell/evict.rs`): then it serves the calls
//! before the code that is made again.
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
    // SAFETY: the trampoline has made as many words on its frame, aligned for the widest of them, for no other use. It has written the
    // bytes that arguments have; whatever the others are, they are bits.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    let interpret = || fenced(|| source.interpret(words)).ok().flatten();
    // The interpreter may call other stubs; the trampoline continues with this one if it has no result.
    let Ok(Some(work)) = thread.keeping_lazy(|| thread.blocking(interpret)) else { return 0 };
    if cell.was_interpreted(world, work) {
        hand_over(&cell, Wanted::Compile);
    }
    1
}
