//! Constants: their values fit their types.

use super::{Checker, Site};
use crate::constant::{Address, Const};
use crate::entity::Value;
use crate::types::{MAX_DEPTH, MAX_WEIGHT, Type};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// Rules about constants. The site is the function, because a constant has no position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConstantRule {
    /// `constant-bits`: the type has no bits, or not these.
    Bits { ty: Type, bits: u128 },
    /// `constant-singleton`: the type does not have exactly one value.
    Singleton { ty: Type },
    /// `constant-type`: the type of the type object is wrong.
    Type {
        /// The type that is the value.
        of: Type,
        /// The stated type.
        given: Type,
    },
    /// `constant-aggregate`: the type is not an immutable with this number of fields.
    Aggregate {
        ty: Type,
        /// The number of fields given.
        given: usize,
    },
    /// `constant-field`: a field is not an earlier constant, or has the wrong type.
    Field {
        /// The type of the aggregate.
        ty: Type,
        /// The field's number, from 0.
        index: usize,
        /// The declared type of the field.
        wanted: Type,
        /// The type of the given constant; `None` if it is not a constant.
        given: Option<Type>,
    },
    /// `constant-size`: the constant nests too deep, or has too many parts.
    Size { ty: Type },
    /// `constant-data`: there are no constant bytes with this number.
    Data {
        number: u32,
        /// The number of constant byte strings.
        count: usize,
    },
}

impl Checker<'_> {
    pub(super) fn constants(&mut self) {
        self.constant_sizes();
        let func = self.func;
        for value in (0..func.value_count()).map(Value::new) {
            if let Some(constant) = func.as_const(value) {
                self.constant(value, constant);
            }
        }
    }

    /// A constant is a graph in memory, but printing or lowering walks it as a tree.
    fn constant_sizes(&mut self) {
        let func = self.func;
        // By value: the number of parts and the nesting depth, for aggregates.
        let mut sizes = FxHashMap::<Value, (u32, u32)>::default();
        for value in (0..func.value_count()).map(Value::new) {
            let Some(Const::Aggregate { ty, fields }) = func.as_const(value) else { continue };
            // Later parts violate another rule.
            let of = |field: &Value| sizes.get(field).copied().unwrap_or((1, 1));
            let parts = fields.iter().fold(1u32, |sum, field| sum.saturating_add(of(field).0));
            let depth = fields.iter().map(|field| of(field).1).max().unwrap_or(0) + 1;
            if parts > MAX_WEIGHT || depth > u32::from(MAX_DEPTH) {
                self.report(Site::Func, ConstantRule::Size { ty: *ty });
                return;
            }
            sizes.insert(value, (parts, depth));
        }
    }

    fn constant(&mut self, value: Value, constant: &Const) {
        match *constant {
            Const::Bits { ty, bits } => {
                let width = match ty.as_low() {
                    Some(low) => Some(low.bits()),
                    None if ty == Type::BOOL => Some(1),
                    None => self.types.primitive(ty).map(|(bits, _)| u32::from(bits)),
                };
                if width.is_none_or(|w| w < 128 && bits >> w != 0) {
                    self.report(Site::Func, ConstantRule::Bits { ty, bits });
                }
            }
            Const::Singleton(ty) => {
                if !self.types.is_singleton(ty) {
                    self.report(Site::Func, ConstantRule::Singleton { ty });
                }
            }
            Const::Type { of, ty: given } => {
                if self.types.type_of_type(of) != given {
                    self.report(Site::Func, ConstantRule::Type { of, given });
                }
            }
            Const::Aggregate { ty, ref fields } => {
                let given = fields.len();
                let count = self.types.field_count(ty).filter(|_| !self.types.is_mutable(ty));
                if count != Some(given) || !self.types.is_concrete(ty) {
                    self.report(Site::Func, ConstantRule::Aggregate { ty, given });
                    return;
                }
                for (index, &field) in fields.iter().enumerate() {
                    let wanted = self.types.field_type(ty, index).unwrap_or(Type::BOTTOM);
                    // Parts are made before the whole, so constants cannot contain themselves.
                    let part = (field < value && self.func.has_value(field))
                        .then(|| self.func.as_const(field).map(|_| field))
                        .flatten();
                    if part.is_none_or(|p| !self.fits(p, wanted)) {
                        let given = part.map(|p| self.func.ty(p));
                        self.report(Site::Func, ConstantRule::Field { ty, index, wanted, given });
                    }
                }
            }
            Const::Address(Address::Data(number)) => {
                let count = self.func.data().len();
                if number as usize >= count {
                    self.report(Site::Func, ConstantRule::Data { number, count });
                }
            }
            Const::Address(_) | Const::String(_) | Const::Symbol(_) | Const::Module(_) | Const::Undef(_) => {}
        }
    }
}
