//! Conditions, loops and handlers without explicit blocks: each makes its blocks, seals them, and continues
//! after itself.
//!
//! ```
//! use brolga_ir::{Context, Type, build::{BuildError, Builder}, intrinsic::Intrinsic};
//!
//! /// `t = 0; i = n; while 0 < i; try t += parse(i) catch; t -= 1 end; i -= 1 end; t`
//! fn total(cx: &Context) -> Result<brolga_ir::Func, BuildError> {
//!     let mut b = Builder::high(cx, "total", &[("n", Type::INT64)], Type::INT64);
//!     let (t, i) = (b.declare_var(Type::INT64), b.declare_var(Type::INT64));
//!     let (n, zero, one) = (b.param(0)?, b.int(Type::INT64, 0)?, b.int(Type::INT64, 1)?);
//!     b.def_var(t, zero)?;
//!     b.def_var(i, n)?;
//!     b.while_loop(
//!         |b| {
//!             let at = b.use_var(i)?;
//!             b.intrinsic(Intrinsic::SltInt, &[zero, at])
//!         },
//!         |b| {
//!             b.try_catch(
//!                 |b| {
//!                     let at = b.use_var(i)?;
//!                     let part = b.invoke("parse", &[at], Type::INT64)?;
//!                     let sum = b.use_var(t)?;
//!                     let sum = b.intrinsic(Intrinsic::AddInt, &[sum, part])?;
//!                     b.def_var(t, sum)
//!                 },
//!                 |b, _exception| {
//!                     let sum = b.use_var(t)?;
//!                     let sum = b.intrinsic(Intrinsic::SubInt, &[sum, one])?;
//!                     b.def_var(t, sum)
//!                 },
//!             )?;
//!             let at = b.use_var(i)?;
//!             let at = b.intrinsic(Intrinsic::SubInt, &[at, one])?;
//!             b.def_var(i, at)
//!         },
//!     )?;
//!     let sum = b.use_var(t)?;
//!     b.ret(&[sum])?;
//!     b.finish()
//! }
//!
//! assert!(total(&Context::new()).is_ok());
//! ```
//!
//! A body may end its block itself, by [`Builder::ret`] or a jump. If no body reaches its end, nothing can be
//! added after the shape.

use super::{BuildError, Builder};
use crate::entity::{Block, Value};
use crate::op::{Level, Op};
use crate::types::Type;

impl Builder<'_> {
    /// Runs the body if the condition is true.
    pub fn if_then(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Self) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        self.if_else(cond, then, |_| Ok(()))
    }

    /// Runs one body or the other.
    pub fn if_else(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Self) -> Result<(), BuildError>,
        other: impl FnOnce(&mut Self) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let (then_block, other_block, done) = (self.create_block(), self.create_block(), self.create_block());
        self.branch(cond, then_block, other_block)?;
        self.begin(then_block)?;
        then(self)?;
        let mut is_reached = self.goto_unless_ended(done)?;
        self.begin(other_block)?;
        other(self)?;
        is_reached |= self.goto_unless_ended(done)?;
        self.continue_at(done, is_reached)
    }

    /// Repeats the body while the condition, which is computed before each iteration, is true.
    pub fn while_loop(
        &mut self,
        cond: impl FnOnce(&mut Self) -> Result<Value, BuildError>,
        body: impl FnOnce(&mut Self) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let (head, inside, done) = (self.create_block(), self.create_block(), self.create_block());
        self.goto(head)?;
        self.switch_to_block(head)?;
        let cond = cond(self)?;
        self.branch(cond, inside, done)?;
        self.begin(inside)?;
        body(self)?;
        self.goto_unless_ended(head)?;
        self.seal_block(head)?;
        self.begin(done)
    }

    /// Runs the body; if it throws, control continues in the handler, which receives the exception. In the
    /// handler, variables have their last assigned values.
    pub fn try_catch(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), BuildError>,
        handler: impl FnOnce(&mut Self, Value) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if self.func.level == Level::Low {
            return Err(BuildError::NeedsResultType("a handler of low IR"));
        }
        let (inside, caught, done) = (self.create_block(), self.create_block(), self.create_block());
        let token = self.enter(inside, caught)?;
        self.begin(inside)?;
        body(self)?;
        let mut is_reached = !self.has_ended();
        if is_reached {
            self.leave(&[token])?;
            self.goto(done)?;
        }
        self.begin(caught)?;
        let exception = self.value(Op::TheException, &[], Type::ANY)?;
        handler(self, exception)?;
        if !self.has_ended() {
            self.statement(Op::PopException, &[token], &[])?;
            self.goto(done)?;
            is_reached = true;
        }
        self.continue_at(done, is_reached)
    }

    /// Continues in a block to which all jumps are known.
    fn begin(&mut self, block: Block) -> Result<(), BuildError> {
        self.seal_block(block)?;
        self.switch_to_block(block)
    }

    /// Jumps to the target unless the block has ended; returns whether it jumped.
    fn goto_unless_ended(&mut self, target: Block) -> Result<bool, BuildError> {
        if self.has_ended() {
            return Ok(false);
        }
        self.goto(target).map(|()| true)
    }

    fn continue_at(&mut self, done: Block, is_reached: bool) -> Result<(), BuildError> {
        self.begin(done)?;
        if !is_reached {
            self.unreachable()?;
        }
        Ok(())
    }
}
