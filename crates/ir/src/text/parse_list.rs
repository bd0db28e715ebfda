//! Lists in parentheses and brackets: tuples, named tuples, array literals.
//!
//! In an array a blank also separates: `[1 -2]` has two elements, `[1 - 2]` and `[1-2]` have one. Rows are
//! separated by semicolons and have equal lengths; a single column is a vector.

use super::ast::{ArrayItems, Expr, ExprKind};
use super::error::{Fault, Parse, SyntaxError};
use super::lex::Tok;
use super::operators::WHOLE;
use super::parse_expr::Parser;
use crate::diag::Span;

impl<'a> Parser<'a> {
    /// `(a)`, tuples and named tuples.
    pub(super) fn parenthesised(&mut self) -> Parse<Expr<'a>> {
        let outer = std::mem::replace(&mut self.in_variable, false);
        let inner = self.in_parentheses();
        self.in_variable = outer;
        inner
    }

    fn in_parentheses(&mut self) -> Parse<Expr<'a>> {
        let start = self.peek().span.start;
        let at = self.open('(')?;
        let named = self.eat(&Tok::Semicolon)?;
        let mut items = Vec::new();
        let mut commas = 0;
        while self.peek().tok != Tok::Close(')') {
            if self.peek().ends_statement() {
                return Err(Fault::new(SyntaxError::Unclosed { open: '(' }, at));
            }
            let item = self.expr(WHOLE)?;
            items.push(self.method_or(item)?);
            if self.peek().tok != Tok::Comma {
                break;
            }
            self.advance()?;
            commas += 1;
        }
        self.close('(', ')', at)?;
        let span = self.span_from(start);
        if commas == 0 && !named && items.len() == 1 {
            // The place of a parenthesised expression includes its parentheses.
            let inner = items.remove(0);
            return Ok(Expr::new(span, inner.kind));
        }
        let all_named = items.iter().all(
            |e| matches!(&e.kind, ExprKind::Infix(op, args) if op == "=" && matches!(args[0].kind, ExprKind::Name(_))),
        );
        if !named && (items.is_empty() || !all_named) {
            return self.make(span, ExprKind::Tuple(items));
        }
        let mut fields = Vec::with_capacity(items.len());
        for item in items {
            let place = item.span;
            match item.kind {
                ExprKind::Infix(op, mut args) if op == "=" && args.len() == 2 => {
                    let (Some(value), Some(Expr { kind: ExprKind::Name(name), .. })) =
                        (args.pop(), args.pop())
                    else {
                        return Err(named_field_fault(place));
                    };
                    fields.push((name, value));
                }
                _ => return Err(named_field_fault(place)),
            }
        }
        self.make(span, ExprKind::NamedTuple(fields))
    }

    /// `[a, b]`, `[a b; c d]`, `[a; b;;]` and `[]`.
    pub(super) fn array(&mut self) -> Parse<ArrayItems<'a>> {
        let at = self.open('[')?;
        let mut items = Vec::new();
        let mut rows = Vec::new();
        let mut row = 0;
        let (mut commas, mut separated, mut one_column) = (false, true, false);
        while self.peek().tok != Tok::Close(']') {
            match self.peek().tok {
                _ if self.peek().ends_statement() => {
                    return Err(Fault::new(SyntaxError::Unclosed { open: '[' }, at));
                }
                Tok::Comma if row > 0 && !separated && rows.is_empty() => {
                    (commas, separated) = (true, true);
                    self.advance()?;
                }
                Tok::Semicolon if row > 0 && !commas => {
                    rows.push(row);
                    (row, separated) = (0, true);
                    self.advance()?;
                }
                // A matrix of one column: `;;` before the end.
                Tok::Semicolon if row == 0 && !rows.is_empty() && rows.iter().all(|&length| length == 1) => {
                    self.advance()?;
                    if self.peek().tok != Tok::Close(']') {
                        return self.unexpected("`]`");
                    }
                    one_column = true;
                }
                _ if separated || self.peek().spaced && !commas => {
                    let item = self.element()?;
                    items.push(self.method_or(item)?);
                    (row, separated) = (row + 1, false);
                }
                _ => return self.unexpected("`,`, `;` or `]`"),
            }
        }
        if row > 0 {
            rows.push(row);
        }
        let columns = rows.first().copied().filter(|&length| (length > 1 || one_column) && !commas);
        if !commas && rows.iter().any(|&length| length != rows[0]) {
            return Err(Fault::new(SyntaxError::RaggedArray, self.span_from(at.start)));
        }
        self.close('[', ']', at)?;
        Ok(ArrayItems { items, columns })
    }

    /// An element of an array: `1 -2` is two elements, `1 - 2` and `1-2` are one.
    fn element(&mut self) -> Parse<Expr<'a>> {
        self.nested(|p| {
            let mut left = p.operand()?;
            while let Some((op, own)) = p.infix() {
                if p.peek().spaced && !p.peek_second().spaced {
                    break;
                }
                left = p.infix_after(left, op, own)?;
            }
            Ok(left)
        })
    }
}

fn named_field_fault(at: Span) -> Fault {
    let (found, expected) = ("another element".to_owned(), "`name = value`");
    Fault::new(SyntaxError::Unexpected { found, expected }, at)
}
