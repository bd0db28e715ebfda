//! What a value is: `===`, `isa`, `typeof`, `typeassert`, `<:`.
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
//! | symbols | equal addresses: equal symbols share their record |
//! | strings | by content, so only constants are compared |
//!
//! A value in memory form is compared field by field up to `MAX_COMPARED` leaves.

use super::error::Refusal;
use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::abi::FormKind;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, LowType, RuntimeFn, Type, TypeKind, Value};

/// More leaves than this are not compared one by one.
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
                let mut budget = MAX_COMPARED;
                self.same(&a, &b, &mut budget)?
            }
        };
        self.define(Val::scalar(Type::BOOL, truth))
    }

    /// Whether two values are the same. Recursion follows the nesting of types.
    fn same(&mut self, a: &Val, b: &Val, budget: &mut u32) -> Step<Value> {
        let types = self.types;
        if a.ty == b.ty {
            return self.same_of_type(a, b, budget);
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
        if *budget == 0 {
            let what = format!("`===` on values of the large type `{}`", self.types.display(a.ty));
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let types = self.types;
        match (&form.kind, types.kind(a.ty)) {
            (FormKind::Never | FormKind::Ghost, _) => Ok(self.truth(true)),
            (FormKind::Scalar, _) if a.ty == Type::STRING => {
                let what = "`===` on strings that are not both constants".to_owned();
                Err(self.report(Refusal::Unsupported { what }))
            }
            (FormKind::Scalar, _) => match (&a.leaves[..], &b.leaves[..]) {
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
                    let (left, right) = (self.field(a, n)?, self.field(b, n)?);
                    let equal = self.same_of_type(&left, &right, budget)?;
                    all = self.both(all, equal);
                }
                Ok(all)
            }
        }
    }

    // ----- types -----

    /// Whether a value belongs to a type.
    pub(super) fn is_a(&mut self, val: &Val, ty: Type) -> Step<Value> {
        let types = self.types;
        let Some(members) = self.union_members(val.ty) else {
            let is = types.is_subtype(val.ty, ty);
            return Ok(self.truth(is));
        };
        let inside: Vec<usize> = (0..members.len()).filter(|&n| types.is_subtype(members[n], ty)).collect();
        if inside.is_empty() || inside.len() == members.len() {
            return Ok(self.truth(!inside.is_empty()));
        }
        // The shorter list of selectors is asked for.
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

    /// An operand that is a type known at compile time.
    pub(super) fn type_operand(&mut self, n: usize) -> Step<Type> {
        let val = self.operand(n)?;
        match self.static_type(&val) {
            Some(ty) => Ok(ty),
            None => Err(self.bad_operands()),
        }
    }

    pub(super) fn isa(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let ty = self.type_operand(1)?;
        let is = self.is_a(&val, ty)?;
        self.define(Val::scalar(Type::BOOL, is))
    }

    pub(super) fn subtype(&mut self) -> Step<()> {
        let (a, b) = (self.type_operand(0)?, self.type_operand(1)?);
        let is = self.types.is_subtype(a, b);
        let is = self.truth(is);
        self.define(Val::scalar(Type::BOOL, is))
    }

    pub(super) fn typeof_(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        if self.union_members(val.ty).is_some() {
            let what = format!("the type of a `{}` as a value", self.types.display(val.ty));
            return Err(self.report(Refusal::Heap { what }));
        }
        // The type of a type is `DataType` (or a kind that is rarer still), an object in its own right.
        let ty = if self.static_type(&val).is_some() { Type::DATATYPE } else { val.ty };
        let ty = self.type_of(ty)?;
        self.define(Val::ghost(ty))
    }

    pub(super) fn typeassert(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let ty = self.type_operand(1)?;
        let is = self.is_a(&val, ty)?;
        let bad = match self.out.as_bits(is) {
            Some(1) => return self.define(val),
            Some(_) => self.truth(true),
            None => self.not(is),
        };
        let context = self.cx.names.intern(Builtin::Typeassert.name());
        let context = self.symbol(context);
        self.throw_if(bad, RuntimeFn::ThrowType, &[context]);
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let wanted = self.src.ty(result);
        let kept: Vec<Type> =
            self.types.members(&val.ty).iter().copied().filter(|&m| self.types.is_subtype(m, ty)).collect();
        let kept = self.types.union(&kept).map_err(|_| self.bad_operands())?;
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
