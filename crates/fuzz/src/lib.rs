//! Random programs, random damage, and the reducer: the basis of the tests that compare Brolga with itself.
//!
//! A crate for development: tests, benches and the command use it; embedders do not link it.
//!
//! ```text
//! seed ─► rng ─┬─► generate ─► module ─┬─► check ─► ok, or a failure that can be replayed
//!              ├─► values ──► arguments┘
//!              └─► mutate ──► broken text or bytes ─► check
//! ```
//!
//! | file | content |
//! |---|---|
//! | `rng` | the generator of pseudo-random numbers, a parameter of everything else |
//! | `values` | arguments at the edges of their types |
//! | `attack` | checked programs as an attacker would write them |
//! | `generate` | well-formed high-IR modules |
//! | `shapes` | functions of an extreme shape and any size |
//! | `constructs` | programs that repeat one construct, valid or invalid |
//! | `dynamic` | texts of dynamic operators whose types change while they run |
//! | `printed` | dumps in the formats of Julia 1.10 to 1.13 |
//! | `mutate` | damaged texts and bytes |
//! | `check` | one check of an input, and a failure that can be replayed |
//! | `reduce` | shrinks a failing program |
//! | `targets` | entry points of fuzzers |
//! | `campaign` | a sequence of inputs, each from a seed |
//!
//! Nothing here reads a clock or keeps state: the same seed determines the same program in every process. A
//! generated program terminates after a bounded number of steps and has a single meaning: where the IR leaves
//! a value unspecified (the bits of a NaN from arithmetic, the value of an address), the generated program
//! does not depend on it.

pub mod attack;
pub mod campaign;
pub mod check;
pub mod constructs;
pub mod dynamic;
pub mod generate;
pub mod mutate;
pub mod printed;
pub mod reduce;
pub mod rng;
pub mod shapes;
pub mod targets;
pub mod values;
