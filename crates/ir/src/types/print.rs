//! The text of a type, as Julia prints it.
//!
//! `Vector{T}` and `Matrix{T}` denote arrays of one and two dimensions, `NTuple{n, T}` tuples of four or more
//! equal elements, `@NamedTuple{a::T}` named tuples, `Vector{<:Real}` a variable that occurs once, as a
//! parameter. A parameter outside its declaration is `@Param{0}`: low IR has such parameters where compiled
//! code names the `where` of a method. Names that are not identifiers are written `var"…"`. A type whose name
//! has been redefined is `@world(Point, 3:7)`, with the worlds in which it had that name.

use super::declaration::{MAX_DEPTH, MAX_WEIGHT, MAX_WIDTH, PrimitiveRepr, TypeError, Worlds};
use super::{Type, TypeKind, Types, decl};
use crate::ident::write_name;
use crate::names::Name;
use std::fmt::{self, Display, Formatter};

/// A type with the table that holds its names; made by [`Types::display`].
#[derive(Clone, Copy, Debug)]
pub struct TypeDisplay<'a> {
    types: &'a Types,
    ty: Type,
    params: Params<'a>,
    /// Whether types with the same name are distinguished by their count after the name.
    is_unique: bool,
}

/// How the parameters in a type are written.
#[derive(Clone, Copy, Debug)]
enum Params<'a> {
    Named(&'a [Name]),
    /// In the form `<:Upper` or `>:Lower`, by these bounds.
    Bounds(&'a [(Type, Type)]),
}

/// The number of equal elements from which a tuple type prints as `NTuple`.
const NTUPLE: usize = 4;

impl Types {
    /// The text of `ty`.
    pub fn display(&self, ty: Type) -> TypeDisplay<'_> {
        self.display_with(ty, &[])
    }

    /// The text of `ty` inside a declaration with these parameters.
    pub fn display_with<'a>(&'a self, ty: Type, params: &'a [Name]) -> TypeDisplay<'a> {
        TypeDisplay { types: self, ty, params: Params::Named(params), is_unique: false }
    }
}

impl TypeDisplay<'_> {
    /// The same for symbols, in which each type has a distinct text: `Point@2` for the third type with this
    /// name.
    #[must_use]
    pub(crate) fn unique(self) -> Self {
        TypeDisplay { is_unique: true, ..self }
    }

    fn of(self, ty: Type) -> Self {
        TypeDisplay { ty, ..self }
    }

    fn list(self, f: &mut Formatter<'_>, items: impl IntoIterator<Item = Type>) -> fmt::Result {
        for (i, ty) in items.into_iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            self.of(ty).fmt(f)?;
        }
        Ok(())
    }

    /// A value in a parameter position, as the reader accepts it.
    fn value(self, f: &mut Formatter<'_>, ty: Type, bits: u128) -> fmt::Result {
        match self.types.primitive(ty) {
            Some((_, PrimitiveRepr::Bool)) => write!(f, "{}", bits != 0),
            Some((width, PrimitiveRepr::Unsigned)) => {
                write!(f, "0x{bits:0digits$x}", digits = usize::from(width) / 4)
            }
            None => match self.types.kind(ty) {
                _ if ty == Type::NOTHING => f.write_str("nothing"),
                // The module shows that it is a value.
                TypeKind::Function(name) => match name.display(self.types.names()).to_string() {
                    path if path.contains('.') => f.write_str(&path),
                    bare => write!(
                        f,
                        "Main.{}{bare}",
                        if bare.starts_with(char::is_alphabetic) { "" } else { ":" }
                    ),
                },
                _ => write!(f, "{}()", self.of(ty)),
            },
            _ => write!(f, "reinterpret({}, 0x{bits:x})", self.of(ty)),
        }
    }

    fn nominal(self, f: &mut Formatter<'_>, decl: super::Decl, params: &[Type]) -> fmt::Result {
        let data = self.types.decl(decl);
        let names = self.types.names();
        if decl == decl::ARRAY
            && let [elem, dims] = params
            && let TypeKind::Int(dims @ 1..=2) = *self.types.kind(*dims)
        {
            return write!(f, "{}{{{}}}", if dims == 1 { "Vector" } else { "Matrix" }, self.of(*elem));
        }
        let module = names.text(data.module);
        // If a declared type has the same name, the builtin is qualified by its module.
        let is_hidden = || decl.is_builtin() && self.types.find_own(data.name).is_some();
        if !module.is_empty() {
            write!(f, "{module}.")?;
        } else if is_hidden() {
            f.write_str("Core.")?;
        }
        match (self.types.ended(decl), names.count(data.name)) {
            (_, count @ 1..) if self.is_unique => {
                write_name(f, names.text(data.name))?;
                write!(f, "@{count}")?;
            }
            (Some(Worlds { first, last }), _) if !self.is_unique => {
                f.write_str("@world(")?;
                write_name(f, names.text(data.name))?;
                write!(f, ", {first}:{last})")?;
            }
            _ => write_name(f, names.text(data.name))?,
        }
        if params.is_empty() {
            return Ok(());
        }
        f.write_str("{")?;
        self.list(f, params.iter().copied())?;
        f.write_str("}")
    }

    fn param(self, f: &mut Formatter<'_>, index: u32) -> fmt::Result {
        let at = index as usize;
        match self.params {
            Params::Named(names) if at < names.len() => write_name(f, self.types.names().text(names[at])),
            Params::Bounds(bounds) if at < bounds.len() => match bounds[at] {
                (lower, Type::ANY) if lower != Type::BOTTOM => write!(f, ">:{}", self.of(lower)),
                (_, upper) => write!(f, "<:{}", self.of(upper)),
            },
            _ => write!(f, "@Param{{{index}}}"),
        }
    }

    /// A type with its own variables: `Vector{<:Real}` if each occurs once and as a parameter, otherwise
    /// `Pair{T1, T1} where {T1 <: Real}`.
    fn union_all(self, f: &mut Formatter<'_>, bounds: &[(Type, Type)], body: Type) -> fmt::Result {
        let types = self.types;
        let free = (Type::BOTTOM, Type::ANY);
        let params = match types.kind(body) {
            TypeKind::Nominal { params, .. } => &params[..],
            TypeKind::TypeOf(of) => std::slice::from_ref(of),
            _ => &[],
        };
        if let (Some((_, dims)), [bound]) = (types.array_parts(body), bounds)
            && *bound == free
            && (1..=2).contains(&dims)
            && params.first() == Some(&types.param(0))
        {
            return f.write_str(if dims == 1 { "Vector" } else { "Matrix" });
        }
        let is_short = |(n, &(lower, upper)): (u32, &(Type, Type))| {
            let own = types.param(n);
            let elsewhere = |ty: Type| ty != own && types.mentions(ty, &|m| m == n);
            let in_bounds = bounds.iter().any(|&(lower, upper)| elsewhere(lower) || elsewhere(upper));
            params.iter().filter(|&&param| param == own).count() == 1
                && (lower == Type::BOTTOM || upper == Type::ANY)
                && !types.mentions(lower, &|_| true)
                && !types.mentions(upper, &|_| true)
                && !in_bounds
                && !params.iter().any(|&param| elsewhere(param))
        };
        if (0..).zip(bounds).all(is_short) {
            return TypeDisplay { ty: body, params: Params::Bounds(bounds), ..self }.fmt(f);
        }
        let names = types.names();
        let params: Vec<Name> = (1..=bounds.len()).map(|n| names.intern(&format!("T{n}"))).collect();
        let shown = |ty| TypeDisplay { ty, params: Params::Named(&params), ..self };
        write!(f, "{} where {{", shown(body))?;
        for (n, &(lower, upper)) in bounds.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            if lower != Type::BOTTOM {
                write!(f, "{} <: ", shown(lower))?;
            }
            write_name(f, names.text(params[n]))?;
            if lower != Type::BOTTOM || upper != Type::ANY {
                write!(f, " <: {}", shown(upper))?;
            }
        }
        f.write_str("}")
    }
}

impl Display for TypeDisplay<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = self.types.names();
        match self.types.kind(self.ty) {
            TypeKind::Bottom => f.write_str("Union{}"),
            TypeKind::Any => f.write_str("Any"),
            TypeKind::Low(low) => low.fmt(f),
            TypeKind::Token => {
                let is_hidden = names.find("Token").is_some_and(|name| self.types.find_own(name).is_some());
                f.write_str(if is_hidden { "Core.Token" } else { "Token" })
            }
            TypeKind::Nominal { decl, params } => self.nominal(f, *decl, params),
            TypeKind::Generic(decl) => self.nominal(f, *decl, &[]),
            TypeKind::Tuple { elems, vararg: None }
                if elems.len() >= NTUPLE && elems.iter().all(|e| *e == elems[0]) =>
            {
                write!(f, "NTuple{{{}, {}}}", elems.len(), self.of(elems[0]))
            }
            TypeKind::Tuple { elems, vararg } => {
                f.write_str("Tuple{")?;
                self.list(f, elems.iter().copied())?;
                if let Some(rest) = vararg {
                    let comma = if elems.is_empty() { "" } else { ", " };
                    write!(f, "{comma}Vararg{{{}}}", self.of(*rest))?;
                }
                f.write_str("}")
            }
            TypeKind::NamedTuple { names: fields, tuple } => {
                f.write_str("@NamedTuple{")?;
                let elems = self.types.tuple_elements(*tuple).unwrap_or_default();
                for (i, (&name, &ty)) in fields.iter().zip(elems).enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write_name(f, names.text(name))?;
                    if ty != Type::ANY {
                        write!(f, "::{}", self.of(ty))?;
                    }
                }
                f.write_str("}")
            }
            TypeKind::Union(members) => {
                f.write_str("Union{")?;
                self.list(f, members.iter().copied())?;
                f.write_str("}")
            }
            TypeKind::TypeOf(of) => write!(f, "Type{{{}}}", self.of(*of)),
            TypeKind::Function(name) => {
                write!(f, "typeof({})", name.display(names))
            }
            TypeKind::Param(index) => self.param(f, *index),
            TypeKind::Int(value) => write!(f, "{value}"),
            TypeKind::Sym(name) => {
                f.write_str(":")?;
                write_name(f, names.text(*name))
            }
            TypeKind::Bits { ty, bits } => self.value(f, *ty, *bits),
            TypeKind::Values(elems) => {
                f.write_str("(")?;
                self.list(f, elems.iter().copied())?;
                f.write_str(if elems.len() == 1 { ",)" } else { ")" })
            }
            TypeKind::NTuple { count, elem } => {
                write!(f, "NTuple{{{}, {}}}", self.of(*count), self.of(*elem))
            }
            TypeKind::UnionAll { bounds, body } => self.union_all(f, bounds, *body),
        }
    }
}

impl TypeError {
    /// The error as a sentence; names are looked up in `types`.
    pub fn display<'a>(&'a self, types: &'a Types) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| write_type_error(f, self, Some(types)))
    }
}

/// The error as a sentence with numbers of names and types. [`TypeError::display`] prints their texts.
impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_type_error(f, self, None)
    }
}

impl std::error::Error for TypeError {}

fn write_type_error(f: &mut fmt::Formatter<'_>, error: &TypeError, types: Option<&Types>) -> fmt::Result {
    let text =
        |name: Name| types.map_or_else(|| format!("{name:?}"), |types| types.names().text(name).to_owned());
    let shown = |ty: Type| types.map_or_else(|| format!("{ty:?}"), |types| types.display(ty).to_string());
    match *error {
        TypeError::TooDeep => write!(f, "the type nests deeper than {MAX_DEPTH} levels"),
        TypeError::TooHeavy => {
            write!(f, "the type is written out with more than {MAX_WEIGHT} types")
        }
        TypeError::TooWide { count } => {
            write!(f, "the type has {count} parts, more than the limit of {MAX_WIDTH}")
        }
        TypeError::ParameterCount { decl, expected, given } => {
            write!(f, "`{}` has {expected} type parameters, but {given} were given", text(decl))
        }
        TypeError::Redeclared { name } => {
            write!(f, "`{}` is already declared differently", text(name))
        }
        TypeError::Reserved { name } => {
            write!(f, "types are spelled with the name `{}`, so it cannot be declared", text(name))
        }
        TypeError::PrimitiveWidth { name, bits } => write!(
            f,
            "primitive type `{}` has {bits} bits; a multiple of 8 from 8 to 128 is needed",
            text(name)
        ),
        TypeError::SupertypeNotAbstract { name, supertype } => {
            write!(f, "the supertype `{}` of `{}` is not an abstract type", shown(supertype), text(name))
        }
        TypeError::SupertypeCycle { name } => {
            write!(f, "`{}` would be a supertype of itself", text(name))
        }
        TypeError::NegativeLength { count } => write!(f, "no tuple has {count} elements"),
        TypeError::DuplicateField { field } => {
            write!(f, "the name `{}` occurs twice", text(field))
        }
        TypeError::NamedTupleShape => {
            f.write_str("a named tuple needs a plain tuple type with one element for each name")
        }
        TypeError::Unbound => f.write_str("a parameter occurs that no variable of the type binds"),
        TypeError::Foreign => f.write_str("a part of the type belongs to another context"),
        TypeError::MixedLevels { inner } => {
            write!(f, "`{}` cannot be inside this type: low and high types do not mix", shown(inner))
        }
    }
}
