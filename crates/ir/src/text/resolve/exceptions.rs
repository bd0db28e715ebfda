//! Constructors of exceptions.
//!
//! Printed IR makes an exception by `%new`, by `invoke Base.ArgumentError("…")` or by a call of the type. No
//! text has the bodies of those constructors, so here all three become `%new`, with the fields that a
//! constructor adds:
//!
//! ```text
//! DomainError(x)                 %new(DomainError, x, "")          a message
//! InexactError(:trunc, T, x)     %new(InexactError, :trunc, (T, x))    three fields up to 1.11, two since
//! TypeError(f, T, x)             %new(TypeError, f, "", T, x)      a context
//! ```
//!
//! A constructor defined in the text takes precedence.

use super::super::ast::Expr;
use std::borrow::Cow;

use super::Resolver;
use super::body::Body;
use super::spelling::is_plain;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::{Inst, Value};
use crate::op::Op;
use crate::types::Type;

impl Resolver<'_> {
    /// Whether a call of this type makes an exception by a constructor that the text does not define.
    pub(super) fn makes_exception(&self, ty: Type) -> bool {
        let Some((decl, _)) = self.cx.types.nominal_parts(ty) else { return false };
        let name = self.cx.names.text(self.cx.types.decl(decl).name);
        self.cx.types.is_exception(ty)
            && self.cx.types.fields(ty).is_some()
            && !self.functions.defines(&[Cow::Borrowed(name)])
    }
}

impl<'a> Body<'_, 'a> {
    /// Makes the instruction construct an exception from constructor arguments; false if no constructor takes
    /// this number.
    pub(super) fn make_exception(&mut self, inst: Inst, ty: Type, args: &[&Expr<'a>]) -> Option<bool> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let value = if is_plain(arg) { self.constant(arg, None) } else { self.operand(arg) };
            values.push(value?);
        }
        let Some(count) = self.r.cx.types.field_count(ty) else { return Some(false) };
        self.complete_exception(inst, ty, &mut values)?;
        if values.len() > count {
            return Some(false);
        }
        self.func.set_op(inst, Op::New(ty), &values);
        Some(true)
    }

    /// Appends the fields that an exception's constructor adds to its arguments.
    pub(super) fn complete_exception(&mut self, inst: Inst, ty: Type, values: &mut Vec<Value>) -> Option<()> {
        let Some((decl, _)) = self.r.cx.types.nominal_parts(ty).filter(|(decl, _)| decl.is_builtin()) else {
            return Some(());
        };
        let name = self.r.cx.names.text(self.r.cx.types.decl(decl).name).to_owned();
        let empty = Const::String(self.r.cx.names.intern(""));
        match (&*name, values.len()) {
            ("DomainError", 1) | ("AssertionError" | "DimensionMismatch", 0) => {
                values.push(self.func.constant(empty));
            }
            ("TypeError", 3) => values.insert(1, self.func.constant(empty)),
            ("InexactError", 3..) => {
                let rest = values.split_off(1);
                let types: Vec<Type> = rest.iter().map(|&value| self.func.ty(value)).collect();
                let tuple = self.r.cx.types.tuple(&types).ok()?;
                values.extend(self.insert_before(inst, Op::Builtin(Builtin::Tuple), &rest, tuple));
            }
            ("UndefVarError", 1) | ("MethodError", 2) => {
                let world = Const::Bits { ty: Type::UINT64, bits: u128::from(u64::MAX) };
                values.push(self.func.constant(world));
            }
            _ => {}
        }
        Some(())
    }
}
