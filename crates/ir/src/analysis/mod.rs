//! Facts about a function, computed from it and kept beside it.
//!
//! Every analysis is a value made by a `compute` function from the function and the analyses that it builds on. None
//! holds a reference back, none is updated: a change of the function requires dropping invalid analyses and computing them again.
//!
//! ```text
//! Func ─┬─> Cfg ─┬─> Rpo ─────┬─> Loops
//!       │        ├─> DomTree ─┘      │
//!       │        ├─> Frontier        └ natural loops, irreducible edges
//!       │        └─> Liveness
//!       └─> Uses
//! ```
//!
//! | file | question | cost |
//! |---|---|---|
//! | `cfg` | predecessors and successors of a block | linear |
//! | `rpo` | reachability, an order in which definitions come before uses | linear |
//! | `domtree` | does this dominate that | almost linear, then constant for each query |
//! | `frontier` | places of φ for a set of definitions | linear in the part of the graph that is visited |
//! | `handlers` | the exception handler in force at a place | linear |
//! | `loops` | the loop of a block | almost linear |
//! | `liveness` | the values needed after a block | the size of the answer |
//! | `uses` | the uses of a value | linear |
//!
//! All of them accept functions that break the verifier's rules: an edge to a block that is not in the function's order is
//! left out, a block without terminator has no successors. None recurses.

mod cfg;
mod csr;
mod domtree;
mod frontier;
#[cfg(test)]
mod graphs;
mod handlers;
mod liveness;
mod loops;
mod rpo;
mod uses;

pub use cfg::Cfg;
pub use domtree::{DomTree, InstOrder};
pub use frontier::Frontier;
pub use handlers::Handlers;
pub use liveness::Liveness;
pub use loops::{Loop, Loops};
pub use rpo::Rpo;
pub use uses::{Use, Uses};
