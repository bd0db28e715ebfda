//! What lazy functions have taken in, and what becomes of them when that changes.
//!
//! ```text
//!   base ◄── inlined ── middle ◄── inlined ── top      base is defined anew: the bodies of middle and top are made anew, too, from
//!                                                      what was written, when they are called next
//! ```
//!
//! A lazy function calls most others through slots, and finds whatever is behind them. Those whose bodies its program shows
//! may be inlined; which of them are is up to the optimiser, so all that are called and have a body are noted as taken in.
//! Calls that are decided at run time may have been turned into calls of the methods that the program shows: a function with
//! such calls depends on all functions of which its program has methods or which it mentions, and so on new methods of them.
//!
//! When one of them is defined, the bodies of its callers are replaced in the same step as its own, and so are those of their
//! callers: the slots lead to stubs again, threads go on in the old code until they leave it, and the next call compiles what is
//! true then. What was taken in before is declared now, or has the new body if that may be inlined elsewhere.
//!
//! Which functions these are, and in which order, follows from names alone. [`Session::take_invalidations`] says which, and why.
//!
//! Code that is not lazy keeps what it was linked with, and so does a caller for which the new function has another type.
//!
//! Not done: functions of promised programs; removal, after which callers keep what they have taken in.
//!
//! Cost: for each lazy function with such calls a copy of what was written.
//!
//! [`Session::take_invalidations`]: super::Session::take_invalidations

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use brolga_ir::func::CalleeData;
use brolga_ir::module::Global;
use brolga_ir::{Func, FuncId, Module, TypeKind};
use brolga_session::{DylibId, Label, Name};

use super::plan::lock;
use super::scope::mentioned;
use super::unit::{Whole, decides_later};

/// Invalidations that nobody has taken; of more, the oldest are forgotten.
const KEPT: usize = 1000;

/// A function whose code was given up because something that it depends on was defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidated {
    /// The function.
    pub function: Name,
    /// The functions by which it came about, from the one that it depends on to the one that was defined.
    pub because: Vec<Arc<str>>,
}

impl std::fmt::Display for Invalidated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.function)?;
        for (n, next) in self.because.iter().enumerate() {
            write!(f, "{} depends on `{next}`", if n == 0 { "" } else { ", which" })?;
        }
        f.write_str(", which was defined")
    }
}

/// What is about to be defined.
pub(crate) struct Change {
    pub(crate) label: Label,
    pub(crate) symbol: Arc<str>,
    /// The symbol without the types.
    pub(crate) bare: Arc<str>,
}

/// What is needed to make the body of a lazy function anew.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) symbol: Arc<str>,
    bare: Arc<str>,
    pub(crate) func: Func,
    pub(crate) globals: Vec<Global>,
    pub(crate) whole: Arc<Whole>,
    /// Calls, and rounds of loops, after which it is optimised, if it is compiled in two tiers.
    pub(crate) tiers: Option<(i32, u32)>,
    /// The symbols of what it has taken in.
    takes_in: Vec<Arc<str>>,
    /// The program in which it has looked for methods, if it has.
    looks_in: Option<u64>,
}

/// A function that is to be made anew.
#[derive(Clone)]
pub(crate) struct Hit {
    pub(crate) label: Label,
    pub(crate) caller: Caller,
    pub(crate) because: Vec<Arc<str>>,
}

/// What the lazy functions of a session have taken in.
#[derive(Default)]
pub(crate) struct Inlined {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sources: BTreeMap<Label, Caller>,
    /// By the symbol of what they have taken in, in whatever dylib that is.
    callers: BTreeMap<Arc<str>, BTreeSet<Label>>,
    /// Programs in which methods were looked for, by the bare names of their functions.
    programs: BTreeMap<Arc<str>, BTreeSet<u64>>,
    /// Who has looked for methods, by program.
    lookers: BTreeMap<u64, BTreeSet<Label>>,
    next_program: u64,
    log: VecDeque<Invalidated>,
}

impl State {
    fn forget(&mut self, label: Label) {
        let Some(Caller { takes_in, looks_in, .. }) = self.sources.remove(&label) else { return };
        for taken in takes_in {
            if let Some(callers) = self.callers.get_mut(&taken) {
                callers.remove(&label);
                if callers.is_empty() {
                    self.callers.remove(&taken);
                }
            }
        }
        let Some(program) = looks_in else { return };
        if let Some(lookers) = self.lookers.get_mut(&program) {
            lookers.remove(&label);
            if lookers.is_empty() {
                self.lookers.remove(&program);
                self.programs.retain(|_, programs| {
                    programs.remove(&program);
                    !programs.is_empty()
                });
            }
        }
    }

    /// The number of a program, which it is given when it is asked for first.
    fn program(&mut self, module: &Module, program: &mut Option<u64>) -> u64 {
        *program.get_or_insert_with(|| {
            let number = self.next_program;
            self.next_program += 1;
            for (id, func) in module.funcs() {
                let mentioned =
                    mentioned(module, id).into_iter().filter_map(|ty| match *module.cx.types.kind(ty) {
                        TypeKind::Function(name) => Some(name),
                        _ => None,
                    });
                for name in mentioned.chain([func.name]) {
                    let bare: Arc<str> = module.cx.names.text(name).into();
                    self.programs.entry(bare).or_default().insert(number);
                }
            }
            number
        })
    }

    /// Who depends on a function, or on methods of its name.
    fn users(&self, symbol: &Arc<str>, bare: &Arc<str>) -> BTreeSet<Label> {
        let programs = self.programs.get(bare).into_iter().flatten();
        let lookers = programs.filter_map(|program| self.lookers.get(program)).flatten();
        self.callers.get(symbol).into_iter().flatten().chain(lookers).copied().collect()
    }
}

impl Inlined {
    /// Notes what a lazy function of a module, which has been defined, takes in. `program` is the same for all functions of one
    /// module.
    pub(crate) fn note(
        &self,
        label: Label,
        (module, id): (&Module, FuncId),
        whole: &Arc<Whole>,
        tiers: Option<(i32, u32)>,
        program: &mut Option<u64>,
    ) {
        let func = module.func(id);
        let called = func.callees().filter_map(|(_, callee)| match callee {
            CalleeData::Method { function, args, .. } => module.find_method(*function, args),
            CalleeData::Symbol { .. } => None,
        });
        let has_body = |callee: &FuncId| module.func(*callee).blocks().next().is_some();
        let called: BTreeSet<FuncId> = called.filter(|callee| *callee != id).filter(has_body).collect();
        let takes_in: Vec<Arc<str>> = called.into_iter().map(|id| module.symbol(id).into()).collect();
        let looks = func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| decides_later(func.op(inst)));
        let mut state = lock(&self.state);
        state.forget(label);
        if takes_in.is_empty() && !looks {
            return;
        }
        let looks_in = looks.then(|| state.program(module, program));
        if let Some(program) = looks_in {
            state.lookers.entry(program).or_default().insert(label);
        }
        for taken in &takes_in {
            state.callers.entry(taken.clone()).or_default().insert(label);
        }
        let bare = module.cx.names.text(func.name).into();
        let (symbol, func, globals) = (module.symbol(id).into(), func.clone(), module.globals().to_vec());
        let caller = Caller { symbol, bare, func, globals, whole: whole.clone(), tiers, takes_in, looks_in };
        state.sources.insert(label, caller);
    }

    /// Whether somebody has looked for methods in a program that has some of this name, and so may find those that are defined now.
    pub(crate) fn is_looked_for(&self, bare: &str) -> bool {
        lock(&self.state).programs.contains_key(bare)
    }

    /// Forgets a function that is something else now, or nothing.
    pub(crate) fn forget(&self, label: Label) {
        lock(&self.state).forget(label);
    }

    /// Forgets all functions of a dylib.
    pub(crate) fn forget_all(&self, dylib: DylibId) {
        let mut state = lock(&self.state);
        let labels: Vec<Label> = state.sources.keys().filter(|label| label.dylib == dylib).copied().collect();
        labels.into_iter().for_each(|label| state.forget(label));
    }

    /// The functions that depend on what is about to be defined, through whatever others; but for those that are defined
    /// themselves.
    pub(crate) fn hit(&self, changes: &[Change]) -> Vec<Hit> {
        let state = lock(&self.state);
        let mut hits = Vec::new();
        if state.sources.is_empty() {
            return hits;
        }
        let mut seen: BTreeSet<Label> = changes.iter().map(|change| change.label).collect();
        let mut pending: VecDeque<(Vec<Arc<str>>, &Arc<str>)> =
            changes.iter().map(|change| (vec![change.symbol.clone()], &change.bare)).collect();
        while let Some((because, bare)) = pending.pop_front() {
            let users = because.first().map(|symbol| state.users(symbol, bare)).unwrap_or_default();
            let mut callers: Vec<(&Caller, Label)> =
                users.into_iter().filter_map(|label| Some((state.sources.get(&label)?, label))).collect();
            callers.sort_by(|a, b| (&a.0.symbol, a.1.dylib).cmp(&(&b.0.symbol, b.1.dylib)));
            for (caller, label) in callers {
                if seen.insert(label) {
                    hits.push(Hit { label, caller: caller.clone(), because: because.clone() });
                    let chain = [caller.symbol.clone()].into_iter().chain(because.clone());
                    pending.push_back((chain.collect(), &caller.bare));
                }
            }
        }
        hits
    }

    pub(crate) fn log(&self, invalidated: Invalidated) {
        let mut state = lock(&self.state);
        if state.log.len() == KEPT {
            state.log.pop_front();
        }
        state.log.push_back(invalidated);
    }

    pub(crate) fn take_log(&self) -> Vec<Invalidated> {
        lock(&self.state).log.drain(..).collect()
    }
}
