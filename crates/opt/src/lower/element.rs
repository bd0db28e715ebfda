//! An element of a `Memory` in lowering: the values that lead to it and its form in memory.

use brolga_ir::types::FieldRepr;
use brolga_ir::{Type, Value};

/// The layout of elements of a type in a `Memory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) ty: Type,
    pub(super) repr: FieldRepr,
    /// The distance between elements, without selectors.
    pub(super) stride: u32,
    pub(super) align: u32,
}

/// An element of a `Memory`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) shape: Shape,
    /// Its address; its index if it has no size.
    pub(super) data: Value,
    pub(super) memory: Value,
}
