//! Splatting calls of tuples whose elements are known.
//!
//! ```text
//! %2 = _apply_iterate(iterate, f, t, (x,))        %1 = getfield(t, 1)      t::Tuple{Int64, String}
//!                                           ==>   %2 = getfield(t, 2)
//!                                                 %3 = call f(%1, %2, x)
//! ```
//!
//! The first operand is not called for tuples, so it does not matter. A tuple's type tells how many elements there are, even where it leaves their types open.
//! What the call reaches is then decided like any other call; objects that the program makes only to splat them lose their uses.
//!
//! Not done: unions of tuples of several types, constant vectors.

use crate::pass::PassCx;
use brolga_ir::builtin::Builtin;
use brolga_ir::{Func, Inst, Op, Type, TypeKind, Value};

/// Calls with more arguments stay: each element is an instruction.
const MAX_ELEMENTS: usize = 16;

/// Replaces splatting calls by calls with the elements. `false` without fuel.
pub(super) fn splatted(func: &mut Func, cx: &mut PassCx<'_>) -> bool {
    let is_splat = |func: &Func, inst| func.op(inst) == Op::Builtin(Builtin::ApplyIterate);
    let insts = func.blocks().flat_map(|b| func.block_insts(b));
    let splats: Vec<Inst> = insts.filter(|&inst| is_splat(func, inst)).collect();
    for inst in splats {
        let Some(elements) = elements(func, cx, inst) else { continue };
        if !cx.spend("splats") {
            return false;
        }
        let place = func.place(inst);
        let mut operands: Vec<Value> = func.args(inst)[1..2].to_vec();
        for (tuple, index, ty) in elements {
            let position = func.bits(cx.types(), Type::INT64, index as u128 + 1);
            let read = func.make_inst(Op::Builtin(Builtin::Getfield), &[tuple, position], &[], &[ty]);
            func.set_place(read, place);
            func.insert_before(read, inst);
            operands.extend(func.result(read));
        }
        func.set_op(inst, Op::Call, &operands);
    }
    true
}

/// The tuples' elements with their positions and types, if all containers are tuples with few of them.
fn elements(func: &Func, cx: &PassCx<'_>, inst: Inst) -> Option<Vec<(Value, usize, Type)>> {
    let types = cx.types();
    let containers = func.args(inst).get(2..)?;
    let mut found = Vec::new();
    for &container in containers {
        let TypeKind::Tuple { elems, vararg: None } = types.kind(func.ty(container)) else { return None };
        found.extend(elems.iter().enumerate().map(|(index, &ty)| (container, index, ty)));
    }
    (found.len() <= MAX_ELEMENTS).then_some(found)
}
