//! Inserting instructions at a position.
//!
//! A cursor points to a gap between instructions. Inserting puts the new instruction into the gap and moves
//! the cursor after it, so a sequence of insertions keeps its order.
//!
//! ```text
//! Top(b)          before the first instruction of b         next_inst → At(first)
//! At(i)           before i                                  next_inst → At(the instruction after i)
//! After(i)        after i                                   next_inst → At(the instruction after i)
//! Bottom(b)       after the last instruction of b           next_inst → none
//! ```
//!
//! New instructions get the source place of the instruction that the cursor was last moved to, so that a pass
//! that replaces one statement by several keeps its line.
//!
//! ```
//! use brolga_ir::{Context, Func, Level, Type, cursor::Cursor, func::Signature, intrinsic::Intrinsic};
//!
//! let cx = Context::new();
//! let sig = Signature { results: vec![Type::I64], ..Signature::default() };
//! let mut func = Func::new(cx.names.intern("three"), Level::Low, sig);
//! let mut at = Cursor::new(&mut func);
//! let block = at.append_block();
//! let one = at.int(&cx.types, Type::I64, 1);
//! let two = at.int(&cx.types, Type::I64, 2);
//! let three = at.ins_value(brolga_ir::Op::Intrinsic(Intrinsic::AddInt), &[one, two], Type::I64);
//! at.ret(&[three]);
//! assert_eq!(func.block_insts(block).count(), 2);
//! ```

use crate::entity::{Block, Inst, Value};
use crate::func::{Func, Place};
use crate::op::Op;
use crate::types::{Type, Types};

/// A position between instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Nowhere: inserted instructions are not placed either.
    Nowhere,
    /// Before the first instruction of a block.
    Top(Block),
    /// Before an instruction.
    At(Inst),
    After(Inst),
    /// After the last instruction of a block.
    Bottom(Block),
}

/// A position in a function that is being changed.
#[derive(Debug)]
pub struct Cursor<'f> {
    pub func: &'f mut Func,
    position: Position,
    place: Place,
}

impl<'f> Cursor<'f> {
    /// A cursor without a position.
    pub fn new(func: &'f mut Func) -> Self {
        Cursor { func, position: Position::Nowhere, place: Place::default() }
    }

    // ----- position -----

    pub fn position(&self) -> Position {
        self.position
    }

    /// The block that contains the cursor.
    pub fn block(&self) -> Option<Block> {
        match self.position {
            Position::Nowhere => None,
            Position::Top(block) | Position::Bottom(block) => Some(block),
            Position::At(inst) | Position::After(inst) => self.func.inst_block(inst),
        }
    }

    /// The instruction that the cursor is before, if it was put there.
    pub fn inst(&self) -> Option<Inst> {
        match self.position {
            Position::At(inst) => Some(inst),
            _ => None,
        }
    }

    /// Moves before an instruction.
    pub fn before(&mut self, inst: Inst) -> &mut Self {
        self.position = Position::At(inst);
        self.place = self.func.place(inst);
        self
    }

    /// Moves after an instruction.
    pub fn after(&mut self, inst: Inst) -> &mut Self {
        self.position = Position::After(inst);
        self.place = self.func.place(inst);
        self
    }

    /// Moves before the first instruction of a block, φ included.
    pub fn at_top(&mut self, block: Block) -> &mut Self {
        self.position = Position::Top(block);
        self.place = self.func.first_inst(block).map_or(self.place, |i| self.func.place(i));
        self
    }

    /// Moves after the φ of a block: the first position for other instructions.
    pub fn at_first_insertion_point(&mut self, block: Block) -> &mut Self {
        match first_insertion_point(self.func, block) {
            Some(inst) => self.before(inst),
            None => self.at_bottom(block),
        }
    }

    /// Moves after the last instruction of a block: for a block that has no terminator yet.
    pub fn at_bottom(&mut self, block: Block) -> &mut Self {
        self.position = Position::Bottom(block);
        self.place = self.func.last_inst(block).map_or(self.place, |i| self.func.place(i));
        self
    }

    /// Moves before the terminator of a block, or to its bottom if it has none.
    pub fn before_terminator(&mut self, block: Block) -> &mut Self {
        match self.func.terminator(block) {
            Some(inst) => self.before(inst),
            None => self.at_bottom(block),
        }
    }

    /// Sets the source place of new instructions.
    pub fn with_place(&mut self, place: Place) -> &mut Self {
        self.place = place;
        self
    }

    /// Moves to the next instruction of the block and returns it; at the end of the block the cursor stays at
    /// its bottom.
    pub fn next_inst(&mut self) -> Option<Inst> {
        let next = match self.position {
            Position::Nowhere | Position::Bottom(_) => None,
            Position::Top(block) => self.func.first_inst(block),
            Position::At(inst) | Position::After(inst) => self.func.next_inst(inst),
        };
        match (next, self.block()) {
            (Some(inst), _) => {
                self.before(inst);
            }
            (None, Some(block)) => {
                self.at_bottom(block);
            }
            (None, None) => {}
        }
        next
    }

    /// Moves to the top of the next block in order and returns it; from nowhere, to the entry.
    pub fn next_block(&mut self) -> Option<Block> {
        let next = match self.block() {
            None => self.func.entry(),
            Some(block) => self.func.next_block(block),
        };
        if let Some(block) = next {
            self.at_top(block);
        }
        next
    }

    // ----- inserting -----

    /// Inserts an instruction without block operands.
    pub fn ins(&mut self, op: Op, args: &[Value], results: &[Type]) -> Inst {
        self.ins_with_blocks(op, args, &[], results)
    }

    /// Inserts an instruction with the targets of a terminator, or the blocks of a φ.
    pub fn ins_with_blocks(&mut self, op: Op, args: &[Value], blocks: &[Block], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, args, blocks, results);
        self.func.set_place(inst, self.place);
        self.place_inst(inst);
        inst
    }

    /// Inserts an existing instruction.
    pub fn place_inst(&mut self, inst: Inst) {
        match self.position {
            Position::Nowhere => {}
            Position::Top(block) => {
                self.func.prepend_inst(inst, block);
                self.position = Position::After(inst);
            }
            Position::At(next) => self.func.insert_before(inst, next),
            Position::After(prev) => {
                self.func.insert_after(inst, prev);
                self.position = Position::After(inst);
            }
            Position::Bottom(block) => self.func.append_inst(inst, block),
        }
    }

    /// Inserts an instruction with one result and returns the result.
    pub fn ins_value(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.ins(op, args, &[ty]);
        self.first_result(inst)
    }

    /// Inserts a φ without edges after the φ of the cursor's block; the cursor stays where it is.
    pub fn phi(&mut self, ty: Type) -> Value {
        let phi = self.func.make_inst(Op::Phi, &[], &[], &[ty]);
        self.func.set_place(phi, self.place);
        if let Some(block) = self.block() {
            let behind = self.func.block_insts(block).find(|&i| self.func.op(i) != Op::Phi);
            match behind {
                Some(inst) => self.func.insert_before(phi, inst),
                None => self.func.append_inst(phi, block),
            }
            if self.position == Position::Top(block) {
                self.position = Position::After(phi);
            }
        }
        self.first_result(phi)
    }

    fn first_result(&self, inst: Inst) -> Value {
        // Callers have just made the instruction with one result.
        self.func.result(inst).expect("an instruction made with one result has one")
    }

    /// An integer constant of a primitive or low type.
    pub fn int(&mut self, types: &Types, ty: Type, value: i128) -> Value {
        self.func.bits(types, ty, value as u128)
    }

    /// Inserts a jump.
    pub fn goto(&mut self, target: Block) -> Inst {
        self.ins_with_blocks(Op::Goto, &[], &[target], &[])
    }

    /// Inserts a branch: to `then` if `cond` is true, else to `other`.
    pub fn branch(&mut self, cond: Value, then: Block, other: Block) -> Inst {
        self.ins_with_blocks(Op::Branch, &[cond], &[then, other], &[])
    }

    /// Inserts a `return`.
    pub fn ret(&mut self, values: &[Value]) -> Inst {
        self.ins(Op::Return, values, &[])
    }

    /// Inserts an `unreachable`.
    pub fn unreachable(&mut self) -> Inst {
        self.ins(Op::Unreachable, &[], &[])
    }

    // ----- removing, blocks -----

    /// Removes the instruction at the cursor from its block and returns it; the cursor is then before the
    /// following one, with which [`next_inst`](Cursor::next_inst) continues.
    pub fn remove_inst(&mut self) -> Option<Inst> {
        let inst = self.inst()?;
        let block = self.func.inst_block(inst)?;
        self.position = match self.func.prev_inst(inst) {
            Some(prev) => Position::After(prev),
            None => Position::Top(block),
        };
        self.func.remove_inst(inst);
        Some(inst)
    }

    /// Appends a new block to the function and moves to its bottom.
    pub fn append_block(&mut self) -> Block {
        let block = self.func.make_block();
        self.func.append_block(block);
        self.at_bottom(block);
        block
    }

    /// Moves the instructions after the cursor into a new block that follows this one, and returns it; the
    /// cursor is at the bottom of the old block, which has lost its terminator. φ of the successors still
    /// name the old block.
    pub fn split_block(&mut self) -> Option<Block> {
        let block = self.block()?;
        let rest = match self.position {
            Position::At(inst) => Some(inst),
            Position::Top(_) => self.func.first_inst(block),
            Position::After(inst) => self.func.next_inst(inst),
            Position::Bottom(_) | Position::Nowhere => None,
        };
        let new = self.func.make_block();
        self.func.insert_block_after(new, block);
        if let Some(first) = rest {
            self.func.split_block(first, new);
        }
        self.position = Position::Bottom(block);
        Some(new)
    }
}

/// The first instruction of a block after its φ and φᶜ.
pub fn first_insertion_point(func: &Func, block: Block) -> Option<Inst> {
    func.block_insts(block).find(|&inst| !matches!(func.op(inst), Op::Phi | Op::PhiC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::{LineColumn, Signature};
    use crate::{Context, Level};

    fn empty() -> (std::sync::Arc<Context>, Func) {
        let cx = Context::new();
        let func = Func::new(cx.names.intern("f"), Level::Low, Signature::default());
        (cx, func)
    }

    fn copies(func: &Func, block: Block) -> Vec<u128> {
        func.block_insts(block).filter_map(|i| func.as_bits(*func.args(i).first()?)).collect()
    }

    #[test]
    fn insertions_come_out_in_order_at_every_position() {
        let (cx, mut func) = empty();
        let mut at = Cursor::new(&mut func);
        let block = at.append_block();
        let ins = |at: &mut Cursor<'_>, n| {
            let value = at.int(&cx.types, Type::I64, n);
            at.ins(Op::Copy, &[value], &[Type::I64])
        };
        let five = ins(&mut at, 5);
        ins(&mut at, 6);
        at.at_top(block);
        ins(&mut at, 1);
        ins(&mut at, 2);
        at.before(five);
        ins(&mut at, 3);
        ins(&mut at, 4);
        at.after(five);
        ins(&mut at, 50);
        ins(&mut at, 51);
        assert_eq!(copies(&func, block), [1, 2, 3, 4, 5, 50, 51, 6]);
    }

    #[test]
    fn walking_meets_every_instruction_once_while_removing() {
        let (cx, mut func) = empty();
        let mut at = Cursor::new(&mut func);
        for block in 0..3 {
            at.append_block();
            for n in 0..4 {
                let value = at.int(&cx.types, Type::I64, block * 10 + n);
                at.ins(Op::Copy, &[value], &[Type::I64]);
            }
        }
        let mut met = Vec::new();
        let mut at = Cursor::new(&mut func);
        while at.next_block().is_some() {
            while let Some(inst) = at.next_inst() {
                let bits = at.func.as_bits(at.func.args(inst)[0]).unwrap();
                met.push(bits);
                if bits.is_multiple_of(2) {
                    assert_eq!(at.remove_inst(), Some(inst));
                }
            }
        }
        assert_eq!(met, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        let left: Vec<u128> = func.blocks().flat_map(|b| copies(&func, b)).collect();
        assert_eq!(left, [1, 3, 11, 13, 21, 23]);
    }

    #[test]
    fn phi_go_behind_phi_and_places_are_inherited() {
        let (cx, mut func) = empty();
        let mut at = Cursor::new(&mut func);
        let block = at.append_block();
        let place = Place { start: 3, end: 9, at: LineColumn::new(7, 2), ..Place::default() };
        at.with_place(place);
        let ret = at.ret(&[]);
        at.before(ret);
        let first = at.phi(Type::I64);
        let one = at.int(&cx.types, Type::I64, 1);
        let copy = at.ins(Op::Copy, &[one], &[Type::I64]);
        let second = at.phi(Type::I64);
        let insts: Vec<Inst> = func.block_insts(block).collect();
        let def = |v| func.def_inst(v).unwrap();
        assert_eq!(insts, [def(first), def(second), copy, ret]);
        assert_eq!(first_insertion_point(&func, block), Some(copy));
        assert!(insts.iter().all(|&i| func.place(i) == place));
    }

    #[test]
    fn splitting_leaves_the_cursor_where_the_jump_goes() {
        let (cx, mut func) = empty();
        let mut at = Cursor::new(&mut func);
        let block = at.append_block();
        let one = at.int(&cx.types, Type::I64, 1);
        at.ins(Op::Copy, &[one], &[Type::I64]);
        let ret = at.ret(&[]);
        at.before(ret);
        let tail = at.split_block().unwrap();
        at.goto(tail);
        assert_eq!(func.successors(block), [tail]);
        assert_eq!(func.terminator(tail), Some(ret));
        assert_eq!(func.next_block(block), Some(tail));
    }
}
