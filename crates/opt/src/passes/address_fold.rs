//! Puts the constants of an index into the access.
//!
//! ```text
//! %1 = add_int(i, 1)
//! %2 = mul_int(%1, 4)                            %2 = mul_int(i, 4)
//! %3 = add_ptr(p, %2)                ==>         %3 = add_ptr(p, %2)
//! %4 = load(%3; offset = -4)                     %4 = load(%3; offset = 0)
//! ```
//!
//! Arrays count from one and memory from zero, so each access has a one added to its index and subtracted from its address. An
//! address with a constant displacement costs nothing, and where the index depends on a load, the sum lengthens the critical
//! path. `strength-reduce` does it for counters of loops; this pass does it for every index.
//!
//! All of it is modulo 2⁶⁴, so no fact about ranges is needed. Only untracked addresses, and elements of arrays, which `gc_loaded` ties to their
//! object: the tie is recreated.
//!
//! Cost: at most [`MAX_STEPS`] sums and products in each address. Breaks the uses. Not done: two indices in one address;
//! constants that do not fit the 32 bits of an access.

use crate::alias::linear;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Access;
use brolga_ir::{Func, Inst, Op, Type, Value};

pub(crate) const PASS: Pass = Pass::new("address-fold", PassLevel::Low, run).breaks(&[Fact::Uses]);

/// The most operations examined in an address.
const MAX_STEPS: usize = 8;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let find = |func: &Func, _: &PassCx<'_>, inst| Folded::of(func, inst);
    cx.rewrite_each(func, "folded addresses", find, |func, cx, inst, folded| folded.put(func, cx, inst))
}

/// An address without its constant.
struct Folded {
    base: Value,
    index: Option<(Value, u64)>,
    /// The access with the constant.
    op: Op,
    /// The object that the address is tied to.
    object: Option<Value>,
}

impl Folded {
    /// `None` if there is no constant in the address.
    fn of(func: &Func, inst: Inst) -> Option<Folded> {
        let (Op::Load(access) | Op::Store(access)) = func.op(inst) else { return None };
        let mut base = *func.args(inst).first()?;
        let tie = func.def_inst(base).filter(|&def| func.op(def) == Op::GcLoaded);
        let object = tie.and_then(|def| func.args(def).first().copied());
        if let Some(def) = tie {
            base = *func.args(def).get(1)?;
        }
        let (mut index, mut constant) = (None, 0_u64);
        for _ in 0..MAX_STEPS {
            let Some(def) = func.def_inst(base).filter(|_| func.ty(base) == Type::PTR) else { break };
            let (Op::Intrinsic(op), &[from, offset]) = (func.op(def), func.args(def)) else { break };
            if !matches!(op, Intrinsic::AddPtr | Intrinsic::SubPtr) || func.ty(from) != Type::PTR {
                break;
            }
            let (part, disp) = linear(func, offset);
            match (op, part) {
                (_, None) => {}
                (Intrinsic::AddPtr, Some(_)) if index.is_none() => index = part,
                _ => break,
            }
            constant = match op {
                Intrinsic::AddPtr => constant.wrapping_add(disp),
                _ => constant.wrapping_sub(disp),
            };
            base = from;
        }
        let offset = i64::from(access.offset).checked_add(constant.cast_signed())?;
        // The index may fold to zero on a path that is not taken: memory outside a slot is not accessed then, but an access
        // outside a slot is not well-formed.
        if let Some(Op::SlotAddr(slot)) = func.def_inst(base).map(|def| func.op(def)) {
            let accessed = func.results(inst).next().or_else(|| func.args(inst).get(1).copied())?;
            let end = offset.checked_add(i64::from(func.ty(accessed).as_low()?.bytes()))?;
            if index.is_none() || offset < 0 || end > i64::from(func.slot(slot).size) {
                return None;
            }
        }
        let access = Access { offset: i32::try_from(offset).ok().filter(|_| constant != 0)?, ..access };
        let op = if matches!(func.op(inst), Op::Load(_)) { Op::Load(access) } else { Op::Store(access) };
        Some(Folded { base, index, op, object })
    }

    fn put(self, func: &mut Func, cx: &PassCx<'_>, inst: Inst) {
        let mut args = func.args(inst).to_vec();
        let mut at = Cursor::new(func);
        at.before(inst);
        let mut address = self.base;
        if let Some((index, factor)) = self.index {
            let factor = at.int(cx.types(), Type::I64, i128::from(factor.cast_signed()));
            let scaled = at.ins_value(Op::Intrinsic(Intrinsic::MulInt), &[index, factor], Type::I64);
            address = at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[address, scaled], Type::PTR);
        }
        if let Some(object) = self.object {
            address = at.ins_value(Op::GcLoaded, &[object, address], Type::LOADED);
        }
        args[0] = address;
        func.set_op(inst, self.op, &args);
    }
}
