//! One runtime: an independent world with its constants, C symbols and output.
//!
//! Runtimes share nothing. Compiled code belongs to one, keeps it alive and reaches it through its thread.

use std::sync::Arc;

use crate::foreign::Foreign;
use crate::heap::{Heap, HeapOptions, Scope};
use crate::output::{Output, Sink};
use crate::records::{Records, StringRef, SymbolRef};
use crate::routines;
use crate::thread::{EnterError, with_heap_scope};

/// What can be chosen about a runtime.
#[derive(Default)]
pub struct RuntimeOptions {
    /// Where `print` writes.
    pub output: Output,
    /// The heap.
    pub heap: HeapOptions,
}

/// What compiled code needs beside a thread.
pub struct Runtime {
    symbols: Records,
    strings: Records,
    routines: Vec<(&'static str, usize)>,
    foreign: Foreign,
    sink: Sink,
    heap: Heap,
}

impl Runtime {
    /// A new world.
    pub fn new(options: RuntimeOptions) -> Arc<Runtime> {
        let heap = Heap::new(options.heap);
        let (symbols, strings) = heap.record_tags();
        Arc::new(Runtime {
            symbols: Records::new(symbols),
            strings: Records::new(strings),
            routines: routines::sorted_table(),
            foreign: Foreign::default(),
            sink: Sink::new(options.output),
            heap,
        })
    }

    /// The record of a symbol constant.
    pub fn symbol(&self, name: &str) -> SymbolRef {
        self.symbols.symbol(name)
    }

    /// The record of a string constant.
    pub fn string(&self, content: &[u8]) -> StringRef {
        self.strings.string(content)
    }

    /// The content of a symbol or string that compiled code returned, by its address; `None` if it is no record of this
    /// runtime. Cost: a walk over all records.
    pub fn content(&self, address: usize) -> Option<Vec<u8>> {
        self.symbols.content(address).or_else(|| self.strings.content(address))
    }

    /// The address of a routine that compiled code may call.
    pub fn routine(&self, name: &str) -> Option<usize> {
        let at = self.routines.binary_search_by_key(&name, |(known, _)| known).ok()?;
        Some(self.routines[at].1)
    }

    /// The C symbols that compiled code may call.
    pub fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// Where `print` writes.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The heap. Nothing is mapped before the first object.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Calls `body` with the right to make and use objects, on the running thread, which is attached if it was not.
    pub fn enter<R>(
        self: &Arc<Self>,
        body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> R,
    ) -> Result<R, EnterError> {
        with_heap_scope(self, body)
    }
}
