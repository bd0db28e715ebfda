//! Hints about branches and calls, which change the speed of code and never its meaning.
//!
//! ```text
//! goto #3 if not %1 weights 1:99                the condition held once in a hundred times
//! %2 = invoke f(x::Int64)::Int64 noinline       no body replaces this call
//! function f(x::Int64)::Int64 inline            the body replaces calls at any cost
//! ```
//!
//! | hint | says | text, binary |
//! |---|---|---|
//! | [`BranchWeights`] of a branch | how often its condition held, and how often not | kept |
//! | [`Inlining`] of a call or a function | whether bodies replace calls | kept |
//! | [`Site`] of a branch or dynamic call | the cell of a profile in which a first tier counts it | left out |
//! | [`Seen`] at a dynamic call | the types of its operands, and their counts | left out |
//!
//! Hints belong to an instruction. A copy of the instruction copies them ([`Func::copy_hint`](crate::Func::copy_hint)); inverting a branch
//! swaps its targets and its hint in one step ([`Func::swap_branch`](crate::Func::swap_branch)); an instruction that becomes another
//! operation loses them. A dynamic call that becomes an `invoke`, or several, passes its inlining hint on; `lower` drops it, because calls of low
//! IR are not inlined.

use crate::types::Type;

/// How often the condition of a branch is true and false, as one is to the other. Not both are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BranchWeights {
    yes: u32,
    no: u32,
}

impl BranchWeights {
    /// An edge that is taken fewer times than one in as many is *rare*: then it pays to lay it out away from the rest.
    pub const RARE: u32 = 64;

    /// `None` if both are zero, which says nothing.
    pub fn new(yes: u32, no: u32) -> Option<BranchWeights> {
        (yes > 0 || no > 0).then_some(BranchWeights { yes, no })
    }

    /// The same from counts of any size.
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

    /// The branch weights of the opposite condition.
    pub fn swapped(self) -> BranchWeights {
        BranchWeights { yes: self.no, no: self.yes }
    }

    /// Whether the way for this truth is rare.
    pub fn is_rare(self, truth: bool) -> bool {
        let (way, other) = if truth { (self.yes, self.no) } else { (self.no, self.yes) };
        u64::from(way) * u64::from(BranchWeights::RARE) <= u64::from(other)
    }

    /// Whether one way is at least `factor` times as frequent as the other.
    pub fn is_biased(self, factor: u32) -> bool {
        let (least, most) = (self.yes.min(self.no), self.yes.max(self.no));
        u64::from(least) * u64::from(factor) <= u64::from(most)
    }
}

/// Whether a body takes the place of a call. The hint of a call counts more than that of its callee.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inlining {
    /// It does, whatever it costs. Bodies that cannot be put there, recursion, and what would let a function grow without bounds stay calls.
    Always,
    /// It does not.
    Never,
}

impl Inlining {
    /// How the text says it.
    pub fn word(self) -> &'static str {
        match self {
            Inlining::Always => "inline",
            Inlining::Never => "noinline",
        }
    }

    /// The hint of a word of the text.
    pub fn from_word(word: &str) -> Option<Inlining> {
        [Inlining::Always, Inlining::Never].into_iter().find(|inlining| inlining.word() == word)
    }
}

/// The cell of a profile in which something is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// Its number.
    pub cell: u32,
    /// Whether the branch has been turned round since its site was given: the cell counts by the condition that it had then.
    pub swapped: bool,
}

/// Types with which a dynamic call was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The types of its operands, the callee's first.
    pub types: Box<[Type]>,
    /// How often.
    pub count: u32,
}

/// The hints of one instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hint {
    /// Of a branch.
    pub weights: Option<BranchWeights>,
    /// Of an `invoke` or a dynamic call.
    pub inlining: Option<Inlining>,
    /// Of a branch or dynamic call.
    pub site: Option<Site>,
    /// At a dynamic call, the most frequent first.
    pub seen: Vec<Seen>,
}

impl Hint {
    /// The hint of a branch that is turned round.
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
