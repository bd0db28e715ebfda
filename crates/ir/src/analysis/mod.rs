//! Facts about a function, computed from it and stored separately.
//!
//! Every analysis is a value made by a `compute` function from the function and the analyses that it builds
//! on. None refers back to the function and none is updated: after a change, drop the invalid ones and
//! compute them again.
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
//! | `frontier` | where φ are needed for a set of definitions | linear in the part of the graph that is visited |
//! | `handlers` | the exception handler in force at a place | linear |
//! | `loops` | the loop of a block | almost linear |
//! | `liveness` | the values needed after a block | the size of the answer |
//! | `uses` | the uses of a value | linear |
//!
//! All of them accept functions that break the verifier's rules: edges to blocks outside the function's
//! layout are ignored, and a block without a terminator has no successors. None recurses.

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
