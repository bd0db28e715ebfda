//! Programs with objects keep their meaning when every collection moves all movable objects.
//!
//! The programs are those of `objects.rs`. mmtk allows one heap for each process, so this program runs itself once for each plan. In the
//! corpus every safepoint collects, which reveals a missing root, or a register that was not loaded again, at once. Programs that
//! run long under that collect once for many allocations.
//!
//! Sessions on that heap define, call, redefine and remove functions with objects, by each kind of definition.

#[path = "support/programs.rs"]
mod programs;

use std::error::Error;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use brolga::heap::{HeapOptions, MmtkOptions, MmtkPlan, Stress};
use brolga::host::Handle;
use brolga::session::Definitions;
use brolga::{Engine, Evaluator, OptLevel, Options, Runtime, Session, Verdict, Workers};
use brolga_runtime::RuntimeOptions;
use programs::programs;

/// Checks that do not hold where objects move: the hash of an object with an identity is that of its type there, so two may have one.
const BY_ADDRESS: [&str; 1] = ["same_id([1], [1]) == false"];

type Define = fn(Definitions) -> Definitions;

const KINDS: [(&str, Define); 5] = [
    ("eager", |program| program),
    ("lazy", |program| program.lazy()),
    ("tiered", |program| program.tiered(2).iterations(3)),
    ("interpreted", |program| program.interpreted(2).iterations(3)),
    ("replaceable", |program| program.replaceable()),
];

/// Lists, a function value and a call by dispatch. `step` is redefined and removed.
const LISTS: &str = "\
mutable struct Node
    next::Union{Nothing, Node}
    val::Int64
end
function list(n::Int64)::Union{Nothing, Node}
1 ─       goto #2
2 ┄ %2  = φ (#1 => nothing, #3 => %6)::Union{Nothing, Node}
│   %3  = φ (#1 => n, #3 => %7)::Int64
│   %4  = (%3 === 0)::Bool
└──       goto #3 if not %4
4 ─       return %2
3 ─ %6  = %new(Main.Node, %2, %3)::Node
│   %7  = Base.sub_int(%3, 1)::Int64
└──       goto #2
end
function fold(f::Any, list::Union{Nothing, Node})::Int64
1 ─       goto #2
2 ┄ %2  = φ (#1 => list, #3 => %7)::Union{Nothing, Node}
│   %3  = φ (#1 => 0, #3 => %10)::Int64
│   %4  = (%2 === nothing)::Bool
└──       goto #3 if not %4
4 ─       return %3
3 ─ %5  = π (%2, Node)
│   %7  = Base.getfield(%5, :next)::Union{Nothing, Node}
│   %8  = dynamic (f)(%5, %3)::Any
│   %10 = Core.typeassert(%8, Int64)::Int64
└──       goto #2
end
function total(n::Int64)::Int64
1 ─ %1 = invoke Main.list(n::Int64)::Union{Nothing, Node}
│   %2 = invoke Main.fold(Main.step::Any, %1::Union{Nothing, Node})::Int64
└──      return %2
end
";

/// Adds the value of a node so many times.
fn step(times: i64) -> String {
    format!(
        "mutable struct Node\n    next::Union{{Nothing, Node}}\n    val::Int64\nend\n\
         function step(node::Node, sum::Int64)::Int64\n1 ─ %1 = Base.getfield(node, :val)::Int64\n\
         │   %2 = Base.mul_int(%1, {times})::Int64\n│   %3 = Base.add_int(%2, sum)::Int64\n└──      return %3\nend\n"
    )
}

/// Defines, calls, redefines, and removes in a session on a heap that moves objects.
fn run_session(runtime: &Arc<Runtime>, level: OptLevel, kind: Define) -> Result<(), Box<dyn Error>> {
    let session =
        Session::on(runtime, crate::doors::open(Options::new()).opt_level(level), Workers::Pool(1))?;
    let main = session.create_dylib("main")?;
    let read = |text: &str| main.read("lists.jlir", text.as_bytes()).map(kind);
    main.define(read(&step(1))?)?;
    main.define(read(LISTS)?)?;
    let total = main.func::<(i64,), i64>("total")?;
    let list = main.func_in::<(i64,), Handle>("list")?;
    for times in 1..=4 {
        if times > 1 {
            main.redefine(read(&step(times))?)?;
        }
        for n in 0..20 {
            let (found, wanted) = (total.call((n,))?, times * n * (n + 1) / 2);
            if found != wanted {
                return Err(format!("total({n}) is {found}, not {wanted}").into());
            }
        }
    }
    // A list that Rust holds while everything moves.
    let kept = runtime.enter(|scope| {
        let made = list.call(scope, (20,)).map_err(|error| error.to_string())?;
        scope.collect();
        scope.collect();
        Ok::<_, String>(made.get(scope).desc().name() == "Node")
    })?;
    if kept != Ok(true) {
        return Err(format!("the list is {kept:?}").into());
    }
    main.remove(&["step"])?;
    match total.call((3,)) {
        Err(_) => {}
        Ok(sum) => return Err(format!("`step` was removed, and a call by dispatch gave {sum}").into()),
    }
    let thrown = session.end();
    if thrown.is_empty() { Ok(()) } else { Err(format!("{thrown:?}").into()) }
}

const PLANS: [(&str, MmtkPlan); 2] = [("SemiSpace", MmtkPlan::SemiSpace), ("Immix", MmtkPlan::Immix)];

fn main() -> ExitCode {
    let named = std::env::args().find_map(|arg| Some(arg.strip_prefix("--plan=")?.to_owned()));
    if let Some(name) = named {
        let (_, plan) = PLANS.into_iter().find(|(known, _)| name == *known).expect("a plan");
        return run(&name, plan);
    }
    let own = std::env::current_exe().expect("this program");
    let mut failed = false;
    for (name, _) in PLANS {
        let status = Command::new(&own).arg(format!("--plan={name}")).status().expect("this program again");
        failed |= !status.success();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(name: &str, plan: MmtkPlan) -> ExitCode {
    let began = Instant::now();
    let options = MmtkOptions { plan, bytes: 64 << 20, threads: 1, move_all: true };
    let runtime = Runtime::with_mmtk(
        RuntimeOptions { heap: HeapOptions::default(), ..RuntimeOptions::default() },
        &options,
    )
    .expect("the first heap of the process");
    let mut failed = Vec::new();
    let (mut passed, mut skipped) = (0, 0);
    for (folder, stress) in [
        ("tests/corpus", Stress::EverySafepoint),
        ("tests/objects", Stress::Every(61)),
        ("examples", Stress::Every(9_973)),
    ] {
        runtime.heap().set_stress(stress);
        for (file, program) in &programs(&[folder]) {
            for level in [OptLevel::O0, OptLevel::O2] {
                let engine = Engine::on(&runtime, crate::doors::open(Options::new()).opt_level(level))
                    .expect("an engine");
                let mut evaluator = Evaluator::native(program, &engine);
                for check in program.checks() {
                    match evaluator.check(check) {
                        Verdict::Passed => passed += 1,
                        Verdict::Skipped { .. } => skipped += 1,
                        verdict @ Verdict::Failed { .. } => {
                            let text = program.source().slice(check.span).trim();
                            if BY_ADDRESS.contains(&text) {
                                skipped += 1;
                                continue;
                            }
                            failed.push(format!("{file} at {level:?}: {text}: {verdict:?}"));
                        }
                    }
                }
            }
        }
    }
    runtime.heap().set_stress(Stress::EverySafepoint);
    let before = (passed, failed.len());
    for level in [OptLevel::O0, OptLevel::O2] {
        for (kind, define) in KINDS {
            match run_session(&runtime, level, define) {
                Ok(()) => passed += 1,
                Err(error) => failed.push(format!("session of {kind} functions at {level:?}: {error}")),
            }
        }
    }
    println!("sessions, {name}: {} passed, {} failed", passed - before.0, failed.len() - before.1);
    let collections = runtime.heap().stats().full_collections;
    let seconds = began.elapsed().as_secs_f64();
    println!("moving, {name}: {passed} passed, {skipped} skipped, {collections} collections, {seconds:.1} s");
    failed.iter().for_each(|line| println!("{line}"));
    // Programs that take addresses of objects are skipped: heaps that move refuse them.
    let enough = passed > 1000 && skipped * 4 < passed && collections > 1000;
    if failed.is_empty() && enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[path = "support/doors.rs"]
mod doors;
