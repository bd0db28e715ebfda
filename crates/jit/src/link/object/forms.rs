//! Static relocations of x86-64 and aarch64: what each one refers to, from where it counts, and how it is written.
//!
//! | target | is |
//! |---|---|
//! | symbol | S, for a function that is chosen at run time its stub |
//! | call | S, or a stub that jumps there when S is too far |
//! | slot | G, a word with the address of S |
//! | pair | module and offset of a thread-local symbol, for `__tls_get_addr`; of the module alone |
//! | descriptor | a function that returns the distance of a thread-local symbol from the thread's pointer, with its argument |
//! | thread offset, thread slot | that distance, where it is the same in all threads, and a word with it |
//! | table | the table of slots (`_GLOBAL_OFFSET_TABLE_`) |
//!
//! Not done: descriptors of the large code model of aarch64.

use object::elf;

/// A processor of object files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// The one of this process.
    pub(super) const HOST: Machine =
        if cfg!(target_arch = "x86_64") { Machine::X86_64 } else { Machine::Aarch64 };

    /// Its number in ELF.
    pub(super) fn number(self) -> u16 {
        match self {
            Machine::X86_64 => elf::EM_X86_64,
            Machine::Aarch64 => elf::EM_AARCH64,
        }
    }

    /// Whether a relocation changes nothing.
    pub(super) fn is_hint(self, r_type: u32) -> bool {
        /// The former number of the relocation that does nothing.
        const AARCH64_NONE: u32 = 256;
        match self {
            Machine::X86_64 => r_type == elf::R_X86_64_TLSDESC_CALL,
            Machine::Aarch64 => matches!(r_type, AARCH64_NONE | elf::R_AARCH64_TLSDESC_CALL),
        }
    }
}

/// A kind of relocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    pub(super) target: Target,
    pub(super) base: Base,
    pub(super) write: Write,
}

/// The entity whose address a relocation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Symbol,
    Call,
    Slot,
    Pair,
    ModulePair,
    Descriptor,
    Table,
    Size,
    TlsModule,
    TlsOffset,
    ThreadOffset,
    ThreadSlot,
}

impl Target {
    /// Whether it is a thread-local symbol.
    pub(super) fn is_thread_local(self) -> bool {
        use Target::{Descriptor, Pair, ThreadOffset, ThreadSlot, TlsOffset};
        matches!(self, Pair | Descriptor | TlsOffset | ThreadOffset | ThreadSlot)
    }
}

/// The address that is subtracted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// Nothing.
    Zero,
    Place,
    /// The page of the place; the target's page is taken.
    Page,
    /// The table of slots.
    Table,
    /// The page of the table of slots.
    TablePage,
}

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    /// As that number of bytes.
    Bytes(usize, Range),
    /// aarch64: a number of instructions, in `bits` bits from bit `at` on.
    Words { bits: u32, at: u32 },
    /// aarch64: 21 bits in two fields, of the value divided by a power of two.
    Adr { shift: u32, checked: bool },
    /// aarch64: bits of the value above `low`, up to bit 12, in bits 10 to 21.
    Low { low: u32 },
    /// aarch64: bits 12 to 23 in bits 10 to 21.
    High12,
    /// aarch64: bits 3 to 14 in bits 10 to 21.
    Low15,
    /// aarch64: 16 bits of the value in bits 5 to 20, from bit `16 * group` on.
    Move { group: u32, range: Range },
}

/// The range that a value has to be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Range {
    Any,
    Signed,
    Unsigned,
    /// Either of the two.
    Either,
}

impl Form {
    /// Bytes that it rewrites.
    pub(super) fn size(self) -> usize {
        match self.write {
            Write::Bytes(size, _) => size,
            _ => 4,
        }
    }

    /// Whether it can hold addresses of the lowest 2 GiB only.
    pub(super) fn is_low(self) -> bool {
        matches!((self.target, self.base), (Target::Symbol | Target::Call, Base::Zero))
            && matches!(self.write, Write::Bytes(1..=4, _))
    }

    /// Whether its target has to be near.
    pub(super) fn is_near(self) -> bool {
        let is_symbol = matches!(self.target, Target::Symbol | Target::Call);
        is_symbol && self.base != Base::Zero && !matches!(self.write, Write::Bytes(8, _))
    }
}

const fn form(target: Target, base: Base, write: Write) -> Result<Form, &'static str> {
    Ok(Form { target, base, write })
}

const UNKNOWN: &str = "a relocation that is not done here";

/// The form of a relocation type.
///
/// # Errors
/// The reason why it is unsupported.
pub(super) fn form_of(machine: Machine, r_type: u32) -> Result<Form, &'static str> {
    match machine {
        Machine::X86_64 => x86_64(r_type),
        Machine::Aarch64 => aarch64(r_type),
    }
}

fn x86_64(r_type: u32) -> Result<Form, &'static str> {
    use Base::{Place, Table, Zero};
    use Range::{Any, Either, Signed, Unsigned};
    use Target::{
        Call, Descriptor, ModulePair, Pair, Size, Slot, Symbol, ThreadOffset, ThreadSlot, TlsModule,
        TlsOffset,
    };
    use Write::Bytes;
    match r_type {
        elf::R_X86_64_64 => form(Symbol, Zero, Bytes(8, Any)),
        elf::R_X86_64_32 => form(Symbol, Zero, Bytes(4, Unsigned)),
        elf::R_X86_64_32S => form(Symbol, Zero, Bytes(4, Signed)),
        elf::R_X86_64_16 => form(Symbol, Zero, Bytes(2, Either)),
        elf::R_X86_64_8 => form(Symbol, Zero, Bytes(1, Either)),
        elf::R_X86_64_PC64 => form(Symbol, Place, Bytes(8, Any)),
        elf::R_X86_64_PC32 => form(Symbol, Place, Bytes(4, Signed)),
        elf::R_X86_64_PC16 => form(Symbol, Place, Bytes(2, Signed)),
        elf::R_X86_64_PC8 => form(Symbol, Place, Bytes(1, Signed)),
        elf::R_X86_64_PLT32 => form(Call, Place, Bytes(4, Signed)),
        elf::R_X86_64_PLTOFF64 => form(Call, Table, Bytes(8, Any)),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            form(Slot, Place, Bytes(4, Signed))
        }
        elf::R_X86_64_GOTPCREL64 => form(Slot, Place, Bytes(8, Any)),
        elf::R_X86_64_GOT32 => form(Slot, Table, Bytes(4, Signed)),
        elf::R_X86_64_GOT64 => form(Slot, Table, Bytes(8, Any)),
        elf::R_X86_64_GOTOFF64 => form(Symbol, Table, Bytes(8, Any)),
        elf::R_X86_64_GOTPC32 => form(Target::Table, Place, Bytes(4, Signed)),
        elf::R_X86_64_GOTPC64 => form(Target::Table, Place, Bytes(8, Any)),
        elf::R_X86_64_SIZE32 => form(Size, Zero, Bytes(4, Unsigned)),
        elf::R_X86_64_SIZE64 => form(Size, Zero, Bytes(8, Any)),
        elf::R_X86_64_TLSGD => form(Pair, Place, Bytes(4, Signed)),
        elf::R_X86_64_TLSLD => form(ModulePair, Place, Bytes(4, Signed)),
        elf::R_X86_64_DTPMOD64 => form(TlsModule, Zero, Bytes(8, Any)),
        elf::R_X86_64_DTPOFF64 => form(TlsOffset, Zero, Bytes(8, Any)),
        elf::R_X86_64_DTPOFF32 => form(TlsOffset, Zero, Bytes(4, Signed)),
        elf::R_X86_64_TPOFF32 => form(ThreadOffset, Zero, Bytes(4, Signed)),
        elf::R_X86_64_TPOFF64 => form(ThreadOffset, Zero, Bytes(8, Any)),
        elf::R_X86_64_GOTTPOFF => form(ThreadSlot, Place, Bytes(4, Signed)),
        elf::R_X86_64_GOTPC32_TLSDESC => form(Descriptor, Place, Bytes(4, Signed)),
        _ => Err(UNKNOWN),
    }
}

fn aarch64(r_type: u32) -> Result<Form, &'static str> {
    use Base::{Page, Place, Table, TablePage, Zero};
    use Range::{Any, Either, Signed, Unsigned};
    use Target::{Call, Descriptor, ModulePair, Pair, Slot, Symbol, ThreadOffset, ThreadSlot, TlsOffset};
    use Write::{Adr, Bytes, High12, Low, Low15, Move, Words};
    let page = Adr { shift: 12, checked: true };
    let mov = |group, range| Move { group, range };
    match r_type {
        elf::R_AARCH64_ABS64 => form(Symbol, Zero, Bytes(8, Any)),
        elf::R_AARCH64_ABS32 => form(Symbol, Zero, Bytes(4, Either)),
        elf::R_AARCH64_ABS16 => form(Symbol, Zero, Bytes(2, Either)),
        elf::R_AARCH64_PREL64 => form(Symbol, Place, Bytes(8, Any)),
        elf::R_AARCH64_PREL32 => form(Symbol, Place, Bytes(4, Signed)),
        elf::R_AARCH64_PREL16 => form(Symbol, Place, Bytes(2, Signed)),
        elf::R_AARCH64_PLT32 => form(Call, Place, Bytes(4, Signed)),
        elf::R_AARCH64_GOTPCREL32 => form(Slot, Place, Bytes(4, Signed)),
        elf::R_AARCH64_GOTREL64 => form(Symbol, Table, Bytes(8, Any)),
        elf::R_AARCH64_GOTREL32 => form(Symbol, Table, Bytes(4, Signed)),
        elf::R_AARCH64_MOVW_UABS_G0 => form(Symbol, Zero, mov(0, Unsigned)),
        elf::R_AARCH64_MOVW_UABS_G0_NC => form(Symbol, Zero, mov(0, Any)),
        elf::R_AARCH64_MOVW_UABS_G1 => form(Symbol, Zero, mov(1, Unsigned)),
        elf::R_AARCH64_MOVW_UABS_G1_NC => form(Symbol, Zero, mov(1, Any)),
        elf::R_AARCH64_MOVW_UABS_G2 => form(Symbol, Zero, mov(2, Unsigned)),
        elf::R_AARCH64_MOVW_UABS_G2_NC => form(Symbol, Zero, mov(2, Any)),
        elf::R_AARCH64_MOVW_UABS_G3 => form(Symbol, Zero, mov(3, Any)),
        elf::R_AARCH64_MOVW_SABS_G0 => form(Symbol, Zero, mov(0, Signed)),
        elf::R_AARCH64_MOVW_SABS_G1 => form(Symbol, Zero, mov(1, Signed)),
        elf::R_AARCH64_MOVW_SABS_G2 => form(Symbol, Zero, mov(2, Signed)),
        elf::R_AARCH64_MOVW_PREL_G0 => form(Symbol, Place, mov(0, Signed)),
        elf::R_AARCH64_MOVW_PREL_G0_NC => form(Symbol, Place, mov(0, Any)),
        elf::R_AARCH64_MOVW_PREL_G1 => form(Symbol, Place, mov(1, Signed)),
        elf::R_AARCH64_MOVW_PREL_G1_NC => form(Symbol, Place, mov(1, Any)),
        elf::R_AARCH64_MOVW_PREL_G2 => form(Symbol, Place, mov(2, Signed)),
        elf::R_AARCH64_MOVW_PREL_G2_NC => form(Symbol, Place, mov(2, Any)),
        elf::R_AARCH64_MOVW_PREL_G3 => form(Symbol, Place, mov(3, Any)),
        elf::R_AARCH64_LD_PREL_LO19 => form(Symbol, Place, Words { bits: 19, at: 5 }),
        elf::R_AARCH64_ADR_PREL_LO21 => form(Symbol, Place, Adr { shift: 0, checked: true }),
        elf::R_AARCH64_ADR_PREL_PG_HI21 => form(Symbol, Page, page),
        elf::R_AARCH64_ADR_PREL_PG_HI21_NC => form(Symbol, Page, Adr { shift: 12, checked: false }),
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => {
            form(Symbol, Zero, Low { low: 0 })
        }
        elf::R_AARCH64_LDST16_ABS_LO12_NC => form(Symbol, Zero, Low { low: 1 }),
        elf::R_AARCH64_LDST32_ABS_LO12_NC => form(Symbol, Zero, Low { low: 2 }),
        elf::R_AARCH64_LDST64_ABS_LO12_NC => form(Symbol, Zero, Low { low: 3 }),
        elf::R_AARCH64_LDST128_ABS_LO12_NC => form(Symbol, Zero, Low { low: 4 }),
        elf::R_AARCH64_TSTBR14 => form(Call, Place, Words { bits: 14, at: 5 }),
        elf::R_AARCH64_CONDBR19 => form(Call, Place, Words { bits: 19, at: 5 }),
        elf::R_AARCH64_JUMP26 | elf::R_AARCH64_CALL26 => form(Call, Place, Words { bits: 26, at: 0 }),
        elf::R_AARCH64_GOT_LD_PREL19 => form(Slot, Place, Words { bits: 19, at: 5 }),
        elf::R_AARCH64_ADR_GOT_PAGE => form(Slot, Page, page),
        elf::R_AARCH64_LD64_GOT_LO12_NC => form(Slot, Zero, Low { low: 3 }),
        elf::R_AARCH64_LD64_GOTOFF_LO15 => form(Slot, Table, Low15),
        elf::R_AARCH64_LD64_GOTPAGE_LO15 => form(Slot, TablePage, Low15),
        elf::R_AARCH64_TLSGD_ADR_PREL21 => form(Pair, Place, Adr { shift: 0, checked: true }),
        elf::R_AARCH64_TLSGD_ADR_PAGE21 => form(Pair, Page, page),
        elf::R_AARCH64_TLSGD_ADD_LO12_NC => form(Pair, Zero, Low { low: 0 }),
        elf::R_AARCH64_TLSLD_ADR_PREL21 => form(ModulePair, Place, Adr { shift: 0, checked: true }),
        elf::R_AARCH64_TLSLD_ADR_PAGE21 => form(ModulePair, Page, page),
        elf::R_AARCH64_TLSLD_ADD_LO12_NC => form(ModulePair, Zero, Low { low: 0 }),
        elf::R_AARCH64_TLSLD_ADD_DTPREL_HI12 => form(TlsOffset, Zero, High12),
        elf::R_AARCH64_TLSLD_ADD_DTPREL_LO12_NC => form(TlsOffset, Zero, Low { low: 0 }),
        elf::R_AARCH64_TLSLD_LDST8_DTPREL_LO12_NC => form(TlsOffset, Zero, Low { low: 0 }),
        elf::R_AARCH64_TLSLD_LDST16_DTPREL_LO12_NC => form(TlsOffset, Zero, Low { low: 1 }),
        elf::R_AARCH64_TLSLD_LDST32_DTPREL_LO12_NC => form(TlsOffset, Zero, Low { low: 2 }),
        elf::R_AARCH64_TLSLD_LDST64_DTPREL_LO12_NC => form(TlsOffset, Zero, Low { low: 3 }),
        elf::R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21 => form(ThreadSlot, Page, page),
        elf::R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC => form(ThreadSlot, Zero, Low { low: 3 }),
        elf::R_AARCH64_TLSIE_LD_GOTTPREL_PREL19 => form(ThreadSlot, Place, Words { bits: 19, at: 5 }),
        elf::R_AARCH64_TLSLE_MOVW_TPREL_G2 => form(ThreadOffset, Zero, mov(2, Signed)),
        elf::R_AARCH64_TLSLE_MOVW_TPREL_G1 => form(ThreadOffset, Zero, mov(1, Signed)),
        elf::R_AARCH64_TLSLE_MOVW_TPREL_G1_NC => form(ThreadOffset, Zero, mov(1, Any)),
        elf::R_AARCH64_TLSLE_MOVW_TPREL_G0 => form(ThreadOffset, Zero, mov(0, Signed)),
        elf::R_AARCH64_TLSLE_MOVW_TPREL_G0_NC => form(ThreadOffset, Zero, mov(0, Any)),
        elf::R_AARCH64_TLSLE_ADD_TPREL_HI12 => form(ThreadOffset, Zero, High12),
        elf::R_AARCH64_TLSLE_ADD_TPREL_LO12_NC | elf::R_AARCH64_TLSLE_LDST8_TPREL_LO12_NC => {
            form(ThreadOffset, Zero, Low { low: 0 })
        }
        elf::R_AARCH64_TLSLE_LDST16_TPREL_LO12_NC => form(ThreadOffset, Zero, Low { low: 1 }),
        elf::R_AARCH64_TLSLE_LDST32_TPREL_LO12_NC => form(ThreadOffset, Zero, Low { low: 2 }),
        elf::R_AARCH64_TLSLE_LDST64_TPREL_LO12_NC => form(ThreadOffset, Zero, Low { low: 3 }),
        elf::R_AARCH64_TLSLE_LDST128_TPREL_LO12_NC => form(ThreadOffset, Zero, Low { low: 4 }),
        elf::R_AARCH64_TLSDESC_LD_PREL19 => form(Descriptor, Place, Words { bits: 19, at: 5 }),
        elf::R_AARCH64_TLSDESC_ADR_PREL21 => form(Descriptor, Place, Adr { shift: 0, checked: true }),
        elf::R_AARCH64_TLSDESC_ADR_PAGE21 => form(Descriptor, Page, page),
        elf::R_AARCH64_TLSDESC_LD64_LO12 => form(Descriptor, Zero, Low { low: 3 }),
        elf::R_AARCH64_TLSDESC_ADD_LO12 => form(Descriptor, Zero, Low { low: 0 }),
        _ => Err(UNKNOWN),
    }
}

/// Writes a value into its place; `None` if it does not fit.
pub(super) fn write(form: Write, place: &mut [u8], value: i64) -> Option<()> {
    match form {
        Write::Bytes(size, range) => {
            fits(value, 8 * size as u32, range)
                .then(|| place.get_mut(..size))??
                .copy_from_slice(value.to_le_bytes().get(..size)?);
            Some(())
        }
        Write::Words { bits, at } => {
            let words = (value % 4 == 0).then_some(value / 4)?;
            fits(words, bits, Range::Signed).then(|| field(place, words as u64, bits, at))?
        }
        Write::Adr { shift, checked } => {
            let value = value >> shift;
            if checked && !fits(value, 21, Range::Signed) {
                return None;
            }
            field(place, value as u64, 2, 29)?;
            field(place, value as u64 >> 2, 19, 5)
        }
        Write::Low { low } => {
            let value = value as u64 & 0xfff;
            value.is_multiple_of(1 << low).then(|| field(place, value >> low, 12, 10))?
        }
        Write::High12 => {
            fits(value, 24, Range::Unsigned).then(|| field(place, value as u64 >> 12, 12, 10))?
        }
        Write::Low15 => {
            let is_slot = value % 8 == 0 && fits(value, 15, Range::Unsigned);
            is_slot.then(|| field(place, value as u64 >> 3, 12, 10))?
        }
        Write::Move { group, range } => move_part(place, value, 16 * group, range),
    }
}

/// Writes 16 bits of a value into a move. A signed value below zero makes it a move of the complement.
fn move_part(place: &mut [u8], value: i64, shift: u32, range: Range) -> Option<()> {
    /// The bit by which `movz` differs from `movn`.
    const MOVZ: u64 = 1;
    let bits = shift + 16;
    match range {
        Range::Signed => {
            fits(value, bits + 1, Range::Signed).then_some(())?;
            field(place, if value < 0 { 0 } else { MOVZ }, 1, 30)?;
            let shown = if value < 0 { !value } else { value };
            field(place, shown as u64 >> shift, 16, 5)
        }
        range => fits(value, bits, range).then(|| field(place, value as u64 >> shift, 16, 5))?,
    }
}

/// Sets bits of an instruction.
fn field(place: &mut [u8], value: u64, bits: u32, at: u32) -> Option<()> {
    let word = place.first_chunk_mut::<4>()?;
    let mask = u32::MAX >> (32 - bits) << at;
    let new = u32::from_le_bytes(*word) & !mask | (value as u32) << at & mask;
    *word = new.to_le_bytes();
    Some(())
}

fn fits(value: i64, bits: u32, range: Range) -> bool {
    if bits >= 64 {
        return true;
    }
    let signed = (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value);
    let unsigned = value >= 0 && value as u64 >> bits == 0;
    match range {
        Range::Any => true,
        Range::Signed => signed,
        Range::Unsigned => unsigned,
        Range::Either => signed || unsigned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(r_type: u32, old: u32, value: i64) -> Option<u32> {
        let mut place = old.to_le_bytes();
        write(form_of(Machine::Aarch64, r_type).unwrap().write, &mut place, value)?;
        Some(u32::from_le_bytes(place))
    }

    fn x86(r_type: u32, value: i64) -> Option<Vec<u8>> {
        let form = form_of(Machine::X86_64, r_type).unwrap();
        let mut place = vec![0; form.size()];
        write(form.write, &mut place, value)?;
        Some(place)
    }

    #[test]
    fn x86_values_have_to_fit() {
        assert_eq!(x86(elf::R_X86_64_64, -2), Some((-2i64).to_le_bytes().to_vec()));
        assert_eq!(x86(elf::R_X86_64_PC32, -4), Some((-4i32).to_le_bytes().to_vec()));
        assert_eq!(x86(elf::R_X86_64_PC32, 1 << 31), None);
        assert_eq!(x86(elf::R_X86_64_32, 0xffff_ffff), Some(vec![0xff; 4]));
        assert_eq!(x86(elf::R_X86_64_32, -1), None);
        assert_eq!(x86(elf::R_X86_64_32S, 0x8000_0000), None);
        assert_eq!(x86(elf::R_X86_64_16, 0xffff), Some(vec![0xff; 2]));
        assert_eq!(x86(elf::R_X86_64_8, -129), None);
    }

    // The words are what the assembler makes of the instructions in the comments.
    #[test]
    fn arm_branches_get_their_fields() {
        let (bl, cbz, tbz) = (0x9400_0000, 0xb400_0000, 0x3600_0000);
        // bl .+8; bl .-4
        assert_eq!(arm(elf::R_AARCH64_CALL26, bl, 8), Some(0x9400_0002));
        assert_eq!(arm(elf::R_AARCH64_CALL26, bl, -4), Some(0x97ff_ffff));
        assert_eq!(arm(elf::R_AARCH64_CALL26, bl, 128 << 20), None);
        assert_eq!(arm(elf::R_AARCH64_CALL26, bl, 2), None);
        // cbz x0, .+8; tbz w0, #0, .-8
        assert_eq!(arm(elf::R_AARCH64_CONDBR19, cbz, 8), Some(0xb400_0040));
        assert_eq!(arm(elf::R_AARCH64_TSTBR14, tbz, -8), Some(0x3607_ffc0));
        assert_eq!(arm(elf::R_AARCH64_TSTBR14, tbz, 1 << 15), None);
    }

    #[test]
    fn arm_addresses_get_their_fields() {
        let (adrp, add, ldr64, ldr128) = (0x9000_0000, 0x9100_0000, 0xf940_0000, 0x3dc0_0000);
        // adrp x0, .+0x1000; adrp x0, .-0x1000
        assert_eq!(arm(elf::R_AARCH64_ADR_PREL_PG_HI21, adrp, 0x1000), Some(0xb000_0000));
        assert_eq!(arm(elf::R_AARCH64_ADR_PREL_PG_HI21, adrp, -0x1000), Some(0xf0ff_ffe0));
        assert_eq!(arm(elf::R_AARCH64_ADR_PREL_PG_HI21, adrp, 1 << 32), None);
        // add x0, x0, #0x123; ldr x0, [x0, #0x120]; ldr q0, [x0, #0x120]
        assert_eq!(arm(elf::R_AARCH64_ADD_ABS_LO12_NC, add, 0x5123), Some(0x9104_8c00));
        assert_eq!(arm(elf::R_AARCH64_LDST64_ABS_LO12_NC, ldr64, 0x5120), Some(0xf940_9000));
        assert_eq!(arm(elf::R_AARCH64_LDST64_ABS_LO12_NC, ldr64, 0x5124), None);
        assert_eq!(arm(elf::R_AARCH64_LDST128_ABS_LO12_NC, ldr128, 0x120), Some(0x3dc0_4800));
        assert_eq!(arm(elf::R_AARCH64_LD64_GOTPAGE_LO15, ldr64, 0x120), Some(0xf940_9000));
        assert_eq!(arm(elf::R_AARCH64_LD64_GOTPAGE_LO15, ldr64, 1 << 15), None);
    }

    #[test]
    fn arm_moves_get_their_fields_and_signs() {
        let (movz, movk) = (0xd280_0000, 0xf280_0000);
        // movz x0, #0x1234; movk x0, #0x5678, lsl #16 (its shift is in the instruction)
        assert_eq!(arm(elf::R_AARCH64_MOVW_UABS_G0, movz, 0x1234), Some(0xd282_4680));
        assert_eq!(arm(elf::R_AARCH64_MOVW_UABS_G0, movz, 0x1_0000), None);
        assert_eq!(arm(elf::R_AARCH64_MOVW_UABS_G1_NC, movk | 1 << 21, 0x5678_1234), Some(0xf2aa_cf00));
        // movn x0, #0: the value is -1
        assert_eq!(arm(elf::R_AARCH64_MOVW_SABS_G0, movz, -1), Some(0x9280_0000));
        assert_eq!(arm(elf::R_AARCH64_MOVW_SABS_G0, movz, 1 << 16), None);
    }

    #[test]
    fn what_is_not_done_is_refused_with_a_reason() {
        let refused = |machine, r_type| form_of(machine, r_type).unwrap_err();
        assert!(refused(Machine::X86_64, 250).contains("not done"));
        assert!(refused(Machine::Aarch64, elf::R_AARCH64_TLSDESC_OFF_G1).contains("not done"));
    }
}
