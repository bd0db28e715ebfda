//! Object files that the project writes, linked into a process again: their constants are objects for the collector.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

use brolga::ir::constant::{Address, Const};
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Context, Func, Level, Module, Op, Signature, Type};
use brolga::observe::emit;
use brolga::{OptLevel, Options, Session, Workers};

/// An archive with an object file in which `NAME` gives a string constant, under a symbol that C names can spell.
fn archive(name: &str, text: &str) -> Vec<u8> {
    let cx = Context::new();
    let sig = Signature { results: vec![Type::TRACKED], ..Signature::default() };
    let mut f = Func::new(cx.names.intern(name), Level::Low, sig);
    let block = f.make_block();
    f.append_block(block);
    let record = f.constant(Const::Address(Address::String(cx.names.intern(text))));
    let object = f.make_inst(Op::Intrinsic(Intrinsic::Bitcast), &[record], &[], &[Type::TRACKED]);
    f.append_inst(object, block);
    let object = f.result(object).unwrap();
    let ret = f.make_inst(Op::Return, &[object], &[], &[]);
    f.append_inst(ret, block);
    let bytes = emit::generate(&Module::new(cx), [&f], OptLevel::O2).unwrap().object(name).unwrap();

    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emitted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("unit.o"), bytes).unwrap();
    let made = Command::new("ar").args(["rcs", "unit.a", "unit.o"]).current_dir(&folder).status();
    assert!(made.is_ok_and(|status| status.success()), "`ar` makes an archive");
    let archive = std::fs::read(folder.join("unit.a")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    archive
}

/// The string is a root at every safepoint of the loop, with collections at each and the heap verified.
const PROGRAM: &str = "\
mutable struct Kept
    x::Int64
end
function f(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:the_text), Any, svec(), 0, :(:ccall)))::Any
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #3 => %7)::Int64
│   %4 = Base.slt_int(%3, n)::Bool
└──      goto #4 if not %4
3 ─ %6 = %new(Main.Kept, %3)::Main.Kept
│        dynamic Main.keep(%6)::Any
│   %7 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─ %10 = Core.typeassert(%1, String)::String
│   %11 = Core.sizeof(%10)::Int64
└──      return %11
end
function keep(b::Main.Kept)::Int64
1 ─ %1 = Base.getfield(b, :x)::Int64
└──      return %1
end
";

#[test]
fn string_constants_of_object_files_survive_collections() {
    for level in [OptLevel::O0, OptLevel::O2] {
        let session = Session::new(
            crate::doors::open(Options::new()).opt_level(level).gc_stress(true),
            Workers::Caller,
        )
        .unwrap();
        let texts = session.create_dylib("texts").unwrap();
        texts.add_archive("texts.a", &archive("the_text", "constant")).unwrap();
        let main = session.create_dylib("main").unwrap();
        let program = main.read("emitted.jlir", PROGRAM.as_bytes()).unwrap();
        // The loader of files gives them what they need of the run time.
        let string = session.runtime().type_address(session.context(), Type::STRING).unwrap();
        texts.define_c_symbol("brolga.type.String", std::ptr::without_provenance(string)).unwrap();
        main.define(program).unwrap();
        main.link_against(&texts).unwrap();
        assert_eq!(main.func::<(i64,), i64>("f").unwrap().call((50,)), Ok(8));
    }
}

#[path = "support/doors.rs"]
mod doors;
