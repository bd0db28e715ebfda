//! Hints about inlining: requested callees are inlined, yet no function grows without bounds.

use std::fmt::Write as _;

use brolga_ir::diag::SourceFile;
use brolga_ir::hints::Inlining;
use brolga_ir::text::read;
use brolga_ir::{Context, Func, FuncId, Module, Op};
use brolga_opt::callgraph::bottom_up;
use brolga_opt::{Cx, Options, parse_passes, run_passes};

fn module(text: &str) -> Module {
    let source = SourceFile::new("hints.jlir", text).expect("a small file");
    let (unit, found) = read(&source, &Context::new());
    assert!(found.is_empty(), "{found:?}");
    unit.module
}

/// Each function calls the next one twice with `inline`; the last one adds. All of the first is 2^40 sums.
fn doubling() -> Module {
    let mut text = String::new();
    for n in 0..40 {
        let next = n + 1;
        let call =
            |label: u32, arg: &str| format!("%{label} = invoke Main.f{next}({arg}::Int64)::Int64 inline");
        writeln!(text, "function f{n}(x::Int64)::Int64 inline").unwrap();
        writeln!(text, "1 ─ {}\n│   {}\n└── return %2\nend", call(1, "x"), call(2, "%1")).unwrap();
    }
    text.push_str("function f40(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 3)::Int64\n└── return %1\nend\n");
    module(&text)
}

fn inlined(module: &Module, id: FuncId) -> Func {
    let options = Options { verify_each: true, ..Options::default() };
    let passes = parse_passes("inline").unwrap();
    run_passes(module, module[id].clone(), &passes, &options, &mut Cx::default()).unwrap().0
}

fn size(func: &Func) -> usize {
    func.blocks().map(|block| func.block_insts(block).count()).sum()
}

#[test]
fn requested_inlining_is_bounded() {
    let mut module = doubling();
    // From the top, where all bodies are unoptimised.
    let first = inlined(&module, FuncId::from_u32(0));
    assert!((1000..=2000).contains(&size(&first)), "{}", size(&first));
    // Callees first, where each body is already optimised.
    let mut largest = 0;
    for id in bottom_up(&module).into_iter().flatten() {
        module[id] = inlined(&module, id);
        largest = largest.max(size(&module[id]));
    }
    assert!((500..=2000).contains(&largest), "{largest}");
}

#[test]
fn calls_that_found_no_room_keep_their_hints() {
    let module = doubling();
    let first = inlined(&module, FuncId::from_u32(0));
    let mut calls = first.blocks().flat_map(|block| first.block_insts(block));
    let mut left = calls.by_ref().filter(|&inst| matches!(first.op(inst), Op::Invoke(_))).peekable();
    assert!(left.peek().is_some());
    assert!(left.all(|inst| first.call_inlining(inst) == Some(Inlining::Always)));
    assert_eq!(first.inlining, Some(Inlining::Always));
}
