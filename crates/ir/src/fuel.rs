//! Prices: how much fuel a program uses, as statements in it.
//!
//! ```text
//! f(n)                              f(n)          $(Expr(:spend, 3))      the statements outside loops
//! h: φ … goto x if not …    ==>     h: φ …        $(Expr(:spend, 5))      the statements of the loop, at its head
//!    … goto h                          … goto h
//! x: return …                       x: return …
//! ```
//!
//! A call of a function costs one unit per statement outside loops. Each iteration of a loop, and the test at
//! its head that ends it, costs one unit per statement of the loop that is in no inner loop, whichever of
//! them run. An irreducible cycle is charged at its entry blocks.
//!
//! **Deterministic.** Prices are set before any pass and are statements with an effect, so passes move, copy
//! and drop them only together with their iterations and calls: inlined, unrolled or interpreted, on every
//! machine, the units are the same. Counting machine code, low IR or polls would depend on all of these.
//!
//! Builtins, library functions of the engine and host functions have no price: deadlines end long ones.
//!
//! Cost: one loop analysis per function. At run time: a load, a subtraction, a store and a branch for each
//! call and iteration.

use crate::analysis::{Cfg, DomTree, Loops, Rpo};
use crate::cursor::Cursor;
use crate::entity::{Block, FuncId};
use crate::func::Func;
use crate::module::Module;
use crate::op::{Level, Op};
use std::collections::BTreeMap;

/// The largest price of one statement.
const MOST: u32 = i32::MAX as u32;

/// Adds prices to functions of a module, selected by position. Functions without bodies and low functions
/// have none.
pub fn price(module: &mut Module, is_priced: impl Fn(usize) -> bool) {
    let all: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
    for id in all {
        if is_priced(id.as_u32() as usize) && module[id].level == Level::High && module[id].entry().is_some()
        {
            let mut func = module[id].clone();
            price_function(&mut func);
            module[id] = func;
        }
    }
}

/// Whether a function among the first `own` ones of a module takes fuel.
pub fn spends(module: &Module, own: usize) -> bool {
    let spends = |func: &Func| {
        let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
        insts.any(|inst| matches!(func.op(inst), Op::Spend(_)))
    };
    module.funcs().take(own).any(|(_, func)| spends(func))
}

fn price_function(func: &mut Func) {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let loops = Loops::compute(&cfg, &rpo, &DomTree::compute(&cfg));
    let Some(entry) = func.entry() else { return };
    let mut heads: BTreeMap<Block, u32> = loops.iter().map(|l| (loops.header(l), 1)).collect();
    heads.extend(loops.irreducible_edges().iter().map(|&(_, to)| (to, 1)));
    let mut once = 0u32;
    for &block in rpo.blocks() {
        let count = u32::try_from(func.block_insts(block).count()).unwrap_or(MOST);
        let head = loops.loop_of(block).map_or(block, |l| loops.header(l));
        let price = heads.get_mut(&head).unwrap_or(&mut once);
        *price = price.saturating_add(count).min(MOST);
    }
    let calls = [(entry, once.max(1))];
    for (block, units) in heads.into_iter().chain(calls) {
        Cursor::new(func).at_first_insertion_point(block).ins(Op::Spend(units), &[], &[]);
    }
}
