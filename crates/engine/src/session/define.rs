//! Defining functions in a dylib: programs, promises, host functions.
//!
//! ```text
//!   prepare: callers to recompile, units, cells ──► one step: is this still true? ──yes──► in force ──► callers in other dylibs
//!      ▲                                                       │ no
//!      └───────────────────────────────────────────────────────┘
//! ```
//!
//! Preparation holds no lock, so other threads may change its inputs meanwhile. The step checks them again and fails if
//! they have changed (`invalidation.rs` lists the inputs); otherwise the whole batch comes into force in it (`batch.rs`).
//! Nothing waits after the step. Callers in other dylibs that have inlined a body are recompiled afterwards, dylib by
//! dylib; `deferred.rs` holds those that cannot be recompiled at once.
//!
//! Only the step finds the weak functions that existing definitions override. The program is then prepared again with
//! these as external functions: it does not define them, and their bodies are not inlined.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use brolga_ir::build::BuildError;
use brolga_ir::{Context, FuncId, Module};
use brolga_linking::{Priority, Symbol, SymbolFlags, Until};
use brolga_runtime::heap::{Root, Scope};
use brolga_runtime::objects::{MethodEntry, Raised};
use brolga_runtime::{HostFunction, TypedHost};

use super::batch::Batch;
use super::declared::DECLARED;
use super::deferred::{Redefined, Retyped};
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::imports::{bind_calls, with_own};
use super::invalidation::Hit;
use super::lazy::BODY;
use super::opening::{INITIALIZER, Marker};
use super::owners::NameUse;
use super::prepare::Prepared;
use super::promise::{Make, Promise, Signature};
use super::reading::uses;
use super::scope::without_bodies;
use super::sync::lock;
use super::type_names::DeclaredTypes;
use super::{host, linking};
use brolga_codegen::native_type::type_of;

type MakeProgram = Box<dyn FnOnce(&Dylib) -> Result<Definitions, SessionError> + Send>;

/// The promise's callback for a program whose module the embedder builds.
fn built_by(
    make: impl FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
) -> MakeProgram {
    Box::new(move |dylib| dylib.build(make(dylib).map_err(|error| SessionError::Promise(Arc::from(error)))?))
}

impl Dylib {
    /// Defines the functions of a program, all or none.
    ///
    /// # Errors
    /// Some are defined already; the dylib is closed; the session has ended.
    pub fn define(&self, definitions: impl Into<Definitions>) -> Result<(), SessionError> {
        self.define_with(definitions.into(), false).map(drop)
    }

    /// Defines functions and replaces those with the same names. Running frames stay in their world and call the old
    /// functions; later calls from Rust reach the new ones. An existing function stays eager or lazy, as it was. The
    /// result lists functions of other dylibs that had inlined an old body.
    ///
    /// # Errors
    /// As [`Dylib::define`]; an old function is being compiled by work that waits for this thread; the thread is inside a
    /// scope and would have to wait. Nothing has changed in these cases.
    pub fn redefine(&self, definitions: impl Into<Definitions>) -> Result<Redefined, SessionError> {
        self.define_with(definitions.into(), true)
    }

    fn define_with(&self, definitions: Definitions, replace: bool) -> Result<Redefined, SessionError> {
        let mut definitions = self.transformed(definitions)?;
        if !self.session.has_open_doors() {
            // The definitions may come from another session, or have been read without one.
            definitions.check_doors()?;
        }
        self.session.price(&mut definitions);
        let mut overridden = BTreeSet::new();
        self.link_library_of(&definitions)?;
        loop {
            Dylib::refresh_imports(&mut definitions)?;
            let names = self.settle_names(&mut definitions)?;
            let made = self.try_define(&mut definitions, names, replace, &mut overridden)?;
            if let Some(redefined) = made {
                return Ok(redefined);
            }
        }
    }

    /// Prepares definitions and brings them into force. `None` if they have to be prepared again. `overridden` holds the
    /// weak functions that existing definitions override; they are treated as external functions.
    fn try_define(
        &self,
        definitions: &mut Definitions,
        names: Vec<NameUse>,
        replace: bool,
        overridden: &mut BTreeSet<Symbol>,
    ) -> Result<Option<Redefined>, SessionError> {
        let (manner, module) = (definitions.manner, &mut definitions.module);
        let mut own: Vec<FuncId> = module.funcs().map(|(id, _)| id).take(definitions.own).collect();
        // Functions are compiled in separate units, but facts of the module concern all of them: another function may assign
        // a global that this one reads, or pass it to C as a callback.
        module.note_facts();
        if self.is_shared(module) {
            module.note_shared_variables();
        }
        check_names(module, &own)?;
        if self.is_shared(module) {
            bind_calls(module, &own);
        }
        if replace {
            self.check_aliases(module, &own)?;
        }
        let bindings = Arc::new(with_own(definitions.bindings.clone(), module, &own, self.linking.id()));
        let mut new = Batch::new(self, replace);
        new.uses = names;
        new.uses.iter_mut().for_each(|named| named.is_hidden = manner.is_hidden);
        if self.is_shared(module) {
            new.add_types(DeclaredTypes::of(&module.cx, self.session.context()));
        }
        let (names, priorities): (Vec<String>, Vec<i32>) = definitions.initializers.iter().cloned().unzip();
        let initializers = symbols_of(module, &own, &names)?;
        new.finalizers = symbols_of(module, &own, &definitions.finalizers)?;
        let mut without_overridden = None;
        if manner.is_weak && !replace {
            let symbol = |id| new.names.intern(&module[id].symbol(&module.cx));
            new.weak = own.iter().map(|&id| symbol(id)).collect();
            let gone: BTreeSet<FuncId> =
                own.iter().copied().filter(|&id| overridden.contains(&symbol(id))).collect();
            own.retain(|id| !gone.contains(id));
            without_overridden = (!gone.is_empty()).then(|| without_bodies(module, &gone));
        }
        let module = without_overridden.as_mut().unwrap_or(module);
        let hits = new.hits(module, &own);
        let retyped = new.retyped(module, &own);
        new.basis.imports.extend(definitions.imported.as_ref().map(|(_, imported)| imported.clone()));
        let functions = (definitions.own, own);
        let sources = (definitions.kept.clone(), bindings);
        let mut program = Prepared::new(self, module, functions, manner, sources, &mut new)?;
        program.add_units(&mut new);
        program.add_cells(&mut new);
        for (function, priority) in initializers.into_iter().zip(priorities) {
            let symbol = new.names.intern(&format!("{function}{INITIALIZER}"));
            let needs = self.session.linking().symbol(&function);
            new.add(Box::new(Marker { symbol, priority, needs }));
        }
        program.add_notes(&mut new);
        let starts = definitions.starts.map(|priority| (priority, program.symbols()));
        self.bring_into_force(new, hits, (starts, retyped), overridden)
    }

    /// Brings a batch into force and recompiles `hits`, the functions that depend on its definitions. Then looks up the symbols in
    /// `starts`, which compiles them. `None` if the batch has to be prepared again.
    pub(super) fn bring_into_force(
        &self,
        mut new: Batch<'_>,
        hits: Vec<Hit>,
        (starts, retyped): (Option<(Priority, Vec<Symbol>)>, Vec<Retyped>),
        overridden: &mut BTreeSet<Symbol>,
    ) -> Result<Option<Redefined>, SessionError> {
        let mut redefined = Redefined { retyped, ..Redefined::default() };
        let is_here = |hit: &Hit| new.replaces() && hit.label.dylib == self.linking.id();
        let (here, elsewhere): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(is_here);
        if !here.is_empty() {
            let seen = new.basis.seen;
            new.recompile(here, seen, &mut redefined.kept)?;
        }
        if new.define(overridden)?.is_none() {
            return Ok(None);
        }
        if let Some((priority, symbols)) = starts {
            self.compile_in_background(symbols, priority);
        }
        self.session.recompile_callers(elsewhere, &mut redefined);
        Ok(Some(redefined))
    }

    /// Looks up symbols of this dylib, which compiles them, without waiting. A failure is reported.
    pub(super) fn compile_in_background(
        &self,
        symbols: impl IntoIterator<Item = Symbol>,
        priority: Priority,
    ) {
        let inner = Arc::downgrade(&self.session.inner);
        let (order, wants) = (vec![self.linking.all()], linking::weak(symbols));
        self.session.linking().lookup_then(order, wants, Until::Ready, priority, move |answer| {
            if let (Err(error), Some(inner)) = (answer, inner.upgrade()) {
                inner.report(&error.into());
            }
        });
    }

    /// Refuses to replace an alias of a function: callers use the cell of the original.
    fn check_aliases(&self, module: &Module, own: &[FuncId]) -> Result<(), SessionError> {
        let Some(scope) = self.session.scope(self.linking.id()) else { return Ok(()) };
        let mut symbols = own.iter().map(|&id| module[id].symbol(&module.cx));
        let is_alias = |name: &String| scope.is_alias(name) && self.session.defines(self.linking.id(), name);
        symbols.find(is_alias).map_or(Ok(()), |name| Err(SessionError::IsAlias { name }))
    }

    /// The functions of `own` that are lazy. With `replace`, an existing function stays lazy or eager, as it was.
    pub(super) fn lazy_among(
        &self,
        module: &Module,
        own: &[FuncId],
        asked: bool,
        replace: bool,
    ) -> BTreeSet<FuncId> {
        let scope = lock(&self.session.inner.homes).get(&self.linking.id()).map(|home| home.scope.clone());
        let scope = scope.filter(|_| replace);
        let Some(scope) = scope else {
            return if asked { own.iter().copied().collect() } else { BTreeSet::new() };
        };
        let is_lazy = |id: &FuncId| {
            let symbol = module.symbol_of(*id);
            if scope.knows(&symbol) { scope.is_lazy(&symbol) } else { asked }
        };
        own.iter().copied().filter(is_lazy).collect()
    }

    /// Promises functions: `make` builds their module when one of them is first called or compiled. They are
    /// [lazy](Definitions::lazy).
    ///
    /// # Errors
    /// As [`Dylib::define`]; a type has no native form.
    pub fn promise(
        &self,
        signatures: &[Signature],
        make: impl FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<(), SessionError> {
        self.promise_with(signatures, built_by(make), false).map(drop)
    }

    /// As [`Dylib::promise`], for a program that `make` reads: with [`Dylib::read`] of the dylib it receives. The program's definition options are ignored.
    ///
    /// # Errors
    /// As [`Dylib::promise`].
    pub fn promise_program(
        &self,
        signatures: &[Signature],
        make: impl FnOnce(&Dylib) -> Result<Definitions, SessionError> + Send + 'static,
    ) -> Result<(), SessionError> {
        self.promise_with(signatures, Box::new(make), false).map(drop)
    }

    /// Promises functions and replaces those with the same names, as [`Dylib::redefine`].
    ///
    /// # Errors
    /// As [`Dylib::redefine`].
    pub fn promise_again(
        &self,
        signatures: &[Signature],
        make: impl FnOnce(&Dylib) -> Result<Module, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<Redefined, SessionError> {
        self.promise_with(signatures, built_by(make), true)
    }

    fn promise_with(
        &self,
        signatures: &[Signature],
        make: MakeProgram,
        replace: bool,
    ) -> Result<Redefined, SessionError> {
        let declare = |cx: &Arc<Context>| {
            let mut declared = Module::new(cx.clone());
            // Signatures with equal names and types are one promise.
            let add = |signature: &Signature| declared.add_func(signature.declare(cx)).ok();
            let own: Vec<FuncId> = signatures.iter().filter_map(add).collect();
            let uses = uses(&declared, own.len());
            (Arc::new(declared), own, uses)
        };
        // The session owns the promise, so a strong handle would keep the session alive forever.
        let dylib = self.downgrade();
        let make: Make = Box::new(move || {
            let dylib = dylib.upgrade()?;
            let mut made = dylib.transformed(make(&dylib)?)?;
            dylib.session.price(&mut made);
            Ok(made)
        });
        // Shared because each attempt of the loop adds a promise with it.
        let make = Arc::new(Mutex::new(Some(make)));
        let mut cx = self.context();
        loop {
            let (declared, own, uses) = declare(&cx);
            if !self.session.inner.owners.mean(self.linking.id(), &uses) {
                cx = self.context_for(uses);
                continue;
            }
            let mut new = Batch::new(self, replace);
            new.uses = uses;
            let hits = new.hits(&declared, &own);
            let retyped = new.retyped(&declared, &own);
            let lazy = self.lazy_among(&declared, &own, true, replace);
            new.offers.offer(&declared, &own, false, &Arc::default());
            let flags = SymbolFlags::EXPORTED;
            let mut symbols = Vec::with_capacity(own.len());
            for &id in &own {
                let name: Arc<str> = declared[id].symbol(&declared.cx).into();
                new.notes.add_nothing(self.linking.label(new.names.intern(&name)));
                let (symbol, is_eager) = (new.names.intern(&name), !lazy.contains(&id));
                symbols.push(match type_of(&declared, id) {
                    Some(ty) => {
                        new.stub(&name, flags, ty.into(), (None, None), is_eager);
                        (symbol.part(BODY), SymbolFlags::NONE)
                    }
                    None => (symbol, flags),
                });
                new.add_method(&declared, id);
            }
            let (shared, make) = (self.session.inner.shared.clone(), make.clone());
            new.add(Box::new(Promise { shared, symbols, make, declared: declared.clone() }));
            if let Some(redefined) =
                self.bring_into_force(new, hits, (None, retyped), &mut BTreeSet::new())?
            {
                return Ok(redefined);
            }
        }
    }

    /// Defines a host function: a closure that takes the function object and the arguments as objects, and returns an
    /// object of the result's type or an exception. Programs call it like any other function.
    ///
    /// # Errors
    /// As [`Dylib::define`]; a type in the signature has no object representation.
    pub fn define_host(
        &self,
        signature: &Signature,
        body: impl for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), SessionError> {
        self.define(self.host(signature, MethodEntry::host(body))?)
    }

    /// Defines a host function and replaces the function with its name and types, which may be a program's, as [`Dylib::redefine`].
    ///
    /// # Errors
    /// As [`Dylib::redefine`]; a type in the signature has no object representation.
    pub fn redefine_host(
        &self,
        signature: &Signature,
        body: impl for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised>
        + Send
        + Sync
        + 'static,
    ) -> Result<Redefined, SessionError> {
        self.redefine(self.host(signature, MethodEntry::host(body))?)
    }

    fn host(&self, signature: &Signature, entry: MethodEntry) -> Result<Definitions, SessionError> {
        let (cx, method) = (&self.context(), self.session.host_method(&signature.name));
        let built = host::module(cx, &method, signature);
        let built = built.map_err(|error| SessionError::Promise(Arc::new(error)))?;
        let mut definitions = self.build_trusted(built)?.of_session();
        let method = host::add_method(self.session.runtime(), cx, &method, signature, entry);
        let method =
            method.map_err(|error| SessionError::Host { reason: error.display(&cx.types).to_string() })?;
        definitions.kept = Some(Arc::new(method));
        Ok(definitions)
    }

    /// Defines a typed host function: a closure whose numeric arguments and result are passed in registers. It has the signature of the
    /// closure:
    ///
    /// | Rust, as an argument | as a result | Julia |
    /// |---|---|---|
    /// | `i8`…`i64`, `u8`…`u64`, `f32`, `f64`, `bool`, `char` | the same | the type of the same name |
    /// | | `()` | `Nothing` |
    /// | `&str` | `String` | `String` |
    /// | `&[T]`, `&mut [T]` of integers and floats | `Vec<T>` | `Vector{T}` |
    /// | [`Persistent`](brolga_runtime::heap::Persistent), a handle that may be stored | the same | `Any` |
    ///
    /// The result may be wrapped in a `Result`; the text of an error becomes an `ErrorException` in the program, and so does a panic. Text and slices are views
    /// of the program's objects: a closure that takes views cannot call compiled code of its runtime (such calls are refused), and two overlapping slices in one call, one of
    /// them mutable, are an error. Preventing other threads from changing an object meanwhile is the embedder's responsibility, as everywhere
    /// ([`brolga_ir::doors`]).
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use std::sync::atomic::{AtomicI64, Ordering};
    ///
    /// use brolga::session::{Session, Workers};
    /// use brolga::Options;
    /// const RULE: &str = "
    /// function rule(limit::Float64)::Int64
    /// 1 ─ %1 = invoke Main.booked(limit::Float64, \"hall 7\"::String)::Int64
    /// │   %2 = invoke Main.booked(limit::Float64, \"hall 7\"::String)::Int64
    /// │   %3 = Base.add_int(%1, %2)::Int64
    /// └──      return %3
    /// end";
    ///
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let main = session.create_dylib("main")?;
    /// let calls = AtomicI64::new(0);
    /// main.define_fn("booked", move |limit: f64, name: &str| -> Result<i64, String> {
    ///     let so_far = calls.fetch_add(1, Ordering::Relaxed) + 1;
    ///     if so_far as f64 > limit { Err(format!("{name} is booked out")) } else { Ok(so_far) }
    /// })?;
    /// main.define(main.read("rule.jlir", RULE.as_bytes())?)?;
    /// let rule = main.func::<(f64,), i64>("rule")?;
    /// assert_eq!(rule.call((3.0,))?, 3);
    /// let full = rule.call((3.0,)).unwrap_err();
    /// assert!(full.to_string().contains("hall 7 is booked out"), "{full}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dylib::define`].
    pub fn define_fn<M>(&self, name: &str, body: impl TypedHost<M>) -> Result<(), SessionError> {
        self.define(self.typed_host(name, body)?)
    }

    /// Defines a typed host function and replaces the function with its name and types, which may be a program's, as [`Dylib::redefine`]. The
    /// replaced closure is dropped when no thread can call it any more.
    ///
    /// # Errors
    /// As [`Dylib::redefine`].
    pub fn redefine_fn<M>(&self, name: &str, body: impl TypedHost<M>) -> Result<Redefined, SessionError> {
        self.redefine(self.typed_host(name, body)?)
    }

    pub(super) fn typed_host<M>(
        &self,
        name: &str,
        body: impl TypedHost<M>,
    ) -> Result<Definitions, SessionError> {
        let cx = &self.context();
        let host = HostFunction::new(self.session.runtime(), cx, body);
        let refused = |reason: String| SessionError::Host { reason };
        let host = host.map_err(|error| refused(error.display(&cx.types).to_string()))?;
        self.host_function(name, host, host::typed_module)
    }

    /// The definition of a host function with arguments in registers; `module` makes its wrapper.
    pub(super) fn host_function(
        &self,
        name: &str,
        host: HostFunction,
        module: fn(&Arc<Context>, &str, &str, &HostFunction) -> Result<Module, BuildError>,
    ) -> Result<Definitions, SessionError> {
        let settling = self.session.host_method(name);
        let (cx, runtime) = (&self.context(), self.session.runtime());
        let refused = |reason: String| SessionError::Host { reason };
        let built = module(cx, &settling, name, &host);
        let built = built.map_err(|error| SessionError::Promise(Arc::new(error)))?;
        // The call by address is made by the session; it is not a door of the program.
        let mut definitions = self.build_trusted(built)?.of_session();
        let HostFunction { method, owner, .. } = host;
        let method = host::add_settling(runtime, cx, &settling, name, method);
        let method = method.map_err(|error| refused(error.display(&cx.types).to_string()))?;
        definitions.kept = Some(Arc::new((method, owner)));
        Ok(definitions)
    }
}

/// Refuses functions whose symbols have the suffix of an initialiser or a declaration. Only low functions can have such symbols; the symbols
/// of high functions end with their types.
fn check_names(module: &Module, own: &[FuncId]) -> Result<(), SessionError> {
    let is_inner = |name: &Arc<str>| [INITIALIZER].iter().chain(&DECLARED).any(|kind| name.ends_with(kind));
    match own.iter().map(|&id| module.symbol_of(id)).find(is_inner) {
        Some(name) => Err(SessionError::Reserved { name: name.to_string() }),
        None => Ok(()),
    }
}

/// The symbols of the functions in `names`, each given by its bare name or its symbol.
fn symbols_of(module: &Module, own: &[FuncId], names: &[String]) -> Result<Vec<String>, SessionError> {
    let find = |name: &String| {
        let called = |&&id: &&FuncId| {
            module[id].symbol(&module.cx) == *name || module[id].spelled_name(&module.cx) == *name
        };
        let found: BTreeSet<String> =
            own.iter().filter(called).map(|&id| module[id].symbol(&module.cx)).collect();
        match found.len() {
            1 => Ok(found.into_iter().next().unwrap_or_default()),
            0 => Err(SessionError::NotFunction { name: name.clone() }),
            _ => Err(SessionError::Ambiguous { name: name.clone(), methods: found.into_iter().collect() }),
        }
    };
    names.iter().map(find).collect()
}
