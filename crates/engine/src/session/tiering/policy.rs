//! When functions are promoted: the requests of a definition, and the resulting limits.

/// The default number of loop iterations that count as one call.
const ITERATIONS: u32 = 10;

/// The policy of tiers of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Calls after which a function is optimised, if it is compiled in two tiers.
    pub(crate) calls: Option<i32>,
    /// Iterations after which a loop continues in better code; ten times the calls by default.
    pub(crate) iterations: Option<u32>,
    /// Whether the first tier counts the outcomes of its branches and dynamic calls.
    pub(crate) is_profiled: bool,
    /// Calls that are interpreted while there is no code.
    pub(crate) interpreted: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { calls: None, iterations: None, is_profiled: true, interpreted: 0 }
    }
}

impl Policy {
    /// The limits of functions in two tiers; `None` for functions in one.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let calls = self.calls?;
        let iterations = self.iterations.unwrap_or_else(|| calls.unsigned_abs().saturating_mul(ITERATIONS));
        Some(Limits { calls, iterations })
    }
}

/// The limits after which the second tier of a function is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Calls of the function.
    pub(crate) calls: i32,
    /// Iterations of a loop.
    pub(crate) iterations: u32,
}
