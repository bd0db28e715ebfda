//! Cranelift's IR, its listing of machine instructions and the bytes, as rows that are linked to rows of the
//! program.
//!
//! ```text
//! CLIF      @0007   v9 = iadd v2, v3        the source location is the origin
//! bytes     offsets in ascending order, each with its origin                 (MachineCode::lines)
//! listing   no locations: aligned with the disassembled bytes by mnemonic, in order
//! ```
//!
//! The listing and the bytes contain the same instructions in the same order, but a row of the listing may
//! stand for several instructions or none. Rows are matched greedily within a window; a row without a partner
//! has the origin of the previous row. Words of aarch64 are not disassembled; to match them, a table of the
//! bits that determine the instruction suffices.

use std::fmt::Write as _;

use brolga_engine::emit::{MachineCode, Origin};
use brolga_ir::Arch;
use brolga_ir::func::LineColumn;

/// A row of text, and the origin of the program's row that it comes from; 0 if unknown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TextRow {
    pub(crate) text: String,
    pub(crate) origin: u32,
}

/// The maximum distance of a row's partner from its expected position.
const WINDOW: usize = 12;

/// The rows of a function in Cranelift's IR.
pub(crate) fn clif_rows(clif: &str) -> Vec<TextRow> {
    let row = |line: &str| {
        let bare = line.trim();
        let located = bare.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let Some((location, inst)) = located else {
            let is_outer = line.starts_with("function") || bare.starts_with("block") || bare == "}";
            let indent = if is_outer || bare.is_empty() { "" } else { "    " };
            return TextRow { text: format!("{indent}{bare}"), origin: 0 };
        };
        let place = u32::from_str_radix(location, 16).ok().and_then(LineColumn::from_bits);
        let origin = place.and_then(LineColumn::line).unwrap_or(0);
        TextRow { text: format!("    {}", inst.trim_start()), origin }
    };
    clif.lines().map(row).collect()
}

/// The rows of a function's bytes: offset, bytes and instruction separated by tabs, and the relocations.
pub(crate) fn byte_rows(code: &MachineCode<'_>) -> Vec<TextRow> {
    let mut rows = Vec::new();
    let mut references = code.references.iter().peekable();
    for (offset, bytes, instruction) in instructions(code.arch, code.bytes) {
        let mut text = format!("{offset:x}\t");
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "\t{instruction}");
        while let Some(place) = references.next_if(|place| place.offset < offset + bytes.len()) {
            let _ = write!(text, "  # {}", place.text);
        }
        rows.push(TextRow { text, origin: origin_at(code.lines, offset) });
    }
    rows
}

/// The rows of the code generator's listing, with origins taken from the rows of the bytes.
pub(crate) fn listing_rows(code: &MachineCode<'_>, bytes: &[TextRow]) -> Vec<TextRow> {
    let lines: Vec<&str> = code.listing.lines().collect();
    let mut rows: Vec<TextRow> =
        lines.iter().map(|line| TextRow { text: (*line).to_owned(), origin: 0 }).collect();
    let is_inst = |line: &str| line.starts_with(' ') && !matches!(mnemonic(line), ";" | "unwind");
    let listed: Vec<usize> = (0..lines.len()).filter(|&n| is_inst(lines[n])).collect();
    let ours: Vec<&str> = listed.iter().map(|&n| mnemonic(lines[n])).collect();
    let theirs: Vec<&str> = match code.arch {
        Arch::X86_64 => {
            bytes.iter().map(|row| mnemonic(row.text.rsplit('\t').next().unwrap_or(""))).collect()
        }
        Arch::Aarch64 => code.bytes.chunks(4).map(|bytes| kind_of_word(word(bytes))).collect(),
    };
    let mut origin = 0;
    for (row, partner) in listed.iter().zip(partners(&ours, &theirs)) {
        origin = partner.map_or(origin, |partner| bytes[partner].origin);
        rows[*row].origin = origin;
    }
    rows
}

/// For each word of `ours`, the index of the same word in `theirs`, in order, if there is one nearby.
fn partners(ours: &[&str], theirs: &[&str]) -> Vec<Option<usize>> {
    let mut found = vec![None; ours.len()];
    let (mut at, mut other) = (0, 0);
    while at < ours.len() && other < theirs.len() {
        // The nearest pair of equal words: the one for which the fewest rows are skipped on both sides
        // together.
        let pairs = (0..2 * WINDOW)
            .flat_map(|skipped| (0..=skipped).map(move |ours| (ours, skipped - ours)))
            .map(|(skip, skip_other)| (at + skip, other + skip_other));
        let mut near = pairs.filter(|&(a, b)| a < ours.len() && b < theirs.len());
        match near.find(|&(a, b)| is_same(ours[a], theirs[b])) {
            Some((a, b)) => {
                found[a] = Some(b);
                (at, other) = (a + 1, b + 1);
            }
            None => (at, other) = (at + WINDOW, other + WINDOW),
        }
    }
    found
}

/// Whether two mnemonics denote the same instruction: in the listing the size follows the mnemonic where the
/// operands do not show it, as in `movq` and `mov`. `other` may also be an entry of [`WORDS`].
fn is_same(one: &str, other: &str) -> bool {
    if let Some(starts) = other.strip_prefix('^') {
        return starts.split('|').any(|start| one.starts_with(start));
    }
    let (long, short) = if one.len() > other.len() { (one, other) } else { (other, one) };
    long == short || (long.len() - short.len() <= 2 && short.len() > 1 && long.starts_with(short))
}

/// Instructions of aarch64 by some of their bits: mask, bits, mnemonic; `^` is followed by the prefixes of
/// several mnemonics. The first matching row applies.
const WORDS: [(u32, u32, &str); 42] = [
    (0xfc00_0000, 0x1400_0000, "b"),
    (0xfc00_0000, 0x9400_0000, "bl"),
    (0xff00_0010, 0x5400_0000, "^b."),
    (0x7f00_0000, 0x3400_0000, "cbz"),
    (0x7f00_0000, 0x3500_0000, "cbnz"),
    (0x7f00_0000, 0x3600_0000, "tbz"),
    (0x7f00_0000, 0x3700_0000, "tbnz"),
    (0xffff_fc1f, 0xd61f_0000, "br"),
    (0xffff_fc1f, 0xd63f_0000, "blr"),
    (0xffff_fc1f, 0xd65f_0000, "ret"),
    (0xffff_0000, 0x0000_0000, "udf"),
    (0x1f00_0000, 0x1000_0000, "^adr"),
    (0x7f80_0000, 0x1280_0000, "movn"),
    (0x7f80_0000, 0x5280_0000, "movz"),
    (0x7f80_0000, 0x7280_0000, "movk"),
    (0xffff_fc1f, 0x9100_001f, "mov"),
    (0xffff_ffe0, 0x9100_03e0, "mov"),
    (0x7fe0_ffe0, 0x2a00_03e0, "mov"),
    (0x7f00_0000, 0x1100_0000, "add"),
    (0x7f00_0000, 0x3100_0000, "adds"),
    (0x7f00_0000, 0x5100_0000, "sub"),
    (0x7f00_0000, 0x7100_0000, "subs"),
    (0x7f00_0000, 0x0b00_0000, "add"),
    (0x7f00_0000, 0x2b00_0000, "adds"),
    (0x7f00_0000, 0x4b00_0000, "sub"),
    (0x7f00_0000, 0x6b00_0000, "subs"),
    (0x1f80_0000, 0x1200_0000, "^and|orr|eor"),
    (0x1f00_0000, 0x0a00_0000, "^and|orr|eor|bic|orn|eon"),
    (0x1f80_0000, 0x1300_0000, "^lsl|lsr|asr|ubf|sbf|bf|uxt|sxt"),
    (0x1fe0_0000, 0x1a00_0000, "^adc|sbc"),
    (0x1fe0_0000, 0x1a40_0000, "^ccm"),
    (0x1fe0_0000, 0x1a80_0000, "^cs"),
    (0x1fe0_0000, 0x1ac0_0000, "^udiv|sdiv|lsl|lsr|asr|ror|extr|clz|cls|rbit|rev"),
    (0x1f00_0000, 0x1b00_0000, "^madd|msub|smul|umul|smadd|umadd"),
    (0x3a40_0000, 0x2800_0000, "^stp"),
    (0x3a40_0000, 0x2840_0000, "^ldp"),
    (0x3f00_0000, 0x0800_0000, "^ld|st|cas"),
    (0xfec0_0000, 0x3c80_0000, "^st"),
    (0x3ac0_0000, 0x3800_0000, "^st"),
    (0x3a00_0000, 0x3800_0000, "^ld|swp"),
    (0x3b00_0000, 0x1800_0000, "^ld"),
    (0x1e00_0000, 0x1e00_0000, "^f|scvtf|ucvtf|mov"),
];

fn kind_of_word(word: u32) -> &'static str {
    WORDS.iter().find(|&&(mask, bits, _)| word & mask == bits).map_or("", |&(_, _, name)| name)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn mnemonic(instruction: &str) -> &str {
    instruction.split_whitespace().next().unwrap_or("")
}

/// The origin that applies at an offset.
fn origin_at(lines: &[(u32, Origin)], offset: usize) -> u32 {
    let behind = lines.partition_point(|&(start, _)| start as usize <= offset);
    behind.checked_sub(1).and_then(|at| lines[at].1.at.line()).unwrap_or(0)
}

/// Offset, bytes and text of each machine instruction, and of each entry of a jump table. For processors
/// other than x86-64, instructions are shown as words.
pub fn instructions(arch: Arch, code: &[u8]) -> Vec<(usize, &[u8], String)> {
    match arch {
        Arch::X86_64 => disassembled(code),
        Arch::Aarch64 => {
            let row = |(n, bytes)| (4 * n, bytes, format!(".inst {:#010x}", word(bytes)));
            code.chunks(4).enumerate().map(row).collect()
        }
    }
}

fn disassembled(code: &[u8]) -> Vec<(usize, &[u8], String)> {
    use iced_x86::{Code, Decoder, DecoderOptions, Formatter as _, GasFormatter, Instruction, OpKind};
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_uppercase_hex(false);
    let mut found = Vec::new();
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    // The address that was computed last.
    let mut addressed = None;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let offset = instruction.ip() as usize;
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        found.push((offset, &code[offset..offset + instruction.len()], text));
        if instruction.code() == Code::Lea_r64_m && instruction.is_ip_rel_memory_operand() {
            addressed = Some(instruction.ip_rel_memory_address());
        }
        let is_indirect = instruction.code() == Code::Jmp_rm64 && instruction.op0_kind() == OpKind::Register;
        if is_indirect && addressed == Some(instruction.next_ip()) {
            let end = table_rows(code, instruction.next_ip() as usize, &mut found);
            // Both are within the code.
            let _ = decoder.set_position(end);
            decoder.set_ip(end as u64);
        }
    }
    found
}

/// The rows of the jump table that follows an indirect jump, and the end of the table. An entry is the
/// distance from the table to its target. The length is not recorded: the table ends at its first target, or
/// at the first word that leads outside the code.
fn table_rows<'c>(code: &'c [u8], table: usize, rows: &mut Vec<(usize, &'c [u8], String)>) -> usize {
    let (mut at, mut end) = (table, code.len());
    while let Some(bytes) = code.get(at..at + 4).filter(|_| at + 4 <= end) {
        let distance = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let target = table.checked_add_signed(distance as isize).filter(|&target| target < code.len());
        let Some(target) = target else { break };
        if target > at {
            end = end.min(target);
        }
        rows.push((at, bytes, format!(".long {target:#x} - {table:#x}")));
        at += 4;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{Arch, LineColumn, clif_rows, is_same, kind_of_word, origin_at, partners};

    #[test]
    fn locations_of_clif_are_origins() {
        let rows =
            clif_rows("function u0:0(i64) {\nblock0(v0: i64):\n@001a v1 = iadd v0, v0\n     v2 = x\n}\n");
        let found: Vec<_> = rows.iter().map(|row| (row.origin, row.text.as_str())).collect();
        let expected = [
            (0, "function u0:0(i64) {"),
            (0, "block0(v0: i64):"),
            (26, "    v1 = iadd v0, v0"),
            (0, "    v2 = x"),
            (0, "}"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn words_of_aarch64_are_matched_by_their_bits() {
        let rows = [
            (0xa9bf_7bfd, "stp"),
            (0x9100_03fd, "mov"),
            (0x8b01_0000, "add"),
            (0xeb02_003f, "subs"),
            (0x5400_00ab, "b.lt"),
            (0xd37d_f000, "lsl"),
            (0x9b01_7c00, "madd"),
            (0xf940_0421, "ldr"),
            (0xf800_0c41, "str"),
            (0x9a81_b000, "csel"),
            (0x1e61_2800, "fadd"),
            (0xd63f_0020, "blr"),
            (0xa8c1_7bfd, "ldp"),
            (0xd65f_03c0, "ret"),
        ];
        for (word, listed) in rows {
            assert!(is_same(listed, kind_of_word(word)), "{listed}: {}", kind_of_word(word));
        }
        assert!(!is_same("bl", kind_of_word(0x1400_0000)) && !is_same("ret", kind_of_word(0xffff_ffff)));
    }

    #[test]
    fn tables_of_jumps_are_no_instructions() {
        let code = [
            0x48, 0x8d, 0x1d, 9, 0, 0, 0, // lea 16, %rbx
            0x48, 0x63, 0x0c, 0xbb, // movslq (%rbx,%rdi,4), %rcx
            0x48, 0x03, 0xd9, // add %rcx, %rbx
            0xff, 0xe3, // jmp *%rbx
            13, 0, 0, 0, 12, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff, // to 29, 28 and 0
            0xc3, 0x90,
        ];
        let rows = super::instructions(Arch::X86_64, &code);
        let texts: Vec<_> =
            rows[4..].iter().map(|(offset, bytes, text)| (*offset, bytes.len(), &**text)).collect();
        let table = [(16, 4, ".long 0x1d - 0x10"), (20, 4, ".long 0x1c - 0x10"), (24, 4, ".long 0x0 - 0x10")];
        assert_eq!(texts, [&table[..], &[(28, 1, "ret"), (29, 1, "nop")]].concat());
        // A jump to an address that was not computed here has no table.
        assert!(super::instructions(Arch::X86_64, &code[7..])[3].2.starts_with("or "));
    }

    #[test]
    fn rows_without_partners_are_passed_over() {
        let ours = ["pushq", "movq", "args", "addl", "ret"];
        let theirs = ["push", "mov", "add", "nop", "ret"];
        assert_eq!(partners(&ours, &theirs), [Some(0), Some(1), None, Some(2), Some(4)]);
        assert_eq!(partners(&["a"; 30], &["b"; 30]), [None; 30]);
    }

    #[test]
    fn an_origin_holds_to_the_next() {
        let lines = [(4, LineColumn::new(7, 0).into()), (9, LineColumn::new(8, 3).into())];
        assert_eq!([0, 4, 8, 9, 100].map(|offset| origin_at(&lines, offset)), [0, 7, 7, 8, 8]);
    }
}
