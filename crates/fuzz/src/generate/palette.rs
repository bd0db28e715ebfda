//! The types that one module uses.
//!
//! A module has a few composite types rather than many different ones, so that values of the same type are
//! often combined. Structs are declared for the module; some are instances of a parametric declaration or of
//! one in Base.

use super::{Features, operators};
use crate::rng::Rng;
use brolga_ir::types::{DeclKind, FieldDecl, FieldRepr};
use brolga_ir::{Context, Name, Type, TypeKind};

/// Aggregates with more scalars than this are not generated.
const MAX_LEAVES: usize = 14;

/// The available types.
pub(super) struct Palette {
    /// Integers, signed and unsigned.
    pub(super) ints: Vec<Type>,
    pub(super) floats: Vec<Type>,
    /// Tuples, named tuples, structs.
    pub(super) aggregates: Vec<Type>,
    /// Mutable structs, whose last field is for another object.
    pub(super) objects: Vec<Type>,
    /// Unions of bits types.
    pub(super) unions: Vec<Type>,
    /// Strings and symbols.
    pub(super) texts: Vec<Type>,
    /// Global variables, which are never assigned.
    pub(super) globals: Vec<(Name, Type)>,
    /// The module's own number type, for which operators have methods.
    pub(super) own: Option<Type>,
    /// Whether there are values of unknown type.
    dynamic: bool,
}

impl Palette {
    pub(super) fn new(rng: &mut Rng, cx: &Context, features: &Features) -> Palette {
        let mut ints = vec![
            Type::INT8,
            Type::INT16,
            Type::INT32,
            Type::INT64,
            Type::UINT8,
            Type::UINT16,
            Type::UINT32,
            Type::UINT64,
        ];
        if features.wide_ints {
            ints.extend([Type::INT128, Type::UINT128]);
        }
        // With fewer types in a module, more of its values can be operands of the same operation.
        while ints.len() > 5 {
            ints.remove(rng.below(ints.len()));
        }
        ints.push(Type::INT64);
        let mut floats = Vec::new();
        if features.floats {
            floats.extend([Type::FLOAT32, Type::FLOAT64]);
        }
        if features.floats && features.half {
            floats.push(Type::FLOAT16);
        }
        let texts = if features.texts { vec![Type::SYMBOL, Type::STRING] } else { Vec::new() };
        let mut palette = Palette {
            ints,
            floats,
            texts,
            aggregates: Vec::new(),
            objects: Vec::new(),
            unions: Vec::new(),
            globals: Vec::new(),
            own: None,
            dynamic: features.dynamic,
        };
        if features.dynamic && rng.chance(40) {
            palette.own = operators::own_number(cx);
        }
        if features.unions {
            palette.add_unions(rng, cx);
        }
        if features.aggregates {
            for index in 0..rng.between(3, 7) {
                palette.add_aggregate(rng, cx, index);
            }
        }
        if features.unions {
            palette.add_unions(rng, cx);
        }
        if features.objects {
            for index in 0..rng.between(1, 2) {
                palette.add_object(rng, cx, index);
            }
        }
        palette
    }

    /// A type of one register (or none: `Nothing`).
    pub(super) fn scalar(&self, rng: &mut Rng) -> Type {
        match rng.below(12) {
            0 | 1 => Type::BOOL,
            2 => Type::CHAR,
            3 if !self.texts.is_empty() => rng.pick(&self.texts).copied().unwrap_or(Type::BOOL),
            4 if rng.chance(40) => Type::NOTHING,
            5..9 => self.float_or_int(rng),
            _ => self.int(rng),
        }
    }

    /// An integer type, more often the machine's own.
    pub(super) fn int(&self, rng: &mut Rng) -> Type {
        if rng.chance(30) { Type::INT64 } else { rng.pick(&self.ints).copied().unwrap_or(Type::INT64) }
    }

    pub(super) fn float_or_int(&self, rng: &mut Rng) -> Type {
        rng.pick(&self.floats).copied().unwrap_or_else(|| self.int(rng))
    }

    /// Any type that a value may have.
    pub(super) fn any(&self, rng: &mut Rng) -> Type {
        if self.dynamic && rng.chance(8) {
            return if rng.chance(85) { Type::ANY } else { self.own.unwrap_or(Type::ANY) };
        }
        let list = match rng.below(10) {
            0..3 => &self.aggregates,
            3 => &self.unions,
            _ => return self.scalar(rng),
        };
        rng.pick(list).copied().unwrap_or_else(|| self.scalar(rng))
    }

    /// Any type whose values have exactly that type.
    pub(super) fn concrete(&self, rng: &mut Rng) -> Type {
        if rng.chance(30)
            && let Some(&ty) = rng.pick(&self.aggregates)
        {
            return ty;
        }
        self.scalar(rng)
    }

    /// The type of an aggregate's field. Tuples do not contain unions: their types would be abstract.
    fn field(&self, rng: &mut Rng, unions: bool) -> Type {
        match rng.below(10) {
            0 | 1 => rng.pick(&self.aggregates).copied().unwrap_or(Type::INT32),
            2 | 3 if unions => rng.pick(&self.unions).copied().unwrap_or(Type::UINT8),
            _ => self.scalar(rng),
        }
    }

    fn add_aggregate(&mut self, rng: &mut Rng, cx: &Context, index: usize) {
        let types = &cx.types;
        let count = rng.between(1, 4);
        let name = |text: &str| cx.names.intern(text);
        let made = match rng.below(7) {
            0 | 1 => {
                let fields: Vec<Type> = (0..count).map(|_| self.field(rng, false)).collect();
                types.tuple(&fields)
            }
            2 => {
                let element = self.scalar(rng);
                types.tuple(&vec![element; rng.between(1, 11)])
            }
            3 => {
                let fields: Vec<Type> = (0..count).map(|_| self.field(rng, false)).collect();
                let names: Vec<_> = ["a", "θ", "value", "d!"].iter().take(count).map(|n| name(n)).collect();
                types.tuple(&fields).and_then(|tuple| types.named_tuple(&names, tuple))
            }
            4 => {
                let (a, b) = (self.field(rng, true), self.field(rng, false));
                match types.find_decl(name("Pair")) {
                    Some(pair) => types.nominal(pair, &[a, b]),
                    None => types.tuple(&[a, b]),
                }
            }
            5 => {
                // struct Gn{T}; x::T; y::Int32; z::T; end
                let parameter = types.param(0);
                let fields = [("x", parameter), ("y", Type::INT32), ("z", parameter)];
                let fields = fields.iter().map(|&(n, ty)| FieldDecl::new(name(n), ty)).collect();
                let argument = self.field(rng, false);
                types.declare(name(&format!("G{index}")), &[name("T")]).and_then(|decl| {
                    types.define(decl, Type::ANY, DeclKind::Struct { mutable: false, fields })?;
                    types.nominal(decl, &[argument])
                })
            }
            _ => {
                let field = |n| FieldDecl::new(name(&format!("f{n}")), self.field(rng, true));
                let fields = (0..count).map(field).collect();
                types.declare(name(&format!("S{index}")), &[]).and_then(|decl| {
                    types.define(decl, Type::ANY, DeclKind::Struct { mutable: false, fields })?;
                    types.nominal(decl, &[])
                })
            }
        };
        let Ok(ty) = made else { return };
        if leaves(cx, ty) <= MAX_LEAVES && cx.types.layout(ty).is_ok() && !self.aggregates.contains(&ty) {
            self.aggregates.push(ty);
        }
    }

    /// `mutable struct Mn; m0::T; …; link::Any; end`
    fn add_object(&mut self, rng: &mut Rng, cx: &Context, index: usize) {
        let name = |text: &str| cx.names.intern(text);
        let count = rng.between(1, 4);
        let field = |n| FieldDecl::new(name(&format!("m{n}")), self.field(rng, true));
        let mut fields: Vec<FieldDecl> = (0..count).map(field).collect();
        fields.push(FieldDecl::new(name("link"), Type::ANY));
        let made = cx.types.declare(name(&format!("M{index}")), &[]).and_then(|decl| {
            cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: fields.into() })?;
            cx.types.nominal(decl, &[])
        });
        self.objects.extend(made.ok());
    }

    fn add_unions(&mut self, rng: &mut Rng, cx: &Context) {
        for _ in 0..rng.between(1, 2) {
            let members: Vec<Type> = (0..rng.between(2, 4)).map(|_| self.concrete(rng)).collect();
            let Ok(union) = cx.types.union(&members) else { continue };
            let is_small = matches!(cx.types.field_repr(union), FieldRepr::BitsUnion { .. });
            if is_small && !self.unions.contains(&union) {
                self.unions.push(union);
            }
        }
    }
}

/// The number of scalars in a value.
fn leaves(cx: &Context, ty: Type) -> usize {
    if let TypeKind::Union(members) = cx.types.kind(ty) {
        return 1 + members.iter().map(|&m| leaves(cx, m)).max().unwrap_or(0);
    }
    match cx.types.field_count(ty) {
        Some(count) => (0..count).filter_map(|n| cx.types.field_type(ty, n)).map(|f| leaves(cx, f)).sum(),
        None => 1,
    }
}

/// Whether values of the type contain a float.
pub(super) fn holds_float(cx: &Context, ty: Type) -> bool {
    holds(cx, ty, &[Type::FLOAT16, Type::FLOAT32, Type::FLOAT64])
}

/// Whether values of the type may contain a value of one of the types.
pub(super) fn holds(cx: &Context, ty: Type, wanted: &[Type]) -> bool {
    match cx.types.kind(ty) {
        TypeKind::Union(members) => members.iter().any(|&m| holds(cx, m, wanted)),
        _ => match cx.types.field_count(ty) {
            Some(count) => {
                let mut fields = (0..count).filter_map(|n| cx.types.field_type(ty, n));
                fields.any(|field| holds(cx, field, wanted))
            }
            None => ty == Type::ANY || wanted.contains(&ty),
        },
    }
}
