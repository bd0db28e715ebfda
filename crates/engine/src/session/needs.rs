//! The callees of a unit that must exist, and the callees it waits for.
//!
//! A static call needs its callee. A dynamic call needs nothing until it is reached, even if the compiler has devirtualized it: a caller
//! does not fail because a method that it may never call cannot be compiled.
//!
//! ```text
//!   top ── invoke ───► middle ─── invoke ──► base       direct: middle        inside: base and leaf, if middle and other are inlined
//!    └──── dynamic ──► other ──── invoke ──► leaf       decided: other
//! ```
//!
//! | the code calls | if it is missing | the unit is ready |
//! |---|---|---|
//! | direct: a static callee of one of its functions | the unit fails | when the callee is |
//! | inside: a callee that its functions reach through static calls | the call throws `CompileError` | when the callee is |
//! | decided: any other callee, the target of a devirtualized dynamic call or a callee of such a target | the call throws `CompileError` | independently of it; the caller is recompiled when the method changes or is removed (`invalidation.rs`) |
//!
//! Cost: a walk over the static callees of the unit's functions; if its code has other callees that some body of the program calls statically, one over the functions that the unit's reach, until they are found.

use std::collections::BTreeMap;

use brolga_codegen::compiled::Symbol as Import;
use brolga_ir::FuncId;
use brolga_jit::Compiled;

use super::input::{CompilationInput, called};

/// See the file's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Direct,
    Inside,
    Decided,
}

/// The needs of a unit: the callees of its code other than its direct callees.
pub(super) struct Needs(BTreeMap<String, Need>);

impl Needs {
    /// The needs of compiled functions of a program. Without `ids`, of all its functions.
    pub(super) fn of(input: &CompilationInput, ids: &[FuncId], compiled: &Compiled) -> Needs {
        let module = input.module();
        let direct = match ids {
            [] => called(module, module.funcs().map(|(_, func)| func)),
            ids => called(module, ids.iter().filter_map(|&id| module.first_form(id))),
        };
        let indirect = |import: &Import| match import {
            Import::IndirectCell(name) if !direct.contains(name) => Some(name.clone()),
            _ => None,
        };
        let others: Vec<String> = compiled.imports().into_iter().filter_map(indirect).collect();
        if others.is_empty() {
            return Needs(BTreeMap::new());
        }
        let inside = input.reached_statically(ids, &others);
        let need = |name: &String| {
            let need = if inside.contains(name.as_str()) { Need::Inside } else { Need::Decided };
            (name.clone(), need)
        };
        Needs(others.iter().map(need).collect())
    }

    /// The need for the function with this symbol.
    pub(super) fn function(&self, symbol: &str) -> Need {
        self.0.get(symbol).copied().unwrap_or(Need::Direct)
    }
}
