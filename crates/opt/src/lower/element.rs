//! An element of a `Memory` in lowering: the values that lead to it and its form in memory.

use brolga_ir::types::FieldRepr;
use brolga_ir::{Type, Value};

/// How elements of a type lie in a `Memory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) ty: Type,
    pub(super) repr: FieldRepr,
    /// From one to the next, selectors not counted.
    pub(super) stride: u32,
    pub(super) align: u32,
}

/// An element of a `Memory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) shape: Shape,
    /// Its address; its number if it has no size.
    pub(super) data: Value,
    pub(super) memory: Value,
}
