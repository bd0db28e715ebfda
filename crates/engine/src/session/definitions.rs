//! Definitions: the functions of a program that are defined in one step, and their options.
//!
//! A dylib creates them by reading a program (`reading.rs`) and enters them into its tables (`define.rs`).

use std::collections::BTreeSet;

use brolga_ir::diag::SourceFile;
use brolga_ir::{Module, Type, fuel};
use brolga_linking::Priority;

use super::dylib::Dylib;
use super::error::SessionError;
use super::input::Kept;
use super::invalidation::Imported;
use super::names_in::Bindings;
use super::tiering::policy::Policy;
use crate::program::{Callees, Program, no_doors_built, no_doors_read};

/// A verified program, ready to be defined in a dylib. Created by [`Dylib::read`](super::Dylib::read),
/// [`Dylib::build`](super::Dylib::build), or from a [`Program`].
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::{Options, Session, Workers};
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// let definitions = main.read("half.jlir", HALF)?.tiered(100).inlinable();
/// assert_eq!(definitions.functions(), ["half(Int64)"]);
/// main.define(definitions)?;
/// let half = main.func::<(i64,), i64>("half")?;
/// assert_eq!(session.stats().compiled_functions, 0, "its first call compiles it");
/// assert_eq!(half.call((8,))?, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is defined until it is given to a dylib"]
pub struct Definitions {
    pub(crate) module: Module,
    /// The number of the program's own functions, which come first in the module.
    pub(crate) own: usize,
    pub(crate) manner: Manner,
    /// The imports, and the importer.
    pub(crate) imported: Option<(Dylib, Imported)>,
    /// The dylibs of its imported methods.
    pub(crate) bindings: Bindings,
    /// The calls of missing methods and C functions, as text.
    pub(crate) missing: Vec<String>,
    /// The functions of Base whose prelude methods the module has after its own functions.
    pub(crate) library: BTreeSet<Type>,
    pub(crate) starts: Option<Priority>,
    pub(crate) initializers: Vec<(String, i32)>,
    pub(crate) finalizers: Vec<String>,
    /// Objects kept alive by the code.
    pub(crate) kept: Option<Kept>,
    /// The number of functions, from the first, that are checked for doors: the others come from the prelude.
    pub(super) written: usize,
    /// The source text of a program that was read.
    pub(super) source: Option<SourceFile>,
    /// Whether its functions are priced.
    pub(super) is_priced: bool,
}

/// How functions are defined.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner {
    pub(crate) is_weak: bool,
    pub(crate) is_hidden: bool,
    pub(crate) is_inlinable: bool,
    /// Whether all functions are compiled together.
    pub(crate) is_whole: bool,
    pub(crate) is_lazy: bool,
    pub(crate) is_replaceable: bool,
    /// Whether the definitions belong to the session's library.
    pub(crate) is_library: bool,
    pub(crate) policy: Policy,
    /// When calls of missing methods and C functions are refused.
    pub(crate) callees: Callees,
}

impl Definitions {
    pub(crate) fn new(module: Module, own: usize) -> Self {
        Definitions {
            module,
            own,
            manner: Manner::default(),
            imported: None,
            bindings: Bindings::new(),
            missing: Vec::new(),
            library: BTreeSet::new(),
            starts: None,
            initializers: Vec::new(),
            finalizers: Vec::new(),
            kept: None,
            written: own,
            source: None,
            is_priced: false,
        }
    }

    /// Prices its own functions, unless they are priced already or are the session's.
    pub(super) fn price(&mut self) {
        if !self.manner.is_library && !std::mem::replace(&mut self.is_priced, true) {
            let own = self.own;
            fuel::price(&mut self.module, |at| at < own);
        }
    }

    /// Whether functions written by the embedder are priced.
    pub(super) fn takes_fuel(&self) -> bool {
        fuel::spends(&self.module, self.own)
    }

    /// Marks the definitions as the session's own: their doors have been checked, and they are not priced.
    pub(super) fn of_session(mut self) -> Self {
        (self.written, self.is_priced) = (0, true);
        self
    }

    /// Whether the embedder made them, from text, a builder or a program.
    pub(super) fn is_of_embedder(&self) -> bool {
        self.written > 0 && !self.manner.is_library
    }

    /// Checks that there are no doors. The library contains some and is trusted.
    pub(super) fn check_doors(&self) -> Result<(), SessionError> {
        match &self.source {
            _ if self.manner.is_library => {}
            Some(source) => no_doors_read(source, &self.module, self.written)?,
            None => no_doors_built(&self.module, self.written)?,
        }
        Ok(())
    }

    /// The symbols of its functions, in program order.
    pub fn functions(&self) -> Vec<String> {
        self.module.funcs().take(self.own).map(|(_, func)| func.symbol(&self.module.cx)).collect()
    }

    /// Marks the definitions as the session's library: all other methods override theirs.
    pub(super) fn of_library(mut self) -> Self {
        self.manner.is_library = true;
        self
    }

    /// The calls of undefined methods as text, one for each; empty except after [`Dylib::read_late`](super::Dylib::read_late).
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Makes the definitions weak: other definitions of their names override them, until their first lookup.
    pub fn weak(mut self) -> Self {
        self.manner.is_weak = true;
        self
    }

    /// Hides the definitions from static calls and look-ups of other dylibs. A dynamic call of a function value still reaches its hidden methods. A name for which a dylib
    /// has only hidden methods is undefined in the dylibs that are linked to it, which may have their own functions of that name.
    pub fn hidden(mut self) -> Self {
        self.manner.is_hidden = true;
        self
    }

    /// Allows programs that are read or built later to inline them. When they are redefined, code that inlined them is recompiled.
    pub fn inlinable(mut self) -> Self {
        self.manner.is_inlinable = true;
        self
    }

    /// Compiles, links and frees all functions together, rather than one by one on demand.
    pub fn together(mut self) -> Self {
        self.manner.is_whole = true;
        self
    }

    /// Compiles each function at its first call, not at its lookup. Functions of the program may be inlined into each other.
    pub fn lazy(mut self) -> Self {
        self.manner.is_lazy = true;
        self
    }

    /// Lazy, and a redefinition replaces a function for all its callers at their next call, running frames included. Functions of the program
    /// rely only on each other's types, and nothing is inlined. For hot reload; all other kinds keep a running frame in its world. A function
    /// that was defined as another kind keeps its kind.
    pub fn replaceable(mut self) -> Self {
        (self.manner.is_lazy, self.manner.is_replaceable) = (true, true);
        self
    }

    /// Lazy, and compiled twice: quickly at the first call, and with the session's options after `calls` calls.
    /// The second compilation is an idle task of the session's [`Workers`](super::Workers), or runs in [`Session::optimize_hot`] where only waiting
    /// threads run tasks. A running loop with many iterations continues in the better code ([`Definitions::iterations`]).
    ///
    /// [`Session::optimize_hot`]: super::Session::optimize_hot
    pub fn tiered(mut self, calls: u32) -> Self {
        (self.manner.is_lazy, self.manner.policy.calls) =
            (true, Some(i32::try_from(calls).unwrap_or(i32::MAX)));
        self
    }

    /// For functions in two tiers: the number of iterations after which a running loop of the first tier continues in code of the second. The default
    /// is ten times the calls. Loops under an exception handler of their function stay in the first tier.
    pub fn iterations(mut self, iterations: u32) -> Self {
        self.manner.policy.iterations = Some(iterations);
        self
    }

    /// For functions in two tiers: whether the first tier counts the outcomes of its branches and the argument types of its dynamic
    /// calls, to optimise the second tier for them. The default is true.
    pub fn profiled(mut self, profiled: bool) -> Self {
        self.manner.policy.is_profiled = profiled;
        self
    }

    /// For functions in two tiers: up to `calls` calls of each function are interpreted while it is not compiled, so that a first call waits
    /// for nothing, and a rarely called function is never compiled. After half of them, or sooner if they run long loops, an idle
    /// task of the session's [`Workers`](super::Workers) compiles the function, or [`Session::optimize_hot`](super::Session::optimize_hot) where only
    /// waiting threads run tasks, or the first call after the last interpreted one. This applies to functions that
    /// compute only with numbers and call only visible functions of this kind; all others are compiled by their first call.
    pub fn interpreted(mut self, calls: u32) -> Self {
        self.manner.policy.interpreted = calls;
        self
    }

    /// Starts their compilation when they are defined, with this priority, rather than at the first lookup.
    pub fn start(mut self, priority: Priority) -> Self {
        self.starts = Some(priority);
        self
    }

    /// Adds a function without arguments that runs when the dylib is opened, by bare name or symbol.
    pub fn initializer(self, name: &str) -> Self {
        self.initializer_at(name, 0)
    }

    /// As [`Definitions::initializer`], with a C-like priority among the initialisers of the dylib: the lowest runs first, and initialisers of equal priority run in definition order. Dylibs that
    /// this one sees are initialised before it, whatever the priorities.
    pub fn initializer_at(mut self, name: &str, priority: i32) -> Self {
        self.initializers.push((name.to_owned(), priority));
        self
    }

    /// Adds a function without arguments that runs when the dylib is closed or the session ends.
    pub fn finalizer(mut self, name: &str) -> Self {
        self.finalizers.push(name.to_owned());
        self
    }
}

impl From<Program> for Definitions {
    fn from(program: Program) -> Self {
        let (written, source, is_priced) = (program.written(), program.source().clone(), program.is_priced());
        let source = Some(source).filter(|source| !source.text().is_empty());
        let (module, own, library) = program.into_parts();
        let manner = Manner { callees: Callees::Late, ..Manner::default() };
        Definitions { written, source, is_priced, library, manner, ..Definitions::new(module, own) }
    }
}
