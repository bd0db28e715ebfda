//! The interpreter tier: calls of a function before it has code.

use std::sync::Arc;

/// Computes the results of a function without its code.
pub trait Interpret: Send + Sync {
    /// Replaces the arguments in the words by the results, each in the lowest bits of a word, whose other bits are ignored,
    /// and returns the number of statements. `None` leaves the call to code. The run must not be observable.
    fn interpret(&self, words: &mut [u128]) -> Option<u64>;
}

/// How a function is called before it is compiled.
#[derive(Clone)]
pub struct Interpreter {
    /// The interpreter's source.
    pub source: Arc<dyn Interpret>,
    /// The most calls that it serves; the next one compiles, unless it was compiled meanwhile. After half of them code is
    /// requested,
    pub calls: u32,
    /// or after this many statements of all calls together.
    pub work: u64,
}

/// A function that is interpreted, and the counts.
pub(crate) struct Interpreted {
    pub(crate) interpreter: Interpreter,
    /// The remaining calls.
    left: u32,
    /// The statements so far.
    work: u64,
    /// Whether code was requested.
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

    /// Records a served call of `work` statements; whether code is to be requested now.
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
