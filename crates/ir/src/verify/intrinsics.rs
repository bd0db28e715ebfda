//! Types of intrinsics. The type rule of arithmetic is [`scalar::check`]; this file maps the types of values to
//! scalars, checks that signedness and meaning of the operands agree, and has the rules of memory operations.

use super::{CallRule, Checker, TypeRule};
use crate::entity::Inst;
use crate::intrinsic::{Convert, Intrinsic, Shape};
use crate::op::Level;
use crate::scalar::{self, Misuse, ScalarType};
use crate::types::{LowType, PrimitiveRepr, PtrClass, Type};
use smallvec::SmallVec;

impl Checker<'_> {
    pub(super) fn intrinsic(&mut self, inst: Inst, op: Intrinsic) {
        if let Some(why) = op.refusal() {
            self.at(inst, CallRule::Refused { name: op.name(), why });
            return;
        }
        let args = self.func.args(inst);
        if args.iter().any(|&v| self.func.ty(v) == Type::BOTTOM) {
            // A value that cannot exist: the statement is unreachable.
            return;
        }
        match op.shape() {
            Shape::PtrLoad => {
                self.word_operand(inst, 1);
                self.word_operand(inst, 2);
                if let Some(elem) = self.pointee(inst) {
                    self.result_compatible(inst, elem);
                }
            }
            Shape::PtrStore => {
                self.word_operand(inst, 2);
                self.word_operand(inst, 3);
                self.stored(inst);
            }
            Shape::AtomicFence => {
                if self.arg(inst, 0).is_some() && self.func.level == Level::High {
                    self.order(inst, 0);
                }
            }
            Shape::AtomicLoad => {
                self.order(inst, 1);
                if let Some(elem) = self.pointee(inst) {
                    self.result_compatible(inst, elem);
                }
            }
            Shape::AtomicStore => {
                self.order(inst, 2);
                self.stored(inst);
            }
            Shape::AtomicSwap => {
                self.order(inst, 2);
                if let Some(elem) = self.pointee(inst) {
                    self.operand_may_fit(inst, 1, elem);
                    self.result_compatible(inst, elem);
                }
            }
            Shape::AtomicModify => {
                self.order(inst, 3);
                if let Some(elem) = self.pointee(inst) {
                    self.result_fields(inst, [elem, elem]);
                }
            }
            Shape::AtomicReplace => {
                self.order(inst, 3);
                self.order(inst, 4);
                self.replace_orders(inst, 3);
                if let Some(elem) = self.pointee(inst) {
                    self.operand_may_fit(inst, 2, elem);
                    self.result_fields(inst, [elem, Type::BOOL]);
                }
            }
            Shape::Query => self.result_is(inst, self.bool_type()),
            Shape::Foreign => {}
            _ => self.arithmetic(inst, op),
        }
    }

    fn bool_type(&self) -> Type {
        match self.func.level {
            Level::High => Type::BOOL,
            Level::Low => Type::I8,
        }
    }

    /// The element type of operand 0, which must be a pointer.
    fn pointee(&mut self, inst: Inst) -> Option<Type> {
        let elem = self.types.pointee(self.arg_type(inst, 0));
        if elem.is_none() {
            self.bad_operand(inst, 0, "a `Ptr`");
        }
        elem
    }

    fn stored(&mut self, inst: Inst) {
        if let Some(elem) = self.pointee(inst) {
            self.operand_may_fit(inst, 1, elem);
            self.result_is(inst, self.arg_type(inst, 0));
        }
    }

    fn word_operand(&mut self, inst: Inst, n: usize) {
        if !matches!(self.arg_type(inst, n), Type::INT64 | Type::UINT64) {
            self.bad_operand(inst, n, Type::INT64);
        }
    }

    /// The result is a pair, tuple or named tuple of the two types.
    pub(super) fn result_fields(&mut self, inst: Inst, wanted: [Type; 2]) {
        let Some(given) = self.result_type(inst).filter(|&t| t != Type::BOTTOM && t != Type::ANY) else {
            return;
        };
        let field = |n| self.types.field_type(given, n);
        let right = self.types.field_count(given) == Some(2)
            && wanted
                .iter()
                .enumerate()
                .all(|(n, &w)| field(n).is_some_and(|f| !self.types.is_disjoint(f, w)));
        if !right {
            self.at(
                inst,
                TypeRule::Result { given, wanted: "a pair of the old value and the outcome".into() },
            );
        }
    }

    fn scalar(&self, ty: Type) -> Option<ScalarType> {
        let low_float = |bits| match bits {
            16 => ScalarType::F16,
            32 => ScalarType::F32,
            _ => ScalarType::F64,
        };
        if ty == Type::V128 {
            return None;
        }
        if let Some(low) = ty.as_low() {
            let bits = low.bits() as u16;
            return Some(if low.is_float() { low_float(bits) } else { ScalarType::Int { bits } });
        }
        Some(match self.types.primitive(ty)? {
            (bits, PrimitiveRepr::Float) => low_float(bits),
            (_, PrimitiveRepr::Bool) => ScalarType::BOOL,
            (bits, _) => ScalarType::Int { bits },
        })
    }

    fn is_pointer(&self, ty: Type) -> bool {
        matches!(ty.as_low(), Some(LowType::Ptr(_))) || self.types.pointee(ty).is_some()
    }

    fn arithmetic(&mut self, inst: Inst, op: Intrinsic) {
        let func = self.func;
        let shape = op.shape();
        let types: SmallVec<[Type; 3]> = func.args(inst).iter().map(|&v| func.ty(v)).collect();
        let mut scalars: SmallVec<[ScalarType; 3]> = SmallVec::new();
        for (n, &ty) in types.iter().enumerate() {
            // Addresses may only be compared, moved and reinterpreted.
            let address_allowed =
                matches!(shape, Shape::IntCompare | Shape::Convert(Convert::Bits) | Shape::PtrOffset);
            match self.scalar(ty) {
                Some(scalar) if address_allowed || !self.is_pointer(ty) => scalars.push(scalar),
                Some(_) => return self.bad_operand(inst, n, "an integer or float"),
                None => return self.bad_operand(inst, n, "a primitive type"),
            }
        }
        let first = types[0];
        let same = !matches!(shape, Shape::Shift | Shape::Convert(_) | Shape::PtrOffset);
        if same && let Some(operand) = types.iter().position(|&t| t != first) {
            self.at(inst, TypeRule::Unequal { left: first, operand, right: types[operand] });
            return;
        }
        let Some(result) = func.results(inst).next().map(|v| func.ty(v)) else { return };
        let wanted = match shape {
            Shape::Convert(_) => result,
            Shape::IntCompare | Shape::FloatCompare => self.bool_type(),
            Shape::CheckedPair => match func.level {
                Level::Low => first,
                Level::High => self.types.tuple(&[first, Type::BOOL]).unwrap_or(Type::BOTTOM),
            },
            Shape::PtrOffset => match self.moved_pointer(inst, first) {
                Some(ty) => ty,
                None => return,
            },
            _ => first,
        };
        if result != wanted && result != Type::BOTTOM {
            self.at(inst, TypeRule::Result { given: result, wanted: wanted.into() });
            return;
        }
        if shape == Shape::CheckedPair && func.level == Level::Low {
            self.overflow_flag(inst);
        }
        if result == Type::BOTTOM {
            return;
        }
        let scalar_result = match shape {
            Shape::CheckedPair => Some(scalars[0]),
            // No conversion by value yields an address.
            Shape::Convert(how) if how != Convert::Bits && self.is_pointer(result) => None,
            _ => self.scalar(result),
        };
        let Some(scalar_result) = scalar_result else {
            return self.at(inst, TypeRule::Result { given: result, wanted: "a primitive type".into() });
        };
        match scalar::check(op, scalar_result, &scalars) {
            Ok(()) if shape == Shape::Convert(Convert::Bits) => self.cast(inst, first, result),
            Ok(()) => {}
            Err(Misuse::Result { .. }) => {
                self.at(
                    inst,
                    TypeRule::Result { given: result, wanted: "a type that fits the operands".into() },
                );
            }
            Err(Misuse::Operand { index, .. }) => self.bad_operand(inst, index, "another kind of number"),
            Err(misuse) => self.at(inst, TypeRule::Scalar(misuse)),
        }
    }

    fn overflow_flag(&mut self, inst: Inst) {
        let flag = self.func.results(inst).nth(1).map(|v| self.func.ty(v));
        if let Some(given) = flag.filter(|&t| t != Type::I8) {
            self.at(inst, TypeRule::Result { given, wanted: Type::I8.into() });
        }
    }

    /// The type of a pointer after address arithmetic: the result is never tracked.
    fn moved_pointer(&mut self, inst: Inst, base: Type) -> Option<Type> {
        match base.as_low() {
            Some(LowType::Ptr(PtrClass::Raw)) => Some(Type::PTR),
            Some(LowType::Ptr(PtrClass::Tracked | PtrClass::Derived)) => Some(Type::DERIVED),
            Some(LowType::Ptr(PtrClass::Loaded)) => Some(Type::LOADED),
            None if self.types.pointee(base).is_some() => Some(base),
            _ => {
                self.bad_operand(inst, 0, "a pointer");
                None
            }
        }
    }
}
