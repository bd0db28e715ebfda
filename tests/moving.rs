//! Programs with objects keep their meaning when every collection moves what it can.
//!
//! The programs are those of `objects.rs`. mmtk allows one heap for each process, so this program runs itself once for each plan. In the
//! corpus every safepoint collects, and a root that is missing, or a register that was not loaded again, shows at once. What
//! runs long under that collects once for many allocations.

#[path = "support/programs.rs"]
mod programs;

use std::process::{Command, ExitCode};
use std::time::Instant;

use brolga::heap::{HeapOptions, MmtkOptions, MmtkPlan, Stress};
use brolga::{Engine, Evaluator, OptLevel, Options, Runtime, Verdict};
use brolga_runtime::RuntimeOptions;
use programs::programs;

/// Checks that do not hold where objects move: the hash of an object with an identity is that of its type there, so two may have one.
const BY_ADDRESS: [&str; 1] = ["same_id([1], [1]) == false"];

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
                let engine = Engine::on(&runtime, Options::new().opt_level(level)).expect("an engine");
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
    let collections = runtime.heap().stats().full_collections;
    let seconds = began.elapsed().as_secs_f64();
    println!("moving, {name}: {passed} passed, {skipped} skipped, {collections} collections, {seconds:.1} s");
    failed.iter().for_each(|line| println!("{line}"));
    // Programs that take addresses of objects are skipped: heaps that move refuse them.
    let enough = passed > 1000 && skipped * 4 < passed && collections > 1000;
    if failed.is_empty() && enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
