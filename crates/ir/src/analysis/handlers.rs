//! Exception handlers: which `enter` is in force where.
//!
//! The handlers in force form a stack; `enter` pushes one for its first target, `leave` pops. The verifier
//! requires that the stack at the head of a block does not depend on the path, so the innermost `enter`
//! identifies a stack: the rest of it is the stack before that `enter`.
//!
//! ```text
//!  1: enter body 2, handler 9        2: [1]     3: [3, 1]     4: [1]        9: []
//!  2: enter body 3, handler 4                   an exception in 3 continues in 4, one in 4 continues in 9
//! ```
//!
//! In a function that breaks the rules, each block takes the handlers of its first incoming edge, and a
//! `leave` of a handler that is not in force pops nothing. Cost: one visit of each instruction.

use super::{Cfg, Rpo};
use crate::entity::{Block, Inst};
use crate::func::Func;
use crate::op::Op;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The handlers in force at the head of each block and around each `enter`.
#[derive(Clone, Debug, Default)]
pub struct Handlers {
    heads: SecondaryMap<Block, PackedOption<Inst>>,
    outer: SecondaryMap<Inst, PackedOption<Inst>>,
    enters: Vec<Inst>,
}

impl Handlers {
    pub fn compute(func: &Func, cfg: &Cfg, rpo: &Rpo) -> Handlers {
        let mut all = Handlers::default();
        let mut seen = SecondaryMap::<Block, bool>::new();
        for &block in rpo.blocks() {
            let mut inside = all.heads[block].expand();
            for inst in func.block_insts(block) {
                inside = all.after(func, inst, inside);
            }
            let enter = func.terminator(block).filter(|&end| func.op(end) == Op::Enter);
            if let Some(enter) = enter {
                all.outer[enter] = inside.into();
                all.enters.push(enter);
            }
            for (number, &target) in cfg.succs(block).iter().enumerate() {
                let first = !std::mem::replace(&mut seen[target], true);
                if let Some(inside) = if number == 0 { enter.or(inside) } else { inside }.filter(|_| first) {
                    all.heads[target] = inside.into();
                }
            }
        }
        all
    }

    /// All reachable `enter` instructions, in reverse postorder.
    pub fn enters(&self) -> &[Inst] {
        &self.enters
    }

    /// The innermost handler in force at the head of a block.
    pub fn at_head(&self, block: Block) -> Option<Inst> {
        self.heads[block].expand()
    }

    /// The innermost handler in force at an `enter`, and in its handler.
    pub fn outer(&self, enter: Inst) -> Option<Inst> {
        self.outer[enter].expand()
    }

    /// The innermost handler in force after an instruction, given the one before it. For `enter` this is the
    /// one in force around it.
    pub fn after(&self, func: &Func, inst: Inst, inside: Option<Inst>) -> Option<Inst> {
        if func.op(inst) != Op::Leave {
            return inside;
        }
        func.args(inst).iter().fold(inside, |inside, &token| match inside {
            Some(enter) if func.def_inst(token) == Some(enter) => self.outer(enter),
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::graphs::func_of;
    use crate::types::Type;
    use cranelift_entity::EntityRef;

    /// Makes the terminator of a block an `enter`.
    fn enter(func: &mut Func, block: usize) -> Inst {
        let block = Block::new(block);
        let targets = func.successors(block).to_vec();
        if let Some(end) = func.terminator(block) {
            func.remove_inst(end);
        }
        let enter = func.make_inst(Op::Enter, &[], &targets, &[Type::TOKEN]);
        func.append_inst(enter, block);
        enter
    }

    fn leave(func: &mut Func, block: usize, enters: &[Inst]) {
        let tokens: Vec<_> = enters.iter().filter_map(|&enter| func.result(enter)).collect();
        let leave = func.make_inst(Op::Leave, &tokens, &[], &[]);
        match func.first_inst(Block::new(block)) {
            Some(first) => func.insert_before(leave, first),
            None => func.append_inst(leave, Block::new(block)),
        }
    }

    #[test]
    fn handlers_nest_and_leave_takes_several() {
        // 0 enters (1, 6); 1 enters (2, 5); 2 loops over 3, which leaves both on the way to 4.
        let mut func = func_of(&[&[1, 6], &[2, 5], &[2, 3], &[4], &[], &[4], &[]]);
        let (outer, inner) = (enter(&mut func, 0), enter(&mut func, 1));
        leave(&mut func, 3, &[inner, outer]);
        leave(&mut func, 5, &[outer]);
        let cfg = Cfg::compute(&func);
        let handlers = Handlers::compute(&func, &cfg, &Rpo::compute(&cfg));
        let heads: Vec<_> = (0..7).map(|block| handlers.at_head(Block::new(block))).collect();
        assert_eq!(heads, [None, Some(outer), Some(inner), Some(inner), None, Some(outer), None]);
        assert_eq!((handlers.outer(inner), handlers.outer(outer)), (Some(outer), None));
        assert_eq!(handlers.enters(), [outer, inner]);
    }

    #[test]
    fn leaving_what_is_not_in_force_changes_nothing() {
        let mut func = func_of(&[&[1, 2], &[2], &[]]);
        let only = enter(&mut func, 0);
        leave(&mut func, 1, &[only, only]);
        leave(&mut func, 2, &[only]);
        let cfg = Cfg::compute(&func);
        let handlers = Handlers::compute(&func, &cfg, &Rpo::compute(&cfg));
        assert_eq!(handlers.at_head(Block::new(1)), Some(only));
        assert_eq!(handlers.at_head(Block::new(2)), None);
    }
}
