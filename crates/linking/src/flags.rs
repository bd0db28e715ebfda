//! Properties of a symbol, at its definition and in a search.
//!
//! | flag | meaning |
//! |---|---|
//! | exported | found by searches that see only exported symbols |
//! | weak | is replaced by another definition until its first lookup; strong from then on |
//! | absolute | an address without content |
//! | side effects only | no address: it is waited for but never delivered. Initialisers are such symbols |

use std::ops::{BitOr, BitOrAssign};

use crate::ids::{DylibId, Symbol};

/// Flags of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SymbolFlags(u8);

impl SymbolFlags {
    /// Hidden, strong data.
    pub const NONE: SymbolFlags = SymbolFlags(0);
    /// Seen by searches for exported symbols.
    pub const EXPORTED: SymbolFlags = SymbolFlags(1);
    /// Another definition replaces it until its first lookup.
    pub const WEAK: SymbolFlags = SymbolFlags(2);
    /// An address without content.
    pub const ABSOLUTE: SymbolFlags = SymbolFlags(4);
    /// Has no address; is waited for but never delivered.
    pub const SIDE_EFFECTS_ONLY: SymbolFlags = SymbolFlags(8);

    /// The flags of both.
    #[must_use]
    pub const fn or(self, other: SymbolFlags) -> SymbolFlags {
        SymbolFlags(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn has(self, other: SymbolFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags without `other`'s.
    #[must_use]
    pub const fn without(self, other: SymbolFlags) -> SymbolFlags {
        SymbolFlags(self.0 & !other.0)
    }
}

impl BitOr for SymbolFlags {
    type Output = SymbolFlags;

    fn bitor(self, other: SymbolFlags) -> SymbolFlags {
        self.or(other)
    }
}

impl BitOrAssign for SymbolFlags {
    fn bitor_assign(&mut self, other: SymbolFlags) {
        self.0 |= other.0;
    }
}

/// Which symbols of a dylib a search sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sees {
    Exported,
    All,
}

/// One step of a search order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The dylib to search.
    pub dylib: DylibId,
    /// The visible symbols there.
    pub sees: Sees,
}

/// The consequence of a missing symbol for the lookup that requests it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The whole lookup fails.
    Required,
    /// It is absent from the result.
    Weak,
}

/// One requested symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    pub symbol: Symbol,
    /// The consequence if it is missing.
    pub need: Need,
    /// The only dylib to search, whether or not the lookup's order contains it and the symbol is exported
    /// there; `None` for the whole order.
    pub at: Option<DylibId>,
}

/// The state that a symbol must reach before the lookup is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// It is in the table: nothing is materialized, flags are delivered.
    Known,
    /// It has an address; its memory may not be final. Linkers use this, so that units may refer to each
    /// other.
    Resolved,
    /// It may be called or read, as may everything that it needs.
    Ready,
}

/// The origin of a lookup; a hint for definition generators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupKind {
    /// A linker, for symbols that code refers to.
    Static,
    /// A program that requests a name at run time.
    Dynamic,
}

/// How urgent work is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// A thread waits for it.
    Blocking,
    /// Needed soon.
    Normal,
    /// Speculative; done when there is nothing else.
    Idle,
}

/// The wants of `wants` with duplicates merged, in order of first appearance; a symbol required once is
/// required.
pub(crate) fn merged(wants: &[Want]) -> Vec<Want> {
    let mut place = rustc_hash::FxHashMap::default();
    let mut merged: Vec<Want> = Vec::with_capacity(wants.len());
    for want in wants {
        let index = *place.entry((want.symbol, want.at)).or_insert(merged.len());
        match merged.get_mut(index) {
            Some(known) if want.need == Need::Required => known.need = Need::Required,
            Some(_) => {}
            None => merged.push(*want),
        }
    }
    merged
}
