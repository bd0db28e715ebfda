//! Numbers and texts as bytes, in both directions.

use super::{BinaryError, Refusal};

/// Bytes being written.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) bytes: Vec<u8>,
}

impl Sink {
    pub(super) fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// An unsigned number in groups of seven bits, lowest first.
    pub(super) fn number(&mut self, value: u64) {
        self.wide(u128::from(value));
    }

    pub(super) fn wide(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    /// A signed number: 0, -1, 1, -2, … are 0, 1, 2, 3, …
    pub(super) fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(super) fn block(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend(bytes);
    }
}

/// The index of an item in the list of its kind, for [`Source::choice`]. An item in no list gets a number
/// that is refused.
pub(super) fn position<T: PartialEq>(all: &[T], wanted: &T) -> u8 {
    all.iter().position(|item| item == wanted).map_or(u8::MAX, |at| at as u8)
}

/// Bytes being read.
pub(super) struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the most recently read part begins.
    last: usize,
}

impl<'a> Source<'a> {
    /// The bytes of a range; offsets count in the whole.
    pub(super) fn within(bytes: &'a [u8], range: std::ops::Range<usize>) -> Self {
        Source { bytes: &bytes[..range.end], at: range.start, last: range.start }
    }

    /// Where the next part begins.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Refuses bytes after the end.
    pub(super) fn finish(&self) -> Result<(), BinaryError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(BinaryError { offset: self.at, refusal: Refusal::Trailing }),
        }
    }

    /// An error at the most recently read part.
    pub(super) fn refuse<T>(&self, refusal: Refusal) -> Result<T, BinaryError> {
        Err(BinaryError { offset: self.last, refusal })
    }

    pub(super) fn byte(&mut self) -> Result<u8, BinaryError> {
        self.last = self.at;
        self.next()
    }

    fn next(&mut self) -> Result<u8, BinaryError> {
        let Some(&byte) = self.bytes.get(self.at) else { return self.refuse(Refusal::Truncated) };
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn wide(&mut self) -> Result<u128, BinaryError> {
        self.last = self.at;
        let mut value = 0u128;
        let mut shift = 0;
        loop {
            let byte = self.next()?;
            let group = u128::from(byte & 0x7f);
            // The last group holds only two of the 128 bits.
            if shift > 126 || (shift == 126 && group > 3) {
                return self.refuse(Refusal::Number);
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, BinaryError> {
        let wide = self.wide()?;
        u64::try_from(wide).or_else(|_| self.refuse(Refusal::Number))
    }

    pub(super) fn small(&mut self) -> Result<u32, BinaryError> {
        let wide = self.wide()?;
        u32::try_from(wide).or_else(|_| self.refuse(Refusal::Number))
    }

    pub(super) fn signed(&mut self) -> Result<i64, BinaryError> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A truth value.
    pub(super) fn flag(&mut self) -> Result<bool, BinaryError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            tag => self.refuse(Refusal::Tag { what: "truth value", tag }),
        }
    }

    /// The number of parts that follow. Each takes at least one byte, so it cannot exceed the bytes that
    /// remain.
    pub(super) fn count(&mut self) -> Result<usize, BinaryError> {
        let count = self.number()?;
        if count > (self.bytes.len() - self.at) as u64 {
            return self.refuse(Refusal::Count { count });
        }
        Ok(count as usize)
    }

    pub(super) fn block(&mut self) -> Result<&'a [u8], BinaryError> {
        let length = self.count()?;
        let block = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(block)
    }

    /// A number below `count` that selects one of several alternatives.
    pub(super) fn index(&mut self, what: &'static str, count: usize) -> Result<usize, BinaryError> {
        let number = self.number()?;
        if number >= count as u64 {
            return self.refuse(Refusal::Reference { what, number });
        }
        Ok(number as usize)
    }

    /// An item of a list of kinds, by its position.
    pub(super) fn choice<T: Copy>(&mut self, what: &'static str, all: &[T]) -> Result<T, BinaryError> {
        let tag = self.byte()?;
        match all.get(usize::from(tag)) {
            Some(&choice) => Ok(choice),
            None => self.refuse(Refusal::Tag { what, tag }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut sink = Sink::default();
        let wides = [0, 1, 127, 128, u128::from(u64::MAX), u128::MAX, 1 << 126];
        let signed = [0, -1, 1, i64::MIN, i64::MAX, -64, 64];
        wides.iter().for_each(|&n| sink.wide(n));
        signed.iter().for_each(|&n| sink.signed(n));
        sink.block(b"abc");
        let mut source = Source::within(&sink.bytes, 0..sink.bytes.len());
        assert!(wides.iter().all(|&n| source.wide() == Ok(n)));
        assert!(signed.iter().all(|&n| source.signed() == Ok(n)));
        assert_eq!(source.block().unwrap(), b"abc");
        assert!(source.is_empty());
        assert_eq!(source.byte().unwrap_err().refusal, Refusal::Truncated);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let mut long = vec![0xff; 18];
        long.push(0x04);
        assert_eq!(Source::within(&long, 0..long.len()).wide().unwrap_err().refusal, Refusal::Number);
        let endless = [0x80; 40];
        assert_eq!(Source::within(&endless, 0..endless.len()).wide().unwrap_err().refusal, Refusal::Number);
        let count = [0x90, 0x4e, 0];
        let error = Source::within(&count, 0..count.len()).count().unwrap_err();
        assert_eq!(error, BinaryError { offset: 0, refusal: Refusal::Count { count: 10_000 } });
    }
}
