//! Shared by the tests and benches of this crate: the offsets of a heap, and reading IR.

use std::sync::Arc;

use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Context, Module, text};

/// A heap with round numbers.
pub(crate) const HEAP: HeapAbi = HeapAbi {
    tag_bytes: 8,
    tag_bits: 15,
    tag_old: 2,
    tag_permanent: 8,
    cells: &[16, 24, 32, 48, 64, 128],
    gc_stack: 24,
    runs: 64,
    run_bytes: 16,
    zeroed: true,
    moving: false,
};

/// Reads a text that must not have errors.
pub(crate) fn read_module(name: &str, input: &str) -> Module {
    let cx: Arc<Context> = Context::new();
    let source = SourceFile::new(name, input).expect("a small file");
    let (unit, found) = text::read(&source, &cx);
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    unit.module
}
