//! Branches, and their arguments for the parameters of blocks.
//!
//! A parameter is in its word when its block begins. The arguments of an edge are a parallel move: if an argument is itself a
//! parameter of the same block and only in its word, that word may be written before it is read. Such values are passed over
//! the stack. Passing arguments changes neither the flags nor the known places, so both successors of a block see the same
//! state.

use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Inst, Value, ValueDef};

use super::asm::{Cond, Label, Mem, Width};
use super::call::scratch;
use super::float::Truth;
use super::places::{self, Reg};
use super::{Emitter, Step, Unsupported, width};

impl Emitter<'_> {
    /// Jumps, unless the code of the target follows.
    pub(super) fn go_to(&mut self, block: Block, next: Option<Block>) {
        if next != Some(block) {
            self.asm.jmp(self.blocks[block.as_u32() as usize]);
        }
    }

    pub(super) fn jump(&mut self, way: &BlockCall, next: Option<Block>) -> Step {
        let passed = self.passed(way);
        self.pass_on(&passed, &[])?;
        self.go_to(way.block(&self.func.dfg.value_lists), next);
        Ok(())
    }

    pub(super) fn branch(&mut self, arg: Value, [yes, no]: &[BlockCall; 2], next: Option<Block>) -> Step {
        let truth = self.truth(arg)?;
        let lists = &self.func.dfg.value_lists;
        let (yes_block, no_block) = (yes.block(lists), no.block(lists));
        let (yes, no) = (self.passed(yes), self.passed(no));
        let target = |t: &Self, block: Block| t.blocks[block.as_u32() as usize];
        match (yes.is_empty(), no.is_empty()) {
            (true, true) if next == Some(yes_block) => self.jump_unless(truth, target(self, no_block)),
            (true, _) => {
                self.jump_if(truth, target(self, yes_block));
                self.pass_on(&no, &[])?;
                self.go_to(no_block, next);
            }
            (false, true) => {
                self.jump_unless(truth, target(self, no_block));
                self.pass_on(&yes, &[])?;
                self.go_to(yes_block, next);
            }
            (false, false) => {
                let other = self.asm.label();
                self.jump_unless(truth, other);
                self.pass_on(&yes, &[])?;
                self.asm.jmp(target(self, yes_block));
                self.asm.bind(other);
                self.pass_on(&no, &[])?;
                self.go_to(no_block, next);
            }
        }
        Ok(())
    }

    /// When the branch is taken.
    fn truth(&mut self, arg: Value) -> Step<Truth> {
        if let Some(comparison) = self.fused.take() {
            let truth = self.flags(comparison)?;
            self.places.unlock();
            self.release_operands(comparison);
            return Ok(truth);
        }
        let width = width(self.ty(arg))?;
        let value = self.gpr(arg)?;
        self.asm.test(width, value, value);
        Ok(Truth::One(Cond::Ne))
    }

    fn jump_if(&mut self, truth: Truth, to: Label) {
        match truth {
            Truth::One(cond) => self.asm.jcc(cond, to),
            Truth::Either(first, second) => {
                self.asm.jcc(first, to);
                self.asm.jcc(second, to);
            }
            Truth::Both(first, second) => {
                let not = self.asm.label();
                self.asm.jcc(first.opposite(), not);
                self.asm.jcc(second, to);
                self.asm.bind(not);
            }
        }
    }

    fn jump_unless(&mut self, truth: Truth, to: Label) {
        let opposite = match truth {
            Truth::One(cond) => Truth::One(cond.opposite()),
            Truth::Either(first, second) => Truth::Both(first.opposite(), second.opposite()),
            Truth::Both(first, second) => Truth::Either(first.opposite(), second.opposite()),
        };
        self.jump_if(opposite, to);
    }

    /// The arguments of an edge for parameters that are used and differ from the value itself.
    pub(super) fn passed(&self, way: &BlockCall) -> Vec<Passed> {
        let dfg = &self.func.dfg;
        let to = way.block(&dfg.value_lists);
        let all = way.args(&dfg.value_lists).zip(dfg.block_params(to));
        let wanted = all.filter(|&(arg, &param)| self.places.is_used(param) && arg != BlockArg::Value(param));
        let is_late = |arg| match arg {
            BlockArg::Value(value) => {
                let is_param = matches!(dfg.value_def(value), ValueDef::Param(block, _) if block == to);
                is_param && self.places.register_of(value).is_none()
            }
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => false,
        };
        wanted.map(|(arg, &param)| Passed { arg, param, is_late: is_late(arg) }).collect()
    }

    /// Stores the arguments of an edge. `given` are the results of the call that ends the block.
    pub(super) fn pass_on(&mut self, passed: &[Passed], given: &[Reg]) -> Step {
        let mut pushed = 0;
        for &Passed { arg, .. } in passed.iter().filter(|passed| passed.is_late) {
            let BlockArg::Value(value) = arg else { return Err(Unsupported) };
            let from = self.places.home(value);
            self.asm.push_mem(from);
            pushed += 8;
        }
        self.places.push(pushed);
        for &Passed { arg, param, .. } in passed.iter().filter(|passed| !passed.is_late) {
            let home = self.places.home(param);
            match arg {
                BlockArg::Value(value) => self.store_value(home, value)?,
                BlockArg::TryCallRet(n) => {
                    let reg = given.get(n as usize).copied().ok_or(Unsupported)?;
                    places::store(self.asm, home, reg);
                }
                BlockArg::TryCallExn(_) => return Err(Unsupported),
            }
        }
        for &Passed { param, .. } in passed.iter().rev().filter(|passed| passed.is_late) {
            let home = self.places.home(param);
            self.asm.pop_mem(home);
        }
        Ok(())
    }

    fn store_value(&mut self, to: Mem, value: Value) -> Step {
        if let Some(reg) = self.places.register_of(value) {
            places::store(self.asm, to, reg);
            return Ok(());
        }
        if let Some(imm) = self.places.constant(self.func, value)
            && let Ok(imm) = i32::try_from(imm)
        {
            self.asm.store_imm(to, imm, Width::B64);
            return Ok(());
        }
        let scratch = scratch(self.ty(value));
        self.places.fetch(self.asm, self.func, value, scratch)?;
        places::store(self.asm, to, scratch);
        Ok(())
    }

    /// Counts down the uses of an instruction's operands.
    pub(super) fn release_operands(&mut self, inst: Inst) {
        for value in self.func.dfg.inst_values(inst) {
            self.places.release(value);
        }
    }
}

/// An argument for a parameter of a block.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    arg: BlockArg,
    param: Value,
    /// Whether it is read before any parameter is written.
    is_late: bool,
}
