//! Code instances: how compiled code is published, replaced under its callers, and freed.
//!
//! A code instance is one compiled, or compilable, form of a method instance. This crate does not depend on machine code,
//! memory or types: addresses are words, and sources of code and freed things are type parameters. So its protocols are pure atomics that can be
//! model-checked, and it builds in a second.
//!
//! | file, in reading order | what it holds |
//! |---|---|
//! | `invoke` | [`InvokePointer`]: the word that calls go through, replaced under its readers |
//! | `tier` | [`Tier`]: how calls are served, and the quality of code |
//! | `instance` | [`CodeInstance`]: one version of a function, and the list of all for their worlds |
//! | `fences` | [`Fences`]: the two sides of an order between a store and a load, one of them cheap |
//! | `reclaim` | [`Reclaimer`]: retired code, freed when no thread can be running it |
//! | `room` | [`Room`]: memory for code when there is none, by evicting other code |

#![forbid(unsafe_code)]

mod fences;
mod instance;
mod invoke;
#[cfg(all(test, loom))]
mod models;
mod reclaim;
mod room;
mod sync;
mod tier;

pub use fences::Fences;
pub use instance::{Added, Beginning, Code, CodeInstance, Instances, Parts, Select, State};
pub use invoke::InvokePointer;
pub use reclaim::{Participant, Pin, Reclaimer, Stay};
pub use room::{Attempt, Evicted, Moving, Room};
pub use tier::Tier;
