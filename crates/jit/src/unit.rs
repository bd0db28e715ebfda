//! Units: loaded code, and the objects that it keeps while it may run.
//!
//! ```text
//!   Unit (handle) ──► Inner: types, methods ──► Code: machine code, frame maps, globals
//!                                                 │ visible: code that it calls by address
//!                                                 └ held: the cells that it calls through, which lead to other units
//! ```
//!
//! Clones of a [`Unit`] share the loaded code. Code keeps the symbols that it names. It lists the cells ([`Code::edges`]) and holds them, without access
//! to their targets, so the files of `cell/` are built on this one, and not vice versa.

mod retired;
pub(crate) mod types;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use brolga_codegen::entry::entry_name;
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_ir::Context;
use brolga_runtime::FrameMapsInForce;
use brolga_runtime::objects::{LaterMethods, MethodTable, Methods};

use crate::engine::Jit;
use crate::entry::trampoline::Entry;
use crate::link::globals::Globals;
use crate::link::linker::{LoadedUnit, release};
use crate::tiering::profile::Cells;
use types::Types;

/// A loaded unit. Clones share it; it is freed with the last clone and the last function taken from it.
#[derive(Clone)]
pub struct Unit {
    inner: Arc<Inner>,
}

struct Inner {
    /// Methods that are removed with the last handle, before the code.
    methods: OnceLock<Vec<Methods>>,
    later_methods: OnceLock<LaterMethods>,
    code: Arc<Code>,
    types: Types,
    /// Whether its code, or code that it calls, handles objects.
    needs_heap: bool,
    jit: Jit,
}

/// The parts of a unit.
pub(crate) struct Contents {
    /// The machine code, and the maps of its frames.
    pub(crate) placed: (Arc<LoadedUnit>, Option<FrameMapsInForce>),
    /// The functions that can be looked up.
    pub(crate) types: Types,
    /// Whether its own code handles objects, or calls through cells, which may lead to any function.
    pub(crate) needs_heap: bool,
    /// The context of the types that the code names by address.
    pub(crate) cx: Option<Arc<Context>>,
    /// The global variables that it names by address.
    pub(crate) globals: Option<Globals>,
    /// The method table of its dynamic calls, which it names by address.
    pub(crate) table: Arc<MethodTable>,
    /// The cells that it calls through, by their identities.
    pub(crate) edges: Box<[usize]>,
    /// Objects that have to live as long: those cells, and the continuations of its loops.
    pub(crate) held: Box<dyn Any + Send + Sync>,
    /// The cells of a profile, which it names by address.
    pub(crate) cells: Option<Cells>,
}

/// The memory and references that stay for as long as code of a unit may run.
pub(crate) struct Code {
    #[expect(dead_code, reason = "held so that the collector finds the roots of the code")]
    maps: Option<FrameMapsInForce>,
    loaded: Arc<LoadedUnit>,
    #[expect(dead_code, reason = "held so that the heap keeps the types")]
    cx: Option<Arc<Context>>,
    globals: Option<Globals>,
    table: Arc<MethodTable>,
    edges: Box<[usize]>,
    #[expect(dead_code, reason = "held so that the code finds what it calls")]
    held: Box<dyn Any + Send + Sync>,
    #[expect(dead_code, reason = "held so that the code can count in them")]
    cells: Option<Cells>,
    /// The code that it may call by address, which has its own edges.
    visible: Vec<Arc<Code>>,
    /// Owners that the embedder attached.
    kept: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The owner of the code of methods, with the trampoline.
pub(crate) type MethodKeeper = (Arc<Code>, Arc<LoadedUnit>);

impl Drop for Code {
    fn drop(&mut self) {
        release(self.let_go(), Code::let_go);
    }
}

impl Code {
    /// The identities of the cells that it calls functions through.
    pub(crate) fn edges(&self) -> &[usize] {
        &self.edges
    }

    /// The units that only it keeps.
    fn let_go(&mut self) -> Vec<Arc<Code>> {
        std::mem::take(&mut self.visible)
    }

    /// Whether one of the addresses, which are ascending, is in it, or in code that it keeps.
    pub(crate) fn contains_any(code: &Arc<Code>, addresses: &[usize]) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![code.clone()];
        while let Some(code) = open.pop() {
            if !seen.insert(Arc::as_ptr(&code)) {
                continue;
            }
            let own = code.loaded.code().addresses();
            // Frames return to the address after their calls, so perhaps to the end of their unit, but never to a unit's
            // start.
            let first = addresses.partition_point(|&address| address <= own.start);
            if addresses.get(first).is_some_and(|&address| address <= own.end) {
                return true;
            }
            open.extend(code.visible.iter().cloned());
        }
        false
    }
}

/// A handle to a unit that does not keep it.
#[derive(Clone)]
pub struct WeakUnit {
    inner: Weak<Inner>,
}

impl WeakUnit {
    /// The unit, if a handle still exists.
    pub fn upgrade(&self) -> Option<Unit> {
        self.inner.upgrade().map(|inner| Unit { inner })
    }
}

impl Unit {
    /// A unit of `jit`, with the units whose code its own may call by address.
    pub(crate) fn new(jit: &Jit, contents: Contents, visible: &[Unit]) -> Unit {
        let Contents { placed: (loaded, maps), types, needs_heap, cx, globals, table, edges, held, cells } =
            contents;
        let needs_heap = needs_heap || visible.iter().any(|unit| unit.inner.needs_heap);
        let visible = visible.iter().map(|unit| unit.inner.code.clone()).collect();
        let kept = OnceLock::new();
        let code = Arc::new(Code { maps, loaded, cx, globals, table, edges, held, cells, visible, kept });
        let (methods, later_methods) = (OnceLock::new(), OnceLock::new());
        let inner = Inner { methods, later_methods, code, types, needs_heap, jit: jit.clone() };
        Unit { inner: Arc::new(inner) }
    }

    /// A handle that does not keep the unit, for objects that the unit keeps.
    #[must_use]
    pub fn downgrade(&self) -> WeakUnit {
        WeakUnit { inner: Arc::downgrade(&self.inner) }
    }

    /// Attaches methods to the unit, which are removed when its last handle is dropped. Once; later ones are refused, and
    /// removed at once.
    pub fn keep_methods(&self, methods: Vec<Methods>) -> bool {
        self.inner.methods.set(methods).is_ok()
    }

    /// As [`Unit::keep_methods`], for methods that are made later.
    pub fn keep_later_methods(&self, methods: LaterMethods) -> bool {
        self.inner.later_methods.set(methods).is_ok()
    }

    /// The trampoline for functions with this signature that an image has brought with it.
    pub(crate) fn entry(&self, signature: &Signature) -> Option<Arc<Entry>> {
        let Types::Image(_) = &self.inner.types else { return None };
        let address = self.loaded().function(&entry_name(signature))?;
        Some(Arc::new(Entry { address, unit: self.loaded().clone() }))
    }

    /// Makes the code keep the owners of addresses that it names, while a thread may run it. Once; later calls are refused.
    pub fn keep(&self, kept: Arc<dyn Any + Send + Sync>) -> bool {
        self.inner.code.kept.set(kept).is_ok()
    }

    /// The loaded unit.
    pub fn loaded(&self) -> &Arc<LoadedUnit> {
        &self.inner.code.loaded
    }

    /// Whether there are other handles to it, or functions of it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// The engine that it was loaded by.
    pub fn jit(&self) -> &Jit {
        &self.inner.jit
    }

    /// The names of the functions that can be looked up, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.types.names()
    }

    /// The global variables that its code reads and writes.
    pub fn globals(&self) -> Option<&Globals> {
        self.inner.code.globals.as_ref()
    }

    /// The method table of dynamic calls that begin in the unit.
    pub fn methods(&self) -> &MethodTable {
        &self.inner.code.table
    }

    pub(crate) fn needs_heap(&self) -> bool {
        self.inner.needs_heap
    }

    /// Whether one of the addresses, which are ascending, is in its code, or in code that it keeps.
    pub(crate) fn contains_any(&self, addresses: &[usize]) -> bool {
        Code::contains_any(&self.inner.code, addresses)
    }

    pub(crate) fn code(&self) -> &Arc<Code> {
        &self.inner.code
    }

    /// The signature of a function, by its symbol, if it can be looked up.
    pub(crate) fn signature(&self, symbol: &str) -> Option<Signature> {
        self.inner.types.of_symbol(symbol).map(|ty| ty.signature.clone())
    }

    /// The type of a function that can be looked up.
    ///
    /// # Errors
    /// The image that the unit was opened from contradicts itself: the reason.
    pub fn ty(&self, name: &str) -> Result<Option<Arc<FunctionType>>, String> {
        self.inner.types.find(name)
    }
}

impl std::fmt::Debug for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.code.loaded.fmt(f)
    }
}
