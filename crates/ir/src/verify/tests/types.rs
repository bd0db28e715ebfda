//! Types of both levels, and calls.

use super::super::*;
use super::Bench;
use crate::builtin::Builtin;
use crate::entity::Slot;
use crate::func::{CalleeData, ForeignData, Param, Signature, SlotData};
use crate::intrinsic::Intrinsic;
use crate::module::{Global, GlobalKind, Literal};
use crate::op::{Access, Op, Ordering, Region};
use crate::types::{DeclKind, FieldDecl, PtrClass};
use cranelift_entity::EntityRef;
use std::sync::Arc;

fn node(cx: &Context) -> Type {
    let decl = cx.types.declare(cx.names.intern("Node"), &[]).unwrap();
    let field = |name, ty| FieldDecl::new(cx.names.intern(name), ty);
    let fixed = FieldDecl { is_const: true, ..field("id", Type::INT64) };
    let fields = [field("val", Type::INT64), field("any", Type::ANY), fixed].into();
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields }).unwrap();
    cx.types.nominal(decl, &[]).unwrap()
}

// ----- types of high IR -----

#[test]
fn statements() {
    let mut b = Bench::high(&[Type::INT64, Type::FLOAT64, Type::ANY], Type::INT64);
    let [entry, next, end] = b.blocks();
    let (int, float, any) = (b.arg(1), b.arg(2), b.arg(3));
    b.bottom(entry).branch(int, next, end);
    b.bottom(next).ins_value(Op::Pi, &[int], Type::FLOAT64);
    b.bottom(next).ins_value(Op::Pi, &[any], Type::FLOAT64);
    b.bottom(next).goto(end);
    b.bottom(end).ins_with_blocks(Op::Phi, &[float, int], &[entry, next], &[Type::INT64]);
    b.bottom(end).ret(&[float]);
    b.expect(&[
        "type-operand: operand 1 of `goto … if not` has the type `Int64`, not `Bool`",
        "type-result: `π` returns `Int64`, not `Float64`",
        "type-operand: operand 1 of `φ` has the type `Float64`, not `Int64`",
        "type-operand: operand 1 of `return` has the type `Float64`, not `Int64`",
    ]);
}

#[test]
fn types_are_values_of_their_type() {
    let cx = Context::new();
    let of_int = cx.types.type_of(Type::INT64).unwrap();
    let mut b = Bench::over(cx, Level::High, &[], &[of_int]);
    let right = b.func.constant(b.cx.types.type_constant(Type::INT64));
    let wrong = b.func.constant(b.cx.types.type_constant(Type::INT32));
    let ret = b.ret(right);
    b.expect(&[]);
    b.func.args_mut(ret)[0] = wrong;
    b.expect(&["type-operand: operand 1 of `return` has the type `DataType`, not `Type{Int64}`"]);
}

#[test]
fn arithmetic() {
    use Intrinsic::*;
    let mut b = Bench::high(&[Type::INT64, Type::UINT64, Type::FLOAT64, Type::STRING], Type::NOTHING);
    let (int, uint, float, text) = (b.arg(1), b.arg(2), b.arg(3), b.arg(4));
    let ptr = b.cx.types.ptr(Type::INT64).unwrap();
    b.op(Op::Intrinsic(AddInt), &[int, int], Type::INT64);
    b.op(Op::Intrinsic(AddInt), &[int, uint], Type::INT64);
    b.op(Op::Intrinsic(AddInt), &[int, int], Type::INT32);
    b.op(Op::Intrinsic(AddFloat), &[int, int], Type::INT64);
    b.op(Op::Intrinsic(NotInt), &[text], Type::STRING);
    b.op(Op::Intrinsic(SltInt), &[int, int], Type::INT64);
    b.op(Op::Intrinsic(ShlInt), &[int, uint], Type::INT64);
    b.op(Op::Intrinsic(SextInt), &[int], Type::INT32);
    b.op(Op::Intrinsic(Sitofp), &[float], Type::FLOAT64);
    b.op(Op::Intrinsic(Bitcast), &[float], Type::UINT64);
    let address = b.op(Op::Intrinsic(Bitcast), &[uint], ptr);
    b.op(Op::Intrinsic(CheckedSaddInt), &[int, int], Type::INT64);
    b.op(Op::Intrinsic(Pointerref), &[int, int, int], Type::INT64);
    b.op(Op::Intrinsic(Pointerref), &[address, int, int], Type::FLOAT64);
    b.op(Op::Intrinsic(Pointerset), &[address, float, int, int], ptr);
    b.op(Op::Intrinsic(AddInt), &[address, address], ptr);
    b.op(Op::Intrinsic(EqInt), &[address, address], Type::BOOL);
    b.op(Op::Intrinsic(AddPtr), &[address, uint], ptr);
    b.op(Op::Intrinsic(AddPtr), &[int, uint], Type::INT64);
    let relaxed = b.sym("relaxed");
    b.op(Op::Intrinsic(AtomicPointerref), &[address, relaxed], Type::INT64);
    let nothing = b.nothing();
    b.ret(nothing);
    b.expect(&[
        "type-unequal: `add_int` takes operands of one type, but operand 1 is `Int64` and operand 2 is `UInt64`",
        "type-result: `add_int` returns `Int64`, not `Int32`",
        "type-operand: operand 1 of `add_float` has the type `Int64`, not another kind of number",
        "type-operand: operand 1 of `not_int` has the type `String`, not a primitive type",
        "type-result: `slt_int` returns `Bool`, not `Int64`",
        "type-result: `sext_int` returns a type that fits the operands, not `Int32`",
        "type-operand: operand 1 of `sitofp` has the type `Float64`, not another kind of number",
        "type-result: `checked_sadd_int` returns `Tuple{Int64, Bool}`, not `Int64`",
        "type-operand: operand 1 of `pointerref` has the type `Int64`, not a `Ptr`",
        "type-result: `pointerref` returns `Int64`, not `Float64`",
        "type-operand: operand 2 of `pointerset` has the type `Float64`, not `Int64`",
        "type-operand: operand 1 of `add_int` has the type `Ptr{Int64}`, not an integer or float",
        "type-operand: operand 1 of `add_ptr` has the type `Int64`, not a pointer",
        "type-order: `:relaxed` is not a memory order",
    ]);
}

#[test]
fn objects() {
    let cx = Context::new();
    let node = node(&cx);
    let pair = cx.types.tuple(&[Type::INT64, Type::INT64]).unwrap();
    let vector = cx.types.vector(Type::INT64).unwrap();
    let mut b = Bench::over(cx.clone(), Level::High, &[node, Type::FLOAT64, pair, vector], &[Type::NOTHING]);
    let (object, float, tuple, array) = (b.arg(1), b.arg(2), b.arg(3), b.arg(4));
    let [val, id, none, size] = ["val", "id", "none", "size"].map(|n| b.sym(n));
    let three = b.int(Type::INT64, 3);
    let nothing = b.nothing();
    let (get, set) = (Op::Builtin(Builtin::Getfield), Op::Builtin(Builtin::Setfield));
    b.op(get, &[object, val], Type::INT64);
    b.op(get, &[object, val], Type::STRING);
    b.op(get, &[object, none], Type::ANY);
    b.op(get, &[tuple, three], Type::INT64);
    b.op(get, &[tuple, float], Type::INT64);
    b.op(get, &[array, size], cx.types.tuple(&[Type::INT64]).unwrap());
    b.op(get, &[array, none], Type::ANY);
    b.op(set, &[object, val, float], Type::FLOAT64);
    b.op(set, &[object, id, three], Type::INT64);
    b.op(set, &[tuple, three, three], Type::INT64);
    b.op(Op::New(node), &[three], node);
    b.op(Op::New(node), &[float], node);
    b.op(Op::New(node), &[three, three, three, three], node);
    b.op(Op::New(Type::ANY), &[], Type::ANY);
    b.op(Op::New(Type::STRING), &[], Type::STRING);
    b.op(Op::SplatNew(node), &[tuple], node);
    b.op(Op::Builtin(Builtin::Tuple), &[three, float], pair);
    b.op(Op::Builtin(Builtin::Ifelse), &[three, three, three], Type::INT64);
    b.ret(nothing);
    b.expect(&[
        "type-result: `getfield` returns `Int64`, not `String`",
        "type-field: `Node` has no field `none`; its fields: val, any, id",
        "type-operand: operand 2 of `getfield` has the type `Float64`, not a field's name or number",
        "type-field: `Vector{Int64}` has no field `none`; it has 0 fields",
        "type-operand: operand 3 of `setfield!` has the type `Float64`, not `Int64`",
        "type-immutable: field `id` of `Node` is `const`",
        "type-immutable: `Tuple{Int64, Int64}` is immutable",
        "type-operand: operand 1 of `%new` has the type `Float64`, not `Int64`",
        "type-field-count: `Node` has 3 fields, but 4 values are given",
        "type-new: `%new` makes no `Any`: it is not concrete",
        "type-new: `%new` makes no `String`: only the run time makes its objects",
        "type-field-count: `Node` has 3 fields, but 2 values are given",
        "type-result: `tuple` returns `Tuple{Int64, Float64}`, not `Tuple{Int64, Int64}`",
        "type-operand: operand 1 of `ifelse` has the type `Int64`, not `Bool`",
    ]);
}

// ----- low IR -----

fn access(offset: i32, region: Region) -> Access {
    Access { offset, region, align_log2: 0 }
}

#[test]
fn low_types() {
    let mut b = Bench::low(&[Type::I64, Type::F64, Type::PTR], &[Type::I64]);
    let (int, float, ptr) = (b.arg(1), b.arg(2), b.arg(3));
    b.op(Op::Intrinsic(Intrinsic::AddInt), &[int, float], Type::I64);
    b.op(Op::Copy, &[int], Type::F64);
    b.op(Op::Load(access(0, Region::Raw)), &[int], Type::I64);
    b.effect(Op::Store(access(0, Region::Constant)), &[ptr, int]);
    b.effect(Op::CallRuntime(crate::RuntimeFn::PrintInt), &[float]);
    b.op(Op::AtomicLoad(Ordering::Release), &[ptr], Type::I64);
    b.effect(Op::MemCopy, &[ptr, ptr, float]);
    b.op(Op::Load(Access { align_log2: 13, ..access(0, Region::Raw) }), &[ptr], Type::I64);
    b.last().ins(Op::Intrinsic(Intrinsic::CheckedSaddInt), &[int, int], &[Type::I64, Type::I8]);
    b.last().ins(Op::Intrinsic(Intrinsic::CheckedSaddInt), &[int, int], &[Type::I64, Type::I64]);
    b.ret(float);
    b.expect(&[
        "type-unequal: `add_int` takes operands of one type, but operand 1 is `i64` and operand 2 is `f64`",
        "type-operand: operand 1 of the value has the type `i64`, not `f64`",
        "low-address: memory is not reached through a `i64`",
        "low-constant: constant memory is written",
        "type-operand: operand 1 of `brolga_print_int` has the type `f64`, not `i64`",
        "low-order: `release` is not an order for this access",
        "type-operand: operand 3 of `mem_copy` has the type `f64`, not `i64`",
        "low-align: an alignment of 2^13 bytes does not exist",
        "type-result: `checked_sadd_int` returns `i8`, not `i64`",
        "type-operand: operand 1 of `return` has the type `f64`, not `i64`",
    ]);
}

#[test]
fn stack_slots() {
    let mut b = Bench::low(&[], &[]);
    let slot = b.func.add_slot(SlotData::bytes(16, 3));
    let huge = b.func.add_slot(SlotData::bytes(1 << 30, 3));
    let addr = b.op(Op::SlotAddr(slot), &[], Type::PTR);
    b.op(Op::Load(access(8, Region::Slot)), &[addr], Type::I64);
    b.op(Op::Load(access(12, Region::Slot)), &[addr], Type::I64);
    b.op(Op::Load(access(-1, Region::Slot)), &[addr], Type::I8);
    b.op(Op::SlotAddr(huge), &[], Type::PTR);
    let none = b.last().ins(Op::SlotAddr(slot), &[], &[Type::PTR]);
    b.last().ret(&[]);
    b.expect(&[
        "low-slot: an access of 8 bytes at offset 12 is outside of its stack slot of 16 bytes",
        "low-slot: an access of 1 byte at offset -1 is outside of its stack slot of 16 bytes",
        "low-slot-size: a stack slot of 1073741824 bytes is too large",
    ]);
    b.func.set_op(none, Op::SlotAddr(Slot::new(9)), &[]);
    b.expect(&["structure-id: `slot_addr` names stack slot 9, which does not exist"]);
}

#[test]
fn pointer_classes() {
    let low = |class| Type::low(crate::LowType::Ptr(class));
    let classes = [PtrClass::Tracked, PtrClass::Derived, PtrClass::CalleeRooted, PtrClass::Loaded].map(low);
    let mut b = Bench::low(&classes, &[Type::DERIVED]);
    let (tracked, derived, rooted, _) = (b.arg(1), b.arg(2), b.arg(3), b.arg(4));
    let cast = Op::Intrinsic(Intrinsic::Bitcast);
    b.op(cast, &[tracked], Type::DERIVED);
    b.op(cast, &[tracked], Type::PTR);
    b.op(cast, &[derived], Type::TRACKED);
    b.op(cast, &[tracked], Type::I64);
    b.op(Op::Load(access(0, Region::Raw)), &[rooted], Type::I64);
    b.effect(Op::Store(access(0, Region::Raw)), &[tracked, derived]);
    let zero = b.int(Type::I64, 0);
    b.op(Op::Intrinsic(Intrinsic::AddPtr), &[tracked, zero], Type::DERIVED);
    b.op(Op::Intrinsic(Intrinsic::AddPtr), &[tracked, zero], Type::TRACKED);
    b.ret(derived);
    b.expect(&[
        "low-class: a `tracked` does not become a `ptr`",
        "low-class: a `derived` does not become a `tracked`",
        "low-class: a `tracked` does not become a `i64`",
        "low-address: memory is not reached through a `calleerooted`",
        "low-memory-class: a `derived` pointer is not kept in memory",
        "type-result: `add_ptr` returns `derived`, not `tracked`",
        "low-return-class: a `derived` pointer is not returned",
    ]);
}

// ----- calls -----

fn method(name: &str, cx: &Arc<Context>, params: &[Type], result: Type) -> Func {
    let object = cx.types.function(cx.names.intern(name));
    let params = [object].iter().chain(params).map(|&ty| Param { name: None, ty }).collect();
    let sig = Signature { params, results: vec![result], vararg: false, ..Signature::default() };
    Func::new(cx.names.intern(name), Level::High, sig)
}

#[test]
fn callees_exist() {
    let mut b = Bench::high(&[Type::INT64, Type::FLOAT64], Type::NOTHING);
    let cx = b.cx.clone();
    let mut module = Module::new(cx.clone());
    module.add_func(method("g", &cx, &[Type::INT64], Type::INT64)).unwrap();
    module.add_func(method("stop", &cx, &[], Type::BOTTOM)).unwrap();
    let x = cx.names.intern("x");
    let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
    module.add_global(Global { name: x, ty: Type::INT64, init, kind: GlobalKind::Variable }).unwrap();
    b.module = Some(module);
    let (int, float) = (b.arg(1), b.arg(2));
    let invoke = |b: &mut Bench, name: &str, args: &[Value], result| {
        let function = cx.types.function(cx.names.intern(name));
        let types = args.iter().map(|&v| b.func.ty(v)).collect();
        let callee = b.func.add_callee(CalleeData::Method { function, args: types, result });
        let object = b.func.constant(Const::Singleton(function));
        let args: Vec<Value> = [object].iter().chain(args).copied().collect();
        b.op(Op::Invoke(callee), &args, result)
    };
    invoke(&mut b, "g", &[int], Type::INT64);
    invoke(&mut b, "g", &[float], Type::INT64);
    invoke(&mut b, "g", &[int], Type::STRING);
    invoke(&mut b, "stop", &[], Type::INT64);
    invoke(&mut b, "println", &[float], Type::NOTHING);
    invoke(&mut b, "rethrow", &[int, int], Type::NOTHING);
    b.op(Op::GetGlobal(x), &[], Type::INT64);
    b.op(Op::GetGlobal(cx.names.intern("y")), &[], Type::INT64);
    let nothing = b.nothing();
    b.ret(nothing);
    b.expect(&[
        "type-result: `invoke` returns `Int64`, not `String`",
        "call-arity: the callee takes 0 to 1 arguments, not 2",
        "call-global: there is no global variable `y`",
    ]);
}

#[test]
fn calls_agree_with_their_callee() {
    let mut b = Bench::high(&[Type::INT64, Type::FLOAT64], Type::NOTHING);
    let cx = b.cx.clone();
    let (int, float) = (b.arg(1), b.arg(2));
    let function = cx.types.function(cx.names.intern("g"));
    let object = b.func.constant(Const::Singleton(function));
    let data = CalleeData::Method { function, args: [Type::INT64].into(), result: Type::INT64 };
    let callee = b.func.add_callee(data);
    b.op(Op::Invoke(callee), &[int, int], Type::INT64);
    b.op(Op::Invoke(callee), &[object, float], Type::INT64);
    b.op(Op::Invoke(callee), &[object], Type::INT64);
    b.op(Op::Intrinsic(Intrinsic::Llvmcall), &[int], Type::INT64);
    let foreign = b.func.add_foreign(ForeignData {
        name: Some(cx.names.intern("labs")),
        result: Type::INT64,
        params: [Type::INT64].into(),
        variadic_after: None,
    });
    b.op(Op::ForeignCall(foreign), &[int], Type::INT64);
    b.op(Op::ForeignCall(foreign), &[float], Type::INT64);
    b.op(Op::ForeignCall(foreign), &[], Type::INT64);
    let nothing = b.nothing();
    b.ret(nothing);
    b.expect(&[
        "type-operand: operand 1 of `invoke` has the type `Int64`, not `typeof(g)`",
        "type-operand: operand 2 of `invoke` has the type `Float64`, not `Int64`",
        "call-arity: the callee takes 1 argument, not 0",
        "call-refused: `llvmcall` is not supported: `llvmcall` holds LLVM IR, which is not translated; use `foreigncall`",
        "type-operand: operand 1 of `foreigncall` has the type `Float64`, not `Int64`",
        "call-arity: the callee takes at least 1 argument, not 0",
    ]);
}

#[test]
fn c_functions_give_as_many_values_as_their_result_says() {
    let mut b = Bench::low(&[Type::I64], &[]);
    let cx = b.cx.clone();
    let int = b.arg(1);
    let pair = cx.types.tuple(&[Type::INT64, Type::INT64]).unwrap();
    let name = Some(cx.names.intern("ldiv"));
    for (result, results) in [
        (pair, &[Type::I64, Type::I64][..]),
        (Type::I64, &[Type::I64]),
        (pair, &[Type::I64, Type::I64, Type::I64]),
        (Type::I64, &[Type::I64, Type::I64]),
        (pair, &[Type::I64]),
    ] {
        let data = ForeignData { name, result, params: [Type::I64].into(), variadic_after: None };
        let foreign = b.func.add_foreign(data);
        b.last().ins(Op::ForeignCall(foreign), &[int], results);
    }
    b.last().ret(&[]);
    b.expect(&[
        "structure-result-count: `foreigncall` has 2 results, not 3",
        "structure-result-count: `foreigncall` has 1 results, not 2",
        "type-result: `foreigncall` returns `Tuple{Int64, Int64}`, not `i64`",
    ]);
}

#[test]
fn symbols_have_one_signature() {
    let mut b = Bench::low(&[Type::I64], &[Type::I64]);
    let cx = b.cx.clone();
    let symbol = cx.names.intern("g");
    let mut module = Module::new(cx.clone());
    let param = Param { name: None, ty: Type::F64 };
    let sig =
        Signature { params: vec![param], results: vec![Type::I64], vararg: false, ..Signature::default() };
    module.add_func(Func::new(symbol, Level::Low, sig)).unwrap();
    b.module = Some(module);
    let x = b.arg(1);
    let data = CalleeData::Symbol { symbol, params: [Type::I64].into(), results: [Type::I64].into() };
    let callee = b.func.add_callee(data);
    let result = b.op(Op::CallSymbol(callee), &[x], Type::I64);
    b.ret(result);
    b.expect(&["call-symbol: `g` has another signature than this call; it is (f64) -> (i64)"]);
}

#[test]
fn globals_start_with_a_value_of_their_type() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
    module
        .add_global(Global { name: cx.names.intern("x"), ty: Type::STRING, init, kind: GlobalKind::Variable })
        .unwrap();
    let found = verify_module(&module).unwrap_err();
    let message = found.globals[0].message(&cx);
    assert_eq!(message, "the first value of global `x` has the type `Int64` and not `String`");
}

/// A module from a builder, whose globals have no positions.
#[test]
fn threads_do_not_share_the_first_value_of_a_thread_local_global() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let one = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
    let list =
        Literal::Array { ty: cx.types.vector(Type::INT64).unwrap(), dims: vec![1], items: vec![one.clone()] };
    let within = cx.types.tuple(&[Type::INT64, list.ty()]).unwrap();
    let within = Literal::Aggregate { ty: within, fields: vec![one.clone(), list.clone()] };
    for (name, init) in [("one", one), ("list", list), ("within", within)] {
        for kind in [GlobalKind::Variable, GlobalKind::ThreadLocal, GlobalKind::Constant] {
            let name = cx.names.intern(&format!("{name}{kind:?}"));
            module.add_global(Global { name, ty: Type::ANY, init: init.clone(), kind }).unwrap();
        }
    }
    let found = verify_module(&module).unwrap_err();
    let refused: Vec<&str> = found.globals.iter().map(|global| cx.names.text(global.name)).collect();
    assert_eq!(refused, ["listThreadLocal", "withinThreadLocal"]);
    assert!(found.globals.iter().all(|global| global.rule == GlobalRule::SharedByThreads));
    let message = found.globals[0].message(&cx);
    assert!(
        message.starts_with("the first value of the thread-local global `listThreadLocal` has"),
        "{message}"
    );
}
