//! Operands: a value of a given type.
//!
//! In order of preference: an available value (unused ones first, so that little of a program is dead), a
//! constant, or a few instructions that compute one. The search for an available value makes a fixed number
//! of probes, so the cost of a statement does not grow with the function.

use super::func::FuncGen;
use crate::values;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::Literal;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Const, Op, Type, TypeKind, Value};

/// The number of probes.
const PROBES: usize = 24;
/// The maximum depth of the computation of an operand.
const MAX_DEPTH: usize = 2;

impl FuncGen<'_> {
    /// A value of exactly this type.
    pub(super) fn value(&mut self, ty: Type) -> Value {
        self.value_at(ty, MAX_DEPTH)
    }

    fn value_at(&mut self, ty: Type, depth: usize) -> Value {
        if self.rng.chance(90)
            && let Some(value) = self.find(ty)
        {
            return value;
        }
        if depth == 0 || self.left == 0 || self.rng.chance(35) {
            self.literal(ty)
        } else {
            self.make(ty, depth - 1)
        }
    }

    /// A value of this type or of a member of this union, suitable for a φ, an argument, a field or a result.
    pub(super) fn value_for(&mut self, ty: Type) -> Value {
        match self.cx.types.kind(ty) {
            TypeKind::Union(members) if self.rng.chance(60) => {
                let member = self.rng.pick(members).copied().unwrap_or(ty);
                self.value(member)
            }
            _ => self.value(ty),
        }
    }

    /// The type of an available value that is among `wanted`, or any of `wanted`: types of available values
    /// make longer chains.
    pub(super) fn likely(&mut self, wanted: &[Type]) -> Option<Type> {
        for _ in 0..8 {
            let ty = self.rng.pick(&self.at_hand).map(|&value| self.func.ty(value));
            if ty.is_some_and(|ty| wanted.contains(&ty)) {
                return ty;
            }
        }
        self.rng.pick(wanted).copied()
    }

    /// An integer type, preferably the type of an available value.
    pub(super) fn int(&mut self) -> Type {
        let palette = self.palette;
        let likely = if self.rng.chance(75) { self.likely(&palette.ints) } else { None };
        likely.unwrap_or_else(|| palette.int(self.rng))
    }

    /// A float type, preferably the type of an available value; `None` if the module has no floats.
    pub(super) fn float(&mut self) -> Option<Type> {
        let palette = self.palette;
        self.likely(&palette.floats)
    }

    /// An available value of this type.
    pub(super) fn find(&mut self, ty: Type) -> Option<Value> {
        let count = self.at_hand.len();
        let mut found = None;
        for probe in 0..PROBES.min(2 * count) {
            // Every second probe is among the newest values.
            let index = if probe % 2 == 0 {
                self.rng.below(count)
            } else {
                count - 1 - self.rng.below(count.min(16))
            };
            let value = self.at_hand[index];
            if self.func.ty(value) == ty {
                if !self.is_used(value) {
                    return Some(value);
                }
                found = Some(value);
            }
        }
        found
    }

    /// A value of this type whose float bits are certain.
    pub(super) fn exact_value(&mut self, ty: Type) -> Value {
        let value = self.value(ty);
        self.exact(value)
    }

    /// The value if its bits are certain; otherwise one of its type whose bits are.
    pub(super) fn exact(&mut self, value: Value) -> Value {
        if self.is_exact(value) {
            return value;
        }
        let ty = self.func.ty(value);
        match self.cx.types.primitive(ty) {
            Some((bits, PrimitiveRepr::Float)) => self.canonical(value, ty, bits),
            _ => self.literal(ty),
        }
    }

    /// A float with every NaN replaced by one of known bits.
    fn canonical(&mut self, value: Value, ty: Type, bits: u16) -> Value {
        let is_nan = self.intrinsic(Intrinsic::NeFloat, &[value, value], Type::BOOL);
        let pattern = match bits {
            16 => 0x7e01,
            32 => 0xffc0_0002,
            _ => 0x7ff8_0000_0000_0003,
        };
        let nan = self.bits(ty, pattern);
        let chosen = self.builtin(Builtin::Ifelse, &[is_nan, nan, value], ty);
        self.set_exact(chosen);
        chosen
    }

    /// A constant of this type. A union has no constants: the result is a choice between two of its members.
    pub(super) fn literal(&mut self, ty: Type) -> Value {
        if let TypeKind::Union(members) = self.cx.types.kind(ty) {
            let condition = self.value(Type::BOOL);
            let mut member = || self.rng.pick(members).copied().unwrap_or(Type::NOTHING);
            let (a, b) = (member(), member());
            let choice = [condition, self.literal(a), self.literal(b)];
            let chosen = self.builtin(Builtin::Ifelse, &choice, ty);
            self.set_exact(chosen);
            return chosen;
        }
        match values::literal(self.rng, self.cx, ty) {
            Some(literal) => self.constant(&literal),
            None => self.func.constant(Const::Singleton(Type::NOTHING)),
        }
    }

    fn constant(&mut self, literal: &Literal) -> Value {
        match literal {
            Literal::Const(constant) => self.func.constant(constant.clone()),
            Literal::Aggregate { ty, fields } => {
                let fields = fields.iter().map(|f| self.constant(f)).collect();
                self.func.constant(Const::Aggregate { ty: *ty, fields })
            }
            // Generated constants have no identity.
            Literal::Array { ty, .. } => self.func.constant(Const::Undef(*ty)),
        }
    }

    /// Computes a value of this type from others.
    fn make(&mut self, ty: Type, depth: usize) -> Value {
        let types = &self.cx.types;
        match types.primitive(ty) {
            Some((_, PrimitiveRepr::Bool)) => {
                let of = self.int();
                let (a, b) = (self.value_at(of, depth), self.value_at(of, depth));
                self.intrinsic(Intrinsic::UltInt, &[a, b], ty)
            }
            Some((_, PrimitiveRepr::Char)) => {
                let bits = self.value_at(Type::UINT32, depth);
                self.intrinsic(Intrinsic::Bitcast, &[bits], ty)
            }
            Some((bits, PrimitiveRepr::Signed | PrimitiveRepr::Unsigned)) => self.make_int(ty, bits, depth),
            Some((_, PrimitiveRepr::Float)) => {
                let from = self.int();
                let number = self.value_at(from, depth);
                let made = self.intrinsic(Intrinsic::Sitofp, &[number], ty);
                self.set_exact(made);
                made
            }
            Some(_) => self.literal(ty),
            None if types.tuple_elements(ty).is_some() || types.fields(ty).is_some_and(|f| !f.is_empty()) => {
                self.make_aggregate(ty, depth)
            }
            None => self.literal(ty),
        }
    }

    fn make_int(&mut self, ty: Type, bits: u16, depth: usize) -> Value {
        let from = self.int();
        let operand = self.value_at(from, depth);
        let from_bits = self.cx.types.primitive(from).map_or(bits, |(bits, _)| bits);
        let conversion = match from_bits.cmp(&bits) {
            _ if from == ty => return operand,
            std::cmp::Ordering::Equal => Intrinsic::Bitcast,
            std::cmp::Ordering::Greater => Intrinsic::TruncInt,
            std::cmp::Ordering::Less if self.rng.chance(50) => Intrinsic::SextInt,
            std::cmp::Ordering::Less => Intrinsic::ZextInt,
        };
        self.intrinsic(conversion, &[operand], ty)
    }

    /// A tuple, named tuple or struct from values for its fields.
    pub(super) fn make_aggregate(&mut self, ty: Type, depth: usize) -> Value {
        let count = self.cx.types.field_count(ty).unwrap_or(0);
        let mut fields = Vec::with_capacity(count);
        for index in 0..count {
            let field = self.cx.types.field_type(ty, index).unwrap_or(Type::NOTHING);
            let is_union = matches!(self.cx.types.kind(field), TypeKind::Union(_));
            fields.push(if is_union { self.value_for(field) } else { self.value_at(field, depth) });
        }
        let op = match self.cx.types.kind(ty) {
            TypeKind::Tuple { .. } => Op::Builtin(Builtin::Tuple),
            _ => Op::New(ty),
        };
        let made = self.emit(op, &fields, ty);
        if fields.iter().all(|&f| self.is_exact(f)) {
            self.set_exact(made);
        }
        made
    }
}
