//! The types of `%new` and `%splatnew`.
//!
//! ```text
//! %new(P{Int64}, x)               the type itself
//! %new(#ctor-self#, x)            an argument or row of type Type{P{Int64}}, whose only value is that type
//! %new(%4, x)                     a type known only at run time: a call of the struct's default constructor
//! ```

use super::super::ast::{Expr, ExprKind};
use super::body::Body;
use super::error::ResolveError;
use crate::constant::Const;
use crate::entity::Inst;
use crate::op::Op;
use crate::types::{Type, TypeKind};

impl<'a> Body<'_, 'a> {
    /// The type that the first operand of `%new` names. The outer `None` is an error, the inner one means a
    /// computed type.
    pub(super) fn new_type(&mut self, expr: &Expr<'a>) -> Option<Option<Type>> {
        let is_value = match &expr.kind {
            ExprKind::Name(name) => self.argument(name, expr.span)?.is_some(),
            ExprKind::Ssa(..) | ExprKind::Slot(..) => true,
            _ => false,
        };
        if !is_value {
            return self.r.ty(expr).map(Some);
        }
        let value = self.operand(expr)?;
        if let Some(&Const::Type { of, .. }) = self.func.as_const(value) {
            return Some(Some(of));
        }
        let given = self.func.ty(value);
        match *self.r.cx.types.kind(given) {
            TypeKind::TypeOf(of) => Some(Some(of)),
            _ if self.r.cx.types.is_disjoint(given, Type::DATATYPE) => {
                let given = self.r.cx.types.display(given);
                let why =
                    format!("a type is needed, and `{}` is of type `{given}`", self.r.source_text(expr.span));
                self.r.fail(ResolveError::BadType { why }, expr.span)
            }
            _ => Some(None),
        }
    }

    /// `%new` of a computed type: a call of the type, which makes an object from its fields in order. For a
    /// type with constructors in the text the call would reach those, so it is refused.
    pub(super) fn new_of_computed(
        &mut self,
        inst: Inst,
        ty: &Expr<'a>,
        fields: &[Expr<'a>],
        results: &[Type],
        is_new: bool,
    ) -> Option<()> {
        let made = results.first().copied().unwrap_or(Type::ANY);
        let types = &self.r.cx.types;
        let decl = match *types.kind(made) {
            TypeKind::Nominal { decl, .. } | TypeKind::Generic(decl) => Some(decl),
            _ => None,
        };
        let is_plain = decl.is_some_and(|decl| {
            let name = self.r.cx.names.text(types.decl(decl).name).to_owned();
            !self.r.functions.defines(&[name.into()])
        });
        if !is_new || !is_plain {
            let what = "`%new` of a type that is computed".to_owned();
            let why = "the text has a constructor of the type, or does not say which type it is";
            return self.refuse_late(inst, what, why, ty.span);
        }
        let exprs: Vec<&Expr<'a>> = std::iter::once(ty).chain(fields).collect();
        self.set(inst, Op::Call, results, &exprs)
    }
}
