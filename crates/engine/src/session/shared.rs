//! The state that all units of a session share: code memory, compilation settings, and the tables of code.
//!
//! Nothing in it refers to the session, so holding a unit does not hold the session.

use std::sync::{Arc, Mutex, OnceLock};

use brolga_ir::{FuncId, Module};
use brolga_jit::{Evictor, Jit};

use super::cells::Cells;
use super::first_calls::FirstCalls;
use super::input::{CompilationInput, Counting, ProgramFacts};
use super::method_table::MethodTable;
use super::target::Placed;
use crate::boxed::Recipe;
use crate::session::tiering::profile::Profile;

/// See the file's header.
pub(crate) struct Shared {
    pub(crate) jit: Jit,
    /// How functions and boxed entries are compiled.
    pub(super) recipe: Recipe,
    pub(crate) placed: Arc<Placed>,
    pub(crate) cells: Arc<Cells>,
    pub(crate) methods: Arc<MethodTable>,
    pub(crate) compiled: Mutex<Totals>,
    pub(super) first_calls: FirstCalls,
    /// The evictor for memory shortages, with the limit; unset without a limit.
    evictor: OnceLock<(Arc<dyn Evictor>, usize)>,
    in_background: bool,
}

/// Totals of compilation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) functions: u64,
    pub(crate) bytes: u64,
    /// Functions whose code was evicted.
    pub(crate) evicted: u64,
}

impl Shared {
    pub(crate) fn new(jit: Jit, recipe: Recipe, methods: Arc<MethodTable>, in_background: bool) -> Shared {
        let placed: Arc<Placed> = Arc::default();
        let cells = Cells::new(placed.clone(), jit.runtime());
        Shared {
            jit,
            recipe,
            placed,
            cells,
            methods,
            compiled: Mutex::default(),
            first_calls: FirstCalls::default(),
            evictor: OnceLock::new(),
            in_background,
        }
    }

    /// The compilation input for the functions `own` of a verified module.
    pub(crate) fn input(
        &self,
        module: Module,
        own: &[FuncId],
        facts: Arc<ProgramFacts>,
        counting: Option<Counting>,
        profile: Option<Arc<Profile>>,
    ) -> CompilationInput {
        let heap = self.jit.runtime().heap().abi();
        CompilationInput::new((&self.recipe, heap), module, own, facts, counting, profile)
    }

    /// Enables eviction when there are more than `limit` bytes of code.
    pub(super) fn set_evictor(&self, evictor: Arc<dyn Evictor>, limit: usize) {
        self.jit.set_evictor(&evictor);
        // It is set once, when the session is created.
        let _ = self.evictor.set((evictor, limit));
    }

    /// Whether eviction is enabled.
    pub(super) fn evicts_code(&self) -> bool {
        self.evictor.get().is_some()
    }

    /// Keeps code memory free for the threads of a pool.
    pub(super) fn keep_room(&self) {
        let Some((_, limit)) = self.evictor.get().filter(|_| self.in_background) else { return };
        let most = limit / 4 * 3;
        if self.jit.in_use() <= most {
            return;
        }
        let stats = self.jit.stats();
        let in_use = stats.in_use - stats.retired;
        if in_use > most {
            self.jit.evict(in_use - most);
        }
    }
}
