//! Turns the `where` of a signature into static parameters.
//!
//! ```text
//! f(x::Vector{T}, y::S) where {T, Int8 <: S <: Real, N = 3, U = #undef}
//!   parameters   x::Array           y::Real          each variable replaced by its upper bound
//!   patterns     x::Vector{<0>}     y::<1>           each variable kept
//! ```
//!
//! So the types of a signature with open variables are read twice. A variable with a value is replaced by it
//! both times. In `… where T where S`, `S` is the first.

use std::borrow::Cow;

use super::super::ast::{Expr, ExprKind, Literal};
use super::body::Body;
use super::error::ResolveError;
use super::types::TypeVar;
use super::{Resolver, ast};
use crate::constant::Const;
use crate::diag::Span;
use crate::entity::{Inst, Value};
use crate::func::Signature;
use crate::op::{Level, Op};
use crate::types::{StaticBound, StaticParam, Statics, Type, TypeError, TypeKind};

/// The variables of a `where` in both readings.
#[derive(Default)]
pub(super) struct Variables<'a> {
    params: Vec<StaticParam>,
    hulls: Vec<(Cow<'a, str>, TypeVar)>,
    patterns: Vec<(Cow<'a, str>, TypeVar)>,
}

impl Body<'_, '_> {
    /// A static parameter as an operand, which Julia annotates with its type.
    pub(super) fn static_operand(&mut self, number: u32, ty: Type, at: Span) -> Option<Value> {
        let Some(inst) = self.here.filter(|_| self.func.level == Level::High) else {
            return self.r.fail(ResolveError::NotAValue, at);
        };
        match self.unbound_static(number, ty) {
            None => self.insert_before(inst, Op::StaticParameter(number), &[], ty),
            Some(Some(of)) => Some(self.func.constant(self.r.cx.types.type_constant(of))),
            Some(None) => Some(self.undefined(inst, number, ty)),
        }
    }

    /// The type of an unannotated static parameter: the type of its value if the signature states it.
    pub(super) fn type_of_static(&self, number: u32) -> Type {
        match self.func.sig.statics.get(number).map(|param| param.bound) {
            Some(StaticBound::Value(value)) => self.r.cx.types.static_type(value),
            _ => Type::ANY,
        }
    }

    /// Whether the signature lacks the static parameter: a dump prints no `where`. The type of `…::Type{T}`
    /// determines its value.
    pub(super) fn unbound_static(&self, number: u32, ty: Type) -> Option<Option<Type>> {
        let is_bound = self.func.sig.statics.get(number).is_some();
        let of = match *self.r.cx.types.kind(ty) {
            TypeKind::TypeOf(of) => Some(of),
            _ => None,
        };
        (!is_bound && self.r.functions.has_dumps()).then_some(of)
    }

    /// A static parameter that is never bound: an `UndefVarError` when `inst` is reached.
    pub(super) fn undefined(&mut self, inst: Inst, number: u32, ty: Type) -> Value {
        let name = self.r.cx.names.intern(&format!("static parameter {number}"));
        let never = self.func.constant(Const::Bits { ty: Type::BOOL, bits: 0 });
        self.insert_before(inst, Op::ThrowUndefIfNot(name), &[never], Type::NOTHING);
        self.func.constant(Const::Undef(ty))
    }
}

impl<'a> Resolver<'a> {
    pub(super) fn variables(&mut self, vars: &[Expr<'a>]) -> Option<Variables<'a>> {
        let mut variables = Variables::default();
        for var in vars {
            let number = variables.params.len() as u32;
            let (name, bounds) = match &var.kind {
                ExprKind::Infix(op, args) if args.len() == 2 && op == "=" => {
                    (&args[0], Bounds::Value(&args[1]))
                }
                ExprKind::Infix(op, args) if args.len() == 2 && op == ">:" => {
                    (&args[0], Bounds::Between(Some(&args[1]), None))
                }
                ExprKind::Infix(op, args) if args.len() == 2 && op == "<:" => match &args[0].kind {
                    ExprKind::Infix(inner, low) if low.len() == 2 && inner == "<:" => {
                        (&low[1], Bounds::Between(Some(&low[0]), Some(&args[1])))
                    }
                    _ => (&args[0], Bounds::Between(None, Some(&args[1]))),
                },
                _ => (var, Bounds::Between(None, None)),
            };
            let ExprKind::Name(text) = &name.kind else {
                return self.fail(ResolveError::NotAType, name.span);
            };
            if variables.hulls.iter().any(|(known, _)| known == text) {
                let what = format!("`{text}` twice in one `where`");
                let why = "each variable has a name of its own";
                return self.fail(ResolveError::Unsupported { what, why }, name.span);
            }
            let (bound, hull) = match bounds {
                Bounds::Value(Expr { kind: ExprKind::Undef, .. }) => (StaticBound::Undefined, None),
                Bounds::Value(value) => {
                    let value = self.with_variables(&variables.hulls, |r| r.static_value(value))?;
                    (StaticBound::Value(value), Some(TypeVar::Param(value)))
                }
                Bounds::Between(low, high) => {
                    let lower = match low {
                        Some(low) => self.ty(low)?,
                        None => Type::BOTTOM,
                    };
                    let (upper, hull) = match high {
                        Some(high) => (
                            self.with_variables(&variables.patterns, |r| r.ty(high))?,
                            self.with_variables(&variables.hulls, |r| r.ty(high))?,
                        ),
                        None => (Type::ANY, Type::ANY),
                    };
                    (StaticBound::Open { lower, upper }, Some(TypeVar::Free(hull)))
                }
            };
            let pattern = match bound {
                StaticBound::Open { .. } => Some(TypeVar::Param(self.cx.types.param(number))),
                _ => hull,
            };
            // An undefined variable has no meaning in types.
            variables.hulls.extend(hull.map(|hull| (text.clone(), hull)));
            variables.patterns.extend(pattern.map(|pattern| (text.clone(), pattern)));
            variables.params.push(StaticParam { name: self.cx.names.intern(text), bound });
        }
        Some(variables)
    }

    pub(super) fn with_hulls<T>(
        &mut self,
        variables: &Variables<'a>,
        body: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.with_variables(&variables.hulls, body)
    }

    fn with_variables<T>(
        &mut self,
        scope: &[(Cow<'a, str>, TypeVar)],
        body: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let outer = self.type_vars.len();
        self.type_vars.extend_from_slice(scope);
        let result = body(self);
        self.type_vars.truncate(outer);
        result
    }

    /// The static parameters of a signature, once its parameters have their types.
    pub(super) fn statics(
        &mut self,
        variables: Variables<'a>,
        signature: &ast::Signature<'a>,
        sig: &Signature,
    ) -> Option<Statics> {
        let open = variables.params.iter().any(|param| matches!(param.bound, StaticBound::Open { .. }));
        let mut patterns = Vec::new();
        if open {
            patterns.extend(sig.params.first().map(|object| object.ty));
            for param in &signature.params {
                let mut pattern = match &param.ty {
                    Some(ty) => self.with_variables(&variables.patterns, |r| r.ty(ty))?,
                    None => Type::ANY,
                };
                if param.is_vararg {
                    pattern = self.cx.types.tuple_vararg(&[], pattern).ok()?;
                }
                patterns.push(pattern);
            }
        }
        Some(Statics { params: variables.params, patterns })
    }

    /// The length in `NTuple{N, T}` or `Vararg{T, N}` as a type parameter; the inner `None` if it is open.
    pub(super) fn length(&mut self, count: &Expr<'a>) -> Option<Option<Type>> {
        match &count.kind {
            ExprKind::Literal(Literal::Int { negative: false, magnitude }) => {
                match i64::try_from(magnitude.get()) {
                    Ok(count) => Some(Some(self.cx.types.int(count))),
                    Err(_) => self.made(Err(TypeError::TooWide { count: usize::MAX }), count.span).map(Some),
                }
            }
            ExprKind::Name(name) => {
                let var = self.type_vars.iter().rev().find(|(var, _)| var == name).map(|&(_, var)| var);
                let Some(TypeVar::Param(ty)) = var else { return Some(None) };
                let is_length = matches!(self.cx.types.kind(ty), TypeKind::Int(_) | TypeKind::Param(_));
                Some(is_length.then_some(ty))
            }
            _ => Some(None),
        }
    }
}

enum Bounds<'e, 'a> {
    Between(Option<&'e Expr<'a>>, Option<&'e Expr<'a>>),
    Value(&'e Expr<'a>),
}
