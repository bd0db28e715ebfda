//! What Base does and no text gives a body for: throwing known exceptions, and printing.
//!
//! An exception is an object, but a program that only throws needs none: the run time makes the exception of what the
//! throwing entry gets. So the value that is thrown is never made here. What it would hold beside that (the array of
//! a `BoundsError`, the number of an `InexactError`) is dropped.
//!
//! ```text
//! invoke Base.error("no")              call ThrowError(address of "no")
//! throw(%new(ErrorException, "no"))    the same
//! println("x = ", x)                   call PrintString, call PrintInt, call PrintChar('\n')
//! ```

use super::error::Refusal;
use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::abi::NotNative;
use brolga_ir::base_fn::{BaseAction, BaseFn};
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Const, LowType, Op, RuntimeFn, Type, TypeKind, Value};

/// Where the arguments of a call stand among the operands of its statement.
#[derive(Clone, Copy)]
pub(super) struct BaseCall {
    /// The number of the first operand that is an argument.
    pub(super) first: usize,
}

/// `'\n'` as a `Char`.
const NEWLINE: u128 = 0x0a00_0000;

impl Lowering<'_> {
    pub(super) fn base_call(&mut self, base: BaseFn, BaseCall { first }: BaseCall) -> Step<()> {
        let count = self.src.args(self.at).len().saturating_sub(first);
        if !base.arity().allows(count) {
            return Err(self.bad_operands());
        }
        if let BaseAction::Print { newline } = base.action() {
            return self.print(first, newline);
        }
        match base {
            BaseFn::ThrowBoundserror => self.throw_bounds(first + 1),
            BaseFn::Error if count == 1 => self.throw_string(RuntimeFn::ThrowError, first),
            BaseFn::Error => self.throw_joined(first),
            BaseFn::Rethrow => Err(self.report(Refusal::TryCatch { what: "`rethrow`" })),
            BaseFn::ThrowInexacterror => self.throw_symbol(RuntimeFn::ThrowInexact, first),
            BaseFn::ThrowOverflowerrBinaryop => self.throw_symbol(RuntimeFn::ThrowOverflow, first),
            BaseFn::ThrowOverflowerrNegation => {
                let minus = self.cx.names.intern("-");
                let minus = self.symbol(minus);
                self.throw(RuntimeFn::ThrowOverflow, &[minus]);
                Ok(())
            }
            BaseFn::ThrowComplexDomainerror | BaseFn::ThrowComplexDomainerrorNeg1 => {
                let function = self.of_type(first, Type::SYMBOL)?;
                let number = self.float(first + 1)?;
                self.throw(RuntimeFn::ThrowDomain, &[function, number]);
                Ok(())
            }
            BaseFn::ThrowExpDomainerror | BaseFn::ThrowDomerrPowbysq => {
                let power = self.cx.names.intern("^");
                let power = self.symbol(power);
                let number = self.float(first)?;
                self.throw(RuntimeFn::ThrowDomain, &[power, number]);
                Ok(())
            }
            BaseFn::ThrowArgerror => self.throw_string(RuntimeFn::ThrowArgument, first),
            BaseFn::Print | BaseFn::Println => self.print(first, base == BaseFn::Println),
        }
    }

    /// The only leaf of an operand of a type that has one.
    fn of_type(&mut self, n: usize, ty: Type) -> Step<Value> {
        let val = self.operand(n)?;
        match val.leaves[..] {
            [leaf] if val.ty == ty => Ok(leaf),
            _ => Err(self.bad_operands()),
        }
    }

    fn throw_symbol(&mut self, entry: RuntimeFn, n: usize) -> Step<()> {
        let symbol = self.of_type(n, Type::SYMBOL)?;
        self.throw(entry, &[symbol]);
        Ok(())
    }

    fn throw_string(&mut self, entry: RuntimeFn, n: usize) -> Step<()> {
        let text = self.of_type(n, Type::STRING)?;
        self.throw(entry, &[text]);
        Ok(())
    }

    /// `error` with a message in several parts, which have to be constant to be joined here.
    fn throw_joined(&mut self, first: usize) -> Step<()> {
        let mut text = String::new();
        for &part in self.src.args(self.at).get(first..).unwrap_or_default() {
            match self.src.as_const(part) {
                Some(Const::String(name) | Const::Symbol(name)) => text.push_str(self.cx.names.text(*name)),
                _ => {
                    let what = "a message that is put together while the program runs".to_owned();
                    return Err(self.report(Refusal::Heap { what }));
                }
            }
        }
        let text = self.cx.names.intern(&text);
        let text = self.address(Address::String(text));
        self.throw(RuntimeFn::ThrowError, &[text]);
        Ok(())
    }

    /// Throws `BoundsError` with operand `n` as the index: an integer or a tuple whose first element is one.
    fn throw_bounds(&mut self, n: usize) -> Step<()> {
        let val = match self.src.args(self.at).get(n) {
            Some(&index) => Some(self.val(index)?),
            None => None,
        };
        self.throw_bounds_at(val)
    }

    fn throw_bounds_at(&mut self, index: Option<Val>) -> Step<()> {
        let index = match index {
            Some(val) if self.types.tuple_elements(val.ty).is_some_and(|e| !e.is_empty()) => {
                Some(self.field(&val, 0)?)
            }
            other => other,
        };
        let index = match index {
            Some(val) if val.ty == Type::INT64 => val.leaves.first().copied(),
            _ => None,
        };
        let index = index.unwrap_or_else(|| self.word(0));
        self.throw(RuntimeFn::ThrowBounds, &[index]);
        Ok(())
    }

    /// A number as a `Float64`.
    fn float(&mut self, n: usize) -> Step<Value> {
        let (value, ty) = self.scalar_operand(n)?;
        let op = match (self.low(value), self.types.primitive(ty)) {
            (LowType::F64, _) => return Ok(value),
            (LowType::F16 | LowType::F32, _) => Intrinsic::Fpext,
            (_, Some((_, PrimitiveRepr::Signed))) => Intrinsic::Sitofp,
            (_, Some((_, PrimitiveRepr::Unsigned | PrimitiveRepr::Bool))) => Intrinsic::Uitofp,
            _ => return Err(self.bad_operands()),
        };
        Ok(self.value(Op::Intrinsic(op), &[value], Type::F64))
    }

    // ----- throw -----

    /// `throw(x)`, where `x` is an exception whose type the run time can make.
    pub(super) fn throw_value(&mut self) -> Step<()> {
        let thrown = self.arg(0)?;
        let ty = self.src.ty(thrown);
        let parts: Vec<Value> = match (self.src.as_const(thrown), self.src.def_inst(thrown)) {
            (Some(Const::Aggregate { fields, .. }), _) => fields.to_vec(),
            (_, Some(made)) if matches!(self.src.op(made), Op::New(_)) => self.src.args(made).to_vec(),
            _ => Vec::new(),
        };
        let name = match self.types.nominal_parts(ty) {
            Some((decl, _)) if self.types.is_exception(ty) => self.cx.names.text(self.types.decl(decl).name),
            _ => "",
        };
        let (entry, wanted) = match name {
            "DivideError" => (RuntimeFn::ThrowDivide, None),
            "UndefRefError" => (RuntimeFn::ThrowUndefRef, None),
            "ErrorException" => (RuntimeFn::ThrowError, Some(Type::STRING)),
            "ArgumentError" => (RuntimeFn::ThrowArgument, Some(Type::STRING)),
            "InexactError" => (RuntimeFn::ThrowInexact, Some(Type::SYMBOL)),
            "UndefVarError" => (RuntimeFn::ThrowUndefVar, Some(Type::SYMBOL)),
            "TypeError" => (RuntimeFn::ThrowType, Some(Type::SYMBOL)),
            "BoundsError" if !parts.is_empty() || self.src.def_inst(thrown).is_some() => {
                let index = match parts.get(1) {
                    Some(&index) => Some(self.val(index)?),
                    None => None,
                };
                return self.throw_bounds_at(index);
            }
            _ => return Err(self.cannot_throw(ty)),
        };
        let Some(wanted) = wanted else {
            self.throw(entry, &[]);
            return Ok(());
        };
        let Some(&part) = parts.first() else { return Err(self.cannot_throw(ty)) };
        let part = self.val(part)?;
        match part.leaves[..] {
            [leaf] if part.ty == wanted => {
                self.throw(entry, &[leaf]);
                Ok(())
            }
            _ => Err(self.cannot_throw(ty)),
        }
    }

    fn cannot_throw(&mut self, ty: Type) -> super::Reported {
        if self.has_refused_operand() {
            return super::Reported;
        }
        let what = format!("throwing a value of type `{}`", self.types.display(ty));
        self.report(Refusal::Heap { what })
    }

    /// `throw_undef_if_not`.
    pub(super) fn throw_undef_if_not(&mut self, name: brolga_ir::Name) -> Step<()> {
        let (defined, ty) = self.scalar_operand(0)?;
        if ty != Type::BOOL {
            return Err(self.bad_operands());
        }
        let bad = self.not(defined);
        let name = self.symbol(name);
        self.throw_if(bad, RuntimeFn::ThrowUndefVar, &[name]);
        self.define(Val::ghost(Type::NOTHING))
    }

    // ----- print -----

    fn print(&mut self, first: usize, newline: bool) -> Step<()> {
        for n in first..self.src.args(self.at).len() {
            self.print_operand(n)?;
        }
        if newline {
            let end = self.int(LowType::I32, NEWLINE);
            self.emit(Op::CallRuntime(RuntimeFn::PrintChar), &[end], &[]);
        }
        self.define(Val::ghost(Type::NOTHING))
    }

    fn print_operand(&mut self, n: usize) -> Step<()> {
        let val = self.operand(n)?;
        let call = |l: &mut Self, entry, args: &[Value]| {
            l.emit(Op::CallRuntime(entry), args, &[]);
        };
        let leaf = match val.leaves[..] {
            [leaf] => leaf,
            [] if val.ty == Type::NOTHING => {
                call(self, RuntimeFn::PrintNothing, &[]);
                return Ok(());
            }
            [] if matches!(self.types.kind(val.ty), TypeKind::TypeOf(_) | TypeKind::Function(_)) => {
                let text = match self.types.kind(val.ty) {
                    TypeKind::Function(name) => *name,
                    _ => {
                        let ty = self.static_type(&val).unwrap_or(val.ty);
                        self.cx.names.intern(&self.types.display(ty).to_string())
                    }
                };
                let text = self.address(Address::String(text));
                call(self, RuntimeFn::PrintString, &[text]);
                return Ok(());
            }
            _ => return Err(self.cannot_print(val.ty)),
        };
        let low = self.low(leaf);
        let width = self.int(LowType::I32, u128::from(low.bits()));
        match (val.ty, self.types.primitive(val.ty)) {
            (Type::STRING, _) => call(self, RuntimeFn::PrintString, &[leaf]),
            (Type::SYMBOL, _) => call(self, RuntimeFn::PrintSymbol, &[leaf]),
            (_, Some((_, PrimitiveRepr::Bool))) => call(self, RuntimeFn::PrintBool, &[leaf]),
            (_, Some((_, PrimitiveRepr::Char))) => call(self, RuntimeFn::PrintChar, &[leaf]),
            (_, Some((_, repr @ (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned))))
                if low == LowType::I128 =>
            {
                let half = self.word(64);
                let high = self.binary(Intrinsic::LshrInt, leaf, half, LowType::I128);
                let (high, below) = (self.resize(high, LowType::I64), self.resize(leaf, LowType::I64));
                let signed = self.int(LowType::I32, u128::from(repr == PrimitiveRepr::Signed));
                call(self, RuntimeFn::PrintInt128, &[below, high, signed]);
            }
            (_, Some((_, PrimitiveRepr::Signed))) => {
                let wide = match low {
                    LowType::I64 => leaf,
                    _ => self.value(Op::Intrinsic(Intrinsic::SextInt), &[leaf], Type::I64),
                };
                call(self, RuntimeFn::PrintInt, &[wide]);
            }
            (_, Some((_, PrimitiveRepr::Unsigned))) => {
                let wide = self.resize(leaf, LowType::I64);
                call(self, RuntimeFn::PrintUInt, &[wide, width]);
            }
            (_, Some((_, PrimitiveRepr::Float))) => {
                let bits = self.bits_of(leaf);
                let wide = self.resize(bits, LowType::I64);
                call(self, RuntimeFn::PrintFloat, &[wide, width]);
            }
            _ if self.types.pointee(val.ty).is_some() => call(self, RuntimeFn::PrintPtr, &[leaf]),
            _ => return Err(self.cannot_print(val.ty)),
        }
        Ok(())
    }

    fn cannot_print(&mut self, ty: Type) -> super::Reported {
        if self.find_form(ty).is_err() {
            return self.not_native(NotNative::Heap(ty));
        }
        let what = format!("printing a `{}`", self.types.display(ty));
        self.report(Refusal::Unsupported { what })
    }
}
