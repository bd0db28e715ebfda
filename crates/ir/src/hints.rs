//! Hints about branches and calls, which change the speed of code and never its meaning.
//!
//! ```text
//! goto #3 if not %1 weights 1:99                the condition held once in a hundred times
//! %2 = invoke f(x::Int64)::Int64 noinline       this call is not inlined
//! function f(x::Int64)::Int64 inline            its calls are inlined at any cost
//! ```
//!
//! | hint | says | text, binary |
//! |---|---|---|
//! | [`BranchWeights`] of a branch | how often its condition was true and false | kept |
//! | [`Inlining`] of a call or a function | whether calls are inlined | kept |
//! | [`Site`] of a branch or dynamic call | the profile cell in which the first tier counts it | left out |
//! | [`Seen`] at a dynamic call | the types of its operands, and their counts | left out |
//!
//! Hints belong to an instruction. A copy of the instruction copies them
//! ([`Func::copy_hint`](crate::Func::copy_hint)); inverting a branch swaps its targets and its hint in one
//! step ([`Func::swap_branch`](crate::Func::swap_branch)); an instruction that becomes another operation
//! loses them. A dynamic call that becomes one or several `invoke`s passes its inlining hint on; `lower`
//! drops it, because calls of low IR are not inlined.

use crate::types::Type;

/// The ratio of true to false outcomes of a condition. Not both are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BranchWeights {
    yes: u32,
    no: u32,
}

impl BranchWeights {
    /// An edge taken less often than once in `RARE` times is *rare*: laying it out away from the rest pays
    /// off.
    pub const RARE: u32 = 64;

    /// `None` if both are zero.
    pub fn new(yes: u32, no: u32) -> Option<BranchWeights> {
        (yes > 0 || no > 0).then_some(BranchWeights { yes, no })
    }

    /// Weights from counts of any size.
    pub fn of_counts(yes: u64, no: u64) -> Option<BranchWeights> {
        let shift = (u64::BITS - (yes | no).leading_zeros()).saturating_sub(u32::BITS);
        // Both fit after the shift.
        BranchWeights::new((yes >> shift) as u32, (no >> shift) as u32)
    }

    /// How often the condition is true.
    pub fn yes(self) -> u32 {
        self.yes
    }

    /// How often the condition is false.
    pub fn no(self) -> u32 {
        self.no
    }

    /// The weights of the opposite condition.
    pub fn swapped(self) -> BranchWeights {
        BranchWeights { yes: self.no, no: self.yes }
    }

    /// Whether the edge for this outcome is rare.
    pub fn is_rare(self, truth: bool) -> bool {
        let (way, other) = if truth { (self.yes, self.no) } else { (self.no, self.yes) };
        u64::from(way) * u64::from(BranchWeights::RARE) <= u64::from(other)
    }

    /// Whether one edge is at least `factor` times as frequent as the other.
    pub fn is_biased(self, factor: u32) -> bool {
        let (least, most) = (self.yes.min(self.no), self.yes.max(self.no));
        u64::from(least) * u64::from(factor) <= u64::from(most)
    }
}

/// Whether a call is inlined. The hint of a call takes precedence over its callee's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inlining {
    /// At any cost. Calls stay if the body cannot be inlined, if they are recursive, or if the function would
    /// grow without bound.
    Always,
    Never,
}

impl Inlining {
    /// The keyword in the text.
    pub fn word(self) -> &'static str {
        match self {
            Inlining::Always => "inline",
            Inlining::Never => "noinline",
        }
    }

    /// The hint with this keyword.
    pub fn from_word(word: &str) -> Option<Inlining> {
        [Inlining::Always, Inlining::Never].into_iter().find(|inlining| inlining.word() == word)
    }
}

/// A cell of a profile, which counts one branch or call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    pub cell: u32,
    /// Whether the branch was inverted after its site was assigned: the cell counts the original condition.
    pub swapped: bool,
}

/// Operand types observed at a dynamic call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The types of its operands, the callee's first.
    pub types: Box<[Type]>,
    /// How often they were observed.
    pub count: u32,
}

/// The hints of one instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hint {
    /// For a branch.
    pub weights: Option<BranchWeights>,
    /// For an `invoke` or a dynamic call.
    pub inlining: Option<Inlining>,
    /// For a branch or dynamic call.
    pub site: Option<Site>,
    /// For a dynamic call, the most frequent first.
    pub seen: Vec<Seen>,
}

impl Hint {
    /// The hint of the inverted branch.
    pub fn swapped(self) -> Hint {
        Hint {
            weights: self.weights.map(BranchWeights::swapped),
            site: self.site.map(|site| Site { swapped: !site.swapped, ..site }),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_large_counts_keep_their_ratio() {
        let weights = BranchWeights::of_counts(3 << 40, 1 << 40).unwrap();
        assert_eq!(weights.yes() / weights.no(), 3);
        assert_eq!(BranchWeights::of_counts(0, 0), None);
        assert_eq!(BranchWeights::of_counts(7, 2), BranchWeights::new(7, 2));
    }

    #[test]
    fn rare_is_one_in_sixty_four() {
        let weights = BranchWeights::new(1, 64).unwrap();
        assert!(weights.is_rare(true) && !weights.is_rare(false));
        assert!(!BranchWeights::new(1, 63).unwrap().is_rare(true));
        assert!(weights.swapped().is_rare(false));
        assert!(weights.is_biased(64) && !weights.is_biased(65));
    }
}
