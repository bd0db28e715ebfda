//! Resolves the body of a function: rows to instructions.
//!
//! Two passes, because φ and loops refer to later rows. The first creates an instruction for each row, with
//! its results, in its block; the second sets operations and operands. A block without a terminator gets a
//! `goto` to the next one.
//!
//! Rows that compute nothing (`meta`, `inbounds`, alias scopes) have no instruction. A `meta` about inlining is kept with
//! the function (`hints`). Statements such as `pop_exception`, which have the type `Nothing` in Julia, have
//! no result; a reference to such a row means `nothing`.

use std::borrow::Cow;

use cranelift_entity::EntityRef;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::ast::{self, Callee, Expr, ExprKind, Row, Stmt, Target};
use super::super::wanted::Site;
use super::Resolver;
use super::error::ResolveError;
use super::handlers::At;
use super::spelling::{
    blocks_that_run, has_plain_parts, is_infix_literal, is_literal_name, is_plain, is_syntax, read_whole,
    regrouped, static_parameter, unquoted,
};
use super::term::Term;
use super::unknown;
use crate::builtin::Builtin;
use crate::constant::{Const, MODULES};
use crate::diag::{Diagnostic, Span};
use crate::entity::{Block, Inst, Slot, Value};
use crate::func::{Func, LineColumn, Param, Place, Signature};
use crate::names::Name;
use crate::op::{Level, Op};
use crate::types::{Type, TypeKind};

/// The meaning of a row's label, `%n`.
enum Label {
    /// The results of an instruction.
    Row(Inst),
    /// `nothing`: the row has no value.
    Nothing,
    /// The row has an error that is already reported.
    Broken,
}

/// A function under construction.
pub(super) struct Body<'r, 'a> {
    pub(super) r: &'r mut Resolver<'a>,
    pub(super) func: Func,
    blocks: FxHashMap<u32, Block>,
    rows: FxHashMap<u32, Label>,
    params: FxHashMap<Cow<'a, str>, Value>,
    /// The instruction of each row that has one.
    insts: FxHashMap<At, Inst>,
    /// The stack slots of low IR by their numbers in the text.
    pub(super) slots: FxHashMap<u32, Slot>,
    /// See [`Resolver::old_leaves`].
    pub(super) old_leaves: FxHashMap<At, Vec<At>>,
    /// The instruction whose operands are being resolved; code that an operand needs is inserted before it.
    /// For an operand of a φ, the end of the predecessor.
    pub(super) here: Option<Inst>,
    /// The rows with `svec` that only splatting calls read.
    pub(super) splatted: FxHashSet<Inst>,
}

/// Statements without a result, and the types that Julia prints for them.
pub(in super::super) const WITHOUT_RESULT: [(&str, Option<&str>); 7] = [
    ("leave", None),
    ("gc_preserve_end", None),
    ("pop_exception", Some("Nothing")),
    ("loopinfo", Some("Nothing")),
    ("code_coverage_effect", Some("Nothing")),
    ("spend", Some("Nothing")),
    ("throw_undef_if_not", Some("Any")),
];

/// `Expr` heads that compute nothing and have no meaning in this IR.
const LEFT_OUT: [&str; 7] =
    ["meta", "inbounds", "inline", "noinline", "aliasscope", "popaliasscope", "purity"];

enum RowInst {
    /// An instruction with these results.
    Inst(Vec<Type>),
    LeftOut,
    Broken,
}

impl<'a> Resolver<'a> {
    /// The first assignment to a variable that is not global, and its span. Only unoptimised IR has such rows.
    fn assigned_variable(&mut self, function: &ast::Function<'_>) -> Option<(String, Span)> {
        let rows = function.blocks.iter().flat_map(|block| &block.rows);
        let assignments = rows.filter_map(|row| match &row.stmt {
            Stmt::Expr(Expr { kind: ExprKind::Infix(op, args), span, .. }) if op == "=" => {
                Some((args.first()?, *span))
            }
            _ => None,
        });
        for (target, span) in assignments {
            let name = match &target.kind {
                ExprKind::Name(name) if self.variable(name).is_none() => name.to_string(),
                ExprKind::Slot(name, number) => format!("{name}@_{number}"),
                ExprKind::Macro(name, _) => format!("@{name}"),
                _ => continue,
            };
            return Some((name, span));
        }
        None
    }

    /// Resolves a function with its body; `None` if its signature has an error.
    pub(super) fn function(&mut self, function: &ast::Function<'a>) -> Option<Func> {
        let Some(signature) = &function.signature else {
            let note = "write `# signature: name(arg::T, …)::R` above the dump";
            let missing = Diagnostic::error(&ResolveError::MissingSignature, function.span).with_note(note);
            self.diagnostics.push(missing);
            return None;
        };
        self.level = function.level;
        let (name, sig) = self.signature(signature, function)?;
        let name = self.cx.names.intern(&name);
        let mut func = Func::new(name, function.level, sig);
        func.inlining = self.inlining(signature, function);
        let mut params = FxHashMap::default();
        let first = usize::from(function.level == Level::High);
        self.arguments.clear();
        for (param, &value) in signature.params.iter().zip(&func.params()[first..]) {
            if let Some(name) = &param.name {
                params.insert(name.clone(), value);
                self.arguments.push(name.clone());
            }
        }
        if let Callee::Object(ast::Param { name: Some(name), .. }) = &signature.callee
            && let Some(&value) = func.params().first()
        {
            params.insert(name.clone(), value);
            self.arguments.push(name.clone());
        }
        if let Some((name, at)) = self.assigned_variable(function) {
            let what = format!("the assignment of the variable `{name}`");
            let why = "this is unoptimised IR; print it with `optimize=true`";
            return self.fail(ResolveError::Unsupported { what, why }, at);
        }
        let old_leaves = self.old_leaves(function);
        let mut body = Body {
            r: self,
            func,
            blocks: FxHashMap::default(),
            rows: FxHashMap::default(),
            params,
            insts: FxHashMap::default(),
            slots: FxHashMap::default(),
            old_leaves,
            here: None,
            splatted: FxHashSet::default(),
        };
        let blocks = &function.blocks[..blocks_that_run(function)];
        body.r.reads_rows = function.is_dump && function.level == Level::High;
        body.make_blocks(blocks);
        body.make_rows(blocks);
        body.note_splatted(blocks);
        body.fill(blocks);
        body.r.reads_rows = false;
        if function.is_dump && function.level == Level::High {
            body.narrow();
        }
        Some(body.func)
    }

    fn signature(
        &mut self,
        signature: &ast::Signature<'a>,
        function: &ast::Function<'a>,
    ) -> Option<(String, Signature)> {
        let mut sig = Signature::default();
        let mut name = String::new();
        match (&signature.callee, function.level) {
            (Callee::Named(parts, _), level) => {
                name.push_str(super::last_name(parts));
                if level == Level::High {
                    let ty = self.named_object(parts, function.is_dump);
                    sig.params.push(Param { name: None, ty });
                }
            }
            (Callee::Object(object), Level::High) => {
                let ty = match &object.ty {
                    Some(ty) => self.ty(ty)?,
                    None => return self.fail(ResolveError::NotAType, object.span),
                };
                name.push_str(object.name.as_deref().unwrap_or("self"));
                sig.params.push(Param { name: Some(self.cx.names.intern(&name)), ty });
            }
            (Callee::Object(object), Level::Low) => {
                let name = "an object as callee".to_owned();
                return self.fail(ResolveError::UnknownOperation { name }, object.span);
            }
        }
        let variables = self.variables(&signature.vars)?;
        if let (Some(first), Level::Low) = (signature.vars.first(), function.level) {
            let what = "`where` in low IR".to_owned();
            let why = "types of low IR have no variables";
            return self.fail(ResolveError::Unsupported { what, why }, first.span);
        }
        self.with_hulls(&variables, |r| r.signature_types(signature, function, &mut sig))?;
        sig.statics = self.statics(variables, signature, &sig)?;
        Some((name, sig))
    }

    /// The types of parameters and results.
    fn signature_types(
        &mut self,
        signature: &ast::Signature<'a>,
        function: &ast::Function<'a>,
        sig: &mut Signature,
    ) -> Option<()> {
        let mut whole = true;
        for param in &signature.params {
            let mut ty = match &param.ty {
                Some(ty) => self.ty(ty),
                None => Some(Type::ANY),
            };
            if param.is_vararg {
                sig.vararg = true;
                ty = ty.and_then(|elem| self.cx.types.tuple_vararg(&[], elem).ok());
            }
            match ty {
                Some(ty) => {
                    let name = param.name.as_ref().map(|name| self.cx.names.intern(name));
                    sig.params.push(Param { name, ty });
                }
                None => whole = false,
            }
        }
        let result = signature.result.as_ref().or(function.shown_result.as_ref());
        sig.results = match (result, function.level) {
            (Some(result), Level::Low) => self.type_list(result)?,
            (Some(result), Level::High) => vec![self.ty(result)?],
            (None, Level::Low) => Vec::new(),
            (None, Level::High) => vec![Type::ANY],
        };
        whole.then_some(())
    }

    /// The types of a low row: one, or a list in parentheses.
    pub(super) fn type_list(&mut self, expr: &Expr<'a>) -> Option<Vec<Type>> {
        match &expr.kind {
            ExprKind::Tuple(items) => items.iter().map(|item| self.ty(item)).collect(),
            _ => Some(vec![self.ty(expr)?]),
        }
    }
}

impl<'a> Body<'_, 'a> {
    fn make_blocks(&mut self, asts: &[ast::Block<'a>]) {
        for ast in asts {
            let block = self.func.make_block();
            self.func.append_block(block);
            if let Some(first) = self.blocks.insert(ast.number, block) {
                // Blocks are made in text order.
                let first = asts.get(first.index()).map(|ast| ast.span);
                self.r.fail_again(ResolveError::DuplicateBlock { block: ast.number }, ast.span, first);
            }
        }
    }

    fn make_rows(&mut self, asts: &[ast::Block<'a>]) {
        let blocks: Vec<Block> = self.func.blocks().collect();
        for (b, (ast, &block)) in asts.iter().zip(&blocks).enumerate() {
            // In Julia constants may occur among the φ of a block; here the φ come first.
            let mut last_phi = None;
            let mut only_constants = true;
            for (i, row) in ast.rows.iter().enumerate() {
                let label = match self.row_inst(row) {
                    RowInst::Inst(results) => {
                        let inst = self.func.make_inst(Op::Unreachable, &[], &[], &results);
                        let is_phi = matches!(row.stmt, Stmt::Phi(_));
                        match last_phi {
                            Some(after) if is_phi && only_constants => self.func.insert_after(inst, after),
                            None if is_phi && only_constants => self.func.prepend_inst(inst, block),
                            _ => self.func.append_inst(inst, block),
                        }
                        if is_phi {
                            last_phi = Some(inst);
                        }
                        let place = Place {
                            start: row.span.start,
                            end: row.span.end,
                            at: LineColumn::new(row.line.unwrap_or(0), 0),
                            ..Place::default()
                        };
                        self.func.set_place(inst, place);
                        self.insts.insert((b, i), inst);
                        if results.is_empty() { Label::Nothing } else { Label::Row(inst) }
                    }
                    RowInst::LeftOut => Label::Nothing,
                    RowInst::Broken => Label::Broken,
                };
                only_constants &= matches!(row.stmt, Stmt::Phi(_)) || is_constant_statement(&row.stmt);
                if let Some((number, at)) = row.result
                    && let Some(first) = self.rows.insert(number, label)
                {
                    let first = match first {
                        Label::Row(inst) => {
                            let place = self.func.place(inst);
                            Some(Span { start: place.start, end: place.end })
                        }
                        _ => None,
                    };
                    self.r.fail_again(ResolveError::DuplicateRow { row: number }, at, first);
                }
            }
        }
    }

    fn note_splatted(&mut self, asts: &[ast::Block<'a>]) {
        let is_svec = |row: &&Row<'a>| matches!(&row.stmt, Stmt::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) if is_named(callee, "svec"));
        let rows = || asts.iter().flat_map(|ast| &ast.rows).filter(is_svec);
        if rows().next().is_none() {
            return;
        }
        let whole = read_whole(asts);
        for (number, _) in rows().filter_map(|row| row.result).filter(|(number, _)| !whole.contains(number)) {
            if let Some(&Label::Row(inst)) = self.rows.get(&number) {
                self.splatted.insert(inst);
            }
        }
    }

    /// The instruction for a row, determined by its syntax and type annotation alone.
    fn row_inst(&mut self, row: &Row<'a>) -> RowInst {
        let low = self.func.level == Level::Low;
        let head = head_of(&row.stmt);
        if LEFT_OUT.contains(&head) {
            return RowInst::LeftOut;
        }
        let none =
            matches!(row.stmt, Stmt::Goto(_) | Stmt::GotoIfNot { .. } | Stmt::Return(_) | Stmt::Unreachable);
        if none || WITHOUT_RESULT.iter().any(|(name, _)| *name == head) {
            return RowInst::Inst(Vec::new());
        }
        if matches!(row.stmt, Stmt::Enter { .. }) || matches!(head, "enter" | "gc_preserve_begin") {
            return RowInst::Inst(vec![Type::TOKEN]);
        }
        // `1:3::UnitRange{Int64}` parses as `1:(3::…)`.
        let number = match &row.stmt {
            Stmt::Expr(expr) if row.ty.is_none() => regrouped(expr),
            _ => None,
        };
        if let Some(ExprKind::Annotated(_, ty)) = number.map(|number| number.kind) {
            return self.r.ty(&ty).map_or(RowInst::Broken, |ty| RowInst::Inst(vec![ty]));
        }
        let types = match (&row.ty, &row.stmt) {
            (Some(ty), _) if low => self.r.type_list(ty),
            (Some(ty), _) | (None, Stmt::Pi { ty, .. }) => self.r.ty(ty).map(|ty| vec![ty]),
            (None, _) if low => Some(Vec::new()),
            (None, _) if head == "boundscheck" => Some(vec![Type::BOOL]),
            (None, Stmt::Expr(expr)) if is_constant_statement(&row.stmt) => {
                self.r.term(expr, None).map(|term| vec![term.ty()])
            }
            _ => self.r.fail(ResolveError::MissingType, row.span),
        };
        // An unknown constant may have any type; the row throws.
        let types = types.or_else(|| self.r.unread.take().map(|_| vec![Type::ANY]));
        types.map_or(RowInst::Broken, RowInst::Inst)
    }

    fn fill(&mut self, asts: &[ast::Block<'a>]) {
        let blocks: Vec<Block> = self.func.blocks().collect();
        // The operands of φ may need code at the ends of other blocks, so they are resolved last.
        let mut phis = Vec::new();
        for (b, ast) in asts.iter().enumerate() {
            let block = blocks[b];
            let next = blocks.get(b + 1).copied();
            let mut ended: Option<Span> = None;
            for (i, row) in ast.rows.iter().enumerate() {
                // Notes about the function may follow its last statement.
                if ended.is_some() && LEFT_OUT.contains(&head_of(&row.stmt)) {
                    continue;
                }
                if ended.is_some() && self.r.functions.has_dumps() && computes_nothing(&row.stmt) {
                    if let Some(&inst) = self.insts.get(&(b, i)) {
                        self.func.remove_inst(inst);
                    }
                    continue;
                }
                if let Some(end) = ended {
                    let after = Diagnostic::error(&ResolveError::RowAfterEnd, row.span);
                    self.r.diagnostics.push(after.with_related(end, "the block ends here"));
                    break;
                }
                if ends_block(&row.stmt) {
                    ended = Some(row.span);
                }
                if let Some(&inst) = self.insts.get(&(b, i)) {
                    if let Stmt::Phi(edges) = &row.stmt {
                        phis.push((inst, edges));
                        continue;
                    }
                    self.here = Some(inst);
                    // An error is already reported; the instruction stays without operands.
                    let _ = self.statement(inst, row, (b, i), next).and_then(|()| self.call_hint(inst, row));
                    if let Some(what) = self.r.unread.take() {
                        let _ = self.refuse_row(
                            inst,
                            what,
                            unknown::WHY_CONSTANT,
                            row.span,
                            ends_block(&row.stmt),
                        );
                    }
                    self.width_of_result(inst, row);
                }
            }
            if ended.is_none() {
                match next {
                    Some(next) => {
                        let goto = self.func.make_inst(Op::Goto, &[], &[next], &[]);
                        self.func.append_inst(goto, block);
                    }
                    None => {
                        let at = ast.rows.last().map_or(ast.span, |row| row.span);
                        self.r.fail::<()>(ResolveError::FallsOffEnd, at);
                    }
                }
            }
        }
        for (inst, edges) in phis {
            let _ = self.phi(inst, edges);
        }
    }

    // ----- parts of statements -----

    pub(super) fn block(&mut self, target: Target) -> Option<Block> {
        match self.blocks.get(&target.block) {
            Some(&block) => Some(block),
            None => self.r.fail(ResolveError::UnknownBlock { block: target.block }, target.span),
        }
    }

    /// The instruction of an `enter` found by [`Resolver::old_leaves`].
    pub(super) fn inst_at(&self, at: At) -> Option<Inst> {
        self.insts.get(&at).copied()
    }

    pub(super) fn results(&self, inst: Inst) -> Vec<Type> {
        self.func.results(inst).map(|v| self.func.ty(v)).collect()
    }

    /// The argument with this name, including `_n`, `#self#` and `#ctor-self#`. The outer `None` is an error,
    /// the inner one means that there is no such argument.
    pub(super) fn argument(&mut self, name: &str, at: Span) -> Option<Option<Value>> {
        if let Some(&value) = self.params.get(name) {
            return Some(Some(value));
        }
        let number = name.strip_prefix('_').and_then(|digits| digits.parse().ok());
        match number {
            Some(number) => Some(Some(self.slot(number, at)?)),
            None if matches!(name, "#self#" | "#ctor-self#") && self.func.level == Level::High => {
                Some(Some(self.slot(1, at)?))
            }
            None => Some(None),
        }
    }

    /// The argument `_n`; `_1` is the function object.
    fn slot(&mut self, number: u32, at: Span) -> Option<Value> {
        let params = self.func.params();
        match (number as usize).checked_sub(1).and_then(|n| params.get(n)) {
            Some(&value) => Some(value),
            None => {
                let count = params.len();
                self.r.fail(ResolveError::UnknownArgument { number, count }, at)
            }
        }
    }

    fn row_value(&mut self, row: u32, part: u32, at: Span) -> Option<Value> {
        match self.rows.get(&row) {
            Some(&Label::Row(inst)) => {
                let results = self.func.results(inst).len();
                match self.func.results(inst).nth(part as usize) {
                    Some(value) => Some(value),
                    None => self.r.fail(ResolveError::UnknownPart { row, part, results }, at),
                }
            }
            Some(Label::Nothing) => Some(self.func.constant(Const::Singleton(Type::NOTHING))),
            Some(Label::Broken) => None,
            None => self.r.fail(ResolveError::UnknownRow { row }, at),
        }
    }

    /// Resolves an operand whose text determines its type.
    pub(super) fn operand(&mut self, expr: &Expr<'a>) -> Option<Value> {
        match &expr.kind {
            ExprKind::Ssa(row, part) => self.row_value(*row, *part, expr.span),
            ExprKind::Slot(_, number) => self.slot(*number, expr.span),
            ExprKind::Name(name) => match self.argument(name, expr.span)? {
                Some(value) => Some(value),
                None => self.global_or_constant_operand(name, expr),
            },
            ExprKind::Path(parts) => self.global_or_constant_operand(super::last_name(parts), expr),
            ExprKind::Quote(inner) | ExprKind::Interpolation(inner) => match inner.kind {
                ExprKind::Symbol(_) | ExprKind::QuoteNode(_) => self.constant(inner, None),
                _ if is_syntax(expr) => self.constant(expr, None),
                _ => self.operand(inner),
            },
            ExprKind::Annotated(Some(value), ty) if is_plain(value) || has_plain_parts(value) => {
                let ty = self.r.ty(ty)?;
                self.constant(value, Some(ty))
            }
            ExprKind::Annotated(Some(value), ty) if static_parameter(value).is_some() => {
                let ty = self.r.ty(ty)?;
                self.static_operand(static_parameter(value)?, ty, expr.span)
            }
            ExprKind::Annotated(Some(value), ty) if !matches!(value.kind, ExprKind::Undef) => {
                match self.annotated_object(value, ty)? {
                    Some(function) => Some(function),
                    None => self.operand(value),
                }
            }
            ExprKind::Call(callee, args) if self.func.level == Level::Low => {
                match self.address(callee, args, expr.span)? {
                    Some(value) => Some(value),
                    None => self.constant(expr, None),
                }
            }
            // Julia prints a constant object as a constructor call; all other calls are separate rows.
            ExprKind::Call(callee, args)
                if !self.is_literal_call(callee, args)
                    && !self.r.looks_like_type(expr)
                    && !self.r.looks_like_type(callee)
                    && !constructs_singleton(callee) =>
            {
                self.r.fail_unread(ResolveError::NotAValue, expr.span)
            }
            ExprKind::Infix(op, args) if is_infix_literal(op, args) => self.constant(expr, None),
            // An operand `$(Expr(:boundscheck, …))` of a builtin enables or disables the bounds check.
            ExprKind::Head(head, args) if &**head == "boundscheck" => {
                let on = match args.as_slice() {
                    [] => true,
                    [Expr { kind: ExprKind::Name(on), .. }] if matches!(&**on, "true" | "false") => {
                        &**on == "true"
                    }
                    _ => {
                        let (head, needs) = ("boundscheck".to_owned(), "`true` or `false`");
                        return self.r.fail(ResolveError::HeadArguments { head, needs }, expr.span);
                    }
                };
                Some(self.func.constant(Const::Bits { ty: Type::BOOL, bits: on.into() }))
            }
            ExprKind::Head(..) if static_parameter(expr).is_some() => {
                let number = static_parameter(expr)?;
                self.static_operand(number, self.type_of_static(number), expr.span)
            }
            ExprKind::Infix(..)
            | ExprKind::Head(..)
            | ExprKind::Splat(_)
            | ExprKind::Opaque
            | ExprKind::Property(..)
            | ExprKind::Undef => self.r.fail_unread(ResolveError::NotAValue, expr.span),
            _ => self.constant(expr, None),
        }
    }

    /// A name as an operand. Since 1.9 Julia also prints reads of global variables as operands.
    fn global_or_constant_operand(&mut self, name: &str, expr: &Expr<'a>) -> Option<Value> {
        let global = self.r.cx.names.intern(name);
        let is_variable = !self.r.consts.contains_key(name) && self.func.level == Level::High;
        match if is_variable { self.r.variable(name) } else { None } {
            Some(ty) => self.read_global(global, ty, expr.span),
            _ => self.constant(expr, None),
        }
    }

    fn read_global(&mut self, global: Name, ty: Type, at: Span) -> Option<Value> {
        match self.here {
            Some(inst) => self.insert_before(inst, Op::GetGlobal(global), &[], ty),
            None => self.r.fail(ResolveError::NotAValue, at),
        }
    }

    /// A constant that has an identity, or contains one. A hidden global variable holds it; this reads the
    /// variable.
    fn shared_constant(&mut self, term: Term, at: Span) -> Option<Value> {
        if self.func.level == Level::Low || self.here.is_none() {
            let ty = self.r.cx.types.display(term.ty()).to_string();
            return self.r.fail(ResolveError::MutableConstant { ty }, at);
        }
        let ty = term.ty();
        let global = self.r.hidden_global(term, at)?;
        self.read_global(global, ty, at)
    }

    /// The object denoted by a name with its type: the function of `f::typeof(f)` and `f::Function`, the
    /// singleton of `Base.Order.Forward::ForwardOrdering`.
    fn annotated_object(&mut self, value: &Expr<'a>, ty: &Expr<'a>) -> Option<Option<Value>> {
        let parts = match &value.kind {
            ExprKind::Name(name) if self.argument(name, value.span)?.is_none() => std::slice::from_ref(name),
            ExprKind::Path(parts) => &parts[..],
            _ => return Some(None),
        };
        let name = super::last_name(parts);
        if self.r.consts.contains_key(name) || self.r.looks_like_type(value) || is_literal_name(name) {
            return Some(None);
        }
        let ty = self.r.ty(ty)?;
        if ty == Type::MODULE && !MODULES.contains(&name) {
            return self.r.fail_unread(ResolveError::NotAConstant, value.span);
        }
        if ty == Type::MODULE {
            let module = self.r.cx.names.intern(name);
            return Some(Some(self.func.constant(Const::Module(module))));
        }
        let own = self.r.function_type(parts);
        if ty == own || ty == self.r.cx.types.supertype(own) && parts.len() == 1 {
            return Some(Some(self.func.constant(Const::Singleton(own))));
        }
        if !self.r.reads_rows || self.r.variable(name).is_some() {
            return Some(None);
        }
        let object = match *self.r.cx.types.kind(ty) {
            TypeKind::TypeOf(of) => Some(self.r.cx.types.type_constant(of)),
            _ => self.r.cx.types.is_singleton(ty).then_some(Const::Singleton(ty)),
        };
        Some(object.map(|object| self.func.constant(object)))
    }

    /// Whether a call is the notation of a literal: `Symbol("…")`, `Float16(0.5)`, `reinterpret(Float64, 0x…)`.
    pub(super) fn is_literal_call(&self, callee: &Expr<'a>, args: &[Expr<'a>]) -> bool {
        let name = match &callee.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => super::last_name(parts),
            ExprKind::Curly(base, _) => match &base.kind {
                ExprKind::Name(name) => &**name,
                _ => "",
            },
            _ => "",
        };
        let literal = |expr: &Expr<'_>| matches!(expr.kind, ExprKind::Literal(_));
        match args {
            [arg] if literal(arg) => {
                name == "Symbol"
                    || self.r.find_decl(name).is_some_and(|decl| {
                        matches!(
                            self.r.cx.types.body(decl).map(|b| &b.kind),
                            Some(crate::types::DeclKind::Primitive { .. })
                        )
                    })
            }
            [_, bits] => name == "reinterpret" && literal(bits),
            _ => false,
        }
    }

    /// A constant operand; a decimal integer gets the type `wanted`.
    pub(super) fn constant(&mut self, expr: &Expr<'a>, wanted: Option<Type>) -> Option<Value> {
        let term = self.r.term(expr, wanted)?;
        self.value_of(term, expr.span)
    }

    pub(super) fn value_of(&mut self, term: Term, at: Span) -> Option<Value> {
        match term {
            Term::Const(constant) => Some(self.func.constant(constant)),
            Term::Bytes(bytes) => self.string_of_bytes(&bytes, at),
            Term::Aggregate { .. } if !self.r.lacks_fields(&term) && self.r.is_shared(&term) => {
                self.shared_constant(term, at)
            }
            Term::Aggregate { ty, fields } => {
                let fields: Option<Box<[Value]>> =
                    fields.into_iter().map(|field| self.value_of(field, at)).collect();
                let fields = fields?;
                let is_whole = self.r.cx.types.field_count(ty) == Some(fields.len());
                // An object with undefined fields, printed as `T(#undef)`, is made before the row.
                if let Some(here) = self
                    .here
                    .filter(|_| self.r.functions.has_dumps() && (!is_whole || !self.all_constant(&fields)))
                {
                    return self.insert_before(here, Op::New(ty), &fields, ty);
                }
                Some(self.func.constant(Const::Aggregate { ty, fields }))
            }
            Term::Array { .. } => self.shared_constant(term, at),
        }
    }

    fn all_constant(&self, values: &[Value]) -> bool {
        values.iter().all(|&value| self.func.as_const(value).is_some())
    }

    /// The operands of an operation. Plain literals are resolved last, because their types depend on the
    /// other operands.
    pub(super) fn operands(&mut self, op: Op, results: &[Type], exprs: &[&Expr<'a>]) -> Option<Vec<Value>> {
        let mut values: Vec<Option<Value>> = Vec::with_capacity(exprs.len());
        let mut known = Vec::with_capacity(exprs.len());
        // `===` may compare tuples of any types, so there a tuple states its type.
        let is_open =
            |expr: &Expr<'a>| is_plain(expr) || has_plain_parts(expr) && op != Op::Builtin(Builtin::Egal);
        for expr in exprs {
            let value = if is_open(expr) { None } else { self.operand(expr) };
            known.push(value.map(|v| self.func.ty(v)));
            values.push(value);
        }
        for (index, expr) in exprs.iter().enumerate().filter(|(_, expr)| is_open(expr)) {
            let site = Site {
                types: &self.r.cx.types,
                func: &self.func,
                op,
                result: results.first().copied(),
                known: &|index| known.get(index).copied().flatten(),
                field: values.get(1).copied().flatten().and_then(|v| self.func.as_const(v)),
            };
            let wanted = site.wanted(index);
            values[index] = self.constant(unquoted(expr), wanted);
        }
        values.into_iter().collect()
    }
}

fn is_named(callee: &Expr<'_>, wanted: &str) -> bool {
    match &callee.kind {
        ExprKind::Name(name) => name == wanted,
        ExprKind::Path(parts) => super::last_name(parts) == wanted,
        _ => false,
    }
}

/// Whether a call is a singleton that Julia prints by its constructor: `Colon()`, `NamedTuple()`.
fn constructs_singleton(callee: &Expr<'_>) -> bool {
    is_named(callee, "Colon") || is_named(callee, "NamedTuple")
}

/// The head of an `$(Expr(:head, …))` statement; empty for others.
fn head_of<'s>(stmt: &'s Stmt<'_>) -> &'s str {
    match stmt {
        Stmt::Expr(Expr { kind: ExprKind::Head(head, _), .. }) => head,
        _ => "",
    }
}

/// Whether a statement must be the last of its block.
fn ends_block(stmt: &Stmt<'_>) -> bool {
    match stmt {
        Stmt::Goto(_) | Stmt::GotoIfNot { .. } | Stmt::Return(_) | Stmt::Unreachable | Stmt::Enter { .. } => {
            true
        }
        _ => head_of(stmt) == "enter",
    }
}

/// Whether a statement is one that Julia's optimiser leaves after the terminator of a block.
fn computes_nothing(stmt: &Stmt<'_>) -> bool {
    match stmt {
        Stmt::Phi(edges) => edges.is_empty(),
        Stmt::Unreachable => true,
        Stmt::Expr(expr) => matches!(&expr.kind, ExprKind::Name(name) if name == "nothing"),
        _ => false,
    }
}

/// Whether a statement is a literal.
fn is_constant_statement(stmt: &Stmt<'_>) -> bool {
    let Stmt::Expr(expr) = stmt else { return false };
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Symbol(_) | ExprKind::QuoteNode(_) => true,
        ExprKind::Name(name) => matches!(&**name, "nothing" | "true" | "false"),
        _ => false,
    }
}
