//! Decides whether `%new` of an array is certain to have as many elements as its size claims.
//!
//! ```text
//! %1 = memorynew(Memory{T}, n)    %2 = memoryrefnew(%1)    %3 = tuple(n)    %new(Vector{T}, %2, %3)
//! ```
//!
//! Otherwise a checked program tests it at run time.

use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::{Inst, Value};
use crate::func::Func;
use crate::op::Op;
use crate::types::Types;

/// Whether a new array uses a fresh `Memory` of exactly its length, or is empty.
pub fn has_room(types: &Types, func: &Func, inst: Inst) -> bool {
    let &[reference, size] = func.args(inst) else { return false };
    let builtin = |value: Value, wanted: Builtin| {
        let inst = func.def_inst(value)?;
        (func.op(inst) == Op::Builtin(wanted)).then(|| func.args(inst))
    };
    let sizes: &[Value] = match (builtin(size, Builtin::Tuple), func.as_const(size)) {
        (Some(sizes), _) => sizes,
        (None, Some(Const::Aggregate { fields, .. })) => fields,
        _ => return false,
    };
    let number = |value: Value| func.as_bits(value).map(|bits| bits as i64);
    let count = sizes.iter().try_fold(1i64, |all, &size| {
        number(size).filter(|&size| size >= 0).and_then(|size| all.checked_mul(size))
    });
    if count == Some(0) {
        return true;
    }
    let Some(&[memory]) = builtin(reference, Builtin::Memoryrefnew) else { return false };
    let Some(&[_, length]) = builtin(memory, Builtin::Memorynew) else { return false };
    let is_enough = count.zip(number(length)).is_some_and(|(count, length)| count <= length);
    // Equal constants are the same value.
    let fits = is_enough || matches!(sizes, [size] if *size == length);
    fits && types.memory_element(func.ty(memory)).is_some()
}
