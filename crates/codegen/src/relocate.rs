//! The bytes of a relocation, from its place and its target.
//!
//! `P` is the address of the place, `T` the target's address plus the addend, `page` clears the low 12 bits.
//!
//! | kind                    | bytes | written                                   | reaches         |
//! |-------------------------|-------|-------------------------------------------|-----------------|
//! | `Abs8`                  | 8     | T                                         | everything      |
//! | `X86PcRel4`, `X86CallPcRel4` | 4 | T − P                                    | ±2 GiB          |
//! | `Arm64Call`             | 4     | (T − P) / 4 in the low 26 bits            | ±128 MiB; a veneer beyond |
//! | `Aarch64AdrPrelPgHi21`  | 4     | (page T − page P) / 4096 in bits 5–23, its low 2 bits in 29–30 | ±4 GiB |
//! | `Aarch64AddAbsLo12Nc`   | 4     | the low 12 bits of T in bits 10–21        | everything      |
//! | `X86CallPltRel4`, `X86GotPcRel4`, `Aarch64AdrGotPage21` | 4 | as the kind without a table, T being the entry in the table | the same |
//! | `Aarch64Ld64GotLo12Nc`  | 4     | the low 12 bits of T, divided by 8, in bits 10–21 | every entry that is aligned to 8 bytes |
//!
//! A veneer is a few instructions close to the call that jump anywhere: `ldr x16, .+8; br x16; .quad T`. The standard
//! reserves x16 for linkers.

use crate::compiled::RelocKind;

/// Bytes of a veneer.
pub const VENEER_BYTES: usize = 16;

/// The distance that an `Arm64Call` reaches without a veneer.
pub const ARM64_CALL_REACH: u64 = 128 << 20;

/// Up to eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patch {
    bytes: [u8; 8],
    length: usize,
}

impl Patch {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The bytes of a place after relocation; `None` when the target is out of reach. `old` are the bytes before it.
pub fn relocate(kind: RelocKind, old: &[u8], place: u64, target: u64) -> Option<Patch> {
    let distance = target.wrapping_sub(place).cast_signed();
    match kind {
        RelocKind::Abs8 => Some(Patch { bytes: target.to_le_bytes(), length: 8 }),
        RelocKind::X86PcRel4
        | RelocKind::X86CallPcRel4
        | RelocKind::X86CallPltRel4
        | RelocKind::X86GotPcRel4 => Some(word(i32::try_from(distance).ok()?.cast_unsigned())),
        RelocKind::Arm64Call => {
            let reaches = distance % 4 == 0 && fits(distance / 4, 26);
            reaches.then(|| instruction(old, field(distance / 4, 26)))?
        }
        RelocKind::Aarch64AdrPrelPgHi21 | RelocKind::Aarch64AdrGotPage21 => {
            let pages = ((target >> 12).wrapping_sub(place >> 12)).cast_signed();
            let pages = fits(pages, 21).then(|| field(pages, 21))?;
            instruction(old, (pages & 3) << 29 | (pages >> 2) << 5)
        }
        RelocKind::Aarch64AddAbsLo12Nc => instruction(old, (target as u32 & 0xfff) << 10),
        RelocKind::Aarch64Ld64GotLo12Nc => {
            let entry = target as u32 & 0xfff;
            entry.is_multiple_of(8).then(|| instruction(old, (entry / 8) << 10))?
        }
    }
}

/// The code of a veneer.
pub fn veneer(target: u64) -> [u8; VENEER_BYTES] {
    let mut code = [0; VENEER_BYTES];
    code[..4].copy_from_slice(&0x5800_0050u32.to_le_bytes());
    code[4..8].copy_from_slice(&0xd61f_0200u32.to_le_bytes());
    code[8..].copy_from_slice(&target.to_le_bytes());
    code
}

fn word(value: u32) -> Patch {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_le_bytes());
    Patch { bytes, length: 4 }
}

/// An instruction with bits added, which are 0 in it.
fn instruction(old: &[u8], bits: u32) -> Option<Patch> {
    Some(word(u32::from_le_bytes(*old.first_chunk()?) | bits))
}

fn fits(value: i64, bits: u32) -> bool {
    let limit = 1i64 << (bits - 1);
    (-limit..limit).contains(&value)
}

fn field(value: i64, bits: u32) -> u32 {
    value.cast_unsigned() as u32 & (u32::MAX >> (32 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(kind: RelocKind, old: u32, place: u64, target: u64) -> Option<u32> {
        let patch = relocate(kind, &old.to_le_bytes(), place, target)?;
        Some(u32::from_le_bytes(patch.bytes().try_into().unwrap()))
    }

    #[test]
    fn x86_distances_count_from_the_place_and_must_fit() {
        let at = |place, target| {
            let patch = relocate(RelocKind::X86CallPcRel4, &[0; 4], place, target)?;
            Some(i32::from_le_bytes(patch.bytes().try_into().unwrap()))
        };
        assert_eq!(at(0x1000, 0x1010), Some(0x10));
        assert_eq!(at(0x1010, 0x1000), Some(-0x10));
        assert_eq!(at(0x1000, 0x1000 + i32::MAX as u64), Some(i32::MAX));
        assert_eq!(at(0x1000, 0x8000_1000), None);
        assert_eq!(at(1 << 32, (1 << 32) - (1 << 31)), Some(i32::MIN));
        assert_eq!(at(1 << 32, (1 << 32) - (1 << 31) - 1), None);
        assert_eq!(
            relocate(RelocKind::Abs8, &[0; 8], 0, u64::MAX - 1).unwrap().bytes(),
            (u64::MAX - 1).to_le_bytes()
        );
    }

    // The words are what the assembler makes of the instructions in the comments.
    #[test]
    fn arm_instructions_get_their_fields() {
        let (bl, adrp, add) = (0x9400_0000, 0x9000_0000, 0x9100_0000);
        // bl .+8; bl .-4; bl .+0x7fffffc
        assert_eq!(arm(RelocKind::Arm64Call, bl, 0x1000, 0x1008), Some(0x9400_0002));
        assert_eq!(arm(RelocKind::Arm64Call, bl, 0x1000, 0x0ffc), Some(0x97ff_ffff));
        assert_eq!(arm(RelocKind::Arm64Call, bl, 0, ARM64_CALL_REACH - 4), Some(0x95ff_ffff));
        assert_eq!(arm(RelocKind::Arm64Call, bl, 0, ARM64_CALL_REACH), None);
        assert_eq!(arm(RelocKind::Arm64Call, bl, ARM64_CALL_REACH, 0), Some(0x9600_0000));
        assert_eq!(arm(RelocKind::Arm64Call, bl, ARM64_CALL_REACH + 4, 0), None);
        assert_eq!(arm(RelocKind::Arm64Call, bl, 0, 2), None);
        // adrp x0, .+0x1000; adrp x0, .+0x4000; adrp x0, .-0x1000
        let page = RelocKind::Aarch64AdrPrelPgHi21;
        assert_eq!(arm(page, adrp, 0x1ff0, 0x2008), Some(0xb000_0000));
        assert_eq!(arm(page, adrp, 0x1ff0, 0x5008), Some(0x9000_0020));
        assert_eq!(arm(page, adrp, 0x1ff0, 0x0008), Some(0xf0ff_ffe0));
        assert_eq!(arm(page, adrp, 0, 1 << 32), None);
        // ldr x0, [x0, #0x120]
        let load = 0xf940_0000;
        assert_eq!(arm(RelocKind::Aarch64Ld64GotLo12Nc, load, 0, 0x5120), Some(0xf940_9000));
        assert_eq!(arm(RelocKind::Aarch64Ld64GotLo12Nc, load, 0, 0x5124), None);
        // add x0, x0, #0x123
        assert_eq!(arm(RelocKind::Aarch64AddAbsLo12Nc, add, 0, 0x5123), Some(0x9104_8c00));
    }

    #[test]
    fn a_veneer_jumps_to_the_target_that_it_holds() {
        let code = veneer(0x1122_3344_5566_7788);
        // ldr x16, .+8; br x16
        assert_eq!(code[..8], [0x5800_0050u32, 0xd61f_0200].map(u32::to_le_bytes).as_flattened()[..]);
        assert_eq!(code[8..], 0x1122_3344_5566_7788u64.to_le_bytes());
    }
}
