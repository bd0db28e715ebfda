//! Inlining hints in a text.
//!
//! ```text
//! function f(x::Int64)::Int64 noinline            after a signature
//! 1 ─      $(Expr(:meta, :noinline))              the same, as Julia prints it in unoptimised code
//! 3 ─      $(Expr(:meta, :noinline))              and in optimised code: in an unreachable block after the last `return`
//! │   %1 = invoke g(x::Int64)::Int64 inline       after a call
//! ```
//!
//! The last `meta` wins, as in Julia; a signature takes precedence. A hint after a statement that does not
//! call a function of the program is a fault: its author expects an effect.

use super::super::ast::{ExprKind, Function, Row, Signature};
use super::Resolver;
use super::body::Body;
use super::error::ResolveError;
use super::spelling::meta;
use crate::entity::Inst;
use crate::hints::Inlining;
use crate::op::{Level, Op};

impl<'a> Resolver<'a> {
    /// The inlining hint of a function to its callers.
    pub(super) fn inlining(
        &mut self,
        signature: &Signature<'a>,
        function: &Function<'a>,
    ) -> Option<Inlining> {
        let low = function.level == Level::Low;
        if let Some((inlining, at)) = signature.inlining.filter(|_| low) {
            let why = "functions of low IR are not inlined";
            return self.fail(ResolveError::StrayHint { word: inlining.word(), why }, at);
        }
        let rows = function.blocks.iter().flat_map(|block| &block.rows);
        let asked = rows.filter_map(|row| meta(&row.stmt)).flatten().filter_map(|item| match &item.kind {
            ExprKind::Symbol(word) => Inlining::from_word(word),
            _ => None,
        });
        signature.inlining.map(|(inlining, _)| inlining).or(asked.last()).filter(|_| !low)
    }
}

impl<'a> Body<'_, 'a> {
    /// Sets a call's hint from its row.
    pub(super) fn call_hint(&mut self, inst: Inst, row: &Row<'a>) -> Option<()> {
        let Some((inlining, at)) = row.inlining else { return Some(()) };
        if !matches!(self.func.op(inst), Op::Call | Op::Invoke(_)) {
            let why = "the statement calls no function whose body could take its place";
            return self.r.fail(ResolveError::StrayHint { word: inlining.word(), why }, at);
        }
        self.func.set_call_inlining(inst, Some(inlining));
        Some(())
    }
}
