//! Tiers of a session's functions: promotion, interpretation before compilation, profiles of the first tier, and eviction.
//!
//! ```text
//!   0 interpreted ── half of its calls, or long loops ──► 1 baseline ── calls ──► 2 optimised
//!        ▲                                                  │ iterations of a loop ──► continuation, optimised
//!        └────────────── code is evicted ◄──────────────────┴──────────────────────────┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `policy.rs` | the numbers of calls and iterations before promotion; the limits that a definition requests |
//! | `interpreted.rs` | tier 0: bodies for the interpreter |
//! | `profile.rs` | the counts of tier 1, as advice for tier 2 |
//! | `osr.rs` | on-stack replacement: continuations of running loops |
//! | `evict.rs` | eviction of code |
//!
//! The counters, cells and actions at a limit are in `crates/jit/src/tiering` and `crates/jit/src/cell`; the threads are in `workers.rs`.

pub(crate) mod evict;
pub(crate) mod interpreted;
pub(crate) mod osr;
pub(crate) mod policy;
pub(crate) mod profile;
