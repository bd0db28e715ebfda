//! The machine code of stubs.

use super::forms::Machine;

/// A jump to an address, which is in the code.
pub(super) fn jump(target: usize) -> Vec<u8> {
    let mut code = match Machine::HOST {
        // jmp *[rip + 2]; ud2
        Machine::X86_64 => vec![0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b],
        // ldr x16, .+8; br x16
        Machine::Aarch64 => [0x5800_0050u32, 0xd61f_0200].map(u32::to_le_bytes).concat(),
    };
    code.extend((target as u64).to_le_bytes());
    code
}

/// A jump to the address in a word.
pub(super) fn chosen(place: usize, word: usize) -> Vec<u8> {
    match Machine::HOST {
        // jmp *[rip + distance]
        Machine::X86_64 => {
            let distance = word.wrapping_sub(place + 6) as i32;
            [&[0xff, 0x25], &distance.to_le_bytes()[..]].concat()
        }
        // ldr x16, .+16; ldr x16, [x16]; br x16
        Machine::Aarch64 => {
            let mut code = [0x5800_0090u32, 0xf940_0210, 0xd61f_0200, 0].map(u32::to_le_bytes).concat();
            code.extend((word as u64).to_le_bytes());
            code
        }
    }
}

/// `atexit` of a unit: `__cxa_atexit` with its handle.
pub(super) fn at_exit(handle: usize, target: usize) -> Vec<u8> {
    let mut code = match Machine::HOST {
        // mov rdx, [rip + 9]; xor esi, esi; jmp *[rip + 9]
        Machine::X86_64 => {
            vec![0x48, 0x8b, 0x15, 9, 0, 0, 0, 0x31, 0xf6, 0xff, 0x25, 9, 0, 0, 0, 0xcc]
        }
        // ldr x2, .+16; mov x1, xzr; ldr x16, .+16; br x16
        Machine::Aarch64 => {
            [0x5800_0082u32, 0xaa1f_03e1, 0x5800_0090, 0xd61f_0200].map(u32::to_le_bytes).concat()
        }
    };
    code.extend((handle as u64).to_le_bytes());
    code.extend((target as u64).to_le_bytes());
    code
}
