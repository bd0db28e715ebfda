//! Global variables that the programs of a session share.
//!
//! A `global` belongs to the dylib of the program that declares it. Programs that see the dylib use it by name. A program with the same
//! declaration refers to the same variable; a program with another declaration gets its own variable, to which later programs refer from then on.
//!
//! ```text
//!   Scope of a dylib ── name ──► Variable ── cells ──► the value
//!                                    ▲
//!   facts of a program ── adopts ────┘        one cell for all programs of the variable
//! ```
//!
//! A program is prepared with its own cells for the variables that it is the first to declare. They become the dylib's in the step that brings the
//! definition into force, if no other program has declared them meanwhile; otherwise the definition is prepared again. So a refused definition
//! leaves no variables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::module::Global;
use brolga_ir::{Module, Name};
use brolga_jit::Globals;
use brolga_linking::Symbol;

use super::dylib::Dylib;
use super::error::SessionError;
use super::names_in::variables;
use super::scope::{Scope, Variable};

/// The variables that a program declares.
#[derive(Default)]
pub(crate) struct DeclaredVariables {
    /// The scopes in which each is looked up; empty for a program that shares none.
    scopes: BTreeMap<Name, Vec<Arc<Scope>>>,
    /// The variables that other programs have declared, with their cells.
    shared: Vec<(Name, Globals)>,
    /// The variables that the program is the first to declare, each with the scopes where others may declare it meanwhile.
    new: Vec<(Box<str>, Variable, Vec<Arc<Scope>>)>,
}

impl DeclaredVariables {
    /// The variables of a program that the dylib is about to define.
    pub(super) fn of(dylib: &Dylib, module: &Module) -> Result<DeclaredVariables, SessionError> {
        let mut all = DeclaredVariables::default();
        let mut shareable = module.globals().iter().filter(|global| !global.is_const()).peekable();
        if shareable.peek().is_none() || !dylib.is_shared(module) {
            return Ok(all);
        }
        let view = dylib.view(None)?;
        for declared in shareable {
            let name = module.cx.names.text(declared.name);
            let scopes: Vec<Arc<Scope>> = view.of(name).iter().map(|seen| seen.scope().clone()).collect();
            let known = find(&scopes, name).filter(|known| known.declared == *declared);
            all.shared.extend(known.map(|known| (declared.name, known.cells)));
            all.scopes.insert(declared.name, scopes);
        }
        Ok(all)
    }

    /// Adds the variables that no other program has declared; `cells` has their cells. `symbol` makes the symbol of a variable.
    pub(super) fn add_new(
        &mut self,
        module: &Module,
        cells: &Globals,
        mut symbol: impl FnMut(&str) -> Symbol,
    ) {
        let is_new =
            |global: &&Global| self.scopes.contains_key(&global.name) && self.shared(global).is_none();
        let new = module.globals().iter().filter(is_new).map(|declared| {
            let name = module.cx.names.text(declared.name);
            // A separate view, which holds nothing else.
            let cx = module.cx.view();
            let _held = (cx.names.text(declared.name), cx.types.kind(declared.ty));
            let symbol = symbol(name);
            let variable = Variable { cx, declared: declared.clone(), cells: cells.only(name), symbol };
            (name.into(), variable, self.scopes.get(&declared.name).cloned().unwrap_or_default())
        });
        self.new = new.collect();
    }

    /// The cell of a variable that other programs have declared.
    pub(super) fn shared(&self, global: &Global) -> Option<&Globals> {
        self.shared.iter().find(|(name, _)| *name == global.name).map(|(_, cells)| cells)
    }

    /// Whether no other program has declared one of the new variables meanwhile.
    pub(super) fn are_prepared(&self) -> bool {
        let is_new = |(name, new, scopes): &(Box<str>, Variable, Vec<Arc<Scope>>)| {
            find(scopes, name).is_none_or(|known| known.declared != new.declared)
        };
        self.new.iter().all(is_new)
    }

    /// Adds the new variables to a dylib. Returns the former ones of these names, to be dropped without a lock.
    #[must_use]
    pub(super) fn declare_in(&self, scope: &Scope) -> Vec<Variable> {
        self.new.iter().filter_map(|(name, new, _)| scope.declare(name.clone(), new.clone())).collect()
    }
}

/// The variable that a name refers to, from the first scope that has it.
fn find(scopes: &[Arc<Scope>], name: &str) -> Option<Variable> {
    scopes.iter().find_map(|scope| scope.variable(name))
}

impl Dylib {
    /// Declares the global variables of other programs that the first `own` functions of a module use.
    pub(super) fn import_variables(&self, module: &mut Module, own: usize) -> Result<(), SessionError> {
        let used: BTreeSet<Name> = module.funcs().take(own).flat_map(|(_, func)| variables(func)).collect();
        let view = self.view(None)?;
        for name in used.into_iter().filter(|&name| module.global(name).is_none()).collect::<Vec<_>>() {
            let text = module.cx.names.text(name);
            if let Some(known) = view.of(text).iter().find_map(|seen| seen.scope().variable(text)) {
                // The module has no variable of that name.
                let _ = module.add_global(known.declared);
            }
        }
        Ok(())
    }
}
