//! Exceptions: handlers nest, and each path through a block finds the same handlers in force.
//!
//! The handlers in force form a stack. `enter` pushes one and its handler runs without it, because throwing
//! removes it; `leave` pops. The stack at the head of a block must not depend on the path, so that code
//! generation can determine it.
//!
//! Stacks share their tails: a stack is a node with the innermost `enter` and the rest, and equal stacks are
//! the same node. Hence a join is compared in constant time at any depth of nesting.

use super::Checker;
use crate::analysis::Rpo;
use crate::entity::{Block, Inst};
use crate::op::Op;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;

/// Rules about handlers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExceptionRule {
    /// `exception-join`: two edges into a block differ in the handlers in force.
    Join {
        /// The source of one edge.
        first: Block,
        /// The number of handlers in force there.
        first_depth: u32,
        /// The source of the other edge.
        second: Block,
        /// The number of handlers in force there.
        second_depth: u32,
    },
    /// `exception-leave`: a `leave` names a handler that is not the innermost one.
    Leave {
        /// The operand's number, from 0.
        operand: usize,
        /// The `enter` of the innermost handler, if one is in force.
        innermost: Option<Inst>,
    },
    /// `exception-token`: the operand is not an `enter`.
    NotEnter {
        /// The operand's number, from 0.
        operand: usize,
    },
    /// `exception-return`: the function ends while a handler is in force.
    ReturnInside {
        /// The `enter` of the innermost handler.
        innermost: Inst,
    },
    /// `exception-pop`: a `pop_exception` outside the handler of its `enter`.
    PopOutside {
        /// The `enter`.
        enter: Inst,
    },
    /// `exception-none`: `the_exception` where no exception is being handled.
    NoException,
}

/// The index of a stack of handlers.
type Stack = u32;
const EMPTY: Stack = 0;

struct Node {
    enter: Inst,
    below: Stack,
    depth: u32,
}

/// All stacks that occur; equal ones have equal indices.
#[derive(Default)]
struct Stacks {
    nodes: Vec<Node>,
    numbers: FxHashMap<(Inst, Stack), Stack>,
}

impl Stacks {
    fn push(&mut self, enter: Inst, below: Stack) -> Stack {
        let depth = self.depth(below) + 1;
        let nodes = &mut self.nodes;
        *self.numbers.entry((enter, below)).or_insert_with(|| {
            nodes.push(Node { enter, below, depth });
            nodes.len() as Stack
        })
    }

    fn top(&self, stack: Stack) -> Option<&Node> {
        self.nodes.get((stack as usize).checked_sub(1)?)
    }

    fn depth(&self, stack: Stack) -> u32 {
        self.top(stack).map_or(0, |n| n.depth)
    }
}

impl Checker<'_> {
    pub(super) fn exceptions(&mut self) {
        let func = self.func;
        let rpo = Rpo::compute(&self.cfg);
        let handlers = self.handlers();
        self.handled(&handlers);
        let mut stacks = Stacks::default();
        // By block: the stack at its head and the block that it came from.
        let mut heads: Vec<Option<(Stack, Block)>> = vec![None; func.block_count()];
        for &block in rpo.blocks() {
            // In reverse postorder some predecessor of a block is visited before it.
            let mut stack = heads[block.index()].map_or(EMPTY, |(stack, _)| stack);
            for inst in func.block_insts(block) {
                match func.op(inst) {
                    Op::Leave => stack = self.leave(inst, stack, &stacks),
                    Op::Return => {
                        if let Some(top) = stacks.top(stack) {
                            self.at(inst, ExceptionRule::ReturnInside { innermost: top.enter });
                        }
                    }
                    _ => {}
                }
            }
            let end = func.terminator(block).filter(|&e| func.op(e) == Op::Enter);
            for (n, &target) in self.cfg.succs(block).to_vec().iter().enumerate() {
                let out = match end {
                    Some(enter) if n == 0 => stacks.push(enter, stack),
                    _ => stack,
                };
                match heads[target.index()] {
                    None => heads[target.index()] = Some((out, block)),
                    Some((known, _)) if known == out => {}
                    Some((known, first)) => {
                        let rule = ExceptionRule::Join {
                            first,
                            first_depth: stacks.depth(known),
                            second: block,
                            second_depth: stacks.depth(out),
                        };
                        self.report(super::Site::Block(target), rule);
                    }
                }
            }
        }
    }

    fn leave(&mut self, inst: Inst, mut stack: Stack, stacks: &Stacks) -> Stack {
        for operand in 0..self.func.args(inst).len() {
            let Some(enter) = self.enter_operand(inst, operand) else { continue };
            match stacks.top(stack) {
                Some(top) if top.enter == enter => stack = top.below,
                top => {
                    let innermost = top.map(|t| t.enter);
                    self.at(inst, ExceptionRule::Leave { operand, innermost });
                    return stack;
                }
            }
        }
        stack
    }

    /// The `enter` that made an operand.
    fn enter_operand(&mut self, inst: Inst, operand: usize) -> Option<Inst> {
        let def = self.arg(inst, operand).and_then(|v| self.func.def_inst(v));
        let enter = def.filter(|&d| self.func.op(d) == Op::Enter);
        if enter.is_none() {
            self.at(inst, ExceptionRule::NotEnter { operand });
        }
        enter
    }

    /// Checks that statements about the handled exception are inside a handler.
    fn handled(&mut self, handlers: &SecondaryMap<Block, Option<Inst>>) {
        let func = self.func;
        // In preorder of the tree: whether a handler dominates the block.
        let mut inside = SecondaryMap::<Block, bool>::new();
        for block in self.tree.preorder().to_vec() {
            let above = self.tree.idom(block).is_some_and(|d| inside[d]);
            inside[block] = above || handlers[block].is_some();
            for inst in func.block_insts(block) {
                match func.op(inst) {
                    Op::TheException if !inside[block] => self.at(inst, ExceptionRule::NoException),
                    Op::PopException => {
                        if let Some(enter) = self.enter_operand(inst, 0) {
                            let handler = func.inst_blocks(enter).get(1).copied();
                            if !handler.is_some_and(|h| self.tree.dominates(h, block)) {
                                self.at(inst, ExceptionRule::PopOutside { enter });
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
