//! Replacements of values, collected by a pass and applied to the whole function in one sweep.
//!
//! ```text
//! set(v3, v2)   set(v7, v3)          resolve(v7) = v2        apply: every operand v7 or v3 becomes v2
//! ```
//!
//! Invariant: following replacements ends. A replacement that would close a circle is not made; that can be asked for only in
//! code that is never reached, where a value may be used by what it is computed from.

use crate::rules::field_position;
use brolga_ir::builtin::Builtin;
use brolga_ir::{Const, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// What takes whose place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replacements {
    to: SecondaryMap<Value, PackedOption<Value>>,
    any: bool,
}

impl Replacements {
    /// What stands for `value` in the end.
    pub(crate) fn resolve(&mut self, value: Value) -> Value {
        let mut last = value;
        while let Some(next) = self.to[last].expand() {
            last = next;
        }
        // Shorten the way for the next one who asks.
        let mut at = value;
        while let Some(next) = self.to[at].expand() {
            if next == last {
                break;
            }
            self.to[at] = last.into();
            at = next;
        }
        last
    }

    /// `to` takes the place of `from` from now on.
    pub(crate) fn set(&mut self, from: Value, to: Value) {
        let to = self.resolve(to);
        if to != from {
            self.to[from] = to.into();
            self.any = true;
        }
    }

    /// Replaces all operands of the function. True if there was one.
    pub(crate) fn apply(&mut self, func: &mut Func, types: &Types) -> bool {
        if !self.any {
            return false;
        }
        let mut any = false;
        let mut block = func.entry();
        while let Some(b) = block {
            block = func.next_block(b);
            let mut next = func.first_inst(b);
            while let Some(inst) = next {
                next = func.next_inst(inst);
                any |= self.apply_to(func, types, inst);
            }
        }
        any
    }

    /// Replaces the operands of one instruction. True if there was one to replace.
    pub(crate) fn apply_to(&mut self, func: &mut Func, types: &Types, inst: Inst) -> bool {
        let mut changed = false;
        for arg in func.args_mut(inst) {
            let value = self.resolve(*arg);
            changed |= value != *arg;
            *arg = value;
        }
        if changed {
            mend_claim(func, types, inst);
        }
        changed
    }
}

/// Called when an operand of an instruction got a narrower type. A π may then claim what cannot be, or a field be claimed to have a
/// type that it has not, which the verifier refuses: the claim becomes a `typeassert`. Mostly nothing ever comes there; else it throws.
pub(crate) fn mend_claim(func: &mut Func, types: &Types, inst: Inst) {
    let (op, &[operand, ..]) = (func.op(inst), func.args(inst)) else { return };
    let Some(claimed) = func.result(inst).map(|v| func.ty(v)) else { return };
    let given = match op {
        Op::Pi => Some(func.ty(operand)),
        Op::Builtin(Builtin::Getfield) => func.args(inst).get(1).and_then(|&field| {
            let index = field_position(func, types, func.ty(operand), field)?;
            types.field_type(func.ty(operand), index)
        }),
        _ => None,
    };
    let Some(given) = given.filter(|&given| given != Type::BOTTOM && types.is_disjoint(given, claimed))
    else {
        return;
    };
    let operand = match op {
        Op::Pi => operand,
        op => {
            let args: SmallVec<[Value; 4]> = func.args(inst).into();
            let read = func.make_inst(op, &args, &[], &[given]);
            func.set_place(read, func.place(inst));
            func.insert_before(read, inst);
            func.result(read).unwrap_or(operand)
        }
    };
    let claimed = func.constant(Const::Type(claimed));
    func.set_op(inst, Op::Builtin(Builtin::Typeassert), &[operand, claimed]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn chains_end_at_the_last_and_circles_are_not_closed() {
        let v: Vec<Value> = (0..5).map(Value::new).collect();
        let mut map = Replacements::default();
        map.set(v[3], v[2]);
        map.set(v[4], v[3]);
        map.set(v[2], v[1]);
        assert_eq!(map.resolve(v[4]), v[1]);
        map.set(v[1], v[4]);
        assert_eq!(map.resolve(v[1]), v[1]);
        assert_eq!(map.resolve(v[0]), v[0]);
    }
}
