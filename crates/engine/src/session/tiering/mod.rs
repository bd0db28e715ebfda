//! Tiers of the functions of a session: promotion, interpretation before there is code, profiles of the first tier, and eviction.
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
//! | `evict.rs` | eviction of code |
//!
//! `crates/jit/src/tiering` and `crates/jit/src/cell` below have the counters, the cells and the actions at a limit; `workers.rs` has the threads.

pub(crate) mod evict;
pub(crate) mod interpreted;
pub(crate) mod osr;
pub(crate) mod policy;
pub(crate) mod profile;
