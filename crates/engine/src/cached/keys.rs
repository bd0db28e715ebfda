//! Hashes of the inputs of a function's code except the settings, one for each function of a module.
//!
//! ```text
//!   own form ────────────────────┐
//!   callees ─────────────────────┼─ hashed callees first ──► number of the function
//!   globals, facts of the program ┘        (functions that call each other in a cycle are hashed together)
//! ```
//!
//! | seen by the optimiser | in the number |
//! |---|---|
//! | the function | its binary form, with all types that it names and their declarations; profile sites where they are in the code |
//! | callees that are inlined, their effects and results | the numbers of *all* methods of the function objects that it mentions, in order of definition: the target of a call may change among them |
//! | a dynamic call | the forms of all functions of the module |
//! | global variables: types, first values, whether they are assigned | all variables, for every function |
//!
//! So the number covers at least everything that was inlined: a change of an unused input costs a compilation, but no change is missed. The rule is the same as in
//! `session/invalidation.rs`, where a redefinition finds the functions to recompile.
//!
//! Cost: each function that a requested one reaches is copied, written in binary form and hashed once; all functions, if one of these makes a call that is decided at run time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use brolga_aot::package::{Edge, Seen};
use brolga_cache::{Digest, Fingerprint};
use brolga_ir::effects::Summary;
use brolga_ir::func::CalleeData;
use brolga_ir::{Func, FuncId, Module, Op, Type, Value, binary};
use brolga_opt::callgraph::components_from;

use crate::sync::lock;

/// A function object with more methods counts as a call of any function, to keep the graph small.
const MOST_METHODS: usize = 64;

/// The numbers of a module's functions, each made when it is first requested.
pub(crate) struct Keys {
    /// Whether code refers to profile sites.
    has_sites: bool,
    program: Fingerprint,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<FuncId, Node>,
    of_component: BTreeMap<FuncId, Fingerprint>,
    /// The hash of all functions, if it was needed.
    all: Option<Fingerprint>,
}

/// A function, and the possible targets of its calls.
struct Node {
    own: Fingerprint,
    /// The callees, in the order of the function objects that it names, and of their methods.
    callees: Vec<FuncId>,
    calls_anything: bool,
}

/// A further input of the code of a function and of functions that see it.
type NoteOf<'n> = &'n dyn Fn(FuncId) -> u64;

impl Keys {
    /// The numbers of the functions of a verified module, in their defined forms, none of which is made yet. `has_sites` tells whether code refers to profile sites.
    pub(crate) fn new(module: &Module, has_sites: bool) -> Keys {
        Keys { has_sites, program: program(module), state: Mutex::default() }
    }

    /// The number of a function; `None` if it is not in this module, which is the same at every call, as is `note`.
    pub(crate) fn get(&self, module: &Module, id: FuncId, note: NoteOf<'_>) -> Option<Fingerprint> {
        module.first_form(id)?;
        let mut state = lock(&self.state);
        self.reach(&mut state, module, id, note);
        let mut facts = Digest::new("function");
        facts.facts(&self.program);
        facts.facts(&state.nodes.get(&id)?.own);
        facts.facts(state.of_component.get(&id)?);
        Some(facts.finish())
    }

    /// Makes the hashes of a function and of all that it reaches.
    fn reach(&self, state: &mut State, module: &Module, id: FuncId, note: NoteOf<'_>) {
        if state.of_component.contains_key(&id) {
            return;
        }
        let nodes = RefCell::new(std::mem::take(&mut state.nodes));
        let known = &state.of_component;
        let callees = |id: FuncId| -> Vec<FuncId> {
            let mut nodes = nodes.borrow_mut();
            let node = nodes.entry(id).or_insert_with(|| self.node(module, id, note));
            node.callees.iter().copied().filter(|callee| !known.contains_key(callee)).collect()
        };
        let components = components_from(module, id, &callees);
        state.nodes = nodes.into_inner();
        for mut component in components {
            // The order must not depend on where the walk began.
            component.sort_unstable();
            let calls_anything = |id: &FuncId| state.nodes.get(id).is_some_and(|node| node.calls_anything);
            let all = component.iter().any(calls_anything).then(|| self.all(state, module, note));
            let mut facts = Digest::new("component");
            for node in component.iter().filter_map(|id| state.nodes.get(id)) {
                facts.facts(&node.own);
                facts.word(node.callees.len() as u64);
                all.iter().filter(|_| node.calls_anything).for_each(|all| facts.facts(all));
                for callee in &node.callees {
                    // A callee in the same component is identified by its own form, which is part of the component's hash.
                    match state.of_component.get(callee) {
                        Some(known) => facts.facts(known),
                        None => facts.word(component.iter().position(|id| id == callee).unwrap_or(0) as u64),
                    }
                    if let Some(callee) = state.nodes.get(callee) {
                        facts.facts(&callee.own);
                    }
                }
            }
            let facts = facts.finish();
            state.of_component.extend(component.into_iter().map(|id| (id, facts)));
        }
    }

    fn node(&self, module: &Module, id: FuncId, note: NoteOf<'_>) -> Node {
        // Ids are the module's.
        let func = module.first_form(id).unwrap_or(&module[id]);
        let (callees, calls_anything) = reached(module, func);
        Node { own: own(module, func, note(id), self.has_sites), callees, calls_anything }
    }

    /// The hash of all functions.
    fn all(&self, state: &mut State, module: &Module, note: NoteOf<'_>) -> Fingerprint {
        if let Some(all) = state.all {
            return all;
        }
        let mut all = Digest::new("functions");
        for (id, _) in module.funcs() {
            let node = state.nodes.entry(id).or_insert_with(|| self.node(module, id, note));
            all.facts(&node.own);
        }
        *state.all.insert(all.finish())
    }

    /// The single inputs that make up the number of a function, with the symbols of `module`.
    pub(crate) fn edges(&self, module: &Module, id: FuncId, note: NoteOf<'_>) -> Vec<Edge> {
        let edge = |seen, name, hash: &Fingerprint| Edge { seen, name, hash: *hash.as_bytes() };
        let mut state = lock(&self.state);
        self.reach(&mut state, module, id, note);
        let Some(node) = state.nodes.get(&id) else { return Vec::new() };
        let mut edges = vec![
            edge(Seen::Globals, String::new(), &self.program),
            edge(Seen::Own, String::new(), &node.own),
        ];
        if let Some(all) = state.all.as_ref().filter(|_| node.calls_anything) {
            edges.push(edge(Seen::Anything, String::new(), all));
        }
        let own = state.of_component.get(&id);
        for callee in node.callees.iter().filter(|&&callee| callee != id) {
            // The hashes of its own callers include themselves.
            let of_own_cycle = state.nodes.get(callee).map(|node| &node.own);
            let hash = state.of_component.get(callee).filter(|&hash| Some(hash) != own).or(of_own_cycle);
            edges.extend(hash.map(|hash| edge(Seen::Callee, module[*callee].symbol(&module.cx), hash)));
        }
        edges
    }
}

/// The hash of the global variables and of the facts shared by all functions.
fn program(module: &Module) -> Fingerprint {
    let mut digest = Digest::new("program");
    digest.bytes(&binary::write(&module.without_functions()));
    let facts = module.facts();
    digest.word(u64::from(facts.gives_to_c()));
    for global in module.globals() {
        digest.word(u64::from(facts.is_assigned(global.name)));
    }
    let objects = module.funcs().filter_map(|(_, func)| Some(func.sig.params.first()?.ty));
    let open = objects.filter(|&object| module.is_open(object));
    let open: BTreeSet<String> = open.map(|object| module.cx.types.display(object).to_string()).collect();
    open.iter().for_each(|object| digest.bytes(object.as_bytes()));
    digest.finish()
}

/// The hash of the function without its callees.
fn own(module: &Module, func: &Func, note: u64, has_sites: bool) -> Fingerprint {
    let mut digest = Digest::new("own");
    digest.word(note);
    digest.bytes(&alone(module, func));
    digest.word(u64::from(func.summary.is_some()));
    func.summary.iter().flat_map(Summary::words).for_each(|word| digest.word(word));
    for (number, inst) in func.blocks().flat_map(|block| func.block_insts(block)).enumerate() {
        let Some(hint) = func.hint(inst) else { continue };
        if let Some(site) = hint.site.filter(|_| has_sites) {
            digest.word(number as u64);
            digest.word(u64::from(site.cell) << 1 | u64::from(site.swapped));
        }
        for seen in &hint.seen {
            digest.word(number as u64);
            seen.types.iter().for_each(|&ty| digest.text(&module.cx.types.display(ty).to_string()));
        }
    }
    digest.finish()
}

/// The binary form of one function, with the declarations of its types.
pub(crate) fn alone(module: &Module, func: &Func) -> Vec<u8> {
    let mut only = Module::new(module.cx.clone());
    // The only function of a module cannot be a duplicate, and it has its object from a module.
    let _ = only.add_func(func.clone());
    binary::write(&only)
}

/// The callees of a function, and whether it may call any function of the program.
fn reached(module: &Module, func: &Func) -> (Vec<FuncId>, bool) {
    let mut objects: Vec<Type> = Vec::new();
    for (_, callee) in func.callees() {
        if let CalleeData::Method { function, .. } = callee {
            objects.push(*function);
        }
    }
    // Its own object, which is its first argument, can be called only as one of its callees, or by an operation that may call anything.
    let own = func.sig.params.first().map(|object| object.ty);
    let values = (0..func.value_count() as u32).map(|value| func.ty(Value::from_u32(value)));
    objects.extend(values.filter(|&ty| Some(ty) != own));
    let (mut found, mut seen) = (Vec::new(), rustc_hash::FxHashSet::default());
    let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
    let mut calls_anything = insts.any(|inst| match func.op(inst) {
        Op::Call | Op::CallRuntime(_) => true,
        Op::Builtin(builtin) => builtin.calls(),
        _ => false,
    });
    for object in objects {
        let methods = module.methods(object);
        if !methods.is_empty() && seen.insert(object) {
            calls_anything |= methods.len() > MOST_METHODS;
            found.extend_from_slice(methods);
        }
    }
    if calls_anything {
        found.clear();
    }
    (found, calls_anything)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;

    const PROGRAM: &str = "
mutable struct Couple
    a::Int64
    b::Int64
end
global limit::Int64 = 10

function leaf(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, 1)::Int64
└──      return %1
end
function leaf(x::Float64)::Float64
1 ─ %1 = Base.add_float(x, 1.0)::Float64
└──      return %1
end
function middle(n::Int64)::Int64
1 ─ %1 = invoke Main.leaf(n::Int64)::Int64
└──      return %1
end
function even(n::Int64)::Int64
1 ─ %1 = invoke Main.odd(n::Int64)::Int64
└──      return %1
end
function odd(n::Int64)::Int64
1 ─ %1 = invoke Main.even(n::Int64)::Int64
└──      return %1
end
function pair(n::Int64)::Couple
1 ─ %1 = %new(Couple, n, n)::Couple
└──      return %1
end
function open(f::Any)::Any
1 ─ %1 = (f)(1)::Any
└──      return %1
end
function alone(n::Int64)::Int64
1 ─      return n
end
";

    /// The functions whose numbers differ between the program and a changed one.
    fn changed(from: &str, to: &str) -> Vec<String> {
        assert!(PROGRAM.contains(from), "{from}");
        let keys = |text: &str| -> BTreeMap<String, Fingerprint> {
            let program = Program::read("keys.jlir", text.as_bytes()).unwrap();
            let module = program.module();
            let keys = Keys::new(module, false);
            module
                .funcs()
                .map(|(id, f)| (f.symbol(&module.cx), keys.get(module, id, &|_| 0).unwrap()))
                .collect()
        };
        let (before, after) = (keys(PROGRAM), keys(&PROGRAM.replacen(from, to, 1)));
        assert_eq!(before, keys(PROGRAM), "the numbers are those of every process");
        before.into_iter().filter(|(name, key)| after.get(name) != Some(key)).map(|(name, _)| name).collect()
    }

    #[test]
    fn a_change_reaches_those_who_may_see_it_and_no_others() {
        // Another method of the same function may become the target.
        let leaf = ["leaf(Float64)", "leaf(Int64)", "middle(Int64)", "open(Any)"];
        assert_eq!(changed("add_int(n, 1)", "add_int(n, 2)"), [leaf[1], leaf[2], leaf[3]]);
        assert_eq!(changed("add_float(x, 1.0)", "add_float(x, 2.0)"), [leaf[0], leaf[2], leaf[3]]);
        let cycle = ["even(Int64)", "odd(Int64)", "open(Any)"];
        assert_eq!(changed("invoke Main.even(n::Int64)", "invoke Main.leaf(n::Int64)"), cycle);
        assert_eq!(
            changed(
                "function alone(n::Int64)::Int64\n1 ─      return n",
                "function alone(n::Int64)::Int64\n1 ─      return 1"
            ),
            ["alone(Int64)", "open(Any)"]
        );
    }

    #[test]
    fn a_changed_type_reaches_those_who_name_it() {
        assert_eq!(changed("    b::Int64", "    c::Int64"), ["open(Any)", "pair(Int64)"]);
    }

    #[test]
    fn a_changed_global_reaches_all() {
        assert_eq!(changed("= 10", "= 11").len(), 8);
        let setter = "function set()::Int64\n1 ─      Base.setglobal!(Main, :limit, 3)::Int64\n└──      return 3\nend\nfunction alone";
        assert_eq!(changed("function alone", setter).len(), 8);
    }
}
