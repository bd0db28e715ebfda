//! Functions of Base without a body in text: throwing known exceptions, and printing.
//!
//! An exception is an object. If nothing else needs the object, and the run time has an entry point that makes the exception from its operands,
//! that is called instead: then a function that only throws makes no objects.
//!
//! ```text
//! invoke Base.error("no")              call ThrowError("no")
//! throw(%new(ErrorException, "no"))    the same
//! throw(%new(Odd, 3))                  alloc(Odd), store, call Throw
//! println("x = ", x)                   call PrintString, call PrintInt, call PrintChar('\n')
//! ```
//!
//! The entry for `InexactError`, `OverflowError` and `DomainError` gets the numbers as bits. Numbers of other types than Base's own
//! go through a call of the function with objects.

use super::error::Refusal;
use super::value::Val;
use super::{Known, Lowering, Step};
use brolga_ir::base_fn::{BaseAction, BaseFn, Thrown};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Const, LowType, Op, RuntimeFn, Type, TypeKind, Value};
use cranelift_entity::SecondaryMap;

/// The position of a call's arguments among the operands of its statement.
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
            return match self.may_be_io(first) {
                true => self.dynamic_call(),
                false => self.print(first, newline),
            };
        }
        match base {
            BaseFn::ThrowBoundserror => self.throw_bounds(first),
            BaseFn::Error if count == 1 => self.throw_string(RuntimeFn::ThrowError, first),
            BaseFn::Error => self.throw_joined(first),
            BaseFn::Rethrow if count == 0 => {
                self.throw(RuntimeFn::Rethrow, &[]);
                Ok(())
            }
            BaseFn::Rethrow => {
                let exception = self.operand(first)?;
                self.throw_object(&exception)
            }
            BaseFn::ThrowInexacterror
            | BaseFn::ThrowOverflowerrBinaryop
            | BaseFn::ThrowOverflowerrNegation
            | BaseFn::ThrowComplexDomainerror
            | BaseFn::ThrowComplexDomainerrorNeg1
            | BaseFn::ThrowExpDomainerror
            | BaseFn::ThrowDomerrPowbysq => self.throw_numbers(base, first),
            BaseFn::ThrowArgerror => self.throw_string(RuntimeFn::ThrowArgument, first),
            BaseFn::String | BaseFn::Repr => self.dynamic_call(),
            BaseFn::Print | BaseFn::Println => self.print(first, base == BaseFn::Println),
        }
    }

    /// Whether an operand may be an `IO` to print into, which is not text to print.
    fn may_be_io(&self, n: usize) -> bool {
        let io =
            self.types.find_decl(self.cx.names.intern("IO")).and_then(|io| self.types.nominal(io, &[]).ok());
        let given = self.src.args(self.at).get(n).map(|&arg| self.src.ty(arg));
        io.zip(given).is_some_and(|(io, given)| !self.types.is_disjoint(io, given))
    }

    /// The only leaf of an operand of a type that has one.
    fn of_type(&mut self, n: usize, ty: Type) -> Step<Value> {
        let val = self.operand(n)?;
        match val.leaves[..] {
            [leaf] if val.ty == ty => Ok(leaf),
            _ => Err(self.bad_operands()),
        }
    }

    /// The address of the record of a symbol operand.
    fn symbol_operand(&mut self, n: usize) -> Step<Value> {
        let value = self.arg(n)?;
        if let Some(&Const::Symbol(name)) = self.src.as_const(value) {
            return Ok(self.symbol(name));
        }
        // Symbols are permanent.
        let symbol = self.of_type(n, Type::SYMBOL)?;
        Ok(self.value(Op::PointerFromObjref, &[symbol], Type::PTR))
    }

    /// A function of the table that throws an exception made of a symbol and numbers; the operands begin at `first`.
    fn throw_numbers(&mut self, function: BaseFn, first: usize) -> Step<()> {
        let from = first + usize::from(function.takes_symbol());
        let symbol = match from - first {
            0 => self.symbol(self.cx.names.intern(function.name())),
            _ if self.operand(first)?.ty != Type::SYMBOL => return self.dynamic_call(),
            _ => self.symbol_operand(first)?,
        };
        let (mut types, mut words) = ([None; 2], Vec::with_capacity(4));
        for (n, operand) in self.operands_from(from)?.into_iter().enumerate() {
            let target =
                self.static_type(&operand).filter(|_| function == BaseFn::ThrowInexacterror && n == 0);
            match (target, &operand.leaves[..], types.get_mut(n)) {
                (Some(target), _, Some(ty)) => {
                    *ty = Some(target);
                    words.extend([self.word(0), self.word(0)]);
                }
                (None, &[leaf], Some(ty)) if self.types.primitive(operand.ty).is_some() => {
                    *ty = Some(operand.ty);
                    words.extend(self.halves(leaf));
                }
                _ => return self.dynamic_call(),
            }
        }
        let Some(code) = (Thrown { function, types }).pack() else { return self.dynamic_call() };
        let code = self.word(code.into());
        words.resize(4, self.word(0));
        words.splice(..0, [code, symbol]);
        self.throw(RuntimeFn::ThrowOperands, &words);
        Ok(())
    }

    /// The bits of a number in two words, the low one first.
    fn halves(&mut self, leaf: Value) -> [Value; 2] {
        let bits = if self.low(leaf).is_float() { self.bits_of(leaf) } else { leaf };
        let high = match self.low(bits) {
            LowType::I128 => {
                let half = self.word(64);
                let high = self.binary(Intrinsic::LshrInt, bits, half, LowType::I128);
                self.resize(high, LowType::I64)
            }
            _ => self.word(0),
        };
        [self.resize(bits, LowType::I64), high]
    }

    fn throw_string(&mut self, entry: RuntimeFn, n: usize) -> Step<()> {
        let text = self.operand(n)?;
        match text.leaves[..] {
            [leaf] if text.ty == Type::STRING => {
                self.throw(entry, &[leaf]);
                Ok(())
            }
            _ => self.dynamic_call(),
        }
    }

    /// `error` with a message in several parts: joined here if they are constant.
    fn throw_joined(&mut self, first: usize) -> Step<()> {
        let mut text = String::new();
        for &part in self.src.args(self.at).get(first..).unwrap_or_default() {
            match self.src.as_const(part) {
                Some(Const::String(name) | Const::Symbol(name)) => text.push_str(self.cx.names.text(*name)),
                _ => return self.dynamic_call(),
            }
        }
        let text = self.cx.names.intern(&text);
        let text = self.permanent(Address::String(text));
        self.throw(RuntimeFn::ThrowError, &[text]);
        Ok(())
    }

    /// `throw_boundserror(a, i)` with `a` as operand `n`; the index may be a tuple.
    fn throw_bounds(&mut self, n: usize) -> Step<()> {
        let all = self.operands_from(n)?;
        let [array, index] = &all[..] else { return self.throw_new("BoundsError", &all) };
        let (entry, single) = match self.types.tuple_elements(index.ty) {
            Some([Type::INT64]) => (RuntimeFn::ThrowBoundsIn, self.field(index, 0)?),
            _ => (RuntimeFn::ThrowBoundsOf, index.clone()),
        };
        match single.leaves[..] {
            [leaf] if single.ty == Type::INT64 => {
                let array = self.object(array)?;
                self.throw(entry, &[array, leaf]);
                Ok(())
            }
            _ => self.throw_new("BoundsError", &all),
        }
    }

    // ----- throw -----

    /// The entry point that makes and throws an exception of a type, and the type of the one field that it gets.
    pub(super) fn throwing_entry(&self, ty: Type) -> Option<(RuntimeFn, Option<Type>)> {
        let (decl, _) = self.types.nominal_parts(ty).filter(|(decl, _)| decl.is_builtin())?;
        Some(match self.cx.names.text(self.types.decl(decl).name) {
            "DivideError" => (RuntimeFn::ThrowDivide, None),
            "UndefRefError" => (RuntimeFn::ThrowUndefRef, None),
            "ErrorException" => (RuntimeFn::ThrowError, Some(Type::STRING)),
            "ArgumentError" => (RuntimeFn::ThrowArgument, Some(Type::STRING)),
            _ => return None,
        })
    }

    /// Whether the only use of a value is that it is thrown.
    pub(super) fn is_thrown_once(&mut self, value: Value) -> bool {
        self.weight_of_uses(value) == 1
    }

    /// Whether a value that is not thrown has one use.
    pub(super) fn is_used_once(&mut self, value: Value) -> bool {
        self.weight_of_uses(value) == 2
    }

    /// One for each `throw` of a value, and two for every other use.
    pub(super) fn weight_of_uses(&mut self, value: Value) -> u32 {
        let src = self.src;
        let uses = self.uses.get_or_insert_with(|| {
            let mut uses = SecondaryMap::<Value, u32>::new();
            for inst in src.blocks().flat_map(|b| src.block_insts(b)) {
                let weight = if src.op(inst) == Op::Builtin(Builtin::Throw) { 1 } else { 2 };
                src.args(inst).iter().for_each(|&v| uses[v] = uses[v].saturating_add(weight));
            }
            uses
        });
        uses[value]
    }

    /// `throw(x)`.
    pub(super) fn throw_statement(&mut self) -> Step<()> {
        let result = self.src.result(self.at).map(|result| self.src.ty(result));
        let Some(ty) = result.filter(|&ty| ty != Type::BOTTOM) else { return self.throw_value() };
        // A call that is declared to return may be followed by unreachable uses.
        let always = self.truth(true);
        self.throw_if_with(always, Self::throw_value)?;
        let val = self.undefined(ty)?;
        self.define(val)
    }

    fn throw_value(&mut self) -> Step<()> {
        let thrown = self.arg(0)?;
        let made = self.src.def_inst(thrown).filter(|_| matches!(self.known[thrown], Known::Thrown));
        let parts: Option<Vec<Value>> = match (self.src.as_const(thrown), made) {
            (Some(Const::Aggregate { fields, .. }), _) => Some(fields.to_vec()),
            (Some(Const::Singleton(_)), _) => Some(Vec::new()),
            (_, Some(made)) => Some(self.src.args(made).to_vec()),
            _ => None,
        };
        if let (Some(parts), Some((entry, wanted))) = (parts, self.throwing_entry(self.src.ty(thrown))) {
            match (wanted, &parts[..]) {
                (None, _) => {
                    self.throw(entry, &[]);
                    return Ok(());
                }
                (Some(wanted), &[part]) => {
                    let part = self.val(part)?;
                    if let (true, &[leaf]) = (part.ty == wanted, &part.leaves[..]) {
                        self.throw(entry, &[leaf]);
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let exception = match made {
            // The row asserts a field of another type than the exception usually has.
            Some(made) => {
                let parts = self.src.args(made).to_vec();
                let fields = parts.into_iter().map(|part| self.val(part)).collect::<Step<Vec<Val>>>()?;
                self.instance_of(self.src.ty(thrown), &fields)?
            }
            None => self.val(thrown)?,
        };
        self.throw_object(&exception)
    }

    /// The statement throws a `CompileError` when it is reached.
    pub(super) fn refuse_late(&mut self, text: &str) -> Step<()> {
        let name = self.cx.names.intern("CompileError");
        let decl = self.types.find_builtin(name);
        let Some(ty) = decl.and_then(|decl| self.types.nominal(decl, &[]).ok()) else {
            return Err(self.report(Refusal::Unsupported { what: text.to_owned() }));
        };
        let text = self.permanent(Address::String(self.cx.names.intern(text)));
        let exception = self.instance_of(ty, &[Val::scalar(Type::STRING, text)])?;
        let result = self.src.result(self.at).map(|result| self.src.ty(result));
        let Some(result) = result.filter(|&ty| ty != Type::BOTTOM) else {
            return self.throw_object(&exception);
        };
        let always = self.truth(true);
        self.throw_if_with(always, |this| this.throw_object(&exception))?;
        let val = self.undefined(result)?;
        self.define(val)
    }

    pub(super) fn throw_object(&mut self, exception: &Val) -> Step<()> {
        let object = self.object(exception)?;
        self.throw(RuntimeFn::Throw, &[object]);
        Ok(())
    }

    /// Throws a new exception of a builtin type.
    pub(super) fn throw_new(&mut self, name: &str, fields: &[Val]) -> Step<()> {
        let decl = self.types.find_builtin(self.cx.names.intern(name));
        let ty =
            decl.and_then(|decl| self.types.nominal(decl, &[]).ok()).ok_or_else(|| self.bad_operands())?;
        let exception = self.instance_of(ty, fields)?;
        self.throw_object(&exception)
    }

    pub(super) fn throw_undef_if_not(&mut self, name: brolga_ir::Name) -> Step<()> {
        let defined = self.truth_operand(0)?;
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
                    TypeKind::Function(function) => function.name,
                    _ => {
                        let ty = self.static_type(&val).unwrap_or(val.ty);
                        self.cx.names.intern(&self.types.display(ty).to_string())
                    }
                };
                let text = self.permanent(Address::String(text));
                call(self, RuntimeFn::PrintString, &[text]);
                return Ok(());
            }
            _ => return self.print_object(&val),
        };
        if self.form(val.ty)?.is_memory() {
            return self.print_object(&val);
        }
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
                let [below, high] = self.halves(leaf);
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
            _ => return self.print_object(&val),
        }
        Ok(())
    }

    fn print_object(&mut self, val: &Val) -> Step<()> {
        let object = self.object(val)?;
        self.emit(Op::CallRuntime(RuntimeFn::PrintAny), &[object], &[]);
        Ok(())
    }
}
