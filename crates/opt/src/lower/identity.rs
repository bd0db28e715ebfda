//! Identity and types of values: `===`, `isa`, `typeof`, `typeassert`, `<:`.
//!
//! `===` compares bits, floats included: `0.0` and `-0.0` differ, equal NaNs do not. It follows the types:
//!
//! | operands | answer |
//! |---|---|
//! | types without a common value | false |
//! | ghosts of one type | true |
//! | registers | equal bits |
//! | aggregates | all fields |
//! | unions | the same member, and that member equal |
//! | symbols, mutable objects | the same object |
//! | other objects | the run time compares |
//! | an object and a value in registers | the object is of that type, and holds an equal value |
//!
//! Beyond `MAX_COMPARED` leaves the run time compares, too.

use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::abi::FormKind;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, LowType, Op, PtrClass, RuntimeFn, Type, TypeKind, Value};

/// The most leaves that are compared one by one.
const MAX_COMPARED: u32 = 64;

impl Lowering<'_> {
    /// Whether two registers hold the same bits.
    pub(super) fn same_bits(&mut self, a: Value, b: Value) -> Value {
        let [a, b] = [a, b].map(|v| match self.low(v) {
            LowType::Ptr(_) => self.bitcast(v, LowType::I64),
            _ => self.bits_of(v),
        });
        if a == b { self.truth(true) } else { self.equal(a, b) }
    }

    fn both(&mut self, a: Value, b: Value) -> Value {
        match (self.out.as_bits(a), self.out.as_bits(b)) {
            (Some(1), _) | (_, Some(0)) => b,
            (_, Some(1)) | (Some(0), _) => a,
            _ => self.binary(Intrinsic::AndInt, a, b, LowType::I8),
        }
    }

    pub(super) fn egal(&mut self) -> Step<()> {
        let (a, b) = (self.arg(0)?, self.arg(1)?);
        let truth = match (self.src.as_const(a), self.src.as_const(b)) {
            (Some(Const::String(x)), Some(Const::String(y))) => self.truth(x == y),
            _ => {
                let (a, b) = (self.val(a)?, self.val(b)?);
                self.is_same(&a, &b)?
            }
        };
        self.define(Val::scalar(Type::BOOL, truth))
    }

    /// Whether two values are the same.
    pub(super) fn is_same(&mut self, a: &Val, b: &Val) -> Step<Value> {
        let mut budget = MAX_COMPARED;
        self.same(a, b, &mut budget)
    }

    /// Whether two objects, known to be of the given types, are the same. A null equals only a null.
    fn same_objects(&mut self, a: Value, b: Value, types: [Type; 2]) -> Value {
        if a == b {
            return self.truth(true);
        }
        let types_as_objects = self.types.supertype(Type::DATATYPE);
        let by_address = |ty: Type| {
            ty != Type::STRING && !self.types.is_subtype(ty, types_as_objects) && self.types.is_mutable(ty)
        };
        if types.into_iter().any(by_address) {
            return self.equal(a, b);
        }
        let same = self.value(Op::CallRuntime(RuntimeFn::Egal), &[a, b], Type::I32);
        self.resize(same, LowType::I8)
    }

    /// Whether an object is the same as a value that is not an object.
    fn same_as_object(&mut self, object: &Val, val: &Val, budget: &mut u32) -> Step<Value> {
        let &[reference] = &object.leaves[..] else { return Err(self.bad_operands()) };
        let types = self.types;
        let form = self.form(val.ty)?;
        let plain = types.is_concrete(val.ty) && self.is_tagged(val.ty);
        if form.kind == FormKind::Ghost && plain {
            return self.object_is_a(reference, object.ty, val.ty);
        }
        if form.kind == FormKind::Ghost || !plain || form.is_memory() {
            let other = self.object(val)?;
            return Ok(self.same_objects(reference, other, [object.ty, val.ty]));
        }
        let is = self.object_is_a(reference, object.ty, val.ty)?;
        let mut join = self.join();
        let no = self.split(is);
        let held = self.unbox(reference, val.ty)?;
        let equal = self.same(&held, val, budget)?;
        self.leave_to(&mut join, [equal].into_iter().collect());
        self.continue_in(no);
        self.leave_to(&mut join, [is].into_iter().collect());
        self.meet(join).first().copied().ok_or_else(|| self.bad_operands())
    }

    /// Whether two values are the same. Recursion follows the nesting of types.
    fn same(&mut self, a: &Val, b: &Val, budget: &mut u32) -> Step<Value> {
        let types = self.types;
        if a.ty == b.ty {
            return self.same_of_type(a, b, budget);
        }
        if types.is_disjoint(a.ty, b.ty) {
            return Ok(self.truth(false));
        }
        match (self.form(a.ty)?.is_object(), self.form(b.ty)?.is_object(), &a.leaves[..], &b.leaves[..]) {
            (true, true, &[x], &[y]) => return Ok(self.same_objects(x, y, [a.ty, b.ty])),
            (true, false, ..) => return self.same_as_object(a, b, budget),
            (false, true, ..) => return self.same_as_object(b, a, budget),
            _ => {}
        }
        match (types.kind(a.ty), types.kind(b.ty)) {
            // Two types may be written differently and still be the same.
            (TypeKind::TypeOf(x), TypeKind::TypeOf(y)) => {
                let same = types.equivalent(*x, *y);
                Ok(self.truth(same))
            }
            (TypeKind::Union(members), _) => self.same_member(a, members, b, budget),
            (_, TypeKind::Union(members)) => self.same_member(b, members, a, budget),
            _ => Ok(self.truth(false)),
        }
    }

    /// Whether a value of a union type is the same as a value of another type, which may be a union as well.
    fn same_member(&mut self, a: &Val, members: &[Type], b: &Val, budget: &mut u32) -> Step<Value> {
        let types = self.types;
        let mut any: Option<Value> = None;
        for (n, &member) in members.iter().enumerate() {
            if !types.members(&b.ty).contains(&member) {
                continue;
            }
            let is = self.is_member(a, n)?;
            let inner = self.unpack(a, member)?;
            let equal = self.same(&inner, b, budget)?;
            let hit = self.both(is, equal);
            any = Some(match any {
                None => hit,
                Some(any) => self.binary(Intrinsic::OrInt, any, hit, LowType::I8),
            });
        }
        Ok(any.unwrap_or_else(|| self.truth(false)))
    }

    fn same_of_type(&mut self, a: &Val, b: &Val, budget: &mut u32) -> Step<Value> {
        let form = self.form(a.ty)?;
        if a.leaves == b.leaves {
            return Ok(self.truth(true));
        }
        *budget = budget.saturating_sub(1);
        let fields = match form.kind {
            FormKind::Aggregate(_) | FormKind::Memory => self.types.field_count(a.ty).unwrap_or(0),
            _ => 0,
        };
        if fields >= *budget as usize {
            let [x, y] = [self.object(a)?, self.object(b)?];
            return Ok(self.same_objects(x, y, [a.ty, b.ty]));
        }
        let types = self.types;
        // The run time lays out a `MemoryRef`, so it has no fields: its address in the `Memory`, and the `Memory`.
        if let (true, &[x, of_x], &[y, of_y]) =
            (types.memory_ref_element(a.ty).is_some(), &a.leaves[..], &b.leaves[..])
        {
            let (place, memory) = (self.equal(x, y), self.equal(of_x, of_y));
            return Ok(self.both(place, memory));
        }
        match (&form.kind, types.kind(a.ty)) {
            (FormKind::Never | FormKind::Ghost, _) => Ok(self.truth(true)),
            (FormKind::Scalar, _) => match (&a.leaves[..], &b.leaves[..]) {
                (&[x], &[y]) if form.is_object() => Ok(self.same_objects(x, y, [a.ty, b.ty])),
                (&[a], &[b]) => Ok(self.same_bits(a, b)),
                _ => Err(self.bad_operands()),
            },
            (FormKind::Union(_) | FormKind::Memory, TypeKind::Union(members)) => {
                let (x, y) = (self.selector(a)?, self.selector(b)?);
                let mut all = self.equal(x, y);
                for (n, &member) in members.iter().enumerate() {
                    if self.form(member)?.leaves.is_empty() {
                        continue;
                    }
                    let (left, right) = (self.unpack(a, member)?, self.unpack(b, member)?);
                    let equal = self.same_of_type(&left, &right, budget)?;
                    let is = self.is_member(a, n)?;
                    let other = self.not(is);
                    let fits = self.binary(Intrinsic::OrInt, other, equal, LowType::I8);
                    all = self.both(all, fits);
                }
                Ok(all)
            }
            (FormKind::Aggregate(_) | FormKind::Memory | FormKind::Union(_), _) => {
                let mut all = self.truth(true);
                for n in 0..types.field_count(a.ty).unwrap_or(0) {
                    let equal = match self.references_of_field(a, b, n)? {
                        // Undefined fields are compared as well.
                        Some(([x, y], ty)) => self.same_objects(x, y, [ty, ty]),
                        None => {
                            let (left, right) = (self.field(a, n)?, self.field(b, n)?);
                            self.same_of_type(&left, &right, budget)?
                        }
                    };
                    all = self.both(all, equal);
                }
                Ok(all)
            }
        }
    }

    // ----- types -----

    /// The references that field `n` of two values of one type is stored as, and the field's type.
    fn references_of_field(&mut self, a: &Val, b: &Val, n: usize) -> Step<Option<([Value; 2], Type)>> {
        let form = self.form(a.ty)?;
        let FormKind::Aggregate(parts) = &form.kind else { return Ok(None) };
        let Some(part) = parts.get(n).filter(|part| part.form.is_object()) else { return Ok(None) };
        Ok(match (a.leaves.get(part.first), b.leaves.get(part.first)) {
            (Some(&x), Some(&y)) => Some(([x, y], part.form.ty)),
            _ => None,
        })
    }

    /// Whether a value belongs to a type.
    pub(super) fn is_a(&mut self, val: &Val, ty: Type) -> Step<Value> {
        let types = self.types;
        if let (true, &[object]) = (self.form(val.ty)?.is_object(), &val.leaves[..]) {
            return self.object_is_a(object, val.ty, ty);
        }
        let Some(members) = self.union_members(val.ty) else {
            let is = types.is_subtype(val.ty, ty);
            return Ok(self.truth(is));
        };
        let inside: Vec<usize> = (0..members.len()).filter(|&n| types.is_subtype(members[n], ty)).collect();
        if inside.is_empty() || inside.len() == members.len() {
            return Ok(self.truth(!inside.is_empty()));
        }
        // The shorter list of selectors is tested.
        let outside: Vec<usize> = (0..members.len()).filter(|n| !inside.contains(n)).collect();
        let negate = outside.len() < inside.len();
        let mut any: Option<Value> = None;
        for &n in if negate { &outside } else { &inside } {
            let is = self.is_member(val, n)?;
            any = Some(match any {
                None => is,
                Some(any) => self.binary(Intrinsic::OrInt, any, is, LowType::I8),
            });
        }
        match any {
            Some(any) if negate => Ok(self.not(any)),
            Some(any) => Ok(any),
            None => Ok(self.truth(false)),
        }
    }

    /// The type that an operand is, if it is known.
    fn type_operand(&mut self, n: usize) -> Step<Option<Type>> {
        let val = self.operand(n)?;
        Ok(self.static_type(&val))
    }

    pub(super) fn isa(&mut self) -> Step<()> {
        let value = self.arg(0)?;
        if let (Some(mixed), Some(ty)) = (self.mixed(value), self.type_operand(1)?) {
            let is = self.mixed_is_a(mixed, self.src.ty(value), ty)?;
            return self.define(Val::scalar(Type::BOOL, is));
        }
        let val = self.operand(0)?;
        let Some(ty) = self.type_operand(1)? else { return self.call_builtin(Builtin::Isa) };
        let is = self.is_a(&val, ty)?;
        self.define(Val::scalar(Type::BOOL, is))
    }

    pub(super) fn subtype(&mut self) -> Step<()> {
        if let (Some(a), Some(b)) = (self.type_operand(0)?, self.type_operand(1)?) {
            let is = self.types.is_subtype(a, b);
            let is = self.truth(is);
            return self.define(Val::scalar(Type::BOOL, is));
        }
        let (a, b) = (self.operand(0)?, self.operand(1)?);
        let supertype = self.types.supertype(Type::DATATYPE);
        if [a.ty, b.ty].iter().any(|&ty| !self.types.is_subtype(ty, supertype)) {
            return self.call_builtin(Builtin::Subtype);
        }
        let (a, b) = (self.object(&a)?, self.object(&b)?);
        let is = self.value(Op::CallRuntime(RuntimeFn::Subtype), &[a, b], Type::I32);
        let is = self.resize(is, LowType::I8);
        self.define(Val::scalar(Type::BOOL, is))
    }

    pub(super) fn typeof_(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        if self.types.is_concrete(val.ty) {
            let ty = self.type_of(self.types.type_of_values(val.ty))?;
            return self.define(Val::ghost(ty));
        }
        let tag = match self.form(val.ty)?.is_object() {
            false if self.union_members(val.ty).is_some() => self.tag_of_member(&val)?,
            _ => {
                let object = self.object(&val)?;
                self.value(Op::TypeOf, &[object], Type::PTR)
            }
        };
        let ty = self.bitcast(tag, LowType::Ptr(PtrClass::Tracked));
        self.define(Val::scalar(Type::DATATYPE, ty))
    }

    /// The type object of the member that a value of a union type is.
    fn tag_of_member(&mut self, val: &Val) -> Step<Value> {
        let types = self.types;
        let mut chosen: Option<Value> = None;
        for (n, &member) in types.members(&val.ty).iter().enumerate() {
            let here = self.address(Address::Type(types.type_of_values(member)));
            chosen = Some(match chosen {
                None => here,
                Some(other) => {
                    let is = self.is_member(val, n)?;
                    self.choose(is, here, other)
                }
            });
        }
        chosen.ok_or_else(|| self.bad_operands())
    }

    pub(super) fn typeassert(&mut self) -> Step<()> {
        let value = self.arg(0)?;
        if let (Some(mixed), Some(ty)) = (self.mixed(value), self.type_operand(1)?) {
            let (asks, given) = (Builtin::Typeassert.name(), self.src.ty(value));
            if let Some(val) = self.mixed_asserted(asks, mixed, given, ty)? {
                return self.define(val);
            }
        }
        let val = self.operand(0)?;
        let Some(ty) = self.type_operand(1)? else { return self.call_builtin(Builtin::Typeassert) };
        let is = self.is_a(&val, ty)?;
        self.throw_unless_type(Builtin::Typeassert.name(), is, &val, ty)?;
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let wanted = self.src.ty(result);
        if self.types.is_subtype(val.ty, ty) {
            return self.define(val);
        }
        let kept: Vec<Type> =
            self.types.members(&val.ty).iter().copied().filter(|&m| !self.types.is_disjoint(m, ty)).collect();
        let kept = match kept.iter().all(|&m| self.types.is_subtype(m, ty)) {
            true => self.types.union(&kept).map_err(|_| self.bad_operands())?,
            false => ty,
        };
        match kept {
            Type::BOTTOM if wanted == Type::BOTTOM => Ok(()),
            Type::BOTTOM => {
                let nothing = self.undefined(wanted)?;
                self.define(nothing)
            }
            kept => {
                let val = self.convert(val, kept)?;
                self.define(val)
            }
        }
    }
}
