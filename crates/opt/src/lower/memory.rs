//! Values in memory: slots, values in memory form, and what a `Ptr` points at.
//!
//! ```text
//!  base ──┐
//!         ▼ + offset        + leaf.offset
//!  ───────┬─────────────────┬──────────────
//!         │ value …         │ leaf           alignment is known at base + offset
//! ```
//!
//! Memory is *own* if only this code writes it and nobody after the value is made: then a value inside it may be used
//! in place, and a `Bool` in it is 0 or 1. What a `Ptr` points at is not own: values are copied out, and a `Bool` is the lowest
//! bit of its byte (a value in memory form is copied byte by byte, so a byte in it that is no `Bool` stays none).
//!
//! The last payload word of a union may be shorter than a register. It is then read and written in pieces, so that no byte
//! beside it is touched.

use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::abi::{Leaf, LeafRole};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{LowType, Op, Type, Value};

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addr {
    /// The address that is in a register.
    pub(super) base: Value,
    /// The distance of the place from there.
    pub(super) offset: i64,
    /// The known alignment of the place for `Ptr` memory, of the base for own memory.
    pub(super) align: u32,
    /// Which memory it is.
    pub(super) region: Region,
    /// Whether it is own memory.
    pub(super) own: bool,
}

impl Addr {
    /// The start of a value in own memory.
    pub(super) fn own(base: Value, align: u32, region: Region) -> Addr {
        Addr { base, offset: 0, align, region, own: true }
    }

    /// The known alignment `within` bytes behind the place.
    fn align_at(&self, within: u32) -> u32 {
        let distance = if self.own { self.offset + i64::from(within) } else { i64::from(within) };
        match distance.trailing_zeros() {
            zeros if zeros < 16 => self.align.min(1 << zeros),
            _ => self.align,
        }
    }
}

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
    /// The operand and the access for bytes behind a place.
    fn access(&mut self, addr: Addr, within: u32) -> (Value, Access) {
        let align_log2 = addr.align_at(within).max(1).ilog2() as u8;
        let distance = addr.offset.wrapping_add(i64::from(within));
        let (base, offset) = match i32::try_from(distance) {
            Ok(offset) => (addr.base, offset),
            Err(_) => (self.moved(addr.base, distance), 0),
        };
        (base, Access { offset, region: addr.region, align_log2 })
    }

    fn load_low(&mut self, addr: Addr, within: u32, low: LowType) -> Value {
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
            LeafRole::Value(Type::BOOL) if !addr.own => {
                let byte = self.load_low(addr, leaf.offset, leaf.low);
                self.lowest_bit(byte)
            }
            _ => self.load_low(addr, leaf.offset, leaf.low),
        }
    }

    /// The value of type `ty` at a place.
    pub(super) fn load(&mut self, addr: Addr, ty: Type) -> Step<Val> {
        let form = self.form(ty)?;
        if !form.is_memory() {
            let leaves: Leaves = form.leaves.iter().map(|leaf| self.load_leaf(addr, leaf)).collect();
            return Ok(Val { ty, leaves });
        }
        let there = self.moved(addr.base, addr.offset);
        if addr.own {
            return Ok(Val::scalar(ty, there));
        }
        let slot = self.slot(form.size, form.align);
        let copy = self.slot_addr(slot);
        self.copy_bytes(copy, there, form.size);
        Ok(Val::scalar(ty, copy))
    }

    /// Writes a value to a place.
    pub(super) fn store(&mut self, addr: Addr, val: &Val) -> Step<()> {
        let form = self.form(val.ty)?;
        if let (true, &[from]) = (form.is_memory(), &val.leaves[..]) {
            let there = self.moved(addr.base, addr.offset);
            self.copy_bytes(there, from, form.size);
            return Ok(());
        }
        for (leaf, &value) in form.leaves.iter().zip(&val.leaves) {
            match leaf.role {
                LeafRole::Payload => self.store_word(addr, leaf.offset, leaf.bytes, value),
                _ => self.store_low(addr, leaf.offset, value),
            }
        }
        Ok(())
    }

    // ----- pointers -----

    /// `pointerref(p, i, align)` and `pointerset(p, x, i, align)`: the place of element `i`, counted from 1.
    fn element(&mut self, pointer: Value, pointee: Type, index: usize) -> Step<Addr> {
        let size = self.pointee_size(pointee)?;
        let align = self.arg(index + 1).map(|v| self.src.as_bits(v))?;
        // An alignment that is not known, or is none, promises nothing.
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
            return Ok(Addr { base: pointer, offset, align, region: Region::Raw, own: false });
        }
        let distance = if size == 1 {
            i
        } else {
            let size = self.word(size);
            self.binary(Intrinsic::MulInt, i, size, LowType::I64)
        };
        let base = self.value(Op::Intrinsic(Intrinsic::AddPtr), &[pointer, distance], Type::PTR);
        Ok(Addr { base, offset: -size, align, region: Region::Raw, own: false })
    }

    /// The distance of two elements in memory. Types with addresses inside are objects there.
    fn pointee_size(&mut self, pointee: Type) -> Step<u32> {
        let form = self.form(pointee)?;
        let members = self.types.members(&pointee);
        if members.len() == 1 && !self.types.layout(pointee).is_ok_and(|l| l.is_bits()) {
            return Err(self.not_native(brolga_ir::abi::NotNative::Heap(pointee)));
        }
        Ok(form.size.next_multiple_of(form.align.max(1)))
    }

    /// The address operand and what it points at.
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
        let val = self.convert(val, pointee)?;
        let addr = self.element(pointer, pointee, 2)?;
        self.store(addr, &val)?;
        self.define(Val::scalar(ty, pointer))
    }
}
