//! Names that refer to definitions elsewhere: re-exports and aliases.
//!
//! | | name | identity | what it follows |
//! |---|---|---|---|
//! | re-export | as in the other dylib | the same function, variable, type or C symbol | everything defined, redefined and removed there, now and later |
//! | alias of a function | another | a function with the same code: its methods have the invoke pointers, and therefore the C addresses, of the original's methods | redefinitions and removals of the methods that the original had when the alias was made |
//! | alias of a C symbol | another | the same address | what the name resolved to when it was first needed |
//!
//! Both are declarations: programs read afterwards use them in static and dynamic calls and in `cfunction`, and Rust looks them up. They are removed with their tracker, by
//! [`Dylib::remove`] (an alias) or [`Dylib::end_reexport`]; programs defined before keep what they call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::{Context, Func, FuncId, FunctionName, Level, Module};
use brolga_linking::{Alias, DylibId, Link, Reexports, Sees, SymbolFlags, Until};

use super::batch::Batch;
use super::declared::reexport_symbol;
use super::dylib::Dylib;
use super::error::SessionError;
use super::link_orders::{Exports, Reexport};
use super::linking;
use super::names_in::Bindings;
use super::owners::NameUse;
use super::reading::uses;
use super::scope::{Visible, methods_in};

impl Dylib {
    /// Exports names of another dylib as this one's: programs of dylibs that are linked to this one, and its own, see them. They keep their identity, and follow
    /// definitions, redefinitions and removals there. A name that this dylib defines itself hides the re-exported one.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use brolga::session::Exports;
    /// use brolga::{Options, Session, Workers};
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let [shapes, facade, main] = ["shapes", "facade", "main"].map(|name| session.create_dylib(name).unwrap());
    /// for (name, result) in [("area", 6), ("secret", 7)] {
    ///     let text = format!("function {name}()::Int64\n1 ─ return {result}\nend");
    ///     shapes.define(shapes.read("shapes.jlir", text.as_bytes())?)?;
    /// }
    /// facade.reexport(&shapes, Exports::only(["area"]))?;
    /// main.link_against(&facade)?;
    /// assert_eq!(main.func::<(), i64>("area")?.call(())?, 6);
    /// assert!(main.function("secret").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// One of the dylibs is closed, or the other one is of another session.
    pub fn reexport(&self, other: &Dylib, exports: Exports) -> Result<(), SessionError> {
        self.check_session(other)?;
        let (linking, exports) = (self.session.linking(), Arc::new(exports));
        let held = linking.symbol(&reexport_symbol(other.name(), self.session.next_number()));
        // The generator finds C symbols. Program functions are found by their names and types.
        let passed = exports.clone();
        let filter = move |name: &str| !name.contains(['(', '#']) && passed.has(name);
        let generator = self.linking.add_generator(Reexports { from: other.linking.exported(), filter })?;
        let (symbol, from) = (held.symbol(), other.linking.id());
        let owners = &self.session.inner.owners;
        // Noted first: the re-export ends with its symbol, which may be removed as soon as it exists.
        owners.reexport(self.linking.id(), Reexport { symbol, generator, from, exports });
        self.note_order();
        self.linking.define(linking::names_only([symbol])).inspect_err(|_| {
            owners.end_reexport(self.linking.id(), symbol);
            // The generator no longer exists if its tracker was removed.
            let _ = self.linking.remove_generator(generator);
        })?;
        Ok(())
    }

    /// Ends all re-exports of another dylib. Programs defined before keep what they use.
    ///
    /// # Errors
    /// There is no such re-export; the dylib is closed.
    pub fn end_reexport(&self, other: &Dylib) -> Result<(), SessionError> {
        self.check_session(other)?;
        let reexports = self.session.inner.owners.reexports(self.linking.id(), other.linking.id());
        if reexports.is_empty() {
            return Err(SessionError::NotReexported { dylib: other.name().to_owned() });
        }
        for (symbol, generator) in reexports {
            // Its tracker, if any, may have removed the generator: the symbol still ends the re-export.
            let _ = self.linking.remove_generator(generator);
            self.linking.remove([symbol])?;
        }
        Ok(())
    }

    /// Defines `name` as an alias of a function of another dylib, or of this one, with the methods that the other dylib sees of it now. Each has the code of the original, also
    /// after the original is redefined, and the same C address. A program can define a function with the original's name and call the original by the alias. An alias of a C symbol
    /// has the original's address, which is looked up in the other dylib when it is first needed.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use brolga::{Options, Session, Workers};
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let [base, main] = ["base", "main"].map(|name| session.create_dylib(name).unwrap());
    /// base.define(base.read("price.jlir", "function price()::Int64\n1 ─ return 20\nend".as_bytes())?)?;
    /// main.alias("listed", &base, "price")?;
    /// let text = "function price()::Int64
    /// 1 ─ %1 = invoke Main.listed()::Int64
    /// │   %2 = Base.sub_int(%1, 3)::Int64
    /// └──      return %2
    /// end";
    /// main.define(main.read("offer.jlir", text.as_bytes())?)?;
    /// assert_eq!(main.func::<(), i64>("price")?.call(())?, 17);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The other dylib sees no such function or C symbol, or is of another session; the name is defined already; as [`Dylib::define`].
    pub fn alias(&self, name: &str, other: &Dylib, original: &str) -> Result<(), SessionError> {
        self.check_session(other)?;
        let mut cx = self.context();
        loop {
            let renamed = Renamed::new(name, other.methods_of(original)?, &cx);
            if renamed.own.is_empty() {
                return self.alias_c_symbol(name, other, original);
            }
            let uses = uses(&renamed.declared, renamed.own.len());
            match self.session.inner.owners.mean(self.linking.id(), &uses) {
                false => cx = self.context_for(uses),
                true if self.alias_methods(&renamed, uses)? => return Ok(()),
                true => {}
            }
        }
    }

    /// The methods of a function that the dylib sees, by symbol.
    fn methods_of(&self, name: &str) -> Result<BTreeMap<Arc<str>, Visible>, SessionError> {
        let cx = self.context();
        let function = cx.types.function_named(FunctionName::parse(&cx.names, name));
        self.supplied(name)?;
        let (view, is_defined) = (self.view(None)?, |at, symbol: &str| self.session.defines(at, symbol));
        let seen = view.of_function(&cx, function);
        Ok(methods_in(&seen, (function, None), &is_defined, &Bindings::new()))
    }

    /// Defines aliases of methods. `false` if the basis of the preparation has changed.
    fn alias_methods(&self, renamed: &Renamed, uses: Vec<NameUse>) -> Result<bool, SessionError> {
        let Renamed { declared, own, originals } = renamed;
        let mut new = Batch::new(self, false);
        new.uses = uses;
        let hits = new.hits(declared, own);
        new.offers.offer(declared, own, false, &Arc::default());
        for (&id, (dylib, original)) in own.iter().zip(originals) {
            let name: Arc<str> = declared[id].symbol(&declared.cx).into();
            let (symbol, aliasee) = (new.names.intern(&name), new.names.intern(original));
            new.offers.set_aliases([name]);
            new.notes.add_nothing(self.linking.label(symbol));
            new.add_method(declared, id);
            new.add_alias(Alias {
                symbol,
                flags: SymbolFlags::EXPORTED,
                from: Link { dylib: *dylib, sees: Sees::All },
                aliasee,
            });
        }
        Ok(self.bring_into_force(new, hits, (None, Vec::new()), &mut BTreeSet::new())?.is_some())
    }

    fn alias_c_symbol(&self, name: &str, other: &Dylib, original: &str) -> Result<(), SessionError> {
        let linking = self.session.linking();
        let (held, aliasee) = (linking.symbol(name), linking.symbol(original));
        let (order, wants) = (other.linking.links()?, linking::required([aliasee.symbol()]));
        let found = other.answer(linking.lookup(order, wants, Until::Known))??;
        let from = found.into_iter().map(|found| Link { dylib: found.label.dylib, sees: Sees::All });
        let alias = |from| Alias {
            symbol: held.symbol(),
            flags: SymbolFlags::EXPORTED,
            from,
            aliasee: aliasee.symbol(),
        };
        Ok(self.linking.alias(from.map(alias))?)
    }

    /// Refuses a dylib of another session.
    fn check_session(&self, other: &Dylib) -> Result<(), SessionError> {
        let (of, here) = (other.linking.id().session(), self.linking.id().session());
        match of == here {
            true => Ok(()),
            false => Err(linking::Error::OtherSession { what: "dylib", of, here }.into()),
        }
    }
}

/// The methods of a function, declared for a function with another name.
struct Renamed {
    declared: Module,
    own: Vec<FuncId>,
    /// The dylib of each method, and its symbol there.
    originals: Vec<(DylibId, Arc<str>)>,
}

impl Renamed {
    fn new(name: &str, methods: BTreeMap<Arc<str>, Visible>, cx: &Arc<Context>) -> Renamed {
        let function = FunctionName::parse(&cx.names, name);
        let (bare, object) = (cx.names.text(function.name), cx.types.function_named(function));
        let mut renamed =
            Renamed { declared: Module::new(cx.clone()), own: Vec::new(), originals: Vec::new() };
        for (symbol, Visible { dylib, offer }) in methods {
            // The view shares the names of the method, unless the method was removed meanwhile.
            if !cx.hold(&offer.func) {
                continue;
            }
            let mut sig = offer.func.sig.clone();
            if let Some(first) = sig.params.first_mut() {
                first.ty = object;
            }
            let func = Func::new(cx.names.intern(bare), Level::High, sig);
            // The methods of one function have distinct symbols.
            let Ok(id) = renamed.declared.add_func(func) else { continue };
            renamed.own.push(id);
            renamed.originals.push((dylib, symbol));
        }
        renamed
    }
}
