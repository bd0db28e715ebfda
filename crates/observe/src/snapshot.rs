//! A session at one moment, for sockets and tables.
//!
//! Times are in nanoseconds, sizes in bytes. Fields that a later version adds are missing in a snapshot of an older one, and are then zero or absent.

use std::time::Instant;

use brolga_engine::Session;
use brolga_runtime::events::Tier;
use serde::{Deserialize, Serialize};

use crate::live::Live;

/// A session at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// Since when the session is shown.
    pub uptime: u64,
    /// Functions that were compiled, each as often as it was.
    pub compiled: u64,
    /// Time in compiling; absent if the run time has another listener.
    pub compiling: Option<u64>,
    /// Tasks that wait for a thread; absent as well.
    pub queued: Option<u64>,
    /// Look-ups without an answer.
    pub lookups: u64,
    /// Functions that got code of the next tier; absent as well.
    pub upgrades: Option<u64>,
    /// Functions that lost their code because something that they depend on was defined; absent as well.
    pub invalidations: Option<u64>,
    /// Functions that lost their code because memory for code was short.
    pub evictions: u64,
    /// How often a thread has left a loop for better code.
    pub left_loops: u64,
    /// Memory of loaded code.
    pub code_in_use: u64,
    /// Of it, code that can no longer be called.
    pub code_retired: u64,
    /// Memory that the system has given for code.
    pub code_resident: u64,
    /// Bytes in blocks that hold objects.
    pub heap_used: u64,
    /// Bytes that the heap has mapped.
    pub heap_mapped: u64,
    /// Minor and full collections.
    pub collections: (u64, u64),
    /// Time in which collections have stopped the world, and the longest.
    pub pauses: (u64, u64),
    /// The functions that were looked up, or that compiled code calls.
    pub functions: Vec<FunctionRow>,
}

/// A function of a session at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FunctionRow {
    /// The dylib that defines it.
    pub dylib: String,
    /// Its symbol.
    pub symbol: String,
    /// Its tier: 0 has no code; absent if it was removed.
    pub tier: Option<u8>,
    /// The calls that tier 1 has counted; absent where nothing counts.
    pub calls: Option<u32>,
    /// The bytes of code of its unit.
    pub bytes: u64,
    /// How long compiling it took; absent if the run time has another listener, or the time is unknown.
    pub compiling: Option<u64>,
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Snapshot {
    /// The present state of a session. `live` listens to its run time, if there is a listener.
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

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        // Maps without text for keys are what JSON refuses, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Snapshot::to_json`] has written.
    ///
    /// # Errors
    /// It is no snapshot; the text says why.
    pub fn from_json(line: &str) -> Result<Snapshot, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}
