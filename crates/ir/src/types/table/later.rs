//! Further declarations of names that already have one, and who holds them.
//!
//! A program may declare a type again, under a [homonym](crate::names). The first declaration of a name lives
//! as long as the context. Later ones are freed with their users, although they name each other, and
//! themselves, in cycles:
//!
//! ```text
//!   entry of Vector{Node} ──► entry of Node ──► declaration of Node ─ ─ numbers ─ ─► Node, Vector{Leaf}, …       no counted reference back
//!   view ──► all of these
//! ```
//!
//! A type holds its parts and its declaration, and a later declaration holds nothing: its body has numbers.
//! Instead, **a view that holds a type of a later declaration holds everything reachable from it**: the types
//! that it names, the declaration, the types in its body, and so on ([`Types::hold`]). The body of a first
//! declaration, which no view needs to hold, holds everything reachable from later declarations in it.
//!
//! The numbers of later declarations begin at [`LATER`].

use rustc_hash::{FxBuildHasher, FxHashSet};
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use super::{Above, Entry, Types};
use crate::names::HeldName;
use crate::types::declaration::{DeclBody, DeclData, DeclKind, TypeError, Worlds};
use crate::types::kind::{Decl, Type, TypeKind};
use crate::views::Weighed;

/// The number of the first later declaration.
pub(super) const LATER: u32 = 1 << 31;

/// What something else names.
#[derive(Debug)]
pub(super) enum Part {
    Type(Arc<Entry>),
    Name(HeldName),
    Later(Arc<DeclEntry>),
}

impl Part {
    pub(super) fn has_later(&self) -> bool {
        match self {
            Part::Type(entry) => entry.has_later,
            Part::Name(_) => false,
            Part::Later(_) => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct DeclEntry {
    pub(super) data: DeclData,
    /// Keeps the names in it alive.
    pub(super) names: Box<[Part]>,
    /// With the parts that it names. A later declaration does not hold the types in its body, which may name
    /// it: whoever holds the declaration holds these as well.
    pub(super) body: OnceLock<(DeclBody, Box<[Part]>)>,
    pub(super) above: OnceLock<Above>,
    /// The worlds in which the name meant this declaration, if it now means another.
    pub(super) worlds: OnceLock<Worlds>,
}

impl DeclEntry {
    /// The text of the name of a later declaration. Reading it does not make a view hold anything.
    fn text(&self) -> &str {
        match self.names.first() {
            Some(Part::Name(name)) => name.text(),
            _ => "",
        }
    }
}

impl Weighed for DeclEntry {
    fn bytes(&self) -> usize {
        let fields = match self.body.get() {
            Some((DeclBody { kind: DeclKind::Struct { fields, .. }, .. }, _)) => size_of_val(&**fields),
            _ => 0,
        };
        size_of::<DeclEntry>() + fields + 64
    }
}

/// Something reachable from a held type.
#[derive(Clone)]
enum Reached {
    Type(Type, Arc<Entry>),
    Later(Decl, Arc<DeclEntry>),
}

impl Types {
    /// The entry of a non-fixed type, which the view holds from now on. For a type of a later declaration it
    /// holds everything reachable: the types that it names, the declaration, and the types in its body.
    pub(super) fn hold(&self, ty: Type) -> Option<&Arc<Entry>> {
        if let Some(entry) = self.entries.held(ty.0) {
            return Some(entry);
        }
        let entry = self.entries.find_number(ty.0)?;
        if !entry.has_later {
            return Some(self.entries.insert(ty.0, entry));
        }
        self.hold_all(vec![Reached::Type(ty, entry)]);
        self.entries.held(ty.0)
    }

    /// A later declaration, which the view holds from now on with everything reachable from it.
    pub(super) fn hold_later(&self, decl: Decl) -> Option<&Arc<DeclEntry>> {
        if let Some(entry) = self.later.held(decl.0) {
            return Some(entry);
        }
        self.hold_all(vec![Reached::Later(decl, self.later.find_number(decl.0)?)]);
        self.later.held(decl.0)
    }

    /// Holds these and everything reachable from them. All of it is found before the view holds anything, so
    /// a thread that finds one part finds all.
    fn hold_all(&self, mut found: Vec<Reached>) {
        let (mut seen, mut declared) = (FxHashSet::default(), FxHashSet::default());
        let mut at = 0;
        while let Some(reached) = found.get(at).cloned() {
            at += 1;
            match reached {
                Reached::Type(_, entry) => {
                    let (types, later) = named_by(&entry.kind);
                    found.extend(types.into_iter().filter_map(|ty| self.reached(ty, &mut seen)));
                    found.extend(later.and_then(|decl| self.reached_later(decl, &mut declared)));
                }
                Reached::Later(_, entry) => {
                    let types = entry.body.get().map(|(body, _)| body.types()).unwrap_or_default();
                    found.extend(types.into_iter().filter_map(|ty| self.reached(ty, &mut seen)));
                }
            }
        }
        // In reverse order: a type is held after its parts.
        for reached in found.into_iter().rev() {
            match reached {
                Reached::Type(ty, entry) => drop(self.entries.insert(ty.0, entry)),
                Reached::Later(decl, entry) => drop(self.later.insert(decl.0, entry)),
            }
        }
    }

    /// The entry of a type that is neither held nor fixed, on the first visit.
    fn reached(&self, ty: Type, seen: &mut FxHashSet<Type>) -> Option<Reached> {
        let is_new = ty.index() >= self.fixed.entries.len() && self.entries.held(ty.0).is_none();
        let entry = self.entries.find_number(ty.0).filter(|_| is_new && seen.insert(ty))?;
        Some(Reached::Type(ty, entry))
    }

    fn reached_later(&self, decl: Decl, seen: &mut FxHashSet<Decl>) -> Option<Reached> {
        let is_new = decl.0 >= LATER && self.later.held(decl.0).is_none();
        let entry = self.later.find_number(decl.0).filter(|_| is_new && seen.insert(decl))?;
        Some(Reached::Later(decl, entry))
    }

    /// The first half of the declaration of a homonym.
    pub(super) fn declare_later(&self, data: DeclData) -> Result<Decl, TypeError> {
        let decl = match self.find_own(data.name) {
            Some(decl) => decl,
            None => {
                let is = |entry: &DeclEntry| entry.data.name == data.name;
                let make = || Arc::new(self.decl_entry_of(data.clone()));
                let decl = Decl(self.later.intern(FxBuildHasher.hash_one(data.name), is, make));
                // Another thread may have defined it first, and recorded what it names.
                self.hold_all(
                    self.later
                        .find_number(decl.0)
                        .map(|entry| Reached::Later(decl, entry))
                        .into_iter()
                        .collect(),
                );
                decl
            }
        };
        match *self.decl(decl).params == *data.params {
            true => Ok(decl),
            false => Err(TypeError::Redeclared { name: data.name }),
        }
    }

    /// Records that the name of a declaration means another one after the last of these worlds.
    pub fn end_declaration(&self, decl: Decl, worlds: Worlds) {
        if let Some(entry) = self.decl_entry(decl) {
            entry.worlds.get_or_init(|| worlds);
        }
    }

    /// The declaration that a name meant in exactly these worlds, if it now means another.
    pub fn find_former(&self, name: &str, worlds: Worlds) -> Option<Decl> {
        let is_meant = |decl: &Decl| self.ended(*decl) == Some(worlds);
        let first = self.names.find(name).and_then(|name| self.find_own(name)).filter(is_meant);
        first.or_else(|| {
            let mut all = self.later.all().into_iter();
            let found = all.find(|entry| entry.worlds.get() == Some(&worlds) && entry.text() == name)?;
            self.find_own(found.data.name)
        })
    }

    /// Whether each name that this view holds denotes one declared type in all views, so that a type can be
    /// found again by its name and structure.
    pub fn have_unique_names(&self) -> bool {
        !self.later.all().iter().any(|entry| self.names.holds(entry.text()))
    }

    /// The worlds in which the name of a declaration meant it, if it now means another.
    pub fn ended(&self, decl: Decl) -> Option<Worlds> {
        self.decl_entry(decl)?.worlds.get().copied()
    }

    /// Adds everything reachable from later declarations among the parts of a first one: it is never freed,
    /// so neither are these.
    pub(super) fn add_all_parts(&self, parts: &mut Vec<Part>) {
        let (mut seen, mut declared, mut at) = (FxHashSet::default(), FxHashSet::default(), 0);
        while let Some(part) = parts.get(at) {
            at += 1;
            let types = match part {
                Part::Type(entry) if entry.has_later => {
                    let (types, decl) = named_by(&entry.kind);
                    let later = decl.filter(|&decl| decl.0 >= LATER && declared.insert(decl));
                    parts.extend(later.and_then(|decl| Some(Part::Later(self.hold_later(decl)?.clone()))));
                    types
                }
                Part::Later(entry) => entry.body.get().map(|(body, _)| body.types()).unwrap_or_default(),
                Part::Type(_) | Part::Name(_) => continue,
            };
            let own = |ty: &Type| ty.index() >= self.fixed.entries.len();
            let new: Vec<Type> = types.into_iter().filter(|&ty| own(&ty) && seen.insert(ty)).collect();
            parts.extend(new.into_iter().filter_map(|ty| Some(Part::Type(self.hold(ty)?.clone()))));
        }
    }
}

/// The types that a kind names, and the declaration.
pub(super) fn named_by(kind: &TypeKind) -> (Vec<Type>, Option<Decl>) {
    let (mut decl, mut types) = (None, Vec::new());
    match kind {
        TypeKind::Nominal { decl: of, params } => (decl, types) = (Some(*of), params.to_vec()),
        TypeKind::Generic(of) => decl = Some(*of),
        TypeKind::Union(many) | TypeKind::Values(many) => types = many.to_vec(),
        TypeKind::Tuple { elems, vararg } => types = elems.iter().copied().chain(*vararg).collect(),
        TypeKind::NamedTuple { tuple: ty, .. } | TypeKind::TypeOf(ty) | TypeKind::Bits { ty, .. } => {
            types.push(*ty);
        }
        TypeKind::NTuple { count, elem } => types = vec![*count, *elem],
        TypeKind::UnionAll { bounds, body } => {
            types = bounds.iter().flat_map(|&(lower, upper)| [lower, upper]).chain([*body]).collect();
        }
        TypeKind::Function(_)
        | TypeKind::Sym(_)
        | TypeKind::Bottom
        | TypeKind::Any
        | TypeKind::Param(_)
        | TypeKind::Int(_)
        | TypeKind::Low(_)
        | TypeKind::Token => {}
    }
    (types, decl)
}
