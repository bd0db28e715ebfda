//! Values that are opaque to passes, and values that are computed although they are unused.
//!
//! ```text
//! %1 = blackbox(x)              store(slot, x)      %1 = atomic_load(slot)
//! donotdelete(y)                atomic_store(slot, y)
//! ```
//!
//! Passes assume nothing about the value of an atomic load, because another thread may have written it, and keep an atomic store, because
//! another may read it. The slots are private, so the former costs a store and a load of the stack; the latter may cost a fence.
//!
//! Not done: references to objects pass unchanged. Passes on high IR treat both as calls that may do anything, so their objects are
//! opaque as well.

use super::addr::Addr;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Ordering, Region};
use brolga_ir::{LowType, Op, PtrClass, Type, Value};

impl Lowering<'_> {
    /// `blackbox(x)`.
    pub(super) fn blackbox(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let leaves: Leaves = val.leaves.iter().map(|&leaf| self.unknown(leaf)).collect();
        self.define(Val { ty: val.ty, leaves })
    }

    /// `donotdelete(x, …)`.
    pub(super) fn donotdelete(&mut self) -> Step<()> {
        for leaf in self.operands_from(0)?.into_iter().flat_map(|val| val.leaves) {
            for word in self.words_of(leaf) {
                let address = self.place_for(word);
                self.emit(Op::AtomicStore(Ordering::Monotonic), &[address, word], &[]);
            }
        }
        self.define(Val::ghost(Type::NOTHING))
    }

    /// The registers of at most 64 bits that hold a value; none for a reference.
    fn words_of(&mut self, leaf: Value) -> Leaves {
        match self.low(leaf) {
            LowType::Ptr(class) if class != PtrClass::Raw => Leaves::new(),
            LowType::I128 => {
                let half = self.word(64);
                let high = self.binary(Intrinsic::LshrInt, leaf, half, LowType::I128);
                [leaf, high].map(|part| self.resize(part, LowType::I64)).into_iter().collect()
            }
            _ => Leaves::from_slice(&[self.bits_of(leaf)]),
        }
    }

    /// The address of stack memory for a register.
    fn place_for(&mut self, word: Value) -> Value {
        let bytes = self.low(word).bytes();
        let slot = self.slot(bytes, bytes);
        self.slot_addr(slot)
    }

    /// The same value, which might be another.
    fn unknown(&mut self, leaf: Value) -> Value {
        let low = self.low(leaf);
        let words = self.words_of(leaf);
        let mut read = Leaves::new();
        for word in words {
            let (address, ty) = (self.place_for(word), self.out.ty(word));
            // In the kind of memory that atomic operations are on.
            let align = self.low(word).bytes();
            self.store_low(Addr::own(address, align, Region::Raw), 0, word);
            read.push(self.value(Op::AtomicLoad(Ordering::Monotonic), &[address], ty));
        }
        match read[..] {
            [] => leaf,
            [word] => self.bitcast(word, low),
            _ => self.wide(&read),
        }
    }

    /// 128 bits of two words, the low one first.
    fn wide(&mut self, words: &[Value]) -> Value {
        let mut all = self.int(LowType::I128, 0);
        for (&word, shift) in words.iter().zip([0, 64]) {
            let (part, shift) = (self.resize(word, LowType::I128), self.word(shift));
            let part = self.binary(Intrinsic::ShlInt, part, shift, LowType::I128);
            all = self.binary(Intrinsic::OrInt, all, part, LowType::I128);
        }
        all
    }
}
