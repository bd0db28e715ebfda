//! Programs keep their meaning when they are lowered, and what is refused is known.
//!
//! The reference interpreter runs the checks of the corpus, of the examples and of the programs in `tests/lowering/` on high
//! and on low IR. Functions that are refused, and those that call them, are left out; which of the corpus and the
//! examples remain is written down here, so that none is lost unnoticed. Generated programs: `tests/differential.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use brolga::fuzz::check::{Engine, HighInterpreter, Loaded, LowInterpreter, Outcome};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::module::Literal;
use brolga_ir::text::{Outcome as Expected, Term, Unit, read};
use brolga_ir::{Context, FuncId, Module, Type};
use brolga_opt::lower::{self, lower_module};

/// The functions of the corpus that have a native form, with all that they call.
const NATIVE_CORPUS: &[&str] = &[
    "bit_tricks: bit_tricks(UInt32, Int64)",
    "classify_float: classify_float(Float64)",
    "fib: fib(Int64)",
    "http_reason: count_known(Int32, Int32)",
    "http_reason: http_reason(Int32)",
    "iterate_evens: halve(Int64)",
    "iterate_evens: iterate_evens(Int64)",
    "list_sum: (::var\"#above#3\"{Int64})(Int64)",
    "total_area: area(Blob)",
    "total_area: area(Int64)",
    "total_area: area(Rect)",
    "total_area: area(Tri)",
    "unicode_descent: (::var\"#∇f#7\"{Float64, Int64})(Float64)",
    "unicode_descent: greek_index(Char)",
    "unicode_descent: unicode_descent(Float64, Float64, Int64)",
    "wrap_int8: narrow_int8(Int64)",
];

fn files(folder: &str) -> Vec<(String, Unit)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let unit = |path: &Path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = SourceFile::new(&*name, fs::read_to_string(path).unwrap()).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
        (name, unit)
    };
    paths.iter().map(|path| unit(path)).collect()
}

/// The functions that have a native form and call no others.
fn native_part(module: &Module) -> Module {
    let mut part = module.clone();
    loop {
        let lowered = lower_module(&part, &lower::Options::default());
        if lowered.iter().all(|(_, result)| result.is_ok()) {
            return part;
        }
        // Without the refused functions, those that call them are refused next.
        let mut rest = Module::new(module.cx.clone());
        module.globals().iter().for_each(|g| rest.add_global(g.clone()).unwrap());
        for (id, _) in lowered.iter().filter(|(_, result)| result.is_ok()) {
            rest.add_func(part.func(*id).clone()).unwrap();
        }
        part = rest;
    }
}

fn literal(term: &Term) -> Option<Literal> {
    match term {
        Term::Const(data) => Some(Literal::Const(data.clone())),
        Term::Aggregate { ty, fields } => {
            Some(Literal::Aggregate { ty: *ty, fields: fields.iter().map(literal).collect::<Option<_>>()? })
        }
        Term::Bytes(_) | Term::Array { .. } => None,
    }
}

fn expected(cx: &Context, expected: &Expected) -> Option<Outcome> {
    match expected {
        Expected::Returns(value) => Some(Outcome::Returned(literal(value)?)),
        Expected::Throws(ty) => {
            Some(Outcome::Threw { kind: cx.types.display(*ty).to_string(), message: None })
        }
    }
}

/// Runs the checks whose functions are native; gives how many there were.
fn run_checks(name: &str, unit: &Unit) -> usize {
    let module = native_part(&unit.module);
    let cx = &module.cx;
    let (high, low) = (
        HighInterpreter { max_steps: 100_000_000, passes: None },
        LowInterpreter { max_steps: 1_000_000_000, passes: None, alone: None },
    );
    let mut high = high.load(&module).unwrap();
    let mut low = low.load(&module).unwrap_or_else(|why| panic!("{name}: {why}"));
    let mut count = 0;
    for check in &unit.checks {
        let types: Vec<Type> = check.call.args.iter().map(Term::ty).collect();
        let Some(id) = module.find_method(check.call.callee.ty(), &types) else { continue };
        let args: Vec<Literal> = check.call.args.iter().map(|a| literal(a).expect("no objects")).collect();
        let wanted = expected(cx, &check.outcome).expect("no objects");
        let run = |engine: &mut Box<dyn Loaded + '_>, id: FuncId| match engine.call(id, &args) {
            // The text says which exception comes, not what it says.
            Outcome::Threw { kind, .. } => Outcome::Threw { kind, message: None },
            other => other,
        };
        for (level, outcome) in [("high", run(&mut high, id)), ("low", run(&mut low, id))] {
            assert!(
                outcome.agrees(&wanted, cx),
                "{name}: check {} of {} on {level} IR: {}, not {}",
                count + 1,
                module.symbol(id),
                outcome.display(cx),
                wanted.display(cx)
            );
        }
        count += 1;
    }
    count
}

#[test]
fn the_native_part_of_the_corpus_keeps_its_meaning() {
    let mut native = BTreeSet::new();
    let mut checks = 0;
    for (name, unit) in files("tests/corpus") {
        checks += run_checks(&name, &unit);
        let part = native_part(&unit.module);
        native.extend(part.funcs().map(|(id, _)| format!("{name}: {}", part.symbol(id))));
    }
    let wanted: BTreeSet<String> = NATIVE_CORPUS.iter().map(|s| (*s).to_owned()).collect();
    assert_eq!(native, wanted);
    assert!(checks > 40, "{checks}");
}

#[test]
fn examples_are_native_as_a_whole() {
    for (name, unit) in files("examples") {
        assert_eq!(native_part(&unit.module).func_count(), unit.module.func_count(), "{name}");
        assert!(run_checks(&name, &unit) > 0, "{name}");
    }
}

#[test]
fn programs_for_lowering_keep_their_meaning() {
    for (name, unit) in files("tests/lowering") {
        assert_eq!(run_checks(&name, &unit), unit.checks.len(), "{name}");
    }
}
