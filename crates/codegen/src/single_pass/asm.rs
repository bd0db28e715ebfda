//! Bytes of x86-64 instructions, labels in them, and places for the linker.
//!
//! ```text
//!   [66 | F2 | F3]  [REX]  [0F [3A]] opcode  ModRM [SIB] [disp8 | disp32]  [imm]
//! ```
//!
//! One method for each instruction that the code generator emits, in the forms that it emits. A register is its number in the
//! encoding; general and vector registers are two types, so they cannot be confused. Memory is a base register and a
//! distance: no operand has an index.
//!
//! Jumps have 32-bit distances, so that a label that is not bound yet needs no second pass: [`Asm::finish`] fills them in.

pub(crate) mod vex;

use crate::compiled::{RelocKind, RelocTarget, Relocation};

/// A general register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr(pub(crate) u8);

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RCX: Gpr = Gpr(1);
pub(crate) const RDX: Gpr = Gpr(2);
pub(crate) const RBX: Gpr = Gpr(3);
pub(crate) const RSP: Gpr = Gpr(4);
pub(crate) const RBP: Gpr = Gpr(5);
pub(crate) const RSI: Gpr = Gpr(6);
pub(crate) const RDI: Gpr = Gpr(7);
pub(crate) const R8: Gpr = Gpr(8);
pub(crate) const R9: Gpr = Gpr(9);
pub(crate) const R10: Gpr = Gpr(10);
pub(crate) const R11: Gpr = Gpr(11);
pub(crate) const R12: Gpr = Gpr(12);
pub(crate) const R13: Gpr = Gpr(13);
pub(crate) const R14: Gpr = Gpr(14);
pub(crate) const R15: Gpr = Gpr(15);

/// A vector register, of which the lowest lane is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Xmm(pub(crate) u8);

/// Memory at a distance from a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mem {
    pub(crate) base: Gpr,
    pub(crate) disp: i32,
}

/// The width of an operation on integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Width {
    B8,
    B16,
    B32,
    B64,
}

impl Width {
    pub(crate) const fn bits(self) -> u32 {
        8 << self as u32
    }

    /// The width in which arithmetic is done whose upper bits are not used.
    pub(crate) fn at_least_32(self) -> Width {
        self.max(Width::B32)
    }
}

/// The precision of an operation on floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Precision {
    F32,
    F64,
}

impl Precision {
    /// The prefix of scalar operations.
    const fn scalar(self) -> u8 {
        match self {
            Precision::F32 => 0xf3,
            Precision::F64 => 0xf2,
        }
    }
}

/// Arithmetic that has a register or memory on the left and the opcodes `8 * N` and `81 /N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts: the digit of `D3 /N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shift {
    Rol = 0,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

/// Operations of one operand: the digit of `F7 /N`. From `Mul` on they work on rax and rdx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Not = 2,
    Neg = 3,
    Mul = 4,
    Div = 6,
    Idiv = 7,
}

/// Scalar operations on floats: the last byte of the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatOp {
    Sqrt = 0x51,
    Add = 0x58,
    Mul = 0x59,
    Sub = 0x5c,
    Div = 0x5e,
}

/// Operations on all bits of a vector register: the last byte of the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BitOp {
    And = 0x54,
    AndNot = 0x55,
    Or = 0x56,
    Xor = 0x57,
}

/// Counting of bits: the last byte of the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Count {
    Ones = 0xb8,
    TrailingZeros = 0xbc,
    LeadingZeros = 0xbd,
}

/// Conditions on flags, as encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cond {
    O = 0,
    No = 1,
    B = 2,
    Ae = 3,
    E = 4,
    Ne = 5,
    Be = 6,
    A = 7,
    S = 8,
    Ns = 9,
    P = 10,
    Np = 11,
    L = 12,
    Ge = 13,
    Le = 14,
    G = 15,
}

impl Cond {
    /// The condition that holds when this one does not.
    pub(crate) const fn opposite(self) -> Cond {
        match self {
            Cond::O => Cond::No,
            Cond::No => Cond::O,
            Cond::B => Cond::Ae,
            Cond::Ae => Cond::B,
            Cond::E => Cond::Ne,
            Cond::Ne => Cond::E,
            Cond::Be => Cond::A,
            Cond::A => Cond::Be,
            Cond::S => Cond::Ns,
            Cond::Ns => Cond::S,
            Cond::P => Cond::Np,
            Cond::Np => Cond::P,
            Cond::L => Cond::Ge,
            Cond::Ge => Cond::L,
            Cond::Le => Cond::G,
            Cond::G => Cond::Le,
        }
    }
}

/// A place in the code, perhaps one that does not exist yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(u32);

const UNBOUND: u32 = u32::MAX;

/// Code that grows.
#[derive(Default)]
pub(crate) struct Asm {
    code: Vec<u8>,
    /// Offsets of labels.
    labels: Vec<u32>,
    /// The places of 32-bit distances to labels, which count from the end of the field.
    fixups: Vec<(u32, Label)>,
    relocs: Vec<Relocation>,
}

/// The finished bytes and their relocations.
pub(crate) struct Finished {
    pub(crate) code: Vec<u8>,
    pub(crate) relocs: Vec<Relocation>,
}

impl Asm {
    /// Empties it for the next function, and makes room for a function of about that many bytes.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.code.clear();
        self.code.reserve(bytes);
        self.labels.clear();
        self.fixups.clear();
        self.relocs.clear();
    }

    /// How many bytes there are.
    pub(crate) fn offset(&self) -> u32 {
        self.code.len() as u32
    }

    // ----- labels -----

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    pub(crate) fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.offset();
    }

    /// The offset of a label, if it is bound.
    pub(crate) fn place_of(&self, label: Label) -> Option<u32> {
        Some(self.labels[label.0 as usize]).filter(|&at| at != UNBOUND)
    }

    /// Fills in all distances. `None` if a label is unbound.
    pub(crate) fn finish(&mut self) -> Option<Finished> {
        for &(at, label) in &self.fixups {
            let to = self.place_of(label)?;
            let distance = to.wrapping_sub(at + 4);
            self.code[at as usize..at as usize + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Some(Finished { code: self.code.clone(), relocs: std::mem::take(&mut self.relocs) })
    }

    fn distance_to(&mut self, label: Label) {
        self.fixups.push((self.offset(), label));
        self.imm32(0);
    }

    fn reloc(&mut self, kind: RelocKind, symbol: u32, addend: i64) {
        let target = RelocTarget::Symbol(symbol);
        self.relocs.push(Relocation { offset: self.offset(), kind, target, addend });
    }

    // ----- parts -----

    fn byte(&mut self, byte: u8) {
        self.code.push(byte);
    }

    fn imm32(&mut self, imm: i32) {
        self.code.extend_from_slice(&imm.to_le_bytes());
    }

    /// Prefix, REX and opcode. `reg` and `rm` are the operands of ModRM; `is_byte` means that one of them is a byte
    /// register, of which four are only named with REX.
    fn head(&mut self, prefix: Option<u8>, wide: bool, opcode: &[u8], reg: u8, rm: u8, is_byte: bool) {
        self.code.extend(prefix);
        let rex = 0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | rm >> 3;
        if rex != 0x40 || is_byte {
            self.byte(rex);
        }
        self.code.extend_from_slice(opcode);
    }

    fn registers(&mut self, reg: u8, rm: u8) {
        self.byte(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    fn memory(&mut self, reg: u8, mem: Mem) {
        let (reg, base) = ((reg & 7) << 3, mem.base.0 & 7);
        let short = i8::try_from(mem.disp);
        // The encoding without a displacement has another meaning for rbp and r13.
        let mode = match short {
            Ok(0) if base != 5 => 0x00,
            Ok(_) => 0x40,
            Err(_) => 0x80,
        };
        self.byte(mode | reg | base);
        if base == 4 {
            self.byte(0x24);
        }
        match (mode, short) {
            (0x00, _) => {}
            (0x40, Ok(disp)) => self.byte(disp as u8),
            _ => self.imm32(mem.disp),
        }
    }

    fn rr(&mut self, prefix: Option<u8>, wide: bool, opcode: &[u8], reg: u8, rm: u8) {
        self.head(prefix, wide, opcode, reg, rm, false);
        self.registers(reg, rm);
    }

    fn rm(&mut self, prefix: Option<u8>, wide: bool, opcode: &[u8], reg: u8, mem: Mem) {
        self.head(prefix, wide, opcode, reg, mem.base.0, false);
        self.memory(reg, mem);
    }

    /// An instruction that has a form for bytes, with an even opcode, and one for all other widths, with the next.
    fn sized_rr(&mut self, width: Width, opcode: u8, reg: u8, rm: u8) {
        let opcode = opcode | u8::from(width != Width::B8);
        self.head(size_prefix(width), width == Width::B64, &[opcode], reg, rm, width == Width::B8);
        self.registers(reg, rm);
    }

    fn sized_rm(&mut self, width: Width, lead: &[u8], opcode: u8, reg: u8, mem: Mem) {
        let opcode = opcode | u8::from(width != Width::B8);
        let is_byte = width == Width::B8;
        let (bytes, count) = match *lead {
            [lead] => ([lead, opcode], 2),
            _ => ([opcode, 0], 1),
        };
        self.head(size_prefix(width), width == Width::B64, &bytes[..count], reg, mem.base.0, is_byte);
        self.memory(reg, mem);
    }

    /// An immediate as wide as the operation, and at most four bytes.
    fn sized_imm(&mut self, width: Width, imm: i32) {
        match width {
            Width::B8 => self.byte(imm as u8),
            Width::B16 => self.code.extend_from_slice(&(imm as i16).to_le_bytes()),
            Width::B32 | Width::B64 => self.imm32(imm),
        }
    }

    // ----- moves -----

    pub(crate) fn mov(&mut self, to: Gpr, from: Gpr) {
        if to != from {
            self.rr(None, true, &[0x89], from.0, to.0);
        }
    }

    /// The lower half, zero-extended.
    pub(crate) fn mov32(&mut self, to: Gpr, from: Gpr) {
        self.rr(None, false, &[0x89], from.0, to.0);
    }

    /// Leaves the flags as they are.
    pub(crate) fn mov_imm(&mut self, to: Gpr, imm: i64) {
        if let Ok(imm) = u32::try_from(imm) {
            self.head(None, false, &[0xb8 | to.0 & 7], 0, to.0, false);
            self.imm32(imm.cast_signed());
        } else if let Ok(imm) = i32::try_from(imm) {
            self.rr(None, true, &[0xc7], 0, to.0);
            self.imm32(imm);
        } else {
            self.head(None, true, &[0xb8 | to.0 & 7], 0, to.0, false);
            self.code.extend_from_slice(&imm.to_le_bytes());
        }
    }

    /// Zero, which changes the flags.
    pub(crate) fn clear_register(&mut self, to: Gpr) {
        self.rr(None, false, &[0x31], to.0, to.0);
    }

    pub(crate) fn load(&mut self, to: Gpr, from: Mem) {
        self.rm(None, true, &[0x8b], to.0, from);
    }

    /// Loads a value and makes it as wide as `wide`, at least 32 bits; the bits above are zero.
    pub(crate) fn load_extended(&mut self, to: Gpr, from: Mem, width: Width, wide: Width, is_signed: bool) {
        let is_wide = wide == Width::B64;
        match (width, is_signed) {
            (Width::B8, false) => self.rm(None, false, &[0x0f, 0xb6], to.0, from),
            (Width::B8, true) => self.rm(None, is_wide, &[0x0f, 0xbe], to.0, from),
            (Width::B16, false) => self.rm(None, false, &[0x0f, 0xb7], to.0, from),
            (Width::B16, true) => self.rm(None, is_wide, &[0x0f, 0xbf], to.0, from),
            (Width::B32, true) if is_wide => self.rm(None, true, &[0x63], to.0, from),
            (Width::B32, _) => self.rm(None, false, &[0x8b], to.0, from),
            (Width::B64, _) => self.load(to, from),
        }
    }

    /// As [`Asm::load_extended`], from a register.
    pub(crate) fn extend(&mut self, to: Gpr, from: Gpr, width: Width, wide: Width, is_signed: bool) {
        let is_wide = wide == Width::B64;
        match (width, is_signed) {
            (Width::B8, false) => self.byte_source(false, &[0x0f, 0xb6], to, from),
            (Width::B8, true) => self.byte_source(is_wide, &[0x0f, 0xbe], to, from),
            (Width::B16, false) => self.rr(None, false, &[0x0f, 0xb7], to.0, from.0),
            (Width::B16, true) => self.rr(None, is_wide, &[0x0f, 0xbf], to.0, from.0),
            (Width::B32, true) if is_wide => self.rr(None, true, &[0x63], to.0, from.0),
            (Width::B32, _) => self.mov32(to, from),
            (Width::B64, _) => self.mov(to, from),
        }
    }

    fn byte_source(&mut self, wide: bool, opcode: &[u8], to: Gpr, from: Gpr) {
        self.head(None, wide, opcode, to.0, from.0, true);
        self.registers(to.0, from.0);
    }

    pub(crate) fn store(&mut self, to: Mem, from: Gpr, width: Width) {
        self.sized_rm(width, &[], 0x88, from.0, to);
    }

    /// Stores an immediate, sign-extended.
    pub(crate) fn store_imm(&mut self, to: Mem, imm: i32, width: Width) {
        self.sized_rm(width, &[], 0xc6, 0, to);
        self.sized_imm(width, imm);
    }

    pub(crate) fn lea(&mut self, to: Gpr, of: Mem) {
        self.rm(None, true, &[0x8d], to.0, of);
    }

    pub(crate) fn lea_label(&mut self, to: Gpr, label: Label) {
        self.head(None, true, &[0x8d], to.0, 0, false);
        self.byte((to.0 & 7) << 3 | 5);
        self.distance_to(label);
    }

    /// The address of a symbol that is near.
    pub(crate) fn lea_symbol(&mut self, to: Gpr, symbol: u32, offset: i64) {
        self.head(None, true, &[0x8d], to.0, 0, false);
        self.byte((to.0 & 7) << 3 | 5);
        self.reloc(RelocKind::X86PcRel4, symbol, offset - 4);
        self.imm32(0);
    }

    /// The address of a symbol anywhere.
    pub(crate) fn mov_symbol(&mut self, to: Gpr, symbol: u32, offset: i64) {
        self.head(None, true, &[0xb8 | to.0 & 7], 0, to.0, false);
        self.reloc(RelocKind::Abs8, symbol, offset);
        self.code.extend_from_slice(&[0; 8]);
    }

    pub(crate) fn push_mem(&mut self, mem: Mem) {
        self.rm(None, false, &[0xff], 6, mem);
    }

    pub(crate) fn pop_mem(&mut self, mem: Mem) {
        self.rm(None, false, &[0x8f], 0, mem);
    }

    pub(crate) fn push(&mut self, reg: Gpr) {
        self.head(None, false, &[0x50 | reg.0 & 7], 0, reg.0, false);
    }

    // ----- integers -----

    pub(crate) fn alu(&mut self, op: Alu, width: Width, left: Gpr, right: Gpr) {
        self.sized_rr(width, (op as u8) << 3, right.0, left.0);
    }

    pub(crate) fn alu_mem(&mut self, op: Alu, width: Width, left: Gpr, right: Mem) {
        self.sized_rm(width, &[], (op as u8) << 3 | 2, left.0, right);
    }

    /// The immediate is sign-extended, or cut, to the width.
    pub(crate) fn alu_imm(&mut self, op: Alu, width: Width, left: Gpr, imm: i32) {
        if width == Width::B8 {
            self.head(None, false, &[0x80], 0, left.0, true);
            self.registers(op as u8, left.0);
            self.byte(imm as u8);
        } else if let Ok(short) = i8::try_from(imm) {
            self.head(size_prefix(width), width == Width::B64, &[0x83], 0, left.0, false);
            self.registers(op as u8, left.0);
            self.byte(short as u8);
        } else {
            self.head(size_prefix(width), width == Width::B64, &[0x81], 0, left.0, false);
            self.registers(op as u8, left.0);
            self.sized_imm(width, imm);
        }
    }

    pub(crate) fn test(&mut self, width: Width, a: Gpr, b: Gpr) {
        self.sized_rr(width, 0x84, b.0, a.0);
    }

    pub(crate) fn imul(&mut self, width: Width, left: Gpr, right: Gpr) {
        self.rr(None, width == Width::B64, &[0x0f, 0xaf], left.0, right.0);
    }

    pub(crate) fn imul_mem(&mut self, width: Width, left: Gpr, right: Mem) {
        self.rm(None, width == Width::B64, &[0x0f, 0xaf], left.0, right);
    }

    pub(crate) fn imul_imm(&mut self, width: Width, to: Gpr, from: Gpr, imm: i32) {
        self.rr(None, width == Width::B64, &[0x69], to.0, from.0);
        self.imm32(imm);
    }

    pub(crate) fn unary(&mut self, op: Unary, width: Width, reg: Gpr) {
        self.rr(None, width == Width::B64, &[0xf7], op as u8, reg.0);
    }

    /// The sign of rax in all bits of rdx.
    pub(crate) fn sign_to_rdx(&mut self, width: Width) {
        if width == Width::B64 {
            self.byte(0x48);
        }
        self.byte(0x99);
    }

    /// Shifts by cl.
    pub(crate) fn shift(&mut self, op: Shift, width: Width, reg: Gpr) {
        self.rr(None, width == Width::B64, &[0xd3], op as u8, reg.0);
    }

    pub(crate) fn shift_imm(&mut self, op: Shift, width: Width, reg: Gpr, by: u8) {
        self.rr(None, width == Width::B64, &[0xc1], op as u8, reg.0);
        self.byte(by);
    }

    pub(crate) fn count(&mut self, op: Count, width: Width, to: Gpr, from: Gpr) {
        self.rr(Some(0xf3), width == Width::B64, &[0x0f, op as u8], to.0, from.0);
    }

    pub(crate) fn bswap(&mut self, width: Width, reg: Gpr) {
        self.head(None, width == Width::B64, &[0x0f, 0xc8 | reg.0 & 7], 0, reg.0, false);
    }

    /// One or zero in the lowest byte; the others stay.
    pub(crate) fn set(&mut self, cond: Cond, to: Gpr) {
        self.head(None, false, &[0x0f, 0x90 | cond as u8], 0, to.0, true);
        self.registers(0, to.0);
    }

    pub(crate) fn cmov(&mut self, cond: Cond, to: Gpr, from: Gpr) {
        self.rr(None, true, &[0x0f, 0x40 | cond as u8], to.0, from.0);
    }

    // ----- atomics -----

    /// Exchanges a register and memory. It is locked implicitly.
    pub(crate) fn xchg_mem(&mut self, width: Width, reg: Gpr, mem: Mem) {
        self.sized_rm(width, &[], 0x86, reg.0, mem);
    }

    pub(crate) fn lock_xadd(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.byte(0xf0);
        self.sized_rm(width, &[0x0f], 0xc0, reg.0, mem);
    }

    /// If memory holds what rax does, stores `new`; else loads it to rax.
    pub(crate) fn lock_cmpxchg(&mut self, width: Width, mem: Mem, new: Gpr) {
        self.byte(0xf0);
        self.sized_rm(width, &[0x0f], 0xb0, new.0, mem);
    }

    pub(crate) fn mfence(&mut self) {
        self.code.extend_from_slice(&[0x0f, 0xae, 0xf0]);
    }

    // ----- floats -----

    pub(crate) fn movaps(&mut self, to: Xmm, from: Xmm) {
        if to != from {
            self.rr(None, false, &[0x0f, 0x28], to.0, from.0);
        }
    }

    pub(crate) fn load_float(&mut self, precision: Precision, to: Xmm, from: Mem) {
        self.rm(Some(precision.scalar()), false, &[0x0f, 0x10], to.0, from);
    }

    pub(crate) fn store_float(&mut self, precision: Precision, to: Mem, from: Xmm) {
        self.rm(Some(precision.scalar()), false, &[0x0f, 0x11], from.0, to);
    }

    /// The bits of a general register.
    pub(crate) fn bits_to_float(&mut self, to: Xmm, from: Gpr) {
        self.rr(Some(0x66), true, &[0x0f, 0x6e], to.0, from.0);
    }

    /// The bits of a vector register.
    pub(crate) fn bits_of_float(&mut self, to: Gpr, from: Xmm) {
        self.rr(Some(0x66), true, &[0x0f, 0x7e], from.0, to.0);
    }

    pub(crate) fn float(&mut self, op: FloatOp, precision: Precision, to: Xmm, from: Xmm) {
        self.rr(Some(precision.scalar()), false, &[0x0f, op as u8], to.0, from.0);
    }

    pub(crate) fn bits(&mut self, op: BitOp, to: Xmm, from: Xmm) {
        self.rr(None, false, &[0x0f, op as u8], to.0, from.0);
    }

    /// Compares; unordered sets the flags of both less and equal, and parity.
    pub(crate) fn ucomis(&mut self, precision: Precision, left: Xmm, right: Xmm) {
        let prefix = (precision == Precision::F64).then_some(0x66);
        self.rr(prefix, false, &[0x0f, 0x2e], left.0, right.0);
    }

    /// To the other precision.
    pub(crate) fn convert_float(&mut self, from: Precision, to: Xmm, value: Xmm) {
        self.rr(Some(from.scalar()), false, &[0x0f, 0x5a], to.0, value.0);
    }

    pub(crate) fn int_to_float(&mut self, width: Width, precision: Precision, to: Xmm, from: Gpr) {
        self.rr(Some(precision.scalar()), width == Width::B64, &[0x0f, 0x2a], to.0, from.0);
    }

    /// Towards zero; the least integer if it does not fit.
    pub(crate) fn float_to_int(&mut self, width: Width, precision: Precision, to: Gpr, from: Xmm) {
        self.rr(Some(precision.scalar()), width == Width::B64, &[0x0f, 0x2c], to.0, from.0);
    }

    /// Rounds to an integer: 0 to the nearest, 1 down, 2 up, 3 towards zero.
    pub(crate) fn round(&mut self, precision: Precision, to: Xmm, from: Xmm, mode: u8) {
        let last = if precision == Precision::F64 { 0x0b } else { 0x0a };
        self.rr(Some(0x66), false, &[0x0f, 0x3a, last], to.0, from.0);
        self.byte(8 | mode);
    }

    // ----- control -----

    pub(crate) fn jmp(&mut self, label: Label) {
        self.byte(0xe9);
        self.distance_to(label);
    }

    pub(crate) fn jcc(&mut self, cond: Cond, label: Label) {
        self.code.extend_from_slice(&[0x0f, 0x80 | cond as u8]);
        self.distance_to(label);
    }

    pub(crate) fn call(&mut self, reg: Gpr) {
        self.rr(None, false, &[0xff], 2, reg.0);
    }

    /// Calls a symbol that is near.
    pub(crate) fn call_symbol(&mut self, symbol: u32) {
        self.byte(0xe8);
        self.reloc(RelocKind::X86CallPcRel4, symbol, -4);
        self.imm32(0);
    }

    /// `push rbp; mov rbp, rsp; sub rsp, …`. Returns the place of the number, for [`Asm::set_frame`].
    pub(crate) fn prologue(&mut self) -> u32 {
        self.push(RBP);
        self.mov(RBP, RSP);
        self.rr(None, true, &[0x81], 5, RSP.0);
        let at = self.offset();
        self.imm32(0);
        at
    }

    /// Sets the final size of the frame.
    pub(crate) fn set_frame(&mut self, at: u32, bytes: u32) {
        self.code[at as usize..at as usize + 4].copy_from_slice(&bytes.to_le_bytes());
    }

    pub(crate) fn sub_rsp(&mut self, bytes: i32) {
        self.alu_imm(Alu::Sub, Width::B64, RSP, bytes);
    }

    pub(crate) fn add_rsp(&mut self, bytes: i32) {
        self.alu_imm(Alu::Add, Width::B64, RSP, bytes);
    }

    /// `leave; ret`, which pops `popped` bytes of arguments off the stack.
    pub(crate) fn leave_and_return(&mut self, popped: u16) {
        self.byte(0xc9);
        if popped == 0 {
            self.byte(0xc3);
        } else {
            self.byte(0xc2);
            self.code.extend_from_slice(&popped.to_le_bytes());
        }
    }

    pub(crate) fn ud2(&mut self) {
        self.code.extend_from_slice(&[0x0f, 0x0b]);
    }
}

/// The prefix that makes 32-bit forms 16 bits wide.
fn size_prefix(width: Width) -> Option<u8> {
    (width == Width::B16).then_some(0x66)
}

#[cfg(test)]
mod tests;
