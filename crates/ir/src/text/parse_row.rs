//! Statements: one row of a block, without its guards and gutters.
//!
//! ```text
//! %3  = invoke Main.f(%1::Int64)::Int64 noinline
//! └┬┘   └─┬──┘ └───────┬───────┘  └─┬─┘ └──┬───┘
//! result  label    statement      type    hint
//! ```
//!
//! A word such as `invoke` or `φ` begins a statement only if a statement of that kind can follow, since it
//! may also be the name of a function or an argument.

use super::ast::{CallLabel, Expr, ExprKind, Literal, PhiEdge, Row, Stmt, Target};
use super::error::{Fault, Parse, SyntaxError};
use super::lex::Tok;
use super::operators::WHOLE;
use super::parse_expr::Parser;
use crate::diag::Span;
use crate::hints::{BranchWeights, Inlining};

/// Reads the current row up to the end of its statement.
pub(super) fn row<'a>(p: &mut Parser<'a>, line: Option<u32>) -> Parse<Row<'a>> {
    let start = p.peek().span.start;
    let mut result = None;
    let first = match p.peek().tok {
        Tok::Ssa(number, 0) => Some(number),
        _ => None,
    };
    if let Some(number) = first
        && p.peek_second().is_op("=")
    {
        result = Some((number, p.advance()?.span));
        p.advance()?;
    }
    let (label, invoke) = call_label(p)?;
    let (stmt, ty) = match invoke {
        Some(dynamic) => invoke_statement(p, dynamic)?,
        None => statement(p)?,
    };
    let inlining = inlining(p)?;
    p.expect_end()?;
    let end = p.last_end();
    Ok(Row { span: Span::new(start, end.max(start)), result, label, stmt, ty, inlining, line })
}

/// `inline` or `noinline` after a statement or a signature.
pub(super) fn inlining(p: &mut Parser<'_>) -> Parse<Option<(Inlining, Span)>> {
    let Tok::Name(word) = p.peek().tok else { return Ok(None) };
    match Inlining::from_word(word) {
        Some(inlining) => Ok(Some((inlining, p.advance()?.span))),
        None => Ok(None),
    }
}

/// The words before a call; for `invoke` and `dynamic invoke` whether it is dynamic.
fn call_label(p: &mut Parser<'_>) -> Parse<(Option<CallLabel>, Option<bool>)> {
    // Infix calls are parenthesised: an operator after the word is a prefix.
    let is_label = |p: &mut Parser<'_>| {
        let next = p.peek_second();
        next.spaced && !next.ends_statement() && !next.is_op("=") && next.tok != Tok::ColonColon
    };
    let Tok::Name(word @ ("intrinsic" | "builtin" | "dynamic" | "unknown" | "invoke")) = p.peek().tok else {
        return Ok((None, None));
    };
    if !is_label(p) {
        return Ok((None, None));
    }
    p.advance()?;
    if word == "dynamic" && is_label(p) {
        if p.eat_name("invoke")? {
            return Ok((None, Some(true)));
        }
        if p.eat_name("builtin")? {
            return Ok((Some(CallLabel::DynamicBuiltin), None));
        }
    }
    Ok(match word {
        "intrinsic" => (Some(CallLabel::Intrinsic), None),
        "builtin" => (Some(CallLabel::Builtin), None),
        "dynamic" => (Some(CallLabel::Dynamic), None),
        "unknown" => (Some(CallLabel::Unknown), None),
        _ => (None, Some(false)),
    })
}

type Typed<'a> = (Stmt<'a>, Option<Expr<'a>>);

fn invoke_statement<'a>(p: &mut Parser<'a>, dynamic: bool) -> Parse<Typed<'a>> {
    let (expr, ty) = typed_expr(p)?;
    match expr.kind {
        ExprKind::Call(callee, args) => Ok((Stmt::Invoke { dynamic, callee: *callee, args }, ty)),
        _ => {
            let found = "another expression".to_owned();
            Err(Fault::new(SyntaxError::Unexpected { found, expected: "a call after `invoke`" }, expr.span))
        }
    }
}

/// An expression and the type after it.
fn typed_expr<'a>(p: &mut Parser<'a>) -> Parse<(Expr<'a>, Option<Expr<'a>>)> {
    let expr = p.expr(WHOLE)?;
    let end = expr.span.end;
    Ok(match expr.kind {
        // `(x::T)` alone keeps its annotation: its own place begins with the parenthesis.
        ExprKind::Annotated(Some(value), ty) if ty.span.end == end => (*value, Some(*ty)),
        kind => (Expr::new(expr.span, kind), None),
    })
}

fn statement<'a>(p: &mut Parser<'a>) -> Parse<Typed<'a>> {
    let next = p.peek_second();
    let opens = next.tok == Tok::Open('(');
    let word = match p.peek().tok {
        Tok::Name(word) => word,
        Tok::Percent(word) => return new_statement(p, word),
        _ => "",
    };
    let stmt = match word {
        "φ" if opens && next.spaced => phi(p)?,
        "φᶜ" if opens && next.spaced => {
            p.advance()?;
            Stmt::PhiC(p.list('(', ')', false)?)
        }
        "ϒ" if opens && next.spaced => {
            p.advance()?;
            let mut values = p.arguments()?;
            match (values.pop(), values.is_empty()) {
                (Some(Expr { kind: ExprKind::Undef, .. }), true) => Stmt::Upsilon(None),
                (Some(value), true) => Stmt::Upsilon(Some(value)),
                (None, _) => Stmt::Upsilon(None),
                (Some(_), false) => return p.unexpected("one value in ϒ"),
            }
        }
        "π" if opens && next.spaced => {
            p.advance()?;
            let at = p.peek().span;
            match <[Expr<'a>; 2]>::try_from(p.arguments()?) {
                Ok([value, ty]) => Stmt::Pi { value, ty },
                Err(_) => {
                    let (found, expected) = ("another list".to_owned(), "`π (value, T)`");
                    return Err(Fault::new(SyntaxError::Unexpected { found, expected }, at));
                }
            }
        }
        "goto" if matches!(next.tok, Tok::BlockRef(_)) => {
            p.advance()?;
            let target = target(p)?;
            if !p.eat_name("if")? {
                return Ok((Stmt::Goto(target), None));
            }
            if !p.eat_name("not")? {
                return p.unexpected("`not`");
            }
            let cond = p.expr(WHOLE)?;
            let otherwise = if p.eat_name("else")? { Some(self::target(p)?) } else { None };
            let weights = if p.eat_name("weights")? { Some(weights(p)?) } else { None };
            return Ok((Stmt::GotoIfNot { cond, target, otherwise, weights }, None));
        }
        "enter" if matches!(next.tok, Tok::BlockRef(_)) || next.is_name("with") => {
            p.advance()?;
            let target = if matches!(p.peek().tok, Tok::BlockRef(_)) { Some(target(p)?) } else { None };
            let mut scope = None;
            if p.eat_name("with")? {
                if !p.eat_name("scope")? {
                    return p.unexpected("`scope`");
                }
                scope = Some(p.expr(WHOLE)?);
            }
            let otherwise = if p.eat_name("else")? { Some(self::target(p)?) } else { None };
            let target = target.filter(|t| t.block != 0);
            return Ok((Stmt::Enter { target, otherwise, scope }, None));
        }
        "return" if next.spaced && !next.ends_statement() && next.tok != Tok::ColonColon => {
            p.advance()?;
            return Ok((Stmt::Return(Some(p.last_operand()?)), None));
        }
        "return" if next.ends_statement() => {
            p.advance()?;
            return Ok((Stmt::Return(None), None));
        }
        "unreachable" if next.ends_statement() => {
            p.advance()?;
            return Ok((Stmt::Unreachable, None));
        }
        _ => {
            let (expr, ty) = typed_expr(p)?;
            return Ok(match expr.kind {
                ExprKind::Head(head, args) if head == "unreachable" && args.is_empty() => {
                    (Stmt::Unreachable, None)
                }
                kind => (Stmt::Expr(Expr::new(expr.span, kind)), ty),
            });
        }
    };
    Ok((stmt, row_type(p)?))
}

/// `%new(T, …)` and `%splatnew(T, tuple)`.
fn new_statement<'a>(p: &mut Parser<'a>, word: &str) -> Parse<Typed<'a>> {
    if !matches!(word, "new" | "splatnew") {
        return p.unexpected("a statement");
    }
    p.advance()?;
    let args = p.arguments()?;
    let stmt = if word == "new" { Stmt::New(args) } else { Stmt::SplatNew(args) };
    Ok((stmt, row_type(p)?))
}

fn phi<'a>(p: &mut Parser<'a>) -> Parse<Stmt<'a>> {
    p.advance()?;
    let at = p.open('(')?;
    let mut edges = Vec::new();
    while p.peek().tok != Tok::Close(')') {
        let Tok::BlockRef(block) = p.peek().tok else { return p.unexpected("an edge `#block => value`") };
        let span = p.advance()?.span;
        if !p.peek().is_op("=>") {
            return p.unexpected("an edge `#block => value`");
        }
        p.advance()?;
        let value = Some(p.last_operand()?).filter(|value| !matches!(value.kind, ExprKind::Undef));
        edges.push(PhiEdge { from: Target { block, span }, value });
        if !p.eat(&Tok::Comma)? {
            break;
        }
    }
    p.close('(', ')', at)?;
    Ok(Stmt::Phi(edges))
}

fn target(p: &mut Parser<'_>) -> Parse<Target> {
    let Tok::BlockRef(block) = p.peek().tok else { return p.unexpected("a block such as `#3`") };
    Ok(Target { block, span: p.advance()?.span })
}

/// The frequencies of a condition being true and false: `1:99`.
fn weights(p: &mut Parser<'_>) -> Parse<BranchWeights> {
    let at = p.peek().span;
    let yes = count(p)?;
    if !p.eat(&Tok::Colon)? {
        return p.unexpected("`:`");
    }
    let no = count(p)?;
    BranchWeights::new(yes, no).ok_or_else(|| {
        let (found, expected) = ("`0:0`".to_owned(), "weights of which one is not zero");
        Fault::new(SyntaxError::Unexpected { found, expected }, at)
    })
}

fn count(p: &mut Parser<'_>) -> Parse<u32> {
    let count = match p.peek().tok {
        Tok::Literal(Literal::Int { negative: false, magnitude }) => u32::try_from(magnitude.get()).ok(),
        _ => None,
    };
    match count {
        Some(count) => p.advance().map(|_| count),
        None => p.unexpected("a number below 2^32"),
    }
}

/// The type after `::`, if there is one.
fn row_type<'a>(p: &mut Parser<'a>) -> Parse<Option<Expr<'a>>> {
    if p.eat(&Tok::ColonColon)? { Ok(Some(p.ty()?)) } else { Ok(None) }
}
