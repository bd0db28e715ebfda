//! Memory of slots: for each function a word that leads to its code, a stub, and what the stub needs.
//!
//! ```text
//!   group     ┌───────────────────────┐  one page, executable, the same bytes for ever
//!   of slots  │ stub 0, stub 1, …     │      stub:  r = cell;  thread.lazy = r;  jump to cell.trampoline
//!             ├───────────────────────┤  pages that are written
//!             │ word 0, word 1, …     │      address of code with the function's signature; at first the stub's
//!             │ cell 0, cell 1, …     │      record, trampoline, counter
//!             └───────────────────────┘
//! ```
//!
//! Groups lie in the reservation of code, so that code names a word by its distance. Words are next to each other, because they
//! are what calls read; a cell is read by the first calls only.
//!
//! **Orderings.** A word is written by one thread at a time (its record's lock) and read by compiled code at any time.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | S1 | write a word | C9 of `brolga_instances::protocol` | S2 | on aarch64 a caller finds the address before the bytes of the code |
//! | S2 | call: plain load of the word, jump to what it says | dependency | S1 | see below |
//! | S3 | read a word from Rust, to call what it says | C5 of the same | S1 | as S1 |
//! | S4 | read or write a counter from Rust | Relaxed | – | nothing: counts may be lost |
//!
//! *x86-64*: loads and stores keep their order, and instructions are fetched coherently: S1 and S2 are plain moves. *aarch64*: the
//! jump depends on the load, but instruction fetch and the loads of the new code do not wait for it; the caller may have
//! fetched ahead from the predicted address. Before S1, sealing the code has made every running thread pass a context
//! synchronisation (`fetch.rs`, a barrier in all threads). A caller whose load comes before that barrier reads an old word; one
//! whose load comes behind it has dropped whatever it fetched ahead, and sees the bytes. So S1 need only come behind sealing, which
//! Release says, and S2 needs nothing. A stub reads its cell, which was written before its address was given to anyone.
//!
//! Invariants: W1, a word holds the address of callable code of the function's signature from before its place is given out until
//! the place is given up; W2, a place is given up when no code names it; W3, a cell's record and trampoline do not change while the
//! place is taken; W4, a page of stubs is written before it becomes executable, and never again.
//!
//! Cost: 48 bytes for a function; a group is made with six system calls for 256 functions. A group without a taken place
//! is given back if another one has free places.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_instances::CodeWord;
use brolga_runtime::ThreadLayout;

use crate::code_memory::{CodeMemory, CodeMemoryError};
use crate::reservation::Parts;
use crate::space::Run;

const STUB_BYTES: usize = 16;
const WORD_BYTES: usize = 8;
const CELL_BYTES: usize = 24;

/// Offsets in a cell. The trampoline's is in the stubs, too.
const CELL_RECORD: usize = 0;
const CELL_TRAMPOLINE: usize = 8;
const CELL_COUNTER: usize = 16;

/// Slots of a group: as many as a small page has stubs.
const GROUP: usize = 4096 / STUB_BYTES;

/// All groups of an engine.
pub(crate) struct Slots {
    memory: CodeMemory,
    free: Mutex<Free>,
}

/// Groups that have free places, by address, and which these are.
type Free = BTreeMap<usize, (Arc<Group>, Vec<u32>)>;

struct Group {
    run: Run,
}

/// The memory of one function's slot, until it is dropped.
pub(crate) struct Place {
    slots: Arc<Slots>,
    group: Arc<Group>,
    index: usize,
}

impl Slots {
    pub(crate) fn new(memory: CodeMemory) -> Slots {
        Slots { memory, free: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        // Nothing panics between the steps of a change.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place whose word holds the address of its stub. Who drops it says that no code names it any more (W2).
    pub(crate) fn take(self: &Arc<Slots>) -> Result<Place, CodeMemoryError> {
        let mut free = self.lock();
        if free.is_empty() {
            let group = Arc::new(Group::new(&self.memory)?);
            free.insert(group.base(), (group, (0..GROUP as u32).rev().collect()));
        }
        // The first groups fill up, so that the last ones may become empty.
        let mut taken = None;
        if let Some(mut entry) = free.first_entry() {
            let (group, indices) = entry.get_mut();
            taken = indices.pop().map(|index| (group.clone(), index));
            if indices.is_empty() {
                entry.remove();
            }
        }
        drop(free);
        let Some((group, index)) = taken else {
            return Err(CodeMemoryError::Full { bytes: STUB_BYTES, free: 0, reserved: 0 });
        };
        let place = Place { slots: self.clone(), group, index: index as usize };
        place.set_counter(i32::MAX);
        place.set(place.stub());
        Ok(place)
    }
}

impl Group {
    fn new(memory: &CodeMemory) -> Result<Group, CodeMemoryError> {
        let writable = GROUP * (WORD_BYTES + CELL_BYTES);
        let run = memory.allocate(Parts { code: GROUP * STUB_BYTES, writable, ..Parts::default() })?;
        let group = Group { run };
        for index in 0..GROUP {
            let bytes = stub(group.cell(index).wrapping_sub(group.stub(index)));
            // SAFETY: the stub lies in the code part of a run that nobody else knows and that is not sealed.
            unsafe { group.pointer(group.stub(index)).copy_from_nonoverlapping(bytes.as_ptr(), STUB_BYTES) };
        }
        group.run.seal()?;
        Ok(group)
    }

    fn base(&self) -> usize {
        self.run.addresses().start
    }

    fn stub(&self, index: usize) -> usize {
        self.base() + index * STUB_BYTES
    }

    fn writable(&self) -> usize {
        self.base() + self.run.parts().code + self.run.parts().read_only
    }

    fn word(&self, index: usize) -> usize {
        self.writable() + index * WORD_BYTES
    }

    fn cell(&self, index: usize) -> usize {
        self.writable() + GROUP * WORD_BYTES + index * CELL_BYTES
    }

    /// A pointer to an address of this group.
    fn pointer(&self, address: usize) -> *mut u8 {
        self.run.base().as_ptr().wrapping_add(address - self.base())
    }
}

impl Place {
    /// The address of the word.
    pub(crate) fn word(&self) -> usize {
        self.group.word(self.index)
    }

    /// The address of the stub.
    pub(crate) fn stub(&self) -> usize {
        self.group.stub(self.index)
    }

    /// The address of the counter.
    pub(crate) fn counter_address(&self) -> usize {
        self.group.cell(self.index) + CELL_COUNTER
    }

    fn code_word(&self) -> &CodeWord {
        // SAFETY: the word is aligned, in memory that the group keeps, and only ever accessed as what it is, which is laid out
        // as an atomic word, or by compiled code in one move.
        unsafe { &*self.group.pointer(self.word()).cast::<CodeWord>() }
    }

    /// The address that calls go to.
    pub(crate) fn get(&self) -> usize {
        self.code_word().load() // S3
    }

    /// Lets calls go to other code, which is of the function's signature (W1) and sealed.
    pub(crate) fn set(&self, address: usize) {
        self.code_word().store(address); // S1
    }

    /// Lets the counter go below zero after as many entries.
    pub(crate) fn set_counter(&self, entries: i32) {
        self.counter().store(entries, Ordering::Relaxed); // S4
    }

    fn counter(&self) -> &AtomicI32 {
        // SAFETY: as `code_word`, with an atomic counter.
        unsafe { AtomicI32::from_ptr(self.group.pointer(self.counter_address()).cast()) }
    }

    /// Says what the stub stands for. Before anyone knows the place (W3).
    pub(crate) fn set_cell(&mut self, record: usize, trampoline: usize) {
        let cell = self.group.cell(self.index);
        for (offset, value) in [(CELL_RECORD, record), (CELL_TRAMPOLINE, trampoline)] {
            // SAFETY: the cell is this place's, which nobody else knows.
            unsafe { self.group.pointer(cell + offset).cast::<usize>().write(value) };
        }
    }
}

/// The record that a cell belongs to.
///
/// # Safety
///
/// The address is that of a cell whose place is taken, as stubs leave it in the thread.
pub(crate) unsafe fn record_of_cell(cell: usize) -> usize {
    // SAFETY: by the contract; W3.
    unsafe { std::ptr::with_exposed_provenance::<usize>(cell + CELL_RECORD).read() }
}

/// The record whose counter is at an address.
///
/// # Safety
///
/// The address is that of the counter in a cell whose place is taken, as compiled code passes it.
pub(crate) unsafe fn record_of_counter(counter: usize) -> usize {
    // SAFETY: by the contract.
    unsafe { record_of_cell(counter - CELL_COUNTER) }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut free = self.slots.lock();
        let base = self.group.base();
        let (_, indices) = free.entry(base).or_insert_with(|| (self.group.clone(), Vec::new()));
        indices.push(self.index as u32);
        if indices.len() == GROUP && free.len() > 1 {
            free.remove(&base);
        }
    }
}

#[cfg(target_arch = "aarch64")]
use stub_aarch64 as stub;
#[cfg(target_arch = "x86_64")]
use stub_x86_64 as stub;

/// The code of a stub that is `distance` bytes in front of its cell.
#[cfg(any(test, target_arch = "x86_64"))]
fn stub_x86_64(distance: usize) -> [u8; STUB_BYTES] {
    const LEA_BYTES: usize = 7;
    const { assert!(ThreadLayout::LAZY < 128 && CELL_TRAMPOLINE < 128) };
    let [d0, d1, d2, d3] = ((distance - LEA_BYTES) as u32).to_le_bytes();
    let (lazy, trampoline) = (ThreadLayout::LAZY as u8, CELL_TRAMPOLINE as u8);
    [
        // lea r11, [rip + distance]: r11 carries no argument and belongs to nobody.
        0x4c, 0x8d, 0x1d, d0, d1, d2, d3, //
        // mov [r15 + lazy], r11
        0x4d, 0x89, 0x5f, lazy, //
        // jmp [r11 + trampoline]
        0x41, 0xff, 0x63, trampoline, //
        // int3
        0xcc,
    ]
}

/// The code of a stub that is `distance` bytes in front of its cell.
#[cfg(any(test, target_arch = "aarch64"))]
fn stub_aarch64(distance: usize) -> [u8; STUB_BYTES] {
    const { assert!(ThreadLayout::LAZY < 1 << 15 && CELL_TRAMPOLINE.is_multiple_of(8)) };
    let distance = distance as u32;
    let (lazy, trampoline) = (ThreadLayout::LAZY as u32 / 8, CELL_TRAMPOLINE as u32 / 8);
    let words: [u32; 4] = [
        // adr x16, cell: x16 and x17 carry no argument and belong to nobody.
        0x1000_0010 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5,
        // str x16, [x21, lazy]
        0xf900_02b0 | lazy << 10,
        // ldr x17, [x16, trampoline]
        0xf940_0211 | trampoline << 10,
        // br x17
        0xd61f_0220,
    ];
    let mut bytes = [0; STUB_BYTES];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_memory::CodeMemoryOptions;

    fn slots() -> Arc<Slots> {
        Arc::new(Slots::new(
            CodeMemory::new(CodeMemoryOptions { reserve: 1 << 20, ..CodeMemoryOptions::default() }).unwrap(),
        ))
    }

    #[test]
    fn places_do_not_overlap_and_their_memory_is_used_again() {
        let slots = slots();
        let places: Vec<Place> = (0..3 * GROUP).map(|_| slots.take().unwrap()).collect();
        let in_use = slots.memory.stats().in_use;
        let mut spans: Vec<(usize, usize)> = places
            .iter()
            .flat_map(|place| {
                let cell = place.group.cell(place.index);
                [(place.stub(), STUB_BYTES), (place.word(), WORD_BYTES), (cell, CELL_BYTES)]
            })
            .collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(places.iter().all(|place| place.get() == place.stub()), "W1");
        drop(places);
        assert!(slots.memory.stats().in_use < in_use / 2, "empty groups go");
        let again: Vec<Place> = (0..3 * GROUP).map(|_| slots.take().unwrap()).collect();
        assert_eq!(slots.memory.stats().in_use, in_use);
        drop(again);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let slots = slots();
        let mut taken = Vec::new();
        let error = loop {
            match slots.take() {
                Ok(place) => taken.push(place),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, CodeMemoryError::Full { .. }), "{error}");
        taken.pop();
        assert!(slots.take().is_ok(), "a place that was given up is there");
    }

    #[test]
    fn a_stub_is_what_an_assembler_makes_of_it() {
        let lazy = ThreadLayout::LAZY as u8;
        let expected =
            [0x4c, 0x8d, 0x1d, 0xf9, 0x0f, 0, 0, 0x4d, 0x89, 0x5f, lazy, 0x41, 0xff, 0x63, 8, 0xcc];
        assert_eq!(stub_x86_64(0x1000), expected);
        assert_eq!(ThreadLayout::LAZY, 24, "as in the second word");
        for (distance, adr) in [(0x1000, 0x1000_8010u32), (0x1803, 0x7000_c010)] {
            let expected = [adr, 0xf900_0eb0, 0xf940_0611, 0xd61f_0220].map(u32::to_le_bytes);
            assert_eq!(stub_aarch64(distance), expected.as_flattened());
        }
    }
}
