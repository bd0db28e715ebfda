//! Records of running programs: traces, tables, and statistics of measurements.
//!
//! | file | what is in it |
//! |---|---|
//! | `trace` | [`Trace`]: a listener that keeps events with their times |
//! | `chrome` | a trace as JSON in the trace-event format, which Perfetto and Chrome open |
//! | `table` | a trace as a table: stages by time, events by number |
//! | `statistics` | [`statistics`]: medians with confidence intervals, and comparison; pure functions |
//! | `json` | the little JSON that is written here |
//!
//! A library that does not link this crate pays a load and a branch for each event.
#![forbid(unsafe_code)]

mod chrome;
pub mod json;
pub mod statistics;
mod table;
mod trace;

pub use trace::{MAX_ROWS, Trace};
