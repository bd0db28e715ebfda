//! Interprets the operations of low IR: values are bits of low types, memory is accessed by address.
//!
//! Frames and intrinsics are shared with high IR; comparisons return `i8`, and checked operations have two
//! results. A constant address refers to a record, which is created in raw memory on first use:
//!
//! ```text
//! symbol, string    length as 8 bytes, then the bytes, then a zero byte
//! data              the bytes
//! C function        one byte, whose address identifies it
//! ```
//!
//! The throwing routines of the run time throw the same exceptions as high IR, so that tests can compare both levels.

use super::Interp;
use super::error::{Eval, Fault, Stop};
use super::exec::{Flow, Then};
use super::value::{Val, mask};
use brolga_ir::Name;
use brolga_ir::base_fn::{BaseFn, Thrown};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::entity::{FuncId, Inst};
use brolga_ir::func::{CalleeData, Func};
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::op::{Level, Op, RmwOp};
use brolga_ir::runtime_fn::RuntimeFn;
use brolga_ir::types::{LowType, Type};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// The records of constant addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// By address; for constant bytes also by their function.
    records: FxHashMap<(Option<FuncId>, Address), u64>,
    /// The names of symbols, strings and C functions.
    texts: FxHashMap<u64, Name>,
    /// Functions of the program that C may call, in both directions.
    entries: FxHashMap<FuncId, u64>,
    entries_at: FxHashMap<u64, FuncId>,
}

impl Addresses {
    /// The text of the record at this address.
    pub(super) fn text_at(&self, address: u64) -> Option<Name> {
        self.texts.get(&address).copied()
    }

    /// The C function with this address.
    pub(super) fn function_at(&self, address: u64) -> Option<Name> {
        // `texts` also has symbols and strings, so the address must be the function's.
        let name = *self.texts.get(&address)?;
        (self.records.get(&(None, Address::Foreign(name))) == Some(&address)).then_some(name)
    }

    /// The address through which C calls a function of the program, if it has one.
    pub(super) fn entry(&self, function: FuncId) -> Option<u64> {
        self.entries.get(&function).copied()
    }

    /// The function of the program with this address for C.
    pub(super) fn entry_at(&self, address: u64) -> Option<FuncId> {
        self.entries_at.get(&address).copied()
    }

    pub(super) fn set_entry(&mut self, function: FuncId, address: u64) {
        self.entries.insert(function, address);
        self.entries_at.insert(address, function);
    }
}

impl<'m> Interp<'m> {
    pub(super) fn low_op(&mut self, func: &'m Func, inst: Inst, op: Op) -> Eval<Flow> {
        match op {
            Op::Intrinsic(intrinsic) => {
                let args = self.all_operands(func, inst)?;
                self.low_intrinsic(func, inst, intrinsic, &args)
            }
            Op::Builtin(Builtin::Ifelse) => {
                let args = self.all_operands(func, inst)?;
                self.builtin(Builtin::Ifelse, args, Then::Assign)
            }
            Op::ForeignCall(foreign) => {
                let args = self.all_operands(func, inst)?;
                self.foreign_call(func.foreign(foreign), args)
            }
            Op::Load(access) => {
                let [address] = self.operands(func, inst)?;
                let address = self.address(&address)?.wrapping_add_signed(i64::from(access.offset));
                let low = self.result_type(func, inst)?;
                self.load_low(address, 1 << access.align_log2.min(63), low).map(Flow::Value)
            }
            Op::Store(access) => {
                let [address, val] = self.operands(func, inst)?;
                let address = self.address(&address)?.wrapping_add_signed(i64::from(access.offset));
                self.store_low(address, 1 << access.align_log2.min(63), &val)?;
                Ok(Flow::Values(Vec::new()))
            }
            Op::AtomicLoad(_) => {
                let [address] = self.operands(func, inst)?;
                let (address, low) = (self.address(&address)?, self.result_type(func, inst)?);
                self.load_low(address, u64::from(low.bytes()), low).map(Flow::Value)
            }
            Op::AtomicStore(_) => {
                let [address, val] = self.operands(func, inst)?;
                let low = self.low_type(&val)?;
                let address = self.address(&address)?;
                self.store_low(address, u64::from(low.bytes()), &val)?;
                Ok(Flow::Values(Vec::new()))
            }
            Op::AtomicRmw(rmw, _) => {
                let [address, val] = self.operands(func, inst)?;
                let (address, low) = (self.address(&address)?, self.low_type(&val)?);
                let old = self.load_low(address, u64::from(low.bytes()), low)?;
                let (a, b) = (old.as_bits().unwrap_or(0), val.as_bits().unwrap_or(0));
                let bits = mask(rmw_bits(rmw, low.bits(), a, b), low.bits());
                self.store_low(address, u64::from(low.bytes()), &Val::Bits { ty: Type::low(low), bits })?;
                Ok(Flow::Value(old))
            }
            Op::AtomicCas(_) => {
                let [address, expected, val] = self.operands(func, inst)?;
                let (address, low) = (self.address(&address)?, self.low_type(&val)?);
                let old = self.load_low(address, u64::from(low.bytes()), low)?;
                if old.as_bits() == expected.as_bits() {
                    self.store_low(address, u64::from(low.bytes()), &val)?;
                }
                Ok(Flow::Value(old))
            }
            Op::SlotAddr(slot) => match self.frame()?.slots.get(slot.index()) {
                Some(&address) => Ok(Flow::Value(Val::Bits { ty: Type::PTR, bits: u128::from(address) })),
                None => Err(Fault::ForeignId(slot.to_string()).into()),
            },
            Op::MemCopy => {
                let [to, from, size] = self.operands(func, inst)?;
                let (to, from, size) = (self.address(&to)?, self.address(&from)?, self.address(&size)?);
                self.memory.copy(to, from, size)?;
                Ok(Flow::Values(Vec::new()))
            }
            Op::CFunction(callee) => {
                let address = self.c_function(func, callee)?;
                Ok(Flow::Value(Val::Bits { ty: Type::PTR, bits: u128::from(address) }))
            }
            Op::CGlobal(name) => {
                let address = self.c_symbol(name)?;
                Ok(Flow::Value(Val::Bits { ty: Type::PTR, bits: u128::from(address) }))
            }
            Op::CallSymbol(callee) => {
                let CalleeData::Symbol { symbol, .. } = func.callee(callee) else {
                    return Err(Fault::Unsupported("a call of a method in low IR".to_owned()).into());
                };
                let key = (self.frame()?.id, callee);
                let id = match self.invokes.get(&key) {
                    Some(&id) => id,
                    None => {
                        let found =
                            self.module.named(*symbol).find(|&id| self.module[id].level == Level::Low);
                        let Some(id) = found else {
                            let name = self.module.cx.names.text(*symbol).to_owned();
                            return Err(Fault::UnknownFunction(name).into());
                        };
                        self.invokes.insert(key, id);
                        id
                    }
                };
                let args = self.all_operands(func, inst)?;
                self.push_call(id, args, Then::Assign)
            }
            Op::CallRuntime(function) => {
                let args = self.all_operands(func, inst)?;
                self.runtime_fn(function, &args)
            }
            Op::Safepoint | Op::GcPreserveEnd => Ok(Flow::Values(Vec::new())),
            Op::Lanes(..) | Op::Splat(_) | Op::ExtractLane(..) | Op::InsertLane(..) | Op::LaneSelect => {
                self.vector(func, inst, op)
            }
            Op::Alloc(_)
            | Op::AllocStack(_)
            | Op::TypeOf
            | Op::WriteBarrier
            | Op::GcLoaded
            | Op::PointerFromObjref
            | Op::CallArgs(_)
            | Op::GcPreserveBegin
            | Op::ThreadAddr => self.no_objects("an operation on objects"),
            _ => Err(Fault::Unsupported(format!("{op:?} is not an operation of low IR")).into()),
        }
    }

    fn vector(&mut self, func: &Func, inst: Inst, op: Op) -> Eval<Flow> {
        let args = self.all_operands(func, inst)?;
        let bits: Vec<u128> = args.iter().map(|arg| arg.as_bits().unwrap_or(0)).collect();
        let result = match (op, &bits[..]) {
            (Op::Lanes(op, lanes), bits) => lanes.eval(op, bits),
            (Op::Splat(lanes), &[x]) => Some(lanes.splat(x)),
            (Op::ExtractLane(lanes, n), &[v]) => Some(lanes.extract(v, n.into())),
            (Op::InsertLane(lanes, n), &[v, x]) => Some(lanes.insert(v, n.into(), x)),
            (Op::LaneSelect, &[mask, yes, no]) => Some(brolga_ir::lanes::select(mask, yes, no)),
            _ => None,
        };
        match result {
            Some(bits) => {
                let ty = Type::low(self.result_type(func, inst)?);
                Ok(Flow::Value(Val::Bits { ty, bits }))
            }
            None => Err(self.bad_count(func, inst, args.len())),
        }
    }

    fn low_intrinsic(&mut self, func: &Func, inst: Inst, op: Intrinsic, args: &[Val]) -> Eval<Flow> {
        if op.shape() == Shape::AtomicFence {
            return Ok(Flow::Values(Vec::new()));
        }
        let Some(result) = func.results(inst).next() else {
            return Err(self.bad_count(func, inst, args.len()));
        };
        if op.shape() == Shape::Query {
            return Ok(Flow::Value(Val::Bits { ty: Type::I8, bits: 0 }));
        }
        let (val, wrapped) = self.scalar_op(op, func.ty(result), args)?;
        Ok(match wrapped {
            None => Flow::Value(val),
            Some(wrapped) => Flow::Values(vec![val, Val::Bits { ty: Type::I8, bits: u128::from(wrapped) }]),
        })
    }

    fn result_type(&self, func: &Func, inst: Inst) -> Eval<LowType> {
        let low = func.result(inst).and_then(|v| func.ty(v).as_low());
        low.ok_or_else(|| self.bad_count(func, inst, 0))
    }

    fn low_type(&self, val: &Val) -> Eval<LowType> {
        let low = val.ty(self.types()).as_low();
        low.ok_or_else(|| self.bad_operand("a memory access", "a low value", val))
    }

    /// A 64-bit value as an address.
    fn address(&self, val: &Val) -> Eval<u64> {
        match *val {
            Val::Bits { ty, bits } if matches!(ty.as_low(), Some(LowType::Ptr(_) | LowType::I64)) => {
                Ok(bits as u64)
            }
            ref other => Err(self.bad_operand("a memory access", "an address", other)),
        }
    }

    fn load_low(&mut self, address: u64, align: u64, low: LowType) -> Eval<Val> {
        let mut word = [0; 16];
        self.memory.load(address, align, &mut word[..low.bytes() as usize])?;
        Ok(Val::Bits { ty: Type::low(low), bits: u128::from_le_bytes(word) })
    }

    fn store_low(&mut self, address: u64, align: u64, val: &Val) -> Eval<()> {
        let low = self.low_type(val)?;
        let bytes = val.as_bits().unwrap_or(0).to_le_bytes();
        Ok(self.memory.store(address, align, &bytes[..low.bytes() as usize])?)
    }

    // ----- constant addresses -----

    pub(super) fn address_of(&mut self, address: Address) -> Eval<Val> {
        let function = match address {
            Address::Data(_) => Some(self.frame()?.id),
            _ => None,
        };
        let bits = match self.addresses.records.get(&(function, address)) {
            Some(&known) => known,
            None => {
                let made = self.new_record(address)?;
                self.addresses.records.insert((function, address), made);
                made
            }
        };
        Ok(Val::Bits { ty: Type::PTR, bits: u128::from(bits) })
    }

    fn new_record(&mut self, address: Address) -> Eval<u64> {
        match address {
            Address::Symbol(name) | Address::String(name) => self.text_record(name),
            Address::Foreign(name) => {
                let address = self.memory.allocate(1, 16)?;
                self.addresses.texts.insert(address, name);
                Ok(address)
            }
            Address::Data(number) => {
                let data = self.frame()?.func.data().get(number as usize);
                let Some(data) = data else { return Err(Fault::ForeignId(format!("data {number}")).into()) };
                let address = self.memory.allocate(data.len() as u64, 16)?;
                self.memory.store(address, 1, data)?;
                Ok(address)
            }
            Address::Type(_)
            | Address::Module(_)
            | Address::Instance(_)
            | Address::Boxed(..)
            | Address::Global(_) => self.no_objects("the address of an object"),
        }
    }

    fn no_objects<T>(&self, what: &str) -> Eval<T> {
        Err(Fault::Unsupported(format!("{what} in low IR: objects exist in high IR only")).into())
    }

    fn text_record(&mut self, name: Name) -> Eval<u64> {
        let text = self.module.cx.names.text(name).as_bytes();
        let mut record = (text.len() as u64).to_le_bytes().to_vec();
        record.extend_from_slice(text);
        record.push(0);
        let address = self.memory.allocate(record.len() as u64, 16)?;
        self.memory.store(address, 1, &record)?;
        self.addresses.texts.insert(address, name);
        Ok(address)
    }

    // ----- the run time -----

    fn runtime_fn(&mut self, function: RuntimeFn, args: &[Val]) -> Eval<Flow> {
        let fits = args.len() == function.params().len()
            && args.iter().zip(function.params()).all(|(arg, &ty)| self.is_a(arg, ty));
        if !fits {
            return Err(Fault::OperandCount { op: function.to_string(), given: args.len() }.into());
        }
        let bits = |n: usize| args.get(n).and_then(Val::as_bits).unwrap_or(0);
        let print = |interp: &mut Self, ty: Type, bits: u128| -> Eval<Flow> {
            let val = Val::bits(interp.types(), ty, bits);
            let text = interp.print_bytes(&val)?;
            interp.output.write(&text);
            Ok(Flow::Values(Vec::new()))
        };
        match function {
            RuntimeFn::ThrowDivide => Err(self.exception("DivideError", Vec::new())),
            RuntimeFn::ThrowUndefRef => Err(self.exception("UndefRefError", Vec::new())),
            RuntimeFn::ThrowBounds => {
                let index = Val::bits(self.types(), Type::INT64, bits(0));
                Err(self.bounds_error(Val::NOTHING, index))
            }
            RuntimeFn::ThrowOperands => {
                let Some(thrown) = u32::try_from(bits(0)).ok().and_then(Thrown::unpack) else {
                    return Err(Fault::Type("a throw with an unknown code".to_owned()).into());
                };
                let mut operands = Vec::new();
                if thrown.function.takes_symbol() {
                    operands.push(Val::Symbol(self.record(bits(1))?));
                }
                for (n, ty) in thrown.types.into_iter().enumerate() {
                    let Some(ty) = ty else { continue };
                    operands.push(match (thrown.function, n) {
                        (BaseFn::ThrowInexacterror, 0) => Val::Type(ty),
                        _ => Val::bits(self.types(), ty, bits(2 + 2 * n) | bits(3 + 2 * n) << 64),
                    });
                }
                Err(self.base_exception(thrown.function, &operands)?)
            }
            RuntimeFn::ThrowError => Err(self.thrown_text("ErrorException", bits(0))),
            RuntimeFn::ThrowArgument => Err(self.thrown_text("ArgumentError", bits(0))),
            RuntimeFn::ThrowUndefVar => {
                let name = self.record(bits(0))?;
                Err(self.undefined_variable(name))
            }
            RuntimeFn::PrintInt => print(self, Type::INT64, bits(0)),
            RuntimeFn::PrintUInt => print(self, Type::UINT64, mask(bits(0), bits(1) as u32)),
            RuntimeFn::PrintInt128 => {
                let ty = if bits(2) == 1 { Type::INT128 } else { Type::UINT128 };
                print(self, ty, bits(0) | bits(1) << 64)
            }
            RuntimeFn::PrintFloat => {
                let ty = match bits(1) {
                    16 => Type::FLOAT16,
                    32 => Type::FLOAT32,
                    _ => Type::FLOAT64,
                };
                print(self, ty, bits(0))
            }
            RuntimeFn::PrintBool => print(self, Type::BOOL, bits(0) & 1),
            RuntimeFn::PrintChar => print(self, Type::CHAR, bits(0)),
            RuntimeFn::PrintString | RuntimeFn::PrintSymbol => {
                let text = self.record_text(bits(0))?;
                self.output.write(text.as_bytes());
                Ok(Flow::Values(Vec::new()))
            }
            RuntimeFn::PrintNothing => {
                self.output.write(b"nothing");
                Ok(Flow::Values(Vec::new()))
            }
            RuntimeFn::ExceptionDepth => {
                let bits = self.exceptions.len() as u128;
                Ok(Flow::Value(Val::Bits { ty: Type::I64, bits }))
            }
            RuntimeFn::PopException => {
                self.exceptions.truncate(usize::try_from(bits(0)).unwrap_or(usize::MAX));
                Ok(Flow::Values(Vec::new()))
            }
            RuntimeFn::GcLeave | RuntimeFn::GcEnter => Ok(Flow::Values(Vec::new())),
            RuntimeFn::PrintAny
            | RuntimeFn::GcAlloc
            | RuntimeFn::GcMemory
            | RuntimeFn::GcString
            | RuntimeFn::ArrayGrowEnd
            | RuntimeFn::ArrayDelEnd
            | RuntimeFn::ArrayDelBeg
            | RuntimeFn::BoxInt
            | RuntimeFn::GetField
            | RuntimeFn::TupleLength
            | RuntimeFn::TupleElement
            | RuntimeFn::WeakRef
            | RuntimeFn::CarriedException
            | RuntimeFn::Refuel
            | RuntimeFn::ThreadCell
            | RuntimeFn::GcWrite
            | RuntimeFn::GcWriteAt
            | RuntimeFn::Throw
            | RuntimeFn::ThrowTypeAssert
            | RuntimeFn::ThrowBoundsOf
            | RuntimeFn::ThrowBoundsIn
            | RuntimeFn::Rethrow
            | RuntimeFn::CurrentException
            | RuntimeFn::Isa
            | RuntimeFn::Subtype
            | RuntimeFn::Egal
            | RuntimeFn::ObjectId
            | RuntimeFn::Apply
            | RuntimeFn::ApplyLatest
            | RuntimeFn::ApplyBuiltin
            | RuntimeFn::ApplyIterate
            | RuntimeFn::Tuple
            | RuntimeFn::JuliaCall
            | RuntimeFn::StaticParameter
            | RuntimeFn::StaticDefined => self.no_objects(function.symbol()),
            RuntimeFn::PrintPtr => {
                self.output.write(format!("Ptr{{Nothing}} @0x{:016x}", bits(0)).as_bytes());
                Ok(Flow::Values(Vec::new()))
            }
        }
    }

    fn record(&self, address: u128) -> Eval<Name> {
        self.addresses.text_at(address as u64).ok_or_else(|| {
            Fault::Unsupported(format!("0x{address:x} is not the address of a symbol or string")).into()
        })
    }

    fn record_text(&self, address: u128) -> Eval<&'m str> {
        Ok(self.module.cx.names.text(self.record(address)?))
    }

    fn thrown_text(&mut self, exception: &str, address: u128) -> Stop {
        match self.record_text(address) {
            Ok(text) => self.message(exception, text),
            Err(stop) => stop,
        }
    }
}

fn rmw_bits(op: RmwOp, width: u32, old: u128, val: u128) -> u128 {
    let signed = |bits: u128| (bits << (128 - width)).cast_signed() >> (128 - width);
    match op {
        RmwOp::Xchg => val,
        RmwOp::Add => old.wrapping_add(val),
        RmwOp::Sub => old.wrapping_sub(val),
        RmwOp::And => old & val,
        RmwOp::Nand => !(old & val),
        RmwOp::Or => old | val,
        RmwOp::Xor => old ^ val,
        RmwOp::Smax => std::cmp::max_by_key(old, val, |&bits| signed(bits)),
        RmwOp::Smin => std::cmp::min_by_key(old, val, |&bits| signed(bits)),
        RmwOp::Umax => old.max(val),
        RmwOp::Umin => old.min(val),
    }
}
