//! Linking: its cost beyond compiling, its memory beyond the code, and whether all memory is returned.
//!
//! ```text
//! cargo bench --bench link             costs of linking; 20,000 × compile, call, drop
//! cargo bench --bench link -- full     200,000 ×
//! ```
//!
//! | table | a row |
//! |---|---|
//! | cost | one way of linking; µs for a function that is linked and freed alone, and for each of a hundred in one unit; bytes of code memory beyond the code, in both cases |
//! | return | after so many rounds of compile, call, drop: resident memory of the process, its mappings, code memory in use and with memory |

use std::sync::Arc;
use std::time::Instant;

use brolga::{Engine, OptLevel, Options, Program};
use brolga_codegen::compile::{CompileOptions, Limits};
use brolga_codegen::compiled::Symbol;
use brolga_codegen::generate::Generator;
use brolga_codegen::isa::{IsaOptions, TargetIsa, Tier};
use brolga_codegen::linkage::{CallKind, CallLinkage};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, Level, LowType, Op, Param, Signature, Type};
use brolga_jit::{
    CodeMap, CodeMemory, CodeMemoryOptions, CraneliftLinker, Import, LinkUnit, Linker, Loader, Mapping,
    Resolver,
};

/// Functions in a batch.
const BATCH: usize = 100;

/// Nothing is left to resolve.
struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, _: &Symbol) -> Result<Import, String> {
        Err("refers to nothing".into())
    }
}

/// `x + x + … + x`, some forty bytes of code.
fn sum(cx: &Context, name: &str) -> Func {
    let int = Type::low(LowType::I64);
    let sig = Signature {
        params: vec![Param { name: None, ty: int }],
        results: vec![int],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern(name), Level::Low, sig);
    let block = func.make_block();
    func.append_block(block);
    let x = func.params()[0];
    let mut value = x;
    for _ in 0..8 {
        let add = func.make_inst(Op::Intrinsic(Intrinsic::AddInt), &[value, x], &[], &[int]);
        func.append_inst(add, block);
        value = func.results(add).next().expect("it has a result");
    }
    let end = func.make_inst(Op::Return, &[value], &[], &[]);
    func.append_inst(end, block);
    func
}

fn units(isa: &TargetIsa) -> [LinkUnit; 2] {
    let cx = Context::new();
    let mut generator = Generator::new(Limits::default());
    let options = CompileOptions { tier: Tier::Baseline, listing: false };
    let linkage = CallLinkage { call_kind: &|_| CallKind::Near, counter: None, is_profiled: false };
    let mut compiled = |name: &str| {
        let func = sum(&cx, name);
        generator.generate(&cx, &func, isa, options, linkage).expect("it compiles").function
    };
    let alone = vec![compiled("sum")];
    let batch = (0..BATCH).map(|index| compiled(&format!("sum{index}"))).collect();
    [alone, batch].map(|functions| LinkUnit { functions, data: Vec::new() })
}

/// The least µs of several rounds that one function costs.
fn cost(linker: &dyn Linker, unit: &LinkUnit) -> f64 {
    let rounds = 2_000 / unit.functions.len();
    let mut best = f64::INFINITY;
    for _ in 0..9 {
        let start = Instant::now();
        for _ in 0..rounds {
            drop(linker.link(unit, &Nothing).expect("there is room"));
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / (rounds * unit.functions.len()) as f64);
    }
    best
}

/// Bytes of code memory that one function takes beyond its code, when a thousand are loaded.
fn overhead(linker: &dyn Linker, unit: &LinkUnit) -> f64 {
    let before = linker.stats().in_use;
    let loaded: Vec<_> = (0..1_000 / unit.functions.len())
        .map(|_| linker.link(unit, &Nothing).expect("there is room"))
        .collect();
    let functions = loaded.len() * unit.functions.len();
    let code: usize = unit.functions.iter().map(|function| function.code.len()).sum();
    (linker.stats().in_use - before) as f64 / functions as f64
        - (code * loaded.len()) as f64 / functions as f64
}

fn costs() {
    let isa = TargetIsa::new(IsaOptions { verify_clif: false, ..IsaOptions::default() })
        .expect("a known processor");
    let [alone, batch] = units(&isa);
    let memory = |mapping| {
        CodeMemory::new(CodeMemoryOptions { mapping, ..CodeMemoryOptions::default() }).expect("address space")
    };
    let map = Arc::new(CodeMap::default());
    let linkers: [(&str, Box<dyn Linker>); 3] = [
        ("loader, two mappings", Box::new(Loader::new(memory(Mapping::Dual), map.clone()))),
        ("loader, own pages", Box::new(Loader::new(memory(Mapping::Private), map.clone()))),
        ("cranelift-jit", Box::new(CraneliftLinker::new(&isa, memory(Mapping::Private), map.clone()))),
    ];
    println!(
        "{:<24} {:>10} {:>10} {:>12} {:>12}",
        "linked by", "alone µs", "batch µs", "alone bytes", "batch bytes"
    );
    for (name, linker) in &linkers {
        let linker = &**linker;
        println!(
            "{name:<24} {:>10.2} {:>10.2} {:>12.0} {:>12.0}",
            cost(linker, &alone),
            cost(linker, &batch),
            overhead(linker, &alone),
            overhead(linker, &batch)
        );
    }
}

/// KiB of memory that the process has, and the number of its mappings.
fn process() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    (resident, maps.lines().count())
}

fn returned(rounds: usize) {
    let engine =
        Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0)).expect("a known processor");
    let text = "function f(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, 3)::Int64\n│   %2 = Base.add_int(%1, 1)::Int64\n└──      return %2\nend\n";
    let program = Program::read("f", text.as_bytes()).expect("it is well-formed");
    println!(
        "{:>8} {:>10} {:>9} {:>9} {:>9} {:>12}",
        "rounds", "RSS KiB", "mappings", "in use", "resident", "µs per round"
    );
    let start = Instant::now();
    for round in 1..=rounds {
        let unit = engine.compile(&program).expect("it compiles");
        let f = unit.func::<(i64,), i64>("f").expect("it is there");
        assert_eq!(f.call((round as i64,)), Ok(3 * round as i64 + 1));
        if round.is_power_of_two() && round >= 512 || round == 1_000 || round == rounds {
            let ((resident, mappings), stats) = (process(), engine.code_memory());
            let each = start.elapsed().as_secs_f64() * 1e6 / round as f64;
            println!(
                "{round:>8} {resident:>10} {mappings:>9} {:>9} {:>9} {each:>12.1}",
                stats.in_use, stats.resident
            );
        }
    }
}

fn main() {
    let full = std::env::args().any(|argument| argument == "full");
    costs();
    println!();
    returned(if full { 200_000 } else { 20_000 });
}

#[path = "../tests/support/doors.rs"]
mod doors;
