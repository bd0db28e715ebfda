//! The facts that an entry depends on, as one number.
//!
//! Texts and lists are hashed with their lengths, so that different lists of facts are never hashed as the
//! same bytes.

use std::fmt;

/// Collects the facts that an entry depends on.
#[derive(Clone)]
pub struct Digest(blake3::Hasher);

/// The facts as one number: different lists of facts have different numbers, except for collisions that are
/// infeasible to compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Digest {
    /// A digest without facts. The purpose separates digests of different kinds.
    pub fn new(purpose: &str) -> Digest {
        let mut digest = Digest(blake3::Hasher::new());
        digest.text(purpose);
        digest
    }

    /// Adds a number.
    pub fn word(&mut self, word: u64) {
        self.0.update(&word.to_le_bytes());
    }

    /// Adds bytes, with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Adds a text, with its length.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Adds facts that were collected earlier.
    pub fn facts(&mut self, facts: &Fingerprint) {
        self.0.update(&facts.0);
    }

    /// The fingerprint of all facts so far.
    pub fn finish(&self) -> Fingerprint {
        Fingerprint(*self.0.finalize().as_bytes())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finish().fmt(f)
    }
}

impl Fingerprint {
    /// A fingerprint that was written down.
    pub fn of_bytes(bytes: [u8; 32]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// The fingerprint's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_between_facts_are_facts() {
        let of = |texts: &[&str]| {
            let mut digest = Digest::new("test");
            texts.iter().for_each(|text| digest.text(text));
            digest.finish()
        };
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["abc"]), of(&["abc", ""]));
        assert_ne!(Digest::new("test").finish(), Digest::new("tests").finish());
    }
}
