//! Objects that are passed along a chain of calls, each of which changes the argument of the one before: `alloc-opt`
//! determines in one pass over the chain, in either order of the calls, that no object escapes. Steps are counted, not time.

use brolga_ir::diag::SourceFile;
use brolga_ir::text::read;
use brolga_ir::{Context, Module};
use brolga_opt::summary::summarise_module;
use brolga_opt::{Cx, Options, parse_passes, run_passes};
use std::fmt::Write as _;

/// `copy(#i, #i+1)` changes its first argument. Object 0 is returned, so all are made; the calls are in order from the last
/// to the first.
fn chain(length: usize) -> Module {
    let mut text = String::from(
        "mutable struct Counter
    n::Int64
end
function copy(to::Counter, from::Counter)::Nothing
1 ─ %1 = Core.getfield(from, :n)::Int64
│        Core.setfield!(to, :n, %1)::Int64
└──      return nothing
end
function f(x::Int64)::Counter
1 ─ %1 = %new(Counter, x)::Counter
",
    );
    for n in 2..=length {
        writeln!(text, "│   %{n} = %new(Counter, x)::Counter").expect("a string takes all text");
    }
    for n in (1..length).rev() {
        writeln!(text, "│   invoke Main.copy(%{n}::Counter, %{}::Counter)::Nothing", n + 1)
            .expect("a string takes all text");
    }
    text.push_str("└── return %1\nend\n");
    let source = SourceFile::new("chain", &text).expect("a source");
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{found:?}");
    let mut module = unit.module;
    summarise_module(&mut module);
    module
}

fn looks(length: usize) -> u64 {
    let module = chain(length);
    let (_, func) = module.funcs().last().expect("`f` is there");
    let passes = parse_passes("call-effects,alloc-opt").expect("names of passes");
    let done = run_passes(&module, func.clone(), &passes, &Options::default(), &mut Cx::default());
    let (_, report) = done.expect("the passes run");
    let rows = report.steps.iter().flat_map(|row| &row.counters);
    rows.filter(|(name, _)| *name == "calls looked at").map(|(_, count)| count).sum()
}

#[test]
fn a_chain_of_calls_costs_its_length() {
    let (short, long) = (looks(100), looks(400));
    assert!(short >= 99, "{short} calls were looked at");
    assert!(long <= 5 * short, "{short} calls were looked at for 100 objects, {long} for 400");
}
