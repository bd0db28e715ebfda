//! Records of running programs: traces, tables, and statistics of measurements.
//!
//! | file | content |
//! |---|---|
//! | `trace` | [`Trace`]: a listener that keeps events with their times |
//! | `chrome` | a trace as JSON in the trace-event format, which Perfetto and Chrome open |
//! | `live` | [`Live`]: a listener that keeps sums; [`Several`] listeners as one |
//! | `snapshot` | [`Snapshot`]: the state of a session at one moment, as JSON |
//! | `socket` | [`serve`]: a socket through which other processes of the user inspect a session; [`Watcher`] |
//! | `view` | [`view`]: a snapshot as text |
//! | `table` | a trace as a table: stages by time, events by number |
//! | `statistics` | [`statistics`]: medians with confidence intervals, and comparison; pure functions |
//! | `json` | writing JSON |
//!
//! Without this crate, an event costs a load and a branch.
#![forbid(unsafe_code)]

mod chrome;
pub mod json;
mod live;
mod snapshot;
#[cfg(unix)]
mod socket;
pub mod statistics;
mod table;
mod trace;
pub mod view;

pub use live::{Live, Several};
pub use snapshot::{FunctionRow, Snapshot};
#[cfg(unix)]
pub use socket::{MAX_CLIENTS, MAX_REQUEST, Served, Watcher, serve, serve_with};
pub use trace::{MAX_ROWS, Trace};
