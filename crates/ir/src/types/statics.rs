//! Static parameters: the variables of a method's `where`, and their values for the types of a call.
//!
//! ```text
//! f(x::Vector{T}, y::S) where {T, S <: Real}          called with (Vector{Int8}, Float64)
//!   patterns   typeof(f), Vector{<0>}, <1>            <0> := Int8      from an invariant position
//!   variables  <0>: T, <1>: S <: Real                 <1> := Float64   from a covariant position
//! ```
//!
//! A variable is either *open*, and each call binds it, or known, as in a method compiled for exact types.
//! The types of a signature's parameters do not mention variables: their upper bounds replace them. The
//! further constraints on the variables are the *patterns*, one for each parameter, in which variable *n* is
//! [`TypeKind::Param`]`(n)`. A call fits a method if its arguments have the parameters' types and fit the
//! patterns.
//!
//! **Binding.** In an invariant position (`Vector{T}`) a variable equals the type at that position. If it has
//! only covariant positions (`x::T`), it is the type of the argument; with several of them (the *diagonal*
//! rule) all must have the same concrete type. A bound is checked when its variable is bound, and may bind
//! variables that it mentions (`S <: Vector{T}`). A variable that is never bound is undefined.
//!
//! **Specificity.** The arguments may themselves be patterns, of a method that may be the more specific one.
//! Their variables represent any type within their bounds.
//!
//! Cost: one walk over patterns and types; unions try their members in turn. Not done: variables that no
//! single argument type determines (`T >: Union{Int64, Float64}` from two arguments), element counts as
//! variables (`NTuple{N, T}`).

use super::{Type, TypeError, TypeKind, Types};
use crate::names::Name;

/// A variable of a `where`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StaticParam {
    pub name: Name,
    pub bound: StaticBound,
}

/// The bound of a variable of a `where`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StaticBound {
    /// A type chosen by the call, between these two.
    Open {
        /// The lower bound.
        lower: Type,
        /// The upper bound; may mention earlier variables.
        upper: Type,
    },
    /// This type, integer or symbol.
    Value(Type),
    /// No value: reading it throws.
    Undefined,
}

/// The `where` of a method.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Statics {
    /// The variables, in order.
    pub params: Vec<StaticParam>,
    /// For each parameter of the signature, the function object included, its type with variables. Empty if
    /// no variable is open.
    pub patterns: Vec<Type>,
}

impl Statics {
    /// Whether calls bind variables.
    pub fn is_open(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// A variable by its number from 1.
    pub fn get(&self, number: u32) -> Option<&StaticParam> {
        self.params.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// The patterns of the arguments as a tuple type.
    fn tuple(&self, types: &Types, vararg: bool) -> Result<Type, TypeError> {
        let args = self.patterns.get(1..).unwrap_or_default();
        match (args.split_last(), vararg) {
            (Some((&last, fixed)), true) => types.tuple_vararg(fixed, element(types, last)),
            _ => types.tuple(args),
        }
    }

    /// Encodes the whole as one type, which has no values, so that run time and compiled code can name it:
    /// `Tuple{Tuple{names…}, Tuple{lower bounds…}, Tuple{upper bounds…}, Tuple{patterns…}}`.
    pub fn to_type(&self, types: &Types, vararg: bool) -> Result<Type, TypeError> {
        let names: Vec<Type> = self.params.iter().map(|param| types.sym(param.name)).collect();
        let bounds = |pick: fn(Type, Type) -> Type| -> Vec<Type> {
            let one = |param: &StaticParam| match param.bound {
                StaticBound::Open { lower, upper } => pick(lower, upper),
                StaticBound::Value(ty) => ty,
                // No type is above `Any` and below `Union{}`, so no call binds it.
                StaticBound::Undefined => pick(Type::ANY, Type::BOTTOM),
            };
            self.params.iter().map(one).collect()
        };
        let (lowers, uppers) = (bounds(|lower, _| lower), bounds(|_, upper| upper));
        types.tuple(&[
            types.tuple(&names)?,
            types.tuple(&lowers)?,
            types.tuple(&uppers)?,
            self.tuple(types, vararg)?,
        ])
    }

    /// Decodes the output of [`Statics::to_type`], without the pattern of the function object; also whether
    /// the last parameter collects.
    pub fn from_type(types: &Types, ty: Type) -> Option<(Statics, bool)> {
        let [names, lowers, uppers, patterns] = *types.tuple_elements(ty)? else { return None };
        let (names, lowers, uppers) =
            (types.tuple_elements(names)?, types.tuple_elements(lowers)?, types.tuple_elements(uppers)?);
        let mut params = Vec::with_capacity(names.len());
        for ((&name, &lower), &upper) in names.iter().zip(lowers).zip(uppers) {
            let TypeKind::Sym(name) = *types.kind(name) else { return None };
            let bound = match (lower, upper) {
                (Type::ANY, Type::BOTTOM) => StaticBound::Undefined,
                _ if lower == upper => StaticBound::Value(lower),
                _ => StaticBound::Open { lower, upper },
            };
            params.push(StaticParam { name, bound });
        }
        let TypeKind::Tuple { elems, vararg } = types.kind(patterns) else { return None };
        let rest = vararg.map(|rest| types.tuple_vararg(&[], rest)).transpose().ok()?;
        let patterns = std::iter::once(Type::ANY).chain(elems.iter().copied()).chain(rest).collect();
        Some((Statics { params, patterns }, vararg.is_some()))
    }
}

/// The element type of a collecting parameter.
fn element(types: &Types, ty: Type) -> Type {
    match types.kind(ty) {
        TypeKind::Tuple { vararg: Some(rest), .. } => *rest,
        _ => Type::ANY,
    }
}

/// The `where` of a method, and whether its last parameter collects.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// The `where`.
    pub statics: &'a Statics,
    /// Whether the last parameter collects.
    pub vararg: bool,
}

impl Pattern<'_> {
    /// Patterns that represent all arguments: one for each fixed parameter, and two for a collecting one.
    fn samples(self, types: &Types) -> Vec<Type> {
        let mut samples = self.statics.patterns.get(1..).unwrap_or_default().to_vec();
        if self.vararg
            && let Some(last) = samples.pop()
        {
            samples.extend([element(types, last); 2]);
        }
        samples
    }

    /// Whether the variable has several positions, all covariant.
    fn is_diagonal(self, types: &Types, variable: u32) -> bool {
        let mut places = Places::default();
        for sample in self.samples(types) {
            places.count(types, sample, variable);
        }
        places.covariant > 1 && !places.invariant
    }
}

#[derive(Default)]
struct Places {
    covariant: usize,
    invariant: bool,
}

impl Places {
    fn count(&mut self, types: &Types, ty: Type, variable: u32) {
        match types.kind(ty) {
            TypeKind::Param(n) => self.covariant += usize::from(*n == variable),
            TypeKind::Tuple { elems, vararg } => {
                // A collecting element represents several.
                let rest = vararg.iter().flat_map(|&rest| [rest, rest]);
                elems.iter().copied().chain(rest).for_each(|elem| self.count(types, elem, variable));
            }
            TypeKind::Union(members) => members.iter().for_each(|&m| self.count(types, m, variable)),
            TypeKind::NTuple { count, elem } => {
                // A length is known exactly; an element represents several.
                self.invariant |= types.mentions(*count, &|n| n == variable);
                [*elem, *elem].into_iter().for_each(|elem| self.count(types, elem, variable));
            }
            _ => self.invariant |= types.mentions(ty, &|n| n == variable),
        }
    }
}

impl Types {
    /// Whether the type mentions a variable that satisfies `wanted`.
    pub fn mentions(&self, ty: Type, wanted: &dyn Fn(u32) -> bool) -> bool {
        match self.kind(ty) {
            TypeKind::Param(n) => wanted(*n),
            _ => self.any_part(ty, &|part| self.mentions(part, wanted)),
        }
    }

    /// Whether `holds` for one of the types that a type is made of. A type with its own variables counts as a
    /// whole.
    pub(super) fn any_part(&self, ty: Type, holds: &dyn Fn(Type) -> bool) -> bool {
        let any = |list: &[Type]| list.iter().any(|&part| holds(part));
        match self.kind(ty) {
            TypeKind::Nominal { params: list, .. } | TypeKind::Union(list) => any(list),
            TypeKind::Tuple { elems, vararg } => any(elems) || any(vararg.as_slice()),
            TypeKind::NamedTuple { tuple, .. } => holds(*tuple),
            TypeKind::TypeOf(of) => holds(*of),
            TypeKind::NTuple { count, elem } => holds(*count) || holds(*elem),
            _ => false,
        }
    }

    /// The type of a static parameter's value: `Type{T}`, `Int64` or `Symbol`. Types are distinguished by
    /// `===`.
    pub fn static_type(&self, value: Type) -> Type {
        match self.kind(value) {
            TypeKind::Int(_) => Type::INT64,
            TypeKind::Sym(_) => Type::SYMBOL,
            TypeKind::Bits { ty, .. } => *ty,
            TypeKind::Values(elems) => {
                let elems: Vec<Type> = elems.iter().map(|&elem| self.static_type(elem)).collect();
                self.tuple(&elems).unwrap_or(Type::ANY)
            }
            _ => self.type_of(value).unwrap_or(Type::DATATYPE),
        }
    }

    /// The variables of a method for a call with arguments of the given types (without the function object),
    /// or `None` if they do not fit. A type as an argument has the type `Type{T}`.
    pub fn bind_statics(&self, to: Pattern<'_>, args: &[Type]) -> Option<Vec<Option<Type>>> {
        Fit::new(self, to, None).all(args)
    }

    /// Whether every call that fits `a` fits `b`, as far as their variables are concerned. Without open
    /// variables, a method's patterns are its types.
    pub fn is_below(&self, a: Pattern<'_>, b: Pattern<'_>) -> bool {
        Fit::new(self, b, Some(a)).all(&a.samples(self)).is_some()
    }
}

#[derive(Clone, Default)]
struct Found {
    /// The type at its invariant positions.
    exact: Option<Type>,
    /// The types at its covariant positions.
    places: Vec<Type>,
    /// Types that it bounds.
    above: Vec<Type>,
}

struct Fit<'a> {
    types: &'a Types,
    to: Pattern<'a>,
    /// The pattern whose variables occur in the arguments.
    from: Option<Pattern<'a>>,
    found: Vec<Found>,
}

/// The first number of the variables for the unknown parameters of a type without parameters. Nothing is
/// known about them.
const UNKNOWN: u32 = 1 << 16;

impl<'a> Fit<'a> {
    fn new(types: &'a Types, to: Pattern<'a>, from: Option<Pattern<'a>>) -> Fit<'a> {
        Fit { types, to, from, found: vec![Found::default(); to.statics.params.len()] }
    }

    fn all(mut self, args: &[Type]) -> Option<Vec<Option<Type>>> {
        let patterns = self.to.statics.patterns.get(1..).unwrap_or_default();
        let (fixed, rest) = match (patterns.split_last(), self.to.vararg) {
            (Some((&last, fixed)), true) => (fixed, Some(element(self.types, last))),
            _ => (patterns, None),
        };
        if args.len() < fixed.len() || (rest.is_none() && args.len() > fixed.len()) {
            return None;
        }
        let wanted = fixed.iter().copied().chain(rest.into_iter().cycle());
        args.iter().zip(wanted).all(|(&arg, pattern)| self.below(arg, pattern)).then_some(())?;
        // Bounds mention only earlier variables, so these come later.
        let mut values = vec![None; self.found.len()];
        for n in (0..self.found.len()).rev() {
            values[n] = self.value(n)?;
        }
        Some(values)
    }

    fn is_open(&self, ty: Type) -> bool {
        self.types.mentions(ty, &|_| true)
    }

    /// `a <: b` for a type `b` without variables.
    fn is_subtype(&self, a: Type, b: Type) -> bool {
        match self.types.kind(a) {
            TypeKind::Param(n) => a == b || self.types.is_subtype(self.upper_of(*n), b),
            _ => self.types.is_subtype(a, b),
        }
    }

    /// The upper bound of a variable of the arguments.
    fn upper_of(&self, n: u32) -> Type {
        let param = self.from.and_then(|from| from.statics.params.get(n as usize));
        match param.map(|param| param.bound) {
            Some(StaticBound::Open { upper, .. }) if !self.is_open(upper) => upper,
            _ => Type::ANY,
        }
    }

    /// Whether values of `ty` fit the pattern.
    fn below(&mut self, ty: Type, pattern: Type) -> bool {
        let types = self.types;
        if !self.is_open(pattern) {
            return self.is_subtype(ty, pattern);
        }
        match (types.kind(ty), types.kind(pattern)) {
            (_, TypeKind::Param(n)) => match self.found.get_mut(*n as usize) {
                Some(found) => {
                    found.places.push(types.type_of_values(ty));
                    true
                }
                None => false,
            },
            (TypeKind::Bottom, _) => true,
            (TypeKind::Union(members), _) => members.iter().all(|&member| self.below(member, pattern)),
            (_, TypeKind::Union(members)) => {
                let (open, closed): (Vec<Type>, Vec<Type>) = members.iter().partition(|&&m| self.is_open(m));
                closed.into_iter().any(|member| self.is_subtype(ty, member))
                    || open.into_iter().any(|member| {
                        let before = self.found.clone();
                        let fits = self.below(ty, member);
                        if !fits {
                            self.found = before;
                        }
                        fits
                    })
            }
            (TypeKind::Tuple { elems: x, vararg: xr }, TypeKind::Tuple { elems: y, vararg: yr }) => {
                let count_fits = match (xr, yr) {
                    (_, None) => xr.is_none() && x.len() == y.len(),
                    (_, Some(_)) => x.len() >= y.len(),
                };
                count_fits
                    && x.iter().zip(y.iter().chain(yr.iter().cycle())).all(|(&x, &y)| self.below(x, y))
                    && match (xr, yr) {
                        (Some(xr), Some(yr)) => self.below(*xr, *yr) && self.below(*xr, *yr),
                        _ => true,
                    }
            }
            (TypeKind::Tuple { elems, vararg: None }, TypeKind::NTuple { count, elem }) => {
                self.same(types.int(elems.len() as i64), *count)
                    && elems.iter().all(|&x| self.below(x, *elem))
            }
            (TypeKind::NTuple { count: x, elem: xe }, TypeKind::NTuple { count: y, elem: ye }) => {
                self.same(*x, *y) && self.below(*xe, *ye)
            }
            (TypeKind::NTuple { elem, .. }, TypeKind::Tuple { elems, vararg: Some(rest) }) => {
                elems.is_empty() && self.below(*elem, *rest)
            }
            (TypeKind::TypeOf(x), TypeKind::TypeOf(y)) => self.same(*x, *y),
            (TypeKind::NamedTuple { names: x, tuple: xt }, TypeKind::NamedTuple { names: y, tuple: yt }) => {
                x == y && self.same(*xt, *yt)
            }
            (TypeKind::Generic(decl), TypeKind::Nominal { .. }) => {
                let count = types.decl(*decl).params.len() as u32;
                let unknown: Vec<Type> = (0..count).map(|n| types.param(UNKNOWN + n)).collect();
                types.nominal(*decl, &unknown).is_ok_and(|ty| self.below(ty, pattern))
            }
            (
                TypeKind::Nominal { .. } | TypeKind::Function(_),
                TypeKind::Nominal { decl: wanted, params },
            ) => {
                let above = types.chain(ty).find_map(|above| match types.kind(above) {
                    TypeKind::Nominal { decl, params } if decl == wanted => Some(params),
                    _ => None,
                });
                above.is_some_and(|own| own.iter().zip(params).all(|(&own, &wanted)| self.same(own, wanted)))
            }
            _ => false,
        }
    }

    /// Whether the pattern equals this type.
    fn same(&mut self, ty: Type, pattern: Type) -> bool {
        let types = self.types;
        if !self.is_open(pattern) {
            return types.equivalent(ty, pattern);
        }
        match (types.kind(ty), types.kind(pattern)) {
            (_, TypeKind::Param(n)) => match self.found.get_mut(*n as usize) {
                Some(found) => {
                    let exact = *found.exact.get_or_insert(ty);
                    exact == ty || types.equivalent(exact, ty)
                }
                None => false,
            },
            (TypeKind::Nominal { decl: x, params: xp }, TypeKind::Nominal { decl: y, params: yp }) => {
                x == y && xp.iter().zip(yp).all(|(&x, &y)| self.same(x, y))
            }
            (TypeKind::Tuple { elems: x, vararg: xr }, TypeKind::Tuple { elems: y, vararg: yr }) => {
                x.len() == y.len()
                    && x.iter().zip(y).all(|(&x, &y)| self.same(x, y))
                    && match (xr, yr) {
                        (Some(xr), Some(yr)) => self.same(*xr, *yr),
                        (xr, yr) => xr.is_none() && yr.is_none(),
                    }
            }
            (TypeKind::NamedTuple { names: x, tuple: xt }, TypeKind::NamedTuple { names: y, tuple: yt }) => {
                x == y && self.same(*xt, *yt)
            }
            (TypeKind::Tuple { elems, vararg: None }, TypeKind::NTuple { count, elem }) => {
                self.same(types.int(elems.len() as i64), *count) && elems.iter().all(|&x| self.same(x, *elem))
            }
            (TypeKind::NTuple { count: x, elem: xe }, TypeKind::NTuple { count: y, elem: ye }) => {
                self.same(*x, *y) && self.same(*xe, *ye)
            }
            (TypeKind::TypeOf(x), TypeKind::TypeOf(y)) => self.same(*x, *y),
            (_, TypeKind::Union(members)) => {
                // The single member with variables must match the remaining ones.
                let (open, closed): (Vec<Type>, Vec<Type>) = members.iter().partition(|&&m| self.is_open(m));
                let [open] = open[..] else { return false };
                let all_there = closed.iter().all(|&member| types.is_subtype(member, ty));
                let rest = closed.iter().try_fold(ty, |rest, &member| types.difference(rest, member));
                all_there && rest.is_ok_and(|rest| rest != Type::BOTTOM && self.same(rest, open))
            }
            _ => false,
        }
    }

    /// The value of variable `n`; `None` if no type fits.
    fn value(&mut self, n: usize) -> Option<Option<Type>> {
        let types = self.types;
        let Found { exact, places, above } = std::mem::take(self.found.get_mut(n)?);
        let value = match (exact, places.split_first()) {
            (Some(exact), _) => {
                places.iter().all(|&place| self.is_subtype(place, exact)).then_some(Some(exact))
            }
            (None, Some((&first, rest))) => {
                let one = rest.iter().all(|&place| place == first);
                let diagonal = self.to.is_diagonal(types, n as u32);
                (one && (!diagonal || self.is_exact(first))).then_some(Some(first))
            }
            (None, None) => Some(above.first().copied()),
        }?;
        let Some(ty) = value else { return Some(None) };
        let bounded = match self.to.statics.params.get(n)?.bound {
            StaticBound::Value(known) => known == ty || types.equivalent(known, ty),
            StaticBound::Undefined => false,
            StaticBound::Open { lower, upper } => {
                if types.is_value(ty) {
                    lower == Type::BOTTOM && upper == Type::ANY
                } else {
                    let fits_upper = match types.kind(upper) {
                        TypeKind::Param(m) if (*m as usize) < n => {
                            self.found.get_mut(*m as usize)?.above.push(ty);
                            true
                        }
                        _ => self.below(ty, upper),
                    };
                    fits_upper && types.is_subtype(lower, ty)
                }
            }
        };
        (bounded && above.iter().all(|&below| self.is_subtype(below, ty))).then_some(value)
    }

    /// Whether values have exactly this type, also for a variable of the arguments.
    fn is_exact(&self, ty: Type) -> bool {
        match (self.types.kind(ty), self.from) {
            (TypeKind::Param(n), Some(from)) => from.is_diagonal(self.types, *n),
            _ => self.types.is_concrete(ty),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    struct World {
        cx: std::sync::Arc<Context>,
    }

    impl World {
        fn named(&self, name: &str) -> Type {
            let decl = self.cx.types.find_decl(self.cx.names.intern(name)).unwrap();
            self.cx.types.nominal(decl, &[]).unwrap()
        }

        /// A method with these patterns and these upper bounds of its variables.
        fn method(&self, uppers: &[Type], patterns: &[Type]) -> Statics {
            let param = |&upper| StaticParam {
                name: self.cx.names.intern("T"),
                bound: StaticBound::Open { lower: Type::BOTTOM, upper },
            };
            let patterns = std::iter::once(Type::ANY).chain(patterns.iter().copied()).collect();
            Statics { params: uppers.iter().map(param).collect(), patterns }
        }

        fn bind(&self, statics: &Statics, args: &[Type]) -> Option<Vec<Option<Type>>> {
            self.cx.types.bind_statics(Pattern { statics, vararg: false }, args)
        }

        fn is_below(&self, a: &Statics, b: &Statics) -> bool {
            let pattern = |statics| Pattern { statics, vararg: false };
            self.cx.types.is_below(pattern(a), pattern(b))
        }
    }

    #[test]
    fn invariant_places_say_what_a_variable_is() {
        let w = World { cx: Context::new() };
        let t = &w.cx.types;
        let var = t.param(0);
        let vector = |ty| t.vector(ty).unwrap();
        let f = w.method(&[Type::ANY], &[vector(var), var]);
        let real = w.named("Real");
        assert_eq!(w.bind(&f, &[vector(Type::INT8), Type::INT8]), Some(vec![Some(Type::INT8)]));
        assert_eq!(w.bind(&f, &[vector(real), Type::INT8]), Some(vec![Some(real)]));
        assert_eq!(w.bind(&f, &[vector(Type::INT8), Type::INT64]), None);
        assert_eq!(w.bind(&f, &[Type::INT8, Type::INT8]), None);
        let bounded = w.method(&[real], &[vector(var)]);
        assert_eq!(w.bind(&bounded, &[vector(Type::INT8)]), Some(vec![Some(Type::INT8)]));
        assert_eq!(w.bind(&bounded, &[vector(Type::STRING)]), None);
    }

    #[test]
    fn several_covariant_places_want_one_concrete_type() {
        let w = World { cx: Context::new() };
        let t = &w.cx.types;
        let var = t.param(0);
        let twice = w.method(&[Type::ANY], &[var, var]);
        assert_eq!(w.bind(&twice, &[Type::INT8, Type::INT8]), Some(vec![Some(Type::INT8)]));
        assert_eq!(w.bind(&twice, &[Type::INT8, Type::INT64]), None);
        assert_eq!(w.bind(&twice, &[Type::ANY, Type::ANY]), None);
        let once = w.method(&[Type::ANY], &[var]);
        assert_eq!(w.bind(&once, &[Type::ANY]), Some(vec![Some(Type::ANY)]));
        let (a, b) = (t.type_of(Type::INT8).unwrap(), t.type_of(Type::INT64).unwrap());
        assert_eq!(w.bind(&twice, &[a, b]), Some(vec![Some(Type::DATATYPE)]));
    }

    #[test]
    fn types_unions_and_bounds_bind() {
        let w = World { cx: Context::new() };
        let t = &w.cx.types;
        let (first, second) = (t.param(0), t.param(1));
        let of_type = w.method(&[Type::ANY], &[t.type_of(first).unwrap()]);
        let int = t.type_of(Type::INT64).unwrap();
        assert_eq!(w.bind(&of_type, &[int]), Some(vec![Some(Type::INT64)]));
        let maybe = w.method(&[Type::ANY], &[t.union(&[Type::NOTHING, first]).unwrap()]);
        assert_eq!(w.bind(&maybe, &[Type::NOTHING]), Some(vec![None]));
        assert_eq!(w.bind(&maybe, &[Type::INT8]), Some(vec![Some(Type::INT8)]));
        let by_bound = w.method(&[Type::ANY, t.vector(first).unwrap()], &[second]);
        let ints = t.vector(Type::INT8).unwrap();
        assert_eq!(w.bind(&by_bound, &[ints]), Some(vec![Some(Type::INT8), Some(ints)]));
        assert_eq!(w.bind(&by_bound, &[Type::INT8]), None);
        let dims =
            w.method(&[Type::ANY], &[t.nominal(super::super::decl::ARRAY, &[Type::INT8, first]).unwrap()]);
        assert_eq!(w.bind(&dims, &[ints]), Some(vec![Some(t.int(1))]));
    }

    #[test]
    fn patterns_are_below_patterns() {
        let w = World { cx: Context::new() };
        let t = &w.cx.types;
        let var = t.param(0);
        let real = w.named("Real");
        let any = w.method(&[], &[Type::ANY, Type::ANY]);
        let twice = w.method(&[Type::ANY], &[var, var]);
        let reals = w.method(&[real], &[var, var]);
        let ints = w.method(&[], &[Type::INT8, Type::INT8]);
        for (a, b) in [(&twice, &any), (&reals, &twice), (&ints, &reals), (&ints, &any), (&twice, &twice)] {
            assert!(w.is_below(a, b));
        }
        for (a, b) in [(&any, &twice), (&twice, &reals), (&reals, &ints)] {
            assert!(!w.is_below(a, b));
        }
        let vectors = w.method(&[Type::ANY], &[t.vector(var).unwrap()]);
        let generic = w.method(&[], &[w.named("Array")]);
        assert!(w.is_below(&vectors, &generic));
        assert!(!w.is_below(&generic, &vectors));
    }

    #[test]
    fn a_where_as_a_type_and_back() {
        let w = World { cx: Context::new() };
        let t = &w.cx.types;
        let mut f = w.method(&[w.named("Real"), Type::ANY], &[t.param(0), t.vector(t.param(1)).unwrap()]);
        f.params.push(StaticParam { name: w.cx.names.intern("V"), bound: StaticBound::Value(Type::INT8) });
        f.params.push(StaticParam { name: w.cx.names.intern("U"), bound: StaticBound::Undefined });
        let ty = f.to_type(t, false).unwrap();
        assert!(!t.is_concrete(ty));
        assert_eq!(Statics::from_type(t, ty), Some((f, false)));
    }
}
