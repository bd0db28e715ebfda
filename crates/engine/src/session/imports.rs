//! Imports of a program: declarations of the functions of other programs that it calls, with bodies where these may be inlined.
//!
//! **Bodies keep the scope in which they were defined.** A body is imported into another program only if every name in it means the same there;
//! else only its declaration is imported, and the call stays a call:
//!
//! | a body with | is imported if |
//! |---|---|
//! | a global variable of its program, or a constant with an identity | never: each program has its own |
//! | a C function or variable by name | it resolves to the same dylib, or the name is one of the run time's |
//! | a call of a method | the call resolves to the same definition there |
//! | a function as a value | the name means the same function there: the function that the program's own functions mention, else the current meaning (`owners.rs`) |
//! | the address of a function for C | never |
//!
//! **Static calls are bound when a program is defined**: to a dylib, by [`Bindings`], and to the signature of a method ([`bind_calls`]). Both bindings stay when the program
//! is compiled again and when its bodies are imported elsewhere, so a method defined later, more specific or earlier in the link order, changes no caller.
//!
//! **Dynamic calls** are devirtualized when they are compiled, if the module has all methods of the session that they may reach. A function with other methods is noted as
//! open ([`Module::note_open`]): no pass devirtualizes its dynamic calls.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::func::CalleeData;
use brolga_ir::function_name::is_library;
use brolga_ir::{Callee, Context, FuncId, FunctionName, Inst, Module, Name, Op, Type, TypeKind};
use brolga_linking::DylibId;
use brolga_opt::guessed;
use brolga_opt::lower::is_julia_function;
use rustc_hash::{FxHashMap, FxHashSet};

use super::link_orders::View;
use super::names_in::{Bindings, functions_in, variables};
use super::offer::Offer;
use super::reach::{DynamicCall, Reach, may_reach, reach};
use super::scope::{IsDefined, SessionMethod, Visible, called, first_of};

/// A set of methods of a function object to import.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Sought {
    /// All methods that a static call may reach, by the type of its first argument if that is a leaf.
    Called((Type, Option<Type>)),
    /// All methods, for calls of a value.
    All(Type),
    /// The existing methods that a dynamic call may reach.
    Reached(DynamicCall),
}

impl Sought {
    fn function(&self) -> Type {
        match self {
            Sought::Called((function, _)) | Sought::All(function) => *function,
            Sought::Reached(call) => call.function,
        }
    }

    /// The type of the first argument, if that is a leaf.
    fn first(&self, module: &Module) -> Option<Type> {
        match self {
            Sought::Called((_, first)) => *first,
            Sought::All(_) => None,
            Sought::Reached(call) => first_of(module, &call.args),
        }
    }
}

/// The methods that a function of a module needs, given what its dynamic calls reach.
fn sought(module: &Module, id: FuncId, reach: Reach) -> Vec<Sought> {
    let mut sought: Vec<Sought> = called(module, id).into_iter().map(Sought::Called).collect();
    sought.extend(reach.mentioned.iter().copied().map(Sought::All));
    let calls = reach.calls.into_iter().filter(|call| !reach.mentioned.contains(&call.function));
    sought.extend(calls.map(Sought::Reached));
    sought
}

/// Finds the methods of a function object by the type of a call's first argument.
type FindMethods<'a> = &'a dyn Fn(&Context, Type, Option<Type>) -> Vec<SessionMethod>;

/// Imports functions into programs of a dylib, with access to the dylibs that it and the functions' dylibs see.
pub(crate) struct Importer<'a> {
    pub(crate) dylib: DylibId,
    pub(crate) view: View<'a>,
    /// The dylibs that another dylib sees.
    pub(crate) view_of: &'a dyn Fn(DylibId) -> View<'a>,
    /// Whether a symbol is defined in a dylib.
    pub(crate) is_defined: IsDefined<'a>,
    /// The targets of the calls of a program that is compiled again.
    pub(crate) bindings: &'a Bindings,
    /// The methods of a function object in all dylibs of the session that a call may reach if its first argument has a type.
    pub(crate) methods: FindMethods<'a>,
}

/// The state of an import.
struct Import<'a> {
    /// The number of functions that the module had.
    own: usize,
    /// Functions of the module that have not been processed.
    pending: Vec<FuncId>,
    done: FxHashSet<Sought>,
    homes: BTreeMap<DylibId, View<'a>>,
    meanings: Meanings,
    /// The dylibs of the added methods.
    bindings: Bindings,
}

/// The meanings of function names in a module: the ones that its own functions use, else the current meanings.
#[derive(Default)]
struct Meanings {
    /// The functions that the module's own functions mention, by module and text; computed for the first body.
    mentioned: OnceCell<FxHashMap<(Name, Name), FunctionName>>,
}

impl Meanings {
    /// Whether a function is the meaning of its name in a module, whose first `own` functions are its own.
    fn is_meant(&self, module: &Module, own: usize, function: Type) -> bool {
        let (cx, names) = (&module.cx, &module.cx.names);
        let named = |ty: Type| match *cx.types.kind(ty) {
            TypeKind::Function(name) => Some(((name.module, names.intern(names.text(name.name))), name)),
            _ => None,
        };
        let Some((key, name)) = named(function) else { return true };
        let mentioned = self.mentioned.get_or_init(|| {
            let all = module.funcs().take(own).flat_map(|(_, func)| functions_in(cx, func));
            all.filter_map(named).collect()
        });
        let now = || FunctionName::of(names, names.text(name.module), names.text(name.name));
        mentioned.get(&key).copied().unwrap_or_else(now) == name
    }
}

impl<'a> Importer<'a> {
    /// Adds to a module the declarations of functions that it calls and does not define, and of existing functions that its dynamic calls
    /// may reach (`reach.rs`), with bodies where these may be imported. Imported bodies are processed as well. Returns
    /// the function objects whose methods it has looked for, and the dylibs of the imported methods.
    pub(crate) fn import(&self, module: &mut Module) -> (BTreeSet<Type>, Bindings) {
        let mut import = Import {
            own: module.func_count(),
            pending: module.funcs().map(|(id, _)| id).collect(),
            done: FxHashSet::default(),
            homes: BTreeMap::new(),
            meanings: Meanings::default(),
            bindings: Bindings::new(),
        };
        let mut has_unknown = false;
        loop {
            let id = import.pending.pop();
            let is_last = id.is_none();
            let all = match id {
                Some(id) => {
                    let reach = reach(module, &module[id]);
                    has_unknown |= reach.has_unknown;
                    sought(module, id, reach)
                }
                None if has_unknown => guessed(module).into_iter().map(Sought::All).collect(),
                None => Vec::new(),
            };
            let new: Vec<Sought> = all.into_iter().filter(|sought| !import.done.contains(sought)).collect();
            if new.is_empty() && is_last {
                let looked_up = import.done.iter().map(Sought::function).collect();
                return (looked_up, import.bindings);
            }
            for sought in new {
                self.add(module, &sought, &mut import);
                import.done.insert(sought);
            }
        }
    }

    /// Adds the sought methods that the module lacks.
    fn add(&self, module: &mut Module, sought: &Sought, import: &mut Import<'a>) {
        let methods = (sought.function(), sought.first(module));
        let visible = self.view.methods(&module.cx, methods, self.is_defined, self.bindings);
        if self.is_open(module, import.own, sought, &visible) {
            module.note_open(sought.function());
        }
        for (symbol, visible) in visible {
            let Visible { dylib, offer } = visible;
            let func = &offer.func;
            let is_there = || (self.is_defined)(dylib, &symbol);
            let is_reached = match sought {
                // Calls bound to a removed method keep it.
                Sought::Called(_) => true,
                Sought::All(_) => is_there(),
                Sought::Reached(call) => may_reach(&module.cx.types, &call.args, func) && is_there(),
            };
            // A method that the module already has is its own, or was imported before.
            if !is_reached || module.find_same(func).is_some() {
                continue;
            }
            let has_body = func.blocks().next().is_some() && {
                let home = import.homes.entry(dylib).or_insert_with(|| (self.view_of)(dylib));
                self.means_the_same(module, (import.own, &import.meanings), &offer, (dylib, home))
            };
            let func = if has_body { func.clone() } else { func.declaration().into() };
            // The module's view holds the names that the function uses.
            let is_held = module.cx.hold(&func);
            debug_assert!(is_held, "a declaration is offered with the view that it comes from");
            let Ok(id) = module.add_func(func) else { continue };
            import.bindings.insert(symbol, dylib);
            import.pending.push(id);
        }
    }

    /// Whether dynamic calls may reach methods that are not imported: methods of dylibs that this one does not see, and methods whose signature it sees in another dylib
    /// first.
    fn is_open(
        &self,
        module: &Module,
        own: usize,
        sought: &Sought,
        visible: &BTreeMap<Arc<str>, Visible>,
    ) -> bool {
        let types = &module.cx.types;
        let function = match sought {
            Sought::Called(_) => return false,
            Sought::All(function) | Sought::Reached(DynamicCall { function, .. }) => *function,
        };
        let is_own = |symbol: &str| {
            let own = module.methods(function).iter().filter(|id| (id.as_u32() as usize) < own);
            own.into_iter().any(|&id| module[id].symbol(&module.cx) == *symbol)
        };
        let comes_in = |dylib: DylibId, symbol: &Arc<str>| match is_own(symbol) {
            true => dylib == self.dylib,
            false => visible.get(symbol).is_some_and(|visible| visible.dylib == dylib),
        };
        let is_reached = |offer: &Offer| match sought {
            Sought::Reached(call) => module.cx.hold(&offer.func) && may_reach(types, &call.args, &offer.func),
            _ => true,
        };
        let misses = |SessionMethod { dylib, symbol, offer }: SessionMethod| {
            offer.is_none_or(|offer| is_reached(&offer) && !comes_in(dylib, &symbol))
        };
        // Dynamic calls do not reach removed methods.
        let is_gone = |(symbol, visible): (&Arc<str>, &Visible)| !(self.is_defined)(visible.dylib, symbol);
        visible.iter().any(is_gone)
            || (self.methods)(&module.cx, function, sought.first(module)).into_iter().any(misses)
    }

    /// Whether all names in a body have the same meaning in a module, whose first `own` functions are its own, as in the program that defines it.
    fn means_the_same(
        &self,
        module: &Module,
        (own, meanings): (usize, &Meanings),
        offer: &Offer,
        (dylib, home): (DylibId, &View<'_>),
    ) -> bool {
        let func = &offer.func;
        let mut ops = func.blocks().flat_map(|block| func.block_insts(block)).map(|inst| func.op(inst));
        let is_here = dylib == self.dylib;
        (is_here || func.c_symbols().all(|name| is_julia_function(module.cx.names.text(name))))
            && !ops.any(|op| matches!(op, Op::CFunction(_)))
            && functions_in(&module.cx, func).into_iter().all(|ty| meanings.is_meant(module, own, ty))
            && !variables(func).any(|name| module.global(name).is_some())
            && func.callees().all(|(_, callee)| match callee {
                CalleeData::Method { function, args, .. } => {
                    let methods = (*function, first_of(module, args));
                    let visible = home.methods(&module.cx, methods, self.is_defined, &offer.bindings);
                    self.target(module, own, *function, args)
                        == most_specific(visible, module, *function, args)
                }
                CalleeData::Symbol { .. } => is_here,
            })
    }

    /// The method that a module's call resolves to: the dylib that defines it, and its symbol.
    fn target(
        &self,
        module: &Module,
        own: usize,
        function: Type,
        args: &[Type],
    ) -> Option<(DylibId, Arc<str>)> {
        let methods = (function, first_of(module, args));
        let mut visible = self.view.methods(&module.cx, methods, self.is_defined, self.bindings);
        for &id in module.methods(function).iter().filter(|id| (id.as_u32() as usize) < own) {
            let (func, dylib) = (&module[id], self.dylib);
            let offer = Offer::declaration(&module.cx, func);
            visible.insert(func.symbol(&module.cx).into(), Visible { dylib, offer });
        }
        most_specific(visible, module, function, args)
    }
}

/// The most specific method for a call: the dylib that defines it, and its symbol.
fn most_specific(
    visible: BTreeMap<Arc<str>, Visible>,
    module: &Module,
    function: Type,
    args: &[Type],
) -> Option<(DylibId, Arc<str>)> {
    let mut methods = Module::new(module.cx.clone());
    let mut labels = Vec::with_capacity(visible.len());
    for (symbol, Visible { dylib, offer }) in visible {
        let func = offer.func.declaration();
        if module.cx.hold(&func) && methods.add_func(func).is_ok() {
            labels.push((dylib, symbol));
        }
    }
    let found = methods.find_method(function, args)?;
    labels.into_iter().nth(found.as_u32() as usize)
}

/// The bindings of a program's calls, where calls of its own functions are bound to itself.
pub(super) fn with_own(mut bindings: Bindings, module: &Module, own: &[FuncId], dylib: DylibId) -> Bindings {
    bindings.extend(own.iter().map(|&id| (module.symbol_of(id), dylib)));
    bindings
}

/// Makes the static calls of a program name their target methods by the methods' types: so they keep the target as long as it is defined, even if a
/// more specific method is defined later. A call of a method with a collecting parameter or open variables keeps its argument types. A call whose method is
/// missing becomes dynamic.
pub(super) fn bind_calls(module: &mut Module, own: &[FuncId]) {
    for &id in own {
        let func = &module[id];
        let insts: Vec<Inst> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
        // Calls by C use the types that are written.
        let is_of_c = |callee: Callee| insts.iter().any(|&inst| func.op(inst) == Op::CFunction(callee));
        let (mut bound, mut missing) = (Vec::new(), BTreeMap::new());
        for (callee, data) in func.callees() {
            let CalleeData::Method { function, args, result } = data else { continue };
            let (function, result) = (*function, *result);
            let Some(target) = module.find_method(function, args) else {
                missing.extend(is_of_session(&module.cx, function).then_some((callee, function)));
                continue;
            };
            let sig = &module[target].sig;
            let params: Box<[Type]> = sig.params.iter().skip(1).map(|param| param.ty).collect();
            if !sig.vararg && !sig.statics.is_open() && params != *args && !is_of_c(callee) {
                bound.push((callee, CalleeData::Method { function, args: params, result }));
            }
        }
        if bound.is_empty() && missing.is_empty() {
            continue;
        }
        // The methods imported for a static call may not be all that a dynamic call can reach.
        missing.values().for_each(|&function| module.note_open(function));
        let Some(func) = module.func_mut(id) else { continue };
        bound.into_iter().for_each(|(callee, data)| func.set_callee(callee, data));
        for inst in insts {
            if matches!(func.op(inst), Op::Invoke(callee) if missing.contains_key(&callee)) {
                let args = func.args(inst).to_vec();
                func.set_op(inst, Op::Call, &args);
            }
        }
    }
}

/// Whether programs define the function of this object. Functions of Base may exist without a method.
fn is_of_session(cx: &Context, function: Type) -> bool {
    matches!(*cx.types.kind(function), TypeKind::Function(name) if !is_library(cx.names.text(name.module)))
}
