//! The hashes of Julia's run time: of bytes, symbols and values (`objectid`).
//!
//! They are observable: the iteration order of a `Dict` follows `memhash_seed`. So bytes and symbols have
//! Julia's hashes. Other values do not, because Julia's hashes depend on addresses and on type numbers; here
//! they are the same in interpreter and compiled code for everything that `===` compares by contents.
//!
//! ```text
//! bytes ──► MurmurHash3 ──► String, Symbol
//! type's name ──┐
//! bits, parts ──┴─► ObjectHash ──► numbers, immutable structs, tuples
//! ```
//!
//! Cost: linear in the bytes; at most [`MAX_PARTS`] parts of a nested value are hashed.

const SEED: u32 = 0xcafe_8881;
/// The seed with which `objectid` hashes strings.
pub const STRING_ID_SEED: u32 = 0xedc3_b677;
/// The number of parts of a value that [`ObjectHash`] hashes. Values that differ only in later parts have the
/// same hash.
pub const MAX_PARTS: usize = 256;

/// `memhash_seed(bytes, seed)`: the upper half of MurmurHash3 for 128 bits on 64-bit machines.
pub fn memhash_seed(bytes: &[u8], seed: u32) -> u64 {
    murmur3_x64_128(bytes, seed).1
}

/// `jl_crc32c(crc, bytes)`: extends the checksum `crc` of a prefix by the bytes, with Castagnoli's
/// polynomial.
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    const REVERSED: u32 = 0x82f6_3b78;
    let bit = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { REVERSED } else { 0 };
    !bytes.iter().fold(!crc, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc)))
}

/// `memhash32_seed(bytes, seed)`: MurmurHash3 for 32 bits.
pub fn memhash32_seed(bytes: &[u8], seed: u32) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut hash = seed;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for &block in blocks {
        hash ^= mix(u32::from_le_bytes(block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut block = [0; 4];
        block[..tail.len()].copy_from_slice(tail);
        hash ^= mix(u32::from_le_bytes(block));
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// `memhash(bytes)`.
pub fn memhash(bytes: &[u8]) -> u64 {
    memhash_seed(bytes, SEED)
}

/// `objectid` of a symbol with this name.
pub fn symbol_id(name: &[u8]) -> u64 {
    memhash(name) ^ (u64::MAX / 3 * 2)
}

/// `objectid` of a string.
pub fn string_id(bytes: &[u8]) -> u64 {
    memhash_seed(bytes, STRING_ID_SEED)
}

fn murmur3_x64_128(bytes: &[u8], seed: u32) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let halves = |block: [u8; 16]| {
        let block = u128::from_le_bytes(block);
        (block as u64, (block >> 64) as u64)
    };
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    let (blocks, tail) = bytes.as_chunks::<16>();
    for &block in blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // A zero half mixes to zero, so a short tail leaves the second word unchanged.
    let (low, high) = tail.split_at(tail.len().min(8));
    if !high.is_empty() {
        h2 ^= mix2(partial_word(high));
    }
    if !low.is_empty() {
        h1 ^= mix1(partial_word(low));
    }
    let length = bytes.len() as u64;
    (h1, h2) = (h1 ^ length, h2 ^ length);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish(h1), finish(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

/// At most eight bytes as a word whose other bytes are 0. They are read in overlapping words: a copy into a
/// buffer would stall on store forwarding, which costs more than all the rest of a short string's hash.
fn partial_word(bytes: &[u8]) -> u64 {
    let shifted = |word: u64, at: usize| word.checked_shl(8 * at as u32).unwrap_or(0);
    if let Some(&word) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(word);
    }
    if let (Some(&first), Some(&last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|word| u64::from(u32::from_le_bytes(word)));
        return first | shifted(last, bytes.len() - 4);
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |&byte| shifted(byte.into(), at));
    byte(0) | byte(1) | byte(2)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}

/// The hash of a value compared by contents: its parts in order, each with the name of its type.
#[derive(Clone, Debug)]
pub struct ObjectHash {
    state: u64,
    parts: usize,
}

impl Default for ObjectHash {
    fn default() -> ObjectHash {
        ObjectHash { state: u64::from(SEED), parts: 0 }
    }
}

impl ObjectHash {
    /// Whether it accepts more parts.
    pub fn takes_more(&self) -> bool {
        self.parts < MAX_PARTS
    }

    /// A part whose type alone counts: a struct before its fields, a singleton, an undefined field.
    pub fn shape(&mut self, type_name: &str) {
        self.word(memhash(type_name.as_bytes()));
    }

    /// Adds a number.
    pub fn number(&mut self, type_name: &str, bits: u128) {
        self.shape(type_name);
        self.word(bits as u64);
        self.word((bits >> 64) as u64);
    }

    /// A part with its own hash: a string, a symbol, an object with an identity.
    pub fn word(&mut self, word: u64) {
        self.parts += 1;
        self.state = finish(self.state.rotate_left(23) ^ word).wrapping_add(word);
    }

    pub fn value(&self) -> u64 {
        finish(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the reference implementation of MurmurHash3.
    #[test]
    fn checksums_are_those_of_castagnoli() {
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(crc32c(7, b""), 7);
    }

    #[test]
    fn hashes_of_bytes_are_those_of_the_reference() {
        assert_eq!(murmur3_x64_128(b"", 0), (0, 0));
        assert_eq!(murmur3_x64_128(b"hello", 0), (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19));
        let text = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(murmur3_x64_128(text, 0), (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347));
        assert_eq!(memhash32_seed(b"", 0), 0);
        assert_eq!(memhash32_seed(b"hello", 0), 0x248b_fa47);
        assert_eq!(memhash32_seed(text, 0), 0x2e4f_f723);
    }

    #[test]
    fn partial_words_are_those_of_a_buffer() {
        for length in 0..=8usize {
            let bytes: Vec<u8> = (0..length as u8).map(|n| 0xf1 - 29 * n).collect();
            let mut buffer = [0; 8];
            buffer[..length].copy_from_slice(&bytes);
            assert_eq!(partial_word(&bytes), u64::from_le_bytes(buffer), "{length} bytes");
        }
    }

    #[test]
    fn a_hash_takes_types_and_order_into_account() {
        let of = |numbers: &[(&str, u128)]| {
            let mut hash = ObjectHash::default();
            numbers.iter().for_each(|&(name, bits)| hash.number(name, bits));
            hash.value()
        };
        let all = [
            of(&[("Int64", 1)]),
            of(&[("Int32", 1)]),
            of(&[("Int64", 2)]),
            of(&[("Int64", 1), ("Int64", 2)]),
            of(&[("Int64", 2), ("Int64", 1)]),
            of(&[("Int128", 1 << 64)]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one), "{n}");
        }
    }
}
