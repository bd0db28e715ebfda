//! Which function a name means: the module of the functions that a source defines, calls and uses as values.
//!
//! ```text
//! function f(…)            Main.f            invoke f(…), Main.f(…)     Main.f
//! function A.g(…)          A.g               invoke A.g(…), Main.A.g(…) A.g
//! function Base.max(…)     Base.max          Base.max(a, b)             Base.max, whatever Main.max is
//! # signature: gcd(…)      see below
//! ```
//!
//! **References.** A name means the function of its own module if the source, or a program that it sees,
//! defines one. Otherwise it means Base's, as modules see Base's exports, if the source defines such a
//! library function; for bare names, and where there are dumps, also if the source names one; and for names
//! of `Main` in dumps, if Base exports such a function ([`exported`](super::exported)) and nothing else names
//! one of another module. All others stay functions of their module, which another program may define.
//!
//! **Dumps.** The header of a dump has no module, as Julia prints none. If the calls of the source reach the
//! function through the library (`invoke Base.gcd(…)`), the body is the library's; else it is `Main`'s. If
//! Base has the function without a body (`max`, `error`), a dump of it is the library's only if nothing else
//! names it through a program's module. A header with a module (`# signature: Main.gcd(…)`) leaves nothing to
//! guess. Where calls of a dump name one module inside `Main` (`Main.Programs.f`) and the source defines no
//! function there, they mean the body that it has.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::ast::{self, Expected, Expr, ExprKind};
use super::exported::is_exported;
use crate::base_fn::BaseFn;
use crate::builtin::Builtin;
use crate::function_name::{BASE, MAIN, is_library, module_path};
use crate::intrinsic::Intrinsic;
use crate::module::Global;
use crate::op::Level;
use crate::scalar::Numbers;

/// What a source sees of other programs.
pub trait Surroundings {
    /// Whether one of them defines a function with this module and name.
    fn defines(&self, module: &str, name: &str) -> bool;

    /// The global variable with this name that one of them declares, in the source's context.
    fn variable(&self, name: &str) -> Option<Global>;
}

/// No other programs.
pub struct Alone;

impl Surroundings for Alone {
    fn defines(&self, _: &str, _: &str) -> bool {
        false
    }

    fn variable(&self, _: &str) -> Option<Global> {
        None
    }
}

/// Facts about the functions of a source.
pub(super) struct Functions<'e> {
    /// The modules with a function of a name.
    defined: FxHashMap<String, BTreeSet<String>>,
    /// The names that the source qualifies by modules of the library.
    library: FxHashSet<String>,
    /// By name: the modules of programs by which it is qualified.
    programs: FxHashMap<String, BTreeSet<String>>,
    /// By function of `Main`: the module by which the source qualifies it.
    aliases: FxHashMap<String, String>,
    /// The names of dumps without a module that are bodies of library functions.
    bodies: FxHashSet<String>,
    /// Whether there are dumps in the source.
    has_dumps: bool,
    others: &'e dyn Surroundings,
}

impl<'e> Functions<'e> {
    pub(super) fn new(others: &'e dyn Surroundings) -> Functions<'e> {
        Functions {
            defined: FxHashMap::default(),
            library: FxHashSet::default(),
            programs: FxHashMap::default(),
            aliases: FxHashMap::default(),
            bodies: FxHashSet::default(),
            has_dumps: false,
            others,
        }
    }

    pub(super) fn others(&self) -> &'e dyn Surroundings {
        self.others
    }

    pub(super) fn define(&mut self, module: &str, name: &str) {
        self.defined.entry(name.to_owned()).or_default().insert(module.to_owned());
    }

    /// Collects the functions that a source defines, and the modules by which it qualifies names.
    pub(super) fn file(&mut self, file: &ast::File<'_>) {
        let mut called = FxHashSet::default();
        Uses { of: self, called: &mut called }.file(file);
        self.has_dumps = file.functions.iter().any(|function| function.is_dump);
        let mut unstated = BTreeSet::new();
        for function in &file.functions {
            let Some(ast::Signature { callee: ast::Callee::Named(parts, _), .. }) = &function.signature
            else {
                continue;
            };
            match &parts[..] {
                [name] if function.is_dump => {
                    unstated.insert(name.to_string());
                }
                _ if function.level == Level::Low => self.define(MAIN, super::last_name(parts)),
                _ => {
                    let (module, name) = self.module_defined(parts, false);
                    self.define(&module, name);
                }
            }
        }
        for name in unstated {
            let stated = self.defined.get(&name);
            let mut programs = self.programs.get(&name).cloned().unwrap_or_default();
            programs.retain(|module| !stated.is_some_and(|stated| stated.contains(module)));
            let in_library = self.library.contains(&name)
                && !stated.is_some_and(|stated| stated.iter().any(|module| is_library(module)));
            // A module inside `Main` that names a Base export means Base's.
            let is_own = |module: &String| module == MAIN || !is_exported(&name);
            let is_used = programs.iter().any(is_own) || called.contains(&name);
            if in_library && !(is_used && is_known(&name)) {
                self.define(BASE, &name);
                self.bodies.insert(name);
                continue;
            }
            self.define(MAIN, &name);
            let only = programs.pop_first().filter(|module| module != MAIN && programs.is_empty());
            if let Some(module) = only {
                self.aliases.insert(name, module);
            }
        }
    }

    /// Whether the source has a function of this name in this module.
    pub(super) fn is_defined(&self, module: &str, name: &str) -> bool {
        self.defined.get(name).is_some_and(|modules| modules.contains(module))
    }

    /// The module of the library in which the source defines a function, if it is the only one or `Base`.
    fn in_library(&self, name: &str) -> Option<&str> {
        let mut found = self.defined.get(name)?.iter().filter(|module| is_library(module));
        let first = found.next()?;
        match found.next() {
            None => Some(first),
            Some(_) => self.is_defined(BASE, name).then_some(BASE),
        }
    }

    /// The module of the function that the source defines under this name.
    pub(super) fn module_defined<'n>(&self, parts: &'n [Cow<'_, str>], is_dump: bool) -> (String, &'n str) {
        let (path, name) = split(parts);
        let bare = if is_dump && self.bodies.contains(name) { BASE } else { MAIN };
        let module = match path.as_deref() {
            None => bare,
            Some("Core") => BASE,
            Some(path) => path,
        };
        (module.to_owned(), name)
    }

    /// The module of the function that a name means, qualified or not.
    pub(super) fn module_of<'n>(&self, parts: &'n [Cow<'_, str>]) -> (String, &'n str) {
        let (path, name) = split(parts);
        let module = match path {
            Some(path) if is_library(&path) => {
                if self.is_defined(&path, name) || path != BASE && self.others.defines(&path, name) {
                    path.into_owned()
                } else {
                    self.in_library(name).unwrap_or(BASE).to_owned()
                }
            }
            path => {
                let is_bare = path.is_none();
                let path = path.filter(|path| self.aliases.get(name).is_none_or(|alias| alias != path));
                self.of_program(path.map_or_else(|| MAIN.to_owned(), Cow::into_owned), is_bare, name)
            }
        };
        (module, name)
    }

    fn of_program(&self, path: String, is_bare: bool, name: &str) -> String {
        if self.is_defined(&path, name) || self.others.defines(&path, name) {
            return path;
        }
        if let Some(module) = self.in_library(name) {
            return module.to_owned();
        }
        let programs = self.programs.get(name);
        let is_stated = !is_bare || programs.is_some_and(|programs| programs.contains(MAIN));
        if (is_known(name) || self.library.contains(name)) && (self.has_dumps || !is_stated) {
            return BASE.to_owned();
        }
        // Modules see Base's exports, and dumps spell them so: `Main.length(x)`, `Main.Programs.length(x)`.
        let is_only_one = programs.is_none_or(|all| match is_bare {
            true => all.len() == 1 && all.iter().all(|module| !self.is_defined(module, name)),
            false => all.iter().all(|module| *module == path),
        });
        if self.has_dumps && is_only_one && is_exported(name) {
            return BASE.to_owned();
        }
        // A bare name, as in `typeof(f)`, means the function that the others qualify.
        let others = programs.filter(|others| is_bare && others.len() == 1);
        let other = others.and_then(|others| others.first()).filter(|other| !self.is_defined(other, name));
        other.cloned().unwrap_or(path)
    }

    /// Whether there are dumps in the source.
    pub(super) fn has_dumps(&self) -> bool {
        self.has_dumps
    }

    /// Whether a bare name in a dump may mean a function exported by Base.
    pub(super) fn is_exported(&self, name: &str) -> bool {
        self.has_dumps && is_exported(name)
    }

    /// Whether the source defines the function that a name means.
    pub(super) fn defines(&self, parts: &[Cow<'_, str>]) -> bool {
        let (module, name) = self.module_of(parts);
        self.is_defined(&module, name)
    }

    /// All functions of the source by their readable names, in order.
    pub(super) fn spelled(&self) -> BTreeSet<String> {
        let spell = |name: &String, module: &String| match &**module {
            MAIN => name.clone(),
            module => format!("{module}.{name}"),
        };
        self.defined
            .iter()
            .flat_map(|(name, all)| all.iter().map(move |module| spell(name, module)))
            .collect()
    }
}

/// The modules that qualify a name, and the name.
fn split<'n>(parts: &'n [Cow<'_, str>]) -> (Option<Cow<'n, str>>, &'n str) {
    match parts {
        [] => (None, ""),
        [name] => (None, name),
        // The common case, already in normal form.
        [module, name] if matches!(&**module, BASE | "Core" | MAIN) => (Some(Cow::Borrowed(module)), name),
        [path @ .., name] => (Some(module_path(path.iter().map(|part| &**part)).into()), name),
    }
}

/// Whether the library has a function with this name, which needs no body.
pub(super) fn is_known(name: &str) -> bool {
    BaseFn::from_name(name).is_some()
        || Builtin::from_name(name).is_some()
        || Intrinsic::from_name(name).is_some()
        || Numbers::OPERATORS.contains(&name)
}

/// Finds the qualified names in a source, and the functions that its tests call.
struct Uses<'f, 'e> {
    of: &'f mut Functions<'e>,
    called: &'f mut FxHashSet<String>,
}

impl Uses<'_, '_> {
    fn file(&mut self, file: &ast::File<'_>) {
        for function in &file.functions {
            if let Some(signature) = &function.signature {
                signature.params.iter().filter_map(|param| param.ty.as_ref()).for_each(|ty| self.expr(ty));
                signature.result.iter().chain(&signature.vars).for_each(|ty| self.expr(ty));
                if let ast::Callee::Object(ast::Param { ty: Some(ty), .. }) = &signature.callee {
                    self.expr(ty);
                }
            }
            for row in function.blocks.iter().flat_map(|block| &block.rows) {
                row.ty.iter().for_each(|ty| self.expr(ty));
                row.stmt.each_expr(&mut |expr| self.expr(expr));
            }
        }
        file.globals.iter().filter_map(|global| global.value.as_ref()).for_each(|value| self.expr(value));
        for check in &file.checks {
            self.expr(&check.call);
            if let ExprKind::Call(callee, _) = &check.call.kind
                && let ExprKind::Name(name) = &callee.kind
            {
                self.called.insert(name.to_string());
            }
            match &check.expected {
                Expected::Value(expr) | Expected::Throws(expr) => self.expr(expr),
            }
        }
    }

    // The reader limits the depth of trees.
    fn expr(&mut self, expr: &Expr<'_>) {
        if let ExprKind::Path(parts) = &expr.kind {
            self.path(parts);
        }
        expr.kind.each_child(&mut |child| self.expr(child));
    }

    fn path(&mut self, parts: &[Cow<'_, str>]) {
        let (Some(module), name) = split(parts) else { return };
        if is_library(&module) {
            if !self.of.library.contains(name) {
                self.of.library.insert(name.to_owned());
            }
        } else {
            self.of.programs.entry(name.to_owned()).or_default().insert(module.into_owned());
        }
    }
}
