//! Constants of the library's number types and ranges, as Julia prints them.
//!
//! | text | object |
//! |---|---|
//! | `im`, `1.0 - 2.0im`, `NaN + Inf*im` | `Complex` |
//! | `1//2` | `Rational` |
//! | `1:3` | `UnitRange` |
//! | `1:2:6`, `'a':'c'` | `StepRange`, whose end is its last element: `1:2:5` |
//! | `CartesianIndex(1, 2)` | an object with the tuple of the numbers |

use super::super::ast::{Expr, ExprKind, Literal};
use super::Resolver;
use super::error::ResolveError;
use super::term::Term;
use crate::constant::Const;
use crate::diag::Span;
use crate::types::{Decl, PrimitiveRepr, Type};

impl<'a> Resolver<'a> {
    /// `im`, which is `Complex(false, true)`.
    pub(super) fn imaginary_unit(&mut self, at: Span) -> Option<Term> {
        let decl = self.library_decl("Complex")?;
        let ty = self.cx.types.nominal(decl, &[Type::BOOL]);
        let part = |bits| Term::Const(Const::Bits { ty: Type::BOOL, bits });
        self.aggregate(ty, vec![part(0), part(1)], at)
    }

    /// `CartesianIndex(1, 2)`, which has one field: the tuple of the numbers.
    pub(super) fn cartesian_index(&mut self, decl: Decl, args: &[Expr<'a>], at: Span) -> Option<Term> {
        let numbers: Option<Vec<Term>> = args.iter().map(|arg| self.converted(arg, Type::INT64)).collect();
        let numbers = numbers?;
        let tuple = self.cx.types.tuple(&vec![Type::INT64; numbers.len()]);
        let tuple = self.aggregate(tuple, numbers, at)?;
        let count = self.cx.types.int(args.len() as i64);
        let ty = self.cx.types.nominal(decl, &[count]);
        self.aggregate(ty, vec![tuple], at)
    }

    /// `n//d`: a struct of two numbers of one type.
    pub(super) fn number_of_two(&mut self, name: &str, parts: &[Expr<'a>], at: Span) -> Option<Term> {
        let fields = self.terms(parts)?;
        let elem = fields[0].ty();
        let Some(decl) = self.library_decl(name).filter(|_| fields.iter().all(|part| part.ty() == elem))
        else {
            return self.fail(ResolveError::NotAConstant, at);
        };
        let ty = self.cx.types.nominal(decl, &[elem]);
        self.aggregate(ty, fields, at)
    }

    /// `re + im`, where `im` is a product with the imaginary unit; `re - im` has the other sign.
    pub(super) fn complex(&mut self, re: &Expr<'a>, im: &Expr<'a>, minus: bool, at: Span) -> Option<Term> {
        let ExprKind::Infix(_, product) = &im.kind else { return self.fail(ResolveError::NotAConstant, at) };
        let mut part = product[0].clone();
        if minus {
            part = match part.kind {
                ExprKind::Literal(Literal::Int { negative: false, magnitude }) => {
                    Expr::new(part.span, ExprKind::Literal(Literal::Int { negative: true, magnitude }))
                }
                kind => {
                    let inner = Expr::new(part.span, kind);
                    Expr::new(inner.span, ExprKind::Prefix("-".into(), Box::new(inner)))
                }
            };
        }
        let im = self.term(&part, None)?;
        let re = self.converted(re, im.ty())?;
        let Some(decl) = self.library_decl("Complex").filter(|_| re.ty() == im.ty()) else {
            return self.fail(ResolveError::NotAConstant, at);
        };
        let ty = self.cx.types.nominal(decl, &[im.ty()]);
        self.aggregate(ty, vec![re, im], at)
    }

    pub(super) fn range(&mut self, start: &Expr<'a>, stop: &Expr<'a>, at: Span) -> Option<Term> {
        // `a:b:c` is read as `(a:b):c`.
        if let ExprKind::Infix(op, inner) = &start.kind
            && let (":", [first, step]) = (&**op, &inner[..])
        {
            let fields = [self.term(first, None)?, self.term(step, None)?, self.term(stop, None)?];
            return self.step_range(fields, at);
        }
        let fields = vec![self.term(start, None)?, self.term(stop, None)?];
        let elem = fields[0].ty();
        if elem == Type::CHAR {
            let one = Term::Const(Const::Bits { ty: Type::INT64, bits: 1 });
            let [start, stop]: [Term; 2] = fields.try_into().ok()?;
            return self.step_range([start, one, stop], at);
        }
        let Some(decl) = self.library_decl("UnitRange").filter(|_| fields[1].ty() == elem) else {
            return self.fail(ResolveError::NotAConstant, at);
        };
        let ty = self.cx.types.nominal(decl, &[elem]);
        self.aggregate(ty, fields, at)
    }

    /// `start:step:stop`, whose end is the last element, as Julia's constructor makes it; of an empty range what lies one before its start.
    fn step_range(&mut self, fields: [Term; 3], at: Span) -> Option<Term> {
        let [start, step, mut stop] = fields;
        let (elem, by) = (start.ty(), step.ty());
        let Some(decl) = self.library_decl("StepRange").filter(|_| stop.ty() == elem) else {
            return self.fail(ResolveError::NotAConstant, at);
        };
        let number = |term: &Term| match *term {
            Term::Const(Const::Bits { ty: Type::CHAR, bits }) => {
                crate::show::bits_to_char(bits as u32).map(|c| i128::from(u32::from(c)))
            }
            Term::Const(Const::Bits { ty, bits }) => match self.cx.types.primitive(ty) {
                Some((width @ 1..=64, PrimitiveRepr::Signed)) => {
                    Some((bits << (128 - width)).cast_signed() >> (128 - width))
                }
                Some((1..=64, PrimitiveRepr::Unsigned)) => Some(bits.cast_signed()),
                _ => None,
            },
            _ => None,
        };
        if let (Some(from), Some(by), Some(to)) = (number(&start), number(&step), number(&stop)) {
            if by == 0 {
                return self.fail(ResolveError::NotAConstant, at);
            }
            let is_empty = from != to && (by > 0) != (to > from);
            let last = if is_empty { from - by.signum() } else { to - (to - from) % by };
            if let Term::Const(Const::Bits { ty, bits }) = &mut stop {
                let width = self.cx.types.primitive(*ty).map_or(64, |(width, _)| u32::from(width));
                *bits = match *ty {
                    Type::CHAR => {
                        let last = u32::try_from(last).ok().and_then(char::from_u32);
                        last.map_or(*bits, |last| u128::from(crate::show::char_to_bits(last)))
                    }
                    _ => last.cast_unsigned() & (u128::MAX >> (128 - width)),
                };
            }
        }
        let ty = self.cx.types.nominal(decl, &[elem, by]);
        self.aggregate(ty, vec![start, step, stop], at)
    }
}
