//! Refusals of lowering, with their messages; and the shapes of low IR that other code relies on, except for objects.
//!
//! That low IR means the same as high IR is tested by running both, in the root package's `tests/lowering.rs`.

use super::{At, LowerErrors, Options, lower, lower_module};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_func};
use brolga_ir::verify::verify_func;
use brolga_ir::{Context, Func, Module, Op, RuntimeFn};

fn module(text: &str) -> Module {
    let source = SourceFile::new("test", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    unit.module
}

/// The first function of a text, lowered.
fn lowered(text: &str) -> Result<(Module, Func), LowerErrors> {
    let module = module(text);
    let (id, _) = module.funcs().next().unwrap();
    let low = lower(&module, &module[id], &Options::default())?;
    verify_func(&module.cx, &low).unwrap();
    Ok((module, low))
}

/// The reasons why the first function is refused.
fn refusals(text: &str) -> Vec<String> {
    lowered(text)
        .map(|(m, f)| show_func(&m.cx, &f).to_string())
        .unwrap_err()
        .errors
        .iter()
        .map(|e| e.to_string())
        .collect()
}

/// The runtime calls of the first function, in order.
fn runtime_calls(text: &str) -> Vec<RuntimeFn> {
    let (_, low) = lowered(text).unwrap();
    let ops = low.blocks().flat_map(|b| low.block_insts(b)).map(|i| low.op(i));
    ops.filter_map(|op| if let Op::CallRuntime(f) = op { Some(f) } else { None }).collect()
}

/// How many safepoints the first function has.
fn safepoints(text: &str, options: &Options) -> usize {
    let module = module(text);
    let (id, _) = module.funcs().next().unwrap();
    let low = lower(&module, &module[id], options).unwrap();
    low.blocks().flat_map(|b| low.block_insts(b)).filter(|&i| low.op(i) == Op::Safepoint).count()
}

/// A function with one statement, whose result it drops.
fn statement(params: &str, statement: &str) -> String {
    format!(
        "mutable struct M\n    x::Int64\nend\nfunction f({params})::Int64\n1 ─ %1 = {statement}\n└──      return 1\nend\n"
    )
}

#[test]
fn a_function_is_refused_with_all_reasons() {
    let text = "
primitive type Odd 24 end
function f(a::Odd, p::Ptr{Int128})::Odd
1 ─ %1 = Base.atomic_pointerref(p, :acquire)::Int128
│   %2 = $(Expr(:static_parameter, 1))::Int64
│   %3 = Base.add_int(%2, 1)::Int64
└──      return a
end
";
    assert_eq!(
        refusals(text),
        [
            "argument 1: `Odd` has a width that no register has",
            "result: `Odd` has a width that no register has",
            "`atomic_pointerref` of a `Int128` is not compiled to native code",
            "the operands of `static_parameter` do not fit it",
        ]
    );
}

#[test]
fn each_refusal_says_what_it_is() {
    for (params, what, message) in [
        (
            "p::Ptr{Int64}",
            "Base.atomic_pointerref(p, :release)::Int64",
            "`atomic_pointerref` does not take this memory order",
        ),
        (
            "t::Tuple{Int64, String}",
            "$(Expr(:foreigncall, :(:g), Int64, svec(Tuple{Int64, String}), 0, :(:ccall), :(t)))::Int64",
            "passing a `Tuple{Int64, String}` by value to or from `g` is not compiled to native code",
        ),
        (
            "p::Ptr{String}",
            "Base.pointerref(p, 1, 1)::String",
            "a `Ptr` to values of type `String`, which hold references, is not compiled to native code",
        ),
    ] {
        assert_eq!(refusals(&statement(params, what)), [message], "{what}");
    }
}

#[test]
fn globals_that_nothing_assigns_are_constants() {
    let text = "
global g::Int64 = 7
function f()::Int64
1 ─ %1 = Main.g::Int64
└──      return %1
end
";
    let (module, low) = lowered(text).unwrap();
    assert!(show_func(&module.cx, &low).to_string().contains("return 7"));
    let assigned = format!(
        "{text}function h()::Int64\n1 ─ %1 = Core.setglobal!(Main, :g, 1)::Int64\n└──      return %1\nend\n"
    );
    let (module, low) = lowered(&assigned).unwrap();
    let shown = show_func(&module.cx, &low).to_string();
    assert!(shown.contains("load(global_addr(:g)"), "{shown}");
}

#[test]
fn an_exception_that_is_only_thrown_is_made_by_the_run_time() {
    let thrown = |keep: &str| {
        format!(
            "function f()::Any\n1 ─ %1 = %new(ErrorException, \"no\")::ErrorException\n│        {keep}\n│        Base.throw(%1)::Union{{}}\n└──      unreachable\nend\n"
        )
    };
    assert_eq!(runtime_calls(&thrown("nothing::Nothing")), [RuntimeFn::ThrowError]);
    let kept = thrown("Core.donotdelete(%1)::Nothing");
    assert_eq!(runtime_calls(&kept), [RuntimeFn::Throw]);
}

#[test]
fn a_refusal_has_the_place_of_its_statement() {
    let text = statement("", "$(Expr(:static_parameter, 1))::M");
    let errors = lowered(&text).map(|_| ()).unwrap_err();
    let [error] = &errors.errors[..] else { panic!("{errors}") };
    assert!(matches!(error.at, At::Inst(_)));
    let place = text.get(error.place.start as usize..error.place.end as usize);
    assert!(place.is_some_and(|p| p.contains("static_parameter")), "{place:?}");
}

#[test]
fn printing_is_one_call_for_each_operand() {
    let text = statement(
        "x::Int8, c::Char, p::Ptr{Int8}, w::UInt128",
        "invoke Base.println(\"x\"::String, x::Int8, :s::Symbol, true::Bool, c::Char, 1.5f0::Float32, nothing::Nothing, p::Ptr{Int8}, w::UInt128, 0x01::UInt8)::Nothing",
    );
    use RuntimeFn::*;
    assert_eq!(
        runtime_calls(&text),
        [
            PrintString,
            PrintInt,
            PrintSymbol,
            PrintBool,
            PrintChar,
            PrintFloat,
            PrintNothing,
            PrintPtr,
            PrintInt128,
            PrintUInt,
            PrintChar
        ]
    );
}

#[test]
fn every_cycle_has_a_safepoint() {
    let straight = statement("x::Int64", "Base.add_int(x, 1)::Int64");
    let recursive = statement("x::Int64", "invoke Main.f(x::Int64)::Int64");
    let looping = "
function f(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %5 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %2
end
";
    let (on, off) = (Options::default(), Options { safepoints: false, ..Options::default() });
    assert_eq!([straight.as_str(), &recursive, looping].map(|t| safepoints(t, &on)), [0, 1, 1]);
    assert_eq!([straight.as_str(), &recursive, looping].map(|t| safepoints(t, &off)), [0, 0, 0]);
}

#[test]
fn narrow_integers_reach_c_widened_by_their_sign() {
    let text = statement(
        "a::Int8, b::UInt16, c::Bool",
        "$(Expr(:foreigncall, :(:g), Bool, svec(Int8, UInt16, Bool), 0, :(:ccall), :(a), :(b), :(c)))::Bool",
    );
    let (module, low) = lowered(&text).unwrap();
    let shown = show_func(&module.cx, &low).to_string();
    assert_eq!(
        (shown.matches("sext_int(i32").count(), shown.matches("zext_int(i32").count()),
        (1, 2),
        "{shown}"
    );
    let (_, data) = low.foreigns().next().unwrap();
    assert_eq!(&*data.params, [brolga_ir::Type::I32; 3]);
    assert_eq!(data.result, brolga_ir::Type::I8);
}

#[test]
fn a_call_passes_what_the_callee_declares() {
    let text = "
function f(x::Int64)::Int64
1 ─ %1 = invoke Main.g(x::Int64)::Int64
└──      return %1
end
function g(u::Union{Nothing, Int64})::Int64
1 ─      return 1
end
";
    let (module, low) = lowered(text).unwrap();
    let shown = show_func(&module.cx, &low).to_string();
    let names = |l: &Func| l.callees().count();
    assert_eq!(names(&low), 1, "{shown}");
    assert!(shown.contains("g(Union{Nothing, Int64})"), "{shown}");
}

#[test]
fn a_module_is_lowered_function_by_function() {
    let text = "
function f()::Int64
1 ─      return 1
end
function g()::Any
1 ─ %1 = $(Expr(:static_parameter, 1))::Any
└──      return %1
end
";
    let module = module(text);
    let results: Vec<bool> =
        lower_module(&module, &Options::default()).iter().map(|(_, r)| r.is_ok()).collect();
    assert_eq!(results, [true, false]);
}

#[test]
fn malformed_functions_end_in_errors() {
    use brolga_ir::cursor::Cursor;
    use brolga_ir::func::Signature;
    use brolga_ir::{Level, Param, Type};
    let cx = Context::new();
    let module = Module::new(cx.clone());
    let name = cx.names.intern("f");
    let this = Param { name: None, ty: cx.types.function(name) };
    let sig =
        Signature { params: vec![this], results: vec![Type::INT64], vararg: false, ..Signature::default() };
    let empty = Func::new(name, Level::High, sig.clone());
    assert!(lower(&module, &empty, &Options::default()).is_err());
    for op in [Op::Return, Op::Pi, Op::Copy, Op::Branch, Op::Goto, Op::Safepoint, Op::TheException] {
        let mut func = Func::new(name, Level::High, sig.clone());
        let mut at = Cursor::new(&mut func);
        at.append_block();
        at.ins(op, &[], &[Type::INT64]);
        assert!(lower(&module, &func, &Options::default()).is_err(), "{op:?}");
    }
}

#[test]
fn a_block_ends_behind_what_throws_where_the_program_goes_on() {
    let text = "
function f(x::Int64, b::Bool)::Any
1 ─      goto #3 if not b
2 ─ %2 = builtin Core.throw(x)::Any
│   %3 = Core.typeassert(%2, Int64)::Int64
│   %4 = Base.add_int(%3, 1)::Int64
└──      goto #4
3 ─      goto #4
4 ┄ %7 = φ (#2 => %4, #3 => 7)::Int64
└──      return %7
end
";
    let (module, low) = lowered(text).unwrap();
    for block in low.blocks() {
        for inst in low.block_insts(block) {
            if matches!(low.op(inst), Op::CallRuntime(entry) if !entry.returns()) {
                let next = low.next_inst(inst).map(|next| low.op(next));
                assert_eq!(next, Some(Op::Unreachable), "{}", show_func(&module.cx, &low));
            }
        }
    }
}
