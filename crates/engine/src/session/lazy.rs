//! Functions that are compiled when they are called first, and replaced while they are called.
//!
//! ```text
//!   symbol          f(Int64) ──► slot (the function that callers link to and hold, ready at once)
//!                                  │ first call, or `Function::compile`
//!   hidden symbol   f(Int64)#body ─┴► looked up like any other: compiled, linked, ready with all that it needs
//! ```
//!
//! A function in two tiers has one more hidden symbol, `f(Int64)#hot`, for the code that takes the place of the first when it has
//! been called often. The function calls itself through the slot. So do boxed entries, for calls that are decided at run time (`methods.rs`).
//!
//! Bodies need the slots of what they call, never their bodies, so one look-up compiles one function. Threads that call first
//! at the same time look up the same body, and who runs tasks meanwhile is the dispatcher's affair. A redefinition replaces
//! the body and closes the slot: the next call, of whoever, finds the new one. When the types change, it is another function
//! with a slot of its own, and code that was linked to the old one keeps it. A removed function throws `CompileError`, whoever
//! calls it; so does one that cannot be compiled, with the cause.
//!
//! The slot's source holds the session weakly: slots belong to it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, Weak};

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Level, Module};
use brolga_jit::Body as CellBody;
use brolga_jit::{CellOwner, Elsewhere, Interpreter, Materialize, Target, Tiers};
use brolga_linking::{
    Doing, DylibId, Label, Link, LookupKind, MaterializationUnit, Priority, Responsibility, Sees, Symbol,
    SymbolFlags, SymbolRef, Until, WeakSession, required,
};

use super::error::SessionError;
use super::interpreted::InterpretedBody;
use super::plan::lock;
use super::target::{Code, Function, Moved, Native, Origin, Placed, give_up};
use super::unit::{Loaded, Pin, Shared};
use super::{apart, linking};
use crate::engine::{declared_type, function_type};

/// What stands behind the symbol of a function in that of its body.
pub(crate) const BODY: &str = "#body";

/// The same for the body of the second tier.
pub(crate) const HOT: &str = "#hot";

/// The tiers of a function beside the first.
#[derive(Clone)]
pub(crate) struct Hot {
    /// What its body is defined as.
    pub(crate) body: Symbol,
    /// After how many calls of the first it is wanted.
    pub(crate) calls: i32,
    /// How it is called before it is compiled, if it can be.
    pub(crate) interpreted: Option<InterpretedBody>,
}

impl Hot {
    fn interpreter(&self) -> Option<Interpreter> {
        self.interpreted.as_ref().map(InterpretedBody::interpreter)
    }
}

/// The slots of a session's functions, by what tells them from each other: several of one name may be there at once, and the name
/// leads to one of them at most.
#[derive(Default)]
pub(crate) struct Slots {
    owners: Mutex<BTreeMap<usize, (Label, Weak<CellOwner>)>>,
}

impl Slots {
    /// The owner of the slot with this identity, if it is that of a function of this name.
    pub(crate) fn owner(&self, label: Label, identity: usize) -> Option<Arc<CellOwner>> {
        let owners = lock(&self.owners);
        let (of, owner) = owners.get(&identity)?;
        (*of == label).then(|| owner.upgrade())?
    }

    /// All slots that are there, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(Label, Arc<CellOwner>)> {
        let owners = lock(&self.owners);
        let there = owners.values().filter_map(|(label, owner)| Some((*label, owner.upgrade()?)));
        let mut there: Vec<(Label, Arc<CellOwner>)> = there.collect();
        drop(owners);
        there.sort_by_key(|(label, _)| *label);
        there
    }

    /// Lists a slot for as long as what this gives is held.
    fn enter(self: &Arc<Self>, label: Label, owner: Arc<CellOwner>) -> Entered {
        lock(&self.owners).insert(owner.identity(), (label, Arc::downgrade(&owner)));
        Entered { slots: self.clone(), owner }
    }
}

/// A slot that is listed.
pub(crate) struct Entered {
    slots: Arc<Slots>,
    owner: Arc<CellOwner>,
}

impl Entered {
    pub(crate) fn owner(&self) -> &Arc<CellOwner> {
        &self.owner
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.slots.owners).remove(&self.owner.identity());
    }
}

/// The type of a function at the doorway, known before it is lowered; `None` if it has no native form.
pub(crate) fn type_of(module: &Module, id: FuncId) -> Option<FunctionType> {
    let func = &module[id];
    match func.level {
        Level::High => declared_type(&module.cx, func.symbol(&module.cx), &func.sig),
        Level::Low => Some(function_type(module, id, func)),
    }
}

/// The promise of a slot.
pub(crate) struct Stub {
    pub(crate) shared: Arc<Shared>,
    pub(crate) symbol: Symbol,
    pub(crate) flags: SymbolFlags,
    pub(crate) body: Symbol,
    pub(crate) hot: Option<Hot>,
    pub(crate) ty: Arc<FunctionType>,
    /// What the body was defined from.
    pub(crate) pin: Pin,
}

impl MaterializationUnit<Native> for Stub {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        vec![(self.symbol, self.flags)]
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Ok(dylib) = responsibility.dylib() else { return };
        let hot = self.hot.as_ref();
        let source =
            Body::new(&self.shared, responsibility.session(), dylib, self.body, hot, self.pin.clone());
        let slot = match hot {
            Some(hot) => self.shared.jit.tiered(self.ty.clone(), source, hot.calls, hot.interpreter()),
            None => self.shared.jit.cell(self.ty.clone(), source),
        };
        let owner = match slot {
            Ok(owner) => Arc::new(owner),
            Err(error) => {
                let again: Box<dyn MaterializationUnit<Native>> = self;
                return give_up(responsibility, error.is_shortage(), error, again);
            }
        };
        let entered = self.shared.slots.enter(Label { dylib, symbol: self.symbol }, owner);
        let (code, address) = Code::enter_slot(&self.shared.placed, entered);
        // Whoever removed the unit meanwhile has told those who wait.
        if responsibility.attach(code).is_err() {
            return;
        }
        if let Ok(resolved) = responsibility.resolve([(self.symbol, address)]) {
            // A refusal has failed the unit, with its reason.
            let _ = resolved.emit([]);
        }
    }
}

/// Compiles the body of one version of a function. It does not hold the interpreter that serves calls before.
///
/// The body is looked up by its symbol, which leads to the newest one. If that was defined from another program, this version has been
/// superseded: then it is compiled apart from the session's tables, for the threads that are in its worlds still.
pub(crate) struct Body {
    session: WeakSession<Native>,
    shared: Weak<Shared>,
    home: Link,
    body: Symbol,
    /// The body of the second tier.
    hot: Option<Symbol>,
    placed: Arc<Placed>,
    /// What it was defined from; empty for those that are whatever the symbol leads to.
    pin: Pin,
    /// The two symbols keep their texts when the definitions are removed: the error of a call names them.
    _names: [Option<SymbolRef>; 2],
}

impl Body {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        dylib: DylibId,
        body: Symbol,
        hot: Option<&Hot>,
        pin: Pin,
    ) -> Arc<Body> {
        let (home, hot) = (Link { dylib, sees: Sees::All }, hot.map(|hot| hot.body));
        let names = session.names();
        let _names = [names.hold_symbol(body), hot.and_then(|hot| names.hold_symbol(hot))];
        let (session, placed, shared) = (session.downgrade(), shared.placed.clone(), Arc::downgrade(shared));
        Arc::new(Body { session, shared, home, body, hot, placed, pin, _names })
    }

    /// Whatever a symbol leads to.
    pub(crate) fn of_symbol(
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        label: Label,
    ) -> Arc<Body> {
        Body::new(shared, session, label.dylib, label.symbol, None, Pin::default())
    }

    /// What a cell that is there gets.
    pub(crate) fn for_cell(self: Arc<Body>, hot: Option<Hot>) -> CellBody {
        match hot {
            Some(hot) => {
                let interpreter = hot.interpreter();
                CellBody::Tiered { tiers: self, threshold: hot.calls, interpreter }
            }
            None => CellBody::Once(self),
        }
    }

    /// Whether code was compiled from the program that this version was defined from.
    fn is_own(&self, program: &Origin) -> bool {
        self.pin.get().is_none_or(|(loaded, _)| loaded.origin() == program)
    }

    /// The code of a body; nothing if the symbol leads to another version's.
    fn look_up(&self, body: Symbol, priority: Priority) -> Result<Option<Target>, Failed> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let (kind, wants) = (LookupKind::Static, required([body]));
        loop {
            let order = vec![self.home];
            let found = session.lookup_with(order, wants.clone(), Until::Ready, kind, priority).wait_one()?;
            let placed = match found.address {
                Some(address) => self.placed.find(address, || session.leads_to(found.label)),
                None => Ok(None),
            };
            let target = match placed {
                Ok(Some(Function::Code { program, .. })) if !self.is_own(&program) => return Ok(None),
                Ok(Some(Function::Code { unit, symbol, .. })) => unit.target(&symbol),
                Ok(Some(Function::Slot(_)) | None) => None,
                // Somebody has defined it anew meanwhile.
                Err(Moved) => continue,
            };
            return target.map(Some).ok_or_else(|| {
                let name = session.name(found.label).to_string();
                Box::new(SessionError::NotFunction { name }) as Failed
            });
        }
    }

    /// Compiles a version that was superseded.
    fn compile_apart(&self, loaded: &Arc<Loaded>, id: FuncId) -> Result<Target, Failed> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let seen = loaded.module();
        let mut module = seen.without_functions();
        let mut only = None;
        for (other, _) in seen.funcs() {
            let copy = module.add_func(seen[other].clone()).map_err(|error| format!("{error:?}"))?;
            only = if other == id { Some(copy) } else { only };
        }
        let only = only.ok_or("its program has no such function")?;
        apart::compile(&shared, &session, self.home.dylib, loaded, module, only)
    }
}

type Failed = Box<dyn Error + Send + Sync>;

impl Materialize for Body {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        match (self.look_up(self.body, Priority::Blocking), self.pin.get()) {
            (Ok(Some(target)), _) => Ok(target),
            (Ok(None), Some((loaded, id))) => self.compile_apart(loaded, *id),
            (Ok(None), None) => Err("its symbol leads to another function".into()),
            (Err(error), _) => Err(error),
        }
    }

    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        error.downcast_ref().is_some_and(linking::Error::passes)
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}

/// What is around the work of a source on another thread than the one that waits for it: it is a part of what that one does.
pub(crate) fn elsewhere() -> Elsewhere {
    let doing = Doing::here();
    Box::new(|work| doing.go_on(work))
}

impl Tiers for Body {
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let target = self.look_up(self.hot.unwrap_or(self.body), Priority::Idle)?;
        target.ok_or_else(|| "it has been superseded".into())
    }
}
