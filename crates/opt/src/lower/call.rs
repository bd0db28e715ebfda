//! Calls of compiled code and of C.
//!
//! The callee's declaration determines the form of arguments, not the types at the call: arguments are converted to the
//! declared types, then flattened by `brolga_ir::abi`. The callee writes a result in memory form to a stack slot
//! of the caller, whose address is the first argument.
//!
//! **C.** Scalars are passed as themselves, a struct with a single scalar inside as that scalar. Integers below 32 bits are sign-
//! or zero-extended, the least that every C convention here expects. Larger structs: `c_struct.rs`; unsupported ones are refused by name.
//! Tracked objects among the arguments and the values after the declared arguments are operands as well, and stay rooted
//! during the call.

use super::base::BaseCall;
use super::c_struct::{Back, Registers};
use super::ends::end_operands;
use super::error::Refusal;
use super::value::{Leaves, Val};
use super::{Beside, Lowering, Reported, Step};
use brolga_ir::abi::{FormKind, LeafRole, NativeSignature, NotNative, Position};
use brolga_ir::base_fn::BaseFn;
use brolga_ir::constant::Address;
use brolga_ir::effects::{ArgFlow, Effects, Summary};
use brolga_ir::func::{CalleeData, ForeignData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{
    Callee, Foreign, Func, FuncId, LowType, Name, Op, PtrClass, RuntimeFn, Type, TypeKind, Value,
};
use std::rc::Rc;

/// Where the bytes of a string begin.
pub(super) const STRING_BYTES: i64 = 8;

/// The functions of Julia's run time that programs may call.
const JULIA_FUNCTIONS: &[&str] = &[
    "jl_alloc_array_1d",
    "jl_alloc_array_2d",
    "jl_alloc_array_3d",
    "jl_new_array",
    "jl_alloc_genericmemory",
    "jl_array_grow_end",
    "jl_array_grow_beg",
    "jl_array_grow_at",
    "jl_array_del_end",
    "jl_array_del_beg",
    "jl_array_del_at",
    "jl_array_sizehint",
    "jl_array_ptr",
    "jl_string_ptr",
    "jl_symbol_name",
    "jl_value_ptr",
    "jl_alloc_string",
    "jl_pchar_to_string",
    "jl_cstr_to_string",
    "jl_string_to_array",
    "jl_string_to_genericmemory",
    "jl_array_to_string",
    "jl_genericmemory_to_string",
    "jl_array_copy",
    "jl_genericmemory_copy",
    "jl_genericmemory_copy_slice",
    "jl_array_ptr_copy",
    "jl_genericmemory_copyto",
    "jl_array_isassigned",
    "jl_reshape_array",
    "jl_symbol_n",
    "jl_try_substrtod",
    "jl_try_substrtof",
    "jl_object_id",
    "jl_eqtable_get",
    "jl_eqtable_put",
    "jl_eqtable_pop",
    "jl_eqtable_nextind",
    "jl_idtable_rehash",
    "jl_gf_invoke_lookup",
    "jl_types_equal",
    "jl_get_world_counter",
    "jl_rethrow",
    "jl_rethrow_other",
];

/// Whether a function of Julia's run time has this name.
pub fn is_julia_function(name: &str) -> bool {
    JULIA_FUNCTIONS.contains(&name)
}

/// A method as a caller needs it.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) callee: Callee,
    pub(super) sig: Rc<NativeSignature>,
}

/// Whether a summary covers all effects of a function's low form, which may read and write other memory: arguments and
/// results in memory, for example.
fn holds_in_low_ir(effects: &Effects, data: &CalleeData) -> bool {
    let CalleeData::Symbol { params, results, .. } = data else { return false };
    let in_registers = params.iter().chain(results).all(|ty| !matches!(ty.as_low(), Some(LowType::Ptr(_))));
    in_registers && (effects.reads | effects.writes).is_empty()
}

/// The fates of the low arguments: each has the fate of the argument that it is a part of. An exception may hold any.
fn leaf_flow(effects: &Effects, args: &ArgFlow, sig: &NativeSignature) -> ArgFlow {
    if !effects.nothrow {
        return ArgFlow::ANY;
    }
    let mut low = ArgFlow::ANY;
    let first = usize::from(sig.result.is_memory());
    let parts = sig.params.iter().enumerate().flat_map(|(n, form)| form.low_types().map(move |_| n));
    for (at, n) in parts.enumerate().map(|(at, n)| (at + first, n)).take_while(|&(at, _)| at < 64) {
        for (bits, is_so) in [
            (&mut low.captured, args.captures(n)),
            (&mut low.returned, args.returns(n)),
            (&mut low.written, args.writes(n)),
        ] {
            *bits &= !(u64::from(!is_so) << at);
        }
    }
    ArgFlow { elsewhere: args.elsewhere, ..low }
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
            // A callee that never returns, although the call declares a result that later rows use.
            let declared = self.src.result(self.at).map(|result| self.src.ty(result));
            let result = match declared.filter(|&ty| result.ty == Type::BOTTOM && ty != Type::BOTTOM) {
                Some(ty) => self.undefined(ty)?,
                None => result,
            };
            return self.define(result);
        }
        let unit = self.unit;
        let is_called =
            |beside: &&Beside<'_>| beside.func.sig.params.first().is_some_and(|object| object.ty == function);
        if let Some(&Beside { func, symbol }) = unit.beside.iter().find(is_called) {
            if self.has_refused_operand() {
                return Err(Reported);
            }
            let target = self.make_target(func, symbol)?;
            let given = self.operands_from(0)?;
            let result = self.call_target(target, given)?;
            return self.define(result);
        }
        let base = match self.types.kind(function) {
            TypeKind::Function(name) => BaseFn::from_name(self.cx.names.text(name.name)),
            _ => None,
        };
        match base {
            Some(base) => self.base_call(base, BaseCall { first: 1 }),
            // As if it were unknown at compile time.
            None => self.dynamic_call(),
        }
    }

    /// Calls a method of the module for an object and arguments.
    pub(super) fn call(&mut self, id: FuncId, object: Val, mut args: Vec<Val>) -> Step<Val> {
        let declared = &self.unit.module[id].sig;
        args.insert(0, object);
        if declared.vararg
            && let Some(collecting) = declared.params.last()
        {
            let fixed = declared.params.len() - 1;
            let rest = args.split_off(fixed.min(args.len()));
            args.push(self.collected(collecting.ty, &rest)?);
        }
        self.call_declared(id, args)
    }

    /// The tuple that the last argument of a method collects, which may not be the declared type.
    fn collected(&mut self, ty: Type, rest: &[Val]) -> Step<Val> {
        let exact = self.tuple_type(rest)?;
        if self.types.is_concrete(exact) {
            let ty = if self.types.is_subtype(exact, ty) && self.types.is_concrete(ty) { ty } else { exact };
            return self.aggregate(ty, rest);
        }
        let object = self.dynamic_tuple(rest)?;
        Ok(Val::scalar(exact, object))
    }

    /// Calls a method of the module with one value for each declared argument, the object first.
    pub(super) fn call_declared(&mut self, id: FuncId, args: Vec<Val>) -> Step<Val> {
        let target = self.target(id)?;
        self.call_target(target, args)
    }

    fn call_target(&mut self, Target { callee, sig }: Target, args: Vec<Val>) -> Step<Val> {
        if args.len() != sig.params.len() {
            return Err(self.bad_operands());
        }
        let mut leaves: Vec<Value> = Vec::new();
        if sig.result.is_memory() {
            let slot = self.slot(sig.result.size, sig.result.align);
            leaves.push(self.slot_addr(slot));
        }
        for (arg, form) in args.into_iter().zip(&sig.params) {
            leaves.extend(self.asserted(&arg, form.ty)?.leaves);
        }
        let results: Vec<Type> = sig.low_results().collect();
        let call = self.emit(Op::CallSymbol(callee), &leaves, &results);
        self.calls = true;
        let ty = sig.result.ty;
        self.note_array_result(call, ty);
        Ok(match leaves.first() {
            Some(&memory) if sig.result.is_memory() => Val::scalar(ty, memory),
            _ => Val { ty, leaves: self.out.results(call).collect() },
        })
    }

    /// The symbol and native signature of a method, made once for each function that calls it.
    pub(super) fn target(&mut self, id: FuncId) -> Step<Target> {
        if let Some(known) = self.targets.get(&id) {
            return Ok(known.clone());
        }
        let called = &self.unit.module[id];
        let symbol = self.cx.names.intern(&called.symbol(self.cx));
        let target = self.make_target(called, symbol)?;
        self.targets.insert(id, target.clone());
        Ok(target)
    }

    fn make_target(&mut self, called: &Func, symbol: Name) -> Step<Target> {
        let sig = match NativeSignature::new(self.types, &called.sig) {
            Ok(sig) => Rc::new(sig),
            Err(errors) => {
                for (position, why) in errors {
                    self.not_callable(self.cx.names.text(symbol), position, why);
                }
                return Err(Reported);
            }
        };
        let data = CalleeData::Symbol {
            symbol,
            params: sig.low_params().collect(),
            results: sig.low_results().collect(),
        };
        let summary = called.summary.map(|Summary { effects, args }| {
            let args = leaf_flow(&effects, &args, &sig);
            // Low IR boxes where high IR has values, so it may collect.
            let effects = match holds_in_low_ir(&effects, &data) {
                true => Effects { may_safepoint: true, ..effects },
                false => Effects::ANY,
            };
            Summary { effects, args }
        });
        let target = Target { callee: self.out.add_callee(data), sig };
        self.out.set_callee_summary(target.callee, summary);
        Ok(target)
    }

    fn not_callable(&mut self, symbol: &str, position: Position, why: NotNative) {
        let part = match position {
            Position::Argument(n) => format!("argument {n}"),
            Position::Result => "the result".to_owned(),
        };
        let why = why.display(self.types).to_string();
        self.report(Refusal::Form { why: format!("{part} of `{symbol}`: {why}") });
    }

    // ----- C -----

    pub(super) fn foreign_call(&mut self, foreign: Foreign) -> Step<()> {
        let data = self.src.foreign(foreign).clone();
        if let Some(name) = data.name
            && self.julia_call(name, &data)?
        {
            return Ok(());
        }
        let mut args: Vec<Value> = Vec::new();
        if data.name.is_none() {
            let (address, _) = self.scalar_operand(0)?;
            args.push(self.bitcast(address, LowType::Ptr(brolga_ir::PtrClass::Raw)));
        }
        let first = args.len();
        let mut params: Vec<Type> = Vec::new();
        let mut roots = Leaves::new();
        let mut registers = Registers::new(self.arch);
        let back = self.c_struct_back(data.result)?;
        if let Some(Back::Hidden(slot)) = back {
            registers.take_int();
            params.push(Type::PTR);
            args.push(self.slot_addr(slot));
        }
        for (n, &ty) in data.params.iter().enumerate() {
            let val = self.operand(first + n)?;
            if self.form(ty)?.is_object() {
                let object = self.object(&val)?;
                roots.push(object);
                registers.take_int();
                params.push(Type::TRACKED);
                args.push(object);
                continue;
            }
            if self.is_c_struct(ty) {
                let val = self.checked(&val, ty)?;
                match self.pass_struct(&val, &mut registers)? {
                    Some(passed) => {
                        let (tys, values): (Vec<Type>, Vec<Value>) = passed.into_iter().unzip();
                        params.extend(tys);
                        args.extend(values);
                        continue;
                    }
                    None => return Err(self.c_refuse(ty, &data)),
                }
            }
            let scalar = self.c_scalar(ty, &data)?;
            let fits = self.find_form(val.ty).is_ok_and(|form| form.kind != FormKind::Memory);
            let leaf = match val.leaves[..] {
                [leaf] if fits && self.low(leaf) == scalar.0 => leaf,
                _ => return Err(self.bad_operands()),
            };
            let leaf = self.c_widen(leaf, scalar.1);
            registers.take_scalar(self.low(leaf));
            params.push(self.out.ty(leaf));
            args.push(leaf);
        }
        let result = match self.find_form(data.result) {
            _ if back.is_some() => None,
            Ok(form) if form.leaves.is_empty() => None,
            Ok(form) if form.is_object() => Some((LowType::Ptr(PtrClass::Raw), data.result)),
            _ => Some(self.c_scalar(data.result, &data)?),
        };
        let mut results: Vec<Type> = result.iter().map(|&(low, _)| Type::low(low)).collect();
        if let Some(Back::Registers(parts)) = &back {
            results.extend(parts.iter().map(|&(_, low)| Type::low(low)));
        }
        let low_result = match results[..] {
            [] => Type::NOTHING,
            [only] => only,
            _ => self.register_types(&results)?,
        };
        let low = ForeignData {
            name: data.name,
            result: low_result,
            params: params.into(),
            variadic_after: data.variadic_after,
        };
        for val in self.operands_from(first + data.params.len())? {
            roots.extend(val.leaves.into_iter().filter(|&leaf| self.out.ty(leaf) == Type::TRACKED));
        }
        args.extend(roots);
        let foreign = self.out.add_foreign(low);
        let call = self.emit(Op::ForeignCall(foreign), &args, &results);
        let mut leaves: Leaves = self.out.results(call).collect();
        if let Some(back) = back {
            let val = self.struct_back(data.result, back, &leaves)?;
            self.carried_exception();
            return self.define(val);
        }
        // The check follows the call immediately, as code generation expects; only an object is tracked before it.
        if let (Some((_, ty)), Some(leaf)) = (result, leaves.first_mut())
            && self.form(ty)?.is_object()
        {
            *leaf = self.bitcast(*leaf, LowType::Ptr(PtrClass::Tracked));
        }
        self.carried_exception();
        if let (Some((_, Type::BOOL)), Some(leaf)) = (result, leaves.first_mut()) {
            *leaf = self.lowest_bit(*leaf);
        }
        // A function that is declared not to return, and does: its result is tested as the result of any other call.
        let ty = if data.result == Type::BOTTOM { Type::NOTHING } else { data.result };
        self.define(Val { ty, leaves })
    }

    /// A function of Julia's run time; whether it is one.
    fn julia_call(&mut self, name: Name, data: &ForeignData) -> Step<bool> {
        let text = self.cx.names.text(name);
        if !is_julia_function(text) {
            return Ok(false);
        }
        let args = (0..data.params.len()).map(|n| self.operand(n)).collect::<Step<Vec<Val>>>()?;
        match (text, &args[..]) {
            ("jl_rethrow", []) => {
                self.throw(RuntimeFn::Rethrow, &[]);
                return Ok(true);
            }
            ("jl_rethrow_other", [exception]) => {
                self.throw_object(exception)?;
                return Ok(true);
            }
            _ => {}
        }
        if let Some(val) = self.julia_in_place(text, data.result, &args)? {
            self.define(val)?;
            return Ok(true);
        }
        let mut all = vec![Val::scalar(Type::SYMBOL, self.permanent(Address::Symbol(name)))];
        all.extend(args);
        let result = self.call_args(RuntimeFn::JuliaCall, &all)?;
        let result = self.asserted(&result, data.result)?;
        self.define(result)?;
        Ok(true)
    }

    /// The functions of Julia's run time that need no call, where the types are known.
    fn julia_in_place(&mut self, name: &str, result: Type, args: &[Val]) -> Step<Option<Val>> {
        let is_address = self.types.pointee(result).is_some();
        Ok(match (name, args) {
            ("jl_alloc_array_1d", [ty, length]) if length.ty == Type::INT64 => {
                let Some(ty) = self.static_type(ty) else { return Ok(None) };
                let (Some((elem, 1)), &[length]) = (self.types.array_parts(ty), &length.leaves[..]) else {
                    return Ok(None);
                };
                Some(Val::scalar(ty, self.new_vector(ty, elem, length)?))
            }
            ("jl_alloc_array_2d" | "jl_alloc_array_3d", [ty, dims @ ..])
                if dims.iter().all(|dim| dim.ty == Type::INT64) =>
            {
                let Some(ty) = self.static_type(ty) else { return Ok(None) };
                let sizes: Leaves = dims.iter().flat_map(|dim| dim.leaves.iter().copied()).collect();
                match self.types.array_parts(ty) {
                    Some((elem, rank)) if rank as usize == sizes.len() => {
                        Some(Val::scalar(ty, self.new_array_of(ty, elem, &sizes)?))
                    }
                    _ => None,
                }
            }
            ("jl_alloc_string", [length]) if self.is_word(length) => {
                let text =
                    self.value(Op::CallRuntime(RuntimeFn::GcString), &[length.leaves[0]], Type::TRACKED);
                Some(Val::scalar(Type::STRING, text))
            }
            ("jl_array_grow_end" | "jl_array_del_end" | "jl_array_del_beg", [vector, count])
                if result == Type::NOTHING && self.is_word(count) =>
            {
                let Some((array, elem, count)) = end_operands(self, vector, count) else { return Ok(None) };
                let entry = match name {
                    "jl_array_grow_end" => RuntimeFn::ArrayGrowEnd,
                    "jl_array_del_end" => RuntimeFn::ArrayDelEnd,
                    _ => RuntimeFn::ArrayDelBeg,
                };
                self.change_end(entry, array, elem, count)?;
                Some(Val::ghost(Type::NOTHING))
            }
            ("jl_object_id", [value]) if result == Type::UINT64 => {
                let object = self.object(value)?;
                let id = self.value(Op::CallRuntime(RuntimeFn::ObjectId), &[object], Type::I64);
                Some(Val::scalar(result, id))
            }
            // A hint, which is ignored here.
            ("jl_array_sizehint", [vector, _])
                if result == Type::NOTHING && self.types.array_parts(vector.ty).is_some() =>
            {
                Some(Val::ghost(Type::NOTHING))
            }
            ("jl_alloc_genericmemory", [ty, length]) if self.is_word(length) => {
                let Some(ty) = self.static_type(ty) else { return Ok(None) };
                if self.types.memory_element(ty).is_none() {
                    return Ok(None);
                }
                Some(Val::scalar(ty, self.new_memory(ty, length.leaves[0])))
            }
            ("jl_array_ptr", [array]) if is_address => {
                match (self.types.array_parts(array.ty), &array.leaves[..]) {
                    (Some(_), &[array]) => Some(Val::scalar(result, self.array_address(array))),
                    _ => None,
                }
            }
            ("jl_string_ptr" | "jl_symbol_name", [text]) if is_address => match (text.ty, &text.leaves[..]) {
                (Type::STRING | Type::SYMBOL, &[object]) => {
                    let address = self.value(Op::PointerFromObjref, &[object], Type::PTR);
                    Some(Val::scalar(result, self.moved(address, STRING_BYTES)))
                }
                _ => None,
            },
            ("jl_value_ptr", [val]) if is_address => {
                let object = self.object(val)?;
                Some(Val::scalar(result, self.value(Op::PointerFromObjref, &[object], Type::PTR)))
            }
            _ => self.copied_bytes(name, args)?,
        })
    }

    /// Whether a value is an integer of 64 bits.
    fn is_word(&self, val: &Val) -> bool {
        matches!(self.types.primitive(val.ty), Some((64, PrimitiveRepr::Signed | PrimitiveRepr::Unsigned)))
            && val.leaves.len() == 1
    }

    /// The register in which a value passes to or from C, and the scalar type that it holds.
    pub(super) fn c_scalar(&mut self, ty: Type, data: &ForeignData) -> Step<(LowType, Type)> {
        let form = self.form(ty)?;
        match form.leaves[..] {
            [leaf] => match leaf.role {
                LeafRole::Value(scalar) if !matches!(form.kind, FormKind::Union(_)) => Ok((leaf.low, scalar)),
                _ => Err(self.c_refuse(ty, data)),
            },
            _ => Err(self.c_refuse(ty, data)),
        }
    }

    pub(super) fn c_refuse(&mut self, ty: Type, data: &ForeignData) -> Reported {
        let callee = data.name.map_or("a C function at an address", |name| self.cx.names.text(name));
        let what = format!("passing a `{}` by value to or from `{callee}`", self.types.display(ty));
        self.report(Refusal::Unsupported { what })
    }

    /// An integer below 32 bits, extended according to the signedness of its type.
    fn c_widen(&mut self, leaf: Value, ty: Type) -> Value {
        if !matches!(self.low(leaf), LowType::I8 | LowType::I16) {
            return leaf;
        }
        let signed = matches!(self.types.primitive(ty), Some((_, PrimitiveRepr::Signed)));
        let op = if signed { Intrinsic::SextInt } else { Intrinsic::ZextInt };
        self.value(Op::Intrinsic(op), &[leaf], Type::I32)
    }
}
