//! The names and declarations that a dylib's programs offer to programs that see it.
//!
//! The session's tables have only symbols, without types. To verify a call of a function of another program, to find
//! its only method by a bare name, or to inline it, its declaration is needed: a function without a body, or with
//! one if it may be inlined.
//!
//! ```text
//!   program ── offers ──► Scope of its dylib ── imported by ──► later programs of dylibs that see it
//! ```
//!
//! Declarations of removed functions stay for a while: a program that uses one of them fails when it is linked, and the error names
//! the missing symbol. When the number of symbols has doubled since the last sweep, undefined ones are dropped, so its
//! memory is proportional to the defined symbols. A declaration under the same symbol replaces the previous one; a function of another context, whose types
//! have no meaning here, leaves the declaration without a body.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use brolga_ir::func::CalleeData;
use brolga_ir::module::{FuncRef, Global};
use brolga_ir::{Context, Func, FuncId, Level, Module, Type, TypeKind, Value};
use brolga_jit::Globals;
use brolga_linking::{DylibId, Symbol};
use smallvec::SmallVec;

use super::names_in::Bindings;
use super::offer::{MethodSet, Offer};
use super::reach::{decides_later, is_leaf, reach};
use super::sync::lock;

/// See the file's header.
#[derive(Default)]
pub(crate) struct Scope {
    offers: Mutex<Offers>,
}

/// A global variable of a dylib.
#[derive(Clone)]
pub(crate) struct Variable {
    /// A view that holds the names in the declaration.
    pub(super) cx: Arc<Context>,
    pub(super) declared: Global,
    /// The variable's cell.
    pub(super) cells: Globals,
    /// Removing this symbol removes the declaration.
    pub(super) symbol: Symbol,
}

#[derive(Default)]
struct Offers {
    /// The symbols of functions by the name without types (`f`, `A.g`).
    symbols: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// All symbols above, each with the types of its function objects, for high functions.
    known: BTreeMap<Arc<str>, BTreeSet<Type>>,
    /// The methods, by the type of the function object.
    methods: BTreeMap<Type, MethodSet>,
    /// The symbols of lazy functions.
    lazy: BTreeSet<Arc<str>>,
    /// The symbols of hidden functions: other dylibs do not see them.
    hidden: BTreeSet<Arc<str>>,
    /// The symbols that are aliases of functions.
    aliases: BTreeSet<Arc<str>>,
    /// The variables by name: the last declaration of each name.
    variables: BTreeMap<Box<str>, Variable>,
    /// The number of symbols at which removed ones are swept.
    sweep_at: usize,
}

/// The minimum number of symbols for a sweep.
const SWEPT: usize = 256;

impl Offers {
    /// Whether a method of a function, known by its object, becomes one of another function of its name when these offers are in force.
    fn takes_away(&self, symbol: &Arc<str>, function: Type) -> bool {
        self.known.get(symbol).is_some_and(|objects| !objects.is_empty() && !objects.contains(&function))
    }

    /// Keeps the offers of some symbols. Returns the other declarations, to be dropped without a lock.
    fn retain(&mut self, is_kept: impl Fn(&str) -> bool) -> Vec<Offer> {
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.known).into_iter().partition(|(symbol, _)| is_kept(symbol));
        self.known = kept;
        let gone: BTreeSet<Arc<str>> = gone.into_keys().collect();
        if gone.is_empty() {
            return Vec::new();
        }
        self.symbols.retain(|_, symbols| {
            symbols.retain(|symbol| !gone.contains(symbol));
            !symbols.is_empty()
        });
        let mut dropped = Vec::new();
        self.methods.retain(|_, methods| {
            dropped.extend(methods.remove(&gone));
            !methods.is_empty()
        });
        for symbols in [&mut self.lazy, &mut self.hidden, &mut self.aliases] {
            symbols.retain(|symbol| !gone.contains(symbol));
        }
        dropped
    }
}

impl Scope {
    /// Offers the functions `own` of a module, and whether they may be inlined elsewhere. `bindings` has the targets of their static calls.
    pub(crate) fn offer(&self, module: &Module, own: &[FuncId], inlinable: bool, bindings: &Arc<Bindings>) {
        self.offer_names(module, own, &module.cx);
        let mut offers = lock(&self.offers);
        for &id in own {
            let func = &module[id];
            let symbol = module.symbol_of(id);
            if let (Level::High, Some(object)) = (func.level, func.sig.params.first()) {
                let offer = Offer::of(module, id, inlinable, bindings);
                offers.known.entry(symbol.clone()).or_default().insert(object.ty);
                offers.methods.entry(object.ty).or_default().insert(symbol, offer);
            }
        }
    }

    /// Offers only the names of functions: their types may belong to a context other than `cx`, the session's.
    pub(crate) fn offer_names(&self, module: &Module, own: &[FuncId], cx: &Arc<Context>) {
        let foreign = (!module.cx.is_same(cx)).then(|| cx.view());
        let mut offers = lock(&self.offers);
        for &id in own {
            let func = &module[id];
            let symbol = module.symbol_of(id);
            offers.symbols.entry(func.spelled_name(&module.cx)).or_default().insert(symbol.clone());
            let objects = offers.known.entry(symbol.clone()).or_default();
            if let Some(cx) = &foreign
                && let Some(object) = object(module, id, cx)
            {
                objects.insert(object);
                offers.methods.entry(object).or_default().insert_foreign(symbol, cx.clone());
            }
        }
    }

    /// Marks functions as lazy.
    pub(crate) fn set_lazy(&self, symbols: impl IntoIterator<Item = Arc<str>>) {
        lock(&self.offers).lazy.extend(symbols);
    }

    /// Marks functions as hidden.
    pub(crate) fn set_hidden(&self, symbols: impl IntoIterator<Item = Arc<str>>) {
        lock(&self.offers).hidden.extend(symbols);
    }

    /// Marks symbols as aliases.
    pub(crate) fn set_aliases(&self, symbols: impl IntoIterator<Item = Arc<str>>) {
        lock(&self.offers).aliases.extend(symbols);
    }

    /// Whether the function of this symbol is hidden from other dylibs.
    pub(crate) fn is_hidden(&self, symbol: &str) -> bool {
        lock(&self.offers).hidden.contains(symbol)
    }

    /// Whether a symbol is an alias.
    pub(crate) fn is_alias(&self, symbol: &str) -> bool {
        lock(&self.offers).aliases.contains(symbol)
    }

    /// The result type of a function, if its types belong to the session's context.
    pub(crate) fn result(&self, object: Type, symbol: &str) -> Option<Type> {
        let offers = lock(&self.offers);
        offers.methods.get(&object)?.declared().get(symbol)?.func.sig.results.first().copied()
    }

    /// Whether a function is lazy.
    pub(crate) fn is_lazy(&self, symbol: &str) -> bool {
        lock(&self.offers).lazy.contains(symbol)
    }

    /// Whether a function of this symbol exists or existed.
    pub(crate) fn knows(&self, symbol: &str) -> bool {
        lock(&self.offers).known.contains_key(symbol)
    }

    /// Adds the offers of another scope. A method that is redefined as one of another function of its name leaves the former function.
    /// Returns its declaration there, to be dropped without a lock.
    #[must_use]
    pub(crate) fn take_over(&self, other: Scope) -> Vec<Offer> {
        let other = other.offers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut offers = lock(&self.offers);
        let mut dropped = Vec::new();
        for (symbol, objects) in other.known {
            let known = offers.known.entry(symbol.clone()).or_default();
            if objects.is_empty() {
                continue;
            }
            let former: Vec<Type> = known.difference(&objects).copied().collect();
            *known = objects;
            let symbol = BTreeSet::from([symbol]);
            for object in former {
                dropped.extend(
                    offers
                        .methods
                        .get_mut(&object)
                        .map(|methods| methods.remove(&symbol))
                        .into_iter()
                        .flatten(),
                );
            }
        }
        for (bare, symbols) in other.symbols {
            // The removed function may have been of another kind.
            for symbol in &symbols {
                offers.lazy.remove(symbol);
                offers.hidden.remove(symbol);
                offers.aliases.remove(symbol);
            }
            offers.symbols.entry(bare).or_default().extend(symbols);
        }
        offers.lazy.extend(other.lazy);
        offers.hidden.extend(other.hidden);
        offers.aliases.extend(other.aliases);
        for (object, methods) in other.methods {
            offers.methods.entry(object).or_default().take_over(methods);
        }
        dropped
    }

    /// Drops the offers of removed functions, if the number of symbols has doubled since the last sweep. Returns the removed
    /// declarations, to be dropped without a lock.
    #[must_use]
    pub(crate) fn sweep(&self, is_defined: impl Fn(&str) -> bool) -> Vec<Offer> {
        let mut offers = lock(&self.offers);
        if offers.known.len() < offers.sweep_at.max(SWEPT) {
            return Vec::new();
        }
        let gone = offers.retain(is_defined);
        offers.sweep_at = 2 * offers.known.len();
        gone
    }

    /// The global variable of this name.
    pub(crate) fn variable(&self, name: &str) -> Option<Variable> {
        lock(&self.offers).variables.get(name).cloned()
    }

    /// Declares a global variable. Returns the former one of the name, to be dropped without a lock: programs that use it keep it.
    #[must_use]
    pub(crate) fn declare(&self, name: Box<str>, variable: Variable) -> Option<Variable> {
        lock(&self.offers).variables.insert(name, variable)
    }

    /// Removes the global variable of this name if it has this symbol. Programs that use it keep it. The result must be dropped without a lock.
    #[must_use]
    pub(crate) fn forget_variable(&self, name: &str, symbol: Symbol) -> Option<Variable> {
        let mut offers = lock(&self.offers);
        offers.variables.get(name).filter(|known| known.symbol == symbol)?;
        offers.variables.remove(name)
    }

    /// The symbols of functions with this bare name.
    pub(crate) fn symbols(&self, bare: &str) -> SmallVec<[Arc<str>; 1]> {
        lock(&self.offers).symbols.get(bare).into_iter().flatten().cloned().collect()
    }

    /// Whether a function object has methods here.
    pub(crate) fn has(&self, function: Type) -> bool {
        lock(&self.offers).methods.get(&function).is_some_and(|methods| !methods.declared().is_empty())
    }

    /// The methods with this symbol.
    pub(super) fn offered(&self, symbol: &Arc<str>) -> Vec<Offered> {
        let offers = lock(&self.offers);
        let objects = offers.known.get(symbol).into_iter().flatten().copied();
        let offered = |object| {
            let methods = offers.methods.get(&object)?;
            let offer = methods.declared().get(symbol).cloned();
            let is_there = offer.is_some() || methods.is_foreign(symbol);
            is_there.then(|| Offered { symbol: symbol.clone(), object, offer })
        };
        objects.filter_map(offered).collect()
    }

    /// All functions: name without types, symbol, and the result type if it belongs to the session's context.
    pub(crate) fn functions(&self) -> Vec<(String, Arc<str>, Option<String>)> {
        let offers = lock(&self.offers);
        let results: BTreeMap<&Arc<str>, &Offer> =
            offers.methods.values().flat_map(MethodSet::declared).collect();
        let result = |symbol| {
            let Offer { cx, func, .. } = results.get(symbol)?;
            Some(cx.types.display(*func.sig.results.first()?).to_string())
        };
        let named = offers.symbols.iter();
        let all = named.flat_map(|(name, symbols)| symbols.iter().map(move |symbol| (name, symbol)));
        all.map(|(name, symbol)| (name.clone(), symbol.clone(), result(symbol))).collect()
    }

    /// All declared functions, by module and name.
    pub(crate) fn names(&self) -> Vec<(String, String)> {
        let offers = lock(&self.offers);
        let name = |(object, methods): (&Type, &MethodSet)| {
            let cx = &methods.declared().values().next()?.cx;
            let TypeKind::Function(function) = *cx.types.kind(*object) else { return None };
            Some((cx.names.text(function.module).to_owned(), cx.names.text(function.name).to_owned()))
        };
        offers.methods.iter().filter_map(name).collect()
    }
}

/// Whether a symbol is defined in a dylib.
pub(crate) type IsDefined<'a> = &'a dyn Fn(DylibId, &str) -> bool;

/// The part of a dylib that a program sees.
#[derive(Clone)]
pub(crate) struct Seen<'a> {
    pub(super) dylib: DylibId,
    scope: Arc<Scope>,
    /// Whether the program belongs to this dylib, so that it sees hidden functions.
    is_own: bool,
    /// The offers that the dylib is about to make.
    soon: Option<&'a Scope>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(dylib: DylibId, scope: Arc<Scope>, is_own: bool, soon: Option<&'a Scope>) -> Seen<'a> {
        Seen { dylib, scope, is_own, soon }
    }

    /// Everything that the dylib offers.
    pub(super) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Whether a function with this symbol would be visible to the program.
    pub(super) fn has(&self, symbol: &str) -> bool {
        self.is_own || !self.scope.is_hidden(symbol)
    }

    /// The symbols of the functions with a bare name that the program sees.
    pub(super) fn symbols(&self, bare: &str) -> SmallVec<[Arc<str>; 1]> {
        let mut symbols = self.scope.symbols(bare);
        symbols.retain(|symbol| self.has(symbol));
        symbols
    }

    /// The methods of a function object that a call may reach if its first argument has the type `first`, each with its symbol.
    pub(super) fn declarations(&self, function: Type, first: Option<Type>) -> BTreeMap<Arc<str>, Offer> {
        let mut found = BTreeMap::new();
        if let Some(methods) = lock(&self.scope.offers).methods.get(&function) {
            found.extend(methods.reached(first).map(|(symbol, offer)| (symbol.clone(), offer.clone())));
        }
        let Some(soon) = self.soon else { return found };
        let soon = lock(&soon.offers);
        found.retain(|symbol, _| !soon.takes_away(symbol, function));
        if let Some(methods) = soon.methods.get(&function) {
            for (symbol, offer) in &mut found {
                if methods.is_foreign(symbol) {
                    *offer = Offer::declaration(&offer.cx, &offer.func);
                }
            }
            found.extend(methods.reached(first).map(|(symbol, offer)| (symbol.clone(), offer.clone())));
        }
        found
    }
}

/// A method of a dylib, visible or not.
pub(super) struct SessionMethod {
    pub(super) dylib: DylibId,
    pub(super) symbol: Arc<str>,
    /// `None` if its types belong to another context.
    pub(super) offer: Option<Offer>,
}

/// A method offered by a dylib: the function object, and the method unless its types belong to another context.
pub(super) struct Offered {
    pub(super) symbol: Arc<str>,
    pub(super) object: Type,
    pub(super) offer: Option<Offer>,
}

impl Seen<'_> {
    /// The methods of a function object that a call may reach if its first argument has the type `first`.
    pub(super) fn methods(&self, function: Type, first: Option<Type>) -> Vec<SessionMethod> {
        let method = |symbol, offer| SessionMethod { dylib: self.dylib, symbol, offer };
        let declared = self.declarations(function, first).into_iter();
        let mut found: Vec<_> = declared.map(|(symbol, offer)| method(symbol, Some(offer))).collect();
        for scope in [Some(&*self.scope), self.soon].into_iter().flatten() {
            let offers = lock(&scope.offers);
            let foreign = offers.methods.get(&function).into_iter().flat_map(MethodSet::foreign);
            found.extend(foreign.map(|symbol| method(symbol.clone(), None)));
        }
        if let Some(soon) = self.soon {
            let soon = lock(&soon.offers);
            found.retain(|method| !soon.takes_away(&method.symbol, function));
        }
        found
    }
}

/// A method that a program sees, and the dylib that defines it.
#[derive(Clone)]
pub(super) struct Visible {
    pub(super) dylib: DylibId,
    pub(super) offer: Offer,
}

/// The defined methods of a function object that a call may reach if its first argument has the type `first`, by symbol. If several have one symbol, the result has the one
/// to which the call is bound, even if it has been removed, or else the one of the first dylib in the link order.
pub(super) fn methods_in(
    scopes: &[Seen<'_>],
    (function, first): (Type, Option<Type>),
    is_defined: IsDefined<'_>,
    bindings: &Bindings,
) -> BTreeMap<Arc<str>, Visible> {
    let mut found: BTreeMap<Arc<str>, Visible> = BTreeMap::new();
    for seen in scopes {
        for (symbol, offer) in seen.declarations(function, first) {
            let is_bound = bindings.get(&symbol) == Some(&seen.dylib);
            let is_new = || !found.contains_key(&symbol) && seen.has(&symbol);
            if is_bound || is_new() && is_defined(seen.dylib, &symbol) {
                found.insert(symbol, Visible { dylib: seen.dylib, offer });
            }
        }
    }
    found
}

/// A module with the declarations of a function object's methods, in a view of `cx`, which is the session's context.
pub(crate) fn declared(
    scopes: &[Seen<'_>],
    function: Type,
    cx: &Arc<Context>,
    is_defined: IsDefined<'_>,
) -> Option<Module> {
    let mut module = Module::new(cx.view());
    for Visible { offer, .. } in methods_in(scopes, (function, None), is_defined, &Bindings::new()).values() {
        let func = offer.func.declaration();
        if module.cx.hold(&func) {
            // Methods of one function with different symbols are not duplicates.
            let _ = module.add_func(func);
        }
    }
    (module.func_count() > 0).then_some(module)
}

/// A module with the first `own` functions of another one, its globals, and the remaining functions as mapped by `rest`.
pub(crate) fn with_others(module: &Module, own: usize, rest: impl Fn(&Func) -> Option<Func>) -> Module {
    let mut again = module.without_functions();
    for (at, (id, func)) in module.funcs().enumerate() {
        let func = if at < own { module.shared(id) } else { rest(func).map(FuncRef::from) };
        // Functions of one module are not duplicates.
        let _ = func.map(|func| again.add_func(func));
    }
    again
}

/// A module in which some functions are only declared.
pub(crate) fn without_bodies(module: &Module, of: &BTreeSet<FuncId>) -> Module {
    let mut again = module.without_functions();
    for (id, func) in module.funcs() {
        let func = if of.contains(&id) { Some(func.declaration().into()) } else { module.shared(id) };
        // The names in a module are unique.
        let _ = func.map(|func| again.add_func(func));
    }
    again
}

/// The type of a high function's object in a context, if it can be determined.
pub(crate) fn object(module: &Module, id: FuncId, cx: &Arc<Context>) -> Option<Type> {
    let func = &module[id];
    let object = func.sig.params.first().filter(|_| func.level == Level::High)?.ty;
    if module.cx.is_same(cx) {
        return Some(object);
    }
    match *module.cx.types.kind(object) {
        TypeKind::Function(function) => {
            Some(cx.types.function_named(function.taken_over(&module.cx.names, &cx.names)))
        }
        _ => None,
    }
}

/// A module with one function of another one, in which the others are imported: the first `own` have no
/// bodies. Returns the function's id as well.
pub(crate) fn part(module: &Module, own: usize, id: FuncId) -> Option<(Module, FuncId)> {
    let mut part = module.without_functions();
    let only = part.add_func(module[id].clone()).ok()?;
    let mut pending = vec![only];
    let mut seen = BTreeSet::new();
    while let Some(at) = pending.pop() {
        let mut functions: BTreeSet<Type> =
            called(&part, at).into_iter().map(|(function, _)| function).collect();
        functions.extend(reach(&part, &part[at]).functions(&part));
        for function in functions {
            for &method in module.methods(function).iter().filter(|&&method| seen.insert(method)) {
                let func = &module[method];
                let is_own = (method.as_u32() as usize) < own;
                let func = if is_own { func.declaration() } else { func.clone() };
                // The function itself is in the module.
                pending.extend(part.add_func(func).ok());
            }
        }
    }
    Some((part, only))
}

/// The function objects whose methods, called by a function, may be in other modules, each with the type of the first argument if it is a [leaf](is_leaf): the module has no method for
/// exactly the types of the call.
pub(super) fn called(module: &Module, id: FuncId) -> BTreeSet<(Type, Option<Type>)> {
    let callees = module[id].callees().filter_map(|(_, callee)| match callee {
        CalleeData::Method { function, args, .. } => {
            let is_elsewhere = module.find_exact(*function, args).is_none();
            is_elsewhere.then(|| (*function, first_of(module, args)))
        }
        CalleeData::Symbol { .. } => None,
    });
    callees.collect()
}

/// The type of a call's first argument, if it is a [leaf](is_leaf).
pub(super) fn first_of(module: &Module, args: &[Type]) -> Option<Type> {
    args.first().copied().filter(|&first| is_leaf(&module.cx.types, first))
}

/// The function objects that a function uses as values: dynamic calls may reach their methods.
pub(crate) fn mentioned(module: &Module, id: FuncId) -> BTreeSet<Type> {
    let func = &module[id];
    let mut ops = func.blocks().flat_map(|block| func.block_insts(block)).map(|inst| func.op(inst));
    // It receives its own object as the first argument, and rarely calls it.
    let own = func.sig.params.first().map(|object| object.ty).filter(|_| !ops.any(decides_later));
    let types = (0..func.value_count() as u32).map(|value| func.ty(Value::from_u32(value)));
    types.filter(|&ty| Some(ty) != own && matches!(module.cx.types.kind(ty), TypeKind::Function(_))).collect()
}
