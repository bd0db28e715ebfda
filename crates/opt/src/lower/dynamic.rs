//! Dynamic calls.
//!
//! ```text
//! (f)(x, 1)::Any              %1 = call_args(brolga_apply, f, x, boxed 1)
//! getfield(x::Any, :a)        %1 = call_args(brolga_apply, getfield, x, :a)        the builtin as a function object
//! ```
//!
//! Operands and result are objects. The result is tested against the statement's type.
//!
//! **Boxed entries.** The run time calls a method by its boxed entry, which takes an array of objects, the function object first:
//!
//! ```text
//! f(Int64, String…)#boxed(ptr args, i64 n) -> tracked
//!     x = unbox [args + 8]; rest = brolga_tuple(args + 16, n - 2)
//!     return box f(Int64, String…)(x, rest)
//! ```
//!
//! Its caller has checked that the objects are of the declared types, and keeps them alive.

use super::addr::Addr;
use super::error::{At, LowerError, LowerErrors, Refusal};
use super::value::{Leaves, Val};
use super::{Lowering, Step, Unit};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::{Place, Signature};
use brolga_ir::function_name::BOXED_ENTRY;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{
    Const, Func, FuncId, Level, LowType, Module, Op, Param, PtrClass, RuntimeFn, Type, TypeKind, Value,
};

/// The boxed entry of a high function of a module, which may be declared only: its form for callers without its signature.
pub fn boxed_entry(module: &Module, id: FuncId) -> Result<Func, LowerErrors> {
    Unit::new(module, &[]).boxed_entry(id)
}

/// The symbol of the boxed entry of the function with this symbol.
pub fn boxed_symbol(symbol: &str) -> String {
    format!("{symbol}{BOXED_ENTRY}")
}

impl Unit<'_> {
    fn boxed_entry(&self, id: FuncId) -> Result<Func, LowerErrors> {
        let found = self.module.func(id);
        let name = found.map_or_else(|| id.to_string(), |func| func.symbol(&self.module.cx));
        let name = boxed_symbol(&name);
        let refused = |what: &'static str| LowerErrors {
            function: name.clone(),
            errors: vec![LowerError {
                at: At::Result,
                place: Place::default(),
                why: Refusal::Malformed { what },
            }],
        };
        let Some(func) = found else { return Err(refused("the function is another module's")) };
        if func.level == Level::Low {
            return Err(refused("a function of low IR takes no objects"));
        }
        let param = |ty| Param { name: None, ty };
        let sig = Signature {
            params: vec![param(Type::PTR), param(Type::I64)],
            results: vec![Type::TRACKED],
            vararg: false,
            ..Signature::default()
        };
        let out = Func::new(self.module.cx.names.intern(&name), Level::Low, sig);
        let mut lowering = Lowering::new(self, func, out);
        let block = lowering.out.make_block();
        lowering.out.append_block(block);
        lowering.cur = block;
        // The refusal was reported.
        let _ = lowering.boxed_body(id);
        match lowering.errors.is_empty() {
            true => Ok(lowering.out),
            false => Err(LowerErrors { function: name, errors: lowering.errors }),
        }
    }
}

impl Lowering<'_> {
    fn boxed_body(&mut self, id: FuncId) -> Step<()> {
        let declared = &self.src.sig;
        let (array, count) = match self.out.params() {
            &[array, count] => (array, count),
            _ => return Err(self.bad_operands()),
        };
        let mut args = Vec::with_capacity(declared.params.len());
        for (n, param) in declared.params.iter().enumerate() {
            let at = 8 * n as u32;
            let object = if declared.vararg && n + 1 == declared.params.len() {
                let rest = self.moved(array, i64::from(at));
                let before = self.word(n as i64);
                let count = self.binary(Intrinsic::SubInt, count, before, LowType::I64);
                self.value(Op::CallRuntime(RuntimeFn::Tuple), &[rest, count], Type::TRACKED)
            } else {
                let addr = Addr::own(array, 8, Region::Frame).at(at);
                self.load_low(addr, 0, LowType::Ptr(PtrClass::Tracked))
            };
            args.push(self.unbox(object, param.ty)?);
        }
        let result = self.call_declared(id, args)?;
        let result = self.object(&result)?;
        self.terminate(Op::Return, &[result], &[]);
        Ok(())
    }

    /// Calls the first value with the others, by dispatch.
    pub(super) fn apply(&mut self, all: &[Val]) -> Step<Val> {
        self.call_args(RuntimeFn::Apply, all)
    }

    /// Calls an entry point of the run time that takes objects.
    pub(super) fn call_args(&mut self, entry: RuntimeFn, all: &[Val]) -> Step<Val> {
        let objects = all.iter().map(|val| self.object(val)).collect::<Step<Leaves>>()?;
        let call = self.emit(Op::CallArgs(entry), &objects, &[Type::TRACKED]);
        if let Some(hint) = self.src.hint(self.at) {
            self.out.set_hint(call, hint.clone());
        }
        let result = self.out.result(call).unwrap_or_else(|| self.out.constant(Const::Undef(Type::TRACKED)));
        self.calls = true;
        Ok(Val::scalar(Type::ANY, result))
    }

    /// All operands of the current statement from `first` on.
    pub(super) fn operands_from(&mut self, first: usize) -> Step<Vec<Val>> {
        (first..self.src.args(self.at).len()).map(|n| self.operand(n)).collect()
    }

    /// A call whose callee is the first operand.
    pub(super) fn dynamic_call(&mut self) -> Step<()> {
        let all = self.operands_from(0)?;
        let result = self.apply(&all)?;
        self.define(result)
    }

    /// The current statement as a call of the run time, which does what the builtin does.
    pub(super) fn call_builtin(&mut self, op: Builtin) -> Step<()> {
        if let Some(why) = op.refusal() {
            return Err(self.report(Refusal::Refused { why }));
        }
        let operands = self.operands_from(0)?;
        if let Some(read) = self.open_tuple(op, &operands) {
            return self.define(read);
        }
        if let (Builtin::Getfield, [of, field]) = (op, &operands[..]) {
            let (of, field) = (self.object(of)?, self.object(field)?);
            let result = self.value(Op::CallRuntime(RuntimeFn::GetField), &[of, field], Type::TRACKED);
            self.calls = true;
            return self.define(Val::scalar(Type::ANY, result));
        }
        let mut all = vec![Val::ghost(self.types.base_function(op.name()))];
        all.extend(operands);
        let result = self.call_args(RuntimeFn::ApplyBuiltin, &all)?;
        self.define(result)
    }

    /// Reads the length or an element of a tuple of collected arguments, whose type is known at run time only. No operand needs a box.
    fn open_tuple(&mut self, op: Builtin, operands: &[Val]) -> Option<Val> {
        let (of, rest) = operands.split_first()?;
        let TypeKind::Tuple { vararg: Some(_), .. } = self.types.kind(of.ty) else { return None };
        let (&[tuple], true) = (&of.leaves[..], self.out.ty(*of.leaves.first()?) == Type::TRACKED) else {
            return None;
        };
        match (op, rest) {
            (Builtin::Nfields, []) => {
                let length = self.value(Op::CallRuntime(RuntimeFn::TupleLength), &[tuple], Type::I64);
                Some(Val::scalar(Type::INT64, length))
            }
            // Bounds are checked whatever the flag says.
            (Builtin::Getfield, [index] | [index, Val { ty: Type::BOOL, .. }]) if index.ty == Type::INT64 => {
                let &[index] = &index.leaves[..] else { return None };
                let read = Op::CallRuntime(RuntimeFn::TupleElement);
                let element = self.value(read, &[tuple, index], Type::TRACKED);
                self.calls = true;
                Some(Val::scalar(Type::ANY, element))
            }
            _ => None,
        }
    }

    /// The builtins that call a function.
    pub(super) fn calling_builtin(&mut self, op: Builtin) -> Step<()> {
        match op {
            Builtin::ApplyIterate => {
                let all = self.operands_from(0)?;
                let result = self.call_args(RuntimeFn::ApplyIterate, &all)?;
                self.define(result)
            }
            Builtin::Invokelatest => {
                let all = self.operands_from(0)?;
                let result = self.call_args(RuntimeFn::ApplyLatest, &all)?;
                self.define(result)
            }
            Builtin::Invoke => {
                let (function, signature) = (self.operand(0)?, self.operand(1)?);
                let types = self.types;
                let signature = self.static_type(&signature).and_then(|ty| types.tuple_elements(ty));
                let args = self.operands_from(2)?;
                let fits = |wanted: &[Type]| {
                    wanted.len() == args.len()
                        && args.iter().zip(wanted).all(|(arg, &ty)| types.is_subtype(arg.ty, ty))
                };
                // The run time throws if an argument is not of the signature.
                let method = match signature {
                    Some(wanted) if types.is_concrete(function.ty) && fits(wanted) => {
                        self.unit.module.find_method(function.ty, wanted)
                    }
                    _ => None,
                };
                let Some(id) = method else { return self.call_builtin(op) };
                let result = self.call(id, function, args)?;
                self.define(result)
            }
            _ => self.call_builtin(op),
        }
    }

    /// The values of a tuple whose element types are not all known.
    pub(super) fn dynamic_tuple(&mut self, elements: &[Val]) -> Step<Value> {
        let tuple = self.call_args(RuntimeFn::Tuple, elements)?;
        tuple.leaves.first().copied().ok_or_else(|| self.bad_operands())
    }
}
