//! `$(Expr(:head, …))` to operations.
//!
//! Inside an `Expr` operands are quoted: `:(%5)`, `:(s)`, and symbols twice: `:(:name)`.
//!
//! A C function may be named with its library, `(:sin, "libm")`. The library is ignored with a warning: C
//! names are looked up in the process.

use super::super::ast::{Expr, ExprKind, Literal, Target};
use super::body::Body;
use super::error::ResolveError;
use super::handlers::At;
use super::spelling::{static_parameter, unquote};
use super::{Resolver, Term, last_name};
use crate::constant::Const;
use crate::diag::{Diagnostic, Span};
use crate::entity::{Block, Inst, Value};
use crate::func::{CalleeData, ForeignData, MetaData, MetaItem};
use crate::intrinsic::{Arity, Intrinsic};
use crate::names::Name;
use crate::op::{Level, Op};
use crate::types::Type;

/// `Expr` heads that Julia prints and that have no operation here.
const REFUSED: [(&str, &str); 9] = [
    ("new_opaque_closure", "opaque closures hold code that is not in the text"),
    ("copyast", "there is no syntax tree at run time"),
    ("splatnew", "it is written `%splatnew(T, tuple)`"),
    ("isdefined", "variables are resolved when the text is read"),
    ("method", "methods are defined by `function`"),
    ("thunk", "top-level code is not compiled"),
    ("global", "globals are declared by `global`"),
    ("globaldecl", "globals are declared by `global`"),
    ("latestworld", "top-level code is not compiled"),
];

impl<'a> Body<'_, 'a> {
    /// Sets the operation of a row's instruction from its `Expr`.
    pub(super) fn head(
        &mut self,
        inst: Inst,
        head: &str,
        args: &[Expr<'a>],
        results: &[Type],
        at: Span,
        row: At,
        next: Option<Block>,
    ) -> Option<()> {
        let bad = |body: &mut Self, needs: &'static str| {
            body.r.fail(ResolveError::HeadArguments { head: head.to_owned(), needs }, at)
        };
        let exprs: Vec<&Expr<'a>> = args.iter().collect();
        match (head, args) {
            ("boundscheck", []) => {
                self.func.set_op(inst, Op::BoundsCheck(true), &[]);
                Some(())
            }
            ("boundscheck", [Expr { kind: ExprKind::Name(on), .. }]) if matches!(&**on, "true" | "false") => {
                self.func.set_op(inst, Op::BoundsCheck(on == "true"), &[]);
                Some(())
            }
            ("boundscheck", _) => bad(self, "`true` or `false`"),
            ("enter", [Expr { kind: ExprKind::BlockRef(block), span, .. }]) => {
                let catch = self.block(Target { block: *block, span: *span })?;
                let normal = self.next_block(next, at)?;
                self.jump(inst, Op::Enter, &[], &[normal, catch])
            }
            ("enter", _) => bad(self, "a catch block such as `#3`"),
            ("leave", [Expr { kind: ExprKind::Literal(_), .. }]) => {
                let enters = self.old_leaves.get(&row).cloned().unwrap_or_default();
                if enters.is_empty() {
                    self.func.remove_inst(inst);
                    return Some(());
                }
                let tokens: Vec<Value> = enters
                    .into_iter()
                    .filter_map(|enter| self.inst_at(enter).and_then(|inst| self.func.result(inst)))
                    .collect();
                self.func.set_op(inst, Op::Leave, &tokens);
                Some(())
            }
            ("leave", _) => {
                // `nothing` replaces an `enter` that the optimiser removed.
                let is_nothing = |e: &Expr<'_>| matches!(&e.kind, ExprKind::Name(name) if name == "nothing");
                let tokens: Vec<&Expr<'a>> = exprs.into_iter().filter(|e| !is_nothing(e)).collect();
                if tokens.is_empty() {
                    self.func.remove_inst(inst);
                    return Some(());
                }
                self.set(inst, Op::Leave, results, &tokens)?;
                // Julia lists handlers from the outermost; inner ones are entered by later rows.
                if self.r.functions.has_dumps() {
                    self.func.args_mut(inst).sort_unstable_by_key(|&token| std::cmp::Reverse(token));
                }
                Some(())
            }
            ("the_exception", []) => self.set(inst, Op::TheException, results, &[]),
            ("pop_exception", [_]) => self.set(inst, Op::PopException, results, &exprs),
            ("pop_exception", _) => bad(self, "the token of its `enter`"),
            ("throw_undef_if_not", [name, cond]) => {
                let Term::Const(Const::Symbol(name)) = self.r.term(unquote(name), None)? else {
                    return bad(self, "the name of a variable and a condition");
                };
                self.set(inst, Op::ThrowUndefIfNot(name), results, &[cond])
            }
            ("throw_undef_if_not", _) => bad(self, "the name of a variable and a condition"),
            ("gc_preserve_begin", _) => self.set(inst, Op::GcPreserveBegin, results, &exprs),
            ("gc_preserve_end", [_]) => self.set(inst, Op::GcPreserveEnd, results, &exprs),
            ("gc_preserve_end", _) => bad(self, "the token of its `gc_preserve_begin`"),
            ("code_coverage_effect", _) => self.set(inst, Op::CodeCoverage, results, &[]),
            (
                "spend",
                [Expr { kind: ExprKind::Literal(Literal::Int { magnitude, negative: false, .. }), .. }],
            ) => match u32::try_from(magnitude.get()) {
                Ok(units) => self.set(inst, Op::Spend(units), results, &[]),
                Err(_) => bad(self, "a number of units in 32 bits"),
            },
            ("spend", _) => bad(self, "a number of units"),
            ("loopinfo", _) => {
                let items: Option<Vec<MetaItem>> = args.iter().map(|arg| self.meta_item(arg)).collect();
                let meta = self.func.add_meta(MetaData { items: items? });
                if self.func.level == Level::Low {
                    // Low IR has no operation for it, but a note on the loop with this head.
                    let head = self.func.inst_block(inst)?;
                    self.func.remove_inst(inst);
                    self.func.set_loop_note(head, Some(meta));
                    return Some(());
                }
                self.func.set_op(inst, Op::LoopInfo(meta), &[]);
                Some(())
            }
            ("static_parameter", [Expr { kind: ExprKind::Literal(Literal::Int { magnitude, .. }), .. }]) => {
                match u32::try_from(magnitude.get()) {
                    Ok(number) => {
                        let ty = results.first().copied().unwrap_or(Type::ANY);
                        match self.unbound_static(number, ty) {
                            None => self.func.set_op(inst, Op::StaticParameter(number), &[]),
                            Some(of) => {
                                let value = match of {
                                    Some(of) => self.func.constant(self.r.cx.types.type_constant(of)),
                                    None => self.undefined(inst, number, ty),
                                };
                                self.func.set_op(inst, Op::Copy, &[value]);
                            }
                        }
                        Some(())
                    }
                    Err(_) => bad(self, "the number of a parameter"),
                }
            }
            ("static_parameter", _) => bad(self, "the number of a parameter"),
            ("isdefined", [of]) if static_parameter(of).is_some() => {
                let number = static_parameter(of).unwrap_or(0);
                self.func.set_op(inst, Op::StaticDefined(number), &[]);
                Some(())
            }
            // The statically known method, then the call.
            ("invoke_modify", [_, callee, rest @ ..]) => {
                let rest: Vec<&Expr<'a>> = rest.iter().collect();
                self.call(inst, None, unquote(callee), &rest, results, at)
            }
            ("foreigncall", _) => self.foreign_call(inst, args, results, at),
            ("cglobal", _) => self.c_global(inst, &exprs, results, at),
            ("cfunction", [ty, target, result, params, convention]) => {
                self.c_function(inst, [ty, target, result, params, convention], results)
            }
            ("cfunction", _) => {
                bad(self, "its type, a function, a result type, `svec` of argument types and a convention")
            }
            _ => {
                let why = REFUSED.iter().find(|(name, _)| *name == head).map(|(_, why)| *why);
                let why = why.unwrap_or("no such statement exists here");
                self.refuse_late(inst, format!("`Expr(:{head})`"), why, at)
            }
        }
    }

    fn meta_item(&mut self, expr: &Expr<'a>) -> Option<MetaItem> {
        match &expr.kind {
            ExprKind::Tuple(items) => match &items[..] {
                [only] => self.meta_item(only),
                [name, count] => match (self.meta_item(name)?, self.meta_item(count)?) {
                    (MetaItem::Name(name), MetaItem::Int(count)) => Some(MetaItem::Pair(name, count)),
                    // Julia's spelling of a mark without a value: `(Symbol("julia.simdloop"), nothing)`.
                    (MetaItem::Name(name), MetaItem::Nothing) => Some(MetaItem::Name(name)),
                    _ => self.r.fail(ResolveError::NotAConstant, expr.span),
                },
                _ => self.r.fail(ResolveError::NotAConstant, expr.span),
            },
            ExprKind::Quote(inner) | ExprKind::QuoteNode(inner) | ExprKind::Interpolation(inner) => {
                self.meta_item(inner)
            }
            _ => match self.r.term(expr, None)? {
                Term::Const(Const::Symbol(name)) => Some(MetaItem::Name(name)),
                Term::Const(Const::Singleton(Type::NOTHING)) => Some(MetaItem::Nothing),
                Term::Const(Const::Bits { ty: Type::INT64 | Type::I64 | Type::BOOL, bits }) => {
                    Some(MetaItem::Int(bits as i64))
                }
                _ => self.r.fail(ResolveError::NotAConstant, expr.span),
            },
        }
    }

    /// `type, function, result, svec(argument types), convention`. In low IR the function is a symbol, as a string.
    fn c_function(&mut self, inst: Inst, parts: [&Expr<'a>; 5], results: &[Type]) -> Option<()> {
        let [ty, target, result, params, convention] = parts;
        self.r.c_convention(convention)?;
        if matches!(&ty.kind, ExprKind::Path(parts) if last_name(parts) == "CFunction") {
            let what = "a `CFunction`".to_owned();
            let why = "a closure as a function of C needs code that is made at run time";
            return self.refuse_late(inst, what, why, ty.span);
        }
        let (own, result) = (self.r.ty(ty)?, self.r.ty(result)?);
        if results.first().is_some_and(|&claimed| claimed != own) {
            return self.r.fail(ResolveError::NotAType, ty.span);
        }
        let ExprKind::Call(_, params) = &unquote(params).kind else {
            let needs = "its argument types as `svec(…)`";
            return self
                .r
                .fail(ResolveError::HeadArguments { head: "cfunction".to_owned(), needs }, params.span);
        };
        let args: Option<Box<[Type]>> = params.iter().map(|ty| self.r.ty(ty)).collect();
        let args = args?;
        let inner = unquote(target);
        if self.r.level == Level::Low {
            let ExprKind::Literal(Literal::String(symbol)) = &inner.kind else {
                return self.r.fail(ResolveError::NotAConstant, inner.span);
            };
            let Ok(symbol) = std::str::from_utf8(symbol) else {
                return self.r.fail(ResolveError::StringNotUtf8, inner.span);
            };
            let symbol = self.r.cx.names.intern(symbol);
            let given = if result == Type::NOTHING { [].into() } else { [result].into() };
            let callee = self.func.add_callee(CalleeData::Symbol { symbol, params: args, results: given });
            return self.set(inst, Op::CFunction(callee), results, &[]);
        }
        // A quoted symbol may also name the function.
        let named = match &inner.kind {
            ExprKind::Symbol(name) => Expr::new(inner.span, ExprKind::Name(name.clone())),
            _ => inner.clone(),
        };
        let is_value = match &named.kind {
            ExprKind::Name(name) => self.r.arguments.contains(name),
            kind => matches!(kind, ExprKind::Ssa(..) | ExprKind::Slot(..)),
        };
        let function = if is_value { None } else { Some(self.r.term(&named, None)?) };
        let Some(Term::Const(Const::Singleton(function))) = function else {
            let what = "a `cfunction` of a value that is known at run time only".to_owned();
            let why = "a closure as a function of C needs code that is made at run time";
            return self.refuse_late(inst, what, why, inner.span);
        };
        let callee = self.func.add_callee(CalleeData::Method { function, args, result });
        self.set(inst, Op::CFunction(callee), results, &[&named])
    }

    /// `name, type`: the address of a C function or variable of that type. An address in place of the name is
    /// the result.
    pub(super) fn c_global(
        &mut self,
        inst: Inst,
        args: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        self.count_operands(&Intrinsic::Cglobal, Arity::between(1, 2), args.len(), at)?;
        let (target, result) = (args[0], results.first().copied().unwrap_or(Type::ANY));
        if let (Some(of), Level::High) = (args.get(1), self.func.level) {
            let of = if self.r.looks_like_type(of) { self.new_type(of)? } else { None };
            if of.is_none_or(|of| self.r.cx.types.pointee(result) != Some(of)) {
                let what = "`cglobal` with another type than its row points to".to_owned();
                return self.refuse_late(inst, what, "the row says what the address is used for", at);
            }
        }
        if let Some(name) = self.r.foreign_name(target)? {
            self.func.set_op(inst, Op::CGlobal(name), &[]);
            return Some(());
        }
        if !matches!(unquote(target).kind, ExprKind::Ssa(..) | ExprKind::Slot(..) | ExprKind::Name(_)) {
            return self.computed_c_name(inst, at);
        }
        let address = self.operand(target)?;
        match self.func.ty(address) {
            ty if ty == result => self.func.set_op(inst, Op::Copy, &[address]),
            ty if self.r.cx.types.pointee(ty).is_some() => {
                self.func.set_op(inst, Op::Intrinsic(Intrinsic::Bitcast), &[address]);
            }
            _ => return self.computed_c_name(inst, at),
        }
        Some(())
    }

    fn computed_c_name(&mut self, inst: Inst, at: Span) -> Option<()> {
        let why = "the names of C functions and variables are known before the program runs";
        self.refuse_late(inst, "`cglobal` of a name that is computed".to_owned(), why, at)
    }

    /// `name, result, svec(argument types), required, convention, arguments…, roots…`.
    pub(super) fn foreign_call(
        &mut self,
        inst: Inst,
        args: &[Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let [target, result, params, required, convention, rest @ ..] = args else {
            let needs =
                "a name, a result type, `svec` of argument types, a count, a convention and the arguments";
            return self.r.fail(ResolveError::HeadArguments { head: "foreigncall".to_owned(), needs }, at);
        };
        let name = self.r.foreign_name(target)?;
        let result = self.r.ty(result)?;
        let result = self.r.referenced(result);
        let ExprKind::Call(_, params) = &unquote(params).kind else {
            let needs = "its argument types as `svec(…)`";
            return self
                .r
                .fail(ResolveError::HeadArguments { head: "foreigncall".to_owned(), needs }, params.span);
        };
        let params: Option<Box<[Type]>> = params.iter().map(|ty| self.r.ty(ty)).collect();
        let params = params?;
        let variadic_after = match unquote(required).kind {
            ExprKind::Literal(Literal::Int { negative: false, magnitude })
                if magnitude.get() <= params.len() as u128 =>
            {
                Some(magnitude.get() as u32).filter(|&fixed| fixed > 0)
            }
            _ => {
                let needs = "the number of arguments before `...`, at most as many as it has types";
                return self.r.fail(
                    ResolveError::HeadArguments { head: "foreigncall".to_owned(), needs },
                    required.span,
                );
            }
        };
        let is_llvm = matches!(&unquote(convention).kind, ExprKind::Symbol(name) | ExprKind::Name(name) if name == "llvmcall");
        if !is_llvm || name.is_none() {
            self.r.c_convention(convention)?;
        }
        if rest.len() < params.len() {
            let needs = "an argument for each of its types";
            return self.r.fail(ResolveError::HeadArguments { head: "foreigncall".to_owned(), needs }, at);
        }
        if let Some(name) = name.filter(|_| is_llvm) {
            let name = self.r.cx.names.text(name).to_owned();
            return self.llvm_call(inst, &name, (result, params), rest, results, at);
        }
        if let Some(name) = name
            && params.is_empty()
            && self.func.level == Level::High
            && self.r.cx.names.text(name) == "jl_get_current_task"
        {
            let task = self.r.task(at)?;
            return self.set(inst, Op::GetGlobal(task), results, &[]);
        }
        // Memory owns its elements.
        if let ([memory, ..], Some(name)) = (rest, name)
            && self.func.level == Level::High
            && self.r.cx.names.text(name) == "jl_genericmemory_owner"
        {
            return self.set(inst, Op::Copy, results, &[memory]);
        }
        let foreign = self.func.add_foreign(ForeignData { name, result, params, variadic_after });
        let mut exprs: Vec<&Expr<'a>> = Vec::with_capacity(rest.len() + 1);
        if name.is_none() {
            exprs.push(target);
        }
        exprs.extend(rest);
        self.set(inst, Op::ForeignCall(foreign), results, &exprs)
    }
}

impl<'a> Resolver<'a> {
    /// The name of a C function; the inner `None` means a pointer value.
    fn foreign_name(&mut self, target: &Expr<'a>) -> Option<Option<Name>> {
        let inner = unquote(target);
        match &inner.kind {
            ExprKind::Symbol(name) => Some(Some(self.cx.names.intern(name))),
            ExprKind::Literal(Literal::String(bytes)) => match std::str::from_utf8(bytes) {
                Ok(name) => Some(Some(self.cx.names.intern(name))),
                Err(_) => self.fail(ResolveError::StringNotUtf8, inner.span),
            },
            ExprKind::Tuple(parts) => self.library_function(parts, inner.span),
            ExprKind::Head(head, parts) if head == "tuple" => self.library_function(parts, inner.span),
            ExprKind::Call(callee, parts) if matches!(&callee.kind, ExprKind::Path(p) if last_name(p) == "tuple") => {
                self.library_function(parts, inner.span)
            }
            ExprKind::Name(name) => Some(self.named_symbol(name)),
            ExprKind::Path(parts) => Some(self.named_symbol(last_name(parts))),
            _ => Some(None),
        }
    }

    /// The symbol that a constant in the text holds: `const memhash = :memhash_seed`.
    fn named_symbol(&self, name: &str) -> Option<Name> {
        match self.consts.get(name) {
            Some(&Term::Const(Const::Symbol(symbol) | Const::String(symbol))) => Some(symbol),
            Some(Term::Aggregate { fields, .. }) => match fields.first() {
                Some(&Term::Const(Const::Symbol(symbol) | Const::String(symbol))) => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    /// A C function with the result `Ref{T}` returns a reference to an object: a `T`.
    fn referenced(&self, result: Type) -> Type {
        match self.cx.types.nominal_parts(result) {
            Some((decl, &[of])) if self.library_decl("Ref") == Some(decl) => of,
            _ => result,
        }
    }

    /// `(:name, "library")`.
    fn library_function(&mut self, parts: &[Expr<'a>], at: Span) -> Option<Option<Name>> {
        let [name, library @ ..] = parts else { return self.fail(ResolveError::NotAValue, at) };
        if let Some(library) = library.first() {
            let library = self.source_text(library.span);
            let ignored = Diagnostic::warning(&ResolveError::LibraryIgnored { library }, at);
            self.diagnostics.push(ignored);
        }
        self.foreign_name(name)
    }

    /// `:(:ccall)`, or since 1.12 `(:ccall, effects, gc_safe)`.
    fn c_convention(&mut self, convention: &Expr<'a>) -> Option<()> {
        let inner = unquote(convention);
        let symbol = match &inner.kind {
            ExprKind::Tuple(parts) => parts.first().map(unquote),
            _ => Some(inner),
        };
        match symbol.map(|s| &s.kind) {
            Some(ExprKind::Symbol(name) | ExprKind::Name(name)) if matches!(&**name, "ccall" | "cdecl") => {
                Some(())
            }
            _ => {
                let what = format!("the calling convention `{}`", self.source_text(inner.span));
                let why = "C functions are called by the platform's convention";
                self.fail(ResolveError::Unsupported { what, why }, inner.span)
            }
        }
    }
}
