//! The types in `isa`, `typeassert` and `<:`, without widening.
//!
//! ```text
//! x::Vector{<:Real}            an annotation: widened to the supertype Array
//! x isa Vector{<:Real}         a test: <0> := a variable with the bound Real, around Array{<0>, 1}
//! Dict{String, <:Vector{<:T}} where T     refused: an inner bound names an outer variable
//! ```
//!
//! While a test is read, the type reader makes a variable of each `<:Bound`, of each omitted parameter and of
//! each name of a `where`, and binds them around the braces or the `where` that they belong to. While it is
//! read, a variable is numbered among all enclosing ones; when it is bound, among those bound with it.
//!
//! A type that still has no form sets `has_widened`, like an annotation.

use super::super::ast::{Expr, ExprKind};
use super::Resolver;
use super::error::ResolveError;
use super::types::TypeVar;
use crate::diag::Span;
use crate::types::Type;

/// A type that a test names.
pub(super) enum Tested {
    Exact(Type),
    /// It has no form here.
    Widened,
    /// It is invalid; the operand reader reports why.
    Faulty,
}

impl<'a> Resolver<'a> {
    /// The type named in a test. Reports nothing: the type is read again as an operand.
    pub(super) fn tested_type(&mut self, expr: &Expr<'a>) -> Tested {
        let widened = std::mem::replace(&mut self.has_widened, false);
        let free = std::mem::replace(&mut self.lowest_free, usize::MAX);
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let around = self.exact.replace(Vec::new());
        let outer = self.type_vars.len();
        let ty = self.ty(expr);
        self.type_vars.truncate(outer);
        self.exact = around;
        self.diagnostics = diagnostics;
        let is_free = std::mem::replace(&mut self.lowest_free, free) != usize::MAX;
        let is_widened = std::mem::replace(&mut self.has_widened, widened);
        match ty {
            None => Tested::Faulty,
            Some(ty) if is_widened || is_free || self.cx.types.has_inner_union_all(ty) => Tested::Widened,
            Some(ty) => Tested::Exact(ty),
        }
    }

    /// A new variable with these bounds, as a type, while a test is read.
    pub(super) fn new_variable(&mut self, lower: Type, upper: Type) -> Option<Type> {
        let variables = self.exact.as_mut()?;
        let number = variables.len() as u32;
        variables.push((lower, upper));
        Some(self.cx.types.param(number))
    }

    /// The variable of an omitted parameter, while a test is read.
    pub(super) fn free_variable(&mut self) -> Option<Type> {
        self.new_variable(Type::BOTTOM, Type::ANY)
    }

    /// Binds the variables made by `body` around the type that it reads. Outside tests there are none.
    pub(super) fn binding(&mut self, at: Span, body: impl FnOnce(&mut Self) -> Option<Type>) -> Option<Type> {
        let around = self.exact.as_ref().map_or(0, Vec::len);
        let ty = body(self)?;
        let own = match self.exact.as_mut() {
            Some(variables) if variables.len() > around => variables.split_off(around),
            _ => return Some(ty),
        };
        let types = &self.cx.types;
        let parts = own.iter().flat_map(|&(lower, upper)| [lower, upper]).chain([ty]);
        if parts.into_iter().any(|part| types.mentions(part, &|n| (n as usize) < around)) && around > 0 {
            self.has_widened = true;
            return Some(ty);
        }
        let number = |n: usize| types.param(n.saturating_sub(around) as u32);
        let numbers: Vec<Type> = (0..around + own.len()).map(number).collect();
        let renamed = |ty: Type| types.substitute(ty, &numbers);
        let bounds = own.iter().map(|&(lower, upper)| Ok((renamed(lower)?, renamed(upper)?)));
        let bound =
            bounds.collect::<Result<Vec<_>, _>>().and_then(|bounds| types.union_all(&bounds, renamed(ty)?));
        self.made(bound, at)
    }

    /// `body where {vars…}` in a test; of several `where` the last is the outermost.
    pub(super) fn tested_where(&mut self, expr: &Expr<'a>) -> Option<Type> {
        let (mut body, mut groups) = (expr, Vec::new());
        while let ExprKind::Where(inner, vars) = &body.kind {
            groups.push(vars);
            body = inner;
        }
        let outer = self.type_vars.len();
        let ty = self.binding(expr.span, |r| {
            for var in groups.into_iter().flatten() {
                let (low, name, high) = match &var.kind {
                    ExprKind::Infix(op, args) if args.len() == 2 && op == ">:" => {
                        (Some(&args[1]), &args[0], None)
                    }
                    ExprKind::Infix(op, args) if args.len() == 2 && op == "<:" => match &args[0].kind {
                        ExprKind::Infix(inner, low) if low.len() == 2 && inner == "<:" => {
                            (Some(&low[0]), &low[1], Some(&args[1]))
                        }
                        _ => (None, &args[0], Some(&args[1])),
                    },
                    _ => (None, var, None),
                };
                let ExprKind::Name(name) = &name.kind else {
                    return r.fail(ResolveError::NotAType, name.span);
                };
                let lower = low.map_or(Some(Type::BOTTOM), |low| r.ty(low))?;
                let upper = high.map_or(Some(Type::ANY), |high| r.ty(high))?;
                let variable = r.new_variable(lower, upper)?;
                r.type_vars.push((name.clone(), TypeVar::Param(variable)));
            }
            r.ty(body)
        });
        self.type_vars.truncate(outer);
        ty
    }
}
