//! The tiers of a function: how its calls are served, and the quality of its code.

/// A tier. Tiers are ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// Tier 0: there is no code. A call is interpreted, or triggers compilation.
    #[default]
    Interpreted,
    /// Tier 1: code that is compiled quickly, and counts its calls if it is to be replaced.
    Baseline,
    /// Tier 2: the best code, from all passes of the level.
    Optimised,
}

impl Tier {
    /// All tiers, the lowest first.
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
