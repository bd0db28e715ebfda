//! The bytes of an entry: batches, each of which one process has added at once.
//!
//! ```text
//!   entry   batch │ batch │ …
//!   batch   magic (8) │ seal (32) │ bytes after this word (8) │ number of units (8) │ rows │ payloads
//!                          │        └────────────────────────┬──────────────────────────────┘
//!                          └─ keyed hash of the entry's name and of all that follows
//!   row     facts (32) │ cost of making it, in microseconds (8) │ bytes of its payload (8)
//! ```
//!
//! A seal covers the name, so a batch that was copied to another name does not open. Seals are compared in constant time. Batches are independent: whoever
//! writes to the store can leave some out or repeat them, and a unit is found by all that it depends on, so an old one is as good as a new one.
//!
//! Reading ends at the first batch that does not open: the borders after it are unknown. Later units of the same facts win.

use std::ops::Range;

use blake3::Hash;

use crate::digest::Fingerprint;
use crate::store::EntryName;

/// The first bytes of a batch in this format.
const MAGIC: [u8; 8] = *b"BRLGBAT2";
const SEAL: usize = MAGIC.len();
const LENGTH: usize = SEAL + 32;
const COUNT: usize = LENGTH + 8;
const ROWS: usize = COUNT + 8;
const ROW: usize = 32 + 8 + 8;

/// A unit to be written.
#[derive(Clone, Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) facts: Fingerprint,
    /// The time that it took to make, in microseconds.
    pub(crate) cost: u64,
    pub(crate) payload: &'a [u8],
}

/// A unit of an entry that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) facts: Fingerprint,
    pub(crate) cost: u64,
    /// The place of its payload in the entry.
    pub(crate) payload: Range<usize>,
}

/// The units of an entry.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct Opened {
    pub(crate) rows: Vec<Row>,
    pub(crate) batches: usize,
    /// Whether bytes are left that do not open.
    pub(crate) is_damaged: bool,
}

/// Seals batches with one key.
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

    /// A batch of these units.
    pub(crate) fn seal(&self, name: &EntryName, units: &[Unit<'_>]) -> Vec<u8> {
        let payloads: usize = units.iter().map(|unit| unit.payload.len()).sum();
        let size = ROWS + units.len() * ROW + payloads;
        let mut batch = Vec::with_capacity(size);
        batch.extend(MAGIC);
        batch.extend([0; 32]);
        batch.extend(((size - COUNT) as u64).to_le_bytes());
        batch.extend((units.len() as u64).to_le_bytes());
        for unit in units {
            batch.extend(unit.facts.as_bytes());
            batch.extend(unit.cost.to_le_bytes());
            batch.extend((unit.payload.len() as u64).to_le_bytes());
        }
        units.iter().for_each(|unit| batch.extend_from_slice(unit.payload));
        let seal = self.seal_of(name, &batch[LENGTH..]);
        batch[SEAL..LENGTH].copy_from_slice(seal.as_bytes());
        batch
    }

    /// The units of the batches that are unchanged since they were sealed under this name with this key.
    pub(crate) fn open(&self, name: &EntryName, entry: &[u8]) -> Opened {
        let mut opened = Opened::default();
        let mut at = 0;
        while at < entry.len() {
            let Some((rows, size)) = self.batch(name, &entry[at..]) else {
                opened.is_damaged = true;
                break;
            };
            opened.rows.extend(rows.into_iter().map(|row| {
                let payload = row.payload.start + at..row.payload.end + at;
                Row { payload, ..row }
            }));
            opened.batches += 1;
            at += size;
        }
        opened
    }

    /// The first batch, and its size.
    fn batch(&self, name: &EntryName, bytes: &[u8]) -> Option<(Vec<Row>, usize)> {
        if bytes.get(..SEAL)? != MAGIC {
            return None;
        }
        let seal: [u8; 32] = bytes.get(SEAL..LENGTH)?.try_into().ok()?;
        let size = usize::try_from(word(bytes, LENGTH)?).ok()?.checked_add(COUNT)?;
        let batch = bytes.get(..size)?;
        // `Hash` compares in constant time.
        if self.seal_of(name, &batch[LENGTH..]) != Hash::from_bytes(seal) {
            return None;
        }
        // Its writer has the key, so these are checked for mistakes alone.
        let count = usize::try_from(word(batch, COUNT)?).ok()?;
        let mut payload = ROWS.checked_add(count.checked_mul(ROW)?)?;
        let mut rows = Vec::with_capacity(count.min(batch.len() / ROW));
        for row in batch.get(ROWS..payload)?.chunks_exact(ROW) {
            let facts = Fingerprint::of_bytes(row.get(..32)?.try_into().ok()?);
            let end = payload.checked_add(usize::try_from(word(row, 40)?).ok()?)?;
            batch.get(payload..end)?;
            rows.push(Row { facts, cost: word(row, 32)?, payload: payload..end });
            payload = end;
        }
        Some((rows, size))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn facts(number: u64) -> Fingerprint {
        let mut digest = Digest::new("test");
        digest.word(number);
        digest.finish()
    }

    fn batch(sealer: &Sealer, name: &EntryName, numbers: Range<u64>) -> Vec<u8> {
        let payloads: Vec<(u64, Vec<u8>)> = numbers.map(|n| (n, vec![n as u8; n as usize])).collect();
        let unit = |(n, payload): &'_ (u64, Vec<u8>)| (facts(*n), *n, payload.clone());
        let units: Vec<_> = payloads.iter().map(unit).collect();
        let units: Vec<Unit<'_>> =
            units.iter().map(|(facts, cost, payload)| Unit { facts: *facts, cost: *cost, payload }).collect();
        sealer.seal(name, &units)
    }

    #[test]
    fn whatever_changes_a_batch_does_not_open() {
        let (sealer, name) = (Sealer::new([7; 32]), EntryName::new([1; 32]));
        let first = batch(&sealer, &name, 0..3);
        let opened = sealer.open(&name, &first);
        assert_eq!((opened.rows.len(), opened.batches, opened.is_damaged), (3, 1, false));
        assert_eq!(first[opened.rows[2].payload.clone()], [2, 2]);
        assert_eq!((opened.rows[1].facts, opened.rows[1].cost), (facts(1), 1));
        let refused = |name: &EntryName, sealer: &Sealer, bytes: &[u8]| {
            let opened = sealer.open(name, bytes);
            opened.rows.is_empty() && opened.is_damaged
        };
        for at in 0..first.len() {
            for bit in 0..8 {
                let mut flipped = first.clone();
                flipped[at] ^= 1 << bit;
                assert!(refused(&name, &sealer, &flipped), "bit {bit} of byte {at}");
            }
            assert!(at == 0 || refused(&name, &sealer, &first[..at]), "cut at {at}");
        }
        assert!(refused(&EntryName::new([2; 32]), &sealer, &first), "under another name");
        assert!(refused(&name, &Sealer::new([8; 32]), &first), "with another key");
        assert_eq!(sealer.open(&name, &[]), Opened::default());
    }

    #[test]
    fn batches_before_damage_open() {
        let (sealer, name) = (Sealer::new([7; 32]), EntryName::new([1; 32]));
        let (first, second) = (batch(&sealer, &name, 0..3), batch(&sealer, &name, 2..5));
        let both = [first.as_slice(), &second].concat();
        let opened = sealer.open(&name, &both);
        assert_eq!((opened.rows.len(), opened.batches, opened.is_damaged), (6, 2, false));
        assert_eq!(both[opened.rows[5].payload.clone()], [4; 4]);
        let torn = sealer.open(&name, &both[..both.len() - 1]);
        assert_eq!((torn.rows.len(), torn.batches, torn.is_damaged), (3, 1, true));
        let empty = batch(&sealer, &name, 0..0);
        assert_eq!(sealer.open(&name, &[empty.clone(), first].concat()).rows.len(), 3);
    }
}
