//! The printer: its normal form, and that reading restores what it prints.

mod text_support;

use std::sync::Arc;

use brolga_ir::builtin::Builtin;
use brolga_ir::constant::{Address, Const};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::func::{CalleeData, ForeignData, MetaData, MetaItem, SlotData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::lanes::Lanes;
use brolga_ir::op::{Access, Ordering, Region, RmwOp};
use brolga_ir::text::{read, show_func, show_module, show_unit};
use brolga_ir::types::{StaticBound, StaticParam, Statics};
use brolga_ir::{Context, Func, Level, Module, Op, Param, RuntimeFn, Signature, Type, Value};
use text_support::{Random, damage, files, unit};

/// Prints `func`, reads it in its own context and prints it again, expecting the same text. Returns the text.
fn round_trip(cx: &Arc<Context>, func: &Func) -> String {
    let mut module = Module::new(cx.clone());
    module.add_func(func.clone()).unwrap();
    let once = show_module(&module).to_string();
    let source = SourceFile::new("t", &*once).unwrap();
    let (unit, found) = read(&source, cx);
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    let twice = show_module(&unit.module).to_string();
    for (before, after) in once.lines().zip(twice.lines()) {
        assert_eq!(before, after);
    }
    assert_eq!(once.len(), twice.len());
    let again = unit.module.funcs().next().unwrap().1;
    assert_eq!(again.sig, func.sig);
    once
}

/// Compiled code names the `where` of a method by a type that contains its variables.
#[test]
fn variables_of_a_where_are_read_back() {
    let mut b = Build::new(Level::Low, &[], &[Type::PTR]);
    let types = &b.cx.types;
    let name = |text: &str| b.cx.names.intern(text);
    let [t, s] = [0, 1].map(|number| types.param(number));
    let open = |lower, upper| StaticBound::Open { lower, upper };
    let statics = Statics {
        params: vec![
            StaticParam { name: name("T"), bound: open(Type::BOTTOM, Type::ANY) },
            StaticParam { name: name("S"), bound: open(Type::BOTTOM, types.vector(t).unwrap()) },
            StaticParam { name: name("N"), bound: StaticBound::Value(types.int(3)) },
            StaticParam { name: name("U"), bound: StaticBound::Undefined },
        ],
        patterns: vec![
            Type::ANY,
            types.array(t, 1).unwrap(),
            types.union(&[s, Type::NOTHING]).unwrap(),
            types.type_of(t).unwrap(),
        ],
    };
    let whole = statics.to_type(types, false).unwrap();
    let address = b.func.constant(Const::Address(Address::Type(whole)));
    b.inst(Op::Return, &[address], &[]);
    let text = round_trip(&b.cx, &b.func);
    assert!(text.contains("Vector{@Param{0}}") && text.contains("Type{@Param{0}}"), "{text}");
    let source = SourceFile::new("t", &*text).unwrap();
    let (unit, _) = read(&source, &b.cx);
    let func = unit.module.funcs().next().unwrap().1;
    let again = func.args(func.first_inst(func.entry().unwrap()).unwrap())[0];
    assert_eq!(func.as_const(again), Some(&Const::Address(Address::Type(whole))));
    for wrong in ["@Param{-1}", "@Param{99999999999}", "@Param{}", "@Param{x}", "@Param{0, 1}"] {
        let text = text.replace("@Param{0}", wrong);
        let (_, found) = read(&SourceFile::new("t", &*text).unwrap(), &b.cx);
        assert!(found.has_errors(), "{wrong}");
    }
}

struct Build {
    cx: Arc<Context>,
    func: Func,
}

impl Build {
    fn new(level: Level, params: &[Type], results: &[Type]) -> Build {
        let cx = Context::new();
        let name = cx.names.intern("f");
        let mut list = Vec::new();
        if level == Level::High {
            list.push(Param { name: None, ty: cx.types.function(name) });
        }
        list.extend(params.iter().map(|&ty| Param { name: None, ty }));
        let sig =
            Signature { params: list, results: results.to_vec(), vararg: false, ..Signature::default() };
        let mut func = Func::new(name, level, sig);
        let entry = func.make_block();
        func.append_block(entry);
        Build { cx, func }
    }

    fn inst(&mut self, op: Op, args: &[Value], results: &[Type]) -> Vec<Value> {
        let last = self.func.last_block().unwrap();
        let inst = self.func.make_inst(op, args, &[], results);
        self.func.append_inst(inst, last);
        self.func.results(inst).collect()
    }

    fn bits(&mut self, ty: Type, bits: u128) -> Value {
        self.func.bits(&self.cx.types, ty, bits)
    }
}

#[test]
fn printing_reading_and_printing_again_gives_the_same_text() {
    for (name, text) in files("tests/corpus").into_iter().chain(files("examples")) {
        let once = show_unit(&unit(&text)).to_string();
        assert_eq!(once, show_unit(&unit(&once)).to_string(), "{name}");
    }
}

#[test]
fn the_normal_form() {
    let text = "# globals: global g::Int8 = 3\n# types: struct P{T} <: Number; const a::T; @atomic b::Union{Nothing, P}; end\n\
                # check: f(1, 2.5, (P{Int64}(1, nothing),)) == Int8[1, -2]\n\
                # signature: f(x::Int64, ::Float64, rest::P{Int64}...)::Any\n\
                1 ── %1 = (x === 3)::Bool\n└─── goto #11 if not %1\n2 ── %3 = Base.sext_int(Int64, 0x05)::Int64\n3 ── goto #4\n\
                4 ── goto #5\n5 ── goto #6\n6 ── goto #7\n7 ── goto #8\n8 ── goto #9\n9 ── invoke Main.f(%3::Int64, _3::Float64)::Union{}\n\
                └─── unreachable\n10 ─ goto #9\n11 ─ return Main.f\n";
    let expected = "\
struct P{T} <: Number
    const a::T
    @atomic b::Union{Nothing, P}
end

global g::Int8 = Int8(3)

# check: f(1, 2.5, (P{Int64}(1, nothing),)) == Int8[1, -2]

function f(x::Int64, ::Float64, rest::P{Int64}...)::Any
1 ── %1 =   builtin (x === 3)::Bool
└───      goto #11 if not %1
2 ── %3 = intrinsic Base.sext_int(Int64, 0x05)::Int64
└───      goto #3
3 ──      goto #4
4 ──      goto #5
5 ──      goto #6
6 ──      goto #7
7 ──      goto #8
8 ──      goto #9
9 ┄─         invoke Main.f(%3::Int64, _3::Float64)::Union{}
└───      unreachable
10 ─      goto #9
11 ─      return Main.f
end
";
    assert_eq!(show_unit(&unit(text)).to_string(), expected);
}

#[test]
fn hints_about_inlining_are_written() {
    let text = "\
function f(x::T, ::Any)::Int64 where {T} noinline
1 ─ %1 = dynamic Main.f(x, 1)::Any inline
│   %2 =  invoke Main.f(x::Int64, %1::Any)::Int64 noinline
│          invoke Main.f(x::Int64, %2::Any)::Int64
└──      return %2
end
";
    let once = show_unit(&unit(text)).to_string();
    let words: Vec<&str> = once.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(words, ["noinline", "inline", "noinline", "%2::Any)::Int64", "%2", "end"]);
    assert_eq!(once, show_unit(&unit(&once)).to_string());
}

#[test]
fn edges_that_fall_nowhere_are_written() {
    let mut b = Build::new(Level::High, &[Type::BOOL], &[Type::ANY]);
    let cond = b.func.params()[1];
    let first = b.func.entry().unwrap();
    let (yes, no, catch) = (b.func.make_block(), b.func.make_block(), b.func.make_block());
    for block in [no, yes, catch] {
        b.func.append_block(block);
    }
    let branch = b.func.make_inst(Op::Branch, &[cond], &[yes, no], &[]);
    b.func.append_inst(branch, first);
    let enter = b.func.make_inst(Op::Enter, &[], &[first, catch], &[Type::TOKEN]);
    b.func.append_inst(enter, yes);
    for block in [no, catch] {
        let end = b.func.make_inst(Op::Unreachable, &[], &[], &[]);
        b.func.append_inst(end, block);
    }
    let text = round_trip(&b.cx, &b.func);
    assert!(text.contains("goto #2 if not _2 else #3\n"), "{text}");
    assert!(text.contains("enter #4 else #1\n"), "{text}");
    assert!(text.contains("\n4 ┄ "), "{text}");
}

/// Constants of every kind, in a context that expects no type.
#[test]
fn high_constants_are_read_back_by_bits() {
    let mut b = Build::new(Level::High, &[], &[Type::ANY]);
    let cx = b.cx.clone();
    let types = &cx.types;
    let name = |text: &str| cx.names.intern(text);
    let mut constants = Vec::new();
    for ty in [Type::INT8, Type::INT16, Type::INT32, Type::INT64, Type::INT128, Type::UINT8, Type::UINT128] {
        for bits in [0, 1, 5, u128::MAX, 1 << 7, 1 << 63, 1 << 127] {
            constants.push(b.bits(ty, bits));
        }
    }
    for bits in [
        0u64,
        1,
        1 << 63,
        0x7ff0 << 48,
        0xfff0 << 48,
        0x7ff8 << 48,
        0xfff8 << 48,
        (0x7ff0 << 48) + 1,
        0x3fb9_9999_9999_999a,
    ] {
        constants.push(b.bits(Type::FLOAT64, bits.into()));
        constants.push(b.bits(Type::FLOAT32, (bits >> 32).into()));
        constants.push(b.bits(Type::FLOAT16, (bits >> 48).into()));
        constants.push(b.bits(Type::CHAR, (bits >> 32).into()));
    }
    for ty in [Type::BOOL, types.ptr(Type::INT8).unwrap()] {
        constants.push(b.bits(ty, 0));
        constants.push(b.bits(ty, 1));
    }
    for text in [
        "",
        "x",
        "a b",
        "\"q\"\\\n\t\u{0}1$x │ é\u{301}\u{200b}",
        "θ",
        "+",
        "=",
        "end",
        "a\\\\",
        "a\\\"b",
        "#self#",
        "nothing",
        "_2",
        ":",
    ] {
        constants.push(b.func.constant(Const::String(name(text))));
        constants.push(b.func.constant(Const::Symbol(name(text))));
        // A literal is not a function, and control characters in names are written as pictures.
        if text != "nothing" && !text.contains('\n') {
            constants.push(b.func.constant(Const::Singleton(types.function(name(text)))));
        }
    }
    for ty in
        [Type::INT64, types.vector(Type::ANY).unwrap(), Type::BOTTOM, types.function(name("a b")), Type::BOX]
    {
        constants.push(b.func.constant(types.type_constant(ty)));
        constants.push(b.func.constant(Const::Undef(ty)));
    }
    for function in ["tuple", "add_int", "error", "throw_boundserror", "max", "+"] {
        constants.push(b.func.constant(Const::Singleton(types.base_function(function))));
    }
    for function in ["tuple", "error", "f", "A.f", "A.Inner.+", "A.tuple"] {
        constants.push(b.func.constant(Const::Singleton(types.function_of(function))));
    }
    constants.push(b.func.constant(Const::Singleton(Type::NOTHING)));
    constants.push(b.func.constant(Const::Singleton(types.tuple(&[]).unwrap())));
    constants.push(b.func.constant(Const::Singleton(
        types.nominal(types.find_decl(name("DivideError")).unwrap(), &[]).unwrap(),
    )));
    constants.push(b.func.constant(Const::Module(name("Main"))));
    let parts = [b.bits(Type::INT32, 7), b.bits(Type::INT64, 7), constants[50]];
    let tuple = types.tuple(&parts.map(|v| b.func.ty(v))).unwrap();
    let tuple = b.func.constant(Const::Aggregate { ty: tuple, fields: parts.into() });
    constants.push(tuple);
    let single = types.tuple(&[b.func.ty(tuple)]).unwrap();
    let single = b.func.constant(Const::Aggregate { ty: single, fields: [tuple].into() });
    constants.push(single);
    let named = types.named_tuple(&[name("a b")], types.tuple(&[Type::INT32]).unwrap()).unwrap();
    constants.push(b.func.constant(Const::Aggregate { ty: named, fields: [parts[0]].into() }));
    let pair = types.find_decl(name("Pair")).unwrap();
    let pair = types.nominal(pair, &[Type::INT32, Type::ANY]).unwrap();
    constants.push(b.func.constant(Const::Aggregate { ty: pair, fields: [parts[0], parts[0]].into() }));
    for &constant in &constants {
        let callee = b.func.constant(Const::Singleton(types.function(name("g"))));
        b.inst(Op::Call, &[callee, constant], &[Type::ANY]);
        b.inst(Op::Builtin(Builtin::Egal), &[constant, constant], &[Type::BOOL]);
        b.inst(Op::GcPreserveBegin, &[constant], &[Type::TOKEN]);
        let ty = b.func.ty(constant);
        b.inst(Op::Copy, &[constant], &[ty]);
        b.inst(Op::Copy, &[constant], &[Type::ANY]);
    }
    b.inst(Op::Return, &[constants[0]], &[]);
    let text = round_trip(&b.cx, &b.func);
    let source = SourceFile::new("t", text).unwrap();
    let (unit, _) = read(&source, &cx);
    let again = unit.module.funcs().next().unwrap().1;
    let calls = |f: &Func| -> Vec<(Op, Vec<String>)> {
        f.block_insts(f.entry().unwrap())
            .map(|i| (f.op(i), f.args(i).iter().map(|&v| described(f, v)).collect()))
            .collect()
    };
    for ((op, before), (op_after, after)) in calls(&b.func).into_iter().zip(calls(again)) {
        assert_eq!((op, before), (op_after, after));
    }
}

/// A constant with its parts, without ids.
fn described(func: &Func, value: Value) -> String {
    match func.as_const(value) {
        Some(Const::Aggregate { ty, fields }) => {
            let parts: Vec<String> = fields.iter().map(|&f| described(func, f)).collect();
            format!("{ty:?}({})", parts.join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn high_operations_are_read_back() {
    let mut b = Build::new(Level::High, &[Type::INT64, Type::ANY], &[Type::ANY]);
    let cx = b.cx.clone();
    let name = |text: &str| cx.names.intern(text);
    let (x, any) = (b.func.params()[1], b.func.params()[2]);
    let one32 = b.bits(Type::INT32, 1);
    let yes = b.bits(Type::BOOL, 1);
    b.inst(Op::BoundsCheck(false), &[], &[Type::BOOL]);
    b.inst(Op::StaticParameter(2), &[], &[Type::ANY]);
    b.inst(Op::TheException, &[], &[Type::ANY]);
    b.inst(Op::CodeCoverage, &[], &[]);
    b.inst(Op::ThrowUndefIfNot(name("a b")), &[yes], &[]);
    let items = vec![
        MetaItem::Name(name("julia.simdloop")),
        MetaItem::Name(name("x")),
        MetaItem::Int(-4),
        MetaItem::Nothing,
        MetaItem::Pair(name("n"), 4),
    ];
    let meta = b.func.add_meta(MetaData { items });
    b.inst(Op::LoopInfo(meta), &[], &[]);
    let undefined = b.inst(Op::Upsilon, &[], &[Type::BOTTOM])[0];
    let stored = b.inst(Op::Upsilon, &[one32], &[Type::INT32])[0];
    b.inst(Op::PhiC, &[undefined, stored], &[Type::INT32]);
    b.inst(Op::Pi, &[any], &[Type::INT32]);
    b.inst(Op::Pi, &[one32], &[Type::INT32]);
    for (callee, first) in [(Some("puts"), 0), (Some("odd name"), 0), (None, 1)] {
        let data = ForeignData {
            name: callee.map(name),
            result: Type::INT32,
            params: [Type::INT32, Type::ANY].into(),
            variadic_after: (first == 1).then_some(1),
        };
        let foreign = b.func.add_foreign(data);
        let args = [x, one32, any, any];
        b.inst(Op::ForeignCall(foreign), &args[1 - first..], &[Type::INT32]);
    }
    let ty = cx.types.function(name("g"));
    for function in [ty, Type::ANY, cx.types.type_of(Type::INT8).unwrap()] {
        let object = if function == ty { b.func.constant(Const::Singleton(ty)) } else { any };
        let data = CalleeData::Method { function, args: [Type::INT32, Type::ANY].into(), result: Type::INT8 };
        let callee = b.func.add_callee(data);
        b.inst(Op::Invoke(callee), &[object, one32, one32], &[Type::INT8]);
    }
    for object in [
        any,
        b.func.constant(cx.types.type_constant(Type::INT8)),
        b.func.constant(Const::Singleton(cx.types.base_function("tuple"))),
    ] {
        b.inst(Op::Call, &[object, x], &[Type::ANY]);
    }
    let five = b.bits(Type::INT8, 5);
    b.inst(Op::New(Type::BOX), &[five], &[Type::BOX]);
    b.inst(Op::New(Type::BOX), &[], &[Type::BOX]);
    b.inst(Op::Intrinsic(Intrinsic::SextInt), &[five], &[Type::INT64]);
    b.inst(Op::Builtin(Builtin::ApplyIterate), &[any, any, any], &[Type::ANY]);
    let main = b.func.constant(Const::Module(name("Main")));
    let symbol = b.func.constant(Const::Symbol(name("x")));
    b.inst(Op::Builtin(Builtin::Setglobal), &[main, symbol, five], &[Type::ANY]);
    b.inst(Op::Return, &[five], &[]);
    let text = round_trip(&b.cx, &b.func);
    assert!(text.contains("$(Expr(:foreigncall, :(_2), Int32, svec(Int32, Any), 1, "), "{text}");
    assert!(text.contains("dynamic builtin Core._apply_iterate("), "{text}");
}

#[test]
fn vectors_are_read_back() {
    let mut b = Build::new(Level::Low, &[Type::V128, Type::F32, Type::I64], &[Type::V128]);
    let [vector, single, word] = b.func.params()[..] else { panic!() };
    for lanes in Lanes::ALL {
        for &op in Intrinsic::ALL.iter().filter(|&&op| lanes.allows(op)) {
            let args = match usize::from(op.arity().min) {
                2 if Lanes::shifts(op) => vec![vector, word],
                count => vec![vector; count],
            };
            b.inst(Op::Lanes(op, lanes), &args, &[Type::V128]);
        }
        let last = lanes.count() as u8 - 1;
        let lane = b.inst(Op::ExtractLane(lanes, last), &[vector], &[Type::low(lanes.element())])[0];
        b.inst(Op::InsertLane(lanes, 0), &[vector, lane], &[Type::V128]);
    }
    let all = b.inst(Op::Splat(Lanes::F32x4), &[single], &[Type::V128])[0];
    let constant = b.bits(Type::V128, u128::MAX << 3);
    b.inst(Op::LaneSelect, &[constant, all, vector], &[Type::V128]);
    b.inst(Op::Return, &[all], &[]);
    let text = round_trip(&b.cx, &b.func);
    assert!(text.contains("lanes(muladd_float, f64x2, _1, _1, _1)::v128\n"), "{text}");
    assert!(text.contains("extract_lane(i8x16, 15, _1)::i8\n"), "{text}");
    assert!(text.contains("lane_select(v128(0xfffffffffffffffffffffffffffffff8), "), "{text}");
}

#[test]
fn low_operations_on_objects_are_read_back() {
    let mut b = Build::new(Level::Low, &[Type::TRACKED, Type::PTR], &[Type::TRACKED]);
    let [object, ptr] = b.func.params()[..] else { panic!() };
    let new = b.inst(Op::Alloc(Type::BOX), &[], &[Type::TRACKED])[0];
    b.inst(Op::TypeOf, &[object], &[Type::PTR]);
    b.inst(Op::WriteBarrier, &[new, object], &[]);
    b.inst(Op::GcLoaded, &[object, ptr], &[Type::LOADED]);
    b.inst(Op::PointerFromObjref, &[object], &[Type::PTR]);
    b.inst(Op::CallArgs(RuntimeFn::Apply), &[object, new], &[Type::TRACKED]);
    b.inst(Op::CallArgs(RuntimeFn::Apply), &[], &[Type::TRACKED]);
    b.inst(Op::ThreadAddr, &[], &[Type::PTR]);
    let token = b.inst(Op::GcPreserveBegin, &[object, new], &[Type::TOKEN])[0];
    b.inst(Op::GcPreserveEnd, &[token], &[]);
    let slot = b.func.add_slot(SlotData::reference());
    b.inst(Op::SlotAddr(slot), &[], &[Type::PTR]);
    for region in Region::ALL {
        b.inst(Op::Load(Access { offset: 8, region, align_log2: 3 }), &[object], &[Type::TRACKED]);
    }
    let addresses = [
        Address::Type(Type::BOX),
        Address::Instance(Type::NOTHING),
        Address::Module(b.cx.names.intern("Main")),
        Address::Boxed(Type::INT64, u128::from(u64::MAX)),
    ];
    for address in addresses {
        let constant = b.func.constant(Const::Address(address));
        b.inst(Op::Copy, &[constant], &[Type::PTR]);
    }
    b.inst(Op::Return, &[new], &[]);
    let text = round_trip(&b.cx, &b.func);
    assert!(text.contains("call_args(brolga_apply, _1, %1)::tracked\n"), "{text}");
    assert!(text.contains("slot_addr(0; size = 8, align = 8, tracked = true)::ptr\n"), "{text}");
    assert!(text.contains("boxed_addr(Int64, 18446744073709551615)::ptr\n"), "{text}");
}

#[test]
fn low_operations_are_read_back() {
    let params = [Type::PTR, Type::I64, Type::F64, Type::I8];
    let mut b = Build::new(Level::Low, &params, &[Type::I64, Type::F64]);
    let cx = b.cx.clone();
    let name = |text: &str| cx.names.intern(text);
    let [ptr, int, float, byte] = b.func.params()[..] else { panic!() };
    let access = Access { offset: -8, region: Region::Slot, align_log2: 3 };
    b.inst(Op::Load(access), &[ptr], &[Type::I64]);
    let small = b.bits(Type::I16, 0x8000);
    b.inst(Op::Store(Access { region: Region::Constant, ..access }), &[ptr, small], &[]);
    b.inst(Op::AtomicLoad(Ordering::Acquire), &[ptr], &[Type::I64]);
    b.inst(Op::AtomicStore(Ordering::Release), &[ptr, small], &[]);
    for op in RmwOp::ALL {
        b.inst(Op::AtomicRmw(op, Ordering::Monotonic), &[ptr, int], &[Type::I64]);
    }
    b.inst(Op::AtomicCas(Ordering::SequentiallyConsistent), &[ptr, int, int], &[Type::I64]);
    for (size, align_log2) in [(16, 3), (1, 0), (16, 3)] {
        let slot = b.func.add_slot(SlotData::bytes(size, align_log2));
        b.inst(Op::SlotAddr(slot), &[], &[Type::PTR]);
        b.inst(Op::SlotAddr(slot), &[], &[Type::PTR]);
    }
    b.inst(Op::MemCopy, &[ptr, ptr, int], &[]);
    b.inst(Op::Safepoint, &[], &[]);
    b.inst(Op::CallRuntime(RuntimeFn::ThrowDivide), &[], &[]);
    let index = b.bits(Type::I64, 3);
    b.inst(Op::CallRuntime(RuntimeFn::ThrowBounds), &[index], &[]);
    let data = CalleeData::Symbol {
        symbol: name("area(Rect, \"x\")"),
        params: [Type::I64, Type::I8].into(),
        results: [Type::I64, Type::F64].into(),
    };
    let callee = b.func.add_callee(data);
    let pair = b.inst(Op::CallSymbol(callee), &[int, byte], &[Type::I64, Type::F64]);
    b.inst(Op::Intrinsic(Intrinsic::CheckedSaddInt), &[int, pair[0]], &[Type::I64, Type::I8]);
    b.inst(Op::Intrinsic(Intrinsic::SextInt), &[byte], &[Type::I64]);
    b.inst(Op::Intrinsic(Intrinsic::AddFloat), &[float, pair[1]], &[Type::F64]);
    b.inst(Op::Builtin(Builtin::Ifelse), &[byte, small, small], &[Type::I16]);
    for (name, result) in [(Some(name("memcpy")), Type::PTR), (None, Type::NOTHING)] {
        let params: Box<[Type]> = [Type::PTR, Type::I64].into();
        let foreign = b.func.add_foreign(ForeignData { name, result, params, variadic_after: None });
        let results = if result == Type::NOTHING { vec![] } else { vec![result] };
        let args = if name.is_some() { vec![ptr, int] } else { vec![ptr, ptr, int] };
        b.inst(Op::ForeignCall(foreign), &args, &results);
    }
    let bytes = b.func.add_data(b"\x00\xff1\"\\ \xc3\xa9\n");
    let mut constants = vec![
        b.func.constant(Const::Address(Address::Data(bytes))),
        b.func.constant(Const::Address(Address::Symbol(name("a b")))),
        b.func.constant(Const::Address(Address::String(name("a \"b\"")))),
        b.func.constant(Const::Address(Address::Foreign(name("memcpy")))),
        b.func.constant(Const::Address(Address::Global(name("a b")))),
        b.func.constant(Const::Undef(Type::TRACKED)),
    ];
    for ty in [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::I128,
        Type::F16,
        Type::F32,
        Type::F64,
        Type::PTR,
        Type::LOADED,
    ] {
        for bits in [0, 1, u128::MAX, 1 << 63, 0x7ff0_0000_0000_0001, 0x7e01_7e01_7e01] {
            constants.push(b.bits(ty, bits));
        }
    }
    for constant in constants {
        let ty = b.func.ty(constant);
        b.inst(Op::Copy, &[constant], &[ty]);
        b.inst(Op::Store(access), &[ptr, constant], &[]);
    }
    b.inst(Op::Return, &[pair[0], pair[1]], &[]);
    let text = round_trip(&b.cx, &b.func);
    assert!(text.starts_with("low function f(::ptr, ::i64, ::f64, ::i8)::(i64, f64)\n"), "{text}");
    assert!(text.contains("load(_1; offset = -8, region = slot, align = 8)::i64\n"), "{text}");
    assert!(text.contains("invoke var\"area(Rect, \\\"x\\\")\"(_2::i64, _4::i8)::(i64, f64)\n"), "{text}");
    let source = SourceFile::new("t", text).unwrap();
    let (unit, _) = read(&source, &cx);
    let again = unit.module.funcs().next().unwrap().1;
    let all = |f: &Func| -> Vec<String> {
        f.block_insts(f.entry().unwrap()).flat_map(|i| f.args(i)).map(|&v| described(f, v)).collect()
    };
    assert_eq!(all(&b.func), all(again));
}

#[test]
fn broken_functions_are_shown() {
    let mut b = Build::new(Level::High, &[], &[Type::ANY]);
    let nowhere = b.func.make_inst(Op::Copy, &[], &[], &[Type::ANY]);
    let value = b.func.result(nowhere).unwrap();
    let of_nothing = CalleeData::Method { function: Type::ANY, args: Box::new([]), result: Type::ANY };
    let of_nothing = b.func.add_callee(of_nothing);
    b.inst(Op::CFunction(of_nothing), &[], &[Type::ANY]);
    b.inst(Op::Branch, &[value], &[]);
    let empty = b.func.make_block();
    b.func.append_block(empty);
    let text = show_func(&b.cx, &b.func).to_string();
    assert!(text.contains("$(Expr(:cfunction, Any, ?, Any, svec(), :(:ccall)))"), "{text}");
    assert!(text.contains("goto #0 if not %0") && text.contains("2 ─ (empty)"), "{text}");
}

#[test]
fn the_printed_form_of_damaged_text_is_stable() {
    let texts: Vec<Vec<u8>> = files("tests/corpus").into_iter().map(|(_, text)| text.into_bytes()).collect();
    let mut random = Random(7);
    let mut right = 0;
    for _ in 0..3_000 {
        let bytes = damage(&mut random, &texts);
        let source = SourceFile::new("t", String::from_utf8_lossy(&bytes)).unwrap();
        let (unit, found) = read(&source, &Context::new());
        let once = show_unit(&unit).to_string();
        if found.has_errors() {
            continue;
        }
        right += 1;
        let source = SourceFile::new("t", &*once).unwrap();
        let (again, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
        assert_eq!(once, show_unit(&again).to_string());
    }
    assert!(right > 100, "only {right} texts were right");
}
