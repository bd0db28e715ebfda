//! Whether types of two programs, whose contexts do not share declarations, are the same.
//!
//! ```text
//!   P of one program ── named and laid out as ──► P of the other     recursively for the types of fields, parameters and members
//! ```
//!
//! Any two structs `P` have the same name. Compiled code relies on more: sizes, offsets, which fields are inline and
//! which are objects, recursively. So the types are walked in pairs, each pair once.
//!
//! Types of one context are the same when they are one entry of its table. Supertypes are not compared: they determine which methods
//! accept a value, and not how it is passed.
//!
//! Cost: for types of one context a comparison; otherwise one step for each type that is reachable from them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use brolga_ir::types::Types;
use brolga_ir::{Context, Type, TypeKind};

/// A type in its context.
#[derive(Clone)]
pub struct TypeIn {
    /// The context.
    pub cx: Arc<Context>,
    pub ty: Type,
}

impl PartialEq for TypeIn {
    fn eq(&self, other: &TypeIn) -> bool {
        match self.cx.is_same(&other.cx) {
            true => self.ty == other.ty,
            false => is_same(&self.cx, self.ty, &other.cx, other.ty),
        }
    }
}

impl Eq for TypeIn {}

impl fmt::Debug for TypeIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeIn({})", self.cx.types.display(self.ty))
    }
}

fn is_same(a: &Context, ty_a: Type, b: &Context, ty_b: Type) -> bool {
    let mut seen = BTreeSet::from([(ty_a, ty_b)]);
    let mut pending = vec![(ty_a, ty_b)];
    while let Some((ty_a, ty_b)) = pending.pop() {
        let texts = (a.types.display(ty_a).to_string(), b.types.display(ty_b).to_string());
        let (parts_a, parts_b) = (parts(&a.types, ty_a), parts(&b.types, ty_b));
        if texts.0 != texts.1 || parts_a.len() != parts_b.len() || !lies_alike(a, ty_a, b, ty_b) {
            return false;
        }
        pending.extend(parts_a.into_iter().zip(parts_b).filter(|&pair| seen.insert(pair)));
    }
    true
}

/// Whether values of the types are passed and stored alike, not counting the types of their fields.
fn lies_alike(a: &Context, ty_a: Type, b: &Context, ty_b: Type) -> bool {
    let (types_a, types_b) = (&a.types, &b.types);
    if (types_a.repr(ty_a), types_a.is_mutable(ty_a)) != (types_b.repr(ty_b), types_b.is_mutable(ty_b)) {
        return false;
    }
    match (types_a.layout(ty_a), types_b.layout(ty_b)) {
        (Ok(layout_a), Ok(layout_b)) => {
            let places = |layout: &brolga_ir::types::Layout| {
                layout.fields.iter().map(|field| (field.offset, field.size)).collect::<Vec<_>>()
            };
            (layout_a.size, layout_a.align, &layout_a.pointers)
                == (layout_b.size, layout_b.align, &layout_b.pointers)
                && places(layout_a) == places(layout_b)
                && names(a, ty_a) == names(b, ty_b)
        }
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// The names of the fields, and which are atomic.
fn names(cx: &Context, ty: Type) -> Vec<(&str, bool)> {
    let fields = cx.types.fields(ty).unwrap_or_default();
    fields.iter().map(|field| (cx.names.text(field.name), field.is_atomic)).collect()
}

/// The parts of a type.
fn parts(types: &Types, ty: Type) -> Vec<Type> {
    let mut parts: Vec<Type> = match types.kind(ty) {
        TypeKind::Nominal { params, .. } => params.to_vec(),
        TypeKind::Tuple { elems, vararg } => elems.iter().chain(vararg).copied().collect(),
        TypeKind::NamedTuple { tuple, .. } => vec![*tuple],
        TypeKind::Union(members) => members.to_vec(),
        TypeKind::TypeOf(of) => vec![*of],
        _ => Vec::new(),
    };
    if let Ok(layout) = types.layout(ty) {
        parts.extend(layout.fields.iter().map(|field| field.ty));
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brolga_ir::Context;
    use brolga_ir::diag::SourceFile;
    use brolga_ir::text::read;

    use super::TypeIn;

    /// The parameter of the only function of a program.
    fn param(source: &str) -> TypeIn {
        let text = format!("{source}\nfunction f(p::P)::Nothing\n1 ─      return nothing\nend\n");
        let (unit, findings) = read(&SourceFile::new("p", text).expect("short"), &Context::new());
        assert!(!findings.has_errors(), "{source}");
        let module = unit.module;
        let (id, _) = module.funcs().next().expect("a function");
        TypeIn { cx: Arc::clone(&module.cx), ty: module[id].sig.params[1].ty }
    }

    #[test]
    fn types_of_two_programs_are_the_same_if_all_that_they_hold_is() {
        let p = "struct P\n    x::Int64\n    y::Q\nend";
        let with = |q: &str| param(&format!("{q}\n{p}"));
        let q = "struct Q\n    z::Float64\nend";
        assert_eq!(with(q), with(q));
        let others = [
            "struct Q\n    z::Int64\nend",
            "struct Q\n    w::Float64\nend",
            "struct Q\n    z::Float64\n    w::Int64\nend",
            "mutable struct Q\n    z::Float64\nend",
        ];
        for other in others {
            assert_ne!(with(q), with(other), "{other}");
        }
        let list =
            |head: &str| param(&format!("mutable struct P\n    next::Union{{Nothing, P}}\n    {head}\nend"));
        assert_eq!(list("x::Int64"), list("x::Int64"));
        assert_ne!(list("x::Int64"), list("x::Float64"));
        let several =
            |ty: &str| param(&format!("struct Q\n    z::{ty}\nend\nstruct P\n    x::Vector{{Q}}\nend"));
        assert_eq!(several("Int64"), several("Int64"));
        assert_ne!(several("Int64"), several("Float64"));
    }
}
