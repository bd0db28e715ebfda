//! The header of a C entry, by which compiled code that calls through a pointer finds the native code.
//!
//! ```text
//!   NAME#c   +0   jump to +32      C starts here
//!            +4   key              the classes of the result and the parameters
//!            +8   address of the table of methods that the entry searches
//!            +16  address of the word that holds the address of the native code ── the cell, or +24
//!            +24  the address of the native code, if there is no cell
//!            +32  the C convention, `brolga_callback`, … (`callback.rs`)
//!
//!   call of `p`     p is aligned to 32 bytes, [p] is the jump and the key that the call expects,
//!   from compiled   the table at p has the identity of the table in use     ──►  call [[p + 16]] by the `tail` convention
//!   code            otherwise                                               ──►  call p by the C convention
//! ```
//!
//! A pointer may be anything that C can call. Eight bytes at an aligned address never cross a page, and executable code is readable on
//! all supported systems; execute-only memory is not supported. If a function of C began with the same bytes, its second word
//! would have to be the address of a table, too.
//!
//! **Same effect.** The native call is correct where `brolga_callback` would change nothing but the registers: the thread is attached, pinned, in the
//! heap, and in a world of the entry's table. The first three hold in every function that handles objects; only such functions read headers
//! (`translate/pointer.rs`). The identity in the thread shows the last, since it is 0 outside of all worlds, and no two tables of a process
//! share one. An exception leaves the native call like any call.
//!
//! **Keys.** Integers up to 64 bits and addresses are one class: both conventions pass them in the low bits of a register or a word, and leave
//! the bits above open. So a call whose widths differ from the function's reads what it would read through C.
//!
//! Cost: 32 bytes for each C entry.

use brolga_ir::{Arch, LowType};

use crate::compiled::{CompiledFunction, RelocKind, RelocTarget, Relocation, Symbol};
use crate::sig::{Abi, Signature};
use crate::translate::abi_of;

/// Bytes of a header, and the alignment of an address that may have one.
pub(crate) const HEADER_BYTES: u32 = 32;
/// Offset of the address of the table of methods.
pub(crate) const HEADER_TABLE: i32 = 8;
/// Offset of the address of the word with the native code's address.
pub(crate) const HEADER_WORD: i32 = 16;
/// Offset of the native code's address, if there is no cell.
const HEADER_CODE: u32 = 24;

/// A jump over the rest of the header.
const fn jump(arch: Arch) -> [u8; 4] {
    match arch {
        Arch::X86_64 => [0xeb, 30, 0x90, 0x90],
        Arch::Aarch64 => 0x1400_0008_u32.to_le_bytes(),
    }
}

/// The first eight bytes of the header of a function with these parameters and results; `None` if it has none, because they
/// are too many or not types of C.
pub(crate) fn first_word(params: &[Abi], results: &[Abi], arch: Arch) -> Option<u64> {
    const MOST: usize = 14;
    if params.len() > MOST || results.len() > 1 {
        return None;
    }
    let result = results.first().map_or(Some(0), |&abi| class(abi))?;
    let key = params.iter().try_fold(1 << 2 | result, |key, &abi| Some(key << 2 | class(abi)?))?;
    Some(u64::from(u32::from_le_bytes(jump(arch))) | u64::from(key) << 32)
}

/// The first word and the native signature that a call of C through a pointer expects.
pub(crate) fn expected(params: &[LowType], results: &[LowType], arch: Arch) -> Option<(u64, Signature)> {
    let abi = |lows: &[LowType]| lows.iter().map(|&low| abi_of(low)).collect::<Vec<_>>();
    let signature = Signature::new(abi(params), abi(results));
    Some((first_word(&signature.params, &signature.results, arch)?, signature))
}

fn class(abi: Abi) -> Option<u32> {
    match abi {
        Abi::I8 | Abi::I16 | Abi::I32 | Abi::I64 | Abi::Ptr => Some(1),
        Abi::F32 => Some(2),
        Abi::F64 => Some(3),
        Abi::I128 | Abi::F16 | Abi::Object | Abi::V128 => None,
    }
}

/// Inserts the header before a C entry. `callee` is a cell or a function.
pub(crate) fn put(entry: &mut CompiledFunction, signature: &Signature, callee: &Symbol, arch: Arch) {
    let Some(first) = first_word(&signature.params, &signature.results, arch) else { return };
    let mut code = first.to_le_bytes().to_vec();
    code.resize(HEADER_BYTES as usize, 0);
    code.append(&mut entry.code);
    entry.code = code;
    entry.align = entry.align.max(HEADER_BYTES);
    for reloc in &mut entry.relocs {
        reloc.offset += HEADER_BYTES;
        if let RelocTarget::Offset(at) = &mut reloc.target {
            *at += HEADER_BYTES;
        }
    }
    for map in &mut entry.frame_maps {
        map.return_offset += HEADER_BYTES;
    }
    for (at, _) in &mut entry.lines {
        *at += HEADER_BYTES;
    }
    let mut address = |offset: u32, symbol: &Symbol, addend: i64| {
        let known = entry.symbols.iter().position(|one| one == symbol);
        let index = known.unwrap_or_else(|| {
            entry.symbols.push(symbol.clone());
            entry.symbols.len() - 1
        });
        let target = RelocTarget::Symbol(index as u32);
        entry.relocs.push(Relocation { offset, kind: RelocKind::Abs8, target, addend });
    };
    address(HEADER_TABLE as u32, &Symbol::Methods, 0);
    match callee {
        Symbol::IndirectCell(_) => address(HEADER_WORD as u32, callee, 0),
        _ => {
            let own = Symbol::Function(entry.name.clone());
            address(HEADER_WORD as u32, &own, HEADER_CODE.into());
            address(HEADER_CODE, callee, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_classes_and_counts_apart() {
        let word = |params: &[Abi], results: &[Abi]| first_word(params, results, Arch::HOST);
        let known = word(&[Abi::I64, Abi::F64], &[Abi::I32]);
        assert!(known.is_some());
        assert_eq!(known, word(&[Abi::Ptr, Abi::F64], &[Abi::I8]));
        for other in [
            word(&[Abi::F64, Abi::I64], &[Abi::I32]),
            word(&[Abi::I64, Abi::F32], &[Abi::I32]),
            word(&[Abi::I64, Abi::F64], &[]),
            word(&[Abi::I64, Abi::F64], &[Abi::F64]),
            word(&[Abi::I64], &[Abi::I32]),
            word(&[Abi::I64, Abi::F64, Abi::I64], &[Abi::I32]),
        ] {
            assert!(other.is_some() && other != known);
        }
        assert_ne!(word(&[], &[Abi::I64]), word(&[Abi::I64], &[]));
    }

    #[test]
    fn signatures_outside_of_c_have_no_key() {
        for abi in [Abi::I128, Abi::F16, Abi::Object, Abi::V128] {
            assert_eq!(first_word(&[abi], &[], Arch::HOST), None);
            assert_eq!(first_word(&[], &[abi], Arch::HOST), None);
        }
        assert!(first_word(&[Abi::I64; 14], &[Abi::F64], Arch::HOST).is_some());
        assert_eq!(first_word(&[Abi::I64; 15], &[], Arch::HOST), None);
    }
}
