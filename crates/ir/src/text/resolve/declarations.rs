//! Declarations of types.
//!
//! ```text
//! struct Box; w::Int64; end                         a type of the program besides `Core.Box`
//! struct Pair{A, B}; first::A; second::B; end       identical to the builtin: nothing is declared
//! ```
//!
//! All names of a text are declared first, so that its types may refer to each other; then the types are
//! defined, supertypes first. A declaration with the name of a builtin is compared with it: printed programs
//! may repeat Julia's declarations, and may declare their own types under such names.

use rustc_hash::FxHashMap;

use super::super::ast::{Expr, ExprKind, TypeDecl, TypeDeclKind};
use super::error::ResolveError;
use super::types::TypeVar;
use super::{Resolver, last_name};
use crate::names::Name;
use crate::types::{Decl, DeclKind, FieldDecl, LayoutError, PrimitiveRepr, Type, TypeError};

/// A declaration differs from the existing one, and its name now refers to another type.
struct Redeclared;

impl<'a> Resolver<'a> {
    /// Declares all types, then defines them, supertypes first. If a declaration differs from an existing
    /// type and the scope assigns another one, all are declared again, because others may name it.
    pub(super) fn declare_types(&mut self, decls: &[TypeDecl<'a>]) -> Vec<Decl> {
        loop {
            let before = self.diagnostics.clone();
            match self.try_declare(decls) {
                Ok(declared) => return declared,
                Err(Redeclared) => self.diagnostics = before,
            }
        }
    }

    fn try_declare(&mut self, decls: &[TypeDecl<'a>]) -> Result<Vec<Decl>, Redeclared> {
        let mut declared: Vec<(Decl, &TypeDecl<'a>)> = Vec::with_capacity(decls.len());
        let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
        // Here the type of `(:)` is a function type, which a printed program may declare.
        let is_colon = |decl: &TypeDecl<'_>| {
            let is_empty =
                matches!(&decl.kind, TypeDeclKind::Struct { mutable: false, fields } if fields.is_empty());
            decl.name.0 == "Colon" && is_empty && decl.params.is_empty() && decl.supertype.is_some()
        };
        for decl in decls.iter().filter(|decl| !is_colon(decl)) {
            let params: Option<Vec<_>> = decl
                .params
                .iter()
                .map(|param| match &param.kind {
                    ExprKind::Name(name) => Some(self.cx.names.intern(name)),
                    ExprKind::Infix(op, args) if op == "<:" => match &args[0].kind {
                        ExprKind::Name(name) => Some(self.cx.names.intern(name)),
                        _ => self.fail(ResolveError::NotAType, param.span),
                    },
                    _ => self.fail(ResolveError::NotAType, param.span),
                })
                .collect();
            let Some(params) = params else { continue };
            let builtin = self.cx.names.find(&decl.name.0).and_then(|name| self.cx.types.find_builtin(name));
            let restated = builtin.filter(|&builtin| self.restates(builtin, &params, decl));
            match restated.map_or_else(|| self.cx.types.declare(self.declared_name(decl), &params), Ok) {
                Ok(id) => {
                    by_name.insert(&decl.name.0, declared.len());
                    declared.push((id, decl));
                }
                Err(error) => self.refuse(error, decl)?,
            }
        }
        let mut defined = vec![false; declared.len()];
        for first in 0..declared.len() {
            // The chain of supertypes still to be defined, nearest first. It ends at a defined one; for one
            // that is already in the chain, `define` reports the cycle.
            let mut chain = Vec::new();
            let mut at = Some(first);
            while let Some(index) = at.filter(|&i| !defined[i]) {
                defined[index] = true;
                chain.push(index);
                let above = declared[index].1.supertype.as_ref().and_then(|e| type_head_name(e));
                at = above.and_then(|name| by_name.get(name).copied());
            }
            for index in chain.into_iter().rev() {
                let (id, decl) = declared[index];
                self.define_type(id, decl)?;
            }
        }
        for (id, decl) in &declared {
            self.check_size(*id, decl);
        }
        Ok(declared.into_iter().map(|(id, _)| id).collect())
    }

    /// The name of the type that the program declares.
    fn declared_name(&self, decl: &TypeDecl<'a>) -> Name {
        match self.is_library {
            true => self.cx.names.intern(&decl.name.0),
            false => self.cx.names.declare(&decl.name.0),
        }
    }

    /// Reports an error in a declaration, unless the name can be redeclared.
    fn refuse(&mut self, error: TypeError, decl: &TypeDecl<'a>) -> Result<(), Redeclared> {
        let is_other = matches!(error, TypeError::Redeclared { .. }) && !self.is_library;
        if is_other && self.cx.names.redeclare(&decl.name.0) {
            return Err(Redeclared);
        }
        let _: Option<Type> = self.made(Err(error), decl.name.1);
        Ok(())
    }

    /// Reports a type whose values are too large at its declaration: only the first such type, not declared
    /// types that contain it. Instances of parametric types are checked where they are made.
    fn check_size(&mut self, id: Decl, decl: &TypeDecl<'a>) {
        if id.is_builtin() || !decl.params.is_empty() || self.has_too_many_types(decl.name.1) {
            return;
        }
        let types = &self.cx.types;
        let Ok(ty) = types.nominal(id, &[]) else { return };
        let is_declared = |ty| {
            let parts = types.nominal_parts(ty);
            parts.is_some_and(|(decl, params)| !decl.is_builtin() && params.is_empty())
        };
        if let Err(
            error @ (LayoutError::TooLarge(of)
            | LayoutError::TooNested(of)
            | LayoutError::TooManyPointers(of)),
        ) = types.layout(ty)
            && (of == ty || !is_declared(of))
        {
            let why = error.display(types).to_string();
            let _: Option<()> = self.fail(ResolveError::BadType { why }, decl.name.1);
        }
    }

    /// Whether a declaration repeats a builtin: printed programs may declare `Pair` like their own types.
    /// With another body it declares a new type.
    fn restates(&mut self, builtin: Decl, params: &[Name], decl: &TypeDecl<'a>) -> bool {
        let cx = self.cx.clone();
        let Some(known) = cx.types.body(builtin) else { return false };
        let has_names = match (&known.kind, &decl.kind) {
            (DeclKind::Abstract, TypeDeclKind::Abstract)
            | (DeclKind::Primitive { .. }, TypeDeclKind::Primitive { .. }) => true,
            (DeclKind::Struct { mutable, fields }, TypeDeclKind::Struct { mutable: own, fields: stated }) => {
                let names = fields.iter().map(|field| cx.names.text(field.name));
                mutable == own && names.eq(stated.iter().map(|field| &*field.name))
            }
            _ => false,
        };
        if !has_names || cx.types.decl(builtin).params.len() != params.len() {
            return false;
        }
        // A type unknown here does not occur in a builtin.
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let stated = self.body_of(params, decl);
        self.diagnostics = diagnostics;
        match (stated, &known.kind) {
            (Some((supertype, DeclKind::Primitive { bits, .. })), DeclKind::Primitive { bits: own, .. }) => {
                supertype == known.supertype && bits == *own
            }
            (Some((supertype, kind)), _) => supertype == known.supertype && kind == known.kind,
            (None, _) => false,
        }
    }

    fn define_type(&mut self, id: Decl, decl: &TypeDecl<'a>) -> Result<(), Redeclared> {
        let cx = self.cx.clone();
        let stated = if id.is_builtin() { None } else { self.body_of(&cx.types.decl(id).params, decl) };
        match stated.map(|(supertype, kind)| cx.types.define(id, supertype, kind)) {
            Some(Err(error)) => self.refuse(error, decl),
            _ => Ok(()),
        }
    }

    /// The supertype and the kind that a declaration states.
    fn body_of(&mut self, params: &[Name], decl: &TypeDecl<'a>) -> Option<(Type, DeclKind)> {
        let cx = self.cx.clone();
        for (index, &param) in params.iter().enumerate() {
            let name = cx.names.text(param).to_owned();
            self.type_vars.push((name.into(), TypeVar::Param(cx.types.param(index as u32))));
        }
        let supertype = match &decl.supertype {
            Some(expr) => self.ty(expr),
            None => Some(Type::ANY),
        };
        let kind = match &decl.kind {
            TypeDeclKind::Abstract => Some(DeclKind::Abstract),
            TypeDeclKind::Primitive { bits: (bits, at) } => match u16::try_from(*bits) {
                Ok(bits) => Some(DeclKind::Primitive { bits, repr: PrimitiveRepr::Bits }),
                Err(_) => {
                    let name = cx.names.intern(&decl.name.0);
                    self.made(Err(TypeError::PrimitiveWidth { name, bits: u16::MAX }), *at);
                    None
                }
            },
            TypeDeclKind::Struct { mutable, fields } => fields
                .iter()
                .map(|field| {
                    let ty = match &field.ty {
                        Some(ty) => self.ty(ty)?,
                        None => Type::ANY,
                    };
                    Some(FieldDecl {
                        name: cx.names.intern(&field.name),
                        ty,
                        is_const: field.is_const,
                        is_atomic: field.is_atomic,
                    })
                })
                .collect::<Option<Box<[_]>>>()
                .map(|fields| DeclKind::Struct { mutable: *mutable, fields }),
        };
        self.type_vars.clear();
        Some((supertype?, kind?))
    }
}

/// The outermost name of a type expression.
fn type_head_name<'e>(expr: &'e Expr<'_>) -> Option<&'e str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Path(parts) => Some(last_name(parts)),
        ExprKind::Curly(base, _) => match &base.kind {
            ExprKind::Name(name) => Some(name),
            ExprKind::Path(parts) => Some(last_name(parts)),
            _ => None,
        },
        _ => None,
    }
}
