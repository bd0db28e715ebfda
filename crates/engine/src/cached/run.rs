//! Whole runs: the code of a call of a program, found by the program's text without reading it.
//!
//! ```text
//!   name, text, call ──► Fingerprint ──► entry: declarations of the functions with code │ their code as one unit
//!                           └─ miss: the program is read and compiled, function by function from the cache, and the run is stored
//! ```
//!
//! With the functions of a program in a cache, most of the time before a call is spent reading and verifying its text. The key of a run covers the bytes of
//! the text, so a compiler built from the same sources has read and verified the same text before; the seal of the entry shows that it is unchanged since.
//!
//! The entry has no bodies: everything that the call may reach has code, and boxed entries, which are compiled at their first dynamic call, need only
//! declarations. So an entry serves only one call, and its program is not public.
//!
//! **Misses.** A call that cannot be read (`kept_run.rs` of the crate) with the entry's declarations, such as one that names a type of the program that no
//! function with code names, is a miss; then the program is read. Functions that the call does not reach are missing, but the call still resolves to the
//! same method: it is present, and was the most specific among more methods.
//!
//! Cost of a hit: reading the entry, and linking one unit.

use std::sync::Arc;
use std::time::Duration;

use brolga_aot::unit;
use brolga_cache::Fingerprint;
use brolga_codegen::sig::FunctionType;
use brolga_ir::{Context, FuncId, Module, binary};
use brolga_jit::Compiled;

use super::{CodeCache, Kept};
use brolga_codegen::native_type::type_of;

/// The function may be called by dispatch.
const IS_METHOD: u32 = 1;

/// The stored form of a run.
pub(crate) struct FoundRun {
    /// The functions with code, without their bodies.
    pub(crate) module: Module,
    /// The possible targets of dynamic calls.
    pub(crate) methods: Vec<FuncId>,
    pub(crate) compiled: Compiled,
}

/// The code of a run.
pub(crate) fn find_run(cache: &CodeCache, facts: &Fingerprint) -> Option<FoundRun> {
    let (module, kept) = cache.found(facts, |payload| read(payload, Context::new()))?;
    let is_method = |id: &FuncId| {
        let word = kept.words.get(id.as_u32() as usize);
        word.is_some_and(|word| word & IS_METHOD != 0)
    };
    let methods = module.funcs().map(|(id, _)| id).filter(is_method).collect();
    Some(FoundRun { module, methods, compiled: kept.compiled })
}

/// The facts of a run.
pub(crate) fn facts_of_run(cache: &CodeCache, name: &str, text: &[u8], call: &str) -> Fingerprint {
    let mut facts = cache.facts("run");
    facts.text(name);
    facts.bytes(text);
    facts.text(call);
    facts.finish()
}

/// Stores the code of a module's functions that a call reaches.
pub(crate) fn keep_run(
    cache: &CodeCache,
    facts: &Fingerprint,
    module: &Module,
    (compiled, ids): (&Compiled, &[FuncId]),
    cost: Duration,
) {
    let mut declared = module.without_functions();
    let mut words = Vec::with_capacity(ids.len());
    for &id in ids {
        // A function whose type is determined only by its low form is not stored, as in other entries.
        if type_of(module, id).is_none() {
            return;
        }
        let func = &module[id];
        words.push(if func.entry().is_some() { IS_METHOD } else { 0 });
        // The functions of a module have distinct symbols.
        let _ = declared.add_func(func.unreachable());
    }
    let module = binary::write(&declared);
    let (Ok(length), Some(unit)) =
        (u32::try_from(module.len()), unit::write(&declared.cx, &compiled.code(), &[], &words))
    else {
        return;
    };
    let mut bytes = Vec::with_capacity(4 + module.len() + unit.len());
    bytes.extend(length.to_le_bytes());
    bytes.extend(module);
    bytes.extend(unit);
    cache.keep_bytes(facts, &bytes, cost);
}

/// The declarations and the code of an entry.
fn read(payload: &[u8], cx: Arc<Context>) -> Option<(Module, Kept)> {
    let (length, rest) = payload.split_first_chunk()?;
    let (module, unit) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let module = binary::read(module, cx).ok()?;
    let types = || -> Option<Vec<Arc<FunctionType>>> {
        module.funcs().map(|(id, _)| type_of(&module, id).map(Arc::new)).collect()
    };
    let kept = Kept::read(unit, &module.cx, |_| types())?;
    Some((module, kept))
}
