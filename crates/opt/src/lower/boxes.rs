//! Values as objects, and objects as values.
//!
//! ```text
//! Int64, Bool, Tuple{…}, Union{Nothing, Int64}    object ▼   ▲ unbox    Any, Integer, Union{Nothing, Node}
//! leaves                                                                one reference
//! ```
//!
//! | value | its object |
//! |---|---|
//! | a value that is passed as a reference | that reference |
//! | a ghost | the permanent instance of its type; of `Type{T}` the type object |
//! | a constant in one register | a permanent box |
//! | `Bool` | one of two permanent boxes |
//! | `Int64` | a permanent box, by its distance from the first one, if it is small; else a new object |
//! | anything else | a new object with the value's memory form |
//! | a union of pointer-free types | the member's object, chosen by the selector |
//!
//! **Tests.** An object is of a concrete type if its tag matches; a singleton, `nothing` above all, is compared by its
//! address. The run time answers every other test. The known type of the object decides which members of a union are tested
//! for.
//!
//! A boxed value never changes, so reading it back is a load of immutable memory. A value that is unboxed and boxed again is
//! another object, which no program can observe.

use super::addr::Addr;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::abi::FormKind;
use brolga_ir::constant::Address;
use brolga_ir::heap_abi::{SMALL_INT_BYTES, SMALL_INTS, SMALLEST_INT};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Const, LowType, Op, RuntimeFn, Type, TypeKind, Value};

/// The most members that are tested for one by one.
const MAX_TESTS: usize = 8;

impl Lowering<'_> {
    // ----- into an object -----

    /// A value as an object.
    pub(super) fn object(&mut self, val: &Val) -> Step<Value> {
        let form = self.form(val.ty)?;
        if let Some(object) = self.unboxed_from(val) {
            return Ok(object);
        }
        match (&form.kind, &val.leaves[..]) {
            (FormKind::Scalar, &[leaf]) if form.is_object() => Ok(leaf),
            (FormKind::Never, _) => Ok(self.out.constant(Const::Undef(Type::TRACKED))),
            (FormKind::Scalar, &[leaf]) => self.boxed_scalar(val.ty, leaf),
            _ if self.union_members(val.ty).is_some() => self.boxed_union(val),
            (FormKind::Ghost, _) => Ok(self.instance(val.ty)),
            _ => self.new_box(val),
        }
    }

    /// A value of type `Any`.
    pub(super) fn any(&mut self, val: &Val) -> Step<Val> {
        Ok(Val::scalar(Type::ANY, self.object(val)?))
    }

    /// The object of a type without fields.
    fn instance(&mut self, ty: Type) -> Value {
        match *self.types.kind(ty) {
            TypeKind::TypeOf(of) => self.permanent(Address::Type(of)),
            _ => self.permanent(Address::Instance(ty)),
        }
    }

    fn boxed_scalar(&mut self, ty: Type, leaf: Value) -> Step<Value> {
        if let Some(bits) = self.out.as_bits(leaf) {
            return Ok(self.permanent(Address::Boxed(ty, bits)));
        }
        match ty {
            Type::BOOL => {
                let [yes, no] = [1, 0].map(|bits| self.permanent(Address::Boxed(ty, bits)));
                Ok(self.choose(leaf, yes, no))
            }
            Type::INT64 => self.boxed_int(leaf),
            _ => self.new_box(&Val::scalar(ty, leaf)),
        }
    }

    fn boxed_int(&mut self, value: Value) -> Step<Value> {
        let first = self.word(SMALLEST_INT);
        let index = self.binary(Intrinsic::SubInt, value, first, LowType::I64);
        let count = self.word(SMALL_INTS as i64);
        let is_small = self.binary(Intrinsic::UltInt, index, count, LowType::I8);
        let mut join = self.join();
        let large = self.split(is_small);
        let size = self.word(SMALL_INT_BYTES as i64);
        let distance = self.binary(Intrinsic::MulInt, index, size, LowType::I64);
        let base = self.address(Address::Boxed(Type::INT64, u128::from(SMALLEST_INT.cast_unsigned())));
        let small = self.moved_by(base, distance);
        let small = self.value(Op::Intrinsic(Intrinsic::Bitcast), &[small], Type::TRACKED);
        self.leave_to(&mut join, Leaves::from_slice(&[small]));
        self.continue_in(large);
        let made = self.new_box(&Val::scalar(Type::INT64, value))?;
        self.leave_to(&mut join, Leaves::from_slice(&[made]));
        let merged = self.meet(join);
        merged.first().copied().ok_or_else(|| self.bad_operands())
    }

    fn new_box(&mut self, val: &Val) -> Step<Value> {
        let align = self.form(val.ty)?.align;
        let object = self.value(Op::Alloc(val.ty), &[], Type::TRACKED);
        // Nothing can have been collected since, so no barrier is needed.
        self.store(Addr::inside(object, align, Region::Immutable), val)?;
        Ok(object)
    }

    fn boxed_union(&mut self, val: &Val) -> Step<Value> {
        let types = self.types;
        let members = types.members(&val.ty);
        let mut join = self.join();
        for (n, &member) in members.iter().enumerate() {
            let is_last = n + 1 == members.len();
            let no = if is_last { None } else { Some(self.is_member(val, n)?) }.map(|is| self.split(is));
            let inner = self.unpack(val, member)?;
            let object = self.object(&inner)?;
            self.leave_to(&mut join, Leaves::from_slice(&[object]));
            if let Some(no) = no {
                self.continue_in(no);
            }
        }
        let merged = self.meet(join);
        merged.first().copied().ok_or_else(|| self.bad_operands())
    }

    // ----- out of an object -----

    /// The value that an object, known to be of this type, holds.
    pub(super) fn unbox(&mut self, object: Value, to: Type) -> Step<Val> {
        let form = self.form(to)?;
        match form.kind {
            FormKind::Scalar if form.is_object() => Ok(Val::scalar(to, object)),
            FormKind::Ghost | FormKind::Never => Ok(Val { ty: to, leaves: Leaves::new() }),
            _ if self.union_members(to).is_some() => self.unbox_union(object, to),
            _ => {
                let val = self.load(Addr::inside(object, form.align, Region::Immutable), to)?;
                // A copy in memory may be written to.
                if form.kind != FormKind::Memory
                    && let Some(&first) = val.leaves.first()
                {
                    self.unboxed.insert(first, (object, val.clone()));
                }
                Ok(val)
            }
        }
    }

    /// The object that a value was taken out of, which may replace a new one: immutable objects are indistinguishable.
    fn unboxed_from(&self, val: &Val) -> Option<Value> {
        let (object, held) = self.unboxed.get(val.leaves.first()?)?;
        (held.ty == val.ty && held.leaves == val.leaves).then_some(*object)
    }

    fn unbox_union(&mut self, object: Value, to: Type) -> Step<Val> {
        let types = self.types;
        let members = types.members(&to);
        let mut join = self.join();
        for (n, &member) in members.iter().enumerate() {
            let no = match members.len() - n {
                1 => None,
                _ => {
                    let is = self.has_type(object, member)?;
                    Some(self.split(is))
                }
            };
            let inner = self.unbox(object, member)?;
            let packed = self.convert(inner, to)?;
            self.leave_to(&mut join, packed.leaves);
            if let Some(no) = no {
                self.continue_in(no);
            }
        }
        Ok(Val { ty: to, leaves: self.meet(join) })
    }

    // ----- tests -----

    /// Whether a reference is null.
    pub(super) fn is_null(&mut self, reference: Value) -> Value {
        if self.is_made(reference) {
            return self.truth(false);
        }
        let null = self.null();
        self.equal(reference, null)
    }

    /// Whether the reference is known not to be null.
    fn is_made(&self, reference: Value) -> bool {
        let made = self.out.def_inst(reference).map(|inst| self.out.op(inst));
        matches!(made, Some(Op::Alloc(_)))
            || self.is_permanent(reference)
            || self.defined.get(&reference) == Some(&self.cur)
    }

    /// Whether the reference is visibly a permanent object's, or null.
    pub(super) fn is_permanent(&self, reference: Value) -> bool {
        let Some(inst) = self.out.def_inst(reference) else { return false };
        self.out.op(inst) == Op::Intrinsic(Intrinsic::Bitcast)
            && self.out.args(inst).iter().all(|&v| matches!(self.out.as_const(v), Some(Const::Address(_))))
    }

    /// Whether one comparison of an object's tag decides whether it is of this type.
    pub(super) fn is_tagged(&self, ty: Type) -> bool {
        self.types.is_concrete(ty) && !matches!(self.types.kind(ty), TypeKind::TypeOf(_))
    }

    /// Whether an object of unknown type is of a type.
    pub(super) fn has_type(&mut self, object: Value, ty: Type) -> Step<Value> {
        let types = self.types;
        if self.is_tagged(ty) {
            if types.is_singleton(ty) {
                let instance = self.instance(ty);
                return Ok(self.equal(object, instance));
            }
            let tag = self.value(Op::TypeOf, &[object], Type::PTR);
            let wanted = self.address(Address::Type(ty));
            return Ok(self.equal(tag, wanted));
        }
        let members = types.members(&ty);
        if (2..=MAX_TESTS).contains(&members.len()) && members.iter().all(|&m| self.is_tagged(m)) {
            return self.has_any_type(object, members);
        }
        let ty = self.address(Address::Type(ty));
        let is = self.value(Op::CallRuntime(RuntimeFn::Isa), &[object, ty], Type::I32);
        Ok(self.resize(is, LowType::I8))
    }

    fn has_any_type(&mut self, object: Value, members: &[Type]) -> Step<Value> {
        let mut any: Option<Value> = None;
        for &member in members {
            let is = self.has_type(object, member)?;
            any = Some(match any {
                None => is,
                Some(any) => self.binary(Intrinsic::OrInt, any, is, LowType::I8),
            });
        }
        Ok(any.unwrap_or_else(|| self.truth(false)))
    }

    /// Whether an object that is known to be of one type is of another.
    pub(super) fn object_is_a(&mut self, object: Value, known: Type, ty: Type) -> Step<Value> {
        let types = self.types;
        if types.is_subtype(known, ty) || types.is_disjoint(known, ty) {
            return Ok(self.truth(types.is_subtype(known, ty)));
        }
        let members = types.members(&known);
        let (inside, rest): (Vec<Type>, Vec<Type>) = members.iter().partition(|&&m| types.is_subtype(m, ty));
        if !rest.iter().all(|&m| types.is_disjoint(m, ty)) {
            return self.has_type(object, ty);
        }
        let cost = |list: &[Type]| {
            let each =
                |&m: &Type| if !self.is_tagged(m) { 64 } else { 2 - usize::from(types.is_singleton(m)) };
            list.iter().map(each).sum::<usize>()
        };
        if cost(&rest) < cost(&inside) {
            let other = self.has_any_type(object, &rest)?;
            return Ok(self.not(other));
        }
        self.has_any_type(object, &inside)
    }
}
