//! Reduction: a fault planted into generated programs survives, and nearly everything else is removed.

use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::verify::verify_module;
use brolga::ir::{FuncId, Module, Op};
use brolga_fuzz::check::{HighInterpreter, Run, Trouble, check_differential};
use brolga_fuzz::generate::{Features, Options, generate};
use brolga_fuzz::reduce::{Limits, reduce, size};

/// A wrong "pass": products become sums.
fn miscompiled(module: &Module) -> Module {
    let mut wrong = module.clone();
    let ids: Vec<FuncId> = wrong.funcs().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut wrong[id];
        let insts: Vec<_> = func.blocks().flat_map(|b| func.block_insts(b)).collect();
        for inst in insts {
            let args = func.args(inst).to_vec();
            if func.op(inst) == Op::Intrinsic(Intrinsic::MulInt) {
                func.set_op(inst, Op::Intrinsic(Intrinsic::AddInt), &args);
            }
        }
    }
    wrong
}

fn differs(module: &Module) -> bool {
    let engine = HighInterpreter { max_steps: 20_000, passes: None };
    let wrong = miscompiled(module);
    let runs = [Run { engine: &engine, module }, Run { engine: &engine, module: &wrong }];
    // With one outcome the oracle itself could not continue, which is not the fault that is looked for.
    let differs =
        |trouble: &Trouble| matches!(trouble, Trouble::Differs { outcomes, .. } if outcomes.len() == 2);
    check_differential(1, &runs, 3).is_err_and(|failure| differs(&failure.trouble))
}

#[test]
fn a_miscompiled_statement_is_nearly_all_that_is_left() {
    let mut reduced = 0;
    for seed in 0..40 {
        let options = Options { features: Features::PLAIN, ..Options::default() };
        let module = generate(seed, &options);
        if !differs(&module) {
            continue;
        }
        let small = reduce(&module, Limits { tries: 3000 }, &mut |module| differs(module));
        assert!(differs(&small.module) && verify_module(&small.module).is_ok(), "seed {seed}");
        assert!(small.tries <= 3000, "seed {seed}");
        // The product, perhaps a condition that shows it, and returns.
        assert!(size(&small.module) <= 4, "seed {seed}: {} statements", size(&small.module));
        reduced += 1;
        if reduced == 5 {
            break;
        }
    }
    assert!(reduced > 0, "no program shows the fault");
}

#[test]
fn a_program_without_the_fault_stays() {
    let module = generate(3, &Options::default());
    let same = reduce(&module, Limits::default(), &mut |_| false);
    assert_eq!((size(&same.module), same.tries), (size(&module), 1));
}

const CAUGHT: &str = "\
function risky(n::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(100, n)::Int64
└──      return %1
end

function f(n::Int64)::Int64
1 ─ %1 = enter #4
2 ─ %2 = invoke Main.risky(n::Int64)::Int64
│   %3 = Base.mul_int(%2, n)::Int64
└──      $(Expr(:leave, :(%1)))
3 ─      return %3
4 ┄      $(Expr(:pop_exception, :(%1)))
└──      return 0
end
";

#[test]
fn a_handler_that_has_nothing_to_do_with_the_fault_goes() {
    let module = brolga::Program::read("t", CAUGHT.as_bytes()).unwrap().module().clone();
    let has_product = |module: &Module| {
        let mut ops = module.funcs().flat_map(|(_, f)| {
            let insts = f.blocks().flat_map(|b| f.block_insts(b)).map(|i| f.op(i));
            insts.collect::<Vec<_>>()
        });
        ops.any(|op| op == Op::Intrinsic(Intrinsic::MulInt))
    };
    let small = reduce(&module, Limits::default(), &mut |module| has_product(module));
    assert!(has_product(&small.module) && verify_module(&small.module).is_ok());
    assert_eq!(size(&small.module), 2, "{}", brolga::ir::text::show_module(&small.module));
}

/// A miscompilation planted by a command: what is run natively is the program with sums in the place of products.
#[cfg(unix)]
#[test]
fn a_command_says_what_fails() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let brolga = env!("CARGO_BIN_EXE_brolga");
    let run = |how: &str| format!("{brolga} run {how} --call 'f(7)' - 2>&1");
    let check = format!(
        "program=$(cat); right=$(echo \"$program\" | {}) && \
         wrong=$(echo \"$program\" | sed s/mul_int/add_int/ | {}) && test \"$right\" != \"$wrong\"",
        run("--interp"),
        run("-O2")
    );
    let reduced = |program: &str| {
        let mut child = Command::new(brolga)
            .args(["reduce", "--check", &check, "--tries", "200", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let done = reduced(CAUGHT);
    let (small, said) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success(), "{said}");
    assert!(small.contains("mul_int") && !small.contains("enter") && !small.contains("risky"), "{small}");
    // Without the product nothing is wrong.
    let done = reduced(&CAUGHT.replace("mul_int", "sub_int"));
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
}

#[cfg(unix)]
#[test]
fn a_run_that_never_ends_or_cannot_be_made_is_no_agreement() {
    use std::process::Command;
    let brolga = env!("CARGO_BIN_EXE_brolga");
    let path = std::env::temp_dir().join(format!("brolga-reduce-{}.jlir", std::process::id()));
    std::fs::write(&path, "function f()::Int64\n1 ─      goto #2\n2 ┄      goto #2\nend\n").unwrap();
    let mut command = Command::new(brolga);
    let done = command.args(["reduce", "--timeout", "1", "--call", "f()"]).arg(&path).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("whether the program fails is open: the interpreter"), "{said}");
    let mut command = Command::new(brolga);
    command.args(["reduce", "--check", "true"]).arg(&path).env("PATH", "/nowhere");
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(4), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::remove_file(&path).unwrap();
}
