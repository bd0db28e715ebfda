//! Computes the effects of an instruction: its operation's effects, refined by the operands.

use super::{Effects, Regions};
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::{Inst, Value};
use crate::func::Func;
use crate::intrinsic::{Convert, Intrinsic, Shape};
use crate::op::{Access, Op, Ordering, Region};
use crate::room::has_room;
use crate::runtime_fn::{RuntimeFn, RuntimeKind};
use crate::types::{DeclKind, FieldRepr, LowType, PtrClass, StaticBound, Type, TypeKind, Types, decl};

/// The effects of an instruction of a verified function.
pub fn effects(func: &Func, types: &Types, inst: Inst) -> Effects {
    let found = effects_of_op(func, types, inst);
    // A row of type `Union{}` throws if its operation returns, so it is needed although no row uses it. A φ,
    // a copy and a φᶜ pass another row's value on.
    let passes_on = matches!(func.op(inst), Op::Phi | Op::PhiC | Op::Copy);
    let comes_back = func.results(inst).next().is_none_or(|result| func.ty(result) != Type::BOTTOM);
    if comes_back || passes_on { found } else { found.throwing(true) }
}

fn effects_of_op(func: &Func, types: &Types, inst: Inst) -> Effects {
    const PURE: Effects = Effects::PURE;
    const PINNED: Effects = Effects { pinned: true, ..Effects::PURE };
    const CONTROL: Effects = Effects { pinned: true, effect_free: false, ..Effects::PURE };
    let cx = Cx { func, types, inst };
    match func.op(inst) {
        Op::Intrinsic(op) => cx.intrinsic(op),
        Op::Builtin(op) => cx.builtin(op),
        Op::Phi => PINNED,
        Op::PhiC => PINNED.reading(Regions::TASK),
        Op::Copy | Op::SlotAddr(_) | Op::BoundsCheck(_) => PURE,
        Op::Pi => PURE.unchecked(!cx.arg_is(0, cx.result_type())),
        Op::Goto | Op::Branch | Op::Return | Op::Unreachable | Op::LoopInfo(_) => CONTROL,
        // The edge to the handler bypasses the protected region, but the handler sees the region's effects.
        Op::Enter => CONTROL.reading(Regions::ALL).writing(Regions::ALL),
        Op::Leave | Op::PopException => CONTROL.reading(Regions::TASK).writing(Regions::TASK),
        Op::Upsilon => PURE.writing(Regions::TASK),
        Op::TheException => PINNED.reading(Regions::TASK),
        Op::Invoke(callee) | Op::CallSymbol(callee) => func.callee_effects(callee).unwrap_or(Effects::ANY),
        Op::Call | Op::ForeignCall(_) => Effects::ANY,
        Op::New(ty) | Op::SplatNew(ty) => cx.new_object(ty),
        Op::GetGlobal(_) => PURE.reading(Regions::GLOBALS),
        Op::ThrowUndefIfNot(_) => PURE.throwing(cx.bits(0) != Some(1)),
        Op::StaticParameter(number) => {
            let known = func.sig.statics.get(number).map(|param| param.bound);
            PURE.throwing(!matches!(known, Some(StaticBound::Value(_))))
        }
        Op::StaticDefined(_) | Op::CFunction(_) => PURE,
        // A missing symbol may exist the next time.
        Op::CGlobal(_) => PURE.throwing(true).reading(Regions::OUTSIDE).writing(Regions::TASK),
        Op::GcPreserveBegin => CONTROL,
        // What reads or writes by an address stays before it. Other accesses name their object.
        Op::GcPreserveEnd => CONTROL.reading(Regions::RAW).writing(Regions::RAW),
        Op::CodeCoverage => PURE.writing(Regions::OUTSIDE),
        Op::Spend(_) => {
            let spends = PURE.reading(Regions::TASK).writing(Regions::TASK | Regions::OUTSIDE).throwing(true);
            Effects { may_safepoint: true, ..spends }
        }
        Op::Load(access) => cx.load(access),
        Op::Store(access) => cx.store(access),
        Op::AtomicLoad(order) => PURE.reading(Regions::ADDRESSABLE).unchecked(true).atomic(order),
        Op::AtomicStore(order) => PURE.writing(Regions::ADDRESSABLE).unchecked(true).atomic(order),
        Op::AtomicRmw(_, order) | Op::AtomicCas(order) => {
            PURE.reading(Regions::ADDRESSABLE).writing(Regions::ADDRESSABLE).unchecked(true).atomic(order)
        }
        Op::MemCopy => PURE.reading(Regions::ADDRESSABLE).writing(Regions::ADDRESSABLE).unchecked(true),
        Op::CallRuntime(f) => match f.kind() {
            RuntimeKind::Throws => PURE.throwing(true).writing(Regions::TASK),
            // Printing an object follows its references.
            RuntimeKind::Prints => {
                let objects = Regions::POINTABLE | Regions::HEADERS;
                let writes = PURE.writing(Regions::OUTSIDE | Regions::TASK);
                Effects { may_safepoint: true, ..writes.reading(objects) }
            }
            RuntimeKind::Allocates => PURE.reading(Regions::TASK).throwing(true),
            RuntimeKind::Refills => {
                let refills = PURE.reading(Regions::TASK).writing(Regions::TASK).throwing(true);
                Effects { may_safepoint: true, ..refills }
            }
            // Resizing may move the elements to another `Memory`.
            RuntimeKind::Resizes => {
                let array = Regions::HEADERS | Regions::ELEMENTS;
                PURE.reading(array | Regions::TASK).writing(array | Regions::TASK).throwing(true)
            }
            RuntimeKind::Reads => {
                let objects = Regions::POINTABLE | Regions::HEADERS;
                PURE.reading(objects | Regions::TASK).writing(Regions::TASK).throwing(true)
            }
            // Except for the identity test, operands must not be null, so these must not move above a null
            // test.
            RuntimeKind::Asks if f == RuntimeFn::ObjectId => {
                PURE.reading(Regions::POINTABLE | Regions::HEADERS).unchecked(true)
            }
            RuntimeKind::Asks => {
                PURE.reading(Regions::FIELDS | Regions::ELEMENTS).unchecked(f != RuntimeFn::Egal)
            }
            // A thread does not change under its activations.
            RuntimeKind::Finds => PURE,
            RuntimeKind::Barrier => PURE.writing(Regions::TASK),
            RuntimeKind::Handles => {
                Effects { pinned: true, may_safepoint: true, ..PURE.writing(Regions::TASK) }
            }
            RuntimeKind::Region | RuntimeKind::Args => Effects::ANY,
        },
        Op::CallArgs(_) => Effects::ANY,
        // The identity of the object is observable, its allocation is not. It must not move past a write barrier, because no
        // collection may come between a store and its barrier.
        Op::Alloc(_) => Effects { consistent: false, may_safepoint: true, ..PURE.reading(Regions::TASK) },
        // Like `Alloc`; it also overwrites the object of its previous execution. That is not observable,
        // because no later access to that object exists, so an allocation without uses is removable.
        Op::AllocStack(_) => {
            let initialized = Regions::POINTABLE | Regions::HEADERS;
            let alloc = Effects { consistent: false, may_safepoint: true, ..PURE.reading(Regions::TASK) };
            Effects { effect_free: true, ..alloc.writing(initialized) }
        }
        Op::Lanes(..) | Op::Splat(_) | Op::ExtractLane(..) | Op::InsertLane(..) | Op::LaneSelect => PURE,
        // Reads a tag, so it must not move above a null test.
        Op::TypeOf => PURE.unchecked(true),
        Op::GcLoaded | Op::PointerFromObjref | Op::ThreadAddr => PURE,
        Op::WriteBarrier => PURE.writing(Regions::TASK),
        // The thread that stops this one may read all memory, so earlier writes must be done; loads may move
        // across.
        Op::Safepoint => Effects { effect_free: false, may_safepoint: true, ..PURE.reading(Regions::ALL) },
    }
}

impl Effects {
    /// Orders stronger than `monotonic` are fences for other accesses.
    fn atomic(self, order: Ordering) -> Effects {
        Effects { fence: self.fence || order > Ordering::Monotonic, ..self }
    }
}

/// An instruction with its function and types.
struct Cx<'a> {
    func: &'a Func,
    types: &'a Types,
    inst: Inst,
}

impl<'a> Cx<'a> {
    fn arg(&self, n: usize) -> Option<Value> {
        self.func.args(self.inst).get(n).copied()
    }

    fn arg_type(&self, n: usize) -> Type {
        self.arg(n).map_or(Type::ANY, |v| self.func.ty(v))
    }

    fn arg_is(&self, n: usize, ty: Type) -> bool {
        self.types.is_subtype(self.arg_type(n), ty)
    }

    fn constant(&self, n: usize) -> Option<&'a Const> {
        self.func.as_const(self.arg(n)?)
    }

    fn bits(&self, n: usize) -> Option<u128> {
        self.func.as_bits(self.arg(n)?)
    }

    fn symbol(&self, n: usize) -> Option<&'a str> {
        match self.constant(n)? {
            Const::Symbol(name) => Some(self.types.names().text(*name)),
            _ => None,
        }
    }

    /// The type that an operand denotes.
    fn type_constant(&self, n: usize) -> Option<Type> {
        match self.constant(n)? {
            Const::Type { of, .. } => Some(*of),
            _ => None,
        }
    }

    fn result_type(&self) -> Type {
        self.func.result(self.inst).map_or(Type::ANY, |v| self.func.ty(v))
    }

    /// Whether an operand disables bounds checks.
    fn is_unchecked(&self, op: Builtin) -> bool {
        op.bounds_operands(self.func.args(self.inst).len())
            .any(|n| self.arg_is(n, Type::BOOL) && self.is_false(n))
    }

    /// Whether operand `n` is false.
    fn is_false(&self, n: usize) -> bool {
        match self.arg(n).map(|v| (self.func.as_bits(v), self.func.def_inst(v))) {
            Some((Some(bits), _)) => bits == 0,
            Some((_, Some(inst))) => self.func.op(inst) == Op::BoundsCheck(false),
            _ => false,
        }
    }

    fn intrinsic(&self, op: Intrinsic) -> Effects {
        let pure = Effects::PURE;
        match op.shape() {
            // A speculated cast could turn a word that is not an object into a reference, which the collector
            // would follow.
            Shape::Convert(Convert::Bits) => pure.unchecked(self.makes_reference()),
            Shape::IntDivide => pure.throwing(!self.divides_safely(op)),
            // A pointer to boxed values may point to an undefined one.
            Shape::PtrLoad => {
                let boxed = self.is_stored_boxed(self.types.pointee(self.arg_type(0)));
                pure.reading(Regions::POINTABLE).unchecked(true).throwing(boxed)
            }
            Shape::PtrStore => pure.writing(Regions::POINTABLE).unchecked(true),
            Shape::AtomicFence => Effects { fence: true, effect_free: false, ..pure },
            Shape::AtomicLoad => {
                Effects { fence: true, ..pure.reading(Regions::POINTABLE).unchecked(true).throwing(true) }
            }
            Shape::AtomicStore | Shape::AtomicSwap | Shape::AtomicReplace => {
                let both = pure.reading(Regions::POINTABLE).writing(Regions::POINTABLE);
                Effects { fence: true, ..both.unchecked(true).throwing(true) }
            }
            Shape::AtomicModify | Shape::Foreign => Effects { fence: true, ..Effects::ANY },
            _ => pure,
        }
    }

    /// Whether the cast may turn a word other than the address of a permanent object into a reference.
    fn makes_reference(&self) -> bool {
        let is_reference =
            |ty: Type| matches!(ty.as_low(), Some(LowType::Ptr(class)) if class != PtrClass::Raw);
        let is_permanent = matches!(self.constant(0), Some(Const::Address(address)) if address.is_object());
        is_reference(self.result_type()) && !is_reference(self.arg_type(0)) && !is_permanent
    }

    /// Whether the divisor is a constant with which no division throws: not 0, and for signed quotients not
    /// -1, which overflows for the smallest integer.
    fn divides_safely(&self, op: Intrinsic) -> bool {
        let ty = self.arg_type(1);
        let width = match ty.as_low() {
            Some(low) => low.bits(),
            None => self.types.primitive(ty).map_or(128, |(bits, _)| u32::from(bits)),
        };
        let minus_one = u128::MAX >> (128 - width.min(128));
        let signed = matches!(op, Intrinsic::SdivInt | Intrinsic::CheckedSdivInt);
        self.bits(1).is_some_and(|d| d != 0 && !(signed && d == minus_one))
    }

    fn builtin(&self, op: Builtin) -> Effects {
        let effects = self.builtin_but_for_order(op);
        // Conservative: a symbol operand that is not an order but is spelled like one also counts.
        let ordered = (2..self.func.args(self.inst).len())
            .any(|n| self.symbol(n).and_then(Ordering::from_name).is_some_and(|o| o > Ordering::Monotonic));
        Effects { fence: effects.fence || ordered, ..effects }
    }

    fn builtin_but_for_order(&self, op: Builtin) -> Effects {
        let types = self.types;
        let coarse = self.coarse(op);
        let defined = Effects { nothrow: true, may_safepoint: op.allocates(), ..coarse };
        match op {
            Builtin::Isa if self.type_constant(1).is_some() => defined,
            Builtin::Subtype if [0, 1].iter().all(|&n| self.arg_is(n, types.supertype(Type::DATATYPE))) => {
                defined
            }
            Builtin::Typeassert if self.type_constant(1).is_some_and(|ty| self.arg_is(0, ty)) => defined,
            Builtin::Ifelse if matches!(self.arg_type(0), Type::BOOL | Type::I8) => defined,
            Builtin::Sizeof if self.arg_type(0) == Type::STRING => Effects::PURE,
            Builtin::Compilerbarrier => defined,
            Builtin::Arraylen if types.array_parts(self.arg_type(0)).is_some() => defined,
            Builtin::Getfield => self.getfield(),
            Builtin::Setfield => self.setfield(coarse),
            Builtin::Memoryrefoffset if types.memory_ref_element(self.arg_type(0)).is_some() => defined,
            Builtin::Memoryrefnew => {
                let of = self.arg_type(0);
                let fits = types.memory_element(of).or_else(|| types.memory_ref_element(of)).is_some();
                let at = self.arg(1).is_some();
                let unchecked = self.is_unchecked(op);
                let throws = !fits || (at && !(unchecked && self.arg_is(1, Type::INT64)));
                Effects::PURE.throwing(throws).unchecked(unchecked)
            }
            Builtin::Memoryrefget => {
                let elem = types.memory_ref_element(self.arg_type(0));
                self.element(op, elem, self.is_plain(1))
            }
            Builtin::Memoryrefset => {
                let elem = types.memory_ref_element(self.arg_type(0));
                self.stored_element(op, elem, 1, self.is_plain(2))
            }
            // The array builtins of Julia up to 1.10 take the bounds check first.
            Builtin::Arrayref => {
                let elem = types.array_parts(self.arg_type(1)).map(|(elem, _)| elem);
                self.element(op, elem, self.are_indices(2))
            }
            Builtin::Arrayset => {
                let elem = types.array_parts(self.arg_type(1)).map(|(elem, _)| elem);
                self.stored_element(op, elem, 2, self.are_indices(3))
            }
            _ => coarse,
        }
    }

    /// The effects of a builtin for any operands.
    fn coarse(&self, op: Builtin) -> Effects {
        if op.calls() {
            return Effects::ANY;
        }
        let regions = match op {
            Builtin::Setfield
            | Builtin::Swapfield
            | Builtin::Replacefield
            | Builtin::Setfieldonce
            | Builtin::Isdefined => Regions::FIELDS,
            Builtin::Memoryrefget
            | Builtin::Memoryrefset
            | Builtin::Memoryrefswap
            | Builtin::Memoryrefreplace
            | Builtin::Memoryrefsetonce
            | Builtin::MemoryrefIsassigned => Regions::ELEMENTS,
            // Up to Julia 1.10 an array is one object with size and elements.
            Builtin::Arrayref | Builtin::Arrayset => Regions::ELEMENTS | Regions::FIELDS,
            Builtin::Arraylen | Builtin::Arraysize => Regions::FIELDS,
            Builtin::Getglobal
            | Builtin::Setglobal
            | Builtin::Swapglobal
            | Builtin::Replaceglobal
            | Builtin::Setglobalonce
            | Builtin::Isdefinedglobal => Regions::GLOBALS,
            Builtin::CurrentScope => Regions::TASK,
            _ => Regions::ALL,
        };
        let mut effects = Effects::PURE.throwing(op.can_throw()).allocating(op.allocates());
        effects.consistent = !op.allocates();
        if op.reads_memory() {
            effects = effects.reading(regions);
        }
        if op.writes_memory() {
            effects = match op {
                // Storing an array element reads the array's fields.
                Builtin::Arrayset => effects.writing(Regions::ELEMENTS).reading(Regions::FIELDS),
                _ => effects.writing(regions),
            };
        }
        effects
    }

    fn is_stored_boxed(&self, elem: Option<Type>) -> bool {
        elem.is_none_or(|ty| self.types.field_repr(ty) == FieldRepr::Pointer)
    }

    /// Whether a field of a mutable object or an element of this type may be undefined.
    fn may_be_undefined(&self, ty: Option<Type>) -> bool {
        ty.is_none_or(|ty| self.types.first_reference(ty, self.types.field_repr(ty)).is_some())
    }

    /// Whether operand `n`, the memory order, is `:not_atomic`.
    fn is_plain(&self, n: usize) -> bool {
        self.symbol(n) == Some(Ordering::NotAtomic.name())
    }

    /// Whether the operands from `first` on are `Int64`.
    fn are_indices(&self, first: usize) -> bool {
        (first..self.func.args(self.inst).len()).all(|n| self.arg_is(n, Type::INT64))
    }

    /// The effects of reading an element. `valid`: the other operands have the expected types.
    fn element(&self, op: Builtin, elem: Option<Type>, valid: bool) -> Effects {
        let unchecked = self.is_unchecked(op);
        let nothrow = unchecked && valid && !self.may_be_undefined(elem);
        Effects { nothrow, may_safepoint: !nothrow, ..self.coarse(op) }.unchecked(unchecked)
    }

    /// The effects of writing operand `value` to an element. `valid`: the other operands have the expected types.
    fn stored_element(&self, op: Builtin, elem: Option<Type>, value: usize, valid: bool) -> Effects {
        let unchecked = self.is_unchecked(op);
        let fits = valid && elem.is_some_and(|ty| self.arg_is(value, ty));
        Effects { nothrow: unchecked && fits, may_safepoint: !(unchecked && fits), ..self.coarse(op) }
            .unchecked(unchecked)
    }

    /// The index of the field that operand 1 names in a struct or tuple type.
    fn field(&self, ty: Type) -> Option<usize> {
        let index = match self.constant(1)? {
            Const::Symbol(name) => self.types.field_index(ty, *name)?,
            Const::Bits { ty: Type::INT64, bits } => usize::try_from(*bits).ok()?.checked_sub(1)?,
            _ => return None,
        };
        (index < self.types.field_count(ty)?).then_some(index)
    }

    /// The index of the field that operand 1 names in a type that the run time lays out.
    fn laid_out_field(&self, ty: Type) -> Option<usize> {
        let names = self.types.laid_out_fields(ty)?;
        match self.constant(1)? {
            Const::Symbol(name) => names.iter().position(|&known| known == self.types.names().text(*name)),
            Const::Bits { ty: Type::INT64, bits: bits @ 1..=2 } => Some(*bits as usize - 1),
            _ => None,
        }
    }

    fn getfield(&self) -> Effects {
        let types = self.types;
        let ty = self.arg_type(0);
        let tuple = matches!(types.kind(ty), TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. });
        let mutable = !tuple && (!types.is_concrete(ty) || types.is_mutable(ty));
        // Reading a non-atomic field with an order throws.
        let plain =
            (2..self.func.args(self.inst).len()).all(|n| self.arg_is(n, Type::BOOL) || self.is_plain(n));
        if matches!(types.nominal_kind(ty), Some(DeclKind::Opaque)) {
            let effects = Effects::PURE.throwing(!plain || self.laid_out_field(ty).is_none());
            return match ty {
                // A field of a module is a global.
                Type::MODULE => effects.reading(Regions::GLOBALS),
                // Arrays can be resized; the fields of `Memory` and `MemoryRef` never change.
                _ if types.array_parts(ty).is_some() => effects.reading(Regions::FIELDS),
                _ => effects,
            };
        }
        let mut effects = Effects::PURE.throwing(true);
        if types.is_subtype(Type::MODULE, ty) {
            effects = effects.reading(Regions::GLOBALS);
        }
        match self.field(ty).filter(|_| plain) {
            Some(index) => {
                let field = types.fields(ty).and_then(|f| f.get(index));
                let is_const = field.is_some_and(|f| f.is_const);
                // Struct fields may be undefined; elements of tuples never are.
                let missing = match mutable {
                    true => self.may_be_undefined(types.field_type(ty, index)),
                    // A struct that contains itself refers to the inner object.
                    false => {
                        let at = types.layout(ty).ok().and_then(|layout| layout.fields.get(index));
                        types.field_type(ty, index).is_none_or(|f| self.is_stored_boxed(Some(f)))
                            || at.is_some_and(|at| at.repr == FieldRepr::Pointer)
                    }
                };
                let defined = tuple || (!missing && !field.is_some_and(|f| f.is_atomic));
                if defined {
                    effects = Effects::PURE;
                }
                if mutable && !is_const {
                    effects = effects.reading(Regions::FIELDS);
                }
            }
            None => {
                effects = effects.unchecked(self.is_unchecked(Builtin::Getfield));
                if mutable {
                    effects = effects.reading(Regions::FIELDS);
                }
            }
        }
        effects
    }

    fn setfield(&self, coarse: Effects) -> Effects {
        let ty = self.arg_type(0);
        let field = self.field(ty).and_then(|i| self.types.fields(ty)?.get(i));
        let plain = field.is_some_and(|f| !f.is_const && !f.is_atomic && self.arg_is(2, f.ty))
            && self.types.is_mutable(ty)
            && (self.arg(3).is_none() || self.symbol(3) == Some(Ordering::NotAtomic.name()));
        if plain { Effects { nothrow: true, may_safepoint: false, ..coarse } } else { coarse }
    }

    /// An allocation is not observable, but the identity of a mutable object is.
    fn new_object(&self, ty: Type) -> Effects {
        let types = self.types;
        let mutable = !types.is_concrete(ty) || types.is_mutable(ty);
        let fields = types.fields(ty);
        let known = self.func.op(self.inst) == Op::New(ty) && types.is_concrete(ty);
        let fits = known
            && (0..self.func.args(self.inst).len())
                .all(|n| fields.and_then(|f| f.get(n)).is_some_and(|f| self.arg_is(n, f.ty)));
        // Without doors, the elements of an array are checked against its claimed size.
        let array = known
            && matches!(types.nominal_parts(ty), Some((decl::ARRAY, _)))
            && has_room(types, self.func, self.inst);
        let effects = Effects::PURE.throwing(!fits && !array).allocating(mutable);
        Effects { consistent: !mutable, ..effects }
    }

    fn load(&self, access: Access) -> Effects {
        let bytes = self.result_type().as_low().map_or(16, |low| low.bytes());
        let effects = match access.region {
            Region::Raw => Effects::PURE.reading(Regions::POINTABLE),
            Region::Field => Effects::PURE.reading(Regions::FIELDS),
            Region::Element => Effects::PURE.reading(Regions::ELEMENTS),
            Region::Header | Region::Size => Effects::PURE.reading(Regions::HEADERS),
            // An object made here is initialised by stores in this function.
            Region::Immutable if self.is_new(0) => Effects::PURE.reading(Regions::FIELDS),
            Region::Immutable => Effects::PURE,
            Region::Frame | Region::Thread => Effects::PURE.reading(Regions::TASK),
            Region::Slot => Effects::PURE.reading(Regions::SLOT),
            Region::Constant | Region::Length => Effects::PURE,
        };
        effects.unchecked(!self.is_inside_slot(access, bytes))
    }

    fn store(&self, access: Access) -> Effects {
        let bytes = self.arg_type(1).as_low().map_or(16, |low| low.bytes());
        let regions = match access.region {
            Region::Raw => Regions::POINTABLE,
            Region::Field | Region::Immutable | Region::Length => Regions::FIELDS,
            Region::Element => Regions::ELEMENTS,
            Region::Header | Region::Size => Regions::HEADERS,
            Region::Frame | Region::Thread => Regions::TASK,
            Region::Slot => Regions::SLOT,
            Region::Constant => Regions::ALL,
        };
        Effects::PURE.writing(regions).unchecked(!self.is_inside_slot(access, bytes))
    }

    /// Whether an operand is an object allocated in this function.
    fn is_new(&self, n: usize) -> bool {
        let def = self.arg(n).and_then(|v| self.func.def_inst(v));
        def.is_some_and(|inst| matches!(self.func.op(inst), Op::Alloc(_) | Op::AllocStack(_)))
    }

    /// Whether the access is within the bounds of a stack slot.
    fn is_inside_slot(&self, access: Access, bytes: u32) -> bool {
        let Some(Op::SlotAddr(slot)) =
            self.arg(0).and_then(|v| self.func.def_inst(v)).map(|i| self.func.op(i))
        else {
            return false;
        };
        u32::try_from(access.offset)
            .ok()
            .and_then(|offset| offset.checked_add(bytes))
            .is_some_and(|end| end <= self.func.slot(slot).size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::{Param, Signature};
    use crate::types::FieldDecl;
    use crate::{Context, Level};
    use std::sync::Arc;

    struct Bench {
        cx: Arc<Context>,
        func: Func,
    }

    impl Bench {
        fn new(params: &[Type]) -> Bench {
            let cx = Context::new();
            Bench::over(cx, params)
        }

        fn over(cx: Arc<Context>, params: &[Type]) -> Bench {
            let params = params.iter().map(|&ty| Param { name: None, ty }).collect();
            let sig = Signature { params, results: vec![Type::ANY], vararg: false, ..Signature::default() };
            let mut func = Func::new(cx.names.intern("f"), Level::High, sig);
            let block = func.make_block();
            func.append_block(block);
            Bench { cx, func }
        }

        fn int(&mut self, value: u128) -> Value {
            self.func.bits(&self.cx.types, Type::INT64, value)
        }

        fn sym(&mut self, text: &str) -> Value {
            let name = self.cx.names.intern(text);
            self.func.constant(Const::Symbol(name))
        }

        fn ask(&mut self, op: Op, args: &[Value], result: Type) -> Effects {
            let inst = self.func.make_inst(op, args, &[], &[result]);
            effects(&self.func, &self.cx.types, inst)
        }
    }

    #[test]
    fn division_is_safe_by_a_constant_that_is_not_0_or_minus_1() {
        let mut b = Bench::new(&[Type::INT64]);
        let x = b.func.params()[0];
        let by = |b: &mut Bench, op, d: u128| {
            let d = b.int(d);
            b.ask(Op::Intrinsic(op), &[x, d], Type::INT64).nothrow
        };
        assert!(by(&mut b, Intrinsic::SdivInt, 7));
        assert!(!by(&mut b, Intrinsic::SdivInt, 0));
        assert!(!by(&mut b, Intrinsic::SdivInt, u128::MAX));
        assert!(by(&mut b, Intrinsic::SremInt, u128::MAX));
        assert!(by(&mut b, Intrinsic::UdivInt, u128::MAX));
        let unknown = b.ask(Op::Intrinsic(Intrinsic::SdivInt), &[x, x], Type::INT64);
        assert!(!unknown.is_removable() && !unknown.may_be_hoisted() && unknown.may_be_shared());
        let add = b.ask(Op::Intrinsic(Intrinsic::AddInt), &[x, x], Type::INT64);
        assert_eq!(add, Effects::PURE);
        assert!(!add.interferes(&unknown) && !add.interferes(&Effects::ANY));
    }

    #[test]
    fn fields() {
        let cx = Context::new();
        let (names, types) = (&cx.names, &cx.types);
        let decl = types.declare(names.intern("Node"), &[]).unwrap();
        let fields = [("val", Type::INT64), ("any", Type::ANY), ("fix", Type::INT64), ("hot", Type::INT64)];
        let fields = fields.map(|(name, ty)| FieldDecl {
            is_const: name == "fix",
            is_atomic: name == "hot",
            ..FieldDecl::new(names.intern(name), ty)
        });
        types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: fields.into() }).unwrap();
        let node = types.nominal(decl, &[]).unwrap();
        let pair = types.tuple(&[Type::INT64, Type::ANY]).unwrap();
        let mut b = Bench::over(cx.clone(), &[node, pair, Type::INT64]);
        let [object, tuple, int] = b.func.params() else { unreachable!() };
        let (object, tuple, int) = (*object, *tuple, *int);
        let [val, any, fix, hot] = ["val", "any", "fix", "hot"].map(|n| b.sym(n));
        let get = Op::Builtin(Builtin::Getfield);
        let set = Op::Builtin(Builtin::Setfield);
        let read = b.ask(get, &[object, val], Type::INT64);
        assert!(read.is_removable() && !read.consistent && read.reads == Regions::FIELDS);
        let write = b.ask(set, &[object, val, int], Type::INT64);
        assert!(write.nothrow && !write.is_removable());
        assert!(read.interferes(&write) && write.interferes(&write) && !read.interferes(&read));
        assert!(!b.ask(get, &[object, any], Type::ANY).nothrow);
        let fixed = b.ask(get, &[object, fix], Type::INT64);
        assert!(fixed.consistent && fixed.may_be_shared() && !fixed.interferes(&write));
        assert!(!b.ask(set, &[object, fix, int], Type::INT64).nothrow);
        let order = b.sym("acquire");
        assert!(b.ask(get, &[object, hot, order], Type::INT64).fence);
        let second = b.int(2);
        assert_eq!(b.ask(get, &[tuple, second], Type::ANY), Effects::PURE);
        let third = b.int(3);
        assert!(!b.ask(get, &[tuple, third], Type::ANY).nothrow);
        let object = b.ask(Op::New(node), &[int], node);
        assert!(object.is_removable() && !object.may_be_shared() && object.may_safepoint);
        assert!(!b.ask(Op::New(node), &[tuple], node).nothrow);
    }

    #[test]
    fn elements() {
        let cx = Context::new();
        let of = |elem| cx.types.memory_ref(elem).unwrap();
        let (ints, anys) = (of(Type::INT64), of(Type::ANY));
        let mut b = Bench::over(cx.clone(), &[ints, anys]);
        let (ints_ref, anys_ref) = (b.func.params()[0], b.func.params()[1]);
        let order = b.sym("not_atomic");
        let off = b.func.bits(&cx.types, Type::BOOL, 0);
        let get = Op::Builtin(Builtin::Memoryrefget);
        let read = b.ask(get, &[ints_ref, order, off], Type::INT64);
        assert!(read.is_removable() && !read.noub && !read.may_be_hoisted());
        assert_eq!(read.reads, Regions::ELEMENTS);
        assert!(!b.ask(get, &[anys_ref, order, off], Type::ANY).nothrow);
        let one = b.int(1);
        let on = b.func.bits(&cx.types, Type::BOOL, 1);
        let new = Op::Builtin(Builtin::Memoryrefnew);
        let checked = b.ask(new, &[ints_ref, one, on], ints);
        assert!(!checked.nothrow && checked.noub && checked.consistent);
        assert!(b.ask(new, &[ints_ref, one, off], ints).nothrow);
    }

    #[test]
    fn order_matters_after_what_may_throw() {
        let mut b = Bench::new(&[Type::INT64, Type::BOOL]);
        let (x, flag) = (b.func.params()[0], b.func.params()[1]);
        let name = b.cx.names.intern("x");
        let throw = b.ask(Op::ThrowUndefIfNot(name), &[flag], Type::NOTHING);
        let store = b.ask(Op::Upsilon, &[x], Type::INT64);
        assert!(throw.interferes(&store) && store.interferes(&throw) && throw.interferes(&throw));
        assert!(!throw.is_removable());
        let always = b.func.bits(&b.cx.types, Type::BOOL, 1);
        assert!(b.ask(Op::ThrowUndefIfNot(name), &[always], Type::NOTHING).is_removable());
        assert!(!b.ask(Op::Upsilon, &[x], Type::INT64).is_removable());
        assert!(b.ask(Op::Phi, &[], Type::INT64).is_removable());
        assert!(b.ask(Op::Phi, &[], Type::INT64).interferes(&Effects::PURE));
    }

    #[test]
    fn slots_and_raw_memory() {
        let mut b = Bench::new(&[]);
        let slot = b.func.add_slot(crate::func::SlotData::bytes(16, 3));
        let addr = b.func.make_inst(Op::SlotAddr(slot), &[], &[], &[Type::PTR]);
        let addr = b.func.result(addr).unwrap();
        let access = |offset, region| Access { offset, region, align_log2: 3 };
        let inside = b.ask(Op::Load(access(8, Region::Slot)), &[addr], Type::I64);
        let beyond = b.ask(Op::Load(access(12, Region::Slot)), &[addr], Type::I64);
        assert!(inside.may_be_hoisted() && inside.inaccessiblememonly && !beyond.may_be_hoisted());
        let raw = b.ask(Op::Store(access(0, Region::Raw)), &[addr, addr], Type::NOTHING);
        assert!(!raw.interferes(&inside) && !raw.inaccessiblememonly);
        let poll = b.ask(Op::Safepoint, &[], Type::NOTHING);
        assert!(poll.interferes(&raw) && !poll.interferes(&Effects::PURE) && !poll.is_removable());
        assert!(!poll.interferes(&inside) && !poll.interferes(&beyond));
    }

    #[test]
    fn printing_interferes_with_stores() {
        use crate::runtime_fn::RuntimeFn;
        let mut b = Bench::new(&[]);
        let object = b.func.constant(Const::Undef(Type::TRACKED));
        let print = b.ask(Op::CallRuntime(RuntimeFn::PrintAny), &[object], Type::NOTHING);
        for region in [Region::Field, Region::Element, Region::Header, Region::Raw] {
            let store = Op::Store(Access { offset: 0, region, align_log2: 3 });
            assert!(b.ask(store, &[object, object], Type::NOTHING).interferes(&print), "{region:?}");
        }
    }

    #[test]
    fn a_pi_stays_below_its_test() {
        let mut b = Bench::new(&[Type::ANY, Type::INT64]);
        let (any, int) = (b.func.params()[0], b.func.params()[1]);
        assert!(!b.ask(Op::Pi, &[any], Type::INT64).may_be_hoisted());
        assert!(b.ask(Op::Pi, &[any], Type::INT64).is_removable());
        assert!(b.ask(Op::Pi, &[int], Type::INT64).may_be_hoisted());
    }

    #[test]
    fn merging_keeps_the_worse_of_both() {
        let any = Effects::PURE.merge(Effects::ANY);
        assert_eq!(any, Effects::ANY);
        assert_eq!(Effects::PURE.merge(Effects::PURE), Effects::PURE);
        assert!(Regions::ALL.contains(Regions::POINTABLE) && !Regions::RAW.overlaps(Regions::SLOT));
    }
}
