//! Refinements: roots that need no slot because other roots keep the object alive.
//!
//! ```text
//!   %2 = load(%1; region = immutable)       as long as %1 is rooted, so is %2
//!   %3 = ifelse(c, %1, %2)                  … both are
//!   %4 = φ (#1 => %1, #2 => %2)             … all of them
//! ```
//!
//! `n ⊑ {a, b}` reads "n needs no slot where a and b are rooted, or need none". Two properties are computed
//! in advance:
//!
//! **Always.** If all members of a refinement are permanent, or rooted by a permanent object, `n` never needs
//! a slot. That is the greatest solution: every refined root starts as always rooted, then those with another
//! member are removed. *Permanent* is stronger: such an object needs no write barrier when it is stored
//! either. The target of an immutable field of a permanent object is always rooted, and not known to be
//! permanent.
//!
//! **Dominance.** An operand of a φ may not be available at the φ, or may be an older instance of itself (a φ
//! of the same block, over a back edge). Such a member is replaced by its own refinement, repeatedly; the φ
//! itself is dropped, because the previous value was rooted by the same members. A member that cannot be
//! replaced makes the φ unrefined. Afterwards every member precedes, in the numbering of roots, the roots
//! that it refines, so queries terminate.
//!
//! ```text
//!   2 ┄ %2 = φ (#1 => %1, #3 => %3)         ⊑ {%1, %3} → {%1, %2} → {%1}: walking an immutable list, its head is enough
//!   3 ─ %3 = load(%2; region = immutable)   ⊑ {%2}
//! ```
//!
//! A member that strictly dominates the φ is the right instance: if it were redefined between its definition
//! and the φ, a path would reach the φ, or the operand that it replaces, bypassing its definition.
//!
//! Cost: linear except for the replacement, which is bounded by [`MAX_MEMBERS`] for each φ.

use crate::bases::{Base, Bases, Root};
use brolga_ir::analysis::DomTree;
use brolga_ir::builtin::Builtin;
use brolga_ir::op::Region;
use brolga_ir::{Func, Op, Type};
use smallvec::SmallVec;

/// A φ that would require visiting more roots keeps its slot.
const MAX_MEMBERS: usize = 32;

/// The refinements of each root.
#[derive(Debug, Default)]
pub(crate) struct Refinements {
    members: Vec<Option<SmallVec<[Root; 2]>>>,
    always: Vec<bool>,
    permanent: Vec<bool>,
}

impl Refinements {
    pub(crate) fn compute(func: &Func, bases: &Bases, tree: &DomTree) -> Refinements {
        let mut all = Refinements::default();
        for &(value, _) in &bases.roots {
            let (members, permanent) = refinement(func, bases, value);
            all.always.push(members.is_some());
            all.permanent.push(members.is_some() && permanent);
            all.members.push(members);
        }
        all.greatest();
        for members in all.members.iter_mut().flatten() {
            members.retain(|m| !all.always[*m as usize]);
            members.sort_unstable();
            members.dedup();
        }
        all.dominate(func, bases, tree);
        all
    }

    /// Removes what does not hold.
    fn greatest(&mut self) {
        let mut users: Vec<SmallVec<[Root; 2]>> = vec![SmallVec::new(); self.members.len()];
        for (root, members) in self.members.iter().enumerate() {
            for &member in members.iter().flatten() {
                users[member as usize].push(root as Root);
            }
        }
        for facts in [&mut self.always, &mut self.permanent] {
            let is_false = |&n: &usize| !facts[n];
            let mut work: Vec<usize> = (0..facts.len()).filter(is_false).collect();
            while let Some(root) = work.pop() {
                for &user in &users[root] {
                    if std::mem::replace(&mut facts[user as usize], false) {
                        work.push(user as usize);
                    }
                }
            }
        }
    }

    /// Keeps only members that are defined before the roots that they refine.
    fn dominate(&mut self, func: &Func, bases: &Bases, tree: &DomTree) {
        let is_phi = |value| func.def_inst(value).is_some_and(|i| func.op(i) == Op::Phi);
        let mut replaced = Vec::new();
        for (root, &(value, block)) in bases.roots.iter().enumerate() {
            let (Some(members), true) = (&self.members[root], is_phi(value)) else { continue };
            let mut work: SmallVec<[Root; 8]> = members.iter().copied().collect();
            let mut seen: SmallVec<[Root; 8]> = SmallVec::from_slice(&[root as Root]);
            let mut kept: SmallVec<[Root; 2]> = SmallVec::new();
            let mut whole = true;
            while let Some(member) = work.pop() {
                if seen.contains(&member) {
                    continue;
                }
                seen.push(member);
                if tree.strictly_dominates(bases.roots[member as usize].1, block) {
                    kept.push(member);
                } else if let (Some(own), true) = (&self.members[member as usize], seen.len() < MAX_MEMBERS) {
                    work.extend(own.iter().copied());
                } else {
                    whole = false;
                    break;
                }
            }
            kept.sort_unstable();
            replaced.push((root, (whole && !kept.is_empty()).then_some(kept)));
        }
        // Afterwards, because the replacement reads the original members.
        for (root, members) in replaced {
            if !self.always[root] {
                self.members[root] = members;
            }
        }
    }

    /// Whether the root never needs a slot.
    pub(crate) fn is_always_rooted(&self, root: Root) -> bool {
        self.always[root as usize]
    }

    /// Whether the root is a permanent object, or null.
    pub(crate) fn is_permanent(&self, root: Root) -> bool {
        self.permanent[root as usize]
    }

    /// The roots that together keep this one alive; each is defined before it.
    pub(crate) fn members(&self, root: Root) -> Option<&[Root]> {
        self.members[root as usize].as_deref()
    }
}

/// The members of a root's refinement without the permanent ones, and whether the value is permanent if all
/// its sources are.
fn refinement(func: &Func, bases: &Bases, value: brolga_ir::Value) -> (Option<SmallVec<[Root; 2]>>, bool) {
    let Some(inst) = func.def_inst(value) else { return (None, false) };
    let args = func.args(inst);
    let (sources, permanent) = match func.op(inst) {
        Op::Load(access)
            if matches!(access.region, Region::Immutable | Region::Constant)
                && func.ty(value) == Type::TRACKED =>
        {
            (&args[..1], false)
        }
        Op::Builtin(Builtin::Ifelse) => (&args[1..], true),
        Op::Phi => (args, true),
        _ => return (None, false),
    };
    let mut members = SmallVec::new();
    for &source in sources {
        match bases.of(source) {
            Base::Root(root) => members.push(root),
            Base::Permanent => {}
            Base::None => return (None, false),
        }
    }
    (Some(members), permanent)
}
