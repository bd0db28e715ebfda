//! Raw memory: allocated, filled, used in bounds, freed.
//!
//! ```text
//! %1 = malloc(n * size)            n is a power of two
//! %2 = bitcast(Ptr{T}, %1)
//!      pointerset(%2, v, i, 1)     for every i: nothing is read before it is written
//!      …                           loads and stores at (x & (n - 1)) + 1
//!      free(%1)
//! ```
//!
//! Addresses are not operands of other statements. A path that leaves the region early leaks its memory.

use super::func::{FuncGen, Memory};
use super::palette::holds_float;
use brolga_ir::func::ForeignData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, Op, Type, TypeKind, Value};

impl FuncGen<'_> {
    /// A region with its own memory.
    pub(super) fn memory_region(&mut self, depth: usize) {
        let element = self.palette.concrete(self.rng);
        let is_text = self.palette.texts.contains(&element);
        let Ok(layout) = self.cx.types.layout(element) else { return };
        if is_text || !layout.is_bits() || layout.size == 0 {
            return;
        }
        let count = 1 << self.rng.below(4);
        let (raw, pointer) = self.elements(element, count);
        for index in 0..count {
            let index = self.bits(Type::INT64, index as u128 + 1);
            self.store(pointer, element, index);
        }
        self.memories.push(Memory { pointer, element, count });
        self.region(depth);
        self.memories.pop();
        if self.block.is_some() {
            self.free(raw);
        }
    }

    /// Memory for `count` elements, as returned by `malloc` and as a pointer to elements.
    pub(super) fn elements(&mut self, element: Type, count: usize) -> (Value, Value) {
        let types = &self.cx.types;
        let of = |ty| types.ptr(ty).expect("every type with a layout has a pointer type");
        let (raw_type, typed) = (of(Type::NOTHING), of(element));
        let size = types.layout(element).map_or(0, |l| u128::from(l.size));
        let size = self.bits(Type::UINT64, size * count as u128);
        let raw = self.foreign_call("malloc", raw_type, Type::UINT64, size);
        (raw, self.emit_hidden(Op::Intrinsic(Intrinsic::Bitcast), &[raw], typed))
    }

    pub(super) fn free(&mut self, raw: Value) {
        let raw_type = self.func.ty(raw);
        self.foreign_call("free", Type::NOTHING, raw_type, raw);
    }

    fn foreign_call(&mut self, name: &str, result: Type, param: Type, argument: Value) -> Value {
        let name = Some(self.cx.names.intern(name));
        let data = ForeignData { name, result, params: [param].into(), variadic_after: None };
        let foreign = self.func.add_foreign(data);
        self.emit_hidden(Op::ForeignCall(foreign), &[argument], result)
    }

    /// A load or a store.
    pub(super) fn access(&mut self) {
        let Some(&Memory { pointer, element, count }) = self.rng.pick(&self.memories) else { return };
        let (pointer, count) = self.offset(pointer, element, count);
        let index = if self.rng.chance(30) {
            let index = self.rng.between(1, count) as u128;
            self.bits(Type::INT64, index)
        } else {
            let (raw, mask) = (self.value(Type::INT64), self.bits(Type::INT64, count as u128 - 1));
            let start = self.intrinsic(Intrinsic::AndInt, &[raw, mask], Type::INT64);
            let one = self.bits(Type::INT64, 1);
            self.intrinsic(Intrinsic::AddInt, &[start, one], Type::INT64)
        };
        if self.rng.chance(50) {
            self.store(pointer, element, index);
        } else {
            let align = self.align(element);
            self.intrinsic(Intrinsic::Pointerref, &[pointer, index, align], element);
        }
    }

    /// Occasionally the second half of the memory, through `add_ptr`, or `add_ptr` and `sub_ptr`.
    fn offset(&mut self, pointer: Value, element: Type, count: usize) -> (Value, usize) {
        if count < 2 || self.rng.chance(70) {
            return (pointer, count);
        }
        let ty = self.func.ty(pointer);
        let size = self.cx.types.layout(element).map_or(0, |l| u128::from(l.size));
        let half = count / 2;
        let there = self.bits(Type::UINT64, size * half as u128);
        let moved = self.emit_hidden(Op::Intrinsic(Intrinsic::AddPtr), &[pointer, there], ty);
        if self.rng.chance(50) {
            return (moved, half);
        }
        (self.emit_hidden(Op::Intrinsic(Intrinsic::SubPtr), &[moved, there], ty), count)
    }

    fn store(&mut self, pointer: Value, element: Type, index: Value) {
        let value = match self.cx.types.kind(element) {
            TypeKind::Union(_) => self.value_for(element),
            _ => self.value(element),
        };
        self.store_value(pointer, element, value, index);
    }

    pub(super) fn store_value(&mut self, pointer: Value, element: Type, value: Value, index: Value) {
        let align = self.align(element);
        let ty = self.func.ty(pointer);
        self.emit_hidden(Op::Intrinsic(Intrinsic::Pointerset), &[pointer, value, index, align], ty);
    }

    /// The alignment operand of an access: none, or the type's own alignment, which `malloc` guarantees.
    pub(super) fn align(&mut self, element: Type) -> Value {
        let natural = self.cx.types.layout(element).map_or(1, |l| u128::from(l.align));
        let align = if self.rng.chance(50) { 1 } else { natural };
        self.bits(Type::INT64, align)
    }

    /// An atomic access to an integer of at most 64 bits that is not accessed elsewhere.
    pub(super) fn atomic(&mut self) {
        let atomic = |m: &&Memory| {
            let is_int = self.palette.ints.contains(&m.element) && !holds_float(self.cx, m.element);
            is_int && self.cx.types.layout(m.element).is_ok_and(|l| l.size <= 8)
        };
        let usable: Vec<Memory> = self.memories.iter().filter(atomic).copied().collect();
        let Some(&Memory { pointer, element, .. }) = self.rng.pick(&usable) else { return self.access() };
        let pointer_type = self.func.ty(pointer);
        let order = |this: &mut Self, names: &[&str]| {
            let name = this.rng.pick(names).copied().unwrap_or("sequentially_consistent");
            this.symbol(name)
        };
        const LOAD: &[&str] = &["monotonic", "acquire", "sequentially_consistent"];
        const STORE: &[&str] = &["monotonic", "release", "sequentially_consistent"];
        const BOTH: &[&str] = &["monotonic", "acquire_release", "sequentially_consistent"];
        match self.rng.below(6) {
            4 => self.modify(pointer, element),
            5 => {
                let order =
                    order(self, &["acquire", "release", "acquire_release", "sequentially_consistent"]);
                let op = Op::Intrinsic(Intrinsic::AtomicFence);
                self.emit_void(op, &[order], &[], &[Type::NOTHING]);
            }
            0 => {
                let order = order(self, LOAD);
                self.intrinsic(Intrinsic::AtomicPointerref, &[pointer, order], element);
            }
            1 => {
                let (value, order) = (self.value(element), order(self, STORE));
                let op = Op::Intrinsic(Intrinsic::AtomicPointerset);
                self.emit_hidden(op, &[pointer, value, order], pointer_type);
            }
            2 => {
                let (value, order) = (self.value(element), order(self, BOTH));
                self.intrinsic(Intrinsic::AtomicPointerswap, &[pointer, value, order], element);
            }
            _ => self.replace(pointer, element),
        }
    }

    fn modify(&mut self, pointer: Value, element: Type) {
        let Some(pair) = self.cx.types.find_decl(self.cx.names.intern("Pair")) else { return };
        let Ok(both) = self.cx.types.nominal(pair, &[element, element]) else { return };
        let function = self.rng.pick(&["+", "-", "&", "|", "min", "max"]).copied().unwrap_or("+");
        let function = self.cx.types.base_function(function);
        let function = self.func.constant(Const::Singleton(function));
        let (operand, order) = (self.value(element), self.symbol("acquire_release"));
        let operands = [pointer, function, operand, order];
        self.intrinsic(Intrinsic::AtomicPointermodify, &operands, both);
    }

    fn replace(&mut self, pointer: Value, element: Type) {
        let types = &self.cx.types;
        let names = [self.cx.names.intern("old"), self.cx.names.intern("success")];
        let both = types.tuple(&[element, Type::BOOL]).and_then(|tuple| types.named_tuple(&names, tuple));
        let Ok(both) = both else { return };
        let (expected, new) = (self.value(element), self.value(element));
        let (success, failure) = (self.symbol("acquire_release"), self.symbol("monotonic"));
        let operands = [pointer, expected, new, success, failure];
        self.intrinsic(Intrinsic::AtomicPointerreplace, &operands, both);
    }
}
