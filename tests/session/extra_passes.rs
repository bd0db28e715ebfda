//! Passes of the embedder: they run in every tier, at their places, and what they break is an error that names them.

use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Func, Level, Op, Type};
use brolga::opt::{Changed, ExtraPass, Pass, PassCx, PassLevel};
use brolga::session::Dylib;
use brolga::{OptLevel, Options, Session, Workers};

use super::kinds::{KINDS, LEVELS};

/// Adds instead of multiplying.
fn add(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
    for inst in insts {
        if func.op(inst) == Op::Intrinsic(Intrinsic::MulInt) && cx.spend("replaced") {
            let args = func.args(inst).to_vec();
            func.set_op(inst, Op::Intrinsic(Intrinsic::AddInt), &args);
        }
    }
    cx.changed()
}

static HIGH: Pass = Pass::new("add-high", PassLevel::High, add);
static LOW: Pass = Pass::new("add-low", PassLevel::Low, add);

/// Leaves a number of another type.
static BREAKS: Pass = Pass::new("breaks", PassLevel::High, |func, cx| {
    let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
    for inst in insts {
        if func.op(inst) == Op::Intrinsic(Intrinsic::MulInt) && cx.spend("broken") {
            let wrong = func.constant(cx.types().type_constant(Type::INT8));
            func.set_op(inst, Op::Intrinsic(Intrinsic::AddInt), &[wrong, wrong]);
        }
    }
    cx.changed()
});

/// Says that it changed nothing.
static HIDES: Pass = Pass::new("hides", PassLevel::High, |func, cx| {
    let _ = (BREAKS.run)(func, cx);
    Changed::No
});

/// Returns another type.
static RETYPES: Pass = Pass::new("retypes", PassLevel::High, |func, _| {
    func.sig.results = vec![Type::INT8];
    Changed::Yes
});

static PANICS: Pass = Pass::new("panics", PassLevel::Both, |_, _| panic!("a pass of the embedder"));

const TEXT: &str = "function inner(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, 10)::Int64\n└──      return %1\nend\n\
    function outer(x::Int64)::Int64\n1 ─ %1 = invoke Main.inner(x::Int64)::Int64\n│   %2 = Base.xor_int(%1, 1)::Int64\n└──      return %2\nend\n";

fn main_of(level: OptLevel, pass: ExtraPass) -> (super::Ending, Dylib) {
    let options = crate::doors::open(Options::new()).opt_level(level).pass(pass).unwrap();
    let session = super::Ending(Session::new(options, Workers::Caller).unwrap());
    let main = session.create_dylib("main").unwrap();
    (session, main)
}

#[test]
fn a_pass_runs_on_what_is_compiled_at_each_level_and_of_each_kind() {
    for level in LEVELS {
        for kind in KINDS {
            for pass in [
                ExtraPass::new(&HIGH, Level::High),
                ExtraPass { before: &["late dce"], ..ExtraPass::new(&LOW, Level::Low) },
            ] {
                let (session, main) = main_of(level, pass);
                main.define(kind.of(main.read("f.jlir", TEXT.as_bytes()).unwrap())).unwrap();
                let outer = main.func::<(i64,), i64>("outer").unwrap();
                let mut values = Vec::new();
                for _ in 0..6 {
                    values.push(outer.call((4,)).unwrap());
                    session.optimize_hot();
                }
                // Interpreted calls multiply.
                assert!(values.last() == Some(&15), "{level:?}, {kind:?}, {}: {values:?}", pass.pass.name);
            }
        }
    }
}

#[test]
fn what_a_pass_breaks_is_an_error_with_its_name() {
    for (pass, text) in [(&BREAKS, "breaks"), (&HIDES, "hides"), (&RETYPES, "retypes"), (&PANICS, "panics")] {
        let (_session, main) = main_of(OptLevel::O2, ExtraPass::new(pass, Level::High));
        main.define(main.read("f.jlir", TEXT.as_bytes()).unwrap()).unwrap();
        let error = main.function("outer").unwrap_err();
        let causes = error.causes().join("; ");
        assert!(causes.contains(text), "{error}: {causes}");
    }
}

#[test]
fn a_pass_without_a_place_is_refused() {
    let refused = |pass: ExtraPass| Options::new().pass(pass).map(drop).unwrap_err().to_string();
    let one = ExtraPass::new(&HIGH, Level::High);
    assert!(
        refused(ExtraPass { after: &["no-such-step"], ..one }).contains("there is no step `no-such-step`")
    );
    assert!(
        refused(ExtraPass { after: &["late dce"], before: &["inline"], ..one })
            .contains("the other way round")
    );
    assert!(
        Options::new().pass(one).unwrap().pass(one).map(drop).unwrap_err().to_string().contains("already")
    );
    assert!(refused(ExtraPass { ir: Level::Low, ..one }).contains("low IR"));
}
