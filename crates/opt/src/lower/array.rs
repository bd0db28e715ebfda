//! Lowers builtins on `Memory`, `MemoryRef` and `Array`.
//!
//! ```text
//! Memory      0: length │ 8: address of the elements │ elements …        unions: followed by a selector byte for each
//! MemoryRef   leaves: address of an element, Memory                      elements of size zero: index from 0 as the address
//! Array       0: address of the first element │ 8: Memory │ 16: dimensions
//! ```
//!
//! The address of an element is a raw pointer, which the collector does not trace. Every access names the `Memory` that keeps
//! the element alive: `gc_loaded(memory, address)`. A store into an element needs the write barrier of the `Memory`.
//!
//! Regions. A `Memory` has a fixed number of elements at a fixed address: the address is in `immutable`, the number in
//! `length`. The words of an array change as it grows: its length is in `size`, the others are in `header`. Loads
//! from `length` and `size` have a known upper bound; where elements have size zero there is none, and other
//! regions are used. Elements are in `element`.
//!
//! | elements | an element that was never set |
//! |---|---|
//! | references | is null |
//! | inline, with references inside | has a null first reference |
//! | without references | is zero |
//!
//! Indices count from 1. The bounds check is one unsigned comparison of the index from 0 with the length.
//!
//! **Arithmetic.** A `Memory` takes at most `isize::MAX` bytes with its selectors (`brolga_gc_memory`), so for a position that is at most the length neither the
//! product with the stride nor the sum with an address wraps, and dividing a distance by the stride has no remainder. A
//! check comes before the address of what it checks is computed. In a program without doors each reference is made by a
//! checked operation here or in the run time, or is to the start of a `Memory` or an array: its position is between 0 and
//! the length. In other programs an unchecked `memoryrefnew` may make references to places outside; a later check refuses
//! them, as long as the product of index and stride does not wrap. Such an index breaks the contract of the door `bounds`.

use super::addr::Addr;
use super::element::{Element, Shape};
use super::places::{Change, Place, PlaceKind};
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use crate::alias::MEMORY_ELEMENTS;
use brolga_ir::abi::{FormKind, LeafRole};
use brolga_ir::builtin::{Builtin, NEW_PARTS_DO_NOT_FIT};
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::room::has_room;
use brolga_ir::types::FieldRepr;
use brolga_ir::{LowType, Op, PtrClass, RuntimeFn, Type, Value};

/// The offset of the length of a `Memory` or `String`.
pub(super) const LENGTH: u32 = 0;
/// The offset of the address of a `Memory`'s elements.
const MEMORY_DATA: u32 = MEMORY_ELEMENTS as u32;
/// The offset of the address of an `Array`'s first element.
pub(super) const ARRAY_DATA: u32 = 0;
/// The offset of the `Memory` of an `Array`.
const ARRAY_MEMORY: u32 = 8;
/// The offset of the dimensions of an `Array`.
pub(super) const ARRAY_DIMS: u32 = 16;

const TRACKED: LowType = LowType::Ptr(PtrClass::Tracked);
const RAW: LowType = LowType::Ptr(PtrClass::Raw);

impl Lowering<'_> {
    pub(super) fn shape(&mut self, ty: Type) -> Step<Shape> {
        let repr = self.types.field_repr(ty);
        let (stride, align) = match repr {
            FieldRepr::Pointer => (8, 8),
            FieldRepr::Inline => {
                let layout = self.layout(ty)?;
                (layout.size, layout.align)
            }
            FieldRepr::BitsUnion { .. } => match self.types.union_extent(self.types.members(&ty)) {
                Some((size, align)) => (size.next_multiple_of(align), align),
                None => return Err(self.bad_operands()),
            },
        };
        Ok(Shape { ty, repr, stride, align })
    }

    // ----- elements -----

    /// The element that a `MemoryRef` refers to.
    fn element_of(&mut self, reference: &Val) -> Step<Element> {
        match (self.types.memory_ref_element(reference.ty), &reference.leaves[..]) {
            (Some(elem), &[data, memory]) => Ok(Element { shape: self.shape(elem)?, data, memory }),
            _ => Err(self.bad_operands()),
        }
    }

    /// The length of a `Memory` whose elements are `stride` bytes apart.
    pub(super) fn memory_length(&mut self, memory: Value, stride: u32) -> Value {
        let region = if stride == 0 { Region::Immutable } else { Region::Length };
        let addr = Addr::inside(memory, 8, region);
        self.load_low(addr, LENGTH, LowType::I64)
    }

    pub(super) fn memory_data(&mut self, memory: Value) -> Value {
        let addr = Addr::inside(memory, 8, Region::Immutable);
        self.load_low(addr, MEMORY_DATA, RAW)
    }

    /// The first element of a `Memory`.
    fn first_element(&mut self, memory: Value, elem: Type) -> Step<Element> {
        let shape = self.shape(elem)?;
        let data = match shape.stride {
            0 => self.int(RAW, 0),
            _ => self.memory_data(memory),
        };
        Ok(Element { shape, data, memory })
    }

    /// The index of an element in its `Memory`, from 0.
    fn number(&mut self, element: &Element) -> Value {
        if element.shape.stride != 0 && self.is_start(element) {
            return self.word(0);
        }
        if let Some((from, count)) = self.moved_from(element) {
            let before = self.number(&Element { data: from, ..*element });
            return self.binary(Intrinsic::AddInt, before, count, LowType::I64);
        }
        let bits = self.bitcast(element.data, LowType::I64);
        if element.shape.stride == 0 {
            return bits;
        }
        let start = self.memory_data(element.memory);
        if start == element.data {
            return self.word(0);
        }
        let start = self.bitcast(start, LowType::I64);
        let distance = self.binary(Intrinsic::SubInt, bits, start, LowType::I64);
        match element.shape.stride {
            1 => distance,
            stride if stride.is_power_of_two() => {
                let count = self.word(i64::from(stride.trailing_zeros()));
                self.binary(Intrinsic::AshrInt, distance, count, LowType::I64)
            }
            stride => {
                let stride = self.word(i64::from(stride));
                self.binary(Intrinsic::SdivInt, distance, stride, LowType::I64)
            }
        }
    }

    /// The address that [`Lowering::moved_element`] has moved, and by how many elements. The number of that element is the same in all iterations of a loop, unlike a
    /// difference of addresses.
    fn moved_from(&mut self, element: &Element) -> Option<(Value, Value)> {
        let stride = u128::from(element.shape.stride).checked_sub(1)? + 1;
        let moved = self.out.def_inst(element.data)?;
        let (Op::Intrinsic(Intrinsic::AddPtr), &[from, bytes]) = (self.out.op(moved), self.out.args(moved))
        else {
            return None;
        };
        if stride == 1 {
            return Some((from, bytes));
        }
        if let Some(known) = self.out.as_bits(bytes) {
            let whole = known.is_multiple_of(stride) && known <= i64::MAX as u128;
            return whole.then(|| (from, self.word((known / stride) as i64)));
        }
        let made = self.out.def_inst(bytes)?;
        match (self.out.op(made), self.out.args(made)) {
            (Op::Intrinsic(Intrinsic::MulInt), &[count, by]) if self.out.as_bits(by) == Some(stride) => {
                Some((from, count))
            }
            _ => None,
        }
    }

    /// Whether the element's address was loaded from its `Memory`, so that it is the first element.
    fn is_start(&self, element: &Element) -> bool {
        let Some(load) = self.out.def_inst(element.data) else { return false };
        let from_memory =
            |access: Access| access.region == Region::Immutable && access.offset == MEMORY_DATA as i32;
        matches!(self.out.op(load), Op::Load(access) if from_memory(access))
            && self.out.args(load) == [element.memory]
    }

    /// The element `count` elements after this one.
    pub(super) fn moved_element(&mut self, element: &Element, count: Value) -> Element {
        let stride = element.shape.stride;
        let data = if stride == 0 {
            let bits = self.bitcast(element.data, LowType::I64);
            let bits = self.binary(Intrinsic::AddInt, bits, count, LowType::I64);
            self.bitcast(bits, RAW)
        } else {
            let bytes = match (self.out.as_bits(count), stride) {
                (Some(0), _) => return *element,
                (_, 1) => count,
                _ => {
                    let stride = self.word(i64::from(stride));
                    self.binary(Intrinsic::MulInt, count, stride, LowType::I64)
                }
            };
            self.moved_by(element.data, bytes)
        };
        Element { data, ..*element }
    }

    /// Converts an index from 1 to one from 0.
    fn zero_based(&mut self, index: Value) -> Value {
        let one = self.word(1);
        self.binary(Intrinsic::SubInt, index, one, LowType::I64)
    }

    pub(super) fn element_addr(&mut self, element: &Element) -> Addr {
        let base = self.value(Op::GcLoaded, &[element.memory, element.data], Type::LOADED);
        Addr::inside(base, element.shape.align, Region::Element)
    }

    /// The selector byte of an element of a union type.
    fn selector_addr(&mut self, element: &Element) -> Addr {
        let number = self.number(element);
        let length = self.memory_length(element.memory, element.shape.stride);
        let stride = self.word(i64::from(element.shape.stride));
        let bytes = self.binary(Intrinsic::MulInt, length, stride, LowType::I64);
        let offset = self.binary(Intrinsic::AddInt, bytes, number, LowType::I64);
        let start = self.memory_data(element.memory);
        let address = self.moved_by(start, offset);
        let base = self.value(Op::GcLoaded, &[element.memory, address], Type::LOADED);
        Addr::inside(base, 1, Region::Element)
    }

    /// The value of an element. Throws if it was never set.
    pub(super) fn load_element(&mut self, element: &Element) -> Step<Val> {
        let Shape { ty, repr, .. } = element.shape;
        if let FieldRepr::BitsUnion { selector } = repr {
            return self.load_union_element(element, selector);
        }
        let reference = self.element_reference(element);
        let addr = self.element_addr(element);
        self.load_defined(addr, ty, repr, reference)
    }

    fn load_union_element(&mut self, element: &Element, payload: u32) -> Step<Val> {
        let ty = element.shape.ty;
        let form = self.form(ty)?;
        let selector = self.selector_addr(element);
        let selector = self.load_low(selector, 0, LowType::I8);
        let addr = self.element_addr(element);
        if form.is_memory() {
            let slot = self.slot(form.size, form.align);
            let base = self.slot_addr(slot);
            self.copy_bytes(base, addr.base, payload);
            self.store_low(Addr::own(base, form.align, Region::Raw), payload, selector);
            return Ok(Val::scalar(ty, base));
        }
        let payload = form.leaves.iter().filter(|leaf| leaf.role == LeafRole::Payload);
        let mut leaves: Leaves = payload.map(|leaf| self.load_word(addr, leaf.offset, leaf.bytes)).collect();
        leaves.push(selector);
        Ok(Val { ty, leaves })
    }

    /// The reference in an element that is null while the element is not set; `None` if elements contain no references.
    pub(super) fn element_reference(&mut self, element: &Element) -> Option<Value> {
        let Shape { ty, repr, .. } = element.shape;
        self.types.first_reference(ty, repr)?;
        let addr = self.element_addr(element);
        self.first_reference(addr, ty, repr)
    }

    /// Writes a value of the element's type.
    pub(super) fn store_element(&mut self, element: &Element, val: &Val) -> Step<()> {
        let FieldRepr::BitsUnion { selector: payload } = element.shape.repr else {
            // Boxing may collect, so it comes before the address is computed.
            let val = match element.shape.repr {
                FieldRepr::Pointer => self.any(val)?,
                _ => val.clone(),
            };
            let addr = self.element_addr(element);
            return self.store_stored(addr, &val, element.shape.repr, Some(element.memory));
        };
        let form = self.form(val.ty)?;
        let addr = self.element_addr(element);
        let selector = self.selector(val)?;
        match (&form.kind, &val.leaves[..]) {
            (FormKind::Memory, &[from]) => self.copy_bytes(addr.base, from, payload),
            _ => {
                for (leaf, &word) in form.leaves.iter().zip(&val.leaves) {
                    if leaf.role == LeafRole::Payload {
                        self.store_word(addr, leaf.offset, leaf.bytes, word);
                    }
                }
            }
        }
        let address = self.selector_addr(element);
        self.store_low(address, 0, selector);
        Ok(())
    }

    // ----- Memory and MemoryRef -----

    /// The builtins on memories and arrays.
    pub(super) fn array_builtin(&mut self, op: Builtin) -> Step<()> {
        match op {
            Builtin::Memorynew => self.memory_new(),
            Builtin::Memoryrefnew => self.memory_ref_new(),
            Builtin::Memoryrefget => {
                let reference = self.operand(0)?;
                if self.types.memory_ref_element(reference.ty).is_none() {
                    return self.call_builtin(op);
                }
                let element = self.checked_element(&reference, op)?;
                let val = self.load_element(&element)?;
                self.define(val)
            }
            Builtin::Memoryrefset
            | Builtin::Memoryrefswap
            | Builtin::Memoryrefmodify
            | Builtin::Memoryrefreplace
            | Builtin::Memoryrefsetonce => self.change_element(op),
            Builtin::MemoryrefIsassigned => self.is_assigned_element(),
            Builtin::Memoryrefoffset => {
                let reference = self.operand(0)?;
                if self.types.memory_ref_element(reference.ty).is_none() {
                    return self.call_builtin(op);
                }
                let element = self.element_of(&reference)?;
                let number = self.number(&element);
                let one = self.word(1);
                let offset = self.binary(Intrinsic::AddInt, number, one, LowType::I64);
                self.define(Val::scalar(Type::INT64, offset))
            }
            Builtin::Arrayref | Builtin::Arrayset => self.array_access(op),
            Builtin::Arraylen => {
                let array = self.operand(0)?;
                let Some((elem, dims)) = self.array_operand(&array) else { return self.call_builtin(op) };
                let dims = self.array_dims(&array, elem, dims)?;
                let length = self.product(&dims);
                self.define(Val::scalar(Type::INT64, length))
            }
            Builtin::Arraysize => self.array_size(),
            _ => Err(self.bad_operands()),
        }
    }

    fn memory_new(&mut self) -> Step<()> {
        let ty = self.operand(0)?;
        let length = self.operand(1)?;
        match (self.static_type(&ty), &length.leaves[..]) {
            (Some(ty), &[count]) if length.ty == Type::INT64 && self.types.memory_element(ty).is_some() => {
                let memory = self.new_memory(ty, count);
                self.define(Val::scalar(ty, memory))
            }
            _ => self.call_builtin(Builtin::Memorynew),
        }
    }

    /// Allocates a `Memory`.
    pub(super) fn new_memory(&mut self, ty: Type, length: Value) -> Value {
        let ty = self.address(Address::Type(ty));
        self.value(Op::CallRuntime(RuntimeFn::GcMemory), &[ty, length], Type::TRACKED)
    }

    fn memory_ref_new(&mut self) -> Step<()> {
        let of = self.operand(0)?;
        let start = match (self.types.memory_element(of.ty), &of.leaves[..]) {
            (Some(elem), &[memory]) => self.first_element(memory, elem)?,
            _ if self.types.memory_ref_element(of.ty).is_some() => self.element_of(&of)?,
            _ => return self.call_builtin(Builtin::Memoryrefnew),
        };
        let element = if self.src.args(self.at).len() > 1 {
            let index = self.operand(1)?;
            let (Type::INT64, &[index]) = (index.ty, &index.leaves[..]) else {
                return self.call_builtin(Builtin::Memoryrefnew);
            };
            let count = self.zero_based(index);
            if self.checks_bounds(Builtin::Memoryrefnew) {
                let number = self.number(&start);
                let number = self.binary(Intrinsic::AddInt, number, count, LowType::I64);
                self.check_bounds(&of, index, number, &start)?;
            }
            self.moved_element(&start, count)
        } else {
            start
        };
        let val = self.memory_ref(&element)?;
        self.define(val)
    }

    fn memory_ref(&mut self, element: &Element) -> Step<Val> {
        let ty = self.types.memory_ref(element.shape.ty).map_err(|_| self.bad_operands())?;
        Ok(Val { ty, leaves: Leaves::from_slice(&[element.data, element.memory]) })
    }

    /// Throws `BoundsError(of, index)` unless `number`, from 0, is less than the length.
    fn check_bounds(&mut self, of: &Val, index: Value, number: Value, element: &Element) -> Step<()> {
        let length = self.memory_length(element.memory, element.shape.stride);
        let bad = self.binary(Intrinsic::UleInt, length, number, LowType::I8);
        self.throw_out_of_bounds(bad, of, index)
    }

    pub(super) fn throw_out_of_bounds(&mut self, bad: Value, of: &Val, index: Value) -> Step<()> {
        self.throw_if_with(bad, |lowering| {
            let of = lowering.object(of)?;
            lowering.throw(RuntimeFn::ThrowBoundsOf, &[of, index]);
            Ok(())
        })
    }

    /// The element that a `MemoryRef` refers to. Throws if it is out of bounds and the current statement checks that.
    fn checked_element(&mut self, reference: &Val, op: Builtin) -> Step<Element> {
        let element = self.element_of(reference)?;
        if self.checks_bounds(op) {
            let number = self.number(&element);
            let one = self.word(1);
            self.check_bounds(reference, one, number, &element)?;
        }
        Ok(element)
    }

    fn change_element(&mut self, op: Builtin) -> Step<()> {
        let Some(change) = Change::of(op) else { return Err(self.bad_operands()) };
        let reference = self.operand(0)?;
        let Some(elem) = self.types.memory_ref_element(reference.ty) else { return self.call_builtin(op) };
        let element = self.checked_element(&reference, op)?;
        self.change(change, &Place { ty: elem, kind: PlaceKind::Element(element) }, 1)
    }

    fn is_assigned_element(&mut self) -> Step<()> {
        let reference = self.operand(0)?;
        if self.types.memory_ref_element(reference.ty).is_none() {
            return self.call_builtin(Builtin::MemoryrefIsassigned);
        }
        let element = self.element_of(&reference)?;
        let inside = if self.checks_bounds(Builtin::MemoryrefIsassigned) {
            let number = self.number(&element);
            let length = self.memory_length(element.memory, element.shape.stride);
            self.binary(Intrinsic::UltInt, number, length, LowType::I8)
        } else {
            self.truth(true)
        };
        let mut join = self.join();
        let outside = self.split(inside);
        let place = Place { ty: element.shape.ty, kind: PlaceKind::Element(element) };
        let set = self.is_set(&place)?;
        self.leave_to(&mut join, Leaves::from_slice(&[set]));
        self.continue_in(outside);
        let no = self.truth(false);
        self.leave_to(&mut join, Leaves::from_slice(&[no]));
        let leaves = self.meet(join);
        self.define(Val { ty: Type::BOOL, leaves })
    }

    // ----- arrays -----

    fn array_operand(&self, array: &Val) -> Option<(Type, u32)> {
        self.types.array_parts(array.ty).filter(|_| array.leaves.len() == 1)
    }

    fn header(&mut self, array: Value, at: u32, low: LowType) -> Value {
        self.load_low(Addr::inside(array, 8, Region::Header), at, low)
    }

    /// The first element of an array.
    pub(super) fn array_start(&mut self, array: Value, elem: Type) -> Step<Element> {
        let shape = self.shape(elem)?;
        let data = self.header(array, ARRAY_DATA, RAW);
        let memory = self.header(array, ARRAY_MEMORY, TRACKED);
        Ok(Element { shape, data, memory })
    }

    /// The sizes of an array.
    pub(super) fn array_dims(&mut self, array: &Val, elem: Type, dims: u32) -> Step<Leaves> {
        let Some(&array) = array.leaves.first() else { return Ok(Leaves::new()) };
        let region = self.dims_region(elem, dims)?;
        let dim = |n| self.load_low(Addr::inside(array, 8, region), ARRAY_DIMS + 8 * n, LowType::I64);
        Ok((0..dims).map(dim).collect())
    }

    /// Emits a load of a dimension of an array, counted from 1.
    pub(super) fn read_dim(&mut self, array: Value, elem: Type, dims: u32, which: u32) {
        if let Ok(region) = self.dims_region(elem, dims) {
            self.load_low(Addr::inside(array, 8, region), ARRAY_DIMS + 8 * (which - 1), LowType::I64);
        }
    }

    /// The region of an array's dimensions. [`Region::Size`] promises an upper bound, which holds only for arrays of one
    /// dimension with elements of nonzero size: beside a dimension of 0, others may have any size.
    fn dims_region(&mut self, elem: Type, dims: u32) -> Step<Region> {
        let bounded = dims == 1 && self.shape(elem)?.stride != 0;
        Ok(if bounded { Region::Size } else { Region::Header })
    }

    fn product(&mut self, dims: &[Value]) -> Value {
        let mut all: Option<Value> = None;
        for &dim in dims {
            all = Some(match all {
                None => dim,
                Some(all) => self.binary(Intrinsic::MulInt, all, dim, LowType::I64),
            });
        }
        all.unwrap_or_else(|| self.word(1))
    }

    /// `%new(Array{T, N}, ref, size)`.
    pub(super) fn new_array(&mut self, ty: Type, elem: Type, dims: u32) -> Step<()> {
        let (reference, size) = (self.operand(0)?, self.operand(1)?);
        let (wanted, size_type) = self.array_field_types(elem, dims)?;
        let reference = self.checked(&reference, wanted)?;
        let size = self.checked(&size, size_type)?;
        let element = self.element_of(&reference)?;
        let sizes = self.size_leaves(&size, dims)?;
        if !self.array_parts && !has_room(self.types, self.src, self.at) {
            self.test_room(&element, &sizes);
        }
        let array = self.make_array(ty, &element, &sizes)?;
        self.define(Val::scalar(ty, array))
    }

    /// Throws unless an array of these sizes has no more elements than there are from its first one on.
    fn test_room(&mut self, first: &Element, sizes: &[Value]) {
        let (count, mut bad) = self.counted(sizes);
        let number = self.number(first);
        let length = self.memory_length(first.memory, first.shape.stride);
        let room = self.binary(Intrinsic::SubInt, length, number, LowType::I64);
        bad.push(self.binary(Intrinsic::SltInt, room, count, LowType::I8));
        let text = self.cx.names.intern(NEW_PARTS_DO_NOT_FIT);
        if let Some(bad) = bad.into_iter().reduce(|a, b| self.binary(Intrinsic::OrInt, a, b, LowType::I8)) {
            let text = self.permanent(Address::String(text));
            self.throw_if(bad, RuntimeFn::ThrowError, &[text]);
        }
    }

    /// The number of elements of an array of these sizes, and the conditions under which the sizes are invalid: one is
    /// negative, or their product overflows.
    fn counted(&mut self, sizes: &[Value]) -> (Value, Vec<Value>) {
        let Some((&first, rest)) = sizes.split_first() else { return (self.word(1), Vec::new()) };
        let (mut length, mut bad) = (first, Vec::new());
        let known = |l: &Self, n: Value| l.out.as_bits(n).and_then(|bits| i64::try_from(bits as u64).ok());
        for &size in rest {
            length = match (known(self, length), known(self, size)) {
                (Some(a), Some(b)) if a.checked_mul(b).is_some() => self.word(a * b),
                _ => {
                    let types = [Type::I64, Type::I8];
                    let product =
                        self.emit(Op::Intrinsic(Intrinsic::CheckedSmulInt), &[length, size], &types);
                    let made: Leaves = self.out.results(product).collect();
                    bad.push(made[1]);
                    made[0]
                }
            };
        }
        for &size in sizes {
            if known(self, size).is_some() {
                continue;
            }
            let zero = self.word(0);
            bad.push(self.binary(Intrinsic::SltInt, size, zero, LowType::I8));
        }
        (length, bad)
    }

    /// The types of the fields `ref` and `size` of an array.
    fn array_field_types(&mut self, elem: Type, dims: u32) -> Step<(Type, Type)> {
        let reference = self.types.memory_ref(elem).map_err(|_| self.bad_operands())?;
        let size = vec![Type::INT64; dims.min(64) as usize];
        let size = self.types.tuple(&size).map_err(|_| self.bad_operands())?;
        Ok((reference, size))
    }

    /// The elements of a tuple of `Int64`.
    fn size_leaves(&mut self, size: &Val, dims: u32) -> Step<Leaves> {
        let mut sizes = Leaves::new();
        for n in 0..dims as usize {
            sizes.extend(self.field(size, n)?.leaves);
        }
        Ok(sizes)
    }

    /// Allocates an array over a `Memory`.
    fn make_array(&mut self, ty: Type, start: &Element, sizes: &[Value]) -> Step<Value> {
        let region = self.dims_region(start.shape.ty, sizes.len() as u32)?;
        let array = self.value(Op::Alloc(ty), &[], Type::TRACKED);
        let addr = Addr::inside(array, 8, Region::Header);
        self.store_low(addr, ARRAY_DATA, start.data);
        self.store_low(addr, ARRAY_MEMORY, start.memory);
        for (n, &size) in (0..).zip(sizes) {
            self.store_low(Addr::inside(array, 8, region), ARRAY_DIMS + 8 * n, size);
        }
        Ok(array)
    }

    /// Allocates a vector of `length` elements.
    pub(super) fn new_vector(&mut self, ty: Type, elem: Type, length: Value) -> Step<Value> {
        let memory_type = self.types.memory(elem).map_err(|_| self.bad_operands())?;
        let memory = self.new_memory(memory_type, length);
        self.vector_over(ty, elem, memory, length)
    }

    /// Allocates a vector that has the first elements of a `Memory`.
    pub(super) fn vector_over(&mut self, ty: Type, elem: Type, memory: Value, length: Value) -> Step<Value> {
        let start = self.first_element(memory, elem)?;
        self.make_array(ty, &start, &[length])
    }

    /// Allocates an array of the given sizes. Throws `ArgumentError`, as the run time does, if a size is negative or their product
    /// overflows.
    pub(super) fn new_array_of(&mut self, ty: Type, elem: Type, sizes: &[Value]) -> Step<Value> {
        if sizes.is_empty() {
            return Err(self.bad_operands());
        }
        let (length, bad) = self.counted(sizes);
        let text = self.cx.names.intern("invalid Array dimensions");
        if let Some(bad) = bad.into_iter().reduce(|a, b| self.binary(Intrinsic::OrInt, a, b, LowType::I8)) {
            let text = self.permanent(Address::String(text));
            self.throw_if(bad, RuntimeFn::ThrowArgument, &[text]);
        }
        let memory_type = self.types.memory(elem).map_err(|_| self.bad_operands())?;
        let memory = self.new_memory(memory_type, length);
        let start = self.first_element(memory, elem)?;
        self.make_array(ty, &start, sizes)
    }

    /// The address of an array's first element.
    pub(super) fn array_address(&mut self, array: Value) -> Value {
        self.header(array, ARRAY_DATA, RAW)
    }

    /// A field of an array, memory or reference; `None` if operand 1 is not a constant that names one.
    pub(super) fn array_field(&mut self, val: &Val) -> Step<Option<Val>> {
        let Some(names) = self.types.laid_out_fields(val.ty) else { return Ok(None) };
        let Some(n) = self.named_field(names)? else { return Ok(None) };
        if let (Some((elem, dims)), &[array]) = (self.types.array_parts(val.ty), &val.leaves[..]) {
            if n == 0 {
                let start = self.array_start(array, elem)?;
                return self.memory_ref(&start).map(Some);
            }
            let (_, ty) = self.array_field_types(elem, dims)?;
            let sizes = self.array_dims(val, elem, dims)?;
            let sizes: Vec<Val> = sizes.iter().map(|&size| Val::scalar(Type::INT64, size)).collect();
            return self.aggregate(ty, &sizes).map(Some);
        }
        let address = self.types.ptr(Type::NOTHING).map_err(|_| self.bad_operands())?;
        Ok(match (&val.leaves[..], n) {
            (&[memory], 0) => {
                let stride = match self.types.memory_element(val.ty) {
                    Some(elem) => self.shape(elem)?.stride,
                    None => 0,
                };
                Some(Val::scalar(Type::INT64, self.memory_length(memory, stride)))
            }
            (&[memory], _) => Some(Val::scalar(address, self.memory_data(memory))),
            (&[data, _], 0) => Some(Val::scalar(address, data)),
            (&[_, memory], _) => match self.types.memory_ref_element(val.ty) {
                Some(elem) => {
                    let ty = self.types.memory(elem).map_err(|_| self.bad_operands())?;
                    Some(Val::scalar(ty, memory))
                }
                None => None,
            },
            _ => None,
        })
    }

    /// The index in `names` of the field that operand 1 names, by symbol or number.
    fn named_field(&mut self, names: [&str; 2]) -> Step<Option<usize>> {
        let which = self.arg(1)?;
        Ok(match self.src.as_const(which) {
            Some(brolga_ir::Const::Symbol(name)) => {
                let name = self.cx.names.text(*name);
                names.iter().position(|&n| n == name)
            }
            Some(&brolga_ir::Const::Bits { ty: Type::INT64, bits: bits @ 1..=2 }) => Some(bits as usize - 1),
            _ => None,
        })
    }

    /// `setfield!(array, :ref, x)` and `:size`; false if operand 1 is not a constant that names one of the two fields.
    pub(super) fn set_array_field(&mut self, val: &Val) -> Step<bool> {
        let (Some((elem, dims)), &[array]) = (self.types.array_parts(val.ty), &val.leaves[..]) else {
            return Ok(false);
        };
        if !self.array_parts {
            return Ok(false);
        }
        let Some(n) = self.named_field(["ref", "size"])? else { return Ok(false) };
        let given = self.operand(2)?;
        let (reference, size) = self.array_field_types(elem, dims)?;
        let addr = Addr::inside(array, 8, Region::Header);
        if n == 0 {
            let reference = self.checked(&given, reference)?;
            let element = self.element_of(&reference)?;
            self.store_low(addr, ARRAY_DATA, element.data);
            self.store_low(addr, ARRAY_MEMORY, element.memory);
            self.barrier(array, &[element.memory]);
        } else {
            let size = self.checked(&given, size)?;
            let addr = Addr::inside(array, 8, self.dims_region(elem, dims)?);
            for (n, leaf) in (0..).zip(self.size_leaves(&size, dims)?) {
                self.store_low(addr, ARRAY_DIMS + 8 * n, leaf);
            }
        }
        self.define(given)?;
        Ok(true)
    }

    /// `arrayref(check, a, i…)` and `arrayset(check, a, x, i…)`.
    fn array_access(&mut self, op: Builtin) -> Step<()> {
        let array = self.operand(1)?;
        let first = if op == Builtin::Arrayref { 2 } else { 3 };
        let (Some((elem, dims)), &[object]) = (self.array_operand(&array), &array.leaves[..]) else {
            return self.call_builtin(op);
        };
        let mut indices = Leaves::new();
        for n in first..self.src.args(self.at).len() {
            let index = self.operand(n)?;
            match index.leaves[..] {
                [leaf] if index.ty == Type::INT64 => indices.push(leaf),
                _ => return self.call_builtin(op),
            }
        }
        let checked = self.checks_bounds(op);
        let extents = self.array_dims(&array, elem, dims)?;
        let (number, inside) = self.linear_index(&indices, &extents);
        if checked {
            let bad = self.not(inside);
            match indices[..] {
                [index] => self.throw_out_of_bounds(bad, &array, index)?,
                _ => self.throw_if_with(bad, |lowering| {
                    let indices: Vec<Val> = indices.iter().map(|&i| Val::scalar(Type::INT64, i)).collect();
                    let types = vec![Type::INT64; indices.len()];
                    let ty = lowering.types.tuple(&types).map_err(|_| lowering.bad_operands())?;
                    let index = lowering.aggregate(ty, &indices)?;
                    lowering.throw_new("BoundsError", &[array.clone(), index])
                })?,
            }
        }
        let start = self.array_start(object, elem)?;
        let element = self.moved_element(&start, number);
        if op == Builtin::Arrayref {
            let val = self.load_element(&element)?;
            return self.define(val);
        }
        let given = self.operand(2)?;
        let val = self.checked(&given, elem)?;
        self.store_element(&element, &val)?;
        self.define(array)
    }

    /// The index of an element from 0, and whether it is in bounds. If there are fewer indices than dimensions, the last one
    /// ranges over all remaining dimensions.
    fn linear_index(&mut self, indices: &[Value], extents: &[Value]) -> (Value, Value) {
        let (mut at, mut stride): (Option<Value>, Option<Value>) = (None, None);
        let mut inside: Option<Value> = None;
        for (n, &index) in indices.iter().enumerate() {
            let is_last = n + 1 == indices.len();
            let rest = extents.get(n..).unwrap_or_default();
            let extent = match is_last {
                true => self.product(rest),
                false => rest.first().copied().unwrap_or_else(|| self.word(1)),
            };
            let number = self.zero_based(index);
            let fits = self.binary(Intrinsic::UltInt, number, extent, LowType::I8);
            inside = Some(match inside {
                None => fits,
                Some(inside) => self.binary(Intrinsic::AndInt, inside, fits, LowType::I8),
            });
            let term = match stride {
                None => number,
                Some(stride) => self.binary(Intrinsic::MulInt, number, stride, LowType::I64),
            };
            at = Some(match at {
                None => term,
                Some(at) => self.binary(Intrinsic::AddInt, at, term, LowType::I64),
            });
            stride = Some(match stride {
                None => extent,
                Some(stride) => self.binary(Intrinsic::MulInt, stride, extent, LowType::I64),
            });
        }
        let at = at.unwrap_or_else(|| self.word(0));
        let inside = inside.unwrap_or_else(|| {
            // Without indices the array must have exactly one element.
            let length = self.product(extents);
            let one = self.word(1);
            self.equal(length, one)
        });
        (at, inside)
    }

    fn array_size(&mut self) -> Step<()> {
        let array = self.operand(0)?;
        let which = self.arg(1)?;
        let dim = self.src.as_bits(which).filter(|_| self.src.ty(which) == Type::INT64);
        let (Some((elem, dims)), Some(dim @ 1..)) = (self.array_operand(&array), dim.map(|bits| bits as i64))
        else {
            return self.call_builtin(Builtin::Arraysize);
        };
        let sizes = self.array_dims(&array, elem, dims)?;
        let size = usize::try_from(dim - 1).ok().and_then(|n| sizes.get(n).copied());
        let size = size.unwrap_or_else(|| self.word(1));
        self.define(Val::scalar(Type::INT64, size))
    }
}
