//! Where values are: in a register, in their word of the frame, or made again wherever they are used.
//!
//! ```text
//!   rbp + 16 …      arguments that the caller passed on the stack: they stay there
//!   rbp             the caller's rbp
//!   rbp − 8 …       callee-saved registers, if exceptions may arrive; stack slots; words of values
//!   rsp             multiple of 16
//! ```
//!
//! | value | is kept |
//! |---|---|
//! | a constant, an address of the frame or of a symbol, the thread | nowhere: its instruction is made again at each use |
//! | used in other blocks than its own, or a block's parameter | in its word from the beginning; registers are copies |
//! | used in its own block only | in a register, and in a word if the register is wanted for something else or a call is made |
//!
//! So at the end of a block nothing has to be saved, and at the start of one nothing is in a register, unless the block is only reached
//! from the one in front of it.
//!
//! rax, rcx, rdx, rsi, rdi, r8 to r10 and xmm0 to xmm14 hold values; all are lost by calls. r11 and xmm15 hold nothing for longer than
//! one instruction. r15 is the thread. Those that a callee has to keep are not touched.
//!
//! Cost: a few comparisons for each operand; a register is found by two operations on masks.

use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value, ValueDef, types};

use super::asm::{Asm, Gpr, Mem, Precision, R11, R15, RBP, RSP, Width, Xmm};
use super::{Step, Unsupported};

/// A register of either kind: general ones from 0, vector ones from 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reg(u8);

impl Reg {
    /// The value of [`Info::reg`] for no register.
    const NONE: Reg = Reg(u8::MAX);
    /// For one instruction only.
    pub(super) const SCRATCH_FLOAT: Reg = Reg(16 + 15);

    const fn bit(self) -> u32 {
        1 << self.0
    }

    pub(super) const fn is_float(self) -> bool {
        self.0 >= 16
    }

    /// As a general register, which it must be.
    pub(super) const fn gpr(self) -> Gpr {
        Gpr(self.0 & 15)
    }

    /// As a vector register, which it must be.
    pub(super) const fn xmm(self) -> Xmm {
        Xmm(self.0 & 15)
    }
}

impl From<Gpr> for Reg {
    fn from(reg: Gpr) -> Reg {
        Reg(reg.0)
    }
}

impl From<Xmm> for Reg {
    fn from(reg: Xmm) -> Reg {
        Reg(16 + reg.0)
    }
}

/// rax, rcx, rdx, rsi, rdi, r8, r9, r10.
const INTS: u32 = 0b0111_1100_0111;
/// xmm0 to xmm14.
const FLOATS: u32 = 0x7fff << 16;

/// Facts about a value.
#[derive(Clone, Copy, Debug)]
struct Info {
    /// Uses that no code has been made for yet.
    uses: u32,
    /// Its word, as a distance from rbp; 0 if it has none.
    home: i32,
    reg: Reg,
    /// Whether somebody uses it.
    is_used: bool,
    /// Whether it is made again wherever it is used.
    is_remade: bool,
    /// Whether it has its word from the beginning.
    crosses: bool,
    /// Whether its word holds it since a register was taken away.
    is_spilled: bool,
}

const UNKNOWN: Info = Info {
    uses: 0,
    home: 0,
    reg: Reg::NONE,
    is_used: false,
    is_remade: false,
    crosses: false,
    is_spilled: false,
};

/// The right operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Reg(Gpr),
    Imm(i32),
    Mem(Mem),
}

/// Where all values of a function are.
#[derive(Default)]
pub(super) struct Places {
    infos: Vec<Info>,
    /// The values in the registers, by number.
    holds: Vec<Option<Value>>,
    /// Those that hold something.
    occupied: u32,
    /// Those that the present instruction uses.
    locked: u32,
    /// The register that is taken away next, if one has to be.
    hand: u32,
    /// Bytes of the frame so far.
    frame: u32,
    /// The most bytes that are below the frame at any time.
    below: u32,
    /// Words that nothing is in any more.
    free: Vec<i32>,
    /// Distances of stack slots from rbp.
    pub(super) slots: Vec<i32>,
}

impl Places {
    /// Forgets everything.
    pub(super) fn clear(&mut self, func: &Function) {
        self.infos.clear();
        self.infos.resize(func.dfg.num_values(), UNKNOWN);
        self.holds.clear();
        self.holds.resize(32, None);
        (self.occupied, self.locked, self.hand) = (0, 0, 0);
        (self.frame, self.below) = (0, 0);
        self.free.clear();
        self.slots.clear();
    }

    // ----- what is known ahead -----

    /// Counts a use.
    pub(super) fn count_use(&mut self, value: Value, is_elsewhere: bool) {
        let info = self.info_mut(value);
        info.uses += 1;
        info.is_used = true;
        info.crosses |= is_elsewhere;
    }

    /// Says that a value has its word from the beginning.
    pub(super) fn set_crosses(&mut self, value: Value) {
        self.info_mut(value).crosses = true;
    }

    /// Says that a value is made again at each use.
    pub(super) fn set_remade(&mut self, value: Value) {
        self.info_mut(value).is_remade = true;
    }

    /// Says that the caller has passed a value on the stack.
    pub(super) fn set_passed(&mut self, value: Value, home: i32) {
        let info = self.info_mut(value);
        (info.home, info.is_spilled) = (home, true);
    }

    pub(super) fn is_used(&self, value: Value) -> bool {
        self.info(value).is_used
    }

    /// Whether the next use is the last one.
    pub(super) fn is_last_use(&self, value: Value) -> bool {
        self.info(value).uses == 1
    }

    fn info(&self, value: Value) -> &Info {
        &self.infos[value.as_u32() as usize]
    }

    fn info_mut(&mut self, value: Value) -> &mut Info {
        &mut self.infos[value.as_u32() as usize]
    }

    // ----- the frame -----

    /// Reserves bytes of the frame; gives their distance from rbp.
    pub(super) fn reserve(&mut self, bytes: u32, align: u32) -> i32 {
        self.frame = (self.frame + bytes).next_multiple_of(align);
        -(self.frame as i32)
    }

    /// How large the frame is.
    pub(super) fn frame(&self) -> u32 {
        self.frame.next_multiple_of(16)
    }

    /// Says that so many bytes are pushed below the frame for a while.
    pub(super) fn push(&mut self, bytes: u32) {
        self.below = self.below.max(bytes);
    }

    /// How far an activation reaches down.
    pub(super) fn extent(&self) -> u32 {
        self.frame() + self.below.next_multiple_of(16)
    }

    /// The word of a value.
    pub(super) fn home(&mut self, value: Value) -> Mem {
        if self.info(value).home == 0 {
            let home = match self.free.pop() {
                Some(home) => home,
                None => self.reserve(8, 8),
            };
            self.info_mut(value).home = home;
        }
        Mem { base: RBP, disp: self.info(value).home }
    }

    // ----- registers -----

    /// The register that holds a value, if one does.
    pub(super) fn register_of(&self, value: Value) -> Option<Reg> {
        Some(self.info(value).reg).filter(|&reg| reg != Reg::NONE)
    }

    /// Keeps a register until the end of the instruction.
    pub(super) fn lock(&mut self, reg: impl Into<Reg>) {
        self.locked |= reg.into().bit();
    }

    /// Ends an instruction.
    pub(super) fn unlock(&mut self) {
        self.locked = 0;
    }

    /// Forgets a use of a value, and the value with the last one.
    pub(super) fn release(&mut self, value: Value) {
        let info = self.info_mut(value);
        info.uses = info.uses.saturating_sub(1);
        if info.uses == 0 {
            let Info { home, reg, crosses, .. } = *info;
            (info.reg, info.home) = (Reg::NONE, if crosses { home } else { 0 });
            if reg != Reg::NONE {
                self.empty(reg);
            }
            if home < 0 && !crosses {
                self.free.push(home);
            }
        }
    }

    /// Nothing is in a register any more. All that is needed has to be in its word.
    pub(super) fn forget_registers(&mut self) {
        let mut occupied = std::mem::take(&mut self.occupied);
        while occupied != 0 {
            let number = occupied.trailing_zeros();
            occupied &= occupied - 1;
            if let Some(value) = self.holds[number as usize].take() {
                self.info_mut(value).reg = Reg::NONE;
            }
        }
    }

    fn empty(&mut self, reg: Reg) {
        self.holds[reg.0 as usize] = None;
        self.occupied &= !reg.bit();
    }

    /// A register for something, which the instruction keeps.
    fn take(&mut self, asm: &mut Asm, is_float: bool) -> Step<Reg> {
        let candidates = if is_float { FLOATS } else { INTS } & !self.locked;
        if candidates == 0 {
            return Err(Unsupported);
        }
        let free = candidates & !self.occupied;
        let number = if free != 0 {
            free.trailing_zeros()
        } else {
            // In turn, so that what was loaded last is not taken away first.
            let behind = candidates & !(2u32 << self.hand).wrapping_sub(1);
            self.hand = if behind != 0 { behind } else { candidates }.trailing_zeros();
            self.hand
        };
        let reg = Reg(number as u8);
        self.evict(asm, reg)?;
        self.lock(reg);
        Ok(reg)
    }

    /// A general register for a value in between.
    pub(super) fn temporary(&mut self, asm: &mut Asm) -> Step<Gpr> {
        Ok(self.take(asm, false)?.gpr())
    }

    /// A vector register for a value in between.
    pub(super) fn temporary_float(&mut self, asm: &mut Asm) -> Step<Xmm> {
        Ok(self.take(asm, true)?.xmm())
    }

    /// Takes this register, whatever is in it.
    pub(super) fn claim(&mut self, asm: &mut Asm, reg: Gpr) -> Step {
        let reg = Reg::from(reg);
        if self.locked & reg.bit() != 0 {
            return Err(Unsupported);
        }
        self.evict(asm, reg)?;
        self.lock(reg);
        Ok(())
    }

    fn evict(&mut self, asm: &mut Asm, reg: Reg) -> Step {
        if let Some(value) = self.holds[reg.0 as usize] {
            self.save(asm, value, reg);
            self.info_mut(value).reg = Reg::NONE;
            self.empty(reg);
        }
        Ok(())
    }

    /// Sees to it that a value is somewhere else as well as in its register.
    fn save(&mut self, asm: &mut Asm, value: Value, reg: Reg) {
        let info = self.info(value);
        if !info.is_remade && !info.crosses && !info.is_spilled {
            let home = self.home(value);
            store(asm, home, reg);
            self.info_mut(value).is_spilled = true;
        }
    }

    /// In front of a call: saves what is needed behind it. `used` are the operands of the call.
    pub(super) fn save_around(&mut self, asm: &mut Asm, used: &[Value]) {
        let mut occupied = self.occupied;
        while occupied != 0 {
            let number = occupied.trailing_zeros();
            occupied &= occupied - 1;
            if let Some(value) = self.holds[number as usize] {
                let now = used.iter().filter(|&&other| other == value).count();
                if self.info(value).uses as usize > now {
                    self.save(asm, value, Reg(number as u8));
                }
            }
        }
    }

    // ----- operands and results -----

    /// A value in a register, which the instruction keeps.
    pub(super) fn use_reg(&mut self, asm: &mut Asm, func: &Function, value: Value) -> Step<Reg> {
        if let Some(reg) = self.register_of(value) {
            self.lock(reg);
            return Ok(reg);
        }
        if let Some(reg) = self.fixed(func, value) {
            return Ok(reg.into());
        }
        let reg = self.take(asm, is_float(func.dfg.value_type(value)))?;
        self.fetch(asm, func, value, reg)?;
        self.hold(value, reg);
        Ok(reg)
    }

    pub(super) fn use_gpr(&mut self, asm: &mut Asm, func: &Function, value: Value) -> Step<Gpr> {
        Ok(self.use_reg(asm, func, value)?.gpr())
    }

    pub(super) fn use_xmm(&mut self, asm: &mut Asm, func: &Function, value: Value) -> Step<Xmm> {
        Ok(self.use_reg(asm, func, value)?.xmm())
    }

    /// The register that always holds a value.
    fn fixed(&self, func: &Function, value: Value) -> Option<Gpr> {
        if !self.info(value).is_remade {
            return None;
        }
        match remade(func, value)?.opcode() {
            Opcode::GetPinnedReg => Some(R15),
            Opcode::GetFramePointer => Some(RBP),
            Opcode::GetStackPointer => Some(RSP),
            _ => None,
        }
    }

    /// Whether a value is the stack pointer, which changes while arguments are on the stack.
    pub(super) fn is_stack_pointer(&self, func: &Function, value: Value) -> bool {
        self.fixed(func, value) == Some(RSP)
    }

    /// Brings a value into a register, which becomes no place of it. Leaves the flags as they are.
    pub(super) fn fetch(&mut self, asm: &mut Asm, func: &Function, value: Value, reg: Reg) -> Step {
        if let Some(from) = self.register_of(value) {
            copy(asm, reg, from);
            return Ok(());
        }
        let info = *self.info(value);
        if info.is_remade {
            return self.remake(asm, func, value, reg);
        }
        if !info.crosses && !info.is_spilled {
            return Err(Unsupported);
        }
        let home = self.home(value);
        load(asm, reg, home);
        Ok(())
    }

    fn remake(&self, asm: &mut Asm, func: &Function, value: Value, reg: Reg) -> Step {
        let data = remade(func, value).ok_or(Unsupported)?;
        match *data {
            InstructionData::UnaryImm { imm, .. } => asm.mov_imm(reg.gpr(), imm.bits()),
            InstructionData::UnaryIeee32 { imm, .. } => {
                float_constant(asm, reg.xmm(), u64::from(imm.bits()));
            }
            InstructionData::UnaryIeee64 { imm, .. } => float_constant(asm, reg.xmm(), imm.bits()),
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let slot = self.slots[stack_slot.as_u32() as usize];
                asm.lea(reg.gpr(), Mem { base: RBP, disp: slot + i32::from(offset) });
            }
            InstructionData::NullAry { .. } => {
                asm.mov(reg.gpr(), self.fixed(func, value).ok_or(Unsupported)?);
            }
            _ => return Err(Unsupported),
        }
        Ok(())
    }

    /// The constant that a value is.
    pub(super) fn constant(&self, func: &Function, value: Value) -> Option<i64> {
        if !self.info(value).is_remade {
            return None;
        }
        match *remade(func, value)? {
            InstructionData::UnaryImm { imm, .. } => Some(imm.bits()),
            _ => None,
        }
    }

    /// A value as the right operand of an operation of that width.
    pub(super) fn operand(
        &mut self,
        asm: &mut Asm,
        func: &Function,
        value: Value,
        width: Width,
    ) -> Step<Operand> {
        if let Some(constant) = self.constant(func, value) {
            let imm = match width {
                Width::B64 => i32::try_from(constant).ok(),
                // The bits above the width do not count.
                _ => Some(constant as i32),
            };
            if let Some(imm) = imm {
                return Ok(Operand::Imm(imm));
            }
        }
        let info = *self.info(value);
        if info.reg == Reg::NONE && (info.crosses || info.is_spilled) && !info.is_remade && info.uses == 1 {
            return Ok(Operand::Mem(self.home(value)));
        }
        Ok(Operand::Reg(self.use_gpr(asm, func, value)?))
    }

    /// An address and a distance as an operand in memory.
    pub(super) fn address(&mut self, asm: &mut Asm, func: &Function, value: Value, offset: i32) -> Step<Mem> {
        if self.info(value).is_remade
            && let Some(&InstructionData::StackAddr { stack_slot, offset: at, .. }) = remade(func, value)
        {
            let slot = self.slots[stack_slot.as_u32() as usize];
            let disp = slot.checked_add(i32::from(at)).and_then(|disp| disp.checked_add(offset));
            return Ok(Mem { base: RBP, disp: disp.ok_or(Unsupported)? });
        }
        Ok(Mem { base: self.use_gpr(asm, func, value)?, disp: offset })
    }

    /// A register for the result of an instruction that changes its left operand, with the operand in it. `others` are operands
    /// that have to stay.
    pub(super) fn result_from(
        &mut self,
        asm: &mut Asm,
        func: &Function,
        left: Value,
        others: &[Value],
    ) -> Step<Reg> {
        if let Some(reg) = self.register_of(left)
            && self.is_last_use(left)
            && !others.contains(&left)
        {
            self.info_mut(left).reg = Reg::NONE;
            self.empty(reg);
            self.lock(reg);
            return Ok(reg);
        }
        let reg = self.take(asm, is_float(func.dfg.value_type(left)))?;
        self.fetch(asm, func, left, reg)?;
        Ok(reg)
    }

    /// Says that a register holds the result of an instruction.
    pub(super) fn define(&mut self, asm: &mut Asm, value: Value, reg: impl Into<Reg>) {
        let reg = reg.into();
        if !self.is_used(value) {
            return;
        }
        self.hold(value, reg);
        if self.info(value).crosses {
            let home = self.home(value);
            store(asm, home, reg);
        }
    }

    fn hold(&mut self, value: Value, reg: Reg) {
        self.holds[reg.0 as usize] = Some(value);
        self.occupied |= reg.bit();
        self.info_mut(value).reg = reg;
    }
}

/// The instruction by which a value is made again.
fn remade(func: &Function, value: Value) -> Option<&InstructionData> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, 0) => Some(&func.dfg.insts[inst]),
        _ => None,
    }
}

/// Whether an instruction is one that is made again at each use, in place of keeping its result.
pub(super) fn is_remade(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Iconst
            | Opcode::F32const
            | Opcode::F64const
            | Opcode::StackAddr
            | Opcode::GetPinnedReg
            | Opcode::GetFramePointer
            | Opcode::GetStackPointer
    )
}

pub(super) fn is_float(ty: Type) -> bool {
    ty == types::F32 || ty == types::F64
}

/// Whether values of a type fit into one register of ours.
pub(super) fn fits(ty: Type) -> bool {
    matches!(ty, types::I8 | types::I16 | types::I32 | types::I64 | types::F32 | types::F64)
}

/// Makes a constant by way of r11. Leaves the flags as they are.
fn float_constant(asm: &mut Asm, to: Xmm, bits: u64) {
    asm.mov_imm(R11, bits.cast_signed());
    asm.bits_to_float(to, R11);
}

/// Words are stored and loaded whole, whatever is in them.
pub(super) fn store(asm: &mut Asm, to: Mem, from: Reg) {
    match from.is_float() {
        true => asm.store_float(Precision::F64, to, from.xmm()),
        false => asm.store(to, from.gpr(), Width::B64),
    }
}

pub(super) fn load(asm: &mut Asm, to: Reg, from: Mem) {
    match to.is_float() {
        true => asm.load_float(Precision::F64, to.xmm(), from),
        false => asm.load(to.gpr(), from),
    }
}

pub(super) fn copy(asm: &mut Asm, to: Reg, from: Reg) {
    match to.is_float() {
        true => asm.movaps(to.xmm(), from.xmm()),
        false => asm.mov(to.gpr(), from.gpr()),
    }
}
