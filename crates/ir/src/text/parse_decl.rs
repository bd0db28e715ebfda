//! Declarations, signatures and checks: everything in a file that is not IR.

use super::ast::Literal;
use super::ast::{
    Callee, Check, Expected, Expr, ExprKind, Field, GlobalDecl, Name, Param, Signature, TypeDecl,
    TypeDeclKind,
};
use super::error::{Fault, Parse, SyntaxError};
use super::lex::Tok;
use super::operators::{COMPARISON, WHOLE};
use super::parse_expr::Parser;
use super::parse_row;
use crate::diag::Span;
use crate::module::GlobalKind;

/// A type declaration, from its first keyword to its `end`.
pub(super) fn type_decl<'a>(p: &mut Parser<'a>) -> Parse<TypeDecl<'a>> {
    let start = p.peek().span.start;
    let mutable = p.eat_name("mutable")?;
    let is_struct = p.eat_name("struct")?;
    let is_abstract = !is_struct && p.eat_name("abstract")?;
    if !is_struct && (mutable || !is_abstract && !p.eat_name("primitive")?) {
        return p.unexpected("a type declaration");
    }
    if !is_struct && !p.eat_name("type")? {
        return p.unexpected("`type`");
    }
    let (name, params, supertype) = type_head(p.expr(COMPARISON)?)?;
    let kind = if is_struct {
        TypeDeclKind::Struct { mutable, fields: fields(p)? }
    } else if is_abstract {
        TypeDeclKind::Abstract
    } else {
        match p.peek().tok {
            Tok::Literal(Literal::Int { negative: false, magnitude }) => {
                TypeDeclKind::Primitive { bits: (magnitude.get(), p.advance()?.span) }
            }
            _ => return p.unexpected("the number of bits"),
        }
    };
    while p.eat(&Tok::Newline)? || p.eat(&Tok::Semicolon)? {}
    let end = p.peek().span.end;
    if !p.peek().is_name("end") {
        return p.unexpected("`end`");
    }
    p.advance()?;
    Ok(TypeDecl { span: Span::new(start, end), kind, name, params, supertype })
}

type TypeHead<'a> = ((Name<'a>, Span), Vec<Expr<'a>>, Option<Expr<'a>>);

/// `Name`, `Name{T, …}`, either with `<: Super`.
fn type_head(head: Expr<'_>) -> Parse<TypeHead<'_>> {
    let (declared, supertype) = match head.kind {
        ExprKind::Infix(op, mut args) if op == "<:" && args.len() == 2 => {
            let supertype = args.pop();
            (args.remove(0), supertype)
        }
        kind => (Expr::new(head.span, kind), None),
    };
    let span = declared.span;
    let (name, params) = match declared.kind {
        ExprKind::Curly(name, params) => (*name, params),
        kind => (Expr::new(span, kind), Vec::new()),
    };
    match name.kind {
        ExprKind::Name(text) => Ok(((text, name.span), params, supertype)),
        _ => {
            let (found, expected) = ("another expression".to_owned(), "the name of the type");
            Err(Fault::new(SyntaxError::Unexpected { found, expected }, name.span))
        }
    }
}

fn fields<'a>(p: &mut Parser<'a>) -> Parse<Vec<Field<'a>>> {
    let mut fields = Vec::new();
    loop {
        while p.eat(&Tok::Newline)? || p.eat(&Tok::Semicolon)? {}
        if p.peek().is_name("end") {
            return Ok(fields);
        }
        let start = p.peek().span.start;
        let (mut is_const, mut is_atomic) = (false, false);
        loop {
            if p.peek().is_name("const") {
                is_const = true;
            } else if p.peek().tok == Tok::At("atomic") {
                is_atomic = true;
            } else {
                break;
            }
            p.advance()?;
        }
        let name = p.name("a field or `end`")?.0;
        let ty = if p.eat(&Tok::ColonColon)? { Some(p.ty()?) } else { None };
        let span = Span::new(start, p.last_end());
        fields.push(Field { span, name, ty, is_const, is_atomic });
        if !matches!(p.peek().tok, Tok::Newline | Tok::Semicolon) && !p.peek().is_name("end") {
            return p.unexpected("the end of the field");
        }
    }
}

/// `global x::T = value`, `global threadlocal x::T = value`, `const x = value`.
pub(super) fn global_decl<'a>(p: &mut Parser<'a>) -> Parse<GlobalDecl<'a>> {
    let start = p.peek().span.start;
    let mut is_const = p.eat_name("const")?;
    let is_global = p.eat_name("global")?;
    is_const |= p.eat_name("const")?;
    if !is_const && !is_global {
        return p.unexpected("`global`");
    }
    let kind = match (is_const, is_marked_thread_local(p)) {
        (false, true) => {
            p.advance()?;
            GlobalKind::ThreadLocal
        }
        (false, false) => GlobalKind::Variable,
        // `const threadlocal x` is refused at `x`.
        (true, _) => GlobalKind::Constant,
    };
    let name = p.name("the name of the global")?;
    let ty = if p.eat(&Tok::ColonColon)? { Some(p.ty()?) } else { None };
    let value = if p.peek().is_op("=") {
        p.advance()?;
        Some(p.expr(WHOLE)?)
    } else {
        None
    };
    Ok(GlobalDecl { span: Span::new(start, p.last_end()), kind, name, ty, value })
}

/// Whether `threadlocal` is here a mark, and not the name of the variable.
fn is_marked_thread_local(p: &mut Parser<'_>) -> bool {
    p.peek().is_name("threadlocal") && matches!(p.peek_second().tok, Tok::Name(_) | Tok::Var(_))
}

/// `name(arg::T, rest::T...)::R`, `(self::T)(x::S)::R`, and either with `where {T, S}`, which applies to the
/// whole signature even after a type; `inline` or `noinline` at the end.
pub(super) fn signature<'a>(p: &mut Parser<'a>) -> Parse<Signature<'a>> {
    let start = p.peek().span;
    let whole = p.expr(WHOLE)?;
    let span = whole.span;
    let mut vars = Vec::new();
    let (call, result) = match without_where(whole, &mut vars).kind {
        ExprKind::Annotated(Some(call), result) => {
            (without_where(*call, &mut vars), Some(without_where(*result, &mut vars)))
        }
        kind => (Expr::new(span, kind), None),
    };
    let ExprKind::Call(callee, args) = call.kind else {
        return Err(Fault::new(SyntaxError::NotASignature, start.to(span)));
    };
    let callee = match callee.kind {
        ExprKind::Name(name) => Callee::Named(vec![name], callee.span),
        ExprKind::Path(parts) => Callee::Named(parts, callee.span),
        ExprKind::Annotated(..) => Callee::Object(param(*callee)?),
        _ => return Err(Fault::new(SyntaxError::NotASignature, callee.span)),
    };
    let params = args.into_iter().map(param).collect::<Parse<Vec<_>>>()?;
    let inlining = parse_row::inlining(p)?;
    let body = params.len().saturating_sub(1);
    if let Some(early) = params[..body].iter().find(|param| param.is_vararg) {
        return Err(Fault::new(SyntaxError::VarargNotLast, early.span));
    }
    Ok(Signature { span, callee, params, result, vars, inlining })
}

/// The expression before `where`; its variables follow an outer one's.
fn without_where<'a>(mut expr: Expr<'a>, vars: &mut Vec<Expr<'a>>) -> Expr<'a> {
    while let ExprKind::Where(inner, own) = expr.kind {
        vars.extend(own);
        expr = *inner;
    }
    expr
}

fn param(expr: Expr<'_>) -> Parse<Param<'_>> {
    let span = expr.span;
    let not_a_param = || Fault::new(SyntaxError::NotAParameter, span);
    // `rest::T...` parses as `rest::(T...)`, `rest...` as a splat of the name.
    let (inner, mut is_vararg) = match expr.kind {
        ExprKind::Splat(inner) => (*inner, true),
        kind => (Expr::new(span, kind), false),
    };
    let (name, ty) = match inner.kind {
        ExprKind::Annotated(name, ty) => (name.map(|n| *n), Some(*ty)),
        kind => (Some(Expr::new(inner.span, kind)), None),
    };
    let ty = match ty {
        Some(Expr { kind: ExprKind::Splat(ty), .. }) => {
            is_vararg = true;
            Some(*ty)
        }
        // The form in which method instances are printed: `rest::Vararg{T}`.
        Some(Expr { kind: ExprKind::Curly(base, mut args), .. })
            if args.len() == 1 && matches!(&base.kind, ExprKind::Name(name) if name == "Vararg") =>
        {
            is_vararg = true;
            args.pop()
        }
        Some(Expr { kind: ExprKind::Name(name), .. }) if name == "Vararg" => {
            is_vararg = true;
            None
        }
        ty => ty,
    };
    let name = match name.map(|n| n.kind) {
        None => None,
        Some(ExprKind::Name(name)) => Some(name),
        Some(_) => return Err(not_a_param()),
    };
    Ok(Param { span, name, ty, is_vararg })
}

/// `call == value` after `# check:`.
pub(super) fn check<'a>(p: &mut Parser<'a>) -> Parse<Check<'a>> {
    let whole = p.expr(WHOLE)?;
    p.expect_end()?;
    let span = whole.span;
    match whole.kind {
        ExprKind::Infix(op, args) if matches!(&*op, "==" | "===") => match <[Expr<'a>; 2]>::try_from(args) {
            Ok([call, value]) => Ok(Check { span, call, expected: Expected::Value(value) }),
            Err(_) => Err(Fault::new(SyntaxError::NotACheck { header: "check" }, span)),
        },
        _ => Err(Fault::new(SyntaxError::NotACheck { header: "check" }, span)),
    }
}

/// `call ExceptionType` after `# throws:`.
pub(super) fn throws<'a>(p: &mut Parser<'a>) -> Parse<Check<'a>> {
    let call = p.expr(WHOLE)?;
    let mut span = call.span;
    if p.peek().ends_statement() {
        return Err(Fault::new(SyntaxError::NotACheck { header: "throws" }, span));
    }
    let ty = p.expr(WHOLE)?;
    p.expect_end()?;
    span = span.to(ty.span);
    Ok(Check { span, call, expected: Expected::Throws(ty) })
}
