//! Resolves statements to operations: calls, and the statements with special syntax.

use std::borrow::Cow;
use std::fmt::Display;

use super::super::ast::{CallLabel, Expr, ExprKind, PhiEdge, Row, Stmt};
use super::body::Body;
use super::error::ResolveError;
use super::exact::Tested;
use super::handlers::At;
use super::last_name;
use super::near::is_near;
use super::spelling::{flattened, is_infix_literal, is_literal_name, is_plain, regrouped, unquote};
use super::unknown;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::diag::{Diagnostic, Span};
use crate::entity::{Block, Inst, Value};
use crate::func::CalleeData;
use crate::function_name::BASE;
use crate::intrinsic::{Arity, Intrinsic, Shape};
use crate::names::Name;
use crate::op::{Level, Op};
use crate::types::{Type, TypeKind};

/// The number of dimensions that the name of an array type implies.
fn array_rank(expr: &Expr<'_>) -> Option<u128> {
    let name = match &expr.kind {
        ExprKind::Name(name) => &**name,
        ExprKind::Path(parts) => last_name(parts),
        _ => return None,
    };
    match name {
        "Vector" => Some(1),
        "Matrix" => Some(2),
        _ => None,
    }
}

/// The operands of a builtin that are types to test against.
fn tested_operands(op: Builtin) -> &'static [usize] {
    match op {
        Builtin::Isa | Builtin::Typeassert => &[1],
        Builtin::Subtype => &[0, 1],
        _ => &[],
    }
}

impl<'a> Body<'_, 'a> {
    /// Sets the operation, operands and blocks of a row's instruction.
    pub(super) fn statement(&mut self, inst: Inst, row: &Row<'a>, at: At, next: Option<Block>) -> Option<()> {
        let results = self.results(inst);
        match &row.stmt {
            Stmt::Expr(expr) if self.func.level == Level::Low => {
                self.low_statement(inst, row, expr, &results, at)
            }
            Stmt::Expr(expr) => self.expression(inst, row, expr, &results, at, next),
            Stmt::Invoke { callee, args, .. } => self.invoke(inst, callee, args, &results, row.span),
            Stmt::Phi(edges) => self.phi(inst, edges),
            Stmt::Pi { value, .. } => self.set(inst, Op::Pi, &results, &[value]),
            Stmt::PhiC(values) => self.set(inst, Op::PhiC, &results, &values.iter().collect::<Vec<_>>()),
            Stmt::Upsilon(value) => self.set(inst, Op::Upsilon, &results, &value.iter().collect::<Vec<_>>()),
            Stmt::New(args) | Stmt::SplatNew(args) => {
                let Some((ty, fields)) = args.split_first() else {
                    let (head, needs) = ("%new".to_owned(), "a type");
                    return self.r.fail(ResolveError::HeadArguments { head, needs }, row.span);
                };
                let Some(ty) = self.new_type(ty)? else {
                    return self.new_of_computed(
                        inst,
                        ty,
                        fields,
                        &results,
                        matches!(row.stmt, Stmt::New(_)),
                    );
                };
                if self.r.is_unknown(ty, fields.len()) {
                    let what = format!("`%new` of `{}`", self.r.cx.types.display(ty));
                    return self.refuse_late(inst, what, unknown::WHY, row.span);
                }
                if matches!(row.stmt, Stmt::New(_)) && fields.len() > 2 && self.r.makes_exception(ty) {
                    let fields: Vec<&Expr<'a>> = fields.iter().collect();
                    if self.make_exception(inst, ty, &fields)? {
                        return Some(());
                    }
                }
                let op = if matches!(row.stmt, Stmt::New(_)) { Op::New(ty) } else { Op::SplatNew(ty) };
                self.set(inst, op, &results, &fields.iter().collect::<Vec<_>>())
            }
            Stmt::Goto(target) => {
                let block = self.block(*target)?;
                self.jump(inst, Op::Goto, &[], &[block])
            }
            Stmt::GotoIfNot { cond, target, otherwise, weights } => {
                let to_false = self.block(*target);
                let to_true = match otherwise {
                    Some(target) => self.block(*target),
                    None => self.next_block(next, row.span),
                };
                let cond = self.operand(cond)?;
                let cond = self.condition(inst, cond)?;
                self.jump(inst, Op::Branch, &[cond], &[to_true?, to_false?])?;
                self.func.set_branch_weights(inst, *weights);
                Some(())
            }
            Stmt::Return(value) => {
                let exprs: Vec<&Expr<'a>> = match value {
                    Some(Expr { kind: ExprKind::Tuple(items), .. }) if self.func.level == Level::Low => {
                        items.iter().collect()
                    }
                    Some(value) => vec![value],
                    None => Vec::new(),
                };
                let mut values = self.operands(Op::Return, &[], &exprs)?;
                if values.is_empty() && self.func.level == Level::High {
                    values.push(self.func.constant(Const::Singleton(Type::NOTHING)));
                }
                self.func.set_op(inst, Op::Return, &values);
                Some(())
            }
            Stmt::Unreachable => {
                self.func.set_op(inst, Op::Unreachable, &[]);
                Some(())
            }
            Stmt::Enter { target, otherwise, scope } => {
                if let Some(scope) = scope {
                    let what = "`enter … with scope`".to_owned();
                    let why = "dynamic scopes need Julia's own library";
                    self.refuse_before(inst, what, why, scope.span)?;
                }
                let normal = match otherwise {
                    Some(target) => self.block(*target),
                    None => self.next_block(next, row.span),
                };
                let Some(target) = target else {
                    let (head, needs) = ("enter".to_owned(), "a catch block");
                    return self.r.fail(ResolveError::HeadArguments { head, needs }, row.span);
                };
                let catch = self.block(*target)?;
                self.jump(inst, Op::Enter, &[], &[normal?, catch])
            }
        }
    }

    /// Sets the operands of a φ, once all blocks are complete. Code that an operand needs, such as the read
    /// of a global variable, is inserted at the end of the predecessor.
    pub(super) fn phi(&mut self, inst: Inst, edges: &[PhiEdge<'a>]) -> Option<()> {
        let results = self.results(inst);
        let mut blocks = Vec::with_capacity(edges.len());
        let mut values = Vec::with_capacity(edges.len());
        let mut exprs = Vec::with_capacity(edges.len());
        for edge in edges {
            let Some(value) = &edge.value else { continue };
            let from = self.block(edge.from)?;
            self.here = self.func.terminator(from);
            match self.operands(Op::Phi, &results, &[value]) {
                Some(operand) => values.extend(operand),
                None => {
                    let what = self.r.unread.take()?;
                    let unsupported = ResolveError::Unsupported { what, why: unknown::WHY_CONSTANT };
                    let note = "the value is undefined on this edge, and its use throws an `UndefVarError`";
                    self.r.diagnostics.push(Diagnostic::warning(&unsupported, value.span).with_note(note));
                    continue;
                }
            }
            exprs.push(value);
            blocks.push(from);
        }
        self.width_of_literals(inst, &exprs, &mut values, &blocks)?;
        self.func.set_op(inst, Op::Phi, &values);
        self.func.set_inst_blocks(inst, &blocks);
        Some(())
    }

    /// The condition, with a type assertion before `inst` if its type is wider than `Bool`.
    fn condition(&mut self, inst: Inst, cond: Value) -> Option<Value> {
        let ty = self.func.ty(cond);
        let types = &self.r.cx.types;
        if self.func.level == Level::Low || ty == Type::BOOL || !types.is_subtype(Type::BOOL, ty) {
            return Some(cond);
        }
        let wanted = self.func.constant(self.r.cx.types.type_constant(Type::BOOL));
        self.insert_before(inst, Op::Builtin(Builtin::Typeassert), &[cond, wanted], Type::BOOL)
    }

    pub(super) fn next_block(&mut self, next: Option<Block>, at: Span) -> Option<Block> {
        match next {
            Some(next) => Some(next),
            None => self.r.fail(ResolveError::FallsOffEnd, at),
        }
    }

    pub(super) fn set(&mut self, inst: Inst, op: Op, results: &[Type], exprs: &[&Expr<'a>]) -> Option<()> {
        let values = self.operands(op, results, exprs)?;
        self.func.set_op(inst, op, &values);
        Some(())
    }

    pub(super) fn jump(&mut self, inst: Inst, op: Op, args: &[Value], blocks: &[Block]) -> Option<()> {
        self.func.set_op(inst, op, args);
        self.func.set_inst_blocks(inst, blocks);
        Some(())
    }

    fn expression(
        &mut self,
        inst: Inst,
        row: &Row<'a>,
        expr: &Expr<'a>,
        results: &[Type],
        at: At,
        next: Option<Block>,
    ) -> Option<()> {
        match &expr.kind {
            ExprKind::Call(callee, args) if row.label.is_some() || !self.is_literal_call(callee, args) => {
                let args: Vec<&Expr<'a>> = args.iter().collect();
                self.call(inst, row.label, callee, &args, results, expr.span)
            }
            ExprKind::Infix(op, args) if row.label.is_none() && is_infix_literal(op, args) => {
                self.set(inst, Op::Copy, results, &[expr])
            }
            ExprKind::Infix(..) if regrouped(expr).is_some() => {
                let number = regrouped(expr)?;
                self.set(inst, Op::Copy, results, &[&number])
            }
            ExprKind::Infix(op, args) if op == "=" => self.assign_global(inst, args, results, expr.span),
            ExprKind::Infix(op, args) => {
                let args = flattened(op, args);
                self.named_call(inst, row.label, std::slice::from_ref(op), true, &args, results, expr.span)
            }
            ExprKind::Prefix(op, arg) if row.label.is_some() || !self.is_prefixed_constant(arg)? => {
                self.named_call(inst, row.label, std::slice::from_ref(op), true, &[arg], results, expr.span)
            }
            ExprKind::Head(head, args) => self.head(inst, head, args, results, expr.span, at, next),
            ExprKind::Name(name) => match self.argument(name, expr.span)? {
                Some(value) => {
                    self.func.set_op(inst, Op::Copy, &[value]);
                    Some(())
                }
                None => self.global_or_constant(inst, name, expr, results),
            },
            ExprKind::Path(parts) => self.global_or_constant(inst, last_name(parts), expr, results),
            _ => self.set(inst, Op::Copy, results, &[expr]),
        }
    }

    /// Whether `-x` and `!x` in a row are constants: `-Inf`, `!isletter`. Applied to an argument they are
    /// calls.
    fn is_prefixed_constant(&mut self, arg: &Expr<'a>) -> Option<bool> {
        let ExprKind::Name(name) = &arg.kind else { return Some(false) };
        Some(self.argument(name, arg.span)?.is_none())
    }

    /// A row that consists of a name: reads a global variable or is a constant.
    fn global_or_constant(
        &mut self,
        inst: Inst,
        name: &str,
        expr: &Expr<'a>,
        results: &[Type],
    ) -> Option<()> {
        let interned = self.r.cx.names.intern(name);
        if !self.r.consts.contains_key(name) && self.r.variable(name).is_some() {
            self.func.set_op(inst, Op::GetGlobal(interned), &[]);
            return Some(());
        }
        let asserted = results.first().map(|&ty| self.r.cx.types.kind(ty));
        let is_function = matches!(asserted, Some(TypeKind::Function(_)));
        // The type of `Base.IOBuffer::Type{T}` determines its value.
        if let Some(&TypeKind::TypeOf(of)) = asserted
            && !self.r.consts.contains_key(name)
        {
            let value = self.func.constant(self.r.cx.types.type_constant(of));
            self.func.set_op(inst, Op::Copy, &[value]);
            return Some(());
        }
        // As does a type with a single object.
        if self.r.reads_rows
            && !is_function
            && let Some(&ty) = results.first()
            && self.r.cx.types.is_singleton(ty)
            && !self.r.consts.contains_key(name)
            && !is_literal_name(name)
        {
            let value = self.func.constant(Const::Singleton(ty));
            self.func.set_op(inst, Op::Copy, &[value]);
            return Some(());
        }
        let known = is_function
            || self.r.looks_like_type(expr)
            || self.r.consts.contains_key(name)
            || self.r.is_function_name(name)
            || is_literal_name(name);
        if !known && matches!(expr.kind, ExprKind::Path(_)) && self.undefined_late(inst, interned, results) {
            return Some(());
        }
        if !known {
            return self.r.unknown_name(name, expr.span);
        }
        self.set(inst, Op::Copy, results, &[expr])
    }

    /// `(Main.x = value)`.
    fn assign_global(&mut self, inst: Inst, args: &[Expr<'a>], results: &[Type], at: Span) -> Option<()> {
        let [target, value] = args else { return self.r.fail(ResolveError::NotAValue, at) };
        let name = match &target.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => last_name(parts),
            _ => return self.r.fail(ResolveError::NotAValue, target.span),
        };
        if self.r.consts.contains_key(name) {
            let what = format!("an assignment of the constant `{name}`");
            return self.r.fail(ResolveError::Unsupported { what, why: "constants keep their value" }, at);
        }
        let name = self.r.cx.names.intern(name);
        let module = self.func.constant(Const::Module(self.r.cx.names.intern("Main")));
        let symbol = self.func.constant(Const::Symbol(name));
        let value = self.global_value(name, value, results)?;
        self.func.set_op(inst, Op::Builtin(Builtin::Setglobal), &[module, symbol, value]);
        Some(())
    }

    /// A value to be assigned to a global. A plain literal gets the type of the global.
    fn global_value(&mut self, name: Name, value: &Expr<'a>, results: &[Type]) -> Option<Value> {
        if !is_plain(value) {
            return self.operand(value);
        }
        let text = self.r.cx.clone();
        let wanted = self.r.variable(text.names.text(name)).or_else(|| results.first().copied());
        self.constant(value, wanted)
    }

    /// A call without `invoke`.
    pub(super) fn call(
        &mut self,
        inst: Inst,
        label: Option<CallLabel>,
        callee: &Expr<'a>,
        args: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let (parts, qualified) = match &callee.kind {
            ExprKind::Name(name) => match self.argument(name, callee.span)? {
                Some(_) => return self.dynamic_call(inst, callee, args, results),
                None => (std::slice::from_ref(name), false),
            },
            ExprKind::Path(parts) => (&parts[..], true),
            _ => return self.dynamic_call(inst, callee, args, results),
        };
        let name = last_name(parts);
        // A literal as a callee: no method accepts the call.
        if is_literal_name(name) {
            return self.dynamic_call(inst, callee, args, results);
        }
        if Intrinsic::from_name(name).is_none()
            && Builtin::from_name(name).is_none()
            && self.r.looks_like_type(callee)
        {
            return self.dynamic_call(inst, callee, args, results);
        }
        self.named_call(inst, label, parts, qualified, args, results, at)
    }

    /// A call of a value. Constructors of exceptions, and builtins held in values, are resolved here.
    fn dynamic_call(
        &mut self,
        inst: Inst,
        callee: &Expr<'a>,
        args: &[&Expr<'a>],
        results: &[Type],
    ) -> Option<()> {
        if self.r.looks_like_type(callee) {
            let ty = self.r.ty(callee)?;
            if self.r.makes_exception(ty) && self.make_exception(inst, ty, args)? {
                return Some(());
            }
        }
        if let Some(name) = self.held_operation(callee) {
            let parts = [Cow::from(BASE), Cow::from(name)];
            return self.named_call(inst, None, &parts, true, args, results, callee.span);
        }
        let mut exprs = Vec::with_capacity(args.len() + 1);
        exprs.push(callee);
        exprs.extend_from_slice(args);
        self.set(inst, Op::Call, results, &exprs)
    }

    /// The name of the builtin or intrinsic that the callee holds, as in `%1 = Core.sizeof`, `(%1)(x)`. The
    /// callee's type determines it.
    fn held_operation(&mut self, callee: &Expr<'a>) -> Option<String> {
        let ExprKind::Ssa(..) = callee.kind else { return None };
        let value = self.operand(callee)?;
        let TypeKind::Function(function) = *self.r.cx.types.kind(self.func.ty(value)) else { return None };
        let names = &self.r.cx.names;
        let (module, name) = (names.text(function.module), names.text(function.name));
        let is_operation = Builtin::from_name(name).is_some() || Intrinsic::from_name(name).is_some();
        let is_own = self.r.functions.defines(&[Cow::from(module), Cow::from(name)]);
        (is_operation && !is_own).then(|| name.to_owned())
    }

    /// A call of an intrinsic, a builtin or a function by its name.
    fn named_call(
        &mut self,
        inst: Inst,
        label: Option<CallLabel>,
        parts: &[Cow<'a, str>],
        qualified: bool,
        args: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let name = last_name(parts);
        // A function of the program may share the name of a builtin; only the label distinguishes them.
        let own = label == Some(CallLabel::Dynamic) && self.r.functions.defines(parts);
        if let Some(op) = Intrinsic::from_name(name).filter(|_| !own) {
            return self.intrinsic(inst, op, args, results, at);
        }
        if let Some(op) = Builtin::from_name(name).filter(|_| !own) {
            return self.builtin(inst, op, args, results, at);
        }
        if name == "fpislt" && !self.r.functions.defines(parts) && self.func.level == Level::High {
            return self.comes_before(inst, args, at);
        }
        let must_exist = matches!(label, Some(CallLabel::Intrinsic | CallLabel::Builtin));
        if !self.r.is_function_name(name) {
            let known =
                || Intrinsic::ALL.iter().map(|i| i.name()).chain(Builtin::ALL.iter().map(|b| b.name()));
            let misspelt = label.is_none() && is_near(name, known());
            if must_exist || !qualified || misspelt {
                return self.r.unknown_name(name, at);
            }
        }
        if name == "getproperty"
            && let [memory, field] = args
            && self.empty_memory(inst, memory, field, results).is_some()
        {
            return Some(());
        }
        let function = self.func.constant(Const::Singleton(self.r.function_type(parts)));
        let mut values = vec![function];
        values.extend(self.operands(Op::Call, results, args)?);
        self.func.set_op(inst, Op::Call, &values);
        Some(())
    }

    /// Fails unless `name` accepts this number of operands.
    pub(super) fn count_operands(
        &mut self,
        name: &dyn Display,
        arity: Arity,
        given: usize,
        at: Span,
    ) -> Option<()> {
        if arity.allows(given) {
            return Some(());
        }
        self.r.fail(ResolveError::OperandCount { name: name.to_string(), given, arity }, at)
    }

    pub(super) fn intrinsic(
        &mut self,
        inst: Inst,
        op: Intrinsic,
        args: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        if op == Intrinsic::Cglobal {
            return self.c_global(inst, args, results, at);
        }
        if let Some(why) = op.refusal() {
            return self.refuse_late(inst, format!("`{op}`"), why, at);
        }
        self.count_operands(&op, op.text_arity(), args.len(), at)?;
        let mut args = args;
        if op.takes_type() {
            let Some(target) = self.new_type(args[0])? else {
                let what = format!("`{op}` to a type that is computed");
                return self.refuse_late(
                    inst,
                    what,
                    "the types of conversions are known before the program runs",
                    at,
                );
            };
            if results.first().is_none_or(|&result| result != target) {
                let named = self.r.cx.types.display(target).to_string();
                let row =
                    results.first().map_or_else(String::new, |&r| self.r.cx.types.display(r).to_string());
                return self.r.fail(ResolveError::ConversionTarget { named, row }, args[0].span);
            }
            args = &args[1..];
            // Julia prints integers of all widths alike. A literal that is extended to at most 64 bits
            // already denotes the extended value, so it is copied. An extension to more bits stays.
            let is_narrow = self.r.cx.types.primitive(target).is_some_and(|(bits, _)| bits <= 64);
            if op == Intrinsic::SextInt && is_narrow && args.first().is_some_and(|value| is_plain(value)) {
                return self.set(inst, Op::Copy, results, args);
            }
        }
        let mut values = self.operands(Op::Intrinsic(op), results, args)?;
        let op = if self.func.level == Level::High { self.on_addresses(inst, op, &mut values)? } else { op };
        self.func.set_op(inst, Op::Intrinsic(op), &values);
        Some(())
    }

    /// Inserts the bit casts that Julia's intrinsics omit, and returns the intrinsic to use.
    ///
    /// Julia's integer comparisons accept any operands of equal size and compare their bits: addresses with `UInt64`, in
    /// which Julia up to 1.11 also keeps addresses, and floats, in sorting. This IR has distinct types for them.
    fn on_addresses(&mut self, inst: Inst, op: Intrinsic, values: &mut [Value]) -> Option<Intrinsic> {
        let is_pointer = |body: &Self, value: Value| body.r.cx.types.pointee(body.func.ty(value)).is_some();
        match (op, &values[..]) {
            (Intrinsic::AddPtr, &[base, _]) if self.func.ty(base) == Type::UINT64 => Some(Intrinsic::AddInt),
            (Intrinsic::SubPtr, &[base, _]) if self.func.ty(base) == Type::UINT64 => Some(Intrinsic::SubInt),
            (_, &[x, y])
                if op.shape() == Shape::IntCompare
                    && self.func.ty(x) != self.func.ty(y)
                    && (is_pointer(self, x) || is_pointer(self, y)) =>
            {
                for value in values.iter_mut() {
                    if is_pointer(self, *value) {
                        let cast = Op::Intrinsic(Intrinsic::Bitcast);
                        *value = self.insert_before(inst, cast, &[*value], Type::UINT64)?;
                    }
                }
                Some(op)
            }
            (_, &[x, y]) if op.shape() == Shape::IntCompare && self.func.ty(x) == self.func.ty(y) => {
                let bits = match self.func.ty(x) {
                    Type::FLOAT64 => Type::INT64,
                    Type::FLOAT32 => Type::INT32,
                    Type::FLOAT16 => Type::INT16,
                    _ => return Some(op),
                };
                for value in values.iter_mut() {
                    let cast = Op::Intrinsic(Intrinsic::Bitcast);
                    *value = self.insert_before(inst, cast, &[*value], bits)?;
                }
                Some(op)
            }
            _ => Some(op),
        }
    }

    fn builtin(
        &mut self,
        inst: Inst,
        op: Builtin,
        args: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        if op == Builtin::Svec && self.splatted.contains(&inst) && self.func.level == Level::High {
            return self.simple_vector(inst, args);
        }
        if let Some(why) = op.refusal() {
            return self.refuse_late(inst, format!("`{op}`"), why, at);
        }
        self.count_operands(&op, op.arity(), args.len(), at)?;
        if op == Builtin::ApplyType
            && let [generic, ..] = args
            && matches!(&generic.kind, ExprKind::Name(_) | ExprKind::Path(_))
            && self.r.source_text(generic.span).trim_start_matches("Core.") == "NamedTuple"
        {
            let why = "the names and types of a named tuple are known before the program runs";
            return self.refuse_late(inst, format!("`{op}` of `NamedTuple`"), why, at);
        }
        if op == Builtin::Getfield
            && let [memory, field, ..] = args
            && self.empty_memory(inst, memory, field, results).is_some()
        {
            return Some(());
        }
        if op == Builtin::Getfield
            && let [object, field, ..] = args
            && self.is_unknown_field(object, field)?
        {
            let what = format!("the field `{}`", self.r.source_text(field.span));
            return self.refuse_late(inst, what, unknown::WHY, at);
        }
        if op == Builtin::Getglobal
            && let [module, symbol] = args
            && let Some(path) = self.undeclared_global(module, symbol)
        {
            let ExprKind::Path(parts) = &path.kind else { return None };
            return self.global_or_constant(inst, last_name(parts), &path, results);
        }
        if op == Builtin::Setglobal
            && let [module, symbol, value, order @ ..] = args
        {
            let mut values = self.operands(Op::Builtin(op), &[], &[module, symbol])?;
            let value = match self.func.as_const(values[1]) {
                Some(&Const::Symbol(name)) => self.global_value(name, value, results)?,
                _ => self.operand(value)?,
            };
            values.push(value);
            values.extend(self.operands(Op::Builtin(op), &[], order)?);
            self.func.set_op(inst, Op::Builtin(op), &values);
            return Some(());
        }
        // A test against a widened type would accept an array of strings as a `Vector{<:Real}`.
        let mut tested = Vec::new();
        for &n in tested_operands(op) {
            if let Some(of) = args.get(n) {
                self.declare_tested(of);
            }
            let Some(of) = args.get(n).filter(|of| self.r.looks_like_type(of)) else { continue };
            match self.r.tested_type(of) {
                Tested::Exact(ty) => tested.push((n, ty)),
                Tested::Widened if op != Builtin::Typeassert => {
                    let what = format!("`{op}` of `{}`", self.r.source_text(of.span));
                    return self.refuse_late(inst, what, "the type has no form of its own here", at);
                }
                Tested::Widened | Tested::Faulty => {}
            }
        }
        let mut values = self.operands(Op::Builtin(op), results, args)?;
        if self.is_of_atomic_memory(op, &values) {
            let what = format!("`{op}` of memory with atomic elements");
            return self.refuse_late(inst, what, "elements are plain memory", at);
        }
        for (n, ty) in tested {
            values[n] = self.func.constant(self.r.cx.types.type_constant(ty));
        }
        if op == Builtin::ApplyIterate && self.func.level == Level::High {
            for value in values.iter_mut().skip(2) {
                *value = self.iterated(inst, *value)?;
            }
        }
        if let (Builtin::ApplyType, [generic, _]) = (op, args)
            && let Some(rank) = array_rank(generic)
        {
            // `Vector` resolves to `Array`, so the number of dimensions becomes an operand.
            values.push(self.func.constant(Const::Bits { ty: Type::INT64, bits: rank }));
        }
        self.func.set_op(inst, Op::Builtin(op), &values);
        Some(())
    }

    /// Whether an operation makes, reads or writes an `AtomicMemory{T}`, a type that has no objects here.
    fn is_of_atomic_memory(&self, op: Builtin, values: &[Value]) -> bool {
        let is_access = op == Builtin::Getfield || op.to_string().starts_with("memory");
        let Some(&memory) = values.first().filter(|_| is_access && self.r.reads_rows) else { return false };
        let ty = match self.func.as_const(memory) {
            Some(&Const::Type { of, .. }) => of,
            _ => self.func.ty(memory),
        };
        let cx = &self.r.cx;
        match *cx.types.kind(ty) {
            TypeKind::Nominal { decl, .. } | TypeKind::Generic(decl) => {
                let name = cx.names.text(cx.types.decl(decl).name);
                matches!(name, "AtomicMemory" | "AtomicMemoryRef") && self.r.library_decl(name) == Some(decl)
            }
            _ => false,
        }
    }

    /// Whether a row reads a field that a guessed type does not have.
    pub(super) fn is_unknown_field(&mut self, object: &Expr<'a>, field: &Expr<'a>) -> Option<bool> {
        if !self.r.reads_rows || self.r.guessed.borrow().is_empty() {
            return Some(false);
        }
        let ty = match &object.kind {
            ExprKind::Ssa(..) | ExprKind::Slot(..) | ExprKind::Name(_) => {
                let value = self.operand(object)?;
                self.func.ty(value)
            }
            _ => return Some(false),
        };
        let ExprKind::Symbol(name) = &unquote(field).kind else { return Some(false) };
        let name = self.r.cx.names.intern(name);
        Some(self.r.guessed_decl(ty).is_some() && self.r.cx.types.field_index(ty, name).is_none())
    }

    /// Declares a name in a type test as the name of a type, if it is not one.
    fn declare_tested(&mut self, of: &Expr<'a>) {
        let ExprKind::Path(parts) = &of.kind else { return };
        let name = last_name(parts);
        let is_other = self.r.looks_like_type(of) || self.r.consts.contains_key(name);
        if self.r.reads_rows && !is_other && self.r.variable(name).is_none() {
            self.r.declare_unknown(name, of.span);
        }
    }

    /// `getglobal(M, :x)` in a dump as `M.x`, if the text does not declare the variable.
    fn undeclared_global(&mut self, module: &Expr<'a>, symbol: &Expr<'a>) -> Option<Expr<'a>> {
        let mut parts = match &module.kind {
            ExprKind::Name(name) => vec![name.clone()],
            ExprKind::Path(parts) => parts.clone(),
            _ => return None,
        };
        let ExprKind::Symbol(name) = &unquote(symbol).kind else { return None };
        if !self.r.reads_rows || self.r.consts.contains_key(name) || self.r.variable(name).is_some() {
            return None;
        }
        parts.push(name.clone());
        Some(Expr::new(symbol.span, ExprKind::Path(parts)))
    }

    /// `Core.svec(…)` whose elements a splatting call reads: a tuple.
    fn simple_vector(&mut self, inst: Inst, args: &[&Expr<'a>]) -> Option<()> {
        let values = self.operands(Op::Builtin(Builtin::Tuple), &[], args)?;
        let types: Vec<Type> = values.iter().map(|&value| self.func.ty(value)).collect();
        let ty = self.r.cx.types.tuple(&types).ok()?;
        self.func.set_op(inst, Op::Builtin(Builtin::Tuple), &values);
        if let Some(result) = self.func.result(inst) {
            self.func.set_result_type(result, ty);
        }
        Some(())
    }

    /// A container that a splatting call can read: tuples, arrays and memories unchanged; for other objects a call to
    /// `Base.splat_elements` of the prelude, which iterates over them.
    fn iterated(&mut self, inst: Inst, container: Value) -> Option<Value> {
        let ty = self.func.ty(container);
        let types = &self.r.cx.types;
        let is_object = matches!(types.kind(ty), TypeKind::Nominal { .. }) && types.is_concrete(ty);
        if !is_object || types.array_parts(ty).is_some() || types.memory_element(ty).is_some() {
            return Some(container);
        }
        let parts = [Cow::from(BASE), Cow::from("splat_elements")];
        let function = self.func.constant(Const::Singleton(self.r.function_type(&parts)));
        self.insert_before(inst, Op::Call, &[function, container], Type::ANY)
    }

    /// The value and type of an argument given only by its type, as in `invoke f(::Nothing)`.
    fn only_value(&mut self, ty: &Expr<'a>, at: Span) -> Option<(Value, Type)> {
        let ty = self.r.ty(ty)?;
        let constant = match *self.r.cx.types.kind(ty) {
            TypeKind::TypeOf(of) => self.r.cx.types.type_constant(of),
            _ if self.r.cx.types.is_singleton(ty) => Const::Singleton(ty),
            _ => {
                let what =
                    format!("an argument without its value, of type `{}`", self.r.cx.types.display(ty));
                let why = "only the value of a type with one value is known";
                return self.r.fail(ResolveError::Unsupported { what, why }, at);
            }
        };
        Some((self.func.constant(constant), ty))
    }

    /// Resolves `getfield(Memory{T}, :instance)`, Julia's shared empty `Memory` of a type, to an allocation
    /// of an empty one, which differs only in its address. `None` if the operands have another form.
    fn empty_memory(
        &mut self,
        inst: Inst,
        memory: &Expr<'a>,
        field: &Expr<'a>,
        results: &[Type],
    ) -> Option<()> {
        let is_instance = match &field.kind {
            ExprKind::Symbol(name) => name == "instance",
            ExprKind::QuoteNode(quoted) => {
                matches!(&quoted.kind, ExprKind::Symbol(name) if name == "instance")
            }
            _ => false,
        };
        let &[result] = results else { return None };
        if !is_instance
            || !self.r.looks_like_type(memory)
            || self.r.cx.types.memory_element(result).is_none()
            || self.r.ty(memory) != Some(result)
        {
            return None;
        }
        let ty = self.func.constant(self.r.cx.types.type_constant(result));
        let length = self.func.constant(Const::Bits { ty: Type::INT64, bits: 0 });
        self.func.set_op(inst, Op::Builtin(Builtin::Memorynew), &[ty, length]);
        Some(())
    }

    /// `invoke callee(args…)`.
    fn invoke(
        &mut self,
        inst: Inst,
        callee: &Expr<'a>,
        args: &[Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let low = self.func.level == Level::Low;
        if !low && self.r.looks_like_type(callee) {
            let ty = self.r.ty(callee)?;
            let args: Vec<&Expr<'a>> = args.iter().collect();
            if self.r.makes_exception(ty) && self.make_exception(inst, ty, &args)? {
                return Some(());
            }
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        let mut types = Vec::with_capacity(args.len());
        let callee = if low { Err(callee) } else { Ok(self.invoked(callee)?) };
        if let Ok((value, _)) = callee {
            values.push(value);
        }
        for arg in args {
            if let ExprKind::Annotated(None, ty) = &arg.kind {
                let (value, ty) = self.only_value(ty, arg.span)?;
                types.push(ty);
                values.push(value);
                continue;
            }
            let regrouped = regrouped(arg);
            let arg = regrouped.as_ref().unwrap_or(arg);
            let annotation = match &arg.kind {
                ExprKind::Annotated(Some(_), ty) => Some(self.r.ty(ty)?),
                _ => None,
            };
            let value = if is_plain(arg) { self.constant(arg, None) } else { self.operand(arg) }?;
            types.push(annotation.unwrap_or(self.func.ty(value)));
            values.push(value);
        }
        match callee {
            Ok((_, function)) => {
                let Some(&result) = results.first() else {
                    return self.r.fail(ResolveError::MissingType, at);
                };
                let data = CalleeData::Method { function, args: types.into(), result };
                let op = Op::Invoke(self.func.add_callee(data));
                self.func.set_op(inst, op, &values);
            }
            Err(callee) => {
                let symbol = match &callee.kind {
                    ExprKind::Name(name) => self.r.cx.names.intern(name),
                    _ => return self.r.fail(ResolveError::NotAValue, callee.span),
                };
                let data = CalleeData::Symbol { symbol, params: types.into(), results: results.into() };
                let op = Op::CallSymbol(self.func.add_callee(data));
                self.func.set_op(inst, op, &values);
            }
        }
        Some(())
    }

    /// The function object of an `invoke` and its type.
    fn invoked(&mut self, callee: &Expr<'a>) -> Option<(Value, Type)> {
        let parts = match &callee.kind {
            ExprKind::Annotated(Some(object), ty) => {
                let ty = self.r.ty(ty)?;
                return Some((self.invoked(object)?.0, ty));
            }
            ExprKind::Name(name) => match self.argument(name, callee.span)? {
                Some(value) => return Some((value, self.func.ty(value))),
                None => std::slice::from_ref(name),
            },
            ExprKind::Path(parts) => &parts[..],
            _ => {
                let value = self.operand(callee)?;
                let ty = match self.func.as_const(value) {
                    Some(&Const::Type { of, .. }) => self.r.cx.types.type_of(of).unwrap_or(Type::DATATYPE),
                    _ => self.func.ty(value),
                };
                return Some((value, ty));
            }
        };
        if self.r.looks_like_type(callee) {
            let of = self.r.ty(callee)?;
            let value = self.func.constant(self.r.cx.types.type_constant(of));
            return Some((value, self.r.cx.types.type_of(of).unwrap_or(Type::DATATYPE)));
        }
        let ty = self.r.function_type(parts);
        Some((self.func.constant(Const::Singleton(ty)), ty))
    }
}
