//! Registers and bytes of a loop in 256 or 512 bits.
//!
//! ```text
//!   rdi   the block of memory          carried values, inputs and constants have a register each, as far as there are enough;
//!   …     counters, words, the bound   values of an iteration take one until their last use
//!   r11   sums of a counter and a constant
//! ```
//!
//! Inputs and constants without a register are loaded at each use. If the values of an iteration do not fit into the registers, no code is emitted and the
//! loop stays as it is.

use brolga_ir::Value;
use brolga_ir::func::LineColumn;
use smallvec::SmallVec;

use super::{ALIGN, Address, Base, Bound, Made, Parts, Step, Wide, WideCode, WideLoop};
use crate::single_pass::asm::vex::{At, Bits, Vex};
use crate::single_pass::asm::{
    Alu, Asm, Cond, Gpr, Label, Mem, R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI, Width, Xmm,
};

/// General registers that a callee may change, in which words are kept.
const WORDS: [Gpr; 7] = [RAX, RCX, RDX, RSI, R8, R9, R10];
const SCRATCH: Gpr = R11;
const BLOCK: Gpr = RDI;
const VECTORS: u8 = 16;
const NONE: Xmm = Xmm(0);

const LOAD: Vex = Vex::new(1, 0x6f).prefix(2);
const STORE: Vex = Vex::new(1, 0x7f).prefix(2);
const MOVE: Vex = Vex::new(1, 0x6f);
const XOR: Vex = Vex::new(1, 0xef);
const BLEND_BYTES: Vex = Vex::new(3, 0x4c);
const INSERT_PART: Vex = Vex::new(3, 0x38);
const ALL_PARTS: Vex = Vex::new(2, 0x5a);
const ALL_WORDS: Vex = Vex::new(2, 0x59).words(true);

/// The code of a loop, which gets the block of memory as its argument; `None` if there are too few registers.
pub(crate) fn emit(wide: &WideLoop) -> Option<WideCode> {
    if wide.counters.len() + wide.words.len() > WORDS.len() {
        return None;
    }
    let fixed = |(n, made): (Wide, &Made)| matches!(made, Made::Input(_) | Made::Constant(_)).then_some(n);
    let mut resident: Vec<Wide> = wide.values.iter().enumerate().filter_map(fixed).collect();
    loop {
        if let Some(code) = Emission::of(wide, &resident).and_then(Emission::code) {
            return Some(code);
        }
        resident.pop()?;
    }
}

struct Emission<'a> {
    wide: &'a WideLoop,
    /// The bits of all vectors.
    bits: Bits,
    asm: Asm,
    /// The current registers of values.
    at: Vec<Option<Xmm>>,
    /// The remaining uses of values in this iteration.
    uses: Vec<u32>,
    free: SmallVec<[Xmm; 16]>,
    /// Values that keep their registers.
    kept: Vec<bool>,
    /// Constants in memory.
    pool: Vec<(Parts<u128>, Label)>,
}

impl<'a> Emission<'a> {
    /// The state before the loop.
    fn of(wide: &'a WideLoop, resident: &[Wide]) -> Option<Self> {
        let count = wide.values.len();
        let mut uses = vec![0; count];
        wide.values.iter().flat_map(Made::operands).for_each(|of| uses[of] += 1);
        for (_, step) in &wide.steps {
            if let Step::Store(_, of) = *step {
                uses[of] += 1;
            }
        }
        // The next iteration uses the carried values.
        wide.carried.iter().for_each(|one| uses[one.next] += 1);
        let mut made = Emission {
            wide,
            bits: if wide.parts > 2 { Bits::Double } else { Bits::All },
            asm: Asm::default(),
            at: vec![None; count],
            uses,
            free: (0..VECTORS).rev().map(Xmm).collect(),
            kept: vec![false; count],
            pool: Vec::new(),
        };
        let carried = wide.values.iter().enumerate().filter(|(_, made)| matches!(made, Made::Carried(_)));
        for n in carried.map(|(n, _)| n).chain(resident.iter().copied()) {
            made.at[n] = Some(made.free.pop()?);
            made.kept[n] = true;
        }
        Some(made)
    }

    /// The whole code.
    fn code(mut self) -> Option<WideCode> {
        let mut lines = Vec::new();
        self.note_line(&mut lines, self.wide.end_line);
        self.enter();
        self.asm.align(ALIGN);
        let head = self.asm.label();
        self.asm.bind(head);
        for &(line, step) in &self.wide.steps {
            self.note_line(&mut lines, line);
            match step {
                Step::Make(value) => self.value(value)?,
                Step::Store(address, stored) => {
                    let (register, at) = (self.operand(stored)?, self.address(address));
                    self.asm.vex_rm(STORE, self.bits, register, NONE, at);
                    self.used(stored, register);
                }
            }
        }
        self.note_line(&mut lines, self.wide.end_line);
        self.hand_over()?;
        self.end(head);
        self.leave();
        self.constants();
        Some(WideCode { bytes: self.asm.finish()?.code, lines })
    }

    fn note_line(&self, lines: &mut Vec<(u32, LineColumn)>, line: LineColumn) {
        if line != LineColumn::UNKNOWN && lines.last().is_none_or(|&(_, last)| last != line) {
            lines.push((self.asm.offset(), line));
        }
    }

    // ----- words -----

    fn counter(&self, n: usize) -> Gpr {
        WORDS[n]
    }

    fn word(&self, n: usize) -> Gpr {
        WORDS[self.wide.counters.len() + n]
    }

    fn address(&self, address: Address) -> At {
        let base = match address.base {
            Base::Word(n) => self.word(n),
            Base::Counter(n) => self.counter(n),
        };
        At::Base(base, address.index.map(|(n, scale)| (self.counter(n), scale)), address.disp)
    }

    // ----- before and after the loop -----

    fn enter(&mut self) {
        let wide = self.wide;
        for n in 0..wide.counters.len() {
            self.asm.load(self.counter(n), Mem { base: BLOCK, disp: wide.counter_at(n) });
        }
        for n in 0..wide.words.len() {
            self.asm.load(self.word(n), Mem { base: BLOCK, disp: wide.word_at(n) });
        }
        for (n, made) in wide.values.iter().enumerate() {
            if let Some(register) = self.at[n] {
                match *made {
                    Made::Carried(number) => self.load_parts(register, wide.carried_at(number)),
                    _ => self.fetch(made, register),
                }
            }
        }
    }

    /// An input or a constant.
    fn fetch(&mut self, made: &Made, to: Xmm) {
        match *made {
            Made::Input(n) if self.wide.inputs[n].iter().all(|&part| part == self.wide.inputs[n][0]) => {
                let at = At::Base(BLOCK, None, self.wide.input_at(n));
                self.asm.vex_rm(ALL_PARTS, self.bits, to, NONE, at);
            }
            Made::Input(n) => self.load_parts(to, self.wide.input_at(n)),
            Made::Constant(ref bits) if bits.iter().all(|&part| part == 0) => {
                self.asm.vex_rr(XOR, Bits::Half, to, to, to);
            }
            Made::Constant(ref bits) => {
                let known = self.pool.iter().find(|(constant, _)| constant == bits).map(|&(_, label)| label);
                let label = known.unwrap_or_else(|| {
                    let label = self.asm.label();
                    self.pool.push((bits.clone(), label));
                    label
                });
                self.asm.vex_rm(LOAD, self.bits, to, NONE, At::Label(label));
            }
            _ => {}
        }
    }

    /// Parts that were stored separately: one wide load would wait until all stores are in the cache.
    fn load_parts(&mut self, to: Xmm, disp: i32) {
        self.asm.vex_rm(LOAD, Bits::Half, to, NONE, At::Base(BLOCK, None, disp));
        for part in 1..self.wide.parts as u8 {
            let at = At::Base(BLOCK, None, disp + 16 * i32::from(part));
            self.asm.vex_rm(INSERT_PART, self.bits, to, to, at);
            self.asm.vex_last(part);
        }
    }

    fn leave(&mut self) {
        let wide = self.wide;
        for n in 0..wide.counters.len() {
            let to = Mem { base: BLOCK, disp: wide.counter_at(n) };
            self.asm.store(to, self.counter(n), Width::B64);
        }
        for (n, made) in wide.values.iter().enumerate() {
            if let (Made::Carried(number), Some(register)) = (made, self.at[n]) {
                let to = At::Base(BLOCK, None, wide.carried_at(*number));
                self.asm.vex_rm(STORE, self.bits, register, NONE, to);
            }
        }
        self.asm.vzeroupper();
        self.asm.ret();
    }

    fn constants(&mut self) {
        for (bits, label) in std::mem::take(&mut self.pool) {
            self.asm.align(ALIGN);
            self.asm.bind(label);
            bits.iter().for_each(|part| self.asm.bytes(&part.to_le_bytes()));
        }
    }

    // ----- an iteration -----

    /// The register of a used value; for a value in memory, a register for this use.
    fn operand(&mut self, of: Wide) -> Option<Xmm> {
        if let Some(register) = self.at[of] {
            return Some(register);
        }
        let register = self.free.pop()?;
        let made = &self.wide.values[of];
        self.fetch(made, register);
        Some(register)
    }

    /// Records a use.
    fn used(&mut self, of: Wide, register: Xmm) {
        self.uses[of] -= 1;
        if self.at[of].is_none() {
            self.free.push(register);
        } else if self.uses[of] == 0 && !self.kept[of] {
            self.at[of] = None;
            self.free.push(register);
        }
    }

    /// The register in which a value is carried, if the value is the next one of a carried value that has no more uses.
    fn carrier(&self, value: Wide) -> Option<Xmm> {
        let number = self.wide.carried.iter().position(|one| one.next == value)?;
        let carried = self.wide.values.iter().position(|made| *made == Made::Carried(number))?;
        self.at[carried].filter(|_| self.uses[carried] == 0)
    }

    /// Assigns a register to a value.
    fn place(&mut self, value: Wide) -> Option<Xmm> {
        let register = match self.carrier(value) {
            Some(register) => {
                self.kept[value] = true;
                register
            }
            None => self.free.pop()?,
        };
        self.at[value] = Some(register);
        Some(register)
    }

    /// An unused value frees its register at once.
    fn settle(&mut self, value: Wide, register: Xmm) {
        if self.uses[value] == 0 && !self.kept[value] {
            self.at[value] = None;
            self.free.push(register);
        }
    }

    fn value(&mut self, value: Wide) -> Option<()> {
        let wide = self.wide;
        let made = &wide.values[value];
        let operands = made.operands();
        let mut from = SmallVec::<[Xmm; 3]>::new();
        for &of in &operands {
            from.push(self.operand(of)?);
        }
        if let Made::Fma(vex, ..) = *made {
            return self.fma(vex, value, &operands, &from);
        }
        operands.iter().zip(&from).for_each(|(&of, &register)| self.used(of, register));
        let to = self.place(value)?;
        match (made, &from[..]) {
            (&Made::Binary(vex, last, ..), &[a, b]) => {
                self.asm.vex_rr(vex, self.bits, to, a, b);
                last.into_iter().for_each(|last| self.asm.vex_last(last));
            }
            (&Made::Unary(vex, _), &[a]) => self.asm.vex_rr(vex, self.bits, to, NONE, a),
            (&Made::Shift(vex, digit, _, count), &[a]) => {
                self.asm.vex_rr(vex, self.bits, Xmm(digit), to, a);
                self.asm.vex_last(count);
            }
            (Made::Blend(..), &[mask, no, yes]) => {
                self.asm.vex_rr(BLEND_BYTES, self.bits, to, no, yes);
                self.asm.vex_last(mask.0 << 4);
            }
            (&Made::Load(address), []) => {
                let at = self.address(address);
                self.asm.vex_rm(LOAD, self.bits, to, NONE, at);
            }
            (&Made::Splat(counter, distance), []) => self.splat(to, counter, distance),
            _ => return None,
        }
        self.settle(value, to);
        Some(())
    }

    fn splat(&mut self, to: Xmm, counter: usize, distance: i32) {
        let mut from = self.counter(counter);
        if distance != 0 {
            self.asm.lea(SCRATCH, Mem { base: from, disp: distance });
            from = SCRATCH;
        }
        self.asm.vex_from_gpr(to, from);
        self.asm.vex_rr(ALL_WORDS, self.bits, to, NONE, to);
    }

    /// The sum is computed in the register of the third operand, or of a copy of it.
    fn fma(&mut self, vex: Vex, value: Wide, operands: &[Wide], from: &[Xmm]) -> Option<()> {
        let (&[a, b, c], &[_, _, sum]) = (from, operands) else { return None };
        // Other operands may have the register of the result only if they are the same value.
        let last = self.uses[sum] == 1 && !operands[..2].contains(&sum);
        let free = last && self.at[sum].is_some();
        if free && !self.kept[sum] {
            // It stays where it is, under another name.
            self.at[sum] = None;
            self.uses[sum] -= 1;
            operands[..2].iter().zip(from).for_each(|(&of, &register)| self.used(of, register));
            let to = match self.carrier(value) {
                // Not the register of a factor, which is read later.
                Some(to) if !from[..2].contains(&to) => {
                    self.asm.vex_rr(MOVE, self.bits, to, NONE, c);
                    self.free.push(c);
                    self.kept[value] = true;
                    to
                }
                _ => c,
            };
            self.asm.vex_rr(vex, self.bits, to, a, b);
            self.at[value] = Some(to);
            self.settle(value, to);
            return Some(());
        }
        if free && self.wide.carried.iter().any(|one| one.next == value && self.is_carried(sum, &one.phis)) {
            operands.iter().zip(from).for_each(|(&of, &register)| self.used(of, register));
            self.kept[value] = true;
            self.at[value] = Some(c);
            self.asm.vex_rr(vex, self.bits, c, a, b);
            return Some(());
        }
        let to = self.free.pop()?;
        self.asm.vex_rr(MOVE, self.bits, to, NONE, c);
        self.asm.vex_rr(vex, self.bits, to, a, b);
        operands.iter().zip(from).for_each(|(&of, &register)| self.used(of, register));
        self.at[value] = Some(to);
        self.settle(value, to);
        Some(())
    }

    /// Whether these φs carry a value.
    fn is_carried(&self, value: Wide, phis: &Parts<Value>) -> bool {
        match self.wide.values[value] {
            Made::Carried(n) => self.wide.carried[n].phis == *phis,
            _ => false,
        }
    }

    /// Moves next values into the registers in which they are carried.
    fn hand_over(&mut self) -> Option<()> {
        let wide = self.wide;
        for (number, one) in wide.carried.iter().enumerate() {
            let carried = wide.values.iter().position(|made| *made == Made::Carried(number))?;
            let (from, to) = (self.at[one.next]?, self.at[carried]?);
            if from != to {
                self.asm.vex_rr(MOVE, self.bits, to, NONE, from);
            }
        }
        Some(())
    }

    fn end(&mut self, head: Label) {
        let end = self.wide.end;
        if end.is_next {
            self.step();
        }
        let tested = self.counter(end.counter);
        match end.bound {
            Bound::Const(bound) => self.asm.alu_imm(Alu::Cmp, Width::B64, tested, bound),
            Bound::Word(n) => self.asm.alu(Alu::Cmp, Width::B64, tested, self.word(n)),
        }
        if !end.is_next {
            self.step();
        }
        let cond: Cond = end.cond;
        self.asm.jcc(cond, head);
    }

    /// Steps the counters. Preserves the flags.
    fn step(&mut self) {
        for (n, counter) in self.wide.counters.iter().enumerate() {
            let register = self.counter(n);
            self.asm.lea(register, Mem { base: register, disp: counter.step });
        }
    }
}
