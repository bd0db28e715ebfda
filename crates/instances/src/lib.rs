//! Code instances: how compiled code is published, replaced under concurrent callers, and freed.
//!
//! A code instance is one compiled, or compilable, form of a method instance. This crate is independent of
//! machine code, memory and types: addresses are words, and sources of code and retired items are type
//! parameters. So its protocols are pure atomics that can be model-checked, and it builds in a second.
//!
//! | file, in reading order | contents |
//! |---|---|
//! | `invoke` | [`InvokePointer`]: the word that calls go through, replaced under concurrent readers |
//! | `tier` | [`Tier`]: how calls are served, and the quality of code |
//! | `instance` | [`CodeInstance`]: one version of a function, and the list of all versions with their worlds |
//! | `fences` | [`Fences`]: orders a store before a load on two sides, one of them cheap |
//! | `reclaim` | [`Reclaimer`]: retired code, freed when no thread can be running it |
//! | `room` | [`Room`]: reserves memory for code, evicting other code if there is none |

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
