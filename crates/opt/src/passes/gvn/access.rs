//! The effects of an instruction on memory, as far as the search for the values of loads needs them.

use crate::alias::Location;
use brolga_ir::effects::Effects;
use brolga_ir::{Inst, Type, Value};

/// An instruction that touches memory.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) effects: Effects,
    /// For a load and a store.
    pub(super) known: Option<Known>,
}

/// The value at a place after a load or a store.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) at: Location,
    pub(super) value: Value,
    pub(super) ty: Type,
    pub(super) stored: bool,
}
