//! Register allocation of the single pass: a value is in a register, in its word of the frame, or rematerialized.
//!
//! ```text
//!   rbp + 16 …      arguments passed on the stack by the caller: they stay there
//!   rbp             the caller's rbp
//!   rbp − 8 …       callee-saved registers, if the function has handlers; stack slots; words of values
//!   rsp             multiple of 16
//! ```
//!
//! | value | is kept |
//! |---|---|
//! | a constant, an address of the frame, a pinned register | nowhere: its instruction is emitted again at each use |
//! | used in blocks other than its own, or a block's parameter | in its word from its definition on; registers are copies |
//! | used in its own block only | in a register; in its word after the register was evicted or a call was made |
//!
//! So the end of a block saves nothing. At the start of a block all registers are empty, unless its only predecessor is the
//! block before it.
//!
//! rax, rcx, rdx, rsi, rdi, r8 to r10 and xmm0 to xmm14 hold values; all are clobbered by calls. r11 and xmm15 are scratch
//! within one instruction. r15 is the thread. Callee-saved registers are not used.
//!
//! Cost: a few comparisons for each operand; a register is found by two operations on masks.

use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value, ValueDef, types};

use super::asm::{Asm, Gpr, Mem, Precision, R11, R15, RBP, RSP, Width, Xmm};
use super::{Step, Unsupported};

/// A register of either kind: general ones from 0, vector ones from 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reg(u8);

impl Reg {
    /// [`Info::reg`] of a value that is in no register.
    const NONE: Reg = Reg(u8::MAX);
    /// xmm15, scratch within one instruction.
    pub(super) const SCRATCH_FLOAT: Reg = Reg(16 + 15);

    const fn bit(self) -> u32 {
        1 << self.0
    }

    pub(super) const fn is_float(self) -> bool {
        self.0 >= 16
    }

    /// The general register; `self` must be one.
    pub(super) const fn gpr(self) -> Gpr {
        Gpr(self.0 & 15)
    }

    /// The vector register; `self` must be one.
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

/// The state of a value.
#[derive(Clone, Copy, Debug)]
struct Info {
    /// The remaining uses: those in code that is not emitted yet.
    uses: u32,
    /// The value's word, as an offset from rbp; 0 if it has none.
    home: i32,
    reg: Reg,
    /// Whether it has a use anywhere in the function.
    is_used: bool,
    /// Whether its instruction is emitted again at each use.
    is_rematerialized: bool,
    /// Whether it is live across blocks, and so in its word from its definition on.
    crosses: bool,
    /// Whether it was spilled to its word, or passed on the stack.
    is_spilled: bool,
}

const UNKNOWN: Info = Info {
    uses: 0,
    home: 0,
    reg: Reg::NONE,
    is_used: false,
    is_rematerialized: false,
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

/// The places of all values of a function.
#[derive(Default)]
pub(super) struct Places {
    infos: Vec<Info>,
    /// The values in the registers, by number.
    holds: Vec<Option<Value>>,
    /// The registers that hold a value, as a mask.
    occupied: u32,
    /// The registers that the current instruction uses, as a mask.
    locked: u32,
    /// The last evicted register: victims are chosen in turn.
    last_victim: u32,
    /// The size of the frame so far, in bytes.
    frame: u32,
    /// The most bytes pushed below the frame at any time.
    below: u32,
    /// Words of the frame that are free again.
    free: Vec<i32>,
    /// Offsets of stack slots from rbp.
    pub(super) slots: Vec<i32>,
}

impl Places {
    /// Resets all state for a function.
    pub(super) fn clear(&mut self, func: &Function) {
        self.infos.clear();
        self.infos.resize(func.dfg.num_values(), UNKNOWN);
        self.holds.clear();
        self.holds.resize(32, None);
        (self.occupied, self.locked, self.last_victim) = (0, 0, 0);
        (self.frame, self.below) = (0, 0);
        self.free.clear();
        self.slots.clear();
    }

    // ----- facts found before code is emitted -----

    /// Counts a use, `is_elsewhere` if it is in another block than the definition.
    pub(super) fn count_use(&mut self, value: Value, is_elsewhere: bool) {
        let info = self.info_mut(value);
        info.uses += 1;
        info.is_used = true;
        info.crosses |= is_elsewhere;
    }

    /// Marks a value as live across blocks.
    pub(super) fn set_crosses(&mut self, value: Value) {
        self.info_mut(value).crosses = true;
    }

    /// Marks a value as rematerialized.
    pub(super) fn set_rematerialized(&mut self, value: Value) {
        self.info_mut(value).is_rematerialized = true;
    }

    /// Records that the caller passed a value on the stack, at `home`.
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

    /// Reserves bytes of the frame; returns their offset from rbp.
    pub(super) fn reserve(&mut self, bytes: u32, align: u32) -> i32 {
        self.frame = (self.frame + bytes).next_multiple_of(align);
        -(self.frame as i32)
    }

    /// The size of the frame in bytes.
    pub(super) fn frame(&self) -> u32 {
        self.frame.next_multiple_of(16)
    }

    /// Records that `bytes` are pushed below the frame temporarily.
    pub(super) fn push(&mut self, bytes: u32) {
        self.below = self.below.max(bytes);
    }

    /// The stack bytes of an activation below rbp.
    pub(super) fn extent(&self) -> u32 {
        self.frame() + self.below.next_multiple_of(16)
    }

    /// The word of a value, reserved on first use.
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

    /// Protects a register from eviction until the end of the instruction.
    pub(super) fn lock(&mut self, reg: impl Into<Reg>) {
        self.locked |= reg.into().bit();
    }

    /// Ends an instruction: its registers may be evicted.
    pub(super) fn unlock(&mut self) {
        self.locked = 0;
    }

    /// Counts down a use whose code is emitted. The last use frees the register, and the word of a value that does not
    /// cross blocks.
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

    /// Empties all registers. Values that are still needed must be in their words.
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

    /// A locked register, after evicting its value if none is free.
    fn allocate(&mut self, asm: &mut Asm, is_float: bool) -> Step<Reg> {
        let candidates = if is_float { FLOATS } else { INTS } & !self.locked;
        if candidates == 0 {
            return Err(Unsupported);
        }
        let free = candidates & !self.occupied;
        let number = if free != 0 {
            free.trailing_zeros()
        } else {
            // Victims rotate, so the value loaded last is not evicted first.
            let later = candidates & !(2u32 << self.last_victim).wrapping_sub(1);
            self.last_victim = if later != 0 { later } else { candidates }.trailing_zeros();
            self.last_victim
        };
        let reg = Reg(number as u8);
        self.evict(asm, reg);
        self.lock(reg);
        Ok(reg)
    }

    /// A general register for an intermediate value.
    pub(super) fn temporary(&mut self, asm: &mut Asm) -> Step<Gpr> {
        Ok(self.allocate(asm, false)?.gpr())
    }

    /// A vector register for an intermediate value.
    pub(super) fn temporary_float(&mut self, asm: &mut Asm) -> Step<Xmm> {
        Ok(self.allocate(asm, true)?.xmm())
    }

    /// Locks this register, after evicting its value.
    pub(super) fn claim(&mut self, asm: &mut Asm, reg: Gpr) -> Step {
        let reg = Reg::from(reg);
        if self.locked & reg.bit() != 0 {
            return Err(Unsupported);
        }
        self.evict(asm, reg);
        self.lock(reg);
        Ok(())
    }

    fn evict(&mut self, asm: &mut Asm, reg: Reg) {
        if let Some(value) = self.holds[reg.0 as usize] {
            self.spill(asm, value, reg);
            self.info_mut(value).reg = Reg::NONE;
            self.empty(reg);
        }
    }

    /// Stores a value to its word, unless it is there already or is rematerialized.
    fn spill(&mut self, asm: &mut Asm, value: Value, reg: Reg) {
        let info = self.info(value);
        if !info.is_rematerialized && !info.crosses && !info.is_spilled {
            let home = self.home(value);
            store(asm, home, reg);
            self.info_mut(value).is_spilled = true;
        }
    }

    /// Before a call: spills the values that have uses after it. `used` are the operands of the call.
    pub(super) fn save_around(&mut self, asm: &mut Asm, used: &[Value]) {
        let mut occupied = self.occupied;
        while occupied != 0 {
            let number = occupied.trailing_zeros();
            occupied &= occupied - 1;
            if let Some(value) = self.holds[number as usize] {
                let now = used.iter().filter(|&&other| other == value).count();
                if self.info(value).uses as usize > now {
                    self.spill(asm, value, Reg(number as u8));
                }
            }
        }
    }

    // ----- operands and results -----

    /// A value in a locked register.
    pub(super) fn use_reg(&mut self, asm: &mut Asm, func: &Function, value: Value) -> Step<Reg> {
        if let Some(reg) = self.register_of(value) {
            self.lock(reg);
            return Ok(reg);
        }
        if let Some(reg) = self.fixed(func, value) {
            return Ok(reg.into());
        }
        let reg = self.allocate(asm, is_float(func.dfg.value_type(value)))?;
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

    /// The fixed register that a value is always in, if any: the thread, the frame or the stack pointer.
    fn fixed(&self, func: &Function, value: Value) -> Option<Gpr> {
        if !self.info(value).is_rematerialized {
            return None;
        }
        match definition(func, value)?.opcode() {
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

    /// Copies a value into a register, which does not become its place. Preserves the flags.
    pub(super) fn fetch(&mut self, asm: &mut Asm, func: &Function, value: Value, reg: Reg) -> Step {
        if let Some(from) = self.register_of(value) {
            copy(asm, reg, from);
            return Ok(());
        }
        let info = *self.info(value);
        if info.is_rematerialized {
            return self.rematerialize(asm, func, value, reg);
        }
        if !info.crosses && !info.is_spilled {
            return Err(Unsupported);
        }
        let home = self.home(value);
        load(asm, reg, home);
        Ok(())
    }

    fn rematerialize(&self, asm: &mut Asm, func: &Function, value: Value, reg: Reg) -> Step {
        let data = definition(func, value).ok_or(Unsupported)?;
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

    /// The value as an integer constant, if it is one.
    pub(super) fn constant(&self, func: &Function, value: Value) -> Option<i64> {
        if !self.info(value).is_rematerialized {
            return None;
        }
        match *definition(func, value)? {
            InstructionData::UnaryImm { imm, .. } => Some(imm.bits()),
            _ => None,
        }
    }

    /// A value as the right operand of an operation of width `width`.
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
                // The bits above the width are ignored.
                _ => Some(constant as i32),
            };
            if let Some(imm) = imm {
                return Ok(Operand::Imm(imm));
            }
        }
        let info = *self.info(value);
        if info.reg == Reg::NONE
            && (info.crosses || info.is_spilled)
            && !info.is_rematerialized
            && info.uses == 1
        {
            return Ok(Operand::Mem(self.home(value)));
        }
        Ok(Operand::Reg(self.use_gpr(asm, func, value)?))
    }

    /// The memory operand at an address plus an offset.
    pub(super) fn address(&mut self, asm: &mut Asm, func: &Function, value: Value, offset: i32) -> Step<Mem> {
        if self.info(value).is_rematerialized
            && let Some(&InstructionData::StackAddr { stack_slot, offset: at, .. }) = definition(func, value)
        {
            let slot = self.slots[stack_slot.as_u32() as usize];
            let disp = slot.checked_add(i32::from(at)).and_then(|disp| disp.checked_add(offset));
            return Ok(Mem { base: RBP, disp: disp.ok_or(Unsupported)? });
        }
        Ok(Mem { base: self.use_gpr(asm, func, value)?, disp: offset })
    }

    /// A register for the result of an instruction that overwrites its left operand, with a copy of that operand in it.
    /// `others` are the operands that must survive.
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
        let reg = self.allocate(asm, is_float(func.dfg.value_type(left)))?;
        self.fetch(asm, func, left, reg)?;
        Ok(reg)
    }

    /// Records that a register holds the result of an instruction.
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

/// The instruction that defines a value, if the value is its first result.
fn definition(func: &Function, value: Value) -> Option<&InstructionData> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, 0) => Some(&func.dfg.insts[inst]),
        _ => None,
    }
}

/// Whether an instruction is rematerialized: emitted at each use instead of keeping its result.
pub(super) fn is_rematerialized(opcode: Opcode) -> bool {
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

/// Whether values of a type fit into one register.
pub(super) fn fits(ty: Type) -> bool {
    matches!(ty, types::I8 | types::I16 | types::I32 | types::I64 | types::F32 | types::F64)
}

/// Loads a float constant through r11. Preserves the flags.
fn float_constant(asm: &mut Asm, to: Xmm, bits: u64) {
    asm.mov_imm(R11, bits.cast_signed());
    asm.bits_to_float(to, R11);
}

/// Stores a register to a word. Words are stored and loaded as 64 bits, for all types of values.
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
