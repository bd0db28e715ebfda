//! Ends of vectors: one element more or less, without a call where the elements stay where they are.
//!
//! ```text
//! jl_array_grow_end(v, 1)       data + (length + 1) · stride ≤ memory.data + memory.length · stride     length = length + 1
//!                               otherwise                                                            brolga_array_grow_end(v, 1)
//! jl_array_del_end(v, 1)        0 < length                                                           length = length - 1, last element = 0
//! jl_array_del_beg(v, 1)        0 < length                                                           first element = 0, data += stride, length = length - 1
//!                               otherwise                                                            the run time throws
//! ```
//!
//! Elements that are not in use are zero, so growing writes none and shrinking clears what it removes; that is done here for elements of a word or less that hold bits
//! only. Invariant: the first and last cases are what the run time does (`grow_in_place`, `shrink_in_place` and `drop_first_in_place` in
//! `crates/runtime/src/heap/array.rs`). The element's stride is not zero.

use super::addr::Addr;
use super::array::{ARRAY_DATA, ARRAY_DIMS};
use super::element::{Element, Shape};
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::types::FieldRepr;
use brolga_ir::{LowType, Op, RuntimeFn, Type, Value};

impl Lowering<'_> {
    /// Appends `count` elements to a vector of elements of type `elem`, or removes as many.
    pub(super) fn change_end(
        &mut self,
        entry: RuntimeFn,
        array: Value,
        elem: Type,
        count: Value,
    ) -> Step<()> {
        let shape = self.shape(elem)?;
        let in_place = match entry {
            RuntimeFn::ArrayGrowEnd => shape.stride > 0,
            _ => self.cleared_as(&shape)?.is_some(),
        };
        if self.out.as_bits(count) != Some(1) || !in_place {
            self.value(Op::CallRuntime(entry), &[array, count], Type::TRACKED);
            return Ok(());
        }
        let dims = Addr::inside(array, 8, Region::Size);
        let length = self.load_low(dims, ARRAY_DIMS, LowType::I64);
        let start = self.array_start(array, elem)?;
        let fits = match entry {
            RuntimeFn::ArrayGrowEnd => self.has_room_for(&start, length),
            _ => {
                let zero = self.word(0);
                self.binary(Intrinsic::SltInt, zero, length, LowType::I8)
            }
        };
        let mut join = self.join();
        let rest = self.split(fits);
        let one = self.word(1);
        if entry == RuntimeFn::ArrayGrowEnd {
            let longer = self.binary(Intrinsic::AddInt, length, one, LowType::I64);
            self.store_low(dims, ARRAY_DIMS, longer);
        } else {
            let shorter = self.binary(Intrinsic::SubInt, length, one, LowType::I64);
            let removed = match entry {
                RuntimeFn::ArrayDelEnd => self.moved_element(&start, shorter),
                _ => start,
            };
            self.clear(&removed)?;
            if entry == RuntimeFn::ArrayDelBeg {
                let second = self.moved_element(&start, one);
                self.store_low(Addr::inside(array, 8, Region::Header), ARRAY_DATA, second.data);
            }
            self.store_low(dims, ARRAY_DIMS, shorter);
        }
        self.leave_to(&mut join, Leaves::new());
        self.continue_in(rest);
        self.out.set_cold(rest);
        self.value(Op::CallRuntime(entry), &[array, count], Type::TRACKED);
        self.leave_to(&mut join, Leaves::new());
        self.meet(join);
        Ok(())
    }

    /// Whether the `Memory` has room for an element after `length` ones. The addresses do not wrap (`array.rs`).
    fn has_room_for(&mut self, start: &Element, length: Value) -> Value {
        let stride = start.shape.stride;
        let one = self.word(1);
        let longer = self.binary(Intrinsic::AddInt, length, one, LowType::I64);
        let end = self.moved_element(start, longer);
        let capacity = self.memory_length(start.memory, stride);
        let data = self.memory_data(start.memory);
        let limit = self.moved_element(&Element { data, ..*start }, capacity);
        let [end, limit] = [end, limit].map(|element| self.bitcast(element.data, LowType::I64));
        self.binary(Intrinsic::UleInt, end, limit, LowType::I8)
    }

    /// The integer that clears an element, if it has no references and there is one of its size.
    fn cleared_as(&mut self, shape: &Shape) -> Step<Option<LowType>> {
        if shape.repr != FieldRepr::Inline || !self.layout(shape.ty)?.is_bits() {
            return Ok(None);
        }
        let sizes = [LowType::I8, LowType::I16, LowType::I32, LowType::I64];
        Ok(sizes.into_iter().find(|low| low.bytes() == shape.stride && shape.align >= low.bytes()))
    }

    fn clear(&mut self, element: &Element) -> Step<()> {
        if let Some(low) = self.cleared_as(&element.shape)? {
            let zero = self.int(low, 0);
            let place = self.element_addr(element);
            self.store_low(place, 0, zero);
        }
        Ok(())
    }
}

/// The operands of a call that changes an end: the vector, the type of its elements and the number of elements.
pub(super) fn end_operands(
    lowering: &Lowering<'_>,
    vector: &Val,
    count: &Val,
) -> Option<(Value, Type, Value)> {
    match (lowering.types.array_parts(vector.ty), &vector.leaves[..], &count.leaves[..]) {
        (Some((elem, 1)), &[array], &[count]) => Some((array, elem, count)),
        _ => None,
    }
}
