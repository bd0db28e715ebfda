//! Code of the single pass has the same results as Cranelift's best code: on generated functions, and where the two call
//! each other.
//!
//! A generated function computes with integers of all widths and floats, reads and writes a stack slot, branches, runs loops whose
//! parameters change places, and calls a function with more arguments than there are registers. Its result depends on
//! everything that it has computed. All seeds are fixed.

#![cfg(target_arch = "x86_64")]

mod support;

use brolga_codegen::compiled::{CompiledFunction, MadeBy};
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{Abi, Signature};
use brolga_jit::Jit;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    AtomicRmwOp, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};
use support::{Clif, compile, engine, int_function, ints, load};

/// Xorshift.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const INTS: [Type; 4] = [types::I8, types::I16, types::I32, types::I64];
const FLOATS: [Type; 2] = [types::F32, types::F64];

/// Values that code may use, by type.
#[derive(Clone, Default)]
struct Known {
    values: Vec<Value>,
}

struct Maker<'m, 'c> {
    c: &'m mut Clif<'c>,
    rng: Rng,
    known: Known,
    slot: StackSlot,
}

/// Arguments of the function that generated ones call: more of both kinds than there are registers.
fn wide_signature() -> Signature {
    let params: Vec<Abi> = (0..22).map(|n| if n % 2 == 0 { Abi::I64 } else { Abi::F64 }).collect();
    Signature::new(params, [Abi::I64, Abi::F64, Abi::I64])
}

impl Maker<'_, '_> {
    fn ty(&self, value: Value) -> Type {
        self.c.b.func.dfg.value_type(value)
    }

    /// A value of that type: an existing one, or a constant.
    fn value(&mut self, ty: Type) -> Value {
        let fitting: Vec<Value> = self.known.values.iter().copied().filter(|&v| self.ty(v) == ty).collect();
        if !fitting.is_empty() && self.rng.below(8) > 0 {
            return self.rng.pick(&fitting);
        }
        let bits = match self.rng.below(4) {
            0 => 0,
            1 => self.rng.next() % 200,
            2 => u64::MAX - self.rng.next() % 200,
            _ => self.rng.next(),
        };
        match ty {
            types::F32 => self.c.b.ins().f32const((bits as i32) as f32 / 3.0),
            types::F64 => self.c.b.ins().f64const((bits as i64) as f64 / 3.0),
            ty => {
                let mask = if ty.bits() == 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
                self.c.b.ins().iconst(ty, (bits & mask).cast_signed())
            }
        }
    }

    fn int(&mut self) -> Type {
        self.rng.pick(&INTS)
    }

    fn keep(&mut self, value: Value) {
        self.known.values.push(value);
    }

    fn statement(&mut self) {
        match self.rng.below(16) {
            0..=4 => self.arithmetic(),
            5 => self.divide(),
            6 => self.checked(),
            7 => self.convert(),
            8 | 9 => self.float(),
            10 => self.memory(),
            11 => self.choose(),
            12 => self.bits(),
            13 => self.float_to_int(),
            14 => self.atomic(),
            _ => self.call(),
        }
    }

    fn arithmetic(&mut self) {
        let ty = self.int();
        let (x, y) = (self.value(ty), self.value(ty));
        let count = self.value(types::I32);
        let which = self.rng.below(11);
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.iadd(x, y),
            1 => ins.isub(x, y),
            2 => ins.imul(x, y),
            3 => ins.band(x, y),
            4 => ins.bor(x, y),
            5 => ins.bxor(x, y),
            6 => ins.ishl(x, count),
            7 => ins.ushr(x, count),
            8 => ins.sshr(x, count),
            9 => ins.ineg(x),
            _ => ins.bnot(x),
        };
        self.keep(made);
    }

    /// The divisor is neither zero nor minus one.
    fn divide(&mut self) {
        let ty = self.int();
        let (x, y) = (self.value(ty), self.value(ty));
        let y = self.c.b.ins().band_imm_u(y, 63);
        let y = self.c.b.ins().bor_imm_u(y, 1);
        let which = self.rng.below(4);
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.udiv(x, y),
            1 => ins.sdiv(x, y),
            2 => ins.urem(x, y),
            _ => ins.srem(x, y),
        };
        self.keep(made);
    }

    fn checked(&mut self) {
        let ty = self.rng.pick(&[types::I32, types::I64]);
        let (x, y) = (self.value(ty), self.value(ty));
        let which = self.rng.below(7);
        let ins = self.c.b.ins();
        let (made, wrapped) = match which {
            0 => ins.sadd_overflow(x, y),
            1 => ins.uadd_overflow(x, y),
            2 => ins.ssub_overflow(x, y),
            3 => ins.usub_overflow(x, y),
            4 => ins.smul_overflow(x, y),
            5 => ins.umul_overflow(x, y),
            _ => {
                let made = ins.umulhi(x, y);
                self.keep(made);
                return;
            }
        };
        self.keep(made);
        self.keep(wrapped);
    }

    fn convert(&mut self) {
        let (a, b) = (self.int(), self.int());
        let (narrow, wide) = if a.bits() < b.bits() { (a, b) } else { (b, a) };
        if narrow == wide {
            return;
        }
        let which = self.rng.below(3);
        let x = self.value(if which == 2 { wide } else { narrow });
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.uextend(wide, x),
            1 => ins.sextend(wide, x),
            _ => ins.ireduce(narrow, x),
        };
        self.keep(made);
    }

    fn float(&mut self) {
        let ty = self.rng.pick(&FLOATS);
        let (x, y) = (self.value(ty), self.value(ty));
        let int = self.rng.pick(&[types::I32, types::I64]);
        let n = self.value(int);
        let which = self.rng.below(15);
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.fadd(x, y),
            1 => ins.fsub(x, y),
            2 => ins.fmul(x, y),
            3 => ins.fdiv(x, y),
            4 => ins.fneg(x),
            5 => ins.fabs(x),
            6 => ins.sqrt(x),
            7 => ins.fcopysign(x, y),
            8 => ins.floor(x),
            9 => ins.ceil(x),
            10 => ins.trunc(x),
            11 => ins.nearest(x),
            12 => ins.fcvt_from_sint(ty, n),
            13 => ins.fcvt_from_uint(ty, n),
            _ if ty == types::F32 => ins.fpromote(types::F64, x),
            _ => ins.fdemote(types::F32, x),
        };
        self.keep(made);
    }

    fn float_to_int(&mut self) {
        let (from, to) = (self.rng.pick(&FLOATS), self.rng.pick(&[types::I32, types::I64]));
        let x = self.value(from);
        let which = self.rng.below(3);
        let made = match which {
            0 => self.c.b.ins().fcvt_to_sint_sat(to, x),
            1 => self.c.b.ins().fcvt_to_uint_sat(to, x),
            // The bits of NaNs depend on how they are computed.
            _ => self.c.b.ins().fcmp(FloatCC::Ordered, x, x),
        };
        self.keep(made);
    }

    fn memory(&mut self) {
        let ty = if self.rng.below(3) == 0 { self.rng.pick(&FLOATS) } else { self.int() };
        let value = self.value(ty);
        let offset = 8 * self.rng.below(6) as i32;
        let flags = MemFlagsData::trusted();
        let which = self.rng.below(3);
        let address = self.c.b.ins().stack_addr(types::I64, self.slot, 0);
        let made = match which {
            0 => {
                self.c.b.ins().store(flags, value, address, offset);
                return;
            }
            // Any bits may be loaded as a float, and some NaNs differ in their results.
            1 => self.c.b.ins().load(if ty.is_float() { types::I64 } else { ty }, flags, address, offset),
            _ => match ty {
                types::I8 => self.c.b.ins().sload8(types::I32, flags, address, offset),
                types::I16 => self.c.b.ins().uload16(types::I64, flags, address, offset),
                types::I32 => self.c.b.ins().sload32(flags, address, offset),
                _ => self.c.b.ins().uload8(types::I16, flags, address, offset),
            },
        };
        self.keep(made);
    }

    fn condition(&mut self) -> Value {
        if self.rng.below(3) == 0 {
            let ty = self.rng.pick(&FLOATS);
            let (x, y) = (self.value(ty), self.value(ty));
            let cond = self.rng.pick(FloatCC::all());
            return self.c.b.ins().fcmp(cond, x, y);
        }
        let ty = self.int();
        let (x, y) = (self.value(ty), self.value(ty));
        let cond = self.rng.pick(IntCC::all());
        self.c.b.ins().icmp(cond, x, y)
    }

    fn choose(&mut self) {
        let cond = self.condition();
        let ty = if self.rng.below(3) == 0 { self.rng.pick(&FLOATS) } else { self.int() };
        let (x, y) = (self.value(ty), self.value(ty));
        let made = self.c.b.ins().select(cond, x, y);
        self.keep(made);
        self.keep(cond);
    }

    fn bits(&mut self) {
        let ty = self.int();
        let x = self.value(ty);
        let which = self.rng.below(4);
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.clz(x),
            1 => ins.ctz(x),
            2 => ins.popcnt(x),
            _ if ty == types::I8 => return,
            _ => ins.bswap(x),
        };
        self.keep(made);
    }

    fn atomic(&mut self) {
        let ty = self.int();
        let (x, y) = (self.value(ty), self.value(ty));
        let flags = MemFlagsData::trusted();
        let offset = 8 * self.rng.below(6) as i32;
        let address = self.c.b.ins().stack_addr(types::I64, self.slot, offset);
        use AtomicRmwOp::{Add, And, Nand, Or, Smax, Smin, Sub, Umax, Umin, Xchg, Xor};
        let mut ops = vec![Xchg, Add, Sub, And, Nand, Or, Xor];
        if ty.bits() >= 32 {
            ops.extend([Smax, Smin, Umax, Umin]);
        }
        let op = self.rng.pick(&ops);
        let which = self.rng.below(4);
        let ins = self.c.b.ins();
        let made = match which {
            0 => ins.atomic_load(ty, flags, address),
            1 => {
                ins.atomic_store(flags, x, address);
                return;
            }
            2 => ins.atomic_cas(flags, address, x, y),
            _ => ins.atomic_rmw(ty, flags, op, address, x),
        };
        self.keep(made);
    }

    fn call(&mut self) {
        let signature = wide_signature();
        let args: Vec<Value> = signature.params.iter().map(|abi| self.value(abi.clif())).collect();
        let made = self.c.call("wide", &signature, &args);
        self.known.values.extend(made);
    }

    /// A branch whose sides pass values of all kinds to the join.
    fn diamond(&mut self, depth: usize) {
        let cond = self.condition();
        let (yes, no, join) = (self.c.b.create_block(), self.c.b.create_block(), self.c.b.create_block());
        if self.rng.below(2) == 0 {
            self.c.b.set_cold_block(no);
        }
        let passed: Vec<Type> =
            (0..self.rng.below(4)).map(|n| if n == 1 { types::F64 } else { self.rng.pick(&INTS) }).collect();
        self.c.b.ins().brif(cond, yes, &[], no, &[]);
        let before = self.known.clone();
        for side in [yes, no] {
            self.c.b.switch_to_block(side);
            self.known = before.clone();
            self.region(depth);
            let args: Vec<_> = passed.iter().map(|&ty| self.value(ty).into()).collect();
            self.c.b.ins().jump(join, &args);
        }
        self.known = before;
        for &ty in &passed {
            let param = self.c.b.append_block_param(join, ty);
            self.keep(param);
        }
        self.c.b.switch_to_block(join);
    }

    /// A loop of a few iterations; its parameters change places.
    fn rounds(&mut self, depth: usize) {
        let (head, body, end) = (self.c.b.create_block(), self.c.b.create_block(), self.c.b.create_block());
        let count = 1 + self.rng.below(4);
        let ty = self.int();
        let start = [self.value(ty), self.value(ty), self.value(ty)];
        let (a, b) = (self.value(types::F64), self.value(types::F64));
        let zero = self.c.int(0);
        self.c.b.ins().jump(head, &[zero, start[0], start[1], start[2], a, b].map(Into::into));
        let n = self.c.b.append_block_param(head, types::I64);
        let params = start.map(|_| self.c.b.append_block_param(head, ty));
        let (a, b) =
            (self.c.b.append_block_param(head, types::F64), self.c.b.append_block_param(head, types::F64));
        self.c.b.switch_to_block(head);
        let before = self.known.clone();
        self.known.values.extend(params);
        self.known.values.extend([a, b]);
        let go_on = self.c.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, n, count as i64);
        self.c.b.ins().brif(go_on, body, &[], end, &[]);
        self.c.b.switch_to_block(body);
        let inner = self.known.clone();
        self.region(depth);
        let next = self.c.b.ins().iadd_imm_s(n, 1);
        let new = self.value(ty);
        let turned = match self.rng.below(3) {
            0 => [params[1], params[2], params[0]],
            1 => [params[1], params[0], new],
            _ => [params[2], params[2], params[1]],
        };
        let args = [next, turned[0], turned[1], turned[2], b, a].map(Into::into);
        self.c.b.ins().jump(head, &args);
        drop(before);
        self.known = inner;
        self.c.b.switch_to_block(end);
    }

    fn region(&mut self, depth: usize) {
        for _ in 0..3 + self.rng.below(10) {
            match self.rng.below(12) {
                0 if depth > 0 => self.diamond(depth - 1),
                1 if depth > 0 => self.rounds(depth - 1),
                _ => self.statement(),
            }
        }
    }

    /// A digest of all values in one number; all NaNs count as equal.
    fn sum(&mut self) -> Value {
        let mut sum = self.c.int(17);
        for value in self.known.values.clone() {
            let ty = self.ty(value);
            let word = if ty.is_float() {
                let is_number = self.c.b.ins().fcmp(FloatCC::Equal, value, value);
                let int = if ty == types::F32 { types::I32 } else { types::I64 };
                let bits = self.c.b.ins().bitcast(int, MemFlagsData::new(), value);
                let none = self.c.b.ins().iconst(int, 7);
                let bits = self.c.b.ins().select(is_number, bits, none);
                if int == types::I32 { self.c.b.ins().uextend(types::I64, bits) } else { bits }
            } else if ty == types::I64 {
                value
            } else {
                self.c.b.ins().uextend(types::I64, value)
            };
            let turned = self.c.b.ins().rotl_imm_u(sum, 5);
            sum = self.c.b.ins().bxor(turned, word);
        }
        sum
    }
}

fn generated(jit: &Jit, tier: Tier, seed: u64) -> CompiledFunction {
    compile(jit, tier, "f", &ints(2, 1), |c| {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 56, 3);
        let slot = c.b.create_sized_stack_slot(data);
        let address = c.b.ins().stack_addr(types::I64, slot, 0);
        for n in 0..7 {
            let word = c.int(n * 0x0101_0203_0405_0607);
            c.b.ins().store(MemFlagsData::trusted(), word, address, 8 * n as i32);
        }
        let values = c.params();
        let rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut maker = Maker { c, rng, known: Known { values }, slot };
        maker.region(3);
        let sum = maker.sum();
        maker.c.b.ins().return_(&[sum]);
    })
}

/// Mixes all its arguments, each differently, and returns three results.
fn wide(jit: &Jit, tier: Tier) -> CompiledFunction {
    compile(jit, tier, "wide", &wide_signature(), |c| {
        let (mut int, mut float) = (c.int(1), c.b.ins().f64const(1.0));
        for value in c.params() {
            if c.b.func.dfg.value_type(value) == types::F64 {
                let scaled = c.b.ins().fmul(float, value);
                let less = c.b.ins().fcmp(FloatCC::LessThan, scaled, value);
                float = c.b.ins().select(less, value, float);
                let less = c.b.ins().uextend(types::I64, less);
                int = c.b.ins().iadd(int, less);
            } else {
                let turned = c.b.ins().rotl_imm_u(int, 7);
                int = c.b.ins().bxor(turned, value);
            }
        }
        let other = c.b.ins().bnot(int);
        c.b.ins().return_(&[int, float, other]);
    })
}

#[test]
fn generated_functions_give_what_cranelifts_best_code_gives() {
    const SEEDS: u64 = 400;
    let jit = engine();
    for seed in 0..SEEDS {
        let mut given = Vec::new();
        // Every second time the callee is of the other tier.
        for (own, other) in [
            (Tier::Optimised, Tier::Optimised),
            (Tier::Baseline, if seed % 2 == 0 { Tier::Optimised } else { Tier::Baseline }),
            (Tier::Optimised, Tier::Baseline),
        ] {
            let function = generated(&jit, own, seed);
            let expected = if own == Tier::Baseline { MadeBy::SinglePass } else { MadeBy::Cranelift };
            assert_eq!(function.made_by, expected, "seed {seed}");
            let unit = load(&jit, vec![function, wide(&jit, other)], vec![int_function("f", 2)]);
            let f = unit.func::<(i64, i64), i64>("f").unwrap();
            let arguments = [(0, 0), (1, -1), (i64::MIN, i64::MAX), (12_345_678_901, 250)];
            given.push(arguments.map(|arguments| f.call(arguments).unwrap()));
        }
        assert_eq!(given[0], given[1], "seed {seed}, called");
        assert_eq!(given[0], given[2], "seed {seed}, calling");
    }
}

/// Numbers at which the behaviour of floats and their conversions changes.
const EDGES: [f64; 24] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    -1.0,
    1.5,
    127.5,
    2_147_483_647.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    -2_147_483_649.0,
    4_294_967_295.0,
    4_294_967_296.0,
    9_223_372_036_854_774_784.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    -9_223_372_036_854_777_856.0,
    18_446_744_073_709_549_568.0,
    18_446_744_073_709_551_616.0,
    1e300,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Calls both tiers' form of a function of two words with all pairs.
fn agree(what: &str, words: &[i64], body: impl Fn(&mut Clif<'_>)) {
    let jit = engine();
    let made = |tier| compile(&jit, tier, "f", &ints(2, 1), &body);
    let [single, best] = [Tier::Baseline, Tier::Optimised].map(made);
    assert_eq!(single.made_by, MadeBy::SinglePass, "{what}");
    let [single, best] = [single, best].map(|made| load(&jit, vec![made], vec![int_function("f", 2)]));
    let single = single.func::<(i64, i64), i64>("f").unwrap();
    let best = best.func::<(i64, i64), i64>("f").unwrap();
    for &a in words {
        for &b in words {
            assert_eq!(
                single.call((a, b)).unwrap(),
                best.call((a, b)).unwrap(),
                "{what} of {a:#x} and {b:#x}"
            );
        }
    }
}

/// A parameter as a float of that type.
fn float_param(c: &mut Clif<'_>, n: usize, ty: Type) -> Value {
    let word = c.params()[n];
    let double = c.b.ins().bitcast(types::F64, MemFlagsData::new(), word);
    if ty == types::F32 { c.b.ins().fdemote(types::F32, double) } else { double }
}

#[test]
fn comparisons_of_floats_hold_as_values_and_in_branches() {
    let words = EDGES.map(|number| number.to_bits().cast_signed());
    for ty in FLOATS {
        for &cond in FloatCC::all() {
            agree(&format!("{cond} of {ty}"), &words, |c| {
                let (x, y) = (float_param(c, 0, ty), float_param(c, 1, ty));
                let truth = c.b.ins().fcmp(cond, x, y);
                let value = c.b.ins().uextend(types::I64, truth);
                let again = c.b.ins().fcmp(cond, x, y);
                let (yes, no, end) = (c.b.create_block(), c.b.create_block(), c.b.create_block());
                let taken = c.b.append_block_param(end, types::I64);
                c.b.ins().brif(again, yes, &[], no, &[]);
                for (block, given) in [(yes, 2), (no, 4)] {
                    c.b.switch_to_block(block);
                    let given = c.int(given);
                    c.b.ins().jump(end, &[given.into()]);
                }
                c.b.switch_to_block(end);
                let result = c.b.ins().bor(value, taken);
                c.b.ins().return_(&[result]);
            });
        }
    }
}

#[test]
fn floats_become_the_nearest_integer_that_there_is() {
    let words = EDGES.map(|number| number.to_bits().cast_signed());
    for from in FLOATS {
        for to in [types::I32, types::I64] {
            for is_signed in [false, true] {
                agree(&format!("{from} to {to}, signed: {is_signed}"), &words, |c| {
                    let x = float_param(c, 0, from);
                    let ins = c.b.ins();
                    let made =
                        if is_signed { ins.fcvt_to_sint_sat(to, x) } else { ins.fcvt_to_uint_sat(to, x) };
                    let made = if to == types::I32 { c.b.ins().uextend(types::I64, made) } else { made };
                    c.b.ins().return_(&[made]);
                });
            }
        }
    }
}

#[test]
fn integers_become_the_nearest_float() {
    let words =
        [0, 1, -1, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1, (1 << 24) + 1, -(1 << 60) - 1, i64::MAX - 511];
    for from in [types::I32, types::I64] {
        for to in FLOATS {
            for is_signed in [false, true] {
                agree(&format!("{from} to {to}, signed: {is_signed}"), &words, |c| {
                    let x = c.params()[0];
                    let x = if from == types::I32 { c.b.ins().ireduce(from, x) } else { x };
                    let ins = c.b.ins();
                    let made = if is_signed { ins.fcvt_from_sint(to, x) } else { ins.fcvt_from_uint(to, x) };
                    let int = if to == types::F32 { types::I32 } else { types::I64 };
                    let bits = c.b.ins().bitcast(int, MemFlagsData::new(), made);
                    let bits = if int == types::I32 { c.b.ins().uextend(types::I64, bits) } else { bits };
                    c.b.ins().return_(&[bits]);
                });
            }
        }
    }
}

#[test]
fn a_function_that_catches_keeps_the_registers_of_its_caller() {
    let jit = engine();
    let many = |c: &mut Clif<'_>, throws: bool| {
        // Enough words are live across a call that the best code keeps some in callee-saved registers.
        let argument = c.params()[0];
        let words: Vec<Value> = (1..20).map(|n| c.b.ins().imul_imm_s(argument, n)).collect();
        let callee = if throws { "throws" } else { "catches" };
        let inner = c.call(callee, &ints(1, 1), &[argument])[0];
        let sum = words.into_iter().fold(inner, |sum, word| {
            let turned = c.b.ins().rotl_imm_u(sum, 3);
            c.b.ins().bxor(turned, word)
        });
        c.b.ins().return_(&[sum]);
    };
    let throws =
        || compile(&jit, Tier::Optimised, "throws", &ints(1, 1), |c| c.throw("brolga_throw_divide", &[]));
    let catches = |tier| {
        compile(&jit, tier, "catches", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let thread = brolga_codegen::thread::current_thread(&mut c.b);
            let handler = brolga_codegen::thread::Handler::new(&mut c.b);
            handler.link(&mut c.b, thread);
            let (normal, landing) = (c.b.create_block(), c.b.create_block());
            let result = c.b.append_block_param(normal, types::I64);
            let callee = c.import(
                brolga_codegen::compiled::Symbol::Function("spoils".into()),
                ints(1, 1).clif(),
                false,
            );
            handler.call(&mut c.b, callee, &[argument], normal, landing);
            c.b.switch_to_block(normal);
            handler.unlink(&mut c.b, thread);
            c.b.ins().return_(&[result]);
            c.b.switch_to_block(landing);
            let caught = c.b.ins().iadd_imm_s(argument, 1000);
            c.b.ins().return_(&[caught]);
        })
    };
    let result = |tier| {
        let spoils = compile(&jit, Tier::Optimised, "spoils", &ints(1, 1), |c| many(c, true));
        let outer = compile(&jit, Tier::Optimised, "outer", &ints(1, 1), |c| many(c, false));
        let functions = vec![outer, catches(tier), spoils, throws()];
        assert_eq!(functions[1].made_by == MadeBy::SinglePass, tier == Tier::Baseline);
        let unit = load(&jit, functions, vec![int_function("outer", 1)]);
        unit.func::<(i64,), i64>("outer").unwrap().call((3,)).unwrap()
    };
    assert_eq!(result(Tier::Baseline), result(Tier::Optimised));
}
