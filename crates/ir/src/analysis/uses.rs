//! Uses of values: a list of operands for each value, built in one pass.

use super::csr::Csr;
use crate::entity::{Inst, Value};
use crate::func::Func;
use cranelift_entity::EntityRef;

/// An operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Use {
    pub inst: Inst,
    /// The operand's index, from 0.
    pub index: u32,
}

/// Uses of all values by the instructions laid out in a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uses {
    lists: Csr<Use>,
}

impl Uses {
    /// Collects the uses in `func`.
    pub fn compute(func: &Func) -> Uses {
        // Most instructions have one or two operands.
        let mut pairs = Vec::with_capacity(2 * func.inst_count());
        for block in func.blocks() {
            for inst in func.block_insts(block) {
                let args = func.args(inst).iter().enumerate();
                pairs.extend(args.map(|(n, &value)| (value.as_u32(), Use { inst, index: n as u32 })));
            }
        }
        Uses { lists: Csr::from_pairs(func.value_count(), &pairs) }
    }

    /// The operands that are this value, in layout order.
    #[inline]
    pub fn of(&self, value: Value) -> &[Use] {
        self.lists.list(value.index())
    }

    /// Whether nothing uses the value.
    #[inline]
    pub fn is_unused(&self, value: Value) -> bool {
        self.of(value).is_empty()
    }

    /// The only use of the value, if there is exactly one.
    pub fn single(&self, value: Value) -> Option<Use> {
        match *self.of(value) {
            [only] => Some(only),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::{Param, Signature};
    use crate::intrinsic::Intrinsic;
    use crate::{Context, Level, Op, Type};

    #[test]
    fn every_operand_is_listed_once() {
        let cx = Context::new();
        let param = Param { name: None, ty: Type::I64 };
        let sig = Signature {
            params: vec![param, param],
            results: vec![Type::I64],
            vararg: false,
            ..Signature::default()
        };
        let mut f = Func::new(cx.names.intern("f"), Level::Low, sig);
        let block = f.make_block();
        f.append_block(block);
        let (x, y) = (f.params()[0], f.params()[1]);
        let twice = f.make_inst(Op::Intrinsic(Intrinsic::AddInt), &[x, x], &[], &[Type::I64]);
        let unplaced = f.make_inst(Op::Copy, &[y], &[], &[Type::I64]);
        f.append_inst(twice, block);
        let sum = f.result(twice).unwrap();
        let ret = f.make_inst(Op::Return, &[sum], &[], &[]);
        f.append_inst(ret, block);
        let uses = Uses::compute(&f);
        assert_eq!(uses.of(x), [Use { inst: twice, index: 0 }, Use { inst: twice, index: 1 }]);
        assert!(uses.is_unused(y) && uses.is_unused(f.result(unplaced).unwrap()));
        assert_eq!(uses.single(sum), Some(Use { inst: ret, index: 0 }));
        assert_eq!(uses.single(x), None);
    }
}
