//! Memory at a `Ptr`: `pointerref`, `pointerset`, and the atomic operations.
//!
//! An index counts elements from 1; elements are their size apart, which is a multiple of their alignment.
//! Atomic operations require a place aligned to its size, as processors do.

use super::Interp;
use super::error::{Eval, Fault};
use super::exec::Flow;
use super::places::Place;
use super::value::Val;
use brolga_ir::intrinsic::{Intrinsic, Shape};

impl Interp<'_> {
    pub(super) fn pointer_intrinsic(&mut self, op: Intrinsic, args: Vec<Val>) -> Eval<Flow> {
        let name = op.name();
        let val = match (op.shape(), args.as_slice()) {
            (Shape::PtrLoad, [pointer, index, align]) => {
                let place = self.indexed(name, pointer, index, align)?;
                self.read_place(&place)?
            }
            (Shape::PtrStore, [pointer, val, index, align]) => {
                let place = self.indexed(name, pointer, index, align)?;
                self.write_place(name, &place, val.clone())?;
                pointer.clone()
            }
            (Shape::AtomicFence, [order, ..]) => {
                self.ordering(name, order)?;
                Val::NOTHING
            }
            (Shape::AtomicLoad, [pointer, order]) => {
                let place = self.atomic(name, pointer, &[order])?;
                self.read_place(&place)?
            }
            (Shape::AtomicStore, [pointer, val, order]) => {
                let place = self.atomic(name, pointer, &[order])?;
                self.write_place(name, &place, val.clone())?;
                pointer.clone()
            }
            (Shape::AtomicSwap, [pointer, val, order]) => {
                let place = self.atomic(name, pointer, &[order])?;
                self.swap(name, &place, val.clone())?
            }
            (Shape::AtomicModify, [pointer, f, x, order]) => {
                let place = self.atomic(name, pointer, &[order])?;
                return self.modify(name, place, f.clone(), x.clone());
            }
            (Shape::AtomicReplace, [pointer, expected, val, success, failure]) => {
                let place = self.atomic(name, pointer, &[success, failure])?;
                self.replace(name, &place, expected, val.clone())?
            }
            _ => return Err(Fault::OperandCount { op: name.to_owned(), given: args.len() }.into()),
        };
        Ok(Flow::Value(val))
    }

    /// The place of an element at a pointer.
    fn indexed(&self, op: &str, pointer: &Val, index: &Val, align: &Val) -> Eval<Place> {
        let Some((ty, address)) = self.pointee_of(pointer) else {
            return Err(self.bad_operand(op, "a Ptr", pointer));
        };
        let (Some(index), Some(align)) = (index.as_int64(), align.as_int64()) else {
            return Err(self.bad_operand(op, "an Int64", index));
        };
        let size = self.raw_size(ty)?;
        let address = address.wrapping_add(size.wrapping_mul(index.wrapping_sub(1) as u64));
        Ok(Place::Pointer { address, align: u64::try_from(align).unwrap_or(1), ty })
    }

    fn atomic(&mut self, op: &str, pointer: &Val, orders: &[&Val]) -> Eval<Place> {
        for order in orders {
            self.ordering(op, order)?;
        }
        let Some((ty, address)) = self.pointee_of(pointer) else {
            return Err(self.bad_operand(op, "a Ptr", pointer));
        };
        let size = self.raw_size(ty)?;
        if size > 16 || !size.is_power_of_two() {
            let text = format!("{op}: invalid pointer for atomic operation");
            return Err(self.message("ErrorException", &text));
        }
        Ok(Place::Pointer { address, align: size, ty })
    }
}
