//! Subtype tests between declarations, in time logarithmic in the chain of supertypes.
//!
//! ```text
//!   depth   1   2   3   4   5   6   7            each has its parent, and a jump further up
//!           A ← B ← C ← D ← E ← F ← G            C ─► A    F ─► D    G ─► A
//!           ▲       │           │   │
//!           └───────┴───────────│───┘            jumps of equal length join to one of double length
//! ```
//!
//! The jumps form a skew-binary list (Myers, "An applicative random-access stack", 1983): from any
//! declaration to the ancestor at a given depth in a logarithmic number of steps, for two words each. They
//! are made on demand, parents first.
//!
//! `Any` has no ancestors: its direct subtypes have depth 1.

use super::kind::{Decl, Type, TypeKind};
use super::table::{Above, Types};

impl Types {
    /// The position of a declaration; `None` while it, or an ancestor, is not defined.
    fn above(&self, decl: Decl) -> Option<Above> {
        let known = |decl: Decl| self.above_cell(decl)?.get().copied();
        if let Some(above) = known(decl) {
            return Some(above);
        }
        // The declarations that have no position yet, this one first.
        let mut open = vec![decl];
        let mut parent = self.parent(decl)?;
        while let Some(at) = parent.filter(|&at| known(at).is_none()) {
            open.push(at);
            parent = self.parent(at)?;
        }
        for at in open.into_iter().rev() {
            let made = match parent.and_then(|parent| Some((parent, known(parent)?))) {
                None => Above { depth: 1, parent: None, jump: None },
                Some((parent, up)) => {
                    let depth = |decl: Option<Decl>| decl.and_then(known).map_or(0, |above| above.depth);
                    let far = up.jump.and_then(known).and_then(|above| above.jump);
                    let is_pair = up.depth - depth(up.jump) == depth(up.jump) - depth(far);
                    let jump = if is_pair { far } else { Some(parent) };
                    Above { depth: up.depth + 1, parent: Some(parent), jump }
                }
            };
            let _ = self.above_cell(at)?.set(made);
            parent = Some(at);
        }
        known(decl)
    }

    /// The parent declaration, if there is one below `Any`; the outer `None` while it is not known.
    fn parent(&self, decl: Decl) -> Option<Option<Decl>> {
        let supertype = self.body(decl)?.supertype;
        match self.kind(supertype) {
            TypeKind::Nominal { decl, .. } if supertype != Type::ANY => Some(Some(*decl)),
            _ => Some(None),
        }
    }

    /// Whether a declaration equals another one or is below it; `None` while either is not defined.
    pub(super) fn is_declared_below(&self, decl: Decl, wanted: Decl) -> Option<bool> {
        if decl == wanted {
            return Some(true);
        }
        let target = self.above(wanted)?.depth;
        let mut at = decl;
        let mut above = self.above(at)?;
        while above.depth > target {
            let far = above.jump.and_then(|jump| Some((jump, self.above(jump)?)));
            let far = far.filter(|(_, above)| above.depth >= target);
            let near = || above.parent.and_then(|parent| Some((parent, self.above(parent)?)));
            match far.or_else(near) {
                Some(next) => (at, above) = next,
                None => return Some(false),
            }
        }
        Some(at == wanted)
    }
}

#[cfg(test)]
mod tests {
    use crate::Context;
    use crate::types::{Decl, DeclKind, Type};

    /// Types, each below an earlier one or below `Any`.
    fn tree(parents: &[Option<usize>]) -> (std::sync::Arc<Context>, Vec<Decl>) {
        let cx = Context::new();
        let mut decls: Vec<Decl> = Vec::new();
        for (n, parent) in parents.iter().enumerate() {
            let decl = cx.types.declare(cx.names.intern(&format!("T{n}")), &[]).unwrap();
            let above = parent.map_or(Type::ANY, |at| cx.types.nominal(decls[at], &[]).unwrap());
            cx.types.define(decl, above, DeclKind::Abstract).unwrap();
            decls.push(decl);
        }
        (cx, decls)
    }

    fn is_below(parents: &[Option<usize>], mut at: usize, wanted: usize) -> bool {
        while at != wanted {
            let Some(parent) = parents[at] else { return false };
            at = parent;
        }
        true
    }

    #[test]
    fn jumps_and_single_steps_agree() {
        let chain: Vec<_> = (0..70usize).map(|n| n.checked_sub(1)).collect();
        let bush: Vec<_> = (0..90usize).map(|n| if n % 17 == 0 { None } else { Some(n * 7 / 11) }).collect();
        for parents in [chain, bush] {
            let (cx, decls) = tree(&parents);
            for (a, &below) in decls.iter().enumerate().rev() {
                for (b, &above) in decls.iter().enumerate() {
                    let found = cx.types.is_declared_below(below, above);
                    assert_eq!(found, Some(is_below(&parents, a, b)), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn an_undefined_declaration_has_no_place_yet() {
        let (cx, decls) = tree(&[None, Some(0)]);
        let open = cx.types.declare(cx.names.intern("Open"), &[]).unwrap();
        assert_eq!(cx.types.is_declared_below(open, decls[0]), None);
        let above = cx.types.nominal(decls[1], &[]).unwrap();
        cx.types.define(open, above, DeclKind::Abstract).unwrap();
        assert_eq!(cx.types.is_declared_below(open, decls[0]), Some(true));
        assert_eq!(cx.types.is_declared_below(decls[0], open), Some(false));
    }
}
