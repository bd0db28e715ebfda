//! The interpreter on functions built by hand: control flow, exceptions, limits, faults, low IR.

use brolga_interp::{Fault, Interp, Options, Outcome, SimMemory, Val};
use brolga_ir::base_fn::{BaseFn, Thrown};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::func::{CalleeData, ForeignData, SlotData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::{Global, GlobalKind, Literal};
use brolga_ir::op::{Access, Ordering, Region, RmwOp};
use brolga_ir::types::{DeclKind, FieldDecl};
use brolga_ir::{
    Block, Context, Func, FuncId, Inst, Level, Module, Op, Param, RuntimeFn, Signature, Type, Value,
};
use std::sync::Arc;

/// Builds one function, statement by statement.
struct Build {
    cx: Arc<Context>,
    func: Func,
    at: Block,
}

impl Build {
    /// A high function; `params` are the types after the function object.
    fn high(cx: &Arc<Context>, name: &str, params: &[Type], result: Type) -> Build {
        let name = cx.names.intern(name);
        let object = Param { name: None, ty: cx.types.function(name) };
        let params = [object].into_iter().chain(params.iter().map(|&ty| Param { name: None, ty })).collect();
        Build::new(
            cx,
            Func::new(
                name,
                Level::High,
                Signature { params, results: vec![result], vararg: false, ..Signature::default() },
            ),
        )
    }

    fn low(cx: &Arc<Context>, name: &str, params: &[Type], results: &[Type]) -> Build {
        let params = params.iter().map(|&ty| Param { name: None, ty }).collect();
        let sig = Signature { params, results: results.to_vec(), vararg: false, ..Signature::default() };
        Build::new(cx, Func::new(cx.names.intern(name), Level::Low, sig))
    }

    fn new(cx: &Arc<Context>, mut func: Func) -> Build {
        let at = func.make_block();
        func.append_block(at);
        Build { cx: cx.clone(), func, at }
    }

    fn block(&mut self) -> Block {
        let block = self.func.make_block();
        self.func.append_block(block);
        block
    }

    fn param(&self, n: usize) -> Value {
        self.func.params()[n]
    }

    fn int(&mut self, value: i64) -> Value {
        self.func.bits(&self.cx.types, Type::INT64, u128::from(value.cast_unsigned()))
    }

    fn symbol(&mut self, text: &str) -> Value {
        let name = self.cx.names.intern(text);
        self.func.constant(Const::Symbol(name))
    }

    fn inst(&mut self, op: Op, args: &[Value], blocks: &[Block], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, args, blocks, results);
        self.func.append_inst(inst, self.at);
        inst
    }

    fn val(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.inst(op, args, &[], &[ty]);
        self.func.result(inst).unwrap()
    }

    fn intrinsic(&mut self, op: Intrinsic, args: &[Value], ty: Type) -> Value {
        self.val(Op::Intrinsic(op), args, ty)
    }

    fn builtin(&mut self, op: Builtin, args: &[Value], ty: Type) -> Value {
        self.val(Op::Builtin(op), args, ty)
    }

    fn goto(&mut self, to: Block) {
        self.inst(Op::Goto, &[], &[to], &[]);
    }

    fn branch(&mut self, condition: Value, yes: Block, no: Block) {
        self.inst(Op::Branch, &[condition], &[yes, no], &[]);
    }

    /// An operation without operands, targets or results, valid or not.
    fn end(&mut self, op: Op) {
        self.inst(op, &[], &[], &[]);
    }

    fn ret(&mut self, val: Value) {
        self.inst(Op::Return, &[val], &[], &[]);
    }

    fn invoke(&mut self, name: &str, args: &[Value], types: &[Type], result: Type) -> Value {
        let function = self.cx.types.function(self.cx.names.intern(name));
        let callee = self.func.add_callee(CalleeData::Method { function, args: types.into(), result });
        let object = self.func.constant(Const::Singleton(function));
        let all: Vec<Value> = [object].into_iter().chain(args.iter().copied()).collect();
        self.val(Op::Invoke(callee), &all, result)
    }

    fn alone(self) -> (Module, FuncId) {
        let mut module = Module::new(self.cx.clone());
        let id = module.add_func(self.func).unwrap();
        (module, id)
    }
}

fn interp(module: &Module) -> Interp<'_> {
    Interp::new(module, Options::default(), Box::new(SimMemory::default()))
}

fn thrown(interp: &mut Interp<'_>, outcome: Outcome) -> String {
    match outcome {
        Outcome::Thrown(val) => interp.show(&val).unwrap(),
        other => panic!("no exception: {other:?}"),
    }
}

fn fault(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Error(error) => error.fault,
        other => panic!("no fault: {other:?}"),
    }
}

/// `depth(n) = n < 1 ? 0 : 1 + depth(n - 1)`
fn depth(cx: &Arc<Context>) -> (Module, FuncId) {
    let mut b = Build::high(cx, "depth", &[Type::INT64], Type::INT64);
    let (yes, no) = (b.block(), b.block());
    let (n, one) = (b.param(1), b.int(1));
    let done = b.intrinsic(Intrinsic::SltInt, &[n, one], Type::BOOL);
    b.branch(done, yes, no);
    b.at = yes;
    let zero = b.int(0);
    b.ret(zero);
    b.at = no;
    let less = b.intrinsic(Intrinsic::SubInt, &[n, one], Type::INT64);
    let below = b.invoke("depth", &[less], &[Type::INT64], Type::INT64);
    let sum = b.intrinsic(Intrinsic::AddInt, &[below, one], Type::INT64);
    b.ret(sum);
    b.alone()
}

#[test]
fn recursion_uses_no_stack_of_rust_and_ends_in_an_exception() {
    let cx = Context::new();
    let (module, id) = depth(&cx);
    let mut i = interp(&module);
    let result = i.call(id, &[Val::int64(100_000)]).unwrap();
    assert_eq!(result.as_int64(), Some(100_000));
    let error = i.call(id, &[Val::int64(1 << 40)]).unwrap_err();
    assert_eq!(thrown(&mut i, error), "StackOverflowError()");
    assert_eq!(i.call_named("depth", &[Val::int64(3)]).unwrap().as_int64(), Some(3));
}

#[test]
fn fuel_ends_a_loop() {
    let cx = Context::new();
    let mut b = Build::high(&cx, "spin", &[], Type::NOTHING);
    let body = b.block();
    b.goto(body);
    b.at = body;
    b.goto(body);
    let (module, id) = b.alone();
    let options = Options { max_steps: 1000, ..Options::default() };
    let mut i = Interp::new(&module, options, Box::new(SimMemory::default()));
    assert!(matches!(i.call(id, &[]), Err(Outcome::OutOfFuel)));
    assert_eq!(i.steps(), 1000);
}

#[test]
fn phis_of_a_block_change_together() {
    // Swaps two values n times.
    let cx = Context::new();
    let mut b = Build::high(&cx, "swap", &[Type::INT64], Type::INT64);
    let entry = b.at;
    let (head, body, done) = (b.block(), b.block(), b.block());
    b.goto(head);
    b.at = head;
    let (seven, nine, zero, one) = (b.int(7), b.int(9), b.int(0), b.int(1));
    let phi = |b: &mut Build| b.inst(Op::Phi, &[], &[], &[Type::INT64]);
    let (x, y, k) = (phi(&mut b), phi(&mut b), phi(&mut b));
    let [xv, yv, kv] = [x, y, k].map(|i| b.func.result(i).unwrap());
    let n = b.param(1);
    let go = b.intrinsic(Intrinsic::SltInt, &[kv, n], Type::BOOL);
    b.branch(go, body, done);
    b.at = body;
    let next = b.intrinsic(Intrinsic::AddInt, &[kv, one], Type::INT64);
    b.goto(head);
    for (phi, first, later) in [(x, seven, yv), (y, nine, xv), (k, zero, next)] {
        b.func.add_phi_edge(phi, entry, first);
        b.func.add_phi_edge(phi, body, later);
    }
    b.at = done;
    b.ret(xv);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    for (n, x) in [(0, 7), (1, 9), (2, 7), (5, 9)] {
        assert_eq!(i.call(id, &[Val::int64(n)]).unwrap().as_int64(), Some(x));
    }
}

#[test]
fn an_edge_that_is_not_listed_is_undefined_until_it_is_used() {
    let cx = Context::new();
    let mut b = Build::high(&cx, "maybe", &[Type::BOOL], Type::INT64);
    let (left, join) = (b.block(), b.block());
    let flag = b.param(1);
    b.branch(flag, left, join);
    b.at = left;
    b.goto(join);
    b.at = join;
    let four = b.int(4);
    let phi = b.inst(Op::Phi, &[four], &[left], &[Type::INT64]);
    let phi = b.func.result(phi).unwrap();
    // Passing an undefined value on is not a use of it.
    let same = b.val(Op::Copy, &[phi], Type::INT64);
    b.ret(same);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    assert_eq!(i.call(id, &[Val::bool(true)]).unwrap().as_int64(), Some(4));
    let Outcome::Thrown(Val::Struct(thrown)) = i.call(id, &[Val::bool(false)]).unwrap_err() else {
        panic!("no exception");
    };
    assert_eq!(cx.types.display(thrown.ty()).to_string(), "UndefVarError");
}

#[test]
fn an_exception_reaches_the_handler_of_a_caller() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let mut b = Build::high(&cx, "div", &[Type::INT64, Type::INT64], Type::INT64);
    let (x, y) = (b.param(1), b.param(2));
    let quotient = b.intrinsic(Intrinsic::CheckedSdivInt, &[x, y], Type::INT64);
    b.ret(quotient);
    module.add_func(b.func).unwrap();

    let mut b = Build::high(&cx, "guarded", &[Type::INT64, Type::INT64], Type::ANY);
    let (body, catch) = (b.block(), b.block());
    let minus = b.int(-1);
    let first = b.val(Op::Upsilon, &[minus], Type::INT64);
    let enter = b.inst(Op::Enter, &[], &[body, catch], &[Type::TOKEN]);
    let token = b.func.result(enter).unwrap();
    b.at = body;
    let (x, y) = (b.param(1), b.param(2));
    let second = b.val(Op::Upsilon, &[x], Type::INT64);
    let quotient = b.invoke("div", &[x, y], &[Type::INT64; 2], Type::INT64);
    b.inst(Op::Leave, &[token], &[], &[]);
    b.ret(quotient);
    b.at = catch;
    let seen = b.val(Op::PhiC, &[first, second], Type::INT64);
    let exception = b.val(Op::TheException, &[], Type::ANY);
    let pair = cx.types.tuple_vararg(&[], Type::ANY).unwrap();
    let both = b.builtin(Builtin::Tuple, &[exception, seen], pair);
    b.inst(Op::PopException, &[token], &[], &[]);
    b.ret(both);
    let id = module.add_func(b.func).unwrap();

    let mut i = interp(&module);
    let fine = i.call(id, &[Val::int64(7), Val::int64(2)]).unwrap();
    assert_eq!(i.show(&fine).unwrap(), "3");
    let caught = i.call(id, &[Val::int64(7), Val::int64(0)]).unwrap();
    assert_eq!(i.show(&caught).unwrap(), "(DivideError(), 7)");
}

#[test]
fn a_list_of_a_million_nodes_is_made_and_dropped() {
    let cx = Context::new();
    let decl = cx.types.declare(cx.names.intern("Node"), &[]).unwrap();
    let node = cx.types.nominal(decl, &[]).unwrap();
    let link = cx.types.union(&[Type::NOTHING, node]).unwrap();
    let fields =
        [FieldDecl::new(cx.names.intern("next"), link), FieldDecl::new(cx.names.intern("val"), Type::INT64)];
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: fields.into() }).unwrap();
    let mut b = Build::high(&cx, "chain", &[Type::INT64], link);
    let entry = b.at;
    let (head, body, done) = (b.block(), b.block(), b.block());
    b.goto(head);
    b.at = head;
    let nothing = b.func.constant(Const::Singleton(Type::NOTHING));
    let (k, list) = (b.inst(Op::Phi, &[], &[], &[Type::INT64]), b.inst(Op::Phi, &[], &[], &[link]));
    let [kv, lv] = [k, list].map(|i| b.func.result(i).unwrap());
    let n = b.param(1);
    let go = b.intrinsic(Intrinsic::SltInt, &[kv, n], Type::BOOL);
    b.branch(go, body, done);
    b.at = body;
    let one = b.int(1);
    let next = b.intrinsic(Intrinsic::AddInt, &[kv, one], Type::INT64);
    let longer = b.val(Op::New(node), &[lv, kv], node);
    b.goto(head);
    let zero = b.int(0);
    for (phi, first, later) in [(k, zero, next), (list, nothing, longer)] {
        b.func.add_phi_edge(phi, entry, first);
        b.func.add_phi_edge(phi, body, later);
    }
    b.at = done;
    b.ret(lv);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    let short = i.call(id, &[Val::int64(2)]).unwrap();
    assert_eq!(i.show(&short).unwrap(), "Node(Node(nothing, 0), 1)");
    let long = i.call(id, &[Val::int64(1_000_000)]).unwrap();
    let again = i.call(id, &[Val::int64(1_000_000)]).unwrap();
    assert!(i.is_equal(&long, &again).unwrap());
    assert!(!i.is_equal(&long, &short).unwrap());
    assert!(i.show(&long).unwrap().starts_with("Node(Node("));
    // Fewer bytes than the list needs.
    let options = Options { max_heap_bytes: 1 << 20, ..Options::default() };
    let mut small = Interp::new(&module, options, Box::new(SimMemory::default()));
    let error = small.call(id, &[Val::int64(1_000_000)]).unwrap_err();
    assert_eq!(thrown(&mut small, error), "OutOfMemoryError()");
}

#[test]
fn a_call_pays_for_the_globals_that_it_looks_at() {
    let cx = Context::new();
    let mut b = Build::high(&cx, "f", &[], Type::ANY);
    let last = b.val(Op::GetGlobal(cx.names.intern("g999")), &[], Type::ANY);
    b.ret(last);
    let (mut module, id) = b.alone();
    for n in 0..1_000 {
        let init = Literal::Const(Const::String(cx.names.intern(&format!("the value of g{n}"))));
        let name = cx.names.intern(&format!("g{n}"));
        module.add_global(Global { name, ty: Type::ANY, init, kind: GlobalKind::Variable }).unwrap();
    }
    // Enough for some of the strings, but not all.
    let options = Options { max_heap_bytes: 1 << 12, ..Options::default() };
    let mut small = Interp::new(&module, options, Box::new(SimMemory::default()));
    let last = small.call(id, &[]).unwrap();
    assert_eq!(small.show(&last).unwrap(), "\"the value of g999\"");
    let mut value = |n: usize| small.global(cx.names.intern(&format!("g{n}")));
    assert!((0..999).any(|n| value(n).is_none()));
    assert!(value(1_000).is_none());
}

#[test]
fn fields_of_mutable_objects() {
    let cx = Context::new();
    let decl = cx.types.declare(cx.names.intern("Cell"), &[]).unwrap();
    let cell = cx.types.nominal(decl, &[]).unwrap();
    let mut fields = [("a", Type::INT64), ("b", Type::ANY), ("c", Type::INT64)]
        .map(|(name, ty)| FieldDecl::new(cx.names.intern(name), ty));
    fields[0].is_atomic = true;
    fields[2].is_const = true;
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: fields.into() }).unwrap();

    let run = |build: &dyn Fn(&mut Build, Value) -> Value| {
        let mut b = Build::high(&cx, "f", &[], Type::ANY);
        let one = b.int(1);
        let object = b.val(Op::New(cell), &[one], cell);
        let result = build(&mut b, object);
        b.ret(result);
        let (module, id) = b.alone();
        let mut i = interp(&module);
        match i.call(id, &[]) {
            Ok(val) => i.show(&val).unwrap(),
            Err(outcome) => thrown(&mut i, outcome),
        }
    };
    let field = |builtin: Builtin, name: &'static str, more: &'static [&'static str]| {
        run(&move |b: &mut Build, object| {
            let name = b.symbol(name);
            let mut args = vec![object, name];
            for text in more {
                args.push(match (text.strip_prefix(':'), text.parse()) {
                    (Some(symbol), _) => b.symbol(symbol),
                    (None, Ok(number)) => b.int(number),
                    (None, Err(_)) => {
                        let plus = b.cx.types.function(b.cx.names.intern(text));
                        b.func.constant(Const::Singleton(plus))
                    }
                });
            }
            b.builtin(builtin, &args, Type::ANY)
        })
    };
    assert_eq!(field(Builtin::Getfield, "b", &[]), "UndefRefError()");
    assert_eq!(field(Builtin::Getfield, "c", &[]), "0");
    assert_eq!(field(Builtin::Getfield, "d", &[]), "FieldError(Cell, :d)");
    assert_eq!(field(Builtin::Isdefined, "b", &[]), "false");
    assert_eq!(field(Builtin::Isdefined, "c", &[]), "true");
    assert_eq!(field(Builtin::Setfield, "b", &["5"]), "5");
    assert_eq!(
        field(Builtin::Setfield, "c", &["5"]),
        "ErrorException(\"setfield!: const field .c of type Cell cannot be changed\")"
    );
    assert_eq!(
        field(Builtin::Getfield, "a", &[]),
        "ConcurrencyViolationError(\"getfield: atomic field cannot be accessed non-atomically\")"
    );
    assert_eq!(field(Builtin::Getfield, "a", &[":monotonic"]), "1");
    assert_eq!(field(Builtin::Setfield, "a", &[":x", ":release"]), "TypeError(:setfield!, \"\", Int64, :x)");
    assert_eq!(field(Builtin::Swapfield, "a", &["9", ":acquire_release"]), "1");
    assert_eq!(field(Builtin::Modifyfield, "a", &["+", "4", ":monotonic"]), "1 => 5");
    assert_eq!(
        field(Builtin::Replacefield, "a", &["1", "8", ":acquire_release", ":monotonic"]),
        "(old = 1, success = true)"
    );
    assert_eq!(
        field(Builtin::Replacefield, "a", &["2", "8", ":acquire_release", ":monotonic"]),
        "(old = 1, success = false)"
    );
    assert_eq!(field(Builtin::Setfieldonce, "b", &["3"]), "true");
    assert_eq!(field(Builtin::Setfieldonce, "a", &["3", ":monotonic"]), "false");
}

#[test]
fn values_print_as_in_julia() {
    let cx = Context::new();
    let module = Module::new(cx.clone());
    let mut i = interp(&module);
    let bits = |ty, bits| Val::bits(&cx.types, ty, bits);
    let text = i.string(b"a\"b").unwrap();
    let single = bits(Type::FLOAT32, 1.5f32.to_bits().into());
    let symbol = Val::Symbol(cx.names.intern("Not Found"));
    let tuple = i.tuple(&[Val::int64(1), Val::bool(true), single.clone(), text.clone()]).unwrap();
    let one = i.tuple(&[symbol]).unwrap();
    let ints = i.array(Type::INT64, &[3], &[1, 2, 3].map(Val::int64)).unwrap();
    let floats = i.array(Type::FLOAT32, &[2], &[single.clone(), single.clone()]).unwrap();
    let mixed = i.array(Type::ANY, &[3], &[Val::int64(1), text, single]).unwrap();
    let nested =
        i.array(i.module().cx.types.vector(Type::INT64).unwrap(), &[1], std::slice::from_ref(&ints)).unwrap();
    let empty = i.array(Type::INT64, &[0], &[]).unwrap();
    let matrix = i.array(Type::INT64, &[2, 2], &[1, 2, 3, 4].map(Val::int64)).unwrap();
    let flags = i.array(Type::BOOL, &[2], &[Val::bool(true), Val::bool(false)]).unwrap();
    let pointer = bits(cx.types.ptr(Type::UINT8).unwrap(), 0xff);
    for (val, text) in [
        (Val::NOTHING, "nothing"),
        (tuple, "(1, true, 1.5f0, \"a\\\"b\")"),
        (one, "(Symbol(\"Not Found\"),)"),
        (ints, "[1, 2, 3]"),
        (floats, "Float32[1.5, 1.5]"),
        (mixed, "Any[1, \"a\\\"b\", 1.5f0]"),
        (nested, "[[1, 2, 3]]"),
        (empty, "Int64[]"),
        (matrix, "[1 3; 2 4]"),
        (flags, "Bool[1, 0]"),
        (pointer, "Ptr{UInt8} @0x00000000000000ff"),
        (bits(Type::INT128, u128::MAX), "-1"),
        (bits(Type::UINT16, 7), "0x0007"),
        (Val::Type(cx.types.vector(Type::FLOAT64).unwrap()), "Vector{Float64}"),
    ] {
        assert_eq!(i.show(&val).unwrap(), text);
    }
}

#[test]
fn a_cycle_prints_and_compares() {
    let cx = Context::new();
    let mut b = Build::high(&cx, "knot", &[], Type::ANY);
    let object = b.val(Op::New(Type::BOX), &[], Type::BOX);
    let contents = b.symbol("contents");
    b.builtin(Builtin::Setfield, &[object, contents, object], Type::ANY);
    b.ret(object);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    let (x, y) = (i.call(id, &[]).unwrap(), i.call(id, &[]).unwrap());
    assert_eq!(i.show(&x).unwrap(), "Core.Box(#= circular reference @-1 =#)");
    assert!(i.is_equal(&x, &y).unwrap());
}

#[test]
fn dynamic_calls_dispatch_promote_or_fail() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    for (ty, answer) in [(Type::INT64, 1), (Type::STRING, 2)] {
        let mut b = Build::high(&cx, "which", &[ty], Type::INT64);
        let answer = b.int(answer);
        b.ret(answer);
        module.add_func(b.func).unwrap();
    }
    let mut i = interp(&module);
    let text = i.string(b"x").unwrap();
    assert_eq!(i.call_named("which", &[Val::int64(3)]).unwrap().as_int64(), Some(1));
    assert_eq!(i.call_named("which", std::slice::from_ref(&text)).unwrap().as_int64(), Some(2));
    let error = i.call_named("which", &[Val::float64(1.0)]).unwrap_err();
    assert_eq!(thrown(&mut i, error), "MethodError(which, (1.0,), 0x0000000000000000)");
    let small = Val::bits(&cx.types, Type::UINT8, 255);
    let call = |i: &mut Interp<'_>, name: &str, args: &[Val]| match i.call_named(name, args) {
        Ok(val) => i.show(&val).unwrap(),
        Err(outcome) => thrown(i, outcome),
    };
    assert_eq!(call(&mut i, "+", &[Val::int64(1), Val::float64(0.5)]), "1.5");
    assert_eq!(call(&mut i, "+", &[Val::bool(true), Val::bool(true)]), "2");
    assert_eq!(call(&mut i, "*", &[small.clone(), small.clone()]), "0x01");
    assert_eq!(call(&mut i, "-", &[Val::int64(-3)]), "3");
    assert_eq!(call(&mut i, "<", &[Val::int64(-1), small.clone()]), "true");
    assert_eq!(call(&mut i, "/", &[Val::int64(1), Val::int64(4)]), "0.25");
    assert_eq!(call(&mut i, "%", &[Val::int64(1), Val::int64(0)]), "DivideError()");
    assert!(call(&mut i, "+", &[text, small]).starts_with("MethodError(+, (\"x\", 0xff)"));
    assert_eq!(call(&mut i, "error", &[Val::int64(3)]), "ErrorException(\"3\")");
}

#[test]
fn wild_accesses_are_faults_with_a_place() {
    let cx = Context::new();
    let ptr = cx.types.ptr(Type::INT32).unwrap();
    let mut b = Build::high(&cx, "peek", &[ptr, Type::INT64], Type::INT32);
    let (p, n, one) = (b.param(1), b.param(2), b.int(1));
    let val = b.intrinsic(Intrinsic::Pointerref, &[p, n, one], Type::INT32);
    b.ret(val);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    match i.call(id, &[Val::bits(&cx.types, ptr, 16), Val::int64(1)]) {
        Err(Outcome::Error(error)) => {
            assert!(matches!(error.fault, Fault::Memory(_)));
            let at = error.at.unwrap();
            assert_eq!(at.function, "peek(Ptr{Int32}, Int64)");
            assert!(at.inst.is_some());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn malformed_functions_are_faults() {
    let cx = Context::new();
    let run = |build: &dyn Fn(&mut Build)| {
        let mut b = Build::high(&cx, "f", &[Type::INT64], Type::INT64);
        build(&mut b);
        let (module, id) = b.alone();
        fault(interp(&module).call(id, &[Val::int64(1)]).unwrap_err())
    };
    assert_eq!(run(&|_| {}), Fault::NoTerminator);
    assert!(matches!(run(&|b| b.end(Op::Goto)), Fault::OperandCount { .. }));
    let stray = |b: &mut Build| {
        let block = b.func.make_block();
        b.goto(block);
    };
    assert!(matches!(run(&stray), Fault::ForeignId(_)));
    let wrong_result = |b: &mut Build| {
        let x = b.symbol("x");
        b.ret(x);
    };
    assert!(matches!(run(&wrong_result), Fault::TypeMismatch { .. }));
    let wrong_operand = |b: &mut Build| {
        let (x, y) = (b.symbol("x"), b.param(1));
        let sum = b.intrinsic(Intrinsic::AddInt, &[y, x], Type::INT64);
        b.ret(sum);
    };
    assert!(matches!(run(&wrong_operand), Fault::Operand { .. }));
    let wrong_widths = |b: &mut Build| {
        let (x, y) = (b.param(1), b.func.bits(&b.cx.types, Type::INT8, 1));
        let sum = b.intrinsic(Intrinsic::AddInt, &[x, y], Type::INT64);
        b.ret(sum);
    };
    assert!(matches!(run(&wrong_widths), Fault::Scalar(_)));
    let late_phi = |b: &mut Build| {
        let x = b.param(1);
        b.val(Op::Copy, &[x], Type::INT64);
        b.inst(Op::Phi, &[], &[], &[Type::INT64]);
        b.ret(x);
    };
    assert_eq!(run(&late_phi), Fault::PhiNotAtHead);
    let nothing_caught = |b: &mut Build| {
        let x = b.val(Op::TheException, &[], Type::ANY);
        b.ret(x);
    };
    assert_eq!(run(&nothing_caught), Fault::NoException);
    let handler_left = |b: &mut Build| {
        let (body, catch) = (b.block(), b.block());
        b.inst(Op::Enter, &[], &[body, catch], &[Type::TOKEN]);
        b.at = body;
        let x = b.param(1);
        b.ret(x);
        b.at = catch;
        b.ret(x);
    };
    assert_eq!(run(&handler_left), Fault::Handlers);
    assert!(matches!(run(&|b| b.end(Op::Safepoint)), Fault::Unsupported(_)));
}

#[test]
fn foreign_functions_by_name_and_by_address() {
    let cx = Context::new();
    let ptr = cx.types.ptr(Type::NOTHING).unwrap();
    let mut b = Build::high(&cx, "room", &[Type::UINT64], Type::UINT64);
    let foreign = |b: &mut Build, name: &str, result: Type, params: &[Type]| {
        let name = Some(b.cx.names.intern(name));
        b.func.add_foreign(ForeignData { name, result, params: params.into(), variadic_after: None })
    };
    let malloc = foreign(&mut b, "malloc", ptr, &[Type::UINT64]);
    let memset = foreign(&mut b, "memset", ptr, &[ptr, Type::INT32, Type::UINT64]);
    let strlen = foreign(&mut b, "strlen", Type::UINT64, &[ptr]);
    let size = b.param(1);
    let room = b.val(Op::ForeignCall(malloc), &[size], ptr);
    let one = b.func.bits(&cx.types, Type::UINT64, 1);
    let text = b.intrinsic(Intrinsic::SubInt, &[size, one], Type::UINT64);
    let byte = b.func.bits(&cx.types, Type::INT32, 65);
    b.val(Op::ForeignCall(memset), &[room, byte, text], ptr);
    // A value to be kept alive follows the arguments.
    let length = b.val(Op::ForeignCall(strlen), &[room, size], Type::UINT64);
    b.ret(length);
    let (module, id) = b.alone();
    let mut i = interp(&module);
    let length = i.call(id, &[Val::bits(&cx.types, Type::UINT64, 9)]).unwrap();
    assert_eq!(length.as_bits(), Some(8));
}

#[test]
fn low_functions_compute_on_memory() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let mut b = Build::low(&cx, "both", &[Type::I64], &[Type::I64, Type::I8]);
    let x = b.param(0);
    let three = b.func.bits(&cx.types, Type::I64, 3);
    let product = b.inst(Op::Intrinsic(Intrinsic::CheckedSmulInt), &[x, three], &[], &[Type::I64, Type::I8]);
    let results: Vec<Value> = b.func.results(product).collect();
    b.inst(Op::Return, &results, &[], &[]);
    module.add_func(b.func).unwrap();

    let mut b = Build::low(&cx, "main", &[Type::I64], &[Type::I64]);
    let slot = b.func.add_slot(SlotData::bytes(16, 3));
    let callee = b.func.add_callee(CalleeData::Symbol {
        symbol: cx.names.intern("both"),
        params: [Type::I64].into(),
        results: [Type::I64, Type::I8].into(),
    });
    let x = b.param(0);
    let call = b.inst(Op::CallSymbol(callee), &[x], &[], &[Type::I64, Type::I8]);
    let [product, wrapped] = b.func.results(call).collect::<Vec<_>>()[..] else { unreachable!() };
    let (bad, good) = (b.block(), b.block());
    b.branch(wrapped, bad, good);
    b.at = bad;
    let plus = b.func.constant(Const::Address(brolga_ir::constant::Address::Symbol(cx.names.intern("*"))));
    let code = Thrown { function: BaseFn::ThrowOverflowerrBinaryop, types: [Some(Type::INT64); 2] };
    let code = b.func.bits(&cx.types, Type::I64, code.pack().unwrap().into());
    let zero = b.func.bits(&cx.types, Type::I64, 0);
    let two = b.func.bits(&cx.types, Type::I64, 2);
    let throw = Op::CallRuntime(RuntimeFn::ThrowOperands);
    b.inst(throw, &[code, plus, x, zero, two, zero], &[], &[]);
    b.inst(Op::Unreachable, &[], &[], &[]);
    b.at = good;
    let address = b.val(Op::SlotAddr(slot), &[], Type::PTR);
    let access = Access { offset: 8, region: Region::Slot, align_log2: 3 };
    b.inst(Op::Store(access), &[address, product], &[], &[]);
    let eight = b.func.bits(&cx.types, Type::I64, 8);
    let second = b.intrinsic(Intrinsic::AddPtr, &[address, eight], Type::PTR);
    b.inst(Op::MemCopy, &[address, second, eight], &[], &[]);
    let rmw = Op::AtomicRmw(RmwOp::Smin, Ordering::SequentiallyConsistent);
    let limit = b.func.bits(&cx.types, Type::I64, (-5i64).cast_unsigned().into());
    let old = b.val(rmw, &[address, limit], Type::I64);
    let access = Access { offset: 0, region: Region::Slot, align_log2: 3 };
    let new = b.val(Op::Load(access), &[address], Type::I64);
    let sum = b.intrinsic(Intrinsic::AddInt, &[old, new], Type::I64);
    b.ret(sum);
    let id = module.add_func(b.func).unwrap();

    let mut i = interp(&module);
    let word = |n: i64| Val::Bits { ty: Type::I64, bits: n.cast_unsigned().into() };
    let results = i.call_low(id, &[word(7)]).unwrap();
    assert_eq!(results[0].as_bits(), Some(16));
    let results = i.call_low(id, &[word(-7)]).unwrap();
    assert_eq!(results[0].as_bits(), Some((-42i64).cast_unsigned().into()));
    let error = i.call_low(id, &[word(i64::MAX)]).unwrap_err();
    assert_eq!(thrown(&mut i, error), "OverflowError(\"9223372036854775807 * 2 overflowed for type Int64\")");
}
