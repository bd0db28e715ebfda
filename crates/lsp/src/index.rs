//! The index of a text: the meaning of each name, and all occurrences of each symbol.
//!
//! ```text
//! syntax tree ──► symbols        a row, a parameter, a block of a function; a function, a type, a global of the file
//!             └─► occurrences    the positions of each symbol, in text order; some of them define it
//! ```
//!
//! The index is made only from the syntax tree, so programs with errors have one, too. Names of functions
//! follow the rules of `docs/ir.md` to the extent that the text determines them; [`crate::rename`] checks its
//! result with the reader.
//!
//! Invariants: occurrences do not overlap and are sorted; spans are inside the text. Cost: linear in the
//! text, times the logarithm of the number of symbols.
//!
//! Not done: names inside `$( … )` that the parser keeps as opaque text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use brolga_ir::builtin::Builtin;
use brolga_ir::diag::Span;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::GlobalKind;
use brolga_ir::text::ast::{self, Expr, ExprKind, Stmt};

/// The meaning of a name. Functions are numbered in the order of the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Symbol {
    /// A row by its label.
    Row { function: u32, label: u32 },
    /// A parameter by its index, from 0.
    Param { function: u32, index: u32 },
    /// A block by its number.
    Block { function: u32, number: u32 },
    /// A function by its module and name, without `Main`.
    Function(String),
    /// A declared type.
    Type(String),
    /// A declared global or constant.
    Global(String),
}

/// An occurrence of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Occurrence {
    pub(crate) span: Span,
    /// The symbol's number in the index.
    pub(crate) symbol: u32,
    pub(crate) is_definition: bool,
}

/// A function of the text.
#[derive(Clone, Debug)]
pub(crate) struct FunctionItem {
    /// From the signature to the end of the body.
    pub(crate) span: Span,
    /// Its name, as written.
    pub(crate) name: String,
    pub(crate) name_span: Span,
    /// The span of the signature; the body's for a dump without one.
    pub(crate) signature: Span,
    pub(crate) is_dump: bool,
    /// The names of its parameters.
    pub(crate) params: Vec<Option<String>>,
    pub(crate) blocks: Vec<BlockItem>,
}

/// A block of a function.
#[derive(Clone, Debug)]
pub(crate) struct BlockItem {
    pub(crate) number: u32,
    pub(crate) span: Span,
    /// The statements, in order.
    pub(crate) rows: Vec<Span>,
}

/// A declared type or global.
#[derive(Clone, Debug)]
pub(crate) struct DeclItem {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) name_span: Span,
    pub(crate) kind: DeclKind,
    /// The fields of a type.
    pub(crate) fields: Vec<(String, Span)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeclKind {
    Struct,
    OtherType,
    Global,
    Const,
}

/// A test of the text.
#[derive(Clone, Debug)]
pub(crate) struct CheckItem {
    pub(crate) span: Span,
    /// The call, as written.
    pub(crate) call: Span,
}

/// The names of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) functions: Vec<FunctionItem>,
    pub(crate) decls: Vec<DeclItem>,
    pub(crate) checks: Vec<CheckItem>,
    /// The rows of all functions, each with its function's number; sorted by start.
    rows: Vec<(Span, u32)>,
}

impl Index {
    /// The names in a tree that was read from `source`.
    pub(crate) fn of(source: &str, file: &ast::File<'_>) -> Index {
        let mut walk = Walk::new(source, file);
        walk.file(file);
        let mut index = walk.index;
        index.occurrences.sort_by_key(|occurrence| (occurrence.span.start, occurrence.span.end));
        index.occurrences.dedup_by(|next, kept| next.span.start < kept.span.end || next.span == kept.span);
        index.rows.sort_by_key(|(span, _)| span.start);
        index
    }

    /// The occurrence at an offset, or the one that ends there.
    pub(crate) fn at(&self, offset: usize) -> Option<Occurrence> {
        let behind = self.occurrences.partition_point(|occurrence| occurrence.span.start as usize <= offset);
        let found = *self.occurrences.get(behind.checked_sub(1)?)?;
        (offset <= found.span.end as usize).then_some(found)
    }

    /// The occurrences of a symbol, in order.
    pub(crate) fn places(&self, symbol: u32) -> impl Iterator<Item = Occurrence> + '_ {
        self.occurrences.iter().filter(move |occurrence| occurrence.symbol == symbol).copied()
    }

    /// The row that contains an offset or ends there, with its function.
    pub(crate) fn row_at(&self, offset: usize) -> Option<(Span, u32)> {
        let behind = self.rows.partition_point(|(span, _)| span.start as usize <= offset);
        let found = *self.rows.get(behind.checked_sub(1)?)?;
        (offset <= found.0.end as usize).then_some(found)
    }

    /// The row that defines a label.
    pub(crate) fn row_of(&self, symbol: u32) -> Option<(Span, u32)> {
        let definition = self.places(symbol).find(|occurrence| occurrence.is_definition)?;
        self.row_at(definition.span.start as usize)
    }
}

/// The walk over the syntax tree that fills the index.
struct Walk<'a> {
    source: &'a str,
    index: Index,
    numbers: BTreeMap<Symbol, u32>,
    types: BTreeSet<String>,
    globals: BTreeSet<String>,
    /// The functions that the text defines, with their modules.
    defined: BTreeSet<String>,
    /// The functions in `defined` that are dumps.
    dumps: BTreeSet<String>,
    /// The function being walked: its number, the names of its parameters, the variables of its `where`.
    function: u32,
    params: BTreeMap<String, u32>,
    vars: BTreeSet<String>,
}

/// A path without a leading `Main`.
fn canonical(path: &[Cow<'_, str>]) -> String {
    let rest = match path {
        [first, rest @ ..] if first == "Main" && !rest.is_empty() => rest,
        all => all,
    };
    rest.join(".")
}

impl<'a> Walk<'a> {
    fn new(source: &'a str, file: &ast::File<'_>) -> Walk<'a> {
        let types = file.types.iter().map(|decl| decl.name.0.to_string()).collect();
        let globals = file.globals.iter().map(|decl| decl.name.0.to_string()).collect();
        let (mut defined, mut dumps) = (BTreeSet::new(), BTreeSet::new());
        for function in &file.functions {
            let callee = function.signature.as_ref().map(|signature| &signature.callee);
            if let Some(ast::Callee::Named(path, _)) = callee {
                defined.insert(canonical(path));
                if function.is_dump {
                    dumps.insert(canonical(path));
                }
            }
        }
        Walk {
            source,
            index: Index::default(),
            numbers: BTreeMap::new(),
            types,
            globals,
            defined,
            dumps,
            function: 0,
            params: BTreeMap::new(),
            vars: BTreeSet::new(),
        }
    }

    fn add(&mut self, symbol: Symbol, span: Span, is_definition: bool) {
        if span.start >= span.end {
            return;
        }
        let symbols = &mut self.index.symbols;
        let symbol = *self.numbers.entry(symbol).or_insert_with_key(|symbol| {
            symbols.push(symbol.clone());
            symbols.len() as u32 - 1
        });
        self.index.occurrences.push(Occurrence { span, symbol, is_definition });
    }

    fn slice(&self, span: Span) -> &'a str {
        self.source.get(span.range()).unwrap_or("")
    }

    /// The last name of a path.
    fn last_part(&self, span: Span) -> Span {
        let text = self.slice(span);
        let at = match text.ends_with('"') {
            true => text.rfind("var\"").unwrap_or(0),
            false => text.rfind('.').map_or(0, |dot| dot + 1),
        };
        // `Base.:+` and `(Base.add_int)`.
        let part = text[at..].trim_end_matches(')');
        let start = at + (part.len() - part.trim_start_matches([':', '(']).len());
        Span::new(span.start + start as u32, span.start + (at + part.len()) as u32)
    }

    fn file(&mut self, file: &ast::File<'_>) {
        for decl in &file.types {
            self.type_decl(decl);
        }
        for decl in &file.globals {
            self.global_decl(decl);
        }
        for (number, function) in file.functions.iter().enumerate() {
            self.function = number as u32;
            self.function(function);
        }
        self.params.clear();
        self.vars.clear();
        for check in &file.checks {
            self.index.checks.push(CheckItem { span: check.span, call: check.call.span });
            self.expr(&check.call);
            match &check.expected {
                ast::Expected::Value(expr) | ast::Expected::Throws(expr) => self.expr(expr),
            }
        }
    }

    fn type_decl(&mut self, decl: &ast::TypeDecl<'_>) {
        let (name, at) = &decl.name;
        let name_span = Span::new(at.start, at.end.min(at.start + name.len() as u32));
        self.add(Symbol::Type(name.to_string()), name_span, true);
        self.vars = decl.params.iter().filter_map(variable).collect();
        self.exprs(&decl.params);
        let mut fields = Vec::new();
        let kind = match &decl.kind {
            ast::TypeDeclKind::Struct { fields: list, .. } => {
                for field in list {
                    fields.push((field.name.to_string(), field.span));
                    field.ty.iter().for_each(|ty| self.expr(ty));
                }
                DeclKind::Struct
            }
            _ => DeclKind::OtherType,
        };
        decl.supertype.iter().for_each(|ty| self.expr(ty));
        self.vars.clear();
        self.index.decls.push(DeclItem { name: name.to_string(), span: decl.span, name_span, kind, fields });
    }

    fn global_decl(&mut self, decl: &ast::GlobalDecl<'_>) {
        let (name, at) = &decl.name;
        self.add(Symbol::Global(name.to_string()), *at, true);
        decl.ty.iter().chain(&decl.value).for_each(|expr| self.expr(expr));
        let kind = if decl.kind == GlobalKind::Constant { DeclKind::Const } else { DeclKind::Global };
        self.index.decls.push(DeclItem {
            name: name.to_string(),
            span: decl.span,
            name_span: *at,
            kind,
            fields: Vec::new(),
        });
    }

    fn function(&mut self, function: &ast::Function<'_>) {
        self.params.clear();
        self.vars.clear();
        let mut item = FunctionItem {
            span: function.span,
            name: "(a dump)".to_owned(),
            name_span: Span::point(function.span.start),
            signature: Span::point(function.span.start),
            is_dump: function.is_dump,
            params: Vec::new(),
            blocks: Vec::new(),
        };
        if let Some(signature) = &function.signature {
            item.span = function.span.to(signature.span);
            item.signature = signature.span;
            self.vars = signature.vars.iter().filter_map(variable).collect();
            match &signature.callee {
                ast::Callee::Named(path, span) => {
                    let name = canonical(path);
                    item.name_span = self.last_part(*span);
                    item.name = path.join(".");
                    // A function named after a type is its constructor.
                    let symbol = match self.types.contains(&name) {
                        true => Symbol::Type(name),
                        false => Symbol::Function(name),
                    };
                    self.add(symbol, item.name_span, true);
                }
                ast::Callee::Object(param) => {
                    item.name = self.slice(param.span).to_owned();
                    item.name_span = param.span;
                    param.ty.iter().for_each(|ty| self.expr(ty));
                }
            }
            for (index, param) in signature.params.iter().enumerate() {
                let name = param.name.as_ref().map(|name| name.to_string());
                if let Some(name) = &name
                    && self.slice(param.span).starts_with(name.as_str())
                {
                    let span = Span::new(param.span.start, param.span.start + name.len() as u32);
                    self.add(Symbol::Param { function: self.function, index: index as u32 }, span, true);
                }
                self.params.extend(name.iter().map(|name| (name.clone(), index as u32)));
                item.params.push(name);
                param.ty.iter().for_each(|ty| self.expr(ty));
            }
            signature.result.iter().chain(&signature.vars).for_each(|ty| self.expr(ty));
        }
        for block in &function.blocks {
            let digits = self.slice(block.span).bytes().take_while(u8::is_ascii_digit).count() as u32;
            let header = Span::new(block.span.start, block.span.start + digits);
            self.add(Symbol::Block { function: self.function, number: block.number }, header, true);
            for row in &block.rows {
                self.row(row);
            }
            let rows = block.rows.iter().map(|row| row.span).collect();
            item.blocks.push(BlockItem { number: block.number, span: header, rows });
        }
        function.shown_result.iter().for_each(|ty| self.expr(ty));
        self.index.functions.push(item);
    }

    fn row(&mut self, row: &ast::Row<'_>) {
        self.index.rows.push((row.span, self.function));
        if let Some((label, span)) = row.result {
            self.add(Symbol::Row { function: self.function, label }, span, true);
        }
        match &row.stmt {
            Stmt::Expr(expr) => self.expr(expr),
            Stmt::Invoke { callee, args, .. } => {
                self.callee(callee);
                self.exprs(args);
            }
            Stmt::Phi(edges) => {
                for edge in edges {
                    self.target(edge.from);
                    edge.value.iter().for_each(|value| self.expr(value));
                }
            }
            Stmt::Pi { value, ty } => {
                self.expr(value);
                self.expr(ty);
            }
            Stmt::PhiC(list) | Stmt::New(list) | Stmt::SplatNew(list) => self.exprs(list),
            Stmt::Upsilon(value) | Stmt::Return(value) => value.iter().for_each(|value| self.expr(value)),
            Stmt::Goto(target) => self.target(*target),
            Stmt::GotoIfNot { cond, target, otherwise, .. } => {
                self.target(*target);
                self.expr(cond);
                otherwise.iter().for_each(|target| self.target(*target));
            }
            Stmt::Unreachable => {}
            Stmt::Enter { target, otherwise, scope } => {
                target.iter().chain(otherwise).for_each(|target| self.target(*target));
                scope.iter().for_each(|scope| self.expr(scope));
            }
        }
        row.ty.iter().for_each(|ty| self.expr(ty));
    }

    fn target(&mut self, target: ast::Target) {
        let number = target.block;
        self.add(Symbol::Block { function: self.function, number }, target.span, false);
    }

    fn exprs(&mut self, list: &[Expr<'_>]) {
        list.iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, expr.span, false),
            ExprKind::Path(path) => self.path(path, expr.span),
            ExprKind::Slot(name, number) => {
                let span = Span::new(expr.span.start, expr.span.start + name.len() as u32);
                if let Some(index) = number.checked_sub(2)
                    && self.slice(span) == name.as_ref()
                {
                    self.add(Symbol::Param { function: self.function, index }, span, false);
                }
            }
            ExprKind::Ssa(label, _) => {
                let length = 1 + self.slice(expr.span).bytes().skip(1).take_while(u8::is_ascii_digit).count();
                let span = Span::new(expr.span.start, expr.span.start + length as u32);
                self.add(Symbol::Row { function: self.function, label: *label }, span, false);
            }
            ExprKind::BlockRef(number) => {
                let number = *number;
                self.add(Symbol::Block { function: self.function, number }, expr.span, false);
            }
            ExprKind::Call(callee, args) => {
                self.callee(callee);
                // `Core.setglobal!(Main, :x, v)` denotes its variable by a symbol.
                if is_of_global(callee)
                    && let Some(arg) = args.get(1)
                    && let ExprKind::Symbol(name) = &arg.kind
                    && self.globals.contains(name.as_ref())
                    && self.slice(arg.span).strip_prefix(':') == Some(name.as_ref())
                {
                    let span = Span::new(arg.span.start + 1, arg.span.end);
                    self.add(Symbol::Global(name.to_string()), span, false);
                }
                self.exprs(args);
            }
            kind => kind.each_child(&mut |child| self.expr(child)),
        }
    }

    fn callee(&mut self, callee: &Expr<'_>) {
        match &callee.kind {
            ExprKind::Name(name) => self.name(name, callee.span, true),
            _ => self.expr(callee),
        }
    }

    fn name(&mut self, name: &str, span: Span, is_callee: bool) {
        let slot = name.strip_prefix('_').and_then(|number| number.parse::<u32>().ok());
        if let Some(&index) = self.params.get(name) {
            self.add(Symbol::Param { function: self.function, index }, span, false);
        } else if let Some(index) = slot.and_then(|slot| slot.checked_sub(2)) {
            self.add(Symbol::Param { function: self.function, index }, span, false);
        } else if !self.vars.contains(name) {
            self.global_name(name, name.to_owned(), span, is_callee);
        }
    }

    fn path(&mut self, path: &[Cow<'_, str>], span: Span) {
        let last = self.last_part(span);
        let Some(name) = path.last() else { return };
        // After the library's modules, a name denotes the library's type or variable, even if the text
        // declares one with the same name.
        if path.first().is_some_and(|module| matches!(&**module, "Base" | "Core")) {
            self.function_name(name, canonical(path), last, true);
        } else {
            self.global_name(name, canonical(path), last, true);
        }
    }

    /// Adds a name that is not an argument; `path` is its canonical path if it denotes a function.
    fn global_name(&mut self, name: &str, path: String, span: Span, is_callee: bool) {
        if self.types.contains(name) {
            self.add(Symbol::Type(name.to_owned()), span, false);
        } else if self.globals.contains(name) {
            self.add(Symbol::Global(name.to_owned()), span, false);
        } else {
            self.function_name(name, path, span, is_callee);
        }
    }

    fn function_name(&mut self, name: &str, path: String, span: Span, is_callee: bool) {
        if Intrinsic::from_name(name).is_some() || Builtin::from_name(name).is_some() {
            return;
        }
        if let Some(function) = self.defined_as(name, &path) {
            self.add(Symbol::Function(function), span, false);
        } else if is_callee {
            self.add(Symbol::Function(path), span, false);
        }
    }

    /// The function of the text denoted by a path.
    fn defined_as(&self, name: &str, path: &str) -> Option<String> {
        if self.defined.contains(path) {
            return Some(path.to_owned());
        }
        let base = format!("Base.{name}");
        if self.defined.contains(&base) {
            return Some(base);
        }
        // The header of a dump has no module: the function may be defined in the library or in any module of
        // the program.
        self.dumps.contains(name).then(|| name.to_owned())
    }
}

/// The name of a type variable: `T`, `T <: Upper`, `T >: Lower`, `T = value`, or `Lower <: T <: Upper`.
fn variable(expr: &Expr<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.to_string()),
        ExprKind::Infix(_, list) => match &list.first()?.kind {
            ExprKind::Infix(_, lower) => lower.last().and_then(variable),
            _ => list.first().and_then(variable),
        },
        _ => None,
    }
}

/// Whether the callee is a builtin whose second operand is the name of a global variable.
fn is_of_global(callee: &Expr<'_>) -> bool {
    let name = match &callee.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Path(path) => path.last(),
        _ => None,
    };
    name.and_then(|name| Builtin::from_name(name)).is_some_and(Builtin::is_of_global)
}
