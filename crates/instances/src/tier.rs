//! The tiers of a function: how its calls are served, and the quality of its code.

/// A tier. They ascend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// Tier 0: there is no code. A call is interpreted, or compiles the function.
    #[default]
    Interpreted,
    /// Tier 1: code that is soon there, and counts what it does if it is to be replaced.
    Baseline,
    /// Tier 2: the best code, by all passes of the level.
    Optimised,
}

impl Tier {
    /// All of them, the lowest first.
    pub const ALL: [Tier; 3] = [Tier::Interpreted, Tier::Baseline, Tier::Optimised];

    /// Its number, from 0.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number().fmt(f)
    }
}
