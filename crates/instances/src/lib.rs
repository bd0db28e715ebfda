//! Code instances: how compiled code is published, replaced under its callers, and given back.
//!
//! A code instance is one compiled, or compilable, form of a method instance. This crate knows nothing about machine code,
//! memory or types: addresses are words, and what is freed is a type parameter. So its protocols are pure atomics that can be
//! model-checked, and it builds in a second.
//!
//! | file, in reading order | what it holds |
//! |---|---|
//! | `protocol` | [`CodeInstance`]: entry point, specialised entry point and flags, written once and upgraded under readers |
//! | `reclaim` | [`Reclaimer`]: code that nothing leads to any more, freed when no thread can be running it |
//! | `room` | [`Room`]: memory for code when there is none, by giving up other code |

#![forbid(unsafe_code)]

#[cfg(all(test, loom))]
mod models;
mod protocol;
mod reclaim;
mod room;
mod sync;

pub use protocol::{CodeInstance, CodeWord, Entry, Lost, Outdated, Signature};
pub use reclaim::{Participant, Pin, Reclaimer, Stay};
pub use room::{Attempt, Evicted, Moving, Room};
