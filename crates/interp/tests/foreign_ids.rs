//! Foreign ids, of other functions, modules and contexts, passed to everything in this crate that takes an
//! id.
//!
//! | passed to | result |
//! |---|---|
//! | a module, the builder, the interpreter | `None` or an error |
//! | a context | a type reads as `Union{}`, a name as `?`, and no type can be made from them |
//! | the verifier | `structure-id` |
//! | a function | a panic, like a slice's, without any change |

use std::panic::{AssertUnwindSafe, catch_unwind};

use brolga_interp::{self as interp, Fault, Interp, Outcome, SimMemory};
use brolga_ir::analysis::{Cfg, DomTree};
use brolga_ir::binary::{Stored, write_with_types};
use brolga_ir::build::{BuildError, Builder};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::cursor::Cursor;
use brolga_ir::func::{CalleeData, ForeignData, MetaData, MetaItem, Place, RootMap, Signature};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::{Global, GlobalKind, Literal};
use brolga_ir::op::{Access, Region};
use brolga_ir::text::show_func;
use brolga_ir::types::{DeclKind, FieldDecl, StaticBound, StaticParam, TypeError};
use brolga_ir::verify::{verify_func, verify_inst, verify_module};
use brolga_ir::{
    Block, Callee, Const, Context, Foreign, Func, FuncId, Inst, Level, Meta, Module, Name, Op, Param,
    RuntimeFn, Slot, Type, Value,
};

/// Numbers that nothing here has: the next ones, and the last.
const NUMBERS: [u32; 2] = [77, u32::MAX - 1];

/// `twice(x::Int64) = x + x`.
fn twice(cx: &Context) -> Func {
    let mut b = Builder::high(cx, "twice", &[("x", Type::INT64)], Type::INT64);
    let x = b.param(0).unwrap();
    let sum = b.intrinsic(Intrinsic::AddInt, &[x, x]).unwrap();
    b.ret(&[sum]).unwrap();
    b.finish().unwrap()
}

/// A type and a name from a larger context.
fn of_another_context() -> (Type, Name) {
    let other = Context::new();
    for n in 0..5_000 {
        other.types.int(n);
    }
    let names: Vec<Name> = (0..5_000).map(|n| other.names.intern(&format!("n{n}"))).collect();
    (other.types.int(4_999), names[4_999])
}

#[test]
fn a_module_has_no_functions_of_others() {
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let own = module.add_func(twice(&cx)).unwrap();
    for id in NUMBERS.map(FuncId::from_u32) {
        assert!(module.func(id).is_none() && module.func_mut(id).is_none() && module.symbol(id).is_none());
        assert!(module.first_form(id).is_none() && module.shared(id).is_none());
        assert_eq!(&*module.symbol_of(id), "");
        module.supersede(id, twice(&cx));
        let stored = Stored::open(write_with_types(&module, &[]), Context::new()).unwrap();
        assert!(stored.declaration(id).unwrap().is_none());
        let mut interp = Interp::new(&module, interp::Options::default(), Box::<SimMemory>::default());
        for outcome in [interp.call(id, &[]).unwrap_err(), interp.call_low(id, &[]).unwrap_err()] {
            let Outcome::Error(error) = outcome else { panic!("{outcome:?}") };
            assert!(
                matches!(error.fault, Fault::ForeignId(ref text) if *text == id.to_string()),
                "{error:?}"
            );
        }
    }
    assert_eq!(module.symbol(own).unwrap(), "twice(Int64)");
    assert_eq!(module.func_count(), 1);
}

#[test]
fn a_context_makes_no_type_of_what_it_does_not_have() {
    let (ty, name) = of_another_context();
    let cx = Context::new();
    let types = &cx.types;
    assert!(!types.has(ty) && !cx.names.has(name) && types.has(Type::INT64));
    assert_eq!((types.display(ty).to_string(), cx.names.text(name)), ("Union{}".to_owned(), "?"));
    let decl = {
        let other = Context::new();
        let names = (0..500).map(|n| other.names.intern(&format!("T{n}")));
        let decls: Vec<_> = names.map(|name| other.types.declare(name, &[]).unwrap()).collect();
        decls[499]
    };
    let made = [
        types.ptr(ty),
        types.vector(ty),
        types.array(ty, 2),
        types.memory(ty),
        types.memory_ref(ty),
        types.type_of(ty),
        types.tuple(&[Type::INT64, ty]),
        types.tuple_vararg(&[], ty),
        types.union(&[Type::INT64, ty]),
        types.nominal(decl, &[]),
    ];
    assert_eq!(made.iter().position(|result| *result != Err(TypeError::Foreign)), None);
    assert_eq!(types.named_tuple(&[], ty), Err(TypeError::NamedTupleShape));
    let own = types.declare(cx.names.intern("Own"), &[]).unwrap();
    let holds =
        DeclKind::Struct { mutable: false, fields: [FieldDecl::new(cx.names.intern("a"), ty)].into() };
    assert_eq!(types.define(own, Type::ANY, holds), Err(TypeError::Foreign));
    assert_eq!(types.define(decl, Type::ANY, DeclKind::Abstract), Err(TypeError::Foreign));
    assert!(types.define(own, ty, DeclKind::Abstract).is_err());
    assert!(types.layout(ty).is_err() && types.fields(ty).is_none() && types.body(decl).is_none());
    assert_eq!(types.supertype(ty), Type::ANY);
}

#[test]
fn the_builder_refuses_ids_of_others() {
    let cx = Context::new();
    let (ty, _) = of_another_context();
    for number in NUMBERS {
        let (value, block, slot) = (Value::from_u32(number), Block::from_u32(number), Slot::from_u32(number));
        let mut b = Builder::high(&cx, "f", &[("x", Type::INT64)], Type::INT64);
        let x = b.param(0).unwrap();
        let mut other = Builder::high(&cx, "g", &[], Type::INT64);
        let var = (0..9).map(|_| other.declare_var(Type::INT64)).last().unwrap();
        let own = b.declare_var(Type::INT64);
        let access = Access { offset: 0, region: Region::Raw, align_log2: 0 };
        let results: Vec<Result<(), BuildError>> = vec![
            b.type_of(value).map(drop),
            b.switch_to_block(block),
            b.seal_block(block),
            b.def_var(own, value),
            b.def_var(var, x),
            b.use_var(var).map(drop),
            b.statement(Op::Copy, &[value], &[Type::INT64]).map(drop),
            b.statement(Op::Copy, &[x], &[ty]).map(drop),
            b.value(Op::New(ty), &[], Type::ANY).map(drop),
            b.value(Op::Invoke(Callee::from_u32(number)), &[x], Type::ANY).map(drop),
            b.value(Op::CFunction(Callee::from_u32(number)), &[x], Type::ANY).map(drop),
            b.value(Op::ForeignCall(Foreign::from_u32(number)), &[], Type::ANY).map(drop),
            b.statement(Op::LoopInfo(Meta::from_u32(number)), &[], &[]).map(drop),
            b.intrinsic(Intrinsic::AddInt, &[x, value]).map(drop),
            b.intrinsic(Intrinsic::AddInt, &[value, x]).map(drop),
            b.convert(Intrinsic::TruncInt, value, Type::INT8).map(drop),
            b.convert(Intrinsic::TruncInt, x, ty).map(drop),
            b.checked(Intrinsic::CheckedSaddInt, value, x).map(drop),
            b.ifelse(value, x, x).map(drop),
            b.builtin(Builtin::Tuple, &[value], Type::ANY).map(drop),
            b.tuple(&[value]).map(drop),
            b.element(value, 1).map(drop),
            b.getfield(value, "a").map(drop),
            b.setfield(value, "a", x).map(drop),
            b.new_object(ty, &[]).map(drop),
            b.new_object(Type::INT64, &[value]).map(drop),
            b.call_method(&Module::new(cx.clone()), "g", &[value]).map(drop),
            b.invoke("g", &[value], Type::ANY).map(drop),
            b.call(value, &[], Type::ANY).map(drop),
            b.slot_addr(slot).map(drop),
            b.load(access, value, Type::I64).map(drop),
            b.store(access, value, x),
            b.call_symbol("g", &[value], &[]).map(drop),
            b.call_runtime(RuntimeFn::Throw, &[value]).map(drop),
            b.goto(block),
            b.branch(value, block, block),
            b.ret(&[value]),
            b.enter(block, block).map(drop),
        ];
        let accepted = results.iter().position(Result::is_ok);
        assert_eq!(accepted, None, "of {number}");
        assert!(Builder::high(&cx, "g", &[("x", ty)], Type::INT64).finish().is_err());
    }
}

/// Applies a change to a function with one of its statements and a foreign number.
type Change = dyn Fn(&mut Func, Inst, u32);

/// A change after which a function names something that does not exist.
struct Breakage {
    what: &'static str,
    change: Box<Change>,
}

fn breakages() -> Vec<Breakage> {
    fn on(what: &'static str, change: impl Fn(&mut Func, Inst, u32) + 'static) -> Breakage {
        Breakage { what, change: Box::new(change) }
    }
    let (ty, name) = of_another_context();
    let set = |func: &mut Func, inst: Inst, op: Op| {
        let args = func.args(inst).to_vec();
        func.set_op(inst, op, &args);
    };
    vec![
        on("operand", |func, inst, n| func.args_mut(inst)[0] = Value::from_u32(n)),
        on("target", |func, inst, n| func.set_inst_blocks(inst, &[Block::from_u32(n)])),
        on("edge", |func, inst, n| func.add_phi_edge(inst, Block::from_u32(n), Value::from_u32(n))),
        on("invoke", move |func, inst, n| set(func, inst, Op::Invoke(Callee::from_u32(n)))),
        on("symbol", move |func, inst, n| set(func, inst, Op::CallSymbol(Callee::from_u32(n)))),
        on("function for C", move |func, inst, n| set(func, inst, Op::CFunction(Callee::from_u32(n)))),
        on("C function", move |func, inst, n| set(func, inst, Op::ForeignCall(Foreign::from_u32(n)))),
        on("slot", move |func, inst, n| set(func, inst, Op::SlotAddr(Slot::from_u32(n)))),
        on("note", move |func, inst, n| set(func, inst, Op::LoopInfo(Meta::from_u32(n)))),
        on("new", move |func, inst, _| set(func, inst, Op::New(ty))),
        on("alloc", move |func, inst, _| set(func, inst, Op::Alloc(ty))),
        on("global", move |func, inst, _| set(func, inst, Op::GetGlobal(name))),
        on("variable", move |func, inst, _| set(func, inst, Op::ThrowUndefIfNot(name))),
        on("result", move |func, inst, _| func.set_result_type(func.result(inst).unwrap(), ty)),
        on("parameter", move |func, _, _| func.sig.params[1].ty = ty),
        on("parameter's name", move |func, _, _| func.sig.params[1].name = Some(name)),
        on("result type", move |func, _, _| func.sig.results = vec![ty]),
        on("name", move |func, _, _| func.name = name),
        on("static", move |func, _, _| {
            let bound = StaticBound::Open { lower: Type::BOTTOM, upper: ty };
            func.sig.statics.params = vec![StaticParam { name: func.name, bound }];
        }),
        on("pattern", move |func, _, _| func.sig.statics.patterns = vec![ty]),
        on("constant", move |func, _, _| {
            let _ = func.constant(Const::Type { of: ty, ty: Type::DATATYPE });
        }),
        on("undefined", move |func, _, _| {
            let _ = func.constant(Const::Undef(ty));
        }),
        on("text", move |func, _, _| {
            let _ = func.constant(Const::String(name));
        }),
        on("address", move |func, _, _| {
            let _ = func.constant(Const::Address(Address::Global(name)));
        }),
        on("method", move |func, _, _| {
            let callee = CalleeData::Method { function: ty, args: [].into(), result: Type::ANY };
            func.add_callee(callee);
        }),
        on("compiled", move |func, _, _| {
            let callee = CalleeData::Symbol { symbol: name, params: [].into(), results: [].into() };
            func.add_callee(callee);
        }),
        on("foreign", move |func, _, _| {
            let data =
                ForeignData { name: None, result: Type::ANY, params: [ty].into(), variadic_after: None };
            func.add_foreign(data);
        }),
        on("loop note", |func, _, n| {
            let entry = func.entry().unwrap();
            func.set_loop_note(entry, Some(Meta::from_u32(n)));
        }),
        on("meta", move |func, _, _| {
            func.add_meta(MetaData { items: vec![MetaItem::Name(name)] });
        }),
    ]
}

#[test]
fn the_verifier_reports_everything_that_is_not_there() {
    let cx = Context::new();
    for number in NUMBERS {
        for Breakage { what, change } in breakages() {
            let mut func = twice(&cx);
            let inst = func.first_inst(func.entry().unwrap()).unwrap();
            change(&mut func, inst, number);
            let found = verify_func(&cx, &func).expect_err(what);
            assert!(found.iter().any(|violation| violation.code() == "structure-id"), "{what}: {found:?}");
            // On its own the statement may be valid.
            let _ = verify_inst(&cx, &func, inst);
            let mut module = Module::new(cx.clone());
            module.add_func(func).unwrap();
            assert!(verify_module(&module).is_err(), "{what}");
        }
    }
}

#[test]
fn globals_of_another_context_are_reported() {
    let (ty, name) = of_another_context();
    let cx = Context::new();
    let own = cx.names.intern("g");
    let bits = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
    for global in [
        Global { name, ty: Type::INT64, init: bits.clone(), kind: GlobalKind::Variable },
        Global { name: own, ty, init: bits, kind: GlobalKind::Variable },
        Global {
            name: own,
            ty: Type::ANY,
            init: Literal::Const(Const::Type { of: ty, ty: Type::DATATYPE }),
            kind: GlobalKind::Variable,
        },
        Global {
            name: own,
            ty: Type::ANY,
            init: Literal::Aggregate { ty, fields: Vec::new() },
            kind: GlobalKind::Variable,
        },
    ] {
        let mut module = Module::new(cx.clone());
        module.add_global(global).unwrap();
        let found = verify_module(&module).unwrap_err();
        let message = found.globals[0].message(&cx);
        assert!(message.contains("which does not exist"), "{message}");
    }
}

/// Everything that can be done to a function with an id.
type Act = fn(&mut Func, u32);

#[test]
fn a_function_panics_like_a_slice_and_stays_as_it_is() {
    let cx = Context::new();
    let acts: &[(&str, Act)] = &[
        ("value_def", |f, n| {
            let _ = f.value_def(Value::from_u32(n));
        }),
        ("def_inst", |f, n| {
            let _ = f.def_inst(Value::from_u32(n));
        }),
        ("ty", |f, n| {
            let _ = f.ty(Value::from_u32(n));
        }),
        ("set_result_type", |f, n| f.set_result_type(Value::from_u32(n), Type::ANY)),
        ("as_const", |f, n| {
            let _ = f.as_const(Value::from_u32(n)).cloned();
        }),
        ("as_bits", |f, n| {
            let _ = f.as_bits(Value::from_u32(n));
        }),
        ("op", |f, n| {
            let _ = f.op(Inst::from_u32(n));
        }),
        ("set_op", |f, n| f.set_op(Inst::from_u32(n), Op::Copy, &[])),
        ("args", |f, n| {
            let _ = f.args(Inst::from_u32(n)).len();
        }),
        ("args_mut", |f, n| {
            let _ = f.args_mut(Inst::from_u32(n)).len();
        }),
        ("inst_blocks", |f, n| {
            let _ = f.inst_blocks(Inst::from_u32(n)).len();
        }),
        ("inst_blocks_mut", |f, n| {
            let _ = f.inst_blocks_mut(Inst::from_u32(n)).len();
        }),
        ("set_inst_blocks", |f, n| f.set_inst_blocks(Inst::from_u32(n), &[])),
        ("results", |f, n| {
            let _ = f.results(Inst::from_u32(n));
        }),
        ("result", |f, n| {
            let _ = f.result(Inst::from_u32(n));
        }),
        ("phi_edges", |f, n| {
            let _ = f.phi_edges(Inst::from_u32(n)).count();
        }),
        ("add_phi_edge", |f, n| f.add_phi_edge(Inst::from_u32(n), Block::from_u32(0), Value::from_u32(0))),
        ("retain_phi_edges", |f, n| f.retain_phi_edges(Inst::from_u32(n), |_, _| true)),
        ("set_place", |f, n| f.set_place(Inst::from_u32(n), Place::default())),
        ("append_block", |f, n| f.append_block(Block::from_u32(n))),
        ("insert_block_after", |f, n| f.insert_block_after(Block::from_u32(n), Block::from_u32(0))),
        ("prepend_block", |f, n| f.prepend_block(Block::from_u32(n))),
        ("append_inst", |f, n| f.append_inst(Inst::from_u32(n), Block::from_u32(0))),
        ("append_inst to", |f, n| f.append_inst(Inst::from_u32(0), Block::from_u32(n))),
        ("prepend_inst", |f, n| f.prepend_inst(Inst::from_u32(n), Block::from_u32(0))),
        ("insert_before", |f, n| f.insert_before(Inst::from_u32(n), Inst::from_u32(0))),
        ("insert_after", |f, n| f.insert_after(Inst::from_u32(n), Inst::from_u32(0))),
        ("split_block", |f, n| f.split_block(Inst::from_u32(0), Block::from_u32(n))),
        ("callee", |f, n| {
            let _ = f.callee(Callee::from_u32(n)).clone();
        }),
        ("set_cold", |f, n| f.set_cold(Block::from_u32(n))),
        ("set_branch_weights", |f, n| f.set_branch_weights(Inst::from_u32(n), None)),
        ("set_hint", |f, n| f.set_hint(Inst::from_u32(n), Default::default())),
        ("set_call_inlining", |f, n| f.set_call_inlining(Inst::from_u32(n), None)),
        ("swap_branch", |f, n| f.swap_branch(Inst::from_u32(n))),
        ("set_callee_summary", |f, n| f.set_callee_summary(Callee::from_u32(n), None)),
        ("foreign", |f, n| {
            let _ = f.foreign(Foreign::from_u32(n)).clone();
        }),
        ("slot", |f, n| {
            let _ = f.slot(Slot::from_u32(n));
        }),
        ("meta", |f, n| {
            let _ = f.meta(Meta::from_u32(n)).clone();
        }),
        ("cursor", |f, n| {
            let _ = Cursor::new(f).at_bottom(Block::from_u32(n)).ret(&[]);
        }),
    ];
    for &(what, act) in acts {
        for number in NUMBERS {
            let mut func = twice(&cx);
            let before = show_func(&cx, &func).to_string();
            let panicked = catch_unwind(AssertUnwindSafe(|| act(&mut func, number))).is_err();
            assert!(panicked, "{what} of {number} is taken");
            assert_eq!(show_func(&cx, &func).to_string(), before, "{what}");
            // The cursor makes its instruction before it finds no position for it.
            assert_eq!(verify_func(&cx, &func), Ok(()), "{what}");
        }
    }
}

#[test]
fn questions_about_places_and_hints_say_no() {
    let cx = Context::new();
    for number in NUMBERS {
        let (block, inst, value) = (Block::from_u32(number), Inst::from_u32(number), Value::from_u32(number));
        let mut func = twice(&cx);
        let before = show_func(&cx, &func).to_string();
        assert!(
            !func.has_value(value) && !func.is_block(block) && !func.is_placed(block) && !func.is_cold(block)
        );
        assert_eq!((func.next_block(block), func.prev_block(block)), (None, None));
        assert_eq!(
            (func.first_inst(block), func.last_inst(block), func.terminator(block)),
            (None, None, None)
        );
        assert_eq!((func.next_inst(inst), func.prev_inst(inst), func.inst_block(inst)), (None, None, None));
        assert_eq!((func.block_insts(block).count(), func.successors(block).len()), (0, 0));
        assert_eq!(
            (func.place(inst), func.branch_weights(inst), func.hint(inst)),
            (Place::default(), None, None)
        );
        assert_eq!(func.call_inlining(inst), None);
        assert_eq!(
            (func.loop_note(block), func.root_map(inst).cloned(), func.take_root_map(inst)),
            (None, None, None)
        );
        let callee = Callee::from_u32(number);
        assert_eq!((func.callee_effects(callee), func.callee_summary(callee)), (None, None));
        func.copy_hint(inst, inst);
        func.move_loop_note(block, block);
        func.remove_inst(inst);
        func.remove_block(block);
        func.split_block(inst, func.entry().unwrap());
        func.set_root_map(inst, RootMap { slot: Slot::from_u32(number), offsets: [].into() });
        func.replace_values(|value| value);
        assert_eq!(show_func(&cx, &func).to_string(), before);
        let cfg = Cfg::compute(&func);
        let tree = DomTree::compute(&cfg);
        assert!(tree.is_reachable(func.entry().unwrap()));
    }
}

#[test]
fn a_move_next_to_itself_changes_nothing() {
    let cx = Context::new();
    let sig = Signature { params: vec![Param { name: None, ty: Type::I64 }], ..Signature::default() };
    let mut func = Func::new(cx.names.intern("f"), Level::Low, sig);
    let x = func.params()[0];
    let mut at = Cursor::new(&mut func);
    let first = at.append_block();
    let a = at.ins(Op::Copy, &[x], &[Type::I64]);
    let b = at.ins(Op::Copy, &[x], &[Type::I64]);
    let second = at.append_block();
    let loose = func.make_block();
    let order = |func: &Func| {
        (func.blocks().take(9).collect::<Vec<_>>(), func.block_insts(first).take(9).collect::<Vec<_>>())
    };
    let before = (vec![first, second], vec![a, b]);
    let acts: [&dyn Fn(&mut Func); 9] = [
        &|f| f.insert_block_after(second, second),
        &|f| f.insert_block_after(second, loose),
        &|f| f.append_block(second),
        &|f| f.insert_after(a, a),
        &|f| f.insert_before(a, a),
        &|f| f.insert_before(a, b),
        &|f| f.append_inst(b, first),
        &|f| f.prepend_inst(a, first),
        &|f| f.split_block(a, first),
    ];
    for (n, act) in acts.iter().enumerate() {
        act(&mut func);
        assert_eq!(order(&func), before, "act {n}");
    }
    assert_eq!(func.last_block(), Some(second));
}
