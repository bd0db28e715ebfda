//! Constants written in a text: literals, and constructors of literals.
//!
//! The same forms occur as operands (`Float16(0.5)`, `$(QuoteNode((2, 3, 5)))`), in `# globals:` lines and in
//! checks (`Any[1, "x", Rect(1.0, 2.0)]`). A [`Term`] is such a constant as a tree: the immutable part
//! becomes a [`Const`](crate::Const); the rest only an interpreter or run time can make.
//!
//! **Types of integers.** Julia prints signed integers of all widths alike, so a decimal literal takes its
//! type from its context: an *expected* type that is a signed integer (or a union with exactly one) is used,
//! anything else means `Int64`. In a constructor or a typed array, where Julia converts, it takes any numeric
//! type.

use std::borrow::Cow;

use super::super::ast::{ArrayItems, Expr, ExprKind, Literal};
use super::super::wanted::integer_type;
use super::error::ResolveError;
use super::spelling::{is_imaginary, is_literal_name, is_syntax};
use super::{Resolver, last_name};
use crate::constant::Const;
use crate::diag::Span;
use crate::intrinsic::Intrinsic;
use crate::module;
use crate::names::Name;
use crate::op::Level;
use crate::scalar::{Outcome, Scalar, ScalarType, eval};
use crate::types::{DeclKind, PrimitiveRepr, Type, TypeKind};

/// The most objects that a constant written only by its type may contain.
const MAX_PARTS: usize = 4096;

/// A constant as a tree.
#[derive(Clone, PartialEq, Debug)]
pub enum Term {
    /// A constant without parts.
    Const(Const),
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// A struct, tuple or named tuple; its type determines whether it is mutable.
    Aggregate {
        ty: Type,
        /// Its fields; a struct may lack the last ones.
        fields: Vec<Term>,
    },
    /// A fresh array.
    Array {
        /// Its type: `Vector{T}` or `Matrix{T}`.
        ty: Type,
        /// The length in each dimension.
        dims: Vec<usize>,
        /// The elements, first dimension fastest.
        items: Vec<Term>,
    },
}

impl Term {
    /// The type of the value. A type as a value has the type `DataType`.
    pub fn ty(&self) -> Type {
        match self {
            Term::Const(constant) => constant.ty(),
            Term::Bytes(_) => Type::STRING,
            Term::Aggregate { ty, .. } | Term::Array { ty, .. } => *ty,
        }
    }
}

impl<'a> Resolver<'a> {
    /// The constant written as `expr`; a decimal integer takes its type from `wanted`.
    pub(super) fn term(&mut self, expr: &Expr<'a>, wanted: Option<Type>) -> Option<Term> {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal, wanted, expr.span),
            ExprKind::Symbol(name) => Some(Term::Const(Const::Symbol(self.cx.names.intern(name)))),
            ExprKind::Quote(_) | ExprKind::QuoteNode(_) if is_syntax(expr) => {
                self.fail_unread(ResolveError::NotAConstant, expr.span)
            }
            ExprKind::Quote(inner) => match &inner.kind {
                ExprKind::Name(name) => Some(Term::Const(Const::Symbol(self.cx.names.intern(name)))),
                _ => self.term(inner, wanted),
            },
            ExprKind::QuoteNode(inner) => {
                self.function_in_constant(inner).or_else(|| self.term(inner, wanted))
            }
            ExprKind::Interpolation(inner) => self.term(inner, wanted),
            ExprKind::Name(name) => self.named_constant(std::slice::from_ref(name), expr),
            ExprKind::Path(parts) => self.named_constant(parts, expr),
            ExprKind::Prefix(op, inner) if op == "-" => self.negative(inner, wanted, expr.span),
            ExprKind::Prefix(op, inner) if op == "!" => {
                let outer = Expr::new(expr.span, ExprKind::Name(op.clone()));
                self.composed(&outer, inner, expr.span)
            }
            ExprKind::BlockRef(number) => match self.closure_named(&format!("#{number}")) {
                Some(closure) => Some(Term::Const(Const::Singleton(closure))),
                None => self.fail(ResolveError::NotAConstant, expr.span),
            },
            ExprKind::Annotated(Some(value), ty) => {
                let ty = self.ty(ty)?;
                if matches!(value.kind, ExprKind::Undef) {
                    return Some(Term::Const(Const::Undef(ty)));
                }
                self.term(value, Some(ty))
            }
            ExprKind::Tuple(items) => {
                let wanted: Vec<Option<Type>> =
                    (0..items.len()).map(|i| self.wanted_element(wanted, i, items.len())).collect();
                let fields: Option<Vec<Term>> =
                    items.iter().zip(wanted).map(|(item, wanted)| self.term(item, wanted)).collect();
                let fields = fields?;
                let elems: Vec<Type> = fields.iter().map(Term::ty).collect();
                let ty = self.cx.types.tuple(&elems);
                self.aggregate(ty, fields, expr.span)
            }
            ExprKind::NamedTuple(items) => {
                let names: Vec<Name> = items.iter().map(|(name, _)| self.cx.names.intern(name)).collect();
                let wanted: Vec<Option<Type>> =
                    (0..items.len()).map(|i| self.wanted_element(wanted, i, items.len())).collect();
                let fields: Option<Vec<Term>> =
                    items.iter().zip(wanted).map(|((_, item), wanted)| self.term(item, wanted)).collect();
                let fields = fields?;
                let elems: Vec<Type> = fields.iter().map(Term::ty).collect();
                let ty =
                    self.cx.types.tuple(&elems).and_then(|tuple| self.cx.types.named_tuple(&names, tuple));
                self.aggregate(ty, fields, expr.span)
            }
            ExprKind::Array(items) => self.array(None, items, expr.span),
            ExprKind::TypedArray(elem, items) => {
                let elem = self.ty(elem)?;
                self.array(Some(elem), items, expr.span)
            }
            ExprKind::Call(..) if self.looks_like_type(expr) => {
                let ty = self.ty(expr)?;
                Some(Term::Const(self.cx.types.type_constant(ty)))
            }
            ExprKind::Call(callee, args) => self.constructor(callee, args, expr.span),
            ExprKind::Infix(op, args) => match (&**op, &args[..]) {
                (":", [start, stop]) => self.range(start, stop, expr.span),
                ("//", [_, _]) => self.number_of_two("Rational", args, expr.span),
                ("*", [_, _]) if is_imaginary(expr) => {
                    let zero = Expr::new(expr.span, ExprKind::Name("false".into()));
                    self.complex(&zero, expr, false, expr.span)
                }
                ("+" | "-", [re, im]) if is_imaginary(im) => self.complex(re, im, op == "-", expr.span),
                ("∘", [outer, inner]) => self.composed(outer, inner, expr.span),
                ("=>", [_, _]) => {
                    let decl = self.library_decl("Pair")?;
                    let fields = self.terms(args)?;
                    let params: Vec<Type> = fields.iter().map(Term::ty).collect();
                    let ty = self.cx.types.nominal(decl, &params);
                    self.aggregate(ty, fields, expr.span)
                }
                _ => self.fail_unread(ResolveError::NotAConstant, expr.span),
            },
            ExprKind::Pointer(ty, address) => {
                let ty = self.ty(ty)?;
                self.bits_of(ty, address.get(), expr.span)
            }
            ExprKind::Curly(..) | ExprKind::Macro(..) | ExprKind::Where(..) => {
                let ty = self.ty(expr)?;
                Some(Term::Const(self.cx.types.type_constant(ty)))
            }
            _ => self.fail_unread(ResolveError::NotAConstant, expr.span),
        }
    }

    pub(super) fn terms(&mut self, exprs: &[Expr<'a>]) -> Option<Vec<Term>> {
        exprs.iter().map(|e| self.term(e, None)).collect()
    }

    /// Element `index` of an expected tuple type with `count` elements, possibly the only tuple in a union.
    fn wanted_element(&self, wanted: Option<Type>, index: usize, count: usize) -> Option<Type> {
        let (types, wanted) = (&self.cx.types, wanted?);
        let members = types.members(&wanted).iter().copied();
        let mut members = members.filter(|&member| types.field_count(member) == Some(count));
        match (members.next(), members.next()) {
            (Some(only), None) => types.field_type(only, index),
            _ => None,
        }
    }

    /// A struct or tuple; without fields it is the singleton of its type.
    pub(super) fn aggregate(
        &mut self,
        ty: Result<Type, crate::types::TypeError>,
        fields: Vec<Term>,
        at: Span,
    ) -> Option<Term> {
        let ty = match ty {
            Ok(ty) => ty,
            Err(error) => {
                let why = error.display(&self.cx.types).to_string();
                return self.fail(ResolveError::BadType { why }, at);
            }
        };
        if self.cx.types.is_singleton(ty) {
            return Some(Term::Const(Const::Singleton(ty)));
        }
        Some(Term::Aggregate { ty, fields })
    }

    fn show_type(&self, ty: Type) -> String {
        self.cx.types.display(ty).to_string()
    }

    fn literal(&mut self, literal: &Literal<'a>, wanted: Option<Type>, at: Span) -> Option<Term> {
        let low = self.level == Level::Low;
        let (ty, bits) = match *literal {
            Literal::Int { negative, magnitude } => {
                let magnitude = magnitude.get();
                let ty = match integer_type(&self.cx.types, self.level, wanted) {
                    // Literals beyond `Int64` are `Int128`, as in Julia.
                    Type::INT64
                        if wanted.is_none() && magnitude > i64::MAX as u128 + u128::from(negative) =>
                    {
                        Type::INT128
                    }
                    ty => ty,
                };
                return self.integer(ty, negative, magnitude, at);
            }
            Literal::Unsigned { value, bits } => {
                let value = value.get();
                if let Some(low) = wanted.and_then(Type::as_low) {
                    return self.bits_of(Type::low(low), value, at);
                }
                let ty = match bits {
                    8 => Type::UINT8,
                    16 => Type::UINT16,
                    32 => Type::UINT32,
                    64 => Type::UINT64,
                    _ => Type::UINT128,
                };
                (ty, value)
            }
            // Julia prints 16-bit floats this way where their type is known.
            Literal::Float64(value) if wanted == Some(Type::FLOAT16) => {
                return self.float_constant(Type::FLOAT16, value, at);
            }
            Literal::Float64(value) => {
                (if low { Type::F64 } else { Type::FLOAT64 }, u128::from(value.to_bits()))
            }
            Literal::Float32(value) => {
                (if low { Type::F32 } else { Type::FLOAT32 }, u128::from(value.to_bits()))
            }
            Literal::Char(bits) => (Type::CHAR, u128::from(bits)),
            Literal::String(ref bytes) => {
                return Some(match std::str::from_utf8(bytes) {
                    Ok(text) => Term::Const(Const::String(self.cx.names.intern(text))),
                    Err(_) => Term::Bytes(bytes.to_vec()),
                });
            }
        };
        Some(Term::Const(Const::Bits { ty, bits }))
    }

    /// A decimal integer of an integer type.
    fn integer(&mut self, ty: Type, negative: bool, magnitude: u128, at: Span) -> Option<Term> {
        let (width, signed) = match (ty.as_low(), self.cx.types.primitive(ty)) {
            // Low integers have no sign: both interpretations of the bits can be written.
            (Some(low), _) => (low.bits(), false),
            (None, Some((bits, repr))) => (u32::from(bits), repr == PrimitiveRepr::Signed),
            (None, None) => (64, true),
        };
        let most = if width < 128 { (1u128 << width) - 1 } else { u128::MAX };
        let half = 1u128 << (width - 1);
        let fits = match (negative, signed || ty.as_low().is_some()) {
            (true, true) => magnitude <= half,
            (true, false) => magnitude == 0,
            (false, _) => magnitude <= if signed { half - 1 } else { most },
        };
        if !fits {
            let literal = self.source_text(at);
            let ty = self.show_type(ty);
            return self.fail(ResolveError::LiteralRange { literal, ty }, at);
        }
        let bits = if negative { magnitude.wrapping_neg() & most } else { magnitude };
        Some(Term::Const(Const::Bits { ty, bits }))
    }

    /// Bits of a primitive, pointer or low type, which must be wide enough.
    fn bits_of(&mut self, ty: Type, bits: u128, at: Span) -> Option<Term> {
        let width = match ty.as_low() {
            Some(low) => Some(low.bits()),
            None => self.cx.types.primitive(ty).map(|(bits, _)| u32::from(bits)),
        };
        let ty_name = || self.show_type(ty);
        match width {
            Some(width) if width >= 128 || bits >> width == 0 => Some(Term::Const(Const::Bits { ty, bits })),
            Some(_) => {
                let error = ResolveError::LiteralRange { literal: self.source_text(at), ty: ty_name() };
                self.fail(error, at)
            }
            None => {
                let error = ResolveError::LiteralType { literal: self.source_text(at), ty: ty_name() };
                self.fail(error, at)
            }
        }
    }

    /// `-Inf` and `-x` for literals whose sign the lexer does not include.
    fn negative(&mut self, inner: &Expr<'a>, wanted: Option<Type>, at: Span) -> Option<Term> {
        let Term::Const(Const::Bits { ty, bits }) = self.term(inner, wanted)? else {
            return self.fail(ResolveError::NotAConstant, at);
        };
        let sign = match self.scalar_type(ty) {
            Some(ty @ (ScalarType::F16 | ScalarType::F32 | ScalarType::F64)) => 1u128 << (ty.bits() - 1),
            _ => return self.fail(ResolveError::NotAConstant, at),
        };
        Some(Term::Const(Const::Bits { ty, bits: bits ^ sign }))
    }

    fn scalar_type(&self, ty: Type) -> Option<ScalarType> {
        let (bits, float) = match ty.as_low() {
            Some(low) => (low.bits() as u16, low.is_float()),
            None => {
                let (bits, repr) = self.cx.types.primitive(ty)?;
                (bits, repr == PrimitiveRepr::Float)
            }
        };
        Some(match (float, bits) {
            (true, 16) => ScalarType::F16,
            (true, 32) => ScalarType::F32,
            (true, _) => ScalarType::F64,
            (false, bits) => ScalarType::Int { bits },
        })
    }

    /// A name of a constant: `nothing`, `NaN32`, a type, a `const`, a module, a function.
    fn named_constant(&mut self, parts: &[Cow<'a, str>], expr: &Expr<'a>) -> Option<Term> {
        let name = last_name(parts);
        let qualified = matches!(expr.kind, ExprKind::Path(_));
        let (f64_ty, f32_ty, f16_ty) = match self.level {
            Level::High => (Type::FLOAT64, Type::FLOAT32, Type::FLOAT16),
            Level::Low => (Type::F64, Type::F32, Type::F16),
        };
        let bits = |ty, bits| Some(Term::Const(Const::Bits { ty, bits }));
        let bool_ty = if self.level == Level::Low { Type::I8 } else { Type::BOOL };
        match name {
            "true" => return bits(bool_ty, 1),
            "false" => return bits(bool_ty, 0),
            "nothing" => return Some(Term::Const(Const::Singleton(Type::NOTHING))),
            "Inf" | "Inf64" => return bits(f64_ty, u128::from(f64::INFINITY.to_bits())),
            "NaN" | "NaN64" => return bits(f64_ty, 0x7ff8_0000_0000_0000),
            "Inf32" => return bits(f32_ty, 0x7f80_0000),
            "NaN32" => return bits(f32_ty, 0x7fc0_0000),
            "Inf16" => return bits(f16_ty, 0x7c00),
            "NaN16" => return bits(f16_ty, 0x7e00),
            "C_NULL" => {
                let ty = self.cx.types.ptr(Type::NOTHING).ok()?;
                return bits(ty, 0);
            }
            "im" => return self.imaginary_unit(expr.span),
            "missing" if self.library_decl("Missing").is_some() => {
                let ty = self.ty_by_name("Missing")?;
                return Some(Term::Const(Const::Singleton(ty)));
            }
            _ => {}
        }
        if let Some(term) = self.consts.get(name) {
            return Some(term.clone());
        }
        if self.looks_like_type(expr) {
            let ty = self.ty(expr)?;
            return Some(Term::Const(self.cx.types.type_constant(ty)));
        }
        if matches!(name, "Main" | "Base" | "Core")
            || qualified && matches!(name, "Checked" | "Math" | "Intrinsics")
        {
            return Some(Term::Const(Const::Module(self.cx.names.intern(name))));
        }
        if let Some(closure) = self.closure_named(name) {
            return Some(Term::Const(Const::Singleton(closure)));
        }
        if qualified || self.is_function_name(name) {
            return Some(Term::Const(Const::Singleton(self.function_type(parts))));
        }
        // A type that the text does not declare: only types begin with a capital.
        if self.reads_rows
            && let Some(decl) = self.declare_unknown(name, expr.span)
        {
            let ty = self.cx.types.nominal(decl, &[]);
            let ty = self.made(ty, expr.span)?;
            return Some(Term::Const(self.cx.types.type_constant(ty)));
        }
        self.unknown_name(name, expr.span)
    }

    fn ty_by_name(&mut self, name: &str) -> Option<Type> {
        let decl = self.library_decl(name)?;
        self.cx.types.nominal(decl, &[]).ok()
    }

    /// `[…]` and `T[…]`.
    fn array(&mut self, elem: Option<Type>, items: &ArrayItems<'a>, at: Span) -> Option<Term> {
        let terms: Option<Vec<Term>> = items
            .items
            .iter()
            .map(|item| match elem {
                Some(elem) => self.converted(item, elem),
                None => self.term(item, None),
            })
            .collect();
        let mut terms = terms?;
        let elem = match elem {
            Some(elem) => elem,
            None => self.common_type(&mut terms),
        };
        let dims = match items.columns {
            None => vec![terms.len()],
            Some(columns) => {
                let rows = terms.len() / columns;
                // Text is row-major, memory column-major.
                let order = (0..terms.len()).map(|i| (i % rows) * columns + i / rows);
                terms = order.map(|from| terms[from].clone()).collect();
                vec![rows, columns]
            }
        };
        match self.cx.types.array(elem, dims.len() as u32) {
            Ok(ty) => Some(Term::Array { ty, dims, items: terms }),
            Err(error) => {
                let why = error.display(&self.cx.types).to_string();
                self.fail(ResolveError::BadType { why }, at)
            }
        }
    }

    /// The element type of `[…]`: the common type of all elements, its union with `Nothing` or `Missing`
    /// where all others have one type, `Float64` for a mix of `Int64` and `Float64`, or `Any`.
    fn common_type(&mut self, terms: &mut [Term]) -> Type {
        let Some(first) = terms.first().map(Term::ty) else { return Type::ANY };
        if terms.iter().all(|t| t.ty() == first) {
            return first;
        }
        if !terms.iter().all(|t| matches!(t.ty(), Type::INT64 | Type::FLOAT64)) {
            return self.with_absent(terms).unwrap_or(Type::ANY);
        }
        for term in terms {
            if let Term::Const(Const::Bits { ty: ty @ Type::INT64, bits }) = term {
                *ty = Type::FLOAT64;
                *bits = u128::from((*bits as i64 as f64).to_bits());
            }
        }
        Type::FLOAT64
    }

    /// The union of `Nothing` or `Missing` and the type of all other elements.
    fn with_absent(&self, terms: &[Term]) -> Option<Type> {
        let types = &self.cx.types;
        let missing = self.library_decl("Missing").and_then(|decl| types.nominal(decl, &[]).ok());
        let absent = terms.iter().map(Term::ty).find(|&ty| ty == Type::NOTHING || Some(ty) == missing)?;
        let mut others = terms.iter().map(Term::ty).filter(|&ty| ty != absent);
        let other = others.next()?;
        let is_one = others.all(|ty| ty == other) && other != Type::NOTHING && Some(other) != missing;
        if is_one { types.union(&[absent, other]).ok() } else { None }
    }

    /// A constant converted as by `convert(T, …)`, for constructors and elements.
    pub(super) fn converted(&mut self, expr: &Expr<'a>, to: Type) -> Option<Term> {
        if let ExprKind::Literal(Literal::Int { negative, magnitude }) = expr.kind {
            let magnitude = magnitude.get();
            match self.cx.types.primitive(to) {
                Some((_, PrimitiveRepr::Signed | PrimitiveRepr::Unsigned)) => {
                    return self.integer(to, negative, magnitude, expr.span);
                }
                Some((_, PrimitiveRepr::Float)) => {
                    let value = if negative { -(magnitude as f64) } else { magnitude as f64 };
                    return self.float_constant(to, value, expr.span);
                }
                _ => {}
            }
        }
        if let Some(function) = self.function_in_constant(expr) {
            return Some(function);
        }
        let term = self.term(expr, Some(to))?;
        if let Term::Const(Const::Bits { ty, bits }) = term
            && ty != to
        {
            return match (self.cx.types.primitive(ty), self.cx.types.primitive(to)) {
                (Some((_, PrimitiveRepr::Float)), Some((_, PrimitiveRepr::Float))) => {
                    let value = self.to_f64(ty, bits)?;
                    self.float_constant(to, value, expr.span)
                }
                (
                    Some((_, PrimitiveRepr::Unsigned)),
                    Some((_, PrimitiveRepr::Signed | PrimitiveRepr::Unsigned)),
                ) => self.integer(to, false, bits, expr.span),
                _ => Some(term),
            };
        }
        Some(term)
    }

    /// A function by its bare name where only constants are allowed, so an unknown name can mean nothing
    /// else: `By(abs, Forward)`.
    pub(super) fn function_in_constant(&self, expr: &Expr<'a>) -> Option<Term> {
        let ExprKind::Name(name) = &expr.kind else { return None };
        let is_function = name.starts_with(|c: char| c.is_lowercase() || matches!(c, '_' | '#'))
            && !is_literal_name(name)
            && !self.consts.contains_key(name)
            && !self.looks_like_type(expr);
        is_function.then(|| {
            let closure = self.closure_named(name);
            let ty = closure.unwrap_or_else(|| self.function_type(std::slice::from_ref(name)));
            Term::Const(Const::Singleton(ty))
        })
    }

    /// The closure without fields that `show` prints by name only: `#26` of type `var"#26#27"`, `#alg##0` of
    /// `var"#alg##0#alg##1"`.
    pub(super) fn closure_named(&self, name: &str) -> Option<Type> {
        if !name.starts_with('#') {
            return None;
        }
        let types = &self.cx.types;
        let is_of = |ty: &Type| types.is_singleton(*ty);
        let named = types.decls().filter(|&decl| {
            let text = self.cx.names.text(types.decl(decl).name);
            text.strip_prefix(name).is_some_and(|rest| rest.starts_with('#'))
        });
        let mut found = named.filter_map(|decl| types.nominal(decl, &[]).ok().filter(is_of));
        found.next().filter(|_| found.next().is_none())
    }

    fn to_f64(&self, ty: Type, bits: u128) -> Option<f64> {
        Scalar::new(self.scalar_type(ty)?, bits).to_f64()
    }

    /// The nearest float of a type.
    fn float_constant(&mut self, ty: Type, value: f64, at: Span) -> Option<Term> {
        let bits = match self.scalar_type(ty) {
            Some(ScalarType::F64) => u128::from(value.to_bits()),
            Some(target @ (ScalarType::F16 | ScalarType::F32)) => {
                match eval(Intrinsic::Fptrunc, target, &[Scalar::f64(value)]) {
                    Ok(Outcome::One(narrow)) => narrow.bits(),
                    _ => return self.fail(ResolveError::NotAConstant, at),
                }
            }
            _ => {
                let error =
                    ResolveError::LiteralType { literal: self.source_text(at), ty: self.show_type(ty) };
                return self.fail(error, at);
            }
        };
        Some(Term::Const(Const::Bits { ty, bits }))
    }

    /// `T(args…)` for a type, `Symbol("…")`, `reinterpret(T, bits)`, `typemin(T)`, `typemax(T)`.
    fn constructor(&mut self, callee: &Expr<'a>, args: &[Expr<'a>], at: Span) -> Option<Term> {
        let name = match &callee.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => last_name(parts),
            _ => "",
        };
        match (name, args) {
            ("Symbol", [Expr { kind: ExprKind::Literal(Literal::String(bytes)), .. }]) => {
                return match std::str::from_utf8(bytes) {
                    Ok(text) => Some(Term::Const(Const::Symbol(self.cx.names.intern(text)))),
                    Err(_) => self.fail(ResolveError::StringNotUtf8, at),
                };
            }
            ("reinterpret", [ty, value]) => {
                let ty = self.ty(ty)?;
                let Term::Const(Const::Bits { bits, .. }) = self.term(value, None)? else {
                    return self.fail(ResolveError::NotAConstant, value.span);
                };
                return self.bits_of(ty, bits, at);
            }
            ("NamedTuple", []) => {
                let ty = self.cx.types.tuple(&[]).and_then(|tuple| self.cx.types.named_tuple(&[], tuple));
                return self.aggregate(ty, Vec::new(), at);
            }
            ("Colon", []) => {
                return Some(Term::Const(Const::Singleton(self.function_type(&[Cow::Borrowed(":")]))));
            }
            ("typemin" | "typemax", [ty]) => {
                let ty = self.ty(ty)?;
                return self.extreme(ty, name == "typemax", at);
            }
            _ => {}
        }
        // `show` prints undefined fields; only the last fields of an object can be undefined.
        let given = args.iter().rposition(|arg| !matches!(arg.kind, ExprKind::Undef));
        let args = &args[..given.map_or(0, |last| last + 1)];
        if let Some(made) = self.library_constructor(name, args, at) {
            return made;
        }
        if !self.looks_like_type(callee) {
            return self.fail_unread(ResolveError::NotAConstant, at);
        }
        let ty = self.ty(callee)?;
        if (self.cx.types.primitive(ty).is_some() || ty.as_low().is_some_and(|low| !low.is_float()))
            && let [value] = args
        {
            return self.primitive(ty, value, at);
        }
        let given = self.given_parameters(ty, callee)?;
        self.instance_of(ty, &given, args, at)
    }

    /// `Int8(-3)`, `Float16(0.5)`, `Ptr{T}(0x…)`, `i8(5)`.
    fn primitive(&mut self, ty: Type, value: &Expr<'a>, at: Span) -> Option<Term> {
        if ty.as_low().is_some() {
            let Term::Const(Const::Bits { bits, .. }) = self.term(value, Some(ty))? else {
                return self.fail(ResolveError::NotAConstant, at);
            };
            return self.bits_of(ty, bits, at);
        }
        let term = self.converted(value, ty)?;
        match term {
            Term::Const(Const::Bits { ty: from, bits }) if from != ty => {
                if self.cx.types.pointee(ty).is_some() {
                    return self.bits_of(ty, bits, at);
                }
                let error =
                    ResolveError::LiteralType { literal: self.source_text(at), ty: self.show_type(ty) };
                self.fail(error, at)
            }
            term => Some(term),
        }
    }

    fn extreme(&mut self, ty: Type, greatest: bool, at: Span) -> Option<Term> {
        let bits = match self.cx.types.primitive(ty) {
            Some((width, PrimitiveRepr::Signed)) => {
                let half = 1u128 << (width - 1);
                if greatest { half - 1 } else { half }
            }
            Some((width, PrimitiveRepr::Unsigned)) => {
                if greatest {
                    u128::MAX >> (128 - u32::from(width))
                } else {
                    0
                }
            }
            Some((_, PrimitiveRepr::Float)) => {
                let value = if greatest { f64::INFINITY } else { f64::NEG_INFINITY };
                return self.float_constant(ty, value, at);
            }
            _ => return self.fail(ResolveError::NotAConstant, at),
        };
        Some(Term::Const(Const::Bits { ty, bits }))
    }

    /// The parameters in a callee that states only some of its type's: `Small{80}(…)`.
    fn given_parameters(&mut self, ty: Type, callee: &Expr<'a>) -> Option<Vec<Type>> {
        match (&callee.kind, self.cx.types.kind(ty)) {
            (ExprKind::Curly(_, params), TypeKind::Generic(_)) => {
                params.iter().map(|param| self.static_value(param)).collect()
            }
            _ => Some(Vec::new()),
        }
    }

    /// An instance of a declared struct; type parameters that are not `given` are inferred from the
    /// arguments.
    fn instance_of(&mut self, ty: Type, given: &[Type], args: &[Expr<'a>], at: Span) -> Option<Term> {
        let types = &self.cx.clone().types;
        let not_a_struct = |this: &mut Self| {
            let error = ResolveError::LiteralType { literal: this.source_text(at), ty: this.show_type(ty) };
            this.fail_unread(error, at)
        };
        if let Some(elems) = types.tuple_elements(ty) {
            let [Expr { kind: ExprKind::Tuple(items), .. }] = args else { return not_a_struct(self) };
            if items.len() != elems.len() {
                return not_a_struct(self);
            }
            let fields: Option<Vec<Term>> =
                items.iter().zip(elems).map(|(item, &elem)| self.converted(item, elem)).collect();
            return self.aggregate(Ok(ty), fields?, at);
        }
        if let TypeKind::Generic(decl) = *types.kind(ty) {
            if self.library_decl("CartesianIndex") == Some(decl) {
                return self.cartesian_index(decl, args, at);
            }
            if let [Expr { kind: ExprKind::Tuple(axes), .. }] = args
                && ["CartesianIndices", "LinearIndices"]
                    .iter()
                    .any(|name| self.library_decl(name) == Some(decl))
            {
                return self.indices(decl, axes, at);
            }
            let fields: Option<Vec<Term>> = args
                .iter()
                .map(|arg| self.function_in_constant(arg).or_else(|| self.term(arg, None)))
                .collect();
            let fields = fields?;
            let Some(DeclKind::Struct { fields: declared, .. }) = types.body(decl).map(|b| &b.kind) else {
                return not_a_struct(self);
            };
            let params: Option<Vec<Type>> = (0..types.decl(decl).params.len() as u32)
                .map(|index| {
                    if let Some(&given) = given.get(index as usize) {
                        return Some(given);
                    }
                    let position =
                        declared.iter().position(|f| *types.kind(f.ty) == TypeKind::Param(index))?;
                    fields.get(position).map(Term::ty)
                })
                .collect();
            let Some(params) = params else { return not_a_struct(self) };
            return self.aggregate(types.nominal(decl, &params), fields, at);
        }
        if let Some(pairs) = self.pairs(ty, args, at) {
            return pairs;
        }
        let Some(declared) = types.fields(ty) else { return not_a_struct(self) };
        if args.len() > declared.len() {
            return not_a_struct(self);
        }
        // An object without bits is printed without its fields:
        // `Pairs{Union{}, Union{}, Tuple{}, @NamedTuple{}}()`.
        if args.is_empty() && self.has_no_bits(ty) {
            return self.only_instance(ty, &mut { MAX_PARTS }).or_else(|| not_a_struct(self));
        }
        let fields: Option<Vec<Term>> =
            args.iter().zip(declared).map(|(arg, field)| self.converted(arg, field.ty)).collect();
        let fields = fields?;
        // Arguments are fields here. Constructors that compute their fields, such as `Dict(1 => 2)`, are
        // unknown.
        if fields.iter().zip(declared).any(|(field, wanted)| !types.is_subtype(field.ty(), wanted.ty)) {
            return not_a_struct(self);
        }
        self.aggregate(Ok(ty), fields, at)
    }

    /// Whether a type has a single object, without bits. A struct that contains itself has a reference.
    fn has_no_bits(&self, ty: Type) -> bool {
        let types = &self.cx.types;
        !types.is_mutable(ty) && types.layout(ty).is_ok_and(|layout| layout.size == 0)
    }

    /// The only object of a type without bits, if it has at most `room` parts. The recursion follows inline
    /// fields, whose nesting is bounded.
    fn only_instance(&self, ty: Type, room: &mut usize) -> Option<Term> {
        let types = &self.cx.types;
        *room = room.checked_sub(1)?;
        if types.is_singleton(ty) {
            return Some(Term::Const(Const::Singleton(ty)));
        }
        let parts = types.layout(ty).ok()?.fields.iter();
        let fields = parts.map(|field| self.only_instance(field.ty, room)).collect::<Option<_>>()?;
        Some(Term::Aggregate { ty, fields })
    }

    /// A term for a global.
    pub(super) fn module_literal(&mut self, term: Term, at: Span) -> Option<module::Literal> {
        let all = |r: &mut Self, terms: Vec<Term>| {
            terms.into_iter().map(|term| r.module_literal(term, at)).collect::<Option<Vec<_>>>()
        };
        match term {
            Term::Const(constant) => Some(module::Literal::Const(constant)),
            Term::Aggregate { ty, fields } => {
                Some(module::Literal::Aggregate { ty, fields: all(self, fields)? })
            }
            Term::Array { ty, dims, items } => {
                Some(module::Literal::Array { ty, dims, items: all(self, items)? })
            }
            Term::Bytes(_) => self.fail(ResolveError::StringNotUtf8, at),
        }
    }
}
