//! Calls with profiled types: tests for these, direct calls of their methods, and the original call as the fallback.

use brolga_ir::diag::SourceFile;
use brolga_ir::hints::{Hint, Inlining, Seen};
use brolga_ir::text::{read, show_func};
use brolga_ir::{Context, FuncId, Module, Op, Type};
use brolga_opt::{Cx, Options, parse_passes, run_passes};

const PROGRAM: &str = "\
function area(x::Int64)::Int64
1 ─      return 1
end
function area(x::Float64)::Int64
1 ─      return 2
end
function area(x::Bool)::Int64
1 ─      return 3
end
function area(x::UInt8)::Int64
1 ─      return 4
end
function area(x::Char)::Int64
1 ─      return 5
end
function top(x)::Any
1 ─ %1 = dynamic Main.area(x)::Any
└──      return %1
end
";

/// The output of `union-split` for `top` when these types were seen there.
fn split(seen: &[Type]) -> String {
    after("union-split", seen, None)
}

/// The output of passes for `top` when these types were seen there, with this inlining hint of the call.
fn after(passes: &str, seen: &[Type], inlining: Option<Inlining>) -> String {
    let mut module = module();
    let cx = module.cx.clone();
    let top = FuncId::from_u32(5);
    let func = &mut module[top];
    let call = func.blocks().flat_map(|b| func.block_insts(b)).find(|&i| func.op(i) == Op::Call).unwrap();
    let object = func.ty(func.args(call)[0]);
    let seen = seen.iter().map(|&ty| Seen { types: [object, ty].into(), count: 100 }).collect();
    func.set_hint(call, Hint { seen, inlining, ..Hint::default() });
    let passes = parse_passes(passes).unwrap();
    let options = Options { verify_each: true, ..Options::default() };
    let func = module[top].clone();
    let (func, _) = run_passes(&module, func, &passes, &options, &mut Cx::default()).unwrap();
    show_func(&cx, &func).to_string()
}

fn module() -> Module {
    let source = SourceFile::new("guesses.jlir", PROGRAM.to_owned()).expect("a small file");
    let (unit, found) = read(&source, &Context::new());
    assert!(found.is_empty(), "{found:?}");
    unit.module
}

#[test]
fn without_a_guess_a_call_of_five_methods_stays() {
    assert!(!split(&[]).contains("isa"), "{}", split(&[]));
}

#[test]
fn observed_types_are_tested_in_order_and_others_are_dispatched() {
    let expected = "\
function top(x::Any)::Any
1 ─ %1  =   builtin (x isa Float64)::Bool
└──       goto #3 if not %1
2 ─ %3  = π (x, Float64)
│   %4  =    invoke Main.area(%3::Float64)::Int64
└──       goto #6
3 ─ %6  =   builtin (x isa Bool)::Bool
└──       goto #5 if not %6
4 ─ %8  = π (x, Bool)
│   %9  =    invoke Main.area(%8::Bool)::Int64
└──       goto #6
5 ─ %11 =   dynamic Main.area(x)::Any
└──       goto #6
6 ┄ %13 = φ (#2 => %4, #4 => %9, #5 => %11)::Any
└──       return %13
end
";
    assert_eq!(split(&[Type::FLOAT64, Type::BOOL]), expected);
}

#[test]
fn a_method_that_was_guessed_comes_in_unless_the_call_forbids_it() {
    let passes = "union-split,inline,simplify-cfg";
    let free = after(passes, &[Type::FLOAT64], None);
    assert!(free.contains("isa Float64") && !free.contains("invoke"), "{free}");
    let kept = after(passes, &[Type::FLOAT64], Some(Inlining::Never));
    assert!(kept.contains("invoke Main.area(%3::Float64)::Int64 noinline\n"), "{kept}");
    assert!(kept.contains("dynamic Main.area(x)::Any noinline\n"), "{kept}");
}

#[test]
fn types_that_tell_nothing_or_have_no_method_are_no_guesses() {
    for ty in [Type::ANY, Type::INT8, Type::NOTHING] {
        assert!(!split(&[ty]).contains("isa"), "{}", split(&[ty]));
    }
}
