//! Rules for builtins that test types, identity and fields.
//!
//! A value's static type is a bound: the value has a type below it. A result is folded if every such type yields it.

use super::{Rewrite, Site};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::{FieldRepr, PrimitiveRepr, StaticBound, TypeField, TypeKind};
use brolga_ir::{Func, Type, Types, Value};

pub(super) fn simplify(site: &mut Site<'_>, op: Builtin) -> Option<Rewrite> {
    match op {
        Builtin::Egal => egal(site),
        Builtin::Isa => isa(site),
        Builtin::Subtype => subtype(site),
        Builtin::Typeof => type_of(site),
        Builtin::Typeassert => typeassert(site),
        Builtin::Sizeof => size_of(site),
        Builtin::Nfields => nfields(site),
        Builtin::Isdefined => isdefined(site),
        Builtin::Getfield => constant_getfield(site),
        _ => None,
    }
}

/// $(Expr(:static_parameter, n)) of a variable that is known  →  its value
pub(super) fn static_parameter(site: &mut Site<'_>, number: u32) -> Option<Rewrite> {
    match site.func.sig.statics.get(number)?.bound {
        StaticBound::Value(value) => Some(Rewrite::Value(site.func.static_value(site.types, value))),
        StaticBound::Undefined | StaticBound::Open { .. } => None,
    }
}

/// Whether a variable that is known has a value  →  the answer
pub(super) fn static_defined(site: &mut Site<'_>, number: u32) -> Option<Rewrite> {
    match site.func.sig.statics.get(number)?.bound {
        StaticBound::Value(_) => site.truth(true),
        StaticBound::Undefined => site.truth(false),
        StaticBound::Open { .. } => None,
    }
}

/// The type that a constant denotes.
fn denoted(site: &Site<'_>, value: Value) -> Option<Type> {
    match site.func.as_const(value)? {
        Const::Type { of, .. } => Some(*of),
        _ => None,
    }
}

fn egal(site: &mut Site<'_>) -> Option<Rewrite> {
    let (x, y) = site.pair()?;
    // x === x  →  true: it compares bits, so this holds for NaN as well.
    if x == y {
        return site.truth(true);
    }
    let (a, b) = (site.func.ty(x), site.func.ty(y));
    if let Some(same) = constants_egal(site, x, y) {
        return site.truth(same);
    }
    // Values of types that have none in common  →  false
    if site.types.is_disjoint(a, b) {
        return site.truth(false);
    }
    // The only value of a type is itself  →  true
    if a == b && site.types.is_singleton(a) {
        return site.truth(true);
    }
    // x === y  →  eq_int(x, y)   for integers of one type. Floats stay: `fpiseq` takes all NaNs for one. Less may be asserted of
    // the result than that it is a truth value.
    if a == b && site.ty == Type::BOOL && site.types.primitive_low(a).is_some() {
        return match site.types.primitive(a)?.1 {
            PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool => {
                Rewrite::binary(Intrinsic::EqInt, x, y)
            }
            PrimitiveRepr::Float | PrimitiveRepr::Char | PrimitiveRepr::Bits => None,
        };
    }
    None
}

/// Pairs of fields that are compared before `===` of two constants is left to run time.
const MAX_PAIRS: usize = 64;

/// Whether two different constants are the same value, where that can be decided.
fn constants_egal(site: &Site<'_>, x: Value, y: Value) -> Option<bool> {
    if let (Const::Type { of: a, .. }, Const::Type { of: b, .. }) =
        (site.func.as_const(x)?, site.func.as_const(y)?)
    {
        return Some(site.types.equivalent(*a, *b));
    }
    let mut pairs = vec![(x, y)];
    for _ in 0..MAX_PAIRS {
        let (x, y) = pairs.pop()?;
        match (site.func.as_const(x)?, site.func.as_const(y)?) {
            _ if x == y => {}
            // Equal constants are one value, and these are two.
            (Const::Bits { .. }, Const::Bits { .. })
            | (Const::String(_), Const::String(_))
            | (Const::Symbol(_), Const::Symbol(_)) => return Some(false),
            (Const::Aggregate { ty: a, fields: p }, Const::Aggregate { ty: b, fields: q }) => {
                if a != b {
                    return Some(false);
                }
                pairs.extend(p.iter().copied().zip(q.iter().copied()));
            }
            _ => {}
        }
    }
    None
}

/// isa(x, T)  →  true or false, if x's type is below T or apart from it
fn isa(site: &mut Site<'_>) -> Option<Rewrite> {
    let (x, ty) = site.pair()?;
    let (own, asked) = (site.func.ty(x), denoted(site, ty)?);
    if site.types.is_subtype(own, asked) {
        site.truth(true)
    } else if site.types.is_disjoint(own, asked) {
        site.truth(false)
    } else {
        None
    }
}

/// A <: B  →  true or false, for known types
fn subtype(site: &mut Site<'_>) -> Option<Rewrite> {
    let (a, b) = site.pair()?;
    let answer = site.types.is_subtype(denoted(site, a)?, denoted(site, b)?);
    site.truth(answer)
}

/// typeof(x)  →  T, if x can only be a T
fn type_of(site: &mut Site<'_>) -> Option<Rewrite> {
    let ty = site.func.ty(site.arg(0)?);
    let exact = site.types.type_constant(site.types.type_of_values(ty));
    site.types.is_concrete(ty).then(|| Rewrite::Value(site.func.constant(exact)))
}

/// typeassert(x, T)  →  x, if x is a T anyway
fn typeassert(site: &Site<'_>) -> Option<Rewrite> {
    let (x, ty) = site.pair()?;
    let holds = site.types.is_subtype(site.func.ty(x), denoted(site, ty)?);
    holds.then_some(Rewrite::Value(x))
}

/// sizeof(T), sizeof(x::T)  →  bytes, if T is a type of plain bits
fn size_of(site: &mut Site<'_>) -> Option<Rewrite> {
    let x = site.arg(0)?;
    let ty = match site.func.as_const(x) {
        Some(Const::Type { of, .. }) => *of,
        _ => match *site.types.kind(site.func.ty(x)) {
            TypeKind::TypeOf(of) => of,
            _ => site.func.ty(x),
        },
    };
    // An object's size may be its own (as for a string), and the size of a type differs from the size of the object for it.
    if !site.types.is_concrete(ty) || site.types.is_mutable(ty) {
        return None;
    }
    let size = site.types.layout(ty).ok().filter(|layout| layout.is_bits())?.size;
    site.constant_value(Type::INT64, u128::from(size))
}

/// nfields(x)  →  the number of fields of x's type
fn nfields(site: &mut Site<'_>) -> Option<Rewrite> {
    let ty = site.func.ty(site.arg(0)?);
    let count = match site.types.primitive(ty) {
        Some(_) => 0,
        // The fields of a type are the fields of the object for it.
        None if matches!(site.types.kind(ty), TypeKind::TypeOf(_)) => return None,
        None if site.types.is_concrete(ty) => site.types.field_count(ty)?,
        None => return None,
    };
    site.constant_value(Type::INT64, count as u128)
}

/// isdefined(x, field)  →  true for fields that always have a value, false for fields that do not exist
fn isdefined(site: &mut Site<'_>) -> Option<Rewrite> {
    let (x, field) = (site.arg(0)?, site.arg(1)?);
    let ty = site.func.ty(x);
    if !site.types.is_concrete(ty) || site.args().len() > 2 {
        return None;
    }
    let count = site.types.field_count(ty)?;
    let exists = match site.func.as_const(field)? {
        Const::Symbol(name) => site.types.field_index(ty, *name).is_some(),
        Const::Bits { ty: Type::INT64, bits } => (1..=count as u128).contains(bits),
        _ => return None,
    };
    if !exists {
        return site.truth(false);
    }
    let index = field_position(site.func, site.types, ty, field)?;
    // The storage of a field depends on the layout around it: a struct is stored by reference in itself.
    let layout = site.types.layout(ty).ok()?;
    let field = layout.fields.get(index)?;
    let always = match site.types.is_mutable(ty) {
        true => site.types.first_reference(field.ty, field.repr).is_none(),
        false => site.types.tuple_elements(ty).is_some() || field.repr != FieldRepr::Pointer,
    };
    always.then(|| site.truth(true))?
}

/// getfield((c, d), 1)  →  c, for constants
fn constant_getfield(site: &mut Site<'_>) -> Option<Rewrite> {
    let (aggregate, field) = (site.arg(0)?, site.arg(1)?);
    // getfield(T, :isbitstype)  →  the answer
    if let (Some(ty), Some(&Const::Symbol(name))) = (denoted(site, aggregate), site.func.as_const(field)) {
        return match site.types.type_field(ty, site.types.names().text(name))? {
            TypeField::Number(ty, bits) => site.constant_value(ty, bits.into()),
            TypeField::Type(_) | TypeField::Names => None,
        };
    }
    let index = field_position(site.func, site.types, site.func.ty(aggregate), field)?;
    constant_field(site.func, aggregate, index).map(Rewrite::Value)
}

/// The position (from 0) of the field that a constant names in a struct, tuple or named tuple type of fixed size.
pub(crate) fn field_position(func: &Func, types: &Types, ty: Type, field: Value) -> Option<usize> {
    let index = match func.as_const(field)? {
        Const::Symbol(name) => types.field_index(ty, *name)?,
        Const::Bits { ty: Type::INT64, bits } => usize::try_from(*bits).ok()?.checked_sub(1)?,
        _ => return None,
    };
    (index < types.field_count(ty)?).then_some(index)
}

/// A field of a constant immutable.
pub(crate) fn constant_field(func: &Func, aggregate: Value, index: usize) -> Option<Value> {
    match func.as_const(aggregate)? {
        Const::Aggregate { fields, .. } => fields.get(index).copied(),
        _ => None,
    }
}
