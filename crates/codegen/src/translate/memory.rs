//! Memory: loads, stores, slots, copies, atomics.
//!
//! Every access carries the alias region of its low IR region, so that a store to one region does not invalidate loads of the
//! others. Cranelift's regions are disjoint, low IR's are not quite; so in a function that mixes them they become one:
//!
//! | the function has | one region with `raw` | why |
//! |---|---|---|
//! | no access to `raw`, no copy | – | |
//! | an access to `raw` | `field`, `element` | a `Ptr` may point into an object |
//! | a copy (`mem_copy`) | `field`, `element`, `slot`, `immutable` | either side may be any of them |
//!
//! Atomics have no region: Cranelift treats each as a fence. Constant memory at a known place is always readable,
//! which lets Cranelift move its loads; at a computed place, a bounds test may guard the load. Loads of `immutable` do not move like that: the
//! object's first stores are in the same region, and a check of its type may guard them. The program is responsible for raw
//! memory: an access through a bad `Ptr` is the program's fault, as in C.
//!
//! Atomics are sequentially consistent for every requested order: Cranelift has no other. They exist up to 64 bits.

use brolga_ir::constant::{Address, Const};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region, RmwOp};
use brolga_ir::{Func, Inst, LowType, Op, Slot};
use cranelift_codegen::ir::{
    self as clif, AliasRegion, AliasRegionData, AtomicRmwOp, InstBuilder, MemFlagsData, StackSlotData,
    StackSlotKind, Value, types,
};

use super::{Done, TranslateError, Translation, abi_of};

/// Copies of up to this many bytes become loads and stores.
const MAX_INLINE_COPY: u128 = 128;

/// The alias region of each region of low IR, by its number.
pub(super) type AliasRegions = [AliasRegion; Region::ALL.len()];

/// A conversion that a load does.
struct Extension {
    by: Inst,
    is_signed: bool,
    to: clif::Type,
}

/// Makes the alias regions of a function; see the header.
pub(super) fn alias_regions(func: &Func, out: &mut clif::Function) -> AliasRegions {
    let ops = || func.blocks().flat_map(|block| func.block_insts(block)).map(|inst| func.op(inst));
    let copies = ops().any(|op| op == Op::MemCopy);
    let is_raw = |op| matches!(op, Op::Load(a) | Op::Store(a) if a.region == Region::Raw);
    let mixes = copies || ops().any(is_raw);
    let mut make = |region: Region| {
        let description = region.name().into();
        out.dfg.alias_regions.insert(AliasRegionData { user_id: region as u32, description })
    };
    let raw = make(Region::Raw);
    let mut header = None;
    Region::ALL.map(|region| match region {
        Region::Raw => raw,
        Region::Header | Region::Size => *header.get_or_insert_with(|| make(Region::Header)),
        Region::Field | Region::Element if mixes => raw,
        Region::Slot | Region::Immutable | Region::Length if copies => raw,
        other => make(other),
    })
}

impl Translation<'_> {
    /// The flags for aligned words of a region that are mapped.
    pub(super) fn region_flags(&self, region: Region) -> MemFlagsData {
        let mut flags = MemFlagsData::trusted();
        flags.set_alias_region(Some(self.regions[region as usize]));
        flags
    }

    fn flags(&self, inst: Inst, access: Access, low: LowType) -> MemFlagsData {
        let mut flags = MemFlagsData::new().with_notrap();
        flags.set_alias_region(Some(self.regions[access.region as usize]));
        if access.align_log2 < 32 && (1u32 << access.align_log2) >= low.bytes() {
            flags.set_aligned();
        }
        if access.region == Region::Constant {
            flags = flags.with_readonly();
            if self.is_inside_data(inst, access, low) {
                flags = flags.with_can_move();
            }
        }
        flags
    }

    /// Whether an access goes to a fixed place of the function's constant bytes, and ends in them.
    fn is_inside_data(&self, inst: Inst, access: Access, low: LowType) -> bool {
        let address = self.func.args(inst).first().and_then(|&address| self.func.as_const(address));
        let Some(&Const::Address(Address::Data(number))) = address else { return false };
        let bytes = self.func.data().get(number as usize).map_or(0, |data| data.len());
        let end = i64::from(access.offset) + i64::from(low.bytes());
        access.offset >= 0 && end <= i64::try_from(bytes).unwrap_or(i64::MAX)
    }

    pub(super) fn load(&mut self, inst: Inst, access: Access) -> Done {
        let address = self.pointer(inst, 0)?;
        let low = self.result_type(inst)?;
        let flags = self.flags(inst, access, low);
        let (ty, offset) = (abi_of(low).clif(), access.offset);
        let Some(Extension { by, is_signed, to }) = self.extension(inst, low) else {
            let value = self.b.ins().load(ty, flags, address, offset);
            return self.define(inst, &[value]);
        };
        let ins = self.b.ins();
        let value = match (low, is_signed) {
            (LowType::I8, false) => ins.uload8(to, flags, address, offset),
            (LowType::I8, true) => ins.sload8(to, flags, address, offset),
            (LowType::I16, false) => ins.uload16(to, flags, address, offset),
            (LowType::I16, true) => ins.sload16(to, flags, address, offset),
            (_, false) => ins.uload32(flags, address, offset),
            (_, true) => ins.sload32(flags, address, offset),
        };
        self.define(by, &[value])
    }

    /// The conversion that makes a loaded integer wider, if that is its only use: the load then extends at once, and is the
    /// result of the conversion. Cranelift fuses the two only if no instruction with an effect is between them.
    fn extension(&mut self, load: Inst, low: LowType) -> Option<Extension> {
        if !matches!(low, LowType::I8 | LowType::I16 | LowType::I32) {
            return None;
        }
        let by = self.only_use(self.func.results(load).next()?)?;
        let is_signed = match self.func.op(by) {
            Op::Intrinsic(Intrinsic::ZextInt) => false,
            Op::Intrinsic(Intrinsic::SextInt) => true,
            _ => return None,
        };
        let to = self.result_type(by).ok()?;
        let is_word = matches!(to, LowType::I16 | LowType::I32 | LowType::I64);
        (is_word && low.bits() < to.bits()).then(|| Extension { by, is_signed, to: abi_of(to).clif() })
    }

    pub(super) fn store(&mut self, inst: Inst, access: Access) -> Done {
        let address = self.pointer(inst, 0)?;
        let value = self.arg(inst, 1)?;
        let flags = self.flags(inst, access, self.low_type(inst, 1)?);
        if access.region == Region::Constant {
            return self.bad(inst);
        }
        self.b.ins().store(flags, value, address, access.offset);
        Ok(())
    }

    pub(super) fn slot_addr(&mut self, inst: Inst, slot: Slot) -> Done {
        let made = self.stack_slot(slot);
        let address = self.b.ins().stack_addr(types::I64, made, 0);
        self.define(inst, &[address])
    }

    /// The stack slot of a slot.
    pub(super) fn stack_slot(&mut self, slot: Slot) -> clif::StackSlot {
        if let Some(made) = self.slots[slot].expand() {
            return made;
        }
        let data = self.func.slot(slot);
        let made = self.b.create_sized_stack_slot(StackSlotData::new(
            StackSlotKind::ExplicitSlot,
            data.size,
            data.align_log2,
        ));
        self.slots[slot] = made.into();
        made
    }

    pub(super) fn mem_copy(&mut self, inst: Inst) -> Done {
        let (to, from, length) = (self.pointer(inst, 0)?, self.pointer(inst, 1)?, self.arg(inst, 2)?);
        let known = self.func.args(inst).get(2).and_then(|&v| self.func.as_bits(v));
        let Some(length) = known.filter(|&n| n <= MAX_INLINE_COPY) else {
            self.routine("brolga_memcpy", &[to, from, length]);
            return Ok(());
        };
        let mut flags = MemFlagsData::new().with_notrap();
        flags.set_alias_region(Some(self.regions[Region::Raw as usize]));
        let mut at = 0;
        for ty in [types::I64, types::I32, types::I16, types::I8] {
            while i128::from(at) + i128::from(ty.bytes()) <= length as i128 {
                let value = self.b.ins().load(ty, flags, from, at);
                self.b.ins().store(flags, value, to, at);
                at += ty.bytes() as i32;
            }
        }
        Ok(())
    }

    // ----- atomics -----

    /// Atomics work on integers of at most 64 bits; low IR puts other payloads into them.
    fn atomic_type(&self, inst: Inst, low: LowType) -> Result<LowType, TranslateError> {
        match low {
            LowType::I8 | LowType::I16 | LowType::I32 | LowType::I64 | LowType::Ptr(_) => Ok(low),
            LowType::I128 => self.unsupported(inst, "an atomic access of 128 bits"),
            _ => self.bad(inst),
        }
    }

    fn atomic_flags() -> MemFlagsData {
        MemFlagsData::trusted()
    }

    pub(super) fn atomic_load(&mut self, inst: Inst) -> Done {
        let address = self.pointer(inst, 0)?;
        let low = self.atomic_type(inst, self.result_type(inst)?)?;
        let value = self.b.ins().atomic_load(abi_of(low).clif(), Self::atomic_flags(), address);
        self.define(inst, &[value])
    }

    pub(super) fn atomic_store(&mut self, inst: Inst) -> Done {
        let (address, value) = (self.pointer(inst, 0)?, self.arg(inst, 1)?);
        self.atomic_type(inst, self.low_type(inst, 1)?)?;
        self.b.ins().atomic_store(Self::atomic_flags(), value, address);
        Ok(())
    }

    pub(super) fn atomic_rmw(&mut self, inst: Inst, op: RmwOp) -> Done {
        let (address, value) = (self.pointer(inst, 0)?, self.arg(inst, 1)?);
        let low = self.atomic_type(inst, self.low_type(inst, 1)?)?;
        let op = match op {
            RmwOp::Xchg => AtomicRmwOp::Xchg,
            RmwOp::Add => AtomicRmwOp::Add,
            RmwOp::Sub => AtomicRmwOp::Sub,
            RmwOp::And => AtomicRmwOp::And,
            RmwOp::Nand => AtomicRmwOp::Nand,
            RmwOp::Or => AtomicRmwOp::Or,
            RmwOp::Xor => AtomicRmwOp::Xor,
            RmwOp::Smax => AtomicRmwOp::Smax,
            RmwOp::Smin => AtomicRmwOp::Smin,
            RmwOp::Umax => AtomicRmwOp::Umax,
            RmwOp::Umin => AtomicRmwOp::Umin,
        };
        let old = self.b.ins().atomic_rmw(abi_of(low).clif(), Self::atomic_flags(), op, address, value);
        self.define(inst, &[old])
    }

    pub(super) fn atomic_cas(&mut self, inst: Inst) -> Done {
        let address = self.pointer(inst, 0)?;
        let (expected, value) = (self.arg(inst, 1)?, self.arg(inst, 2)?);
        self.atomic_type(inst, self.low_type(inst, 1)?)?;
        if !self.same_width(expected, value) {
            return self.bad(inst);
        }
        let old = self.b.ins().atomic_cas(Self::atomic_flags(), address, expected, value);
        self.define(inst, &[old])
    }

    /// Operand `n`, which must be an address.
    fn pointer(&mut self, inst: Inst, n: usize) -> Result<Value, TranslateError> {
        match self.low_type(inst, n)? {
            LowType::Ptr(_) => self.arg(inst, n),
            _ => self.bad(inst),
        }
    }
}
