//! A value of one type used as one of another; and unions of pointer-free types.
//!
//! ```text
//! Tuple{Int16, Float32}     0: i16 │ 4: f32
//!      pack ▼  ▲ unpack
//! Union{Nothing, …}         word 0: f32 bits « 32 │ i16          selector: 1
//! ```
//!
//! A union's payload is the member's memory image cut into words, so packing is shifting each leaf to its offset, and
//! unpacking is shifting it back. Both are arithmetic only: unpacking another member yields meaningless bits, but never a
//! fault.
//!
//! From one union to another the payload stays and the selector is translated, because selectors count the members of
//! their own union.

use super::addr::Addr;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::abi::{Form, FormKind, LeafRole};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{LowType, Type, TypeKind, Value};

impl Lowering<'_> {
    /// The members of a union type.
    pub(super) fn union_members(&self, ty: Type) -> Option<&'_ [Type]> {
        match self.types.kind(ty) {
            TypeKind::Union(members) => Some(members),
            _ => None,
        }
    }

    /// A value as one of another type, which it is known to be of as well: an object, a union that it is a member of, a
    /// member of its union, what an object holds.
    pub(super) fn convert(&mut self, val: Val, to: Type) -> Step<Val> {
        if val.ty == to {
            return Ok(val);
        }
        if val.ty == Type::BOTTOM {
            return self.undefined(to);
        }
        let types = self.types;
        let (from, form) = (self.form(val.ty)?, self.form(to)?);
        if types.is_disjoint(val.ty, to) {
            // The known type is more precise than the program's, and contradicts it: this is the side of
            // a type test that control never takes.
            return self.undefined(to);
        }
        if form.is_object() {
            let object = self.object(&val)?;
            return Ok(Val::scalar(to, object));
        }
        if let (true, &[object]) = (from.is_object(), &val.leaves[..]) {
            return self.unbox(object, to);
        }
        match (types.kind(val.ty), types.kind(to)) {
            (TypeKind::Union(from), TypeKind::Union(members)) => self.reselect(&val, from, to, members),
            (TypeKind::Union(from), _) if from.contains(&to) => self.unpack(&val, to),
            (_, TypeKind::Union(members)) => match members.iter().position(|&m| m == val.ty) {
                Some(number) => self.pack(&val, to, number),
                None => self.undefined(to),
            },
            // The same tuple, with a more precise type.
            _ => match (types.field_count(val.ty), types.field_count(to)) {
                (Some(count), Some(wanted)) if count == wanted => {
                    let fields = (0..count).map(|n| self.field(&val, n)).collect::<Step<Vec<Val>>>()?;
                    self.aggregate(to, &fields)
                }
                _ => self.undefined(to),
            },
        }
    }

    /// The selector of a value of a union type.
    pub(super) fn selector(&mut self, val: &Val) -> Step<Value> {
        let form = self.form(val.ty)?;
        match (&form.kind, &val.leaves[..]) {
            (FormKind::Union(_), &[.., selector]) => Ok(selector),
            (FormKind::Memory, &[base]) => {
                let addr = Addr::own(base, form.align, Region::Raw);
                let byte = self.load_word(addr, form.size - 1, 1);
                Ok(self.resize(byte, LowType::I8))
            }
            _ => Err(self.bad_operands()),
        }
    }

    /// Whether a value of a union type is its member number `n`.
    pub(super) fn is_member(&mut self, val: &Val, n: usize) -> Step<Value> {
        let selector = self.selector(val)?;
        let number = self.int(LowType::I8, n as u128);
        Ok(self.equal(selector, number))
    }

    // ----- into a union -----

    fn pack(&mut self, val: &Val, to: Type, number: usize) -> Step<Val> {
        let form = self.form(to)?;
        let selector = self.int(LowType::I8, number as u128);
        if form.is_memory() {
            let (base, addr) = self.own_slot(&form);
            self.store(addr, val)?;
            self.store_low(addr, form.size - 1, selector);
            return Ok(Val::scalar(to, base));
        }
        let mut leaves = self.words(val, form.leaves.len() - 1)?;
        leaves.push(selector);
        Ok(Val { ty: to, leaves })
    }

    fn own_slot(&mut self, form: &Form) -> (Value, Addr) {
        let slot = self.slot(form.size, form.align);
        let base = self.slot_addr(slot);
        (base, Addr::own(base, form.align, Region::Raw))
    }

    /// The memory image of a value as `count` words.
    fn words(&mut self, val: &Val, count: usize) -> Step<Leaves> {
        let form = self.form(val.ty)?;
        let zero = self.word(0);
        let mut words: Leaves = std::iter::repeat_n(zero, count).collect();
        if let (true, &[base]) = (form.is_memory(), &val.leaves[..]) {
            let addr = Addr::own(base, form.align, Region::Raw);
            for (n, word) in words.iter_mut().enumerate() {
                let at = 8 * n as u32;
                if at < form.size {
                    *word = self.load_word(addr, at, (form.size - at).min(8));
                }
            }
            return Ok(words);
        }
        for (leaf, &value) in form.leaves.iter().zip(&val.leaves) {
            let bits = self.bits_of(value);
            if leaf.low == LowType::I128 {
                let low = self.resize(bits, LowType::I64);
                let half = self.word(64);
                let high = self.binary(Intrinsic::LshrInt, bits, half, LowType::I128);
                let high = self.resize(high, LowType::I64);
                self.insert(&mut words, leaf.offset, 8, low);
                self.insert(&mut words, leaf.offset + 8, 8, high);
                continue;
            }
            let mut bits = self.resize(bits, LowType::I64);
            // The bytes of a payload word after the payload are unspecified, but here other data follows.
            if leaf.role == LeafRole::Payload && leaf.bytes < 8 {
                let mask = self.int(LowType::I64, (1 << (8 * leaf.bytes)) - 1);
                bits = self.binary(Intrinsic::AndInt, bits, mask, LowType::I64);
            }
            self.insert(&mut words, leaf.offset, leaf.bytes, bits);
        }
        Ok(words)
    }

    /// Puts `bytes` low bytes of `bits`, the others of which are zero, at a byte offset of words.
    fn insert(&mut self, words: &mut [Value], offset: u32, bytes: u32, bits: Value) {
        let (word, shift) = ((offset / 8) as usize, 8 * (offset % 8));
        self.insert_shifted(words, word, Intrinsic::ShlInt, shift, bits);
        // A nested union's payload may be less aligned than its words.
        if offset % 8 + bytes > 8 {
            self.insert_shifted(words, word + 1, Intrinsic::LshrInt, 64 - shift, bits);
        }
    }

    fn insert_shifted(&mut self, words: &mut [Value], n: usize, op: Intrinsic, shift: u32, bits: Value) {
        let Some(word) = words.get_mut(n) else { return };
        let shifted = self.shifted(op, bits, shift);
        *word = if self.out.as_bits(*word) == Some(0) {
            shifted
        } else {
            self.binary(Intrinsic::OrInt, *word, shifted, LowType::I64)
        };
    }

    fn shifted(&mut self, op: Intrinsic, bits: Value, count: u32) -> Value {
        if count == 0 {
            return bits;
        }
        let count = self.word(i64::from(count));
        self.binary(op, bits, count, LowType::I64)
    }

    // ----- out of a union -----

    /// The member of type `to` of a union value.
    pub(super) fn unpack(&mut self, val: &Val, to: Type) -> Step<Val> {
        let (from, form) = (self.form(val.ty)?, self.form(to)?);
        match (&from.kind, &val.leaves[..]) {
            (FormKind::Memory, &[base]) => self.load(Addr::own(base, from.align, Region::Raw), to),
            (FormKind::Union(_), [words @ .., _]) if form.is_memory() => {
                let (base, addr) = self.own_slot(&form);
                for (n, &word) in words.iter().enumerate() {
                    let at = 8 * n as u32;
                    if at < form.size {
                        self.store_word(addr, at, (form.size - at).min(8), word);
                    }
                }
                Ok(Val::scalar(to, base))
            }
            (FormKind::Union(_), [words @ .., _]) => {
                let leaves = form
                    .leaves
                    .iter()
                    .map(|leaf| {
                        if leaf.low == LowType::I128 {
                            return self.extract_wide(words, leaf.offset);
                        }
                        let word = self.extract(words, leaf.offset, leaf.bytes);
                        match LowType::int(leaf.low.bits()) {
                            Some(int) => {
                                let bits = self.resize(word, int);
                                self.bitcast(bits, leaf.low)
                            }
                            None => word,
                        }
                    })
                    .collect();
                Ok(Val { ty: to, leaves })
            }
            _ => Err(self.bad_operands()),
        }
    }

    /// Bytes at a byte offset of words, as the low bytes of a word; the bytes above them are unspecified.
    fn extract(&mut self, words: &[Value], offset: u32, bytes: u32) -> Value {
        let (word, shift) = ((offset / 8) as usize, 8 * (offset % 8));
        let zero = self.word(0);
        let at = |n: usize| words.get(n).copied().unwrap_or(zero);
        let low = self.shifted(Intrinsic::LshrInt, at(word), shift);
        if offset % 8 + bytes <= 8 {
            return low;
        }
        let high = self.shifted(Intrinsic::ShlInt, at(word + 1), 64 - shift);
        self.binary(Intrinsic::OrInt, low, high, LowType::I64)
    }

    fn extract_wide(&mut self, words: &[Value], offset: u32) -> Value {
        let [low, high] = [0, 8].map(|half| {
            let word = self.extract(words, offset + half, 8);
            self.pure(Intrinsic::ZextInt, &[word], LowType::I128)
        });
        let half = self.word(64);
        let high = self.binary(Intrinsic::ShlInt, high, half, LowType::I128);
        self.binary(Intrinsic::OrInt, low, high, LowType::I128)
    }

    // ----- between unions -----

    fn reselect(&mut self, val: &Val, from: &[Type], to: Type, members: &[Type]) -> Step<Val> {
        let (old, new) = (self.form(val.ty)?, self.form(to)?);
        let numbers: Vec<(usize, usize)> = from
            .iter()
            .enumerate()
            .filter_map(|(n, &m)| Some((n, members.iter().position(|&other| other == m)?)))
            .collect();
        if numbers.is_empty() {
            return self.undefined(to);
        }
        let selector = self.selector(val)?;
        let selector = self.translate(selector, &numbers);
        if new.is_memory() {
            let (base, addr) = self.own_slot(&new);
            let payload = (old.size - 1).min(new.size - 1);
            match (old.is_memory(), &val.leaves[..]) {
                (true, &[there]) => self.copy_bytes(base, there, payload),
                (_, leaves) => {
                    for (leaf, &word) in
                        old.leaves.iter().zip(leaves).filter(|(l, _)| l.role == LeafRole::Payload)
                    {
                        self.store_word(addr, leaf.offset, leaf.bytes.min(payload - leaf.offset), word);
                    }
                }
            }
            self.store_low(addr, new.size - 1, selector);
            return Ok(Val::scalar(to, base));
        }
        let count = new.leaves.len() - 1;
        let zero = self.word(0);
        let mut leaves = Leaves::new();
        for n in 0..count {
            let at = 8 * n as u32;
            let word = match (&old.kind, &val.leaves[..]) {
                (FormKind::Memory, &[there]) => {
                    let addr = Addr::own(there, old.align, Region::Raw);
                    self.load_word(addr, at, (old.size - 1 - at).min(8))
                }
                (_, [words @ .., _]) => words.get(n).copied().unwrap_or(zero),
                _ => zero,
            };
            leaves.push(word);
        }
        leaves.push(selector);
        Ok(Val { ty: to, leaves })
    }

    /// A selector translated to another union's numbering.
    fn translate(&mut self, selector: Value, numbers: &[(usize, usize)]) -> Value {
        let Some(&(first_old, first_new)) = numbers.first() else { return selector };
        let shift = first_new.wrapping_sub(first_old);
        if numbers.iter().all(|&(old, new)| new.wrapping_sub(old) == shift) {
            // All numbers shift by the same distance, most often by zero.
            if shift == 0 {
                return selector;
            }
            let shift = self.int(LowType::I8, u128::from(shift as u8));
            return self.binary(Intrinsic::AddInt, selector, shift, LowType::I8);
        }
        let mut chosen = self.int(LowType::I8, first_new as u128);
        for &(old, new) in &numbers[1..] {
            let old = self.int(LowType::I8, old as u128);
            let new = self.int(LowType::I8, new as u128);
            let is = self.equal(selector, old);
            chosen = self.choose(is, new, chosen);
        }
        chosen
    }
}
