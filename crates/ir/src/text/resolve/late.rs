//! Constructs that Julia prints and that have no meaning here: refused when reached, not when read.
//!
//! A dump contains the cold paths of library code: `copyast` of an assertion's text, an `llvmcall` for a
//! processor. A program that never reaches them should run. So such a row becomes a throw, with a warning:
//!
//! ```text
//! %3 = $(Expr(:copyast, …))::Expr        %3 = Core.throw(CompileError("`Expr(:copyast)` is not supported: …"))::Expr
//! ```
//!
//! Low IR is produced by passes, so there such a row stays an error.

use super::body::Body;
use super::error::ResolveError;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::diag::{Diagnostic, Span};
use crate::entity::{Inst, Value};
use crate::names::Name;
use crate::op::{Level, Op};
use crate::types::Type;

impl Body<'_, '_> {
    /// Makes the row throw a `CompileError` that names the construct and the reason.
    pub(super) fn refuse_late(
        &mut self,
        inst: Inst,
        what: String,
        why: &'static str,
        at: Span,
    ) -> Option<()> {
        self.refuse_row(inst, what, why, at, false)
    }

    /// Like [`Self::refuse_late`], for a row that `ends` its block or not.
    pub(super) fn refuse_row(
        &mut self,
        inst: Inst,
        what: String,
        why: &'static str,
        at: Span,
        ends: bool,
    ) -> Option<()> {
        let exception = self.compile_error(what, why, at)?;
        let throw = Op::Builtin(Builtin::Throw);
        if self.results(inst).is_empty() {
            self.insert_before(inst, throw, &[exception], Type::NOTHING);
            if ends {
                self.func.set_op(inst, Op::Unreachable, &[]);
            } else {
                self.func.remove_inst(inst);
            }
        } else if self.results(inst) == [Type::TOKEN] {
            // Only dedicated statements make tokens.
            self.insert_before(inst, throw, &[exception], Type::NOTHING);
            self.func.set_op(inst, Op::GcPreserveBegin, &[]);
        } else {
            // The row keeps its type, so that later rows may use it.
            self.func.set_op(inst, throw, &[exception]);
        }
        Some(())
    }

    /// Throws a `CompileError` before an instruction, which stays unchanged.
    pub(super) fn refuse_before(
        &mut self,
        inst: Inst,
        what: String,
        why: &'static str,
        at: Span,
    ) -> Option<()> {
        let exception = self.compile_error(what, why, at)?;
        self.insert_before(inst, Op::Builtin(Builtin::Throw), &[exception], Type::NOTHING);
        Some(())
    }

    /// Makes the exception for a late refusal, and warns. In low IR it is an error.
    fn compile_error(&mut self, what: String, why: &'static str, at: Span) -> Option<Value> {
        let error = ResolveError::Unsupported { what, why };
        let exception =
            self.r.library_decl("CompileError").and_then(|decl| self.r.cx.types.nominal(decl, &[]).ok());
        let Some(ty) = exception.filter(|_| self.func.level == Level::High) else {
            return self.r.fail(error, at);
        };
        let text = self.r.cx.names.intern(&error.to_string());
        let note = "the statement throws a `CompileError` when it is reached";
        self.r.diagnostics.push(Diagnostic::warning(&error, at).with_note(note));
        let message = self.func.constant(Const::String(text));
        Some(self.func.constant(Const::Aggregate { ty, fields: [message].into() }))
    }

    /// Makes a row that reads an undeclared variable throw an `UndefVarError` when reached. A dump has the
    /// variables that its functions needed; hand-written text declares what it reads.
    pub(super) fn undefined_late(&mut self, inst: Inst, name: Name, results: &[Type]) -> bool {
        let &[result] = results else { return false };
        if !self.r.functions.has_dumps() || self.func.level != Level::High {
            return false;
        }
        let never = self.func.constant(Const::Bits { ty: Type::BOOL, bits: 0 });
        self.insert_before(inst, Op::ThrowUndefIfNot(name), &[never], Type::NOTHING);
        let value = self.func.constant(Const::Undef(result));
        self.func.set_op(inst, Op::Copy, &[value]);
        true
    }

    /// Inserts an instruction with one result before another.
    pub(super) fn insert_before(&mut self, inst: Inst, op: Op, args: &[Value], ty: Type) -> Option<Value> {
        let new = self.func.make_inst(op, args, &[], &[ty]);
        self.func.insert_before(new, inst);
        self.func.result(new)
    }
}
