//! Calls of compiled code and of C.
//!
//! A call passes what the callee's own declaration says, not what the call happens to have: arguments are converted to the
//! declared types, then flattened as `brolga_ir::abi` rules. A result in memory form is written by the callee to a stack slot
//! of the caller, whose address goes first.
//!
//! **C.** Scalars pass as themselves, a struct with a single scalar inside as that scalar. Integers below 32 bits are widened
//! by their sign or by zeros, which is what every C convention here expects at the least. Larger structs are refused by name:
//! how they travel is a matter of each platform. Values behind the declared arguments only stay rooted, which means
//! nothing while nothing is on the heap.

use super::base::BaseCall;
use super::error::Refusal;
use super::value::{Leaves, Val};
use super::{Lowering, Reported, Step};
use brolga_ir::abi::{FormKind, LeafRole, NativeSignature, NotNative, Position};
use brolga_ir::base_fn::BaseFn;
use brolga_ir::effects::Effects;
use brolga_ir::func::{CalleeData, ForeignData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::method_symbol;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Callee, Foreign, FuncId, LowType, Op, Type, TypeKind, Value};
use std::rc::Rc;

/// A method as a caller needs it.
#[derive(Clone)]
pub(super) struct Target {
    callee: Callee,
    sig: Rc<NativeSignature>,
}

/// Whether a summary says all that the low form of a function does. What it reads or writes may be other memory there, and
/// arguments and results in memory are memory that it touches.
fn holds_in_low_ir(effects: &Effects, data: &CalleeData) -> bool {
    let CalleeData::Symbol { params, results, .. } = data else { return false };
    let in_registers = params.iter().chain(results).all(|ty| !matches!(ty.as_low(), Some(LowType::Ptr(_))));
    in_registers && (effects.reads | effects.writes).is_empty()
}

impl Lowering<'_> {
    pub(super) fn invoke(&mut self, callee: Callee) -> Step<()> {
        let CalleeData::Method { function, args, .. } = self.src.callee(callee) else {
            return Err(self.bad_operands());
        };
        let function = *function;
        if let Some(id) = self.unit.module.find_method(function, args) {
            if self.has_refused_operand() {
                return Err(Reported);
            }
            let count = self.src.args(self.at).len();
            let given = (1..count).map(|n| self.operand(n)).collect::<Step<Vec<Val>>>()?;
            let object = self.operand(0)?;
            let result = self.call(id, object, given)?;
            return self.define(result);
        }
        let base = match self.types.kind(function) {
            TypeKind::Function(name) => BaseFn::from_name(self.cx.names.text(*name)),
            _ => None,
        };
        match base {
            Some(base) => self.base_call(base, BaseCall { first: 1 }),
            None => {
                let call = method_symbol(self.cx, function, args);
                Err(self.report(Refusal::NoMethod { call }))
            }
        }
    }

    /// Calls the method of a plain function for these arguments.
    pub(super) fn call_method(&mut self, function: Type, args: &[Val]) -> Step<Val> {
        let types: Vec<Type> = args.iter().map(|a| a.ty).collect();
        match self.unit.module.find_method(function, &types) {
            Some(id) => self.call(id, Val::ghost(function), args.to_vec()),
            None => {
                let call = method_symbol(self.cx, function, &types);
                Err(self.report(Refusal::NoMethod { call }))
            }
        }
    }

    fn call(&mut self, id: FuncId, object: Val, mut args: Vec<Val>) -> Step<Val> {
        let Target { callee, sig } = self.target(id)?;
        let declared = &self.unit.module.func(id).sig;
        args.insert(0, object);
        if declared.vararg
            && let Some(collecting) = declared.params.last()
        {
            // The declaration fixes how many values the last argument collects.
            let fixed = declared.params.len() - 1;
            let rest = args.split_off(fixed.min(args.len()));
            args.push(self.aggregate(collecting.ty, &rest)?);
        }
        if args.len() != sig.params.len() {
            return Err(self.bad_operands());
        }
        let mut leaves: Vec<Value> = Vec::new();
        if sig.result.is_memory() {
            let slot = self.slot(sig.result.size, sig.result.align);
            leaves.push(self.slot_addr(slot));
        }
        for (arg, form) in args.into_iter().zip(&sig.params) {
            leaves.extend(self.convert(arg, form.ty)?.leaves);
        }
        let results: Vec<Type> = sig.low_results().collect();
        let call = self.emit(Op::CallSymbol(callee), &leaves, &results);
        self.calls = true;
        let ty = sig.result.ty;
        Ok(match leaves.first() {
            Some(&memory) if sig.result.is_memory() => Val::scalar(ty, memory),
            _ => Val { ty, leaves: self.out.results(call).collect() },
        })
    }

    /// The symbol and native signature of a method, made once for each function that calls it.
    fn target(&mut self, id: FuncId) -> Step<Target> {
        if let Some(known) = self.targets.get(&id) {
            return Ok(known.clone());
        }
        let module = self.unit.module;
        let sig = match NativeSignature::new(self.types, &module.func(id).sig) {
            Ok(sig) => Rc::new(sig),
            Err(errors) => {
                for (position, why) in errors {
                    self.not_callable(&module.symbol(id), position, why);
                }
                return Err(Reported);
            }
        };
        let data = CalleeData::Symbol {
            symbol: self.cx.names.intern(&module.symbol(id)),
            params: sig.low_params().collect(),
            results: sig.low_results().collect(),
        };
        let effects = module.func(id).summary.filter(|effects| holds_in_low_ir(effects, &data));
        let target = Target { callee: self.out.add_callee(data), sig };
        self.out.set_callee_effects(target.callee, effects);
        self.targets.insert(id, target.clone());
        Ok(target)
    }

    fn not_callable(&mut self, symbol: &str, position: Position, why: NotNative) {
        let part = match position {
            Position::Argument(n) => format!("argument {n}"),
            Position::Result => "the result".to_owned(),
        };
        let refusal = match why {
            NotNative::Heap(ty) => Refusal::Heap {
                what: format!("{part} of `{symbol}`, a value of type `{}`,", self.types.display(ty)),
            },
            _ => self.refusal_of(why),
        };
        self.report(refusal);
    }

    // ----- C -----

    pub(super) fn foreign_call(&mut self, foreign: Foreign) -> Step<()> {
        let data = self.src.foreign(foreign).clone();
        let mut args: Vec<Value> = Vec::new();
        if data.name.is_none() {
            let (address, _) = self.scalar_operand(0)?;
            args.push(self.bitcast(address, LowType::Ptr(brolga_ir::PtrClass::Raw)));
        }
        let first = args.len();
        let mut params: Vec<Type> = Vec::new();
        for (n, &ty) in data.params.iter().enumerate() {
            let scalar = self.c_scalar(ty, &data)?;
            let val = self.operand(first + n)?;
            let fits = self.find_form(val.ty).is_ok_and(|form| form.kind != FormKind::Memory);
            let leaf = match val.leaves[..] {
                [leaf] if fits && self.low(leaf) == scalar.0 => leaf,
                _ => return Err(self.bad_operands()),
            };
            let leaf = self.c_widen(leaf, scalar.1);
            params.push(self.out.ty(leaf));
            args.push(leaf);
        }
        let result = match self.find_form(data.result) {
            Ok(form) if form.leaves.is_empty() => None,
            _ => Some(self.c_scalar(data.result, &data)?),
        };
        let low = ForeignData {
            name: data.name,
            result: result.map_or(Type::NOTHING, |(low, _)| Type::low(low)),
            params: params.into(),
            variadic_after: data.variadic_after,
        };
        let results: Vec<Type> = result.iter().map(|&(low, _)| Type::low(low)).collect();
        let foreign = self.out.add_foreign(low);
        let call = self.emit(Op::ForeignCall(foreign), &args, &results);
        let mut leaves: Leaves = self.out.results(call).collect();
        if let (Some((_, Type::BOOL)), Some(leaf)) = (result, leaves.first_mut()) {
            *leaf = self.lowest_bit(*leaf);
        }
        self.define(Val { ty: data.result, leaves })
    }

    /// The register in which a value passes to or from C, and the scalar type that it holds.
    fn c_scalar(&mut self, ty: Type, data: &ForeignData) -> Step<(LowType, Type)> {
        let form = self.form(ty)?;
        match form.leaves[..] {
            [leaf] => match leaf.role {
                LeafRole::Value(scalar) if !matches!(form.kind, FormKind::Union(_)) => Ok((leaf.low, scalar)),
                _ => Err(self.c_refuse(ty, data)),
            },
            _ => Err(self.c_refuse(ty, data)),
        }
    }

    fn c_refuse(&mut self, ty: Type, data: &ForeignData) -> Reported {
        let callee = data.name.map_or("a C function at an address", |name| self.cx.names.text(name));
        let what = format!("passing a `{}` by value to or from `{callee}`", self.types.display(ty));
        self.report(Refusal::Unsupported { what })
    }

    /// An integer below 32 bits, widened by what its type says of its sign.
    fn c_widen(&mut self, leaf: Value, ty: Type) -> Value {
        if !matches!(self.low(leaf), LowType::I8 | LowType::I16) {
            return leaf;
        }
        let signed = matches!(self.types.primitive(ty), Some((_, PrimitiveRepr::Signed)));
        let op = if signed { Intrinsic::SextInt } else { Intrinsic::ZextInt };
        self.value(Op::Intrinsic(op), &[leaf], Type::I32)
    }
}
