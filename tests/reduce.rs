//! Reduction: a fault planted into generated programs survives, and nearly all else goes.

use brolga::fuzz::check::{HighInterpreter, Run, Trouble, check_differential};
use brolga::fuzz::generate::{Features, Options, generate};
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::verify::verify_module;
use brolga::ir::{FuncId, Module, Op};
use brolga::reduce::{Limits, reduce, size};

/// A wrong "pass": products become sums.
fn miscompiled(module: &Module) -> Module {
    let mut wrong = module.clone();
    let ids: Vec<FuncId> = wrong.funcs().map(|(id, _)| id).collect();
    for id in ids {
        let func = wrong.func_mut(id);
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
    // With one outcome the oracle itself could not go on, which is not the fault that is looked for.
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
