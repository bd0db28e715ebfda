//! Machine code as text: offset, bytes, instruction, and relocations.
//!
//! ```text
//! fib(Int64):
//!      0  55                       pushq %rbp
//!     1c  e8 00 00 00 00           callq 0x21
//!                                  # 1d: X86CallPcRel4 function `fib(Int64)` -4
//! ```
//!
//! On aarch64 every instruction is shown as a word; `--emit=vcode` shows the mnemonics there.

use std::fmt::Write as _;

use brolga_engine::emit::Code;

use crate::machine::instructions;

/// The text of all functions.
pub fn assembly(code: &Code) -> String {
    let mut text = String::new();
    for function in code.functions() {
        let blank = if text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{blank}{}:", function.name);
        let mut references = function.references.iter().peekable();
        for (offset, bytes, instruction) in instructions(function.arch, function.bytes) {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = writeln!(text, "{offset:6x}  {:32} {instruction}", hex.join(" "));
            while let Some(place) = references.next_if(|place| place.offset < offset + bytes.len()) {
                let _ = writeln!(text, "{:41}# {:x}: {}", "", place.offset, place.text);
            }
        }
    }
    text
}
