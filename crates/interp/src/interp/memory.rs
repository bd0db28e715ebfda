//! Raw memory, the target of `Ptr` values.
//!
//! The interpreter accesses memory and C functions only through [`RawMemory`]. The run time implements it
//! with the memory of the process; [`SimMemory`] here is the safe default, a separate address space:
//!
//! ```text
//! 0x1_0000   allocation   gap   allocation   gap   …        addresses only grow and are never reused
//! ```
//!
//! Every access must be inside one live allocation. Between two allocations there is a gap that belongs to
//! neither, so overruns are detected, and freed memory is recorded as freed. Fresh memory is zeroed, so that
//! runs are repeatable; a program must not rely on it.
//!
//! Cost: a search in an ordered map for every access.

use brolga_ir::types::LowType;
use std::collections::BTreeMap;
use std::fmt;

/// Memory by address, and the C functions that work on it.
pub trait RawMemory {
    /// Fresh memory. A size of 0 also returns a distinct address.
    fn allocate(&mut self, size: u64, align: u64) -> Result<u64, MemoryError>;

    /// Frees memory returned by `allocate`.
    fn free(&mut self, address: u64) -> Result<(), MemoryError>;

    /// Reads bytes; the address must be a multiple of `align`.
    fn load(&mut self, address: u64, align: u64, out: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes bytes; the address must be a multiple of `align`.
    fn store(&mut self, address: u64, align: u64, bytes: &[u8]) -> Result<(), MemoryError>;

    /// Copies bytes, which may overlap.
    fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), MemoryError>;

    /// Whether there is a C function with this name.
    fn has(&self, name: &str) -> bool;

    /// Calls a C function.
    fn call(&mut self, call: &ForeignCall<'_>) -> Result<u128, MemoryError>;
}

/// A call of a C function by name.
#[derive(Clone, Copy, Debug)]
pub struct ForeignCall<'a> {
    /// The function.
    pub name: &'a str,
    /// The arguments: the form in which C receives each, and its bits.
    pub args: &'a [(LowType, u128)],
    /// The number of arguments before `...` in the function's declaration.
    pub variadic_after: Option<u32>,
    /// The form of the result; `None` for `void`.
    pub result: Option<LowType>,
}

/// Errors of memory or of a C function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryError {
    /// The bytes are not inside one live allocation.
    OutOfBounds {
        /// The first byte.
        address: u64,
        size: u64,
    },
    /// The memory was already freed.
    Freed {
        /// The first byte.
        address: u64,
    },
    /// The address is not a multiple of the alignment.
    Misaligned {
        address: u64,
        /// The alignment.
        align: u64,
    },
    /// Not a live allocation, so it cannot be freed.
    BadFree { address: u64 },
    /// No memory is left.
    OutOfMemory {
        /// The number of bytes requested.
        size: u64,
    },
    /// The function is unknown.
    UnknownFunction { name: String },
    /// The function does not have these arguments or this result.
    BadCall { name: String },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::OutOfBounds { address, size } => {
                write!(f, "access to {size} bytes at 0x{address:x}, which are not inside one allocation")
            }
            MemoryError::Freed { address } => write!(f, "access to freed memory at 0x{address:x}"),
            MemoryError::Misaligned { address, align } => {
                write!(f, "the address 0x{address:x} is not a multiple of {align}")
            }
            MemoryError::BadFree { address } => {
                write!(f, "0x{address:x} is not the start of an allocation, so it cannot be freed")
            }
            MemoryError::OutOfMemory { size } => write!(f, "no memory for {size} bytes"),
            MemoryError::UnknownFunction { name } => write!(f, "the C function `{name}` is not known here"),
            MemoryError::BadCall { name } => {
                write!(f, "the C function `{name}` does not have this signature")
            }
        }
    }
}

impl std::error::Error for MemoryError {}

/// The first address; lower ones are never valid, so null is not either.
const FIRST: u64 = 0x1_0000;
/// The minimum distance between two allocations.
const GAP: u64 = 64;
/// The maximum number of live bytes, unless set by [`SimMemory::with_limit`].
const DEFAULT_LIMIT: u64 = 1 << 30;

/// A simulated address space; see the header.
#[derive(Debug)]
pub struct SimMemory {
    /// Live allocations hold their bytes, freed ones `None`; the key is the first address.
    blocks: BTreeMap<u64, Allocation>,
    next: u64,
    live: u64,
    limit: u64,
}

#[derive(Debug)]
struct Allocation {
    size: u64,
    bytes: Option<Vec<u8>>,
}

impl Default for SimMemory {
    fn default() -> Self {
        SimMemory::with_limit(DEFAULT_LIMIT)
    }
}

impl SimMemory {
    /// An empty address space with at most `limit` live bytes.
    pub fn with_limit(limit: u64) -> Self {
        SimMemory { blocks: BTreeMap::new(), next: FIRST, live: 0, limit }
    }

    /// An empty address space whose first allocation has this address. Programs that depend on addresses
    /// behave differently in spaces with different first addresses.
    pub fn at(first: u64) -> Self {
        SimMemory { next: first, ..SimMemory::default() }
    }

    /// The number of bytes currently allocated.
    pub fn live_bytes(&self) -> u64 {
        self.live
    }

    /// The bytes from an address to the end of its allocation.
    pub(super) fn tail(&self, address: u64) -> Result<&[u8], MemoryError> {
        let (start, block) = self.find(address, 0)?;
        match &block.bytes {
            Some(bytes) => Ok(&bytes[(address - start) as usize..]),
            None => Err(MemoryError::Freed { address }),
        }
    }

    /// The bytes of a range. An empty range is valid at any address.
    pub(super) fn range(&self, address: u64, size: u64) -> Result<&[u8], MemoryError> {
        if size == 0 {
            return Ok(&[]);
        }
        let (start, block) = self.find(address, size)?;
        let offset = (address - start) as usize;
        match &block.bytes {
            Some(bytes) => Ok(&bytes[offset..offset + size as usize]),
            None => Err(MemoryError::Freed { address }),
        }
    }

    /// Like [`Self::range`].
    pub(super) fn range_mut(&mut self, address: u64, size: u64) -> Result<&mut [u8], MemoryError> {
        if size == 0 {
            return Ok(&mut []);
        }
        let start = self.find(address, size)?.0;
        let offset = (address - start) as usize;
        match self.blocks.get_mut(&start).and_then(|b| b.bytes.as_mut()) {
            Some(bytes) => Ok(&mut bytes[offset..offset + size as usize]),
            None => Err(MemoryError::Freed { address }),
        }
    }

    /// The size of the allocation that starts at an address.
    pub(super) fn size_of_allocation(&self, address: u64) -> Result<u64, MemoryError> {
        match self.blocks.get(&address) {
            Some(Allocation { size, bytes: Some(_) }) => Ok(*size),
            Some(_) => Err(MemoryError::Freed { address }),
            None => Err(MemoryError::BadFree { address }),
        }
    }

    /// The allocation, live or freed, that contains a range.
    fn find(&self, address: u64, size: u64) -> Result<(u64, &Allocation), MemoryError> {
        let found = self.blocks.range(..=address).next_back();
        match found {
            Some((&start, block)) if size <= block.size && address - start <= block.size - size => {
                Ok((start, block))
            }
            _ => Err(MemoryError::OutOfBounds { address, size }),
        }
    }
}

fn check_align(address: u64, align: u64) -> Result<(), MemoryError> {
    if align > 1 && !address.is_multiple_of(align) {
        return Err(MemoryError::Misaligned { address, align });
    }
    Ok(())
}

/// The operations of [`RawMemory`] except calls, which `libc.rs` adds.
impl SimMemory {
    pub(super) fn allocate(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        let fail = MemoryError::OutOfMemory { size };
        if size > self.limit - self.live {
            return Err(fail);
        }
        let start = self.next.checked_next_multiple_of(align.max(16)).ok_or(fail.clone())?;
        let after = start.checked_add(size).and_then(|end| end.checked_add(GAP)).ok_or(fail.clone())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size as usize).map_err(|_| fail)?;
        bytes.resize(size as usize, 0);
        self.blocks.insert(start, Allocation { size, bytes: Some(bytes) });
        self.live += size;
        self.next = after;
        Ok(start)
    }

    pub(super) fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let size = self.size_of_allocation(address)?;
        self.blocks.insert(address, Allocation { size, bytes: None });
        self.live -= size;
        Ok(())
    }

    pub(super) fn load(&mut self, address: u64, align: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        check_align(address, align)?;
        out.copy_from_slice(self.range(address, out.len() as u64)?);
        Ok(())
    }

    pub(super) fn store(&mut self, address: u64, align: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        check_align(address, align)?;
        self.range_mut(address, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        if size == 0 {
            return Ok(());
        }
        let bytes = self.range(from, size)?.to_vec();
        self.range_mut(to, size)?.copy_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_stay_inside_one_allocation() {
        let mut m = SimMemory::default();
        let a = m.allocate(8, 8).unwrap();
        let b = m.allocate(8, 64).unwrap();
        assert_eq!(b % 64, 0);
        m.store(a, 8, &7u64.to_le_bytes()).unwrap();
        let mut out = [1; 8];
        m.load(a, 8, &mut out).unwrap();
        assert_eq!(u64::from_le_bytes(out), 7);
        for (address, size) in [(a + 1, 8), (a - 1, 4), (a + 8, 1), (0, 1), (u64::MAX, 8), (b + 70, 1)] {
            let mut out = vec![0; size as usize];
            assert_eq!(m.load(address, 1, &mut out), Err(MemoryError::OutOfBounds { address, size }));
        }
        assert_eq!(m.load(a + 4, 8, &mut [0; 4]), Err(MemoryError::Misaligned { address: a + 4, align: 8 }));
    }

    #[test]
    fn freed_memory_stays_freed() {
        let mut m = SimMemory::with_limit(100);
        let a = m.allocate(60, 1).unwrap();
        assert_eq!(m.allocate(60, 1), Err(MemoryError::OutOfMemory { size: 60 }));
        m.free(a).unwrap();
        assert_eq!(m.free(a), Err(MemoryError::Freed { address: a }));
        assert_eq!(m.free(a + 1), Err(MemoryError::BadFree { address: a + 1 }));
        assert_eq!(m.load(a, 1, &mut [0]), Err(MemoryError::Freed { address: a }));
        assert_ne!(m.allocate(60, 1).unwrap(), a);
        assert_eq!(m.live_bytes(), 60);
    }

    #[test]
    fn copies_may_overlap() {
        let mut m = SimMemory::default();
        let a = m.allocate(4, 1).unwrap();
        m.store(a, 1, &[1, 2, 3, 4]).unwrap();
        m.copy(a + 1, a, 3).unwrap();
        let mut out = [0; 4];
        m.load(a, 1, &mut out).unwrap();
        assert_eq!(out, [1, 1, 2, 3]);
    }
}
