//! Effects of calls of a function, and the fate of its arguments.
//!
//! ```text
//! bump!(r, x) = r.x += x              captured: x no, r no     written: r     elsewhere: no
//! keep!(r)    = LAST[] = r            captured: r              written: none  elsewhere: yes
//! ```
//!
//! An argument is *captured* if a reference to it may exist after the function has returned, except in the
//! result. It is *written* if the function may change the object itself, not its referents. A call that
//! throws makes no guarantee: the exception may hold any argument.
//!
//! One bit for each of the first 64 arguments, the function object included; further arguments have any fate.
//! No cost of its own. Not done: what is reachable from arguments; which arguments are read.

use super::Effects;

/// The fate of a function's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgFlow {
    /// The arguments to which references may exist after the call.
    pub captured: u64,
    /// The arguments that the result may be or hold.
    pub returned: u64,
    /// The arguments that may be changed.
    pub written: u64,
    /// Whether its execution may be observable elsewhere: another object changed, something was printed.
    pub elsewhere: bool,
}

impl ArgFlow {
    /// No guarantee.
    pub const ANY: ArgFlow =
        ArgFlow { captured: u64::MAX, returned: u64::MAX, written: u64::MAX, elsewhere: true };
    /// No argument is captured, returned or written, and nothing else is observable.
    pub const NONE: ArgFlow = ArgFlow { captured: 0, returned: 0, written: 0, elsewhere: false };

    /// Whether argument `n` may be referenced after the call.
    pub fn captures(&self, n: usize) -> bool {
        has(self.captured, n)
    }

    /// Whether the result may be or hold argument `n`.
    pub fn returns(&self, n: usize) -> bool {
        has(self.returned, n)
    }

    /// Whether argument `n` may be changed.
    pub fn writes(&self, n: usize) -> bool {
        has(self.written, n)
    }
}

fn has(bits: u64, n: usize) -> bool {
    n >= u64::BITS as usize || bits >> n & 1 == 1
}

/// An upper bound of the effects of calling a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Summary {
    pub effects: Effects,
    /// The fate of its arguments.
    pub args: ArgFlow,
}

impl Summary {
    /// It may do anything.
    pub const ANY: Summary = Summary { effects: Effects::ANY, args: ArgFlow::ANY };

    /// The summary as numbers; different summaries have different ones.
    pub fn words(&self) -> [u64; 5] {
        let Summary { effects, args: ArgFlow { captured, returned, written, elsewhere } } = *self;
        [effects.bits(), captured, returned, written, elsewhere.into()]
    }
}
