//! Tiers of the functions of a session: when a function goes up, what serves it before it has code, what its first tier has seen, and when its code goes.
//!
//! ```text
//!   0 interpreted ── half of its calls, or long loops ──► 1 baseline ── calls ──► 2 optimised
//!        ▲                                                  │ iterations of a loop ──► continuation, optimised
//!        └────────────── code is evicted ◄──────────────────┴──────────────────────────┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `policy.rs` | after how many calls and iterations; the limits that a definition requests |
//! | `interpreted.rs` | tier 0: bodies for the interpreter |
//! | `profile.rs` | what tier 1 has counted, as advice for tier 2 |
//! | `osr.rs` | continuations of loops that are left while they run |
//! | `evict.rs` | code that is given back for room |
//!
//! Counters, cells and what happens at a limit are below, in `crates/jit/src/tiering` and `crates/jit/src/cell`; who does the work is `workers.rs`.

pub(crate) mod evict;
pub(crate) mod interpreted;
pub(crate) mod osr;
pub(crate) mod policy;
pub(crate) mod profile;
