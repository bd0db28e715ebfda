//! Constants of the library's number types and ranges, as Julia prints them.
//!
//! | text | object |
//! |---|---|
//! | `im`, `1.0 - 2.0im`, `NaN + Inf*im` | `Complex` |
//! | `1//2` | `Rational` |
//! | `1:3` | `UnitRange` |
//! | `1:2:6`, `'a':'c'` | `StepRange`, whose end is its last element: `1:2:5` |
//! | `CartesianIndex(1, 2)` | an object with the tuple of the numbers |
//! | `CartesianIndices((2, 0:3))` | an object with the tuple of the axes, `2` being `Base.OneTo(2)` |
//! | `!f`, `f ∘ g` | `ComposedFunction` |
//! | `Pairs{…}(:a => 1)` | an object with the values as a named tuple and the tuple of their names |
//! | `r"…"i`, `s"…"`, `b"…"` | `Regex`, `SubstitutionString`, `CodeUnits` |

use super::super::ast::{Expr, ExprKind, Literal};
use super::Resolver;
use super::error::ResolveError;
use super::term::Term;
use crate::constant::Const;
use crate::diag::Span;
use crate::names::Name;
use crate::types::{Decl, PrimitiveRepr, Type, TypeKind};

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
        // `a:b:c` parses as `(a:b):c`.
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

    /// `start:step:stop`, whose end is adjusted to the last element, as Julia's constructor does; for an
    /// empty range, to the value before its start.
    fn step_range(&mut self, fields: [Term; 3], at: Span) -> Option<Term> {
        let [start, step, mut stop] = fields;
        let (elem, by) = (start.ty(), step.ty());
        // A range of floats keeps its ends in more bits than are printed.
        let is_float = |ty| matches!(self.cx.types.primitive(ty), Some((_, PrimitiveRepr::Float)));
        if is_float(elem) || is_float(by) {
            return self.fail_unread(ResolveError::NotAConstant, at);
        }
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

    /// `outer ∘ inner`, and `!inner`.
    pub(super) fn composed(&mut self, outer: &Expr<'a>, inner: &Expr<'a>, at: Span) -> Option<Term> {
        let decl = self.library_decl("ComposedFunction")?;
        let mut fields = Vec::with_capacity(2);
        let mut params = Vec::with_capacity(2);
        for part in [outer, inner] {
            let function = self.function_in_constant(part);
            let term = function.or_else(|| self.term(part, None))?;
            params.push(match &term {
                Term::Const(Const::Type { of, .. }) => self.cx.types.type_of(*of).ok()?,
                term => term.ty(),
            });
            fields.push(term);
        }
        let ty = self.cx.types.nominal(decl, &params);
        self.aggregate(ty, fields, at)
    }

    /// `CartesianIndices((axes…,))` and `LinearIndices`.
    pub(super) fn indices(&mut self, decl: Decl, axes: &[Expr<'a>], at: Span) -> Option<Term> {
        let one_to = self.library_decl("OneTo")?;
        let mut fields = Vec::with_capacity(axes.len());
        for axis in axes {
            let axis = self.term(axis, None)?;
            fields.push(match axis.ty() {
                Type::INT64 => {
                    let ty = self.cx.types.nominal(one_to, &[Type::INT64]);
                    self.aggregate(ty, vec![axis], at)?
                }
                _ => axis,
            });
        }
        let types: Vec<Type> = fields.iter().map(Term::ty).collect();
        let tuple = self.cx.types.tuple(&types);
        let tuple = self.aggregate(tuple, fields, at)?;
        let count = self.cx.types.int(axes.len() as i64);
        let ty = self.cx.types.nominal(decl, &[count, tuple.ty()]);
        self.aggregate(ty, vec![tuple], at)
    }

    /// `Pairs{Symbol, V, Tuple{…}, @NamedTuple{…}}(:a => 1, …)`: keyword arguments. `None` for any other
    /// type.
    pub(super) fn pairs(&mut self, ty: Type, args: &[Expr<'a>], at: Span) -> Option<Option<Term>> {
        let cx = self.cx.clone();
        let (decl, &[_, _, _, values]) = cx.types.nominal_parts(ty)? else { return None };
        let is_pair = |arg: &Expr<'_>| matches!(&arg.kind, ExprKind::Infix(op, parts) if op == "=>" && parts.len() == 2);
        if self.library_decl("Pairs") != Some(decl) || args.is_empty() || !args.iter().all(is_pair) {
            return None;
        }
        let TypeKind::NamedTuple { names, .. } = cx.types.kind(values) else { return None };
        Some(self.pairs_of(ty, values, &names.clone(), args, at))
    }

    fn pairs_of(
        &mut self,
        ty: Type,
        values: Type,
        names: &[Name],
        args: &[Expr<'a>],
        at: Span,
    ) -> Option<Term> {
        if names.len() != args.len() {
            return self.fail(ResolveError::NotAConstant, at);
        }
        let mut keys = Vec::with_capacity(args.len());
        let mut fields = Vec::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            let ExprKind::Infix(_, parts) = &arg.kind else { continue };
            keys.push(Term::Const(Const::Symbol(names[index])));
            let wanted = self.cx.types.field_type(values, index)?;
            fields.push(self.converted(&parts[1], wanted)?);
        }
        let data = self.aggregate(Ok(values), fields, at)?;
        let itr = self.cx.types.tuple(&vec![Type::SYMBOL; keys.len()]);
        let itr = self.aggregate(itr, keys, at)?;
        self.aggregate(Ok(ty), vec![data, itr], at)
    }

    /// Library constructors that compute their fields from a string: `Regex("…", "i")`,
    /// `SubstitutionString("…")`, `CodeUnits("…")`.
    pub(super) fn library_constructor(
        &mut self,
        name: &str,
        args: &[Expr<'a>],
        at: Span,
    ) -> Option<Option<Term>> {
        let [Expr { kind: ExprKind::Literal(Literal::String(_)), .. }, flags @ ..] = args else {
            return None;
        };
        let decl = matches!(name, "Regex" | "SubstitutionString" | "CodeUnits")
            .then(|| self.library_decl(name))??;
        let string = self.term(&args[0], None)?;
        Some(match (name, flags) {
            ("Regex", []) => self.regex(decl, string, &[], at),
            ("Regex", [Expr { kind: ExprKind::Literal(Literal::String(flags)), .. }]) => {
                self.regex(decl, string, flags, at)
            }
            ("SubstitutionString", []) => {
                let ty = self.cx.types.nominal(decl, &[Type::STRING]);
                self.aggregate(ty, vec![string], at)
            }
            ("CodeUnits", []) => {
                let ty = self.cx.types.nominal(decl, &[Type::UINT8, Type::STRING]);
                self.aggregate(ty, vec![string], at)
            }
            _ => return None,
        })
    }

    /// An uncompiled regular expression with the options that Julia's macro sets.
    fn regex(&mut self, decl: Decl, pattern: Term, flags: &[u8], at: Span) -> Option<Term> {
        // UTF, MATCH_INVALID_UTF, ALT_BSUX and UCP of PCRE2.
        let mut compile = 0x040a_0002u128;
        for flag in flags {
            match flag {
                b'i' => compile |= 0x8,
                b'm' => compile |= 0x400,
                b's' => compile |= 0x20,
                b'x' => compile |= 0x80,
                b'a' => compile &= !0x2_0000,
                _ => return self.fail(ResolveError::NotAConstant, at),
            }
        }
        let ty = self.cx.types.nominal(decl, &[]).ok()?;
        let bits = |ty, bits| Term::Const(Const::Bits { ty, bits });
        let pointer = self.cx.types.field_type(ty, 3)?;
        // NO_UTF_CHECK, because Julia's strings are not validated.
        let fields =
            vec![pattern, bits(Type::UINT32, compile), bits(Type::UINT32, 0x4000_0000), bits(pointer, 0)];
        self.aggregate(Ok(ty), fields, at)
    }
}
