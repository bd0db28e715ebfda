//! Round trips and damage on modules built here; the corpus and the examples are in `tests/binary.rs` of the crate.

use super::*;
use crate::build::Builder;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::func::{ForeignData, MetaData, MetaItem};
use crate::hints::Inlining;
use crate::intrinsic::Intrinsic;
use crate::module::{Global, GlobalKind};
use crate::op::{Access, Op, Ordering, Region, RmwOp};
use crate::text::show_module;
use crate::types::{DeclKind, FieldDecl, Type};
use crate::{Context, RuntimeFn};

/// A module with every kind of part.
fn sample(cx: &Arc<Context>) -> Module {
    let (types, names) = (&cx.types, &cx.names);
    let shape = types.declare(names.intern("Shape"), &[]).unwrap();
    types.define(shape, Type::ANY, DeclKind::Abstract).unwrap();
    let shape = types.nominal(shape, &[]).unwrap();
    let mark = types.declare(names.intern("Mark"), &[]).unwrap();
    types.define(mark, shape, DeclKind::Struct { mutable: false, fields: [].into() }).unwrap();
    let mark = types.nominal(mark, &[]).unwrap();
    let node = types.declare(names.intern("Node"), &[names.intern("T")]).unwrap();
    let inner = types.nominal(node, &[types.param(0)]).unwrap();
    let next = types.union(&[inner, mark, Type::INT64]).unwrap();
    let field = |name, ty| FieldDecl::new(names.intern(name), ty);
    let fixed = FieldDecl { is_const: true, ..field("id", Type::INT64) };
    let fields = [field("next", next), field("val", types.param(0)), fixed].into();
    types.define(node, Type::ANY, DeclKind::Struct { mutable: true, fields }).unwrap();
    let node = types.nominal(node, &[Type::FLOAT64]).unwrap();
    let mut module = Module::new(cx.clone());
    let one = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
    let pair = types.tuple(&[Type::INT64, Type::INT64]).unwrap();
    let nested = types.tuple(&[pair, Type::INT64]).unwrap();
    let inner = Literal::Aggregate { ty: pair, fields: vec![one.clone(), one.clone()] };
    let init = Literal::Aggregate { ty: nested, fields: vec![inner, one] };
    module
        .add_global(Global { name: names.intern("origin"), ty: nested, init, kind: GlobalKind::Constant })
        .unwrap();
    module.add_func(high(cx, node, pair)).unwrap();
    module.add_func(low(cx)).unwrap();
    crate::verify::verify_module(&module).unwrap();
    module
}

fn high(cx: &Arc<Context>, node: Type, pair: Type) -> crate::Func {
    let params = [("n", node), ("i", Type::INT64), ("go", Type::BOOL)];
    let mut b = Builder::high(cx, "walk", &params, Type::INT64);
    let [n, i, go] = [0, 1, 2].map(|p| b.param(p).unwrap());
    b.set_line(12);
    let sum = b.declare_var(Type::INT64);
    b.def_var(sum, i).unwrap();
    let (head, body, done) = (b.create_block(), b.create_block(), b.create_block());
    b.goto(head).unwrap();
    b.switch_to_block(head).unwrap();
    b.branch(go, body, done).unwrap();
    b.switch_to_block(body).unwrap();
    let id = b.getfield(n, "id").unwrap();
    b.set_line(13);
    let (old, wrapped) = {
        let old = b.use_var(sum).unwrap();
        b.checked(Intrinsic::CheckedSaddInt, old, id).unwrap()
    };
    b.statement(Op::ThrowUndefIfNot(cx.names.intern("x")), &[wrapped], &[Type::ANY]).unwrap();
    b.def_var(sum, old).unwrap();
    let half = b.float64(-0.5);
    b.setfield(n, "val", half).unwrap();
    let text = b.string("häß\n");
    let printed = b.invoke("println", &[text], Type::NOTHING).unwrap();
    b.set_call_inlining(printed, Inlining::Never).unwrap();
    b.set_inlining(Inlining::Always).unwrap();
    let labs = ForeignData {
        name: Some(cx.names.intern("labs")),
        result: Type::INT64,
        params: [Type::INT64].into(),
        variadic_after: Some(1),
    };
    b.foreign_call(labs, &[old], &[n]).unwrap();
    b.statement(Op::BoundsCheck(true), &[], &[Type::BOOL]).unwrap();
    b.statement(Op::BoundsCheck(false), &[], &[Type::BOOL]).unwrap();
    b.goto(head).unwrap();
    b.switch_to_block(done).unwrap();
    let sum = b.use_var(sum).unwrap();
    b.builtin(Builtin::Typeof, &[sum], Type::DATATYPE).unwrap();
    b.ret(&[sum]).unwrap();
    let mut func = b.finish().unwrap();
    let one = func.bits(&cx.types, Type::INT64, 1);
    let constant = func.constant(Const::Aggregate { ty: pair, fields: [one, one].into() });
    let items = vec![
        MetaItem::Name(cx.names.intern("julia.simdloop")),
        MetaItem::Nothing,
        MetaItem::Int(-3),
        MetaItem::Pair(cx.names.intern("unroll"), 4),
    ];
    let meta = func.add_meta(MetaData { items });
    let body = func.blocks().nth(2).unwrap();
    let mut at = crate::cursor::Cursor::new(&mut func);
    at.before_terminator(body);
    at.ins(Op::Copy, &[constant], &[pair]);
    at.ins(Op::GetGlobal(cx.names.intern("origin")), &[], &[Type::ANY]);
    at.ins(Op::LoopInfo(meta), &[], &[]);
    func
}

fn low(cx: &Arc<Context>) -> crate::Func {
    let mut b = Builder::low(cx, "raw", &[Type::PTR, Type::I64], &[Type::I64, Type::F64]);
    let (p, n) = (b.param(0).unwrap(), b.param(1).unwrap());
    let slot = b.create_slot(24, 3);
    let addr = b.slot_addr(slot).unwrap();
    let access = Access { offset: -8, region: Region::Raw, align_log2: 2 };
    let x = b.load(access, p, Type::F64).unwrap();
    b.store(Access { offset: 16, region: Region::Slot, align_log2: 3 }, addr, x).unwrap();
    b.statement(Op::MemCopy, &[p, addr, n], &[]).unwrap();
    let rmw = Op::AtomicRmw(RmwOp::Umax, Ordering::AcquireRelease);
    let old = b.value(rmw, &[p, n], Type::I64).unwrap();
    b.value(Op::AtomicCas(Ordering::SequentiallyConsistent), &[p, n, old], Type::I64).unwrap();
    b.value(Op::AtomicLoad(Ordering::Acquire), &[p], Type::I64).unwrap();
    b.statement(Op::AtomicStore(Ordering::Release), &[p, old], &[]).unwrap();
    b.statement(Op::Safepoint, &[], &[]).unwrap();
    b.call_runtime(RuntimeFn::PrintInt, &[n]).unwrap();
    let called = b.call_symbol("other", &[n, x], &[Type::I64, Type::F64]).unwrap();
    b.ret(&called).unwrap();
    let mut func = b.finish().unwrap();
    let number = func.add_data(b"bytes");
    let data = func.constant(Const::Address(crate::constant::Address::Data(number)));
    let entry = func.entry().unwrap();
    let mut at = crate::cursor::Cursor::new(&mut func);
    at.before_terminator(entry);
    at.ins(Op::Copy, &[data], &[Type::PTR]);
    func
}

#[test]
fn a_written_module_is_read_back_unchanged() {
    let cx = Context::new();
    let module = sample(&cx);
    let bytes = write(&module);
    assert_eq!(write(&module), bytes);
    for cx in [cx, Context::new()] {
        let back = read(&bytes, cx).unwrap();
        assert_eq!(show_module(&back).to_string(), show_module(&module).to_string());
        assert_eq!(back.globals().len(), 1);
        let lines = |m: &Module| {
            let insts = |f: &crate::Func| {
                f.blocks().flat_map(|b| f.block_insts(b)).map(|i| f.place(i).at).collect::<Vec<_>>()
            };
            m.funcs().map(|(_, f)| insts(f)).collect::<Vec<_>>()
        };
        assert_eq!(lines(&back), lines(&module));
        let hints = |m: &Module| {
            let insts = |f: &crate::Func| {
                let insts: Vec<_> = f.blocks().flat_map(|b| f.block_insts(b)).collect();
                insts.into_iter().map(|i| f.call_inlining(i)).collect::<Vec<_>>()
            };
            m.funcs().map(|(_, f)| (f.inlining, insts(f))).collect::<Vec<_>>()
        };
        assert_eq!(hints(&back), hints(&module));
        assert_eq!(hints(&back)[0].0, Some(Inlining::Always));
        assert_eq!(hints(&back)[0].1.iter().flatten().collect::<Vec<_>>(), [&Inlining::Never]);
        assert_eq!(write(&back), bytes);
    }
}

#[test]
fn headers_are_checked() {
    let bytes = write(&sample(&Context::new()));
    let refusal = |bytes: &[u8]| read(bytes, Context::new()).unwrap_err();
    assert_eq!(refusal(&[]), BinaryError { offset: 0, refusal: Refusal::Truncated });
    assert_eq!(refusal(b"not a module at all"), BinaryError { offset: 0, refusal: Refusal::Magic });
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(refusal(&with(4, 9)).refusal, Refusal::Version { found: 9, known: VERSION });
    assert_eq!(refusal(&with(6, 1)).refusal, Refusal::Flags);
    assert_eq!(refusal(&with(40, bytes[40] ^ 1)), BinaryError { offset: 8, refusal: Refusal::Checksum });
    assert_eq!(refusal(&bytes[..bytes.len() - 1]).refusal, Refusal::Checksum);
    let mut longer = bytes.clone();
    longer.push(0);
    seal(&mut longer);
    assert_eq!(refusal(&longer), BinaryError { offset: bytes.len(), refusal: Refusal::Trailing });
}

#[test]
fn types_declared_differently_are_refused() {
    let bytes = write(&sample(&Context::new()));
    let cx = Context::new();
    let decl = cx.types.declare(cx.names.intern("Mark"), &[]).unwrap();
    cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: [].into() }).unwrap();
    let error = read(&bytes, cx).unwrap_err();
    assert_eq!(error.refusal, Refusal::Redeclared("Mark".to_owned()));
}

#[test]
fn malformed_functions_are_refused_with_their_rule() {
    let cx = Context::new();
    let mut module = sample(&cx);
    let id = module.funcs().next().unwrap().0;
    let func = &mut module[id];
    let entry = func.entry().unwrap();
    let end = func.terminator(entry).unwrap();
    func.remove_inst(end);
    let bytes = write(&module);
    let error = read(&bytes, cx).unwrap_err();
    let Refusal::Malformed { name, diagnostics } = &error.refusal else { panic!("{error}") };
    assert_eq!(name, "walk(Node{Float64}, Int64, Bool)");
    assert_eq!(diagnostics[0].code, "structure-terminator");
    assert!(error.offset > HEADER);
}

#[test]
fn uses_of_what_was_removed_are_refused() {
    let cx = Context::new();
    let removed = |remove: &dyn Fn(&mut crate::Func)| {
        let mut module = sample(&cx);
        let id = module.funcs().next().unwrap().0;
        remove(&mut module[id]);
        read(&write(&module), cx.clone()).unwrap_err().refusal
    };
    let value = removed(&|func| {
        let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
        let args: Vec<_> = insts.iter().flat_map(|&inst| func.args(inst)).copied().collect();
        let used = args.into_iter().find_map(|value| func.def_inst(value)).unwrap();
        func.remove_inst(used);
    });
    assert!(matches!(value, Refusal::Reference { what: "value", .. }), "{value:?}");
    let block = removed(&|func| func.remove_block(func.last_block().unwrap()));
    assert!(matches!(block, Refusal::Reference { what: "block", .. }), "{block:?}");
}

/// 10,000 damaged files with matching checksums: each is refused at an offset inside the file, or yields a
/// module that verifies.
#[test]
fn damage_is_refused() {
    let cx = Context::new();
    let bytes = write(&sample(&cx));
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % bound
    };
    let (mut refused, mut kinds) = (0, std::collections::BTreeSet::new());
    for _ in 0..10_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random(3) {
            let at = HEADER + random(damaged.len() - HEADER);
            match random(5) {
                0 => damaged[at] ^= 1 << random(8),
                1 => damaged[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                2 => drop(damaged.remove(at)),
                3 => damaged.insert(at, random(256) as u8),
                _ => damaged[at] = damaged[HEADER + random(damaged.len() - HEADER)],
            }
        }
        seal(&mut damaged);
        match read(&damaged, Context::new()) {
            Ok(module) => assert!(crate::verify::verify_module(&module).is_ok()),
            Err(error) => {
                assert!(error.offset <= damaged.len(), "{error}");
                assert!(!error.to_string().is_empty());
                refused += 1;
                kinds.insert(format!("{:?}", std::mem::discriminant(&error.refusal)));
            }
        }
    }
    assert!(refused > 5_000 && kinds.len() > 6, "{refused} {kinds:?}");
}

#[test]
fn modules_that_text_cannot_express_are_refused() {
    let again = |change: &dyn Fn(&mut Module)| {
        let cx = Context::new();
        let mut module = Module::new(cx);
        change(&mut module);
        read(&write(&module), Context::new()).unwrap_err().refusal.to_string()
    };
    let func = |module: &Module, name: &str, first: Type| {
        let mut func = Builder::high(&module.cx, name, &[("x", Type::INT64)], Type::INT64);
        let x = func.param(0).unwrap();
        func.ret(&[x]).unwrap();
        let mut func = func.finish().unwrap();
        func.sig.params[0].ty = first;
        func
    };
    let named = |module: &Module, name: &str| {
        let ty = module.cx.types.function(module.cx.names.intern(name));
        func(module, name, ty)
    };
    let global = again(&|module| {
        let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
        let name = module.cx.names.intern("a\nb");
        module.add_global(Global { name, ty: Type::INT64, init, kind: GlobalKind::Variable }).unwrap();
    });
    assert_eq!(global, "there is no thing named `a\\nb`");
    let function = again(&|module| {
        module.add_func(named(module, "a\0")).unwrap();
    });
    assert_eq!(function, "there is no thing named `a\\0`");
    let open = again(&|module| {
        let param = module.cx.types.vector(module.cx.types.param(0)).unwrap();
        module.add_func(func(module, "f", param)).unwrap();
    });
    assert_eq!(open, "a type parameter is outside a declaration");
    let elsewhere = again(&|module| {
        let mut func = named(module, "f");
        let place = func.constant(Const::Module(module.cx.names.intern("Elsewhere")));
        let entry = func.entry().unwrap();
        let mut at = crate::cursor::Cursor::new(&mut func);
        at.before_terminator(entry);
        at.ins(Op::Copy, &[place], &[Type::MODULE]);
        module.add_func(func).unwrap();
    });
    assert_eq!(elsewhere, "there is no module named `Elsewhere`");
    let foreign = again(&|module| {
        let mut func = named(module, "f");
        let labs = ForeignData {
            name: Some(module.cx.names.intern("labs")),
            result: Type::INT64,
            params: [Type::INT64].into(),
            variadic_after: Some(2),
        };
        let (labs, x, entry) = (func.add_foreign(labs), func.params()[1], func.entry().unwrap());
        let mut at = crate::cursor::Cursor::new(&mut func);
        at.before_terminator(entry);
        at.ins(Op::ForeignCall(labs), &[x], &[Type::INT64]);
        module.add_func(func).unwrap();
    });
    assert_eq!(foreign, "a number is too large");
    let declared = again(&|module| {
        let decl = module.cx.types.declare(module.cx.names.intern("Bare"), &[]).unwrap();
        let ty = module.cx.types.nominal(decl, &[]).unwrap();
        module.add_func(func(module, "f", ty)).unwrap();
    });
    assert_eq!(declared, "the type `Bare` is declared and not defined");
}

#[test]
fn types_beside_a_module_come_back_in_their_order() {
    let cx = Context::new();
    let pair = cx.types.tuple(&[Type::INT64, Type::BOOL]).unwrap();
    let module = Module::new(cx);
    let types = [pair, Type::INT64, Type::ANY, pair];
    let bytes = super::write_with_types(&module, &types);
    let (_, read) = super::read_with_types(&bytes, module.cx.clone()).unwrap();
    assert_eq!(read, types);
    // Neither form is mistaken for the other.
    assert_eq!(super::read(&bytes, Context::new()).unwrap_err().refusal, Refusal::Flags);
    let plain = super::write(&module);
    assert_eq!(super::read_with_types(&plain, Context::new()).unwrap_err().refusal, Refusal::Flags);
}

#[test]
fn a_stored_module_is_read_in_parts() {
    let cx = Context::new();
    let module = sample(&cx);
    let listed = [Type::FLOAT64, cx.types.tuple(&[Type::INT64, Type::FLOAT64]).unwrap()];
    let bytes = write_with_types(&module, &listed);
    let other = Context::new();
    let stored = Stored::open(&bytes, other.clone()).unwrap();
    assert_eq!((stored.func_count(), stored.globals().globals().len()), (2, 1));
    for (id, func) in module.funcs() {
        let declared = stored.declaration(id).unwrap().unwrap();
        assert_eq!((declared.symbol(&other), declared.level), (func.symbol(&cx), func.level));
        assert_eq!(declared.params().len(), func.params().len());
        assert!(declared.entry().is_none());
    }
    assert!(stored.declaration(crate::FuncId::from_u32(2)).unwrap().is_none());
    let types = stored.listed().unwrap();
    assert_eq!(other.types.display(types[1]).to_string(), "Tuple{Int64, Float64}");
    let whole = stored.module().unwrap();
    assert_eq!(show_module(&whole).to_string(), show_module(&module).to_string());
    assert!(write_with_types(&whole, &types) == bytes);
}

#[test]
fn a_stored_module_refuses_a_part_when_it_is_read() {
    let cx = Context::new();
    let bytes = write_with_types(&sample(&cx), &[]);
    let (mut opened, mut refused_later) = (0, 0);
    for at in HEADER..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        let Ok(stored) = Stored::open(&bytes, Context::new()) else { continue };
        opened += 1;
        // Neither panics; where reading everything succeeds, the module is verified.
        let declared = (0..2).all(|id| stored.declaration(crate::FuncId::from_u32(id)).is_ok());
        match (declared, stored.module()) {
            (_, Ok(module)) => crate::verify::verify_module(&module).unwrap(),
            (_, Err(_)) => refused_later += 1,
        }
    }
    assert!(refused_later > 100 && opened > refused_later, "{refused_later} of {opened}");
}

#[test]
fn types_that_would_exhaust_the_stack_are_refused() {
    // Each type is a tuple of the previous one; the last one is read first.
    let cx = Context::new();
    let mut ty = Type::INT64;
    let mut types = vec![ty];
    for _ in 0..100 {
        ty = cx.types.tuple(&[ty]).unwrap();
        types.push(ty);
    }
    let bytes = write_with_types(&Module::new(cx.clone()), &[ty]);
    let listed = Stored::open(&bytes, Context::new()).unwrap().listed().unwrap();
    assert_eq!(listed.len(), 1);
    // A hundred thousand types, written by hand: each is a tuple of the previous one.
    let mut entries = ListSink::default();
    entries.push(&[4]);
    for number in 0..100_000u64 {
        let mut entry = Sink::default();
        entry.byte(9);
        entry.count(1);
        entry.number(number);
        entries.push(&entry.bytes);
    }
    let mut listed = Sink::default();
    listed.count(1);
    listed.number(100_000);
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(WITH_TYPES.to_le_bytes());
    bytes.extend([0; HEADER - 8]);
    let empty = ListSink::default().finish();
    let sections = [empty.clone(), vec![0], vec![], entries.finish(), vec![0], empty, listed.bytes];
    sections::write(&mut bytes, sections);
    let stored = Stored::open(&bytes, Context::new()).unwrap();
    assert_eq!(stored.listed().unwrap_err().refusal, Refusal::TooDeep);
    seal(&mut bytes);
    assert!(matches!(read_with_types(&bytes, Context::new()).unwrap_err().refusal, Refusal::Type(_)));
}

/// Each kind of global is read as it was written; another tag is refused.
#[test]
fn kinds_of_globals_are_kept() {
    let cx = Context::new();
    let kinds = [GlobalKind::Variable, GlobalKind::ThreadLocal, GlobalKind::Constant];
    let of_kind = |kind| {
        let mut module = Module::new(cx.clone());
        let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 1 });
        module.add_global(Global { name: cx.names.intern("x"), ty: Type::INT64, init, kind }).unwrap();
        write(&module)
    };
    let written = kinds.map(of_kind);
    let back = written.each_ref().map(|bytes| read(bytes, Context::new()).unwrap().globals()[0].kind);
    assert_eq!(back, kinds);
    // The only byte after the checksum that differs is the tag.
    let [variable, own, _] = &written;
    let at = (HEADER..variable.len()).find(|&at| variable[at] != own[at]).unwrap();
    let mut damaged = own.clone();
    damaged[at] = 3;
    let sum = checksum(&damaged[HEADER..]);
    damaged[8..HEADER].copy_from_slice(&sum.to_le_bytes());
    let refused = read(&damaged, Context::new()).unwrap_err().refusal;
    assert_eq!(refused, Refusal::Tag { what: "kind of global", tag: 3 });
}
