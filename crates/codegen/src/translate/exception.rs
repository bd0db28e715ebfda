//! Handlers: `enter`, `leave`, and where an exception continues.
//!
//! A function with handlers has one record (`thread.rs`). It is linked while any handler of the function is in force; the place of the
//! throw determines which one, so the record's landing pad is stored before each call and not by
//! `enter`.
//!
//! ```text
//!                   outermost enter         inner enter        leave of the outermost, return
//!   record          link                    –                  unlink
//!
//!   throws inside          how it arrives                record then             next
//!   ────────────────────   ───────────────────────────   ─────────────────────   ────────────────
//!   compiled callee        try_call ──► landing block    taken out by the jump   relink¹, handler
//!   routine, check, poll   branch   ──► local block      still linked            unlink², handler
//!
//!   ¹ if a handler of this function is in force around this one    ² if none is
//! ```
//!
//! A routine of the run time never unwinds by itself here: it leaves the exception in the thread and returns a status, and the code
//! branches. Each handler has at most one landing and one local block; both are cold, and pass the same values to the handler's φ as the
//! edge from `enter`.
//!
//! Cost: an outermost `enter` stores four words and keeps a fifth, its `leave` one, a call inside one. In a function that enters in a loop three of
//! them are stored once, at its start: one of the three is the word that `leave` restores, which would otherwise go through memory from
//! one iteration to the next.

use brolga_ir::{Block, Inst, RuntimeFn};
use cranelift_codegen::ir::{self as clif, InstBuilder};
use cranelift_entity::packed_option::PackedOption;

use super::{Done, TranslateError, Translation};
use crate::thread::{self, Handler};

/// The blocks through which exceptions arrive at one handler.
#[derive(Clone, Copy, Default)]
pub(super) struct Pads {
    landing: PackedOption<clif::Block>,
    local: PackedOption<clif::Block>,
}

/// The innermost handler in force.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    pub(super) enter: Inst,
    pub(super) record: Handler,
}

impl Translation<'_> {
    pub(super) fn enter(&mut self, block: Block, inst: Inst) -> Done {
        let &[body, _] = self.func.inst_blocks(inst) else { return self.bad(inst) };
        if self.handlers.outer(inst).is_none() {
            let thread = self.thread();
            let record = self.record();
            record.link(&mut self.b, thread);
        }
        let args = self.edge(block, body)?;
        let body = self.block(body)?;
        self.b.ins().jump(body, &args);
        Ok(())
    }

    /// At the start of the function: stores what all records of a loop have in common.
    pub(super) fn fill_record(&mut self) {
        let Some(loops) = &self.loops else { return };
        let is_in_loop = |enter: Inst| self.func.inst_block(enter).is_some_and(|at| loops.depth_of(at) > 0);
        let links_in_loop = |enter| self.handlers.outer(enter).is_none() && is_in_loop(enter);
        if self.handlers.enters().iter().any(|&enter| links_in_loop(enter)) {
            let (thread, mut record) = (self.thread(), self.record());
            record.fill(&mut self.b, thread);
            self.record = Some(record);
        }
    }

    /// The depth that `pop_exception` in the handler restores.
    pub(super) fn exception_depth(&mut self, inst: Inst) -> Done {
        let thread = self.thread();
        let depth = thread::exception_depth(&mut self.b, thread);
        self.define(inst, &[depth])
    }

    /// The check after a call of C for an exception that waits for its return. A waiting one is among the thread's
    /// exceptions, so the routine is only called if there are any.
    pub(super) fn carried_exception(&mut self, inst: Inst) -> Done {
        if self.is_answered(inst) {
            return Ok(());
        }
        let answer = self.func.results(inst).next();
        if answer.is_some_and(|value| self.is_used(value)) {
            return self.call_runtime(inst, RuntimeFn::CarriedException);
        }
        self.ask_for_carried(inst)
    }

    /// The same for a check whose answer is not used. Code continues in a new block.
    pub(super) fn ask_for_carried(&mut self, inst: Inst) -> Done {
        let thread = self.thread();
        let depth = thread::exception_depth(&mut self.b, thread);
        let (ask, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(ask);
        self.b.ins().brif(depth, ask, &[], go_on, &[]);
        self.b.switch_to_block(ask);
        self.runtime_values(inst, RuntimeFn::CarriedException)?;
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        Ok(())
    }

    pub(super) fn leave(&mut self, inst: Inst) -> Done {
        let inside = self.handlers.after(self.func, inst, self.inside);
        if inside.is_none() {
            self.leave_all();
        }
        self.inside = inside;
        Ok(())
    }

    /// Unlinks the record if any handler is in force.
    pub(super) fn leave_all(&mut self) {
        if let Some(Inside { record, .. }) = self.inside() {
            let thread = self.thread();
            record.unlink(&mut self.b, thread);
        }
    }

    pub(super) fn inside(&mut self) -> Option<Inside> {
        self.inside.map(|enter| Inside { enter, record: self.record() })
    }

    /// The block where an exception from a compiled callee arrives.
    pub(super) fn landing(&mut self, enter: Inst) -> clif::Block {
        let made = self.pads[enter].landing.expand().unwrap_or_else(|| self.cold_block());
        self.pads[enter].landing = made.into();
        made
    }

    /// The block to branch to when an exception is pending.
    pub(super) fn pending(&mut self) -> clif::Block {
        let Some(enter) = self.inside else {
            let made = self.unwind.unwrap_or_else(|| self.cold_block());
            self.unwind = Some(made);
            return made;
        };
        let made = self.pads[enter].local.expand().unwrap_or_else(|| self.cold_block());
        self.pads[enter].local = made.into();
        made
    }

    /// The block that continues at the handler of a caller.
    pub(super) fn unwind_block(&mut self) {
        if let Some(block) = self.unwind {
            self.b.switch_to_block(block);
            self.unwind_here();
            self.trap();
        }
    }

    /// The landing and local blocks of all handlers.
    pub(super) fn pad_blocks(&mut self) -> Done {
        for number in 0..self.handlers.enters().len() {
            let enter = self.handlers.enters()[number];
            let Pads { landing, local } = self.pads[enter];
            let has_outer = self.handlers.outer(enter).is_some();
            for (pad, relinks, unlinks) in [(landing, has_outer, false), (local, false, !has_outer)] {
                let Some(pad) = pad.expand() else { continue };
                self.b.switch_to_block(pad);
                self.consts.clear();
                let (thread, record) = (self.thread(), self.record());
                if relinks {
                    record.relink(&mut self.b, thread);
                }
                if unlinks {
                    record.unlink(&mut self.b, thread);
                }
                self.jump_to_handler(enter)?;
            }
        }
        Ok(())
    }

    fn jump_to_handler(&mut self, enter: Inst) -> Done {
        let &[_, handler] = self.func.inst_blocks(enter) else { return self.bad(enter) };
        let Some(from) = self.func.inst_block(enter) else {
            return Err(TranslateError::Unterminated { name: self.name.clone() });
        };
        let args = self.edge(from, handler)?;
        let handler = self.block(handler)?;
        self.b.ins().jump(handler, &args);
        Ok(())
    }

    fn record(&mut self) -> Handler {
        *self.record.get_or_insert_with(|| Handler::new(&mut self.b))
    }

    pub(super) fn cold_block(&mut self) -> clif::Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }
}
