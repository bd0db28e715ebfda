//! Functions of the program that C calls.
//!
//! ```text
//! %1 = $(Expr(:cfunction, Ptr{Nothing}, :(cmp), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
//!   ==>  %1 = $(Expr(:cfunction, ptr, "cmp(Ptr{Int64}, Ptr{Int64})", i32, svec(ptr, ptr), :(:ccall)))::ptr
//! ```
//!
//! The code generator makes the code at that address (`codegen/src/callback.rs`): it has the C convention, and calls the method that
//! the types of the arguments choose. Each argument and the result is in one register, of one type on both sides.
//!
//! **Exceptions** do not pass through frames of C. One that leaves the function is kept in the thread, C gets zeros, and
//! further callbacks return zeros at once; when C has returned the exception continues. For that, calls of C in a program
//! with such functions are followed by a check, `brolga_carried_exception`.
//!
//! Refused: values that are not in one register (structs), objects, methods whose parameters are wider than the types of C.

use super::call::Target;
use super::error::Refusal;
use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::abi::FormKind;
use brolga_ir::func::{CalleeData, ForeignData};
use brolga_ir::{Callee, Name, Op, RuntimeFn, Type};

impl Lowering<'_> {
    pub(super) fn c_function(&mut self, callee: Callee) -> Step<()> {
        let CalleeData::Method { function, args, result } = self.src.callee(callee).clone() else {
            return Err(self.bad_operands());
        };
        let Some(id) = self.unit.module.find_method(function, &args) else {
            return Err(self.bad_operands());
        };
        let symbol = self.unit.module[id].symbol(&self.unit.module.cx);
        let Target { callee, sig } = self.target(id)?;
        let name = Some(self.cx.names.intern(&symbol));
        let data = ForeignData { name, result, params: args, variadic_after: None };
        let declared = &sig.params[1..];
        let same = declared.len() == data.params.len()
            && sig.result.ty == result
            && declared.iter().zip(&data.params).all(|(form, &ty)| form.ty == ty)
            && sig.params[0].leaves.is_empty()
            && !self.unit.module[id].sig.vararg;
        if !same {
            let what = format!("`{symbol}` as a function of C of other types than its own");
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let scalars = data.params.iter().chain((!sig.result.leaves.is_empty()).then_some(&data.result));
        for &ty in scalars {
            if self.form(ty)?.is_object() {
                return Err(self.c_refuse(ty, &data));
            }
            self.c_scalar(ty, &data)?;
        }
        if matches!(sig.result.kind, FormKind::Never) {
            let what = format!("`{symbol}`, which never returns, as a function of C");
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let Some(made) = self.src.result(self.at) else { return Ok(()) };
        let address = self.value(Op::CFunction(callee), &[], Type::PTR);
        self.calls = true;
        self.define(Val::scalar(self.src.ty(made), address))
    }

    /// The address of a function or variable of C.
    pub(super) fn c_global(&mut self, name: Name) -> Step<()> {
        let Some(made) = self.src.result(self.at) else { return Ok(()) };
        let address = self.value(Op::CGlobal(name), &[], Type::PTR);
        self.define(Val::scalar(self.src.ty(made), address))
    }

    /// An exception that left a callback continues here, after the call of C.
    pub(super) fn carried_exception(&mut self) {
        if self.unit.module.facts().gives_to_c() {
            self.value(Op::CallRuntime(RuntimeFn::CarriedException), &[], Type::TRACKED);
            self.calls = true;
        }
    }
}
