//! Boxed entries of methods: compiled at the first dynamic call of the method.
//!
//! ```text
//!   definition ──► row: types, and a Declared ──► method table           no code
//!   first call ──► Declared::compile ──► linked to the function's code, or to its cell ──► code of the row
//! ```
//!
//! An entry unpacks objects and calls the function, so it needs only the function's declaration. Engines and sessions use the same rows; they
//! differ in how the entry is linked to the function ([`Engine`](crate::Engine): in the unit of its program; a session: by its label).
//!
//! Cost: a row of some hundred bytes for each function; one small function for each method called dynamically.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::func::Signature;
use brolga_ir::{Context, Func, FuncId, Level, Module, Name};
use brolga_jit::{Compiled, Jit, Linkage, Source, Style, WeakUnit};
use brolga_opt::lower::{boxed_entry, boxed_symbol};
use brolga_opt::{Cx, OptLevel, optimize};
use brolga_runtime::objects::{CodeEntry, EntrySource, MethodEntry, MethodRow, NewMethods};

use crate::cached::{CodeCache, alone};
use crate::error::Error;
use crate::options::tier;
use crate::pipeline::place;
use brolga_codegen::native_type::declared_type;

/// How entries are compiled.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) level: OptLevel,
    pub(crate) opt: brolga_opt::Options,
    pub(crate) roots: Roots,
    /// The cache searched before an entry is compiled.
    pub(crate) cache: Option<CodeCache>,
    /// The time limit for the passes of functions that are linked together.
    pub(crate) compile_limit: Option<Duration>,
}

/// The source of an entry: the declaration of its function.
pub(crate) struct Declared {
    cx: Arc<Context>,
    name: Name,
    sig: Signature,
}

impl Declared {
    /// A high function of a module that dynamic calls may reach; `None` if they cannot.
    pub(crate) fn new(module: &Module, id: FuncId) -> Option<Declared> {
        let func = &module[id];
        let is_method = func.level == Level::High && !func.sig.params.is_empty();
        is_method.then(|| Declared { cx: module.cx.clone(), name: func.name, sig: func.sig.clone() })
    }

    /// The type of the function for typed callers, if it has one.
    pub(crate) fn function_type(&self, symbol: &str) -> Option<FunctionType> {
        declared_type(&self.cx, symbol.to_owned(), &self.sig)
    }

    /// Machine code of the entry, which calls the function by `call_kind`, and its symbol.
    pub(crate) fn compile(
        &self,
        jit: &Jit,
        recipe: &Recipe,
        call_kind: CallKind,
    ) -> Result<(Compiled, String), Error> {
        let mut module = Module::new(self.cx.clone());
        let func = Func::new(self.name, Level::High, self.sig.clone());
        let symbol = boxed_symbol(&func.symbol(&self.cx));
        let facts = recipe.cache.as_ref().filter(|cache| cache.is_used(&self.cx)).map(|cache| {
            let mut facts = cache.facts("boxed entry");
            facts.word(call_kind.number().into());
            facts.text(&recipe.level.to_string());
            facts.text(&recipe.opt.key());
            facts.bytes(&alone(&module, &func));
            (cache, facts.finish())
        });
        if let Some((cache, facts)) = &facts
            && let Some(kept) = cache.find(facts, &self.cx, |_| Some(Vec::new()))
        {
            return Ok((kept.compiled, symbol));
        }
        let start = Instant::now();
        // The only function of a module cannot be a duplicate, and is the first one.
        let _ = module.add_func(func);
        let entry = boxed_entry(&module, FuncId::from_u32(0))?;
        let (entry, _) = optimize(&module, entry, recipe.level, &recipe.opt, &mut Cx::default())?;
        let low = place(&self.cx, entry, &recipe.opt, recipe.roots, jit.runtime().heap().abi())?;
        let others = |_: &str| call_kind;
        let style = Style { others: &others, ..Style::from(tier(recipe.level)) };
        let compiled = jit.compile(&self.cx, &[Source { func: &low, ty: None }], style)?;
        if let Some((cache, facts)) = facts {
            cache.keep(&facts, &self.cx, &compiled, (&[], &[]), start.elapsed());
        }
        Ok((compiled, symbol))
    }
}

/// A high function as a row of a method table; `None` if it takes no function object.
pub(crate) fn row(
    module: &Module,
    id: FuncId,
    entry: impl FnOnce(Declared) -> MethodEntry,
) -> Option<MethodRow> {
    MethodRow::of(module, id, entry(Declared::new(module, id)?))
}

/// Materializes the boxed entry of a unit's function.
struct UnitEntry {
    unit: WeakUnit,
    declared: Declared,
    recipe: Arc<Recipe>,
}

impl EntrySource for UnitEntry {
    fn make(&self) -> Result<CodeEntry, Box<dyn std::error::Error + Send + Sync>> {
        let unit = self.unit.upgrade().ok_or("its program is gone")?;
        let (compiled, symbol) = self.declared.compile(unit.jit(), &self.recipe, CallKind::Far)?;
        let visible = [unit.clone()];
        let linkage = Linkage { visible: &visible, ..Linkage::default() };
        Ok(unit.jit().link_boxed(&compiled, &symbol, &linkage)?)
    }
}

/// The rows of a unit's functions.
pub(crate) fn rows(
    unit: &WeakUnit,
    module: &Module,
    ids: impl IntoIterator<Item = FuncId>,
    recipe: &Arc<Recipe>,
) -> NewMethods {
    let mut rows = NewMethods::default();
    for id in ids {
        let entry = |declared| {
            MethodEntry::deferred(UnitEntry { unit: unit.clone(), declared, recipe: recipe.clone() })
        };
        if let Some(row) = row(module, id, entry) {
            rows.add(&module.cx, row);
        }
    }
    rows
}
