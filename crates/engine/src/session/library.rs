//! The library of a session: the methods of Base that its programs need and do not define, in a separate dylib, once for all programs.
//!
//! ```text
//!   program ── its uses of the prelude ─────────────────► library: defines the new ones, lazily     (crates/engine/src/prelude.rs)
//!      │                                                     ▲
//!      └── its dylib ── linked after all others ─────────────┘
//! ```
//!
//! All other definitions override the library: it stays the last of a dylib's links, its declarations are imported in addition to other dylibs' declarations, not
//! instead, and a program's method of the same signature is called instead of the library's, also by dynamic calls
//! ([`NewMethods::of_library`](brolga_runtime::objects::NewMethods::of_library)).
//!
//! A dylib is linked to the library at its first use. The methods of a function are defined together, with the methods of the functions
//! that they use, so the library is always complete. Some parts of the prelude depend on types that a program declares; their methods
//! are defined at the first use after that.
//!
//! **Locks**: the library's, taken before all others; definitions of the library are lazy, so nothing is compiled or waited for under it.
//!
//! Cost: a walk over the constants of each program; the texts of the prelude are read once for the session, when a part of them is needed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use brolga_ir::{Context, Module, Type};
use brolga_linking::DylibId;

use super::Session;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::linking;
use super::sync::lock;
use super::target::Native;
use crate::prelude::{self, Prelude};
use crate::program::{Callees, check_built};

/// The name of the library's dylib, which is not a valid name of a file or program.
const NAME: &str = "<Base>";

/// See the file's header.
#[derive(Default)]
pub(crate) struct Library {
    /// Set when the dylib is made; read without the lock.
    id: OnceLock<DylibId>,
    state: Mutex<Option<State>>,
}

struct State {
    linking: linking::Dylib<Native>,
    /// Keeps the names and types of the library.
    cx: Arc<Context>,
    prelude: Prelude,
    /// The functions whose methods are defined, with the parts of the prelude that have them.
    defined: BTreeSet<(Type, usize)>,
}

impl Library {
    /// The library's dylib, if it has been needed.
    pub(crate) fn id(&self) -> Option<DylibId> {
        self.id.get().copied()
    }
}

impl Dylib {
    /// Makes the prelude's methods of the functions visible to the dylib.
    pub(super) fn link_library(&self, wanted: BTreeSet<Type>) -> Result<(), SessionError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let library = self.session.define_library(wanted)?;
        if library.id() != self.linking.id() {
            self.linking.add_links(vec![library.exported()])?;
        }
        Ok(())
    }
}

impl Dylib {
    /// As [`Dylib::link_library`], for definitions of a program that the prelude has completed, which may have names and types of its own.
    pub(super) fn link_library_of(&self, definitions: &Definitions) -> Result<(), SessionError> {
        let (from, to) = (&definitions.module.cx, self.session.context());
        if definitions.library.is_empty() {
            return Ok(());
        }
        let to = if from.is_same(to) { to.clone() } else { to.view() };
        let here = definitions.library.iter().filter_map(|&ty| prelude::in_context(from, ty, &to));
        self.link_library(here.collect())
    }
}

impl Session {
    /// Defines the prelude's methods of the functions that are not defined yet.
    fn define_library(&self, wanted: BTreeSet<Type>) -> Result<linking::Dylib<Native>, SessionError> {
        let mut state = lock(&self.inner.library.state);
        let state = match &mut *state {
            Some(state) => state,
            state @ None => {
                let linking = self.create_dylib(NAME)?.linking;
                // It is made once, under the lock.
                let _ = self.inner.library.id.set(linking.id());
                let (prelude, defined) = Default::default();
                state.insert(State { linking, cx: self.context().view(), prelude, defined })
            }
        };
        let mut module = Module::new(state.cx.clone());
        let mut defined = state.defined.clone();
        state.prelude.add(&mut module, wanted, &mut defined);
        if module.func_count() > 0 {
            let library = Dylib::new(self.clone(), state.linking.clone());
            let definitions = library.import(module)?;
            check_built(&definitions.module, definitions.own, Callees::AtOnce)?;
            library.define(definitions.lazy().inlinable().of_library())?;
        }
        state.defined = defined;
        Ok(state.linking.clone())
    }
}
