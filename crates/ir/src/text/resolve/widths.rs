//! The types of decimal integers where the type of a row is ambiguous.
//!
//! Julia prints integers of all widths alike; the row's type determines theirs. In two kinds of row it does
//! not:
//!
//! ```text
//! %76 = φ (#31 => true, #32 => false)::Bool               true where %77 is an Int8
//! %77 = φ (#31 => 7, #32 => %75)::Union{Int64, Int8}      %75 is an Int64, so 7 is the Int8 of the union
//! %79 = φ (#29 => 11, #33 => %77)::Union{Int64, Int8}     its flag is true on #29, as for 7: 11 is an Int8
//!
//! memoryrefset!(%1, 5, …)::Core.Const(5)                  the element's type
//! ```
//!
//! A φ of several widths has the types of its operands, so a literal has the one that no other operand has.
//! Where each is taken, the associated `Bool` φ of the block decides: Julia splits a value of a union into
//! the value and a flag.

use super::super::ast::{Expr, ExprKind, Literal, Row};
use super::super::wanted::signed_members;
use super::body::Body;
use super::last_name;
use super::spelling::is_plain;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::{Block, Inst, Value};
use crate::op::Op;
use crate::types::Type;

impl<'a> Body<'_, 'a> {
    /// Assigns types to the decimal integers among the operands of a φ, see the file's header.
    pub(super) fn width_of_literals(
        &mut self,
        phi: Inst,
        exprs: &[&Expr<'a>],
        values: &mut [Value],
        blocks: &[Block],
    ) -> Option<()> {
        let Some(result) = self.func.result(phi) else { return Some(()) };
        let members = signed_members(&self.r.cx.types, self.func.ty(result));
        if members.len() < 2 || !exprs.iter().any(|expr| is_plain(expr)) {
            return Some(());
        }
        let types = &self.r.cx.types;
        let taken: Vec<Type> = exprs
            .iter()
            .zip(&*values)
            .filter(|(expr, _)| !is_plain(expr))
            .flat_map(|(_, &value)| types.members(&self.func.ty(value)).to_vec())
            .collect();
        let free: Vec<Type> = members.iter().copied().filter(|member| !taken.contains(member)).collect();
        for (n, expr) in exprs.iter().enumerate().filter(|(_, expr)| is_plain(expr)) {
            let wanted = match free[..] {
                [only] => Some(only),
                _ => self.width_by_flag(phi, blocks[n], values, blocks, &members),
            };
            if let Some(wanted) = wanted {
                values[n] = self.constant(expr, Some(wanted))?;
            }
        }
        Some(())
    }

    /// The constant flag of an edge, from the first `Bool` φ in the block of a φ.
    fn flag(&self, phi: Inst, from: Block) -> Option<Flag> {
        let block = self.func.inst_block(phi)?;
        let is_flag = |&inst: &Inst| {
            self.func.op(inst) == Op::Phi
                && self.func.result(inst).map(|v| self.func.ty(v)) == Some(Type::BOOL)
        };
        let flags = self.func.block_insts(block).find(is_flag)?;
        let (_, value) = self.func.phi_edges(flags).find(|&(block, _)| block == from)?;
        match self.func.as_const(value) {
            Some(Const::Bits { bits, .. }) => Some(Flag::Is(*bits != 0)),
            Some(_) => None,
            None => self.func.def_inst(value).map(Flag::Of),
        }
    }

    /// The type associated with the flag of an edge, if another edge determines it.
    fn width_by_flag(
        &self,
        phi: Inst,
        from: Block,
        values: &[Value],
        blocks: &[Block],
        members: &[Type],
    ) -> Option<Type> {
        let &[first, second] = members else { return None };
        let Some(Flag::Is(wanted)) = self.flag(phi, from) else { return None };
        for (&block, &value) in blocks.iter().zip(values).filter(|&(&block, _)| block != from) {
            // A pair of φ in another block determines what its flag means.
            let Some(Flag::Of(flags)) = self.flag(phi, block) else { continue };
            let Some(inner) = self.func.def_inst(value).filter(|&inst| self.func.op(inst) == Op::Phi) else {
                continue;
            };
            for (edge, operand) in self.func.phi_edges(inner) {
                let flag = self.func.phi_edges(flags).find(|&(from, _)| from == edge);
                let flag = flag.and_then(|(_, flag)| self.func.as_bits(flag)).map(|bits| bits != 0);
                let ty = self.func.ty(operand);
                match flag {
                    Some(flag) if members.contains(&ty) => {
                        let other = if ty == first { second } else { first };
                        return Some(if flag == wanted { ty } else { other });
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// The type of a row annotated `Core.Const(5)`, from what its operation writes or reads.
    pub(super) fn width_of_result(&mut self, inst: Inst, row: &Row<'a>) {
        let is_const = matches!(row.ty.as_ref().map(|ty| &ty.kind), Some(ExprKind::Call(callee, args))
            if matches!(&callee.kind, ExprKind::Path(parts) if last_name(parts) == "Const")
                && matches!(args.first().map(|arg| &arg.kind), Some(ExprKind::Literal(Literal::Int { .. }))));
        let Some(result) = self.func.result(inst).filter(|_| is_const) else { return };
        let args = self.func.args(inst);
        let written = match self.func.op(inst) {
            Op::Builtin(Builtin::Memoryrefset) => args.get(1),
            Op::Builtin(Builtin::Setfield | Builtin::Arrayset) => args.get(2),
            _ => None,
        };
        if let Some(&written) = written
            && !signed_members(&self.r.cx.types, self.func.ty(written)).is_empty()
        {
            self.func.set_result_type(result, self.func.ty(written));
        }
    }
}

/// The value of a flag on an edge.
enum Flag {
    Is(bool),
    /// The value of another pair's φ.
    Of(Inst),
}
