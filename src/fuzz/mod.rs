//! Random programs and random damage: the material of the tests that compare Brolga with itself.
//!
//! ```text
//! seed ─► rng ─┬─► generate ─► module ─┬─► check ─► ok, or a failure that can be replayed
//!              ├─► values ──► arguments┘
//!              └─► mutate ──► broken text or bytes ─► check
//! ```
//!
//! | file | what it gives |
//! |---|---|
//! | `rng` | the generator of pseudo-random numbers, a parameter of everything else |
//! | `values` | arguments at the edges of their types |
//! | `generate` | well-formed high-IR modules |
//! | `shapes` | functions of one extreme shape and any size |
//! | `constructs` | programs that repeat one construct, sound and broken |
//! | `mutate` | damaged texts and bytes |
//!
//! Nothing here reads a clock or keeps state: the same seed gives the same program in every process. A generated program
//! terminates after a bounded number of steps and has one meaning: wherever the IR leaves a value open (the bits of a
//! NaN that arithmetic made, the value of an address), the generator keeps the program from looking at it.

pub mod check;
pub mod constructs;
pub mod generate;
pub mod mutate;
pub mod rng;
pub mod shapes;
pub mod values;
