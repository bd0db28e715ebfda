//! The state of a session at one moment, for sockets and tables.
//!
//! Times are in nanoseconds, sizes in bytes. A field added by a later version is missing in snapshots of
//! older ones, and is then zero or `None`.

use std::time::Instant;

use brolga_engine::Session;
use brolga_runtime::events::Tier;
use serde::{Deserialize, Serialize};

use crate::live::Live;

/// The state of a session at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The id of the process.
    pub pid: u32,
    /// The time since the session was first served.
    pub uptime: u64,
    /// The number of compilations of functions.
    pub compiled: u64,
    /// The time spent compiling; `None` if the run time has another listener.
    pub compiling: Option<u64>,
    /// The number of queued tasks; `None` if the run time has another listener.
    pub queued: Option<u64>,
    /// The number of look-ups without an answer.
    pub lookups: u64,
    /// The number of functions that were promoted to the next tier; `None` if the run time has another
    /// listener.
    pub upgrades: Option<u64>,
    /// The number of functions that lost their code because a definition that they depend on changed; `None`
    /// if the run time has another listener.
    pub invalidations: Option<u64>,
    /// The number of functions that lost their code because memory for code was short.
    pub evictions: u64,
    /// How often a thread left a loop for better code.
    pub left_loops: u64,
    /// The memory of loaded code.
    pub code_in_use: u64,
    /// The part of it that can no longer be called.
    pub code_retired: u64,
    /// The memory that the system has provided for code.
    pub code_resident: u64,
    /// The size of the blocks that contain objects.
    pub heap_used: u64,
    /// The memory that the heap has mapped.
    pub heap_mapped: u64,
    /// The numbers of minor and of full collections.
    pub collections: (u64, u64),
    /// The total and the maximum time for which collections stopped the world.
    pub pauses: (u64, u64),
    /// The functions that were looked up, or that are called by compiled code.
    pub functions: Vec<FunctionRow>,
}

/// A function of a session at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FunctionRow {
    /// The name of the dylib that defines it.
    pub dylib: String,
    /// The symbol of the function.
    pub symbol: String,
    /// Its tier, which is 0 without code; `None` if it was removed.
    pub tier: Option<u8>,
    /// The calls counted by tier 1; `None` where calls are not counted.
    pub calls: Option<u32>,
    /// The code size of its unit.
    pub bytes: u64,
    /// Its compile time; `None` if the run time has another listener, or the time is unknown.
    pub compiling: Option<u64>,
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Snapshot {
    /// The current state of a session. `live` is the listener of its run time, if there is one.
    pub fn of(session: &Session, since: Instant, live: Option<&Live>) -> Snapshot {
        let (stats, heap) = (session.stats(), session.runtime().heap().stats());
        let sums = live.map(Live::sums);
        let sum = |of: fn(&crate::live::Sums) -> u64| sums.as_ref().map(of);
        let time = |symbol: &str| Some(nanoseconds(*sums.as_ref()?.functions.get(symbol)?));
        let functions = session.functions().into_iter().map(|function| FunctionRow {
            compiling: time(&function.symbol),
            tier: function.tier.map(Tier::number),
            calls: function.calls,
            bytes: function.bytes as u64,
            dylib: function.dylib,
            symbol: function.symbol,
        });
        Snapshot {
            pid: std::process::id(),
            uptime: nanoseconds(since.elapsed()),
            compiled: stats.compiled_functions,
            compiling: sum(|sums| nanoseconds(sums.compiling)),
            queued: sum(|sums| sums.queued),
            lookups: stats.lookups as u64,
            upgrades: sum(|sums| sums.upgrades),
            invalidations: sum(|sums| sums.invalidations),
            evictions: stats.evicted,
            left_loops: stats.left_loops,
            code_in_use: stats.code.in_use as u64,
            code_retired: stats.code.retired as u64,
            code_resident: stats.code.resident as u64,
            heap_used: heap.used_bytes as u64,
            heap_mapped: heap.mapped_bytes as u64,
            collections: (heap.minor_collections, heap.full_collections),
            pauses: (nanoseconds(heap.pause_total), nanoseconds(heap.pause_max)),
            functions: functions.collect(),
        }
    }

    /// The snapshot as one line of JSON.
    pub fn to_json(&self) -> String {
        // JSON only rejects maps whose keys are not text, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the result of [`Snapshot::to_json`].
    ///
    /// # Errors
    /// The line is not a snapshot; the text has the reason.
    pub fn from_json(line: &str) -> Result<Snapshot, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}
