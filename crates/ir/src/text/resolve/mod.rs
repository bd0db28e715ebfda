//! Turns the syntax tree into a [`Module`]: names get their meaning, literals their type, blocks their
//! terminators.
//!
//! | file | translates |
//! |---|---|
//! | `types` | type expressions into [`Type`](crate::Type)s |
//! | `exact` | types of tests into types with their own variables |
//! | `declarations` | declarations of types |
//! | `term` | literals and constructors into constants |
//! | `body` | rows into instructions |
//! | `call` | callees and statements into operations |
//! | `head` | `$(Expr(…))` into operations |
//! | `functions` | names of functions into their modules |
//! | `statics` | the `where` of a signature into static parameters |
//! | `low` | rows of low IR into operations |
//! | `handlers` | the `leave` of Julia up to 1.10 into the later form |
//! | `exceptions` | constructors of exceptions into `%new` |
//! | `unknown` | undeclared types and constants of dumps into throws |
//! | `late` | constructs without a meaning into throws |
//! | `spelling` | which expressions are literals, which rows are only hints |
//! | `hints` | inlining hints of functions and calls |
//! | `prelude` | names of Julia's library into types |
//! | `created` | the types of `%new` |
//! | `narrow` | φ, φᶜ and `return` of narrower types than their operands into assertions |
//! | `widths` | decimal integers into constants where rows do not determine their types |
//! | `near` | unknown names into suggestions |
//!
//! **Modules.** A function has a module (`functions`); nothing else does: `Base.add_int`,
//! `Core.Intrinsics.add_int` and `add_int` are the same, as are `Main.throw` and `throw`. A callee's name is,
//! in this order: an argument, an intrinsic, a builtin, a type, a function. A name used as an operand is an
//! argument, a literal (`nothing`, `NaN`), a `const`, a type, a module or a function; a statement that names
//! a declared global reads it.
//!
//! All faults are collected; a row with a fault leaves a hole that later rows do not report again.

mod body;
mod bytes;
mod call;
mod created;
mod declarations;
mod error;
mod exact;
mod exceptions;
mod exported;
mod expression;
mod former;
mod functions;
mod handlers;
mod head;
mod hints;
mod late;
mod library_literal;
mod low;
mod narrow;
mod near;
mod prelude;
mod spelling;
mod statics;
mod term;
mod types;
mod unknown;
mod widths;

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use cranelift_entity::EntityRef;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ast::{self, Expected, Expr, ExprKind};
use crate::base_fn::BaseFn;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::context::Context;
use crate::diag::{Diagnostic, Diagnostics, Finding, SourceFile, Span};
use crate::function_name::MAIN;
use crate::intrinsic::Intrinsic;
use crate::module::{Global, GlobalKind, Module, ModuleError};
use crate::names::Name;
use crate::op::Level;
use crate::types::{Decl, Type};

pub use error::ResolveError;
pub use expression::{Expression, read_expression};
use functions::Functions;
pub use functions::{Alone, Surroundings};
pub use term::Term;
use types::TypeVar;

/// A call with constant arguments: run by a check, or requested by a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The call's place in its source.
    pub span: Span,
    /// The callee: a function, or an object.
    pub callee: Term,
    pub args: Vec<Term>,
}

/// A test in a text.
#[derive(Clone, Debug)]
pub struct Check {
    /// The span of its line.
    pub span: Span,
    pub call: Call,
    /// The expected outcome.
    pub outcome: Outcome,
}

/// The expected outcome of a check's call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It returns this.
    Returns(Term),
    /// It ends with an uncaught exception of this type.
    Throws(Type),
}

/// The content of a source.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Functions and globals.
    pub module: Module,
    /// The types that it declares, in order, followed by the undeclared types that it names and that were
    /// guessed.
    pub types: Vec<Decl>,
    /// Tests, in order.
    pub checks: Vec<Check>,
}

/// Reads a source. If the findings contain errors, the unit lacks the faulty parts.
pub fn read(source: &SourceFile, cx: &Arc<Context>) -> (Unit, Diagnostics) {
    read_among(source, cx, &Alone)
}

/// Like [`read`], among other programs.
pub fn read_among(source: &SourceFile, cx: &Arc<Context>, others: &dyn Surroundings) -> (Unit, Diagnostics) {
    let (file, diagnostics) = super::parse(source);
    let mut resolver = Resolver::new(source.text(), cx, diagnostics, Functions::new(others));
    let unit = resolver.file(&file);
    (unit, resolver.diagnostics)
}

/// Like [`read`], for a text of Julia's library: the name of a builtin means the builtin, even where a
/// program declares a type with that name.
pub fn read_library(source: &SourceFile, cx: &Arc<Context>) -> (Unit, Diagnostics) {
    let (file, diagnostics) = super::parse(source);
    let mut resolver = Resolver::new(source.text(), cx, diagnostics, Functions::new(&Alone));
    resolver.is_library = true;
    let unit = resolver.file(&file);
    (unit, resolver.diagnostics)
}

/// Reads a call such as `fib(35)`, which may use functions of `module`.
pub fn read_call(source: &SourceFile, module: &Module) -> Result<Call, Diagnostics> {
    let (expr, diagnostics) = super::parse::parse_expr(source);
    let names = &module.cx.names;
    let mut functions = Functions::new(&Alone);
    for (_, func) in module.funcs() {
        let function = func.function_name(&module.cx);
        let path = function.map_or(MAIN, |function| names.text(function.module));
        functions.define(path, names.text(func.name));
    }
    let mut resolver = Resolver::new(source.text(), &module.cx, diagnostics, functions);
    let call = expr.and_then(|expr| resolver.call(&expr));
    match call {
        Some(call) if !resolver.diagnostics.has_errors() => Ok(call),
        _ => Err(resolver.diagnostics),
    }
}

struct Resolver<'a> {
    cx: Arc<Context>,
    source: &'a str,
    diagnostics: Diagnostics,
    /// The level being read: it determines which type names exist and what literals are.
    level: Level,
    type_vars: Vec<(Cow<'a, str>, TypeVar)>,
    /// Set if a type without a form here was read, and widened to a supertype.
    has_widened: bool,
    /// While the type of a test is read: the bounds of the variables not yet bound.
    exact: Option<Vec<(Type, Type)>>,
    /// Among the free variables named so far, the position of the one bound first.
    lowest_free: usize,
    consts: FxHashMap<Cow<'a, str>, Term>,
    globals: FxHashMap<Name, Type>,
    /// Where they are declared.
    global_places: FxHashMap<Name, Span>,
    /// Hidden globals for constants of functions that have an identity.
    hidden: Vec<Global>,
    /// The functions of the source.
    functions: Functions<'a>,
    /// The arguments of the current function, for suggestions.
    arguments: Vec<Cow<'a, str>>,
    /// The number of searches for similar names.
    searches: usize,
    /// The minor version of the text's Julia: some library types differ.
    version: u32,
    /// The closures that the text names, and the number of parameters of their types.
    closures: FxHashMap<&'a str, usize>,
    /// The types declared by guess because the text does not define them, see `unknown`.
    guessed: RefCell<FxHashSet<Decl>>,
    /// The types of which nothing is known, each with its first mention.
    unknown: Vec<(String, Span)>,
    /// Whether rows of a dump are being read: those may have constants unknown here.
    reads_rows: bool,
    /// The unknown constant of the current row.
    unread: Option<String>,
    /// The names in `typeof(name)`: functions, whether or not they are defined here.
    typeof_names: FxHashSet<&'a str>,
    /// Whether the text belongs to Julia's library, where a builtin's name means the builtin whatever else is
    /// declared.
    is_library: bool,
    /// Whether it was reported that the types take too much memory.
    has_most_types: bool,
}

/// The names inside `typeof(…)` anywhere in the text.
fn typeof_names(source: &str) -> FxHashSet<&str> {
    let inside = source.split("typeof(").skip(1);
    inside
        .filter_map(|rest| rest.split_once(')'))
        .map(|(path, _)| path.rsplit('.').next().unwrap_or(path))
        .collect()
}

/// The significant part of a qualified name.
fn last_name<'n>(parts: &'n [Cow<'_, str>]) -> &'n str {
    parts.last().map_or("", |part| part)
}

impl<'a> Resolver<'a> {
    fn new(
        source: &'a str,
        cx: &Arc<Context>,
        diagnostics: Diagnostics,
        functions: Functions<'a>,
    ) -> Resolver<'a> {
        Resolver {
            cx: cx.clone(),
            source,
            diagnostics,
            level: Level::High,
            type_vars: Vec::new(),
            has_widened: false,
            exact: None,
            has_most_types: false,
            lowest_free: usize::MAX,
            consts: FxHashMap::default(),
            globals: FxHashMap::default(),
            global_places: FxHashMap::default(),
            hidden: Vec::new(),
            functions,
            arguments: Vec::new(),
            searches: 0,
            version: prelude::version_of(source),
            closures: unknown::closures(source),
            guessed: RefCell::default(),
            unknown: Vec::new(),
            reads_rows: false,
            unread: None,
            typeof_names: typeof_names(source),
            is_library: false,
        }
    }

    /// Reports a fault; returns `None`.
    fn fail<T>(&mut self, error: impl Finding, at: Span) -> Option<T> {
        self.diagnostics.error(&error, at);
        None
    }

    /// Reports a second definition, with the place of the first.
    fn fail_again(&mut self, error: impl Finding, at: Span, first: Option<Span>) {
        let diagnostic = Diagnostic::error(&error, at);
        self.diagnostics.push(match first {
            Some(first) => diagnostic.with_related(first, "the first one"),
            None => diagnostic,
        });
    }

    fn push_near(&mut self, diagnostic: Diagnostic, near: &[&str]) {
        let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        self.diagnostics.push(match &quoted[..] {
            [] => diagnostic,
            [one] => diagnostic.with_note(format!("there is {one}")),
            several => diagnostic.with_note(format!("there are {}", several.join(", "))),
        });
    }

    /// Whether to search for names similar to another unknown one.
    fn looks_for_similar(&mut self) -> bool {
        self.searches += 1;
        self.searches <= near::SEARCHES
    }

    /// The text of a place, shortened.
    fn source_text(&self, at: Span) -> String {
        self.source.get(at.range()).unwrap_or("").chars().take(60).collect()
    }

    /// Whether a name without module is a function that exists.
    fn is_function_name(&self, name: &str) -> bool {
        self.functions.defines(&[Cow::Borrowed(name)])
            || functions::is_known(name)
            || self.functions.is_exported(name)
            || self.typeof_names.contains(name)
            || !name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#')) && !name.is_empty()
    }

    /// Whether the source defines a function, not a constructor, with this name, qualified or not.
    fn is_own_function(&self, parts: &[Cow<'_, str>]) -> bool {
        self.functions.defines(parts) && !self.is_type_name(last_name(parts))
    }

    fn unknown_name<T>(&mut self, name: &str, at: Span) -> Option<T> {
        let diagnostic = Diagnostic::error(&ResolveError::UnknownName { name: name.to_owned() }, at);
        if !self.looks_for_similar() {
            self.diagnostics.push(diagnostic);
            return None;
        }
        let cx = self.cx.clone();
        let arguments = std::mem::take(&mut self.arguments);
        let consts: Vec<String> = self.consts.keys().map(|k| k.to_string()).collect();
        let functions = self.functions.spelled();
        let globals = self.globals.keys().map(|&name| cx.names.text(name));
        let known = arguments
            .iter()
            .map(|a| &**a)
            .chain(consts.iter().map(String::as_str))
            .chain(functions.iter().map(String::as_str))
            .chain(globals)
            .chain(Intrinsic::ALL.iter().map(|i| i.name()))
            .chain(Builtin::ALL.iter().map(|b| b.name()))
            .chain(BaseFn::ALL.iter().map(|f| f.name()));
        // Functions with this name in other modules are better suggestions than similar names.
        let is_same = |function: &&str| function.rsplit_once('.').is_some_and(|(_, last)| last == name);
        let same: Vec<&str> = functions.iter().map(String::as_str).filter(is_same).collect();
        let near = if same.is_empty() { near::near(name, known) } else { same };
        self.push_near(diagnostic, &near);
        self.arguments = arguments;
        None
    }

    fn file(&mut self, file: &ast::File<'a>) -> Unit {
        let mut module = Module::new(self.cx.clone());
        let mut types = self.declare_types(&file.types);
        self.functions.file(file);
        for global in &file.globals {
            self.global(&mut module, global);
        }
        let mut places = Vec::with_capacity(file.functions.len());
        for function in &file.functions {
            let Some(func) = self.function(function) else { continue };
            let at = function.signature.as_ref().map_or(function.span, |s| s.span);
            let name = func.spelled_name(&self.cx);
            match module.add_func(func) {
                Ok(_) => places.push(at),
                Err(ModuleError::NoFunctionObject) => {
                    self.fail::<()>(ResolveError::MissingSignature, at);
                }
                Err(ModuleError::DuplicateMethod(first)) => {
                    let first = places.get(first.index()).copied();
                    self.fail_again(ResolveError::DuplicateMethod { name }, at, first);
                }
                Err(ModuleError::DuplicateGlobal(_)) => {
                    self.fail::<()>(ResolveError::DuplicateMethod { name }, at);
                }
            }
        }
        for global in std::mem::take(&mut self.hidden) {
            // The text cannot contain this name, so it is free.
            let _ = module.add_global(global);
        }
        self.level = Level::High;
        let checks = file.checks.iter().filter_map(|check| self.check(check)).collect();
        self.warn_of_unknown();
        let mut guessed: Vec<Decl> = self.guessed.take().into_iter().collect();
        guessed.sort_unstable();
        types.extend(guessed);
        Unit { module, types, checks }
    }

    fn global(&mut self, module: &mut Module, decl: &ast::GlobalDecl<'a>) -> Option<()> {
        let (text, at) = &decl.name;
        let name = self.cx.names.intern(text);
        let mut declared = match &decl.ty {
            Some(ty) => Some(self.ty(ty)?),
            None => None,
        };
        let Some(value) = &decl.value else {
            return self.fail(ResolveError::GlobalWithoutValue { name: text.to_string() }, *at);
        };
        let term = match declared {
            Some(ty) => self.converted(value, ty)?,
            None => self.term(value, None)?,
        };
        // `const Alias::Type{T} = T`: as a constant, a type has the type of its object.
        if let (Some(ty), Term::Const(Const::Type { of, .. })) = (declared, &term)
            && self.cx.types.type_of(*of) == Ok(ty)
        {
            declared = Some(term.ty());
        }
        // An array has an identity: naming the constant refers to the global variable's object.
        let (is_const, is_shared) = (decl.kind == GlobalKind::Constant, self.is_shared(&term));
        if decl.kind == GlobalKind::ThreadLocal && is_shared {
            return self.fail(ResolveError::SharedByThreads { name: text.to_string() }, value.span);
        }
        if is_const && !is_shared {
            self.consts.insert(text.clone(), term.clone());
        }
        let ty = declared.unwrap_or(if is_const { term.ty() } else { Type::ANY });
        let init = self.module_literal(term, value.span)?;
        if module.add_global(Global { name, ty, init, kind: decl.kind }).is_err() {
            let first = self.global_places.get(&name).copied();
            self.fail_again(ResolveError::DuplicateGlobal { name: text.to_string() }, *at, first);
            return None;
        }
        self.globals.insert(name, ty);
        self.global_places.insert(name, *at);
        Some(())
    }

    /// The type of a global variable: of the source, or of another program, which is then declared here.
    fn variable(&mut self, name: &str) -> Option<Type> {
        let interned = self.cx.names.intern(name);
        if let Some(&ty) = self.globals.get(&interned) {
            return Some(ty);
        }
        let global = self.functions.others().variable(name)?;
        let ty = global.ty;
        self.globals.insert(interned, ty);
        self.hidden.push(global);
        Some(ty)
    }

    /// Whether a constant, or a part of it, has an identity.
    fn is_shared(&self, term: &Term) -> bool {
        match term {
            Term::Const(_) | Term::Bytes(_) => false,
            Term::Array { .. } => true,
            Term::Aggregate { ty, fields } => {
                self.cx.types.is_mutable(*ty) || fields.iter().any(|field| self.is_shared(field))
            }
        }
    }

    /// Whether an object, or a part of it, has fields without values.
    fn lacks_fields(&self, term: &Term) -> bool {
        match term {
            Term::Const(_) | Term::Bytes(_) | Term::Array { .. } => false,
            Term::Aggregate { ty, fields } => {
                self.cx.types.field_count(*ty) != Some(fields.len())
                    || fields.iter().any(|field| self.lacks_fields(field))
            }
        }
    }

    /// A global variable that holds a constant of a function.
    fn hidden_global(&mut self, term: Term, at: Span) -> Option<Name> {
        let ty = term.ty();
        let init = self.module_literal(term, at)?;
        let mut number = self.hidden.len();
        let name = loop {
            number += 1;
            let name = self.cx.names.intern(&format!("#constant#{number}"));
            if !self.globals.contains_key(&name) {
                break name;
            }
        };
        self.globals.insert(name, ty);
        self.hidden.push(Global { name, ty, init, kind: GlobalKind::Constant });
        Some(name)
    }

    /// The global variable that holds the only task of a program: `jl_get_current_task` returns it, and
    /// random number generators keep their state in it. Julia fills that state at random; here every run
    /// begins with the same numbers.
    fn task(&mut self, at: Span) -> Option<Name> {
        let name = self.cx.names.intern("#task");
        if self.globals.contains_key(&name) {
            return Some(name);
        }
        let task = self.cx.types.find_builtin(self.cx.names.intern("Task"));
        let ty = task.and_then(|decl| self.cx.types.nominal(decl, &[]).ok())?;
        let field = |n: usize| self.cx.types.field_type(ty, n);
        // The square roots of the first primes provide random-looking bits.
        let seeds =
            [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];
        let mut seeds = seeds.into_iter();
        let fields = (0..).map_while(field).map(|field| match field {
            Type::UINT64 => Const::Bits { ty: field, bits: seeds.next().unwrap_or(0x510e_527f_ade6_82d1) },
            Type::ANY => Const::Singleton(Type::NOTHING),
            _ => Const::Bits { ty: field, bits: 0 },
        });
        let fields = fields.map(Term::Const).collect();
        let init = self.module_literal(Term::Aggregate { ty, fields }, at)?;
        self.globals.insert(name, ty);
        self.hidden.push(Global { name, ty, init, kind: GlobalKind::Constant });
        Some(name)
    }

    fn check(&mut self, check: &ast::Check<'a>) -> Option<Check> {
        let call = self.call(&check.call)?;
        let outcome = match &check.expected {
            Expected::Value(value) => Outcome::Returns(self.term(value, None)?),
            Expected::Throws(ty) => Outcome::Throws(self.ty(ty)?),
        };
        Some(Check { span: check.span, call, outcome })
    }

    /// `f(args…)` or `object(args…)`.
    fn call(&mut self, expr: &Expr<'a>) -> Option<Call> {
        let ExprKind::Call(callee, args) = &expr.kind else {
            return self.fail(ResolveError::NotAConstant, expr.span);
        };
        let callee = match &callee.kind {
            ExprKind::Name(name) if self.is_own_function(std::slice::from_ref(name)) => {
                Term::Const(Const::Singleton(self.function_type(std::slice::from_ref(name))))
            }
            ExprKind::Path(parts) if self.is_own_function(parts) => {
                Term::Const(Const::Singleton(self.function_type(parts)))
            }
            _ => self.term(callee, None)?,
        };
        let args = self.terms(args)?;
        Some(Call { span: expr.span, callee, args })
    }
}
