//! Memory of indirect cells: for each function a word that leads to its code, a stub, and the stub's data.
//!
//! ```text
//!   group     ┌───────────────────────┐  one page, executable, constant bytes
//!   of cells  │ stub 0, stub 1, …     │      stub:  r = data;  thread.lazy = r;  jump to data.trampoline
//!             ├───────────────────────┤  pages that are written
//!             │ word 0, word 1, …     │      address of code with the function's signature; at first the stub's
//!             │ data 0, data 1, …     │      record, trampoline, counter
//!             └───────────────────────┘
//! ```
//!
//! Groups are in the reservation of code, so that code names a word by its distance. Words are adjacent, because
//! calls read them; only first calls read the data of a stub. World selectors are in their own groups (`select.rs`).
//!
//! **Orderings.** A word is written by one thread at a time (its record's lock) and read by compiled code at any time.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | S1 | write a word | C1 of `brolga_instances::invoke` | S2 | on aarch64 a caller finds the address before the bytes of the code |
//! | S2 | call: plain load of the word, jump to its content | dependency | S1 | see below |
//! | S3 | read a word from Rust, to call its target | C2 of the same | S1 | as S1 |
//! | S4 | read or write a counter from Rust | Relaxed | – | nothing: counts may be lost |
//!
//! *x86-64*: loads and stores keep their order, and instructions are fetched coherently: S1 and S2 are plain moves. *aarch64*: the
//! jump depends on the load, but instruction fetch and the loads of the new code do not wait for it; the caller may have
//! fetched ahead from the predicted address. Before S1, sealing the code has made every running thread pass a context
//! synchronisation (`fetch.rs`, a barrier in all threads). A caller whose load comes before that barrier reads an old word; one
//! whose load comes after it has dropped its prefetched instructions, and sees the bytes. So S1 only has to come after sealing, which
//! Release ensures, and S2 needs nothing. A stub reads its data, which was written before its address was published.
//!
//! Invariants: W1, a word holds the address of callable code of the function's signature from before its place is taken until
//! the place is returned; W2, a place is returned when no code names it; W3, the record and the trampoline of a stub do not change while the
//! place is taken; W4, a page of stubs is written before it becomes executable, and never again.
//!
//! Cost: 48 bytes for a function; a group is made with six system calls for 256 functions. A group without a taken place
//! is returned if another one has free places.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_instances::InvokePointer;
use brolga_runtime::ThreadLayout;

use crate::memory::code_memory::CodeMemory;
use crate::memory::error::CodeMemoryError;
use crate::memory::reservation::Parts;
use crate::memory::space::Run;

/// Bytes of stubs in a group: a small page.
const PAGE: usize = 4096;

/// The layout of the places of a group: constant code, and data that the code reads.
pub(crate) trait Layout {
    /// Bytes of code of each place.
    const CODE: usize;
    /// Bytes of the word before all data, which callers name; 0 if there is none.
    const WORD: usize;
    /// Bytes of data of each place.
    const DATA: usize;

    /// The code of a place that is `distance` bytes before its data.
    fn code(distance: usize) -> Vec<u8>;
}

/// All groups of one layout in an engine.
pub(crate) struct Groups<L> {
    memory: CodeMemory,
    free: Mutex<Free<L>>,
}

/// Groups with free places, by address, and these places.
type Free<L> = BTreeMap<usize, (Arc<Group<L>>, Vec<u32>)>;

struct Group<L> {
    run: Run,
    layout: std::marker::PhantomData<fn() -> L>,
}

/// The memory of one place, until it is dropped.
pub(super) struct Taken<L: Layout> {
    groups: Arc<Groups<L>>,
    group: Arc<Group<L>>,
    index: usize,
}

impl<L: Layout> Groups<L> {
    pub(crate) fn new(memory: CodeMemory) -> Groups<L> {
        Groups { memory, free: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Free<L>> {
        // Nothing panics between the steps of a change.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An unshared place. Dropping it asserts that no code reaches it any more (W2).
    pub(super) fn take(self: &Arc<Groups<L>>) -> Result<Taken<L>, CodeMemoryError> {
        let mut free = self.lock();
        if free.is_empty() {
            let group = Arc::new(Group::new(&self.memory)?);
            free.insert(group.base(), (group, (0..Group::<L>::COUNT as u32).rev().collect()));
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
            return Err(CodeMemoryError::Full { bytes: L::CODE, free: 0, reserved: 0 });
        };
        Ok(Taken { groups: self.clone(), group, index: index as usize })
    }
}

impl<L: Layout> Group<L> {
    /// The number of places whose code fits in a small page.
    const COUNT: usize = PAGE / L::CODE;

    fn new(memory: &CodeMemory) -> Result<Group<L>, CodeMemoryError> {
        let writable = Self::COUNT * (L::WORD + L::DATA);
        let run = memory.allocate(Parts { code: Self::COUNT * L::CODE, writable, ..Parts::default() })?;
        let group = Group { run, layout: std::marker::PhantomData };
        for index in 0..Self::COUNT {
            let code = group.code(index);
            let bytes = L::code(group.data(index).wrapping_sub(code));
            let length = bytes.len().min(L::CODE);
            // SAFETY: the place's code is in the code part of a private run that is not sealed, and its code is no longer
            // than the place.
            unsafe { group.pointer(code).copy_from_nonoverlapping(bytes.as_ptr(), length) };
        }
        group.run.seal()?;
        Ok(group)
    }

    fn base(&self) -> usize {
        self.run.addresses().start
    }

    fn code(&self, index: usize) -> usize {
        self.base() + index * L::CODE
    }

    fn writable(&self) -> usize {
        self.base() + self.run.parts().code + self.run.parts().read_only
    }

    fn word(&self, index: usize) -> usize {
        self.writable() + index * L::WORD
    }

    fn data(&self, index: usize) -> usize {
        self.writable() + Self::COUNT * L::WORD + index * L::DATA
    }

    /// A pointer to an address of this group.
    fn pointer(&self, address: usize) -> *mut u8 {
        self.run.base().as_ptr().wrapping_add(address - self.base())
    }
}

impl<L: Layout> Taken<L> {
    /// The address of the code.
    pub(super) fn code(&self) -> usize {
        self.group.code(self.index)
    }

    /// The address of the data.
    pub(super) fn data(&self) -> usize {
        self.group.data(self.index)
    }

    /// A pointer to an address of the place's word or data.
    pub(super) fn pointer(&self, address: usize) -> *mut u8 {
        self.group.pointer(address)
    }

    fn word(&self) -> usize {
        self.group.word(self.index)
    }
}

impl<L: Layout> Drop for Taken<L> {
    fn drop(&mut self) {
        let mut free = self.groups.lock();
        let base = self.group.base();
        let (_, indices) = free.entry(base).or_insert_with(|| (self.group.clone(), Vec::new()));
        indices.push(self.index as u32);
        if indices.len() == Group::<L>::COUNT && free.len() > 1 {
            free.remove(&base);
        }
    }
}

/// The layout of cells: a stub, a word, and the stub's data.
pub(crate) enum StubLayout {}

/// Memory of all cells of an engine.
pub(crate) type Places = Groups<StubLayout>;

/// Offsets in the data of a stub. The trampoline's is in the stubs, too.
const DATA_RECORD: usize = 0;
const DATA_TRAMPOLINE: usize = 8;
const DATA_COUNTER: usize = 16;

impl Layout for StubLayout {
    const CODE: usize = 16;
    const WORD: usize = 8;
    const DATA: usize = 24;

    fn code(distance: usize) -> Vec<u8> {
        stub(distance).to_vec()
    }
}

/// The memory of one function's cell, until it is dropped.
pub(crate) struct Place(Taken<StubLayout>);

impl Place {
    /// A place whose word holds the address of its stub. Dropping it asserts that no code names it any more (W2).
    pub(crate) fn take(places: &Arc<Places>) -> Result<Place, CodeMemoryError> {
        let place = Place(places.take()?);
        place.set_counter(i32::MAX);
        place.set(place.stub());
        Ok(place)
    }

    /// The address of the word.
    pub(crate) fn word(&self) -> usize {
        self.0.word()
    }

    /// The address of the stub.
    pub(crate) fn stub(&self) -> usize {
        self.0.code()
    }

    /// The address of the counter.
    pub(crate) fn counter_address(&self) -> usize {
        self.0.data() + DATA_COUNTER
    }

    /// The word.
    pub(super) fn invoke_pointer(&self) -> &InvokePointer {
        // SAFETY: the word is aligned, in memory that the group keeps, and accessed only as an atomic word
        // or by one move of compiled code.
        unsafe { &*self.0.pointer(self.word()).cast::<InvokePointer>() }
    }

    /// The address that calls go to.
    pub(crate) fn get(&self) -> usize {
        self.invoke_pointer().load() // S3
    }

    /// Directs calls to other code, which has the function's signature (W1) and is sealed.
    pub(crate) fn set(&self, address: usize) {
        self.invoke_pointer().store(address); // S1
    }

    /// Sets the number of entries after which the counter is below zero.
    pub(crate) fn set_counter(&self, entries: i32) {
        self.counter().store(entries, Ordering::Relaxed); // S4
    }

    /// The number of entries until the counter is below zero.
    pub(crate) fn count(&self) -> i32 {
        self.counter().load(Ordering::Relaxed) // S4
    }

    fn counter(&self) -> &AtomicI32 {
        // SAFETY: as `invoke_pointer`, with an atomic counter.
        unsafe { AtomicI32::from_ptr(self.0.pointer(self.counter_address()).cast()) }
    }

    /// Sets the data of the stub, before the place is shared (W3).
    pub(crate) fn set_data(&mut self, record: usize, trampoline: usize) {
        let data = self.0.data();
        for (offset, value) in [(DATA_RECORD, record), (DATA_TRAMPOLINE, trampoline)] {
            // SAFETY: the data is this place's, which is not shared yet.
            unsafe { self.0.pointer(data + offset).cast::<usize>().write(value) };
        }
    }
}

/// The record that the data of a stub belongs to.
///
/// # Safety
///
/// The address is the data of a stub whose place is taken, as stubs leave it in the thread.
pub(crate) unsafe fn record_of_data(data: usize) -> usize {
    // SAFETY: by the contract; W3.
    unsafe { std::ptr::with_exposed_provenance::<usize>(data + DATA_RECORD).read() }
}

/// The record whose counter is at an address.
///
/// # Safety
///
/// The address is the counter of a cell whose place is taken, as compiled code passes it.
pub(crate) unsafe fn record_of_counter(counter: usize) -> usize {
    // SAFETY: by the contract.
    unsafe { record_of_data(counter - DATA_COUNTER) }
}

const STUB_BYTES: usize = StubLayout::CODE;

#[cfg(target_arch = "aarch64")]
use stub_aarch64 as stub;
#[cfg(target_arch = "x86_64")]
use stub_x86_64 as stub;

/// The code of a stub that is `distance` bytes before its data.
#[cfg(any(test, target_arch = "x86_64"))]
fn stub_x86_64(distance: usize) -> [u8; STUB_BYTES] {
    const LEA_BYTES: usize = 7;
    const { assert!(ThreadLayout::LAZY < 128 && DATA_TRAMPOLINE < 128) };
    let [d0, d1, d2, d3] = ((distance - LEA_BYTES) as u32).to_le_bytes();
    let (lazy, trampoline) = (ThreadLayout::LAZY as u8, DATA_TRAMPOLINE as u8);
    [
        // lea r11, [rip + distance]: r11 carries no argument and is free.
        0x4c, 0x8d, 0x1d, d0, d1, d2, d3, //
        // mov [r15 + lazy], r11
        0x4d, 0x89, 0x5f, lazy, //
        // jmp [r11 + trampoline]
        0x41, 0xff, 0x63, trampoline, //
        // int3
        0xcc,
    ]
}

/// The code of a stub that is `distance` bytes before its data.
#[cfg(any(test, target_arch = "aarch64"))]
fn stub_aarch64(distance: usize) -> [u8; STUB_BYTES] {
    const { assert!(ThreadLayout::LAZY < 1 << 15 && DATA_TRAMPOLINE.is_multiple_of(8)) };
    let distance = distance as u32;
    let (lazy, trampoline) = (ThreadLayout::LAZY as u32 / 8, DATA_TRAMPOLINE as u32 / 8);
    let words: [u32; 4] = [
        // adr x16, data: x16 and x17 carry no argument and are free.
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
    use crate::memory::code_memory::CodeMemoryOptions;

    fn places() -> Arc<Places> {
        Arc::new(Places::new(
            CodeMemory::new(CodeMemoryOptions { reserve: 1 << 20, ..CodeMemoryOptions::default() }).unwrap(),
        ))
    }

    #[test]
    fn places_do_not_overlap_and_their_memory_is_used_again() {
        let all = places();
        let places: Vec<Place> = (0..3 * PAGE / STUB_BYTES).map(|_| Place::take(&all).unwrap()).collect();
        let in_use = all.memory.stats().in_use;
        let mut spans: Vec<(usize, usize)> = places
            .iter()
            .flat_map(|place| {
                [
                    (place.stub(), STUB_BYTES),
                    (place.word(), StubLayout::WORD),
                    (place.0.data(), StubLayout::DATA),
                ]
            })
            .collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(places.iter().all(|place| place.get() == place.stub()), "W1");
        drop(places);
        assert!(all.memory.stats().in_use < in_use / 2, "empty groups go");
        let again: Vec<Place> = (0..3 * PAGE / STUB_BYTES).map(|_| Place::take(&all).unwrap()).collect();
        assert_eq!(all.memory.stats().in_use, in_use);
        drop(again);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let all = places();
        let mut taken = Vec::new();
        let error = loop {
            match Place::take(&all) {
                Ok(place) => taken.push(place),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, CodeMemoryError::Full { .. }), "{error}");
        taken.pop();
        assert!(Place::take(&all).is_ok(), "a place that was returned is there");
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
