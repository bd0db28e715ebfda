//! Folds the program's queries about the processor.
//!
//! ```text
//! %1 = have_fma(Float64)                                  goto 2
//!      goto 3 if not %1           with `cpu.fma`   ==>
//! ```
//!
//! An option determines the target processor ([`CpuFeatures`](crate::CpuFeatures)), which need not be the machine that
//! compiles: an image may have a version for each of several. Without the option this pass folds nothing, and lowering
//! answers "no", as the interpreter does.
//!
//! Cost: one visit to each instruction. Breaks the uses. Not done: features besides this one, which no intrinsic queries.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Inst, Op, Type};

pub(crate) const PASS: Pass = Pass::new("cpu-features", PassLevel::High, run).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    if !cx.options.cpu.fma {
        return Changed::No;
    }
    let asks = |&i: &Inst| func.op(i) == Op::Intrinsic(Intrinsic::HaveFma);
    let questions: Vec<Inst> = func.blocks().flat_map(|b| func.block_insts(b)).filter(asks).collect();
    let mut values = Replacements::default();
    for inst in questions {
        let of = func.args(inst).first().and_then(|&v| func.as_const(v)).cloned();
        let has = matches!(of, Some(Const::Type { of: Type::FLOAT32 | Type::FLOAT64, .. }));
        let Some(result) = func.result(inst).filter(|_| has) else { continue };
        if !cx.spend("answers") {
            break;
        }
        let yes = func.bits(cx.types(), Type::BOOL, 1);
        values.set(result, yes);
        func.remove_inst(inst);
    }
    values.apply(func, cx.context());
    cx.changed()
}
