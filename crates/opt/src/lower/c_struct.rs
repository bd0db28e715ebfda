//! Structs that pass to and from C by value, as the host's C compiler passes them.
//!
//! ```text
//!   struct ── its scalars ──► parts ──► registers, if there are enough ── else ──► memory
//!   parts: x86-64  each 8 bytes: a float register if it holds only floats, else an integer register; more than 16 bytes: memory
//!          aarch64 up to four floats of one kind: a float register each; up to 16 bytes: integer registers; else an address
//! ```
//!
//! | in low IR | is passed |
//! |---|---|
//! | a parameter `i64` or `f64` | in the next register: a part |
//! | a parameter `Tuple{Int64, …}`, the operand being an address | in memory: the tuple's number of words from there, copied (x86-64) |
//! | a result `Tuple{Int64, Float64}` | in as many registers |
//! | a first parameter `ptr` that the program does not declare | the address for the result (x86-64) |
//!
//! The value goes through a stack slot, whose accesses later passes forward.
//!
//! Refused: structs that hold references or unions, that are aligned to more than 8 bytes in memory, and on aarch64 those that
//! run out of registers or are returned in memory; all structs on other processors.

use super::addr::Addr;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::op::Region;
use brolga_ir::types::{FieldRepr, Repr};
use brolga_ir::{Arch, LowType, Slot, Type, Value};

/// The largest struct that passes in registers, in bytes.
const IN_REGISTERS: u32 = 16;

/// A part of a struct: its offset, and the register it passes in.
pub(super) type Part = (u32, LowType);

/// How a struct is returned.
pub(super) enum Back {
    Registers(Vec<Part>),
    /// In memory of the caller.
    Hidden(Slot),
}

/// The remaining registers for arguments.
pub(super) struct Registers {
    ints: u32,
    floats: u32,
    /// aarch64: an `i128` begins in a register of even number, and later arguments use higher ones, also if it is in memory.
    pairs_are_even: bool,
}

impl Registers {
    pub(super) fn new(arch: Arch) -> Registers {
        match arch {
            Arch::Aarch64 => Registers::aarch64(),
            Arch::X86_64 => Registers::x86_64(),
        }
    }

    fn aarch64() -> Registers {
        Registers { ints: 8, floats: 8, pairs_are_even: true }
    }

    fn x86_64() -> Registers {
        Registers { ints: 6, floats: 8, pairs_are_even: false }
    }

    pub(super) fn take_int(&mut self) {
        self.ints = self.ints.saturating_sub(1);
    }

    pub(super) fn take_scalar(&mut self, low: LowType) {
        match low {
            LowType::I128 if self.pairs_are_even => self.ints = (self.ints & !1).saturating_sub(2),
            LowType::I128 if self.ints >= 2 => self.ints -= 2,
            LowType::I128 => {}
            low if low.is_float() => self.floats = self.floats.saturating_sub(1),
            _ => self.take_int(),
        }
    }

    /// Takes the registers for all parts, if there are enough.
    fn take_all(&mut self, parts: &[Part]) -> bool {
        let floats = parts.iter().filter(|(_, low)| low.is_float()).count() as u32;
        let ints = parts.len() as u32 - floats;
        let fits = ints <= self.ints && floats <= self.floats;
        if fits {
            (self.ints, self.floats) = (self.ints - ints, self.floats - floats);
        }
        fits
    }
}

impl Lowering<'_> {
    /// Whether a type is a struct of several numbers that C would pass by value.
    pub(super) fn is_c_struct(&mut self, ty: Type) -> bool {
        let several = self.find_form(ty).is_ok_and(|form| form.is_memory() || form.leaves.len() > 1);
        several && self.types.repr(ty) == Repr::Aggregate && self.numbers(ty).is_some()
    }

    /// The scalars of a struct, with their offsets.
    fn numbers(&self, ty: Type) -> Option<Vec<Part>> {
        let mut found = Vec::new();
        let mut pending = vec![(0, ty)];
        while let Some((offset, ty)) = pending.pop() {
            if let Some(low) = self.types.primitive_low(ty) {
                found.push((offset, low));
                continue;
            }
            let layout = self.types.layout(ty).ok().filter(|layout| layout.is_bits())?;
            for field in layout.fields.iter().filter(|field| field.size > 0) {
                if field.repr != FieldRepr::Inline {
                    return None;
                }
                pending.push((offset + field.offset, field.ty));
            }
        }
        found.sort_by_key(|&(offset, _)| offset);
        (!found.is_empty()).then_some(found)
    }

    /// The parts in which a struct passes in registers; `None` if it passes in memory.
    fn parts(&self, ty: Type, size: u32) -> Option<Vec<Part>> {
        let numbers = self.numbers(ty)?;
        let words = (0..size).step_by(8);
        if self.arch == Arch::Aarch64 {
            let same = numbers.iter().all(|(_, low)| low.is_float() && *low == numbers[0].1);
            return match same && numbers.len() <= 4 {
                true => Some(numbers),
                false => (size <= IN_REGISTERS).then(|| words.map(|at| (at, LowType::I64)).collect()),
            };
        }
        let class = |at: u32| {
            let mut inside =
                numbers.iter().filter(|(offset, low)| *offset < at + 8 && offset + low.bytes() > at);
            if inside.all(|(_, low)| low.is_float()) { LowType::F64 } else { LowType::I64 }
        };
        (size <= IN_REGISTERS).then(|| words.map(|at| (at, class(at))).collect())
    }

    /// The arguments for a struct, with their low types; `None` if it cannot be passed.
    pub(super) fn pass_struct(
        &mut self,
        val: &Val,
        registers: &mut Registers,
    ) -> Step<Option<Vec<(Type, Value)>>> {
        let layout = self.layout(val.ty)?;
        let (size, align) = (layout.size, layout.align);
        let parts = self.parts(val.ty, size).filter(|parts| registers.take_all(parts));
        let in_memory = parts.is_none() && self.arch == Arch::X86_64 && align <= 8;
        let by_address = parts.is_none() && self.arch == Arch::Aarch64 && size > IN_REGISTERS;
        if parts.is_none() && !in_memory && !by_address {
            return Ok(None);
        }
        let slot = self.slot(size.next_multiple_of(8), align.max(8));
        let base = self.slot_addr(slot);
        let addr = Addr::own(base, align.max(8), Region::Slot);
        self.store(addr, val)?;
        if let Some(parts) = parts {
            let load = |(at, low)| (Type::low(low), self.load_low(addr, at, low));
            return Ok(Some(parts.into_iter().map(load).collect()));
        }
        if by_address {
            registers.take_int();
            return Ok(Some(vec![(Type::PTR, base)]));
        }
        let words = vec![Type::INT64; size.div_ceil(8) as usize];
        let ty = self.types.tuple(&words).map_err(|_| self.bad_operands())?;
        Ok(Some(vec![(ty, base)]))
    }

    /// Several registers as one type: a tuple of the numbers that they hold, because types do not mix levels.
    pub(super) fn register_types(&mut self, lows: &[Type]) -> Step<Type> {
        let number = |low: &Type| match low.as_low() {
            Some(LowType::F32) => Type::FLOAT32,
            Some(LowType::F64) => Type::FLOAT64,
            _ => Type::INT64,
        };
        let numbers: Vec<Type> = lows.iter().map(number).collect();
        self.types.tuple(&numbers).map_err(|_| self.bad_operands())
    }

    /// How a struct is returned; `None` for other types.
    pub(super) fn c_struct_back(&mut self, ty: Type) -> Step<Option<Back>> {
        if !self.is_c_struct(ty) {
            return Ok(None);
        }
        let (size, align) = {
            let layout = self.layout(ty)?;
            (layout.size, layout.align)
        };
        match self.parts(ty, size) {
            Some(parts) => Ok(Some(Back::Registers(parts))),
            None if self.arch == Arch::X86_64 => Ok(Some(Back::Hidden(self.slot(size, align.max(8))))),
            // `c_scalar` refuses it.
            None => Ok(None),
        }
    }

    /// The returned struct.
    pub(super) fn struct_back(&mut self, ty: Type, back: Back, registers: &[Value]) -> Step<Val> {
        let (size, align) = {
            let layout = self.layout(ty)?;
            (layout.size, layout.align.max(8))
        };
        let slot = match &back {
            Back::Hidden(slot) => *slot,
            Back::Registers(_) => self.slot(size.next_multiple_of(8), align),
        };
        let base = self.slot_addr(slot);
        let region = if matches!(back, Back::Hidden(_)) { Region::Raw } else { Region::Slot };
        let addr = Addr::own(base, align, region);
        if let Back::Registers(parts) = back {
            for ((at, _), &value) in parts.into_iter().zip(registers) {
                self.store_low(addr, at, value);
            }
        }
        let val = self.load(addr, ty)?;
        // A value that stays in memory must not be written by the next call.
        let leaves: Leaves = val.leaves;
        Ok(Val { ty, leaves })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `ints` integers fit after the scalars.
    fn fits(mut registers: Registers, scalars: &[LowType], ints: u32) -> bool {
        scalars.iter().for_each(|&low| registers.take_scalar(low));
        let parts: Vec<Part> = (0..ints).map(|n| (8 * n, LowType::I64)).collect();
        registers.take_all(&parts)
    }

    #[test]
    fn wide_integers_take_what_the_convention_gives_them() {
        use LowType::{I64, I128};
        // x0, x2 and x3, x4, x5, x6: one register is left, not two.
        let gap = [I64, I128, I64, I64, I64];
        assert!(fits(Registers::aarch64(), &gap, 1) && !fits(Registers::aarch64(), &gap, 2));
        // x0 to x6, memory: x7 is not used any more.
        let full = [I64, I64, I64, I64, I64, I64, I64, I128];
        assert!(!fits(Registers::aarch64(), &full, 1));
        let even = [I128, I64, I64];
        assert!(fits(Registers::aarch64(), &even, 4) && !fits(Registers::aarch64(), &even, 5));
        // No gap, and five registers before one that does not fit leave the sixth.
        assert!(fits(Registers::x86_64(), &[I64, I128], 3) && !fits(Registers::x86_64(), &[I64, I128], 4));
        assert!(fits(Registers::x86_64(), &[I64, I64, I64, I64, I64, I128], 1));
    }
}
