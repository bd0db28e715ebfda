//! Values in memory: slots, values in memory form, and targets of `Ptr`.
//!
//! ```text
//!  base ──┐
//!         ▼ + offset        + leaf.offset
//!  ───────┬─────────────────┬──────────────
//!         │ value …         │ leaf           alignment is known at base + offset
//! ```
//!
//! | memory | a value in memory form | a `Bool` |
//! |---|---|---|
//! | *own*: written by this code only, and never after the value is made | is used in place | is 0 or 1 |
//! | inside an object, which may die or change | is copied out | is 0 or 1 |
//! | the target of a `Ptr` | is copied out, byte by byte | is the lowest bit of its byte |
//!
//! In an object a field is stored according to its `FieldRepr`: `load_stored` and `store_stored` handle pointers that may be
//! null, and pointer fields of immutable types, which hold boxes. A value that is in an object because it has too many
//! leaves is copied word by word between the object and its memory.
//!
//! The last payload word of a union may be shorter than a register. It is then read and written in pieces, so that no byte
//! beside it is touched.

use super::addr::{Addr, Owner};
use super::error::Refusal;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::abi::{Leaf, LeafRole};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::types::{FieldRepr, Layout, Repr};
use brolga_ir::{LowType, Op, PtrClass, RuntimeFn, Type, Value};

/// The powers of two that `bytes` (below 8) is made of, largest first, with their distances.
fn pieces(bytes: u32) -> impl Iterator<Item = (u32, LowType)> {
    let parts = [(4, LowType::I32), (2, LowType::I16), (1, LowType::I8)];
    let mut at = 0;
    parts.into_iter().filter(move |(size, _)| bytes & size != 0).map(move |(size, low)| {
        let here = at;
        at += size;
        (here, low)
    })
}

impl Lowering<'_> {
    /// The operand and the access for bytes after a place.
    fn access(&mut self, addr: Addr, within: u32) -> (Value, Access) {
        let align_log2 = addr.align_at(within).max(1).ilog2() as u8;
        let distance = addr.offset.wrapping_add(i64::from(within));
        let (base, offset) = match i32::try_from(distance) {
            Ok(offset) => (addr.base, offset),
            Err(_) => (self.moved(addr.base, distance), 0),
        };
        (base, Access { offset, region: addr.region, align_log2 })
    }

    pub(super) fn load_low(&mut self, addr: Addr, within: u32, low: LowType) -> Value {
        let (base, access) = self.access(addr, within);
        self.value(Op::Load(access), &[base], Type::low(low))
    }

    pub(super) fn store_low(&mut self, addr: Addr, within: u32, value: Value) {
        let (base, access) = self.access(addr, within);
        self.emit(Op::Store(access), &[base, value], &[]);
    }

    /// Up to eight bytes as the low bytes of a word.
    pub(super) fn load_word(&mut self, addr: Addr, within: u32, bytes: u32) -> Value {
        if bytes == 8 {
            return self.load_low(addr, within, LowType::I64);
        }
        let mut word = None;
        for (at, low) in pieces(bytes) {
            let piece = self.load_low(addr, within + at, low);
            let piece = self.resize(piece, LowType::I64);
            word = Some(match word {
                None => piece,
                Some(word) => {
                    let count = self.word(i64::from(8 * at));
                    let piece = self.binary(Intrinsic::ShlInt, piece, count, LowType::I64);
                    self.binary(Intrinsic::OrInt, word, piece, LowType::I64)
                }
            });
        }
        word.unwrap_or_else(|| self.word(0))
    }

    /// Writes the low bytes of a word.
    pub(super) fn store_word(&mut self, addr: Addr, within: u32, bytes: u32, word: Value) {
        if bytes == 8 {
            return self.store_low(addr, within, word);
        }
        for (at, low) in pieces(bytes) {
            let count = self.word(i64::from(8 * at));
            let piece =
                if at == 0 { word } else { self.binary(Intrinsic::LshrInt, word, count, LowType::I64) };
            let piece = self.resize(piece, low);
            self.store_low(addr, within + at, piece);
        }
    }

    fn load_leaf(&mut self, addr: Addr, leaf: &Leaf) -> Value {
        match leaf.role {
            LeafRole::Payload => self.load_word(addr, leaf.offset, leaf.bytes),
            LeafRole::Value(Type::BOOL) if addr.owner == Owner::Pointer => {
                let byte = self.load_low(addr, leaf.offset, leaf.low);
                self.lowest_bit(byte)
            }
            _ => self.load_low(addr, leaf.offset, leaf.low),
        }
    }

    /// The value of type `ty` at a place.
    pub(super) fn load(&mut self, addr: Addr, ty: Type) -> Step<Val> {
        let form = self.form(ty)?;
        if form.is_object() && self.types.repr(ty) == Repr::Aggregate {
            let object = self.value(Op::Alloc(ty), &[], Type::TRACKED);
            let layout = self.layout(ty)?;
            self.copy_words(Addr::inside(object, layout.align, Region::Immutable), addr, layout);
            return Ok(Val::scalar(ty, object));
        }
        if !form.is_memory() {
            let leaves: Leaves = form.leaves.iter().map(|leaf| self.load_leaf(addr, leaf)).collect();
            return Ok(Val { ty, leaves });
        }
        let there = self.moved(addr.base, addr.offset);
        if addr.owner == Owner::Own {
            return Ok(Val::scalar(ty, there));
        }
        let slot = self.slot(form.size, form.align);
        let copy = self.slot_addr(slot);
        self.copy_bytes(copy, there, form.size);
        Ok(Val::scalar(ty, copy))
    }

    /// Writes a value to a place that holds it. Returns the references that were stored, for the barrier.
    pub(super) fn store(&mut self, addr: Addr, val: &Val) -> Step<Leaves> {
        let form = self.form(val.ty)?;
        if let (true, &[from]) = (form.is_memory(), &val.leaves[..]) {
            let there = self.moved(addr.base, addr.offset);
            self.copy_bytes(there, from, form.size);
            return Ok(Leaves::new());
        }
        if let (true, &[object]) = (form.is_object(), &val.leaves[..])
            && self.types.repr(val.ty) == Repr::Aggregate
        {
            let layout = self.layout(val.ty)?;
            let from = Addr::inside(object, layout.align, Region::Immutable);
            return Ok(self.copy_words(addr, from, layout));
        }
        let mut references = Leaves::new();
        for (leaf, &value) in form.leaves.iter().zip(&val.leaves) {
            match leaf.role {
                LeafRole::Payload => self.store_word(addr, leaf.offset, leaf.bytes, value),
                _ => self.store_low(addr, leaf.offset, value),
            }
            if leaf.low == LowType::Ptr(PtrClass::Tracked) {
                references.push(value);
            }
        }
        Ok(references)
    }

    /// Copies a value that holds references. Returns these.
    fn copy_words(&mut self, to: Addr, from: Addr, layout: &Layout) -> Leaves {
        let mut references = Leaves::new();
        let mut at = 0;
        while at < layout.size {
            let bytes = (layout.size - at).min(8);
            if layout.pointers.binary_search(&at).is_ok() {
                let reference = self.load_low(from, at, LowType::Ptr(PtrClass::Tracked));
                self.store_low(to, at, reference);
                references.push(reference);
            } else {
                let word = self.load_word(from, at, bytes);
                self.store_word(to, at, bytes, word);
            }
            at += bytes;
        }
        references
    }

    // ----- fields and elements -----

    /// The value of a field of an immutable value in memory. Throws if it is an undefined reference.
    pub(super) fn load_stored(&mut self, addr: Addr, ty: Type, repr: FieldRepr) -> Step<Val> {
        match repr {
            FieldRepr::Pointer => {
                let leaf = self.load_low(addr, 0, LowType::Ptr(PtrClass::Tracked));
                self.reference(leaf, ty)
            }
            FieldRepr::Inline | FieldRepr::BitsUnion { .. } => self.load(addr, ty),
        }
    }

    /// The referent of a reference field. Throws if it is undefined.
    pub(super) fn reference(&mut self, leaf: Value, ty: Type) -> Step<Val> {
        self.throw_if_null(leaf);
        self.unbox(leaf, ty)
    }

    /// Throws `UndefRefError` if a reference is null.
    pub(super) fn throw_if_null(&mut self, leaf: Value) {
        let undefined = self.is_null(leaf);
        self.throw_if(undefined, RuntimeFn::ThrowUndefRef, &[]);
    }

    /// Writes a value of the place's type to a field or element of `parent`; without a parent, to an object allocated after
    /// the last safepoint, which needs no barrier.
    pub(super) fn store_stored(
        &mut self,
        addr: Addr,
        val: &Val,
        repr: FieldRepr,
        parent: Option<Value>,
    ) -> Step<()> {
        let references = match repr {
            FieldRepr::Pointer => {
                let reference = self.object(val)?;
                self.store_low(addr, 0, reference);
                Leaves::from_slice(&[reference])
            }
            FieldRepr::Inline | FieldRepr::BitsUnion { .. } => self.store(addr, val)?,
        };
        if let Some(parent) = parent {
            self.barrier(parent, &references);
        }
        Ok(())
    }

    /// Emits the write barrier for values stored into an object. Permanent objects need no barrier.
    pub(super) fn barrier(&mut self, parent: Value, children: &[Value]) {
        let mut operands = Leaves::from_slice(&[parent]);
        operands.extend(children.iter().copied().filter(|&child| !self.is_permanent(child)));
        if operands.len() > 1 {
            self.emit(Op::WriteBarrier, &operands, &[]);
        }
    }

    // ----- pointers -----

    /// `pointerref(p, i, align)` and `pointerset(p, x, i, align)`: the place of element `i`, counted from 1.
    fn element(&mut self, pointer: Value, pointee: Type, index: usize) -> Step<Addr> {
        let size = self.pointee_size(pointee)?;
        let align = self.arg(index + 1).map(|v| self.src.as_bits(v))?;
        // An unknown or invalid alignment guarantees nothing.
        let align = match align {
            Some(n) if n.is_power_of_two() => n.min(16) as u32,
            _ => 1,
        };
        let (i, _) = self.scalar_operand(index)?;
        if self.low(i) != LowType::I64 {
            return Err(self.bad_operands());
        }
        let size = i64::from(size);
        if let Some(i) = self.out.as_bits(i) {
            let offset = (i as i64).wrapping_sub(1).wrapping_mul(size);
            return Ok(Addr::pointer(pointer, offset, align));
        }
        let distance = if size == 1 {
            i
        } else {
            let size = self.word(size);
            self.binary(Intrinsic::MulInt, i, size, LowType::I64)
        };
        let base = self.value(Op::Intrinsic(Intrinsic::AddPtr), &[pointer, distance], Type::PTR);
        Ok(Addr::pointer(base, -size, align))
    }

    /// The distance of two elements in memory. Types with addresses inside are objects there.
    fn pointee_size(&mut self, pointee: Type) -> Step<u32> {
        let form = self.form(pointee)?;
        let members = self.types.members(&pointee);
        if members.len() == 1 && !self.types.layout(pointee).is_ok_and(|l| l.is_bits()) {
            let what = format!(
                "a `Ptr` to values of type `{}`, which hold references,",
                self.types.display(pointee)
            );
            return Err(self.report(Refusal::Unsupported { what }));
        }
        Ok(form.size.next_multiple_of(form.align.max(1)))
    }

    /// The address operand, and its pointee type.
    pub(super) fn pointer_operand(&mut self, n: usize) -> Step<(Value, Type, Type)> {
        let (pointer, ty) = self.scalar_operand(n)?;
        match self.types.pointee(ty) {
            Some(pointee) => Ok((pointer, ty, pointee)),
            None => Err(self.bad_operands()),
        }
    }

    pub(super) fn pointerref(&mut self) -> Step<()> {
        let (pointer, _, pointee) = self.pointer_operand(0)?;
        let addr = self.element(pointer, pointee, 1)?;
        let val = self.load(addr, pointee)?;
        self.define(val)
    }

    pub(super) fn pointerset(&mut self) -> Step<()> {
        let (pointer, ty, pointee) = self.pointer_operand(0)?;
        let val = self.operand(1)?;
        let val = self.checked(&val, pointee)?;
        let addr = self.element(pointer, pointee, 2)?;
        self.store(addr, &val)?;
        self.define(Val::scalar(ty, pointer))
    }
}
