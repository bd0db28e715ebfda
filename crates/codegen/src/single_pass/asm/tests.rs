//! The disassembly of each form of each instruction, with every register.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

use super::*;

const NAMES_64: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const NAMES_32: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
const NAMES_16: [&str; 16] = [
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w",
    "r15w",
];
const NAMES_8: [&str; 16] = [
    "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b",
    "r15b",
];
const WIDTHS: [Width; 4] = [Width::B8, Width::B16, Width::B32, Width::B64];
const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

fn name(width: Width, reg: Gpr) -> String {
    let names = match width {
        Width::B8 => NAMES_8,
        Width::B16 => NAMES_16,
        Width::B32 => NAMES_32,
        Width::B64 => NAMES_64,
    };
    format!("%{}", names[reg.0 as usize])
}

fn wide(reg: Gpr) -> String {
    name(Width::B64, reg)
}

fn memory(mem: Mem) -> String {
    let sign = if mem.disp < 0 { "-" } else { "" };
    let disp = match mem.disp {
        0 => String::new(),
        disp => format!("{sign}0x{:x}", disp.unsigned_abs()),
    };
    format!("{disp}({})", wide(mem.base))
}

/// The disassembly of the bytes.
fn read(asm: &Asm) -> String {
    let mut decoder = Decoder::new(64, &asm.code, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_small_hex_numbers_in_decimal(false);
    formatter.options_mut().set_space_after_operand_separator(false);
    let mut text = String::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "{:02x?}", asm.code);
        if !text.is_empty() {
            text.push_str("; ");
        }
        formatter.format(&instruction, &mut text);
    }
    text
}

#[track_caller]
fn says(emit: impl FnOnce(&mut Asm), expected: &str) {
    let mut asm = Asm::default();
    emit(&mut asm);
    assert_eq!(read(&asm), expected, "{:02x?}", asm.code);
}

fn registers() -> impl Iterator<Item = (Gpr, Gpr)> {
    (0..16).flat_map(|a| (0..16).map(move |b| (Gpr(a), Gpr(b))))
}

fn memories() -> impl Iterator<Item = Mem> {
    let disps = [0, 1, -8, 127, -128, 128, -129, 0x1234_5678];
    (0..16).flat_map(move |base| disps.map(|disp| Mem { base: Gpr(base), disp }))
}

#[test]
fn registers_of_all_widths_are_named() {
    for (a, b) in registers() {
        for width in WIDTHS {
            let (left, right) = (name(width, a), name(width, b));
            for (op, text) in [
                (Alu::Add, "add"),
                (Alu::Or, "or"),
                (Alu::And, "and"),
                (Alu::Sub, "sub"),
                (Alu::Xor, "xor"),
                (Alu::Cmp, "cmp"),
            ] {
                says(|asm| asm.alu(op, width, a, b), &format!("{text} {right},{left}"));
            }
            says(|asm| asm.test(width, a, b), &format!("test {right},{left}"));
        }
        for width in [Width::B32, Width::B64] {
            let (left, right) = (name(width, a), name(width, b));
            says(|asm| asm.imul(width, a, b), &format!("imul {right},{left}"));
            // A disassembler does not write the same register twice.
            let source = if a == b { String::new() } else { format!("{right},") };
            says(|asm| asm.imul_imm(width, a, b, 300), &format!("imul $0x12c,{source}{left}"));
            says(|asm| asm.count(Count::Ones, width, a, b), &format!("popcnt {right},{left}"));
            says(|asm| asm.count(Count::LeadingZeros, width, a, b), &format!("lzcnt {right},{left}"));
            says(|asm| asm.count(Count::TrailingZeros, width, a, b), &format!("tzcnt {right},{left}"));
        }
        if a != b {
            says(|asm| asm.mov(a, b), &format!("mov {},{}", wide(b), wide(a)));
        }
        says(|asm| asm.cmov(Cond::Ne, a, b), &format!("cmovne {},{}", wide(b), wide(a)));
        let half = |reg| name(Width::B32, reg);
        says(|asm| asm.mov32(a, b), &format!("mov {},{}", half(b), half(a)));
        for (width, letter) in [(Width::B8, "b"), (Width::B16, "w")] {
            let from = name(width, b);
            let zero = format!("movz{letter}l {from},{}", half(a));
            says(|asm| asm.extend(a, b, width, Width::B32, false), &zero);
            says(|asm| asm.extend(a, b, width, Width::B64, false), &zero);
            let sign = format!("movs{letter}l {from},{}", half(a));
            says(|asm| asm.extend(a, b, width, Width::B32, true), &sign);
            let sign = format!("movs{letter}q {from},{}", wide(a));
            says(|asm| asm.extend(a, b, width, Width::B64, true), &sign);
        }
        let sign = format!("movslq {},{}", half(b), wide(a));
        says(|asm| asm.extend(a, b, Width::B32, Width::B64, true), &sign);
    }
}

#[test]
fn memory_is_addressed_from_every_register_at_every_distance() {
    for (n, mem) in memories().enumerate() {
        let (reg, at) = (Gpr((n * 7 % 16) as u8), memory(mem));
        for width in WIDTHS {
            let text = name(width, reg);
            says(|asm| asm.store(mem, reg, width), &format!("mov {text},{at}"));
            says(|asm| asm.alu_mem(Alu::Sub, width, reg, mem), &format!("sub {at},{text}"));
            says(|asm| asm.xchg_mem(width, reg, mem), &format!("xchg {text},{at}"));
            says(|asm| asm.lock_xadd(width, mem, reg), &format!("lock xadd {text},{at}"));
            says(|asm| asm.lock_cmpxchg(width, mem, reg), &format!("lock cmpxchg {text},{at}"));
            let letter = ["b", "w", "l", "q"][width as usize];
            says(|asm| asm.store_imm(mem, 0x12, width), &format!("mov{letter} $0x12,{at}"));
        }
        says(|asm| asm.load(reg, mem), &format!("mov {at},{}", wide(reg)));
        says(|asm| asm.lea(reg, mem), &format!("lea {at},{}", wide(reg)));
        says(|asm| asm.push_mem(mem), &format!("pushq {at}"));
        says(|asm| asm.pop_mem(mem), &format!("popq {at}"));
        says(|asm| asm.imul_mem(Width::B64, reg, mem), &format!("imul {at},{}", wide(reg)));
        let half = name(Width::B32, reg);
        let extended =
            |width, wide, signed| move |asm: &mut Asm| asm.load_extended(reg, mem, width, wide, signed);
        says(extended(Width::B8, Width::B64, false), &format!("movzbl {at},{half}"));
        says(extended(Width::B8, Width::B64, true), &format!("movsbq {at},{}", wide(reg)));
        says(extended(Width::B16, Width::B32, true), &format!("movswl {at},{half}"));
        says(extended(Width::B16, Width::B32, false), &format!("movzwl {at},{half}"));
        says(extended(Width::B32, Width::B64, true), &format!("movslq {at},{}", wide(reg)));
        says(extended(Width::B32, Width::B64, false), &format!("mov {at},{half}"));
        for (precision, letter) in PRECISIONS.into_iter().zip(["s", "d"]) {
            let xmm = Xmm(reg.0);
            says(|asm| asm.load_float(precision, xmm, mem), &format!("movs{letter} {at},%xmm{}", xmm.0));
            says(|asm| asm.store_float(precision, mem, xmm), &format!("movs{letter} %xmm{},{at}", xmm.0));
        }
    }
}

#[test]
fn immediates_are_as_short_as_they_can_be() {
    for n in 0..16 {
        let reg = Gpr(n);
        for width in WIDTHS {
            let text = name(width, reg);
            says(|asm| asm.alu_imm(Alu::Add, width, reg, 5), &format!("add $0x5,{text}"));
        }
        for width in [Width::B32, Width::B64] {
            let text = name(width, reg);
            says(|asm| asm.alu_imm(Alu::Cmp, width, reg, 0x1234), &format!("cmp $0x1234,{text}"));
            says(|asm| asm.shift_imm(Shift::Sar, width, reg, 3), &format!("sar $0x3,{text}"));
            says(|asm| asm.shift(Shift::Shl, width, reg), &format!("shl %cl,{text}"));
            says(|asm| asm.shift(Shift::Rol, width, reg), &format!("rol %cl,{text}"));
            says(|asm| asm.unary(Unary::Neg, width, reg), &format!("neg {text}"));
            says(|asm| asm.unary(Unary::Idiv, width, reg), &format!("idiv {text}"));
            says(|asm| asm.bswap(width, reg), &format!("bswap {text}"));
        }
        says(
            |asm| asm.alu_imm(Alu::Cmp, Width::B16, reg, 255),
            &format!("cmp $0xff,{}", name(Width::B16, reg)),
        );
        let (half, wide) = (name(Width::B32, reg), wide(reg));
        says(|asm| asm.mov_imm(reg, 0), &format!("mov $0x0,{half}"));
        says(|asm| asm.mov_imm(reg, 0xffff_ffff), &format!("mov $0xffffffff,{half}"));
        says(|asm| asm.mov_imm(reg, -1), &format!("mov $0xffffffffffffffff,{wide}"));
        says(|asm| asm.mov_imm(reg, 1 << 40), &format!("movabs $0x10000000000,{wide}"));
        says(|asm| asm.clear_register(reg), &format!("xor {half},{half}"));
        says(|asm| asm.set(Cond::G, reg), &format!("setg {}", name(Width::B8, reg)));
        says(|asm| asm.push(reg), &format!("push {wide}"));
        says(|asm| asm.call(reg), &format!("call *{wide}"));
    }
    says(|asm| asm.sign_to_rdx(Width::B32), "cltd");
    says(|asm| asm.sign_to_rdx(Width::B64), "cqto");
    says(|asm| asm.leave_and_return(0), "leave; ret");
    says(|asm| asm.leave_and_return(32), "leave; ret $0x20");
    says(|asm| asm.mfence(), "mfence");
    says(|asm| asm.ud2(), "ud2");
}

#[test]
fn floats_of_both_precisions_are_computed_with() {
    for (a, b) in registers() {
        let (to, from) = (Xmm(a.0), Xmm(b.0));
        let pair = format!("%xmm{},%xmm{}", from.0, to.0);
        for (precision, letter) in PRECISIONS.into_iter().zip(["s", "d"]) {
            for (op, text) in [
                (FloatOp::Sqrt, "sqrt"),
                (FloatOp::Add, "add"),
                (FloatOp::Mul, "mul"),
                (FloatOp::Sub, "sub"),
                (FloatOp::Div, "div"),
            ] {
                says(|asm| asm.float(op, precision, to, from), &format!("{text}s{letter} {pair}"));
            }
            says(|asm| asm.ucomis(precision, to, from), &format!("ucomis{letter} {pair}"));
            says(|asm| asm.round(precision, to, from, 1), &format!("rounds{letter} $0x9,{pair}"));
            let other = if precision == Precision::F32 { "cvtss2sd" } else { "cvtsd2ss" };
            says(|asm| asm.convert_float(precision, to, from), &format!("{other} {pair}"));
            for (width, suffix) in [(Width::B32, "l"), (Width::B64, "q")] {
                let int = name(width, b);
                let text = format!("cvtsi2s{letter}{suffix} {int},%xmm{}", to.0);
                says(
                    |asm| asm.int_to_float(width, precision, to, b),
                    &text.replace("l %", " %").replace("q %", " %"),
                );
                let text = format!("cvtts{letter}2si %xmm{},{}", from.0, name(width, a));
                says(|asm| asm.float_to_int(width, precision, a, from), &text);
            }
        }
        for (op, text) in
            [(BitOp::And, "and"), (BitOp::AndNot, "andn"), (BitOp::Or, "or"), (BitOp::Xor, "xor")]
        {
            says(|asm| asm.bits(op, to, from), &format!("{text}ps {pair}"));
        }
        if to != from {
            says(|asm| asm.movaps(to, from), &format!("movaps {pair}"));
        }
        says(|asm| asm.bits_to_float(to, b), &format!("movq {},%xmm{}", wide(b), to.0));
        says(|asm| asm.bits_of_float(a, from), &format!("movq %xmm{},{}", from.0, wide(a)));
    }
}

#[test]
fn conditions_and_their_opposites_are_neighbours() {
    use Cond::{A, Ae, B, Be, E, G, Ge, L, Le, Ne, No, Np, Ns, O, P, S};
    for cond in [O, No, B, Ae, E, Ne, Be, A, S, Ns, P, Np, L, Ge, Le, G] {
        assert_eq!(cond.opposite() as u8, cond as u8 ^ 1);
    }
}

#[test]
fn labels_are_reached_forwards_and_backwards_and_must_be_bound() {
    let mut asm = Asm::default();
    let (back, forth) = (asm.label(), asm.label());
    asm.bind(back);
    asm.jcc(Cond::E, forth);
    asm.jmp(back);
    asm.bind(forth);
    asm.lea_label(RAX, back);
    let code = asm.finish().expect("both are bound").code;
    assert_eq!(code[2..6], 5i32.to_le_bytes());
    assert_eq!(code[7..11], (-11i32).to_le_bytes());
    assert_eq!(code[14..18], (-18i32).to_le_bytes());
    let mut asm = Asm::default();
    let nowhere = asm.label();
    asm.jmp(nowhere);
    assert!(asm.finish().is_none());
}

#[test]
fn vectors_of_three_widths_are_named() {
    use super::vex::{At, Bits, Vex};
    let add = Vex::new(1, 0xd4).words(true);
    let load = Vex::new(1, 0x6f).prefix(2);
    for (bits, name) in [(Bits::Half, "xmm"), (Bits::All, "ymm"), (Bits::Double, "zmm")] {
        for (a, b) in [(0, 1), (7, 8), (8, 7), (15, 15)] {
            let text = format!("vpaddq %{name}{b},%{name}{a},%{name}3");
            says(|asm| asm.vex_rr(add, bits, Xmm(3), Xmm(a), Xmm(b)), &text);
        }
        let mov = if bits == Bits::Double { "vmovdqu32" } else { "vmovdqu" };
        for (base, index, disp, text) in [
            (RDI, None, 0, "(%rdi)"),
            (R9, None, 64, "0x40(%r9)"),
            (RAX, Some((R10, 3)), -8, "-0x8(%rax,%r10,8)"),
            (R8, Some((RCX, 0)), 0x1234, "0x1234(%r8,%rcx)"),
        ] {
            let at = At::Base(base, index, disp);
            says(|asm| asm.vex_rm(load, bits, Xmm(9), Xmm(0), at), &format!("{mov} {text},%{name}9"));
        }
    }
    let product = Vex::new(2, 0x40).words(true).evex();
    says(|asm| asm.vex_rr(product, Bits::All, Xmm(1), Xmm(2), Xmm(13)), "vpmullq %ymm13,%ymm2,%ymm1");
    let fma = Vex { wide: true, words: true, ..Vex::new(2, 0xb8) };
    says(|asm| asm.vex_rr(fma, Bits::All, Xmm(1), Xmm(2), Xmm(3)), "vfmadd231pd %ymm3,%ymm2,%ymm1");
    says(|asm| asm.vex_rr(fma, Bits::Double, Xmm(1), Xmm(2), Xmm(3)), "vfmadd231pd %zmm3,%zmm2,%zmm1");
    says(|asm| asm.vex_from_gpr(Xmm(9), R11), "vmovq %r11,%xmm9");
    says(Asm::vzeroupper, "vzeroupper");
}
