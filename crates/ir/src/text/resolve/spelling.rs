//! Predicates on the spelling of expressions: which are literals, and which rows and blocks are only hints.

use rustc_hash::FxHashSet;

use super::super::ast::{Block, Expr, ExprKind, Function, Literal, Stmt};

/// `2.0im` or `NaN * im`.
pub(super) fn is_imaginary(expr: &Expr<'_>) -> bool {
    match &expr.kind {
        ExprKind::Infix(op, parts) if op == "*" && parts.len() == 2 => {
            matches!(&parts[1].kind, ExprKind::Name(unit) if unit == "im")
        }
        _ => false,
    }
}

/// `0.0 + 1.0im::T`, where the type applies to the whole, as `(0.0 + 1.0im)::T`.
pub(super) fn regrouped<'a>(expr: &Expr<'a>) -> Option<Expr<'a>> {
    let ExprKind::Infix(op, args) = &expr.kind else { return None };
    let [first, Expr { kind: ExprKind::Annotated(Some(last), ty), .. }] = &args[..] else { return None };
    let parts = vec![first.clone(), (**last).clone()];
    if !is_infix_literal(op, &parts) {
        return None;
    }
    let number = Expr::new(expr.span, ExprKind::Infix(op.clone(), parts));
    Some(Expr::new(expr.span, ExprKind::Annotated(Some(Box::new(number)), ty.clone())))
}

/// Whether an infix expression spells a number, a range or a pair: `1//2`, `1.0 + 2.0im`, `1:3`, `:a => 1`.
pub(super) fn is_infix_literal(op: &str, args: &[Expr<'_>]) -> bool {
    let literal = |expr: &Expr<'_>| match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Prefix(op, inner) => {
            op == "-" && matches!(inner.kind, ExprKind::Literal(_) | ExprKind::Name(_))
        }
        ExprKind::Name(name) => is_literal_name(name),
        ExprKind::Infix(op, inner) => {
            op == ":" && inner.iter().all(|e| matches!(e.kind, ExprKind::Literal(_)))
        }
        _ => false,
    };
    match (op, args) {
        (":" | "//", [x, y]) => literal(x) && literal(y),
        ("=>", parts) => parts.iter().all(|part| literal(part) || matches!(part.kind, ExprKind::Symbol(_))),
        ("+" | "-", [re, im]) => literal(re) && is_imaginary(im),
        ("∘", parts) => parts.iter().all(is_function_literal),
        ("*", [x, unit]) => literal(x) && matches!(&unit.kind, ExprKind::Name(unit) if unit == "im"),
        _ => false,
    }
}

/// Whether a quote holds a piece of Julia syntax, which is one of Julia's syntax objects (`Expr`,
/// `LineNumberNode`): `:(a + b)`, `$(QuoteNode(:(f(x))))`, `$(QuoteNode(quote … end))`.
pub(super) fn is_syntax(expr: &Expr<'_>) -> bool {
    let quoted = match &expr.kind {
        ExprKind::QuoteNode(inner) => match &inner.kind {
            ExprKind::Quote(quoted) => {
                return !matches!(
                    quoted.kind,
                    ExprKind::Symbol(_) | ExprKind::Name(_) | ExprKind::Literal(_)
                );
            }
            _ => inner,
        },
        ExprKind::Quote(inner) => inner,
        _ => return false,
    };
    match &quoted.kind {
        ExprKind::Opaque => true,
        ExprKind::Infix(op, args) => !is_infix_literal(op, args),
        _ => false,
    }
}

/// The operands of an operator. Julia prints a call of `:` with three arguments as `a:b:c`.
pub(super) fn flattened<'e, 'a>(op: &str, args: &'e [Expr<'a>]) -> Vec<&'e Expr<'a>> {
    match args {
        [Expr { kind: ExprKind::Infix(inner, first), .. }, last] if op == ":" && inner == ":" => {
            first.iter().chain([last]).collect()
        }
        _ => args.iter().collect(),
    }
}

/// Whether an expression is `show`'s form of a function: its name, `!f`, `f ∘ g`.
fn is_function_literal(expr: &Expr<'_>) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => !is_literal_name(name),
        ExprKind::Path(_) | ExprKind::BlockRef(_) => true,
        ExprKind::Call(callee, args) => args.is_empty() && is_function_literal(callee),
        ExprKind::Prefix(op, inner) => op == "!" && is_function_literal(inner),
        ExprKind::Infix(op, parts) => op == "∘" && parts.iter().all(is_function_literal),
        _ => false,
    }
}

/// A tuple that contains decimal numbers, whose text does not show their types.
pub(super) fn has_plain_parts(expr: &Expr<'_>) -> bool {
    match &unquote(expr).kind {
        ExprKind::Tuple(items) => items.iter().any(|item| is_plain(item) || has_plain_parts(item)),
        ExprKind::NamedTuple(items) => items.iter().any(|(_, item)| is_plain(item) || has_plain_parts(item)),
        _ => false,
    }
}

pub(super) fn is_literal_name(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "true", "false", "nothing", "missing", "Inf", "Inf64", "Inf32", "Inf16", "NaN", "NaN64", "NaN32",
        "NaN16", "C_NULL", "Main", "Base", "Core", "im",
    ];
    NAMES.contains(&name)
}

/// A decimal number, whose text does not show its type: integers, and floats that may have 16 bits.
pub(super) fn is_plain(expr: &Expr<'_>) -> bool {
    matches!(unquoted(expr).kind, ExprKind::Literal(Literal::Int { .. } | Literal::Float64(_)))
}

/// The expression inside a quote.
pub(super) fn unquoted<'e, 'a>(expr: &'e Expr<'a>) -> &'e Expr<'a> {
    match &expr.kind {
        ExprKind::Quote(inner) => inner,
        _ => expr,
    }
}

/// The number of blocks of a function without the block of `meta` rows that Julia puts after the last
/// `return`.
pub(super) fn blocks_that_run(function: &Function<'_>) -> usize {
    match function.blocks.split_last() {
        Some((last, before))
            if !before.is_empty() && last.rows.iter().all(|row| meta(&row.stmt).is_some()) =>
        {
            before.len()
        }
        _ => function.blocks.len(),
    }
}

/// The parts of `$(Expr(:meta, …))`.
pub(super) fn meta<'e, 'a>(stmt: &'e Stmt<'a>) -> Option<impl Iterator<Item = &'e Expr<'a>>> {
    match stmt {
        Stmt::Expr(Expr { kind: ExprKind::Head(head, items), .. }) if head == "meta" => {
            Some(items.iter().map(unquoted))
        }
        _ => None,
    }
}

/// The rows that are read by statements other than splatting calls, `Core._apply_iterate(…)`.
pub(super) fn read_whole(blocks: &[Block<'_>]) -> FxHashSet<u32> {
    fn note(expr: &Expr<'_>, found: &mut FxHashSet<u32>) {
        match &expr.kind {
            ExprKind::Ssa(row, _) => {
                found.insert(*row);
            }
            ExprKind::Call(callee, args) if matches!(&callee.kind, ExprKind::Path(p) if p.last().is_some_and(|name| name == "_apply_iterate")) =>
            {
                let is_row = |arg: &&Expr<'_>| matches!(arg.kind, ExprKind::Ssa(..));
                args.iter().filter(|arg| !is_row(arg)).for_each(|arg| note(arg, found));
            }
            kind => kind.each_child(&mut |child| note(child, found)),
        }
    }
    let mut found = FxHashSet::default();
    let rows = blocks.iter().flat_map(|block| &block.rows);
    rows.for_each(|row| row.stmt.each_expr(&mut |expr| note(expr, &mut found)));
    found
}

/// The number in `Expr(:static_parameter, n)`.
pub(super) fn static_parameter(expr: &Expr<'_>) -> Option<u32> {
    match &unquote(expr).kind {
        ExprKind::Head(head, args) if head == "static_parameter" => match args.as_slice() {
            [Expr { kind: ExprKind::Literal(Literal::Int { negative: false, magnitude }), .. }] => {
                u32::try_from(magnitude.get()).ok()
            }
            _ => None,
        },
        _ => None,
    }
}

/// The expression inside `:( … )` and `$(QuoteNode( … ))`.
pub(super) fn unquote<'e, 'a>(expr: &'e Expr<'a>) -> &'e Expr<'a> {
    let mut expr = expr;
    while let ExprKind::Quote(inner) | ExprKind::QuoteNode(inner) | ExprKind::Interpolation(inner) =
        &expr.kind
    {
        expr = inner;
    }
    expr
}
