//! `<:`, disjointness and the normal form of unions.
//!
//! The relation is Julia's, restricted to the types of this IR: unions by members, tuples covariantly,
//! declared types invariantly in their parameters along the declared chain of supertypes, a generic form
//! above all its instances. Values' types have no bounded type variables, which are what makes Julia's
//! general algorithm hard; `union_all` decides types with their own variables.
//!
//! Cost: one walk over both types, which interning keeps shallow; unions multiply their member counts.

use super::declaration::MAX_WIDTH;
use super::{Decl, Type, TypeError, TypeKind, Types, decl};

impl Types {
    /// Whether every value of `a` is a value of `b`.
    pub fn is_subtype(&self, a: Type, b: Type) -> bool {
        if a == b || a == Type::BOTTOM {
            return true;
        }
        if b == Type::ANY {
            return a.as_low().is_none() && a != Type::TOKEN;
        }
        match (self.kind(a), self.kind(b)) {
            (TypeKind::Union(members), _) => members.iter().all(|&m| self.is_subtype(m, b)),
            (_, TypeKind::Union(members)) => members.iter().any(|&m| self.is_subtype(a, m)),
            (TypeKind::UnionAll { .. }, _) | (_, TypeKind::UnionAll { .. }) => self.union_all_subtype(a, b),
            (TypeKind::Tuple { elems: x, vararg: xr }, TypeKind::Tuple { elems: y, vararg: yr }) => {
                self.tuple_subtype((x, *xr), (y, *yr))
            }
            (TypeKind::NamedTuple { names: x, tuple: xt }, TypeKind::NamedTuple { names: y, tuple: yt }) => {
                x == y && self.equivalent(*xt, *yt)
            }
            // `Type{T}` is below `Type`, as every type object is, and below `DataType` or `UnionAll`.
            (TypeKind::TypeOf(of), TypeKind::Nominal { .. }) => {
                b == self.supertype(Type::DATATYPE) || b == self.type_of_type(*of)
            }
            (TypeKind::TypeOf(x), TypeKind::TypeOf(y)) => self.equivalent(*x, *y),
            (TypeKind::Nominal { .. } | TypeKind::Generic(_), TypeKind::Generic(wanted))
                if self.is_surely_not_below(a, *wanted) =>
            {
                false
            }
            (
                TypeKind::Nominal { .. } | TypeKind::Function(_) | TypeKind::Generic(_),
                TypeKind::Generic(wanted),
            ) => self.chain(a).any(|t| match self.kind(t) {
                TypeKind::Nominal { decl, .. } | TypeKind::Generic(decl) => decl == wanted,
                _ => false,
            }),
            (
                TypeKind::Nominal { .. } | TypeKind::Function(_),
                TypeKind::Nominal { decl: wanted, params: q },
            ) if self.is_surely_not_below(a, *wanted) => false,
            (TypeKind::Nominal { decl, .. }, TypeKind::Nominal { decl: wanted, params: q })
                if q.is_empty() && self.is_declared_below(*decl, *wanted) == Some(true) =>
            {
                true
            }
            (
                TypeKind::Nominal { .. } | TypeKind::Function(_),
                TypeKind::Nominal { decl: wanted, params: q },
            ) => self.chain(a).any(|t| match self.kind(t) {
                TypeKind::Nominal { decl, params: p } => {
                    decl == wanted
                        && p.len() == q.len()
                        && p.iter().zip(q).all(|(&p, &q)| self.equivalent(p, q))
                }
                _ => false,
            }),
            (TypeKind::Generic(d), TypeKind::Nominal { decl: wanted, params }) if params.is_empty() => {
                let start = self.body(*d).map_or(Type::ANY, |b| b.supertype);
                d == wanted || self.chain(start).any(|t| t == b)
            }
            _ => false,
        }
    }

    /// Whether both types have the same values.
    pub fn equivalent(&self, a: Type, b: Type) -> bool {
        a == b || (self.is_subtype(a, b) && self.is_subtype(b, a))
    }

    /// Whether no value belongs to both types. Conservative: may return `false` for some disjoint types.
    pub fn is_disjoint(&self, a: Type, b: Type) -> bool {
        if self.is_subtype(a, b) || self.is_subtype(b, a) {
            return a == Type::BOTTOM || b == Type::BOTTOM;
        }
        let (left, right) = (self.members(&a), self.members(&b));
        if left.len() > 1 || right.len() > 1 {
            return left.iter().all(|&l| right.iter().all(|&r| self.is_disjoint(l, r)));
        }
        // Two different concrete types are disjoint, and a concrete type is disjoint from an abstract one
        // that is not above it.
        let kinds = |ty: Type| ty == Type::DATATYPE || self.supertype(ty) == self.supertype(Type::DATATYPE);
        let is_apart = |a, b| self.is_concrete(a) && !(self.is_of_types(b) && kinds(a));
        is_apart(a, b) || is_apart(b, a)
    }

    /// `a` without the values of `b`, as far as whole union members can be removed.
    pub fn difference(&self, a: Type, b: Type) -> Result<Type, TypeError> {
        let rest: Vec<Type> = self.members(&a).iter().copied().filter(|&m| !self.is_subtype(m, b)).collect();
        self.union(&rest)
    }

    /// Whether a type has a declaration that is not below another one.
    fn is_surely_not_below(&self, ty: Type, wanted: Decl) -> bool {
        match self.kind(ty) {
            TypeKind::Nominal { decl, .. } | TypeKind::Generic(decl) => {
                self.is_declared_below(*decl, wanted) == Some(false)
            }
            _ => false,
        }
    }

    /// `ty` and its supertypes, below `Any`.
    pub(super) fn chain(&self, ty: Type) -> impl Iterator<Item = Type> + '_ {
        // Declarations cannot be cyclic, but an undefined type has no supertype either.
        std::iter::successors(Some(ty), |&t| Some(self.supertype(t))).take_while(|&t| t != Type::ANY)
    }

    fn tuple_subtype(&self, (x, xr): (&[Type], Option<Type>), (y, yr): (&[Type], Option<Type>)) -> bool {
        let arity_fits = match (xr, yr) {
            (None, None) => x.len() == y.len(),
            (None, Some(_)) => x.len() >= y.len(),
            (Some(_), None) => false,
            (Some(_), Some(_)) => x.len() >= y.len(),
        };
        let at = |elems: &[Type], rest: Option<Type>, i: usize| elems.get(i).copied().or(rest);
        arity_fits
            && (0..x.len().max(y.len())).all(|i| match (at(x, xr, i), at(y, yr, i)) {
                (Some(a), Some(b)) => self.is_subtype(a, b),
                _ => false,
            })
            && match (xr, yr) {
                (Some(a), Some(b)) => self.is_subtype(a, b),
                _ => true,
            }
    }

    /// Flattens, drops members covered by another, and sorts as Julia prints unions: singletons, then bits
    /// types, then the rest, each by name.
    pub(super) fn normal_members(&self, members: &[Type]) -> Result<Vec<Type>, TypeError> {
        if !members.iter().all(|&ty| self.has(ty)) {
            return Err(TypeError::Foreign);
        }
        let flat: Vec<Type> = members.iter().flat_map(|m| self.members(m)).copied().collect();
        if flat.len() > MAX_WIDTH {
            return Err(TypeError::TooWide { count: flat.len() });
        }
        if let Some(&inner) = flat.iter().find(|t| t.as_low().is_some()) {
            return Err(TypeError::MixedLevels { inner });
        }
        let mut kept: Vec<Type> = Vec::new();
        for &ty in &flat {
            if kept.iter().any(|&k| self.is_subtype(ty, k)) {
                continue;
            }
            kept.retain(|&k| !self.is_subtype(k, ty));
            kept.push(ty);
        }
        kept.sort_by_cached_key(|&t| {
            let rank = if self.is_singleton(t) { 0 } else { 1 };
            (rank, self.display(t).to_string())
        });
        Ok(kept)
    }

    /// Whether the type is below `Exception`.
    pub fn is_exception(&self, ty: Type) -> bool {
        let below = self.nominal_parts(ty).and_then(|(own, _)| self.is_declared_below(own, decl::EXCEPTION));
        below.unwrap_or_else(|| {
            self.chain(ty).any(|t| matches!(self.nominal_parts(t), Some((decl::EXCEPTION, _))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::types::{DeclKind, FieldDecl};

    fn named(cx: &Context, name: &str) -> Type {
        let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    }

    #[test]
    fn the_numeric_tower() {
        let cx = Context::new();
        let t = &cx.types;
        assert!(t.is_subtype(Type::INT8, named(&cx, "Number")));
        assert!(t.is_subtype(Type::BOOL, named(&cx, "Integer")));
        assert!(!t.is_subtype(Type::FLOAT64, named(&cx, "Integer")));
        assert!(!t.is_subtype(named(&cx, "Number"), Type::INT8));
        assert!(!t.is_subtype(Type::I64, Type::ANY));
    }

    #[test]
    fn parameters_are_invariant_and_tuples_covariant() {
        let cx = Context::new();
        let t = &cx.types;
        let integer = named(&cx, "Integer");
        let vi = t.vector(Type::INT64).unwrap();
        let va = t.vector(integer).unwrap();
        assert!(!t.is_subtype(vi, va));
        assert!(t.is_subtype(vi, named(&cx, "Array")));
        assert!(t.is_subtype(vi, named(&cx, "AbstractArray")));
        let ti = t.tuple(&[Type::INT64]).unwrap();
        assert!(t.is_subtype(ti, t.tuple(&[integer]).unwrap()));
        assert!(t.is_subtype(ti, t.tuple_vararg(&[], Type::INT64).unwrap()));
        assert!(!t.is_subtype(t.tuple_vararg(&[], Type::INT64).unwrap(), ti));
    }

    #[test]
    fn unions_have_one_form() {
        let cx = Context::new();
        let t = &cx.types;
        let a = t.union(&[Type::INT64, Type::NOTHING, Type::INT64]).unwrap();
        let b = t.union(&[Type::NOTHING, Type::INT64]).unwrap();
        assert_eq!(a, b);
        assert_eq!(t.display(a).to_string(), "Union{Nothing, Int64}");
        let inner = t.union(&[Type::FLOAT64, a]).unwrap();
        assert_eq!(t.display(inner).to_string(), "Union{Nothing, Float64, Int64}");
        assert_eq!(t.union(&[Type::INT8, named(&cx, "Signed")]).unwrap(), named(&cx, "Signed"));
        assert_eq!(
            t.difference(inner, Type::NOTHING).unwrap(),
            t.union(&[Type::INT64, Type::FLOAT64]).unwrap()
        );
    }

    #[test]
    fn declared_types() {
        let cx = Context::new();
        let t = &cx.types;
        let n = |s: &str| cx.names.intern(s);
        let shape = t.declare(n("Shape"), &[]).unwrap();
        t.define(shape, Type::ANY, DeclKind::Abstract).unwrap();
        let pairish = t.declare(n("P"), &[n("T")]).unwrap();
        let fields = [FieldDecl::new(n("x"), t.param(0))];
        let shape = t.nominal(shape, &[]).unwrap();
        t.define(pairish, shape, DeclKind::Struct { mutable: false, fields: fields.into() }).unwrap();
        let p = t.nominal(pairish, &[Type::INT64]).unwrap();
        assert!(t.is_subtype(p, shape));
        assert!(t.is_subtype(p, t.nominal(pairish, &[]).unwrap()));
        assert_eq!(t.fields(p).unwrap()[0].ty, Type::INT64);
        assert!(t.is_disjoint(p, Type::INT64));
        assert!(t.declare(n("P"), &[]).is_err());
        assert!(matches!(
            t.define(t.declare(n("Q"), &[]).unwrap(), p, DeclKind::Abstract),
            Err(TypeError::SupertypeNotAbstract { .. })
        ));
    }

    #[test]
    fn nesting_is_limited() {
        let cx = Context::new();
        let mut ty = Type::INT64;
        let error = loop {
            match cx.types.ptr(ty) {
                Ok(next) => ty = next,
                Err(error) => break error,
            }
        };
        assert_eq!(error, TypeError::TooDeep);
    }

    #[test]
    fn a_type_small_as_a_graph_and_huge_as_text_is_refused() {
        let cx = Context::new();
        let mut ty = Type::INT64;
        let error = loop {
            match cx.types.tuple(&[ty, ty]) {
                Ok(next) => ty = next,
                Err(error) => break error,
            }
        };
        assert_eq!(error, TypeError::TooHeavy);
        assert!(cx.types.is_concrete(ty));
    }
}
