//! One number for all layouts and signatures that compiled code assumes.
//!
//! Code in a file holds offsets into the thread, the lines of the dispatch cache, handler and entry records and objects, and it calls routines by
//! signatures. Code with another number is refused before the rest of its file is read.
//!
//! | part | from |
//! |---|---|
//! | thread, handlers, entries, cache lines | `thread.rs` |
//! | routines and entry points of the run time: names and signatures, in order | `routines.rs`, [`RuntimeFn`] |
//! | heap | [`HeapAbi`] |
//! | native signatures | `sig.rs` |
//! | layouts of objects | numbers from the run time |
//! | assumptions without a number: conventions, layouts of types | the version of this crate, and [`REVISION`] |

use brolga_ir::heap_abi::{HeapAbi, SMALL_INT_BYTES, SMALL_INTS, SMALLEST_INT};
use brolga_ir::{LowType, RuntimeFn};

use crate::routines::ROUTINES;
use crate::sig::MAX_RESULT_WORDS;
use crate::{linkage, thread};

/// Counts changes of conventions that no number here shows.
pub const REVISION: u64 = 1;

/// The number for code on this heap; `objects` are the layouts of the run time's objects.
pub fn abi_id(heap: &HeapAbi, objects: &[usize]) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.text(env!("CARGO_PKG_VERSION"));
    hash.word(REVISION);
    for offset in THREAD {
        hash.word(i64::from(*offset).cast_unsigned());
    }
    for word in [
        thread::LINE_KEYS as u64,
        thread::LINE_MULTIPLIER,
        thread::LINE_MASK,
        thread::TAG_BITS.cast_unsigned(),
        linkage::SAMPLES,
        linkage::SEEN_OPERANDS as u64,
        MAX_RESULT_WORDS as u64,
        SMALLEST_INT.cast_unsigned(),
        SMALL_INTS as u64,
        SMALL_INT_BYTES as u64,
        heap.fingerprint(),
    ] {
        hash.word(word);
    }
    for routine in ROUTINES {
        hash.text(routine.name);
        hash.list(routine.params.iter().map(|abi| *abi as u64));
        hash.list(routine.result.iter().map(|abi| *abi as u64));
        hash.word(routine.keeps_registers.into());
    }
    for function in RuntimeFn::ALL {
        hash.text(function.symbol());
        for types in [function.params(), function.results()] {
            hash.word(types.len() as u64);
            types.iter().for_each(|ty| hash.text(ty.as_low().map_or("", LowType::name)));
        }
        hash.word(function.kind() as u64);
    }
    hash.list(objects.iter().map(|&offset| offset as u64));
    hash.0
}

/// The offsets and sizes that `thread.rs` lists, in its order.
const THREAD: &[i32] = &[
    thread::THREAD_HANDLER,
    thread::THREAD_STACK_LIMIT,
    thread::THREAD_POLL,
    thread::THREAD_LAZY,
    thread::THREAD_INLINE_CACHE,
    thread::THREAD_GC_STACK,
    thread::THREAD_EXIT_FP,
    thread::THREAD_EXIT_PC,
    thread::THREAD_ENTRY,
    thread::THREAD_EXCEPTIONS,
    thread::HANDLER_PREVIOUS,
    thread::HANDLER_PC,
    thread::HANDLER_SP,
    thread::HANDLER_FP,
    thread::HANDLER_BYTES.cast_signed(),
    thread::ENTRY_EXIT_FP,
    thread::ENTRY_EXIT_PC,
    thread::ENTRY_PREVIOUS,
    thread::ENTRY_BYTES.cast_signed(),
    thread::INLINE_CACHE_STAMP,
    thread::INLINE_CACHE_TABLE,
    thread::METHODS_IDENTITY,
    thread::INLINE_CACHE_FIRST,
    thread::LINE_ADDRESS,
    thread::LINE_TAGS,
    thread::LINE_ROTATE.cast_signed(),
    thread::LINE_SHIFT.cast_signed(),
    thread::TAG_BYTES,
];

/// FNV-1a.
struct Fnv(u64);

impl Fnv {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn word(&mut self, word: u64) {
        word.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }

    fn list(&mut self, words: impl ExactSizeIterator<Item = u64>) {
        self.word(words.len() as u64);
        words.for_each(|word| self.word(word));
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        text.bytes().for_each(|byte| self.byte(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: HeapAbi = HeapAbi {
        tag_bytes: 8,
        tag_bits: 15,
        tag_old: 1,
        tag_permanent: 2,
        cells: &[16, 32],
        gc_stack: 40,
        runs: 256,
        run_bytes: 16,
        zeroed: false,
        moving: false,
    };

    #[test]
    fn the_number_sees_the_heap_and_the_layouts_of_objects() {
        let id = abi_id(&HEAP, &[0, 8]);
        assert_eq!(id, abi_id(&HEAP, &[0, 8]));
        assert_ne!(id, abi_id(&HEAP, &[8, 0]));
        assert_ne!(id, abi_id(&HEAP, &[0, 8, 0]));
        assert_ne!(id, abi_id(&HeapAbi { runs: 264, ..HEAP }, &[0, 8]));
    }

    /// Code contains every constant of `thread.rs`, so each must be part of the number.
    #[test]
    fn every_constant_of_the_thread_is_in_the_number() {
        let public = include_str!("thread.rs").lines().filter(|line| line.starts_with("pub const "));
        let own = include_str!("abi_id.rs").split("#[cfg(test)]").next().unwrap_or_default();
        for line in public {
            let name = line["pub const ".len()..].split(':').next().unwrap_or_default();
            assert!(own.contains(&format!("thread::{name}")), "`{name}` is not in the number");
        }
    }
}
