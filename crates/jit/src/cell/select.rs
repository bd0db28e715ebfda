//! World selectors: code between a cell's word and the versions of its function, while threads are in older worlds.
//!
//! ```text
//!   call [word] ──► selector 2 ── thread.world ≥ since ──► newest version
//!                       └ older ──► selector 1 ── thread.world ≥ since ──► version before
//!                                       └ older ──► oldest version
//! ```
//!
//! A selector is constant code with data of its own, as a stub is (`place.rs`). A cell with one version has none: the word leads to the code.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | S5 | write where a selector leads | C1 of `brolga_instances::invoke` | S6 | as S1 of `place.rs` |
//! | S6 | selector: plain load, then a jump there | dependency | S5 | as S2 of `place.rs` |
//!
//! `since` does not change while the selector is taken. It is written, with both targets, before the first word leads to the
//! selector, which S1 or S5 publishes.
//!
//! A selector is retired like code: a thread that is in the middle of one passes no safepoint there, so it is free when every thread that was
//! inside has left or reported.
//!
//! Cost: 5 instructions and two loads for a call while there are two versions; 56 bytes.

use std::sync::Arc;

use brolga_instances::InvokePointer;
use brolga_runtime::{RetiredCode, ThreadLayout};

use super::place::{Groups, Layout, Taken};
use crate::memory::error::CodeMemoryError;

/// Offsets in the data of a selector, which its code has too.
const DATA_SINCE: usize = 0;
const DATA_NEWER: usize = 8;
const DATA_OLDER: usize = 16;

/// The layout of selectors.
pub(crate) enum SelectorLayout {}

/// Memory of all selectors of an engine.
pub(crate) type Selectors = Groups<SelectorLayout>;

impl Layout for SelectorLayout {
    const CODE: usize = 32;
    const WORD: usize = 0;
    const DATA: usize = 24;

    fn code(distance: usize) -> Vec<u8> {
        selector(distance)
    }
}

/// A selector, until it is dropped.
pub(crate) struct Selector(Taken<SelectorLayout>);

impl Selector {
    /// A selector that is not yet reachable.
    pub(crate) fn take(selectors: &Arc<Selectors>) -> Result<Selector, CodeMemoryError> {
        Ok(Selector(selectors.take()?))
    }

    /// Makes it distinguish worlds from `since` on from older ones. It has no targets before [`Selector::set`].
    pub(super) fn tell_apart(self, since: u64) -> Selector {
        // SAFETY: the data is this selector's, and no word leads to it.
        unsafe { self.0.pointer(self.0.data() + DATA_SINCE).cast::<u64>().write(since) };
        self
    }

    /// The address that calls go to.
    pub(super) fn code(&self) -> usize {
        self.0.code()
    }

    /// Sets the targets of calls: code of the function's signature, which is sealed, or another selector.
    pub(super) fn set(&self, newer: usize, older: usize) {
        self.word(DATA_NEWER).store(newer); // S5
        self.word(DATA_OLDER).store(older); // S5
    }

    fn word(&self, offset: usize) -> &InvokePointer {
        // SAFETY: the word is aligned, in memory that the group keeps, and only ever accessed as an atomic word, or by compiled code in
        // one move.
        unsafe { &*self.0.pointer(self.0.data() + offset).cast::<InvokePointer>() }
    }
}

/// A thread in a selector has no frame there, and no safepoint before it leaves.
impl RetiredCode for Selector {
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }
}

#[cfg(target_arch = "aarch64")]
use selector_aarch64 as selector;
#[cfg(target_arch = "x86_64")]
use selector_x86_64 as selector;

/// The code of a selector that is `distance` bytes before its data.
#[cfg(any(test, target_arch = "x86_64"))]
fn selector_x86_64(distance: usize) -> Vec<u8> {
    let world = (ThreadLayout::WORLD as u32).to_le_bytes();
    let relative = |offset: usize, end: usize| ((distance + offset - end) as u32).to_le_bytes();
    let mut code = vec![0x4d, 0x8b, 0x9f]; // mov r11, [r15 + world]: r11 is free and carries no argument.
    code.extend(world);
    code.extend([0x4c, 0x3b, 0x1d]); // cmp r11, [rip + since]
    code.extend(relative(DATA_SINCE, 14));
    code.extend([0x72, 6]); // jb older
    code.extend([0xff, 0x25]); // jmp [rip + newer]
    code.extend(relative(DATA_NEWER, 22));
    code.extend([0xff, 0x25]); // older: jmp [rip + older]
    code.extend(relative(DATA_OLDER, 28));
    code.extend([0xcc; 4]);
    code
}

/// The code of a selector that is `distance` bytes before its data.
#[cfg(any(test, target_arch = "aarch64"))]
fn selector_aarch64(distance: usize) -> Vec<u8> {
    const { assert!(ThreadLayout::WORLD < 1 << 15 && ThreadLayout::WORLD.is_multiple_of(8)) };
    // ldr x<register>, the word of the data that is at `offset`, by its distance from the instruction at `at`.
    let load = |register: u32, offset: usize, at: usize| {
        0x5800_0000 | (((distance + offset - at) as u32 >> 2) & 0x7_ffff) << 5 | register
    };
    let words: [u32; 8] = [
        // ldr x16, [x21, world]: x16 and x17 carry no argument and are scratch registers.
        0xf940_02b0 | (ThreadLayout::WORLD as u32 / 8) << 10,
        load(17, DATA_SINCE, 4),
        // cmp x16, x17
        0xeb11_021f,
        // b.lo older
        0x5400_0063,
        load(16, DATA_NEWER, 16),
        // br x16
        0xd61f_0200,
        // older:
        load(16, DATA_OLDER, 24),
        0xd61f_0200,
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_what_an_assembler_makes_of_it() {
        let [w0, w1, w2, w3] = (ThreadLayout::WORLD as u32).to_le_bytes();
        let expected = [
            0x4d, 0x8b, 0x9f, w0, w1, w2, w3, 0x4c, 0x3b, 0x1d, 0xf2, 0x0f, 0, 0, 0x72, 6, 0xff, 0x25, 0xf2,
            0x0f, 0, 0, 0xff, 0x25, 0xf4, 0x0f, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc,
        ];
        assert_eq!(selector_x86_64(0x1000), expected);
        let words: Vec<u32> = selector_aarch64(0x1000)
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let load = |register: u32, bytes: u32| 0x5800_0000 | (bytes >> 2) << 5 | register;
        assert_eq!(words[1], load(17, 0xffc));
        assert_eq!(words[4], load(16, 0x1008 - 16));
        assert_eq!(words[6], load(16, 0x1010 - 24));
        assert_eq!(words[3] >> 5 & 0x7_ffff, 3, "over the two instructions behind it");
    }
}
