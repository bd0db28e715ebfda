//! The program `brolga-executor`: what it says to its controller, and to whoever starts it by hand.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;

use brolga_executor::wire::{ExecutorRefusal, Given};
use brolga_executor::{CellId, Executor, ExecutorError, Process, Receiver, Spawn, UnitId};
use brolga_ir::Context;
use brolga_runtime::Limits;

struct Silent;

impl Receiver for Silent {
    fn print(&self, _: &[u8]) {}

    fn unwritten(&self, _: io::Error) {}
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_brolga-executor");

#[test]
fn it_refuses_what_it_does_not_have() {
    let process = Process::spawn(Spawn::new(PROGRAM), Arc::new(Silent)).unwrap();
    let status = process.status().unwrap();
    assert_eq!((status.process, status.units, status.cells), (process.id(), 0, 0));
    let refused = |result: Result<(), ExecutorError>| match result.unwrap_err() {
        ExecutorError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    };
    assert_eq!(refused(process.load(UnitId(1), &[0; 100])), ExecutorRefusal::Seal);
    assert_eq!(refused(process.load(UnitId(1), &[])), ExecutorRefusal::Seal);
    let sealed = [process.key().seal("another purpose", &[b"bytes"]).as_bytes(), &b"bytes"[..]].concat();
    assert_eq!(refused(process.load(UnitId(1), &sealed)), ExecutorRefusal::Seal);
    assert_eq!(refused(process.lead(CellId(1), UnitId(1))), ExecutorRefusal::NoUnit(1));
    process.cell(CellId(1), "f()").unwrap();
    assert_eq!(refused(process.cell(CellId(1), "f()")), ExecutorRefusal::Taken(1));
    let call =
        |cell| process.call(CellId(cell), Given::Low(Vec::new()), &Limits::new(), &Context::new()).map(drop);
    assert_eq!(refused(call(1)), ExecutorRefusal::NoCode("f()".to_owned()));
    assert_eq!(refused(call(2)), ExecutorRefusal::NoCell(2));
    process.drop_cell(CellId(1)).unwrap();
    assert_eq!(refused(process.drop_cell(CellId(1))), ExecutorRefusal::NoCell(1));
    assert_eq!(refused(process.retire(UnitId(1))), ExecutorRefusal::NoUnit(1));
    assert_eq!(refused(process.reset(UnitId(1))), ExecutorRefusal::NoUnit(1));
    assert!(process.lost().is_none());
}

#[test]
fn it_is_not_started_by_hand() {
    let ended = Command::new(PROGRAM).stdin(Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("started by one, and not by hand"), "{said}");
}

#[test]
fn it_ends_with_its_controller() {
    let process = Process::spawn(Spawn::new(PROGRAM), Arc::new(Silent)).unwrap();
    let folder = format!("/proc/{}", process.id());
    assert!(std::fs::exists(&folder).unwrap());
    drop(process);
    assert!(!std::fs::exists(&folder).unwrap());
}
