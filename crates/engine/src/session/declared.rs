//! The symbols of declarations: global variables and types of programs, re-exports, and sources.
//!
//! A function is removed by its symbol: by name, with its tracker, with its dylib. A declaration is removed by the same rules, so it has a symbol as well, which
//! has no address and cannot be named by programs.
//!
//! ```text
//!   global count::Int64 = 0   ──► `7#count#global`      7: the declaration's number
//!   struct Point x end        ──► `2#Point#type`        2: the homonym's number (`type_names.rs`)
//!   reexport(&shapes, …)      ──► `8#shapes#reexport`   (`exports.rs`)
//!   add_source(…)             ──► `9#source`            (`sources.rs`)
//!
//!   symbol removed ──► the dylib drops the variable, type, re-export or source
//! ```
//!
//! A declaration that replaces another one of its dylib removes the other's symbol in the same step. Existing programs keep what they use.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_linking::{Label, Symbol, SymbolRef};

use super::Session;
use super::dylib::Dylib;
use super::scope::Variable;
use super::sources::{SOURCE, Source};

/// The suffix of a variable's symbol.
const GLOBAL: &str = "#global";

/// The suffix of a type's symbol.
const TYPE: &str = "#type";

/// The suffix of a re-export's symbol.
pub(super) const REEXPORT: &str = "#reexport";

/// The suffixes of all symbols of declarations.
pub(super) const DECLARED: [&str; 4] = [GLOBAL, TYPE, REEXPORT, SOURCE];

pub(super) fn variable_symbol(name: &str, number: u64) -> String {
    format!("{number}#{name}{GLOBAL}")
}

pub(super) fn type_symbol(name: &str, count: u32) -> String {
    format!("{count}#{name}{TYPE}")
}

pub(super) fn reexport_symbol(dylib: &str, number: u64) -> String {
    format!("{number}#{dylib}{REEXPORT}")
}

/// The number and the name in a symbol with this suffix.
fn parts<'s>(symbol: &'s str, end: &str) -> Option<(u64, &'s str)> {
    let (number, name) = symbol.strip_suffix(end)?.split_once('#')?;
    Some((number.parse().ok()?, name))
}

/// Removed declarations, to be dropped without a lock.
pub(super) struct Forgotten {
    _all: (Vec<Variable>, Vec<Arc<Context>>, Vec<Source>),
}

impl Session {
    /// Called when declarations were removed: their names no longer refer to them. The result must be dropped without a lock.
    #[must_use]
    pub(super) fn forget_declared(&self, labels: &[Label]) -> Forgotten {
        let (mut variables, mut types, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for &Label { dylib, symbol } in labels {
            let text = self.linking().names().text(symbol);
            if let Some((_, name)) = parts(&text, GLOBAL) {
                variables.extend(self.scope(dylib).and_then(|scope| scope.forget_variable(name, symbol)));
            } else if let Some((count, name)) = parts(&text, TYPE) {
                types.extend(self.inner.types.forget(dylib, name, count));
            } else if text.ends_with(REEXPORT) {
                self.inner.owners.end_reexport(dylib, symbol);
            } else if text.ends_with(SOURCE) {
                sources.extend(self.inner.sources.end(dylib, symbol));
            }
        }
        Forgotten { _all: (variables, types, sources) }
    }
}

impl Dylib {
    /// The symbol of the variable or type that this dylib last declared by a name.
    pub(super) fn declaration(&self, name: &str) -> Option<SymbolRef> {
        let (names, dylib) = (self.session.linking().names(), self.linking.id());
        let variable = self.session.scope(dylib).and_then(|scope| scope.variable(name));
        let ty = || names.find(&type_symbol(name, self.session.inner.types.own(dylib, name)?));
        let symbol: Option<Symbol> = variable.map(|variable| variable.symbol).or_else(ty);
        symbol.and_then(|symbol| names.hold_symbol(symbol))
    }
}
