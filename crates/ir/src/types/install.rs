//! Builds the table of builtin declarations from the rows of `builtin`.

use super::builtin::Body::{Abstract, Immutable, Mutable, Opaque, Primitive};
use super::builtin::{FIXED, LATER_FIXED, TABLE};
use super::declaration::{DeclKind, FieldDecl};
use super::kind::{Decl, LowType, Type, TypeKind};
use super::table::Types;
use std::sync::Arc;

impl Types {
    /// The builtin types in their own table.
    pub(crate) fn builtin() -> Self {
        let types = Types::with_fixed(Arc::default(), Arc::default(), &Arc::default());
        install(&types);
        types.settle();
        types
    }
}

/// Fills an empty table in two passes: first every name, so that supertypes may come later, then every body.
pub(super) fn install(types: &Types) {
    types.intern_fixed(TypeKind::Bottom);
    types.intern_fixed(TypeKind::Any);
    for low in LowType::ALL {
        types.intern_fixed(TypeKind::Low(low));
    }
    for (index, row) in TABLE.iter().enumerate() {
        types.install_name(Decl(index as u32), row.name, row.module, row.params);
    }
    let later = LATER_FIXED.map(|name| TABLE.iter().position(|row| row.name == name).unwrap_or(0));
    let fixed = (0..FIXED).chain(later);
    for index in fixed {
        types.intern_fixed(TypeKind::Nominal { decl: Decl(index as u32), params: Box::new([]) });
    }
    types.intern_fixed(TypeKind::Token);
    for (index, row) in TABLE.iter().enumerate() {
        let find = |text: &str| resolve(types, row.params, text);
        let fields = |list: &[(&str, &str)]| {
            list.iter().map(|&(name, ty)| FieldDecl::new(types.names().intern(name), find(ty))).collect()
        };
        let kind = match row.body {
            Abstract => DeclKind::Abstract,
            Primitive(bits, repr) => DeclKind::Primitive { bits, repr },
            Immutable(list) => DeclKind::Struct { mutable: false, fields: fields(list) },
            Mutable(list) => DeclKind::Struct { mutable: true, fields: fields(list) },
            Opaque => DeclKind::Opaque,
        };
        types.install_body(Decl(index as u32), find(row.supertype), kind);
    }
}

/// A type expression of the table: a parameter, a name, or a name with parameters in braces.
fn resolve(types: &Types, params: &[&str], text: &str) -> Type {
    if text == "Any" {
        return Type::ANY;
    }
    if let Some(index) = params.iter().position(|&p| p == text) {
        return types.intern_raw(TypeKind::Param(index as u32));
    }
    if let Ok(number) = text.parse() {
        return types.intern_raw(TypeKind::Int(number));
    }
    let (name, args) = match text.split_once('{') {
        Some((name, rest)) => (name, rest.trim_end_matches('}')),
        None => (text, ""),
    };
    let index = TABLE.iter().position(|r| r.name == name).unwrap_or(0);
    let decl = Decl(index as u32);
    let args: Box<[Type]> =
        args.split(", ").filter(|a| !a.is_empty()).map(|a| resolve(types, params, a)).collect();
    if args.len() == TABLE[index].params.len() {
        types.intern_raw(TypeKind::Nominal { decl, params: args })
    } else {
        types.intern_raw(TypeKind::Generic(decl))
    }
}
