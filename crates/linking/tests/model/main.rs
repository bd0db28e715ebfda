//! The linking model: ORC's tests by their identifiers, and further properties. One program, since each would
//! compile the model again.

mod callers;
mod closed;
mod cycles;
mod dispatch;
mod endings;
mod initialisers;
mod names;
mod one_thread;
mod oracle;
mod orc_core;
mod orc_trackers;
mod parts;
mod rests;
mod sessions;
mod support;
mod waiting;
