//! Which memory an access touches, and whether two accesses may touch the same.
//!
//! ```text
//! %4 = mul_int(i, 8)            address of the store = root p + 8·i - 8
//! %5 = add_ptr(p, %4)           address of the load  = root p + 8·i + 0      difference 8, both 8 bytes long: apart
//! store(%5, x; offset = -8)
//! %7 = load(%5; offset = 0)
//! ```
//!
//! An address is taken apart into a *root* (a stack slot or a value that no offset was added to), at most one index with a
//! factor, and a displacement, all in wrapping arithmetic. Two accesses are apart if
//!
//! | their | because |
//! |---|---|
//! | regions differ | accesses to different regions never overlap |
//! | roots and indices agree, and the displacements differ by the sizes or more | the difference is the same wherever the root is |
//! | roots are two *objects*: slots, or results of allocations | each has its own bytes |
//! | roots are an object and an argument or constant | those exist before the object |
//! | one root is an object whose address stays here | only values computed from the root can point into it |
//!
//! The elements of a `Memory` that the function makes are an object, too: their address never changes, so all loads of it from the new `Memory` are
//! one root. Escapes do not matter here, because every holder of the `Memory` reaches them.
//!
//! An address *stays here* if its only uses add offsets, read and write there. Then an instruction that touches memory
//! in another way, a call for example, does not touch the object.
//!
//! Cost: one sweep over the function; a query takes constant time. Not done: two indices, which only compare equal within the same address; addresses
//! that meet in φ or `ifelse`, which count as leaving.

use brolga_ir::analysis::Rpo;
use brolga_ir::effects::{Effects, Regions, effects};
use brolga_ir::func::ValueDef;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Func, Inst, LowType, Op, RuntimeFn, Slot, Type, Types, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};

/// Whether two accesses touch the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alias {
    /// They have no byte in common.
    No,
    /// Unknown, or a partial overlap.
    May,
    /// They touch the same bytes.
    Must,
}

/// The root of an address computation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Root {
    /// The start of a stack slot.
    Slot(Slot),
    /// A value.
    Value(Value),
}

/// An address: root + factor · index + displacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) root: Root,
    pub(crate) index: Option<(Value, u64)>,
    pub(crate) disp: u64,
}

/// The bytes that an access touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) address: Address,
    /// The number of bytes; `None` if unknown.
    pub(crate) size: Option<u64>,
    /// The kinds of memory that may hold them.
    pub(crate) regions: Regions,
}

impl Location {
    /// The values that the address is made of.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Value> + use<> {
        let root = match self.address.root {
            Root::Value(value) => Some(value),
            Root::Slot(_) => None,
        };
        root.into_iter().chain(self.address.index.map(|(value, _)| value))
    }

    /// The same location in terms of the values that replaced others.
    pub(crate) fn resolved(self, mut resolve: impl FnMut(Value) -> Value) -> Location {
        let Address { root, index, disp } = self.address;
        let root = match root {
            Root::Value(value) => Root::Value(resolve(value)),
            slot => slot,
        };
        let index = index.map(|(value, factor)| (resolve(value), factor));
        Location { address: Address { root, index, disp }, ..self }
    }
}

/// Facts about the addresses of a function.
#[derive(Debug)]
pub(crate) struct Aliases {
    /// By value: its number in `addresses` from 1; 0 for a value that is its own root.
    known: SecondaryMap<Value, u32>,
    addresses: Vec<Address>,
    /// The values that are addresses of new memory.
    fresh: EntitySet<Value>,
    /// The addresses of the elements of new memory of the kind `Memory`.
    elements: EntitySet<Value>,
    /// By such a `Memory`: the address of its elements, at its first load.
    elements_of: SecondaryMap<Value, PackedOption<Value>>,
    left: EntitySet<Value>,
    left_slots: EntitySet<Slot>,
}

/// The offset of the element address in a `Memory`.
pub(crate) const MEMORY_ELEMENTS: i32 = 8;

/// The most steps through the arithmetic of one index.
const MAX_INDEX_STEPS: usize = 8;

impl Aliases {
    /// Analyses all reachable blocks.
    pub(crate) fn of(func: &Func, types: &Types, rpo: &Rpo) -> Aliases {
        let mut all = Aliases {
            known: SecondaryMap::new(),
            addresses: Vec::new(),
            fresh: EntitySet::new(),
            elements: EntitySet::new(),
            elements_of: SecondaryMap::new(),
            left: EntitySet::new(),
            left_slots: EntitySet::new(),
        };
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                all.note(func, types, inst);
            }
        }
        all
    }

    fn note(&mut self, func: &Func, types: &Types, inst: Inst) {
        let op = func.op(inst);
        let address = match op {
            Op::SlotAddr(slot) => Some(Address { root: Root::Slot(slot), index: None, disp: 0 }),
            Op::Copy | Op::PointerFromObjref => self.offset(func, inst),
            Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr) => {
                self.offset(func, inst)
            }
            // The second operand, kept alive by the first.
            Op::GcLoaded => func.args(inst).get(1).map(|&inside| self.address(inside)),
            Op::Load(_) => self.elements_at(func, inst),
            _ => None,
        };
        if let (Some(address), Some(result)) = (address, func.result(inst)) {
            if address.root == Root::Value(result) {
                self.elements.insert(result);
                return;
            }
            self.addresses.push(address);
            self.known[result] = self.addresses.len() as u32;
        } else if makes_memory(func, types, inst)
            && let Some(result) = func.result(inst)
        {
            self.fresh.insert(result);
        }
        let stays = |n: usize| match op {
            Op::Load(_) | Op::Store(_) => n == 0,
            Op::MemCopy | Op::GcLoaded => n < 2,
            Op::TypeOf | Op::WriteBarrier => n == 0,
            _ => n == 0 && address.is_some(),
        };
        for (n, &arg) in func.args(inst).iter().enumerate() {
            if !stays(n) {
                match self.address(arg).root {
                    Root::Slot(slot) => self.left_slots.insert(slot),
                    Root::Value(value) => self.left.insert(value),
                };
            }
        }
    }

    /// The address that a load of a new `Memory`'s element pointer yields: the first such load.
    fn elements_at(&mut self, func: &Func, load: Inst) -> Option<Address> {
        let (Op::Load(access), &[memory]) = (func.op(load), func.args(load)) else { return None };
        let made = func.def_inst(memory)?;
        if func.op(made) != Op::CallRuntime(RuntimeFn::GcMemory)
            || (access.region, access.offset) != (Region::Immutable, MEMORY_ELEMENTS)
        {
            return None;
        }
        let known = &mut self.elements_of[memory];
        let first = known.expand().or(func.result(load))?;
        *known = first.into();
        Some(Address { root: Root::Value(first), index: None, disp: 0 })
    }

    /// The address that a copy, a cast or pointer arithmetic makes, in terms of its operand's.
    fn offset(&self, func: &Func, inst: Inst) -> Option<Address> {
        let &[base, ref offset @ ..] = func.args(inst) else { return None };
        if !is_pointer(func, base) || !is_pointer(func, func.result(inst)?) {
            return None;
        }
        let base = self.address(base);
        let Some(&offset) = offset.first() else { return Some(base) };
        let (index, disp) = linear(func, offset);
        let back = func.op(inst) == Op::Intrinsic(Intrinsic::SubPtr);
        let (index, disp) = match back {
            false => (index, disp),
            true => (index.map(|(v, factor)| (v, factor.wrapping_neg())), disp.wrapping_neg()),
        };
        let index = match (base.index, index) {
            (one, None) | (None, one) => one,
            (Some((a, f)), Some((b, g))) if a == b => Some((a, f.wrapping_add(g))),
            // The address itself stands for its distance from the root.
            _ => {
                return func.result(inst).map(|own| Address {
                    root: base.root,
                    index: Some((own, 1)),
                    disp: 0,
                });
            }
        };
        Some(Address { root: base.root, index, disp: base.disp.wrapping_add(disp) })
    }

    /// A value as an address.
    pub(crate) fn address(&self, value: Value) -> Address {
        match self.known[value].checked_sub(1) {
            Some(n) => self.addresses[n as usize],
            None => Address { root: Root::Value(value), index: None, disp: 0 },
        }
    }

    /// The bytes that a load reads or a store writes; `None` for everything else.
    pub(crate) fn access(&self, func: &Func, types: &Types, inst: Inst) -> Option<Location> {
        let (access, ty) = match func.op(inst) {
            Op::Load(access) => (access, func.ty(func.result(inst)?)),
            Op::Store(access) => (access, func.ty(*func.args(inst).get(1)?)),
            _ => return None,
        };
        let effects = effects(func, types, inst);
        let regions = effects.reads | effects.writes;
        let mut address = self.address(*func.args(inst).first()?);
        address.disp = address.disp.wrapping_add(i64::from(access.offset).cast_unsigned());
        Some(Location { address, size: size_of(ty), regions })
    }

    /// The bytes that a copy of memory writes, and those that it reads.
    pub(crate) fn copied(&self, func: &Func, types: &Types, inst: Inst) -> Option<(Location, Location)> {
        let (Op::MemCopy, &[to, from, size]) = (func.op(inst), func.args(inst)) else { return None };
        let size = func.as_bits(size).and_then(|bits| u64::try_from(bits).ok());
        let effects = effects(func, types, inst);
        let at = |value, regions| Location { address: self.address(value), size, regions };
        Some((at(to, effects.writes), at(from, effects.reads)))
    }

    /// Whether the root is memory that nothing can reach but by addresses computed from it here.
    pub(crate) fn stays(&self, root: Root) -> bool {
        match root {
            Root::Slot(slot) => !self.left_slots.contains(slot),
            Root::Value(value) => self.fresh.contains(value) && !self.left.contains(value),
        }
    }

    /// Whether the root is a slot of the function that other roots may address as well.
    pub(crate) fn may_be_slot(&self, func: &Func, root: Root) -> bool {
        match root {
            Root::Slot(_) => !self.stays(root),
            Root::Value(_) => !self.left_slots.is_empty() && !self.is_object(root) && !was_before(func, root),
        }
    }

    fn is_object(&self, root: Root) -> bool {
        match root {
            Root::Slot(_) => true,
            Root::Value(value) => self.fresh.contains(value) || self.elements.contains(value),
        }
    }

    /// Whether two locations have bytes in common.
    pub(crate) fn alias(&self, func: &Func, a: &Location, b: &Location) -> Alias {
        if !a.regions.overlaps(b.regions) {
            return Alias::No;
        }
        let (x, y) = (a.address, b.address);
        if x.root == y.root {
            return if x.index == y.index { by_distance(x.disp, a.size, y.disp, b.size) } else { Alias::May };
        }
        let apart = |one, other| {
            self.is_object(one) && (self.is_object(other) || was_before(func, other) || self.stays(one))
        };
        if apart(x.root, y.root) || apart(y.root, x.root) { Alias::No } else { Alias::May }
    }

    /// Whether an instruction with these effects may change the bytes of a location, or keeps accesses to them in their place.
    pub(crate) fn may_write(
        &self,
        func: &Func,
        types: &Types,
        inst: Inst,
        effects: &Effects,
        at: &Location,
    ) -> bool {
        if !effects.fence && !effects.writes.overlaps(at.regions) {
            return false;
        }
        let written = match func.op(inst) {
            Op::Store(_) => self.access(func, types, inst),
            Op::MemCopy => self.copied(func, types, inst).map(|(to, _)| to),
            _ => None,
        };
        self.meets(func, written, at)
    }

    /// Whether an instruction with these effects may read the bytes of a location.
    pub(crate) fn may_read(
        &self,
        func: &Func,
        types: &Types,
        inst: Inst,
        effects: &Effects,
        at: &Location,
    ) -> bool {
        if !effects.fence && !effects.reads.overlaps(at.regions) {
            return false;
        }
        let read = match func.op(inst) {
            Op::Load(_) => self.access(func, types, inst),
            Op::MemCopy => self.copied(func, types, inst).map(|(_, from)| from),
            _ => None,
        };
        self.meets(func, read, at)
    }

    /// Whether what an instruction touches, if that is known, may be part of a location.
    fn meets(&self, func: &Func, touched: Option<Location>, at: &Location) -> bool {
        match touched {
            Some(touched) => self.alias(func, &touched, at) != Alias::No,
            None => !self.stays(at.address.root),
        }
    }

    /// Whether the first location has all bytes of the second.
    pub(crate) fn covers(&self, all: &Location, part: &Location) -> bool {
        let (x, y) = (all.address, part.address);
        let (Some(size), Some(needed)) = (all.size, part.size) else { return false };
        let same = x.root == y.root && x.index == y.index && all.regions.contains(part.regions);
        same && y.disp.wrapping_sub(x.disp).checked_add(needed).is_some_and(|end| end <= size)
    }
}

/// Whether the root is older than the call of the function, and so older than its slots and allocations.
fn was_before(func: &Func, root: Root) -> bool {
    match root {
        Root::Value(value) => !matches!(func.value_def(value), ValueDef::Result(..)),
        Root::Slot(_) => false,
    }
}

/// Whether the result is the address of memory that nothing points at yet.
fn makes_memory(func: &Func, types: &Types, inst: Inst) -> bool {
    match func.op(inst) {
        Op::ForeignCall(foreign) => {
            let name = func.foreign(foreign).name;
            name.is_some_and(|name| matches!(types.names().text(name), "malloc" | "calloc"))
        }
        Op::Alloc(_) | Op::AllocStack(_) => true,
        _ => false,
    }
}

fn is_pointer(func: &Func, value: Value) -> bool {
    func.ty(value).as_low().is_some_and(|low| matches!(low, LowType::Ptr(_)))
}

/// The bytes of a register of this type in memory.
pub(crate) fn size_of(ty: Type) -> Option<u64> {
    ty.as_low().map(|low| u64::from(low.bytes()))
}

/// A 64-bit integer as factor · index + displacement.
pub(crate) fn linear(func: &Func, value: Value) -> (Option<(Value, u64)>, u64) {
    let (mut at, mut factor, mut disp) = (value, 1_u64, 0_u64);
    for _ in 0..MAX_INDEX_STEPS {
        if let Some(bits) = func.as_bits(at) {
            return (None, disp.wrapping_add(factor.wrapping_mul(bits as u64)));
        }
        let Some(inst) = func.def_inst(at).filter(|_| func.ty(at) == Type::I64) else { break };
        let (Op::Intrinsic(op), &[x, y]) = (func.op(inst), func.args(inst)) else { break };
        // A shift count may be wider than the shifted value.
        let Some(c) = func.as_bits(y).and_then(|bits| u64::try_from(bits).ok()) else { break };
        match op {
            Intrinsic::AddInt => disp = disp.wrapping_add(factor.wrapping_mul(c)),
            Intrinsic::SubInt => disp = disp.wrapping_sub(factor.wrapping_mul(c)),
            Intrinsic::MulInt => factor = factor.wrapping_mul(c),
            Intrinsic::ShlInt if c < 64 => factor <<= c,
            _ => break,
        }
        at = x;
    }
    (Some((at, factor)), disp)
}

/// Two pieces of one object, by their starts and sizes.
fn by_distance(a: u64, a_size: Option<u64>, b: u64, b_size: Option<u64>) -> Alias {
    let from_a_to_b = b.wrapping_sub(a);
    let from_b_to_a = a.wrapping_sub(b);
    match (a_size, b_size) {
        (Some(x), Some(y)) if from_a_to_b == 0 && x == y => Alias::Must,
        (Some(x), Some(y)) if from_a_to_b >= x && from_b_to_a >= y => Alias::No,
        _ => Alias::May,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_if_each_ends_before_the_other_starts() {
        let at = |a: i64, x, b: i64, y| by_distance(a.cast_unsigned(), Some(x), b.cast_unsigned(), Some(y));
        assert_eq!(at(0, 8, 8, 8), Alias::No);
        assert_eq!(at(8, 8, 0, 8), Alias::No);
        assert_eq!(at(-8, 8, 0, 1), Alias::No);
        assert_eq!(at(0, 8, 7, 1), Alias::May);
        assert_eq!(at(4, 8, 0, 8), Alias::May);
        assert_eq!(at(i64::MAX, 4, i64::MIN, 4), Alias::May);
        assert_eq!(at(16, 4, 16, 4), Alias::Must);
        assert_eq!(at(16, 4, 16, 8), Alias::May);
        assert_eq!(by_distance(0, None, 64, Some(8)), Alias::May);
    }
}
