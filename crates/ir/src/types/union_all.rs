//! Types with their own variables, for tests: `Vector{<:Real}`, `Vector`, `Type{<:Integer}`, `Tuple{T, Vector{T}} where T`.
//!
//! ```text
//! Array{T, 1} where T <: Real           bounds  (Union{}, Real)        body  Array{<0>, 1}
//!   a value of it                       a Vector{Int64}: <0> := Int64, and Int64 <: Real
//!   hull                                Array, which replaces it where values are declared
//! ```
//!
//! Such a type is the operand of `isa`, `typeassert` and `<:`. The type of a row is its *hull* instead, a
//! supertype: only tests use the variables; the forms of values need only the hull.
//!
//! **Normal form.** Unused variables are dropped; a bare variable is its upper bound;
//! `Dict{K, V} where {K, V}` is `Dict`. Two types that differ in the order of their variables are equivalent,
//! not equal.
//!
//! **`<:`.** A type is below it if [`Statics`] bind its variables, like the variables of a method with one
//! parameter. One such type is below another if that holds for all values of its own variables.
//!
//! Not done: variables of one type in the bounds of another type inside it (`Pair{T, Vector{<:T}} where T`).

use std::cell::Cell;

use crate::constant::Const;

use super::{Pattern, StaticBound, StaticParam, Statics, Type, TypeError, TypeKind, Types};

impl Types {
    /// The type with these variables, given by their lower and upper bounds, and this body. Variable *n* is
    /// parameter *n* in the body and in later bounds.
    ///
    /// # Errors
    ///
    /// [`TypeError::Unbound`] if another parameter occurs; otherwise as for a tuple of the parts.
    pub fn union_all(&self, bounds: &[(Type, Type)], body: Type) -> Result<Type, TypeError> {
        let count = bounds.len();
        let is_bound = |ty: Type, count: usize| !self.mentions(ty, &|n| n as usize >= count);
        let all_bound = (0..count).all(|n| is_bound(bounds[n].0, n) && is_bound(bounds[n].1, n));
        if !all_bound || !is_bound(body, count) {
            return Err(TypeError::Unbound);
        }
        let (mut bounds, mut body) = (bounds, body);
        while let &TypeKind::Param(n) = self.kind(body) {
            let upper = bounds[n as usize].1;
            (bounds, body) = (&bounds[..n as usize], upper);
        }
        // Bounds mention earlier variables, so one visit from the end finds all that are needed.
        let needed: Vec<Cell<bool>> = vec![Cell::new(false); bounds.len()];
        let note = |ty: Type| {
            self.mentions(ty, &|n| {
                needed[n as usize].set(true);
                false
            });
        };
        note(body);
        for (&(lower, upper), _) in bounds.iter().zip(&needed).rev().filter(|(_, needed)| needed.get()) {
            note(lower);
            note(upper);
        }
        let mut renamed = Vec::with_capacity(bounds.len());
        let mut kept = Vec::with_capacity(bounds.len());
        for (n, &(lower, upper)) in bounds.iter().enumerate() {
            renamed.push(self.param(kept.len() as u32));
            if needed[n].get() {
                kept.push((self.substitute(lower, &renamed)?, self.substitute(upper, &renamed)?));
            }
        }
        let body = self.substitute(body, &renamed)?;
        let is_free = || kept.iter().all(|&bounds| bounds == (Type::BOTTOM, Type::ANY));
        match (self.kind(body), &kept[..]) {
            (_, []) => return Ok(body),
            (TypeKind::Nominal { decl, params }, _) if is_free() && self.are_all(params, kept.len()) => {
                return self.nominal(*decl, &[]);
            }
            (TypeKind::TypeOf(of), [_]) if is_free() && self.are_all(&[*of], 1) => {
                return Ok(self.supertype(Type::DATATYPE));
            }
            _ => {}
        }
        self.intern(TypeKind::UnionAll { bounds: kept.into(), body })
    }

    /// Whether these are the first `count` parameters, in any order.
    fn are_all(&self, params: &[Type], count: usize) -> bool {
        params.len() == count && (0..count as u32).all(|n| params.contains(&self.param(n)))
    }

    /// Whether a type with variables occurs where types are compared exactly, so that its objects have a type
    /// that contains a hull instead.
    pub(crate) fn has_inner_union_all(&self, ty: Type) -> bool {
        let any = |list: &[Type]| list.iter().any(|&ty| self.has_inner_union_all(ty));
        match self.kind(ty) {
            TypeKind::UnionAll { bounds, body } => {
                any(&[*body]) || bounds.iter().any(|&(lower, upper)| any(&[lower, upper]))
            }
            TypeKind::Union(members) => any(members),
            TypeKind::Tuple { elems, vararg } => any(elems) || any(vararg.as_slice()),
            TypeKind::NTuple { elem, .. } => any(&[*elem]),
            TypeKind::Nominal { params, .. } => params.iter().any(|&param| self.contains_union_all(param)),
            TypeKind::TypeOf(of) => self.contains_union_all(*of),
            TypeKind::NamedTuple { tuple, .. } => self.contains_union_all(*tuple),
            _ => false,
        }
    }

    fn contains_union_all(&self, ty: Type) -> bool {
        matches!(self.kind(ty), TypeKind::UnionAll { .. })
            || self.any_part(ty, &|part| self.contains_union_all(part))
    }

    /// Whether the values of the type are types, whose own type is less precise: `Type{<:Integer}`.
    pub(super) fn is_of_types(&self, ty: Type) -> bool {
        match self.kind(ty) {
            TypeKind::UnionAll { body, .. } => matches!(self.kind(*body), TypeKind::TypeOf(_)),
            _ => false,
        }
    }

    /// `a <: b` where one of them has its own variables.
    pub(super) fn union_all_subtype(&self, a: Type, b: Type) -> bool {
        let to = self.as_pattern(b);
        let to = Pattern { statics: &to, vararg: false };
        match self.kind(a) {
            // The type of a type object is one of several.
            TypeKind::UnionAll { .. }
                if self.is_of_types(a) && matches!(self.kind(b), TypeKind::Nominal { .. }) =>
            {
                b == self.supertype(Type::DATATYPE)
            }
            TypeKind::UnionAll { .. } => {
                let from = self.as_pattern(a);
                self.is_below(Pattern { statics: &from, vararg: false }, to)
            }
            _ => self.bind_statics(to, &[a]).is_some(),
        }
    }

    /// Treats the variables of a type like the variables of a method with one parameter of that type.
    fn as_pattern(&self, ty: Type) -> Statics {
        let (bounds, body) = match self.kind(ty) {
            TypeKind::UnionAll { bounds, body } => (&bounds[..], *body),
            _ => (&[][..], ty),
        };
        let name = self.names().intern("T");
        let params = bounds
            .iter()
            .map(|&(lower, upper)| StaticParam { name, bound: StaticBound::Open { lower, upper } })
            .collect();
        Statics { params, patterns: vec![Type::ANY, body] }
    }

    /// The type of a type as an object: `DataType` except for unions and parametric types with open
    /// parameters.
    pub fn type_of_type(&self, ty: Type) -> Type {
        match self.kind(ty) {
            TypeKind::Generic(_) | TypeKind::UnionAll { .. } => Type::UNION_ALL,
            // `Type` is `Type{T} where T`.
            TypeKind::Nominal { .. } if ty == self.supertype(Type::DATATYPE) => Type::UNION_ALL,
            TypeKind::Union(_) => Type::UNION,
            TypeKind::Bottom => Type::TYPEOF_BOTTOM,
            _ => Type::DATATYPE,
        }
    }

    /// The `typeof` of values of a type, if it is unique. For a type value it is the type of its object.
    pub fn type_of_values(&self, ty: Type) -> Type {
        match self.kind(ty) {
            TypeKind::TypeOf(of) => self.type_of_type(*of),
            _ => ty,
        }
    }

    /// The type of a tuple of values of these types. No tuple is a `Tuple{Type{T}}`.
    ///
    /// # Errors
    ///
    /// Like [`Types::tuple`].
    pub fn tuple_of_values(&self, elems: &[Type]) -> Result<Type, TypeError> {
        let elems: Vec<Type> = elems.iter().map(|&elem| self.type_of_values(elem)).collect();
        self.tuple(&elems)
    }

    /// `Type{<:Tuple}`, the type of tuple types as objects.
    ///
    /// # Errors
    ///
    /// Never fails unless the table is full.
    pub fn types_of_tuples(&self) -> Result<Type, TypeError> {
        let (tuples, body) = (self.tuple_vararg(&[], Type::ANY)?, self.type_of(self.param(0))?);
        self.union_all(&[(Type::BOTTOM, tuples)], body)
    }

    pub fn type_constant(&self, of: Type) -> Const {
        Const::Type { of, ty: self.type_of_type(of) }
    }

    /// Whether a constant is a type `T` and so a `Type{T}`, which its own type does not show.
    pub(crate) fn is_type_in(&self, constant: &Const, ty: Type) -> bool {
        let Const::Type { of: denoted, .. } = constant else { return false };
        let is_its = |&member: &Type| matches!(self.kind(member), TypeKind::TypeOf(of) if self.equivalent(*of, *denoted));
        self.members(&ty).iter().any(is_its)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::types::decl;

    fn named(cx: &Context, name: &str) -> Type {
        let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    }

    /// `Array{<0>, dims}` with this bound.
    fn vectors(cx: &Context, dims: i64, upper: Type) -> Type {
        let body = cx.types.nominal(decl::ARRAY, &[cx.types.param(0), cx.types.int(dims)]).unwrap();
        cx.types.union_all(&[(Type::BOTTOM, upper)], body).unwrap()
    }

    #[test]
    fn instances_are_below_and_others_apart() {
        let cx = Context::new();
        let t = &cx.types;
        let (any, reals) = (vectors(&cx, 1, Type::ANY), vectors(&cx, 1, named(&cx, "Real")));
        let of = |elem| t.vector(elem).unwrap();
        for (ty, is_vector, is_real) in [
            (of(Type::INT64), true, true),
            (of(Type::STRING), true, false),
            (of(Type::ANY), true, false),
            (of(named(&cx, "Real")), true, true),
            (t.array(Type::INT64, 2).unwrap(), false, false),
            (Type::INT64, false, false),
        ] {
            for (asked, is) in [(any, is_vector), (reals, is_real)] {
                assert_eq!(t.is_subtype(ty, asked), is, "{} {}", t.display(ty), t.display(asked));
                assert_eq!(t.is_disjoint(ty, asked), !is, "{} {}", t.display(ty), t.display(asked));
            }
        }
        assert!(t.is_subtype(reals, any) && !t.is_subtype(any, reals));
        let array = named(&cx, "Array");
        assert!(t.is_subtype(any, array) && !t.is_subtype(array, any) && !t.is_disjoint(array, reals));
    }

    #[test]
    fn types_of_types_are_no_datatypes_by_their_type() {
        let cx = Context::new();
        let t = &cx.types;
        let body = t.type_of(t.param(0)).unwrap();
        let integers = t.union_all(&[(Type::BOTTOM, named(&cx, "Integer"))], body).unwrap();
        assert!(t.is_subtype(t.type_of(Type::INT8).unwrap(), integers));
        assert!(!t.is_subtype(t.type_of(Type::FLOAT64).unwrap(), integers));
        assert!(t.is_disjoint(t.type_of(Type::FLOAT64).unwrap(), integers));
        // An object known only as a `DataType` may be one of them.
        assert!(!t.is_subtype(Type::DATATYPE, integers) && !t.is_disjoint(Type::DATATYPE, integers));
        assert!(t.is_disjoint(Type::INT64, integers));
        assert!(!t.is_subtype(integers, Type::DATATYPE) && t.is_subtype(integers, named(&cx, "Type")));
    }

    #[test]
    fn one_form() {
        let cx = Context::new();
        let t = &cx.types;
        let free = (Type::BOTTOM, Type::ANY);
        let real = named(&cx, "Real");
        let dict = |a, b| t.nominal(cx.types.find_decl(cx.names.intern("Pair")).unwrap(), &[a, b]).unwrap();
        assert_eq!(t.union_all(&[free, free], dict(t.param(1), t.param(0))), Ok(named(&cx, "Pair")));
        assert_eq!(t.union_all(&[free], t.type_of(t.param(0)).unwrap()), Ok(named(&cx, "Type")));
        assert_eq!(t.union_all(&[(Type::BOTTOM, real)], t.param(0)), Ok(real));
        assert_eq!(t.union_all(&[free], Type::INT64), Ok(Type::INT64));
        // Each variable is below the previous one.
        let chain: Vec<(Type, Type)> = (0..100_000u32)
            .map(|n| (Type::BOTTOM, n.checked_sub(1).map_or(real, |front| t.param(front))))
            .collect();
        assert_eq!(t.union_all(&chain, t.param(99_999)), Ok(real));
        assert_eq!(t.union_all(&[free], t.param(1)), Err(TypeError::Unbound));
        // The first variable is unused, so the second becomes the first.
        let unused = t.union_all(&[free, (Type::BOTTOM, real)], dict(t.param(1), Type::INT8)).unwrap();
        assert_eq!(unused, t.union_all(&[(Type::BOTTOM, real)], dict(t.param(0), Type::INT8)).unwrap());
        assert_eq!(t.display(unused).to_string(), "Pair{<:Real, Int8}");
        let twice = t.union_all(&[(Type::BOTTOM, real)], dict(t.param(0), t.param(0))).unwrap();
        assert_eq!(t.display(twice).to_string(), "Pair{T1, T1} where {T1 <: Real}");
        assert!(t.is_subtype(dict(Type::INT8, Type::INT8), twice));
        assert!(!t.is_subtype(dict(Type::INT8, Type::INT16), twice));
        assert_eq!(t.display(vectors(&cx, 1, Type::ANY)).to_string(), "Vector");
        assert_eq!(t.display(vectors(&cx, 3, Type::ANY)).to_string(), "Array{<:Any, 3}");
    }
}
