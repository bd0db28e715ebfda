//! Backedges and invalidation: when a function changes, callers that inlined it are recompiled.
//!
//! ```text
//!   base ◄── inlined ── middle ◄── inlined ── top      base is redefined: the bodies of middle and top are recompiled as well, from
//!                                                      their source, at the next call
//! ```
//!
//! A function calls others through cells, which reach the newest version. Callees with a body in its program may be inlined, and an eager function
//! relies on summaries of their bodies (`pipeline.rs`). The optimiser chooses; every callee with a body is noted as inlined.
//! Dynamic calls may have been devirtualized to methods of the program: a function depends on the methods, also new ones, that its dynamic calls
//! may reach by the types of their arguments, and on all methods of function values that it passes on (`reach.rs`). A function that calls an
//! unknown function depends on all functions that its program has methods of or mentions.
//!
//! When one of them is defined, the bodies of its callers are replaced in the same step as its own, and so are the bodies of their
//! callers: the cells get versions for the next world, frames continue in the old code, and the next call or lookup compiles the
//! new version. A callee that was inlined before is now only declared, or has the new body if that may be inlined elsewhere.
//!
//! **Total order.** Threads define concurrently, and no thread waits while another compiles. Each prepares its definitions from a
//! snapshot of imports and backedges. The step that puts them into force validates the snapshot,
//! under the lock of changes ([`Edges::are_prepared`]); if it is stale, the definitions are prepared again. In the same step the change
//! gets its number, is noted, and is offered to others: so a snapshot at a number has all changes in force up to it.
//!
//! | snapshot of | is current as long as |
//! |---|---|
//! | imported declarations and bodies | no function of their objects was defined under a higher number |
//! | callers that inlined the defined functions | the set is unchanged, each noted under the same number |
//! | existing cells | their names resolve to them (`batch.rs`) |
//!
//! Names alone determine the set and order of invalidated functions. [`Session::take_invalidations`] lists them with the reasons.
//!
//! Notes about removed functions are dropped when a lookup hits them, or in a sweep when their number has doubled since the last sweep; notes
//! about a closed dylib are dropped when it is next found.
//!
//! Code contains the addresses of C functions, so a function is also noted under the names of the C functions that it calls.
//!
//! A caller for which the new function has another type keeps its old callee.
//!
//! **Removal.** Callers whose dynamic calls may have been devirtualized to a removed method are recompiled afterwards (`removal.rs`). Static callers keep what they have inlined.
//!
//! Not done: functions of promised programs.
//!
//! Cost: a copy of the source of each function with such calls. A concurrent change costs another preparation, but one
//! of the two is then in force, so some thread always makes progress.
//!
//! [`Session::take_invalidations`]: super::Session::take_invalidations

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use brolga_ir::func::CalleeData;
use brolga_ir::module::FuncRef;
use brolga_ir::{Context, Func, FuncId, Level, Module, Type, TypeKind};
use brolga_linking::{DylibId, Label, Name};
use brolga_opt::lower::is_julia_function;

use super::input::ProgramFacts;
use super::reach::{DynamicCall, Reach, first_parameter, is_leaf, may_reach};
use super::scope::{Offered, mentioned, object};
use super::sync::lock;
use super::tiering::policy::Limits;
use super::variables::DeclaredVariables;

mod because;
mod dependence;
mod lookers;

pub(crate) use because::Because;
pub use because::Invalidated;
use because::Step;
use dependence::Dependence;
pub(crate) use dependence::Dependences;
use lookers::Lookers;

/// The maximum number of invalidations kept for the embedder; beyond it the oldest are dropped.
const KEPT: usize = 1000;

/// The maximum number of functions whose change numbers are kept; beyond it one number is kept for all.
const DEFINED: usize = 4096;

/// The minimum number of functions for a sweep.
const SWEPT: usize = 64;

/// The functions reached by a change, each with its last step, and the steps.
#[derive(Default)]
struct Reached {
    labels: Vec<(Label, usize)>,
    steps: Vec<Step>,
}

/// A pending definition.
pub(crate) struct Change {
    pub(crate) label: Label,
    pub(crate) symbol: Arc<str>,
    /// The symbol without types.
    pub(crate) bare: Arc<str>,
    /// The type of the function's object in the session's context, if it is known.
    pub(crate) object: Option<Type>,
    /// The declaration, if its types belong to the session's context.
    declared: Option<Func>,
    /// Whether the function was removed: then callers that have inlined it keep it.
    is_removal: bool,
}

impl Change {
    /// A pending definition of a function of a module under this label, in a session with this context.
    pub(crate) fn new(label: Label, module: &Module, id: FuncId, cx: &Arc<Context>) -> Change {
        let (symbol, bare) = (module.symbol_of(id), module.cx.names.text(module[id].name).into());
        let declared = module.cx.is_same(cx).then(|| module[id].declaration());
        Change { label, symbol, bare, object: object(module, id, cx), declared, is_removal: false }
    }

    /// A pending definition of a C symbol.
    pub(crate) fn c_symbol(label: Label, name: &str) -> Change {
        let symbol: Arc<str> = name.into();
        Change { label, bare: symbol.clone(), symbol, object: None, declared: None, is_removal: false }
    }

    /// The removal of a method of a function object, as its dylib offered it.
    pub(crate) fn removal(label: Label, gone: Offered, cx: &Context) -> Change {
        let Offered { symbol, object, offer } = gone;
        let bare = match *cx.types.kind(object) {
            TypeKind::Function(function) => cx.names.text(function.name).into(),
            _ => symbol.clone(),
        };
        let declared = offer.map(|offer| offer.func.declaration());
        Change { label, symbol, bare, object: Some(object), declared, is_removal: true }
    }

    fn method(&self) -> Method<'_> {
        Method { bare: &self.bare, object: self.object, declared: self.declared.as_ref() }
    }
}

/// A method that is defined or recompiled.
#[derive(Clone, Copy)]
struct Method<'a> {
    bare: &'a Arc<str>,
    /// The type of the function's object, if it is known.
    object: Option<Type>,
    /// The function, if its types belong to the session's context.
    declared: Option<&'a Func>,
}

/// A record of an import, with its change number.
#[derive(Clone, Default)]
pub(crate) struct Imported {
    /// The types of function objects whose methods were looked for.
    pub(crate) looked_for: BTreeSet<Type>,
    /// The number of the last change in force before the import.
    pub(crate) seen: u64,
}

/// The basis of a change: the snapshot that its step validates.
#[derive(Default)]
pub(crate) struct Basis {
    pub(crate) changes: Vec<Change>,
    /// The instances to recompile, with the numbers under which they were noted.
    pub(crate) hits: BTreeMap<Label, u64>,
    /// The number of the last change before these were read.
    pub(crate) seen: u64,
    pub(crate) imports: Vec<Imported>,
    /// The global variables that its program declares.
    pub(crate) variables: DeclaredVariables,
}

/// Notes about functions, entered when the functions take effect.
#[derive(Default)]
pub(crate) struct Notes {
    callers: Vec<(Label, Option<Caller>)>,
    /// Programs in which methods were looked for: the bare names of the functions that they define or mention.
    programs: Vec<BTreeSet<Arc<str>>>,
    /// The replaced notes: they hold foreign values, and are dropped without a lock.
    before: Vec<Arc<Caller>>,
}

/// When a function is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// At its lookup.
    Eager,
    /// At its first call.
    Lazy,
    /// At its first call, and again after a number of calls, or iterations of a loop.
    Tiered(Limits),
}

/// The inputs for recompiling the body of a function.
pub(crate) struct Caller {
    pub(crate) symbol: Arc<str>,
    bare: Arc<str>,
    pub(crate) func: FuncRef,
    /// Its program, without the functions.
    pub(crate) program: Module,
    /// The declarations of its callees, for a program in its own context.
    pub(crate) declared: Vec<Func>,
    pub(crate) facts: Arc<ProgramFacts>,
    pub(crate) kind: Kind,
    /// Whether its types belong to the session's context.
    is_shared: bool,
    /// The symbols of its inlined callees, and of the C functions whose addresses its code contains.
    inlines: Vec<Arc<str>>,
    /// The methods that its dynamic calls may reach, if its types belong to the session's context.
    reach: Reach,
    /// The program in which it looked for methods, if it calls unknown functions.
    searches: Option<u64>,
    /// The number of the change that noted it.
    noted: u64,
}

impl Caller {
    fn method(&self) -> Method<'_> {
        let object = self.func.sig.params.first().map(|object| object.ty);
        let is_known = self.is_shared && self.func.level == Level::High;
        Method {
            bare: &self.bare,
            object: object.filter(|_| is_known),
            declared: self.is_shared.then_some(&*self.func),
        }
    }

    /// The keys under which it is listed: the functions that it may call dynamically, each with the type of the first argument if only methods for this type take it.
    fn places(&self) -> impl Iterator<Item = (Type, Option<Type>)> + '_ {
        let types = &self.program.cx.types;
        let calls = self.reach.calls.iter();
        let calls =
            calls.map(|call| (call.function, call.args.first().copied().filter(|&ty| is_leaf(types, ty))));
        calls.chain(self.reach.mentioned.iter().map(|&function| (function, None)))
    }

    /// Whether a dynamic call may reach this method of `function`, or any method if `None`.
    fn may_reach(&self, function: Type, method: Option<&Func>) -> bool {
        let types = &self.program.cx.types;
        let reaches = |call: &DynamicCall| {
            call.function == function && method.is_none_or(|method| may_reach(types, &call.args, method))
        };
        self.reach.mentioned.contains(&function) || self.reach.calls.iter().any(reaches)
    }
}

/// A function to recompile.
#[derive(Clone)]
pub(crate) struct Hit {
    pub(crate) label: Label,
    pub(crate) caller: Arc<Caller>,
    pub(crate) because: Because,
}

impl Hit {
    /// The function, and the number of its note.
    pub(crate) fn noted(&self) -> (Label, u64) {
        (self.label, self.caller.noted)
    }
}

/// The edges of a session.
#[derive(Default)]
pub(crate) struct Edges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last change in force, or of the last forgotten entry.
    number: u64,
    /// The last definitions of functions, by the types of their objects: the changes after `forgotten`.
    defined: BTreeMap<Type, u64>,
    /// Imports made before this change are repeated.
    forgotten: u64,
    sources: BTreeMap<Label, Arc<Caller>>,
    /// The number of entries at which removed ones are swept.
    sweep_at: usize,
    /// The callers by the symbol of the inlined callee, in any dylib.
    callers: BTreeMap<Arc<str>, BTreeSet<Label>>,
    /// The functions with dynamic calls, by the type of the object of the called function.
    dynamic: BTreeMap<Type, Lookers>,
    /// The types above, by the bare names of the functions.
    objects: BTreeMap<Arc<str>, BTreeSet<Type>>,
    /// Programs in which methods were looked for, by the bare names of their functions.
    programs: BTreeMap<Arc<str>, BTreeSet<u64>>,
    /// The bare names of the functions of each program.
    names: BTreeMap<u64, BTreeSet<Arc<str>>>,
    /// The functions that looked for methods, by program.
    lookers: BTreeMap<u64, BTreeSet<Label>>,
    next_program: u64,
    log: VecDeque<(Name, Because)>,
}

impl State {
    /// Removes a note, which must be dropped without the lock: it holds foreign values.
    #[must_use]
    fn forget(&mut self, label: Label) -> Option<Arc<Caller>> {
        let caller = self.sources.remove(&label)?;
        for inlined in &caller.inlines {
            if let Some(callers) = self.callers.get_mut(inlined) {
                callers.remove(&label);
                if callers.is_empty() {
                    self.callers.remove(inlined);
                }
            }
        }
        for (function, first) in caller.places() {
            let Some(lookers) = self.dynamic.get_mut(&function) else { continue };
            lookers.remove(first, label);
            if lookers.is_empty() {
                self.dynamic.remove(&function);
                let bare = bare_name(&caller.program, function);
                if let Some(objects) = self.objects.get_mut(bare) {
                    objects.remove(&function);
                    if objects.is_empty() {
                        self.objects.remove(bare);
                    }
                }
            }
        }
        let Some(program) = caller.searches else { return Some(caller) };
        if let Some(lookers) = self.lookers.get_mut(&program) {
            lookers.remove(&label);
            if lookers.is_empty() {
                self.lookers.remove(&program);
                for name in self.names.remove(&program).unwrap_or_default() {
                    let Some(programs) = self.programs.get_mut(&name) else { continue };
                    programs.remove(&program);
                    if programs.is_empty() {
                        self.programs.remove(&name);
                    }
                }
            }
        }
        Some(caller)
    }

    /// Notes a function. The numbers of programs start at `base`.
    fn note(&mut self, label: Label, mut caller: Caller, base: u64) {
        caller.searches = caller.searches.map(|program| base + program);
        caller.noted = self.number;
        if let Some(program) = caller.searches {
            self.lookers.entry(program).or_default().insert(label);
        }
        for inlined in &caller.inlines {
            self.callers.entry(inlined.clone()).or_default().insert(label);
        }
        for (function, first) in caller.places() {
            let lookers = self.dynamic.entry(function).or_insert_with(|| {
                let bare: Arc<str> = bare_name(&caller.program, function).into();
                self.objects.entry(bare).or_default().insert(function);
                Lookers::default()
            });
            lookers.at(first).insert(label);
        }
        self.sources.insert(label, Arc::new(caller));
    }

    /// Sweeps removed functions when the number of entries has doubled since the last sweep.
    #[must_use]
    fn sweep(&mut self, is_defined: &dyn Fn(Label) -> bool) -> Vec<Arc<Caller>> {
        if self.sources.len() < self.sweep_at.max(SWEPT) {
            return Vec::new();
        }
        let gone: Vec<Label> = self.sources.keys().copied().filter(|label| !is_defined(*label)).collect();
        let gone = gone.into_iter().filter_map(|label| self.forget(label)).collect();
        self.sweep_at = 2 * self.sources.len();
        gone
    }

    /// Whether the imports are still current.
    fn is_new(&self, imported: &Imported) -> bool {
        let later = |object| self.defined.get(object).is_some_and(|&number| number > imported.seen);
        self.number == imported.seen
            || imported.looked_for.is_empty()
            || imported.seen >= self.forgotten && !imported.looked_for.iter().any(later)
    }

    /// Whether a prepared change is still valid.
    fn is_prepared(&self, basis: &Basis) -> bool {
        if !basis.variables.are_prepared() || !basis.imports.iter().all(|imported| self.is_new(imported)) {
            return false;
        }
        let noted = |label: &Label| self.sources.get(label).map(|caller| caller.noted);
        self.number == basis.seen
            || basis.hits.iter().all(|(label, &number)| noted(label) == Some(number))
                && (basis.changes.is_empty() || self.reached(&basis.changes).labels.len() == basis.hits.len())
    }

    /// The transitive dependents of pending definitions, each with its chain, except functions that are defined
    /// themselves.
    fn reached(&self, changes: &[Change]) -> Reached {
        let mut reached = Reached::default();
        if self.sources.is_empty() {
            return reached;
        }
        let mut seen: BTreeSet<Label> = changes.iter().map(|change| change.label).collect();
        let mut pending: VecDeque<(usize, Method<'_>, bool)> = VecDeque::new();
        for change in changes {
            pending.push_back((reached.steps.len(), change.method(), change.is_removal));
            reached.steps.push(Step { symbol: change.symbol.clone(), from: None });
        }
        while let Some((from, method, is_removal)) = pending.pop_front() {
            let users = self.users(&reached.steps[from].symbol, method, !is_removal);
            let mut callers: Vec<(&Caller, Label)> =
                users.into_iter().filter_map(|label| Some((&**self.sources.get(&label)?, label))).collect();
            callers.sort_by(|a, b| (&a.0.symbol, a.1.dylib).cmp(&(&b.0.symbol, b.1.dylib)));
            for (caller, label) in callers {
                if seen.insert(label) {
                    reached.labels.push((label, from));
                    pending.push_back((reached.steps.len(), caller.method(), false));
                    reached.steps.push(Step { symbol: caller.symbol.clone(), from: Some(from) });
                }
            }
        }
        reached
    }

    /// The dependents of a method: with `inlining`, the functions that inline it, and the functions that may call it dynamically.
    fn users(&self, symbol: &Arc<str>, method: Method<'_>, inlining: bool) -> BTreeSet<Label> {
        let programs = self.programs.get(method.bare).into_iter().flatten();
        let lookers = programs.filter_map(|program| self.lookers.get(program)).flatten();
        let inliners = self.callers.get(symbol).filter(|_| inlining).into_iter().flatten();
        let objects: Vec<Type> = match method.object {
            Some(object) => vec![object],
            // A function of another context is found among these by name.
            None => self.objects.get(method.bare).into_iter().flatten().copied().collect(),
        };
        let dynamic = objects.into_iter().flat_map(|object| self.dynamic_users(object, method.declared));
        inliners.chain(lookers).copied().chain(dynamic).collect()
    }

    /// The functions whose dynamic calls may reach this method of a function, or any method if `None`.
    fn dynamic_users(&self, function: Type, method: Option<&Func>) -> Vec<Label> {
        let Some(lookers) = self.dynamic.get(&function) else { return Vec::new() };
        let caller = |label: &Label| self.sources.get(label);
        // Listed callers belong to the session's context, as the method does.
        let any = lookers.of(None).next().and_then(|label| self.sources.get(&label));
        let first = any.zip(method).and_then(|(any, method)| first_parameter(&any.program.cx.types, method));
        let reaches = |label: &Label| caller(label).is_some_and(|caller| caller.may_reach(function, method));
        lookers.of(first).filter(reaches).collect()
    }
}

/// The name of a function without its module, by the type of its object.
fn bare_name(module: &Module, function: Type) -> &str {
    match *module.cx.types.kind(function) {
        TypeKind::Function(function) => module.cx.names.text(function.name),
        _ => "",
    }
}

impl Notes {
    /// Adds the note of a module's function that is about to be defined. `program` is the same for all functions of one
    /// module. `is_shared` is set if the module belongs to the session's context, so that the function's callees can be imported again.
    pub(crate) fn add(
        &mut self,
        label: Label,
        is_shared: bool,
        (dependences, id): (&mut Dependences<'_>, FuncId),
        facts: &Arc<ProgramFacts>,
        kind: Kind,
        program: &mut Option<u64>,
    ) {
        let Dependence { callees, reach, looks } = dependences.dependence(id);
        let module = dependences.module;
        let func = &module[id];
        let mut inlines: Vec<Arc<str>> = c_symbols(module, func).collect();
        if callees.is_empty() && !looks && inlines.is_empty() {
            return self.add_nothing(label);
        }
        inlines.extend(callees.iter().map(|&id| module.symbol_of(id)));
        let reach = if is_shared { reach } else { Reach::default() };
        let searches = looks && (reach.has_unknown || !is_shared);
        let searches = searches.then(|| *program.get_or_insert_with(|| self.program(module)));
        let bare = module.cx.names.text(func.name).into();
        let Some(func) = module.shared(id) else { return self.add_nothing(label) };
        let symbol = module.symbol_of(id);
        let (program, facts) = (module.without_functions(), facts.clone());
        // A function of the session's context imports its callees.
        let declared = if is_shared { Vec::new() } else { declared_callees(module, id) };
        let caller = Caller {
            symbol,
            bare,
            func,
            program,
            declared,
            facts,
            kind,
            is_shared,
            inlines,
            reach,
            searches,
            noted: 0,
        };
        self.callers.push((label, Some(caller)));
    }

    /// Adds a function without inlined callees.
    pub(crate) fn add_nothing(&mut self, label: Label) {
        self.callers.push((label, None));
    }

    /// Adds a program. Returns its index.
    fn program(&mut self, module: &Module) -> u64 {
        let names = module.funcs().flat_map(|(id, func)| {
            let mentioned = mentioned(module, id).into_iter();
            let mentioned = mentioned.filter_map(|ty| match *module.cx.types.kind(ty) {
                TypeKind::Function(function) => Some(function.name),
                _ => None,
            });
            mentioned.chain([func.name])
        });
        self.programs.push(names.map(|name| module.cx.names.text(name).into()).collect());
        self.programs.len() as u64 - 1
    }
}

/// The names of the C symbols that a function uses, except the run time's.
fn c_symbols<'m>(module: &'m Module, func: &'m Func) -> impl Iterator<Item = Arc<str>> + 'm {
    let names = func.c_symbols().map(|name| module.cx.names.text(name));
    names.filter(|name| !is_julia_function(name)).map(Arc::from)
}

/// The declarations of a function's callees.
fn declared_callees(module: &Module, id: FuncId) -> Vec<Func> {
    let called = module[id].callees().filter_map(|(_, callee)| match callee {
        CalleeData::Method { function, args, .. } => module.find_method(*function, args),
        CalleeData::Symbol { .. } => None,
    });
    let called: BTreeSet<FuncId> = called.filter(|callee| *callee != id).collect();
    called.into_iter().map(|id| module[id].declaration()).collect()
}

impl Edges {
    /// The number of the last change. Functions read from now on include at least the changes up to it.
    pub(crate) fn number(&self) -> u64 {
        lock(&self.state).number
    }

    /// Whether any noted function calls others dynamically.
    pub(crate) fn has_dynamic_calls(&self) -> bool {
        let state = lock(&self.state);
        !state.dynamic.is_empty() || !state.programs.is_empty()
    }

    /// Whether the imports are still current.
    pub(crate) fn is_new(&self, imported: &Imported) -> bool {
        lock(&self.state).is_new(imported)
    }

    /// Whether a prepared change is still valid. It stays valid under the lock of changes.
    pub(crate) fn are_prepared(&self, basis: &Basis) -> bool {
        lock(&self.state).is_prepared(basis)
    }

    /// Enters a change that is in force, and returns its number.
    pub(crate) fn enter(
        &self,
        basis: &Basis,
        notes: &mut Notes,
        log: Vec<(Name, Because)>,
        is_defined: &dyn Fn(Label) -> bool,
    ) -> u64 {
        let mut state = lock(&self.state);
        state.number += 1;
        let number = state.number;
        if state.defined.len() >= DEFINED {
            state.defined.clear();
            state.forgotten = number;
        }
        state.defined.extend(basis.changes.iter().filter_map(|change| Some((change.object?, number))));
        let base = state.next_program;
        for (at, names) in (base..).zip(std::mem::take(&mut notes.programs)) {
            state.next_program = at + 1;
            for bare in &names {
                state.programs.entry(bare.clone()).or_default().insert(at);
            }
            state.names.insert(at, names);
        }
        // Functions noted now are not defined yet.
        notes.before.extend(state.sweep(is_defined));
        for (label, caller) in std::mem::take(&mut notes.callers) {
            notes.before.extend(state.forget(label));
            if let Some(caller) = caller {
                state.note(label, caller, base);
            }
        }
        for invalidated in log {
            if state.log.len() == KEPT {
                state.log.pop_front();
            }
            state.log.push_back(invalidated);
        }
        number
    }

    /// Drops the note of a removed function, unless its number is higher. A stale note is detected when it
    /// is hit.
    pub(crate) fn forget(&self, label: Label, seen: u64) {
        let mut state = lock(&self.state);
        if state.sources.get(&label).is_some_and(|caller| caller.noted <= seen) {
            let gone = state.forget(label);
            state.number += 1;
            drop(state);
            drop(gone);
        }
    }

    /// Drops the notes of a dylib's functions, except notes with higher numbers.
    pub(crate) fn forget_all(&self, dylib: DylibId, seen: u64) {
        let mut state = lock(&self.state);
        let gone = |(label, caller): &(&Label, &Arc<Caller>)| label.dylib == dylib && caller.noted <= seen;
        let labels: Vec<Label> = state.sources.iter().filter(gone).map(|(label, _)| *label).collect();
        let gone: Vec<Arc<Caller>> = labels.into_iter().filter_map(|label| state.forget(label)).collect();
        state.number += 1;
        drop(state);
        drop(gone);
    }

    /// Drops all notes, at the end of the session: they hold programs, and through these host functions, which may hold the session. The log stays.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        let number = state.number + 1;
        let log = std::mem::take(&mut state.log);
        let ended = State { number, forgotten: number, log, ..State::default() };
        let gone = std::mem::replace(&mut *state, ended);
        drop(state);
        drop(gone);
    }

    /// The dependents of pending definitions, and the number of the last change before.
    pub(crate) fn hit(&self, changes: &[Change]) -> (Vec<Hit>, u64) {
        let state = lock(&self.state);
        let Reached { labels, steps } = state.reached(changes);
        let steps: Arc<[Step]> = steps.into();
        let hit = |(label, from)| {
            let because = Because { steps: steps.clone(), from };
            Some(Hit { label, caller: state.sources.get(&label)?.clone(), because })
        };
        (labels.into_iter().filter_map(hit).collect(), state.number)
    }

    /// The hits that have been neither defined nor recompiled since, and the number of the last change.
    pub(crate) fn still(&self, hits: &[Hit]) -> (Vec<Hit>, u64) {
        let state = lock(&self.state);
        let is_same = |hit: &&Hit| state.sources.get(&hit.label).map(|c| c.noted) == Some(hit.caller.noted);
        (hits.iter().filter(is_same).cloned().collect(), state.number)
    }

    pub(crate) fn take_log(&self) -> Vec<Invalidated> {
        let log = std::mem::take(&mut lock(&self.state).log);
        log.into_iter().map(Invalidated::from).collect()
    }
}
