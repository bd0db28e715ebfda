//! The call graph, and the order in which callees come before callers.
//!
//! ```text
//! main ──> sort ⇄ partition        components: {swap} {sort, partition} {main}
//!             └──> swap
//! ```
//!
//! An inliner that works in this order copies bodies that are optimised already. Functions that call each other in a cycle
//! form a component; inside one, functions keep the module's order.
//!
//! Two kinds of edges: [`callees`] are the static calls, [`reached`] also the dynamic calls of a known function that passes
//! may turn into static ones (`union-split`). The order of optimisation has both. What must be linked together depends on the static calls alone.
//!
//! Tarjan's algorithm ("Depth-First Search and Linear Graph Algorithms", 1972) with an explicit stack. Cost: linear in the
//! instructions of the module, one method look-up for each distinct callee of a function, and a walk over the methods of the function of each dynamic call.

use crate::options::InlineLimits;
use brolga_ir::func::CalleeData;
use brolga_ir::{Callee, Func, FuncId, Inst, Level, Module, Op, Type};
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};

/// The functions that a function calls by `invoke` and that have a body in the module, each once.
pub fn callees(module: &Module, func: &Func) -> Vec<FuncId> {
    let mut found: Vec<FuncId> = func
        .callees()
        .filter_map(|(_, data)| match data {
            CalleeData::Method { function, args, .. } => module.find_method(*function, args),
            CalleeData::Symbol { .. } => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The functions that a function calls by `invoke`, and those that its dynamic calls reach where passes may turn these into calls of methods, each once.
pub fn reached(module: &Module, func: &Func) -> Vec<FuncId> {
    let mut found = callees(module, func);
    let statics = found.len();
    let most = InlineLimits::default().max_methods;
    for inst in func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::Call) {
        let given: Vec<Type> = func.args(inst).iter().map(|&v| func.ty(v)).collect();
        let Some(&function) = given.first() else { continue };
        if module.cx.types.is_concrete(function) && !module.is_open(function) {
            found.extend(
                overlapping(module, module.methods(function).iter().copied(), &given, most)
                    .unwrap_or_default(),
            );
        }
    }
    if found.len() > statics {
        found.sort_unstable();
        found.dedup();
    }
    found
}

/// The methods among `candidates` that operands of these types, the callee's first, may reach; `None` if there are more than `most`, or one whose parameters do not
/// tell which operands it takes.
pub(crate) fn overlapping(
    module: &Module,
    candidates: impl IntoIterator<Item = FuncId>,
    given: &[Type],
    most: usize,
) -> Option<Vec<FuncId>> {
    let types = &module.cx.types;
    let mut found: Vec<FuncId> = Vec::new();
    for id in candidates {
        let callee = &module[id];
        // Arguments that fit the types of its parameters need not fit a method with variables.
        if callee.level == Level::Low || callee.sig.statics.is_open() {
            return None;
        }
        // A collecting parameter is the last one, and takes none as well.
        let collects = usize::from(callee.sig.vararg);
        let fixed = callee.sig.params.len() - collects;
        let count_fits = if collects == 1 { given.len() >= fixed } else { given.len() == fixed };
        let overlaps = count_fits
            && callee
                .sig
                .params
                .iter()
                .take(fixed)
                .zip(given)
                .all(|(param, &arg)| !types.is_disjoint(param.ty, arg));
        if overlaps {
            found.push(id);
            if callee.sig.vararg || found.len() > most {
                return None;
            }
        }
    }
    Some(found)
}

/// The function of the module that a high function is a form of.
pub(crate) fn own_id(module: &Module, func: &Func) -> Option<FuncId> {
    module.find_same(func)
}

/// The callees by which a function calls itself.
#[derive(Debug)]
pub(crate) struct SelfCallees(EntitySet<Callee>);

impl SelfCallees {
    /// Finds the self-calls among a function's callees.
    pub(crate) fn of(module: &Module, func: &Func) -> SelfCallees {
        let own = own_id(module, func);
        let is_own = |data: &CalleeData| match data {
            CalleeData::Method { function, args, .. } => {
                own.is_some() && module.find_method(*function, args) == own
            }
            CalleeData::Symbol { .. } => false,
        };
        let mut found = EntitySet::new();
        for (callee, _) in func.callees().filter(|(_, data)| is_own(data)) {
            found.insert(callee);
        }
        SelfCallees(found)
    }

    /// Whether there are no such callees.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an instruction calls the function that contains it.
    pub(crate) fn has(&self, func: &Func, inst: Inst) -> bool {
        matches!(func.op(inst), Op::Invoke(callee) if self.0.contains(callee))
    }
}

/// The high functions of a module in components: every function comes after those that it reaches ([`reached`]), except for those that reach it
/// in turn.
pub fn bottom_up(module: &Module) -> Vec<Vec<FuncId>> {
    let high = module.funcs().filter(|(_, func)| func.level == Level::High).map(|(id, _)| id);
    walk(high, &|id| reached(module, &module[id]))
}

/// All functions of a module in components, as [`bottom_up`] has the high ones, given the callees of each by the caller. Ids
/// from other modules are skipped.
pub fn components(module: &Module, callees: &dyn Fn(FuncId) -> Vec<FuncId>) -> Vec<Vec<FuncId>> {
    let own = |id| callees(id).into_iter().filter(|&callee| module.func(callee).is_some()).collect();
    walk(module.funcs().map(|(id, _)| id), &own)
}

/// A function and all that it reaches in components, as [`components`] of all functions. None if the module does not have it.
pub fn components_from(
    module: &Module,
    root: FuncId,
    callees: &dyn Fn(FuncId) -> Vec<FuncId>,
) -> Vec<Vec<FuncId>> {
    let own = |id| callees(id).into_iter().filter(|&callee| module.func(callee).is_some()).collect();
    walk(module.func(root).map(|_| root), &own)
}

fn walk(
    roots: impl IntoIterator<Item = FuncId>,
    callees: &dyn Fn(FuncId) -> Vec<FuncId>,
) -> Vec<Vec<FuncId>> {
    let mut walk = Walk::default();
    for id in roots {
        if walk.number[id] == 0 {
            walk.from(callees, id);
        }
    }
    walk.components
}

#[derive(Default)]
struct Walk {
    /// When a function was first met, from 1; 0: not yet.
    number: SecondaryMap<FuncId, u32>,
    /// The least number that is reachable through what was met below, of functions without a component.
    low: SecondaryMap<FuncId, u32>,
    has_component: SecondaryMap<FuncId, bool>,
    met: u32,
    /// Functions without a component, in the order in which they were met.
    waiting: Vec<FuncId>,
    components: Vec<Vec<FuncId>>,
}

impl Walk {
    fn from(&mut self, callees: &dyn Fn(FuncId) -> Vec<FuncId>, root: FuncId) {
        let mut open = vec![self.enter(callees, root)];
        while let Some((id, called)) = open.last_mut() {
            let id = *id;
            match called.pop() {
                Some(callee) if self.number[callee] == 0 => open.push(self.enter(callees, callee)),
                Some(callee) => {
                    if !self.has_component[callee] {
                        self.low[id] = self.low[id].min(self.number[callee]);
                    }
                }
                None => {
                    open.pop();
                    if let Some((above, _)) = open.last() {
                        self.low[*above] = self.low[*above].min(self.low[id]);
                    }
                    self.close(id);
                }
            }
        }
    }

    fn enter(&mut self, callees: &dyn Fn(FuncId) -> Vec<FuncId>, id: FuncId) -> (FuncId, Vec<FuncId>) {
        self.met += 1;
        self.number[id] = self.met;
        self.low[id] = self.met;
        self.waiting.push(id);
        (id, callees(id))
    }

    /// Closes the component of `id`, if nothing met since then reaches an earlier function.
    fn close(&mut self, id: FuncId) {
        if self.low[id] != self.number[id] {
            return;
        }
        let start = self.waiting.iter().rposition(|&w| w == id).unwrap_or(0);
        let mut component = self.waiting.split_off(start);
        component.sort_unstable_by_key(|id| id.index());
        for &id in &component {
            self.has_component[id] = true;
        }
        self.components.push(component);
    }
}
