//! Operations as bytes, in both directions: one tag each, then the operation's data. Intrinsics, builtins and
//! entry points of the run time are written by name, so that their tables may change.
//!
//! Callees, C functions, slots and notes are numbers in the function's own lists.

use super::bytes::{Sink, Source, position};
use super::tables::{Names, Tables};
use super::{BinaryError, Refusal};
use crate::builtin::Builtin;
use crate::entity::{Callee, Foreign, Meta, Slot};
use crate::intrinsic::Intrinsic;
use crate::lanes::Lanes;
use crate::op::{Access, Op, Ordering, Region, RmwOp};
use crate::runtime_fn::RuntimeFn;
use cranelift_entity::EntityRef;

/// The numbers of a function's side data in the file.
pub(super) struct Numbers<'a> {
    pub(super) callee: &'a dyn Fn(Callee) -> u64,
    pub(super) foreign: &'a dyn Fn(Foreign) -> u64,
    pub(super) slot: &'a dyn Fn(Slot) -> u64,
    pub(super) meta: &'a dyn Fn(Meta) -> u64,
}

/// How many of each kind of side data a function being read has.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) callees: usize,
    pub(super) foreigns: usize,
    pub(super) slots: usize,
    pub(super) metas: usize,
}

/// Operations with no data besides their operands; the position is the tag.
const PLAIN: [Op; 26] = [
    Op::Phi,
    Op::Copy,
    Op::Goto,
    Op::Branch,
    Op::Return,
    Op::Unreachable,
    Op::Call,
    Op::Pi,
    Op::Upsilon,
    Op::PhiC,
    Op::Enter,
    Op::Leave,
    Op::TheException,
    Op::PopException,
    Op::GcPreserveBegin,
    Op::GcPreserveEnd,
    Op::CodeCoverage,
    Op::MemCopy,
    Op::Safepoint,
    Op::BoundsCheck(false),
    Op::TypeOf,
    Op::WriteBarrier,
    Op::GcLoaded,
    Op::PointerFromObjref,
    Op::ThreadAddr,
    Op::LaneSelect,
];

const BOUNDS_CHECK: u8 = 31;
const INTRINSIC: u8 = 32;
const BUILTIN: u8 = 33;
const FOREIGN_CALL: u8 = 34;
const INVOKE: u8 = 35;
const NEW: u8 = 36;
const SPLAT_NEW: u8 = 37;
const GET_GLOBAL: u8 = 38;
const THROW_UNDEF_IF_NOT: u8 = 39;
const LOOP_INFO: u8 = 40;
const STATIC_PARAMETER: u8 = 41;
const LOAD: u8 = 42;
const STORE: u8 = 43;
const ATOMIC_LOAD: u8 = 44;
const ATOMIC_STORE: u8 = 45;
const ATOMIC_RMW: u8 = 46;
const ATOMIC_CAS: u8 = 47;
const SLOT_ADDR: u8 = 48;
const CALL_SYMBOL: u8 = 49;
const CALL_RUNTIME: u8 = 50;
const ALLOC: u8 = 51;
const CALL_ARGS: u8 = 52;
const LANES: u8 = 53;
const SPLAT: u8 = 54;
const EXTRACT_LANE: u8 = 55;
const INSERT_LANE: u8 = 56;
const ALLOC_STACK: u8 = 57;
const STATIC_DEFINED: u8 = 58;
const C_FUNCTION: u8 = 59;
const SPEND: u8 = 60;
const C_GLOBAL: u8 = 61;

pub(super) fn write(names: &mut Names<'_>, out: &mut Sink, op: Op, numbers: &Numbers<'_>) {
    if let Some(tag) = PLAIN.iter().position(|&plain| plain == op) {
        return out.byte(tag as u8);
    }
    match op {
        Op::Intrinsic(op) => {
            out.byte(INTRINSIC);
            names.text(out, op.name());
        }
        Op::Builtin(op) => {
            out.byte(BUILTIN);
            names.text(out, op.name());
        }
        Op::ForeignCall(foreign) => {
            out.byte(FOREIGN_CALL);
            out.number((numbers.foreign)(foreign));
        }
        Op::Invoke(callee) => {
            out.byte(INVOKE);
            out.number((numbers.callee)(callee));
        }
        Op::New(ty) => {
            out.byte(NEW);
            names.ty(out, ty);
        }
        Op::SplatNew(ty) => {
            out.byte(SPLAT_NEW);
            names.ty(out, ty);
        }
        Op::GetGlobal(name) => {
            out.byte(GET_GLOBAL);
            names.name(out, name);
        }
        Op::ThrowUndefIfNot(name) => {
            out.byte(THROW_UNDEF_IF_NOT);
            names.name(out, name);
        }
        Op::LoopInfo(meta) => {
            out.byte(LOOP_INFO);
            out.number((numbers.meta)(meta));
        }
        Op::StaticParameter(n) => {
            out.byte(STATIC_PARAMETER);
            out.number(u64::from(n));
        }
        Op::CFunction(callee) => {
            out.byte(C_FUNCTION);
            out.number((numbers.callee)(callee));
        }
        Op::CGlobal(name) => {
            out.byte(C_GLOBAL);
            names.name(out, name);
        }
        Op::StaticDefined(n) => {
            out.byte(STATIC_DEFINED);
            out.number(u64::from(n));
        }
        Op::Spend(units) => {
            out.byte(SPEND);
            out.number(u64::from(units));
        }
        Op::Load(access) => {
            out.byte(LOAD);
            write_access(out, access);
        }
        Op::Store(access) => {
            out.byte(STORE);
            write_access(out, access);
        }
        Op::AtomicLoad(order) => out.bytes.extend([ATOMIC_LOAD, position(&Ordering::ALL, &order)]),
        Op::AtomicStore(order) => out.bytes.extend([ATOMIC_STORE, position(&Ordering::ALL, &order)]),
        Op::AtomicRmw(op, order) => {
            out.bytes.extend([ATOMIC_RMW, position(&RmwOp::ALL, &op), position(&Ordering::ALL, &order)]);
        }
        Op::AtomicCas(order) => out.bytes.extend([ATOMIC_CAS, position(&Ordering::ALL, &order)]),
        Op::SlotAddr(slot) => {
            out.byte(SLOT_ADDR);
            out.number((numbers.slot)(slot));
        }
        Op::CallSymbol(callee) => {
            out.byte(CALL_SYMBOL);
            out.number((numbers.callee)(callee));
        }
        Op::CallRuntime(f) => {
            out.byte(CALL_RUNTIME);
            names.text(out, f.symbol());
        }
        Op::Alloc(ty) => {
            out.byte(ALLOC);
            names.ty(out, ty);
        }
        Op::AllocStack(ty) => {
            out.byte(ALLOC_STACK);
            names.ty(out, ty);
        }
        Op::CallArgs(f) => {
            out.byte(CALL_ARGS);
            names.text(out, f.symbol());
        }
        Op::Lanes(what, lanes) => {
            out.bytes.extend([LANES, position(&Lanes::ALL, &lanes)]);
            names.text(out, what.name());
        }
        Op::Splat(lanes) => out.bytes.extend([SPLAT, position(&Lanes::ALL, &lanes)]),
        Op::ExtractLane(lanes, n) => out.bytes.extend([EXTRACT_LANE, position(&Lanes::ALL, &lanes), n]),
        Op::InsertLane(lanes, n) => out.bytes.extend([INSERT_LANE, position(&Lanes::ALL, &lanes), n]),
        // The plain ones were written above; the only bounds check left is the one that is on.
        Op::BoundsCheck(_)
        | Op::Phi
        | Op::Copy
        | Op::Goto
        | Op::Branch
        | Op::Return
        | Op::Unreachable
        | Op::Call
        | Op::Pi
        | Op::Upsilon
        | Op::PhiC
        | Op::Enter
        | Op::Leave
        | Op::TheException
        | Op::PopException
        | Op::GcPreserveBegin
        | Op::GcPreserveEnd
        | Op::CodeCoverage
        | Op::MemCopy
        | Op::TypeOf
        | Op::WriteBarrier
        | Op::GcLoaded
        | Op::PointerFromObjref
        | Op::ThreadAddr
        | Op::LaneSelect
        | Op::Safepoint => out.byte(BOUNDS_CHECK),
    }
}

fn write_access(out: &mut Sink, access: Access) {
    out.signed(i64::from(access.offset));
    out.byte(position(&Region::ALL, &access.region));
    out.byte(access.align_log2);
}

pub(super) fn read(tables: Tables<'_>, source: &mut Source<'_>, counts: &Counts) -> Result<Op, BinaryError> {
    let tag = source.byte()?;
    if let Some(&plain) = PLAIN.get(usize::from(tag)) {
        return Ok(plain);
    }
    Ok(match tag {
        BOUNDS_CHECK => Op::BoundsCheck(true),
        INTRINSIC => Op::Intrinsic(named(tables, source, "intrinsic", Intrinsic::from_name)?),
        BUILTIN => Op::Builtin(named(tables, source, "builtin", Builtin::from_name)?),
        FOREIGN_CALL => Op::ForeignCall(Foreign::new(source.index("C function", counts.foreigns)?)),
        INVOKE => Op::Invoke(Callee::new(source.index("callee", counts.callees)?)),
        NEW => Op::New(tables.ty(source)?),
        SPLAT_NEW => Op::SplatNew(tables.ty(source)?),
        GET_GLOBAL => Op::GetGlobal(tables.name(source)?),
        THROW_UNDEF_IF_NOT => Op::ThrowUndefIfNot(tables.name(source)?),
        LOOP_INFO => Op::LoopInfo(Meta::new(source.index("note", counts.metas)?)),
        STATIC_PARAMETER => Op::StaticParameter(source.small()?),
        C_FUNCTION => Op::CFunction(Callee::new(source.index("callee", counts.callees)?)),
        C_GLOBAL => Op::CGlobal(tables.name(source)?),
        STATIC_DEFINED => Op::StaticDefined(source.small()?),
        SPEND => Op::Spend(source.small()?),
        LOAD => Op::Load(read_access(source)?),
        STORE => Op::Store(read_access(source)?),
        ATOMIC_LOAD => Op::AtomicLoad(source.choice("order", &Ordering::ALL)?),
        ATOMIC_STORE => Op::AtomicStore(source.choice("order", &Ordering::ALL)?),
        ATOMIC_RMW => {
            let op = source.choice("atomic operation", &RmwOp::ALL)?;
            Op::AtomicRmw(op, source.choice("order", &Ordering::ALL)?)
        }
        ATOMIC_CAS => Op::AtomicCas(source.choice("order", &Ordering::ALL)?),
        SLOT_ADDR => Op::SlotAddr(Slot::new(source.index("stack slot", counts.slots)?)),
        CALL_SYMBOL => Op::CallSymbol(Callee::new(source.index("callee", counts.callees)?)),
        CALL_RUNTIME => Op::CallRuntime(named(tables, source, "entry point", RuntimeFn::from_symbol)?),
        ALLOC => Op::Alloc(tables.ty(source)?),
        ALLOC_STACK => Op::AllocStack(tables.ty(source)?),
        CALL_ARGS => {
            let array = |name: &str| RuntimeFn::from_symbol(name).filter(|f| f.takes_array());
            Op::CallArgs(named(tables, source, "entry point", array)?)
        }
        LANES => {
            let lanes = source.choice("lanes", &Lanes::ALL)?;
            Op::Lanes(named(tables, source, "intrinsic", Intrinsic::from_name)?, lanes)
        }
        SPLAT => Op::Splat(source.choice("lanes", &Lanes::ALL)?),
        EXTRACT_LANE => Op::ExtractLane(source.choice("lanes", &Lanes::ALL)?, source.byte()?),
        INSERT_LANE => Op::InsertLane(source.choice("lanes", &Lanes::ALL)?, source.byte()?),
        tag => return source.refuse(Refusal::Tag { what: "operation", tag }),
    })
}

fn named<T>(
    tables: Tables<'_>,
    source: &mut Source<'_>,
    what: &'static str,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, BinaryError> {
    let name = tables.text(source)?;
    match find(name) {
        Some(found) => Ok(found),
        None => source.refuse(Refusal::Name { what, name: name.to_owned() }),
    }
}

fn read_access(source: &mut Source<'_>) -> Result<Access, BinaryError> {
    let offset = source.signed()?;
    let Ok(offset) = i32::try_from(offset) else { return source.refuse(Refusal::Number) };
    let region = source.choice("region", &Region::ALL)?;
    Ok(Access { offset, region, align_log2: source.byte()? })
}
