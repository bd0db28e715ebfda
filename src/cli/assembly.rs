//! Machine code as text: offset, bytes, instruction, and what the linker fills in.
//!
//! ```text
//! fib(Int64):
//!      0  55                       pushq %rbp
//!     1c  e8 00 00 00 00           callq 0x21
//!                                  # 1d: X86CallPcRel4 function `fib(Int64)` -4
//! ```
//!
//! On aarch64 every instruction is shown as its word; `--emit=vcode` has the mnemonics there.

use std::fmt::Write as _;

use brolga::emit::Code;

/// The text of all functions.
pub(super) fn of(code: &Code) -> String {
    let mut text = String::new();
    for function in code.functions() {
        let blank = if text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{blank}{}:", function.name);
        let mut references = function.references.iter().peekable();
        for (offset, bytes, instruction) in instructions(function.bytes) {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = writeln!(text, "{offset:6x}  {:32} {instruction}", hex.join(" "));
            while let Some(place) = references.next_if(|place| place.offset < offset + bytes.len()) {
                let _ = writeln!(text, "{:41}# {:x}: {}", "", place.offset, place.text);
            }
        }
    }
    text
}

/// Offset, bytes and text of each instruction.
#[cfg(target_arch = "x86_64")]
fn instructions(code: &[u8]) -> Vec<(usize, &[u8], String)> {
    use iced_x86::{Decoder, DecoderOptions, Formatter as _, GasFormatter};
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut found = Vec::new();
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        let offset = instruction.ip() as usize;
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        found.push((offset, &code[offset..offset + instruction.len()], text));
    }
    found
}

/// Offset, bytes and text of each instruction.
#[cfg(not(target_arch = "x86_64"))]
fn instructions(code: &[u8]) -> Vec<(usize, &[u8], String)> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    code.chunks(4)
        .enumerate()
        .map(|(n, bytes)| (4 * n, bytes, format!(".inst {:#010x}", word(bytes))))
        .collect()
}
