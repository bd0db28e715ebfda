//! Functions called through cells: their symbols, and the compilation of their bodies.
//!
//! ```text
//!   f(Int64), whole          ──► cell (callers are linked to it, handles hold it)
//!      │                           │ eager: not ready before the body is; lazy: ready at once, and the first call looks up the body
//!      ├── part: body        ──────┴► looked up like any other: compiled, linked, ready with everything it needs
//!      └── part: second tier ───────► looked up after many calls, in the background
//! ```
//!
//! A function is one name in the session's tables. Its code is in parts ([`Symbol::part`]), which come, go and are replaced with it.
//!
//! | kind | a look-up of `f` waits for | code is set in the cell |
//! |---|---|---|
//! | eager | its body, and therefore the bodies of all eager functions that it may call | when the body is linked ([`provide`]) |
//! | lazy | nothing | at the first call, or by `Function::compile` |
//!
//! Bodies need the cells of their callees, which have addresses from the first lookup on. So functions that call each other, in one program or
//! in several, are linked in any order, and eager ones become ready together.
//!
//! The function calls itself through the cell, as do the boxed entries for dynamic calls (`boxed_entry.rs`).
//!
//! Concurrent first calls look up the same body; the dispatcher decides which threads run tasks meanwhile. A redefinition adds
//! a version to the cell: all calls from the next world on reach the new body. It is compiled at the next look-up of an eager function,
//! or at the first call. If the types change, it is another function with its own cell, and code linked to the old one keeps it.
//! A call of a removed function throws `CompileError`, and so does, with the cause, a call of a function that cannot be compiled.
//!
//! The source of a version holds the session weakly: cells belong to it.

use std::any::Any;
use std::error::Error;
use std::sync::{Arc, Weak};

use brolga_codegen::sig::FunctionType;
use brolga_jit::Body as CellBody;
use brolga_jit::{Elsewhere, Interpreter, Materialize, Target, Tiers};
use brolga_linking::{
    Doing, Label, Link, LookupKind, MaterializationUnit, Priority, Responsibility, Sees, Symbol, SymbolFlags,
    SymbolPart, SymbolRef, Until, WeakSession, required,
};

use super::error::SessionError;
use super::input::{BodySource, Origin};
use super::shared::Shared;
use super::target::{Code, Moved, Native, Place, Placed, fail_unit};
use super::tiering::interpreted::InterpretedBody;
use super::{detached, linking};

/// The part of a function that is its code; of a function in two tiers the first tier.
pub(crate) const BODY: SymbolPart = SymbolPart::First;

/// The part of a function that is its second tier.
pub(crate) const SECOND: SymbolPart = SymbolPart::Second;

/// The tiers of a function after the first.
#[derive(Clone)]
pub(crate) struct SecondTier {
    /// The number of calls of the first tier after which it is compiled.
    pub(crate) calls: i32,
    /// The interpreted body for calls before it is compiled, if it can be interpreted.
    pub(crate) interpreted: Option<InterpretedBody>,
}

impl SecondTier {
    fn interpreter(&self) -> Option<Interpreter> {
        self.interpreted.as_ref().map(InterpretedBody::interpreter)
    }
}

/// Sets the code of an eager body in the cell of its function, in the version that was defined from the same program. The later of the two, the body
/// or the cell, does so. Code of a lazy function is set in its cell when it is called.
pub(crate) fn provide(
    shared: &Shared,
    session: &linking::Session<Native>,
    function: Label,
    program: &Origin,
    code: Target,
) {
    let owner = session
        .leads_to(function)
        .and_then(|at| shared.placed.owner(function, at).filter(|(_, is_eager)| *is_eager));
    // A cell that refuses it has been superseded or has another type.
    owner.into_iter().for_each(|(owner, _)| owner.provide(program, code.clone()));
}

/// The promise of a cell.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) shared: Arc<Shared>,
    pub(crate) symbol: Symbol,
    pub(crate) flags: SymbolFlags,
    pub(crate) second: Option<SecondTier>,
    pub(crate) ty: Arc<FunctionType>,
    /// The source of the body; `None` for a promised function.
    pub(crate) source: Option<BodySource>,
    /// Whether it is ready when its body is.
    pub(crate) is_eager: bool,
}

impl MaterializationUnit<Native> for Stub {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        vec![(self.symbol, self.flags)]
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Ok(dylib) = responsibility.dylib() else { return };
        let (label, second) = (Label { dylib, symbol: self.symbol }, self.second.as_ref());
        let source = Body::new(&self.shared, responsibility.session(), label, second, self.source.clone());
        let cell = match second {
            Some(second) => {
                self.shared.jit.tiered(self.ty.clone(), source, second.calls, second.interpreter())
            }
            None => self.shared.jit.cell(self.ty.clone(), source),
        };
        let owner = match cell {
            Ok(owner) => Arc::new(owner),
            Err(error) => {
                let again: Box<dyn MaterializationUnit<Native>> = self;
                return fail_unit(responsibility, error.is_shortage(), error, again);
            }
        };
        let entered = self.shared.cells.enter(label, owner, self.is_eager);
        let (code, address) = Code::enter_cell(&self.shared.placed, entered);
        // The removal of the unit has completed its lookups.
        if responsibility.attach(code).is_err() {
            return;
        }
        let session = responsibility.session().clone();
        let Ok(resolved) = responsibility.resolve([(self.symbol, address)]) else { return };
        if !self.is_eager {
            // A refusal has failed the unit, with its reason.
            let _ = resolved.emit([]);
            return;
        }
        let (shared, body) = (self.shared.clone(), Label { dylib, symbol: self.symbol.part(BODY) });
        // The body may have been linked first.
        let code = session.leads_to(body).and_then(|at| shared.placed.at(at)).and_then(Place::compiled);
        if let Some((code, target)) =
            code.and_then(|code| Some((code.program, code.unit.target(&code.symbol)?)))
        {
            provide(&shared, &session, label, &code, target);
        }
        let again: Box<dyn MaterializationUnit<Native>> = self;
        let _ = resolved.emit_or_again([body.into()], again);
    }
}

/// Compiles the body of one version of a function. It does not hold the interpreter that serves earlier calls.
///
/// The body is looked up as a part of the function's symbol, which resolves to the newest one. If that was defined from another program, this version has been
/// superseded: then it is compiled outside the session's tables, for the threads that are still in its worlds.
pub(crate) struct Body {
    session: WeakSession<Native>,
    shared: Weak<Shared>,
    function: Label,
    /// Whether there is a second tier.
    is_tiered: bool,
    placed: Arc<Placed>,
    /// The source of this version; `None` for a body that follows its symbol.
    source: Option<BodySource>,
    /// Keeps the text of the symbol after the definitions are removed: the error of a call names it.
    _name: Option<SymbolRef>,
}

impl Body {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        function: Label,
        second: Option<&SecondTier>,
        source: Option<BodySource>,
    ) -> Arc<Body> {
        let (_name, is_tiered) = (session.names().hold_symbol(function.symbol), second.is_some());
        let (session, placed, shared) = (session.downgrade(), shared.placed.clone(), Arc::downgrade(shared));
        Arc::new(Body { session, shared, function, is_tiered, placed, source, _name })
    }

    /// The source of a cell that exists.
    pub(crate) fn for_cell(self: Arc<Body>, second: Option<SecondTier>) -> CellBody {
        match second {
            Some(second) => {
                let interpreter = second.interpreter();
                CellBody::Tiered { tiers: self, threshold: second.calls, interpreter }
            }
            None => CellBody::Once(self),
        }
    }

    /// Whether code was compiled from the program that this version was defined from.
    fn is_own(&self, program: &Origin) -> bool {
        self.source.as_ref().is_none_or(|source| source.input.origin() == program)
    }

    /// The code of a part; `None` if the symbol resolves to another version's.
    fn look_up(&self, part: SymbolPart, priority: Priority) -> Result<Option<Target>, Failed> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let Label { dylib, symbol } = self.function;
        let (kind, wants) = (LookupKind::Static, required([symbol.part(part)]));
        loop {
            let order = vec![Link { dylib, sees: Sees::All }];
            let found = session.lookup_with(order, wants.clone(), Until::Ready, kind, priority).wait_one()?;
            let placed = match found.address {
                Some(address) => self.placed.find(address, || session.leads_to(found.label)),
                None => Ok(None),
            };
            let target = match placed {
                Ok(Some(Place::Compiled(code))) if !self.is_own(&code.program) => return Ok(None),
                Ok(Some(Place::Compiled(code))) => code.unit.target(&code.symbol),
                Ok(Some(Place::Function(_) | Place::Object(_)) | None) => None,
                // It was redefined meanwhile.
                Err(Moved) => continue,
            };
            return target.map(Some).ok_or_else(|| {
                let name = session.name(found.label).to_string();
                Box::new(SessionError::NotFunction { name }) as Failed
            });
        }
    }

    /// Compiles a superseded version.
    fn compile_detached(&self, BodySource { input, id }: &BodySource) -> Result<Target, Failed> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let seen = input.module();
        let mut module = seen.without_functions();
        let mut only = None;
        for (other, _) in seen.funcs() {
            let copy = module.add_func(seen[other].clone()).map_err(|error| format!("{error:?}"))?;
            only = if other == *id { Some(copy) } else { only };
        }
        let only = only.ok_or("its program has no such function")?;
        detached::compile(&shared, &session, self.function.dylib, input, (module, only), None)
    }
}

type Failed = Box<dyn Error + Send + Sync>;

impl Materialize for Body {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        if let (Some(session), Some(shared)) = (self.session.upgrade(), self.shared.upgrade()) {
            shared.first_calls.note(&session, self.function);
        }
        match (self.look_up(BODY, Priority::Blocking), &self.source) {
            (Ok(Some(target)), _) => Ok(target),
            (Ok(None), Some(source)) => self.compile_detached(source),
            (Ok(None), None) => Err("its symbol leads to another function".into()),
            (Err(error), _) => Err(error),
        }
    }

    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        error.downcast_ref().is_some_and(linking::Error::passes)
    }

    fn accepts(&self, program: &dyn Any) -> bool {
        program.downcast_ref().is_some_and(|program| self.is_own(program))
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}

/// The wrapper for a source's work on a thread other than the waiting one: it counts as the waiting thread's work.
pub(crate) fn elsewhere() -> Elsewhere {
    let doing = Doing::here();
    Box::new(|work| doing.go_on(work))
}

impl Tiers for Body {
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let part = if self.is_tiered { SECOND } else { BODY };
        let target = self.look_up(part, Priority::Idle)?;
        target.ok_or_else(|| "it has been superseded".into())
    }
}
