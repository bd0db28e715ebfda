//! Types of low IR: registers, memory, and the classes of pointers.
//!
//! | rule about pointer classes | why |
//! |---|---|
//! | a raw pointer may become any class; tracked may become derived or callee-rooted; nothing else is cast | only the start of an object can be rooted |
//! | derived and callee-rooted pointers are not stored, and not loaded | memory does not record their base |
//! | no access through a callee-rooted pointer | it is only passed on |
//! | a returned pointer is raw or tracked | the caller has no base |
//! | integers are converted only to and from raw pointers | the collector would lose it |

use super::{CallRule, Checker, TypeRule};
use crate::builtin::Builtin;
use crate::constant::{Address, Const};
use crate::entity::Inst;
use crate::func::{CalleeData, SlotData};
use crate::intrinsic::Intrinsic;
use crate::lanes::Lanes;
use crate::module::Global;
use crate::names::Name;
use crate::op::{Access, Op, Ordering, Region, RmwOp};
use crate::runtime_fn::RuntimeFn;
use crate::types::{LowType, PtrClass, Type};

/// Rules about memory and pointers in low IR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LowRule {
    /// `low-address`: a value of this type is not an address of memory.
    Address { given: Type },
    /// `low-memory-class`: pointers of this class are not stored in memory.
    MemoryClass { given: Type },
    /// `low-constant`: constant memory is written.
    ConstantWritten,
    /// `low-align`: the alignment exceeds the alignment of any object.
    Align { log2: u8 },
    /// `low-slot`: the access leaves its stack slot.
    OutsideSlot {
        /// The first byte.
        offset: i32,
        bytes: u32,
        /// The size of the slot.
        size: u32,
    },
    /// `low-slot-size`: the stack slot exceeds the limit of a frame.
    SlotSize { size: u32 },
    /// `low-order`: the memory order does not exist for this access.
    Order { order: Ordering },
    /// `low-atomic`: values of this type cannot be accessed atomically, or not changed this way.
    Atomic { given: Type },
    /// `low-class`: a pointer of one class cannot be converted to another class, or to an integer.
    Class {
        /// The actual class.
        from: Type,
        /// The required class.
        to: Type,
    },
    /// `low-object-type`: objects of this type have no fixed size, or cannot be made.
    ObjectType { given: Type },
    /// `low-tracked-slot`: a slot for a reference does not have the size of an address, or holds something
    /// else.
    TrackedSlot {
        /// The type that is read or written, unless the size is wrong.
        given: Option<Type>,
    },
    /// `low-lanes`: the intrinsic does not exist for these lanes.
    NoLanes { op: Intrinsic, lanes: Lanes },
    /// `low-lane`: there is no lane with this number.
    Lane { lane: u8, lanes: Lanes },
    /// `low-thread-local`: the address of the cell of a thread-local variable, which holds the value that
    /// threads begin with, is used otherwise than to find the cell of the thread.
    CellOfThreads { name: Name },
    /// `low-return-class`: a pointer of this class cannot be returned.
    ReturnClass { given: Type },
}

/// The largest alignment: a page.
const MAX_ALIGN_LOG2: u8 = 12;
/// The largest stack slot, in bytes.
const MAX_SLOT: u32 = 1 << 20;

impl Checker<'_> {
    pub(super) fn low(&mut self, inst: Inst) {
        let func = self.func;
        if func.op(inst) != Op::CallRuntime(RuntimeFn::ThreadCell) {
            self.no_cell_of_threads(inst);
        }
        match func.op(inst) {
            Op::Intrinsic(op) => self.intrinsic(inst, op),
            Op::Phi => {
                for n in 0..func.args(inst).len() {
                    self.same_as_result(inst, n);
                }
            }
            Op::Copy => self.same_as_result(inst, 0),
            Op::Builtin(Builtin::Ifelse) => {
                self.exact_operand(inst, 0, Type::I8);
                self.same_as_result(inst, 1);
                self.same_as_result(inst, 2);
            }
            Op::Branch => self.exact_operand(inst, 0, Type::I8),
            Op::Return => self.low_return(inst),
            Op::ForeignCall(foreign) => self.foreign_call(inst, foreign),
            Op::CallSymbol(callee) => self.call_symbol(inst, func.callee(callee)),
            Op::CFunction(callee) => match func.callee(callee) {
                CalleeData::Symbol { results, .. } if results.len() <= 1 => self.result_is(inst, Type::PTR),
                _ => self.at(inst, CallRule::NotSymbol),
            },
            Op::CGlobal(_) => self.result_is(inst, Type::PTR),
            Op::CallRuntime(f) => self.exact_call(inst, f.params(), f.results()),
            Op::Load(access) => {
                let ty = self.result_type(inst).unwrap_or(Type::I8);
                self.access(inst, access, ty);
                self.in_memory(inst, ty);
            }
            Op::Store(access) => {
                let ty = self.arg_type(inst, 1);
                self.access(inst, access, ty);
                self.in_memory(inst, ty);
                if access.region == Region::Constant {
                    self.at(inst, LowRule::ConstantWritten);
                }
            }
            Op::AtomicLoad(order) => {
                self.address(inst, 0);
                let ty = self.result_type(inst).unwrap_or(Type::I8);
                self.in_memory(inst, ty);
                self.atomic_type(inst, ty, true);
                self.atomic(inst, order, !matches!(order, Ordering::Release | Ordering::AcquireRelease));
            }
            Op::AtomicStore(order) => {
                self.address(inst, 0);
                self.in_memory(inst, self.arg_type(inst, 1));
                self.atomic_type(inst, self.arg_type(inst, 1), true);
                self.atomic(inst, order, !matches!(order, Ordering::Acquire | Ordering::AcquireRelease));
            }
            Op::AtomicRmw(rmw, order) => {
                self.address(inst, 0);
                self.same_as_result(inst, 1);
                self.in_memory(inst, self.arg_type(inst, 1));
                self.atomic_type(inst, self.arg_type(inst, 1), rmw == RmwOp::Xchg);
                self.atomic(inst, order, true);
            }
            Op::AtomicCas(order) => {
                self.address(inst, 0);
                self.same_as_result(inst, 1);
                self.same_as_result(inst, 2);
                self.in_memory(inst, self.arg_type(inst, 2));
                self.atomic_type(inst, self.arg_type(inst, 2), true);
                self.atomic(inst, order, true);
            }
            Op::SlotAddr(slot) => {
                let data = func.slot(slot);
                if data.size > MAX_SLOT {
                    self.at(inst, LowRule::SlotSize { size: data.size });
                }
                if data.align_log2 > MAX_ALIGN_LOG2 {
                    self.at(inst, LowRule::Align { log2: data.align_log2 });
                }
                if data.tracked
                    && (data.size != LowType::Ptr(PtrClass::Tracked).bytes() || data.align_log2 != 3)
                {
                    self.at(inst, LowRule::TrackedSlot { given: None });
                }
                self.result_is(inst, Type::PTR);
            }
            Op::MemCopy => {
                self.address(inst, 0);
                self.address(inst, 1);
                self.exact_operand(inst, 2, Type::I64);
            }
            Op::Alloc(ty) | Op::AllocStack(ty) => {
                if self.types.object_extent(ty).is_err() {
                    self.at(inst, LowRule::ObjectType { given: ty });
                }
                self.result_is(inst, Type::TRACKED);
            }
            Op::TypeOf | Op::PointerFromObjref => {
                self.exact_operand(inst, 0, Type::TRACKED);
                self.result_is(inst, Type::PTR);
            }
            Op::GcLoaded => {
                self.exact_operand(inst, 0, Type::TRACKED);
                self.exact_operand(inst, 1, Type::PTR);
                self.result_is(inst, Type::LOADED);
            }
            Op::WriteBarrier | Op::GcPreserveBegin => {
                for n in 0..func.args(inst).len() {
                    self.exact_operand(inst, n, Type::TRACKED);
                }
            }
            Op::CallArgs(f) => {
                if !f.takes_array() {
                    self.at(inst, super::CallRule::NotSymbol);
                }
                for n in 0..func.args(inst).len() {
                    self.exact_operand(inst, n, Type::TRACKED);
                }
                self.result_is(inst, Type::TRACKED);
            }
            Op::ThreadAddr => self.result_is(inst, Type::PTR),
            Op::Lanes(op, lanes) => {
                if !lanes.allows(op) {
                    self.at(inst, LowRule::NoLanes { op, lanes });
                }
                for n in 0..func.args(inst).len() {
                    let count = n == 1 && Lanes::shifts(op);
                    self.exact_operand(inst, n, if count { Type::I64 } else { Type::V128 });
                }
                self.result_is(inst, Type::V128);
            }
            Op::Splat(lanes) => {
                self.exact_operand(inst, 0, Type::low(lanes.element()));
                self.result_is(inst, Type::V128);
            }
            Op::ExtractLane(lanes, lane) => {
                self.lane(inst, lanes, lane);
                self.exact_operand(inst, 0, Type::V128);
                self.result_is(inst, Type::low(lanes.element()));
            }
            Op::InsertLane(lanes, lane) => {
                self.lane(inst, lanes, lane);
                self.exact_operand(inst, 0, Type::V128);
                self.exact_operand(inst, 1, Type::low(lanes.element()));
                self.result_is(inst, Type::V128);
            }
            Op::LaneSelect => {
                for n in 0..3 {
                    self.exact_operand(inst, n, Type::V128);
                }
                self.result_is(inst, Type::V128);
            }
            // Operations without operands, and those that `level` refuses.
            _ => {}
        }
    }

    /// Reports operands that are the cell of a thread-local variable.
    fn no_cell_of_threads(&mut self, inst: Inst) {
        let (func, module) = (self.func, self.module);
        for &arg in func.args(inst) {
            if let Some(&Const::Address(Address::Global(name))) = func.as_const(arg)
                && module.is_some_and(|module| module.global(name).is_some_and(Global::is_thread_local))
            {
                self.at(inst, LowRule::CellOfThreads { name });
            }
        }
    }

    fn lane(&mut self, inst: Inst, lanes: Lanes, lane: u8) {
        if u32::from(lane) >= lanes.count() {
            self.at(inst, LowRule::Lane { lane, lanes });
        }
    }

    fn exact_operand(&mut self, inst: Inst, operand: usize, wanted: Type) {
        let given = self.arg_type(inst, operand);
        if given != wanted {
            self.at(inst, TypeRule::Operand { operand, given, wanted: wanted.into() });
        }
    }

    fn same_as_result(&mut self, inst: Inst, operand: usize) {
        if let Some(result) = self.result_type(inst) {
            self.exact_operand(inst, operand, result);
        }
    }

    pub(super) fn exact_call(&mut self, inst: Inst, params: &[Type], results: &[Type]) {
        let func = self.func;
        let given = func.args(inst).len();
        if given != params.len() {
            let wanted = crate::intrinsic::Arity::exactly(params.len().min(255) as u8);
            self.at(inst, super::CallRule::OperandCount { given, wanted });
            return;
        }
        for (n, &param) in params.iter().enumerate() {
            self.exact_operand(inst, n, param);
        }
        let given: Vec<Type> = func.results(inst).map(|v| func.ty(v)).collect();
        if given.len() != results.len() {
            let (least, most) = (results.len(), results.len());
            self.at(inst, super::StructureRule::ResultCount { given: given.len(), least, most });
        } else if let Some((&given, &wanted)) = given.iter().zip(results).find(|(g, w)| g != w) {
            self.at(inst, TypeRule::Result { given, wanted: wanted.into() });
        }
    }

    fn low_return(&mut self, inst: Inst) {
        for (n, &ty) in self.returned_types(inst).iter().enumerate() {
            self.exact_operand(inst, n, ty);
            if !matches!(ty.ptr_class(), None | Some(PtrClass::Raw | PtrClass::Tracked)) {
                self.at(inst, LowRule::ReturnClass { given: ty });
            }
        }
    }

    fn address(&mut self, inst: Inst, operand: usize) {
        let given = self.arg_type(inst, operand);
        if matches!(given.ptr_class(), None | Some(PtrClass::CalleeRooted)) {
            self.at(inst, LowRule::Address { given });
        }
    }

    fn in_memory(&mut self, inst: Inst, given: Type) {
        if matches!(given.ptr_class(), Some(PtrClass::Derived | PtrClass::CalleeRooted)) {
            self.at(inst, LowRule::MemoryClass { given });
        }
    }

    fn access(&mut self, inst: Inst, access: Access, ty: Type) {
        self.address(inst, 0);
        if access.align_log2 > MAX_ALIGN_LOG2 {
            self.at(inst, LowRule::Align { log2: access.align_log2 });
        }
        let bytes = ty.as_low().map_or(0, |low| low.bytes());
        let base = self.arg(inst, 0).and_then(|v| self.func.def_inst(v)).map(|i| self.func.op(i));
        if let Some(Op::SlotAddr(slot)) = base {
            let SlotData { size, tracked, .. } = self.func.slot(slot);
            if tracked && ty != Type::TRACKED {
                self.at(inst, LowRule::TrackedSlot { given: Some(ty) });
            }
            let first = i64::from(access.offset);
            if first < 0 || first + i64::from(bytes) > i64::from(size) {
                self.at(inst, LowRule::OutsideSlot { offset: access.offset, bytes, size });
            }
        }
    }

    /// Atomic accesses take integers and addresses; references can only be replaced as a whole.
    fn atomic_type(&mut self, inst: Inst, given: Type, keeps_bits: bool) {
        let exists = match given.as_low() {
            Some(LowType::Ptr(PtrClass::Raw)) => true,
            Some(LowType::Ptr(_)) => keeps_bits,
            Some(low) => given != Type::V128 && !low.is_float(),
            None => false,
        };
        if !exists {
            self.at(inst, LowRule::Atomic { given });
        }
    }

    fn atomic(&mut self, inst: Inst, order: Ordering, exists: bool) {
        if !exists || matches!(order, Ordering::NotAtomic) {
            self.at(inst, LowRule::Order { order });
        }
    }

    /// Reinterpreting bits of one size: which classes of pointers may become which.
    pub(super) fn cast(&mut self, inst: Inst, from: Type, to: Type) {
        let allowed = match (from.ptr_class(), to.ptr_class()) {
            (None, None) => true,
            (Some(PtrClass::Raw), _) | (None, Some(PtrClass::Raw)) => true,
            (Some(PtrClass::Tracked), Some(PtrClass::Derived | PtrClass::CalleeRooted)) => true,
            (Some(a), Some(b)) => a == b,
            _ => false,
        };
        if !allowed {
            self.at(inst, LowRule::Class { from, to });
        }
    }
}
