//! Definitions that are made in one step: the functions of a program, and their options.
//!
//! A dylib makes them by reading a program (`reading.rs`) and puts them into its tables (`define.rs`).

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

/// A verified program that is to be defined in a dylib. Made by [`Dylib::read`](super::Dylib::read),
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
    /// How many functions at the front of the module are its own.
    pub(crate) own: usize,
    pub(crate) manner: Manner,
    /// The imports, and the importer.
    pub(crate) imported: Option<(Dylib, Imported)>,
    /// The dylibs of the methods that it has imported.
    pub(crate) bindings: Bindings,
    /// The calls of methods and C functions that are not there, in words.
    pub(crate) missing: Vec<String>,
    /// The functions of Base of which the module has methods of the prelude behind its own functions.
    pub(crate) library: BTreeSet<Type>,
    pub(crate) starts: Option<Priority>,
    pub(crate) initializers: Vec<(String, i32)>,
    pub(crate) finalizers: Vec<String>,
    /// Objects that live as long as the code.
    pub(crate) kept: Option<Kept>,
    /// How many functions at the front of the module are looked at for doors: the others come from the prelude.
    pub(super) written: usize,
    /// The text of a program that was read before.
    pub(super) source: Option<SourceFile>,
    /// Whether its functions have prices.
    pub(super) is_priced: bool,
}

/// How functions are defined.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner {
    pub(crate) is_weak: bool,
    pub(crate) is_hidden: bool,
    pub(crate) is_inlinable: bool,
    /// Whether all are compiled together.
    pub(crate) is_whole: bool,
    pub(crate) is_lazy: bool,
    pub(crate) is_replaceable: bool,
    /// Whether they belong to the session's library.
    pub(crate) is_library: bool,
    /// The policy of tiers.
    pub(crate) policy: Policy,
    /// When a method or C function that they call and that is not there is refused.
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

    /// Gives its own functions prices, unless they have some, or are the session's.
    pub(super) fn price(&mut self) {
        if !self.manner.is_library && !std::mem::replace(&mut self.is_priced, true) {
            let own = self.own;
            fuel::price(&mut self.module, |at| at < own);
        }
    }

    /// Whether functions that an embedder has written have prices.
    pub(super) fn takes_fuel(&self) -> bool {
        fuel::spends(&self.module, self.own)
    }

    /// They are the session's own: their doors have been checked, and they have no prices.
    pub(super) fn of_session(mut self) -> Self {
        (self.written, self.is_priced) = (0, true);
        self
    }

    /// Whether the embedder has them from a text, a builder or a program.
    pub(super) fn is_of_embedder(&self) -> bool {
        self.written > 0 && !self.manner.is_library
    }

    /// Checks that there are no doors. The library has some inside, and is trusted.
    pub(super) fn check_doors(&self) -> Result<(), SessionError> {
        match &self.source {
            _ if self.manner.is_library => {}
            Some(source) => no_doors_read(source, &self.module, self.written)?,
            None => no_doors_built(&self.module, self.written)?,
        }
        Ok(())
    }

    /// The symbols of its functions, in the order of the program.
    pub fn functions(&self) -> Vec<String> {
        self.module.funcs().take(self.own).map(|(_, func)| func.symbol(&self.module.cx)).collect()
    }

    /// They belong to the session's library: all other methods override theirs.
    pub(super) fn of_library(mut self) -> Self {
        self.manner.is_library = true;
        self
    }

    /// The calls of undefined methods, in words, one for each; none but after [`Dylib::read_late`](super::Dylib::read_late).
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Other definitions of their names override them, until their first lookup.
    pub fn weak(mut self) -> Self {
        self.manner.is_weak = true;
        self
    }

    /// Other dylibs do not see them: not by static calls, and not by look-ups. A dynamic call of a function value reaches its hidden methods as well. A name of which a dylib
    /// has hidden methods alone means nothing in the dylibs that are linked to it, which may have functions of their own by it.
    pub fn hidden(mut self) -> Self {
        self.manner.is_hidden = true;
        self
    }

    /// Programs that are read or built later may inline them. When they are redefined, code that has done so is recompiled.
    pub fn inlinable(mut self) -> Self {
        self.manner.is_inlinable = true;
        self
    }

    /// All functions are compiled, linked and freed together, and not one by one when each is needed.
    pub fn together(mut self) -> Self {
        self.manner.is_whole = true;
        self
    }

    /// Each function is compiled when it is called first, and not when it is looked up. Functions of the program may be inlined into each other.
    pub fn lazy(mut self) -> Self {
        self.manner.is_lazy = true;
        self
    }

    /// Lazy, and a redefinition replaces a function for all its callers at their next call, running frames included. Functions of the program
    /// know nothing of each other but their types, and nothing is inlined. For hot reload; all other kinds keep a running frame in its world. A function
    /// that was defined as another kind keeps that.
    pub fn replaceable(mut self) -> Self {
        (self.manner.is_lazy, self.manner.is_replaceable) = (true, true);
        self
    }

    /// Lazy, and compiled twice: fast when it is called first, and as the session's options say after `calls` calls.
    /// The latter is an idle task of the session's [`Workers`](super::Workers), or done by [`Session::optimize_hot`] where tasks are run by threads
    /// that wait for them only. A loop that iterates for long is left for better code while it runs ([`Definitions::iterations`]).
    ///
    /// [`Session::optimize_hot`]: super::Session::optimize_hot
    pub fn tiered(mut self, calls: u32) -> Self {
        (self.manner.is_lazy, self.manner.policy.calls) =
            (true, Some(i32::try_from(calls).unwrap_or(i32::MAX)));
        self
    }

    /// For functions in two tiers: after how many iterations a loop of the first is left, while it runs, for code of the second. Ten times
    /// the calls if this is not said. Loops under an exception handler of their function are not left.
    pub fn iterations(mut self, iterations: u32) -> Self {
        self.manner.policy.iterations = Some(iterations);
        self
    }

    /// For functions in two tiers: whether the first counts the outcomes of its branches and the types with which its dynamic calls are
    /// made, so that the second is made for that. It does if this is not said.
    pub fn profiled(mut self, profiled: bool) -> Self {
        self.manner.policy.is_profiled = profiled;
        self
    }

    /// For functions in two tiers: up to `calls` calls of each are interpreted while it is not compiled, so that a first call waits
    /// for nothing, and what is seldom called never becomes code. Behind half of them, or sooner if they go through long loops, an idle
    /// task of the session's [`Workers`](super::Workers) compiles the function, or [`Session::optimize_hot`](super::Session::optimize_hot) where tasks
    /// are run by threads that wait for them only, or the call behind the last of them. It concerns functions that
    /// compute with numbers alone and call only such as can be seen with them; all others are compiled by their first call.
    pub fn interpreted(mut self, calls: u32) -> Self {
        self.manner.policy.interpreted = calls;
        self
    }

    /// Starts to compile them now, with this urgency, and not at the first lookup.
    pub fn start(mut self, priority: Priority) -> Self {
        self.starts = Some(priority);
        self
    }

    /// A function without arguments that runs when the dylib is opened. Takes a bare name or a symbol.
    pub fn initializer(self, name: &str) -> Self {
        self.initializer_at(name, 0)
    }

    /// As [`Definitions::initializer`], with a priority among the initialisers of the dylib, as C's: the lowest runs first, and those of one priority run in the order of their definitions. Dylibs that
    /// this one sees come before it, whatever their priorities.
    pub fn initializer_at(mut self, name: &str, priority: i32) -> Self {
        self.initializers.push((name.to_owned(), priority));
        self
    }

    /// A function without arguments that runs when the dylib is closed, or the session ends.
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
