//! Expressions as a prompt reads them: constants, variables, and calls of both or of other calls.
//!
//! ```text
//! fib(10)                 a call of a constant
//! fib(add(x, 1))          nested calls; `x` is a variable of the caller
//! x * 2.0                 an operator is a call of Base's function
//! (x, 1)   x::Int64       calls of `tuple` and `typeassert`
//! Point(1.0, 2.0)         a constant, as in a check
//! Point(x, 2.0)           a call of the type: the constructor
//! ```
//!
//! Everything without a variable or a function call is a [`Term`], and is read as in checks. A variable hides
//! a function or constant of the same name.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::ast::{ArrayItems, Expr, ExprKind};
use super::functions::Functions;
use super::spelling::is_infix_literal;
use super::{ResolveError, Resolver, Term};
use crate::constant::Const;
use crate::context::Context;
use crate::diag::{Diagnostics, SourceFile, Span};

/// See the file's header.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Constant(Term),
    /// A variable of the caller.
    Variable(String),
    Call {
        /// Its place in the source.
        span: Span,
        /// The callee: a function, a type, or an object.
        callee: Box<Expression>,
        args: Vec<Expression>,
    },
}

/// Reads an expression. It may call `functions`, by module and name, and functions of the library.
pub fn read_expression(
    source: &SourceFile,
    cx: &Arc<Context>,
    functions: &[(String, String)],
    is_variable: &dyn Fn(&str) -> bool,
) -> Result<Expression, Diagnostics> {
    let (expr, diagnostics) = super::super::parse::parse_expr(source);
    let mut known = Functions::new(&super::Alone);
    functions.iter().for_each(|(module, name)| known.define(module, name));
    let mut resolver = Resolver::new(source.text(), cx, diagnostics, known);
    let read = expr.and_then(|expr| resolver.expression(&expr, is_variable));
    match read {
        Some(read) if !resolver.diagnostics.has_errors() => Ok(read),
        _ => Err(resolver.diagnostics),
    }
}

impl<'a> Resolver<'a> {
    fn expression(&mut self, expr: &Expr<'a>, is_variable: &dyn Fn(&str) -> bool) -> Option<Expression> {
        if let ExprKind::Name(name) = &expr.kind
            && is_variable(name)
        {
            return Some(Expression::Variable(name.to_string()));
        }
        if self.is_constant(expr, is_variable) {
            return self.term(expr, None).map(Expression::Constant);
        }
        let (callee, args) = match &expr.kind {
            ExprKind::Call(callee, args) => (self.expression_callee(callee, is_variable)?, &args[..]),
            ExprKind::Infix(op, args) => (self.operator_object(op), &args[..]),
            ExprKind::Prefix(op, arg) => (self.operator_object(op), std::slice::from_ref(&**arg)),
            ExprKind::Tuple(items) => (self.core_function("tuple"), &items[..]),
            ExprKind::Annotated(Some(value), ty) => {
                let ty = self.ty(ty)?;
                let ty = Expression::Constant(Term::Const(self.cx.types.type_constant(ty)));
                let value = self.expression(value, is_variable)?;
                let callee = Box::new(self.core_function("typeassert"));
                return Some(Expression::Call { span: expr.span, callee, args: vec![value, ty] });
            }
            _ => return self.fail(ResolveError::NotAConstant, expr.span),
        };
        let args = args.iter().map(|arg| self.expression(arg, is_variable)).collect::<Option<_>>()?;
        Some(Expression::Call { span: expr.span, callee: Box::new(callee), args })
    }

    fn expression_callee(
        &mut self,
        callee: &Expr<'a>,
        is_variable: &dyn Fn(&str) -> bool,
    ) -> Option<Expression> {
        let parts = match &callee.kind {
            ExprKind::Name(name) if is_variable(name) => None,
            ExprKind::Name(name) => Some(std::slice::from_ref(name)),
            ExprKind::Path(parts) => Some(&parts[..]),
            _ => None,
        };
        match parts {
            Some(parts) if self.is_own_function(parts) => Some(self.function_object(parts)),
            _ => self.expression(callee, is_variable),
        }
    }

    fn function_object(&mut self, parts: &[Cow<'_, str>]) -> Expression {
        Expression::Constant(Term::Const(Const::Singleton(self.function_type(parts))))
    }

    fn operator_object(&mut self, name: &str) -> Expression {
        self.function_object(&[Cow::Borrowed(name)])
    }

    fn core_function(&mut self, name: &'static str) -> Expression {
        self.function_object(&[Cow::Borrowed("Core"), Cow::Borrowed(name)])
    }

    /// Whether [`Resolver::term`] can read an expression: it has neither variables nor function calls.
    fn is_constant(&self, expr: &Expr<'a>, is_variable: &dyn Fn(&str) -> bool) -> bool {
        let all = |items: &[Expr<'a>]| items.iter().all(|item| self.is_constant(item, is_variable));
        match &expr.kind {
            ExprKind::Name(name) => !is_variable(name),
            ExprKind::Call(callee, args) => {
                let is_own = match &callee.kind {
                    ExprKind::Name(name) => self.is_own_function(std::slice::from_ref(name)),
                    ExprKind::Path(parts) => self.is_own_function(parts),
                    _ => false,
                };
                !is_own && self.looks_like_type(callee) && all(args)
            }
            ExprKind::Infix(op, args) => (op == "=>" || is_infix_literal(op, args)) && all(args),
            ExprKind::Prefix(_, arg) => {
                matches!(arg.kind, ExprKind::Literal(_) | ExprKind::Name(_))
                    && self.is_constant(arg, is_variable)
            }
            ExprKind::Tuple(items) => all(items),
            ExprKind::NamedTuple(items) => items.iter().all(|(_, item)| self.is_constant(item, is_variable)),
            ExprKind::Array(ArrayItems { items, .. }) | ExprKind::TypedArray(_, ArrayItems { items, .. }) => {
                all(items)
            }
            ExprKind::Annotated(Some(value), _) => match value.kind {
                ExprKind::Literal(_) | ExprKind::Undef | ExprKind::Prefix(..) | ExprKind::Tuple(_) => {
                    self.is_constant(value, is_variable)
                }
                _ => false,
            },
            _ => true,
        }
    }
}
