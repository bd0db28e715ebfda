//! Programs keep their meaning when they are lowered, and the refused ones are listed.
//!
//! The reference interpreter runs the checks of the corpus, of the examples and of the programs in `tests/lowering/` on high
//! and on low IR. It has no objects in low IR, so functions that handle some, and those that call them, are left out (they run
//! natively in other tests); the remaining ones of the corpus and the examples are listed here, so that none is lost
//! unnoticed. Generated programs: `tests/differential.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use brolga_fuzz::check::{Engine, HighInterpreter, Loaded, LowInterpreter, Outcome};
use brolga_ir::constant::Address;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::func::CalleeData;
use brolga_ir::module::Literal;
use brolga_ir::op::Region;
use brolga_ir::runtime_fn::RuntimeKind;
use brolga_ir::text::{Outcome as Expected, Term, Unit, read};
use brolga_ir::{Const, Context, Func, FuncId, Module, Op, Type};
use brolga_opt::lower::{self, lower_module};

/// The functions of the corpus that handle no objects, with all that they call.
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

/// Whether low IR makes, reads or asks for objects, or catches exceptions.
fn handles_objects(low: &Func) -> bool {
    let insts = || low.blocks().flat_map(|b| low.block_insts(b));
    let operation = |op: Op| match op {
        Op::Alloc(_) | Op::TypeOf | Op::CallArgs(_) | Op::Enter => true,
        Op::Load(access) | Op::Store(access) => {
            !matches!(access.region, Region::Raw | Region::Slot | Region::Constant)
        }
        Op::CallRuntime(entry) => !matches!(entry.kind(), RuntimeKind::Throws | RuntimeKind::Prints),
        _ => false,
    };
    let object = |v| match low.as_const(v) {
        Some(Const::Address(address)) => !matches!(
            address,
            Address::Symbol(_) | Address::String(_) | Address::Data(_) | Address::Foreign(_)
        ),
        _ => false,
    };
    insts().any(|i| operation(low.op(i)) || low.args(i).iter().any(|&v| object(v)))
}

/// The functions that handle no objects and call no others.
fn native_part(module: &Module) -> Module {
    let mut kept: BTreeSet<String> = module.funcs().map(|(_, func)| func.symbol(&module.cx)).collect();
    let lowered: Vec<(String, Func)> = lower_module(module, &lower::Options::default())
        .into_iter()
        .map(|(id, low)| (module[id].symbol(&module.cx), low.unwrap_or_else(|why| panic!("{why}"))))
        .collect();
    loop {
        // Without these functions, those that call them go next.
        let goes = |symbol: &String, low: &Func| {
            let lost = |callee: &CalleeData| match callee {
                CalleeData::Symbol { symbol, .. } => !kept.contains(module.cx.names.text(*symbol)),
                CalleeData::Method { .. } => true,
            };
            kept.contains(symbol) && (handles_objects(low) || low.callees().any(|(_, callee)| lost(callee)))
        };
        let gone: Vec<String> = lowered
            .iter()
            .filter(|(symbol, low)| goes(symbol, low))
            .map(|(symbol, _)| symbol.clone())
            .collect();
        if gone.is_empty() {
            break;
        }
        gone.iter().for_each(|symbol| {
            kept.remove(symbol);
        });
    }
    let mut part = Module::new(module.cx.clone());
    module.globals().iter().for_each(|g| part.add_global(g.clone()).unwrap());
    for (_, func) in module.funcs().filter(|(_, func)| kept.contains(&func.symbol(&module.cx))) {
        part.add_func(func.clone()).unwrap();
    }
    part
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
                module[id].symbol(&module.cx),
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
        native.extend(part.funcs().map(|(_, func)| format!("{name}: {}", func.symbol(&part.cx))));
    }
    let wanted: BTreeSet<String> = NATIVE_CORPUS.iter().map(|s| (*s).to_owned()).collect();
    assert_eq!(native, wanted);
    assert!(checks > 40, "{checks}");
}

/// The examples with objects, which `tests/objects.rs` runs.
const WITH_OBJECTS: [&str; 4] = ["binary_trees", "exceptions", "shapes", "sort_cmp"];

#[test]
fn examples_are_native_as_a_whole() {
    let examples = files("examples");
    for (name, unit) in examples.iter().filter(|(name, _)| !WITH_OBJECTS.contains(&name.as_str())) {
        assert_eq!(native_part(&unit.module).func_count(), unit.module.func_count(), "{name}");
        assert!(run_checks(name, unit) > 0, "{name}");
    }
}

#[test]
fn programs_for_lowering_keep_their_meaning() {
    let counts: Vec<(String, usize)> =
        files("tests/lowering").iter().map(|(name, unit)| (name.clone(), run_checks(name, unit))).collect();
    // The others make an exception that holds an object.
    assert_eq!(counts, [("memory_forms".to_owned(), 13), ("small_forms".to_owned(), 30)]);
}
