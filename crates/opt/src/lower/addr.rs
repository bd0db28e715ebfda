//! Addresses of places in memory, with facts about alignment and writers.

use brolga_ir::Value;
use brolga_ir::op::Region;

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addr {
    /// The address in a register.
    pub(super) base: Value,
    /// The offset of the place from `base`.
    pub(super) offset: i64,
    /// The known alignment of the place for `Ptr` memory, of the base for other memory.
    pub(super) align: u32,
    /// Which memory it is.
    pub(super) region: Region,
    /// Its possible writers.
    pub(super) owner: Owner,
}

/// The possible writers of a place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// This code alone, while it makes the value.
    Own,
    /// Code that has the object.
    Object,
    /// Any code.
    Pointer,
}

impl Addr {
    /// The start of a value in own memory.
    pub(super) fn own(base: Value, align: u32, region: Region) -> Addr {
        Addr { base, offset: 0, align, region, owner: Owner::Own }
    }

    /// A place inside an object with this known alignment. The base is the object, or an address inside it that keeps
    /// it alive.
    pub(super) fn inside(base: Value, align: u32, region: Region) -> Addr {
        Addr { base, offset: 0, align, region, owner: Owner::Object }
    }

    /// A place at an offset from an address of the program.
    pub(super) fn pointer(base: Value, offset: i64, align: u32) -> Addr {
        Addr { base, offset, align, region: Region::Raw, owner: Owner::Pointer }
    }

    /// The place `offset` bytes further on; not in `Ptr` memory.
    pub(super) fn at(self, offset: u32) -> Addr {
        Addr { offset: self.offset + i64::from(offset), ..self }
    }

    /// The known alignment `within` bytes after the place.
    pub(super) fn align_at(&self, within: u32) -> u32 {
        let distance = match self.owner {
            Owner::Own | Owner::Object => self.offset + i64::from(within),
            Owner::Pointer => i64::from(within),
        };
        match distance.trailing_zeros() {
            zeros if zeros < 16 => self.align.min(1 << zeros),
            _ => self.align,
        }
    }
}
