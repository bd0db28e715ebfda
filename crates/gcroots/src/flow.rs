//! Control flow for placement: with exceptional edges, and with the paths that end in an exception.
//!
//! **Exceptions.** An instruction between an `enter` and its `leave` may continue at the handler. Such an
//! edge leaves from the middle of a block, and is kept separately from the CFG: a value that is live at the
//! head of a handler is live throughout every block protected by it. A block that is protected only up to a
//! `leave` counts as protected throughout; it has no edge if that part cannot throw.
//!
//! ```text
//!   1 ─ %1 = enter #4          #1 → #2, #1 → #4
//!   2 ─ %2 = invoke f()        #2 ⇢ #4
//!       leave(%1)
//!       goto #3                no ⇢ for this part
//! ```
//!
//! **Doomed** blocks cannot reach a `return`: all their paths end in an exception that this function does not
//! catch, or never end. Roots that are needed only there cost the other paths nothing.
//!
//! Cost: linear.

use brolga_ir::analysis::{Cfg, DomTree, Handlers, Rpo};
use brolga_ir::effects::effects;
use brolga_ir::{Block, Context, Func, Inst, Op};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};

/// Whether a collection may happen during a low-IR instruction.
pub(crate) fn is_safepoint(func: &Func, cx: &Context, inst: Inst) -> bool {
    // In low IR an intrinsic is a machine instruction, even if its high form may throw.
    !matches!(func.op(inst), Op::Intrinsic(_)) && effects(func, &cx.types, inst).may_safepoint
}

/// See [the module](self).
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) cfg: Cfg,
    /// By handler: the blocks that it protects.
    protected: SecondaryMap<Block, Vec<Block>>,
    handlers: Vec<Block>,
    /// By doomed block: its highest doomed dominator.
    top: SecondaryMap<Block, PackedOption<Block>>,
}

impl Flow {
    /// The flow of a verified function without unreachable blocks.
    pub(crate) fn compute(func: &Func, cx: &Context, cfg: Cfg, rpo: &Rpo, tree: &DomTree) -> Flow {
        let mut flow =
            Flow { cfg, protected: SecondaryMap::new(), handlers: Vec::new(), top: SecondaryMap::new() };
        flow.find_protected(func, cx, rpo);
        flow.find_doomed(func, rpo, tree);
        flow
    }

    fn find_protected(&mut self, func: &Func, cx: &Context, rpo: &Rpo) {
        let handlers = Handlers::compute(func, &self.cfg, rpo);
        let block_of = |enter: Inst| func.inst_blocks(enter).get(1).copied();
        self.handlers = handlers.enters().iter().filter_map(|&enter| block_of(enter)).collect();
        if self.handlers.is_empty() {
            return;
        }
        for &block in rpo.blocks() {
            let mut inside = handlers.at_head(block);
            let mut may_throw = false;
            for inst in func.block_insts(block) {
                let effects = effects(func, &cx.types, inst);
                may_throw |=
                    !matches!(func.op(inst), Op::Intrinsic(_)) && (!effects.nothrow || effects.may_safepoint);
                let after = handlers.after(func, inst, inside);
                if after != inside || func.next_inst(inst).is_none() {
                    if let (Some(handler), true) = (inside.and_then(block_of), may_throw) {
                        self.protected[handler].push(block);
                    }
                    (inside, may_throw) = (after, false);
                }
            }
        }
    }

    fn find_doomed(&mut self, func: &Func, rpo: &Rpo, tree: &DomTree) {
        let mut returns: EntitySet<Block> = EntitySet::new();
        let mut work: Vec<Block> = Vec::new();
        for &block in rpo.blocks() {
            if func.terminator(block).is_some_and(|t| func.op(t) == Op::Return) {
                returns.insert(block);
                work.push(block);
            }
        }
        while let Some(block) = work.pop() {
            for pred in self.preds(block) {
                if returns.insert(pred) {
                    work.push(pred);
                }
            }
        }
        for &block in tree.preorder().iter().filter(|&&b| !returns.contains(b)) {
            let above = tree.idom(block).and_then(|d| self.top[d].expand());
            self.top[block] = above.unwrap_or(block).into();
        }
    }

    /// The predecessors of `block`, through jumps and exceptions.
    pub(crate) fn preds(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.cfg.preds(block).iter().chain(&self.protected[block]).copied()
    }

    /// The blocks in which handlers begin.
    pub(crate) fn handlers(&self) -> &[Block] {
        &self.handlers
    }

    /// Whether the function catches exceptions.
    pub(crate) fn catches(&self) -> bool {
        !self.handlers.is_empty()
    }

    /// The highest doomed dominator of a doomed block.
    pub(crate) fn doom(&self, block: Block) -> Option<Block> {
        self.top[block].expand()
    }
}
