//! The pass manager: its errors for passes that go wrong, and the behaviour of fuel, filters, dumps and reports.

use std::sync::{Arc, Mutex};

use brolga_ir::diag::SourceFile;
use brolga_ir::text::{read, show_func};
use brolga_ir::{Context, Func, Level, Module, Op};
use brolga_opt::callgraph::bottom_up;
use brolga_opt::lower::lower;
use brolga_opt::{
    Changed, Cx, Fact, OptError, OptLevel, Options, Pass, PassCx, PassFilter, PassLevel, Report, When,
    optimize, parse_passes, pass_named, run_passes,
};

const TEXT: &str = "
function f(c::Bool, x::Int64)::Int64
1 ─      goto #3 if not c
2 ─ %2 = Base.add_int(x, 0)::Int64
└──      return %2
3 ─ %4 = Base.sub_int(x, x)::Int64
│   %5 = Base.mul_int(%4, 1)::Int64
└──      return %5
end
";

fn module(text: &str) -> Module {
    let source = SourceFile::new("t", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors());
    unit.module
}

fn first(module: &Module) -> Func {
    module.funcs().next().map(|(_, f)| f.clone()).unwrap()
}

fn pass(name: &'static str, needs: &'static [Fact], run: fn(&mut Func, &mut PassCx<'_>) -> Changed) -> Pass {
    Pass { name, level: PassLevel::High, required: false, needs, breaks: &[], run }
}

fn run(pass: &'static Pass, options: &Options) -> Result<(Func, Report), OptError> {
    let module = module(TEXT);
    run_passes(&module, first(&module), &[pass_named("dce").unwrap(), pass], options, &mut Cx::default())
}

#[test]
fn a_pass_that_panics_is_named() {
    static PASS: std::sync::LazyLock<Pass> =
        std::sync::LazyLock::new(|| pass("bad", &[], |_, _| panic!("oh")));
    let error = run(&PASS, &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "pass `bad` (step 2 of 2) on `f(Bool, Int64)`, after 0 rewrites, crashed: oh");
}

/// Replaces the first terminator by `unreachable`.
fn cut(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let first = func.entry().and_then(|b| func.terminator(b)).unwrap();
    assert!(cx.spend("cuts"));
    func.set_inst_blocks(first, &[]);
    func.set_op(first, Op::Unreachable, &[]);
    Changed::Yes
}

#[test]
#[cfg(debug_assertions)]
fn a_pass_that_breaks_more_than_it_says_is_found() {
    static PASS: std::sync::LazyLock<Pass> = std::sync::LazyLock::new(|| pass("cut", &[Fact::DomTree], cut));
    let error = run(&PASS, &Options::default()).unwrap_err().to_string();
    assert!(error.ends_with("crashed: it broke facts that it does not declare: [Cfg, DomTree]"), "{error}");
}

#[test]
#[cfg(debug_assertions)]
fn a_pass_that_denies_its_rewrites_is_found() {
    static PASS: std::sync::LazyLock<Pass> = std::sync::LazyLock::new(|| {
        pass("liar", &[], |func, cx| {
            let _ = cut(func, cx);
            Changed::No
        })
    });
    let error = run(&PASS, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("it made 1 rewrites and says that it changed nothing"), "{error}");
}

#[test]
fn a_function_that_does_not_verify_is_blamed_on_its_pass() {
    static PASS: std::sync::LazyLock<Pass> = std::sync::LazyLock::new(|| {
        pass("headless", &[], |func, cx| {
            let entry = func.entry().unwrap();
            let end = func.terminator(entry).unwrap();
            assert!(cx.spend("heads"));
            func.remove_inst(end);
            Changed::Yes
        })
    });
    let options = Options { verify_each: true, ..Options::default() };
    match run(&PASS, &options) {
        Err(OptError::Broken { after: Some(note), violations, .. }) => {
            assert_eq!((note.pass, note.step, note.rewrites), ("headless", 2, 1));
            assert!(!violations.is_empty());
        }
        other => panic!("{other:?}"),
    }
    let broken = run(&PASS, &Options::default()).unwrap().0;
    let error = run_passes(&module(TEXT), broken, &[], &options, &mut Cx::default()).unwrap_err();
    assert!(error.to_string().starts_with("`f(Bool, Int64)` does not verify: "), "{error}");
}

#[test]
fn fuel_stops_at_the_limit_and_nothing_else_changes() {
    let module = module(TEXT);
    let text = |func: &Func| show_func(&module.cx, func).to_string();
    let at = |limit| {
        let mut cx = Cx::new(limit);
        let (func, report) =
            optimize(&module, first(&module), OptLevel::O2, &Options::default(), &mut cx).unwrap();
        assert_eq!(report.rewrites(), cx.fuel.spent());
        (text(&func), cx.fuel.spent())
    };
    let (all, needed) = at(None);
    assert_eq!(at(Some(0)), (text(&first(&module)), 0));
    assert_eq!(at(Some(needed)), (all.clone(), needed));
    assert_eq!(at(Some(needed - 1)).1, needed - 1);
    assert_ne!(at(Some(needed - 1)).0, all);
}

#[test]
fn dumps_come_where_they_were_asked_for() {
    let module = module(TEXT);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut cx = Cx::default().with_sink(|dump| {
        let row = (dump.when, dump.label, dump.step, dump.steps, dump.symbol.to_owned(), dump.changed);
        seen.lock().unwrap().push(row);
    });
    let options = Options {
        print_before: PassFilter::Named(vec!["dce"]),
        print_after: PassFilter::All,
        ..Options::default()
    };
    let passes = parse_passes("inst-simplify,dce").unwrap();
    let (func, _) = run_passes(&module, first(&module), &passes, &options, &mut cx).unwrap();
    assert_eq!(func.level, Level::High);
    drop(cx);
    let symbol = "f(Bool, Int64)".to_owned();
    let expected = [
        (When::After, "inst-simplify", 1, 2, symbol.clone(), Changed::Yes),
        (When::Before, "dce", 2, 2, symbol.clone(), Changed::No),
        (When::After, "dce", 2, 2, symbol, Changed::No),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn reports_measure_with_the_clock_that_they_are_given() {
    let module = module(TEXT);
    let mut now = 0;
    let mut cx = Cx::default().with_clock(move || {
        now += 5;
        now
    });
    let passes = parse_passes("inst-simplify").unwrap();
    let (_, report) = run_passes(&module, first(&module), &passes, &Options::default(), &mut cx).unwrap();
    let row = &report.steps[0];
    assert_eq!((row.time, row.insts_before, row.insts_after), (5, 6, 3));
    assert_eq!((row.runs, row.changed, row.rewrites), (1, 1, 3));
    assert_eq!(row.counters, [("integer rules", 2), ("folded", 1)]);
}

#[test]
fn passes_can_be_switched_off_unless_they_are_required() {
    let module = module(TEXT);
    let options = Options { skip: vec!["inst-simplify", "bounds-fold"], ..Options::default() };
    let (_, report) = optimize(&module, first(&module), OptLevel::O2, &options, &mut Cx::default()).unwrap();
    let passes: Vec<_> = report.steps.iter().map(|s| s.pass).collect();
    assert!(passes.contains(&"bounds-fold") && !passes.contains(&"inst-simplify"), "{passes:?}");
}

#[test]
fn a_pass_for_the_other_level_is_refused() {
    let module = module(TEXT);
    let low = lower(&module, &first(&module), &Default::default()).unwrap();
    let passes = parse_passes("dce,sroa").unwrap();
    let error = run_passes(&module, low, &passes, &Options::default(), &mut Cx::default()).unwrap_err();
    assert_eq!(error.to_string(), "pass `sroa` does not take functions in low IR");
}

#[test]
fn callees_come_before_callers() {
    let module = module(
        "
function main(n::Int64)::Int64
1 ─ %1 = invoke Main.even(n::Int64)::Int64
└──      return %1
end
function even(n::Int64)::Int64
1 ─ %1 = invoke Main.odd(n::Int64)::Int64
└──      return %1
end
function odd(n::Int64)::Int64
1 ─ %1 = invoke Main.even(n::Int64)::Int64
│   %2 = invoke Main.leaf(%1::Int64)::Int64
└──      return %2
end
function leaf(n::Int64)::Int64
1 ─     return n
end
",
    );
    let names =
        |ids: &Vec<_>| ids.iter().map(|&id| module[id].symbol(&module.cx)).collect::<Vec<_>>().join(" ");
    let order: Vec<String> = bottom_up(&module).iter().map(names).collect();
    assert_eq!(order, ["leaf(Int64)", "even(Int64) odd(Int64)", "main(Int64)"]);
}

#[test]
fn methods_that_dynamic_calls_may_reach_come_before_the_caller() {
    let module = module(
        "
function main(n::Any)::Any
1 ─ %1 = dynamic Main.even(n)::Any
└──      return %1
end
function even(n::Int64)::Any
1 ─ %1 = dynamic Main.leaf(n)::Any
└──      return %1
end
function even(n::Float64)::Any
1 ─ %1 = dynamic Main.main(n)::Any
└──      return %1
end
function leaf(n::Any)::Any
1 ─     return n
end
function leaf(n::String)::Any
1 ─     return n
end
",
    );
    let names =
        |ids: &Vec<_>| ids.iter().map(|&id| module[id].symbol(&module.cx)).collect::<Vec<_>>().join(" ");
    let order: Vec<String> = bottom_up(&module).iter().map(names).collect();
    assert_eq!(order, ["leaf(Any)", "even(Int64)", "main(Any) even(Float64)", "leaf(String)"]);
}

#[test]
fn a_run_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Cx<'static>>();
    moves::<Report>();
    moves::<Result<Func, OptError>>();
}
