//! A number that depends on a function's computations, so that a wrong value anywhere affects the result.
//!
//! ```text
//! %d = x₀;  %d = %d * odd + xᵢ          for the available values that are still unused
//! ```
//!
//! Values are included by their bits: floats with NaNs replaced, aggregates field by field.

use super::func::FuncGen;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Type, Value};

/// The maximum number of included values.
const MAX_VALUES: usize = 8;

impl FuncGen<'_> {
    /// A `UInt64` computed from values that are still unused.
    pub(super) fn digest(&mut self) -> Value {
        let mut work: Vec<Value> = self.at_hand.iter().rev().copied().filter(|&v| !self.is_used(v)).collect();
        work.truncate(MAX_VALUES);
        work.reverse();
        let mut digest = self.value(Type::UINT64);
        let mut entered = 0;
        while let Some(value) = work.pop() {
            if entered == 2 * MAX_VALUES {
                break;
            }
            let Some(bits) = self.as_uint64(value) else {
                work.extend(self.fields(value));
                continue;
            };
            entered += 1;
            let odd = self.bits(Type::UINT64, 0x9e37_79b9_7f4a_7c15);
            let spread = self.intrinsic(Intrinsic::MulInt, &[digest, odd], Type::UINT64);
            digest = self.intrinsic(Intrinsic::AddInt, &[spread, bits], Type::UINT64);
        }
        digest
    }

    /// The bits of a scalar, widened or truncated to 64.
    pub(super) fn as_uint64(&mut self, value: Value) -> Option<Value> {
        let ty = self.func.ty(value);
        if ty == Type::ANY {
            return Some(self.any_as_uint64(value));
        }
        let (bits, repr) = self.cx.types.primitive(ty)?;
        let value = match repr {
            PrimitiveRepr::Float => {
                let exact = self.exact(value);
                let same_width = match bits {
                    16 => Type::UINT16,
                    32 => Type::UINT32,
                    _ => Type::UINT64,
                };
                self.intrinsic(Intrinsic::Bitcast, &[exact], same_width)
            }
            _ => value,
        };
        Some(match bits {
            _ if self.func.ty(value) == Type::UINT64 => value,
            64 => self.intrinsic(Intrinsic::Bitcast, &[value], Type::UINT64),
            128 => self.intrinsic(Intrinsic::TruncInt, &[value], Type::UINT64),
            _ => self.intrinsic(Intrinsic::ZextInt, &[value], Type::UINT64),
        })
    }

    /// The fields of an aggregate; empty for other values.
    fn fields(&mut self, value: Value) -> Vec<Value> {
        let ty = self.func.ty(value);
        let count = self.cx.types.field_count(ty).unwrap_or(0);
        let is_exact = self.is_exact(value);
        let mut fields = Vec::with_capacity(count);
        for index in 0..count {
            let Some(field) = self.cx.types.field_type(ty, index) else { continue };
            let number = self.bits(Type::INT64, index as u128 + 1);
            let part = self.builtin(Builtin::Getfield, &[value, number], field);
            if is_exact {
                self.set_exact(part);
            }
            fields.push(part);
        }
        fields
    }
}
