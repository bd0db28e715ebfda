//! Vectors: every operation on lanes.
//!
//! A `v128` is an `i8x16` between operations, and gets an operation's type by a `bitcast`, which emits no instruction.
//! Lane 0 is in the low bits and comes first in memory, on every host that `isa.rs` takes.
//!
//! A shift whose count is not below the width yields zero, or the sign, as a scalar one does; the processor's own shifts
//! differ in that, so only constant counts are free.

use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::lanes::Lanes;
use brolga_ir::{Inst, Op};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Opcode, Type, Value, types};

use super::{Done, TranslateError, Translation};

/// The type of vectors between operations.
const PLAIN: Type = types::I8X16;

fn lane_type(lanes: Lanes) -> Type {
    match lanes {
        Lanes::I8x16 => types::I8X16,
        Lanes::I16x8 => types::I16X8,
        Lanes::I32x4 => types::I32X4,
        Lanes::I64x2 => types::I64X2,
        Lanes::F32x4 => types::F32X4,
        Lanes::F64x2 => types::F64X2,
    }
}

impl Translation<'_> {
    fn vector_as(&mut self, value: Value, ty: Type) -> Value {
        if self.b.func.dfg.value_type(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.b.ins().bitcast(ty, flags, value)
    }

    /// Operand `n`, with these lanes.
    fn vector_arg(&mut self, inst: Inst, n: usize, ty: Type) -> Result<Value, TranslateError> {
        let value = self.arg(inst, n)?;
        if self.b.func.dfg.value_type(value) != PLAIN {
            return self.bad(inst);
        }
        Ok(self.vector_as(value, ty))
    }

    fn define_vector(&mut self, inst: Inst, value: Value) -> Done {
        let plain = self.vector_as(value, PLAIN);
        self.define(inst, &[plain])
    }

    pub(super) fn splat(&mut self, inst: Inst, lanes: Lanes) -> Done {
        let (ty, value) = (lane_type(lanes), self.arg(inst, 0)?);
        if self.b.func.dfg.value_type(value) != ty.lane_type() {
            return self.bad(inst);
        }
        let made = self.b.ins().splat(ty, value);
        self.define_vector(inst, made)
    }

    pub(super) fn extract_lane(&mut self, inst: Inst, lanes: Lanes, lane: u8) -> Done {
        let vector = self.vector_arg(inst, 0, lane_type(lanes))?;
        if u32::from(lane) >= lanes.count() {
            return self.bad(inst);
        }
        let value = self.b.ins().extractlane(vector, lane);
        self.define(inst, &[value])
    }

    pub(super) fn insert_lane(&mut self, inst: Inst, lanes: Lanes, lane: u8) -> Done {
        let ty = lane_type(lanes);
        if let Some(made) = self.moved_half(inst, lanes, lane)? {
            return self.define(inst, &[made]);
        }
        let (vector, value) = (self.vector_arg(inst, 0, ty)?, self.arg(inst, 1)?);
        if u32::from(lane) >= lanes.count() || self.b.func.dfg.value_type(value) != ty.lane_type() {
            return self.bad(inst);
        }
        let zero = self.func.args(inst).first().and_then(|&v| self.func.as_bits(v)) == Some(0);
        // A scalar register already has zeros in the other lanes.
        let made = if zero && lane == 0 && ty.lane_bits() >= 32 {
            self.b.ins().scalar_to_vector(ty, value)
        } else {
            self.b.ins().insertlane(vector, value, lane)
        };
        self.define_vector(inst, made)
    }

    /// Replaces a half of a vector by a half of another: one shuffle, without an integer register.
    fn moved_half(&mut self, inst: Inst, lanes: Lanes, lane: u8) -> Result<Option<Value>, TranslateError> {
        let moved = self.func.args(inst).get(1).and_then(|&v| self.func.def_inst(v));
        let Some((moved, Op::ExtractLane(Lanes::I64x2, from @ 0..=1))) = moved.map(|i| (i, self.func.op(i)))
        else {
            return Ok(None);
        };
        if lanes != Lanes::I64x2 || lane > 1 {
            return Ok(None);
        }
        let (kept, half) = (self.vector_arg(inst, 0, PLAIN)?, self.vector_arg(moved, 0, PLAIN)?);
        let bytes = |first: u8| (first..first + 8).collect::<Vec<u8>>();
        let (kept_half, moved_half) = (bytes(8 - 8 * lane), bytes(16 + 8 * from));
        let order = if lane == 0 { [moved_half, kept_half] } else { [kept_half, moved_half] }.concat();
        let order = self.b.func.dfg.immediates.push(order.into());
        Ok(Some(self.b.ins().shuffle(kept, half, order)))
    }

    /// The vector whose high half is the operand's low half.
    fn high_half_of(&mut self, inst: Inst, ty: Type) -> Result<Option<Value>, TranslateError> {
        let made = self.func.args(inst).first().and_then(|&v| self.func.def_inst(v));
        let Some(made) = made.filter(|&i| self.func.op(i) == Op::InsertLane(Lanes::I64x2, 0)) else {
            return Ok(None);
        };
        let moved = self.func.args(made).get(1).and_then(|&v| self.func.def_inst(v));
        match moved.filter(|&i| self.func.op(i) == Op::ExtractLane(Lanes::I64x2, 1)) {
            Some(moved) => self.vector_arg(moved, 0, ty).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn lane_select(&mut self, inst: Inst) -> Done {
        let mask = self.vector_arg(inst, 0, PLAIN)?;
        // Code generation blends by the result of a comparison in one instruction, because its lanes are all ones or all zeros, if its type is left as it is.
        let mask = self.compared(mask).unwrap_or(mask);
        let ty = self.b.func.dfg.value_type(mask);
        let (yes, no) = (self.vector_arg(inst, 1, ty)?, self.vector_arg(inst, 2, ty)?);
        // The lesser of two words would be recognised, and has no instruction.
        let made = match ty == types::I64X2 && self.isa.blends_words() {
            true => self.b.ins().blendv(mask, yes, no),
            false => self.b.ins().bitselect(mask, yes, no),
        };
        self.define_vector(inst, made)
    }

    /// The comparison of integers that produced a vector's bits.
    fn compared(&self, vector: Value) -> Option<Value> {
        let dfg = &self.b.func.dfg;
        let made = |value: Value| dfg.value_def(value).inst().map(|made| (made, dfg.insts[made].opcode()));
        let (cast, Opcode::Bitcast) = made(vector)? else { return None };
        let of = *dfg.inst_args(cast).first()?;
        matches!(made(of), Some((_, Opcode::Icmp))).then_some(of)
    }

    pub(super) fn lanes(&mut self, inst: Inst, op: Intrinsic, lanes: Lanes) -> Done {
        let ty = lane_type(lanes);
        if !lanes.allows(op) || !op.arity().allows(self.func.args(inst).len()) {
            return self.bad(inst);
        }
        if Lanes::shifts(op) {
            return self.lane_shift(inst, op, lanes);
        }
        let mut args = [None; 3];
        for (n, arg) in args.iter_mut().enumerate().take(self.func.args(inst).len()) {
            *arg = Some(self.vector_arg(inst, n, ty)?);
        }
        let widens = matches!(op, Intrinsic::SextInt | Intrinsic::ZextInt);
        if widens && let Some(of) = self.high_half_of(inst, ty)? {
            let made = match op {
                Intrinsic::SextInt => self.b.ins().swiden_high(of),
                _ => self.b.ins().uwiden_high(of),
            };
            return self.define_vector(inst, made);
        }
        let made = match args {
            [Some(x), None, None] if lanes.made_by(op) != lanes => self.lane_convert(op, lanes, x),
            [Some(x), None, None] if Lanes::counts_bits(op) => Some(self.counted_bits(op, lanes, x)),
            [Some(x), None, None] => self.lane_unary(op, x),
            [Some(x), Some(y), None] => self.lane_binary(op, x, y),
            [Some(x), Some(y), Some(z)] if op == Intrinsic::MuladdFloat => {
                let product = self.b.ins().fmul(x, y);
                Some(self.b.ins().fadd(product, z))
            }
            [Some(x), Some(y), Some(z)] if op == Intrinsic::FmaFloat => Some(self.b.ins().fma(x, y, z)),
            _ => None,
        };
        match made {
            Some(made) => self.define_vector(inst, made),
            None => self.bad(inst),
        }
    }

    /// Counts of bits of each lane, one by one: Cranelift has no operation on lanes. Loops with them are in wider registers (`wide/`).
    fn counted_bits(&mut self, op: Intrinsic, lanes: Lanes, x: Value) -> Value {
        let counted = |this: &mut Self, lane: u32| {
            let word = this.b.ins().extractlane(x, lane as u8);
            match op {
                Intrinsic::CtpopInt => this.b.ins().popcnt(word),
                Intrinsic::CtlzInt => this.b.ins().clz(word),
                _ => this.b.ins().ctz(word),
            }
        };
        let first = counted(self, 0);
        let first = self.b.ins().scalar_to_vector(lane_type(lanes), first);
        (1..lanes.count()).fold(first, |made, lane| {
            let word = counted(self, lane);
            self.b.ins().insertlane(made, word, lane as u8)
        })
    }

    /// A conversion to the next width, of the low half of the lanes or into it.
    fn lane_convert(&mut self, op: Intrinsic, lanes: Lanes, x: Value) -> Option<Value> {
        Some(match op {
            Intrinsic::SextInt => self.b.ins().swiden_low(x),
            Intrinsic::ZextInt => self.b.ins().uwiden_low(x),
            Intrinsic::Fpext => self.b.ins().fvpromote_low(x),
            Intrinsic::Fptrunc => self.b.ins().fvdemote(x),
            Intrinsic::Sitofp => {
                let wide = self.b.ins().swiden_low(x);
                self.b.ins().fcvt_from_sint(types::F64X2, wide)
            }
            Intrinsic::TruncInt => {
                // The low bytes of each lane, then zeros of the second operand.
                let (wide, narrow) =
                    (lanes.element().bytes() as u8, lanes.made_by(op).element().bytes() as u8);
                let kept = (0..16 / wide).flat_map(|lane| (0..narrow).map(move |byte| lane * wide + byte));
                let bytes: Vec<u8> = kept.chain(std::iter::repeat(16)).take(16).collect();
                let (x, zero) = (self.vector_as(x, PLAIN), self.vector_constant(0));
                let order = self.b.func.dfg.immediates.push(bytes.into());
                self.b.ins().shuffle(x, zero, order)
            }
            _ => return None,
        })
    }

    fn lane_unary(&mut self, op: Intrinsic, x: Value) -> Option<Value> {
        let ins = self.b.ins();
        Some(match op.strict() {
            Intrinsic::NegInt => ins.ineg(x),
            Intrinsic::NotInt => ins.bnot(x),
            Intrinsic::NegFloat => ins.fneg(x),
            Intrinsic::AbsFloat => ins.fabs(x),
            Intrinsic::SqrtLlvm => ins.sqrt(x),
            _ => return None,
        })
    }

    fn lane_binary(&mut self, op: Intrinsic, x: Value, y: Value) -> Option<Value> {
        let ins = self.b.ins();
        Some(match op.strict() {
            Intrinsic::AddInt => ins.iadd(x, y),
            Intrinsic::SubInt => ins.isub(x, y),
            Intrinsic::MulInt => ins.imul(x, y),
            Intrinsic::AndInt => ins.band(x, y),
            Intrinsic::OrInt => ins.bor(x, y),
            Intrinsic::XorInt => ins.bxor(x, y),
            Intrinsic::EqInt => ins.icmp(IntCC::Equal, x, y),
            Intrinsic::NeInt => ins.icmp(IntCC::NotEqual, x, y),
            Intrinsic::SltInt => ins.icmp(IntCC::SignedLessThan, x, y),
            Intrinsic::SleInt => ins.icmp(IntCC::SignedLessThanOrEqual, x, y),
            Intrinsic::UltInt => ins.icmp(IntCC::UnsignedLessThan, x, y),
            Intrinsic::UleInt => ins.icmp(IntCC::UnsignedLessThanOrEqual, x, y),
            Intrinsic::AddFloat => ins.fadd(x, y),
            Intrinsic::SubFloat => ins.fsub(x, y),
            Intrinsic::MulFloat => ins.fmul(x, y),
            Intrinsic::DivFloat => ins.fdiv(x, y),
            Intrinsic::MinFloat => ins.fmin(x, y),
            Intrinsic::MaxFloat => ins.fmax(x, y),
            Intrinsic::EqFloat => ins.fcmp(FloatCC::Equal, x, y),
            Intrinsic::NeFloat => ins.fcmp(FloatCC::NotEqual, x, y),
            Intrinsic::LtFloat => ins.fcmp(FloatCC::LessThan, x, y),
            Intrinsic::LeFloat => ins.fcmp(FloatCC::LessThanOrEqual, x, y),
            _ => return None,
        })
    }

    fn lane_shift(&mut self, inst: Inst, op: Intrinsic, lanes: Lanes) -> Done {
        let ty = lane_type(lanes);
        let (x, count) = (self.vector_arg(inst, 0, ty)?, self.arg(inst, 1)?);
        if self.b.func.dfg.value_type(count) != types::I64 {
            return self.bad(inst);
        }
        let width = lanes.element().bits();
        let known = self.func.args(inst).get(1).and_then(|&v| self.func.as_bits(v));
        let near = known.is_some_and(|n| n < u128::from(width)) || self.near_count(inst, width)?.is_some();
        let last = i64::from(width) - 1;
        // The longest shift leaves only the sign.
        let count = if op == Intrinsic::AshrInt && !near {
            let last = self.b.ins().iconst(types::I64, last);
            self.b.ins().umin(count, last)
        } else {
            count
        };
        let shifted = match op {
            Intrinsic::ShlInt => self.b.ins().ishl(x, count),
            Intrinsic::LshrInt => self.b.ins().ushr(x, count),
            _ => self.b.ins().sshr(x, count),
        };
        if op == Intrinsic::AshrInt || near {
            return self.define_vector(inst, shifted);
        }
        // All ones where the count is in range, else all zeros.
        let inside = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, count, last);
        let inside = self.b.ins().uextend(types::I64, inside);
        let mask = self.b.ins().ineg(inside);
        let mask = self.b.ins().splat(types::I64X2, mask);
        let mask = self.vector_as(mask, ty);
        let made = self.b.ins().band(shifted, mask);
        self.define_vector(inst, made)
    }

    /// A constant vector.
    pub(super) fn vector_constant(&mut self, bits: u128) -> Value {
        let bytes = bits.to_le_bytes();
        let handle = self.b.func.dfg.constants.insert(bytes[..].into());
        self.b.ins().vconst(PLAIN, handle)
    }
}
