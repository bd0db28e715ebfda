//! C names of program functions: what C code in object files, and `foreigncall`s, find by name.
//!
//! ```text
//!   object file ── needs `visit` ──► a C symbol `visit`, if there is one
//!                                    else the function `visit` of the first dylib that defines one ──► its C entry
//!   define_c_symbol("visit", f.c_address()) ──► a symbol that depends on f
//! ```
//!
//! In both cases the C code depends on the function: depending on the policy, removing the function is refused, removes the C code as well, or makes its calls throw.

use std::sync::Arc;

use brolga_linking::{
    Definition, Dependence, DylibId, Label, MaterializationUnit, Need, Responsibility, Symbol, SymbolFlags,
    Until, Want,
};

use super::dylib::Dylib;
use super::shared::Shared;
use super::target::{Code, Moved, Native, Place, fail_unit};

/// A C symbol whose address is a function's C entry.
#[derive(Clone)]
pub(super) struct CName {
    pub(super) shared: Arc<Shared>,
    pub(super) symbol: Symbol,
    pub(super) function: Label,
}

impl MaterializationUnit<Native> for CName {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        vec![(self.symbol, SymbolFlags::EXPORTED)]
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Label { dylib, symbol } = self.function;
        let want = Want { symbol, need: Need::Required, at: Some(dylib) };
        responsibility.lookup_answer(vec![want], Until::Resolved, move |responsibility, found| match found {
            Ok(found) => self.link(responsibility, &found),
            Err(error) => {
                fail_unit(responsibility, error.passes(), error, self as Box<dyn MaterializationUnit<Native>>)
            }
        });
    }
}

impl CName {
    fn link(self: Box<Self>, responsibility: Responsibility<Native>, found: &[Definition<Native>]) {
        let session = responsibility.session().clone();
        let Some(definition) = found.first() else { return };
        let placed =
            definition.address.map(|at| self.shared.placed.find(at, || session.leads_to(definition.label)));
        let again: Box<dyn MaterializationUnit<Native>> = self.clone();
        let cell = match placed {
            Some(Ok(Some(Place::Function(function)))) => function.cell.clone(),
            Some(Err(Moved)) => return self.materialize(responsibility),
            _ => {
                let error = format!("`{}` is not a function of a program", session.name(self.function));
                return fail_unit(responsibility, false, error, again);
            }
        };
        match cell.c_address() {
            Err(error) => fail_unit(responsibility, error.is_shortage(), error, again),
            Ok(address) => {
                let code = Code::nothing(&self.shared.placed).keeping([cell]);
                let needs = vec![Dependence::from(*definition)];
                let left =
                    responsibility.complete(code, vec![(self.symbol, address)], needs, Some(again.into()));
                if let Some(responsibility) = left {
                    self.materialize(responsibility);
                }
            }
        }
    }
}

impl Dylib {
    /// The function of the session whose C entry is at this address, if any.
    pub(super) fn function_for_c(&self, address: usize) -> Option<Label> {
        let cells = self.session.inner.shared.placed.cells();
        cells
            .into_iter()
            .find(|(_, owner)| owner.cell().known_c_address() == Some(address))
            .map(|(label, _)| label)
    }

    /// The function that the dylib sees by a bare name, if it has a single method: its dylib and its symbol.
    pub(super) fn function_of_c_name(&self, name: &str) -> Option<(DylibId, Arc<str>)> {
        let view = self.view(None).ok()?;
        for seen in view.of(name).iter() {
            let mut methods = seen.symbols(name);
            methods.retain(|method| self.session.defines(seen.dylib, method));
            match methods.as_slice() {
                [] => {}
                [only] => return Some((seen.dylib, only.clone())),
                _ => return None,
            }
        }
        None
    }
}
