//! Computes a remainder from an available quotient.
//!
//! ```text
//! %1 = sdiv_int(x, y)                      %1 = sdiv_int(x, y)
//! …                                        …
//! %2 = srem_int(x, y)           ==>        %3 = mul_int(%1, y)
//!                                          %2 = sub_int(x, %3)
//! ```
//!
//! A division takes as long as ten products or more, and code generation makes one for each of the two. The quotient has to
//! dominate the remainder: it has then been computed, so the divisor is not zero and the difference is exact modulo the width.
//! Division by a power of two becomes shifts, and is left alone.
//!
//! Cost: one visit to each instruction, one look-up for each division. Breaks the uses. Not done: quotients after the
//! remainder; remainders of two divisions by constants.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Value};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass =
    Pass::new("div-rem", PassLevel::Low, run).needs(&[Fact::Cfg, Fact::DomTree]).breaks(&[Fact::Uses]);

/// Whether it is signed, and the operands.
type Key = (bool, Value, Value);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (rpo, tree) = (cx.facts.rpo(), cx.facts.domtree());
    // The first quotient in the order of the blocks, which dominates most.
    let mut quotients: FxHashMap<Key, (Block, Value)> = FxHashMap::default();
    let mut remainders: Vec<(Inst, Value)> = Vec::new();
    for &block in rpo.blocks() {
        for inst in func.block_insts(block) {
            let (Op::Intrinsic(op), &[x, y]) = (func.op(inst), func.args(inst)) else { continue };
            let is_power = func.as_bits(y).is_some_and(|bits| bits.count_ones() <= 1);
            match op {
                _ if is_power => {}
                Intrinsic::SdivInt | Intrinsic::UdivInt => {
                    let key = (op == Intrinsic::SdivInt, x, y);
                    if let Some(result) = func.result(inst) {
                        quotients.entry(key).or_insert((block, result));
                    }
                }
                Intrinsic::SremInt | Intrinsic::UremInt => {
                    let known = quotients.get(&(op == Intrinsic::SremInt, x, y));
                    let known = known.filter(|(there, _)| tree.dominates(*there, block));
                    remainders.extend(known.map(|&(_, quotient)| (inst, quotient)));
                }
                _ => {}
            }
        }
    }
    for (inst, quotient) in remainders {
        if !cx.spend("remainders of quotients") {
            break;
        }
        let &[x, y] = func.args(inst) else { continue };
        let ty = func.ty(x);
        let product =
            Cursor::new(func).before(inst).ins_value(Op::Intrinsic(Intrinsic::MulInt), &[quotient, y], ty);
        func.set_op(inst, Op::Intrinsic(Intrinsic::SubInt), &[x, product]);
    }
    cx.changed()
}
