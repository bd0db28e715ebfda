//! When functions are promoted: the requests of a definition, and the limits that follow.

/// The default number of loop iterations that count as much as one call.
const ITERATIONS: u32 = 10;

/// The policy of tiers of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Calls after which a function is optimised, if it is compiled in two tiers.
    pub(crate) calls: Option<i32>,
    /// Iterations after which a loop is left for better code; ten times the calls by default.
    pub(crate) iterations: Option<u32>,
    /// Whether the first tier counts what its branches and dynamic calls do.
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
    /// The limits of functions in two tiers; none for those in one.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let calls = self.calls?;
        let iterations = self.iterations.unwrap_or_else(|| calls.unsigned_abs().saturating_mul(ITERATIONS));
        Some(Limits { calls, iterations })
    }
}

/// After how much the second tier of a function is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Calls of the function.
    pub(crate) calls: i32,
    /// Iterations of a loop.
    pub(crate) iterations: u32,
}
