//! The bytes of an entry: writing and reading.
//!
//! ```text
//!   magic (8) │ seal (32) │ cost of making it, in microseconds (8) │ payload
//!                  │
//!                  └─ keyed hash of the name and of everything after the seal
//! ```
//!
//! The seal covers the name, so an entry that was copied to another name does not open. Seals are compared in
//! constant time.

use blake3::Hash;

use crate::store::EntryName;

/// The first bytes of an entry in this format.
const MAGIC: [u8; 8] = *b"BRLGENT1";
const SEAL: usize = MAGIC.len();
const COST: usize = SEAL + 32;
/// The number of bytes that precede the payload.
pub(crate) const HEADER: usize = COST + 8;

/// The contents of an entry.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    /// The time that it took to make, in microseconds.
    pub(crate) cost: u64,
    pub(crate) payload: Vec<u8>,
}

/// Seals entries with one key.
pub(crate) struct Sealer {
    key: [u8; 32],
}

impl Sealer {
    pub(crate) fn new(key: [u8; 32]) -> Sealer {
        Sealer { key }
    }

    fn seal_of(&self, name: &EntryName, sealed: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes()).update(sealed);
        hasher.finalize()
    }

    pub(crate) fn seal(&self, name: &EntryName, cost: u64, payload: &[u8]) -> Vec<u8> {
        let mut entry = Vec::with_capacity(HEADER + payload.len());
        entry.extend(MAGIC);
        entry.extend([0; 32]);
        entry.extend(cost.to_le_bytes());
        entry.extend_from_slice(payload);
        let seal = self.seal_of(name, &entry[COST..]);
        entry[SEAL..COST].copy_from_slice(seal.as_bytes());
        entry
    }

    /// `None` unless the entry is unchanged since it was sealed under this name with this key.
    pub(crate) fn open(&self, name: &EntryName, mut entry: Vec<u8>) -> Option<Opened> {
        if entry.get(..SEAL)? != MAGIC {
            return None;
        }
        let seal: [u8; 32] = entry.get(SEAL..COST)?.try_into().ok()?;
        let cost = u64::from_le_bytes(entry.get(COST..HEADER)?.try_into().ok()?);
        // `Hash` compares in constant time.
        if self.seal_of(name, &entry[COST..]) != Hash::from_bytes(seal) {
            return None;
        }
        entry.drain(..HEADER);
        Some(Opened { cost, payload: entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_an_entry_does_not_open() {
        let (sealer, name) = (Sealer::new([7; 32]), EntryName::new([1; 32]));
        let entry = sealer.seal(&name, 1234, b"machine code");
        let opened = sealer.open(&name, entry.clone()).unwrap();
        assert_eq!((opened.cost, &*opened.payload), (1234, &b"machine code"[..]));
        for at in 0..entry.len() {
            for bit in 0..8 {
                let mut flipped = entry.clone();
                flipped[at] ^= 1 << bit;
                assert_eq!(sealer.open(&name, flipped), None, "bit {bit} of byte {at}");
            }
            assert_eq!(sealer.open(&name, entry[..at].to_vec()), None, "cut at {at}");
        }
        let longer = [entry.as_slice(), &[0]].concat();
        assert_eq!(sealer.open(&name, longer), None);
        assert_eq!(sealer.open(&EntryName::new([2; 32]), entry.clone()), None, "under another name");
        assert_eq!(Sealer::new([8; 32]).open(&name, entry), None, "with another key");
    }
}
