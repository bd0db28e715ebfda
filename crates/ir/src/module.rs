//! A module: functions, globals, and the tests in its text.
//!
//! A function is found by the types of a call: the type of the function object, which holds its module and
//! name, and the types of the arguments. Several functions of one module and name are methods of one generic
//! function; [`Module::find_method`] picks the most specific that applies. Its *symbol*, its name for the
//! linker, is its signature in text, such as `area(Rect)` or `A.area(Rect)`: unique, readable, and the same
//! in every process.
//!
//! **Later forms.** Threads that optimise functions of one module concurrently set each function's later form
//! ([`Module::supersede`]), which every later request for the function returns. A caller that needs results
//! independent of the threads requests a function only when its form is settled: when it was superseded, or
//! will not be before the answer is used.
//!
//! **Numbers of other modules.** [`Module::func`], [`Module::func_mut`] and [`Module::symbol`] accept any
//! number, and return nothing for unknown ones. `module[id]` is for numbers that this module assigned, and
//! panics for others like a slice.

use crate::builtin::Builtin;
use crate::constant::{Address, Const};
use crate::context::Context;
use crate::entity::FuncId;
use crate::func::Func;
use crate::names::Name;
use crate::op::{Level, Op};
use crate::types::{Pattern, Statics, Type, TypeKind, Types};
use cranelift_entity::PrimaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::ops::{Index, IndexMut};
use std::sync::{Arc, OnceLock};

/// A global variable.
///
/// ```
/// use brolga_ir::module::{Global, GlobalKind, Literal};
/// use brolga_ir::{Const, Context, Module, Type, text::show_module};
/// let cx = Context::new();
/// let init = Literal::Const(Const::Bits { ty: Type::INT64, bits: 42 });
/// let seed = Global { name: cx.names.intern("seed"), ty: Type::INT64, init, kind: GlobalKind::ThreadLocal };
/// let mut module = Module::new(cx);
/// module.add_global(seed)?;
/// assert_eq!(show_module(&module).to_string(), "global threadlocal seed::Int64 = 42\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Global {
    pub name: Name,
    /// Its declared type.
    pub ty: Type,
    /// Its initial value.
    pub init: Literal,
    pub kind: GlobalKind,
}

/// Who shares the value of a global variable, and whether it changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GlobalKind {
    /// All threads share one value.
    Variable,
    /// Every thread has its own value, which is the initial value at the thread's first use. The initial value
    /// has no identity ([`Literal::is_shared`]): the verifier refuses one that threads would share.
    ThreadLocal,
    /// Nothing assigns it: it is declared by `const`, or holds a function's constant that has an identity.
    Constant,
}

impl Global {
    /// Whether nothing assigns it.
    pub fn is_const(&self) -> bool {
        self.kind == GlobalKind::Constant
    }

    /// Whether every thread has its own value.
    pub fn is_thread_local(&self) -> bool {
        self.kind == GlobalKind::ThreadLocal
    }
}

/// Facts about all functions of a program, in whichever module, on which the code of each function depends.
#[derive(Clone, Debug, Default)]
pub struct ProgramFacts {
    assigned: FxHashSet<Name>,
    gives_to_c: bool,
    /// The types of function objects that have methods elsewhere.
    open: FxHashSet<Type>,
}

impl ProgramFacts {
    /// Whether a function assigns the global variable with this name.
    pub fn is_assigned(&self, global: Name) -> bool {
        self.assigned.contains(&global)
    }

    /// Whether C may have the address of one of the functions, and so may call it.
    pub fn gives_to_c(&self) -> bool {
        self.gives_to_c
    }

    fn add(&mut self, func: &Func) {
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            match func.op(inst) {
                Op::CFunction(_) => self.gives_to_c = true,
                // Low code writes a variable through the address of its cell, which other operations may
                // compute with first.
                op if func.level == Level::Low && !matches!(op, Op::Load(_) | Op::AtomicLoad(_)) => {
                    let cells = func.args(inst).iter().filter_map(|&arg| match func.as_const(arg) {
                        Some(Const::Address(Address::Global(name))) => Some(*name),
                        _ => None,
                    });
                    self.assigned.extend(cells);
                }
                Op::Builtin(
                    Builtin::Setglobal
                    | Builtin::Swapglobal
                    | Builtin::Modifyglobal
                    | Builtin::Replaceglobal
                    | Builtin::Setglobalonce,
                ) => {
                    let name = func.args(inst).get(1).and_then(|&name| func.as_const(name));
                    if let Some(Const::Symbol(name)) = name {
                        self.assigned.insert(*name);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A constant outside a function, for globals.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// A constant without parts.
    Const(Const),
    /// A struct or tuple made of literals.
    Aggregate { ty: Type, fields: Vec<Literal> },
    Array {
        ty: Type,
        /// The length in each dimension.
        dims: Vec<usize>,
        /// The elements, first dimension fastest.
        items: Vec<Literal>,
    },
}

impl Literal {
    /// The type of the value.
    pub fn ty(&self) -> Type {
        match self {
            Literal::Const(constant) => constant.ty(),
            Literal::Aggregate { ty, .. } | Literal::Array { ty, .. } => *ty,
        }
    }

    /// Whether the value, or a part of it, has an identity: then the global variable holds the only instance,
    /// and it must not be copied.
    pub fn is_shared(&self, types: &Types) -> bool {
        match self {
            Literal::Const(_) => false,
            Literal::Array { .. } => true,
            Literal::Aggregate { ty, fields } => {
                types.is_mutable(*ty) || fields.iter().any(|field| field.is_shared(types))
            }
        }
    }
}

/// The methods of a function object's type.
#[derive(Clone, Debug, Default)]
struct Methods {
    /// In order of definition.
    all: Vec<FuncId>,
    /// By the types of their parameters. Methods that differ only in variables share an entry.
    by_types: FxHashMap<Box<[Type]>, SmallVec<[FuncId; 1]>>,
    /// Whether any has open variables: then parameters do not determine the most specific method.
    has_open: bool,
}

impl Methods {
    fn with_types(&self, params: &[Type]) -> &[FuncId] {
        self.by_types.get(params).map_or(&[], |found| found)
    }
}

/// Functions and globals that are compiled together.
///
/// ```
/// use brolga_ir::module::ModuleError;
/// use brolga_ir::{Context, Module, Type, build::Builder, text::show_module};
/// let cx = Context::new();
/// let mut b = Builder::high(&cx, "same", &[("x", Type::INT64)], Type::INT64);
/// let x = b.param(0)?;
/// b.ret(&[x])?;
/// let func = b.finish()?;
/// let mut module = Module::new(cx.clone());
/// let id = module.add_func(func.clone())?;
/// assert_eq!(module.symbol(id).as_deref(), Some("same(Int64)"));
/// assert_eq!(module.add_func(func), Err(ModuleError::DuplicateMethod(id)));
/// assert!(show_module(&module).to_string().starts_with("function same(x::Int64)::Int64"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module {
    /// The names and types.
    pub cx: Arc<Context>,
    funcs: PrimaryMap<FuncId, FuncRef>,
    /// The later form of each function that has one.
    later: PrimaryMap<FuncId, OnceLock<Box<Func>>>,
    methods: FxHashMap<Type, Methods>,
    globals: Vec<Global>,
    /// Index of each global in the list.
    global_indices: FxHashMap<Name, usize>,
    /// Facts about functions of the program that may be outside this module.
    noted: ProgramFacts,
    /// Cached result of [`Module::facts`], cleared when a function is added or changed.
    facts: OnceLock<ProgramFacts>,
}

/// A function of one or several modules, with its symbol as far as it was requested. It is copied when one of them changes it.
#[derive(Clone, Debug)]
pub struct FuncRef(Arc<Held>);

#[derive(Clone, Debug)]
struct Held {
    func: Func,
    symbol: OnceLock<Arc<str>>,
}

impl From<Func> for FuncRef {
    fn from(func: Func) -> FuncRef {
        FuncRef(Arc::new(Held { func, symbol: OnceLock::new() }))
    }
}

impl std::ops::Deref for FuncRef {
    type Target = Func;

    fn deref(&self) -> &Func {
        &self.0.func
    }
}

impl FuncRef {
    fn change(&mut self) -> &mut Func {
        let held = Arc::make_mut(&mut self.0);
        held.symbol.take();
        &mut held.func
    }
}

/// Why a function or global cannot be added to a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleError {
    /// A function with exactly these argument types exists already.
    DuplicateMethod(FuncId),
    /// A global with this name exists already.
    DuplicateGlobal(Name),
    /// A high function lacks its argument 0, the function object.
    NoFunctionObject,
}

impl std::fmt::Display for ModuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModuleError::DuplicateMethod(first) => {
                write!(f, "{first} has the same function and argument types")
            }
            ModuleError::DuplicateGlobal(_) => f.write_str("there is a global of this name"),
            ModuleError::NoFunctionObject => {
                f.write_str("a function of high IR begins with its function object")
            }
        }
    }
}

impl std::error::Error for ModuleError {}

impl Module {
    /// An empty module.
    pub fn new(cx: Arc<Context>) -> Self {
        Self {
            cx,
            funcs: PrimaryMap::new(),
            later: PrimaryMap::new(),
            methods: FxHashMap::default(),
            globals: Vec::new(),
            global_indices: FxHashMap::default(),
            noted: ProgramFacts::default(),
            facts: OnceLock::new(),
        }
    }

    /// A module for other functions of the same program, or other forms of its functions: with its global
    /// variables and noted facts.
    #[must_use]
    pub fn without_functions(&self) -> Self {
        Self {
            globals: self.globals.clone(),
            global_indices: self.global_indices.clone(),
            noted: self.noted.clone(),
            ..Self::new(self.cx.clone())
        }
    }

    /// Adds a function, or one that it shares with another module with the same names and types.
    ///
    /// # Errors
    /// It has the argument types of another one, or lacks its function object.
    pub fn add_func(&mut self, func: impl Into<FuncRef>) -> Result<FuncId, ModuleError> {
        let func: FuncRef = func.into();
        let key = match func.level {
            Level::High => func.sig.params.first().ok_or(ModuleError::NoFunctionObject)?.ty,
            Level::Low => self.cx.types.function(func.name),
        };
        let methods = self.methods.entry(key).or_default();
        // Low functions are unique by name.
        let types: Box<[Type]> = match func.level {
            Level::High => func.sig.params.iter().map(|param| param.ty).collect(),
            Level::Low => Box::default(),
        };
        let clash = methods.with_types(&types).iter().find(|&&id| {
            let old = &self.funcs[id];
            old.level == func.level
                && (func.level == Level::Low
                    || (old.sig.vararg == func.sig.vararg
                        && old.sig.statics.patterns == func.sig.statics.patterns
                        && (!func.sig.statics.is_open()
                            || old.sig.statics.params == func.sig.statics.params)))
        });
        if let Some(&old) = clash {
            return Err(ModuleError::DuplicateMethod(old));
        }
        self.facts.take();
        methods.has_open |= func.sig.statics.is_open();
        let id = self.funcs.push(func);
        self.later.push(OnceLock::new());
        methods.all.push(id);
        methods.by_types.entry(types).or_default().push(id);
        Ok(id)
    }

    /// Adds a global variable.
    pub fn add_global(&mut self, global: Global) -> Result<(), ModuleError> {
        match self.global_indices.entry(global.name) {
            Entry::Occupied(_) => Err(ModuleError::DuplicateGlobal(global.name)),
            Entry::Vacant(free) => {
                free.insert(self.globals.len());
                self.globals.push(global);
                Ok(())
            }
        }
    }

    /// The functions in order of definition, as defined or changed, not in later forms.
    pub fn funcs(&self) -> impl Iterator<Item = (FuncId, &Func)> {
        self.funcs.iter().map(|(id, func)| (id, &**func))
    }

    /// A function as defined or changed, to be shared with another module; `None` if the number belongs to another module.
    pub fn shared(&self, id: FuncId) -> Option<FuncRef> {
        self.funcs.get(id).cloned()
    }

    pub fn func_count(&self) -> usize {
        self.funcs.len()
    }

    /// A function, in its later form if it has one; `None` if the number belongs to another module.
    pub fn func(&self, id: FuncId) -> Option<&Func> {
        self.later.get(id)?.get().map_or_else(|| self.first_form(id), |later| Some(later))
    }

    /// A function as defined or changed, as in [`Module::funcs`]; `None` if the number belongs to another
    /// module.
    pub fn first_form(&self, id: FuncId) -> Option<&Func> {
        self.funcs.get(id).map(|func| &**func)
    }

    /// Sets the later form of a function, with the same argument types. Does nothing if it has one, or if
    /// there is no such function.
    pub fn supersede(&self, id: FuncId, func: Func) {
        // The first form stays: references to it may exist.
        let _ = self.later.get(id).map(|later| later.set(Box::new(func)));
    }

    /// A function, for changes; `None` if the number belongs to another module. Its argument types must stay
    /// the same, because it is found by them.
    pub fn func_mut(&mut self, id: FuncId) -> Option<&mut Func> {
        self.facts.take();
        match self.later.get_mut(id)?.get_mut() {
            Some(later) => Some(later),
            None => self.funcs.get_mut(id).map(FuncRef::change),
        }
    }

    /// The facts about the functions of this module, combined with the noted ones.
    ///
    /// Cost: a walk over all instructions on the first call after a function was added or changed.
    pub fn facts(&self) -> &ProgramFacts {
        self.facts.get_or_init(|| {
            let mut facts = self.noted.clone();
            self.funcs().for_each(|(_, func)| facts.add(func));
            facts
        })
    }

    /// Records the facts about the current functions. They stay if functions or their bodies are missing
    /// later, as in modules from [`Module::without_functions`].
    pub fn note_facts(&mut self) {
        self.noted = self.facts().clone();
    }

    /// Records that functions elsewhere may assign the non-constant variables of this module.
    pub fn note_shared_variables(&mut self) {
        let assigned = self.globals.iter().filter(|global| !global.is_const()).map(|global| global.name);
        self.noted.assigned.extend(assigned);
        self.facts.take();
    }

    /// Records that dynamic calls of a function, given by the type of its object, may reach methods outside
    /// this module: no pass may resolve one by the methods here.
    pub fn note_open(&mut self, function: Type) {
        self.noted.open.insert(function);
        self.facts.take();
    }

    /// Whether dynamic calls of a function, given by the type of its object, may reach methods outside this
    /// module.
    pub fn is_open(&self, function: Type) -> bool {
        self.noted.open.contains(&function)
    }

    /// The global variables in order of definition.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// The global variable with this name.
    pub fn global(&self, name: Name) -> Option<&Global> {
        self.global_indices.get(&name).map(|&at| &self.globals[at])
    }

    /// All methods of a function object's type, in order of definition.
    pub fn methods(&self, function: Type) -> &[FuncId] {
        self.methods.get(&function).map_or(&[], |methods| &methods.all)
    }

    /// The high function of the module with the same parameter types, including variables; `None` for a low
    /// function.
    pub fn find_same(&self, func: &Func) -> Option<FuncId> {
        let methods = self.methods.get(&func.sig.params.first()?.ty)?;
        let types: SmallVec<[Type; 8]> = func.sig.params.iter().map(|param| param.ty).collect();
        let is_same = |id: &FuncId| {
            let other = &self[*id];
            other.level == func.level
                && other.sig.vararg == func.sig.vararg
                && other.sig.statics == func.sig.statics
        };
        methods.with_types(&types).iter().copied().find(is_same)
    }

    /// The functions with this name, of all modules, in order of definition.
    pub fn named(&self, name: Name) -> impl Iterator<Item = FuncId> + '_ {
        self.funcs.iter().filter(move |(_, f)| f.name == name).map(|(id, _)| id)
    }

    /// The most specific method of `function` that accepts arguments of the given types (without the function
    /// object). `None` if none applies, or if several apply and none is the most specific.
    ///
    /// Cost: one look-up for a method with exactly these types, else linear in the methods.
    pub fn find_method(&self, function: Type, args: &[Type]) -> Option<FuncId> {
        if let Some(exact) = self.find_exact(function, args) {
            return Some(exact);
        }
        let fits: Vec<FuncId> = self
            .methods(function)
            .iter()
            .copied()
            .filter(|&id| self.funcs[id].level == Level::High && self.accepts(id, args))
            .collect();
        if self.methods.get(&function).is_some_and(|methods| methods.has_open) {
            let is_lowest = |a: &FuncId| fits.iter().all(|&b| *a == b || self.is_more_specific(*a, b));
            return fits.iter().copied().find(is_lowest);
        }
        // A method below all others is below every intermediate result, so it is the final one.
        let lower = |a, b| if self.is_more_specific(a, b) { a } else { b };
        let lowest = fits.iter().copied().reduce(lower)?;
        fits.iter().all(|&b| lowest == b || self.is_more_specific(lowest, b)).then_some(lowest)
    }

    /// Whether several methods of `function` accept arguments of the given types (without the function
    /// object), and none is the most specific.
    ///
    /// Cost: like [`Module::find_method`].
    pub fn is_ambiguous(&self, function: Type, args: &[Type]) -> bool {
        let fits = |&id: &FuncId| self.funcs[id].level == Level::High && self.accepts(id, args);
        self.find_method(function, args).is_none() && self.methods(function).iter().any(fits)
    }

    /// The method of `function` for exactly these types (without the function object), which is the most
    /// specific one for them: any other applicable method accepts a superset. `None` also if a method has
    /// variables, by which others may be more specific.
    pub fn find_exact(&self, function: Type, args: &[Type]) -> Option<FuncId> {
        let methods = self.methods.get(&function).filter(|methods| !methods.has_open)?;
        let types: SmallVec<[Type; 8]> = std::iter::once(function).chain(args.iter().copied()).collect();
        let is_exact = |id: &FuncId| self.funcs[*id].level == Level::High && !self.funcs[*id].sig.vararg;
        methods.with_types(&types).iter().copied().find(is_exact)
    }

    /// Whether a call with these argument types (without the function object) may go to the method.
    fn accepts(&self, id: FuncId, args: &[Type]) -> bool {
        let func = &self.funcs[id];
        let types = &self.cx.types;
        let params = &func.sig.params[1..];
        let fixed = params.len() - usize::from(func.sig.vararg && !params.is_empty());
        if args.len() < fixed || (!func.sig.vararg && args.len() > fixed) {
            return false;
        }
        let heads = args.iter().zip(&params[..fixed]).all(|(&a, p)| types.is_subtype(a, p.ty));
        let rest = args[fixed..].iter().all(|&a| types.is_subtype(a, self.vararg_element(func)));
        heads && rest && func.sig.pattern().is_none_or(|pattern| types.bind_statics(pattern, args).is_some())
    }

    /// The element type of a collecting argument.
    pub fn vararg_element(&self, func: &Func) -> Type {
        let last = func.sig.params.last().map_or(Type::ANY, |p| p.ty);
        match self.cx.types.kind(last) {
            TypeKind::Tuple { vararg: Some(rest), .. } => *rest,
            _ => Type::ANY,
        }
    }

    /// Whether every call that goes to `a` could go to `b`.
    fn is_more_specific(&self, a: FuncId, b: FuncId) -> bool {
        let types = &self.cx.types;
        // The fixed parameters, and the element type of a collecting one.
        let parts = |id: FuncId| {
            let func = &self.funcs[id];
            let params = &func.sig.params[1..];
            let fixed = params.len() - usize::from(func.sig.vararg && !params.is_empty());
            (&params[..fixed], func.sig.vararg.then(|| self.vararg_element(func)))
        };
        let ((x, xr), (y, yr)) = (parts(a), parts(b));
        let fits = match (xr, yr) {
            (None, None) => x.len() == y.len(),
            (None, Some(_)) => x.len() >= y.len(),
            (Some(_), None) => false,
            (Some(p), Some(q)) => x.len() >= y.len() && types.is_subtype(p, q),
        };
        let below = fits
            && x.iter().enumerate().all(|(n, p)| match y.get(n).map(|q| q.ty).or(yr) {
                Some(q) => types.is_subtype(p.ty, q),
                None => false,
            });
        below && self.is_below_by_pattern(a, b)
    }

    /// Whether the variables of `b`, if it has open ones, can be instantiated to cover `a`.
    fn is_below_by_pattern(&self, a: FuncId, b: FuncId) -> bool {
        let (a, b) = (&self.funcs[a].sig, &self.funcs[b].sig);
        let Some(above) = b.pattern() else { return true };
        let closed =
            Statics { params: Vec::new(), patterns: a.params.iter().map(|param| param.ty).collect() };
        let below = a.pattern().unwrap_or(Pattern { statics: &closed, vararg: a.vararg });
        self.cx.types.is_below(below, above)
    }

    /// A function's name for the linker; `None` if the number belongs to another module.
    pub fn symbol(&self, id: FuncId) -> Option<String> {
        Some(self.func(id)?.symbol(&self.cx))
    }

    /// As [`Module::symbol`], made once; empty if the number belongs to another module.
    pub fn symbol_of(&self, id: FuncId) -> Arc<str> {
        let Some(FuncRef(held)) = self.funcs.get(id) else { return "".into() };
        held.symbol.get_or_init(|| held.func.symbol(&self.cx).into()).clone()
    }
}

/// A function by a number that this module assigned, in its later form if it has one.
///
/// # Panics
/// If there is no function with this number, as for a slice index; use [`Module::func`] to test.
impl Index<FuncId> for Module {
    type Output = Func;

    fn index(&self, id: FuncId) -> &Func {
        self.later[id].get().map_or(&*self.funcs[id], |later| later)
    }
}

/// Like [`Index`], for changes as by [`Module::func_mut`].
impl IndexMut<FuncId> for Module {
    fn index_mut(&mut self, id: FuncId) -> &mut Func {
        self.facts.take();
        match self.later[id].get_mut() {
            Some(later) => later,
            None => self.funcs[id].change(),
        }
    }
}
