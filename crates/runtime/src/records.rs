//! Permanent records: the run-time form of symbols, modules and string constants.
//!
//! ```text
//!                -16 the hash of a symbol (`objectid`), which a table of symbols asks for at each look-up; 0 for the others
//!                -8  tag: the type and the permanent bit
//!   address ──►  +0  length in bytes
//!                +8  the bytes, then a NUL that the length does not count
//! ```
//!
//! So a record has the layout of a heap object, but is outside the heap.
//!
//! A value of type `Symbol` is the address of its record; equal symbols have equal addresses, because each
//! runtime keeps one table of symbols, one of modules, by their names, and one of strings, and makes each
//! record once. The content may contain NUL bytes; C code sees the bytes up to the first.
//!
//! Records are not changed, moved or freed until the runtime is dropped. Compiled code and its values keep
//! the runtime alive.
//!
//! Cost: a look-up in a balanced tree under a lock, only at link time.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_ir::hashing;
use brolga_ir::meter::{Charge, Meter};

use crate::heap::{Object, ObjectKind, TAG_BYTES, TAG_PERMANENT};

/// Bytes before the content.
const HEADER: usize = 8;
/// Bytes before the record's address: the hash and the tag.
const BEFORE: usize = 16;

/// The address of a record, as passed by compiled code to a routine.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Record(NonNull<u8>);

impl Record {
    fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: R1, a `Record` is the address of a record that `Owned::new` made and filled: a length followed by that
        // many initialised bytes, never written again. Its table outlives every use (module header), so the
        // lifetime, which callers bind to their own borrow, does not exceed it.
        unsafe {
            let length = self.0.cast::<u64>().read() as usize;
            std::slice::from_raw_parts(self.0.add(HEADER).as_ptr(), length)
        }
    }
}

/// A value of type `Symbol` in compiled code.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct SymbolRef(Record);

/// A constant of type `String` in compiled code.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct StringRef(Record);

impl SymbolRef {
    /// The address held by compiled code.
    pub fn address(self) -> usize {
        self.0.0.as_ptr().expose_provenance()
    }

    /// The record as an object.
    pub(crate) fn object(self) -> Object {
        // SAFETY: a record is a permanent object (module header), which lives as long as its heap.
        unsafe { Object::from_pointer(self.0.0) }
    }

    /// The record of an object, if it is a symbol.
    pub(crate) fn of(object: Object) -> Option<SymbolRef> {
        matches!(object.desc().kind(), ObjectKind::Symbol).then(|| SymbolRef(Record(object.pointer())))
    }

    /// `objectid` of the symbol.
    pub(crate) fn id(self) -> u64 {
        // SAFETY: `Owned::new` wrote it before the record (R1), and it is never written again.
        unsafe { self.0.0.sub(BEFORE).cast::<u64>().read() }
    }

    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(self.0.bytes()).into_owned()
    }
}

impl StringRef {
    /// The record of an object, if it is a string constant.
    pub(crate) fn of(object: Object) -> Option<StringRef> {
        // Permanent strings are records (module header).
        let constant =
            object.tag() & TAG_PERMANENT != 0 && matches!(object.desc().kind(), ObjectKind::String);
        constant.then(|| StringRef(Record(object.pointer())))
    }

    /// The address held by compiled code.
    pub fn address(self) -> usize {
        self.0.0.as_ptr().expose_provenance()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// A record with its memory.
struct Owned(Record);

// SAFETY: a record is read-only memory that belongs only to its `Owned`; neither reading nor freeing it
// depends on the thread.
unsafe impl Send for Owned {}

impl Owned {
    fn layout(length: usize) -> Option<Layout> {
        Layout::from_size_align(length.checked_add(BEFORE + HEADER + 1)?, HEADER).ok()
    }

    /// `None` if the content is longer than any possible allocation.
    fn new(tag: u64, hash: u64, content: &[u8]) -> Option<Owned> {
        let layout = Owned::layout(content.len())?;
        // SAFETY: the layout is not empty: it has the header and the NUL.
        let block = unsafe { alloc(layout) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(layout) };
        // SAFETY: the block is new, aligned for the words, and has room for hash, tag, header, content and NUL by `layout`. This
        // establishes R1.
        unsafe {
            block.cast::<u64>().write(hash);
            block.add(BEFORE - TAG_BYTES).cast::<u64>().write(tag);
            let record = block.add(BEFORE);
            record.cast::<u64>().write(content.len() as u64);
            record.add(HEADER).copy_from_nonoverlapping(NonNull::from(content).cast(), content.len());
            record.add(HEADER + content.len()).write(0);
            Some(Owned(Record(record)))
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(layout) = Owned::layout(self.0.bytes().len()) {
            // SAFETY: `new` allocated the block, which starts with the hash, with this same layout; nothing else frees it.
            unsafe { dealloc(self.0.0.sub(BEFORE).as_ptr(), layout) }
        }
    }
}

impl Borrow<[u8]> for Owned {
    fn borrow(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Ord for Owned {
    fn cmp(&self, other: &Owned) -> Ordering {
        self.0.bytes().cmp(other.0.bytes())
    }
}

impl PartialOrd for Owned {
    fn partial_cmp(&self, other: &Owned) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Owned {
    fn eq(&self, other: &Owned) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Owned {}

/// A table with one record for each content.
pub(crate) struct Records {
    tag: u64,
    by_content: Mutex<BTreeSet<Owned>>,
    charge: Charge,
}

/// The approximate size of a record besides its content: its header and its entry in the set.
const RECORD: usize = 64;

impl Records {
    /// A table whose records have this tag and are charged to a meter.
    pub(crate) fn new(tag: u64, meter: &Arc<Meter>) -> Records {
        Records { tag, by_content: Mutex::default(), charge: Charge::new(meter, 0) }
    }

    pub(crate) fn symbol(&self, name: &str) -> SymbolRef {
        SymbolRef(self.intern(name.as_bytes(), hashing::symbol_id))
    }

    pub(crate) fn string(&self, content: &[u8]) -> StringRef {
        StringRef(self.intern(content, |_| 0))
    }

    /// The symbol with this name, if there is one.
    pub(crate) fn known_symbol(&self, name: &str) -> Option<SymbolRef> {
        let set = self.by_content.lock().unwrap_or_else(PoisonError::into_inner);
        set.get(name.as_bytes()).map(|owned| SymbolRef(owned.0))
    }

    /// The content of the record at an address; `None` if there is no record.
    pub(crate) fn content(&self, address: usize) -> Option<Vec<u8>> {
        let set = self.by_content.lock().unwrap_or_else(PoisonError::into_inner);
        let found = set.iter().find(|owned| owned.0.0.addr().get() == address);
        found.map(|owned| owned.0.bytes().to_vec())
    }

    fn intern(&self, content: &[u8], hash: fn(&[u8]) -> u64) -> Record {
        // A panic under this lock cannot leave the set half changed.
        let mut set = self.by_content.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = set.get(content) {
            return known.0;
        }
        // `content` exists in memory, so a record that is some bytes longer has a valid layout.
        let owned = Owned::new(self.tag, hash(content), content);
        let owned = owned.unwrap_or_else(|| handle_alloc_error(Layout::new::<u64>()));
        let record = owned.0;
        set.insert(owned);
        self.charge.grow(RECORD + content.len());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_contents_have_one_address_and_keep_it() {
        let records = Records::new(0, &Arc::default());
        let a = records.symbol("alpha").address();
        for i in 0..100 {
            records.symbol(&format!("s{i}"));
        }
        assert_eq!(records.symbol("alpha").address(), a);
        assert_eq!(records.symbol("alpha").id(), hashing::symbol_id(b"alpha"));
        assert_ne!(records.symbol("beta").address(), a);
        assert_eq!(records.content(a).as_deref(), Some(&b"alpha"[..]));
        assert_eq!(records.content(a + 1), None);
    }

    #[test]
    fn content_is_counted_and_ends_in_a_nul() {
        let records = Records::new(0, &Arc::default());
        let text = records.string("a\0θ".as_bytes());
        assert_eq!(text.bytes(), "a\0θ".as_bytes());
        // SAFETY: the record has a NUL after its content.
        let end = unsafe { text.0.0.add(HEADER + text.bytes().len()).read() };
        assert_eq!(end, 0);
        assert_eq!(records.string(b"").bytes(), b"");
    }
}
