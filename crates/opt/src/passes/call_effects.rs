//! Annotates the calls of a function with their callees' effects.
//!
//! ```text
//! %1 = invoke square(x)        no use         ==>  removed by `dce`: `square` is pure and ends
//! %2 = invoke square(y)
//! %3 = invoke square(y)                       ==>  %2 by `cse`: one callee, equal operands
//! ```
//!
//! The summaries come from the module ([`summary`](crate::summary)); a callee without one may do anything. Callees that are the
//! same method for the same types become one, so that their calls compare equal. Neither changes the meaning or the text of the
//! function, so no fuel is spent. A caller that relies on a summary depends on the callee's body as if it had copied it, and the report
//! lists it.
//!
//! Cost: one look-up for each callee and a visit to each instruction. Breaks nothing.

use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::summary::of_callee;
use brolga_ir::effects::Summary;
use brolga_ir::func::CalleeData;
use brolga_ir::{Callee, Func, Inst, Op};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass::new("call-effects", PassLevel::High, run);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let first = first_of_equals(func);
    let calls: Vec<(Inst, Callee)> = func
        .blocks()
        .flat_map(|b| func.block_insts(b))
        .filter_map(|inst| match func.op(inst) {
            Op::Invoke(callee) => Some((inst, callee)),
            _ => None,
        })
        .collect();
    let mut noted: SecondaryMap<Callee, bool> = SecondaryMap::new();
    for (inst, callee) in calls {
        let callee = first[callee];
        let args = func.args(inst).to_vec();
        func.set_op(inst, Op::Invoke(callee), &args);
        if std::mem::replace(&mut noted[callee], true) {
            continue;
        }
        let summary = of_callee(cx.module, func.callee(callee));
        let known = summary != Summary::ANY;
        func.set_callee_summary(callee, known.then_some(summary));
        if known
            && let CalleeData::Method { function, args, .. } = func.callee(callee)
            && let Some(id) = cx.module.find_method(*function, args)
        {
            cx.count("known callees", 1);
            cx.inlined(id);
        }
    }
    Changed::No
}

/// For each callee the first that is equal to it.
fn first_of_equals(func: &Func) -> SecondaryMap<Callee, Callee> {
    let mut firsts: FxHashMap<&CalleeData, Callee> = FxHashMap::default();
    let mut found = SecondaryMap::with_default(Callee::from_u32(0));
    for (callee, data) in func.callees() {
        found[callee] = *firsts.entry(data).or_insert(callee);
    }
    found
}
